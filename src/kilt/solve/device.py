"""The CFR family on a GPU: the iterations of `solve.cfr`, on all boards of a round or one that is drawn."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from kilt.arrays import Array
from kilt.errors import ArtifactError, RunError
from kilt.solve.variants import Variant, discounts, variant_named
from kilt.tree.device import DeviceGame
from kilt.tree.device_arrays import learning_of
from kilt.tree.device_compact import CompactGame, CompactTable
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.rule import Discount
from kilt.tree.vector import FULL_WIDTH, Scheme
from kilt.tree.vector_arrays import FOLLOW, Scope

TOGETHER = 1024  # rows, or boards, of a table that are put on the device at a time


class DeviceCfr:
    """CFR with tables on the device: both players are updated in turn, as on the CPU.

    Parameters
    ----------
    game : DeviceGame
        What is solved.
    variant : str or Variant
        A row of `solve.variants`.
    scheme : Scheme
        What is drawn for a walk: nothing, or boards.
    seed : int
        What is drawn depends on it and on the number of iterations alone, as on the CPU.
    """

    def __init__(
        self, game: DeviceGame, variant: str | Variant = "cfr+", scheme: Scheme = FULL_WIDTH, seed: int = 0
    ) -> None:
        if scheme.mine or scheme.theirs or scheme.rounds is not None:
            raise RunError("a GPU walks all hands: draw nothing, or boards by pcs")
        self.game, self.variant, self.iterations = game, variant_named(variant), 0
        self.scheme, self.seed = scheme, np.array(seed % 2**64, dtype=np.uint64)
        self.regret, self.total = game.table(), game.table()
        self.next = game.table() if self.variant.predictive else self.regret

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        for row in discounts(self.variant, self.iterations + 1, iterations, sampled=self.scheme.boards):
            discount = Discount._make([*row.tolist(), self.variant.predictive])
            learning = learning_of(discount, self.game.tree.noise, regrets=True, averages=True)
            for player in (0, 1):
                scope = self._draw(player) if self.scheme.boards else None
                self.game.sweep(player, FOLLOW, self.next, self.next, learning, self.regret, self.total, scope)
            self.iterations += 1

    def _draw(self, player: int) -> Scope:
        """The boards of a player's next walk, which are those that the CPU draws."""
        game = self.game.game
        scope, number = game.scope(player), np.uint64(2 * self.iterations + player)
        draw_scope(game.tree, player, False, False, game.rounds_drawn(self.scheme), np.uint64(self.seed), number, scope)
        return scope

    def average(self) -> Any:
        """The average strategy: a table on the device."""
        return self.total

    def current(self) -> Any:
        """The strategy that the next iteration starts from: a table on the device."""
        return self.next

    def state(self) -> dict[str, Array]:
        """All that must be kept to go on later as if nothing had happened: arrays as those of the CPU."""
        kept = ("regret", "total", *["next"] * (self.variant.predictive > 0))
        tables = {name: self.game.cupy.asnumpy(getattr(self, name)) for name in kept}
        drawn = {"seed": self.seed} if self.scheme.boards else {}
        return {**tables, **drawn, "iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from what `state` gave, here or on the CPU."""
        if self.scheme.boards:
            self.seed[...] = state["seed"]
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
            discount, averages = Discount._make([*row.tolist(), False]), self.game.averaged
            learning = learning_of(discount, self.game.tree.noise, regrets=True, averages=averages)
            for player in (0, 1):
                self.game.sweep(player, FOLLOW, self.regret, learning, self.total, 2 * self.iterations + player)
            self.iterations += 1

    def average(self) -> Any:
        """The average strategy, a `CompactTable`; the current one where no average is kept."""
        return self.total

    def current(self) -> Any:
        """The strategy that the next iteration starts from: a `CompactTable`."""
        return self.regret

    def _kept(self) -> dict[str, Any]:
        """The arrays on the device that make up its state, by name."""
        tables = {"regret": self.regret} | ({"total": self.total} if self.game.averaged else {})
        return {
            f"{name}_{field}": array
            for name, table in tables.items()
            for field, array in zip(CompactTable._fields, table, strict=True)
        }

    def state(self) -> dict[str, Array]:
        """All that must be kept to go on later as if nothing had happened, on the host."""
        arrays = {name: self.game.cupy.asnumpy(array) for name, array in self._kept().items()}
        return {**arrays, "iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from what `state` gave, on a GPU: tables of the CPU are cut in other ways."""
        if "regret" in state:
            raise ArtifactError("its tables of two bytes are those of the CPU: go on without `--device gpu`")
        for name, mine in self._kept().items():
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            for first in range(0, len(mine), TOGETHER):  # a second table may not fit
                mine[first : first + TOGETHER] = self.game.cupy.asarray(state[name][first : first + TOGETHER])
        self.iterations = int(state["iterations"])
