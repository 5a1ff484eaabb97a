"""Parts of an experiment: rows of its report, settings, budgets, and measured cells.

A *case* is the subject of one measurement and yields one or more rows. A *cell* is the result of a case with a seed.

>>> rows(("cs", "pcs"), "mbb/g", paper={"cs": 9.0})[0].paper
9.0
>>> CellBudget.of(minutes=0.5), CellBudget("nodes", 4e6)
(CellBudget(clock='seconds', amount=30.0), CellBudget(clock='nodes', amount=4000000.0))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from kilt import artifact, compiling
from kilt.errors import RunError
from kilt.jit import cores
from kilt.solve.problem import CPU, GPU

SECONDS, ITERATIONS, NODES = "seconds", "iterations", "nodes"
TIME_OF = {CPU: "CPU time", GPU: "GPU time"}


def clock_of(device: str) -> Callable[[], float]:
    """Return the clock of budgets in seconds: CPU time of all threads, or wall time on a GPU, without compilation."""
    return compiling.cpu_clock if device in ("", CPU) else compiling.clock


class CellBudget(NamedTuple):
    """Budget to solve a cell: seconds of `clock_of` a device; iterations; or nodes."""

    clock: str  # SECONDS, ITERATIONS or NODES
    amount: float

    @classmethod
    def of(cls, **amounts: float | None) -> CellBudget | None:
        """Return the budget of the given argument; None without one. Raises RunError for several or a bad amount."""
        given = {clock: amount for clock, amount in amounts.items() if amount is not None}
        if not given:
            return None
        if len(given) > 1:
            raise RunError(f"--{' and --'.join(given)} are given: a cell has one budget, so give one of them")
        (clock, amount), *_ = given.items()
        if not 0 < amount < inf:
            raise RunError(f"--{clock} is {amount:g}: give a number above 0")
        return cls(SECONDS, 60 * amount) if clock == "minutes" else cls(clock, amount)

    @property
    def seconds(self) -> float | None:
        """Seconds, or None if the budget is not a time."""
        return self.amount if self.clock == SECONDS else None

    @property
    def whole(self) -> int:
        """Iterations or nodes, as a whole number."""
        return round(self.amount)

    def shown(self, device: str = "") -> str:
        """Return the budget in words.

        >>> CellBudget("seconds", 120).shown(), CellBudget("seconds", 30).shown("gpu"), CellBudget("nodes", 4e6).shown()
        ('2 min of CPU time', '30 s of GPU time', '4,000,000 nodes')
        """
        if self.clock != SECONDS:
            return f"{self.amount:,.0f} {self.clock}"
        time = f"{self.amount / 60:g} min" if self.amount >= 60 else f"{self.amount:g} s"
        return f"{time} of {TIME_OF.get(device, TIME_OF[CPU])}"


class RowSpec(NamedTuple):
    """A row of the report."""

    name: str
    unit: str
    paper: float | None = None
    where: str = ""  # the game of `paper`; empty: the game of the setting
    cases: tuple[str, ...] = ()  # the cases that yield it; empty: the case with its name
    groups: tuple[str, ...] = ()  # names for several rows, such as a panel of a figure
    at: tuple[str, float] | None = None  # in the picture: a line, and the place of the row on it

    @property
    def needs(self) -> tuple[str, ...]:
        """The cases that must be measured for the row."""
        return self.cases or (self.name,)


class Axes(NamedTuple):
    """The axes of a picture that shows rows as points of lines: see `RowSpec.at`."""

    x: str  # label; empty: the clock of the budget, where rows are placed at shares of the budget
    y: str  # label; {unit} is the unit of the rows
    logarithmic: tuple[bool, bool] = (True, True)


def rows(
    names: Iterable[str],
    unit: str,
    *,
    paper: Mapping[str, float | None] | None = None,
    where: str = "",
    cases: tuple[str, ...] = (),
) -> tuple[RowSpec, ...]:
    """Return rows of one unit, with the numbers of a paper for those that have one."""
    return tuple(RowSpec(name, unit, (paper or {}).get(name), where, cases) for name in names)


class Setting(NamedTuple):
    """Parameters of a run of an experiment. A field that is empty in the defaults cannot be chosen."""

    game: str = ""
    budget: CellBudget | None = None  # of a cell
    runs: int = 1  # seeds 0, 1, …; 0: nothing is random
    device: str = ""
    threads: int = 0  # of a cell
    jobs: int = 1  # cells at a time, each in a separate process; 0: one for each core
    only: tuple[str, ...] = ()  # rows, or groups of them; empty: all

    def key(self) -> dict[str, Any]:
        """Return the parameters on which the value of a cell depends, except its case and its seed."""
        budget = list(self.budget) if self.budget else None
        return {"game": self.game, "budget": budget, "device": self.device} | _content(Path(self.game))

    def words(self) -> list[str]:
        """Return the options of the command line for this setting."""
        found = [f"--game={self.game}"] if self.game else []
        found += [f"--{self.budget.clock}={self.budget.amount:g}"] if self.budget else []
        found += [f"--runs={self.runs}"] if self.runs else []
        found += [f"--device={self.device}"] if self.device not in ("", CPU) else []
        found += [f"--threads={self.threads}"] if self.threads else []
        found += [f"--jobs={self.jobs}"] if self.jobs != 1 else []
        return found + [f"--only={row}" for row in self.only]


def _content(place: Path) -> dict[str, Any]:
    """Return a fingerprint of a file with a game, or of a folder with a run, that changes with its content."""
    if place.is_file():
        return {"content": artifact.fingerprint(place.read_text(encoding="utf-8"))}
    files = sorted(place.rglob("*")) if place != Path() and place.is_dir() else []
    return {"content": artifact.fingerprint(str([file.stat().st_mtime_ns for file in files]))} if files else {}


Changes = Mapping[str, Any]  # of a setting, by field


def changes(**fields: Any) -> Changes:
    """Return changes of a setting, by field."""
    return fields


class CurvePoint(NamedTuple):
    """A point of a convergence curve."""

    iterations: int
    seconds: float
    value: float
    current: float | None = None  # of the strategy of the last iteration


@dataclass(frozen=True)
class Cell:
    """The result of a case with a seed."""

    values: Mapping[str, float]  # by row
    exact: bool = False  # nothing was random: other seeds would give the same values
    more: Mapping[str, Any] = field(default_factory=dict)  # further figures, as JSON data
    curve: Sequence[CurvePoint] = ()
    unit: str = ""  # in place of that of the rows
    margin: float | None = None  # half-width of a 95% interval that this cell alone gives
    seconds: float = 0.0  # of CPU time, or of a GPU
    seed: int = 0
    commit: str = ""  # of the code at the time of the measurement
    asked: tuple[str, ...] = ()  # rows requested at the time; a game may lack some of them


class Measured(NamedTuple):
    """All cells of a run of an experiment."""

    setting: Setting
    specs: tuple[RowSpec, ...]  # requested rows
    cells: Mapping[str, Sequence[Cell]]  # by case, by seed

    def of(self, spec: RowSpec) -> list[Cell]:
        """Return the cells that have a row."""
        return [cell for case in spec.needs for cell in self.cells.get(case, ()) if spec.name in cell.values]


def processes(setting: Setting) -> int:
    """Return the number of cells to measure at the same time."""
    return setting.jobs or cores()
