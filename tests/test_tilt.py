"""Tilted payoffs: every form of a game has the same, a tilt of 0 changes nothing, and judging uses the real ones."""

import json

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.errors import GameError
from kilt.evaluate.evaluator import evaluator_for
from kilt.evaluate.head_to_head import AbstractStrategy, expected_winnings
from kilt.games import load_game
from kilt.games.tilt import parse_tilt, tilt_game
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Cfr
from kilt.solve.external import ExternalMCCFR
from kilt.solve.forms import load_problem
from kilt.solve.lp import solve_lp
from kilt.solve.opponents import SCHEMES
from kilt.solve.sampled import FlatMCCFR
from kilt.solve.tables.flat import FlatTables
from kilt.strategy.table import tree_fingerprint
from kilt.tree import best_response
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW
from kilt.tree.walk_kernels import push_reach
from kilt.tree.walks import Walk
from written_out import tree_of

ORANGE = (7, 0, 0, 7)  # [Johanson16 table 2.3]
ODD = (30, -10, 5, 20, 0, 20, -15, 10)  # each player has their own


@pytest.fixture(scope="module")
def lossless(tmp_path_factory):
    deal = Deal.from_game(load_game("leduc"))
    return build(AbstractionSpec.from_name("lossless", deal), tmp_path_factory.mktemp("cards") / "leduc")


def test_no_tilt_is_the_game_itself():
    game = load_game("leduc")
    assert tilt_game(game, (0, 0, 0, 0)) is game and tilt_game(game, ()) is game
    assert tree_fingerprint(flat_tree(tilt_game(game, (0,) * 8))) == tree_fingerprint(tree_of("leduc"))


def test_all_cases_alike_scale_the_game():
    """So CFR's iterates are the same but for rounding, and the linear programme's value is scaled."""
    game, plain = flat_tree(tilt_game(load_game("leduc"), (25,) * 4)), tree_of("leduc")
    assert not game.is_general_sum
    np.testing.assert_allclose(game.nodes.payoff, 1.25 * plain.nodes.payoff, rtol=1e-15)
    solvers = [Cfr(FlatTables(tree.nodes), "cfr") for tree in (game, plain)]
    for solver in solvers:
        solver.step(20)
    np.testing.assert_allclose(solvers[0].average(), solvers[1].average(), atol=1e-9)
    assert solve_lp(flat_tree(tilt_game(load_game("kuhn"), (25,) * 4)).nodes).value == pytest.approx(-1.25 / 18)


def test_what_both_win():
    """(w − l) · stake at showdowns, and the like after folds."""
    game, (w, lost, folds, takes) = load_game("kuhn"), ORANGE
    rules = tilt_game(game, ORANGE)
    for history, gained in (("cc", w - lost), ("crf", takes - folds), ("rc", 2 * (w - lost))):
        for hands in ((0, 1), (2, 1)):
            won = rules.payoffs(rules.replay(history), hands, ())
            assert sum(won) == pytest.approx(gained / 100)
    with pytest.raises(GameError, match="not zero-sum"):
        solve_lp(flat_tree(rules).nodes)


@pytest.mark.parametrize("tilt", [ORANGE, ODD])
def test_all_forms_pay_alike(tilt, lossless):
    """The flat tree, vectors of hands, one hand at a time, buckets, and meetings of abstract strategies."""
    game = tilt_game(load_game("leduc"), tilt)
    tree, vector = flat_tree(game), VectorGame(game)
    uniform, table = best_response.uniform(tree), vector.table()
    bucketed = BucketedGame.with_abstraction(vector, lossless)
    values = vector.expected_values(table)
    reach = np.empty(len(tree.nodes.actor))
    push_reach(tree.nodes, uniform, 0, reach)  # of player 1 and chance
    own = np.ones(len(tree.nodes.actor))
    for node in range(1, len(own)):
        above = tree.nodes.parent[node]
        own[node] = own[above] / (tree.nodes.children[above] if tree.nodes.actor[above] == 0 else 1)
    ends = reach * own
    assert values == pytest.approx((ends @ tree.nodes.payoff, ends @ (tree.nodes.surplus - tree.nodes.payoff)))
    assert vector.response_values(table) == pytest.approx(best_response.response_values(tree, uniform))
    assert vector.exploitability(table) == pytest.approx(best_response.exploitability(tree, uniform))
    assert bucketed.expected_value(bucketed.table()) == pytest.approx(values[0])
    for player in (0, 1):  # one board, and one hand of the opponent
        walks = [
            vector.walk(Walk(player, (FOLLOW,), table, table), SCHEMES["opcs"], 1, number) for number in range(1000)
        ]
        assert abs(np.mean(walks) - values[player]) < 4 * np.std(walks) / 1000**0.5
    abstract = AbstractGame(game, lossless)
    even = AbstractStrategy(abstract, np.ones(abstract.slots, np.uint8))
    won = expected_winnings(even, even, 2048)
    assert (abs(won.mean(axis=0) - values) < 4 * won.std(axis=0) / 2048**0.5).all()


def test_samplers_learn_from_tilted_payoffs(lossless):
    """Mean regrets of the first iteration are those of a full walk; both flat and abstract external sampling."""
    game = tilt_game(load_game("leduc"), ODD)
    tree, abstract = flat_tree(game), AbstractGame(game, lossless)
    full = Cfr(FlatTables(tree.nodes), "cfr")
    full.step(1)
    seen = tree.infosets.index("Ks||")  # the first to act has a king
    places = slice(*tree.nodes.infoset_start[seen : seen + 2])
    flat, external = [], []
    sampled, solver = FlatMCCFR(tree.nodes, "external"), ExternalMCCFR(abstract)
    for _ in range(1000):
        sampled.regret[:], sampled.strategy[:] = 0, best_response.uniform(tree)
        solver.table[:] = 0
        sampled.step(1)
        solver.step(1)
        flat.append(sampled.regret[places].copy())
        external.append(solver.regrets.views[0][: 2 * int(abstract.first[1])].copy())
    assert (abs(np.mean(flat, axis=0) - full.tables.regret[places]) < 4 * np.std(flat, axis=0) / 1000**0.5).all()
    found = np.mean(external, axis=0).reshape(-1, 2, 2)[:, 0]  # [bucket, action]: regrets come before counts
    error = np.std(external, axis=0).reshape(-1, 2, 2)[:, 0] / 1000**0.5
    wanted = sum(full.tables.regret[slice(*tree.nodes.infoset_start[k : k + 2])] for k in kings(tree))
    assert any((abs(row - wanted) < 4 * wrong).all() for row, wrong in zip(found, error, strict=True))


def kings(tree):
    """Information sets of the first to act, with each of the kings."""
    return [k for k, name in enumerate(tree.infosets) if name in ("Ks||", "Kh||")]


def test_judging_uses_the_real_payoffs():
    for form in ("flat", "vector"):
        problem = load_problem("kuhn", "cfr+", form=form, tilt=ORANGE)
        plain = load_problem("kuhn", "cfr+", form=form)
        assert problem.fingerprint != plain.fingerprint == problem.real.fingerprint
        uniform = plain.uniform()
        assert evaluator_for(problem).evaluate(uniform) == evaluator_for(plain).evaluate(uniform)


def test_commands(tmp_path):
    """A small game with --set tilt, resumed; an abstract one by its configuration; both give what they give at once."""
    run = tmp_path / "run"
    kilt("solve", "kuhn", "--set", "tilt=[7,0,0,7]", "-n", "40", "--out", str(run))
    kilt("solve", "--resume", str(run), "-n", "80")
    found = answer("solve", "kuhn", "--set", "tilt=[7,0,0,7]", "-n", "80", "--json")
    again = answer("evaluate", "exploitability", str(run), "--json")
    assert found["exploitability"] == pytest.approx(again["exploitability"], abs=1e-12)
    plain = answer("solve", "--game", "kuhn", "-n", "80", "--json")
    assert found["exploitability"] != plain["exploitability"]
    assert json.loads((run / "run.json").read_text())["tilt"] == "7,0,0,7"
    assert "seven" in refused("solve", "kuhn", "--set", "tilt=seven")
    assert "four percentages above -100" in refused("solve", "kuhn", "--set", "tilt=[1,2,3]")
    assert "-100" in refused("solve", "kuhn", "--set", "tilt=[-100,0,0,0]")
    assert "remove the tilt" in refused("solve", "bluff-1-1", "--set", "tilt=[1,2,3,4]")
    assert parse_tilt("") == ()
