"""Regrets to planes of bytes and back: see `disk_store`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.jit import kernel
from kilt.tree.vector_arrays import Table

PLANES = 4
MOST = 2**32 - 1  # the largest whole number that is kept


@kernel
def to_planes(table: Table, scale: float, planes: npt.NDArray[np.uint8]) -> None:
    """Write the bytes of whole numbers, `scale` times those of `table` [row, hand], rounded down, to `planes`.

    They are [plane, number], the high bytes first; what is larger than `MOST` becomes that.
    """
    most, hands = np.float64(MOST), table.shape[1]
    for row in range(table.shape[0]):
        for hand in range(hands):
            number = np.uint64(min(table[row, hand] * scale, most))
            place = row * hands + hand
            planes[0, place] = np.uint8(number >> np.uint64(24))
            planes[1, place] = np.uint8(number >> np.uint64(16))
            planes[2, place] = np.uint8(number >> np.uint64(8))
            planes[3, place] = np.uint8(number)


@kernel
def from_planes(planes: npt.NDArray[np.uint8], scale: float, table: Table) -> None:
    """Write the numbers of `planes` over `scale` to `table`."""
    hands = table.shape[1]
    for row in range(table.shape[0]):
        for hand in range(hands):
            place = row * hands + hand
            number = (np.int64(planes[0, place]) << 24) | (np.int64(planes[1, place]) << 16)
            table[row, hand] = (number | (np.int64(planes[2, place]) << 8) | np.int64(planes[3, place])) / scale
