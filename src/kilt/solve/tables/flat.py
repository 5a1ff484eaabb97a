"""Counterfactual regret minimisation with full walks over a flat tree.

Every iteration, player after player: push the reach of chance and the opponent down the tree, pull counterfactual
values up, and at each information set add to every action's regret what it would have won more than the strategy did.
The next strategy plays in proportion to positive regret. The average strategy converges to an equilibrium; what is
averaged how, and what becomes of old regrets, is a row in `variants`.

>>> from kilt.games import load_game
>>> from kilt.tree.best_response import expected_value, exploitability
>>> from kilt.tree.flat import flat_tree
>>> kuhn = flat_tree(load_game("kuhn"))
>>> solver = FullWidth(kuhn.nodes, "cfr+")
>>> solver.step(1000)
>>> round(18 * expected_value(kuhn, solver.average()), 3), exploitability(kuhn, solver.average()) < 1e-3
(-1.0, True)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.solve.counter import Restriction
from kilt.solve.solver import TableState, normalised
from kilt.solve.tables import flat_kernels as kernels
from kilt.solve.variants import Variant, multipliers, variant_named
from kilt.tree.flat import FlatNodes
from kilt.tree.walk_kernels import own_reach


class FullWidth(TableState):
    """CFR and its variants on a flat tree, players updated in turn; one of them may be restricted (`counter`)."""

    KEPT = ("regret", "expected", "total", "strategy")
    responds = False  # whether the opponent is a best response

    def __init__(
        self, nodes: FlatNodes, variant: str | Variant = "cfr+", restriction: Restriction | None = None
    ) -> None:
        slots = int(nodes.infoset_start[-1])
        self.nodes = nodes
        self.variant = variant_named(variant)
        self.iterations = 0
        self.regret = np.zeros(slots)
        self.expected = np.zeros(slots)
        self.total = np.zeros(slots)  # of the strategies so far, weighted
        self.strategy = normalised(np.zeros(slots), nodes)
        count = len(nodes.actor)
        self._scratch = (np.empty(count), np.empty(count), np.empty(slots), np.empty(slots))
        self._choice = np.empty(len(nodes.infoset_player), dtype=np.int32)
        self._held = restriction or Restriction(-1, np.empty(0))
        self._played = self.strategy
        if restriction is not None:
            player, fixed, coin = restriction
            self._played = self.strategy.copy()
            self._fixed = np.zeros(slots)
            if coin > 0:
                own_reach(nodes, np.ascontiguousarray(fixed), player, self._fixed)
                self._fixed *= coin
            else:
                self._fixed[:] = fixed
            self._restrict()
        else:
            self._fixed = np.empty(0)

    def _restrict(self) -> None:
        """Write what players do, one of whom is restricted."""
        self._played[:] = self.strategy
        player, _, coin = self._held
        kernels.restrict(self.nodes, player, coin, self._fixed, self.strategy, self._scratch[-1], self._played)

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave."""
        super().restore(state)
        if self._held.player >= 0:
            self._restrict()

    def step(self, iterations: int) -> None:
        """Run `iterations` more CFR iterations; the players are updated in turn."""
        rows = multipliers(self.variant, np.arange(1.0, iterations + 1) + self.iterations)
        tables = (self.regret, self.expected, self.total, self.strategy)
        held = self._held.player, self._held.coin, self._fixed, self._played
        kernels.iterate(
            self.nodes, rows, self.variant.predictive, self.responds, *held, *tables, *self._scratch, self._choice
        )
        self.iterations += iterations

    def average(self) -> FloatArray:
        """[slot] the average strategy: what converges."""
        return normalised(self.total, self.nodes)

    def current(self) -> FloatArray:
        """[slot] the strategy that the next iteration starts from."""
        return self.strategy.copy()
