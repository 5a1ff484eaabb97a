"""Figures that show how solvers converge on a game: exploitability against iterations and seconds of solving.

All run on one thread for the same time, with vectors of hands. Measuring does not count as
solving, so that every point of the run loop's schedule can be measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, thread_time
from typing import NamedTuple

import numpy as np

from kilt.evaluate.flops import Watcher
from kilt.evaluate.judge import UNIT, judge_of
from kilt.reproduce.claims import Claim, Row
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request
from kilt.runs.budget import Budget, Step, time_left
from kilt.runs.loop import CHUNK, run
from kilt.solve.forms import load_problem
from kilt.solve.problem import VECTOR, Problem
from kilt.solve.registry import make_solver
from kilt.solve.solver import Solver, scheduled
from kilt.viz.convergence import plot_convergence
from kilt.viz.picture import require_drawable

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
        found = list[list[Step]]()
        for seed in range(runs):
            if seed == 0 or not watcher.stopped():
                watcher.say(
                    f"{algorithm} on {game}, run {seed + 1} of {runs}: {budget} of solving, and time to measure"
                )
                steps = converge(problem, algorithm, budget, watcher, seed)
                found.append([_scaled(step, scale) for step in steps])
        curves[algorithm] = mean_curve(found)
        curve = [step._asdict() for step in curves[algorithm].steps]
        ends = [steps[-1] for steps in found]
        more = {"iterations": round(np.mean([last.iterations for last in ends])), "curve": curve}
        seconds = sum(last.seconds for last in ends)
        rows.append(Row.of_runs(algorithm, [last.exploitability for last in ends], unit, seconds, more))
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


def converge(problem: Problem, algorithm: str, budget: Budget, watcher: Watcher, seed: int = 0) -> list[Step]:
    """Where a solver stands at each point of the schedule. Seconds are those of solving alone, in the budget too.

    Brief runs are measured after 1, 8, 64, … iterations alone, and in the end.
    """
    schedule = seldom if budget.seconds is not None and budget.seconds < BRIEF else scheduled
    make_solver(problem, algorithm).step(1)  # so that the first use of a kernel does not count as solving
    solver, judge, steps = make_solver(problem, algorithm, seed), judge_of(problem), list[Step]()
    ticked, measuring = 0.0, 0.0  # seconds at the end of the last chunk of iterations; those that went into measuring

    def tick(iterations: int, seconds: float) -> None:
        nonlocal ticked
        ticked = seconds
        left, solving = time_left(budget, steps, iterations, ticked - measuring), ticked - measuring
        watcher.show(algorithm, 0.0 if left is None else solving / (solving + left), left)

    def stop() -> bool:
        return watcher.stopped() or budget.spent(solver.iterations, ticked - measuring)

    # With a target the loop measures at every point of its schedule.
    target = max(budget.target or 0.0, 2 * judge.precision)
    for step in run(
        solver, judge, replace(budget, seconds=None, target=target), stop=stop, tick=tick, schedule=schedule
    ):
        steps.append(step._replace(seconds=ticked - measuring))
        measuring += step.seconds - ticked
    return steps


def solve_for(solver: Solver, seconds: float, watcher: Watcher, what: str) -> None:
    """Run a solver for some seconds of one core, whatever else the machine does; its first iteration does not count."""
    solver.step(1)  # kernels may be compiled
    spent, pace = 0.0, min(CHUNK, seconds)
    while spent + pace <= seconds and not watcher.stopped():
        before, began = solver.iterations, thread_time()
        solver.step(max(1, int(min(CHUNK, seconds - spent) / pace)))
        took = thread_time() - began
        pace, spent = max(took / (solver.iterations - before), 1e-9), spent + took
        watcher.show(what, min(1.0, spent / seconds), max(0.0, seconds - spent))


def _scaled(step: Step, scale: float) -> Step:
    """A step with its chips per game multiplied by `scale`, as another unit asks for."""
    return step._replace(
        exploitability=scale * step.exploitability,
        current_exploitability=scale * step.current_exploitability,
        value=scale * step.value,
    )
