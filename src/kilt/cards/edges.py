"""Compute a hand's edge: its chance of winning at showdown minus its chance of losing.

An edge is between −1 and 1, and equals twice the equity minus 1. Multiplied by the chips at stake, it is the expected
value of a showdown without further bets. All ways to complete the board are counted.

>>> leduc = Deck(3, 2)
>>> round(edge(leduc.cards("Kh"), leduc.cards("Qs"), deck=leduc, board_size=1), 6)  # Q on the board: 1 of 4
0.5
>>> edges(leduc.cards("Qs"), leduc.cards("Qh"), deck=leduc, board_size=1).tolist()  # a pair beats all
[0.0, 0.0, -1.0, -1.0, -1.0, -1.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from math import comb
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kilt import artifact, machine
from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards import edges_kernels as kernels
from kilt.cards.boards import hand_permutations
from kilt.cards.deck import FULL, Deck, subsets
from kilt.cards.equity import BOARD_SIZE, complete_boards, hand_list, hands_as_arrays
from kilt.cards.hands import hand_tables
from kilt.errors import ArtifactError

KIND = "edges of pairs of hands"
CACHED_FROM_HANDS = 100  # from this number of hands on, the table of all pairs is kept on disk
_BATCH = 1024  # boards per batch; a board's weight is at most 24, so a batch adds up to less than 2¹⁵


def edge(
    hand: Sequence[int],
    opponent: Sequence[int],
    board: Sequence[int] = (),
    deck: Deck = FULL,
    *,
    board_size: int = BOARD_SIZE,
) -> float:
    """Return the edge of one hand over another: P(win) − P(loss) over all possible boards.

    Parameters
    ----------
    hand, opponent : sequence of int
        Private cards of both players, all different.
    board : sequence of int
        Public cards.
    deck : Deck
        The deck that numbers the cards.
    board_size : int
        Number of cards of a complete board.

    Returns
    -------
    float
        From −1 to 1.
    """
    return float(edge_on(hand, opponent, np.array([board], dtype=np.int64), deck, board_size=board_size)[0])


def edge_on(
    hand: Sequence[int],
    opponent: Sequence[int],
    boards: IntArray,
    deck: Deck = FULL,
    *,
    board_size: int = BOARD_SIZE,
) -> FloatArray:
    """Return the edge of one hand over another, P(win) − P(loss), on each of several boards.

    `boards` has shape (boards, cards): all boards have the same number of cards. The result has shape (boards,).
    """
    left = np.ones((len(boards), deck.size), dtype=bool)
    left[:, [*hand, *opponent]] = False
    np.put_along_axis(left, boards, False, axis=1)
    rest = np.nonzero(left)[1].reshape(len(boards), -1)
    ways, won = _ways(rest.shape[1], board_size - boards.shape[1]), np.empty(len(boards), dtype=np.int64)
    pair = np.array([deck.hole_index(hand), deck.hole_index(opponent)])
    tables = hand_tables(board_size + len(hand), deck)
    kernels.pair_edges_on(boards, rest, ways, hand_list(deck, len(hand)), pair, tables, won)
    return won / len(ways)


def edges(
    opponent: Sequence[int], board: Sequence[int] = (), deck: Deck = FULL, *, board_size: int = BOARD_SIZE
) -> FloatArray:
    """Return the edge of every hand over one known hand, over all possible boards.

    Parameters
    ----------
    opponent : sequence of int
        Private cards of the one hand; all other hands have the same number.
    board : sequence of int
        Public cards, none of them the opponent's.
    deck : Deck
        The deck that numbers the cards.
    board_size : int
        Number of cards of a complete board.

    Returns
    -------
    ndarray of float64, shape (hands,)
        From −1 to 1, in the order of `Deck.holes`; 0 if a hand shares a card with the board or with the opponent.
    """
    left, hands, other = board_size - len(board), hand_list(deck, len(opponent)), deck.hole_index(opponent)
    cards, boards = deck.size - len(opponent) - len(board), np.array([board], dtype=np.int64)
    if left:
        rest, ways = _rest(deck, [*opponent, *board]), _ways(cards, left)
        boards = np.hstack([boards.repeat(len(ways), axis=0), rest[ways]])
    won = np.zeros(len(hands.bits), dtype=np.int32)
    strength = np.empty(len(won), dtype=np.int16)
    kernels.add_edges(boards, hands, other, hand_tables(board_size + len(opponent), deck), strength, won)
    won[hands.with_card[list(opponent)]] = 0
    return won / comb(cards - len(opponent), left)


@lru_cache(maxsize=4)
def pair_edges(deck: Deck = FULL, hole_cards: int = 2, board_size: int = BOARD_SIZE) -> FloatArray:
    """Return the preflop edge of every hand over every other hand: P(win) − P(loss).

    The shape is (hands, hands), with 0 for hands that share a card. The table of the full deck takes half a minute to
    compute, and is kept in the cache folder.
    """
    if comb(deck.size, hole_cards) < CACHED_FROM_HANDS:
        return _pair_edges(deck, hole_cards, board_size)
    name = artifact.fingerprint(KIND, f"{deck.ranks} {deck.suits} {hole_cards} {board_size}")
    place = machine.cache_folder() / f"edges-{name}"
    with suppress(ArtifactError):
        return _kept(place)
    with artifact.exclusive_access(place, wait=True):  # another process may be computing it
        try:
            return _kept(place)
        except ArtifactError:
            table = _pair_edges(deck, hole_cards, board_size)
            artifact.write(place, KIND, {"edges": table})
            return table


def _kept(place: Path) -> FloatArray:
    """Read the table of `pair_edges` from the cache folder; raise ArtifactError if it is missing or damaged."""
    return np.asarray(artifact.read(place, KIND, check=True).arrays["edges"])


def deal_edges(
    cards: IntArray, pairs: IntArray, size: int, deck: Deck = FULL, *, board_size: int = BOARD_SIZE
) -> npt.NDArray[np.float32]:
    """Return player 0's edge in each of many deals, given the first `size` public cards.

    Parameters
    ----------
    cards : ndarray of int64, shape (deals, cards)
        Private cards of player 0, of player 1, then all public cards.
    pairs : ndarray of int64, shape (deals, 2)
        Indices of both hands in `Deck.holes`.
    size : int
        Number of public cards that are known; later ones are averaged over.
    deck : Deck
        The deck that numbers the cards.
    board_size : int
        Number of cards of a complete board.

    Returns
    -------
    ndarray of float32, shape (deals,)
        From −1 to 1.
    """
    held = (cards.shape[1] - board_size) // 2
    if size == 0:
        return pair_edges(deck, held, board_size)[pairs[:, 0], pairs[:, 1]].astype(np.float32)
    left = deck.size - 2 * held - size
    tables, hands = hand_tables(board_size + held, deck), hand_list(deck, held)
    edge = np.empty(len(cards), dtype=np.float32)
    rest = np.empty(deck.size, dtype=np.int64)
    kernels.deal_edges(cards, held, size, _ways(left, board_size - size), hands, pairs, tables, rest, edge)
    return edge


def sum_edges(boards: IntArray, holes: ByteArray, deck: Deck = FULL) -> IntArray:
    """Return wins minus losses of every hand against every other, summed over complete boards.

    Parameters
    ----------
    boards : ndarray of int64, shape (boards, cards)
        Complete boards.
    holes : ndarray of int8, shape (hands, cards)
        The private hands.
    deck : Deck
        The deck that numbers the cards.

    Returns
    -------
    ndarray of int64, shape (hands, hands)
        Row: the first hand, column: its opponent. A board that has a card of either hand does not count. Hands that
        share a card with each other are counted as if they did not.
    """
    hands, tables = hands_as_arrays(holes, deck), hand_tables(boards.shape[1] + holes.shape[1], deck)
    won = np.zeros((len(holes), len(holes)), dtype=np.int64)
    strength, sums = np.empty((_BATCH, len(holes)), dtype=np.int16), np.empty(len(holes), dtype=np.int16)
    weights = np.ones(len(boards), dtype=np.int64)
    for start in range(0, len(boards), _BATCH):
        some = slice(start, start + _BATCH)
        kernels.add_pairs(boards[some], weights[some], hands, tables, strength, sums, won)
    return won - won.T


def _pair_edges(deck: Deck, hole_cards: int, board_size: int) -> FloatArray:
    """Compute the table of `pair_edges` from canonical boards, as the mean over all suit permutations."""
    ways = complete_boards((), deck, board_size=board_size, hole_cards=hole_cards)
    hands, tables = hand_list(deck, hole_cards), hand_tables(board_size + hole_cards, deck)
    count = len(hands.bits)

    def work(starts: Sequence[int]) -> IntArray:
        won = np.zeros((count, count), dtype=np.int64)
        strength, sums = np.empty((_BATCH, count), dtype=np.int16), np.empty(count, dtype=np.int16)
        for start in starts:
            some = slice(start, start + _BATCH)
            kernels.add_pairs(ways.boards[some], ways.weights[some], hands, tables, strength, sums, won)
        return won

    starts = range(0, len(ways.boards), _BATCH)
    with ThreadPoolExecutor(2) as pool:
        won = sum(pool.map(work, (starts[::2], starts[1::2])))
    won = np.asarray(won) - np.asarray(won).T
    moved = hand_permutations(deck, hole_cards)
    total = sum(won[np.ix_(to, to)] for to in moved)
    apart = hands.bits[:, None] & hands.bits == 0
    return np.asarray(np.where(apart, total, 0) / (len(moved) * comb(deck.size - 2 * hole_cards, board_size)))


def _rest(deck: Deck, used: Sequence[int]) -> IntArray:
    """Return the cards of the deck that are not in `used`, in ascending order."""
    left = np.ones(deck.size, dtype=bool)
    left[list(used)] = False
    return np.flatnonzero(left)


_ways: Callable[[int, int], ByteArray] = lru_cache(maxsize=64)(subsets)
