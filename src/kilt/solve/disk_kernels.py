"""Numbers of subgames to planes of bytes and back: see `disk_store`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.jit import kernel
from kilt.tree.vector_arrays import Table

MOST = 2**32 - 1  # the largest whole number that is kept
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
) -> tuple[int, np.uint32]:
    """Write some rows of boards in a row to `planes`, from place `at`: whole numbers, `scale` times theirs.

    They are rounded down after `dither` was added, and `MOST` at most. Numbers of a hand come together, for those hands
    that are apart. The row of the first board in `table` is `start`, and `stride` leads from one board to the next;
    `rows` are those of each board that are written. Boards have a row of `alike`, `symmetry`, and a set of cards,
    `held`, as hands have `bits`. Returns the place after the last number, and the largest of them.
    """
    most, largest, width = np.float64(MOST), np.uint32(0), len(planes)
    for board in range(len(held)):
        first, begin = alike[symmetry[board]], start + board * stride
        for hand in range(len(bits)):
            if first[hand] != hand or bits[hand] & held[board] != 0:
                continue
            for k in range(len(rows)):
                number = np.uint32(np.int64(min(table[begin + rows[k], hand] * scale + dither, most)))
                largest = max(largest, number)
                planes[0, at] = np.uint8(number)
                planes[1, at] = np.uint8(number >> np.uint32(8))
                if width > SHORT:
                    planes[2, at] = np.uint8(number >> np.uint32(16))
                    planes[3, at] = np.uint8(number >> np.uint32(24))
                at += 1
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
    width, count, unit = len(planes), len(rows), 1 / scale
    place = np.empty(len(bits), np.int64)  # [hand] where its numbers begin
    for board in range(len(held)):
        first, begin = alike[symmetry[board]], start + board * stride
        for hand in range(len(bits)):
            if bits[hand] & held[board] != 0:
                for k in range(count):
                    table[begin + rows[k], hand] = 0
                continue
            if first[hand] == hand:
                place[hand] = at
                at += count
            source = place[first[hand]]
            for k in range(count):
                number = np.int64(planes[0, source + k]) | (np.int64(planes[1, source + k]) << 8)
                if width > SHORT:
                    number |= (np.int64(planes[2, source + k]) << 16) | (np.int64(planes[3, source + k]) << 24)
                table[begin + rows[k], hand] = number * unit
    return at
