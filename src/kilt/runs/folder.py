"""Store a run in a folder: its settings, log, checkpoint and strategy.

A folder contains ``run.json``, ``log.jsonl``, ``checkpoint`` and, after the end of the run, ``strategy``. If workers
store parts of the tables, ``parts`` contains them; they belong to a checkpoint and are written before it. A solver with
tables on disk keeps them in ``subgames``, which may be ahead of the checkpoint. A run that was stopped or killed
resumes from its last checkpoint, if its identity is the same: see `RunIdentity`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from math import inf, nan
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import Any, BinaryIO, NamedTuple

from kilt import __version__, artifact
from kilt.errors import ArtifactError, RunError
from kilt.games import ready_made_games
from kilt.games.game import Game
from kilt.machine import is_locked, locked
from kilt.paces import pace
from kilt.runs.budget import Budget, Step
from kilt.solve.counter import Against
from kilt.solve.problem import CPU, DEVICES, Problem
from kilt.solve.solver import InParts, Solver, StrategyInParts, on_disk, with_workers
from kilt.strategy.blueprint import CARDS, OPPONENT_CARDS, STRATEGY
from kilt.strategy.model import OpponentModel

CONFIG = "config.toml"  # the configuration of a run on an abstract game
MODEL = "model"  # folder of the opponent model of a counter-strategy
SAVING = 0.02  # the share of the time that checkpoints may take,
OFTEN, RARELY = 1.0, 300.0  # but they are at least and at most this many seconds apart
CHECKPOINT = "checkpoint"  # name of the folder, and kind of the artifact
LOCK = ".lock"  # locked by the process that solves the run
PARTS = "parts"
SUBGAMES = "subgames"  # folder of a solver with tables on disk
WRITING = pace("checkpoint", "bytes_per_second")  # assumed pace of the first checkpoint


class RunIdentity(NamedTuple):
    """The settings that determine a run's result. With equal settings, equal iterations give the same strategy."""

    game: str  # the name that the user gave
    algorithm: str
    seed: int
    form: str  # of the game, flat or vector
    fingerprint: str  # of the game in this form
    version: str = __version__  # of kilt
    tilt: str = ""  # tilt of an unabstracted game's payoffs: percentages, separated by commas
    against: str = ""  # p or P_max, and a confidence function, for a counter-strategy in an unabstracted game
    device: str = CPU  # device of the run; it resumes there unless another one is given
    precision: str = ""  # of the solver's tables; empty in runs of kilt 0.1.0

    def __str__(self) -> str:
        game = f"{self.game} ({self.form} form, fingerprint {self.fingerprint})"
        return f"{self.algorithm} on {game}, seed {self.seed}, kilt {self.version}"

    def require(self, wanted: RunIdentity, where: Path) -> None:
        """Raise RunError if this run's settings differ from another run's.

        Only the name of the game may differ.
        """
        remedies = {
            "version": f"resume it with kilt {self.version}",
            "algorithm": f"give {self.algorithm} as `algorithm`",
            "seed": f"give {self.seed} as `seed`",
            "form": f"resume it with the game in {self.form} form",
            "fingerprint": "resume it with the game it was made for",
        }
        for what, remedy in remedies.items():
            if getattr(self, what) != getattr(wanted, what):
                raise RunError(f"{where} is a run of {self}; this is {wanted}: {remedy}, or start a new run")


@dataclass
class RunFolder:
    """The folder of a run, with its settings, log, checkpoint and, at the end, strategy.

    The log has a line for each `Step`.
    """

    path: Path
    identity: RunIdentity
    budget: Budget
    run_id: str = ""  # random, in all manifests that the run writes; missing in runs of older formats
    _log: BinaryIO | None = field(default=None, init=False)
    _saved: tuple[int, float, float] = field(default=(0, 0.0, 0.0), init=False)  # at iteration and second, in seconds

    @classmethod
    def create(
        cls,
        path: Path,
        identity: RunIdentity,
        budget: Budget,
        room: int,
        model: OpponentModel | None = None,
    ) -> RunFolder:
        """Create the folder of a new run, after checking that the disk has enough space.

        The folder must be new or empty. `room` is the number of bytes that must be free.

        The opponent `model` of a counter-strategy is stored there too.
        """
        cls.require_new(path)
        artifact.require_room(path, room)
        folder = cls(path, identity, budget, token_hex(8))
        with cls.exclusive_access(path):
            cls.require_new(path)  # another process may have begun a run meanwhile
            if model:
                path.mkdir(parents=True, exist_ok=True)
                model.save(path / MODEL)
            folder.describe()
        return folder

    @classmethod
    def require_new(cls, path: Path) -> None:
        """Raise RunError if a folder contains another run, or files that kilt has not written."""
        if cls.has_run(path):
            raise RunError(
                f"{path} holds a run already, {cls.open(path).identity}: resume it, or choose another folder"
            )
        if path.exists() and not (path.is_dir() and all(map(_expected, path.iterdir()))):
            raise RunError(f"{path} is there and is no run: choose another folder")

    @property
    def device(self) -> str:
        """Return the device that solves the run, "cpu" or "gpu"."""
        return self.identity.device

    def move_to(self, identity: RunIdentity) -> None:
        """Record in ``run.json`` that the run has moved to another device.

        Nothing is written if the device has not changed.
        """
        if identity.device != self.device:
            self.identity = self.identity._replace(device=identity.device, precision=identity.precision)
            self.describe()

    @staticmethod
    def has_run(path: Path) -> bool:
        """Return whether a folder contains a run."""
        return (path / artifact.RUN).exists()

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of an existing run."""
        try:
            said = json.loads((path / artifact.RUN).read_text(encoding="utf-8"))
            older = {"tilt": "", "against": "", "id": "", "device": CPU, "precision": ""}  # missing in older runs
            known = older | said
            identity = RunIdentity._make(known[what] for what in RunIdentity._fields)
            for what, value in (identity._asdict() | {"id": known["id"]}).items():
                if not isinstance(value, int if what == "seed" else str):
                    raise TypeError(what)
            if artifact.RECORD in said and artifact.recorded_checksums(path / STRATEGY) is None:
                raise TypeError(artifact.RECORD)
            if known["device"] not in DEVICES:
                raise ValueError("device")
            return cls(path, identity, Budget(**said["budget"]), known["id"])
        except OSError:
            raise RunError(f"{path} is no run: it has no run.json that can be read") from None
        except (ValueError, TypeError, KeyError, RecursionError):
            raise RunError(f"{path / 'run.json'} is damaged: start a new run in another folder") from None

    def describe(self) -> None:
        """Write ``run.json``, with the run's settings and its strategy's checksum."""
        names = artifact.recorded_checksums(self.path / STRATEGY)
        if names is None:  # a new run, or one of an older format
            names = []
            with suppress(ArtifactError):
                names = [artifact.checksum_of(self.path / STRATEGY)]
        said = self.identity._asdict() | {"id": self.run_id, "budget": asdict(self.budget)}
        said[artifact.RECORD] = {STRATEGY: names}
        with artifact.os_errors(f"{self.path} cannot be written"):
            self.path.mkdir(parents=True, exist_ok=True)
            artifact.write_text(self.path / artifact.RUN, json.dumps(said, indent=2) + "\n")

    def against(self) -> Against | None:
        """Return the opponent that the run's counter-strategy exploits, or None for other runs.

        The opponent model is for an unabstracted game.
        """
        if not self.identity.against:
            return None
        p, _, confidence = self.identity.against.partition(" ")
        return Against(OpponentModel.load(self.path / MODEL, check=True), float(p), confidence)

    @property
    def ended(self) -> bool:
        """Return whether the run has used up its budget."""
        return any(self.budget.spent(step.iterations, step.seconds) for step in self.steps())

    def steps(self) -> list[Step]:
        """Return the measurements in the run's log.

        Lines that cannot be read are left out.
        """
        return [line.step for line in self._lines() if line.step]

    def require_whole_log(self) -> None:
        """Raise RunError if a line of the log is unreadable."""
        if said := _unreadable(self.path, self._lines()):
            raise RunError(said)

    def _lines(self) -> list[LogLine]:
        file = self.path / "log.jsonl"
        with artifact.os_errors(f"{file} cannot be read"):
            return _read_log(file.read_bytes()) if file.exists() else []

    @property
    def saved_iterations(self) -> int:
        """Return the number of iterations in the last readable checkpoint, or 0."""
        with suppress(ArtifactError, LookupError, TypeError, ValueError):
            return int(artifact.read(self.path / CHECKPOINT, CHECKPOINT).figures["iterations"])
        return 0

    @property
    def is_being_solved(self) -> bool | None:
        """Return whether a process is solving the run now, or None if that is unknown."""
        return is_locked(self.path / LOCK)

    @staticmethod
    @contextmanager
    def exclusive_access(path: Path) -> Iterator[None]:
        """Lock the run's folder against other processes.

        Raises RunError if another process has locked it.
        """
        with artifact.os_errors(f"{path} cannot be written"), ExitStack() as held:
            path.mkdir(parents=True, exist_ok=True)
            try:
                held.enter_context(locked(path / LOCK, wait=False))
            except BlockingIOError:
                raise RunError(f"another process is at work on {path}: wait for it, or stop it") from None
            yield

    @contextmanager
    def working(self) -> Iterator[None]:
        """Lock the run's folder, and open its log for writing.

        `log` and `restore` need the open log.

        Only one process at a time can do so.
        """
        with self.exclusive_access(self.path), (self.path / "log.jsonl").open("a+b") as self._log:
            yield

    def restore(
        self, solver: Solver, budget: Budget, warn: Callable[[str], None] = lambda what: None
    ) -> tuple[float, float]:
        """Restore a solver from the last checkpoint, and return the seconds spent so far.

        There are two numbers: wall time and CPU time.

        Log lines after the checkpoint are removed, because they will be measured again. Unreadable lines are kept and
        reported to `warn`.
        """
        assert self._log is not None
        place, seconds, cpu = self.path / CHECKPOINT, 0.0, 0.0
        if kept := on_disk(solver):
            kept.open(self.path / SUBGAMES, warn, self.run_id)
        remedy = f"copy it from where it is whole, or delete {place}: the run then begins again"
        if place.exists() and not artifact.exists(place):
            raise RunError(f"{place / artifact.MANIFEST} is missing: {remedy}")
        if artifact.exists(place):
            found = artifact.read(place, CHECKPOINT, check=True, remedy=remedy)
            RunIdentity._make(map(found.parameters.get, RunIdentity._fields)).require(self.identity, place)
            with artifact.damage_errors(place, remedy):
                solver.restore(found.arrays)
                seconds, cpu = float(found.figures["seconds"]), float(found.figures.get("cpu_seconds", 0.0))
                if not (0 <= seconds < inf and 0 <= cpu < inf):
                    raise ValueError(f"it has taken {seconds} seconds, {cpu} of CPU time")
            if isinstance(solver, InParts):
                solver.restore_parts(self._parts(solver.iterations))
        self._saved = solver.iterations, seconds, checkpoint_size(solver) / WRITING
        self._drop_other_parts(solver.iterations)
        self._log.seek(0)
        lines = _read_log(self._log.read())
        if said := _unreadable(self.path, lines):
            warn(said)
        again = solver.iterations + (kept is not None and kept.interrupted)
        ends = [line.end for line in lines if line.step and line.step.iterations < again]
        self._log.truncate(ends[-1] if ends else 0)
        if budget != self.budget:
            self.budget = budget
            self.describe()
        return seconds, cpu

    def log(self, step: Step) -> None:
        """Append a measurement to the log."""
        assert self._log is not None
        said = {what: None if value != value else value for what, value in step._asdict().items()}  # JSON has no nan
        self._log.write(json.dumps(said).encode() + b"\n")
        self._log.flush()

    def save(self, solver: Solver, seconds: float, cpu_seconds: float = 0.0, *, at_once: bool = False) -> None:
        """Write a checkpoint, unless the last one is recent.

        If `at_once` is set, it is written in any case, unless it would be the same as the last one.
        """
        iteration, before, took = self._saved
        wait = 0.0 if at_once else min(max(took / SAVING, OFTEN), RARELY)
        if solver.iterations == iteration or seconds - before < wait:
            return
        began = perf_counter()
        if shared := with_workers(solver):
            artifact.require_room(self.path, shared.size)
        if isinstance(solver, InParts):
            solver.save_parts(self._parts(solver.iterations))
        if kept := on_disk(solver):
            kept.settle()
        artifact.write(
            self.path / CHECKPOINT,
            CHECKPOINT,
            solver.state(),
            inputs={"game": self.identity.fingerprint},
            parameters=self.identity._asdict(),
            figures={"iterations": solver.iterations, "seconds": seconds, "cpu_seconds": cpu_seconds},
        )
        self._drop_other_parts(solver.iterations)
        self._saved = solver.iterations, seconds, perf_counter() - began

    def _drop_other_parts(self, iterations: int) -> None:
        """Delete the solver's part files of all checkpoints except the one at `iterations`."""
        for old in (self.path.absolute() / PARTS).glob("*"):
            if old != self._parts(iterations):
                shutil.rmtree(old, ignore_errors=True)

    def _parts(self, iterations: int) -> Path:
        """Return the absolute folder of a checkpoint's part files.

        It is absolute because workers may have another working folder.
        """
        return self.path.absolute() / PARTS / str(iterations)

    def keep(self, steps: Sequence[Step], solver: Solver, problem: Problem) -> None:
        """Write a new run's first log and first checkpoint."""
        with self.working():
            if kept := on_disk(solver):
                kept.open(self.path / SUBGAMES, run=self.run_id)
            for step in steps:
                self.log(step)
            self.finish(solver, problem, steps[-1])

    def finish(self, solver: Solver, problem: Problem, step: Step) -> None:
        """Write the last checkpoint and final strategy of a run."""
        self.save(solver, step.seconds, step.cpu_seconds, at_once=True)
        said = {"algorithm": self.identity.algorithm, "run": self.run_id} | step._asdict()
        strategy: Any = solver if isinstance(solver, StrategyInParts) else solver.average()
        if artifact.recorded_checksums(self.path / STRATEGY) is None:
            self.describe()
        problem.save(self.path / STRATEGY, strategy, **said)


def _expected(file: Path) -> bool:
    """Return whether a file may exist before a run begins, such as a lock or an input of an abstract game."""
    return file.name in (CONFIG, CARDS, OPPONENT_CARDS, MODEL) or file.suffix == ".game" or file.name.startswith(".")


def disk_space_for(solver: Solver) -> int:
    """Return the disk space that a run with a given solver needs, in bytes."""
    # While a checkpoint is written there are two of them; a strategy with its names is about as large. What is kept on
    # disk as it goes is replaced file by file, or all at once by files of workers, and shared with the strategy.
    kept = on_disk(solver)
    return kept.size * (1 if with_workers(solver) is None else 2) if kept else 3 * checkpoint_size(solver)


def checkpoint_size(solver: Solver) -> int:
    """Return the size of a solver's checkpoint on disk, in bytes."""
    if shared := with_workers(solver):
        return shared.size
    return sum(table.nbytes for table in solver.state().values())


class LogLine(NamedTuple):
    """A line of a run's log, with its measurement if readable."""

    step: Step | None  # None if the line cannot be read
    end: int  # end of the line, in bytes
    whole: bool  # whether the line ends with a newline


def _read_log(lines: bytes) -> list[LogLine]:
    """Parse all lines of a run's log."""
    found, end = [], 0
    for line in lines.splitlines(keepends=True):
        end += len(line)
        try:
            said = json.loads(line)
            known: dict[str, Any] = {what: nan if value is None else value for what, value in said.items()}
            step = Step(**known)
            numbers = step._replace(others=0)  # type: ignore[arg-type]
            if not all(isinstance(value, int | float) for value in numbers) or not isinstance(step.others, dict):
                raise ValueError
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            found.append(LogLine(None, end, line.endswith(b"\n")))
        else:
            found.append(LogLine(step, end, True))
    return found


def _unreadable(run: Path, lines: Sequence[LogLine]) -> str:
    """Describe the log lines that cannot be read, except an incomplete last line left by a killed process."""
    bad = [str(n) for n, line in enumerate(lines, 1) if not line.step and (line.whole or n < len(lines))]
    return f"{run / 'log.jsonl'} is damaged: lines that cannot be read are left out ({', '.join(bad)})" if bad else ""


def portable_name(game: str | Game) -> str:
    """Return a name of a game that stays valid in any working folder.

    The name of a file is replaced by its full path.
    """
    if not isinstance(game, str):
        return game.name
    return str(Path(game).resolve()) if game not in ready_made_games() and Path(game).exists() else game
