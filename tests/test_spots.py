"""Spots: subgames from a public state, against whole games, linear programmes and naive evaluation."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

import kilt as kilt_api
from commands import answer, kilt, refused
from kilt.cards.deck import FULL
from kilt.errors import GameError, KiltError, RunError
from kilt.games import load_game
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.games.subgame import subgame
from kilt.runs.folder import RunFolder
from kilt.solve.cfr import Cfr
from kilt.solve.lp import solve_lp
from kilt.solve.tables.memory import TreeTables
from kilt.solve.tables.two_bytes_kernels import PackedDecisions, read_entries, write_entries
from kilt.spots.line import UNIT, word_of
from kilt.spots.run_spec import SUPPORTED
from kilt.spots.saved import open_spot, read_spot
from kilt.spots.solving import BOARD_SECONDS, SpotBudget, cost_of, solution_of
from kilt.spots.specs import spec_for
from kilt.spots.spot import Spot
from kilt.spots.spot_tree import SpotTree
from kilt.tree import vector
from kilt.tree.flat import flat_tree
from kilt.tree.navigation import NavigableTree
from kilt.tree.strength_order import rows_of_players
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import ArrangedTable
from oracles import Deal, OpenSpielTable

TINY = """GAMEDEF
{betting}
numPlayers = 2
numRounds = 3
stack = 40 40
blind = 2 2
firstPlayer = 1 1 1
maxRaises = 1 1 1
numSuits = {suits}
numRanks = {ranks}
numHoleCards = 2
numBoardCards = 0 1 1
END GAMEDEF
"""


def tiny(suits=2, ranks=3, betting="limit\nraiseSize = 2 2 4"):
    return Holdem(GameDef.parse(TINY.format(suits=suits, ranks=ranks, betting=betting)), "tiny")


def solved(game, menu=None, iterations=1500):
    solver = Cfr(TreeTables(VectorGame(game, menu)))
    solver.step(iterations)
    return solver


def short_menu(position):
    """Two bets, the second of them all-in."""
    bounds = position.raise_bounds()
    return {} if bounds is None else {bounds[0], bounds[1]}


def whole(game):
    """A game as a spot: all of it, with all hands in both ranges."""
    return subgame(game, game.start(), (), np.ones_like(game.weights))


@pytest.mark.parametrize(
    ("game", "menu"),
    [
        (load_game("leduc"), None),
        (tiny(), None),
        (tiny(betting="nolimit"), short_menu),
    ],
    ids=["leduc", "three rounds", "no-limit"],
)
def test_a_spot_at_the_root_is_the_game(game, menu):
    """With all hands in both ranges, the solver finds the same table."""
    start = whole(game)
    found, part = solved(game, menu, 20), solved(start, menu, 20)
    np.testing.assert_array_equal(part.average(), found.average())
    first, second = (one.tables.game.expected_value(one.average()) for one in (part, found))
    assert first == second


def test_a_spot_at_the_root_is_two_round_holdem():
    """The same on [2-1] hold'em, whose flops are drawn: the regrets of all hands are the same numbers."""
    game = load_game("holdem.2-1")
    solvers = [
        Cfr(TreeTables(VectorGame(one), np.float32, scheme="pcs", averaging=False)) for one in (game, whole(game))
    ]
    for solver in solvers:
        solver.step(30)
    np.testing.assert_array_equal(*(solver.tables.regret for solver in solvers))


@pytest.mark.parametrize(
    ("game", "history", "board"),
    [
        (load_game("leduc"), "rc/", "Ks"),
        (load_game("leduc"), "cr", ""),
        (tiny(), "cc/", "As"),
        (tiny(), "cc/rc/", "AsKh"),
        (tiny(), "cc/cr", "Kh"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_spots_are_worth_what_the_linear_programme_says(game, history, board):
    rng = np.random.default_rng(3)
    weights = rng.random(game.weights.shape) * (rng.random(game.weights.shape) < 0.7)
    spot = subgame(game, game.replay(history), board, weights)
    exact = solve_lp(flat_tree(spot).nodes)
    solver = solved(spot)
    assert solver.tables.game.expected_value(solver.average()) == pytest.approx(exact.value, abs=2e-3)
    first, second = solver.tables.game.response_values(solver.average())
    assert -second - 1e-9 <= exact.value <= first + 1e-9
    assert solver.tables.game.exploitability(solver.average()) < 2e-3


def spiel_values(tree, place, table, states, reach, player, respond):
    """[hand] what a player wins against the opponent's reach, by the states of open_spiel for each pair of hands."""
    hands, position = len(reach), place.position
    value = np.zeros(hands)
    one = next(iter(states.values()))
    if one.is_terminal():
        for pair, state in states.items():
            value[pair[player]] += reach[pair[1 - player]] * state.returns()[player]
    elif one.is_chance_node():
        for card in {card for state in states.values() for card in state.legal_actions()}:
            dealt = {pair: state.child(card) for pair, state in states.items() if card in state.legal_actions()}
            after = tree.deal(place, (card,))
            value += spiel_values(tree, after, table, dealt, reach, player, respond) / len(one.legal_actions())
    else:
        assert one.current_player() == position.actor
        mine, actions, shares = position.actor == player, tree.actions(place), tree.strategy(table, place)
        values = []
        for action, share in zip(actions, shares, strict=True):
            number = "fc".index(action) if action in "fc" else int(action[1:])
            after = {pair: state.child(number) for pair, state in states.items()}
            coming = reach if mine else reach * share
            values.append(spiel_values(tree, tree.act(place, action), table, after, coming, player, respond))
        best = np.max(values, axis=0) if respond else np.sum(shares * values, axis=0)
        value = best if mine else np.sum(values, axis=0)
    return value


def test_solved_spots_are_worth_what_open_spiel_says():
    """Both players' values and best responses, walked on the states of universal_poker: a small deck, two rounds."""
    game = tiny(betting="nolimit")
    weights = np.random.default_rng(4).random(game.weights.shape)
    spot = subgame(game, game.replay("cc/"), "Ks", weights)
    solver = solved(spot, short_menu, 100)
    tree, table, holes = NavigableTree(solver.tables.game), solver.average(), spot.holes
    dealer = OpenSpielTable(game.rules)
    states = {}
    for first, second in itertools.permutations(range(len(holes)), 2):
        if not set(holes[first]) & set(holes[second]):
            hand = dealer(Deal((tuple(holes[first]), tuple(holes[second])), spot.board))
            hand.act("c")
            hand.act("c")
            states[first, second] = hand.state
    walked = solver.tables.game
    for respond, found in ((False, walked.expected_values(table)), (True, walked.response_values(table))):
        for player in (0, 1):
            values = spiel_values(tree, tree.start, table, states, spot.weights[1 - player], player, respond)
            assert walked.tree.norm * values @ spot.weights[player] == pytest.approx(found[player], abs=1e-9)


def test_hands_of_ranges_are_not_drawn_as_if_they_were_alike():
    weights = np.full((2, 6), 0.5)
    spot = VectorGame(subgame(load_game("leduc"), load_game("leduc").start(), "", weights))
    with pytest.raises(KiltError, match="has ranges"):
        Cfr(TreeTables(spot, scheme="cs")).step(1)


@pytest.mark.parametrize("rake", [0.0, 5.0])
def test_tables_are_judged_in_the_order_that_they_are_in(rake, monkeypatch):
    """On one thread or in shares of two, by strength or by hand; hands that a player may not hold have no regrets."""
    spot = Spot("QsJh2h7d", 6, ("QQ+,AKs,JTs:0.5", "JJ-99,AQ"), 6, bets="50%, a; a", rake=rake)
    one, two = (Cfr(TreeTables(spot.tree(threads)), "dcfr+") for threads in (1, 2))
    monkeypatch.setattr(vector, "LARGE", 0)
    for solver in (one, two):
        solver.step(5)
        tables, game = solver.tables, solver.tables.game
        stored = tables.stored_average()
        assert isinstance(stored, ArrangedTable)
        found, whole = game.exploitability(stored), game.on_host(stored)
        assert found == pytest.approx(game.exploitability(solver.average()), rel=1e-12)
        np.testing.assert_array_equal(whole, tables.stored_average())  # by hand now
        river = solver.tables.regret[game.tree.table_start[-2] :].reshape(-1, int(game.tree.rows[-1]), game.shape[1])
        for rows, held in zip(rows_of_players(game.tree), game.tree.held, strict=True):
            assert not river[:, rows][:, :, ~held].any() and river[:, rows].any()
    np.testing.assert_allclose(one.average(), two.average(), rtol=1e-9, atol=1e-12)


def test_suits_that_neither_board_nor_ranges_tell_apart_are_one():
    """Symmetric ranges have fewer boards than lopsided ones, and the value of the flat tree, which knows no suits."""
    game = tiny(suits=3)
    deck, at = game.deck, game.replay("cc/")
    even = np.stack([deck.range("AK,QQ"), deck.range("KQ,AA,KK:0.5")])
    odd = even.copy()
    odd[0, deck.hole_index(deck.cards("AdKd"))] = 0.5
    for weights, boards in ((even, 5), (odd, 8)):
        spot = subgame(game, at, "Ks", weights)
        solver = solved(spot)
        assert len(solver.tables.game.tree.weight) == 1 + boards
        value = solve_lp(flat_tree(spot).nodes).value
        first, second = solver.tables.game.response_values(solver.average())
        assert -second - 1e-9 <= value <= first + 1e-9
        assert first + second < 4e-3


@pytest.fixture(scope="module")
def solution(tmp_path_factory):
    """A spot of a small no-limit game with a card to come, half solved."""
    folder = tmp_path_factory.mktemp("spot")
    (folder / "tiny.game").write_text(TINY.format(suits=3, ranks=4, betting="nolimit"))
    spot = Spot(
        board="Ks",
        pot=4,
        stacks=9,
        ranges=("AA,QJs:0.5", "KQs,QQ:0.25"),
        bets=("50%, a", "1x / a"),
        game=str(folder / "tiny.game"),
        rake=5,
        rake_cap=0.4,
    )
    found = spot.solve(iterations=30, folder=folder / "kept")
    return spot, found, folder / "kept"


def naive_value(solution, line, position, hands, board):
    """Chips of both players at the end, by the strategies that the solution tells along the way."""
    game = solution.subgame
    if position.actor == TERMINAL:
        return np.array(game.payoffs(position, hands, board[len(game.board) :]))
    if position.actor == CHANCE:
        held = {*game.holes[hands[0]].tolist(), *game.holes[hands[1]].tolist(), *board}
        rest = [card for card in range(game.deck.size) if card not in held]
        after = position.after("/")
        return np.mean(
            [naive_value(solution, f"{line} / {game.deck.names[card]}", after, hands, (*board, card)) for card in rest],
            axis=0,
        )
    node = look(solution, line)
    chance = node[game.hands(0)[hands[position.actor]]]
    labels = [label for label in position.actions() if label in ("f", "c")]
    labels += [f"r{to}" for to in sorted(solution.game.menu(position))]
    values = [
        share * naive_value(solution, f"{line} {word}", position.after(label), hands, board)
        for (word, share), label in zip(chance.items(), labels, strict=True)
        if share > 0
    ]
    return np.sum(values, axis=0)


KNOWN = {}


def look(solution, line):
    if line not in KNOWN:
        KNOWN[line] = solution.at(line)
    return KNOWN[line]


@pytest.mark.parametrize("line", ["", "b2 c / Jd"])
def test_values_of_hands_are_those_of_playing_them_out(solution, line):
    _, found, _ = solution
    KNOWN.clear()
    game, node = found.subgame, found.at(line)
    position, board = game.start(), game.board
    for word in line.split():
        if word in ("/", "Jd"):
            position = position.after("/") if word == "/" else position
            board = (*board, *game.deck.cards(word)) if word == "Jd" else board
        else:
            position = position.after({"b2": f"r{4 * UNIT}", "c": "c"}[word])
    numbers = {name: hand for hand, name in enumerate(game.hands(0))}
    hands = [numbers[name[2:] + name[:2]] for name in node.hands]  # the higher card comes first there
    weight, total = np.zeros((2, len(hands))), np.zeros((2, len(hands)))
    for (i, mine), (j, theirs) in itertools.product(enumerate(hands), repeat=2):
        if set(game.holes[mine]) & set(game.holes[theirs]) or not (node.reach[0, i] and node.reach[1, j]):
            continue
        worth = naive_value(found, line, position, (mine, theirs), board) + position.spent
        for player, hand, rival in ((0, i, node.reach[1, j]), (1, j, node.reach[0, i])):
            weight[player, hand] += rival
            total[player, hand] += rival * worth[player] / UNIT
    seen = weight > 0
    np.testing.assert_allclose(node.ev[seen], total[seen] / weight[seen], atol=1e-5)
    mine = node.ev[node.actor]
    held = node.reach[node.actor] > 0
    np.testing.assert_allclose((node.strategy * node.action_ev).sum(axis=1)[held], mine[held], atol=1e-5)


def test_boards_that_were_renamed_show_the_hands_that_were_asked_for(solution):
    """The two red jacks are alike: what a hand does on one, its image does on the other."""
    _, found, _ = solution
    hearts, diamonds = found.at("x x / Jh"), found.at("x x / Jd")
    swap = str.maketrans("hd", "dh")
    for hand in hearts.hands:
        assert diamonds[hand.translate(swap)] == hearts[hand]
    rows = found.next_cards("x x")
    assert sum(row.alike for row in rows) == 11  # all cards but the one on the board: what hands hold is not known
    means = sum(row.chance * np.array(row.node.mean(row.node.ev)) for row in rows)
    assert 4 * 0.9 < means.sum() < 4  # no chips were put in; the house takes 5%, and 0.4 chips at most


def test_solutions_are_kept(solution):
    spot, found, folder = solution
    again, kept = open_spot(folder)
    assert again == spot
    np.testing.assert_array_equal(kept.table, found.table)
    assert kept.exploitability == found.exploitability > 0
    assert spot.pot - 0.4 <= sum(kept.values) <= 0.95 * spot.pot  # the house has its share
    assert kept.exploitability_percent == pytest.approx(100 * found.exploitability / 4)


def test_numbers_in_fixed_point_are_rounded_to_their_largest():
    """What is read is what was written but for a part in 2^15 of a decision's largest number, and right on average."""
    first, actor = np.array([1, 3, 4, 7]), np.array([0, 1, 0], np.int8)
    width, column = np.full(3, 400, np.int32), np.zeros(3, np.int64)
    hands = np.arange(400, dtype=np.uint16)[::-1].copy()
    decisions = PackedDecisions(400 * first[:-1], 400 * first[1:], width, column, hands, actor)
    table = np.random.default_rng(0).random((7, 400), np.float32) * np.float32([[0], [3e9], [1], [5], [0], [0], [1e-9]])
    entries, powers, found = np.zeros(7 * 400, np.uint16), np.zeros(3, np.uint8), np.full_like(table, 7)
    draws = np.random.default_rng(1).random(9000, np.float32)
    numbers = table.reshape(-1)
    write_entries(numbers, numbers.view(np.int32), decisions, 0, 5, draws, 8600, entries, powers)
    read_entries(entries, powers, decisions, 0, found.reshape(-1))
    assert (found[[0, 3]] == 7).all()  # the first round, and the other player's decision
    for rows in (slice(1, 3), slice(4, 7)):
        error = (found - table)[rows] / table[rows].max()
        assert abs(error).max() < 2**-15
        assert abs(error).max(axis=1)[-1] > 0
        assert abs(error.mean()) < 2**-18


def test_compact_tables(solution, tmp_path):
    """They solve a spot in half the memory, the same on any threads; kept and gone on with, and locks stay exact."""
    spot = replace(solution[0], compact=True, rake=0.0, locks="x x / * = x: rest")
    plain = replace(spot, compact=False)
    assert (plain.toml(), spot.toml()) == (plain.toml(), plain.toml() + "compact = true\n")
    done = spot.solve(0.2)
    assert done.exploitability_percent <= 0.2
    assert done.values == pytest.approx(plain.solve(0.2).values, abs=0.004 * spot.pot)
    tree = spot.tree()
    assert cost_of(tree, compact=True).memory < cost_of(tree, compact=True, kept=True).memory
    assert cost_of(tree, compact=True).memory < cost_of(tree, kept=True).memory
    spot.solve(iterations=5, folder=tmp_path / "kept")
    more = spot.begin(SpotBudget(iterations=9), begun=RunFolder.open(tmp_path / "kept"))
    more.finish()
    table = spot.solve(iterations=9, threads=2).table
    more_found = solution_of(more, ())
    np.testing.assert_array_equal(more_found.table, table)
    kept = open_spot(tmp_path / "kept")[1]
    np.testing.assert_array_equal(kept.table, table)
    for line in ("", "x", "b50%", "x x / Qh", "x x / Qh x"):  # from the solver's table, and from the file
        here, there = more_found.at(line), kept.at(line)
        held = spot.subgame.weights[here.actor][np.isin(spot.subgame.numbers, here.numbers)] > 0
        for name in ("reach", "ev"):
            np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-9, atol=1e-12, err_msg=line)
        for name in ("strategy", "action_ev"):
            one, other = getattr(here, name)[held], getattr(there, name)[held]
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=line)
    for row, strategy in tree.given.items():
        np.testing.assert_array_equal(table[row : row + len(strategy)], strategy.astype(np.float32))


def test_limit_games_have_spots():
    """A river of limit hold'em: bets are one big bet, and the pot counts."""
    ranges = FULL.range("AK,QQ:0.25"), "KK,98s,65s"
    spot = Spot(board="QsJh2hTc7d", pot=8, ranges=ranges, game="holdem.limit.2p")
    assert spot == Spot(board="QsJh2hTc7d", pot=8, ranges=spot.ranges, game="holdem.limit.2p")
    with pytest.raises(RunError, match="raises of a limit game have one size: leave out `bets`"):
        replace(spot, bets="50%")
    assert sorted(spot.subgame.weights[0])[::-1] == [1.0] * 16 + [0.25] * 3 + [0.0] * 14
    found = spot.solve(iterations=50)
    assert found.at().actions == ("x", "b")
    assert found.at("b r r r").actions == ("f", "c")
    assert found.at("b r").pot == 8 + 2 + 4


GOOD = {"board": "QsJh2h7d3c", "pot": 6, "stacks": 30, "ranges": ("QQ+,AKs", "JJ,AQ"), "bets": "50%, a; a"}


def test_a_locked_decision_stays_as_it_is():
    """Against one who folds to every bet, all that is needed is to bet; where only some fold, bets are fewer."""
    folds = Spot(**GOOD, locks=("b50% = f: rest", "a = f: rest")).solve(0.1)
    assert folds.values == pytest.approx((6, 0), abs=0.01)
    assert folds.at("b3").frequencies == pytest.approx([1, 0, 0])
    half = Spot(**GOOD, locks="b3 = f: AQ; c: AQo:0.5, JsJd:0.25; a: rest").solve(0.5)
    assert half.at("b3")["JsJc"] == {"f": 0, "c": 0, "a": 1}
    assert half.at("b3")["JsJd"] == pytest.approx({"f": 0, "c": 0.25, "a": 0.75})
    assert half.at("b3")["AsQc"] == pytest.approx({"f": 2 / 3, "c": 1 / 3, "a": 0})
    assert half.exploitability_percent <= 0.5


def test_rake_is_taken_from_whoever_wins():
    """Both have less than the pot, and the solver still finds strategies that neither can improve on."""
    free, raked = Spot(**GOOD).solve(0.5), Spot(**GOOD, rake=5, rake_cap=0.5).solve(0.5)
    assert sum(free.values) == pytest.approx(6)
    assert 5.5 <= sum(raked.values) < 0.951 * 6
    assert raked.exploitability_percent <= 0.5


def test_a_lock_may_be_about_all_cards(solution):
    spot, _, _ = solution
    found = replace(spot, locks=("x x / * = a: rest", "x x / Jh a = f: rest")).solve(iterations=2)
    for row in found.next_cards("x x"):
        assert row.node.frequencies == pytest.approx([0, 0, 1])
    assert found.at("x x / Jh a").frequencies == pytest.approx([1, 0])
    assert found.at("x x / Jd a").frequencies[0] < 1


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        ("b3", "cannot be read"),
        ("b3 = f: ZZ", "not a hand"),
        ("b4 = f: rest", "'b4' is not possible here"),
        ("x x = f: rest", "no player has a decision"),
        ("b3 = r9: rest", "'r9' is not possible here"),
        ("b3 = f: JJ", "does not cover"),
        ("x x / 7h = x: rest", "a / where the hand is over"),
        ("x / 7h = x: rest", "a / where a round is not over"),
        ("b3 = f: JJ; f: JJ:0.5; c: rest", "'f' names an action a second time: give each action all its hands"),
        ("b3 = f: 22-66,JJ; c: rest", "player 2 holds no 22-66: name hands of the player's range"),
        (" = b3: QQ+; x: rest; b50%: QQ+:0.2", "'b50%' names an action a second time"),  # which is b3
    ],
)
def test_locks_that_cannot_be_are_refused(lock, said):
    with pytest.raises(KiltError, match=said):
        Spot(**GOOD, locks=lock).tree()


def test_locks_that_contradict_each_other_are_refused():
    """Whatever words lead to the decision; the same strategy twice is one lock."""
    same = ("b3 = f: JJ; c: rest", "b50% = c: AQ; f: rest")  # player 2 has jacks and AQ
    once, twice = (Spot(**GOOD, locks=locks).tree().given for locks in (same[:1], same))
    assert once.keys() == twice.keys()
    pair = (same[0], "b50% = f: rest")
    with pytest.raises(RunError, match="'b3 = f: JJ; c: rest' and 'b50% = f: rest' give different strategies"):
        Spot(**GOOD, locks=pair).tree()
    turn = Spot(**(GOOD | {"board": "QsJh2h7d"}), locks=("x x / * = x: rest", "x x / 3c = a: rest"))
    with pytest.raises(RunError, match="different strategies"):
        turn.solve()
    with pytest.raises(RunError, match=r"the lock 'x = x: QQ,QQ:0\.5; a: rest': 'QQ:0\.5' gives QdQc"):
        Spot(**GOOD, locks="x = x: QQ,QQ:0.5; a: rest")


def words_at(spot, line=""):
    """The actions of a spot's tree after a line."""
    tree = SpotTree(spot.tree())
    place = tree.find_position(line)
    return [word_of(place.position, label) for label in tree.actions(place)]


def test_the_all_in_threshold_leaves_the_pot_out():
    """A bet of 15 of 25 chips is 60% of what is left; half the pot is no stack."""
    spot = Spot(**(GOOD | {"pot": 30, "stacks": 25, "bets": "50%"}))
    assert words_at(spot) == ["x", "b15"]
    assert words_at(replace(spot, all_in_threshold=0.61)) == ["x", "b15"]
    assert words_at(replace(spot, all_in_threshold=0.6)) == ["x", "a"]  # at least that share
    assert words_at(replace(spot, all_in_threshold=1.0), "b15") == ["f", "c", "a"]
    turn = Spot(**(GOOD | {"board": "QsJh2h7d", "stacks": 20, "bets": "50%"}))
    assert words_at(turn, "b3 c / 3c") == ["x", "b6"]  # 6 of the 17 that are left, though 9 of 20 are in
    assert words_at(replace(turn, all_in_threshold=0.4), "b3 c / 3c") == ["x", "b6"]
    assert words_at(replace(turn, all_in_threshold=0.35), "b3 c / 3c") == ["x", "a"]
    for share in (0, 1.01, float("nan")):
        with pytest.raises(RunError, match="all_in_threshold"):
            replace(spot, all_in_threshold=share)
    with pytest.raises(RunError, match="both `near` and `all_in_threshold`"):
        replace(spot, near=0.8, all_in_threshold=0.7)


def test_spots_of_earlier_versions_keep_their_trees(tmp_path):
    """Their files have `near`, a share of half the pot and the stack together; the text is what a run is known by."""
    new = Spot(**(GOOD | {"pot": 30, "stacks": 25, "bets": "50%"}))
    old = new.toml().replace("all_in_threshold = 0.8", "near = 0.75")
    assert old != new.toml() and "near" not in new.toml()
    (tmp_path / "spot.toml").write_text(old)
    spot = read_spot(tmp_path / "spot.toml")
    assert spot.toml() == old
    assert (words_at(new), words_at(spot)) == (["x", "b15"], ["x", "a"])  # 15 + 15 of 25 + 15
    assert words_at(replace(spot, near=0.76)) == ["x", "b15"]
    assert repr(spot.menu) == "ActionAbstraction(text=('///50%',), near=0.75)"  # part of the fingerprint of strategies


def test_stacks_that_are_too_large_are_refused_with_the_name_of_the_file(tmp_path):
    file = tmp_path / "spot.toml"
    file.write_text('board = "QsJh2h"\npot = 6\nstacks = 9e7\nranges = ["QQ+", "TT+"]\nbets = "50%, a"\n')
    with pytest.raises(GameError, match=r"spot\.toml: stack is 18000000600; it may be 0 to 2147483647: check `stack`$"):
        read_spot(file)


def test_commands(solution, tmp_path, monkeypatch):
    """A spot from a file, kept, gone on with, looked at and drawn."""
    monkeypatch.chdir(tmp_path)
    spot, _, folder = solution
    (tmp_path / "spot.toml").write_text(spot.toml())
    new = answer("spot", "solve", "spot.toml", "--iterations", 4, "--out", "kept", "--lock", "x = x: QQ; b4: rest")
    assert (new["iterations"], new["pot"], new["actor"]) == (4, 4, 1)
    assert sum(new["actions"].values()) == pytest.approx(1)
    more = answer("spot", "solve", "kept", "--iterations", 8)
    assert more["exploitability_percent"] < new["exploitability_percent"]
    assert answer("spot", "solve", "kept")["iterations"] == 8  # that was its budget
    assert "player 1 has no hand of QQ at this decision" in refused("spot", "show", "kept", "--range", "QQ")
    assert "none/hands.csv cannot be written" in refused("spot", "show", "kept", "--csv", "none/hands.csv")
    node = answer("spot", "show", "kept", "--line", "x", "--csv", "hands.csv", "--picture", "grid.png")
    assert {row["hand"]: row["strategy"]["x"] for row in node["hands"] if row["player"] == 2}["QhQd"] == 1
    assert (tmp_path / "hands.csv").read_text().startswith("player,hand,weight,equity,ev,x,b4,ev x,ev b4")
    assert (tmp_path / "grid.png").stat().st_size > 1000
    assert "AhAd" in kilt("spot", "show", folder, "--range", "AA").stdout
    assert "Jd" in kilt("spot", "show", folder, "--line", "x x /").stdout
    rows = answer("spot", "show", folder, "--line", "x x /")["cards"]
    assert sum(row["alike"] for row in rows) == 11
    assert "leave out" in refused("spot", "solve", "kept", "--pot", 3)
    assert "spent already" in kilt("spot", "solve", "kept", "--iterations", 8).stderr
    assert "is only a part of a game" in refused("match", "kept", "random")
    assert "is a solved spot" in refused("export", "kept", "copy")
    assert "omit --packed" in refused("export", "kept", "copy", "--packed")
    assert "no picture that can be drawn" in refused("spot", "show", "nothing", "--picture", "grid.txt")
    with pytest.raises(RunError, match="nothing does not exist: give the folder"):
        open_spot("nothing")
    assert "board and pot" in refused("spot", "solve", "--ranges", "AA", "KK")


@pytest.mark.parametrize("algorithm", SUPPORTED)
def test_algorithms_come_to_the_same_values(solution, algorithm):
    spot, _, _ = solution
    found = spot.solve(0.1, algorithm=algorithm)
    assert found.exploitability_percent <= 0.1
    assert found.values == pytest.approx(spot.solve(0.1).values, abs=2e-3 * spot.pot)


def test_a_run_keeps_its_algorithm(solution, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spot, _, _ = solution
    (tmp_path / "spot.toml").write_text(spot.toml())
    new = "spot", "solve", "spot.toml", "--iterations", 4
    answer(*new, "--out", "kept", "--algorithm", "dcfr-bounded")
    assert RunFolder.open(tmp_path / "kept").identity.algorithm == "dcfr-bounded"
    unbroken = kilt_api.solve(spot, "dcfr-bounded", iterations=8).values
    assert answer("spot", "solve", "kept", "--iterations", 8)["values"] == pytest.approx(unbroken, rel=1e-12)
    assert spec_for(tmp_path / "kept").algorithm == "dcfr-bounded"
    assert "leave out `algorithm`" in refused("estimate", "kept", "-a", "dcfr+")
    assert "leave out everything but" in refused("spot", "solve", "kept", "-a", "dcfr+")
    assert "dcfr-bounded on " in kilt("estimate", "spot.toml", "-a", "dcfr-bounded").stderr
    assert "use one of cfr, cfr+" in refused(*new, "-a", "pcfr+")  # which needs a third table
    assert "hold no negative regrets" in refused(*new, "-a", "dcfr-bounded", "--set", "compact=true")
    assert "solve the spot on the CPU" in refused(*new, "-a", "dcfr-bounded", "--device", "gpu")
    with pytest.raises(RunError, match="neither `seed` nor `against`"):
        kilt_api.solve(spot, seed=1)


def test_memory_that_does_not_suffice_is_said_before_work(monkeypatch):
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 1000)
    with pytest.raises(KiltError, match="GB of memory"):
        Spot(**(GOOD | {"board": "QsJh2h", "ranges": ("22+, A2+, K9+", "22+, A2+, K9+")})).solve(iterations=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"board": "QsQs2h"}, "Qs is there twice"),
        ({"board": "QsJh"}, "has 2 cards"),
        ({"pot": 0}, "must be above 0"),
        ({"pot": 6.001}, "at most two decimals"),
        ({"stacks": 0}, "or no player can bet"),
        ({"stacks": 0, "bets": (), "pot": 0}, "a no-limit spot needs `stacks` above 0 and `bets`"),
        ({"ranges": ("AsKs", "AsQh")}, "ranges allow no deal"),
        ({"ranges": ("QsQh", "AK")}, "range of player 1"),
        ({"ranges": ("AK",)}, "one for each"),
        ({"ranges": (np.ones(7), "AK")}, "shape"),
        ({"ranges": (3, "AK")}, "it takes a list"),
        ({"game": 3}, "it takes a text"),
        ({"rake": 100}, "less than 100"),
        ({"ranges": ("AKx", "AK")}, "not a hand"),
        ({"bets": "10%"}, "the smallest legal bet is 1"),
        ({"bets": "big"}, "bet size 'big' in 'big'"),
        ({"bets": ()}, "`bets`"),
        ({"bets": ""}, "`bets` has no size, so no player can bet"),
        ({"bets": (" ", "; /")}, "sizes for 2 rounds|no size"),
        ({"bets": "50%/50%/50%/50%/50%"}, r"sizes for 5 rounds, but 1 is left \(river\): omit the others"),
        ({"bets": ("a", "a/a")}, "'a/a' has sizes for 2 rounds"),
        ({"bets": "1000000000%"}, "'1000000000%' in '1000000000%' is more than 1,000 pots: use `a` for all-in"),
        ({"ranges": ("AA,AA:0.2", "JJ")}, "range of player 1: 'AA:0.2' gives AdAc the weight 0.2, and 'AA' gives it 1"),
        ({"after": "x x"}, "no player acts after 'x x'"),
        ({"after": "r3 z"}, "'z' is not possible"),
        ({"game": "bluff-1-1"}, "not poker"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_what_cannot_be_is_said_in_one_line(change, said):
    with pytest.raises(KiltError, match=said) as error:
        Spot(**(GOOD | change))
    assert "\n" not in str(error.value)


def test_an_estimate_counts_boards_and_hands():
    """With few hands, boards take most of the time; the line before the work names the time to the usual target."""
    few, many = (Spot("Qs7h2h", 6, (text, text), 20, "a").tree() for text in ("AA", "22+,A2+,K2+"))
    boards = BOARD_SECONDS * len(few.tree.weight)
    assert boards < cost_of(few).iteration < 1.5 * boards
    assert cost_of(many).iteration > 5 * boards
    found = kilt("spot", "solve", "--board", "QsJh2h7d", "--pot", 6, "--stacks", 20, "-r", "AA", "KK", "--bets", "a")
    assert re.search(r"about \S+ \w+ an iteration, usually \S+ \w+ to 0.5% of the pot", found.stderr)
