"""The public tree: public actions × public boards.

What both players see is the betting and the board. Neither restricts the other, so the tree is their product and is
never written out: a walk moves through the betting tree, and where a round ends it goes over the boards of the next.

Boards that differ only by the names of the suits are played alike, so one of them, the *canonical* board, stands for
all (004, section 2.4). A child's canonical board extends its parent's by the new cards, so hands keep their numbers
along a path. How many boards it stands for is its weight; which ones, a list of suit permutations: what hand h is
worth on board π(b), hand π⁻¹(h) is worth on board b.

>>> from kilt.games import load_game
>>> tree = public_tree(load_game("holdem.2-4"))
>>> [len(boards.weight) for boards in tree.boards], int(tree.boards[1].weight.sum())
([1, 1755], 22100)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import ByteArray, Deck, IntArray, subsets
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.tree import public_kernels as kernels
from kilt.tree.betting import BettingTree, Menu, betting_tree


class Boards(NamedTuple):
    """The canonical boards of one round, children of one parent side by side."""

    cards: ByteArray  # [board, card] in the order of dealing
    parent: npt.NDArray[np.int32]  # [board] its number in the round before, −1 before the first cards
    weight: npt.NDArray[np.int32]  # [board] how many ways to extend its parent it stands for
    first_child: npt.NDArray[np.int32]  # [parent + 1] where the extensions of a parent begin
    orbit_start: IntArray  # [board + 1] where its permutations begin
    orbit: ByteArray  # suit permutations, by number, that lead from a board to all it stands for, itself first
    symmetry: npt.NDArray[np.int32]  # [board] the set of permutations that leave it as it is, one bit each


@dataclass(frozen=True)
class PublicTree:
    """Public actions and public boards of a game."""

    game: Game
    betting: BettingTree
    boards: tuple[Boards, ...]  # [round]

    @property
    def size(self) -> int:
        """How many nodes the tree has, up to suits."""
        nodes = np.bincount(self.betting.nodes.round, minlength=len(self.boards))
        return sum(int(n) * len(boards.weight) for n, boards in zip(nodes, self.boards, strict=True))


def public_tree(game: Game, menu: Menu | None = None) -> PublicTree:
    """The public tree of a game; `menu` picks the raises of a no-limit game."""
    if isinstance(game, Holdem):
        boards = canonical_boards(game.rules.board_cards, game.deck)
    else:
        boards = canonical_boards((0,), Deck())  # nothing is ever revealed: the empty board
    return PublicTree(game, betting_tree(game, menu), boards)


def canonical_boards(layout: tuple[int, ...], deck: Deck) -> tuple[Boards, ...]:
    """The canonical boards round by round; `layout` says how many cards each round adds.

    >>> [len(boards.weight) for boards in canonical_boards((0, 3, 1), Deck())]
    [1, 1755, 63193]
    """
    renamed = card_permutations(deck)
    rounds = [
        Boards(
            cards=np.empty((1, 0), dtype=np.int8),
            parent=np.full(1, -1, dtype=np.int32),
            weight=np.ones(1, dtype=np.int32),
            first_child=np.array([0, 1], dtype=np.int32),
            orbit_start=np.array([0, 1]),
            orbit=np.zeros(1, dtype=np.int8),
            symmetry=np.array([(1 << len(renamed)) - 1], dtype=np.int32),
        )
    ]
    for count in layout:
        rounds.append(_extend(rounds[-1], count, renamed))
    return tuple(rounds[1:])


def card_permutations(deck: Deck) -> ByteArray:
    """[permutation, card]: what each card becomes when the suits are renamed; number 0 leaves all as it is."""
    card = np.arange(deck.size)
    names = np.array(list(permutations(range(deck.suits))))
    renamed: ByteArray = (card // deck.suits * deck.suits + names[:, card % deck.suits]).astype(np.int8)
    return renamed


def _extend(before: Boards, count: int, renamed: ByteArray) -> Boards:
    """All ways, up to suits, to add `count` cards to each board of the round before."""
    deck_size, known = renamed.shape[1], before.cards.shape[1]
    picks = subsets(deck_size - known, count)
    most = len(before.weight) * len(picks)
    cards = np.empty((most, known + count), dtype=np.int8)
    parent, weight, symmetry = (np.empty(most, dtype=np.int32) for _ in range(3))
    first_child = np.empty(len(before.weight) + 1, dtype=np.int32)
    orbit = np.empty(len(before.weight) * comb(deck_size - known, count), dtype=np.int8)
    found = kernels.extend_boards(
        before.cards, before.symmetry, picks, renamed, cards, parent, weight, symmetry, first_child, orbit
    )
    return Boards(
        cards=cards[:found].copy(),
        parent=parent[:found].copy(),
        weight=weight[:found].copy(),
        first_child=first_child,
        orbit_start=np.concatenate([[0], np.cumsum(weight[:found], dtype=np.int64)]),
        orbit=orbit,
        symmetry=symmetry[:found].copy(),
    )
