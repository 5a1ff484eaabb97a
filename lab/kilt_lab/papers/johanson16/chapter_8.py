"""[Johanson16 table 8.2], simulated: duplicate matches of a portfolio, evaluated by money and by estimators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from kilt.arrays import FloatArray
from kilt.evaluate.estimators import Estimator, estimator_named
from kilt.evaluate.log_estimates import LogEvaluator
from kilt.evaluate.portfolio import Portfolio
from kilt.evaluate.stats import WIDTH, Estimate, estimate_mean, student_width
from kilt.games.holdem import Holdem
from kilt.play.dealer import Hand
from kilt.play.match import play_match
from kilt.players.agents import PORTFOLIO, load_agent
from kilt_lab.cells import Cell, Measured, RowSpec
from kilt_lab.claims import Interval, Row, Rows, Slack
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.papers.johanson16 import chapter_7
from kilt_lab.pieces import logs
from kilt_lab.pieces.agents import share_of

DEALS, MATCHES, MARGIN = 500, 6, 50.0  # deals of a match, matches of a run, mbb/h by which one is won
ONE_SIDED = NormalDist().inv_cdf(0.95) / WIDTH  # of a 95% interval's half-width
PAPER = {  # of table 8.2: matches won less lost, all and significant ones
    "basic": (1, 0),
    "bc-divat": (2, 0),
    "all-cards+early-folds+bc-divat": (3, 3),
}
SIGNIFICANT = " significant"


def judged(game: Holdem, portfolio: Portfolio, hands: Sequence[Hand], estimators: Sequence[Estimator]) -> FloatArray:
    """Return the estimates of a portfolio's hands, each with the strategy of the component that played it.

    Parameters
    ----------
    game : Holdem
        The game of the hands.
    portfolio : Portfolio
        The agent to evaluate. Its notes in the hands name the component that played.
    hands : sequence of Hand
        In order, numbered from 0.
    estimators : sequence of Estimator
        Rows of `ESTIMATORS`.

    Returns
    -------
    ndarray, shape (estimators, hands)
        Chips.
    """
    values = np.zeros((len(estimators), len(hands)))
    chosen = [hand.notes[hand.players.index(portfolio.name)] for hand in hands]
    for agent in portfolio.components:
        some = [hand for hand, name in zip(hands, chosen, strict=True) if name == agent.name]
        found = LogEvaluator(game, portfolio.name, agent, agent, estimators).evaluate(some)
        values[:, [hand.number for hand in found.kept]] = found.found[0]
    return values


def outcome(won: Estimate) -> tuple[int, int]:
    """Return 1 for a win, −1 for a loss, else 0: by `MARGIN`, and by a one-sided 95% test against 0.

    >>> outcome(Estimate(60.0, 200.0)), outcome(Estimate(-60.0, 60.0)), outcome(Estimate(30.0, 20.0))
    ((1, 0), (-1, -1), (0, 1))
    """
    by_margin, by_test = (int(won.mean > bound) - int(won.mean < -bound) for bound in (MARGIN, ONE_SIDED * won.margin))
    return by_margin, by_test


def play(match: int, seed: int, lab: Lab) -> tuple[list[Estimate], dict[str, int]]:
    """Play a match of a run. Return winnings by estimator in mbb/h, and the number of hands by component."""
    game, agents = lab.shared("agents", lambda: logs.styled_agents(lab, seed))
    portfolio = load_agent(PORTFOLIO + ",".join(str(agents[name].folder) for name in logs.AGENTS))
    opponent = load_agent(str(agents[logs.OPPONENT].folder))
    assert isinstance(portfolio, Portfolio)
    hands: list[Hand] = []
    play_match(
        game,
        (portfolio, opponent),
        2 * DEALS,
        seed=MATCHES * seed + match,
        sink=hands.append,
        tick=lambda played: lab.show("hands", played / (2 * DEALS)),
        stop=lab.stopped,
    )
    lab.check()
    chosen = Counter(Path(note).name for hand in hands for note in hand.notes if note)
    estimators = [estimator_named(name) for name in PAPER]
    deals = judged(game, portfolio, hands, estimators).reshape(len(estimators), -1, 2).mean(axis=2)
    return [estimate_mean(row * 1000 / game.rules.big_blind) for row in deals], dict(chosen)


@dataclass(frozen=True)
class Portfolios(Experiment):
    """Count the matches that a portfolio wins minus those that it loses, by estimator.

    How often can each estimator tell who wins a match? The thesis evaluates matches between human experts and Polaris,
    an agent that chooses among a *portfolio* of five strategies. The logs of these matches are not published, so this
    experiment plays such matches between agents of kilt.

    Agents of kilt stand for the players of the thesis (see ``pieces.logs``). One of them takes the place of the human
    experts. The others are the strategies of the portfolio, an agent that chooses among them.

    A match has 500 deals. Each deal is played at two tables with the players swapped, and one copy of the portfolio
    plays at each table. The experiment knows which strategy played each hand, so it evaluates each strategy on its own
    hands (on policy).

    Each estimator has two rows. They count matches won minus matches lost, as means over runs with their own agents and
    deals.

    In the first row of an estimator, a match counts if it is won or lost by more than 25 big blinds, as in the thesis.
    For the mean score of both tables, this is 50 mbb/h. In the row ``significant``, a match counts if a one-sided 95%
    test separates its score from 0, however small the score is [Johanson16 §8.2].
    """

    @property
    def folder(self) -> str:
        """The folder of the agents of tables 7.1 to 7.4."""
        return chapter_7.FOLDER

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Play the matches of a run."""
        matches, played = max(2, round(MATCHES * share_of(lab))), list[tuple[list[Estimate], dict[str, int]]]()
        for match in range(matches):
            lab.say(f"run {seed + 1}, match {match + 1} of {matches}: {DEALS} deals, at two tables")
            played.append(play(match, seed, lab))
        values, more = dict[str, float](), dict[str, Any]()
        for place, name in enumerate(PAPER):
            rates = [one[place] for one, _ in played]
            for significant, kind in enumerate(("", SIGNIFICANT)):
                won = [outcome(rate)[significant] for rate in rates]
                values[name + kind] = sum(won)
                more[name + kind] = {
                    "matches": won,
                    "chosen": [chosen for _, chosen in played],
                    "mbb_per_hand": [rate.mean for rate in rates],
                    "margins": [rate.margin for rate in rates],
                }
        return Cell(values, more=more)

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return the matches of all runs."""
        return {key: [cell.more[spec.name][key] for cell in cells] for key in cells[0].more[spec.name]}


def _decides_more(name: str, than: str) -> Slack:
    """Return the claim that an estimator finds more matches of a run significant than another one, won or lost.

    Counts of a few runs may agree by chance, so the margin is that of a standard deviation of at least one match.
    """

    def slack(rows: Rows) -> Interval | None:
        if not rows.keys() >= {name + SIGNIFICANT, than + SIGNIFICANT}:
            return None
        ours, theirs = ([sum(map(abs, run)) for run in rows[one + SIGNIFICANT].more["matches"]] for one in (name, than))
        ahead = Row.of_runs("", [one - other for one, other in zip(ours, theirs, strict=True)], "matches")
        margin = max(ahead.margin or 0.0, student_width(len(ahead.runs)))
        return Interval(ahead.ours - margin, ahead.ours + margin)

    return slack


TABLE_8 = Portfolios(
    "table-8",
    "[Johanson16 table 8.2]",
    "Matches of 500 deals by a portfolio: matches won minus matches lost, by estimator",
    rows=tuple(
        RowSpec(name + kind, "won − lost", PAPER[name][place], cases=("matches",))
        for name in PAPER
        for place, kind in enumerate(("", SIGNIFICANT))
    ),
    claims={
        "all-cards+early-folds+bc-divat finds more matches significantly won or lost than money does": _decides_more(
            "all-cards+early-folds+bc-divat", "basic"
        ),
    },
    hint="the paper's opponents were human experts",
    time=f"plus a minute for the cards of each agent, and half a minute for each of {MATCHES} matches",
    solves=chapter_7.AGENTS,
    defaults=chapter_7.DEFAULTS,
    quick=chapter_7.QUICK,
    settings=chapter_7.SETTINGS,
)
