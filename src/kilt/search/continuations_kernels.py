"""Compiled loop of `continuations`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.cards.hands_kernels import Strengths
from kilt.jit import kernel

Singles = npt.NDArray[np.float32]


@kernel
def add_pair_values(
    folded: Singles, shown: Singles, first: IntArray, second: IntArray, strength: Strengths, values: Singles
) -> None:
    """Add to `values` [way, hand, hand] what player 0 wins on a complete board, by hands of player 0 and player 1.

    `folded` [way, column, column] is what they win where somebody folds, `shown` what the better hand wins at
    showdowns. `first` and `second` [hand] are the columns of both players' hands; `strength` [hand] is −1 for hands
    with a card of the board, to which nothing is added.
    """
    for way in range(len(values)):
        for i in range(len(first)):
            mine, row = strength[i], first[i]
            if mine >= 0:
                for j in range(len(second)):
                    theirs, column = strength[j], second[j]
                    won = shown[way, row, column]
                    gain = folded[way, row, column] + (won if theirs < mine else -won if theirs > mine else 0 * won)
                    values[way, i, j] += gain if theirs >= 0 else 0 * won
