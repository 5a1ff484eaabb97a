"""[Johanson16 figure 2.5, table 2.3] on a game that fits here: what tilted payoffs do to real exploitability.

The paper solves abstractions of limit hold'em with payoffs that differ a little from the real ones, and finds that
strategies are less exploitable in the real game where the winner of a hand was paid a few percent more. Here several
abstractions of [2-1] hold'em are solved, by CFR+ on joint tables until an opponent who sees the same buckets wins next
to nothing; what an opponent wins who sees all cards is measured. A row is the difference to no tilt, with its 95%
interval over the abstractions; the paper's number is the same difference in limit hold'em.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from kilt.errors import GameError
from kilt.evaluate.flops import Watcher
from kilt.evaluate.players import load_holdem
from kilt.evaluate.stats import student_width
from kilt.games.holdem import Holdem
from kilt.games.tilt import tilted
from kilt.jit import cores
from kilt.reproduce.claims import Claim, Row, negative
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request, decided
from kilt.solve.abstract import BucketedGame
from kilt.solve.joint import JointCfr, JointGame
from kilt.tree.vector import VectorGame
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable

GAME = "holdem.2-1"
PLANS = tuple(f"PR-PHS-PHS {n}-{n}" for n in range(3, 11))
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

    def solver(self, tilt: Sequence[float] = NO_TILT, variant: str = "cfr+") -> JointCfr:
        """A new solver for the abstract game with tilted payoffs."""
        return JointCfr(JointGame(AbstractGame(self._tilted(tilt), self.cards), self.joint), variant)

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


def abstracted(game: Holdem, plans: Sequence[str], threads: int, watcher: Watcher) -> Mapping[str, Abstracted]:
    """A game with each of some card abstractions, which are built for that."""
    vectors = VectorGame(game, threads=threads)
    found = {}
    for plan in plans:
        watcher.say(f"building {plan}")
        with TemporaryDirectory() as folder:
            spec = AbstractionSpec.named(plan, Deal.of(game))
            cards = build(spec, Path(folder) / "cards", cache=artifact.cache_folder(), threads=threads)
            found[plan] = Abstracted(game, vectors, cards)
    return found


def tilts(
    name: str, what: str, rows: Mapping[str, Sequence[float]], paper: Mapping[str, float], *, picture: bool
) -> Reproduction:
    """A table or figure of tilts: how real exploitability differs from that without a tilt."""

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        path = asked.out or Path(f"kilt-{name}.png")
        if picture:
            require_drawable(path)
        threads = cores() if asked.threads is None else asked.threads
        cases = abstracted(load_holdem(asked.game or GAME), PLANS, threads, watcher)
        plain = {plan: _solved(case, NO_TILT) for plan, case in cases.items()}
        found = []
        for row in asked.only or rows:
            began = perf_counter()
            watcher.say(f"{row}: {len(cases)} abstractions")
            if watcher.stopped():
                break
            differences = {plan: _solved(case, rows[row]) - plain[plan] for plan, case in cases.items()}
            values = np.array(list(differences.values()))
            margin = student_width(len(values)) * float(values.std(ddof=1))
            more = {
                "tilt": list(rows[row]),
                "exploitability": float(np.mean([plain[plan] + differences[plan] for plan in cases])),
                "without": float(np.mean(list(plain.values()))),
                "lower_in": int((values < 0).sum()),
                "decided": decided(float(values.mean()), margin),
                "abstractions": differences,
            }
            seconds = perf_counter() - began
            found.append(Row(row, paper.get(row), float(values.mean()), "mbb/g", seconds, more, margin))
        if picture and found:
            points = sorted([(0.0, 0.0, 0.0), *((row.more["tilt"][0], row.ours, row.margin or 0.0) for row in found)])
            plot_lines({"mean": np.array(points)}, what, path, "tilt of the winner [%]", "difference [mbb/g]")
        return ReproductionResult(what, found, path if picture and found else None)

    return Reproduction(
        what=what,
        time=f"a second or two for each of {len(PLANS)} abstractions in each row",
        rows=tuple(rows),
        run=reproduce,
        options=("only", "game", "threads", *["out"] * picture),
        claims=tuple(
            Claim(
                f"real exploitability is lower with the tilt of {row}, here over all abstractions",
                what.partition(",")[0],
                negative(row),
            )
            for row in paper
        ),
        quick=Request(only=tuple(paper)),
        keeps=f"kilt-{name}.png" if picture else "",
    )


def _solved(case: Abstracted, tilt: Sequence[float]) -> float:
    """Real exploitability of the solution of an abstract game with a tilt, in mbb/g."""
    solver = case.solver(tilt)
    solver.step(ITERATIONS)
    return case.real(solver.average())


FIGURE_2_5 = tilts(
    "figure-2.5",
    "[Johanson16 figure 2.5], on [2-1] hold'em: real exploitability by the winner's tilt, less that without",
    WINNER,
    PAPER_2_5,
    picture=True,
)
TABLE_2_3 = tilts(
    "table-2.3",
    "[Johanson16 table 2.3], on [2-1] hold'em: real exploitability with the agents' tilts, less that without",
    AGENTS,
    PAPER_2_3,
    picture=False,
)
