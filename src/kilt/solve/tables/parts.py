"""Tables that are walked in parts: a trunk of the first rounds, and what follows some boards, part by part."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.solve.cfr import Tables, Turn
from kilt.solve.variants import VARIANTS, Variant
from kilt.tree.rule import Discount
from kilt.tree.vector import CompiledWalk, VectorGame

Values = FloatArray  # [chance node of the trunk, hand] what a part is worth


class Learning(NamedTuple):
    """A walk in which a player learns, and what enters into the tables what it has added up for buckets."""

    walk: CompiledWalk
    enter: Callable[[], None]  # does nothing where there are no buckets


class PartTables(Tables):
    """Tables of a trunk, and of parts that are walked one by one or side by side.

    The parts come first: a player learns in each of them. What they are worth adds up, in their order, at the chance
    nodes that end the trunk, where the walk of the trunk begins.
    """

    vectors: VectorGame  # the game that is walked
    dtype: npt.DTypeLike  # of the numbers in walks
    trunk_rounds: int = 1

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Walk all parts, then the trunk."""
        values = np.zeros((self.opened(turn), self.vectors.shape[1]))
        for opens, worth in self.worths(turn, discount):
            values[opens] += worth
        trunk = self.trunk_learning(turn, discount)
        self.vectors.conclude_walk(turn.player, trunk.walk, values, self.dtype, self.trunk_rounds)
        trunk.enter()

    @abstractmethod
    def opened(self, turn: Turn) -> int:
        """Chance nodes that end the trunk, on all boards of its last round that are walked."""

    @abstractmethod
    def worths(self, turn: Turn, discount: Discount) -> Iterable[tuple[slice, Values]]:
        """Let a player learn in all parts; which chance nodes lead to each, and what it is worth, in their order."""

    @abstractmethod
    def trunk_learning(self, turn: Turn, discount: Discount) -> Learning:
        """The walk of the trunk."""


def require_unsigned(variant: Variant, what: str) -> None:
    """Raise GameError where a variant keeps negative regrets, or predicts: tables without a sign cannot hold these."""
    if not variant.unsigned:
        fitting = (name for name, row in VARIANTS.items() if row.unsigned)
        raise GameError(
            f"{what} are for variants that keep no negative regrets and predict nothing: use {' or '.join(fitting)}"
        )
