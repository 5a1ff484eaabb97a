"""Sort the hands of a round into buckets in several steps, each of which divides hands by one feature.

A group is a bucket of the previous step, or of the previous round if that is remembered; otherwise one group has all
holdings. Bucket b of group g has the number g·k + b. A step is first fitted, to all holdings or to a sample; then it
assigns buckets to the holdings of any boards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import comb, inf
from threading import Lock
from time import time
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kilt.abstraction import cluster_kernels, holdings_kernels, potential, potential_kernels
from kilt.abstraction.cluster import NO_BOUNDS, Clusters, kmeans, prepare_search
from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.features import CANONICAL, FEATURES, NEXT, VALUE, Features
from kilt.abstraction.holdings import Holdings
from kilt.abstraction.percentile import cut_points
from kilt.abstraction.plan import BucketStep, Plan
from kilt.abstraction.potential import centre_columns, cluster_centres, distances_in_group
from kilt.abstraction.potential_kernels import GroundDistances
from kilt.arrays import Array, FloatArray, IntArray
from kilt.cards.deck import subsets
from kilt.errors import AbstractionError
from kilt.jit import in_parts

POINTS_PER_GROUP = 5_000  # approximate minimum of points drawn for each group, if there are several groups
SMALL_GROUP_POINTS = 1_000  # a group with fewer drawn points uses all of its points
LEVELS = 1 << 16  # maximum number of different values that percentiles distinguish
PIECE = 1 << 22  # number of values that are numbered at a time

N = TypeVar("N", bound=tuple[Any, ...])  # a NamedTuple
Flags: TypeAlias = npt.NDArray[np.bool_]
Chosen: TypeAlias = Flags | slice  # some holdings of a part
ALL = slice(None)
Share: TypeAlias = Callable[[float], None]  # called with the share of the work that is done
Stop: TypeAlias = Callable[[], bool]
Fit: TypeAlias = Callable[[Array, FloatArray, int, int, Stop, Share], Singles]  # points, weights, seed, threads, …


class PreviousRound(NamedTuple):
    """The buckets of the previous round, which plans with perfect recall divide further."""

    holdings: Holdings
    table: Array  # [board, hand] buckets
    buckets: int


@dataclass(frozen=True)
class HoldingBatch:
    """A batch of work that contains all hands on a range of boards."""

    holdings: Holdings
    start: int  # the first board
    end: int  # the board after the last

    @property
    def count(self) -> int:
        """The number of hand-board pairs in the batch."""
        return int(self.holdings.tables.first[self.end] - self.holdings.tables.first[self.start])

    @cached_property
    def weights(self) -> IntArray:
        """The number of deals that each hand of the batch stands for.

        Deals that differ only by suits are merged.
        """
        return self.holdings.weights_of_boards(self.start, self.end)

    def earlier_indices(self, other: Holdings) -> IntArray:
        """Return the index that each hand of the batch had in an earlier round.

        `other` numbers the hands of that round. Its boards are sets of the first cards.
        """
        first = self.holdings.tables.first
        if other is self.holdings:
            return np.arange(first[self.start], first[self.end])
        rows = np.empty(self.count, dtype=np.int64)
        holdings_kernels.find_holdings(self.holdings.tables, self.start, self.end, other.tables, rows)
        return rows

    def previous_buckets(self, before: PreviousRound | None) -> Labels:
        """Return each hand's bucket in the previous round, or zeros without perfect recall."""
        buckets = np.zeros(self.count, dtype=np.int32)
        if before:
            holdings_kernels.find_buckets(
                self.holdings.tables, self.start, self.end, before.holdings.tables, before.table, buckets
            )
        return buckets

    def next_buckets(self, after: NextRound, chosen: Chosen) -> Labels:
        """Return each chosen hand's bucket in the next round, for every possible next card.

        The shape is (holdings, ways).
        """
        deck, hole, size = self.holdings.deck, self.holdings.hole_cards, self.holdings.boards.shape[1]
        added = after.holdings.boards.shape[1] - size
        rows = np.full(self.count, -1, dtype=np.int64)
        count = len(rows[chosen])
        rows[chosen] = np.arange(count)
        buckets = np.zeros((count, comb(deck.size - size - hole, added)), dtype=np.int32)
        picks = subsets(deck.size - size, added)
        tables = self.holdings.tables, after.holdings.tables, after.table
        potential_kernels.next_buckets(*tables, self.start, self.end, picks, rows, buckets)
        return buckets


Points: TypeAlias = Callable[[HoldingBatch, Chosen], Array]


class FittedStep(Protocol):
    """One step of sorting hands into buckets, after it was fitted to the hands of a game."""

    @property
    def buckets(self) -> int:
        """The total number of buckets in this step, over all groups of hands."""

    def sort(self, part: HoldingBatch, groups: Labels) -> tuple[Labels, Singles | None]:
        """Sort the hands of a batch into buckets.

        Returns the bucket of each hand, and its distance from the bucket's centroid if there is one.
        """


class LosslessStep(NamedTuple):
    """A step that gives every hand on every board its own bucket, up to suit isomorphism."""

    buckets: int

    def sort(self, part: HoldingBatch, groups: Labels) -> tuple[Labels, Singles | None]:
        """Give every hand of a batch its own bucket.

        The second result is None: the buckets have no centroids.
        """
        return part.earlier_indices(part.holdings).astype(np.int32), None


class PercentileStep(NamedTuple):
    """A step that sorts hands by one value into buckets of equal weight (percentile buckets)."""

    holdings: Holdings  # the holdings that have values; their boards are sets
    codes: npt.NDArray[np.integer[Any]]  # [holding] the rank of its value
    bucket: Labels  # [group, code]
    buckets: int

    def sort(self, part: HoldingBatch, groups: Labels) -> tuple[Labels, Singles | None]:
        """Sort the hands of a batch into percentile buckets, separately within each group of hands.

        The second result is None: the buckets have no centroids.
        """
        return self.bucket[groups, self.codes[part.earlier_indices(self.holdings)]], None


class KMeansStep(NamedTuple):
    """A step that sorts hands into the clusters of k-means."""

    points: Points
    clusters: Clusters
    buckets: int

    def sort(self, part: HoldingBatch, groups: Labels) -> tuple[Labels, Singles | None]:
        """Assign each hand of a batch to the nearest cluster of its group.

        Returns the clusters and the distances.
        """
        points, labels = self.points(part, ALL), -1 - groups
        costs: Singles = np.empty(len(points), dtype=np.float32)
        c, bounds = self.clusters, (NO_BOUNDS, NO_BOUNDS, NO_BOUNDS)
        cluster_kernels.assign_points(points, 0, len(points), c.group, *c[:3], c.absolute, labels, costs, *bounds)
        return labels, costs


class NextRound(NamedTuple):
    """The buckets of the next round, for clustering hands by the buckets that they reach."""

    holdings: Holdings
    table: Array  # [board, hand] buckets
    ground: GroundDistances


class PotentialAwareStep(NamedTuple):
    """A step that clusters hands by the buckets that they reach in the next round (potential-aware)."""

    after: NextRound
    means: Singles  # [bucket, next bucket of its block]
    columns: Singles  # [dimension, bucket] centres of the means
    group: int  # number of buckets per group

    @property
    def buckets(self) -> int:
        """The total number of buckets in this step, over all groups of hands."""
        return len(self.means)

    def sort(self, part: HoldingBatch, groups: Labels) -> tuple[Labels, Singles | None]:
        """Assign each hand of a batch to the nearest cluster of its group.

        Returns the clusters and the distances.
        """
        points, labels = part.next_buckets(self.after, ALL), -1 - groups
        costs, where = np.empty(len(points), dtype=np.float32), (self.means, self.columns, self.after.ground)
        potential_kernels.assign_hands(points, 0, len(points), self.group, *where, labels, costs)
        return labels, costs


class StepFitter(NamedTuple):
    """Fits the steps that sort a round's hands into buckets."""

    plan: Plan
    features: Features
    r: int
    holdings: Holdings
    before: PreviousRound | None
    after: NextRound | None
    seconds: float | None  # time limit for k-means, if there is one
    tick: Share

    def fit(self, steps: tuple[BucketStep, ...]) -> list[FittedStep]:
        """Fit the steps that sort a round's hands. Each step divides the buckets of the step before."""
        fitted: list[FittedStep] = []
        for step in steps:
            groups = fitted[-1].buckets if fitted else self.before.buckets if self.before else 1
            if step.feature == CANONICAL or groups * step.buckets == len(self.holdings):
                fitted.append(LosslessStep(len(self.holdings)))
            elif groups * step.buckets > len(self.holdings):
                raise AbstractionError(
                    f"the plan asks for {groups * step.buckets:,} buckets in round {self.r + 1}, but there are only "
                    f"{len(self.holdings):,} different hands: use fewer"
                )
            elif FEATURES[step.feature].metric == VALUE:
                fitted.append(self._percentiles(step, groups, fitted))
            elif FEATURES[step.feature].metric == NEXT:
                fitted.append(self._potentials(step, groups, fitted))
            else:
                fitted.append(self._means(step, groups, fitted))
        return fitted

    def sort(self, part: HoldingBatch, fitted: list[FittedStep]) -> tuple[Labels, Singles | None]:
        """Sort the hands of a batch by all fitted steps.

        Returns the bucket of each hand, and its distance from the last step's centroid.

        The distance is None if the last step has no centroids.
        """
        groups, costs = part.previous_buckets(self.before), None
        for step in fitted:
            groups, costs = step.sort(part, groups)
        return groups, costs

    def map_batches(self, work: Callable[[HoldingBatch], Any], tick: Share = lambda share: None) -> list[Any]:
        """Call a function with each batch of the round's hands on several threads, and return the results."""
        count = max(64, len(self.holdings) // 500_000)  # many parts, so that each is small
        return in_parts(
            lambda start, end: work(HoldingBatch(self.holdings, start, end)),
            len(self.holdings.boards),
            self.features.threads,
            tick,
            parts=min(count, len(self.holdings.boards)),
        )

    @property
    def is_last_round(self) -> bool:
        """True if the board of the round is complete."""
        return self.features.is_last_round(self.r)

    def feature_points(self, feature: str) -> Points:
        """Return a function that maps hands to points for k-means, with the values of a feature as coordinates.

        All tables have equal weights.
        """
        deal = self.features.deal
        tables = FEATURES[feature].tables(self.features, self.plan.settings, self.r)
        if not tables:
            raise AbstractionError(
                f"{feature} has no codes in later rounds than that of the boards' classes: use codes = 0"
            )
        sources = [(deal.holdings((deal.board_sizes[r],)), table) for r, table in tables]

        def feature_points(part: HoldingBatch, chosen: Chosen) -> Singles:
            pieces = []
            for holdings, table in sources:
                scale = np.asarray(table.scale / len(sources), dtype=np.float32)
                pieces.append(table.values[part.earlier_indices(holdings)[chosen]].astype(np.float32) * scale)
            return np.ascontiguousarray(np.concatenate(pieces, axis=1))

        return feature_points

    def _percentiles(self, step: BucketStep, groups: int, fitted: list[FittedStep]) -> PercentileStep:
        ((r, table),) = FEATURES[step.feature].tables(self.features, self.plan.settings, self.r)
        sets = self.features.deal.holdings((self.features.deal.board_sizes[r],))
        codes, levels = _codes(np.asarray(table.values[:, 0]), lambda: sets.weights)

        mass, alone = np.zeros(groups * levels, dtype=np.int64), Lock()

        def weigh(part: HoldingBatch) -> None:
            group, _ = self.sort(part, fitted)
            where = group * np.int64(levels) + codes[part.earlier_indices(sets)]
            with alone:  # add each part immediately, because thousands of large parts do not fit in memory
                holdings_kernels.add_weights(where, part.weights, mass)

        self.map_batches(weigh, self.tick)
        bucket = np.zeros((groups, levels), dtype=np.int32)
        for g, weights in enumerate(mass.reshape(groups, levels)):
            there = np.flatnonzero(weights)
            cuts = cut_points(weights[there], step.buckets, f" in round {self.r + 1}")
            local = np.searchsorted(cuts, np.arange(len(there)), side="right")
            bucket[g, there] = g * step.buckets + local
        return PercentileStep(sets, codes, bucket, groups * step.buckets)

    def _means(self, step: BucketStep, groups: int, fitted: list[FittedStep]) -> KMeansStep:
        points, metric = self.feature_points(step.feature), FEATURES[step.feature].metric
        fit = partial(_fit_means, self.plan, step.buckets, metric)
        centroids = self._each_group(points, self.plan.sample, groups, fitted, fit)
        clusters = prepare_search(centroids, metric, step.buckets, self.features.threads)
        return KMeansStep(points, clusters, groups * step.buckets)

    def _potentials(self, step: BucketStep, groups: int, fitted: list[FittedStep]) -> PotentialAwareStep:
        if self.after is None:
            raise AbstractionError(
                f"round {self.r + 1} is sorted by the next round's buckets, which need centroids: let the next round "
                "exist, without recall, and let its last step be one of histogram, ochs, history, potential"
            )
        after = self.after

        fit = partial(_fit_potentials, step.buckets, after.ground)
        sample = min(self.plan.sample, potential.sample_size(step.buckets) * groups)
        means = self._each_group(lambda part, chosen: part.next_buckets(after, chosen), sample, groups, fitted, fit)
        return PotentialAwareStep(after, means, centre_columns(means, after.ground), step.buckets)

    def _each_group(self, points: Points, sample: int, groups: int, fitted: list[FittedStep], fit: Fit) -> Singles:
        """Fit a step to the points of each group, or to a sample of them, one group after another."""
        share = min(1.0, max(sample, POINTS_PER_GROUP * (groups - 1)) / len(self.holdings))

        def draw(part: HoldingBatch, few: Flags | None = None) -> tuple[Array, FloatArray, Labels]:
            rng = np.random.default_rng([self.plan.seed, self.r, part.start])
            chosen = rng.random(part.count) < share
            group, _ = self.sort(part, fitted)
            if few is not None:  # the remaining points of small groups
                chosen = few[group] & ~chosen
            return points(part, chosen), part.weights[chosen].astype(np.float64), group[chosen]

        drawn = self.map_batches(draw, lambda share: self.tick(share / 4))
        often = np.sum([np.bincount(group, minlength=groups) for *_, group in drawn], axis=0)
        if share < 1 and often.min() < SMALL_GROUP_POINTS:
            drawn += self.map_batches(partial(draw, few=often < SMALL_GROUP_POINTS))
        data, weights, group = (np.concatenate(pieces) for pieces in zip(*drawn, strict=True))
        # wall-clock time, which all machines share
        stop = partial(_past, inf if self.seconds is None else time() + self.seconds)
        if groups == 1:
            return fit(data, weights, self.plan.seed, self.features.threads, stop, self._tick_fit)
        order = np.argsort(group, kind="stable")
        data, weights, bounds = data[order], weights[order], np.searchsorted(group[order], np.arange(groups + 1))
        each = [
            _Group(data[first:end], weights[first:end], self.plan.seed + g)
            for g, (first, end) in enumerate(pairwise(bounds))
        ]
        return np.concatenate(self.features.engine.map(partial(_fit_group, fit, stop), each, self._tick_fit))

    def _tick_fit(self, share: float) -> None:
        self.tick(0.25 + 0.75 * share)


class _Group(NamedTuple):
    """The points of one group, which are fitted independently of other groups."""

    data: Array
    weights: FloatArray
    seed: int


def _fit_group(fit: Fit, stop: Stop, group: _Group) -> Singles:
    return fit(*_writable(group), 1, stop, lambda share: None)


def _writable(arrays: N) -> N:
    """Make read-only arrays from an engine writable, so that kernels are not compiled again for read-only arrays."""
    return type(arrays)(*(np.require(it, None, "W") if isinstance(it, np.ndarray) else it for it in arrays))


def _fit_means(
    plan: Plan,
    buckets: int,
    metric: str,
    data: Array,
    weights: FloatArray,
    seed: int,
    threads: int,
    stop: Stop,
    tick: Share,
) -> Singles:
    """Fit centroids and sort them by strength, the weakest first."""
    found = kmeans(
        data,
        buckets,
        weights=weights,
        metric=metric,
        iterations=plan.iterations,
        restarts=plan.restarts,
        batch=plan.batch or None,
        seed=seed,
        threads=threads,
        tick=tick,
        stop=stop,
    )
    weakest_first = np.argsort(found.centroids.sum(axis=1) * (-1 if metric == "emd" else 1))
    return found.centroids[weakest_first]


def _fit_potentials(
    buckets: int,
    ground: GroundDistances,
    data: Array,
    weights: FloatArray,
    seed: int,
    threads: int,
    stop: Stop,
    tick: Share,
) -> Singles:
    """Fit mean distributions and sort them by strength, the weakest first; all points are of one block."""
    block, first = distances_in_group(_writable(ground), int(data[0, 0]))
    ground, data = block, data - np.int32(first)
    means = potential.fit_clusters(data, weights, buckets, ground, seed=seed, threads=threads, tick=tick, stop=stop)
    strength = cluster_centres(means, ground).sum(axis=1)
    return means[np.argsort(-strength if ground.absolute else strength)]


def _past(moment: float) -> bool:
    return time() > moment


def _codes(values: Array, weights: Callable[[], IntArray]) -> tuple[npt.NDArray[np.integer[Any]], int]:
    """Return the rank of each holding's value, and the number of ranks.

    There are at most LEVELS ranks; if there are more values, ranks have equal weight.
    """
    most = int(values.max())
    if most < LEVELS:  # no need to sort, which takes two words per holding
        there = np.zeros(most + 1, dtype=np.bool_)
        starts = range(0, len(values), PIECE)
        for start in starts:
            there[values[start : start + PIECE]] = True
        number = np.cumsum(there) - 1
        number = number.astype(np.min_scalar_type(number[-1]))
        codes = np.empty(len(values), dtype=number.dtype)
        for start in starts:
            codes[start : start + PIECE] = number[values[start : start + PIECE]]
        return codes, int(number[-1]) + 1
    distinct, sorted_codes = np.unique(values, return_inverse=True)
    levels = len(distinct)
    if levels > LEVELS:
        below = np.cumsum(np.bincount(sorted_codes, weights()))
        sorted_codes = np.minimum((below - 1) * LEVELS / below[-1], LEVELS - 1).astype(np.int64)[sorted_codes]
        levels = LEVELS
    return sorted_codes.astype(np.min_scalar_type(levels - 1)), levels
