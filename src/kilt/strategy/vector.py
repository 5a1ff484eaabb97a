"""A strategy for a public tree: a table over (board, row) × hand, in memory and on disk.

Probabilities are in proportion to what the table holds: see `tree.vector`. It is kept as the solver had it, and read by
mapping the file into memory, so that large ones need no copy.

>>> from kilt.games import load_game
>>> leduc = VectorGame(load_game("leduc"))
>>> strategy = VectorStrategy.of(leduc, leduc.table(), iterations=0)
>>> round(2 * leduc.exploitability(strategy.on(leduc)), 7)  # NashConv of the uniform profile
4.7472222
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kilt import artifact
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.strategy.table import require_same
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table

KIND = "vector strategy"


@dataclass(frozen=True)
class VectorStrategy:
    """What both players do, on every board with every hand."""

    game: str
    fingerprint: str  # of the rules it is for
    table: Table
    figures: dict[str, Any] = field(default_factory=dict)  # what its maker says about it

    @classmethod
    def of(cls, game: VectorGame, table: Table, **figures: Any) -> VectorStrategy:
        """A strategy for a game, from its table."""
        return cls(game.game.name, game_fingerprint(game.game), table, figures)

    def on(self, game: VectorGame) -> Table:
        """The table, if the strategy is for this very game."""
        require_same((self.game, self.fingerprint), (game.game.name, game_fingerprint(game.game)))
        return self.table

    def save(self, path: str | Path) -> None:
        """Write to a folder."""
        inputs, parameters = {"game": self.fingerprint}, {"game": self.game}
        artifact.write(path, KIND, {"table": self.table}, inputs=inputs, parameters=parameters, figures=self.figures)

    @classmethod
    def load(cls, path: str | Path) -> VectorStrategy:
        """Map from a folder, after a look at all of it."""
        found = artifact.read(path, KIND, check=True, private=True)
        return cls(found.parameters["game"], found.inputs["game"], np.asarray(found.arrays["table"]), found.figures)


def game_fingerprint(game: Game) -> str:
    """A short name for the rules of a game, but not its name.

    >>> from kilt.games import load_game
    >>> game_fingerprint(load_game("kuhn")) != game_fingerprint(load_game("leduc"))
    True
    """
    return artifact.fingerprint(str(game.rules) if isinstance(game, Holdem) else repr(game))
