"""Compiled code that computes one strategy's expected winnings against another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.jit import kernel
from kilt.solve.external_kernels import Records, Rules, Singles, Words


class Seat(NamedTuple):
    """One player's strategy, and the buckets of the player's hands in a batch of deals."""

    nodes: Records  # [node] as in `Rules`, with one word per slot
    bucket: Words  # [deal, round, player]
    shares: npt.NDArray[Any]  # [slot]


@kernel
def append_children(seat: Seat, deal: int, actor: int, place: np.uint64, queue: Records, free: np.uint64) -> np.uint64:
    """Append the children of a node that a player's strategy may choose to a queue.

    Returns the first free index of the queue after these children.
    """
    here = seat.nodes[queue[place].link]
    n, link, reach = np.uint64(here.count), np.uint64(here.link), queue[place].value
    slot = here.first + np.uint64(seat.bucket[deal, here.round, actor]) * n
    whole = 0.0
    for a in range(n):
        whole += seat.shares[slot + a]
    for a in range(n):
        if seat.shares[slot + a] > 0:
            queue[free].link = np.uint32(link + a)
            queue[free].value = np.float32(reach * seat.shares[slot + a] / whole)
            free += np.uint64(1)
    return free


@kernel
def expected_chips(
    rules: Rules,
    first: Seat,
    second: Seat,
    outcome: Singles,
    call: npt.NDArray[np.uint8],
    queue: Records,
    won: FloatArray,
) -> None:
    """Compute one strategy's expected winnings against another on each deal, in both seats, in chips."""
    one, zero = np.uint64(1), np.uint64(0)
    for deal in range(len(outcome)):
        for seat in range(2):
            queue[0].link, queue[0].value = np.uint32(0), np.float32(1.0)
            place, free, total = zero, one, 0.0
            ending = np.uint64(3 * seat + 1 + outcome[deal])
            while place < free:
                node = np.uint64(queue[place].link)
                here = rules.nodes[node]
                link, actor = np.uint64(here.link), here.actor
                if here.count == 0:
                    total += queue[place].value * rules.payoff[link + ending]
                    place += one
                    continue
                before = free
                if actor == seat:
                    free = append_children(first, deal, actor, place, queue, free)
                else:
                    free = append_children(second, deal, actor, place, queue, free)
                if free > before:
                    place += one
                else:
                    queue[place].link = np.uint32(link + np.uint64(call[node]))
            won[deal, seat] = total if seat == 0 else -total
