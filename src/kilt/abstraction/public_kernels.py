"""Compiled loops for `public`: count the hands in each bucket, and compare the counts of two boards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.holdings_kernels import HoldingTables
from kilt.arrays import IntArray
from kilt.jit import kernel


@kernel
def count_buckets(t: HoldingTables, boards: IntArray, rows: Labels, counts: npt.NDArray[np.uint16]) -> None:
    """Count the hands of some boards in each bucket: add them to `counts` [board, bucket].

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
    """Write the distances of boards: the share of hands that have no counterpart in the same bucket.

    These are the distances of boards `start` to `end` from all later boards.
    """
    for i in range(start, end):
        mine = counts[i]
        for j in range(i + 1, len(counts)):
            theirs = counts[j]
            common = np.uint32(0)
            for bucket in range(len(mine)):
                common += min(mine[bucket], theirs[bucket])
            distances[i, j] = distances[j, i] = (hands - common) / hands
