"""Store the buckets of one round on disk, with one row per board and one column per hand.

Boards that differ only by a renaming of suits share a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction import holdings_kernels as kernels
from kilt.abstraction.classes import CodeBuckets
from kilt.abstraction.classes_kernels import look_up_by_class, look_up_hands_by_class
from kilt.abstraction.cluster_kernels import Labels
from kilt.abstraction.holdings import Holdings
from kilt.arrays import Array, IntArray
from kilt.cards.equity import strengths_on_boards
from kilt.errors import AbstractionError

BOARDS_PER_BATCH = 512  # number of boards that are looked up at a time


class RoundBuckets(NamedTuple):
    """The buckets of one betting round, with one row per board and one column per hand.

    Boards that differ only by a renaming of suits share a row.
    """

    holdings: Holdings
    table: Array  # [board, hand]; undefined for hands that share a card with the board
    sizes: IntArray  # [bucket] number of deals
    centroids: Array | None  # [bucket, dimension] if buckets are means
    bucket_distances: Array | None  # [bucket, bucket of its block] distances, if they are not those of the centroids
    figures: dict[str, Any]  # figures that the build reported, such as the distortion
    coded: CodeBuckets | None = None  # if the table has codes: the bucket of each code in each class of boards
    folder: Path = Path()  # the folder of the round
    by_strength: Labels | None = None  # [2·wins + ties] if there is no table: buckets are computed board by board

    @property
    def buckets(self) -> int:
        """The number of buckets in this round."""
        return len(self.sizes)

    @property
    def hands_left(self) -> int:
        """The number of possible hands on a board of this round."""
        return comb(self.holdings.deck.size - sum(self.holdings.dealt), self.holdings.hole_cards)

    def look_up_board(self, board: Sequence[int]) -> Labels:
        """Return the bucket of every hand on one board, shape (hands,)."""
        row: Labels = self.look_up_boards(np.array([board], dtype=np.int64))[0]
        return row

    def look_up_boards(self, boards: IntArray) -> Labels:
        """Return the bucket of every hand on several boards, shape (boards, hands).

        `boards` has shape (boards, cards).
        """
        if self.by_strength is not None:
            computed: Labels = self.by_strength[
                strengths_on_boards(boards, self.holdings.deck, self.holdings.hole_cards)
            ]
            return computed
        buckets = np.empty((len(boards), self.table.shape[1]), dtype=np.int32)
        if self.coded:
            classes, of = self.coded
            coded = classes.holdings.index, classes.labels, of
            most = look_up_by_class(self.holdings.index, self.table, *coded, boards, buckets)
        else:
            most = kernels.look_up_buckets(self.holdings.index, self.table, boards, buckets)
        self.require_valid_index(self.entry_bound, most)
        return buckets

    def look_up(
        self, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32], known: int | None = None
    ) -> None:
        """Look up the buckets of dealt hands on their boards.

        They are written to `buckets`.

        `boards` is [deal, card]; `hands` and `buckets` are [deal, player].

        If all boards belong to one class, pass it as `known`: then it is not looked up.
        """
        if self.by_strength is not None:
            buckets[:] = np.take_along_axis(self.look_up_boards(boards), hands, axis=1)
            return
        if self.coded and known is None:
            classes, of = self.coded
            coded = classes.holdings.index, classes.labels, of
            most = look_up_hands_by_class(self.holdings.index, self.table, *coded, boards, hands, buckets)
        else:
            most = kernels.look_up_dealt_hands(self.holdings.index, self.table, boards, hands, buckets)
        self.require_valid_index(self.entry_bound, most)
        if self.coded and known is not None:
            buckets[:] = self.coded.bucket[known][buckets]

    @property
    def entry_bound(self) -> int:
        """The number of values that an entry of the bucket table can take.

        Entries are buckets or, if boards have classes, codes for groups of similar hands.
        """
        return self.coded.bucket.shape[1] if self.coded else self.buckets

    def require_valid_index(self, number: int, most: int | np.integer[Any]) -> None:
        """Raise AbstractionError if a bucket number is too large for an index, because the file is damaged."""
        if most >= number:
            raise AbstractionError(
                f"{self.folder / 'buckets.npy'} is damaged (it says {most}, and there are {number:,}): "
                f"{remedy_for(self.folder)}"
            )

    def require_valid_entries(self) -> None:
        """Raise AbstractionError if an entry of the bucket table is out of range, because the file is damaged.

        Entries are buckets or, if boards have classes, codes for groups of similar hands.
        """
        self.require_valid_index(self.entry_bound, int(self.table.max(initial=0)))

    def strengths(self) -> Labels | None:
        """Return the bucket of each hand strength, if buckets on complete boards depend only on strength.

        The index of the result is 2·wins + ties.

        Returns None if hands of equal strength are in different buckets.
        """
        deck, hole_cards = self.holdings.deck, self.holdings.hole_cards
        top = 2 * comb(deck.size - sum(self.holdings.dealt) - hole_cards, hole_cards)
        met = np.zeros((top + 1, self.buckets), dtype=np.bool_)
        for start in range(0, len(self.table), BOARDS_PER_BATCH):
            boards = self.holdings.boards[start : start + BOARDS_PER_BATCH].astype(np.int64)
            strength, bucket = (
                strengths_on_boards(boards, deck, hole_cards),
                self.table[start : start + BOARDS_PER_BATCH],
            )
            free = strength >= 0
            met[strength[free], bucket[free]] = True
        if (met.sum(axis=1) > 1).any():
            return None
        there = np.flatnonzero(met.any(axis=1))
        nearest = there[np.searchsorted(there, np.arange(top + 1)).clip(max=len(there) - 1)]
        found: Labels = np.argmax(met, axis=1)[nearest].astype(np.int32)
        return found

    def bucket_members(self, bucket: int) -> tuple[IntArray, IntArray]:
        """List all hands in a bucket, each with its board, up to suit isomorphism.

        Returns the boards as dealt, shape (members, cards), and the hands, shape (members,).
        """
        tables = self.holdings.tables
        self.require_valid_entries()
        if self.coded:
            label = bucket * self.coded.classes.number // self.buckets
            boards, hands = np.nonzero((self.coded.bucket[label] == bucket)[self.table])
        else:
            boards, hands = np.nonzero(self.table == bucket)
        apart = (tables.bits[hands] & tables.card_bit[tables.cards[boards]].sum(axis=1)) == 0
        boards, hands = boards[apart], hands[apart]
        if not self.coded:
            return tables.cards[boards], hands
        ways, found = self.coded.classes.look_up_earlier(self.holdings)
        member, way = np.nonzero(found[boards] == label)
        places = np.array([[*first, *sorted({*range(tables.cards.shape[1])} - {*first})] for first in ways.tolist()])
        return np.take_along_axis(tables.cards[boards[member]], places[way], axis=1), hands[member]


def remedy_for(folder: Path) -> str:
    """Return advice for a user whose card abstraction is damaged on disk."""
    return f"delete {folder} and repeat the command that built it, or copy an intact folder"
