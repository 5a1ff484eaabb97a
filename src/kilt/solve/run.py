"""The loop that runs every solver: budget, evaluation, log, checkpoints, resume.

`run` steps a solver in chunks of a fraction of a second and measures its strategies at iterations 1, 2, 3, 4, 6, 8, 11,
16, …, each √2 times the one before. Chunks and measurements leave the solver as it is, so that what it finds depends on
its seed and its iterations alone, never on the clock.

>>> from kilt.solve.problem import load_problem, make_solver
>>> problem = load_problem("kuhn", "cfr+")
>>> for step in run(make_solver(problem, "cfr+"), problem, Budget(target=0.01)):
...     print(step.iterations, round(step.exploitability, 3))
1 0.458
2 0.264
3 0.141
4 0.1
6 0.05
8 0.028
11 0.029
16 0.009

With a `RunFolder` (see `folder`), what happens is logged there and the state of the solver kept; a run that was stopped
or killed goes on from its last checkpoint, bit for bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kilt.compiling import clock
from kilt.engines import WorkerLost
from kilt.errors import RunError
from kilt.solve.problem import UNIT, Problem
from kilt.solve.solver import InParts, Solver, scheduled

if TYPE_CHECKING:
    from kilt.solve.folder import RunFolder

CHUNK = 0.2  # seconds between two looks at the budget, the progress bar and Ctrl-C
MEASURING = 0.1  # the share of the time that measurements may take, after the first FREE seconds of them
FREE = 1.0
LOSSES = 5  # of parts of a solver, one after another without any progress, until a run gives up


class Step(NamedTuple):
    """Where a run stands."""

    iterations: int
    seconds: float  # of work, checkpoints and measurements included, compilation not
    exploitability: float  # of the average strategy, mean over both seats, in chips per game
    current_exploitability: float  # of the strategy of the last iteration
    value: float  # what player 0 wins when both follow the average strategy, in chips per game
    others: dict[str, float] = {}  # noqa: RUF012, win rates of the average strategy in mbb per hand, by opponent


@dataclass(frozen=True)
class Budget:
    """When to stop: at whichever comes first. All are totals, of a resumed run too."""

    iterations: int | None = None
    seconds: float | None = None
    target: float | None = None  # exploitability of the average strategy, in chips per game

    _UNITS: ClassVar = {"iterations": "iterations", "seconds": "seconds", "target": f"{UNIT} of exploitability"}

    def __post_init__(self) -> None:
        for what, value in asdict(self).items():
            if value is not None and not 0 < value < inf:
                raise RunError(f"the budget is {value:g} {self._UNITS[what]}: give a number above 0")

    def __str__(self) -> str:
        parts = [
            f"{self.iterations:,} iterations" if self.iterations else "",
            f"{self.seconds / 60:g} min" if self.seconds else "",
            f"exploitability {self.target:g}" if self.target else "",
        ]
        return " or ".join(filter(None, parts)) or "no limit"

    def spent(self, iterations: int, seconds: float) -> bool:
        """Whether iterations or time are used up."""
        return iterations >= (self.iterations or inf) or seconds >= (self.seconds or inf)


def run(
    solver: Solver,
    problem: Problem,
    budget: Budget,
    *,
    folder: RunFolder | None = None,
    stop: Callable[[], bool] = lambda: False,
    tick: Callable[[int, float], None] = lambda iterations, seconds: None,
    warn: Callable[[str], None] = lambda what: None,
) -> Iterator[Step]:
    """Run a new solver until the budget is spent or `stop` says so, from the last checkpoint of `folder` if it has one.

    The last `Step` is that of the end, the others are those of the schedule. `tick` hears of the iterations and seconds
    so far several times a second. When a part of the solver is lost, the run goes back to its last checkpoint, which
    `warn` hears of.
    """
    problem.require_measurable(budget.target)
    with folder.working() if folder else nullcontext():
        began = clock() - (folder.restore(solver, budget) if folder else 0.0)
        measured, cost, pace = 0, inf, inf  # measurements, seconds for each, seconds per iteration
        due, losses = scheduled(solver.iterations), 0
        while True:
            try:
                now, seconds = solver.iterations, clock() - began
                over = stop() or budget.spent(now, seconds)
                if folder:
                    folder.save(solver, seconds, at_once=over)
                # With a target every measurement of the schedule counts: without them the run would stop elsewhere.
                affordable = measured < 2 or (measured + 1) * cost <= max(FREE, MEASURING * seconds)
                if over or (now >= due and (budget.target is not None or affordable)):
                    before = clock()
                    figures = problem.measure(solver)
                    after = clock()
                    measured, cost = (
                        measured + 1,
                        min(cost, after - before),
                    )  # the first may touch new memory
                    step = Step(now, after - began, *figures)
                    if folder:
                        folder.log(step)
                    yield step
                    if over or (budget.target is not None and step.exploitability <= budget.target):
                        break
                due = scheduled(now + 1)
                chunk = max(1, min(min(due, budget.iterations or sys.maxsize) - now, int(CHUNK / pace)))
                before = clock()
                solver.step(chunk)
                pace = max(clock() - before, 1e-6) / (solver.iterations - now)
                losses = 0
                tick(solver.iterations, clock() - began)
            except WorkerLost as lost:
                losses += 1
                if not folder or not isinstance(solver, InParts) or losses > LOSSES:
                    raise
                solver.mend()
                folder.restore(solver, budget)
                warn(f"{lost}; back to the checkpoint of iteration {solver.iterations:,}, from {now:,}")
                due = scheduled(solver.iterations)
        if folder:
            folder.finish(solver, problem, step)


def time_left(budget: Budget, steps: Sequence[Step], iterations: int, seconds: float) -> float | None:
    """How many seconds a run will go on, if it goes on like this; None where nobody knows.

    Exploitability is taken to fall by a power of the iterations, as it has lately.

    >>> steps = [Step(100, 1.0, 0.4, 0.4, 0.0), Step(141, 1.4, 0.3, 0.3, 0.0), Step(200, 2.0, 0.2, 0.2, 0.0)]
    >>> [round(time_left(budget, steps, 200, 2.0), 6) for budget in (Budget(iterations=800), Budget(target=0.05))]
    [6.0, 6.0]
    """
    guesses = []
    pace = seconds / max(iterations, 1)
    if budget.seconds:
        guesses.append(budget.seconds - seconds)
    if budget.iterations and iterations:
        guesses.append((budget.iterations - iterations) * pace)
    if budget.target and len(steps) > 2 and steps[-1].exploitability < steps[-3].exploitability:
        first, last = steps[-3], steps[-1]
        power = log(first.exploitability / last.exploitability) / log(last.iterations / first.iterations)
        wanted = log(last.iterations) + log(last.exploitability / budget.target) / power
        if wanted < 60:
            guesses.append((exp(wanted) - iterations) * pace)
    return max(min(guesses), 0.0) if guesses else None
