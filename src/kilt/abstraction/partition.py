"""Cluster objects from their pairwise distances, without coordinates ([Brown15 §2.3]; [Schmid15]).

========  ============================================================================================================
name      distance of a point from a cluster, and moves of points
========  ============================================================================================================
sum       the sum of its distances from the members; one point moves at a time. [Brown15 algorithm 3], made to
          converge
printed   the sum as well, but all points move at once, by the clusters of the previous pass: algorithm 3 as printed.
          Small clusters attract every point, empty ones most of all, so all points may end up in the same few
          clusters
average   the mean of its distances from the members; a point moves if that lowers Σ over clusters of Σ d / size
means     like average, with squared distances: if the distances are L2, this is k-means
medoids   the distance from the member in the middle [Schmid15]: FasterPAM [Schubert21]
========  ============================================================================================================

All methods start from the seeds of k-means++, which need only distances between points.

>>> line = np.array([0.0, 1.0, 9.0, 10.0, 11.0])
>>> partition(np.abs(line[:, None] - line), 2).labels.tolist()
[0, 0, 1, 1, 1]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction import partition_kernels as kernels
from kilt.abstraction.cluster_kernels import Labels
from kilt.arrays import Array, FloatArray
from kilt.errors import AbstractionError

PASSES = 200  # maximum number of passes: the other methods converge, the printed one may not


class DistanceClustering(NamedTuple):
    """The result of clustering by pairwise distances: the cluster of each object, and the total error."""

    labels: Labels  # [point]; clusters are numbered in the order of their first points
    clusters: int  # number of non-empty clusters
    error: float  # the minimised quantity, per point; for medoids, the mean distance from the medoids
    passes: int


def partition(
    distances: Array, k: int, *, way: str = "sum", restarts: int = 1, seed: int = 0, passes: int = PASSES
) -> DistanceClustering:
    """Cluster objects into at most `k` clusters, given the distance of each pair.

    Returns the best of several restarts.

    Raises
    ------
    AbstractionError
        The method is unknown, `distances` is not a matrix of distances, or it has fewer than `k` points.
    """
    check_distances(distances)
    if way not in WAYS:
        raise AbstractionError(f"unknown clustering {way!r}: use one of {', '.join(WAYS)}")
    if not 1 <= k <= len(distances):
        raise AbstractionError(f"{k} classes of {len(distances)} boards are impossible: use 1 to {len(distances)}")
    found = []
    for restart in range(restarts):
        seeds = draw_seeds(distances, k, np.random.default_rng([seed, restart]))
        found.append(_numbered(*WAYS[way](distances, seeds, passes)))
    return min(found, key=lambda one: (-one.clusters, one.error))


def check_distances(distances: Array) -> None:
    """Check that distances are a symmetric, non-negative matrix with a zero diagonal.

    Raises AbstractionError otherwise.
    """
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise AbstractionError(f"distances have the shape {distances.shape}: a square matrix is needed")
    wrong = np.argwhere(~np.isfinite(distances) | (distances < 0))
    if len(wrong):
        i, j = wrong[0]
        raise AbstractionError(f"the distance of {i} and {j} is {distances[i, j]}: it must be a number, 0 or more")
    if np.diagonal(distances).any() or not np.array_equal(distances, distances.T):
        raise AbstractionError("distances must be symmetric, and 0 from a point to itself")


def draw_seeds(distances: Array, k: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw `k` objects as initial cluster centres, with a preference for distant objects.

    The probability of a point is proportional to its squared distance from the nearest centre drawn so far.
    """
    seeds = [int(rng.integers(len(distances)))]
    nearest = distances[seeds[0]].astype(np.float64)
    while len(seeds) < k:
        chance = nearest**2
        chance[seeds] = 0.0
        if not chance.any():  # all remaining points coincide with seeds
            chance[:] = 1.0
            chance[seeds] = 0.0
        seeds.append(int(rng.choice(len(distances), p=chance / chance.sum())))
        nearest = np.minimum(nearest, distances[seeds[-1]])
    return np.array(seeds)


def _by_sum(distances: Array, seeds: npt.NDArray[np.int64], passes: int) -> tuple[Labels, float, int]:
    return _moving(distances, seeds, passes, mean=False)


def _by_average(distances: Array, seeds: npt.NDArray[np.int64], passes: int) -> tuple[Labels, float, int]:
    return _moving(distances, seeds, passes, mean=True)


def _by_means(distances: Array, seeds: npt.NDArray[np.int64], passes: int) -> tuple[Labels, float, int]:
    return _moving(np.square(distances), seeds, passes, mean=True)


def _moving(distances: Array, seeds: npt.NDArray[np.int64], passes: int, *, mean: bool) -> tuple[Labels, float, int]:
    labels, sums = _nearest(distances, seeds), np.empty((len(distances), len(seeds)))
    done: int = kernels.move_points(np.ascontiguousarray(distances, dtype=np.float32), passes, mean, labels, sums)
    own = sums[np.arange(len(labels)), labels]
    if mean:
        own = own / np.bincount(labels)[labels]
    return labels, float(own.mean()), done


def _as_printed(distances: Array, seeds: npt.NDArray[np.int64], passes: int) -> tuple[Labels, float, int]:
    labels, before, done = _nearest(distances, seeds), np.empty(0, dtype=np.int32), 0
    while done < passes and not np.array_equal(before, labels):
        sums = _cluster_distances(distances, labels, len(seeds))
        before, labels, done = labels, np.argmin(sums, axis=1).astype(np.int32), done + 1
    sums = _cluster_distances(distances, labels, len(seeds))
    return labels, float(sums[np.arange(len(labels)), labels].mean()), done


def _by_medoids(distances: Array, seeds: npt.NDArray[np.int64], passes: int) -> tuple[Labels, float, int]:
    medoids, labels = seeds.astype(np.int64), np.empty(len(distances), dtype=np.int32)
    done: int = kernels.swap_medoids(np.ascontiguousarray(distances, dtype=np.float32), passes, medoids, labels)
    return labels, float(distances[np.arange(len(labels)), medoids[labels]].mean()), done


WAYS: dict[str, Callable[[Array, npt.NDArray[np.int64], int], tuple[Labels, float, int]]] = {
    "sum": _by_sum,
    "printed": _as_printed,
    "average": _by_average,
    "means": _by_means,
    "medoids": _by_medoids,
}


def clustering_errors(
    distances: Array, most: int, *, way: str = "medoids", restarts: int = 10, seed: int = 0
) -> FloatArray:
    """Return the clustering error for each number of clusters from 1 to `most` [Schmid15 figure 4]."""
    found = [partition(distances, k, way=way, restarts=restarts, seed=seed).error for k in range(1, most + 1)]
    return np.array(found)


def _nearest(distances: Array, seeds: npt.NDArray[np.int64]) -> Labels:
    """Return the index of the seed nearest to each point; a seed is nearest to itself."""
    labels: Labels = np.argmin(distances[:, seeds], axis=1).astype(np.int32)
    labels[seeds] = np.arange(len(seeds), dtype=np.int32)
    return labels


def _cluster_distances(distances: Array, labels: Labels, k: int) -> npt.NDArray[Any]:
    """Return the sum of each point's distances from the members of each cluster, shape (points, clusters)."""
    members = np.zeros((len(labels), k), dtype=distances.dtype)
    members[np.arange(len(labels)), labels] = 1
    return distances @ members


def _numbered(labels: Labels, error: float, passes: int) -> DistanceClustering:
    used, first, again = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return DistanceClustering(order[again].astype(np.int32), len(used), error, passes)
