"""``kilt bench distributed`` compares distributed workers with threads that share one table.

Workers on Ray, one per core, alternate with external sampling by as many threads that share a table, on the same
abstract game. Both count visited nodes. With ``--long``, both then learn from equal numbers of nodes, with five seeds
each, and play a match. The simulator also predicts the speed of 1, 2, 4 and 8 workers.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from kilt import jit
from kilt.abstraction.plan import PublicPlan
from kilt.config import EngineConfig
from kilt.evaluate.head_to_head import AbstractStrategy, expected_winnings
from kilt.evaluate.stats import estimate_mean
from kilt.games.playable import load_holdem
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.distributed.forecast import check
from kilt.solve.distributed.solver import DistributedMCCFR, TimeSpent, start
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt_lab.benchmarks.measure import Figure, rates
from kilt_lab.pieces.agents import game_in_buckets

GAME = "holdem.nolimit.2p.50bb"
CARDS, CLASSES, CODES = "IR-PHS-PHS 169-30-30-30", 10, 300
ACTIONS = "50%, 1x, a; 1x, a; a"
ROUNDS, SECONDS = 7, 4.0
SEEDS, VISITS, DEALS = 5, 400_000_000, 100_000


def run(*, long: bool = False) -> list[Figure]:
    """Measure workers and threads."""
    cores = jit.cores()
    with TemporaryDirectory() as name:
        place = Path(name) / "cards"
        classes = PublicPlan(2, CLASSES, base="IR-PHS-PHS 169-100-100-100", codes=CODES)
        abstract = game_in_buckets(load_holdem(GAME), ACTIONS, CARDS, place, public=classes)
        problem = AbstractProblem(abstract, (place,), SamplingOptions(linear=True), engine=EngineConfig("ray", cores))
        figures = _side_by_side(problem, cores, ROUNDS * (3 if long else 1))
        return figures + (_foretold(problem) + _head_to_head(problem, cores) if long else [])


def _side_by_side(problem: AbstractProblem, cores: int, rounds: int) -> list[Figure]:
    """Measure nodes per second of workers and threads, in turn."""
    blades, threads = start(problem, 0), ExternalMCCFR(problem.abstract, 0, problem.options, cores)
    try:
        _visit(blades)
        blades.times = TimeSpent()  # discards the time of compiling and of touching memory
        found = rates({"blades": partial(_visit, blades), "threads": partial(_visit, threads)}, rounds)
        what, times = blades.describe(), blades.times
    finally:
        blades.close()
    return [
        Figure("visits_per_second", f"nodes, {what}", found["blades"], "1/s"),
        Figure("threads_visits_per_second", f"nodes, {cores} threads that share a table", found["threads"], "1/s"),
        Figure("ratio_to_threads", "workers, relative to threads", found["blades"] / found["threads"], ""),
        Figure(
            "communication_share", "of the time no blade was at work: messages, and the head", times.communication, ""
        ),
        Figure("idle_share", "share of the time in which a worker waited for the slowest", times.idle, ""),
        Figure("batch", "deals per message", blades.game.batch, ""),
    ]


def _visit(solver: DistributedMCCFR | ExternalMCCFR) -> int:
    """Run a solver for `SECONDS` seconds, and return the number of nodes that it visited."""
    visits, began = solver.visits, perf_counter()
    while perf_counter() - began < SECONDS:
        solver.step(8192)
    return solver.visits - visits


def _foretold(problem: AbstractProblem) -> list[Figure]:
    """Return the simulator's prediction for 1, 2, 4 and 8 workers on this machine, and the measured speed."""
    figures = []
    for found in check(problem):
        (blades,), said = found.foretold.blades, found.foretold.visits_per_second
        figures += [
            Figure(f"foretold_visits_{blades}", f"nodes, predicted for {blades} workers in this process", said, "1/s"),
            Figure(f"seen_visits_{blades}", "… measured", found.visits_per_second, "1/s"),
        ]
    return figures


def _head_to_head(problem: AbstractProblem, cores: int) -> list[Figure]:
    """Return winnings of workers against threads after equal numbers of nodes, over several seeds."""
    won = []
    for seed in range(SEEDS):
        blades, threads = (
            start(problem, seed),
            ExternalMCCFR(problem.abstract, seed, problem.options, cores, problem.dtype),
        )
        try:
            for solver in (blades, threads):
                while solver.visits < VISITS:
                    solver.step(8192)
            ours, theirs = (AbstractStrategy(problem.abstract, solver.average()) for solver in (blades, threads))
        finally:
            blades.close()
        chips = expected_winnings(ours, theirs, DEALS, threads=cores)
        won.append(float(chips.mean()) * 1000 / problem.big_blind)
    mean = estimate_mean(won)
    return [
        Figure(
            "won_from_threads", f"… after {VISITS / 1e6:,.0f} million nodes each, {SEEDS} seeds", mean.mean, "mbb/h"
        ),
        Figure("won_from_threads_ci95", "… and the half-width of its 95% interval", mean.margin, "mbb/h"),
    ]
