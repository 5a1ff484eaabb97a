"""Compiled loops that index pairs of a hand and a board, and look up their buckets."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.cards.boards_kernels import BoardIndex, find_canonical_board, number_hands
from kilt.jit import kernel, kernel_of_slices

# Working memory of kernels: the number of each hand on a board. They take it from the caller, since a kernel that makes
# arrays counts references, and then takes twice as long to compile.
Numbers: TypeAlias = npt.NDArray[np.int32]


class HoldingIndex(NamedTuple):
    """Look-up tables that map a dealt board to its canonical board, and rename the suits of hands to match."""

    boards: BoardIndex
    moved: npt.NDArray[np.int32]  # [permutation, hand]


class HoldingTables(NamedTuple):
    """Arrays for indexing pairs of a hand and a board in compiled code, up to suit isomorphism."""

    boards: BoardIndex
    moved: npt.NDArray[np.int32]  # [permutation, hand]
    cards: IntArray  # [board, card]
    symmetry: npt.NDArray[np.int32]  # [board] bit mask of the suit permutations that map it to itself
    first: IntArray  # [board + 1] the number of the board's first holding
    bits: IntArray  # [hand] its set of cards
    card_bit: IntArray  # [card] the bit set of that card alone


@kernel
def number_board(t: HoldingTables, board: int, numbers: npt.NDArray[np.int32]) -> int:
    """Index the hands on a canonical board. Hands that differ only by suits may share an index.

    Writes each hand's number to `numbers`, from 0 on, and −1 if the hand shares a card with the board. Returns how many
    numbers there are.
    """
    held = np.int64(0)
    for card in t.cards[board]:
        held |= t.card_bit[card]
    count: int = number_hands(t.bits, held, t.symmetry[board], t.moved, numbers)
    return count


@kernel
def prepare_board(
    t: HoldingTables, board: int, numbers: npt.NDArray[np.int32], held_by: IntArray, rest: IntArray
) -> int:
    """Index the hands on a canonical board, and list the cards that remain in the deck.

    `held_by` gets one hand of each number, and `rest` the cards. Returns how many numbers there are.
    """
    count: int = number_board(t, board, numbers)
    held = np.int64(0)
    for card in t.cards[board]:
        held |= t.card_bit[card]
    for hand in range(len(numbers) - 1, -1, -1):
        if numbers[hand] >= 0:
            held_by[numbers[hand]] = hand
    left = 0
    for card in range(len(t.card_bit)):
        if not held & t.card_bit[card]:
            rest[left] = card
            left += 1
    return count


@kernel
def count_holdings(t: HoldingTables, numbers: Numbers, first: IntArray) -> None:
    """Count the different hands on each board, and write the running totals to `first`.

    Hands that differ only by suits count once. The entry of a board is the total of all boards before it.
    """
    first[0] = 0
    for board in range(len(t.symmetry)):
        first[board + 1] = first[board] + number_board(t, board, numbers)


@kernel
def number_dealt_board(t: HoldingTables, cards: IntArray, canonical: Numbers, numbers: IntArray) -> int:
    """Index the hands on a dealt board, and return the index of its canonical board.

    Returns the index of the canonical board. Writes the number of each hand to `numbers`, and −1 if the hand shares a
    card with the board.
    """
    board, turned = find_canonical_board(t.boards, cards)
    number_board(t, board, canonical)
    first = t.first[board]
    for hand in range(len(numbers)):
        number = canonical[t.moved[turned, hand]]
        numbers[hand] = first + number if number >= 0 else -1
    found: int = board
    return found


@kernel
def find_holdings(t: HoldingTables, start: int, end: int, other: HoldingTables, rows: IntArray) -> None:
    """Find the index that each hand on a board had in an earlier round.

    `other` numbers the pairs of a hand and a board of that round; the cards of these boards are a set.
    """
    size = other.cards.shape[1]
    numbers = np.empty(len(t.bits), dtype=np.int32)
    canonical, there = np.empty(len(t.bits), dtype=np.int32), np.empty(len(t.bits), dtype=np.int64)
    base = t.first[start]
    for board in range(start, end):
        number_board(t, board, numbers)
        number_dealt_board(other, t.cards[board, :size], canonical, there)
        at = t.first[board] - base
        for hand in range(len(numbers)):
            if numbers[hand] >= 0:
                rows[at + numbers[hand]] = there[hand]


@kernel
def find_buckets(
    t: HoldingTables,
    start: int,
    end: int,
    other: HoldingTables,
    table: npt.NDArray[Any],
    buckets: npt.NDArray[np.int32],
) -> None:
    """Look up the bucket that each hand on the given boards had in an earlier round."""
    size = other.cards.shape[1]
    numbers = np.empty(len(t.bits), dtype=np.int32)
    base = t.first[start]
    for board in range(start, end):
        number_board(t, board, numbers)
        before, turned = find_canonical_board(other.boards, t.cards[board, :size])
        moved = other.moved[turned]
        at = t.first[board] - base
        for hand in range(len(numbers)):
            if numbers[hand] >= 0:
                buckets[at + numbers[hand]] = table[before, moved[hand]]


@kernel
def weigh_holdings(t: HoldingTables, start: int, end: int, ways: IntArray, numbers: Numbers, weights: IntArray) -> None:
    """Count the deals that each hand on the given boards stands for.

    These deals differ only by suits.

    The counts are added to `weights`.
    """
    for board in range(start, end):
        number_board(t, board, numbers)
        at = t.first[board] - t.first[start]
        for hand in range(len(numbers)):
            if numbers[hand] >= 0:
                weights[at + numbers[hand]] += ways[board]


@kernel
def fill_bucket_table(
    t: HoldingTables, start: int, end: int, buckets: npt.NDArray[np.int32], numbers: Numbers, table: npt.NDArray[Any]
) -> None:
    """Fill a table with the bucket of every hand: one row per board, one column per hand."""
    for board in range(start, end):
        number_board(t, board, numbers)
        at = t.first[board] - t.first[start]
        for hand in range(len(numbers)):
            if numbers[hand] >= 0:
                table[board, hand] = buckets[at + numbers[hand]]


@kernel
def look_up_buckets(
    index: HoldingIndex, table: npt.NDArray[Any], boards: IntArray, buckets: npt.NDArray[np.int32]
) -> np.int64:
    """Look up the bucket of every hand on the given boards. Returns the largest bucket.

    Buckets are written to `buckets`.

    Entries of hands that share a card with the board are undefined.
    """
    most = table[0, 0]
    for b in range(len(boards)):
        board, turned = find_canonical_board(index.boards, boards[b])
        row, moved = table[board], index.moved[turned]
        for hand in range(len(row)):  # in the order of the row, so that the compiler handles many at once
            if row[hand] > most:
                most = row[hand]
        for hand in range(buckets.shape[1]):
            buckets[b, hand] = row[moved[hand]]
    return np.int64(most)


@kernel_of_slices
def look_up_dealt_hands(
    index: HoldingIndex, table: npt.NDArray[Any], boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32]
) -> np.int64:
    """Look up the bucket of each dealt hand on its board. Returns the largest bucket.

    Buckets are written to `buckets`.

    `hands` and `buckets` are [deal, player].
    """
    most = np.int64(0)
    for deal in range(len(boards)):
        board, turned = find_canonical_board(index.boards, boards[deal])
        for player in range(hands.shape[1]):
            bucket = np.int64(table[board, index.moved[turned, hands[deal, player]]])
            most = max(most, bucket)
            buckets[deal, player] = bucket
    return most


@kernel
def add_weights(places: npt.NDArray[Any], weights: IntArray, sums: IntArray) -> None:
    """Add weights to entries of `sums`, whose indices are in `places`."""
    for i in range(len(places)):
        sums[places[i]] += weights[i]
