"""Stud poker, where later rounds also deal private cards, face up or face down.

The game definition gives the number of cards of each kind that a round deals (`numUpCards`, `numDownCards`, and
`numBoardCards` for community cards). A board lists the cards round by round: public cards, the up-cards of player 0 and
of player 1, then the cards that player 0 and player 1 got face down. `Stud.board_name` writes the part that a player
sees.

>>> from kilt.games.gamedef import load_definition
>>> game = Stud(load_definition("leduc-stud"), "leduc-stud")
>>> board = game.deck.cards("KhQs" "JhJs")  # up-cards, then a face-down card for each player
>>> game.board_name(board, player=0), game.board_name(board, player=1)
('/Kh:Qs/(Jh)', '/Kh:Qs/(Js)')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from kilt.games.game import Board, Hands, Position
from kilt.games.holdem import Poker


class DealtCards(NamedTuple):
    """The cards that one round of a stud game deals: community cards, and each player's cards."""

    board: tuple[int, ...]  # community cards
    up: tuple[tuple[int, ...], tuple[int, ...]]  # [player] both players see them
    down: tuple[tuple[int, ...], tuple[int, ...]]  # [player] only that player sees them


@dataclass(frozen=True)
class Stud(Poker):
    """A two-player poker game with private cards after the first round, such as seven-card stud."""

    name: str = "stud"

    def split_board(self, board: Board) -> list[DealtCards]:
        """Split a board into the cards of each round."""
        found, start = [], 0
        for r in range(self.rules.rounds):
            parts = []
            for size in self.rules.cards_dealt(r):
                parts.append(board[start : start + size])
                start += size
            found.append(DealtCards(parts[0], (parts[1], parts[2]), (parts[3], parts[4])))
            if start >= len(board):
                break
        return found

    @cached_property
    def _counting(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The positions on a complete board of the cards that count for each player."""
        rounds = self.split_board(tuple(range(sum(sum(self.rules.cards_dealt(r)) for r in range(self.rules.rounds)))))
        first, second = (tuple(c for r in rounds for c in (*r.board, *r.up[p], *r.down[p])) for p in (0, 1))
        return first, second

    def reveals(self, position: Position, hands: Hands, board: Board) -> list[tuple[Board, float]]:
        """Return all ways to deal the next round's cards, each equally likely."""
        held = {*self._holes[hands[0]], *self._holes[hands[1]], *board}
        rest = tuple(card for card in range(self.deck.size) if card not in held)
        ways = list(_ways(rest, self.rules.cards_dealt(position.round + 1)))
        return [((*board, *cards), 1 / len(ways)) for cards in ways]

    def _shown(self, player: int, hand: int, board: Board) -> tuple[int, ...]:
        """Return a player's hand, the public cards, and the player's other cards, face up and face down."""
        return tuple(sorted([*self._holes[hand], *(board[place] for place in self._counting[player])]))

    def board_name(self, board: Board, player: int) -> str:
        """Return the cards that a player sees as text, with ``/`` between rounds.

        A round has public cards, the up-cards of player 0 and of player 1 with a colon between them, and in brackets
        the player's own cards that are face down.
        """
        name, parts = self.deck.name, []
        for r in self.split_board(board):
            up = ":".join(map(name, r.up)) if any(r.up) else ""
            down = f"({name(r.down[player])})" if r.down[player] else ""
            parts.append(f"{name(r.board)}{up}{down}")
        return "/".join(parts)


def _ways(rest: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to deal sets of cards of these sizes, one after another.

    >>> list(_ways((0, 1, 2), (1, 1)))
    [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    """
    if not sizes:
        yield ()
        return
    for cards in combinations(rest, sizes[0]):
        left = tuple(card for card in rest if card not in cards)
        for others in _ways(left, sizes[1:]):
            yield (*cards, *others)
