"""Compiled code that converts tables to two-byte fixed-point numbers, and back."""

from __future__ import annotations

from math import frexp, ldexp
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.jit import kernel

Floats: TypeAlias = npt.NDArray[np.float32]

MOST = 65535.0  # the largest entry
BIAS = 127  # added to exponents, so that none is negative
EVERY = -1  # instead of a player's number: decisions of both


class PackedDecisions(NamedTuple):
    """Where two-byte tables store the decisions of a part of the tree."""

    first: IntArray  # [decision] first number; its actions follow each other
    end: IntArray  # [decision]
    width: npt.NDArray[np.int32]  # [decision] numbers of an action: one for each hand, or each distinct hand
    column: IntArray  # [decision] where the hands of an action's numbers begin in `hands`
    hands: npt.NDArray[np.uint16]  # hands of rows with all hands, and then of each player on each board
    actor: ByteArray  # [decision]


@kernel
def read_entries(
    entries: npt.NDArray[np.uint16],
    powers: npt.NDArray[np.uint8],
    decisions: PackedDecisions,
    player: int,
    table: Floats,
) -> None:
    """Convert a player's two-byte numbers to single precision, and write them to a table."""
    first, end, actor = decisions.first, decisions.end, decisions.actor
    for d in range(len(powers)):
        if player == EVERY or actor[d] == player:
            scale = table.dtype.type(ldexp((MOST + 1) / MOST, int(powers[d]) - BIAS))
            for i in range(np.uint64(first[d]), np.uint64(end[d])):
                table[i] = scale * table.dtype.type(entries[i])


@kernel
def write_entries(
    table: Floats,
    bits: npt.NDArray[np.int32],
    decisions: PackedDecisions,
    player: int,
    seed: int,
    draws: Floats,
    places: int,
    entries: npt.NDArray[np.uint16],
    powers: npt.NDArray[np.uint8],
) -> None:
    """Convert a player's decisions in a single-precision table to two-byte numbers.

    The numbers must be nonnegative.

    The entries of a decision are multiples of the smallest power of two with which all of them fit into two bytes. They
    are rounded up or down at random, so that errors have mean 0 and repeated small additions are not lost: each row
    uses consecutive random numbers from 0 to 1 in `draws`, of which each hand has its own, beginning at one of the
    first `places`. `bits` is the table's bit pattern as integers, whose order is that of the numbers.
    """
    number = table.dtype.type
    for d in range(len(powers)):
        if decisions.actor[d] != player:
            continue
        first, end, width = np.uint64(decisions.first[d]), np.uint64(decisions.end[d]), np.uint64(decisions.width[d])
        most, top = np.int32(0), first
        for i in range(first, end):
            most = max(most, bits[i])
        while most > 0 and bits[top] != most:
            top += np.uint64(1)
        biased = max(frexp(table[top])[1] - 16 + BIAS, 0)
        powers[d] = biased
        inverse = number(ldexp(MOST / (MOST + 1), BIAS - biased))
        random = (seed + 40503 * d) * 2654435769 & 0xFFFFFFFF
        hands = decisions.hands[decisions.column[d] :][:width]
        while first < end:
            random = (random * 1664525 + 1013904223) & 0xFFFFFFFF
            drawn = draws[(random >> 8) % places :]
            for i in range(np.uint64(0), width):
                wanted = np.int32(table[first + i] * inverse + drawn[hands[i]])
                entries[first + i] = np.uint16(min(wanted, np.int32(MOST)))
            first += width
