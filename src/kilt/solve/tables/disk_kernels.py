"""Numbers of subgames to planes of bytes and back: see `disk_store`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.cards.equity_kernels import HandList, Order, Ranking, rank_board
from kilt.cards.hands_kernels import HandTables
from kilt.jit import kernel, subkernel
from kilt.tree.vector_arrays import Table

MOST = 2**31 - 1  # the largest whole number that is kept
SHORT = 2  # bytes of a number where all are below 2¹⁶; four elsewhere

Planes = npt.NDArray[np.uint8]  # [byte, number], the low bytes first
Alike = npt.NDArray[np.int32]  # [symmetry, hand] the first of the hands that differ only by suits which it leaves equal


class PartRows(NamedTuple):
    """Some rows of boards in a row, in the table of a subgame, and what tells the hands of these boards apart."""

    start: int  # row of the first board
    stride: int  # from one board to the next
    rows: IntArray  # [row kept] among those of a board
    alike: Alike
    symmetry: IntArray  # [board] its row of `alike`
    bits: IntArray  # [hand] its set of cards
    held: IntArray  # [board] its set of cards
    cards: IntArray  # [board, card]
    ranked: bool  # whether hands have strengths on these boards
    deck: HandList
    tables: HandTables  # for boards of this size
    ranking: Ranking  # scratch


@kernel
def count_hands(alike: Alike, symmetry: IntArray, bits: IntArray, held: IntArray, counts: IntArray) -> None:
    """Write to `counts` [board] the number of hands that are apart on a board: of those alike, the first one alone."""
    for board in range(len(held)):
        first, found = alike[symmetry[board]], 0
        for hand in range(len(bits)):
            found += first[hand] == hand and bits[hand] & held[board] == 0
        counts[board] = found


@kernel
def list_hands(part: PartRows, board: int, apart: Order) -> int:
    """Write to `apart` the hands that are apart on a board, weakest first where there are strengths; their number."""
    first, count = part.alike[part.symmetry[board]], 0
    if part.ranked:
        groups = rank_board(part.cards[board], part.deck, part.tables, part.ranking)
        for i in range(part.ranking.ends[groups - 1]):
            hand = part.ranking.order[i]
            if first[hand] == hand:
                apart[count] = hand
                count += 1
        return count
    for hand in range(len(part.bits)):
        if first[hand] == hand and part.bits[hand] & part.held[board] == 0:
            apart[count] = hand
            count += 1
    return count


@kernel
def to_planes(
    table: Table, part: PartRows, scale: float, dither: float, planes: Planes, at: int
) -> tuple[int, np.uint32]:
    """Write rows of boards to `planes`, from place `at`: whole numbers, `scale` times theirs.

    They are rounded down after `dither` was added, and `MOST` at most. A row is written hand by hand, each as its
    difference from the hand before, which is even where it is not negative: 0, −1, 1, −2, … become 0, 1, 2, 3, ….
    Returns the place after the last number, and the largest of them.
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
    """Write the numbers of `planes` from place `at` over `scale` to rows of `table`; the place after the last one.

    Hands that are alike have the same numbers; those that hold a card of the board have 0. See `to_planes`.
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
    """A difference as a number that is small where it is near 0."""
    return np.uint32(change << 1 ^ change >> 31)


@subkernel
def unfold(number: np.uint32) -> np.int32:
    """The difference that `fold` has made a number of."""
    return np.int32(number >> 1) ^ -np.int32(number & 1)
