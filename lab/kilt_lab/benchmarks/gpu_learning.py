"""Convergence of external sampling on a GPU: exploitability after the same number of deals as on the CPU.

Deals in flight miss each other's updates. The game is small enough for exact exploitability, and large enough for many
deals in flight: three rounds, ten cards, and 25 kinds of private hands, all distinguished.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import LOSSLESS, plan_named
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.solve.abstract import BucketedGame
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.solve.external_device import CLASS, GpuExternalMCCFR
from kilt.tree.vector import VectorGame
from kilt_lab.benchmarks.measure import Figure

RULES = """\
GAMEDEF
nolimit
numPlayers = 2
numRounds = 3
stack = 24 24
blind = 2 1
firstPlayer = 2 1 1
numSuits = 2
numRanks = 5
numHoleCards = 2
numBoardCards = 0 2 1
END GAMEDEF
"""
MENU = "1x, a / 50%, a; a"
DEALS, MORE = 1 << 22, 1 << 28  # on both the CPU and the GPU; on the GPU only, with --long
CROWDS = (CLASS, 676, 2700)  # deals in flight per kind of private hands; the first is kilt's default


def learning(*, long: bool) -> list[Figure]:
    """Measure exploitability after equal deals on the CPU and on the GPU, with several numbers of deals in flight."""
    game = Holdem(GameDef.parse(RULES), "three rounds")
    deal, options = Deal.from_game(game), SamplingOptions(linear=True)
    with TemporaryDirectory() as folder:
        cards = build(AbstractionSpec("all", deal, plan_named(LOSSLESS, deal.board_cards)), Path(folder) / "cards")
        abstract = AbstractGame(game, cards, actions_of(MENU))
        seen = BucketedGame.with_abstraction(VectorGame(game, menu=abstract.actions), cards)

        def after(solver: ExternalMCCFR, deals: int) -> tuple[float, float]:
            """Return exploitability in mbb/g after `deals` deals, and their seconds."""
            began = perf_counter()
            solver.step(deals - solver.iterations)
            strategy = solver.average()  # waits
            found = seen.exploitability(seen.table_of(abstract, strategy))
            return 1000 * found / game.rules.big_blind, perf_counter() - began

        here, _ = after(ExternalMCCFR(abstract, 0, options, dtype=np.uint16), DEALS)
        found = [Figure("learning_cpu_exploitability", f"three rounds, CPU, {DEALS:,} deals", here, "mbb/g")]
        for crowd in CROWDS:
            solver = GpuExternalMCCFR(abstract, 0, options, np.uint16, crowd=crowd)
            there, _ = after(solver, DEALS)
            found += [
                Figure(
                    f"learning_{crowd}_flight", f"GPU, {crowd} for each kind: deals in flight", solver.in_flight, ""
                ),
                Figure(f"learning_{crowd}_exploitability", "… after the same number of deals", there, "mbb/g"),
                Figure(f"learning_{crowd}_to_cpu_share", "… relative to the CPU's", there / here, ""),
            ]
            if long:
                there, seconds = after(solver, MORE)
                found += [
                    Figure(f"learning_{crowd}_long_exploitability", f"… after {MORE:,} deals", there, "mbb/g"),
                    Figure(f"learning_{crowd}_long_seconds", "… seconds for these", seconds, "s"),
                ]
        return found
