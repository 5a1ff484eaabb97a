"""Parts of a public tree: what follows some of its boards, some of its betting, or boards that were drawn.

What is walked in parts has a *trunk*, its first rounds, and parts that follow it. A walk of a part finds values at the
chance nodes that end the trunk; those of all parts add up to what the walk of the trunk begins with: see
`VectorGame.part_values` and `VectorGame.conclude_walk`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kilt.arrays import IntArray
from kilt.tree.vector_arrays import TableLayout, VectorTree


def flop_tree(tree: VectorTree, flop: int, end: int | None = None) -> VectorTree:
    """The part of a public tree that follows a board of the second round: a walk there has few boards to look at.

    Parameters
    ----------
    tree : VectorTree
        Of a game with two rounds or more.
    flop : int
        The number of the board among those of the second round, from 0.
    end : int, optional
        That after the last, where the part follows several.

    Returns
    -------
    VectorTree
        Its boards are that of the first round, the one or those of the second, and all that follow. Where tables are by
        board, walks over it need layouts of their own.
    """
    return flops_tree(tree, np.arange(flop, flop + 1 if end is None else end))


def flops_tree(tree: VectorTree, flops: IntArray) -> VectorTree:
    """The part of a public tree that follows some boards of the second round, by their numbers there in rising order.

    See `flop_tree`, which takes one of them, or several in a row.
    """
    return _part(tree, [tree.board_start[1] + flops])


def drawn_tree(tree: VectorTree, boards: Sequence[int]) -> VectorTree:
    """The part of a public tree that follows boards that were drawn, each of which stands for all of its round.

    A walk over it finds, in the mean over what is drawn, what one over the whole tree does [Johanson16 §4.3]. Suits
    that the board before does not tell apart need not be drawn: walks take the mean over them.

    Parameters
    ----------
    tree : VectorTree
        Of a game with two rounds or more.
    boards : sequence of int
        A board of the second round by its number through all rounds, one of the third that follows it, and so on; one
        at least. Boards of later rounds are all there.

    Returns
    -------
    VectorTree
        As `flop_tree` gives it, but for the weights of boards that were drawn: those of all that could have been.
    """
    part = _part(tree, [np.array([board]) for board in boards])
    for r, before in enumerate((0, *boards[:-1]), start=1):
        first, end = tree.weight_before[tree.first_board[before : before + 2]]
        part.weight[part.board_start[r]] = end - first
    return part


def _part(tree: VectorTree, boards: list[IntArray]) -> VectorTree:
    """Some boards of some rounds after the first, in rising order, and all that follow those of the last of these."""
    boards = [np.zeros(1, np.int64), *boards]
    while len(boards) < len(tree.rows):
        first, end = tree.first_board[boards[-1]], tree.first_board[boards[-1] + 1]
        begin = np.cumsum(end - first) - (end - first)  # [board] where its extensions begin among those that are kept
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


def rows_of_flop(tree: VectorTree, flop: int) -> IntArray:
    """[round, 2] the rows that all that follows a board of the second round has in tables over (board, row).

    Those of the first round are all of its rows; a table of the part has them all in this order.
    """
    edges, found = tree.board_start[1] + np.array([flop, flop + 1]), [[0, int(tree.rows[0])]]
    for r in range(1, len(tree.rows)):
        found.append((tree.table_start[r] + (edges - tree.board_start[r]) * tree.rows[r]).tolist())
        edges = tree.first_board[edges]
    return np.array(found)


def layout_of_flop(layout: TableLayout, rows: IntArray) -> TableLayout:
    """The layout of a part's table by `rows_of_flop`, from that of the whole tree; both are by board."""
    given = layout.given
    if len(given):
        given = np.concatenate([given[begin:end] for begin, end in rows.tolist()])
    start = np.concatenate([[0], np.cumsum(np.diff(rows, axis=1))]).astype(layout.start.dtype)
    return layout._replace(start=start, given=given)


def entries_through(tree: VectorTree, round_: int, begin: int, end: int) -> list[IntArray]:
    """[round] the entries on the ways through some entries of a round: `begin` to `end`, by their numbers in the tree.

    Those of later rounds stand in a row, and so do their rows of the tables: the betting after one entry comes before
    that after the next.
    """
    within = np.searchsorted(tree.nodes.block, tree.entry_node, side="right") - 1  # [entry] block of its node
    every = [np.arange(first, last) for first, last in pairwise(tree.entry_start.tolist())]
    every[round_] = np.arange(begin, end)
    for r in range(round_ - 1, -1, -1):
        every[r] = every[r][np.isin(tree.entry_block[every[r]], within[every[r + 1]])]
    for r in range(round_ + 1, len(every)):
        every[r] = every[r][np.isin(within[every[r]], tree.entry_block[every[r - 1]])]
    return every


def entries_tree(tree: VectorTree, kept: Sequence[IntArray]) -> VectorTree:
    """The part of a public tree with some entries of each round; rows of its tables are where they were."""
    entries = np.concatenate(kept).astype(np.int32)
    return tree._replace(
        entry_start=np.cumsum([0, *map(len, kept)], dtype=np.int32),
        entry_node=tree.entry_node[entries],
        entry_block=tree.entry_block[entries],
        entry_row=tree.entry_row[entries],
    )


class BettingPart(NamedTuple):
    """The betting that leads through some chance nodes of a round, and all that follows them."""

    round: int
    entries: list[IntArray]  # [round] in the tree
    rows: IntArray  # [round, 2] rows of a board from … to … that belong to it; all of them before `round`

    @classmethod
    def of(cls, tree: VectorTree, round_: int, begin: int, end: int) -> BettingPart:
        """The betting through some entries of a round after the first, by their numbers among those of the round."""
        first = int(tree.entry_start[round_])
        entries = entries_through(tree, round_, first + begin, first + end)
        ends = np.append(tree.entry_row[1:], 0)  # [entry] where its rows end
        ends[tree.entry_start[1:] - 1] = tree.rows
        rows = np.stack([np.zeros_like(tree.rows), tree.rows], axis=1).astype(np.int64)
        for r in range(round_, len(rows)):
            rows[r] = (tree.entry_row[entries[r][0]], ends[entries[r][-1]]) if len(entries[r]) else (0, 0)
        return cls(round_, entries, rows)

    def within(self, tree: VectorTree) -> VectorTree:
        """A public tree, or a part of its boards, with this betting alone: boards have its rows and no others."""
        part = entries_tree(tree, self.entries)
        offset = np.repeat(self.rows[:, 0], np.diff(part.entry_start))
        rows = np.diff(self.rows, axis=1)[:, 0].astype(tree.rows.dtype)
        return part._replace(entry_row=(part.entry_row - offset).astype(part.entry_row.dtype), rows=rows)
