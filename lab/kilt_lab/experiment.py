"""Experiments: rows, claims and settings as data, and one method that measures a cell.

The runner (`kilt_lab.runner`) measures the cells of a setting, keeps each one immediately, and turns them into rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from kilt import artifact
from kilt.errors import RunError
from kilt.evaluate.flops import ProgressMonitor
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.gpu import require_gpu
from kilt.solve.problem import GPU, require_device
from kilt.viz.lines import plot_lines
from kilt_lab.cells import ITERATIONS, SECONDS, Axes, Cell, CellBudget, Changes, Measured, RowSpec, Setting
from kilt_lab.claims import Claim, Claims, Row, Verdict

Made = TypeVar("Made")
SHARED = "shared"  # the name of a lock in the folder of an experiment


class Stopped(Exception):  # noqa: N818, it is not an error
    """Raised if the user stops before a cell is measured."""


@dataclass(frozen=True)
class Experiment:
    """A published result to be measured again, or a question of kilt's developers."""

    name: str
    source: str  # citation; empty: a question of kilt's developers
    title: str
    _: KW_ONLY
    rows: tuple[RowSpec, ...]
    claims: Claims
    defaults: Setting
    quick: Changes = field(default_factory=dict)
    settings: Mapping[str, Changes] = field(default_factory=dict)  # settings that pages show
    hint: str = ""
    time: str = ""  # time in addition to the budgets of its cells, in words
    solves: int = 0  # budgets that a run spends; 0: one for each of its cells
    clocks: Collection[str] = (SECONDS, ITERATIONS)  # allowed clocks of budgets
    axes: Axes | None = None  # of the picture
    shares: bool = False  # cells of a seed share work, so one process measures them all

    @property
    def what(self) -> str:
        """The source and the title."""
        return f"{self.source}: {self.title}" if self.source else self.title

    @property
    def claim_list(self) -> tuple[Claim, ...]:
        """The claims, each with its source."""
        sourced = ((says, how if isinstance(how, tuple) else (self.source, how)) for says, how in self.claims.items())
        return tuple(Claim(says, *how) for says, how in sourced)

    def row_named(self, name: str) -> RowSpec:
        """Return the row with a name."""
        return next(row for row in self.rows if row.name == name)

    def chosen(self, setting: Setting) -> tuple[RowSpec, ...]:
        """Return the rows that a setting requests, in their order."""
        return tuple(row for row in self.rows if not setting.only or {row.name, *row.groups} & {*setting.only})

    def cases(self, setting: Setting) -> list[str]:
        """Return the cases that yield the rows of a setting."""
        return list(dict.fromkeys(case for row in self.chosen(setting) for case in row.needs))

    def check(self, setting: Setting) -> None:
        """Raise an error if a setting is invalid, before any work."""

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Measure a case with a seed. Every experiment must define this method. Raises `Stopped` after Ctrl-C."""
        raise NotImplementedError

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return further figures of a row, from those of its cells: the mean, or a list with the value of each cell.

        A cell has them under the name of the row, or the same for all of its rows.
        """
        found: dict[str, Any] = {}
        known: list[Mapping[str, Any]] = [cell.more.get(spec.name, cell.more) for cell in cells]
        for key in known[0]:
            values = [each[key] for each in known]
            if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                mean = sum(values) / len(values)
                found[key] = round(mean) if all(isinstance(value, int) for value in values) else mean
            else:
                found[key] = values[0] if all(value == values[0] for value in values) else values
        return found

    def derive(self, found: Mapping[str, Row], measured: Measured) -> Iterable[Row]:
        """Return further rows, computed from the measured ones; rows that were not requested are ignored."""
        return ()

    @property
    def folder(self) -> str:
        """The name of the folder of its cells, unless the user names another."""
        return f"kilt-{self.name}"

    @property
    def picture(self) -> str:
        """The name of the picture, or an empty string."""
        return "figure.png" if self.axes or type(self).draw is not Experiment.draw else ""

    def draw(self, found: Found, path: Path) -> None:
        """Draw the picture: by default, all rows that have a place on its axes."""
        found.plot({row.name: row.at for row in self.rows if row.at}, path)

    def verdicts(self, found: Iterable[Row]) -> list[Verdict]:
        """Return the verdict of each claim."""
        those = list(found)
        return [claim.verdict(those) for claim in self.claim_list]

    def setting(self, base: Changes, asked: Changes) -> Setting:
        """Return the defaults with changes, and the user's options on top. Raises `RunError` for an invalid option."""
        plain = self.defaults
        for option, value in asked.items():
            if option not in (able := self.options()):
                known = ", ".join(f"--{flag}" for each in able for flag in self._flags(each))
                clock = value.clock if isinstance(value, CellBudget) else option
                raise RunError(f"--{clock} has no meaning for {self.name}: use {known}")
        known_rows = [*dict.fromkeys(name for row in self.rows for name in (*row.groups, row.name))]
        for row in asked.get("only", ()):
            if row not in known_rows:
                raise RunError(f"there is no row {row!r}: use --only with one of {', '.join(known_rows)}")
        setting = plain._replace(**{**base, **asked})
        if setting.budget and setting.budget.clock not in self.clocks:
            clocks = " or ".join(f"--{clock}" for clock in self.clocks)
            raise RunError(f"--{setting.budget.clock} has no meaning for {self.name}: use {clocks}")
        for option in ("runs", "threads"):
            if option in asked and asked[option] < 1:
                hint = "; an interval needs 3" if option == "runs" else ""
                raise RunError(f"--{option} is {asked[option]}: give 1 or more{hint}")
        if setting.jobs < 0:
            raise RunError(f"--jobs is {setting.jobs}: give 1 or more, or 0 for one per core")
        if setting.device and require_device(setting.device) == GPU:
            require_gpu()
        if setting.game != plain.game and not setting.game.startswith("openspiel:"):
            load_game(setting.game)
        self.check(setting)
        return setting

    def options(self) -> list[str]:
        """Return the options of a setting that a user can choose."""
        plain = self.defaults
        able = {"only": len(self.rows) > 1, "game": plain.game, "budget": plain.budget, "runs": plain.runs}
        able |= {"device": plain.device, "threads": plain.threads, "jobs": True}
        return [option for option, can in able.items() if can]

    def _flags(self, option: str) -> list[str]:
        """Return the flags of an option."""
        if option != "budget":
            return [option]
        return [flag for clock in self.clocks for flag in (["minutes"] if clock == SECONDS else [clock])]

    def takes(self) -> str:
        """Return the expected time, in words."""
        plain = self.defaults
        solves = (self.solves or len(self.cases(plain))) * max(plain.runs, 1)
        parts = []
        if plain.budget and plain.budget.seconds:
            noun = "solution" if solves == 1 else "solutions"
            parts = [f"{solves} {noun} of {plain.budget.shown(plain.device)}"]
        return "; ".join([*parts, self.time] if self.time else parts)


class Lab:
    """Environment of a measurement: setting, folders, work that cells share, progress, and Ctrl-C.

    It is a `ProgressMonitor`, for functions of the library that report progress.
    """

    def __init__(self, experiment: Experiment, setting: Setting, folder: Path, watcher: ProgressMonitor) -> None:
        self.experiment, self.setting, self._watcher = experiment, setting, watcher
        self.game, self.device, self.threads = setting.game, setting.device, max(setting.threads, 1)
        self.rows: tuple[str, ...] = ()  # requested rows of the case
        self._folder = folder / f"work-{artifact.fingerprint(json.dumps(setting.key()))[:8]}"
        self._label, self._share = "", (0.0, 1.0)
        self._kept: dict[str, dict[str, Any]] = {"seed": {}, "experiment": {}}
        self._scratch: TemporaryDirectory[str] | None = None
        self._seed: int | None = None

    @property
    def budget(self) -> Any:
        """The budget of a cell. Only experiments that have a budget use it."""
        return self.setting.budget

    @property
    def folder(self) -> Path:
        """A permanent folder. Its files are still there when a cell resumes after a stop or a crash."""
        with artifact.os_errors(f"{self._folder} cannot be written"):
            self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    def scratch(self) -> Path:
        """Return a new folder that exists until all cells of the seed are measured."""
        if self._scratch is None:
            self._scratch = TemporaryDirectory()
        place = Path(self._scratch.name)
        new = place / str(sum(1 for _ in place.iterdir()))
        new.mkdir()
        return new

    def shared(self, key: str, make: Callable[[], Made], per: str = "seed", *, alone: bool = False) -> Made:
        """Return an object that all cells of a seed, or of the experiment, share; `make` is called once.

        With `alone`, other processes of the experiment wait meanwhile, because `make` writes files that they need too.
        """
        kept = self._kept[per]
        if key not in kept:
            with artifact.exclusive_access(self.folder / SHARED, wait=True) if alone else nullcontext():
                kept[key] = make()
        return cast(Made, kept[key])

    def holdem(self) -> Holdem:
        """Return the game, loaded once. Raises PlayError if it is not poker."""
        return self.shared("game", lambda: load_holdem(self.game), per="experiment")

    def check(self) -> None:
        """Raise `Stopped` if the user wants to stop."""
        if self._watcher.stopped():
            raise Stopped

    def stopped(self) -> bool:
        """Return whether the user wants to stop."""
        return self._watcher.stopped()

    def say(self, text: str, takes: float | None = None) -> None:
        """Show the user a line of text."""
        self._watcher.say(text, takes)

    def show(self, what: str, done: float, left: float | None = None) -> None:
        """Show the user the finished share of a part of the cell."""
        before, each = self._share
        self._watcher.show(f"{self._label}: {what}", min(before + each * done, 1.0), left)

    def begin(self, case: str, seed: int, rows: tuple[str, ...], share: tuple[float, float]) -> None:
        """Start a cell. `share` has the share of the work before it, and the share of the cell."""
        if seed != self._seed:
            self.close()
            self._seed = seed
        runs = f", run {seed + 1} of {self.setting.runs}" if self.setting.runs > 1 else ""
        self.rows, self._label, self._share = rows, f"{case}{runs}", share

    def close(self) -> None:
        """Discard the objects that cells of a seed share."""
        self._kept["seed"].clear()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None


class Found(NamedTuple):
    """The result of an experiment."""

    experiment: Experiment
    rows: list[Row]
    measured: Measured
    complete: bool  # whether all cells were measured
    picture: Path | None = None

    @property
    def title(self) -> str:
        """The experiment's title, with the game if it is not the default."""
        game, what = self.measured.setting.game, self.experiment.what
        return what if game == self.experiment.defaults.game or game in what else f"{what} (here: {game})"

    def plot(self, places: Mapping[str, tuple[str, float]], path: Path) -> None:
        """Draw rows, with their intervals, as points on the axes: `places` has the line and abscissa of each."""
        axes, setting, lines = self.experiment.axes, self.measured.setting, dict[str, list[tuple[float, ...]]]()
        assert axes is not None
        scale = setting.budget.amount if setting.budget and not axes.x else 1.0
        for row in (row for row in self.rows if row.name in places):
            line, place = places[row.name]
            lines.setdefault(line, []).append((scale * place, row.ours, row.reach))
        labels = axes.x or (setting.budget.clock if setting.budget else ""), axes.y.format(unit=self.rows[0].unit)
        if lines:
            drawn = {line: np.array(points) for line, points in lines.items()}
            title = f"{self.experiment.source}: {setting.game}"
            plot_lines(drawn, title, path, *labels, logarithmic=axes.logarithmic)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict of each claim."""
        return self.experiment.verdicts(self.rows)
