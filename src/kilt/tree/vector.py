"""Evaluate strategies on a game's public tree, with vectors over all private hands.

A strategy is a table of nonnegative numbers, with a row for each action on each board and a column for each hand.
Normalised, the numbers of a decision are its probabilities; regrets and sums of strategies can therefore be evaluated
without conversion.

Of boards that differ only in suits, only one is evaluated, as if both players played the same on the others. A table
must therefore not distinguish equivalent suits: tables of solvers never do, and `symmetrise` makes any table comply.

>>> from kilt.games import load_game
>>> leduc = VectorGame(load_game("leduc"))
>>> round(2 * leduc.exploitability(leduc.table()), 7)  # NashConv of the uniform profile
4.7472222
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import isnan
from queue import SimpleQueue
from threading import Lock

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, data_type
from kilt.config import MOST_THREADS
from kilt.errors import GameError, shortened
from kilt.games.game import CHANCE, Game, Position
from kilt.games.holdem import Holdem
from kilt.games.subgame import compatible_weights
from kilt.jit import shared_threads
from kilt.tree import vector_kernels as kernels
from kilt.tree.betting import Menu, on_menu
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.equivalent_hands import mean_over_suits, sum_over_suits
from kilt.tree.evaluable import EvaluableGame
from kilt.tree.parts import entries_through, entries_tree
from kilt.tree.strength_order import convert_table, read_rows, with_one_board
from kilt.tree.vector_arrays import (
    ANSWER,
    DECISION,
    FOLLOW,
    REVEAL,
    ArrangedTable,
    Policy,
    Scope,
    Table,
    TableLayout,
    VectorTree,
    Workspace,
)
from kilt.tree.vector_tree import vector_tree
from kilt.tree.walks import FULL_WIDTH, BlockValues, CompiledWalk, Scheme, Walk
from kilt.tree.workspace import new_workspace

# Boards take unequal time: if tables have more than `LARGE` entries, a pass has `SHARES` parts for each thread.
SHARES, LARGE = 4, 16_000_000


class VectorGame(EvaluableGame):
    """A game on its public tree, on which strategies are evaluated for all private hands at once.

    Parameters
    ----------
    game : Game
        A game of the hold'em family, or Bluff.
    menu : Menu, optional
        Selects the raises of a no-limit game.
    threads : int
        Number of threads that share the boards after the first round. It affects results only by rounding.
    by_board : bool
        If False, tables have no rows per board, for strategies that ignore the board. They are small in any game.
    """

    def __init__(self, game: Game, menu: Menu | None = None, threads: int = 1, *, by_board: bool = True) -> None:
        if not 1 <= threads <= MOST_THREADS:
            raise GameError(
                f"the number of threads is {shortened(str(threads))}: use 1 or more, and {MOST_THREADS} at most"
            )
        self.game, self.menu = game, menu
        self.tree = vector_tree(game, menu, by_board=by_board)
        none = np.empty((0, 0), dtype=np.int32), np.empty(0, dtype=np.bool_)
        identity = TableLayout(self.tree.rows, self.tree.table_start, *none)
        self.layouts = identity, identity  # layouts of each player's tables
        self.given: dict[int, FloatArray] = {}  # fixed strategies [action, hand], by their first row
        self.threads = threads
        self._pool = shared_threads(threads)
        self._lock = Lock()
        self._workspaces: dict[str, SimpleQueue[Workspace]] = {}

    @contextmanager
    def workspace(self, dtype: npt.DTypeLike = np.float64) -> Iterator[Workspace]:
        """Lend scratch memory for a pass over the public tree.

        Each thread has one workspace, which later passes reuse.
        """
        kind = data_type(dtype).name
        with self._lock:
            if kind not in self._workspaces:
                self._workspaces[kind] = SimpleQueue()
                for _ in range(self.threads):
                    self._workspaces[kind].put(new_workspace(self.game, self.tree, dtype))
        work = self._workspaces[kind].get()
        try:
            yield work
        finally:
            self._workspaces[kind].put(work)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of strategy tables: one row per action and board, one column per hand."""
        return int(self.tree.table_start[-1]), self.tree.prior.shape[1]

    def table(self, dtype: npt.DTypeLike = np.float64) -> Table:
        """Return a table of zeros, which stands for the uniform strategy.

        Decisions with a fixed strategy have this strategy instead.
        """
        table = np.zeros(self.shape, dtype=dtype)
        for row, strategy in self.given.items():
            table[row : row + len(strategy)] = strategy
        return table

    def fix_strategies(self, strategies: Mapping[int, FloatArray]) -> None:
        """Fix the strategy at some decisions, so that solvers keep it.

        Best responses follow fixed strategies, too.

        Parameters
        ----------
        strategies : mapping from int to ndarray, shape (actions, hands)
            Probabilities, by the row of the first action in tables over (board, row). They must be the same for hands
            that are equal up to equivalent suits.
        """
        self.given.update(strategies)
        given = np.zeros(self.shape[0], dtype=np.bool_)
        given[list(self.given)] = True
        identity = self.layouts[0]._replace(given=given)
        self.layouts = identity, identity

    def on_host(self, table: Table | ArrangedTable) -> Table:
        """Return a strategy table as a NumPy array, with rows by board and action and columns by hand."""
        if not isinstance(table, ArrangedTable):
            return table
        found = table.table.reshape(self.shape).copy()
        with self.workspace() as work:
            convert_table(self.tree, work, found, table.layouts, by_strength=False)
        return found

    def read_rows(self, strategy: Table | ArrangedTable, rows: slice) -> Table:
        """Return one decision's rows of a strategy table, with one column per hand."""
        if isinstance(strategy, ArrangedTable):
            with self.workspace() as work:
                return read_rows(self.tree, work, strategy, rows)
        return strategy[rows]

    def decisions(self) -> Iterator[tuple[int, int, Position]]:
        """Yield each decision of the game: its round, its first table row, and the betting so far.

        The row is counted from the first row of its board.
        """
        tree, nodes = self.tree, self.tree.nodes
        entry_of = {node: entry for entry, node in enumerate(tree.entry_node.tolist())}
        below = [(0, 0, 0, self.game.start())]
        while below:
            node, entry, r, position = below.pop()
            if nodes.kind[node] == REVEAL:
                entry, r = entry_of[node], r + 1
                node = int(nodes.block[tree.entry_block[entry]])
                if position.actor == CHANCE:
                    position = position.after(*position.actions())
            if nodes.kind[node] == DECISION and position.actor >= 0:  # not the choice among continuations
                yield r, int(tree.entry_row[entry] + nodes.row[node]), position
                child, actions = int(nodes.first_child[node]), on_menu(position, self.menu)
                below += [(child + a, entry, r, position.after(act)) for a, act in enumerate(actions)]

    def symmetrise(self, table: Table) -> Table:
        """Average a table's entries over all hands that differ only in equivalent suits."""
        self._check(table)
        return mean_over_suits(self.tree, table)

    def pooled(self, counts: FloatArray) -> FloatArray:
        """Sum the counts of all hands that differ only in equivalent suits.

        Each of these hands gets the sum.
        """
        self._check(counts)
        return sum_over_suits(self.tree, counts)

    def _check(self, *tables: Table) -> None:
        for table in tables:
            if table.shape != self.shape:
                raise GameError(f"the table has shape {table.shape}; {self.game.name} needs {self.shape}: see `table`")

    def scope(self, player: int, part: int = 0, parts: int = 1, trunk: int = 1) -> Scope:
        """Return the boards and hands that a pass covers without sampling.

        With `parts`, it covers one of several parts of the boards.
        """
        rounds = len(self.tree.rows)
        mine, theirs = (np.tile(np.array([0, self.tree.hands[who]]), (rounds, 1)) for who in (player, 1 - player))
        drawn = np.full(rounds, -1), np.zeros(rounds, np.int64)
        return Scope(*drawn, mine, theirs, np.zeros(1), np.zeros(rounds), part, parts, trunk)

    def run(
        self,
        player: int,
        walk: CompiledWalk,
        scheme: Scheme = FULL_WIDTH,
        seed: int = 0,
        number: int = 0,
        dtype: npt.DTypeLike = np.float64,
        result: FloatArray | None = None,
        parts: int | None = None,
    ) -> float:
        """Run a compiled pass over the whole tree, and return a player's winnings in chips per game.

        Without sampling, all threads share the boards.

        Parameters
        ----------
        player : int
            The seat whose values are computed.
        walk : CompiledWalk
            Called for each part; parts may run in parallel.
        scheme : Scheme
            What the pass samples.
        seed, number : int
            Samples depend only on these two.
        dtype : data type
            Type of reach and values.
        result : ndarray, shape (hands,), optional
            Receives the values of the player's hands, weighted by the opponent's reach.
        parts : int, optional
            Number of parts, at least 2. Default: one for each thread, or `SHARES` times as many in a large game.

        Returns
        -------
        float
            Winnings of the player, in chips per game.
        """
        result = np.zeros(self.shape[1]) if result is None else result
        if self.threads == 1 or len(self.tree.rows) == 1 or scheme.boards:
            scope = self.scope(player)
            if scheme.boards:
                key = self.rounds_drawn(scheme), np.uint64(seed % 2**64), np.uint64(number)
                draw_scope(self.tree, player, scheme.mine, scheme.theirs, *key, scope)
            return self._worth(player, walk, scope, result, dtype)
        parts = parts or self.threads * (SHARES if self.shape[0] * self.shape[1] > LARGE else 1)
        scopes = [self.scope(player, part, parts) for part in range(parts)]
        values = self._pool.map(lambda scope: self._values(walk, scope, dtype), scopes)
        return self._worth(player, walk, self.scope(player, 0, 0), result, dtype, np.sum(list(values), axis=0))

    def rounds_drawn(self, scheme: Scheme) -> int:
        """Return the number of rounds after the first in which a board is sampled.

        Raises GameError if hands cannot be sampled.
        """
        if scheme.mine and scheme.theirs and isnan(self.tree.compatible_weight):
            raise GameError(f"{self.game.name} has ranges, so both hands cannot be sampled: sample boards, or one hand")
        return len(self.tree.rows) - 1 if scheme.rounds is None else scheme.rounds

    def call_in_parallel(self, work: Callable[[int], None], numbers: Sequence[int]) -> None:
        """Call a function with each of the given numbers, in parallel on the game's threads.

        The calls must be independent.
        """
        list(self._pool.map(work, numbers))

    def call_for_seats(self, work: Callable[[int], None], scheme: Scheme) -> None:
        """Call a function for each seat, in parallel if that uses more threads."""
        if self.threads > 1 and scheme.boards:
            self.call_in_parallel(work, (0, 1))
        else:
            work(0)
            work(1)

    def walk(self, walk: Walk, scheme: Scheme = FULL_WIDTH, seed: int = 0, number: int = 0) -> float:
        """Return a player's winnings, with a strategy or a best response, in chips per game.

        The `Walk` says which.

        The seed and the number determine all samples.
        """
        return self.run(walk.player, self._judging(walk), scheme, seed, number)

    def hand_values(self, player: int, task: int, strategy: Table) -> FloatArray:
        """Return a player's winnings with each hand at the start of the game, in chips.

        Parameters
        ----------
        player : int
            The player whose hands are evaluated.
        task : int
            FOLLOW: both players follow the strategy; RESPOND: the player takes a best response, and the values are the
            counterfactual best-response values of Burch, Johanson and Bowling (2014).
        strategy : ndarray, shape `shape`
            Probabilities of each decision, up to a factor.

        Returns
        -------
        ndarray, shape (hands,)
            Chips, as a mean over the opponent's hands by their weights; 0 for hands that meet none.
        """
        return self.walk_values(Walk(player, (task,), strategy, strategy))

    def walk_values(self, walk: Walk) -> FloatArray:
        """Return a player's winnings with each hand, by a strategy or a best response, in chips."""
        assert isinstance(self.game, Holdem)
        result, tree = np.zeros(self.shape[1]), self.tree
        self.run(walk.player, self._judging(walk), result=result)
        met = compatible_weights(tree.prior[1 - walk.player], self.game.holes, self.game.deck.size)
        return np.divide(result, met, out=np.zeros_like(result), where=met > 0)

    def part(self, walk: Walk, number: int, of: int) -> FloatArray:
        """Compute one part of an evaluation, and return the values of all hands.

        The values are by chance node of the first round and by hand.

        Parts may run in parallel: as many at a time as the game has threads.
        """
        return self._values(self._judging(walk), self.scope(walk.player, number, of))

    def flop_values(self, walk: Walk, part: VectorTree, trunk: int = 1) -> FloatArray:
        """Return each hand's value in one part of the tree, at each chance node that leads there.

        The shape is (chance nodes at the end of the trunk, hands). `conclude` takes the sum over all flops. Parts may
        run in parallel, one in each thread.

        Parameters
        ----------
        walk : Walk
            The walk, with the part's layouts.
        part : VectorTree
            As returned by `flop_tree`, or by `BettingPart.within` for such a tree.
        trunk : int
            Number of rounds of the trunk. If more than one, the part has one board in each.
        """
        return self.part_values(walk.player, self._judging(walk, part), part, trunk=trunk)

    def part_values(
        self, player: int, walk: CompiledWalk, part: VectorTree, dtype: npt.DTypeLike = np.float64, trunk: int = 1
    ) -> FloatArray:
        """Run a compiled pass over one part of the tree, and return each hand's value.

        It runs on one thread. Values are as in `flop_values`.
        """
        opened, boards = np.diff(part.entry_start)[trunk], np.diff(part.board_start)[trunk]
        halves = (self.scope(player, half, 2, trunk) for half in range(min(boards, 2)))
        first, *second = (self._values(walk, half, dtype) for half in halves)
        return sum(second, start=first)[:opened]

    def conclude(self, walk: Walk, values: FloatArray, trunk: int = 1) -> float:
        """Complete an evaluation from its parts, and return a player's winnings in chips per game.

        `values` is the sum of the values of all parts.

        Values are those of the chance nodes at the end of the trunk, for each board of its last round in turn.
        """
        return self.conclude_walk(walk.player, self._judging(walk), values, trunk=trunk)

    def conclude_walk(
        self, player: int, walk: CompiledWalk, values: FloatArray, dtype: npt.DTypeLike = np.float64, trunk: int = 1
    ) -> float:
        """Complete a compiled pass from its parts, and return a player's winnings in chips per game.

        `values` is the sum of the values of all parts.
        """
        return self._worth(player, walk, self.scope(player, 0, 0, trunk), np.zeros(self.shape[1]), dtype, values)

    def _judging(self, walk: Walk, part: VectorTree | None = None) -> CompiledWalk:
        """Return the compiled pass for a player who follows a strategy or responds to one, in double precision."""
        own, theirs = self._policy(walk.own, walk.own_layout), self._policy(walk.theirs, walk.their_layout)
        tasks = np.array(walk.tasks if len(walk.tasks) > 1 else walk.tasks * len(self.tree.rows))
        return partial(kernels.walk, part or self.tree, walk.player, tasks, own, theirs)

    def _policy(self, table: Table, layout: TableLayout | None) -> Policy:
        if layout is None:
            self._check(table)
        return Policy(layout or self.layouts[0], table)

    def _values(self, walk: CompiledWalk, scope: Scope, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Run one part of a pass, and return its values by chance node of the first round and by hand."""
        values = np.zeros((len(self.tree.entry_node), self.shape[1]))
        with self.workspace(dtype) as work:
            walk(scope, work, values, np.zeros(self.shape[1]))
        return values

    def _worth(
        self,
        player: int,
        walk: CompiledWalk,
        scope: Scope,
        result: FloatArray,
        dtype: npt.DTypeLike = np.float64,
        values: FloatArray | None = None,
    ) -> float:
        """Run a pass, or its end, and return the player's winnings. Each hand's contribution is written to `result`."""
        with self.workspace(dtype) as work:
            walk(scope, work, np.zeros((1, 1)) if values is None else values, result)
        return float(self.tree.norm * (self.tree.prior[player] @ result))

    def worth(self, player: int, task: int, strategy: Table | ArrangedTable) -> float:
        """Return a player's winnings with a strategy, or with a best response to it, in chips per game.

        Parameters
        ----------
        player, task : int
            The player, and FOLLOW or RESPOND.
        strategy : ndarray, shape `shape`, or ArrangedTable
            Probabilities of each decision, up to a factor; negative entries count as 0.
        """
        own, theirs = self._policies(player, strategy)
        return self.walk(Walk(player, (task,), own.table, theirs.table, own.layout, theirs.layout))

    def _policies(self, player: int, strategy: Table | ArrangedTable) -> tuple[Policy, Policy]:
        """Return a strategy as that of a player and that of the opponent."""
        if not isinstance(strategy, ArrangedTable):
            self._check(strategy)
            strategy = ArrangedTable(strategy, self.layouts)
        table, layouts = strategy
        return Policy(layouts[player], table), Policy(layouts[1 - player], table)

    def responses(self, strategy: Table) -> Table:
        """Return both players' best responses to a strategy, as one table.

        It has 1 for the best action of a hand, and 0 for the others.
        """
        response = strategy.copy()
        for player in (0, 1):
            self.walk(Walk(player, (ANSWER,), response, strategy))
        return response

    @property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, as with rake."""
        return bool(self.tree.nodes.rake.any() or self.tree.nodes.extra.size)

    def block_values(
        self,
        strategy: Table | ArrangedTable,
        path: Sequence[tuple[int, int]],
        tasks: tuple[int, int] = (FOLLOW, FOLLOW),
        *,
        tree: VectorTree | None = None,
        values: Sequence[FloatArray] | None = None,
    ) -> tuple[BlockValues, BlockValues]:
        """Return both players' values and reach probabilities in one betting round.

        They are for the boards given by `path`.

        Parameters
        ----------
        strategy : ndarray, shape `shape`, or ArrangedTable
            The strategy that both players follow.
        path : sequence of (entry, board)
            For each round, beginning with (0, 0): the chance node that opens the betting, and the number of the board.
        tasks : tuple of two int
            Task of each player in the walk that computes that player's values: FOLLOW, or RESPOND to the opponent.
        tree : VectorTree, optional
            The part of the tree that the strategy and the path are for. Default: the whole tree.
        values : sequence of two ndarray, optional
            For a path of the first round only: for each player, the sum of the values of all parts of the tree, as
            `conclude` takes them. The strategy then needs only the rows of the first round.

        Returns
        -------
        tuple of BlockValues
            Results of players 0 and 1 in the betting round. Only nodes on the path are computed.
        """
        tree = tree or self.tree
        opening, board = path[-1]
        if isinstance(strategy, ArrangedTable) and strategy.layouts[0].by_strength and len(path) == len(tree.rows):
            with self.workspace() as work:
                strategy = with_one_board(tree, work, strategy, board)  # so that vectors are by hand, too
        part = entries_tree(tree, entries_through(tree, len(path) - 1, opening, opening + 1))
        begin, end = tree.nodes.block[tree.entry_block[opening] :][:2]
        places = tree.nodes.place[begin:end]
        found = []
        for player in (0, 1):
            scope = self.scope(player, parts=1 if values is None else 0)
            scope.board[1 : len(path)] = [board for _, board in path[1:]]
            scope.chance[:] = 1.0
            own, theirs = self._policies(player, strategy)
            with self.workspace() as work:
                task, result = np.full(len(tree.rows), tasks[player]), np.zeros(self.shape[1])
                sums = np.zeros((1, 1)) if values is None else values[player]
                kernels.walk(part, player, task, own, theirs, scope, work, sums, result)
                vectors = work.vectors
                reach = vectors.reach[vectors.source[places]] * vectors.alive[places, None]
                found.append(BlockValues(reach, vectors.value[places]))
        return found[0], found[1]
