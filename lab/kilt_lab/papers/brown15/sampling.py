"""[Brown15 §§3, 5]: external sampling and pure CFR, sizes of the games, and the cost of latency."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kilt.evaluate.evaluator import Evaluator, evaluator_for
from kilt.solve.distributed.costs import BladeCosts, LinearCost
from kilt.solve.distributed.forecast import forecast
from kilt.solve.forms import load_problem
from kilt.solve.problem import FLAT, Problem
from kilt.solve.registry import make_solver
from kilt_lab.cells import Cell, CellBudget, RowSpec, Setting, changes, rows
from kilt_lab.claims import as_printed, lower, negative
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.convergence import solve_for, unit_of

GAMES, RACERS = ("kuhn", "one-card", "leduc", "bluff-1-1"), ("external", "pure")


def _row(algorithm: str, game: str) -> str:
    return f"{algorithm} on {game}"


def _loaded(game: str) -> tuple[Problem, Evaluator[Any]]:
    problem = load_problem(game, RACERS[0], form=FLAT)
    return problem, evaluator_for(problem)


@dataclass(frozen=True)
class PureCfr(Experiment):
    """Compare external sampling with pure CFR by exploitability on small games.

    External sampling and pure CFR visit the same nodes, but add different numbers to their tables. The paper says that
    external sampling converges faster.

    This experiment compares the exploitability of external sampling and pure CFR after the same time on one core, in
    four small games. Runs of the two algorithms alternate, so that other programs slow both equally.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Run a solver. The cell has the exploitability of its average strategy."""
        algorithm, _, game = case.partition(" on ")
        problem, evaluator = lab.shared(game, partial(_loaded, game), per="experiment")
        unit, scale = unit_of(problem)
        solver = make_solver(problem, algorithm, seed)
        solve_for(solver, lab.budget, lab, algorithm)
        end = scale * evaluator.exploitability(solver.average())
        return Cell({case: end}, more={"iterations": solver.iterations}, unit=unit)


PURE_CFR = PureCfr(
    "tartanian7-pure",
    "[Brown15 §3]",
    "Exploitability of external sampling and of pure CFR, on small games",
    rows=rows((_row(algorithm, game) for game in GAMES for algorithm in RACERS), "mbb/g"),
    claims={
        f"external sampling converges faster than pure CFR on {game}": lower(_row("external", game), _row("pure", game))
        for game in GAMES
    },
    defaults=Setting(budget=CellBudget.of(seconds=0.6), runs=20),
    quick=changes(budget=CellBudget.of(seconds=0.18), runs=10),
)

NODES, LARGE, SMALL = 6_104_546, 30_000, 5_000  # of the betting tree; buckets of a round, distributed and shared memory
BLADES, LATENCY, ITERATION = 60, 30e-6, 15e-3  # seconds
SOURCE = "[Brown15 §5]"
PAPER_5 = {  # counted, as printed, tolerance from rounding
    "nodes": (NODES * LARGE**2, 5.49e15, 5e12),
    "infoset-actions": ((NODES - 1) * LARGE, 1.8e11, 5e9),
    "nodes, shared memory": (NODES * SMALL**2, 1.5e14, 5e12),
    "infoset-actions, shared memory": ((NODES - 1) * SMALL, 3.1e10, 5e8),
    "decisions, from information sets": (1.1e10 / SMALL, 6.6e10 / LARGE, (5e8 / SMALL + 5e8 / LARGE)),
}
LATE = "latency's share of an iteration, less 1%"


def latency_share(latency: float = LATENCY, blades: int = BLADES) -> float:
    """Return the share of a simulated iteration, with one deal per batch, that is spent waiting for messages."""
    nothing = LinearCost(0.0, 0.0)
    costs = BladeCosts(np.full((1, blades), ITERATION), fixed=0.0, down=nothing, up=nothing, visits=1.0)
    slow, quick = (forecast(costs, (blades,), latency=one, batch=1, samples=1) for one in (latency, 0.0))
    return 1 - quick.iteration_seconds / slow.iteration_seconds


@dataclass(frozen=True)
class Sizes(Experiment):
    """Count the size of the paper's games, and simulate the cost of latency.

    This experiment recomputes the size of the paper's game. The paper does not say which bets the game has, but it says
    that the betting tree has 6,104,546 nodes, including leaves.

    The size of a game follows from the nodes of its betting tree and from its numbers of buckets. Each node of the
    betting tree occurs once for each pair of the players' buckets. Each action at a node needs one table entry for each
    bucket of the player who acts.

    The computed number of infoset-actions is slightly too high, for two reasons. It counts one action for every node
    except the root, although some nodes follow the deal of cards. It also counts every node as if it came after the
    flop, where there are more buckets than before.

    Distributed solving takes time for messages. In the paper, an iteration takes 15 ms and needs two messages of 30 µs
    each, which is 0.4% of the time. ``distributed.forecast`` simulates this cost for 60 workers with one core each.

    Messages cost no time at all in a simulation of the paper's distributed run: the main process sends the next deal
    while the workers are still busy with the current one.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Count, or simulate."""
        if case != LATE:
            return Cell({case: PAPER_5[case][0]}, exact=True)
        share = latency_share()
        return Cell({LATE: share - 0.01}, exact=True, more={"share": share, "paper_share": 2 * LATENCY / ITERATION})


SIZES = Sizes(
    "tartanian7-sizes",
    "[Brown15 §§3, 5]",
    "Sizes of Tartanian7's games, counted, and the cost of latency, simulated",
    rows=(*(RowSpec(name, "", printed) for name, (_, printed, _) in PAPER_5.items()), RowSpec(LATE, "")),
    claims={
        **{
            f"{name}: {printed:.3g}, computed from 6,104,546 nodes of betting": (SOURCE, as_printed(name, within))
            for name, (_, printed, within) in list(PAPER_5.items())[:4]
        },
        "both games have the same number of decisions: 6.6e10 information sets with 30,000 buckets, 1.1e10 with "
        "5,000": (
            SOURCE,
            as_printed("decisions, from information sets", PAPER_5["decisions, from information sets"][2]),
        ),
        "60 µs of latency in 15 ms are negligible: less than 1% of the time (kilt's margin)": (
            "[Brown15 §3]",
            negative(LATE),
        ),
    },
    time="a second",
    defaults=Setting(runs=0),
)
