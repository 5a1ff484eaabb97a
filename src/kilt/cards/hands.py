"""Rank poker hands: compute a hand's strength as an integer, and name its category.

The worst hand has strength 0, the next better one 1, and so on; hands that tie have the same strength. Hands of five,
six and seven cards share one scale of 7,462 strengths (the best five cards count), so they can be compared.

>>> best, worst = strength("AsKsQsJsTs"), strength("7c5d4h3s2c")
>>> best, worst, strength("AsKsQsJsTs9s8s")
(7461, 0, 7461)
>>> describe_hand("AsAhKdKcKs9d2c")
'full house, kings full of aces'

Hands of fewer than five cards, as small games have them, are ranked on scales of their own. With three cards straights
and flushes count, in the order of Rhode Island hold'em (Shi and Littman 2001): straight flush, three of a kind,
straight, flush, pair. With one, two or four cards only equal ranks count, as in the ACPC's evaluator.

How it works: a hand is the sum over its cards of a 64-bit key, so boards and private cards are simply added. The key
counts ranks in base 5, lower and upper half apart, and suits in four-bit counters that carry into a marker bit at a
flush. Two short tables turn the halves into the position of the hand among all multisets of ranks; a third holds its
strength. `hands_kernels` does the look-ups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.cards import hands_kernels as kernels
from kilt.cards.deck import FULL, Deck
from kilt.cards.hands_kernels import HandTables, Strengths
from kilt.errors import CardError

MAX_CARDS = 7

# Worst first: the position in its tuple is the rank of a category.
FIVE_CARD_CATEGORIES = (
    "high card",
    "pair",
    "two pair",
    "three of a kind",
    "straight",
    "flush",
    "full house",
    "four of a kind",
    "straight flush",
)
THREE_CARD_CATEGORIES = ("high card", "pair", "flush", "straight", "three of a kind", "straight flush")
GROUP_CATEGORIES = ("high card", "pair", "two pair", "three of a kind", "four of a kind")

_RANK_WORDS = ["deuce", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen", "king", "ace"]
_LOW, _HIGH = 7, 6  # number of ranks that the lower and the upper half of a key count


@lru_cache
def hand_tables(cards: int, deck: Deck = FULL) -> HandTables:
    """Build the look-up tables that rank hands with a given number of cards from a deck."""
    if not 1 <= cards <= MAX_CARDS:
        raise CardError(f"a hand of {cards} cards cannot be ranked: use 1 to {MAX_CARDS} cards")
    counts, low, high = _rank_counts(cards)
    straight, flush_size, categories = _rules(cards)
    scale = _scale(min(cards, 5))
    strength = np.searchsorted(scale, _codes(counts, straight, categories))
    flush = np.full(1 << 13, -1, dtype=np.int16)
    if flush_size:
        masks = np.concatenate([_masks_of(size) for size in range(flush_size, cards + 1)])
        flush[masks] = np.searchsorted(scale, _flush_codes(masks, straight, categories))
    # A counter of four bits reaches its top bit, the marker, at `flush_size` cards of a suit.
    bias = 8 - flush_size if flush_size else 0
    suit_shift = kernels.SUIT_SHIFT + 4 * np.arange(4)
    rank, suit = np.divmod(deck.full.astype(np.int64), 4)
    rank_key = np.where(
        rank < _LOW, 5 ** np.minimum(rank, _LOW), (5 ** np.maximum(rank - _LOW, 0)) << kernels.HIGH_SHIFT
    )
    return HandTables(
        start=int((np.int64(bias) << suit_shift).sum()),
        card_key=rank_key + (np.int64(1) << suit_shift[suit]),
        card_bit=np.int64(1) << (13 * suit + rank),
        low=low,
        high=high,
        # Padded, so that the key of an impossible hand (five aces) reads an arbitrary entry within bounds.
        strength=np.pad(strength.astype(np.int16), (0, int(low.max() + high.max()) + 1 - len(strength))),
        flush=flush,
        suit_shift=suit_shift,
        flush_mark=np.int64(8 if flush_size else 0) << suit_shift,
        scale=len(scale),
    )


def strengths(cards: npt.ArrayLike, deck: Deck = FULL) -> Strengths:
    """Return the strength of each of many hands, one per row. Higher is stronger.

    >>> strengths([FULL.cards("AsAhAdAcKs"), FULL.cards("AsAhAdAcQs")])
    array([7451, 7450], dtype=int16)
    """
    rows = np.ascontiguousarray(cards, dtype=np.int8)
    if rows.ndim != 2:
        raise CardError(f"hands come one per row, in an array of 2 dimensions; this one has {rows.ndim}")
    if rows.size:
        _require_cards((rows.min(), rows.max()), deck)
    out = np.empty(len(rows), dtype=np.int16)
    kernels.strengths(rows, hand_tables(rows.shape[1], deck), out)
    return out


def strength(cards: str | Sequence[int], deck: Deck = FULL) -> int:
    """Return the strength of one hand, given as card names or numbers. Higher is stronger.

    It does what `hands_kernels.look_up` does, but nothing is compiled for it.
    """
    numbers = deck.cards(cards) if isinstance(cards, str) else tuple(cards)
    if len(set(numbers)) != len(numbers):
        raise CardError(f"{deck.name(numbers)} has a card twice: every card may be used once")
    _require_cards(numbers, deck)
    tables = hand_tables(len(numbers), deck)
    key, bits = (int(parts[list(numbers)].sum()) for parts in (tables.card_key, tables.card_bit))
    key += tables.start
    if mark := key & kernels.FLUSH_MARKS:
        suit = (mark.bit_length() - 1 - kernels.SUIT_SHIFT) // 4
        return int(tables.flush[(bits >> (13 * suit)) & 0x1FFF])
    high = tables.high[(key >> kernels.HIGH_SHIFT) & kernels.HIGH_MASK]
    return int(tables.strength[tables.low[key & kernels.LOW_MASK] + high])


def _require_cards(numbers: Sequence[int], deck: Deck) -> None:
    """Raise CardError if a number is not that of a card in the deck."""
    if numbers and not (min(numbers) >= 0 and max(numbers) < deck.size):
        raise CardError(f"cards are numbered 0 to {deck.size - 1} in this deck; found {min(numbers)} to {max(numbers)}")


def category(value: int, cards: int = 5) -> str:
    """Return the category of a hand, such as ``flush``, from its strength.

    `cards` is the number of cards in the hand, since different numbers of cards have different scales.

    >>> category(7461), category(strength("AsAh"), cards=2)
    ('straight flush', 'pair')
    """
    categories = _rules(cards)[2]
    return categories[int(np.searchsorted(_category_starts(cards), value, side="right")) - 1]


def count_categories(cards: int = MAX_CARDS, deck: Deck = FULL) -> dict[str, int]:
    """Enumerate all hands of a given number of cards, and count each category.

    >>> count_categories(5)["flush"]
    5108
    """
    tables = hand_tables(cards, deck)
    counts = np.zeros(tables.scale, dtype=np.int64)
    kernels.count_strengths(deck.size, cards, tables, counts)
    ends = [*_category_starts(cards)[1:], tables.scale]
    below = [0, *np.cumsum(counts)[np.array(ends) - 1]]
    return {name: int(below[i + 1] - below[i]) for i, name in enumerate(_rules(cards)[2])}


def best_five(cards: str | Sequence[int], deck: Deck = FULL) -> tuple[int, ...]:
    """Return the best five cards of a hand, with pairs and sets before kickers.

    A hand of fewer than five cards is returned whole.

    >>> FULL.name(best_five("AsAhKdKcKs9d2c"))
    'KcKdKsAhAs'
    """
    numbers = deck.cards(cards) if isinstance(cards, str) else tuple(cards)
    best = max(combinations(sorted(numbers), min(len(numbers), 5)), key=lambda five: strength(five, deck))
    ranks = [card // deck.suits for card in best]
    wheel = category(strength(best, deck), len(best)).startswith("straight") and set(ranks) >= {0, 3, deck.ranks - 1}

    def weight(card: int) -> tuple[int, int, int]:
        rank = card // deck.suits
        return (-ranks.count(rank), deck.ranks if wheel and rank == deck.ranks - 1 else -rank, card)

    return tuple(sorted(best, key=weight))


def describe_hand(cards: str | Sequence[int], deck: Deck = FULL) -> str:
    """Describe a hand in words, such as ``two pair, aces and kings``."""
    best = best_five(cards, deck)
    name = category(strength(best, deck), len(best))
    words = [_RANK_WORDS[13 - deck.ranks + card // deck.suits] for card in best]
    plural = ["sixes" if word == "six" else word + "s" for word in words]
    match name:
        case "pair" | "three of a kind" | "four of a kind":
            return f"{name}, {plural[0]}"
        case "two pair":
            return f"{name}, {plural[0]} and {plural[2]}"
        case "full house":
            return f"{name}, {plural[0]} full of {plural[3]}"
        case _:
            return f"{name}, {words[0]} high"


# ── how the tables are made ──────────────────────────────────────────────────────────────────────────────────────────


def _rules(cards: int) -> tuple[int, int, tuple[str, ...]]:
    """Return the length of a straight, the size of a flush (0: none) and the categories for hands of `cards` cards."""
    if cards >= 5:
        return 5, 5, FIVE_CARD_CATEGORIES
    if cards == 3:
        return 3, 3, THREE_CARD_CATEGORIES
    return 0, 0, GROUP_CATEGORIES


def _digits(places: int) -> npt.NDArray[np.int8]:
    """Return all numbers of `places` digits in base 5, one row of digits each, lowest place first."""
    values = np.arange(5**places)
    return np.stack([values // 5**place % 5 for place in range(places)], axis=1).astype(np.int8)


@lru_cache
def _rank_counts(cards: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return all multisets of `cards` ranks, and the two tables whose sum is the row of a multiset.

    Multisets are ordered by how many cards fall in the lower ranks, then by the lower half, then by the upper half.
    """
    low_digits, high_digits = _digits(_LOW), _digits(_HIGH)
    low_sum, high_sum = low_digits.sum(axis=1), high_digits.sum(axis=1)
    low = np.zeros(kernels.LOW_MASK + 1, dtype=np.int32)
    high = np.zeros(kernels.HIGH_MASK + 1, dtype=np.int32)
    rows, offset = [], 0
    for in_low in range(cards + 1):
        lows = np.flatnonzero(low_sum == in_low)
        highs = np.flatnonzero(high_sum == cards - in_low)
        low[lows] = offset + np.arange(len(lows)) * len(highs)
        high[highs] = np.arange(len(highs))
        pairs = [np.repeat(low_digits[lows], len(highs), axis=0), np.tile(high_digits[highs], (len(lows), 1))]
        rows.append(np.concatenate(pairs, axis=1))
        offset += len(rows[-1])
    return np.concatenate(rows), low, high


def _masks_of(size: int) -> IntArray:
    """Return all sets of `size` ranks as 13-bit masks."""
    masks = np.arange(1 << 13)
    return np.flatnonzero(np.bitwise_count(masks) == size)


def _highest(has: npt.NDArray[np.bool_]) -> IntArray:
    """Return the highest rank in each row, or −1 if the row has no rank."""
    return np.where(has.any(axis=1), 12 - np.argmax(has[:, ::-1], axis=1), -1)


def _straight(has: npt.NDArray[np.bool_], length: int) -> IntArray:
    """Return the top rank of each row's best straight, or −1; an ace also counts as the rank below the deuce."""
    if length == 0:
        return np.full(len(has), -1)
    ranks = np.concatenate([has[:, 12:], has], axis=1)
    runs = np.stack([ranks[:, top - length + 1 : top + 1].all(axis=1) for top in range(length - 1, 14)], axis=1)
    tops = np.concatenate([np.zeros((len(has), length - 2), dtype=bool), runs], axis=1)
    return _highest(tops)


def _packed(category: int, *ranks: IntArray) -> IntArray:
    """Pack a category and the ranks that break ties inside it into one number that orders hands."""
    code = np.full(len(ranks[0]), category * 14**5, dtype=np.int64)
    for place, rank in enumerate(ranks):
        code += (rank + 1) * 14 ** (4 - place)
    return code


def _kickers(has: npt.NDArray[np.bool_], number: int, *used: IntArray) -> list[IntArray]:
    """Return the highest ranks of each row, best first, without those in `used`."""
    found = list(used)
    for _ in range(number):
        free = has & np.all([np.arange(13) != rank[:, None] for rank in found], axis=0) if found else has
        found.append(_highest(free))
    return found[len(used) :]


def _codes(counts: npt.NDArray[np.int8], straight: int, categories: tuple[str, ...]) -> IntArray:
    """Return a number for each multiset of ranks that orders hands without a flush: the higher number wins."""
    room = min(int(counts[0].sum()), 5)
    held = counts > 0
    quad, trip, pair = _highest(counts == 4), _highest(counts >= 3), _highest(counts >= 2)
    (under_trip,) = _kickers(counts >= 2, 1, trip)  # the pair of a full house
    (under_pair,) = _kickers(counts >= 2, 1, pair)  # the second of two pairs
    run = _straight(held, straight)
    claims = {
        "high card": (held.any(axis=1), _kickers(held, room)),
        "pair": (pair >= 0, [pair, *_kickers(held, room - 2, pair)]),
        "two pair": (
            (pair >= 0) & (under_pair >= 0),
            [pair, under_pair, *_kickers(held, room - 4, pair, under_pair)],
        ),
        "three of a kind": (trip >= 0, [trip, *_kickers(held, room - 3, trip)]),
        "straight": (run >= 0, [run]),
        "full house": ((trip >= 0) & (under_trip >= 0), [trip, under_trip]),
        "four of a kind": (quad >= 0, [quad, *_kickers(held, room - 4, quad)]),
    }
    best = np.full(len(counts), -1, dtype=np.int64)
    for value, name in enumerate(categories):
        if name in claims:
            holds, ranks = claims[name]
            best = np.where(holds, _packed(value, *ranks), best)
    return best


def _flush_codes(masks: IntArray, straight: int, categories: tuple[str, ...]) -> IntArray:
    """Return the codes of flushes and straight flushes, in order of strength, from the ranks held in one suit."""
    has = (masks[:, None] >> np.arange(13)) & 1 == 1
    run = _straight(has, straight)
    flush = _packed(categories.index("flush"), *_kickers(has, straight))
    return np.where(run >= 0, _packed(categories.index("straight flush"), run), flush)


@lru_cache
def _scale(cards: int) -> IntArray:
    """Return the codes of all distinct hands of `cards` cards, worst first; a code's index is the hand's strength."""
    straight, flush_size, categories = _rules(cards)
    codes = [_codes(_rank_counts(cards)[0], straight, categories)]
    if flush_size:
        codes.append(_flush_codes(_masks_of(flush_size), straight, categories))
    return np.unique(np.concatenate(codes))


def _category_starts(cards: int) -> IntArray:
    """Return the lowest strength of each category."""
    return np.searchsorted(_scale(min(cards, 5)) // 14**5, np.arange(len(_rules(cards)[2])))
