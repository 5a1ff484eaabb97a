"""Agents for reproductions: built, solved and kept, so that the same command goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kilt import artifact
from kilt.arrays import Array
from kilt.config import Config
from kilt.evaluate.head_to_head import FixedOpponents
from kilt.reproduce.reproduction import Watcher
from kilt.solve.abstract_problem import AbstractProblem, prepare
from kilt.solve.folder import RunFolder, RunIdentity, size_of
from kilt.solve.problem import make_solver
from kilt.solve.run import Budget, run
from kilt.strategy.blueprint import STRATEGY


class Solved(NamedTuple):
    """An agent that is ready."""

    problem: AbstractProblem
    strategy: Array  # [slot]
    folder: Path
    seconds: float  # of solving
    iterations: int


def solved(config: Config, folder: Path, watcher: Watcher) -> Solved | None:
    """The agent of a configuration, in a folder of its own; None where the user wishes to stop."""
    name, seconds = folder.name, 60 * config.solver.minutes

    def built(what: str, share: float) -> None:
        watcher.show(f"{name}, {what}", share, None)

    problem = prepare(config, folder, tick=built, judge=FixedOpponents)
    kept = RunFolder.open(folder) if RunFolder.begun(folder) else None
    identity = RunIdentity(name, config.solver.algorithm, config.solver.seed, problem.form, problem.fingerprint)
    if kept:
        kept.identity.require(identity, folder)
    if not (kept and kept.ended and artifact.exists(folder / STRATEGY)):
        solver = make_solver(problem, config.solver.algorithm, config.solver.seed)
        budget = Budget(seconds=seconds)
        kept = kept or RunFolder.create(folder, identity, budget, size_of(solver))
        watcher.say(f"solving {name}", seconds)

        def tick(iterations: int, spent: float) -> None:
            watcher.show(f"{name}, {iterations:,} iterations", min(1.0, spent / seconds), max(0.0, seconds - spent))

        for _ in run(solver, problem, budget, folder=kept, stop=watcher.stopped, tick=tick):
            pass
    strategy, figures = problem.load(folder / STRATEGY)
    if watcher.stopped():
        return None
    return Solved(problem, strategy, folder, figures["seconds"], figures["iterations"])
