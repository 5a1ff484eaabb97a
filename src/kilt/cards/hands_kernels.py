"""Compiled functions that look up the strength of poker hands in tables.

A hand is the pair (key, bits), each a sum over its cards: see `hands`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.jit import inlined, kernel, trailing_zeros

HIGH_SHIFT = 17  # the lower half needs 17 bits, the upper half 14
SUIT_SHIFT = 32  # then four counters of four bits
LOW_MASK = (1 << HIGH_SHIFT) - 1
HIGH_MASK = (1 << 14) - 1
RANK_MASK = (1 << SUIT_SHIFT) - 1
FLUSH_MARKS = 0x8888 << SUIT_SHIFT

Strengths: TypeAlias = npt.NDArray[np.int16]
Word: TypeAlias = int | np.int64


class HandTables(NamedTuple):
    """Look-up tables that rank hands of a fixed number of cards from one deck."""

    start: int  # the key of no cards
    card_key: IntArray  # [card] what a card adds to a hand's key
    card_bit: IntArray  # [card] what it adds to the set of cards, 13 bits a suit
    low: npt.NDArray[np.int32]  # [lower half of the key] position of the hand, first part
    high: npt.NDArray[np.int32]  # [upper half of the key] second part: the sum is a row of `strength`
    strength: Strengths  # [position] strength of a hand without a flush
    flush: Strengths  # [set of ranks in the flush suit] strength of a hand with a flush
    suit_shift: IntArray  # [suit] position of its counter in a key
    flush_mark: IntArray  # [suit] the bit of its counter that a flush sets
    scale: int  # number of different strengths


@inlined
def look_up_ranks(key: Word, tables: HandTables) -> int:
    """Return a hand's strength without regard to flushes, from the ranks of its cards."""
    strength: int = tables.strength[tables.low[key & LOW_MASK] + tables.high[(key >> HIGH_SHIFT) & HIGH_MASK]]
    return strength


@inlined
def look_up(key: Word, bits: Word, tables: HandTables) -> int:
    """Return the strength of one hand, looked up in tables.

    The hand is given as its key and its bit set of cards.
    """
    mark = key & FLUSH_MARKS
    if mark:
        suit = (trailing_zeros(mark) - SUIT_SHIFT) >> 2
        result: int = tables.flush[(bits >> (13 * suit)) & 0x1FFF]
    else:
        result = look_up_ranks(key, tables)
    return result


@kernel
def strengths(cards: ByteArray, tables: HandTables, out: Strengths) -> None:
    """Compute the strength of each hand, given one hand per row, and store it in `out`."""
    for i in range(cards.shape[0]):
        key = np.int64(tables.start)
        bits = np.int64(0)
        for j in range(cards.shape[1]):
            card = cards[i, j]
            key += tables.card_key[card]
            bits += tables.card_bit[card]
        out[i] = look_up(key, bits, tables)


@kernel
def showdown_winners(
    cards: IntArray, held: int, tables: HandTables, hands: IntArray, outcome: npt.NDArray[np.float32]
) -> None:
    """Find the showdown winner of each deal, and the indices of both players' private hands.

    `cards` [deal, card] has `held` private cards of each player, then the board. `hands` [deal, player] gets the
    numbers of the hands, and `outcome` [deal] is 1 if player 0 wins, −1 if player 1 wins, and 0 for a split pot.
    """
    for deal in range(len(cards)):
        key, bits = np.int64(tables.start), np.int64(0)
        for k in range(2 * held, cards.shape[1]):
            key += tables.card_key[cards[deal, k]]
            bits |= tables.card_bit[cards[deal, k]]
        before = 0
        for player in range(2):
            mine, set_of = key, bits
            for k in range(player * held, player * held + held):
                mine += tables.card_key[cards[deal, k]]
                set_of |= tables.card_bit[cards[deal, k]]
            strength = look_up(mine, set_of, tables)
            outcome[deal] = np.float32(before > strength) - np.float32(before < strength)
            before = strength
            card = cards[deal, player * held]
            if held == 1:
                hands[deal, player] = card
            else:
                low, high = min(card, cards[deal, player * 2 + 1]), max(card, cards[deal, player * 2 + 1])
                hands[deal, player] = low + high * (high - 1) // 2


@kernel
def count_strengths(deck_size: int, cards: int, tables: HandTables, counts: IntArray) -> None:
    """Enumerate all hands of a given number of cards, and count each strength.

    The loop visits hands in lexicographic order and keeps keys and bits of each prefix, so a step costs one addition.
    """
    chosen = np.empty(cards, dtype=np.int64)
    keys = np.empty(cards + 1, dtype=np.int64)
    bits = np.empty(cards + 1, dtype=np.int64)
    keys[0], bits[0] = tables.start, 0
    depth = 0
    chosen[0] = -1
    while depth >= 0:
        chosen[depth] += 1
        card = chosen[depth]
        if card > deck_size - cards + depth:
            depth -= 1
            continue
        if depth == cards - 1:
            for last in range(card, deck_size):
                key = keys[depth] + tables.card_key[last]
                counts[look_up(key, bits[depth] + tables.card_bit[last], tables)] += 1
            depth -= 1
            continue
        keys[depth + 1] = keys[depth] + tables.card_key[card]
        bits[depth + 1] = bits[depth] + tables.card_bit[card]
        depth += 1
        chosen[depth] = card
