import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from phevaluator import evaluate_cards

import naive
import written_out
from kilt.cards import edges as edges_module
from kilt.cards import equity_kernels as kernels
from kilt.cards.deck import FULL, Deck
from kilt.cards.edges import edge, edges, pair_edges
from kilt.cards.equity import (
    distribution,
    hand_equity,
    hand_list,
    hand_strength,
    mean_strength,
    rank_hands,
    ranking_workspace,
    strength_histogram,
    strengths_on_boards,
)
from kilt.cards.hands import hand_tables
from kilt.cards.isomorphism import Isomorphism
from kilt.errors import CardError
from kilt.lanes import LANES

FOUR = ["4s4h", "6s6h", "JsTs", "KsQs"]  # the hands of [Johanson16 figures 5.2 and 5.3]


def row(hand, deck=FULL):
    return deck.hole_index(deck.cards(hand))


@pytest.fixture(scope="module")
def preflop():
    """The distribution of HS over all boards, for all private hands."""
    return written_out.distribution(())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hand", "mean", "square"),
    [
        ("4s4h", 0.570228, 0.372922),
        ("6s6h", 0.632847, 0.437581),
        ("JsTs", 0.575279, 0.422842),
        ("KsQs", 0.634004, 0.474629),
        ("AsAh", 0.852037, 0.737211),
        ("5c2h", 0.342846, 0.216763),
    ],
)
def test_preflop_strength(preflop, hand, mean, square):
    assert round(float(mean_strength(preflop)[row(hand)]), 6) == mean
    assert round(float(mean_strength(preflop, power=2)[row(hand)]), 6) == square


@pytest.mark.slow
def test_earth_movers_distances_before_the_flop(preflop):
    """[Johanson16 figure 5.2]: in one dimension, the area between the cumulative histograms; unit: one bin."""
    below = strength_histogram(preflop, 50).cumsum(axis=-1)
    found = [
        round(float(np.abs(below[row(a)] - below[row(b)]).sum()), 5) for i, a in enumerate(FOUR) for b in FOUR[i + 1 :]
    ]
    assert found == [3.10049, 6.21189, 5.14312, 6.46201, 5.28553, 3.10267]


@pytest.mark.slow
def test_earth_movers_distance_of_the_worst_and_the_best_hand(preflop):
    """[Schmid15 figure 2]; the history-aware distance of these hands, once both flopped the nuts, is half of it."""
    below = strength_histogram(preflop, 100).cumsum(axis=-1)
    distance = float(np.abs(below[row("5c2h")] - below[row("AsAh")]).sum())
    assert round(distance, 5) == 50.85428
    assert round(distance / 2, 3) == 25.427


@pytest.mark.slow
def test_there_are_1950_distinct_river_strengths():
    boards = Isomorphism((5,))
    seen = np.zeros(1981, dtype=bool)
    for some in np.array_split(np.arange(boards.size), 32):
        rows = strengths_on_boards(boards.unindex(some).astype(np.int64))
        seen |= np.bincount(rows.ravel() + 1, minlength=1982)[1:] > 0
    assert seen.sum() == 1950


@pytest.mark.parametrize("board", ["2c7dTh", "AsAhAdAcKs", "2s3s4s5s7s", "AhKhQh2c2d"])
def test_ranking_is_that_of_the_naive_twin(board):
    cards = FULL.cards(board)
    deck = Deck(ranks=6) if len(cards) == 3 else FULL
    if len(cards) == 3:
        cards = deck.cards("9cTdJh")
    ranking = rank_hands(cards, deck)
    holes = deck.holes().tolist()
    live = [h for h, hole in enumerate(holes) if not set(hole) & set(cards)]
    assert sorted(ranking.order.tolist()) == live
    assert all((ranking.strength[h] >= 0) == (h in set(live)) for h in range(len(holes)))
    values = [naive.hand_value([*holes[h], *cards], deck) for h in ranking.order]
    assert values == sorted(values)
    levels = [int(ranking.strength[h]) for h in ranking.order]
    pairs = zip(zip(levels, values, strict=True), zip(levels[1:], values[1:], strict=True), strict=False)
    assert all((a[0] == b[0]) == (a[1] == b[1]) for a, b in pairs)


@pytest.mark.parametrize("deck", [Deck(ranks=4), Deck(ranks=5, suits=3)], ids=["4x4", "5x3"])
def test_weighted_strength_is_that_of_the_naive_twin(deck):
    rng = np.random.default_rng(5)
    holes = deck.holes().tolist()
    for _ in range(3):
        board = rng.choice(deck.size, 5, replace=False).tolist()
        weights = rng.random(len(holes)) * (rng.random(len(holes)) < 0.7)
        won = naive.showdown(board, deck, holes, weights)
        met = naive.compatible(board, holes, weights)
        expected = [0.5 + w / (2 * m) if m else np.nan for w, m in zip(won, met, strict=True)]
        np.testing.assert_allclose(hand_strength(board, weights, deck), expected, atol=1e-12)


def test_roll_outs_to_earlier_rounds_are_those_of_the_naive_twin():
    deck = Deck(ranks=3)
    rng = np.random.default_rng(7)
    holes = [tuple(hand) for hand in deck.holes().tolist()]
    weights = rng.random(len(holes))
    narrow = weights * (np.arange(len(holes)) % 11 == 3)
    for board in [(), (0,), (3, 8, 11)]:
        fast, few = (hand_strength(board, which, deck, board_size=4) for which in (weights, narrow))
        uniform = hand_strength(board, None, deck, board_size=4)
        for hand in rng.choice(len(holes), 4, replace=False):
            hole = holes[hand]
            for found, opponents in ((fast, weights), (uniform, np.ones(len(holes))), (few, narrow)):
                if set(hole) & set(board):
                    assert np.isnan(found[hand])
                    continue
                held = [(other, w) for other, w in zip(holes, opponents, strict=True) if w]
                sums = naive.equity(hole, held, board, deck, board_size=4)
                assert found[hand] == pytest.approx((sums[0] + sums[1] / 2) / sum(sums), abs=1e-12)


def test_suits_alike_and_suits_apart_agree():
    """A range that does not tell suits apart goes through canonical boards; a hair's difference, through all boards."""
    deck = Deck(ranks=4)
    weights = deck.range("AA,KQs,JJ:0.5")
    nudged = weights.copy()
    nudged[0] += 1e-13
    np.testing.assert_allclose(hand_strength((), weights, deck), hand_strength((), nudged, deck), atol=1e-9)


def test_distribution_agrees_with_the_mean():
    board = FULL.cards("Ah7d2c5s")
    counts = distribution(board)
    np.testing.assert_allclose(mean_strength(counts), hand_strength(board), atol=1e-12)
    shares = strength_histogram(counts, 50)
    live = counts.sum(axis=1) > 0
    np.testing.assert_allclose(shares[live].sum(axis=1), 1)
    assert np.isnan(shares[~live]).all()


def test_strength_of_one_card_hands():
    """Leduc: a pair beats everything, and the other card of the board's rank blocks."""
    deck = Deck(ranks=3, suits=2)
    hs = hand_strength(deck.cards("Kh"), None, deck, board_size=1, hole_cards=1)
    np.testing.assert_allclose(hs, [1 / 8, 1 / 8, np.nan, 1, 5 / 8, 5 / 8])


def test_aces_against_kings():
    """A figure that is in every book: 82.36% wins, 0.54% ties."""
    result = hand_equity(FULL.cards("AsAh"), FULL.cards("KsKh"))
    assert (round(100 * result.win, 2), round(100 * result.tie, 2)) == (82.36, 0.54)


def test_duels_are_those_of_phevaluator():
    rng = np.random.default_rng(11)
    for known in (3, 3, 4, 5):
        cards = rng.choice(52, 4 + known, replace=False).tolist()
        mine, theirs, board = cards[:2], cards[2:4], cards[4:]
        rest = [card for card in range(52) if card not in cards]
        outcomes = [0, 0, 0]
        for new in combinations(rest, 5 - known):
            a, b = (evaluate_cards(*hand, *board, *new) for hand in (mine, theirs))  # lower is better
            outcomes[0 if a < b else 1 if a == b else 2] += 1
        np.testing.assert_allclose(hand_equity(mine, theirs, board), np.array(outcomes) / sum(outcomes))


def test_duel_against_a_range_is_that_of_the_naive_twin():
    board, hand = FULL.cards("Ah7d2c9s"), FULL.cards("AsQs")
    weights = FULL.range("KK,AK,98s:0.25")
    opponents = [
        (tuple(h), w) for h, w in zip(FULL.holes().tolist(), weights, strict=True) if w and not set(h) & set(board)
    ]
    sums = naive.equity(hand, opponents, board, FULL)
    np.testing.assert_allclose(hand_equity(hand, weights, board), np.array(sums) / sum(sums))
    assert hand_equity(hand, weights, board).equity == pytest.approx(
        hand_strength(board, weights)[FULL.hole_index(hand)]
    )


def test_bad_input():
    with pytest.raises(CardError, match="twice"):
        hand_strength([1, 1, 2])
    with pytest.raises(CardError, match="at most 5"):
        hand_strength([0, 1, 2, 3, 4, 5])
    with pytest.raises(CardError, match="no hand left"):
        hand_equity(FULL.cards("AsAh"), FULL.range("AsAd"))
    for hand in ("As", "AsAhAd"):
        with pytest.raises(CardError, match="two different cards"):
            hand_equity(FULL.cards(hand), FULL.cards("KsKh"))
    with pytest.raises(CardError, match="two different cards"):
        hand_equity(FULL.cards("AsAh"), (5, 5))
    with pytest.raises(CardError, match="0 to 51"):
        hand_strength([60, 60])
    with pytest.raises(CardError, match="7 are needed"):
        rank_hands([0, 1, 2], Deck(2, 2))
    with pytest.raises(CardError, match="3 weights"):
        hand_strength([0, 1, 2], np.ones(3))
    with pytest.raises(CardError, match="twice"):
        hand_equity(FULL.cards("AsAh"), FULL.cards("KsKh"), FULL.cards("As2c3d"))
    for board in ("2c", "2c3d", "2c3d4c5d6c7d"):
        with pytest.raises(CardError, match="a board of hold'em has 0, 3, 4 or 5"):
            hand_equity(FULL.cards("AsAh"), FULL.cards("KsKh"), FULL.cards(board))


SIDES = (
    ((2,), np.uint16),
    ((2,), np.uint16),
    ((2, 2), np.uint8),
    ((2, 3), np.float32),
)  # shapes and types of `PlayerRankings`


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_several_showdowns_at_once(dtype):
    """`LANES` reaches side by side give what each gives alone."""
    rng, hands = np.random.default_rng(4), hand_list(FULL, 2)
    tables, ranking = hand_tables(7, FULL), ranking_workspace(FULL, 2, 5)
    for _ in range(5):
        board = rng.permutation(52)[:5].astype(np.int64)
        groups = kernels.rank_board(board, hands, tables, ranking)
        live = ranking.order[: ranking.ends[groups - 1]].copy()
        reach = rng.random((LANES, 1326)).astype(dtype)
        side_by_side = np.ascontiguousarray(reach[:, live].T).reshape(-1)
        result, whole = np.zeros((2, LANES * len(live)), dtype)
        kernels.showdown_values_of_ranges(ranking, groups, side_by_side, np.zeros(LANES * 52, dtype), result, whole)
        value, met = np.empty((2, 1326))
        for lane in range(LANES):
            alone = reach[lane].astype(np.float64)
            kernels.showdown_values(ranking, groups, alone, value)
            kernels.compatible_weights(live, hands.cards, alone, ranking.by_card, met)
            close = {"atol": 1e-9 if dtype == np.float64 else 0.01}
            np.testing.assert_allclose((result - whole)[lane::LANES], value[live], **close)
            np.testing.assert_allclose(whole[lane::LANES], met[live], **close)


def test_showdowns_between_ranges():
    """Players who may hold other hands: what hands win and tie with is that of all hands whose reach is 0 elsewhere."""
    rng, hands = np.random.default_rng(46), hand_list(FULL, 2)
    tables, ranking = hand_tables(7, FULL), ranking_workspace(FULL, 2, 5)
    sides = kernels.PlayerRankings(
        *(np.empty((*shape, 1326), kind) for shape, kind in SIDES), np.empty(1326, np.uint16)
    )
    for share in (0.9, 0.2, 0.002):
        groups = kernels.rank_board(rng.permutation(52)[:5].astype(np.int64), hands, tables, ranking)
        held = rng.random((2, 1326)) < share
        mine, theirs = kernels.split_by_player(ranking, groups, *held, False, sides)
        live = ranking.order[: ranking.ends[groups - 1]]
        own, other = (live[may[live]] for may in held)
        assert np.array_equal(sides.order[0, :mine], own) and np.array_equal(sides.order[1, :theirs], other)
        reach = np.where(held[1], rng.random((LANES, 1326)), 0.0)
        lanes = np.append(reach[:, other], np.zeros((LANES, 1)), axis=1).T.ravel()
        result, whole, tied = np.zeros((3, LANES * mine))
        kernels.showdown_values_by_player(sides, groups, False, lanes, np.zeros(LANES * 52), result, whole)
        kernels.ties_between(sides, groups, False, lanes, np.zeros(LANES * 52), tied)
        value, met = np.empty((2, 1326))
        free, alike = hands.bits[own][:, None] & hands.bits == 0, ranking.strength[own][:, None] == ranking.strength
        for lane in range(LANES):
            kernels.showdown_values(ranking, groups, reach[lane], value)
            kernels.compatible_weights(live, hands.cards, reach[lane], ranking.by_card, met)
            np.testing.assert_allclose((result - whole)[lane::LANES], value[own], atol=1e-9)
            np.testing.assert_allclose(whole[lane::LANES], met[own], atol=1e-9)
            np.testing.assert_allclose(tied[lane::LANES], (free & alike) @ reach[lane], atol=1e-9)


@pytest.mark.parametrize("board", [(), (0, 7), (0, 7, 3), (0, 7, 3, 10)])
def test_edges(board):
    """All hands against one, and one against one, beside all ways to complete the board one by one."""
    deck, opponent = Deck(4, 3), (2, 9)
    found = edges(opponent, board, deck, board_size=4)
    for hand in combinations(range(deck.size), 2):
        place = deck.hole_index(hand)
        if {*hand} & {*opponent, *board}:
            assert found[place] == 0
        elif not board or place % 5 == 0:
            won = naive.edge(hand, opponent, board, deck, 4) if board else edge(hand, opponent, (), deck, board_size=4)
            assert found[place] == pytest.approx(won, abs=1e-14)
            assert edge(hand, opponent, board, deck, board_size=4) == pytest.approx(won, abs=1e-14)
    if not board:
        assert pair_edges(deck, 2, 4)[:, deck.hole_index(opponent)] == pytest.approx(found, abs=1e-14)


def test_edges_of_pairs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("KILT_CACHE", str(tmp_path))
    deck = Deck(5, 4)
    made = pair_edges(deck, 2, 3)
    assert made[:, 17] == pytest.approx(edges(deck.holes()[17].tolist(), (), deck, board_size=3), abs=1e-14)
    pair_edges.cache_clear()
    assert np.array_equal(pair_edges(deck, 2, 3), made)
    assert len([place for place in tmp_path.iterdir() if not place.name.startswith(".")]) == 1


def test_edges_are_made_once_by_processes_that_want_them_at_once(tmp_path, monkeypatch):
    """Each waits at a barrier until all find no table; one makes it, and all have the same."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path))
    deck, begin, wanted = Deck(5, 4), threading.Barrier(4), []
    real, make = edges_module._kept, edges_module._pair_edges

    def kept(place):
        try:
            return real(place)
        finally:
            if not begin.broken and begin.n_waiting < 4 and threading.current_thread() not in wanted:
                wanted.append(threading.current_thread())
                begin.wait(60)

    monkeypatch.setattr(edges_module, "_kept", kept)
    made = []
    monkeypatch.setattr(edges_module, "_pair_edges", lambda *args: made.append(args) or make(*args))
    with ThreadPoolExecutor(4) as pool:
        tables = [*pool.map(lambda _: pair_edges.__wrapped__(deck, 2, 3), range(4))]
    assert len(made) == 1 and all(np.array_equal(table, tables[0]) for table in tables)
