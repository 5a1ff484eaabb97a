"""Compiled loops of `aivat`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray, SingleArray
from kilt.jit import kernel


@kernel
def add_values(
    bucket: npt.NDArray[np.int32],
    group: IntArray,
    theirs: IntArray,
    table: SingleArray,
    more: IntArray,
    with_card: npt.NDArray[np.uint16],
    total: FloatArray,
) -> None:
    """Add to `total` [hand] the values of hands on several boards; nothing where a hand has one of the new cards.

    `bucket` [board, hand] are mine and `group` [bucket] puts them into groups; `theirs` [board] is the opponent's
    group, `table` [my group, theirs]. `more` [board, card] are the cards that each board has more than the one before,
    and `with_card` [card, …] the hands that hold a card.
    """
    for b in range(bucket.shape[0]):
        other = theirs[b]
        for hand in range(bucket.shape[1]):
            total[hand] += table[group[bucket[b, hand]], other]
        for place in range(more.shape[1]):
            for hand in with_card[more[b, place]]:
                counted = False  # it may hold two of the new cards
                for earlier in range(place):
                    for same in with_card[more[b, earlier]]:
                        counted |= same == hand
                if not counted:
                    total[hand] -= table[group[bucket[b, hand]], other]
