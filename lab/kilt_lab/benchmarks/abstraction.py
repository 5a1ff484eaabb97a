"""``kilt bench abstraction`` measures how fast kilt builds card abstractions."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.cluster import kmeans
from kilt.abstraction.features import Deal, Features
from kilt.abstraction.pipeline import build
from kilt_lab.benchmarks.measure import Figure, interleaved, peak_gb, required_peer

LARGE = "IR-KE-KO 169-5000-5000-5000"
SMALL = "IR-KE-KO 169-500-500-500"
OTHERS = {  # other features of rounds before the last
    "ir_pa_ko_500_seconds": "IR-PA-KO 169-500-500-500",
    "ir_kh_ko_500_seconds": "IR-KH-KO 169-500-500-500",
    "pr_phs_phs_10_seconds": "PR-PHS-PHS 10-10-10-10",
}
POINTS, CLUSTERS, ITERATIONS, ROUNDS = 200_000, 500, 40, 5  # of the contest
REST = 0.3  # seconds; without a pause, kilt took a tenth longer in some rounds
BOARDS = 20_000  # to be looked up


def run(*, long: bool = False) -> list[Figure]:
    """Measure, on all cores: features of the full deck, k-means compared with scikit-learn's, and look-ups."""
    threads = os.cpu_count() or 1
    with TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        figures = _features(cache, threads) + _contest(Features(Deal(), cache), threads)
        small, seconds = _build(SMALL, Path(folder), cache, threads)
        figures.append(Figure("river_lookup_us", "all hands of a river board, looked up", _look_up(small), "µs"))
        if long:
            figures.append(Figure("ir_ke_ko_500_seconds", f"{SMALL}, not including the features", seconds, "s"))
            _, seconds = _build(LARGE, Path(folder), cache, threads)
            figures.append(Figure("ir_ke_ko_5000_seconds", f"{LARGE}, not including the features", seconds, "s"))
            figures.append(Figure("ir_ke_ko_5000_peak_gb", "… peak memory", peak_gb(), "GB"))
            for key, name in OTHERS.items():
                _, seconds = _build(name, Path(folder), cache, threads)
                figures.append(Figure(key, f"{name}, not including the features", seconds, "s"))
                rmtree(Path(folder) / name)
    return figures


def _features(cache: Path, threads: int) -> list[Figure]:
    began = perf_counter()
    features = Features(Deal(), cache, threads)
    for r in range(3):
        features.histograms(r)
        features.ochs(r)
    return [
        Figure("features_seconds", "full deck: strengths, histograms, OCHS", perf_counter() - began, "s"),
        Figure("features_peak_gb", "… peak memory", peak_gb(), "GB"),
    ]


def _contest(features: Features, threads: int) -> list[Figure]:
    peers = required_peer("sklearn.cluster", "scikit-learn")
    table = features.ochs(1)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(table.values), POINTS, replace=False)
    points = (table.values[chosen] * table.scale).astype(np.float32)
    start = points[:CLUSTERS].copy()
    costs: dict[str, float] = {}

    def ours() -> None:
        found = kmeans(points, CLUSTERS, start=start, iterations=ITERATIONS, tolerance=0.0, threads=threads)
        costs["ours"] = found.distortion * POINTS

    def theirs() -> None:
        peer = peers.KMeans(CLUSTERS, init=start, n_init=1, max_iter=ITERATIONS, tol=0.0, algorithm="lloyd")
        costs["theirs"] = float(peer.fit(points).inertia_)

    seconds = interleaved({"ours": ours, "theirs": theirs}, rounds=ROUNDS, rest=REST)
    what = f"k-means, {POINTS:,} points in {CLUSTERS} clusters, {ITERATIONS} iterations"
    return [
        Figure("kmeans_seconds", what, seconds["ours"], "s"),
        Figure("kmeans_ratio_to_sklearn", "… relative to scikit-learn", seconds["theirs"] / seconds["ours"], "×"),
        Figure("kmeans_inertia_ratio", "… inertia, relative to scikit-learn", costs["ours"] / costs["theirs"], "×"),
    ]


def _build(name: str, folder: Path, cache: Path, threads: int) -> tuple[CardAbstraction, float]:
    began = perf_counter()
    built = build(AbstractionSpec.from_name(name, Deal()), folder / name, cache=cache, threads=threads)
    return built, perf_counter() - began


def _look_up(built: CardAbstraction) -> float:
    """Return microseconds per board."""
    rng = np.random.default_rng(0)
    boards = np.array([rng.choice(52, 5, replace=False) for _ in range(BOARDS)])
    last = built.rounds[-1]
    seconds = interleaved({"rows": lambda: last.look_up_boards(boards)}, rounds=ROUNDS)
    return 1e6 * seconds["rows"] / BOARDS
