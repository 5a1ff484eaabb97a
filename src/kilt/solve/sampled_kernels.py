"""Compiled code that runs Monte Carlo CFR on a flat tree.

A random number is a function of the pass's number and of its use, an information set or a chance event; the order in
which a pass reaches them does not matter. An opponent whose information set is reached twice in a pass therefore takes
one and the same action, like a pure strategy, and a checkpoint needs only the number of passes.

The strategy of regret matching is stored with the regrets: computing it at every visit is as fast on Leduc, and slower
if opponents have many actions (9% on Bluff).

Helpers that take arrays are kernels, not inlined: LLVM inlines them into their callers all the same, and numba then
does not count references to the arrays, which took up to a quarter of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.draws import mix, splitmix_word, uniform
from kilt.jit import kernel

DEAL, END = 2, 3  # actor of chance nodes and terminal nodes, next to players 0 and 1

# The fields that a walk reads at a node, in one record: one cache miss (Bluff: a fifth faster than with five arrays).
NODE = np.dtype([("actor", np.uint32), ("count", np.uint32), ("link", np.uint32), ("slot", np.uint32)])

Records: TypeAlias = npt.NDArray[Any]
Links: TypeAlias = npt.NDArray[np.uint32]


class Paths(NamedTuple):
    """A game tree as arrays for Monte Carlo CFR.

    Consecutive chance nodes are merged, and forced moves are skipped.

    ======  ==================  ====================================  ======================================
    actor   count               link                                  slot
    ======  ==================  ====================================  ======================================
    0, 1    number of actions   the first child                       the first slot of the information set
    DEAL    number of rows      the first row of `odds`, `outcome`    a number above all slots
    END                         the row of `payoff`
    ======  ==================  ====================================  ======================================
    """

    nodes: Records  # [node]
    payoff: FloatArray  # [player, row] winnings of the player of a walk, with the sign changed for player 1
    odds: FloatArray  # [row] probability of the first of two outcomes; all rows of an event are equally likely
    outcome: Links  # [row, 2] the nodes they lead to


@kernel
def choose(strategy: FloatArray, slot: np.uint64, count: np.uint64, draw: float) -> np.uint64:
    """Choose an action with a strategy's probabilities, using a uniform random number."""
    action, passed = np.uint64(0), 0.0
    for a in range(count - np.uint64(1)):
        passed += strategy[slot + a]
        action += np.uint64(passed <= draw)
    return action


@kernel
def match_regrets(regret: FloatArray, slot: np.uint64, count: np.uint64, strategy: FloatArray) -> None:
    """Compute the strategy at an information set by regret matching.

    Probabilities are proportional to positive regrets, or equal if there are none. A single loop handles both cases:
    with one loop for each, walks over Leduc take nearly 50% longer.
    """
    whole = 0.0
    for a in range(count):
        whole += max(regret[slot + a], 0.0)
    scale = 1.0 / whole if whole > 0.0 else 0.0
    least = 0.0 if whole > 0.0 else 1.0 / count
    for a in range(count):
        strategy[slot + a] = max(regret[slot + a], 0.0) * scale + least


@kernel
def sample_outcome(paths: Paths, link: np.uint64, count: np.uint64, draw: float) -> np.uint64:
    """Sample a chance event's outcome, and return the node that follows.

    The number selects a row, and its remainder one of the row's two outcomes.
    """
    place = draw * count
    row = np.uint64(place)
    second = np.uint64(place - row >= paths.odds[link + row])
    return np.uint64(paths.outcome[link + row, second])


@kernel
def build_alias_tables(first: npt.NDArray[np.int64], odds: FloatArray, outcome: Links) -> None:
    """Build alias tables, from which chance outcomes are sampled in constant time.

    An event gets equally likely rows with two outcomes each (Walker 1977, Vose 1991). Event i has the rows first[i] to
    first[i + 1]. On entry, `odds` holds the probability of each row's outcome, which is in both columns of `outcome`.
    Writes `odds`, and the second column of rows whose outcome is too improbable to fill their share.
    """
    # rows of an event: those below their share from the left, those above it from the right
    order = np.empty(len(odds), dtype=np.int64)
    for event in range(len(first) - 1):
        low, high = first[event], first[event + 1]
        for row in range(first[event], first[event + 1]):
            odds[row] *= first[event + 1] - first[event]
            if odds[row] < 1.0:
                order[low] = row
                low += 1
            else:
                high -= 1
                order[high] = row
        while low > first[event] and high < first[event + 1]:
            poor, rich = order[low - 1], order[high]
            outcome[poor, 1] = outcome[rich, 0]
            odds[rich] -= 1.0 - odds[poor]
            if odds[rich] < 1.0:
                order[low - 1] = rich
                high += 1
            else:
                low -= 1


@kernel
def walk_all(
    pure: bool,
    seed: np.uint64,
    first: int,
    walks: int,
    paths: Paths,
    regret: FloatArray,
    gain: FloatArray,
    strategy: FloatArray,
    total: FloatArray,
) -> None:
    """Run passes of external-sampling CFR, in which the learning player tries every action.

    Players 0 and 1 learn in turn. Adds sampled counterfactual regrets to `gain`, which is the same array as `regret`
    unless they are examined, and the opponent's strategy to `total`. Writes the strategy of `regret` to `strategy`. In
    `pure` walks, the player also has a pure strategy.

    On the way down, entries are appended in the order of their discovery: a payoff, or a node of the player, whose
    children get the next free entries. On the way back, each such node reads its children's values from these entries.
    """
    one = np.uint64(1)
    most = len(paths.nodes)  # an upper bound on entries; pages that are never written to cost nothing
    pending, value = np.empty(most, dtype=np.uint32), np.empty(most)
    slots, counts = np.empty(most, dtype=np.uint32), np.empty(most, dtype=np.uint32)
    places, below = np.empty(most, dtype=np.uint32), np.empty(most, dtype=np.uint32)
    start = mix(seed)
    for walk in range(first, first + walks):
        key = splitmix_word(start, np.uint64(walk))
        player = np.uint64(walk) & one
        place, free, visits = np.uint64(0), one, np.uint64(0)
        pending[place] = 0
        while place < free:
            node = np.uint64(pending[place])
            while True:
                here = paths.nodes[node]
                actor, count = np.uint64(here.actor), np.uint64(here.count)
                link, slot = np.uint64(here.link), np.uint64(here.slot)
                if actor == END:
                    value[place] = paths.payoff[player, link]
                    break
                if actor == player:
                    slots[visits], counts[visits] = slot, count
                    places[visits], below[visits] = place, free
                    visits += one
                    for a in range(count):
                        pending[free + a] = link + a
                    free += count
                    break
                draw = uniform(key, slot)
                if actor == DEAL:
                    node = sample_outcome(paths, link, count, draw)
                else:
                    action = choose(strategy, slot, count, draw)
                    if pure:
                        total[slot + action] += 1.0
                    else:
                        for a in range(count):
                            total[slot + a] += strategy[slot + a]
                    node = link + action
            place += one
        sign = 1.0 - 2.0 * player
        while visits > 0:
            visits -= one
            slot, count = np.uint64(slots[visits]), np.uint64(counts[visits])
            child = np.uint64(below[visits])
            if pure:
                worth = value[child + choose(strategy, slot, count, uniform(key, slot))]
            else:
                worth = 0.0
                for a in range(count):
                    worth += strategy[slot + a] * value[child + a]
            for a in range(count):
                gain[slot + a] += sign * (value[child + a] - worth)
            match_regrets(regret, slot, count, strategy)
            value[np.uint64(places[visits])] = worth


@kernel
def walk_one(
    exploration: float,
    seed: np.uint64,
    first: int,
    walks: int,
    paths: Paths,
    regret: FloatArray,
    gain: FloatArray,
    strategy: FloatArray,
    total: FloatArray,
) -> None:
    """Run passes of outcome-sampling CFR, each along a single path through the tree.

    Players 0 and 1 learn in turn. With probability `exploration`, the player takes a uniformly random action.
    """
    one = np.uint64(1)
    most = len(paths.nodes)
    slots, counts = np.empty(most, dtype=np.uint32), np.empty(most, dtype=np.uint32)
    actions, shares = np.empty(most, dtype=np.uint32), np.empty(most)
    start = mix(seed)
    for walk in range(first, first + walks):
        key = splitmix_word(start, np.uint64(walk))
        player = np.uint64(walk) & one
        node, visits = np.uint64(0), np.uint64(0)
        weight = 1.0  # 1 / q, where q is the sampling probability of the player's actions so far
        while True:
            here = paths.nodes[node]
            actor, count = np.uint64(here.actor), np.uint64(here.count)
            link, slot = np.uint64(here.link), np.uint64(here.slot)
            if actor == END:
                weight *= paths.payoff[player, link] * (1.0 - 2.0 * player)
                break
            draw = uniform(key, slot)
            if actor == DEAL:
                node = sample_outcome(paths, link, count, draw)
                continue
            if actor == player:
                if draw < exploration:
                    action = np.uint64(draw / exploration * count)
                else:
                    action = choose(strategy, slot, count, (draw - exploration) / (1.0 - exploration))
                share = strategy[slot + action]
                weight /= exploration / count + (1.0 - exploration) * share
                slots[visits], counts[visits] = slot, count
                actions[visits], shares[visits] = action, share
                visits += one
            else:
                action = choose(strategy, slot, count, draw)
                for a in range(count):
                    total[slot + a] += weight * strategy[slot + a]
            node = link + action
        while visits > 0:  # weight: u(z) / q(z) times the strategy's probability of continuing to z like the walk
            visits -= one
            slot, count = np.uint64(slots[visits]), np.uint64(counts[visits])
            action, share = np.uint64(actions[visits]), shares[visits]
            for a in range(count):
                gain[slot + a] += weight * ((1.0 if a == action else 0.0) - share)
            match_regrets(regret, slot, count, strategy)
            weight *= share
