"""The CFR family on a GPU: the iterations of `solve.vector` with full walks, on all boards of a round at once."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from kilt.arrays import Array
from kilt.errors import RunError
from kilt.solve.variants import Variant, discounts, variant_named
from kilt.tree.device import LEARNING, DeviceGame
from kilt.tree.device_compact import CompactGame, CompactTable
from kilt.tree.vector_arrays import FOLLOW


class DeviceCfr:
    """Full-width CFR with tables on the device: both players are updated in turn, as by `VectorCfr`.

    Parameters
    ----------
    game : DeviceGame
        What is solved.
    variant : str or Variant
        A row of `solve.variants`.
    """

    def __init__(self, game: DeviceGame, variant: str | Variant = "cfr+") -> None:
        self.game, self.variant, self.iterations = game, variant_named(variant), 0
        self.regret, self.total = game.table(), game.table()
        self.next = game.table() if self.variant.predictive else self.regret

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        for row in discounts(self.variant, self.iterations + 1, iterations):
            above, below, average, weight, average_weight = row.tolist()
            numbers = above, below, weight, average, average_weight, self.game.tree.noise
            learning = np.array((*numbers, 1, 1, self.variant.predictive, 0), LEARNING)
            for player in (0, 1):
                self.game.sweep(player, FOLLOW, self.next, self.next, learning, self.regret, self.total)
            self.iterations += 1

    def average(self) -> Any:
        """The average strategy: a table on the device."""
        return self.total

    def current(self) -> Any:
        """The strategy that the next iteration starts from: a table on the device."""
        return self.next

    def state(self) -> dict[str, Array]:
        """All that must be kept to go on later as if nothing had happened: the arrays of `VectorCfr`, on the host."""
        kept = ("regret", "total", *["next"] * self.variant.predictive)
        tables = {name: self.game.cupy.asnumpy(getattr(self, name)) for name in kept}
        return {**tables, "iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from what `state` gave, here or on the CPU."""
        put = self.game.cupy.asarray
        self.regret, self.total = (put(state[name].astype(self.game.dtype)) for name in ("regret", "total"))
        self.next = put(state["next"].astype(self.game.dtype)) if self.variant.predictive else self.regret
        self.iterations = int(state["iterations"])


class CompactCfr:
    """CFR+ with compact tables on the device: both players are updated in turn, as by `DeviceCfr`.

    Parameters
    ----------
    game : CompactGame
        What is solved. Where it is not averaged, the current strategy is the result.
    variant : str or Variant
        A row of `solve.variants` that keeps no negative regrets and does not discount others.
    """

    def __init__(self, game: CompactGame, variant: str | Variant = "cfr+") -> None:
        self.game, self.variant, self.iterations = game, variant_named(variant), 0
        if (self.variant.alpha, self.variant.beta, self.variant.predictive) != (inf, -inf, False):
            raise RunError("compact tables are for variants without negative regrets and discounts: use cfr+")
        self.regret = game.table()
        self.total = game.table() if game.averaged else self.regret

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        for row in discounts(self.variant, self.iterations + 1, iterations):
            above, below, average, weight, average_weight = row.tolist()
            numbers = above, below, weight, average, average_weight, self.game.tree.noise
            learning = np.array((*numbers, 1, self.game.averaged, 0, 0), LEARNING)
            for player in (0, 1):
                self.game.sweep(player, FOLLOW, self.regret, learning, self.total, 2 * self.iterations + player)
            self.iterations += 1

    def average(self) -> CompactTable:
        """The average strategy; the current one where no average is kept."""
        return self.total
