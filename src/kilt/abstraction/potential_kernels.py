"""Compiled loops of `potential`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.cluster_kernels import Labels, Singles, cost_of
from kilt.abstraction.spots_kernels import SpotTables, open_board
from kilt.cards.boards_kernels import locate
from kilt.cards.deck import ByteArray, FloatArray
from kilt.jit import kernel


class Ground(NamedTuple):
    """How far the buckets of the next round are from each other."""

    order: Labels  # [bucket, place] all of them, the nearest first
    apart: Singles  # [bucket, place] their distances
    centroids: Singles  # [bucket, dimension]
    absolute: bool  # whether the distance is a sum of absolute differences


@kernel
def next_buckets(
    t: SpotTables, after: SpotTables, table: npt.NDArray[Any], start: int, end: int, picks: ByteArray, out: Labels
) -> None:
    """Write, for the spots of some boards, the bucket of the next round that each way to deal on leads to."""
    hands = len(t.bits)
    numbers, filled = np.empty(hands, dtype=np.int32), np.zeros(len(out), dtype=np.int32)
    spot_hand = np.empty(hands, dtype=np.int64)
    known, dealt = t.cards.shape[1], picks.shape[1]
    cards, rest = np.empty(known + dealt, dtype=np.int64), np.empty(len(t.card_bit), dtype=np.int64)
    for board in range(start, end):
        count = open_board(t, board, numbers, spot_hand, rest)
        cards[:known] = t.cards[board]
        base = t.first[board] - t.first[start]
        for pick in range(picks.shape[0]):
            held = np.int64(0)
            for k in range(dealt):
                cards[known + k] = rest[picks[pick, k]]
                held |= t.card_bit[cards[known + k]]
            there, turned = locate(after.boards, cards)
            for number in range(count):
                hand, spot = spot_hand[number], base + number
                if not held & t.bits[hand]:
                    out[spot, filled[spot]] = table[there, after.moved[turned, hand]]
                    filled[spot] += 1


@kernel
def greedy(point: Labels, i: int, due: Singles, means: Singles, m: int, ground: Ground, left: Singles) -> np.float32:
    """About the earth mover's distance of a point from a mean (Ganzfried and Sandholm 2014, algorithm 2).

    Each of the point's buckets takes what is `due` to it, its share of the point, from the mean's nearest buckets that
    have something left; all take turns. Nothing is due in the end. `left` is scratch.
    """
    buckets, ways = means.shape[1], point.shape[1]
    for b in range(buckets):
        left[b] = means[m, b]
    open_ways, total, tiny = 0, np.float32(0), np.float32(1e-7)
    for j in range(ways):
        open_ways += due[j] > tiny
    for place in range(buckets):
        for j in range(ways):
            if due[j] > tiny:
                bucket = point[i, j]
                source = ground.order[bucket, place]
                if left[source] > 0:
                    moved = min(left[source], due[j])
                    total += moved * ground.apart[bucket, place]
                    left[source] -= moved
                    due[j] -= moved
                    if due[j] <= tiny:
                        open_ways -= 1
        if open_ways == 0:
            break
    return total


@kernel
def assign(
    point: Labels,
    start: int,
    end: int,
    group: int,
    means: Singles,
    centres: Singles,
    ground: Ground,
    labels: Labels,
    costs: Singles,
) -> int:
    """Write the nearest mean of each point within its group, and how far it is; how many labels changed.

    Labels are as in `cluster_kernels.assign`. The distance between the centres of two distributions is never more than
    the earth mover's distance between them: means whose centre is too far away need not be looked at.
    """
    dimensions, ways = centres.shape[1], point.shape[1]
    left, due = np.empty(means.shape[1], dtype=np.float32), np.empty(ways, dtype=np.float32)
    centre, bound = np.empty((1, dimensions), dtype=np.float32), np.empty(group, dtype=np.float32)
    changed = 0
    for i in range(start, end):
        centre[0] = 0
        for j in range(ways):
            for d in range(dimensions):
                centre[0, d] += ground.centroids[point[i, j], d]
        for d in range(dimensions):
            centre[0, d] /= ways
        before = labels[i]
        first = before - before % group if before >= 0 else (-1 - before) * group
        for m in range(group):
            bound[m] = cost_of(centre, 0, centres, first + m, ground.absolute)
            if not ground.absolute:
                bound[m] = np.sqrt(bound[m])
        best, cost = -1, np.float32(np.inf)
        for m in np.argsort(bound):
            if bound[m] >= cost:
                break
            due[:] = np.float32(1.0 / ways)
            there = greedy(point, i, due, means, first + m, ground, left)
            if there < cost:
                best, cost = first + m, there
        changed += best != before
        labels[i], costs[i] = best, cost
    return changed


@kernel
def between(means: Singles, start: int, end: int, ground: Ground, apart: Singles) -> None:
    """Write how far some means are from all of them: the larger of the two ways to go."""
    buckets = means.shape[1]
    everywhere = np.arange(buckets).astype(np.int32).reshape(1, -1)
    left, due = np.empty(buckets, dtype=np.float32), np.empty(buckets, dtype=np.float32)
    for a in range(start, end):
        for b in range(len(means)):
            due[:] = means[a]
            there = greedy(everywhere, 0, due, means, b, ground, left)
            due[:] = means[b]
            apart[a, b] = max(there, greedy(everywhere, 0, due, means, a, ground, left))


@kernel
def add_up(point: Labels, weights: FloatArray, labels: Labels, sums: FloatArray, totals: FloatArray) -> None:
    """Add the distributions of points to those of their clusters."""
    for i in range(len(point)):
        c = labels[i]
        totals[c] += weights[i]
        for j in range(point.shape[1]):
            sums[c, point[i, j]] += weights[i] / point.shape[1]
