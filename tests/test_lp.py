"""The sequence-form linear programme against published values, best responses and open_spiel."""

from dataclasses import replace

import numpy as np
import pyspiel
import pytest
from scipy.sparse import csc_array

from kilt.errors import GameError
from kilt.games.game import TERMINAL
from kilt.solve.lp import SparseMatrix, solve_lp
from kilt.strategy.openspiel import to_openspiel
from kilt.tree.best_response import expected_value, exploitability
from kilt.tree.flat import Expansion, expand_tree
from kilt.tree.openspiel import TWINS, openspiel_game, openspiel_tree, openspiel_twin
from written_out import tree_of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kuhn", -1 / 18),  # H. Kuhn, A simplified two-person poker, 1950
        ("one-card", -5 / 78),  # G. Gordon has −0.064
        ("leduc", -0.085606424078),  # as other linear programmes have it
        pytest.param("bluff-1-1", -7 / 258, marks=pytest.mark.slow),  # CFR+ with bounds: −0.0271320 to −0.0271304
    ],
)
def test_values(name, value):
    tree = tree_of(name)
    found = solve_lp(tree.nodes)
    assert found.value == pytest.approx(value, rel=0, abs=1e-9)
    assert expected_value(tree, found.strategy) == pytest.approx(value, rel=0, abs=1e-9)
    assert exploitability(tree, found.strategy) < 1e-8


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_open_spiel_finds_nothing_to_exploit(name):
    tree = tree_of(name)
    policy = to_openspiel(openspiel_twin(tree), solve_lp(tree.nodes).strategy)
    assert pyspiel.exploitability(openspiel_game(TWINS[name]), policy) < 1e-8


@pytest.mark.parametrize("name", ["liars_dice(dice_sides=3)", "goofspiel(num_cards=3,imp_info=True)", "matrix_brps"])
def test_games_of_open_spiel(name):
    tree = openspiel_tree(name)
    assert pyspiel.exploitability(openspiel_game(name), to_openspiel(tree, solve_lp(tree.nodes).strategy)) < 1e-8


def matrix_game(payoffs):
    """Both players choose at once: player 0 a row, player 1 a column."""

    def expand(chosen):
        if len(chosen) == 2:
            return Expansion(TERMINAL, payoff=payoffs[chosen[0]][chosen[1]])
        number = len(payoffs[0]) if chosen else len(payoffs)
        return Expansion(
            len(chosen), [(1.0, (*chosen, n)) for n in range(number)], f"{len(chosen)}", tuple(map(str, range(number)))
        )

    return expand_tree("matrix", (), expand)


def test_a_matrix_game_by_hand():
    """No saddle point, and only one equilibrium: mixtures in the ratio of the other player's differences."""
    found = solve_lp(matrix_game([[3, -1], [-2, 1]]).nodes)
    assert found.value == pytest.approx(1 / 7, abs=1e-12)
    np.testing.assert_allclose(found.strategy, np.array([3, 4, 2, 5]) / 7, atol=1e-12)


def test_one_player_may_have_nothing_to_do():
    found = solve_lp(expand_tree("choice", "", expand_choice).nodes)
    assert found.value == 2
    assert found.strategy.tolist() == [0, 1]


def expand_choice(state):
    if state:
        return Expansion(TERMINAL, payoff=float(state))
    return Expansion(0, [(1.0, "1"), (1.0, "2")], "start", ("1", "2"))


@pytest.mark.parametrize(("name", "scale"), [*[("kuhn", 10.0**power) for power in range(-2, 4)], ("leduc", 1.0)])
def test_random_payoffs(name, scale):
    """The shape of a known game, with payoffs that know nothing of poker."""
    tree = tree_of(name)
    rng = np.random.default_rng(7)
    payoff = np.where(tree.nodes.actor == TERMINAL, scale * rng.normal(size=len(tree.nodes.payoff)), 0.0)
    tree = replace(tree, nodes=tree.nodes._replace(payoff=payoff))
    found = solve_lp(tree.nodes)
    assert exploitability(tree, found.strategy) < 1e-8 * scale
    assert expected_value(tree, found.strategy) == pytest.approx(found.value, rel=0, abs=1e-8 * scale)


def test_strategies_are_complete():
    """Probabilities everywhere, uniform where a player's own actions do not lead."""
    nodes = tree_of("leduc").nodes
    strategy = solve_lp(nodes).strategy
    assert strategy.min() >= 0
    np.testing.assert_allclose(np.add.reduceat(strategy, nodes.infoset_start[:-1]), 1)
    never = np.flatnonzero((nodes.infoset_after >= 0) & (strategy[nodes.infoset_after] == 0))
    assert len(never)
    for infoset in never:
        start, end = nodes.infoset_start[infoset : infoset + 2]
        assert np.all(strategy[start:end] == 1 / (end - start))


def test_players_must_remember():
    with pytest.raises(GameError, match="imperfect recall"):
        openspiel_tree("liars_dice_ir")
    tree = tree_of("kuhn")
    nodes = tree.nodes
    first, later = tree.infosets.index("Qs||"), tree.infosets.index("Qs||cr")
    merged = nodes._replace(infoset=np.where(nodes.infoset == later, first, nodes.infoset))
    with pytest.raises(GameError, match=r"1 of 12 information sets, first number 0, .* perfect recall"):
        solve_lp(merged)


def test_what_a_flat_tree_cannot_hold_is_refused_before():
    """Its payoffs are one player's, so a game that is not zero-sum has to be refused when it is written out."""
    with pytest.raises(GameError, match="GENERAL_SUM"):
        openspiel_tree("matrix_pd")


def test_matrices_by_columns_are_those_of_scipy():
    rng = np.random.default_rng(3)
    rows, columns, values = rng.integers(0, 7, 60), rng.integers(0, 9, 60), rng.normal(size=60)
    start, index, entries = SparseMatrix((7, 9), rows, columns, values).by_columns()
    wanted = csc_array((values, (rows, columns)), shape=(7, 9))
    wanted.sort_indices()
    assert np.array_equal(start, wanted.indptr) and np.array_equal(index, wanted.indices)
    np.testing.assert_allclose(entries, wanted.data, rtol=0, atol=1e-15)
