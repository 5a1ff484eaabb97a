"""``kilt bench counter``: abstract games by pairs of bucket sequences, and models from logs.

The abstract game has the size of limit hold'em with five buckets per round and perfect recall: 3,624,290 information
sets [Johanson16 §6.3.1]. The probabilities of its pairs of buckets are random, which does not change the time. A model
is counted from a log of hands of `probe` against `random` in limit hold'em, on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from kilt.abstraction.abstract_game import SyntheticGame
from kilt.abstraction.joint import JointTables, Sequences
from kilt.evaluate.observer import AbstractObserver
from kilt.games.playable import load_holdem
from kilt.play.acpc import format_log_line
from kilt.play.agent import BASELINES
from kilt.play.match import play_match
from kilt.solve.cfr import Cfr
from kilt.solve.counter import Restriction
from kilt.solve.external import ExternalMCCFR
from kilt.solve.joint import JointGame
from kilt.solve.solver import Solver
from kilt.solve.tables.flat import FlatTables
from kilt.solve.tables.memory import TreeTables
from kilt.solve.tables.pairs import PairTables
from kilt.tree.best_response import uniform
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame
from kilt_lab.benchmarks.measure import Figure, interleaved
from kilt_lab.pieces.agents import game_in_buckets

GAME, SMALL = "holdem.limit.2p", "holdem.2-1"
BUCKETS = 5  # of each round, for each of the round before
CARDS = "IR-PHS-PHS 169-60-60-60"
HANDS = 20_000


def run(*, long: bool = False) -> list[Figure]:
    """Measure an iteration of CFR and best responses in the abstract game, and the speed of reading logs."""
    solver = Cfr(PairTables(_joint_game()), "cfr")
    solver.step(1)
    strategy = solver.average()
    seconds = interleaved(
        {"iteration": lambda: solver.step(1), "response": lambda: solver.tables.game.response_values(strategy)},
        rounds=7 if long else 3,
    )
    ratios = _ratios(rounds=9 if long else 5)
    infosets = f"{sum(solver.tables.game.abstract.size.infosets):,} information sets"
    rate = _reading_rate(HANDS * (10 if long else 1))
    return [
        Figure("abstract_iteration_seconds", f"CFR, both players, {infosets}", seconds["iteration"], "s"),
        Figure("abstract_response_seconds", f"best responses, both seats, {infosets}", seconds["response"], "s"),
        *(
            Figure(f"dbr_ratio{key}", f"time of a data-biased iteration relative to CFR, {what}", ratio, "×")
            for key, what, ratio in ratios
        ),
        Figure("model_hands_per_second", f"a model from a log, {GAME}, one core", rate, "hands/s"),
    ]


def _ratios(rounds: int) -> list[tuple[str, str, float]]:
    """Return the time of an iteration for one seat against a model, relative to one of CFR, for each form of a game."""
    tree, game = flat_tree(load_holdem("leduc")), VectorGame(load_holdem(SMALL))
    synthetic = SyntheticGame(load_holdem(GAME), ((60,) * 4,) * 2)
    vector = (lambda held: Cfr(TreeTables(game, restriction=held), "cfr+")), 1, game.shape
    flat = (lambda held: Cfr(FlatTables(tree.nodes, restriction=held), "cfr+")), 100, uniform(tree).shape
    external = (lambda held: ExternalMCCFR(synthetic, restriction=held)), 20_000, (synthetic.slots,)
    made: dict[str, tuple[str, tuple[Callable[[Restriction | None], Solver], int, tuple[int, ...]]]] = {
        "": (f"{SMALL}, vectors of hands", vector),
        "_flat": ("leduc, flat", flat),
        "_external": ("external sampling, limit hold'em", external),
    }
    found = []
    for key, (what, (make, steps, shape)) in made.items():
        held = Restriction(1, np.full(shape, 0.15))
        solvers = {"cfr": make(None), "dbr": make(held)}
        seconds = interleaved({name: partial(solver.step, steps) for name, solver in solvers.items()}, rounds=rounds)
        found.append((key, what, seconds["dbr"] / seconds["cfr"]))
    return found


def _joint_game() -> JointGame:
    """Return an abstract game of limit hold'em with perfect recall and random pair tables."""
    game = load_holdem(GAME)
    numbers = tuple(BUCKETS ** (r + 1) for r in range(game.rules.rounds))
    own = tuple(
        Sequences(np.arange(number, dtype=np.int32) // BUCKETS * (r > 0), np.arange(number, dtype=np.int32))
        for r, number in enumerate(numbers)
    )
    wins = np.random.default_rng(0).random((numbers[-1], numbers[-1]))
    wins /= 2 * wins.sum()
    tables = JointTables((own, own), wins, wins.T.copy(), np.zeros_like(wins))
    return JointGame(SyntheticGame(game, (numbers, numbers)), tables)


def _reading_rate(hands: int) -> float:
    """Return hands of a log that are read and counted per second of CPU time, not including compilation."""
    game, lines = load_holdem(GAME), []
    players = BASELINES["probe"], BASELINES["random"]
    play_match(game, players, hands, sink=lambda hand: lines.append(format_log_line(hand)))
    with TemporaryDirectory() as name:
        abstract = game_in_buckets(game, "", CARDS, Path(name) / "cards")
        for some in (lines[:100], lines):
            observer = AbstractObserver(abstract, "probe")
            began = process_time()
            observer.add_log("\n".join(some), "the log")
    return hands / (process_time() - began)
