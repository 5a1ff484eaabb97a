"""A strategy that is to be judged, by where it comes from: the name of an agent, or a run.

>>> from kilt.engines import LocalEngine
>>> subject = Subject("leduc", agent="always-call")
>>> judge, strategy, _ = subject.load(shared=True)
>>> (first, second), value = subject.response_values(judge.walks(strategy), LocalEngine(), workers=2)
>>> round((first + second) / 2, 6), round(value, 6) == 0
(1.466667, True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from kilt.arrays import Array
from kilt.engines import Engine
from kilt.evaluate.agents import fixed_agent
from kilt.evaluate.judge import Judge, judge_of
from kilt.evaluate.responses import PARTS, response_values
from kilt.runs.run import open_run
from kilt.solve.problem import CPU
from kilt.tree.vector import Walks


@dataclass(frozen=True)
class Subject:
    """A strategy that is to be judged: that of a run, or of an agent for a game. It can be sent to other processes."""

    game: str
    run: Path | None = None
    agent: str = ""

    @classmethod
    def of_run(cls, run: Path) -> Subject:
        """The strategy of a run that has come to its end."""
        return cls(open_run(run).game, run)

    def load(
        self, threads: int = 1, *, shared: bool = False, device: str = CPU
    ) -> tuple[Judge[Any], Array, dict[str, Any]]:
        """The judge of its game, the strategy, and the figures beside it.

        A game that is `shared` among workers comes as vectors of hands, as it does for several threads.
        """
        if self.run is None:
            problem, strategy = fixed_agent(self.game, self.agent, max(threads, PARTS) if shared else threads)
            return judge_of(problem), strategy, {}
        problem, strategy, figures = open_run(self.run).load(threads, device)
        return judge_of(problem, patience=inf), strategy, figures

    def response_values(self, walks: Walks, engine: Engine, workers: int) -> tuple[tuple[float, float], float]:
        """What a best response wins in each seat, and the value to player 0, by workers: see `evaluate.responses`."""
        there = replace(self, run=self.run and self.run.resolve())  # workers may be in another folder
        return response_values(walks, _walks, (there,), engine, workers)


def _walks(subject: Subject) -> Walks:
    judge, strategy, _ = subject.load(shared=True)
    return judge.walks(strategy)
