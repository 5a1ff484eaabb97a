"""Limits, costs, measurements and solutions of spots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from typing import NamedTuple

import numpy as np

from kilt.cost import Cost
from kilt.errors import RunError
from kilt.evaluate.evaluator import Figures, VectorEvaluator
from kilt.paces import pace
from kilt.runs.budget import Budget, Step
from kilt.runs.run import Run
from kilt.solve.cfr import Cfr
from kilt.solve.methods import walk_cost
from kilt.solve.problem import CPU, VectorProblem
from kilt.solve.solver import Solver
from kilt.solve.tables.memory import TreeTables
from kilt.solve.tables.two_bytes import TwoByteProblem, TwoByteTables
from kilt.spots.line import UNIT
from kilt.spots.solution import SpotSolution
from kilt.tree.strength_order import sortable, stored_share
from kilt.tree.vector import VectorGame

ALGORITHM = "dcfr+"
TABLES = np.float32  # type of regrets and averages
TARGET = 0.5  # default target in per cent of the pot
SMALL = 50_000_000  # bytes; less memory than this is not checked, since any machine has it
USUAL = pace("spots", "iterations")  # usual number of iterations to the default target
# seconds per infoset-action and iteration, and per board and iteration
SECONDS, COMPACT_SECONDS, BOARD_SECONDS = pace("spots", "entry"), pace("spots", "compact_entry"), pace("spots", "board")


def parse_target(target: float | str | None) -> float | None:
    """Parse a target exploitability, such as 0.5 or "0.5%", in per cent of the pot.

    >>> parse_target("0.5%"), parse_target(0.25)
    (0.5, 0.25)
    """
    if not isinstance(target, str):
        return target
    try:
        return float(target.strip().removesuffix("%"))
    except ValueError:
        raise RunError(f"the target is {target!r}: use per cent of the pot, such as 0.5%") from None


class SpotBudget(NamedTuple):
    """The limits of solving a spot: iterations, seconds or exploitability, whichever comes first.

    Without any limit, at the exploitability `TARGET`.
    """

    target: float | None = None  # exploitability in per cent of the pot
    iterations: int | None = None
    seconds: float | None = None

    def with_target_in_chips(self, pot: float) -> Budget:
        """Return the same limits with the target in chips."""
        if self.target is not None and not 0 < self.target < inf:
            raise RunError(f"the target is {self.target:g}% of the pot: use a number above 0")
        target = TARGET if all(limit is None for limit in self) else self.target
        return Budget(self.iterations, self.seconds, None if target is None else target / 100 * pot * UNIT)


def cost_of(game: VectorGame, *, compact: bool = False, kept: bool = False, device: str = CPU) -> Cost:
    """Estimate the memory, disk space and time for solving a spot from its public tree.

    Parameters
    ----------
    game : VectorGame
        The tree of the spot.
    compact : bool
        Whether tables have two bytes per entry after the first round.
    kept : bool
        Whether the solution is written to a folder, which requires that tables are converted if they are compact or on
        a GPU.
    device : str
        Where the spot is solved: "cpu" or "gpu". With a GPU, host memory is needed only for converted tables and for
        passes over the solution.

    Returns
    -------
    Cost
        Memory, disk space and time.
    """
    tree, (rows, hands) = game.tree, game.shape
    whole = rows * hands * np.dtype(TABLES).itemsize
    # Tables that are written to a folder have all hands; others have only distinct ones.
    share = stored_share(tree) if sortable(tree) else 1.0
    tables = round(2 * (1 if kept else share) * whole)
    if compact:
        parts = int(np.diff(tree.board_start)[1])
        tables = whole * 2 if kept else round(share * whole)
        tables += round(2 * game.threads * share * whole / parts)
    elif device != CPU:
        tables = whole * (4 if kept else 1)  # a checkpoint is written from copies of the tables
    cost = walk_cost(game, tables, TABLES, COMPACT_SECONDS if compact else SECONDS)
    iteration = (cost.iteration or 0) + BOARD_SECONDS * len(tree.weight) / game.threads
    remedy = "use fewer bets, `compact` tables, or start on a later round"
    return replace(cost, iteration=iteration, disk=3 * 2 * whole if kept else 0, what="the spot", remedy=remedy)


def cost_of_run(run: Run) -> Cost:
    """Estimate the memory, disk space and time of a run that solves a spot."""
    assert isinstance(run.problem, VectorProblem)
    problem, kept = run.problem, run.folder is not None
    cost = cost_of(problem.game, compact=isinstance(problem, TwoByteProblem), kept=kept, device=problem.device)
    if problem.device == CPU:
        return cost
    from kilt.tree.gpu.device import DeviceGame  # imports the GPU library

    assert isinstance(problem.walker, DeviceGame)
    return replace(cost, device=problem.walker.memory_needed())


def next_measurement(iteration: int) -> int:
    """Return the next iteration at which exploitability is measured.

    Intervals grow: at first, every eighth iteration is measured, from 160 on every sixteenth, and so on.

    >>> [next_measurement(iteration) for iteration in (0, 1, 17, 97, 161, 321)]
    [16, 16, 24, 104, 176, 352]
    """
    step = 8 << max((iteration // 80).bit_length() - 1, 0)
    return -(-max(iteration, 16) // step) * step


class SpotEvaluator(VectorEvaluator):
    """An evaluator that quickly measures only the exploitability of a spot's average strategy.

    More measurements would take longer than solving a small spot.
    """

    @property
    def precision(self) -> float:
        """The rounding error of exploitability.

        It grows with the stakes on a GPU, which sums in single precision.
        """
        scale = 1.0 if self.problem.device == CPU else float(self.problem.game.tree.nodes.stake.max())
        return super().precision * max(scale, 1.0)

    def measure(self, solver: Solver) -> Figures:
        """Return the exploitability of a solver's average strategy."""
        tables = solver.tables if isinstance(solver, Cfr) else None
        if isinstance(tables, TreeTables):
            return Figures(self.problem.game.exploitability(tables.stored_average()), nan, nan, {})
        return Figures(self.exploitability(solver.average()), nan, nan, {})


def solution_of(run: Run, steps: Sequence[Step]) -> SpotSolution:
    """Return the solution of a spot from its run.

    It shares the tables of the run, which must not continue afterwards.
    """
    assert isinstance(run.problem, VectorProblem)
    problem, tables = run.problem, run.solver.tables if isinstance(run.solver, Cfr) else None
    measured = tuple(map(in_chips, steps))
    if isinstance(tables, TwoByteTables):
        return SpotSolution(tables.game, tables.average(), measured)
    if isinstance(tables, TreeTables):
        return SpotSolution(problem.game, tables.stored_average(), measured)
    return SpotSolution(problem.game, problem.walker.on_host(run.table), measured)


def in_chips(step: Step) -> Step:
    """Convert a measured exploitability from the game's small chips to the spot's chips."""
    return step._replace(exploitability=step.exploitability / UNIT)
