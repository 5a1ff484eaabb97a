"""[Johanson16 figures 3.4 and 3.6]: what strategies of CS and PCS win from a fixed opponent, as time goes on.

Where best responses are out of reach, matches tell which solver is ahead. Figure 3.4 has an abstraction of limit
hold'em with imperfect recall and 880 million information sets, against an agent of a slightly smaller one; figure 3.6
has Bluff(2,2), against an equilibrium but for ε. At each point PCS wins more than CS. Here the abstraction is one of
[2-4] hold'em, and its opponent has nine tenths of the buckets; Bluff has two dice against one. Opponents learn by PCS
with linear weights for four times as long, from draws of their own. What is won is exact: the mean over all cards, all
bets and both seats. Time is that of one core; measuring does not count, nor does the first iteration, in which kernels
may be compiled.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from kilt.errors import GameError
from kilt.evaluate.flops import Watcher
from kilt.evaluate.judge import UNIT
from kilt.games.holdem import Holdem
from kilt.runs.budget import Budget
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Cfr
from kilt.solve.forms import load_problem
from kilt.solve.problem import VECTOR, VectorProblem
from kilt.solve.tables.memory import TreeTables
from kilt.tree.vector import VectorGame, Walk
from kilt.tree.vector_arrays import FOLLOW, Table
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.agents import game_in_buckets
from kilt_lab.reproduce.claims import Claim, Row, every, higher
from kilt_lab.reproduce.convergence import timed
from kilt_lab.reproduce.figure_11_1 import POINTS
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

SCHEMES, RUNS = ("cs", "pcs"), 5
LONGER, APART = 4, 1000  # how many times as long opponents learn, and how far their seeds are from the others
BUCKETS, SMALL = 1000, 50  # of each round after the first: in the game of the figure here, and in others
FEWER = 0.9  # the opponent's share of them


class Sight(NamedTuple):
    """A strategy, and the game as its player sees it: all hands, or buckets of them."""

    game: VectorGame | BucketedGame
    table: Table


def won_from(real: VectorGame, one: Sight, other: Sight) -> float:
    """What one player wins from another in chips per game: the mean over both seats, all cards and all bets."""
    layouts = [(one.game.layouts[seat], other.game.layouts[1 - seat]) for seat in (0, 1)]
    walks = (Walk(seat, (FOLLOW,), one.table, other.table, *layouts[seat]) for seat in (0, 1))
    return sum(map(real.walk, walks)) / 2


def course(
    solver: Cfr[TreeTables], real: VectorGame, opponent: Sight, seconds: float, watcher: Watcher, what: str
) -> list[tuple[float, int]]:
    """What the average strategy of a new solver wins from an opponent at each of `POINTS`, and its iterations there."""
    found, spent = list[tuple[float, int]](), 0.0
    solver.step(1)
    for share in POINTS.values():
        if spent < share * seconds:
            *_, took = timed(solver, Budget(seconds=share * seconds - spent), watcher, what)
            spent += took
        found.append((won_from(real, Sight(solver.tables.game, solver.average()), opponent), solver.iterations))
    return found


def _seen(game: VectorGame, buckets: int) -> BucketedGame:
    """A game of poker through an abstraction with imperfect recall, by percentiles of hand strength."""
    rules = game.game
    if not isinstance(rules, Holdem):
        raise GameError(f"{rules.name} has no cards: use a game of poker")
    with TemporaryDirectory() as folder:
        plan = "IR-PHS-PHS {}" + f"-{buckets}" * (rules.rules.rounds - 1)
        return BucketedGame.by(game, game_in_buckets(rules, "", plan, Path(folder) / "cards", seed=0).cards)


def _row(scheme: str, point: str) -> str:
    return f"{scheme}, {point}"


def figure(
    name: str, what: str, hint: str, game: str, minutes: float, quick: Request, *, bucketed: bool
) -> Reproduction:
    """A figure: `minutes` for each of `RUNS` runs of the schemes, in a game or in an abstraction of it."""
    source = what.partition(",")[0]

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        path = asked.out or Path(f"kilt-{name}.png")
        require_drawable(path)
        seconds = 60 * (minutes if asked.minutes is None else asked.minutes)
        runs, problem = RUNS if asked.runs is None else asked.runs, load_problem(asked.game or game, "pcs", form=VECTOR)
        assert isinstance(problem, VectorProblem)
        real, blind = problem.game, problem.big_blind
        unit, scale = (UNIT, 1.0) if blind is None else ("mbb/g", 1000 / blind)
        buckets = BUCKETS if asked.game in (None, game) else SMALL
        games = [_seen(real, size) for size in (buckets, round(FEWER * buckets))] if bucketed else [real, real]
        watcher.say(f"the opponent: {LONGER * seconds:g} s of one core")
        learner = Cfr(TreeTables(games[1], problem.dtype, scheme="pcs", seed=APART), "linear")
        learner.step(1)
        for _ in timed(learner, Budget(seconds=LONGER * seconds), watcher, "the opponent"):
            pass
        opponent = Sight(games[1], learner.average())
        more = {"opponent_exploitability": scale * games[1].exploitability(opponent.table)}
        rows, lines = list[Row](), dict[str, list[tuple[float, float, float]]]()
        for scheme in SCHEMES:
            if not any(_row(scheme, point) in (asked.only or made.rows) for point in POINTS):
                continue
            found = list[list[tuple[float, int]]]()
            for seed in range(runs):
                watcher.say(f"{scheme}, run {seed + 1} of {runs}", seconds)
                solver = Cfr(TreeTables(games[0], problem.dtype, scheme=scheme, seed=seed), "cfr")
                found.append(course(solver, real, opponent, seconds, watcher, scheme))
                if watcher.stopped():
                    return ReproductionResult(what, rows)
                if not solver.tables.draws:
                    break
            for place, (point, share) in enumerate(POINTS.items()):
                won, iterations = zip(*(run[place] for run in found), strict=True)
                also = more | {"iterations": round(np.mean(iterations))}
                spent = share * seconds * len(found)
                row = Row.of_runs(_row(scheme, point), [scale * one for one in won], unit, spent, also)
                if not solver.tables.draws:
                    row = row._replace(margin=None, runs=())
                if row.name in (asked.only or made.rows):
                    rows.append(row)
                    margin = 0.0 if row.margin in (None, inf) else row.margin
                    lines.setdefault(scheme.upper(), []).append((share * seconds, row.ours, margin or 0.0))
        drawn = {which: np.array(points) for which, points in lines.items()}
        plot_lines(drawn, f"{source}: {problem.name}", path, "CPU seconds", f"won [{unit}]", logarithmic=(True, False))
        return ReproductionResult(what, rows, path)

    made = Reproduction(
        what=what,
        time=f"{minutes:g} min for each of {RUNS} runs of {len(SCHEMES)} schemes, the opponent, and time to measure",
        rows=tuple(_row(scheme, point) for scheme in SCHEMES for point in POINTS),
        run=reproduce,
        options=("only", "game", "minutes", "out", "runs"),
        hint=hint,
        claims=(
            Claim(
                "PCS wins more than CS at every point of time",
                source,
                every(*(higher(_row("pcs", point), _row("cs", point)) for point in POINTS)),
            ),
        ),
        quick=quick,
        keeps=f"kilt-{name}.png",
    )
    return made


FIGURE_3_4 = figure(
    "figure-3.4",
    "[Johanson16 figure 3.4], on [2-4] hold'em: what CS and PCS win from a fixed opponent, in an abstract game",
    "--game short.2-1 for a small one",
    "holdem.2-4",
    0.2,
    Request(game="short.2-1", minutes=0.02, runs=3),
    bucketed=True,
)
FIGURE_3_6 = figure(
    "figure-3.6",
    "[Johanson16 figure 3.6], on Bluff(2,1): what CS and PCS win from an equilibrium but for ε",
    "--game bluff-2-2 for the game of the thesis: an iteration takes many seconds there",
    "bluff-2-1",
    0.25,
    Request(game="bluff-1-1", minutes=0.02, runs=3),
    bucketed=False,
)
