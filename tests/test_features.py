"""Features of hands on short decks against enumeration, and the published figures on the full one."""

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import naive
from kilt.abstraction import features as module
from kilt.abstraction.features import WHOLE, Deal, Features
from kilt.cards.deck import FULL, Deck
from kilt.cards.equity import hand_strength
from kilt.errors import AbstractionError
from kilt.games import load_game

SHORT = Deal(Deck(4, 3), 2, (0, 2, 1))
DEALS = {
    "short": SHORT,
    "straight flushes": Deal(Deck(5, 3), 2, (0, 2, 1)),
    "four suits": Deal(Deck(3, 4), 2, (0, 1, 1, 1)),
    "a board from the start": Deal(Deck(4, 3), 2, (2, 1)),
    "a round without cards": Deal(Deck(4, 2), 2, (0, 0, 1, 0, 2)),
    "one private card": Deal(Deck(4, 3), 1, (0, 1, 1)),
    "leduc": Deal(Deck(3, 2), 1, (0, 1)),
    "kuhn": Deal(Deck(3, 1), 1, (0,)),
}


RESTARTS = module.OPPONENT_RESTARTS


@pytest.fixture(scope="module", autouse=True)
def few_restarts():
    """Which clusters the opponents are in makes no difference to most of what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "OPPONENT_RESTARTS", 2)
        yield


def every_holding(deal, r):
    """(holding, hand, board): one hand of each holding of a round, on the canonical board."""
    found = deal.holdings((deal.board_sizes[r],))
    holes = [tuple(hand) for hand in deal.deck.holes(deal.hole_cards).tolist()]
    for board in found.boards.tolist():
        numbers, first = np.unique(found.number_hands(board)[1], return_index=True)
        for number, hand in zip(numbers.tolist(), first.tolist(), strict=True):
            if number >= 0:
                yield number, holes[hand], tuple(board)


@pytest.fixture(scope="module", params=DEALS.values(), ids=DEALS.keys())
def features(request):
    return Features(request.param)


def test_strengths_are_those_of_the_naive_twin(features):
    deal = features.deal
    found = features.strengths()
    assert len(found) == len(deal.holdings((deal.board_sizes[-1],)))
    assert deal.top_strength == 2 * len(
        naive.board_strengths(tuple(range(deal.board_sizes[-1] + deal.hole_cards)), deal.deck, deal.hole_cards)
    )
    for number, hand, board in every_holding(deal, len(deal.board_sizes) - 1):
        assert found[number] == naive.board_strengths(tuple(sorted(board)), deal.deck, deal.hole_cards)[hand]


def test_moments_are_those_of_the_naive_twin(features):
    deal = features.deal
    for r in range(len(deal.board_sizes)):
        values, scale = features.moments(r)
        seen = 0
        for number, hand, board in every_holding(deal, r):
            strengths = naive.final_strengths(hand, board, deal.board_sizes, deal.deck)
            assert values[number].tolist() == [sum(strengths), sum(s**2 for s in strengths)]
            assert scale == pytest.approx(1 / len(strengths))
            seen += 1
        assert seen == len(values)


@pytest.mark.parametrize("bins", [2, 7, 50])
def test_histograms_are_those_of_the_naive_twin(features, bins):
    deal = features.deal
    for r in range(len(deal.board_sizes)):
        values, scale = features.histograms(r, bins)
        assert values.shape == (len(deal.holdings((deal.board_sizes[r],))), bins)
        for number, hand, board in every_holding(deal, r):
            strengths = naive.final_strengths(hand, board, deal.board_sizes, deal.deck)
            assert values[number].tolist() == naive.cumulative_histogram(strengths, deal.top_strength, bins)
        np.testing.assert_allclose(values[:, -1] * scale, 1)


def test_roll_outs_count_the_ways_to_deal_on(features):
    deal = features.deal
    hand = tuple(range(deal.deck.size - deal.hole_cards, deal.deck.size))
    for size in {0, 1, *deal.board_sizes}:
        if size <= deal.board_sizes[-1]:
            boards = list(naive.roll_outs(hand, tuple(range(size)), deal.board_sizes, deal.deck))
            assert deal.count_completions(size) == len(boards)
    assert deal.count_completions(deal.board_sizes[-1]) == 1


def test_roll_outs_of_holdem():
    assert Deal().count_completions(0) == 19_600 * 47 * 46
    assert Deal().count_completions(3) == 47 * 46
    assert Deal().top_strength == 1980


def test_the_deal_of_a_game():
    assert Deal.from_game(load_game("leduc")) == Deal(Deck(3, 2), 1, (0, 1))
    assert Deal.from_game(load_game("holdem.limit.2p")) == Deal()


# ── opponent clusters ──


@pytest.mark.parametrize(
    ("deal", "clusters"),
    [(SHORT, 4), (SHORT, 5), (DEALS["a board from the start"], 3), (DEALS["one private card"], 3)],
    ids=str,
)
def test_ochs_of_complete_boards_is_that_of_the_naive_twin(deal, clusters):
    features = Features(deal)
    holes = [tuple(hand) for hand in deal.deck.holes(deal.hole_cards).tolist()]
    members = [[holes[hand] for hand in np.flatnonzero(row)] for row in features.opponent_clusters(clusters)]
    last, lonely = len(deal.board_sizes) - 1, 0
    values, _ = features.ochs(last, clusters)
    for number, hand, board in every_holding(deal, last):
        for cluster, opponents in enumerate(members):
            share = naive.strength_against(hand, board, opponents, deal.deck)
            if share is None:
                lonely, share = lonely + 1, Fraction(1, 2)
            assert values[number, cluster] / WHOLE == pytest.approx(float(share), abs=0.51 / WHOLE)
    if deal.hole_cards == 1:
        assert lonely  # the half of somebody who meets nobody has been seen


@pytest.mark.parametrize("name", ["short", "four suits", "a board from the start", "one private card"])
def test_ochs_of_earlier_rounds_adds_up_that_of_complete_boards(name):
    """Exactly: sums of whole numbers."""
    deal = DEALS[name]
    features = Features(deal)
    last = deal.holdings((deal.board_sizes[-1],))
    complete = features.ochs(len(deal.board_sizes) - 1, 3).values.astype(np.int64)
    rng = np.random.default_rng(1)
    for r in range(len(deal.board_sizes) - 1):
        values, scale = features.ochs(r, 3)
        holdings_here = list(every_holding(deal, r))
        for place in rng.permutation(len(holdings_here))[:40]:
            number, hand, board = holdings_here[place]
            column = deal.deck.hole_index(hand)
            rows = [
                last.number_hands(done)[1][column] for done in naive.roll_outs(hand, board, deal.board_sizes, deal.deck)
            ]
            assert values[number].tolist() == complete[rows].sum(axis=0).tolist()
        np.testing.assert_allclose(
            scale * deal.count_completions(deal.board_sizes[r]), features.ochs(len(deal.board_sizes) - 1, 3).scale
        )


def test_ochs_counts_clusters_by_how_many_different_hands_they_have():
    """The root of their share of the different hands, so that squares of distances are means."""
    features = Features(SHORT)
    members, scale = features.opponent_clusters(4), features.ochs(2, 4).scale
    holes = SHORT.deck.holes().tolist()
    different = [
        {tuple(naive.canonical(holes[h], (2,), SHORT.deck)[0]) for h in np.flatnonzero(row)} for row in members
    ]
    assert sum(map(len, different)) == 16
    np.testing.assert_allclose((scale * WHOLE) ** 2, [len(hands) / 16 for hands in different])


@pytest.mark.parametrize(("deal", "clusters"), [(SHORT, 1), (SHORT, 4), (DEALS["one private card"], 4)], ids=str)
def test_opponents_are_sorted_into_clusters_from_weak_to_strong(deal, clusters):
    features = Features(deal)
    members = features.opponent_clusters(clusters)
    assert set(np.unique(members)) <= {0, 1}
    assert (members.sum(axis=0) == 1).all()
    assert (members.sum(axis=1) > 0).all()
    _, row = deal.holdings((0,)).number_hands(())
    for hands in members:
        assert not {*row[hands > 0]} & {*row[hands == 0]}  # suits do not part hands that are alike
    hs = hand_strength((), None, deal.deck, board_size=deal.board_sizes[-1], hole_cards=deal.hole_cards)
    means = members @ hs / members.sum(axis=1)
    assert means.tolist() == sorted(means.tolist())
    np.testing.assert_array_equal(members, Features(deal).opponent_clusters(clusters))


def test_more_clusters_than_there_are_opponents():
    with pytest.raises(AbstractionError, match="only 16 different hands for 17 clusters of opponents"):
        Features(SHORT).opponent_clusters(17)


@pytest.mark.parametrize("bins", [1, 0, -3])
def test_too_few_bins(bins):
    with pytest.raises(AbstractionError, match=f"{bins} bins cannot distinguish hands: use 2 or more"):
        Features(SHORT).histograms(0, bins)


# ── threads, ticks and the cache ──


def all_tables(features):
    tables = {"strengths": features.strengths()}
    for r in range(len(features.deal.board_sizes)):
        tables[f"moments {r}"] = features.moments(r).values
        tables[f"histograms {r}"] = features.histograms(r, 10).values
        tables[f"ochs {r}"] = features.ochs(r, 4).values
    return tables


def assert_same_tables(found, expected):
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        np.testing.assert_array_equal(found[name], table, err_msg=name)


@pytest.fixture(scope="module")
def tables():
    return all_tables(Features(SHORT))


def forbid_work(monkeypatch):
    def no(*args):
        raise AssertionError("something is computed")

    for name in ("final_strengths", "final_ochs", "find_later"):
        monkeypatch.setattr(module.kernels, name, no)


def test_threads_change_nothing(tables):
    assert_same_tables(all_tables(Features(SHORT, threads=2)), tables)


def test_ticks_tell_what_is_being_made_and_how_far_it_is():
    heard = {}
    Features(SHORT, tick=lambda what, share: heard.setdefault(what, []).append(share)).moments(0)
    assert len(heard) == 3  # strengths, and the rounds before
    for shares in heard.values():
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        assert shares[0] > 0


def test_tables_are_made_once(monkeypatch):
    features = Features(SHORT)
    first = all_tables(features)
    forbid_work(monkeypatch)
    assert_same_tables(all_tables(features), first)


def test_cached_tables_are_read_and_not_made_again(tmp_path, tables, monkeypatch):
    assert_same_tables(all_tables(Features(SHORT, tmp_path)), tables)
    forbid_work(monkeypatch)
    assert_same_tables(all_tables(Features(SHORT, tmp_path)), tables)
    with pytest.raises(AssertionError, match="something is computed"):  # one that is not there
        Features(SHORT, tmp_path).histograms(0, 11)


def test_deals_do_not_share_tables(tmp_path):
    others = [SHORT, Deal(Deck(4, 3), 2, (0, 1, 2)), Deal(Deck(3, 4), 2, (0, 2, 1)), Deal(Deck(4, 3), 1, (0, 2, 1))]
    for deal in others:
        np.testing.assert_array_equal(Features(deal, tmp_path).moments(0).values, Features(deal).moments(0).values)
    assert len(list(tmp_path.iterdir())) == len(others)


def another_version(place):
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps(manifest | {"kilt": "0.0.0"}))


def another_format(place):
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))


def cut_short(place):
    (place / "values.npy").write_bytes((place / "values.npy").read_bytes()[:-8])


def lost(place):
    (place / "values.npy").unlink()


def of_another_shape(place):
    np.save(place / "values.npy", np.zeros(3, dtype=np.int64))


def spoilt_manifest(place):
    (place / "manifest.json").write_text("{")


def manifest_of_nothing(place):
    (place / "manifest.json").write_text(json.dumps({"kind": "feature table", "format": 1}))


def without_manifest(place):
    (place / "manifest.json").unlink()


def manifest_that_is_a_folder(place):
    (place / "manifest.json").unlink()
    (place / "manifest.json").mkdir()


SPOILT = [another_version, another_format, cut_short, lost, of_another_shape, spoilt_manifest, manifest_of_nothing]


@pytest.mark.parametrize("spoil", [*SPOILT, without_manifest, manifest_that_is_a_folder])
def test_tables_that_cannot_be_used_are_made_anew(tmp_path, tables, monkeypatch, spoil):
    Features(SHORT, tmp_path).moments(0)
    (folder,) = tmp_path.iterdir()
    assert {place.name for place in folder.iterdir() if place.is_dir()} == {"strengths", "moments-0", "moments-2"}
    if spoil is another_version:  # so that it shows which table was read
        wrong = np.load(folder / "moments-2" / "values.npy") + 1
        np.save(folder / "moments-2" / "values.npy", wrong)
    spoil(folder / "moments-2")
    features = Features(SHORT, tmp_path)
    np.testing.assert_array_equal(features.moments(1).values, tables["moments 1"])
    forbid_work(monkeypatch)
    np.testing.assert_array_equal(Features(SHORT, tmp_path).moments(1).values, tables["moments 1"])
    assert {place.name for place in folder.iterdir() if place.is_dir()} == {"strengths", "moments-0", "moments-2"}


def test_work_on_tables_leaves_the_cache_as_it_is(tmp_path, tables):
    features = Features(SHORT, tmp_path)
    features.moments(0).values[:] = 0
    np.testing.assert_array_equal(Features(SHORT, tmp_path).moments(0).values, tables["moments 0"])


# ── published figures ──

FOUR = ["4s4h", "6s6h", "JsTs", "KsQs"]  # of [Johanson16 figures 5.2 and 5.3]


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    return Features(Deal(), tmp_path_factory.mktemp("features"), threads=2)


def preflop(table, hand):
    _, row = Deal().holdings((0,)).number_hands(())
    return (table.values * table.scale)[row[FULL.hole_index(FULL.cards(hand))]]


@pytest.fixture(scope="module")
def hundred(full):
    """Histograms of 100 bins; every other column is a histogram of 50, since these are cumulative."""
    return full.histograms(0, 100)


@pytest.mark.long
def test_preflop_moments(full):
    """E[HS] and E[HS²], over all boards and all hands of the opponent."""
    table, top = full.moments(0), full.deal.top_strength
    published = {
        "4s4h": (0.570228, 0.372922),
        "6s6h": (0.632847, 0.437581),
        "JsTs": (0.575279, 0.422842),
        "KsQs": (0.634004, 0.474629),
        "AsAh": (0.852037, 0.737211),
        "5c2h": (0.342846, 0.216763),
    }
    found = {
        hand: (round(float(hs) / top, 6), round(float(square) / top**2, 6))
        for hand in published
        for hs, square in [preflop(table, hand)]
    }
    assert found == published


@pytest.mark.long
def test_earth_movers_distances_before_the_flop(hundred):
    """[Johanson16 figure 5.2]: 50 bins, unit: one bin."""
    table = hundred._replace(values=hundred.values[:, 1::2])
    found = [round(float(np.abs(preflop(table, a) - preflop(table, b)).sum()), 5) for a, b in combinations(FOUR, 2)]
    assert found == [3.10049, 6.21189, 5.14312, 6.46201, 5.28553, 3.10267]


@pytest.mark.long
def test_ochs_distances_before_the_flop(full, hundred, monkeypatch):
    """[Johanson16 figure 5.3], with clusters of kilt's own: those of the paper are garbled in the text copy."""
    monkeypatch.setattr(module, "OPPONENT_RESTARTS", RESTARTS)
    fifty = hundred._replace(values=hundred.values[:, 1::2])
    monkeypatch.setattr(Features, "_histograms", lambda self, r, bins: {(0, 50): fifty}[r, bins])
    members = full.opponent_clusters(8)
    _, row = Deal().holdings((0,)).number_hands(())
    sizes = np.array([len(np.unique(row[hands > 0])) for hands in members])
    assert sizes.sum() == 169
    holes, ochs = FULL.holes(), []
    ranges = [FULL.range(shape) for shape in ("44", "66", "JTs", "KQs")]
    with ThreadPoolExecutor(2) as pool:  # what the others win of them, which is fewer questions than clusters
        strengths = list(pool.map(lambda hands: hand_strength((), hands), ranges))
    for mine, theirs in zip(ranges, strengths, strict=True):
        apart = [(~np.isin(holes, hand).any(axis=1)) for hand in holes[mine > 0]]
        met = members * np.sum(apart, axis=0)
        ochs.append(1 - met @ np.nan_to_num(theirs) / met.sum(axis=1))
    distances = [np.sqrt((sizes / 169) @ (ochs[a] - ochs[b]) ** 2) for a, b in combinations(range(4), 2)]
    np.testing.assert_allclose(distances, [0.066, 0.095, 0.104, 0.117, 0.105, 0.098], atol=0.006)


@pytest.mark.long
def test_earth_movers_distance_of_the_worst_and_the_best_hand(hundred):
    """[Schmid15 figure 2]: 100 bins. The history-aware distance, once both flopped the nuts, is the mean with 0."""
    distance = float(np.abs(preflop(hundred, "5c2h") - preflop(hundred, "AsAh")).sum())
    assert round(distance, 5) == 50.85428
    assert round((distance + 0) / 2, 3) == 25.427
