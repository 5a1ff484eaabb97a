"""Data types that Python and CUDA code share, and a betting round's arrays in GPU memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kilt.arrays import Array, IntArray
from kilt.tree.rule import Discount

# Record types as in `device.cu`.
NODE = np.dtype(
    [
        ("stake", np.float64),
        ("rake", np.float64),
        *((name, np.int32) for name in ("kind", "actor", "child", "count", "row", "slot", "leaf", "below")),
    ]
)
ROUND = np.dtype(
    [
        ("first_row", np.int64),
        *((name, np.int32) for name in ("rows", "boards", "boards_before", "hands", "player", "task")),
    ]
)
LEARNING = np.dtype(  # as in `rule.cuh`
    [
        *(
            (name, np.float64)
            for name in ("above", "below", "weight", "average", "average_weight", "predictive", "noise")
        ),
        *((name, np.int32) for name in ("regrets", "averages", "restricted")),
    ],
    align=True,
)
IDLE = np.zeros((), LEARNING)  # for passes without learning
VECTORS = ("reach", "beats", "whole", "value", "total", "chance")  # fields of `DeviceRound`


def learning_of(
    discount: Discount,
    noise: float = 0.0,
    *,
    regrets: bool = False,
    averages: bool = False,
    restricted: bool = False,
) -> Array:
    """Return a record that tells GPU code which tables to update, and how to discount them.

    Parameters
    ----------
    discount : Discount
        Discounts of the iteration.
    noise : float
        Smaller differences of values are rounding errors.
    regrets, averages : bool
        Whether to update the player's regrets, and the opponent's average.
    restricted : bool
        Whether the player is restricted, and does not play the learnt strategy.
    """
    above, below, average, weight, average_weight, _, predictive = discount
    numbers = above, below, weight, average, average_weight, predictive, noise
    return np.array((*numbers, regrets, averages, restricted), LEARNING)


class RoundWalk(NamedTuple):
    """The betting of one round in GPU memory, arranged for computing one player's values."""

    nodes: Any  # [node] of `NODE`, numbered from 0 in each round
    begin: Any  # [entry + 1] first node of its block
    above: Any  # [entry] slot of its chance node in the previous round
    slots: Any  # [leaf] slot of the reach to sum
    slot: IntArray  # [node] index of the opponent's reach, on the host


class DeviceRound(NamedTuple):
    """A betting round of a public tree in GPU memory: nodes, boards, and scratch memory."""

    walks: tuple[RoundWalk, RoundWalk]  # of players 0 and 1
    entries: int
    boards: int
    first_row: int
    rows: int
    parent: Any  # [board] the previous board, counted within its round
    first_board: Any  # [board + 1] first of its boards in the next round, counted there
    factor: Any  # [board] weight among the boards after one board
    symmetry: Any  # [board]
    order: Any  # [board, place] hands, weakest first; incompatible hands come last
    live: Any  # [board] number of compatible hands
    ranks: Any  # [board, hand] of `RANK`
    listed: Any  # [board, card, place] hands that hold a card, weakest first; −1 for incompatible ones
    reach: Any  # reach of the opponent, by slot
    beats: Any  # reach that a hand beats minus reach that beats it, by leaf
    whole: Any  # reach that shares no card with a hand, by leaf
    value: Any  # by node
    total: Any  # values of chance nodes before averaging over suits, by entry of the next round
    chance: Any  # values of chance nodes


class CardLists(NamedTuple):
    """The sizes of the GPU's lists of hands, one list for each card.

    The lists are for complete boards.
    """

    cards: int  # number of cards, including blanks, which complete hands of one card
    lists: int  # number of lists: one for each card not on the board
    length: int  # length of a list
    live: int  # number of hands


class Pull(NamedTuple):
    """A player's task in a betting round: follow a strategy, play a best response, or learn.

    It includes the arrays that are read and updated.
    """

    task: int  # FOLLOW, RESPOND or ANSWER
    own: Any  # the player's strategy; ANSWER writes the response to it
    regret: Any  # the regrets, if the walk updates them
    learning: Array = IDLE  # of `LEARNING`
