"""CFR-BR: regret minimisation against a best response (Johanson, Bard, Burch and Bowling 2012; [Johanson16 chapter 4]).

Two regret minimisers that play each other find an equilibrium of the game they play, and in an abstract game that need
not be the least exploitable strategy in the real one. CFR-BR lets each player minimise regret against an opponent who
always plays a best response in the real game, and so converges to the least exploitable strategy that the player can
express.

>>> from kilt.games import load_game
>>> from kilt.tree.best_response import exploitability
>>> from kilt.tree.flat import flat_tree
>>> kuhn = flat_tree(load_game("kuhn"))
>>> solver, seen = CfrBr(kuhn.nodes), []
>>> for _ in range(3):
...     solver.step(1)
...     seen.append(round(2 * exploitability(kuhn, solver.average()), 4))
>>> seen
[0.9167, 0.3333, 0.3194]
"""

from __future__ import annotations

from kilt.solve.tables.flat import FullWidth
from kilt.tree.flat import FlatNodes


class CfrBr(FullWidth):
    """CFR-BR on a flat tree. Both best responses are taken to the strategies before the iteration."""

    responds = True

    def __init__(self, nodes: FlatNodes, variant: str = "cfr") -> None:
        super().__init__(nodes, variant)
