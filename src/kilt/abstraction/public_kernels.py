"""Compiled loops of `public`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.spots_kernels import SpotTables
from kilt.cards.deck import IntArray
from kilt.jit import kernel


@kernel
def count_buckets(t: SpotTables, boards: IntArray, rows: Labels, counts: npt.NDArray[np.uint16]) -> None:
    """Add to `counts` [board, bucket] the hands of some boards, whose buckets are `rows`."""
    for b in range(len(boards)):
        held = np.int64(0)
        for card in boards[b]:
            held |= t.card_bit[card]
        for hand in range(rows.shape[1]):
            if t.bits[hand] & held == 0:
                counts[b, rows[b, hand]] += 1


@kernel
def total_variation(counts: npt.NDArray[np.uint16], start: int, end: int, hands: int, distances: Singles) -> None:
    """Write the distances of some boards from all later ones: the share of hands that are in no bucket of both."""
    for i in range(start, end):
        mine = counts[i]
        for j in range(i + 1, len(counts)):
            theirs = counts[j]
            common = np.uint32(0)
            for bucket in range(len(mine)):
                common += min(mine[bucket], theirs[bucket])
            distances[i, j] = distances[j, i] = (hands - common) / hands


@kernel
def differences(
    mine: npt.NDArray[Any], theirs: npt.NDArray[Any], places: npt.NDArray[np.int32], amounts: npt.NDArray[np.int32]
) -> tuple[int, int]:
    """Write where one count is above the other, and by how much, and from the end where it is below; return how many.

    What both have in common stays where it is: with a metric, no transport is better.
    """
    above, below = 0, len(places)
    for bucket in range(len(mine)):
        more = np.int32(mine[bucket]) - np.int32(theirs[bucket])
        if more > 0:
            places[above], amounts[above] = bucket, more
            above += 1
        elif more < 0:
            below -= 1
            places[below], amounts[below] = bucket, -more
    return above, below
