"""Classes of flops in play: which distance of flops, and which clustering, makes the better agent.

Nobody has published this. As in [Schmid15 figure 5], an agent has classes of flops and buckets inside each of them, and
its opponent as many buckets in all without classes; preflop, turn and river are the same, and so are the bets. A row is
what the first wins from the second, with all bets averaged over. Distances are those of [Brown15 algorithm 2], of Waugh
et al. and of [Schmid15], with hands told apart by this round and those before (history) or by this round alone
(histogram); clusterings are those of `abstraction.partition`. Each run clusters, solves and deals with seeds of its
own; within a run, all rows have the same opponent and deals.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from kilt.abstraction.plan import PublicPlan
from kilt.evaluate.flops import Watcher
from kilt.players.agents import load_holdem
from kilt_lab.reproduce.agents import sampled_agent, won_by
from kilt_lab.reproduce.claims import Claim, Row, higher, positive
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs

GAME, ACTIONS = "short.nolimit.2p", "50%, 1x, a; 1x, a; a"
CLASSES, PLAIN, INSIDE = 10, "IR-KE-KO {}-100-100-100", "IR-KE-KO {}-10-100-100"
NODES, DEALS, RUNS = 4_000_000, 20_000, 5
SCHMID, HISTOGRAM = "schmid, medoids", "schmid by histograms, medoids"
ALGORITHM_2, WAUGH = "tartanian7, sum", "waugh, means"
DISTANCES, WAYS = ("tartanian7", "waugh", "schmid"), ("sum", "average", "medoids")


def classes_of(row: str) -> PublicPlan:
    """The classes of flops that a row is about.

    >>> classes_of("tartanian7, sum").method, classes_of("schmid by histograms, medoids").ground
    ('tartanian7', 'histogram')
    """
    method, _, clustering = row.partition(", ")
    name, _, by = method.partition(" by ")
    return PublicPlan(2, CLASSES, name, clustering, ground="histogram" if by else "history", until=2)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    game, rows, runs = load_holdem(GAME), asked.only or TABLE.rows, RUNS if asked.runs is None else asked.runs
    began = process_time()

    def run(seed: int) -> list[float]:
        won = list[float]()
        with TemporaryDirectory() as folder:
            plain = sampled_agent(game, ACTIONS, PLAIN, Path(folder) / "plain", NODES, seed)
            for place, row in enumerate(rows):
                if watcher.stopped():
                    break
                watcher.show(f"run {seed + 1} of {runs}: {row}", place / len(rows), None)
                agent = sampled_agent(game, ACTIONS, INSIDE, Path(folder) / row, NODES, seed, classes_of(row))
                won.append(won_by(agent, plain, DEALS, seed))
        return won

    found = whole_runs(runs, run, watcher)
    seconds = (process_time() - began) / len(rows)
    each = zip(rows, zip(*found, strict=True), strict=True) if found else ()
    return ReproductionResult(TABLE.what, [Row.of_runs(row, won, "mbb/h", seconds) for row, won in each])


TABLE = Reproduction(
    what=f"classes of flops in play: what {CLASSES} classes win from as many buckets without classes",
    time=f"some 10 s for each of {RUNS} runs of the rows",
    rows=(
        *(f"{distance}, {way}" for distance, way in product(DISTANCES, WAYS)),
        WAUGH,
        HISTOGRAM,
    ),
    run=_reproduce,
    options=("only", "runs"),
    hint="no-limit hold'em with 20 cards; each of --runs clusters, solves and deals with seeds of its own",
    claims=(
        Claim("classes of flops win: by earth mover's distances and medoids", "[Schmid15 figure 5]", positive(SCHMID)),
        Claim("… by algorithm 2 and sums", "[Brown15 §2]", positive(ALGORITHM_2)),
        Claim("earth mover's distances win more than those of Waugh et al.", "[Schmid15]", higher(SCHMID, WAUGH)),
        Claim("algorithm 2 wins more than the distances of Waugh et al.", "[Brown15 §2]", higher(ALGORITHM_2, WAUGH)),
        Claim("hands told apart by their history win more than by histograms", "[Schmid15]", higher(SCHMID, HISTOGRAM)),
    ),
    quick=Request(only=(SCHMID, WAUGH), runs=3),
)
