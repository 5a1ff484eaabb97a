"""CFR on small games whose whole tree fits into memory, with a visit to every node per iteration.

An iteration updates the players in turn. It passes the reach of chance and the opponent down the tree, passes
counterfactual values up, and at each information set adds to the regret of each action its value minus that of the
strategy. The next strategy is proportional to the positive regrets. The average strategy converges to an equilibrium. A
row of `variants` says how strategies are averaged and earlier regrets are discounted.

Two regret minimisers that play against each other find an equilibrium of their game. For an abstract game, that need
not be the least exploitable strategy in the real game. In CFR-BR, each player minimises regret against an opponent who
always plays a best response in the real game, and therefore converges to the least exploitable strategy that the player
can express (Johanson, Bard, Burch and Bowling 2012; [Johanson16 chapter 4]).

>>> from kilt.games import load_game
>>> from kilt.solve.cfr import Cfr
>>> from kilt.tree.best_response import expected_value, exploitability
>>> from kilt.tree.flat import flat_tree
>>> kuhn = flat_tree(load_game("kuhn"))
>>> solver = Cfr(FlatTables(kuhn.nodes), "cfr+")
>>> solver.step(1000)
>>> round(18 * expected_value(kuhn, solver.average()), 3), exploitability(kuhn, solver.average()) < 1e-3
(-1.0, True)
>>> solver, seen = Cfr(FlatTables(kuhn.nodes, responds=True), "cfr"), []
>>> for _ in range(3):
...     solver.step(1)
...     seen.append(round(2 * exploitability(kuhn, solver.average()), 4))
>>> seen
[0.9167, 0.3333, 0.3194]
"""

from __future__ import annotations

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.solve.cfr import Tables
from kilt.solve.counter import Restriction
from kilt.solve.solver import TableState, normalised
from kilt.solve.tables import flat_kernels as kernels
from kilt.tree.flat import FlatNodes
from kilt.tree.walk_kernels import own_reach


class FlatTables(TableState, Tables):
    """A small game's regrets and average strategies, with a number for each action of an information set.

    Parameters
    ----------
    nodes : FlatNodes
        The tree.
    responds : bool
        Whether the opponent plays a best response to the strategy before the iteration, as in CFR-BR.
    restriction : Restriction, optional
        Restricts one player to a fixed strategy, a table over slots: see `counter`.
    """

    KEPT = ("regret", "expected", "total", "strategy")

    def __init__(self, nodes: FlatNodes, *, responds: bool = False, restriction: Restriction | None = None) -> None:
        slots = int(nodes.infoset_start[-1])
        self.nodes, self.responds = nodes, responds
        self.regret = np.zeros(slots)
        self.expected = np.zeros(slots)
        self.total = np.zeros(slots)  # weighted sum of the strategies so far
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
        """Compute the strategies that the players follow, of which one may be restricted."""
        self._played[:] = self.strategy
        player, _, coin = self._held
        kernels.restrict(self.nodes, player, coin, self._fixed, self.strategy, self._scratch[-1], self._played)

    def restore(self, state: dict[str, Array]) -> None:
        """Load the arrays of a checkpoint."""
        super().restore(state)
        if self._held.player >= 0:
            self._restrict()

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run CFR iterations in compiled code.

        `rows` has the discount factors of each iteration.
        """
        tables = (self.regret, self.expected, self.total, self.strategy)
        held = self._held.player, self._held.coin, self._fixed, self._played
        kernels.iterate(self.nodes, rows, predictive, self.responds, *held, *tables, *self._scratch, self._choice)
        self.iterations += len(rows)

    def average(self) -> FloatArray:
        """Return the average strategy, with a probability for each action of each information set."""
        return normalised(self.total, self.nodes)

    def current(self) -> FloatArray:
        """Return the strategy of the next iteration.

        It has one probability for each action of each information set.
        """
        return self.strategy.copy()
