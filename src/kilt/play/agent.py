"""What an agent is: something that picks an action in a real match. Those here look at no cards; `BASELINES` has all.

An agent sees an `Observation`, answers with a legal action as the ACPC writes it, and remembers nothing: all that
happened is in the observation, and all that it draws at random comes from the observation's `key`. So a hand can be
played again, elsewhere too. A `RememberingAgent` is also told when a match begins and what it saw of each hand.

>>> from kilt.games import load_game
>>> observation = Observation(load_game("holdem.nolimit.2p").start(), (50, 51), (), key=7)
>>> BASELINES["always-call"].act(observation), BASELINES["always-raise"].act(observation)
('c', 'r200')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.draws import uniform
from kilt.errors import PlayError
from kilt.games.holdem import RAISE, Betting, Holdem
from kilt.strategy.fixed import AGENTS, chances

MOST_SIZES = 1000  # legal raises that are listed, each with its probability


class Observation(NamedTuple):
    """What a player sees when it is their turn.

    Attributes
    ----------
    position : Betting
        The betting so far; the player is its `actor`. It says what is legal: `passive_actions`, `raise_bounds`.
    hand : tuple of int
        The player's private cards: card = rank · suits + suit, as `position.rules.deck` numbers and names them.
    board : tuple of int
        The public cards of all rounds so far, in the order of dealing.
    key : int
        64 random bits, the same all through a hand: see `draw`.
    """

    position: Betting
    hand: tuple[int, ...]
    board: tuple[int, ...]
    key: int

    def draw(self, number: int) -> float:
        """A uniform random number in [0, 1), a function of the key and `number`: agents use one number per draw."""
        return float(uniform(np.uint64(self.key), np.uint64(number)))


class Agent(Protocol):
    """Something that picks an action in a match: any class with a `name` and an `act` is one.

    One that plays a single game says which by an attribute `game`.
    """

    @property
    def name(self) -> str:
        """What it is called in tables and logs."""

    def act(self, observation: Observation) -> str:
        """Pick an action.

        Parameters
        ----------
        observation : Observation
            What the player sees, and what it draws random numbers from.

        Returns
        -------
        str
            A legal action as the ACPC writes it: ``f`` (where there is a bet to fold to), ``c`` (call or check), ``r``
            in limit games, ``r300`` to raise *to* 300 chips over the whole hand in no-limit games.
        """


class PlayedHand(NamedTuple):
    """A hand that is over, as one of its players has seen it.

    Attributes
    ----------
    position : Betting
        At the end of the hand.
    seat : int
        Of the player.
    hand : tuple of int
        The player's private cards.
    board : tuple of int
        The public cards that were dealt.
    shown : tuple of int
        The opponent's private cards after a showdown; empty where somebody folded.
    won : float
        Chips that the player won; negative where they lost.
    """

    position: Betting
    seat: int
    hand: tuple[int, ...]
    board: tuple[int, ...]
    shown: tuple[int, ...]
    won: float


@runtime_checkable
class RememberingAgent(Protocol):
    """An agent whose play depends on earlier hands of the match. Its matches are played in order, by one process."""

    @property
    def name(self) -> str:
        """What it is called in tables and logs."""

    def begin(self, game: Holdem) -> RememberingAgent:
        """The player of one match that begins now: a new object, which knows nothing of other matches.

        In a duplicate match each deal is played at two tables; `begin` is called once for each of them.
        """

    def act(self, observation: Observation) -> str:
        """Pick an action: see `Agent`."""

    def saw(self, hand: PlayedHand) -> str | None:
        """A hand of the match is over. What is returned, if anything, is a note for the log of the match."""


@runtime_checkable
class PreparingAgent(Protocol):
    """An agent whose decisions have a time limit: what takes long the first time is done before the first hand."""

    def prepare(self) -> None:
        """Get ready to play: compile what play needs. Called when a match begins, and again does nothing."""


def begun(agent: Agent, game: Holdem) -> Agent:
    """The player of a match that begins, ready to play: `agent` itself, or a copy of its own for one that remembers."""
    if isinstance(agent, PreparingAgent):
        agent.prepare()
    if not isinstance(agent, RememberingAgent):
        return agent
    player = agent.begin(game)
    if not isinstance(player, RememberingAgent):
        raise PlayError(
            f"`begin` of {agent.name} returns {player!r}, which is no agent that remembers: return the one that plays "
            "the match"
        )
    return player


class PublicPolicy(NamedTuple):
    """What a player does at a public state with every private hand.

    Attributes
    ----------
    actions : tuple of str
        Legal actions as the ACPC writes them, each once; those that are left out are never taken.
    table : ndarray, shape (actions, columns)
        Probabilities; hands that the player does not tell apart share a column.
    column : ndarray of int, shape (hands,)
        The column of each private hand, in the order of `Deck.holes`. For a hand that shares a card with the board it
        means nothing.
    """

    actions: tuple[str, ...]
    table: FloatArray
    column: Array

    def share(self, action: str) -> FloatArray:
        """[hand] Probability of an action."""
        if action not in self.actions:
            return np.zeros(len(self.column))
        row: FloatArray = self.table[self.actions.index(action)]
        return row[self.column]

    def ever(self, action: str) -> bool:
        """Whether an action is taken with any hand."""
        return action in self.actions and bool(self.table[self.actions.index(action)].any())

    @property
    def shares(self) -> FloatArray:
        """[action, hand] Probabilities."""
        return self.table.take(self.column, axis=1)


@runtime_checkable
class KnownAgent(Protocol):
    """An agent that can tell its strategy at a public state, with all hands at once: estimators need it."""

    @property
    def name(self) -> str:
        """What it is called in tables and logs."""

    def act(self, observation: Observation) -> str:
        """Pick an action: see `Agent`."""

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Probabilities of the actor's actions with every hand; PlayError where they cannot be told.

        Parameters
        ----------
        position : Betting
            The betting so far; the player is its `actor`.
        board : tuple of int
            The public cards of all rounds so far, in the order of dealing.

        Returns
        -------
        PublicPolicy
            `act` draws from these probabilities.
        """


def known(agent: Agent) -> KnownAgent:
    """Return the agent if it can tell its strategy. Raises PlayError otherwise."""
    if isinstance(agent, RememberingAgent) and not isinstance(agent, KnownAgent):
        raise PlayError(
            f"{agent.name} plays by what it saw of earlier hands, so it has no strategy for a single hand: use one of "
            "the agents that it picks from"
        )
    if not isinstance(agent, KnownAgent):
        raise PlayError(f"{agent.name} does not tell its strategy: give its class a method `policy`, or use a run")
    return agent


def tells(agent: Agent, game: Holdem) -> bool:
    """Whether an agent tells its strategy in a game: it has a `policy`, which answers at the start of a hand."""
    if not isinstance(agent, KnownAgent):
        return False
    try:
        agent.policy(game.start(), ())
    except PlayError:
        return False
    return True


@dataclass(frozen=True)
class Fixed:
    """An agent of `strategy.fixed`, which looks at no cards; it raises by the least in no-limit games."""

    name: str
    habits: str  # its row of `strategy.fixed.AGENTS`

    def act(self, observation: Observation) -> str:
        """The action of the agent's habit, or one drawn among those of several."""
        position = observation.position
        actions, bounds = position.passive_actions(), position.raise_bounds()
        kinds = (*actions, RAISE) if bounds else actions
        share = _share(self.habits, kinds)
        kind = kinds[share.index(1)] if 1 in share else pick(kinds, share, observation.draw(2 * len(position.history)))
        return f"{RAISE}{bounds[0]}" if kind == RAISE and bounds and position.rules.betting != "limit" else kind

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Its habits, which are the same with all hands."""
        actions, bounds = position.passive_actions(), position.raise_bounds()
        if bounds:
            actions = *actions, RAISE if position.rules.betting == "limit" else f"{RAISE}{bounds[0]}"
        return _alike(position, actions, chances(self.habits, actions))


def _alike(position: Betting, actions: tuple[str, ...], shares: FloatArray) -> PublicPolicy:
    """The policy of a player who does the same with all hands."""
    hands = comb(position.rules.deck.size, position.rules.hole_cards)
    return PublicPolicy(actions, shares[:, None], np.zeros(hands, dtype=np.int64))


@cache
def _share(habits: str, kinds: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(chances(habits, kinds).tolist())


@dataclass(frozen=True)
class Random:
    """An agent that folds, calls or raises, each equally often where it is legal, and raises to any legal level."""

    name: str = "random"

    def act(self, observation: Observation) -> str:
        """A random kind of action, and for raises a random legal level."""
        position, number = observation.position, 2 * len(observation.position.history)
        actions, bounds = position.passive_actions(), position.raise_bounds()
        kinds = (*actions, RAISE) if bounds else actions
        kind = pick(kinds, [1 / len(kinds)] * len(kinds), observation.draw(number))
        if kind != RAISE or bounds is None or position.rules.betting == "limit":
            return kind
        least, most = bounds
        return f"{RAISE}{least + int(observation.draw(number + 1) * (most - least + 1))}"

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Every kind of action alike; PlayError in no-limit games, where raises are too many to list."""
        if position.rules.betting != "limit":
            raise PlayError(f"{self.name} raises to any of thousands of levels: give another player to judge")
        actions = position.actions()
        return _alike(position, actions, np.full(len(actions), 1 / len(actions)))


@dataclass(frozen=True)
class Uniform:
    """The agent that takes each legal action equally often; in no-limit games, each legal size of a raise."""

    name: str = "uniform"

    def act(self, observation: Observation) -> str:
        """One of the legal actions."""
        position, drawn = observation.position, observation.draw(2 * len(observation.position.history))
        actions, bounds = position.passive_actions(), position.raise_bounds()
        if bounds is None or position.rules.betting == "limit":
            every = position.actions()
            return pick(every, [1 / len(every)] * len(every), drawn)
        least, most = bounds
        number = int(drawn * (len(actions) + most - least + 1))
        return actions[number] if number < len(actions) else f"{RAISE}{least + number - len(actions)}"

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Every legal action alike; PlayError if they are too many to list."""
        bounds = position.raise_bounds()
        if bounds and position.rules.betting != "limit" and bounds[1] - bounds[0] >= MOST_SIZES:
            raise PlayError(f"{self.name} raises to any of thousands of levels: give another player to judge")
        actions = position.actions()
        return _alike(position, actions, np.full(len(actions), 1 / len(actions)))


@dataclass(frozen=True)
class SeatedAgent:
    """An agent that is another one in each seat, such as two runs of which each has looked at its own seat closely.

    Parameters
    ----------
    name : str
        What it is called in tables and logs.
    players : tuple of two agents
        Who plays each seat, in the order of `GameDef.seat_names`. Neither remembers earlier hands.
    game : Holdem, optional
        The game that it was made for; left out: any.
    """

    name: str
    players: tuple[Agent, Agent]
    game: Holdem | None = None

    def prepare(self) -> None:
        """Get both agents ready to play: see `PreparingAgent`."""
        for player in self.players:
            if isinstance(player, PreparingAgent):
                player.prepare()

    def act(self, observation: Observation) -> str:
        """The action of the agent whose seat it is."""
        return self.players[observation.position.actor].act(observation)

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """The strategy of the agent whose seat it is; PlayError where one of them does not tell theirs."""
        return [known(player) for player in self.players][position.actor].policy(position, board)


def pick(actions: Sequence[str], share: Sequence[float], draw: float) -> str:
    """The action that a uniform random number `draw` picks when each has the probability in `share`.

    >>> pick(("f", "c", "r"), (0.25, 0.5, 0.25), 0.6)
    'c'
    """
    for action, part in zip(actions, share, strict=True):
        draw -= part
        if draw < 0:
            return action
    return actions[max(range(len(share)), key=share.__getitem__)]  # shares add up to a little less than 1


# Agents that are there without solving, by name.
BASELINES: dict[str, Agent] = {
    **{name: Fixed(name, name) for name in AGENTS if name != "call-or-raise"},
    "probe": Fixed("probe", "call-or-raise"),  # [Johanson16 §6.3.2]: it never folds
    "random": Random(),
}
UNIFORM = Uniform()
ALIASES = {"call-or-raise": "probe"}  # names that papers use
UNLISTED: dict[str, Agent] = {UNIFORM.name: UNIFORM, **{name: BASELINES[own] for name, own in ALIASES.items()}}
