"""Index all pairs of a hand and a board, up to suit isomorphism.

A holding is a canonical board and one of its hands; hands that differ only by suits that are interchangeable on the
board are one holding. Holdings are numbered board by board, so that the holdings of a board are contiguous and their
values are looked up for a whole board at once. The cards of a board can be taken as dealt round by round, or as one
set.

>>> len(holdings((3,))), len(holdings((3, 1))), len(holdings((4,)))
(1286792, 55190538, 13960050)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import comb

import numpy as np
import numpy.typing as npt

from kilt.abstraction import holdings_kernels as kernels
from kilt.abstraction.holdings_kernels import HoldingIndex, HoldingTables
from kilt.arrays import ByteArray, IntArray
from kilt.cards.boards import Boards, board_index, canonical_boards, count_dealt_boards, hand_permutations
from kilt.cards.deck import FULL, Deck
from kilt.cards.equity import hand_list
from kilt.cards.hands import hand_tables
from kilt.cards.isomorphism import Isomorphism


class Holdings:
    """An index of all pairs of a hand and a board in one round.

    Pairs that differ only by the names of suits share an index.
    """

    def __init__(self, dealt: Sequence[int], deck: Deck, hole_cards: int) -> None:
        self.dealt, self.deck, self.hole_cards = tuple(dealt), deck, hole_cards

    def __len__(self) -> int:
        return self._orbits(self.hole_cards)

    @property
    def board_count(self) -> int:
        """The number of canonical boards of the round, computed without listing them."""
        return self._orbits()

    def _orbits(self, *hand: int) -> int:
        """Return the number of boards, each with a private hand if `hand` has its cards, up to a renaming of suits."""
        layout = (*hand, *filter(None, self.dealt))
        return Isomorphism(layout, self.deck).size if layout else 1

    @cached_property
    def _rounds(self) -> tuple[Boards, ...]:
        return canonical_boards(self.dealt, self.deck)

    @property
    def boards(self) -> ByteArray:
        """The canonical boards of the round, shape (boards, cards).

        Each stands for all boards that differ from it only by suits.
        """
        return self._rounds[-1].cards

    @property
    def symmetry(self) -> npt.NDArray[np.int32]:
        """The suit permutations that leave each canonical board unchanged, as a bit mask."""
        return self._rounds[-1].symmetry

    @cached_property
    def deal_counts(self) -> IntArray:
        """The number of dealt boards that each canonical board stands for."""
        return count_dealt_boards(self._rounds)

    @cached_property
    def index(self) -> HoldingIndex:
        """Look-up tables that find the canonical board of any dealt board."""
        return HoldingIndex(board_index(self._rounds, self.deck), hand_permutations(self.deck, self.hole_cards))

    @cached_property
    def tables(self) -> HoldingTables:
        """The arrays that compiled code needs to index pairs of a hand and a board.

        They are counted on first use; looking up buckets takes `index` alone.
        """
        tables = HoldingTables(
            *self.index,
            cards=self.boards.astype(np.int64),
            symmetry=self.symmetry,
            first=np.zeros(len(self.boards) + 1, dtype=np.int64),
            bits=hand_list(self.deck, self.hole_cards).bits,
            card_bit=hand_tables(self.hole_cards, self.deck).card_bit,
        )
        kernels.count_holdings(tables, self.workspace(), tables.first)
        return tables

    @cached_property
    def weights(self) -> IntArray:
        """The number of deals that each indexed pair of a hand and a board stands for."""
        return self.weights_of_boards(0, len(self.boards))

    def weights_of_boards(self, start: int, end: int) -> IntArray:
        """Return the weights of all hands on the boards from `start` up to `end`."""
        weights = np.zeros(self.tables.first[end] - self.tables.first[start], dtype=np.int64)
        kernels.weigh_holdings(self.tables, start, end, self.deal_counts, self.workspace(), weights)
        return weights

    def workspace(self) -> npt.NDArray[np.int32]:
        """Allocate scratch memory for kernels that index the hands on a board."""
        return np.empty(comb(self.deck.size, self.hole_cards), dtype=np.int32)

    def number_hands(self, board: Sequence[int]) -> tuple[int, IntArray]:
        """Index the hands on a dealt board.

        Returns the index of the canonical board, and the index of each hand.

        The index of a hand that shares a card with the board is −1.

        >>> flop = holdings((3,))
        >>> board, row = flop.number_hands(FULL.cards("Ah7d2c"))
        >>> int((row >= 0).sum()), int(row[FULL.hole_index(FULL.cards("AsAh"))])
        (1176, -1)
        """
        room = self.workspace()
        numbers = room.astype(np.int64)
        found = kernels.number_dealt_board(self.tables, np.array(board, dtype=np.int64), room, numbers)
        return int(found), numbers


@lru_cache(maxsize=16)
def holdings(dealt: tuple[int, ...], deck: Deck = FULL, hole_cards: int = 2) -> Holdings:
    """Index all pairs of a hand and a board in one round, up to suit isomorphism.

    `dealt` has the number of board cards that each round deals. A single number makes the board a set.
    """
    return Holdings(dealt, deck, hole_cards)
