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
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.tree.strength_order_kernels import convert_boards, list_hands
from kilt.tree.vector_arrays import DECISION, ArrangedTable, Table, TableLayout, VectorTree, Workspace

SOME_BOARDS = 1_000  # enough for an estimate
BOARDS_PER_BATCH = 10_000  # boards whose hands are counted together


def layouts_by_strength(tree: VectorTree, layouts: Sequence[TableLayout]) -> tuple[TableLayout, TableLayout]:
    """Return each player's table layout, if hands on complete boards are sorted by strength.

    Equivalent and impossible hands are then left out in the last round. Both players' rows are in one table. On a
    board, player 0's rows come first.

    Parameters
    ----------
    tree : VectorTree
        The tree of a poker game with tables by board, or a part of it, as returned by `parts.flop_tree`.
    layouts : sequence of TableLayout
        The layouts of both players' tables over (board, row) × hand.
    """
    hands, first, start = tree.prior.shape[1], int(tree.board_start[-2]), int(layouts[0].start[-2])
    boards = np.arange(first, int(tree.board_start[-1]))
    owned, columns = rows_of_players(tree), _columns(tree, boards)
    used = [len(rows) * columns[player] for player, rows in enumerate(owned)]
    begin = hands * start + np.cumsum(used[0] + used[1]) - used[0] - used[1]
    order = np.zeros(int(tree.rows[-1]), np.int32)
    for rows in owned:
        order[rows] = np.arange(len(rows))
    found = []
    for player, layout in enumerate(layouts):
        places = np.zeros((first + len(boards), 3), np.int64)
        places[first:, 0] = start + np.arange(len(boards)) * tree.rows[-1]
        places[first:, 1] = begin + used[0] * player
        places[first:, 2] = columns[player]
        found.append(layout._replace(by_strength=True, hands=hands, boards=places, order=order))
    return found[0], found[1]


def _columns(tree: VectorTree, boards: IntArray) -> IntArray:
    """Return how many distinct hands each player may hold on boards of the last round, with the shape (2, boards)."""
    bits = tree.deck.bits
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


def sortable(tree: VectorTree) -> bool:
    """Return whether a game's tables can store hands in order of strength."""
    return tree.poker and bool(tree.rows[-1] > 0) and not len(tree.pair_values)


def stored_share(tree: VectorTree) -> float:
    """Estimate the share of a strategy table that remains without equivalent and impossible hands.

    The estimate is based on some of the boards.
    """
    first = int(tree.board_start[-2])
    boards = np.unique(np.linspace(first, int(tree.board_start[-1]) - 1, SOME_BOARDS).astype(np.int64))
    owned, columns = rows_of_players(tree), _columns(tree, boards)
    stored = sum(len(rows) * width.mean() for rows, width in zip(owned, columns, strict=True))
    early = int(tree.table_start[-2]) / int(tree.table_start[-1])
    return early + (1 - early) * float(stored / (int(tree.rows[-1]) * tree.prior.shape[1]))


def convert_table(
    tree: VectorTree, work: Workspace, table: npt.NDArray[Any], layouts: Sequence[TableLayout], *, by_strength: bool
) -> None:
    """Sort a strategy table's hands by strength on complete boards, or restore their order.

    The table is converted in place. On a board of the last round, it then has either only distinct hands, weakest
    first, or all hands by number.

    Parameters
    ----------
    tree : VectorTree
        The tree of a poker game with tables by board, or a part of it.
    work : Workspace
        Scratch memory.
    table : ndarray, shape (rows, hands)
        A table in the other form. It must not distinguish suits that are equivalent on a board.
    layouts : sequence of TableLayout
        As returned by `layouts_by_strength`.
    by_strength : bool
        If True, rows keep only the distinct hands: of equivalent hands, the one with the lowest number. The end of the
        array is then unused. If False, columns become all hands by number; hands that hold a card of the board, or
        that the row's player may not hold, get 0.
    """
    hands, order = table.shape[1], np.empty((2, table.shape[1]), np.int64)
    rows = np.empty((int(tree.rows[-1]), hands))
    places, entries = (layouts[0].boards, layouts[1].boards), table.reshape(-1, 1)
    convert_boards(tree, work, rows_of_players(tree), places, by_strength, order, rows, table, entries)


def rows_of_players(tree: VectorTree) -> tuple[IntArray, IntArray]:
    """Return each player's rows for the decisions on a board of the last round."""
    nodes = tree.nodes
    rows: tuple[list[int], list[int]] = [], []
    for entry in range(tree.entry_start[-2], tree.entry_start[-1]):
        begin, end = nodes.block[tree.entry_block[entry] :][:2]
        for node in (begin + np.flatnonzero(nodes.kind[begin:end] == DECISION)).tolist():
            first = int(tree.entry_row[entry] + nodes.row[node])
            rows[nodes.actor[node]].extend(range(first, first + int(nodes.children[node])))
    return np.array(rows[0], np.int64), np.array(rows[1], np.int64)


def hands_of_columns(
    tree: VectorTree, work: Workspace, layouts: Sequence[TableLayout], boards: IntArray
) -> tuple[npt.NDArray[np.uint16], IntArray]:
    """Return the hand of each column in tables sorted by strength.

    Parameters
    ----------
    tree : VectorTree
        The tree of a poker game with tables by board, or a part of it.
    work : Workspace
        Scratch memory.
    layouts : sequence of TableLayout
        As returned by `layouts_by_strength` for this tree.
    boards : ndarray of int
        Boards of the last round.

    Returns
    -------
    hands : ndarray of uint16
        The hands, in one array for all boards and players.
    first : ndarray of int, shape (2, boards)
        The index in `hands` of the first column of each player on each board.
    """
    widths = np.stack([layout.boards[boards, 2] for layout in layouts])
    first = np.cumsum(widths).reshape(widths.shape) - widths
    hands = np.empty(int(widths.sum()), np.uint16)
    list_hands(tree, work, boards, first, hands)
    return hands, first


def rows_by_hand(tree: VectorTree, work: Workspace, strategy: ArrangedTable, board: int) -> Table:
    """Return a board's rows in a table sorted by strength, with one column per hand.

    `tree` is the tree that the table is for: the game's tree, or a part of it.
    """
    table, layouts = strategy
    columns, first = hands_of_columns(tree, work, layouts, np.array([board]))
    found = np.zeros((int(tree.rows[-1]), layouts[0].hands), table.dtype)
    for own, layout, start in zip(rows_of_players(tree), layouts, first[:, 0].tolist(), strict=True):
        _, begin, width = layout.boards[board].tolist()
        stored = table[begin : begin + len(own) * width].reshape(len(own), width)
        for permutation in np.flatnonzero(int(tree.symmetry[board]) >> np.arange(len(tree.moved)) & 1):
            alike = tree.moved[permutation, columns[start : start + width]]
            found[own[:, None], alike] = stored
    return found


def read_rows(tree: VectorTree, work: Workspace, strategy: ArrangedTable, rows: slice) -> Table:
    """Return a decision's rows in a table sorted by strength, with one column per hand.

    `tree` is the tree that the table is for: the game's tree, or a part of it.
    """
    layout = strategy.layouts[0]
    start = int(layout.start[-2])
    if rows.start < start:
        return strategy.table[rows.start * layout.hands : rows.stop * layout.hands].reshape(-1, layout.hands)
    number, row = divmod(rows.start - start, int(tree.rows[-1]))
    every = rows_by_hand(tree, work, strategy, int(tree.board_start[-2]) + number)
    return every[row : row + rows.stop - rows.start]


def with_one_board(tree: VectorTree, work: Workspace, strategy: ArrangedTable, board: int) -> ArrangedTable:
    """Return a strategy for a single board of the last round, with one column per hand.

    `tree` is the tree that the strategy is for: the game's tree, or a part of it.
    """
    layout = strategy.layouts[0]
    start, rows = int(layout.start[-2]), int(tree.rows[-1])
    before = (board - int(tree.board_start[-2])) * rows  # rows of the last round that are left out
    early = strategy.table[: start * layout.hands].reshape(-1, layout.hands)
    starts, given = layout.start.copy(), layout.given
    starts[-2] -= before
    if len(given):
        given = np.concatenate([given[:start], given[start + before :][:rows]])
    by_hand = layout._replace(start=starts, given=given, by_strength=False)
    return ArrangedTable(np.concatenate([early, rows_by_hand(tree, work, strategy, board)]), (by_hand, by_hand))
