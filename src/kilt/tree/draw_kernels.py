"""Sample the boards and hands of an iteration of Monte Carlo CFR [Johanson16 algorithm 1]."""

from __future__ import annotations

import numpy as np

from kilt.arrays import FloatArray
from kilt.draws import mix, splitmix_word, uniform
from kilt.jit import kernel, subkernel
from kilt.tree.vector_arrays import Scope, VectorTree


@subkernel
def total_reach(prior: FloatArray, player: int, hands: int) -> float:
    """Return the sum of a player's reach probabilities over all hands."""
    whole = 0.0
    for hand in range(hands):
        whole += prior[player, hand]
    return whole


@kernel
def draw_scope(
    tree: VectorTree, player: int, my: bool, their: bool, rounds: int, seed: np.uint64, walk: np.uint64, scope: Scope
) -> None:
    """Sample the boards and, on request, the hands of one CFR iteration, and write them to `scope`.

    One board is sampled for each of the first `rounds` rounds after the opening round.

    If `my` or `their` is set, one hand of the player or of the opponent is sampled. Samples depend only on the seed and
    the number of the pass.

    A canonical board is sampled in proportion to the boards it represents, with a random permutation of the suits that
    are equivalent on the previous board: all boards are equally likely. If a sample shares a card with an earlier one,
    it is sampled again.
    """
    key, number = splitmix_word(mix(seed), walk), np.uint64(0)
    drawn = 0
    held = np.int64(0)
    for who, wanted, hands in ((player, my, scope.mine), (1 - player, their, scope.theirs)):
        hands[0, 0], hands[0, 1] = 0, tree.hands[who]
        if not wanted:
            continue
        prior = tree.prior[who, : tree.hands[who]]
        whole = total_reach(tree.prior, who, tree.hands[who])
        while True:
            left = uniform(key, number) * whole
            number += np.uint64(1)
            hand = 0
            while hand + 1 < len(prior) and left >= prior[hand]:
                left -= prior[hand]
                hand += 1
            if not (tree.poker and held & tree.deck.bits[hand]):
                break
        hands[0, 0], hands[0, 1] = hand, hand + 1
        if tree.poker:
            held |= tree.deck.bits[hand]
        drawn += 1
    scope.reach[0] = 0.0
    if their:
        scope.reach[0] = tree.compatible_weight if my else total_reach(tree.prior, 1 - player, tree.hands[1 - player])

    board = scope.board[0] = 0
    for r in range(1, len(tree.rows)):
        first, end = tree.first_board[board], tree.first_board[board + 1]
        before, whole = tree.weight_before[first], tree.weight_before[end] - tree.weight_before[first]
        alike = 0
        for p in range(tree.moved.shape[0]):
            alike += (tree.symmetry[board] >> p) & 1
        while True:
            place = before + np.int64(uniform(key, number) * whole)
            low, high = first, end  # the last board that begins at or before the index
            while high - low > 1:
                middle = (low + high) // 2
                if tree.weight_before[middle] <= place:
                    low = middle
                else:
                    high = middle
            which = np.int64(uniform(key, number + np.uint64(1)) * alike)
            number += np.uint64(2)
            suits = 0
            while True:
                if (tree.symmetry[board] >> suits) & 1:
                    if which == 0:
                        break
                    which -= 1
                suits += 1
            cards = np.int64(0)
            for k in range(tree.board_size[r]):
                cards |= tree.strengths.card_bit[tree.board[low, k]]
            moved = tree.moved[suits]
            clash = False
            for hands, wanted in ((scope.mine, my), (scope.theirs, their)):
                hands[r, 0], hands[r, 1] = hands[r - 1, 0], hands[r - 1, 1]
                if wanted:
                    hand = moved[hands[r - 1, 0]]
                    hands[r, 0], hands[r, 1] = hand, hand + 1
                    clash = clash or (tree.poker and (cards & tree.deck.bits[hand]) != 0)
            if not clash:
                break
        scope.board[r], scope.suits[r], scope.chance[r] = low if r <= rounds else -1, suits, tree.odds[r, drawn]
        board = low
