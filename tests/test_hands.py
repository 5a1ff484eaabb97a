from itertools import combinations, pairwise

import numpy as np
import pytest
from phevaluator import evaluate_cards

import naive
from kilt.cards import hands_kernels
from kilt.cards.deck import FULL, Deck
from kilt.cards.hands import best_five, category, count_categories, describe_hand, strength, strengths
from kilt.errors import CardError


def random_hands(count, cards, seed=0, deck=FULL):
    return np.argsort(np.random.default_rng(seed).random((count, deck.size)), axis=1)[:, :cards].astype(np.int8)


@pytest.mark.slow
def test_census_of_seven_cards(monkeypatch):
    """All 133,784,560 hands (reference list), which have 4,824 strengths."""
    seen, kernel = [], hands_kernels.count_strengths
    monkeypatch.setattr(
        hands_kernels, "count_strengths", lambda *arguments: seen.append(arguments[-1]) or kernel(*arguments)
    )
    assert list(count_categories(7).values()) == [
        23_294_460,
        58_627_800,
        31_433_400,
        6_461_620,
        6_180_020,
        4_047_644,
        3_473_184,
        224_848,
        41_584,
    ]
    (counts,) = seen
    assert np.count_nonzero(counts) == 4824
    assert counts.sum() == 133_784_560


def test_census_of_five_cards():
    assert list(count_categories(5).values()) == [1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 624, 40]


def test_census_of_three_cards():
    """The order and the odds of three-card poker, as Rhode Island hold'em uses it."""
    assert count_categories(3) == {
        "high card": 16_440,
        "pair": 3_744,
        "flush": 1_096,
        "straight": 720,
        "three of a kind": 52,
        "straight flush": 48,
    }


@pytest.mark.parametrize(("cards", "count"), [(5, 100_000), (6, 100_000), (7, 100_000)])
def test_order_is_that_of_phevaluator(cards, count):
    """Random hands, of which the census above has all; phevaluator counts from 1, the best, to 7462."""
    hands = random_hands(count, cards, seed=cards)
    theirs = np.array([evaluate_cards(*hand) for hand in hands.tolist()])
    assert np.array_equal(7462 - theirs, strengths(hands))


@pytest.mark.parametrize("cards", range(1, 8))
@pytest.mark.parametrize("deck", [FULL, Deck(ranks=5), Deck(ranks=6, suits=3)], ids=["full", "royal", "6x3"])
def test_order_is_that_of_the_naive_twin(cards, deck):
    hands = random_hands(300, cards, seed=cards, deck=deck)
    fast = strengths(hands, deck).tolist()
    slow = [naive.hand_value(hand, deck) for hand in hands.tolist()]
    ranking = {value: place for place, value in enumerate(sorted(set(slow)))}
    expected = [ranking[value] for value in slow]
    places = {value: place for place, value in enumerate(sorted(set(fast)))}
    assert [places[value] for value in fast] == expected


def test_all_hands_of_a_small_deck_keep_the_order_of_the_naive_twin():
    deck = Deck(ranks=4, suits=2)
    for cards in range(1, 8):
        hands = list(combinations(range(deck.size), cards))
        fast = strengths(hands, deck)
        slow = [naive.hand_value(hand, deck) for hand in hands]
        by_slow = sorted(range(len(hands)), key=lambda i: slow[i])
        for a, b in pairwise(by_slow):
            assert (fast[a] == fast[b]) == (slow[a] == slow[b])
            assert fast[a] <= fast[b]


@pytest.mark.parametrize(
    ("cards", "words", "best"),
    [
        ("AsKsQsJsTs2c2d", "straight flush, ace high", "AsKsQsJsTs"),
        ("5s4s3s2sAs", "straight flush, five high", "5s4s3s2sAs"),
        ("6s6h6d6c2s2h", "four of a kind, sixes", "6c6d6h6s2h"),
        ("KsKhKd2c2d2h3s", "full house, kings full of deuces", "KdKhKs2c2d"),
        ("As9s7s4s2sKhKd", "flush, ace high", "As9s7s4s2s"),
        ("AcKdQhJsTc9d8d", "straight, ace high", "AcKdQhJsTc"),
        ("5s4h3d2cAcKdKh", "straight, five high", "5s4h3d2cAc"),
        ("8s8h8dKcQdJh2s", "three of a kind, eights", "8d8h8sKcQd"),
        ("8s8hKdKcQdQh2s", "two pair, kings and queens", "KcKdQdQh8h"),
        ("8s8hKdAcQd3h2s", "pair, eights", "8h8sAcKdQd"),
        ("8s7hKdAcQd3h2s", "high card, ace high", "AcKdQd8s7h"),
    ],
)
def test_words(cards, words, best):
    assert describe_hand(cards) == words
    assert FULL.name(best_five(cards)) == best
    assert category(strength(cards)) == words.split(",")[0]


def test_bad_hands():
    with pytest.raises(CardError, match="8 cards"):
        strength("AsKsQsJsTs9s8s7s")
    with pytest.raises(CardError, match="twice"):
        strength([0, 0, 1, 2, 3])
    with pytest.raises(CardError, match="0 to 51"):
        strengths([[0, 1, 2, 3, 52]])
    with pytest.raises(CardError, match="2 dimensions"):
        strengths([0, 1, 2, 3, 4])
