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

from kilt.arrays import FloatArray
from kilt.solve import cfr_kernels as kernels
from kilt.solve.solver import TableState, normalised
from kilt.solve.variants import Variant, multipliers, variant_named
from kilt.tree.flat import FlatNodes


class FullWidth(TableState):
    """CFR and its variants on a flat tree, players updated in turn."""

    KEPT = ("regret", "expected", "total", "strategy")
    responds = False  # whether the opponent is a best response

    def __init__(self, nodes: FlatNodes, variant: str | Variant = "cfr+") -> None:
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

    def step(self, iterations: int) -> None:
        """Run `iterations` more CFR iterations; the players are updated in turn."""
        rows = multipliers(self.variant, np.arange(1.0, iterations + 1) + self.iterations)
        tables = (self.regret, self.expected, self.total, self.strategy)
        kernels.iterate(self.nodes, rows, self.variant.predictive, self.responds, *tables, *self._scratch, self._choice)
        self.iterations += iterations

    def average(self) -> FloatArray:
        """[slot] the average strategy: what converges."""
        return normalised(self.total, self.nodes)

    def current(self) -> FloatArray:
        """[slot] the strategy that the next iteration starts from."""
        return self.strategy.copy()
