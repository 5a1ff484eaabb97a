"""Convergence of solvers: exploitability over iterations and seconds of solving; and the budgets of solvers.

All solvers run on one thread, with vectors of hands. Measuring does not count as solving, so every point of the
schedule can be measured. An algorithm without randomness is run once, because its result does not depend on the seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kilt.evaluate.evaluator import UNIT, evaluator_for
from kilt.evaluate.flops import ProgressMonitor
from kilt.runs.budget import Step
from kilt.runs.loop import CHUNK
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Cfr
from kilt.solve.forms import load_problem
from kilt.solve.problem import CPU, VECTOR, Problem
from kilt.solve.registry import make_solver
from kilt.solve.solver import Solver, scheduled
from kilt.solve.tables.memory import TreeTables
from kilt.viz.convergence import plot_convergence
from kilt_lab.cells import ITERATIONS, Cell, CellBudget, CurvePoint, Measured, RowSpec, Setting, clock_of
from kilt_lab.claims import Row
from kilt_lab.experiment import Experiment, Found, Lab, Stopped

RUNS = 5  # with different seeds, as in the paper
POINTS = {"at first": 1 / 16, "midway": 1 / 4, "in the end": 1.0}  # shares of a budget
BRIEF = 60.0  # seconds of solving; in shorter runs, frequent measuring would take most of the time


@dataclass(frozen=True)
class Convergence(Experiment):
    """Solvers that run one after another on a game until their budget is spent; the picture shows their mean curves."""

    def check(self, setting: Setting) -> None:
        """Load the game in the form of the first solver."""
        if setting.game != self.defaults.game:
            load_problem(setting.game, self.cases(setting)[0], form=VECTOR)

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Run a solver."""
        problem = lab.shared(case, lambda: load_problem(lab.game, case, form=VECTOR), per="experiment")
        curve, drawing = converge(problem, case, lab.budget, lab, seed), draws(problem, case)
        last, (unit, _) = curve[-1], unit_of(problem)
        return Cell({case: last.value}, not drawing, {"iterations": last.iterations}, curve, unit, seconds=last.seconds)

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return further figures and the mean curve."""
        return super().more(spec, cells, measured) | {"curve": mean_curve(cells).figures()}

    def draw(self, found: Found, path: Path) -> None:
        """Draw the mean curves."""
        curves = {row.name: mean_curve(found.measured.of(self.row_named(row.name))) for row in found.rows}
        steps = {name: curve.steps() for name, curve in curves.items()}
        margins = {name: curve.margins for name, curve in curves.items()}
        title = f"{self.source}: {found.measured.setting.game}"
        plot_convergence(steps, title, path, found.rows[0].unit, margins)


def unit_of(problem: Problem) -> tuple[str, float]:
    """Return the unit in which a game is reported, and the number of units per chip per game."""
    return (UNIT, 1.0) if problem.big_blind is None else ("mbb/g", 1000 / problem.big_blind)


class MeanCurve(NamedTuple):
    """The mean of several curves, point by point."""

    points: list[CurvePoint]
    margins: list[float]  # half-width of the 95% interval of exploitability; inf for a single run

    def steps(self) -> list[Step]:
        """Return the points in the form of `plot_convergence`."""
        return [
            Step(point.iterations, point.seconds, point.value, nan if point.current is None else point.current, nan)
            for point in self.points
        ]

    def figures(self) -> list[dict[str, Any]]:
        """Return the curve as JSON data, point by point."""
        reach = [{"margin": margin} if margin < inf else {} for margin in self.margins]
        names = {"value": "exploitability", "current": "current_exploitability"}
        return [
            {names.get(name, name): value for name, value in point._asdict().items()} | more
            for point, more in zip(self.points, reach, strict=True)
        ]


def mean_curve(cells: Sequence[Cell]) -> MeanCurve:
    """Return the mean of runs at the iterations at which all were measured, then the mean of their ends."""
    curves = [cell.curve for cell in cells]
    points = [list(there) for there in zip(*(curve[:-1] for curve in curves), strict=False)]
    points = [there for there in points if len({point.iterations for point in there}) == 1]
    means, margins = list[CurvePoint](), list[float]()
    for there in [*points, [curve[-1] for curve in curves]]:
        here = Row.of_runs("", [point.value for point in there], "")
        iterations, seconds = np.mean([(point.iterations, point.seconds) for point in there], axis=0).tolist()
        currents = [point.current for point in there if point.current is not None]
        means.append(CurvePoint(round(iterations), seconds, here.ours, float(np.mean(currents)) if currents else None))
        margins.append(here.margin or 0.0)
    return MeanCurve(means, margins)


def seldom(iterations: int) -> int:
    """Return the first of 1, 8, 64, … that is not below `iterations`: where short runs are measured.

    >>> [seldom(iterations) for iterations in (0, 1, 2, 8, 9)]
    [1, 1, 8, 8, 64]
    """
    due = 1
    while due < iterations:
        due *= 8
    return due


def is_random(tables: TreeTables) -> bool:
    """Return whether CFR samples boards or hands, so that the random seed changes the results."""
    game, scheme = tables.game, tables.scheme
    tree = game.game.tree if isinstance(game, BucketedGame) else game.tree
    return scheme.boards and (scheme.mine or scheme.theirs or len(tree.weight) > len(tree.rows))


def draws(problem: Problem, algorithm: str) -> bool:
    """Return whether an algorithm samples in a game with vectors of hands, so that its result depends on its seed.

    >>> bluff, leduc = (load_problem(game, form=VECTOR) for game in ("bluff-1-1", "leduc"))
    >>> draws(bluff, "pcs"), draws(leduc, "pcs"), draws(leduc, "cfr+")
    (False, True, False)
    """
    solver = make_solver(problem, algorithm)
    return isinstance(solver, Cfr) and isinstance(solver.tables, TreeTables) and is_random(solver.tables)


def converge(
    problem: Problem, algorithm: str, budget: CellBudget, watcher: ProgressMonitor, seed: int = 0
) -> list[CurvePoint]:
    """Return points of convergence in the unit of `unit_of`. Raises `Stopped` after Ctrl-C.

    Seconds, also those of the budget, are CPU time of solving. Short runs are measured only after 1, 8, 64, …
    iterations and at the end, and only by the exploitability of their average strategy.
    """
    brief = budget.seconds is not None and budget.seconds < BRIEF
    make_solver(problem, algorithm).step(1)  # compiles kernels, which does not count as solving
    solver, evaluator, points = make_solver(problem, algorithm, seed), evaluator_for(problem), list[CurvePoint]()
    _, scale = unit_of(problem)
    for seconds, _ in timed(solver, budget, watcher, algorithm, seldom if brief else scheduled):
        chips = [evaluator.exploitability(solver.average())] if brief else evaluator.measure(solver)[:2]
        points.append(CurvePoint(solver.iterations, seconds, *(scale * each for each in chips)))
    return points


def never(iterations: int) -> int:
    """Return the next point of a schedule without points."""
    return sys.maxsize


def timed(
    solver: Solver,
    budget: CellBudget,
    watcher: ProgressMonitor,
    what: str,
    schedule: Callable[[int], int] = never,
    device: str = CPU,
) -> Iterator[tuple[float, bool]]:
    """Run a solver for at least one iteration, until no further iteration fits into its budget.

    Yields the seconds of solving, and whether this is the end, at the points of a schedule and at the end. They are CPU
    time of all threads, or wall time on a GPU. Work between iterations, other processes and pauses do not count. Raises
    `Stopped` after Ctrl-C.
    """
    clock = clock_of(device)
    most = budget.whole if budget.clock == ITERATIONS else sys.maxsize
    limit = inf if budget.seconds is None else budget.seconds
    spent, pace, over = 0.0, CHUNK, solver.iterations >= most
    while not over:
        if watcher.stopped():
            raise Stopped
        before = solver.iterations
        due, left = schedule(before + 1), min(CHUNK, limit - spent)
        began = clock()
        solver.step(max(1, min(due - before, most - before, int(left / pace))))
        took = clock() - began
        pace, spent = max(took / (solver.iterations - before), 1e-9), spent + took
        share = spent / limit if limit < inf else solver.iterations / most
        watcher.show(what, min(share, 1.0), max(0.0, spent * (1 / share - 1)) if share else None)
        over = solver.iterations >= most or spent + pace > limit
        if over or solver.iterations >= due:
            yield spent, over


def solve_for(solver: Solver, budget: CellBudget, watcher: ProgressMonitor, what: str, share: float = 1.0) -> None:
    """Run a solver until it has spent a share of a budget.

    The first iteration does not count, because it may compile kernels.
    """
    for _ in solve_to(solver, {"": share}, budget, watcher, what):
        pass


def solve_to(
    solver: Solver,
    points: Mapping[str, float],
    budget: CellBudget,
    watcher: ProgressMonitor,
    what: str,
    device: str = CPU,
) -> Iterator[str]:
    """Run a solver, and yield the name of each point when the solver has spent that share of a budget.

    The first iteration does not count, because it may compile kernels.
    """
    solver.step(1)
    spent = 0.0
    for point, share in points.items():
        whole = share * budget.amount
        part = CellBudget(ITERATIONS, max(1, round(whole))) if budget.clock == ITERATIONS else None
        if part or spent < whole:
            steps = timed(solver, part or budget._replace(amount=whole - spent), watcher, what, device=device)
            spent += sum(seconds for seconds, _ in steps)
        yield point
