"""Compiled loops that compute hand strength, and sum it over all completions of a board."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.abstraction.holdings_kernels import HoldingTables, Numbers, number_board, prepare_board
from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.boards_kernels import find_canonical_board
from kilt.cards.equity_kernels import HandList, Ranking, rank_board, showdown_values, showdown_values_of_ranges
from kilt.cards.hands_kernels import HandTables
from kilt.jit import kernel
from kilt.lanes import LANES


@kernel
def final_strengths(
    t: HoldingTables,
    start: int,
    end: int,
    hands: HandList,
    tables: HandTables,
    ranking: Ranking,
    scratch: FloatArray,
    numbers: Numbers,
    opponents: int,
    codes: npt.NDArray[np.int16],
) -> None:
    """Compute the strength of every hand on complete boards: twice its wins, plus its ties.

    The first row of `scratch` has a 1 for each hand; its second row and `numbers` are working memory.
    """
    reach, value = scratch[0, : len(hands.bits)], scratch[1, : len(hands.bits)]
    for board in range(start, end):
        groups = rank_board(t.cards[board], hands, tables, ranking)
        showdown_values(ranking, groups, reach, value)
        number_board(t, board, numbers)
        for hand in range(len(numbers)):
            if numbers[hand] >= 0:
                codes[t.first[board] + numbers[hand]] = int(value[hand]) + opponents


@kernel
def final_ochs(
    t: HoldingTables,
    start: int,
    end: int,
    hands: HandList,
    tables: HandTables,
    ranking: Ranking,
    scratch: npt.NDArray[np.float32],
    numbers: Numbers,
    clusters: FloatArray,
    whole_share: int,
    out: npt.NDArray[np.uint16],
) -> None:
    """Compute the strength of every hand on complete boards against each cluster of opponent hands.

    The unit is 1/`whole_share`. `clusters` has a row of weights over hands for each cluster, with rows of zeros up to a
    multiple of `LANES`. If no hand of a cluster is possible, the strength is one half. `scratch` has four rows with the
    lanes of each hand, or of each card if there are more; both it and `numbers` are working memory.
    """
    reach, result, whole, by_card = scratch[0], scratch[1], scratch[2], scratch[3, : LANES * len(ranking.by_card)]
    kinds = out.shape[1]
    for board in range(start, end):
        groups = rank_board(t.cards[board], hands, tables, ranking)
        number_board(t, board, numbers)
        live = ranking.ends[groups - 1]
        for c in range(0, kinds, LANES):
            for i in range(live):
                for lane in range(LANES):
                    reach[LANES * i + lane] = clusters[c + lane, ranking.order[i]]
            showdown_values_of_ranges(ranking, groups, reach, by_card, result, whole)
            for i in range(live):
                holding = t.first[board] + numbers[ranking.order[i]]
                for lane in range(min(LANES, kinds - c)):
                    met = 2 * whole[LANES * i + lane]
                    share = result[LANES * i + lane] / met if met > 0 else np.float32(0.5)
                    out[holding, c + lane] = np.uint16(share * whole_share + np.float32(0.5))


@kernel
def find_later(
    t: HoldingTables,
    after: HoldingTables,
    board: int,
    picks: ByteArray,
    coded: bool,
    codes: npt.NDArray[np.int16],
    numbers: Numbers,
    numbers_after: Numbers,
    cards: IntArray,
    rows: npt.NDArray[np.int32],
) -> int:
    """Look up the next-round value of every hand on a board, for each possible next card.

    `rows` [pick, holding] gets the rows, with −1 if the holding is impossible. The row is the number of the later
    holding or, if values are `coded`, its code. `picks` are sets of indices into the cards that the board leaves.
    `numbers`, `numbers_after` and `cards` (three rows, as long as there are hands or cards) are scratch.

    Returns
    -------
    int
        Number of holdings of the board.
    """
    known, dealt = t.cards.shape[1], picks.shape[1]
    later, rest, holding_hand = cards[0], cards[1], cards[2]
    count = prepare_board(t, board, numbers, holding_hand, rest)
    for k in range(known):
        later[k] = t.cards[board, k]
    for pick in range(picks.shape[0]):
        for k in range(dealt):
            later[known + k] = rest[picks[pick, k]]
        there, turned = find_canonical_board(after.boards, later)
        number_board(after, there, numbers_after)
        moved = after.moved[turned]
        base = after.first[there]
        for holding in range(count):
            number = numbers_after[moved[holding_hand[holding]]]
            row = -1
            if number >= 0:
                row = codes[base + number] if coded else base + number
            rows[pick, holding] = row
    return count


@kernel
def sum_later_values(rows: npt.NDArray[np.int32], worth: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    """Sum the next-round values of every hand on a board over all possible next cards.

    `rows` [pick, holding] has the rows of `worth` to add; −1 stands for no row.
    """
    for pick in range(rows.shape[0]):
        for holding in range(out.shape[0]):
            row = rows[pick, holding]
            if row >= 0:
                for d in range(out.shape[1]):
                    out[holding, d] += worth[row, d]
