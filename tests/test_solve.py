"""Full-width solvers on flat trees."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from kilt.errors import GameError
from kilt.solve.cfr import Cfr
from kilt.solve.lp import solve_lp
from kilt.solve.tables.flat import FlatTables
from kilt.solve.variants import VARIANTS, multipliers
from kilt.tree.best_response import best_response, expected_value, exploitability, response_values, uniform
from written_out import tree_of as tree


def test_discount_multipliers():
    """Brown and Sandholm 2019: the published default is (α, β, γ) = (1.5, 0, 2); β is an exponent."""
    t = np.array([1.0, 2.0, 9.0])
    np.testing.assert_allclose(
        multipliers(VARIANTS["dcfr"], t),
        [[1 / 2, 1 / 2, 1 / 4], [2**1.5 / (2**1.5 + 1), 1 / 2, 4 / 9], [27 / 28, 1 / 2, 0.81]],
    )
    np.testing.assert_allclose(multipliers(VARIANTS["linear"], t), [[1 / 2] * 3, [2 / 3] * 3, [9 / 10] * 3])
    np.testing.assert_allclose(multipliers(VARIANTS["cfr"], t), [[1, 1, 1]] * 3)
    np.testing.assert_allclose(multipliers(VARIANTS["cfr+"], t), [[1, 0, 1 / 2], [1, 0, 2 / 3], [1, 0, 9 / 10]])
    np.testing.assert_allclose(multipliers(VARIANTS["pcfr+"], t)[:, 2], [1 / 4, 4 / 9, 0.81])


def kept(exponent):
    """t^x / (t^x + 1)."""
    return lambda t: t ** exponent(t) / (t ** exponent(t) + 1)


ALL, NOTHING = (lambda t: 1.0), (lambda t: 0.0)
# Factors of regrets above zero, below zero and of the average after iteration t, and what is predicted: as published.
PUBLISHED = {
    "cfr+": (ALL, NOTHING, lambda t: t / (t + 1), 0),
    "dcfr": (kept(lambda t: 1.5), lambda t: 0.5, lambda t: (t / (t + 1)) ** 2, 0),
    "dcfr-restart": (
        kept(lambda t: 1.5),
        lambda t: 0.5,
        lambda t: ((t - 4 ** int(np.log2(t) // 2)) / (t - 4 ** int(np.log2(t) // 2) + 1)) ** 3,
        0,
    ),
    "hs-dcfr": (
        kept(lambda t: 1 + 3 * t / 1000),
        kept(lambda t: -1 - 2 * t / 1000),
        lambda t: (t / (t + 1)) ** (30 - 5 * t / 1000),
        0,
    ),
    "pcfr+": (ALL, NOTHING, lambda t: (t / (t + 1)) ** 2, 1),
    "sapcfr+": (ALL, NOTHING, lambda t: (t / (t + 1)) ** 2, 1 / 3),
    "pdcfr+": (kept(lambda t: 2.3), NOTHING, lambda t: (t / (t + 1)) ** 5, 1),
    "hs-pcfr+": (ALL, NOTHING, lambda t: (t / (t + 1)) ** (30 - 5 * t / 1000), 1),
}


@pytest.mark.parametrize("variant", PUBLISHED)
def test_variants_are_as_published(variant):
    """Flat walks keep sums that are discounted after an iteration; averages that restart keep a billionth."""
    *factors, predicted = PUBLISHED[variant]
    for name, iterations in (("kuhn", 23), ("one-card", 7)):
        solver = Cfr(FlatTables(tree(name).nodes), variant)
        solver.step(iterations)
        expected = naive.cfr(tree(name).nodes, lambda t: [factor(t) for factor in factors], predicted, iterations)
        np.testing.assert_allclose(solver.average(), expected, atol=1e-7)


@pytest.mark.parametrize("variant", ["cfr", "cfr+"])
@pytest.mark.parametrize(("name", "bound"), [("kuhn", 0.02), ("leduc", 0.2), ("one-card", 0.02)])
def test_convergence_against_best_responses(name, bound, variant):
    solver = Cfr(FlatTables(tree(name).nodes, responds=True), variant)
    solver.step(500)
    assert 0 <= exploitability(tree(name), solver.average()) < bound


@pytest.mark.parametrize(
    ("name", "profiles"), [("kuhn", [0.9167, 0.3333, 0.3194]), ("leduc", [4.7472, 4.0069, 3.4090])]
)
def test_first_profiles_of_cfr_br(name, profiles):
    """NashConv of the first average strategies, as open_spiel's CFR-BR has them (reference list)."""
    solver = Cfr(FlatTables(tree(name).nodes, responds=True), "cfr")
    for expected in profiles:
        solver.step(1)
        assert round(2 * exploitability(tree(name), solver.average()), 4) == expected


@pytest.mark.parametrize(
    ("name", "variant", "iterations", "value", "tolerance"),
    [("kuhn", "pcfr+", 2000, -1 / 18, 1e-6), ("leduc", "cfr+", 5000, -0.085606424078, 1e-4)],
)
def test_values_agree_with_the_linear_programme(name, variant, iterations, value, tolerance):
    solver = Cfr(FlatTables(tree(name).nodes), variant)
    solver.step(iterations)
    found = expected_value(tree(name), solver.average())
    assert found == pytest.approx(value, abs=tolerance)
    assert found == pytest.approx(solve_lp(tree(name).nodes).value, abs=tolerance)


def test_current_strategy_of_cfr_plus_converges_too():
    """[Johanson16 chapter 9]: in practice the current strategy of CFR+ is good as well."""
    solver = Cfr(FlatTables(tree("leduc").nodes), "cfr+")
    solver.step(1000)
    assert exploitability(tree("leduc"), solver.current()) < 0.05


@pytest.mark.parametrize(("name", "nash_conv"), [("kuhn", 0.9166667), ("leduc", 4.7472222)])
def test_exploitability_of_the_uniform_profile(name, nash_conv):
    assert round(2 * exploitability(tree(name), uniform(tree(name))), 7) == nash_conv


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_best_responses_win_what_they_say(name):
    rng = np.random.default_rng(2)
    sizes = np.diff(tree(name).nodes.infoset_start)
    strategy = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    for player, sign in ((0, 1), (1, -1)):
        response = best_response(tree(name), strategy, player)
        assert response.value == pytest.approx(sign * expected_value(tree(name), response.strategy))
        assert response.value == pytest.approx(response_values(tree(name), strategy)[player])
        assert response.value >= sign * expected_value(tree(name), strategy)


@pytest.mark.parametrize("responds", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_and_checkpoints_make_no_difference(responds, variant):
    nodes = tree("leduc").nodes
    whole, parts, later = (Cfr(FlatTables(nodes, responds=responds), variant) for _ in range(3))
    whole.step(20)
    parts.step(7)
    later.restore({name: array.copy() for name, array in parts.state().items()})
    later.step(13)
    assert later.iterations == 20
    assert np.array_equal(later.average(), whole.average())
    assert np.array_equal(later.current(), whole.current())


def test_bad_input():
    with pytest.raises(GameError, match=r"'cfr\+\+': use one of cfr, cfr\+"):
        Cfr(FlatTables(tree("kuhn").nodes), "cfr++")
    with pytest.raises(GameError, match="has 3 entries, not 24"):
        exploitability(tree("kuhn"), np.ones(3))
