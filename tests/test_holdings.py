"""Holdings, the boards they lie on, and how any board finds its canonical one."""

from collections import Counter
from itertools import combinations
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kilt.abstraction import holdings_kernels
from kilt.abstraction.holdings import Holdings, holdings
from kilt.cards.boards import (
    board_index,
    canonical_boards,
    card_permutations,
    count_dealt_boards,
    hand_permutations,
    suit_symmetries,
)
from kilt.cards.boards_kernels import find_canonical_board, number_hands
from kilt.cards.deck import FULL, Deck
from naive import all_hands, canonical, rename, rounds

SMALL = [  # dealt, deck, private cards
    ((0,), Deck(3, 4), 2),
    ((3,), Deck(3, 4), 2),
    ((2, 1), Deck(3, 4), 2),
    ((2, 1, 1), Deck(3, 3), 2),
    ((4,), Deck(3, 3), 2),
    ((1, 2), Deck(4, 3), 2),
    ((0, 2), Deck(4, 3), 2),
    ((2, 1), Deck(6, 2), 2),
    ((2, 1), Deck(8, 1), 2),
    ((1, 1), Deck(4, 4), 1),
    ((2,), Deck(2, 4), 3),
]
LARGER = [
    ((3,), FULL, 2),
    ((3, 1), Deck(8, 4), 2),
    ((4,), Deck(8, 4), 2),
    ((2, 1, 1), Deck(5, 4), 2),
    ((3, 1, 1), Deck(5, 3), 2),
    ((1, 2), Deck(9, 4), 1),
]


def deals(dealt, deck, hole_cards):
    """How many ways there are to deal a board and one hand."""
    left = np.concatenate([[deck.size], deck.size - np.cumsum(dealt)]).tolist()
    return prod(comb(now, new) for now, new in zip(left, [*dealt, hole_cards], strict=True))


def numbers_of_all(found):
    """{hand and board, the board's cards as dealt: its holding}."""
    holes = [tuple(hand) for hand in found.deck.holes(found.hole_cards).tolist()]
    numbers = {}
    for board in all_hands(found.dealt, found.deck):
        _, row = found.number_hands(board)
        numbers |= {(*hand, *board): number for hand, number in zip(holes, row.tolist(), strict=True) if number >= 0}
    return numbers


@pytest.mark.parametrize(
    ("dealt", "size"), [((0,), 169), ((3,), 1_286_792), ((4,), 13_960_050), ((5,), 123_156_254)], ids=str
)
def test_numbers_of_holdings(dealt, size):
    """As counted by Waugh 2013 and, for boards that are sets, by `Isomorphism`."""
    assert len(Holdings(dealt, FULL, 2)) == size


@pytest.mark.parametrize("dealt", [(0,), (3,), (4,)], ids=str)
def test_weights_add_up_to_all_deals_of_the_full_deck(dealt):
    found = Holdings(dealt, FULL, 2)
    assert found.weights.sum() == deals(dealt, FULL, 2)
    assert found.weights.min() >= 1
    assert found.weights.max() <= 24


@pytest.mark.parametrize(("dealt", "deck", "hole_cards"), SMALL, ids=str)
def test_hands_are_one_holding_exactly_if_renaming_suits_makes_them_equal(dealt, deck, hole_cards):
    found, layout = Holdings(dealt, deck, hole_cards), (hole_cards, *dealt)
    numbers = numbers_of_all(found)
    assert len(numbers) == deals(dealt, deck, hole_cards)
    forms = {cards: tuple(canonical(cards, layout, deck)) for cards in numbers}
    pairs = {(forms[cards], number) for cards, number in numbers.items()}
    assert len(pairs) == len(set(forms.values())) == len(found)  # one number for each form, one form for each number
    assert {number for _, number in pairs} == set(range(len(found)))

    weights = Counter(numbers.values())
    assert found.weights.tolist() == [weights[number] for number in range(len(found))]


@pytest.mark.parametrize(("dealt", "deck", "hole_cards"), SMALL, ids=str)
def test_the_row_of_a_board_has_the_hands_that_share_no_card_with_it(dealt, deck, hole_cards):
    found, holes = holdings(dealt, deck, hole_cards), deck.holes(hole_cards).tolist()
    for board in all_hands(dealt, deck):
        _, row = found.number_hands(board)
        assert [bool({*hand} & {*board}) for hand in holes] == (row < 0).tolist()


@pytest.mark.parametrize(("dealt", "deck", "hole_cards"), SMALL, ids=str)
def test_holdings_of_a_board_stand_together(dealt, deck, hole_cards):
    found = holdings(dealt, deck, hole_cards)
    for number, board in enumerate(found.boards.tolist()):
        same, row = found.number_hands(board)
        assert same == number
        assert sorted({*row[row >= 0].tolist()}) == list(range(*found.tables.first[number : number + 2]))


@given(data=st.data(), case=st.sampled_from(LARGER))
@settings(max_examples=150)
def test_renaming_suits_and_reordering_rounds_change_no_holding(data, case):
    dealt, deck, hole_cards = case
    found = holdings(*case)
    cards = data.draw(st.permutations(range(deck.size)))[: hole_cards + sum(dealt)]
    renamed = rename(cards, data.draw(st.permutations(range(deck.suits))), deck)
    layout = (hole_cards, *dealt)
    other = [card for part in rounds(renamed, layout) for card in data.draw(st.permutations(part))]
    (board, row), (other_board, other_row) = (found.number_hands(some[hole_cards:]) for some in (cards, other))
    assert board == other_board
    number = row[deck.hole_index(cards[:hole_cards])]
    assert 0 <= number < len(found)
    assert other_row[deck.hole_index(other[:hole_cards])] == number


@given(data=st.data(), case=st.sampled_from(LARGER))
@settings(max_examples=150)
def test_hands_of_different_form_are_different_holdings(data, case):
    """Two hands that have their board in common are one holding exactly if their forms are equal."""
    dealt, deck, hole_cards = case
    board = data.draw(st.permutations(range(deck.size)))[: sum(dealt)]
    _, row = holdings(*case).number_hands(board)
    forms = {}
    for hand in data.draw(st.lists(st.sampled_from(list(combinations(range(deck.size), hole_cards))), max_size=20)):
        if not {*hand} & {*board}:
            form = tuple(canonical([*hand, *board], (hole_cards, *dealt), deck))
            forms.setdefault(form, set()).add(int(row[deck.hole_index(hand)]))
    assert all(len(numbers) == 1 for numbers in forms.values())
    assert len(set().union(*forms.values())) == len(forms)


@given(data=st.data(), case=st.sampled_from([*LARGER, *SMALL]))
@settings(max_examples=200)
def test_locate_leads_to_the_canonical_board(data, case):
    dealt, deck, _ = case
    found = canonical_boards(dealt, deck)
    board = data.draw(st.permutations(range(deck.size)))[: sum(dealt)]
    number, turned = find_canonical_board(holdings(*case).tables.boards, np.array(board, dtype=np.int64))
    image = card_permutations(deck)[turned, board].tolist()
    assert rounds(image, dealt) == rounds(found[-1].cards[number].tolist(), dealt)


@pytest.mark.parametrize(("dealt", "deck"), [((2, 1), Deck(3, 4)), ((1, 1, 1), Deck(3, 3)), ((0, 3), Deck(4, 2))])
def test_ways_count_the_boards_that_lead_to_each_canonical_one(dealt, deck):
    found = canonical_boards(dealt, deck)
    index = board_index(found, deck)
    seen = Counter(find_canonical_board(index, np.array(board, dtype=np.int64))[0] for board in all_hands(dealt, deck))
    assert count_dealt_boards(found).tolist() == [seen[number] for number in range(len(found[-1].weight))]


def test_hands_of_a_board_are_numbered_up_to_its_symmetry():
    """Spades and hearts are alike on Ac Kd: the pair of queens in these suits is as good as any with one of them."""
    deck = Deck(ranks=4)
    board, holes = deck.cards("AcKd"), [tuple(hand) for hand in deck.holes().tolist()]
    bits = np.array([sum(1 << card for card in hand) for hand in holes])
    numbers = np.empty(len(holes), dtype=np.int32)
    held = np.int64(sum(1 << card for card in board))
    symmetry = suit_symmetries(deck, board[:1], board[1:])
    count = number_hands(bits, held, symmetry, hand_permutations(deck), numbers)
    forms = {}
    for hand, number in zip(holes, numbers.tolist(), strict=True):
        assert (number < 0) == bool({*hand} & {*board})
        if number >= 0:
            forms.setdefault(tuple(canonical([*board, *hand], (1, 1, 2), deck)), []).append(number)
    assert list(forms.values()) == sorted(forms.values())  # in order of the first hand
    assert [{*numbers} for numbers in forms.values()] == [{number} for number in range(count)]
    by_name = {deck.name(hand): number for hand, number in zip(holes, numbers.tolist(), strict=True)}
    assert by_name["QcQh"] == by_name["QcQs"] != by_name["QhQs"]


@pytest.mark.parametrize(("dealt", "before"), [((2, 1), (2,)), ((2, 1, 1), (3,)), ((2, 1), (0,)), ((2, 2), (4,))])
def test_holdings_find_those_they_come_from(dealt, before):
    """The other boards are the first cards, taken as sets; any part of the boards can be asked for."""
    deck = Deck(4, 3)
    mine, other = holdings(dealt, deck), holdings(before, deck)
    for start, end in [(0, len(mine.boards)), (3, 7), (5, 5)]:
        first = mine.tables.first[start]
        rows = np.full(mine.tables.first[end] - first, -1)
        holdings_kernels.find_holdings(mine.tables, start, end, other.tables, rows)
        for board in mine.boards[start:end].tolist():
            numbers, there = mine.number_hands(board)[1], other.number_hands(board[: sum(before)])[1]
            live = numbers >= 0
            np.testing.assert_array_equal(rows[numbers[live] - first], there[live])
        assert (rows >= 0).all()


def test_buckets_are_written_to_boards_and_looked_up_on_any():
    """`fill_bucket_table` and `look_up_buckets` are each other's inverse; `find_buckets` looks the first cards up."""
    deck, rng = Deck(4, 3), np.random.default_rng(3)
    flop, turn = holdings((2,), deck), holdings((2, 1), deck)
    buckets = rng.integers(0, 1000, len(flop)).astype(np.int32)
    table = np.full((len(flop.boards), len(flop.tables.bits)), 5000, dtype=np.uint16)
    for start, end in [(7, len(flop.boards)), (0, 7)]:
        part = buckets[flop.tables.first[start] : flop.tables.first[end]]
        holdings_kernels.fill_bucket_table(flop.tables, start, end, part, flop.workspace(), table)
    boards = np.array(list(combinations(range(deck.size), 2)))
    found = np.empty((len(boards), len(flop.tables.bits)), dtype=np.int32)
    holdings_kernels.look_up_buckets(flop.index, table, boards[:, ::-1].copy(), found)
    for board, its_buckets in zip(boards.tolist(), found, strict=True):
        _, row = flop.number_hands(board)
        np.testing.assert_array_equal(its_buckets[row >= 0], buckets[row[row >= 0]])

    start, end = 4, 30
    before = np.empty(turn.tables.first[end] - turn.tables.first[start], dtype=np.int32)
    holdings_kernels.find_buckets(turn.tables, start, end, flop.tables, table, before)
    rows = np.empty(len(before), dtype=np.int64)
    holdings_kernels.find_holdings(turn.tables, start, end, flop.tables, rows)
    np.testing.assert_array_equal(before, buckets[rows])


def test_weights_of_some_boards():
    found = holdings((2, 1), Deck(4, 3))
    start, end = 5, 20
    first, last = found.tables.first[[start, end]]
    np.testing.assert_array_equal(found.weights_of_boards(start, end), found.weights[first:last])
