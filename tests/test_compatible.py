"""What kilt 0.1.0 left on disk still opens: `data/0.1.0` has a run on a flat tree, on vectors of hands, on buckets,
and a spot.
"""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import kilt
from commands import answer
from kilt import artifact
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.errors import RunError
from kilt.solve.external import SamplingOptions
from kilt.solve.registry import ALGORITHMS
from kilt.spots.saved import open_spot
from kilt.spots.spot import Spot

OLD = Path(__file__).parent / "data" / "0.1.0"


@pytest.mark.parametrize(("run", "exploitability"), [("flat", 0.010109), ("vector", 2.489215), ("abstract", 1.258260)])
def test_runs_of_0_1_0_are_judged_and_resumed(tmp_path, run, exploitability):
    found = answer("evaluate", "exploitability", OLD / run)
    assert found["exploitability"] == pytest.approx(exploitability, rel=1e-3)
    shutil.copytree(OLD / run, tmp_path / run)
    more = answer("solve", "--resume", tmp_path / run, "-n", 400)
    assert more["iterations"] == 400
    assert more["exploitability"] < found["exploitability"]


def test_a_spot_of_0_1_0_opens_and_is_resumed(tmp_path):
    """With the tree of `near`, and with input that is refused today: the last weight and the last lock count."""
    spot, found = open_spot(OLD / "spot")
    assert found.values == pytest.approx((21.212554, 8.787446), abs=1e-5)
    assert found.at().actions == ("x", "b15")  # of 25 chips: 60%, and (15 + 15) / (15 + 25) by `near`
    assert found.at().frequencies == pytest.approx([0.7608, 0.2392], abs=1e-4)
    assert found.at("b15").frequencies == pytest.approx([0.749594, 0.250406, 0], abs=1e-5)
    assert found.at("b15")["AsQc"]["f"] == 1
    assert spot.toml() == (OLD / "spot" / "spot.toml").read_text(encoding="utf-8")
    shutil.copytree(OLD / "spot", tmp_path / "spot")
    more = answer("spot", "solve", "--resume", tmp_path / "spot", "-n", 80)
    assert (more["iterations"], more["exploitability_percent"] < found.exploitability_percent) == (80, True)
    refused = {"ranges": "gives QdQc the weight 0.5", "bets": "for 3 rounds", "locks": "different strategies"}
    for field, said in refused.items():
        plain = {"ranges": ("AKs,QQ+", "JJ,AQ"), "bets": "50%", "locks": ()} | {field: getattr(spot, field)}
        with pytest.raises(RunError, match=re.escape(said)):
            Spot(spot.board, spot.pot, stacks=spot.stacks, **plain).tree()


def test_cards_of_0_1_0_open():
    found = CardAbstraction.load(OLD / "abstract" / "cards", check=True)
    assert found.fingerprint == "ad9334e2e33ddd7d"
    assert found.numbers == (2, 3)


def test_fingerprints_are_those_of_0_1_0():
    """Classes that they are made from may be renamed: what they are called on disk stays."""
    deal = Deal()
    nested = plan_named("PR-PHS-KO 10-10-10-10", deal.board_cards)
    classes = replace(plan_named("IR-KE-KO 169-50-50-50", deal.board_cards), public=(PublicPlan(2, 10, codes=2000),))
    assert AbstractionSpec("nested", deal, nested).fingerprint == "3f2c7c6e16dfb85a"
    assert AbstractionSpec("classes", deal, classes).fingerprint == "c6cddcc48f1f0dfc"
    assert artifact.stable_repr(actions_of("1x, a")) == "Actions(text=('1x, a',), near=0.8)"
    assert artifact.stable_repr(SamplingOptions()) == "Options(average=True, linear=False, prune=0.0)"


def test_the_evaluator_of_a_run_has_its_old_name():
    run = kilt.start_run("kuhn", iterations=1)
    with pytest.warns(DeprecationWarning, match=r"Run\.evaluator"):
        assert run.judge is run.evaluator


def test_an_agent_may_observe_hands_under_the_old_name_of_the_method():
    class Diary:
        name = "diary"

        def __init__(self):
            self.hands = []

        def begin(self, game):
            copies.append(Diary())
            return copies[-1]

        def act(self, observation):
            return "c"

        def saw(self, hand):
            self.hands.append(hand)

    copies = []
    with pytest.warns(DeprecationWarning, match="observe_hand"):
        kilt.play_match(Diary(), "always-call", hands=4, game="leduc", way="played")
    assert sum(len(copy.hands) for copy in copies) == 4


def test_an_algorithm_has_the_old_name_of_what_it_supports():
    with pytest.warns(DeprecationWarning, match="supports"):
        assert ALGORITHMS["cfr+"].shares(2)
