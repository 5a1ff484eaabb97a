"""CFR on public trees with tables of two-byte numbers instead of four-byte ones.

The numbers of a decision on a board are multiples of a common power of two, which takes one more byte, as in the tables
of `tree.gpu.compact`. Rounding is random, so that errors have mean 0. The first round is small and stays in single
precision. The tree after it is divided into *parts*, one for each board of the second round. A pass processes part by
part: it unpacks the numbers into a table of single precision, learns as usual, and packs the result.

>>> from kilt.games import load_game
>>> from kilt.solve.cfr import Cfr
>>> from kilt.tree.vector import VectorGame
>>> game = TwoByteGame(VectorGame(load_game("leduc")))
>>> solver = Cfr(TwoByteTables(game), "cfr+")
>>> solver.step(200)
>>> round(game.exploitability(solver.average()), 2)
0.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from mmap import mmap
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.errors import ArtifactError, GameError
from kilt.jit import shared_threads
from kilt.solve.cfr import Turn
from kilt.solve.learning_kernels import PlayerTables
from kilt.solve.problem import CPU, VectorProblem
from kilt.solve.tables.memory import learning_walk
from kilt.solve.tables.parts import Learning, PartTables, Values, require_unsigned
from kilt.solve.tables.two_bytes_kernels import EVERY, Floats, PackedDecisions, read_entries, write_entries
from kilt.solve.variants import Variant
from kilt.strategy.model import DecisionLayout
from kilt.strategy.vector import VectorStrategy
from kilt.tree.evaluable import EvaluableGame
from kilt.tree.parts import flop_before, flop_tree, following_boards, layout_of_flop, rows_of_flop
from kilt.tree.rule import Discount
from kilt.tree.strength_order import (
    convert_table,
    hands_of_columns,
    layouts_by_strength,
    read_rows,
    sortable,
)
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW, ArrangedTable, Table, TableLayout, VectorTree
from kilt.tree.walks import BlockValues, CompiledWalk, Walk

if TYPE_CHECKING:
    from kilt.tree.gpu.compact import CompactGame

DRAWS = 1 << 14  # random numbers for rounding; each row starts at one of them
SINGLE = np.float32  # precision of the first round, and of unpacked entries


@dataclass
class PackedTable:
    """A strategy table of two-byte numbers, with four-byte ones in the first round.

    The entries of a part begin with empty rows for the first round. They are either in the part's arrangement, as walks
    need them, or in rows of all hands by number, as checkpoints have them.
    """

    early: Table  # [row, hand] of the first round
    entries: list[npt.NDArray[np.uint16]]  # [part][row, hand]
    powers: list[npt.NDArray[np.uint8]]  # [part][decision] exponent: entries are multiples of about 2^(exponent − 127)
    by_hand: bool = False


class TreePart(NamedTuple):
    """The part of a game after a board of the second round, with its tables' layouts.

    Rows of the first round come first in these tables.
    """

    number: int
    tree: VectorTree  # including the first round
    layouts: tuple[TableLayout, TableLayout]  # of each player in these tables
    slices: list[tuple[int, int, int]]  # first and end row in tables over (board, row), and first row here
    decisions: PackedDecisions
    given: list[tuple[int, Floats]]  # fixed strategies, by the place of their first number


def _mapped(rows: int, hands: int) -> npt.NDArray[np.uint16]:
    """Allocate zeros in a separate memory map, which takes memory only where it was written to.

    The system gets the memory back as soon as the array is freed.
    """
    return np.frombuffer(mmap(-1, 2 * rows * hands), np.uint16).reshape(rows, hands)


class TwoByteGame(EvaluableGame):
    """A game on its public tree whose tables have two-byte numbers after the first round.

    Parameters
    ----------
    game : VectorGame
        A game of several rounds. Its threads share the parts.
    """

    def __init__(self, game: VectorGame) -> None:
        if len(game.tree.rows) < 2:
            raise GameError(f"{game.game.name} has only one round, but tables of two bytes need several")
        self.game, self.early = game, int(game.tree.table_start[1])
        self.by_strength = sortable(game.tree)
        layout = DecisionLayout.of_vectors(game)
        starts, actors = np.asarray(layout.start, dtype=np.int64), layout.actor
        self.parts = [self._part(number, starts, actors) for number in range(int(np.diff(game.tree.board_start)[1]))]
        self._draws = np.random.default_rng(0).random(DRAWS + game.shape[1], SINGLE)
        self._rows = max(int(part.layouts[0].start[-1]) for part in self.parts)
        self._pool, self._scratch = shared_threads(game.threads), SimpleQueue[tuple[Table, Table]]()
        for _ in range(game.threads):
            self._scratch.put((self._zeros(self._rows), self._zeros(self._rows)))

    def _part(self, number: int, starts: IntArray, actors: ByteArray) -> TreePart:
        """Return the part of the tree after one board of the second round, with the places of its numbers."""
        game = self.game
        tree, rows = flop_tree(game.tree, number), rows_of_flop(game.tree, number)
        layout = layout_of_flop(game.layouts[0], rows)
        slices = [(*some, at) for some, at in zip(rows.tolist(), layout.start.tolist(), strict=False)][1:]
        decisions = [(at - begin, slice(*np.searchsorted(starts, (begin, end)).tolist())) for begin, end, at in slices]
        first = np.concatenate([*(starts[some] + shift for shift, some in decisions), layout.start[-1:]])
        actor = np.concatenate([actors[some] for _, some in decisions])
        layouts = layouts_by_strength(tree, (layout, layout)) if self.by_strength else (layout, layout)
        packed = self._packed(tree, layouts, first, actor)
        given = list[tuple[int, Floats]]()
        for row, strategy in game.given.items():
            for d in (
                np.flatnonzero(first[:-1] == row - begin + at)[0] for begin, end, at in slices if begin <= row < end
            ):
                columns = packed.hands[packed.column[d] :][: packed.width[d]]
                given.append((int(packed.first[d]), strategy[:, columns].astype(SINGLE).ravel()))
        return TreePart(number, tree, layouts, slices, packed, given)

    def _packed(
        self, tree: VectorTree, layouts: Sequence[TableLayout], first: IntArray, actor: ByteArray
    ) -> PackedDecisions:
        """Return where a part's tables store its decisions, of which each has the rows from its `first` to the next."""
        hands, start = self.game.shape[1], int(layouts[0].start[-2])
        width, column = np.full(len(actor), hands, np.int32), np.zeros(len(actor), np.int64)
        every, places = np.arange(hands, dtype=np.uint16), (first[:-1] * hands).astype(np.int64)
        if self.by_strength:
            boards = np.arange(tree.board_start[-2], tree.board_start[-1])
            with self.game.workspace() as work:
                ordered, begin = hands_of_columns(tree, work, layouts, boards)
            every = np.concatenate([every, ordered])
            for player, layout in enumerate(layouts):
                own = np.flatnonzero((actor == player) & (first[:-1] >= start))
                board, row = np.divmod(first[own] - start, tree.rows[-1])
                width[own] = layout.boards[boards[board], 2]
                places[own] = layout.boards[boards[board], 1] + layout.order[row] * width[own]
                column[own] = hands + begin[player, board]
        ends = (places + np.diff(first) * width).astype(np.int64)
        return PackedDecisions(places, ends, width, column, every, actor)

    def _zeros(self, rows: int) -> Table:
        return np.zeros((rows, self.game.shape[1]), SINGLE)

    def table(self) -> PackedTable:
        """Return a table of zeros, which stands for the uniform strategy.

        Decisions with a fixed strategy have its probabilities.
        """
        hands = self.game.shape[1]
        early = self._zeros(self.early)
        for row, strategy in self.game.given.items():
            if row < self.early:
                early[row : row + len(strategy)] = strategy
        entries = [_mapped(int(part.layouts[0].start[-1]), hands) for part in self.parts]
        return PackedTable(early, entries, [np.zeros(len(part.decisions.actor), np.uint8) for part in self.parts])

    def arrange(self, table: PackedTable, *, by_hand: bool = False) -> None:
        """Sort a table's hands by strength, as CFR needs them, or restore their usual order."""

        def convert(number: int) -> None:
            self._convert(self.parts[number], table.entries[number], by_strength=not by_hand)

        if self.by_strength and table.by_hand != by_hand:
            list(self._pool.map(convert, range(len(self.parts))))
        table.by_hand = by_hand

    def _convert(self, part: TreePart, table: npt.NDArray[Any], *, by_strength: bool) -> None:
        with self.game.workspace() as work:
            convert_table(part.tree, work, table, part.layouts, by_strength=by_strength)

    def on_host(self, table: PackedTable, to: Table | None = None) -> Table:
        """Convert a table of two-byte numbers to a NumPy array of four-byte ones.

        It has rows by board and action, and columns by hand.

        Parameters
        ----------
        table : PackedTable
            The table in fixed point.
        to : ndarray, optional
            Array to write to. Default: a new array.

        Returns
        -------
        ndarray
            `to`, or the new array.
        """
        self.arrange(table)
        found = np.empty(self.game.shape, SINGLE) if to is None else to
        found[: self.early] = table.early
        for part in self.parts:
            with self._workspace() as (own, _):
                self.read(part, table, own)
                if self.by_strength:
                    self._convert(part, own, by_strength=False)
                for begin, end, at in part.slices:
                    found[begin:end] = own[at : at + end - begin]
        for row, strategy in self.game.given.items():
            found[row : row + len(strategy)] = strategy  # also of hands that no player holds
        return found

    def read(self, part: TreePart, table: PackedTable, own: Table, player: int = EVERY) -> None:
        """Unpack a part of a two-byte table into a table of four-byte numbers.

        The part includes the first round. The decisions are those of one player or of both.
        """
        own[: self.early] = table.early
        entries, numbers = table.entries[part.number].reshape(-1), own.reshape(-1)
        read_entries(entries, table.powers[part.number], part.decisions, player, numbers)
        for first, strategy in part.given:
            numbers[first : first + len(strategy)] = strategy

    def write(self, part: TreePart, own: Table, player: int, seed: int, table: PackedTable) -> None:
        """Pack one player's decisions in a part of the game into a two-byte table.

        Numbers are rounded at random, depending on the seed and the part.
        """
        entries, powers, numbers = table.entries[part.number].reshape(-1), table.powers[part.number], own.reshape(-1)
        drawn = seed * len(self.parts) + part.number
        bits = numbers.view(np.int32)
        write_entries(numbers, bits, part.decisions, player, drawn, self._draws, DRAWS, entries, powers)

    def walked(self, part: TreePart, own: Table) -> ArrangedTable:
        """Return an unpacked table for a part of the game, with both players' layouts."""
        return ArrangedTable.of(own, part.layouts)

    @contextmanager
    def _workspace(self) -> Iterator[tuple[Table, Table]]:
        """Lend two single-precision tables that are large enough for any part."""
        found = self._scratch.get()
        try:
            yield found
        finally:
            self._scratch.put(found)

    def map_parts(self, work: Callable[[TreePart, Table, Table], FloatArray]) -> Iterator[FloatArray]:
        """Apply a function to all parts of the game in parallel, and yield its results in order.

        `work` is the function. Each call gets two scratch tables.
        """

        def do(part: TreePart) -> FloatArray:
            with self._workspace() as (first, second):
                return work(part, first, second)

        return self._pool.map(do, self.parts)

    @property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, as with rake or modified payoffs."""
        return self.game.is_general_sum

    def worth(self, player: int, task: int, table: PackedTable) -> float:
        """Return a player's winnings with a strategy, or with a best response to it.

        The unit is chips per game.
        """
        layout = self.game.layouts[0]
        walk = Walk(player, (task,), table.early, table.early, layout, layout)
        return self.game.conclude(walk, self._part_values(table, (player,), (task,))[0])

    def _part_values(self, table: PackedTable, players: Sequence[int], tasks: Sequence[int]) -> FloatArray:
        """Return the sums of the values of all parts: [walk, chance node that ends the first round, hand]."""

        def values(part: TreePart, own: Table, _: Table) -> FloatArray:
            self.read(part, table, own)
            entries, layouts = self.walked(part, own)
            walks = [
                Walk(player, (task,), entries, entries, layouts[player], layouts[1 - player])
                for player, task in zip(players, tasks, strict=True)
            ]
            return np.stack([self.game.flop_values(walk, part.tree) for walk in walks])

        self.arrange(table)
        found = np.zeros((len(players), int(np.diff(self.game.tree.entry_start)[1]), self.game.shape[1]))
        for each in self.map_parts(values):
            found += each
        return found

    def block_values(
        self, table: PackedTable, path: Sequence[tuple[int, int]], tasks: tuple[int, int] = (FOLLOW, FOLLOW)
    ) -> tuple[BlockValues, BlockValues]:
        """Return both players' values and the opponents' reach probabilities in one betting round.

        Arguments are those of `VectorGame.block_values`.
        """
        if len(path) == 1:
            early = ArrangedTable(table.early, self.game.layouts)
            return self.game.block_values(early, path, tasks, values=list(self._part_values(table, (0, 1), tasks)))
        tree = self.game.tree
        self.arrange(table)
        with self._part_of(path[1][1]) as (part, own):
            self.read(part, table, own)
            first, start = following_boards(tree, np.array([path[1][1]])), part.tree.board_start[1:]
            shifted = [
                (entry, int(board - boards[0] + begin))
                for (entry, board), boards, begin in zip(path[1:], first, start, strict=False)
            ]
            shifted.insert(0, path[0])
            return self.game.block_values(self.walked(part, own), shifted, tasks, tree=part.tree)

    def read_rows(self, table: PackedTable, rows: slice) -> Table:
        """Return one decision of a two-byte table as four-byte numbers, with a column for each hand."""
        if rows.start < self.early:
            return table.early[rows]
        self.arrange(table)
        tree = self.game.tree
        depth = int(np.searchsorted(tree.table_start, rows.start, side="right")) - 1
        board = int(tree.board_start[depth] + (rows.start - tree.table_start[depth]) // tree.rows[depth])
        with self._part_of(flop_before(tree, depth, board)) as (part, own):
            self.read(part, table, own)
            begin, _, at = part.slices[depth - 1]
            here = slice(rows.start - begin + at, rows.stop - begin + at)
            if self.by_strength:
                with self.game.workspace() as work:
                    return read_rows(part.tree, work, self.walked(part, own), here).copy()
            return own[here].copy()

    @contextmanager
    def _part_of(self, board: int) -> Iterator[tuple[TreePart, Table]]:
        """Lend a table for the part of a board of the second round."""
        with self._workspace() as (own, _):
            yield self.parts[board - int(self.game.tree.board_start[1])], own


@dataclass(frozen=True)
class TwoByteProblem(VectorProblem):
    """A game to solve with two-byte tables. Saved strategies have the usual format."""

    @cached_property
    def walker(self) -> TwoByteGame | CompactGame:
        """The object that evaluates strategies of the game, on the CPU or on the GPU."""
        if self.device == CPU:
            return TwoByteGame(self.game)
        from kilt.tree.gpu.compact import CompactGame  # imports the GPU library

        return CompactGame(self.game)

    def save(self, path: Path, strategy: Any, **figures: Any) -> None:
        """Save a strategy to a folder in single precision.

        The strategy is converted in a temporary file to save memory.
        """
        with artifact.os_errors(f"{path} cannot be written"), TemporaryFile(dir=path.parent) as file:
            table = self.walker.on_host(strategy, np.memmap(file, SINGLE, "w+", shape=self.game.shape))
            VectorStrategy.of(self.game, table, **figures).save(path)


class TwoByteTables(PartTables):
    """A game's regrets and average strategies as two-byte numbers.

    Parameters
    ----------
    game : TwoByteGame
        The game to solve. Variants with negative regrets or prediction are refused.
    """

    dtype, by_hand = SINGLE, True

    def __init__(self, game: TwoByteGame) -> None:
        self.game, self.vectors = game, game.game

    def prepare(self, variant: Variant) -> None:
        """Allocate tables of zeros.

        Raises GameError if a variant of CFR has negative or predicted regrets.
        """
        require_unsigned(variant, "tables of two bytes")
        self.regret, self.total = self.game.table(), self.game.table()

    def update_subgames(self, turn: Turn, discount: Discount) -> Iterator[tuple[slice, Values]]:
        """Update one player's regrets in all parts of the tree, and yield each part's values."""
        self.game.arrange(self.regret)
        self.game.arrange(self.total)
        return ((slice(None), worth) for worth in self.game.map_parts(partial(self._learn, turn.player, discount)))

    def prepare_trunk_pass(self, turn: Turn, discount: Discount) -> Learning:
        """Prepare the pass of CFR that updates a player's regrets in the first round."""
        early = ArrangedTable(self.regret.early, self.vectors.layouts), self.total.early
        return Learning(self._walk(turn.player, discount, self.vectors.tree, *early), lambda: None)

    def _walk(
        self, player: int, discount: Discount, tree: VectorTree, regret: ArrangedTable, total: Table
    ) -> CompiledWalk:
        """Return the compiled pass of a learning player over single-precision tables."""
        tables = [PlayerTables.of(layout, (regret.table, regret.table, total), True) for layout in regret.layouts]
        tasks = np.full(len(tree.rows), FOLLOW)
        return learning_walk(tree, player, tasks, tables[player], tables[1 - player], discount)

    def _learn(self, player: int, discount: Discount, part: TreePart, regret: Table, total: Table) -> FloatArray:
        """Update a player's regrets in one part of the tree, and return the part's values."""
        game, seed = self.game, 4 * self.iterations + 2 * player
        game.read(part, self.regret, regret)
        game.read(part, self.total, total, 1 - player)
        learning = self._walk(player, discount, part.tree, game.walked(part, regret), game.walked(part, total).table)
        values = self.vectors.part_values(player, learning, part.tree, SINGLE)
        game.write(part, regret, player, seed, self.regret)
        game.write(part, total, 1 - player, seed + 1, self.total)
        return values

    def average(self) -> Any:
        """Return the average strategy as a table of two-byte numbers."""
        return self.total

    def current(self) -> Any:
        """Return the strategy of the next iteration as a table of two-byte numbers."""
        return self.regret

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the state as arrays, for a checkpoint."""
        kept: dict[str, npt.NDArray[np.generic]] = {"iterations": np.asarray(self.iterations)}
        for name, table in (("regret", self.regret), ("total", self.total)):
            self.game.arrange(table, by_hand=True)
            kept[name] = table.early
            for part in self.game.parts:
                kept[f"{name}_entries_{part.number}"] = table.entries[part.number][self.game.early :]
                kept[f"{name}_powers_{part.number}"] = table.powers[part.number]
        return kept

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Load the arrays of a checkpoint.

        Raises ArtifactError if it comes from a GPU.
        """
        if "regret_early" in state:
            raise ArtifactError("the checkpoint has two-byte tables of a GPU: resume on a GPU")
        for name, mine in self.state().items():
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            mine[...] = state[name]
        self.iterations = int(state["iterations"])
