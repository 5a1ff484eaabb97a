"""Walks with vectors of hands, against the flat tree of the same game."""

from __future__ import annotations

import numpy as np
import pytest

from kilt.cards.boards import card_permutations, hand_permutations
from kilt.errors import GameError
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.solve.solver import normalised
from kilt.solve.vector import VectorCfr
from kilt.tree import best_response as flat
from kilt.tree.flat import FlatTree, flat_tree
from kilt.tree.vector import VectorGame

SHORT = """GAMEDEF
limit
numPlayers = 2
numRounds = {rounds}
blind = 2 1
raiseSize = {raises}
firstPlayer = {first}
maxRaises = {most}
numSuits = {suits}
numRanks = {ranks}
numHoleCards = {hole}
numBoardCards = {board}
END GAMEDEF
"""
SHAPES = {
    "two hole cards": {
        "rounds": 2,
        "raises": "2 4",
        "first": "2 1",
        "most": "1 1",
        "suits": 2,
        "ranks": 3,
        "hole": 2,
        "board": "0 1",
    },
    "three rounds": {
        "rounds": 3,
        "raises": "2 2 2",
        "first": "2 1 1",
        "most": "1 1 1",
        "suits": 3,
        "ranks": 2,
        "hole": 1,
        "board": "0 1 1",
    },
    "a flop": {
        "rounds": 2,
        "raises": "2 4",
        "first": "2 1",
        "most": "1 1",
        "suits": 3,
        "ranks": 3,
        "hole": 1,
        "board": "0 2",
    },
}


def game_of(name):
    return Holdem(GameDef.parse(SHORT.format(**SHAPES[name])), name) if name in SHAPES else load_game(name)


def random_table(game: VectorGame, rng) -> np.ndarray:
    """A random strategy that does not tell apart suits that nothing tells apart."""
    return game.symmetrise(rng.random(game.table().shape) ** 3)


def to_flat(game: VectorGame, table: np.ndarray, tree: FlatTree) -> np.ndarray:
    """The same strategy on the flat tree, information set by information set."""
    holdem, arrays = game.game, game.tree
    betting = game.public.betting
    nodes = {betting.history(node): node for node in range(len(betting.labels)) if betting.nodes.actor[node] >= 0}
    if not isinstance(holdem, Holdem):
        hands = [{name: h for h, name in enumerate(holdem.hands(p))} for p in (0, 1)]
        boards = {(): (0, 0)}
        renamed = back = None
    else:
        hands = [{name: h for h, name in enumerate(holdem.hands(0))}] * 2
        renamed, back = card_permutations(holdem.deck), hand_permutations(holdem.deck, holdem.rules.hole_cards)
        boards = {}
        for r, size in enumerate(arrays.board_size):
            for board in range(arrays.board_start[r], arrays.board_start[r + 1]):
                for p in range(len(renamed)):
                    cards, start, key = renamed[p, arrays.board[board, :size]].tolist(), 0, []
                    for count in holdem.rules.board_cards[: r + 1]:
                        key += sorted(cards[start : start + count])
                        start += count
                    boards.setdefault((r, *key), (board, p))
    strategy = np.zeros(int(tree.nodes.infoset_start[-1]))
    for where, name in enumerate(tree.infosets):
        hand_name, board_name, history = name.split("|")
        node = nodes[history.replace(" ", "")]
        hand = hands[tree.nodes.infoset_player[where]][hand_name]
        r, board = int(betting.nodes.round[node]), 0
        if isinstance(holdem, Holdem):
            cards = holdem.deck.cards(board_name.replace("/", ""))
            board, p = boards[r, *cards]
            hand = int(np.flatnonzero(back[p] == hand)[0])
        first = arrays.table_start[r] + (board - arrays.board_start[r]) * arrays.rows[r] + arrays.row[node]
        start, end = tree.nodes.infoset_start[where : where + 2]
        strategy[start:end] = table[first : first + end - start, hand]
    return normalised(strategy, tree.nodes)


@pytest.mark.parametrize("name", ["kuhn", "leduc", "one-card", "bluff-1-1", *SHAPES])
def test_public_and_flat_trees_agree(name):
    """Expected values and best responses of random profiles, to 1e-9 (004, chapter 2: both are exact)."""
    game, tree = VectorGame(game_of(name)), flat_tree(game_of(name))
    rng = np.random.default_rng(1)
    for _ in range(2):
        table = random_table(game, rng)
        strategy = to_flat(game, table, tree)
        assert game.expected_value(table) == pytest.approx(flat.expected_value(tree, strategy), abs=1e-9)
        np.testing.assert_allclose(game.response_values(table), flat.response_values(tree, strategy), atol=1e-9)


@pytest.mark.parametrize("name", ["leduc", "three rounds", "two hole cards"])
def test_threads_share_the_boards(name):
    one, two = VectorGame(game_of(name)), VectorGame(game_of(name), threads=2)
    a, b = VectorCfr(one), VectorCfr(two)
    a.step(5)
    b.step(5)
    np.testing.assert_allclose(a.regret, b.regret, atol=1e-9)
    np.testing.assert_allclose(a.total, b.total, atol=1e-9)
    assert two.exploitability(b.average()) == pytest.approx(one.exploitability(a.average()), abs=1e-9)


BOUNDS = {"kuhn": (1000, 2e-3), "leduc": (500, 0.03), "one-card": (1000, 5e-3), "bluff-1-1": (100, 0.03)}


@pytest.mark.parametrize("variant", ["cfr", "cfr+", "linear", "dcfr"])
@pytest.mark.parametrize("name", BOUNDS)
def test_convergence(name, variant):
    game = VectorGame(load_game(name))
    solver = VectorCfr(game, variant)
    iterations, bound = BOUNDS[name]
    solver.step(iterations)
    assert 0 <= game.exploitability(solver.average()) < bound


def test_the_value_of_leduc():
    game = VectorGame(load_game("leduc"))
    solver = VectorCfr(game, "dcfr")
    solver.step(2000)
    assert game.expected_value(solver.average()) == pytest.approx(-0.085606424078, abs=2e-4)
    assert game.exploitability(solver.average()) < 1e-4


def test_steps_and_checkpoints_make_no_difference():
    game = VectorGame(load_game("leduc"))
    whole, parts, later = VectorCfr(game), VectorCfr(game), VectorCfr(game)
    whole.step(20)
    parts.step(7)
    later.restore({name: array.copy() for name, array in parts.state().items()})
    parts.step(13)
    later.step(13)
    for solver in (parts, later):
        assert solver.iterations == 20
        assert np.array_equal(solver.regret, whole.regret)
        assert np.array_equal(solver.total, whole.total)


def test_tables_of_another_game():
    with pytest.raises(GameError, match=r"shape \(3, 3\); leduc needs \(224, 6\)"):
        VectorGame(load_game("leduc")).exploitability(np.zeros((3, 3)))
    with pytest.raises(GameError, match="threads is 0"):
        VectorGame(load_game("leduc"), threads=0)


def test_unknown_variants():
    with pytest.raises(GameError, match=r"'cfr\+\+': use one of cfr, cfr\+"):
        VectorCfr(VectorGame(load_game("kuhn")), "cfr++")
