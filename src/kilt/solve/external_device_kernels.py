"""Compiled code that estimates how much GPU memory a deal needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray
from kilt.jit import kernel

Ints = npt.NDArray[np.int32]


@kernel
def count_depth(parent: Ints, actor: ByteArray, depth: Ints) -> None:
    """Count the decisions before each node of a tree, and write the counts to `depth`.

    Parents precede their children.
    """
    for node in range(1, len(parent)):
        depth[node] = depth[parent[node]] + (1 if actor[parent[node]] >= 0 else 0)


@kernel
def count_room(first_child: Ints, children: Ints, actor: ByteArray, player: int, most: bool, room: FloatArray) -> None:
    """Count the decisions and actions that a sampled deal visits below each node of a betting tree.

    `room` has the shape (nodes, 3): the player's decisions, their actions, and the decisions of both players. That is
    the maximum for each kind if `most`, otherwise the mean if the opponent's actions are uniformly random.
    """
    for node in range(len(actor) - 1, -1, -1):
        n, first = children[node], first_child[node]
        for kind in range(3):
            whole, top = 0.0, 0.0
            for k in range(n):
                below = room[first + k, kind]
                whole += below
                top = max(top, below)
            if actor[node] == 1 - player:
                whole = top if most else whole / n
            room[node, kind] = whole
        if actor[node] == player:
            room[node, 0] += 1
            room[node, 1] += n
        if actor[node] >= 0:
            room[node, 2] += 1
