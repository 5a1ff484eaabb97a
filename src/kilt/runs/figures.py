"""Compute a run's results, such as exploitability and value, from its measurements.

They are the same for a run that is being solved and for one read from a folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module

from kilt.errors import RunError
from kilt.evaluate.exploitability import Exploitability
from kilt.notebook import Drawable, Picture, html_table
from kilt.runs.budget import Step


class RunFigures(Drawable, ABC):
    """Base class of runs, which computes results from their measurements."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the names of the game and the algorithm, as a title for reports."""

    @property
    @abstractmethod
    def solved(self) -> str:
        """Name the strategy behind the results: the average strategy or the last iterate."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """Return the run's measurements in order; the last one was taken at the end."""

    @abstractmethod
    def mbb(self, chips: float) -> float | None:
        """Convert chips to thousandths of a big blind, or return None if the game has no big blind."""

    @property
    def exploitability(self) -> Exploitability:
        """Return the exploitability of the run's strategy, as a mean over both seats in chips per game."""
        chips = self._last.exploitability
        return Exploitability(chips, self.mbb(chips), strategy=self.solved)

    @property
    def value(self) -> float:
        """Return player 0's expected winnings in chips per game, if both players follow the strategy."""
        return self._last.value

    @property
    def iterations(self) -> int:
        """Return the number of finished iterations."""
        return self._last.iterations

    @property
    def _last(self) -> Step:
        if not self.steps:
            raise RunError(f"{self.title} has measured nothing yet: iterate over the run, or finish it")
        return self.steps[-1]

    def grid(self, history: str = "") -> Picture:
        """Draw the strategy for all starting hands at a first-round decision, as a hand grid.

        Parameters
        ----------
        history : str
            The betting before the decision, as in logs of the ACPC, such as ``"r300"``: "" is the first decision.

        Returns
        -------
        Picture
        """
        return Picture(import_module("kilt.viz.shown").decision_figure(self, history))

    def _repr_html_(self) -> str:
        rows = {"strategy": self.solved}
        if self.steps:
            last = self._last
            rows["exploitability, chips per game"] = f"{last.exploitability:.6g}"
            rows["value of seat 0, chips per game"] = f"{last.value:.6g}"
            rows |= {f"win rate against {name}, mbb/h": f"{won:.6g}" for name, won in last.others.items()}
            rows |= {"iterations": f"{last.iterations:,}", "seconds": f"{last.seconds:.2f}"}
        return html_table(self.title, rows)
