"""Sizes of [Brown15 §5] and the share of latency of §3, by arithmetic and by the simulator of clusters.

The paper gives the nodes of its betting tree, 6,104,546 with leaves, but not its bets. What it says of the whole game
can be checked all the same: a node for each pair of the players' buckets, and an entry for each bucket and each action.
All nodes but the root are counted as actions, and all as if they were after the flop, where buckets are many; those
after chance are no actions, so that infoset-actions are counted a little too high.

A message takes 30 µs, twice in an iteration of 15 ms: 0.4%. `runs.cluster` says what that adds with 60 blades of one
core, where the head sends the next deal while blades work on this one: nothing.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from kilt.evaluate.flops import Watcher
from kilt.runs.blade_costs import BladeCosts, LinearCost
from kilt.runs.cluster import forecast
from kilt_lab.reproduce.claims import Claim, Row, as_printed, negative
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

NODES, LARGE, SMALL = 6_104_546, 30_000, 5_000  # of the betting tree; buckets of a round, distributed and shared memory
BLADES, LATENCY, ITERATION = 60, 30e-6, 15e-3  # seconds
SOURCE = "[Brown15 §5]"
PAPER = {  # counted, as printed, what is not told apart by rounding
    "nodes": (NODES * LARGE**2, 5.49e15, 5e12),
    "infoset-actions": ((NODES - 1) * LARGE, 1.8e11, 5e9),
    "nodes, shared memory": (NODES * SMALL**2, 1.5e14, 5e12),
    "infoset-actions, shared memory": ((NODES - 1) * SMALL, 3.1e10, 5e8),
    "decisions, from information sets": (1.1e10 / SMALL, 6.6e10 / LARGE, (5e8 / SMALL + 5e8 / LARGE)),
}
LATE = "latency's share of an iteration, less 1%"


def latency_share(latency: float = LATENCY, blades: int = BLADES) -> float:
    """The share of a simulated iteration, one deal a batch, that goes into waiting for messages."""
    nothing = LinearCost(0.0, 0.0)
    costs = BladeCosts(np.full((1, blades), ITERATION), fixed=0.0, down=nothing, up=nothing, visits=1.0)
    slow, quick = (forecast(costs, (blades,), latency=one, batch=1, samples=1) for one in (latency, 0.0))
    return 1 - quick.iteration_seconds / slow.iteration_seconds


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    began, wanted = perf_counter(), asked.only or TABLE.rows
    rows = [
        Row(name, paper, counted, "", perf_counter() - began, {})
        for name, (counted, paper, _) in PAPER.items()
        if name in wanted
    ]
    if LATE in wanted:
        share = latency_share()
        more = {"share": share, "paper_share": 2 * LATENCY / ITERATION}
        rows.append(Row(LATE, None, share - 0.01, "", perf_counter() - began, more))
    return ReproductionResult(TABLE.what, rows)


TABLE = Reproduction(
    what="[Brown15 §§3, 5]: sizes of Tartanian7's games by counting, and what latency costs, by the simulator",
    time="a second",
    rows=(*PAPER, LATE),
    run=_reproduce,
    options=("only",),
    claims=(
        *(
            Claim(f"{name} come to {printed:.3g}, from 6,104,546 nodes of betting", SOURCE, as_printed(name, within))
            for name, (_, printed, within) in list(PAPER.items())[:4]
        ),
        Claim(
            "both games have equally many decisions: 6.6e10 information sets of 30,000 buckets, 1.1e10 of 5,000",
            SOURCE,
            as_printed("decisions, from information sets", PAPER["decisions, from information sets"][2]),
        ),
        Claim(
            "60 µs of latency in 15 ms are negligible: less than 1% of the time, a margin that is ours",
            "[Brown15 §3]",
            negative(LATE),
        ),
    ),
)
