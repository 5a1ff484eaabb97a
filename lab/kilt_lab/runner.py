"""The runner: measures the cells of an experiment, keeps each one immediately, and computes rows from them.

Cells are lines of ``cells.jsonl`` in the folder of an experiment. If a run was stopped by Ctrl-C, was killed, or had
fewer seeds, the next run measures only the missing cells. The file may end in an incomplete line. A cell belongs to the
parameters on which its value depends (`Setting.key`), so one folder can hold cells of several settings.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from kilt import artifact
from kilt.evaluate.flops import ProgressMonitor
from kilt.machine import cpu_seconds
from kilt_lab.cells import Cell, CurvePoint, Measured, RowSpec, Setting, processes
from kilt_lab.claims import Row
from kilt_lab.experiment import Experiment, Found, Lab, Stopped
from kilt_lab.menu import experiment_named
from kilt_lab.provenance import clone, git

CELLS = "cells.jsonl"
LOOK = 0.2  # seconds between checks for a stop while other processes work


@dataclass
class Store:
    """The cells of an experiment and a setting in a folder."""

    folder: Path
    experiment: str
    setting: Setting
    known: dict[tuple[str, int], Cell] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / CELLS

    def _key(self) -> dict[str, Any]:
        return {"experiment": self.experiment, **self.setting.key()}

    def read(self) -> None:
        """Read the file. An incomplete line of a killed process is ignored."""
        key, text = self._key(), ""
        if self.path.is_file():
            with artifact.os_errors(f"{self.path} cannot be read"):
                text = self.path.read_text(encoding="utf-8")
        for line in text.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                data = json.loads(line)
                if data["key"] == key:
                    self._take(data)

    def _take(self, data: dict[str, Any]) -> None:
        """Add a cell of the file to `known`."""
        case, curve = data["case"], data.get("curve", ())
        fields = {name: value for name, value in data.items() if name not in ("key", "case", "curve")}
        cell = Cell(**fields, curve=tuple(CurvePoint(*point) for point in curve))
        self.known[case, cell.seed] = cell

    def add(self, case: str, cell: Cell) -> None:
        """Append a cell to the file as one line, then to `known`."""
        plain = Cell({})
        data = {name: value for name, value in vars(cell).items() if value != getattr(plain, name)}
        line = json.dumps({"key": self._key(), "case": case, **data, "curve": [tuple(point) for point in cell.curve]})
        with artifact.os_errors(f"{self.path} cannot be written"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                if file.tell() and not _ends_a_line(self.path):
                    line = f"\n{line}"
                file.write(f"{line}\n".encode())
        self._take(json.loads(line))

    def exact(self, case: str) -> bool:
        """Return whether a known cell of the case is exact, so that any other seed would give the same values."""
        return any(cell.exact for (known, _), cell in self.known.items() if known == case)

    def has(self, case: str, seed: int, rows: Sequence[str]) -> bool:
        """Return whether rows of a case are known for a seed."""
        cell = self.known.get((case, seed))
        return cell is not None and {*cell.values, *cell.asked} >= {*rows}


def run(
    experiment: Experiment,
    setting: Setting,
    folder: Path,
    watcher: ProgressMonitor,
    *,
    again: bool = False,
    jobs: bool = True,
) -> Found:
    """Measure the missing cells of a setting, and return the rows of all cells.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    setting : Setting
        Its parameters: see `Experiment.setting`.
    folder : Path
        Folder of the cells.
    watcher : ProgressMonitor
        Receives progress, and may stop the work; only the cell in progress is lost then.
    again : bool
        Whether to measure known cells again.
    jobs : bool
        Whether other processes may be started.

    Returns
    -------
    Found
        Rows, cells, and whether all cells were measured.
    """
    with artifact.exclusive_access(folder):
        store = Store(folder, experiment.name, setting)
        if not again:
            store.read()
        wanted = [*_missing(experiment, setting, store)]
        _tell(store, len(wanted), watcher)
        count = min(processes(setting), len(wanted)) if jobs else 1
        if count > 1:
            complete = _side_by_side(experiment, setting, store, wanted, watcher, again=again)
        else:
            complete = _one_by_one(experiment, setting, store, wanted, watcher)
        found = assembled(experiment, setting, store, complete=complete)
        if experiment.picture and found.rows:
            path = folder / experiment.picture
            experiment.draw(found, path)
            if path.exists():
                found = found._replace(picture=path)
    return found


def _tell(store: Store, missing: int, watcher: ProgressMonitor) -> None:
    """Show the number of known cells, and their commits."""
    if store.known:
        commits = sorted({cell.commit for cell in store.known.values()} - {""})
        where = f"at {', '.join(commits)} " if commits and commits != [_commit()] else ""
        left = f"{missing} are missing" if missing else "--again measures them again"
        watcher.say(f"{len(store.known)} cells were measured before {where}and are in {store.path}; {left}")


Task = tuple[str, int]  # case and seed


def _missing(experiment: Experiment, setting: Setting, store: Store) -> Iterator[Task]:
    """Yield the cells to measure, seed by seed; a cell is dropped later if another seed turns out to be exact."""
    for seed, case in product(range(max(setting.runs, 1)), experiment.cases(setting)):
        if not store.exact(case) and not store.has(case, seed, _rows_of(experiment, setting, case)):
            yield case, seed


def _rows_of(experiment: Experiment, setting: Setting, case: str) -> tuple[str, ...]:
    """Return the requested rows that a case yields alone."""
    return tuple(row.name for row in experiment.chosen(setting) if row.needs == (case,))


def _one_by_one(
    experiment: Experiment, setting: Setting, store: Store, wanted: Sequence[Task], watcher: ProgressMonitor
) -> bool:
    """Measure cells in this process. Returns whether all of them were measured."""
    lab = Lab(experiment, setting, store.folder, watcher)
    try:
        for place, (case, seed) in enumerate(wanted):
            if store.exact(case):
                continue
            lab.check()
            known = store.known[case, seed].asked if (case, seed) in store.known else ()
            rows = tuple(dict.fromkeys((*_rows_of(experiment, setting, case), *known)))
            lab.begin(case, seed, rows, (place / len(wanted), 1 / len(wanted)))
            began = cpu_seconds()
            cell = replace(experiment.measure(case, seed, lab), seed=seed, commit=_commit(), asked=lab.rows)
            spent = round(cpu_seconds() - began, 3)
            store.add(case, replace(cell, seconds=cell.seconds or spent))
    except Stopped:
        return False
    finally:
        lab.close()
    return True


def _side_by_side(
    experiment: Experiment,
    setting: Setting,
    store: Store,
    wanted: Sequence[Task],
    watcher: ProgressMonitor,
    *,
    again: bool,
) -> bool:
    """Measure cells in several processes. Returns whether all of them were measured."""
    groups: dict[Any, list[Task]] = {}
    for case, seed in wanted:
        groups.setdefault(seed if experiment.shares else (case, seed), []).append((case, seed))
    context = get_context("spawn")
    stop, done = context.Event(), 0
    begin = (experiment.name, setting, store.folder, stop, again)
    with ProcessPoolExecutor(min(processes(setting), len(groups)), context, _begin_work, begin) as pool:
        left = {pool.submit(_work, group): len(group) for group in groups.values()}
        while left:
            finished, _ = wait(left, LOOK, FIRST_COMPLETED)
            for future in finished:
                done += left.pop(future)
                future.result()
            watcher.show(f"{experiment.name}: {done} of {len(wanted)} cells", done / len(wanted), None)
            if watcher.stopped() and not stop.is_set():
                stop.set()
                for future in left:
                    future.cancel()
                left = {future: count for future, count in left.items() if not future.cancelled()}
    store.read()
    return all(store.exact(case) or (case, seed) in store.known for case, seed in wanted)


class _Silent:
    """Watcher of a worker process: prints nothing, and stops when the main process does."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop

    def say(self, text: str, takes: float | None = None) -> None:
        pass

    def show(self, what: str, done: float, left: float | None) -> None:
        pass

    def stopped(self) -> bool:
        return self._stop.is_set()


_working: list[Any] = []  # arguments of `_begin_work` in a worker process


def _begin_work(name: str, setting: Setting, folder: Path, stop: Event, again: bool) -> None:
    """Store the experiment in the worker process, once for all groups of cells."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that the user sees
    _working[:] = [experiment_named(name), setting, folder, _Silent(stop), again]


def _work(group: Sequence[Task]) -> None:
    """Measure cells in a worker process, except those of a case that another process has found to be exact."""
    experiment, setting, folder, watcher, again = _working
    store = Store(folder, experiment.name, setting)
    if not again:
        store.read()
    _one_by_one(experiment, setting, store, group, watcher)


def assembled(experiment: Experiment, setting: Setting, store: Store, *, complete: bool) -> Found:
    """Return the rows of all known cells."""
    seeds = range(max(setting.runs, 1))
    cells = {
        case: [store.known[case, seed] for seed in seeds if (case, seed) in store.known]
        for case in experiment.cases(setting)
    }
    measured = Measured(setting, experiment.chosen(setting), cells)
    rows: dict[str, Row] = {}
    for spec in experiment.rows:
        if spec in measured.specs or any(spec.name in cell.values for those in cells.values() for cell in those):
            row = _row(experiment, spec, measured)
            if row is not None:
                rows[spec.name] = row
    derived = {row.name: row for row in experiment.derive(rows, measured)}
    rows |= derived
    return Found(experiment, [rows[spec.name] for spec in measured.specs if spec.name in rows], measured, complete)


def _row(experiment: Experiment, spec: RowSpec, measured: Measured) -> Row | None:
    """Return a row: the mean of its cells, with its interval."""
    cells = measured.of(spec)
    if not cells:
        return None
    here = spec.where in ("", measured.setting.game)
    more = experiment.more(spec, cells, measured)
    if not here and spec.paper is not None:
        more |= {"paper_elsewhere": spec.paper, "where": spec.where}
    row = Row.of_runs(
        spec.name,
        [cell.values[spec.name] for cell in cells],
        cells[0].unit or spec.unit,
        sum(cell.seconds for cell in cells),
        more,
        spec.paper if here else None,
        [cell.seed for cell in cells],
    )
    if len(cells) == 1 and cells[0].margin is not None:
        row = row._replace(margin=cells[0].margin)
    exact = all(cell.exact for cell in cells)
    return row._replace(margin=None, runs=(), seeds=()) if exact else row


def forget(folder: Path) -> None:
    """Remove the files from which cells of a folder resume."""
    for place in folder.glob("work-*"):
        shutil.rmtree(place)


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


@cache
def _commit() -> str:
    """Return the commit of the code, with a plus if files differ from it; empty without a clone."""
    root = clone()
    if root is None:
        return ""
    dirty = git("status", "--porcelain", "--untracked-files=no", root=root)
    return git("rev-parse", "--short", "HEAD", root=root) + "+" * bool(dirty)
