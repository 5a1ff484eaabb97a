"""Rank all hands on the boards of a public tree by strength, for GPU code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, IntArray
from kilt.cards.equity_kernels import HandList, board_strengths
from kilt.tree.vector_arrays import VectorTree

RANK = np.dtype(
    [("lower", np.int16), ("upper", np.int16), ("card_lower", np.uint8, (2,)), ("card_upper", np.uint8, (2,))]
)  # as in `device.cu`


class Ranks(NamedTuple):
    """The hands on each board of a betting round in order of strength.

    Before the last round, all hands count as equally strong.
    """

    order: npt.NDArray[np.int16]  # [board, place] hands, weakest first; incompatible hands come last
    live: npt.NDArray[np.int32]  # [board] number of compatible hands
    ranks: Array  # [board, hand] of `RANK`
    # [board, card, place] hands that hold a card, weakest first; −1 for incompatible ones
    listed: npt.NDArray[np.int16]


def holders_of(deck: HandList) -> npt.NDArray[np.int16]:
    """Return the hands that contain each card, one row per card.

    Unused entries at the end of a row are −1.
    """
    cards = np.stack(deck.cards, axis=1)
    each = [np.flatnonzero((cards == card).any(axis=1)) for card in range(int(cards.max()) + 1)]
    found = np.full((len(each), max(map(len, each))), -1, dtype=np.int16)
    for card, hands in enumerate(each):
        found[card, : len(hands)] = hands
    return found


def ranks_of(tree: VectorTree, r: int, holders: npt.NDArray[np.int16]) -> Ranks:
    """Return the strength ranks of all hands on one round's boards."""
    deck = tree.deck
    start, stop = tree.board_start[r : r + 2].tolist()
    boards = tree.board[start:stop, : tree.board_size[r]].astype(np.int64)
    held = np.bitwise_or.reduce(tree.strengths.card_bit[boards], axis=1, initial=0)
    blocked = (deck.bits & held[:, None]) != 0
    if r < len(tree.rows) - 1:
        return _alike(blocked, deck, holders)
    strength = np.zeros(blocked.shape, dtype=np.int16)
    for board, out in zip(boards, strength, strict=True):
        board_strengths(board, deck, tree.strengths, out)
    strength[blocked] = np.iinfo(np.int16).max  # after all others
    ranks = np.zeros(strength.shape, RANK)
    order, ranks["lower"], ranks["upper"] = _groups(strength)
    ranks["lower"][blocked] = -1
    cards = np.stack(deck.cards, axis=1)
    listed = np.full((len(boards), *holders.shape), -1, dtype=np.int16)
    for card, every in enumerate(holders):
        if len(mine := every[every >= 0]):
            by_strength, lower, upper = _groups(strength[:, mine])
            left = ~np.take_along_axis(blocked[:, mine], by_strength, axis=1)
            listed[:, card, : len(mine)] = np.where(left, mine[by_strength], -1)
            for k in range(2):
                here = cards[mine, k] == card
                ranks["card_lower"][:, mine[here], k] = lower[:, here]
                ranks["card_upper"][:, mine[here], k] = upper[:, here]
    return _ranks(blocked, order, ranks, listed)


def _alike(blocked: npt.NDArray[np.bool_], deck: HandList, holders: npt.NDArray[np.int16]) -> Ranks:
    """Return ranks in which all hands that are possible on a board are equally strong."""
    ranks = np.zeros(blocked.shape, RANK)
    ranks["upper"] = np.count_nonzero(~blocked, axis=1)[:, None]
    ranks["lower"][blocked] = -1
    gone = blocked[:, holders] | (holders < 0)
    behind = np.argsort(gone, axis=2, kind="stable")
    listed = np.take_along_axis(np.where(gone, np.int16(-1), holders), behind, axis=2)
    for k, cards in enumerate(deck.cards):
        ranks["card_upper"][..., k] = np.count_nonzero(~gone, axis=2)[:, cards]
    return _ranks(blocked, np.argsort(blocked, axis=1, kind="stable"), ranks, listed)


def _ranks(blocked: npt.NDArray[np.bool_], order: IntArray, ranks: Array, listed: npt.NDArray[np.int16]) -> Ranks:
    return Ranks(order.astype(np.int16), np.count_nonzero(~blocked, axis=1).astype(np.int32), ranks, listed)


def _groups(strength: npt.NDArray[np.int16]) -> tuple[IntArray, IntArray, IntArray]:
    """Return the hands in order of strength, and the begin and end of each hand's group of equally strong hands."""
    order = np.argsort(strength, axis=1, kind="stable")
    ordered, places = np.take_along_axis(strength, order, axis=1), np.arange(strength.shape[1])
    new = np.ones(strength.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    last = np.ones(strength.shape, dtype=np.bool_)
    last[:, :-1] = new[:, 1:]
    begins = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    ends = np.minimum.accumulate(np.where(last, places + 1, len(places))[:, ::-1], axis=1)[:, ::-1]
    lower, upper = np.empty_like(order), np.empty_like(order)
    np.put_along_axis(lower, order, begins, axis=1)
    np.put_along_axis(upper, order, ends, axis=1)
    return order, lower, upper
