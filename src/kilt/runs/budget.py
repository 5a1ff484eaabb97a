"""Limit runs by iterations, time or exploitability, and estimate their remaining time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import exp, inf, log, nan
from typing import ClassVar, NamedTuple

from kilt.errors import RunError
from kilt.evaluate.evaluator import UNIT
from kilt.games import load_game
from kilt.games.game import Game
from kilt.records import MOST
from kilt.solve.forms import OPENSPIEL
from kilt.solve.problem import big_blind_of


class Step(NamedTuple):
    """A measurement during a run: the time spent, the exploitability and the value after some iterations."""

    iterations: int
    seconds: float  # of work, checkpoints and measurements included, compilation not
    exploitability: float  # of the average strategy, mean over both seats, in chips per game; nan if unknown
    current_exploitability: float  # exploitability of the last iterate
    value: float  # expected winnings of player 0 when both follow the average strategy, in chips per game
    others: dict[str, float] = {}  # noqa: RUF012, win rates of the average strategy in mbb per hand, by opponent
    abstract_exploitability: float = nan  # of the average strategy, by opponents who see the same buckets; nan: unknown
    cpu_seconds: float = 0.0  # of this process and of those started by it that have ended, compilation included


@dataclass(frozen=True)
class Budget:
    """The limits of a run, such as iterations and minutes. The first one reached ends the run.

    All limits are totals, including the work before a resume.

    Parameters
    ----------
    iterations : int, optional
    seconds : float, optional
        Seconds of work, including the time before a resume.
    target : float, optional
        Exploitability of the average strategy, in chips per game.
    """

    iterations: int | None = None
    seconds: float | None = None
    target: float | None = None

    _UNITS: ClassVar = {"iterations": "iterations", "seconds": "seconds", "target": f"{UNIT} of exploitability"}

    def __post_init__(self) -> None:
        for what, value in asdict(self).items():
            if value is not None and not 0 < value < inf:
                raise RunError(f"the budget is {value:g} {self._UNITS[what]}: give a number above 0")
            if value is not None and value > MOST:
                raise RunError(f"the budget is over {MOST:,} {self._UNITS[what]}: give less, or stop the run yourself")

    def __str__(self) -> str:
        parts = [
            f"{self.iterations:,} iterations" if self.iterations else "",
            f"{self.seconds / 60:g} min" if self.seconds else "",
            f"exploitability {self.target:g}" if self.target else "",
        ]
        return " or ".join(filter(None, parts)) or "no limit"

    def spent(self, iterations: int, seconds: float) -> bool:
        """Return whether a run has used up its iterations or its time."""
        return iterations >= (self.iterations or inf) or seconds >= (self.seconds or inf)


def time_left(budget: Budget, steps: Sequence[Step], iterations: int, seconds: float) -> float | None:
    """Estimate a run's remaining seconds at its current speed, or return None.

    The estimate assumes that exploitability falls as a power of the iterations, as in the latest measurements.

    >>> steps = [Step(100, 1.0, 0.4, 0.4, 0.0), Step(141, 1.4, 0.3, 0.3, 0.0), Step(200, 2.0, 0.2, 0.2, 0.0)]
    >>> [round(time_left(budget, steps, 200, 2.0), 6) for budget in (Budget(iterations=800), Budget(target=0.05))]
    [6.0, 6.0]
    """
    guesses = []
    pace = seconds / max(iterations, 1)
    if budget.seconds:
        guesses.append(budget.seconds - seconds)
    if budget.iterations and iterations:
        guesses.append((budget.iterations - iterations) * pace)
    if budget.target and len(steps) > 2 and steps[-1].exploitability < steps[-3].exploitability:
        first, last = steps[-3], steps[-1]
        power = log(first.exploitability / last.exploitability) / log(last.iterations / first.iterations)
        wanted = log(last.iterations) + log(last.exploitability / budget.target) / power
        if wanted < 60:
            guesses.append((exp(wanted) - iterations) * pace)
    return max(min(guesses), 0.0) if guesses else None


def make_budget(
    iterations: int | None, seconds: float | None, target: float | str | None, game: str | Game
) -> Budget | None:
    """Return a run's limits as a `Budget`, or None if it has no limits.

    The target exploitability is converted to chips.
    """
    if isinstance(target, str):
        target = parse_exploitability(target, game)
    return None if iterations is seconds is target is None else Budget(iterations, seconds, target)


def parse_exploitability(target: str, game: str | Game) -> float:
    """Convert an exploitability such as "1mbb" or "0.01" to chips per game.

    >>> parse_exploitability("5mbb", "holdem.limit.2p")
    0.05
    """
    number = target.strip().removesuffix("mbb")
    try:
        chips = float(number)
    except ValueError:
        raise RunError(
            f"the target is {target!r}: use chips per game, such as 0.01, or thousandths of a big blind, such as 1mbb"
        ) from None
    if number == target.strip():
        return chips
    rules = load_game(game) if isinstance(game, str) and not game.startswith(OPENSPIEL) else game
    blind = None if isinstance(rules, str) else big_blind_of(rules)
    if blind is None:
        name = game if isinstance(game, str) else game.name
        raise RunError(f"the target is {target}, but {name} has no big blind: use chips per game, such as 0.01")
    return chips * blind / 1000
