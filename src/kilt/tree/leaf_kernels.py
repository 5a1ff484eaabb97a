"""Compiled loops of `vector_kernels`: what hands are worth at the leaves of a public tree [Johanson16 §§2.4, 3.3]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import Columns, HandList, board_strengths, showdowns
from kilt.cards.hands_kernels import HandTables, look_up
from kilt.jit import kernel
from kilt.lanes import LANES
from kilt.tree.payoff_kernels import fold_values
from kilt.tree.vector_arrays import CALL_BLUFF, FOLD, SHOWDOWN, Dice, Flags, Hand, Nodes, Workspace


@kernel
def fill(value: FloatArray, here: int, start: Hand, end: Hand, child: int) -> None:
    """Write the values of a child, or 0 where there is none (−1)."""
    for hand in range(start, end):
        value[here, hand] = value[child, hand] if child >= 0 else 0


@kernel
def settle_bids(
    nodes: Nodes,
    dice: Dice,
    block: int,
    player: int,
    mine: IntArray,
    theirs: IntArray,
    reach: FloatArray,
    source: IntArray,
    alive: Flags,
    sums: FloatArray,
    value: FloatArray,
) -> None:
    """Write the value of each hand where a bid is checked: the number of matching dice is all [Johanson16 §3.3]."""
    kinds = dice.called.shape[2]
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here = node + shift
        if nodes.kind[node] == CALL_BLUFF and alive[here]:
            face, table, above = nodes.face[node], nodes.row[node], source[here]
            for k in range(kinds):
                sums[k] = 0.0
            for hand in range(np.uint64(theirs[0]), np.uint64(theirs[1])):
                sums[np.uint8(dice.matching[1 - player, face, hand])] += reach[above, hand]
            for hand in range(np.uint64(mine[0]), np.uint64(mine[1])):
                matching = np.uint8(dice.matching[player, face, hand])
                total = 0.0
                for k in range(kinds):
                    total += sums[k] * dice.called[player, table, matching, k]
                value[here, hand] = total


@kernel
def settle_few(
    nodes: Nodes,
    block: int,
    sign: float,
    bits: IntArray,
    held: np.int64,
    strength: npt.NDArray[np.int16],
    mine: IntArray,
    theirs: IntArray,
    reach: FloatArray,
    source: IntArray,
    alive: Flags,
    value: FloatArray,
) -> None:
    """Write what hands are worth at the leaves of a block where one player has only one: each meets each."""
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here, kind = node + shift, nodes.kind[node]
        if kind >= FOLD and alive[here]:
            above, stake = source[here], nodes.stake[node] * (sign if kind == FOLD else 1.0)
            for i in range(mine[0], mine[1]):
                total = 0.0
                if not held & bits[i]:
                    for j in range(theirs[0], theirs[1]):
                        if not (held | bits[i]) & bits[j]:
                            won = np.sign(strength[i] - strength[j]) if kind == SHOWDOWN else 1
                            total += won * reach[above, j]
                value[here, i] = stake * total


@kernel
def settle_folds(
    nodes: Nodes,
    block: int,
    sign: float,
    live: npt.NDArray[np.uint16],
    cards: Columns,
    reach: FloatArray,
    source: IntArray,
    alive: Flags,
    by_card: FloatArray,
    value: FloatArray,
) -> None:
    """Write the values of a block's leaves before the last board: nobody has shown a hand."""
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here = node + shift
        if nodes.kind[node] == FOLD and alive[here]:
            fold_values(live, cards, reach[source[here]], sign * nodes.stake[node], by_card, value[here])


@kernel
def settle(nodes: Nodes, block: int, sign: float, groups: int, room: Workspace) -> None:
    """Write the values of a block's leaves on the last board: `LANES` different reaches at a time.

    What was found out on this board about reaches of rounds before serves other blocks as well.
    """
    order, live, lanes = room.ranking.order, np.uint64(room.ranking.ends[groups - 1]), np.uint64(LANES)
    kinds, source, alive = nodes.kind, room.source, room.alive
    lane_source, wanted, ready = room.lane_source, room.lane_wanted, room.lanes_ready
    reach, result, whole, value = room.lane_reach, room.lane_result, room.lane_whole, room.value
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    node, end = nodes.block[block], nodes.block[block + 1]
    while node < end:
        begin, found = node, 0  # take leaves while their reaches fit; neighbours may share one
        while node < end:
            if kinds[node] >= FOLD and alive[node + shift]:
                above = source[node + shift]
                if found == 0 or wanted[found - 1] != above:
                    if found == LANES:
                        break
                    wanted[found] = above
                    found += 1
            node += 1
        if found == 0:
            break
        known, lasting = found <= ready[0], True
        for k in range(found):
            known = known and wanted[k] == lane_source[k]
            lasting = lasting and wanted[k] < nodes.place[nodes.block[block]]
        if not known:
            for k in range(found):
                above, lane = wanted[k], np.uint64(k)
                lane_source[k] = above
                for i in range(np.uint64(0), live):
                    reach[lanes * i + lane] = room.reach[above, order[i]]
            showdowns(room.ranking, groups, reach, room.lane_cards, result, whole)
            ready[0] = found if lasting else 0
        lane, current = np.uint64(0), lane_source[0]
        for leaf in range(begin, node):
            here = leaf + shift
            if kinds[leaf] >= FOLD and alive[here]:
                if source[here] != current:
                    lane, current = lane + np.uint64(1), source[here]
                fill(value, here, np.uint64(0), np.uint64(value.shape[1]), -1)
                if kinds[leaf] == FOLD:
                    won = value.dtype.type(sign * nodes.stake[leaf])
                    for i in range(np.uint64(0), live):
                        value[here, order[i]] = won * whole[lanes * i + lane]
                else:
                    won = value.dtype.type(nodes.stake[leaf])
                    for i in range(np.uint64(0), live):
                        value[here, order[i]] = won * (result[lanes * i + lane] - whole[lanes * i + lane])


@kernel
def strengths_of_few(
    cards: IntArray,
    bits: np.int64,
    deck: HandList,
    tables: HandTables,
    mine: IntArray,
    theirs: IntArray,
    strength: npt.NDArray[np.int16],
) -> None:
    """Write how strong hands are on the last board, where one player has only one."""
    if mine[1] - mine[0] > 1 or theirs[1] - theirs[0] > 1:
        board_strengths(cards, deck, tables, strength)
    else:
        key = np.int64(tables.start)
        for card in cards:
            key += tables.card_key[card]
        for hand in (mine[0], theirs[0]):
            strength[hand] = look_up(key + deck.key[hand], bits | deck.bits[hand], tables)


@kernel
def hands_left(bits: IntArray, held: np.int64, order: npt.NDArray[np.uint16]) -> int:
    """Write which hands share no card with the board, and return how many there are."""
    live = 0
    for hand in range(len(bits)):
        if not held & bits[hand]:
            order[live] = hand
            live += 1
    return live
