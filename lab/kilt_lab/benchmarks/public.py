"""``kilt bench public`` measures how fast kilt sorts flops into classes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal, Features
from kilt.abstraction.partition import partition
from kilt.abstraction.pipeline import build, build_rounds
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.abstraction.public import BoardSample, base_plan, bucket_mean_distances, exact_distances, total_variation
from kilt.abstraction.rounds import RoundBuckets
from kilt.arrays import FloatArray, IntArray
from kilt.jit import in_parts
from kilt_lab.benchmarks.measure import Figure

CLASSES = 60
PAIRS, EXACT_PAIRS, ALL_EXACT = 2000, 60, 500
SAMPLE, ITERATIONS = 100_000, 5  # for bases of the right size, whatever their quality
WHOLE = {
    "hierarchical_demo_seconds": ("169-20-20-20", PublicPlan(2, 10, base="IR-KE-KO 169-500-500-500", codes=500)),
    "hierarchical_60x100_seconds": ("169-100-100-100", PublicPlan(2, CLASSES, codes=2000)),
}


def run(*, long: bool = False) -> list[Figure]:
    """Measure, on all cores: distances and clusters of all flops; with `long`, whole hierarchical abstractions."""
    threads, deal = os.cpu_count() or 1, Deal()
    with TemporaryDirectory() as folder:
        features = Features(deal, Path(folder) / "cache", threads)
        holdings = deal.holdings((3,))
        states = BoardSample(deal, 1, holdings, np.arange(len(holdings.boards)))
        figures = _algorithm_2(states, features, Path(folder)) + _schmid(states, features, Path(folder), long=long)
        if long:
            for key, (sizes, public) in WHOLE.items():
                plan = replace(plan_named(f"IR-KE-KO {sizes}", deal.board_cards), public=(public,))
                began = perf_counter()
                build(AbstractionSpec(key, deal, plan), Path(folder) / key, cache=features.folder, threads=threads)
                what = f"{sizes} in {public.classes} classes, after the features, with its base"
                figures.append(Figure(key, what, perf_counter() - began, "s"))
    return figures


def _base(public: PublicPlan, features: Features, folder: Path) -> RoundBuckets:
    plan = replace(base_plan(features.deal, public), sample=SAMPLE, iterations=ITERATIONS)
    return build_rounds(AbstractionSpec(public.method, features.deal, plan), folder / public.method, [1], features)[1]


def _algorithm_2(states: BoardSample, features: Features, folder: Path) -> list[Figure]:
    base = _base(PublicPlan(2, CLASSES), features, folder)
    total_variation(np.ones((2, 3), dtype=np.uint16), 3)  # compiles
    began = perf_counter()
    distances = total_variation(states.counts(base), states.hands, features.threads)
    between = perf_counter()
    partition(distances, CLASSES)
    ended = perf_counter()
    boards = f"{len(distances):,} flops, {base.buckets:,} buckets"
    return [
        Figure("algorithm2_seconds", f"algorithm 2 of [Brown15]: {boards}", between - began, "s"),
        Figure("clustering_seconds", f"… clustering into {CLASSES} classes", ended - between, "s"),
    ]


def _schmid(states: BoardSample, features: Features, folder: Path, *, long: bool) -> list[Figure]:
    """Measure pairs per second, and the rank correlation of distances between buckets and between hands."""
    public = PublicPlan(2, CLASSES, method="schmid")
    exactly = exact_distances(states, public.ground, features, 50)
    gathered = bucket_mean_distances(exactly, _base(public, features, folder))
    pairs = np.random.default_rng(0).integers(0, len(states.boards), (PAIRS, 2)).tolist()
    found, exact = np.zeros(PAIRS), np.zeros(ALL_EXACT if long else EXACT_PAIRS)

    def quick(start: int, end: int) -> None:
        found[start:end] = [gathered.distance(i, j) for i, j in pairs[start:end]]

    def slow(start: int, end: int) -> None:
        exact[start:end] = [exactly.distance(i, j) for i, j in pairs[start:end]]

    gathered.distance(0, 1)
    began = perf_counter()
    in_parts(quick, PAIRS, features.threads)
    between = perf_counter()
    in_parts(slow, len(exact), features.threads)
    each = (perf_counter() - between) / len(exact)
    ranks = float(np.corrcoef(_ranks(found[: len(exact)]), _ranks(exact))[0, 1])
    return [
        Figure("schmid_pairs_per_second", "earth mover's distances of flops", PAIRS / (between - began), "1/s"),
        Figure("schmid_exact_pairs_per_second", "… with separate hands", 1 / each, "1/s"),
        Figure("schmid_rank_correlation", f"… rank correlation of both distances, {len(exact)} pairs", ranks, ""),
    ]


def _ranks(values: FloatArray) -> IntArray:
    """Return the rank of each value, from 0; equal values have ranks in their order."""
    return np.argsort(np.argsort(values, kind="stable"))
