"""Solve games by counterfactual regret minimisation (CFR).

In an iteration, each player in turn learns from a pass over the public tree with vectors over all hands [Johanson16
§3.3]. The pass takes the reach of all of the opponent's hands down, and the values of all of the player's hands up. At
a leaf, all pairs of hands are evaluated in linear time.

    at each public node, board by board
        down   reach(child) = reach(node) · σ(action), with σ from regret matching, at the opponent's nodes
               average     += reach(child): the opponent's strategy, weighted by the opponent's own reach
        leaf   value(hand)  = Σ over the opponent's hands of reach · payoff
        up     value(node)  = Σ σ(action) · value(child) at the player's nodes, Σ value(child) at the opponent's
               regret      += value(child) − value(node)

`walk` is this pass in compiled code. A row of `variants` defines how an iteration discounts old regrets and the
average; `tree.rule` defines how new values enter the sums. `Cfr` is the loop over iterations. `Tables` store regrets
and averages and run the passes: in memory, with two bytes per number, on disk, on workers, or on a GPU; see
`solve.tables`.

>>> from kilt.games import load_game
>>> from kilt.solve.tables.memory import TreeTables
>>> from kilt.tree.vector import VectorGame
>>> game = VectorGame(load_game("kuhn"))
>>> solver = Cfr(TreeTables(game), "cfr+")
>>> solver.step(1000)
>>> round(18 * game.expected_value(solver.average()), 3)
-1.0
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from kilt.arrays import Array, FloatArray, IntArray
from kilt.errors import GameError
from kilt.jit import kernel
from kilt.solve.learning_kernels import PlayerTables, add_average, add_regrets, blend
from kilt.solve.variants import Variant, discounts, variant_named
from kilt.tree.board_kernels import batch_end, begin_board, first_row, is_reached, next_visit
from kilt.tree.leaf_kernels import values_of_leaves, values_of_showdowns
from kilt.tree.rule import Discount
from kilt.tree.vector_arrays import FOLLOW, Policy, Scope, VectorTree, Workspace
from kilt.tree.vector_kernels import enter_round, pass_up, pull_values, push_reach


@kernel
def walk(
    tree: VectorTree,
    player: int,
    tasks: IntArray,
    own: PlayerTables,
    theirs: PlayerTables,
    discount: Discount,
    scope: Scope,
    work: Workspace,
    sums: FloatArray,
    result: FloatArray,
) -> None:
    """Run one pass of CFR, which updates one player's regrets and the opponent's average strategy.

    In rounds whose `tasks` entry is ANSWER rather than FOLLOW, the player takes a best response instead of learning.
    """
    nodes, vectors, sides = tree.nodes, work.vectors, work.sides
    policy, coin = Policy(own.layout, own.strategy), theirs.coin
    at_leaves = vectors.blended if coin > 0 else vectors.reach
    work.board[0] = 0
    visit = begin_board(tree, player, scope, 0, work, own.layout.by_strength)
    while visit.depth >= 0:
        # the trunk's average is updated only once if there are parts
        averaging = theirs.averaged and (scope.parts <= 1 or visit.depth >= scope.trunk)
        task = tasks[visit.depth]
        entry, end = tree.entry_start[visit.depth], tree.entry_start[visit.depth + 1]
        while entry < end:
            first, entry = entry, batch_end(tree, entry, end)
            for opened in range(first, entry if visit.arriving else first):
                block, row = tree.entry_block[opened], first_row(tree, theirs.layout, visit, opened)
                comes = True
                for second in range(2 if coin > 0 else 1):  # an opponent's coin may choose a second strategy
                    reach = vectors.second if second else vectors.reach
                    table = theirs.fixed if second else theirs.strategy
                    comes = enter_round(tree, player, scope, visit, opened, sides, vectors, reach)
                    if comes:
                        their_policy = Policy(theirs.layout, table)
                        push_reach(nodes, block, row, player, scope, visit, their_policy, False, vectors, reach)
                if not comes:
                    continue
                if averaging:
                    add_average(nodes, block, row, player, scope, visit, theirs, discount, vectors)
                if coin > 0:
                    blend(nodes, block, player, scope, visit, coin, vectors.reach, vectors.second, vectors.blended)
                values_of_leaves(tree, block, player, scope, visit, work, at_leaves)
            if visit.arriving and visit.leaving:
                values_of_showdowns(tree, first, entry, player, scope, visit, work, at_leaves)
            for opened in range(first, entry if visit.leaving else first):
                if not is_reached(tree, visit, opened, vectors):
                    continue
                block, row = tree.entry_block[opened], first_row(tree, own.layout, visit, opened)
                pull_values(nodes, tree.noise, block, row, player, task, scope, visit, policy, vectors)
                pass_up(tree, scope, visit, opened, sides, vectors.value, result)
                if task == FOLLOW:
                    add_regrets(nodes, tree.noise, block, row, player, scope, visit, own, discount, vectors)
        visit = next_visit(tree, player, scope, work, sums, visit)


class Turn(NamedTuple):
    """One pass of a CFR iteration: the learning player, and both players' tables."""

    player: int
    own: int  # number of a table: 0 and 1 are the players', 2 is that of an opponent who sees all cards
    theirs: int
    task: int  # 0: learn in all rounds, 1: the opponent's tasks
    offset: int  # number of the pass within the iteration, for sampling


SELF_PLAY = Turn(0, 0, 1, 0, 0), Turn(1, 1, 0, 0, 1)


class Tables(ABC):
    """Base class of the tables that store the regrets and average strategies of CFR."""

    iterations: int = 0  # completed iterations
    sampled = False  # whether a pass reaches only a part of the tables: then sums are weighted, not discounted
    by_hand = False  # whether columns are hands and passes reach the whole tables: then steps can be bounded
    groups: Sequence[Sequence[Turn]] = (SELF_PLAY,)  # the turns of an iteration; groups are independent of each other

    def prepare(self, variant: Variant) -> None:  # noqa: B027, not all have something to do
        """Allocate the tables for a variant of CFR.

        Raises GameError if the variant is not supported.
        """

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets and the opponent's average strategy in one pass over the tree."""
        raise NotImplementedError(f"iterations of {type(self).__name__} are compiled: call `run`")

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run several CFR iterations, given the discount factors of each.

        Each row of `rows` has the discount factors of one iteration.

        Subclasses with compiled iterations override this method.
        """
        for row in rows.tolist():
            self.run_independent_passes(partial(self.run_passes, Discount._make([*row, predictive])))
            self.iterations += 1

    def run_passes(self, discount: Discount, turns: Sequence[Turn]) -> None:
        """Run some passes of a CFR iteration one after the other, each for one player."""
        for turn in turns:
            self.learn(turn, discount)

    def run_independent_passes(self, work: Callable[[Sequence[Turn]], None]) -> None:
        """Run the independent passes of a CFR iteration, in parallel if possible.

        `work` is called for each group of passes.
        """
        for turns in self.groups:
            work(turns)

    @abstractmethod
    def average(self) -> Any:
        """Return the average strategy of all iterations.

        Its type is one that the game of these tables can evaluate.
        """

    @abstractmethod
    def current(self) -> Any:
        """Return the strategy of the next iteration."""

    @abstractmethod
    def state(self) -> dict[str, Array]:
        """Return the state of the tables as named arrays, for a checkpoint."""

    @abstractmethod
    def restore(self, state: dict[str, Array]) -> None:
        """Restore the state from the arrays that `state` returned."""


T = TypeVar("T", bound=Tables)


class Cfr(Generic[T]):
    """A solver that runs counterfactual regret minimisation (CFR), with any variant and any tables.

    Parameters
    ----------
    tables : Tables
        Storage for regrets and averages; solvers cannot share it.
    variant : str or Variant
        Name of a row of `variants.VARIANTS`, or a custom `Variant`.
    shares : callable, optional
        Converts a strategy of the tables to the one that is saved and played, such as a blueprint. Default: no
        conversion.
    """

    def __init__(
        self, tables: T, variant: str | Variant = "cfr+", shares: Callable[[Any], Any] = lambda strategy: strategy
    ) -> None:
        self.tables, self.variant, self.shares = tables, variant_named(variant), shares
        if self.variant.inertia and not tables.by_hand:
            raise GameError(
                "only full passes over tables with a column for each hand, on the CPU, support bounded steps: use dcfr+"
            )
        tables.prepare(self.variant)

    @property
    def iterations(self) -> int:
        """The number of completed iterations."""
        return self.tables.iterations

    def step(self, iterations: int) -> None:
        """Run more CFR iterations, in each of which both players learn."""
        tables, variant = self.tables, self.variant
        tables.run(discounts(variant, tables.iterations + 1, iterations, sampled=tables.sampled), variant.predictive)

    def average(self) -> Any:
        """Return the average strategy, not normalised, which converges to an equilibrium."""
        return self.shares(self.tables.average())

    def current(self) -> Any:
        """Return the strategy of the next iteration."""
        return self.shares(self.tables.current())

    def state(self) -> dict[str, Array]:
        """Return the state as arrays, for a checkpoint."""
        return self.tables.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Restore the state from the arrays that `state` returned."""
        self.tables.restore(state)
