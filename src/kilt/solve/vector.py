"""CFR over the public tree with vectors of hands [Johanson16 §3.3].

One walk passes the reach of all of the opponent's hands down and the values of all of the player's hands up: at a leaf
every hand meets every other in linear time. Players learn in turn. In a player's walk it is the opponent whose reach is
known, so the opponent's strategy is the one that is averaged.

Chance sampling is the same walk over what was drawn (Johanson, Bard, Lanctot, Gibson and Bowling 2012; [Johanson16
algorithm 1]). Public chance sampling draws boards; the other schemes draw hands as well, the opponent's, the player's
own or both, and have vectors of one hand there.

>>> from kilt.games import load_game
>>> from kilt.tree.vector import VectorGame
>>> solver = VectorCfr(VectorGame(load_game("kuhn")))
>>> solver.step(1000)
>>> round(18 * solver.game.expected_value(solver.average()), 3)
-1.0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.errors import GameError
from kilt.solve.solver import TableState
from kilt.solve.variants import VARIANTS, multipliers
from kilt.tree.vector import FULL_WIDTH, UNDISCOUNTED, Scheme, VectorGame, Walk
from kilt.tree.vector_arrays import ANSWER, LEARN, Table, TableLayout

SCHEMES = {
    "cs": Scheme(boards=True, mine=True, theirs=True),
    "opcs": Scheme(boards=True, theirs=True),
    "spcs": Scheme(boards=True, mine=True),
    "pcs": Scheme(boards=True),
}


class VectorCfr(TableState):
    """CFR and its variants on a public tree. Tables are over (board, row) × hand, as `VectorGame` has them.

    Without averaging, which takes memory and time, the current strategy stands for the average: with CFR+ it converges
    by itself, if not by proof [Johanson16 chapter 9].
    """

    def __init__(
        self,
        game: VectorGame,
        variant: str = "cfr+",
        dtype: npt.DTypeLike = np.float64,
        *,
        averaging: bool = True,
    ) -> None:
        if variant not in VARIANTS:
            raise GameError(f"unknown variant of CFR {variant!r}: use one of {', '.join(VARIANTS)}")
        self.game = game
        self.variant = VARIANTS[variant]
        self.iterations = 0
        self.regret = game.table(dtype)
        # What the next strategy is in proportion to: a table of its own only where it is not the regrets.
        self.next = game.table(dtype) if self.variant.predictive else self.regret
        self.averaging = averaging
        self.total = game.table(dtype) if averaging else self.next
        self.KEPT = ("regret", *["next"] * self.variant.predictive, *["total"] * averaging)

    def step(self, iterations: int) -> None:
        """Do so many more iterations."""
        rows = multipliers(self.variant, np.arange(1.0, iterations + 1) + self.iterations)
        rows = np.column_stack([rows, np.full(iterations, float(self.variant.predictive))])
        self.game.learn(rows, self.next, self.regret, self.total if self.averaging else None)
        self.iterations += iterations

    def average(self) -> Table:
        """The average strategy: what converges."""
        return self.total

    def current(self) -> Table:
        """The strategy that the next iteration starts from."""
        return self.next


class VectorSampled(TableState):
    """CFR with boards, and maybe hands, drawn for each walk."""

    KEPT = ("regret", "total", "seed")

    def __init__(self, game: VectorGame, scheme: str = "pcs", seed: int = 0, dtype: npt.DTypeLike = np.float64) -> None:
        if scheme not in SCHEMES:
            raise GameError(f"unknown sampling scheme {scheme!r}: use one of {', '.join(SCHEMES)}")
        self.game = game
        self.scheme = SCHEMES[scheme]
        self.iterations = 0
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.regret = game.table(dtype)
        self.total = game.table(dtype)

    def step(self, iterations: int) -> None:
        """Do so many more iterations: two walks each."""
        rows = np.tile(UNDISCOUNTED, (iterations, 1))
        drawn = (self.scheme, int(self.seed), 2 * self.iterations)
        self.game.learn(rows, self.regret, self.regret, self.total, *drawn)
        self.iterations += iterations

    def average(self) -> Table:
        """The average strategy: what converges."""
        return self.total

    def current(self) -> Table:
        """The strategy that the next iteration starts from."""
        return self.regret


class Trunk(NamedTuple):
    """The opponent of CFR-BR: a hybrid that learns in the first rounds and responds in those after [Johanson16 §4.3].

    The boards that lead out of the trunk are drawn, so that an iteration needs the responses on one of them alone.
    Where the last round is all there is after it, these are all that is kept. A trunk of no rounds is a best response
    everywhere, with all boards.
    """

    scheme: Scheme
    tasks: tuple[int, ...]  # [round] of the opponent
    view: TableLayout  # of its table: regrets in the trunk, after it 1 for the best action

    @classmethod
    def of(cls, game: VectorGame, trunk: int) -> Trunk:
        """One of so many rounds."""
        tree, rounds = game.tree, len(game.tree.rows)
        if not 0 <= trunk < rounds:
            raise GameError(f"the trunk is {trunk} rounds; {game.game.name} has {rounds}: give 0 to {rounds - 1}")
        tasks = (LEARN,) * trunk + (ANSWER,) * (rounds - trunk)
        if not trunk:
            return cls(FULL_WIDTH, tasks, game.plain)
        rows, start = tree.rows.copy(), tree.table_start.copy()
        if trunk == rounds - 1:
            start[-1], rows[-1] = start[-2] + rows[-1], 0
        return cls(Scheme(boards=True, rounds=trunk), tasks, TableLayout(rows, start, game.plain.bucket))

    def table(self, game: VectorGame, dtype: npt.DTypeLike) -> Table:
        """An empty one."""
        return np.zeros((int(self.view.start[-1]), game.shape[1]), dtype)


class VectorCfrBr(TableState):
    """CFR-BR [Johanson16 chapter 4] on a public tree: each player learns against an opponent who responds.

    With a `trunk` of so many rounds the opponent is a hybrid, see there; without one, a full best response.
    """

    KEPT = ("regret", "total", "response", "seed")

    def __init__(self, game: VectorGame, trunk: int = 0, seed: int = 0, dtype: npt.DTypeLike = np.float64) -> None:
        self.trunk = Trunk.of(game, trunk)
        self.game = game
        self.iterations = 0
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.regret = game.table(dtype)
        self.total = game.table(dtype)
        self.response = self.trunk.table(game, dtype)

    def step(self, iterations: int) -> None:
        """Do so many more iterations. Both opponents respond to the strategies before the iteration."""
        for _ in range(iterations):
            self.game.both_seats(self._respond, self.trunk.scheme)
            self.game.both_seats(self._learn, self.trunk.scheme)
            self.iterations += 1

    def _respond(self, opponent: int) -> None:
        """What an opponent does, and the average of what the player does."""
        scheme, tasks, view = self.trunk
        walk = Walk(opponent, tasks, self.response, self.regret, self.response, self.total, own_view=view)
        self.game.walk(walk, scheme, int(self.seed), self.iterations)

    def _learn(self, player: int) -> None:
        scheme, _, view = self.trunk
        walk = Walk(player, (LEARN,), self.regret, self.response, self.regret, their_view=view)
        self.game.walk(walk, scheme, int(self.seed), self.iterations)

    def average(self) -> Table:
        """The average strategy: what converges."""
        return self.total

    def current(self) -> Table:
        """The strategy that the next iteration starts from."""
        return self.regret
