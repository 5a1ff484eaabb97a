"""External sampling on a GPU: node visits a second at several sizes of the table, with real cards.

Hands of the game are found on their canonical boards and sorted by strength, into as many buckets as are asked for: in
the last round by how often they win, before that by the same on some boards that may follow. That takes seconds, and
costs walks the same as an abstraction that was learnt.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction, RoundBuckets
from kilt.abstraction.features import Deal
from kilt.arrays import Array, IntArray
from kilt.cards.equity import board_rows
from kilt.cards.isomorphism import Isomorphism
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.jit import cores
from kilt.solve.external import SamplingOptions
from kilt.solve.external_device import DeviceExternal

GAME = "holdem.nolimit.2p"
SMALLER, LARGER = "50%, 1x, 2x, a; 1x, a; a", "50%, 1x, 2x, a; 50%, 1x, 2x, a; 1x, a; a"
SIZES = {"1": (SMALLER, 2500), "8": (SMALLER, 20_000), "60": (LARGER, 34_000), "110": (LARGER, 62_000)}  # gigabytes
RUN_OUTS = 6  # boards that may follow, of each that is not complete
BINS = 1 << 20  # of strength
PIECE = 1024  # boards that are sorted at a time


@cache
def rules() -> Holdem:
    """The game."""
    game = load_game(GAME)
    assert isinstance(game, Holdem)
    return game


@cache
def strengths() -> tuple[tuple[Any, Array], ...]:
    """[round] canonical boards of hold'em, and [board, hand] the strength of each hand, from 0 to 1."""
    deal = Deal.of(rules())
    deck, held, whole, found = deal.deck, deal.hole_cards, deal.sizes[-1], []
    rng = np.random.default_rng(0)
    for size in deal.sizes:
        holdings = deal.holdings((size,))
        boards = holdings.boards.astype(np.int64)
        total = np.zeros((len(boards), len(deck.holes(held))), dtype=np.float32)
        seen = np.zeros(total.shape, dtype=np.float32)
        for _ in range(RUN_OUTS if 0 < size < whole else 1):
            rows = board_rows(_completed(boards, whole, deck.size, rng), deck, held) if size else np.zeros((1, 1))
            total += np.where(rows >= 0, rows, 0)
            seen += rows >= 0
        found.append((holdings, total / np.maximum(seen, 1)))
    return tuple(found)


def _completed(boards: IntArray, size: int, deck: int, rng: np.random.Generator) -> IntArray:
    """Boards with cards drawn for those that are missing."""
    while boards.shape[1] < size:
        more = rng.integers(0, deck - boards.shape[1], len(boards))
        for card in np.sort(boards, axis=1).T:
            more += more >= card
        boards = np.column_stack([boards, more])
    return boards


def cards_by_strength(buckets: int) -> CardAbstraction:
    """Buckets of equally many hands by strength; those of equal strength are told apart at random."""
    deal, rounds = Deal.of(rules()), []
    for r, (holdings, strength) in enumerate(strengths()):
        if r == 0:
            index = Isomorphism((2,))
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
        sizes = np.ones(number, dtype=np.int64)
        rounds.append(RoundBuckets(holdings, table, sizes, None, None, {}, None, Path("by strength")))
    identity = AbstractionSpec.named(f"IR-PHS-PHS 169-{buckets}-{buckets}-{buckets}", deal)
    return CardAbstraction(identity, tuple(rounds))


class Pace(NamedTuple):
    """What was seen of a solver."""

    seconds: float
    deals: float  # a second
    decisions: float
    visits: float

    @classmethod
    def of(cls, solver: DeviceExternal, seconds: float) -> Pace:
        """Let it work for some seconds."""
        begun, before, first = perf_counter(), (solver.decisions, solver.visits), solver.iterations
        deals = max(1 << 16, solver.iterations // 8)
        while (spent := perf_counter() - begun) < seconds:
            solver.step(deals)
        done = solver.iterations - first, solver.decisions - before[0], solver.visits - before[1]
        return cls(spent, *(number / spent for number in done))


def solver_of(size: str, options: SamplingOptions = SamplingOptions(linear=True)) -> DeviceExternal:  # noqa: B008
    """A solver whose table has about so many gigabytes."""
    menu, buckets = SIZES[size]
    game = AbstractGame(rules(), cards_by_strength(buckets), actions_of(menu))
    return DeviceExternal(game, 0, options)
