"""Compiled loops that rank and compare all private hands on a board at once.

`hands` is a `HandList`, all private hands of a deck. Arrays over hands are indexed by its rows. Every hand has two
cards: in games with one private card, the second is a blank that no other hand has, so that one set of kernels
serves both kinds of games. Numbers of hands and cards are unsigned: for signed indices, numba adds a test for Python's
negative indexing, which costs a fifth of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.hands_kernels import HandTables, Strengths, look_up_ranks
from kilt.jit import kernel, trailing_zeros
from kilt.lanes import LANES, add, load, scaled, store, sub

Order: TypeAlias = npt.NDArray[np.uint16]  # hands by number, weakest first
Floats: TypeAlias = npt.NDArray[np.floating[Any]]  # in single or double precision
Moved: TypeAlias = npt.NDArray[np.int32]  # [suit permutation, hand] which hand each becomes
Renamed: TypeAlias = npt.NDArray[np.int8]  # [suit permutation, card] which card each becomes
Held: TypeAlias = npt.NDArray[np.bool_]  # [hand] whether a player may hold it
NOWHERE = 2**16 - 1  # in place of an index into an `Order`, for a hand that is not in it
Columns: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]  # [hand] the first and the second card


class HandList(NamedTuple):
    """All private hands of a game as arrays for compiled code, in the order of `Deck.holes`.

    They are all hands of a deck, or some of them.
    """

    cards: Columns
    key: IntArray  # [hand] what the hand adds to the key of a board
    bits: IntArray  # [hand] the hand's set of cards, as in HandTables.card_bit
    ranks: npt.NDArray[np.uint16]  # [hand] index of the hand's set of ranks
    ranks_key: IntArray  # [set of ranks] what the ranks add to the key of a board, without suits
    # [card, …] the hands that hold the card; empty unless the list has all hands of the deck
    with_card: npt.NDArray[np.uint16]


class Ranking(NamedTuple):
    """The possible hands on a complete board, sorted by strength, with scratch arrays.

    `rank_board` fills it. A group is a set of hands of equal strength. Arrays have an entry for each hand; entries of
    `order` and `cards` after the end of the last group are undefined.
    """

    strength: Strengths  # [hand] −1 if the hand shares a card with the board
    order: Order  # the hands that are possible on the board, weakest first
    ends: Order  # [group] index in `order` after the group's last hand
    cards: Columns  # of the hands in `order`
    # `merge_equivalent_hands` fills these. times: [3, …] for each hand in `order`, the number of hands that it stands
    # for, then the number of those with its first card, and with its second. weighted: whether any of these numbers is
    # not 1.
    times: npt.NDArray[np.float32]
    weighted: npt.NDArray[np.bool_]  # [1]
    sums: FloatArray  # [2, …] scratch, in the order of `order`
    by_card: FloatArray  # [card] scratch, blanks included
    marks: IntArray  # scratch, zero between uses, with 65 entries for each 64 strengths


class PlayerRankings(NamedTuple):
    """The hands that each of two players can hold on a complete board, sorted by strength.

    `split_by_player` fills it from a `Ranking`. Side 0 is the player whose values are computed, side 1 the opponent.
    Groups are those of the ranking; a side may have no hand in some of them.
    """

    order: npt.NDArray[np.uint16]  # [side, …] hands by number, weakest first
    ends: npt.NDArray[np.uint16]  # [side, group] index in `order` after the group's last hand
    cards: npt.NDArray[np.uint8]  # [side, first or second, …] of the hands in `order`
    times: npt.NDArray[np.float32]  # [side, 3, …] as in the ranking
    same: npt.NDArray[
        np.uint16
    ]  # [… of side 0] index of the same hand on side 1; if it is not there, the index after the last hand


@kernel
def board_strengths(board: IntArray, hands: HandList, tables: HandTables, out: Strengths) -> None:
    """Compute the strength of every hand on a complete board, or −1 for hands that share a card with it.

    If no flush is possible, strength depends on ranks alone: there are 91 pairs of ranks for 1,326 hands.
    """
    key, bits = np.int64(tables.start), np.int64(0)
    for card in board:
        key += tables.card_key[card]
        bits += tables.card_bit[card]
    by_ranks = np.empty(len(hands.ranks_key), dtype=np.int16)
    for r in range(len(by_ranks)):
        by_ranks[r] = look_up_ranks(key + hands.ranks_key[r], tables)
    for hand in range(len(out)):
        out[hand] = by_ranks[hands.ranks[hand]]
    for suit in range(4):
        # A flush is possible if the suit's counter, with all cards of a hand in this suit, reaches its marker.
        if (key + (2 << tables.suit_shift[suit])) & tables.flush_mark[suit]:
            for hand in range(len(out)):
                flush = tables.flush[((bits | hands.bits[hand]) >> (13 * suit)) & 0x1FFF]
                if flush >= 0:
                    out[hand] = flush
    for hand in range(len(out)):
        if bits & hands.bits[hand]:
            out[hand] = -1


@kernel
def rank_board(board: IntArray, hands: HandList, tables: HandTables, ranking: Ranking) -> int:
    """Sort all hands on a complete board by strength. Returns the number of different strengths.

    A counting sort: few strengths occur on one board, so the loop marks those in a bit set, and visits only them.
    """
    strength, order, ends = ranking.strength, ranking.order, ranking.ends
    board_strengths(board, hands, tables, strength)
    blocks = len(ranking.marks) // 65
    marks, counts = ranking.marks[:blocks], ranking.marks[blocks:]
    for hand in range(len(strength)):
        if strength[hand] >= 0:
            s = np.uint16(strength[hand])
            counts[s] += 1
            marks[s >> 6] |= 1 << (s & 63)
    place, groups = 0, 0
    for block in range(blocks):
        mark = marks[block]
        while mark:
            lowest = (block << 6) + trailing_zeros(mark)
            place, counts[lowest] = place + counts[lowest], place
            ends[groups] = place
            groups += 1
            mark &= mark - 1
    for hand in range(len(strength)):
        if strength[hand] >= 0:
            s = np.uint16(strength[hand])
            order[np.uint16(counts[s])] = hand
            counts[s] += 1
    for block in range(blocks):
        mark = marks[block]
        while mark:
            counts[(block << 6) + trailing_zeros(mark)] = 0
            mark &= mark - 1
        marks[block] = 0
    for k in range(2):
        card, sorted_card = hands.cards[k], ranking.cards[k]
        for i in range(place):
            sorted_card[i] = card[order[i]]
    ranking.weighted[0] = False
    return groups


@kernel
def merge_equivalent_hands(ranking: Ranking, groups: int, symmetry: int, moved: Moved, renamed: Renamed) -> None:
    """Shorten a ranking of hands by keeping one of each set of equivalent hands.

    The first hand of each class is kept and stands for the whole class, and the first card of each class of cards for
    that class: sums by card are those of one such card. `symmetry` is a bit mask of suit permutations; bit by bit,
    `moved` [bit, hand] maps hands and `renamed` [bit, card] maps cards. The size of a class is the number of
    permutations divided by the number of those that map the hand to itself.
    """
    order, ends, times = ranking.order, ranking.ends, ranking.times
    ranking.weighted[0] = symmetry != 1
    kept, start = 0, 0
    if symmetry == 1:  # every hand is its own class
        for i in range(ends[groups - 1] if groups > 0 else 0):
            times[0, i] = 1
        groups = 0
    for g in range(groups):
        end = ends[g]
        for i in range(start, end):
            hand = order[i]
            first, ways, same, left = True, 0, 0, symmetry
            while left and first:
                image = moved[trailing_zeros(left), hand]
                first = image >= hand
                same += image == hand
                ways += 1
                left &= left - 1
            if not first:
                continue
            order[kept], times[0, kept] = hand, ways / same
            for k, column in enumerate(ranking.cards):
                card, alone, left = column[i], 0, symmetry
                least = card
                while left and card < renamed.shape[1]:
                    image_of_card = np.uint8(renamed[trailing_zeros(left), card])
                    least = min(least, image_of_card)
                    alone += image_of_card == card
                    left &= left - 1
                column[kept] = least
                times[k + 1, kept] = alone / same if alone else 1  # no two hands share a blank
            kept += 1
        start, ends[g] = end, kept


@kernel
def compatible_weights(live: Order, cards: Columns, reach: FloatArray, by_card: FloatArray, value: FloatArray) -> None:
    """Compute for each hand the total weight of the opponent's hands that share no card with it.

    Hands that are not `live` get 0. By inclusion and exclusion: from the total, subtract the hands with each of my
    cards; my own hand has then been subtracted twice, and is added back. `by_card` is scratch for one entry per card.
    """
    first, second = cards
    by_card[:] = 0.0
    value[:] = 0.0
    total = 0.0
    for hand in live:
        total += reach[hand]
        by_card[first[hand]] += reach[hand]
        by_card[second[hand]] += reach[hand]
    for hand in live:
        value[hand] = total + reach[hand] - by_card[first[hand]] - by_card[second[hand]]


@kernel
def showdown_values(ranking: Ranking, groups: int, reach: FloatArray, value: FloatArray) -> None:
    """Compute each hand's showdown value: the weight of hands that it beats, minus that of hands that beat it.

    `reach` has the weights of the opponent's hands; those that share a card with the hand do not count [Johanson16
    §2.4].

    One walk over the hands in order of strength: O(n) for a sum that looks like O(n²). Before a group enters the sums,
    they hold the reach that it beats; afterwards, the reach that it beats or ties; at the end, all reach. The reach
    that beats a hand is the difference of the last two. Cards in common are removed by inclusion and exclusion, as in
    `compatible_weights`. Impossible hands get 0, and their reach is ignored.
    """
    order, by_card = ranking.order, ranking.by_card
    first, second = ranking.cards
    mine, result = ranking.sums[0], ranking.sums[1]
    live = ranking.ends[groups - 1] if groups else 0
    for i in range(live):
        mine[i] = reach[order[i]]
    by_card[:] = 0.0
    passed = 0.0
    start = 0
    for g in range(groups):
        end = ranking.ends[g]
        for i in range(start, end):
            result[i] = passed - by_card[first[i]] - by_card[second[i]]
        for i in range(start, end):
            passed += mine[i]
            by_card[first[i]] += mine[i]
            by_card[second[i]] += mine[i]
        for i in range(start, end):
            result[i] += passed + mine[i] - by_card[first[i]] - by_card[second[i]]
        start = end
    value[:] = 0.0
    for i in range(live):
        everything = passed + mine[i] - by_card[first[i]] - by_card[second[i]]
        value[order[i]] = result[i] - everything


@kernel
def showdown_values_of_ranges(
    ranking: Ranking, groups: int, reach: Floats, by_card: Floats, result: Floats, whole: Floats
) -> None:
    """Compute the showdown values of all hands against several opponent ranges at once.

    There are `LANES` ranges.

    The results are those of `showdown_values` and `compatible_weights`.

    Arrays are in the order of `ranking`, and the lanes of a hand are adjacent. `whole` receives the opponent's reach
    that shares no card with each hand, and `result` the reach that the hand beats plus the reach that it beats or ties:
    the value of a showdown is `result` − `whole`. `by_card` is scratch for as many lanes as there are cards.
    """
    ends, times, weighted, lanes = ranking.ends, ranking.times, ranking.weighted[0], np.uint64(LANES)
    first, second = ranking.cards
    by_card[:] = 0
    passed = load(by_card, np.uint64(0))
    start = np.uint64(0)
    for g in range(groups):
        end = np.uint64(ends[g])
        for i in range(start, end):
            one, two = lanes * np.uint64(first[i]), lanes * np.uint64(second[i])
            store(result, lanes * i, sub(sub(passed, load(by_card, one)), load(by_card, two)))
        for i in range(start, end):
            one, two, mine = lanes * np.uint64(first[i]), lanes * np.uint64(second[i]), load(reach, lanes * i)
            mine_too = mine
            if weighted:
                passed = add(passed, scaled(mine, times[0, i]))
                mine, mine_too = scaled(mine, times[1, i]), scaled(mine, times[2, i])
            else:
                passed = add(passed, mine)
            store(by_card, one, add(load(by_card, one), mine))
            store(by_card, two, add(load(by_card, two), mine_too))
        for i in range(start, end):
            one, two = lanes * np.uint64(first[i]), lanes * np.uint64(second[i])
            not_better = add(add(passed, load(result, lanes * i)), load(reach, lanes * i))
            store(result, lanes * i, sub(sub(not_better, load(by_card, one)), load(by_card, two)))
        start = end
    for i in range(np.uint64(0), start):
        one, two = lanes * np.uint64(first[i]), lanes * np.uint64(second[i])
        everything = add(passed, load(reach, lanes * i))
        store(whole, lanes * i, sub(sub(everything, load(by_card, one)), load(by_card, two)))


@kernel
def split_by_player(
    ranking: Ranking, groups: int, mine: Held, theirs: Held, every: bool, sides: PlayerRankings
) -> tuple[int, int]:
    """Split a ranking into the possible hands of each player.

    Returns each player's number of hands.

    If `every` is set, the first player has all hands.
    """
    order, ends, times = ranking.order, ranking.ends, ranking.times
    own, others, start = 0, 0, 0
    for g in range(groups):
        for i in range(start, ends[g]):
            hand = order[i]
            if every or mine[hand]:
                sides.order[0, own], sides.same[own] = hand, others if theirs[hand] else NOWHERE
                sides.cards[0, 0, own], sides.cards[0, 1, own] = ranking.cards[0][i], ranking.cards[1][i]
                sides.times[0, 0, own] = times[0, i]
                own += 1
            if theirs[hand]:
                sides.order[1, others] = hand
                sides.cards[1, 0, others], sides.cards[1, 1, others] = ranking.cards[0][i], ranking.cards[1][i]
                for k in range(3):
                    sides.times[1, k, others] = times[k, i]
                others += 1
        start, sides.ends[0, g], sides.ends[1, g] = ends[g], own, others
    for i in range(own):
        if sides.same[i] == NOWHERE:
            sides.same[i] = others
    return own, others


@kernel
def showdown_values_by_player(
    sides: PlayerRankings, groups: int, weighted: bool, reach: Floats, by_card: Floats, result: Floats, whole: Floats
) -> None:
    """Compute showdown values against several ranges at once, for players whose possible hands differ.

    The results are like those of `showdown_values_of_ranges`.

    `reach` is over the opponent's hands, the other arrays over the player's. After the opponent's last hand, `reach`
    has a 0 for hands that only the player may hold.
    """
    ends, same, times, lanes = sides.ends, sides.same, sides.times[1], np.uint64(LANES)
    first, second = sides.cards[0, 0], sides.cards[0, 1]
    their_first, their_second = sides.cards[1, 0], sides.cards[1, 1]
    by_card[:] = 0
    passed = load(by_card, np.uint64(0))
    start, their_start = np.uint64(0), np.uint64(0)
    for g in range(groups):
        end, their_end = np.uint64(ends[0, g]), np.uint64(ends[1, g])
        for i in range(start, end):
            one, two = lanes * np.uint64(first[i]), lanes * np.uint64(second[i])
            store(result, lanes * i, sub(sub(passed, load(by_card, one)), load(by_card, two)))
        for i in range(their_start, their_end):
            one, two = lanes * np.uint64(their_first[i]), lanes * np.uint64(their_second[i])
            there = load(reach, lanes * i)
            there_too = there
            if weighted:
                passed = add(passed, scaled(there, times[0, i]))
                there, there_too = scaled(there, times[1, i]), scaled(there, times[2, i])
            else:
                passed = add(passed, there)
            store(by_card, one, add(load(by_card, one), there))
            store(by_card, two, add(load(by_card, two), there_too))
        for i in range(start, end):
            one, two = lanes * np.uint64(first[i]), lanes * np.uint64(second[i])
            not_better = add(add(passed, load(result, lanes * i)), load(reach, lanes * np.uint64(same[i])))
            store(result, lanes * i, sub(sub(not_better, load(by_card, one)), load(by_card, two)))
        start, their_start = end, their_end
    for i in range(np.uint64(0), start):
        one, two = lanes * np.uint64(first[i]), lanes * np.uint64(second[i])
        everything = add(passed, load(reach, lanes * np.uint64(same[i])))
        store(whole, lanes * i, sub(sub(everything, load(by_card, one)), load(by_card, two)))


@kernel
def ties_between(
    sides: PlayerRankings, groups: int, weighted: bool, reach: Floats, by_card: Floats, tied: Floats
) -> None:
    """Compute the total weight of the opponent's hands that tie with each hand, for several ranges at once.

    There are `LANES` ranges.

    The arrays are those of `showdown_values_by_player`.
    """
    ends, same, times, lanes = sides.ends, sides.same, sides.times[1], np.uint64(LANES)
    first, second = sides.cards[0, 0], sides.cards[0, 1]
    their_first, their_second = sides.cards[1, 0], sides.cards[1, 1]
    by_card[:] = 0
    nothing = load(by_card, np.uint64(0))
    start, their_start = np.uint64(0), np.uint64(0)
    for g in range(groups):
        end, their_end, together = np.uint64(ends[0, g]), np.uint64(ends[1, g]), nothing
        for i in range(their_start, their_end):
            one, two = lanes * np.uint64(their_first[i]), lanes * np.uint64(their_second[i])
            there = load(reach, lanes * i)
            there_too = there
            if weighted:
                together = add(together, scaled(there, times[0, i]))
                there, there_too = scaled(there, times[1, i]), scaled(there, times[2, i])
            else:
                together = add(together, there)
            store(by_card, one, add(load(by_card, one), there))
            store(by_card, two, add(load(by_card, two), there_too))
        for i in range(start, end):
            one, two = lanes * np.uint64(first[i]), lanes * np.uint64(second[i])
            own = load(reach, lanes * np.uint64(same[i]))
            store(tied, lanes * i, sub(sub(add(together, own), load(by_card, one)), load(by_card, two)))
        for i in range(their_start, their_end):
            store(by_card, lanes * np.uint64(their_first[i]), nothing)
            store(by_card, lanes * np.uint64(their_second[i]), nothing)
        start, their_start = end, their_end
