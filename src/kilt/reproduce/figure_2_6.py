"""[Johanson16 figure 2.6] on a game that fits here: real exploitability rises again while the abstract one falls.

CFR solves abstractions of [2-1] hold'em by joint tables. After 1, 2, 4, 8, … iterations both exploitabilities of its
average strategy are measured: by opponents who see the same buckets, and by those who see all cards. A row is how far
the real one rises from its lowest point to the end; the last one is their mean, with its 95% interval.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from kilt.arrays import FloatArray
from kilt.evaluate.flops import Watcher
from kilt.evaluate.players import load_holdem
from kilt.evaluate.stats import student_width
from kilt.jit import cores
from kilt.reproduce.claims import Claim, Row, positive
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request, decided
from kilt.reproduce.tilts import GAME, PLANS, Abstracted, abstracted
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable

MEAN = "mean of these"
DOUBLINGS = 13  # of the iterations
WHAT = "[Johanson16 figure 2.6], on [2-1] hold'em: real exploitability at the end, less its lowest point"


def overfitted(case: Abstracted) -> list[tuple[int, float, float]]:
    """Iterations of CFR, with real and abstract exploitability in mbb/g."""
    solver, points = case.solver(variant="cfr"), []
    for doubling in range(DOUBLINGS):
        solver.step((1 << doubling) - solver.iterations)
        strategy = solver.average()
        points.append((solver.iterations, case.real(strategy), case.inside(strategy)))
    return points


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    path = asked.out or Path("kilt-figure-2.6.png")
    require_drawable(path)
    threads = cores() if asked.threads is None else asked.threads
    cases = abstracted(load_holdem(asked.game or GAME), asked.only or PLANS, threads, watcher)
    rows: list[Row] = []
    lines: dict[str, FloatArray] = {}
    for plan, case in cases.items():
        began = perf_counter()
        watcher.say(f"{plan}: CFR, 2^{DOUBLINGS - 1} iterations")
        if watcher.stopped():
            break
        points = np.array(overfitted(case))
        iterations, real, inside = points.T
        low = int(real.argmin())
        more = {
            "lowest": float(real[low]),
            "lowest_at": int(iterations[low]),
            "end": float(real[-1]),
            "abstract_at_lowest": float(inside[low]),
            "abstract_at_end": float(inside[-1]),
            "curve": points.tolist(),
        }
        rows.append(Row(plan, None, float(real[-1] - real[low]), "mbb/g", perf_counter() - began, more))
        lines |= {f"{plan}, real": points[:, :2], f"{plan}, abstract": points[:, [0, 2]]}
        plot_lines(lines, WHAT, path, "iterations", "exploitability [mbb/g]", logarithmic=(True, True))
    if len(rows) > 1:
        rises = np.array([row.ours for row in rows])
        margin = student_width(len(rises)) * float(rises.std(ddof=1))
        said = decided(float(rises.mean()), margin)
        more = {"rises_in": int((rises > 0).sum()), "abstractions": len(rises), "decided": said}
        spent = sum(row.seconds for row in rows)
        rows.append(Row(MEAN, None, float(rises.mean()), "mbb/g", spent, more, margin))
    return ReproductionResult(WHAT, rows, path if rows else None)


FIGURE = Reproduction(
    what=WHAT,
    time=f"some seconds for each of {len(PLANS)} abstractions",
    rows=PLANS,
    run=_reproduce,
    options=("only", "game", "threads", "out"),
    claims=(
        Claim(
            "CFR overfits: while exploitability in the abstraction falls, the real one rises again",
            "[Johanson16 figure 2.6]",
            positive(MEAN),
        ),
    ),
    quick=Request(only=PLANS[:4]),
    keeps="kilt-figure-2.6.png",
)
