"""The messages of a distributed run: the game, batches of deals, and workers' answers."""

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
from kilt.draws import splitmix_word
from kilt.errors import RunError
from kilt.games.holdem import Holdem
from kilt.solve.distributed.partition import Partition
from kilt.solve.external import CHECKED, SamplingOptions, excess_weight
from kilt.solve.external_kernels import Singles, Starts
from kilt.solve.solver import scheduled

STEPS = 20  # linear weighting begins at 2^10 deals, since each counts once for every class: see `external`


@dataclass(frozen=True)
class SharedGame:
    """The game and settings that the head process of a distributed run sends to its workers."""

    game: Holdem
    cards: tuple[Path, ...]  # the folder of the card abstraction, or one for each player
    actions: ActionAbstraction | None
    fingerprint: str  # fingerprint of the abstract game
    options: SamplingOptions
    seed: int
    batch: int  # deals in a message
    samples: int = 1  # boards that each class samples per deal, if `boards` is 0
    boards: int = 0  # boards per deal, in all classes together
    weighted: bool = True  # whether a class weights updates of its own tables by |F(n,h)|; algorithm 4 does not
    depth: int = 1  # levels of blades

    def open(self) -> Partition:
        """Load the game with its card abstractions, and split it into the processes' parts.

        Raises RunError if the card abstraction has another fingerprint.
        """
        abstract = AbstractGame(self.game, load_abstractions(self.cards), self.actions)
        if abstract.fingerprint != self.fingerprint:
            places = " and ".join(map(str, self.cards))
            raise RunError(
                f"the buckets in {places} belong to another game ({abstract.fingerprint}, not {self.fingerprint}): "
                "all machines need the same folder"
            )
        return Partition.divide(abstract, self.cards, self.depth)

    def seed_for(self, *numbers: int) -> np.uint64:
        """Return the run's random seed, or one derived from it for the given numbers."""
        key = np.uint64(self.seed % 2**64)
        with np.errstate(over="ignore"):
            for number in numbers:
                key = np.uint64(splitmix_word(key, np.uint64(number + 1)))
        return key

    def total_weight(self, ways: int) -> int:
        """Return the total weight of the sampled boards of a deal.

        This is Σ |F(n,h)| for each sample, or 1 for each board.
        """
        return self.boards or self.samples * ways

    def discounts(self, number: int) -> bool:
        """Return whether regrets and counts are discounted before a batch of deals."""
        first = number * self.batch
        return self.options.linear and number > 0 and scheduled(first - self.batch + 1, STEPS) <= first

    def halves(self, number: int) -> bool:
        """Return whether large counts are halved before a batch of deals, to prevent an overflow.

        The limit is `external.FULL`.
        """
        adds = self.batch * max(self.boards, self.samples)  # upper bound of a batch's contribution to a count
        return (number + 1) * adds // CHECKED > number * adds // CHECKED

    def excess_weight(self, number: int) -> float:
        """Return the total weight of all deals before a batch, minus their number.

        The weights are those of linear CFR, where the next deal weighs 1.
        """
        return excess_weight(number * self.batch, STEPS) if self.options.linear else 0.0


class Batch(NamedTuple):
    """A message of a distributed run that asks workers to play a batch of deals in the later rounds."""

    number: int
    starts: Starts


class BatchResult(NamedTuple):
    """What a worker returns for a batch of deals: the values of the deals, and counts of its work."""

    sums: IntArray  # [start] Σ |F(n,h)| · v over classes and samples, see `kernels.FINE`
    seconds: float  # seconds of work
    decisions: int  # number of decisions visited
    visits: int  # number of nodes visited, including leaves
    work: FloatArray  # [class] seconds; 0 for classes of other blades


class BoardDraw(NamedTuple):
    """The boards of one class that were sampled for a batch of deals in a distributed run."""

    batch: Batch  # the starts of these deals
    which: IntArray | slice  # [start] indices among the starts of the batch
    ways: IntArray  # [deal] weight of the board: |F(n,h)|, or 1 if boards are spread over classes
    key: np.uint64
    board: IntArray  # [deal] index among the boards of the class
    likely: Singles  # [deal] proportional to the share of the class's boards compatible with the hands


class StrategyPart(NamedTuple):
    """A strategy for the boards of one class, and for the rounds before the first board."""

    slots: AbstractPart
    shares: Array  # [slot]
    owns: Callable[[IntArray], BoolArray]  # maps boards [deal, card] of the last round to whether the part covers them
