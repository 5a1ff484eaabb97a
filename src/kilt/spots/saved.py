"""Read spots from TOML files, and solved spots from their runs' folders."""

from __future__ import annotations

from pathlib import Path

from kilt import artifact
from kilt.config import SPOT
from kilt.errors import KiltError, RunError, file_errors
from kilt.records import read_toml, record_of
from kilt.runs.folder import RunFolder
from kilt.solve.problem import VectorProblem
from kilt.spots.solution import SpotSolution
from kilt.spots.solving import TABLES, in_chips
from kilt.spots.spot import KEPT, Spot
from kilt.strategy.blueprint import STRATEGY


@file_errors()
def open_spot(folder: str | Path, threads: int = 1) -> tuple[Spot, SpotSolution]:
    """Open a solved spot from its folder.

    Parameters
    ----------
    folder : str or Path
        A folder that `Spot.solve` or ``kilt spot solve --out`` wrote.
    threads : int
        Number of threads that evaluate the solution, each on some of the boards.

    Returns
    -------
    tuple of Spot and SpotSolution
        The spot, and its solution.

    Raises
    ------
    RunError
        If the folder has no spot, or the spot has no strategy yet.
    """
    folder = Path(folder)
    require_kept(folder)
    run, spot = RunFolder.open(folder), read_spot(folder / SPOT, kept=True)
    if not artifact.exists(folder / STRATEGY):
        raise RunError(f"{folder} has no strategy yet: solve it to the end")
    problem = VectorProblem(spot.tree(threads, kept=True), TABLES)
    table, _ = problem.load(folder / STRATEGY)
    return spot, SpotSolution(problem.game, table, tuple(map(in_chips, run.steps())))


def require_kept(folder: Path) -> None:
    """Raise RunError if a folder contains no spot."""
    if not (folder / SPOT).exists():
        what = "has no spot" if folder.exists() else "does not exist"
        raise RunError(f"{folder} {what}: give the folder of a spot that was solved")


def read_spot(path: str | Path, *, kept: bool = False) -> Spot:
    """Read a spot from a TOML file whose keys are the fields of `Spot`.

    If the spot was saved with a solution (`kept`), contradictions in it are accepted, and the last value counts, as in
    earlier versions.
    """
    path = Path(path)
    said = read_toml(path, RunError)
    token = KEPT.set(kept)
    try:
        return record_of(Spot, said)
    except KiltError as error:
        error.args = (f"{path}: {error}",)
        raise
    finally:
        KEPT.reset(token)
