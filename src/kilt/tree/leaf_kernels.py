"""Compute each hand's value at the ends of a game, given the opponent's range [Johanson16 §§2.4, 3.3]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import (
    Columns,
    HandList,
    Order,
    board_strengths,
    compatible_weights,
    showdown_values_by_player,
    ties_between,
)
from kilt.cards.hands_kernels import HandTables, look_up
from kilt.jit import spliced, subkernel
from kilt.lanes import LANES
from kilt.tree.vector_arrays import (
    CALL_BLUFF,
    CONTINUED,
    FOLD,
    SHOWDOWN,
    Dice,
    Hand,
    Nodes,
    Scope,
    Vectors,
    VectorTree,
    Visit,
    Workspace,
)


@subkernel
def set_to_zero(value: FloatArray, here: int, start: Hand, end: Hand) -> None:
    """Set the values of the hands from `start` up to `end` to 0."""
    for hand in range(start, end):
        value[here, hand] = 0


@spliced
def ordered_by_strength(visit: Visit) -> bool:
    """Return whether hands are now listed in order of strength.

    Sorted vectors contain only distinct hands that are possible on the board.
    """
    return visit.by_strength and visit.arriving and visit.leaving


@spliced
def hands_on_board(visit: Visit, hands: IntArray, live: int) -> tuple[Hand, Hand]:
    """Return the first and the end index of a player's possible hands on the current board.

    If hands are in order of strength, there are `live` of them.
    """
    if ordered_by_strength(visit):
        return np.uint64(0), np.uint64(live)
    return np.uint64(hands[visit.depth, 0]), np.uint64(hands[visit.depth, 1])


@subkernel
def after_rake(won: float, rake: float) -> float:
    """Return a player's winnings after rake, which only winners pay."""
    return won - rake if won > 0 else won


@spliced
def has_single_hand(scope: Scope) -> bool:
    """Return whether a player has only one hand, because hands are sampled."""
    mine, theirs = scope.mine, scope.theirs
    found: bool = mine[0, 1] - mine[0, 0] == 1 or theirs[0, 1] - theirs[0, 0] == 1
    return found


@spliced
def values_of_leaves(
    tree: VectorTree, block: int, player: int, scope: Scope, visit: Visit, work: Workspace, reach: FloatArray
) -> None:
    """Compute each hand's value at the leaves of a betting round.

    Leaves of the last round are left to `values_of_showdowns`, if both players have several hands.
    """
    if not tree.poker:
        sums = work.ranking.by_card
        bluff_values(tree.nodes, tree.dice, block, player, scope, visit.depth, sums, work.vectors, reach)
    elif has_single_hand(scope):
        strength = work.ranking.strength
        pairwise_values(tree.nodes, block, player, tree.deck.bits, strength, scope, visit, work.vectors, reach)
    elif not visit.leaving:
        live, by_card = work.order[: visit.mine], work.ranking.by_card
        fold_values(tree.nodes, block, player, live, tree.deck.cards, by_card, work.vectors, reach)
    if len(tree.pair_values) > 0:
        continued_values(tree.nodes, tree.pair_values, block, player, work.vectors, reach)


@spliced
def bluff_values(
    nodes: Nodes,
    dice: Dice,
    block: int,
    player: int,
    scope: Scope,
    depth: int,
    sums: FloatArray,
    vectors: Vectors,
    reach: FloatArray,
) -> None:
    """Compute each hand's value after a bid in Bluff was called [Johanson16 §3.3].

    Payoffs depend only on the number of each player's dice that match the bid.
    """
    source, alive, value = vectors.source, vectors.alive, vectors.value
    matching, called = dice.matching, dice.called
    mine, mine_end = np.uint64(scope.mine[depth, 0]), np.uint64(scope.mine[depth, 1])
    theirs, theirs_end = np.uint64(scope.theirs[depth, 0]), np.uint64(scope.theirs[depth, 1])
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here = node + shift
        if nodes.kind[node] == CALL_BLUFF and alive[here]:
            face, row, above = nodes.face[node], nodes.row[node], source[here]
            for k in range(called.shape[2]):
                sums[k] = 0.0
            for hand in range(theirs, theirs_end):
                sums[np.uint8(matching[1 - player, face, hand])] += reach[above, hand]
            for hand in range(mine, mine_end):
                own, total = np.uint8(matching[player, face, hand]), 0.0
                for k in range(called.shape[2]):
                    total += sums[k] * called[player, row, own, k]
                value[here, hand] = total


@spliced
def pairwise_values(
    nodes: Nodes,
    block: int,
    player: int,
    bits: IntArray,
    strength: npt.NDArray[np.int16],
    scope: Scope,
    visit: Visit,
    vectors: Vectors,
    reach: FloatArray,
) -> None:
    """Compute each hand's value at leaves by comparing all pairs of hands, if one player has a single hand."""
    source, alive, value = vectors.source, vectors.alive, vectors.value
    mine, mine_end = scope.mine[visit.depth, 0], scope.mine[visit.depth, 1]
    theirs, theirs_end = scope.theirs[visit.depth, 0], scope.theirs[visit.depth, 1]
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here, kind = node + shift, nodes.kind[node]
        if kind >= FOLD and alive[here]:
            above, stake = source[here], nodes.stake[player, node]
            rake = nodes.rake[node] if stake > 0 else 0.0
            extra = nodes.extra[player, node] if nodes.extra.shape[1] > 0 else 0.0
            for i in range(mine, mine_end):
                total, taxed, tied = 0.0, 0.0, 0.0
                if not visit.held & bits[i]:
                    for j in range(theirs, theirs_end):
                        if not (visit.held | bits[i]) & bits[j]:
                            won = np.sign(strength[i] - strength[j]) if kind == SHOWDOWN else 1
                            total += won * reach[above, j]
                            taxed += (won + 1) * reach[above, j]
                            tied += (1 - abs(won)) * reach[above, j]
                value[here, i] = stake * total - 0.5 * (rake - extra) * taxed - 0.5 * extra * tied


@spliced
def fold_values(
    nodes: Nodes,
    block: int,
    player: int,
    live: Order,
    cards: Columns,
    by_card: FloatArray,
    vectors: Vectors,
    reach: FloatArray,
) -> None:
    """Compute each hand's value after a fold, in any betting round except the last."""
    value = vectors.value
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here = node + shift
        if nodes.kind[node] == FOLD and vectors.alive[here]:
            compatible_weights(live, cards, reach[vectors.source[here]], by_card, value[here])
            won = after_rake(nodes.stake[player, node], nodes.rake[node])
            for hand in live:
                value[here, hand] *= won


@spliced
def continued_values(
    nodes: Nodes,
    pair_values: npt.NDArray[np.float32],
    block: int,
    player: int,
    vectors: Vectors,
    reach: FloatArray,
) -> None:
    """Compute each hand's value at a depth limit, given the values of all pairs of hands.

    A leaf at the depth limit stands for the rest of the game.

    Impossible pairs have the value 0. The matrices are read row by row for both players, four rows at a time, so that
    sums do not wait for each other.
    """
    value = vectors.value
    hands = np.uint64(value.shape[1])
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here = node + shift
        if nodes.kind[node] == CONTINUED and vectors.alive[here]:
            pairs, above = pair_values[nodes.row[node]], vectors.source[here]
            stake = value.dtype.type(nodes.stake[player, node])
            if player == 0:
                whole = hands - hands % np.uint64(4)
                for i in range(np.uint64(0), whole, np.uint64(4)):
                    a = b = c = d = value.dtype.type(0)
                    for j in range(np.uint64(0), hands):
                        there = reach[above, j]
                        a += pairs[i, j] * there
                        b += pairs[i + np.uint64(1), j] * there
                        c += pairs[i + np.uint64(2), j] * there
                        d += pairs[i + np.uint64(3), j] * there
                    value[here, i], value[here, i + np.uint64(1)] = stake * a, stake * b
                    value[here, i + np.uint64(2)], value[here, i + np.uint64(3)] = stake * c, stake * d
                for i in range(whole, hands):
                    a = value.dtype.type(0)
                    for j in range(np.uint64(0), hands):
                        a += pairs[i, j] * reach[above, j]
                    value[here, i] = stake * a
            else:
                set_to_zero(value, here, np.uint64(0), hands)
                for i in range(np.uint64(0), hands):
                    there = stake * reach[above, i]
                    if there != 0:
                        for j in range(np.uint64(0), hands):
                            value[here, j] += pairs[i, j] * there


@subkernel
def take_lanes(
    node_reach: FloatArray,
    wanted: IntArray,
    found: int,
    order: Order,
    live: Hand,
    sorted_already: bool,
    reach: FloatArray,
) -> None:
    """Copy the reach probabilities of several leaves to one array, to process them together.

    Hands are sorted, weakest first.
    """
    lanes = np.uint64(LANES)
    for end in range(lanes * live, lanes * live + lanes):
        reach[end] = 0
    if sorted_already:
        for k in range(0, LANES, 4):
            lane, left = np.uint64(k), found - 1
            a, b, c, d = (
                wanted[min(k, left)],
                wanted[min(k + 1, left)],
                wanted[min(k + 2, left)],
                wanted[min(k + 3, left)],
            )
            for i in range(np.uint64(0), live):
                reach[lanes * i + lane] = node_reach[a, i]
                reach[lanes * i + lane + np.uint64(1)] = node_reach[b, i]
                reach[lanes * i + lane + np.uint64(2)] = node_reach[c, i]
                reach[lanes * i + lane + np.uint64(3)] = node_reach[d, i]
        return
    for k in range(found):
        above, lane = wanted[k], np.uint64(k)
        for i in range(np.uint64(0), live):
            reach[lanes * i + lane] = node_reach[above, order[i]]


@subkernel
def write_fold(
    won: float,
    whole: FloatArray,
    lane: Hand,
    order: Order,
    live: Hand,
    sorted_already: bool,
    value: FloatArray,
    here: int,
) -> None:
    """Compute each hand's winnings after a fold in the last round."""
    lanes, share = np.uint64(LANES), value.dtype.type(won)
    if sorted_already:
        for i in range(np.uint64(0), live):
            value[here, i] = share * whole[lanes * i + lane]
        return
    for i in range(np.uint64(0), live):
        value[here, order[i]] = share * whole[lanes * i + lane]


@subkernel
def write_showdown(
    stake: float,
    rake: float,
    result: FloatArray,
    whole: FloatArray,
    lane: Hand,
    order: Order,
    live: Hand,
    sorted_already: bool,
    value: FloatArray,
    here: int,
) -> None:
    """Compute each hand's winnings at a showdown.

    In `result`, hands that are beaten count twice and ties once; so does the rake that winners pay.
    """
    lanes, won, half = np.uint64(LANES), value.dtype.type(stake), value.dtype.type(0.5 * rake)
    if sorted_already:
        for i in range(np.uint64(0), live):
            beaten = result[lanes * i + lane]
            value[here, i] = won * (beaten - whole[lanes * i + lane]) - half * beaten
        return
    for i in range(np.uint64(0), live):
        beaten = result[lanes * i + lane]
        value[here, order[i]] = won * (beaten - whole[lanes * i + lane]) - half * beaten


@spliced
def values_of_showdowns(
    tree: VectorTree, first: int, end: int, player: int, scope: Scope, visit: Visit, work: Workspace, reach: FloatArray
) -> None:
    """Compute each hand's value at all leaves of several betting rounds, on a complete board.

    These are the betting rounds from number `first` up to `end`.
    """
    if tree.poker and not has_single_hand(scope):
        opened = tree.nodes.block[tree.entry_block[first]], tree.nodes.block[tree.entry_block[end - 1] + 1]
        showdown_values(tree.nodes, opened[0], opened[1], player, visit, work, reach)


@spliced
def showdown_values(
    nodes: Nodes, node: int, end: int, player: int, visit: Visit, work: Workspace, node_reach: FloatArray
) -> None:
    """Compute each hand's value at leaves of the last round, several leaves at a time.

    The leaves are among the nodes from `node` up to `end`. `LANES` different reach vectors are evaluated together.

    These nodes have consecutive places in the workspace.

    Results on this board for the reach of earlier rounds are reused.
    """
    sides, weighted, lanes = work.sides, work.ranking.weighted[0], np.uint64(LANES)
    order, their_order = sides.order[0], sides.order[1]
    live, their_live = np.uint64(visit.mine), np.uint64(visit.theirs)
    groups, sorted_already = visit.groups, ordered_by_strength(visit)
    kinds, source, alive = nodes.kind, work.vectors.source, work.vectors.alive
    lane_source, wanted, ready = work.lanes.source, work.lanes.wanted, work.lanes.ready
    reach, result, whole, tied = work.lanes.reach, work.lanes.result, work.lanes.whole, work.lanes.tied
    tilted = nodes.extra.shape[1] > 0
    value = work.vectors.value
    shift, own = nodes.place[node] - node, nodes.place[node]
    while node < end:
        begin, found = node, 0  # take leaves while their reaches fit; adjacent leaves may share one
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
            lasting = lasting and wanted[k] < own
        if not known:
            for k in range(found):
                lane_source[k] = wanted[k]
            take_lanes(node_reach, wanted, found, their_order, their_live, sorted_already, reach)
            showdown_values_by_player(sides, groups, weighted, reach, work.lanes.cards, result, whole)
            if tilted:
                ties_between(sides, groups, weighted, reach, work.lanes.cards, tied)
            ready[0] = found if lasting else 0
        lane, current = np.uint64(0), lane_source[0]
        for leaf in range(begin, node):
            here = leaf + shift
            if kinds[leaf] >= FOLD and alive[here]:
                if source[here] != current:
                    lane, current = lane + np.uint64(1), source[here]
                if not sorted_already:
                    set_to_zero(value, here, np.uint64(0), np.uint64(value.shape[1]))
                won, rake = nodes.stake[player, leaf], nodes.rake[leaf]
                if kinds[leaf] == FOLD:
                    write_fold(after_rake(won, rake), whole, lane, order, live, sorted_already, value, here)
                    continue
                write_showdown(won, rake, result, whole, lane, order, live, sorted_already, value, here)
                if tilted:  # wins pay more, or less, than losses cost
                    half = value.dtype.type(0.5 * nodes.extra[player, leaf])
                    for i in range(np.uint64(0), live):
                        hand = i if sorted_already else np.uint64(order[i])
                        value[here, hand] += half * (result[lanes * i + lane] - tied[lanes * i + lane])


@subkernel
def strengths_of_few(
    cards: IntArray,
    held: np.int64,
    deck: HandList,
    tables: HandTables,
    scope: Scope,
    depth: int,
    strength: npt.NDArray[np.int16],
) -> None:
    """Compute the strengths of hands on a complete board, for players with a single hand."""
    mine, theirs = scope.mine[depth, 0], scope.theirs[depth, 0]
    if scope.mine[depth, 1] - mine > 1 or scope.theirs[depth, 1] - theirs > 1:
        board_strengths(cards, deck, tables, strength)
    else:
        key = np.int64(tables.start)
        for card in cards:
            key += tables.card_key[card]
        for hand in (mine, theirs):
            strength[hand] = look_up(key + deck.key[hand], held | deck.bits[hand], tables)


@subkernel
def hands_left(bits: IntArray, held: np.int64, order: npt.NDArray[np.uint16]) -> int:
    """List the hands that share no card with the board. Returns their number.

    They are written to `order`.
    """
    live = 0
    for hand in range(len(bits)):
        if not held & bits[hand]:
            order[live] = hand
            live += 1
    return live
