"""What the end of a hand is worth to a player, with luck taken out or not [Johanson16 §7.2.3]: `VALUES` has all.

A value function takes a seen hand, an end that it stands for, and private hands of the judged player; it gives chips.
Money is what the end pays. DIVAT values take away the luck of the cards: for any function W of what has happened,

    Ṽ(z) = u(z) − Σ (W(after) − E W)        over the chance events on the way to z

has the mean of u, since every term has mean 0 [Zinkevich06]. W of BC-DIVAT is what the cards are worth if each round
from here on has one bet, which is called: the chips at stake then, times the edge of one hand over the other. W of
DIVAT is what they are worth if the round goes as a baseline has it, in which better hands raise and poor ones fold: see
`kilt.evaluate.divat`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from math import comb
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cards.deck import subsets
from kilt.cards.edges import edge, edge_on, edges, pair_edges
from kilt.cards.equity import hand_list
from kilt.cards.hands import hand_tables
from kilt.evaluate.divat import baseline_values, board_ranks, mean_of_deals, raised
from kilt.games.game import REVEAL, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Betting, Holdem, positions_of
from kilt.play.agent import PublicPolicy
from kilt.play.dealer import Hand

KEPT_EDGES = 512  # edges of all hands over one: those of the hands of a chunk of a match
KEPT_LUCK = 4_096  # of DIVAT: all that Leduc hold'em has
MANY, DRAWN = 1_000, 8  # a mean over more than MANY boards to come is taken over DRAWN of them, at random


class HandValues(NamedTuple):
    """A number for each private hand. Hands of a class, such as a bucket, have it in common: sums are over classes."""

    table: FloatArray  # [class]; one entry where all hands are worth the same
    column: IntArray | None = None  # [hand] its class; None where each hand is one of its own, or all are one

    def times(self, weights: FloatArray) -> float:
        """Sum over all hands of their values times `weights` [hand]."""
        if len(self.table) == 1:
            return float(self.table[0]) * float(weights.sum())
        by_class = weights if self.column is None else np.bincount(self.column, weights, len(self.table))
        return float(by_class @ self.table)

    def mixed(self, policy: PublicPolicy, action: str, weights: FloatArray, by_column: FloatArray) -> float:
        """Sum over all hands of their values times `weights` [hand] times the probability that they take an action.

        `by_column` has the sums of the weights over the columns of the policy: where classes are these, it is enough.
        """
        row = policy.table[policy.actions.index(action)]
        if len(self.table) == 1:
            return float(self.table[0]) * float(by_column @ row)
        if self.column is policy.column:
            return float((by_column * row) @ self.table)
        return self.times(weights * row[policy.column])


class StateValues(Protocol):
    """Estimated values of states that are no ends: any numbers will do, good ones take away more luck [Burch18]."""

    def classed(self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]) -> HandValues:
        """Chips that the player in `seat` may expect with each private hand, against the `opponent`'s cards.

        Hands that share a card with the board or the opponent get any number.
        """

    def expected(self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]) -> FloatArray:
        """[hand] Mean of what `classed`, or the end of the hand, is after the public cards that come next: exact."""

    def start(self, seat: int) -> float:
        """Mean of `classed` over all deals of private cards, before anybody has acted: exact."""


class SeenHand:
    """A hand of a log as the judged player's: cards that are known, and what follows from them for all private hands.

    Parameters
    ----------
    game : Holdem
    hand : Hand
    seat : int
        Where the judged player sits.
    partial : bool
        Whether the opponent's cards are seen at a showdown alone.
    """

    def __init__(self, game: Holdem, hand: Hand, seat: int, *, partial: bool = False) -> None:
        rules, holes = game.rules, hand.cards.holes
        self.game, self.seat, self.position, self.board = game, seat, hand.position, hand.board
        self.hole = holes[seat]
        self.own = rules.deck.hole_index(holes[seat])
        self.own_hand: IntArray = np.array([self.own])
        hidden = partial and hand.position.folded is not None
        self.opponent: tuple[int, ...] | None = None if hidden else holes[1 - seat]
        self._values: dict[str, HandValues] = {}
        self._means: dict[str, FloatArray] = {}
        self._free: dict[int, BoolArray] = {}
        self._masks: dict[int, FloatArray] = {}
        self._edges: dict[int, FloatArray] = {}
        self._edge: dict[int, float] = {}

    def moves(self) -> tuple[tuple[Betting, str], ...]:
        """Each action of the hand with the position before it; chance's ``/`` is among them."""
        return self.game.positions.moves(self.position)

    def after(self, position: Betting, action: str) -> Betting:
        """The position after an action."""
        return self.game.positions.after(position, action)

    @cached_property
    def their_hand(self) -> int:
        """The number of the opponent's private hand, where it is known."""
        assert self.opponent is not None
        return self.game.deck.hole_index(self.opponent)

    def state_value(self, states: StateValues, position: Betting) -> HandValues:
        """What a state of this hand is worth: what it pays where it is an end, else what `states` say."""
        known = self._values.get(position.history)
        if known is None:
            assert self.opponent is not None
            if position.actor != TERMINAL:
                known = states.classed(position, self.board_of(position.round), self.seat, self.opponent)
            elif position.folded is not None:
                known = HandValues(np.array([folded_money(self, position)]))
            else:
                known = HandValues(money(self, position, self.all_hands))
            self._values[position.history] = known
        return known

    def weights(self, judged: FloatArray, played: FloatArray, r: int, *, all_cards: bool) -> FloatArray:
        """[hand] Weights of private hands at a state of round `r`: `judged` over the sum of `played` (equation 7.20).

        Both are [hand] probabilities to come there. Without `all_cards` it is their ratio at the hand that was held.
        """
        if all_cards:
            free = self.free_mask(r)
            weighed: FloatArray = judged * free
            weighed /= float(played @ free)
            return weighed
        weights = np.zeros(len(judged))
        weights[self.own] = judged[self.own] / played[self.own]
        return weights

    def weight(self, judged: FloatArray, played: FloatArray, r: int, *, all_cards: bool) -> float:
        """The sum of `weights` over all private hands: 1 where the strategy that played is judged."""
        if judged is played:
            return 1.0
        if all_cards:
            free = self.free_mask(r)
            return float(judged @ free) / float(played @ free)
        return float(judged[self.own] / played[self.own])

    def expected_value(self, states: StateValues, position: Betting) -> FloatArray:
        """[hand] Mean of what follows a state in which public cards come next."""
        name = position.history + REVEAL
        if name not in self._means:
            assert self.opponent is not None
            self._means[name] = states.expected(position, self.board_of(position.round), self.seat, self.opponent)
        return self._means[name]

    @cached_property
    def all_hands(self) -> IntArray:
        """Numbers of all private hands, those that cannot be held too."""
        return np.arange(self.hands)

    @property
    def hands(self) -> int:
        """Number of all private hands, those that cannot be held too."""
        return len(self.game.holes)

    def board_of(self, r: int) -> tuple[int, ...]:
        """The public cards that are dealt up to round `r`."""
        return self.board[: self.game.rules.board_size(r)]

    def free(self, r: int) -> BoolArray:
        """[hand] Whether the player can hold it: no card of it is on the board of round `r` or seen in another hand."""
        if r not in self._free:
            self._free[r] = hands_apart(self.game.rules, (*self.board_of(r), *(self.opponent or ())))
        return self._free[r]

    def free_mask(self, r: int) -> FloatArray:
        """[hand] `free` as numbers, 0 or 1: products with them are several times as fast."""
        if r not in self._masks:
            self._masks[r] = self.free(r).astype(np.float64)
        return self._masks[r]

    def edge(self, r: int, hands: IntArray) -> FloatArray:
        """Edge of private `hands` over the opponent's, given the board of round `r`: see `kilt.cards.edges`."""
        rules, last = self.game.rules, self.game.rules.rounds - 1
        assert self.opponent is not None
        if hands is self.own_hand and 0 < r < last and r not in self._edges:
            if r not in self._edge:
                board, size = self.board_of(r), rules.board_size(last)
                self._edge[r] = edge(self.hole, self.opponent, board, rules.deck, board_size=size)
            return np.array([self._edge[r]])
        if r not in self._edges:
            self._edges[r] = edges_over(rules, self.opponent, self.board_of(r))
        return self._edges[r] if hands is self.all_hands else self._edges[r][hands]


def large(rules: GameDef) -> bool:
    """Whether public cards may come in more than `MANY` ways at once."""
    return any(comb(rules.deck.size, count) > MANY for count in rules.board_cards)


def hands_apart(rules: GameDef, cards: Sequence[int]) -> BoolArray:
    """[hand] Whether a private hand has none of some cards."""
    bits, card_bit = _bits(rules)
    return np.asarray(bits & sum(card_bit[card] for card in cards) == 0)


@lru_cache(maxsize=KEPT_EDGES)
def edges_over(rules: GameDef, opponent: tuple[int, ...], board: tuple[int, ...]) -> FloatArray:
    """[hand] Edge of every private hand over the opponent's, given the public cards so far; remembered for a while."""
    size = rules.board_size(rules.rounds - 1)
    if not board and size > 0:
        row: FloatArray = pair_edges(rules.deck, rules.hole_cards, size)[rules.deck.hole_index(opponent)]
        return -row  # the opponent's edge over each hand, with the other sign
    return edges(opponent, board, rules.deck, board_size=size)


@lru_cache(maxsize=16)
def _bits(rules: GameDef) -> tuple[IntArray, list[int]]:
    """[hand] and [card] as sets of cards."""
    return (
        hand_list(rules.deck, rules.hole_cards).bits,
        hand_tables(rules.hole_cards, rules.deck).card_bit.tolist(),
    )


ValueFunction: TypeAlias = Callable[[SeenHand, Betting, IntArray], FloatArray]


def money(seen: SeenHand, end: Betting, hands: IntArray) -> FloatArray:
    """[hand] Chips that the player wins at an end with each of some private hands.

    Parameters
    ----------
    seen : SeenHand
        Whose board and opponent's cards count.
    end : Betting
        Where the hand is over.
    hands : ndarray of int
        Numbers of private hands.

    Returns
    -------
    ndarray of float64, shape (hands,)
    """
    if end.folded is not None:
        return np.full(len(hands), folded_money(seen, end))
    return end.stake * seen.edge(end.round, hands)


def folded_money(seen: SeenHand, end: Betting) -> float:
    """Chips that the player wins where somebody has folded, whatever the cards."""
    return float(-end.stake if end.folded == seen.seat else end.stake)


def bet_call_divat(seen: SeenHand, end: Betting, hands: IntArray) -> FloatArray:
    """[hand] Chips that the player wins, less the luck of the cards if the rest of each hand went bet and call.

    Before any card is dealt both players stand alike: the mean of W is 0. Parameters as of `money`; the opponent's
    cards must be known.
    """
    value, before = money(seen, end, hands), np.zeros(len(hands))
    for r, level in enumerate(opening_levels(end.rules, end.history)):
        now = seen.edge(r, hands)
        value = value - bet_call_stake(end.rules, level, r) * (now - before)
        before = now
    return value


def divat(seen: SeenHand, end: Betting, hands: IntArray) -> FloatArray:
    """[hand] Chips that the player wins, less the luck of the cards if each round went as the baseline has it.

    Parameters as of `money`; the opponent's cards must be known.
    """
    value, hole = money(seen, end, hands), seen.hole if hands is seen.own_hand else None
    assert seen.opponent is not None
    for r, level in enumerate(opening_levels(end.rules, end.history)):
        luck = baseline_luck(end.rules, seen.seat, r, level, seen.opponent, hole, seen.board_of(r))
        value = value - (luck if hole or hands is seen.all_hands else luck[hands])
    return value


@lru_cache(maxsize=KEPT_LUCK)
def baseline_luck(
    rules: GameDef,
    seat: int,
    r: int,
    level: int,
    opponent: tuple[int, ...],
    hole: tuple[int, ...] | None,
    board: tuple[int, ...],
) -> FloatArray:
    """What the cards of round `r` brought by DIVAT's baseline, less the mean of it; remembered for a while.

    The mean is over all public cards that might have come, or over `DRAWN` of them, by a draw for each pair of private
    hands, where they are more than `MANY`. The draw has to do only with what is bet: the mean of a showdown for what
    was put in before is known.

    Parameters
    ----------
    rules : GameDef
        Of the game.
    seat : int
        Of the player.
    r, level : int
        The round, and the chips that each player has put in when it begins.
    opponent : tuple of int
        The opponent's private cards.
    hole : tuple of int, or None
        The player's private cards; None for all that there are.
    board : tuple of int
        The public cards up to round `r`.

    Returns
    -------
    ndarray of float64, shape (1,) or (hands,)
        Chips.
    """

    def worth(boards: IntArray, edge: FloatArray) -> FloatArray:
        ranks, first = board_ranks(rules, boards), rules.first_player[r] == seat
        mine = ranks if hole is None else ranks[:, [rules.deck.hole_index(hole)]]
        theirs = ranks[:, [rules.deck.hole_index(opponent)]]
        return baseline_values(rules, r, level, mine, theirs, edge, first=first)

    (value,) = worth(*_edges_on(rules, opponent, hole, [board])[:2])
    if r == 0:
        return np.asarray(value - mean_of_deals(rules, seat))
    before = board[: rules.board_size(r - 1)]
    boards, edge, free = _edges_on(rules, opponent, hole, _boards_after(rules, (*opponent, *(hole or ())), before, r))
    bets = (worth(boards, edge) - level * edge) * free
    (showdown,) = _edges_on(rules, opponent, hole, [before])[1]
    return np.asarray(value - level * showdown - bets.sum(axis=0) / np.maximum(free.sum(axis=0), 1))


def _boards_after(rules: GameDef, held: tuple[int, ...], before: tuple[int, ...], r: int) -> list[tuple[int, ...]]:
    """Boards of round `r` that may follow one when some cards are held: all, or some that are drawn."""
    rest = np.setdiff1d(np.arange(rules.deck.size), [*before, *held])
    count = rules.board_size(r) - len(before)
    if comb(len(rest), count) <= MANY:
        more = rest[subsets(len(rest), count)]
    else:
        rng = np.random.default_rng([r, *before, *held])
        more = np.array([rng.choice(rest, count, replace=False) for _ in range(DRAWN)])
    return [(*before, *cards) for cards in more.tolist()]


def _edges_on(
    rules: GameDef, opponent: tuple[int, ...], hole: tuple[int, ...] | None, boards: Sequence[tuple[int, ...]]
) -> tuple[IntArray, FloatArray, BoolArray]:
    """Boards as an array; [board, hand] edges over the opponent's hand, and whether a hand can be held there."""
    rows = np.array(boards, dtype=np.int64).reshape(len(boards), -1)
    if hole is None:
        free = np.array([hands_apart(rules, (*board, *opponent)) for board in boards])
        return rows, np.array([edges_over(rules, opponent, board) for board in boards]), free
    size = rules.board_size(rules.rounds - 1)
    if rows.shape[1] or not size:
        found = edge_on(hole, opponent, rows, rules.deck, board_size=size)
    else:
        found = edges_over(rules, opponent, ())[[rules.deck.hole_index(hole)]]
    return rows, found[:, None], np.ones((len(boards), 1), dtype=bool)


def bet_call_stake(rules: GameDef, level: int, r: int) -> int:
    """Chips at stake at the showdown if each round from `r` on has one bet, which is called.

    `level` is what each player has put in. A bet has the size of the round, in no-limit games that of half the pot.

    >>> from kilt.games.gamedef import ready_made
    >>> bet_call_stake(ready_made("leduc"), 1, 0)  # 1 + 2 + 4
    7
    """
    for later in range(r, rules.rounds):
        level = raised(rules, level, later) if rules.max_raises[later] else level
    return min(level, *rules.stacks)


@lru_cache(maxsize=1 << 16)
def opening_levels(rules: GameDef, history: str) -> tuple[int, ...]:
    """[round] Chips that each player has put in when a round begins, the largest blind in the first; up to the last.

    >>> from kilt.games.gamedef import ready_made
    >>> opening_levels(ready_made("leduc"), "rc/crc")
    (1, 3)
    """
    positions = positions_of(rules)
    moves = positions.moves(positions.replay(history))
    return (max(rules.blinds), *(max(before.spent) for before, action in moves if action == REVEAL))


VALUES: dict[str, ValueFunction] = {
    "money": money,
    "bc-divat": bet_call_divat,
    "divat": divat,
}
