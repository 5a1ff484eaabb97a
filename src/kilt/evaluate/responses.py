"""What best responses win from a strategy: its subtrees, board by board, can be walked by workers of an engine.

A worker reads the strategy for itself and takes a share of the boards after the first round, as a thread does. What
hands are worth at the chance nodes before them is all that travels; it is added up here.

>>> from kilt.engines import LocalEngine
>>> subject = Subject("leduc", agent="always-call")
>>> problem, strategy, _ = subject.load(shared=True)
>>> (first, second), value = response_values(subject, problem.walks(strategy), LocalEngine(), workers=2)
>>> round((first + second) / 2, 6), round(value, 6) == 0
(1.466667, True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from kilt import artifact
from kilt.arrays import Array
from kilt.config import read_config
from kilt.engines import Engine, Job
from kilt.errors import RunError
from kilt.evaluate.agents import fixed_agent
from kilt.solve import ABSTRACT
from kilt.solve.abstract_problem import CONFIG, prepare
from kilt.solve.folder import RunFolder
from kilt.solve.problem import Problem, load_problem, stored_form
from kilt.strategy.blueprint import card_folders
from kilt.tree.vector import Walks
from kilt.tree.vector_arrays import FOLLOW, RESPOND

PARTS = 2  # of a walk, at least


@dataclass(frozen=True)
class Subject:
    """A strategy that is to be judged, by where it comes from: a game and the name of an agent, or a run of it."""

    game: str
    run: Path | None = None
    agent: str = ""

    @classmethod
    def of_run(cls, run: Path) -> Subject:
        """The strategy of a run that has come to its end."""
        folder = RunFolder.open(run)
        if not artifact.exists(folder.path / "strategy"):
            raise RunError(
                f"{run} has not come to its end and has no strategy yet: kilt solve --resume {quote(str(run))}"
            )
        return cls(folder.identity.game, run)

    def load(self, threads: int = 1, *, shared: bool = False) -> tuple[Problem, Array, dict[str, Any]]:
        """The game in the form that fits, the strategy, and what was said about it.

        A game that is to be shared among workers comes as vectors of hands, as it does for several threads.
        """
        if self.run is None:
            return *fixed_agent(self.game, self.agent, max(threads, PARTS) if shared else threads), {}
        stored = self.run / "strategy"
        form = stored_form(stored)
        problem: Problem
        if form == ABSTRACT:
            config = read_config(self.run / CONFIG)
            folders = card_folders(self.run, len(config.cards))  # if they are there, nobody need build them
            cards = zip(config.cards, folders, strict=True)
            config = replace(config, cards=tuple(str(own) if own.is_dir() else said for said, own in cards))
            problem = prepare(config, self.run, threads)
        else:
            problem = load_problem(self.game, form=form, threads=threads)
        return problem, *problem.load(stored)


def response_values(subject: Subject, walks: Walks, engine: Engine, workers: int) -> tuple[tuple[float, float], float]:
    """What a best response wins in each seat and what player 0 wins without one, in chips per game.

    `walks` are those of the subject. The result is that of as many threads, to the last bit; one worker counts as two.
    """
    if workers < 1:
        raise RunError(f"the number of workers is {workers}: use 1 or more")
    parts = max(PARTS, workers)
    there = replace(subject, run=subject.run and subject.run.resolve())  # workers may be in another folder
    hired = engine.hire([Job(_worker, (there,))] * workers)
    try:
        asked = [(0, RESPOND), (1, RESPOND), (0, FOLLOW)]
        answers = [[hired[part % workers].ask("part", *one, part, parts) for part in range(parts)] for one in asked]
        first, second, value = (
            walks.conclude(*one, [answer.get() for answer in some]) for one, some in zip(asked, answers, strict=True)
        )
    finally:
        engine.dismiss(hired)
    return (first, second), value


def _worker(subject: Subject) -> Walks:
    problem, strategy, _ = subject.load(shared=True)
    return problem.walks(strategy)
