"""Check runs, strategies, card abstractions and caches on disk for damage.

When a file is opened, a large one is checked only once per machine (see `artifact.read`); `check` reads all files
again.

>>> import tempfile
>>> from kilt.runs.budget import Budget
>>> from kilt.runs.build import build, spec_of
>>> place = Path(tempfile.mkdtemp()) / "run"
>>> last = build(spec_of("kuhn"), place, budget=Budget(iterations=4)).finish()
>>> [(one.what, one.damage) for one in check(place)]
[('run', ''), ('checkpoint', ''), ('strategy', '')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from kilt import artifact
from kilt.abstraction.buckets import (
    DESCRIPTION,
    AbstractionSpec,
    classes_folder,
    load_classes,
    load_round,
    round_folder,
)
from kilt.config import read_config
from kilt.errors import ArtifactError, KiltError
from kilt.runs.folder import CONFIG, RunFolder
from kilt.solve.tables.disk_store import ABOUT, require_whole
from kilt.solve.tables.disk_strategy import FILES
from kilt.strategy.blueprint import KIND as BLUEPRINT
from kilt.strategy.blueprint import STRATEGY, Blueprint
from kilt.strategy.model import KIND as MODEL
from kilt.strategy.model import OpponentModel
from kilt.strategy.vector import IN_SUBGAMES


class CheckResult(NamedTuple):
    """The result of checking one item on disk, such as a run."""

    path: Path
    what: str  # a run, a card abstraction, or the kind of an artifact
    size: int  # bytes of its own files
    damage: str  # description of the damage; empty if there is none


def check(path: Path) -> Iterator[CheckResult]:
    """Check all files of kilt in a folder and its subfolders for damage.

    Parameters
    ----------
    path : Path
        A run, a strategy, a card abstraction, the cache, or any folder with some of them in it.

    Yields
    ------
    CheckResult
        The result for each run, card abstraction and artifact. Raises KiltError if there is none.
    """
    found = False
    for folder in sorted({path, *_folders(path)}):
        for what, look in _looks(folder):
            found, damage = True, ""
            try:
                look()
            except KiltError as error:
                damage = str(error)
            yield CheckResult(
                folder, what, sum(file.stat().st_size for file in folder.glob("*") if file.is_file()), damage
            )
    if not found:
        raise ArtifactError(f"there is nothing of kilt in {path}: check the name")


def require_whole_subgames(run: Path) -> None:
    """Raise RunError if a subgame's file of a run on disk is damaged or missing."""
    if artifact.exists(run / STRATEGY) and artifact.kind_of(run / STRATEGY) == IN_SUBGAMES:
        _require_whole_strategy(run / STRATEGY)


def _folders(path: Path) -> Iterator[Path]:
    """Yield all subfolders except those still being written; one that was being replaced has its final name."""
    for folder in path.rglob("*"):
        names = folder.relative_to(path).parts
        if folder.is_dir() and not any(name.startswith(".") for name in names):
            yield folder
        elif folder.is_dir() and names[-1].endswith(".old"):
            yield folder.with_name(names[-1].removeprefix(".").removesuffix(".old"))


def _looks(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each item in a folder, with a function that reads all its files."""
    if RunFolder.has_run(folder):
        yield "run", lambda: _look_at_run(folder)
    if (folder / DESCRIPTION).is_file():
        yield "card abstraction", lambda: _look_at_cards(folder)
    if artifact.exists(folder):
        yield _kind(folder), lambda: _look_at_artifact(folder)
    elif (folder / ABOUT).is_file():
        yield "subgames", lambda: _look_at_subgames(folder)
    elif any(folder.glob("*.npy")):
        yield "arrays", lambda: _lost(folder)


def _kind(folder: Path) -> str:
    try:
        return artifact.kind_of(folder)
    except ArtifactError:
        return "artifact"


def _look_at_artifact(folder: Path) -> None:
    kind = artifact.kind_of(folder)
    artifact.read(folder, kind, check=True)
    if kind == BLUEPRINT:
        Blueprint.load(folder)
    if kind == MODEL:
        OpponentModel.load(folder)
    if kind == IN_SUBGAMES:
        _require_whole_strategy(folder)


def _require_whole_strategy(folder: Path) -> None:
    """Read all subgames of a strategy, and compare them with the strategy's manifest."""
    require_whole(folder, trunk=artifact.read(folder, IN_SUBGAMES).inputs.get(FILES, ""))


def _look_at_subgames(folder: Path) -> None:
    """Read all subgames that a solver has written, and check that they belong to the run in the folder, if any."""
    run = RunFolder.open(folder.parent) if RunFolder.has_run(folder.parent) else None
    require_whole(folder, run.run_id if run else None, 2 * run.saved_iterations if run else 0)


def _look_at_cards(folder: Path) -> None:
    """Check that all bucket numbers of a card abstraction are within bounds.

    Checksums are checked with the artifacts.
    """
    spec = AbstractionSpec.read(folder)
    for public in spec.plan.public:
        if artifact.exists(classes_folder(folder, public)):
            load_classes(folder, spec, public)
    for r in range(len(spec.plan.rounds)):
        if artifact.exists(round_folder(folder, r)):
            load_round(folder, spec, r).require_valid_entries()


def _look_at_run(folder: Path) -> None:
    RunFolder.open(folder).require_whole_log()
    if (folder / CONFIG).is_file():
        read_config(folder / CONFIG)


def _lost(folder: Path) -> None:
    raise ArtifactError(f"{folder / artifact.MANIFEST} is missing: make what was there again, or copy it")
