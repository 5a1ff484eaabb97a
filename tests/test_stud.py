"""Stud: cards that players get later, up and down, against a twin that deals card by card and SciPy's programme."""

from dataclasses import replace
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_array, dok_array, hstack

import naive
from commands import answer, refused
from kilt.abstraction.stud import StudBoards
from kilt.cards.deck import Deck
from kilt.errors import AbstractionError, GameError, PlayError, RunError
from kilt.games import load_game, poker
from kilt.games.gamedef import GameDef, load_definition
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.games.size import size_of
from kilt.solve.cfr import Cfr
from kilt.solve.forms import load_problem
from kilt.solve.lp import solve_lp
from kilt.solve.problem import FLAT, FlatProblem
from kilt.solve.registry import ALGORITHMS, make_solver
from kilt.solve.tables.flat import FlatTables
from kilt.tree.best_response import expected_value, exploitability, response_values, uniform
from kilt.tree.flat import flat_tree, merge
from kilt.tree.vector import VectorGame
from kilt_lab.papers.schmid15 import distances

EACH_DOWN, EACH_UP = [(0, False), (1, False)], [(0, True), (1, True)]
# Ranks, suits, up-cards and cards face down of the second round, and what both rounds deal card by card.
GAMES = {
    "up": (5, 1, 1, 0, [EACH_DOWN, EACH_UP]),
    "down": (3, 2, 0, 1, [EACH_DOWN, EACH_DOWN]),
    "both": (3, 2, 1, 1, [EACH_DOWN, EACH_UP + EACH_DOWN]),
}


@cache
def stud_game(name):
    ranks, suits, up, down, _ = GAMES[name]
    cards = {"ranks": ranks, "suits": suits, "board_cards": (0, 0), "up_cards": (0, up), "down_cards": (0, down)}
    bets = {"raise_sizes": (2, 4), "first_player": (0, 0), "max_raises": (1, 1)}
    return poker(replace(load_definition("leduc-stud"), rounds=2, **cards, **bets), name)


@cache
def stud_tree(name):
    return flat_tree(stud_game(name))


class Plans:
    """A player's sequences of actions as a twin meets them, numbered, and what makes a plan over them."""

    def __init__(self):
        self.number, self.sets, self.uniform = {(): 0}, {}, [1.0]

    def add(self, way):
        """The number of a sequence: steps of what was seen, which actions there were, which was taken."""
        before = ()
        for where, choices, action in way:
            if (where, choices) not in self.sets:
                self.sets[where, choices] = (
                    self.number[before],
                    range(len(self.uniform), len(self.uniform) + len(choices)),
                )
                for each in choices:
                    self.number[(*before, (where, each))] = len(self.uniform)
                    self.uniform.append(self.uniform[self.number[before]] / len(choices))
            before = (*before, (where, action))
        return self.number[before]

    def equations(self):
        rows = dok_array((1 + len(self.sets), len(self.number)))
        rows[0, 0] = 1.0
        for row, (before, after) in enumerate(self.sets.values(), start=1):
            rows[row, before] = -1.0
            for each in after:
                rows[row, each] = 1.0
        return rows.tocsr()


@cache
def twin(name):
    """Both players' plans, and [sequence of player 0, of player 1] what player 0 wins, chance included."""
    ranks, suits, *_, rounds = GAMES[name]
    plans, won = (Plans(), Plans()), {}
    for chance, payoff, ways in naive.stud_ends(Deck(ranks, suits), rounds, (2, 4)):
        pair = plans[0].add(ways[0]), plans[1].add(ways[1])
        won[pair] = won.get(pair, 0.0) + chance * payoff
    payoffs = np.zeros([len(plan.number) for plan in plans])
    payoffs[tuple(np.array([*won]).T)] = [*won.values()]
    return plans, payoffs


def best_plan(equations, worth):
    """The most that a plan over sequences wins where each is worth so much."""
    return -linprog(-worth, A_eq=equations, b_eq=np.eye(1, equations.shape[0])[0]).fun


@pytest.mark.parametrize("name", GAMES)
def test_uniform_play_and_answers_to_it(name):
    """What the twin finds card by card: the same information sets, value, and best responses by linear programmes."""
    tree, (plans, payoffs) = stud_tree(name), twin(name)
    even, (mine, theirs) = uniform(tree), (np.array(plan.uniform) for plan in plans)
    assert [np.count_nonzero(tree.nodes.infoset_player == p) for p in (0, 1)] == [len(plan.sets) for plan in plans]
    assert expected_value(tree, even) == pytest.approx(mine @ payoffs @ theirs, abs=1e-12)
    first, second = (
        best_plan(plans[0].equations(), payoffs @ theirs),
        best_plan(plans[1].equations(), -mine @ payoffs),
    )
    assert response_values(tree, even) == pytest.approx((first, second), abs=1e-8)


@pytest.mark.parametrize("name", ["up", "down"])
def test_the_value_of_the_game(name):
    """That of the twin, by a programme written for it."""
    tree, (plans, payoffs) = stud_tree(name), twin(name)
    mine, theirs = (plan.equations() for plan in plans)
    (rows, own), (others, _) = mine.shape, theirs.shape
    found = linprog(
        -np.eye(1, own + others, own)[0],
        A_ub=hstack([csr_array(-payoffs.T), theirs.T]),
        b_ub=np.zeros(theirs.shape[1]),
        A_eq=hstack([mine, csr_array((rows, others))]),
        b_eq=np.eye(1, rows)[0],
        bounds=[(0, None)] * own + [(None, None)] * others,
    )
    solved = solve_lp(tree.nodes)
    assert solved.value == pytest.approx(-found.fun, abs=1e-8)
    assert exploitability(tree, solved.strategy) < 1e-8


@pytest.mark.parametrize("algorithm", [name for name, entry in ALGORITHMS.items() if FLAT in entry.forms])
def test_flat_solvers(algorithm):
    tree = stud_tree("down")
    solver = make_solver(FlatProblem(tree, 1.0), algorithm, seed=1)
    sampled = algorithm in ("external", "outcome", "pure")
    solver.step(1 if algorithm == "lp" else 100_000 if sampled else 200)
    assert exploitability(tree, solver.average()) < (0.2 if sampled or algorithm == "cfr-br" else 0.05)


def test_what_each_player_sees():
    game = load_game("leduc-stud")
    hands = game.deck.hole_index(game.deck.cards("As")), game.deck.hole_index(game.deck.cards("Ah"))
    second, board = game.replay("cc"), game.deck.cards("KhQs")
    deals = game.reveals(second, hands, ())
    assert len(deals) == 6 * 5
    assert (board, 1 / 30) in deals
    last = game.reveals(game.replay("cc/cc"), hands, board)
    assert len(last) == len({b for b, _ in last}) == 4 * 3
    assert {game.board_name(b, 0) for b, _ in last} == {f"/Kh:Qs/({card})" for card in ("Jh", "Js", "Ks", "Qh")}
    whole = (*board, *game.deck.cards("KsJh"))
    assert game.board_name(whole, 1) == "/Kh:Qs/(Jh)"
    # A pair of kings for player 0; player 1 has a straight, if it counted the other's cards.
    assert game.payoffs(game.replay("rc/rc/rc"), hands, whole) == (11.0, -11.0)
    assert game.payoffs(game.replay("rc/rf"), hands, board) == (3.0, -3.0)


def test_size():
    assert size_of(load_definition("leduc-stud")).states == (4 * 56, 12 * 1680, 36 * 20160)


def test_definitions():
    rules = load_definition("leduc-stud")
    assert rules.stud
    assert GameDef.parse(str(rules)) == rules
    assert "numUpCards" not in str(load_definition("leduc"))
    with pytest.raises(GameError, match="numUpCards begins with 1, not with 0"):
        replace(rules, up_cards=(1, 1, 0))
    with pytest.raises(GameError, match="a player sees 8"):
        replace(rules, ranks=13, suits=4, up_cards=(0, 4, 2))
    with pytest.raises(GameError, match="need 10 cards; the deck has 8"):
        replace(rules, up_cards=(0, 3, 0))


def test_what_stud_does_not_have():
    """One line for each: vectors of hands, agents, and a `Holdem` of such rules."""
    with pytest.raises(GameError, match="is a stud game, which vectors of hands do not support"):
        VectorGame(load_game("leduc-stud"))
    with pytest.raises(RunError, match="is stud, which deals more later on: use 1 thread"):
        load_problem("leduc-stud", "cfr+", threads=2)
    with pytest.raises(PlayError, match="leduc-stud is stud"):
        load_holdem("leduc-stud")
    with pytest.raises(GameError, match="is stud"):
        Holdem(load_definition("leduc-stud"))


@cache
def naive_value(cards, deck):
    return naive.hand_value([*cards], deck)


@cache
def naive_strengths(deck, hand, mine, theirs):
    """How often a hand of one card wins, ties halved, for each last card: sorted."""
    shares = []
    for last in set(range(deck.size)) - {hand, mine, theirs}:
        rest = set(range(deck.size)) - {hand, mine, theirs, last}
        own = naive_value(frozenset([hand, mine, last]), deck)
        others = [naive_value(frozenset([theirs, *hidden]), deck) for hidden in combinations(rest, 2)]
        shares.append(sum((own > other) + (own == other) / 2 for other in others) / len(others))
    return np.sort(shares)


def test_distances_of_boards():
    """The earth mover's distance, as the cheapest way to pair the hands of two boards one by one."""
    game = stud_game("both")
    boards, deck = StudBoards(game), game.deck
    assert len(boards.boards) == 15
    distances = boards.distances()
    cards = range(deck.size)
    before = {
        hand: np.sort(np.concatenate([naive_strengths(deck, hand, *up) for up in permutations({*cards} - {hand}, 2)]))
        for hand in cards
    }

    def apart(one, other):
        """Of two hands, each with the up-cards of both players: the mean of this round and the one before."""
        now = np.abs(naive_strengths(deck, *one) - naive_strengths(deck, *other)).mean()
        return (now + np.abs(before[one[0]] - before[other[0]]).mean()) / 2

    for i, j in [(0, 5), (3, 14), (7, 8)]:
        ups = [tuple(card for cards in boards.boards[board] for card in cards) for board in (i, j)]
        mine, theirs = ([(hand, *up) for hand in cards if hand not in up] for up in ups)
        costs = np.array([[apart(one, other) for other in theirs] for one in mine])
        assert distances[i, j] == pytest.approx(costs[linear_sum_assignment(costs)].mean(), abs=1e-6)


def test_games_with_classes_of_boards():
    """All boards in classes of their own lose nothing; merged information sets play alike in the whole game."""
    tree, boards = stud_tree("both"), StudBoards(stud_game("both"))
    whole = boards.merge_observations(tree, boards.observe_classes(range(15)))
    solver = Cfr(FlatTables(whole.tree.nodes), "cfr+")
    solver.step(50)
    found = exploitability(tree, whole.lifted(solver.average()))
    assert found == pytest.approx(exploitability(whole.tree, solver.average()), abs=1e-9)
    assert found < 0.05
    assert len(whole.tree.infosets) < len(tree.infosets) / 1.9
    few = boards.merge_observations(tree, boards.observe_classes([board % 2 for board in range(15)]))
    even = uniform(few.tree)
    assert np.array_equal(few.lifted(even), uniform(tree))
    assert sum(response_values(few.tree, even)) < sum(response_values(tree, uniform(tree)))
    up, down, other, last = (boards.game.deck.cards(card) for card in ("Kh", "As", "Qh", "Ks"))
    assert boards.observe_all_cards(up, other, down, last) == boards.observe_all_cards(down, other, up, last)
    assert boards.observe_classes(range(15))(up, other, down, last) != boards.observe_classes(range(15))(
        down, other, up, last
    )
    assert (
        boards.count_observations(boards.observe_all_cards),
        boards.count_observations(boards.observe_classes([0] * 15)),
    ) == (90, 30)
    with pytest.raises(GameError, match="must have the same player"):
        merge(tree, ["all"] * len(tree.infosets))
    with pytest.raises(AbstractionError, match="cannot be sorted"):
        StudBoards(stud_game("down"))


def test_classes_in_stud(tmp_path, monkeypatch):
    """The reproduction on a game of two rounds: classes that mean something beat random ones."""
    file = tmp_path / "small.game"
    file.write_text(str(stud_game("both").rules))
    monkeypatch.setattr(distances, "ITERATIONS", 30)
    rows = [row.name for row in distances.STUD.rows]
    names = ["earth mover, 8 classes", "random, 8 classes", *rows[-4:]]
    only = [word for name in names for word in ("--only", name)]
    found = answer("reproduce", "schmid-stud", "--game", file, "--runs", 3, "--out", tmp_path / "it", *only)
    ours = {row["name"]: row["ours"] for row in found["rows"]}
    assert ours["every board"] < ours["earth mover, 8 classes"] < ours["random, 8 classes"]
    unseen, altogether, _ = (ours[name] for name in rows[-3:])
    assert ours["every board"] < unseen == pytest.approx(altogether)  # of six cards, the last round shows all
    assert (tmp_path / "it" / "figure.png").stat().st_size > 1000
    assert "too few" in refused("reproduce", "schmid-stud", "--game", file, "--only", "random, 16 classes")
    assert "is not a stud game" in refused("reproduce", "schmid-stud", "--game", "leduc")
