"""Plans, and abstractions built from them on short decks."""

import json
import shutil
import threading
import time
import tomllib
from collections import Counter
from dataclasses import asdict, replace
from itertools import combinations, pairwise, permutations
from math import comb, prod
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import Windows

import naive
from kilt import artifact, machine
from kilt.abstraction import features as features_module
from kilt.abstraction import pipeline, steps
from kilt.abstraction.buckets import KIND, AbstractionSpec, CardAbstraction, board_layout, round_folder
from kilt.abstraction.estimate import estimate_build
from kilt.abstraction.features import FEATURES, Deal, Features
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import (
    BucketStep,
    Plan,
    RoundPlan,
    load_plan,
    parse_plan,
    plan_named,
    read_plan,
)
from kilt.artifact import draft
from kilt.cards.deck import Deck
from kilt.errors import AbstractionError, ArtifactError, CardError, KiltError
from kilt.jit import in_parts
from kilt.machine import cache_folder

HOLDEM = (0, 3, 1, 1)
SHORT = Deal(Deck(4, 3), 2, (0, 2, 1))  # 16, 528 and 1376 hands, or 4032 where the order of the board is remembered
HOLES = [tuple(hand) for hand in SHORT.deck.holes().tolist()]


def short(plan):
    """With numbers that suit a short deck."""
    return replace(plan, bins=12, opponents=4)


def mixed(*rounds):
    """A plan from (recall, {feature: buckets}) of each round."""
    return parse_plan(
        {
            "rounds": [
                {"recall": recall, "steps": [{"feature": f, "buckets": b} for f, b in features.items()]}
                for recall, features in rounds
            ],
            "bins": 12,
            "opponents": 4,
        }
    )


PLANS = {
    name: short(plan_named(name, SHORT.board_cards))
    for name in [
        "IR-KE-KO 16-20-25",
        "IR-PHS-PHS 6-15-9",
        "IR-KE-KE 5-4x3-14",
        "PR-KE-KO 4-3-2",
        "PR-KO-KE 2-3-4",
        "PR-PHS-PHS 3-4-2",
        "PR-KH-KH 3-3-3",
    ]
} | {
    "lossless": mixed((False, {"canonical": 0}), (True, {"canonical": 0}), (False, {"canonical": 0})),
    "lossless, then coarse": mixed((True, {"canonical": 0}), (True, {"ehs": 2}), (False, {"ochs": 30})),
    "imperfect, then perfect recall": mixed((False, {"ehs": 5}), (False, {"histogram": 9}), (True, {"ehs": 3})),
    "percentiles, then means": mixed((True, {"ehs2": 3}), (True, {"ehs": 2, "ochs": 2}), (True, {"histogram": 2})),
}


@pytest.fixture(scope="module", autouse=True)
def few_restarts():
    """Which clusters the opponents are in makes no difference here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features_module, "OPPONENT_RESTARTS", 2)
        yield


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("features")


@pytest.fixture(scope="module")
def features(cache):
    return Features(SHORT, cache)


class Built(dict):
    """Abstractions by the names of their plans, built when they are asked for."""

    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def __missing__(self, name):
        out = self.folder / name.replace(" ", "_")
        self[name] = build(AbstractionSpec(name, SHORT, PLANS[name]), out, cache=self.cache)
        return self[name]

    def path(self, name):
        assert self[name]
        return self.folder / name.replace(" ", "_")


@pytest.fixture(scope="module")
def built(tmp_path_factory, cache):
    return Built(tmp_path_factory.mktemp("abstractions"), cache)


def boards_of(this):
    """All boards of a round, dealt as its table takes them."""
    return list(naive.all_hands(this.holdings.dealt, this.holdings.deck))


def live(board, row):
    """The part of a row whose hands share no card with the board."""
    return row[[not {*hand} & {*board} for hand in HOLES]]


def tables_of(abstraction):
    return [np.array(this.table) for this in abstraction.rounds]


def assert_same_buckets(one, other):
    for a, b in zip(tables_of(one), tables_of(other), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def by_holding(this):
    """[holding] its bucket."""
    buckets = np.full(len(this.holdings), -1)
    for board in this.holdings.boards.tolist():
        _, numbers = this.holdings.number_hands(board)
        buckets[numbers[numbers >= 0]] = this.look_up_board(board)[numbers >= 0]
    assert (buckets >= 0).all()
    return buckets


def set_rows(this, size):
    """[holding] which holding the first `size` cards of its board make with its hand, as a set."""
    rows, other = np.full(len(this.holdings), -1), SHORT.holdings((size,))
    for board in this.holdings.boards.tolist():
        numbers, there = this.holdings.number_hands(board)[1], other.number_hands(board[:size])[1]
        rows[numbers[numbers >= 0]] = there[numbers >= 0]
    return rows


# ── plans ──


def steps_of(plan):
    return [[(step.feature, step.buckets) for step in r.steps] for r in plan.rounds]


@pytest.mark.parametrize(
    ("name", "recall", "expected"),
    [
        ("IR-KE-KO 169-9000-9000-9000", False, ["histogram 169", "histogram 9000", "histogram 9000", "ochs 9000"]),
        ("PR-KE-KE 5-5-5-5", True, ["histogram 5", "histogram 5", "histogram 5", "histogram 5"]),
        ("PR-PHS-PHS 10-10-10-10", True, ["ehs2 5, ehs 2", "ehs2 5, ehs 2", "ehs2 5, ehs 2", "ehs 10"]),
        ("IR-PHS-KO 7-9000-1-20", False, ["ehs2 7", "ehs2 150, ehs 60", "ehs2 1", "ochs 20"]),
        ("IR-PHS-PHS 3x4-2x2x2-6-3x5", False, ["ehs2 3, ehs 4", "ehs2 2, ehs 2, ehs2 2", "ehs2 3, ehs 2", "ehs 15"]),
        ("IR-KH-PA 2x3-4-5-6", False, ["history 2, history 3", "history 4", "history 5", "potential 6"]),
        (" PR-PA-KH_1-2-3-4 ", True, ["potential 1", "potential 2", "potential 3", "history 4"]),
    ],
)
def test_names_of_plans(name, recall, expected):
    plan = plan_named(name, HOLDEM)
    assert [", ".join(f"{f} {b}" for f, b in r) for r in steps_of(plan)] == expected
    assert all(r.recall is recall for r in plan.rounds)
    assert [r.buckets for r in plan.rounds] == [prod(b for _, b in r) for r in steps_of(plan)]
    assert load_plan(name, HOLDEM) == plan


def test_names_fit_the_rounds_of_the_game():
    assert len(plan_named("PR-KE-KO 3-6", (0, 1)).rounds) == 2
    assert steps_of(plan_named("PR-KE-KO 3", (0,))) == [[("ochs", 3)]]


@pytest.mark.parametrize(
    "name",
    [
        "KE-KO 5-5-5-5",
        "XR-KE-KO 5-5-5-5",
        "IR-KE 5-5-5-5",
        "IR-KE-KX 5-5-5-5",
        "IR-KE-KO",
        "IR-KE-KO 5-5-5-",
        "IR-KE-KO 5-5-5-5x",
        "IR-KE-KO 5-5-5--5",
        "IR-KE-KO 5,5,5,5",
        "ir-ke-ko 5-5-5-5",
        "IR-KE-KO 5-5-5-5 and more",
        "IR-KE-KO 5-5-5-" + "9" * 5000,
        "",
    ],
)
def test_names_that_mean_nothing(name):
    with pytest.raises(AbstractionError, match=r"is no abstraction: write something like 'IR-KE-KO"):
        plan_named(name, HOLDEM)


def test_more_buckets_than_hands_are_refused_at_once():
    for name in ("IR-PHS-PHS 10-999999999999999989-10-10", "IR-KE-KO 10-10-10-999999999999999989"):
        with pytest.raises(AbstractionError, match=r"999,999,999,999,999,989 buckets .* use 2,147,483,647 at most"):
            plan_named(name, HOLDEM)


def test_names_of_another_game():
    with pytest.raises(AbstractionError, match=r"'IR-KE-KO 5-5-5' has 3 rounds; the game has 4: give as many"):
        plan_named("IR-KE-KO 5-5-5", HOLDEM)


@pytest.mark.parametrize("name", ["IR-KE-KO 0-5-5-5", "IR-PHS-KO 5-5x0-5-5", "PR-PHS-PHS 5-5-5-0"])
def test_names_with_no_buckets(name):
    with pytest.raises(AbstractionError, match="cannot have 0 buckets: use 1 or more"):
        plan_named(name, HOLDEM)


def plans():
    """Any plan that can be written down."""
    step = st.one_of(
        st.builds(BucketStep, st.sampled_from([f for f in FEATURES if f != "canonical"]), st.integers(1, 10**6)),
        st.just(BucketStep("canonical")),
    )
    this = st.builds(RoundPlan, st.booleans(), st.lists(step, min_size=1, max_size=3).map(tuple))
    number = st.integers(1, 10**9)
    return st.builds(
        Plan,
        st.lists(this, min_size=1, max_size=4).map(tuple),
        bins=number,
        opponents=number,
        sample=number,
        batch=st.integers(0, 10**9),
        iterations=number,
        restarts=number,
        seed=st.integers(0, 10**9),
    )


@given(plan=plans())
@settings(max_examples=100)
def test_plans_survive_toml(plan):
    assert parse_plan(tomllib.loads(plan.toml())) == plan
    assert parse_plan(json.loads(json.dumps(asdict(plan)))) == plan


def test_plans_in_files(tmp_path):
    plan, path = PLANS["percentiles, then means"], tmp_path / "mine.toml"
    path.write_text(plan.toml())
    assert load_plan(path, SHORT.board_cards) == load_plan(str(path), SHORT.board_cards) == read_plan(path) == plan
    (tmp_path / "mine").write_text(plan.toml())  # by any name
    assert load_plan(tmp_path / "mine", SHORT.board_cards) == plan
    with pytest.raises(AbstractionError, match=r"nowhere\.toml cannot be read: no such file"):
        load_plan(tmp_path / "nowhere.toml", SHORT.board_cards)
    for spoilt in (b"bins = ", b"\xff\xfe"):
        path.write_bytes(spoilt)
        with pytest.raises(AbstractionError, match=r"mine\.toml is not TOML"):
            read_plan(path)
    path.write_text("bins = 7")
    with pytest.raises(AbstractionError, match=r"mine\.toml: rounds must be given"):
        read_plan(path)


def test_what_a_plan_does_not_say_is_as_usual():
    said = {"rounds": [{"recall": True, "steps": [{"feature": "ehs", "buckets": 4}]}]}
    assert parse_plan(said) == Plan((RoundPlan(True, (BucketStep("ehs", 4),)),))


def broken(**changes):
    """A plan with something wrong in its round, step or numbers."""
    step = {"feature": "ehs", "buckets": 3} | changes.pop("step", {})
    this = {"recall": True, "steps": [step]} | changes.pop("round", {})
    return {"rounds": [this]} | changes


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "rounds must be given in the plan: `plan_named(NAME).toml()` shows how"),
        ([], "the plan is []: it has lines such as `rounds = …`"),
        ({"rounds": 3}, "`rounds` in the plan is 3: it takes a list"),
        ({"rounds": [3]}, "round 1: a round is 3: it has lines such as `recall = …`"),
        (broken(step={"feature": "luck"}), "round 1: step 1: unknown feature 'luck': use one of ehs2, ehs"),
        (broken(step={"feature": 3}), "round 1: step 1: `feature` in a step is 3: it takes a text"),
        (broken(step={"buckets": 0}), "ehs cannot have 0 buckets"),
        (broken(step={"buckets": -1}), "ehs cannot have -1 buckets"),
        (broken(step={"bins": 5}), "round 1: step 1: a step has no key bins: use feature, buckets"),
        (broken(round={"steps": []}), "round 1: `steps` in a round is (): give 1 or more"),
        (broken(round={"steps": ["ehs"]}), "round 1: step 1: a step is 'ehs': it has lines such as `feature = …`"),
        (broken(round={"recall": "yes"}), "round 1: `recall` in a round is 'yes': it takes true or false"),
        (broken(round={"buckets": 3}), "round 1: a round has no key buckets: use recall, steps"),
        (broken(bucket=3, bin=4), "the plan has no keys bin, bucket:"),
        (broken(bins="50"), "`bins` in the plan is '50': it takes a whole number"),
        (broken(restarts=0), "`restarts` in the plan is 0: give 1 or more"),
        (broken(iterations=-5), "`iterations` in the plan is -5: give 1 or more"),
        (broken(seed=-1), "`seed` in the plan is -1: give 0 or more"),
        (broken(step={"buckets": "5"}), "`buckets` in a step is '5'"),
        (broken(step={"buckets": 2.5}), "`buckets` in a step is 2.5"),
        (broken(step={"buckets": None}), "`buckets` in a step is None"),
    ],
    ids=str,
)
def test_plans_that_cannot_be(said, message):
    with pytest.raises(AbstractionError) as caught:
        parse_plan(said)
    assert message in str(caught.value)


def test_boards_are_dealt_in_order_as_far_as_it_is_remembered():
    def layouts(*recall, deal=SHORT):
        plan = Plan(tuple(RoundPlan(this, (BucketStep("ehs", 2),)) for this in recall))
        return [board_layout(plan, deal, r) for r in range(len(recall))]

    assert layouts(True, True, True) == [(0,), (2,), (2, 1)]
    assert layouts(False, False, False) == [(0,), (2,), (3,)]
    assert layouts(True, False, True, True, deal=Deal()) == [(0,), (3,), (3, 1), (3, 1, 1)]
    assert layouts(True, True, False, True, deal=Deal()) == [(0,), (3,), (4,), (4, 1)]
    assert layouts(True, True, deal=Deal(Deck(4, 3), 2, (2, 1))) == [(2,), (2, 1)]
    assert layouts(True, True, True, deal=Deal(Deck(4, 3), 2, (0, 2, 0))) == [(0,), (2,), (2,)]


# ── buckets ──


@pytest.mark.parametrize("name", PLANS)
def test_every_bucket_is_used_and_sizes_count_all_deals(built, name):
    for this, planned in zip(built[name].rounds, PLANS[name].rounds, strict=True):
        sizes = np.zeros(this.buckets, dtype=np.int64)
        for board in boards_of(this):
            sizes += np.bincount(live(board, this.look_up_board(board)), minlength=this.buckets)
        assert (sizes > 0).all()
        np.testing.assert_array_equal(sizes, this.sizes)
        if not planned.buckets:
            np.testing.assert_array_equal(sizes, this.holdings.weights)
        elif not planned.recall:
            assert this.buckets == planned.buckets


@pytest.mark.parametrize("name", PLANS)
def test_rounds_that_are_remembered_have_so_many_buckets_in_each_of_those_before(built, name):
    for (before, this), planned in zip(pairwise(built[name].rounds), PLANS[name].rounds[1:], strict=True):
        if planned.recall and planned.buckets:
            assert this.buckets == before.buckets * planned.buckets


@given(data=st.data(), name=st.sampled_from(list(PLANS)))
@settings(max_examples=200)
def test_renaming_suits_and_reordering_rounds_change_no_bucket(built, data, name):
    size = data.draw(st.sampled_from(SHORT.board_sizes))
    cards = data.draw(st.permutations(range(SHORT.deck.size)))[: 2 + size]
    renamed = naive.rename(cards, data.draw(st.permutations(range(3))), SHORT.deck)
    flop = data.draw(st.permutations(renamed[2:4]))
    hand = data.draw(st.permutations(renamed[:2]))
    bucket = built[name].bucket(cards[:2], cards[2:])
    assert built[name].bucket(hand, [*flop, *renamed[4:]]) == bucket


@pytest.mark.parametrize("name", PLANS)
def test_perfect_recall_nests_along_every_sequence_of_boards(built, name):
    """Bucket b inside bucket g of the round before is number g·k + b."""
    rounds, nested = built[name].rounds, 0
    for r, planned in enumerate(PLANS[name].rounds):
        if r == 0 or not planned.recall:
            continue
        for board in naive.all_hands(SHORT.board_cards[: r + 1], SHORT.deck):
            before, now = (live(board, rounds[q].look_up_board(board[: SHORT.board_sizes[q]])) for q in (r - 1, r))
            if planned.buckets:
                np.testing.assert_array_equal(now // planned.buckets, before)
            else:  # lossless: each of its hands comes from one bucket
                pairs = set(zip(now.tolist(), before.tolist(), strict=True))
                assert len(pairs) == len({bucket for bucket, _ in pairs})
            nested += len(now)
    assert nested or not any(planned.recall for planned in PLANS[name].rounds[1:])


@pytest.mark.parametrize("name", PLANS)
def test_the_order_of_the_board_counts_exactly_where_it_is_remembered(built, name):
    remembered, last = PLANS[name].rounds[-1].recall, built[name].rounds[-1]
    differ = 0
    for board in combinations(range(SHORT.deck.size), 3):
        rows = [live(board, last.look_up_board(order)) for order in permutations(board)]
        differ += any(not np.array_equal(rows[0], row) for row in rows[1:])
    assert (differ > 0) == remembered


@pytest.mark.parametrize("name", ["IR-KE-KO 16-20-25", "lossless", "lossless, then coarse"])
def test_lossless_rounds_tell_all_hands_apart(built, name):
    """As many buckets as there are hands, by number or by the feature that is called canonical."""
    for r, this in enumerate(built[name].rounds):
        if this.buckets == len(this.holdings):
            assert sorted(by_holding(this).tolist()) == list(range(len(this.holdings)))
            forms = {}
            for board in boards_of(this)[:60]:
                row = this.look_up_board(board)
                for hand, bucket in zip(HOLES, row.tolist(), strict=True):
                    if not {*hand} & {*board}:
                        form = tuple(naive.canonical([*hand, *board], (2, *this.holdings.dealt), SHORT.deck))
                        forms.setdefault(bucket, set()).add(form)
            assert all(len(some) == 1 for some in forms.values())
        else:
            assert (r, name) != (0, name)  # the first round is lossless in all three


def test_small_groups_are_taken_whole(cache, tmp_path, monkeypatch):
    """Whatever the sample: with ten points for forty groups, each has all of its own."""
    monkeypatch.setattr(steps, "POINTS_PER_GROUP", 0)
    plan = replace(PLANS["PR-KE-KO 4-3-2"], sample=10)
    found = build(AbstractionSpec("few", SHORT, plan), tmp_path / "few", cache=cache)
    assert [this.buckets for this in found.rounds] == [4, 12, 24]
    whole = build(AbstractionSpec("all", SHORT, PLANS["PR-KE-KO 4-3-2"]), tmp_path / "all", cache=cache)
    assert found.rounds[1].figures["distortion"] < 1.3 * whole.rounds[1].figures["distortion"]
    monkeypatch.setattr(steps, "SMALL_GROUP_POINTS", 0)
    with pytest.raises(AbstractionError, match="3 clusters of 0 points"):
        build(AbstractionSpec("none", SHORT, replace(plan, seed=1)), tmp_path / "none", cache=cache)


def test_members_are_the_hands_of_a_bucket(built):
    this = built["PR-KE-KO 4-3-2"].rounds[1]
    seen = Counter()
    for bucket in range(this.buckets):
        boards, hands = this.bucket_members(bucket)
        for cards, hand in zip(boards.tolist(), hands.tolist(), strict=True):
            assert not {*HOLES[hand]} & {*cards}
            assert built["PR-KE-KO 4-3-2"].bucket(HOLES[hand], cards) == bucket
            seen[(*cards, hand)] += 1
    assert set(seen.values()) == {1}
    assert len(seen) == len(this.holdings.boards) * comb(10, 2)


def test_hands_of_one_card_and_boards_from_the_start(tmp_path):
    leduc = Deal(Deck(3, 2), 1, (0, 1))
    found = build(AbstractionSpec("leduc", leduc, plan_named("PR-PHS-PHS 3-2", (0, 1))), tmp_path / "leduc")
    assert [found.bucket([card]) for card in range(6)] == [0, 0, 1, 1, 2, 2]
    king, ace = leduc.deck.cards("KhAh")
    assert [found.bucket([card], [king]) for card in range(6) if card != king] == [0, 0, 3, 4, 4]
    assert [found.bucket([card], [ace]) for card in range(6) if card != ace] == [0, 0, 3, 3, 5]

    deal = Deal(Deck(4, 3), 2, (2, 1))
    found = build(AbstractionSpec("flop first", deal, mixed((True, {"ehs": 7}), (True, {"ehs": 2}))), tmp_path / "flop")
    for board in list(naive.all_hands((2, 1), deal.deck))[::7]:
        before, now = (
            live(board, this.look_up_board(some)) for this, some in zip(found.rounds, (board[:2], board), strict=True)
        )
        np.testing.assert_array_equal(now // 2, before)
    assert [this.buckets for this in found.rounds] == [7, 14]
    with pytest.raises(AbstractionError, match="no round has a board of 0 cards: use 2, 3"):
        found.bucket([0, 1])


# ── what decides the bucket ──


@pytest.mark.parametrize("name", ["IR-PHS-PHS 6-15-9", "PR-PHS-PHS 3-4-2"])
def test_percentiles_are_in_order_of_strength_and_nested(built, features, name):
    """E[HS²] first, then E[HS] inside; on a complete board HS alone. Equal values share a bucket."""
    for r, this in enumerate(built[name].rounds):
        steps_here = PLANS[name].rounds[r].steps
        sets = set_rows(this, SHORT.board_sizes[r])
        buckets = by_holding(this)
        for place, step in enumerate(steps_here):
            values = features.moments(r).values[sets, int(step.feature == "ehs2")]
            below = prod(later.buckets for later in steps_here[place + 1 :])
            numbers = buckets // below  # after this step
            for group in np.unique(numbers // step.buckets):
                there = numbers // step.buckets == group
                ends = [
                    (values[there & (numbers == n)].min(), values[there & (numbers == n)].max())
                    for n in range(group * step.buckets, (group + 1) * step.buckets)
                ]
                assert all(a[1] < b[0] for a, b in pairwise(ends))


def test_percentiles_without_recall_are_of_equal_weight(built, features):
    """As nearly as the few different strengths of a short deck allow."""
    this = built["IR-PHS-PHS 6-15-9"].rounds[2]
    shares = this.sizes / this.sizes.sum()
    heaviest = np.bincount(features.strengths(), this.holdings.weights).max() / this.holdings.weights.sum()
    assert np.abs(shares - 1 / 9).max() <= heaviest


def points_of(this, r, features, plan, feature):
    """[holding, dimension] what k-means sorts, put together the plain way, and whether distances are absolute."""
    sizes, last = SHORT.board_sizes, len(SHORT.board_sizes) - 1
    if feature == "ochs":
        values, scale = features.ochs(r, plan.opponents)
        return (values * scale)[set_rows(this, sizes[r])], "l2"
    tables = []
    for earlier in range(r + 1) if feature == "history" else [r]:
        if earlier == last:
            table = -features.strengths()[:, None] / SHORT.top_strength * plan.bins
        else:
            values, scale = features.histograms(earlier, plan.bins)
            table = values * scale
        tables.append(table[set_rows(this, sizes[earlier])])
    return np.concatenate(tables, axis=1) / len(tables), "emd"


@pytest.mark.parametrize(
    "name", ["IR-KE-KO 16-20-25", "IR-KE-KE 5-4x3-14", "PR-KE-KO 4-3-2", "PR-KO-KE 2-3-4", "PR-KH-KH 3-3-3"]
)
def test_hands_are_in_the_bucket_whose_centroid_is_nearest(built, features, name):
    plan, seen = PLANS[name], 0
    for r, this in enumerate(built[name].rounds):
        if this.buckets == len(this.holdings):
            continue
        step = plan.rounds[r].steps[-1]
        found = artifact.read(round_folder(built.path(name), r), KIND, check=True)
        points, metric = points_of(this, r, features, plan, step.feature)
        buckets, centroids = by_holding(this), found.arrays["centroids"].astype(np.float64)
        assert centroids.shape == (this.buckets, points.shape[1])
        every = naive.costs(points, centroids, metric)
        mine = every[np.arange(len(points)), buckets]
        group = buckets // step.buckets
        same = every.reshape(len(points), -1, step.buckets)[np.arange(len(points)), group]
        np.testing.assert_allclose(mine, same.min(axis=1), rtol=1e-4, atol=1e-5)
        assert found.figures["distortion"] == pytest.approx(np.average(mine, weights=this.holdings.weights), rel=1e-4)
        seen += 1
    assert seen


@pytest.mark.parametrize("recall", [True, False], ids=["perfect recall", "imperfect recall"])
def test_history_is_that_of_the_boards_that_were_dealt(tmp_path, cache, features, recall):
    """[Schmid15]: the distance on the turn counts the flop that was seen, not another one with the same turn."""
    plan = mixed((recall, {"ehs": 2}), (recall, {"ehs": 2}), (recall, {"history": 5}))
    found = build(AbstractionSpec("history", SHORT, plan), tmp_path / "history", cache=cache)
    last = found.rounds[-1]
    centroids = artifact.read(round_folder(tmp_path / "history", 2), KIND).arrays["centroids"].astype(np.float64)
    scaled = [features.histograms(r, plan.bins) for r in (0, 1)]
    tables = [table.values * table.scale for table in scaled] + [
        -features.strengths()[:, None] / SHORT.top_strength * plan.bins
    ]
    wrong = 0
    for board in list(naive.all_hands(SHORT.board_cards, SHORT.deck))[::5]:
        ok = [not {*hand} & {*board} for hand in HOLES]
        rows = [SHORT.holdings((size,)).number_hands(board[:size])[1][ok] for size in SHORT.board_sizes]
        points = np.concatenate([table[row] for table, row in zip(tables, rows, strict=True)], axis=1) / 3
        every, buckets = naive.costs(points, centroids, "emd"), last.look_up_board(board)[ok]
        if recall:
            first = buckets // 5 * 5
            best = np.min([every[np.arange(len(points)), first + b] for b in range(5)], axis=0)
        else:
            best = every.min(axis=1)
        wrong += (every[np.arange(len(points)), buckets] > best + 1e-3).sum()
    assert wrong == 0


@pytest.mark.parametrize("name", ["IR-KE-KE 5-4x3-14", "PR-KO-KE 2-3-4", "PR-KE-KO 4-3-2"])
def test_buckets_of_k_means_are_numbered_from_weak_to_strong(built, name):
    """By the mean of their centroids, inside each bucket of the round or the step before."""
    for r in range(len(built[name].rounds)):
        step = PLANS[name].rounds[r].steps[-1]
        centroids = artifact.read(round_folder(built.path(name), r), KIND).arrays["centroids"].astype(np.float64)
        strength = centroids.sum(axis=1)
        if step.feature == "histogram":  # the lower a cumulative histogram, the better
            strength = -strength
        for group in strength.reshape(-1, step.buckets):
            assert group.tolist() == sorted(group.tolist()), f"round {r + 1}"


def test_nested_means_are_inside_the_first_ones(built, tmp_path, cache):
    coarse = mixed((False, {"histogram": 5}), (False, {"histogram": 4}), (False, {"ehs": 2}))
    coarse = build(AbstractionSpec("coarse", SHORT, coarse), tmp_path / "coarse", cache=cache)
    fine = built["IR-KE-KE 5-4x3-14"]
    np.testing.assert_array_equal(by_holding(fine.rounds[1]) // 3, by_holding(coarse.rounds[1]))


def test_potential_aware_buckets(tmp_path, cache):
    """PA, where the next round has centroids: all buckets are used, whatever the suits, and threads change nothing."""
    plan = mixed((False, {"ehs": 5}), (False, {"potential": 8}), (False, {"histogram": 9}))
    one, two = (
        build(AbstractionSpec("potential", SHORT, plan), tmp_path / str(threads), cache=cache, threads=threads)
        for threads in (1, 2)
    )
    assert_same_buckets(one, two)
    flop = one.rounds[1]
    assert set(by_holding(flop).tolist()) == set(range(8))
    for board in list(combinations(range(SHORT.deck.size), 2))[::5]:
        renamed = naive.rename(board, (2, 0, 1), SHORT.deck)
        turned = [SHORT.deck.hole_index(naive.rename(hand, (2, 0, 1), SHORT.deck)) for hand in HOLES]
        np.testing.assert_array_equal(
            live(board, flop.look_up_board(board)), live(board, flop.look_up_board(renamed)[turned])
        )


# ── the same from the same ──


@pytest.mark.parametrize("name", ["IR-KE-KO 16-20-25", "PR-KE-KO 4-3-2", "PR-KH-KH 3-3-3", "percentiles, then means"])
def test_threads_change_nothing_and_neither_does_doing_it_again(built, tmp_path, name):
    again = build(AbstractionSpec("again", SHORT, PLANS[name]), tmp_path / "again", threads=2)
    assert_same_buckets(again, built[name])
    assert again.identity.fingerprint == built[name].identity.fingerprint


def test_seeds_and_samples_make_a_difference(built, tmp_path, cache):
    name = "IR-KE-KO 16-20-25"
    for place, changes in enumerate([{"seed": 5}, {"sample": 300}]):
        plan = replace(PLANS[name], **changes)
        other = build(AbstractionSpec("other", SHORT, plan), tmp_path / str(place), cache=cache)
        assert other.identity.fingerprint != built[name].identity.fingerprint
        assert not np.array_equal(other.rounds[1].table, built[name].rounds[1].table)
        assert [this.buckets for this in other.rounds] == [16, 20, 25]
        again = build(AbstractionSpec("other", SHORT, plan), tmp_path / f"{place} again", threads=2, cache=cache)
        assert_same_buckets(again, other)


def test_no_time_to_move_centroids_is_enough_for_an_abstraction(built, tmp_path, cache):
    """The seeds are the centroids then."""
    name = "IR-KE-KO 16-20-25"
    hasty = build(AbstractionSpec("hasty", SHORT, PLANS[name]), tmp_path / "hasty", cache=cache, seconds=0.0)
    assert [this.buckets for this in hasty.rounds] == [16, 20, 25]
    assert hasty.rounds[2].figures["distortion"] > built[name].rounds[2].figures["distortion"]


def test_ticks_tell_how_far_it_is(tmp_path):
    heard = {}
    tick = lambda what, share: heard.setdefault(what, []).append(share)  # noqa: E731
    build(AbstractionSpec("ticks", SHORT, PLANS["PR-KE-KO 4-3-2"]), tmp_path / "ticks", tick=tick)
    assert {f"round {r}: {what}" for r in (1, 2, 3) for what in ("fitting", "assigning")} <= heard.keys()
    for what, shares in heard.items():
        assert all(0 <= share <= 1 for share in shares), what
        assert shares == sorted(shares), what
    assert all(heard[f"round {r}: assigning"][-1] == 1 for r in (1, 2, 3))


# ── on disk ──


def stamps(path):
    """When each round was written."""
    return {place.parent.name: place.stat().st_mtime_ns for place in path.glob("*/manifest.json")}


def build_again(built, name, out):
    return build(AbstractionSpec(name, SHORT, PLANS[name]), out, cache=built.cache)


def test_a_finished_abstraction_can_be_loaded(built):
    name = "PR-KE-KO 4-3-2"
    loaded = CardAbstraction.load(built.path(name), check=True)
    assert loaded.identity == AbstractionSpec(name, SHORT, PLANS[name]) == AbstractionSpec.read(built.path(name))
    assert_same_buckets(loaded, built[name])
    assert CardAbstraction.load(str(built.path(name))).bucket([0, 5], [1, 2, 3]) == built[name].bucket(
        [0, 5], [1, 2, 3]
    )


def test_a_finished_abstraction_is_not_built_again(built, monkeypatch):
    name = "PR-KE-KO 4-3-2"
    before = stamps(built.path(name))
    monkeypatch.setattr(pipeline, "_build_round", None)
    assert_same_buckets(build_again(built, name, built.path(name)), built[name])
    assert stamps(built.path(name)) == before


@pytest.mark.parametrize("lost", [{3}, {2, 3}, {2}, {1, 2, 3}], ids=str)
@pytest.mark.parametrize("name", ["PR-KE-KO 4-3-2", "IR-KE-KO 16-20-25"])
def test_a_build_that_was_stopped_goes_on(built, tmp_path, name, lost):
    out = tmp_path / "out"
    shutil.copytree(built.path(name), out)
    for r in lost:
        shutil.rmtree(out / f"round-{r}")
    before = stamps(out)
    assert_same_buckets(build_again(built, name, out), built[name])
    after = stamps(out)
    assert set(after) == {"round-1", "round-2", "round-3"}
    assert {r: after[r] for r in before} == before  # what was there has stayed


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("kernel", ["fill_bucket_table", "find_buckets"])
def test_dying_in_the_middle_leaves_whole_rounds_only(built, tmp_path, monkeypatch, kernel, error):
    name, out = "PR-KE-KO 4-3-2", tmp_path / "out"

    def die(t, *rest):
        if t.cards.shape[1] == 3:
            raise error("killed")
        return work(t, *rest)

    work = getattr(pipeline.holdings_kernels, kernel)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.holdings_kernels, kernel, die)
        with pytest.raises((error, KiltError), match="killed"):
            build_again(built, name, out)
    assert {place.name for place in out.iterdir()} == {"abstraction.json", "round-1", "round-2"}
    with pytest.raises(AbstractionError, match=r"round 3 of .*out is not built yet: continue to build"):
        CardAbstraction.load(out)
    before = stamps(out)
    assert_same_buckets(build_again(built, name, out), built[name])
    after = stamps(out)
    assert {r: after[r] for r in before} == before


def test_a_damaged_round_is_built_again(built, tmp_path):
    name, out = "PR-KE-KO 4-3-2", tmp_path / "out"
    shutil.copytree(built.path(name), out)
    table = out / "round-2" / "buckets.npy"
    table.write_bytes(table.read_bytes()[:-10])
    with pytest.raises(AbstractionError, match=r"round 2 of .*missing or damaged"):
        CardAbstraction.load(out)
    assert_same_buckets(build_again(built, name, out), built[name])


def test_changed_bytes_are_found(built, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(built.path("PR-KE-KO 4-3-2"), out)
    with (out / "round-3" / "buckets.npy").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x63")
    for check in (False, True):
        with pytest.raises(AbstractionError, match=r"round 3 of .*does not match"):
            CardAbstraction.load(out, check=check)


def test_rounds_of_another_abstraction_are_not_used(built, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(built.path("PR-KE-KO 4-3-2"), out)
    shutil.rmtree(out / "round-3")
    shutil.copytree(built.path("PR-KO-KE 2-3-4") / "round-3", out / "round-3")
    with pytest.raises(AbstractionError, match=r"round 3 of .*belongs to abstraction"):
        CardAbstraction.load(out)
    assert_same_buckets(build_again(built, "PR-KE-KO 4-3-2", out), built["PR-KE-KO 4-3-2"])


def test_a_folder_of_another_plan_is_refused(built):
    name, other = "PR-KE-KO 4-3-2", "IR-KE-KO 16-20-25"
    out, before = built.path(name), tables_of(built[name])
    with pytest.raises(AbstractionError, match=r"is for another abstraction, PR-KE-KO 4-3-2 .*choose another folder"):
        build(AbstractionSpec(other, SHORT, PLANS[other]), out)
    with pytest.raises(AbstractionError, match="is for another abstraction"):
        build(AbstractionSpec(name, SHORT, replace(PLANS[name], seed=9)), out)
    for a, b in zip(before, tables_of(CardAbstraction.load(out, check=True)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    identity = AbstractionSpec("x", SHORT, PLANS["PR-KE-KO 4-3-2"])
    with pytest.raises(AbstractionError, match="mine exists and holds no abstraction: choose another folder"):
        build(identity, tmp_path / "mine")
    assert [place.name for place in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(KiltError, match=r"thesis\.tex"):
        build(AbstractionSpec("x", SHORT, PLANS["PR-KE-KO 4-3-2"]), tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_two_builds_at_a_time_are_refused(built, tmp_path):
    with (
        artifact.exclusive_access(tmp_path / "out"),
        pytest.raises(ArtifactError, match="another process is at work on"),
    ):
        build_again(built, "PR-KE-KO 4-3-2", tmp_path / "out")
    build_again(built, "PR-KE-KO 4-3-2", tmp_path / "out")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            mixed((False, {"ehs": 17}), (False, {"ehs": 2}), (False, {"ehs": 2})),
            "the plan asks for 17 buckets in round 1, but there are only 16 different hands",
        ),
        (
            mixed((False, {"ehs": 2}), (False, {"ehs": 2}), (False, {"ochs": 1377})),
            "the plan asks for 1,377 buckets in round 3, but there are only 1,376",
        ),
        (
            mixed((True, {"ehs": 2}), (True, {"ehs": 265}), (True, {"ehs": 2})),
            "the plan asks for 530 buckets in round 2, but there are only 528",
        ),
        (
            mixed((False, {"ehs": 11}), (False, {"ehs": 2}), (False, {"ehs": 2})),
            "11 buckets in round 1 need as many different values, but there are only 9",
        ),
        (
            mixed((False, {"histogram": 11}), (False, {"ehs": 2}), (False, {"ehs": 2})),
            "there are fewer different points than the 11 clusters",
        ),
        (mixed((False, {"ehs": 2}), (False, {"ehs": 2})), "the plan has 2 rounds; the game has 3"),
    ],
    ids=["hands", "hands of the last round", "hands with recall", "values", "points", "rounds"],
)
def test_plans_that_do_not_fit_the_game(tmp_path, cache, plan, message):
    with pytest.raises(AbstractionError) as caught:
        build(AbstractionSpec("too much", SHORT, plan), tmp_path / "out", cache=cache)
    assert message in str(caught.value)
    rounds = sorted(place.name for place in (tmp_path / "out").glob("*") if place.is_dir())
    assert all(name.startswith("round-") for name in rounds)
    if message.startswith(("the plan asks for 17", "11", "there are fewer", "the plan has")):
        assert rounds == []


def test_opponents_that_are_too_many(tmp_path, cache):
    plan = replace(mixed((False, {"ochs": 3}), (False, {"ehs": 2}), (False, {"ehs": 2})), opponents=17)
    with pytest.raises(AbstractionError, match="only 16 different hands for 17 clusters of opponents"):
        build(AbstractionSpec("x", SHORT, plan), tmp_path / "out", cache=cache)


def test_there_is_no_abstraction(tmp_path):
    with pytest.raises(AbstractionError, match=r"there is no abstraction at .*nowhere: check the name, or build it"):
        CardAbstraction.load(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"name": "x", "deal": 3}'])
def test_a_damaged_description(tmp_path, text):
    (tmp_path / "abstraction.json").write_text(text)
    with pytest.raises(AbstractionError, match=r"abstraction\.json is damaged"):
        CardAbstraction.load(tmp_path)


@pytest.mark.parametrize(
    ("hand", "board", "message"),
    [
        ("JhQs", "Kh", "no round has a board of 1 cards: use 0, 2, 3"),
        ("JhQs", "KhKsKdAh", "no round has a board of 4 cards: use 0, 2, 3"),
        ("JhJh", "", "Jh is there twice in 'JhJh'"),
        ("JhQs", "JhKs", "Jh in 'JhQs' is in use already"),
        ("JhQs", "KsKs", "Ks is there twice in 'KsKs'"),
        ("JhJhQs", "", "twice"),
        ("Jh", "", "2"),  # is what a hand has
        ("JhQsKd", "", "2"),
    ],
)
def test_hands_without_a_bucket(built, hand, board, message):
    numbers = {name: card for card, name in enumerate(SHORT.deck.names)}

    def cards(text):
        return [numbers[text[i : i + 2]] for i in range(0, len(text), 2)]

    for cards_of in ((cards(hand), cards(board)), (hand, board), (hand, cards(board))):
        with pytest.raises(KiltError) as caught:
            built["PR-KE-KO 4-3-2"].bucket(*cards_of)
        assert message in str(caught.value)


def test_cards_are_text_or_numbers(built):
    """Every public look-up reads both, and names of cards one by one."""
    cards, deck = built["PR-KE-KO 4-3-2"], SHORT.deck
    hand, board = deck.cards("JhQs"), deck.cards("KhKs")
    for mine in ("JhQs", "qs jh", ["Jh", "Qs"], hand, np.array(hand)):
        for public in ("KhKs", "Kh,Ks", ["Kh", deck.cards("Ks")[0]], board, np.array(board)):
            assert cards.bucket(mine, public) == cards.bucket(hand, board)
            assert cards.round_of(public) == 1
    assert cards.bucket("JhQs") == cards.bucket(hand, ())
    for mine, words in (("AsXy", "unknown card 'Xy'"), ((0.5, 2), "are no cards"), (None, "None are no cards")):
        with pytest.raises(CardError, match=words):
            cards.bucket(mine)


@pytest.mark.parametrize(("hand", "board"), [([0, 12], []), ([0, 1], [5, 12]), ([-1, 3], []), ([0, 1], [-2, 3])])
def test_cards_that_are_not_in_the_deck(built, hand, board):
    with pytest.raises(KiltError):
        built["PR-KE-KO 4-3-2"].bucket(hand, board)


def test_parts_leave_no_tables_behind(tmp_path, monkeypatch):
    """Percentiles have a mass for each group and value: of thousands of parts, there is no room."""
    left, parts = [], steps.StepFitter.map_batches
    monkeypatch.setattr(steps.StepFitter, "map_batches", lambda *given: left.append(parts(*given)) or left[-1])
    build(AbstractionSpec("some groups", SHORT, plan_named("PR-PHS-PHS 4-3-2", SHORT.board_cards)), tmp_path / "run")
    assert len(left) > 3
    assert not any(isinstance(found, np.ndarray) for of_parts in left for found in of_parts)


# ── before it is built ──


@pytest.mark.parametrize("name", PLANS)
def test_estimates_know_the_sizes_of_tables(built, tmp_path, name):
    identity = AbstractionSpec(name, SHORT, PLANS[name])
    before = estimate_build(identity, tmp_path)
    assert before.disk == sum(this.table.nbytes for this in built[name].rounds)
    build(identity, tmp_path / "out", cache=tmp_path / "cache")
    made = sum(np.load(place).nbytes for place in (tmp_path / "cache").glob("*/*/values.npy"))
    assert before.cache == made
    after = estimate_build(identity, tmp_path / "cache")
    assert after.cache == 0
    assert after.seconds <= before.seconds
    assert estimate_build(identity, tmp_path, threads=2).seconds == pytest.approx(before.seconds / 2)


def test_estimates_refuse_what_cannot_be_built():
    with pytest.raises(AbstractionError, match="the plan asks for 17 buckets in round 1, but there are only 16"):
        estimate_build(
            AbstractionSpec("x", SHORT, mixed((False, {"ehs": 17}), (False, {"ehs": 2}), (False, {"ehs": 2})))
        )
    with pytest.raises(AbstractionError, match="the plan has 1 rounds; the game has 3"):
        estimate_build(AbstractionSpec("x", SHORT, mixed((False, {"ehs": 2}))))


# ── percentiles of very many values ──


def test_values_beyond_the_levels_are_taken_together(monkeypatch):
    """In order still, and of equal weight."""
    monkeypatch.setattr(steps, "LEVELS", 16)
    rng = np.random.default_rng(2)
    values, weights = rng.permutation(5000) // 2, rng.integers(1, 4, 5000)
    codes, levels = steps._codes(values, lambda: weights)
    assert levels == 16
    order = np.argsort(values, kind="stable")
    assert (np.diff(codes[order].astype(int)) >= 0).all()
    assert all(len(set(codes[values == value].tolist())) == 1 for value in range(0, 2500, 97))
    mass = np.bincount(codes, weights, levels)
    np.testing.assert_allclose(mass, weights.sum() / 16, atol=12)
    codes, levels = steps._codes(values[:12] * 0 + np.arange(12) // 3, lambda: weights[:12])
    assert (codes.tolist(), levels) == ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], 4)


# ── artifacts piece by piece, the cache folder, work in parts ──


def test_arrays_can_be_filled_in_their_files(tmp_path):
    place = tmp_path / "thing"
    with draft(place, "test", 80, {"game": "abc"}, {"seed": 3}) as new:
        room = new.allocate("table", np.uint16, (4, 5))
        assert not room.any()
        assert not artifact.exists(place)
        room[:] = np.arange(20).reshape(4, 5)
        new.save("more", np.ones(3))
        new.figures["rows"] = 4
    found = artifact.read(place, "test", check=True)
    np.testing.assert_array_equal(found.arrays["table"], np.arange(20).reshape(4, 5))
    assert found.arrays["table"].dtype == np.uint16
    assert found.arrays["more"].tolist() == [1, 1, 1]
    assert (found.inputs, found.parameters, found.figures) == ({"game": "abc"}, {"seed": 3}, {"rows": 4})
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_a_draft_that_fails_leaves_nothing_or_the_old_artifact(tmp_path, error):
    place = tmp_path / "thing"
    for there in ([], ["thing"]):
        with pytest.raises((error, ArtifactError)), draft(place, "test", 80) as new:
            new.allocate("table", np.int8, (10,))[:] = 1
            raise error("no")
        assert [path.name for path in tmp_path.iterdir()] == there
        artifact.write(place, "test", {"old": np.arange(3)})
    assert artifact.read(place, "test", check=True).arrays["old"].tolist() == [0, 1, 2]


def test_no_room_for_a_draft_is_found_before_the_work(tmp_path):
    with pytest.raises(ArtifactError, match="make room"), draft(tmp_path / "thing", "test", 1 << 60):
        pytest.fail("there was work to do")
    assert list(tmp_path.iterdir()) == []


def test_the_cache_folder_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("KILT_CACHE")

    def folder(system):
        return system("kilt", **machine.PLACE).user_cache_path

    assert cache_folder() == folder(platformdirs.PlatformDirs)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder(Unix) == tmp_path / "xdg" / "kilt"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert folder(Unix) == Path.home() / ".cache" / "kilt"
    assert folder(MacOS) == Path.home() / "Library" / "Caches" / "kilt"
    monkeypatch.setattr(platformdirs.windows, "get_win_folder", lambda name: str(tmp_path / "local"))  # only there
    assert folder(Windows) == tmp_path / "local" / "kilt"


@given(count=st.integers(0, 300), parts=st.integers(1, 80), threads=st.integers(1, 3))
@settings(max_examples=50)
def test_work_in_parts_covers_everything_once_and_in_order(count, parts, threads):
    heard = []
    found = in_parts(lambda start, end: list(range(start, end)), count, threads, heard.append, parts=parts)
    assert len(found) == parts
    assert [i for part in found for i in part] == list(range(count))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert heard == pytest.approx([done / parts for done in range(1, parts + 1)])


def test_work_in_parts_runs_on_threads():
    meeting = threading.Barrier(2, timeout=30)
    in_parts(lambda start, end: meeting.wait(), 2, threads=2, parts=2)  # both at the same time, or never
    assert len(set(in_parts(lambda start, end: threading.get_ident(), 8, threads=1))) == 1


def test_an_error_in_a_part_ends_the_work():
    done = []

    def work(start, end):
        done.append(start)
        if start == 3:
            raise ValueError("part 3")
        time.sleep(0.01 * (start > 3))

    with pytest.raises(ValueError, match="part 3"):
        in_parts(work, 64, threads=1)
    assert len(done) < 32
