"""Compiled loops that improve clusters by moving single objects or by swapping medoids."""

from __future__ import annotations

import numpy as np

from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.arrays import FloatArray, IntArray
from kilt.jit import kernel, subkernel

LEAST = 1e-9  # minimum gain of a move, relative to the distances that it changes: a smaller gain may be rounding


@kernel
def move_points(distances: Singles, passes: int, mean: bool, labels: Labels, sums: FloatArray) -> int:
    """Move objects to better clusters, one at a time, until no move helps.

    Returns the number of passes.

    Writes `labels`, and to `sums` [point, cluster] each point's sum of distances from the members. Every move lowers
    the sum over clusters of the distances inside, or with `mean` of these divided by the cluster's size. A cluster
    keeps its last point.
    """
    points, clusters = sums.shape
    size = np.zeros(clusters)
    inside = np.zeros(clusters)  # twice the sum of distances
    sums[:] = 0.0
    for j in range(points):
        size[labels[j]] += 1
        for i in range(points):
            sums[i, labels[j]] += distances[j, i]
    for i in range(points):
        inside[labels[i]] += sums[i, labels[i]]
    done, moved = 0, 1
    while done < passes and moved > 0:
        done, moved = done + 1, 0
        for i in range(points):
            here = labels[i]
            if size[here] == 1:
                continue
            best, least = here, 0.0
            for there in range(clusters):
                if there != here:
                    change = sums[i, there] - sums[i, here]
                    if mean:
                        change = (inside[there] + 2 * sums[i, there]) / (size[there] + 1) - inside[there] / size[there]
                        change += (inside[here] - 2 * sums[i, here]) / (size[here] - 1) - inside[here] / size[here]
                    if change < least - LEAST * sums[i, here]:
                        best, least = there, change
            if best != here:
                moved += 1
                size[here] -= 1
                size[best] += 1
                inside[here] -= 2 * sums[i, here]
                inside[best] += 2 * sums[i, best]
                for j in range(points):
                    sums[j, here] -= distances[i, j]
                    sums[j, best] += distances[i, j]
                labels[i] = best
    return done


@kernel
def swap_medoids(distances: Singles, passes: int, medoids: IntArray, labels: Labels) -> int:
    """Improve clusters by swapping their medoids until no swap helps (FasterPAM).

    Returns the number of passes.

    This minimises the sum of all points' distances from their nearest medoids.

    Each point in turn replaces the medoid whose replacement lowers the sum most, if any does [Schubert21 algorithm 3].
    The search ends when every point has been tried since the last replacement, or after `passes` passes. `medoids`
    holds the initial medoids and then the final ones; `labels` [point] gets the index of each point's medoid.
    """
    points, clusters = len(distances), len(medoids)
    first, second = np.empty(points, np.int32), np.empty(points, np.int32)  # [point] numbers of the two nearest medoids
    near, further = np.empty(points), np.empty(points)  # [point] its distances from these
    chosen = np.zeros(points, np.bool_)  # [point] whether it is a medoid
    removal, loss = np.empty(clusters), np.empty(clusters)
    for m in range(clusters):
        chosen[medoids[m]] = True
    far = 0.0  # with one medoid, any value that is at least the largest distance serves
    for i in range(points):
        for j in range(i):
            far = max(far, distances[i, j])
    total = 0.0
    for i in range(points):
        find_two_nearest(distances[i], medoids, i, far, first, second, near, further)
        total += near[i]
    sum_removals(first, near, further, removal)
    done, left = 0, points  # passes done, and points to try before the search ends
    while done < passes and left > 0:
        done += 1
        for x in range(points):
            if left == 0:
                break
            left -= 1
            if chosen[x]:
                continue
            row, added = distances[x], 0.0
            for m in range(clusters):
                loss[m] = removal[m]
            for i in range(points):
                if row[i] < near[i]:
                    added += row[i] - near[i]
                    loss[first[i]] += near[i] - further[i]
                elif row[i] < further[i]:
                    loss[first[i]] += row[i] - further[i]
            worst = 0
            for m in range(1, clusters):
                if loss[m] < loss[worst]:
                    worst = m
            if added + loss[worst] >= -LEAST * total:
                continue
            chosen[medoids[worst]], chosen[x] = False, True
            medoids[worst] = x
            total = 0.0
            for i in range(points):
                if first[i] == worst or second[i] == worst:
                    find_two_nearest(distances[i], medoids, i, far, first, second, near, further)
                elif i == x or row[i] < near[i]:
                    second[i], further[i] = first[i], near[i]
                    first[i], near[i] = worst, row[i]
                elif row[i] < further[i]:
                    second[i], further[i] = worst, row[i]
                total += near[i]
            sum_removals(first, near, further, removal)
            left = points - 1
    for i in range(points):
        labels[i] = first[i]
    return done


@subkernel
def find_two_nearest(
    row: Singles,
    medoids: IntArray,
    i: int,
    far: float,
    first: Labels,
    second: Labels,
    near: FloatArray,
    further: FloatArray,
) -> None:
    """Find the two medoids nearest to object `i`, and write their indices and distances.

    A medoid is nearest to itself. `row` has the distances of the point from all points. If there is only one medoid,
    `far` stands for the distance from the second.
    """
    first[i], second[i], near[i], further[i] = -1, -1, np.inf, np.inf
    for m in range(len(medoids)):
        distance = row[medoids[m]]
        if medoids[m] == i or distance < near[i]:
            second[i], further[i] = first[i], near[i]
            first[i], near[i] = m, distance
        elif distance < further[i]:
            second[i], further[i] = m, distance
    if second[i] < 0:
        further[i] = far


@subkernel
def sum_removals(first: Labels, near: FloatArray, further: FloatArray, removal: FloatArray) -> None:
    """Compute how much the total distance to the nearest medoid grows if each medoid is removed.

    The points of a removed medoid go to their second nearest medoid.
    """
    for m in range(len(removal)):
        removal[m] = 0.0
    for i in range(len(first)):
        removal[first[i]] += further[i] - near[i]
