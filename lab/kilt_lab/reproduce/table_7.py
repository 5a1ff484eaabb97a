"""[Johanson16 tables 7.1 to 7.4] in limit hold'em: how far off estimators are, with our agents in the paper's places.

Three agents each play the same opponent, and each of the three is judged on the hands of each: on policy where it has
played them itself, off policy otherwise. The paper's S2298, CFR8 and Orange were solutions by CFR with abstractions of
several sizes, Orange of a game that pays winners more, and PsOpti4 an older, hand-made one. Ours are solutions by
external sampling with buckets of several sizes; those in the places of Orange and PsOpti4 were solved with tilted
payoffs (`kilt.games.tilt`). So the orders can be compared, not the figures.

A row has the standard deviation of one hand: the mean over runs, each of which trains, plays and deals with a seed of
its own, with the 95% interval over these. Beside it are the bias, the distance of the mean from what the judged agent
wins with all bets averaged over, and the root mean square error over 1,000 hands: √(bias² + deviation² / 1000).

With partial information the thesis finds biases of 47 ± 1 to 96 ± 12 on policy, from a million hands. Those of 10,000
hands have intervals as wide as that. On policy full information is unbiased, so that the bias is the mean difference of
the two on the same hands too, which varies less: claims about it are decided by that. Early folds are biased in the
thesis, which does not say why. Here they are not: a hand that ends with a fold is worth the same whatever the opponent
holds, so that partial information changes none of their values on policy, nor any of all cards.

Off policy without all cards, a hand weighs w = π^σ / π^σ̂, the ratio of what the judged strategy σ and the playing one
σ̂ do. Few hands weigh thousands, and most logs have none of these: the deviation of a log grows with its length, and one
hand makes most of it. It tells how long the log is, not how good the estimator. Rows named `limit` have what it tends
to, √(E_σ̂[w²v²] − mean²) for values v, from hands of the judged agent's own: E_σ̂[w²v²] = E_σ[w v²], and hands that
weigh much are w times as frequent there. That is rough too, but for a bound: E_σ[min(w, 1000) v²] is less, and its 95%
interval is narrow. The lower end of that is `at_least`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from math import inf, sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kilt import artifact
from kilt.abstraction.features import Deal
from kilt.arrays import FloatArray
from kilt.config import Config, SolverConfig
from kilt.evaluate.estimators import estimator_named, follow, hand_values
from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import SEED, AbstractStrategy, expected_winnings
from kilt.evaluate.stats import WIDTH, estimate
from kilt.evaluate.values import SeenHands, alike
from kilt.games.holdem import Holdem
from kilt.jit import cores
from kilt.play.acpc import log_line
from kilt.play.agent import known
from kilt.play.columns import readable_hands
from kilt.play.match import play_match
from kilt.players.agents import load_agent, load_holdem
from kilt_lab.reproduce.agents import solved_agent
from kilt_lab.reproduce.claims import Claim, Interval, Row, Rows, every, lower
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs

GAME, MINUTES, HANDS, DEALS = "holdem.limit.2p", 2.0, 10_000, 50_000
BRIEF = 1000  # hands: such logs are judged sooner than processes are started
PARTS = 20  # of a log, which processes judge one by one: hands of a part with the same betting are judged together
FOLDER = "kilt-table-7"
UNIT = "mb/hand"
RUNS = 3  # each with agents, matches and deals of its own
BIASED = 20.0  # mb/hand: what counts as a bias; the thesis prints 47 ± 1 and more as one, 5 ± 13 as none
OPTIONS = ("only", "game", "minutes", "threads", "runs", "out")
QUICK = Request(game="royal.limit.2p", minutes=0.03)


class Style(NamedTuple):
    """An agent: its cards, and the tilt of the payoffs that it was solved with."""

    cards: str
    tilt: tuple[float, ...] = ()


AGENTS = {
    "S2298": Style("IR-PHS-PHS 169-60-60-60"),
    "CFR8": Style("IR-PHS-PHS 169-8-8-8"),
    "Orange": Style("IR-PHS-PHS 169-20-20-20", (7, 0, 0, 7)),  # aggressive, the paper's tilt
}
OPPONENT, OPPONENT_STYLE = "PsOpti4", Style("IR-PHS-PHS 169-20-20-20", (0, 0, -25, 0))  # tight: folding costs less

Figures = tuple[float, float, float]  # bias, standard deviation, root mean square error

# Judged on hands of S2298, by estimator. A bias of 0 is so by definition in the paper.
PAPER_7_1: dict[str, dict[str, Figures]] = {
    "S2298": {
        "basic": (0, 5103, 161),
        "divat": (0, 1935, 61),
        "bc-divat": (0, 2891, 91),
        "early-folds": (0, 5126, 162),
        "all-cards": (0, 4213, 133),
        "all-cards+bc-divat": (0, 2146, 68),
        "all-cards+early-folds+bc-divat": (0, 1778, 56),
    },
    "CFR8": {
        "basic": (200, 62543, 1988),
        "divat": (62, 53033, 1678),
        "bc-divat": (84, 22303, 710),
        "early-folds": (123, 61481, 1948),
        "all-cards": (12, 8518, 270),
        "all-cards+bc-divat": (35, 3254, 109),
        "all-cards+early-folds+bc-divat": (2, 2514, 80),
    },
    "Orange": {
        "basic": (159, 20559, 669),
        "divat": (3, 11350, 359),
        "bc-divat": (103, 12862, 420),
        "early-folds": (82, 17923, 572),
        "all-cards": (7, 8591, 272),
        "all-cards+bc-divat": (8, 3154, 100),
        "all-cards+early-folds+bc-divat": (6, 2421, 77),
    },
}
PAPER_7_3: dict[str, dict[str, Figures]] = {
    "S2298": {
        "basic": (0, 5104, 161),
        "divat": (81, 2762, 119),
        "bc-divat": (95, 2759, 129),
        "early-folds": (47, 5065, 167),
        "all-cards": (5, 4218, 133),
        "all-cards+bc-divat": (96, 2650, 127),
    },
    "CFR8": {
        "basic": (202, 40903, 1309),
        "divat": (175, 23376, 760),
        "bc-divat": (183, 23402, 762),
        "early-folds": (181, 39877, 1274),
        "all-cards": (13, 7904, 250),
        "all-cards+bc-divat": (101, 4014, 162),
    },
    "Orange": {
        "basic": (204, 23314, 765),
        "divat": (218, 10029, 385),
        "bc-divat": (244, 10045, 401),
        "early-folds": (218, 22379, 741),
        "all-cards": (3, 8092, 256),
        "all-cards+bc-divat": (203, 3880, 237),
    },
}
# Least and largest standard deviations over all agents that have played, and all that are judged.
PAPER_7_2 = {
    "on": {
        "basic": (5102, 5385),
        "divat": (1935, 2011),
        "bc-divat": (2891, 2930),
        "all-cards+game-endings+bc-divat": (1701, 1778),
    },
    "off": {
        "basic": (20559, 244469),
        "divat": (11350, 138834),
        "bc-divat": (12862, 173715),
        "all-cards+game-endings+bc-divat": (1816, 2857),
    },
}
PAPER_7_4 = {
    "on": {"basic": (5104, 5391), "divat": (2762, 2876), "bc-divat": (2759, 2859), "all-cards+bc-divat": (2656, 2766)},
    "off": {
        "basic": (23314, 238874),
        "divat": (10029, 88791),
        "bc-divat": (10045, 99287),
        "all-cards+bc-divat": (3055, 6785),
    },
}
ESTIMATORS = [*PAPER_7_1["S2298"], "all-cards+game-endings+bc-divat"]
LIMITS = {"basic limit": "basic"}  # rows, and the estimators that they are of
CAP = 1000.0  # of weights, for a lower bound of such a limit


class StyledAgent(NamedTuple):
    """An agent that is ready: where it is, its strategy in the abstract game, and the seconds it was solved for."""

    folder: Path
    strategy: AbstractStrategy
    seconds: float


def run_folder(out: Path, seed: int) -> Path:
    """The folder of the agents and logs of a run, by its seed: that of the first run is `out` itself."""
    return out / f"run-{seed}" if seed else out


def styled_agents(
    game: str, out: Path, minutes: float, threads: int, watcher: Watcher, seed: int = 0
) -> tuple[Holdem, dict[str, StyledAgent]] | None:
    """The game, and all agents and their opponent by name; None where the user wishes to stop.

    Before the flop agents tell all hands apart, however many the deck of the game has.

    Parameters
    ----------
    game : str
        A name or a file.
    out : Path
        Agents are kept in folders of `run_folder(out, seed)`.
    minutes : float
        For which each agent is solved.
    threads : int
        That solve it.
    watcher : Watcher
        Is told how far the work is, and may stop it.
    seed : int
        Of the solvers, and the number of the run.
    """
    found: dict[str, StyledAgent] = {}
    hands = len(Deal.of(load_holdem(game)).holdings((0,)))
    for name, style in {**AGENTS, OPPONENT: OPPONENT_STYLE}.items():
        cards, folder = style.cards.replace(" 169-", f" {hands}-"), run_folder(out, seed) / name
        solver = SolverConfig(minutes=minutes, threads=threads, seed=seed)
        solved = solved_agent(Config(game, (cards,), tilt=style.tilt, solver=solver), folder, watcher)
        if solved is None:
            return None
        real = solved.problem.real.abstract
        found[name] = StyledAgent(solved.folder, AbstractStrategy(real, solved.strategy), solved.seconds)
    return real.game, found


class LogTask(NamedTuple):
    """The hands of one agent, on which others are judged by estimators; agents by their folders."""

    game: Holdem
    played: str
    judged: tuple[str, ...]
    estimators: tuple[str, ...]


_loaded = cache(load_agent)


def judge_hands(task: LogTask, text: str) -> FloatArray:
    """What all estimators make of some hands, for all judged agents, with full and with partial information.

    Roll-outs and the strategies' probabilities are worked out once for all of them.

    Parameters
    ----------
    task : LogTask
        Who has played, and who is judged.
    text : str
        Lines of a log.

    Returns
    -------
    ndarray, shape (2, judged, 2, estimators, hands)
        With full and partial information: values in chips, and weights.
    """
    hands, _ = readable_hands(text, task.game)
    rows = [estimator_named(name) for name in task.estimators]
    found = np.zeros((2, len(task.judged), 2, len(rows), len(hands)))
    played = known(_loaded(task.played))
    seats = [hand.players.index(task.played) for hand in hands]
    for numbers in alike(hands, seats):
        some, seat = [hands[number] for number in numbers], seats[numbers[0]]
        whole = SeenHands(task.game, some, seat)
        hidden = SeenHands(task.game, some, seat, partial=True) if whole.position.folded is not None else whole
        for place, name in enumerate(task.judged):
            line = follow(whole, played, known(_loaded(name)))
            for part, seen in enumerate((whole, hidden)):
                found[part, place][:, :, numbers] = hand_values(seen, line, rows)
    return found


class Cases:
    """What estimators make of the agents of a run on each other's hands; each log is judged once, figures are kept."""

    def __init__(
        self,
        game: Holdem,
        agents: dict[str, StyledAgent],
        hands: int,
        deals: int,  # from which it is worked out what agents win
        out: Path,
        threads: int,
        watcher: Watcher,
        seed: int = 0,  # of matches and deals
    ) -> None:
        self.game, self.agents, self.hands, self.deals, self.seed = game, agents, hands, deals, seed
        self.out, self.threads, self.watcher = out, threads, watcher
        self._truths: dict[str, float] = {}

    def figures(self, played: str, judged: str, *, partial: bool) -> dict[str, dict[str, Any]]:
        """By estimator: mean and margin in mbb/h, deviation of a hand in mbb, effective hands, bias and error.

        With partial information, `hidden` is the mean difference to full information on the same hands.
        """
        file, part = self.out / f"{played}-{self.hands}.json", "partial" if partial else "full"
        kept: dict[str, dict[str, dict[str, Any]]] = json.loads(file.read_text())[judged] if file.exists() else {}
        wanted = {*ESTIMATORS, *(LIMITS if judged != played else ())}
        partly = kept.get("partial", {}).get(ESTIMATORS[0], {})
        if not kept or not wanted <= {*kept[part]} or "hidden" not in partly:  # an older version has kept fewer
            artifact.write_text(file, json.dumps(self._judge(played), indent=1))
            kept = json.loads(file.read_text())[judged]
        return kept[part]

    def _judge(self, played: str) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
        """By judged agent, information and estimator: see `figures`."""
        found = self._values(played, tuple(AGENTS), tuple(ESTIMATORS))
        said: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
        for place, judged in enumerate(AGENTS):
            truth = self._truth(judged)
            limits: dict[str, dict[str, float]] = {}  # off policy, where values are money, whatever is seen
            if judged != played:
                own = self._values(judged, (played,), tuple(LIMITS.values()))[0, 0]
                limits = {name: _limit(*own[:, row]) for row, name in enumerate(LIMITS)}
            said[judged] = {
                seen: {
                    name: _summary(values, weights, truth)
                    for name, values, weights in zip(ESTIMATORS, *found[part, place], strict=True)
                }
                | limits
                for part, seen in enumerate(("full", "partial"))
            }
            for name, full, partial in zip(ESTIMATORS, *found[:, place, 0], strict=True):
                said[judged]["partial"][name]["hidden"] = float((partial - full).mean())
        return said

    def _values(self, played: str, judged: tuple[str, ...], estimators: tuple[str, ...]) -> FloatArray:
        """What `judge_hands` finds in the log of an agent, values in mbb."""
        lines = self._log(played).splitlines()
        self.watcher.say(f"judging {', '.join(judged)} on {len(lines):,} hands of {played}")
        folders = {name: str(agent.folder) for name, agent in self.agents.items()}
        task = LogTask(self.game, folders[played], tuple(folders[name] for name in judged), estimators)
        size = -(-len(lines) // PARTS)
        parts = ["\n".join(lines[first : first + size]) for first in range(0, len(lines), size)]
        done = []
        for one in _on_processes(task, parts, self.threads if len(lines) > BRIEF else 1):
            done.append(one)
            self.watcher.show(f"hands of {played}", len(done) / len(parts), None)
        found = np.concatenate(done, axis=-1)
        found[:, :, 0] *= 1000 / self.game.rules.big_blind
        return found

    def _truth(self, judged: str) -> float:
        """What an agent wins from the opponent in mbb/h, with all bets averaged over."""
        if judged not in self._truths:
            both = self.agents[judged].strategy, self.agents[OPPONENT].strategy
            won = expected_winnings(*both, self.deals, SEED + self.seed, threads=self.threads)
            self._truths[judged] = float(won.mean()) * 1000 / self.game.rules.big_blind
        return self._truths[judged]

    def _log(self, played: str) -> str:
        """The log of an agent's match with the opponent; played once."""
        file = self.out / f"{played}-{self.hands}.log"
        if not file.exists():
            lines: list[str] = []
            specs = str(self.agents[played].folder), str(self.agents[OPPONENT].folder)
            play_match(
                self.game,
                specs,
                self.hands,
                self.seed,
                duplicate=False,
                load=load_agent,
                sink=lambda hand: lines.append(log_line(hand)),
            )
            artifact.write_text(file, "\n".join(lines) + "\n")
        return file.read_text()


def _summary(values: FloatArray, weights: FloatArray, truth: float) -> dict[str, float]:
    """What is kept of an estimator's values, in mbb."""
    mean, margin = estimate(values)
    bias, deviation = abs(mean - truth), float(values.std(ddof=1))
    return {
        "mean": mean,
        "margin": margin,
        "deviation": deviation,
        "deviation_margin": _margin_of_deviation(values),
        "effective_hands": float(weights.sum() ** 2 / (weights @ weights)),
        "largest_share": float((values**2).max() / max(float(values @ values), 1e-300)),
        "truth": truth,
        "bias": bias,
        "rmse": sqrt(bias**2 + deviation**2 / 1000),
    }


def _margin_of_deviation(values: FloatArray) -> float:
    """Half of the 95% interval of a standard deviation, by the fourth moment: too short where tails are heavy."""
    squares = (values - values.mean()) ** 2
    return float(WIDTH * squares.std() / (2 * sqrt(squares.mean() * len(values)))) if squares.any() else 0.0


def _limit(values: FloatArray, weights: FloatArray) -> dict[str, float]:
    """What the deviation of an estimator tends to when an agent is judged on hands of another one.

    Parameters
    ----------
    values, weights : ndarray of float64, shape (hands,)
        What it makes of the *other* one on hands of the judged agent: values in mbb, and weights 1 / w.

    Returns
    -------
    dict
        ``deviation`` in mbb; ``largest_share``, the share of the largest hand in the sum that it comes from; and
        ``at_least``, a lower bound of the deviation with a confidence of 97.5%, from weights of `CAP` at most.
    """
    seen = weights > 0  # the other one may do so at all
    worth = values[seen] / weights[seen]
    squares, mean = worth**2 / weights[seen], float(worth.sum()) / len(values)
    second = float(squares.sum()) / len(values)
    capped = np.zeros(len(values))
    capped[seen] = worth**2 * np.minimum(1 / weights[seen], CAP)
    least, margin = estimate(capped)
    return {
        "deviation": sqrt(max(second - mean**2, 0.0)),
        "at_least": sqrt(max(least - margin - mean**2, 0.0)),
        "largest_share": float(squares.max(initial=0.0) / max(second * len(values), 1e-300)),
    }


def _on_processes(task: LogTask, parts: list[str], processes: int) -> Iterator[FloatArray]:
    """The parts of a log, judged in order: here, or on processes that are started for it."""
    if processes < 2:
        yield from (judge_hands(task, part) for part in parts)
        return
    yield judge_hands(task, parts[0])  # what it compiles is stored before others look for it
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        try:
            yield from pool.map(judge_hands, [task] * (len(parts) - 1), parts[1:])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_TIME = (
    f"for each of {RUNS} runs {MINUTES:g} min of solving for each of 4 agents, one for their cards, some for each log "
    "that is judged"
)


def run_cases(asked: Request, seed: int, watcher: Watcher) -> Cases | None:
    """The agents of a run, and what estimators make of them; None where the user wishes to stop."""
    out, threads = run_folder(asked.out or Path(FOLDER), seed), asked.threads or cores()
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
    minutes = MINUTES if asked.minutes is None else asked.minutes
    made = styled_agents(asked.game or GAME, asked.out or Path(FOLDER), minutes, threads, watcher, seed)
    share = min(1.0, minutes / MINUTES)
    hands, deals = (max(2, int(number * share)) for number in (HANDS, DEALS))
    return made and Cases(*made, hands, deals, out, threads, watcher, seed)


def _over_runs(
    asked: Request, watcher: Watcher, rows: Sequence[str], pick: Callable[[Cases, str], Any]
) -> tuple[dict[str, list[Any]], float]:
    """What each run has for each row, and the seconds for which an agent was solved in all of them."""
    seconds = 0.0

    def run(seed: int) -> dict[str, Any]:
        nonlocal seconds
        cases, found = run_cases(asked, seed, watcher), dict[str, Any]()
        for row in rows if cases else ():
            if cases is None or watcher.stopped():
                break
            found[row] = pick(cases, row)
        seconds += cases.agents[OPPONENT].seconds if cases else 0.0
        return found

    each = whole_runs(RUNS if asked.runs is None else asked.runs, run, watcher)
    return {row: [one[row] for one in each] for row in rows if each}, seconds


def _mean(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean over runs of all figures that a case has."""
    return {key: float(np.mean([one[key] for one in runs])) for key in runs[0]}


def _by_agent(
    what: str, paper: dict[str, dict[str, Figures]], claims: tuple[Claim, ...], *, partial: bool
) -> Reproduction:
    """A table of all estimators, for each agent judged on hands of the first."""

    def pick(cases: Cases, row: str) -> dict[str, Any]:
        judged, _, name = row.partition(" ")
        return cases.figures(first, judged, partial=partial)[name]

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        found, seconds = _over_runs(asked, watcher, asked.only or table.rows, pick)
        rows = []
        for row, runs in found.items():
            judged, _, name = row.partition(" ")
            bias, deviation, rmse = paper[judged].get(name, (None, None, None))
            more: dict[str, Any] = _mean(runs)
            if name in paper[judged]:
                more |= {"rmse": sqrt(more["bias"] ** 2 + more["deviation"] ** 2 / 1000)}
                more |= {"biases": [one["mean"] - one["truth"] for one in runs]}
                more |= {"hidden_biases": [one["hidden"] for one in runs]} if partial else {}
                more |= {"paper_bias": bias, "paper_rmse": rmse}
            deviation = deviation if asked.game in (None, GAME) else None  # the paper has no other game
            rows.append(Row.of_runs(row, [one["deviation"] for one in runs], UNIT, seconds, more, deviation))
        return ReproductionResult(what, rows)

    first = next(iter(AGENTS))
    names = {judged: [*those, *(LIMITS if judged != first else ())] for judged, those in paper.items()}

    table = Reproduction(
        what=what,
        time=_TIME,
        rows=tuple(f"{judged} {name}" for judged, those in names.items() for name in those),
        run=reproduce,
        options=OPTIONS,
        hint="the paper's agents were others; `limit` is what deviations off policy tend to with more hands",
        claims=claims,
        quick=QUICK,
        keeps=FOLDER,
    )
    return table


def _over_agents(
    what: str, paper: dict[str, dict[str, tuple[int, int]]], claims: tuple[Claim, ...], *, partial: bool
) -> Reproduction:
    """A table of the largest deviations over all agents, on and off policy."""

    def pick(cases: Cases, row: str) -> list[dict[str, Any]]:
        policy, _, name = row.partition(" ")
        pairs = [(played, judged) for played in AGENTS for judged in AGENTS if (played == judged) == (policy == "on")]
        return [cases.figures(*pair, partial=partial)[name] for pair in pairs]

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        found, seconds = _over_runs(asked, watcher, asked.only or table.rows, pick)
        rows = []
        for row, runs in found.items():
            policy, _, name = row.partition(" ")
            least, most = ([end(one["deviation"] for one in pairs) for pairs in runs] for end in (min, max))
            of_paper = paper[policy].get(name, (None, None))
            more: dict[str, Any] = {"least": float(np.mean(least))}
            more |= {"paper_least": of_paper[0]} if name in paper[policy] else {}
            pairs = [_mean(those) for those in zip(*runs, strict=True)]
            lists = {"deviation": "deviations", "bias": "biases", "rmse": "rmses", "largest_share": "largest_shares"}
            lists["at_least"] = "at_least"
            more |= {many: [one[key] for one in pairs] for key, many in lists.items() if key in pairs[0]}
            if name in LIMITS:
                more |= {"least_bounds": [min(one["at_least"] for one in those) for those in runs]}
            printed = of_paper[1] if asked.game in (None, GAME) else None
            rows.append(Row.of_runs(row, most, UNIT, seconds, more, printed))
        return ReproductionResult(what, rows)

    table = Reproduction(
        what=what,
        time=_TIME,
        rows=(
            *(f"{policy} {name}" for policy, those in paper.items() for name in those),
            *(f"off {it}" for it in LIMITS),
        ),
        run=reproduce,
        options=OPTIONS,
        hint="the largest of three, or of six off policy; `least` in --json is the least; `limit` as in table-7.1",
        claims=claims,
        quick=QUICK,
        keeps=FOLDER,
    )
    return table


def _falling(*names: str) -> Claim:
    """Deviations on policy come in some order, the largest first."""
    return Claim(
        f"on policy a hand deviates ever less under {', '.join(names)}",
        "[Johanson16 table 7.1]" if "all-cards+early-folds+bc-divat" in names else "[Johanson16 table 7.3]",
        every(*(lower(f"S2298 {least}", f"S2298 {more}") for more, least in pairwise(names))),
    )


def _bounded(says: str, table: str, row: str, times: float) -> Claim:
    """Off policy money deviates more than some times as much as a row, in the limit of long logs and for all agents."""

    def slack(rows: Rows) -> Interval | None:
        if not rows.keys() >= {"off basic limit", row}:
            return None
        bounds = zip(rows["off basic limit"].more["least_bounds"], rows[row].runs, strict=True)
        ahead = Row.of_runs("", [bound - times * deviation for bound, deviation in bounds], UNIT)
        return Interval(ahead.ours - (ahead.margin or 0.0), inf)  # a bound that is too low refutes nothing

    return Claim(says, f"[Johanson16 {table}]", slack)


def _hidden_bias(estimator: str, thesis: str, *, biased: bool) -> Claim:
    """Whether partial information biases an estimator on policy: by more than `BIASED` to either side, or less."""

    def slack(rows: Rows) -> Interval | None:
        if (row := rows.get(f"S2298 {estimator}")) is None:
            return None
        off = Row.of_runs("", row.more["hidden_biases"], UNIT)
        mean, margin = abs(off.ours), off.margin or 0.0
        least, most = max(mean - margin, 0.0), mean + margin
        return Interval(least - BIASED, most - BIASED) if biased else Interval(BIASED - most, BIASED - least)

    says = f"on policy {estimator} is {'' if biased else 'not '}biased by partial information, {thesis} there: "
    bound = f"by {'more' if biased else 'less'} than {BIASED:g} mb/hand here, a margin that is ours"
    return Claim(says + bound, "[Johanson16 table 7.3]", slack)


def _off_policy(best: str, table: str) -> tuple[Claim, ...]:
    """What a table over all agents says of money off policy."""
    return (
        _bounded(
            "off policy money deviates impractically much: 4 times as much as on policy or more, a factor that is "
            "ours, for all agents",
            table,
            "on basic",
            4,
        ),
        _bounded(
            f"off policy {best} deviates dramatically less than money: less than half as much, a factor that is "
            "ours, for all agents",
            table,
            f"off {best}",
            2,
        ),
    )


TABLE_7_1 = _by_agent(
    "[Johanson16 table 7.1]: deviation of a hand under estimators, full information",
    PAPER_7_1,
    (
        _falling("basic", "all-cards", "bc-divat", "all-cards+bc-divat", "all-cards+early-folds+bc-divat"),
        Claim(
            "on policy DIVAT deviates less than BC-DIVAT",
            "[Johanson16 table 7.1]",
            lower("S2298 divat", "S2298 bc-divat"),
        ),
    ),
    partial=False,
)
TABLE_7_2 = _over_agents(
    "[Johanson16 table 7.2]: the same over all agents",
    PAPER_7_2,
    _off_policy("all-cards+game-endings+bc-divat", "table 7.2"),
    partial=False,
)
TABLE_7_3 = _by_agent(
    "[Johanson16 table 7.3]: deviation of a hand under estimators, partial information",
    PAPER_7_3,
    (
        _falling("basic", "all-cards", "bc-divat", "all-cards+bc-divat"),
        _hidden_bias("divat", "81 ± 9", biased=True),
        _hidden_bias("bc-divat", "95 ± 9", biased=True),
        _hidden_bias("early-folds", "47 ± 1", biased=True),
        _hidden_bias("all-cards+bc-divat", "96 ± 12", biased=True),
        _hidden_bias("all-cards", "5 ± 13", biased=False),
    ),
    partial=True,
)
TABLE_7_4 = _over_agents(
    "[Johanson16 table 7.4]: the same over all agents",
    PAPER_7_4,
    _off_policy("all-cards+bc-divat", "table 7.4"),
    partial=True,
)
