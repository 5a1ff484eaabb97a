"""A strategy that is to be judged, by where it comes from: the name of an agent, or a run.

>>> from kilt.engines import LocalEngine
>>> subject = Subject("leduc", agent="always-call")
>>> judge, strategy, _ = subject.load(shared=True)
>>> (first, second), value = subject.response_values(judge.walks(strategy), LocalEngine(), workers=2)
>>> round((first + second) / 2, 6), round(value, 6) == 0
(1.466667, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.arrays import Array
from kilt.engines import Crew, Engine, Job
from kilt.errors import RunError
from kilt.evaluate.agents import fixed_agent
from kilt.evaluate.flops import FlopResponses, FlopWalks, draw_flops, flop_walks, flop_weights
from kilt.evaluate.head_to_head import blueprint_strategy
from kilt.evaluate.judge import Judge, judge_of
from kilt.evaluate.players import BLUEPRINT, blueprint_agent, blueprint_folder
from kilt.evaluate.responses import PARTS, response_values
from kilt.runs.folder import RunFolder
from kilt.runs.run import open_run
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.disk_strategy import DiskStrategy
from kilt.solve.forms import stored_form, stored_problem
from kilt.solve.problem import ABSTRACT, CPU, Problem, VectorProblem
from kilt.strategy.blueprint import STRATEGY
from kilt.strategy.postprocess import rule_named
from kilt.strategy.vector import process_table
from kilt.tree.vector import Walks

KEPT = "best-responses"  # in the folder of a run: those that are walked flop by flop


@dataclass(frozen=True)
class Subject:
    """A strategy that is to be judged: that of a run, or of an agent for a game. It can be sent to other processes.

    The strategy of a run is judged as it was solved; ``RUN@RULE``, and what `kilt export` made, as it is played.
    """

    game: str
    run: Path | None = None
    agent: str = ""

    @classmethod
    def of_run(cls, run: Path) -> Subject:
        """The strategy of a run that has come to its end, or of an agent that plays one."""
        if RunFolder.begun(run) or not artifact.exists(blueprint_folder(str(run))[0] / STRATEGY):
            return cls(open_run(run).game, run)
        if _is_whole_game(place := blueprint_folder(str(run))[0]):
            return cls(stored_problem(place / STRATEGY).name, run)
        return cls(blueprint_agent(str(run)).game.name, run)

    def load(
        self, threads: int = 1, *, shared: bool = False, device: str = CPU
    ) -> tuple[Judge[Any], Array, dict[str, Any]]:
        """The judge of its game, the strategy, and the figures beside it.

        A game that is `shared` among workers comes as vectors of hands, as it does for several threads.
        """
        if self.run is None:
            problem, strategy = fixed_agent(self.game, self.agent, max(threads, PARTS) if shared else threads)
            return judge_of(problem), strategy, {}
        if RunFolder.begun(self.run):
            problem, strategy, figures = open_run(self.run).load(threads, device)
            return judge_of(problem, patience=inf), strategy, figures
        place, rest = blueprint_folder(str(self.run))
        if _is_whole_game(place):
            problem = stored_problem(place / STRATEGY, threads)
            strategy, figures = problem.load(place / STRATEGY)
            return judge_of(problem), _played(problem, strategy, self.run, rest), figures
        agent = blueprint_agent(str(self.run))
        played = blueprint_strategy(agent)
        assert played  # rules by name have no classes of their own
        assert isinstance(played.abstract, AbstractGame)
        problem = AbstractProblem(played.abstract, (), threads=threads)
        return judge_of(problem, patience=inf), played.shares, agent.blueprint.figures

    def flop_responses(
        self, problem: AbstractProblem, strategy: Array, flops: int | None = None, seed: int = 0, device: str = CPU
    ) -> FlopResponses:
        """Best responses to the strategy of a run flop by flop, as far as they are known: they are kept in its folder.

        Parameters
        ----------
        problem, strategy
            As `load` gives them.
        flops : int, optional
            How many flops are drawn, for an estimate. Left out: all are walked.
        seed : int
            What the flops are drawn from.
        device : str
            "cpu" or "gpu": where they are walked. What one has begun, the other can go on with.
        """
        assert self.run
        walks = flop_walks(problem, strategy, device)
        every = len(flop_weights(walks.game))
        if flops is not None and not 1 <= flops <= every:
            raise RunError(f"{flops} flops are asked for: use 1 to {every:,}, or leave out --flops to walk all")
        name, sample = artifact.fingerprint(strategy), "" if flops is None else f"-{flops}-flops-{seed}"
        draws = None if flops is None else draw_flops(walks.game, flops, seed)
        path = blueprint_folder(str(self.run))[0] / KEPT / f"{name}{sample}"
        return FlopResponses.begun(walks, name, problem.abstract.fingerprint, path, draws)

    def response_values(self, walks: Walks, engine: Engine, workers: int) -> tuple[tuple[float, float], float]:
        """What a best response wins in each seat, and the value to player 0, by workers: see `evaluate.responses`."""
        return response_values(walks, _walks, (self._anywhere,), engine, workers)

    def flop_crew(self, problem: AbstractProblem, engine: Engine, workers: int) -> Crew:
        """Workers of an engine who walk flops for `FlopResponses.crew`; each needs the memory of one thread."""
        return Crew(engine, Job(_flop_walks, (self._anywhere,), problem.cost.memory_by_flop), workers)

    @property
    def _anywhere(self) -> Subject:
        """What workers load the strategy by: a path that holds in any working folder."""
        return replace(self, run=self.run and self.run.resolve())


def _is_whole_game(exported: Path) -> bool:
    """Whether what was exported is the strategy of a game as it is."""
    return artifact.exists(exported / STRATEGY) and stored_form(exported / STRATEGY) != ABSTRACT


def _played(problem: Problem, strategy: Any, run: Path, rest: Sequence[str]) -> Any:
    """The strategy of a game as it is, after the post-processing that the name of a run ends with."""
    if not rest or rest == [BLUEPRINT]:
        return strategy
    rule = rule_named(rest[0])
    if len(rest) == 1 and isinstance(strategy, DiskStrategy):
        return strategy.processed(rule)
    if len(rest) > 1 or not isinstance(problem, VectorProblem):
        raise RunError(
            f"{run} cannot be judged: leave out what follows the run, or solve with -a cfr+current or cfr+disk"
        )
    tree, table = problem.game.tree, np.array(strategy)
    process_table(problem.game, rule, table, tree.table_start, np.diff(tree.board_start))
    return table


def _walks(subject: Subject) -> Walks:
    judge, strategy, _ = subject.load(shared=True)
    return judge.walks(strategy)


def _flop_walks(subject: Subject) -> FlopWalks:
    judge, strategy, _ = subject.load()
    assert isinstance(judge.problem, AbstractProblem)
    return flop_walks(judge.problem, strategy)
