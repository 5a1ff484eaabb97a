"""Compiled loop of `abstract_game`: copy the tables of parts into another table."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.jit import kernel


@kernel
def copy_pieces(
    source: npt.NDArray[Any], begin: IntArray, target: npt.NDArray[Any], place: IntArray, size: IntArray
) -> None:
    """For each piece, copy `size` entries of `source` from index `begin` to `target` from index `place`."""
    for piece in range(len(begin)):
        start, to = begin[piece], place[piece]
        for k in range(size[piece]):
            target[to + k] = source[start + k]
