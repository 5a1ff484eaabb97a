"""Build buckets separately within each class of similar boards [Brown15 algorithm 1].

In the round of the classes, hands are sorted separately in each class and each bucket of an earlier round.
Later rounds would need a bucket for each hand on each board as dealt: 2.4 billion on the river. To avoid these tables,
each hand gets a code that depends on the board as a set, one of some thousands; each class then sorts the codes into
its buckets, by the same features, with the weights that the codes have in the class. By default there are no codes:
boards are kept as dealt as far as their classes require, and buckets are exact. Codes save disk space and time.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from kilt.abstraction import classes_kernels, cluster_kernels
from kilt.abstraction.classes import BoardClasses
from kilt.abstraction.cluster import METRICS, kmeans
from kilt.abstraction.cluster_kernels import Labels, Singles
from kilt.abstraction.features import FEATURES, VALUE
from kilt.abstraction.percentile import percentile_buckets
from kilt.abstraction.plan import STRENGTHS, BucketStep, Plan, percentile_steps
from kilt.abstraction.steps import ALL, HoldingBatch, PreviousRound, StepFitter
from kilt.arrays import Array, FloatArray, IntArray
from kilt.errors import AbstractionError


class ClassBuckets(NamedTuple):
    """The bucket of every small group of similar hands, in every class of boards.

    The number of such a group is called a code.
    """

    bucket: Labels  # [class, code]
    sizes: IntArray  # [bucket] number of deals
    distortion: float | None  # mean distance of a hand from its bucket's centroid, if buckets have centroids


def code_steps(fitting: StepFitter) -> tuple[BucketStep, ...]:
    """Return the steps that sort hands into small groups, which are clustered later.

    The number of such a group is called a code.

    All classes of boards share the codes. The steps are those of the round, with more buckets.
    """
    public, steps = fitting.plan.public_at(fitting.r), fitting.plan.rounds[fitting.r].steps
    codes = public.codes if public else 0
    by_strength = {step.feature for step in steps} <= {*STRENGTHS}
    if by_strength and fitting.is_last_round:
        return (BucketStep("ehs", min(codes, fitting.features.count_strengths())),)
    if by_strength:
        return percentile_steps(codes)
    return (BucketStep(steps[-1].feature, min(codes, len(fitting.holdings))),)


def sort_codes(
    fitting: StepFitter, steps: tuple[BucketStep, ...], classes: BoardClasses, codes: Array, count: int
) -> ClassBuckets:
    """Cluster small groups of similar hands into buckets, separately for each class of boards.

    The number of such a group is called a code.

    `codes` is [board, hand].

    Raises
    ------
    AbstractionError
        A class has too few codes for its buckets.
    """
    weights = classes.count_deals(fitting.holdings, codes, count)
    points = {step.feature: _means(fitting, step.feature, codes, count) for step in steps}
    buckets = int(np.prod([step.buckets for step in steps]))
    used = np.count_nonzero(weights, axis=1)
    for label in np.flatnonzero(used < buckets):
        raise AbstractionError(
            f"class {label} of the boards has {used[label]} codes of hands in round {fitting.r + 1}, too few for "
            f"{buckets} buckets: use fewer buckets or more codes"
        )
    inside = fitting.features.engine.map(partial(_sort_class, fitting.plan, steps, points), weights)
    bucket = (np.arange(classes.number)[:, None] * buckets + inside).astype(np.int32)
    sizes = np.bincount(bucket.ravel(), weights.ravel(), classes.number * buckets).astype(np.int64)
    return ClassBuckets(bucket, sizes, _distortion(fitting, steps[-1], classes, codes, points, weights, bucket))


def _distortion(
    fitting: StepFitter,
    last: BucketStep,
    classes: BoardClasses,
    codes: Array,
    points: dict[str, Singles],
    weights: FloatArray,
    bucket: Labels,
) -> float | None:
    """Return the mean cost of a hand (not of a code) in its bucket; None if buckets are percentiles."""
    metric = FEATURES[last.feature].metric
    if metric not in METRICS:
        return None
    means, count = points[last.feature].astype(np.float64), int(bucket.max()) + 1
    centroids, totals = np.zeros((count, means.shape[1])), np.bincount(bucket.ravel(), weights.ravel(), count)
    for label, mine in enumerate(bucket):
        np.add.at(centroids, mine, weights[label, :, None] * means)
    middle = (centroids / totals[:, None]).astype(np.float32)
    of, table = fitting.feature_points(last.feature), PreviousRound(fitting.holdings, codes, weights.shape[1])
    _, found = classes.look_up_earlier(fitting.holdings)

    def cost(part: HoldingBatch) -> float:
        first = fitting.holdings.tables.first[part.start : part.end + 1]
        there = part.weights, part.previous_buckets(table), first - first[0], found[part.start : part.end]
        return float(classes_kernels.sum_code_distances(of(part, ALL), *there, bucket, middle, METRICS[metric]))

    return float(sum(fitting.map_batches(cost)) / fitting.holdings.weights.sum())


def _sort_class(plan: Plan, steps: tuple[BucketStep, ...], points: dict[str, Singles], weights: FloatArray) -> Labels:
    """Return the bucket of each code within one class of boards; 0 for codes that the class does not have.

    `weights` are the weights of the codes in the class.
    """
    used, labels = np.flatnonzero(weights), np.zeros(len(weights), dtype=np.int32)
    labels[used] = _nested(plan, steps, {name: p[used] for name, p in points.items()}, weights[used])
    return labels


def _means(fitting: StepFitter, feature: str, codes: Array, count: int) -> Singles:
    """Return the mean of a feature over the hands of each code, shape (codes, dimensions)."""
    points, table = fitting.feature_points(feature), PreviousRound(fitting.holdings, codes, count)

    def add(part: HoldingBatch) -> tuple[FloatArray, FloatArray]:
        data, mine = points(part, ALL), part.previous_buckets(table)
        sums, totals = np.zeros((count, data.shape[1])), np.zeros(count)
        cluster_kernels.sum_points(data, part.weights.astype(np.float64), 0, len(data), mine, sums, totals)
        return sums, totals

    sums, totals = (np.sum(column, axis=0) for column in zip(*fitting.map_batches(add), strict=True))
    means: Singles = (sums / np.maximum(totals, 1)[:, None]).astype(np.float32)
    return means


def _nested(plan: Plan, steps: tuple[BucketStep, ...], points: dict[str, Singles], weights: FloatArray) -> Labels:
    """Sort the codes of one class into buckets, one step inside the other; return the bucket of each code."""
    labels, groups = np.zeros(len(weights), dtype=np.int32), 1
    for step in steps:
        inside = np.empty_like(labels)
        for group in range(groups):
            mine = np.flatnonzero(labels == group)
            inside[mine] = group * step.buckets + _sorted(plan, step, points[step.feature][mine], weights[mine])
        labels, groups = inside, groups * step.buckets
    return labels


def _sorted(plan: Plan, step: BucketStep, points: Singles, weights: FloatArray) -> Labels:
    """Sort codes into the buckets of one step, the weakest bucket first; return the bucket of each code."""
    metric = FEATURES[step.feature].metric
    if metric == VALUE:
        return percentile_buckets(points[:, 0], weights, step.buckets).astype(np.int32)
    found = kmeans(
        points,
        step.buckets,
        weights=weights,
        metric=metric,
        iterations=plan.iterations,
        restarts=plan.restarts,
        seed=plan.seed,
    )
    strength = found.centroids.sum(axis=1) * (-1 if metric == "emd" else 1)
    weakest_first: Labels = np.argsort(np.argsort(strength)).astype(np.int32)
    return weakest_first[found.labels]
