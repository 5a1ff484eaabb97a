"""CFR with tables on the disks of several worker machines.

Each worker stores some subgames [Johanson16 chapter 9]. The head process stores the first rounds, called the *trunk*.
Before a pass over the subgames it sends the trunk's strategy to all workers, and afterwards it receives the values of
each subgame. It sums these in the order of subgames, so all results are the same to the bit as in a single process. A
worker stores its files in a temporary folder. At a checkpoint it copies them to the folder of the run, which all
workers must be able to reach, and which then looks like that of a run in one process.

The effect of a pass on a subgame depends only on its files and on the trunk's strategy. The head keeps the strategies
that it has sent since the last checkpoint. When a worker is lost, a new worker takes over its subgames (or the
remaining workers do, if there is no room for a new one). It starts from the files of the checkpoint and repeats the
passes with the stored strategies; all other subgames stay unchanged on their workers.

>>> from kilt.engines import LocalEngine
>>> from kilt.games import load_game
>>> from kilt.solve.cfr import Cfr
>>> from kilt.tree.vector import VectorGame
>>> cut, engine = Subgames(VectorGame(load_game("leduc"))), LocalEngine()
>>> shared, alone = Cfr(WorkerTables(cut, engine, workers=2), "cfr+"), Cfr(DiskTables(cut), "cfr+")
>>> shared.step(3)
>>> alone.step(3)
>>> shared.current().exploitability() == alone.current().exploitability()
True
>>> bool((shared.tables.trunk == alone.tables.trunk).all())
True
>>> shared.tables.close()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial, wraps
from pathlib import Path
from shutil import rmtree
from tempfile import SpooledTemporaryFile, gettempdir, mkdtemp
from time import perf_counter, time
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from weakref import finalize

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import load_abstractions
from kilt.arrays import Array
from kilt.artifact import os_errors
from kilt.engines import Answer, Engine, EngineError, Job, WorkerLost
from kilt.errors import RunError
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.games.tilt import TiltedGame
from kilt.machine import is_locked
from kilt.solve.cfr import Turn
from kilt.solve.distributed.partition import assign_work
from kilt.solve.tables.disk import DiskTables, SubgameTables
from kilt.solve.tables.disk_buckets import BucketedSubgames, SubgameShares
from kilt.solve.tables.disk_files import KeptNumbers
from kilt.solve.tables.disk_store import LOCK, SubgameStore, copy_files
from kilt.solve.tables.disk_strategy import DiskStrategy, read_subgame
from kilt.solve.tables.disk_subgames import Subgames, Values
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table

PREFIX = "kilt-worker-"  # of the names of workers' folders
NEW = 60.0  # seconds that a worker has to lock its new folder
IN_MEMORY = 64 << 20  # bytes of stored trunk strategies above which they are moved to disk
LOSSES = 5  # consecutive lost workers after which a run gives up
P = ParamSpec("P")
R = TypeVar("R")


def _timed(
    work: Callable[Concatenate[SubgameWorker, Sequence[int], P], Iterable[R]],
) -> Callable[Concatenate[SubgameWorker, Sequence[int], P], tuple[list[R], float]]:
    """Wrap a generator method of a worker so that it returns a list of results and the seconds they took."""

    @wraps(work)
    def listed(
        self: SubgameWorker, numbers: Sequence[int], /, *arguments: P.args, **named: P.kwargs
    ) -> tuple[list[R], float]:
        began = perf_counter()
        return list(work(self, numbers, *arguments, **named)), perf_counter() - began

    return listed


class SubgameWorker:
    """A worker of CFR on disk, which stores some subgames' files on its machine.

    Parameters
    ----------
    make : callable
        Cuts a game into subgames.
    game : Game
        The game to solve.
    scale : float
        Integers per chip.
    averaging : bool
        Whether to store averages too.
    """

    def __init__(self, make: Callable[[Game], Subgames], game: Game, scale: float, averaging: bool) -> None:
        self.make, self.cut = make, make(game)
        self._means: SubgameShares | None = None  # created on demand, for players who see buckets
        folder = _own_folder()
        self.tables = DiskTables(self.cut, folder, scale=scale, averaging=averaging)
        self.tables.store.repeating = True
        self._leave = finalize(self, rmtree, folder, ignore_errors=True)
        self._held = ExitStack()
        self._held.enter_context(self.tables.store.lock())  # until the worker ends

    @cached_property
    def real(self) -> Subgames:
        """The same subgames with the game's original payoffs."""
        game = self.cut.game.game
        return self.make(game.real) if isinstance(game, TiltedGame) else self.cut

    @_timed
    def learn(self, numbers: Sequence[int], passes: int, trunk: Table, discount: Discount) -> Iterable[Values]:
        """Update one player's regrets in some subgames, and yield each subgame's values.

        A subgame that has already finished this pass is not computed again: its values are in its file.
        """
        self.tables.passes, self.tables.trunk[...] = passes, trunk
        return self.tables.update_some(passes % 2, discount, numbers)

    @_timed
    def replay(self, numbers: Sequence[int], passes: int, trunk: Table, discount: Discount) -> Iterable[None]:
        """Repeat a pass over some subgames after the loss of the worker that had done it.

        The values are not returned, because the head process has them.
        """
        self.tables.passes, self.tables.trunk[...] = passes, trunk
        return (None for _ in self.tables.update_some(passes % 2, discount, numbers))

    @_timed
    def walk(self, numbers: Sequence[int], passes: int, trunk: Table, averaged: bool, real: bool) -> Iterable[Values]:
        """Evaluate a strategy and best responses to it, and yield some subgames' values."""
        return DiskStrategy(self.real if real else self.cut, self.tables.store, passes, trunk, averaged).walk(numbers)

    @_timed
    def shares(
        self, numbers: Sequence[int], passes: int, trunk: Table, averaged: bool, cards: SharedCards
    ) -> Iterable[list[Array]]:
        """Yield the strategy in the given subgames, with probabilities rounded to integers."""
        tables = self.cut.scratch()
        if self._means is None:
            assert isinstance(self.cut, BucketedSubgames)
            self._means = SubgameShares(self.cut, cards.of(self.cut.game.game))
        for number in numbers:
            yield self._means.subgame_shares(
                read_subgame(self.cut, self.tables.store, number, trunk, tables, passes, averaged=averaged)
            )

    @_timed
    def save(self, numbers: Sequence[int], folder: Path) -> Iterable[list[int]]:
        """Copy some subgames' files to a folder, and yield their checksums."""
        for number in numbers:
            copy_files(self.tables.store.files([number]), folder)
            yield self.tables.store.checksums_of(number)

    @_timed
    def restore(self, numbers: Sequence[int], folder: Path) -> Iterable[None]:
        """Copy some subgames' files from a folder, unless they are already there."""
        saved, here = SubgameStore.opened(folder, self.cut.fingerprint), self.tables.store
        passes = saved.read_trunk().passes
        for number in numbers:
            for player in (0, 1):
                saved.require(number, player, passes)
            there = [file for file in saved.files([number]) if not (here.folder / file.name).exists()]
            copy_files(there, here.folder)
            yield

    def leave(self) -> None:
        """Delete the worker's files."""
        self._leave()


def cut_game(dtype: str, size: int | None, trunk: int, threads: int, game: Game) -> Subgames:
    """Split a game into subgames for a worker."""
    return Subgames(VectorGame(game, threads=threads), dtype, size, trunk)


class SharedCards(NamedTuple):
    """The folders of card abstractions, from which every machine loads the same abstract game.

    All machines must be able to read the folders.
    """

    folders: tuple[Path, ...]
    actions: ActionAbstraction | None

    def of(self, game: Game) -> AbstractGame:
        """Return the abstract game for given rules."""
        assert isinstance(game, Holdem)
        return AbstractGame(game, load_abstractions(self.folders), self.actions)

    def cut(self, threads: int, game: Game) -> Subgames:
        """Load the card abstractions, and return the abstract game split into subgames."""
        return BucketedSubgames.of(self.of(game), threads)


def _own_folder() -> Path:
    """Create a folder for temporary files, and delete folders that lost workers have left behind."""
    for old in Path(gettempdir()).glob(f"{PREFIX}*"):
        lock = old / LOCK
        with suppress(OSError):
            if time() - lock.stat().st_mtime > NEW and is_locked(lock) is False:
                rmtree(old, ignore_errors=True)
    return Path(mkdtemp(prefix=PREFIX))


class SentTrunks:
    """A record of the head process's messages, from which a new worker can repeat a lost worker's passes.

    With it, the new worker can repeat the passes of the lost one. The record is in memory, and moves to disk when it
    exceeds `IN_MEMORY` bytes.
    """

    def __init__(self) -> None:
        self.since, self.discounts, self._file = 0, list[Discount](), SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115, it is closed below
        finalize(self, self._file.close)

    def forget_all(self, since: int) -> None:
        """Delete the record of earlier passes, and start again with pass number `since`."""
        self.since, self.discounts = since, []
        self._file.seek(0)
        self._file.truncate()

    def record(self, passes: int, trunk: Table, discount: Discount) -> None:
        """Record what a pass sends to workers: the first rounds' regrets, and the discount factors.

        With them, the pass can be repeated after a worker was lost.
        """
        self.discounts[passes - self.since :] = [discount]
        with os_errors(f"strategies of the trunk in {gettempdir()}"):
            self._file.seek((passes - self.since) * trunk.nbytes)
            self._file.write(trunk.tobytes())

    def recall(self, passes: int, like: Table) -> tuple[Table, Discount]:
        """Return what was recorded for a pass: the first rounds' regrets, and the discount factors.

        The regrets have the shape and type of `like`.
        """
        with os_errors(f"strategies of the trunk in {gettempdir()}"):
            self._file.seek((passes - self.since) * like.nbytes)
            trunk = np.frombuffer(self._file.read(like.nbytes), like.dtype).reshape(like.shape)
        return trunk, self.discounts[passes - self.since]


class WorkerTables(SubgameTables):
    """CFR's tables on disk, with the files of subgames on the workers' own disks.

    Parameters
    ----------
    subgames : Subgames
        The game, cut into subgames. Each worker uses as many threads as the game has.
    engine : Engine
        Runs the workers. It is closed with the solver.
    workers : int
        Number of workers, at most the number of subgames.
    recipe : callable, optional
        Cuts the game into the same subgames on another machine. Default: `cut_game`.
    scale, averaging
        See `DiskTables`.
    """

    def __init__(
        self,
        subgames: Subgames,
        engine: Engine,
        workers: int,
        *,
        recipe: Callable[[Game], Subgames] | None = None,
        scale: float | None = None,
        averaging: bool = False,
    ) -> None:
        if not 1 <= workers <= subgames.count:
            raise RunError(f"{workers} workers are to share {subgames.count} subgames: use 1 to {subgames.count}")
        self.engine, self.share_of = engine, assign_work(subgames.sizes, workers)
        usual = subgames.dtype.str, subgames.size, subgames.trunk_rounds, subgames.game.threads
        self.recipe = recipe or partial(cut_game, *usual)
        self.busy, self.wall, self.losses = np.zeros(workers), 0.0, 0
        self._behind = set[int]()  # subgames whose worker lacks their files, or has older ones
        self._lost: dict[int, WorkerLost] = {}  # [worker] the error, for workers to be replaced
        self._said: dict[int, Any] = {}  # [subgame] the answers to the current request
        self._sent = SentTrunks()  # since the last files in the run's folder
        self._rounds = 0  # consecutive rounds with lost workers
        super().__init__(subgames, scale=scale, averaging=averaging)
        self.walked = self._walk
        self.workers = engine.hire([self._job] * workers)

    @property
    def _job(self) -> Job:
        cut = self.subgames
        memory = cut.memory * (1 + self.averaging)
        return Job(SubgameWorker, (self.recipe, cut.game.game, self.scale, self.averaging), memory, cut.game.threads)

    # ── the folder ──

    def open(self, folder: Path, warn: Callable[[str], None] = lambda what: None, run: str = "") -> None:
        """Start storing tables in a folder that all workers can reach, or resume from its files."""
        began = self.passes == 0
        super().open(folder.absolute(), warn, run)
        self._sent.forget_all(self.passes)
        if self.passes and began:
            self._behind = set(range(self.subgames.count))

    def open_store(self, folder: Path, *said: Any) -> SubgameStore:
        """Return the object that reads the shared folder to which workers copy their subgames."""
        return SharedStore(self.settle, folder, *said)

    def settle(self) -> None:
        """Have all workers copy newer files to the run's folder."""
        if self.passes > self._sent.since:
            with self.store.lock():
                if self.store.read_trunk().passes != self._sent.since:
                    raise RunError(f"another process has continued {self.store.folder}: open it again")
                self.copy_files_to(self.store)
            self._sent.forget_all(self.passes)

    def copy_files_to(self, store: SubgameStore) -> None:
        """Have all workers copy their files to another folder."""
        store.checksums = np.array(self._ask("save", store.create_replacements()), np.uint64)
        store.replace_files(self.passes, self.trunk_tables)

    # ── workers ──

    def update_subgames(self, turn: Turn, discount: Discount) -> Iterator[tuple[slice, Values]]:
        """Have all workers update their subgames, and yield each subgame's values."""
        self._sent.record(self.passes, self.trunk, discount)
        found = self._ask("learn", self.passes, self.trunk, discount)
        return ((self.subgames.entry_slice(number), worth) for number, worth in enumerate(found))

    def shares(self, strategy: DiskStrategy, cards: SharedCards) -> list[list[Array]]:
        """Have all workers convert a strategy to probabilities that are rounded to integers."""
        return self._ask("shares", strategy.passes, strategy.trunk, strategy.averaged, cards)

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method for all subgames on their workers.

        Return the answers in order; replace lost workers and ask again.
        """
        began, self._said, self._rounds = perf_counter(), {}, 0
        while len(self._said) < self.subgames.count:
            self._bring_back()
            left = [[number for number in share if number not in self._said] for share in self.share_of]
            self._said.update(self._answers(left, method, *arguments))
        self.wall += perf_counter() - began
        return [self._said[number] for number in range(self.subgames.count)]

    def _answers(self, asked: list[list[int]], method: str, *arguments: Any) -> dict[int, Any]:
        """Call a method for the subgames listed for each worker.

        The answers of lost workers are missing from the result.
        """
        found, waiting = dict[int, Any](), dict[int, Answer]()
        for place, numbers in enumerate(asked):
            with self._watched(place):
                if numbers:
                    waiting[place] = self.workers[place].ask(method, numbers, *arguments)
        for place, answer in waiting.items():
            with self._watched(place):
                said, seconds = answer.get()
                found.update(zip(asked[place], said, strict=True))
                self.busy[place] += seconds
        return found

    @contextmanager
    def _watched(self, place: int) -> Iterator[None]:
        """Record a worker that is lost during this block, with its subgames, and discard their answers."""
        try:
            yield
        except WorkerLost as error:
            self._lost[place] = WorkerLost(place, error.why)  # the error may number the worker differently
            self._behind.update(self.share_of[place])
            for number in self.share_of[place]:
                self._said.pop(number, None)

    def _bring_back(self) -> None:
        """Bring lost subgames to the last complete pass, from the folder's files and the regrets sent since."""
        while self._behind:
            lost, self._lost = self._lost, {}
            self._rounds += bool(lost)
            for place, error in lost.items():
                if self._rounds > LOSSES:
                    raise EngineError(
                        f"{error}, {LOSSES} times in a row: check the machines' memory, or use fewer workers"
                    )
                self._replace(place, error, set(lost))
            behind = [[number for number in share if number in self._behind] for share in self.share_of]
            if self._sent.since:
                self._answers(behind, "restore", self.store.folder)
            for passes in range(self._sent.since, self.passes):
                if not self._lost:
                    self._answers(behind, "replay", passes, *self._sent.recall(passes, self.trunk))
            if not self._lost:
                self._behind = set()

    def _replace(self, place: int, error: WorkerLost, lost: set[int]) -> None:
        """Give the subgames of a lost worker to a new one, or to the remaining workers if there is no room for it."""
        mine, since = self.share_of[place], self._sent.since // 2
        said = f"{error}; its {len(mine):,} subgames are worked on again from iteration {since:,} on"
        self.losses += 1
        self.engine.dismiss([self.workers[place]])
        try:
            (self.workers[place],) = self.engine.hire([self._job])
        except WorkerLost as another:
            self._lost[place] = WorkerLost(place, another.why)
        except EngineError as full:
            others = [other for other, share in enumerate(self.share_of) if share and other not in lost]
            if not others:
                raise
            self.share_of[place] = []
            shares = assign_work(self.subgames.sizes[mine], min(len(others), len(mine)))
            for other, some in zip(others, shares, strict=False):
                self.share_of[other] = self.share_of[other] + [mine[number] for number in some]
            said += f", by others: {full}"
        self.warn(said)

    def _walk(self, strategy: DiskStrategy) -> list[Values]:
        """Have all workers evaluate a strategy that is stored in their files."""
        real = strategy.subgames is not self.subgames
        return self._ask("walk", strategy.passes, strategy.trunk, strategy.averaged, real)

    def how_busy(self) -> list[tuple[str, float]]:
        """Return the machine of each worker, and the share of time that the worker was busy."""
        wall, all_of = max(self.wall, 1e-9), zip(self.workers, self.busy, self.share_of, strict=True)
        return [(worker.where, min(1.0, float(busy) / wall)) for worker, busy, share in all_of if share]

    def describe_load(self) -> str:
        """Describe in one line how much of the time workers were busy."""
        shares = [f"{busy:.0%}" for _, busy in self.how_busy()]
        lost = f"; lost on the way: {self.losses}" if self.losses else ""
        return f"workers ({self.engine.name}): {len(shares)}, at work {', '.join(shares)} of the time{lost}"

    def close(self) -> None:
        """Have the workers delete their files, and shut down their engine."""
        for worker, share in zip(self.workers, self.share_of, strict=True):
            with suppress(EngineError):  # one that is lost
                if share:
                    worker.ask("leave").get()
        self.engine.close()


class SharedStore(SubgameStore):
    """A folder with the subgames' files, to which workers copy newer files before it is read."""

    def __init__(self, settle: Callable[[], None], folder: Path, *said: Any) -> None:
        super().__init__(folder, *said)
        self.settle = settle

    def open(self, number: int, player: int, passes: int) -> KeptNumbers:
        """Read a player's file of a subgame, after workers have copied newer files."""
        self.settle()
        return super().open(number, player, passes)

    def copy_to(self, folder: Path, game: str) -> None:
        """Put all files into another folder, after workers have copied newer files."""
        self.settle()
        super().copy_to(folder, game)
