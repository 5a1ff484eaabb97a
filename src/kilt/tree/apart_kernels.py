"""Kernels that reorder the columns of tables by hand strength: see `kilt.tree.apart`."""

from __future__ import annotations

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import merge_equivalent_hands, rank_board
from kilt.jit import kernel, trailing_zeros
from kilt.tree.vector_arrays import Table, VectorTree, Workspace


@kernel
def arrange_boards(
    tree: VectorTree,
    work: Workspace,
    owned: tuple[IntArray, IntArray],
    first: int,
    last: int,
    apart: bool,
    order: IntArray,
    column: IntArray,
    row: FloatArray,
    table: Table,
) -> None:
    """Reorder the columns of a table in place on boards of the last round, from the board `first` up to `last`.

    `owned` has the rows of each player on one board. `order`, `column` and `row` are scratch arrays with an entry for
    each hand. If `apart` is True, the columns become the distinct hands that the row's player may hold, weakest first;
    the rest of each row is left unchanged. Otherwise they become all hands by number; others than those get 0.
    """
    ranking, cards, rounds, hands = work.ranking, work.cards, len(tree.rows), table.shape[1]
    for board in range(first, last):
        symmetry = int(tree.symmetry[board])
        for k in range(len(cards)):
            cards[k] = tree.board[board, k]
        groups = rank_board(cards, tree.deck, tree.strengths, ranking)
        merge_equivalent_hands(ranking, groups, symmetry, tree.moved, tree.renamed)
        every = ranking.ends[groups - 1] if groups > 0 else 0
        begin = tree.table_start[rounds - 1] + (board - tree.board_start[rounds - 1]) * tree.rows[rounds - 1]
        for player in range(2):
            kept = 0
            for i in range(every):
                hand = ranking.order[i]
                if tree.held[player, hand]:
                    order[kept] = hand
                    kept += 1
            for hand in range(hands):
                column[hand] = -1
            for i in range(kept):
                left = symmetry
                while left:
                    column[tree.moved[trailing_zeros(left), order[i]]] = i
                    left &= left - 1
            for own in owned[player]:
                values = table[begin + own]
                for hand in range(hands):
                    row[hand] = values[hand]
                if apart:
                    for i in range(kept):
                        values[i] = row[order[i]]
                else:
                    for hand in range(hands):
                        values[hand] = row[column[hand]] if column[hand] >= 0 else 0.0
