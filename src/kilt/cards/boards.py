"""List canonical boards: one board for each class of boards that differ only by suits.

Boards that differ only by the names of the suits are strategically equivalent, so one of them, the *canonical* board,
stands for all [Johanson16 §2.4]. Boards grow round by round: a canonical board extends the one before it by new cards,
so hands keep their numbers from round to round. The weight of a canonical board is the number of boards that it stands
for. Suit permutations map it to each of these: the value of hand h on board π(b) is the value of hand π⁻¹(h) on board
b.

>>> flop, turn = canonical_boards((3, 1), FULL)
>>> len(flop.weight), len(turn.weight), int(flop.weight.sum())
(1755, 63193, 22100)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.cards import boards_kernels as kernels
from kilt.cards.boards_kernels import BoardIndex
from kilt.cards.deck import FULL, Deck, subsets


class Boards(NamedTuple):
    """The canonical boards of a round, grouped by the board that they extend."""

    cards: ByteArray  # [board, card] in the order of dealing
    parent: npt.NDArray[np.int32]  # [board] index of the board that it extends; −1 before the first cards
    weight: npt.NDArray[np.int32]  # [board] number of extensions of its parent that it stands for
    first_child: npt.NDArray[np.int32]  # [parent + 1] index of the parent's first extension
    symmetry: npt.NDArray[np.int32]  # [board] bit mask of the suit permutations that map the board to itself


def canonical_boards(layout: Sequence[int], deck: Deck = FULL) -> tuple[Boards, ...]:
    """Return the canonical boards of each round, given the number of cards that each round adds.

    >>> [len(boards.weight) for boards in canonical_boards((0, 3, 1))]
    [1, 1755, 63193]
    """
    rounds = [known_board((), deck)]
    for count in layout:
        rounds.append(add_cards(rounds[-1], count, deck))
    return tuple(rounds[1:])


def known_board(cards: Sequence[int], deck: Deck = FULL, symmetry: int | None = None) -> Boards:
    """Return a `Boards` object with a single given board, which `add_cards` can extend.

    Only suit permutations in `symmetry` (a bit mask) may identify its extensions. By default these are the permutations
    that map the board's set of cards to itself.
    """
    if symmetry is None:
        symmetry = suit_symmetries(deck, cards)
    return Boards(
        cards=np.array([cards], dtype=np.int8).reshape(1, -1),
        parent=np.full(1, -1, dtype=np.int32),
        weight=np.ones(1, dtype=np.int32),
        first_child=np.array([0, 1], dtype=np.int32),
        symmetry=np.array([symmetry], dtype=np.int32),
    )


def add_cards(before: Boards, count: int, deck: Deck = FULL) -> Boards:
    """Extend each board by `count` cards in every way, up to suit isomorphism."""
    parents, known = before.cards.shape
    picks = subsets(deck.size - known, count)
    most = parents * len(picks)
    cards = np.empty((most, known + count), dtype=np.int8)
    parent, weight, symmetry = (np.empty(most, dtype=np.int32) for _ in range(3))
    first_child = np.empty(parents + 1, dtype=np.int32)
    renamed = card_permutations(deck)
    rest = np.empty(deck.size, dtype=np.int64)
    found = kernels.extend_boards(
        before.cards, before.symmetry, picks, renamed, rest, cards, parent, weight, symmetry, first_child
    )
    return Boards(
        cards=cards[:found].copy(),
        parent=parent[:found].copy(),
        weight=weight[:found].copy(),
        first_child=first_child,
        symmetry=symmetry[:found].copy(),
    )


def count_dealt_boards(rounds: Sequence[Boards]) -> IntArray:
    """Return how many dealt boards each canonical board of the last round stands for.

    The number counts the choices of all rounds. Returns an array of int64, shape (boards of the last round,).

    >>> int(count_dealt_boards(canonical_boards((3, 1))).sum())
    1082900
    """
    total = np.ones(1, dtype=np.int64)
    for boards in rounds:
        total = total[boards.parent] * boards.weight
    return total


def board_index(rounds: Sequence[Boards], deck: Deck = FULL) -> BoardIndex:
    """Build look-up tables that map any dealt board to its canonical board.

    The kernel `locate` uses these tables.

    >>> rounds = canonical_boards((3, 1))
    >>> board, turned = kernels.find_canonical_board(board_index(rounds), np.array(FULL.cards("Ah7d2cAd")))
    >>> FULL.name(rounds[-1].cards[board])
    '2h7dAcAd'
    """
    every = [known_board((), deck), *rounds]
    start = np.concatenate([[0], np.cumsum([len(boards.weight) for boards in every])])
    first, words, known = np.full(start[-1] + 1, start[-1]), [], 0
    for r, boards in enumerate(every):
        words.append((np.int64(1) << boards.cards[:, known:].astype(np.int64)).sum(axis=1))
        known = boards.cards.shape[1]
        if r > 0:
            first[start[r - 1] : start[r]] = start[r] + boards.first_child[:-1]
    renamed = card_permutations(deck)
    rows = {tuple(row): p for p, row in enumerate(renamed.tolist())}
    composed = [
        [rows[tuple(renamed[q][renamed[p]].tolist())] for p in range(len(renamed))] for q in range(len(renamed))
    ]
    return BoardIndex(
        dealt=np.diff([boards.cards.shape[1] for boards in every]),
        start=start[1:],
        word=np.concatenate(words),
        first=first,
        symmetry=np.concatenate([boards.symmetry for boards in every]),
        renamed=renamed,
        composed=np.array(composed, dtype=np.int32),
    )


def suit_symmetries(deck: Deck, *sets: Sequence[int]) -> int:
    """Return which suit permutations leave all given sets of cards unchanged, as a bit mask.

    >>> suit_symmetries(FULL, FULL.cards("AsAh")).bit_count()  # spades with hearts, clubs with diamonds
    4
    """
    renamed = card_permutations(deck)
    kept = [
        p for p in range(len(renamed)) if all(set(renamed[p, list(cards)].tolist()) == set(cards) for cards in sets)
    ]
    return sum(1 << p for p in kept)


@lru_cache
def card_permutations(deck: Deck) -> ByteArray:
    """Return the cards after each permutation of the suits, shape (permutations, cards).

    Row 0 is the identity.
    """
    card = np.arange(deck.size)
    names = np.array(list(permutations(range(deck.suits))))
    renamed = card // deck.suits * deck.suits + names[:, card % deck.suits]
    # The same memory layout for every deck, so that kernels are compiled once.
    in_order: ByteArray = renamed.astype(np.int8, order="C")
    return in_order


@lru_cache
def hand_permutations(deck: Deck, hole_cards: int = 2) -> npt.NDArray[np.int32]:
    """Return the index of each hand after each permutation of the suits.

    The shape is (permutations, hands); row 0 is the identity.

    >>> hand_permutations(FULL).shape
    (24, 1326)
    """
    hands = np.sort(card_permutations(deck)[:, deck.holes(hole_cards)], axis=2)
    ways = np.array([[comb(card, place + 1) for card in range(deck.size)] for place in range(hole_cards)], np.int32)
    rows: npt.NDArray[np.int32] = sum(ways[place][hands[:, :, place]] for place in range(hole_cards))
    return np.ascontiguousarray(rows, np.int32)
