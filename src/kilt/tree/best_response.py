"""Best responses and exploitability in small games, whose whole game tree is in memory.

A strategy profile is a table over slots: a probability for each action of each information set. Against the opponent's
part of it, a best response takes the action with the highest counterfactual value at every information set. The same
pass over the tree computes expected values, with a mean instead of a maximum [Johanson16 §2.3]. *Exploitability* is the
mean value of best responses over the two seats, in chips per game: zero for an equilibrium, and never negative.
open_spiel's NashConv is twice this number.

>>> from kilt.games import load_game
>>> from kilt.tree.flat import flat_tree
>>> kuhn = flat_tree(load_game("kuhn"))
>>> round(2 * exploitability(kuhn, uniform(kuhn)), 7)  # NashConv
0.9166667
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.tree import walk_kernels as kernels
from kilt.tree.evaluable import exploitability_of_responses
from kilt.tree.flat import FlatTree


class Response(NamedTuple):
    """One player's best response to the opponent's strategy, with its winnings."""

    value: float  # value of the response, in chips per game
    strategy: FloatArray  # [slot] the given profile, with the player's part replaced by the response


def uniform(tree: FlatTree) -> FloatArray:
    """Return the uniform strategy: equal probabilities for all legal actions."""
    sizes = np.diff(tree.nodes.infoset_start)
    return np.repeat(1.0 / sizes, sizes)


def expected_value(tree: FlatTree, strategy: FloatArray) -> float:
    """Return player 0's expected winnings if both players follow `strategy`, in chips per game."""
    return float(_values(tree, strategy, 0, best=False)[0][0])


def best_response(tree: FlatTree, strategy: FloatArray, player: int) -> Response:
    """Return one player's best response to the opponent's strategy, with its winnings."""
    value, choice = _values(tree, strategy, player, best=True)
    response = strategy.copy()
    for where in np.flatnonzero(choice >= 0):
        start, end = tree.nodes.infoset_start[where : where + 2]
        response[start:end] = 0.0
        response[start + choice[where]] = 1.0
    return Response(float(value[0]), response)


def response_values(tree: FlatTree, strategy: FloatArray) -> tuple[float, float]:
    """Return a best response's winnings in each seat, in chips per game."""
    first, second = (_values(tree, strategy, player, best=True)[0][0] for player in (0, 1))
    return float(first), float(second)


def exploitability(tree: FlatTree, strategy: FloatArray) -> float:
    """Return a strategy's exploitability: a best response's mean gain over both seats, in chips per game."""
    followed = [float(_values(tree, strategy, player, best=False)[0][0]) for player in (0, 1) if tree.is_general_sum]
    return exploitability_of_responses(response_values(tree, strategy), followed)


def _values(tree: FlatTree, strategy: FloatArray, player: int, *, best: bool) -> tuple[FloatArray, kernels.Choice]:
    """Return the counterfactual value of each node for `player`, and the best responses if `best` is set."""
    nodes = tree.nodes
    slots = int(nodes.infoset_start[-1])
    if len(strategy) != slots:
        raise GameError(f"the strategy has {len(strategy)} entries, not {slots}: it does not belong to {tree.name}")
    reach, value = np.empty(len(nodes.actor)), np.empty(len(nodes.actor))
    choice = np.empty(len(nodes.infoset_player), dtype=np.int32)
    kernels.push_reach(nodes, strategy, player, reach)
    kernels.pull_values(nodes, strategy, player, best, reach, value, np.empty(slots), choice)
    return value, choice
