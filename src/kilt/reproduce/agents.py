"""Agents for reproductions: runs like any other, each in its folder: the same command goes on where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kilt.arrays import Array
from kilt.config import Config
from kilt.evaluate.flops import Watcher
from kilt.runs.plan import resolve
from kilt.runs.run import configured_run
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.distributed.solver import Distributed
from kilt.solve.external import External
from kilt.strategy.blueprint import STRATEGY


class SolvedAgent(NamedTuple):
    """An agent that is ready."""

    problem: AbstractProblem
    strategy: Array  # [slot]
    folder: Path
    seconds: float  # of solving
    iterations: int


def solved_agent(config: Config, folder: Path, watcher: Watcher) -> SolvedAgent | None:
    """The agent of a configuration, in a folder of its own; None where the user wishes to stop."""
    name, plan = folder.name, resolve(config, folder)

    def building(what: str, share: float) -> None:
        watcher.show(f"{name}, {what}", share, None)

    def solving(iterations: int, spent: float) -> None:
        seconds = run.budget.seconds or spent
        watcher.show(f"{name}, {iterations:,} iterations", min(1.0, spent / seconds), max(0.0, seconds - spent))

    run = configured_run(plan, folder, budget=plan.budget, going_on=True, tick=building)
    assert isinstance(run.problem, AbstractProblem)
    if not run.ended:
        watcher.say(f"solving {name}", run.budget.seconds)
        for _ in run.steps(stop=watcher.stopped, tick=solving):
            pass
    if watcher.stopped():
        return None
    strategy, figures = run.problem.load(folder / STRATEGY)
    return SolvedAgent(run.problem, strategy, folder, figures["seconds"], figures["iterations"])


def visit(solver: External | Distributed, nodes: int) -> None:
    """Let a solver go on until it has visited so many nodes, trunk and leaves included."""
    solver.step(1)
    while (seen := solver.visits + (solver.head.visits if isinstance(solver, Distributed) else 0)) < nodes:
        solver.step(max(1, int((nodes - seen) * solver.iterations / seen)))
