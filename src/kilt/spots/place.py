"""The way through the public tree of a spot: where a line leads, and which hand is which there.

Boards that differ by suits alone are one in the tree. So a place knows which card of its board stands for which, and
which hand for which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kilt.arrays import IntArray
from kilt.cards.boards import card_permutations
from kilt.errors import RunError, quoted
from kilt.games.game import CHANCE, REVEAL
from kilt.games.holdem import Betting
from kilt.games.subgame import Subgame
from kilt.spots.line import action_of, line_words
from kilt.tree.betting import on_menu
from kilt.tree.vector import VectorGame

ANY = "*"  # in place of cards


@dataclass(frozen=True, eq=False)
class TreePlace:
    """Where a line leads: a node of the public tree, on a board up to suits."""

    position: Betting
    node: int
    path: tuple[tuple[int, int], ...]  # [round] the entry that opens its block, and the board by number
    board: tuple[int, ...]  # the cards as they were dealt
    cards: IntArray  # [card of the board by number] which card it stands for
    hands: IntArray  # [hand on the board by number] which hand it stands for


class SpotTree(NamedTuple):
    """The public tree of a spot, and the way through it."""

    game: VectorGame

    @property
    def subgame(self) -> Subgame:
        """The spot as a game."""
        assert isinstance(self.game.game, Subgame)
        return self.game.game

    def go(self, line: str) -> TreePlace:
        """Where a line leads; RunError where the tree has no such action, or the line leads to several places."""
        found = self.places(line)
        if ANY in line_words(line):
            raise RunError(f"the line {quoted(line)} leads to {len(found)} boards: name the cards after the /")
        return found[0]

    def places(self, line: str) -> list[TreePlace]:
        """Where a line leads: with `ANY` in place of cards, to all boards that differ by more than suits."""
        game = self.subgame
        start = TreePlace(
            game.start(), 0, ((0, 0),), game.board, np.arange(game.deck.size), np.arange(len(game.numbers))
        )
        found, rest = [start], line_words(line)
        while rest:
            word = rest.pop(0)
            if word != REVEAL:
                found = [self._act(place, word, line) for place in found]
                continue
            if not rest or found[0].position.actor != CHANCE:
                why = "no cards follow" if not rest else "a round is not over there"
                raise RunError(f"the line {quoted(line)} has a / where {why}")
            cards = rest.pop(0)
            dealt = [(place, one) for place in found for one in (self.next(place) if cards == ANY else [cards])]
            found = [self.deal(place, one) for place, one in dealt]
        return found

    def _act(self, place: TreePlace, word: str, line: str) -> TreePlace:
        """Where an action leads."""
        position, menu = place.position, self.game.menu
        if position.actor < 0:
            raise RunError(f"the line {quoted(line)} has {word!r} where nobody acts: rounds are split by /")
        try:
            label = action_of(position, word, menu)
        except RunError as error:
            raise RunError(f"the line {quoted(line)}: {error}") from None
        node = int(self.game.tree.nodes.first_child[place.node]) + on_menu(position, menu).index(label)
        return replace(place, position=position.after(label), node=node)

    def next(self, place: TreePlace) -> dict[str, int]:
        """The cards that may be dealt next, up to suits that nothing tells apart: how many boards each stands for."""
        tree, board = self.game.tree, place.path[-1][1]
        known, size = tree.board_size[len(place.path) - 1 : len(place.path) + 1]
        return {
            self.subgame.deck.name(place.cards[tree.board[following, known:size]].tolist()): int(tree.weight[following])
            for following in range(tree.first_board[board], tree.first_board[board + 1])
        }

    def deal(self, place: TreePlace, text: str) -> TreePlace:
        """Deal the cards of the next round: find the board that stands for them, and who is who there."""
        tree, deck = self.game.tree, self.subgame.deck
        depth, board = len(place.path), place.path[-1][1]
        position = place.position.after(REVEAL)
        dealt = deck.cards(text, self.subgame.rules.board_cards[position.round], dead=place.board)
        entry = int(np.flatnonzero(tree.entry_node == place.node)[0])
        wanted = set(np.flatnonzero(np.isin(place.cards, dealt)).tolist())
        renamed = card_permutations(deck)
        known, size = tree.board_size[depth - 1 : depth + 1]
        for following in range(tree.first_board[board], tree.first_board[board + 1]):
            for p in range(len(renamed)):
                if tree.symmetry[board] >> p & 1 and set(renamed[p, tree.board[following, known:size]]) == wanted:
                    return TreePlace(
                        position,
                        int(tree.nodes.block[tree.entry_block[entry]]),
                        (*place.path, (entry, following)),
                        (*place.board, *dealt),
                        place.cards[renamed[p]],
                        place.hands[tree.moved[p]],
                    )
        raise AssertionError(f"no board stands for {text}")

    def row(self, place: TreePlace) -> int:
        """The first row of a decision in tables of the tree."""
        tree, depth = self.game.tree, len(place.path) - 1
        entry, board = place.path[-1]
        first = tree.table_start[depth] + (board - tree.board_start[depth]) * tree.rows[depth]
        return int(first + tree.entry_row[entry] + tree.nodes.row[place.node])
