"""Tables on disk, for games whose tables are larger than memory [Johanson16 chapter 9].

The first round is the *trunk*, which stays in memory. All that follows some boards of the second round, one or several,
is a *subgame*, whose regrets are whole numbers, compressed in a file. Where that is too large for one board, it is cut
by the betting of the first round, or the trunk has two rounds, and a subgame is one board of the second with one way of
betting in both. An iteration is a pass over all subgames for each player in turn:

    for each subgame
        read    regret  = whole number / scale
        walk    down with the trunk's strategy, up with the values of its chance nodes, as in `vector`:
                regret  = max(regret + value(child) − value(node), 0)
        write   whole number = regret · scale, rounded, and the values beside it
    trunk       the values of all subgames, added up in their order, go up the trunk

The next subgames are read and unpacked while one is walked, and the last ones packed and written. There is no average
unless it is asked for: with regret matching+ the strategy of the last iteration converges by itself, if not by proof.

A file is replaced in one step. It says which pass has written it, and what the subgame was worth then: a pass that was
interrupted goes on with the subgames that it has not come to, and ends in the same numbers.

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
from kilt.solve.learning_kernels import PlayerTables, conclude
from kilt.solve.tables.disk_store import COMING, KeptNumbers, SubgameStore, pack
from kilt.solve.tables.disk_strategy import AVERAGE_SCALE, DiskStrategy, read_subgame, unpack_rows
from kilt.solve.tables.disk_subgames import LoadedSubgame, SubgameMemory, Subgames, Values
from kilt.solve.tables.memory import learning_walk
from kilt.solve.tables.parts import Learning, PartTables, require_unsigned
from kilt.solve.variants import Variant
from kilt.tree.rule import Discount
from kilt.tree.vector_arrays import FOLLOW, Table

# Numbers are rounded down after a share of 1 was added, the same for all of a pass, which over passes lies evenly
# between 0 and 1: what is lost in one is gained in others, and neighbours that are alike stay so.
GOLDEN = (5**0.5 - 1) / 2
PACKED = 4  # to one: the least that compression is counted on for, before anything is known


class SubgameTables(PartTables):
    """The tables of the trunk, with subgames that are wherever they are.

    Parameters
    ----------
    subgames : Subgames
        What is solved.
    folder : Path, optional
        Where files are: see `DiskTables`.
    scale : float, optional
        Whole numbers to a chip: see `DiskTables`.
    averaging : bool
        Whether the average strategy is kept too.
    """

    store: SubgameStore
    interrupted: bool  # whether an iteration was begun: of what was there before, some is gone

    def __init__(
        self,
        subgames: Subgames,
        folder: Path | None = None,
        scale: float | None = None,
        averaging: bool = False,
    ) -> None:
        self.subgames, self.averaging = subgames, averaging
        self.vectors, self.dtype, self.trunk_rounds = subgames.game, subgames.dtype, subgames.trunk_rounds
        self.scale = subgames.default_scale if scale is None else float(scale)
        self._tasks = np.full(len(subgames.game.tree.rows), FOLLOW)
        self.passes = 0
        self._known: dict[tuple[int, bool], DiskStrategy] = {}
        shape = subgames.trunk_rows, subgames.width
        self.trunk, self.average_trunk = (np.zeros(shape, subgames.dtype) for _ in range(2))
        self._temporary: finalize[[Path], SubgameTables] | None = None
        if folder is not None:
            self.open(folder)
            return
        folder = Path(mkdtemp(prefix="kilt-subgames-"))
        taken_away = finalize(self, rmtree, folder, ignore_errors=True)
        self.open(folder)
        self._temporary = taken_away

    def open(self, folder: Path, warn: Callable[[str], None] = lambda what: None, run: str = "") -> None:
        """Keep all that is learnt in a folder, or resume from what is there.

        Parameters
        ----------
        folder : Path
            Created if it is missing.
        warn : callable
            Called with a line about each loss of a worker.
        run : str
            The id of the run that the folder belongs to. RunError is raised for files of another run.
        """
        self.warn, said = warn, (self.subgames.fingerprint, self.scale, self.averaging, self.subgames.count, run)
        store = self.store_in(folder, *said)
        if self.passes:
            self.give_to(store)
        elif (folder / COMING).exists():
            with store.claimed():
                store.complete()
        self.store, kept = store, store.read_trunk()
        if kept.passes:
            shape = (1 + self.averaging) * self.subgames.trunk_rows, self.subgames.width
            if kept.values.shape != shape:
                raise RunError(f"the trunk in {folder} has shape {kept.values.shape}, not {shape}: begin again")
            tables = kept.values.astype(self.subgames.dtype)
            self.passes, self.trunk = kept.passes, tables[: len(self.trunk)].copy()
            self.average_trunk = tables[len(tables) - len(self.trunk) :].copy()
        store.begin(self.passes, self.trunk)
        self.interrupted = store.survey(self.passes) or self.passes % 2 == 1
        self._known.clear()
        if self._temporary is not None:
            self._temporary()

    def store_in(self, folder: Path, *said: Any) -> SubgameStore:
        """Files in a folder; `said` is what `SubgameStore` takes beside it."""
        return SubgameStore(folder, *said)

    @abstractmethod
    def give_to(self, store: SubgameStore) -> None:
        """Put all files, as they are after the last pass, into another folder."""

    @abstractmethod
    def settle(self) -> None:
        """Bring the folder to the last pass that is complete."""

    @property
    def size(self) -> int:
        """Bytes that the files take, about, before anything is known of them; and as they are later."""
        return max(self.store.size, 4 * self.subgames.numbers * (1 + self.averaging) // PACKED)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The number of iterations: all else is in the folder."""
        return {"iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Compare the folder with a checkpoint, which may be older but not newer."""
        self.store.require_passes(self.passes, 2 * int(state["iterations"]))

    @property
    def iterations(self) -> int:
        """Iterations that are complete."""
        return self.passes // 2

    @iterations.setter
    def iterations(self, count: int) -> None:
        self.passes = 2 * count

    @property
    def trunk_tables(self) -> Table:
        """[row, hand] the tables of the trunk: regrets, and the average where it is kept below them."""
        return np.concatenate([self.trunk, self.average_trunk] if self.averaging else [self.trunk])

    def prepare(self, variant: Variant) -> None:
        """Refuse negative regrets: files hold whole numbers of 0 and more."""
        require_unsigned(variant, "regrets on disk")

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run an iteration for each row of discounts: a pass for player 0, and one for player 1.

        One that was interrupted is completed first, and counts.
        """
        for row in rows.tolist():
            self.take(Discount._make([*row, predictive]), SELF_PLAY[self.passes % 2 :])
        self.interrupted = False

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Run the pass of a player."""
        super().learn(turn, discount)
        self.passes += 1

    def opened(self, turn: Turn) -> int:
        """Chance nodes that end the trunk."""
        return int(self.subgames.opened)

    def trunk_learning(self, turn: Turn, discount: Discount) -> Learning:
        """The walk of the trunk."""
        cut = self.subgames
        tables = self.trunk, self.average_trunk, cut.sums(cut.trunk_rows)
        return self.learning(turn.player, LoadedSubgame(-1, cut.game.tree, cut.layouts(), *tables), discount)

    def current(self) -> Any:
        """The strategy of the last iteration: a `DiskStrategy`, good until the next step or folder."""
        return self._strategy(averaged=False)

    def average(self) -> Any:
        """The average strategy where it is kept, else that of the last iteration: a `DiskStrategy`."""
        return self._strategy(averaged=self.averaging)

    def _strategy(self, *, averaged: bool) -> DiskStrategy:
        key = self.passes, averaged
        if key not in self._known:  # what was measured of it is not measured again
            trunk = (self.average_trunk if averaged else self.trunk).copy()
            self._known = {each: known for each, known in self._known.items() if each[0] == self.passes}
            self._known[key] = self.strategy_of(trunk, averaged=averaged)
        return self._known[key]

    @abstractmethod
    def strategy_of(self, trunk: Table, *, averaged: bool) -> DiskStrategy:
        """The strategy that subgames have now, with weights of the trunk."""

    def learning(self, player: int, subgame: LoadedSubgame, discount: Discount) -> Learning:
        """What lets a player learn in a subgame, or in the trunk."""
        cut, regret = self.subgames, subgame.regret
        first, second = (
            PlayerTables(
                layout,
                regret,
                regret,
                subgame.average,
                self.averaging,
                cut.bucket_rows(seat, subgame.number, layout),
                subgame.sums,
                regret[:0],
            )
            for seat, layout in enumerate(subgame.layouts)
        )
        own, theirs = (second, first) if player else (first, second)
        walk = learning_walk(subgame.tree, player, self._tasks, own, theirs, discount)
        return Learning(walk, partial(conclude, own, theirs, cut.game.tree.noise, discount, cut.game.scope(player)))


class DiskTables(SubgameTables):
    """Regrets on a public tree, those of subgames in files. The variant keeps no negative regrets.

    Parameters
    ----------
    subgames : Subgames
        What is solved.
    folder : Path, optional
        Where the files are; those that are there already are gone on from. Left out: a folder that goes with the
        tables, until `open` gives them one to stay.
    scale : float, optional
        Whole numbers to a chip that is won from one hand of the opponent: regrets are rounded to a multiple of
        1 / `scale`, and end at 2³¹ of them. Left out: the largest regret that one walk can find has 18 bits.
    averaging : bool
        Whether the average strategy is kept too, in twice the space: see `average`.
    """

    def __init__(
        self, subgames: Subgames, folder: Path | None = None, *, scale: float | None = None, averaging: bool = False
    ) -> None:
        super().__init__(subgames, folder, scale, averaging)

    def give_to(self, store: SubgameStore) -> None:
        """Put all files into another folder, which may be that of a run."""
        self.store.copy_to(store.folder, self.subgames.fingerprint)
        store.checksums = self.store.checksums.copy()
        store.write_trunk(self.passes, self.trunk_tables)

    def settle(self) -> None:
        """Do nothing: the folder is at the last pass always."""

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run an iteration for each row of discounts, with the folder for nobody else."""
        with self.store.claimed():
            if self.store.read_trunk().passes != self.passes:
                raise RunError(f"another process has gone on in {self.store.folder}: begin there again")
            super().run(rows, predictive)

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Run the pass of a player over all subgames, and keep the trunk."""
        super().learn(turn, discount)
        self.store.write_trunk(self.passes, self.trunk_tables)

    def worths(self, turn: Turn, discount: Discount) -> Iterator[tuple[slice, Values]]:
        """Read, walk and write all subgames, side by side."""
        walked = enumerate(self.walked(turn.player, discount))
        return ((self.subgames.opens(number), worth) for number, worth in walked)

    def walked(self, player: int, discount: Discount, numbers: Iterable[int] | None = None) -> Iterator[Values]:
        """Let a player learn in all subgames, or in some; what they are worth, in their order."""
        self.store.begin(self.passes, self.trunk)
        read, write = partial(self._read, player), partial(self._write, player)
        return self.subgames.stream(read, partial(self._learn, player, discount), write, numbers)

    def _read(self, player: int, number: int, tables: SubgameMemory) -> LoadedSubgame | Values:
        """A subgame for the pass of a player, or what it is worth, where that was found before an interruption."""
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
        """[chance node that leads there, hand] what a subgame is worth to a player who learns."""
        cut = self.subgames
        learning = self.learning(player, subgame, discount)
        values = cut.game.part_values(player, learning.walk, subgame.tree, cut.dtype, cut.trunk_rounds)
        learning.enter()
        return values.astype(cut.dtype)

    def _write(self, player: int, subgame: LoadedSubgame, values: Values) -> None:
        """Keep what a player has learnt in a subgame, and the other's average."""
        cut, number = self.subgames, subgame.number
        dither = self.passes * GOLDEN % 1
        packed = [pack(subgame.regret, *cut.rows_of(player, number, subgame.layouts[player]), self.scale, dither)]
        if self.averaging:
            other = cut.rows_of(1 - player, number, subgame.layouts[1 - player])
            packed.append(pack(subgame.average, *other, AVERAGE_SCALE, dither))
        self.store.write(number, player, KeptNumbers(self.passes + 1, values, tuple(packed)))

    def strategy_of(self, trunk: Table, *, averaged: bool) -> DiskStrategy:
        """The strategy that the folder has now, with weights of the trunk."""
        return DiskStrategy(self.subgames, self.store, self.passes, trunk, averaged)


class DiskPace(NamedTuple):
    """Seconds of a core for each number of the tables, in a pass over all subgames for one player."""

    read: float  # and unpack
    walk: float
    write: float  # and pack

    @property
    def total(self) -> float:
        """Of all three, which go on side by side where cores are free."""
        return self.read + self.walk + self.write


USUAL_PACE = DiskPace(*(pace("disk", part) for part in DiskPace._fields))


def measured_pace(subgames: Subgames, seconds: float, *, averaging: bool = False) -> DiskPace:
    """Work on the first subgames for some seconds of CPU time, in a folder of their own, and see how fast that goes.

    Each is worked on twice: the first time there is nothing to read, and something may have to be compiled.
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
