"""Leduc hold'em with more ranks, suits or boards, for external sampling without abstraction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import LOSSLESS, PublicPlan, plan_named
from kilt.arrays import Array
from kilt.engines import LocalEngine
from kilt.games.gamedef import GameDef, shipped_definitions
from kilt.games.holdem import Holdem
from kilt.solve.abstract import BucketedGame
from kilt.solve.distributed.shared import SharedGame
from kilt.solve.distributed.solver import DistributedMCCFR
from kilt.solve.external import SamplingOptions
from kilt.tree.vector import VectorGame
from kilt_lab.pieces.agents import visit

BATCH = 128  # deals per message
SHORT, DEALS = 32, 64_000  # deals per message and per run with levels of workers


class BoardSampling(NamedTuple):
    """How boards are sampled for a deal: see `SharedGame`."""

    samples: int = 1
    boards: int = 0
    weighted: bool = True
    depth: int = 1


@dataclass
class RankedLeduc:
    """Leduc hold'em with more ranks, for a head and workers, without abstraction.

    With several `boards`, each board has its own round with one raise. Each board is its own class, inside the class of
    the boards before it. The deck then has one suit, so that all classes have the same number of boards.
    """

    ranks: int
    folder: Path
    suits: int = 2
    boards: int = 1

    def __post_init__(self) -> None:
        rules = shipped_definitions()["leduc"].replace("numRanks = 3", f"numRanks = {self.ranks}")
        if self.boards > 1:
            more = 1 + self.boards
            changes = {"numRounds = 2": f"numRounds = {more}", "firstPlayer = 1 1": "firstPlayer =" + more * " 1"}
            changes |= {"numBoardCards = 0 1": "numBoardCards = 0" + self.boards * " 1"}
            changes |= {"raiseSize = 2 4": "raiseSize = 2" + self.boards * " 4"}
            changes |= {"maxRaises = 2 2": "maxRaises =" + more * " 1"}
            for before, after in changes.items():
                rules = rules.replace(before, after)
        game = Holdem(GameDef.parse(rules.replace("numSuits = 2", f"numSuits = {self.suits}")), "leduc")
        deal = Deal.from_game(game)
        plan = plan_named(LOSSLESS, deal.board_cards)
        rounds = tuple(replace(this, recall=False) for this in plan.rounds)
        classes = tuple(PublicPlan(2 + n, self.ranks - n, base=LOSSLESS, codes=0) for n in range(self.boards))
        spec = AbstractionSpec(LOSSLESS, deal, replace(plan, rounds=rounds, public=classes))
        self.abstract = AbstractGame(game, build(spec, self.folder))
        self.seen = BucketedGame.with_abstraction(VectorGame(game), self.abstract.cards)

    def solved(self, seed: int, nodes: int, way: BoardSampling) -> tuple[float, int]:
        """Return exploitability in mbb/g after `nodes` visited nodes, and the number of deals at that point.

        With several boards, it is measured after `DEALS` deals, because workers on each level count the nodes at which
        they begin.
        """
        fingerprint, options = self.abstract.fingerprint, SamplingOptions()
        batch = BATCH if self.boards == 1 else SHORT
        shared = SharedGame(self.abstract.game, (self.folder,), None, fingerprint, options, seed, batch, *way)
        solver = DistributedMCCFR(shared, LocalEngine(), blades=1, below=(1,) * (way.depth - 1))
        try:
            if self.boards == 1:
                visit(solver, nodes)
            else:
                solver.step(DEALS)
            return self.exploitability(solver.average()), solver.iterations
        finally:
            solver.close()

    def exploitability(self, shares: Array) -> float:
        """Return the exploitability of a strategy over slots, in mbb/g."""
        scale = 1000 / self.abstract.game.rules.big_blind
        return scale * self.seen.exploitability(self.seen.table_of(self.abstract, shares))
