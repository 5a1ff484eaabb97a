"""What papers claim, as data, and whether what was found here bears it out.

A claim becomes a number that is above 0 exactly where it is true: "PCS is below CS" is the figure of CS less that of
PCS. The 95% interval of that number decides: wholly above 0 the claim holds, wholly below it does not, and otherwise
nothing is decided. So a claim is never said to hold for want of data.

>>> rows = {"cs": Row.of_runs("cs", [9.0, 10.0, 11.0, 10.0], "mbb/g"), "pcs": Row("pcs", None, 4.0, "mbb/g", 0.0, {})}
>>> lower("pcs", "cs")(rows).verdict, lower("pcs", "cs", factor=0.4)(rows).verdict, lower("pcs", "spcs")(rows)
('holds', 'not decided', None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from kilt.evaluate.stats import student_width

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"


class Row(NamedTuple):
    """A published number beside ours."""

    name: str
    paper: float | None  # None where it can only be read off a picture
    ours: float
    unit: str
    seconds: float  # of work
    more: dict[str, Any]  # whatever else is to be said
    margin: float | None = None  # how far the 95% interval reaches to each side; None: ours is exact; inf: not known
    runs: tuple[float, ...] = ()  # what independent runs came to, where ours is their mean
    seeds: tuple[int, ...] = ()  # of these runs

    @classmethod
    def of_runs(
        cls,
        name: str,
        runs: Iterable[float],
        unit: str,
        seconds: float = 0.0,
        more: dict[str, Any] | None = None,
        paper: float | None = None,
        seeds: Iterable[int] | None = None,
    ) -> Row:
        """The mean of some independent runs, with its interval, which is not known of less than three.

        Their seeds are 0, 1, … unless others are given.
        """
        values = np.array([*runs])
        spread = student_width(len(values))
        margin = spread if spread == inf else spread * float(values.std(ddof=1))
        numbers = tuple(range(len(values)) if seeds is None else seeds)
        return cls(
            name, paper, float(values.mean()), unit, seconds, more or {}, margin, tuple(values.tolist()), numbers
        )

    @property
    def reach(self) -> float:
        """Half of the interval as a picture has it: 0 where there is none."""
        return 0.0 if self.margin is None or self.margin == inf else self.margin

    def figures(self) -> dict[str, Any]:
        """All of it, by name."""
        known = {"name": self.name, "paper": self.paper, "ours": self.ours, "unit": self.unit, "seconds": self.seconds}
        spread = {} if self.margin is None else {"ci95": (self.ours - self.margin, self.ours + self.margin)}
        return known | spread | ({"runs": self.runs} if self.runs else {}) | self.more

    def found(self) -> str:
        """Ours, as it is printed."""
        number = f"{self.ours:,.2f}" if 100 <= self.ours < 1e9 else f"{self.ours:.5g}"
        if self.margin is None or self.margin == inf:
            return number
        digits = 1 if self.margin >= 0.1 else 4
        return f"{self.ours:.{digits}f} ± {self.margin:.{digits}f}"


Rows = Mapping[str, Row]  # by name


class Interval(NamedTuple):
    """The 95% interval of a number that is above 0 exactly where a claim is true."""

    low: float
    high: float

    @property
    def verdict(self) -> str:
        """What it says of the claim."""
        return HOLDS if self.low > 0 else FAILS if self.high < 0 else OPEN


Slack = Callable[[Rows], Interval | None]  # by how much a claim holds; None where the rows cannot tell


class Claim(NamedTuple):
    """Something that a paper says, in our words."""

    says: str
    source: str  # as papers are cited
    slack: Slack

    def verdict(self, rows: Iterable[Row]) -> Verdict:
        """Whether rows that were found bear it out."""
        found = self.slack({row.name: row for row in rows})
        return Verdict(self.says, self.source, OPEN if found is None else found.verdict, found)


class Verdict(NamedTuple):
    """A claim, and whether it holds here."""

    says: str
    source: str
    verdict: str  # one of HOLDS, FAILS, OPEN
    by: Interval | None  # by how much it holds, in the unit of the rows; None where rows cannot tell

    def figures(self) -> dict[str, Any]:
        """All of it, by name."""
        return {"claim": self.says, "source": self.source, "verdict": self.verdict, "by_ci95": self.by}


def contrast(weights: Mapping[str, float], beyond: float = 0.0) -> Slack:
    """A weighted sum of rows is above some number.

    Runs of all rows with the same seed are compared with each other: whatever they have in common, such as an
    abstraction, drops out. If there are rows without runs, or no seed that all have, errors are independent.
    """

    def slack(rows: Rows) -> Interval | None:
        if not rows.keys() >= weights.keys():
            return None
        terms = [(weight, rows[name]) for name, weight in weights.items()]
        by_seed = [dict(zip(row.seeds, row.runs, strict=False)) for _, row in terms]
        common = sorted(set.intersection(*(set(runs) for runs in by_seed)))
        if common:
            values = [
                sum(weight * runs[seed] for (weight, _), runs in zip(terms, by_seed, strict=True)) for seed in common
            ]
            whole = Row.of_runs("", values, "")
            mean, margin = whole.ours, whole.margin or 0.0
        else:
            mean = sum(weight * row.ours for weight, row in terms)
            margin = sqrt(sum((weight * (row.margin or 0.0)) ** 2 for weight, row in terms))
        return Interval(mean - beyond - margin, mean - beyond + margin)

    return slack


def lower(name: str, than: str, *, factor: float = 1.0) -> Slack:
    """One row is lower than another one, or than some part of it."""
    return contrast({than: factor, name: -1.0})


def higher(name: str, than: str) -> Slack:
    """One row is higher than another one."""
    return lower(than, name)


def positive(name: str) -> Slack:
    """A row is above 0."""
    return contrast({name: 1.0})


def negative(name: str) -> Slack:
    """A row is below 0."""
    return contrast({name: -1.0})


def as_printed(name: str, within: float) -> Slack:
    """A row is what the paper has, but for `within`; nothing is said of rows of which the paper has no figure."""

    def slack(rows: Rows) -> Interval | None:
        if name not in rows or rows[name].paper is None:
            return None
        row = rows[name]
        assert row.paper is not None
        off, margin = abs(row.ours - row.paper), row.margin or 0.0
        return Interval(within - off - margin, within - max(off - margin, 0.0))

    return slack


def where(condition: Slack, claim: Slack) -> Slack:
    """A claim that only rows which meet a condition can decide, such as curves that have ended."""

    def slack(rows: Rows) -> Interval | None:
        met = condition(rows)
        return claim(rows) if met and met.verdict == HOLDS else None

    return slack


def some(*parts: Slack) -> Slack:
    """At least one of some claims is true."""

    def slack(rows: Rows) -> Interval | None:
        known = [one for one in (part(rows) for part in parts) if one is not None]
        return Interval(max(one.low for one in known), max(one.high for one in known)) if known else None

    return slack


def every(*parts: Slack) -> Slack:
    """All of some claims are true; one that is not is enough for the whole not to be.

    Each part has its own 95% interval, so that of many parts together one may be wrong more often than that.
    """

    def slack(rows: Rows) -> Interval | None:
        found = [part(rows) for part in parts]
        if None in found:
            false = [one for one in found if one is not None and one.verdict == FAILS]
            return min(false, default=None)
        known = [one for one in found if one is not None]
        return Interval(min(one.low for one in known), min(one.high for one in known))

    return slack
