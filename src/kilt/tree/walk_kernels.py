"""Compiled code that computes reach probabilities and values on the tree of a small game."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.games.game import CHANCE, TERMINAL
from kilt.jit import kernel
from kilt.tree.flat import FlatNodes

Choice: TypeAlias = npt.NDArray[np.int32]

# Differences of values below this share of the stakes are rounding errors, and give no regret: regret matching would
# turn 1e-17 into a pure strategy.
ROUNDING = 1e-14
TIE = 1e-12  # smaller differences of values are rounding errors: the first such action is chosen


@kernel
def push_reach(nodes: FlatNodes, strategy: FloatArray, player: int, reach: FloatArray) -> None:
    """Compute the probability that chance and the opponent bring the game to each node."""
    reach[0] = 1.0
    for node in range(len(nodes.actor)):
        actor = nodes.actor[node]
        if actor == TERMINAL:
            continue
        first = np.uint32(nodes.first_child[node])
        if actor == CHANCE:
            for k in range(nodes.children[node]):
                reach[first + k] = reach[node] * nodes.chance[first + k]
        elif actor == player:
            for k in range(nodes.children[node]):
                reach[first + k] = reach[node]
        else:
            slot = np.uint32(nodes.infoset_start[nodes.infoset[node]])
            for k in range(nodes.children[node]):
                reach[first + k] = reach[node] * strategy[slot + k]


@kernel
def pull_values(
    nodes: FlatNodes,
    strategy: FloatArray,
    player: int,
    best: bool,
    reach: FloatArray,
    value: FloatArray,
    slot_value: FloatArray,
    choice: Choice,
) -> None:
    """Compute a player's counterfactual value of each node and each action.

    Both are weighted by `reach`. The player follows `strategy` or, with `best`, takes the best action of the
    information set: a best response. The action is written to `choice`, otherwise −1. Nodes after an information set
    are processed before it, wherever they are in the tree; its slots are then complete when its action is chosen.
    """
    slot_value[:] = 0.0
    choice[:] = -1
    order, group = nodes.order[player], nodes.group[player]
    uneven = len(nodes.surplus) > 0
    end = len(order)
    for g in range(len(group) - 1 if best else 0, -1, -1):
        begin = group[g] if best else 0
        for i in range(end - 1, begin - 1, -1):
            node = np.uint32(order[i] if best else i)
            actor = nodes.actor[node]
            first = np.uint32(nodes.first_child[node])
            total = 0.0
            if actor == TERMINAL:
                payoff = nodes.payoff[node]
                total = reach[node] * (payoff if player == 0 else (nodes.surplus[node] if uneven else 0.0) - payoff)
            elif actor == player:
                slot = np.uint32(nodes.infoset_start[nodes.infoset[node]])
                for k in range(nodes.children[node]):
                    slot_value[slot + k] += value[first + k]
                    total += strategy[slot + k] * value[first + k]
            else:
                for k in range(nodes.children[node]):
                    total += value[first + k]
            value[node] = total
        if g > 0 and begin < end:
            start = nodes.infoset_start[g - 1]
            top = start
            for candidate in range(start + 1, nodes.infoset_start[g]):
                if slot_value[candidate] > slot_value[top] + TIE:
                    top = candidate
            choice[g - 1] = top - start
            for i in range(begin, end):
                if nodes.actor[order[i]] == player:
                    value[order[i]] = value[nodes.first_child[order[i]] + top - start]
        end = begin


@kernel
def own_reach(nodes: FlatNodes, strategy: FloatArray, player: int, reach: FloatArray) -> None:
    """Compute a player's own probability of reaching and taking each action."""
    for where in range(len(nodes.infoset_player)):
        if nodes.infoset_player[where] == player:
            after = nodes.infoset_after[where]
            before = 1.0 if after < 0 else reach[after]
            for slot in range(nodes.infoset_start[where], nodes.infoset_start[where + 1]):
                reach[slot] = before * strategy[slot]
