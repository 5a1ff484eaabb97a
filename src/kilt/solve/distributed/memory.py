"""What the head and a blade hold in memory, counted before they are made.

Beside its tables of regrets and counts, each has the betting tree of the whole game. The head keeps the deals of a
batch that are under way. A blade has the strategy of one class of boards for each thread while that is measured or
written; the whole strategy is nowhere in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy.typing as npt

from kilt import machine
from kilt.abstraction.abstract_game import AbstractSize
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import Plan
from kilt.arrays import data_type
from kilt.cost import Cost
from kilt.solve.distributed.partition import Level, levels
from kilt.solve.external_kernels import NODE, PLACE

TREE = 37 + 2 * 8 + NODE.itemsize  # bytes of a node of betting: the tree, its slots here and in the whole, a record
WALKED = 2 * PLACE.itemsize  # … in the queue of a thread
LISTED = 24  # … where decisions are listed, to go through all tables
MEASURED = 2 * WALKED + 2 * NODE.itemsize + 62  # … while a thread measures: see `evaluate.head_to_head`
LABEL = 4  # bytes of the class of a board: see `Partition.next_boards`
WRITTEN = 1 << 24  # bytes that are on their way to a file
PER_DEAL = 320  # bytes of a deal of a batch: its cards, buckets and outcomes, and what is known of its boards
MOST, ROOM = 16_384, 500_000_000  # deals of a batch, and bytes that the head may keep of them
UNDER_WAY = PLACE.itemsize + 8 + 4 + 1  # bytes of a place in the trunk that a walk may come to, between two passes


def most_deals(places: int) -> int:
    """How many deals a batch may have, where walks of a deal may come to `places` in the trunk."""
    return min(MOST, int(ROOM / (places * UNDER_WAY)))


class PartsMemory(NamedTuple):
    """What each process of a run in parts holds; cards, which are mapped from files, are left out.

    The part "tables" of each cost has regrets and counts. The rest is the betting tree, deals that are under way, and
    the part of a strategy that is measured or written.
    """

    levels: list[Level]
    head: Cost
    blades: list[Cost]  # [level] of the blade that has most

    @classmethod
    def of(
        cls,
        size: AbstractSize,
        plan: Plan,
        deal: Deal,
        blades: tuple[int, ...],
        *,
        words: int,
        dtype: npt.DTypeLike,
        threads: int,
        places: Sequence[int],
        batch: int,
    ) -> PartsMemory:
        """Count what is held.

        Parameters
        ----------
        size : AbstractSize
            Of the whole game.
        plan : Plan
            Of its cards, with classes of boards.
        deal : Deal
            What is dealt.
        blades : tuple of int
            Number of blades, and of those under each blade of the level above.
        words : int
            Numbers of 4 bytes for each slot.
        dtype : dtype
            Of the probabilities of a strategy.
        threads : int
            Of each blade.
        places : sequence of int
            That the walks of a deal may come to in the trunk, and in the rounds of blades that have others below them:
            see `places_in`.
        batch : int
            Deals of a batch; 0: as many as there may be.
        """
        batch = batch or most_deals(max(places))
        found, byte = levels(size, plan, deal, blades), data_type(dtype).itemsize
        trunk, whole, classes = found[0].slots, sum(size.slots), 1
        passing = max(batch * places[0] * UNDER_WAY, size.nodes * LISTED + trunk * byte)
        head = size.nodes * (TREE + WALKED) + batch * PER_DEAL + passing
        each, labels = list[Cost](), 0  # bytes of the classes of all next boards, on a blade below another
        kept = [*places[1:], 0]  # of deals that blades below go on with
        for level, public, under, between in zip(found[1:], plan.public, blades, kept, strict=False):
            r = public.round - 1
            sets = comb(deal.deck.size, deal.sizes[r] - deal.sizes[r - 1])
            labels = labels * sets if each else LABEL * sets * -(-public.classes // under) // public.classes
            classes *= public.classes
            together = min(threads, -(-public.classes // under))  # classes that are measured at once
            played = trunk + -(-(whole - trunk) // classes)  # on the boards of a class
            work = size.nodes * (TREE + threads * WALKED) + threads * batch * PER_DEAL + (labels if each else 0)
            measuring = together * (size.nodes * MEASURED + 2 * played * byte)
            passing = threads * batch * between * UNDER_WAY
            each.append(part_cost(level.memory(words), work + max(measuring, passing, WRITTEN)))
        return cls(found, part_cost(found[0].memory(words), head), each)

    def here(self, *, one_process: bool) -> int:
        """Bytes on a machine that has the head and all blades; or all of them are threads of `one_process`."""
        spread = zip(self.levels[1:], self.blades, strict=True)
        held = self.head.memory + sum(level.blades * blade.memory for level, blade in spread)
        processes = 1 if one_process else 1 + sum(level.blades for level in self.levels[1:])
        return held + processes * machine.PROCESS


def part_cost(tables: int, work: int) -> Cost:
    """The memory of a process that has tables, and `work` bytes of other arrays."""
    return Cost(tables + work, parts=(("tables", Cost(tables)),))
