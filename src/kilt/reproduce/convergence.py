"""Figures that show how solvers converge on a game: exploitability against iterations and seconds of solving.

All run on one thread with vectors of hands, for the same time. Measuring does not count as solving, so that every point
of the run loop's schedule can be measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from kilt.evaluate.flops import Watcher
from kilt.evaluate.judge import UNIT, judge_of
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request, Row
from kilt.runs.budget import Budget, Step, time_left
from kilt.runs.loop import run
from kilt.solve.forms import load_problem
from kilt.solve.problem import VECTOR, Problem
from kilt.solve.registry import make_solver
from kilt.viz.convergence import plot_convergence
from kilt.viz.picture import require_drawable

REDRAW = 20.0  # seconds after which the picture is drawn anew while others are still to come


def figure(name: str, *, what: str, hint: str, game: str, algorithms: tuple[str, ...], minutes: float) -> Reproduction:
    """A figure: `minutes` for each of the algorithms on a game, unless something else is asked for."""

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        path = asked.out or Path(f"kilt-{name}.png")
        require_drawable(path)
        budget = Budget(seconds=60 * (minutes if asked.minutes is None else asked.minutes))
        contestants, chosen = asked.only or algorithms, asked.game or game
        title = f"{what.partition(':')[0]}: {chosen}"
        return race(chosen, contestants, budget, title, path, watcher)

    return Reproduction(
        what=what,
        hint=hint,
        time=f"{minutes:g} min for each of {len(algorithms)} algorithms, and time to measure",
        rows=algorithms,
        run=reproduce,
        options=("only", "game", "minutes", "out"),
    )


def race(
    game: str, algorithms: Sequence[str], budget: Budget, title: str, path: Path, watcher: Watcher
) -> ReproductionResult:
    """Run algorithms one after another until the budget is spent, and draw their curves into a picture."""
    rows: list[Row] = []
    curves: dict[str, list[Step]] = {}
    drawn = monotonic()
    for algorithm in algorithms:
        if watcher.stopped():
            break
        problem = load_problem(game, algorithm, form=VECTOR)
        watcher.say(f"{algorithm} on {game}: {budget} of solving, and time to measure")
        unit, scale = (UNIT, 1.0) if problem.big_blind is None else ("mbb/g", 1000 / problem.big_blind)
        steps = converge(problem, algorithm, budget, watcher)
        curves[algorithm] = [_scaled(step, scale) for step in steps]
        last = curves[algorithm][-1]
        curve = [step._asdict() for step in curves[algorithm]]
        more = {"iterations": last.iterations, "curve": curve}
        rows.append(Row(algorithm, None, last.exploitability, unit, last.seconds, more))
        if monotonic() - drawn > REDRAW:
            plot_convergence(curves, title, path, unit)
            drawn = monotonic()
    if rows:
        plot_convergence(curves, title, path, rows[-1].unit)
    if watcher.stopped():
        watcher.say(f"stopped; the curves so far are in {path}")
    return ReproductionResult(title, rows, path)


def converge(problem: Problem, algorithm: str, budget: Budget, watcher: Watcher) -> list[Step]:
    """Where a solver stands at each point of the schedule. Seconds are those of solving alone, in the budget too."""
    make_solver(problem, algorithm).step(1)  # so that the first use of a kernel does not count as solving
    solver, judge, steps = make_solver(problem, algorithm), judge_of(problem), list[Step]()
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
    for step in run(solver, judge, replace(budget, seconds=None, target=target), stop=stop, tick=tick):
        steps.append(step._replace(seconds=ticked - measuring))
        measuring += step.seconds - ticked
    return steps


def _scaled(step: Step, scale: float) -> Step:
    """A step with its chips per game multiplied by `scale`, as another unit asks for."""
    return step._replace(
        exploitability=scale * step.exploitability,
        current_exploitability=scale * step.current_exploitability,
        value=scale * step.value,
    )
