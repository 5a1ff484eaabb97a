"""Index poker hands without gaps, up to suit isomorphism.

The algorithm is that of Kevin Waugh, "A fast and optimal hand isomorphism algorithm" (2013). A *layout* is the number
of cards in each round: ``(2, 3, 1, 1)`` is a hold'em hand from hole cards to river, ``(3,)`` a flop alone, ``(2, 5)`` a
hand whose board is one set. The order of rounds matters, the order of cards within a round does not.

The algorithm describes a hand suit by suit:

- The *shape* of a suit is the number of its cards in each round. Its *holding* is a number with one digit per round:
  the ranks that were dealt, counted among those that earlier rounds left. The holdings of all shapes are numbered one
  after another, so a single *code* describes a suit completely.
- Renaming the suits permutes the codes, so the sorted codes describe the hand up to isomorphism.
- The sorted shapes are the *configuration* of the hand. In the index, configurations follow one another. Within a
  configuration, each group of g suits with the same shape is a digit: the number of a multiset of g of the shape's n
  holdings, out of C(n + g − 1, g).

Shapes are found without counting cards: each card adds a constant to a word made of four shape numbers, and a table
maps that word to the configuration.

>>> holes = Isomorphism((2,))
>>> holes.size
169
>>> [holes.index(FULL.cards(hand)) for hand in ("AsKh", "KcAd", "AhKh")]
[167, 167, 77]
>>> FULL.name(holes.unindex(77)), holes.orbit(77)
('KcAc', 4)
>>> Isomorphism((2, 3, 1, 1)).size
2428287420
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby, product
from math import comb, prod
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.cards.deck import FULL, SUITS, Deck
from kilt.cards.isomorphism_kernels import LANE, IndexTables, first_repeat, index_many, orbit_many, unindex_many
from kilt.errors import CardError

Numbers: TypeAlias = npt.NDArray[np.integer[Any]]

MOST_CARDS = 7  # so that tables stay small (2²¹ entries at worst) and products far below 2⁶³


@dataclass(frozen=True)
class Isomorphism:
    """An index of poker hands without gaps, in which hands that differ only by suits share a number.

    A hand is the cards of its rounds, one after another. For one hand, `index` returns an int; for an array
    of hands, an array.

    >>> flop = Isomorphism((2, 3))
    >>> hands = np.array([FULL.cards("AsKs QsJs2d"), FULL.cards("KhAh 2cJhQh")])
    >>> flop.index(hands)
    array([17159, 17159])
    >>> flop.index(FULL.cards("AsKs"))
    Traceback (most recent call last):
        ...
    kilt.errors.CardError: a hand of 2 cards, but the layout (2, 3) has 5: give all rounds, one after another
    """

    layout: tuple[int, ...]
    deck: Deck = FULL

    def __post_init__(self) -> None:
        if not self.layout or min(self.layout) < 1:
            raise CardError(f"the layout {self.layout} has a round without cards: give each at least 1")
        most = min(MOST_CARDS, self.deck.size)
        if self.cards > most:
            raise CardError(
                f"the layout {self.layout} has {self.cards} cards, but at most {most} of this deck's "
                f"{self.deck.size} can be indexed: use fewer"
            )

    @property
    def cards(self) -> int:
        """The number of cards in a hand, over all rounds."""
        return sum(self.layout)

    @property
    def size(self) -> int:
        """The number of different hands, up to suit isomorphism."""
        return int(self.tables.offset[-1])

    @cached_property
    def tables(self) -> IndexTables:
        """Look-up tables that convert hands to indices and back, for compiled code."""
        return build_tables(self.layout, self.deck)

    @overload
    def index(self, cards: Sequence[int]) -> int: ...
    @overload
    def index(self, cards: Numbers | Sequence[Sequence[int]]) -> IntArray: ...
    def index(self, cards: Numbers | Sequence[int] | Sequence[Sequence[int]]) -> IntArray | int:
        """Return the index of one hand, or of each hand in an array of shape (..., cards).

        The order of cards within a round does not matter.
        """
        hands = np.asarray(cards)
        length = hands.shape[-1] if hands.ndim else 1
        if length != self.cards:
            raise CardError(
                f"a hand of {length} cards, but the layout {self.layout} has {self.cards}: "
                "give all rounds, one after another"
            )
        rows = _checked("card", hands, self.deck.size).astype(np.int8, order="C").reshape(-1, self.cards)
        repeat = first_repeat(rows)
        if repeat >= 0:
            raise CardError(f"{self.deck.name(rows[repeat])} has a card twice: every card may be used once")
        out = np.empty(len(rows), dtype=np.int64)
        index_many(rows, out, self.tables)
        plain = hands.ndim == 1 and not isinstance(cards, np.ndarray)
        return int(out[0]) if plain else out.reshape(hands.shape[:-1])

    def unindex(self, index: Numbers | Sequence[int] | int) -> ByteArray:
        """Return the canonical hand of each index, shape (..., cards).

        It stands for all hands that differ from it only by suits.

        The cards of each round are in ascending order.
        """
        indices = _checked("index", np.asarray(index), self.size).astype(np.int64)
        out = np.empty((indices.size, self.cards), dtype=np.int8)
        unindex_many(indices.reshape(-1), out, self.tables)
        return out.reshape(*indices.shape, self.cards)

    @overload
    def orbit(self, index: int) -> int: ...
    @overload
    def orbit(self, index: Numbers | Sequence[int]) -> IntArray: ...
    def orbit(self, index: Numbers | Sequence[int] | int) -> IntArray | int:
        """Return how many hands share each index."""
        indices = _checked("index", np.asarray(index), self.size).astype(np.int64)
        out = np.empty(indices.size, dtype=np.int64)
        orbit_many(indices.reshape(-1), out, self.tables)
        plain = indices.ndim == 0 and not isinstance(index, np.ndarray)
        return int(out[0]) if plain else out.reshape(indices.shape)


def _checked(what: str, numbers: npt.NDArray[Any], bound: int) -> npt.NDArray[Any]:
    """Return `numbers`; raise CardError unless they are integers from 0 to bound − 1."""
    if numbers.dtype.kind not in "iu":
        raise CardError(f"a {what} of type {numbers.dtype} is not a number from 0 to {bound - 1}: use integers")
    wrong = numbers[(numbers < 0) | (numbers >= bound)]
    if wrong.size:
        raise CardError(f"{what} {wrong[0]} is out of range: use 0 to {bound - 1}")
    return numbers


@lru_cache
def build_tables(layout: tuple[int, ...], deck: Deck) -> IndexTables:
    """Build the look-up tables that convert hands to indices and back.

    `layout` has the number of cards of each round.

    All callers share one copy: do not write to it.
    """
    # A shape's number is its index in this list, which is a sum over its cards: each adds its round's weight.
    shapes = list(product(*(range(cards + 1) for cards in layout)))
    weights = [prod(cards + 1 for cards in layout[r + 1 :]) for r in range(len(layout))]
    digits = [[comb(max(deck.ranks - sum(shape[:r]), 0), n) for r, n in enumerate(shape)] for shape in shapes]
    holdings = [prod(row) for row in digits]
    # Codes decrease as shapes increase, so that suits without cards come last, and so do suits that the deck lacks.
    base = list(accumulate(holdings[:0:-1], initial=0))[::-1]

    width = (len(shapes) - 1).bit_length()
    found: dict[int, tuple[int, ...]] = {}
    for deal in product(*(_splits(cards, deck.suits) for cards in layout)):
        suits = [sum(w * n for w, n in zip(weights, suit, strict=True)) for suit in zip(*deal, strict=True)]
        if all(holdings[shape] for shape in suits):
            word = sum(shape << width * suit for suit, shape in enumerate(suits[:-1]))
            found[word] = (*sorted(suits, reverse=True), *[0] * (len(SUITS) - deck.suits))
    configurations = sorted(set(found.values()), reverse=True)
    number = {configuration: k for k, configuration in enumerate(configurations)}
    configuration_of = np.full(1 << width * (deck.suits - 1), -1, dtype=np.int16)
    for word, configuration in found.items():
        configuration_of[word] = number[configuration]

    turns, worths, sizes = [], [], []
    for configuration in configurations:
        turn: list[int] = []
        worth: list[int] = []
        size = 1
        for shape, group in groupby(configuration):
            g = len(list(group))
            turn += range(g)
            worth += [size] * g
            size *= comb(holdings[shape] + g - 1, g)
        turns.append(turn)
        worths.append(worth)
        sizes.append(size)

    rank, suit = np.divmod(np.arange(deck.size), deck.suits)
    population, colex, ranks = _rank_sets(deck.ranks, max(layout))
    return IndexTables(
        suits=deck.suits,
        place=LANE * suit + rank,
        start=_ints([*accumulate(layout, initial=0)]),
        step=np.repeat(_ints(weights), layout)[:, None] << width * suit,
        width=width,
        held=_ints(shapes),
        stride=_ints([[prod(row[r + 1 :]) for r in range(len(row))] for row in digits]),
        base=_ints(base),
        configuration=configuration_of,
        offset=_ints([*accumulate(sizes, initial=0)]),
        shape=_ints(configurations),
        turn=_ints(turns),
        worth=_ints(worths),
        population=population,
        colex=colex,
        ranks=ranks,
    )


def _ints(values: Sequence[Any]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _splits(cards: int, suits: int) -> list[tuple[int, ...]]:
    """Return the ways to divide a number of cards among suits.

    >>> _splits(2, 2)
    [(0, 2), (1, 1), (2, 0)]
    """
    return [split for split in product(range(cards + 1), repeat=suits) if sum(split) == cards]


def _rank_sets(ranks: int, most: int) -> tuple[ByteArray, npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """Return the size of each set of ranks, its number among sets of that size, and the set of each size and number.

    Sets are numbered by the value of their bits, which is colexicographic order: the number of a set does not depend on
    how many ranks there are above it, so one table serves every round.
    """
    population = np.bitwise_count(np.arange(1 << ranks)).astype(np.int8)
    colex = np.zeros(1 << ranks, dtype=np.int16)
    sets = np.zeros((most + 1, max(comb(ranks, n) for n in range(most + 1))), dtype=np.int16)
    for n in range(most + 1):
        members = np.flatnonzero(population == n)
        colex[members] = np.arange(len(members))
        sets[n, : len(members)] = members
    return population, colex, sets
