"""What takes seconds and several tests need, made once for all tests of a process. Nobody changes what is here."""

from functools import cache

import numpy as np

from kilt.cards import equity
from kilt.cards.boards import card_permutations, hand_permutations
from kilt.games.holdem import Holdem
from kilt.solve.forms import load_problem


@cache
def problem_of(name, form):
    """A ready-made game in a form: "flat" or "vector"."""
    return load_problem(name, form=form)


def tree_of(name):
    """The flat tree of a ready-made game."""
    return problem_of(name, "flat").tree


@cache
def distribution(board):
    """`equity.distribution` on a board of the full deck: before the flop all boards are played out."""
    return equity.distribution(board)


def flat_places(game, tree):
    """[slot] the row and the hand of a table over the public tree that each entry of a flat strategy is."""
    holdem, arrays = game.game, game.tree
    rows = {position.history: (r, row) for r, row, position in game.decisions()}
    hands = [{name: h for h, name in enumerate(holdem.hands(p))} for p in (0, 1)]
    if isinstance(holdem, Holdem):
        renamed = card_permutations(holdem.deck)
        back = np.argsort(hand_permutations(holdem.deck, holdem.rules.hole_cards), axis=1)
        boards = {}
        for r, size in enumerate(arrays.board_size):
            for board in range(arrays.board_start[r], arrays.board_start[r + 1]):
                for p in range(len(renamed)):
                    cards, start, key = renamed[p, arrays.board[board, :size]].tolist(), 0, []
                    for count in holdem.rules.board_cards[: r + 1]:
                        key += sorted(cards[start : start + count])
                        start += count
                    boards.setdefault((r, *key), (board, p))
    found = np.empty((2, int(tree.nodes.infoset_start[-1])), dtype=int)
    for where, name in enumerate(tree.infosets):
        hand_name, board_name, history = name.split("|")
        r, row = rows[history]
        hand, board = hands[tree.nodes.infoset_player[where]][hand_name], arrays.board_start[r]
        if isinstance(holdem, Holdem):
            cards = holdem.deck.cards(board_name.replace("/", ""))
            board, p = boards[r, *cards]
            hand = back[p, hand]
        first = arrays.table_start[r] + (board - arrays.board_start[r]) * arrays.rows[r] + row
        start, end = tree.nodes.infoset_start[where : where + 2]
        found[0, start:end], found[1, start:end] = np.arange(first, first + end - start), hand
    return found[0], found[1]
