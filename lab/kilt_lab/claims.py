"""Claims of papers as data, and verdicts on them from measured rows.

A claim is a number, its *slack*, that is above 0 if and only if the claim is true: for "PCS is below CS", it is the
value of CS less that of PCS. The 95% interval of that number decides. If the whole interval is above 0, the claim
holds; if it is below 0, the claim does not hold; otherwise the claim is not decided. Missing data never make a claim
hold.

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
    """A published number and the measured one."""

    name: str
    paper: float | None  # None if the paper has only a picture
    ours: float
    unit: str
    seconds: float  # of work
    more: dict[str, Any]  # further figures, by name
    margin: float | None = None  # half-width of the 95% interval; None: ours is exact; inf: unknown
    runs: tuple[float, ...] = ()  # values of independent runs, if ours is their mean
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
        """Return the mean of independent runs with its 95% interval, which needs three runs.

        Seeds are 0, 1, … unless others are given.
        """
        values = np.array([*runs], dtype=float)
        spread = student_width(len(values))
        margin = spread if spread == inf else spread * float(values.std(ddof=1))
        numbers = tuple(range(len(values)) if seeds is None else seeds)
        return cls(
            name, paper, float(values.mean()), unit, seconds, more or {}, margin, tuple(values.tolist()), numbers
        )

    @property
    def reach(self) -> float:
        """Half-width of the interval for a picture: 0 if there is none."""
        return 0.0 if self.margin is None or self.margin == inf else self.margin

    def figures(self) -> dict[str, Any]:
        """Return all fields by name, for JSON."""
        known = {"name": self.name, "paper": self.paper, "ours": self.ours, "unit": self.unit, "seconds": self.seconds}
        spread = {} if self.margin is None else {"ci95": (self.ours - self.margin, self.ours + self.margin)}
        return known | spread | ({"runs": self.runs} if self.runs else {}) | self.more

    def found(self) -> str:
        """Return the measured number in the form in which it is printed, without a margin if all runs agree."""
        number = f"{self.ours:,.2f}" if 100 <= self.ours < 1e9 else f"{self.ours:.5g}"
        if self.margin in (None, inf) or self.margin < 1e-9 * abs(self.ours):
            return number
        digits = 1 if self.margin >= 0.1 else 4
        return f"{self.ours:.{digits}f} ± {self.margin:.{digits}f}"


Rows = Mapping[str, Row]  # by name


class Interval(NamedTuple):
    """The 95% interval of a number that is above 0 if and only if a claim is true."""

    low: float
    high: float

    @property
    def verdict(self) -> str:
        """HOLDS, FAILS or OPEN."""
        return HOLDS if self.low > 0 else FAILS if self.high < 0 else OPEN


Slack = Callable[[Rows], Interval | None]  # margin of a claim; None if rows are missing


class Claim(NamedTuple):
    """A claim of a paper, in our words."""

    says: str
    source: str  # as papers are cited
    slack: Slack

    def verdict(self, rows: Iterable[Row]) -> Verdict:
        """Return the verdict that measured rows give."""
        found = self.slack({row.name: row for row in rows})
        return Verdict(self.says, self.source, OPEN if found is None else found.verdict, found)


Claims = Mapping[str, Slack | tuple[str, Slack]]  # by their words; a tuple has the source, if it is another one


class Verdict(NamedTuple):
    """A claim, and whether it holds in the measured rows."""

    says: str
    source: str
    verdict: str  # one of HOLDS, FAILS, OPEN
    by: Interval | None  # margin of the claim, in the unit of the rows; None if rows are missing

    def figures(self) -> dict[str, Any]:
        """Return all fields by name, for JSON."""
        return {"claim": self.says, "source": self.source, "verdict": self.verdict, "by_ci95": self.by}


def common_seeds(runs: Iterable[Mapping[int, float]]) -> list[int]:
    """Return the seeds that are in all of several mappings from seeds to values."""
    known = [set(values) for values in runs]
    return sorted(set.intersection(*known)) if known else []


def contrast(weights: Mapping[str, float], beyond: float = 0.0) -> Slack:
    """Return the claim that a weighted sum of rows is above `beyond`.

    Runs with the same seed are compared with each other, so that common causes, such as an abstraction, cancel. If a
    row has no runs, or no seed is common to all rows, errors are taken as independent.
    """

    def slack(rows: Rows) -> Interval | None:
        if not rows.keys() >= weights.keys():
            return None
        terms = [(weight, rows[name]) for name, weight in weights.items()]
        by_seed = [dict(zip(row.seeds, row.runs, strict=False)) for _, row in terms]
        common = common_seeds(by_seed)
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
    """Return the claim that one row is lower than `factor` times another one."""
    return contrast({than: factor, name: -1.0})


def higher(name: str, than: str) -> Slack:
    """Return the claim that one row is higher than another one."""
    return lower(than, name)


def positive(name: str) -> Slack:
    """Return the claim that a row is above 0."""
    return contrast({name: 1.0})


def negative(name: str) -> Slack:
    """Return the claim that a row is below 0."""
    return contrast({name: -1.0})


def as_printed(name: str, within: float) -> Slack:
    """Return the claim that a row is within `within` of the paper's number; not decided for rows without one."""

    def slack(rows: Rows) -> Interval | None:
        if name not in rows or rows[name].paper is None:
            return None
        row = rows[name]
        assert row.paper is not None
        off, margin = abs(row.ours - row.paper), row.margin or 0.0
        return Interval(within - off - margin, within - max(off - margin, 0.0))

    return slack


def where(condition: Slack, claim: Slack) -> Slack:
    """Return a claim that is decided only if a condition holds, such as that curves have converged."""

    def slack(rows: Rows) -> Interval | None:
        met = condition(rows)
        return claim(rows) if met and met.verdict == HOLDS else None

    return slack


def some(*parts: Slack) -> Slack:
    """Return the claim that at least one of several claims is true."""

    def slack(rows: Rows) -> Interval | None:
        known = [one for one in (part(rows) for part in parts) if one is not None]
        return Interval(max(one.low for one in known), max(one.high for one in known)) if known else None

    return slack


def every(*parts: Slack) -> Slack:
    """Return the claim that all of several claims are true. A false part makes it false.

    Each part has its own 95% interval, so the error rate of the whole may exceed 5%.
    """

    def slack(rows: Rows) -> Interval | None:
        found = [part(rows) for part in parts]
        if None in found:
            false = [one for one in found if one is not None and one.verdict == FAILS]
            return min(false, default=None)
        known = [one for one in found if one is not None]
        return Interval(min(one.low for one in known), min(one.high for one in known))

    return slack
