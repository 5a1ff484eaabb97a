"""External sampling on a GPU: node visits per second at several sizes of the table, with real cards.

Hands are evaluated on their canonical boards and sorted by strength into the requested number of buckets: by win rate
in the last round, and by the win rate on some later boards before that. This takes seconds, and walks cost the same as
with a learned abstraction.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.classes import BoardClasses, CodeBuckets
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import LOSSLESS, PublicPlan, plan_named
from kilt.abstraction.rounds import RoundBuckets
from kilt.arrays import Array, IntArray
from kilt.cards.equity import strengths_on_boards
from kilt.cards.isomorphism import Isomorphism
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.gpu import free_memory, kernels
from kilt.jit import cores
from kilt.solve.distributed.partition import Partition
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.solve.external_device import GpuExternalMCCFR, measure_solver_speed
from kilt.solve.external_device_classes import GpuClassedExternalMCCFR
from kilt_lab.benchmarks.measure import Figure

GAME = "holdem.nolimit.2p"
SMALLER, LARGER = "50%, 1x, 2x, a; 1x, a; a", "50%, 1x, 2x, a; 50%, 1x, 2x, a; 1x, a; a"
SIZES = {"1": (SMALLER, 2500), "8": (SMALLER, 20_000), "60": (LARGER, 34_000), "110": (LARGER, 62_000)}  # gigabytes
SOURCE = Path(__file__).with_name("gpu_blueprint.cu")
SHOWN = ("8", "60")  # without --long
MAPS = 5e9  # bytes of the device's memory for buckets, lists and code
SECONDS = 6.0  # half of them are measured
UPDATES = 16  # of each thread
RUN_OUTS = 6  # random completions of each incomplete board
BINS = 1 << 20  # of strength
PIECE = 1024  # boards that are sorted at the same time
CLASSES = 12  # of boards; some of them at a time are on the device


@cache
def rules() -> Holdem:
    """Return the game."""
    game = load_game(GAME)
    assert isinstance(game, Holdem)
    return game


@cache
def strengths() -> tuple[tuple[Any, Array], ...]:
    """Return [round] canonical boards of hold'em, and [board, hand] the strength of each hand, from 0 to 1."""
    deal = Deal.from_game(rules())
    deck, held, whole, found = deal.deck, deal.hole_cards, deal.board_sizes[-1], []
    rng = np.random.default_rng(0)
    for size in deal.board_sizes:
        holdings = deal.holdings((size,))
        boards = holdings.boards.astype(np.int64)
        total = np.zeros((len(boards), len(deck.holes(held))), dtype=np.float32)
        seen = np.zeros(total.shape, dtype=np.float32)
        for _ in range(RUN_OUTS if 0 < size < whole else 1):
            rows = (
                strengths_on_boards(_completed(boards, whole, deck.size, rng), deck, held) if size else np.zeros((1, 1))
            )
            total += np.where(rows >= 0, rows, 0)
            seen += rows >= 0
        found.append((holdings, total / np.maximum(seen, 1)))
    return tuple(found)


def _completed(boards: IntArray, size: int, deck: int, rng: np.random.Generator) -> IntArray:
    """Return boards with their missing cards drawn at random."""
    while boards.shape[1] < size:
        more = rng.integers(0, deck - boards.shape[1], len(boards))
        for card in np.sort(boards, axis=1).T:
            more += more >= card
        boards = np.column_stack([boards, more])
    return boards


def cards_by_strength(buckets: int, classes: int = 0) -> CardAbstraction:
    """Return buckets of equal numbers of hands, by strength; ties are broken at random.

    With `classes` of first boards, drawn at random, each class has that number of buckets.
    """
    deal, rounds = Deal.from_game(rules()), []
    labels: IntArray = np.zeros(0, dtype=np.int64)
    if classes:
        of = strengths()[1][0]
        labels = np.random.default_rng(1).permutation(len(of.boards)) % classes
        known = BoardClasses(of, labels.astype(np.int32), classes, None, {})
        inside = (np.arange(classes)[:, None] * buckets + np.arange(buckets)).astype(np.int32)
    for r, (holdings, strength) in enumerate(strengths()):
        if r == 0:
            index = Isomorphism((2,), deal.deck)
            table, number = index.index(deal.deck.holes(2))[None].astype(np.uint16), index.size
        else:
            number = buckets
            place = (strength * (BINS / (strength.max() + 1))).astype(np.int32)
            below = np.concatenate([[0.0], np.cumsum(np.bincount(place.ravel(), minlength=BINS))])
            table = np.empty(place.shape, dtype=np.uint16 if buckets <= 1 << 16 else np.uint32)

            def fill(start: int, place: IntArray = place, below: Array = below, table: Array = table) -> None:
                some = place[start : start + PIECE]
                apart = np.random.default_rng(start).random(some.shape, dtype=np.float32)
                spread = below[some] + apart * (below[some + 1] - below[some])
                table[start : start + PIECE] = np.minimum(spread * (buckets / below[-1]), buckets - 1)

            with ThreadPoolExecutor(cores()) as pool:
                list(pool.map(fill, range(0, len(place), PIECE)))
        coded = CodeBuckets(known, inside) if classes and r else None
        sizes = np.ones(number * (classes if coded else 1), dtype=np.int64)
        rounds.append(RoundBuckets(holdings, table, sizes, None, None, {}, coded, Path("by strength")))
    plan = plan_named(LOSSLESS, deal.board_cards)
    if classes:
        plan = replace(plan, public=(PublicPlan(2, classes),))
    return CardAbstraction(AbstractionSpec("by strength", deal, plan), tuple(rounds))


def game_of(size: str) -> AbstractGame:
    """Return a game whose tables have about `size` gigabytes."""
    menu, buckets = SIZES[size]
    return AbstractGame(rules(), cards_by_strength(buckets), actions_of(menu))


def by_classes(options: SamplingOptions) -> list[Figure]:
    """Measure passes over classes of boards with a third of them at a time on the device, and with all of them."""
    menu, buckets = SIZES["8"]
    abstract = AbstractGame(rules(), cards_by_strength(max(1, buckets // CLASSES), CLASSES), actions_of(menu))
    whole = measure_solver_speed(GpuExternalMCCFR(abstract, 0, options), SECONDS).visits
    nothing = np.zeros((0, Deal.from_game(rules()).board_sizes[1]), dtype=np.int8)
    parts = Partition(abstract, 1, CLASSES, np.zeros(0, dtype=np.int64), nothing)
    solver = GpuClassedExternalMCCFR(parts, 0, options, frames=CLASSES // 3)
    pace = measure_solver_speed(solver, 4 * SECONDS).visits
    return [
        Figure(
            "blueprint_classes_visits",
            f"a third of {CLASSES} classes at a time: nodes per second",
            pace / 1e6,
            "million",
        ),
        Figure("blueprint_classes_ratio", "… relative to the whole table on the device", pace / whole, ""),
        Figure(
            "blueprint_classes_copying",
            "… seconds of copies for each second of walks",
            solver.copying / solver.walking,
            "",
        ),
    ]


def blueprint(*, long: bool) -> list[Figure]:
    """Measure walks at each size for which the device has memory; on two cores, at the smallest size."""
    options, found = SamplingOptions(linear=True), list[Figure]()
    there = measure_solver_speed(ExternalMCCFR(game_of("1"), 0, options, min(2, cores())), SECONDS)
    found.append(Figure("blueprint_cpu_visits", "two cores, 1 GB: nodes per second", there.visits / 1e6, "million"))
    for size in SIZES if long else SHOWN:
        needed = 1e9 * float(size) + MAPS
        if free_memory() < needed:
            found.append(
                Figure(f"blueprint_{size}_gigabytes_missing", f"{size} GB: not enough memory", needed / 1e9, "GB")
            )
            continue
        solver = GpuExternalMCCFR(game_of(size), 0, options)
        pace, limit = measure_solver_speed(solver, SECONDS), random_updates(solver)
        found += [
            Figure(f"blueprint_{size}_visits", f"{size} GB: nodes per second", pace.visits / 1e6, "million"),
            Figure(f"blueprint_{size}_decisions", "… decisions per second", pace.decisions / 1e6, "million"),
            Figure(f"blueprint_{size}_deals", "… deals per second", pace.iterations / 1e6, "million"),
            Figure(f"blueprint_{size}_times_cpu", "… times as many nodes as two cores", pace.visits / there.visits, ""),
            Figure(f"blueprint_{size}_random", "… a read and two additions at random places", limit / 1e6, "million"),
            Figure(f"blueprint_{size}_share", "… decisions, as a share of that", pace.decisions / limit, ""),
            Figure(f"blueprint_{size}_flight", "… deals in flight", solver.in_flight, ""),
            Figure(f"blueprint_{size}_borrowed", "… batches with longer lists than usual", solver.borrowed, ""),
        ]
        del solver
    if free_memory() >= 1e9 * float(SHOWN[0]) + MAPS:
        found += by_classes(options)
    return found


def random_updates(solver: GpuExternalMCCFR) -> float:
    """Return how often per second the device can read eight bytes of a solver's table and add to two adjacent words."""
    table, walks = solver.regrets.table, 1 << 24
    kernel, best = kernels(SOURCE, "float32")("update_at_random"), 0.0
    for seed in range(3):
        began = perf_counter()
        arguments = table, np.int64(len(table) // 2 - 1), np.int32(UPDATES), np.int64(seed)
        kernel((walks // 256,), (256,), arguments)
        solver.cupy.asnumpy(table[:1])  # waits
        best = max(best, walks * UPDATES / (perf_counter() - began))
    return best
