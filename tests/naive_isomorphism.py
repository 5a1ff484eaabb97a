"""The slow twin of `kilt.cards.isomorphism`: rename the suits in every way and keep the least hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations, pairwise, permutations

from kilt.cards.deck import Deck


def rounds(hand: Sequence[int], layout: Sequence[int]) -> list[tuple[int, ...]]:
    """A hand cut into its rounds, each in ascending order."""
    return [tuple(sorted(hand[a:b])) for a, b in pairwise(accumulate(layout, initial=0))]


def rename(hand: Sequence[int], suits: Sequence[int], deck: Deck) -> list[int]:
    """The hand with suit s called suits[s]."""
    return [card // deck.suits * deck.suits + suits[card % deck.suits] for card in hand]


def canonical(hand: Sequence[int], layout: Sequence[int], deck: Deck) -> list[tuple[int, ...]]:
    """The same for two hands exactly if renaming suits turns one into the other."""
    return min(rounds(rename(hand, suits, deck), layout) for suits in permutations(range(deck.suits)))


def all_hands(layout: Sequence[int], deck: Deck, dealt: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Every hand of a layout, rounds one after another."""
    if not layout:
        yield dealt
        return
    for cards in combinations([card for card in range(deck.size) if card not in dealt], layout[0]):
        yield from all_hands(layout[1:], deck, dealt + cards)
