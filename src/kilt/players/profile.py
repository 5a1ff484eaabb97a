"""References to strategies for evaluation: those of a run, or that of an agent.

A run has two strategies if its agent post-processes: the average strategy of its solver, and the strategy that its
agent plays. `StrategyRef.all_of_run` returns both, and their attribute `strategy` tells them apart.

>>> from kilt.engines import LocalEngine
>>> subject = StrategyRef("leduc", agent="always-call")
>>> evaluator, strategy, _ = subject.load(shared=True)
>>> (first, second), value = subject.response_values(evaluator.tree_passes(strategy), LocalEngine(), workers=2)
>>> round((first + second) / 2, 6), round(value, 6) == 0
(1.466667, True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.arrays import Array
from kilt.cost import Cost
from kilt.engines import Crew, Engine, Job
from kilt.errors import RunError
from kilt.evaluate.evaluator import Evaluator, evaluator_for
from kilt.evaluate.flops import FlopResponses, FlopWalks, draw_flops, flop_walks, flop_weights
from kilt.evaluate.head_to_head import blueprint_strategy
from kilt.evaluate.responses import PARTS, Walks, response_values
from kilt.games.playable import load_holdem
from kilt.play.blueprint import BlueprintAgent
from kilt.players.agents import (
    blueprint_agent,
    blueprint_folder,
    chooses_rule,
    describe_blueprint,
    is_whole_game,
    rule_of_whole_game,
)
from kilt.players.known_tables import agent_profile
from kilt.runs.folder import RunFolder
from kilt.runs.run import Run, open_run
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.forms import stored_problem
from kilt.solve.problem import CPU, FlatProblem, Problem, VectorProblem
from kilt.solve.tables.disk_strategy import DiskStrategy
from kilt.strategy.blueprint import STRATEGY
from kilt.strategy.naming import solved_name, strategy_name
from kilt.strategy.postprocess import Rule
from kilt.strategy.table import process_slots
from kilt.strategy.vector import process_table

KEPT = "best-responses"  # folder in a run for best responses that are computed flop by flop


@dataclass(frozen=True)
class StrategyRef:
    """A reference to a strategy of a run or an agent, which is loaded when it is evaluated.

    Attributes
    ----------
    game : str
        Name of the game.
    run : Path or None
        The name of a run, for its solved strategy; ``RUN@RULE`` or an exported agent, for the strategy as played.
    agent : str
        Name of an agent, if there is no run: see `kilt.players.known_tables`.
    strategy : str
        Description of the run's strategy: see `kilt.strategy.naming`.
    played : bool
        Whether it is the strategy after the agent's post-processing.
    held : tuple of Problem and ndarray, optional
        The strategy itself and its game, if neither a run nor an agent has it by name.
    """

    game: str
    run: Path | None = None
    agent: str = ""
    strategy: str = ""
    played: bool = False
    held: tuple[Problem, Array] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_run(cls, run: Path) -> StrategyRef:
        """Return a reference to a run's strategy, given the run's name.

        Raises RunError if the run has no strategy yet. The name of a run stands for its solved strategy. ``RUN@RULE``
        and the folder of an exported agent stand for the strategy as played.
        """
        place, rest = blueprint_folder(str(run))
        if RunFolder.has_run(run) or not artifact.exists(place / STRATEGY):
            said = open_run(run)
            return cls(said.game, run, strategy=solved_name({"algorithm": said.algorithm}))
        if is_whole_game(place):
            stored = place / STRATEGY
            figures = artifact.read(stored, artifact.kind_of(stored)).figures
            rule = rule_of_whole_game(place, rest)
            name = strategy_name(rule, figures)
            return cls(stored_problem(stored).name, run, strategy=name, played=not rule.idle)
        agent = blueprint_agent(str(run))
        return cls(agent.game.name, run, strategy=describe_blueprint(agent), played=not agent.rule.idle)

    @classmethod
    def all_of_run(cls, run: Path, warn: Callable[[str], None] = lambda text: None) -> tuple[StrategyRef, ...]:
        """Return references to all strategies of a run that should be evaluated.

        The first is the one that `of_run` returns. There are two if the solved strategy and the strategy as played
        differ, and if the name does not choose one of them by ``@RULE``. If memory cannot hold the second, it is
        omitted, and `warn` is called.
        """
        first = cls.of_run(run)
        place, _ = blueprint_folder(str(run))
        if chooses_rule(str(run)) or is_whole_game(place):
            return (first,)
        agent = blueprint_agent(str(run))
        if agent.rule.idle:
            return (first,)
        if not first.played and (lack := _lacks_memory(agent)):
            warn(f"{describe_blueprint(agent)} is not evaluated: {lack}")
            return (first,)
        return first, cls.of_run(Path(f"{place}@{'none' if first.played else agent.rule.name}"))

    def load(
        self, threads: int = 1, *, shared: bool = False, device: str = CPU
    ) -> tuple[Evaluator[Any], Array, dict[str, Any]]:
        """Load the strategy with its game's evaluator and its saved measurements.

        The evaluator computes exploitability. If workers share the game (`shared`), the game is stored with vectors of
        hands, as it is for several threads.
        """
        if self.held is not None:
            problem, strategy = self.held
            return evaluator_for(problem, patience=inf), strategy, {}
        if self.run is None:
            problem, strategy = agent_profile(self.game, self.agent, max(threads, PARTS) if shared else threads)
            return evaluator_for(problem), strategy, {}
        if RunFolder.has_run(self.run):
            problem, strategy, figures = open_run(self.run).load(threads, device)
            return evaluator_for(problem, patience=inf), strategy, figures
        place, rest = blueprint_folder(str(self.run))
        if is_whole_game(place):
            problem = stored_problem(place / STRATEGY, threads)
            strategy, figures = problem.load(place / STRATEGY)
            return evaluator_for(problem), _played(problem, strategy, rule_of_whole_game(place, rest)), figures
        agent = blueprint_agent(str(self.run))
        blueprint = agent.blueprint
        if lack := _lacks_memory(agent):
            raise RunError(f"{self.run}: {lack}")
        problem = AbstractProblem(AbstractGame(blueprint.game, blueprint.cards, blueprint.actions), (), threads=threads)
        if agent.rule.idle:
            return evaluator_for(problem, patience=inf), blueprint.shares, blueprint.figures
        played = blueprint_strategy(agent)
        assert played  # every rule that has a name is built in
        return evaluator_for(problem, patience=inf), played.shares, blueprint.figures

    def flop_responses(
        self, problem: AbstractProblem, strategy: Array, flops: int | None = None, seed: int = 0, device: str = CPU
    ) -> FlopResponses:
        """Return a computation of best responses to a run's strategy, flop by flop.

        Results of finished flops are read from the run's folder.

        Parameters
        ----------
        problem, strategy
            As returned by `load`.
        flops : int, optional
            Number of sampled flops, for an estimate. Default: all flops.
        seed : int
            Random seed of the flops.
        device : str
            "cpu" or "gpu": where best responses are computed. Either can continue the work of the other.

        Returns
        -------
        FlopResponses
            Computes best responses on the remaining flops.
        """
        assert self.run
        walks = flop_walks(problem, strategy, device)
        every = len(flop_weights(walks.game))
        if flops is not None and not 1 <= flops <= every:
            raise RunError(f"{flops} flops cannot be sampled: use 1 to {every:,}, or leave out `flops` to walk all")
        name, sample = artifact.fingerprint(strategy), "" if flops is None else f"-{flops}-flops-{seed}"
        draws = None if flops is None else draw_flops(walks.game, flops, seed)
        path = blueprint_folder(str(self.run))[0] / KEPT / f"{name}{sample}"
        return FlopResponses.open(walks, name, problem.abstract.fingerprint, path, draws)

    def response_values(self, walks: Walks, engine: Engine, workers: int) -> tuple[tuple[float, float], float]:
        """Return the winnings of best responses in both seats, and the strategy's own value for player 0.

        Workers compute them: see `evaluate.responses`.
        """
        return response_values(walks, _walks, (self._anywhere,), engine, workers)

    def flop_crew(self, problem: AbstractProblem, engine: Engine, workers: int) -> Crew:
        """Start workers that compute best responses to the strategy, flop by flop.

        Each needs the memory of one thread.
        """
        return Crew(engine, Job(_flop_walks, (self._anywhere,), problem.walk.by_flop.memory), workers)

    @property
    def _anywhere(self) -> StrategyRef:
        """A copy of the reference with an absolute path, for workers with another working folder."""
        return replace(self, run=self.run and self.run.resolve())


def _lacks_memory(agent: BlueprintAgent) -> str:
    """Return why memory cannot hold the table of an agent's strategy after post-processing; empty if it can."""
    table = Cost(len(agent.blueprint.shares) * np.dtype(np.float32).itemsize)
    lack = None if agent.rule.idle else table.lack("a table")
    remedy = "use a machine with more memory, or find a lower bound with a local best response"
    return f"post-processing takes {lack}: {remedy}" if lack else ""


def _played(problem: Problem, strategy: Any, rule: Rule) -> Any:
    """Return a strategy after post-processing by a rule. Its game was solved without an abstraction."""
    if rule.idle:
        return strategy
    if isinstance(strategy, DiskStrategy):
        return strategy.post_processed(rule)
    table = np.array(strategy)
    if isinstance(problem, VectorProblem):
        tree = problem.game.tree
        process_table(problem.game, rule, table, tree.table_start, np.diff(tree.board_start))
    else:
        assert isinstance(problem, FlatProblem)
        process_slots(problem.tree, load_holdem(problem.name), rule, table)
    return table


def _walks(subject: StrategyRef) -> Walks:
    evaluator, strategy, _ = subject.load(shared=True)
    return evaluator.tree_passes(strategy)


def _flop_walks(subject: StrategyRef) -> FlopWalks:
    evaluator, strategy, _ = subject.load()
    assert isinstance(evaluator.problem, AbstractProblem)
    return flop_walks(evaluator.problem, strategy)


class AsPlayed(NamedTuple):
    """The strategy that a run's agent plays after post-processing: its name and exploitability."""

    strategy: str  # name of the strategy
    exploitability: float  # chips per game


def measure_as_played(run: Run) -> AsPlayed | None:
    """Compute the exploitability of the strategy that a run's agent plays after post-processing.

    Returns None if the agent plays the solved strategy, if the run has no folder, or if its evaluator measures win
    rates because best responses take too long. `StrategyRef.all_of_run` finds both strategies of any run.
    """
    if run.folder is None or not isinstance(run.problem, AbstractProblem) or not run.evaluator.exact:
        return None
    agent = blueprint_agent(str(run.folder.path))
    played = None if agent.rule.idle or _lacks_memory(agent) else blueprint_strategy(agent)
    if played is None:
        return None
    return AsPlayed(describe_blueprint(agent), run.evaluator.exploitability(played.shares))
