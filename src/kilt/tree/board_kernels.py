"""Compiled code that visits the boards of a public tree, with their betting rounds and table rows.

A pass visits the boards, and on each board all betting that leads to it, so that a board's hands are ranked only once.
`next_visit` finds the next board.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.cards.equity_kernels import merge_equivalent_hands, rank_board, split_by_player
from kilt.jit import spliced, subkernel
from kilt.tree.leaf_kernels import hands_left, has_single_hand, ordered_by_strength, strengths_of_few
from kilt.tree.vector_arrays import Scope, TableLayout, Vectors, VectorTree, Visit, Workspace


@subkernel
def average_over_suits(
    moves: npt.NDArray[np.int32], symmetry: int, hands: int, scratch: FloatArray, value: FloatArray, here: int
) -> None:
    """Replace each hand's value by the mean over all hands that are equivalent up to suits.

    Each canonical board was weighted by the number of boards it represents. These are its images under the permutations
    that map the previous board to itself; a hand's value is therefore averaged over the images of the hand.
    """
    for hand in range(hands):
        scratch[0, hand] = 0
    count = 0
    for p in range(moves.shape[0]):
        if (symmetry >> p) & 1:
            count += 1
            for hand in range(hands):
                scratch[0, hand] += value[here, moves[p, hand]]
    for hand in range(hands):
        value[here, hand] = scratch[0, hand] / count


@subkernel
def begin_board(tree: VectorTree, player: int, scope: Scope, depth: int, work: Workspace, by_strength: bool) -> Visit:
    """Begin a board: list its possible hands, and rank them if the board is complete.

    With `by_strength`, only distinct hands are ranked, up to suits that the board treats the same, and each player gets
    only the hands that the player may hold. The opponent always gets only those.
    """
    board, last = work.board[depth], depth == len(tree.rows) - 1
    groups, mine, theirs, held = 0, 0, 0, np.int64(0)
    if tree.poker:
        cards = work.cards[: tree.board_size[depth]]
        for k in range(len(cards)):
            cards[k] = tree.board[board, k]
            held |= tree.strengths.card_bit[cards[k]]
        if has_single_hand(scope):
            if last:
                strengths_of_few(cards, held, tree.deck, tree.strengths, scope, depth, work.ranking.strength)
        elif last:
            groups = rank_board(cards, tree.deck, tree.strengths, work.ranking)
            work.lanes.ready[0] = 0
            if by_strength:
                merge_equivalent_hands(work.ranking, groups, tree.symmetry[board], tree.moved, tree.renamed)
            own, other = tree.held[player], tree.held[1 - player]
            mine, theirs = split_by_player(work.ranking, groups, own, other, not by_strength, work.sides)
        else:
            mine = theirs = hands_left(tree.deck.bits, held, work.order)
    weight = 1.0
    if depth > 0:
        drawn = scope.board[depth] >= 0
        weight = work.weight[depth - 1] * (scope.chance[depth] if drawn else tree.chance[depth] * tree.weight[board])
    work.weight[depth] = weight
    return Visit(depth, board, True, last, groups, mine, theirs, by_strength, held, weight)


@subkernel
def next_visit(tree: VectorTree, player: int, scope: Scope, work: Workspace, sums: FloatArray, visit: Visit) -> Visit:
    """Return the next board that a pass over the public tree visits, depth first.

    After the last board that follows a board, the pass returns to this board.

    If boards are divided into parts, `sums` receives the values of the chance nodes at the end of the trunk on this
    part's boards, and the pass ends. A pass of 0 parts reads the values of these chance nodes, for each board of the
    trunk's last round.
    """
    nodes, value, alive, trunk = tree.nodes, work.vectors.value, work.vectors.alive, scope.trunk - 1
    depth = visit.depth - 1 if visit.leaving else visit.depth
    if depth < 0:
        return Visit(depth, visit.board, False, False, 0, 0, 0, visit.by_strength, visit.held, 0.0)
    board = work.board[depth]
    end, drawn = tree.first_board[board + 1], scope.board[depth + 1] >= 0
    entries = range(tree.entry_start[depth + 1], tree.entry_start[depth + 2])
    if visit.arriving and not visit.leaving:  # its betting has already been processed
        goes_on = False
        for entry in entries:
            goes_on = goes_on or alive[nodes.place[tree.entry_node[entry]]]
        following = tree.first_board[board] + (scope.part if depth == trunk else 0)
        if drawn:
            following = scope.board[depth + 1]
        elif (scope.parts == 0 and depth == trunk) or not goes_on:
            following = end
        work.following[depth] = following
    if work.following[depth] < end:
        work.board[depth + 1] = work.following[depth]
        work.following[depth] = end if drawn else work.following[depth] + (scope.parts if depth == trunk else 1)
        return begin_board(tree, player, scope, depth + 1, work, visit.by_strength)

    if depth == trunk and scope.parts != 1:
        k = (board - tree.board_start[depth]) * len(entries)
        for entry in entries:
            below = nodes.place[tree.entry_node[entry]]
            for hand in range(value.shape[1]):
                if scope.parts == 0:
                    value[below, hand] = sums[k, hand]
                else:
                    sums[k, hand] = value[below, hand] if alive[below] else 0.0
            k += 1
        if scope.parts > 1:
            depth = -1
    if depth >= 0 and not drawn:
        for entry in entries:
            below = nodes.place[tree.entry_node[entry]]
            if alive[below]:
                average_over_suits(
                    tree.moved, tree.symmetry[board], tree.hands[player], work.vectors.scale, value, below
                )
    return Visit(depth, board, False, True, 0, 0, 0, visit.by_strength, visit.held, work.weight[max(depth, 0)])


@spliced
def first_row(tree: VectorTree, layout: TableLayout, visit: Visit, entry: int) -> int:
    """Return the first row of a betting round on the current board in a strategy table."""
    board = visit.board - tree.board_start[visit.depth]
    row: int = layout.start[visit.depth] + board * layout.rows[visit.depth] + tree.entry_row[entry]
    return row


@spliced
def stored_row(layout: TableLayout, visit: Visit, row: int) -> tuple[int, int]:
    """Return where a strategy table stores a row, and the distance between a decision's rows."""
    if not layout.by_strength:
        return row, 1
    if ordered_by_strength(visit):
        begin, first, width = layout.boards[visit.board]
        return first + layout.order[row - begin] * width, width
    return row * layout.hands, layout.hands


@spliced
def batch_end(tree: VectorTree, entry: int, end: int) -> int:
    """Return the end of a batch of betting rounds that can be processed together.

    Their nodes, and the places of these nodes in the workspace, are consecutive.
    """
    nodes, block = tree.nodes, tree.entry_block[entry]
    entry += 1
    while entry < end:
        block += 1
        begin = nodes.block[block]
        if tree.entry_block[entry] != block or nodes.place[begin] != nodes.place[begin - 1] + 1:
            break
        entry += 1
    return entry


@spliced
def is_reached(tree: VectorTree, visit: Visit, entry: int, vectors: Vectors) -> bool:
    """Return whether the opponent reaches a betting round with any hand.

    Reads what the computation of earlier rounds has stored.
    """
    found: bool = visit.depth == 0 or vectors.alive[tree.nodes.place[tree.entry_node[entry]]]
    return found
