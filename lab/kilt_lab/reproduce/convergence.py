"""Figures that show how solvers converge on a game: exploitability against iterations and seconds of solving.

All run on one thread for the same CPU time, with vectors of hands. Measuring does not count as solving, so that every
point of the run loop's schedule can be measured. What draws nothing is run once: another seed would change nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from math import inf, nan
from pathlib import Path
from time import monotonic, process_time
from typing import Any, NamedTuple

import numpy as np

from kilt.evaluate.flops import Watcher
from kilt.evaluate.judge import UNIT, judge_of
from kilt.runs.budget import Budget, Step, time_left
from kilt.runs.loop import CHUNK
from kilt.solve.cfr import Cfr
from kilt.solve.forms import load_problem
from kilt.solve.problem import VECTOR, Problem
from kilt.solve.registry import make_solver
from kilt.solve.solver import Solver, scheduled
from kilt.solve.tables.memory import TreeTables
from kilt.viz.convergence import plot_convergence
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.claims import Claim, Row
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

RUNS = 5  # with different seeds, as in the paper
BRIEF = 60.0  # seconds of solving; where there are fewer, most of the time would go into measuring
REDRAW = 20.0  # seconds after which the picture is drawn anew while others are still to come


def figure(
    name: str,
    *,
    what: str,
    hint: str,
    game: str,
    algorithms: tuple[str, ...],
    minutes: float,
    claims: tuple[Claim, ...],
    quick: Request,
) -> Reproduction:
    """A figure: `minutes` for each of `RUNS` runs of the algorithms on a game, unless something else is asked for."""

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        path = asked.out or Path(f"kilt-{name}.png")
        require_drawable(path)
        budget = Budget(seconds=60 * (minutes if asked.minutes is None else asked.minutes))
        contestants, chosen = asked.only or algorithms, asked.game or game
        title = f"{what.partition(':')[0]}: {chosen}"
        runs = RUNS if asked.runs is None else asked.runs
        return race(chosen, contestants, budget, title, path, watcher, runs)

    return Reproduction(
        what=what,
        hint=hint,
        time=f"{minutes:g} min for each of {RUNS} runs of {len(algorithms)} algorithms, and time to measure",
        rows=algorithms,
        run=reproduce,
        options=("only", "game", "minutes", "out", "runs"),
        claims=claims,
        quick=quick,
        keeps=f"kilt-{name}.png",
    )


def race(
    game: str,
    algorithms: Sequence[str],
    budget: Budget,
    title: str,
    path: Path,
    watcher: Watcher,
    runs: int = 1,
) -> ReproductionResult:
    """Run algorithms one after another until the budget is spent, and draw their mean curves into a picture."""
    rows: list[Row] = []
    curves: dict[str, MeanCurve] = {}
    drawn, unit = monotonic(), UNIT

    def draw() -> None:
        means = {name: curve.steps for name, curve in curves.items()}
        plot_convergence(means, title, path, unit, {name: curve.margins for name, curve in curves.items()})

    for algorithm in algorithms:
        if watcher.stopped():
            break
        problem = load_problem(game, algorithm, form=VECTOR)
        unit, scale = (UNIT, 1.0) if problem.big_blind is None else ("mbb/g", 1000 / problem.big_blind)
        found, drawing = list[list[Step]](), draws(problem, algorithm)
        seeds = runs if drawing else 1
        for seed in range(seeds):
            if seed == 0 or not watcher.stopped():
                watcher.say(
                    f"{algorithm} on {game}, run {seed + 1} of {seeds}: {budget} of solving, and time to measure"
                )
                steps = converge(problem, algorithm, budget, watcher, seed)
                found.append([_scaled(step, scale) for step in steps])
        mean = curves[algorithm] = mean_curve(found)
        ends = [steps[-1] for steps in found]
        more = {"iterations": round(np.mean([last.iterations for last in ends])), "curve": mean.figures()}
        row = Row.of_runs(algorithm, [last.exploitability for last in ends], unit, sum(e.seconds for e in ends), more)
        rows.append(row if drawing else row._replace(margin=None, runs=()))
        if monotonic() - drawn > REDRAW:
            draw()
            drawn = monotonic()
    if rows:
        draw()
    if watcher.stopped():
        watcher.say(f"stopped; the curves so far are in {path}")
    return ReproductionResult(title, rows, path)


class MeanCurve(NamedTuple):
    """The mean of some runs, point by point."""

    steps: list[Step]
    margins: list[float]  # of exploitability: how far its 95% interval reaches to each side; inf for a single run

    def figures(self) -> list[dict[str, Any]]:
        """All of it, point by point."""
        reach = [{"margin": margin} if margin < inf else {} for margin in self.margins]
        return [step._asdict() | more for step, more in zip(self.steps, reach, strict=True)]


def mean_curve(curves: Sequence[Sequence[Step]]) -> MeanCurve:
    """The mean of runs where all of them were measured after as many iterations, and then that of their ends."""
    points = [list(steps) for steps in zip(*(curve[:-1] for curve in curves), strict=False)]
    points = [steps for steps in points if len({step.iterations for step in steps}) == 1]
    means, margins = list[Step](), list[float]()
    for steps in [*points, [curve[-1] for curve in curves]]:
        here = Row.of_runs("", [step.exploitability for step in steps], "")
        iterations, seconds, current, value = np.mean(
            [(step.iterations, step.seconds, step.current_exploitability, step.value) for step in steps], axis=0
        ).tolist()
        means.append(Step(round(iterations), seconds, here.ours, current, value))
        margins.append(here.margin or 0.0)
    return MeanCurve(means, margins)


def seldom(iterations: int) -> int:
    """The first of 1, 8, 64, … from a number on: where brief runs are measured.

    >>> [seldom(iterations) for iterations in (0, 1, 2, 8, 9)]
    [1, 1, 8, 8, 64]
    """
    due = 1
    while due < iterations:
        due *= 8
    return due


def draws(problem: Problem, algorithm: str) -> bool:
    """Whether an algorithm draws anything in a game with vectors of hands, so that what it finds depends on its seed.

    >>> bluff, leduc = (load_problem(game, form=VECTOR) for game in ("bluff-1-1", "leduc"))
    >>> draws(bluff, "pcs"), draws(leduc, "pcs"), draws(leduc, "cfr+")
    (False, True, False)
    """
    solver = make_solver(problem, algorithm)
    return isinstance(solver, Cfr) and isinstance(solver.tables, TreeTables) and solver.tables.draws


def converge(problem: Problem, algorithm: str, budget: Budget, watcher: Watcher, seed: int = 0) -> list[Step]:
    """Where a solver stands at each point of the schedule. Seconds are CPU time of solving alone, in the budget too.

    Brief runs are measured after 1, 8, 64, … iterations alone, and in the end: by their average strategy's
    exploitability, and nothing else.
    """
    brief = budget.seconds is not None and budget.seconds < BRIEF
    make_solver(problem, algorithm).step(1)  # so that the first use of a kernel does not count as solving
    solver, judge, steps = make_solver(problem, algorithm, seed), judge_of(problem), list[Step]()
    for seconds in timed(solver, budget, watcher, algorithm, seldom if brief else scheduled):
        found = (judge.exploitability(solver.average()), nan, nan) if brief else judge.measure(solver)[:3]
        steps.append(Step(solver.iterations, seconds, *found))
    return steps


def never(iterations: int) -> int:
    """A schedule without points."""
    return sys.maxsize


def timed(
    solver: Solver, budget: Budget, watcher: Watcher, what: str, schedule: Callable[[int], int] = never
) -> Iterator[float]:
    """Run a solver until its budget is spent, or the watcher stops it, and no iteration longer; but one at least.

    Yields how many seconds of CPU time it has taken, in the end and at the points of a schedule. What is done
    meanwhile does not count, nor do other processes, or times in which this one is stopped.
    """
    spent, pace, over = 0.0, CHUNK, False
    while not over:
        before = solver.iterations
        due, left = schedule(before + 1), min(CHUNK, (budget.seconds or inf) - spent)
        began = process_time()
        solver.step(max(1, min(due - before, (budget.iterations or sys.maxsize) - before, int(left / pace))))
        took = process_time() - began
        pace, spent = max(took / (solver.iterations - before), 1e-9), spent + took
        wanted = time_left(budget, [], solver.iterations, spent)
        watcher.show(what, 0.0 if wanted is None else spent / (spent + wanted), wanted)
        over = watcher.stopped() or budget.spent(solver.iterations, 0.0) or spent + pace > (budget.seconds or inf)
        if over or solver.iterations >= due:
            yield spent


def solve_for(solver: Solver, seconds: float, watcher: Watcher, what: str) -> None:
    """Run a solver for some seconds of one core, whatever else the machine does; its first iteration does not count."""
    solver.step(1)  # kernels may be compiled
    for _ in timed(solver, Budget(seconds=seconds), watcher, what):
        pass


def _scaled(step: Step, scale: float) -> Step:
    """A step with its chips per game multiplied by `scale`, as another unit asks for."""
    return step._replace(
        exploitability=scale * step.exploitability,
        current_exploitability=scale * step.current_exploitability,
        value=scale * step.value,
    )
