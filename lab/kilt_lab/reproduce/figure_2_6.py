"""[Johanson16 figure 2.6] on games that fit here: real exploitability rises again while the abstract one falls.

CFR solves abstractions of [2-1] or [2-4] hold'em, drawn at random (see `tilts`), by joint tables. After 16, 32, 64, …
iterations both exploitabilities of its average strategy are measured: by opponents who see the same buckets, and by
those who see all cards. Rows are means over abstractions with 95% intervals. The rise is how far the real one is above
its lowest point in the end, in percent of that. No rise is below 0, so that a mean above 0 would say little: the claim
is that it is above `RISE`.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from kilt.evaluate.flops import Watcher
from kilt.jit import cores
from kilt.players.agents import load_holdem
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.claims import Claim, Row, contrast, lower
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request
from kilt_lab.reproduce.tilts import GAME, Abstracted, drawn_abstractions

RUNS = 30  # abstractions
FIRST, LAST = 4, 14  # doublings of the iterations, from the first that is measured to the last
RISE = 1.0  # percent
PAPER = {"lowest": 277.0, "end": 305.0, "rise": 100 * (305 / 277 - 1)}  # of limit hold'em, ten buckets a round
WHAT = "[Johanson16 figure 2.6], small: real exploitability at its lowest point and in the end"


def overfitted(case: Abstracted) -> list[tuple[int, float, float]]:
    """Iterations of CFR, with real and abstract exploitability in mbb/g."""
    solver, points = case.solver(variant="cfr"), []
    for doubling in range(FIRST, LAST + 1):
        solver.step((1 << doubling) - solver.iterations)
        strategy = solver.average()
        points.append((solver.iterations, case.real(strategy), case.inside(strategy)))
    return points


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    path = asked.out or Path("kilt-figure-2.6.png")
    require_drawable(path)
    threads = cores() if asked.threads is None else asked.threads
    game, runs = load_holdem(asked.game or GAME), RUNS if asked.runs is None else asked.runs
    curves = dict[str, list[tuple[int, float, float]]]()
    began = perf_counter()
    for abstraction, case in drawn_abstractions(game, runs, threads, watcher):
        watcher.show(abstraction, len(curves) / runs, None)
        curves[abstraction] = overfitted(case)
    if not curves:
        return ReproductionResult(WHAT, [])
    iterations, real, inside = np.moveaxis(np.array([*curves.values()]), 2, 0)  # each [abstraction][point]
    every, low = np.arange(len(real)), real.argmin(axis=1)
    lowest, end = real[every, low], real[:, -1]
    found = {
        "lowest": (lowest, "mbb/g"),
        "end": (end, "mbb/g"),
        "rise": (100 * (end / lowest - 1), "%"),
        "abstract, at the lowest": (inside[every, low], "mbb/g"),
        "abstract, in the end": (inside[:, -1], "mbb/g"),
    }
    more = {"rises_in": int((end > lowest).sum()), "lowest_at": iterations[every, low].tolist(), "curves": curves}
    seconds = perf_counter() - began
    rows = [
        Row.of_runs(row, values, unit, seconds, more if row == "rise" else {}, PAPER.get(row))
        for row, (values, unit) in found.items()
        if not asked.only or row in asked.only
    ]
    lines = {
        name: np.column_stack([iterations[0], values.mean(axis=0)])
        for name, values in (("real", real), ("abstract", inside))
    }
    title = f"[Johanson16 figure 2.6], {game.name}: CFR in {len(real)} abstractions, mean exploitability"
    plot_lines(lines, title, path, "iterations", "exploitability [mbb/g]", logarithmic=(True, True))
    return ReproductionResult(WHAT, rows, path)


FIGURE = Reproduction(
    what=WHAT,
    time=f"some 20 seconds for each of {RUNS} abstractions",
    rows=("lowest", "end", "rise", "abstract, at the lowest", "abstract, in the end"),
    run=_reproduce,
    options=("only", "game", "threads", "out", "runs"),
    hint="--runs is the number of abstractions, drawn at random; --game holdem.2-4 for a larger game",
    claims=(
        Claim(
            f"CFR overfits: in the end real exploitability is more than {RISE:g}% above its lowest point, a margin "
            "that is ours",
            "[Johanson16 figure 2.6]",
            contrast({"rise": 1.0}, RISE),
        ),
        Claim(
            "… while exploitability in the abstraction goes on falling",
            "[Johanson16 figure 2.6]",
            lower("abstract, in the end", "abstract, at the lowest"),
        ),
    ),
    quick=Request(runs=4),
    keeps="kilt-figure-2.6.png",
)
