"""Compiled loops that convert hands to indices and back.

All facts about layout and deck are in `IndexTables`, so one compiled kernel serves every layout and deck. Four suits
always take part; suits that a smaller deck lacks hold no cards. Kernels do not check their input.

The functions for one hand are inlined into their callers: passing this many arrays costs as much as the work itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.jit import inlined, kernel

LANE = 16  # bits per suit in a word that has a set of ranks for each of four suits


class IndexTables(NamedTuple):
    """Look-up tables that convert hands to indices and back, for one deck and one number of cards per round.

    `isomorphism` computes them once; its docstring explains the terms.
    """

    suits: int  # number of suits in the deck
    place: IntArray  # [card] LANE · suit + rank, the card's bit
    start: IntArray  # [round + 1] position of the round's first card in a hand
    step: IntArray  # [position in the hand, card] what the card adds to the word of four shapes
    width: int  # bits per shape in that word
    held: IntArray  # [shape, round] number of cards in the suit
    stride: IntArray  # [shape, round] what one step of the round's set of ranks adds to the suit's code
    base: IntArray  # [shape] the code of its first holding
    configuration: npt.NDArray[np.int16]  # [word without the last suit's shape, which the others imply]
    offset: IntArray  # [configuration + 1] the index of its first hand
    shape: IntArray  # [configuration, position] the sorted shapes
    turn: IntArray  # [configuration, position] number of earlier suits with the same shape
    worth: IntArray  # [configuration, position] what one step of the group of equal shapes adds to the index
    population: ByteArray  # [set of ranks] its size
    colex: npt.NDArray[np.int16]  # [set of ranks] its number among the sets of its size
    ranks: npt.NDArray[np.int16]  # [size, number] the set of ranks


@inlined
def index_one(cards: ByteArray, t: IndexTables) -> int:
    """Return the index of one hand. Hands that differ only by suits share an index."""
    shapes = 0
    for i in range(len(cards)):
        shapes += t.step[i, cards[i]]
    low = (1 << t.width) - 1
    shape_a = shapes & low
    shape_b = (shapes >> t.width) & low
    shape_c = (shapes >> 2 * t.width) & low
    shape_d = shapes >> 3 * t.width

    a, b, c, d = t.base[shape_a], t.base[shape_b], t.base[shape_c], t.base[shape_d]
    lane = (1 << LANE) - 1
    seen = 0  # the cards of earlier rounds
    for r in range(len(t.start) - 1):
        new = 0
        squeezed = 0  # the same cards, ranked among those of their suit that were not dealt earlier
        for i in range(t.start[r], t.start[r + 1]):
            place = t.place[cards[i]]
            lower = (seen & ((1 << place) - 1)) >> (place & -LANE)
            new |= 1 << place
            squeezed |= 1 << (place - t.population[lower])
        seen |= new
        a += t.stride[shape_a, r] * t.colex[squeezed & lane]
        b += t.stride[shape_b, r] * t.colex[(squeezed >> LANE) & lane]
        c += t.stride[shape_c, r] * t.colex[(squeezed >> 2 * LANE) & lane]
        d += t.stride[shape_d, r] * t.colex[squeezed >> 3 * LANE]

    # The codes of a shape lie together, so this sorts by shape and, among equal shapes, by holding.
    a, b = min(a, b), max(a, b)
    c, d = min(c, d), max(c, d)
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    b, c = min(b, c), max(b, c)
    k = t.configuration[shapes & (len(t.configuration) - 1)]
    index: int = (
        t.offset[k]
        + encode_suit(a, k, 0, t)
        + encode_suit(b, k, 1, t)
        + encode_suit(c, k, 2, t)
        + encode_suit(d, k, 3, t)
    )
    return index


@inlined
def encode_suit(code: int, k: int, place: int, t: IndexTables) -> int:
    """Return the contribution of one suit's cards to the index of a hand.

    The suit is at position `place` of configuration `k`, and `code` describes its cards. Sorted numbers x₀ ≤ x₁ ≤ …
    have the number C(x₀, 1) + C(x₁ + 1, 2) + … among the multisets of their size.
    """
    turn = t.turn[k, place]
    added: int = t.worth[k, place] * binomial_coefficient(code - t.base[t.shape[k, place]] + turn, turn + 1)
    return added


@inlined
def extract_suit(rest: int, k: int, place: int, t: IndexTables) -> tuple[int, int]:
    """Extract one suit's code from the index of a hand. Returns the code and the remaining index.

    This is the inverse of `encode_suit`, for the last remaining suit.
    """
    turn = t.turn[k, place]
    most = rest // t.worth[k, place]
    if turn == 0:
        top = most
    else:  # the highest C(top, turn + 1) that fits; 11 bits suffice: two suits of 3 cards have 13·12·11 holdings
        top = 0
        for bit in range(10, -1, -1):
            if binomial_coefficient(top + (1 << bit), turn + 1) <= most:
                top += 1 << bit
    return t.base[t.shape[k, place]] + top - turn, rest - t.worth[k, place] * binomial_coefficient(top, turn + 1)


@inlined
def binomial_coefficient(n: int, k: int) -> int:
    """Return the binomial coefficient C(n, k) for k from 1 to 4."""
    if k == 1:
        return n
    if k == 2:
        return n * (n - 1) // 2
    if k == 3:
        return n * (n - 1) * (n - 2) // 6
    return n * (n - 1) * (n - 2) * (n - 3) // 24


@inlined
def find_configuration(index: int, t: IndexTables) -> int:
    """Find the configuration to which an index belongs, by binary search.

    A configuration is the sorted shapes of a hand's suits, and has a range of indices.
    """
    low, high = 0, len(t.offset) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if t.offset[middle] <= index:
            low = middle
        else:
            high = middle
    return low


@inlined
def unindex_one(index: int, out: ByteArray, t: IndexTables) -> None:
    """Write the hand with a given index to `out`, with each round's cards in ascending order."""
    k = find_configuration(index, t)
    rest = index - t.offset[k]
    written = 0  # cards so far, four bits per round
    for suit in range(t.suits - 1, -1, -1):
        code, rest = extract_suit(rest, k, suit, t)
        shape = t.shape[k, suit]
        code -= t.base[shape]
        seen = 0
        for r in range(len(t.start) - 1):
            squeezed = t.ranks[t.held[shape, r], code // t.stride[shape, r]]
            code %= t.stride[shape, r]
            earlier = seen
            rank = 0
            while squeezed:
                if not earlier >> rank & 1:
                    if squeezed & 1:
                        seen |= 1 << rank
                        end = t.start[r] + (written >> 4 * r & 15)
                        insert_card(rank * t.suits + suit, out, t.start[r], end)
                        written += 1 << 4 * r
                    squeezed >>= 1
                rank += 1


@inlined
def insert_card(card: int, out: ByteArray, first: int, end: int) -> None:
    """Insert a card into the sorted cards ``out[first:end]``."""
    while end > first and out[end - 1] > card:
        out[end] = out[end - 1]
        end -= 1
    out[end] = card


@inlined
def orbit_one(index: int, t: IndexTables) -> int:
    """Return how many hands share an index.

    It is the number of ways to deal the codes of the index to the suits: a multinomial coefficient.
    """
    k = find_configuration(index, t)
    rest = index - t.offset[k]
    orbit = 1
    run, last = 0, -1
    for suit in range(t.suits - 1, -1, -1):
        code, rest = extract_suit(rest, k, suit, t)
        run = run + 1 if code == last else 1
        last = code
        orbit = orbit * (t.suits - suit) // run
    return orbit


@kernel
def index_many(hands: ByteArray, out: IntArray, t: IndexTables) -> None:
    """Write the index of each row of `hands` to `out`."""
    for i in range(len(hands)):
        out[i] = index_one(hands[i], t)


@kernel
def unindex_many(indices: IntArray, out: ByteArray, t: IndexTables) -> None:
    """Write the canonical hand of each index to a row of `out`."""
    for i in range(len(indices)):
        unindex_one(indices[i], out[i], t)


@kernel
def orbit_many(indices: IntArray, out: IntArray, t: IndexTables) -> None:
    """Write to `out` how many hands share each index."""
    for i in range(len(indices)):
        out[i] = orbit_one(indices[i], t)


@kernel
def first_repeat(hands: ByteArray) -> int:
    """Return the index of the first hand that has a card twice, or −1 if there is none."""
    for i in range(len(hands)):
        seen = 0
        for card in hands[i]:
            if seen >> card & 1:
                return i
            seen |= 1 << card
    return -1
