"""Split a game into its first rounds and subgames, which are processed one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import ceil, log2
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import artifact, machine
from kilt.arrays import FloatArray, IntArray, data_type
from kilt.cards.deck import FULL
from kilt.cards.equity import ranking_workspace
from kilt.cards.equity_kernels import Ranking
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import HandTables
from kilt.errors import GameError
from kilt.games.holdem import Holdem
from kilt.paces import pace
from kilt.solve.tables.disk_kernels import PartRows, count_hands
from kilt.tree.parts import BettingPart, flop_before, flop_tree, following_boards
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, Table, TableLayout, VectorTree

Values = FloatArray  # [chance node of the trunk, hand] values of a subgame

FINENESS = 18  # bits of the largest regret of one pass; 13 more bits are left for sums
SIZE = 64 << 20  # approximate limit of a subgame's table in bytes: a dozen fit into any memory
MOST_TRUNK = 2  # largest number of rounds of the trunk
FEWEST = 32  # approximate number of subgames of a small game: enough to overlap reading, computing and writing
PER_NUMBER = pace("disk", "pass")  # seconds per number of the tables in a pass: the walk, with packing in parallel


class LoadedSubgame(NamedTuple):
    """A subgame in memory: its part of the public tree, and its tables.

    The tables begin with the rows of the first rounds.
    """

    number: int
    tree: VectorTree
    layouts: tuple[TableLayout, TableLayout]  # of each player's tables
    regret: Table
    average: Table  # sums of strategies; `regret` if there is no average
    sums: Table  # scratch for sums over the hands of buckets: see `PlayerTables`


class SubgameMemory(NamedTuple):
    """Memory for one subgame's tables, reused for many subgames."""

    regret: Table
    average: Table
    sums: Table


class Subgames:
    """A game split into its first rounds, which stay in memory, and subgames, which are loaded in turn.

    Parameters
    ----------
    game : VectorGame
        A game of at least two rounds. Its threads process subgames in parallel.
    dtype : data type
        Type of the numbers in computations.
    size : int, optional
        Approximate size of a subgame's table in bytes. Default: a 32nd of the game's table if a subgame can hold
        several flops, but at most 64 MB. A flop whose table is larger is cut by the betting before it. If that is not
        enough, the trunk has two rounds, and a subgame is a flop with at least one betting sequence of both rounds
        [Johanson16 chapter 9].
    trunk : int, optional
        Number of rounds of the trunk, 1 or 2. Default: as few as possible.

    Raises
    ------
    GameError
        If the game has only one round, or too few rounds for `trunk`.
    """

    def __init__(
        self,
        game: VectorGame,
        dtype: npt.DTypeLike = np.float64,
        size: int | None = None,
        trunk: int | None = None,
    ) -> None:
        tree = game.tree
        if len(tree.rows) < 2:
            raise GameError(f"{game.game.name} has only one round, and therefore no subgames: use cfr+")
        if not tree.rows[1:].all():
            raise GameError(f"{game.game.name} was opened without tables by board, which subgames are made of")
        self.game, self.dtype, self.size = game, data_type(dtype), size
        row, deepest = game.shape[1] * self.dtype.itemsize, min(MOST_TRUNK, len(tree.rows) - 1)
        enough = (rounds for rounds in range(1, deepest) if row * _rows_apart(tree, rounds).max() <= (size or SIZE))
        self.trunk_rounds = next(enough, deepest) if trunk is None else trunk
        if not 1 <= self.trunk_rounds <= deepest:
            raise GameError(f"the trunk is {trunk} rounds; {game.game.name} has {len(tree.rows)}: use 1 to {deepest}")
        rows = _rows_apart(tree, self.trunk_rounds)
        self.trunk_rows = int(tree.table_start[self.trunk_rounds])
        # trunk rows that precede those of a subgame in its table
        self.lead_rows = int(tree.rows[: self.trunk_rounds].sum())
        self.entries = rows.shape[1]  # chance nodes at the end of the trunk, on each board of its last round
        self.opened = self.entries * int(np.diff(tree.board_start)[self.trunk_rounds - 1])  # on all boards
        # [subgame, 4] first and end flop, first and end chance node of the trunk
        self.cuts = _cuts(row * rows, size, together=self.trunk_rounds == 1)
        self.count = len(self.cuts)
        # [subgame] rows without the trunk's
        self.sizes = np.array([rows[a:b, c:d].sum() for a, b, c, d in self.cuts.tolist()])
        self.rows = self.lead_rows + int(self.sizes.max())  # of the largest subgame's table
        self._own_rows = [_rows_of_player(tree, player) for player in (0, 1)]
        known, self._symmetry = np.unique(tree.symmetry, return_inverse=True)
        permutations = [[p for p in range(len(tree.moved)) if mask >> p & 1] for mask in known.tolist()]
        self._alike = np.stack([tree.moved[same].min(axis=0) for same in permutations])
        self._bits = tree.deck.bits if tree.poker else np.zeros(game.shape[1], np.int64)
        self._held = np.zeros(len(tree.board), np.int64)
        for r, cards in enumerate(tree.board_size.tolist() if tree.poker else ()):
            boards = slice(*tree.board_start[r : r + 2].tolist())
            self._held[boards] = tree.strengths.card_bit[tree.board[boards, :cards]].sum(axis=1)
        self._tables = SimpleQueue[SubgameMemory]()
        self._made = 0

    @property
    def width(self) -> int:
        """The number of columns of the tables: one for each hand."""
        return self.game.shape[1]

    @property
    def fingerprint(self) -> str:
        """A short hash of the game and of its split into subgames."""
        tree = self.game.tree
        # Without cuts by betting, the hash is that of earlier versions, which cut by flops alone.
        flops = np.append(self.cuts[:, 0], self.cuts[-1, 1])
        way = (self.cuts, np.array(self.trunk_rounds)) if self.by_betting else (flops,)
        parts = tree.nodes.kind, tree.nodes.stake, tree.board, tree.prior, *way
        return artifact.fingerprint(*map(np.ascontiguousarray, parts))

    @property
    def by_betting(self) -> bool:
        """Whether subgames differ in the bets of the first rounds as well as in boards."""
        return bool((self.cuts[:, 3] - self.cuts[:, 2] < self.entries).any()) or self.trunk_rounds > 1

    @cached_property
    def _hands(self) -> IntArray:
        """The number of distinct hands on each board. Hands that are equal up to suits count once."""
        hands = np.zeros(len(self._held), np.int64)
        count_hands(self._alike, self._symmetry, self._bits, self._held, hands)
        return hands

    @property
    def numbers(self) -> int:
        """The number of regrets in all files: one for each action of each hand on each board.

        Hands that are equal up to suits count once.
        """
        tree = self.game.tree
        hands = np.add.reduceat(self._hands, tree.board_start[:-1])
        return int(sum((hands * tree.rows)[self.trunk_rounds :]))

    @property
    def default_scale(self) -> float:
        """The factor that converts regrets in chips to the integers stored in files.

        The largest possible regret of one pass then has `FINENESS` bits.
        """
        tree = self.game.tree
        most = max(np.abs(tree.nodes.stake).max(), np.abs(tree.dice.called).max())
        return 2.0 ** (FINENESS - ceil(log2(2 * most * tree.prior.sum(axis=1).max())))

    @cached_property
    def abreast(self) -> int:
        """The number of subgames processed at the same time.

        It keeps all threads busy, but uses at most half of the memory.
        """
        one = self.memory_of(1) - self.memory_of(0)
        room = machine.available_memory() // 2 - self.memory_of(0)
        return min(subgames_abreast(self.game.threads), max(1, room // one))

    @property
    def memory(self) -> int:
        """The memory in bytes for the first rounds and the subgames processed at the same time.

        Average strategies are not included.
        """
        return self.memory_of(self.abreast)

    def memory_of(self, abreast: int) -> int:
        """Return the memory in bytes for processing `abreast` subgames at the same time.

        Average strategies are not included.
        """
        rows, values = 2 * abreast * self.rows + self.trunk_rows, self.opened * self.game.shape[1]
        return int(rows * self.width * self.dtype.itemsize + 8 * values)

    @property
    def seconds(self) -> float:
        """The estimated seconds of an iteration."""
        return 2 * PER_NUMBER * self.game.shape[0] * self.game.shape[1] / self.game.threads

    def entry_slice(self, number: int) -> slice:
        """Return the chance nodes that lead to a subgame, as a slice of those that end the first rounds."""
        flop, _, begin, end = self.cuts[number].tolist()
        before = flop * self.entries if self.trunk_rounds > 1 else 0
        return slice(before + begin, before + end)

    def lead_table(self, number: int, trunk: Table) -> Table:
        """Return the rows of the first rounds with which a subgame's table begins.

        The rows are those of the boards that lead to the subgame.
        """
        tree, flop = self.game.tree, int(self.cuts[number, 0])
        if self.trunk_rounds == 1:
            return trunk
        first = int(tree.rows[0] + flop * tree.rows[1])
        return np.concatenate([trunk[: tree.rows[0]], trunk[first : first + tree.rows[1]]])

    def betting(self, number: int) -> BettingPart:
        """Return the part of the betting tree that leads to a subgame or belongs to it."""
        return self._betting(*self.cuts[number, 2:].tolist())

    @cached_property
    def _betting(self) -> Callable[[int, int], BettingPart]:
        return lru_cache(maxsize=1024)(partial(BettingPart.through, self.game.tree, self.trunk_rounds))

    def part(self, number: int) -> VectorTree:
        """Return a subgame's part of the public tree.

        It includes the parts of the first rounds that lead to the subgame.
        """
        return self.betting(number).within(flop_tree(self.game.tree, *self.cuts[number, :2].tolist()))

    def layouts(self, number: int | None = None, part: VectorTree | None = None) -> tuple[TableLayout, TableLayout]:
        """Return the layout of a subgame's table for each player.

        `part` is the subgame's part of the tree. Without a subgame, the layouts are those of the first rounds.
        """
        tree = part or self.game.tree
        boards = np.diff(tree.board_start)
        if part is None:
            boards[self.trunk_rounds :] = 0
        start = np.concatenate([[0], np.cumsum(boards * tree.rows)])
        layout = self.game.layouts[0]._replace(rows=tree.rows, start=start)
        return layout, layout

    def bucket_rows(self, player: int, number: int, layout: TableLayout) -> IntArray:
        """Return an empty array, because players see hands instead of buckets.

        In subclasses whose players see buckets, it has the rows of a player's decisions.
        """
        return np.empty(0, np.int64)

    def rows_in(self, player: int, number: int, round_: int) -> IntArray:
        """Return the rows of a player's decisions on a board in one round of a subgame."""
        begin, end = self.betting(number).rows[round_].tolist()
        rows: IntArray = self._own_rows[player][round_]
        first, last = np.searchsorted(rows, [begin, end])
        return np.asarray(rows[first:last] - begin)

    def locate_row(self, row: int) -> tuple[int, int, int]:
        """Find where subgames store a row of the whole game's table: the subgame, its round and its row.

        The row counts within the subgame's table. The row must belong to a round after the trunk.
        """
        tree = self.game.tree
        r = int(np.searchsorted(tree.table_start, row, side="right")) - 1
        board, within = divmod(row - int(tree.table_start[r]), int(tree.rows[r]))
        flop = flop_before(tree, r, board + int(tree.board_start[r]))
        number = int(np.searchsorted(self.cuts[:, 1], flop - tree.board_start[1], side="right"))
        while self.betting(number).rows[r, 1] <= within:
            number += 1
        begin, end = self.betting(number).rows[r].tolist()
        opening = int(following_boards(tree, tree.board_start[1] + self.cuts[number, :1])[r - 1][0])
        return number, r, (board + int(tree.board_start[r]) - opening) * (end - begin) + within - begin

    def clear(self, table: Table) -> None:
        """Do nothing, because reading a subgame overwrites its memory completely.

        Subclasses whose tables differ in size set the memory to 0.
        """

    def rows_of(self, player: int, number: int, layout: TableLayout) -> tuple[list[PartRows], int]:
        """Return the rows of a subgame's table that a player's file stores.

        Also returns how many numbers these are.
        """
        tree, found, numbers = self.game.tree, [], 0
        for r, edges in enumerate(following_boards(tree, tree.board_start[1] + self.cuts[number, :2]), start=1):
            if r < self.trunk_rounds:
                continue
            boards = slice(*edges.tolist())
            rows = self.rows_in(player, number, r)
            size = int(tree.board_size[r])
            tables, ranking = self._strengths(size)
            part = PartRows(
                start=int(layout.start[r]),
                stride=int(np.diff(self.betting(number).rows[r])[0]),
                rows=rows,
                alike=self._alike,
                symmetry=self._symmetry[boards],
                bits=self._bits,
                held=self._held[boards],
                cards=np.ascontiguousarray(tree.board[boards, :size], np.int64),
                ranked=tree.poker,
                deck=tree.deck,
                tables=tables,
                ranking=ranking,
            )
            found.append(part)
            numbers += int(self._hands[boards].sum()) * len(rows)
        return found, numbers

    def _strengths(self, board_size: int) -> tuple[HandTables, Ranking]:
        """Return lookup tables for hand strengths on boards of one size, and scratch memory to rank hands."""
        game = self.game.game
        deck, hole_cards = (game.deck, game.rules.hole_cards) if isinstance(game, Holdem) else (FULL, 2)
        ranking = ranking_workspace(deck, hole_cards, board_size, len(self.game.tree.deck.bits))
        return hand_tables(board_size + hole_cards, deck), ranking

    def stream(
        self,
        read: Callable[[int, SubgameMemory], LoadedSubgame | Values],
        walk: Callable[[LoadedSubgame], Values],
        write: Callable[[LoadedSubgame, Values], None] | None = None,
        numbers: Iterable[int] | None = None,
    ) -> Iterator[Values]:
        """Read, process and write subgames in parallel, and yield each subgame's values in order.

        Parameters
        ----------
        read : callable
            Called with the number of a subgame and scratch memory, in separate threads. Returns the loaded subgame; or
            its values if they are already known, and then neither `walk` nor `write` is called.
        walk : callable
            Called with the loaded subgame, on as many threads as the game has. Returns the subgame's values.
        write : callable, optional
            Called with the subgame and its values, in separate threads.
        numbers : iterable of int, optional
            Numbers of the subgames. Default: all.

        Yields
        ------
        ndarray, shape (chance nodes of the trunk, hands)
            Values of a subgame.
        """
        threads = self.game.threads
        with ExitStack() as pools:
            # Two writers per thread: while one waits for the disk, the other packs.
            workers = (pools.enter_context(ThreadPoolExecutor(share * threads)) for share in (1, 1, 2))
            readers, walkers, writers = workers
            waiting: deque[Future[Values]] = deque()
            try:
                for number in range(self.count) if numbers is None else numbers:
                    coming = readers.submit(self._read, read, number)
                    walked = walkers.submit(_walk, walk, coming)
                    waiting.append(writers.submit(self._finish, write, coming, walked))
                    if len(waiting) >= self.abreast:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                if waiting:  # after an error, scratch tables in use are not returned to the queue
                    self._tables, self._made = SimpleQueue(), 0
                for future in waiting:
                    future.cancel()

    def _read(self, read: Callable[[int, SubgameMemory], LoadedSubgame | Values], number: int) -> _Coming:
        return _Coming(tables := self._scratch(), read(number, tables))

    def _finish(
        self,
        write: Callable[[LoadedSubgame, Values], None] | None,
        coming: Future[_Coming],
        walked: Future[Values],
    ) -> Values:
        """Write a subgame after its computation, and release its scratch memory."""
        tables, subgame = coming.result()
        values = walked.result()
        if write and isinstance(subgame, LoadedSubgame):
            write(subgame, values)
        self._tables.put(tables)
        return values

    def _scratch(self) -> SubgameMemory:
        """Return scratch memory that is free, or allocate new."""
        if self._tables.empty() and self._made < self.abreast:
            self._made += 1
            return self.scratch()
        return self._tables.get()

    def scratch(self) -> SubgameMemory:
        """Allocate memory for one subgame's tables."""
        shape = self.rows, self.width
        return SubgameMemory(np.empty(shape, self.dtype), np.empty(shape, self.dtype), self.sums(self.rows))

    def sums(self, rows: int) -> Table:
        """Return an empty array, because tables with a column per hand need no sums over buckets.

        In subclasses whose players see buckets, it is memory for sums over hands.
        """
        return np.zeros((0, 0, 0), self.dtype)


def subgames_abreast(threads: int) -> int:
    """Return the number of subgames to load at once, in order to keep all threads busy.

    Per thread, one is read, one is computed, and two are written.
    """
    return 4 * threads + 1


class _Coming(NamedTuple):
    tables: SubgameMemory
    subgame: LoadedSubgame | Values


def _walk(walk: Callable[[LoadedSubgame], Values], coming: Future[_Coming]) -> Values:
    """Compute the values of a subgame as soon as it has been read."""
    subgame = coming.result().subgame
    return walk(subgame) if isinstance(subgame, LoadedSubgame) else subgame


def _rows_apart(tree: VectorTree, trunk: int) -> IntArray:
    """Return the number of table rows after each flop and each betting sequence of the first rounds."""
    edges = np.arange(tree.board_start[1], tree.board_start[2] + 1)
    betting = [
        BettingPart.through(tree, trunk, entry, entry + 1).rows for entry in range(np.diff(tree.entry_start)[trunk])
    ]
    own, total = np.diff(betting, axis=2)[:, :, 0], np.zeros((len(edges) - 1, len(betting)), np.int64)
    for r, boards in enumerate(following_boards(tree, edges), start=1):
        if r >= trunk:
            total += np.diff(boards)[:, None] * own[:, r]
    return total


def _cuts(sizes: IntArray, size: int | None, *, together: bool) -> IntArray:
    """Split the game into subgames. Return the first and end flop, and the first and end chance node, of each.

    `sizes` [flop, chance node] are the tables' bytes. A subgame may hold several flops if `together` is True and no
    flop is too large.
    """
    flops, most = sizes.sum(axis=1), size or SIZE
    if together and flops.max() <= most:
        some = group_items(flops, size or min(SIZE, int(flops.sum()) // FEWEST + 1))
        return np.array([(*own, 0, sizes.shape[1]) for own in some])
    return np.array([(flop, flop + 1, *some) for flop, own in enumerate(sizes) for some in group_items(own, most)])


def group_items(sizes: IntArray, size: int) -> list[tuple[int, int]]:
    """Group consecutive items into groups of about equal total size.

    Returns the begin and end of each group. A single item that is larger than `size` is a group of its own.
    """
    first = np.unique(np.cumsum(sizes) // size, return_index=True)[1].tolist()
    return list(pairwise([*first, len(sizes)]))


def _rows_of_player(tree: VectorTree, player: int) -> list[IntArray]:
    """Return the rows of a player's actions on one board, for each round."""
    nodes, found = tree.nodes, list[IntArray]()
    for first, last in pairwise(tree.entry_start.tolist()):
        rows = list[int]()
        for entry in range(first, last):
            for node in range(*nodes.block[tree.entry_block[entry] :][:2].tolist()):
                if nodes.kind[node] == DECISION and nodes.actor[node] == player:
                    row = int(tree.entry_row[entry] + nodes.row[node])
                    rows += range(row, row + int(nodes.children[node]))
        found.append(np.array(sorted(rows), dtype=np.int64))
    return found
