"""[Johanson16 chapter 3]: chance sampling schemes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kilt.errors import GameError
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Cfr
from kilt.solve.forms import load_problem
from kilt.solve.problem import VECTOR, VectorProblem
from kilt.solve.tables.memory import TreeTables
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW, Table
from kilt.tree.walks import Walk
from kilt_lab.cells import Axes, Cell, CellBudget, RowSpec, Setting, changes, rows
from kilt_lab.claims import every, higher, lower
from kilt_lab.experiment import Experiment, Found, Lab
from kilt_lab.pieces.agents import cards_in_buckets, game_in_buckets
from kilt_lab.pieces.convergence import POINTS, RUNS, Convergence, is_random, solve_for, solve_to, unit_of
from kilt_lab.pieces.tilts import Abstracted

SCHEMES = ("cs", "opcs", "spcs", "pcs", "cfr+")

FIGURE_3_2 = Convergence(
    "figure-3.2",
    "[Johanson16 figure 3.2]",
    "Convergence of chance sampling schemes and CFR+ on [2-1] hold'em",
    rows=rows(SCHEMES, "mbb/g"),
    claims={
        "PCS converges much more quickly than CS: its exploitability is less than half of that of CS "
        "(kilt's margin)": lower("pcs", "cs", factor=0.5),
        "OPCS converges more slowly than CS": lower("cs", "opcs"),
        "SPCS converges more slowly than CS": lower("cs", "spcs"),
    },
    hint="--setting 2-4 for the other half of the figure",
    defaults=Setting("holdem.2-1", CellBudget.of(minutes=2), RUNS),
    quick=changes(jobs=0, only=SCHEMES[:4], game="short.2-1", budget=CellBudget.of(seconds=3), runs=3),
    settings={
        "2-1": changes(budget=CellBudget.of(seconds=15)),
        "2-4": changes(game="holdem.2-4", budget=CellBudget.of(minutes=1), runs=3, only=SCHEMES[:4]),
        "2-4-brief": changes(game="holdem.2-4", budget=CellBudget.of(seconds=6)),
    },
)
FIGURE_3_5 = Convergence(
    "figure-3.5",
    "[Johanson16 figure 3.5]",
    "Convergence of chance sampling schemes and CFR+ on Bluff(2,2)",
    rows=rows(SCHEMES, "chips per game"),
    claims={
        "PCS, which samples nothing in this game, converges significantly faster than CS: its exploitability is "
        "less than half of that of CS (kilt's margin)": lower("pcs", "cs", factor=0.5),
    },
    hint="--setting 2-1 for a smaller game, --game bluff-1-1 for the smallest",
    defaults=Setting("bluff-2-2", CellBudget.of(minutes=30), RUNS),
    quick=changes(only=("cs", "pcs"), game="bluff-1-1", budget=CellBudget.of(seconds=3), runs=3),
    settings={"2-1": changes(game="bluff-2-1", budget=CellBudget.of(seconds=6))},
)

SIZES, CS_PCS = (2, 5, 10, 20, 50), ("cs", "pcs")  # buckets a round, with perfect recall


def _size(size: int, scheme: str) -> str:
    return f"{size} buckets, {scheme}"


@dataclass(frozen=True)
class GrowingGames(Experiment):
    """Compare chance sampling with public chance sampling in abstract games of growing size.

    Chance sampling is ahead of public chance sampling in the smallest of four abstractions of limit hold'em, according
    to the thesis. As abstractions grow, public chance sampling overtakes it. Chance sampling draws the board and both
    hands in each iteration, and public chance sampling draws only the board.

    This experiment compares chance sampling and public chance sampling in a smaller game than the thesis. Buckets are
    percentiles of hand strength with perfect recall, as in the thesis. The experiment measures how much an opponent who
    sees the same buckets wins against each strategy.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Run a sampling scheme in one of the abstract games."""
        words, _, scheme = case.partition(" buckets, ")
        game = lab.shared(words, lambda: self.abstracted(int(words), lab), per="experiment")
        solver = Cfr(TreeTables(game.seen, scheme=scheme, seed=seed), "cfr")
        solve_for(solver, lab.budget, lab, scheme)
        end = game.inside(game.seen.shares_of(game.abstract, solver.average(), np.uint32))
        return Cell({case: end}, more={"iterations": solver.iterations, "information_sets": game.seen.infosets})

    def abstracted(self, size: int, lab: Lab) -> Abstracted:
        """Return the game through an abstraction with `size` buckets per round."""
        rules = load_holdem(lab.game)
        plan = "PR-PHS-PHS " + "-".join([str(size)] * rules.rules.rounds)
        vectors = lab.shared("vectors", lambda: VectorGame(rules), per="experiment")
        return Abstracted(rules, vectors, cards_in_buckets(rules, plan, lab.scratch() / "cards"))

    def draw(self, found: Found, path: Path) -> None:
        """Draw exploitability over the number of information sets."""
        sizes = {row.name: row.more["information_sets"] for row in found.rows}
        found.plot({name: (name.rpartition(" ")[2].upper(), size) for name, size in sizes.items()}, path)


FIGURE_3_3 = GrowingGames(
    "figure-3.3",
    "[Johanson16 figure 3.3]",
    "CS and PCS in abstract games of growing size, on [2-4] hold'em",
    rows=rows((_size(size, scheme) for size in SIZES for scheme in CS_PCS), "mbb/g"),
    axes=Axes("information sets", "exploitability [{unit}]"),
    claims={
        f"with {size} buckets per round, {first.upper()} is less exploitable inside the abstraction than "
        f"{second.upper()}": lower(_size(size, first), _size(size, second))
        for size, first, second in ((SIZES[0], "cs", "pcs"), (SIZES[-1], "pcs", "cs"))
    },
    defaults=Setting("holdem.2-4", CellBudget.of(seconds=30), RUNS),
    quick=changes(
        game="holdem.2-1",
        budget=CellBudget.of(seconds=1.2),
        runs=3,
        only=tuple(_size(n, way) for n in (2, 20) for way in CS_PCS),
    ),
    settings={"brief": changes(budget=CellBudget.of(seconds=6))},
)

LONGER, APART = 4, 1000  # factor by which opponents learn longer, and offset of their seeds
BUCKETS, SMALL = 1000, 50  # of each round after the first: in the default game of figure 3.4, and in other games
FEWER = 0.9  # the opponent's share of these buckets


class Sight(NamedTuple):
    """A strategy, and the game as its player sees it: all hands, or buckets of them."""

    game: VectorGame | BucketedGame
    table: Table


class Matched(NamedTuple):
    """The objects that all runs of a figure share: the real game, the game of the player, and the opponent."""

    problem: VectorProblem
    seen: VectorGame | BucketedGame
    opponent: Sight
    exploitability: float  # of the opponent


def won_from(real: VectorGame, one: Sight, other: Sight) -> float:
    """Return exact winnings against another player in chips per game: the mean over seats, cards and bets."""
    layouts = [(one.game.layouts[seat], other.game.layouts[1 - seat]) for seat in (0, 1)]
    walks = (Walk(seat, (FOLLOW,), one.table, other.table, *layouts[seat]) for seat in (0, 1))
    return sum(map(real.walk, walks)) / 2


@dataclass(frozen=True)
class AgainstOpponent(Experiment):
    """Compare chance sampling with public chance sampling by winnings against a fixed opponent, over time.

    Matches against a fixed opponent show which of two solvers is ahead in games that are too large for best responses.
    In this way, the thesis compares chance sampling, which draws the board and both hands, with public chance sampling,
    which draws only the board. Public chance sampling wins more at every measured time.

    Figure 3.4 of the thesis uses an abstraction of limit hold'em with 880 million information sets, and an opponent
    with a slightly smaller abstraction. Figure 3.6 uses the dice game Bluff(2,2), and an opponent who is close to an
    equilibrium.

    This experiment repeats figures 3.4 and 3.6 of the thesis in smaller games. For figure 3.4, the game is an
    abstraction of [2-4] hold'em, and the opponent has nine tenths of its buckets. For figure 3.6, the game is
    Bluff(2,1), with two dice against one.

    The fixed opponent is solved for four times as long as the compared strategies, with another random seed. Its solver
    is public chance sampling with linear weights. Winnings are exact means over all cards, all bets and both seats.
    """

    bucketed: bool = False

    def check(self, setting: Setting) -> None:
        """Load the game if it is not the default. Raises an error if PCS cannot solve it."""
        if setting.game != self.defaults.game:
            load_problem(setting.game, "pcs", form=VECTOR)

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Return what the average strategy of a scheme wins at each point."""
        known = lab.shared("opponent", lambda: self.matched(lab), per="experiment")
        unit, scale = unit_of(known.problem)
        solver = Cfr(TreeTables(known.seen, known.problem.dtype, scheme=case, seed=seed), "cfr")
        values, more = dict[str, float](), dict[str, Any]()
        for point in solve_to(solver, POINTS, lab.budget, lab, case):
            won = won_from(known.problem.game, Sight(solver.tables.game, solver.average()), known.opponent)
            values[_at(case, point)] = scale * won
            more[_at(case, point)] = {
                "opponent_exploitability": scale * known.exploitability,
                "iterations": solver.iterations,
            }
        return Cell(values, not is_random(solver.tables), more, unit=unit)

    def matched(self, lab: Lab) -> Matched:
        """Return the games and the solved opponent."""
        problem = load_problem(lab.game, "pcs", form=VECTOR)
        assert isinstance(problem, VectorProblem)
        real, buckets = problem.game, BUCKETS if lab.game == self.defaults.game else SMALL
        sizes = buckets, round(FEWER * buckets)
        seen, theirs = [_seen(real, size, lab) for size in sizes] if self.bucketed else [real, real]
        learner = Cfr(TreeTables(theirs, problem.dtype, scheme="pcs", seed=APART), "linear")
        solve_for(learner, lab.budget, lab, "the opponent", LONGER)
        opponent = Sight(theirs, learner.average())
        return Matched(problem, seen, opponent, theirs.exploitability(opponent.table))


def _at(scheme: str, point: str) -> str:
    return f"{scheme}, {point}"


def _seen(game: VectorGame, buckets: int, lab: Lab) -> BucketedGame:
    """Return the game through an abstraction of percentiles with imperfect recall. Raises GameError without cards."""
    rules = game.game
    if not isinstance(rules, Holdem):
        raise GameError(f"{rules.name} has no cards: use a game of poker")
    plan = "IR-PHS-PHS {}" + f"-{buckets}" * (rules.rules.rounds - 1)
    return BucketedGame.with_abstraction(game, game_in_buckets(rules, "", plan, lab.scratch() / "cards", seed=0).cards)


def _figure(name: str, source: str, title: str, hint: str, bucketed: bool, plain: Setting, quick: str) -> Experiment:
    return AgainstOpponent(
        name,
        source,
        title,
        rows=tuple(
            RowSpec(_at(scheme, point), "mbb/g", cases=(scheme,), at=(scheme.upper(), share))
            for scheme in CS_PCS
            for point, share in POINTS.items()
        ),
        axes=Axes("", "winnings [{unit}]", logarithmic=(True, False)),
        claims={
            "PCS wins more than CS at every point in time": every(
                *(higher(_at("pcs", point), _at("cs", point)) for point in POINTS)
            ),
        },
        hint=hint,
        time="a solution for the opponent takes four times as long",
        defaults=plain,
        quick=changes(game=quick, budget=CellBudget.of(seconds=1.2), runs=3),
        bucketed=bucketed,
    )


FIGURE_3_4 = _figure(
    "figure-3.4",
    "[Johanson16 figure 3.4]",
    "Winnings of CS and PCS against a fixed opponent, in an abstract game of [2-4] hold'em",
    "--game short.2-1 for a small game",
    True,
    Setting("holdem.2-4", CellBudget.of(seconds=12), RUNS),
    "short.2-1",
)
FIGURE_3_6 = _figure(
    "figure-3.6",
    "[Johanson16 figure 3.6]",
    "Winnings of CS and PCS against an ε-equilibrium, on Bluff(2,1)",
    "--game bluff-2-2 for the game of the thesis, where an iteration takes many seconds",
    False,
    Setting("bluff-2-1", CellBudget.of(seconds=15), RUNS),
    "bluff-1-1",
)
