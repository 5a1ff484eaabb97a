"""Numbers of subgames to planes of bytes and back: see `disk_store`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.jit import kernel
from kilt.tree.vector_arrays import Table

MOST = 2**31 - 1  # the largest whole number that is kept
SHORT = 2  # bytes of a number where all are below 2¹⁶; four elsewhere

Planes = npt.NDArray[np.uint8]  # [byte, number], the low bytes first
Alike = npt.NDArray[np.int32]  # [symmetry, hand] the first of the hands that differ only by suits which it leaves equal


@kernel
def count_hands(alike: Alike, symmetry: IntArray, bits: IntArray, held: IntArray, counts: IntArray) -> None:
    """Write to `counts` [board] the number of hands that are apart on a board: of those alike, the first one alone."""
    for board in range(len(held)):
        first, found = alike[symmetry[board]], 0
        for hand in range(len(bits)):
            found += first[hand] == hand and bits[hand] & held[board] == 0
        counts[board] = found


@kernel
def to_planes(
    table: Table,
    start: int,
    stride: int,
    rows: IntArray,
    alike: Alike,
    symmetry: IntArray,
    bits: IntArray,
    held: IntArray,
    scale: float,
    dither: float,
    planes: Planes,
    at: int,
) -> tuple[int, np.int32]:
    """Write some rows of boards in a row to `planes`, from place `at`: whole numbers, `scale` times theirs.

    They are rounded down after `dither` was added, and `MOST` at most. Numbers of a hand come together, for those hands
    that are apart. The row of the first board in `table` is `start`, and `stride` leads from one board to the next;
    `rows` are those of each board that are written. Boards have a row of `alike`, `symmetry`, and a set of cards,
    `held`, as hands have `bits`. Returns the place after the last number, and the largest of them.
    """
    most, largest, width = np.float64(MOST), np.int32(0), len(planes)
    apart = np.empty(len(bits), np.uint64)  # the hands that are
    for board in range(len(held)):
        first, count = alike[symmetry[board]], 0
        for hand in range(len(bits)):
            if first[hand] == hand and bits[hand] & held[board] == 0:
                apart[count] = hand
                count += 1
        for k in range(len(rows)):
            row, low, high = table[start + board * stride + rows[k]], planes[0, at + k :], planes[1, at + k :]
            for i in range(count):
                number = np.int32(min(row[apart[i]] * scale + dither, most))
                largest = max(largest, number)
                low[i * len(rows)], high[i * len(rows)] = np.uint8(number), np.uint8(number >> 8)
                if width > SHORT:
                    planes[2, at + k + i * len(rows)] = np.uint8(number >> 16)
                    planes[3, at + k + i * len(rows)] = np.uint8(number >> 24)
        at += count * len(rows)
    return at, largest


@kernel
def from_planes(
    planes: Planes,
    at: int,
    start: int,
    stride: int,
    rows: IntArray,
    alike: Alike,
    symmetry: IntArray,
    bits: IntArray,
    held: IntArray,
    scale: float,
    table: Table,
) -> int:
    """Write the numbers of `planes` from place `at` over `scale` to rows of `table`; the place after the last one.

    Hands that are alike have the same numbers; those that hold a card of the board have 0. See `to_planes`.
    """
    width, unit, nothing = len(planes), table.dtype.type(1 / scale), len(bits)
    place, block = np.empty(len(bits), np.uint64), np.empty((len(rows), len(bits) + 1), table.dtype)
    block[:, nothing] = 0
    for board in range(len(held)):
        first, count = alike[symmetry[board]], 0
        for hand in range(len(bits)):
            if bits[hand] & held[board] != 0:
                place[hand] = nothing
            elif first[hand] == hand:
                place[hand] = count
                count += 1
            else:
                place[hand] = place[first[hand]]
        for k in range(len(rows)):
            low, high = planes[0, at + k :], planes[1, at + k :]
            for i in range(count):
                block[k, i] = (np.int32(low[i * len(rows)]) | (np.int32(high[i * len(rows)]) << 8)) * unit
            if width > SHORT:
                low, high = planes[2, at + k :], planes[3, at + k :]
                for i in range(count):
                    number = (np.int32(low[i * len(rows)]) << 16) | (np.int32(high[i * len(rows)]) << 24)
                    block[k, i] += number * unit
        at += count * len(rows)
        for k in range(len(rows)):
            row = table[start + board * stride + rows[k]]
            for hand in range(len(bits)):
                row[hand] = block[k, place[hand]]
    return at
