"""A public tree cut into a trunk and subgames, through which memory streams: see `disk`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from math import ceil, log2
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.arrays import FloatArray, IntArray
from kilt.cards.deck import FULL
from kilt.cards.equity import room_to_rank
from kilt.cards.equity_kernels import Ranking
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import HandTables
from kilt.errors import GameError
from kilt.games.holdem import Holdem
from kilt.solve.disk_kernels import PartRows, count_hands
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, Table, TableLayout, VectorTree
from kilt.tree.vector_tree import flop_tree

Values = FloatArray  # [chance node of the trunk, hand] what a subgame is worth

FINENESS = 18  # bits of the largest regret that one walk can find; 13 more are left for sums of them
SIZE = 64 << 20  # bytes of the table of a subgame, at most about: few enough that a dozen fit anywhere
FEWEST = 32  # subgames that a small game is cut into, about: enough to overlap reading, walking and writing
PER_NUMBER = 8e-9  # seconds of a pass for a number of the tables, on a core of 2026: the walk, and packing beside it


class LoadedSubgame(NamedTuple):
    """A subgame as it is walked: a part of the tree, and its tables, in which the rows of the trunk come first."""

    number: int
    tree: VectorTree
    layouts: tuple[TableLayout, TableLayout]  # of each player's tables
    regret: Table
    average: Table  # sums of strategies; `regret` where there are none
    sums: Table  # what a walk adds up for buckets: see `PlayerTables`


class SubgameMemory(NamedTuple):
    """Memory for a subgame: fields as in `LoadedSubgame`."""

    regret: Table
    average: Table
    sums: Table


class Subgames:
    """A game on its public tree, cut into a trunk and subgames.

    Parameters
    ----------
    game : VectorGame
        Of two rounds or more. Its threads work on subgames side by side.
    dtype : data type
        Of the numbers in walks.
    size : int, optional
        Bytes of a subgame's table, about; at least one board of the second round. Left out: a 32nd of the game's table,
        and 64 MB at most.
    """

    def __init__(self, game: VectorGame, dtype: npt.DTypeLike = np.float64, size: int | None = None) -> None:
        tree = game.tree
        if len(tree.rows) < 2:
            raise GameError(f"{game.game.name} has one round, and so no subgames: use cfr+")
        if not tree.rows[1:].all():
            raise GameError(f"{game.game.name} was opened without tables by board, which subgames are made of")
        self.game, self.dtype = game, np.dtype(dtype)
        self.trunk_rows = int(tree.rows[0])
        self.opened = int(np.diff(tree.entry_start)[1])  # chance nodes of the trunk
        rows = _rows_of_flops(tree)
        sizes = rows * game.shape[1] * self.dtype.itemsize
        self.size = size or min(SIZE, int(sizes.sum()) // FEWEST + 1)
        # [subgame + 1] its first board among those of the second round
        self.first = np.append(np.unique(np.cumsum(sizes) // self.size, return_index=True)[1], len(sizes))
        self.count = len(self.first) - 1
        self.sizes = np.add.reduceat(rows, self.first[:-1])  # [subgame] rows of its table, but for those of the trunk
        self.rows = self.trunk_rows + int(self.sizes.max())  # of the largest table
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
        """Columns of tables: hands."""
        return self.game.shape[1]

    @property
    def fingerprint(self) -> str:
        """A short name for the game and the way it is cut."""
        tree = self.game.tree
        parts = tree.nodes.kind, tree.nodes.stake, tree.board, tree.prior, self.first
        return artifact.fingerprint(*map(np.ascontiguousarray, parts))

    @cached_property
    def _hands(self) -> IntArray:
        """[board] Hands that are apart."""
        hands = np.zeros(len(self._held), np.int64)
        count_hands(self._alike, self._symmetry, self._bits, self._held, hands)
        return hands

    @property
    def numbers(self) -> int:
        """Numbers that are kept of all subgames: one for each action, board and hand, those alike by suits once."""
        tree = self.game.tree
        hands = np.add.reduceat(self._hands, tree.board_start[:-1])
        return int(sum(hands[1:] * tree.rows[1:]))

    @property
    def default_scale(self) -> float:
        """Whole numbers to a chip, such that the largest regret that one walk can find has `FINENESS` bits."""
        tree = self.game.tree
        most = max(np.abs(tree.nodes.stake).max(), np.abs(tree.dice.called).max())
        return 2.0 ** (FINENESS - ceil(log2(2 * most * tree.prior.sum(axis=1).max())))

    @property
    def abreast(self) -> int:
        """Subgames in memory at a time: for each thread one that is read, one that is walked, and two to be written."""
        return subgames_abreast(self.game.threads)

    @property
    def memory(self) -> int:
        """Bytes of the tables in memory at a time, of regrets alone, and of what is packed of them."""
        return 2 * self.abreast * self.rows * self.width * self.dtype.itemsize

    @property
    def seconds(self) -> float:
        """What an iteration takes, about, by the numbers of the tables and the game's threads."""
        return 2 * PER_NUMBER * self.game.shape[0] * self.game.shape[1] / self.game.threads

    def part(self, number: int) -> VectorTree:
        """The part of the tree that is a subgame, with the trunk before it."""
        return flop_tree(self.game.tree, *self.first[number : number + 2].tolist())

    def layouts(self, number: int | None = None, part: VectorTree | None = None) -> tuple[TableLayout, TableLayout]:
        """The layouts of both players' tables in a subgame, which is a `part` of the tree; left out: in the trunk."""
        rows, boards = self.game.tree.rows, np.diff((part or self.game.tree).board_start)
        if part is None:
            boards[1:] = 0
        layout = self.game.layouts[0]._replace(rows=rows, start=np.concatenate([[0], np.cumsum(boards * rows)]))
        return layout, layout

    def bucket_rows(self, player: int, layout: TableLayout) -> IntArray:
        """The rows of a player's decisions in a table, where players see buckets; none here."""
        return np.empty(0, np.int64)

    def place_of(self, row: int) -> tuple[int, int, int]:
        """Where a row of the table over (board, row) × hand is: its subgame, and its round and row of that round there.

        It has to be one of a round after the first: that is the trunk's.
        """
        tree = self.game.tree
        r = int(np.searchsorted(tree.table_start, row, side="right")) - 1
        board, within = divmod(row - int(tree.table_start[r]), int(tree.rows[r]))
        flop = board + int(tree.board_start[r])
        for earlier in range(r - 1, 0, -1):
            first, last = tree.board_start[earlier : earlier + 2]
            flop = int(first + np.searchsorted(tree.first_board[first:last], flop, side="right")) - 1
        number = int(np.searchsorted(self.first, flop - tree.board_start[1], side="right")) - 1
        opening = int(tree.board_start[1] + self.first[number])
        for _ in range(1, r):
            opening = int(tree.first_board[opening])
        return number, r, (board + int(tree.board_start[r]) - opening) * int(tree.rows[r]) + within

    def clear(self, table: Table) -> None:
        """Write 0 to scratch memory where no number of a file belongs: nowhere, since all hands are written to."""

    def rows_of(self, player: int, number: int, layout: TableLayout) -> tuple[list[PartRows], int]:
        """Where the numbers of a player in a subgame stand in its table, and how many they are."""
        tree, found, numbers = self.game.tree, [], 0
        low, high = (tree.board_start[1] + self.first[number : number + 2]).tolist()
        for r in range(1, len(tree.rows)):
            boards, rows = slice(low, high), self._own_rows[player][r]
            size = int(tree.board_size[r])
            tables, ranking = self._strengths(size)
            part = PartRows(
                start=int(layout.start[r]),
                stride=int(tree.rows[r]),
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
            low, high = int(tree.first_board[low]), int(tree.first_board[high])
        return found, numbers

    def _strengths(self, board_size: int) -> tuple[HandTables, Ranking]:
        """What tells how strong hands are on boards of some size, and room to rank them."""
        game = self.game.game
        deck, hole_cards = (game.deck, game.rules.hole_cards) if isinstance(game, Holdem) else (FULL, 2)
        ranking = room_to_rank(deck, hole_cards, board_size, len(self.game.tree.deck.bits))
        return hand_tables(board_size + hole_cards, deck), ranking

    def stream(
        self,
        read: Callable[[int, SubgameMemory], LoadedSubgame | Values],
        walk: Callable[[LoadedSubgame], Values],
        write: Callable[[LoadedSubgame, Values], None] | None = None,
        numbers: Iterable[int] | None = None,
    ) -> Iterator[Values]:
        """Work on all subgames, or on some; what they are worth, in their order.

        Parameters
        ----------
        read : callable
            Called with the number of a subgame and scratch memory, in threads beside the walks. What it is worth, where
            that is known already: then there is neither a walk nor anything to write.
        walk : callable
            Called on as many threads as the game has.
        write : callable, optional
            Called with the subgame and what the walk has found, in threads beside the walks.
        numbers : iterable of int, optional
            The subgames. Left out: all.
        """
        threads = self.game.threads
        with ExitStack() as pools:
            # Whoever writes waits for the disk, and meanwhile another one packs.
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
                if waiting:  # something went wrong: tables that are on their way do not come back
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
        """Write a subgame when it has been walked, and give its tables to others."""
        tables, subgame = coming.result()
        values = walked.result()
        if write and isinstance(subgame, LoadedSubgame):
            write(subgame, values)
        self._tables.put(tables)
        return values

    def _scratch(self) -> SubgameMemory:
        """Memory that nobody has any more, or new one."""
        if self._tables.empty() and self._made < self.abreast:
            self._made += 1
            return self.scratch()
        return self._tables.get()

    def scratch(self) -> SubgameMemory:
        """New memory for a subgame; what is not touched of it costs nothing."""
        shape = self.rows, self.width
        return SubgameMemory(np.empty(shape, self.dtype), np.empty(shape, self.dtype), self.sums(self.rows))

    def sums(self, rows: int) -> Table:
        """New memory for what a walk adds up for buckets in a table of some rows; none here."""
        return np.zeros((0, 0, 0), self.dtype)


def subgames_abreast(threads: int) -> int:
    """Subgames in memory at a time: see `Subgames.abreast`."""
    return 4 * threads + 1


class _Coming(NamedTuple):
    tables: SubgameMemory
    subgame: LoadedSubgame | Values


def _walk(walk: Callable[[LoadedSubgame], Values], coming: Future[_Coming]) -> Values:
    """Walk a subgame as soon as it is there."""
    subgame = coming.result().subgame
    return walk(subgame) if isinstance(subgame, LoadedSubgame) else subgame


def _rows_of_flops(tree: VectorTree) -> IntArray:
    """[board of the second round] rows of the table of all that follows it, its own included."""
    edges = np.arange(tree.board_start[1], tree.board_start[2] + 1)
    total = np.diff(edges) * int(tree.rows[1])
    for rows in tree.rows[2:].tolist():
        edges = tree.first_board[edges]
        total += np.diff(edges) * rows
    return total


def _rows_of_player(tree: VectorTree, player: int) -> list[IntArray]:
    """[round] the rows of a player's actions among those of a board."""
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
