"""[Johanson16 figure 3.3] on a game that fits here: chance sampling schemes in abstract games of growing size.

The paper has abstractions of limit hold'em by percentiles of hand strength with perfect recall, in four sizes: where
all cards are drawn for each iteration (CS), CFR is ahead in the smallest of them, and public chance sampling (PCS)
overtakes it as they grow. Here it is [2-4] hold'em. All runs have as much time of one core; exploitability is that by
opponents who see the same buckets. Measuring does not count, nor does the first iteration, in which kernels may be
compiled.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from kilt import artifact
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.evaluate.flops import Watcher
from kilt.players.agents import load_holdem
from kilt.solve.cfr import Cfr
from kilt.solve.tables.memory import TreeTables
from kilt.tree.vector import VectorGame
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.claims import Claim, Row, lower
from kilt_lab.reproduce.convergence import solve_for
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request
from kilt_lab.reproduce.tilts import Abstracted

SOURCE = "[Johanson16 figure 3.3]"
WHAT = f"{SOURCE}, on [2-4] hold'em: CS and PCS in abstract games of growing size"
GAME, MINUTES, RUNS = "holdem.2-4", 0.5, 5
SIZES, SCHEMES = (2, 5, 10, 20, 50), ("cs", "pcs")  # buckets a round, with perfect recall


def sampled(
    case: Abstracted, scheme: str, seconds: float, watcher: Watcher, seed: int
) -> tuple[float, Cfr[TreeTables]]:
    """CFR for some seconds, and what opponents who see the same buckets win from its average strategy, in mbb/g."""
    solver = Cfr(TreeTables(case.seen, scheme=scheme, seed=seed), "cfr")
    solve_for(solver, seconds, watcher, scheme)
    return case.inside(case.seen.shares_of(case.abstract, solver.average(), np.uint32)), solver


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    path = asked.out or Path("kilt-figure-3.3.png")
    require_drawable(path)
    seconds = 60 * (MINUTES if asked.minutes is None else asked.minutes)
    game, runs = load_holdem(asked.game or GAME), RUNS if asked.runs is None else asked.runs
    plans = {size: "PR-PHS-PHS " + "-".join([str(size)] * game.rules.rounds) for size in SIZES}
    chosen = asked.only or FIGURE.rows
    wanted = [size for size in SIZES if any(_row(size, scheme) in chosen for scheme in SCHEMES)]
    vectors = VectorGame(game)
    rows, lines = list[Row](), dict[str, list[tuple[int, float, float]]]()
    for size in wanted:
        watcher.say(f"building {plans[size]}")
        with TemporaryDirectory() as folder:
            spec = AbstractionSpec.named(plans[size], Deal.of(game))
            cards = build(spec, Path(folder) / "cards", cache=artifact.cache_folder())
            case = Abstracted(game, vectors, cards)
        for scheme in (scheme for scheme in SCHEMES if _row(size, scheme) in chosen):
            name, began, ends, iterations = _row(size, scheme), perf_counter(), list[float](), list[int]()
            for seed in range(runs):
                watcher.say(f"{name}, run {seed + 1} of {runs}", seconds)
                end, solver = sampled(case, scheme, seconds, watcher, seed)
                ends.append(end)
                iterations.append(solver.iterations)
            if watcher.stopped():
                return ReproductionResult(WHAT, rows, path if rows else None)
            more = {"iterations": round(np.mean(iterations)), "information_sets": case.seen.infosets}
            row = Row.of_runs(name, ends, "mbb/g", perf_counter() - began, more)
            rows.append(row)
            margin = 0.0 if row.margin in (None, inf) else row.margin
            lines.setdefault(scheme.upper(), []).append((case.seen.infosets, row.ours, margin or 0.0))
            drawn = {which: np.array(points) for which, points in lines.items()}
            says = "information sets", f"exploitability after {seconds:g} s [mbb/g]"
            plot_lines(drawn, f"{SOURCE}: {game.name}", path, *says, logarithmic=(True, True))
    return ReproductionResult(WHAT, rows, path if rows else None)


def _row(size: int, scheme: str) -> str:
    return f"{size} buckets, {scheme}"


def _ahead(size: int, first: str, second: str) -> Claim:
    says = f"with {size} buckets a round {first.upper()} is ahead of {second.upper()}"
    return Claim(says, SOURCE, lower(_row(size, first), _row(size, second)))


FIGURE = Reproduction(
    what=WHAT,
    time=f"{MINUTES:g} min for each of {RUNS} runs of {len(SIZES) * len(SCHEMES)} rows, and time to measure",
    rows=tuple(_row(size, scheme) for size in SIZES for scheme in SCHEMES),
    run=_reproduce,
    options=("only", "game", "minutes", "runs", "out"),
    claims=(_ahead(SIZES[0], "cs", "pcs"), _ahead(SIZES[-1], "pcs", "cs")),
    quick=Request(
        game="holdem.2-1", minutes=0.02, runs=3, only=tuple(_row(n, way) for n in (2, 20) for way in SCHEMES)
    ),
    keeps="kilt-figure-3.3.png",
)
