"""Estimate win rates from a log of hands, with 95% intervals and warnings about unreliable estimates.

A `LogEvaluator` evaluates the hands of a log, in this process or in several, hands with the same betting together.
Hands that cannot be evaluated are counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError, PlayError
from kilt.evaluate.aivat import BlueprintValues
from kilt.evaluate.estimators import AIVAT, ENDINGS, ESTIMATORS, Estimator, follow_line, hand_values
from kilt.evaluate.portfolio import Portfolio, Tabulated, component_that_played, components_of
from kilt.evaluate.stats import Estimate, are_duplicate_pairs, estimate_mean
from kilt.evaluate.values import LoggedHands, StateValues, group_by_betting, has_many_boards
from kilt.games.holdem import Holdem
from kilt.play.acpc import add_notes, read_notes
from kilt.play.agent import require_policy
from kilt.play.blueprint import BlueprintAgent
from kilt.play.columns import readable_hands
from kilt.play.dealer import Hand
from kilt.play.match import Load

FEW, SHARE = 30, 0.01  # minimum number of effective hands for a reliable estimate, and minimum share of all hands
LINES = 1024  # lines of a log that a process handles at a time: many of them share their betting


@dataclass(frozen=True)
class LogEstimate:
    """One estimator's win rate for a log of hands, with information on its reliability.

    Attributes
    ----------
    estimator : Estimator
        The estimator.
    won : Estimate
        Win rate of the evaluated strategy, in mbb/h, with its 95% interval.
    deviation : float
        Standard deviation of one hand, in mbb.
    effective : float
        Effective number of hands, (Σ w)² / Σ w² of their weights: as many hands of equal weight would be as precise.
    weight : Estimate
        Mean weight of a hand. It is 1 if the strategy that played takes every action that the evaluated one takes.
    missing : float
        Estimated share of the evaluated strategy's hands in which it takes an action that the strategy that played
        never takes. The estimate does not contain the winnings in these hands.
    hands : int
        Number of hands that were evaluated.
    """

    estimator: Estimator
    won: Estimate
    deviation: float
    effective: float
    weight: Estimate
    missing: float
    hands: int

    @property
    def warnings(self) -> list[str]:
        """Warnings about the reliability of the estimate, as sentences for the user."""
        found = []
        if self.effective < max(SHARE * self.hands, min(FEW, self.hands / 2)):
            found.append(
                f"degenerate weights: {self.effective:,.0f} effective hands of {self.hands:,}; "
                "do not rely on the interval"
            )
        if self.missing > 0:
            found.append(
                f"missing support: in {100 * self.missing:.2g}% of its hands, the evaluated strategy takes actions "
                "that the "
                "strategy that played never takes; the estimate does not contain these hands"
            )
        return found


@dataclass
class LogEstimates:
    """The results of several estimators for a log, and the number of skipped hands.

    Attributes
    ----------
    rows : list of LogEstimate
        One per estimator, in the order of the request.
    hands : int
        Number of hands that were evaluated.
    left_out : dict
        Number of skipped hands, by reason.
    duplicate : bool
        Whether all hands come in pairs with the same cards and the players swapped; a pair is then one observation.
    players : set of str
        Names of all players in the log.
    faults : list of str
        Errors of lines that cannot be read.
    """

    rows: list[LogEstimate] = field(default_factory=list)
    hands: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    duplicate: bool = False
    players: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


class HandEstimates(NamedTuple):
    """The estimated winnings of each hand, by several estimators."""

    found: FloatArray  # [3, estimator, hand] value in chips, weight, and missing support
    kept: list[Hand]  # the hands that were evaluated
    left_out: Counter[str]
    players: set[str]


@dataclass(frozen=True, eq=False)
class LogEvaluator:
    """Evaluates the hands of a log by one or several estimators.

    `estimate_from_log` explains the fields.
    """

    game: Holdem
    player: str
    played: Tabulated
    evaluated: Tabulated
    estimators: Sequence[Estimator]
    states: StateValues | None = None
    opponent: Tabulated | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.evaluated, Portfolio) and self.evaluated is not self.played:
            raise PlayError(
                f"{self.evaluated.name} picks a component for each hand that it plays, and did not play these: "
                f"evaluate one of {', '.join(agent.name for agent in self.evaluated.components)} in its place"
            )

    def evaluate(self, hands: Iterable[Hand]) -> HandEstimates:
        """Estimate the winnings of each hand by each estimator.

        Hands that cannot be evaluated are counted.
        """
        left_out = Counter[str]()
        players: set[str] = set()
        theirs: list[Hand] = []
        for hand in hands:
            players.update(hand.players)
            if self.player in hand.players:
                theirs.append(hand)
            else:
                left_out[f"{self.player} does not take part"] += 1
        seats = [hand.players.index(self.player) for hand in theirs]
        found = np.full((3, len(self.estimators), len(theirs)), np.nan)
        evaluated = np.zeros(len(theirs), dtype=bool)
        groups = [part for group in group_by_betting(theirs, seats) for part in self._by_notes(theirs, group)]
        while groups:
            numbers = groups.pop()
            try:
                found[:, :, numbers] = self._judge([theirs[number] for number in numbers], seats[numbers[0]])
                evaluated[numbers] = True
            except (PlayError, GameError) as error:
                if len(numbers) > 1:  # perhaps because of the cards of one of them
                    groups += [[number] for number in numbers]
                else:
                    line = repr(theirs[numbers[0]].position.history)
                    left_out[str(error).replace(line, "such a line")] += 1
        kept = [hand for hand, there in zip(theirs, evaluated, strict=True) if there]
        return HandEstimates(found[:, :, evaluated], kept, left_out, players)

    def _by_notes(self, hands: Sequence[Hand], numbers: Sequence[int]) -> list[list[int]]:
        """Group some hands by the notes on their players, if a portfolio played.

        The notes name the component of the portfolio that played each hand.
        """
        if not any(isinstance(agent, Portfolio) for agent in (self.played, self.opponent)):
            return [list(numbers)]
        groups: dict[tuple[str, ...], list[int]] = {}
        for number in numbers:
            groups.setdefault(hands[number].notes, []).append(number)
        return list(groups.values())

    def _judge(self, hands: Sequence[Hand], seat: int) -> FloatArray:
        """Return the values of hands with the same betting under each estimator, as in `HandEstimates.found`."""
        endings = {action for row in self.estimators for action in ENDINGS[row.endings]}
        seen = LoggedHands(self.game, hands, seat, partial=self.partial)
        played = component_that_played(self.played, hands[0], seat)
        evaluated = played if isinstance(self.evaluated, Portfolio) else self.evaluated
        opponent = component_that_played(self.opponent, hands[0], 1 - seat) if self.opponent else None
        line = follow_line(seen, played, evaluated, endings)
        missing = [line.missing[row.all_cards, row.endings] for row in self.estimators]
        return np.stack([*hand_values(seen, line, self.estimators, self.states, opponent), missing])

    def summary(self, parts: Iterable[HandEstimates]) -> LogEstimates:
        """Return each estimator's mean with its 95% interval."""
        result, found, kept = LogEstimates(), [], []
        for part in parts:
            found.append(part.found)
            kept += part.kept
            result.left_out.update(part.left_out)
            result.players |= part.players
        result.hands = len(kept)
        if kept:
            result.duplicate = are_duplicate_pairs(kept)
            won, weight, missing = np.concatenate(found, axis=2)
            mbb = won * (1000 / self.game.rules.big_blind)
            for place, row in enumerate(self.estimators):
                lost = float(missing[place].mean())
                result.rows.append(_summary(row, mbb[place], weight[place], lost, pairs=result.duplicate))
        return result


def estimate_from_log(
    game: Holdem,
    hands: Iterable[Hand],
    player: str,
    played: Tabulated,
    evaluated: Tabulated | None = None,
    estimators: Sequence[Estimator] | None = None,
    *,
    states: StateValues | None = None,
    opponent: Tabulated | None = None,
    partial: bool = False,
) -> LogEstimates:
    """Estimate a strategy's win rate from logged hands, even if another strategy played them [Johanson16 §7].

    Parameters
    ----------
    game : Holdem
        The game.
    hands : iterable of Hand
        Hands of a log: see `kilt.play.acpc`.
    player : str
        The name of the player in these hands whose strategy is known.
    played : PolicyAgent or Portfolio
        The strategy with which the player played. For a portfolio, the notes of the hands name the component that
        played.
    evaluated : PolicyAgent, optional
        The strategy to evaluate in its place against the same opponents. By default `played`.
    estimators : sequence of Estimator, optional
        Rows of `ESTIMATORS`. By default, all for which the arguments suffice, except DIVAT with all cards in large
        games.
    states : StateValues, optional
        State values for AIVAT: see `kilt.evaluate.aivat`.
    opponent : PolicyAgent or Portfolio, optional
        The strategy of the opponent, if it is known: AIVAT also corrects for its actions.
    partial : bool
        Use the opponent's cards only if they were shown at a showdown.

    Returns
    -------
    LogEstimates
        Hands in which the player does not take part, or takes an action that `played` never takes, are counted and
        skipped.
    """
    evaluator = LogEvaluator(
        game, player, played, evaluated or played, _all(game, estimators, states), states, opponent, partial
    )
    return evaluator.summary([evaluator.evaluate(hands)])


@dataclass(frozen=True)
class LogCase:
    """A request to estimate win rates from a log, with all players given by name.

    Every process can load the players by their names.

    Attributes
    ----------
    game : Holdem
        The game.
    player : str
        The name of the player in the log whose strategy is known.
    played : str
        The strategy with which the player played.
    evaluated, opponent : str or None
        The strategy to evaluate, and that of the opponent: see `estimate_from_log`.
    values : str or None
        The blueprint from which AIVAT's values are learnt. By default `played`, if it is one.
    estimators : tuple of Estimator, or None
        By default, all for which the arguments suffice.
    partial : bool
        Use the opponent's cards only if they were shown at a showdown.
    notes : mapping
        Notes on each hand, by its number: see `kilt.play.acpc.read_notes`. Portfolios are evaluated with them.
    load : callable
        Loads an agent by name; a function of a module, for other processes.
    """

    game: Holdem
    player: str
    played: str
    evaluated: str | None = None
    opponent: str | None = None
    values: str | None = None
    estimators: tuple[Estimator, ...] | None = None
    partial: bool = False
    notes: Mapping[int, Sequence[str]] = field(default_factory=dict)
    load: Load = field(kw_only=True)

    @cached_property
    def evaluator(self) -> LogEvaluator:
        """The evaluator of the log's hands, with its agents and state values."""
        played = self._tabulated(self.played)
        evaluated = self._tabulated(self.evaluated) if self.evaluated and self.evaluated != self.played else played
        opponent = self._tabulated(self.opponent) if self.opponent else None
        without = LogEvaluator(self.game, self.player, played, evaluated, (), None, opponent, self.partial)
        states = self._states(self._tabulated(self.values) if self.values else played)
        return replace(without, estimators=_all(self.game, self.estimators, states), states=states)

    def read(self, text: str, first: int) -> tuple[list[Hand], list[str]]:
        """Read some lines of the log. Returns their hands, and an error for each unreadable line.

        Notes on the hands are added.
        """
        hands, faults = readable_hands(text, self.game, first)
        if self.notes:
            names = (self.player, self.evaluator.played.name)
            return [add_notes(hand, self.notes, names) for hand in hands], faults
        return list(hands), faults

    def _tabulated(self, name: str) -> Tabulated:
        """Load an agent by its name; raise PlayError if its strategy is not available."""
        agent = self.load(name)
        return agent if isinstance(agent, Portfolio) else require_policy(agent)

    def _states(self, agent: Tabulated) -> StateValues | None:
        """Return state values if AIVAT is requested and they are available, otherwise None."""
        asked = self.estimators and any(row.value == AIVAT for row in self.estimators)
        if self.estimators and not asked:
            return None
        for component in components_of(agent):
            if isinstance(component, BlueprintAgent):
                return BlueprintValues(component.blueprint)
        if asked:
            raise PlayError(
                f"AIVAT learns its values from a blueprint, but {agent.name} is not one: give a run as `values`"
            )
        return None


def estimate_by_name(
    case: LogCase, text: str, processes: int = 1, tick: Callable[[int], None] = lambda lines: None
) -> LogEstimates:
    """Estimate a strategy's win rate from the text of an ACPC log.

    Parameters
    ----------
    case : LogCase
        The players, and the estimators.
    text : str
        The log. Errors of lines that cannot be read are in `LogEstimates.faults`.
    processes : int
        Maximum number of processes; short logs are handled in this one. The result does not depend on it.
    tick : callable
        Called with the number of lines read so far.

    Returns
    -------
    LogEstimates
    """
    case = _with_notes(case, text)
    lines = text.splitlines()
    parts = [(first, "\n".join(lines[first : first + LINES])) for first in range(0, len(lines), LINES)]
    evaluated: list[HandEstimates] = []
    faults: list[str] = []
    for part, wrong in _parts(case, parts, min(processes, len(parts) // 4)):
        evaluated.append(part)
        faults += wrong
        tick(min(len(lines), len(evaluated) * LINES))
    result = case.evaluator.summary(evaluated)
    result.faults = faults
    return result


def _with_notes(case: LogCase, text: str) -> LogCase:
    """Add the notes of a log to a request if a portfolio played; raise PlayError if the log has no notes."""
    portfolios = [agent for agent in (case.evaluator.played, case.evaluator.opponent) if isinstance(agent, Portfolio)]
    if not portfolios:
        return case
    if not (notes := read_notes(text)):
        raise PlayError(
            f"the log does not say which component of {portfolios[0].name} played each hand: use a log that a match of "
            "kilt wrote, or add the lines to it that the player wrote into its own log"
        )
    found = replace(case, notes=notes)
    vars(found)["evaluator"] = case.evaluator  # already loaded
    return found


def _parts(
    case: LogCase, parts: Sequence[tuple[int, str]], processes: int
) -> Iterator[tuple[HandEstimates, list[str]]]:
    """Yield the results of the parts of a log in their order, computed in this process or in new ones."""
    case.evaluator.evaluate([])  # learns state values before other processes need them
    if processes < 2:
        yield from (_judge_part(case, *part) for part in parts)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (replace(case),)) as pool:
        try:
            yield from pool.map(_go_on, *zip(*parts, strict=True))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _judge_part(case: LogCase, first: int, text: str) -> tuple[HandEstimates, list[str]]:
    hands, faults = case.read(text, first)
    return case.evaluator.evaluate(hands), faults


_cases: list[LogCase] = []  # the request that a process of `estimate_by_name` works on


def _begin(case: LogCase) -> None:
    _cases[:] = [case]


def _go_on(first: int, text: str) -> tuple[HandEstimates, list[str]]:
    return _judge_part(_cases[0], first, text)


def _all(game: Holdem, estimators: Sequence[Estimator] | None, states: StateValues | None) -> Sequence[Estimator]:
    """Return the requested estimators, or all fast ones that the arguments suffice for."""
    return estimators or [
        row
        for row in ESTIMATORS.values()
        if (states or row.value != AIVAT) and not (row.slow and has_many_boards(game.rules))
    ]


def _summary(row: Estimator, won: FloatArray, weight: FloatArray, missing: float, *, pairs: bool) -> LogEstimate:
    """Return the result of one estimator, given the values of all hands in mbb.

    With `pairs`, the two hands of a pair are one observation.
    """
    units, heavy = (x.reshape(-1, 2).mean(axis=1) if pairs else x for x in (won, weight))
    square = float(weight @ weight)
    return LogEstimate(
        row,
        estimate_mean(units),
        sqrt(float(won.var(ddof=1))) if len(won) > 1 else float("inf"),
        float(weight.sum()) ** 2 / square if square else 0.0,
        estimate_mean(heavy),
        missing,
        len(won),
    )
