"""A public tree cut into a trunk and subgames, through which memory streams: see `disk`."""

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
from kilt.cards.equity import room_to_rank
from kilt.cards.equity_kernels import Ranking
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import HandTables
from kilt.errors import GameError
from kilt.games.holdem import Holdem
from kilt.paces import pace
from kilt.solve.tables.disk_kernels import PartRows, count_hands
from kilt.tree.parts import BettingPart, flop_tree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, Table, TableLayout, VectorTree

Values = FloatArray  # [chance node of the trunk, hand] what a subgame is worth

FINENESS = 18  # bits of the largest regret that one walk can find; 13 more are left for sums of them
SIZE = 64 << 20  # bytes of the table of a subgame, at most about: few enough that a dozen fit anywhere
MOST_TRUNK = 2  # rounds of the trunk
FEWEST = 32  # subgames that a small game is cut into, about: enough to overlap reading, walking and writing
PER_NUMBER = pace("disk", "pass")  # seconds of a pass for a number of the tables: the walk, and packing beside it


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
        Bytes of a subgame's table, about. Left out: a 32nd of the game's table where flops are cut apart, and 64 MB at
        most. A flop whose table is larger is cut by the betting before it; where that does not do, the trunk has two
        rounds, and a subgame is a flop with the betting of both, one way at least [Johanson16 chapter 9].
    trunk : int, optional
        Number of rounds of the trunk, 1 or 2. Left out: as many as it takes.
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
            raise GameError(f"{game.game.name} has one round, and so no subgames: use cfr+")
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
        self.lead_rows = int(tree.rows[: self.trunk_rounds].sum())  # of these, before those of a subgame in its table
        self.entries = rows.shape[1]  # chance nodes at the end of the trunk, on each board of its last round
        self.opened = self.entries * int(np.diff(tree.board_start)[self.trunk_rounds - 1])  # of all of these
        # [subgame, 4] from which flop to which, and from which of the trunk's chance nodes to which
        self.cuts = _cuts(row * rows, size, together=self.trunk_rounds == 1)
        self.count = len(self.cuts)
        self.sizes = np.array([rows[a:b, c:d].sum() for a, b, c, d in self.cuts.tolist()])  # [subgame] rows of its own
        self.rows = self.lead_rows + int(self.sizes.max())  # of the largest table
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
        # The first form is that of versions in which nothing but flops was cut apart.
        flops = np.append(self.cuts[:, 0], self.cuts[-1, 1])
        way = (self.cuts, np.array(self.trunk_rounds)) if self.by_betting else (flops,)
        parts = tree.nodes.kind, tree.nodes.stake, tree.board, tree.prior, *way
        return artifact.fingerprint(*map(np.ascontiguousarray, parts))

    @property
    def by_betting(self) -> bool:
        """Whether subgames are cut apart by the betting of the trunk too."""
        return bool((self.cuts[:, 3] - self.cuts[:, 2] < self.entries).any()) or self.trunk_rounds > 1

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
        return int(sum((hands * tree.rows)[self.trunk_rounds :]))

    @property
    def default_scale(self) -> float:
        """Whole numbers to a chip, such that the largest regret that one walk can find has `FINENESS` bits."""
        tree = self.game.tree
        most = max(np.abs(tree.nodes.stake).max(), np.abs(tree.dice.called).max())
        return 2.0 ** (FINENESS - ceil(log2(2 * most * tree.prior.sum(axis=1).max())))

    @cached_property
    def abreast(self) -> int:
        """Subgames in memory at a time: as many as threads want, fewer where half of the memory holds fewer, or one."""
        one = self.memory_of(1) - self.memory_of(0)
        room = machine.available_memory() // 2 - self.memory_of(0)
        return min(subgames_abreast(self.game.threads), max(1, room // one))

    @property
    def memory(self) -> int:
        """Bytes of the trunk and of the subgames in memory at a time, of regrets alone: see `memory_of`."""
        return self.memory_of(self.abreast)

    def memory_of(self, abreast: int) -> int:
        """Bytes of the trunk and its values, of some subgames and of what is packed of them; of regrets alone."""
        rows, values = 2 * abreast * self.rows + self.trunk_rows, self.opened * self.game.shape[1]
        return int(rows * self.width * self.dtype.itemsize + 8 * values)

    @property
    def seconds(self) -> float:
        """What an iteration takes, about, by the numbers of the tables and the game's threads."""
        return 2 * PER_NUMBER * self.game.shape[0] * self.game.shape[1] / self.game.threads

    def opens(self, number: int) -> slice:
        """The chance nodes of the trunk that lead to a subgame, among those of all boards of its last round."""
        flop, _, begin, end = self.cuts[number].tolist()
        before = flop * self.entries if self.trunk_rounds > 1 else 0
        return slice(before + begin, before + end)

    def lead(self, number: int, trunk: Table) -> Table:
        """The rows of the trunk's table that come before those of a subgame in its own: those of its boards."""
        tree, flop = self.game.tree, int(self.cuts[number, 0])
        if self.trunk_rounds == 1:
            return trunk
        first = int(tree.rows[0] + flop * tree.rows[1])
        return np.concatenate([trunk[: tree.rows[0]], trunk[first : first + tree.rows[1]]])

    def betting(self, number: int) -> BettingPart:
        """The betting that leads to a subgame, and goes on there."""
        return self._betting(*self.cuts[number, 2:].tolist())

    @cached_property
    def _betting(self) -> Callable[[int, int], BettingPart]:
        return lru_cache(maxsize=1024)(partial(BettingPart.of, self.game.tree, self.trunk_rounds))

    def part(self, number: int) -> VectorTree:
        """The part of the tree that is a subgame, with the trunk before it."""
        return self.betting(number).within(flop_tree(self.game.tree, *self.cuts[number, :2].tolist()))

    def layouts(self, number: int | None = None, part: VectorTree | None = None) -> tuple[TableLayout, TableLayout]:
        """The layouts of both players' tables in a subgame, which is a `part` of the tree; left out: in the trunk."""
        tree = part or self.game.tree
        boards = np.diff(tree.board_start)
        if part is None:
            boards[self.trunk_rounds :] = 0
        start = np.concatenate([[0], np.cumsum(boards * tree.rows)])
        layout = self.game.layouts[0]._replace(rows=tree.rows, start=start)
        return layout, layout

    def bucket_rows(self, player: int, number: int, layout: TableLayout) -> IntArray:
        """The rows of a player's decisions in the table of a subgame, where players see buckets; none here."""
        return np.empty(0, np.int64)

    def rows_in(self, player: int, number: int, round_: int) -> IntArray:
        """The rows of a player's decisions in a round of a subgame, among those that a board has there."""
        begin, end = self.betting(number).rows[round_].tolist()
        rows: IntArray = self._own_rows[player][round_]
        first, last = np.searchsorted(rows, [begin, end])
        return np.asarray(rows[first:last] - begin)

    def place_of(self, row: int) -> tuple[int, int, int]:
        """Where a row of the table over (board, row) × hand is: its subgame, and its round and row of that round there.

        It has to be one of a round after the trunk.
        """
        tree = self.game.tree
        r = int(np.searchsorted(tree.table_start, row, side="right")) - 1
        board, within = divmod(row - int(tree.table_start[r]), int(tree.rows[r]))
        flop = board + int(tree.board_start[r])
        for earlier in range(r - 1, 0, -1):
            first, last = tree.board_start[earlier : earlier + 2]
            flop = int(first + np.searchsorted(tree.first_board[first:last], flop, side="right")) - 1
        number = int(np.searchsorted(self.cuts[:, 1], flop - tree.board_start[1], side="right"))
        while self.betting(number).rows[r, 1] <= within:
            number += 1
        begin, end = self.betting(number).rows[r].tolist()
        opening = int(tree.board_start[1] + self.cuts[number, 0])
        for _ in range(1, r):
            opening = int(tree.first_board[opening])
        return number, r, (board + int(tree.board_start[r]) - opening) * (end - begin) + within - begin

    def clear(self, table: Table) -> None:
        """Write 0 to scratch memory where no number of a file belongs: nowhere, since all hands are written to."""

    def rows_of(self, player: int, number: int, layout: TableLayout) -> tuple[list[PartRows], int]:
        """Where the numbers of a player in a subgame stand in its table, and how many they are."""
        tree, found, numbers = self.game.tree, [], 0
        low, high = (tree.board_start[1] + self.cuts[number, :2]).tolist()
        for r in range(1, len(tree.rows)):
            boards, (low, high) = slice(low, high), tree.first_board[[low, high]].tolist()
            if r < self.trunk_rounds:
                continue
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
    """Subgames in memory at a time: for each thread one that is read, one that is walked, and two to be written."""
    return 4 * threads + 1


class _Coming(NamedTuple):
    tables: SubgameMemory
    subgame: LoadedSubgame | Values


def _walk(walk: Callable[[LoadedSubgame], Values], coming: Future[_Coming]) -> Values:
    """Walk a subgame as soon as it is there."""
    subgame = coming.result().subgame
    return walk(subgame) if isinstance(subgame, LoadedSubgame) else subgame


def _rows_apart(tree: VectorTree, trunk: int) -> IntArray:
    """[flop, chance node at the end of the trunk] rows of the tables of all that follows both, after the trunk."""
    edges = np.arange(tree.board_start[1], tree.board_start[2] + 1)
    betting = [BettingPart.of(tree, trunk, entry, entry + 1).rows for entry in range(np.diff(tree.entry_start)[trunk])]
    own, total = np.diff(betting, axis=2)[:, :, 0], np.zeros((len(edges) - 1, len(betting)), np.int64)
    for r in range(1, len(tree.rows)):
        if r >= trunk:
            total += np.diff(edges)[:, None] * own[:, r]
        edges = tree.first_board[edges]
    return total


def _cuts(sizes: IntArray, size: int | None, *, together: bool) -> IntArray:
    """[subgame, 4] from which flop to which, and from which of the trunk's chance nodes to which, a subgame is.

    `sizes` [flop, chance node] are bytes of tables. Several flops are a subgame where they may be `together`, and none
    is too large.
    """
    flops, most = sizes.sum(axis=1), size or SIZE
    if together and flops.max() <= most:
        some = in_a_row(flops, size or min(SIZE, int(flops.sum()) // FEWEST + 1))
        return np.array([(*own, 0, sizes.shape[1]) for own in some])
    return np.array([(flop, flop + 1, *some) for flop, own in enumerate(sizes) for some in in_a_row(own, most)])


def in_a_row(sizes: IntArray, size: int) -> list[tuple[int, int]]:
    """From which place to which sizes add up to a size, about, or are one that is larger."""
    first = np.unique(np.cumsum(sizes) // size, return_index=True)[1].tolist()
    return list(pairwise([*first, len(sizes)]))


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
