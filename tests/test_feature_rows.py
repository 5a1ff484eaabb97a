"""A feature of hands is one row of `FEATURES`: those added here go through plans, estimates, builds and look-ups."""

import numpy as np
import pytest

import naive
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.estimate import estimate_build
from kilt.abstraction.features import FEATURES, VALUE, Deal, Feature, Features
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import PublicPlan, parse_plan, plan_named
from kilt.cards.deck import Deck
from kilt.errors import AbstractionError

DEAL = Deal(Deck(4, 3), 2, (0, 2, 1))


def ends(features, settings, r):
    """How far a hand ends up below the middle of all strengths, and above it."""
    hs, half = np.arange(features.deal.top_strength + 1), features.deal.top_strength // 2
    worth = np.stack([np.maximum(half - hs, 0), np.maximum(hs - half, 0)], axis=1)
    return [(r, features.mean_over_boards("ends", r, worth))]


ENDS = Feature(
    "ends",
    "l2",
    "KX",
    dimensions=lambda settings, r: 2,
    tables=ends,
    costs=lambda features, settings, r: features.means_costs("ends", 2, features.deal.top_strength // 2, r),
)
BEST = Feature("best", VALUE, tables=lambda *given: [(r, t._replace(values=t.values[:, 1:])) for r, t in ends(*given)])


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    for feature in (ENDS, BEST):
        monkeypatch.setitem(FEATURES, feature.name, feature)


def naive_ends(hand, board):
    """The same for one hand, board by board."""
    strengths = naive.final_strengths(tuple(hand), board, DEAL.board_sizes, DEAL.deck)
    return np.mean(
        [[max(DEAL.top_strength // 2 - hs, 0), max(hs - DEAL.top_strength // 2, 0)] for hs in strengths], axis=0
    )


def test_a_row_makes_an_abstraction(tmp_path):
    spec = AbstractionSpec.from_name("IR-KX-KX 4-5-3", DEAL)
    assert [r.steps[0].feature for r in spec.plan.rounds] == ["ends"] * 3
    takes = estimate_build(spec, tmp_path / "cache")
    assert takes.cache > estimate_build(AbstractionSpec.from_name("lossless", DEAL)).cache
    built = build(spec, tmp_path / "cards", cache=tmp_path / "cache")
    assert estimate_build(spec, tmp_path / "cache").cache == 0
    assert sum(file.stat().st_size for file in (tmp_path / "cache").rglob("values.npy")) == pytest.approx(
        takes.cache, abs=128 * 10
    )
    found = CardAbstraction.load(tmp_path / "cards", check=True)
    assert found.numbers == built.numbers == (4, 5, 3)
    for r, this in enumerate(found.rounds):
        boards, hands = this.bucket_members(0)
        holes = DEAL.deck.holes(2)
        for board, hand in list(zip(boards.tolist(), hands.tolist(), strict=True))[:3]:
            point = naive_ends(holes[hand], board)
            distances = ((this.centroids - point) ** 2).sum(axis=1)
            assert found.bucket(holes[hand], board) == 0
            assert distances[0] == pytest.approx(distances.min(), abs=1e-3), f"round {r}"


def test_rows_nest_and_go_into_classes_of_boards(tmp_path):
    steps = [{"feature": "best", "buckets": 2}, {"feature": "ends", "buckets": 2}]
    rounds = [{"recall": False, "steps": [{"feature": "canonical"}]}, *[{"recall": False, "steps": steps}] * 2]
    public = {"round": 2, "classes": 2, "base": "IR-KX-KX 4-5-3", "codes": 6}
    plan = parse_plan({"rounds": rounds, "public": public})
    assert plan.public == (PublicPlan(2, 2, base="IR-KX-KX 4-5-3", codes=6),)
    built = build(AbstractionSpec("nested", DEAL, plan), tmp_path / "cards", cache=tmp_path / "cache")
    assert built.numbers[1:] == (8, 8)
    assert built.rounds[2].coded is not None


def test_names_of_rows_are_in_errors():
    with pytest.raises(AbstractionError, match="PHS, KE, KO, KH, PA, KX"):
        plan_named("IR-XX-XX 1-1-1", DEAL.board_cards)
    with pytest.raises(AbstractionError, match="canonical, ends, best"):
        parse_plan({"rounds": [{"recall": True, "steps": [{"feature": "luck"}]}]})


@pytest.mark.parametrize("name", ["ehs2", "ehs", "histogram", "ochs", "history"])
def test_costs_name_the_tables_that_are_made(tmp_path, name):
    """What an estimate foretells of a row is what its maker puts into the cache."""
    plan = plan_named("lossless", DEAL.board_cards)
    for r in range(3):
        features = Features(DEAL, tmp_path / f"{name}-{r}")
        foretold = features.missing_table_costs(name, r, plan.settings._replace(bins=6, opponents=2))
        FEATURES[name].tables(features, plan.settings._replace(bins=6, opponents=2), r)
        made = {file.parent.name for file in (tmp_path / f"{name}-{r}").rglob("values.npy")}
        assert made == set(foretold)
