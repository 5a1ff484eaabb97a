"""Where a subgame ends early: what each pair of hands wins if play goes on by a blueprint, or nearly so [Brown18].

A subgame with a depth limit ends with its first round. From there on the player who solves it follows the blueprint.
The opponent chooses, with each hand, among *continuations*: the blueprint, and the blueprint biased towards folding,
towards calling and towards raising, the probability of such actions times ten and scaled again (`BIAS`). The player's
strategy before the limit has to be good against all of them. Were there one continuation alone, it could rely on what
the opponent does after the limit, as if the opponent could not adapt.

Values depend on both hands, not on one hand and a range: so they hold whatever both players do before the limit. They
are means over boards to come; over all of them, or over some that are drawn. Then the luck of these boards is taken
away by what is known of all: how often each hand wins a showdown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from time import monotonic
from typing import NamedTuple, Protocol

import numpy as np

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.edges import sum_edges
from kilt.cards.equity import some_hands
from kilt.cards.equity_kernels import board_strengths
from kilt.cards.hands import hand_tables
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem
from kilt.games.subgame import Continuations, Subgame
from kilt.search.continuations_kernels import Singles, add_pair_values

BIASES = (
    "",
    FOLD,
    CALL,
    RAISE,
)  # how the actions begin that continuations are biased towards; the first is the blueprint
BIAS = 10.0  # that their probabilities are multiplied by, before they are scaled again [Brown18 §5]
BATCH = 8  # boards that are looked at together, and between two looks at the clock


class PublicStrategy(Protocol):
    """A strategy that is known on many boards at once, such as a blueprint's agent."""

    def shares_on(self, position: Betting, boards: Sequence[tuple[int, ...]]) -> tuple[tuple[str, ...], FloatArray]:
        """The actions at a position, and [action, board, hand] their probabilities."""


class End(NamedTuple):
    """An end of the whole game: what player 0 wins there, and how likely both players are to come to it."""

    gain: float  # chips to player 0 after a fold, to the better hand at a showdown
    shown: bool
    reach: tuple[Singles, Singles]  # of both players: [way or 1, board, hand]


@dataclass(frozen=True)
class BlueprintContinuations:
    """Tells what the ends of a depth-limited subgame are worth: the `continued` of `solve.resolve.resolve`.

    Parameters
    ----------
    game : Holdem
        The whole game.
    history : str
        Of the position where the subgame begins.
    chooser : int
        The player who chooses among continuations.
    blueprint : PublicStrategy
        That both follow after the limit.
    ways : int
        Number of continuations: the first ones of `BIASES`.
    boards : int
        Number of boards that values are means over; 0 for all of them. Which ones are drawn depends on the public cards
        alone.
    until : float, optional
        When to stop looking at more boards, by `time.monotonic`: `BATCH` of them count in any case.
    """

    game: Holdem
    history: str
    chooser: int
    blueprint: PublicStrategy
    ways: int = len(BIASES)
    boards: int = 0
    until: float | None = None

    def __call__(self, rest: Subgame, ends: Sequence[Betting]) -> Continuations:
        """What the positions are worth where a subgame ends, by pairs of its hands."""
        holes, deck, known = rest.holes, rest.deck, rest.known_board
        positions = {end.history: self.game.replay(self.history + end.history) for end in ends}
        going = [history for history, position in positions.items() if _goes_on(position)]
        values = np.zeros((1 + self.ways * len(going), len(holes), len(holes)), dtype=np.float32)
        places = dict.fromkeys(positions, (0, 1))
        for number, history in enumerate(going):
            places[history] = 1 + self.ways * number, self.ways
        apart = ~(holes[:, None, :, None] == holes[None, :, None, :]).any(axis=(2, 3))
        edge = values[0]  # all there is to know where nobody can bet any more
        edge[:] = apart * all_edges(self.game.rules, known, holes)
        boards = drawn_boards(self.game.rules, known, self.boards)
        done = 0
        while going and done < len(boards) and not (done and self.until is not None and monotonic() > self.until):
            some = boards[done : done + BATCH]
            for history in going:
                first, ways = places[history]
                self._add(positions[history], some, rest, values[first : first + ways])
            done += len(some)
        if going:
            live = np.array([~np.isin(holes, board).any(axis=1) for board in boards[:done].tolist()], dtype=np.float32)
            met = live.T @ live
            lucky = edge - sum_edges(boards[:done], holes, deck) / np.maximum(met, 1)
            for first, ways in (places[history] for history in going):
                for matrix in values[first : first + ways]:
                    matrix /= np.maximum(met, 1)
                    matrix += lucky
                    matrix *= apart
        return Continuations(self.chooser, values, places)

    def _add(self, position: Betting, boards: IntArray, rest: Subgame, values: Singles) -> None:
        """Add what player 0 wins after a position, over complete boards, for each chip at stake: [way, hand, hand]."""
        one = np.ones((1, len(boards), len(rest.numbers)), dtype=np.float32)
        ends = list(self._ends(position, boards, rest.numbers, (one, one)))
        hands, tables = some_hands(rest.holes, rest.deck), hand_tables(boards.shape[1] + rest.holes.shape[1], rest.deck)
        strength = np.empty(len(rest.holes), dtype=np.int16)
        gain = np.array([end.gain / position.stake for end in ends], dtype=np.float32)
        shown = np.array([end.shown for end in ends])
        sides = [
            np.stack([np.broadcast_to(end.reach[player], self._shape(player, one)) for end in ends])
            for player in (0, 1)
        ]
        for number, board in enumerate(boards):
            (first, mine), (second, theirs) = (_columns(side[:, :, number]) for side in sides)
            won = np.empty((2, self.ways, first.shape[2], second.shape[2]), dtype=np.float32)
            for way in range(self.ways):
                one_side, other = first[:, way % first.shape[1]], second[:, way % second.shape[1]]
                for kind in (0, 1):
                    these = shown == bool(kind)
                    won[kind, way] = (gain[these, None] * one_side[these]).T @ other[these]
            board_strengths(board, hands, tables, strength)
            add_pair_values(won[0], won[1], mine, theirs, strength, values)

    def _chosen(self, actions: Sequence[str], shares: Singles, boards: IntArray, numbers: IntArray) -> Singles:
        """[way, action, board, hand] probabilities at a decision of the chooser; `shares` are the blueprint's."""
        return biased(actions, shares, self.ways)

    def _shape(self, player: int, one: Singles) -> tuple[int, ...]:
        return (self.ways if player == self.chooser else 1, *one.shape[1:])

    def _ends(
        self, position: Betting, boards: IntArray, numbers: IntArray, reach: tuple[Singles, Singles]
    ) -> Iterator[End]:
        """All ends of the game after a position, with the reach of both players from there on."""
        actor = position.actor
        if actor == TERMINAL:
            gain = position.stake * (1 if position.folded is None or position.folded == 1 else -1)
            yield End(gain, position.folded is None, reach)
        elif actor == CHANCE:
            yield from self._ends(position.after(REVEAL), boards, numbers, reach)
        else:
            size = position.rules.board_size(position.round)
            actions, found = self.blueprint.shares_on(position, [tuple(board) for board in boards[:, :size].tolist()])
            shares = found[:, :, numbers].astype(np.float32)[None]
            if actor == self.chooser:
                shares = self._chosen(actions, shares[0], boards, numbers)
            for number, action in enumerate(actions):
                if shares[:, number].any():
                    came = reach[actor] * shares[:, number]
                    yield from self._ends(
                        position.after(action), boards, numbers, (came, reach[1]) if actor == 0 else (reach[0], came)
                    )


def biased(actions: Sequence[str], shares: Singles, ways: int) -> Singles:
    """[way, action, …] probabilities of actions [action, …] as each continuation has them."""
    begins = np.array([[bool(bias) and action.startswith(bias) for action in actions] for bias in BIASES[:ways]])
    times = np.where(begins, BIAS, 1.0).astype(shares.dtype)
    weighed: Singles = times.reshape(*times.shape, *[1] * (shares.ndim - 1)) * shares
    whole = weighed.sum(axis=1, keepdims=True)
    np.divide(weighed, whole, out=weighed, where=whole > 0)
    return weighed


def all_edges(rules: GameDef, board: Sequence[int], holes: ByteArray) -> FloatArray:
    """[hand, hand] edge of the first hand over the second, over all ways to complete a board; see `cards.edges`."""
    left, more = np.setdiff1d(np.arange(rules.deck.size), board), sum(rules.board_cards) - len(board)
    ways = np.array(list(combinations(left.tolist(), more)), dtype=np.int64).reshape(-1, more)
    boards = np.hstack([np.tile(np.array(board, dtype=np.int64), (len(ways), 1)), ways])
    return sum_edges(boards, holes, rules.deck) / comb(len(left) - 2 * rules.hole_cards, more)


def drawn_boards(rules: GameDef, board: Sequence[int], count: int) -> IntArray:
    """[board, card] complete boards in the order of their rounds: all, or `count` of them where that is fewer.

    Of those that are drawn, the first cards to come are all different until each has been there once.
    """
    sizes = [size for size in rules.board_cards[_rounds_dealt(rules, len(board)) :] if size]
    left = np.setdiff1d(np.arange(rules.deck.size), board)
    whole = prod(comb(len(left) - sum(sizes[:place]), size) for place, size in enumerate(sizes))
    rng, found = np.random.default_rng([len(board), *board]), list[list[int]]()
    if not count or whole <= count:
        found = [[]]
        for size in sizes:
            found = [[*one, *more] for one in found for more in combinations(sorted({*left.tolist()} - {*one}), size)]
    else:
        while len(found) < count:
            for card in rng.permutation(left)[: count - len(found)].tolist():
                others = rng.choice(left[left != card], sum(sizes) - 1, replace=False)
                found.append([card, *others.tolist()])
    return np.array([[*board, *more] for more in found], dtype=np.int64)


def _rounds_dealt(rules: GameDef, cards: int) -> int:
    """The number of rounds whose public cards are among the first `cards`."""
    return next(r for r in range(rules.rounds, -1, -1) if sum(rules.board_cards[:r]) <= cards)


def _goes_on(position: Betting) -> bool:
    """Whether somebody acts after the public cards to come."""
    while position.actor == CHANCE:
        position = position.after(REVEAL)
    return position.actor >= 0


def _columns(reach: Singles) -> tuple[Singles, IntArray]:
    """[…, column] the different columns of [end, way, hand], and the column of each hand: buckets make them few."""
    flat = reach.reshape(-1, reach.shape[-1])
    keys = np.random.default_rng(0).random(len(flat)) @ flat
    _, where, column = np.unique(keys, return_index=True, return_inverse=True)
    return np.ascontiguousarray(reach[..., where]), column.ravel().astype(np.int64)
