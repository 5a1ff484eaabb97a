"""Sort the hands in a solver's tables by strength on the boards of the last round.

Hands that differ only by suits that are equivalent on the board have the same strategy. On a flop, 733 of 1,326 hands
are distinct on average, without those that hold a card of the flop. In a layout with `TableLayout.by_strength`, a row
of the last round has a column only for each of these hands that its player may hold, weakest first, as ranked by
`cards.equity_kernels`: an iteration then reads half as many numbers, in the order in which it sums showdowns. Rows
follow each other without gaps, so that the rest of the table's memory is never used. Tables that are visible to callers
are ordered by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kilt.arrays import IntArray
from kilt.tree.strength_order_kernels import convert_boards
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, Table, TableLayout

SOME_BOARDS = 1_000  # enough for an estimate
BOARDS_PER_BATCH = 10_000  # boards whose hands are counted together


def layouts_by_strength(game: VectorGame) -> tuple[TableLayout, TableLayout]:
    """Return the layout of each player's strategy table, if hands on complete boards are sorted by strength.

    Equivalent and impossible hands are then left out in the last round. Both players' rows are in one table. On a
    board, player 0's rows come first.
    """
    tree, hands, first = game.tree, game.shape[1], int(game.tree.board_start[-2])
    boards = np.arange(first, int(tree.board_start[-1]))
    owned, columns = rows_of_players(game), _columns(game, boards)
    used = [len(rows) * columns[player] for player, rows in enumerate(owned)]
    begin = hands * int(tree.table_start[-2]) + np.cumsum(used[0] + used[1]) - used[0] - used[1]
    order = np.zeros(int(tree.rows[-1]), np.int32)
    for rows in owned:
        order[rows] = np.arange(len(rows))
    layouts = []
    for player, layout in enumerate(game.layouts):
        places = np.zeros((first + len(boards), 3), np.int64)
        places[first:, 0] = tree.table_start[-2] + np.arange(len(boards)) * tree.rows[-1]
        places[first:, 1] = begin + used[0] * player
        places[first:, 2] = columns[player]
        layouts.append(layout._replace(by_strength=True, hands=hands, boards=places, order=order))
    return layouts[0], layouts[1]


def _columns(game: VectorGame, boards: IntArray) -> IntArray:
    """Return how many distinct hands each player may hold on boards of the last round, with the shape (2, boards)."""
    tree, bits = game.tree, game.tree.deck.bits
    cards, hands = tree.strengths.card_bit[tree.board[boards].astype(np.int64)].sum(axis=1), np.arange(len(bits))
    found = np.zeros((2, len(boards)), np.int64)
    for symmetry in np.unique(tree.symmetry[boards]).tolist():
        alike = tree.moved[[p for p in range(len(tree.moved)) if symmetry >> p & 1]]
        held = tree.held & (alike.min(axis=0) == hands)
        for some in np.array_split(
            np.flatnonzero(tree.symmetry[boards] == symmetry), 1 + len(boards) // BOARDS_PER_BATCH
        ):
            found[:, some] = held.astype(np.float32) @ (cards[some, None] & bits == 0).T.astype(np.float32)
    return found


def stored_share(game: VectorGame) -> float:
    """Estimate what share of a strategy table is left without equivalent and impossible hands.

    The estimate is based on some of the boards.
    """
    tree, first = game.tree, int(game.tree.board_start[-2])
    boards = np.unique(np.linspace(first, int(tree.board_start[-1]) - 1, SOME_BOARDS).astype(np.int64))
    stored = sum(
        len(rows) * columns.mean() for rows, columns in zip(rows_of_players(game), _columns(game, boards), strict=True)
    )
    early = int(tree.table_start[-2]) / game.shape[0]
    return early + (1 - early) * float(stored) / (int(tree.rows[-1]) * game.shape[1])


def convert_table(
    game: VectorGame, table: Table, layouts: tuple[TableLayout, TableLayout], *, by_strength: bool
) -> None:
    """Sort the hands in a strategy table by strength on complete boards, or restore their order.

    The table is converted in place. On a board of the last round, it then has either only distinct hands, weakest
    first, or all hands by number.

    Parameters
    ----------
    game : VectorGame
        A poker game with tables by board.
    table : ndarray, shape `game.shape`
        A table in the other form. It must not distinguish suits that are equivalent on a board.
    layouts : tuple of TableLayout
        As returned by `layouts_by_strength`.
    by_strength : bool
        If True, rows keep only the distinct hands: of equivalent hands, the one with the lowest number. The end of the
        array is then unused. If False, columns become all hands by number; hands that hold a card of the board, or
        that the row's player may not hold, get 0.
    """
    tree, hands, order = game.tree, table.shape[1], np.empty((2, table.shape[1]), np.int64)
    rows = np.empty((int(tree.rows[-1]), hands))
    with game.workspace() as work:
        places, entries = (layouts[0].boards, layouts[1].boards), table.reshape(-1, 1)
        convert_boards(tree, work, rows_of_players(game), places, by_strength, order, rows, table, entries)


def rows_of_players(game: VectorGame) -> tuple[IntArray, IntArray]:
    """Return the rows of each player's decisions on a board of the last round."""
    tree, nodes = game.tree, game.tree.nodes
    rows: tuple[list[int], list[int]] = [], []
    for entry in range(tree.entry_start[-2], tree.entry_start[-1]):
        begin, end = nodes.block[tree.entry_block[entry] :][:2]
        for node in (begin + np.flatnonzero(nodes.kind[begin:end] == DECISION)).tolist():
            first = int(tree.entry_row[entry] + nodes.row[node])
            rows[nodes.actor[node]].extend(range(first, first + int(nodes.children[node])))
    return np.array(rows[0], np.int64), np.array(rows[1], np.int64)


class DistinctHandTables:
    """Tables in which a solver sorts hands by strength while it runs. Callers see hands in the usual order.

    Tables sorted by strength contain only distinct hands.

    Parameters
    ----------
    game : VectorGame
        The game of the tables.
    tables : sequence of ndarray
        New tables of the game. Each is converted in place; a table that occurs twice is converted once.
    """

    def __init__(self, game: VectorGame, tables: Sequence[Table]) -> None:
        self.game = game
        self.layouts = layouts_by_strength(game) if tables else game.layouts
        every = {id(table): table for table in tables}
        # Zeros need no conversion, but fixed strategies do.
        self._by_hand, self._apart = (every, dict[int, Table]()) if game.given else (dict[int, Table](), every)

    @staticmethod
    def possible(game: VectorGame) -> bool:
        """Return whether the hands in the tables of a game can be sorted by strength."""
        tree = game.tree
        return tree.poker and bool(tree.rows[-1] > 0) and not len(tree.pair_values)

    def has_only_distinct(self, table: Table) -> bool:
        """Return whether the hands in a table are now sorted by strength, without equivalent hands."""
        return id(table) in self._apart

    def by_hand(self, table: Table) -> Table:
        """Return a table with its hands in the usual order, one column for each hand.

        The table keeps this order until `to_distinct_hands` is called.
        """
        if id(table) in self._apart:
            convert_table(self.game, table, self.layouts, by_strength=False)
            self._by_hand[id(table)] = self._apart.pop(id(table))
        return table

    def keep(self, table: Table) -> None:
        """Drop all tables but one."""
        for known in (self._by_hand, self._apart):
            for number in [number for number in known if number != id(table)]:
                del known[number]

    def to_distinct_hands(self) -> None:
        """Convert all tables to only distinct hands."""
        for table in list(self._by_hand.values()):
            convert_table(self.game, table, self.layouts, by_strength=True)
            self._apart[id(table)] = self._by_hand.pop(id(table))
