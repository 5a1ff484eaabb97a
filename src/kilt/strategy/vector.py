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
from kilt.arrays import IntArray
from kilt.games.game import Game
from kilt.games.holdem import Betting, Holdem
from kilt.strategy.postprocess import Rule, apply_rows
from kilt.strategy.table import REMEDY, require_same, require_shape
from kilt.tree.betting import Menu, on_menu
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table

KIND, IN_SUBGAMES = "vector strategy", "strategy in subgames"  # in one table, or by `kilt.solve.tables.disk_strategy`


@dataclass(frozen=True)
class VectorStrategy:
    """A strategy of both players for a public tree: weights on every board with every hand.

    Attributes
    ----------
    game : str
        The name of the game.
    fingerprint : str
        Of the rules it is for.
    table : ndarray, shape (rows, hands)
        Non-negative weights, a row for each action of each decision on each board; the actions of a decision are
        normalised.
    figures : dict
        What the solver says about it.
    rules : str
        The definition of a poker game, by which it is played where the file of the game is not there.
    """

    game: str
    fingerprint: str
    table: Table
    figures: dict[str, Any] = field(default_factory=dict)
    rules: str = ""

    @classmethod
    def of(cls, game: VectorGame, table: Table, **figures: Any) -> VectorStrategy:
        """A strategy for a game from its table of weights."""
        said = game.game.name, game_fingerprint(game.game, game.menu)
        return cls(*said, table, figures, rules_of(game.game))

    def on(self, game: VectorGame) -> Table:
        """The table; GameError where the strategy is for another game."""
        require_same((self.game, self.fingerprint), (game.game.name, game_fingerprint(game.game, game.menu)))
        require_shape(self.game, self.table, game.shape)
        return self.table

    def save(self, path: str | Path) -> None:
        """Write the strategy to a folder."""
        inputs, parameters = {"game": self.fingerprint}, {"game": self.game, "rules": self.rules}
        artifact.write(path, KIND, {"table": self.table}, inputs=inputs, parameters=parameters, figures=self.figures)

    @classmethod
    def load(cls, path: str | Path) -> VectorStrategy:
        """Map a strategy from a folder that `save` has written."""
        found = artifact.read(path, KIND, private=True, remedy=REMEDY)
        with artifact.understood(Path(path), REMEDY):
            said = found.parameters["game"], found.inputs["game"]
            table, rules = np.asarray(found.arrays["table"]), str(found.parameters.get("rules", ""))
            return cls(*said, table, found.figures, rules)


def process_table(
    game: VectorGame, rule: Rule, table: Table, start: IntArray, boards: IntArray, kept: IntArray | None = None
) -> None:
    """Write to a table over (board, row) × hand what post-processing makes of its probabilities.

    Parameters
    ----------
    game : VectorGame
        Of poker.
    rule : Rule
        What is done to the probabilities of each decision: see `strategy.postprocess`.
    table : ndarray, shape (rows, hands)
        Weights; those of a decision are in proportion to its probabilities.
    start, boards : ndarray of int
        [round] where the rows of the first board are in the table, and how many boards it has.
    kept : ndarray of int, optional
        [round, 2] the rows of a board, from … to …, that the table has. Left out: all.
    """
    assert isinstance(game.game, Holdem)
    moves, hands = game.game.positions.moves, table.shape[1]
    for r, row, position in game.decisions():
        begin, end = (0, int(game.tree.rows[r])) if kept is None else kept[r].tolist()
        if not boards[r] or not begin <= row < end:
            continue
        assert isinstance(position, Betting)
        labels = on_menu(position, game.menu)
        first = start[r] + row - begin + (end - begin) * np.arange(boards[r])
        rows = first[:, None] + np.arange(len(labels))
        weights = np.moveaxis(np.maximum(table[rows], 0), 1, 2).reshape(-1, len(labels)).astype(np.float64)
        total = weights.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, weights, 1 / len(labels)) / np.where(total > 0, total, 1)
        acted = any(before.actor == position.actor for before, _ in moves(position))
        shares = apply_rows(rule, labels, shares, first=not acted)
        table[rows] = np.moveaxis(shares.reshape(-1, hands, len(labels)), 2, 1)


def rules_of(game: Game) -> str:
    """The definition of a poker game, to be kept beside a strategy; empty for other games and for parts of one."""
    return str(game.rules) if type(game) is Holdem else ""


def game_fingerprint(game: Game, menu: Menu | None = None) -> str:
    """A hash of the rules of a game and of a menu of raises, but not of its name.

    >>> from kilt.games import load_game
    >>> game_fingerprint(load_game("kuhn")) != game_fingerprint(load_game("leduc"))
    True
    """
    rules = game.definition if isinstance(game, Holdem) else repr(game)
    return artifact.fingerprint(rules if menu is None else f"{rules}{menu!r}")
