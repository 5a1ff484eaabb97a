"""The compiled end of a walk for players who see buckets: what its parts have added up goes into a table."""

from __future__ import annotations

from kilt.arrays import FloatArray, IntArray
from kilt.jit import kernel
from kilt.tree.vector_arrays import Table


@kernel
def take_in(table: Table, parts: FloatArray, rows: IntArray, noise: float, kept: float, kept_below: float) -> None:
    """Add to some rows what is in `parts` [part, row, column], unless it is `noise`, and discount the sums.

    The parts are left empty.
    """
    for row in rows:
        for column in range(table.shape[1]):
            gained = 0.0
            for part in range(parts.shape[0]):
                gained += parts[part, row, column]
                parts[part, row, column] = 0.0
            total = table[row, column] + (gained if abs(gained) > noise else 0.0)
            table[row, column] = total * (kept if total > 0 else kept_below)
