"""Compiled loops of `boards`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import ByteArray
from kilt.jit import kernel


@kernel
def extend_boards(
    before: ByteArray,
    before_symmetry: npt.NDArray[np.int32],
    picks: ByteArray,
    renamed: ByteArray,
    cards: ByteArray,
    parent: npt.NDArray[np.int32],
    weight: npt.NDArray[np.int32],
    symmetry: npt.NDArray[np.int32],
    first_child: npt.NDArray[np.int32],
) -> int:
    """Extend each board by all sets of new cards that are the least among their images; return how many there are.

    Only suit permutations that leave the old board as it is (`before_symmetry`, one bit each) tell nothing apart, so
    only they may identify two extensions. A set of cards is a word of bits, and the least word of an orbit is
    canonical. `picks` are sets of places among the cards that are left. Writes all arrays from `cards` on.
    """
    known, count, deck_size = before.shape[1], picks.shape[1], renamed.shape[1]
    rest = np.empty(deck_size - known, dtype=np.int64)
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
