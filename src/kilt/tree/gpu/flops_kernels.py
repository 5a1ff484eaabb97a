"""Rank hands by strength on the CPU, and store their order for the GPU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.cards.equity_kernels import HandList, Ranking, rank_board
from kilt.cards.hands_kernels import HandTables
from kilt.jit import kernel

# Columns of an entry, as in the CUDA file: the hand, the beginning and end of its group of equals; for each of its
# cards, its index in the card's list, and the beginning and end of its group there; one column is unused.
HAND, LOWER, UPPER, AT, FIRST, LAST, COLUMNS = 0, 1, 2, 3, 5, 7, 10


@kernel
def rank_places(
    boards: IntArray,
    hands: HandList,
    tables: HandTables,
    ranking: Ranking,
    length: int,
    counts: IntArray,
    places: npt.NDArray[np.uint16],
    live: npt.NDArray[np.int32],
) -> None:
    """Rank the hands on complete boards by strength, and write them to `places`.

    The number of possible hands on each board is written to `live`.

    Incompatible hands come last, and have no other columns. Each card not on a board has a list of `length` hands,
    preceded by one entry. `counts` is scratch for two entries per card.
    """
    first, second = ranking.cards
    for b in range(len(boards)):
        groups = rank_board(boards[b], hands, tables, ranking)
        lists = 0
        for card in range(counts.shape[1]):
            counts[0, card], counts[1, card] = lists * (length + 1), 0
            on_board = False
            for held in boards[b]:
                on_board = on_board or held == card
            lists += not on_board
        start = np.int64(0)
        for g in range(groups):
            end = np.int64(ranking.ends[g])
            for i in range(start, end):
                places[b, i, HAND], places[b, i, LOWER], places[b, i, UPPER] = ranking.order[i], start, end
                for k in range(2):
                    own = np.int64(first[i]) if k == 0 else np.int64(second[i])
                    places[b, i, FIRST + k] = counts[0, own] + counts[1, own]
            for i in range(start, end):
                for k in range(2):
                    own = np.int64(first[i]) if k == 0 else np.int64(second[i])
                    counts[1, own] += 1
                    places[b, i, AT + k] = counts[0, own] + counts[1, own]
            for i in range(start, end):
                for k in range(2):
                    own = np.int64(first[i]) if k == 0 else np.int64(second[i])
                    places[b, i, LAST + k] = counts[0, own] + counts[1, own]
            start = end
        live[b] = start
        for hand in range(len(ranking.strength)):
            if ranking.strength[hand] < 0:
                places[b, start, HAND] = hand
                start += np.int64(1)
