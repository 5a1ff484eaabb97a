"""CFR+ from disk by workers of an engine, each with some of the subgames on a disk of its own [Johanson16 chapter 9].

The trunk is on the head. Before a pass its strategy goes to all workers, and after it what each subgame is worth comes
back; these are added up in the order of subgames, so that all numbers are those of one process, bit for bit. A worker
keeps its files in a folder for temporary ones. At a checkpoint it gives them to the folder of the run, which all have
to see; when a worker is lost, all begin again from there.

>>> from kilt.engines import LocalEngine
>>> from kilt.games import load_game
>>> from kilt.tree.vector import VectorGame
>>> cut, engine = Subgames(VectorGame(load_game("leduc"))), LocalEngine()
>>> shared, alone = SharedDiskCfr(cut, engine, workers=2), DiskCfr(cut)
>>> shared.step(3)
>>> alone.step(3)
>>> shared.current().exploitability() == alone.current().exploitability(), bool((shared.trunk == alone.trunk).all())
(True, True)
>>> shared.close()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from time import perf_counter, time
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import load_abstractions
from kilt.arrays import Array
from kilt.artifact import os_errors
from kilt.engines import Engine, EngineError, Job, Worker
from kilt.errors import RunError
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.games.tilt import TiltedGame
from kilt.machine import is_locked
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.disk import PACKED, DiskCfr, TrunkCfr
from kilt.solve.disk_buckets import BucketedSubgames, SubgameShares
from kilt.solve.disk_store import LOCK, SubgameStore, copy_files
from kilt.solve.disk_strategy import DiskStrategy, read_subgame
from kilt.solve.disk_subgames import Subgames, Values
from kilt.solve.distributed.partition import shared_out
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table

PREFIX = "kilt-worker-"  # of folders of workers
NEW = 60.0  # seconds, in which a folder may not have been claimed yet


class SubgameWorker:
    """Some subgames on the disk of the machine that it lives on.

    Parameters
    ----------
    make : callable
        What cuts a game into subgames.
    game : Game
        What is solved.
    scale : float
        Whole numbers to a chip.
    averaging : bool
        Whether averages are kept too.
    numbers : sequence of int
        Its subgames.
    """

    def __init__(
        self, make: Callable[[Game], Subgames], game: Game, scale: float, averaging: bool, numbers: Sequence[int]
    ) -> None:
        self.make, self.cut = make, make(game)
        folder = _own_folder()
        self.solver, self.numbers = DiskCfr(self.cut, folder, scale=scale, averaging=averaging), numbers
        self._leave = finalize(self, rmtree, folder, ignore_errors=True)
        self._held = ExitStack()
        self._held.enter_context(self.solver.store.claimed())  # for as long as it lives

    @cached_property
    def real(self) -> Subgames:
        """The subgames with the payoffs of the rules."""
        game = self.cut.game.game
        return self.make(game.real) if isinstance(game, TiltedGame) else self.cut

    def learn(self, player: int, passes: int, trunk: Table) -> tuple[list[Values], float]:
        """Let a player learn, after some passes; what the subgames are worth, and the seconds that it took."""
        began = perf_counter()
        self.solver.passes, self.solver.trunk = passes, trunk
        return list(self.solver.worths(player, self.numbers)), perf_counter() - began

    def walk(self, passes: int, trunk: Table, averaged: bool, real: bool) -> tuple[list[Values], float]:
        """What the subgames are worth to who follows the strategy and to who responds, and the seconds."""
        began = perf_counter()
        strategy = DiskStrategy(self.real if real else self.cut, self.solver.store, passes, trunk, averaged)
        return list(strategy.walk(self.numbers)), perf_counter() - began

    def shares(self, passes: int, trunk: Table, averaged: bool, abstract: SharedCards) -> tuple[list[Any], float]:
        """What a blueprint has in the subgames, as `SubgameShares.of` gives it, and the seconds."""
        began, tables = perf_counter(), self.cut.scratch()
        assert isinstance(self.cut, BucketedSubgames)
        means = SubgameShares(self.cut, abstract.of(self.cut.game.game))
        reads = (
            read_subgame(self.cut, self.solver.store, number, trunk, tables, passes, averaged=averaged)
            for number in self.numbers
        )
        return [means.of(subgame) for subgame in reads], perf_counter() - began

    def save(self, folder: Path) -> None:
        """Give the files to a folder."""
        copy_files(self.solver.store.files(self.numbers), folder)

    def restore(self, folder: Path) -> None:
        """Take the files from a folder in which they were saved."""
        saved = SubgameStore.opened(folder, self.cut.fingerprint)
        copy_files(saved.files(self.numbers), self.solver.store.folder)

    def leave(self) -> None:
        """Take the files away."""
        self._leave()


def cut_game(dtype: str, size: int | None, trunk: int, threads: int, game: Game) -> Subgames:
    """A game, cut into subgames: see `Subgames`."""
    return Subgames(VectorGame(game, threads=threads), dtype, size, trunk)


class SharedCards(NamedTuple):
    """What makes a game abstract, by the folders of its cards, which all machines have to see."""

    folders: tuple[Path, ...]
    actions: ActionAbstraction | None

    def of(self, game: Game) -> AbstractGame:
        """The abstract game."""
        assert isinstance(game, Holdem)
        return AbstractGame(game, load_abstractions(self.folders), self.actions)

    def cut(self, threads: int, game: Game) -> Subgames:
        """The abstract game, cut into subgames."""
        return BucketedSubgames.of(self.of(game), threads)


def _own_folder() -> Path:
    """A new folder for temporary files; those that lost workers have left are taken away."""
    for old in Path(gettempdir()).glob(f"{PREFIX}*"):
        lock = old / LOCK
        with suppress(OSError):
            if time() - lock.stat().st_mtime > NEW and is_locked(lock) is False:
                rmtree(old, ignore_errors=True)
    return Path(mkdtemp(prefix=PREFIX))


class SharedDiskCfr(TrunkCfr):
    """CFR+ on a public tree, with the regrets of subgames on the disks of workers.

    Parameters
    ----------
    subgames : Subgames
        What is solved; each worker has the threads of its game.
    engine : Engine
        Where the workers live. It is closed with the solver.
    workers : int
        How many; no more than there are subgames.
    scale, averaging
        See `DiskCfr`.
    """

    def __init__(
        self,
        subgames: Subgames,
        engine: Engine,
        workers: int,
        *,
        scale: float | None = None,
        averaging: bool = False,
    ) -> None:
        super().__init__(subgames, scale, averaging)
        if not 1 <= workers <= subgames.count:
            raise RunError(f"{workers} workers are to share {subgames.count} subgames: use 1 to {subgames.count}")
        self.engine, self.share_of = engine, shared_out(subgames.sizes, workers)
        self.workers: list[Worker] = []
        self.busy, self.wall = np.zeros(workers), 0.0
        self._hire()

    def _hire(self) -> None:
        cut = self.subgames
        said = self.recipe(), cut.game.game, self.scale, self.averaging
        memory = cut.memory * (1 + self.averaging)
        jobs = [Job(SubgameWorker, (*said, share), memory, cut.game.threads) for share in self.share_of]
        self.workers = self.engine.hire(jobs)

    def recipe(self) -> Callable[[Game], Subgames]:
        """What cuts the game into these subgames on another machine."""
        cut = self.subgames
        return partial(cut_game, cut.dtype.str, cut.size, cut.trunk_rounds, cut.game.threads)

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations, each of them a pass for player 0 and one for player 1."""
        last = 2 * (self.iterations + iterations)
        while self.passes < last:
            player = self.passes % 2
            self.take_in(player, self._worths("learn", player, self.passes, self.trunk))

    def _worths(self, method: str, *arguments: Any) -> list[Any]:
        """What all subgames are worth, in their order, from all workers; or what else they say of them."""
        began = perf_counter()
        answers = [worker.ask(method, *arguments) for worker in self.workers]
        found: dict[int, Any] = {}
        for place, (share, answer) in enumerate(zip(self.share_of, answers, strict=True)):
            worths, seconds = answer.get()
            found.update(zip(share, worths, strict=True))
            self.busy[place] += seconds
        self.wall += perf_counter() - began
        return [found[number] for number in range(self.subgames.count)]

    def _walked(self, strategy: DiskStrategy) -> list[Values]:
        real = strategy.subgames is not self.subgames
        return self._worths("walk", strategy.passes, strategy.trunk, strategy.averaged, real)

    def strategy_of(self, trunk: Table, *, averaged: bool) -> DiskStrategy:
        """The strategy that the workers have now, with weights of the trunk: walks are theirs."""
        return DiskStrategy(self.subgames, SharedStore(self), self.passes, trunk, averaged, walked=self._walked)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The trunk, and the number of passes: all else is with the workers."""
        return {"passes": np.asarray(self.passes), "trunk": self.trunk, "average_trunk": self.average_trunk}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go back to what `state` gave."""
        self.restart()
        self.passes = int(state["passes"])
        self.trunk, self.average_trunk = (
            np.array(state[name], self.subgames.dtype) for name in ("trunk", "average_trunk")
        )

    @property
    def size(self) -> int:
        """Bytes that all files take, at most about."""
        return 4 * self.subgames.numbers * (1 + self.averaging) // PACKED

    def save_parts(self, folder: Path) -> None:
        """Let all workers give their files to a folder."""
        with os_errors(f"{folder} cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
        SharedStore(self).copy_to(folder, self.subgames.fingerprint)

    def restore_parts(self, folder: Path) -> None:
        """Let all workers take their files from a folder that they were given to."""
        self.ask_all("restore", folder)

    def ask_all(self, method: str, *arguments: Any) -> None:
        """Ask all workers to do something, and wait until it is done."""
        for answer in [worker.ask(method, *arguments) for worker in self.workers]:
            answer.get()

    def mend(self) -> None:
        """Replace all workers by new ones, at the state before the first iteration."""
        for worker in self.workers:
            with suppress(EngineError):  # one that is lost
                worker.ask("leave").get()
        self.engine.dismiss(self.workers)
        self._hire()
        self.restart()

    def parts(self) -> list[tuple[str, float]]:
        """Where each worker is, and the share of the time that it has been at work."""
        wall = max(self.wall, 1e-9)
        return [
            (worker.where, min(1.0, float(busy) / wall)) for worker, busy in zip(self.workers, self.busy, strict=True)
        ]

    def spent(self) -> str:
        """Where the time went, in a line."""
        shares = ", ".join(f"{busy:.0%}" for _, busy in self.parts())
        return f"{len(self.workers)} workers ({self.engine.name}) were at work {shares} of the time of passes"

    def close(self) -> None:
        """Let the workers take their files away, and close the engine."""
        with suppress(EngineError):
            self.ask_all("leave")
        self.engine.close()


class SharedBucketedDiskCfr(SharedDiskCfr):
    """CFR+ on an abstract game, with the regrets of subgames on the disks of workers: strategies are over slots.

    Parameters
    ----------
    problem : AbstractProblem
        The game, with cards in folders that all machines see, and how many workers share it.
    engine : Engine
        Where they live. It is closed with the solver.
    scale, averaging
        See `DiskCfr`.
    """

    def __init__(
        self, problem: AbstractProblem, engine: Engine, *, scale: float | None = None, averaging: bool = False
    ) -> None:
        self.cards = SharedCards(tuple(folder.resolve() for folder in problem.cards), problem.abstract.actions)
        cut = BucketedSubgames.of(problem.abstract, problem.threads)
        cut.require_memory(1 + averaging)
        self.shares = SubgameShares(cut, problem.abstract)
        super().__init__(cut, engine, problem.engine.blades, scale=scale, averaging=averaging)

    def recipe(self) -> Callable[[Game], Subgames]:
        """What cuts the game into these subgames on another machine."""
        return partial(self.cards.cut, self.subgames.game.threads)

    def current(self) -> Array:
        """[slot] what regret matching plays now."""
        return self._shares(averaged=False)

    def average(self) -> Array:
        """[slot] the average strategy where it is kept, else that of the last iteration."""
        return self._shares(averaged=self.averaging)

    def _shares(self, *, averaged: bool) -> Array:
        trunk = self.average_trunk if averaged else self.trunk
        return self.shares.whole(self._worths("shares", self.passes, trunk, averaged, self.cards))


class SharedStore(SubgameStore):
    """The files of all workers, which can be given to a folder."""

    def __init__(self, solver: SharedDiskCfr) -> None:
        self.solver, cut = solver, solver.subgames
        self.said = SubgameStore.about(cut.fingerprint, solver.scale, solver.averaging)
        self.count, self.folder = cut.count, Path("the disks of workers")

    def copy_to(self, folder: Path, game: str) -> None:
        """Let all workers give their files to a folder, which they have to see, and the trunk beside them."""
        self.describe(folder, game)
        whole = SubgameStore.opened(folder, game)
        self.solver.ask_all("save", folder.absolute())
        whole.write_trunk(self.solver.passes, self.solver.tables)
