"""The compiled walk of `meeting`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import FloatArray
from kilt.jit import kernel
from kilt.solve.external_kernels import SHOWDOWN, Records, Rules, Singles, Words


class Seat(NamedTuple):
    """A player of an abstract game."""

    nodes: Records  # [node] as in `Rules`, with a word for each slot
    bucket: Words  # [deal, round, player]
    shares: npt.NDArray[Any]  # [slot]


@kernel
def meet(
    rules: Rules,
    first: Seat,
    second: Seat,
    outcome: Singles,
    call: npt.NDArray[np.uint8],
    queue: Records,
    won: FloatArray,
) -> None:
    """Write [deal, seat] what the first player wins from the second, in each seat: the mean over all that they may do.

    Where a strategy says nothing, `call` [node] is taken. `queue` is scratch.
    """
    one, zero = np.uint64(1), np.uint64(0)
    for deal in range(len(outcome)):
        for seat in range(2):
            queue[0].link, queue[0].value = np.uint32(0), np.float32(1.0)
            place, free, total = zero, one, 0.0
            while place < free:
                node, reach = np.uint64(queue[place].link), queue[place].value
                here = rules.nodes[node]
                n, link, actor = np.uint64(here.count), np.uint64(here.link), here.actor
                if n == zero:
                    value = rules.payoff[link]
                    total += reach * (value * outcome[deal] if actor == SHOWDOWN else value)
                    place += one
                    continue
                if actor == seat:
                    slot = first.nodes[node].first + np.uint64(first.bucket[deal, here.round, actor]) * n
                    shares = first.shares
                else:
                    slot = second.nodes[node].first + np.uint64(second.bucket[deal, here.round, actor]) * n
                    shares = second.shares
                whole = 0.0
                for a in range(n):
                    whole += shares[slot + a]
                if whole == 0.0:
                    queue[place].link = np.uint32(link + np.uint64(call[node]))
                    continue
                for a in range(n):
                    if shares[slot + a] > 0:
                        queue[free].link = np.uint32(link + a)
                        queue[free].value = np.float32(reach * shares[slot + a] / whole)
                        free += one
                place += one
            won[deal, seat] = total if seat == 0 else -total
