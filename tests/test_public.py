"""Distances and classes of boards, and abstractions inside them."""

import sys
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

import naive
from kilt.abstraction import public as module
from kilt.abstraction.boards import measure_comparisons
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction, load_classes, load_round
from kilt.abstraction.classes import BoardClasses, describe_boards
from kilt.abstraction.estimate import estimate_build, estimate_coded_build
from kilt.abstraction.features import FEATURES, Deal, Features
from kilt.abstraction.holdings import Holdings
from kilt.abstraction.holdings_kernels import look_up_dealt_hands
from kilt.abstraction.partition import partition
from kilt.abstraction.pipeline import bucket_numbers, build, build_rounds, check_plan, next_round_groups, same_buckets
from kilt.abstraction.plan import CODES, BucketStep, Plan, PublicPlan, RoundPlan, parse_plan, plan_named
from kilt.abstraction.public import (
    BoardComparison,
    BoardSample,
    bucket_mean_distances,
    exact_distances,
    row_products,
    schmid,
    tartanian7,
    waugh,
)
from kilt.abstraction.public_kernels import add_l1_distances
from kilt.cards.boards import card_permutations
from kilt.cards.deck import FULL, Deck, subsets
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import showdown_winners
from kilt.errors import AbstractionError, KiltError
from kilt.solve.external_kernels import deal_cards

SHORT = Deal(Deck(4, 3), 2, (0, 2, 1, 1))
HOLES = [tuple(hand) for hand in SHORT.deck.holes().tolist()]
BASE = replace(plan_named("IR-KE-KO 10-30-20-10", SHORT.board_cards), bins=12, opponents=3)


def plan(name, *public, **more):
    """With numbers that suit a short deck."""
    return replace(plan_named(name, SHORT.board_cards), bins=12, opponents=3, public=public, **more)


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return Features(SHORT, tmp_path_factory.mktemp("features"))


@pytest.fixture(scope="module")
def base(features, tmp_path_factory):
    return build_rounds(
        AbstractionSpec("base", SHORT, BASE), tmp_path_factory.mktemp("base") / "run", range(4), features
    )


@pytest.fixture(scope="module")
def states():
    holdings = SHORT.holdings((2,))
    return BoardSample(SHORT, 1, holdings, np.arange(len(holdings.boards)))


def comparing(states, base, features, folder=None, **asked):
    public = PublicPlan(states.r + 1, 2, **asked)
    return BoardComparison(states, public, base.__getitem__, features, 12, folder, "test", lambda share: None)


def hands_on(board):
    return [hand for hand in HOLES if not set(hand) & set(board)]


# ── distances ──


def test_algorithm_2_is_half_the_l1_distance_of_counts(states, base, features):
    found = tartanian7(comparing(states, base, features))
    counts = np.zeros((len(states.boards), base[1].buckets), dtype=int)
    for b, board in enumerate(states.boards.tolist()):
        row = base[1].look_up_board(board)
        for hand in hands_on(board):
            counts[b, row[SHORT.deck.hole_index(hand)]] += 1
    assert (counts.sum(axis=1) == states.hands).all()
    assert np.array_equal(states.counts(base[1]), counts)
    np.testing.assert_allclose(found, np.abs(counts[:, None] - counts).sum(axis=2) / 2 / states.hands, atol=1e-6)
    as_printed = states.hands - np.minimum(counts[:, None], counts).sum(axis=2)
    np.testing.assert_allclose(found, as_printed / states.hands, atol=1e-6)


def test_boards_that_differ_by_suits_are_at_no_distance(base):
    for board in naive.all_hands((2,), SHORT.deck):
        rows = []
        for suits in permutations(range(3)):
            other = naive.rename(board, suits, SHORT.deck)
            row = base[1].look_up_board(other)
            rows.append(sorted(int(row[SHORT.deck.hole_index(hand)]) for hand in hands_on(other)))
        assert all(row == rows[0] for row in rows)


def test_transitions_are_compared_by_l2(states, base, features):
    found = waugh(comparing(states, base, features))
    tables = np.zeros((len(states.boards), base[0].buckets, base[1].buckets))
    first = base[0].look_up_board(())
    for b, board in enumerate(states.boards.tolist()):
        row = base[1].look_up_board(board)
        for hand in hands_on(board):
            place = SHORT.deck.hole_index(hand)
            tables[b, first[place], row[place]] += 1
    totals = tables.sum(axis=2, keepdims=True)
    tables = np.divide(tables, totals, out=np.zeros_like(tables), where=totals > 0)
    flat = tables.reshape(len(tables), -1)
    np.testing.assert_allclose(found, cdist(flat, flat), atol=1e-5)


def test_products_of_sparse_rows_are_those_of_scipy_to_the_bit():
    rng = np.random.default_rng(1)
    columns = [np.flatnonzero(rng.random(40) < share) for share in (0.02, 0.1, 0.5, 0.9, 1.0) * 6]
    entries = [(row, rng.random(len(row))) for row in columns if len(row)]
    table = csr_array(np.array([np.bincount(row, values, 40) for row, values in entries]))
    assert np.array_equal(row_products(entries), np.tril((table @ table.T).toarray()))


def test_city_block_distances_are_those_of_scipy_to_the_bit():
    rng = np.random.default_rng(2)
    mine, theirs = rng.random((7, 12)), rng.random((5, 12))
    found = np.zeros((7, 5))
    add_l1_distances(np.ascontiguousarray(mine.T), np.ascontiguousarray(theirs.T), found)
    assert np.array_equal(found, cdist(mine, theirs, "cityblock"))


@pytest.mark.parametrize("ground", ["history", "histogram"])
def test_hand_by_hand_is_the_best_matching(states, features, ground):
    exactly = exact_distances(states, ground, features, 12)
    rng = np.random.default_rng(0)
    for i, j in rng.integers(0, len(states.boards), (4, 2)).tolist():
        apart = naive_ground(states.boards[i].tolist(), states.boards[j].tolist(), ground)
        rows, columns = linear_sum_assignment(apart)
        assert exactly.distance(i, j) == pytest.approx(apart[rows, columns].mean(), abs=1e-5)


def naive_ground(mine, theirs, ground):
    """Distances of hands on two boards, from the histograms of all that can come."""

    def points(board):
        found = []
        for hand in hands_on(board):
            sizes = [0, 2] if ground == "history" else [2]
            rows = [histogram(hand, tuple(board[:size])) for size in sizes]
            found.append(np.concatenate(rows) / len(sizes))
        return np.array(found)

    return cdist(points(mine), points(theirs), "cityblock")


@cache
def histogram(hand, board):
    strengths = naive.final_strengths(hand, board, (0, 2, 3, 4), SHORT.deck)
    return np.array(naive.cumulative_histogram(strengths, SHORT.top_strength, 12)) / len(strengths)


@pytest.mark.parametrize("ground", ["history", "histogram"])
def test_heaps_of_equal_hands_give_the_exact_distance(states, features, tmp_path, ground):
    """As many buckets as there are different hands: nothing is moved before the transport."""
    different = len(np.unique(hand_points(states, features, ground), axis=0))
    rounds = [RoundPlan(False, (BucketStep("canonical"),)) for _ in range(4)]
    rounds[1] = RoundPlan(False, (BucketStep(ground, different),))
    fine = AbstractionSpec("fine", SHORT, Plan(tuple(rounds), bins=12))
    exactly = exact_distances(states, ground, features, 12)
    gathered = bucket_mean_distances(exactly, build_rounds(fine, tmp_path / "fine", [1], features)[1])
    for i, j in combinations(range(0, len(states.boards), 3), 2):
        assert gathered.distance(i, j) == pytest.approx(exactly.distance(i, j), abs=1e-4)


def test_gathered_hands_tell_which_boards_are_near(states, features, base):
    from scipy.stats import spearmanr  # a second to import

    exactly = exact_distances(states, "history", features, 12)
    gathered = bucket_mean_distances(exactly, base[1])
    pairs = list(combinations(range(len(states.boards)), 2))[::2]
    found, exact = (np.array([one.distance(i, j) for i, j in pairs]) for one in (gathered, exactly))
    assert np.abs(found - exact).max() < 0.15 * exact.max()
    assert spearmanr(found, exact).statistic > 0.95


def hand_points(states, features, ground):
    exactly = exact_distances(states, ground, features, 12)
    return np.concatenate([exactly.points(b).places for b in range(len(states.boards))]).round(6)


def test_all_pairs_can_be_stopped_and_go_on(states, base, features, tmp_path, monkeypatch):
    whole = schmid(comparing(states, base, features))
    monkeypatch.setattr(module, "SAVED_EVERY", 0.0)  # after every block
    asked, moved = [], module.earth_movers_distance

    def tired(*boards):
        asked.append(boards)
        if len(asked) == 90:
            raise KeyboardInterrupt
        return moved(*boards)

    monkeypatch.setattr(module, "earth_movers_distance", tired)
    with pytest.raises(KeyboardInterrupt):
        schmid(comparing(states, base, features, tmp_path / "kept"))
    assert np.array_equal(schmid(comparing(states, base, features, tmp_path / "kept")), whole)
    pairs = comb(len(states.boards), 2)
    assert pairs < len(asked) < pairs + 90  # some were asked for twice, not all
    assert (whole == whole.T).all()
    assert (np.diagonal(whole) == 0).all()


def test_distances_are_found_once_for_all_plans_that_compare_alike(features, tmp_path, monkeypatch):
    """Not the seed, nor the number of classes or buckets, changes distances; what tells hands apart does."""
    asked, moved = [], module.earth_movers_distance
    monkeypatch.setattr(module, "earth_movers_distance", lambda *boards: asked.append(0) or moved(*boards))
    first = PublicPlan(2, 4, method="schmid", base="IR-KE-KO 10-9-9-9")
    others = {
        "first": plan("IR-KE-KO 10-3-3-2", first),
        "seeds": plan("IR-KE-KO 10-4-3-2", replace(first, classes=3, seed=1, until=2), seed=1),
        "ground": plan("IR-KE-KO 10-3-3-2", replace(first, ground="histogram")),
        "base": plan("IR-KE-KO 10-3-3-2", replace(first, base="IR-KE-KO 10-2-9-9")),
        "bins": replace(plan("IR-KE-KO 10-3-3-2", first), bins=11),
    }
    counts, found = {}, {}
    for name, wanted in others.items():
        identity, before = AbstractionSpec(name, SHORT, replace(wanted, rounds=())), len(asked)
        build_rounds(identity, tmp_path / name, [], features)
        counts[name] = len(asked) - before
        found[name] = load_classes(tmp_path / name, identity, wanted.public[0]).distances
    pairs = comb(len(SHORT.holdings((2,)).boards), 2)
    assert counts == dict.fromkeys(others, pairs) | {"seeds": 0}
    same = {name for name in others if np.array_equal(found[name], found["first"])}
    assert same == {"first", "seeds"}


def test_an_honest_estimate(states, features):
    seconds, pairs = measure_comparisons(
        AbstractionSpec("", SHORT, Plan((), (PublicPlan(2, 3),))), PublicPlan(2, 3), features
    )
    assert pairs == comb(len(states.boards), 2)
    assert seconds > 0


# ── the examples of [Brown15], on the full deck ──


def test_the_hands_of_two_boards():
    holdings = Deal().holdings((3,))
    two = np.array([holdings.number_hands(FULL.cards(name))[0] for name in ("AsKhQd", "AsKhJd")])
    states = BoardSample(Deal(), 1, holdings, two)
    assert states.hands * len(two) == 2352
    assert sum(int((holdings.number_hands(board)[1] >= 0).sum()) for board in states.boards) == 2352


@pytest.mark.slow
def test_boards_that_swap_the_roles_of_two_ranks(tmp_path):
    """AhKs3d and AhKs2d: near by what hands become, far by which hands become it [Brown15 §2.2]."""
    deal = Deal(board_cards=(0, 3))  # strengths on the flop are enough to show it
    rounds = RoundPlan(False, (BucketStep("canonical"),)), RoundPlan(False, (BucketStep("ehs", 1000),))
    features = Features(deal, None, 2)
    found = build_rounds(AbstractionSpec("base", deal, Plan(rounds)), tmp_path / "base", [0, 1], features)
    holdings = deal.holdings((3,))
    states = BoardSample(deal, 1, holdings, np.arange(len(holdings.boards)))
    alike = [holdings.number_hands(FULL.cards(name))[0] for name in ("AhKs3d", "AhKs2d")]
    apart = {}
    for method in (tartanian7, waugh):
        mine = method(comparing(states, found, features))[alike[0]]
        apart[method.__name__] = mine[alike[1]] / np.median(mine)
    assert apart["tartanian7"] < 0.35
    assert apart["waugh"] > 0.5

    distances = tartanian7(comparing(states, found, features))
    labels = partition(distances, 60).labels.astype(np.int32)
    flops = subsets(52, 3).astype(np.int64)
    of = BoardClasses(holdings, labels, 60).look_up(flops)
    assert len(flops) == 22_100
    assert set(of.tolist()) == set(range(60))
    assert np.array_equal(np.bincount(of), np.bincount(labels, holdings.deal_counts).astype(int))
    renamed = card_permutations(FULL)[:, flops]  # whatever the suits are called, it is the same class
    assert all(
        np.array_equal(BoardClasses(holdings, labels, 60).look_up(other.astype(np.int64)), of) for other in renamed[::5]
    )


# ── classes, and buckets inside them ──


def test_classes_partition_all_boards(features, tmp_path):
    public = PublicPlan(2, 5)
    identity = AbstractionSpec("classes", SHORT, Plan((), (public,), bins=12))
    build(identity, tmp_path / "run", cache=features.folder)
    classes = load_classes(tmp_path / "run", identity, public)
    boards = np.array(list(naive.all_hands((2,), SHORT.deck)))
    labels = classes.look_up(boards)
    assert set(labels.tolist()) == set(range(5))
    assert len(boards) == comb(12, 2)
    for board, label in zip(boards.tolist(), labels.tolist(), strict=True):
        others = [naive.rename(board, suits, SHORT.deck) for suits in permutations(range(3))]
        assert set(classes.look_up(np.array(others)).tolist()) == {label}
    assert classes.distances.shape == (len(classes.labels),) * 2
    assert classes.figures["error"] > 0


CASES = {
    "codes": plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, codes=60)),
    "percentiles": plan("IR-PHS-PHS 4-4-4-3", PublicPlan(2, 4, codes=40)),
    "each hand by itself": plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4)),
    "looking ahead": plan("IR-PA-KO 16-3-3-2", PublicPlan(2, 4)),
    "inside what was before": replace(
        plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, codes=0)),
        rounds=tuple(
            replace(r, recall=k > 1) for k, r in enumerate(plan_named("IR-KE-KO 10-3-3-2", SHORT.board_cards).rounds)
        ),
    ),
    "histories": plan("IR-KH-KH 10-3-3-2", PublicPlan(2, 4, codes=60)),
    "the third round": plan("IR-KE-KO 10-12-3-2", PublicPlan(3, 4, base="IR-KE-KO 10-9-9-9", codes=40)),
    "two rounds": plan(
        "IR-KE-KO 10-3-3-2", PublicPlan(2, 3, codes=50), PublicPlan(3, 2, base="IR-KE-KO 10-9-9-9", codes=50)
    ),
    "the second round alone": plan("IR-KE-KO 10-3-12-9", PublicPlan(2, 4, codes=60, until=2)),
    "two rounds, then forgotten": plan(
        "IR-KE-KO 10-3-3-9", PublicPlan(2, 3, codes=50), PublicPlan(3, 2, base="IR-KE-KO 10-9-9-9", codes=50, until=3)
    ),
    "waugh": plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, method="waugh", base="IR-KE-KO 10-9-9-9", codes=60)),
    "schmid": plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, method="schmid", codes=60)),
}


@pytest.fixture(scope="module")
def built(features, tmp_path_factory):
    found = {}

    def get(name):
        if name not in found:
            out = tmp_path_factory.mktemp("built") / "run"
            found[name] = build(AbstractionSpec(name, SHORT, CASES[name]), out, cache=features.folder), out
        return found[name]

    return get


def test_rounds_that_are_sorted_alike_are_taken_from_another_abstraction(built, features, tmp_path):
    """The buckets are those that would have been made; a round that only looks alike is not taken."""
    asked = CASES["the second round alone"]
    twin, _ = built("the second round alone")
    plain, there = replace(asked, public=()), tmp_path / "plain"
    build(AbstractionSpec("plain", SHORT, plain), there, cache=features.folder)
    found = build(AbstractionSpec("inside", SHORT, asked), tmp_path / "inside", cache=features.folder, like=there)
    for mine, theirs in zip(found.rounds, twin.rounds, strict=True):
        assert np.array_equal(mine.table, theirs.table) and np.array_equal(mine.sizes, theirs.sizes)
    seconds = [
        load_round(folder, AbstractionSpec.read(folder), r).figures["seconds"]
        for folder in (there, tmp_path / "inside")
        for r in range(4)
    ]
    assert [mine == theirs for mine, theirs in zip(seconds[:4], seconds[4:], strict=True)] == [True, False, True, True]
    for other in (
        replace(plain, seed=1),
        replace(plain, bins=11),
        plan("IR-PA-KO 10-3-12-9"),
        plan("PR-KE-KO 10-3-4-3"),
    ):
        alike = [
            same_buckets(AbstractionSpec("", SHORT, plain), AbstractionSpec("", SHORT, other), r) for r in range(4)
        ]
        assert not any(alike[1:])


def known_classes(case, found, out, boards):
    """[board] the class of some boards, by the last round that has classes."""
    r = SHORT.board_sizes.index(boards.shape[1])
    public = CASES[case].public_at(r)
    return load_classes(out, found.identity, public).look_up(boards) if public else None


@pytest.mark.parametrize("case", CASES)
def test_numbers_of_buckets_are_known_before(built, case):
    found, _ = built(case)
    assert bucket_numbers(CASES[case], SHORT) == tuple(this.buckets for this in found.rounds)


@pytest.mark.parametrize("case", ["codes", "each hand by itself"])
def test_no_bucket_is_that_of_two_classes_over_millions_of_deals(built, case):
    found, out = built(case)
    deals, seeds = 1 << 20, np.uint64(1)
    cards, hands = np.empty((deals, 8), dtype=np.int64), np.empty((deals, 2), dtype=np.int64)
    deal_cards(seeds, 0, SHORT.deck.size, cards)
    showdown_winners(cards, 2, hand_tables(6, SHORT.deck), hands, np.empty(deals, dtype=np.float32))
    for r, size in enumerate(SHORT.board_sizes):
        boards, buckets = cards[:, 4 : 4 + size], np.empty((deals, 2), dtype=np.uint32)
        found.rounds[r].look_up(boards, hands, buckets)
        labels = known_classes(case, found, out, boards)
        if labels is not None:
            number = labels.max() + 1
            assert np.array_equal(
                buckets.astype(np.int64) * number // found.rounds[r].buckets, np.stack([labels] * 2, 1)
            )


@pytest.mark.parametrize("case", CASES)
def test_no_bucket_is_that_of_two_classes(built, case):
    found, out = built(case)
    rng = np.random.default_rng(1)
    deals = np.array([rng.permutation(12)[:6] for _ in range(3000)])
    for r, size in enumerate(SHORT.board_sizes):
        this = found.rounds[r]
        boards = deals[:, 2 : 2 + size]
        rows = this.look_up_boards(np.ascontiguousarray(boards))
        mine = rows[np.arange(len(deals)), [SHORT.deck.hole_index(deal[:2]) for deal in deals.tolist()]]
        assert mine.min() >= 0
        assert mine.max() < this.buckets
        labels = known_classes(case, found, out, boards)
        if labels is not None:
            number = labels.max() + 1
            assert np.array_equal(mine * number // this.buckets, labels)


@pytest.mark.parametrize("case", CASES)
def test_every_bucket_is_used_and_sizes_count_all_deals(built, case):
    """Over all deals of the board in order, each weighed the same."""
    found, _ = built(case)
    for r, this in enumerate(found.rounds):
        dealt = [cards for cards in SHORT.board_cards[: r + 1] if cards]
        boards = np.array(list(naive.all_hands(dealt, SHORT.deck))) if dealt else np.zeros((1, 0), dtype=np.int64)
        counts = np.zeros(this.buckets)
        for board, row in zip(boards.tolist(), this.look_up_boards(boards), strict=True):
            for hand in hands_on(board):
                counts[row[SHORT.deck.hole_index(hand)]] += 1
        assert (counts > 0).all()
        np.testing.assert_allclose(this.sizes / this.sizes.sum(), counts / counts.sum(), rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_suits_make_no_difference(built, case):
    found, _ = built(case)
    rng = np.random.default_rng(2)
    for _ in range(60):
        deal = rng.permutation(12)[:6].tolist()
        for size in SHORT.board_sizes:
            buckets = {
                found.bucket(other[:2], other[2 : 2 + size])
                for other in (naive.rename(deal, suits, SHORT.deck) for suits in permutations(range(3)))
            }
            assert len(buckets) == 1


@pytest.mark.parametrize("case", ["codes", "each hand by itself", "two rounds"])
def test_members_are_the_hands_of_a_bucket(built, case):
    found, _ = built(case)
    for this in found.rounds[1:]:
        for bucket in range(0, this.buckets, 3):
            boards, hands = this.bucket_members(bucket)
            assert len(boards)
            for board, hand in list(zip(boards.tolist(), hands.tolist(), strict=True))[:40]:
                assert found.bucket(HOLES[hand], board) == bucket


def test_codes_sort_as_the_naive_twin_does(built):
    """Percentiles of a class: hands in order of strength, code by code, in shares as equal as codes allow."""
    found, _ = built("percentiles")
    last = found.rounds[3]
    classes = last.coded.classes
    boards = np.array(list(naive.all_hands((2, 1, 1), SHORT.deck)))[::7]
    strengths, on = {}, cache(lambda cards: naive.board_strengths(cards, SHORT.deck, 2))
    for board, row, label in zip(boards.tolist(), last.look_up_boards(boards), classes.look_up(boards), strict=True):
        values = on(tuple(sorted(board)))
        for hand in hands_on(board):
            strengths.setdefault((int(label), int(row[SHORT.deck.hole_index(hand)])), []).append(values[hand])
    for (label, bucket), values in strengths.items():
        weaker = strengths.get((label, bucket - 1))
        assert weaker is None or max(weaker) <= min(values)


def test_the_distortion_of_codes_is_that_of_hands(features, tmp_path):
    """Where each hand has a code of its own: the mean distance of all deals from the means of their buckets."""
    asked = plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, codes=10**6))
    found = build(AbstractionSpec("fine", SHORT, asked), tmp_path / "fine", cache=features.folder).rounds[3]
    boards = np.array(list(naive.all_hands((2, 1, 1), SHORT.deck)))
    labels, sets = found.look_up_boards(boards), SHORT.holdings((4,))
    ((_, table),) = FEATURES["ochs"].tables(features, asked.settings, 3)
    row = cache(lambda cards: np.maximum(sets.number_hands(cards)[1], 0))
    points = table.values[[row(tuple(sorted(board))) for board in boards.tolist()]] * table.scale
    there = np.array([[not set(hand) & set(board) for hand in HOLES] for board in boards.tolist()])
    points, labels = points[there], labels[there]
    means = np.array([points[labels == bucket].mean(axis=0) for bucket in range(found.buckets)])
    assert found.figures["distortion"] == pytest.approx(((points - means[labels]) ** 2).sum(axis=1).mean(), rel=1e-5)


def test_later_classes_are_inside_earlier_ones(built):
    found, out = built("two rounds")
    flop, turn = (load_classes(out, found.identity, public) for public in found.identity.plan.public)
    boards = np.array(list(naive.all_hands((2, 1), SHORT.deck)))
    assert (flop.number, turn.number) == (3, 6)
    assert np.array_equal(turn.look_up(boards) // 2, flop.look_up(boards))
    assert len(set(turn.look_up(boards).tolist())) == 6


def test_classes_that_are_there_can_be_used(features, tmp_path):
    public = PublicPlan(2, 4)
    ready = AbstractionSpec("ready", SHORT, Plan((), (public,), bins=12))
    build(ready, tmp_path / "ready", cache=features.folder)
    using = plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, boards=str(tmp_path / "ready"), codes=60))
    identity = AbstractionSpec("using", SHORT, using)
    build(identity, tmp_path / "using", cache=features.folder)
    labels = [
        load_classes(tmp_path / name, one, one.plan.public[0]).labels
        for name, one in (("ready", ready), ("using", identity))
    ]
    assert np.array_equal(*labels)
    wrong = AbstractionSpec("wrong", SHORT, replace(using, public=(replace(using.public[0], classes=5),)))
    with pytest.raises(AbstractionError, match="has 4 classes, not 5"):
        build(wrong, tmp_path / "wrong", cache=features.folder)


def test_building_goes_on_and_loads_again(features, tmp_path, built):
    found, _ = built("codes")
    again = AbstractionSpec("codes", SHORT, CASES["codes"])
    build_rounds(again, tmp_path / "run", [1], features)
    before = (tmp_path / "run" / "boards-2" / "manifest.json").stat().st_mtime_ns
    whole = build(again, tmp_path / "run", cache=features.folder)
    assert (tmp_path / "run" / "boards-2" / "manifest.json").stat().st_mtime_ns == before
    boards = np.array(list(naive.all_hands((2, 1, 1), SHORT.deck)))[::50]
    assert np.array_equal(whole.rounds[3].look_up_boards(boards), found.rounds[3].look_up_boards(boards))
    assert CardAbstraction.load(tmp_path / "run").identity == whole.identity


def test_plans_are_written_and_read():
    for case in CASES.values():
        import tomllib

        assert parse_plan(tomllib.loads(case.toml())) == case
    one = parse_plan({"rounds": [], "public": {"round": 2, "classes": 7}})
    assert one.public == (PublicPlan(2, 7),)


@pytest.mark.parametrize(
    ("public", "said"),
    [
        (PublicPlan(1, 3), "no new public cards"),
        (PublicPlan(5, 3), "the rounds of the game are 1 to 4"),
        (PublicPlan(2, 100), "100 classes of 16 boards"),
        (PublicPlan(2, 6, clustering="printed"), "fell into"),
        (PublicPlan(2, 3, base="nowhere/at/all"), "is no abstraction"),
        (PublicPlan(2, 3, boards="nowhere"), "there is no abstraction at nowhere"),
    ],
)
def test_bad_public_plans(features, tmp_path, public, said):
    with pytest.raises(KiltError, match=said):
        build(AbstractionSpec("bad", SHORT, Plan((), (public,), bins=12)), tmp_path / "run", cache=features.folder)
    assert not (tmp_path / "run" / f"boards-{public.round}").exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: PublicPlan(2, 3, method="guess"), "use one of tartanian7"),
        (lambda: PublicPlan(2, 3, clustering="guess"), "use one of sum"),
        (lambda: PublicPlan(2, 3, ground="guess"), "use one of history"),
        (lambda: PublicPlan(2, 0), "`classes` in .*public.* is 0: give 1 or more"),
    ],
)
def test_words_that_mean_nothing(make, said):
    with pytest.raises(AbstractionError, match=said):
        make()


def test_plans_that_cannot_be(features, tmp_path):
    twice = plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 3), PublicPlan(2, 4))
    remembers = plan("PR-KE-KO 2-3-3-2", PublicPlan(2, 3, codes=0))
    coded = replace(CASES["inside what was before"], public=(PublicPlan(2, 3, codes=50),))
    for wrong, said in ((twice, "remove one"), (remembers, "recall = false"), (coded, "use codes = 0")):
        with pytest.raises(AbstractionError, match=said):
            build(AbstractionSpec("wrong", SHORT, wrong), tmp_path / "run", cache=features.folder)
    few = plan("IR-KE-KO 10-3-3-50", PublicPlan(2, 4, codes=20))
    with pytest.raises(AbstractionError, match="more codes"):
        build(AbstractionSpec("few", SHORT, few), tmp_path / "few", cache=features.folder)
    assert not (tmp_path / "few" / "round-4").exists()


def test_a_base_of_other_cards_is_refused(features, tmp_path):
    other = Deal(Deck(3, 4), 2, (0, 2, 1, 1))
    build_rounds(AbstractionSpec("other", other, replace(BASE, public=())), tmp_path / "other", [1], Features(other))
    asked = AbstractionSpec("mine", SHORT, Plan((), (PublicPlan(2, 3, base=str(tmp_path / "other")),), bins=12))
    with pytest.raises(AbstractionError, match="other cards"):
        build(asked, tmp_path / "mine", cache=features.folder)


def test_estimates_know_of_classes():
    coded, direct = (
        estimate_build(AbstractionSpec("", SHORT, CASES[name])) for name in ("codes", "each hand by itself")
    )
    assert 0 < coded.disk < direct.disk
    less, *none = (
        estimate_coded_build(AbstractionSpec("", SHORT, CASES[name]))
        for name in ("each hand by itself", "codes", "looking ahead", "inside what was before")
    )
    assert none == [None, None, None]
    many = replace(CASES["codes"], public=(replace(CASES["codes"].public[0], codes=CODES),))
    assert less == estimate_build(AbstractionSpec("", SHORT, many))


@pytest.mark.parametrize(
    ("name", "public", "blocks"),
    [
        ("IR-PA-KO 16-3-3-2", [(2, 4)], [1, 4, 4]),
        ("IR-PA-KO 16-3-3-2", [(2, 3), (3, 2)], [1, 3, 3]),  # turns of one class of flops are compared
        ("IR-KE-KO 10-3-3-2", [(2, 3), (3, 2)], [1, 3, 6]),
        ("IR-PA-KO 16-3-12-2", [(2, 4, 2)], [1, 1, 1]),  # the turn has forgotten
        ("IR-PA-KO 5-3-3-2", [(2, 4)], [1, 1, 1]),  # all flops are compared
    ],
)
def test_blocks_are_what_a_round_and_those_that_look_at_it_tell_apart(name, public, blocks):
    classes = [PublicPlan(r, number, until=sum(until)) for r, number, *until in public]
    spec = AbstractionSpec("", SHORT, plan(name, *classes))
    assert [next_round_groups(spec, r) for r in range(3)] == blocks


@pytest.mark.parametrize(
    ("boards", "words"),
    [
        (["2c2d7h", "3c3d8h"], "7 to 8 high, paired, all suits different"),
        (["AcKcQc"], "A high, unpaired, one suit, connected"),
        (["Ac2c3d"], "A high, unpaired, two suits, connected"),
        (["Tc6d2h", "Tc6c2h"], "T high, unpaired"),
    ],
)
def test_descriptions(boards, words):
    cards = np.array([FULL.cards(board) for board in boards])
    assert describe_boards(cards, np.ones(len(cards), dtype=np.int64), FULL) == words


@pytest.mark.parametrize(
    ("public", "words"),
    [
        ({"until": 1}, "before round 2"),
        ({"until": 9}, "the game has 4"),
        ({"codes": -1}, r"`codes` in \[\[public\]\] is -1: give"),
        ({"restarts": 0}, r"`restarts` in \[\[public\]\] is 0: give"),
        ({"seed": -1}, r"`seed` in \[\[public\]\] is -1: give"),
        ({"exact": True}, "remove it with tartanian7"),
        ({"round": 3, "method": "waugh"}, "looks at the boards of rounds before"),
        ({"round": 3, "method": "schmid"}, "looks at the boards of rounds before"),
        ({"round": 3, "base": "PR-PHS-PHS 4-2-2-2"}, "a base that remembers buckets looks at"),
        ({"round": 1, "method": "waugh"}, "no new public cards"),
    ],
)
def test_classes_that_make_no_sense(public, words):
    with pytest.raises(AbstractionError, match=words):
        check_plan(
            AbstractionSpec("odd", SHORT, plan("IR-KE-KO 10-3-3-2", PublicPlan(**{"round": 2, "classes": 4} | public)))
        )


def test_a_round_cannot_remember_codes():
    """It would take them for buckets."""
    rounds = plan_named("IR-KE-KO 10-3-3-2", SHORT.board_cards).rounds
    recalling = (*rounds[:3], replace(rounds[3], recall=True))
    odd = replace(plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, codes=60, until=3)), rounds=recalling)
    with pytest.raises(AbstractionError, match="which has codes"):
        check_plan(AbstractionSpec("odd", SHORT, odd))
    twice = plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, until=2), PublicPlan(3, 2, base="IR-KE-KO 10-9-9-9"))
    with pytest.raises(AbstractionError, match="inside those of round 2"):
        check_plan(AbstractionSpec("odd", SHORT, twice))


def test_what_fails_at_the_start_leaves_the_folder_free(features, tmp_path):
    """A base with more buckets than there are hands cannot be built; another one is tried in the same place."""
    public = PublicPlan(2, 4, base="IR-KE-KO 10-9999-9-9")
    with pytest.raises(AbstractionError, match=r"9,?999"):
        build(AbstractionSpec("classes", SHORT, Plan((), (public,), bins=12)), tmp_path / "run", cache=features.folder)
    assert not (tmp_path / "run").exists()
    public = replace(public, base="IR-KE-KO 10-9-9-9")
    build(AbstractionSpec("classes", SHORT, Plan((), (public,), bins=12)), tmp_path / "run", cache=features.folder)


def test_look_ups_count_no_holdings():
    holdings = Holdings((2,), SHORT.deck, 2)
    found = np.empty((1, 1), dtype=np.uint32)
    index = holdings.index
    look_up_dealt_hands(
        index, np.zeros((len(holdings.boards), 66), np.uint8), np.array([[0, 1]]), np.array([[7]]), found
    )
    assert "tables" not in vars(holdings)


def test_a_missing_transport_solver_is_said_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    wanted = plan("IR-KE-KO 10-3-3-2", PublicPlan(2, 4, method="schmid"))
    with pytest.raises(AbstractionError, match=r"needs the package POT.*pip install 'kilt\[emd\]'"):
        build(AbstractionSpec("schmid", SHORT, wanted), tmp_path / "cards")
    assert list(tmp_path.iterdir()) == []
