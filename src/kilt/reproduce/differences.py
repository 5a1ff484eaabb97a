"""What kilt does otherwise than [Brown15 algorithm 4] in its sampling, by exact exploitability on small games.

Linear weights are compared with equal ones, on Leduc hold'em. Both walk the same deal for both players and count the
actions that are drawn; the paper deals for each player and adds the opponent's probabilities, as external sampling on
flat trees does here, so that these two effects are measured together. Flat trees tell suits apart, and would have more
to learn: so that is compared on Leduc hold'em with six ranks of one suit. Rows are exploitability; runs have seeds of
their own.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

from kilt.evaluate.flops import Watcher
from kilt.evaluate.judge import judge_of
from kilt.reproduce.algorithm_4 import RankedLeduc
from kilt.reproduce.claims import Claim, Row, contrast, lower
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request
from kilt.solve.external import External, SamplingOptions
from kilt.solve.forms import load_problem
from kilt.solve.problem import FLAT
from kilt.solve.registry import make_solver

ITERATIONS, RUNS = (100_000, 1_000_000), 20
WORSE = 1.0  # mbb/g that count as nothing


class SamplingCase(NamedTuple):
    """A row, but for its iterations: a deck, and how it is solved."""

    deck: tuple[int, int]  # ranks and suits
    linear: bool = False
    flat: bool = False  # whether each player has deals of their own, and the opponent's probabilities are added

    def exploitability(self, iterations: int, seed: int, folder: Path) -> float:
        """Of what external sampling finds, in mbb/g."""
        ranks, suits = self.deck
        game = RankedLeduc(ranks, folder, suits)
        if self.flat:
            problem = load_problem(game.abstract.game, "external", form=FLAT)
            solver = make_solver(problem, "external", seed)
            solver.step(iterations)
            return 1000 / game.abstract.game.rules.big_blind * judge_of(problem).exploitability(solver.average())
        sampled = External(game.abstract, seed, SamplingOptions(linear=self.linear), dtype="uint16")
        sampled.step(iterations)
        return game.exploitability(sampled.average())


LINEAR, EQUAL, SHARED, APART = "linear weights", "equal weights", "one deal, draws counted", "two deals, probabilities"
CASES = {
    LINEAR: SamplingCase((3, 2), linear=True),
    EQUAL: SamplingCase((3, 2)),
    SHARED: SamplingCase((6, 1)),
    APART: SamplingCase((6, 1), flat=True),
}
ROWS = {f"{name}, {n:,} iterations": (case, n) for n in ITERATIONS for name, case in CASES.items()}


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    rows, runs = list[Row](), RUNS if asked.runs is None else asked.runs
    for name in asked.only or ROWS:
        (case, iterations), began, ends = ROWS[name], process_time(), list[float]()
        with TemporaryDirectory() as folder:
            for seed in range(runs):
                if watcher.stopped():
                    return ReproductionResult(TABLE.what, rows)
                watcher.show(name, seed / runs, None)
                ends.append(case.exploitability(iterations, seed, Path(folder)))
        rows.append(Row.of_runs(name, ends, "mbb/g", process_time() - began))
    return ReproductionResult(TABLE.what, rows)


TABLE = Reproduction(
    what="where sampling differs from [Brown15]: weights, deals and counts, by exact exploitability on small games",
    time=f"a second for each of {RUNS} runs of the rows",
    rows=tuple(ROWS),
    run=_reproduce,
    options=("only", "runs"),
    claims=tuple(
        claim
        for n in ITERATIONS
        for claim in (
            Claim(
                f"linear weights are better than equal ones, after {n:,} iterations",
                "[Brown15 §3] has equal ones",
                lower(f"{LINEAR}, {n:,} iterations", f"{EQUAL}, {n:,} iterations"),
            ),
            Claim(
                f"one deal for both players and counts of drawn actions cost {WORSE:g} mbb/g at most, after {n:,}",
                "[Brown15 algorithm 4] has two deals, and probabilities",
                contrast({f"{APART}, {n:,} iterations": 1.0, f"{SHARED}, {n:,} iterations": -1.0}, -WORSE),
            ),
        )
    ),
    quick=Request(only=tuple(list(ROWS)[:4]), runs=5),
)
