"""Start, stop and resume runs for the web page, each in its own process of `kilt solve`.

Each process has a record in the folder of new runs: ``.NAME.job``, with its number and start time. If the server is
killed, the runs continue. The next server finds their records and controls them.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from os import SEEK_END
from pathlib import Path
from threading import RLock
from time import sleep
from typing import Any

from kilt import artifact
from kilt.config import SPOT, Config, parse_config
from kilt.errors import KiltError, RunError, quoted
from kilt.games import ready_made_games
from kilt.machine import ProcessId, locked
from kilt.runs.folder import RunFolder
from kilt.runs.plan import RunPlan, resolve
from kilt.web.library import estimated_cost

MOST_RUNS = 2  # largest number of runs at a time
LOG, JOB, CONFIG = ".{}.log", ".{}.job", ".{}.toml"  # output of a run, its process, and its configuration
CONTROL = ".control.lock"  # locked by the server that controls the runs of a folder
LAST = 4_000  # bytes of a run's output that are shown
POLL = 0.1  # seconds between checks of runs that are stopping
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")  # names of runs
PLAN = re.compile(r"[\w -]{1,200}", re.ASCII)  # names of card abstractions: no slashes or dots, as paths of files have


@dataclass
class RunJob:
    """The process of a run that the web server has started.

    Attributes
    ----------
    name : str
        Name of the run, as on the server that started it.
    place : Path
        Folder of the run.
    process : ProcessId
        The process that solves.
    stopping : bool
        Whether a signal to stop was sent. A second signal would end it without a checkpoint.
    """

    name: str
    place: Path
    process: ProcessId
    stopping: bool = False


class Runner:
    """The processes that solve games for the web page. A folder of runs has one runner at a time.

    Parameters
    ----------
    folder : Path
        Folder of new runs.

    Raises
    ------
    RunError
        If another server controls the runs of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held = ExitStack()
        with artifact.os_errors(f"{folder} cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                self._held.enter_context(locked(folder / CONTROL, wait=False))
            except BlockingIOError:
                raise RunError(f"another page controls the runs in {folder}: stop it, or leave out `control`") from None
        self._children: list[subprocess.Popen[bytes]] = []
        self._changing = RLock()
        self._jobs = {job.place: job for job in self._recorded()}

    def job(self, place: Path) -> RunJob | None:
        """Return the process of a run, or None if it is not running."""
        return self._at_work().get(place)

    def estimate(self, config: str) -> dict[str, Any]:
        """Estimate the cost of a run from its configuration."""
        return estimated_cost(self._plan(config))

    def start(self, name: str, config: str) -> str:
        """Start a run in a new folder, and return its name on the page."""
        complaints = list[str]()
        if not NAME.fullmatch(name):
            complaints.append(
                f"the run is called {quoted(name)}: use up to 100 letters, digits, '.', '_' and '-', "
                "and begin with a letter or a digit"
            )
        try:
            self._plan(config)
        except KiltError as error:
            complaints.append(str(error))
        if complaints:
            raise RunError("; ".join(complaints))
        place = self.folder / name
        with self._changing, artifact.os_errors(f"{self.folder} cannot be written"):
            if place.exists() or self.job(place):
                raise RunError(f"{name} already exists: choose another name")
            self._require_room()
            file = self.folder / CONFIG.format(name)
            try:
                file.write_text(config, encoding="utf-8")
                self._run(f"{self.folder.name}/{name}", place, "solve", str(file), "--out", str(place))
            except BaseException:
                file.unlink(missing_ok=True)
                raise
        return f"{self.folder.name}/{name}"

    def last_output(self, name: str, place: Path) -> str:
        """Return a run's last output, which is empty unless the page started the run."""
        job = self._jobs.get(place)
        try:
            with (self.folder / LOG.format(_file_name(job.name if job else name))).open("rb") as file:
                file.seek(max(0, file.seek(0, SEEK_END) - LAST))
                return file.read().decode(errors="replace")
        except (OSError, ValueError):
            return ""

    def resume(self, name: str, place: Path) -> None:
        """Resume an unfinished run in a new process."""
        RunFolder.open(place)
        spot = ["spot"] if (place / SPOT).is_file() else []
        with self._changing, artifact.os_errors(f"{self.folder} cannot be written"):
            if self.job(place):
                raise RunError(f"{name} is already running")
            self._require_room()
            self._run(name, place, *spot, "solve", str(place))

    def stop(self, name: str, place: Path | None) -> None:
        """Tell a run to write a checkpoint and stop.

        `place` is its folder, or None if it has none yet.
        """
        with self._changing:
            jobs = self._at_work()
            job = jobs.get(place) if place else next((job for job in jobs.values() if job.name == name), None)
            if job is None:
                raise RunError(f"{name} is not running here: there is nothing to stop")
            if job.stopping:
                raise RunError(f"{name} is already stopping: it writes a checkpoint first")
            self._stop(job)

    def close(self, announce: Callable[[str], None] = lambda text: None) -> None:
        """Stop all runs, and wait for their checkpoints.

        After Ctrl-C, the runs stop by themselves and the server ends at once.
        """
        try:
            with self._changing:
                jobs = self._at_work()
                for job in jobs.values():
                    if not job.stopping:
                        self._stop(job)
            if jobs:
                names = ", ".join(job.name for job in jobs.values())
                announce(f"stopping {names}, which write a checkpoint first (Ctrl-C: do not wait for them)")
            while self._at_work():
                sleep(POLL)
        except KeyboardInterrupt:
            announce("the runs write their checkpoints without the server")
        finally:
            self._held.close()

    def _at_work(self) -> dict[Path, RunJob]:
        """Return unfinished jobs by folder, and delete the records of finished ones."""
        with self._changing:
            self._children = [child for child in self._children if child.poll() is None]
            found = {place: job for place, job in self._jobs.items() if job.process.running}
            for place in self._jobs.keys() - found.keys():
                self._forget(self._jobs.pop(place))
            return found

    def _stop(self, job: RunJob) -> None:
        """Tell a run to stop, by SIGTERM: background processes may ignore SIGINT."""
        job.process.terminate()
        job.stopping = True
        with suppress(OSError):  # runs can be stopped even on a full disk
            self._record(job)

    def _require_room(self) -> None:
        if len(self._at_work()) >= MOST_RUNS:
            raise RunError(f"{MOST_RUNS} runs are already running: stop one, or wait for it")

    def _run(self, name: str, place: Path, *arguments: str) -> None:
        """Start a process of kilt and record it.

        It has its own session, so that Ctrl-C in the server's terminal does not reach it.
        """
        with (self.folder / LOG.format(_file_name(name))).open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "kilt", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            job = RunJob(name, place, ProcessId.with_number(child.pid))
            self._record(job)
        except BaseException:
            child.kill()
            child.wait()
            raise
        self._children.append(child)
        self._jobs[place] = job

    def _record(self, job: RunJob) -> None:
        data = asdict(job) | {"place": str(job.place), "process": list(job.process), "host": socket.gethostname()}
        artifact.write_text(self.folder / JOB.format(_file_name(job.name)), json.dumps(data))

    def _recorded(self) -> list[RunJob]:
        """Return the jobs that earlier servers have recorded on this machine."""
        jobs = []
        for file in self.folder.glob(JOB.format("*")):
            try:
                data = json.loads(file.read_text(encoding="utf-8"))
                if data.pop("host") != socket.gethostname():
                    continue
                pid, started = data.pop("process")
                place, process = Path(data.pop("place")), ProcessId(int(pid), float(started))
                jobs.append(RunJob(**data, place=place, process=process))
            except (OSError, ValueError, TypeError, LookupError, AttributeError):
                file.unlink(missing_ok=True)  # the record does not identify a process
        return jobs

    def _forget(self, job: RunJob) -> None:
        """Delete the record and the configuration of a finished process. The run's folder has its own configuration."""
        with suppress(OSError):
            (self.folder / JOB.format(_file_name(job.name))).unlink(missing_ok=True)
            if job.place.parent == self.folder:
                (self.folder / CONFIG.format(job.place.name)).unlink(missing_ok=True)

    def _plan(self, text: str) -> RunPlan:
        """Return the plan of a run from its configuration. Raises RunError if it is invalid or names files."""
        config = parse_config(text)
        self._require_no_files(config)
        return resolve(config)

    def _require_no_files(self, config: Config) -> None:
        """Raise RunError if a configuration names a file or a folder.

        Users of the page may not open files on this machine.
        """
        named = {
            "`game`": [] if config.game in ready_made_games() else [config.game],
            "`cards`": [cards for cards in config.cards if not PLAN.fullmatch(cards) or self._is_there(cards)],
            "`model` in [counter]": [config.counter.model] if config.counter.model else [],
        }
        for key, values in named.items():
            if values:
                raise RunError(
                    f"{key} is {quoted(values[0])}: the page takes the names of ready-made games and abstractions, "
                    "and opens no files"
                )

    def _is_there(self, name: str) -> bool:
        """Return whether a run would find a file or folder with this name."""
        return any((folder / name).exists() for folder in (Path(), self.folder))


def _file_name(name: str) -> str:
    return name.replace("/", "-")
