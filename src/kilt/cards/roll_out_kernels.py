"""Compiled loops that sum wins, losses and hand strengths over complete boards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import (
    HandList,
    Order,
    Ranking,
    board_strengths,
    compatible_weights,
    rank_board,
    showdown_values,
)
from kilt.cards.hands_kernels import HandTables, Strengths, look_up
from kilt.jit import kernel


@kernel
def board_strengths_many(
    boards: IntArray, hands: HandList, tables: HandTables, ranking: Ranking, opponents: int, rows: Strengths
) -> None:
    """Compute the strength of every hand on each complete board: twice its wins, plus its ties.

    `opponents` is the number of hands that the other player can hold. Hands that share a card with the board get −1.
    """
    reach, value = np.ones(len(hands.bits)), np.empty(len(hands.bits))
    for b in range(boards.shape[0]):
        groups = rank_board(boards[b], hands, tables, ranking)
        showdown_values(ranking, groups, reach, value)
        rows[b, :] = -1
        for hand in ranking.order[: ranking.ends[groups - 1]]:
            rows[b, hand] = int(value[hand]) + opponents


@kernel
def count_strengths(rows: Strengths, weights: IntArray, classes: IntArray, counts: IntArray) -> None:
    """Count how often each class of hands has each strength over several boards.

    A board counts as often as the boards it stands for: ``counts[classes[hand], row[hand]] += weight`` for each row.
    """
    for b in range(rows.shape[0]):
        for hand in range(rows.shape[1]):
            if rows[b, hand] >= 0:
                counts[classes[hand], rows[b, hand]] += weights[b]


@kernel
def sum_showdowns(
    boards: IntArray,
    weights: IntArray,
    hands: HandList,
    classes: IntArray,
    tables: HandTables,
    ranking: Ranking,
    reach: FloatArray,
    won: FloatArray,
    total: FloatArray,
) -> None:
    """Sum the showdown values of each class of hands over complete boards.

    Adds the values to `won` [class] and the weight of the opponent's hands that share no card with the hand to `total`
    [class].
    """
    value = np.empty(len(hands.bits))
    for b in range(boards.shape[0]):
        groups = rank_board(boards[b], hands, tables, ranking)
        live = ranking.order[: ranking.ends[groups - 1]]
        showdown_values(ranking, groups, reach, value)
        for hand in live:
            won[classes[hand]] += weights[b] * value[hand]
        compatible_weights(live, hands.cards, reach, ranking.by_card, value)
        for hand in live:
            total[classes[hand]] += weights[b] * value[hand]


@kernel
def count_wins_against_few(
    boards: IntArray,
    weights: IntArray,
    hands: HandList,
    opponents: Order,
    tables: HandTables,
    won: npt.NDArray[np.int32],
    met: npt.NDArray[np.int32],
) -> None:
    """Count each hand's wins minus losses against a few opponent hands, on complete boards.

    Adds the counts to `won` [opponent, hand], and to `met` the boards on which both hands are possible. With few
    opponents, this is less work than ranking all hands. Whether a hand and an opponent share a card is not checked.
    """
    strength = np.empty(len(hands.bits), dtype=np.int16)
    for b in range(boards.shape[0]):
        board_strengths(boards[b], hands, tables, strength)
        weight = np.int32(weights[b])
        for o in range(len(opponents)):
            theirs = strength[opponents[o]]
            if theirs >= 0:
                for hand in range(len(strength)):
                    mine = strength[hand]
                    won[o, hand] += weight * np.int32(np.int32(mine > theirs) - np.int32((mine >= 0) & (mine < theirs)))
                    met[o, hand] += weight * np.int32(mine >= 0)


@kernel
def count_results(
    boards: IntArray,
    weights: IntArray,
    hands: HandList,
    hero: int,
    opponents: Order,
    reach: FloatArray,
    tables: HandTables,
    strength: Strengths,
    result: FloatArray,
) -> None:
    """Count one hand's wins, ties and losses against several hands, over complete boards.

    Adds their weights to `result`. The opponents share no card with the hero. The strength of a few opponents is looked
    up one by one; for many, it is faster to compute the strength of all hands on the board. `strength` [hand] is
    scratch.
    """
    for b in range(boards.shape[0]):
        key, bits = np.int64(tables.start), np.int64(0)
        for card in boards[b]:
            key += tables.card_key[card]
            bits += tables.card_bit[card]
        if bits & hands.bits[hero]:
            continue
        if len(opponents) > 64:
            board_strengths(boards[b], hands, tables, strength)
        else:
            strength[hero] = look_up(key + hands.key[hero], bits | hands.bits[hero], tables)
            for other in opponents:
                blocked = bits & hands.bits[other]
                strength[other] = -1 if blocked else look_up(key + hands.key[other], bits | hands.bits[other], tables)
        won, tied, lost = 0.0, 0.0, 0.0
        for other in opponents:
            if strength[other] >= 0:
                won += reach[other] * (strength[hero] > strength[other])
                tied += reach[other] * (strength[hero] == strength[other])
                lost += reach[other] * (strength[hero] < strength[other])
        result[0] += weights[b] * won
        result[1] += weights[b] * tied
        result[2] += weights[b] * lost
