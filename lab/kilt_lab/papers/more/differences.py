"""An experiment on the differences between the sampling of kilt and that of [Brown15 algorithm 4]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kilt.evaluate.evaluator import evaluator_for
from kilt.evaluate.head_to_head import AbstractStrategy
from kilt.games.playable import load_holdem
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.solve.forms import load_problem
from kilt.solve.problem import FLAT
from kilt.solve.registry import make_solver
from kilt_lab.cells import Cell, RowSpec, Setting, changes
from kilt_lab.claims import contrast, lower, positive
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.agents import game_in_buckets, visit, won_by
from kilt_lab.pieces.ranked_leduc import RankedLeduc

ITERATIONS = (100_000, 1_000_000)
GAME, ACTIONS, CARDS = "short.nolimit.2p", "50%, 1x, a; 1x, a; a", "IR-KE-KO {}-100-100-100"
NODES, DEALS = (4_000_000, 16_000_000, 64_000_000), 20_000
SOURCE, WORSE = "[Brown15 §3] uses equal weights", 1.0  # mbb/g that count as no difference


class SamplingCase(NamedTuple):
    """A row without its iterations: a deck, and how it is solved."""

    deck: tuple[int, int]  # ranks and suits
    linear: bool = False
    flat: bool = False  # whether each player has separate deals, and the opponent's probabilities are added

    def exploitability(self, iterations: int, seed: int, folder: Path) -> float:
        """Return the exploitability of external sampling, in mbb/g."""
        ranks, suits = self.deck
        game = RankedLeduc(ranks, folder, suits)
        if self.flat:
            problem = load_problem(game.abstract.game, "external", form=FLAT)
            solver = make_solver(problem, "external", seed)
            solver.step(iterations)
            return 1000 / game.abstract.game.rules.big_blind * evaluator_for(problem).exploitability(solver.average())
        sampled = ExternalMCCFR(game.abstract, seed, SamplingOptions(linear=self.linear), dtype="uint16")
        sampled.step(iterations)
        return game.exploitability(sampled.average())


LINEAR, EQUAL, SHARED, APART = "linear weights", "equal weights", "one deal, draws counted", "two deals, probabilities"
CASES = {
    LINEAR: SamplingCase((3, 2), linear=True),
    EQUAL: SamplingCase((3, 2)),
    SHARED: SamplingCase((6, 1)),
    APART: SamplingCase((6, 1), flat=True),
}


def won_by_linear(nodes: int, seed: int, folder: Path) -> float:
    """Return winnings of linear against equal weights in mbb/h, after both solvers have visited `nodes` nodes."""
    abstract = game_in_buckets(load_holdem(GAME), ACTIONS, CARDS, folder / f"cards-{seed}", seed)
    solvers = [ExternalMCCFR(abstract, seed, SamplingOptions(linear=linear)) for linear in (True, False)]
    for solver in solvers:
        visit(solver, nodes)
    one, other = (AbstractStrategy(abstract, solver.average()) for solver in solvers)
    return won_by(one, other, DEALS, seed)


IN_PLAY = {nodes: f"{LINEAR} against {EQUAL}, {nodes:,} nodes" for nodes in NODES}
Measure = Callable[[int, Path], float]  # of a seed and a folder
ROWS: dict[str, tuple[Measure, str]] = {  # with units
    **{
        f"{name}, {n:,} iterations": (partial(case.exploitability, n), "mbb/g")
        for n in ITERATIONS
        for name, case in CASES.items()
    },
    **{row: (partial(won_by_linear, nodes), "mbb/h") for nodes, row in IN_PLAY.items()},
}


@dataclass(frozen=True)
class Differences(Experiment):
    """Measure how kilt's differences from the paper in sampling affect strategies, on small games.

    kilt samples deals and actions differently from the paper. This experiment measures whether the differences help.
    The first difference is how much an iteration counts: in kilt, its weight grows linearly with its number, and in the
    paper, all iterations have the same weight.

    The experiment compares linear with equal weights of iterations in two games. In Leduc hold'em, it measures exact
    exploitability. In no-limit hold'em with 20 cards, where strategies are still far from an equilibrium, linear
    weights play matches against equal weights, with the same buckets.

    External sampling in kilt differs from the paper's in two more ways. kilt uses one deal for both players, while the
    paper deals separately for each. kilt counts the opponent's sampled actions, while the paper adds the probabilities
    of all the opponent's actions.

    The experiment measures the joint effect of two differences in sampling: one deal for both players, and counts of
    sampled actions. It compares kilt's usual external sampling with external sampling on flat trees, which has neither
    difference.

    Flat trees treat suits as different, so a solver has more to learn on them. For a fair comparison, the experiment
    uses a deck of a single suit: Leduc hold'em with six ranks.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Measure a row."""
        measured, _ = ROWS[case]
        return Cell({case: measured(seed, lab.scratch())})


TABLE = Differences(
    "differences",
    "",
    "Differences from the sampling of [Brown15]: weights, deals and counts, on small games",
    rows=tuple(RowSpec(name, unit) for name, (_, unit) in ROWS.items()),
    claims={
        says: slack
        for n in ITERATIONS
        for says, slack in {
            f"linear weights are less exploitable than equal weights after {n:,} iterations": (
                SOURCE,
                lower(f"{LINEAR}, {n:,} iterations", f"{EQUAL}, {n:,} iterations"),
            ),
            f"one deal for both players and counts of sampled actions cost at most {WORSE:g} mbb/g after {n:,} "
            "iterations": (
                "[Brown15 algorithm 4] uses two deals and probabilities",
                contrast({f"{APART}, {n:,} iterations": 1.0, f"{SHARED}, {n:,} iterations": -1.0}, -WORSE),
            ),
        }.items()
    }
    | {
        f"linear weights win against equal weights after {nodes:,} nodes": (SOURCE, positive(row))
        for nodes, row in IN_PLAY.items()
    },
    time="a few seconds for each run of each row",
    defaults=Setting(runs=20),
    quick=changes(jobs=0, only=(*list(ROWS)[: len(CASES)], IN_PLAY[NODES[0]]), runs=5),
)
