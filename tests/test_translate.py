"""Translation of bets, against the axioms and the table of Ganzfried and Sandholm (IJCAI 2013)."""

import pickle
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kilt.errors import PlayError
from kilt.strategy.translate import MAPPINGS, mapping_named, pseudo_harmonic, translate

SIZES = st.floats(0.01, 200)
RANDOM = [name for name in MAPPINGS if not name.startswith("deterministic-")]
# Their table 1: B = 1 and x = 0.25, by A.
TABLE_1 = {
    "arithmetic": {0: 0.75, 0.001: 0.751, 0.01: 0.758, 0.05: 0.789, 0.1: 0.833},
    "geometric-1": {0: 0, 0.001: 0.012, 0.01: 0.111, 0.05: 0.429, 0.1: 0.667},
    "geometric": {0: 0, 0.001: 0.015, 0.01: 0.131, 0.05: 0.439, 0.1: 0.641},
    "pseudo-harmonic": {0: 0.6, 0.001: 0.601, 0.01: 0.612, 0.05: 0.663, 0.1: 0.733},
}
MEDIANS = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric-1": lambda a, b: sqrt(a * b),
    "geometric": lambda a, b: sqrt(a * b),
    "pseudo-harmonic": lambda a, b: (a + b + 2 * a * b) / (a + b + 2),
}


@pytest.mark.parametrize("name", TABLE_1)
def test_published_values(name):
    for a, value in TABLE_1[name].items():
        assert MAPPINGS[name](a, 1, 0.25) == pytest.approx(value, abs=0.00051)


@given(name=st.sampled_from(list(MAPPINGS)), a=st.just(0.0) | SIZES, b=SIZES)
def test_a_size_of_the_abstraction_is_taken_for_itself(name, a, b):
    assume(b > a * 1.001)
    assert MAPPINGS[name](a, b, a) == 1
    assert MAPPINGS[name](a, b, b) == 0


@given(name=st.sampled_from(list(MAPPINGS)), a=st.just(0.0) | SIZES, b=SIZES)
def test_larger_bets_are_less_often_taken_for_the_smaller_size(name, a, b):
    assume(b > a * 1.001)
    values = [MAPPINGS[name](a, b, x) for x in np.linspace(a, b, 50).tolist()]
    assert all(0 <= value <= 1 for value in values)
    assert all(below >= above - 1e-12 for below, above in pairwise(values))


@given(a=SIZES, b=SIZES, share=st.floats(0, 1), pot=st.floats(0.01, 1e5))
def test_scale_invariance(a, b, share, pot):
    """In chips, where the pot stands for the 1 of the formula: pots that scale with the bets change nothing."""
    assume(b > a * 1.001)
    x = a + share * (b - a)
    A, B, X = a * pot, b * pot, x * pot
    in_chips = (B - X) * (pot + A) / ((B - A) * (pot + X))
    assert pseudo_harmonic(A / pot, B / pot, X / pot) == pytest.approx(in_chips, abs=1e-9)


@given(name=st.sampled_from(RANDOM), a=SIZES, b=SIZES)
def test_medians(name, a, b):
    """Where they are even, and where their deterministic forms change over."""
    assume(b > a * 1.01)
    median = MEDIANS[name](a, b)
    assert MAPPINGS[name](a, b, median) == pytest.approx(0.5, abs=1e-6)
    sure = MAPPINGS[f"deterministic-{name}"]
    assert sure(a, b, a + 0.999 * (median - a)) == 1
    assert sure(a, b, b - 0.999 * (b - median)) == 0


def test_calls_keep_their_chance():
    """The equation that the pseudo-harmonic mapping solves: a bet of x meets a call with 1/(1+x)."""
    for x in np.linspace(0.5, 3, 20).tolist():
        p = pseudo_harmonic(0.5, 3, x)
        assert p / 1.5 + (1 - p) / 4 == pytest.approx(1 / (1 + x))


@pytest.mark.parametrize("name", MAPPINGS)
def test_translate(name):
    sizes, mapping = (0.5, 1.0, 2.0, 5.0), MAPPINGS[name]
    for place, size in enumerate(sizes):
        for draw in (0.0, 0.5, 0.999999):
            assert translate(sizes, size, mapping, draw) == place
            assert translate(sizes, 0.1, mapping, draw) == 0
            assert translate(sizes, 100.0, mapping, draw) == 3
    draws = (np.arange(10_000) + 0.5) / 10_000
    taken = [translate(sizes, 1.4, mapping, draw) for draw in draws]
    assert set(taken) <= {1, 2}
    assert np.mean(np.array(taken) == 1) == pytest.approx(mapping(1.0, 2.0, 1.4), abs=1e-4)
    assert pickle.loads(pickle.dumps(mapping))(1.0, 2.0, 1.4) == mapping(1.0, 2.0, 1.4)


def test_errors():
    with pytest.raises(PlayError, match="unknown translation 'harmonic': use one of pseudo-harmonic"):
        mapping_named("harmonic")
    with pytest.raises(PlayError, match="at least one abstract size"):
        translate((), 1.0, pseudo_harmonic, 0.5)
    assert mapping_named("pseudo-harmonic") is pseudo_harmonic
