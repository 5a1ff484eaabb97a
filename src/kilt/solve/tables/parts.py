"""Define CFR tables that are updated in parts: each subtree after the first rounds, then the first rounds."""

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
    """A computation in which a player learns, and a function that then adds sums over buckets to the tables."""

    walk: CompiledWalk
    enter: Callable[[], None]  # does nothing without buckets


class PartTables(Tables):
    """CFR tables of the first rounds, and of the parts of the tree after them, which are updated separately.

    A player first learns in each part. The values of all parts are summed in a fixed order at the chance nodes that end
    the first rounds, called the trunk. The pass over the trunk starts from these sums.
    """

    vectors: VectorGame  # the game that is walked
    dtype: npt.DTypeLike  # of the numbers in walks
    trunk_rounds: int = 1

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets in all parts of the tree, and then in the first rounds."""
        values = np.zeros((self.opened(turn), self.vectors.shape[1]))
        for opens, worth in self.worths(turn, discount):
            values[opens] += worth
        trunk = self.trunk_learning(turn, discount)
        self.vectors.conclude_walk(turn.player, trunk.walk, values, self.dtype, self.trunk_rounds)
        trunk.enter()

    @abstractmethod
    def opened(self, turn: Turn) -> int:
        """Return how many chance nodes lead from the first rounds to parts, counted on each board."""

    @abstractmethod
    def worths(self, turn: Turn, discount: Discount) -> Iterable[tuple[slice, Values]]:
        """Let a player learn in all parts. Yield the chance nodes that lead to each part, and its values, in order."""

    @abstractmethod
    def trunk_learning(self, turn: Turn, discount: Discount) -> Learning:
        """Return the computation with which a player learns in the first rounds."""


def require_unsigned(variant: Variant, what: str) -> None:
    """Raise GameError for variants with negative regrets or prediction, which unsigned tables cannot store."""
    if not variant.unsigned:
        fitting = (name for name, row in VARIANTS.items() if row.unsigned)
        raise GameError(
            f"{what} support only variants without negative regrets and prediction: use {' or '.join(fitting)}"
        )
