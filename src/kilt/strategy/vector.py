"""Load and save strategies for public trees, as tables of weights by action, board and hand.

A table has the shape (board, row) × hand. Probabilities are proportional to its entries: see `tree.vector`. The file
has the solver's own table, and is mapped into memory, so that a large one needs no copy.

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
from kilt.notebook import Drawable, html_table
from kilt.strategy.postprocess import Rule, apply_rows
from kilt.strategy.table import REMEDY, require_same, require_shape
from kilt.tree.betting import Menu, on_menu
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table

# kinds of files: one table, or the subgames that `kilt.solve.tables.disk_strategy` writes
KIND, IN_SUBGAMES = "vector strategy", "strategy in subgames"


@dataclass(frozen=True)
class VectorStrategy(Drawable):
    """A strategy for both players: a weight for each action, board and hand.

    Attributes
    ----------
    game : str
        The name of the game.
    fingerprint : str
        Fingerprint of the rules.
    table : ndarray, shape (rows, hands)
        Non-negative weights, a row for each action of each decision on each board; the actions of a decision are
        normalised.
    figures : dict
        Facts that the solver recorded.
    rules : str
        The definition of a poker game, so that the strategy can be played without the game's file.
    """

    game: str
    fingerprint: str
    table: Table
    figures: dict[str, Any] = field(default_factory=dict)
    rules: str = ""

    @classmethod
    def of(cls, game: VectorGame, table: Table, **figures: Any) -> VectorStrategy:
        """Create a strategy for a game from a table of weights."""
        said = game.game.name, game_fingerprint(game.game, game.menu)
        return cls(*said, table, figures, rules_of(game.game))

    def __repr__(self) -> str:
        rows, hands = self.table.shape
        return f"VectorStrategy({self.game!r}, {rows:,} rows × {hands:,} hands)"

    def _repr_html_(self) -> str:
        rows, hands = self.table.shape
        return html_table(self.game, {"rows": f"{rows:,}", "hands": f"{hands:,}"})

    def on(self, game: VectorGame) -> Table:
        """Return the table of weights, after checking that the strategy fits the given game."""
        require_same((self.game, self.fingerprint), (game.game.name, game_fingerprint(game.game, game.menu)))
        require_shape(self.game, self.table, game.shape)
        return self.table

    def save(self, path: str | Path) -> None:
        """Write the strategy to a folder."""
        inputs, parameters = {"game": self.fingerprint}, {"game": self.game, "rules": self.rules}
        artifact.write(path, KIND, {"table": self.table}, inputs=inputs, parameters=parameters, figures=self.figures)

    @classmethod
    def load(cls, path: str | Path) -> VectorStrategy:
        """Load a strategy from its folder, and map its table from the file.

        Raises ArtifactError if the strategy is missing or damaged.
        """
        found = artifact.read(path, KIND, private=True, remedy=REMEDY)
        with artifact.damage_errors(Path(path), REMEDY):
            said = found.parameters["game"], found.inputs["game"]
            table, rules = np.asarray(found.arrays["table"]), str(found.parameters.get("rules", ""))
            return cls(*said, table, found.figures, rules)


def process_table(
    game: VectorGame, rule: Rule, table: Table, start: IntArray, boards: IntArray, kept: IntArray | None = None
) -> None:
    """Apply a post-processing rule to a strategy for a public tree, in place.

    Parameters
    ----------
    game : VectorGame
        A game of poker.
    rule : Rule
        The rule for the probabilities of each decision: see `strategy.postprocess`.
    table : ndarray, shape (rows, hands)
        Weights; those of a decision are proportional to its probabilities.
    start, boards : ndarray of int
        For each round, the index of the first board's rows in the table, and the number of boards.
    kept : ndarray of int, optional
        For each round, the first and the last row (exclusive) of a board that the table has: shape (rounds, 2). By
        default, all rows.
    """
    assert isinstance(game.game, Holdem)
    moves, hands = game.game.positions.moves_to, table.shape[1]
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
    """Return the rules of a poker game as text, for storage with a strategy.

    The text is empty for other games and for subgames.
    """
    return str(game.rules) if type(game) is Holdem else ""


def game_fingerprint(game: Game, menu: Menu | None = None) -> str:
    """Return a hash of a game's rules and its menu of raises, but not of its name.

    >>> from kilt.games import load_game
    >>> game_fingerprint(load_game("kuhn")) != game_fingerprint(load_game("leduc"))
    True
    """
    rules = game.definition if isinstance(game, Holdem) else repr(game)
    return artifact.fingerprint(rules if menu is None else f"{rules}{menu!r}")
