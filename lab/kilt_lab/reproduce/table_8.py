"""[Johanson16 table 8.2], simulated: 500-deal duplicate matches of a portfolio, judged by money and by estimators.

The paper's matches were between Polaris, a portfolio of five strategies, and experts, whose logs nobody else has. Here
the portfolio has the agents of tables 7.1 to 7.4 (see `table_7`), and the agent in the place of PsOpti4 sits in the
experts' chairs. A match is 500 deals, each played at two tables with the players swapped, by a copy of the portfolio at
each. The first row of each pair has a match won or lost by more than 25 big blinds, as in the thesis; the mean score of
both tables is taken for that, so that it is 50 mbb/h. The second, `significant`, has one won or lost whose score is
above or below 0 by a one-sided 95% test, however small [Johanson16 §8.2]. A row is matches won less matches lost, the
mean over runs with agents and deals of their own. The component that played each hand is known, so that each hand is
judged on policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from kilt import artifact
from kilt.arrays import FloatArray
from kilt.evaluate.estimators import Estimator, estimator_named
from kilt.evaluate.flops import Watcher
from kilt.evaluate.log_estimates import LogJudge
from kilt.evaluate.portfolio import Portfolio
from kilt.evaluate.stats import WIDTH, Estimate, estimate, student_width
from kilt.games.holdem import Holdem
from kilt.jit import cores
from kilt.play.dealer import Hand
from kilt.play.match import play_match
from kilt.players.agents import PORTFOLIO, load_agent
from kilt_lab.reproduce import table_7
from kilt_lab.reproduce.claims import Claim, Interval, Row, Rows, Slack
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs

DEALS, MATCHES, MARGIN = 500, 6, 50.0  # deals of a match, matches of a run, mbb/h by which one is won
ONE_SIDED = NormalDist().inv_cdf(0.95) / WIDTH  # of a 95% interval's half-width
PAPER = {  # of table 8.2: matches won less lost, all and significant ones
    "basic": (1, 0),
    "bc-divat": (2, 0),
    "all-cards+early-folds+bc-divat": (3, 3),
}
SIGNIFICANT = " significant"


def judged(game: Holdem, portfolio: Portfolio, hands: Sequence[Hand], estimators: Sequence[Estimator]) -> FloatArray:
    """What estimators make of a portfolio's hands, each by the strategy of the component that has played it.

    Parameters
    ----------
    game : Holdem
        What was played.
    portfolio : Portfolio
        Who; its notes in the hands say which component it was.
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
        found = LogJudge(game, portfolio.name, agent, agent, estimators).judge(some)
        values[:, [hand.number for hand in found.kept]] = found.found[0]
    return values


def outcome(won: Estimate) -> tuple[int, int]:
    """1 for a match that is won, −1 for one that is lost, else 0: by `MARGIN`, and by a one-sided 95% test against 0.

    >>> outcome(Estimate(60.0, 200.0)), outcome(Estimate(-60.0, 60.0)), outcome(Estimate(30.0, 20.0))
    ((1, 0), (-1, -1), (0, 1))
    """
    by_margin, by_test = (int(won.mean > bound) - int(won.mean < -bound) for bound in (MARGIN, ONE_SIDED * won.margin))
    return by_margin, by_test


class _Matches(NamedTuple):
    """The matches of a run."""

    rates: list[list[Estimate]]  # [match][estimator] what the portfolio wins, in mbb/h
    chosen: list[dict[str, int]]  # [match] how often each of its agents played
    seconds: float  # of solving


def _matches(asked: Request, seed: int, watcher: Watcher) -> _Matches:
    """The matches of a run: none where the user wishes to stop."""
    out, threads = asked.out or Path(table_7.FOLDER), asked.threads or cores()
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
    minutes = table_7.MINUTES if asked.minutes is None else asked.minutes
    made = table_7.styled_agents(asked.game or table_7.GAME, out, minutes, threads, watcher, seed)
    if made is None:
        return _Matches([], [], 0.0)
    game, agents = made
    portfolio = load_agent(PORTFOLIO + ",".join(str(agents[name].folder) for name in table_7.AGENTS))
    opponent = load_agent(str(agents[table_7.OPPONENT].folder))
    assert isinstance(portfolio, Portfolio)
    estimators = [estimator_named(name) for name in PAPER]
    matches = max(2, round(MATCHES * min(1.0, minutes / table_7.MINUTES)))

    def played(match: int) -> tuple[list[Estimate], dict[str, int]]:
        watcher.say(f"run {seed + 1}, match {match + 1} of {matches}: {DEALS} deals, at two tables")
        hands: list[Hand] = []
        play_match(
            game,
            (portfolio, opponent),
            2 * DEALS,
            seed=MATCHES * seed + match,
            sink=hands.append,
            tick=lambda played: watcher.show("hands", played / (2 * DEALS), None),
            stop=watcher.stopped,
        )
        chosen = Counter(Path(note).name for hand in hands for note in hand.notes if note)
        if watcher.stopped():
            return [], chosen
        deals = judged(game, portfolio, hands, estimators).reshape(len(estimators), -1, 2).mean(axis=2)
        return [estimate(row * 1000 / game.rules.big_blind) for row in deals], chosen

    each = whole_runs(matches, played, watcher)
    seconds = sum(agent.seconds for agent in agents.values())
    return _Matches([rates for rates, _ in each], [dict(times) for _, times in each], seconds)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    runs = table_7.RUNS if asked.runs is None else asked.runs
    each = whole_runs(runs, lambda seed: _matches(asked, seed, watcher), watcher)
    found = []
    for row in (asked.only or TABLE.rows) if each else ():
        significant, name = row.endswith(SIGNIFICANT), row.removesuffix(SIGNIFICANT)
        place = list(PAPER).index(name)
        won = [[outcome(rates[place])[significant] for rates in run.rates] for run in each]
        more: dict[str, Any] = {"matches": won, "chosen": [run.chosen for run in each]}
        more |= {
            "mbb_per_hand": [[rates[place].mean for rates in run.rates] for run in each],
            "margins": [[rates[place].margin for rates in run.rates] for run in each],
        }
        seconds = sum(run.seconds for run in each)
        found.append(Row.of_runs(row, [sum(one) for one in won], "won − lost", seconds, more, PAPER[name][significant]))
    return ReproductionResult(TABLE.what, found)


def _decides_more(name: str, than: str) -> Slack:
    """An estimator finds more matches of a run significant than another one, whoever wins them.

    Counts of a few runs may agree by chance, so that they are taken to deviate by one match at least.
    """

    def slack(rows: Rows) -> Interval | None:
        if not rows.keys() >= {name + SIGNIFICANT, than + SIGNIFICANT}:
            return None
        ours, theirs = ([sum(map(abs, run)) for run in rows[one + SIGNIFICANT].more["matches"]] for one in (name, than))
        ahead = Row.of_runs("", [one - other for one, other in zip(ours, theirs, strict=True)], "matches")
        margin = max(ahead.margin or 0.0, student_width(len(ahead.runs)))
        return Interval(ahead.ours - margin, ahead.ours + margin)

    return slack


TABLE = Reproduction(
    what="[Johanson16 table 8.2], simulated: 500-deal matches of a portfolio, won less lost",
    time=f"for each of {table_7.RUNS} runs {table_7.MINUTES:g} min of solving for each of 4 agents, one for their "
    f"cards, and half a minute for each of {MATCHES} matches",
    rows=tuple(name + kind for name in PAPER for kind in ("", SIGNIFICANT)),
    run=_reproduce,
    options=table_7.OPTIONS,
    hint="the paper's opponents were experts",
    claims=(
        Claim(
            "by all cards, early folds and BC-DIVAT more matches are significantly won or lost than by money",
            "[Johanson16 table 8.2]",
            _decides_more("all-cards+early-folds+bc-divat", "basic"),
        ),
    ),
    quick=table_7.QUICK,
    keeps=table_7.FOLDER,
)
