"""``kilt bench solvers`` compares the speed of kilt's solvers with that of open_spiel and LiteEFG."""

from __future__ import annotations

from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from math import log
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.solve.cfr import Cfr
from kilt.solve.sampled import FlatMCCFR
from kilt.solve.tables.memory import TreeTables
from kilt.tree.best_response import exploitability, uniform
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame
from kilt_lab.benchmarks.measure import Figure, interleaved, optional_peer, peak_gb, required_peer

ROUNDS = 5


class Contest(NamedTuple):
    """A game under its names in both programs, and the iterations of a round of kilt and of open_spiel."""

    ours: str
    theirs: str
    external: tuple[int, int]
    cfrplus: tuple[int, int]
    lite_efg: tuple[int, int]  # of plain CFR, kilt's and LiteEFG's


CONTESTS = {
    "leduc": Contest("leduc", "leduc_poker", external=(100_000, 1_000), cfrplus=(500, 5), lite_efg=(1_000, 20)),
    "liars_dice": Contest("bluff-1-1", "liars_dice", external=(50_000, 500), cfrplus=(50, 1), lite_efg=(100, 1)),
}


def run(*, long: bool = False) -> list[Figure]:
    """Measure kilt, open_spiel's C++ and, if it is installed, LiteEFG, with one thread each."""
    return [figure for name in CONTESTS for figure in _contest(name) + _lite_efg(name)] + _two_four(long=long)


def _contest(name: str) -> list[Figure]:
    pyspiel = required_peer("pyspiel", "open_spiel")
    contest = CONTESTS[name]
    game, peer = load_game(contest.ours), pyspiel.load_game(contest.theirs)
    tree = flat_tree(game)
    sampled, peer_sampled = FlatMCCFR(tree.nodes, "external", 1), pyspiel.ExternalMCCFRSolver(peer)
    vector, peer_vector = Cfr(TreeTables(VectorGame(game))), pyspiel.CFRPlusSolver(peer)
    profile, peer_profile = uniform(tree), pyspiel.UniformRandomPolicy(peer)
    counts = {"external": contest.external, "cfrplus": contest.cfrplus, "exploitability": (10, 1)}
    seconds = interleaved(
        {
            "external": lambda: sampled.step(contest.external[0]),
            "peer external": lambda: [peer_sampled.run_iteration() for _ in range(contest.external[1])],
            "cfrplus": lambda: vector.step(contest.cfrplus[0]),
            "peer cfrplus": lambda: [peer_vector.evaluate_and_update_policy() for _ in range(contest.cfrplus[1])],
            "exploitability": lambda: [exploitability(tree, profile) for _ in range(10)],
            "peer exploitability": lambda: pyspiel.exploitability(peer, peer_profile),
        },
        rounds=ROUNDS,
    )
    kinds = {"external": "external sampling", "cfrplus": "CFR+", "exploitability": "exploitability"}
    figures = []
    for what, (ours, theirs) in counts.items():
        pace, peer_pace = ours / seconds[what], theirs / seconds[f"peer {what}"]
        figures.append(Figure(f"{what}_{name}_per_second", f"{name}, {kinds[what]}", pace, "per second"))
        figures.append(Figure(f"{what}_{name}_ratio", "… against open_spiel", pace / peer_pace, "×"))
    return figures


def _lite_efg(name: str) -> list[Figure]:
    """Measure plain CFR of kilt and of LiteEFG, with one thread each; empty if LiteEFG is not installed."""
    pyspiel, cfr = required_peer("pyspiel", "open_spiel"), optional_peer("LiteEFG.baselines.CFR", "LiteEFG pandas")
    if cfr is None:
        return []
    contest = CONTESTS[name]
    solver = Cfr(TreeTables(VectorGame(load_game(contest.ours))), "cfr")
    with redirect_stdout(StringIO()):  # it prints a banner
        graph = cfr.graph()
        environment, there = import_module("LiteEFG").OpenSpielEnv, pyspiel.load_game(contest.theirs)
        peer = environment(there, traverse_type="Enumerate", regenerate=False)
        peer.set_graph(graph)

    def iterate() -> None:
        for _ in range(contest.lite_efg[1]):
            graph.update_graph(peer)
            peer.update_strategy(graph.current_strategy())

    seconds = interleaved({"kilt": lambda: solver.step(contest.lite_efg[0]), "peer": iterate}, rounds=ROUNDS)
    pace, peer_pace = contest.lite_efg[0] / seconds["kilt"], contest.lite_efg[1] / seconds["peer"]
    return [
        Figure(f"cfr_{name}_per_second", f"{name}, CFR with vectors", pace, "per second"),
        Figure(f"lite_efg_{name}_ratio", "… against LiteEFG", pace / peer_pace, "×"),
    ]


def _two_four(*, long: bool) -> list[Figure]:
    """Measure [2-4] hold'em without abstraction: the speed-up by a second thread and, if requested, best responses."""
    game = load_game("holdem.2-4")
    assert isinstance(game, Holdem)
    one, two = VectorGame(game), VectorGame(game, threads=2)
    table = one.table(np.float32)
    seconds = interleaved(
        {"one": lambda: one.expected_value(table), "two": lambda: two.expected_value(table)}, rounds=3 if long else 1
    )
    figures = [
        Figure(
            "threads_ratio", "[2-4] hold'em: speed of two threads relative to one", seconds["one"] / seconds["two"], "×"
        )
    ]
    if long:
        whole = interleaved({"response": lambda: two.exploitability(table)}, rounds=3)
        figures.append(
            Figure("two_four_best_response_seconds", "[2-4] hold'em: both best responses", whole["response"], "s")
        )
        taken = _seconds_to_one_mbb(two, game.rules.big_blind)
        figures.append(
            Figure("two_four_seconds_to_1_mbb", "[2-4] hold'em: dcfr+ below 1 mbb/g, two threads", taken, "s")
        )
        figures.append(Figure("two_four_peak_gb", "… peak memory", peak_gb(), "GB"))
    return figures


def _seconds_to_one_mbb(game: VectorGame, big_blind: int) -> float:
    """Return seconds to 1 mbb/g. Exploitability is measured only where a log-log extrapolation expects it."""
    began = perf_counter()
    solver = Cfr(TreeTables(game, np.float32), "dcfr+")
    step, seen = 40, list[tuple[int, float]]()
    while True:
        solver.step(step)
        seen.append((solver.iterations, game.exploitability(solver.average()) * 1000 / big_blind))
        if seen[-1][1] <= 1:
            return perf_counter() - began
        (x, y), (x_before, y_before) = seen[-1], seen[-2] if len(seen) > 1 else (1, 1e5)
        slope = max(log(y_before / y) / log(x / x_before), 1.0)
        step = max(3, int(min(x * (y ** (1 / slope) - 1), x)))
