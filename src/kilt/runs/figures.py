"""What a run measured, by name: of a run that is solved here, or of one that is looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module

from kilt.errors import RunError
from kilt.evaluate.exploitability import Exploitability
from kilt.notebook import Drawable, Picture, html_table
from kilt.runs.budget import Step


class RunFigures(Drawable, ABC):
    """The figures of a run, read from its steps."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The game and the algorithm."""

    @property
    @abstractmethod
    def solved(self) -> str:
        """Which strategy the figures are about, in words: algorithms without an average give their last one."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """Where the solver stood, by the measuring schedule; the last one is that of the end."""

    @abstractmethod
    def mbb(self, chips: float) -> float | None:
        """Chips in thousandths of a big blind; None if the game has no big blind."""

    @property
    def exploitability(self) -> Exploitability:
        """Value of best responses to the strategy in chips per game, mean over both seats."""
        chips = self._last.exploitability
        return Exploitability(chips, self.mbb(chips), strategy=self.solved)

    @property
    def value(self) -> float:
        """Expected winnings of the player in seat 0 when both follow the strategy, in chips per game."""
        return self._last.value

    @property
    def iterations(self) -> int:
        """Iterations that were done."""
        return self._last.iterations

    @property
    def _last(self) -> Step:
        if not self.steps:
            raise RunError(f"{self.title} has measured nothing yet: iterate over the run, or finish it")
        return self.steps[-1]

    def grid(self, history: str = "") -> Picture:
        """Draw what the strategy does with each private hand at a decision of the first round.

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
