"""``kilt bench spots``: spots of TexasSolver's sample input, to 0.5% of the pot; decisions that re-solve."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.bench.measure import Figure, interleaved
from kilt.config import ResolveConfig
from kilt.games.gamedef import ready_made
from kilt.games.holdem import Holdem
from kilt.play.agent import Observation
from kilt.play.blueprint import BlueprintAgent
from kilt.search.agent import ResolvingAgent
from kilt.spots.spot import Spot
from kilt.strategy.blueprint import Blueprint

THREADS = 2
TARGET = 0.5  # per cent of the pot
# Ranges, pot, stacks and bets of resources/text/commandline_sample_input.txt of TexasSolver.
FIRST = (
    "QQ:0.5,JJ:0.75,TT,99,88,77,66,55,44,33,22,AKo:0.25,AQs,AQo:0.75,AJs,AJo:0.75,ATs,ATo:0.75,A9s,A8s,A7s,A6s,A5s,"
    "A4s,A3s,A2s,KQ,KJs,KJo:0.75,KTs,KTo:0.25,K9s,K8s,K7s,K6s,K5s:0.5,QJs,QJo:0.75,QTs,Q9s,Q8s,JTs,JTo:0.25,J9s,J8s,"
    "T9s,T8s,T7s,98s,97s,96s,87s,86s,76s,75s,65s,64s,54s,53s,43s"
)
SECOND = (
    "AA,KK,QQ,JJ,TT,99:0.75,88:0.75,77:0.5,66:0.25,55:0.25,AK,AQs,AQo:0.75,AJs,AJo:0.5,ATs:0.75,A6s:0.25,A5s:0.75,"
    "A4s:0.75,A3s:0.5,A2s:0.5,KQs,KQo:0.5,KJs,KTs:0.75,K5s:0.25,K4s:0.25,QJs:0.75,QTs:0.75,Q9s:0.5,JTs:0.75,J9s:0.75,"
    "J8s:0.75,T9s:0.75,T8s:0.75,T7s:0.75,98s:0.75,97s:0.75,96s:0.5,87s:0.75,86s:0.5,85s:0.5,76s:0.75,75s:0.5,65s:0.75,"
    "64s:0.5,54s:0.75,53s:0.5,43s:0.5"
)
BOARD = ("QsJh2h", "Tc", "7d")
# The agent of `kilt demo`, with buckets that are quickly built.
GAME, CARDS, ACTIONS = "holdem.nolimit.2p.50bb", "IR-PHS-PHS 169-20-20-20", "1x, a / 50%, 1x, a; 1x, a; a"
# What it re-solves: after which betting, and with how many iterations.
DECISIONS = {"turn": ("r300c/cc/", 30), "river": ("r300c/cc/cc/", 75)}


def spot(round_name: str, bets: str = "50%, a; 60%, a") -> Spot:
    """The spot on the flop, the turn or the river."""
    cards = "".join(BOARD[: ("flop", "turn", "river").index(round_name) + 1])
    return Spot(board=cards, pot=50, stacks=200, ranges=(FIRST, SECOND), bets=bets, near=0.67, big_blind=1)


def run(*, long: bool = False) -> list[Figure]:
    """Measure how long spots take to 0.5% of the pot on two threads, the tree included: wall time and CPU time."""
    figures = _measured({"river": spot("river"), "turn": spot("turn")}, rounds=7 if long else 5)
    figures += _decisions(rounds=7 if long else 5)
    if long:
        figures += _measured({"flop": spot("flop", "50%, a")}, rounds=1)
        peak = getrusage(RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        figures.append(Figure("flop_gb", "… memory of the process at its peak", peak, "GB"))
    return figures


def _measured(spots: dict[str, Spot], rounds: int) -> list[Figure]:
    """Wall time and, on busy machines more telling, CPU time of all threads: medians."""
    cpu: dict[str, list[float]] = {name: [] for name in spots}

    def solve(name: str) -> None:
        began = process_time()
        spots[name].solve(TARGET, threads=THREADS)
        cpu[name].append(process_time() - began)

    seconds = interleaved({name: partial(solve, name) for name in spots}, rounds=rounds)
    return [
        figure
        for name, spent in seconds.items()
        for figure in (
            Figure(f"{name}_seconds", f"{name} to {TARGET}% of the pot, {THREADS} threads", spent, "s"),
            Figure(f"{name}_cpu_seconds", "… CPU time of all threads", median(cpu[name][1:]), "s"),
        )
    ]


def _decisions(rounds: int) -> list[Figure]:
    """Median times of decisions that begin a subgame, on boards and with a strategy that are drawn."""
    game, rng = Holdem(ready_made(GAME), GAME), np.random.default_rng(0)
    deal, figures = Deal.of(game), list[Figure]()
    with TemporaryDirectory() as folder:
        cards = build(AbstractionSpec.named(CARDS, deal), Path(folder) / "cards", cache=artifact.cache_folder())
        abstract = AbstractGame(game, cards, actions_of(ACTIONS))
        shares = rng.integers(0, 256, abstract.slots, dtype=np.uint8)
        blueprint = BlueprintAgent("drawn", Blueprint.of(abstract, shares))
        for name, (history, iterations) in DECISIONS.items():
            agent = ResolvingAgent(name, blueprint, ResolveConfig(name, iterations=iterations, threads=THREADS))
            position = game.replay(history)
            seen: dict[str, list[float]] = {"ms": [], "cpu_ms": []}
            for _ in range(rounds + 1):  # the first one compiles
                dealt = rng.permutation(game.deck.size).tolist()
                board = tuple(dealt[2 : 2 + game.rules.board_size(position.round)])
                began = perf_counter(), process_time()
                agent.act(Observation(position, tuple(dealt[:2]), board, 0))
                seen["ms"].append(1000 * (perf_counter() - began[0]))
                seen["cpu_ms"].append(1000 * (process_time() - began[1]))
            what = f"a decision that re-solves the {name}, four bet sizes, {iterations} iterations, {THREADS} threads"
            figures.append(Figure(f"resolve_{name}_ms", what, median(seen["ms"][1:]), "ms"))
            figures.append(Figure(f"resolve_{name}_cpu_ms", "… CPU time", median(seen["cpu_ms"][1:]), "ms"))
    return figures
