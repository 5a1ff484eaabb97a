"""Clusters from distances."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import naive
from kilt.abstraction.partition import WAYS, check_distances, clustering_errors, draw_seeds, partition
from kilt.abstraction.partition_kernels import swap_medoids
from kilt.errors import AbstractionError


def points(n, seed=0, centres=6, dimensions=3):
    """In clouds."""
    rng = np.random.default_rng(seed)
    where = rng.normal(0, 3, (centres, dimensions))
    return where[rng.integers(0, centres, n)] + rng.normal(0, 0.5, (n, dimensions))


def distances(n, seed=0):
    found = points(n, seed)
    return cdist(found, found).astype(np.float32)


def inside(d, labels):
    """The sum of distances in each cluster, and its size."""
    return [(d[np.ix_(mine, mine)].sum(), len(mine)) for mine in (np.flatnonzero(labels == c) for c in set(labels))]


def error_of(d, labels, way):
    """What a way lowers, for each point."""
    if way == "medoids":
        best = 0.0
        for c in set(labels):
            mine = np.flatnonzero(labels == c)
            best += d[np.ix_(mine, mine)].sum(axis=1).min()
        return best / len(d)
    squared = d.astype(np.float64) ** (2 if way == "means" else 1)
    return sum(total / (1 if way in ("sum", "printed") else size) for total, size in inside(squared, labels)) / len(d)


@pytest.mark.parametrize("way", WAYS)
def test_the_error_is_what_it_says(way):
    d = distances(80)
    found = partition(d, 6, way=way, seed=1)
    assert found.error == pytest.approx(error_of(d, found.labels, way), rel=1e-4)
    assert found.clusters == len(set(found.labels.tolist()))
    assert list(dict.fromkeys(found.labels.tolist())) == list(range(found.clusters))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "printed"])
def test_no_move_of_one_point_lowers_the_error(way):
    d = distances(40, seed=3)
    found = partition(d, 5, way=way, seed=2)
    assert found.clusters == 5
    for i, c in product(range(40), range(5)):
        other = found.labels.copy()
        other[i] = c
        if len(set(other.tolist())) == 5 and way != "medoids":
            assert error_of(d, other, way) >= found.error * (1 - 1e-5)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "printed"])
def test_small_problems_are_solved(way):
    """With enough restarts there is nothing better among all partitions."""
    d = distances(9, seed=4)
    best = min(error_of(d, np.array(labels), way) for labels in product(range(3), repeat=9) if len(set(labels)) == 3)
    assert partition(d, 3, way=way, restarts=20).error == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_medoids_are_those_of_the_definition(k):
    """The same swaps in the same order, from any seeds; distances are whole numbers, so that ties are ties."""
    rng = np.random.default_rng(k)
    for n, whole in product((7, 8, 25, 40), (False, True)):
        found = rng.integers(0, 4, (n, 2)) if whole else points(n, seed=n)
        d = cdist(found, found, "cityblock").astype(np.float32)
        for _ in range(5):
            medoids, labels = rng.permutation(n)[:k].astype(np.int64), np.empty(n, np.int32)
            expected, theirs = naive.swapped_medoids(d.astype(np.float64), medoids.tolist())
            swap_medoids(d, 200, medoids, labels)
            cost, best = (
                d[np.arange(n), own].sum(dtype=np.float64) for own in (medoids[labels], np.take(expected, theirs))
            )
            assert cost == pytest.approx(best, rel=1e-6)
            assert labels[medoids].tolist() == list(range(k))
            assert cost == pytest.approx(d[:, medoids].min(axis=1).sum(dtype=np.float64), rel=1e-9)
            if not whole:
                assert (medoids.tolist(), labels.tolist()) == (expected, theirs.tolist())


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_medoids_of_small_problems_are_the_best_of_all(k):
    """From any seeds, no single swap is better in the end; and the best of several starts is the best of all."""
    for seed in range(6):
        d = distances(10, seed=seed)
        costs = {chosen: d[:, list(chosen)].min(axis=1).sum() for chosen in combinations(range(10), k)}
        found = partition(d, k, way="medoids", restarts=20, seed=seed)
        assert found.error * 10 == pytest.approx(min(costs.values()), rel=1e-5)
        for start in costs:
            medoids, labels = np.array(start, dtype=np.int64), np.empty(10, np.int32)
            swap_medoids(d, 200, medoids, labels)
            mine = costs[tuple(sorted(medoids.tolist()))]
            swaps = {*medoids.tolist()}
            for out, into in product(medoids.tolist(), set(range(10)) - swaps):
                assert costs[tuple(sorted(swaps - {out} | {into}))] >= mine * (1 - 1e-6)


def test_medoids_after_few_passes_are_better_than_before():
    d = distances(300, seed=7)
    start = np.arange(12, dtype=np.int64)
    sums = [d[:, start].min(axis=1).sum()]
    for passes in (1, 2, 200):
        medoids, labels = start.copy(), np.empty(300, np.int32)
        assert swap_medoids(d, passes, medoids, labels) <= passes
        sums.append(d[:, medoids].min(axis=1).sum())
    assert sums[0] > sums[1] >= sums[2] >= sums[3]


def test_squared_distances_make_k_means():
    from sklearn.cluster import KMeans

    found = points(120, seed=5)
    ours = partition(cdist(found, found), 6, way="means", restarts=10)
    theirs = KMeans(6, n_init=10, random_state=0).fit(found)
    centres = np.array([found[ours.labels == c].mean(axis=0) for c in range(6)])
    cost = ((found - centres[ours.labels]) ** 2).sum()
    assert cost <= theirs.inertia_ * (1 + 1e-6)
    assert ours.error * len(found) == pytest.approx(2 * cost, rel=1e-4)  # every pair counts twice


def test_one_after_another_stays_balanced_where_all_at_once_collapses():
    """Boards as far apart as those of hold'em: none is much nearer than the others."""
    rng = np.random.default_rng(0)
    where = rng.random((1755, 40))
    d = cdist(where, where, "cityblock").astype(np.float32)
    moving, printed = (partition(d, 60, way=way) for way in ("sum", "printed"))
    sizes = np.bincount(moving.labels)
    assert (moving.clusters, moving.passes < 50) == (60, True)
    assert sizes.min() > 15
    assert sizes.max() < 60
    assert printed.clusters <= 5
    assert error_of(d, moving.labels, "sum") < error_of(d, printed.labels, "sum") / 10


def test_seeds_are_far_from_each_other_and_never_the_same():
    d = distances(60)
    rng = np.random.default_rng(0)
    assert all(len(set(draw_seeds(d, 12, rng).tolist())) == 12 for _ in range(20))
    assert sorted(draw_seeds(np.zeros((5, 5)), 5, rng).tolist()) == [0, 1, 2, 3, 4]
    line = np.array([0.0, 0.0, 0.0, 1.0])
    apart = np.abs(line[:, None] - line)
    assert all(3 in draw_seeds(apart, 2, rng) for _ in range(20))


def test_more_clusters_have_less_error():
    found = clustering_errors(distances(50), 10, restarts=5)
    assert len(found) == 10
    assert all(later <= before for before, later in pairwise(found))
    assert clustering_errors(distances(6), 6)[-1] == 0


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.zeros((3, 4)), "square"),
        (np.zeros(3), "square"),
        (np.array([[0, np.nan], [np.nan, 0]]), "nan"),
        (np.array([[0, -1.0], [-1, 0]]), "-1"),
        (np.array([[0, 1.0], [2, 0]]), "symmetric"),
        (np.array([[1.0, 1], [1, 0]]), "to itself"),
    ],
)
def test_matrices_that_are_none(matrix, said):
    with pytest.raises(AbstractionError, match=said):
        check_distances(matrix)


def test_bad_questions():
    with pytest.raises(AbstractionError, match="use 1 to 8"):
        partition(distances(8), 9)
    with pytest.raises(AbstractionError, match="use one of sum, printed"):
        partition(distances(8), 2, way="best")


def test_every_pair_of_seeds_can_be_drawn():
    rng = np.random.default_rng(1)
    drawn = {tuple(sorted(draw_seeds(np.ones((4, 4)) - np.eye(4), 2, rng).tolist())) for _ in range(200)}
    assert drawn == set(combinations(range(4), 2))
