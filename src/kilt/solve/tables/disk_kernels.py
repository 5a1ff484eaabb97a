"""Compiled code that converts tables to bytes that compress well, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.cards.equity_kernels import HandList, Order, Ranking, rank_board
from kilt.cards.hands_kernels import HandTables
from kilt.jit import kernel, subkernel
from kilt.tree.vector_arrays import Table

MOST = 2**31 - 1  # the largest integer that is stored
SHORT = 2  # bytes per number if all numbers are below 2¹⁶; otherwise four

Planes = npt.NDArray[np.uint8]  # [byte, number], low bytes first
Alike = npt.NDArray[np.int32]  # [symmetry, hand] first hand that is equal up to a permutation of equivalent suits


class PartRows(NamedTuple):
    """The rows of a subgame's table that a file stores, and its hands up to suit isomorphism."""

    start: int  # row of the first board
    stride: int  # rows from one board to the next
    rows: IntArray  # [stored row] its index within a board
    alike: Alike
    symmetry: IntArray  # [board] the row of `alike`
    bits: IntArray  # [hand] set of cards as bits
    held: IntArray  # [board] its set of cards
    cards: IntArray  # [board, card]
    ranked: bool  # whether hands have strengths on these boards
    deck: HandList
    tables: HandTables  # for boards of this size
    ranking: Ranking  # scratch


@kernel
def count_hands(alike: Alike, symmetry: IntArray, bits: IntArray, held: IntArray, counts: IntArray) -> None:
    """Count the possible hands on each board, up to suit isomorphism."""
    for board in range(len(held)):
        first, found = alike[symmetry[board]], 0
        for hand in range(len(bits)):
            found += first[hand] == hand and bits[hand] & held[board] == 0
        counts[board] = found


@kernel
def list_hands(part: PartRows, board: int, distinct: Order) -> int:
    """List the possible hands on a board, up to suit isomorphism, and return their number.

    Of hands that are equal up to suits, it lists one. They are ordered by strength, weakest first, if hands have
    strengths.
    """
    first, count = part.alike[part.symmetry[board]], 0
    if part.ranked:
        groups = rank_board(part.cards[board], part.deck, part.tables, part.ranking)
        for i in range(part.ranking.ends[groups - 1]):
            hand = part.ranking.order[i]
            if first[hand] == hand:
                distinct[count] = hand
                count += 1
        return count
    for hand in range(len(part.bits)):
        if first[hand] == hand and part.bits[hand] & part.held[board] == 0:
            distinct[count] = hand
            count += 1
    return count


@kernel
def to_planes(
    table: Table, part: PartRows, scale: float, dither: float, planes: Planes, at: int
) -> tuple[int, np.uint32]:
    """Convert a table's numbers to integers, as bytes in an order that compresses well.

    The integers are floor(number · scale + `dither`), at most `MOST`. A row is written hand by hand, from index `at`
    on; each hand is stored as its difference from the previous one, and differences 0, −1, 1, −2, … are mapped to 0, 1,
    2, 3, …. Returns the index after the last number, and the largest integer.
    """
    most, largest, width = np.float64(MOST), np.uint32(0), len(planes)
    apart, numbers = np.empty(len(part.bits), np.uint16), np.zeros(len(part.bits) + 1, np.int32)
    for board in range(len(part.held)):
        count = list_hands(part, board, apart)
        for k in range(len(part.rows)):
            row = table[part.start + board * part.stride + part.rows[k]]
            for i in range(count):
                numbers[i + 1] = np.int32(min(row[apart[i]] * scale + dither, most))
            low, high = planes[0, at : at + count], planes[1, at : at + count]
            for i in range(count):
                number = fold(np.int32(numbers[i + 1] - numbers[i]))
                largest |= number
                low[i], high[i] = np.uint8(number), np.uint8(number >> 8)
            if width > SHORT:
                low, high = planes[2, at : at + count], planes[3, at : at + count]
                for i in range(count):
                    number = fold(np.int32(numbers[i + 1] - numbers[i]))
                    low[i], high[i] = np.uint8(number >> 16), np.uint8(number >> 24)
            at += count
    return at, largest


@kernel
def from_planes(planes: Planes, at: int, part: PartRows, scale: float, table: Table) -> int:
    """Convert bytes from `to_planes` back to numbers of a table.

    Equivalent hands get the same numbers, and hands that hold a card of the board get 0. Returns the index after the
    last number.
    """
    width, unit, nothing = len(planes), table.dtype.type(1 / scale), len(part.bits)
    apart, place = np.empty(len(part.bits), np.uint16), np.empty(len(part.bits), np.uint16)
    changes, values = np.empty(len(part.bits), np.uint32), np.zeros(len(part.bits) + 1, table.dtype)
    for board in range(len(part.held)):
        count, first = list_hands(part, board, apart), part.alike[part.symmetry[board]]
        for i in range(count):
            place[apart[i]] = i
        for hand in range(len(part.bits)):
            place[hand] = nothing if part.bits[hand] & part.held[board] else place[first[hand]]
        for k in range(len(part.rows)):
            low, high = planes[0, at : at + count], planes[1, at : at + count]
            for i in range(count):
                changes[i] = np.uint32(low[i]) | np.uint32(high[i]) << 8
            if width > SHORT:
                low, high = planes[2, at : at + count], planes[3, at : at + count]
                for i in range(count):
                    changes[i] |= np.uint32(low[i]) << 16 | np.uint32(high[i]) << 24
            number = np.int32(0)
            for i in range(count):
                number += unfold(changes[i])
                values[i] = number * unit
            row = table[part.start + board * part.stride + part.rows[k]]
            for hand in range(len(part.bits)):
                row[hand] = values[place[hand]]
            at += count
    return at


@subkernel
def fold(change: np.int32) -> np.uint32:
    """Map an integer of either sign to a nonnegative one.

    Numbers near 0 stay small.
    """
    return np.uint32(change << 1 ^ change >> 31)


@subkernel
def unfold(number: np.uint32) -> np.int32:
    """Map a nonnegative integer back to an integer of either sign. This is the inverse of `fold`."""
    return np.int32(number >> 1) ^ -np.int32(number & 1)
