from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kilt.cards.deck import FULL, Deck
from kilt.cards.isomorphism import Isomorphism
from kilt.cards.isomorphism_kernels import index_one, unindex_one
from kilt.errors import CardError
from kilt.jit import kernel
from naive import all_hands, canonical, rename, rounds

# Waugh 2013 gives the first four; the others count hands whose board is one set, and boards alone.
SIZES = {
    (2,): 169,
    (2, 3): 1286792,
    (2, 3, 1): 55190538,
    (2, 3, 1, 1): 2428287420,
    (2, 4): 13960050,
    (2, 5): 123156254,
    (3,): 1755,
    (3, 1): 63193,
    (3, 1, 1): 2554656,
    (4,): 16432,
    (5,): 134459,
}

SHORT = [Deck(5, 4), Deck(3, 2), Deck(13, 1), Deck(6, 3)]
CASES = [Isomorphism(layout) for layout in [*SIZES, (7,), (3, 4), (1,) * 7, (1, 2, 3)]] + [
    Isomorphism(layout, deck)
    for deck in SHORT
    for layout in [(2,), (2, 3), (1, 1, 2), (2, 3, 1, 1), (1,) * 6, (7,)]
    if sum(layout) <= deck.size
]


@pytest.mark.parametrize(("layout", "size"), SIZES.items())
def test_size(layout, size):
    assert Isomorphism(layout).size == size


@pytest.mark.parametrize(
    ("layout", "deck"),
    [
        ((2,), FULL),
        ((3,), FULL),
        ((1, 1), FULL),
        ((2, 2), Deck(4, 4)),
        ((1, 2, 1), Deck(3, 4)),
        ((4,), Deck(5, 4)),
        ((2, 1, 1), Deck(6, 3)),
        ((2, 3, 1), Deck(3, 2)),
        ((2, 3, 1, 1), Deck(4, 2)),
        ((1,) * 6, Deck(3, 2)),
        ((3, 4), Deck(13, 1)),
        ((1,), Deck(1, 1)),
        ((2, 2), Deck(1, 4)),
    ],
    ids=str,
)
def test_every_hand_against_the_twin(layout, deck):
    isomorphism = Isomorphism(layout, deck)
    hands = list(all_hands(layout, deck))
    forms = [tuple(canonical(hand, layout, deck)) for hand in hands]
    indices = isomorphism.index(np.array(hands)).tolist()

    pairs = set(zip(forms, indices, strict=True))
    assert len(pairs) == len(set(forms)) == len(set(indices))  # equal forms, equal indices
    assert set(indices) == set(range(isomorphism.size))  # without gaps

    weights = Counter(indices)
    assert isomorphism.orbit(range(isomorphism.size)).tolist() == [weights[i] for i in range(isomorphism.size)]


@pytest.mark.parametrize("layout", [(2,), (3,), (5,), (3, 1, 1), (2, 3)], ids=str)
def test_orbits_cover_the_deck(layout):
    isomorphism = Isomorphism(layout)
    left, hands = FULL.size, 1
    for cards in layout:
        hands *= comb(left, cards)
        left -= cards
    orbits = isomorphism.orbit(np.arange(isomorphism.size))
    assert orbits.sum() == hands
    assert set(orbits.tolist()) <= {1, 4, 6, 12, 24}


@given(data=st.data(), isomorphism=st.sampled_from(CASES))
@settings(max_examples=200)
def test_round_trip_from_an_index(data, isomorphism):
    index = data.draw(st.integers(0, isomorphism.size - 1))
    hand = isomorphism.unindex(index).tolist()
    assert isomorphism.index(hand) == index
    assert hand == [card for cards in rounds(hand, isomorphism.layout) for card in cards]


@pytest.mark.parametrize("isomorphism", CASES, ids=lambda i: f"{i.layout} of {i.deck.ranks}x{i.deck.suits}")
def test_round_trip_of_many(isomorphism):
    indices = np.linspace(0, isomorphism.size - 1, 20_000).astype(np.int64)
    hands = isomorphism.unindex(indices)
    assert (isomorphism.index(hands) == indices).all()


@given(data=st.data(), isomorphism=st.sampled_from(CASES))
@settings(max_examples=300)
def test_renaming_suits_and_reordering_rounds_change_nothing(data, isomorphism):
    layout, deck = isomorphism.layout, isomorphism.deck
    hand = data.draw(st.permutations(range(deck.size)))[: isomorphism.cards]
    renamed = rename(hand, data.draw(st.permutations(range(deck.suits))), deck)
    other = [card for cards in rounds(renamed, layout) for card in data.draw(st.permutations(cards))]
    index = isomorphism.index(hand)
    assert 0 <= index < isomorphism.size
    assert isomorphism.index(other) == index
    assert canonical(isomorphism.unindex(index).tolist(), layout, deck) == canonical(hand, layout, deck)
    forms = {tuple(rounds(rename(hand, suits, deck), layout)) for suits in permutations(range(deck.suits))}
    assert isomorphism.orbit(index) == len(forms)


def test_shapes_and_types():
    flop = Isomorphism((2, 3))
    indices = np.arange(24).reshape(2, 3, 4)
    hands = flop.unindex(indices)
    assert hands.shape == (2, 3, 4, 5)
    assert hands.dtype == np.int8
    assert (flop.index(hands) == indices).all()
    assert (flop.index(hands.astype(np.uint64)) == indices).all()
    assert (flop.index(np.asfortranarray(hands)) == indices).all()
    assert flop.orbit(indices).shape == (2, 3, 4)
    assert flop.index(np.zeros((0, 5), dtype=np.int8)).shape == (0,)
    assert isinstance(flop.index(hands[0, 0, 0].tolist()), int)
    assert flop.index(hands[0, 0, 1]).shape == ()


def test_other_kernels_can_call_for_one_hand():
    @kernel
    def there_and_back(index, hand, tables):
        unindex_one(index, hand, tables)
        return index_one(hand, tables)

    turn = Isomorphism((2, 3, 1))
    hand = np.zeros(turn.cards, dtype=np.int8)
    assert there_and_back(turn.size - 1, hand, turn.tables) == turn.size - 1
    assert hand.tolist() == turn.unindex(turn.size - 1).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Isomorphism((2,)).index([7, 7]), "3s3s has a card twice"),
        (
            lambda: Isomorphism((2, 3)).index([[0, 1, 2, 3, 4], [0, 1, 2, 3, 0]]),
            "2c2d2h2s2c has a card twice",
        ),
        (lambda: Isomorphism((2,)).index([0, 52]), "card 52 is out of range: use 0 to 51"),
        (lambda: Isomorphism((2,)).index([-1, 5]), "card -1 is out of range"),
        (lambda: Isomorphism((2,), Deck(3, 2)).index([0, 6]), "card 6 is out of range: use 0 to 5"),
        (lambda: Isomorphism((2,)).index([0, 300]), "card 300 is out of range"),
        (lambda: Isomorphism((2,)).index([0.0, 1.0]), "type float64"),
        (lambda: Isomorphism((2,)).index([0, 1, 2]), "a hand of 3 cards, but the layout (2,) has 2"),
        (lambda: Isomorphism((2,)).index([]), "a hand of 0 cards"),
        (lambda: Isomorphism((2,)).unindex(169), "index 169 is out of range: use 0 to 168"),
        (lambda: Isomorphism((2,)).unindex([0, -1]), "index -1 is out of range"),
        (lambda: Isomorphism((2,)).orbit(169), "index 169 is out of range"),
        (lambda: Isomorphism((2, 5), Deck(3, 2)), "has 7 cards, but at most 6 of this deck's 6"),
        (lambda: Isomorphism((4, 3, 1)), "has 8 cards, but at most 7 of this deck's 52"),
        (lambda: Isomorphism((2, 0)), "has a round without cards"),
        (lambda: Isomorphism(()), "has a round without cards"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(CardError) as caught:
        call()
    assert message in str(caught.value)
