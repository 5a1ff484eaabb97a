"""CFR+ with regrets on disk, for games whose tables are larger than memory [Johanson16 chapter 9].

The first round is the *trunk*, which stays in memory. All that follows some boards of the second round, one or several,
is a *subgame*, whose regrets are whole numbers, compressed in a file. An iteration is a pass over all subgames for each
player in turn:

    for each subgame
        read    regret  = whole number / scale
        walk    down with the trunk's strategy, up with the values of its chance nodes, as in `vector`:
                regret  = max(regret + value(child) − value(node), 0)
        write   whole number = regret · scale, rounded down, and the values beside it
    trunk       the values of all subgames, added up in their order, go up the first round

There is no average: with regret matching+ the strategy of the last iteration converges by itself, if not by proof.

A file is replaced in one step. It says which pass has written it, and what the subgame was worth then: a pass that was
interrupted goes on with the subgames that it has not come to, and ends in the same numbers.

>>> from tempfile import TemporaryDirectory
>>> from kilt.games import load_game
>>> with TemporaryDirectory() as folder:
...     solver = DiskCfr(VectorGame(load_game("leduc")), Path(folder))
...     solver.step(40)
...     least, most = solver.value_bounds()
>>> least < -0.0856 < most, most - least < 0.4, solver.subgames
(True, True, 1)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from math import ceil, log2
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.arrays import FloatArray, IntArray
from kilt.errors import GameError
from kilt.solve.disk_store import KeptSubgame, SubgameStore
from kilt.solve.variants import Discount, discounts, variant_named
from kilt.solve.vector import learning_walk
from kilt.solve.vector_kernels import PlayerTables
from kilt.tree.vector import VectorGame, Walk
from kilt.tree.vector_arrays import DECISION, FOLLOW, RESPOND, Table, TableLayout, VectorTree
from kilt.tree.vector_tree import flop_tree

T = TypeVar("T")

FINENESS = 20  # bits of the largest regret that one walk can find; 12 more are left for sums of them
SIZE = 32 << 20  # bytes of the table of a subgame, about: few enough that a dozen fit anywhere
AHEAD = 2  # subgames that are read before their turn comes


class DiskCfr:
    """CFR+ on a public tree, with the regrets of subgames in files.

    Parameters
    ----------
    game : VectorGame
        Of two rounds or more. Its threads work on subgames side by side.
    folder : Path
        Where the files are. Those that are there already are gone on from.
    scale : float, optional
        Whole numbers to a chip that is won from one hand of the opponent: regrets are rounded down to a multiple of
        1 / `scale`, and end at 2³² of them. Left out: the largest regret that one walk can find has 20 bits.
    dtype : data type
        Of the numbers in walks.
    size : int
        Bytes of a subgame's table, about; at least one board of the second round.
    """

    def __init__(
        self,
        game: VectorGame,
        folder: Path,
        *,
        scale: float | None = None,
        dtype: npt.DTypeLike = np.float64,
        size: int = SIZE,
    ) -> None:
        tree = game.tree
        if len(tree.rows) < 2:
            raise GameError(f"{game.game.name} has one round, and so no subgames: use cfr+")
        if not tree.rows[1:].all():
            raise GameError(f"{game.game.name} was opened without tables by board, which subgames are made of")
        self.game, self.dtype = game, np.dtype(dtype)
        self.opened = int(np.diff(tree.entry_start)[1])  # chance nodes of the trunk
        sizes = _rows_of_flops(tree) * game.shape[1] * self.dtype.itemsize
        # [subgame + 1] its first board among those of the second round
        self.first = np.append(np.unique(np.cumsum(sizes) // size, return_index=True)[1], len(sizes))
        self.subgames = len(self.first) - 1
        parts = tree.nodes.kind, tree.nodes.stake, tree.board, tree.prior, self.first
        if scale is None:
            scale = 2.0 ** (FINENESS - ceil(log2(2 * np.abs(tree.nodes.stake).max() * tree.prior.sum(axis=1).max())))
        self.store = SubgameStore(folder, artifact.fingerprint(*map(np.ascontiguousarray, parts)), float(scale))
        self.passes, self.trunk = self.store.read_trunk((int(tree.rows[0]), game.shape[1]))
        self.trunk = self.trunk.astype(self.dtype)
        self._tasks = np.full(len(tree.rows), FOLLOW)
        self._own_rows = [_rows_of_player(tree, player) for player in (0, 1)]

    @property
    def iterations(self) -> int:
        """Iterations that are complete."""
        return self.passes // 2

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations, each of them a pass for player 0 and one for player 1.

        One that was interrupted is completed first, and counts.
        """
        last = 2 * (self.iterations + iterations)
        while self.passes < last:
            player, discount = self.passes % 2, self._discount()
            values = np.zeros((self.opened, self.game.shape[1]))
            for worth in self._in_order(partial(self._learn, player, discount)):
                values += worth
            tables = self._tables(self._layout(), self.trunk)
            learn = learning_walk(self.game.tree, player, self._tasks, tables, tables, discount)
            self.game.conclude_walk(player, learn, values, self.dtype)
            self.passes += 1
            self.store.write_trunk(self.passes, self.trunk)

    def exploitability(self) -> float:
        """What best responses win from the strategy of the last iteration, mean over both seats; chips per game."""
        return max(sum(self.response_values()) / 2, 0.0)

    def value_bounds(self) -> tuple[float, float]:
        """Bounds on what player 0 wins in an equilibrium, in chips per game: what best responses leave to either."""
        first, second = self.response_values()
        return -second, first

    def response_values(self) -> tuple[float, float]:
        """What a best response to the strategy of the last iteration wins in seats 0 and 1, in chips per game."""
        values = np.zeros((2, self.opened, self.game.shape[1]))
        for worth in self._in_order(self._respond):
            values += worth
        layout, table = self._layout(), self.trunk
        walks = (Walk(seat, (RESPOND,), table, table, layout, layout) for seat in (0, 1))
        first, second = (self.game.conclude(walk, own) for walk, own in zip(walks, values, strict=True))
        return first, second

    def table(self) -> Table:
        """The regrets as one table over (board, row) × hand, for games whose table fits into memory."""
        tree, whole = self.game.tree, self.game.table(self.dtype)
        whole[: len(self.trunk)] = self.trunk
        for number in range(self.subgames):
            _, layout, table = self._unpack(self.store.open(number))
            board = int(tree.board_start[1]) + int(self.first[number])
            for r in range(1, len(tree.rows)):
                begin = int(tree.table_start[r] + (board - tree.board_start[r]) * tree.rows[r])
                rows = table[layout.start[r] : layout.start[r + 1]]
                whole[begin : begin + len(rows)] = rows
                board = int(tree.first_board[board])
        return whole

    def _in_order(self, work: Callable[[KeptSubgame], T]) -> Iterator[T]:
        """Work on all subgames, on all threads; what comes out, in their order.

        A few are read ahead, so that no thread waits for the disk.
        """
        threads = self.game.threads
        with ThreadPoolExecutor(AHEAD) as readers, ThreadPoolExecutor(threads) as workers:
            waiting: deque[Future[T]] = deque()
            try:
                for number in range(self.subgames):
                    coming = readers.submit(self.store.open, number)
                    waiting.append(workers.submit(_continue, work, coming))
                    if len(waiting) >= threads + AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _learn(self, player: int, discount: Discount, subgame: KeptSubgame) -> FloatArray:
        """[chance node, hand] what a subgame is worth in this pass, in which a player learns."""
        if subgame.players[player].passes > self.passes:  # before an interruption
            return subgame.players[player].values
        part, layout, table = self._unpack(subgame)
        tables = self._tables(layout, table)
        learn = learning_walk(part, player, self._tasks, tables, tables, discount)
        values = self.game.part_values(player, learn, part, self.dtype)
        self.store.write(subgame.number, player, self.passes + 1, values, table, self._rows_of(player, part, layout))
        return values

    def _respond(self, subgame: KeptSubgame) -> FloatArray:
        """[seat, chance node, hand] what best responses win in a subgame."""
        part, layout, table = self._unpack(subgame)
        walks = (Walk(seat, (RESPOND,), table, table, layout, layout) for seat in (0, 1))
        return np.stack([self.game.flop_values(walk, part) for walk in walks])

    def _unpack(self, subgame: KeptSubgame) -> tuple[VectorTree, TableLayout, Table]:
        """The part of the tree that a subgame is, and its table, in which the rows of the trunk come first."""
        part = flop_tree(self.game.tree, *self.first[subgame.number :][:2].tolist())
        layout = self._layout(part)
        table = np.zeros((int(layout.start[-1]), self.game.shape[1]), self.dtype)
        table[: len(self.trunk)] = self.trunk
        for player in (0, 1):
            subgame.unpack(player, self._rows_of(player, part, layout), table)
        return part, layout, table

    def _rows_of(self, player: int, part: VectorTree, layout: TableLayout) -> IntArray:
        """The rows of a player's actions in the table of a part of the tree, without those of the trunk."""
        found = []
        for r, boards in enumerate(np.diff(part.board_start)):
            if r > 0:
                first = layout.start[r] + np.arange(boards) * self.game.tree.rows[r]
                found.append((first[:, None] + self._own_rows[player][r]).ravel())
        return np.concatenate(found)

    def _layout(self, part: VectorTree | None = None) -> TableLayout:
        """The layout of the table of a part of the tree; left out: of the trunk alone."""
        rows, boards = self.game.tree.rows, np.diff((part or self.game.tree).board_start)
        if part is None:
            boards[1:] = 0
        return self.game.layouts[0]._replace(rows=rows, start=np.concatenate([[0], np.cumsum(boards * rows)]))

    def _tables(self, layout: TableLayout, table: Table) -> PlayerTables:
        none = np.empty(0, np.int64), np.zeros((0, 0, 0), self.dtype), np.zeros((0, 0), self.dtype)
        return PlayerTables(layout, table, table, table, False, *none)

    def _discount(self) -> Discount:
        variant = variant_named("cfr+")
        row = discounts(variant, self.iterations + 1, 1, sampled=False)[0]
        return Discount._make([*row.tolist(), variant.predictive])


def _continue(work: Callable[[KeptSubgame], T], coming: Future[KeptSubgame]) -> T:
    """Work on a subgame as soon as it is there."""
    return work(coming.result())


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
