"""The main loop of all runs: iterate, measure, log, and write checkpoints.

`run` steps a solver in chunks of a fraction of a second and measures its strategies at iterations 1, 2, 3, 4, 6, 8, 11,
16, …, each √2 times the one before. Chunks and measurements do not change the solver: its results depend only on
its seed and its iterations, never on the clock.

>>> from kilt.evaluate.evaluator import evaluator_for
>>> from kilt.runs.budget import Budget
>>> from kilt.solve.forms import load_problem
>>> from kilt.solve.registry import make_solver
>>> problem = load_problem("kuhn", "cfr+")
>>> for step in run(make_solver(problem, "cfr+"), evaluator_for(problem), Budget(target=0.01)):
...     print(step.iterations, round(step.exploitability, 3))
1 0.458
2 0.264
3 0.141
4 0.1
6 0.05
8 0.028
11 0.029
16 0.009

With a `RunFolder` (see `folder`), the loop logs each measurement and writes checkpoints of the solver. A run that was
stopped or killed resumes from its last checkpoint, with bit-identical results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from math import inf
from typing import Any

from kilt.compiling import clock
from kilt.engines import WorkerLost
from kilt.evaluate.evaluator import Evaluator
from kilt.machine import cpu_seconds
from kilt.runs.budget import Budget, Step
from kilt.runs.folder import RunFolder
from kilt.solve.solver import InParts, Solver, on_disk, scheduled

CHUNK = 0.2  # seconds between two checks of the budget and of Ctrl-C, and updates of the progress bar
MEASURING = 0.1  # the share of the time that measurements may take, after the first FREE seconds of them
FREE = 1.0
LOSSES = 5  # losses of solver parts in a row, without any progress, after which a run gives up


def run(
    solver: Solver,
    evaluator: Evaluator[Any],
    budget: Budget,
    *,
    folder: RunFolder | None = None,
    stop: Callable[[], bool] = lambda: False,
    tick: Callable[[int, float], None] = lambda iterations, seconds: None,
    warn: Callable[[str], None] = lambda what: None,
    schedule: Callable[[int], int] = scheduled,
    clock: Callable[[], float] = clock,
) -> Iterator[Step]:
    """Run a solver until its budget is spent or `stop` returns True, and yield each measurement.

    If `folder` has a checkpoint, the run resumes from it.

    `evaluator` measures the strategies. `schedule` maps a number of iterations to the next iteration to measure;
    another measurement follows at the end. `clock` returns the seconds that the budget counts, from any moment on.
    `tick` is called several times a second with the iterations and seconds so far. If a part of the solver is lost, the
    solver recovers it, or the run goes back to its last checkpoint; `warn` is called in both cases.
    """
    evaluator.require_measurable(budget.target)
    with folder.working() if folder else nullcontext():
        seconds, cpu = folder.restore(solver, budget, warn) if folder else (0.0, 0.0)
        began, cpu_began = clock() - seconds, cpu_seconds() - cpu
        measured, cost, pace = 0, inf, inf  # measurements, seconds for each, seconds per iteration
        now, lost, losses = solver.iterations, None, 0
        due = schedule(now)
        while True:
            try:
                if lost and folder and isinstance(solver, InParts):
                    solver.reset_after_loss()
                    folder.restore(solver, budget)
                    warn(f"{lost}; back to the checkpoint of iteration {solver.iterations:,}, from {now:,}")
                    due, lost = schedule(solver.iterations), None
                if (kept := on_disk(solver)) and kept.interrupted:  # an incomplete iteration cannot be measured
                    solver.step(1)
                    due = schedule(solver.iterations)
                now, seconds = solver.iterations, clock() - began
                over = stop() or budget.spent(now, seconds)
                if folder:
                    folder.save(solver, seconds, cpu_seconds() - cpu_began, at_once=over)
                # With a target every measurement of the schedule counts: without them the run would stop elsewhere.
                affordable = measured < 2 or (measured + 1) * cost <= max(FREE, MEASURING * seconds)
                if over or (now >= due and (budget.target is not None or affordable)):
                    before = clock()
                    figures = evaluator.measure(solver)
                    after = clock()
                    measured, cost = measured + 1, min(cost, after - before)  # the first may touch new memory
                    step = Step(now, after - began, *figures, cpu_seconds=cpu_seconds() - cpu_began)
                    if folder:
                        folder.log(step)
                    yield step
                    if over or (budget.target is not None and step.exploitability <= budget.target):
                        break
                due = schedule(now + 1)
                chunk = max(1, min(min(due, budget.iterations or sys.maxsize) - now, int(CHUNK / pace)))
                before = clock()
                solver.step(chunk)
                pace = max(clock() - before, 1e-6) / (solver.iterations - now)
                losses = 0
                tick(solver.iterations, clock() - began)
            except WorkerLost as error:  # another part may be lost during the recovery
                lost, losses = error, losses + 1
                if not folder or not isinstance(solver, InParts) or losses > LOSSES:
                    raise
        if folder:
            folder.finish(solver, evaluator.problem, step)
