"""Restrict public trees to some boards or betting sequences.

The first rounds of the game are called the *trunk*. A computation in parts first computes, for each part, the values at
the chance nodes that end the trunk. The computation of the trunk then starts from the sum of the values of all parts:
see `VectorGame.part_values` and `VectorGame.conclude_walk`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kilt.arrays import IntArray
from kilt.tree.vector_arrays import TableLayout, VectorTree


def flop_tree(tree: VectorTree, flop: int, end: int | None = None) -> VectorTree:
    """Return a public tree with only the boards after a flop, or after a range of flops.

    Parameters
    ----------
    tree : VectorTree
        The tree of a game with at least two rounds.
    flop : int
        Number of the board within the second round, counted from 0.
    end : int, optional
        End of a range of boards that starts with `flop`. Default: a single board.

    Returns
    -------
    VectorTree
        A tree with the board of the first round, the given boards of the second, and all later boards. If tables are by
        board, computations on it need separate layouts.
    """
    return flops_tree(tree, np.arange(flop, flop + 1 if end is None else end))


def flops_tree(tree: VectorTree, flops: IntArray) -> VectorTree:
    """Return a public tree with only the boards after the given flops.

    The flops are given by ascending numbers.

    See `flop_tree`, which takes one board or a range.
    """
    return _part(tree, [tree.board_start[1] + flops])


def drawn_tree(tree: VectorTree, boards: Sequence[int]) -> VectorTree:
    """Return a public tree with only sampled boards, each of which stands for all boards of its round.

    In expectation over the samples, its values are those of the whole tree [Johanson16 §4.3]. Permutations of
    equivalent suits need not be sampled: values are averaged over them.

    Parameters
    ----------
    tree : VectorTree
        The tree of a game with at least two rounds.
    boards : sequence of int
        A board of the second round, numbered over all rounds, a board of the third that follows it, and so on; at least
        one. All boards of later rounds are included.

    Returns
    -------
    VectorTree
        As returned by `flop_tree`, except that a sampled board has the weight of all boards it could have been.
    """
    part = _part(tree, [np.array([board]) for board in boards])
    for r, before in enumerate((0, *boards[:-1]), start=1):
        first, end = tree.weight_before[tree.first_board[before : before + 2]]
        part.weight[part.board_start[r]] = end - first
    return part


def _part(tree: VectorTree, boards: list[IntArray]) -> VectorTree:
    """Return the part of a public tree with some boards of the first rounds, and all boards that follow them."""
    boards = [np.zeros(1, np.int64), *boards]
    while len(boards) < len(tree.rows):
        first, end = tree.first_board[boards[-1]], tree.first_board[boards[-1] + 1]
        begin = np.cumsum(end - first) - (end - first)  # [board] its first extension among those in the part
        boards.append(np.repeat(first - begin, end - first) + np.arange((end - first).sum()))
    kept, start = np.concatenate(boards), np.cumsum([0, *map(len, boards)])
    following = np.full(len(kept) + 1, len(kept))
    for r in range(len(boards) - 1):
        there = np.searchsorted(boards[r + 1], tree.first_board[boards[r]])
        following[start[r] : start[r + 1]] = start[r + 1] + there
    return tree._replace(
        board_start=start,
        board=tree.board[kept],
        first_board=following,
        weight=tree.weight[kept],
        weight_before=np.concatenate([[0], np.cumsum(tree.weight[kept], dtype=np.int64)]),
        symmetry=tree.symmetry[kept],
    )


def following_boards(tree: VectorTree, edges: IntArray, round_: int = 1) -> list[IntArray]:
    """Return which boards follow some boards of a round, as ranges of indices.

    `edges` are numbers of boards in the round, in ascending order: boards between two of them are followed by the
    boards between the two numbers in each later round.
    """
    found = [edges]
    while len(found) < len(tree.rows) - round_:
        found.append(tree.first_board[found[-1]])
    return found


def flop_before(tree: VectorTree, round_: int, board: int) -> int:
    """Return the board of the second round that a board of a later round follows."""
    for r in range(round_ - 1, 0, -1):
        first, end = tree.board_start[r : r + 2]
        board = int(first + np.searchsorted(tree.first_board[first:end], board, side="right")) - 1
    return board


def rows_of_flop(tree: VectorTree, flop: int) -> IntArray:
    """Return a flop's rows in a strategy table, for each round.

    The table has rows for every board.

    The first round has all of its rows. A table of the part consists of these rows in this order.
    """
    found = [[0, int(tree.rows[0])]]
    for r, edges in enumerate(following_boards(tree, tree.board_start[1] + np.array([flop, flop + 1])), start=1):
        found.append((tree.table_start[r] + (edges - tree.board_start[r]) * tree.rows[r]).tolist())
    return np.array(found)


def layout_of_flop(layout: TableLayout, rows: IntArray) -> TableLayout:
    """Return the layout of a strategy table for only the boards after one flop."""
    given = layout.given
    if len(given):
        given = np.concatenate([given[begin:end] for begin, end in rows.tolist()])
    start = np.concatenate([[0], np.cumsum(np.diff(rows, axis=1))]).astype(layout.start.dtype)
    return layout._replace(start=start, given=given)


def entries_through(tree: VectorTree, round_: int, begin: int, end: int) -> list[IntArray]:
    """Return each round's chance nodes that share a path with the given chance nodes.

    The given chance nodes are those from `begin` up to `end`, in round `round_`.

    The chance nodes of later rounds are contiguous, and so are their table rows, because chance nodes are ordered by
    the one before.
    """
    within = np.searchsorted(tree.nodes.block, tree.entry_node, side="right") - 1  # [entry] the block of its node
    every = [np.arange(first, last) for first, last in pairwise(tree.entry_start.tolist())]
    every[round_] = np.arange(begin, end)
    for r in range(round_ - 1, -1, -1):
        every[r] = every[r][np.isin(tree.entry_block[every[r]], within[every[r + 1]])]
    for r in range(round_ + 1, len(every)):
        every[r] = every[r][np.isin(within[every[r]], tree.entry_block[every[r - 1]])]
    return every


def entries_tree(tree: VectorTree, kept: Sequence[IntArray]) -> VectorTree:
    """Return a public tree with only the betting after the given chance nodes.

    The numbers of table rows do not change.
    """
    entries = np.concatenate(kept).astype(np.int32)
    return tree._replace(
        entry_start=np.cumsum([0, *map(len, kept)], dtype=np.int32),
        entry_node=tree.entry_node[entries],
        entry_block=tree.entry_block[entries],
        entry_row=tree.entry_row[entries],
    )


class BettingPart(NamedTuple):
    """A part of a game's betting: all betting sequences through the given chance nodes."""

    round: int
    entries: list[IntArray]  # [round] entries in the tree
    rows: IntArray  # [round, 2] first and end row within a board; all rows before `round`

    @classmethod
    def through(cls, tree: VectorTree, round_: int, begin: int, end: int) -> BettingPart:
        """Select all betting sequences that pass through the given chance nodes of a round.

        The round must not be the first.
        """
        first = int(tree.entry_start[round_])
        entries = entries_through(tree, round_, first + begin, first + end)
        ends = np.append(tree.entry_row[1:], 0)  # [entry] end of its rows
        ends[tree.entry_start[1:] - 1] = tree.rows
        rows = np.stack([np.zeros_like(tree.rows), tree.rows], axis=1).astype(np.int64)
        for r in range(round_, len(rows)):
            rows[r] = (tree.entry_row[entries[r][0]], ends[entries[r][-1]]) if len(entries[r]) else (0, 0)
        return cls(round_, entries, rows)

    def within(self, tree: VectorTree) -> VectorTree:
        """Return a public tree with only this part's betting sequences.

        Its tables have rows for these betting sequences only.
        """
        part = entries_tree(tree, self.entries)
        offset = np.repeat(self.rows[:, 0], np.diff(part.entry_start))
        rows = np.diff(self.rows, axis=1)[:, 0].astype(tree.rows.dtype)
        return part._replace(entry_row=(part.entry_row - offset).astype(part.entry_row.dtype), rows=rows)
