"""Compute distances between boards by one of three published methods, so that similar boards can share a class.

A public state is the information that all players share: in poker a board, up to a renaming of suits. Its description
is the set of private hands that are possible on it, and the description of a hand is its bucket in a *base
abstraction*.

tartanian7
    The share of hands that the two boards do not have in common buckets: half the L1 distance of their counts
    [Brown15 algorithm 2]. All hands of a bucket count as equal, whatever their private cards.
waugh
    L2 between tables of transitions: the probability that a hand of bucket i in the previous round is in bucket j on
    this board (Waugh et al. 2009, as described in [Brown15]). Boards that swap the roles of two ranks are far apart.
schmid
    The earth mover's distance between the two sets of hands [Schmid15]: the least cost of moving one set onto the
    other. The distance of two hands is that of their histograms of hand strength, in this round or averaged over this
    and all earlier rounds. Computed exactly, this is a transport problem of 1,176 by 1,176 hands for each pair of
    flops. The result is almost the same, and much faster to compute, if the hands of a board that share a bucket of
    the base are first gathered at their mean: some sixty points are left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from math import comb
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction import public_kernels as kernels
from kilt.abstraction.cluster_kernels import Singles
from kilt.abstraction.features import CANONICAL, FEATURES, Deal, Features, FeatureSettings, FeatureTable
from kilt.abstraction.holdings import Holdings
from kilt.abstraction.plan import BucketStep, Plan, PublicPlan, RoundPlan, plan_named
from kilt.abstraction.rounds import RoundBuckets
from kilt.arrays import FloatArray, IntArray
from kilt.errors import AbstractionError, ArtifactError
from kilt.jit import in_parts

Share: TypeAlias = Callable[[float], None]
Counts: TypeAlias = npt.NDArray[np.uint16]

KIND = "distances of boards"
BOARDS = 256  # number of boards that are looked up at a time
BUCKETS, WAUGH_BUCKETS, PROTOTYPES = 5000, 10, 100  # numbers of buckets of the default bases
SAVED_EVERY = 30.0  # seconds
STEPS = 10_000_000  # maximum number of steps of the network simplex
PAIRS = 1024  # maximum number of pairs that are compared at a time: the hands of their boards are in memory
SHARES = 256  # maximum number of parts of a batch, for threads or processes


class BoardSample(NamedTuple):
    """A sample of a round's boards, for measuring distances between them."""

    deal: Deal
    r: int
    holdings: Holdings  # all boards of the round
    chosen: IntArray  # indices of the chosen boards

    @property
    def boards(self) -> IntArray:
        """The cards of the sampled boards, shape (boards, cards)."""
        return self.holdings.tables.cards[self.chosen]

    @property
    def hands(self) -> int:
        """The number of possible hands on each sampled board."""
        return comb(self.deal.deck.size - self.deal.board_sizes[self.r], self.deal.hole_cards)

    def counts(self, base: RoundBuckets) -> Counts:
        """Count the hands of each board in each bucket of the base abstraction.

        The shape is (boards, buckets).

        This is the table T of [Brown15 algorithm 2].
        """
        counts = np.zeros((len(self.chosen), base.buckets), dtype=np.uint16)
        for start in range(0, len(counts), BOARDS):
            some = self.boards[start : start + BOARDS]
            kernels.count_buckets(self.holdings.tables, some, base.look_up_boards(some), counts[start : start + BOARDS])
        return counts


class BoardComparison(NamedTuple):
    """Everything needed to compute distances between boards, with a cache folder for the results."""

    states: BoardSample
    public: PublicPlan
    base: Callable[[int], RoundBuckets]  # the buckets of a round of the base
    features: Features
    bins: int
    folder: Path | None  # folder for the distances that have been computed so far
    fingerprint: str  # hash of everything that determines the distances
    tick: Share


def base_plan(deal: Deal, public: PublicPlan) -> Plan:
    """Return the plan of the card abstraction with which a published method compares boards.

    For decks other than the paper's, the plan is similar. Only the rounds in use are built.
    """
    hands = [len(deal.holdings((size,))) for size in deal.board_sizes]
    if public.method == "schmid":
        rounds = [RoundPlan(False, (BucketStep(CANONICAL),)) for _ in hands]
        prototypes = min(PROTOTYPES, max(hands[public.round - 1] // 10, 1))
        rounds[public.round - 1] = RoundPlan(False, (BucketStep(public.ground, prototypes),))
        return Plan(tuple(rounds))
    if public.method == "waugh":
        return plan_named("PR-PHS-PHS " + "-".join(str(min(WAUGH_BUCKETS, hands[0])) for _ in hands), deal.board_cards)
    sizes = [hands[0], *(min(BUCKETS, max(count // 10, 1)) for count in hands[1:])]
    return plan_named("IR-KE-KO " + "-".join(map(str, sizes)), deal.board_cards)


def tartanian7(comparing: BoardComparison) -> Singles:
    """Compare boards by the method of Tartanian7: the share of hands whose buckets do not match.

    Returns the distance of each pair of boards.

    See [Brown15 algorithm 2].
    """
    states = comparing.states
    counts = states.counts(comparing.base(states.r))
    return total_variation(counts, states.hands, comparing.features.threads, comparing.tick)


def total_variation(counts: Counts, hands: int, threads: int = 1, tick: Share = lambda share: None) -> Singles:
    """Compute the total variation distance between each pair of boards, from their bucket counts.

    The total variation distance is half the L1 distance of two rows of `counts`, as a share of all hands. The shape is
    (rows, rows).
    """
    distances = np.zeros((len(counts), len(counts)), dtype=np.float32)
    in_parts(
        lambda first, end: kernels.total_variation(counts, first, end, hands, distances), len(counts), threads, tick
    )
    return distances


def waugh(comparing: BoardComparison) -> Singles:
    """Compare boards by Waugh's method: how the next cards move hands between buckets.

    Returns the distance of each pair of boards.

    The distances are L2 distances between the tables of transitions from the buckets of the previous round.
    """
    states, r = comparing.states, comparing.states.r
    before, base, entries = comparing.base(r - 1), comparing.base(r), []
    size = before.holdings.boards.shape[1]
    for board in states.boards:
        apart = states.holdings.number_hands(board)[1] >= 0
        now, then = base.look_up_board(board)[apart], before.look_up_board(board[:size])[apart]
        cells, counts = np.unique(then * np.int64(base.buckets) + now, return_counts=True)
        entries.append((cells, counts / np.bincount(then)[cells // base.buckets]))
    products = row_products(entries)
    squares = np.diagonal(products)
    distances = np.tril(np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 0)).astype(np.float32), -1)
    return distances + distances.T


def row_products(entries: list[tuple[IntArray, FloatArray]]) -> FloatArray:
    """Return the scalar product of each pair of rows of a sparse matrix.

    Only products on and below the diagonal are computed. The entries of a row are its ascending columns and their
    values.
    """
    columns, values = (np.concatenate(column) for column in zip(*entries, strict=True))
    rows = np.repeat(np.arange(len(entries), dtype=np.uint32), [len(row) for row, _ in entries])
    order = np.argsort(columns, kind="stable")
    start = np.append(np.flatnonzero(np.diff(columns[order], prepend=-1)), len(order))
    products = np.zeros((len(entries), len(entries)))
    kernels.add_products(rows[order], values[order], start, products)
    return products


class WeightedPoints(NamedTuple):
    """The hands of a board as weighted points, for earth mover's distances between boards."""

    hands: FloatArray  # [point] share of the board's hands
    places: Singles  # [point, dimension]; the L1 distance of two points is the distance of their hands


class ExactDistances(NamedTuple):
    """Computes exact earth mover's distances between boards, with one point per hand."""

    states: BoardSample
    tables: list[tuple[Holdings, FeatureTable]]  # of this round and, for the ground "history", of the earlier rounds

    def points(self, board: int) -> WeightedPoints:
        """Return the hands of a board as points with equal weights."""
        cards, pieces = self.states.boards[board], []
        apart = self.states.holdings.number_hands(cards)[1] >= 0
        for holdings, table in self.tables:
            rows = holdings.number_hands(cards[: holdings.boards.shape[1]])[1][apart]
            pieces.append(table.values[rows] * (table.scale / len(self.tables)))
        share = np.full(self.states.hands, 1 / self.states.hands)
        return WeightedPoints(share, np.concatenate(pieces, axis=1, dtype=np.float32))

    def distance(self, i: int, j: int) -> float:
        """Return the earth mover's distance between the hands of boards i and j."""
        return earth_movers_distance(self.points(i), self.points(j))


class BucketMeanDistances(NamedTuple):
    """Computes earth mover's distances between boards quickly, with one point per bucket instead of one per hand.

    The point is the mean of the hands in the bucket.
    """

    of_board: list[WeightedPoints]

    def points(self, board: int) -> WeightedPoints:
        """Return the hands of a board as one point per bucket, weighted by the number of hands."""
        return self.of_board[board]

    def distance(self, i: int, j: int) -> float:
        """Return the earth mover's distance between the hands of boards i and j."""
        return earth_movers_distance(self.points(i), self.points(j))


def import_transport() -> Any:
    """Import POT, the package for earth mover's distances.

    Raises AbstractionError if it is not installed.
    """
    try:
        import ot  # type: ignore[import-untyped]
    except ImportError:
        raise AbstractionError(
            "the method schmid needs the package POT, which is not installed: pip install 'kilt[emd]', or use the "
            "method tartanian7 or waugh"
        ) from None
    return ot


def earth_movers_distance(mine: WeightedPoints, theirs: WeightedPoints) -> float:
    """Return the earth mover's distance between the hands of two boards."""
    costs = np.zeros((len(mine.hands), len(theirs.hands)))
    kernels.add_l1_distances(_columns(mine), _columns(theirs), costs)
    return float(import_transport().emd2(mine.hands, theirs.hands, costs, numItermax=STEPS, check_marginals=False))


def _columns(heaps: WeightedPoints) -> FloatArray:
    """Return the points of a board as columns, shape (dimensions, points)."""
    return np.ascontiguousarray(heaps.places.T, dtype=np.float64)


def schmid(comparing: BoardComparison) -> Singles:
    """Compare boards by Schmid's method: the earth mover's distance between their hands [Schmid15].

    Returns the distance of each pair of boards.

    The unit is a bin of the histograms.
    """
    states, public = comparing.states, comparing.public

    @cache
    def hands() -> ExactDistances | BucketMeanDistances:  # not called if all distances are known
        exactly = exact_distances(states, public.ground, comparing.features, comparing.bins)
        return exactly if public.exact else bucket_mean_distances(exactly, comparing.base(states.r))

    return pairwise_distances(lambda board: hands().points(board), comparing)


def exact_distances(states: BoardSample, ground: str, features: Features, bins: int) -> ExactDistances:
    """Return an object that computes exact earth mover's distances between boards.

    Each hand of a board is a point.
    """
    deal, tables = features.deal, FEATURES[ground].tables(features, FeatureSettings(bins), states.r)
    return ExactDistances(states, [(deal.holdings((deal.board_sizes[r],)), table) for r, table in tables])


def bucket_mean_distances(exactly: ExactDistances, base: RoundBuckets) -> BucketMeanDistances:
    """Return an object that computes earth mover's distances between boards quickly, with one point per bucket.

    All hands of a board that share a bucket of the base abstraction are gathered at one point, their mean.
    """
    found = []
    for board, cards in enumerate(exactly.states.boards):
        points, row = (
            exactly.points(board).places,
            base.look_up_board(cards)[exactly.states.holdings.number_hands(cards)[1] >= 0],
        )
        used, heap, counts = np.unique(row, return_inverse=True, return_counts=True)
        sums = np.zeros((len(used), points.shape[1]))
        np.add.at(sums, heap, points)
        found.append(WeightedPoints(counts / len(row), (sums / counts[:, None]).astype(np.float32)))
    return BucketMeanDistances(found)


class _Pairs(NamedTuple):
    """Some pairs of boards, with everything that a worker needs to compare them."""

    first: list[int]  # [pair] board
    second: list[int]
    heaps: dict[int, WeightedPoints]  # of these boards


def _distances(pairs: _Pairs) -> list[float]:
    """Return the earth mover's distance of each pair of boards."""
    return [
        earth_movers_distance(pairs.heaps[i], pairs.heaps[j]) for i, j in zip(pairs.first, pairs.second, strict=True)
    ]


def pairwise_distances(heaps: Callable[[int], WeightedPoints], comparing: BoardComparison) -> Singles:
    """Compute the earth mover's distance between each pair of boards, on threads or on an engine's workers.

    Known distances are saved from time to time, so that a build that was stopped resumes. The pairs of a lost process
    are computed again.
    """
    count = len(comparing.states.chosen)
    first, second = np.triu_indices(count, 1)
    with artifact.exclusive_access(comparing.folder, wait=True) if comparing.folder else nullcontext():
        known = _all_known(heaps, comparing, first, second)
    distances = np.zeros((count, count), dtype=np.float32)
    distances[first, second] = distances[second, first] = known
    return distances


def _all_known(
    heaps: Callable[[int], WeightedPoints], comparing: BoardComparison, first: IntArray, second: IntArray
) -> Singles:
    """Return the earth mover's distances of pairs of boards; resume from distances that an earlier call saved."""
    known, done = np.zeros(len(first), dtype=np.float32), 0
    inputs = {"boards": comparing.fingerprint}
    if comparing.folder:
        try:
            found = artifact.read(comparing.folder, KIND)
            if found.inputs == inputs:
                known, done = found.arrays["distances"].copy(), int(found.figures["done"])
        except ArtifactError:
            pass

    def some(places: IntArray) -> _Pairs:
        mine, theirs = first[places].tolist(), second[places].tolist()
        return _Pairs(mine, theirs, {board: heaps(board) for board in {*mine, *theirs}})

    step, kept = 64, perf_counter()
    while done < len(first):
        began = perf_counter()
        step = min(step, len(first) - done)
        shares = np.array_split(np.arange(done, done + step), min(step, SHARES))
        known[done : done + step] = np.concatenate(comparing.features.engine.map(_distances, map(some, shares)))
        done += step
        step = min(int(step * np.clip(SAVED_EVERY / (perf_counter() - began), 0.5, 4)) + 1, PAIRS)
        comparing.tick(done / len(first))
        if comparing.folder and (done == len(first) or perf_counter() - kept >= SAVED_EVERY):
            kept = perf_counter()
            artifact.write(comparing.folder, KIND, {"distances": known}, inputs=inputs, figures={"done": done})
    return known


METHODS: dict[str, Callable[[BoardComparison], Singles]] = {"tartanian7": tartanian7, "waugh": waugh, "schmid": schmid}
