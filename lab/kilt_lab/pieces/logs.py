"""Agents that replace those of [Johanson16 tables 7.1 to 7.4 and 8.2], their logs, and estimates from these logs.

Each log is evaluated once, and the results are kept next to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kilt import artifact
from kilt.abstraction.features import Deal
from kilt.arrays import FloatArray
from kilt.config import Config
from kilt.evaluate.estimators import estimator_named, follow_line, hand_values
from kilt.evaluate.flops import ProgressMonitor
from kilt.evaluate.head_to_head import SEED, AbstractStrategy, expected_winnings
from kilt.evaluate.stats import WIDTH, estimate_mean
from kilt.evaluate.values import LoggedHands, group_by_betting
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.play.acpc import format_log_line
from kilt.play.agent import require_policy
from kilt.play.columns import readable_hands
from kilt.play.match import play_match
from kilt.players.agents import load_agent
from kilt_lab.experiment import Lab
from kilt_lab.pieces.agents import fitted, solved_agent, solver_config

BRIEF = 1000  # hands: shorter logs are evaluated without other processes
PARTS = 20  # of a log, for worker processes; hands of a part with the same betting are evaluated together
ESTIMATORS = [
    "basic",
    "divat",
    "bc-divat",
    "early-folds",
    "all-cards",
    "all-cards+bc-divat",
    "all-cards+early-folds+bc-divat",
    "all-cards+game-endings+bc-divat",
]
LIMITS = {"basic limit": "basic"}  # rows, and the estimators that they are of
CAP = 1000.0  # of weights, for a lower bound of such a limit


class Style(NamedTuple):
    """Parameters of an agent: its cards, and the tilt of the payoffs for which it is solved."""

    cards: str
    tilt: tuple[float, ...] = ()


AGENTS = {
    "S2298": Style("IR-PHS-PHS 169-60-60-60"),
    "CFR8": Style("IR-PHS-PHS 169-8-8-8"),
    "Orange": Style("IR-PHS-PHS 169-20-20-20", (7, 0, 0, 7)),  # aggressive, the paper's tilt
}
OPPONENT, OPPONENT_STYLE = "PsOpti4", Style("IR-PHS-PHS 169-20-20-20", (0, 0, -25, 0))  # tight: folding costs less


class StyledAgent(NamedTuple):
    """A solved agent: its folder, its strategy in the abstract game, and the seconds of solving."""

    folder: Path
    strategy: AbstractStrategy
    seconds: float


def run_folder(folder: Path, seed: int) -> Path:
    """Return the folder of the agents and logs of a run. The first run uses `folder` itself."""
    return folder / f"run-{seed}" if seed else folder


def styled_agents(lab: Lab, seed: int) -> tuple[Holdem, dict[str, StyledAgent]]:
    """Return the game, and all agents of a run and their opponent, by name. Raises `Stopped` after Ctrl-C.

    Before the flop, agents distinguish all hands of the deck. The agents are kept in the folder of the lab.
    """
    found: dict[str, StyledAgent] = {}
    deal = Deal.from_game(load_holdem(lab.game))
    for name, style in {**AGENTS, OPPONENT: OPPONENT_STYLE}.items():
        cards, folder = fitted(style.cards, deal), run_folder(lab.folder, seed) / name
        solved = solved_agent(Config(lab.game, (cards,), tilt=style.tilt, solver=solver_config(lab, seed)), folder, lab)
        real = solved.problem.real.abstract
        found[name] = StyledAgent(solved.folder, AbstractStrategy(real, solved.strategy), solved.seconds)
    return real.game, found


class LogTask(NamedTuple):
    """The hands of one agent, the agents to evaluate on them (by folder), and the estimators."""

    game: Holdem
    played: str
    judged: tuple[str, ...]
    estimators: tuple[str, ...]


_loaded = cache(load_agent)


def judge_hands(task: LogTask, text: str) -> FloatArray:
    """Return the values of all estimators on hands, for all evaluated agents, with full and partial information.

    Roll-outs and probabilities are computed once for all of them.

    Parameters
    ----------
    task : LogTask
        The agent that played, and the agents to evaluate.
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
    played = require_policy(_loaded(task.played))
    seats = [hand.players.index(task.played) for hand in hands]
    for numbers in group_by_betting(hands, seats):
        some, seat = [hands[number] for number in numbers], seats[numbers[0]]
        whole = LoggedHands(task.game, some, seat)
        hidden = LoggedHands(task.game, some, seat, partial=True) if whole.position.folded is not None else whole
        for place, name in enumerate(task.judged):
            line = follow_line(whole, played, require_policy(_loaded(name)))
            for part, seen in enumerate((whole, hidden)):
                found[part, place][:, :, numbers] = hand_values(seen, line, rows)
    return found


class Cases:
    """Estimates of the agents of a run on each other's hands. Each log is evaluated once, and the figures are kept."""

    def __init__(
        self,
        game: Holdem,
        agents: dict[str, StyledAgent],
        hands: int,
        deals: int,  # for the expected winnings of agents
        out: Path,
        threads: int,
        watcher: ProgressMonitor,
        seed: int = 0,  # of matches and deals
    ) -> None:
        self.game, self.agents, self.hands, self.deals, self.seed = game, agents, hands, deals, seed
        self.out, self.threads, self.watcher = out, threads, watcher
        self._truths: dict[str, float] = {}

    def figures(self, played: str, judged: str, *, partial: bool) -> dict[str, dict[str, Any]]:
        """Return figures by estimator: mean and margin in mbb/h, deviation per hand in mbb, effective hands, bias.

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
        """Return figures by evaluated agent, information and estimator: see `figures`."""
        found = self._values(played, tuple(AGENTS), tuple(ESTIMATORS))
        said: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
        for place, judged in enumerate(AGENTS):
            truth = self._truth(judged)
            limits: dict[str, dict[str, float]] = {}  # off policy; money does not depend on the information
            if judged != played:
                own = self._values(judged, (played,), tuple(LIMITS.values()))[0, 0]
                limits = {name: _limit(*own[:, row]) for row, name in enumerate(LIMITS)}
            said[judged] = {
                information: {
                    name: _summary(values, weights, truth)
                    for name, values, weights in zip(ESTIMATORS, *found[part, place], strict=True)
                }
                | limits
                for part, information in enumerate(("full", "partial"))
            }
            for name, full, partial in zip(ESTIMATORS, *found[:, place, 0], strict=True):
                said[judged]["partial"][name]["hidden"] = float((partial - full).mean())
        return said

    def _values(self, played: str, judged: tuple[str, ...], estimators: tuple[str, ...]) -> FloatArray:
        """Return the values of `judge_hands` on the log of an agent, in mbb."""
        lines = self._log(played).splitlines()
        self.watcher.say(f"evaluating {', '.join(judged)} on {len(lines):,} hands of {played}")
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
        """Return the expected winnings of an agent against the opponent in mbb/h, averaged over all bets."""
        if judged not in self._truths:
            both = self.agents[judged].strategy, self.agents[OPPONENT].strategy
            won = expected_winnings(*both, self.deals, SEED + self.seed, threads=self.threads)
            self._truths[judged] = float(won.mean()) * 1000 / self.game.rules.big_blind
        return self._truths[judged]

    def _log(self, played: str) -> str:
        """Return the log of an agent's match with the opponent. The match is played once."""
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
                sink=lambda hand: lines.append(format_log_line(hand)),
            )
            artifact.write_text(file, "\n".join(lines) + "\n")
        return file.read_text()


def _summary(values: FloatArray, weights: FloatArray, truth: float) -> dict[str, float]:
    """Return the figures of an estimator that are kept, in mbb."""
    mean, margin = estimate_mean(values)
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
    """Return the half-width of the 95% interval of a standard deviation; too short for heavy tails."""
    squares = (values - values.mean()) ** 2
    return float(WIDTH * squares.std() / (2 * sqrt(squares.mean() * len(values)))) if squares.any() else 0.0


def _limit(values: FloatArray, weights: FloatArray) -> dict[str, float]:
    """Return the limit of the standard deviation of an estimator for long logs of another agent.

    Parameters
    ----------
    values, weights : ndarray of float64, shape (hands,)
        Estimates of the *other* agent on hands of the evaluated agent: values in mbb, and weights 1 / w.

    Returns
    -------
    dict
        ``deviation`` in mbb; ``largest_share``, the share of the largest hand in the sum of squares; and ``at_least``,
        a lower bound of the deviation with a confidence of 97.5%, from weights capped at `CAP`.
    """
    seen = weights > 0  # the other one may do so at all
    worth = values[seen] / weights[seen]
    squares, mean = worth**2 / weights[seen], float(worth.sum()) / len(values)
    second = float(squares.sum()) / len(values)
    capped = np.zeros(len(values))
    capped[seen] = worth**2 * np.minimum(1 / weights[seen], CAP)
    least, margin = estimate_mean(capped)
    return {
        "deviation": sqrt(max(second - mean**2, 0.0)),
        "at_least": sqrt(max(least - margin - mean**2, 0.0)),
        "largest_share": float(squares.max(initial=0.0) / max(second * len(values), 1e-300)),
    }


def _on_processes(task: LogTask, parts: list[str], processes: int) -> Iterator[FloatArray]:
    """Yield the values of the parts of a log in order, computed here or in worker processes."""
    if processes < 2:
        yield from (judge_hands(task, part) for part in parts)
        return
    yield judge_hands(task, parts[0])  # compiled kernels are stored before other processes start
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        try:
            yield from pool.map(judge_hands, [task] * (len(parts) - 1), parts[1:])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
