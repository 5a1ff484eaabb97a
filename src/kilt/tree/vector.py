"""Games for walks with vectors of hands, and what such walks tell about a strategy.

A strategy here is a table of non-negative numbers over (board, row) × hand: a row for each action of each decision of a
round. Its entries at a decision, scaled to add up to 1, are the probabilities; so regrets and sums of strategies can be
walked as they are.

A walk goes over one board of those that differ only by suits, and takes it that both players play them alike. A table
must not tell suits apart that the board does not: those of solvers never do, and `symmetrise` makes one so.

>>> from kilt.games import load_game
>>> leduc = VectorGame(load_game("leduc"))
>>> round(2 * leduc.exploitability(leduc.table()), 7)  # NashConv of the uniform profile
4.7472222
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import isnan
from queue import SimpleQueue
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, data_type
from kilt.cards.deck import FULL
from kilt.cards.equity import room_to_rank
from kilt.cards.equity_kernels import Sides
from kilt.config import MOST_THREADS
from kilt.errors import GameError, shortened
from kilt.games.game import CHANCE, Game, Position
from kilt.games.holdem import Holdem
from kilt.games.subgame import rivals
from kilt.lanes import LANES
from kilt.tree import vector_kernels as kernels
from kilt.tree.betting import Menu, on_menu
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.judged import Judged
from kilt.tree.parts import entries_through, entries_tree
from kilt.tree.vector_arrays import (
    ANSWER,
    DECISION,
    FOLLOW,
    REVEAL,
    Policy,
    Scope,
    ShowdownLanes,
    Table,
    TableLayout,
    Vectors,
    VectorTree,
    Workspace,
)
from kilt.tree.vector_tree import vector_tree

# What a compiled walk is called with, beside its tables: what it covers, its workspace, [chance node of the first
# round, hand] the values that parts of it exchange, and [hand] the result.
CompiledWalk: TypeAlias = Callable[[Scope, Workspace, FloatArray, FloatArray], None]


# Boards take unequal time: where tables have more than `LARGE` entries, a walk has `SHARES` parts for each thread.
SHARES, LARGE = 4, 16_000_000


class Scheme(NamedTuple):
    """What is drawn for a walk: boards and, with them, the hand of the player who learns or that of the opponent."""

    boards: bool
    mine: bool = False
    theirs: bool = False
    rounds: int | None = None  # after the first whose board is drawn; later ones are walked with all boards


FULL_WIDTH = Scheme(boards=False)


class Walk(NamedTuple):
    """A walk that finds out what a player wins who follows a strategy, or responds to that of the opponent.

    Tables are over (board, row) × hand, unless a layout says otherwise.
    """

    player: int
    tasks: tuple[int, ...]  # in each round, or in all of them: FOLLOW, RESPOND or ANSWER
    own: Table  # the player's strategy; ANSWER writes the response there
    theirs: Table
    own_layout: TableLayout | None = None
    their_layout: TableLayout | None = None


class VectorGame(Judged):
    """A game whose walks treat all hands at once.

    Parameters
    ----------
    game : Game
        A game of the hold'em family, or Bluff.
    menu : Menu, optional
        Picks the raises of a no-limit game.
    threads : int
        Number of threads that share the boards after the first round. Results depend on it by rounding alone.
    by_board : bool
        Where false, tables are over row × hand: strategies that look at no board. They are small in any game.
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
        self.layouts = identity, identity  # of each player's tables
        self.given: dict[int, FloatArray] = {}  # [action, hand] strategies by their first row
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._lock = Lock()
        self._workspaces: dict[str, SimpleQueue[Workspace]] = {}

    @contextmanager
    def workspace(self, dtype: npt.DTypeLike = np.float64) -> Iterator[Workspace]:
        """Scratch memory for a walk, with vectors of a type of numbers: there is one for each thread."""
        kind = data_type(dtype).name
        with self._lock:
            if kind not in self._workspaces:
                self._workspaces[kind] = SimpleQueue()
                for _ in range(self.threads):
                    self._workspaces[kind].put(self._new_workspace(dtype))
        work = self._workspaces[kind].get()
        try:
            yield work
        finally:
            self._workspaces[kind].put(work)

    def _new_workspace(self, dtype: npt.DTypeLike) -> Workspace:
        game, rounds = self.game, len(self.tree.rows)
        places, hands = int(self.tree.nodes.place.max()) + 1, self.shape[1]
        cards = (FULL, 2, 5)  # a game without cards never looks at these
        if isinstance(game, Holdem):
            cards = (game.deck, game.rules.hole_cards, sum(game.rules.board_cards))
        ranking = room_to_rank(*cards, len(self.tree.deck.bits))
        return Workspace(
            vectors=Vectors(
                reach=np.zeros((places, hands), dtype),
                source=np.zeros(places, dtype=np.int64),
                alive=np.ones(places, dtype=np.bool_),
                value=np.zeros((places, hands), dtype),
                scale=np.empty((2, hands), dtype),
                expanded=np.zeros((int(self.tree.nodes.children.max()), hands), dtype),
                second=np.zeros((places, hands), dtype),  # memory that is not touched costs nothing
                blended=np.zeros((places, hands), dtype),
            ),
            board=np.zeros(rounds, dtype=np.int64),
            following=np.zeros(rounds, dtype=np.int64),
            weight=np.ones(rounds),
            cards=np.zeros(self.tree.board.shape[1], dtype=np.int64),
            order=np.empty(hands, dtype=np.uint16),
            ranking=ranking,
            sides=Sides(
                order=np.empty((2, hands), np.uint16),
                ends=np.empty((2, hands), np.uint16),
                cards=np.empty((2, 2, hands), np.uint8),
                times=np.ones((2, 3, hands), np.float32),
                same=np.empty(hands, np.uint16),
            ),
            lanes=ShowdownLanes(
                source=np.zeros(LANES, dtype=np.int64),
                wanted=np.zeros(LANES, dtype=np.int64),
                ready=np.zeros(1, dtype=np.int64),
                reach=np.zeros(LANES * (hands + 1), dtype),
                result=np.zeros(LANES * hands, dtype),
                whole=np.zeros(LANES * hands, dtype),
                tied=np.zeros(LANES * hands, dtype),
                cards=np.zeros(LANES * len(ranking.by_card), dtype),
            ),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a table over (board, row) × hand."""
        return int(self.tree.table_start[-1]), self.tree.prior.shape[1]

    def table(self, dtype: npt.DTypeLike = np.float64) -> Table:
        """A table of zeros, which is the uniform strategy, but for what is given."""
        table = np.zeros(self.shape, dtype=dtype)
        for row, strategy in self.given.items():
            table[row : row + len(strategy)] = strategy
        return table

    def give(self, strategies: Mapping[int, FloatArray]) -> None:
        """Fix strategies of decisions on boards: solvers leave them as they are, and best responses follow them.

        Parameters
        ----------
        strategies : mapping from int to ndarray, shape (actions, hands)
            Probabilities, by the row of the first action in tables over (board, row). Suits that nothing else tells
            apart must be alike in them.
        """
        self.given.update(strategies)
        given = np.zeros(self.shape[0], dtype=np.bool_)
        given[list(self.given)] = True
        identity = self.layouts[0]._replace(given=given)
        self.layouts = identity, identity

    def on_host(self, table: Table) -> Table:
        """A table as an array of NumPy, which it is."""
        return table

    def decisions(self) -> Iterator[tuple[int, int, Position]]:
        """Every decision: its round, the first of its rows among those of a board, and the position."""
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
            if nodes.kind[node] == DECISION and position.actor >= 0:  # not a choice of how the game goes on
                yield r, int(tree.entry_row[entry] + nodes.row[node]), position
                child, actions = int(nodes.first_child[node]), on_menu(position, self.menu)
                below += [(child + a, entry, r, position.after(act)) for a, act in enumerate(actions)]

    def symmetrise(self, table: Table) -> Table:
        """A table in which hands that differ only by suits which their board does not tell apart share their mean."""
        self._check(table)
        even = np.empty_like(table)
        for rows, alike in self._alike():
            even[rows] = np.mean([table[rows][:, moved] for moved in alike], axis=0)
        return even

    def pooled(self, counts: FloatArray) -> FloatArray:
        """Counts in which hands that differ only by suits which their board does not tell apart share their sum."""
        self._check(counts)
        whole = np.empty_like(counts)
        for rows, alike in self._alike():
            times = (alike == np.arange(counts.shape[1])).sum(axis=0)  # that a hand is met as itself
            whole[rows] = np.sum([counts[rows][:, moved] for moved in alike], axis=0) / times
        return whole

    def _alike(self) -> Iterator[tuple[slice, npt.NDArray[np.int32]]]:
        """For each board its rows in tables, and [suits renamed, hand] which hand each becomes on the same board."""
        tree = self.tree
        for r, rows in enumerate(tree.rows):
            for board in range(tree.board_start[r], tree.board_start[r + 1]):
                first = int(tree.table_start[r] + (board - tree.board_start[r]) * rows)
                same = [p for p in range(len(tree.moved)) if tree.symmetry[board] >> p & 1]
                yield slice(first, first + int(rows)), tree.moved[same]

    def _check(self, *tables: Table) -> None:
        for table in tables:
            if table.shape != self.shape:
                raise GameError(f"the table has shape {table.shape}; {self.game.name} needs {self.shape}: see `table`")

    def scope(self, player: int, part: int = 0, parts: int = 1, trunk: int = 1) -> Scope:
        """All boards and all hands, or a part of the boards: what a player's walk covers unless something is drawn."""
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
        """Run a compiled walk, in parts on all threads where it takes all boards.

        Parameters
        ----------
        player : int
            The seat whose values are pulled up.
        walk : CompiledWalk
            Called for each part; parts may run side by side.
        scheme : Scheme
            What is drawn for the walk.
        seed, number : int
            What is drawn depends on these alone.
        dtype : data type
            Of reach and values.
        result : ndarray, shape (hands,), optional
            Takes what each hand of the player is worth, weighted by the opponent's reach.
        parts : int, optional
            Number of parts, 2 or more. Left out: one for each thread or, in a large game, `SHARES`.

        Returns
        -------
        float
            What the player wins, in chips per game.
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
        """The number of rounds after the first whose boards a scheme draws; GameError where it can draw no hands."""
        if scheme.mine and scheme.theirs and isnan(self.tree.rivals):
            raise GameError(
                f"both hands are drawn where all are alike, and {self.game.name} has ranges: draw boards, or one hand"
            )
        return len(self.tree.rows) - 1 if scheme.rounds is None else scheme.rounds

    def spread(self, work: Callable[[int], None], numbers: Sequence[int]) -> None:
        """Do work of each of some numbers, which has nothing to do with that of others, on all threads."""
        list(self._pool.map(work, numbers))

    def both_seats(self, work: Callable[[int], None], scheme: Scheme) -> None:
        """Do work of each seat that has nothing to do with the other's: side by side, unless walks have all threads."""
        if self.threads > 1 and scheme.boards:
            self.spread(work, (0, 1))
        else:
            work(0)
            work(1)

    def walk(self, walk: Walk, scheme: Scheme = FULL_WIDTH, seed: int = 0, number: int = 0) -> float:
        """What the player of a walk wins in chips per game. What is drawn depends on the seed and the walk's number."""
        return self.run(walk.player, self._judging(walk), scheme, seed, number)

    def hand_values(self, player: int, task: int, strategy: Table) -> FloatArray:
        """What each hand of a player wins at the beginning of the game, against the hands that the opponent may hold.

        Parameters
        ----------
        player : int
            Whose hands.
        task : int
            FOLLOW: both follow the strategy; RESPOND: the player takes a best response, and the values are the
            counterfactual best-response values of Burch, Johanson and Bowling (2014).
        strategy : ndarray, shape `shape`
            Entries of a decision are in proportion to its probabilities.

        Returns
        -------
        ndarray, shape (hands,)
            Chips, a mean over the opponent's hands by their weights; 0 for hands that meet none.
        """
        return self.walk_values(Walk(player, (task,), strategy, strategy))

    def walk_values(self, walk: Walk) -> FloatArray:
        """[hand] what each hand of a walk's player wins at the beginning of the game: see `hand_values`."""
        assert isinstance(self.game, Holdem)
        result, tree = np.zeros(self.shape[1]), self.tree
        self.run(walk.player, self._judging(walk), result=result)
        met = rivals(tree.prior[1 - walk.player], self.game.holes, self.game.deck.size)
        return np.divide(result, met, out=np.zeros_like(result), where=met > 0)

    def part(self, walk: Walk, number: int, of: int) -> FloatArray:
        """One of 2 or more parts of a walk: [chance node of the first round, hand] values; those of all parts add up.

        Parts may run side by side: as many at a time as the game has threads.
        """
        return self._values(self._judging(walk), self.scope(walk.player, number, of))

    def flop_values(self, walk: Walk, part: VectorTree, trunk: int = 1) -> FloatArray:
        """[chance node at the end of the trunk, hand] what the boards of a part of the tree are worth to the player.

        Those of all flops add up to what `conclude` takes. Parts may run side by side, one in each thread.

        Parameters
        ----------
        walk : Walk
            Its layouts are those of the part.
        part : VectorTree
            As `flop_tree` gives it, or `BettingPart.within` of that.
        trunk : int
            Number of rounds before the boards that count. After more than one, the part has one board of each.
        """
        return self.part_values(walk.player, self._judging(walk, part), part, trunk=trunk)

    def part_values(
        self, player: int, walk: CompiledWalk, part: VectorTree, dtype: npt.DTypeLike = np.float64, trunk: int = 1
    ) -> FloatArray:
        """`flop_values` of any compiled walk of a player over a part of the tree, on one thread."""
        opened, boards = np.diff(part.entry_start)[trunk], np.diff(part.board_start)[trunk]
        halves = (self.scope(player, half, 2, trunk) for half in range(min(boards, 2)))
        first, *second = (self._values(walk, half, dtype) for half in halves)
        return sum(second, start=first)[:opened]

    def conclude(self, walk: Walk, values: FloatArray, trunk: int = 1) -> float:
        """The end of a walk in parts, from the sum of their values; what the player wins in chips per game.

        Values are those of the chance nodes at the end of the trunk, for each board of its last round in turn.
        """
        return self.conclude_walk(walk.player, self._judging(walk), values, trunk=trunk)

    def conclude_walk(
        self, player: int, walk: CompiledWalk, values: FloatArray, dtype: npt.DTypeLike = np.float64, trunk: int = 1
    ) -> float:
        """`conclude` of any compiled walk of a player."""
        return self._worth(player, walk, self.scope(player, 0, 0, trunk), np.zeros(self.shape[1]), dtype, values)

    def _judging(self, walk: Walk, part: VectorTree | None = None) -> CompiledWalk:
        """The compiled walk of a player who follows a strategy or responds to one: in double precision."""
        own, theirs = self._policy(walk.own, walk.own_layout), self._policy(walk.theirs, walk.their_layout)
        tasks = np.array(walk.tasks if len(walk.tasks) > 1 else walk.tasks * len(self.tree.rows))
        return partial(kernels.walk, part or self.tree, walk.player, tasks, own, theirs)

    def _policy(self, table: Table, layout: TableLayout | None) -> Policy:
        if layout is None:
            self._check(table)
        return Policy(layout or self.layouts[0], table)

    def _values(self, walk: CompiledWalk, scope: Scope, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """[chance node of the first round, hand] values of a part of a walk."""
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
        """What a player wins in chips per game, by a whole walk or by its end; each hand's share goes to `result`."""
        with self.workspace(dtype) as work:
            walk(scope, work, np.zeros((1, 1)) if values is None else values, result)
        return float(self.tree.norm * (self.tree.prior[player] @ result))

    def worth(self, player: int, task: int, strategy: Table, layout: TableLayout | None = None) -> float:
        """What a player wins, in chips per game, who follows a strategy or responds to it.

        Parameters
        ----------
        player, task : int
            Whose winnings, and FOLLOW or RESPOND.
        strategy : ndarray, shape `shape`
            Entries of a decision are in proportion to its probabilities; negative ones count as 0.
        layout : TableLayout, optional
            Where its numbers stand, if not by hand.
        """
        return self.walk(Walk(player, (task,), strategy, strategy, layout, layout))

    def responses(self, strategy: Table) -> Table:
        """A strategy that takes a best response in each seat: 1 for an action that is best, 0 for the others."""
        response = strategy.copy()
        for player in (0, 1):
            self.walk(Walk(player, (ANSWER,), response, strategy))
        return response

    @property
    def uneven(self) -> bool:
        """Whether what both players win does not add up to 0: rake, or tilted payoffs."""
        return bool(self.tree.nodes.rake.any() or self.tree.nodes.extra.size)

    def look(
        self, strategy: Table, path: Sequence[tuple[int, int]], tasks: tuple[int, int] = (FOLLOW, FOLLOW)
    ) -> tuple[Look, Look]:
        """What both players reach and are worth in the block of betting at the end of a path.

        Parameters
        ----------
        strategy : ndarray, shape `shape`
            That both follow.
        path : sequence of (entry, board)
            Of each round, beginning with (0, 0): the chance node that opens its block, and the board by number.
        tasks : tuple of two int
            What each player does in the walk that finds the own values: FOLLOW, or RESPOND to the other's strategy.

        Returns
        -------
        tuple of Look
            What the walks of players 0 and 1 find there. Only what the path leads to is walked.
        """
        self._check(strategy)
        tree, rounds = self.tree, len(self.tree.rows)
        opening = path[-1][0]
        part = entries_tree(tree, entries_through(tree, len(path) - 1, opening, opening + 1))
        begin, end = tree.nodes.block[tree.entry_block[path[-1][0]] :][:2]
        places = tree.nodes.place[begin:end]
        looks = []
        for player in (0, 1):
            scope = self.scope(player)
            scope.board[1 : len(path)] = [board for _, board in path[1:]]
            scope.chance[:] = 1.0
            own = Policy(self.layouts[0], strategy)
            with self.workspace() as work:
                task, result = np.full(rounds, tasks[player]), np.zeros(self.shape[1])
                kernels.walk(part, player, task, own, own, scope, work, np.zeros((1, 1)), result)
                vectors = work.vectors
                reach = vectors.reach[vectors.source[places]] * vectors.alive[places, None]
                looks.append(Look(reach, vectors.value[places]))
        return looks[0], looks[1]


class Look(NamedTuple):
    """What a walk of one player finds in a block of betting, on one board: arrays [node of the block, hand]."""

    reach: FloatArray  # of the opponent; hands that hold a card of the board count too
    value: FloatArray  # to the player in chips, weighted by the opponent's reach; 0 where that is 0


class Walks(NamedTuple):
    """The walks with one strategy, which may be taken in parts, here and elsewhere."""

    game: VectorGame
    of: Callable[[int, int], Walk]  # a player and a task

    def part(self, player: int, task: int, number: int, of: int) -> FloatArray:
        """[chance node of the first round, hand] values of one of several parts: see `VectorGame.part`."""
        return self.game.part(self.of(player, task), number, of)

    def conclude(self, player: int, task: int, parts: Sequence[FloatArray]) -> float:
        """What the player wins in chips per game, from the values of all parts."""
        return self.game.conclude(self.of(player, task), np.sum(parts, axis=0))
