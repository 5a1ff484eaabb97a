"""Compiled loops for potential-aware clustering by earth mover's distances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.holdings_kernels import HoldingTables, prepare_board
from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.boards_kernels import find_canonical_board
from kilt.jit import kernel

CHECKED = 8  # number of positions after which to test whether the lower bound suffices


class GroundDistances(NamedTuple):
    """The distances between next-round buckets, on which earth mover's distances between hands are based.

    If boards have classes, no hand reaches buckets of two classes: buckets then form blocks of equal size, one after
    the other, and only distances within a block exist.
    """

    order: Labels  # [bucket, rank] all buckets of its block, as positions in it, nearest first
    distances: Singles  # [bucket, rank] their distances
    centroids: Singles  # [bucket, dimension]
    absolute: bool  # whether the distance is a sum of absolute differences


@kernel
def next_buckets(
    t: HoldingTables,
    after: HoldingTables,
    table: npt.NDArray[Any],
    start: int,
    end: int,
    picks: ByteArray,
    rows: IntArray,
    out: Labels,
) -> None:
    """Look up each hand's bucket in the next round, for every possible next card.

    This is done for some holdings of some boards: `rows` has the output row of each holding; −1 leaves the holding out.
    """
    hands = len(t.bits)
    numbers, filled = np.empty(hands, dtype=np.int32), np.zeros(len(out), dtype=np.int32)
    holding_hand, wanted = np.empty(hands, dtype=np.int64), np.empty(hands, dtype=np.int64)
    known, dealt = t.cards.shape[1], picks.shape[1]
    cards, rest = np.empty(known + dealt, dtype=np.int64), np.empty(len(t.card_bit), dtype=np.int64)
    for board in range(start, end):
        base, count = t.first[board] - t.first[start], 0
        for number in range(prepare_board(t, board, numbers, holding_hand, rest)):
            if rows[base + number] >= 0:
                wanted[count] = number
                count += 1
        for k in range(known):
            cards[k] = t.cards[board, k]
        for pick in range(picks.shape[0] if count else 0):
            held = np.int64(0)
            for k in range(dealt):
                cards[known + k] = rest[picks[pick, k]]
                held |= t.card_bit[cards[known + k]]
            there, turned = find_canonical_board(after.boards, cards)
            for number in wanted[:count]:
                hand, row = holding_hand[number], rows[base + number]
                if not held & t.bits[hand]:
                    out[row, filled[row]] = table[there, after.moved[turned, hand]]
                    filled[row] += 1


class EmdWorkspace(NamedTuple):
    """Scratch arrays for computing earth mover's distances."""

    bucket: Labels  # buckets of the point
    share: Singles  # the point's share of each
    here: Labels  # buckets whose shares are not yet moved completely
    due: Singles  # the rest of their shares
    left: Singles  # [position in the block] the rest of the mean


@kernel
def make_workspace(buckets: int) -> EmdWorkspace:
    """Allocate scratch arrays for computing earth mover's distances.

    They have room for blocks of `buckets` next-round buckets.
    """
    bucket, here, shares = np.empty(buckets, np.int32), np.empty(buckets, np.int32), np.empty((3, buckets), np.float32)
    return EmdWorkspace(bucket, shares[0], here, shares[1], shares[2])


@kernel
def greedy_distance(
    count: int, means: Singles, m: int, ground: GroundDistances, enough: np.float32, room: EmdWorkspace
) -> np.float32:
    """Approximate the earth mover's distance between a hand and a cluster with a fast greedy method.

    See algorithm 2 of Ganzfried and Sandholm (2014).

    The hand is a point with `count` buckets, which `room` holds. In turns, each takes its share from the mean's nearest
    bucket     that has something left. If the distance is going to be `enough` or more, returns a lower bound.
    """
    bucket, share, here, due, left = room
    buckets, total, tiny = means.shape[1], np.float32(0), np.float32(1e-7)
    for b in range(buckets):
        left[b] = means[m, b]
    for j in range(count):
        here[j], due[j] = bucket[j], share[j]
    for place in range(buckets):
        satisfied = 0
        for j in range(count):
            source = ground.order[here[j], place]
            if left[source] > 0:
                moved = min(left[source], due[j])
                total += moved * ground.distances[here[j], place]
                left[source] -= moved
                due[j] -= moved
                satisfied += due[j] <= tiny
        if satisfied:
            waiting = 0
            for j in range(count):
                here[waiting], due[waiting] = here[j], due[j]
                waiting += due[j] > tiny
            count = waiting
            if count == 0:
                break
        if place % CHECKED == CHECKED - 1:
            least = total
            for j in range(count):
                least += due[j] * ground.distances[here[j], place]
            if least >= enough:
                return least
    return total


@kernel
def count_next_buckets(point: Labels, i: int, often: Labels, room: EmdWorkspace) -> int:
    """List the next-round buckets that a hand can reach, with their probabilities.

    Returns the number of buckets.

    `often` [position in the block] is zero before and after.
    """
    count, ways, first = 0, point.shape[1], point[i, 0] - point[i, 0] % len(often)
    for j in range(ways):
        b = point[i, j]
        if often[b - first] == 0:
            room.bucket[count] = b
            count += 1
        often[b - first] += 1
    for j in range(count):
        place = room.bucket[j] - first
        room.share[j] = np.float32(often[place]) / np.float32(ways)
        often[place] = 0
    return count


@kernel
def assign_hands(
    point: Labels,
    start: int,
    end: int,
    group: int,
    means: Singles,
    columns: Singles,
    ground: GroundDistances,
    labels: Labels,
    costs: Singles,
) -> int:
    """Assign each hand to the nearest cluster, by the probabilities of its next-round buckets.

    Writes the labels, and the distances of the points from their means. Returns the number of changed labels.

    Labels are as in `cluster_kernels.assign_points`. The distance between the centres of two distributions is never
    more than the earth mover's distance between them: means whose centre is too far away are skipped. `columns` are the
    centres [dimension, mean].
    """
    dimensions, changed = len(columns), 0
    often, room = np.zeros(means.shape[1], dtype=np.int32), make_workspace(means.shape[1])
    bound, near = np.empty(group, dtype=np.float32), np.empty(group, dtype=np.int32)
    for i in range(start, end):
        before = labels[i]
        first = before - before % group if before >= 0 else (-1 - before) * group
        count = count_next_buckets(point, i, often, room)
        bound[:] = 0
        for d in range(dimensions):
            others, centre = columns[d, first : first + group], np.float32(0)
            for j in range(count):
                centre += room.share[j] * ground.centroids[room.bucket[j], d]
            if ground.absolute:
                for m in range(group):
                    bound[m] += abs(others[m] - centre)
            else:
                for m in range(group):
                    bound[m] += (others[m] - centre) * (others[m] - centre)
        if not ground.absolute:
            for m in range(group):
                bound[m] = np.sqrt(bound[m])
        best = 0
        for m in range(1, group):
            if bound[m] < bound[best]:
                best = m
        cost = greedy_distance(count, means, first + best, ground, np.float32(np.inf), room)
        within = 0
        for m in range(group):
            if bound[m] < cost and m != best:
                near[within] = m
                within += 1
        while within:  # the nearest centre first
            place = 0
            for other in range(1, within):
                if bound[near[other]] < bound[near[place]]:
                    place = other
            m, within = near[place], within - 1
            near[place] = near[within]
            if bound[m] >= cost:
                break
            there = greedy_distance(count, means, first + m, ground, cost, room)
            if there < cost:
                best, cost = m, there
        changed += first + best != before
        labels[i], costs[i] = first + best, cost
    return changed


@kernel
def neighbour_distances(
    means: Singles, near: Labels, ground: GroundDistances, found: Singles, start: int, end: int
) -> None:
    """Compute the earth mover's distances between clusters and their nearest neighbours.

    Clusters are given by their means; `near` has the neighbours, which are in the same block.
    """
    far, room = np.float32(np.inf), make_workspace(means.shape[1])
    for a in range(start, end):
        block = a * (len(ground.order) // means.shape[1]) // len(means)
        count = list_mean_buckets(means, a, block * means.shape[1], room)
        for j in range(near.shape[1]):
            found[a, j] = greedy_distance(count, means, near[a, j], ground, far, room)


@kernel
def list_mean_buckets(means: Singles, m: int, first: int, room: EmdWorkspace) -> int:
    """List the next-round buckets in a cluster's mean distribution. Returns their number.

    Their probabilities are listed as well.

    Buckets are counted from the first of the block.
    """
    count = 0
    for b in range(means.shape[1]):
        if means[m, b] > 0:
            room.bucket[count], room.share[count] = first + b, means[m, b]
            count += 1
    return count


@kernel
def sum_distributions(point: Labels, weights: FloatArray, labels: Labels, sums: FloatArray, totals: FloatArray) -> None:
    """Sum the distributions of all hands in each cluster.

    All points belong to the first block of buckets.
    """
    for i in range(len(point)):
        c = labels[i]
        totals[c] += weights[i]
        for j in range(point.shape[1]):
            sums[c, point[i, j]] += weights[i] / point.shape[1]
