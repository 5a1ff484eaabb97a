"""Tables with the hands of last boards in order of strength, and only with those that are apart there.

Hands that differ only by suits which their board does not tell apart are played alike: on a flop, 733 of 1,326 are
apart in the mean, those that hold a card of the flop left out. Where a layout says `TableLayout.apart`, the first
columns of a row of the last round are these hands, weakest first, as `cards.equity_kernels` ranks them: a walk comes by
half of the numbers, and finds them in the order in which it adds up showdowns. A row has the hands that its player may
hold, and no others. Tables that others see are by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kilt.arrays import IntArray
from kilt.cards.equity_kernels import keep_apart, rank_board
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, Table


def arrange(game: VectorGame, table: Table, *, apart: bool) -> None:
    """Rearrange the columns of a table in place, on boards of the last round.

    Parameters
    ----------
    game : VectorGame
        A game of poker with tables by board.
    table : ndarray, shape `game.shape`
        In the other one of the two orders. It must not tell suits apart that a board does not.
    apart : bool
        Whether columns are to be the hands that are apart, weakest first: of those that are alike, the one with the
        lowest number. What follows them in a row is left as it is. Otherwise columns are all hands by number, and those
        that hold a card of the board, or that the row's player may not hold, get 0.
    """
    tree, hands = game.tree, table.shape[1]
    first, owned = int(tree.board_start[-2]), rows_of_players(game)

    def arrange_board(board: int) -> None:
        with game.workspace() as work:
            ranking = work.ranking
            groups = rank_board(tree.board[board].astype(np.int64), tree.deck, tree.strengths, ranking)
            keep_apart(ranking, groups, int(tree.symmetry[board]), tree.moved, tree.renamed)
            every = ranking.order[: ranking.ends[groups - 1] if groups else 0].copy()
        rows = table[tree.table_start[-2] + (board - first) * tree.rows[-1] :][: tree.rows[-1]]
        for own, held in zip(owned, tree.held, strict=True):
            order = every[held[every]]
            if apart:
                rows[own, : len(order)] = rows[own][:, order]
                continue
            column = np.full(hands, len(order))  # [hand] of the one that stands for it, or a zero after the last
            for p in range(len(tree.moved)):
                if tree.symmetry[board] >> p & 1:
                    column[tree.moved[p, order]] = np.arange(len(order))
            rows[own] = np.pad(rows[own, : len(order)], ((0, 0), (0, 1)))[:, column]

    game.spread(arrange_board, range(first, int(tree.board_start[-1])))


def rows_of_players(game: VectorGame) -> tuple[IntArray, IntArray]:
    """The rows of both players' decisions among those of a board of the last round."""
    tree, nodes = game.tree, game.tree.nodes
    rows: tuple[list[int], list[int]] = [], []
    for entry in range(tree.entry_start[-2], tree.entry_start[-1]):
        begin, end = nodes.block[tree.entry_block[entry] :][:2]
        for node in (begin + np.flatnonzero(nodes.kind[begin:end] == DECISION)).tolist():
            first = int(tree.entry_row[entry] + nodes.row[node])
            rows[nodes.actor[node]].extend(range(first, first + int(nodes.children[node])))
    return np.array(rows[0], np.int64), np.array(rows[1], np.int64)


class ArrangedTables:
    """Tables of a solver: in order of strength while it is at work, by hand where somebody looks at them.

    Parameters
    ----------
    game : VectorGame
        That the tables are of.
    tables : sequence of ndarray
        New tables of the game. Each is rearranged in place; one that is there twice, once.
    """

    def __init__(self, game: VectorGame, tables: Sequence[Table]) -> None:
        self.game = game
        every = {id(table): table for table in tables}
        # Zeros have any order; what is given has not.
        self._by_hand, self._apart = (every, dict[int, Table]()) if game.given else (dict[int, Table](), every)

    @staticmethod
    def possible(game: VectorGame) -> bool:
        """Whether hands of a game have an order of strength on last boards, and tables have rows for each of these."""
        tree = game.tree
        return tree.poker and bool(tree.rows[-1] > 0) and not len(tree.pair_values)

    def has_apart(self, table: Table) -> bool:
        """Whether a table is in order of strength now."""
        return id(table) in self._apart

    def by_hand(self, table: Table) -> Table:
        """A table by hand, until `apart` is called."""
        if id(table) in self._apart:
            arrange(self.game, table, apart=False)
            self._by_hand[id(table)] = self._apart.pop(id(table))
        return table

    def apart(self) -> None:
        """Put all tables in order of strength."""
        for table in list(self._by_hand.values()):
            arrange(self.game, table, apart=True)
            self._apart[id(table)] = self._by_hand.pop(id(table))
