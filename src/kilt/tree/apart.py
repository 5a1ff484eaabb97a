"""Put the columns of a solver's tables in order of hand strength on the boards of the last round.

Hands that differ only by suits that are equivalent on the board have the same strategy. On a flop, 733 of 1,326 hands
are distinct on average, without those that hold a card of the flop. In a layout with `TableLayout.apart`, the first
columns of a row of the last round are these hands, weakest first, as ranked by `cards.equity_kernels`: an iteration
then reads half as many numbers, in the order in which it sums showdowns. A row contains only the hands that its player
may hold. Tables that are visible to callers are ordered by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kilt.arrays import IntArray
from kilt.tree.apart_kernels import arrange_boards
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, Table

BOARDS_PER_BATCH = 256  # few enough that all threads have some of the 2,352 boards of a flop


def arrange(game: VectorGame, table: Table, *, apart: bool) -> None:
    """Reorder the columns of a table in place on the boards of the last round: by hand strength or by hand number.

    Parameters
    ----------
    game : VectorGame
        A poker game with tables by board.
    table : ndarray, shape `game.shape`
        A table in the other order. It must not distinguish suits that are equivalent on a board.
    apart : bool
        If True, columns become the distinct hands, weakest first: of equivalent hands, the one with the lowest number.
        The rest of each row is left unchanged. If False, columns become all hands by number; hands that hold a card of
        the board, or that the row's player may not hold, get 0.
    """
    tree, hands, owned = game.tree, table.shape[1], rows_of_players(game)

    def arrange_batch(first: int) -> None:
        last = min(first + BOARDS_PER_BATCH, int(tree.board_start[-1]))
        scratch = np.empty(hands, np.int64), np.empty(hands, np.int64), np.empty(hands)
        with game.workspace() as work:
            arrange_boards(tree, work, owned, first, last, apart, *scratch, table)

    game.spread(arrange_batch, range(int(tree.board_start[-2]), int(tree.board_start[-1]), BOARDS_PER_BATCH))


def rows_of_players(game: VectorGame) -> tuple[IntArray, IntArray]:
    """Return, for each player, the table rows of that player's decisions on one board of the last round."""
    tree, nodes = game.tree, game.tree.nodes
    rows: tuple[list[int], list[int]] = [], []
    for entry in range(tree.entry_start[-2], tree.entry_start[-1]):
        begin, end = nodes.block[tree.entry_block[entry] :][:2]
        for node in (begin + np.flatnonzero(nodes.kind[begin:end] == DECISION)).tolist():
            first = int(tree.entry_row[entry] + nodes.row[node])
            rows[nodes.actor[node]].extend(range(first, first + int(nodes.children[node])))
    return np.array(rows[0], np.int64), np.array(rows[1], np.int64)


class ArrangedTables:
    """The tables of a solver, ordered by hand strength during iterations and by hand number for readers.

    Parameters
    ----------
    game : VectorGame
        The game of the tables.
    tables : sequence of ndarray
        New tables of the game. Each is reordered in place; a table that occurs twice is reordered once.
    """

    def __init__(self, game: VectorGame, tables: Sequence[Table]) -> None:
        self.game = game
        every = {id(table): table for table in tables}
        # Zeros need no reordering, but fixed strategies do.
        self._by_hand, self._apart = (every, dict[int, Table]()) if game.given else (dict[int, Table](), every)

    @staticmethod
    def possible(game: VectorGame) -> bool:
        """Return whether tables of a game can be ordered by hand strength on the boards of the last round."""
        tree = game.tree
        return tree.poker and bool(tree.rows[-1] > 0) and not len(tree.pair_values)

    def has_apart(self, table: Table) -> bool:
        """Return whether the columns of a table are currently ordered by hand strength."""
        return id(table) in self._apart

    def by_hand(self, table: Table) -> Table:
        """Return a table with its columns ordered by hand number. It stays in this order until `apart` is called."""
        if id(table) in self._apart:
            arrange(self.game, table, apart=False)
            self._by_hand[id(table)] = self._apart.pop(id(table))
        return table

    def apart(self) -> None:
        """Order the columns of all tables by hand strength."""
        for table in list(self._by_hand.values()):
            arrange(self.game, table, apart=True)
            self._apart[id(table)] = self._by_hand.pop(id(table))
