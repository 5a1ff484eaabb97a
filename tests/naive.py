"""Slow twins of kilt's kernels, written to be read. Each says the same thing as the fast version, in the plainest way."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

FIVE = ["high card", "pair", "two pair", "three of a kind", "straight", "flush", "full house", "four of a kind", "straight flush"]
THREE = ["high card", "pair", "flush", "straight", "three of a kind", "straight flush"]
GROUPS = ["high card", "pair", "two pair", "three of a kind", "four of a kind"]


def hand_value(cards, deck):
    """A tuple that orders hands: the best five cards of `cards`, or all of them where there are fewer."""
    if len(cards) > 5:
        return max(hand_value(five, deck) for five in combinations(cards, 5))
    ranks = sorted((int(deck.full[card]) // 4 for card in cards), reverse=True)
    groups = sorted(Counter(ranks).items(), key=lambda item: (-item[1], -item[0]))
    shape = tuple(count for _, count in groups)
    order = [rank for rank, _ in groups]
    name = {
        (2,): "pair",
        (3,): "three of a kind",
        (4,): "four of a kind",
        (2, 1): "pair",
        (2, 1, 1): "pair",
        (2, 2): "two pair",
        (3, 1): "three of a kind",
        (2, 1, 1, 1): "pair",
        (2, 2, 1): "two pair",
        (3, 1, 1): "three of a kind",
        (3, 2): "full house",
        (4, 1): "four of a kind",
    }.get(shape, "high card")
    if len(cards) in (3, 5):
        flush = len({int(deck.full[card]) % 4 for card in cards}) == 1
        wheel = [12, *range(len(cards) - 2, -1, -1)]
        straight = ranks == list(range(ranks[0], ranks[0] - len(cards), -1)) or ranks == wheel
        if straight:
            order = [ranks[1] if ranks == wheel else ranks[0]]
        if straight or flush:
            name = "straight flush" if straight and flush else "straight" if straight else "flush"
    categories = {5: FIVE, 3: THREE}.get(len(cards), GROUPS)
    return (categories.index(name), *order)


def showdown(board, deck, holes, reach):
    """For each hand, the reach of the opponent's hands that it beats less that of those that beat it: O(n²)."""
    values = [None if set(hand) & set(board) else hand_value([*hand, *board], deck) for hand in holes]
    result = []
    for mine, hand in zip(values, holes, strict=True):
        total = 0.0
        for theirs, other, weight in zip(values, holes, reach, strict=True):
            if mine is not None and theirs is not None and not set(hand) & set(other):
                total += weight * ((mine > theirs) - (mine < theirs))
        result.append(total)
    return result


def compatible(board, holes, reach):
    """For each hand that can be held, the reach of the opponent's hands that share no card with it."""
    return [
        0.0
        if set(hand) & set(board)
        else sum(w for other, w in zip(holes, reach, strict=True) if not set(other) & (set(hand) | set(board)))
        for hand in holes
    ]


def equity(hand, opponents, board, deck, board_size=5):
    """Wins, ties and losses of one hand against weighted others, over all complete boards."""
    sums = [0.0, 0.0, 0.0]
    rest = [card for card in range(deck.size) if card not in {*hand, *board}]
    for new in combinations(rest, board_size - len(board)):
        complete = [*board, *new]
        mine = hand_value([*hand, *complete], deck)
        for other, weight in opponents:
            if not set(other) & {*hand, *complete}:
                theirs = hand_value([*other, *complete], deck)
                sums[0 if mine > theirs else 1 if mine == theirs else 2] += weight
    return sums
