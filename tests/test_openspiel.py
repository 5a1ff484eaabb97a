"""Trees from open_spiel and policies to and from it."""

import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pyspiel
import pytest
from open_spiel.python.policy import TabularPolicy

from kilt.errors import GameError
from kilt.games.game import CHANCE
from kilt.strategy.openspiel import from_openspiel, to_openspiel
from kilt.tree.best_response import exploitability, uniform
from kilt.tree.openspiel import action_numbers, openspiel_game, openspiel_tree, openspiel_twin
from naive import best_response_value
from written_out import tree_of as own_tree

SMALL = ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)", "goofspiel(num_cards=3,imp_info=True)", "matrix_rps"]

tree_of = cache(openspiel_tree)


def random_strategy(tree, seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.dirichlet(np.full(len(actions), 0.5)) for actions in tree.actions])


@pytest.mark.parametrize("name", SMALL)
def test_trees_have_what_the_game_has(name):
    tree, game = tree_of(name), openspiel_game(name)
    nodes = tree.nodes
    assert game.get_type().dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    policy = TabularPolicy(game)
    assert set(policy.state_lookup) == set(tree.infosets)
    chance = nodes.actor == CHANCE
    sums = np.bincount(nodes.parent[1:], weights=nodes.chance[1:], minlength=len(chance))
    np.testing.assert_allclose(sums[chance], 1)
    assert nodes.payoff.min() >= game.min_utility()
    assert nodes.payoff.max() <= game.max_utility()
    legal = dict(zip(policy.state_lookup, policy.legal_actions_mask, strict=True))
    assert np.concatenate([np.flatnonzero(legal[i]) for i in tree.infosets]).tolist() == action_numbers(tree)


@pytest.mark.parametrize("name", SMALL)
def test_there_and_back(name):
    tree = tree_of(name)
    strategy = random_strategy(tree, seed=1)
    policy = to_openspiel(tree, strategy)
    assert np.array_equal(from_openspiel(tree, policy), strategy)
    assert np.array_equal(from_openspiel(tree, pyspiel.TabularPolicy(policy).policy_table()), strategy)
    backwards = {infoset: row[::-1] for infoset, row in reversed(policy.items())}
    assert np.array_equal(from_openspiel(tree, backwards), strategy)


def test_policies_of_the_python_side():
    tree = tree_of("leduc_poker")
    assert np.array_equal(from_openspiel(tree, TabularPolicy(openspiel_game(tree.name)).to_dict()), uniform(tree))


@pytest.mark.parametrize(("name", "expected"), [("kuhn_poker", 0.9166667), ("leduc_poker", 4.7472222)])
def test_nash_conv_of_the_uniform_profile(name, expected):
    tree = tree_of(name)
    policy = to_openspiel(tree, uniform(tree))
    assert pyspiel.nash_conv(openspiel_game(name), policy) == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_profiles_are_as_exploitable_in_open_spiel(name, seed):
    tree, game = tree_of(name), openspiel_game(name)
    strategy = random_strategy(tree, seed)
    policy = to_openspiel(tree, strategy)
    won = best_response_value(tree, strategy, 0) + best_response_value(tree, strategy, 1)
    assert exploitability(tree, strategy) == pytest.approx(won / 2, rel=0, abs=1e-9)
    assert pyspiel.nash_conv(game, policy) == pytest.approx(won, rel=0, abs=1e-9)
    assert pyspiel.exploitability(game, policy) == pytest.approx(won / 2, rel=0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "other", "infosets"),
    [
        ("kuhn", "kuhn_poker", 12),
        ("leduc", "leduc_poker", 936),
        pytest.param("bluff-1-1", "liars_dice", 24_576, marks=pytest.mark.slow),
    ],
)
def test_twins(name, other, infosets):
    """Strategies for kilt's own games are judged by open_spiel."""
    tree = own_tree(name)
    twin = openspiel_twin(tree)
    assert (twin.name, len(twin.infosets)) == (other, infosets)
    strategy = random_strategy(tree, seed=4)
    policy = to_openspiel(twin, strategy)
    assert np.array_equal(from_openspiel(twin, policy), strategy)
    judged = pyspiel.exploitability(openspiel_game(other), policy)
    assert judged == pytest.approx(exploitability(tree, strategy), rel=0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("no_such_game", "no game 'no_such_game'.*registered_names"),
        ("kuhn_poker(", "cannot load 'kuhn_poker\\(': Missing closing bracket"),
        ("liars_dice(sides=4)", "cannot load .*Unknown parameter 'sides'"),
        ("kuhn_poker(players=3)", "it has 3 players; use a game for 2"),
        ("matrix_pd", "payoffs are GENERAL_SUM"),
        ("markov_soccer", "no names for information states"),
        ("phantom_ttt", "one name, '...\\\\n...\\\\n...\\\\n', to information states that differ"),
        ("liars_dice_ir", "imperfect recall"),
    ],
)
def test_games_that_are_refused(name, complaint):
    with pytest.raises(GameError, match=complaint):
        openspiel_tree(name)


def test_large_games_are_refused():
    with pytest.raises(GameError, match="more than 1,000 nodes"):
        openspiel_tree("leduc_poker", most_nodes=1000)


def test_open_spiel_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(GameError, match=r"pip install 'kilt\[peers\]'"):
        openspiel_tree("kuhn_poker")


def test_policies_that_are_refused():
    tree = tree_of("kuhn_poker")
    policy = to_openspiel(tree, uniform(tree))
    with pytest.raises(GameError, match="has 23 entries; kuhn_poker needs 24"):
        to_openspiel(tree, uniform(tree)[1:])
    with pytest.raises(GameError, match="lacks the information state '0'"):
        from_openspiel(tree, {k: v for k, v in policy.items() if k != "0"})
    for row in ([(0, 0.5)], [(0, 0.5), (2, 0.5)], [(0, 1.5), (1, -0.5)], [(0, float("nan")), (1, 0.5)]):
        with pytest.raises(GameError, match=r"policy at '0' of kuhn_poker is .* legal actions, 0, 1,"):
            from_openspiel(tree, policy | {"0": row})


def test_trees_that_are_not_from_open_spiel():
    tree = own_tree("leduc")
    with pytest.raises(GameError, match="openspiel_twin"):
        to_openspiel(tree, uniform(tree))
    with pytest.raises(GameError, match="one-card has no counterpart"):
        openspiel_twin(own_tree("one-card"))
    with pytest.raises(GameError, match="this leduc is not leduc_poker, they differ in `payoff`"):
        openspiel_twin(replace(tree, nodes=tree.nodes._replace(payoff=2 * tree.nodes.payoff)))
