"""Algorithm 4 of [Brown15] as printed and as it is done here, by exact exploitability on small games.

The games are Leduc hold'em with more ranks. Nothing is abstracted, and each rank of the board is a class of its own, so
that exploitability goes to 0 where sampling is unbiased. All ways visit as many nodes, trunk and leaves included: that
is the time of any number of threads that are always at work.

As printed, each deal has a board of each class, and what a class adds to its own tables has no weight, though a class
leaves other hands with other numbers of boards. With weights that is unbiased; and with fewer boards than classes, one
for each thread, the trunk learns from more deals (see `solve.distributed.blades`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import LOSSLESS, PublicPlan, plan_named
from kilt.arrays import Array
from kilt.engines import LocalEngine
from kilt.evaluate.flops import Watcher
from kilt.games.gamedef import GameDef, library
from kilt.games.holdem import Holdem
from kilt.reproduce.agents import visit
from kilt.reproduce.claims import Claim, Row, contrast, lower
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request
from kilt.solve.abstract import BucketedGame
from kilt.solve.distributed.shared import SharedGame
from kilt.solve.distributed.solver import Distributed
from kilt.solve.external import SamplingOptions
from kilt.tree.vector import VectorGame

SOURCE = "[Brown15 algorithm 4]"
RANKS = (3, 6, 12)  # of the deck, and so classes of boards
NODES, RUNS, BATCH = 4_000_000, 5, 128  # visited by each run; deals of a message
BIAS = 1.0  # mbb/g that may be put down to chance
PRINTED, WEIGHTED, MORE, ONE = "as printed", "a board of each class", "4 boards of each class", "1 board a deal"


class BoardSampling(NamedTuple):
    """How boards are sampled for a deal: see `SharedGame`."""

    samples: int = 1
    boards: int = 0
    weighted: bool = True


WAYS = {
    PRINTED: BoardSampling(weighted=False),
    WEIGHTED: BoardSampling(),
    MORE: BoardSampling(samples=4),
    ONE: BoardSampling(boards=1),
} | {f"{boards} boards a deal": BoardSampling(boards=boards) for boards in (2, 4, 8)}


def _row(classes: int, way: str) -> str:
    return f"{classes} classes, {way}"


@dataclass
class RankedLeduc:
    """Leduc hold'em with some ranks, to be solved by head and blades, without abstraction."""

    ranks: int
    folder: Path
    suits: int = 2

    def __post_init__(self) -> None:
        rules = library()["leduc"].replace("numRanks = 3", f"numRanks = {self.ranks}")
        game = Holdem(GameDef.parse(rules.replace("numSuits = 2", f"numSuits = {self.suits}")), "leduc")
        deal = Deal.of(game)
        plan = plan_named(LOSSLESS, deal.board_cards)
        rounds = tuple(replace(this, recall=False) for this in plan.rounds)
        classes = PublicPlan(2, self.ranks, base=LOSSLESS, codes=0)
        spec = AbstractionSpec(LOSSLESS, deal, replace(plan, rounds=rounds, public=(classes,)))
        self.abstract = AbstractGame(game, build(spec, self.folder))
        self.seen = BucketedGame.by(VectorGame(game), self.abstract.cards)

    def solved(self, seed: int, nodes: int, way: BoardSampling) -> tuple[float, int]:
        """Exploitability in mbb/g when `nodes` nodes were visited, and after how many deals that was."""
        fingerprint, options = self.abstract.fingerprint, SamplingOptions()
        shared = SharedGame(self.abstract.game, (self.folder,), None, fingerprint, options, seed, BATCH, *way)
        solver = Distributed(shared, LocalEngine(), blades=1)
        try:
            visit(solver, nodes)
            return self.exploitability(solver.average()), solver.iterations
        finally:
            solver.close()

    def exploitability(self, shares: Array) -> float:
        """Of a strategy over slots, in mbb/g."""
        scale = 1000 / self.abstract.game.rules.big_blind
        return scale * self.seen.exploitability(self.seen.table_of(self.abstract, shares))


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    rows, runs = list[Row](), RUNS if asked.runs is None else asked.runs
    for classes in RANKS:
        wanted = {way: how for way, how in WAYS.items() if _row(classes, way) in (asked.only or ROWS)}
        with TemporaryDirectory() as folder:
            game = RankedLeduc(classes, Path(folder)) if wanted else None
            for way, how in wanted.items():
                began, found = process_time(), list[tuple[float, int]]()
                for seed in range(runs):
                    if watcher.stopped():
                        return ReproductionResult(TABLE.what, rows)
                    watcher.show(_row(classes, way), seed / runs, None)
                    assert game
                    found.append(game.solved(seed, NODES, how))
                more = {"deals": round(np.mean([deals for _, deals in found])), "nodes": NODES}
                ends = [exploitability for exploitability, _ in found]
                rows.append(Row.of_runs(_row(classes, way), ends, "mbb/g", process_time() - began, more))
    return ReproductionResult(TABLE.what, rows)


ROWS = tuple(_row(classes, way) for classes in RANKS for way, how in WAYS.items() if how.boards < classes)
TABLE = Reproduction(
    what="[Brown15 algorithm 4]: boards and weights as printed and as here, by exact exploitability on small games",
    time=f"some seconds for each of {RUNS} runs of {len(ROWS)} rows",
    rows=ROWS,
    run=_reproduce,
    options=("only", "runs"),
    hint=f"Leduc hold'em with {', '.join(map(str, RANKS))} ranks; each run visits {NODES:,} nodes",
    claims=tuple(
        claim
        for classes in RANKS
        for claim in (
            Claim(
                f"tables of classes need no weights: with {classes} classes that costs {BIAS:g} mbb/g at most",
                SOURCE,
                contrast({_row(classes, WEIGHTED): 1.0, _row(classes, PRINTED): -1.0}, -BIAS),
            ),
            Claim(
                f"a board of each of {classes} classes is better than one board for each deal, for as many nodes",
                SOURCE,
                lower(_row(classes, WEIGHTED), _row(classes, ONE)),
            ),
            Claim(
                f"more boards of each of {classes} classes converge slower, for as many nodes",
                "[Brown15 §3]",
                lower(_row(classes, WEIGHTED), _row(classes, MORE)),
            ),
        )
    ),
    quick=Request(only=ROWS[:4], runs=3),
)
