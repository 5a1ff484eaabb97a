"""Compiled code that samples boards and sums values, for the workers of a distributed run."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.draws import splitmix_word, uniform
from kilt.jit import inlined, kernel
from kilt.solve.external_kernels import Singles, Starts, Words

Bits: TypeAlias = npt.NDArray[np.uint64]

FINE = 2.0**20  # resolution per chip of sums, which are integers: their sum does not depend on the order


@kernel
def count_within(boards: ByteArray, choose: IntArray, within: IntArray) -> None:
    """Count how many of the given boards contain each set of cards.

    See `_number`. `choose` [n, k] is n over k.
    """
    size = boards.shape[1]
    for board in range(len(boards)):
        for mask in range(1 << size):
            within[_number(boards[board], mask, choose)] += 1


@inlined
def _number(cards: Any, mask: int, choose: IntArray) -> int:
    """Return the number of a set of cards: those of the ascending `cards` that a mask selects.

    Smaller sets have lower numbers.
    """
    members, number = 0, 0
    for k in range(len(cards)):
        if (mask >> k) & 1:
            members += 1
            number += choose[cards[k], members]
    for k in range(members):
        number += choose[choose.shape[0] - 1, k]
    return number


@kernel
def count_ways(hands: IntArray, size: int, choose: IntArray, within: IntArray, ways: IntArray) -> None:
    """Count the given boards that share no card with the players' hands, for each deal.

    `ways` has an entry for each deal, and `hands` the shape (deals, cards).
    """
    held = hands.shape[1]
    ascending = np.empty(held, dtype=np.int64)
    for deal in range(len(hands)):
        for k in range(held):
            card, place = hands[deal, k], k
            while place > 0 and ascending[place - 1] > card:
                ascending[place] = ascending[place - 1]
                place -= 1
            ascending[place] = card
        free = 0
        for mask in range(1 << held):  # inclusion–exclusion
            members = 0
            for k in range(held):
                members += (mask >> k) & 1
            if members <= size:
                free += (1 - 2 * (members & 1)) * within[_number(ascending, mask, choose)]
        ways[deal] = free


@kernel
def spread_boards(
    seed: np.uint64, first: int, boards: int, whole: int, below: IntArray, upto: IntArray, often: IntArray
) -> None:
    """Count how many of each deal's sampled boards belong to a given class.

    The samples are spread evenly over all boards. The counts are written to `often`. `whole` is the number of all
    boards; those of the class are numbered from `below` [deal] to before `upto` [deal].
    """
    for deal in range(len(often)):
        start = np.int64(uniform(splitmix_word(seed, np.uint64(first + deal)), np.uint64(0)) * whole)
        often[deal] = (boards * upto[deal] - start + whole - 1) // whole - (
            boards * below[deal] - start + whole - 1
        ) // whole


@kernel
def pick_starts(starts: Starts, deals: IntArray, picked: Starts, index: IntArray) -> None:
    """Copy the starting nodes of some deals to another array, and record where they come from."""
    free = 0
    for place in range(len(deals)):
        picked.begin[place] = free
        for start in range(starts.begin[deals[place]], starts.begin[deals[place] + 1]):
            picked.node[free], picked.player[free], index[free] = starts.node[start], starts.player[start], start
            free += 1
    picked.begin[len(deals)] = free


@kernel
def draw_boards(
    seed: np.uint64,
    first: int,
    deck: int,
    hands: IntArray,
    boards: ByteArray,
    bits: Bits,
    ways: IntArray,
    cards: IntArray,
    tally: Words,
    drawn: IntArray,
) -> None:
    """Sample a board of a given class for each deal, without the players' cards.

    Reads the `hands` [deal, card] of both players, the `boards` [board, card] of the class with their `bits`, and
    `ways` [deal], the number of compatible boards. Writes `cards` [deal, card], hands and all boards up to the last;
    `tally` [deal], which is 1 with the probability that a uniformly drawn board of the class is compatible, otherwise
    0; and the sampled board to `drawn` [deal]. Without a compatible board, the cards are those of an arbitrary board.
    """
    held, size = hands.shape[1], boards.shape[1]
    for deal in range(len(hands)):
        key = splitmix_word(seed, np.uint64(first + deal))
        taken = np.uint64(0)
        for k in range(held):
            cards[deal, k] = hands[deal, k]
            taken |= np.uint64(1) << np.uint64(hands[deal, k])
        tally[deal] = np.uint32(ways[deal] / max(len(bits), 1) + uniform(key, np.uint64(0)))
        drawn[deal] = 0
        known, draw = held, np.uint64(1)
        while ways[deal] > 0 and known == held:
            board = np.int64(uniform(key, draw) * len(bits))
            draw += np.uint64(1)
            if (bits[board] & taken) == np.uint64(0):
                drawn[deal] = board
                for k in range(size):
                    cards[deal, held + k] = boards[board, k]
                taken |= bits[board]
                known += size
        while known < cards.shape[1]:
            card = np.int64(uniform(key, draw) * deck)
            draw += np.uint64(1)
            if (taken >> np.uint64(card)) & np.uint64(1) == np.uint64(0):
                taken |= np.uint64(1) << np.uint64(card)
                cards[deal, known] = card
                known += 1


@kernel
def draw_next(
    seed: np.uint64,
    first: int,
    deck: int,
    seen: ByteArray,
    board: IntArray,
    labels: npt.NDArray[np.int32],
    sets: ByteArray,
    bits: Bits,
    label: int,
    spread: bool,
    likely: Singles,
    cards: IntArray,
    ways: IntArray,
    tally: Words,
    drawn: IntArray,
) -> None:
    """Sample the next public cards of each deal so that the new board belongs to a given class.

    Reads the dealt cards `seen` [deal, card], hands followed by the board, the number of that board [deal], and the
    `labels` [board, set] of boards with each of the `sets` [set, card] of cards, which are also given as `bits`; −1 for
    sets that share a card with the board. Writes `cards` [deal, card] up to the last board; `ways` [deal], the number
    of sets that make a board of the class; `tally` [deal], which is 1 with the share of these among all sets, times the
    probability `likely` [deal] before, otherwise 0; and the number of the next board, as in `labels`, to `drawn`
    [deal]. With `spread`, a set is sampled from all remaining ones: `ways` is 1 if it makes a board of the class,
    otherwise 0.
    """
    known, size = seen.shape[1], sets.shape[1]
    for deal in range(len(seen)):
        key, taken = splitmix_word(seed, np.uint64(first + deal)), np.uint64(0)
        for k in range(known):
            cards[deal, k] = seen[deal, k]
            taken |= np.uint64(1) << np.uint64(seen[deal, k])
        mine, free = 0, 0
        for one in range(len(bits)):
            if (bits[one] & taken) == np.uint64(0):
                free += 1
                mine += int(labels[board[deal], one] == label)
        left = np.int64(uniform(key, np.uint64(1)) * (free if spread else mine))
        chosen = -1
        for one in range(len(bits)):
            if (bits[one] & taken) == np.uint64(0) and (spread or labels[board[deal], one] == label):
                if left == 0:
                    chosen = one
                left -= 1
        ways[deal] = mine
        tally[deal] = np.uint32(likely[deal] * mine / max(free, 1) + uniform(key, np.uint64(0)))
        if spread:
            ways[deal] = np.int64(labels[board[deal], chosen] == label)
            tally[deal] = np.uint32(1)
        here, draw = known, np.uint64(2)
        drawn[deal] = board[deal] * len(bits) + max(chosen, 0)
        if chosen >= 0:
            for k in range(size):
                cards[deal, here] = sets[chosen, k]
                here += 1
            taken |= bits[chosen]
        while here < cards.shape[1]:
            card = np.int64(uniform(key, draw) * deck)
            draw += np.uint64(1)
            if (taken >> np.uint64(card)) & np.uint64(1) == np.uint64(0):
                taken |= np.uint64(1) << np.uint64(card)
                cards[deal, here] = card
                here += 1


@kernel
def add_values(begin: IntArray, ways: IntArray, value: Singles, sums: IntArray) -> None:
    """Add each starting node's value, times its deal's weight, to `sums`."""
    for deal in range(len(ways)):
        for start in range(begin[deal], begin[deal + 1]):
            sums[start] += np.int64(np.rint(ways[deal] * np.float64(value[start]) * FINE))
