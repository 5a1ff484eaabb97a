"""[Johanson16 figure 2.5, table 2.3] on games that fit here: what tilted payoffs do to real exploitability.

The paper solves abstractions of limit hold'em with payoffs that differ a little from the real ones, and finds that
strategies are less exploitable in the real game where the winner of a hand was paid a few percent more. Here each of
many abstractions of [2-1] or [2-4] hold'em, drawn at random, is solved by CFR+ on joint tables until an opponent who
sees the same buckets wins next to nothing; what an opponent wins who sees all cards is measured. A row is the mean
difference to no tilt, with its 95% interval over the abstractions; the paper's number is that of limit hold'em.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.joint import joint_tables
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import plan_named
from kilt.errors import GameError
from kilt.evaluate.flops import Watcher
from kilt.games.holdem import Holdem
from kilt.games.tilt import tilted
from kilt.jit import cores
from kilt.players.agents import load_holdem
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Cfr
from kilt.solve.joint import JointGame
from kilt.solve.tables.pairs import PairTables
from kilt.tree.vector import VectorGame
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.claims import Claim, Row, negative
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, decided

GAME = "holdem.2-1"
RUNS = 50  # abstractions
KINDS = ("PHS-PHS", "PHS-KO", "KE-PHS", "KE-KO")  # as in [Johanson16 table 5.4]
FEWEST, MOST = 3, 10  # buckets of a round
ITERATIONS = 500  # of CFR+
NO_TILT = (0.0, 0.0, 0.0, 0.0)

# Percentages: wins a showdown, loses one, folds, the opponent folds; and the paper's difference to no tilt, in mbb/g.
WINNER = {f"{percent:+d}%": (percent, 0, 0, percent) for percent in (-25, -14, -7, -4, 4, 7, 14, 25)}
PAPER_2_5 = {"+4%": 261.219 - 267.235, "+7%": 261.425 - 267.235}
AGENTS = {"Orange": (7, 0, 0, 7), "Peach": (0, 0, 0, 7), "Red": (0, -7, 0, 0), "Green": (0, -7, 0, -7)}
PAPER_2_3 = {
    "Orange": 227.457 - 235.294,
    "Peach": 228.325 - 235.294,
    "Red": 257.231 - 266.797,
    "Green": 263.702 - 266.797,
}


class Abstracted:
    """A game with a card abstraction, to be solved with tilts and judged without."""

    def __init__(self, game: Holdem, vectors: VectorGame, cards: CardAbstraction) -> None:
        self.game, self.cards, self.joint = game, cards, joint_tables(cards)
        self.abstract, self.seen = AbstractGame(game, cards), BucketedGame.by(vectors, cards)
        self.scale = 1000 / game.rules.big_blind

    def solver(self, tilt: Sequence[float] = NO_TILT, variant: str = "cfr+") -> Cfr[PairTables]:
        """A new solver for the abstract game with tilted payoffs."""
        return Cfr(PairTables(JointGame(AbstractGame(self._tilted(tilt), self.cards), self.joint)), variant)

    def real(self, strategy: ArrayLike) -> float:
        """Exploitability in the real game, in mbb/g."""
        return self.scale * self.seen.exploitability(self.seen.table_of(self.abstract, np.asarray(strategy)))

    def inside(self, strategy: ArrayLike) -> float:
        """Exploitability by opponents who see the same buckets, in mbb/g, without any tilt."""
        return self.scale * JointGame(self.abstract, self.joint).exploitability(np.asarray(strategy))

    def _tilted(self, tilt: Sequence[float]) -> Holdem:
        game = tilted(self.game, tilt)
        if not isinstance(game, Holdem):
            raise GameError(f"{self.game.name} is no poker: use a game with cards and bets")
        return game


def drawn_plan(number: int) -> str:
    """A perfect recall abstraction of two rounds, drawn at random: kind and buckets of each round are equally likely.

    >>> drawn_plan(0), drawn_plan(1)
    ('PR-KE-KO 8-7', 'PR-PHS-KO 7-9')
    """
    draws = np.random.default_rng(number)
    kind = KINDS[draws.integers(len(KINDS))]
    return f"PR-{kind} {'-'.join(str(buckets) for buckets in draws.integers(FEWEST, MOST + 1, 2))}"


def drawn_abstractions(game: Holdem, runs: int, threads: int, watcher: Watcher) -> Iterator[tuple[str, Abstracted]]:
    """A game with abstractions drawn at random, by name, one after another, until the user wishes to stop.

    Abstraction i is that of `drawn_plan`, clustered with the seed i.
    """
    vectors, deal = VectorGame(game, threads=threads), Deal.of(game)
    for number in range(runs):
        if watcher.stopped():
            return
        plan = drawn_plan(number)
        watcher.say(f"{plan}, abstraction {number + 1} of {runs}")
        spec = AbstractionSpec(plan, deal, replace(plan_named(plan, deal.board_cards), seed=number))
        with TemporaryDirectory() as folder:
            cards = build(spec, Path(folder) / "cards", cache=artifact.cache_folder(), threads=threads)
            yield f"{plan}, seed {number}", Abstracted(game, vectors, cards)


def tilts(
    name: str, what: str, rows: Mapping[str, Sequence[float]], paper: Mapping[str, float], *, picture: bool
) -> Reproduction:
    """A table or figure of tilts: how real exploitability differs from that without a tilt."""

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        path = asked.out or Path(f"kilt-{name}.png")
        if picture:
            require_drawable(path)
        threads = cores() if asked.threads is None else asked.threads
        game, runs = load_holdem(asked.game or GAME), RUNS if asked.runs is None else asked.runs
        plain = dict[str, float]()
        found: dict[str, dict[str, float]] = {row: {} for row in asked.only or rows}
        began = perf_counter()
        for abstraction, case in drawn_abstractions(game, runs, threads, watcher):
            plain[abstraction] = _solved(case, NO_TILT)
            for number, (row, differences) in enumerate(found.items()):
                watcher.show(row, (len(plain) - 1 + number / len(found)) / runs, None)
                differences[abstraction] = _solved(case, rows[row]) - plain[abstraction]
        seconds = (perf_counter() - began) / len(found)
        made = [_row(row, rows[row], those, plain, paper, seconds) for row, those in found.items()] if plain else []
        if picture and made:
            margins = [0.0 if row.margin in (None, inf) else row.margin for row in made]
            points = [(row.more["tilt"][0], row.ours, margin) for row, margin in zip(made, margins, strict=True)]
            title = f"{what.partition(',')[0]}, {game.name}: real exploitability less that without a tilt"
            lines = {f"mean of {len(plain)} abstractions": np.array(sorted([(0.0, 0.0, 0.0), *points]))}
            plot_lines(lines, title, path, "tilt of the winner [%]", "difference [mbb/g]")
        return ReproductionResult(what, made, path if picture and made else None)

    return Reproduction(
        what=what,
        time=f"a second for each of {RUNS} abstractions in each row, and some to build it",
        rows=tuple(rows),
        run=reproduce,
        options=("only", "game", "threads", "runs", *["out"] * picture),
        hint="--runs is the number of abstractions, drawn at random; --game holdem.2-4 for a larger game",
        claims=tuple(
            Claim(
                f"real exploitability is lower with the tilt of {row}, in the mean over abstractions",
                what.partition(",")[0],
                negative(row),
            )
            for row in paper
        ),
        quick=Request(only=tuple(paper), runs=6),
        keeps=f"kilt-{name}.png" if picture else "",
    )


def _row(
    row: str,
    tilt: Sequence[float],
    differences: Mapping[str, float],
    plain: Mapping[str, float],
    paper: Mapping[str, float],
    seconds: float,
) -> Row:
    """The mean difference to no tilt, by abstraction; `plain` is real exploitability without one."""
    whole = Row.of_runs(row, differences.values(), "mbb/g", seconds, paper=paper.get(row))
    without = float(np.mean([*plain.values()]))
    more = {
        "tilt": list(tilt),
        "exploitability": without + whole.ours,
        "without": without,
        "lower_in": sum(value < 0 for value in differences.values()),
        "decided": decided(whole.ours, whole.margin or 0.0),
        "abstractions": dict(differences),
    }
    return whole._replace(more=more)


def _solved(case: Abstracted, tilt: Sequence[float]) -> float:
    """Real exploitability of the solution of an abstract game with a tilt, in mbb/g."""
    solver = case.solver(tilt)
    solver.step(ITERATIONS)
    return case.real(solver.average())


FIGURE_2_5 = tilts(
    "figure-2.5",
    "[Johanson16 figure 2.5], small: real exploitability by the winner's tilt, less that without",
    WINNER,
    PAPER_2_5,
    picture=True,
)
TABLE_2_3 = tilts(
    "table-2.3",
    "[Johanson16 table 2.3], small: real exploitability with the agents' tilts, less that without",
    AGENTS,
    PAPER_2_3,
    picture=False,
)
