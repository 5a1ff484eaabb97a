"""External sampling on abstract games."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import naive
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, AsymmetricAbstraction
from kilt.abstraction.features import Deal, Features
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.cards.deck import Deck
from kilt.cards.hands import hand_tables, strength
from kilt.cards.hands_kernels import showdown_winners
from kilt.errors import RunError
from kilt.evaluate.evaluator import evaluator_for
from kilt.evaluate.head_to_head import OPPONENTS, FixedOpponents
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.games.tilt import tilt_game
from kilt.solve import external
from kilt.solve import external_kernels as kernels
from kilt.solve.abstract import BucketedGame
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.cfr import Cfr
from kilt.solve.external import ExternalMCCFR, SamplingOptions, require_options
from kilt.solve.registry import make_solver
from kilt.solve.tables.memory import TreeTables
from kilt.tree.vector import VectorGame

TOP = 65535


def no_limit(ranks, suits, hole_cards, board_cards, stacks, more=""):
    """A game with blinds of 2 and 1."""
    rounds = len(board_cards.split())
    text = f"""
        GAMEDEF
        nolimit
        numPlayers = 2
        numRounds = {rounds}
        stack = {stacks}
        blind = 2 1
        firstPlayer = {" ".join("2" + "1" * (rounds - 1))}
        numSuits = {suits}
        numRanks = {ranks}
        numHoleCards = {hole_cards}
        numBoardCards = {board_cards}
        {more}
        END GAMEDEF"""
    return Holdem(GameDef.parse(text), "tiny")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cards")


def cards_of(folder, game, plan="lossless"):
    """A card abstraction, built once for equal cards."""
    deal = Deal.from_game(game)
    identity = AbstractionSpec("cards", deal, plan_named(plan, deal.board_cards))
    return build(identity, folder / identity.fingerprint)


@pytest.fixture(scope="module")
def games(folder):
    """Small abstract games: what they are for is in their names."""
    one, two = no_limit(4, 2, 1, "0 1", "6 6"), no_limit(5, 2, 2, "0 2 1", "24 24")
    uneven, capped = no_limit(3, 2, 1, "0 1", "9 5"), no_limit(3, 2, 1, "0 1", "9 9", "maxRaises = 1 2")
    smallest, coarse = no_limit(3, 2, 1, "0 1", "5 5"), cards_of(folder, one, "IR-PHS-PHS 2-3")
    return {
        "all raises": AbstractGame(one, cards_of(folder, one)),
        "three rounds": AbstractGame(two, cards_of(folder, two, "IR-PHS-PHS 6-5-4"), actions_of("1x, a / 50%, a; a")),
        "uneven stacks": AbstractGame(uneven, cards_of(folder, uneven)),
        "few raises": AbstractGame(capped, cards_of(folder, capped)),
        "smallest": AbstractGame(smallest, cards_of(folder, smallest)),
        "each their own cards": AbstractGame(one, AsymmetricAbstraction((coarse, cards_of(folder, one)))),
    }


def places(abstract, words):
    """[slot] where the regret of an action is in a table, and where its count would be."""
    nodes, (regret, count) = abstract.betting.nodes, np.empty((2, abstract.slots), dtype=np.int64)
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        n = int(nodes.children[node])
        for slot in range(int(abstract.first[node]), int(abstract.first[node + 1]), n):
            regret[slot : slot + n] = words * slot + np.arange(n)
            count[slot : slot + n] = words * slot + n + np.arange(n)
    return regret, count


def tables(solver):
    """[slot] the regrets of a solver, and its counts."""
    regret, count = places(solver.abstract, solver.regrets.words)
    single = solver.table.view(np.float32)
    if not solver.options.average:
        return single[regret], np.zeros(len(count))
    return single[regret], solver.table[count].astype(float)


# ── walks ──


@pytest.mark.parametrize("game", ["all raises", "three rounds", "uneven stacks", "few raises", "each their own cards"])
@pytest.mark.parametrize(
    "options",
    [
        SamplingOptions(),
        SamplingOptions(linear=True),
        SamplingOptions(average=False),
        SamplingOptions(prune=0.02),
        SamplingOptions(linear=True, prune=0.02),
        SamplingOptions(average=False, prune=0.02),
        SamplingOptions(linear=True, equities=True),
    ],
    ids=repr,
)
def test_twin(games, game, options, monkeypatch):
    """The same deals, the same draws, the same tables."""
    monkeypatch.setattr(external, "STEPS", 6)  # discounts from iteration 8 on
    abstract = games[game]
    solver = ExternalMCCFR(abstract, seed=5, options=options)
    solver.step(70)
    solver.step(30)
    regret, total, left_out = naive.external_sampling(
        abstract, 5, 100, linear=options.linear, prune=options.prune, equities=options.equities
    )
    assert (left_out > 20) == (options.prune > 0)
    found = tables(solver)
    np.testing.assert_allclose(found[0], regret, rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(found[1], total if options.average else 0)
    assert np.abs(regret).max() > 10 and total.sum() > 50


def root_share(solver):
    """The share of each root action in the counts of the first bucket."""
    counts = tables(solver)[1][: solver.abstract.betting.nodes.children[0]]
    return counts / counts.sum()


def with_counts_of(solver, most):
    """The state of a solver, with the counts of the first bucket at the root scaled until the largest is `most`."""
    state = {name: np.array(array) for name, array in solver.state().items()}
    n = int(solver.abstract.betting.nodes.children[0])
    counts = state["table"][n : 2 * n].astype(float)
    state["table"][n : 2 * n] = np.round(counts * most / counts.max()).astype(np.uint32)
    return state


@pytest.mark.parametrize("linear", [False, True])
def test_counts_do_not_wrap_around(folder, linear):
    """A checkpoint of an older release has counts just below 2^32; 20,000 more iterations leave the average alone."""
    game = load_game("leduc")
    solver = ExternalMCCFR(AbstractGame(game, cards_of(folder, game)), 0, SamplingOptions(linear=linear))
    solver.step(20_000)
    solver.restore(with_counts_of(solver, 2**32 - 1000))
    before = root_share(solver)
    solver.step(20_000)
    np.testing.assert_allclose(root_share(solver), before, atol=1e-4)


def test_counts_are_halved_at_iterations_that_a_resumed_run_shares(folder):
    """Counts pass 2^31 and are halved at a multiple of 2^30 iterations, whether or not the run was resumed before."""
    game, start = load_game("leduc"), 4 * external.CHECKED - 10_000
    abstract = AbstractGame(game, cards_of(folder, game))
    solver, resumed = ExternalMCCFR(abstract, 0), ExternalMCCFR(abstract, 0)
    solver.step(20_000)
    state = with_counts_of(solver, external.HALVED + 1) | {"iterations": np.asarray(start)}
    solver.restore(state)
    before = root_share(solver)
    solver.step(9_000)
    assert tables(solver)[1].max() > external.HALVED
    resumed.restore(solver.state())
    for one in (solver, resumed):
        one.step(11_000)
        assert external.HALVED / 2 < tables(one)[1].max() < external.HALVED
        np.testing.assert_allclose(root_share(one), before, atol=1e-4)
    np.testing.assert_array_equal(solver.table, resumed.table)


@pytest.mark.parametrize("words", [1, 2])
def test_only_decisions_with_large_counts_are_halved(games, words):
    """Decision by decision, as a loop over the buckets of each would do it."""
    options = SamplingOptions(average=words == 2)
    table = external.RegretTable(games["three rounds"], options)
    rng = np.random.default_rng(2)
    table.table[:] = rng.integers(0, 1000, len(table.table))
    expected, nodes = table.table.copy(), games["three rounds"].betting.nodes
    _, count = places(games["three rounds"], words)
    for node in np.flatnonzero(nodes.actor >= 0).tolist() if words == 2 else []:
        first, end = games["three rounds"].first[node : node + 2]
        for slot in range(int(first), int(end), int(nodes.children[node])):
            mine = count[slot : slot + int(nodes.children[node])]
            if expected[mine].max() >= 900:
                expected[mine] //= 2
    table.halve(900, threads=2)
    np.testing.assert_array_equal(table.table, expected)
    assert words == 1 or 0 < (expected[count] < 450).mean() < 1


def test_deals_of_two_calls_are_those_of_one(games):
    """More than a kernel takes at once, in uneven parts."""
    abstract = games["three rounds"]
    regret, total, _ = naive.external_sampling(abstract, 2**64 - 3, 300)
    solver = ExternalMCCFR(abstract, seed=-3)
    for part in (1, 256, 0, 43):
        solver.step(part)
    found = tables(solver)
    np.testing.assert_allclose(found[0], regret, rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(found[1], total)


@pytest.mark.parametrize("game", ["smallest", "uneven stacks"])
def test_expectations(games, game):
    """From fixed regrets, what walks add is on average what all deals and all actions would add."""
    abstract, deals, size = games[game], 20_000, 250
    rng = np.random.default_rng(3)
    solver = ExternalMCCFR(abstract, seed=8)
    fixed = rng.uniform(-1, 1, abstract.slots).astype(np.float32)
    slots, counts = places(abstract, 2)
    solver.table.view(np.float32)[slots] = fixed
    start = solver.table.copy()
    gained, drawn = np.zeros((2, deals // size, abstract.slots))
    room = solver._workspaces[0]
    for batch in range(deals // size):
        bucket, outcome = room.deal(np.uint64(8), batch * size, size)
        for deal in range(size):
            table = start.copy()
            number, one = batch * size + deal, slice(deal, deal + 1)
            seen = bucket[one], outcome[one], room.share, room.tally, table.view(np.float32), table
            kernels.walk_deals(
                np.uint64(8),
                number,
                solver.regrets.rules,
                room.starts,
                *seen,
                0.0,
                0.0,
                kernels.NOBODY,
                room.queue,
                room.value,
            )
            gained[batch] += table.view(np.float32)[slots] - fixed
            drawn[batch] += table[counts]
    for sums, exact in zip((gained, drawn), naive.expected_external(abstract, fixed.astype(float)), strict=True):
        mean = sums.mean(axis=0) / size
        error = sums.std(axis=0, ddof=1) / size / np.sqrt(len(sums))
        assert np.abs(exact).max() > 0.1
        off, often = np.abs(mean - exact), np.count_nonzero(sums, axis=0) > len(sums) / 2
        assert np.all(off <= 5 * error + np.where(often, 1e-6, 5e-3))  # the error of what is rare is not known
        assert np.mean(off[often] <= 2 * error[often] + 1e-6) > 0.9 and often.sum() > 100


# ── deals ──


def test_deals_are_fair():
    cards = np.empty((60_000, 5), dtype=np.int64)
    kernels.deal_cards(np.uint64(4), 100, 9, cards)
    assert all(len({*row}) == 5 for row in cards.tolist())
    assert cards.min() == 0 and cards.max() == 8
    for place in range(5):
        assert chi_square(Counter(cards[:, place].tolist()), 9) < 8 + 5 * 4
    for a, b in ((0, 1), (1, 4), (3, 2)):
        assert chi_square(Counter(zip(cards[:, a].tolist(), cards[:, b].tolist(), strict=True)), 72) < 71 + 5 * 12
    assert cards[:50].tolist() == [naive.drawn_deal(4, 100 + k, Deck(9, 1), 5) for k in range(50)]
    part = np.empty((10, 5), dtype=np.int64)
    kernels.deal_cards(np.uint64(4), 130, 9, part)
    assert np.array_equal(part, cards[30:40])


def chi_square(counts, cells):
    expected = counts.total() / cells
    assert len(counts) == cells
    return sum((count - expected) ** 2 for count in counts.values()) / expected


def test_a_whole_pack_can_be_dealt():
    cards = np.empty((20_000, 6), dtype=np.int64)
    kernels.deal_cards(np.uint64(1), 0, 6, cards)
    assert np.array_equal(np.sort(cards, axis=1), np.tile(np.arange(6), (20_000, 1)))
    assert chi_square(Counter(map(tuple, cards.tolist())), 720) < 719 + 5 * 38


@pytest.mark.parametrize(
    ("deck", "held", "board"),
    [(Deck(13, 4), 2, 5), (Deck(4, 3), 2, 4), (Deck(5, 2), 2, 3), (Deck(6, 2), 1, 2), (Deck(3, 2), 1, 0)],
    ids=str,
)
def test_who_wins(deck, held, board):
    cards = np.empty((2000, 2 * held + board), dtype=np.int64)
    hands, outcome = np.empty((2000, 2), dtype=np.int64), np.empty(2000, dtype=np.float32)
    kernels.deal_cards(np.uint64(9), 0, deck.size, cards)
    showdown_winners(cards, held, hand_tables(held + board, deck), hands, outcome)
    for row, found, won in zip(cards.tolist(), hands.tolist(), outcome.tolist(), strict=True):
        holes = row[:held], row[held : 2 * held]
        assert found == [deck.hole_index(hole) for hole in holes]
        first, second = (strength([*hole, *row[2 * held :]], deck) for hole in holes)
        assert won == (first > second) - (first < second)
    assert {*outcome.tolist()} == {-1, 0, 1}


SHORT = Deal(Deck(4, 3), 2, (0, 2, 1, 1))
PLANS = {
    "lossless": plan_named("lossless", SHORT.board_cards),
    "each round by itself": plan_named("IR-PHS-PHS 6-6-6-6", SHORT.board_cards),
    "rounds remembered": plan_named("PR-PHS-PHS 4-2-2-2", SHORT.board_cards),
    "classes": replace(plan_named("IR-KE-KO 10-3-3-2", SHORT.board_cards), public=(PublicPlan(2, 4, codes=0),)),
    "classes and codes": replace(
        plan_named("IR-KE-KO 10-3-3-2", SHORT.board_cards), public=(PublicPlan(2, 4, codes=60),)
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_buckets_of_deals(folder, name):
    """Those of each hand are those of its board's row, in whatever order the board was dealt."""
    plan = replace(PLANS[name], bins=12, opponents=3)
    built = build(AbstractionSpec(name, SHORT, plan), folder / name, cache=Features(SHORT, folder / "features").folder)
    assert [this.coded is not None for this in built.rounds] == [False, False, *[name == "classes and codes"] * 2]
    cards = np.empty((500, 8), dtype=np.int64)
    hands, outcome = np.empty((500, 2), dtype=np.int64), np.empty(500, dtype=np.float32)
    kernels.deal_cards(np.uint64(2), 0, SHORT.deck.size, cards)
    showdown_winners(cards, 2, hand_tables(6, SHORT.deck), hands, outcome)
    found = np.empty((500, 4, 2), dtype=np.uint32)
    for r, (this, size) in enumerate(zip(built.rounds, SHORT.board_sizes, strict=True)):
        this.look_up(cards[:, 4 : 4 + size], hands, found[:, r])
        for deal in range(500):
            board = cards[deal, 4 : 4 + size].tolist()
            expected = this.look_up_board(board)[hands[deal]].tolist()
            assert found[deal, r].tolist() == expected
            assert expected[1] == built.bucket(cards[deal, 2:4].tolist(), board)
        assert len(np.unique(found[:, r])) > 0.8 * min(this.buckets, 100)


# ── strategies ──


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    "options", [SamplingOptions(), SamplingOptions(linear=True), SamplingOptions(average=False)], ids=str
)
def test_probabilities(games, options, dtype):
    abstract = games["three rounds"]
    solver = ExternalMCCFR(abstract, 1, options, dtype=dtype)
    solver.step(200)
    regret, total = tables(solver)
    top = np.iinfo(dtype).max
    regret = np.maximum(regret, 0)
    nodes, kinds = abstract.betting.nodes, Counter()
    average, current = solver.average(), solver.current()
    assert average.dtype == current.dtype == dtype
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        rows = slice(int(abstract.first[node]), int(abstract.first[node + 1]))
        shape = -1, int(nodes.children[node])
        for found, *sources in ((average, total, regret), (current, regret)):
            for row, *numbers in zip(*(table[rows].reshape(shape) for table in (found, *sources)), strict=True):
                used = next((place for place, number in enumerate(numbers) if number.sum() > 0), None)
                kinds[len(sources), used] += 1
                expected = 0 * row if used is None else numbers[used] / numbers[used].sum(dtype=float)
                assert np.abs(row / top - expected).max() <= 0.5 / top + 1e-9
                assert used is not None or not row.any()
    # Where nothing was counted, what is regretted counts.
    wanted = {(2, 0), (2, 1), (2, None), (1, 0), (1, None)} - (set() if options.average else {(2, 0)})
    assert set(kinds) == wanted


def test_large_counts():
    """Counts of a long run are whole numbers of 32 bits, and there may be more of them in all."""
    counts = np.array([3_000_000_000, 4_000_000_000, 1], dtype=np.uint32)
    table, shares = np.concatenate([np.zeros(3, dtype=np.uint32), counts]), np.zeros(3, dtype=np.uint16)
    one = np.array([1])
    kernels.quantise(2, True, shares, 0 * one, 3 * one, one, table.view(np.float32), table)
    assert np.abs(shares / TOP - counts / counts.sum(dtype=float)).max() <= 0.5 / TOP + 1e-9


# ── runs ──


def mbb(seen, abstract, shares):
    return seen.exploitability(seen.table_of(abstract, shares)) * 1000 / abstract.game.rules.big_blind


@pytest.fixture(scope="module")
def tiny(folder):
    """A game to be solved, with all of its raises, and the same for walks over all of it."""
    game = no_limit(4, 2, 1, "0 1", "7 7")
    cards = cards_of(folder, game)
    return AbstractGame(game, cards), BucketedGame.with_abstraction(VectorGame(game), cards)


@pytest.mark.parametrize(
    ("options", "threads", "iterations", "bound"),
    [
        (SamplingOptions(linear=True), 1, 1_000_000, 5),
        (SamplingOptions(), 1, 500_000, 20),
        (SamplingOptions(linear=True, prune=0.05), 1, 1_000_000, 10),
        (SamplingOptions(linear=True), 2, 500_000, 20),
    ],
    ids=str,
)
def test_convergence(tiny, options, threads, iterations, bound):
    abstract, seen = tiny
    solver = ExternalMCCFR(abstract, 1, options, threads, dtype=np.uint16)
    before = mbb(seen, abstract, solver.average())
    solver.step(iterations)
    assert solver.iterations == iterations
    assert mbb(seen, abstract, solver.average()) < bound < before / 20


@pytest.mark.parametrize(
    "options",
    [SamplingOptions(), SamplingOptions(linear=True), SamplingOptions(average=False), SamplingOptions(prune=5.0)],
    ids=str,
)
def test_continuation(tiny, options):
    """A run depends on its seed and its length, not on how often it was interrupted."""
    abstract, _ = tiny
    whole, parts, late, other = (ExternalMCCFR(abstract, seed, options) for seed in (11, 11, 12, 13))
    whole.step(2000)
    for part in (1, 599, 3):
        parts.step(part)
    late.restore({name: table.copy() for name, table in parts.state().items()})
    parts.step(1397)
    late.step(1300)
    late.step(97)
    other.step(2000)
    for solver in (parts, late):
        assert solver.iterations == 2000
        for name, table in whole.state().items():
            assert np.array_equal(solver.state()[name], table), name
        assert np.array_equal(solver.average(), whole.average())
        assert (whole.decisions, whole.visits) == (solver.decisions, solver.visits)
    assert not np.array_equal(whole.average(), other.average())


def test_what_cannot_be():
    for prune in (-1.0, np.inf, np.nan):
        with pytest.raises(RunError, match=r"`prune` is .*: use a number of chips, or 0"):
            SamplingOptions(prune=prune)
    game = load_game("leduc")
    with pytest.raises(RunError, match="tilted payoffs weight differently: use only one of the two"):
        require_options(SamplingOptions(equities=True), tilt_game(game, (7.0, 0.0, 0.0, 7.0)))


# ── problems ──


@pytest.fixture(scope="module")
def problem(tiny, folder):
    return AbstractProblem(tiny[0], (folder,))


@pytest.mark.parametrize("habit", OPPONENTS)
@pytest.mark.parametrize("game", ["three rounds", "uneven stacks", "each their own cards"])
def test_habits_are_met(games, game, habit):
    """Exactly, on each deal; where the strategy has not been, it calls."""
    abstract = games[game]
    rng = np.random.default_rng(6)
    shares = rng.integers(0, 256, abstract.slots).astype(np.uint16) * rng.integers(0, 2, abstract.slots, np.uint16)
    won = [
        naive.met(abstract, shares, {"always-call": "c", "always-raise": "rc", "always-fold": "fc"}[habit], dealt)
        for dealt in (naive.Dealt.number(abstract, 2**63, number) for number in range(300))
    ]
    each = np.mean(won, axis=1) * 1000 / 2
    mean, half_width = FixedOpponents(abstract).win_rate(shares, habit, deals=300)
    assert mean == pytest.approx(each.mean(), rel=1e-5)
    assert half_width == pytest.approx(1.96 * each.std(ddof=1) / np.sqrt(300), rel=1e-4)


def test_full_walks_converge(problem, tiny):
    abstract, seen = tiny
    solver = make_solver(problem, "cfr+")
    assert isinstance(solver, Cfr) and isinstance(solver.tables, TreeTables)
    solver.step(200)
    assert solver.average().dtype == np.uint16
    assert mbb(seen, abstract, solver.average()) < 2
    assert sum(evaluator_for(problem).response_values(solver.average())) / 2 < 2 * 2 / 1000


def test_both_ways_find_the_same_value(problem):
    """The value of the game is one number, whoever finds it."""
    found = []
    for name, iterations in (("cfr+", 200), ("external", 300_000)):
        solver = make_solver(problem, name, 1)
        solver.step(iterations)
        found.append(evaluator_for(problem).expected_value(solver.average()))
    assert found[0] == pytest.approx(found[1], abs=0.02)


def test_expected_value_is_that_of_deals(problem):
    """By walks over all boards and hands, and on many deals."""
    rng = np.random.default_rng(2)
    shares = rng.integers(0, 3, problem.abstract.slots).astype(np.uint16)
    nodes, labels, first = problem.abstract.betting.nodes, problem.abstract.betting.labels, problem.abstract.first
    values = []
    for seat in (0, 1):
        both = shares.copy()
        for node in np.flatnonzero(nodes.actor >= 0).tolist():
            count = int(nodes.children[node])
            rows = both[first[node] : first[node + 1]].reshape(-1, count)
            below = labels[nodes.first_child[node] : nodes.first_child[node] + count]
            if nodes.actor[node] != seat:
                rows[:] = 0
            rows[rows.sum(axis=1) == 0, below.index("c")] = 1
        values.append((1 - 2 * seat) * evaluator_for(problem).expected_value(both))
    exact = sum(values) / 2 * 1000 / 2
    mean, half_width = FixedOpponents(problem.abstract).win_rate(shares, "always-call", deals=100_000)
    assert abs(mean - exact) < 2.5 * half_width
    assert half_width < 20 < abs(exact)


def test_too_slow_to_be_walked(problem):
    evaluator = evaluator_for(problem, patience=0.0)
    assert not evaluator.exact and np.isnan(evaluator.expected_value(problem.uniform()))
    assert np.isnan(evaluator.response_values(problem.uniform())).all()
    others = evaluator.opponent_win_rates(problem.uniform())
    assert list(others) == list(OPPONENTS) and others["always-fold"] > 0


def test_too_large_to_be_walked(folder, monkeypatch, tiny):
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 1000.0)
    problem = AbstractProblem(tiny[0], (folder,))
    assert not evaluator_for(problem).exact
    with pytest.raises(RunError, match=r"all boards and hands of tiny takes 0\.\d GB of memory, and .*: use external"):
        make_solver(problem, "cfr")
