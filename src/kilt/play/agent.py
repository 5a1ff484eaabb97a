"""Agents, which choose actions in matches: their interface, and simple agents that ignore their cards.

An agent gets an `Observation` and returns a legal action in ACPC notation. It has no state: the observation contains
the whole hand, and all random choices are derived from its `key`. A hand can therefore be replayed, also on another
machine. A `RememberingAgent` is also told when a match begins, and the visible part of each finished hand.

>>> from kilt.games import load_game
>>> observation = Observation(load_game("holdem.nolimit.2p").start(), (50, 51), (), key=7)
>>> BASELINES["always-call"].act(observation), BASELINES["always-raise"].act(observation)
('c', 'r200')
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.draws import uniform_in_python
from kilt.errors import PlayError
from kilt.games.holdem import RAISE, Betting, Holdem
from kilt.strategy.fixed import AGENTS, action_chances

MOST_SIZES = 1000  # largest number of legal raises for which a policy lists each one


class Observation(NamedTuple):
    """What a player knows at their turn: the betting, the private cards and the board.

    It also holds a key from which the player derives random numbers.

    Attributes
    ----------
    position : Betting
        The betting so far; the player is its `actor`. Legal actions are its `passive_actions` and `raise_bounds`.
    hand : tuple of int
        The player's private cards: card = rank · suits + suit, as numbered and named by `position.rules.deck`.
    board : tuple of int
        The public cards of all rounds so far, in the order of dealing.
    key : int
        64 random bits, the same throughout a hand: see `draw`.
    """

    position: Betting
    hand: tuple[int, ...]
    board: tuple[int, ...]
    key: int

    def draw(self, number: int) -> float:
        """Return the hand's random number `number`, uniform in [0, 1).

        Use each `number` only once in a hand.
        """
        return uniform_in_python(int(self.key), number)


class Agent(Protocol):
    """The interface of agents: any object with a `name` and a method `act` that chooses actions.

    An agent that plays only one game has it as an attribute `game`.
    """

    @property
    def name(self) -> str:
        """The agent's name in tables and logs."""

    def act(self, observation: Observation) -> str:
        """Return the action that the agent takes.

        Parameters
        ----------
        observation : Observation
            The player's information, and the source of random numbers.

        Returns
        -------
        str
            A legal action in ACPC notation: ``f`` (if there is a bet to fold to), ``c`` (call or check), ``r`` in limit
            games, ``r300`` to raise *to* 300 chips over the whole hand in no-limit games.
        """


class PlayedHand(NamedTuple):
    """A finished hand as one player saw it, with the opponent's cards only after a showdown.

    Attributes
    ----------
    position : Betting
        The betting of the whole hand.
    seat : int
        Seat of the player.
    hand : tuple of int
        The player's private cards.
    board : tuple of int
        The public cards that were dealt.
    shown : tuple of int
        The opponent's private cards after a showdown; empty after a fold.
    won : float
        Chips that the player won; negative for a loss.
    """

    position: Betting
    seat: int
    hand: tuple[int, ...]
    board: tuple[int, ...]
    shown: tuple[int, ...]
    won: float


@runtime_checkable
class RememberingAgent(Protocol):
    """An agent that learns from earlier hands of the match.

    One process plays all hands of its match, in order.
    """

    @property
    def name(self) -> str:
        """The agent's name in tables and logs."""

    def begin(self, game: Holdem) -> RememberingAgent:
        """Return a copy of the agent for a new match, without memory of earlier hands.

        In a duplicate match, each deal is played at two tables; `begin` is called once for each table.
        """

    def act(self, observation: Observation) -> str:
        """Return the action that the agent takes: see `Agent.act`."""

    def observe_hand(self, hand: PlayedHand) -> str | None:
        """Let the agent learn from a finished hand of the match.

        It may return a note, which is written to the log of the match.
        """


@runtime_checkable
class PreparingAgent(Protocol):
    """An agent that compiles its code before a match, so that its first decisions are fast."""

    def prepare(self) -> None:
        """Compile the code that the agent needs for playing.

        It is called when a match begins; further calls do nothing.
        """


T = TypeVar("T")


def with_current_names(agent: T) -> T:
    """Return an agent written for kilt 0.1, with its method `saw` renamed to `observe_hand`."""
    kind: Any = type(agent)
    if callable(getattr(kind, "saw", None)) and not hasattr(kind, "observe_hand"):
        message = f"the method `saw` of {kind.__name__} is now `observe_hand`; the old name is removed in kilt 0.3"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        kind.observe_hand = kind.saw
    return agent


def agent_for_match(agent: Agent, game: Holdem) -> Agent:
    """Return an agent for a new match: a fresh copy if it remembers hands, else the agent itself."""
    with_current_names(agent)
    if isinstance(agent, PreparingAgent):
        agent.prepare()
    if not isinstance(agent, RememberingAgent):
        return agent
    player = agent.begin(game)
    if not isinstance(player, RememberingAgent):
        raise PlayError(
            f"`begin` of {agent.name} returns {player!r}, which is no agent that remembers: return the player of "
            "the match"
        )
    return player


class PublicPolicy(NamedTuple):
    """The probability of each action at a public state, for every private hand.

    Attributes
    ----------
    actions : tuple of str
        Legal actions in ACPC notation, without duplicates; missing actions are never taken.
    table : ndarray, shape (actions, columns)
        Probabilities; hands with the same strategy share a column.
    column : ndarray of int, shape (hands,)
        The column of each private hand, in the order of `Deck.holes`. Undefined for a hand that shares a card with the
        board.
    """

    actions: tuple[str, ...]
    table: FloatArray
    column: Array

    def probability(self, action: str) -> FloatArray:
        """Return the probability of an action for each private hand."""
        if action not in self.actions:
            return np.zeros(len(self.column))
        row: FloatArray = self.table[self.actions.index(action)]
        return row[self.column]

    def may_take(self, action: str) -> bool:
        """Return whether any private hand takes the action."""
        return action in self.actions and bool(self.table[self.actions.index(action)].any())

    @property
    def probabilities(self) -> FloatArray:
        """The probability of each action with each private hand, shape (actions, hands)."""
        return self.table.take(self.column, axis=1)


@runtime_checkable
class PolicyAgent(Protocol):
    """An agent with a known strategy, which returns action probabilities for all private hands at once.

    Some estimators need such agents.
    """

    @property
    def name(self) -> str:
        """The agent's name in tables and logs."""

    def act(self, observation: Observation) -> str:
        """Return the action that the agent takes: see `Agent.act`."""

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the probability of each action, for every private hand of the player to act.

        `act` chooses actions with these probabilities.

        Parameters
        ----------
        position : Betting
            The betting so far; the player is its `actor`.
        board : tuple of int
            The public cards of all rounds so far, in the order of dealing.

        Returns
        -------
        PublicPolicy
            Actions and their probabilities.

        Raises
        ------
        PlayError
            If the agent has no such table, for example because there are too many actions.
        """


def require_policy(agent: Agent) -> PolicyAgent:
    """Return the agent, or raise PlayError if its action probabilities are unknown.

    Raises PlayError if the agent has no method `policy`.
    """
    if isinstance(agent, RememberingAgent) and not isinstance(agent, PolicyAgent):
        raise PlayError(
            f"{agent.name} depends on earlier hands, so it has no strategy for a single hand: use one of the agents "
            "that it picks from"
        )
    if not isinstance(agent, PolicyAgent):
        raise PlayError(f"{agent.name} has no policy: add a method `policy` to its class, or use a run")
    return agent


def has_policy(agent: Agent, game: Holdem) -> bool:
    """Return whether an agent's action probabilities in a game are known.

    The answer is found at the beginning of a hand.
    """
    if not isinstance(agent, PolicyAgent):
        return False
    try:
        agent.policy(game.start(), ())
    except PlayError:
        return False
    return True


@dataclass(frozen=True)
class Fixed:
    """An agent that follows a fixed rule regardless of its cards, such as ``always-call``.

    In no-limit games it raises by the minimum.
    """

    name: str
    habits: str  # key of `strategy.fixed.AGENTS`, which has the probabilities

    def act(self, observation: Observation) -> str:
        """Choose an action at random, with the agent's fixed probabilities."""
        position = observation.position
        actions, bounds = position.passive_actions(), position.raise_bounds()
        kinds = (*actions, RAISE) if bounds else actions
        share = _share(self.habits, kinds)
        kind = (
            kinds[share.index(1)]
            if 1 in share
            else draw_action(kinds, share, observation.draw(2 * len(position.history)))
        )
        return f"{RAISE}{bounds[0]}" if kind == RAISE and bounds and position.rules.betting != "limit" else kind

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the agent's fixed action probabilities, which are equal for all hands."""
        actions, bounds = position.passive_actions(), position.raise_bounds()
        if bounds:
            actions = *actions, RAISE if position.rules.betting == "limit" else f"{RAISE}{bounds[0]}"
        return _alike(position, actions, action_chances(self.habits, actions))


def _alike(position: Betting, actions: tuple[str, ...], shares: FloatArray) -> PublicPolicy:
    """Return a policy with the same action probabilities for all hands."""
    hands = comb(position.rules.deck.size, position.rules.hole_cards)
    return PublicPolicy(actions, shares[:, None], np.zeros(hands, dtype=np.int64))


@cache
def _share(habits: str, kinds: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(action_chances(habits, kinds).tolist())


@dataclass(frozen=True)
class Random:
    """An agent that folds, calls or raises with equal probability.

    Actions that are not legal are left out.

    A raise has a random legal size.
    """

    name: str = "random"

    def act(self, observation: Observation) -> str:
        """Choose among the legal ones of fold, call and raise at random.

        A raise has a random size.
        """
        position, number = observation.position, 2 * len(observation.position.history)
        actions, bounds = position.passive_actions(), position.raise_bounds()
        kinds = (*actions, RAISE) if bounds else actions
        kind = draw_action(kinds, [1 / len(kinds)] * len(kinds), observation.draw(number))
        if kind != RAISE or bounds is None or position.rules.betting == "limit":
            return kind
        least, most = bounds
        return f"{RAISE}{least + int(observation.draw(number + 1) * (most - least + 1))}"

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return equal probabilities for fold, call and raise, without those that are not legal.

        Raises PlayError in no-limit games.
        """
        if position.rules.betting != "limit":
            raise PlayError(f"{self.name} raises to any of thousands of levels: evaluate another player")
        actions = position.actions()
        return _alike(position, actions, np.full(len(actions), 1 / len(actions)))


@dataclass(frozen=True)
class Uniform:
    """An agent that takes every legal action with the same probability.

    In no-limit games, each raise size is one action.
    """

    name: str = "uniform"

    def act(self, observation: Observation) -> str:
        """Choose a legal action at random; all are equally likely."""
        position, drawn = observation.position, observation.draw(2 * len(observation.position.history))
        actions, bounds = position.passive_actions(), position.raise_bounds()
        if bounds is None or position.rules.betting == "limit":
            every = position.actions()
            return draw_action(every, [1 / len(every)] * len(every), drawn)
        least, most = bounds
        number = int(drawn * (len(actions) + most - least + 1))
        return actions[number] if number < len(actions) else f"{RAISE}{least + number - len(actions)}"

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the same probability for every legal action.

        Raises PlayError if there are too many raise sizes to list.
        """
        bounds = position.raise_bounds()
        if bounds and position.rules.betting != "limit" and bounds[1] - bounds[0] >= MOST_SIZES:
            raise PlayError(f"{self.name} raises to any of thousands of levels: evaluate another player")
        actions = position.actions()
        return _alike(position, actions, np.full(len(actions), 1 / len(actions)))


@dataclass(frozen=True)
class SeatedAgent:
    """An agent that combines two agents, one for each seat.

    They may be two solved strategies, each good in one seat.

    Parameters
    ----------
    name : str
        Name in tables and logs.
    players : tuple of two agents
        The agent for each seat, in the order of `GameDef.seat_names`. Neither may depend on earlier hands.
    game : Holdem, optional
        The game of the agents. Default: any game.
    """

    name: str
    players: tuple[Agent, Agent]
    game: Holdem | None = None

    def prepare(self) -> None:
        """Compile the code of both seats' agents."""
        for player in self.players:
            if isinstance(player, PreparingAgent):
                player.prepare()

    def act(self, observation: Observation) -> str:
        """Return the action of the agent in the seat to act."""
        return self.players[observation.position.actor].act(observation)

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the action probabilities of the agent in the seat to act.

        Raises PlayError if one of the agents has no policy.
        """
        return [require_policy(player) for player in self.players][position.actor].policy(position, board)


def draw_action(actions: Sequence[str], share: Sequence[float], draw: float) -> str:
    """Choose an action with given probabilities, using a uniform random number `draw` in [0, 1).

    >>> draw_action(("f", "c", "r"), (0.25, 0.5, 0.25), 0.6)
    'c'
    """
    for action, part in zip(actions, share, strict=True):
        draw -= part
        if draw < 0:
            return action
    return actions[max(range(len(share)), key=share.__getitem__)]  # the shares may sum to slightly less than 1


# Agents that need no solving, by name.
BASELINES: dict[str, Agent] = {
    **{name: Fixed(name, name) for name in AGENTS if name != "call-or-raise"},
    "probe": Fixed("probe", "call-or-raise"),  # [Johanson16 §6.3.2]: it never folds
    "random": Random(),
}
UNIFORM = Uniform()
ALIASES = {"call-or-raise": "probe"}  # names that papers use
UNLISTED: dict[str, Agent] = {UNIFORM.name: UNIFORM, **{name: BASELINES[own] for name, own in ALIASES.items()}}
