"""Compiled loops that compare boards by the buckets of their hands."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.holdings_kernels import HoldingTables
from kilt.arrays import FloatArray, IntArray
from kilt.jit import kernel


@kernel
def count_buckets(t: HoldingTables, boards: IntArray, rows: Labels, counts: npt.NDArray[np.uint16]) -> None:
    """Count the hands of each board in each bucket.

    The numbers are added to `counts` [board, bucket].

    `rows` has the buckets of the hands.
    """
    for b in range(len(boards)):
        held = np.int64(0)
        for card in boards[b]:
            held |= t.card_bit[card]
        for hand in range(rows.shape[1]):
            if t.bits[hand] & held == 0:
                counts[b, rows[b, hand]] += 1


@kernel
def total_variation(counts: npt.NDArray[np.uint16], start: int, end: int, hands: int, distances: Singles) -> None:
    """Compute the total variation distance between boards: the share of hands whose buckets do not match.

    The result has the distances of boards `start` to `end` from all later boards.
    """
    for i in range(start, end):
        mine = counts[i]
        for j in range(i + 1, len(counts)):
            theirs = counts[j]
            common = np.uint32(0)
            for bucket in range(len(mine)):
                common += min(mine[bucket], theirs[bucket])
            distances[i, j] = distances[j, i] = (hands - common) / hands


@kernel
def add_products(rows: npt.NDArray[np.uint32], values: FloatArray, start: IntArray, products: FloatArray) -> None:
    """Multiply a sparse matrix by its transpose, and add the lower triangle of the result to `products`.

    Column j of T has `values` in the ascending `rows` from ``start[j]`` to ``start[j + 1]``.
    """
    for j in range(len(start) - 1):
        for e in range(start[j], start[j + 1]):
            mine, value = products[rows[e]], values[e]
            for f in range(start[j], e + 1):
                mine[rows[f]] += value * values[f]


@kernel
def add_l1_distances(mine: FloatArray, theirs: FloatArray, distances: FloatArray) -> None:
    """Add the L1 distance of each pair of points to `distances`.

    Points are columns: [dimension, point].
    """
    for i in range(mine.shape[1]):
        row = distances[i]
        for d in range(len(mine)):
            place, places = mine[d, i], theirs[d]
            for j in range(len(row)):
                row[j] += abs(place - places[j])
