"""Evaluate and solve abstract games by pairs of the players' bucket sequences, without boards.

The table has the probability and the payoff of each pair, so boards are never looked at. A pass covers only the betting
tree, with vectors over bucket sequences [Johanson16 §6.3.1]. It takes the opponent's reach down. At the ends of the
betting, the values are a product with a table of `abstraction.joint`, computed for all ends of a round at once. The
pass then takes values up; at the start of a round, the values of all sequences that continue an earlier one are summed.
Nothing is sampled, and boards are never looked at: an iteration of CFR on 5-bucket limit hold'em takes seconds.

In a best response, each information set takes the action with the highest value, from the last round to the first. With
perfect recall, this is the best response of the abstract game. With imperfect recall, it is a strategy of the abstract
game, and its value a lower bound of the best one's: a player who has forgotten something weighs all histories that may
have led to the information set.

>>> from pathlib import Path
>>> from tempfile import mkdtemp
>>> from kilt.abstraction.abstract_game import AbstractGame
>>> from kilt.abstraction.buckets import AbstractionSpec
>>> from kilt.abstraction.features import Deal
>>> from kilt.abstraction.joint import joint_tables
>>> from kilt.abstraction.pipeline import build
>>> from kilt.games import load_game
>>> leduc = load_game("leduc")
>>> cards = build(AbstractionSpec.from_name("lossless", Deal.from_game(leduc)), Path(mkdtemp()) / "cards")
>>> game = JointGame(AbstractGame(leduc, cards), joint_tables(cards))
>>> round(2 * game.exploitability(np.ones(game.abstract.slots)), 7)  # NashConv of the uniform profile
4.7472222
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import SlotLayout
from kilt.abstraction.joint import JointTables
from kilt.arrays import Array, FloatArray, IntArray, data_type
from kilt.errors import GameError
from kilt.games.game import CHANCE
from kilt.solve import joint_kernels as kernels
from kilt.strategy.model import DecisionLayout
from kilt.tree.betting import SHOWN
from kilt.tree.evaluable import EvaluableGame
from kilt.tree.rule import Discount
from kilt.tree.vector_arrays import FOLLOW

MEMORY = 1 << 27  # bytes of the vectors of last-round blocks in one batch

# A callback for a range of nodes of a round, with their reach or values: see `JointGame.walk`.
OnRange = Callable[[int, int, int, FloatArray], None]


class _Range(NamedTuple):
    """The ends of the betting and the chance nodes among some nodes of a round."""

    roots: Any  # the first nodes of blocks
    ends: list[tuple[Any, Any, Any]]  # (nodes, stakes as a column, the table that multiplies reach)
    chance: list[tuple[Any, int, int]]  # (nodes, first node of the blocks after them, end of these blocks)
    parent: Any  # [opponent's sequence of the next round] its prefix in this one; None in the last round


class JointGame(EvaluableGame):
    """An abstract game as a probability and payoff for each pair of the players' bucket sequences.

    Parameters
    ----------
    abstract : SlotLayout
        Rules, buckets and menu of bets.
    joint : JointTables
        Joint tables of its card abstraction.
    """

    def __init__(self, abstract: SlotLayout, joint: JointTables) -> None:
        self.abstract, self.joint = abstract, joint
        self.nodes, self.first = abstract.betting.nodes, abstract.first
        self.arrays: Any = np  # the array library: NumPy or CuPy
        self.memory = MEMORY
        self._ranges: dict[tuple[int, int, int], _Range] = {}
        rounds = np.asarray(self.nodes.round, dtype=np.int64)
        if (np.diff(rounds) < 0).any():
            raise GameError(f"the betting tree of {abstract.game.name} is not in order of rounds: save it again")
        # [player] showdown winnings per chip at stake, for each pair of sequences; transposed
        wins, loses, folds, takes = 1 + abstract.game.tilts.T
        self._shown = (
            np.ascontiguousarray((wins[0] * joint.wins - loses[0] * joint.loses).T),
            wins[1] * joint.loses - loses[1] * joint.wins,
        )
        self._folded = [(np.ascontiguousarray(each.T), each) for each in joint.pair_probabilities]  # [round][player]
        self._folds, self._takes = folds, takes  # [player] per chip at stake: loss by folding, win by a fold
        self._gain = np.empty(int(np.diff(self.first).max()))

    @cached_property
    def layout(self) -> DecisionLayout:
        """The position of each information set in a strategy array."""
        return DecisionLayout.of_abstract(self.abstract)

    def probabilities(self, strategy: Array) -> FloatArray:
        """Return the probabilities of a strategy's actions.

        At information sets without weights, the player calls.
        """
        layout, weights = self.layout, np.maximum(np.asarray(strategy, dtype=np.float64), 0.0)
        if len(weights) != self.abstract.slots:
            raise GameError(
                f"the strategy has {len(weights):,} entries, but {self.abstract.game.name} with these cards and bets "
                f"has {self.abstract.slots:,}: use the strategy that was made for it"
            )
        start = layout.start[:-1]
        whole = np.add.reduceat(weights, start)
        weights[(start + layout.call)[whole == 0]] = 1.0
        weights /= np.repeat(np.where(whole > 0, whole, 1.0), layout.actions)
        return weights

    def normalised(self, total: FloatArray) -> FloatArray:
        """Convert sums of strategies to probabilities.

        At information sets that were never reached, all actions have the same probability.
        """
        actions = self.layout.actions
        whole = np.repeat(np.add.reduceat(total, self.layout.start[:-1]), actions)
        return np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), np.repeat(1.0 / actions, actions))

    def on_host(self, table: Any) -> Array:
        """Return a strategy as a NumPy array, copied from the GPU if necessary."""
        found: Array = table
        return found

    def shares_of(self, abstract: SlotLayout, strategy: FloatArray, dtype: npt.DTypeLike) -> Array:
        """Convert a strategy's probabilities to the integers of saved strategies.

        The largest integer of `dtype` stands for 1.
        """
        kind = data_type(dtype)
        shares: Array = np.round(self.on_host(strategy) * np.iinfo(kind).max).astype(kind)
        return shares

    @property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, as with modified payoffs."""
        return bool(self.abstract.game.tilts.any())

    def worth(self, player: int, task: int, strategy: Array) -> float:
        """Return a player's winnings with a strategy, or with a best response to it.

        A best response sees only buckets. The unit is chips per game.
        """
        theirs = self.probabilities(strategy)
        if task == FOLLOW:
            return self._worth(player, theirs, theirs, self.pull_values)
        return self._worth(player, theirs.copy(), theirs, self.respond)

    def responses(self, strategy: Array) -> FloatArray:
        """Return the best responses to a strategy in both seats, if players see only buckets."""
        theirs = self.probabilities(strategy)
        answer = theirs.copy()
        for player in (0, 1):
            self._worth(player, answer, theirs, self.respond)
        return answer

    def _worth(self, player: int, own: FloatArray, theirs: FloatArray, pull: Callable[..., None]) -> float:
        """Return the winnings of a player against the strategy `theirs`."""

        def push(r: int, begin: int, end: int, reach: FloatArray) -> None:
            self.push_reach(r, begin, end, 1 - player, theirs, reach[0])

        def pull_up(r: int, begin: int, end: int, value: FloatArray) -> None:
            pull(r, begin, end, player, own, value)

        return self.walk(player, push, pull_up)

    # ── kernels on a range of the nodes of a round ──

    def push_reach(self, r: int, begin: int, end: int, player: int, strategy: FloatArray, reach: FloatArray) -> None:
        """Compute a player's reach probability at each node of a part of the betting tree."""
        kernels.push_reach(self.nodes, self.first, begin, end, player, self.bucket(player, r), strategy, reach)

    def pull_values(self, r: int, begin: int, end: int, player: int, strategy: FloatArray, value: FloatArray) -> None:
        """Compute the value of each node in a part of the betting tree, given the player's strategy."""
        kernels.pull_values(self.nodes, self.first, begin, end, player, self.bucket(player, r), strategy, value)

    def respond(self, r: int, begin: int, end: int, player: int, strategy: FloatArray, value: FloatArray) -> None:
        """Compute a player's best response in a part of the betting tree, with the value of each node."""
        kernels.respond(self.nodes, self.first, begin, end, player, self.bucket(player, r), strategy, value)

    def add_average(
        self, r: int, begin: int, end: int, player: int, discount: Discount, reach: FloatArray, total: FloatArray
    ) -> None:
        """Add a player's current strategy to the sum behind the average strategy.

        The strategy is weighted by the probability of the cards and of the player's own actions.
        """
        likely, there = (
            self.card_probability(player, r),
            (self.nodes, self.first, begin, end, player, self.bucket(player, r)),
        )
        kernels.add_average(*there, likely, discount, reach, total)

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
        """Update a player's regrets, and compute the next strategy by regret matching.

        See `joint_kernels.learn`.
        """
        there = self.nodes, self.first, begin, end, player, self.bucket(player, r)
        kernels.learn(*there, discount, restricted, value, regret, self._gain, strategy)

    def _add_up(self, player: int, r: int, values: FloatArray) -> FloatArray:
        """Sum values over all bucket sequences that continue the same sequence of the round before.

        The result has the shape (blocks, sequences).
        """
        before = len(self.bucket(player, r - 1))
        firsts = np.searchsorted(self.joint.sequences[player][r].parent, np.arange(before))  # they are adjacent
        return np.asarray(np.add.reduceat(values, firsts, axis=1))

    def bucket(self, player: int, r: int) -> npt.NDArray[np.int32]:
        """Return the bucket of each bucket sequence in a given round, for one player."""
        return self.joint.sequences[player][r].bucket

    def card_probability(self, player: int, r: int) -> FloatArray:
        """Return the probability that a player is dealt each bucket sequence."""
        chance: FloatArray = self.joint.pair_probabilities[r].sum(axis=1 - player)
        return chance

    def walk(self, player: int, push: OnRange, pull: OnRange, ways: Sequence[float] = (1.0,)) -> float:
        """Compute values on the betting tree: pass reach probabilities down and values up.

        Each node has one number per bucket sequence.

        Parameters
        ----------
        player : int
            The player whose values are computed.
        push, pull : callable
            Called with a round, the first node and the end of a range of its nodes, and an array: the opponent's reach
            [way, node of the range, sequence], or the player's values [node of the range, sequence]. They fill the
            array, starting from the entries at the openings of the round, or at the ends.
        ways : sequence of float
            Probabilities of the strategies that the opponent chooses from before the game, unseen by the player.

        Returns
        -------
        float
            Winnings of the player, in chips per game.
        """
        opening = self.arrays.asarray(
            np.ones((len(ways), 1, len(self.bucket(1 - player, 0)))) * np.reshape(ways, (-1, 1, 1))
        )
        return float(self._round(player, 0, 0, int(self.nodes.block[1]), opening, push, pull).sum())

    def _round(
        self, player: int, r: int, begin: int, end: int, opening: FloatArray, push: OnRange, pull: OnRange
    ) -> FloatArray:
        """Return the values at the start of some betting of a round, including all later rounds.

        `opening` [way, block, opponent's sequence] is the opponent's reach there.
        """
        here = self._range(player, r, begin, end)
        ways, _, sequences = opening.shape
        reach = self.arrays.empty((ways, end - begin, sequences))
        reach[:, here.roots] = opening
        push(r, begin, end, reach)
        whole = reach[0] if ways == 1 else reach.sum(axis=0)
        value = self.arrays.empty((end - begin, len(self.bucket(player, r))))
        for ends, stake, table in here.ends:
            value[ends] = (whole[ends] @ table) * stake
        for chance, after, last in here.chance:
            following = reach[:, chance][:, :, here.parent]
            value[chance] = self._add_up(player, r + 1, self._round(player, r + 1, after, last, following, push, pull))
        pull(r, begin, end, value)
        openings: FloatArray = value[here.roots]
        return openings

    def _range(self, player: int, r: int, begin: int, end: int) -> _Range:
        """Return the ends and chance nodes among some nodes, prepared for one player. The result is cached."""
        if (player, begin, end) in self._ranges:
            return self._ranges[player, begin, end]
        nodes, betting, put = self.nodes, self.abstract.betting, self.arrays.asarray
        opened = nodes.block[slice(*np.searchsorted(nodes.block, (begin, end)))]
        ends = np.flatnonzero(nodes.leaf[begin:end] >= 0)
        leaf = nodes.leaf[begin:end][ends]
        stake, folded = betting.stake[leaf].astype(np.float64), betting.folded[leaf]
        stake[folded == player] *= -self._folds[player]
        stake[folded == 1 - player] *= self._takes[player]
        tables = (folded == SHOWN, self._shown[player]), (folded != SHOWN, self._folded[r][player])
        found = [(put(ends[which]), put(stake[which, None]), table) for which, table in tables if which.any()]
        after = []
        chance = np.flatnonzero(nodes.actor[begin:end] == CHANCE) + begin
        for some in self._chunks(r + 1, chance) if len(chance) else []:
            last = int(nodes.block.searchsorted(int(nodes.first_child[some[-1]]))) + 1
            after.append((put(some - begin), int(nodes.first_child[some[0]]), int(nodes.block[last])))
        parent = put(self.joint.sequences[1 - player][r + 1].parent) if after else None
        self._ranges[player, begin, end] = _Range(put(opened - begin), found, after, parent)
        return self._ranges[player, begin, end]

    def _chunks(self, r: int, chance: IntArray) -> list[IntArray]:
        """Yield groups of chance nodes that are small enough for their vectors to fit into caches and memory."""
        sequences = sum(len(self.bucket(player, r)) for player in (0, 1))
        sizes = np.diff(self.nodes.block)
        size = max(int(sizes[self.nodes.round[self.nodes.block[:-1]] == r].max()), 1)
        each = max(self.memory // (8 * sequences * size), 1)
        return [chance[at : at + each] for at in range(0, len(chance), each)]
