"""Navigate a public tree: find the position after an action or a deal of public cards.

Boards that differ only in suits are one board in the tree. A position therefore maps the cards and hands of the tree's
board to the actual ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cards.boards import card_permutations
from kilt.games.game import REVEAL
from kilt.games.holdem import Betting, Holdem
from kilt.games.subgame import compatible_weights
from kilt.tree.betting import on_menu
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table, TableRows
from kilt.tree.walks import BlockValues


@dataclass(frozen=True, eq=False)
class TreePosition:
    """A position in a game's public tree, with the dealt board.

    The tree may store this board with renamed suits.
    """

    position: Betting
    node: int
    path: tuple[tuple[int, int], ...]  # [round] the entry of its block, and the number of the board
    board: tuple[int, ...]  # the dealt cards
    cards: IntArray  # [card of the tree's board] the actual card
    hands: IntArray  # [hand on the tree's board] the actual hand


class NavigableTree(NamedTuple):
    """A hold'em game's public tree, with methods to move between positions."""

    game: VectorGame

    @property
    def holdem(self) -> Holdem:
        """The hold'em game whose tree this is."""
        assert isinstance(self.game.game, Holdem)
        return self.game.game

    @property
    def start(self) -> TreePosition:
        """The position at the start of the game."""
        game = self.holdem
        cards, hands = np.arange(game.deck.size), np.arange(len(game.numbers))
        return TreePosition(game.start(), 0, ((0, 0),), game.known_board, cards, hands)

    def actions(self, place: TreePosition) -> tuple[str, ...]:
        """Return the tree's actions at a decision."""
        return on_menu(place.position, self.game.menu)

    def act(self, place: TreePosition, action: str) -> TreePosition:
        """Return the position after an action."""
        node = int(self.game.tree.nodes.first_child[place.node]) + self.actions(place).index(action)
        return replace(place, position=place.position.after(action), node=node)

    def next(self, place: TreePosition) -> dict[str, int]:
        """Return the public cards that can come next, with the number of boards that each represents.

        Of cards that differ only by equivalent suits, one is returned.
        """
        tree, board = self.game.tree, place.path[-1][1]
        known, size = tree.board_size[len(place.path) - 1 : len(place.path) + 1]
        return {
            self.holdem.deck.name(place.cards[tree.board[following, known:size]].tolist()): int(tree.weight[following])
            for following in range(tree.first_board[board], tree.first_board[board + 1])
        }

    def deal(self, place: TreePosition, cards: tuple[int, ...]) -> TreePosition:
        """Return the position after a deal of the given public cards."""
        tree, deck = self.game.tree, self.holdem.deck
        depth, board = len(place.path), place.path[-1][1]
        entry = int(np.flatnonzero(tree.entry_node == place.node)[0])
        wanted = (1 << np.flatnonzero(np.isin(place.cards, cards))).sum()
        renamed = card_permutations(deck)
        known, size = tree.board_size[depth - 1 : depth + 1]
        first, last = tree.first_board[board : board + 2].tolist()
        kept = np.flatnonzero(tree.symmetry[board] >> np.arange(len(renamed)) & 1)
        bits = 1 << renamed[kept].astype(np.int64)  # [permutation, card] as bits
        boards = bits[:, tree.board[first:last, known:size]].sum(axis=2)  # [permutation, board] as sets of cards
        found = np.argwhere(wanted == boards.T)
        assert len(found), f"no board stands for {deck.name(cards)}"
        following, p = first + int(found[0, 0]), int(kept[found[0, 1]])
        return TreePosition(
            place.position.after(REVEAL),
            int(tree.nodes.block[tree.entry_block[entry]]),
            (*place.path, (entry, following)),
            (*place.board, *cards),
            place.cards[renamed[p]],
            place.hands[tree.moved[p]],
        )

    def row(self, place: TreePosition) -> int:
        """Return the first table row of the decision at a position."""
        tree, depth = self.game.tree, len(place.path) - 1
        entry, board = place.path[-1]
        first = tree.table_start[depth] + (board - tree.board_start[depth]) * tree.rows[depth]
        return int(first + tree.entry_row[entry] + tree.nodes.row[place.node])

    def live(self, place: TreePosition) -> BoolArray:
        """Return which hands are possible, because they share no card with the board."""
        return np.asarray(~np.isin(self.holdem.holes, place.board).any(axis=1))

    def strategy(self, table: TableRows, place: TreePosition) -> FloatArray:
        """Return the probability of each action with each hand at a decision.

        It is uniform if the table has no strategy there.
        """
        row = self.row(place)
        return self.shares(table[row : row + len(self.actions(place))], place)

    def shares(self, rows: Table, place: TreePosition) -> FloatArray:
        """Return the probability of each action with each hand, from a decision's rows in a strategy table."""
        weights = np.maximum(rows.astype(np.float64), 0.0)
        total = weights.sum(axis=0)
        return _by_hand(place, np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / len(rows)))

    def reach(self, look: BlockValues, place: TreePosition) -> FloatArray:
        """Return the probability that the opponent reaches a position with each hand."""
        return _by_hand(place, look.reach[self._in_block(place.node, place)]) * self.live(place)

    def hand_values(self, look: BlockValues, place: TreePosition, action: int | None = None) -> FloatArray:
        """Return each hand's winnings at a position, in chips.

        If `action` is given, it is what the player wins after this action.

        Winnings are for the whole game. Each is a mean over the opponent's hands, weighted by their reach; nan for
        hands that meet none. `look` is the player's, at the position's path.
        """
        node = place.node if action is None else int(self.game.tree.nodes.first_child[place.node]) + action
        met = compatible_weights(self.reach(look, place), self.holdem.holes, self.holdem.deck.size)
        found = np.full(len(met), np.nan)
        np.divide(_by_hand(place, look.value[self._in_block(node, place)]), met, out=found, where=met > 0)
        return found

    def _in_block(self, node: int, place: TreePosition) -> int:
        """Return the number of a node, counted from the first node of the current betting round."""
        tree = self.game.tree
        return node - int(tree.nodes.block[tree.entry_block[place.path[-1][0]]])


def _by_hand(place: TreePosition, values: FloatArray) -> FloatArray:
    """Convert values over hands with the tree's suits to values over hands with the actual suits."""
    found = np.empty_like(values)
    found[..., place.hands] = values
    return found
