"""Values of the end of a hand, with or without variance reduction [Johanson16 §7.2.3]: `VALUES` lists them.

A value function takes observed hands, an ending that they stand for, and whether it applies to all private hands of the
evaluated player or to those that were held; it returns chips. Money is the payoff of the ending. DIVAT values reduce
the variance of the cards: for any function W of the history,

    Ṽ(z) = u(z) − Σ (W(after) − E W)        over the chance events on the way to z

has the mean of u, since every term has mean 0 [Zinkevich06]. For BC-DIVAT, W is the value of the cards if each round
from here on has one bet, which is called: the stake times the edge of one hand over the other. For DIVAT, W is their
value if the round follows a baseline, in which better hands raise and poor ones fold: see `kilt.evaluate.divat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from kilt.play.agent import KnownAgent, PublicPolicy
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand

KEPT_EDGES = 512  # cached edges of all hands over one: those of the hands of a chunk of a match
TOGETHER = 32  # hands that are evaluated together, at most, so that their arrays stay in the processor's cache
KEPT_LUCK = 4_096  # cached values of DIVAT: all that Leduc hold'em has
MANY, DRAWN = 1_000, 8  # a mean over more than MANY boards to come uses DRAWN random ones


class HandValues(NamedTuple):
    """A value for each private hand; hands of a class, such as a bucket, share it, so sums are over classes."""

    table: FloatArray  # [class]; a single entry if all hands have the same value
    column: IntArray | None = None  # [hand] its class; None if each hand is a class, or all are one

    def times(self, weights: FloatArray) -> float:
        """Sum over all hands of their values times `weights` [hand]."""
        if len(self.table) == 1:
            return float(self.table[0]) * float(weights.sum())
        by_class = weights if self.column is None else np.bincount(self.column, weights, len(self.table))
        return float(by_class @ self.table)

    def mixed(self, policy: PublicPolicy, action: str, weights: FloatArray, by_column: FloatArray) -> float:
        """Sum over all hands of value times `weights` [hand] times the probability that the hand takes an action.

        `by_column` has the sums of the weights over the columns of the policy: they suffice if the classes are these
        columns.
        """
        row = policy.table[policy.actions.index(action)]
        if len(self.table) == 1:
            return float(self.table[0]) * float(by_column @ row)
        if self.column is policy.column:
            return float((by_column * row) @ self.table)
        return self.times(weights * row[policy.column])


class StateValues(Protocol):
    """Estimated values of non-terminal states: any values are unbiased, good ones reduce more variance [Burch18]."""

    def classed(self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]) -> HandValues:
        """Expected chips of the player in `seat` with each private hand, against the `opponent`'s cards.

        Hands that share a card with the board or the opponent have arbitrary values.
        """

    def expected(self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]) -> FloatArray:
        """Exact mean of `classed`, or of the payoff, after the next public cards, for each hand."""

    def start(self, seat: int) -> float:
        """Exact mean of `classed` over all deals of private cards, before the first action."""


class SeenHands:
    """Hands of a log with the same betting and the same seat of the evaluated player, which are evaluated together.

    Arrays over all private hands of the player have a row for each hand of the log, or a single row if all are equal:
    [1 or row, hand].

    Parameters
    ----------
    game : Holdem
        The rules.
    hands : sequence of Hand
        At least one, all with the same betting.
    seat : int
        Seat of the evaluated player.
    partial : bool
        Whether the opponent's cards are known at a showdown only.
    """

    def __init__(self, game: Holdem, hands: Sequence[Hand], seat: int, *, partial: bool = False) -> None:
        self.game, self.seat, self.position = game, seat, hands[0].position
        self.boards = [hand.board for hand in hands]
        self.holes = [hand.cards.holes[seat] for hand in hands]
        hidden = partial and self.position.folded is not None
        self.opponents = None if hidden else [hand.cards.holes[1 - seat] for hand in hands]
        self._rows = np.arange(len(hands))
        self._values: dict[tuple[int, str], HandValues] = {}
        self._means: dict[tuple[int, str], FloatArray] = {}
        self._free: dict[int, FloatArray] = {}
        self._edges: dict[int, FloatArray] = {}
        self._held_edges: dict[int, FloatArray] = {}

    def __len__(self) -> int:
        return len(self.boards)

    @property
    def hands(self) -> int:
        """Number of all private hands, impossible ones included."""
        return len(self.game.holes)

    @cached_property
    def own(self) -> IntArray:
        """The index of the private hand that the player held, for each row."""
        return np.array([self.game.deck.hole_index(hole) for hole in self.holes])

    @cached_property
    def their_hands(self) -> IntArray:
        """The index of the opponent's private hand, for each row; requires known cards."""
        assert self.opponents is not None
        return np.array([self.game.deck.hole_index(hole) for hole in self.opponents])

    def moves(self) -> tuple[tuple[Betting, str], ...]:
        """Each action of the hands with the position before it; chance's ``/`` is included."""
        return self.game.positions.moves(self.position)

    def after(self, position: Betting, action: str) -> Betting:
        """Return the position after an action."""
        return self.game.positions.after(position, action)

    def boards_of(self, r: int) -> list[tuple[int, ...]]:
        """The public cards of each row up to round `r`."""
        size = self.game.rules.board_size(r)
        return [board[:size] for board in self.boards]

    def policies(self, agent: KnownAgent, position: Betting) -> list[PublicPolicy]:
        """The strategy of an agent at a position of the hands, [1 or row]."""
        boards = self.boards_of(position.round)
        boards = boards if boards[0] else boards[:1]
        if isinstance(agent, BlueprintAgent):
            return agent.policies(position, boards)
        return [agent.policy(position, board) for board in boards]

    def held(self, by_hand: FloatArray) -> FloatArray:
        """The entries of an array [1 or row, hand] for the private hand that the player held, [row]."""
        found: FloatArray = by_hand[self._rows if len(by_hand) > 1 else 0, self.own]
        return found

    def weights(self, judged: FloatArray, played: FloatArray, r: int, *, all_cards: bool) -> FloatArray:
        """Weights of private hands at a state of round `r`, [row, hand]: `judged` over the sum of `played` (7.20).

        Both are [1 or row, hand] reach probabilities. Without `all_cards`, the weight is their ratio for the hand that
        was held.
        """
        if all_cards:
            free = self.free(r)
            weighed: FloatArray = judged * free
            weighed /= np.vecdot(played, free)[:, None]
            return weighed
        weights = np.zeros((len(self), self.hands))
        weights[self._rows, self.own] = self.held(judged) / self.held(played)
        return weights

    def weight(self, judged: FloatArray, played: FloatArray, r: int, *, all_cards: bool) -> FloatArray:
        """The sum of `weights` over all private hands, [row]: 1 if the strategy that played is the evaluated one."""
        if judged is played:
            return np.ones(len(self))
        if all_cards:
            free = self.free(r)
            return np.asarray(np.vecdot(judged, free) / np.vecdot(played, free))
        return self.held(judged) / self.held(played)

    def state_value(self, states: StateValues, position: Betting, row: int) -> HandValues:
        """Value of a state of one of the hands: its payoff if it is terminal, otherwise the value in `states`."""
        known = self._values.get((row, position.history))
        if known is None:
            assert self.opponents is not None
            if position.actor != TERMINAL:
                board = self.boards[row][: self.game.rules.board_size(position.round)]
                known = states.classed(position, board, self.seat, self.opponents[row])
            elif position.folded is not None:
                known = HandValues(np.array([folded_money(self, position)]))
            else:
                known = HandValues(position.stake * self.edge(position.round, all_cards=True)[row])
            self._values[row, position.history] = known
        return known

    def expected_value(self, states: StateValues, position: Betting, row: int) -> FloatArray:
        """Mean value after the next public cards, for each private hand, at a state of one of the hands."""
        name = row, position.history + REVEAL
        if name not in self._means:
            assert self.opponents is not None
            board = self.boards[row][: self.game.rules.board_size(position.round)]
            self._means[name] = states.expected(position, board, self.seat, self.opponents[row])
        return self._means[name]

    def free(self, r: int) -> FloatArray:
        """1 if the player can hold a hand, 0 if a card is on the board of round `r` or the opponent's: [row, hand]."""
        if r not in self._free:
            theirs = self.opponents or [()] * len(self)
            seen = [(*board, *hole) for board, hole in zip(self.boards_of(r), theirs, strict=True)]
            self._free[r] = hands_apart(self.game.rules, seen).astype(np.float64)
        return self._free[r]

    def edge(self, r: int, *, all_cards: bool) -> FloatArray:
        """Edges over the opponent's hands, given the boards of round `r`: see `kilt.cards.edges`.

        Returns [row, hand] for every private hand with `all_cards`, otherwise [row] for the hand that was held.
        """
        rules, last = self.game.rules, self.game.rules.rounds - 1
        assert self.opponents is not None
        if not all_cards and 0 < r < last and r not in self._edges:
            if r not in self._held_edges:
                size, deals = rules.board_size(last), zip(self.holes, self.opponents, self.boards_of(r), strict=True)
                self._held_edges[r] = np.array([edge(*deal, rules.deck, board_size=size) for deal in deals])
            return self._held_edges[r]
        if r not in self._edges:
            others = zip(self.opponents, self.boards_of(r), strict=True)
            self._edges[r] = np.stack([edges_over(rules, *other) for other in others])
        return self._edges[r] if all_cards else self.held(self._edges[r])


def alike(hands: Sequence[Hand], seats: Sequence[int]) -> Iterator[list[int]]:
    """Yield index arrays of hands with the same betting and seat, at most `TOGETHER` at a time."""
    groups: dict[tuple[str, int], list[int]] = {}
    for number, (hand, seat) in enumerate(zip(hands, seats, strict=True)):
        groups.setdefault((hand.position.history, seat), []).append(number)
    for numbers in groups.values():
        yield from (numbers[start : start + TOGETHER] for start in range(0, len(numbers), TOGETHER))


def large(rules: GameDef) -> bool:
    """Whether a round can deal its public cards in more than `MANY` ways."""
    return any(comb(rules.deck.size, count) > MANY for count in rules.board_cards)


def hands_apart(rules: GameDef, cards: Sequence[Sequence[int]]) -> BoolArray:
    """Whether a private hand has none of the cards of each set, [set, hand]."""
    bits, card_bit = _bits(rules)
    sets = np.array([sum([card_bit[card] for card in some]) for some in cards], dtype=bits.dtype)
    return np.asarray(bits & sets[:, None] == 0)


@lru_cache(maxsize=KEPT_EDGES)
def edges_over(rules: GameDef, opponent: tuple[int, ...], board: tuple[int, ...]) -> FloatArray:
    """Edge of every private hand over the opponent's, given the public cards so far; cached."""
    size = rules.board_size(rules.rounds - 1)
    if not board and size > 0:
        row: FloatArray = pair_edges(rules.deck, rules.hole_cards, size)[rules.deck.hole_index(opponent)]
        return -row  # the opponent's edge over each hand, with the other sign
    return edges(opponent, board, rules.deck, board_size=size)


@lru_cache(maxsize=16)
def _bits(rules: GameDef) -> tuple[IntArray, list[int]]:
    """Cards of each hand, and each card, as bit sets."""
    return (
        hand_list(rules.deck, rules.hole_cards).bits,
        hand_tables(rules.hole_cards, rules.deck).card_bit.tolist(),
    )


ValueFunction: TypeAlias = Callable[[SeenHands, Betting, bool], FloatArray]


def money(seen: SeenHands, end: Betting, all_cards: bool) -> FloatArray:
    """Chips that the player wins at an ending.

    Parameters
    ----------
    seen : SeenHands
        The hands, with boards and opponents' cards.
    end : Betting
        A terminal position.
    all_cards : bool
        Whether to evaluate every private hand, or the one that was held.

    Returns
    -------
    ndarray of float64, shape (rows, hands) with all cards, else (rows,)
    """
    if end.folded is not None:
        return np.full((len(seen), seen.hands) if all_cards else len(seen), folded_money(seen, end))
    return end.stake * seen.edge(end.round, all_cards=all_cards)


def folded_money(seen: SeenHands, end: Betting) -> float:
    """Chips that the player wins if a player has folded, whatever the cards."""
    return float(-end.stake if end.folded == seen.seat else end.stake)


def bet_call_divat(seen: SeenHands, end: Betting, all_cards: bool) -> FloatArray:
    """Chips that the player wins, minus the luck of the cards if the rest of each hand went bet and call.

    Before the deal, neither player has an advantage: the mean of W is 0. Parameters as in `money`; the opponents' cards
    must be known.
    """
    value, before = money(seen, end, all_cards), np.zeros(1)
    for r, level in enumerate(opening_levels(end.rules, end.history)):
        now = seen.edge(r, all_cards=all_cards)
        value = value - bet_call_stake(end.rules, level, r) * (now - before)
        before = now
    return value


def divat(seen: SeenHands, end: Betting, all_cards: bool) -> FloatArray:
    """Chips that the player wins, minus the luck of the cards if each round followed the baseline.

    Parameters as in `money`; the opponents' cards must be known.
    """
    value = money(seen, end, all_cards)
    assert seen.opponents is not None
    holes = [None] * len(seen) if all_cards else seen.holes
    for r, level in enumerate(opening_levels(end.rules, end.history)):
        deals = zip(seen.opponents, holes, seen.boards_of(r), strict=True)
        luck = np.stack([baseline_luck(end.rules, seen.seat, r, level, *deal) for deal in deals])
        value = value - (luck if all_cards else luck[:, 0])
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
    """Change of DIVAT's baseline value by the cards of round `r`, minus its mean; cached.

    The mean is over all public cards that might have come, or, if they are more than `MANY`, over `DRAWN` of them, with
    one draw per pair of private hands. The draw affects only the bets of the round: the mean showdown value of earlier
    bets is known.

    Parameters
    ----------
    rules : GameDef
        Rules of the game.
    seat : int
        Seat of the player.
    r, level : int
        The round, and the chips of each player in the pot when it begins.
    opponent : tuple of int
        The opponent's private cards.
    hole : tuple of int, or None
        The player's private cards; None for all hands.
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
    """Boards of round `r` that may follow another if some cards are held: all, or a sample."""
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
    """Boards as an array, edges over the opponent's hand, and whether a hand is possible, [board, hand]."""
    rows = np.array(boards, dtype=np.int64).reshape(len(boards), -1)
    if hole is None:
        free = hands_apart(rules, [(*board, *opponent) for board in boards])
        return rows, np.array([edges_over(rules, opponent, board) for board in boards]), free
    size = rules.board_size(rules.rounds - 1)
    if rows.shape[1] or not size:
        found = edge_on(hole, opponent, rows, rules.deck, board_size=size)
    else:
        found = edges_over(rules, opponent, ())[[rules.deck.hole_index(hole)]]
    return rows, found[:, None], np.ones((len(boards), 1), dtype=bool)


def bet_call_stake(rules: GameDef, level: int, r: int) -> int:
    """Chips at stake at the showdown if each round from `r` on has one bet, which is called.

    `level` is each player's number of chips in the pot. A bet has the size of the round, in no-limit games half the
    pot.

    >>> from kilt.games.gamedef import ready_made
    >>> bet_call_stake(ready_made("leduc"), 1, 0)  # 1 + 2 + 4
    7
    """
    for later in range(r, rules.rounds):
        level = raised(rules, level, later) if rules.max_raises[later] else level
    return min(level, *rules.stacks)


@lru_cache(maxsize=1 << 16)
def opening_levels(rules: GameDef, history: str) -> tuple[int, ...]:
    """Chips of each player in the pot at the beginning of each round of a history; in the first, the largest blind.

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
