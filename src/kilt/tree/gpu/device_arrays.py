"""Records that walks on a GPU share with their CUDA files, and a round of the tree as it is kept on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kilt.arrays import Array, IntArray
from kilt.tree.rule import Discount

# As in `device.cu`.
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
IDLE = np.zeros((), LEARNING)  # of walks in which nobody learns
VECTORS = ("reach", "beats", "whole", "value", "total", "chance")  # fields of `DeviceRound`


def learning_of(
    discount: Discount,
    noise: float = 0.0,
    *,
    regrets: bool = False,
    averages: bool = False,
    restricted: bool = False,
) -> Array:
    """A `LEARNING`: how an iteration enters tables, and which tables a walk updates.

    Parameters
    ----------
    discount : Discount
        The numbers of the iteration.
    noise : float
        Values that differ by less are equal but for rounding.
    regrets, averages : bool
        Whether the walk updates the player's regrets, and the opponent's average.
    restricted : bool
        Whether the player plays something else than what was learnt.
    """
    above, below, average, weight, average_weight, predictive = discount
    numbers = above, below, weight, average, average_weight, predictive, noise
    return np.array((*numbers, regrets, averages, restricted), LEARNING)


class RoundWalk(NamedTuple):
    """The betting of a round as one player's walk sees it."""

    nodes: Any  # [node] of `NODE`, numbered from 0 in each round
    begin: Any  # [entry + 1] where the nodes of its block begin
    above: Any  # [entry] the slot, in the round before, of the chance node that opens it
    slots: Any  # [leaf] whose reach is summed up
    slot: IntArray  # [node] where the opponent's reach stands, on the host


class DeviceRound(NamedTuple):
    """A round of the tree on the device, with room for its vectors [place, board, hand]."""

    walks: tuple[RoundWalk, RoundWalk]  # of players 0 and 1
    entries: int
    boards: int
    first_row: int
    rows: int
    parent: Any  # [board] the board before it, from 0 in its round
    first_board: Any  # [board + 1] of the next round, from 0 there
    factor: Any  # [board] how much it counts among those that follow one board
    symmetry: Any  # [board]
    order: Any  # [board, place] hands, weakest first; those that the board does not leave come last
    live: Any  # [board] how many it leaves
    ranks: Any  # [board, hand] of `RANK`
    listed: Any  # [board, card, place] the hands that hold a card, weakest first; −1 for those not left
    reach: Any  # of the opponent, by slot
    beats: Any  # reach that a hand beats less what beats it, by leaf
    whole: Any  # reach that shares no card with a hand, by leaf
    value: Any  # by node
    total: Any  # of chance nodes, before suits are averaged over; by entry of the next round
    chance: Any  # of chance nodes


class CardLists(NamedTuple):
    """The hands that a complete board leaves, listed by the cards that they hold."""

    cards: int  # and blanks, which stand beside hands of one card
    lists: int  # one for each card that the board leaves
    length: int  # of a list
    live: int  # hands


class Pull(NamedTuple):
    """What the player of a walk does in a round, and what is learnt there."""

    task: int  # FOLLOW, RESPOND or ANSWER
    own: Any  # the player's strategy; ANSWER writes the response there
    regret: Any  # where the walk updates regrets
    learning: Array = IDLE  # of `LEARNING`
