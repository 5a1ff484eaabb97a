"""Compute random numbers from a key and a counter, so that a checkpoint stores only the counter."""

from __future__ import annotations

import numpy as np

from kilt.jit import inlined

STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WORD = 2**64 - 1  # all bits of a word


@inlined
def mix(word: np.uint64) -> np.uint64:
    """Scramble the bits of a 64-bit word, as SplitMix64 does (Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(FIRST)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(SECOND)
    return word ^ (word >> np.uint64(31))


@inlined
def splitmix_word(key: np.uint64, number: np.uint64) -> np.uint64:
    """Return the 64-bit word at position `number` of the SplitMix64 sequence of `key`."""
    return mix(key + number * np.uint64(STEP))


@inlined
def uniform(key: np.uint64, number: np.uint64) -> float:
    """Return a uniform random number in [0, 1), determined by a key and a position."""
    return float(splitmix_word(key, number) >> np.uint64(11)) * 2.0**-53


def uniform_in_python(key: int, number: int) -> float:
    """Return the same random number as `uniform`, without compiled code.

    >>> uniform_in_python(7, 0), uniform_in_python(7, 1)
    (0.0729703985808493, 0.3898297483912715)
    """
    word = (key + number * STEP) & WORD
    word = ((word ^ word >> 30) * FIRST) & WORD
    word = ((word ^ word >> 27) * SECOND) & WORD
    return float((word ^ word >> 31) >> 11) * 2.0**-53
