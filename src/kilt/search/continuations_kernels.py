"""Compiled loops that compute values at the end of a depth-limited subgame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.jit import kernel

Singles = npt.NDArray[np.float32]


@kernel
def follow_sequences(
    parent: IntArray,
    kind: IntArray,
    offset: IntArray,
    shares: Singles,
    columns: IntArray,
    draws: FloatArray,
    reach: Singles,
    keys: FloatArray,
) -> None:
    """Compute a player's probability of taking each action sequence, for groups of hands.

    There is one result for each continuation: the blueprint, or a variant of it.

    `reach` is [way, sequence, column]; a column is a group of hands with the same strategy. The last action of a
    sequence has the probabilities `shares` [way, …] from `offset` on, one for each entry of ``columns[kind]`` [kind,
    column]; the rest of the sequence is the sequence `parent`. The first sequence is empty. `keys` [column] receives
    sums of reaches weighted by `draws` [way · sequence]: columns with equal reach have equal keys.
    """
    ways, sequences, count = reach.shape
    for k in range(count):
        keys[k] = 0.0
    for way in range(ways):
        for k in range(count):
            reach[way, 0, k] = 1.0
        for s in range(1, sequences):
            before, first, of, draw = parent[s], offset[s], columns[kind[s]], draws[way * sequences + s]
            for k in range(count):
                came = reach[way, before, k] * shares[way, first + of[k]]
                reach[way, s, k] = came
                keys[k] += draw * came


@kernel
def sum_winnings(
    first: IntArray,
    second: IntArray,
    gain: Singles,
    shown: IntArray,
    mine: Singles,
    theirs: Singles,
    sums: Singles,
    won: Singles,
) -> None:
    """Sum player 0's winnings over all ends of a hand, for each pair of groups of hands.

    A column is a group of hands. `first` and `second` [end] are both players' sequences, ascending for player 0; `mine`
    and `theirs` [way or 1, sequence, column] their reach. `won` [2, way, column, column] receives what player 0 wins if
    a player folds, and what the better hand wins if hands are `shown`. `sums` [2, way or 1, column] is scratch memory.
    """
    ways, end = won.shape[1], 0
    while end < len(first):
        begin, sequence = end, first[end]
        while end < len(first) and first[end] == sequence:
            end += 1
        for kind in range(2):
            some = False
            for w in range(theirs.shape[0]):
                for k in range(theirs.shape[2]):
                    sums[kind, w, k] = 0.0
            for e in range(begin, end):
                if shown[e] == kind:
                    some = True
                    for w in range(theirs.shape[0]):
                        for k in range(theirs.shape[2]):
                            sums[kind, w, k] += gain[e] * theirs[w, second[e], k]
            if some:
                for way in range(ways):
                    w, v = way % mine.shape[0], way % theirs.shape[0]
                    for i in range(mine.shape[2]):
                        came = mine[w, sequence, i]
                        if came != 0:
                            for k in range(theirs.shape[2]):
                                won[kind, way, i, k] += came * sums[kind, v, k]


@kernel
def add_pair_values(
    won: Singles, first: IntArray, second: IntArray, strength: Singles, rows: Singles, values: Singles
) -> None:
    """Compute player 0's winnings with each pair of hands, from the winnings of their groups.

    `values` is [way, hand of player 0, hand of player 1]. `won` [board, 2, way, column, column + 1] has the winnings of
    columns if a player folds, and those of the better hand at showdowns; the last column has zeros. `first` and
    `second` [board, hand] are the columns of both players' hands, with the last one for hands of player 1 with a card
    of the board. `strength` [board, hand] is −1 for such hands, and an integer otherwise. `rows` [board, column, 2,
    hand] is scratch memory: the winnings of a column against each hand.
    """
    boards, hands = strength.shape
    for way in range(len(values)):
        for b in range(boards):
            for column in range(rows.shape[1]):
                for kind in range(2):
                    known, row, of = won[b, kind, way, column], rows[b, column, kind], second[b]
                    for j in range(hands):
                        row[j] = known[np.uint64(of[j])]
        for i in range(hands):
            value = values[way, i]
            for b in range(boards):
                mine = strength[b, i]
                if mine >= 0:
                    folded, shown, theirs = rows[b, first[b, i], 0], rows[b, first[b, i], 1], strength[b]
                    for j in range(hands):
                        ahead = mine - theirs[j]
                        sign = np.float32(1) if ahead > 1 else (np.float32(-1) if ahead < -1 else ahead)
                        value[j] += folded[j] + shown[j] * sign


@kernel
def finish_pairs(scale: Singles, luck: Singles, values: Singles) -> None:
    """Convert sums over sampled boards to means over all boards, for each pair of hands.

    `values` [way, hand, hand] is multiplied by `scale` [hand, hand], and `luck` [hand, hand] is added.
    """
    for way in range(len(values)):
        for i in range(values.shape[1]):
            for j in range(values.shape[2]):
                values[way, i, j] = values[way, i, j] * scale[i, j] + luck[i, j]
