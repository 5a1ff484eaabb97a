"""Compiled code that looks up classes of boards, and buckets that depend on these classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.abstraction.cluster_kernels import Labels, Singles, point_distance
from kilt.abstraction.holdings_kernels import HoldingIndex, HoldingTables
from kilt.arrays import FloatArray, IntArray
from kilt.cards.boards_kernels import find_canonical_board
from kilt.jit import kernel, kernel_of_slices


@kernel
def find_classes(public: HoldingIndex, labels: Labels, boards: IntArray, ways: IntArray, found: Labels) -> None:
    """Look up the classes of all smaller boards contained in a given board.

    `ways` [way, position] lists the choices of cards, and `found` [board, way] gets the classes.
    """
    cards = np.empty(ways.shape[1], dtype=np.int64)
    for b in range(len(boards)):
        for way in range(len(ways)):
            for place in range(len(cards)):
                cards[place] = boards[b, ways[way, place]]
            known, _ = find_canonical_board(public.boards, cards)
            found[b, way] = labels[known]


@kernel
def count_deals_of_codes(
    t: HoldingTables, deals: IntArray, codes: npt.NDArray[Any], found: Labels, weights: FloatArray
) -> None:
    """Count how often each group of similar hands is dealt in each class of boards.

    The number of such a group is called a code.

    The counts are added to `weights` [class, code]. `found` has the classes of each board.
    """
    often = np.zeros(len(weights))
    for board in range(len(codes)):
        held = np.int64(0)
        for card in t.cards[board]:
            held |= t.card_bit[card]
        for label in found[board]:
            often[label] += deals[board]
        for label in found[board]:
            if often[label] > 0:
                for hand in range(codes.shape[1]):
                    if t.bits[hand] & held == 0:
                        weights[label, codes[board, hand]] += often[label]
                often[label] = 0.0


@kernel
def sum_code_distances(
    points: Singles,
    weights: IntArray,
    codes: Labels,
    first: IntArray,
    found: Labels,
    bucket: Labels,
    centroids: Singles,
    absolute: bool,
) -> float:
    """Sum the distances from hands to their bucket centroids, weighted by the number of deals.

    Each holding has a code, and a bucket in each class that `found` has for its board, all equally likely. The holdings
    of board b are `first[b]` to `first[b + 1]`.
    """
    total, ways = 0.0, found.shape[1]
    for board in range(len(found)):
        for i in range(first[board], first[board + 1]):
            for label in found[board]:
                total += (
                    float(weights[i]) / ways * point_distance(points, i, centroids, bucket[label, codes[i]], absolute)
                )
    return total


@kernel
def look_up_by_class(
    index: HoldingIndex,
    table: npt.NDArray[Any],
    public: HoldingIndex,
    labels: Labels,
    bucket: Labels,
    boards: IntArray,
    buckets: Labels,
) -> np.int64:
    """Look up the bucket of every hand on some boards, if buckets depend on the class of the board.

    The first cards of a board determine its class, and the table has a code for each hand, which the class maps to a
    bucket. Returns the largest code that was read. A code out of range gets no bucket.
    """
    size, most = np.int64(0), np.int64(0)
    for dealt in public.boards.dealt:
        size += dealt
    for b in range(len(boards)):
        board, turned = find_canonical_board(index.boards, boards[b])
        known, _ = find_canonical_board(public.boards, boards[b, :size])
        row, moved, mine = table[board], index.moved[turned], bucket[labels[known]]
        for hand in range(buckets.shape[1]):
            code = np.int64(row[moved[hand]])
            most = max(most, code)
            if code < len(mine):
                buckets[b, hand] = mine[code]
    return most


@kernel_of_slices
def look_up_hands_by_class(
    index: HoldingIndex,
    table: npt.NDArray[Any],
    public: HoldingIndex,
    labels: Labels,
    bucket: Labels,
    boards: IntArray,
    hands: IntArray,
    buckets: npt.NDArray[np.uint32],
) -> np.int64:
    """Look up the buckets of dealt hands, if buckets depend on the class of the board.

    `hands` and `buckets` are [deal, player]. Returns the largest code that was read.
    """
    size, most = np.int64(0), np.int64(0)
    for dealt in public.boards.dealt:
        size += dealt
    for deal in range(len(boards)):
        board, turned = find_canonical_board(index.boards, boards[deal])
        known, _ = find_canonical_board(public.boards, boards[deal, :size])
        for player in range(hands.shape[1]):
            code = np.int64(table[board, index.moved[turned, hands[deal, player]]])
            most = max(most, code)
            if code < bucket.shape[1]:
                buckets[deal, player] = bucket[labels[known], code]
    return most
