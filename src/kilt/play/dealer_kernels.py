"""Compiled code that deals cards with the same random numbers as Python's `random.Random`.

The generator is the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), as CPython seeds and reads it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.jit import inlined, kernel

SIZE, APART = 624, 397  # words of the generator's state, and the distance between words that its recurrence combines

Words32 = npt.NDArray[np.uint32]


@inlined
def mix_word(word: np.uint32, before: np.uint32, factor: np.uint32) -> np.uint32:
    """Mix a word into the state of the random number generator (Mersenne Twister), as part of seeding.

    `before` is the previous word.
    """
    return word ^ np.uint32((before ^ (before >> np.uint32(30))) * factor)


@inlined
def seed_generator(key: Words32, used: int, fresh: Words32, state: Words32) -> None:
    """Seed the random number generator (Mersenne Twister) with an array of words.

    This is ``init_by_array`` of its authors, for the first `used` words of `key`.

    `fresh` is the state after ``init_genrand(19650218)``.
    """
    last, j = fresh[0], 0
    for i in range(1, SIZE):  # one step per word, except for the last
        last = np.uint32(mix_word(fresh[i], last, np.uint32(1664525)) + key[j] + np.uint32(j))
        state[i] = last
        j = j + 1 if j + 1 < used else 0
    last = np.uint32(mix_word(state[1], last, np.uint32(1664525)) + key[j] + np.uint32(j))
    state[1] = last
    for i in range(2, SIZE):
        last = np.uint32(mix_word(state[i], last, np.uint32(1566083941)) - np.uint32(i))
        state[i] = last
    state[1] = np.uint32(mix_word(state[1], last, np.uint32(1566083941)) - np.uint32(1))
    state[0] = np.uint32(0x80000000)


@inlined
def next_word(state: Words32, number: int) -> np.uint32:
    """Return the generator's next 32-bit random number (Mersenne Twister).

    `number` is how many have been drawn since seeding.
    """
    place = number % SIZE
    high, low = state[place], state[(place + 1) % SIZE]
    y = (high & np.uint32(0x80000000)) | (low & np.uint32(0x7FFFFFFF))
    y = state[(place + APART) % SIZE] ^ (y >> np.uint32(1)) ^ ((y & np.uint32(1)) * np.uint32(0x9908B0DF))
    state[place] = y
    y ^= y >> np.uint32(11)
    y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
    y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
    tempered: np.uint32 = y ^ (y >> np.uint32(18))
    return tempered


@kernel
def draw_keys(key: Words32, used: IntArray, fresh: Words32, state: Words32, keys: npt.NDArray[np.uint64]) -> None:
    """Draw a random 64-bit key for each seat of each deal.

    They are written to `keys`.

    Shapes: `key` [deal, word] holds the seeds, `used` [deal] their lengths in words, `keys` [deal, seat].
    """
    for deal in range(len(keys)):
        seed_generator(key[deal], used[deal], fresh, state)
        for seat in range(2):
            low = np.uint64(next_word(state, 2 * seat))
            keys[deal, seat] = low | (np.uint64(next_word(state, 2 * seat + 1)) << np.uint64(32))


@kernel
def draw_cards(
    key: Words32, used: IntArray, fresh: Words32, state: Words32, deck: int, pooled: bool, cards: IntArray
) -> None:
    """Draw random cards for each deal, exactly as Python's ``Random.sample(range(deck), …)`` does.

    Shape: [deal, card]. CPython draws cards from a pool if the sample is a large part of the deck (`pooled`); otherwise
    it draws until a card is new.
    """
    pool = np.empty(deck, dtype=np.int64)
    for deal in range(len(cards)):
        seed_generator(key[deal], used[deal], fresh, state)
        for card in range(deck):
            pool[card] = card
        drawn = 0
        for k in range(cards.shape[1]):
            below = deck - k if pooled else deck
            bits = 0
            while below >> bits:
                bits += 1
            while True:
                place = np.int64(next_word(state, drawn) >> np.uint32(32 - bits))
                drawn += 1
                if place < below and pool[place] >= 0:
                    break
            cards[deal, k] = pool[place]
            pool[place] = pool[below - 1] if pooled else -1
