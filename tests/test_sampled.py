from zlib import crc32

import numpy as np
import pytest

import naive
from kilt.errors import GameError
from kilt.games.game import CHANCE, TERMINAL
from kilt.solve.sampled import SCHEMES, FlatMCCFR, paths
from kilt.solve.sampled_kernels import build_alias_tables
from kilt.solve.solver import normalised
from kilt.tree.flat import Expansion, expand_tree
from written_out import tree_of


@pytest.fixture(scope="module")
def trees():
    return {"kuhn": tree_of("kuhn").nodes, "leduc": tree_of("leduc").nodes, "odd": odd_tree()}


def odd_tree():
    """What poker lacks: uneven chance, forced moves, and moves that the opponent does not see.

    A state is what happened so far. Chance starts with a number for each player; the third number is seen by both.
    """
    actors = [CHANCE, CHANCE, 0, 1, CHANCE, 1, 0, TERMINAL]
    seen = {0: (0, 2, 4, 6), 1: (1, 3, 4, 5)}

    def expand(state):
        actor = actors[len(state)]
        if actor == TERMINAL:
            return Expansion(actor, payoff=crc32(bytes(state)) % 7 - 3.0)
        if actor == CHANCE:
            weights = np.array([1.0, 2.0, 4.0]) + crc32(bytes(state)) % 3
            return Expansion(actor, [(w / weights.sum(), (*state, k)) for k, w in enumerate(weights)])
        infoset = f"{actor}: {[state[i] for i in seen[actor] if i < len(state)]}"
        count = 1 + crc32(infoset.encode()) % 3
        return Expansion(actor, [(1.0, (*state, k)) for k in range(count)], infoset, tuple("abc"[:count]))

    nodes = expand_tree("odd", (), expand).nodes
    assert set(np.diff(nodes.infoset_start)) == {1, 2, 3}
    return nodes


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("game", "low", "high", "batches", "walks"),
    [("kuhn", -1, 1, 200, 10_000), ("odd", -1, 3, 200, 10_000), ("leduc", 2, 3, 100, 60_000)],
)
def test_expectations(trees, game, low, high, batches, walks, scheme):
    """Under a fixed strategy, what walks add to regrets and averages is on average what full walks would."""
    nodes = trees[game]
    fixed = np.random.default_rng(5).uniform(low, high, nodes.infoset_start[-1])
    strategy = normalised(np.maximum(fixed, 0), nodes)
    gain, total = np.zeros((batches, len(fixed))), np.zeros((batches, len(fixed)))
    shape = paths(nodes)
    for batch in range(batches):
        SCHEMES[scheme](np.uint64(3), batch * walks, walks, shape, fixed, gain[batch], strategy, total[batch])
    regret, average = naive.expected_walk(nodes, strategy)
    sizes = np.diff(nodes.infoset_start)
    average[np.repeat(sizes == 1, sizes)] = 0  # forced moves are not counted
    for samples, exact in (gain, regret), (total, average):
        mean = samples.mean(axis=0)
        error = samples.std(axis=0, ddof=1) / np.sqrt(batches)
        assert np.all(np.abs(mean - walks / 2 * exact) <= 5 * error + 1e-9 * walks)


@pytest.mark.parametrize(
    ("game", "scheme", "iterations", "bound"),
    [
        ("kuhn", "external", 100_000, 0.006),
        ("kuhn", "outcome", 100_000, 0.015),
        ("kuhn", "pure", 100_000, 0.006),
        ("leduc", "external", 300_000, 0.06),
    ],
)
def test_convergence(trees, game, scheme, iterations, bound):
    nodes = trees[game]
    solver = FlatMCCFR(nodes, scheme, seed=1)
    before = naive.exploitability(nodes, solver.average())
    solver.step(iterations)
    assert naive.exploitability(nodes, solver.average()) < bound < before / 20
    assert solver.iterations == iterations


def test_twin(trees):
    """The exploitability of the uniform strategy in Kuhn poker: open_spiel's NashConv is twice that."""
    uniform = FlatMCCFR(trees["kuhn"]).current()
    assert naive.exploitability(trees["kuhn"], uniform) == pytest.approx(11 / 24)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("game", ["kuhn", "odd"])
def test_continuation(trees, game, scheme):
    """A run depends on its seed and its length, not on how often it was interrupted."""
    nodes = trees[game]
    whole, parts, other, late = (FlatMCCFR(nodes, scheme, seed) for seed in (11, 11, 12, 13))
    whole.step(1000)
    parts.step(1)
    parts.step(599)
    late.restore(parts.state())
    kept = parts.state()
    parts.step(400)
    assert kept["iterations"] == 600
    late.step(400)
    other.step(1000)
    for solver in parts, late:
        assert solver.iterations == 1000
        for name, table in whole.state().items():
            assert np.array_equal(solver.state()[name], table), name
    assert not np.array_equal(whole.average(), other.average())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_strategies(trees, scheme):
    nodes = trees["odd"]
    solver = FlatMCCFR(nodes, scheme)
    solver.step(500)
    for strategy in solver.current(), solver.average():
        np.testing.assert_allclose(np.add.reduceat(strategy, nodes.infoset_start[:-1]), 1)
    np.testing.assert_allclose(solver.current(), normalised(np.maximum(solver.state()["regret"], 0), nodes))


def test_pure_adds_integers(trees):
    solver = FlatMCCFR(trees["kuhn"], "pure")
    solver.step(1000)
    for name in "regret", "total":
        table = solver.state()[name]
        assert np.array_equal(table, np.rint(table)) and table.any()


def test_alias():
    """Rows of equal probability, shared by two outcomes each, add up to the distributions they were made from."""
    rng = np.random.default_rng(8)
    sizes = [1, 2, 3, 10, 1, 50]
    first = np.cumsum([0, *sizes])
    chances = np.concatenate([rng.dirichlet(np.full(size, 0.3)) for size in sizes])
    outcome = np.stack([np.arange(first[-1], dtype=np.uint32)] * 2, axis=1)
    odds = chances.copy()
    build_alias_tables(first, odds, outcome)
    assert np.all((odds >= 0) & (outcome[:, 0] == np.arange(first[-1])))
    share = np.repeat(1 / np.array(sizes), sizes)
    found = np.minimum(odds, 1) * share
    np.add.at(found, outcome[:, 1], np.maximum(1 - odds, 0) * share)
    np.testing.assert_allclose(found, chances, atol=1e-12)


def test_unknown_scheme(trees):
    with pytest.raises(GameError, match="'chance': use one of external, outcome, pure"):
        FlatMCCFR(trees["kuhn"], "chance")
