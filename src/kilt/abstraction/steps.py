"""The steps of an abstraction: each sorts the spots of a group into buckets, by one feature.

Groups are the buckets of the step before, or of the round before where it is remembered; at first there may be one for
all. Bucket b of group g has the number g·k + b. A step is fitted first, to all spots or to some; then it gives buckets
to the spots of any boards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.abstraction import cluster_kernels, spots_kernels
from kilt.abstraction.cluster import Clusters, kmeans, prepare
from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.features import Features, Table
from kilt.abstraction.percentile import cut_points
from kilt.abstraction.plan import CANONICAL, Plan, Step
from kilt.abstraction.spots import Spots
from kilt.artifact import Array
from kilt.cards.deck import FloatArray, IntArray
from kilt.errors import AbstractionError
from kilt.jit import in_parts

LEVELS = 1 << 16  # of a value, at most, that percentiles tell apart

Share: TypeAlias = Callable[[float], None]  # hears what share is done


class Before(NamedTuple):
    """The round before, where it is remembered."""

    spots: Spots
    table: Array  # [board, hand] buckets
    buckets: int


@dataclass(frozen=True)
class Part:
    """The spots of some boards of a round."""

    spots: Spots
    start: int  # board
    end: int

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.spots.tables.first[self.end] - self.spots.tables.first[self.start])

    @cached_property
    def weights(self) -> IntArray:
        """[spot] how many deals it stands for."""
        weights = np.empty(self.count, dtype=np.int64)
        spots_kernels.weigh_spots(self.spots.tables, self.start, self.end, self.spots.ways, weights)
        return weights

    def rows(self, other: Spots) -> IntArray:
        """[spot] the spot that it is among others, whose boards are sets of the first cards."""
        first = self.spots.tables.first
        if other is self.spots:
            return np.arange(first[self.start], first[self.end])
        rows = np.empty(self.count, dtype=np.int64)
        spots_kernels.find_spots(self.spots.tables, self.start, self.end, other.tables, rows)
        return rows

    def groups(self, before: Before | None) -> Labels:
        """[spot] the bucket of the round before, or 0."""
        buckets = np.zeros(self.count, dtype=np.int32)
        if before:
            spots_kernels.find_buckets(
                self.spots.tables, self.start, self.end, before.spots.tables, before.table, buckets
            )
        return buckets


class Fitted(Protocol):
    """A step that has been fitted."""

    @property
    def buckets(self) -> int:
        """Of all groups."""

    def sort(self, part: Part, groups: Labels) -> tuple[Labels, Singles | None]:
        """The buckets of some spots and, where that means something, what each costs there."""


class Spotwise(NamedTuple):
    """Lossless: each spot is a bucket."""

    buckets: int

    def sort(self, part: Part, groups: Labels) -> tuple[Labels, Singles | None]:
        """See `Fitted`."""
        return part.rows(part.spots).astype(np.int32), None


class Percentiles(NamedTuple):
    """Buckets of equal weight in order of a value."""

    spots: Spots  # that have values: boards taken as sets
    codes: npt.NDArray[np.integer[Any]]  # [spot] its value's number in order
    bucket: Labels  # [group, code]
    buckets: int

    def sort(self, part: Part, groups: Labels) -> tuple[Labels, Singles | None]:
        """See `Fitted`."""
        return self.bucket[groups, self.codes[part.rows(self.spots)]], None


class Means(NamedTuple):
    """Buckets around centroids."""

    points: Callable[[Part], Singles]
    clusters: Clusters
    buckets: int

    def sort(self, part: Part, groups: Labels) -> tuple[Labels, Singles | None]:
        """See `Fitted`."""
        points, labels = self.points(part), -1 - groups
        costs = np.empty(len(points), dtype=np.float32)
        c = self.clusters
        cluster_kernels.assign(points, 0, len(points), c.group, *c[:3], c.absolute, labels, costs)
        return labels, costs


class Fitting(NamedTuple):
    """What steps are fitted to: a round's spots and what is known of them."""

    plan: Plan
    features: Features
    r: int
    spots: Spots
    before: Before | None
    seconds: float | None  # for k-means, if they are limited
    tick: Share

    def fit(self, steps: tuple[Step, ...]) -> list[Fitted]:
        """The steps of a round, one inside the other."""
        fitted: list[Fitted] = []
        for step in steps:
            groups = fitted[-1].buckets if fitted else self.before.buckets if self.before else 1
            if step.feature == CANONICAL or groups * step.buckets == len(self.spots):
                fitted.append(Spotwise(len(self.spots)))
            elif groups * step.buckets > len(self.spots):
                raise AbstractionError(
                    f"{groups * step.buckets:,} buckets are asked for in round {self.r + 1}, but there are only "
                    f"{len(self.spots):,} different hands: ask for fewer"
                )
            elif step.feature in ("ehs", "ehs2"):
                fitted.append(self._percentiles(step, groups, fitted))
            else:
                fitted.append(self._means(step, groups, fitted))
        return fitted

    def sort(self, part: Part, fitted: list[Fitted]) -> tuple[Labels, Singles | None]:
        """The buckets of some spots after all steps so far, and the costs of the last step."""
        groups, costs = part.groups(self.before), None
        for step in fitted:
            groups, costs = step.sort(part, groups)
        return groups, costs

    def parts(self, work: Callable[[Part], Any], tick: Share = lambda share: None) -> list[Any]:
        """Do something with all spots, part by part."""
        count = max(64, len(self.spots) // 500_000)  # so that a part is small
        return in_parts(
            lambda start, end: work(Part(self.spots, start, end)),
            len(self.spots.boards),
            self.features.threads,
            tick,
            parts=min(count, len(self.spots.boards)),
        )

    def _percentiles(self, step: Step, groups: int, fitted: list[Fitted]) -> Percentiles:
        last = self.r == len(self.features.deal.sizes) - 1
        values = (
            self.features.strengths() if last else self.features.moments(self.r).values[:, int(step.feature == "ehs2")]
        )
        sets = self.features.deal.spots((self.features.deal.sizes[self.r],))
        codes, levels = _codes(np.asarray(values), sets.weights)

        def weigh(part: Part) -> Array:
            group, _ = self.sort(part, fitted)
            where = group * np.int64(levels) + codes[part.rows(sets)]
            return np.bincount(where, part.weights.astype(np.float64), groups * levels)

        mass = np.zeros(groups * levels)
        for found in self.parts(weigh, self.tick):
            mass += found
        bucket = np.zeros((groups, levels), dtype=np.int32)
        for g, weights in enumerate(mass.reshape(groups, levels)):
            there = np.flatnonzero(weights)
            local = np.searchsorted(cut_points(weights[there], step.buckets), np.arange(len(there)), side="right")
            bucket[g, there] = g * step.buckets + local
        return Percentiles(sets, codes, bucket, groups * step.buckets)

    def _means(self, step: Step, groups: int, fitted: list[Fitted]) -> Means:
        points, metric = POINTS[step.feature](self)
        share = min(1.0, self.plan.sample * max(1, groups // 10) / len(self.spots))

        def draw(part: Part) -> tuple[Singles, FloatArray, Labels]:
            rng = np.random.default_rng([self.plan.seed, self.r, part.start])
            chosen = np.flatnonzero(rng.random(part.count) < share) if share < 1 else slice(None)
            group, _ = self.sort(part, fitted)
            return points(part)[chosen], part.weights[chosen].astype(np.float64), group[chosen]

        drawn = zip(*self.parts(draw, lambda share: self.tick(share / 4)), strict=True)
        data, weights, group = (np.concatenate(pieces) for pieces in drawn)
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(groups + 1))
        centroids = np.empty((groups * step.buckets, data.shape[1]), dtype=np.float32)
        end_of_time = inf if self.seconds is None else perf_counter() + self.seconds

        def fit(first: int, end: int, threads: int = 1, tick: Share = lambda share: None) -> None:
            for g in range(first, end):
                mine = order[bounds[g] : bounds[g + 1]] if groups > 1 else slice(None)
                found = kmeans(
                    data[mine],
                    step.buckets,
                    weights=weights[mine],
                    metric=metric,
                    iterations=self.plan.iterations,
                    restarts=self.plan.restarts,
                    seed=self.plan.seed + g,
                    threads=threads,
                    tick=tick,
                    stop=lambda: perf_counter() > end_of_time,
                )
                weakest_first = np.argsort(found.centroids.sum(axis=1) * (-1 if metric == "emd" else 1))
                centroids[g * step.buckets : (g + 1) * step.buckets] = found.centroids[weakest_first]

        if groups == 1:
            fit(0, 1, self.features.threads, lambda share: self.tick(0.25 + 0.75 * share))
        else:
            in_parts(fit, groups, self.features.threads, lambda share: self.tick(0.25 + 0.75 * share))
        clusters = prepare(centroids, metric, step.buckets, self.features.threads)
        return Means(points, clusters, groups * step.buckets)


def _codes(values: Array, weights: IntArray) -> tuple[npt.NDArray[np.integer[Any]], int]:
    """The number of each value in order, and how many there are; at most LEVELS, of equal weight then."""
    distinct, codes = np.unique(values, return_inverse=True)
    levels = len(distinct)
    if levels > LEVELS:
        below = np.cumsum(np.bincount(codes, weights))
        codes = np.minimum((below - 1) * LEVELS / below[-1], LEVELS - 1).astype(np.int64)[codes]
        levels = LEVELS
    return codes.astype(np.min_scalar_type(levels - 1)), levels


def _table_points(fitting: Fitting, tables: list[tuple[int, Table]]) -> Callable[[Part], Singles]:
    """Points that are rows of tables of this round and of earlier ones, side by side, in equal shares."""
    deal = fitting.features.deal
    sources = [(deal.spots((deal.sizes[r],)), table) for r, table in tables]

    def points(part: Part) -> Singles:
        pieces = []
        for spots, table in sources:
            scale = np.asarray(table.scale / len(sources), dtype=np.float32)
            pieces.append(table.values[part.rows(spots)].astype(np.float32) * scale)
        return np.ascontiguousarray(np.concatenate(pieces, axis=1))

    return points


def _histogram(fitting: Fitting) -> tuple[Callable[[Part], Singles], str]:
    """The earth mover's distance, in bins."""
    return _table_points(fitting, [(fitting.r, _bins(fitting, fitting.r))]), "emd"


def _history(fitting: Fitting) -> tuple[Callable[[Part], Singles], str]:
    """The mean earth mover's distance over this round and all before it (001)."""
    return _table_points(fitting, [(r, _bins(fitting, r)) for r in range(fitting.r + 1)]), "emd"


def _ochs(fitting: Fitting) -> tuple[Callable[[Part], Singles], str]:
    return _table_points(fitting, [(fitting.r, fitting.features.ochs(fitting.r, fitting.plan.opponents))]), "l2"


def _bins(fitting: Fitting, r: int) -> Table:
    """Histograms of a round; on a complete board the strength itself, whose differences are the same distances."""
    features, bins = fitting.features, fitting.plan.bins
    if r == len(features.deal.sizes) - 1:
        return Table(features.strengths()[:, None], bins / features.deal.top)
    return features.histograms(r, bins)


POINTS: dict[str, Callable[[Fitting], tuple[Callable[[Part], Singles], str]]] = {
    "histogram": _histogram,
    "history": _history,
    "ochs": _ochs,
}
