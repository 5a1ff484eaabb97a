"""What a reproduction is: something published, found again here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kilt.errors import RunError
from kilt.evaluate.flops import Watcher
from kilt_lab.reproduce.claims import Claim, Row, Verdict

Result = TypeVar("Result")


def decided(mean: float, margin: float) -> str:
    """What a 95% interval says of a difference: ``"higher"`` or ``"lower"`` than 0, or that it is ``"open"``.

    >>> decided(-3.4, 5.6), decided(9.5, 3.9)
    ('open', 'higher')
    """
    return "open" if abs(mean) <= margin else "higher" if mean > 0 else "lower"


def whole_runs(runs: int, run: Callable[[int], Result], watcher: Watcher) -> list[Result]:
    """What each of some runs comes to, by its seed: 0, 1, ….

    The run in which the user wishes to stop is the last and does not count, so that it may break off anywhere.
    """
    found = list[Result]()
    for seed in range(runs):
        result = run(seed)
        if watcher.stopped():
            break
        found.append(result)
    return found


class Request(NamedTuple):
    """What the user asks for; None or nothing where a reproduction knows best."""

    only: tuple[str, ...] = ()  # rows
    game: str | None = None
    minutes: float | None = None
    threads: int | None = None
    out: Path | None = None
    device: str | None = None
    runs: int | None = None  # independent ones, each with seeds of its own

    def given(self) -> dict[str, Any]:
        """What is asked for, by option."""
        return {option: value for option, value in self._asdict().items() if value not in (None, ())}


AS_IT_IS = Request()


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
    claims: tuple[Claim, ...] = ()  # of the paper, that its rows decide
    quick: Request = AS_IT_IS  # what a quick look asks for: seconds, or a minute or two
    keeps: str = ""  # the file or folder that it writes, where the user names none

    def reproduce(self, asked: Request, watcher: Watcher) -> ReproductionResult:
        """Do it, if what is asked makes sense."""
        for option, value in asked.given().items():
            if option not in self.options:
                able = ", ".join(f"--{option}" for option in self.options)
                raise RunError(f"--{option} {value} is given, which has no meaning here: use {able}")
        for row in asked.only:
            if row not in self.rows:
                raise RunError(f"there is no row {row!r}: use --only with one of {', '.join(self.rows)}")
        if asked.runs is not None and asked.runs < 1:
            raise RunError(f"--runs is {asked.runs}: give 1 or more; an interval needs 3")
        if self.keeps and asked.out is None:
            asked = asked._replace(out=Path(self.keeps))
        found = self.run(asked, watcher)
        if asked.game is None or asked.game in found.title:
            return found
        return replace(found, title=f"{found.title} (here: {asked.game})")

    def in_small(self, asked: Request, folder: Path) -> Request:
        """A quick look, but for what the user asks for; what it writes is not mixed up with that of other runs."""
        kept = {"out": folder / self.keeps} if self.keeps else {}
        return self.quick._replace(**kept | asked.given())

    def verdicts(self, found: ReproductionResult) -> list[Verdict]:
        """Which of the paper's claims the rows bear out."""
        return [claim.verdict(found.rows) for claim in self.claims]
