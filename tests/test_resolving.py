"""Re-solving: what an opponent's hands win in a subgame that was solved anew, and what whole strategies lose by it."""

import re

import numpy as np
import pytest

import naive
from commands import answer
from kilt.abstraction.actions import actions_of
from kilt.config import RESOLVE_METHODS
from kilt.errors import GameError
from kilt.games import load_game
from kilt.games.subgame import cut_after_first_round, subgame
from kilt.play.agent import PublicPolicy
from kilt.search.continuations import BlueprintContinuations
from kilt.solve.cfr import Cfr
from kilt.solve.learning_kernels import RootChoice, begin_game, learn_root
from kilt.solve.resolve import resolve, with_depth_limit
from kilt.solve.tables.memory import TreeTables
from kilt.tree.navigation import NavigableTree
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, RESPOND
from kilt_lab.pieces.resolving import CASES, KnownStrategy, PureContinuations, Solved, after, events, subgames

LEDUC = load_game("leduc")
HANDS = [hand for hand in range(6) if hand != 3]  # all but the card on the board


def resolved(values, method, player=0, **options):
    given = {"iterations": 1000, **options}
    return resolve(LEDUC, LEDUC.replay("cc/"), "Ks", player, np.ones((2, 6)), values, method=method, **given)


@pytest.mark.parametrize("player", [0, 1])
def test_no_hand_wins_more_where_that_can_be_helped(player):
    """What an equilibrium leaves to the opponent is feasible, and so is more: max-margin makes the most of it."""
    fair = np.zeros(6)
    fair[HANDS] = -resolved(None, "unsafe", player).margins()
    values = fair + np.array([0.1, 0.1, 0.5, 0.0, 0.05, 0.05])
    gadget, even = (resolved(values, method, player).margins() for method in ("gadget", "max-margin"))
    assert gadget.min() > -2e-3
    assert even.min() > 0.05
    assert even.min() >= gadget.min() - 2e-3


def test_threads_and_budgets():
    """Iterations alone decide what comes out, and a budget of seconds does at least one."""
    values = np.linspace(-1, 1, 6)
    raised = LEDUC, LEDUC.replay("r"), "", 1, np.ones((2, 6)), values
    once, again, threads = (resolve(*raised, iterations=20, threads=number, dtype=np.float64) for number in (1, 1, 2))
    np.testing.assert_array_equal(once.table, again.table)
    np.testing.assert_allclose(once.table, threads.table, rtol=1e-9, atol=1e-12)
    assert resolved(values, "gadget", iterations=None).iterations == 100
    assert resolved(values, "gadget", iterations=None, seconds=1e-9).iterations == 1
    assert resolved(values, "gadget", iterations=7, seconds=60.0).iterations == 7


def test_a_good_start_saves_iterations():
    """Few iterations from the strategy of many lose less than from nothing, in one round and in several."""
    game, random = load_game("holdem.nolimit.2p.50bb"), np.random.default_rng(1)
    ranges = random.random((2, 1326)) * (random.random((2, 1326)) < 0.1)
    for history, board in (("cr300c/cc/", "Qs7c8d8h"), ("cr300c/cc/cc/", "Qs7c8d8h2c")):
        given = game, game.replay(history), board, 0, ranges
        options = {"method": "unsafe", "menu": actions_of("1x, a")}
        known = resolve(*given, **options, iterations=200)
        tree = NavigableTree(known.game)

        def shares(position, actions, tree=tree, known=known):
            place = tree.start
            for label in re.findall(r"r\d+|c", position.history):
                place = tree.act(place, label)
            assert actions == tree.actions(place)
            found = np.zeros((len(actions), 1326))
            found[:, tree.holdem.numbers] = tree.strategy(known.table, place)
            return found

        cold, warm = (resolve(*given, **options, iterations=6, start=start) for start in (None, shares))
        assert warm.game.exploitability(warm.table) < 0.6 * cold.game.exploitability(cold.table)


def test_hands_may_be_neglected():
    """Those that are hardly ever held make the subgame smaller; without them the others are held to the same values."""
    ranges, values = np.ones((2, 6)), np.array([-0.4, -0.4, 1.6, 0, 0.3, 0.3])
    ranges[:, 2], ranges[0, 0] = 1e-4, 0.0
    all_of_them, fewer = (
        resolve(LEDUC, LEDUC.replay("cc/"), "Ks", 0, ranges, values, iterations=300, neglect=share)
        for share in (0.0, 1e-3)
    )
    assert all_of_them.game.game.numbers.tolist() == HANDS
    assert fewer.game.game.weights.tolist() == [[0, 1, 1e-4, 1, 1], [1, 1, 0, 1, 1]]
    assert fewer.margins()[[0, 1, 3, 4]].min() >= all_of_them.margins().min() - 5e-3


def test_what_was_chosen_is_kept():
    """A solver that was interrupted goes on with the choice before the game as it was."""
    game = VectorGame(LEDUC)

    def solver():
        root = RootChoice(1, False, np.ones(6), np.zeros(6), np.linspace(-4, 4, 6), np.zeros((2, 6)))
        return Cfr(TreeTables(game, root=root))

    whole, first, rest = solver(), solver(), solver()
    whole.step(8)
    first.step(5)
    rest.restore(first.state())
    rest.step(3)
    np.testing.assert_array_equal(rest.average(), whole.average())
    np.testing.assert_array_equal(rest.tables.root_regret, whole.tables.root_regret)
    assert game.tree.prior.tolist() == np.ones((2, 6)).tolist()  # the game itself stays as it was


def test_trust_lies_between_safe_and_unsafe():
    """With all of it, what hands win is what they win by the unsafe way; with none, no hand gains."""
    values, ranges = np.zeros(6), np.ones((2, 6))
    ranges[1, :2] = 0.01
    values[HANDS] = -resolved(None, "unsafe").margins()
    here = LEDUC, LEDUC.replay("cc/"), "Ks", 0, ranges
    safe, whole = (-resolve(*here, values, trust=trust, iterations=1000).margins() for trust in (0.0, 1.0))
    unsafe = -resolve(*here, method="unsafe", iterations=1000).margins()
    assert safe.max() < 2e-3 and whole.max() > 0.2
    np.testing.assert_allclose(whole + values[HANDS], unsafe, atol=2e-3)
    assert ranges[1, HANDS] @ (whole - safe) < -0.1
    with pytest.raises(GameError, match=r"`trust` in the opponent's range is 1.5: use 0 to 1"):
        resolve(*here, values, trust=1.5)


@pytest.mark.parametrize("method", [*RESOLVE_METHODS[1:], "nonsense"])
def test_what_cannot_be_is_said(method):
    with pytest.raises(GameError, match=r"needs the values of each of the opponent's 6 hands|use one of unsafe"):
        resolved([1.0, np.nan], method)


@pytest.mark.parametrize("joint", [False, True])
def test_choices_are_learnt_as_regret_matching_says(joint):
    rng = np.random.default_rng(5)
    weight, least = np.array([1.0, 0.5, 0.0, 2.0]), np.array([0.0, 0.3, 0.0, 1.0])
    root = RootChoice(1, joint, weight, least, rng.normal(size=4), np.zeros((2, 4)))
    prior, regret = np.zeros((2, 4)), np.zeros((2, 4))
    begin_game(root, prior)
    for _ in range(5):
        result, share = rng.normal(size=4), naive.shares_of_choice(regret, weight, joint)
        share = share if joint else least + (1 - least) * share
        np.testing.assert_allclose(prior, [np.zeros(4), share * weight])
        learn_root(root, result, Discount(0.9, 0.5, 1.0, 2.0, 1.0, False), prior)
        gained = (result - root.value) * (1 if joint else 1 - least)  # where there is a choice
        regret = naive.regret_of_choice(regret, weight, joint, gained, 2.0, 0.9, 0.5)
        np.testing.assert_allclose(root.regret, regret)


@pytest.mark.parametrize(
    ("name", "iterations"), [("two rounds, rough", 100), ("two rounds, solved", 300), ("three rounds, rough", 60)]
)
def test_safe_re_solving_of_every_subgame_is_no_worse_than_the_blueprint(name, iterations):
    """Nor is a blueprint that is an equilibrium safe from those who take its ranges for granted."""
    case = CASES[name]
    blueprint = case.blueprint()
    before, _ = case.judge(blueprint, "blueprint")
    for method in ("gadget", "max-margin"):
        found, excess = case.judge(blueprint, method, iterations)
        assert found <= before + excess + 1e-9
        assert excess < 0.01  # of a chip; the error of the iterations
        assert found < (0.95 * before if name.endswith("rough") else 0.01)
    if name == "two rounds, solved":
        assert before < 3e-4
        assert case.judge(blueprint, "unsafe", iterations)[0] > 0.05


def test_nested_re_solving_beats_translation():
    """Bets that a blueprint does not have, in the game that has them. What is lost is bounded by what hands gain."""
    case = CASES["other bets"]
    blueprint = case.blueprint()
    alone = blueprint.tree.game.exploitability(blueprint.table)
    translated, _ = case.judge(blueprint, "translated")
    for method in ("gadget", "max-margin"):
        found, excess = case.judge(blueprint, method, 50)
        assert alone < found < translated / 2
        assert found <= alone + excess + 1e-9


def test_a_row_of_the_reproduction(tmp_path):
    (row,) = answer("reproduce", "resolving", "--only", "other bets: translated", "--out", tmp_path / "cells")["rows"]
    assert row["ours"] == pytest.approx(27.45, abs=0.1)
    assert row["unit"] == "mbb/g"


def of_biased(blueprint, way, player):
    """A blueprint with a player biased in the second round as a continuation is, decision by decision."""
    found = Solved(blueprint.tree, blueprint.table.copy())
    for place in subgames(blueprint.tree, 1):
        below = [place]
        while below:
            at = below.pop()
            below += [after(found.tree, at, event) for event in events(found.tree, at)]
            if at.position.actor == player:
                shares = blueprint.read(at)
                ten = {one: share * (10 if way and one[0] == "-fcr"[way] else 1) for one, share in shares.items()}
                whole = sum(ten.values())
                found.write(at, {one: share / np.where(whole > 0, whole, 1) for one, share in ten.items()})
    return found


def test_ends_of_a_round_are_worth_what_the_rest_of_the_game_is():
    """With each continuation, and with boards that are drawn where all hands are played alike."""
    blueprint = CASES["first of two rounds, rough"].blueprint()
    whole, game = blueprint.tree.game, blueprint.tree.holdem
    root = subgame(game, game.start(), "", np.ones((2, 6)))
    for chooser in (0, 1):
        continued = BlueprintContinuations(game, "", chooser, KnownStrategy(blueprint))
        limited = VectorGame(with_depth_limit(root, None, continued))
        nodes, table = limited.tree.nodes, limited.table()
        chosen = set(nodes.row[(nodes.kind == DECISION) & (nodes.actor == chooser)].tolist())
        for r, row, position in whole.decisions():
            if r == 0:
                (here,) = [at for _, at, other in limited.decisions() if other.history == position.history]
                actions = len(position.actions())
                table[here : here + actions] = blueprint.table[row : row + actions]
                chosen.discard(here)
        assert len(chosen) == 5  # how the first round may end without a fold
        for way in range(4):
            for row in chosen:
                table[row : row + 4] = np.eye(4)[:, [way]]
            expected = whole.expected_values(whole.symmetrise(of_biased(blueprint, way, chooser).table))
            assert limited.expected_values(table) == pytest.approx(expected, abs=1e-6)

    class Caller:
        def table(self, position):
            return ("c",), np.ones((1, 1))

        def policies(self, position, boards):
            return [PublicPolicy(*self.table(position), np.zeros(6, dtype=int)) for _ in boards]

    few, every = (
        BlueprintContinuations(game, "", 0, Caller(), 2, boards)(cut_after_first_round(root), [game.replay("cc")])
        for boards in (3, 0)
    )
    np.testing.assert_allclose(few.values, every.values, atol=1e-6)


def test_a_choice_of_continuations_keeps_depth_limits_from_being_exploited():
    case = CASES["first of two rounds, solved"]
    blueprint = case.blueprint()
    before, one, four = (case.judge(blueprint, way, 200)[0] for way in case.ways)
    assert four < before + 0.01 and one > 0.3


def test_a_choice_of_all_continuations_leaves_a_best_response_what_it_wins_without_a_limit():
    blueprint = CASES["second of three rounds, rough"].blueprint()
    tree, place = blueprint.tree, next(subgames(blueprint.tree, 1))
    state = blueprint.state(place)
    rest = subgame(tree.holdem, place.position, place.board, state.ranges)
    for chooser in (0, 1):
        every = PureContinuations(tree.holdem, place.position.history, chooser, KnownStrategy(blueprint), 256)
        limited = VectorGame(with_depth_limit(rest, None, every))
        rows, table, below = {at.history: row for _, row, at in limited.decisions()}, limited.table(), [place]
        while below:
            at = below.pop()
            if at.position.round == 1 and at.position.actor >= 0:
                below += [after(tree, at, event) for event in events(tree, at)]
                if at.position.actor != chooser:
                    shares = np.stack(list(blueprint.read(at).values()))[:, rest.numbers]
                    row = rows[at.position.history.removeprefix(place.position.history)]
                    table[row : row + len(shares)] = shares
        found = limited.hand_values(chooser, RESPOND, table)
        np.testing.assert_allclose(found, state.values[chooser, rest.numbers], atol=1e-6)
