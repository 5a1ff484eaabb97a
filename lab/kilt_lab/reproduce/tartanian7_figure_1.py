"""Figure 1 of [Brown15] in small: a larger hierarchical abstraction, solved distributed, against a smaller flat one.

The paper solved 60 classes × 500 buckets on 961 cores, and 5,000 buckets on 64 cores with shared memory, with equal
bets, and let both play against the two strongest agents of 2013 as time went on. Here the game has 20 cards, the larger
abstraction six times as many buckets, too, and two agents of ours stand in for the others. A checkpoint is a number of
nodes that each core has visited; the larger abstraction has as many cores as the smaller one, or 15 times as many, as
in the paper. What blades find does not depend on how many there are, so that one machine can stand for all of them.

All bet by one tree, and all bets are averaged over. A row is what the larger abstraction wins more than the smaller
one, on equal deals: against an opponent, or where the two meet; as they were solved, or both purified but for the first
action of a hand, as in the paper [Brown15 footnote 5]. Each run clusters, solves and deals with seeds of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from kilt.abstraction.plan import PublicPlan
from kilt.engines import LocalEngine
from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import AbstractStrategy, post_processed
from kilt.games.holdem import Holdem
from kilt.players.agents import load_holdem
from kilt.solve.distributed.shared import SharedGame
from kilt.solve.distributed.solver import Distributed
from kilt.solve.external import External, SamplingOptions
from kilt.strategy.postprocess import rule_named
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.agents import checkpoints, game_in_buckets, won_by
from kilt_lab.reproduce.claims import Claim, Row, every, positive
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs
from kilt_lab.reproduce.tartanian7_table_2 import PURE

SOURCE, GAME, ACTIONS = "[Brown15 figure 1]", "short.nolimit.2p", "50%, 1x, a; 1x, a; a"
LARGE, SMALL = "IR-KE-KO {}-15-15-15", "IR-KE-KO {}-25-25-25"  # with ten classes 150 buckets of a round, and a sixth
CLASSES = PublicPlan(2, 10, codes=0)
OPPONENTS = {"A": "IR-KE-KO {}-100-100-100", "B": "IR-PHS-PHS {}-50-50-50"}  # for the two strongest agents of 2013
DIRECT = "the smaller one"
NODES, TIMES = (250_000, 1_000_000, 4_000_000), (1, 15)  # visited by a core; cores for each of the smaller one's
LONGER = (16_000_000, 64_000_000, 256_000_000)  # with as many cores, besides: does the larger one catch up?
LEARNT, APART = 10_000_000, 1000  # nodes that opponents have visited, and how far their seeds are from the others
BLADES, BATCH, DEALS, RUNS = 2, 256, 5_000, 5
NONE = "none"  # no post-processing
LINEAR = SamplingOptions(linear=True)


class Checkpoint(NamedTuple):
    """A row: where the two abstractions are compared, and against whom."""

    nodes: int  # visited by a core
    times: int  # as many cores as the smaller abstraction has
    opponent: str
    rule: str = NONE  # of post-processing

    @property
    def cores(self) -> str:
        """How many, in words."""
        return f"{self.times} times as many cores" if self.times > 1 else "as many cores"

    @property
    def reached(self) -> int:
        """Nodes that the larger abstraction has visited by then."""
        return self.nodes * self.times

    def __str__(self) -> str:
        return f"{self.nodes / 1e6:g}M nodes, {self.against}"

    @property
    def against(self) -> str:
        """All but the nodes: a line of the picture."""
        purified = "" if self.rule == NONE else ", purified"
        return f"{self.cores}, against {self.opponent}{purified}"


def _run(game: Holdem, seed: int, rows: Sequence[Checkpoint], watcher: Watcher) -> list[float]:
    """[row] What the larger abstraction wins more than the smaller one, in mbb/h."""
    with TemporaryDirectory() as kept:
        folder = Path(kept)

        def solved(plan: str, name: str, seed: int, points: Iterable[int]) -> dict[int, AbstractStrategy]:
            watcher.show(f"run {seed + 1}, {name}", 0.5, None)
            abstract = game_in_buckets(game, ACTIONS, plan, folder / name, seed)
            return dict(checkpoints(External(abstract, seed, LINEAR), points))

        large = game_in_buckets(game, ACTIONS, LARGE, folder / "large", seed, CLASSES)
        rules = game, (folder / "large",), large.actions, large.fingerprint
        larger = Distributed(SharedGame(*rules, LINEAR, seed, BATCH, boards=BLADES), LocalEngine(), BLADES)
        try:
            ours = dict(checkpoints(larger, sorted({row.reached for row in rows})))
        finally:
            larger.close()
        theirs = solved(SMALL, "small", seed, sorted({row.nodes for row in rows}))
        wanted = {row.opponent for row in rows} - {DIRECT}
        met = {name: solved(OPPONENTS[name], name, seed + APART, [LEARNT])[LEARNT] for name in sorted(wanted)}

        @cache
        def played(rule: str, nodes: int, large: bool) -> AbstractStrategy:
            return post_processed((ours if large else theirs)[nodes], rule_named(rule))

        @cache
        def won(name: str, *agent: Any) -> float:
            return won_by(played(*agent), met[name], DEALS, seed)

        found = list[float]()
        for row in rows:
            if watcher.stopped():
                break
            larger_one, smaller_one = (row.rule, row.reached, True), (row.rule, row.nodes, False)
            found.append(
                won_by(played(*larger_one), played(*smaller_one), DEALS, seed)
                if row.opponent == DIRECT
                else won(row.opponent, *larger_one) - won(row.opponent, *smaller_one)
            )
        return found


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    path = asked.out or Path(FIGURE.keeps)
    require_drawable(path)
    game, runs = load_holdem(GAME), RUNS if asked.runs is None else asked.runs
    rows, began = [ROWS[name] for name in asked.only or ROWS], process_time()

    def run(seed: int) -> list[float]:
        watcher.say(f"run {seed + 1} of {runs}")
        return _run(game, seed, rows, watcher)

    found = whole_runs(runs, run, watcher)
    if not found:
        return ReproductionResult(FIGURE.what, [])
    seconds = (process_time() - began) / len(rows)
    won = np.array(found).T
    made = [Row.of_runs(str(row), values, "mbb/h", seconds) for row, values in zip(rows, won, strict=True)]
    lines = dict[str, list[tuple[float, ...]]]()
    shown = PURE if any(point.rule == PURE for point in rows) else NONE  # the paper's, where they were asked for
    for point, row in ((point, row) for point, row in zip(rows, made, strict=True) if point.rule == shown):
        margin = 0.0 if row.margin in (None, inf) else row.margin or 0.0
        lines.setdefault(point.against, []).append((point.nodes, row.ours, margin))
    drawn = {name: np.array(points) for name, points in lines.items()}
    says = "nodes visited by a core", "larger less smaller [mbb/h]"
    plot_lines(drawn, f"{SOURCE}: {game.name}", path, *says, logarithmic=(True, False))
    return ReproductionResult(FIGURE.what, made, path)


CHECKPOINTS = [
    Checkpoint(nodes, times, name, rule)
    for times, name, rule in product(TIMES, (*OPPONENTS, DIRECT), (NONE, PURE))
    for nodes in (NODES if times > 1 else NODES + LONGER)
]
ROWS = {str(row): row for row in CHECKPOINTS}
FIGURE = Reproduction(
    what="[Brown15 figure 1], in small: what a larger abstraction wins more than a smaller one, over time",
    time=f"two or three minutes of CPU time for each of {RUNS} runs",
    rows=tuple(ROWS),
    run=_reproduce,
    options=("only", "out", "runs"),
    hint="no-limit hold'em with 20 cards; each of --runs clusters, solves and deals with seeds of its own",
    claims=tuple(
        Claim(
            f"the larger abstraction, solved distributed, wins more than the smaller one at all checkpoints: "
            f"{rows[0].against}",
            SOURCE,
            every(*(positive(str(row)) for row in rows)),
        )
        for rows in [
            [row for row in CHECKPOINTS if row[1:] == wanted]
            for wanted in product(reversed(TIMES), (*OPPONENTS, DIRECT), (PURE, NONE))
        ]
    ),
    quick=Request(only=tuple(str(Checkpoint(NODES[0], times, DIRECT)) for times in TIMES), runs=3),
    keeps="kilt-tartanian7-figure-1.png",
)
