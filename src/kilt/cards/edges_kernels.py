"""Compiled loops that count showdown wins and losses between hands.

`hands` is a `HandList`, and arrays over hands are indexed by its rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.cards.equity_kernels import HandList, board_strengths
from kilt.cards.hands_kernels import HandTables, Strengths, look_up
from kilt.jit import kernel, subkernel


@kernel
def add_edges(
    boards: IntArray,
    hands: HandList,
    opponent: int,
    tables: HandTables,
    strength: Strengths,
    won: npt.NDArray[np.int32],
) -> None:
    """Count every hand's wins minus losses against one opponent hand, on complete boards.

    The opponent's hand has the number `opponent`. A win adds 1 to `won`, a loss −1. The boards have none of the
    opponent's cards. A board adds nothing to a hand that shares a card with it. `strength` is scratch for an entry per
    hand.
    """
    for b in range(boards.shape[0]):
        board_strengths(boards[b], hands, tables, strength)
        theirs = strength[opponent]
        for hand in range(len(strength)):
            mine = strength[hand]
            won[hand] += np.int32((mine >= 0) & (mine > theirs)) - np.int32((mine >= 0) & (mine < theirs))


@subkernel
def pair_edge(
    held: IntArray, rest: IntArray, ways: npt.NDArray[np.int8], hands: HandList, pair: IntArray, tables: HandTables
) -> int:
    """Count the wins minus losses of one hand against another over all possible boards.

    The cards of the board are `held`.

    `pair` has the numbers of the two hands. A way is a row of indices into `rest`, the cards that are neither on the
    board nor in a hand.
    """
    key, bits = np.int64(tables.start), np.int64(0)
    for card in held:
        key += tables.card_key[card]
        bits += tables.card_bit[card]
    mine_key, mine_bits = key + hands.key[pair[0]], bits | hands.bits[pair[0]]
    their_key, their_bits = key + hands.key[pair[1]], bits | hands.bits[pair[1]]
    won = 0
    for way in range(ways.shape[0]):
        more_key, more_bits = np.int64(0), np.int64(0)
        for place in range(ways.shape[1]):
            card = rest[ways[way, place]]
            more_key += tables.card_key[card]
            more_bits += tables.card_bit[card]
        mine = look_up(mine_key + more_key, mine_bits | more_bits, tables)
        theirs = look_up(their_key + more_key, their_bits | more_bits, tables)
        won += int(mine > theirs) - int(mine < theirs)
    return won


@kernel
def pair_edges_on(
    boards: IntArray,
    rest: IntArray,
    ways: npt.NDArray[np.int8],
    hands: HandList,
    pair: IntArray,
    tables: HandTables,
    won: IntArray,
) -> None:
    """Count the wins minus losses of one hand against another, for each of several partial boards.

    The counts are written to `won` [board].

    `boards` has a row of cards for each board, and `rest` a row of the cards that remain: see `pair_edge`.
    """
    for b in range(boards.shape[0]):
        won[b] = pair_edge(boards[b], rest[b], ways, hands, pair, tables)


@kernel
def deal_edges(
    cards: IntArray,
    held: int,
    size: int,
    ways: npt.NDArray[np.int8],
    hands: HandList,
    pairs: IntArray,
    tables: HandTables,
    rest: IntArray,
    edge: npt.NDArray[np.float32],
) -> None:
    """Compute player 0's edge in each of many deals, given the first `size` public cards.

    `cards` [deal, card] has `held` private cards of each player, then the board. `pairs` [deal, player] has the numbers
    of the hands. `edge` [deal] gets the result. `rest` [card of the deck] is scratch.
    """
    for deal in range(len(cards)):
        known, left = 2 * held + size, 0
        for card in range(len(rest)):
            free = True
            for k in range(known):
                free = free and cards[deal, k] != card
            if free:
                rest[left] = card
                left += 1
        board = cards[deal, 2 * held : known]
        edge[deal] = pair_edge(board, rest, ways, hands, pairs[deal], tables) / ways.shape[0]


@kernel
def add_pairs(
    boards: IntArray,
    weights: IntArray,
    hands: HandList,
    tables: HandTables,
    strength: Strengths,
    sums: Strengths,
    won: IntArray,
) -> None:
    """Add the wins minus losses of each pair of hands to `won`, over complete boards.

    A board counts with its weight.

    Only entries of `won` [hand, other] with hand < other are meaningful.

    The weights add up to less than 2¹⁵, so the sums of a row fit 16 bits and the compiler can add many at once.
    `strength` [board, hand] and `sums` [hand] are scratch.
    """
    for b in range(boards.shape[0]):
        board_strengths(boards[b], hands, tables, strength[b])
    for hand in range(len(sums)):
        sums[:] = 0
        for b in range(boards.shape[0]):
            mine = strength[b, hand]
            if mine >= 0:
                _add_signs(mine, np.int16(weights[b]), strength[b, hand:], sums[hand:])
        for other in range(hand, len(sums)):
            won[hand, other] += sums[other]


@subkernel
def _add_signs(mine: np.int16, weight: np.int16, theirs: Strengths, sums: Strengths) -> None:
    """Add `weight` for each hand weaker than `mine`, and subtract it for each stronger one; skip strength −1."""
    for other in range(len(theirs)):
        below, above = theirs[other] < mine, theirs[other] > mine
        free = theirs[other] >= 0
        sums[other] += weight if below & free else (-weight if above else np.int16(0))
