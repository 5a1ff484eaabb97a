"""Compiled loop for `abstract_game`: copy the tables of parts of a game into the table of a larger part."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.jit import kernel


@kernel
def copy_pieces(
    source: npt.NDArray[Any], begin: IntArray, target: npt.NDArray[Any], place: IntArray, size: IntArray
) -> None:
    """Copy pieces of one array into another: `size` entries of `source` from `begin` to `target` from `place`.

    `begin`, `place` and `size` have an entry for each piece.
    """
    for piece in range(len(begin)):
        start, to = begin[piece], place[piece]
        for k in range(size[piece]):
            target[to + k] = source[start + k]
