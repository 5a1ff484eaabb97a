"""CFR with tables in memory: any variant, any opponent, with or without sampling.

All options can be combined: a game unabstracted or with a card abstraction for each player [Johanson16 chapter 5], all
boards and hands or sampled ones, and the opponents of `opponents`. All hands of a bucket play the bucket's strategy,
and their regrets are summed over all boards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray, IntArray
from kilt.errors import GameError
from kilt.jit import kernel
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Tables, Turn, walk
from kilt.solve.counter import Restriction
from kilt.solve.learning_kernels import (
    NO_CHOICE,
    PlayerTables,
    RootChoice,
    begin_game,
    finish_pass,
    learn_root,
    restrict,
)
from kilt.solve.opponents import ABSTRACT, Opponent, decisions_of, with_present_names
from kilt.solve.solver import TableState
from kilt.solve.tables.distinct_hands import DistinctHandTables
from kilt.solve.variants import Variant
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW, ArrangedTable, Scope, Table, TableLayout, VectorTree, Workspace
from kilt.tree.walks import FULL_WIDTH, CompiledWalk, Scheme


@kernel
def iterate(
    tree: VectorTree,
    turns: IntArray,
    tasks: IntArray,
    tables: tuple[PlayerTables, PlayerTables, PlayerTables],
    root: RootChoice,
    rows: FloatArray,
    predictive: float,
    sampled: tuple[bool, bool, bool],
    rounds: int,
    seed: np.uint64,
    numbers: tuple[int, int],
    whole: bool,
    scope: Scope,
    work: Workspace,
    sums: FloatArray,
    result: FloatArray,
) -> None:
    """Run CFR iterations on a public tree in compiled code.

    Each row of `rows` has the discount factors of an iteration. An iteration makes a pass over the tree for each of
    `turns`, whose columns are the fields of `Turn`. Small games spend more time between passes than in them; this loop
    keeps them in compiled code. `numbers` are the number of the first pass, and the step from one iteration to the
    next. If `whole` is False, the caller samples the scope of the passes before the call, and concludes them
    afterwards.
    """
    boards, mine, theirs = sampled
    first, stride = numbers
    for t in range(len(rows)):
        discount = Discount(rows[t, 0], rows[t, 1], rows[t, 2], rows[t, 3], rows[t, 4], rows[t, 5], predictive)
        for turn in range(len(turns)):
            player, own, other, task, offset = turns[turn]
            if whole and boards:
                number = np.uint64(first + stride * t + offset)
                draw_scope(tree, player, mine, theirs, rounds, seed, number, scope)
            elif whole:
                for r in range(tasks.shape[1]):
                    scope.mine[r, 1], scope.theirs[r, 1] = tree.hands[player], tree.hands[1 - player]
            walk(tree, player, tasks[task], tables[own], tables[other], discount, scope, work, sums, result)
            if whole:
                finish_pass(tables[own], tables[other], tree.noise, discount, scope)
                restrict(tables[own])
                if player == root.player:
                    learn_root(root, result, discount, tree.prior)


def learning_walk(
    tree: VectorTree, player: int, tasks: IntArray, own: PlayerTables, theirs: PlayerTables, discount: Discount
) -> CompiledWalk:
    """Return a compiled function for a pass of CFR in which a given player learns.

    `VectorGame.run` divides the pass among threads. The pass is an `iterate` of one turn, so that one kernel is
    compiled for games of all sizes. The exception is two tables of different types, between which an iteration cannot
    choose.
    """
    if own.regret.dtype != theirs.regret.dtype:
        return partial(walk, tree, player, tasks, own, theirs, discount)
    turns, rows = np.array([Turn(player, 0, 1, 0, 0)]), np.array([discount[:-1]])
    drawn = (False, False, False), 0, np.uint64(0), (0, 0)
    tables = own, theirs, theirs
    return partial(iterate, tree, turns, tasks[None], tables, NO_CHOICE, rows, discount.predictive, *drawn, False)


def player_tables(
    game: VectorGame | BucketedGame,
    tables: tuple[Table, Table, Table],
    averaged: bool,
    parts: int,
    layouts: tuple[TableLayout, TableLayout],
    restriction: Restriction | None,
) -> list[PlayerTables]:
    """Return each player's tables as arrays for compiled code.

    One of the players may be restricted to a fixed strategy.

    Parameters
    ----------
    game : VectorGame or BucketedGame
        The game of the tables.
    tables : tuple of ndarray
        The table that the next strategy is proportional to, the regrets, and the sums of strategies.
    averaged : bool
        Whether strategies are summed for the average.
    parts : int
        Number of parts of a pass, if sums over buckets are needed.
    layouts : tuple of TableLayout
        Layout of each player's tables.
    restriction : Restriction, optional
        Restricts one player to a fixed strategy.
    """
    strategy, regret, average = (ArrangedTable.of(table, layouts).table for table in tables)
    seats = [PlayerTables.of(layout, (strategy, regret, average), averaged) for layout in layouts]
    if isinstance(game, BucketedGame):
        # A pass sums regrets of the player and the average of the opponent; their rows are separate.
        sums = np.zeros((parts, *regret.shape), regret.dtype)
        seats = [seat._replace(rows=rows, sums=sums) for seat, rows in zip(seats, game.rows, strict=True)]
    if restriction is not None:
        player, fixed, coin = restriction
        fixed = np.ascontiguousarray(fixed, regret.dtype)
        if fixed.shape != regret.shape:
            raise GameError(f"the fixed strategy has shape {fixed.shape}, but the tables have shape {regret.shape}")
        held = seats[player]._replace(fixed=fixed, coin=float(coin))
        if not coin:
            held = held._replace(strategy=game.table(regret.dtype), decisions=decisions_of(game, player))
            restrict(held)
        seats[player] = held
    return seats


class TreeTables(TableState, Tables):
    """A game's regrets and average strategies in memory, with one column per hand or per bucket.

    Parameters
    ----------
    game : VectorGame or BucketedGame
        The game itself, for tables by board and hand; or the game with a card abstraction, for tables by bucket.
    dtype : data type
        Type of the tables.
    scheme, opponent, trunk
        What a pass samples, and against whom players learn: see `opponents.Opponent.named`.
    seed : int
        Random seed. Samples depend only on the seed and the iteration number.
    averaging : bool
        If False, the current strategy replaces the average, which saves memory and time: with CFR+ the current strategy
        converges in practice, although there is no proof [Johanson16 chapter 9].
    root : RootChoice, optional
        A player's decision before the game begins, for subgames that are re-solved: see `resolve`. Requires the
        opponent ``abstract`` and passes over all boards.
    restriction : Restriction, optional
        Restricts one player to a fixed strategy, a table like the game's: see `counter`. Requires the opponent
        ``abstract`` and a variant without prediction.
    """

    def __init__(
        self,
        game: VectorGame | BucketedGame,
        dtype: npt.DTypeLike = np.float64,
        *,
        scheme: str | Scheme = FULL_WIDTH,
        opponent: str = ABSTRACT,
        trunk: int = 0,
        seed: int = 0,
        averaging: bool = True,
        root: RootChoice | None = None,
        restriction: Restriction | None = None,
    ) -> None:
        self.game, self.dtype, self.averaging = game, dtype, averaging
        self._vectors = game.game if isinstance(game, BucketedGame) else game
        self.opponent = Opponent.named(self._vectors, opponent, scheme, trunk, hands=game is self._vectors)
        self.scheme, self.groups = self.opponent.scheme, self.opponent.groups
        self.sampled, self.by_hand = self.scheme.boards, self._vectors is game and self.scheme == FULL_WIDTH
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self._tree, self._root, self._restriction = self._vectors.tree, root or NO_CHOICE, restriction
        if root is not None:
            self._tree = self._tree._replace(prior=self._tree.prior.copy())
            begin_game(root, self._tree.prior)
        self.root_regret = self._root.regret
        self._tasks = np.array([np.full(len(self._tree.rows), FOLLOW), self.opponent.tasks])

    def prepare(self, variant: Variant) -> None:
        """Allocate empty tables for a variant of CFR."""
        game, predictive, apart = self._vectors, variant.predictive > 0, self.opponent.is_separate
        if self._restriction and (apart or predictive):
            raise GameError("a restricted opponent needs self-play and a variant without prediction: use cfr or cfr+")
        self._regret = self.game.table(self.dtype)
        # The next strategy is proportional to this table: a separate one only for predicted regrets.
        self._next = self.game.table(self.dtype) if predictive else self._regret
        self._total = self.game.table(self.dtype) if self.averaging else self._next
        tables = self._next, self._regret, self._total
        plain = self.game is game and self.scheme == FULL_WIDTH and not apart and self._restriction is None
        self._arranged = DistinctHandTables(game, self.game.layouts, tables if plain else ())
        parts = 1 if self.scheme.boards else game.threads
        first, second = player_tables(
            self.game, tables, self.averaging, parts, self._arranged.layouts, self._restriction
        )
        third = self.opponent.tables(game.shape[1], self._regret.dtype, predictive=predictive)
        self._tables, self.other, self.other_next = (first, second, third), third.regret, third.strategy
        learnt = self.opponent.kept_tables(predictive=predictive, averaging=self.averaging)
        self.KEPT = *learnt, *["seed"] * self.sampled, *["root_regret"] * (self._root is not NO_CHOICE)

    @property
    def regret(self) -> Table:
        """The players' regrets, in the layout of the game's strategies."""
        return self._arranged.restore_order(self._regret)

    @property
    def next(self) -> Table:
        """The table from which regret matching computes the next strategy: regrets, or predicted regrets."""
        return self._arranged.restore_order(self._next)

    @property
    def total(self) -> Table:
        """The sums of the players' strategies over all iterations, or the table `next` without an average."""
        return self._arranged.restore_order(self._total)

    def set_regrets(self, row: int, regrets: FloatArray) -> None:
        """Set a decision's regrets (actions, hands) from row `row` on, to start from a known strategy."""
        # Tables of the last round must be ordered by hand.
        table = self._regret if row < self._tree.table_start[-2] else self.regret
        table[row : row + len(regrets)] = regrets

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run CFR iterations, in compiled code if one thread can do all the work."""
        game, scheme, stride = self._vectors, self.scheme, self.opponent.stride
        alone = game.threads == 1 or len(game.tree.rows) == 1 or (scheme.boards and not self.opponent.is_separate)
        if not alone or self.other.dtype != self._regret.dtype:
            super().run(rows, predictive)
            return
        self._arranged.to_distinct_hands()
        turns = np.array([turn for turns in self.groups for turn in turns])
        learnt = turns, self._tasks, self._tables, self._root, rows, predictive
        drawn = scheme[:3], game.rounds_drawn(scheme), np.uint64(self.seed), (stride * self.iterations, stride)
        with game.workspace(self._regret.dtype) as work:
            iterate(self._tree, *learnt, *drawn, True, game.scope(0), work, np.zeros((1, 1)), np.zeros(game.shape[1]))
        self.iterations += len(rows)

    def run_independent_passes(self, work: Callable[[Sequence[Turn]], None]) -> None:
        """Let both players learn in an iteration, in parallel if each has its own opponent."""
        if self.opponent.is_separate:
            self._vectors.call_for_seats(lambda seat: work(self.groups[seat]), self.scheme)
        else:
            super().run_independent_passes(work)

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets and the opponent's average strategy on several threads."""
        self._arranged.to_distinct_hands()
        game, own, theirs = self._vectors, self._tables[turn.own], self._tables[turn.theirs]
        learning = learning_walk(self._tree, turn.player, self._tasks[turn.task], own, theirs, discount)
        dtype = np.float32 if np.float32 in (own.regret.dtype, theirs.regret.dtype) else np.float64
        number = self.opponent.stride * self.iterations + turn.offset
        result = np.zeros(game.shape[1])
        parts = len(own.sums) or None  # one sum over buckets for each thread
        game.run(turn.player, learning, self.scheme, int(self.seed), number, dtype, result, parts)
        if self.game is not self._vectors:
            finish_pass(own, theirs, game.tree.noise, discount, game.scope(0))
        restrict(own)
        if turn.player == self._root.player:
            learn_root(self._root, result, discount, self._tree.prior)

    def restore(self, state: dict[str, Array]) -> None:
        """Restore the state from a checkpoint, even of an older version of kilt."""
        super().restore(with_present_names(state, self.seed))
        if self._root.player >= 0:
            begin_game(self._root, self._tree.prior)
        for seat in self._tables[:2]:
            restrict(seat)

    def stored_average(self) -> Table | ArrangedTable:
        """Return the average strategy as stored now: hands by strength, or in the usual order."""
        return self._arranged.as_stored(self._total)

    def average(self) -> Table:
        """Return the average strategy as weights, which need not sum to 1."""
        return self.total

    def current(self) -> Table:
        """Return the strategy of the next iteration as weights."""
        return self.next
