"""Compiled code that sorts the hands of a table by strength, and restores their order.

See `kilt.tree.strength_order`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import merge_equivalent_hands, rank_board
from kilt.jit import kernel, subkernel, trailing_zeros
from kilt.tree.vector_arrays import Table, VectorTree, Workspace


@subkernel
def rank_distinct_hands(tree: VectorTree, board: int, work: Workspace) -> int:
    """Rank the distinct hands on a board of the last round, from the weakest, and return their number."""
    cards = work.cards
    for k in range(len(cards)):
        cards[k] = tree.board[board, k]
    groups = rank_board(cards, tree.deck, tree.strengths, work.ranking)
    merge_equivalent_hands(work.ranking, groups, int(tree.symmetry[board]), tree.moved, tree.renamed)
    return int(work.ranking.ends[groups - 1]) if groups > 0 else 0


@kernel
def list_hands(
    tree: VectorTree, work: Workspace, boards: IntArray, first: IntArray, hands: npt.NDArray[np.uint16]
) -> None:
    """List the hands of a sorted table's columns, for boards of the last round.

    See `strength_order.hands_of_columns`.
    """
    order = work.ranking.order
    for b in range(len(boards)):
        every = rank_distinct_hands(tree, boards[b], work)
        for player in range(2):
            at = first[player, b]
            for i in range(every):
                if tree.held[player, order[i]]:
                    hands[at] = order[i]
                    at += 1


@kernel
def convert_boards(
    tree: VectorTree,
    work: Workspace,
    owned: tuple[IntArray, IntArray],
    places: tuple[IntArray, IntArray],
    by_strength: bool,
    scratch: IntArray,
    rows: FloatArray,
    table: Table,
    entries: Table,
) -> None:
    """Sort a table's hands by strength on all complete boards, or restore their order.

    See `strength_order.convert_table`.

    `owned` has the rows of each player on one board, and `places` the `TableLayout.boards` of each player. `entries`
    is the table as one column. `scratch` and `rows` are scratch memory: two numbers for each hand, and the rows of a
    board. A board's rows are read before they are written. Boards are taken in an order in which none overwrites
    another: rows with only distinct hands never begin after rows with all hands.
    """
    ranking, last, hands = work.ranking, len(tree.rows) - 1, table.shape[1]
    order, column = scratch[0], scratch[1]
    boards = tree.board_start[last + 1] - tree.board_start[last]
    for number in range(boards):
        board = tree.board_start[last] + (number if by_strength else boards - 1 - number)
        symmetry = int(tree.symmetry[board])
        every, begin = rank_distinct_hands(tree, board, work), places[0][board, 0]
        for player in range(2):
            kept = 0
            for i in range(every):
                if tree.held[player, ranking.order[i]]:
                    order[kept] = ranking.order[i]
                    kept += 1
            for hand in range(hands):
                column[hand] = -1
            for i in range(kept):
                left = symmetry
                while left:
                    column[tree.moved[trailing_zeros(left), order[i]]] = i
                    left &= left - 1
            at = places[player][board, 1]
            for own in owned[player]:
                if by_strength:
                    for i in range(kept):
                        rows[own, i] = table[begin + own, order[i]]
                else:
                    for hand in range(hands):
                        rows[own, hand] = entries[at + column[hand], 0] if column[hand] >= 0 else 0.0
                at += kept
        for player in range(2):
            at, width = places[player][board, 1], places[player][board, 2]
            for own in owned[player]:
                if by_strength:
                    for i in range(width):
                        entries[at + i, 0] = rows[own, i]
                    at += width
                else:
                    for hand in range(hands):
                        table[begin + own, hand] = rows[own, hand]
