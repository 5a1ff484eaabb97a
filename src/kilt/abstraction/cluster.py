"""K-means clustering of millions of points into thousands of clusters [Johanson16 §5.4].

Lloyd's algorithm starts from k-means++ seeds (Arthur and Vassilvitskii 2007), and the best of several restarts counts.
Points have weights. The distance is L2, whose square k-means minimises, or L1: between cumulative histograms, L1 is the
earth mover's distance in one dimension, and the mean of the cumulative histograms is that of the histograms. The
triangle inequality avoids almost all distance computations: see `cluster_kernels`. With batches, centroids are running
means over random subsets of the points, which is sufficient for a good start (Sculley 2010).

>>> points = np.array([[0.0], [0.1], [0.9], [1.0]])
>>> found = kmeans(points, 2)
>>> [round(float(centroid), 2) for centroid in np.sort(found.centroids.ravel())], round(found.distortion, 4)
([0.05, 0.95], 0.0025)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction import cluster_kernels as kernels
from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.arrays import FloatArray
from kilt.errors import AbstractionError
from kilt.jit import in_parts

METRICS = {"l2": False, "emd": True}  # whether the cost is the sum of absolute differences
NEIGHBOURS = 96
TRACKED_NEIGHBOURS = 32  # number of a centroid's neighbours whose moves are tracked
PARTS = 16  # number of parts in which points are assigned
NO_BOUNDS: Singles = np.empty(0, dtype=np.float32)  # in place of bounds, if points are assigned only once
SEEDS_FROM = 40  # number of points per cluster from which seeds are drawn


class Clusters(NamedTuple):
    """Cluster centroids with lists of their neighbours, for a fast search of the nearest centroid."""

    centroids: Singles  # [cluster, dimension]
    near: Labels  # [cluster, neighbour] the nearest other centroids of its group, nearest first
    limits: Singles  # [cluster, neighbour]
    group: int  # clusters per group: a point is assigned within its own group only
    absolute: bool


class Clustering(NamedTuple):
    """The result of k-means: the centroids, each point's cluster, and its distance from the centroid."""

    centroids: Singles  # [cluster, dimension]
    labels: Labels  # [point]
    costs: Singles  # [point] distance from its centroid; squared for L2
    distortion: float  # the weighted mean of the costs
    iterations: int


def kmeans(
    points: npt.NDArray[Any],
    k: int,
    *,
    weights: npt.NDArray[Any] | None = None,
    metric: str = "l2",
    iterations: int = 100,
    restarts: int = 1,
    batch: int | None = None,
    tolerance: float = 1e-4,
    start: npt.NDArray[Any] | None = None,
    seed: int = 0,
    threads: int = 1,
    tick: Callable[[float], None] = lambda share: None,
    stop: Callable[[], bool] = lambda: False,
) -> Clustering:
    """Cluster points into `k` non-empty clusters with Lloyd's algorithm from k-means++ seeds.

    Parameters
    ----------
    points : ndarray, shape (points, dimensions)
        Converted to float32.
    k : int
        Number of clusters.
    weights : ndarray, shape (points,), optional
        Weight of each point; 1 by default.
    metric : str
        ``"l2"``, whose square is minimised, or ``"emd"``, the L1 distance of cumulative histograms.
    iterations : int
        Maximum number for each restart.
    restarts : int
        The run with the lowest distortion is the result.
    batch : int, optional
        Number of points that each iteration but the last uses, drawn again each time. By default, all points.
    tolerance : float
        Stop when an iteration lowers the distortion by less than this share of it.
    start : ndarray, shape (k, dimensions), optional
        Initial centroids, in place of seeds.
    seed : int
        Seed of the random numbers.
    threads : int
        Number of threads; the result does not depend on it.
    tick : callable
        Called with the share of the work that is done, from 0 to 1.
    stop : callable
        Called after each iteration; the iterations end if it returns True.

    Returns
    -------
    Clustering

    Raises
    ------
    AbstractionError
        There are fewer points, or fewer different points, than clusters.
    """
    data = np.ascontiguousarray(points, dtype=np.float32)
    share = np.ones(len(data)) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    if not 0 < k <= len(data):
        raise AbstractionError(f"{k} clusters of {len(data)} points are impossible: use 1 to {len(data)}")
    absolute, runs = METRICS[metric], []
    for restart in range(restarts):
        rng = np.random.default_rng([seed, restart])
        centroids = _seeds(data, share, k, absolute, rng) if start is None else np.array(start, dtype=np.float32)
        problem = _Problem(data, share, absolute, threads, partial(_tell, tick, restart, restarts), stop)
        if batch is not None and batch < len(data):
            centroids = problem.batches(centroids, iterations, batch, rng)
            runs.append(problem.lloyd(centroids, 1, tolerance))
        else:
            runs.append(problem.lloyd(centroids, iterations, tolerance))
    return min(runs, key=lambda run: run.distortion)


def _tell(tick: Callable[[float], None], before: int, of: int, share: float) -> None:
    """Report progress: a share of the current run, after `before` of `of` runs."""
    tick((before + share) / of)


def prepare_search(centroids: Singles, metric: str | bool, group: int | None = None, threads: int = 1) -> Clusters:
    """List the nearest neighbours of every centroid, to speed up the search for the nearest centroid.

    Each `group` consecutive centroids form a group with separate lists.
    """
    absolute = METRICS[metric] if isinstance(metric, str) else metric
    size = group or len(centroids)
    lists = min(size - 1, NEIGHBOURS)
    near = np.empty((len(centroids), lists), dtype=np.int32)
    limits = np.empty((len(centroids), lists), dtype=np.float32)
    columns = np.ascontiguousarray(centroids.T)

    def find(first: int, end: int) -> None:
        apart = np.empty(size, dtype=np.float32)
        kernels.find_neighbours(columns, first, end, absolute, apart, near, limits)

    in_parts(find, len(centroids), threads)
    return Clusters(centroids, near, limits, size, absolute)


def _seeds(data: Singles, weights: FloatArray, k: int, absolute: bool, rng: np.random.Generator) -> Singles:
    """Draw initial centroids with k-means++, from a sample of the points if there are many."""
    some = SEEDS_FROM * k
    if len(data) > 2 * some:
        chosen = np.sort(rng.choice(len(data), some, replace=False))
        data, weights = data[chosen], weights[chosen]
    centroids = np.empty((k, data.shape[1]), dtype=np.float32)
    limit, labels, costs = (np.empty(size, dtype) for size, dtype in ((k, "f4"), (len(data), "i4"), (len(data), "f4")))
    kernels.seed_centroids(data, weights, rng.random(k), absolute, centroids, limit, labels, costs)
    return centroids


class _Problem(NamedTuple):
    """The points to be clustered, with their weights, the metric and callbacks."""

    data: Singles
    weights: FloatArray
    absolute: bool
    threads: int
    tick: Callable[[float], None]
    stop: Callable[[], bool]

    def lloyd(self, centroids: Singles, iterations: int, tolerance: float) -> Clustering:
        """Run Lloyd's algorithm until it converges.

        Each iteration assigns points to centroids, and moves centroids to their means.
        """
        labels, before, done = np.full(len(self.data), -1, dtype=np.int32), np.inf, 0
        others, old = np.empty(len(self.data), dtype=np.float32), centroids
        # moving to means need not lower a sum of absolute differences, so the best iteration is kept
        best: Clustering | None = None
        while True:
            changed, costs = self.assign(centroids, labels, others, old)
            distortion = float(np.average(costs, weights=self.weights))
            counts = np.bincount(labels, minlength=len(centroids))
            if counts.all() and (best is None or distortion < best.distortion):
                best = Clustering(centroids, labels.copy(), costs, distortion, done)
            over = done >= iterations or not changed or before - distortion <= tolerance * distortion
            if over or self.stop():
                if best:
                    return best._replace(iterations=done)
                old = centroids.copy()
                self.fill_empty_clusters(centroids, counts, costs)
                continue
            before, done, old = distortion, done + 1, centroids
            sums, totals = self.sum_clusters(labels, len(centroids))
            centroids = (sums / np.where(totals > 0, totals, 1)[:, None]).astype(np.float32)
            self.fill_empty_clusters(centroids, totals, costs)
            self.tick(done / iterations)

    def batches(self, centroids: Singles, iterations: int, batch: int, rng: np.random.Generator) -> Singles:
        """Run mini-batch k-means from initial centroids.

        Each centroid moves to the mean of all points that batches have assigned to it so far.
        """
        sums, totals = np.zeros(centroids.shape), np.zeros(len(centroids))
        for done in range(iterations):
            chosen = np.sort(rng.choice(len(self.data), batch, replace=False))
            part = self._replace(data=self.data[chosen], weights=self.weights[chosen])
            labels = np.full(batch, -1, dtype=np.int32)
            part.assign(centroids, labels, NO_BOUNDS, centroids)
            new_sums, new_totals = part.sum_clusters(labels, len(totals))
            sums += new_sums
            totals += new_totals
            used = totals > 0
            centroids[used] = sums[used] / totals[used, None]
            self.tick((done + 1) / iterations)
            if self.stop():
                break
        return centroids

    def assign(self, centroids: Singles, labels: Labels, others: Singles, old: Singles) -> tuple[int, Singles]:
        """Reassign each point to its nearest centroid, after the centroids have moved.

        Updates `labels`, and returns the number of changed labels and the distances of the points.
        """
        clusters = prepare_search(centroids, self.absolute, threads=self.threads)
        steps = np.abs(centroids - old)
        steps = steps.sum(axis=1) if self.absolute else np.sqrt(np.square(steps).sum(axis=1))
        around = clusters.near[:, :TRACKED_NEIGHBOURS]
        moved = steps[around].max(axis=1, initial=0.0)
        edge = clusters.limits[:, around.shape[1] - 1] if around.size else np.full(len(centroids), np.inf, np.float32)
        edges = 2 * edge if self.absolute else 2 * np.sqrt(edge)
        costs = np.empty(len(self.data), dtype=np.float32)
        searched = clusters.group, *clusters[:3], self.absolute, labels, costs, others, moved, edges
        changed = in_parts(
            lambda first, end: kernels.assign_points(self.data, first, end, *searched),
            len(self.data),
            self.threads,
            parts=PARTS,
        )
        return sum(changed), costs

    def sum_clusters(self, labels: Labels, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the weighted sum of the points in each cluster, and the total weight of each cluster."""

        def part(first: int, end: int) -> tuple[FloatArray, FloatArray]:
            sums, totals = np.zeros((k, self.data.shape[1])), np.zeros(k)
            kernels.sum_points(self.data, self.weights, first, end, labels, sums, totals)
            return sums, totals

        sums, totals = zip(*in_parts(part, len(self.data), self.threads, parts=8), strict=True)
        return np.sum(sums, axis=0), np.sum(totals, axis=0)

    def fill_empty_clusters(self, centroids: Singles, totals: npt.NDArray[Any], costs: Singles) -> None:
        """Move the centroid of each empty cluster to a point far from its own centroid."""
        empty = np.flatnonzero(totals == 0)
        if len(empty):
            dearest = np.argsort(-(self.weights * costs), kind="stable")[: len(empty)]
            if costs[dearest[-1]] == 0:
                raise AbstractionError(
                    f"there are fewer different points than the {len(centroids)} clusters: use fewer clusters"
                )
            centroids[empty] = self.data[dearest]
