"""``kilt bench agent`` measures how fast kilt solves a large game, takes decisions and plays hands.

A node visit is a node that a walk comes to: a decision, or the end of a hand. The limit is how many words a core can
read at random from the same table when no read waits for another.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.evaluate.stats import win_rate
from kilt.games.playable import load_holdem
from kilt.jit import cores
from kilt.play.agent import BASELINES, Agent, Observation
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer
from kilt.play.match import play_match
from kilt.players.agents import load_agent
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import rule_named
from kilt_lab.benchmarks.agent_kernels import read_at_random
from kilt_lab.benchmarks.measure import Figure, rates
from kilt_lab.pieces.agents import game_in_buckets

CARDS = "IR-PHS-PHS 169-1300-1300-1300"  # quickly built, and as large as any
FEW = "IR-PHS-PHS 169-10-10-10"  # a table that fits into caches, for the speed of walks that never wait for memory
ACTIONS = "50%, 75%, 1x, 1.5x, 2x, a; 1x, 2x, a; 1x, a"
SMALL = "1x, a / 50%, 1x, a; 1x, a; a"
GAME = "holdem.nolimit.2p"
ROUNDS, DEALS, READS = 7, 40_000, 20_000_000
DECISIONS, HANDS = 5_000, 20_000


def run(*, long: bool = False) -> list[Figure]:
    """Measure external sampling on a table of gigabytes, the time of an agent's decisions, and hands per second."""
    game, threads = load_holdem(GAME), cores()
    with TemporaryDirectory() as name:
        folder = Path(name)
        large = game_in_buckets(game, ACTIONS, CARDS, folder / "cards")
        few = game_in_buckets(game, ACTIONS, FEW, folder / "few")
        figures = _walks(large, few, threads, ROUNDS * (3 if long else 1)) + _decisions(large, folder)
        return figures + _matches(AbstractGame(game, large.cards, actions_of(SMALL)), folder, threads)


def _walks(abstract: AbstractGame, few: AbstractGame, threads: int, rounds: int) -> list[Figure]:
    """Measure node visits on a large table, on that of an abstraction with `few` buckets, and random reads, in turn."""
    solver, cached = (
        ExternalMCCFR(abstract, 1, SamplingOptions(), threads),
        ExternalMCCFR(few, 1, SamplingOptions(), 1),
    )
    for each in (solver, cached):
        each.step(10 * DEALS)  # touches memory, and compiles
    seeds = count()

    def read() -> int:
        read_at_random(solver.table, READS, np.uint64(next(seeds)))
        return READS

    def visit(of: ExternalMCCFR, using: int) -> int:
        before, of.threads = of.visits, using
        of.step(DEALS * using)
        return of.visits - before

    walks = {
        "cached": partial(visit, cached, 1),
        "one": partial(visit, solver, 1),
        "all": partial(visit, solver, threads),
    }
    found = rates({"reads": read, **walks}, rounds)
    found["decisions"] = found["one"] * solver.decisions / solver.visits
    size = f"{solver.table.nbytes / 1e9:.1f} GB"
    return [
        Figure("visits_per_second", f"nodes of external sampling, one core, {size}", found["one"], "1/s"),
        Figure("decisions_per_second", "decisions among these nodes", found["decisions"], "1/s"),
        Figure("random_reads_per_second", "independent random reads from the same table", found["reads"], "1/s"),
        Figure("ratio_to_limit", "node visits per random read", found["one"] / found["reads"], ""),
        Figure(
            "ratio_in_cache",
            "… on a table that fits into caches, so that no walk waits",
            found["cached"] / found["reads"],
            "",
        ),
        Figure("threads_ratio", f"speed of {threads} threads, relative to one", found["all"] / found["one"], ""),
    ]


class _Timed:
    """An agent that measures the time of its decisions."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.name, self.seconds = agent, agent.name, list[float]()

    def act(self, observation: Observation) -> str:
        began = perf_counter()
        action = self.agent.act(observation)
        self.seconds.append(perf_counter() - began)
        return action


def _decisions(abstract: AbstractGame, folder: Path) -> list[Figure]:
    """Measure decisions of an agent with a random strategy of realistic size."""
    shares = np.random.default_rng(0).integers(0, 1 << 16, abstract.slots, dtype=np.uint16)
    Blueprint.of(abstract, shares).save(folder / "large", folder / "cards")
    size = shares.nbytes
    del shares
    began = perf_counter()
    blueprint = Blueprint.load(folder / "large")
    opened = perf_counter() - began
    agent = _Timed(BlueprintAgent("large", blueprint, rule_named("new-0.2")))
    dealer, number = Dealer(abstract.game), 0
    dealer.play(0, (agent, BASELINES["random"]))
    agent.seconds.clear()
    while len(agent.seconds) < DECISIONS:
        seats = (agent, BASELINES["random"]) if number % 2 else (BASELINES["random"], agent)
        dealer.play(number, seats)
        number += 1
    middle, late = (1000 * float(np.quantile(agent.seconds, share)) for share in (0.5, 0.99))
    what = f"of an agent with a strategy of {size / 1e9:.1f} GB, opened in {1000 * opened:.0f} ms"
    return [
        Figure("decision_ms_median", f"a decision {what}: median", middle, "ms"),
        Figure("decision_ms_p99", "… 99th percentile", late, "ms"),
        Figure("opening_ms", "… first opening of the strategy", 1000 * opened, "ms"),
    ]


def _matches(abstract: AbstractGame, folder: Path, threads: int) -> list[Figure]:
    solver = ExternalMCCFR(abstract, 1, SamplingOptions(linear=True), threads)
    solver.step(2_000_000)
    Blueprint.of(abstract, solver.average()).save(folder / "small", folder / "cards")
    players = f"{folder / 'small'}@new-0.2", f"{folder / 'small'}@none"
    began = perf_counter()
    played = play_match(abstract.game, players, 5 * HANDS, load=load_agent, processes=threads)
    spent = perf_counter() - began
    what = f"hands of a match between two blueprints, {threads} processes, {win_rate(played)} mbb/h"
    return [Figure("hands_per_second", what, played.hands / spent, "1/s")]
