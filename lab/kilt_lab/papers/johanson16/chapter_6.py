"""[Johanson16 figures 6.1 and 6.2]: exploitation and exploitability of responses to a model of an opponent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import RunError
from kilt.games.game import TERMINAL
from kilt.games.holdem import CALL, RAISE
from kilt.games.playable import load_holdem
from kilt.solve.cfr import Cfr
from kilt.solve.counter import CONFIDENCES, Against
from kilt.solve.forms import load_problem
from kilt.solve.lp import safe_response, solve_lp
from kilt.solve.problem import CPU, FLAT, FlatProblem
from kilt.solve.registry import make_solver
from kilt.solve.tables.flat import FlatTables
from kilt.strategy.model import OpponentModel
from kilt.tree.best_response import best_response, expected_value, exploitability, response_values
from kilt.tree.flat import FlatTree
from kilt.viz.frontier import Curve, plot_frontier
from kilt_lab.cells import Cell, Changes, Measured, RowSpec, Setting, changes
from kilt_lab.claims import Row, positive
from kilt_lab.experiment import Experiment, Found, Lab
from kilt_lab.pieces.orange import RNR, SELF, AnswerPoint, CurveSetting, OrangeHoldem, tables_of

GAME, LARGE, UNIT = "leduc", "holdem.limit.2p", "mbb/g"
TILT = (7, 0, 0, 7)
SHARES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.93, 0.97, 0.99, 1.0)  # of p and of P_max
GAMES = (100, 1000, 10_000, 100_000)  # numbers of observed games
THESIS_GAMES = (100, 1000, 100_000, 1_000_000)  # of limit hold'em
SCARCE = (100, 1000)  # the smallest numbers of games; the thesis finds such models nearly useless
# Share of the bound from which a difference counts as marked, and below which as marginal or very small.
MARGIN = 0.1
BOUND = 28.0  # winnings of a best response against Orange in the thesis [Johanson16 §6.3.1]
ITERATIONS = 600  # in Leduc
SPACED = np.linspace(0, 1, 14) ** 4  # of points on curves whose axis is logarithmic
SEED = 6


BOUND_ROW = "the bound: a best response to Orange"
MARGIN_UNIT = "mbb/g, margin (above 0: holds)"


def panels(figure: str, games: Sequence[int]) -> dict[str, tuple[CurveSetting, ...]]:
    """Return the curves of each panel of a figure. `games` has numbers of observed games, the largest last."""
    most = CurveSetting(games=games[-1])
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


class OrangeGame:
    """A small game that is written out as a flat tree, with Orange."""

    def __init__(self, game: str) -> None:
        problem, tilted = (load_problem(game, form=FLAT, tilt=tilt) for tilt in ((), TILT))
        if not isinstance(problem, FlatProblem) or not isinstance(tilted, FlatProblem):
            raise RunError(f"{game} is too large for a flat tree: use leduc, kuhn or one-card")
        self.problem, self.tree = problem, problem.tree
        self.name, self.big_blind = problem.name, problem.big_blind or 1.0
        self._held: tuple[CurveSetting | None, Any] = None, None  # a curve and its model
        solver = Cfr(FlatTables(tilted.tree.nodes), "cfr+")
        solver.step(ITERATIONS)
        self.orange = solver.average()
        nodes = self.tree.nodes
        self.first = np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start)) == 0
        self.bound = sum(response_values(self.tree, self.orange)) / 2
        self.best = np.where(self.first, *(best_response(self.tree, self.orange, seat).strategy for seat in (0, 1)))

    def met(self, answer: FloatArray, other: FloatArray) -> float:
        """Return the winnings of a response against another strategy in chips per game, the mean over both seats."""
        ahead = expected_value(self.tree, np.where(self.first, answer, other))
        return (ahead - expected_value(self.tree, np.where(self.first, other, answer))) / 2

    def model(self, setting: CurveSetting) -> OpponentModel:
        """Return a model of Orange from games against Probe or itself, half of them in each seat."""
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

    def answer(self, setting: CurveSetting, share: float) -> AnswerPoint:
        """Return the response to a model for a p or P_max, with its exploitability and winnings."""
        if self._held[0] != setting:
            self._held = setting, self.model(setting)
        model = self._held[1]
        against = Against(model, share, setting.confidence)
        solver = make_solver(replace(self.problem, against=against), "dbr" if setting.confidence else "rnr")
        solver.step(ITERATIONS)
        found = solver.average()
        met = self.met(found, self.orange), self.met(found, model.policy())
        return AnswerPoint(share, exploitability(self.tree, found), *met)

    def frontier(self) -> list[tuple[float, float]]:
        """Return exploitability and exploitation of the best safe responses to Orange, by linear programs."""
        nodes = self.tree.nodes
        risks = (exploitability(self.tree, self.best) * SPACED).tolist()
        return [
            (risk, sum(safe_response(nodes, seat, self.orange, risk).value for seat in (0, 1)) / 2) for risk in risks
        ]

    def ends(self) -> FloatArray:
        """Return [equilibrium, best response to Orange]: exploitability, and winnings against Orange."""
        both = solve_lp(self.tree.nodes).strategy, self.best
        return np.array([(exploitability(self.tree, one), self.met(one, self.orange)) for one in both])


def mixtures(ends: FloatArray) -> list[tuple[float, float]]:
    """Return exploitability and exploitation of mixtures of an equilibrium with the best response: a straight line."""
    return [(float(risk), float(won)) for risk, won in ends[0] + np.outer(SPACED, ends[1] - ends[0])]


def probe(tree: FlatTree) -> FloatArray:
    """[slot] the strategy that never folds, and calls or raises with equal probability [Johanson16 §6.3.2]."""
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


def shapes(figure: str, found: dict[CurveSetting, list[AnswerPoint]], bound: float) -> dict[str, float]:
    """Return the margin by which each row of `SHAPES` is true of one run, in chips per game: above 0 if it is true.

    Rows are omitted if their curves were not requested.

    Parameters
    ----------
    figure : str
        ``"figure-6.1"`` or ``"figure-6.2"``.
    found : dict of CurveSetting to list of AnswerPoint
        Curves of one run, each in the order of p or P_max, from 0 to 1.
    bound : float
        Winnings of a best response against Orange, in chips per game.
    """
    games, margin = sorted({setting.games for setting in found}), MARGIN * bound
    most, said = CurveSetting(games=games[-1]), dict[str, float]()

    def overfits(points: list[AnswerPoint]) -> float:
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


_MARGIN = "a tenth of a best response's winnings (kilt's margin)"
_FEW = "with 100 and with 1,000 games"
SHAPES = {  # by row: the claim of the thesis about the figure; where the thesis gives no number, kilt's margin
    "figure-6.1": {
        "a: exploits the model more": "a: RNR wins more against the model at p = 1 than at p = 0",
        "a: more exploitable": "a: RNR is more exploitable at p = 1 than at p = 0",
        "a: RNR overfits": "a: RNR overfits: at p = 1 it wins markedly less against Orange than at its best p, by at "
        f"least {_MARGIN}",
        "b: few games: more exploitable": f"b: {_FEW}, RNR is more exploitable at p = 1 than at p = 0",
        "b: few games: less exploitive": f"b: {_FEW}, RNR wins less against Orange at p = 1 than at p = 0",
        "b: the gain grows with data": "b: RNR at its best p wins more with the most games than with the fewest",
        "c: self-play data is of no use": "c: self-play data does not help RNR: no p wins more against Orange than "
        "p = 0",
    },
    "figure-6.2": {
        "a: RNR overfits": "a: RNR overfits: at p = 1 it wins less against Orange than at its best p, by at least "
        f"{_MARGIN}",
        "a: 1-Step overfits": "a: 1-Step overfits: at P_max = 1 it wins less than at its best P_max, by at least "
        f"{_MARGIN}",
    }
    | {
        f"a: {name} does not overfit": f"a: {name} does not overfit: from its best P_max to P_max = 1 its winnings "
        f"decrease by less than {_MARGIN}"
        for name in ("10-Step", "0-10 Linear", "1-Curve")
    }
    | {
        "b: few games: the gain is very small": f"b: {_FEW}, the gain of 0-10 Linear is very small: less than "
        f"{_MARGIN}",
        "b: few games: marginally more exploitable": f"b: {_FEW} and P_max < 1, 0-10 Linear is only marginally more "
        f"exploitable than at P_max = 0: by less than {_MARGIN}",
        "b: the gain grows with data": "b: 0-10 Linear at its best P_max wins more with the most games than with the "
        "fewest",
        "c: games against Probe are better": "c: 0-10 Linear wins more with games against Probe than with "
        "self-play data",
        "c: self-play data is useful": "c: self-play data still helps 0-10 Linear: its best P_max wins more than "
        "P_max = 0",
    },
}


def best(points: list[AnswerPoint]) -> float:
    """Return the largest winnings against Orange."""
    return max(point.won for point in points)


def _gain(points: list[AnswerPoint]) -> float:
    """Return the winnings against Orange of the best p or P_max above 0, less those of 0, which is an equilibrium."""
    return best(points[1:]) - points[0].won


def _contest(lab: Lab) -> OrangeGame | OrangeHoldem:
    if lab.game != LARGE:
        return OrangeGame(lab.game)
    rules = load_holdem(lab.game)

    def tick(share: float) -> None:
        lab.show("iterations of an answer", share)
        lab.check()

    return OrangeHoldem(rules, partial(tables_of, rules, lab), TILT, lab.device, folder=lab.folder, tick=tick)


@dataclass(frozen=True)
class Answers(Experiment):
    """Measure the gain and the risk of responses to a model of an opponent, the agent Orange.

    A player with a model of its opponent can exploit the opponent, but takes a risk if the model is wrong. This
    experiment measures both the gain and the risk, for several ways to respond to a model.

    The opponent in this experiment is an agent called Orange. It plays an equilibrium of a game that pays the winner 7%
    more [Johanson16 table 2.3]. A model of Orange counts how often it took each action in observed games.

    The agent Orange is observed in games against a copy of itself, or against Probe, an agent that never folds. These
    games are not played one by one: the experiment draws all counts of actions at once, from the probabilities of the
    ways in which a game can end.

    CFR+ computes several responses to the model of the agent Orange. A parameter, p or P_max, says how far a response
    trusts the model. Each response is evaluated against Orange, against the model, and against a best response, which
    shows how much the response risks. ``pieces.orange`` defines the game of the thesis.

    For comparison, the figures show two curves that need no model of the opponent. One is the most that a strategy with
    a given exploitability can win against the agent Orange, computed by linear programs. The other consists of mixtures
    of an equilibrium with the best response to Orange.

    The thesis describes its figures by words such as *marked* and *only marginally*, without numbers [Johanson16 §§6.4,
    6.6]. This experiment calls a difference marked if it is at least a tenth of the winnings of a best response against
    the agent Orange, and small otherwise.
    """

    curves: Mapping[str, tuple[CurveSetting, float]] = field(default_factory=dict)  # by row

    def setting(self, base: Changes, asked: Changes) -> Setting:
        """Return a setting. In the large game, the default is one run. Raises RunError for a small game on a GPU."""
        large = {**base, **asked}.get("game") == LARGE
        found = super().setting({**base, "runs": 1} if large else base, asked)
        if found.device != CPU and not large:
            raise RunError(f"--device {found.device} is given, and {found.game} is small: use --game {LARGE}")
        return found

    def chosen(self, setting: Setting) -> tuple[RowSpec, ...]:
        """Return the requested rows whose curves exist in the game."""
        curves = _curves(self.name, setting.game)
        found = super().chosen(setting)
        return tuple(row for row in found if row.name not in self.curves or self.curves[row.name][0] in curves)

    def cases(self, setting: Setting) -> list[str]:
        """Return the bound and all responses of the requested rows; a claim needs all curves of its panel."""
        curves = _curves(self.name, setting.game)
        known = [case for row in self.chosen(setting) for case in row.needs]
        return list(dict.fromkeys(c for c in known if c not in self.curves or self.curves[c][0] in curves))

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Compute a response, or the bound."""
        contest = lab.shared("contest", lambda: _contest(lab), per="experiment")
        mbb = 1000 / contest.big_blind
        if case == BOUND_ROW:
            more = {"frontier": contest.frontier(), "ends": contest.ends().tolist(), "mbb": mbb, "name": contest.name}
            return Cell({case: mbb * contest.bound}, True, more)
        setting, share = self.curves[case]
        point = contest.answer(setting._replace(run=seed), share)
        more = {"exploitability": mbb * point.risk, "from_model": mbb * point.model, "p": share}
        return Cell({case: mbb * point.won}, more=more)

    def derive(self, found: Mapping[str, Row], measured: Measured) -> Iterable[Row]:
        """Yield the margin of each claim, over runs."""
        if BOUND_ROW not in found:
            return
        curves = self.by_seed_and_curve(measured).items()
        runs = {seed: shapes(self.name, those, found[BOUND_ROW].ours) for seed, those in curves if those}
        for shape in SHAPES[self.name]:
            values = {seed: run[shape] for seed, run in runs.items() if shape in run}
            if values:
                yield Row.of_runs(shape, values.values(), MARGIN_UNIT, seeds=values)

    def by_seed_and_curve(self, measured: Measured) -> dict[int, dict[CurveSetting, list[AnswerPoint]]]:
        """Return complete curves by seed, in mbb/g. A panel with an incomplete curve is omitted for that seed."""
        points: dict[int, dict[CurveSetting, list[AnswerPoint]]] = {}
        for case, cells in measured.cells.items():
            if case in self.curves:
                setting, share = self.curves[case]
                for cell in cells:
                    point = AnswerPoint(share, cell.more["exploitability"], cell.values[case], cell.more["from_model"])
                    points.setdefault(cell.seed, {}).setdefault(setting, []).append(point)
        panels_of = _panels(self.name, measured.setting.game).values()
        return {
            seed: {
                setting: sorted(curves[setting])
                for panel in panels_of
                if all(len(curves.get(setting, ())) == len(SHARES) for setting in panel)
                for setting in panel
            }
            for seed, curves in points.items()
        }

    def draw(self, found: Found, path: Path) -> None:
        """Draw the complete panels of the first run."""
        whole = self.by_seed_and_curve(found.measured).get(0, {})
        bound = list(found.measured.cells.get(BOUND_ROW, ()))
        shown, only = _panels(self.name, found.measured.setting.game), found.measured.setting.only
        drawn = {
            f"({name})": [Curve(one.name, [(point.risk, point.won) for point in whole[one]]) for one in panel]
            for name, panel in shown.items()
            if all(one in whole for one in panel) and (not only or name in only)
        }
        if not bound or not drawn:
            return
        if self.name == "figure-6.1" and "(a)" in drawn:
            (first,) = shown["a"]
            drawn["(a)"].append(Curve("… against the model", [(p.risk, p.model) for p in whole[first]], ":"))
        more = bound[0].more
        mixed = mixtures(np.array(more["ends"]))
        lines = [
            Curve(name, [(more["mbb"] * risk, more["mbb"] * won) for risk, won in points], style)
            for name, points, style in (("safe responses, exact", more["frontier"], "--"), ("mixtures", mixed, "-."))
            if points
        ]
        size = "" if found.measured.setting.game == LARGE else ", small game"
        plot_frontier(drawn, lines, f"{self.source}{size}: {more['name']}", path)


def _panels(figure: str, game: str) -> dict[str, tuple[CurveSetting, ...]]:
    return panels(figure, THESIS_GAMES if game == LARGE else GAMES)


def _curves(figure: str, game: str) -> set[CurveSetting]:
    return {setting for panel in _panels(figure, game).values() for setting in panel}


def _figure(name: str, title: str, quick: tuple[str, ...]) -> Answers:
    groups: dict[CurveSetting, list[str]] = {}
    for sizes in (GAMES, THESIS_GAMES):
        for panel, settings in panels(name, sizes).items():
            for setting in settings:
                groups.setdefault(setting, []).append(panel)
    curves = {setting.row(share): (setting, share) for setting in groups for share in SHARES}
    source, all_panels = f"[Johanson16 {name.replace('-', ' ')}]", ("a", "b", "c")
    return Answers(
        name,
        source,
        title,
        rows=(
            RowSpec(BOUND_ROW, UNIT, BOUND, LARGE, groups=all_panels),
            *(RowSpec(row, UNIT, groups=tuple(dict.fromkeys(groups[setting]))) for row, (setting, _) in curves.items()),
            *(
                RowSpec(
                    shape,
                    MARGIN_UNIT,
                    cases=(BOUND_ROW, *(row for row, (one, _) in curves.items() if shape[0] in groups[one])),
                    groups=(shape[0],),
                )
                for shape in SHAPES[name]
            ),
        ),
        claims={says: positive(row) for row, says in SHAPES[name].items()},
        hint=f"--game {LARGE} for the game of the thesis, which takes a day without `--device gpu`; --only a, b or c "
        "for one panel; each of --runs observes different games",
        time="a few minutes",
        defaults=Setting("leduc", runs=20, device=CPU),
        quick=changes(only=quick, runs=3),
        settings={"thesis": changes(game=LARGE)},
        curves=curves,
    )


FIGURE_6_1 = _figure("figure-6.1", "Restricted Nash responses by p and amount of data", ("a", "c"))
FIGURE_6_2 = _figure("figure-6.2", "Data-biased responses by P_max, confidence function and amount of data", ("c",))
