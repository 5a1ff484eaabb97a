"""What a reproduction is: something published, found again here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kilt.errors import RunError
from kilt.evaluate.flops import Watcher


class Row(NamedTuple):
    """A published number beside ours."""

    name: str
    paper: float | None  # None where it can only be read off a picture
    ours: float
    unit: str
    seconds: float  # of work
    more: dict[str, Any]  # whatever else is to be said
    margin: float | None = None  # where ours is an estimate: its 95% interval reaches so far to each side

    def figures(self) -> dict[str, Any]:
        """All of it, by name."""
        known = {"name": self.name, "paper": self.paper, "ours": self.ours, "unit": self.unit, "seconds": self.seconds}
        spread = {} if self.margin is None else {"ci95": (self.ours - self.margin, self.ours + self.margin)}
        return known | spread | self.more

    def found(self) -> str:
        """Ours, as it is printed."""
        number = f"{self.ours:,.2f}" if self.ours >= 100 else f"{self.ours:.5g}"
        return number if self.margin is None else f"{self.ours:.1f} ± {self.margin:.1f}"


def decided(mean: float, margin: float) -> str:
    """What a 95% interval says of a difference: ``"higher"`` or ``"lower"`` than 0, or that it is ``"open"``.

    >>> decided(-3.4, 5.6), decided(9.5, 3.9)
    ('open', 'higher')
    """
    return "open" if abs(mean) <= margin else "higher" if mean > 0 else "lower"


class Request(NamedTuple):
    """What the user asks for; None or nothing where a reproduction knows best."""

    only: tuple[str, ...] = ()  # rows
    game: str | None = None
    minutes: float | None = None
    threads: int | None = None
    out: Path | None = None
    device: str | None = None


@dataclass(frozen=True)
class ReproductionResult:
    """What came out."""

    title: str
    rows: list[Row]
    picture: Path | None = None


@dataclass(frozen=True)
class Reproduction:
    """An entry of the menu."""

    what: str
    time: str  # that it takes, roughly
    rows: tuple[str, ...]
    run: Callable[[Request, Watcher], ReproductionResult]
    options: tuple[str, ...]  # those of `Request` that it takes
    hint: str = ""  # on how to use them

    def reproduce(self, asked: Request, watcher: Watcher) -> ReproductionResult:
        """Do it, if what is asked makes sense."""
        for option, value in asked._asdict().items():
            if value not in (None, ()) and option not in self.options:
                able = ", ".join(f"--{option}" for option in self.options)
                raise RunError(f"--{option} {value} is given, which has no meaning here: use {able}")
        for row in asked.only:
            if row not in self.rows:
                raise RunError(f"there is no row {row!r}: use --only with one of {', '.join(self.rows)}")
        return self.run(asked, watcher)
