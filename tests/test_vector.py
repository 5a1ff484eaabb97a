"""Walks with vectors of hands, against the flat tree of the same game."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kilt.errors import GameError
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.solve.cfr import Cfr
from kilt.solve.opponents import OPPONENTS, SCHEMES
from kilt.solve.solver import normalised
from kilt.solve.tables.flat import FlatTables
from kilt.solve.tables.memory import TreeTables, learning_walk
from kilt.solve.tables.two_bytes import TwoByteGame, TwoByteTables
from kilt.solve.variants import BOUNDED, STEADY, VARIANTS, discounts
from kilt.strategy.model import DecisionLayout
from kilt.tree import best_response as flat
from kilt.tree import vector_arrays as kernels
from kilt.tree.flat import FlatTree, flat_tree
from kilt.tree.rule import Discount
from kilt.tree.strength_order import convert_table, layouts_by_strength
from kilt.tree.vector import VectorGame
from kilt.tree.walks import Scheme, Walk
from written_out import flat_places, tree_of

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


def flat_tree_of(name) -> FlatTree:
    return flat_tree(game_of(name)) if name in SHAPES else tree_of(name)


def random_table(game: VectorGame, rng) -> np.ndarray:
    """A random strategy that does not tell apart suits that nothing tells apart."""
    return game.symmetrise(rng.random(game.table().shape) ** 3)


@pytest.mark.parametrize("name", ["kuhn", "leduc", "one-card", "bluff-1-1", *SHAPES])
def test_public_and_flat_trees_agree(name):
    """Expected values and best responses of random profiles, to 1e-9 ([Johanson16 chapter 2]: both are exact)."""
    game, tree = VectorGame(game_of(name)), flat_tree_of(name)
    rng, places = np.random.default_rng(1), flat_places(game, tree)
    for _ in range(2):
        table = random_table(game, rng)
        strategy = normalised(table[places], tree.nodes)
        assert game.expected_value(table) == pytest.approx(flat.expected_value(tree, strategy), abs=1e-9)
        np.testing.assert_allclose(game.response_values(table), flat.response_values(tree, strategy), atol=1e-9)


@pytest.mark.parametrize("name", ["leduc", "bluff-1-1", "two hole cards"])
def test_responses_win_what_they_say(name):
    game = VectorGame(game_of(name))
    table = random_table(game, np.random.default_rng(5))
    response = game.responses(table)
    for player, value in enumerate(game.response_values(table)):
        follow = Walk(player, (kernels.FOLLOW,), response, table)
        assert game.walk(follow) == pytest.approx(value, abs=1e-9)
    assert set(np.unique(response)) <= {0.0, 1.0}


@pytest.mark.parametrize("name", ["leduc", "three rounds", "two hole cards"])
def test_threads_share_the_boards(name):
    one, two = VectorGame(game_of(name)), VectorGame(game_of(name), threads=2)
    a, b = Cfr(TreeTables(one)), Cfr(TreeTables(two))
    a.step(5)
    b.step(5)
    np.testing.assert_allclose(a.tables.regret, b.tables.regret, atol=1e-9)
    np.testing.assert_allclose(a.tables.total, b.tables.total, atol=1e-9)
    assert two.exploitability(b.average()) == pytest.approx(one.exploitability(a.average()), abs=1e-9)


def test_the_value_of_leduc():
    game = VectorGame(load_game("leduc"))
    solver = Cfr(TreeTables(game), "dcfr")
    solver.step(2000)
    assert game.expected_value(solver.average()) == pytest.approx(-0.085606424078, abs=2e-4)
    assert game.exploitability(solver.average()) < 1e-4


def test_single_precision():
    """Large games learn in single precision: the same but for rounding."""
    game = VectorGame(load_game("leduc"))
    double, single = Cfr(TreeTables(game)), Cfr(TreeTables(game, np.float32))
    for solver in (double, single):
        solver.step(10)
    assert single.tables.regret.dtype == np.float32
    np.testing.assert_allclose(single.tables.regret, double.tables.regret, atol=1e-4)
    single.step(490)
    assert game.exploitability(single.average()) < 2e-3


def test_without_an_average():
    game = VectorGame(load_game("leduc"))
    with_average, without = Cfr(TreeTables(game)), Cfr(TreeTables(game, averaging=False))
    for solver in (with_average, without):
        solver.step(20)
    assert np.array_equal(without.average(), with_average.current())
    assert set(without.state()) == {"regret", "iterations"}


def test_steps_and_checkpoints_make_no_difference():
    game = VectorGame(load_game("leduc"))
    whole, parts, later = Cfr(TreeTables(game)), Cfr(TreeTables(game)), Cfr(TreeTables(game))
    whole.step(20)
    parts.step(7)
    later.restore({name: array.copy() for name, array in parts.state().items()})
    parts.step(13)
    later.step(13)
    for solver in (parts, later):
        assert solver.iterations == 20
        assert np.array_equal(solver.tables.regret, whole.tables.regret)
        assert np.array_equal(solver.tables.total, whole.tables.total)


def test_tables_of_another_game():
    with pytest.raises(GameError, match=r"shape \(3, 3\); leduc needs \(224, 6\)"):
        VectorGame(load_game("leduc")).exploitability(np.zeros((3, 3)))
    with pytest.raises(GameError, match="threads is 0"):
        VectorGame(load_game("leduc"), threads=0)


def test_unknown_variants():
    with pytest.raises(GameError, match=r"'cfr\+\+': use one of cfr, cfr\+"):
        Cfr(TreeTables(VectorGame(load_game("kuhn"))), "cfr++")


# Sampling


def seen_share(game: VectorGame, drawn: int, rounds: int | None = None) -> np.ndarray:
    """[(board, row)] how likely a walk is to come to a board that so many hands of those drawn must not clash with."""
    tree, share = game.tree, np.empty(game.shape[0])
    of_board = np.ones(int(tree.board_start[-1]))
    for r in range(1, len(tree.rows)):
        for above in range(tree.board_start[r - 1], tree.board_start[r]):
            for board in range(tree.first_board[above], tree.first_board[above + 1]):
                of_board[board] = of_board[above]
                if rounds is None or r <= rounds:
                    of_board[board] *= tree.weight[board] * tree.chance[r] / tree.odds[r, int(drawn)]
    for r, rows in enumerate(tree.rows):
        shares = np.repeat(of_board[tree.board_start[r] : tree.board_start[r + 1]], rows)
        share[tree.table_start[r] : tree.table_start[r + 1]] = shares
    return share[:, None]


def holdable(game: VectorGame) -> np.ndarray:
    """[(board, row), hand] whether the board leaves the cards of the hand."""
    tree, holes = game.tree, game.game.deck.holes(game.game.rules.hole_cards)
    left = np.ones(game.shape, dtype=bool)
    for r, rows in enumerate(tree.rows):
        for board in range(tree.board_start[r], tree.board_start[r + 1]):
            first = tree.table_start[r] + (board - tree.board_start[r]) * rows
            left[first : first + rows] = ~np.isin(holes, tree.board[board, : tree.board_size[r]]).any(axis=1)
    return left


def learnt(
    solver: Cfr, strategy: np.ndarray, player: int, number: int, weight: float = 1.0, layouts=None
) -> np.ndarray:
    """[2, row, hand] what one walk adds to regrets and average where both players follow a strategy."""
    every = layouts or solver.tables.game.layouts
    own, theirs = (
        solver.tables._tables[seat]._replace(
            layout=every[seat],
            strategy=strategy,
            regret=np.zeros_like(strategy),
            average=np.zeros_like(strategy),
        )
        for seat in (player, 1 - player)
    )
    discount = Discount(1.0, 1.0, 1.0, weight, weight, predictive=False)
    game, tasks = solver.tables.game, np.full(len(solver.tables.game.tree.rows), kernels.FOLLOW)
    learning = learning_walk(game.tree, player, tasks, own, theirs, discount)
    game.run(player, learning, solver.tables.scheme, int(solver.tables.seed), number)
    return np.stack([own.regret, theirs.average])


ONE_ROUND = {"rounds": 1, "raises": "2", "first": "1", "most": "1", "suits": 3, "ranks": 2, "hole": 2, "board": "0"}


@pytest.mark.parametrize("name", ["leduc", "three rounds", "two hole cards", "a flop", "one round"])
def test_hands_that_are_apart_stand_for_all(name):
    """Walks over one of the hands that a last board does not tell apart, weakest first, are walks over all hands."""
    rules = Holdem(GameDef.parse(SHORT.format(**ONE_ROUND)), name) if name == "one round" else game_of(name)
    game = VectorGame(rules)
    solver, table = Cfr(TreeTables(game), "cfr"), random_table(game, np.random.default_rng(8))

    def convert(table, by_strength):
        with game.workspace() as work:
            convert_table(game.tree, work, table, layouts, by_strength=by_strength)

    arranged, layouts = table.copy(), layouts_by_strength(game.tree, game.layouts)
    convert(arranged, by_strength=True)
    again, entries = arranged.copy(), arranged.reshape(-1, 1)
    convert(again, by_strength=False)
    last = game.tree.table_start[-2]
    assert np.array_equal(again[:last], table[:last])
    np.testing.assert_allclose(again[last:], (table * holdable(game))[last:], rtol=1e-15)
    for player, value in enumerate(game.response_values(table)):
        respond = Walk(player, (kernels.RESPOND,), entries, entries, layouts[player], layouts[1 - player])
        assert game.walk(respond) == pytest.approx(value, abs=1e-12)
        plain, found = learnt(solver, table, player, 0), learnt(solver, entries, player, 0, layouts=layouts)
        for one, whole in zip(plain, found, strict=True):
            other = whole.reshape(game.shape)
            convert(other, by_strength=False)
            np.testing.assert_allclose((one * holdable(game))[last:], other[last:], atol=1e-12)
            np.testing.assert_allclose(one[:last], other[:last], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "draws"),
    [
        *((name, draws) for name in ("kuhn", "leduc", "two hole cards") for draws in SCHEMES.values()),
        ("three rounds", Scheme(boards=True, rounds=1)),
        ("three rounds", Scheme(boards=True, rounds=2)),
    ],
)
def test_samples_are_unbiased(name, draws):
    """Regrets and averages of sampled walks are, on average, those of the full walk: [Johanson16 §3.3]."""
    game, walks = VectorGame(game_of(name)), 600
    strategy = random_table(game, np.random.default_rng(2))
    solver = Cfr(TreeTables(game, scheme=draws, seed=3), "cfr")
    for player in (0, 1):
        regret, average = learnt(Cfr(TreeTables(game), "cfr"), strategy, player, 0)
        prior = game.tree.prior[player] / game.tree.prior[player].sum()
        met = game.tree.compatible_weight / game.tree.prior[1 - player].sum() if draws.mine and draws.theirs else 1.0
        wanted = (
            regret * seen_share(game, draws.mine + draws.theirs, draws.rounds) * (prior if draws.mine else 1.0),
            average * seen_share(game, draws.theirs, draws.rounds) * met,  # whatever the player holds
        )
        sums, squares = np.zeros((2, *game.shape)), np.zeros((2, *game.shape))
        for number in range(walks):
            sampled = learnt(solver, strategy, player, number)
            sums += sampled
            squares += sampled**2
        mean = sums / walks
        error = np.sqrt(np.maximum(squares / walks - mean**2, 0) / walks)
        possible = holdable(game)
        for found, want, wide in zip(mean, wanted, error, strict=True):
            assert np.all((np.abs(found - want) < 5 * wide + 1e-9)[possible])
            assert np.any(want[possible])


def test_sampled_steps_make_no_difference():
    game = VectorGame(load_game("leduc"))
    whole, parts = Cfr(TreeTables(game, scheme="cs", seed=5), "cfr"), Cfr(TreeTables(game, scheme="cs", seed=5), "cfr")
    whole.step(20)
    parts.step(7)
    later = Cfr(TreeTables(game, scheme="cs", seed=0), "cfr")
    later.restore({name: array.copy() for name, array in parts.state().items()})
    later.step(13)
    assert np.array_equal(later.tables.regret, whole.tables.regret)
    assert np.array_equal(later.tables.total, whole.tables.total)
    other = Cfr(TreeTables(game, scheme="cs", seed=6), "cfr")
    other.step(20)
    assert not np.array_equal(other.tables.regret, whole.tables.regret)


# CFR-BR


def responding(game: VectorGame, trunk: int = 0) -> Cfr:
    return Cfr(TreeTables(game, opponent="response", trunk=trunk), "cfr")


@pytest.mark.parametrize("name", ["kuhn", "leduc", "bluff-1-1", "two hole cards"])
def test_cfr_br_on_public_and_flat_trees(name):
    """The same profiles, iteration by iteration, as the flat tree's: [Johanson16 chapter 4]."""
    game, tree = VectorGame(game_of(name)), flat_tree_of(name)
    vector, other = responding(game), Cfr(FlatTables(tree.nodes, responds=True), "cfr")
    for _ in range(5):
        vector.step(1)
        other.step(1)
        found = game.exploitability(vector.average())
        assert found == pytest.approx(flat.exploitability(tree, other.average()), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "trunk", "iterations"),
    [("leduc", 0, 150), ("leduc", 1, 1500), ("three rounds", 1, 1500), ("three rounds", 2, 1500)],
)
def test_cfr_br_converges_with_any_trunk(name, trunk, iterations):
    game = VectorGame(game_of(name))
    solver = responding(game, trunk)
    seen = []
    for _ in range(3):
        solver.step(iterations)
        seen.append(game.exploitability(solver.average()))
    assert seen[2] < seen[0]
    assert seen[2] < 0.15


def own_rows(game: VectorGame, player: int) -> np.ndarray:
    """[(board, row)] whether it is an action of the player."""
    tree, mine = game.tree, np.zeros(game.shape[0], dtype=bool)
    for r, row, position in game.decisions():
        for first in range(tree.table_start[r] + row, tree.table_start[r + 1], tree.rows[r]):
            mine[first : first + len(position.actions())] = position.actor == player
    return mine


def test_the_hybrid_keeps_one_board():
    """Its table has the rows of one board after the trunk, with the responses on the board that was drawn last."""
    game, scheme = VectorGame(load_game("leduc")), Scheme(boards=True, rounds=1)
    solver, shared = (responding(VectorGame(game.game, threads=threads), trunk=1) for threads in (1, 2))
    assert len(solver.tables.other) == game.tree.rows[0] + game.tree.rows[1] < len(solver.tables.regret)
    solver.step(50)
    before = solver.tables.regret.copy()
    solver.step(1)
    shared.step(51)
    assert np.array_equal(solver.tables.total, shared.tables.total)
    rows, first = int(game.tree.rows[1]), int(game.tree.table_start[1])
    for player in (0, 1):
        answers = np.full(game.shape, -1.0)
        answers[:first] = solver.tables.other[:first]
        game.walk(Walk(player, (kernels.FOLLOW, kernels.ANSWER), answers, before), scheme, 0, 50)
        written = (answers[first:] >= 0).any(axis=1).reshape(-1, rows)
        (board,) = np.flatnonzero(written.any(axis=1))
        assert np.array_equal(written[board], own_rows(game, player)[first : first + rows])
        found = answers[first + board * rows : first + (board + 1) * rows]
        assert np.array_equal(found[written[board]], solver.tables.other[first:][written[board]])


def test_trunks_that_leave_no_round():
    with pytest.raises(GameError, match="the trunk is 2 rounds; leduc has 2: use 0 to 1"):
        responding(VectorGame(load_game("leduc")), trunk=2)


# All of it together


@pytest.mark.parametrize(
    ("variant", "scheme"), [*((name, "full") for name in VARIANTS), *((v, s) for v in STEADY for s in SCHEMES)]
)
def test_any_variant_with_any_scheme(variant, scheme):
    """Kuhn: exploitability falls below the bound, in chips per game."""
    game = VectorGame(load_game("kuhn"))
    how = {} if scheme == "full" else {"scheme": scheme, "seed": 1}
    solver = Cfr(TreeTables(game, **how), variant)
    solver.step(300 if scheme == "full" else 6000)
    assert game.exploitability(solver.average()) < (0.02 if scheme == "full" else 0.04)


@pytest.mark.parametrize("trunk", [0, 1])
@pytest.mark.parametrize("variant", STEADY)
def test_cfr_br_with_any_variant(variant, trunk):
    game = VectorGame(load_game("leduc"))
    solver = Cfr(TreeTables(game, opponent="response", trunk=trunk), variant)
    before = game.exploitability(solver.average())
    solver.step(2500 if trunk else 300)
    assert game.exploitability(solver.average()) < 0.2 < before / 5


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_checkpoints_of_any_opponent(opponent):
    """Predictive, with boards drawn: what was kept is enough to go on."""
    game = VectorGame(load_game("leduc"))
    whole, half, rest = (Cfr(TreeTables(game, scheme="pcs", opponent=opponent, seed=4), "pcfr+") for _ in range(3))
    whole.step(20)
    half.step(10)
    rest.restore({name: table.copy() for name, table in half.state().items()})
    rest.step(10)
    assert all(np.array_equal(whole.state()[name], table) for name, table in rest.state().items())


def test_checkpoints_of_older_versions():
    """The opponent's table of CFR-BR was called `response`; abstracted players kept no seed."""
    game = VectorGame(load_game("leduc"))
    solver, later = (Cfr(TreeTables(game, opponent="response", trunk=1, seed=2), "cfr") for _ in range(2))
    solver.step(10)
    state = {name: table.copy() for name, table in solver.state().items()}
    later.restore({"response": state.pop("other"), **{name: state[name] for name in state if name != "seed"}})
    solver.step(10)
    later.step(10)
    assert np.array_equal(solver.tables.total, later.tables.total)


def test_weights_stand_for_discounts():
    """What a sampled walk adds counts as much as if all that was there before had been discounted."""
    for name in STEADY:
        variant = VARIANTS[name]
        full, sampled = discounts(variant, 1, 50), discounts(variant, 1, 50, sampled=True)
        for added, kept in ((4, 2), (3, 0)):
            left = np.append(np.cumprod(full[::-1, kept])[::-1], 1.0)[:-1]  # [iteration] what is left of it in the end
            np.testing.assert_allclose(left / left[-1], sampled[:, added] / sampled[-1, added], err_msg=name)
        assert np.array_equal(discounts(variant, 31, 20, sampled=True), sampled[30:])
    with pytest.raises(GameError, match="must be constant and the average must not restart: use one of cfr, cfr"):
        discounts(VARIANTS["hs-dcfr"], 1, 50, sampled=True)


def test_weights_of_what_is_learnt():
    game = VectorGame(load_game("leduc"))
    solver, strategy = Cfr(TreeTables(game, scheme="pcs"), "cfr"), random_table(game, np.random.default_rng(6))
    once, thrice = (learnt(solver, strategy, 0, 5, weight) for weight in (1.0, 3.0))
    assert once.any()
    np.testing.assert_allclose(thrice, 3 * once)


def test_many_games_share_their_threads():
    """An agent that keeps hundreds of re-solved subgames once ran out of threads."""
    rules = load_game("leduc")
    games = [VectorGame(rules, threads=2)]
    games[0].exploitability(games[0].table())
    before = threading.active_count()
    games += [VectorGame(rules, threads=2) for _ in range(9)]
    values = {game.exploitability(game.table()) for game in games}
    assert len(values) == 1 and threading.active_count() == before


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_steps_scale_up_earlier_regrets(name):
    """The second iteration of player 0, from its regrets by plain CFR from the same state."""
    game = VectorGame(load_game("leduc"))
    solver, plain = Cfr(TreeTables(game), name), Cfr(TreeTables(game), "cfr")
    solver.step(1)
    plain.restore(solver.state())
    before = solver.tables.regret.copy()
    solver.step(1)
    plain.step(1)
    gained, variant = plain.tables.regret - before, BOUNDED[name]
    scaled = 0
    layout = DecisionLayout.of_vectors(game)
    for row, end, actor in zip(layout.start[:-1], layout.start[1:], layout.actor, strict=True):
        if actor == 0:
            here = slice(row, end)
            new, old = np.maximum(gained[here], 0).sum(axis=0), np.maximum(before[here], 0).sum(axis=0)
            factor = np.clip(2 * variant.inertia * new / np.maximum(old, 1e-37), 1, 16)
            total = np.where(before[here] > 0, factor * before[here], before[here]) + gained[here]
            above, below, *_ = discounts(variant, 2, 1)[0]
            np.testing.assert_allclose(
                solver.tables.regret[here], total * np.where(total > 0, above, below), atol=1e-12
            )
            scaled += np.count_nonzero((factor > 1) & (old > 0))
    assert scaled > 10


def test_bounded_steps_are_refused_where_columns_are_not_hands():
    game = VectorGame(load_game("leduc"))
    for tables in (FlatTables(flat_tree(load_game("leduc")).nodes), TreeTables(game, scheme="pcs")):
        with pytest.raises(GameError, match="only full passes over tables with a column for each hand"):
            Cfr(tables, "dcfr-bounded")


def test_bounded_steps_with_two_bytes_an_entry():
    game = TwoByteGame(VectorGame(load_game("leduc")))
    solver = Cfr(TwoByteTables(game), "dcfr+bounded")
    solver.step(200)
    assert game.exploitability(solver.average()) < 0.01
    with pytest.raises(GameError, match="two bytes support only variants without negative regrets"):
        Cfr(TwoByteTables(game), "dcfr-bounded")
