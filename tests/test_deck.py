import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kilt.cards.deck import FULL, RANKS, SUITS, Deck
from kilt.errors import CardError


@given(st.lists(st.integers(0, 51), max_size=9, unique=True))
def test_cards_are_read_as_they_are_written(cards):
    assert FULL.cards(FULL.name(cards)) == tuple(cards)


@pytest.mark.parametrize("text", ["AsKh", "As Kh", "As,Kh", "ASkh", "asKH"])
def test_spellings_of_cards(text):
    assert FULL.cards(text) == (51, 46)


def test_ten_may_be_written_with_two_digits():
    assert FULL.cards("10s10h") == FULL.cards("TsTh")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Zs", "unknown card 'Zs'"),
        ("A", "unknown card 'A'"),
        ("AsAs", "As is there twice"),
        ("AsK", "unknown card 'K'"),
    ],
)
def test_bad_cards(text, complaint):
    with pytest.raises(CardError, match=complaint):
        FULL.cards(text)


def test_dead_cards_and_counts():
    with pytest.raises(CardError, match="in use already"):
        FULL.cards("As", dead=[51])
    with pytest.raises(CardError, match="3 cards, but 2 are needed"):
        FULL.cards("AsKsQs", 2)


def test_short_decks_keep_the_highest_ranks_and_last_suits():
    deck = Deck(ranks=3, suits=2)
    assert [FULL.names[card] for card in deck.full] == list(deck.names) == ["Qh", "Qs", "Kh", "Ks", "Ah", "As"]
    with pytest.raises(CardError, match="14 ranks"):
        Deck(ranks=14)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_holes_are_numbered_by_hole_index(count):
    deck = Deck(ranks=5)
    holes = deck.holes(count)
    assert [deck.hole_index(hand) for hand in holes.tolist()] == list(range(len(holes)))


SIZES = [
    ("AA", 6),
    ("AKs", 4),
    ("AKo", 12),
    ("AK", 16),
    ("KA", 16),
    ("AsKh", 1),
    ("QQ+", 18),
    ("ATs+", 16),
    ("T9o+", 12),
    ("99-66", 24),
    ("66-99", 24),
    ("A5s-A2s", 16),
    ("KQs:0.5", 2),
    ("random", 1326),
    ("AA,KK AKs", 16),
    ("22+,AA", 78),
    ("AKs:0.5,AKs:0.5,AsKs:0.50", 2),
]


@pytest.mark.parametrize(("text", "hands"), SIZES)
def test_ranges(text, hands):
    assert FULL.range(text).sum() == hands


def test_all_shapes_make_up_the_deck():
    shapes = [a + b + s for i, a in enumerate(RANKS) for b in RANKS[:i] for s in "so"] + [r + r for r in RANKS]
    assert len(shapes) == 169
    assert np.array_equal(sum(FULL.range(shape) for shape in shapes), np.ones(1326))


def test_ranges_of_short_decks():
    assert Deck(ranks=5, suits=2).range("TT+").sum() == 5
    with pytest.raises(CardError, match="ranks TJQKA"):
        Deck(ranks=5).range("99")


@pytest.mark.parametrize(
    "text", ["", " ", "AKx", "A", "AAs", "AK-QJ", "A2s-A5o", "KQs:2", "KQs:x", "AsAs", "A2s-AA", "AK+:", "hello"]
)
def test_bad_ranges(text):
    if text == "AK+:":  # an empty weight is a whole one
        assert FULL.range(text).sum() == 16
        return
    with pytest.raises(CardError):
        FULL.range(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AA,AA:0.2", "'AA:0.2' gives AdAc the weight 0.2, and 'AA' gives it 1: give each hand one weight"),
        ("22+:0.5,KQ,QQ+", "'QQ+' gives QdQc the weight 1, and '22+:0.5' gives it 0.5"),
        ("AKs:0.5,AKo,AsKs", "'AsKs' gives AsKs the weight 1, and 'AKs:0.5' gives it 0.5"),
        ("random,72o:0", "the weight 0"),
    ],
)
def test_a_hand_with_two_weights_is_refused(text, said):
    with pytest.raises(CardError, match=re.escape(said)):
        FULL.range(text)


def test_suits_of_a_range_are_alike():
    weights = FULL.range("QQ+,AKs,T9o")
    for suit in SUITS:
        assert weights[FULL.hole_index(FULL.cards(f"A{suit}K{suit}"))] == 1
