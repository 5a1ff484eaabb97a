"""External-sampling CFR on a GPU for tables larger than GPU memory.

The tables of some classes of boards are in GPU memory at a time. The tables of the other classes are in the memory of
the CPU. From the first board on, players know the class of their board, and no information set belongs to two classes
[Brown15 §2.1]. So the tables of the trunk stay on the GPU. The rest of its memory has *frames*, each with room for the
tables of one class. A *pass* goes over a range of deals group by group: the classes of a group are copied to the
frames, and the GPU processes those deals of the range whose boards are in these classes. The deals and their random
choices are the same as with the whole table in GPU memory. Each deal is processed once, so that the expected updates
are the same.

The last group of a pass is the first of the next one. Between two copies, the GPU works for several times as long as
the copy took, as far as the schedule of discounts allows. A step may therefore take longer than asked for.

Discounts and halvings of a class that is in host memory wait until it is copied to a frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import AbstractGame, AbstractPart, AbstractSize, join_parts
from kilt.abstraction.abstract_game_kernels import copy_ranges
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import AbstractionSpec
from kilt.arrays import Array, Deferred
from kilt.errors import RunError
from kilt.games.holdem import Holdem
from kilt.gpu import address, copy_in, copy_out, free_memory, pinned_array
from kilt.solve.distributed.partition import Partition, head_rounds, shared_classes
from kilt.solve.external import CHECKED, DEFAULT, STEPS, SamplingOptions, words_per_action
from kilt.solve.external_device import DeviceTable, GpuExternalMCCFR, device_bytes
from kilt.solve.solver import scheduled

TIMES = 4  # ratio of the time for walks to the time for copies in a pass
FEWEST = 1 << 14  # smallest number of deals of a pass


class DeviceNeeds(NamedTuple):
    """The GPU memory that a run needs, and the number of classes of boards for which there is room."""

    memory: int  # bytes
    frames: int  # classes of boards in GPU memory at a time; 0: the whole table fits

    @classmethod
    def estimate(
        cls,
        game: Holdem,
        menu: ActionAbstraction | None,
        size: AbstractSize,
        apart: tuple[int, int] | None,
        options: SamplingOptions,
        maps: int,
    ) -> DeviceNeeds:
        """Compute the GPU memory that a run needs, and the number of classes of boards for which there is room.

        `maps` is the size in bytes of the buckets of all hands. `apart` is the result of `trunk_and_classes`.
        """
        whole = device_bytes(game, menu, sum(size.slots), options, maps)
        try:
            free = free_memory()
        except RunError:  # this machine has no GPU
            return cls(whole, 0)
        if whole <= free or not apart or apart[1] < 2 or options.compact:
            return cls(whole, 0)
        trunk, classes = apart
        head, each = sum(size.slots[:trunk]), sum(size.slots[trunk:]) // classes
        frames = (free - device_bytes(game, menu, head, options, maps)) // (4 * words_per_action(options) * each)
        frames = max(1, min(frames, classes - 1))
        return cls(device_bytes(game, menu, head + frames * each, options, maps), frames)


def trunk_and_classes(cards: Sequence[AbstractionSpec]) -> tuple[int, int] | None:
    """Return the number of rounds before the first board, and the number of classes of boards.

    The result is None if the card abstractions have no common classes of boards.
    """
    try:
        shared = shared_classes(cards)
        return head_rounds(shared.plan, shared.deal), shared.plan.public[0].classes
    except RunError:
        return None


def gpu_solver(
    abstract: AbstractGame, places: Sequence[Path], seed: int, options: SamplingOptions, dtype: npt.DTypeLike
) -> GpuExternalMCCFR:
    """Create the GPU solver of a game.

    If GPU memory is too small for all tables, it holds those of some classes of boards at a time.
    """
    cards = abstract.cards.each
    maps = sum(this.table.nbytes for this in {id(this.table): this for each in cards for this in each.rounds}.values())
    apart = trunk_and_classes([each.identity for each in cards])
    needs = DeviceNeeds.estimate(abstract.game, abstract.actions, abstract.size, apart, options, maps)
    if not needs.frames:
        return GpuExternalMCCFR(abstract, seed, options, dtype)
    return GpuClassedExternalMCCFR(Partition.divide(abstract, places), seed, options, dtype, needs.frames)


class ClassTables(DeviceTable):
    """The regrets and action counts of a game whose tables are larger than GPU memory.

    The tables of the first rounds and of some classes of boards are in GPU memory. Those of all classes are in the
    memory of the CPU.

    Parameters
    ----------
    partition : Partition
        The abstract game, divided into parts.
    options : SamplingOptions
        Sampling options.
    frames : int
        Number of classes in GPU memory at a time.
    """

    def __init__(self, partition: Partition, options: SamplingOptions = DEFAULT, frames: int = 1) -> None:
        self.partition, self.classes = partition, partition.classes
        self.frames = min(frames, self.classes)
        part = partition.part(0)
        self.each = DeviceTable(part, options, empty=True)  # layout of a game with a single class
        self.stride = self.each.size + self.each.size % 2  # pairs of numbers do not straddle
        self.part_of = [partition.part(label) for label in range(self.classes)]
        self.pages = [pinned_array(self.each.size) for _ in range(self.classes)]
        super().__init__(partition.head, options)
        self.trunk = partition.trunk
        later = self.nodes["round"] >= self.trunk
        self.nodes["first"][later] = self.each.nodes["first"][later] + self.classes_offset

    @property
    def classes_offset(self) -> int:
        """The position of the board classes' tables in the GPU's table, in 4-byte words."""
        return self.size + self.size % 2

    @property
    def game_words(self) -> int:
        """The size of a table for the whole game, in 4-byte words."""
        return self.words * self.partition.abstract.slots

    def clear(self) -> None:
        """Set all regrets and counts to 0."""
        self.table = self.numbers = None
        self.table = self.cupy.zeros(self.classes_offset + self.frames * self.stride + 2, np.uint32)
        self.numbers = self.cupy.zeros(self.wide_size + 2, np.float64)
        for page in self.pages:
            page[:] = 0
        self._waiting: list[list[tuple[str, tuple[Any, ...]]]] = [[] for _ in range(self.classes)]
        self.held = list(range(self.frames))  # [frame] the class whose rows it holds
        self.copied = 0  # bytes, in both directions
        self._walk_over([])

    def _walk_over(self, classes: Sequence[int]) -> None:
        """Make the GPU skip all deals whose boards are not in the given classes."""
        frames = np.zeros(self.classes, np.uint32)
        frames[list(classes)] = [1 + self.held.index(label) for label in classes]
        self._frame_of = self.cupy.asarray(frames)
        self.frame = address(self._frame_of)

    def frame_table(self, frame: int) -> DeviceTable:
        """Return the table of a class of boards from its place in GPU memory."""
        found = copy(self.each)
        start = self.classes_offset + frame * self.stride
        found.table, found.numbers = self.table[start : start + self.stride + 2], self.numbers
        found.kernel, found.least = self.kernel, self.least
        return found

    def copy_to_gpu(self, classes: Sequence[int]) -> None:
        """Copy the tables of the given classes of boards to GPU memory, unless they are there.

        The GPU then processes only deals with boards of these classes.
        """
        free = [frame for frame, label in enumerate(self.held) if label not in classes]
        for label, frame in zip([label for label in classes if label not in self.held], free, strict=False):
            there = self.frame_table(frame)
            self._store(frame)
            copy_in(self.pages[label], there.table[: self.each.size], pinned=True)
            self.copied += 8 * self.each.size
            self.held[frame] = label
            for name, arguments in self._waiting[label]:
                getattr(there, name)(*arguments)
            self._waiting[label] = []
        self._walk_over(classes)

    def _store(self, frame: int) -> None:
        """Copy the tables in one place of GPU memory to the memory of the CPU."""
        copy_out(self.frame_table(frame).table[: self.each.size], self.pages[self.held[frame]], pinned=True)

    def groups(self) -> list[list[int]]:
        """Divide the classes of boards into groups that fit into GPU memory.

        The group that is already there comes first.
        """
        first = sorted(self.held)
        others = [label for label in range(self.classes) if label not in first]
        return [first, *(others[k : k + self.frames] for k in range(0, len(others), self.frames))]

    def _of_all(self, name: str, *arguments: Any) -> None:
        """Change the tables of all classes of boards.

        Those not in GPU memory are changed when they are next copied there.
        """
        getattr(super(), name)(*arguments)
        for label in range(self.classes):
            if label in self.held:
                getattr(self.frame_table(self.held.index(label)), name)(*arguments)
            else:
                self._waiting[label].append((name, arguments))

    def discount(self, key: np.uint64, threads: int = 1) -> None:
        """Discount all regrets and counts, as linear CFR requires."""
        self._of_all("discount", key)

    def halve(self, limit: int, threads: int = 1) -> None:
        """Halve the counts of each decision with a count of at least `limit`, and limit its regrets."""
        self._of_all("halve", limit)

    def integer_strategy(self, dtype: npt.DTypeLike, threads: int = 1, *, counted: bool = True) -> Array:
        """Return the average strategy, with probabilities rounded to integers.

        If no average is stored, the result is the current strategy.
        """
        whole = self.partition.abstract
        shares = np.zeros(whole.slots, dtype=dtype)
        join_parts([(self.partition.head, super().integer_strategy(dtype, counted=counted))], whole, shares)
        for label, frame in self._each_in_turn():
            join_parts(
                [(self.part_of[label], self.frame_table(frame).integer_strategy(dtype, counted=counted))], whole, shares
            )
        return shares

    def _each_in_turn(self) -> Iterator[tuple[int, int]]:
        """Yield each class with its place in GPU memory, which it keeps until the next class is requested."""
        for group in self.groups():
            self.copy_to_gpu(group)
            for label in group:
                yield label, self.held.index(label)

    def checkpoint_arrays(self) -> tuple[Deferred, Deferred]:
        """Return the regrets and counts as two arrays for a checkpoint.

        The first has the CPU's format, the second has the 8-byte numbers of the first round. Both are copied from the
        GPU only when they are written.
        """
        _, wide = super().checkpoint_arrays()
        return Deferred((self.game_words,), np.dtype(np.uint32), partial(self._fill_whole, wide)), wide

    def _fill_whole(self, wide: Deferred, table: Array) -> None:
        """Write the table of the whole game in the CPU's format."""
        head = np.empty(self.size, np.uint32)
        self._fill(wide, head)
        for label, frame in self._each_in_turn():  # pending changes are applied
            self._store(frame)
            self._copy(self.part_of[label], self.pages[label], table)
        self._copy(self.partition.head, head, table)

    def _copy(self, part: AbstractPart, mine: Array, table: Array, *, back: bool = False) -> None:
        """Copy the tables of a part of the game to the table of the whole game, or the other way with `back`."""
        acts = np.flatnonzero(part.betting.nodes.actor >= 0)
        begin, place, size = (self.words * each for each in part.table_ranges(self.partition.abstract, acts))
        if back:
            copy_ranges(np.asarray(table), place, mine, begin, size)
        else:
            copy_ranges(mine, begin, table, place, size)

    def load(self, table: Array, wide: Array | None) -> None:
        """Load the regrets and counts of a checkpoint from a GPU or a CPU.

        The arguments are the arrays that `checkpoint_arrays` has returned. `wide` is None if the checkpoint comes from
        a CPU.
        """
        if table.shape != (self.game_words,):
            raise ValueError(f"table has shape {table.shape}, not {(self.game_words,)}")
        head = np.empty(self.size, np.uint32)
        self._copy(self.partition.head, head, table, back=True)
        super().load(head, wide)
        for label in range(self.classes):
            self._waiting[label] = []
            self._copy(self.part_of[label], self.pages[label], table, back=True)
        for frame, label in enumerate(self.held):
            copy_in(self.pages[label], self.frame_table(frame).table[: self.each.size], pinned=True)


class GpuClassedExternalMCCFR(GpuExternalMCCFR):
    """A solver that runs external-sampling CFR on a GPU, for tables larger than GPU memory.

    The tables of some classes of boards are in GPU memory at a time.

    Parameters
    ----------
    partition : Partition
        The abstract game, divided into parts.
    seed, options, dtype
        As for `GpuExternalMCCFR`.
    frames : int
        Number of classes in GPU memory at a time.
    """

    def __init__(
        self,
        partition: Partition,
        seed: int = 0,
        options: SamplingOptions = DEFAULT,
        dtype: npt.DTypeLike = np.uint8,
        frames: int = 1,
    ) -> None:
        self.copying = self.walking = 0.0  # total seconds
        self._passes = self._walked = 0  # number of passes, and of their deals
        super().__init__(partition.abstract, seed, options, dtype, ClassTables(partition, options, frames))

    def step(self, iterations: int) -> None:
        """Run at least `iterations` more iterations.

        The number is increased if copies of tables to the GPU would otherwise take much of the time.
        """
        points = [(self.iterations // CHECKED + 1) * CHECKED]
        if self.options.linear:
            points.append(scheduled(self.iterations + 1, STEPS))
        paid = self.pass_deals()
        super().step(max(iterations, min(paid, min(points) - self.iterations)))

    def pass_deals(self) -> int:
        """Return how many deals the GPU should process before other tables are copied to its memory.

        Processing should take `TIMES` as long as copying. The result is at most the number of deals so far.
        """
        if not self._walked:
            return FEWEST
        deals_a_second = self._walked / max(self.walking, 1e-9)
        pays = TIMES * self.copying / self._passes * deals_a_second
        return int(min(max(FEWEST, self.iterations), max(FEWEST, pays)))

    def _walk_all(self, end: int, weight: float) -> None:
        """Process all deals up to number `end`, one group of classes after the other."""
        for group in self.regrets.groups():
            began = perf_counter()
            self.regrets.copy_to_gpu(group)
            self._wait()
            copied = perf_counter()
            super()._walk_all(end, weight)
            self._wait()
            self.copying += copied - began
            self.walking += perf_counter() - copied
        self._passes += 1
        self._walked += end - self.iterations

    def _wait(self) -> None:
        """Wait until the GPU has finished all its work."""
        self.cupy.asnumpy(self._counters[0])
