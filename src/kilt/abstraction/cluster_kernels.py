"""Compiled loops of `cluster`.

The *cost* of a point in a cluster is its distance from the centroid: the sum of absolute differences, or that of
squares. A point that costs c needs no other centroid whose own cost at this one, divided by 2 or by 4, is c or more:
that is the triangle inequality, for the distance or for its square (Phillips 2002; Elkan 2003). So every centroid has a
list of its nearest neighbours in order, and the search for the nearest one goes from list to list until the inequality
ends it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import FloatArray
from kilt.jit import kernel, summing

Singles: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int32]


@summing
def cost_of(points: Singles, i: int, centroids: Singles, c: int, absolute: bool) -> np.float32:
    """What a point costs at a centroid."""
    total = np.float32(0)
    if absolute:
        for d in range(points.shape[1]):
            total += abs(points[i, d] - centroids[c, d])
    else:
        for d in range(points.shape[1]):
            apart = points[i, d] - centroids[c, d]
            total += apart * apart
    return total


@kernel
def seed(
    points: Singles,
    weights: FloatArray,
    uniforms: FloatArray,
    absolute: bool,
    centroids: Singles,
    labels: Labels,
    costs: Singles,
) -> None:
    """Write initial centroids: each a point, drawn in proportion to what it costs at those before (k-means++)."""
    n, k = len(points), len(centroids)
    limit = np.empty(k, dtype=np.float32)
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
        if chosen < 0:  # all points are centroids already
            chosen = c % n
        centroids[c] = points[chosen]
        for before in range(c):
            limit[before] = cost_of(centroids, before, centroids, c, absolute) / divisor
        for i in range(n):
            if c == 0 or costs[i] > limit[labels[i]]:
                cost = cost_of(points, i, centroids, c, absolute)
                if c == 0 or cost < costs[i]:
                    labels[i], costs[i] = c, cost


@kernel
def neighbours(
    centroids: Singles, start: int, end: int, group: int, absolute: bool, near: Labels, limits: Singles
) -> None:
    """Write the nearest neighbours of some centroids within their groups of `group` each.

    Their limits are half or a quarter of what they cost there, infinite where the group has no more of them.
    """
    divisor = np.float32(2 if absolute else 4)
    apart = np.empty(group, dtype=np.float32)
    for c in range(start, end):
        first = c - c % group
        for o in range(group):
            apart[o] = cost_of(centroids, c, centroids, first + o, absolute) / divisor
        apart[c - first] = np.inf
        order = np.argsort(apart)
        for j in range(near.shape[1]):
            near[c, j], limits[c, j] = first + order[j], apart[order[j]]


@kernel
def nearest(
    points: Singles, i: int, hint: int, group: int, centroids: Singles, near: Labels, limits: Singles, absolute: bool
) -> tuple[int, np.float32]:
    """The cheapest centroid of the group of `hint` for a point, and what the point costs there."""
    best, cost = hint, cost_of(points, i, centroids, hint, absolute)
    lists = near.shape[1]
    j = 0
    while j < lists and limits[best, j] < cost:
        other = near[best, j]
        there = cost_of(points, i, centroids, other, absolute)
        j += 1
        if there < cost:
            best, cost, j = other, there, 0
    if j == lists and lists + 1 < group:
        first = best - best % group
        for other in range(first, first + group):
            there = cost_of(points, i, centroids, other, absolute)
            if there < cost:
                best, cost = other, there
    return best, cost


@kernel
def assign(
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
) -> int:
    """Bring the labels of some points up to date, within their groups, and write their costs; how many changed.

    The label −1 − g is that of a point of group g which has none yet. Points that follow each other are much alike: the
    search begins at the cluster of the last one of the group.
    """
    changed = 0
    hints = np.arange(len(centroids) // group) * group
    for i in range(start, end):
        before = labels[i]
        hint = before if before >= 0 else hints[-1 - before]
        best, cost = nearest(points, i, hint, group, centroids, near, limits, absolute)
        changed += best != before
        labels[i], costs[i], hints[best // group] = best, cost, best
    return changed


@kernel
def add_up(
    points: Singles, weights: FloatArray, start: int, end: int, labels: Labels, sums: FloatArray, totals: FloatArray
) -> None:
    """Add some points to the sums of their clusters, and their weights to the totals."""
    for i in range(start, end):
        c, weight = labels[i], weights[i]
        totals[c] += weight
        for d in range(points.shape[1]):
            sums[c, d] += weight * points[i, d]
