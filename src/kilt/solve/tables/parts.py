"""CFR tables that are updated in parts: each subgame in turn, then the first rounds."""

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
from kilt.tree.vector import VectorGame
from kilt.tree.walks import CompiledWalk

Values = FloatArray  # [chance node of the trunk, hand] values of a part


class Learning(NamedTuple):
    """A prepared pass of CFR for one player, and the step that updates the tables after it."""

    walk: CompiledWalk
    enter: Callable[[], None]  # does nothing without buckets


class PartTables(Tables):
    """Base class of CFR tables that are updated in parts: all subgames, then the first rounds.

    The parts are the subtrees after the first rounds, followed by the first rounds. A player first learns in each part.
    The values of all parts are summed in a fixed order at the chance nodes that end the first rounds, called the trunk.
    The pass over the trunk starts from these sums.
    """

    vectors: VectorGame  # the game that is walked
    dtype: npt.DTypeLike  # of the numbers in walks
    trunk_rounds: int = 1

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets in all subgames, then in the first rounds."""
        tree, rounds = self.vectors.tree, self.trunk_rounds
        entries = np.diff(tree.entry_start)[rounds] * np.diff(tree.board_start)[rounds - 1]
        values = np.zeros((entries, self.vectors.shape[1]))
        for opens, worth in self.update_subgames(turn, discount):
            values[opens] += worth
        trunk = self.prepare_trunk_pass(turn, discount)
        self.vectors.conclude_walk(turn.player, trunk.walk, values, self.dtype, self.trunk_rounds)
        trunk.enter()

    @abstractmethod
    def update_subgames(self, turn: Turn, discount: Discount) -> Iterable[tuple[slice, Values]]:
        """Update one player's regrets in all subgames, and yield each subgame's values in order.

        Each item is the chance nodes that lead to a subgame, and their values.
        """

    @abstractmethod
    def prepare_trunk_pass(self, turn: Turn, discount: Discount) -> Learning:
        """Compute what the pass of CFR over the first rounds needs before it updates a player's regrets."""


def require_unsigned(variant: Variant, what: str) -> None:
    """Raise GameError for variants of CFR with negative or predicted regrets.

    Unsigned tables cannot store them.
    """
    if not variant.unsigned:
        fitting = (name for name, row in VARIANTS.items() if row.unsigned)
        raise GameError(
            f"{what} support only variants without negative regrets and prediction: use {' or '.join(fitting)}"
        )
