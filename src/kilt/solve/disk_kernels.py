"""Regrets to planes of bytes and back: see `disk_store`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.jit import kernel
from kilt.tree.vector_arrays import Table

PLANES = 4
MOST = 2**32 - 1  # the largest whole number that is kept


@kernel
def to_planes(table: Table, rows: IntArray, scale: float, planes: npt.NDArray[np.uint8]) -> None:
    """Write the bytes of whole numbers, `scale` times those of some rows of `table`, rounded down, to `planes`.

    They are [plane, row, hand], the high bytes first; what is larger than `MOST` becomes that.
    """
    most, hands = np.float64(MOST), table.shape[1]
    numbers = np.empty(hands, np.uint32)
    for k in range(len(rows)):
        for hand in range(hands):
            numbers[hand] = np.uint32(np.int64(min(table[rows[k], hand] * scale, most)))
        for plane in range(PLANES):
            shift = np.uint32(8 * (PLANES - 1 - plane))
            for hand in range(hands):
                planes[plane, k, hand] = np.uint8(numbers[hand] >> shift)


@kernel
def from_planes(planes: npt.NDArray[np.uint8], rows: IntArray, scale: float, table: Table) -> None:
    """Write the numbers of `planes` over `scale` to some rows of `table`."""
    hands = table.shape[1]
    for k in range(len(rows)):
        for hand in range(hands):
            number = (np.int64(planes[0, k, hand]) << 24) | (np.int64(planes[1, k, hand]) << 16)
            number |= (np.int64(planes[2, k, hand]) << 8) | np.int64(planes[3, k, hand])
            table[rows[k], hand] = number / scale
