"""CFR's tables for abstract games given by pairs of bucket sequences."""

from __future__ import annotations

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.solve.cfr import Tables, Turn
from kilt.solve.counter import Restriction
from kilt.solve.joint import JointGame
from kilt.solve.solver import TableState
from kilt.tree.rule import Discount

NOBODY = -1


class PairTables(TableState, Tables):
    """The tables of CFR for an abstract game given by pairs of bucket sequences.

    Parameters
    ----------
    game : JointGame
        The abstract game.
    restriction : Restriction, optional
        Restricts one player in part to a fixed strategy, a table over slots: see `counter`.
    """

    KEPT = ("regret", "total", "strategy")

    def __init__(self, game: JointGame, restriction: Restriction | None = None) -> None:
        self.game = game
        arrays, slots = game.arrays, game.abstract.slots
        self.regret, self.total = arrays.zeros(slots), arrays.zeros(slots)
        self.strategy = game.normalised(self.total)
        self._held = restriction or Restriction(NOBODY, np.empty(0))
        self._fixed, self._played = arrays.asarray(self._held.fixed, dtype=np.float64), self.strategy
        if restriction and not restriction.coin:
            layout = game.layout
            acts = np.repeat(layout.actor, layout.actions) == restriction.player
            fixed = np.where(acts, restriction.fixed, 0.0)
            free = np.maximum(1 - np.add.reduceat(fixed, layout.start[:-1]), 0.0)
            self._fixed, self._free = arrays.asarray(fixed), arrays.asarray(np.repeat(free, layout.actions))
            self._played = arrays.empty(slots)
            self._restrict()

    def _restrict(self) -> None:
        """Compute the strategies to follow. One player must follow `fixed` in part [Johanson16 equation 6.1]."""
        if self._played is not self.strategy:
            self.game.arrays.multiply(self._free, self.strategy, out=self._played)
            self._played += self._fixed

    def state(self) -> dict[str, Array]:
        """Return the state as arrays for a checkpoint, from which a CPU or a GPU can resume."""
        tables = {name: self.game.on_host(getattr(self, name)) for name in self.KEPT}
        return {**tables, "iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, Array]) -> None:
        """Load the arrays of a checkpoint."""
        put = self.game.arrays.asarray
        super().restore({**state, **{name: put(state[name]) for name in self.KEPT}})
        self._restrict()

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets and the opponent's average strategy in one pass."""
        game, other, coin = self.game, 1 - turn.player, self._held.coin
        player, strategy, played = turn.player, self.strategy, self._played
        # A coin tossed before the game chooses between the opponent's fixed and learnt strategies.
        thrown = other == self._held.player and coin > 0
        ways, followed = ((coin, 1 - coin), (self._fixed, strategy)) if thrown else ((1.0,), (played,))

        def push(r: int, begin: int, end: int, reach: FloatArray) -> None:
            for table, along in zip(followed, reach, strict=True):
                game.push_reach(r, begin, end, other, table, along)
            game.add_average(r, begin, end, other, discount, reach[-1], self.total)

        def pull(r: int, begin: int, end: int, value: FloatArray) -> None:
            game.pull_values(r, begin, end, player, played, value)
            held = played is not strategy
            game.learn(r, begin, end, player, discount, value, self.regret, strategy, restricted=held)

        game.walk(player, push, pull, ways)
        self._restrict()

    def average(self) -> FloatArray:
        """Return the average strategy, which is uniform at information sets never reached."""
        return self.game.normalised(self.total)

    def current(self) -> FloatArray:
        """Return the current strategy, computed by regret matching."""
        return self.strategy.copy()
