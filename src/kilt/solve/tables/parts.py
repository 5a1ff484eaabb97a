"""Tables of games that are walked in parts: a trunk of the first rounds, and the subtrees below its last boards."""

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

Values = FloatArray  # [chance node of the trunk, hand] values of a part


class Learning(NamedTuple):
    """A walk in which a player learns, and a function that enters its sums over buckets into the tables."""

    walk: CompiledWalk
    enter: Callable[[], None]  # does nothing without buckets


class PartTables(Tables):
    """Tables of a trunk, and of parts that are walked one by one or in parallel.

    The parts are walked first, and a player learns in each. Their values are summed in a fixed order at the chance
    nodes that end the trunk, from where the walk of the trunk takes them up.
    """

    vectors: VectorGame  # the game that is walked
    dtype: npt.DTypeLike  # of the numbers in walks
    trunk_rounds: int = 1

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Walk all parts, and then the trunk."""
        values = np.zeros((self.opened(turn), self.vectors.shape[1]))
        for opens, worth in self.worths(turn, discount):
            values[opens] += worth
        trunk = self.trunk_learning(turn, discount)
        self.vectors.conclude_walk(turn.player, trunk.walk, values, self.dtype, self.trunk_rounds)
        trunk.enter()

    @abstractmethod
    def opened(self, turn: Turn) -> int:
        """Number of chance nodes that end the trunk, on all boards of its last round that are walked."""

    @abstractmethod
    def worths(self, turn: Turn, discount: Discount) -> Iterable[tuple[slice, Values]]:
        """Let a player learn in all parts; yield the chance nodes that lead to each part and its values, in order."""

    @abstractmethod
    def trunk_learning(self, turn: Turn, discount: Discount) -> Learning:
        """Return the walk of the trunk."""


def require_unsigned(variant: Variant, what: str) -> None:
    """Raise GameError for variants with negative regrets or prediction: unsigned tables cannot store these."""
    if not variant.unsigned:
        fitting = (name for name, row in VARIANTS.items() if row.unsigned)
        raise GameError(
            f"{what} support only variants without negative regrets and prediction: use {' or '.join(fitting)}"
        )
