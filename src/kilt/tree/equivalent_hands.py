"""Combine entries of strategy tables for hands that are equivalent up to suits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.tree.vector_arrays import Table, VectorTree


def mean_over_suits(tree: VectorTree, table: Table) -> Table:
    """Return each hand's entry, averaged over all hands that are equivalent up to suits."""
    even = np.empty_like(table)
    for rows, alike in _alike(tree):
        even[rows] = np.mean([table[rows][:, moved] for moved in alike], axis=0)
    return even


def sum_over_suits(tree: VectorTree, counts: FloatArray) -> FloatArray:
    """Return each hand's entry, summed over all hands that are equivalent up to suits."""
    whole = np.empty_like(counts)
    for rows, alike in _alike(tree):
        # number of permutations that map a hand to itself
        times = (alike == np.arange(counts.shape[1])).sum(axis=0)
        whole[rows] = np.sum([counts[rows][:, moved] for moved in alike], axis=0) / times
    return whole


def _alike(tree: VectorTree) -> Iterator[tuple[slice, npt.NDArray[np.int32]]]:
    """Yield, for each board, its rows in tables and the hands that each hand becomes under suit permutations."""
    for r, rows in enumerate(tree.rows):
        for board in range(tree.board_start[r], tree.board_start[r + 1]):
            first = int(tree.table_start[r] + (board - tree.board_start[r]) * rows)
            same = [p for p in range(len(tree.moved)) if tree.symmetry[board] >> p & 1]
            yield slice(first, first + int(rows)), tree.moved[same]
