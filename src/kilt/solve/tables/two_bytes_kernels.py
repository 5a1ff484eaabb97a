"""Convert tables to two-byte fixed-point numbers and back, in compiled code."""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.jit import kernel
from kilt.tree.vector_arrays import Table

MOST = 65535.0  # the largest entry
BIAS = 127  # added to exponents, so that none is negative
EVERY = -1  # instead of a player's number: decisions of both


@kernel
def read_entries(
    entries: npt.NDArray[np.uint16],
    powers: npt.NDArray[np.uint8],
    first: IntArray,
    actor: ByteArray,
    player: int,
    table: Table,
) -> None:
    """Convert one player's two-byte numbers to single precision, and write them to rows of a table.

    Decision d has the table's rows from `first[d]` to `first[d + 1]`; the entries begin with the first decision's rows.
    """
    before = first[0]
    for d in range(len(powers)):
        if player == EVERY or actor[d] == player:
            scale = table.dtype.type(ldexp((MOST + 1) / MOST, int(powers[d]) - BIAS))
            for row in range(first[d], first[d + 1]):
                for hand in range(entries.shape[1]):
                    table[row, hand] = scale * table.dtype.type(entries[row - before, hand])


@kernel
def write_entries(
    table: Table,
    bits: npt.NDArray[np.int32],
    first: IntArray,
    actor: ByteArray,
    player: int,
    seed: int,
    draws: Table,
    entries: npt.NDArray[np.uint16],
    powers: npt.NDArray[np.uint8],
) -> None:
    """Convert one player's rows of a single-precision table to two-byte numbers.

    The rows must be nonnegative.
    """
    before, hands = first[0], entries.shape[1]
    number, places = table.dtype.type, len(draws) - hands
    for d in range(len(powers)):
        if actor[d] != player:
            continue
        top, at, most = first[d], 0, np.int32(0)
        for row in range(first[d], first[d + 1]):
            largest = np.int32(0)
            for hand in range(hands):
                largest = max(largest, bits[row, hand])
            if largest > most:
                top, most = row, largest
        while most > 0 and bits[top, at] != most:
            at += 1
        biased = max(frexp(table[top, at])[1] - 16 + BIAS, 0)
        powers[d] = biased
        inverse = number(ldexp(MOST / (MOST + 1), BIAS - biased))
        random = (seed + 40503 * d) * 2654435769 & 0xFFFFFFFF
        for row in range(first[d], first[d + 1]):
            random = (random * 1664525 + 1013904223) & 0xFFFFFFFF
            place = (random >> 8) % places
            for hand in range(hands):
                wanted = np.int32(table[row, hand] * inverse + draws[place + hand])
                entries[row - before, hand] = np.uint16(min(wanted, np.int32(MOST)))
