"""Compute the memory of the head process and of each worker of a distributed run before it starts.

Each process has its tables of regrets and counts, and the betting tree of the whole game. In addition, the head stores
the deals of batches in progress. For each thread, a blade has the strategy of one class of boards while it is measured
or written; no process has the whole strategy in memory.
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

# bytes per node of the betting tree: the tree, its slots in the part and in the whole, a record
TREE = 37 + 2 * 8 + NODE.itemsize
WALKED = 2 * PLACE.itemsize  # bytes per node in the queue of a thread
LISTED = 24  # bytes per node of lists of decisions, to iterate over all tables
MEASURED = 2 * WALKED + 2 * NODE.itemsize + 62  # bytes per node while a thread evaluates: see `evaluate.head_to_head`
LABEL = 4  # bytes of the class of a board: see `Partition.next_boards`
WRITTEN = 1 << 24  # bytes of buffers for a file that is being written
PER_DEAL = 320  # bytes per deal of a batch: its cards, buckets, outcomes and boards
MOST, ROOM = 16_384, 500_000_000  # largest number of deals of a batch, and of bytes for them on the head
UNDER_WAY = PLACE.itemsize + 8 + 4 + 1  # bytes per trunk node of a walk, between the two passes


def most_deals(places: int) -> int:
    """Return the maximum number of deals in a batch that fit into the head process's memory.

    One deal reaches at most `places` nodes in the first rounds.
    """
    return min(MOST, int(ROOM / (places * UNDER_WAY)))


class PartsMemory(NamedTuple):
    """The memory of each process of a distributed run.

    Card abstractions do not count: they are mapped from files. The part "tables" of each cost is for regrets and
    counts. The rest is the betting tree, deals in progress, and the part of a strategy that is evaluated or written.
    """

    levels: list[Level]
    head: Cost
    blades: list[Cost]  # [level] the blade with the most memory

    @classmethod
    def estimate(
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
        """Compute the memory that each process of a distributed run needs.

        Parameters
        ----------
        size : AbstractSize
            Size of the whole game.
        plan : Plan
            Plan of its card abstraction, with classes of boards.
        deal : Deal
            Cards dealt in each round.
        blades : tuple of int
            Number of blades, followed by the number under each blade of the level above.
        words : int
            4-byte words per slot.
        dtype : dtype
            Integer type of a strategy's probabilities.
        threads : int
            Number of threads of each blade.
        places : sequence of int
            Largest numbers of nodes that a deal reaches in the trunk, and in the rounds of blades that have others
            below them: see `most_nodes_visited`.
        batch : int
            Deals of a batch; 0: the largest possible number.
        """
        batch = batch or most_deals(max(places))
        found, byte = levels(size, plan, deal, blades), data_type(dtype).itemsize
        trunk, whole, classes = found[0].slots, sum(size.slots), 1
        passing = max(batch * places[0] * UNDER_WAY, size.nodes * LISTED + trunk * byte)
        head = size.nodes * (TREE + WALKED) + batch * PER_DEAL + passing
        each, labels = list[Cost](), 0  # bytes of the classes of all next boards, on a lower blade
        kept = [*places[1:], 0]  # nodes per deal of walks that lower blades continue
        for level, public, under, between in zip(found[1:], plan.public, blades, kept, strict=False):
            r = public.round - 1
            sets = comb(deal.deck.size, deal.board_sizes[r] - deal.board_sizes[r - 1])
            labels = labels * sets if each else LABEL * sets * -(-public.classes // under) // public.classes
            classes *= public.classes
            together = min(threads, -(-public.classes // under))  # classes that are evaluated at the same time
            played = trunk + -(-(whole - trunk) // classes)  # slots of the strategy on the boards of a class
            work = size.nodes * (TREE + threads * WALKED) + threads * batch * PER_DEAL + (labels if each else 0)
            measuring = together * (size.nodes * MEASURED + 2 * played * byte)
            passing = threads * batch * between * UNDER_WAY
            each.append(process_cost(level.memory(words), work + max(measuring, passing, WRITTEN)))
        return cls(found, process_cost(found[0].memory(words), head), each)

    def on_one_machine(self, *, one_process: bool) -> int:
        """Return the memory for running the head process and all workers on one machine, in bytes.

        The workers may also be threads of `one_process`.
        """
        spread = zip(self.levels[1:], self.blades, strict=True)
        held = self.head.memory + sum(level.blades * blade.memory for level, blade in spread)
        processes = 1 if one_process else 1 + sum(level.blades for level in self.levels[1:])
        return held + processes * machine.PROCESS


def process_cost(tables: int, work: int) -> Cost:
    """Return the memory of one process of a distributed run: its tables and other data.

    `tables` and `work` are bytes.
    """
    return Cost(tables + work, parts=(("tables", Cost(tables)),))
