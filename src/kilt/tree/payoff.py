"""Payoffs at the leaves of the public tree, for all hands at once.

The opponent arrives at a leaf with each hand with some probability, their *reach*. What one of my hands is worth there
is the sum over the opponent's hands of reach × payoff. Written out that is O(n²); in poker, sorting by strength and
inclusion–exclusion over shared cards make it O(n) and exact [Johanson16 §2.4].

>>> from kilt.games import load_game
>>> game = load_game("leduc")
>>> end = game.start().after("r").after("c").after("/").after("c").after("c")  # three chips each in the pot
>>> reach = np.full(6, 0.25)
>>> leaf_values(game, end, game.deck.cards("Kh"), reach, player=0).tolist()  # QhQs KhKs AhAs; Kh is on the board
[-2.25, -2.25, 0.0, 3.0, 0.75, 0.75]
"""

from __future__ import annotations

import numpy as np

from kilt.arrays import FloatArray
from kilt.cards.equity import hand_list, rank_hands
from kilt.errors import GameError
from kilt.games.game import TERMINAL, Board, Game, Position
from kilt.games.holdem import Betting, Holdem
from kilt.tree import payoff_kernels as kernels


def leaf_values(game: Holdem, leaf: Betting, board: Board, reach: FloatArray, player: int) -> FloatArray:
    """What each of `player`'s hands is worth at a leaf of a poker game, in O(n); 0 for hands that cannot be held.

    `reach` has the opponent's reach by hand; what it says of hands that share a card with the board does not count.
    """
    if leaf.actor != TERMINAL:
        raise GameError(f"{leaf.history!r} is not the end of a hand: payoffs are due there only")
    cards = hand_list(game.deck, game.rules.hole_cards).cards
    value, stake = np.empty(len(reach)), float(leaf.stake)
    if leaf.folded is None:
        ranking = rank_hands(board, game.deck, game.rules.hole_cards)
        kernels.showdown_values(ranking, len(ranking.ends), reach, stake, value)
    else:
        live = np.delete(np.arange(len(reach), dtype=np.uint16), _blocked(game, board))
        won = -stake if leaf.folded == player else stake
        kernels.fold_values(live, cards, reach, won, np.empty(game.deck.size), value)
    return value


def payoff_matrix(game: Game, leaf: Position, board: Board = ()) -> FloatArray:
    """[hand of player 0, hand of player 1]: what a leaf pays to player 0, and 0 where the two cannot meet.

    For any game, from its rules alone: O(n²).

    >>> from kilt.games import load_game
    >>> payoff_matrix(load_game("kuhn"), load_game("kuhn").start().after("c").after("c")).tolist()
    [[0.0, -1.0, -1.0], [1.0, 0.0, -1.0], [1.0, 1.0, 0.0]]
    """
    possible = game.deals() > 0
    if isinstance(game, Holdem):
        free = np.ones(len(possible), dtype=bool)
        free[_blocked(game, board)] = False
        possible &= np.outer(free, free)
    matrix = np.zeros(possible.shape)
    for mine, theirs in np.argwhere(possible).tolist():
        matrix[mine, theirs] = game.payoffs(leaf, (mine, theirs), board)[0]
    return matrix


def _blocked(game: Holdem, board: Board) -> list[int]:
    """The hands that hold a card of the board."""
    holes = game.deck.holes(game.rules.hole_cards)
    return [int(hand) for hand in np.flatnonzero(np.isin(holes, board).any(axis=1))]
