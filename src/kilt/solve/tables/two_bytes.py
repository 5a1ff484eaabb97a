"""Run CFR on public trees with tables that store each number in two bytes instead of four.

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

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
from kilt.solve.cfr import Turn
from kilt.solve.learning_kernels import PlayerTables
from kilt.solve.problem import CPU, VectorProblem
from kilt.solve.tables.memory import learning_walk
from kilt.solve.tables.parts import Learning, PartTables, Values, require_unsigned
from kilt.solve.tables.two_bytes_kernels import EVERY, read_entries, write_entries
from kilt.solve.variants import Variant
from kilt.strategy.model import DecisionLayout
from kilt.strategy.vector import VectorStrategy
from kilt.tree.evaluable import EvaluableGame
from kilt.tree.parts import flop_tree, layout_of_flop, rows_of_flop
from kilt.tree.rule import Discount
from kilt.tree.vector import CompiledWalk, VectorGame, Walk
from kilt.tree.vector_arrays import FOLLOW, Table, TableLayout, VectorTree

if TYPE_CHECKING:
    from kilt.tree.gpu.compact import CompactGame

DRAWS = 1 << 14  # random numbers for rounding; each row starts at one of them
SINGLE = np.float32  # precision of the first round, and of unpacked entries


class PackedTable(NamedTuple):
    """A strategy table with two bytes for each number. The first round has four bytes."""

    early: Table  # [row, hand] of the first round
    entries: list[npt.NDArray[np.uint16]]  # [part][row, hand] of all later rounds
    powers: list[npt.NDArray[np.uint8]]  # [part][decision] exponent: entries are multiples of about 2^(exponent − 127)


class TreePart(NamedTuple):
    """The part of a game that follows a board of the second round, and how its table is arranged.

    Rows of the first round come first in this table.
    """

    number: int
    tree: VectorTree  # including the first round
    layout: TableLayout  # of that table
    slices: list[tuple[int, int, int]]  # first and end row in tables over (board, row), and first row here
    first: IntArray  # [decision + 1] first row
    actor: ByteArray  # [decision]
    given: list[tuple[int, Table]]  # fixed strategies, by their first row


def _mapped(rows: int, hands: int) -> npt.NDArray[np.uint16]:
    """Allocate zeros in a separate memory map. The system gets the memory back as soon as the array is freed."""
    return np.frombuffer(mmap(-1, 2 * rows * hands), np.uint16).reshape(rows, hands)


class TwoByteGame(EvaluableGame):
    """A game on its public tree whose tables have two bytes for each number after the first round.

    Parameters
    ----------
    game : VectorGame
        A game of several rounds. Its threads share the parts.
    """

    def __init__(self, game: VectorGame) -> None:
        if len(game.tree.rows) < 2:
            raise GameError(f"{game.game.name} has only one round, but tables of two bytes need several")
        self.game, self.early = game, int(game.tree.table_start[1])
        layout = DecisionLayout.of_vectors(game)
        starts, actors = np.asarray(layout.start, dtype=np.int64), layout.actor
        self.parts = [self._part(number, starts, actors) for number in range(int(np.diff(game.tree.board_start)[1]))]
        self._draws = np.random.default_rng(0).random(DRAWS + game.shape[1], SINGLE)
        self._rows = max(int(part.first[-1]) for part in self.parts)
        self._pool, self._scratch = ThreadPoolExecutor(game.threads), SimpleQueue[tuple[Table, Table]]()
        for _ in range(game.threads):
            self._scratch.put((self._zeros(self._rows), self._zeros(self._rows)))

    def _part(self, number: int, starts: IntArray, actors: ByteArray) -> TreePart:
        """Return the part of the tree after one board of the second round, with the places of its rows."""
        rows = rows_of_flop(self.game.tree, number)
        layout = layout_of_flop(self.game.layouts[0], rows)
        slices = [(*some, at) for some, at in zip(rows.tolist(), layout.start.tolist(), strict=False)][1:]
        decisions = [(at - begin, slice(*np.searchsorted(starts, (begin, end)).tolist())) for begin, end, at in slices]
        first = [starts[some] + shift for shift, some in decisions]
        told = [
            (row - begin + at, strategy.astype(SINGLE))
            for row, strategy in self.game.given.items()
            for begin, end, at in slices
            if begin <= row < end
        ]
        actor = np.concatenate([actors[some] for _, some in decisions])
        tree = flop_tree(self.game.tree, number)
        return TreePart(number, tree, layout, slices, np.concatenate([*first, layout.start[-1:]]), actor, told)

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
        entries = [_mapped(int(part.first[-1]) - self.early, hands) for part in self.parts]
        return PackedTable(early, entries, [np.zeros(len(part.actor), np.uint8) for part in self.parts])

    def on_host(self, table: PackedTable, to: Table | None = None, *, release: bool = False) -> Table:
        """Convert a table with two bytes for each number to a NumPy array with four.

        It has rows by board and action, and columns by hand.

        Parameters
        ----------
        table : PackedTable
            The table in fixed point.
        to : ndarray, optional
            Array to write to. Default: a new array.
        release : bool
            Whether to free the entries during the conversion, so that memory never holds both tables completely.

        Returns
        -------
        ndarray
            `to`, or the new array.
        """
        found = np.empty(self.game.shape, SINGLE) if to is None else to
        found[: self.early] = table.early
        for part in self.parts:
            with self._workspace() as (own, _):
                self.read(part, table, own)
                for begin, end, at in part.slices:
                    found[begin:end] = own[at : at + end - begin]
            if release:
                table.entries[part.number] = np.zeros((0, 0), np.uint16)
        return found

    def read(self, part: TreePart, table: PackedTable, own: Table, player: int = EVERY) -> None:
        """Unpack a part of a two-byte table into a table with four bytes for each number.

        The part includes the first round. The decisions are those of one player or of both.
        """
        own[: self.early] = table.early
        entries, powers = table.entries[part.number], table.powers[part.number]
        read_entries(entries, powers, part.first, part.actor, player, own)
        for row, strategy in part.given:
            own[row : row + len(strategy)] = strategy

    def write(self, part: TreePart, own: Table, player: int, seed: int, table: PackedTable) -> None:
        """Pack one player's decisions in a part of the game into a two-byte table.

        Numbers are rounded at random, depending on the seed and the part.
        """
        entries, powers = table.entries[part.number], table.powers[part.number]
        drawn = seed * len(self.parts) + part.number
        write_entries(own, own.view(np.int32), part.first, part.actor, player, drawn, self._draws, entries, powers)

    @contextmanager
    def _workspace(self) -> Iterator[tuple[Table, Table]]:
        """Lend two single-precision tables that are large enough for any part."""
        found = self._scratch.get()
        try:
            yield found
        finally:
            self._scratch.put(found)

    def over_parts(self, work: Callable[[TreePart, Table, Table], FloatArray]) -> Iterator[FloatArray]:
        """Apply a function to all parts of the game in parallel, and yield the results in order.

        `work` is the function. Each call gets two scratch tables.
        """

        def do(part: TreePart) -> FloatArray:
            with self._workspace() as (first, second):
                return work(part, first, second)

        return self._pool.map(do, self.parts)

    @property
    def uneven(self) -> bool:
        """Whether the game is not zero-sum, because of rake or modified payoffs."""
        return self.game.uneven

    def worth(self, player: int, task: int, table: PackedTable) -> float:
        """Return what a player wins by following a strategy, or by playing a best response to it.

        The unit is chips per game.
        """

        def part_worth(part: TreePart, own: Table, _: Table) -> FloatArray:
            self.read(part, table, own)
            walked = Walk(player, (task,), own, own, part.layout, part.layout)
            return self.game.flop_values(walked, part.tree)

        opened, layout = int(np.diff(self.game.tree.entry_start)[1]), self.game.layouts[0]
        values = np.zeros((opened, self.game.shape[1]))
        for found in self.over_parts(part_worth):
            values += found
        return self.game.conclude(Walk(player, (task,), table.early, table.early, layout, layout), values)


@dataclass(frozen=True)
class TwoByteProblem(VectorProblem):
    """A game to solve with tables that have two bytes for each number. Saved strategies have the usual format."""

    @cached_property
    def walker(self) -> TwoByteGame | CompactGame:
        """The object that evaluates strategies of the game, on the CPU or on the GPU."""
        if self.device == CPU:
            return TwoByteGame(self.game)
        from kilt.tree.gpu.compact import CompactGame  # imports the GPU library

        return CompactGame(self.game)

    def save(self, path: Path, strategy: Any, **figures: Any) -> None:
        """Save a strategy to a folder, in single precision.

        It is converted in a temporary file to save memory.
        """
        with artifact.os_errors(f"{path} cannot be written"), TemporaryFile(dir=path.parent) as file:
            table = self.walker.on_host(strategy, np.memmap(file, SINGLE, "w+", shape=self.game.shape))
            VectorStrategy.of(self.game, table, **figures).save(path)


class TwoByteTables(PartTables):
    """The regrets and average strategies of a game, with two bytes for each number.

    Parameters
    ----------
    game : TwoByteGame
        The game to solve. Variants with negative regrets or prediction are refused.
    """

    dtype = SINGLE

    def __init__(self, game: TwoByteGame) -> None:
        self.game, self.vectors = game, game.game

    def prepare(self, variant: Variant) -> None:
        """Allocate tables of zeros.

        Raises GameError if a variant of CFR has negative or predicted regrets.
        """
        require_unsigned(variant, "tables of two bytes")
        self.regret, self.total = self.game.table(), self.game.table()

    def opened(self, turn: Turn) -> int:
        """Return the number of chance nodes at the end of the first round."""
        return int(np.diff(self.vectors.tree.entry_start)[1])

    def worths(self, turn: Turn, discount: Discount) -> Iterator[tuple[slice, Values]]:
        """Update one player's regrets in all parts of the tree in parallel, and yield the values of each part."""
        return ((slice(None), worth) for worth in self.game.over_parts(partial(self._learn, turn.player, discount)))

    def trunk_learning(self, turn: Turn, discount: Discount) -> Learning:
        """Prepare the part of a CFR pass that updates a player's regrets in the first round."""
        where = self.vectors.tree, self.vectors.layouts[0]
        return Learning(self._walk(turn.player, discount, *where, self.regret.early, self.total.early), lambda: None)

    def _walk(
        self, player: int, discount: Discount, tree: VectorTree, layout: TableLayout, regret: Table, total: Table
    ) -> CompiledWalk:
        """Return the compiled pass of a learning player over single-precision tables."""
        none = np.empty(0, np.int64), np.zeros((0, 0, 0), SINGLE)
        tables = PlayerTables(layout, regret, regret, total, True, *none, regret[:0])
        return learning_walk(tree, player, np.full(len(tree.rows), FOLLOW), tables, tables, discount)

    def _learn(self, player: int, discount: Discount, part: TreePart, regret: Table, total: Table) -> FloatArray:
        """Update a player's regrets in one part of the tree, and return the part's values."""
        game, seed = self.game, 4 * self.iterations + 2 * player
        game.read(part, self.regret, regret)
        game.read(part, self.total, total, 1 - player)
        learning = self._walk(player, discount, part.tree, part.layout, regret, total)
        values = self.vectors.part_values(player, learning, part.tree, SINGLE)
        game.write(part, regret, player, seed, self.regret)
        game.write(part, total, 1 - player, seed + 1, self.total)
        return values

    def average(self) -> Any:
        """Return the average strategy as a table with two bytes for each number."""
        return self.total

    def release(self) -> Table:
        """Return the average strategy with four bytes for each number, and delete the two-byte tables."""
        self.regret.entries.clear()
        return self.game.on_host(self.total, release=True)

    def current(self) -> Any:
        """Return the strategy of the next iteration as a table with two bytes for each number."""
        return self.regret

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays to save in a checkpoint."""
        kept: dict[str, npt.NDArray[np.generic]] = {"iterations": np.asarray(self.iterations)}
        for name, table in (("regret", self.regret), ("total", self.total)):
            kept[name] = table.early
            for part in self.game.parts:
                kept[f"{name}_entries_{part.number}"] = table.entries[part.number]
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
