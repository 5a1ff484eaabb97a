"""Compiled loops that extend boards, find canonical boards, and index the hands on a board."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.jit import kernel


class BoardIndex(NamedTuple):
    """Look-up tables that map any dealt board to its canonical board.

    Boards are numbered over all rounds; 0 is the empty board.
    """

    dealt: IntArray  # [round] number of cards that it adds
    start: IntArray  # [round + 1] number of the round's first board
    word: IntArray  # [board] its new cards as a bit set, ascending among the extensions of a board
    first: IntArray  # [board + 1] its extensions in the next round
    symmetry: npt.NDArray[np.int32]  # [board] bit mask of the permutations that map the board to itself
    renamed: ByteArray  # [permutation, card]
    composed: npt.NDArray[np.int32]  # [q, p] the permutation that applies p, then q


@kernel
def extend_boards(
    before: ByteArray,
    before_symmetry: npt.NDArray[np.int32],
    picks: ByteArray,
    renamed: ByteArray,
    rest: IntArray,
    cards: ByteArray,
    parent: npt.NDArray[np.int32],
    weight: npt.NDArray[np.int32],
    symmetry: npt.NDArray[np.int32],
    first_child: npt.NDArray[np.int32],
) -> int:
    """Extend each board by new cards in every way, up to suit isomorphism.

    Returns the number of boards that are kept.

    Only suit permutations that map the old board to itself (`before_symmetry`, one bit each) may identify two
    extensions. A set of cards is a bit set, and the extension with the least bit set of its class is kept. `picks` are
    sets of indices into the remaining cards; `rest` [card] is scratch. Writes all arrays from `cards` on.
    """
    known, count, deck_size = before.shape[1], picks.shape[1], renamed.shape[1]
    found = 0
    for board in range(before.shape[0]):
        first_child[board] = found
        held = np.int64(0)
        for k in range(known):
            held |= np.int64(1) << before[board, k]
        left = 0
        for card in range(deck_size):
            if not (held >> card) & 1:
                rest[left] = card
                left += 1
        for pick in range(picks.shape[0]):
            new = np.int64(0)
            for k in range(count):
                new |= np.int64(1) << rest[picks[pick, k]]
            alike, fixing, same, least = 0, 0, 0, True
            for p in range(renamed.shape[0]):
                if not (before_symmetry[board] >> p) & 1:
                    continue
                image = np.int64(0)
                for k in range(count):
                    image |= np.int64(1) << renamed[p, rest[picks[pick, k]]]
                if image < new:
                    least = False
                    break
                alike += 1
                if image == new:
                    fixing |= 1 << p
                    same += 1
            if least:
                for k in range(known):
                    cards[found, k] = before[board, k]
                for k in range(count):
                    cards[found, known + k] = rest[picks[pick, k]]
                parent[found], weight[found], symmetry[found] = board, alike // same, fixing
                found += 1
    first_child[before.shape[0]] = found
    return found


@kernel
def find_canonical_board(index: BoardIndex, cards: IntArray) -> tuple[int, int]:
    """Find the canonical board of some dealt cards, and the suit permutation that leads to it.

    Returns the index of the board, among those of its round, and that of the permutation.
    """
    board, turned, known = 0, 0, 0
    for r in range(len(index.dealt)):
        best, by = np.int64(-1), 0
        for p in range(index.renamed.shape[0]):
            if (index.symmetry[board] >> p) & 1:
                image = np.int64(0)
                for k in range(known, known + index.dealt[r]):
                    image |= np.int64(1) << index.renamed[p, index.renamed[turned, cards[k]]]
                if best < 0 or image < best:
                    best, by = image, p
        low, high = index.first[board], index.first[board + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if index.word[middle] <= best:
                low = middle
            else:
                high = middle
        board, turned = low, index.composed[by, turned]
        known += index.dealt[r]
    return board - index.start[len(index.dealt) - 1], turned


@kernel
def number_hands(
    bits: IntArray, held: np.int64, symmetry: int, moved: npt.NDArray[np.int32], numbers: npt.NDArray[np.int32]
) -> int:
    """Index the hands on a board. Hands that differ only by suits share an index.

    Hands that share a card with the board get −1. Returns how many numbers there are. `held` is the bit set of the
    board's cards, in the coding of `bits`.
    """
    for hand in range(len(bits)):
        numbers[hand] = hand
    for p in range(1, moved.shape[0]):
        if (symmetry >> p) & 1:
            for hand in range(len(bits)):
                numbers[hand] = min(numbers[hand], moved[p, hand])
    found = 0  # no branches from here on: the processor cannot predict which hands are equal or blocked
    for hand in range(len(bits)):
        first = np.uint32(numbers[hand])
        new = first == np.uint32(hand)
        number = found if new else np.int64(numbers[first])
        free = (bits[hand] & held) == 0
        numbers[hand] = number if free else -1
        found += new & free
    return found
