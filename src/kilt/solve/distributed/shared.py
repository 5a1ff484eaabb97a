"""What head and blades are told: the game that they share, and messages about batches of its deals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame, AbstractPart
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import load_abstractions
from kilt.arrays import Array, BoolArray, FloatArray, IntArray
from kilt.draws import numbered
from kilt.errors import RunError
from kilt.games.holdem import Holdem
from kilt.solve.distributed.partition import Partition
from kilt.solve.external import CHECKED, SamplingOptions, weight_beyond
from kilt.solve.external_kernels import Singles, Starts
from kilt.solve.solver import scheduled

STEPS = 20  # linear weighting begins at 2^10 deals, since each is worth as many as there are classes: see `external`


@dataclass(frozen=True)
class SharedGame:
    """The game to be solved as head and children are told it; it is small, and is pickled."""

    game: Holdem
    cards: tuple[Path, ...]  # the folder of the card abstraction, or one for each player
    actions: ActionAbstraction | None
    fingerprint: str  # of the abstract game
    options: SamplingOptions
    seed: int
    batch: int  # deals in a message
    samples: int = 1  # boards that each class draws for a deal, where `boards` is 0
    boards: int = 0  # boards for a deal, of all classes together
    weighted: bool = (
        True  # whether what a class adds to its own tables weighs |F(n,h)|; algorithm 4 has no weight there
    )
    depth: int = 1  # levels of blades

    def open(self) -> Partition:
        """The abstract game in its parts; RunError where the folder of the cards belongs to another game."""
        abstract = AbstractGame(self.game, load_abstractions(self.cards), self.actions)
        if abstract.fingerprint != self.fingerprint:
            places = " and ".join(map(str, self.cards))
            raise RunError(
                f"the buckets in {places} belong to another game ({abstract.fingerprint}, not {self.fingerprint}): "
                "give all machines the same folder"
            )
        return Partition.of(abstract, self.cards, self.depth)

    def key(self, *numbers: int) -> np.uint64:
        """The key of a stream of random numbers: of the whole game, or of a part of it given by numbers."""
        key = np.uint64(self.seed % 2**64)
        with np.errstate(over="ignore"):
            for number in numbers:
                key = np.uint64(numbered(key, np.uint64(number + 1)))
        return key

    def whole(self, ways: int) -> int:
        """Sum of the weights of all boards of a deal: Σ |F(n,h)| for each sample, or 1 for each board."""
        return self.boards or self.samples * ways

    def discounts(self, number: int) -> bool:
        """Whether regrets and counts are discounted before a batch, for linear weighting."""
        first = number * self.batch
        return self.options.linear and number > 0 and scheduled(first - self.batch + 1, STEPS) <= first

    def halves(self, number: int) -> bool:
        """Whether large counts are halved before a batch: they could pass `external.FULL` in it otherwise."""
        adds = self.batch * max(self.boards, self.samples)  # most that a batch adds to a count
        return (number + 1) * adds // CHECKED > number * adds // CHECKED

    def weight(self, number: int) -> float:
        """Total weight of the deals before a batch, less their number, when the next deal weighs 1."""
        return weight_beyond(number * self.batch, STEPS) if self.options.linear else 0.0


class Batch(NamedTuple):
    """A message to children: the number of a batch, and where the walks over its deals left the trunk."""

    number: int
    starts: Starts


class BatchResult(NamedTuple):
    """A child's answer to a batch."""

    sums: IntArray  # [start] Σ |F(n,h)| · v over classes and samples, see `kernels.FINE`
    seconds: float  # of work
    decisions: int  # visited
    visits: int  # nodes visited, leaves included
    work: FloatArray  # [class] seconds, 0 for those of others


class BoardDraw(NamedTuple):
    """Boards of a class that were drawn for some deals of a batch."""

    batch: Batch  # the starts of these deals
    which: IntArray | slice  # [start] which they are of all of the batch
    ways: IntArray  # [deal] how much a board weighs: |F(n,h)|, or 1 where boards are spread over classes
    key: np.uint64
    board: IntArray  # [deal] which of the boards of the class it is
    likely: Singles  # [deal] in proportion to how often boards of the class go with these hands


class StrategyPart(NamedTuple):
    """A strategy as far as it is played on some boards: that of the trunk, and of one class of boards."""

    slots: AbstractPart
    shares: Array  # [slot]
    owns: Callable[[IntArray], BoolArray]  # from boards [deal, card], of the last round, to whether it is about them
