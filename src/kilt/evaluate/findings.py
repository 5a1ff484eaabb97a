"""Results of sanity checks: a finding for each check, and a report on each strategy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kilt.evaluate.defence import Defence
from kilt.strategy.naming import AVERAGE


@dataclass(frozen=True)
class Finding:
    """The result of one sanity check, with its limit if there is one.

    Attributes
    ----------
    name, meaning : str
        The check, and its purpose in one line.
    figures : dict of str to float
        Results by seat, round or action; ``""`` for a single result.
    unit : str
        ``"%"``: figures are shares of 1; ``"mbb/h"``; or the things that are counted.
    bound : str
        The accepted range, in words; empty if there is no bound.
    off : bool
        Whether a figure is beyond the bound.
    margin : float or None
        Half-width of the 95% interval of estimated figures, in their unit.
    """

    name: str
    meaning: str
    figures: dict[str, float]
    unit: str
    bound: str = ""
    off: bool = False
    margin: float | None = None

    @property
    def seen(self) -> str:
        """The figures as text.

        >>> Finding("", "", {"": 0.0213, "small blind": 0.0003}, "%").seen
        '2.1%, small blind 0.03%'
        """
        said = ", ".join(f"{what} {self._figure(value)}".strip() for what, value in self.figures.items())
        return said if self.margin is None else f"{said}, ± {self.margin:,.0f}"

    def _figure(self, value: float) -> str:
        if self.unit == "%":
            return "0%" if value == 0 else f"{value:.2%}" if value < 0.01 else f"{value:.1%}"
        if self.unit == "mbb/h":
            return f"{value:+,.0f} mbb/h"
        return f"{value:,.0f} {self.unit}"


@dataclass(frozen=True)
class Report:
    """A report on a strategy: the results of all its sanity checks."""

    game: str  # name of the game
    deals: int  # number of deals of self-play
    seed: int
    findings: tuple[Finding, ...]
    strategy: str = AVERAGE  # the strategy that was checked: see `kilt.strategy.naming`
    defence: tuple[Defence, ...] = ()  # how often it folds to bets on common lines

    @property
    def off(self) -> tuple[Finding, ...]:
        """The failed checks: findings beyond their limits."""
        return tuple(finding for finding in self.findings if finding.off)

    @property
    def ok(self) -> bool:
        """Whether all findings are within their bounds."""
        return not self.off

    def rows(self) -> list[list[str]]:
        """Return a row of text for each check: name, result, limit and verdict.

        The verdict is ``pass`` or ``FAIL``, or empty if there is no limit.
        """
        verdicts = [("FAIL" if this.off else "pass") if this.bound else "" for this in self.findings]
        return [
            [this.name, this.seen, this.bound, verdict] for this, verdict in zip(self.findings, verdicts, strict=True)
        ]

    def data(self) -> dict[str, Any]:
        """Return the report as a dict for JSON.

        It has `ok`, a dict for each finding, and a dict for each bet on a common line.
        """
        rows = [asdict(row) | {"break_even": row.break_even, "profit": row.profit} for row in self.defence]
        return {"ok": self.ok} | asdict(self) | {"defence": rows}

    def __str__(self) -> str:
        if self.ok:
            return f"{self.game}, {self.strategy}: all checks passed"
        said = [f"{this.name}: {this.seen} ({this.bound}); {this.meaning}" for this in self.off]
        return "\n".join([f"{self.game}, {self.strategy}: {len(said)} failed", *said])
