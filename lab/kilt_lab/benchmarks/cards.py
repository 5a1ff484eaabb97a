"""``kilt bench cards`` measures how fast kilt ranks hands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kilt.arrays import ByteArray
from kilt.cards.deck import FULL
from kilt.cards.equity import complete_boards, strengths_on_boards
from kilt.cards.hands import count_categories, strengths
from kilt.cards.isomorphism import Isomorphism
from kilt_lab.benchmarks.measure import Figure, interleaved, optional_peer, required_peer

Contestant: TypeAlias = dict[str, Callable[[], object]]
SEVEN, PEER_HANDS, BOARDS, ROUNDS = 500_000, 20_000, 2_000, 9


def _eval7(cards: ByteArray) -> Contestant:
    """Return eval7, a compiled evaluator called from Python, as a contestant; empty if it is not installed."""
    eval7 = optional_peer("eval7", "eval7")
    if eval7 is None:
        return {}
    deck = [eval7.Card(name) for name in FULL.names]
    hands = [[deck[card] for card in row] for row in cards.tolist()]
    return {"eval7": lambda: [eval7.evaluate(hand) for hand in hands]}


def run(*, long: bool = False) -> list[Figure]:
    """Measure hand evaluation and start-up in about a minute; with `long`, all boards and hands too."""
    evaluate_cards = required_peer("phevaluator", "phevaluator").evaluate_cards
    rng = np.random.default_rng(2015)
    cards = np.argsort(rng.random((SEVEN, FULL.size)), axis=1)[:, :7].astype(np.int8)
    rows = cards[:PEER_HANDS].tolist()
    boards = complete_boards(()).boards
    some = rng.choice(len(boards), BOARDS)
    layout = Isomorphism((2, 3, 1, 1))

    seconds = interleaved(
        {
            "kilt": lambda: strengths(cards),
            "phevaluator": lambda: [evaluate_cards(*row) for row in rows],
            **_eval7(cards[:PEER_HANDS]),
            "river": lambda: strengths_on_boards(boards[some]),
            "index": lambda: layout.index(cards),
            "startup": lambda: subprocess.run(
                [sys.executable, "-m", "kilt", "--help"], capture_output=True, check=True
            ),
        },
        rounds=ROUNDS,
    )
    per_second, peer = SEVEN / seconds["kilt"], PEER_HANDS / seconds["phevaluator"]
    eval7: list[Figure] = []
    if "eval7" in seconds:
        compiled = PEER_HANDS / seconds["eval7"]
        eval7 = [
            Figure("peer_eval7_per_second", "eval7.evaluate from Python, an evaluator in C", compiled, "hands/s"),
            Figure("eval7_ratio", "kilt's rate relative to eval7", per_second / compiled, "×"),
        ]
    figures = [
        Figure("seven_card_per_second", "7-card strengths, batch", per_second, "hands/s"),
        Figure("phevaluator_per_second", "phevaluator.evaluate_cards from Python", peer, "hands/s"),
        Figure("ratio_to_phevaluator", "kilt's rate relative to phevaluator", per_second / peer, "×"),
        *eval7,
        Figure("river_board_us", "all 1,081 hand strengths of a river board", seconds["river"] / BOARDS * 1e6, "µs"),
        Figure("canonical_index_per_second", "canonical index of 2+3+1+1 cards", SEVEN / seconds["index"], "hands/s"),
        Figure("startup_seconds", "kilt --help", seconds["startup"], "s"),
    ]
    if long:
        whole = interleaved(
            {
                "boards": lambda: [strengths_on_boards(part) for part in np.array_split(boards, 32)],
                "census": lambda: count_categories(7),
            },
            rounds=3,
        )
        figures += [
            Figure("all_boards_seconds", "all 134,459 canonical river boards", whole["boards"], "s"),
            Figure("census_seconds", "census of all 133,784,560 seven-card hands", whole["census"], "s"),
        ]
    return figures
