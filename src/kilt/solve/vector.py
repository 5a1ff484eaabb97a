"""CFR over the public tree with vectors of hands (004, section 3.3).

One walk passes the reach of all of the opponent's hands down and the values of all of the player's hands up: at a leaf
every hand meets every other in linear time. Players learn in turn. In a player's walk it is the opponent whose reach is
known, so the opponent's strategy is the one that is averaged.

>>> from kilt.games import load_game
>>> from kilt.tree.vector import VectorGame
>>> solver = VectorCfr(VectorGame(load_game("kuhn")))
>>> solver.step(1000)
>>> round(18 * solver.game.expected_value(solver.average()), 3)
-1.0
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.errors import GameError
from kilt.solve.solver import Tables
from kilt.solve.variants import VARIANTS, multipliers
from kilt.tree.vector import VectorGame
from kilt.tree.vector_kernels import Table


class VectorCfr(Tables):
    """CFR and its variants on a public tree. Tables are over (board, row) × hand, as `VectorGame` has them."""

    KEPT = ("regret", "total")

    def __init__(self, game: VectorGame, variant: str = "cfr+", dtype: npt.DTypeLike = np.float64) -> None:
        fitting = [name for name, row in VARIANTS.items() if not row.predictive]
        if variant not in fitting:
            raise GameError(f"unknown variant of vector CFR {variant!r}: use one of {', '.join(fitting)}")
        self.game = game
        self.variant = VARIANTS[variant]
        self.iterations = 0
        self.regret = game.table(dtype)
        self.total = game.table(dtype)

    def step(self, iterations: int) -> None:
        """Do so many more iterations."""
        rows = multipliers(self.variant, np.arange(1.0, iterations + 1) + self.iterations)
        self.game.learn(rows, self.regret, self.total)
        self.iterations += iterations

    def average(self) -> Table:
        """The average strategy: what converges."""
        return self.total

    def current(self) -> Table:
        """The strategy that the next iteration starts from."""
        return self.regret
