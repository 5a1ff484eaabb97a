"""Compiled loops of `partition`."""

from __future__ import annotations

import numpy as np

from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.arrays import FloatArray
from kilt.jit import kernel

LEAST = 1e-9  # what a move must gain, as a part of what is at stake: or else it is rounding


@kernel
def move_points(distances: Singles, passes: int, mean: bool, labels: Labels, sums: FloatArray) -> int:
    """Move one point after another to the cluster that is best for it, until none moves; return the passes it took.

    Writes `labels`, and to `sums` [point, cluster] each point's sum of distances from the members. What falls with
    every move is the sum over clusters of the distances inside, or with `mean` of these divided by the size. A cluster
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
