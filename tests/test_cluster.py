"""k-means and percentiles."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from kilt.abstraction import cluster, cluster_kernels
from kilt.abstraction.cluster import METRICS, NO_BOUNDS, kmeans, prepare_search
from kilt.abstraction.percentile import cut_points, percentile_buckets
from kilt.errors import AbstractionError

METRIC_NAMES = list(METRICS)
STEPS = np.linspace(0, 1, 9)


def blobs(n, dimensions=3, centres=8, seed=0, spread=0.5):
    """Points in clouds, in single precision so that no twin sees other numbers than kilt does."""
    rng = np.random.default_rng(seed)
    where = rng.normal(0, 2, (centres, dimensions))
    return (where[rng.integers(0, centres, n)] + rng.normal(0, spread, (n, dimensions))).astype(np.float32)


def weights_for(n, seed=0):
    return np.random.default_rng([seed, 1]).integers(1, 25, n).astype(np.float64)


def mean_cost(points, weights, centroids, metric):
    """What a clustering is worth: each point at its nearest centroid."""
    return np.average(naive.costs(points.astype(np.float64), centroids, metric).min(axis=1), weights=weights)


# ── distances ──


@given(data=st.data())
@settings(max_examples=100)
def test_the_cost_of_cumulative_histograms_is_the_earth_movers_distance(data):
    """Between bins, that is; SciPy's distance is between the same histograms as weights on the numbers of the bins."""
    from scipy.stats import wasserstein_distance  # a second to import, in each process that collects tests

    bins = data.draw(st.integers(2, 60))
    counts = np.array(
        [data.draw(st.lists(st.integers(0, 9), min_size=bins, max_size=bins).filter(sum)) for _ in range(2)]
    )
    below = (counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True)).astype(np.float32)
    place = np.arange(bins)
    expected = wasserstein_distance(place, place, counts[0], counts[1])
    assert cluster_kernels.point_distance(below, 0, below, 1, True) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_costs_are_those_of_the_naive_twin(metric):
    points, centroids = blobs(40, 7, seed=1), blobs(5, 7, seed=2)
    found = [
        [cluster_kernels.point_distance(points, i, centroids, c, METRICS[metric]) for c in range(len(centroids))]
        for i in range(len(points))
    ]
    np.testing.assert_allclose(found, naive.costs(points.astype(np.float64), centroids, metric), rtol=1e-5)


# ── the search for the nearest centroid ──


def assert_nearest(points, labels, costs, centroids, group, groups, metric):
    """Labels are within their groups, and nothing of the group is nearer, but for rounding."""
    assert (labels // group == groups).all()
    every = naive.costs(points.astype(np.float64), centroids, metric)
    mine = every[np.arange(len(points)), labels]
    np.testing.assert_allclose(costs, mine, rtol=1e-4, atol=1e-5)
    every = every.reshape(len(points), -1, group)[np.arange(len(points)), groups]
    np.testing.assert_allclose(mine, every.min(axis=1), rtol=1e-4, atol=1e-5)


@given(
    seed=st.integers(0, 10**6),
    metric=st.sampled_from(METRIC_NAMES),
    dimensions=st.integers(1, 12),
    group=st.integers(1, 40),
    count=st.integers(1, 5),
    neighbours=st.sampled_from([1, 3, 256]),
    whole=st.booleans(),
)
@settings(max_examples=200)
def test_the_pruned_search_finds_the_nearest_centroid(seed, metric, dimensions, group, count, neighbours, whole):
    """From any start: points without a label, and points with an old one. Whole numbers make ties and duplicates."""
    rng = np.random.default_rng(seed)
    n = 60
    points, centroids = rng.normal(0, 2, (n, dimensions)), rng.normal(0, 2, (group * count, dimensions))
    if whole:
        points, centroids = np.round(points), np.round(centroids)
    points, centroids = points.astype(np.float32), centroids.astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "NEIGHBOURS", neighbours)
        found = prepare_search(centroids, metric, group)
    assert found.near.shape == (group * count, min(group - 1, neighbours))
    groups = rng.integers(0, count, n)
    old = groups * group + rng.integers(0, group, n)
    labels = np.where(rng.random(n) < 0.5, -1 - groups, old).astype(np.int32)
    before, costs = labels.copy(), np.full(n, -1, dtype=np.float32)
    start = n // 3
    changed = cluster_kernels.assign_points(
        points, start, n, group, *found[:3], found.absolute, labels, costs, NO_BOUNDS, NO_BOUNDS, NO_BOUNDS
    )
    assert changed == (labels != before).sum()
    assert (labels[:start] == before[:start]).all()
    assert (costs[:start] == -1).all()
    some = slice(start, n)
    assert_nearest(points[some], labels[some], costs[some], centroids, group, groups[some], metric)
    others, still = np.full(n, -np.inf, dtype=np.float32), np.zeros(group * count, dtype=np.float32)
    labels = before.copy()
    cluster_kernels.assign_points(points, 0, n, group, *found[:3], found.absolute, labels, costs, others, still, still)
    assert_nearest(points, labels, costs, centroids, group, groups, metric)
    every = naive.costs(points.astype(np.float64), centroids, metric)
    for i in range(n):
        rest = [every[i, c] for c in range(groups[i] * group, groups[i] * group + group) if c != labels[i]]
        least = min(rest, default=np.inf)
        assert others[i] <= (least if metric == "emd" else np.sqrt(least)) * (1 + 1e-5) + 1e-5


def test_the_search_among_more_centroids_than_a_list_of_neighbours_has():
    points, centroids = blobs(300, 2, seed=3), blobs(600, 2, seed=4)
    assert len(centroids) > cluster.NEIGHBOURS + 1
    found = prepare_search(centroids, "l2", threads=2)
    labels, costs = np.full(300, -1, dtype=np.int32), np.empty(300, dtype=np.float32)
    cluster_kernels.assign_points(
        points, 0, 300, 600, *found[:3], False, labels, costs, NO_BOUNDS, NO_BOUNDS, NO_BOUNDS
    )
    assert_nearest(points, labels, costs, centroids, 600, np.zeros(300, dtype=int), "l2")


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_neighbours_are_in_order_within_their_groups(metric):
    centroids = blobs(12, 4, seed=5)
    found = prepare_search(centroids, metric, 4)
    every = naive.costs(centroids.astype(np.float64), centroids, metric)
    for c in range(12):
        others = [o for o in range(c - c % 4, c - c % 4 + 4) if o != c]
        assert found.near[c].tolist() == sorted(others, key=lambda o: every[c, o])
        # the triangle inequality: nothing at twice the distance can be nearer
        np.testing.assert_allclose(found.limits[c], every[c, found.near[c]] / (2 if metric == "emd" else 4), rtol=1e-5)


# ── Lloyd's algorithm ──


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize(("n", "k", "iterations"), [(50, 1, 3), (200, 5, 1), (300, 12, 4), (400, 7, 100)])
def test_kmeans_is_that_of_the_naive_twin(n, k, iterations, metric, weighted):
    points = blobs(n, 3, seed=n)
    weights = weights_for(n) if weighted else None
    start = points[np.random.default_rng(n).choice(n, k, replace=False)]
    found = kmeans(points, k, weights=weights, metric=metric, iterations=iterations, tolerance=0.0, start=start)
    assert found.iterations <= iterations
    assert found.iterations == iterations or iterations == 100 or k == 1
    share = np.ones(n) if weights is None else weights
    double = points.astype(np.float64)
    labels, centroids = naive.lloyd(double, share, start.astype(np.float64), metric, found.iterations)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.centroids, centroids, rtol=1e-4, atol=1e-5)
    costs = naive.costs(double, centroids, metric).min(axis=1)
    np.testing.assert_allclose(found.costs, costs, rtol=1e-3, atol=1e-4)
    assert found.distortion == pytest.approx(np.average(costs, weights=share), rel=1e-4)
    if iterations == 100:  # it ended because nothing moved any more
        assert found.iterations < 100
        again, _ = naive.lloyd(double, share, centroids, metric, 1)
        np.testing.assert_array_equal(again, labels)


def test_weights_count_like_copies_of_a_point():
    points = blobs(120, 2, seed=6)
    times = np.random.default_rng(6).integers(1, 5, 120)
    start = points[:6]
    weighted = kmeans(points, 6, weights=times, start=start, tolerance=0.0)
    copied = kmeans(np.repeat(points, times, axis=0), 6, start=start, tolerance=0.0)
    np.testing.assert_allclose(weighted.centroids, copied.centroids, atol=1e-5)
    np.testing.assert_array_equal(np.repeat(weighted.labels, times), copied.labels)
    assert weighted.distortion == pytest.approx(copied.distortion, rel=1e-5)


@pytest.mark.parametrize("k", [2, 8, 25])
def test_no_worse_than_scikit_learn(k):
    """From the same start both go to the same kind of valley; by k-means++ kilt finds one as deep."""
    sklearn = pytest.importorskip("sklearn.cluster")
    points, weights = blobs(1500, 4, centres=12, seed=7, spread=0.8), weights_for(1500)
    start = points[np.random.default_rng(k).choice(1500, k, replace=False)]
    theirs = sklearn.KMeans(k, init=start.astype(np.float64), n_init=1, tol=0.0, max_iter=500)
    theirs.fit(points.astype(np.float64), sample_weight=weights)
    mine = kmeans(points, k, weights=weights, start=start, tolerance=0.0, iterations=500)
    assert mine.distortion <= theirs.inertia_ / weights.sum() * (1 + 1e-4)
    best = sklearn.KMeans(k, n_init=5, random_state=0).fit(points.astype(np.float64), sample_weight=weights)
    mine = kmeans(points, k, weights=weights, restarts=5, iterations=300, tolerance=0.0)
    assert mine.distortion <= best.inertia_ / weights.sum() * 1.03


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_distortion_falls_with_the_number_of_clusters(metric):
    points, weights = blobs(500, 3, seed=8), weights_for(500)
    found = [kmeans(points, k, weights=weights, metric=metric, restarts=3) for k in (1, 2, 4, 8, 16, 64, 500)]
    distortions = [run.distortion for run in found]
    assert all(a > b for a, b in pairwise(distortions))
    assert distortions[-1] == 0  # every point for itself
    for run in found:
        assert run.distortion == pytest.approx(mean_cost(points, weights, run.centroids, metric), rel=1e-4, abs=1e-6)
        assert set(run.labels.tolist()) == set(range(len(run.centroids)))


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("iterations", [0, 1, 2, 50])
def test_empty_clusters_move_to_the_points_that_cost_most(metric, iterations):
    """However few the iterations: clusters that begin far from everything, or in one place, do not stay empty."""
    points = blobs(200, 3, seed=9)
    for start in (np.full((6, 3), 1000.0), np.repeat(points[:1], 6, axis=0), np.vstack([points[:5], [[99, 99, 99]]])):
        found = kmeans(points, 6, metric=metric, start=start, iterations=iterations, tolerance=0.0)
        assert set(found.labels.tolist()) == set(range(6))
        assert_nearest(points, found.labels, found.costs, found.centroids, 6, np.zeros(200, dtype=int), metric)


def test_an_outlier_gets_the_cluster_that_is_left():
    points = np.array([[0.0], [0.1], [0.2], [50.0]])
    found = kmeans(points, 2, start=np.array([[0.1], [-1000.0]]), iterations=20)
    assert found.labels.tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(found.centroids, [[0.1], [50]], atol=1e-6)


def test_every_different_point_can_have_its_cluster():
    """Copies leave no cluster to spare: seeds and empty clusters must go to points that have none."""
    different = np.arange(20, dtype=np.float32)[:, None] ** 2
    points = np.repeat(different, np.arange(1, 21), axis=0)
    for seed in range(10):
        found = kmeans(points, 20, seed=seed)
        assert found.distortion == 0
        assert sorted(found.centroids.ravel().tolist()) == different.ravel().tolist()


def test_points_without_weight_move_nothing():
    points, weights = blobs(100, 2, seed=10), np.r_[np.ones(60), np.zeros(40)]
    start = points[:4]
    found = kmeans(points, 4, weights=weights, start=start, tolerance=0.0)
    alone = kmeans(points[:60], 4, start=start, tolerance=0.0)
    np.testing.assert_allclose(found.centroids, alone.centroids, atol=1e-5)
    assert found.distortion == pytest.approx(alone.distortion, rel=1e-5)


def test_tolerance_and_stop_end_it_early():
    points = blobs(600, 2, seed=11, spread=2)
    patient = kmeans(points, 20, tolerance=0.0, iterations=200)
    hasty = kmeans(points, 20, tolerance=0.05, iterations=200)
    assert 0 < hasty.iterations < patient.iterations
    assert hasty.distortion > patient.distortion
    stopped = kmeans(points, 20, iterations=200, stop=lambda: True)
    assert stopped.iterations == 0
    assert set(stopped.labels.tolist()) == set(range(20))
    calls = iter(range(3))
    assert kmeans(points, 20, tolerance=0.0, iterations=200, stop=lambda: next(calls, None) is None).iterations == 3


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_iterations_make_nothing_worse(metric):
    """Means need not lower a sum of absolute differences: where they do not, what was there before is better."""
    for seed in range(8):
        points = np.round(blobs(300, 4, seed=seed, spread=0.6))  # with many copies, as hands have
        before, after = (kmeans(points, 20, metric=metric, iterations=iterations, seed=seed) for iterations in (0, 40))
        assert after.distortion <= before.distortion * (1 + 1e-5)


# ── seeds, restarts, batches, threads ──


def test_seeds_are_different_points_of_the_data():
    points = blobs(300, 2, seed=12)
    found = kmeans(points, 30, iterations=0)
    rows = {tuple(row) for row in points.tolist()}
    assert {tuple(row) for row in found.centroids.tolist()} <= rows
    assert len({tuple(row) for row in found.centroids.tolist()}) == 30


def test_seeds_are_drawn_in_proportion_to_what_points_cost_at_those_before():
    """k-means++: by weight for the first, then by weight and cost; points on a seed are never drawn again."""
    points = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    weights = np.array([1.0, 2.0, 3.0])
    room = np.empty(2, dtype=np.float32), np.empty(3, dtype=np.int32), np.empty(3, dtype=np.float32)
    uniforms, seen = (np.arange(200) + 0.5) / 200, np.zeros((3, 3))
    for first in uniforms:
        for second in uniforms:
            centroids = np.empty((2, 1), dtype=np.float32)
            cluster_kernels.seed_centroids(points, weights, np.array([first, second]), False, centroids, *room)
            a, b = (points[:, 0].tolist().index(place) for place in centroids[:, 0])
            seen[a, b] += 1 / len(uniforms) ** 2
    cost = naive.costs(points, points, "l2") * weights
    expected = (weights / weights.sum())[:, None] * cost / cost.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(seen, expected, atol=0.01)


def test_the_costs_that_seeds_leave_are_right():
    """The triangle inequality spares work and changes nothing."""
    points, rng = blobs(200, 3, seed=13), np.random.default_rng(13)
    for metric in METRIC_NAMES:
        centroids, limit = np.empty((15, 3), dtype=np.float32), np.empty(15, dtype=np.float32)
        labels, costs = np.empty(200, dtype=np.int32), np.empty(200, dtype=np.float32)
        cluster_kernels.seed_centroids(
            points, np.ones(200), rng.random(15), METRICS[metric], centroids, limit, labels, costs
        )
        assert_nearest(points, labels, costs, centroids, 15, np.zeros(200, dtype=int), metric)


def test_the_best_of_several_restarts_is_kept():
    points = blobs(300, 2, centres=15, seed=14, spread=0.2)
    runs = [kmeans(points, 15, restarts=count, iterations=60).distortion for count in range(1, 9)]
    assert runs == sorted(runs, reverse=True)
    assert runs[-1] < runs[0]


def test_seeds_make_the_result():
    points = blobs(300, 2, seed=15)
    first, same, other = (kmeans(points, 10, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.centroids, same.centroids)
    np.testing.assert_array_equal(first.labels, same.labels)
    assert not np.array_equal(first.centroids, other.centroids)


@pytest.mark.parametrize("batch", [None, 200])
@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_threads_change_nothing(metric, batch):
    points, weights = blobs(2000, 5, seed=16), weights_for(2000)
    one, two = (
        kmeans(points, 30, weights=weights, metric=metric, iterations=10, batch=batch, threads=threads)
        for threads in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_batches_come_close_to_looking_at_everything(metric):
    points, weights = blobs(4000, 3, centres=20, seed=17), weights_for(4000)
    options = {"weights": weights, "metric": metric}
    whole = kmeans(points, 20, iterations=50, **options)
    some = kmeans(points, 20, iterations=50, batch=400, **options)
    seeds = kmeans(points, 20, iterations=0, **options)
    assert set(some.labels.tolist()) == set(range(20))
    assert some.distortion == pytest.approx(mean_cost(points, weights, some.centroids, metric), rel=1e-4)
    assert some.distortion < whole.distortion * 1.1
    assert some.distortion < seeds.distortion
    assert not np.array_equal(some.centroids, whole.centroids)


def test_a_batch_of_everything_is_no_batch():
    points = blobs(300, 2, seed=18)
    np.testing.assert_array_equal(kmeans(points, 5, batch=300).centroids, kmeans(points, 5).centroids)


def test_ticks_go_up_to_what_is_done():
    heard = []
    kmeans(blobs(300, 2, seed=19), 8, restarts=3, iterations=5, tolerance=0.0, tick=heard.append)
    assert heard == sorted(heard)
    assert 0 < heard[0] < heard[-1] <= 1


@pytest.mark.parametrize("k", [0, -1, 11])
def test_numbers_of_clusters_that_cannot_be(k):
    with pytest.raises(AbstractionError, match=f"{k} clusters of 10 points are impossible: use 1 to 10"):
        kmeans(blobs(10), k)


@pytest.mark.parametrize("batch", [None, 8])
def test_too_few_different_points(batch):
    points = np.repeat(blobs(4, seed=20), 5, axis=0)
    assert kmeans(points, 4, batch=batch).distortion == 0
    with pytest.raises(AbstractionError, match="there are fewer different points than the 5 clusters"):
        kmeans(points, 5, batch=batch)


# ── percentiles ──

VALUES = st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 50)), min_size=1, max_size=60)


@given(data=VALUES, share=st.floats(0, 1))
@settings(max_examples=400)
def test_percentiles_cut_values_in_order_into_parts_of_equal_weight(data, share):
    values, weights = (np.array(column) for column in zip(*data, strict=True))
    different = np.unique(values)
    buckets = 1 + int(share * (len(different) - 1))
    found = percentile_buckets(values, weights, buckets)

    assert set(found.tolist()) == set(range(buckets))  # none is empty
    by_value = [set(found[values == value].tolist()) for value in different]
    assert all(len(some) == 1 for some in by_value)  # equal values share a bucket
    order = [some.pop() for some in by_value]
    assert order == sorted(order)

    mass = np.array([weights[values == value].sum() for value in different])
    order, start = np.array(order), 0
    for bucket in range(buckets):
        mine = mass[order == bucket]
        fair = mass[start:].sum() / (buckets - bucket)
        forced = start + len(mine) == len(mass) - (buckets - bucket - 1)  # one value for each of those to come
        if len(mine) > 1:  # it would have been worse with a value less
            assert abs(mine.sum() - fair) <= abs(mine[:-1].sum() - fair)
        if not forced:  # and no better with one more
            assert abs(mine.sum() - fair) <= abs(mine.sum() + mass[start + len(mine)] - fair)
            assert abs(mine.sum() - fair) <= max(mass[start : start + len(mine) + 1].max(), 1)
        start += len(mine)


def test_equal_weights_make_equal_buckets():
    values = np.random.default_rng(1).permutation(1000)
    found = percentile_buckets(values, np.ones(1000), 10)
    assert np.bincount(found).tolist() == [100] * 10
    np.testing.assert_array_equal(found, values // 100)


def test_a_heavy_value_leaves_the_rest_to_the_others():
    """Half of the weight is in one value: what is left is shared evenly."""
    assert cut_points(np.array([100, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]), 6).tolist() == [1, 3, 5, 7, 9]
    assert cut_points(np.array([1, 1, 1, 100]), 4).tolist() == [1, 2, 3]
    assert cut_points(np.array([100, 1, 1, 1]), 2).tolist() == [1]
    assert cut_points(np.array([5, 5]), 1).tolist() == []


@pytest.mark.parametrize("buckets", [0, -2, 4])
def test_numbers_of_buckets_that_cannot_be(buckets):
    with pytest.raises(AbstractionError, match=f"{buckets} buckets need as many different values"):
        percentile_buckets(np.array([1, 1, 2, 3]), np.ones(4), buckets)
