"""Compiled loop that merges the strategy tables of several parts of an abstract game."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.jit import kernel


@kernel
def copy_ranges(
    source: npt.NDArray[Any], begin: IntArray, target: npt.NDArray[Any], place: IntArray, size: IntArray
) -> None:
    """Copy several ranges of one array to given positions of another.

    Each copies `size` entries of `source`, from `begin` on, to `target`, from `place` on. `begin`, `place` and `size`
    have an entry for each range.
    """
    for piece in range(len(begin)):
        start, to = begin[piece], place[piece]
        for k in range(size[piece]):
            target[to + k] = source[start + k]
