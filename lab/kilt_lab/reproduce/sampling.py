"""Other races between solvers: external sampling and pure CFR [Brown15 §3], CFR and CFR-BR [Johanson16 figure 4.3].

External sampling and pure CFR walk over the same nodes and differ in what they add. All runs of a game have as much
time of one core, and the two take turns, run by run: what else the machine does slows both down alike.
"""

from __future__ import annotations

import numpy as np

from kilt.evaluate.flops import Watcher
from kilt.evaluate.judge import UNIT, judge_of
from kilt.solve.forms import load_problem
from kilt.solve.problem import FLAT
from kilt.solve.registry import make_solver
from kilt_lab.reproduce.claims import Claim, Row, lower
from kilt_lab.reproduce.convergence import figure, solve_for
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

SOURCE, GAMES, RACERS = "[Brown15 §3]", ("kuhn", "one-card", "leduc", "bluff-1-1"), ("external", "pure")
MINUTES, RUNS = 0.01, 20


def _row(algorithm: str, game: str) -> str:
    return f"{algorithm} on {game}"


def _pure(asked: Request, watcher: Watcher) -> ReproductionResult:
    seconds, runs = 60 * (MINUTES if asked.minutes is None else asked.minutes), asked.runs or RUNS
    chosen, rows = asked.only or PURE.rows, list[Row]()
    for game in GAMES:
        racers = [algorithm for algorithm in RACERS if _row(algorithm, game) in chosen]
        if not racers:
            continue
        problem = load_problem(game, racers[0], form=FLAT)
        judge, blind = judge_of(problem), problem.big_blind
        unit, scale = (UNIT, 1.0) if blind is None else ("mbb/g", 1000 / blind)
        ends: dict[str, list[float]] = {algorithm: [] for algorithm in racers}
        iterations: dict[str, list[int]] = {algorithm: [] for algorithm in racers}
        for seed in range(runs):
            for algorithm in racers:
                watcher.say(f"{_row(algorithm, game)}, run {seed + 1} of {runs}", seconds)
                solver = make_solver(problem, algorithm, seed)
                solve_for(solver, seconds, watcher, algorithm)
                if watcher.stopped():
                    return ReproductionResult(PURE.what, rows)
                ends[algorithm].append(scale * judge.exploitability(solver.average()))
                iterations[algorithm].append(solver.iterations)
        for algorithm in racers:
            more = {"iterations": round(np.mean(iterations[algorithm]))}
            rows.append(Row.of_runs(_row(algorithm, game), ends[algorithm], unit, runs * seconds, more))
    return ReproductionResult(PURE.what, rows)


PURE = Reproduction(
    what="[Brown15 §3]: exploitability by external sampling and by pure CFR, on small games",
    time=f"{60 * MINUTES:g} s for each of {RUNS} runs of {len(RACERS)} algorithms on {len(GAMES)} games",
    rows=tuple(_row(algorithm, game) for game in GAMES for algorithm in RACERS),
    run=_pure,
    options=("only", "minutes", "runs"),
    hint="--minutes are those of one core for each run",
    claims=tuple(
        Claim(
            f"external sampling converges faster than pure CFR, on {game}",
            SOURCE,
            lower(_row("external", game), _row("pure", game)),
        )
        for game in GAMES
    ),
    quick=Request(minutes=0.003, runs=10),
)
FIGURE_4_3 = figure(
    "figure-4.3",
    what="[Johanson16 figure 4.3]: CFR and CFR-BR on [2-4] hold'em without abstraction",
    hint="--game holdem.2-1 or leduc for a smaller one",
    game="holdem.2-4",
    algorithms=("pcs", "cfr-br:1"),
    minutes=10,
    claims=(
        Claim(
            "CFR-BR's average strategy converges slower than that of public chance sampled CFR",
            "[Johanson16 figure 4.3]",
            lower("pcs", "cfr-br:1"),
        ),
    ),
    quick=Request(game="leduc", minutes=0.05, runs=3),
)
