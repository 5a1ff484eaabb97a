"""Compiled loops that learn state values for AIVAT from self-play."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray, IntArray, SingleArray
from kilt.games.game import CHANCE, TERMINAL
from kilt.jit import kernel
from kilt.play.batch_kernels import read_weight


class LearningTree(NamedTuple):
    """A blueprint's betting tree and strategy as arrays, from which state values are learnt."""

    actor: ByteArray  # [node]
    round: ByteArray  # [node]
    first_child: npt.NDArray[np.int32]  # [node]
    children: npt.NDArray[np.int32]  # [node] how many
    stake: FloatArray  # [node] chips that the loser would lose
    sign: FloatArray  # [node] 1 if seat 1 has folded, −1 if seat 0 has, otherwise 0
    call: IntArray  # [node] the index of the call among the actions
    first: IntArray  # [node] the first slot
    shares: npt.NDArray[np.uint8]  # [byte] weights of slots
    width: int  # bytes per weight


class LearningScratch(NamedTuple):
    """Scratch arrays of the kernel `learn_values`, with one entry per node of the betting tree."""

    node: IntArray
    begin: IntArray  # index of the first child that is reached
    end: IntArray  # end of the children that are reached
    share: FloatArray  # probability of the action that led there
    reach: FloatArray  # probability of all actions that led there
    value: FloatArray


@kernel
def add_values(
    bucket: npt.NDArray[np.int32],
    theirs: IntArray,
    worth: SingleArray,
    more: IntArray,
    with_card: npt.NDArray[np.uint16],
    total: FloatArray,
) -> None:
    """Sum the values of each hand over the boards that share no card with it.

    Only the new cards of a board are compared with the hand.

    `total` has an entry for each hand. `bucket` [board, hand] are the player's buckets, `theirs` [board] is the
    opponent's group, `worth` [opponent's group, player's bucket] the values. `more` [board, card] are the new cards of
    each board, and `with_card` [card, …] the hands that contain a card.
    """
    for b in range(bucket.shape[0]):
        row = worth[theirs[b]]
        for hand in range(bucket.shape[1]):
            total[hand] += row[bucket[b, hand]]
        for place in range(more.shape[1]):
            for hand in with_card[more[b, place]]:
                counted = False  # the hand may hold two of the new cards
                for earlier in range(place):
                    for same in with_card[more[b, earlier]]:
                        counted |= same == hand
                if not counted:
                    total[hand] -= row[bucket[b, hand]]


@kernel
def learn_values(
    tree: LearningTree,
    bucket: IntArray,
    outcome: IntArray,
    pair: IntArray,
    unlikely: float,
    walk: LearningScratch,
    total: FloatArray,
    mass: FloatArray,
) -> None:
    """Learn the value of each betting state: the mean winnings over many deals.

    Each deal is weighted by how likely it reaches the state.

    Values are those of seat 0.

    `total` and `mass` [node, pair of groups] receive the sums of the values and of the weights. The walk of each deal
    takes the expectation over all actions: `bucket` [deal, round, seat], `outcome` [deal] is 1 if seat 0 wins a
    showdown and −1 if seat 1 does, `pair` [deal, round] the groups of both players. States less likely than `unlikely`
    get the value of a showdown without further bets.
    """
    for deal in range(len(outcome)):
        walk.node[0], walk.reach[0] = 0, 1.0
        free = 1
        place = 0
        while place < free:
            node, reach = walk.node[place], walk.reach[place]
            actor, count, child = tree.actor[node], tree.children[node], np.int64(tree.first_child[node])
            walk.begin[place] = free
            if actor == TERMINAL or reach < unlikely:
                sign = tree.sign[node] if tree.sign[node] != 0 else float(outcome[deal])
                walk.value[place] = tree.stake[node] * sign
            elif actor == CHANCE:
                walk.node[free], walk.share[free], walk.reach[free] = child, 1.0, reach
                free += 1
            else:
                seen = np.int64(bucket[deal, tree.round[node], actor])
                slot = np.uint64(tree.first[node] + seen * count)
                whole = 0.0
                for action in range(count):
                    whole += read_weight(tree.shares, tree.width, slot + np.uint64(action))
                for action in range(count):
                    share = 1.0 if action == tree.call[node] else 0.0  # information sets without a strategy call
                    if whole > 0:
                        share = read_weight(tree.shares, tree.width, slot + np.uint64(action)) / whole
                    if share > 0:
                        walk.node[free], walk.share[free] = child + action, share
                        walk.reach[free] = reach * share
                        free += 1
            walk.end[place] = free
            place += 1
        for back in range(free):
            place = free - 1 - back
            if walk.begin[place] < walk.end[place]:
                node, value = walk.node[place], 0.0
                for below in range(walk.begin[place], walk.end[place]):
                    value += walk.share[below] * walk.value[below]
                walk.value[place] = value
                groups = pair[deal, tree.round[node]]
                total[node, groups] += walk.reach[place] * value
                mass[node, groups] += walk.reach[place]
