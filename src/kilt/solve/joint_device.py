"""Evaluate and solve abstract games on a GPU, with a table entry for each pair of bucket sequences.

All blocks of betting in a round are processed at once, with one thread for each block and bucket sequence. Ends of the
betting are products with the tables of `abstraction.joint`, computed by the GPU's linear algebra library. Perfect
recall is required: a bucket then has a single sequence, and no two threads write to the same memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kilt.abstraction.abstract_game import SlotLayout
from kilt.abstraction.joint import JointTables
from kilt.arrays import Array, FloatArray
from kilt.errors import GameError
from kilt.gpu import kernels, require_gpu
from kilt.solve.joint import JointGame
from kilt.tree.gpu.device_arrays import learning_of
from kilt.tree.rule import Discount

SOURCE = Path(__file__).with_name("joint_device.cu")
MEMORY = 1 << 32  # bytes of vectors in one batch
BLOCK = 128  # threads of a block, over bucket sequences

# Record types as in the CUDA file.
RANGE = np.dtype([(name, np.int32) for name in ("block", "begin", "player", "sequences")])


class DeviceJointGame(JointGame):
    """An abstract game in GPU memory: for each pair of bucket sequences, its probability and its payoff.

    `PairTables` accept it like a `JointGame`, and then store their tables on the device. Strategies from the device are
    probabilities; those from the host are converted to probabilities.

    Parameters
    ----------
    abstract : SlotLayout
        Rules, buckets and menu of bets.
    joint : JointTables
        Joint tables of its card abstraction, which must have perfect recall.

    Raises
    ------
    GameError
        If the card abstraction has imperfect recall.
    """

    def __init__(self, abstract: SlotLayout, joint: JointTables) -> None:
        if not joint.perfect_recall:
            raise GameError("joint tables on a GPU need cards with perfect recall: solve on the CPU")
        super().__init__(abstract, joint)
        self.arrays, self._kernel, self.memory = require_gpu(), kernels(SOURCE, np.float64), MEMORY
        put, players, rounds = self.arrays.asarray, (0, 1), range(len(joint.pair_probabilities))
        nodes = self.nodes
        betting = nodes.actor, nodes.children, nodes.first_child, self.first, nodes.block
        self._betting = tuple(put(each.astype(np.int32)) for each in betting)
        self._bucket = [[put(self.bucket(player, r)) for r in rounds] for player in players]
        self._likely = [
            [put(super(DeviceJointGame, self).card_probability(player, r)) for r in rounds] for player in players
        ]
        self._shown = (put(self._shown[0]), put(self._shown[1]))
        self._folded = [(put(first), put(second)) for first, second in self._folded]
        # [player][round] [sequence, sequence of the round before] 1 if the first continues the second
        self._parents = [
            [
                put(np.eye(len(joint.sequences[player][max(r - 1, 0)].bucket))[joint.sequences[player][r].parent])
                for r in rounds
            ]
            for player in players
        ]
        self._start = put(self.layout.start.astype(np.int32))

    def probabilities(self, strategy: Any) -> FloatArray:
        """Return a strategy's action probabilities as an array in GPU memory."""
        if isinstance(strategy, np.ndarray):
            return self._put(super().probabilities(strategy))
        found: FloatArray = strategy
        return found

    def on_host(self, table: Any) -> Array:
        """Copy a table from GPU memory to a NumPy array."""
        found: Array = self.arrays.asnumpy(table)
        return found

    def _put(self, table: Array) -> FloatArray:
        on_device: FloatArray = self.arrays.asarray(table)
        return on_device

    def normalised(self, total: FloatArray) -> FloatArray:
        """Convert sums of strategies to probabilities.

        At information sets that were never reached, all actions have the same probability.
        """
        infosets, strategy = len(self._start) - 1, self.arrays.empty(len(total))
        grid = (-(-infosets // BLOCK), 1, 1)
        self._kernel("normalise")(grid, (BLOCK,), (self._start, np.int32(infosets), total, strategy))
        return strategy  # type: ignore[no-any-return]

    def push_reach(self, r: int, begin: int, end: int, player: int, strategy: FloatArray, reach: FloatArray) -> None:
        """Compute a player's reach probability at each node of a part of the betting tree."""
        self._call("push_reach", r, begin, end, player, strategy, reach)

    def pull_values(self, r: int, begin: int, end: int, player: int, strategy: FloatArray, value: FloatArray) -> None:
        """Compute the value of each node in a part of the betting tree, given the player's strategy."""
        self._call("pull_values", r, begin, end, player, strategy, value)

    def respond(self, r: int, begin: int, end: int, player: int, strategy: FloatArray, value: FloatArray) -> None:
        """Compute a player's best response in a part of the betting tree, with the value of each node."""
        self._call("respond", r, begin, end, player, strategy, value)

    def add_average(
        self, r: int, begin: int, end: int, player: int, discount: Discount, reach: FloatArray, total: FloatArray
    ) -> None:
        """Add a player's current strategy to the sum behind the average strategy.

        The strategy is weighted by the probability of the cards and of the player's own actions.
        """
        how = learning_of(discount, averages=True)
        self._call("add_average", r, begin, end, player, self._likely[player][r], how, reach, total)

    def learn(
        self,
        r: int,
        begin: int,
        end: int,
        player: int,
        discount: Discount,
        value: FloatArray,
        regret: FloatArray,
        strategy: FloatArray,
        *,
        restricted: bool,
    ) -> None:
        """Update a player's regrets, and compute the next strategy by regret matching."""
        how = learning_of(discount, regrets=True, restricted=restricted)
        self._call("learn", r, begin, end, player, how, value, regret, strategy)

    def _call(self, kernel: str, r: int, begin: int, end: int, player: int, *given: Any) -> None:
        """Run GPU code on some nodes of the betting."""
        first, last = np.searchsorted(self.nodes.block, (begin, end)).tolist()
        sequences = len(self.bucket(player, r))
        where = np.array((first, begin, player, sequences), RANGE)
        grid = (-(-sequences // BLOCK), last - first, 1)
        self._kernel(kernel)(grid, (BLOCK,), (*self._betting, where, self._bucket[player][r], *given))

    def _add_up(self, player: int, r: int, values: FloatArray) -> FloatArray:
        """Sum values over all bucket sequences that continue the same sequence of the round before.

        The result has the shape (blocks, sequences).
        """
        summed: FloatArray = values @ self._parents[player][r]
        return summed
