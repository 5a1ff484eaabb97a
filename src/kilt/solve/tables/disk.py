"""CFR with tables on disk, for games whose tables exceed memory [Johanson16 chapter 9].

The first round is the *trunk*, which stays in memory. A *subgame* is the part of the tree below one or several boards
of the second round; its regrets are stored as integers in a compressed file. If the subgame of a single board is too
large, it is cut further: by the betting of the first round, or with a trunk of two rounds, where a subgame is one board
of the second round with one betting sequence of both rounds. An iteration is a pass over all subgames for each player
in turn:

    for each subgame
        read    regret  = integer / scale
        walk    down with the trunk's strategy, up with the values of its chance nodes, as in `vector`:
                regret  = max(regret + value(child) − value(node), 0)
        write   integer = regret · scale, rounded, together with the values of the subgame
    trunk       sum the values of all subgames in their order, and walk them up the trunk

While one subgame is computed, threads read and unpack the next ones, and pack and write the previous ones. The average
strategy is stored only on request: with regret matching+, the strategy of the last iteration converges in practice,
although there is no proof.

A file is replaced in one step. It records the pass that wrote it, and the values of the subgame in that pass. After an
interruption, a pass therefore continues with the subgames that it has not finished, and gives the same numbers.

>>> from kilt.games import load_game
>>> from kilt.solve.cfr import Cfr
>>> from kilt.tree.vector import VectorGame
>>> solver = Cfr(DiskTables(Subgames(VectorGame(load_game("leduc")))), "cfr+")
>>> solver.step(40)
>>> least, most = solver.current().value_bounds()
>>> least < -0.0856 < most, most - least < 0.4
(True, True)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import thread_time
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.errors import RunError
from kilt.paces import pace
from kilt.solve.cfr import SELF_PLAY, Turn
from kilt.solve.learning_kernels import PlayerTables, finish_pass
from kilt.solve.tables.disk_files import KeptNumbers, pack
from kilt.solve.tables.disk_store import SubgameStore
from kilt.solve.tables.disk_strategy import AVERAGE_SCALE, DiskStrategy, read_subgame, unpack_rows
from kilt.solve.tables.disk_subgames import LoadedSubgame, SubgameMemory, Subgames, Values
from kilt.solve.tables.memory import learning_walk
from kilt.solve.tables.parts import Learning, PartTables, require_unsigned
from kilt.solve.variants import Variant
from kilt.tree.rule import Discount
from kilt.tree.vector_arrays import FOLLOW, Table

# Stored integers are floor(x + dither), with the same dither for all numbers of a pass. Over passes the dither is
# spread evenly between 0 and 1: rounding errors of different passes cancel, and equal neighbours stay equal.
GOLDEN = (5**0.5 - 1) / 2
PACKED = 4  # compression ratio that estimates assume before any file exists: a cautious value


class SubgameTables(PartTables):
    """Base class of CFR tables that store each subgame separately.

    It keeps the first round in memory; subclasses store the rest. Parameters are those of `DiskTables`.
    """

    store: SubgameStore
    interrupted: bool  # whether an iteration is incomplete: some files are already those of the new pass

    def __init__(
        self, subgames: Subgames, folder: Path | None = None, *, scale: float | None = None, averaging: bool = False
    ) -> None:
        self.subgames, self.averaging = subgames, averaging
        self.vectors, self.dtype, self.trunk_rounds = subgames.game, subgames.dtype, subgames.trunk_rounds
        self.scale = subgames.default_scale if scale is None else float(scale)
        self._tasks = np.full(len(subgames.game.tree.rows), FOLLOW)
        self.passes = 0
        self._known: dict[tuple[int, bool], DiskStrategy] = {}
        # [row, hand] of the first rounds: the regrets, and below them the average strategy, if it is stored
        self.trunk_tables = np.zeros(((1 + averaging) * subgames.trunk_rows, subgames.width), subgames.dtype)
        self.walked: Callable[[DiskStrategy], list[Values]] | None = None  # see `DiskStrategy`
        self._temporary: finalize[[Path], SubgameTables] | None = None
        if folder is not None:
            self.open(folder)
            return
        folder = Path(mkdtemp(prefix="kilt-subgames-"))
        taken_away = finalize(self, rmtree, folder, ignore_errors=True)
        self.open(folder)
        self._temporary = taken_away

    def open(self, folder: Path, warn: Callable[[str], None] = lambda what: None, run: str = "") -> None:
        """Start storing all tables in a folder, or resume from its files.

        Raises RunError if the files belong to another run, or do not fit the game.
        """
        self.warn, said = warn, (self.subgames.fingerprint, self.scale, self.averaging, self.subgames.count, run)
        store = self.open_store(folder, *said)
        if self.passes:
            self.copy_files_to(store)
        else:
            store.recover()
        self.store, kept = store, store.read_trunk()
        if kept.passes:
            if kept.values.shape != (shape := self.trunk_tables.shape):
                raise RunError(f"the trunk in {folder} has shape {kept.values.shape}, not {shape}: begin again")
            self.passes, self.trunk_tables[...] = kept.passes, kept.values
        store.begin(self.passes, self.trunk)
        self.interrupted = store.check_headers(self.passes) or self.passes % 2 == 1
        self._known.clear()
        if self._temporary is not None:
            self._temporary()

    def open_store(self, folder: Path, *said: Any) -> SubgameStore:
        """Return the object that reads and writes subgames' files in a folder."""
        return SubgameStore(folder, *said)

    @abstractmethod
    def copy_files_to(self, store: SubgameStore) -> None:
        """Copy the files of all subgames to another folder."""

    @abstractmethod
    def settle(self) -> None:
        """Bring the files in a run's folder up to date, because workers may have newer ones."""

    @property
    def size(self) -> int:
        """The total size of the files in bytes, estimated until all have been written."""
        return max(self.store.size, 4 * self.subgames.numbers * (1 + self.averaging) // PACKED)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the state for a checkpoint, which is only the number of iterations."""
        return {"iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Raise ArtifactError if the files are older than a checkpoint."""
        self.store.require_passes(self.passes, 2 * int(state["iterations"]))

    @property
    def iterations(self) -> int:
        """The number of completed iterations."""
        return self.passes // 2

    @iterations.setter
    def iterations(self, count: int) -> None:
        self.passes = 2 * count

    @property
    def trunk(self) -> Table:
        """The regrets of the first rounds."""
        return self.trunk_tables[: self.subgames.trunk_rows]

    @property
    def average_trunk(self) -> Table:
        """The average strategy of the first rounds, or their regrets if there is no average."""
        return self.trunk_tables[-self.subgames.trunk_rows :]

    def prepare(self, variant: Variant) -> None:
        """Raise GameError for variants of CFR with negative regrets, which files cannot store."""
        require_unsigned(variant, "regrets on disk")

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run CFR iterations, each with a pass over all subgames for each player.

        `rows` has the discount factors of each iteration. An interrupted iteration is completed first, and counts as
        one of them.
        """
        for row in rows.tolist():
            self.run_passes(Discount._make([*row, predictive]), SELF_PLAY[self.passes % 2 :])
        self.interrupted = False

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets in all subgames, then in the first rounds."""
        super().learn(turn, discount)
        self.passes += 1

    def prepare_trunk_pass(self, turn: Turn, discount: Discount) -> Learning:
        """Compute what the pass of CFR over the first rounds needs before it updates a player's regrets."""
        cut = self.subgames
        tables = self.trunk, self.average_trunk, cut.sums(cut.trunk_rows)
        return self.prepare_pass(turn.player, LoadedSubgame(-1, cut.game.tree, cut.layouts(), *tables), discount)

    def current(self) -> Any:
        """Return the strategy of the next iteration, which stays valid until the next `step` or `open`.

        It is a `DiskStrategy`.
        """
        return self._strategy(averaged=False)

    def average(self) -> Any:
        """Return the average strategy as a `DiskStrategy`, or the last one if no average is stored."""
        return self._strategy(averaged=self.averaging)

    def _strategy(self, *, averaged: bool) -> DiskStrategy:
        key = self.passes, averaged
        if key not in self._known:  # keeps values that were computed for the strategy
            trunk = (self.average_trunk if averaged else self.trunk).copy()
            self._known = {each: known for each, known in self._known.items() if each[0] == self.passes}
            self._known[key] = DiskStrategy(self.subgames, self.store, self.passes, trunk, averaged, walked=self.walked)
        return self._known[key]

    def prepare_pass(self, player: int, subgame: LoadedSubgame, discount: Discount) -> Learning:
        """Prepare the pass of CFR that updates a player's regrets in a subgame or in the first rounds."""
        cut, tables = self.subgames, (subgame.regret, subgame.regret, subgame.average)
        own, theirs = (
            PlayerTables.of(layout, tables, self.averaging, cut.bucket_rows(seat, subgame.number, layout), subgame.sums)
            for seat, layout in ((seat, subgame.layouts[seat]) for seat in (player, 1 - player))
        )
        walk = learning_walk(subgame.tree, player, self._tasks, own, theirs, discount)
        return Learning(walk, partial(finish_pass, own, theirs, cut.game.tree.noise, discount, cut.game.scope(player)))


class DiskTables(SubgameTables):
    """CFR's tables on disk, with files for each subgame's regrets and average strategy.

    Variants of CFR with negative regrets are refused.

    Parameters
    ----------
    subgames : Subgames
        The game to solve.
    folder : Path, optional
        Folder of the files; existing files are resumed from. Default: a temporary folder, which is deleted with the
        tables unless `open` moves the files to a permanent one.
    scale : float, optional
        Integers per chip won against one opponent hand: regrets are rounded to a multiple of 1 / `scale`, and capped at
        2³¹ of these. Default: such that the largest possible regret of one pass has 18 bits.
    averaging : bool
        Whether to store the average strategy too, in twice the space: see `average`.
    """

    def copy_files_to(self, store: SubgameStore) -> None:
        """Copy all files into another folder, such as that of a run."""
        self.store.copy_to(store.folder, self.subgames.fingerprint)
        store.checksums = self.store.checksums.copy()
        store.write_trunk(self.passes, self.trunk_tables)

    def settle(self) -> None:
        """Do nothing, because the folder's files are always up to date."""

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run CFR iterations, with the folder locked against other processes.

        `rows` has the discount factors of each iteration.
        """
        with self.store.lock():
            if self.store.read_trunk().passes != self.passes:
                raise RunError(f"another process has continued {self.store.folder}: open it again")
            super().run(rows, predictive)

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets in all subgames and the first rounds, and write the new files."""
        super().learn(turn, discount)
        self.store.write_trunk(self.passes, self.trunk_tables)

    def update_subgames(self, turn: Turn, discount: Discount) -> Iterator[tuple[slice, Values]]:
        """Update one player's regrets in all subgames, and yield each subgame's values.

        Several subgames are read, updated and written in parallel.
        """
        walked = enumerate(self.update_some(turn.player, discount))
        return ((self.subgames.entry_slice(number), worth) for number, worth in walked)

    def update_some(self, player: int, discount: Discount, numbers: Iterable[int] | None = None) -> Iterator[Values]:
        """Update one player's regrets in the given subgames, and yield each subgame's values in order.

        `numbers` lists the subgames. Default: all.
        """
        self.store.begin(self.passes, self.trunk)
        read, write = partial(self._read, player), partial(self._write, player)
        return self.subgames.stream(read, partial(self._learn, player, discount), write, numbers)

    def _read(self, player: int, number: int, tables: SubgameMemory) -> LoadedSubgame | Values:
        """Read a subgame, or only its values if the current pass finished it before an interruption."""
        kept = self.store.open(number, player, self.passes)
        if kept.passes > self.passes:
            return kept.values
        subgame = read_subgame(self.subgames, self.store, number, self.trunk, tables, self.passes)
        if self.averaging:
            average = tables.average[: len(subgame.regret)]
            self.subgames.clear(average)
            more = kept, subgame.layouts[1 - player], average
            unpack_rows(self.subgames, self.store, number, player, 1 - player, *more, averaged=True)
            subgame = subgame._replace(average=average)
        return subgame

    def _learn(self, player: int, discount: Discount, subgame: LoadedSubgame) -> Values:
        """Update the regrets of a player in a subgame.

        Return the subgame's values by chance node that leads to it and by hand.
        """
        cut = self.subgames
        learning = self.prepare_pass(player, subgame, discount)
        values = cut.game.part_values(player, learning.walk, subgame.tree, cut.dtype, cut.trunk_rounds)
        learning.enter()
        return values.astype(cut.dtype)

    def _write(self, player: int, subgame: LoadedSubgame, values: Values) -> None:
        """Write the regrets of one player in a subgame, and the average strategy of the other."""
        cut, number = self.subgames, subgame.number
        dither = self.passes * GOLDEN % 1
        packed = [pack(subgame.regret, *cut.rows_of(player, number, subgame.layouts[player]), self.scale, dither)]
        if self.averaging:
            other = cut.rows_of(1 - player, number, subgame.layouts[1 - player])
            packed.append(pack(subgame.average, *other, AVERAGE_SCALE, dither))
        self.store.write(number, player, KeptNumbers(self.passes + 1, values, tuple(packed)))


class DiskPace(NamedTuple):
    """The speed of CFR on disk, as CPU time per number for reading, computing and writing.

    It is measured in a pass over all subgames, in which one player learns.
    """

    read: float  # including unpacking
    walk: float
    write: float  # including packing

    @property
    def total(self) -> float:
        """The CPU time in seconds for reading, computing and writing a number.

        These steps overlap if CPU cores are free.
        """
        return self.read + self.walk + self.write


USUAL_PACE = DiskPace(*(pace("disk", part) for part in DiskPace._fields))


def measured_pace(subgames: Subgames, seconds: float, *, averaging: bool = False) -> DiskPace:
    """Measure the speed of CFR on disk on some subgames of a game.

    The measurement takes about `seconds` of CPU time. Each subgame is processed twice, and the second time counts: the
    first time there is nothing to read, and some kernels may have to be compiled.
    """
    solver, scratch = DiskTables(subgames, averaging=averaging), subgames.scratch()
    discount = Discount(above=1.0, below=0.0, average=1.0, weight=1.0, average_weight=1.0, predictive=0.0)
    took, numbers = np.zeros(3), 0
    for number in range(subgames.count):
        solver.passes = 0
        for again, player in product((False, True), (0, 1)):
            times = [thread_time()]
            subgame = solver._read(player, number, scratch)
            assert isinstance(subgame, LoadedSubgame)
            times.append(thread_time())
            values = solver._learn(player, discount, subgame)
            times.append(thread_time())
            solver._write(player, subgame, values)
            times.append(thread_time())
            solver.passes += 1
            if again:
                took += np.diff(times)
                numbers += int(subgames.sizes[number]) * subgames.width
        if took.sum() > seconds:
            break
    return DiskPace(*(took / numbers).tolist())
