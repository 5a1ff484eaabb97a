"""Check the settings of a re-solving agent: rounds, bet sizes and memory."""

from __future__ import annotations

from math import comb

import numpy as np

from kilt.abstraction.actions import ActionAbstraction
from kilt.config import ResolveConfig
from kilt.cost import Cost
from kilt.errors import PlayError
from kilt.games.holdem import Betting, Holdem
from kilt.games.subgame import cut_after_first_round, subgame
from kilt.tree.betting import betting_size, betting_tree


def menu_of(settings: ResolveConfig, first_round: int, game: Holdem) -> ActionAbstraction | None:
    """Return the raises that an agent considers in subgames of a given round.

    Returns None in limit games, whose rules give the raises.
    """
    if game.rules.betting == "limit":
        return None
    return ActionAbstraction(("/" * first_round + settings.bets,), settings.near)


def require_settings(settings: ResolveConfig, game: Holdem) -> None:
    """Raise an error if an agent with the given settings cannot re-solve subgames of a game.

    It is a PlayError or AbstractionError for a wrong setting, and a RunError if the largest subgame does not fit into
    memory.
    """
    require_rounds(settings, game)
    for r in sorted(map(game.rules.round_names.index, settings.rounds)):
        cost_of(settings, game, r).require()


def require_rounds(settings: ResolveConfig, game: Holdem) -> None:
    """Raise PlayError if a game lacks rounds that the settings name, or AbstractionError if bet sizes are wrong."""
    rules = game.rules
    later = rules.round_names[1:]
    if not later:
        raise PlayError(f"{game.name} has one round: there is no later one to re-solve; remove `resolve`")
    for name in settings.rounds:
        if name not in later:
            raise PlayError(f"unknown round {name!r} to re-solve: {game.name} has {', '.join(later)}")
    for name in settings.limited:
        if name not in settings.rounds or name == rules.round_names[-1]:
            able = [one for one in settings.rounds if one != rules.round_names[-1]]
            raise PlayError(
                f"the round {name!r} cannot be limited: it has to be re-solved, with another round after it; here "
                f"{', '.join(able) or 'none'} can"
            )
    if not settings.rounds:
        raise PlayError(f"`resolve` names no round: use one of {', '.join(later)}, or several")
    menu_of(settings, 1, game)


def cost_of(settings: ResolveConfig, game: Holdem, first_round: int) -> Cost:
    """Return the memory for re-solving the largest subgame that begins in a given round.

    The solver keeps regrets and averages in single precision. For a limited round, the memory includes the values of
    all pairs of hands.
    """
    rules, hands = game.rules, len(game.holes)
    board = tuple(range(rules.board_size(first_round)))
    opening = Betting.opening(rules, first_round, rules.big_blind)

    def whole(tables: int, entries: int) -> Cost:
        what = f"re-solving from the {rules.round_names[first_round]} on"
        size = tables * entries * np.dtype(np.float32).itemsize
        return Cost(size, what=what, remedy="use fewer bets, later rounds, or a limited round")

    rest, menu = subgame(game, opening, board, np.ones((2, hands))), menu_of(settings, first_round, game)
    if rules.round_names[first_round] in settings.limited:
        ends = [leaf for leaf in betting_tree(cut_after_first_round(rest), menu).leaves if leaf.folded is None]
        going = sum(leaf.stake < min(rules.stacks) for leaf in ends)
        return whole(1 + settings.continuations * going, hands**2)
    size = betting_size(rest, menu)
    left, boards, cells = game.deck.size - len(board), 1, 0
    for r in range(first_round, rules.rounds):
        if r > first_round:
            boards *= comb(left, rules.board_cards[r])
            left -= rules.board_cards[r]
        cells += boards * hands * sum(actions[r] for actions in size.actions)
    return whole(2, cells)
