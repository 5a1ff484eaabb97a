"""Compute a player's winnings at the end of a hand, with or without variance reduction [Johanson16 §7.2.3].

`VALUES` lists the functions. A value function takes observed hands, an ending that they stand for, and whether it
applies to all private hands of the evaluated player or to those that were held; it returns chips. Money is the payoff
of the ending. DIVAT values reduce the variance of the cards: for any function W of the history,

    Ṽ(z) = u(z) − Σ (W(after) − E W)        over the chance events on the way to z

has the mean of u, since every term has mean 0 [Zinkevich06]. For BC-DIVAT, W is the value of the cards if each later
round has one bet, which is called: the stake times the edge of one hand over the other. For DIVAT, W is their
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
from kilt.evaluate.divat import baseline_values, board_ranks, mean_of_deals, stakes_after_raise
from kilt.games.game import REVEAL, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Betting, Holdem, positions_of
from kilt.play.agent import PolicyAgent, PublicPolicy
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand

KEPT_EDGES = 512  # maximum number of cached results of `showdown_edges`: enough for the hands of a chunk of a match
HANDS_PER_BATCH = 32  # maximum number of hands evaluated together, so that their arrays stay in the processor's cache
KEPT_LUCK = 4_096  # maximum number of cached results of `baseline_luck`: Leduc hold'em has fewer
MANY, DRAWN = 1_000, 8  # a mean over more than MANY boards to come uses DRAWN random ones


class HandValues(NamedTuple):
    """The value of each private hand, stored once for all hands of a class such as a bucket.

    Sums are over classes, which is faster than over hands.
    """

    table: FloatArray  # [class]; a single entry if all hands have the same value
    column: IntArray | None = None  # [hand] its class; None if each hand is a class, or all are one

    def weighted_sum(self, weights: FloatArray) -> float:
        """Return the sum of all hands' values, weighted by `weights`."""
        if len(self.table) == 1:
            return float(self.table[0]) * float(weights.sum())
        by_class = weights if self.column is None else np.bincount(self.column, weights, len(self.table))
        return float(by_class @ self.table)

    def action_sum(self, policy: PublicPolicy, action: str, weights: FloatArray, by_column: FloatArray) -> float:
        """Return the sum of all hands' values, weighted by `weights` and by each hand's probability of an action.

        `weights` has an entry for each hand. `by_column` has the sums of the weights over the columns of the policy:
        they suffice if the classes are these columns.
        """
        row = policy.table[policy.actions.index(action)]
        if len(self.table) == 1:
            return float(self.table[0]) * float(by_column @ row)
        if self.column is policy.column:
            return float((by_column * row) @ self.table)
        return self.weighted_sum(weights * row[policy.column])


class StateValues(Protocol):
    """Estimates of a player's winnings at each state of a hand, for variance reduction by AIVAT [Burch18].

    AIVAT is unbiased with any values; good ones reduce more variance.
    """

    def hand_values(
        self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]
    ) -> HandValues:
        """Return the expected winnings of each private hand, given the board and the opponent's cards.

        Hands that share a card with the board or the opponent have arbitrary values.
        """

    def values_after_deal(
        self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]
    ) -> FloatArray:
        """Return the value of each private hand before public cards are dealt: the exact mean over all cards.

        The values are those of `hand_values`, or payoffs if the hand is over.
        """

    def value_at_start(self, seat: int) -> float:
        """Return a player's exact expected winnings at the start of a hand, over all private cards.

        The values are those of `hand_values`.
        """


class LoggedHands:
    """Logged hands with the same betting and seat, for evaluation as one batch.

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
        """The number of private hands in the game, including hands blocked by known cards."""
        return len(self.game.holes)

    @cached_property
    def own_hands(self) -> IntArray:
        """The index of the player's private hand in each logged hand."""
        return np.array([self.game.deck.hole_index(hole) for hole in self.holes])

    @cached_property
    def their_hands(self) -> IntArray:
        """The index of the opponent's private hand in each logged hand.

        The opponent's cards must be known.
        """
        assert self.opponents is not None
        return np.array([self.game.deck.hole_index(hole) for hole in self.opponents])

    def shared_actions(self) -> tuple[tuple[Betting, str], ...]:
        """Return the actions that all these hands share, each with the position before it.

        Deals of public cards are included as ``/``.
        """
        return self.game.positions.moves_to(self.position)

    def after(self, position: Betting, action: str) -> Betting:
        """Return the position after an action."""
        return self.game.positions.after(position, action)

    def boards_in_round(self, r: int) -> list[tuple[int, ...]]:
        """Return the public cards of each logged hand in round `r`."""
        size = self.game.rules.board_size(r)
        return [board[:size] for board in self.boards]

    def policies(self, agent: PolicyAgent, position: Betting) -> list[PublicPolicy]:
        """Return an agent's strategy at a position, for the board of each logged hand.

        If there are no public cards yet, there is a single strategy.
        """
        boards = self.boards_in_round(position.round)
        boards = boards if boards[0] else boards[:1]
        if isinstance(agent, BlueprintAgent):
            return agent.policies(position, boards)
        return [agent.policy(position, board) for board in boards]

    def of_held_hands(self, by_hand: FloatArray) -> FloatArray:
        """Select the entries of the hands actually held, from an array over all private hands.

        The array is [1 or row, hand], the result [row].
        """
        found: FloatArray = by_hand[self._rows if len(by_hand) > 1 else 0, self.own_hands]
        return found

    def hand_weights(self, evaluated: FloatArray, played: FloatArray, r: int, *, all_cards: bool) -> FloatArray:
        """Return the importance weight of each private hand that the player may have held, in each logged hand.

        The weight is `evaluated` over the sum of `played` (7.20); both [1 or row, hand] are probabilities of reaching
        the state. Without `all_cards`, it is their ratio for the hand that was held, and 0 for others. The result is
        [row, hand].
        """
        if all_cards:
            free = self.possible_hands(r)
            weighed: FloatArray = evaluated * free
            weighed /= np.vecdot(played, free)[:, None]
            return weighed
        weights = np.zeros((len(self), self.hands))
        weights[self._rows, self.own_hands] = self.of_held_hands(evaluated) / self.of_held_hands(played)
        return weights

    def importance_weights(self, evaluated: FloatArray, played: FloatArray, r: int, *, all_cards: bool) -> FloatArray:
        """Return the importance weight of each logged hand, which corrects for the strategy that played it.

        It is the sum of `weights` over all private hands, and 1 if the strategy that played is the evaluated one.
        """
        if evaluated is played:
            return np.ones(len(self))
        if all_cards:
            free = self.possible_hands(r)
            return np.asarray(np.vecdot(evaluated, free) / np.vecdot(played, free))
        return self.of_held_hands(evaluated) / self.of_held_hands(played)

    def state_value(self, states: StateValues, position: Betting, row: int) -> HandValues:
        """Return the value of a state for each private hand of the player, in one logged hand.

        At the end of the hand, values are payoffs; before it, they are the estimates of `states`.
        """
        known = self._values.get((row, position.history))
        if known is None:
            assert self.opponents is not None
            if position.actor != TERMINAL:
                board = self.boards[row][: self.game.rules.board_size(position.round)]
                known = states.hand_values(position, board, self.seat, self.opponents[row])
            elif position.folded is not None:
                known = HandValues(np.array([folded_winnings(self, position)]))
            else:
                known = HandValues(position.stake * self.showdown_edge(position.round, all_cards=True)[row])
            self._values[row, position.history] = known
        return known

    def expected_value(self, states: StateValues, position: Betting, row: int) -> FloatArray:
        """Return each private hand's mean value over the public cards that may come next."""
        name = row, position.history + REVEAL
        if name not in self._means:
            assert self.opponents is not None
            board = self.boards[row][: self.game.rules.board_size(position.round)]
            self._means[name] = states.values_after_deal(position, board, self.seat, self.opponents[row])
        return self._means[name]

    def possible_hands(self, r: int) -> FloatArray:
        """Return a mask of possible private hands on a round's board: 1 if possible, else 0.

        A hand is impossible if it shares a card with the board or with the known cards of the opponent. The shape is
        (rows, hands).
        """
        if r not in self._free:
            theirs = self.opponents or [()] * len(self)
            seen = [(*board, *hole) for board, hole in zip(self.boards_in_round(r), theirs, strict=True)]
            self._free[r] = hands_without_cards(self.game.rules, seen).astype(np.float64)
        return self._free[r]

    def showdown_edge(self, r: int, *, all_cards: bool) -> FloatArray:
        """Return each hand's showdown edge, P(win) − P(loss), on the board of round `r`.

        The edge is that of `kilt.cards.edges`, over the opponents' hands. With `all_cards`, the result is [row, hand]
        for every private hand, otherwise [row] for the hand that was held.
        """
        rules, last = self.game.rules, self.game.rules.rounds - 1
        assert self.opponents is not None
        if not all_cards and 0 < r < last and r not in self._edges:
            if r not in self._held_edges:
                size, boards = rules.board_size(last), self.boards_in_round(r)
                deals = zip(self.holes, self.opponents, boards, strict=True)
                self._held_edges[r] = np.array([edge(*deal, rules.deck, board_size=size) for deal in deals])
            return self._held_edges[r]
        if r not in self._edges:
            others = zip(self.opponents, self.boards_in_round(r), strict=True)
            self._edges[r] = np.stack([showdown_edges(rules, *other) for other in others])
        return self._edges[r] if all_cards else self.of_held_hands(self._edges[r])


def group_by_betting(hands: Sequence[Hand], seats: Sequence[int]) -> Iterator[list[int]]:
    """Yield index arrays of hands with the same betting and seat, in batches of up to `HANDS_PER_BATCH`."""
    groups: dict[tuple[str, int], list[int]] = {}
    for number, (hand, seat) in enumerate(zip(hands, seats, strict=True)):
        groups.setdefault((hand.position.history, seat), []).append(number)
    for numbers in groups.values():
        yield from (numbers[start : start + HANDS_PER_BATCH] for start in range(0, len(numbers), HANDS_PER_BATCH))


def has_many_boards(rules: GameDef) -> bool:
    """Return whether a game has a round with more than `MANY` possible deals of public cards."""
    return any(comb(rules.deck.size, count) > MANY for count in rules.board_cards)


def hands_without_cards(rules: GameDef, cards: Sequence[Sequence[int]]) -> BoolArray:
    """Return which private hands share no card with each given set of cards.

    The shape is (sets, hands).
    """
    bits, card_bit = _bits(rules)
    sets = np.array([sum([card_bit[card] for card in some]) for some in cards], dtype=bits.dtype)
    return np.asarray(bits & sets[:, None] == 0)


@lru_cache(maxsize=KEPT_EDGES)
def showdown_edges(rules: GameDef, opponent: tuple[int, ...], board: tuple[int, ...]) -> FloatArray:
    """Return each private hand's edge, P(win) − P(loss), against the opponent's known hand.

    Results are cached. This is the edge of `kilt.cards.edges`, given the public cards so far.
    """
    size = rules.board_size(rules.rounds - 1)
    if not board and size > 0:
        row: FloatArray = pair_edges(rules.deck, rules.hole_cards, size)[rules.deck.hole_index(opponent)]
        return -row  # the opponent's edge over each hand, with the other sign
    return edges(opponent, board, rules.deck, board_size=size)


@lru_cache(maxsize=16)
def _bits(rules: GameDef) -> tuple[IntArray, list[int]]:
    """Return the cards of each hand, and each single card, as bit sets."""
    return (
        hand_list(rules.deck, rules.hole_cards).bits,
        hand_tables(rules.hole_cards, rules.deck).card_bit.tolist(),
    )


ValueFunction: TypeAlias = Callable[[LoggedHands, Betting, bool], FloatArray]


def winnings(seen: LoggedHands, end: Betting, all_cards: bool) -> FloatArray:
    """Return the evaluated player's winnings in chips if each logged hand ended at a given position.

    Parameters
    ----------
    seen : LoggedHands
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
        return np.full((len(seen), seen.hands) if all_cards else len(seen), folded_winnings(seen, end))
    return end.stake * seen.showdown_edge(end.round, all_cards=all_cards)


def folded_winnings(seen: LoggedHands, end: Betting) -> float:
    """Return the evaluated player's winnings in chips if one player folds."""
    return float(-end.stake if end.folded == seen.seat else end.stake)


def bet_call_divat(seen: LoggedHands, end: Betting, all_cards: bool) -> FloatArray:
    """Return the evaluated player's winnings in chips, with card luck removed by BC-DIVAT.

    The luck is measured as if each later round had one bet, which is called. Before the deal, neither player has an
    advantage: the mean of W is 0. Parameters as in `winnings`; the opponents' cards must be known.
    """
    value, before = winnings(seen, end, all_cards), np.zeros(1)
    for r, level in enumerate(opening_levels(end.rules, end.history)):
        now = seen.showdown_edge(r, all_cards=all_cards)
        value = value - bet_call_stake(end.rules, level, r) * (now - before)
        before = now
    return value


def divat(seen: LoggedHands, end: Betting, all_cards: bool) -> FloatArray:
    """Return the evaluated player's winnings in chips, with card luck removed by DIVAT.

    The luck is measured as if each round followed the baseline. Parameters as in `winnings`; the opponents' cards must
    be known.
    """
    value = winnings(seen, end, all_cards)
    assert seen.opponents is not None
    holes = [None] * len(seen) if all_cards else seen.holes
    for r, level in enumerate(opening_levels(end.rules, end.history)):
        deals = zip(seen.opponents, holes, seen.boards_in_round(r), strict=True)
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
    """Return a player's luck with the cards of one round, in chips, as DIVAT measures it.

    This is the amount by which the cards of round `r` change DIVAT's baseline value, minus its mean; results are
    cached. The mean is over all public cards that might have come, or, if they are more than `MANY`, over `DRAWN` of
    them, with one draw per pair of private hands. The draw affects only the bets of the round: the mean showdown value
    of earlier bets is known.

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
    """Return boards of round `r` that may follow an earlier board if some cards are held: all, or a sample."""
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
    """Return boards as an array, the edge of the player's hands over the opponent's, and which hands are possible.

    The last two are [board, hand].
    """
    rows = np.array(boards, dtype=np.int64).reshape(len(boards), -1)
    if hole is None:
        free = hands_without_cards(rules, [(*board, *opponent) for board in boards])
        return rows, np.array([showdown_edges(rules, opponent, board) for board in boards]), free
    size = rules.board_size(rules.rounds - 1)
    if rows.shape[1] or not size:
        found = edge_on(hole, opponent, rows, rules.deck, board_size=size)
    else:
        found = showdown_edges(rules, opponent, ())[[rules.deck.hole_index(hole)]]
    return rows, found[:, None], np.ones((len(boards), 1), dtype=bool)


def bet_call_stake(rules: GameDef, level: int, r: int) -> int:
    """Return each player's stake at showdown if every round from `r` on has one bet and one call.

    `level` is each player's number of chips in the pot. A bet has the size of the round, in no-limit games half the
    pot.

    >>> from kilt.games.gamedef import load_definition
    >>> bet_call_stake(load_definition("leduc"), 1, 0)  # 1 + 2 + 4
    7
    """
    for later in range(r, rules.rounds):
        level = stakes_after_raise(rules, level, later) if rules.max_raises[later] else level
    return min(level, *rules.stacks)


@lru_cache(maxsize=1 << 16)
def opening_levels(rules: GameDef, history: str) -> tuple[int, ...]:
    """Return each player's chips in the pot at the start of every round, given the betting history.

    In the first round, the chips are the largest blind.

    >>> from kilt.games.gamedef import load_definition
    >>> opening_levels(load_definition("leduc"), "rc/crc")
    (1, 3)
    """
    positions = positions_of(rules)
    moves = positions.moves_to(positions.replay(history))
    return (max(rules.blinds), *(max(before.spent) for before, action in moves if action == REVEAL))


VALUES: dict[str, ValueFunction] = {
    "money": winnings,
    "bc-divat": bet_call_divat,
    "divat": divat,
}
