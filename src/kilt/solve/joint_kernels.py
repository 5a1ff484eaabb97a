"""Compiled code for passes of CFR over a betting tree, with one number per bucket sequence.

The code is compiled. A range holds whole blocks of one round. Vectors are [node of the range, sequence]; tables are
over the slots of the abstract game, with the actions of each (decision, bucket) adjacent. `bucket` [sequence] belongs
to the player who acts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.jit import kernel
from kilt.tree.betting import BettingNodes
from kilt.tree.rule import Discount, updated_average, updated_regret


@kernel
def push_reach(
    nodes: BettingNodes,
    first: IntArray,
    begin: int,
    end: int,
    player: int,
    bucket: npt.NDArray[np.int32],
    strategy: FloatArray,
    reach: FloatArray,
) -> None:
    """Compute a player's reach probability at each node of a part of the betting tree."""
    for node in range(begin, end):
        actor = nodes.actor[node]
        if actor < 0:
            continue
        count, child = nodes.children[node], nodes.first_child[node]
        here = reach[node - begin]
        for a in range(count):
            there = reach[child + a - begin]
            if actor == player:
                for s in range(len(here)):
                    there[s] = here[s] * strategy[first[node] + bucket[s] * count + a]
            else:
                for s in range(len(here)):
                    there[s] = here[s]


@kernel
def add_average(
    nodes: BettingNodes,
    first: IntArray,
    begin: int,
    end: int,
    player: int,
    bucket: npt.NDArray[np.int32],
    likely: FloatArray,
    discount: Discount,
    reach: FloatArray,
    total: FloatArray,
) -> None:
    """Add a player's current strategy to the sum behind the average strategy.

    The strategy is weighted by the probability `likely` of each bucket sequence and of the player's own actions.
    """
    for node in range(begin, end):
        if nodes.actor[node] != player:
            continue
        count, child = nodes.children[node], nodes.first_child[node]
        for a in range(count):
            there = reach[child + a - begin]
            for s in range(len(there)):
                slot = first[node] + bucket[s] * count + a
                total[slot] = updated_average(total[slot], likely[s] * there[s], discount.average_weight, 1.0)
        for slot in range(first[node], first[node + 1]):
            total[slot] = updated_average(total[slot], 0.0, 0.0, discount.average)


@kernel
def pull_values(
    nodes: BettingNodes,
    first: IntArray,
    begin: int,
    end: int,
    player: int,
    bucket: npt.NDArray[np.int32],
    strategy: FloatArray,
    value: FloatArray,
) -> None:
    """Compute the value of each node in a part of the betting tree, given the player's strategy."""
    for node in range(end - 1, begin - 1, -1):
        actor = nodes.actor[node]
        if actor < 0:
            continue
        count, child = nodes.children[node], nodes.first_child[node]
        here = value[node - begin]
        for s in range(len(here)):
            here[s] = 0.0
        for a in range(count):
            there = value[child + a - begin]
            if actor == player:
                for s in range(len(here)):
                    here[s] += strategy[first[node] + bucket[s] * count + a] * there[s]
            else:
                for s in range(len(here)):
                    here[s] += there[s]


@kernel
def respond(
    nodes: BettingNodes,
    first: IntArray,
    begin: int,
    end: int,
    player: int,
    bucket: npt.NDArray[np.int32],
    strategy: FloatArray,
    value: FloatArray,
) -> None:
    """Compute a player's best response in a part of the betting tree, with the value of each node.

    The best actions are written to `strategy`. The value of an action in a bucket is the sum over the bucket's
    sequences.
    """
    for node in range(end - 1, begin - 1, -1):
        if nodes.actor[node] == player:
            count, child = nodes.children[node], nodes.first_child[node]
            for slot in range(first[node], first[node + 1]):
                strategy[slot] = 0.0
            for a in range(count):
                there = value[child + a - begin]
                for s in range(len(there)):
                    strategy[first[node] + bucket[s] * count + a] += there[s]
            for base in range(first[node], first[node + 1], count):
                best = 0
                for a in range(1, count):
                    if strategy[base + a] > strategy[base + best]:
                        best = a
                for a in range(count):
                    strategy[base + a] = 1.0 if a == best else 0.0
        if nodes.actor[node] >= 0:
            pull_values(nodes, first, node, node + 1, player, bucket, strategy, value[node - begin :])


@kernel
def learn(
    nodes: BettingNodes,
    first: IntArray,
    begin: int,
    end: int,
    player: int,
    bucket: npt.NDArray[np.int32],
    discount: Discount,
    restricted: bool,
    value: FloatArray,
    regret: FloatArray,
    gain: FloatArray,
    strategy: FloatArray,
) -> None:
    """Update a player's regrets, and compute the next strategy by regret matching.

    `gain` is scratch memory with an entry for each slot. A predictive strategy is computed as if a share of the last
    regrets occurred once more. If the player is `restricted`, values are those of the strategy actually played, while
    regrets are relative to the learnt strategy.
    """
    for node in range(begin, end):
        if nodes.actor[node] != player:
            continue
        count, child = nodes.children[node], nodes.first_child[node]
        size, weight = first[node + 1] - first[node], discount.weight
        here = value[node - begin]
        for k in range(size):
            gain[k] = 0.0
        for a in range(count):
            there = value[child + a - begin]
            for s in range(len(here)):
                gain[bucket[s] * count + a] += there[s] - here[s]
        for base in range(0, size, count):
            beyond = 0.0  # value of the learnt strategy minus that of the played one
            if restricted:
                for a in range(count):
                    beyond += strategy[first[node] + base + a] * gain[base + a]
            whole = 0.0
            for a in range(count):
                slot, gained = first[node] + base + a, gain[base + a] - beyond
                regret[slot] = updated_regret(regret[slot], gained, 0.0, weight, discount.above, discount.below)
                likely = regret[slot]
                if discount.predictive > 0:
                    likely = updated_regret(likely, gained, 0.0, weight * discount.predictive, 1.0, 1.0)
                likely = max(likely, 0.0)
                strategy[slot] = likely
                whole += likely
            for a in range(count):
                slot = first[node] + base + a
                strategy[slot] = strategy[slot] / whole if whole > 0 else 1.0 / count
