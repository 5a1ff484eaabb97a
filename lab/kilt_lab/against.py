"""Run a benchmark in this checkout and in another one, in turn: ``kilt bench NAME --against FOLDER-or-COMMIT``.

Each checkout runs in separate processes, with separate caches that start empty. Its first round therefore compiles
all kernels. The CPU time of compilation is one of the figures; other figures of this round are ignored. In each later
round, both checkouts run the benchmark once, in alternating order. Medians of the rounds are compared.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kilt.errors import RunError
from kilt.machine import cpu_seconds
from kilt_lab.benchmarks.measure import LESS, MORE, better_of
from kilt_lab.provenance import clone, git, required_clone

GATE = 5.0  # per cent
ROUNDS = 3
HERE, THERE = "here", "there"
COMPILATION, WHOLE = "compilation_cpu_seconds", "cpu_seconds"
# The process of a round. It needs nothing of kilt but its command line, so that old commits can be measured.
CHILD = """\
import json, sys, time
from numba.core import event

class Clock(event.Listener):
    depth, spent, began = 0, 0.0, 0.0
    def on_start(self, happening):
        if not self.depth:
            self.began = time.process_time()
        self.depth += 1
    def on_end(self, happening):
        self.depth -= 1
        if not self.depth:
            self.spent += time.process_time() - self.began

clock, report = Clock(), sys.argv.pop(1)
event.register("numba:compile", clock)
from kilt.cli import main
try:
    main()
finally:
    with open(report, "w") as file:
        json.dump(clock.spent, file)
"""


class Checkout(NamedTuple):
    """A version of kilt in a folder, with separate caches."""

    name: str
    root: Path
    caches: Path

    def run(self, command: Sequence[str]) -> dict[str, float]:
        """Run a command with ``--json`` in a new process. Returns its figures, and the CPU seconds that it took."""
        paths = [str(self.root / part) for part in ("src", "lab") if (self.root / part).is_dir()]
        own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": ""}
        own |= {"NUMBA_CACHE_DIR": str(self.caches / "kernels"), "KILT_CACHE": str(self.caches / "cache")}
        report, before = self.caches / "compilation.json", cpu_seconds()
        self.caches.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(report), *command, "--json"],
                cwd=folder,
                env=os.environ | own,
                capture_output=True,
                text=True,
                check=False,
            )
        spent = cpu_seconds() - before
        try:
            figures = json.loads(done.stdout) if done.returncode == 0 else None
        except ValueError:
            figures = None
        if figures is None:
            last = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise RunError(f"`kilt {' '.join(command)} --json` failed in {self.root} ({self.name}): {last}")
        known = {key: float(value) for key, value in figures.items() if isinstance(value, int | float)}
        return known | {WHOLE: spent, COMPILATION: json.loads(report.read_text())}


class Comparison(NamedTuple):
    """A figure of a benchmark, measured in two checkouts."""

    key: str
    here: float  # medians
    there: float
    ratio: float  # the median of here / there, round by round
    spread: tuple[float, float]  # the least and the largest of them
    better: str  # MORE or LESS; empty if neither is
    gate: float  # per cent

    @property
    def verdict(self) -> str:
        """`better`, `worse` or `same`; `differs` if no direction is known."""
        if abs(self.ratio - 1) <= self.gate / 100:
            return "same"
        if not self.better:
            return "differs"
        return "better" if (self.ratio > 1) == (self.better == MORE) else "worse"

    def figures(self) -> dict[str, object]:
        """Return all fields and the verdict, by name."""
        return {key: value for key, value in self._asdict().items() if key != "key"} | {"verdict": self.verdict}


def compare(
    command: Sequence[str],
    place: str,
    *,
    rounds: int = ROUNDS,
    gate: float = GATE,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Comparison]:
    """Run a command in both checkouts in turn, and compare the medians of the figures that it prints as JSON.

    Parameters
    ----------
    command : sequence of str
        Arguments of ``kilt``, such as ``["bench", "solvers"]``.
    place : str
        The folder of another checkout, or a commit of this one.
    rounds : int
        Rounds that count, after the one in which kernels are compiled.
    gate : float
        Per cent by which a figure may differ and still count as the same.
    tell : callable
        Called with a line before each run.
    """
    with other_checkout(place) as other, TemporaryDirectory() as caches:
        sides = [
            Checkout(
                HERE, clone() or Path(__file__).parents[1], Path(caches) / HERE
            ),  # a clone, or where kilt is installed
            Checkout(THERE, other, Path(caches) / THERE),
        ]
        found: dict[str, list[dict[str, float]]] = {HERE: [], THERE: []}
        for number in range(rounds + 1):
            for side in sides if number % 2 == 0 else sides[::-1]:
                what = f"round {number} of {rounds}" if number else "compiling"
                tell(f"kilt {' '.join(command)}, {what}: {side.name} ({side.root if side.name == HERE else place})")
                found[side.name].append(side.run(command))
    return compared(found[HERE], found[THERE], gate)


def compared(
    here: Sequence[Mapping[str, float]], there: Sequence[Mapping[str, float]], gate: float
) -> list[Comparison]:
    """Compare the rounds of two checkouts; the first of each is that in which kernels were compiled.

    >>> here, there = [{"cpu_seconds": 9.0}, {"cpu_seconds": 1.0}], [{"cpu_seconds": 5.0}, {"cpu_seconds": 2.0}]
    >>> [(one.key, one.ratio, one.verdict) for one in compared(here, there, 5.0)]
    [('cpu_seconds', 0.5, 'better')]
    """
    comparisons = []
    for key in here[-1]:
        if key not in there[-1]:
            continue
        rounds = slice(0, 1) if key == COMPILATION else slice(1, None)
        pairs = [(one[key], other[key]) for one, other in zip(here[rounds], there[rounds], strict=True)]
        if any(not other for _, other in pairs):
            continue  # there is no ratio to nothing
        ratios = [one / other for one, other in pairs]
        ours, theirs = (median(values) for values in zip(*pairs, strict=True))
        better = LESS if key in (COMPILATION, WHOLE) else better_of(key)
        comparisons.append(Comparison(key, ours, theirs, median(ratios), (min(ratios), max(ratios)), better, gate))
    return comparisons


@contextmanager
def other_checkout(place: str) -> Iterator[Path]:
    """Yield the root of another checkout: a given folder, or a temporary folder with a commit of this clone."""
    folder = Path(place)
    if folder.is_dir():
        if not (folder / "src" / "kilt").is_dir():
            raise RunError(f"--against {place}: the folder has no src/kilt; give a checkout of kilt, or a commit")
        yield folder.resolve()
        return
    root = required_clone(f"--against {place}, which is no folder,")
    try:
        commit = git("rev-parse", "--verify", "--quiet", f"{place}^{{commit}}", root=root)
    except RunError:
        raise RunError(f"--against {place} is no folder and no commit of {root}: give one of these") from None
    packed = subprocess.run(["git", "-C", str(root), "archive", commit], capture_output=True, check=True).stdout
    with TemporaryDirectory() as unpacked:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(unpacked, filter="data")
        yield Path(unpacked)
