"""Compiled loops of `aivat`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray, SingleArray
from kilt.cards.equity_kernels import Columns
from kilt.jit import kernel


@kernel
def add_values(
    bucket: npt.NDArray[np.int32],
    group: IntArray,
    theirs: IntArray,
    table: SingleArray,
    more: IntArray,
    cards: Columns,
    total: FloatArray,
) -> None:
    """Add to `total` [hand] the values of hands on several boards; nothing where a hand has one of the new cards.

    `bucket` [board, hand] are mine and `group` [bucket] puts them into groups; `theirs` [board] is the opponent's
    group, `table` [my group, theirs]. `more` [board, card] are the cards that each board has more than the one before.
    """
    for b in range(bucket.shape[0]):
        other = theirs[b]
        for hand in range(bucket.shape[1]):
            total[hand] += table[group[bucket[b, hand]], other]
        for card in more[b]:
            for column in cards:
                for hand in range(bucket.shape[1]):
                    if column[hand] == card:
                        total[hand] -= table[group[bucket[b, hand]], other]
