"""[Johanson16 figures 6.1 and 6.2] in small: exploitation over exploitability of answers to a model, in Leduc hold'em.

The opponent is Orange, an equilibrium of a game in which whoever wins gets 7% more [Johanson16 table 2.3]. What it does
is counted in games against Probe, who never folds, or against itself; the counts are drawn all at once, by how likely
each end of a game is. Answers are found by CFR+ for each p or P_max, and judged against Orange, against the model, and
against best responses. Beside them are the exact frontier of safe responses to Orange, by linear programmes, and the
mixtures of an equilibrium with the best response. `figure_6_holdem` has the game of the thesis.

`SHAPES` has what the thesis says of both figures. It calls differences marked, very small or only marginal without a
number [Johanson16 §§6.4, 6.6]. Here a difference counts as marked from `MARGIN` of the bound on, which is what a best
response wins from Orange, and as small below it. That number was chosen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Protocol

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import RunError
from kilt.evaluate.flops import Watcher
from kilt.games.game import TERMINAL
from kilt.games.holdem import CALL, RAISE
from kilt.players.agents import load_holdem
from kilt.solve.cfr import Cfr
from kilt.solve.counter import CONFIDENCES, Against
from kilt.solve.forms import load_problem
from kilt.solve.lp import safe_response, solve_lp
from kilt.solve.problem import CPU, DEVICES, FLAT, GPU, FlatProblem
from kilt.solve.registry import make_solver
from kilt.solve.tables.flat import FlatTables
from kilt.strategy.model import OpponentModel
from kilt.tree.best_response import best_response, expected_value, exploitability, response_values
from kilt.tree.flat import FlatTree
from kilt.viz.frontier import Curve, plot_frontier
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.claims import Claim, Row, positive
from kilt_lab.reproduce.figure_6_holdem import (
    RNR,
    SELF,
    OrangeHoldem,
    Point,
    Setting,
    StoppedError,
    kept_folder,
    tables_of,
)
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, LARGE, UNIT = "leduc", "holdem.limit.2p", "mbb/g"
TILT = (7, 0, 0, 7)
SHARES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.93, 0.97, 0.99, 1.0)  # of p and of P_max
GAMES = (100, 1000, 10_000, 100_000)  # observed
THESIS_GAMES = (100, 1000, 100_000, 1_000_000)  # of limit hold'em
SCARCE = (100, 1000)  # the fewest games of the thesis, in which it finds a model of little worth
MARGIN = (
    0.1  # of the bound: what counts as marked, and as more than marginal or very small, where the thesis only says so
)
BOUND = 28.0  # what a best response wins from Orange in the thesis [Johanson16 §6.3.1]
ITERATIONS, RUNS = 600, 20  # in Leduc; runs observe other games
SPACED = np.linspace(0, 1, 14) ** 4  # of points on curves whose axis is logarithmic
SEED = 6


def panels(figure: str, games: Sequence[int]) -> dict[str, tuple[Setting, ...]]:
    """The curves of the panels of a figure, by numbers of games that were observed, the most last."""
    most = Setting(games=games[-1])
    linear = most._replace(confidence="0-10-linear")
    if figure == "figure-6.1":
        return {
            "a": (most,),
            "b": tuple(most._replace(games=number) for number in games),
            "c": (most, most._replace(against=SELF)),
        }
    return {
        "a": (most, *(most._replace(confidence=name) for name in CONFIDENCES)),
        "b": tuple(linear._replace(games=number) for number in games),
        "c": (linear, linear._replace(against=SELF)),
    }


class OrangeContest(Protocol):
    """A game, Orange, and what is known of both."""

    name: str
    big_blind: float

    @property
    def bound(self) -> float:
        """What a best response wins from Orange, in chips per game."""

    def answers(self, setting: Setting, shares: Sequence[float]) -> Iterator[Point]:
        """Answers to a model for each p or P_max."""

    def missing(self, settings: Sequence[Setting], shares: Sequence[float]) -> int:
        """Number of answers that are not known yet."""

    def frontier(self) -> list[tuple[float, float]]:
        """Exploitability and exploitation of the best safe responses to Orange; empty where they cannot be had."""

    def ends(self) -> FloatArray:
        """[equilibrium, best response to Orange] exploitability, and what is won from Orange."""


class OrangeGame:
    """The game, Orange, and what is known of both."""

    def __init__(self, game: str) -> None:
        problem, tilted = (load_problem(game, form=FLAT, tilt=tilt) for tilt in ((), TILT))
        if not isinstance(problem, FlatProblem) or not isinstance(tilted, FlatProblem):
            raise RunError(f"{game} is too large to be written out: use leduc, kuhn or one-card")
        self.problem, self.tree = problem, problem.tree
        self.name, self.big_blind = problem.name, problem.big_blind or 1.0
        solver = Cfr(FlatTables(tilted.tree.nodes), "cfr+")
        solver.step(ITERATIONS)
        self.orange = solver.average()
        nodes = self.tree.nodes
        self.first = np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start)) == 0
        self.bound = sum(response_values(self.tree, self.orange)) / 2

    def met(self, answer: FloatArray, other: FloatArray) -> float:
        """What an answer wins from another strategy, mean over both seats."""
        ahead = expected_value(self.tree, np.where(self.first, answer, other))
        return (ahead - expected_value(self.tree, np.where(self.first, other, answer))) / 2

    def model(self, setting: Setting) -> OpponentModel:
        """What Orange was seen to do in games against Probe or itself, half of them in each seat."""
        rng, nodes = np.random.default_rng(SEED + setting.run), self.tree.nodes
        partner = self.orange if setting.against == SELF else probe(self.tree)
        counts = np.zeros(len(self.orange))
        for seat in (0, 1):
            own = self.first if seat == 0 else ~self.first
            ends = likely_ends(self.tree, np.where(own, self.orange, partner))
            seen = rng.multinomial(setting.games // 2, ends).astype(float)
            for start, end in reversed(list(zip(nodes.level[1:-1], nodes.level[2:], strict=True))):
                here = np.arange(start, end)
                above = nodes.parent[here]
                np.add.at(seen, above, seen[here])
                acted = nodes.actor[above] == (0, 1)[seat]
                slots = nodes.infoset_start[nodes.infoset[above]] + here - nodes.first_child[above]
                np.add.at(counts, slots[acted], seen[here][acted])
        return OpponentModel.of_tree(self.tree, "Orange", counts)

    def answers(self, setting: Setting, shares: Sequence[float]) -> Iterator[Point]:
        """Answers to a model for each p or P_max."""
        model = self.model(setting)
        policy = model.policy()
        for share in shares:
            began, against = perf_counter(), Against(model, share, setting.confidence)
            solver = make_solver(replace(self.problem, against=against), "dbr" if setting.confidence else "rnr")
            solver.step(ITERATIONS)
            found = solver.average()
            risk = exploitability(self.tree, found)
            met = self.met(found, self.orange), self.met(found, policy)
            yield Point(share, risk, *met, perf_counter() - began)

    def missing(self, settings: Sequence[Setting], shares: Sequence[float]) -> int:
        """Number of answers that are not known yet: all of them."""
        return len(settings) * len(shares)

    def frontier(self) -> list[tuple[float, float]]:
        """Exploitability and exploitation of the best safe responses to Orange, by linear programmes."""
        nodes = self.tree.nodes
        answer = [best_response(self.tree, self.orange, seat).strategy for seat in (0, 1)]
        worst = exploitability(self.tree, np.where(self.first, *answer))
        found = []
        for risk in worst * SPACED:
            seats = [safe_response(nodes, seat, self.orange, risk).value for seat in (0, 1)]
            found.append((float(risk), sum(seats) / 2))
        return found

    def ends(self) -> FloatArray:
        """[equilibrium, best response to Orange] exploitability, and what is won from Orange."""
        nash = solve_lp(self.tree.nodes).strategy
        answer = np.where(self.first, *(best_response(self.tree, self.orange, seat).strategy for seat in (0, 1)))
        return np.array([(exploitability(self.tree, one), self.met(one, self.orange)) for one in (nash, answer)])


def mixtures(ends: FloatArray) -> list[tuple[float, float]]:
    """Exploitability and exploitation of mixtures of an equilibrium with the best response: a straight line."""
    return [(float(risk), float(won)) for risk, won in ends[0] + np.outer(SPACED, ends[1] - ends[0])]


def probe(tree: FlatTree) -> FloatArray:
    """[slot] the strategy that never folds, and calls or raises half and half [Johanson16 §6.3.2]."""
    weights = np.array([label in (CALL, RAISE) for labels in tree.actions for label in labels], dtype=float)
    starts = tree.nodes.infoset_start
    sums = np.repeat(np.add.reduceat(weights, starts[:-1]), np.diff(starts))
    return np.asarray(weights / sums)


def likely_ends(tree: FlatTree, profile: FloatArray) -> FloatArray:
    """[node] the probability that a game ends there."""
    nodes, reach = tree.nodes, np.ones(len(tree.nodes.parent))
    for start, end in zip(nodes.level[1:-1], nodes.level[2:], strict=True):
        here = np.arange(start, end)
        above = nodes.parent[here]
        slots = nodes.infoset_start[nodes.infoset[above]] + here - nodes.first_child[above]
        acts = nodes.actor[above] >= 0
        reach[here] = reach[above] * np.where(acts, profile[np.where(acts, slots, 0)], nodes.chance[here])
    ends = np.where(nodes.actor == TERMINAL, reach, 0.0)
    return np.asarray(ends / ends.sum())


def shapes(figure: str, found: dict[Setting, list[Point]], bound: float) -> dict[str, float]:
    """By how much each row of `SHAPES` is true of one run, in chips per game: above 0 exactly where it is.

    Rows whose curves were not asked for are left out.

    Parameters
    ----------
    figure : str
        ``"figure-6.1"`` or ``"figure-6.2"``.
    found : dict of Setting to list of Point
        Curves of one run, each in the order of p or P_max, from 0 to 1.
    bound : float
        What a best response wins from Orange, in chips per game.
    """
    games, margin = sorted({setting.games for setting in found}), MARGIN * bound
    most, said = Setting(games=games[-1]), dict[str, float]()

    def overfits(points: list[Point]) -> float:
        return best(points) - points[-1].won - margin

    if figure == "figure-6.1":
        curve = found[most]
        said["a: exploits the model more"] = curve[-1].model - curve[0].model
        said["a: more exploitable"] = curve[-1].risk - curve[0].risk
        said["a: RNR overfits"] = overfits(curve)
        if len(games) > 1:
            scarce = [found[most._replace(games=number)] for number in games if number in SCARCE]
            said["b: few games: more exploitable"] = min(points[-1].risk - points[0].risk for points in scarce)
            said["b: few games: less exploitive"] = min(points[0].won - points[-1].won for points in scarce)
            said["b: the gain grows with data"] = best(curve) - best(found[most._replace(games=games[0])])
        if own := found.get(most._replace(against=SELF)):
            said["c: self-play data is of no use"] = -_gain(own)
        return said
    if most in found:
        for name, label in {RNR: "RNR", "1-step": "1-Step"}.items():
            said[f"a: {label} overfits"] = overfits(found[most._replace(confidence=name)])
        for name, label in {"10-step": "10-Step", "0-10-linear": "0-10 Linear", "s-curve": "1-Curve"}.items():
            said[f"a: {label} does not overfit"] = -overfits(found[most._replace(confidence=name)])
    linear = most._replace(confidence="0-10-linear")
    if len(games) > 1:
        scarce = [found[linear._replace(games=number)] for number in games if number in SCARCE]
        said["b: few games: the gain is very small"] = margin - max(map(_gain, scarce))
        said["b: few games: marginally more exploitable"] = margin - max(
            point.risk - points[0].risk for points in scarce for point in points[1:-1]
        )
        said["b: the gain grows with data"] = best(found[linear]) - best(found[linear._replace(games=games[0])])
    if own := found.get(linear._replace(against=SELF)):
        said["c: games against Probe are better"] = best(found[linear]) - best(own)
        said["c: self-play data is useful"] = _gain(own)
    return said


_MARGIN = "a tenth of the bound, a margin that is ours"
_FEW = "with 100 and with 1,000 games"
SHAPES = {  # by row: what the thesis says of the figure, and where it names no bound, that of ours
    "figure-6.1": {
        "a: exploits the model more": "a: RNR wins more from the model at p = 1 than at p = 0",
        "a: more exploitable": "a: RNR is more exploitable at p = 1 than at p = 0",
        "a: RNR overfits": f"a: at p = 1 RNR wins markedly less from Orange than at its best p: by {_MARGIN}, or more",
        "b: few games: more exploitable": f"b: {_FEW} RNR is more exploitable at p = 1 than at p = 0",
        "b: few games: less exploitive": f"b: {_FEW} RNR wins less from Orange at p = 1 than at p = 0",
        "b: the gain grows with data": "b: with the most games RNR wins more at its best p than with the fewest",
        "c: self-play data is of no use": "c: self-play data is of no use to RNR: no p wins more from Orange "
        "than p = 0",
    },
    "figure-6.2": {
        "a: RNR overfits": f"a: RNR overfits: at p = 1 it wins less from Orange than at its best p by {_MARGIN}",
        "a: 1-Step overfits": f"a: 1-Step overfits: at P_max = 1 it wins less than at its best P_max by {_MARGIN}",
    }
    | {
        f"a: {name} does not overfit": f"a: {name} does not overfit, even at P_max = 1: it wins what it wins at its "
        f"best P_max, but for less than {_MARGIN}"
        for name in ("10-Step", "0-10 Linear", "1-Curve")
    }
    | {
        "b: few games: the gain is very small": f"b: {_FEW} the gain of 0-10 Linear is very small: less than {_MARGIN}",
        "b: few games: marginally more exploitable": f"b: {_FEW} and P_max < 1, 0-10 Linear is only marginally more "
        f"exploitable than at P_max = 0: by less than {_MARGIN}",
        "b: the gain grows with data": "b: with the most games 0-10 Linear wins more at its best P_max than with the "
        "fewest",
        "c: games against Probe are better": "c: 0-10 Linear wins more with games against Probe than with "
        "self-play data",
        "c: self-play data is useful": "c: self-play data is still useful to 0-10 Linear: its best P_max wins more "
        "than P_max = 0",
    },
}


def best(points: list[Point]) -> float:
    """The most that is won from Orange."""
    return max(point.won for point in points)


def _gain(points: list[Point]) -> float:
    """What the best p or P_max above 0 wins from Orange more than 0, which is an equilibrium."""
    return best(points[1:]) - points[0].won


def _line(setting: Setting, found: dict[Setting, list[Point]], mbb: float) -> Curve:
    """A curve of the picture: what is won from Orange."""
    return Curve(setting.name, [(mbb * point.risk, mbb * point.won) for point in found[setting]])


def _contest(asked: Request, watcher: Watcher) -> OrangeContest:
    game = asked.game or GAME
    if game != LARGE:
        if asked.device:
            raise RunError(f"--device is given, and {game} is small: leave it out, or use --game {LARGE}")
        return OrangeGame(game)
    rules = load_holdem(game)
    device = asked.device or CPU
    if device not in DEVICES:
        raise RunError(f"there is no device {device!r}: use one of {', '.join(DEVICES)}")

    def tick(share: float) -> None:
        watcher.show("iterations of an answer", share, None)
        if watcher.stopped():
            raise StoppedError

    tables = partial(tables_of, rules, watcher)
    return OrangeHoldem(rules, tables, TILT, device, folder=kept_folder(rules, TILT), tick=tick)


def _figure(figure: str, asked: Request, watcher: Watcher) -> ReproductionResult:
    large = asked.game == LARGE
    shown = panels(figure, THESIS_GAMES if large else GAMES)
    out, runs = asked.out or Path(f"{figure}.png"), range(asked.runs or (1 if large else RUNS))
    require_drawable(out)
    wanted = [name for name in shown if not asked.only or name in asked.only]
    settings = list(dict.fromkeys(setting for name in wanted for setting in shown[name]))
    contest, rows = _contest(asked, watcher), list[Row]()
    found = [dict[Setting, list[Point]]() for _ in runs]
    left = contest.missing([setting._replace(run=run) for setting in settings for run in runs], SHARES)
    known = f", {len(settings) * len(runs) * len(SHARES) - left} of them known" if large else ""
    each = (3.0 if asked.device == GPU else 600.0) if large else 0.7
    watcher.say(f"{len(settings) * len(runs)} curves of {len(SHARES)} answers{known}", each * left)
    title = f"{WHAT[figure]}, {contest.name}"
    mbb = 1000 / contest.big_blind
    try:
        began = perf_counter()
        frontier, ends = contest.frontier(), contest.ends()
        bound = Row(
            "the bound: a best response to Orange", BOUND if large else None, mbb * contest.bound, UNIT, 0.0, {}
        )
        rows.append(bound._replace(seconds=perf_counter() - began))
        for number, setting in enumerate(settings):
            watcher.show(setting.name, number / len(settings), None)
            for run in runs:
                found[run][setting] = []
                for point in contest.answers(setting._replace(run=run), SHARES):
                    found[run][setting].append(point)
                    if run == 0:
                        rows.append(_row(setting, point, mbb))
                    if watcher.stopped():
                        raise StoppedError
    except StoppedError:
        return ReproductionResult(title, rows)
    said = [shapes(figure, one, contest.bound) for one in found]
    for shape in said[0]:
        rows.append(Row.of_runs(shape, [mbb * one[shape] for one in said], "mbb/g, by which it holds"))
    drawn = {f"({name})": [_line(setting, found[0], mbb) for setting in shown[name]] for name in wanted}
    if figure == "figure-6.1" and "a" in wanted:
        drawn["(a)"].append(
            Curve("… from the model", [(mbb * p.risk, mbb * p.model) for p in found[0][settings[0]]], ":")
        )
    lines = [
        Curve(name, [(mbb * risk, mbb * won) for risk, won in points], style)
        for name, points, style in (("safe responses, exact", frontier, "--"), ("mixtures", mixtures(ends), "-."))
        if points
    ]
    size = "" if large else " in small"
    plot_frontier(drawn, lines, f"[Johanson16 {figure.replace('-', ' ')}]{size}: {contest.name}", out)
    return ReproductionResult(title, rows, out)


def _row(setting: Setting, point: Point, mbb: float) -> Row:
    """What an answer wins from Orange, and what else is known of it."""
    letter = "P_max" if setting.confidence else "p"
    more = {"exploitability": mbb * point.risk, "from_model": mbb * point.model, "setting": setting._asdict()}
    name = f"{setting.name}, {letter} = {point.share:g}"
    return Row(name, None, mbb * point.won, UNIT, point.seconds, more | {"p": point.share})


WHAT = {
    "figure-6.1": "[Johanson16 figure 6.1]: restricted Nash responses by p and data",
    "figure-6.2": "[Johanson16 figure 6.2]: data-biased responses by P_max, confidence and data",
}
FIGURES = {
    figure: Reproduction(
        what,
        time="five minutes",
        rows=tuple(panels(figure, GAMES)),
        run=partial(_figure, figure),
        options=("only", "game", "out", "device", "runs"),
        hint=f"--game {LARGE} for the game of the thesis, a day without `--device gpu`; --only a, b or c for one panel"
        "; each of --runs observes other games",
        claims=tuple(
            Claim(says, f"[Johanson16 {figure.replace('-', ' ')}]", positive(row))
            for row, says in SHAPES[figure].items()
        ),
        quick=Request(only=("a", "c") if figure == "figure-6.1" else ("c",), runs=3),
        keeps=f"{figure}.png",
    )
    for figure, what in WHAT.items()
}
