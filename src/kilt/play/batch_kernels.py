"""Compiled loops that play hands between two blueprint agents."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.draws import uniform
from kilt.jit import inlined, kernel, subkernel
from kilt.strategy.postprocess_kernels import RuleNumbers, post_process

FOLDED, SHOWN = 2, 3  # values of `actor` at the end of a hand

# A state of a joint tree: a decision of a player, or the end of a hand.
STATE = np.dtype(
    [
        ("first", np.uint64),  # the first slot of the decision in the player's blueprint
        ("action_draw", np.uint32),  # number of the draw that selects the action
        ("translation_draw", np.uint32),  # number of the draw that selects the other player's translation
        ("edge", np.uint32),  # the first edge
        ("count", np.uint16),  # number of actions; 0 at an end
        ("stake", np.int32),  # at an end: chips that seat 0 wins; at a showdown, if it wins
        ("actor", np.uint8),  # the seat that acts, FOLDED or SHOWN
        ("player", np.uint8),  # the blueprint of that seat
        ("round", np.uint8),
        ("call", np.uint8),  # index of the call among the actions
        ("ruled", np.uint8),  # whether post-processing changes probabilities here
        ("calls", np.uint8),  # whether the player always calls, because its betting tree has no matching node
    ],
    align=True,
)
# An action at a state. −1: the next state is not in the tree yet.
EDGE = np.dtype(
    [
        ("share", np.float64),  # probability of `lower`
        ("lower", np.int32),  # the next state, if the other player translates the bet to the lower of two bets
        ("upper", np.int32),  # the next state, if the other player translates the bet to the upper of two bets
    ],
    align=True,
)

Records: TypeAlias = npt.NDArray[Any]


class Side(NamedTuple):
    """One agent in a compiled match: its strategy's weights, and its buckets in many deals."""

    shares: npt.NDArray[np.uint8]  # [byte] weights of slots, `width` bytes each, lowest byte first
    width: int
    rule: RuleNumbers
    bucket: npt.NDArray[np.uint32]  # [deal, round, seat]


@inlined
def read_weight(shares: npt.NDArray[np.uint8], width: int, slot: np.uint64) -> float:
    """Read one action weight of a strategy from its bytes.

    Each weight has `width` bytes, the lowest byte first.
    """
    weight = 0.0
    for byte in range(width - 1, -1, -1):
        weight = 256 * weight + shares[slot * np.uint64(width) + np.uint64(byte)]
    return weight


@subkernel
def choose_action(
    side: Side, first: np.uint64, bucket: np.uint32, count: Any, call: Any, ruled: bool, draw: float, row: FloatArray
) -> Any:
    """Choose an action with a blueprint's probabilities, using a random number in [0, 1).

    The result is the index of the action.

    The rule is that of `agent.pick`. If the weights of the information set are all 0, it is a call.
    """
    slot = first + np.uint64(bucket) * np.uint64(count)
    whole = 0.0
    for action in range(count):
        row[action] = read_weight(side.shares, side.width, slot + np.uint64(action))
        whole += row[action]
    if whole == 0:  # the information set was never reached
        return call
    for action in range(count):
        row[action] /= whole
    if ruled:
        post_process(side.rule, call, row, count)
    for action in range(count):
        draw -= row[action]
        if draw < 0:
            return action
    best = 0
    for action in range(1, count):
        if row[action] > row[best]:
            best = action
    return best


@kernel
def play_hands(
    states: Records,
    edges: Records,
    first: Side,
    second: Side,
    keys: npt.NDArray[np.uint64],
    deal: IntArray,
    row: FloatArray,
    at: IntArray,
    going: IntArray,
    wanted: IntArray,
) -> int:
    """Play hands between two agents to their end, or until they leave the tree built so far.

    A hand stops if it needs a state that the tree lacks.

    `at` [hand] holds the state of each hand, and is updated. `deal` [hand] is the deal of each hand. `keys` [deal,
    seat] are the players' sources of random numbers. `going` lists the hands to play. Hands that need a missing state
    are moved to the beginning of `going`, and the edges to these states are written to `wanted`. The function returns
    the number of these hands. `row` is scratch memory for probabilities.
    """
    waiting = 0
    for k in range(len(going)):
        hand = going[k]
        d, state = deal[hand], at[hand]
        while states[state].count > 0:
            here = states[state]
            seat, place, count, call = np.int64(here.actor), 0, np.int64(here.count), np.int64(here.call)
            if not here.calls:
                draw = uniform(keys[d, seat], np.uint64(here.action_draw))
                if here.player == 0:
                    bucket = first.bucket[d, here.round, seat]
                    place = choose_action(first, here.first, bucket, count, call, here.ruled > 0, draw, row)
                else:
                    bucket = second.bucket[d, here.round, seat]
                    place = choose_action(second, here.first, bucket, count, call, here.ruled > 0, draw, row)
            number = np.int64(here.edge) + place
            edge = edges[number]
            if edge.lower < 0:
                going[waiting], wanted[waiting] = hand, number
                waiting += 1
                break
            if edge.share < 1 and uniform(keys[d, 1 - seat], np.uint64(here.translation_draw)) >= edge.share:
                state = np.int64(edge.upper)
            else:
                state = np.int64(edge.lower)
        at[hand] = state
    return waiting
