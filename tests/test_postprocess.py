"""Post-processing [Brown15 §4]."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kilt.errors import PlayError
from kilt.strategy.postprocess import PURIFY, RULES, Rule, action_class, apply, rule_named

LABELS = ("f", "c", "r150", "r175", "r200", "r250", "r300", "r600", "r20000")
PAPER = (0.1, 0.25, 0.15, 0.15, 0.2, 0.15, 0, 0, 0)
NAMES = [*RULES, "threshold-0.4", "new-0.5", "new-0", "threshold-1", *(f"{name}-after-first" for name in RULES)]
ROWS = st.lists(st.floats(0, 1), min_size=2, max_size=9).filter(lambda row: sum(row) > 0.01)


@pytest.mark.parametrize("name", [*NAMES, "bets-0.2-0.1-0.3", "each-0.2-0.1", "each-1-0.15", "bets-1-0.05-0"])
def test_names_of_rules_are_read_back(name):
    """The name of a rule is one that means the same; several names may mean one rule."""
    rule = rule_named(name)
    assert rule_named(rule.name) == rule or (rule.idle and rule.name == "none")
    assert Rule(among=1e-5, classes=action_class).name == "bets-1-0.00001-0"
    assert Rule(among=0.5, classes=len).name == "own"


def normal(weights):
    return (np.array(weights) / np.sum(weights)).tolist()


@pytest.mark.parametrize(("name", "taken"), [("purification", "c"), ("new-0.2", "r200")])
def test_example_of_the_paper(name, taken):
    assert apply(RULES[name], LABELS, PAPER) == [float(label == taken) for label in LABELS]


def test_thresholding_on_the_example_of_the_paper():
    assert apply(RULES["threshold-0.15"], LABELS, PAPER) == pytest.approx(normal([0, *PAPER[1:]]))
    assert apply(RULES["none"], LABELS, PAPER) == list(PAPER)


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("threshold-0.15", (0.15, 0.14, 0.71), (0.15 / 0.86, 0, 0.71 / 0.86)),  # what is at the threshold stays
        ("threshold-0.6", (0.4, 0.4, 0.2), (0.5, 0.5, 0)),  # nothing is left: the most likely ones
        ("purification", (0.4, 0.4, 0.2), (0.5, 0.5, 0)),
        ("purification", (0, 0, 1), (0, 0, 1)),
        ("new-0.2", (0.2, 0.5, 0.3), (0, 1, 0)),  # folding must exceed its threshold
        ("new-0.2", (0.21, 0.5, 0.29), (1, 0, 0)),
        ("new-0.5", (0.45, 0.3, 0.25), (1, 0, 0)),  # below it, and still the most likely class
        ("new-0.2", (0.1, 0.45, 0.45), (0, 0.5, 0.5)),
    ],
)
def test_known_rows(name, row, expected):
    assert apply(rule_named(name), ("f", "c", "r"), row) == pytest.approx(expected)


def test_bets_count_together_and_tie_apart():
    rule = rule_named("new-0.9")
    assert apply(rule, ("c", "r2", "r4", "r8"), (0.4, 0.25, 0.25, 0.1)) == [0, 0.5, 0.5, 0]
    assert apply(rule, ("c", "r2", "r4"), (0.5, 0.25, 0.25)) == [0.5, 0.25, 0.25]  # classes tie, and sizes


def test_parameters_of_the_family():
    """Thresholds among classes and inside them, and classes of one's own."""
    labels, row = ("f", "c", "r2", "r4"), (0.05, 0.35, 0.5, 0.1)
    softer = Rule(fold=0.5, among=0.2, inside=0.2, classes=action_class)
    assert apply(softer, labels, row) == pytest.approx([0, 0.35 / 0.95, 0.6 / 0.95, 0])
    assert apply(Rule(among=PURIFY, classes=action_class), labels, row) == pytest.approx([0, 0, 5 / 6, 1 / 6])
    assert apply(Rule(inside=PURIFY, classes=action_class), labels, row) == pytest.approx([0.05, 0.35, 0.6, 0])
    small = Rule(among=PURIFY, inside=PURIFY, classes=lambda label: "small" if label in ("c", "r2") else label)
    assert apply(small, labels, row) == [0, 0, 1, 0]


@given(name=st.sampled_from(NAMES), weights=ROWS)
def test_rows_stay_distributions(name, weights):
    row, labels = normal(weights), LABELS[: len(weights)]
    after = apply(rule_named(name), labels, row)
    assert sum(after) == pytest.approx(1)
    assert all(q >= 0 and (p > 0 or q == 0) for p, q in zip(row, after, strict=True))
    assert apply(rule_named(name), labels, np.array(row)) == after
    if name.endswith("-after-first"):
        assert apply(rule_named(name), labels, row, first=True) == row
        assert apply(rule_named(name.removesuffix("-after-first")), labels, row, first=True) == after


@given(weights=ROWS)
def test_purification_is_the_greatest_threshold(weights):
    row, labels = normal(weights), LABELS[: len(weights)]
    most = np.array(row) == max(row)
    assert apply(RULES["purification"], labels, row) == pytest.approx((most / most.sum()).tolist())
    assert apply(rule_named("threshold-1"), labels, row) == apply(RULES["purification"], labels, row)


def test_rules_are_named():
    assert all(rule_named(name) == rule for name, rule in RULES.items())
    assert all(pickle.loads(pickle.dumps(rule)) == rule for rule in RULES.values())
    assert rule_named("new-0.2-after-first").after_first
    assert rule_named("new-.3").fold == 0.3


@pytest.mark.parametrize("name", ["", "purify", "threshold", "threshold-", "threshold-x", "new-0.2-first", "new--1"])
def test_unknown_names(name):
    with pytest.raises(PlayError, match=r"unknown post-processing .* use none, purification"):
        rule_named(name)


def test_errors():
    with pytest.raises(PlayError, match=r"'threshold-15' is 15; probabilities run from 0 to 1"):
        rule_named("threshold-15")
    with pytest.raises(PlayError, match="'inside' is 2"):
        Rule(inside=2)
    with pytest.raises(PlayError, match=r"2 actions .c, r. and 3 probabilities"):
        apply(RULES["none"], ("c", "r"), (0.2, 0.3, 0.5))
    with pytest.raises(PlayError, match="have to add up to 1"):
        apply(RULES["new-0.2"], ("f", "c", "r"), (0, 0, 0))
