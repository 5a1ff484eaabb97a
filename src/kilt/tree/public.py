"""The public tree: public actions × public boards.

What both players see is the betting and the board. Neither restricts the other, so the tree is their product and is
never written out: a walk moves through the betting tree, and where a round ends it goes over the boards of the next.

Boards are taken up to suits, with their weights: see `cards.boards`.

>>> from kilt.games import load_game
>>> tree = public_tree(load_game("holdem.2-4"))
>>> [len(boards.weight) for boards in tree.boards], int(tree.boards[1].weight.sum())
([1, 1755], 22100)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kilt.cards.boards import Boards, canonical_boards
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.tree.betting import BettingTree, Menu, betting_tree


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
        boards = canonical_boards((0,))  # nothing is ever revealed: the empty board
    return PublicTree(game, betting_tree(game, menu), boards)
