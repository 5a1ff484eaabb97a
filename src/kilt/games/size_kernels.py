"""Compiled loop that counts the raises that are too small to be legal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.jit import kernel


@kernel
def count_illegal_all_ins(
    behind: int, blind: int, deeper: int, most: int, bounded: bool, prime: int
) -> npt.NDArray[np.int64]:
    """Count the deeper stack's all-in raises that are too small to be legal, if stacks are unequal.

    There is a count for each number of chips behind.

    The count for R = 1, …, `behind` chips is the sum of min(t + d − R, deeper), if positive, over all sequences of at
    most `most` raises that end at level t with a raise of d.

    The last raise d is the largest part of a partition of the level t. Parts are added in ascending order, so when d is
    added, the partitions of t − d into the previous parts are the sequences that end with d. As R grows beyond t, the
    contribution of a sequence jumps up and later decreases in steps of one: `jumps` records the jumps, and `bends`
    records where the steps begin and end. Partitions are distinguished by their number of parts only if `bounded`.

    Sums are taken modulo a prime below 2³⁰. With fewer than 2¹⁷ chips behind, no intermediate result overflows.
    """
    # one more part leads to the next layer; without a bound, to the same layer
    layers, step = (most + 1, 1) if bounded else (1, 0)
    parts = np.zeros((layers, behind), dtype=np.int64)
    parts[0, 0] = 1
    jumps = np.zeros(2 * behind + blind + 2, dtype=np.int64)
    bends = np.zeros(2 * behind + blind + 2, dtype=np.int64)
    drop = min(blind - 1, deeper)  # before any raise: the next is at least the blind, which led to level 0
    jumps[1] += drop
    bends[blind - drop + 1] -= 1
    bends[blind + 1] += 1
    for d in range(blind, behind if most else 0):
        drop = min(d - 1, deeper)
        jump, bend, straight = jumps[d + 1 :], bends[2 * d - drop + 1 :], bends[2 * d + 1 :]
        for k in range(step, layers):
            source, target = parts[k - step], parts[k]
            for t in range(d, behind):
                number = target[t] + source[t - d]
                target[t] = number - (prime if number >= prime else 0)
            for t in range(behind - d):
                jump[t] += drop * source[t]
                bend[t] -= source[t]
                straight[t] += source[t]
    sums = np.empty(behind, dtype=np.int64)
    total, slope = np.int64(0), np.int64(0)
    for chips in range(1, behind + 1):
        slope = (slope + bends[chips]) % prime
        total = (total + jumps[chips] % prime + slope) % prime
        sums[chips - 1] = total
    return sums
