"""Compiled code for best responses to an opponent who ignores the cards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import compatible_weights, rank_board, showdown_values_of_ranges
from kilt.jit import kernel, subkernel
from kilt.lanes import LANES
from kilt.tree.board_kernels import average_over_suits
from kilt.tree.leaf_kernels import hands_left, set_to_zero
from kilt.tree.vector_arrays import FOLD, REVEAL, SHOWDOWN, Flags, Hand, VectorTree, Workspace
from kilt.tree.vector_kernels import copy_value, take_larger_value


class Classes(NamedTuple):
    """The betting after the first round as arrays, with equivalent betting rounds stored once.

    The last round comes first.
    """

    kind: npt.NDArray[np.int32]  # [node]
    own: npt.NDArray[np.int32]  # [node] whether the responding player acts
    child: npt.NDArray[np.int32]  # [node] first child, counted from the block's first node
    actions: npt.NDArray[np.int32]  # [node] number of children
    reached: npt.NDArray[np.int32]  # [node] whether the opponent's actions inside the block can reach it
    share: FloatArray  # [node] probability of the opponent's action that leads there; otherwise 1
    stake: FloatArray  # [node] as in `Nodes`, for the responding player
    below: npt.NDArray[np.int32]  # [node] the class that a chance node opens
    begin: IntArray  # [class + 1] first node
    opened: Flags  # [class] whether the opponent's earlier actions can reach it
    start: IntArray  # [round] first class of a round, from the second on; its classes end where the round before begins


@subkernel
def put_scaled(
    vector: FloatArray, which: int, factor: float, start: Hand, end: Hand, value: FloatArray, here: int
) -> None:
    """Write a row of an array, times a factor, to a row of another array."""
    for hand in range(start, end):
        value[here, hand] = factor * vector[which, hand]


@subkernel
def add_scaled(
    value: FloatArray, child: int, factor: float, start: Hand, end: Hand, target: FloatArray, here: int
) -> None:
    """Add a row of an array, times a factor, to a row of another array."""
    for hand in range(start, end):
        target[here, hand] += factor * value[child, hand]


@subkernel
def pull_round_values(
    classes: Classes, which: int, leaf: FloatArray, total: FloatArray, start: Hand, end: Hand, value: FloatArray
) -> None:
    """Compute each hand's best-response value at every node of a betting round.

    Nodes are processed from the last to the first, because parents come before children.
    """
    begin = classes.begin[which]
    for node in range(classes.begin[which + 1] - 1, begin - 1, -1):
        here, kind = node - begin, classes.kind[node]
        if not classes.reached[node]:
            continue
        if kind == REVEAL:
            put_scaled(total, classes.below[node], 1.0, start, end, value, here)
        elif kind == FOLD:
            put_scaled(leaf, 0, classes.stake[node], start, end, value, here)
        elif kind == SHOWDOWN:
            put_scaled(leaf, 1, classes.stake[node], start, end, value, here)
        elif classes.own[node]:
            child = classes.child[node]
            copy_value(value, child, start, end, here)
            for a in range(1, classes.actions[node]):
                take_larger_value(value, child + a, start, end, here)
        else:
            child = classes.child[node]
            set_to_zero(value, here, start, end)
            for a in range(classes.actions[node]):
                share = classes.share[begin + child + a]
                if share > 0:
                    add_scaled(value, child + a, share, start, end, value, here)


@kernel
def values(
    tree: VectorTree,
    player: int,
    classes: Classes,
    work: Workspace,
    leaf: FloatArray,
    value: FloatArray,
    total: FloatArray,
) -> None:
    """Compute a best response's winnings with each hand, summed over the boards after a flop.

    Equivalent betting rounds form a class, and each class is evaluated once.

    Values are those of `player`, per unit of the opponent's reach. After all boards that follow a board, its leaves are
    summed once for all of its betting. `leaf` [2, hand] and `value` [node of a class, hand] are scratch.
    """
    none, hands, lanes, last = np.uint64(0), np.uint64(value.shape[1]), np.uint64(LANES), len(tree.rows) - 1
    prior, order = tree.prior[1 - player], work.ranking.order
    depth = 1
    work.board[1] = tree.board_start[1]
    work.following[1] = tree.first_board[tree.board_start[1]]
    while depth > 0:
        board = work.board[depth]
        if depth < last and work.following[depth] < tree.first_board[board + 1]:
            following = work.following[depth]
            work.following[depth] += 1
            depth += 1
            work.board[depth] = following
            if depth < last:
                work.following[depth] = tree.first_board[following]
            continue
        cards, held = work.cards[: tree.board_size[depth]], np.int64(0)
        for k in range(len(cards)):
            cards[k] = tree.board[board, k]
            held |= tree.strengths.card_bit[cards[k]]
        set_to_zero(leaf, 0, none, hands)
        if depth == last:
            set_to_zero(leaf, 1, none, hands)
            groups = rank_board(cards, tree.deck, tree.strengths, work.ranking)
            live = np.uint64(work.ranking.ends[groups - 1]) if groups > 0 else none
            for i in range(none, live):
                work.lanes.reach[lanes * i] = prior[order[i]]
            showdown_values_of_ranges(
                work.ranking, groups, work.lanes.reach, work.lanes.cards, work.lanes.result, work.lanes.whole
            )
            for i in range(none, live):
                met = work.lanes.whole[lanes * i]
                leaf[0, order[i]], leaf[1, order[i]] = met, work.lanes.result[lanes * i] - met
        else:
            left = work.order[: hands_left(tree.deck.bits, held, work.order)]
            compatible_weights(left, tree.deck.cards, prior, work.ranking.by_card, leaf[0])
            for below in range(classes.start[depth + 1], classes.start[depth]):
                average_over_suits(
                    tree.moved, tree.symmetry[board], tree.hands[player], work.vectors.scale, total, below
                )
        factor = tree.chance[depth] * tree.weight[board]
        for which in range(classes.start[depth], classes.start[depth - 1]):
            if classes.opened[which]:
                pull_round_values(classes, which, leaf, total, none, hands, value)
                add_scaled(value, 0, factor, none, hands, total, which)
        if depth < last:
            for below in range(classes.start[depth + 1], classes.start[depth]):
                set_to_zero(total, below, none, hands)
        depth -= 1
