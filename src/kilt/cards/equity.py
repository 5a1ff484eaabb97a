"""Compute hand strength: the chance of winning at showdown, with a tie as half a win.

HS, the strength of a hand on a complete board, is the probability of beating a hand drawn uniformly from those that the
opponent can hold; a tie counts half. One sort ranks all hands of a board, and the sums account exactly for cards that
block each other [Johanson16 §2.4]. On earlier rounds, the board is completed in all possible ways: the *distribution*
of HS over these roll-outs gives E[HS], E[HS²] and histograms with any number of bins, exactly.

>>> hs = hand_strength(FULL.cards("2c2d2hKsQs"))
>>> float(hs[FULL.hole_index(FULL.cards("2sAs"))])  # four of a kind: nothing beats it
1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards import equity_kernels as kernels
from kilt.cards import roll_out_kernels
from kilt.cards.boards import Boards, add_cards, hand_permutations, known_board, suit_symmetries
from kilt.cards.deck import FULL, Deck
from kilt.cards.equity_kernels import Columns, HandList, Ranking
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import RANK_MASK
from kilt.errors import CardError

BOARD_SIZE = 5
BOARD_SIZES = (0, 3, 4, 5)  # in hold'em
COMPARED_ONE_BY_ONE = 16  # up to this number of opponent's hands, compare each with all hands; else rank all


class Equity(NamedTuple):
    """A hand's probabilities of winning, tying and losing at showdown, which add up to 1."""

    win: float
    tie: float
    lose: float

    @property
    def equity(self) -> float:
        """The hand's expected share of the pot: P(win) + P(tie) / 2."""
        return self.win + self.tie / 2


class Completions(NamedTuple):
    """All ways to complete a board, up to suit isomorphism, with their weights."""

    boards: IntArray  # [way, card]
    weights: IntArray  # [way] number of boards that the board stands for
    classes: IntArray  # [hand] index of its class; hands of one class have the same results


@lru_cache
def hand_list(deck: Deck = FULL, hole_cards: int = 2) -> HandList:
    """Return all private hands of `count` cards as arrays for compiled code."""
    holes = deck.holes(hole_cards)
    with_card = [np.flatnonzero((holes == card).any(axis=1)) for card in range(deck.size)]
    return hands_as_arrays(holes, deck)._replace(with_card=np.array(with_card, dtype=np.uint16))


def hands_as_arrays(holes: ByteArray, deck: Deck = FULL) -> HandList:
    """Return the given private hands as arrays for compiled code.

    `holes` has shape (hands, cards), with the cards of each hand ascending.
    """
    tables = hand_tables(holes.shape[1], deck)
    rank_keys = (tables.card_key & RANK_MASK)[holes].sum(axis=1)
    ranks_key, ranks = np.unique(rank_keys, return_inverse=True)
    return HandList(
        cards=_columns(holes, deck),
        key=tables.card_key[holes].sum(axis=1),
        bits=tables.card_bit[holes].sum(axis=1),
        ranks=ranks.astype(np.uint16),
        ranks_key=ranks_key,
        with_card=np.empty((deck.size, 0), dtype=np.uint16),
    )


def cards_with_blanks(deck: Deck, hole_cards: int) -> int:
    """Return the size of a deck, including the blank cards for games with one private card.

    The kernels of `equity_kernels` expect two cards per hand, so each hand of one card gets a blank.
    """
    return deck.size if hole_cards == 2 else 2 * deck.size


def _columns(holes: ByteArray, deck: Deck) -> Columns:
    """Return the first and the second card of every hand as two arrays; blanks are numbered after the deck's cards."""
    first, *more = holes.T.astype(np.uint8)
    return np.ascontiguousarray(first), np.ascontiguousarray(more[0]) if more else first + np.uint8(deck.size)


def ranking_workspace(deck: Deck, hole_cards: int, board_size: int, hands: int | None = None) -> Ranking:
    """Allocate the scratch arrays of the kernel `rank_board`.

    They have room for `hands` hands; by default, for all hands of the deck.
    """
    hands = comb(deck.size, hole_cards) if hands is None else hands
    scale = hand_tables(board_size + hole_cards, deck).scale
    return Ranking(
        strength=np.empty(hands, dtype=np.int16),
        order=np.empty(hands, dtype=np.uint16),
        ends=np.empty(hands, dtype=np.uint16),
        cards=(np.empty(hands, dtype=np.uint8), np.empty(hands, dtype=np.uint8)),
        times=np.ones((3, hands), dtype=np.float32),
        weighted=np.zeros(1, dtype=np.bool_),
        sums=np.empty((2, hands)),
        by_card=np.empty(cards_with_blanks(deck, hole_cards)),
        marks=np.zeros(65 * -(-scale // 64), dtype=np.int64),
    )


def rank_hands(board: Sequence[int], deck: Deck = FULL, hole_cards: int = 2) -> Ranking:
    """Sort the possible hands on a complete board, from weakest to strongest.

    >>> ranking = rank_hands(FULL.cards("AsKsQsJsTs"))
    >>> len(ranking.order), len(ranking.ends)  # the board plays for everybody: one group
    (1081, 1)
    """
    _check_board(board, deck, len(board))
    _check_deck(deck, len(board), hole_cards)
    ranking = ranking_workspace(deck, hole_cards, len(board))
    tables = hand_tables(len(board) + hole_cards, deck)
    groups = kernels.rank_board(np.array(board, dtype=np.int64), hand_list(deck, hole_cards), tables, ranking)
    ends = ranking.ends[:groups]
    return ranking._replace(order=ranking.order[: ends[-1]], ends=ends)


def hand_strength(
    board: Sequence[int] = (),
    weights: FloatArray | None = None,
    deck: Deck = FULL,
    *,
    board_size: int = BOARD_SIZE,
    hole_cards: int = 2,
) -> FloatArray:
    """Return the strength of every hand, P(win) + P(tie) / 2, against an opponent's range [Johanson16 §5.2].

    Parameters
    ----------
    board : sequence of int
        Public cards. With fewer than `board_size` the result is E[HS], the mean over all ways to complete the board.
    weights : ndarray, shape (hands,), optional
        The opponent's range, as `Deck.range` returns it. By default, all possible hands are equally likely.
    deck : Deck
        The deck that numbers the cards.
    board_size : int
        Number of cards of a complete board.
    hole_cards : int
        Number of private cards.

    Returns
    -------
    ndarray of float64, shape (hands,)
        In the order of `Deck.holes`. NaN if a hand shares a card with the board, or if it leaves the opponent no hand
        (a weight below a billionth of the largest counts as none).

    >>> hs = hand_strength(FULL.cards("Ah7d2c"), FULL.range("KK,AK"))
    >>> round(float(hs[FULL.hole_index(FULL.cards("AsQs"))]), 4)
    0.4623
    """
    ways = complete_boards(board, deck, weights=weights, board_size=board_size, hole_cards=hole_cards)
    hands, tables = hand_list(deck, hole_cards), hand_tables(board_size + hole_cards, deck)
    reach = np.ones(len(hands.bits)) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    won, total = np.zeros(ways.classes.max() + 1), np.zeros(ways.classes.max() + 1)
    opponents = np.flatnonzero(reach).astype(np.uint16)
    if len(opponents) <= COMPARED_ONE_BY_ONE:
        single = np.zeros((2, len(opponents), len(reach)), dtype=np.int32)
        roll_out_kernels.count_wins_against_few(ways.boards, ways.weights, hands, opponents, tables, *single)
        sums = reach[opponents] @ np.where(hands.bits[opponents, None] & hands.bits == 0, single, 0)
        for out, by_hand in zip((won, total), sums, strict=True):
            np.add.at(out, ways.classes, by_hand)
    else:
        ranking = ranking_workspace(deck, hole_cards, board_size)
        roll_out_kernels.sum_showdowns(
            ways.boards, ways.weights, hands, ways.classes, tables, ranking, reach, won, total
        )
    # If all of the opponent's hands are blocked, rounding errors may leave a tiny weight: do not divide by it.
    met = total > 1e-9 * reach.max(initial=1e-300)
    return _ratio(won + total, 2 * total, met)[ways.classes]


def distribution(
    board: Sequence[int] = (), deck: Deck = FULL, *, board_size: int = BOARD_SIZE, hole_cards: int = 2
) -> IntArray:
    """Return how often each hand has each strength, over all ways to complete a board.

    Returns
    -------
    ndarray of int64, shape (hands, strengths)
        Numbers of ways. Column = 2·wins + ties against a uniform opponent; the last column is a certain win, so that HS
        is ``column / (columns − 1)``: 0/1980 to 1980/1980 with five of 52 cards on the board. Rows of hands that differ
        by suits alone are equal, and count the ways of all of them.

    >>> counts = distribution(FULL.cards("Ah7d2c5s"))
    >>> int(counts[FULL.hole_index(FULL.cards("AsAd"))].sum())  # the 46 cards this hand can see on the river
    46
    """
    ways = complete_boards(board, deck, board_size=board_size, hole_cards=hole_cards)
    opponents = comb(deck.size - board_size - hole_cards, hole_cards)
    counts = np.zeros((ways.classes.max() + 1, 2 * opponents + 1), dtype=np.int64)
    for start in range(0, len(ways.boards), 4096):
        some = slice(start, start + 4096)
        rows = strengths_on_boards(ways.boards[some], deck, hole_cards)
        roll_out_kernels.count_strengths(rows, ways.weights[some], ways.classes, counts)
    return counts[ways.classes]


def strengths_on_boards(boards: IntArray, deck: Deck = FULL, hole_cards: int = 2) -> npt.NDArray[np.int16]:
    """Return the strength of every hand on each of several complete boards.

    Strength is 2·wins + ties against all hands of the opponent. The shape is (boards, hands), with −1 for hands that
    share a card with the board.

    >>> rows = strengths_on_boards(np.array([FULL.cards("2c2d2hKsQs")]))
    >>> int(rows.max()), int((rows[0] >= 0).sum())
    (1980, 1081)
    """
    hands, tables = hand_list(deck, hole_cards), hand_tables(boards.shape[1] + hole_cards, deck)
    opponents = comb(deck.size - boards.shape[1] - hole_cards, hole_cards)
    rows = np.empty((len(boards), len(hands.bits)), dtype=np.int16)
    ranking = ranking_workspace(deck, hole_cards, boards.shape[1])
    roll_out_kernels.board_strengths_many(boards, hands, tables, ranking, opponents, rows)
    return rows


def mean_strength(counts: IntArray, power: int = 1) -> FloatArray:
    """Return each hand's mean strength E[HS] or, with ``power=2``, E[HS²], given a `strength_distribution`.

    The result is NaN for impossible hands.
    """
    hs = np.linspace(0.0, 1.0, counts.shape[-1])
    ways = counts.sum(axis=-1)
    return _ratio(counts @ hs**power, ways, ways > 0)


def strength_histogram(counts: IntArray, bins: int) -> FloatArray:
    """Return a histogram of each hand's strength with `bins` bins of equal width, given a `strength_distribution`.

    The shape is (hands, bins). A strength HS falls into bin ⌊HS·bins⌋, and HS = 1 into the last.
    """
    top = counts.shape[-1] - 1
    which = np.minimum(np.arange(top + 1) * bins // top, bins - 1)
    sums = np.stack([counts[..., which == b].sum(axis=-1) for b in range(bins)], axis=-1)
    ways = sums.sum(axis=-1, keepdims=True)
    return _ratio(sums, ways, ways > 0)


def complete_boards(
    board: Sequence[int],
    deck: Deck = FULL,
    *,
    weights: FloatArray | None = None,
    hand: Sequence[int] = (),
    board_size: int = BOARD_SIZE,
    hole_cards: int = 2,
) -> Completions:
    """Return all ways to complete a board. Boards that differ only by interchangeable suits are merged.

    Suits are interchangeable unless the board, the weights of a range or a known private hand distinguishes them.

    >>> len(complete_boards(FULL.cards("Ah7d2c")).boards), len(complete_boards(()).boards)
    (1176, 134459)
    """
    _check_board(board, deck, board_size)
    _check_deck(deck, board_size, hole_cards)
    moved = hand_permutations(deck, hole_cards)
    if weights is not None and len(weights) != moved.shape[1]:
        raise CardError(
            f"the range has {len(weights)} weights, but there are {moved.shape[1]} hands of {hole_cards} cards"
        )
    symmetry = suit_symmetries(deck, board, hand)
    if weights is not None:
        symmetry &= sum(1 << p for p in range(len(moved)) if np.array_equal(weights[moved[p]], weights))
    ways = _extended(tuple(board), symmetry, deck, board_size)
    alike = moved[[p for p in range(len(moved)) if symmetry >> p & 1]].min(axis=0)
    classes = np.unique(alike, return_inverse=True)[1]
    return Completions(ways.cards.astype(np.int64), ways.weight.astype(np.int64), classes)


@lru_cache(maxsize=2)  # all boards before the flop take a second
def _extended(board: tuple[int, ...], symmetry: int, deck: Deck, size: int) -> Boards:
    """Return all boards of `size` cards that extend `board`, up to the suit permutations in `symmetry`."""
    return add_cards(known_board(board, deck, symmetry), size - len(board), deck)


def parse_hand(text: str, board: Sequence[int] = (), deck: Deck = FULL) -> tuple[int, ...]:
    """Parse a hand of two cards, and check that it shares no card with the board.

    Raises CardError for a range, or if the hand shares a card with the board.

    >>> parse_hand("AA")
    Traceback (most recent call last):
        ...
    kilt.errors.CardError: AA is a range of 6 hands: give one hand first, such as AsKh, and then the range
    """
    hands = 0
    with suppress(CardError):  # most hands are no range
        hands = int(np.count_nonzero(deck.range(text)))
    if hands > 1:
        raise CardError(f"{text} is a range of {hands} hands: give one hand first, such as AsKh, and then the range")
    return deck.cards(text, 2, dead=board)


def hand_equity(
    hand: Sequence[int], opponent: Sequence[int] | FloatArray, board: Sequence[int] = (), deck: Deck = FULL
) -> Equity:
    """Return the equity of a two-card hand against another hand or a range, over all possible boards.

    Parameters
    ----------
    hand : sequence of int
        Two cards.
    opponent : sequence of int, or ndarray of shape (hands,)
        Two cards, or a range as `Deck.range` returns it.
    board : sequence of int
        Public cards: 0, 3, 4 or 5.
    deck : Deck
        The deck that numbers the cards.

    Returns
    -------
    Equity
        Probabilities to win, tie and lose.

    Raises
    ------
    CardError
        A card is used twice, the board has another number of cards, or the range has no hand that is possible with
        these cards.

    >>> result = hand_equity(FULL.cards("AsAh"), FULL.cards("KsKh"))
    >>> round(100 * result.equity, 2)
    82.64
    """
    if len(board) not in BOARD_SIZES:
        raise CardError(f"the board {deck.name(board)} has {len(board)} cards: a board of hold'em has 0, 3, 4 or 5")
    _check_board([*board, *hand], deck, BOARD_SIZE + 2)
    pairs = [hand, opponent] if len(opponent) <= 2 else [hand]
    for cards in pairs:
        if len(cards) != 2 or cards[0] == cards[1]:
            raise CardError(f"a hand has two different cards; this one is {[int(card) for card in cards]}")
    holes = deck.holes()
    weights = np.zeros(len(holes))
    if len(opponent) == 2:
        weights[deck.hole_index([int(card) for card in opponent])] = 1.0
    else:
        weights[:] = opponent
    weights[np.isin(holes, [*board, *hand]).any(axis=1)] = 0.0
    if not weights.any():
        raise CardError(
            f"the opponent has no hand left: all hands of the range hold a card of {deck.name([*hand, *board])}"
        )
    ways = complete_boards(board, deck, weights=weights, hand=hand)
    sums, strength = np.zeros(3), np.empty(len(holes), dtype=np.int16)
    hero, opponents = deck.hole_index(hand), np.flatnonzero(weights).astype(np.uint16)
    roll_out_kernels.count_results(
        ways.boards, ways.weights, hand_list(deck), hero, opponents, weights, hand_tables(7, deck), strength, sums
    )
    return Equity(*(float(x) for x in sums / sums.sum()))


def _ratio(part: npt.ArrayLike, whole: npt.ArrayLike, possible: npt.NDArray[np.bool_]) -> FloatArray:
    """Divide `part` by `whole` where `possible` is true; return NaN elsewhere."""
    quotient: FloatArray = np.full(np.shape(part), np.nan)
    return np.divide(part, whole, out=quotient, where=possible)


def _check_board(board: Sequence[int], deck: Deck, most: int) -> None:
    """Raise CardError unless the board has at most `most` cards of the deck, all different."""
    if any(not 0 <= card < deck.size for card in board):
        raise CardError(f"cards are numbered 0 to {deck.size - 1} in this deck; found {list(board)}")
    if len(board) > most:
        raise CardError(f"the board {deck.name(board)} has {len(board)} cards: at most {most} can be there")
    if len(set(board)) != len(board):
        raise CardError(f"a card is there twice in {deck.name(board)}: every card may be used once")


def _check_deck(deck: Deck, board_size: int, hole_cards: int) -> None:
    """Raise CardError if the deck has too few cards for two hands and a board."""
    needed = board_size + 2 * hole_cards
    if deck.size < needed:
        raise CardError(f"a deck of {deck.size} cards cannot deal two hands and the board: {needed} are needed")
