"""The compiled loop of `bench.agent`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.draws import splitmix_word
from kilt.jit import kernel


@kernel
def read_at_random(table: npt.NDArray[np.uint32], reads: int, seed: np.uint64) -> np.uint64:
    """Add up `reads` words of a table from random places, none of which depends on another."""
    total, words = np.uint64(0), np.uint64(len(table))
    for read in range(reads):
        place = (splitmix_word(seed, np.uint64(read)) >> np.uint64(32)) * words >> np.uint64(32)
        total += np.uint64(table[place])
    return total
