"""Places of a public tree: where actions and cards lead, and which hand is which there.

Boards that differ by suits alone are one in the tree. So a place knows which card of its board stands for which, and
which hand for which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cards.boards import card_permutations
from kilt.games.game import REVEAL
from kilt.games.holdem import Betting, Holdem
from kilt.games.subgame import rivals
from kilt.tree.betting import on_menu
from kilt.tree.vector import Look, VectorGame
from kilt.tree.vector_arrays import TableRows


@dataclass(frozen=True, eq=False)
class TreePlace:
    """A node of the public tree, on a board up to suits."""

    position: Betting
    node: int
    path: tuple[tuple[int, int], ...]  # [round] the entry that opens its block, and the board by number
    board: tuple[int, ...]  # the cards as they were dealt
    cards: IntArray  # [card of the board by number] which card it stands for
    hands: IntArray  # [hand on the board by number] which hand it stands for


class PlacedTree(NamedTuple):
    """The public tree of a game of the hold'em family, and the way through it."""

    game: VectorGame

    @property
    def holdem(self) -> Holdem:
        """The game itself."""
        assert isinstance(self.game.game, Holdem)
        return self.game.game

    @property
    def start(self) -> TreePlace:
        """Where the game begins."""
        game = self.holdem
        cards, hands = np.arange(game.deck.size), np.arange(len(game.numbers))
        return TreePlace(game.start(), 0, ((0, 0),), game.known_board, cards, hands)

    def actions(self, place: TreePlace) -> tuple[str, ...]:
        """The actions that the tree has at a decision."""
        return on_menu(place.position, self.game.menu)

    def act(self, place: TreePlace, action: str) -> TreePlace:
        """Where an action of the tree leads."""
        node = int(self.game.tree.nodes.first_child[place.node]) + self.actions(place).index(action)
        return replace(place, position=place.position.after(action), node=node)

    def next(self, place: TreePlace) -> dict[str, int]:
        """The cards that may be dealt next, up to suits that nothing tells apart: how many boards each stands for."""
        tree, board = self.game.tree, place.path[-1][1]
        known, size = tree.board_size[len(place.path) - 1 : len(place.path) + 1]
        return {
            self.holdem.deck.name(place.cards[tree.board[following, known:size]].tolist()): int(tree.weight[following])
            for following in range(tree.first_board[board], tree.first_board[board + 1])
        }

    def deal(self, place: TreePlace, cards: tuple[int, ...]) -> TreePlace:
        """Deal the cards of the next round: find the board that stands for them, and who is who there."""
        tree, deck = self.game.tree, self.holdem.deck
        depth, board = len(place.path), place.path[-1][1]
        entry = int(np.flatnonzero(tree.entry_node == place.node)[0])
        wanted = (1 << np.flatnonzero(np.isin(place.cards, cards))).sum()
        renamed = card_permutations(deck)
        known, size = tree.board_size[depth - 1 : depth + 1]
        first, last = tree.first_board[board : board + 2].tolist()
        kept = np.flatnonzero(tree.symmetry[board] >> np.arange(len(renamed)) & 1)
        bits = 1 << renamed[kept].astype(np.int64)  # [permutation, card]
        boards = bits[:, tree.board[first:last, known:size]].sum(axis=2)  # [permutation, board] as sets of cards
        found = np.argwhere(wanted == boards.T)
        assert len(found), f"no board stands for {deck.name(cards)}"
        following, p = first + int(found[0, 0]), int(kept[found[0, 1]])
        return TreePlace(
            place.position.after(REVEAL),
            int(tree.nodes.block[tree.entry_block[entry]]),
            (*place.path, (entry, following)),
            (*place.board, *cards),
            place.cards[renamed[p]],
            place.hands[tree.moved[p]],
        )

    def row(self, place: TreePlace) -> int:
        """The first row of a decision in tables of the tree."""
        tree, depth = self.game.tree, len(place.path) - 1
        entry, board = place.path[-1]
        first = tree.table_start[depth] + (board - tree.board_start[depth]) * tree.rows[depth]
        return int(first + tree.entry_row[entry] + tree.nodes.row[place.node])

    def live(self, place: TreePlace) -> BoolArray:
        """[hand] whether a hand of the game shares no card with the board of a place."""
        return np.asarray(~np.isin(self.holdem.holes, place.board).any(axis=1))

    def strategy(self, table: TableRows, place: TreePlace) -> FloatArray:
        """[action, hand] probabilities at a decision, by hands of the game; uniform where nothing is known."""
        row, count = self.row(place), len(self.actions(place))
        weights = np.maximum(table[row : row + count].astype(np.float64), 0.0)
        total = weights.sum(axis=0)
        return _by_hand(place, np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / count))

    def reach(self, look: Look, place: TreePlace) -> FloatArray:
        """[hand] reach of the opponent at a place, by hands of the game; `look` is the player's, at its path."""
        return _by_hand(place, look.reach[self._in_block(place.node, place)]) * self.live(place)

    def hand_values(self, look: Look, place: TreePlace, action: int | None = None) -> FloatArray:
        """[hand] chips that a player wins in the whole game with each hand at a place, or by one of its actions.

        By hands of the game. A mean over the opponent's hands, by their reach; nan for hands that meet none. `look` is
        the player's, at the place's path.
        """
        node = place.node if action is None else int(self.game.tree.nodes.first_child[place.node]) + action
        met = rivals(self.reach(look, place), self.holdem.holes, self.holdem.deck.size)
        found = np.full(len(met), np.nan)
        np.divide(_by_hand(place, look.value[self._in_block(node, place)]), met, out=found, where=met > 0)
        return found

    def _in_block(self, node: int, place: TreePlace) -> int:
        """The number of a node in the block of betting of a place."""
        tree = self.game.tree
        return node - int(tree.nodes.block[tree.entry_block[place.path[-1][0]]])


def _by_hand(place: TreePlace, values: FloatArray) -> FloatArray:
    """[…, hand] values by hands of the game, of those by hands on the board that stands for the place's."""
    found = np.empty_like(values)
    found[..., place.hands] = values
    return found
