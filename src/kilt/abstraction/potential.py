"""Cluster hands by the buckets that they are likely to reach in the next round (potential-aware).

The method is that of Ganzfried and Sandholm (2014). A point is a hand's distribution over the buckets of the next
round, and the distance of two points is the earth mover's distance, where moving from one of these buckets to another
costs the distance between their centroids. Computing this exactly for millions of points is too slow. The authors'
greedy heuristic approximates it, and the distance between the means of both distributions is a lower bound that avoids
most computations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kilt.abstraction import potential_kernels as kernels
from kilt.abstraction.cluster import kmeans
from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.potential_kernels import GroundDistances
from kilt.arrays import FloatArray
from kilt.jit import in_parts

SAMPLE = 100_000  # maximum number of points that means are fitted to, per thousand clusters or part of a thousand
ITERATIONS = 10  # maximum number of iterations
NEIGHBOURS = 128  # number of a cluster's neighbours whose distances from it are computed


def ground_distances(
    centroids: Singles, *, absolute: bool, distances: Singles | None = None, blocks: int = 1
) -> GroundDistances:
    """Compute the distances between next-round buckets, on which earth mover's distances between hands are based.

    The distances are those of the buckets' centroids, unless `distances` has better ones. If there are several blocks
    (see `GroundDistances`), `distances` has the distances within each.
    """
    if distances is None:
        distances = _distances(centroids, absolute, blocks)
    order = np.argsort(distances, axis=1, kind="stable").astype(np.int32)
    return GroundDistances(
        order, np.take_along_axis(distances, order, axis=1), np.ascontiguousarray(centroids), absolute
    )


def distances_in_group(ground: GroundDistances, bucket: int) -> tuple[GroundDistances, int]:
    """Return the distances within one group of next-round buckets: the group of a given bucket.

    The group is called a block. The second result is its first bucket.
    """
    size = ground.order.shape[1]
    first = bucket - bucket % size
    mine = slice(first, first + size)
    return GroundDistances(ground.order[mine], ground.distances[mine], ground.centroids[mine], ground.absolute), first


def _distances(centroids: Singles, absolute: bool, blocks: int) -> Singles:
    size = len(centroids) // blocks
    apart = np.empty((len(centroids), size), dtype=np.float32)
    for b, centroid in enumerate(centroids):
        difference = centroids[b - b % size : b - b % size + size] - centroid
        apart[b] = np.abs(difference).sum(axis=1) if absolute else np.sqrt((difference**2).sum(axis=1))
    return apart


def cluster_centres(means: Singles, ground: GroundDistances) -> Singles:
    """Return the centre of each cluster of hands: the mean position of its next-round buckets.

    The shape is (clusters, dimensions). All blocks have the same number of clusters.
    """
    size, dimensions = means.shape[1], ground.centroids.shape[1]
    blocks = ground.centroids.reshape(-1, size, dimensions)
    centres = means.reshape(len(blocks), -1, size) @ blocks
    return np.ascontiguousarray(centres.reshape(-1, dimensions).astype(np.float32))


def centre_columns(means: Singles, ground: GroundDistances) -> Singles:
    """Return the centres of clusters as columns of an array, for fast comparisons with a point.

    The shape is (dimensions, clusters).
    """
    return np.ascontiguousarray(cluster_centres(means, ground).T)


def mean_distances(
    means: Singles,
    ground: GroundDistances,
    blocks: int = 1,
    threads: int = 1,
    tick: Callable[[float], None] = lambda share: None,
) -> Singles:
    """Return the earth mover's distance between each pair of cluster means.

    A mean is a distribution over next-round buckets. The shape is (clusters, clusters of a block): distances are
    computed only within each block of clusters.

    The previous round uses them as its ground distances. There are as many `blocks` as the ground of these means has,
    or more. Distances are computed among neighbours only, and each is the larger of the two directions. For clusters
    farther apart, the distance between their centres stands in, shifted by its typical difference from the earth
    mover's distance.
    """
    size = len(means) // blocks
    apart = _distances(cluster_centres(means, ground), ground.absolute, blocks)
    near = np.argsort(apart, axis=1, kind="stable")[:, : NEIGHBOURS + 1]  # including the cluster itself
    first = np.arange(blocks).repeat(size)[:, None] * size
    found = np.empty(near.shape, dtype=np.float32)
    look = partial(kernels.neighbour_distances, means, (first + near).astype(np.int32), ground, found)
    in_parts(look, len(means), threads, tick)
    more = (found - np.take_along_axis(apart, near, axis=1)).mean(axis=1)
    apart += (more[:, None] + more.reshape(blocks, size).repeat(size, axis=0)) / 2
    np.put_along_axis(apart, near, found, axis=1)
    square = apart.reshape(blocks, size, size)
    return np.maximum(square, square.transpose(0, 2, 1)).reshape(apart.shape)


def sample_size(k: int) -> int:
    """Return the number of sample points for computing `k` clusters."""
    return SAMPLE * -(-k // 1000)


def fit_clusters(
    point: Labels,
    weights: FloatArray,
    k: int,
    ground: GroundDistances,
    *,
    seed: int = 0,
    threads: int = 1,
    tick: Callable[[float], None] = lambda share: None,
    stop: Callable[[], bool] = lambda: False,
) -> Singles:
    """Cluster hands by their probabilities of reaching each bucket of the next round.

    Returns the mean distribution of each of the `k` clusters.

    The shape is (clusters, next-round buckets). A point is a row of next-round buckets. k-means on the points' centres
    gives the initial means. The ground must be one block.
    """
    centres = np.zeros((len(point), ground.centroids.shape[1]), dtype=np.float32)
    for column in point.T:
        centres += ground.centroids[column]
    metric = "emd" if ground.absolute else "l2"
    centres /= point.shape[1]
    start = kmeans(centres, k, weights=weights, metric=metric, seed=seed, threads=threads, stop=stop)
    labels, costs = start.labels, np.empty(len(point), dtype=np.float32)

    def assign(means: Singles, columns: Singles, start: int, end: int) -> int:
        changed: int = kernels.assign_hands(point, start, end, k, means, columns, ground, labels, costs)
        return changed

    for done in range(ITERATIONS):
        means = _means(point, weights, labels, k, len(ground.centroids))
        look = partial(assign, means, centre_columns(means, ground))
        changed = in_parts(look, len(point), threads, partial(_tell, tick, done))
        _fill(labels, weights * costs, k)
        if sum(changed) <= len(point) // 1000 or stop():
            break
    return _means(point, weights, labels, k, len(ground.centroids))


def _tell(tick: Callable[[float], None], done: int, share: float) -> None:
    tick((done + share) / ITERATIONS)


def _fill(labels: Labels, costs: FloatArray, k: int) -> None:
    """Move a point into each empty cluster: the points with the highest costs that are not alone in their cluster."""
    counts = np.bincount(labels, minlength=k)
    expensive = iter(np.argsort(-costs, kind="stable"))
    for empty in np.flatnonzero(counts == 0):
        chosen = next(i for i in expensive if counts[labels[i]] > 1)
        counts[labels[chosen]] -= 1
        labels[chosen] = empty


def _means(point: Labels, weights: FloatArray, labels: Labels, k: int, buckets: int) -> Singles:
    sums, totals = np.zeros((k, buckets)), np.zeros(k)
    kernels.sum_distributions(point, weights, labels, sums, totals)
    means: Singles = (sums / totals[:, None]).astype(np.float32)
    return means
