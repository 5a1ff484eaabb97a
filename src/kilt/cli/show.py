"""Print results on the terminal: tables, numbers, progress bars and JSON."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from math import isfinite
from time import monotonic, perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.status import Status
from rich.table import Table
from rich.text import Text

from kilt.cli import options
from kilt.compiling import compiled_seconds, listeners
from kilt.cost import elapsed, in_time

if TYPE_CHECKING:
    from kilt.evaluate.stats import Estimate

# Names of players, games and folders are user input: texts are printed without markup or emoji codes.
out = Console(markup=False, emoji=False)
errors = Console(stderr=True, markup=False, emoji=False)
COMPILING = 5.0  # seconds between two lines about compiled kernels
UNIT = "mbb/h"  # of win rates
FAULTS = 5  # lines that cannot be read, of which more are only counted
WIDE = 500  # characters, as good as any number for a file

AsJson = Annotated[bool, options.AS_JSON]


def print_json(values: Mapping[str, Any]) -> None:
    """Print a mapping as JSON for other programs, with all digits of large integers.

    Unknown and unbounded values become null, because JSON has no nan and no infinity.
    """
    typer.echo(json.dumps(_finite(values), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return data for JSON, with None in place of nan and infinity."""
    if isinstance(value, Mapping):
        return {what: _finite(each) for what, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: bool = False) -> None:
    """Print a table with headings.

    With `numbers`, all columns after the first are aligned to the right.

    Numbers are only broken into two lines if the terminal is too narrow.
    """
    table = Table(title=title, title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if numbers and place else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    wide = numbers and not out.is_terminal
    (Console(file=out.file, width=WIDE, markup=False, emoji=False) if wide else out).print(table)


def win_rate_data(rate: Estimate) -> dict[str, Any]:
    """Return a win rate as a dict for JSON output.

    After a single deal, the interval is unknown.
    """
    known = isfinite(rate.margin)
    return {
        "mbb_per_hand": rate.mean,
        "ci95": list(rate.interval) if known else None,
        "margin": rate.margin if known else None,
    }


def exit_after_signal(stopped: list[int]) -> None:
    """Exit with the code of the signal that stopped the command, if there was one."""
    if stopped:
        say("stopped early: the figures are of the hands that were played")
        raise typer.Exit(128 + stopped[0])


def count(value: int) -> str:
    """Format a whole number, with a power of ten if it is long.

    >>> count(1286792), count(319365922522608)
    ('1,286,792', '3.1937e14')
    """
    if value < 10**9:
        return f"{value:,}"
    return f"{Decimal(value):.4e}".replace("e+", "e")


def say(text: str) -> None:
    """Print a message that is not part of the result to standard error."""
    errors.print(text, soft_wrap=True, highlight=False)


def say_skipped(hands: Mapping[str, int], faults: Sequence[str]) -> None:
    """Print how many hands of a log were skipped for each reason, and which lines cannot be read."""
    for reason, count in hands.items():
        say(f"{count:,} hand{'s' if count != 1 else ''} skipped: {reason}")
    for fault in faults[:FAULTS]:
        say(f"cannot be read: {fault}")
    if len(faults) > FAULTS:
        say(f"{len(faults) - FAULTS:,} more lines cannot be read")


def print_error(label: str, text: str) -> None:
    """Print a red label and an error message to standard error."""
    errors.print(Text.assemble((label, "bold red"), " ", text), soft_wrap=True, highlight=False)


def print_line(text: str, bold: str = "") -> None:
    """Print a line of the result, with the text `bold` in bold at its beginning."""
    out.print(Text.assemble((bold, "bold"), text), highlight=False)


def waiting(text: str) -> Status:
    """Show on the terminal what the command is waiting for, during a ``with`` block."""
    return errors.status(Text(text))


@contextmanager
def announce_compilation() -> Iterator[None]:
    """Print messages while kernels are compiled, so that the user knows why the command waits."""
    began, due = 0, 0.0

    def tell() -> None:
        nonlocal began, due
        began += 1
        if began == 1:
            say("compiling kernels, once per installation …")
        elif monotonic() >= due:
            say(f"compiling kernel {began}, after {compiled_seconds():.0f} s; `kilt setup` compiles on all cores …")
        else:
            return
        due = monotonic() + COMPILING

    listeners.append(tell)
    try:
        yield
    finally:
        listeners.remove(tell)
        if began:
            took = f"compiled kernels for {compiled_seconds():.1f} s, once per installation"
            say(f"{took}: CPU times above include it, other times do not")


class ProgressBars(Progress):
    """Progress bars on a terminal, or lines at intervals if the output goes to a file.

    The first line is printed after `FIRST` seconds. Later lines are a twentieth of the elapsed time apart, at least
    `EVERY` and at most `SELDOM` seconds. A task has a field `said`, the text after its bar.
    """

    FIRST, EVERY, SELDOM = 10.0, 30.0, 600.0

    def __init__(self) -> None:
        what, said = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[said]"))
        bar = BarColumn(bar_width=24)
        super().__init__(what, bar, said, console=errors, transient=True, disable=not errors.is_terminal)
        self._began = monotonic()
        self._due = self._began + self.FIRST

    def update(self, task_id: TaskID, **fields: Any) -> None:
        """Move a progress bar, or print a line from time to time if the output goes to a file."""
        super().update(task_id, **fields)
        now = monotonic()
        if self.disable and task_id == self.task_ids[0] and now >= self._due:
            self._due = now + min(max((now - self._began) / 20, self.EVERY), self.SELDOM)
            task = self.tasks[0]
            say(f"{elapsed(now - self._began)} · {task.description} · {task.fields['said']}")


@contextmanager
def ticking() -> Iterator[Callable[[str, float], None]]:
    """Show a progress bar during a ``with`` block, which receives a function to move the bar."""
    with ProgressBars() as bar:
        task = bar.add_task("starting", total=1.0, said="")
        began: dict[str, float] = {}

        def tick(what: str, share: float) -> None:
            if what not in began:
                began[what] = perf_counter()
            spent = perf_counter() - began[what]
            left = f" · {in_time(spent / share - spent)} left" if share > 0.05 else ""
            bar.update(task, description=what, completed=share, said=f"{share:.0%}{left}")

        yield tick


@contextmanager
def interrupts(*, at_once: bool) -> Iterator[list[int]]:
    """Catch Ctrl-C and SIGTERM, so that the work stops at a safe point; a second signal stops it at once.

    By default, Python would interrupt a step in the middle and leave the solver in an unusable state.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if noted or at_once:
            raise KeyboardInterrupt
        noted.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class ProgressScreen:
    """A progress bar with messages above it, which also notices Ctrl-C."""

    def __init__(self, bar: ProgressBars, signals: list[int]) -> None:
        self.bar, self.signals = bar, signals
        self.task = bar.add_task("", total=1.0, said="starting …")

    def say(self, text: str, takes: float | None = None) -> None:
        """Print a message about the next step, with its estimated duration if that is known."""
        say(text if takes is None else f"{text}; takes about {in_time(takes)}")

    def show(self, what: str, done: float, left: float | None) -> None:
        """Move the progress bar."""
        said = "" if left is None else f"{in_time(left)} left"
        if self.signals:
            said = "ending what has begun; Ctrl-C again to leave at once"
        self.bar.update(self.task, description=what, completed=done, said=f"{done:.1%} · {said}")

    def stopped(self) -> bool:
        """Return whether Ctrl-C was pressed."""
        return bool(self.signals)


@contextmanager
def watching() -> Iterator[ProgressScreen]:
    """Show progress and notice Ctrl-C. A second Ctrl-C ends the process at once."""
    try:
        with interrupts(at_once=False) as signals, ProgressBars() as bar:
            yield ProgressScreen(bar, signals)
    except KeyboardInterrupt:
        say("stopped immediately; the last checkpoint remains: the same command resumes from it")
        os._exit(130)
