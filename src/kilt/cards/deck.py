"""Convert between the names and numbers of cards, and parse ranges such as ``QQ+,AKs``.

A deck of R ranks and S suits holds the *highest* R ranks and the *last* S suits of a full deck, as in ACPC game
definitions: three ranks and two suits are the queens, kings and aces of hearts and spades. Inside a deck cards are
numbered 0, 1, 2, … in order of rank, then suit, so that ``card // suits`` is its rank and ``card % suits`` its suit.

>>> FULL.cards("AsKh")
(51, 46)
>>> FULL.name((51, 46))
'AsKh'
>>> Deck(ranks=3, suits=2).name(range(6))
'QhQsKhKsAhAs'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product
from math import comb
from operator import index

import numpy as np

from kilt.arrays import ByteArray, FloatArray
from kilt.errors import CardError, shortened

RANKS = "23456789TJQKA"
SUITS = "cdhs"


@dataclass(frozen=True)
class Deck:
    """A deck of cards: the highest `ranks` ranks of the last `suits` suits of a full deck.

    Parameters
    ----------
    ranks : int
        1 to 13; 13 is a full deck.
    suits : int
        1 to 4.

    Examples
    --------
    >>> Deck(ranks=5).size
    20
    """

    ranks: int = len(RANKS)
    suits: int = len(SUITS)

    def __post_init__(self) -> None:
        for what, value, bound in (("ranks", self.ranks, len(RANKS)), ("suits", self.suits, len(SUITS))):
            if not 1 <= value <= bound:
                raise CardError(f"a deck cannot have {value} {what}: use 1 to {bound}")

    @property
    def size(self) -> int:
        """The number of cards in the deck."""
        return self.ranks * self.suits

    @property
    def rank_names(self) -> str:
        """The letters of the deck's ranks, lowest first, such as ``TJQKA``."""
        return RANKS[-self.ranks :]

    @property
    def suit_names(self) -> str:
        """The letters of the deck's suits, such as ``hs`` for hearts and spades."""
        return SUITS[-self.suits :]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each card, such as ``Ah``, in the order of the card numbers."""
        return tuple(rank + suit for rank in self.rank_names for suit in self.suit_names)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: card for card, name in enumerate(self.names)}

    @cached_property
    def full(self) -> ByteArray:
        """The position of each card in a full deck of 52 cards, shape (cards,)."""
        return np.array([FULL._numbers[name] for name in self.names], dtype=np.int8)

    def name(self, cards: Iterable[int]) -> str:
        """Return the names of cards as text such as ``AsKh``."""
        return "".join(self.names[card] for card in cards)

    def cards(self, text: str, count: int | None = None, *, dead: Iterable[int] = ()) -> tuple[int, ...]:
        """Return the numbers of the cards in a text such as ``AsKh``, ``As Kh`` or ``As,Kh``.

        Parameters
        ----------
        text : str
            The names of the cards; none of them twice.
        count : int, optional
            How many there must be.
        dead : iterable of int
            Cards that must not be among them.

        Returns
        -------
        tuple of int
            Their numbers, in the order of the text.

        >>> Deck(ranks=5).cards("2c")
        Traceback (most recent call last):
            ...
        kilt.errors.CardError: unknown card '2c' in '2c': this deck has ranks TJQKA and suits cdhs
        """
        packed = re.sub(r"[\s,]", "", text).replace("10", "T")
        parts = [packed[i : i + 2] for i in range(0, len(packed), 2)]
        found: list[int] = []
        gone = set(dead)
        for part in parts:
            card = self._numbers.get(part[:1].upper() + part[1:].lower())
            if card is None:
                raise CardError(
                    f"unknown card {part!r} in {text!r}: "
                    f"this deck has ranks {self.rank_names} and suits {self.suit_names}"
                )
            if card in found:
                raise CardError(f"{self.names[card]} is there twice in {text!r}: every card may be used once")
            if card in gone:
                raise CardError(f"{self.names[card]} in {text!r} is in use already: every card may be used once")
            found.append(card)
        if count is not None and len(found) != count:
            raise CardError(f"{text!r} has {len(found)} cards, but {count} are needed")
        return tuple(found)

    def numbers(
        self, cards: str | Iterable[str | int], count: int | None = None, *, dead: Iterable[int] = ()
    ) -> tuple[int, ...]:
        """Return the numbers of cards, given as text, as names or as numbers.

        Parameters
        ----------
        cards : str, or iterable of str or int
            Such as ``"AsKh"``, ``["As", "Kh"]`` or ``(51, 46)``; none of them twice.
        count, dead : optional
            As in `cards`.

        Returns
        -------
        tuple of int
            In the order given. Raises CardError if a card is not in the deck, is there twice or is among the dead, or
            if there are more or fewer cards than `count`.

        >>> FULL.numbers("AsKh") == FULL.numbers(["As", "Kh"]) == FULL.numbers((51, 46)) == (51, 46)
        True
        """
        if isinstance(cards, str):
            return self.cards(cards, count, dead=dead)
        try:
            text = "".join(card if isinstance(card, str) else self.names[self._number(card)] for card in cards)
        except TypeError:
            raise CardError(f"{shortened(repr(cards), 40)} are no cards: give text such as AsKh, or numbers") from None
        return self.cards(text, count, dead=dead)

    def _number(self, card: int) -> int:
        """Return a card's number as an int; raise CardError if the deck has no such card."""
        if not 0 <= (number := index(card)) < self.size:
            raise CardError(f"there is no card {card}: cards of this deck are numbered 0 to {self.size - 1}")
        return number

    def holes(self, count: int = 2) -> ByteArray:
        """Return every hand of `count` private cards, one per row, in kilt's usual order.

        Returns
        -------
        ndarray of int8, shape (hands, count)
            A row for each hand, ascending cards. Hand (a, b) with a < b stands in row b·(b−1)/2 + a (colexicographic
            order).

        >>> FULL.holes().shape, FULL.holes()[1325]
        ((1326, 2), array([50, 51], dtype=int8))
        """
        return subsets(self.size, count)

    def hole_index(self, hand: Sequence[int]) -> int:
        """Return the index of a hand, which is its row in the array from `holes`.

        >>> FULL.hole_index(FULL.cards("AsAh"))
        1325
        """
        return sum(comb(card, place + 1) for place, card in enumerate(sorted(hand)))

    def range(self, text: str, count: int = 2, *, strict: bool = True) -> FloatArray:
        """Parse a range such as ``QQ+,AKs``, and return the weight of each hand.

        Parameters
        ----------
        text : str
            Parts separated by commas: a pair ``QQ``, suited ``AKs``, offsuit ``AKo``, either ``AK``, one hand ``AsKh``;
            upwards ``QQ+``, ``ATs+``; between ``A5s-A2s``, ``99-66``; weighted ``KQs:0.5``; everything ``random``.
            Hands of one card are a rank ``K`` or a card ``Ks``.
        count : int
            Number of private cards, 2 or 1.
        strict : bool
            Whether a hand with two different weights is an error. If not, the last weight counts.

        Returns
        -------
        ndarray of float64, shape (hands,)
            A weight from 0 to 1 for each row of `holes`.

        Raises
        ------
        CardError
            The text is not a range, or it gives a hand two different weights.

        >>> weights = FULL.range("QQ+,AKs,A5s-A2s,KQs:0.5")
        >>> float(weights.sum())
        40.0
        """
        weights = np.zeros(comb(self.size, count))
        named: dict[int, str] = {}  # the part of the text that gave each hand its weight
        parts = range_parts(text)
        if not parts:
            raise CardError("the range is empty: write hands like 'QQ+,AKs,A5s-A2s,KQs:0.5' or 'random'")
        for part in parts:
            hands, _, weight_text = part.partition(":")
            try:
                weight = float(weight_text) if weight_text else 1.0
            except ValueError:
                weight = -1.0
            if not 0.0 <= weight <= 1.0:
                raise CardError(f"the weight {weight_text!r} in {part!r} is not a number from 0 to 1")
            for hand in self._expand(hands, count):
                number = self.hole_index(hand)
                if strict and number in named and weights[number] != weight:
                    raise CardError(
                        f"{part!r} gives {self.name(sorted(hand, reverse=True))} the weight {weight:g}, and "
                        f"{named[number]!r} gives it {weights[number]:g}: give each hand one weight"
                    )
                weights[number], named[number] = weight, part
        return weights

    def range_text(self, weights: FloatArray, count: int = 2) -> str:
        """Return a range as text, one hand after another, which `range` can parse.

        >>> FULL.range_text(FULL.range("AA:0.25, KsKh"))
        'KhKs,AcAd:0.25,AcAh:0.25,AdAh:0.25,AcAs:0.25,AdAs:0.25,AhAs:0.25'
        """
        held, holes = np.flatnonzero(weights).tolist(), self.holes(count).tolist()
        return ",".join(
            self.name(holes[hand]) + ("" if weights[hand] == 1 else f":{float(weights[hand])!r}") for hand in held
        )

    def _expand(self, part: str, count: int) -> Sequence[tuple[int, ...]]:
        """Return the hands that one part of a range stands for; the part is given without its weight."""
        if part.lower() in ("random", "any", "*", "100%"):
            return list(combinations(range(self.size), count))
        if count == 1:
            rank = self.rank_names.find(part.upper())
            return (
                [(card,) for card in range(rank * self.suits, (rank + 1) * self.suits)]
                if rank >= 0
                else [self.cards(part, 1)]
            )
        if re.fullmatch(r"([^\W_][cdhsCDHS]){2}", part):
            a, b = self.cards(part, 2)
            return [(a, b)]
        low, dash, high = part.partition("-")
        first = self._shape(low.removesuffix("+"), part)
        if low.endswith("+") and not dash:
            if first[0] == first[1]:  # QQ+: all higher pairs
                shapes = [(r, r, "") for r in range(first[0], self.ranks)]
            else:  # ATs+: all kickers from this one to the rank below the high card
                shapes = [(first[0], r, first[2]) for r in range(first[1], first[0])]
        elif dash:
            second = self._shape(high, part)
            pairs = first[0] == first[1] and second[0] == second[1]
            if not pairs and (first[0], first[2]) != (second[0], second[2]):
                raise CardError(
                    f"{part!r} is not a range: both ends must be pairs (99-66), "
                    "or share the high card and the suits (A5s-A2s)"
                )
            ends = sorted((first[1], second[1]))
            span = range(ends[0], ends[1] + 1)
            shapes = [(r, r, "") if pairs else (first[0], r, first[2]) for r in span]
            if not pairs and first[0] in span:
                raise CardError(f"{part!r} runs into the pair of its high card: write the pair by itself")
        else:
            shapes = [first]
        return [hand for shape in shapes for hand in self._hands_of(*shape)]

    def _shape(self, text: str, part: str) -> tuple[int, int, str]:
        """Parse ``QQ``, ``AK``, ``AKs`` or ``AKo`` into the higher rank, the lower rank, and ``s``, ``o`` or none."""
        match = re.fullmatch(r"(\w)(\w)([soSO]?)", text.replace("10", "T"))
        ranks = [self.rank_names.find(r.upper()) for r in match.groups()[:2]] if match else [-1]
        if match is None or min(ranks) < 0:
            raise CardError(
                f"{part!r} is not a hand or a range: write QQ, AKs, AKo, AK, AsKh, QQ+, ATs+ or A5s-A2s "
                f"(ranks {self.rank_names})"
            )
        suits = match[3].lower()
        if ranks[0] == ranks[1] and suits:
            raise CardError(f"{part!r}: a pair is neither suited nor offsuit; leave out the {match[3]!r}")
        return max(ranks), min(ranks), suits

    def _hands_of(self, high: int, low: int, suits: str) -> list[tuple[int, int]]:
        if high == low:
            return list(combinations(range(high * self.suits, (high + 1) * self.suits), 2))
        return [
            (low * self.suits + t, high * self.suits + s)
            for s, t in product(range(self.suits), repeat=2)
            if suits == "" or (suits == "s") == (s == t)
        ]


FULL = Deck()


def range_parts(text: str) -> list[str]:
    """Split the text of a range into its parts, such as ``QQ+`` and ``KQs:0.5``.

    >>> range_parts("QQ+, KQs:0.5")
    ['QQ+', 'KQs:0.5']
    """
    return re.findall(r"[^\s,;]+", text)


def subsets(size: int, count: int) -> ByteArray:
    """Return all sets of `count` numbers below `size`, one per row, in colexicographic order.

    >>> subsets(4, 2).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    """
    flat = chain.from_iterable(combinations(range(size - 1, -1, -1), count))
    rows = np.fromiter(flat, dtype=np.int8, count=comb(size, count) * count)
    return np.ascontiguousarray(rows.reshape(comb(size, count), count)[::-1, ::-1])
