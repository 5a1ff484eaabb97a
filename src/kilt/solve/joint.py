"""Abstract games by joint tables: expected values, best responses inside the abstraction, and CFR.

A walk goes over the betting tree alone, with vectors over bucket sequences [Johanson16 §6.3.1]. Reach of the opponent
goes down; at an end of the betting the values are a product with a table of `abstraction.joint`, all ends of a round at
once; values go up, and where a round begins the values of sequences that continue one add up. Nothing is sampled and no
board is looked at: an iteration of CFR on 5-bucket limit hold'em takes seconds.

In a best response each information set takes the action that is worth most, from the last round to the first. With
perfect recall that is the best response of the abstract game. With imperfect recall it is a strategy of the abstract
game, and what it wins a lower bound of what the best one wins: a player who has forgotten something weighs all that may
have been alike.

>>> from pathlib import Path
>>> from tempfile import mkdtemp
>>> from kilt.abstraction.abstract_game import AbstractGame
>>> from kilt.abstraction.buckets import AbstractionSpec
>>> from kilt.abstraction.features import Deal
>>> from kilt.abstraction.joint import joint_tables
>>> from kilt.abstraction.pipeline import build
>>> from kilt.games import load_game
>>> leduc = load_game("leduc")
>>> cards = build(AbstractionSpec.named("lossless", Deal.of(leduc)), Path(mkdtemp()) / "cards")
>>> game = JointGame(AbstractGame(leduc, cards), joint_tables(cards))
>>> round(2 * game.exploitability(np.ones(game.abstract.slots)), 7)  # NashConv of the uniform profile
4.7472222
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import SlotLayout
from kilt.abstraction.joint import JointTables
from kilt.arrays import Array, FloatArray, IntArray
from kilt.errors import GameError
from kilt.games.game import CHANCE
from kilt.solve import joint_kernels as kernels
from kilt.solve.counter import Restriction
from kilt.solve.solver import TableState
from kilt.solve.variants import Discount, Variant, discounts, variant_named
from kilt.strategy.model import DecisionLayout
from kilt.tree.betting import SHOWN

MEMORY = 1 << 27  # bytes of the vectors of last-round blocks that are walked at once

# Called on a range of nodes of a round, with their reach or values: see `JointGame.walk`.
OnRange = Callable[[int, int, int, FloatArray], None]


class JointGame:
    """An abstract game as betting tree × joint tables.

    Parameters
    ----------
    abstract : SlotLayout
        Rules, buckets and menu.
    joint : JointTables
        Those of its cards.
    """

    def __init__(self, abstract: SlotLayout, joint: JointTables) -> None:
        self.abstract, self.joint = abstract, joint
        self.nodes, self.first = abstract.betting.nodes, abstract.first
        rounds = np.asarray(self.nodes.round, dtype=np.int64)
        if (np.diff(rounds) < 0).any():
            raise GameError(f"the betting tree of {abstract.game.name} is not in order of rounds: write it anew")
        # [player] what a sequence wins at showdowns from each of the opponent's, for each chip at stake; transposed
        wins, loses, folds, takes = 1 + abstract.game.tilts.T
        self._shown = (
            np.ascontiguousarray((wins[0] * joint.wins - loses[0] * joint.loses).T),
            wins[1] * joint.loses - loses[1] * joint.wins,
        )
        self._folded = [(np.ascontiguousarray(each.T), each) for each in joint.together]  # [round][player]
        self._folds, self._takes = folds, takes  # [player] chips for each at stake, lost by folding and won by a fold

    @cached_property
    def layout(self) -> DecisionLayout:
        """Where the information sets are in tables over slots."""
        return DecisionLayout.of_abstract(self.abstract)

    def probabilities(self, strategy: Array) -> FloatArray:
        """[slot] a strategy as probabilities; where a blueprint has none, it calls."""
        layout, weights = self.layout, np.maximum(np.asarray(strategy, dtype=np.float64), 0.0)
        if len(weights) != self.abstract.slots:
            raise GameError(
                f"the strategy has {len(weights):,} entries, and {self.abstract.game.name} with these cards and bets "
                f"has {self.abstract.slots:,}: use the one that was made for it"
            )
        start = layout.start[:-1]
        whole = np.add.reduceat(weights, start)
        weights[(start + layout.call)[whole == 0]] = 1.0
        weights /= np.repeat(np.where(whole > 0, whole, 1.0), layout.actions)
        return weights

    def expected_value(self, strategy: Array, player: int = 0) -> float:
        """What a player wins when both follow a strategy, in chips per game."""
        both = self.probabilities(strategy)
        return self._worth(player, both, both, kernels.pull_values)

    def response_values(self, strategy: Array) -> tuple[float, float]:
        """What a best response that sees buckets wins in seats 0 and 1, in chips per game."""
        theirs = self.probabilities(strategy)
        first, second = (self._worth(player, theirs.copy(), theirs, kernels.respond) for player in (0, 1))
        return first, second

    def responses(self, strategy: Array) -> FloatArray:
        """[slot] a strategy that takes a best response of the abstract game in each seat."""
        theirs = self.probabilities(strategy)
        answer = theirs.copy()
        for player in (0, 1):
            self._worth(player, answer, theirs, kernels.respond)
        return answer

    def exploitability(self, strategy: Array) -> float:
        """What best responses that see buckets win more than the strategy, mean over both seats, in chips per game."""
        won = sum(self.response_values(strategy))
        if self.abstract.game.tilts.any():  # what both win is not 0 then
            won -= sum(self.expected_value(strategy, player) for player in (0, 1))
        return max(won / 2, 0.0)

    def _worth(self, player: int, own: FloatArray, theirs: FloatArray, pull: Callable[..., None]) -> float:
        """What a player wins against the strategy `theirs`."""

        def push(r: int, begin: int, end: int, reach: FloatArray) -> None:
            kernels.push_reach(
                self.nodes, self.first, begin, end, 1 - player, self.bucket(1 - player, r), theirs, reach[0]
            )

        def pull_up(r: int, begin: int, end: int, value: FloatArray) -> None:
            pull(self.nodes, self.first, begin, end, player, self.bucket(player, r), own, value)

        return self.walk(player, push, pull_up)

    def bucket(self, player: int, r: int) -> npt.NDArray[np.int32]:
        """[sequence] the bucket of a player in a round."""
        return self.joint.sequences[player][r].bucket

    def likely(self, player: int, r: int) -> FloatArray:
        """[sequence] probability that a player's cards come by it."""
        chance: FloatArray = self.joint.together[r].sum(axis=1 - player)
        return chance

    def walk(self, player: int, push: OnRange, pull: OnRange, ways: Sequence[float] = (1.0,)) -> float:
        """Take the opponent's reach down the betting tree and the values of `player` up.

        Parameters
        ----------
        player : int
            Whose values are asked for.
        push, pull : callable
            Called with a round, the first node of a range of it, the end of the range, and [way, node of the range,
            sequence] the opponent's reach, or [node of the range, sequence] the values to the player: to write them
            all, from those at the openings of rounds or at the ends.
        ways : sequence of float
            Probabilities of the strategies that the opponent chooses from before the game; the player sees none of it.

        Returns
        -------
        float
            What the player wins, in chips per game.
        """
        opening = np.ones((len(ways), 1, len(self.bucket(1 - player, 0)))) * np.reshape(ways, (-1, 1, 1))
        return float(self._round(player, 0, 0, int(self.nodes.block[1]), opening, push, pull).sum())

    def _round(
        self, player: int, r: int, begin: int, end: int, opening: FloatArray, push: OnRange, pull: OnRange
    ) -> FloatArray:
        """[block, sequence] values at the openings of some blocks, nodes `begin` to `end`, and all that follows them.

        `opening` [way, block, opponent's sequence] is the opponent's reach there.
        """
        nodes, betting = self.nodes, self.abstract.betting
        first_block = int(np.searchsorted(nodes.block, begin))
        ways, blocks, sequences = opening.shape
        roots = nodes.block[first_block : first_block + blocks] - begin
        reach = np.empty((ways, end - begin, sequences))
        reach[:, roots] = opening
        push(r, begin, end, reach)
        whole = reach[0] if ways == 1 else reach.sum(axis=0)
        value = np.empty((end - begin, len(self.bucket(player, r))))
        ends = np.flatnonzero(nodes.leaf[begin:end] >= 0)
        leaf = nodes.leaf[begin:end][ends]
        stake, folded = betting.stake[leaf].astype(np.float64), betting.folded[leaf]
        stake[folded == player] *= -self._folds[player]
        stake[folded == 1 - player] *= self._takes[player]
        for which, table in ((folded == SHOWN, self._shown[player]), (folded != SHOWN, self._folded[r][player])):
            if which.any():
                value[ends[which]] = (whole[ends[which]] @ table) * stake[which, None]
        chance = np.flatnonzero(nodes.actor[begin:end] == CHANCE)
        if len(chance):
            mine, theirs = (self.joint.sequences[who][r + 1].parent for who in (player, 1 - player))
            firsts = np.searchsorted(mine, np.arange(value.shape[1]))  # sequences that continue one stand together
            for some in self._chunks(r + 1, chance + begin):
                child = int(nodes.first_child[some[0]])
                last = int(np.searchsorted(nodes.block, nodes.first_child[some[-1]])) + 1
                following = reach[:, some - begin][:, :, theirs]
                won = self._round(player, r + 1, child, int(nodes.block[last]), following, push, pull)
                value[some - begin] = np.add.reduceat(won, firsts, axis=1)
        pull(r, begin, end, value)
        openings: FloatArray = value[roots]
        return openings

    def _chunks(self, r: int, chance: IntArray) -> list[IntArray]:
        """Chance nodes before blocks of a round, in groups whose vectors fit the caches and memory."""
        sequences = sum(len(self.bucket(player, r)) for player in (0, 1))
        size = max(int(np.diff(self.nodes.block)[self.nodes.round[self.nodes.block[:-1]] == r].max()), 1)
        each = max(MEMORY // (8 * sequences * size), 1)
        return [chance[at : at + each] for at in range(0, len(chance), each)]


class JointCfr(TableState):
    """The CFR family on an abstract game by joint tables; players learn in turn, and one may be restricted.

    Parameters
    ----------
    game : JointGame
        The abstract game.
    variant : str or Variant
        The name of a row of `variants.VARIANTS`, or a row of one's own.
    restriction : Restriction, optional
        A player who is held to a strategy in part, by a table over slots: see `counter`.
    """

    KEPT = ("regret", "total", "strategy")

    def __init__(
        self, game: JointGame, variant: str | Variant = "cfr+", restriction: Restriction | None = None
    ) -> None:
        self.game, self.variant, self.iterations = game, variant_named(variant), 0
        self.regret, self.total = np.zeros(game.abstract.slots), np.zeros(game.abstract.slots)
        self.strategy = np.repeat(1.0 / game.layout.actions, game.layout.actions)
        self._gain = np.empty(int(np.diff(game.first).max()))
        self._held = restriction or Restriction(-1, np.empty(0))
        self._played = self.strategy
        self._fixed = np.ascontiguousarray(self._held.fixed, dtype=np.float64)
        if restriction and not restriction.coin:
            bound = np.add.reduceat(self._fixed, game.layout.start[:-1])
            acts = np.repeat(game.layout.actor, game.layout.actions) == restriction.player
            self._fixed = np.where(acts, self._fixed, 0.0)
            self._free = np.where(acts, np.repeat(np.maximum(1 - bound, 0.0), game.layout.actions), 1.0)
            self._played = np.empty_like(self.strategy)
            self._restrict()

    def _restrict(self) -> None:
        """Write what players do, one of whom is held to `fixed` in part [Johanson16 equation 6.1]."""
        if self._played is not self.strategy:
            np.multiply(self._free, self.strategy, out=self._played)
            self._played += self._fixed

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave."""
        super().restore(state)
        self._restrict()

    def step(self, iterations: int) -> None:
        """Run `iterations` more CFR iterations; both players are updated, in turn."""
        for row in discounts(self.variant, self.iterations + 1, iterations):
            for player in (0, 1):
                self._walk(player, Discount._make([*row.tolist(), self.variant.predictive]))
                self._restrict()
            self.iterations += 1

    def _walk(self, player: int, discount: Discount) -> None:
        """Let a player learn against the other's strategy, which is averaged."""
        game, other, coin = self.game, 1 - player, self._held.coin
        nodes, first, strategy, played = game.nodes, game.first, self.strategy, self._played
        # Before the game, a coin decides between what the opponent is held to and what they have learnt.
        thrown = other == self._held.player and coin > 0
        ways, followed = ((coin, 1 - coin), (self._fixed, strategy)) if thrown else ((1.0,), (played,))

        def push(r: int, begin: int, end: int, reach: FloatArray) -> None:
            there = nodes, first, begin, end, other, game.bucket(other, r)
            for table, along in zip(followed, reach, strict=True):
                kernels.push_reach(*there, table, along)
            kernels.add_average(*there, game.likely(other, r), discount, reach[-1], self.total)

        def pull(r: int, begin: int, end: int, value: FloatArray) -> None:
            there = nodes, first, begin, end, player, game.bucket(player, r)
            kernels.pull_values(*there, played, value)
            kernels.learn(*there, discount, played is not strategy, value, self.regret, self._gain, strategy)

        game.walk(player, push, pull, ways)

    def average(self) -> FloatArray:
        """[slot] the average strategy; uniform where nobody has been."""
        actions = self.game.layout.actions
        whole = np.repeat(np.add.reduceat(self.total, self.game.layout.start[:-1]), actions)
        return np.where(whole > 0, self.total / np.where(whole > 0, whole, 1.0), np.repeat(1.0 / actions, actions))

    def current(self) -> FloatArray:
        """[slot] what regret matching plays now."""
        return self.strategy.copy()
