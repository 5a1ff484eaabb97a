"""Turn a name, a run or a strategy into a `Player` that can play or be evaluated.

>>> caller = player("always-call", "leduc")
>>> caller.agent.name, round(caller.profile().exploitability(), 6)
('always-call', 1.466667)
>>> rows = {f"{rank}s||{bets}": {"f" if "r" in bets else "c": 1.0} for rank in "QKA" for bets in ("", "c", "r", "cr")}
>>> passive = player(rows, "kuhn")
>>> passive.profile().exploitability(), passive.agent.game.name
(1.0, 'kuhn')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.arrays import Array
from kilt.errors import PlayError, RunError, file_errors
from kilt.evaluate.evaluator import Evaluator
from kilt.games import load_game
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent, with_current_names
from kilt.play.blueprint import BlueprintAgent
from kilt.play.tree_agent import TreeAgent
from kilt.players.agents import (
    PORTFOLIO,
    SEATS,
    blueprint_folder,
    describe_blueprint,
    describe_strategy,
    game_for,
    load_once,
    own_game,
)
from kilt.players.known_tables import AGENTS, HABITS, agent_profile
from kilt.players.profile import StrategyRef
from kilt.runs.folder import RunFolder
from kilt.runs.run import Run, StoredRun
from kilt.runs.solved import agent_for_strategy
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.forms import OPENSPIEL, load_problem
from kilt.solve.problem import CPU, FLAT, VECTOR, FlatProblem, Problem, VectorProblem
from kilt.strategy.blueprint import STRATEGY
from kilt.strategy.naming import solved_name
from kilt.strategy.openspiel import from_openspiel
from kilt.strategy.table import Strategy
from kilt.strategy.vector import VectorStrategy
from kilt.tree.openspiel import openspiel_twin

Rows: TypeAlias = Mapping[str, Mapping[str, float]]  # probabilities by information set and action
Who: TypeAlias = "str | Path | Agent | Run | StoredRun | Strategy | VectorStrategy | Rows | Player | object"


class PlayerNames(Protocol):
    """The interface of objects that map names to players."""

    def reference(self, name: str) -> str:
        """Return the name that `load_agent` understands for a player.

        Raises PlayError for an unknown name.
        """


class Profile(NamedTuple):
    """A player's strategy for both seats, with an evaluator for its exploitability.

    Attributes
    ----------
    evaluator : Evaluator
        Evaluates strategies of the game.
    table : ndarray
        Action probabilities, in the layout that the evaluator's problem uses.
    figures : dict
        Figures that the solver has saved with the strategy.
    strategy : str
        Description of a run's strategy; empty if there is only one.
    """

    evaluator: Evaluator[Any]
    table: Array
    figures: dict[str, Any]
    strategy: str

    def exploitability(self) -> float:
        """Return the strategy's exploitability in chips per game, averaged over both seats.

        Raises RunError if the game is too large.
        """
        if not self.evaluator.exact:
            raise RunError(
                f"{self.evaluator.problem.name} is too large to compute best responses in memory: "
                "play matches against it"
            )
        return float(self.evaluator.exploitability(self.table))


@dataclass(frozen=True)
class Player:
    """A player: an agent that plays, a strategy that is evaluated, or both.

    Attributes
    ----------
    name : str
        Name in tables and logs.
    game : Game, str or None
        The game that the player was made for, or the requested game; None if the player plays any.
    spec : str or None
        The name by which other processes load the player; None for an object, which is pickled.
    """

    name: str
    game: str | Game | None = None
    spec: str | None = None
    _agent: Callable[[], Agent] | None = None
    _held: Callable[[str | Game | None], tuple[Problem, Array]] | None = None
    _strategy: str = ""  # description of the held strategy

    def __repr__(self) -> str:
        game = self.game if isinstance(self.game, str | None) else self.game.name
        return f"Player({self.name!r}, game={game!r})"

    @property
    def agent(self) -> Agent:
        """The agent that plays matches.

        Raises PlayError if the game is not poker.
        """
        if self.spec is not None:
            return load_once(self.spec)
        if self._agent is None:
            raise PlayError(f"{self.name} has no agent: agents play games with cards and bets")
        return self._agent()

    def at(self, game: Holdem | None = None) -> tuple[Agent, Holdem]:
        """Return the player's agent, and the poker game that it plays.

        Raises PlayError if the agent cannot play the game.

        >>> agent, game = player("always-call", "leduc").at()
        >>> agent.name, game.name
        ('always-call', 'leduc')
        """
        wanted = game or (None if self.game is None else _rules(self.game))
        agent = self.agent
        return agent, game_for(agent, wanted)

    def strategies(
        self, game: str | Game | None = None, warn: Callable[[str], None] = lambda text: None
    ) -> tuple[StrategyRef, ...]:
        """Return references to all strategies of the player, with the one that its name stands for first.

        A run whose agent post-processes has two strategies: the average strategy, and the strategy as played. If
        memory cannot hold one of them, it is omitted, and `warn` is called.
        """
        game = self.game if game is None else game
        if self._held is not None:
            held = self._held(game)
            return (StrategyRef(held[0].name, strategy=self._strategy, held=held),)
        assert self.spec is not None
        if is_run_name(self.spec):
            return StrategyRef.all_of_run(Path(self.spec), warn)
        own = own_game(self.agent) if self.spec not in AGENTS else None
        wanted = own if game is None else game
        if wanted is None:
            raise PlayError(f"{self.spec} plays many games: choose one with `game`")
        if isinstance(wanted, str):
            return (StrategyRef(wanted, agent=self.spec, strategy=self.spec),)
        held = agent_profile(wanted, self.spec)
        return (StrategyRef(wanted.name, agent=self.spec, strategy=self.spec, held=held),)

    def profile(
        self, game: str | Game | None = None, *, threads: int = 1, device: str = CPU, as_played: bool = False
    ) -> Profile:
        """Return the player's strategy as a table, with an evaluator for its exploitability.

        Parameters
        ----------
        game : str or Game, optional
            The game, for players who play more than one.
        threads : int
            Number of threads, which share the boards.
        device : str
            "cpu" or "gpu": where the evaluator computes best responses.
        as_played : bool
            For a run: use the strategy after the run's post-processing, not the average strategy.

        Returns
        -------
        Profile
            The strategy as a table, and the evaluator.
        """
        refs = self.strategies(game)
        ref = max(refs, key=lambda one: one.played) if as_played else refs[0]
        return Profile(*ref.load(threads, device=device), ref.strategy)


@file_errors()
def player(who: Who, game: str | Game | None = None, *, names: PlayerNames | None = None) -> Player:
    """Return a `Player` for anything that can play or be evaluated, such as a name, a run, a strategy or an agent.

    Parameters
    ----------
    who : str, Path, Agent, Run, Strategy, VectorStrategy or mapping
        A name, as used by commands: a baseline such as "always-call", "uniform", "house", the folder of a run or of an
        exported agent, ``RUN@RULE``, ``FILE.py:CLASS``, ``seats:A,B``, ``portfolio:A,B`` or "solved:leduc". Or an
        object with a `name` and a method ``act(observation)``; a run; a strategy; probabilities by information set and
        action; or a tabular policy of open_spiel.
    game : str or Game, optional
        The game, for players who play more than one.
    names : PlayerNames, optional
        Namespace for names. That of the web page accepts neither paths nor code. Default: all names and paths.

    Returns
    -------
    Player
        Its `agent` plays in matches; `profile()` returns its strategy for evaluation.

    Raises
    ------
    PlayError
        If `who` is no player, or does not play `game`.

    Examples
    --------
    >>> player("uniform", "kuhn").profile().evaluator.problem.name
    'kuhn'
    """
    if isinstance(who, Player):
        return who if game is None else replace(who, game=game)
    if isinstance(who, StoredRun):
        who = who.path
    if isinstance(who, Run):
        if who.folder is None or not artifact.exists(who.folder.path / STRATEGY):
            return _solved(who.problem, who.table, solved_name(who.identity._asdict()), game or who.game)
        who = who.folder.path
    if isinstance(who, str | Path):
        return _named(names.reference(str(who)) if names else str(who), str(who), game)
    if isinstance(who, Strategy | VectorStrategy):
        return _of_strategy(who, game)
    if (policy := _openspiel_policy(who)) is not None:
        return _of_openspiel(policy, game)
    if isinstance(who, Mapping):
        return _of_rows(cast("Rows", who), game)
    if isinstance(getattr(who, "name", None), str) and callable(getattr(who, "act", None)):
        return _of_agent(with_current_names(cast("Agent", who)), game)
    raise PlayError(
        f"{type(who).__name__} is no player: use the name of an agent, a run, a strategy, or an object with a name "
        "and a method act(observation)"
    )


def _named(spec: str, shown: str, game: str | Game | None) -> Player:
    if spec in AGENTS or spec in HABITS or is_run_name(spec):
        return Player(shown, game, spec)
    if blueprint_folder(spec)[0].is_dir():
        raise PlayError(f"{spec} is neither a run nor an exported agent: there is no strategy in it")
    agent = load_once(spec)
    return Player(agent.name if shown == spec else shown, own_game(agent) or game, spec)


def is_run_name(spec: str) -> bool:
    """Return whether a name is that of a run or exported agent, with an optional post-processing rule."""
    if spec.startswith((PORTFOLIO, SEATS)):
        return False
    place, _ = blueprint_folder(spec)
    return place.exists() and (RunFolder.has_run(place) or artifact.exists(place / STRATEGY))


def _of_agent(agent: Agent, game: str | Game | None) -> Player:
    def held(wanted: str | Game | None) -> tuple[Problem, Array]:
        if isinstance(agent, BlueprintAgent) and agent.rule.idle:
            known = agent.blueprint
            return AbstractProblem(AbstractGame(known.game, known.cards, known.actions), ()), known.shares
        if isinstance(agent, TreeAgent):
            return VectorProblem(agent.tree.game), np.asarray(agent.table)
        rules = own_game(agent) or wanted
        if rules is None:
            raise PlayError(f"{agent.name} plays many games: choose one with `game`")
        return agent_profile(rules, agent)

    words = describe_blueprint(agent) if isinstance(agent, BlueprintAgent) else describe_strategy(agent)
    return Player(agent.name, own_game(agent) or game, None, lambda: agent, held, words)


def _of_strategy(strategy: Strategy | VectorStrategy, game: str | Game | None) -> Player:
    game = strategy.game if game is None else game

    def held(wanted: str | Game | None) -> tuple[Problem, Array]:
        wanted = strategy.game if wanted is None else wanted
        if isinstance(strategy, VectorStrategy):
            vectors = load_problem(wanted, form=VECTOR)
            assert isinstance(vectors, VectorProblem)
            return vectors, strategy.on(vectors.game)
        flat = _flat(wanted)
        return flat, strategy.on(flat.tree)

    return Player(
        "strategy", game, None, lambda: agent_for_strategy(*held(game), game), held, solved_name(strategy.figures)
    )


def _of_rows(rows: Rows, game: str | Game | None) -> Player:
    if game is None:
        raise PlayError("probabilities by information set do not determine the game: set `game`")
    return _of_strategy(Strategy.from_rows(_flat(game).tree, rows), game)


def _of_openspiel(policy: Mapping[str, Sequence[tuple[int, float]]], game: str | Game | None) -> Player:
    if game is None:
        raise PlayError("a policy of open_spiel does not determine the game: set `game`")
    tree = _flat(game).tree
    theirs = tree if isinstance(game, str) and game.startswith(OPENSPIEL) else openspiel_twin(tree)
    return _of_strategy(Strategy.of(tree, from_openspiel(theirs, policy)), game)


def _flat(game: str | Game) -> FlatProblem:
    problem = load_problem(game, form=FLAT)
    assert isinstance(problem, FlatProblem)
    return problem


def _openspiel_policy(who: object) -> Mapping[str, Sequence[tuple[int, float]]] | None:
    """Return the probabilities of a tabular policy of open_spiel: {information state: [(action, probability), …]}.

    None for anything else.
    """
    for method in ("policy_table", "to_dict"):  # of pyspiel.TabularPolicy, and of Python's TabularPolicy
        if callable(tell := getattr(who, method, None)) and not callable(getattr(who, "act", None)):
            who = tell()
            break
    first = next(iter(who.values()), None) if isinstance(who, Mapping) else None
    return cast("Any", who) if isinstance(first, Sequence) and not isinstance(first, str) else None


def _solved(problem: Problem, table: Array, words: str, game: str | Game | None = None) -> Player:
    """Return a player for a solved game whose strategy is only in memory."""
    if not isinstance(problem, FlatProblem | VectorProblem):
        raise PlayError(f"the run on {problem.name} has no saved strategy yet: use a folder, and finish the run")
    wanted = problem.name if game is None else game
    held = problem, table
    return Player("solution", wanted, None, lambda: agent_for_strategy(problem, table, wanted), lambda _: held, words)


def _rules(game: str | Game) -> Holdem:
    """Return a game as poker that agents can play. Raises PlayError for other games."""
    rules = load_game(game) if isinstance(game, str) else game
    if not isinstance(rules, Holdem):
        raise PlayError(f"{rules.name} is not poker: agents play games with cards and bets")
    return rules
