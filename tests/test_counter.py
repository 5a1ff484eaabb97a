"""Counter-strategies: restricted Nash and data-biased responses beside linear programmes [Johanson16 chapter 6]."""

from dataclasses import replace

import numpy as np
import pytest

import kilt as kilt_api
from commands import answer, kilt, refused
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.evaluate.observer import VectorObserver
from kilt.games import load_game
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.counter import CONFIDENCES, Against
from kilt.solve.external import SamplingOptions
from kilt.solve.lp import safe_response, solve_lp, solve_restricted
from kilt.solve.problem import VectorProblem
from kilt.solve.registry import make_solver
from kilt.solve.solver import normalised
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.model import OpponentModel
from kilt.tree import best_response
from kilt.tree import walk_kernels as kernels
from kilt.tree.vector import VectorGame
from written_out import flat_places, problem_of, tree_of


def some_model(tree, seed=1, most=25):
    """A model of which some information sets were seen often, and some never."""
    rng, nodes = np.random.default_rng(seed), tree.nodes
    seen = np.repeat(rng.integers(0, 3, len(tree.infosets)), np.diff(nodes.infoset_start))
    return OpponentModel.of_tree(tree, "Ann", (seen * rng.integers(0, most, len(seen))).astype(float))


def owned(tree, player):
    """[slot] whether it is a player's."""
    return np.repeat(tree.nodes.infoset_player, np.diff(tree.nodes.infoset_start)) == player


def exploitation(tree, answer, strategy):
    """What an answer wins from a strategy, mean over both seats, in chips per game."""
    first = owned(tree, 0)
    pairs = (answer, strategy), (strategy, answer)
    won = [best_response.expected_value(tree, np.where(first, *pair)) for pair in pairs]
    return (won[0] - won[1]) / 2


def exact(tree, against):
    """The answer by linear programmes, a seat each, and the mean of their values."""
    seats = [solve_restricted(tree.nodes, against.restriction(1 - seat, against.fixed())) for seat in (0, 1)]
    return np.where(owned(tree, 0), seats[0].strategy, seats[1].strategy), (seats[0].value + seats[1].value) / 2


def restricted_value(tree, against, answer):
    """What an answer is sure to win in the restricted game, mean over both seats: its value for the best answers."""
    total = 0.0
    for seat in (0, 1):
        held, fixed = against.restriction(1 - seat, against.fixed()), against.fixed()
        if held.coin:
            pair = (answer, fixed) if seat == 0 else (fixed, answer)
            met = best_response.expected_value(tree, np.where(owned(tree, 0), *pair)) * (1 if seat == 0 else -1)
            safe = -best_response.best_response(tree, answer, 1 - seat).value
            total += held.coin * met + (1 - held.coin) * safe
        else:
            total -= response_when_held(tree, answer, 1 - seat, fixed)
    return total / 2


def response_when_held(tree, answer, player, fixed):
    """What a best response wins that must follow `fixed` in part: by sweeps until nothing changes."""
    nodes, free = tree.nodes, best_response.uniform(tree)
    sums = np.repeat(np.add.reduceat(fixed, nodes.infoset_start[:-1]), np.diff(nodes.infoset_start))
    own = owned(tree, player)
    for _ in range(20):
        profile = np.where(own, fixed + (1 - sums) * free, answer)
        value, slots = values_of(tree, profile, player)
        worth = slots + 1e-9 * free
        most = np.repeat(np.maximum.reduceat(worth, nodes.infoset_start[:-1]), np.diff(nodes.infoset_start))
        best = np.flatnonzero(worth == most)
        _, first = np.unique(np.searchsorted(nodes.infoset_start, best, side="right"), return_index=True)
        better = np.where(own, 0.0, free)
        better[best[first]] = np.where(own[best[first]], 1.0, better[best[first]])
        if (better == free)[own].all():
            break
        free = better
    return value


def values_of(tree, profile, player):
    """The value to a player, and the counterfactual values of slots."""
    nodes, slots = tree.nodes, np.empty(len(profile))
    reach, value, choice = (
        np.empty(len(nodes.actor)),
        np.empty(len(nodes.actor)),
        np.empty(len(tree.infosets), np.int32),
    )
    kernels.push_reach(nodes, profile, player, reach)
    kernels.pull_values(nodes, profile, player, False, reach, value, slots, choice)
    return value[0], slots


CASES = [("", 0.0), ("", 0.6), ("", 1.0), *((name, 0.8) for name in CONFIDENCES), ("1-step", 0.0)]


@pytest.mark.parametrize("game", ["kuhn", "leduc"])
def test_flat_answers_are_those_of_linear_programmes(game):
    tree, problem = tree_of(game), problem_of(game, "flat")
    model = some_model(tree)
    nash = solve_lp(tree.nodes)
    for confidence, p in CASES:
        against = Against(model, p, confidence)
        answer, value = exact(tree, against)
        assert restricted_value(tree, against, answer) == pytest.approx(value, abs=1e-7)
        solver = make_solver(replace(problem, against=against), "dbr" if confidence else "rnr")
        solver.step(600)
        assert value - 0.02 < restricted_value(tree, against, solver.average()) <= value + 1e-7
        if p == 0:
            assert value == pytest.approx(0, abs=1e-9)
            assert best_response.exploitability(tree, answer) < 1e-8
        if not confidence and p == 1:
            best = sum(best_response.response_values(tree, model.policy())) / 2
            assert value == pytest.approx(best) == exploitation(tree, answer, model.policy())
    assert nash.value == pytest.approx({"kuhn": -1 / 18, "leduc": -0.085606424}[game])


def test_restricted_nash_lies_on_the_frontier_of_safe_responses():
    """Exploitation and exploitability grow with p, concavely, above the mixtures of equilibrium and best response."""
    tree = tree_of("leduc")
    model = some_model(tree)
    policy, points = model.policy(), []
    value = solve_lp(tree.nodes).value * np.array([1, -1])
    for p in (0.0, 0.4, 0.8, 1.0):
        answer, _ = exact(tree, Against(model, p, ""))
        for seat in (0, 1) if p > 0 else ():  # there are many equilibria, and some win less
            lost = best_response.best_response(tree, answer, 1 - seat).value + value[seat]
            won = safe_response(tree.nodes, seat, policy, max(lost, 0) + 1e-9).value
            met = np.where(owned(tree, seat), answer, policy)
            assert won == pytest.approx(best_response.expected_value(tree, met) * (1, -1)[seat], abs=1e-5)
        points.append((best_response.exploitability(tree, answer), exploitation(tree, answer, policy)))
    risk, won = np.array(points).T
    assert (np.diff(risk) > -1e-7).all() and (np.diff(won) > -1e-7).all()
    chord = won[0] + (won[-1] - won[0]) * (risk - risk[0]) / (risk[-1] - risk[0])
    assert (won >= chord - 1e-7).all()
    slopes = np.diff(won)[np.diff(risk) > 1e-6] / np.diff(risk)[np.diff(risk) > 1e-6]
    assert (np.diff(slopes) < 1e-6).all()


def test_constant_confidence_is_no_coin():
    """But for players who act once at most: Kuhn's second player does, the first may act twice."""
    tree = tree_of("kuhn")
    model = some_model(tree, most=3)
    model = replace(model, counts=model.counts + 1)
    values = []
    for confidence in ("", "1-step"):
        against = Against(model, 0.7, confidence)
        values.append(
            [solve_restricted(tree.nodes, against.restriction(held, against.fixed())).value for held in (0, 1)]
        )
    assert values[0][1] == pytest.approx(values[1][1], abs=1e-9)
    assert abs(values[0][0] - values[1][0]) > 1e-4


def test_confidence_functions():
    n = np.array([0.0, 1, 5, 9, 10, 11, 1e9])
    found = {name: function(n) for name, function in CONFIDENCES.items()}
    assert found["1-step"].tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert found["10-step"].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert found["0-10-linear"].tolist() == [0, 0.1, 0.5, 0.9, 1, 1, 1]
    assert found["s-curve"].tolist() == pytest.approx([0, 0.5, 5 / 6, 0.9, 10 / 11, 11 / 12, 1])
    assert all(function[-1] == pytest.approx(1) and (function <= found["1-step"]).all() for function in found.values())


@pytest.fixture(scope="module")
def leduc(tmp_path_factory):
    """The abstract game without loss, a model of it, and the problem."""
    game, place = load_game("leduc"), tmp_path_factory.mktemp("cards") / "leduc"
    cards = build(AbstractionSpec.from_name("lossless", Deal.from_game(game)), place)
    abstract = AbstractGame(game, cards)
    counts = np.random.default_rng(3).integers(0, 4, abstract.slots).astype(float)
    problem = AbstractProblem(abstract, (place,), SamplingOptions(linear=True))
    return problem, OpponentModel.of_abstract(abstract, "Ann", counts)


@pytest.mark.parametrize(("confidence", "p"), [("", 0.7), ("0-10-linear", 0.9)])
def test_forms_agree(leduc, confidence, p):
    """Vectors of hands, buckets, joint tables and external sampling win and lose what the linear programme does."""
    problem, model = leduc
    vectors = VectorProblem(VectorGame(load_game("leduc")))
    by_hand = expand(problem, model.counts)
    alike = vectors.game.pooled(np.ones(vectors.game.shape))  # hands that share what was seen of them
    many = OpponentModel.of_vectors(vectors.game, "Ann", by_hand / alike)
    tree = tree_of("leduc")
    places = flat_places(vectors.game, tree)
    flat = OpponentModel.of_tree(tree, "Ann", by_hand[places])
    _, wanted = exact(tree, Against(flat, p, confidence))
    kind = "dbr" if confidence else "rnr"
    found = {}
    for name, made, steps in (
        ("vector", replace(vectors, against=Against(many, p, confidence)), 300),
        ("bucketed", replace(problem, against=Against(model, p, confidence)), 300),
        ("joint", replace(problem, against=Against(model, p, confidence)), 300),
        ("external", replace(problem, against=Against(model, p, confidence)), 60_000),
    ):
        solver = make_solver(made, f"{kind}:{name}" if name in ("external", "joint") else kind, seed=1)
        solver.step(steps)
        table = solver.average()
        if name != "vector":
            table = expand(problem, table)
        answer = normalised(table[places], tree.nodes)
        found[name] = restricted_value(tree, Against(flat, p, confidence), answer)
    assert found["vector"] == pytest.approx(wanted, abs=0.02)
    assert found["bucketed"] == pytest.approx(wanted, abs=0.02)
    assert found["joint"] == pytest.approx(found["bucketed"], abs=1e-4)  # the same iterates, up to rounding
    assert found["external"] == pytest.approx(wanted, abs=0.1)


def expand(problem, shares):
    """[(board, row), hand] a table over the slots of the abstract game, for every hand of every board."""
    bucketed = problem.bucketed
    table = bucketed.table_of(problem.abstract, shares, calling=False)
    game, layout = bucketed.game, bucketed.layouts[0]
    out = game.table()
    for r, rows in enumerate(game.tree.rows):
        for board in range(game.tree.board_start[r], game.tree.board_start[r + 1]):
            first = game.tree.table_start[r] + (board - game.tree.board_start[r]) * rows
            out[first : first + rows] = table[layout.start[r] : layout.start[r + 1]][:, layout.bucket[board]]
    return out


# ── kilt counter ──


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A configuration, its run, and a model for it."""
    folder = tmp_path_factory.mktemp("counter")
    said = 'game = "leduc"\ncards = "lossless"\n[solver]\nalgorithm = "cfr+"\niterations = 20\n'
    (folder / "leduc.toml").write_text(said)
    kilt("solve", str(folder / "leduc.toml"), "--out", str(folder / "nash"))
    blueprint = Blueprint.load(folder / "nash")
    abstract = AbstractGame(blueprint.game, blueprint.cards)
    counts = np.random.default_rng(3).integers(0, 30, abstract.slots).astype(float)
    OpponentModel.of_abstract(abstract, "Ann", counts).save(folder / "ann")
    OpponentModel.of_abstract(abstract, "Ann", 0 * counts).save(folder / "empty")
    OpponentModel.of_tree(tree_of("kuhn"), "Ann", np.ones(24)).save(folder / "kuhn")
    return folder


@pytest.mark.parametrize("way", [("--p", "0.8"), ("--p", "0.8", "--confidence", "s-curve", "-a", "external")])
def test_a_counter_run_is_a_run(place, tmp_path, way):
    """It can be resumed, with the strategy of a run that was not stopped, judged, exported and played."""
    few, many = (("-n", "10"), ("-n", "20")) if "--confidence" not in way else (("-n", "2000"), ("-n", "4000"))
    common = ("counter", str(place / "leduc.toml"), "--model", str(place / "ann"), *way)
    found = answer(*common, *many, "--out", str(tmp_path / "whole"), "--json")
    assert found["exploitation_mbb"] > 0 and found["exploitation_ci95"][0] < found["exploitation_mbb"]
    assert found["algorithm"] == ("rnr:cfr+" if "--confidence" not in way else "dbr:external")
    kilt(*common, *few, "--out", str(tmp_path / "stopped"))
    kilt("solve", "--resume", str(tmp_path / "stopped"), *many)
    first, second = (Blueprint.load(tmp_path / name).shares for name in ("whole", "stopped"))
    assert np.array_equal(first, second)
    again = answer("evaluate", "exploitability", str(tmp_path / "whole"), "--json")
    assert again["exploitability"] == pytest.approx(found["exploitability"])
    kilt("export", str(tmp_path / "whole"), str(tmp_path / "agent"))
    kilt("match", str(tmp_path / "agent"), "random", "--hands", "20")


HANDS = (
    "cc/rc:K{0}|A{1}/A{0}:-5|5:Ann|Bob",
    "rrc/cc:Q{1}|K{0}/K{1}:-5|5:Bob|Ann",
    "rf:A{0}|Q{0}:1|-1:Bob|Ann",
    "cc/cc:K{0}|K{1}/Q{0}:0|0:Ann|Bob",
)


def test_games_as_they_are(tmp_path):
    """Models by vectors of hands are those of flat trees but for suits; runs that answer them can be resumed."""
    log = tmp_path / "hands.log"
    lines = [hand.format(*suits) for hand in HANDS for suits in ("sh", "hs") * 6]  # every hand, and its twin
    log.write_text("".join(f"STATE:{number}:{line}\n" for number, line in enumerate(lines)))
    flat, vectors = tree_of("leduc"), VectorGame(load_game("leduc"))
    observer = VectorObserver(vectors, "Ann")
    observer.add_log(log.read_text(), "hands")
    models = kilt_api.model_opponent(log, "Ann", "leduc"), observer.model()
    assert models[0].counts.sum() == models[1].counts.sum() == models[1].figures["decisions"] == 84
    assert np.array_equal(vectors.pooled(models[1].counts)[flat_places(vectors, flat)], 2 * models[0].counts)
    for model in models:
        against = Against(model, 0.9)
        whole, part = tmp_path / f"whole-{model.counts.ndim}", tmp_path / f"part-{model.counts.ndim}"
        solution = kilt_api.solve("leduc", iterations=12, against=against, folder=whole)
        kilt_api.solve("leduc", iterations=5, against=against, folder=part)
        again = kilt_api.resume_run(part, iterations=12)
        assert again.finish().exploitability == solution.exploitability
        assert np.array_equal(again.table, solution.table)
    out = str(tmp_path / "out")
    found = answer(
        "counter", str(tmp_path / "part-2"), "--model", str(log), "--player", "Ann", "-n", "12", "--out", out, "--json"
    )
    assert found["algorithm"] == "dbr:cfr+" and found["exploitation_ci95"] == [found["exploitation_mbb"]] * 2
    tables = solve_lp(flat.nodes).strategy, models[0].policy()
    assert found["exploitation_mbb"] > 1000 * exploitation(flat, *tables)  # than an equilibrium wins


def test_from_logs_at_once(place, tmp_path):
    """A model that is counted on the way is the one that `kilt model` makes; the run keeps it."""
    log, nash = str(tmp_path / "hands.log"), str(place / "nash")
    kilt("match", nash, "random", "--hands", "100", "--log", log, "--way", "played")
    kilt("counter", nash, "--model", log, "--player", "random", "-n", "3", "--out", str(tmp_path / "answer"))
    kilt("model", log, "--player", "random", "--for", nash, "--out", str(tmp_path / "model"))
    found, wanted = (OpponentModel.load(tmp_path / name).counts for name in ("answer/model", "model"))
    assert found.sum() > 100 and np.array_equal(found, wanted)
    assert "nobody does not play" in refused("counter", nash, "--model", log, "--player", "nobody")


def test_what_cannot_be_answered_is_refused(place, tmp_path):
    config, model, out = str(place / "leduc.toml"), str(place / "ann"), str(tmp_path / "out")
    for said, *asked in (
        ("p is 1.5: use a probability, from 0 to 1", "--model", model, "--p", "1.5"),
        ("P_max is -1", "--model", model, "--p=-1", "--confidence", "1-step"),
        ("unknown confidence function 'much'", "--model", model, "--confidence", "much"),
        ("--p has a number twice", "--model", model, "--p", "0.5", "--p", "0.5"),
        ("the model of Ann has no observations", "--model", str(place / "empty")),
        ("build the model for the same game", "--model", str(place / "kuhn")),
        ("unknown algorithm 'dbr:lp': after dbr: comes one of cfr, cfr+, linear", "--model", model, "-a", "lp"),
        ("nothing", "--model", str(place / "nothing")),
        ("give --model MODEL, or --model LOG and --player NAME",),
        ("leave out --player", "--model", model, "--player", "Ann"),
        ("give --player with logs", "--model", config),
    ):
        found = refused("counter", config, *asked, "--out", out)
        assert said in found
        assert not (tmp_path / "out").exists()
    assert "give `model` in [counter]" in refused("solve", config, "--algorithm", "dbr", "--out", out)
    assert "give the problem `against`" in refused("solve", "leduc", "--algorithm", "rnr")
    assert not (tmp_path / "out").exists()
