"""Compiled loops of `joint`: pairs of hands on complete boards, counted by their bucket sequences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cards.equity_kernels import HandList, Ranking, rank_board
from kilt.cards.hands_kernels import HandTables
from kilt.jit import kernel


@kernel
def mark_sequences(
    before: npt.NDArray[np.int32],
    buckets: npt.NDArray[np.int32],
    boards: IntArray,
    hands: HandList,
    card_bit: IntArray,
    seen: BoolArray,
) -> None:
    """Mark [earlier sequence, bucket] the pairs that hands come by, on boards [board, card] that leave room for them.

    `before` and `buckets` are [board, hand].
    """
    for board in range(len(boards)):
        held = np.int64(0)
        for card in boards[board]:
            held |= card_bit[card]
        for hand in range(len(hands.bits)):
            if not hands.bits[hand] & held:
                seen[before[board, hand], buckets[board, hand]] = True


@kernel
def add_pairs(
    boards: IntArray,
    weights: IntArray,
    mine: npt.NDArray[np.int32],
    theirs: npt.NDArray[np.int32],
    hands: HandList,
    tables: HandTables,
    ranking: Ranking,
    local: npt.NDArray[np.int32],
    present: npt.NDArray[np.int32],
    place: npt.NDArray[np.int32],
    weaker: npt.NDArray[np.int32],
    holding: npt.NDArray[np.int32],
    number: IntArray,
    counted: npt.NDArray[np.int32],
    wins: FloatArray,
    ties: FloatArray,
) -> None:
    """Add the pairs of hands on complete boards to `wins` and `ties` [my sequence, their sequence].

    `mine` and `theirs` are [board, hand] sequences, and a pair counts as often as the `weights` of its board say.
    Hands are gone through from the weakest on; `weaker` has how many of each sequence are behind, and those that share
    a card with a hand are taken away again. On a board the sequences that occur have numbers of their own, so that the
    tables are small: `local` [player, sequence] (−1 between boards), and back `present` [player, number]. The others
    are scratch: `place` [player, hand in order], `holding` [card, …] sequences of weaker hands that hold a card,
    `number` [card] how many, `counted` [wins or ties, my number, their number].
    """
    for board in range(len(boards)):
        groups = rank_board(boards[board], hands, tables, ranking)
        order, ends, first, second = ranking.order, ranking.ends, ranking.cards[0], ranking.cards[1]
        live = np.int64(ends[groups - 1]) if groups else 0
        many = np.zeros(2, dtype=np.int64)
        for i in range(live):
            for player in range(2):
                sequence = mine[board, order[i]] if player == 0 else theirs[board, order[i]]
                if local[player, sequence] < 0:
                    local[player, sequence] = many[player]
                    present[player, many[player]] = sequence
                    many[player] += 1
                place[player, i] = local[player, sequence]
        own, other = many
        for x in range(own):
            for y in range(other):
                counted[0, x, y] = 0
                counted[1, x, y] = 0
        for y in range(other):
            weaker[y] = 0
        for card in range(len(number)):
            number[card] = 0
        start = np.int64(0)
        for group in range(groups):
            end = np.int64(ends[group])
            for i in range(start, end):
                row, level = counted[0, place[0, i]], counted[1, place[0, i]]
                for y in range(other):
                    row[y] += weaker[y]
                a, b = first[i], second[i]
                for k in range(number[a]):
                    row[holding[a, k]] -= 1
                for k in range(number[b]):
                    row[holding[b, k]] -= 1
                for j in range(start, end):
                    c, d = first[j], second[j]
                    if a != c and a != d and b != c and b != d:
                        level[place[1, j]] += 1
            for i in range(start, end):
                y = place[1, i]
                weaker[y] += 1
                for card in (first[i], second[i]):
                    holding[card, number[card]] = y
                    number[card] += 1
            start = end
        for x in range(own):
            to = present[0, x]
            for y in range(other):
                wins[to, present[1, y]] += weights[board] * counted[0, x, y]
                ties[to, present[1, y]] += weights[board] * counted[1, x, y]
        for player in range(2):
            for x in range(many[player]):
                local[player, present[player, x]] = -1
