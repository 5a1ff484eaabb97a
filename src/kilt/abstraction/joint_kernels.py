"""Compiled loops that count showdown results for each pair of bucket sequences."""

from __future__ import annotations

from typing import NamedTuple

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
    """Mark which buckets can follow each bucket sequence of the earlier rounds, on the given boards.

    `seen` is [earlier sequence, bucket]; `before` and `buckets` are [board, hand]; `boards` is [board, card].
    """
    for board in range(len(boards)):
        held = np.int64(0)
        for card in boards[board]:
            held |= card_bit[card]
        for hand in range(len(hands.bits)):
            if not hands.bits[hand] & held:
                seen[before[board, hand], buckets[board, hand]] = True


class Scratch(NamedTuple):
    """Scratch arrays for the kernel `add_pairs`."""

    local: npt.NDArray[np.int32]  # [player, sequence] number of the sequence on this board; −1 between calls
    present: npt.NDArray[np.uint32]  # [player, number] the sequence
    place: npt.NDArray[np.uint32]  # [player, hand in order of strength] number of its sequence
    weaker: npt.NDArray[np.int32]  # [number] number of weaker hands with the sequence
    equal: npt.NDArray[np.int32]  # [number] number of hands of the same strength with the sequence; 0 between calls
    distinct: npt.NDArray[np.uint32]  # numbers of the sequences among hands of the same strength
    holding: npt.NDArray[np.uint32]  # [card, …] numbers of the sequences of hands that hold it, weakest first
    behind: npt.NDArray[np.uint32]  # [card] number of these hands that are weaker
    number: npt.NDArray[np.uint32]  # [card] number of these hands so far
    wins: npt.NDArray[np.int32]  # [number of own, number of other] wins
    ties: npt.NDArray[np.int32]  # [number of own, number of other] ties


@kernel
def add_pairs(
    boards: IntArray,
    weights: IntArray,
    own: npt.NDArray[np.int32],
    other: npt.NDArray[np.int32],
    hands: HandList,
    tables: HandTables,
    ranking: Ranking,
    scratch: Scratch,
    wins: FloatArray,
    ties: FloatArray,
) -> None:
    """Count wins and ties on complete boards for each pair of the players' bucket sequences.

    Adds to `wins` and `ties` [own sequence, other sequence]. `own` and `other` are [board, hand] sequences; a pair
    counts with the weight of its board. The loop visits hands from the weakest on: earlier hands lose to the current
    one, except those that share a card with it. The counts of all boards of a call must stay below 2³¹.
    """
    local, present, place, weaker, equal, distinct, holding, behind, number, won, tied = scratch
    one, many = np.uint32(1), np.zeros(2, dtype=np.uint32)
    for board in range(len(boards)):
        bits = np.int64(0)
        for card in boards[board]:
            bits |= tables.card_bit[card]
        for hand in range(len(hands.bits)):
            if not hands.bits[hand] & bits:
                for player in range(2):
                    sequence = np.uint32(own[board, hand] if player == 0 else other[board, hand])
                    if local[player, sequence] < 0:
                        local[player, sequence] = many[player]
                        present[player, many[player]] = sequence
                        many[player] += one
    rows, columns = np.int64(many[0]), np.int64(many[1])
    for x in range(rows):
        for y in range(columns):
            won[x, y] = 0
            tied[x, y] = 0
    for board in range(len(boards)):
        weight = np.int32(weights[board])
        groups = rank_board(boards[board], hands, tables, ranking)
        order, ends, first, second = ranking.order, ranking.ends, ranking.cards[0], ranking.cards[1]
        for y in range(columns):
            weaker[y] = 0
        for card in range(len(number)):
            behind[card] = 0
            number[card] = 0
        start = np.uint64(0)
        for group in range(groups):
            end, kinds = np.uint64(ends[group]), np.uint32(0)
            for i in range(start, end):
                mine, theirs = np.uint32(own[board, order[i]]), np.uint32(other[board, order[i]])
                place[0, i], place[1, i] = local[0, mine], local[1, theirs]
                here = place[1, i]
                row, a, b = won[place[0, i]], first[i], second[i]
                for y in range(columns):
                    row[y] += weaker[y]
                for k in range(behind[a]):
                    row[holding[a, k]] -= weight
                for k in range(behind[b]):
                    row[holding[b, k]] -= weight
                holding[a, number[a]] = here
                number[a] += one
                holding[b, number[b]] = here
                number[b] += one
                if equal[here] == 0:
                    distinct[kinds] = here
                    kinds += one
                equal[here] += weight
            for i in range(start, end):
                row, a, b = tied[place[0, i]], first[i], second[i]
                for k in range(kinds):
                    row[distinct[k]] += equal[distinct[k]]
                for k in range(behind[a], number[a]):
                    row[holding[a, k]] -= weight
                for k in range(behind[b], number[b]):
                    row[holding[b, k]] -= weight
                row[place[1, i]] += weight  # add the hand itself back, which was subtracted twice
            for i in range(start, end):
                behind[first[i]], behind[second[i]] = number[first[i]], number[second[i]]
            for k in range(kinds):
                weaker[distinct[k]] += equal[distinct[k]]
                equal[distinct[k]] = 0
            start = end
    for x in range(rows):
        for y in range(columns):
            wins[present[0, x], present[1, y]] += won[x, y]
            ties[present[0, x], present[1, y]] += tied[x, y]
    for player in range(2):
        for x in range(many[player]):
            local[player, present[player, x]] = -1
