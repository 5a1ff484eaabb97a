"""Algorithm 4 of [Brown15] as printed and as it is done here, by exact exploitability on small games.

The games are Leduc hold'em with more ranks. Nothing is abstracted, and each rank of the board is a class of its own, so
that exploitability goes to 0 where sampling is unbiased. All ways visit as many nodes, trunk and leaves included: that
is the time of any number of threads that are always at work.

As printed, each deal has a board of each class, and what a class adds to its own tables has no weight, though a class
leaves other hands with other numbers of boards. With weights that is unbiased; and with fewer boards than classes, one
for each thread, the trunk learns from more deals (see `solve.distributed.blades`).

Blades below blades [Brown15 §3] are unbiased too: runs of one, two and three levels are told apart by exploitability
after as many deals, in a game of three boards. Messages are short there: a blade with others below it learns from a
batch when these have answered, and the strategies of a long one would be older on more levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
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
from kilt.solve.abstract import BucketedGame
from kilt.solve.distributed.shared import SharedGame
from kilt.solve.distributed.solver import Distributed
from kilt.solve.external import SamplingOptions
from kilt.tree.vector import VectorGame
from kilt_lab.reproduce.agents import visit
from kilt_lab.reproduce.claims import Claim, Row, contrast, every, lower
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

SOURCE = "[Brown15 algorithm 4]"
RANKS = (3, 6, 12)  # of the deck, and so classes of boards
NODES, RUNS, BATCH = 4_000_000, 5, 128  # visited by each run; deals of a message
BIAS = 1.0  # mbb/g that may be put down to chance
LEVELS = (1, 2, 3)  # of blades, in a game with as many boards as the last of these
SHORT, DEALS, MORE_RUNS = 32, 64_000, 8  # deals of a message and of a run with levels; how many of these runs
ALIKE = 20.0  # mbb/g that runs of several levels may be apart
PRINTED, WEIGHTED, MORE, ONE = "as printed", "a board of each class", "4 boards of each class", "1 board a deal"


class BoardSampling(NamedTuple):
    """How boards are sampled for a deal: see `SharedGame`."""

    samples: int = 1
    boards: int = 0
    weighted: bool = True
    depth: int = 1


WAYS = {
    PRINTED: BoardSampling(weighted=False),
    WEIGHTED: BoardSampling(),
    MORE: BoardSampling(samples=4),
    ONE: BoardSampling(boards=1),
} | {f"{boards} boards a deal": BoardSampling(boards=boards) for boards in (2, 4, 8)}


def _row(classes: int, way: str) -> str:
    return f"{classes} classes, {way}"


def _level(depth: int) -> str:
    return f"{depth} of 3 levels of blades, {ONE}"


@dataclass
class RankedLeduc:
    """Leduc hold'em with some ranks, to be solved by head and blades, without abstraction.

    With several `boards`, each in a round of its own, rounds have one raise. Each board is a class of its own, inside
    that of the boards before it; for classes to have as many boards, there is one suit then.
    """

    ranks: int
    folder: Path
    suits: int = 2
    boards: int = 1

    def __post_init__(self) -> None:
        rules = library()["leduc"].replace("numRanks = 3", f"numRanks = {self.ranks}")
        if self.boards > 1:
            more = 1 + self.boards
            changes = {"numRounds = 2": f"numRounds = {more}", "firstPlayer = 1 1": "firstPlayer =" + more * " 1"}
            changes |= {"numBoardCards = 0 1": "numBoardCards = 0" + self.boards * " 1"}
            changes |= {"raiseSize = 2 4": "raiseSize = 2" + self.boards * " 4"}
            changes |= {"maxRaises = 2 2": "maxRaises =" + more * " 1"}
            for before, after in changes.items():
                rules = rules.replace(before, after)
        game = Holdem(GameDef.parse(rules.replace("numSuits = 2", f"numSuits = {self.suits}")), "leduc")
        deal = Deal.of(game)
        plan = plan_named(LOSSLESS, deal.board_cards)
        rounds = tuple(replace(this, recall=False) for this in plan.rounds)
        classes = tuple(PublicPlan(2 + n, self.ranks - n, base=LOSSLESS, codes=0) for n in range(self.boards))
        spec = AbstractionSpec(LOSSLESS, deal, replace(plan, rounds=rounds, public=classes))
        self.abstract = AbstractGame(game, build(spec, self.folder))
        self.seen = BucketedGame.by(VectorGame(game), self.abstract.cards)

    def solved(self, seed: int, nodes: int, way: BoardSampling) -> tuple[float, int]:
        """Exploitability in mbb/g when `nodes` nodes were visited, and after how many deals that was.

        With several boards, after `DEALS` deals: blades of each level count the nodes that they begin at.
        """
        fingerprint, options = self.abstract.fingerprint, SamplingOptions()
        batch = BATCH if self.boards == 1 else SHORT
        shared = SharedGame(self.abstract.game, (self.folder,), None, fingerprint, options, seed, batch, *way)
        solver = Distributed(shared, LocalEngine(), blades=1, below=(1,) * (way.depth - 1))
        try:
            if self.boards == 1:
                visit(solver, nodes)
            else:
                solver.step(DEALS)
            return self.exploitability(solver.average()), solver.iterations
        finally:
            solver.close()

    def exploitability(self, shares: Array) -> float:
        """Of a strategy over slots, in mbb/g."""
        scale = 1000 / self.abstract.game.rules.big_blind
        return scale * self.seen.exploitability(self.seen.table_of(self.abstract, shares))


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    rows, wanted = list[Row](), asked.only or ROWS
    for ranks, suits, boards, ways in _games():
        chosen = {row: how for row, how in ways.items() if row in wanted}
        runs = (RUNS if boards == 1 else MORE_RUNS) if asked.runs is None else asked.runs
        with TemporaryDirectory() as folder:
            game = RankedLeduc(ranks, Path(folder), suits, boards) if chosen else None
            for row, how in chosen.items():
                began, found = process_time(), list[tuple[float, int]]()
                for seed in range(runs):
                    if watcher.stopped():
                        return ReproductionResult(TABLE.what, rows)
                    watcher.show(row, seed / runs, None)
                    assert game
                    found.append(game.solved(seed, NODES, how))
                more = {"deals": round(np.mean([deals for _, deals in found]))}
                more |= {"nodes": NODES} if boards == 1 else {}
                ends = [exploitability for exploitability, _ in found]
                rows.append(Row.of_runs(row, ends, "mbb/g", process_time() - began, more))
    return ReproductionResult(TABLE.what, rows)


def _games() -> Iterator[tuple[int, int, int, dict[str, BoardSampling]]]:
    """Ranks, suits and boards of each game, and how it is solved in each row."""
    for ranks in RANKS:
        yield ranks, 2, 1, {_row(ranks, way): how for way, how in WAYS.items() if how.boards < ranks}
    yield 5, 1, LEVELS[-1], {_level(depth): BoardSampling(boards=1, depth=depth) for depth in LEVELS}


ROWS = tuple(row for *_, ways in _games() for row in ways)
TABLE = Reproduction(
    what="[Brown15 algorithm 4]: boards, weights and levels as printed and as here, by exact exploitability in small",
    time=f"some seconds for each of {RUNS} runs of {len(ROWS)} rows, {MORE_RUNS} of those about levels",
    rows=ROWS,
    run=_reproduce,
    options=("only", "runs"),
    hint=f"Leduc hold'em with {', '.join(map(str, RANKS))} ranks; each run visits {NODES:,} nodes, or {DEALS:,} deals",
    claims=tuple(
        claim
        for classes in RANKS
        for claim in (
            Claim(
                f"tables of classes need no weights: with {classes} classes that costs {BIAS:g} mbb/g at most, a "
                "margin that is ours",
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
    )
    + tuple(
        Claim(
            f"blades on {after} levels learn what those on {before} do: they are at most {ALIKE:g} mbb/g apart, a "
            "margin that is ours",
            "[Brown15 §3]",
            every(
                contrast({_level(after): 1.0, _level(before): -1.0}, -ALIKE),
                contrast({_level(after): -1.0, _level(before): 1.0}, -ALIKE),
            ),
        )
        for before, after in pairwise(LEVELS)
    ),
    quick=Request(only=ROWS[:4], runs=3),
)
