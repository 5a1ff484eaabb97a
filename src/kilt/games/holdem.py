"""Two-player poker with any rules of an ACPC game definition, from Kuhn poker to no-limit hold'em.

Betting and cards are independent until the end of a hand: `Betting` is the public position, and `Holdem` deals the
cards and computes the payoffs.

>>> from kilt.games.gamedef import load_definition
>>> game = Holdem(load_definition("holdem.nolimit.2p"))
>>> position = game.start()
>>> position.actor, position.raise_bounds()  # the small blind acts first, and raises *to* 200 chips at least
(1, (200, 20000))
>>> position.after("r300").after("c").history
'r300c'
>>> flop = game.replay("r300c/")
>>> flop.round, flop.actor, [(before.actor, action) for before, action in game.positions.moves_to(flop)]
(1, 0, [(1, 'r300'), (0, 'c'), (-1, '/')])
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from math import comb

import numpy as np

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.deck import Deck, subsets
from kilt.cards.hands import strength
from kilt.errors import GameError, quoted
from kilt.games.game import CHANCE, REVEAL, TERMINAL, Board, Hands, Position
from kilt.games.gamedef import UNLIMITED_RAISES, GameDef

FOLD, CALL, RAISE = "f", "c", "r"
MOST_ACTIONS = 64  # per round, as in the ACPC's server: a raise is legal only if a call can follow
KEPT = 1 << 16  # number of positions of a game that are cached: about 30 MB
KEPT_WAYS = 1 << 14  # number of positions whose path is cached: about 15 MB

_ACTION = re.compile(r"[fc/]|r(?:[1-9][0-9]{0,9})?")


@dataclass(frozen=True)
class Betting:
    """A public position in a poker hand: the betting so far, the pot, and the player to act.

    A `Betting` is a value: `after` returns a new one.

    Labels of actions are the ACPC's: ``f``, ``c``, ``r`` in limit games, ``r300`` for a raise *to* 300 chips over the
    whole hand in no-limit games, and ``/`` for the start of a round. Chips are counted over the whole hand.
    """

    rules: GameDef
    history: str
    round: int
    actor: int
    spent: tuple[int, int]  # chips that each player has put into the pot
    # chips of each player in the pot when the round began: antes, but not blinds, which are bets of the round
    opened_at: int
    raises: int  # number of raises in this round
    last_raise: int  # minimum increase of the next raise in no-limit games
    to_act: int  # number of players who must still act before the round ends
    folded: int | None = None

    @classmethod
    def start(cls, rules: GameDef) -> Betting:
        """Return the position after the blinds are posted, before the first action."""
        first = rules.first_player[0]
        blinds = (rules.blinds[0], rules.blinds[1])
        ante = blinds[0] if blinds[0] == blinds[1] else 0
        return cls(rules, "", 0, first, blinds, ante, 0, rules.big_blind, 2)._turn_to(first)

    @classmethod
    def opening(cls, rules: GameDef, round: int, spent: int) -> Betting:  # noqa: A002
        """Return the position at the start of a round, given each player's chips in the pot."""
        first = rules.first_player[round]
        return cls(rules, "", round, first, (spent, spent), spent, 0, rules.big_blind, 2)._turn_to(first)

    @property
    def facing(self) -> int:
        """The chips needed to match the opponent, or 0 if checking is free."""
        return max(self.spent) - self.spent[self.actor]

    @property
    def to_call(self) -> int:
        """The chips that a call adds: enough to match the opponent, or the rest of the stack."""
        return min(max(self.spent), self.rules.stacks[self.actor]) - self.spent[self.actor]

    @property
    def stake(self) -> int:
        """The chips at stake: what the loser loses, without the unmatched part of a bet."""
        return min(self.spent)

    def raise_bounds(self) -> tuple[int, int] | None:
        """Return the smallest and largest amounts to which the player may raise, or None.

        Amounts are in chips over the whole hand. A player who cannot afford the minimum may still go all-in. There is
        no raise against a player who is all-in, nor after 63 actions of a round.
        """
        rules, me = self.rules, self.actor
        stack, level = rules.stacks[me], max(self.spent)
        cap = rules.max_raises[self.round]
        capped = cap != UNLIMITED_RAISES and self.raises >= cap
        if self.actor < 0 or capped or stack <= level or self._all_in(1 - me) or self._acted + 2 > MOST_ACTIONS:
            return None
        if rules.betting == "limit":
            least = most = level + rules.raise_sizes[self.round]
        else:
            least, most = level + self.last_raise, stack
        return min(least, stack), min(most, stack)

    def passive_actions(self) -> tuple[str, ...]:
        """Return the legal actions other than raises: call and, facing a bet, fold."""
        if self.actor < 0:
            return (REVEAL,) if self.actor == CHANCE else ()
        return (FOLD, CALL) if self.facing else (CALL,)

    def actions(self) -> tuple[str, ...]:
        """Return the labels of all legal actions.

        No-limit games have thousands of them: `raise_bounds` gives the range of raises.
        """
        bounds = self.raise_bounds()
        if bounds is None:
            return self.passive_actions()
        if self.rules.betting == "limit":
            return (*self.passive_actions(), RAISE)
        return (*self.passive_actions(), *(f"{RAISE}{to}" for to in range(bounds[0], bounds[1] + 1)))

    def after(self, action: str) -> Betting:
        """Return the position after an action. Raises GameError if the action is not legal."""
        me = self.actor
        if me == CHANCE and action == REVEAL:
            first = self.rules.first_player[self.round + 1]
            begun = self._with(
                action,
                round=self.round + 1,
                opened_at=max(self.spent),
                raises=0,
                last_raise=self.rules.big_blind,
                to_act=2,
                actor=first,
            )
            return begun._turn_to(first)
        if me >= 0 and action == FOLD and self.facing:
            return self._with(action, actor=TERMINAL, folded=me)
        if me >= 0 and action == CALL:
            called = self.spent[me] + self.to_call
            return self._with(action, spent=self._spend(called), to_act=self.to_act - 1)._turn_to(1 - me)
        bounds = self.raise_bounds()
        # A user's agent may return something that is not a string.
        if bounds and (
            match := re.fullmatch(RAISE if self.rules.betting == "limit" else rf"{RAISE}(\d+)", str(action))
        ):
            level = bounds[0] if self.rules.betting == "limit" else int(match[1])
            if bounds[0] <= level <= bounds[1]:
                raised_by = level - max(self.spent)
                return self._with(
                    action,
                    spent=self._spend(level),
                    raises=self.raises + 1,
                    last_raise=max(self.last_raise, raised_by),
                    to_act=1,
                )._turn_to(1 - me)
        raise GameError(f"{action!r} is not legal after {self.history!r}: {self._menu()}")

    def _menu(self) -> str:
        """Describe the legal actions in words, for error messages."""
        if self.actor == TERMINAL:
            return "the hand is over"
        labels = [*self.passive_actions()]
        if bounds := self.raise_bounds():
            labels.append(RAISE if self.rules.betting == "limit" else f"{RAISE}{bounds[0]} to {RAISE}{bounds[1]}")
        return f"use one of {', '.join(labels)}"

    @property
    def _acted(self) -> int:
        """The number of actions of this round: its raises, and a check or call before them. Players alternate."""
        return self.raises + (self.raises + (self.actor != self.rules.first_player[self.round])) % 2

    def _all_in(self, player: int) -> bool:
        return self.spent[player] == self.rules.stacks[player]

    def _spend(self, chips: int) -> tuple[int, int]:
        return (chips, self.spent[1]) if self.actor == 0 else (self.spent[0], chips)

    def _with(self, action: str, **changes: object) -> Betting:
        return replace(self, history=self.history + action, **changes)  # type: ignore[arg-type]

    def _turn_to(self, player: int) -> Betting:
        """Give the turn to `player` or else the opponent, the first who can and must act; or end the round.

        As in the ACPC's server, a round begins only between players who both have chips, but once it has begun, every
        player with chips acts: the big blind checks even if the small blind is all-in with a call.
        """
        begun = self.round == 0 or self.to_act < 2
        if begun or not (self._all_in(0) or self._all_in(1)):
            for candidate in (player, 1 - player)[: self.to_act]:
                if not self._all_in(candidate):
                    return replace(self, actor=candidate)
        return replace(self, actor=CHANCE if self.round + 1 < self.rules.rounds else TERMINAL)


class Positions:
    """A cache of a game's betting positions, looked up by betting history.

    The cache has the last 65,536 positions, which makes a replay mostly look-ups. Each process has one `Positions` for
    each game: see `positions_of` and `positions_after`.
    """

    def __init__(self, start: Betting) -> None:
        self.rules, self.start = start.rules, start
        self._known: dict[tuple[str, str], Betting] = {}  # by history and next action; "" stands for no action
        self._moves: dict[str, tuple[tuple[Betting, str], ...]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return positions_after, (self.start,)  # the cache stays in its process

    def after(self, position: Betting, action: str) -> Betting:
        """Return the position after an action. Raises GameError if the action is not legal."""
        found = self._known.get((position.history, action))
        return found or self._keep(position.history, action, position.after(action))

    def replay(self, history: str) -> Betting:
        """Return the position after a betting history. Raises GameError if an action is not legal.

        A history is a sequence of ACPC labels without separators.
        """
        position = self._known.get((history, ""))
        if position is not None:
            return position
        # In a match, a history is the previous one plus an action, and the previous one is in the cache.
        before = history[: max(history.rfind(label) for label in (FOLD, CALL, RAISE))]
        position = self._known.get((before, ""), self.start)
        at = len(position.history)
        while at < len(history):
            action = _ACTION.match(history, at)
            if not action:
                raise GameError(
                    f"the betting {quoted(history)} has {history[at]!r} in place of f, c, r or /; in no-limit games, "
                    "and only in these, the chips follow the r: check the program that wrote it"
                )
            try:
                position, at = self.after(position, action[0]), action.end()
            except GameError as error:
                raise GameError(f"the betting {quoted(history)} is impossible: {error}") from None
        return self._keep(history, "", position)

    def moves_to(self, position: Betting) -> tuple[tuple[Betting, str], ...]:
        """Return the actions that lead to a position, each with the position before it.

        Chance's ``/`` is included.
        """
        found = self._moves.get(position.history)
        if found is None:
            if len(self._moves) >= KEPT_WAYS:
                self._moves.clear()
            actions = _ACTION.findall(position.history)
            positions = accumulate(actions[:-1], self.after, initial=self.start)
            found = self._moves[position.history] = tuple(zip(positions, actions, strict=False))
        return found

    def _keep(self, history: str, action: str, position: Betting) -> Betting:
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[history, action] = position
        return position


@lru_cache(maxsize=16)
def positions_of(rules: GameDef) -> Positions:
    """Return a cache of betting positions for a game with the given rules."""
    return positions_after(Betting.start(rules))


@lru_cache(maxsize=16)
def positions_after(start: Betting) -> Positions:
    """Return a cache of betting positions for a game that starts at a given position."""
    return Positions(start)


@dataclass(frozen=True)
class Poker(ABC):
    """The rules of a two-player poker game: private hands, betting and payoffs.

    `Holdem` and `Stud` are its subclasses, which differ in the cards that later rounds deal. Hands are numbered as in
    `Deck.holes`, boards are card numbers.

    Raises
    ------
    GameError
        The definition has features that kilt does not support, such as more than two players.
    """

    rules: GameDef
    name: str = "poker"

    def __post_init__(self) -> None:
        if self.rules.players != 2:
            raise GameError(
                f"{self.name} has {self.rules.players} players; kilt builds games for 2: set `numPlayers = 2` "
                "and give `stack` and `blind` two values each"
            )
        if self.rules.board_cards[0]:
            raise GameError(
                f"{self.name} deals {self.rules.board_cards[0]} public cards before the first round; kilt deals the "
                "first ones after it: let `numBoardCards` begin with 0"
            )
        if self.rules.hole_cards > 2:
            raise GameError(
                f"{self.name} deals {self.rules.hole_cards} private cards; kilt builds games with 1 or 2: "
                "check `numHoleCards`"
            )

    @property
    def deck(self) -> Deck:
        """The deck of cards that the game uses."""
        return self.rules.deck

    @property
    def numbers(self) -> IntArray:
        """The indices in `Deck.holes` of the private hands that players may hold, ascending."""
        return np.arange(comb(self.deck.size, self.rules.hole_cards))

    @cached_property
    def holes(self) -> ByteArray:
        """All private hands that can be dealt, as an array of cards, shape (hands, cards)."""
        return self.deck.holes(self.rules.hole_cards)[self.numbers]

    @property
    def weights(self) -> FloatArray:
        """The weight of each private hand before the deal, for each player.

        The shape is (2, hands). By default, all weights are 1. `deals` excludes hands that share a card.
        """
        return np.ones((2, len(self.numbers)))

    @property
    def definition(self) -> str:
        """The complete rules as text without the game's name, for comparing games."""
        return str(self.rules)

    @cached_property
    def _holes(self) -> list[tuple[int, ...]]:
        return [tuple(hand) for hand in self.holes.tolist()]

    def hands(self, player: int) -> list[str]:
        """Return the names of all private hands that players may hold."""
        return [self.deck.name(hand) for hand in self._holes]

    def deals(self) -> FloatArray:
        """Return the probability of each pair of hands, proportional to the product of their weights.

        Pairs that share a card have probability 0.
        """
        held = np.zeros((len(self._holes), self.deck.size))
        np.put_along_axis(held, np.array(self._holes), 1.0, axis=1)
        likely = (held @ held.T == 0) * np.outer(*self.weights)
        probability: FloatArray = likely / likely.sum()
        return probability

    @cached_property
    def positions(self) -> Positions:
        """A cache of the game's betting positions, looked up by betting history."""
        return positions_of(self.rules)

    def start(self) -> Betting:
        """Return the position after the blinds are posted, before the first action."""
        return self.positions.start

    def replay(self, history: str) -> Betting:
        """Return the position after a betting history.

        Parameters
        ----------
        history : str
            ACPC labels without separators: ``f``, ``c``, ``r`` in limit games, ``r300`` for a raise *to* 300 chips over
            the whole hand in no-limit games, ``/`` for the start of a round.

        Returns
        -------
        Betting

        Raises
        ------
        GameError
            An action is not legal.
        """
        return self.positions.replay(history)

    def payoffs(self, position: Position, hands: Hands, board: Board) -> tuple[float, float]:
        """Return the chips that each player wins at the end of a hand."""
        assert isinstance(position, Betting)
        if position.folded is not None:
            sign = 1 if position.folded == 1 else -1
        else:
            mine, theirs = (_strength(self._shown(player, hand, board), self.deck) for player, hand in enumerate(hands))
            sign = (mine > theirs) - (mine < theirs)
        return float(sign * position.stake), float(-sign * position.stake)

    @abstractmethod
    def reveals(self, position: Position, hands: Hands, board: Board) -> list[tuple[Board, float]]:
        """Return all ways to deal the cards of the next round, with their probabilities."""

    @abstractmethod
    def board_name(self, board: Board, player: int) -> str:
        """Return the cards that a player can see as text, with ``/`` between rounds."""

    @abstractmethod
    def _shown(self, player: int, hand: int, board: Board) -> tuple[int, ...]:
        """Return the cards that form a player's hand at showdown."""


@dataclass(frozen=True)
class Holdem(Poker):
    """A two-player poker game whose cards after the first round are all public, such as hold'em.

    Raises
    ------
    GameError
        The definition describes stud.
    """

    name: str = "hold'em"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rules.stud:
            raise GameError(
                f"{self.name} is stud: after the first round, each player gets cards (`numUpCards`, "
                "`numDownCards`); use a game without them, or `kilt.games.load_game`"
            )

    @property
    def known_board(self) -> Board:
        """The public cards known from the start, which only subgames have."""
        return ()

    @property
    def marks(self) -> FloatArray:
        """Labels of hands, so that hands with different labels are never merged as equal up to suits.

        The shape is (marks, hands). A complete game has no labels.
        """
        return np.zeros((0, len(self.numbers)))

    def rake(self, stakes: FloatArray) -> FloatArray:
        """Return the rake, which the house takes from a pot, given each player's contribution `stakes`.

        The default is 0; a `Subgame` may have rake.
        """
        return np.zeros(np.shape(stakes))

    @property
    def tilts(self) -> FloatArray:
        """The changes of payoffs in tilted games, for each player and each way in which a hand can end.

        These are relative changes, with the shape (2, 4). The default is 0; see `TiltedGame`.
        """
        return np.zeros((2, 4))

    @property
    def real(self) -> Holdem:
        """The game in which strategies are evaluated, with the real payoffs.

        The default is the game itself; see `TiltedGame`.
        """
        return self

    def reveals(self, position: Position, hands: Hands, board: Board) -> list[tuple[Board, float]]:
        """Return all sets of cards that the next round may deal, each equally likely."""
        held = {*self._holes[hands[0]], *self._holes[hands[1]], *self.known_board, *board}
        rest = np.array([card for card in range(self.deck.size) if card not in held])
        count = self.rules.board_cards[position.round + 1]
        chance = 1 / comb(len(rest), count)
        return [((*board, *cards), chance) for cards in rest[subsets(len(rest), count)].tolist()]

    def _shown(self, player: int, hand: int, board: Board) -> tuple[int, ...]:
        return (*self._holes[hand], *self.known_board, *board)

    def board_name(self, board: Board, player: int = 0) -> str:
        """Return the board as text such as ``/Qd7h2c/As``, with ``/`` between rounds.

        Both players see the same cards.
        """
        board = (*self.known_board, *board)
        parts, start = [], 0
        for count in self.rules.board_cards:
            parts.append(self.deck.name(board[start : start + count]))
            start += count
            if start >= len(board):
                break
        return "/".join(parts)


@lru_cache(maxsize=1 << 14)
def _strength(cards: tuple[int, ...], deck: Deck) -> int:
    """Return the strength of a hand from a cache, because the tree of a small game needs the same hands repeatedly."""
    return strength(cards, deck)
