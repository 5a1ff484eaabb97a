"""Compiled loops of k-means: seed the centroids, and assign points to the nearest one.

The *cost* of a point in a cluster is its distance from the centroid: the sum of absolute differences, or of squared
differences. If a point costs c at its centroid, no other centroid can be nearer unless its own cost at this centroid,
divided by 2 (by 4 for squares), is less than c: this is the triangle inequality, for the distance or for its square
(Phillips 2002; Elkan 2003). So every centroid has a list of its nearest neighbours in order, and the search follows
these lists until the inequality ends it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.jit import kernel

# numba tests signed indices for being negative, but not unsigned ones
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)

CERTAIN = np.float32(1 - 1e-5)  # factor for a bound, so that rounding errors cannot break it

Singles: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int32]
Index: TypeAlias = int | np.int64 | np.uint64


@kernel
def point_distance(points: Singles, i: int, centroids: Singles, c: int | np.int64, absolute: bool) -> np.float32:
    """Return the distance between a point and a centroid, either absolute (L1) or squared.

    Each difference x adds x · (a + b·x), which is x or x². Four dimensions are computed at a time, then the rest one by
    one. There are no branches, so the compiler inlines the function.
    """
    here, there, size = np.uint64(i), np.uint64(c), np.uint64(points.shape[1])
    a, b = np.float32(absolute), np.float32(not absolute)
    t0, t1, t2, t3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    d = np.uint64(0)
    while d + THREE < size:
        x0 = abs(points[here, d] - centroids[there, d])
        x1 = abs(points[here, d + ONE] - centroids[there, d + ONE])
        x2 = abs(points[here, d + TWO] - centroids[there, d + TWO])
        x3 = abs(points[here, d + THREE] - centroids[there, d + THREE])
        t0 += x0 * (a + b * x0)
        t1 += x1 * (a + b * x1)
        t2 += x2 * (a + b * x2)
        t3 += x3 * (a + b * x3)
        d += THREE + ONE
    while d < size:
        x0 = abs(points[here, d] - centroids[there, d])
        t0 += x0 * (a + b * x0)
        d += ONE
    return (t0 + t1) + (t2 + t3)


@kernel
def seed_centroids(
    points: Singles,
    weights: FloatArray,
    uniforms: FloatArray,
    absolute: bool,
    centroids: Singles,
    limit: Singles,
    labels: Labels,
    costs: Singles,
) -> None:
    """Draw initial centroids with k-means++, which prefers points far from those already drawn.

    `limit` [centroid], `labels` [point] and `costs` [point] are scratch.
    """
    n, k = len(points), len(centroids)
    divisor = np.float32(2 if absolute else 4)
    for i in range(n):
        labels[i], costs[i] = 0, 1
    for c in range(k):
        total = 0.0
        for i in range(n):
            total += weights[i] * costs[i]
        left, chosen = uniforms[c] * total, -1
        for i in range(n):
            if weights[i] * costs[i] > 0:
                chosen = i
                left -= weights[i] * costs[i]
                if left < 0:
                    break
        if chosen < 0:  # every remaining point coincides with a centroid
            chosen = c % n
        for d in range(points.shape[1]):
            centroids[c, d] = points[chosen, d]
        for before in range(c):
            limit[before] = point_distance(centroids, before, centroids, c, absolute) / divisor
        for i in range(n):
            if c == 0 or costs[i] > limit[labels[i]]:
                cost = point_distance(points, i, centroids, c, absolute)
                if c == 0 or cost < costs[i]:
                    labels[i], costs[i] = c, cost


@kernel
def find_neighbours(
    columns: Singles, start: int, end: int, absolute: bool, apart: Singles, near: Labels, limits: Singles
) -> None:
    """Find the nearest neighbours of some centroids, within the same group.

    Each `len(apart)` consecutive centroids form a group; `apart` is scratch.

    `columns` are the centroids as [dimension, cluster], so that one is compared with many at once. A neighbour's limit
    is half (for squares, a quarter) of its cost at the centroid; it is infinite if the group has no further neighbours.
    """
    divisor, group = np.float32(2 if absolute else 4), len(apart)
    lists = near.shape[1]
    for c in range(start, end if lists else start):
        first = c - c % group
        for o in range(group):
            apart[o] = 0
        for d in range(len(columns)):
            others, here = columns[d, first : first + group], columns[d, c]
            if absolute:
                for o in range(group):
                    apart[o] += abs(others[o] - here) / divisor
            else:
                for o in range(group):
                    apart[o] += (others[o] - here) * (others[o] - here) / divisor
        filled = 0  # length of the ordered list; numba's sorting functions take ten seconds to compile
        for o in range(group):
            if o != c - first and (filled < lists or apart[o] < limits[c, lists - 1]):
                filled = min(filled + 1, lists)
                j = filled - 1
                while j > 0 and limits[c, j - 1] > apart[o]:
                    near[c, j], limits[c, j] = near[c, j - 1], limits[c, j - 1]
                    j -= 1
                near[c, j], limits[c, j] = first + o, apart[o]


@kernel
def find_nearest(
    points: Singles,
    i: int,
    hint: Index,
    cost: np.float32,
    group: int,
    centroids: Singles,
    near: Labels,
    limits: Singles,
    absolute: bool,
    two: bool,
) -> tuple[Index, np.float32, np.float32]:
    """Find the centroid nearest to a point, within one group.

    Returns its index and its distance.

    `hint` is a centroid, at which the point has cost `cost`.

    If `two` is set, the third result is a lower bound on the cost at all other centroids.
    """
    best, lists, j = np.uint64(hint), np.uint64(near.shape[1]), np.uint64(0)
    second = np.float32(np.inf) if two else cost
    enough = _half(cost, second, absolute)
    while j < lists and limits[best, j] < enough:
        other = np.uint64(near[best, j])
        there = point_distance(points, i, centroids, np.int64(other), absolute)
        j += ONE
        if there < cost:
            second = cost if two else there
            best, cost, j = other, there, np.uint64(0)
            enough = _half(cost, second, absolute)
        elif there < second:
            second = there
            enough = _half(cost, second, absolute)
    if j < lists or lists + ONE >= group:
        return np.int64(best), cost, second
    # it is the nearest: all centroids outside of its list are too far away
    if lists and limits[best, lists - ONE] >= cost:
        second = min(second, _beyond(limits[best, lists - ONE], cost, absolute))
    else:
        first = best - best % np.uint64(group)
        second = np.float32(np.inf)
        for o in range(group):
            other = first + np.uint64(o)
            if other != best:
                there = point_distance(points, i, centroids, np.int64(other), absolute)
                if there < cost:
                    best, cost, second = other, there, cost
                elif there < second:
                    second = there
    return np.int64(best), cost, second


@kernel
def _beyond(limit: np.float32, cost: np.float32, absolute: bool) -> np.float32:
    """Return a lower bound on a point's cost at every centroid whose limit is at least `limit`.

    `cost` is the point's cost at the centroid whose list is searched.
    """
    if absolute:
        return np.float32(2) * limit - cost
    apart: np.float32 = np.float32(2) * np.sqrt(limit) - np.sqrt(cost)
    return apart * apart


@kernel
def _half(cost: np.float32, second: np.float32, absolute: bool) -> np.float32:
    """Return the limit at which a centroid costs the point at least `second`."""
    if absolute:
        return (cost + second) / np.float32(2)
    if cost == second:
        return cost
    half: np.float32 = (np.sqrt(cost) + np.sqrt(second)) / np.float32(2)
    return half * half


@kernel
def assign_points(
    points: Singles,
    start: int,
    end: int,
    group: int,
    centroids: Singles,
    near: Labels,
    limits: Singles,
    absolute: bool,
    labels: Labels,
    costs: Singles,
    others: Singles,
    moved: Singles,
    edges: Singles,
) -> int:
    """Assign points to their nearest centroids. Returns how many points changed cluster.

    `labels` and `costs` are updated.

    The label −1 − g marks a point of group g without a label; its search begins at the best of a few centroids.

    `others`, if it is not empty, has a lower bound on the distance between each point and all other centroids. Since
    the bound was computed, the neighbours of a centroid within its edge have `moved` by at most this much, and all
    others are beyond the edge. This alone shows for most points that they keep their label (Hamerly 2010).
    """
    changed, two = 0, len(others) > 0
    apart_of_pivots = max(int(np.sqrt(group)), 1)
    for i in range(start, end):
        before = labels[i]
        if before >= 0:
            hint, cost = np.int64(before), point_distance(points, i, centroids, np.int64(before), absolute)
        else:
            first = np.int64(-1 - before) * group
            hint, cost = np.int64(first), np.float32(np.inf)
            for other in range(first, first + group, apart_of_pivots):
                there = point_distance(points, i, centroids, other, absolute)
                if there < cost:
                    hint, cost = np.int64(other), there
        if two and before >= 0:
            apart = cost if absolute else np.sqrt(cost)
            bound = min(others[i] - moved[hint], edges[hint] - apart)
            if apart < bound * CERTAIN:
                costs[i], others[i] = cost, bound
                continue
        best, cost, second = find_nearest(points, i, hint, cost, group, centroids, near, limits, absolute, two)
        changed += best != before
        labels[i], costs[i] = best, cost
        if two:
            others[i] = second if absolute else np.sqrt(second)
    return changed


@kernel
def sum_points(
    points: Singles, weights: FloatArray, start: int, end: int, labels: Labels, sums: FloatArray, totals: FloatArray
) -> None:
    """Add each point to the sum of its cluster, and its weight to the cluster's total weight."""
    for i in range(start, end):
        c, weight = labels[i], weights[i]
        totals[c] += weight
        for d in range(points.shape[1]):
            sums[c, d] += weight * points[i, d]
