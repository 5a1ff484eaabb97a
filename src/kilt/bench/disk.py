"""``kilt bench disk``: CFR+ with regrets on disk beside CFR+ in memory: size, time, and what rounding costs.

With ``--long``, [3-1] hold'em too, whose tables memory does not hold: how far it comes in some minutes.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from kilt.bench.measure import Figure, interleaved
from kilt.games import load_game
from kilt.games.game import Game
from kilt.runs.budget import Budget
from kilt.runs.run import new_run
from kilt.solve.disk import DiskCfr
from kilt.solve.disk_strategy import DiskProblem
from kilt.solve.disk_subgames import Subgames
from kilt.solve.problem import big_blind_of
from kilt.solve.vector import VectorCfr
from kilt.tree.vector import VectorGame

SMALL, LARGE = ("holdem.2-1", 20), ("holdem.2-4", 100)  # games, and iterations
ROUNDS = 3  # in which both are timed
LARGER = "holdem.3-1"  # whose tables memory does not hold
MINUTES = 120.0  # that it is solved for


def run(
    *,
    long: bool = False,
    minutes: float = MINUTES,
    game: Game | None = None,
    iterations: int | None = None,
    dtype: npt.DTypeLike = np.float32,
) -> list[Figure]:
    """Measure files, memory and time of `DiskCfr` on [2-1] hold'em, or with `long` on [2-4] and [3-1].

    Parameters
    ----------
    long : bool
        Whether the game is [2-4] hold'em, for 100 iterations, and [3-1] is solved for some minutes too.
    minutes : float
        How many, with `long`.
    game : Game, optional
        Another one.
    iterations : int, optional
        Another number of them.
    dtype : data type
        Of the numbers in walks.
    """
    name, usual = LARGE if long else SMALL
    rules = game or load_game(name)
    iterations, blind = iterations or usual, big_blind_of(rules) or 1.0
    vectors = VectorGame(rules)
    disk = DiskCfr(Subgames(vectors, dtype))
    disk.step(iterations)
    peak, ratio = _peak(), 4 * disk.subgames.numbers / disk.store.size
    larger = larger_game(LARGER, minutes) if long else []  # before anything is in memory
    exact = VectorCfr(vectors, averaging=False)  # in single precision noise grows where all regrets are near 0
    exact.step(iterations)
    found = disk.current().exploitability(), vectors.exploitability(exact.regret)
    on_disk, in_memory = (1000 * chips / blind for chips in found)
    memory = VectorCfr(vectors, "cfr+", dtype, averaging=False)
    memory.regret[...], memory.iterations = exact.regret, exact.iterations
    seconds = interleaved({"disk": partial(disk.step, 1), "memory": partial(memory.step, 1)}, ROUNDS)
    return [
        Figure("compression_ratio", f"4-byte numbers to files, {rules.name}", ratio, "to 1"),
        Figure(
            "overhead", "an iteration, on disk to in memory, one thread walks", seconds["disk"] / seconds["memory"], ""
        ),
        Figure("peak_gb", "memory of the process at its peak", peak, "GB"),
        Figure("iteration_seconds", "an iteration on disk", seconds["disk"], "s"),
        Figure("memory_seconds", "an iteration in memory", seconds["memory"], "s"),
        Figure("exploitability", f"on disk after {iterations} iterations", on_disk, "mbb/g"),
        Figure("rounding_cost", "… more than in memory, in double precision", on_disk - in_memory, "mbb/g"),
        *larger,
    ]


def larger_game(name: str, minutes: float) -> list[Figure]:
    """How far a run on disk comes in some minutes on all cores, in a folder for temporary files, and what it takes."""
    with TemporaryDirectory() as folder:
        budget, place = Budget(seconds=60 * minutes), Path(folder) / "run"
        run = new_run(name, "cfr+disk", budget=budget, threads=os.cpu_count() or 1, folder=place)
        step, blind = run.finish(), run.problem.big_blind or 1.0
        assert isinstance(run.problem, DiskProblem) and isinstance(run.solver, DiskCfr)
        ratio, peak = 4 * run.problem.subgames.numbers / run.solver.store.size, _peak()
    found = 1000 * step.exploitability / blind
    return [
        Figure("larger_exploitability", f"{name}, on disk after {minutes:g} minutes", found, "mbb/g"),
        Figure("larger_iterations", "… iterations", step.iterations, ""),
        Figure("larger_cpu_seconds", "… CPU time, measuring and compiling included", step.cpu_seconds, "s"),
        Figure("larger_compression_ratio", "… 4-byte numbers to files", ratio, "to 1"),
        Figure("larger_peak_gb", "… memory of the process at its peak", peak, "GB"),
    ]


def _peak() -> float:
    """Gigabytes that the process has had in memory at most."""
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024 / 1e9
