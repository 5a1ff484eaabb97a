"""Runs that the page starts, stops and goes on with: `kilt solve` in processes of its own.

What they find is on disk, and the page reads it there: a run that was started here can be resumed anywhere.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from kilt.config import SPOT, read_config
from kilt.errors import RunError
from kilt.games import ready_made_games
from kilt.runs.folder import RunFolder
from kilt.runs.plan import RunPlan, resolve
from kilt.web.library import taken

MOST_RUNS = 2  # at work at a time
SAID = ".{}.log"  # what a run prints, by its name
LAST = 4_000  # bytes of it that are shown


class Runner:
    """Processes that solve.

    Parameters
    ----------
    folder : Path
        Where new runs go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._said: dict[str, Path] = {}  # where runs that were started here write what they print
        self._changing = Lock()

    def working(self) -> dict[str, bool]:
        """Whether each run that was started here is at work."""
        return {name: process.poll() is None for name, process in self._processes.items()}

    def estimate(self, config: str) -> dict[str, Any]:
        """What a run would take: see `kilt.web.library.taken`."""
        with TemporaryDirectory() as folder:
            return taken(_plan(Path(folder) / "config.toml", config))

    def start(self, name: str, config: str) -> str:
        """Start a run in a new folder; its name in the library."""
        place = self.folder / name
        if place.exists():
            raise RunError(f"{name} is there already: choose another name")
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f".{name}.toml"
        _plan(file, config)
        self._run(f"{self.folder.name}/{name}", "solve", str(file), "--out", str(place))
        return f"{self.folder.name}/{name}"

    def said(self, name: str) -> str:
        """The last that a run has printed, if it was started here."""
        try:
            with self._said[name].open("rb") as file:
                file.seek(max(0, file.seek(0, SEEK_END) - LAST))
                return file.read().decode(errors="replace")
        except (KeyError, OSError):
            return ""

    def resume(self, name: str, place: Path) -> None:
        """Go on with a run."""
        RunFolder.open(place)
        spot = ["spot"] if (place / SPOT).is_file() else []
        self._run(name, *spot, "solve", "--resume", str(place))

    def stop(self, name: str) -> None:
        """Let a run that was started here write a checkpoint and stop."""
        process = self._processes.get(name)
        if process is None or process.poll() is not None:
            raise RunError(f"{name} is not at work here: there is nothing to stop")
        process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Stop all that were started here, and wait for their checkpoints."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self._processes.values():
            process.wait()

    def _run(self, name: str, *arguments: str) -> None:
        with self._changing:
            if sum(self.working().values()) >= MOST_RUNS:
                raise RunError(f"{MOST_RUNS} runs are at work: stop one, or wait for it")
            if self.working().get(name):
                raise RunError(f"{name} is at work already")
            self._said[name] = self.folder / SAID.format(name.replace("/", "-"))
            with self._said[name].open("ab") as said:
                self._processes[name] = subprocess.Popen(
                    [sys.executable, "-m", "kilt", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                )


def _plan(file: Path, text: str) -> RunPlan:
    """Write a configuration to a file and see what it means; RunError where it names files of its own."""
    file.write_text(text, encoding="utf-8")
    config = read_config(file)
    if config.game not in ready_made_games() or any(set(cards) & {"/", "\\"} for cards in config.cards):
        file.unlink()
        raise RunError("runs that are started here take ready-made games and plans of cards: use kilt solve for files")
    return resolve(config)
