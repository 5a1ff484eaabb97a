"""Result files: one JSON file for each setting of an experiment, benchmark or observation.

A file has values by seed (or by round), and the origin of each batch of values: command, commit, machine, date. Means,
intervals and verdicts are not stored. They are computed when a page is rendered. A file that was transcribed from a
page has no seeds, only the contents of the page as they were printed.

>>> row = ResultRow("pcs", "mbb/g", runs=((0, 303.2, 0), (1, 306.0, 0), (2, 306.1, 0)))
>>> round(row.as_row().ours, 1)
305.1
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kilt import artifact
from kilt.errors import RunError
from kilt_lab.benchmarks.measure import Figure
from kilt_lab.claims import Row
from kilt_lab.provenance import clone, git, machine, required_clone

if TYPE_CHECKING:
    from kilt_lab.experiment import Found

SCHEMA = 1
RUN, TRANSCRIBED = "run", "transcribed"
BENCHMARK, EXPERIMENT, OBSERVATION, TABLE = "benchmark", "experiment", "observation", "table"
FOLDERS = {BENCHMARK: "benchmarks", EXPERIMENT: "experiments", OBSERVATION: "observations", TABLE: "pages"}
MINUS = "−"  # the sign that pages use


class Recording(NamedTuple):
    """One command that measured: the command, its machine and its date."""

    command: str = ""
    commit: str = ""  # short; empty without a clone
    dirty: bool = False  # whether tracked files differed from that commit
    date: str = ""  # in UTC
    origin: str = RUN
    machine: str = ""
    load: float | None = None  # of the last minute when it ended
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    page: str = ""  # source of a transcribed result

    @classmethod
    def of_run(cls, command: str, wall_seconds: float, cpu_seconds: float) -> Recording:
        """Return the record of a command that has just ended on this machine."""
        root = clone()
        return cls(
            command=command,
            commit=git("rev-parse", "--short", "HEAD", root=root) if root else "",
            dirty=bool(root and git("status", "--porcelain", "--untracked-files=no", root=root)),
            date=datetime.now(UTC).date().isoformat(),
            machine=machine(),
            load=round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
            wall_seconds=round(wall_seconds, 1),
            cpu_seconds=round(cpu_seconds, 1),
        )


class Table(NamedTuple):
    """A table of a page, with its cells as they are printed."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ResultRow:
    """A measured quantity: values by seed, each from one batch."""

    name: str
    unit: str
    runs: tuple[tuple[int, float, int], ...] = ()  # seed or round, value, batch
    paper: float | None = None
    exact: bool = False  # nothing is random, so there is no interval
    what: str = ""
    mean: float | None = None  # the value, without `runs`
    margin: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def latest(self) -> float | None:
        """The mean of the last batch, or the mean of a transcribed row."""
        if not self.runs:
            return self.mean
        last = max(batch for _, _, batch in self.runs)
        values = [value for _, value, batch in self.runs if batch == last]
        return sum(values) / len(values)

    def as_row(self) -> Row:
        """Return the row in the form that claims use."""
        if self.exact or not self.runs:
            ours = self.latest
            assert ours is not None
            return Row(self.name, self.paper, ours, self.unit, 0.0, dict(self.more), self.margin)
        values = [value for _, value, _ in sorted(self.runs)]
        return Row.of_runs(self.name, values, self.unit, more=dict(self.more), paper=self.paper)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults."""
        fresh = ResultRow(self.name, self.unit)
        known = {key: value for key, value in vars(self).items() if value != getattr(fresh, key)}
        return {"name": self.name, "unit": self.unit} | known

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ResultRow:
        """Return the row that `to_json` encoded."""
        runs = tuple((int(seed), float(value), int(batch)) for seed, value, batch in data.get("runs", ()))
        return cls(**dict(data) | {"runs": runs})

    @classmethod
    def of(cls, row: Row, batch_of: Mapping[int, int]) -> ResultRow:
        """Return a row of an experiment; `batch_of` has the batch of each seed."""
        runs = tuple((seed, value, batch_of.get(seed, 0)) for seed, value in zip(row.seeds, row.runs, strict=False))
        spread = None if row.margin in (None, inf) or runs else row.margin
        mean = None if runs else row.ours
        return cls(row.name, row.unit, runs, row.paper, row.margin is None, "", mean, spread, row.more)


@dataclass(frozen=True)
class Result:
    """A result file."""

    kind: str  # a key of FOLDERS
    name: str  # of the experiment or benchmark; for tables, of the page
    setting: str
    title: str = ""
    batches: tuple[Recording, ...] = ()
    rows: tuple[ResultRow, ...] = ()
    table: Table | None = None
    data: Any = None  # output of the command of an observation

    @property
    def id(self) -> str:
        """The name for markers in pages: the path below the folder of results."""
        return f"{FOLDERS[self.kind]}/{self.name}/{self.setting}"

    def to_text(self) -> str:
        """Return the contents of the file, with one batch, row or table line per line, so that diffs are readable."""
        parts: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": self.kind,
            "name": self.name,
            "setting": self.setting,
            "title": self.title,
            "batches": [_given(batch) for batch in self.batches],
            "rows": [row.to_json() for row in self.rows],
            "columns": list(self.table.columns) if self.table else None,
            "table": [list(row) for row in self.table.rows] if self.table else None,
            "data": self.data,
        }
        lines = [f'  "{key}": {_dumped(value)}' for key, value in parts.items() if value not in (None, [], "")]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_text(cls, text: str, path: Path) -> Result:
        """Parse a file. Raises `RunError` if it is not a result file."""
        try:
            data = json.loads(text)
            if data["schema"] != SCHEMA:
                raise RunError(f"{path} has schema {data['schema']}: this version of the laboratory reads {SCHEMA}")
            table = None
            if "table" in data:
                table = Table(tuple(data["columns"]), tuple(map(tuple, data["table"])))
            return cls(
                data["kind"],
                data["name"],
                data["setting"],
                data.get("title", ""),
                tuple(Recording(**batch) for batch in data.get("batches", ())),
                tuple(map(ResultRow.from_json, data.get("rows", ()))),
                table,
                data.get("data"),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path} is not a result file: {error!r}") from error

    def extended(self, other: Result) -> Result:
        """Return the result with the batches of another result of the same setting added, as the latest."""
        shift = len(self.batches)
        added = {
            row.name: replace(row, runs=tuple((n, value, batch + shift) for n, value, batch in row.runs))
            for row in other.rows
        }
        kept = [
            replace(added.pop(row.name), runs=(*row.runs, *added_runs)) if added_runs else row
            for row in self.rows
            for added_runs in [added[row.name].runs if row.name in added else ()]
        ]
        return replace(self, batches=(*self.batches, *other.batches), rows=(*kept, *added.values()))


def results_folder() -> Path:
    """Return the folder of result files in this clone."""
    return required_clone("a result file") / "lab" / "results"


def read_results(folder: Path | None = None) -> Iterator[Result]:
    """Yield all result files of a folder, sorted by name."""
    for path in sorted((folder or results_folder()).rglob("*.json")):
        yield read_result(path)


def read_result(path: Path) -> Result:
    """Read a result file."""
    with artifact.os_errors(f"{path} cannot be read"):
        return Result.from_text(path.read_text(encoding="utf-8"), path)


def write_result(result: Result, folder: Path | None = None) -> Path:
    """Write a result to its file, and return the path."""
    for part in (result.name, result.setting):
        if not re.fullmatch(r"[\w][\w.,-]*", part):
            raise RunError(f"{part!r} cannot name a result: use letters, digits, '.', ',', '_' and '-'")
    path = (folder or results_folder()) / f"{result.id}.json"
    with artifact.os_errors(f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(result.to_text(), encoding="utf-8")
    return path


def record(result: Result, folder: Path | None = None) -> Path:
    """Write a result, and return the path. New rounds of a benchmark are added to its file."""
    path = (folder or results_folder()) / f"{result.id}.json"
    if result.kind == BENCHMARK and path.exists():
        result = read_result(path).extended(result)
    return write_result(result, folder)


def slug(text: str) -> str:
    """Return a text in a form that is valid in a file name.

    >>> slug("[2-4] hold'em on two cores")
    '2-4-holdem-on-two-cores'
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower().replace("'", "")).strip("-.")


def _given(batch: Recording) -> dict[str, Any]:
    """Return the fields of a batch that are not the default."""
    return {key: value for key, value in batch._asdict().items() if value != batch._field_defaults[key]}


def _dumped(value: Any) -> str:
    """Return JSON with one line for each item of the outermost list."""
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n" + ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in value) + "\n  ]"
    return json.dumps(value, ensure_ascii=False)


def benchmark_result(name: str, figures: Iterable[Figure], batch: Recording) -> Result:
    """Return the result of a benchmark. Its setting is the name of this machine."""
    rows = tuple(ResultRow(one.key, one.unit, ((0, float(one.value), 0),), what=one.what) for one in figures)
    return Result(BENCHMARK, name, slug(batch.machine), f"kilt bench {name}", (batch,), rows)


def record_experiment(found: Found, setting: str, command: str, wall_seconds: float, cpu_seconds: float) -> Path:
    """Record the rows of an experiment, with a batch for each commit at which its cells were measured.

    The times of this command are kept only if it measured all cells of its batch. Otherwise the batch has the CPU time
    of its cells.
    """
    here = Recording.of_run(command, wall_seconds, cpu_seconds)
    current = f"{here.commit}{'+' * here.dirty}"
    spent = defaultdict[str, float](float)
    cells = [*chain(*found.measured.cells.values())]
    for cell in cells:
        spent[cell.commit or current] += cell.seconds
    commits = sorted(spent, key=lambda commit: (commit == current, commit))  # this command is the latest
    batches = [
        here
        if commit == current and spent[commit] <= max(wall_seconds, cpu_seconds)
        else here._replace(
            commit=commit.rstrip("+"),
            dirty=commit.endswith("+"),
            load=None,
            wall_seconds=None,
            cpu_seconds=round(spent[commit], 1),
        )
        for commit in commits
    ]
    batch_of = [(cell, commits.index(cell.commit or current)) for cell in cells]

    def recorded(row: Row) -> ResultRow:
        own = {cell.seed: batch for cell, batch in batch_of if row.name in cell.values}
        return ResultRow.of(row, own or {cell.seed: batch for cell, batch in batch_of})

    rows = tuple(map(recorded, found.rows))
    name = found.experiment.name
    return record(Result(EXPERIMENT, name, setting, found.title, tuple(batches), rows))
