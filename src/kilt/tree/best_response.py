"""Best responses on flat trees, and what they say about a strategy.

A strategy profile is a table over slots: a probability for each action of each information set. Against the opponent's
part of it, a best response takes at every information set the action with the highest counterfactual value: the walk
that computes expected values, with a max [Johanson16 §2.3]. *Exploitability* is what best responses win on average
over the two seats: zero for an equilibrium, never negative, in chips per game here. open_spiel's NashConv is twice
that.

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
from kilt.tree.flat import FlatTree
from kilt.tree.judged import excess


class Response(NamedTuple):
    """A best response of one player."""

    value: float  # what it wins, in chips per game
    strategy: FloatArray  # [slot] the given profile, with the player's part replaced by the response


def uniform(tree: FlatTree) -> FloatArray:
    """[slot] the profile that takes all actions alike."""
    sizes = np.diff(tree.nodes.infoset_start)
    return np.repeat(1.0 / sizes, sizes)


def expected_value(tree: FlatTree, strategy: FloatArray) -> float:
    """What player 0 wins when both follow `strategy`, in chips per game."""
    return float(_values(tree, strategy, 0, best=False)[0][0])


def best_response(tree: FlatTree, strategy: FloatArray, player: int) -> Response:
    """The best response of `player` to the opponent's part of `strategy`."""
    value, choice = _values(tree, strategy, player, best=True)
    response = strategy.copy()
    for where in np.flatnonzero(choice >= 0):
        start, end = tree.nodes.infoset_start[where : where + 2]
        response[start:end] = 0.0
        response[start + choice[where]] = 1.0
    return Response(float(value[0]), response)


def response_values(tree: FlatTree, strategy: FloatArray) -> tuple[float, float]:
    """What a best response wins in each seat, in chips per game."""
    first, second = (_values(tree, strategy, player, best=True)[0][0] for player in (0, 1))
    return float(first), float(second)


def exploitability(tree: FlatTree, strategy: FloatArray) -> float:
    """What best responses win more than the strategy on average over the seats, in chips per game."""
    followed = [float(_values(tree, strategy, player, best=False)[0][0]) for player in (0, 1) if tree.uneven]
    return excess(response_values(tree, strategy), followed)


def _values(tree: FlatTree, strategy: FloatArray, player: int, *, best: bool) -> tuple[FloatArray, kernels.Choice]:
    """Counterfactual values of `player` by node, and the choices of a best response where `best` is set."""
    nodes = tree.nodes
    slots = int(nodes.infoset_start[-1])
    if len(strategy) != slots:
        raise GameError(f"the strategy has {len(strategy)} entries; {tree.name} needs {slots}: it is for another game")
    reach, value = np.empty(len(nodes.actor)), np.empty(len(nodes.actor))
    choice = np.empty(len(nodes.infoset_player), dtype=np.int32)
    kernels.push_reach(nodes, strategy, player, reach)
    kernels.pull_values(nodes, strategy, player, best, reach, value, np.empty(slots), choice)
    return value, choice
