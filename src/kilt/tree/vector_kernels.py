"""The compiled walk over a public tree with vectors of hands: reach goes down, values come up (004, sections 2.4, 3.3).

One walk serves a player who learns, one who follows a strategy and one who responds to it: only what happens at the
player's own nodes differs. It goes over the boards, deeper round by round, and on each board over all betting that
leads there, so that a board's hands are ranked once. At chance nodes it takes all boards, or the one that was drawn; of
the hands each player has all, or the one that was drawn (004, algorithm 1).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import ByteArray, FloatArray, IntArray
from kilt.cards.equity_kernels import Columns, HandList, Ranking, board_strengths, rank_board, showdowns
from kilt.cards.hands_kernels import HandTables, look_up
from kilt.draws import mix, numbered, uniform
from kilt.jit import kernel
from kilt.lanes import LANES
from kilt.tree.payoff_kernels import fold_values

Table: TypeAlias = npt.NDArray[np.floating[Any]]  # over (board, row) × hand
Flags: TypeAlias = npt.NDArray[np.bool_]
Hand: TypeAlias = np.uint64  # unsigned: for signed numbers the compiler adds tests, and uses no wide registers

DECISION, REVEAL, FOLD, SHOWDOWN, CALL_BLUFF = 0, 1, 2, 3, 4  # kinds of nodes
FOLLOW, RESPOND, LEARN, ANSWER = 0, 1, 2, 3  # what the player does; ANSWER is to respond and to write it down


class Nodes(NamedTuple):
    """Public actions in blocks: all that follows the opening of a round up to its end."""

    kind: ByteArray  # [node]
    actor: ByteArray  # [node]
    first_child: npt.NDArray[np.int32]  # [node]
    children: npt.NDArray[np.int32]  # [node]
    row: npt.NDArray[np.int32]  # [node] of its first action among the rows of its block
    place: npt.NDArray[np.int32]  # [node] in scratch; the blocks of the last round share theirs
    stake: FloatArray  # [node] chips that change hands at a leaf; after a fold, what player 0 wins
    face: npt.NDArray[np.int32]  # [node] of a called bid
    block: npt.NDArray[np.int32]  # [block + 1] where it begins


class Dice(NamedTuple):
    """What Bluff's leaves pay."""

    matching: ByteArray  # [player, face, hand] dice that match
    called: FloatArray  # [player, node of CALL_BLUFF by its row, own matches, the opponent's] to the player


class VectorTree(NamedTuple):
    """A public tree as kernels walk it.

    A chance node is an entry of the next round: it opens a block, for which it has rows of the tables. Boards are
    numbered through all rounds.
    """

    nodes: Nodes
    dice: Dice
    entry_start: npt.NDArray[np.int32]  # [round + 1] where the entries of a round begin
    entry_node: npt.NDArray[np.int32]  # [entry] the chance node, −1 where the game begins
    entry_block: npt.NDArray[np.int32]  # [entry] what it opens
    entry_row: npt.NDArray[np.int32]  # [entry] of its block among the rows of the round
    rows: npt.NDArray[np.int32]  # [round] from one board to the next in tables; 0 where boards share their rows
    table_start: IntArray  # [round + 1] where the rows of a round begin in tables over (board, row)
    board_start: IntArray  # [round + 1] number of its first board
    board: ByteArray  # [board, card]
    board_size: npt.NDArray[np.int32]  # [round]
    first_board: IntArray  # [board + 1] of the round after: its extensions
    weight: npt.NDArray[np.int32]  # [board] how many it stands for
    weight_before: IntArray  # [board + 1] of all boards with lower numbers
    symmetry: npt.NDArray[np.int32]  # [board] the suit permutations that leave it as it is
    moved: npt.NDArray[np.int32]  # [permutation, hand]
    chance: FloatArray  # [round] the probability of one of its boards, given both hands
    odds: FloatArray  # [round, hands that were drawn] the same over the probability with which a walk draws it
    poker: bool  # whether hands are cards, which may be on the board or in the other hand
    hands: npt.NDArray[np.int32]  # [player] how many
    prior: FloatArray  # [player, hand] the reach with which a hand is dealt
    rivals: float  # the prior reach of all hands that one hand may meet
    norm: float  # what sums of prior × value are multiplied by
    noise: float  # values that differ by less are equal but for rounding


class Draw(NamedTuple):
    """What a walk looks at, round by round: all of it, or what was drawn."""

    board: IntArray  # [round] −1 for all
    suits: IntArray  # [round] the permutation that leads from hands of the round before to those of this one
    mine: IntArray  # [round, 2] the hands from … to …, the latter excluded
    theirs: IntArray  # [round, 2]
    reach: FloatArray  # [1] of a hand of theirs that was drawn, when it is dealt; 0 where all have theirs
    chance: FloatArray  # [round] how much a board that was drawn counts


class Room(NamedTuple):
    """Scratch of one walk."""

    reach: FloatArray  # [place, hand] of the opponent
    source: IntArray  # [place] where its reach stands
    alive: Flags  # [place] whether the opponent reaches it at all
    value: FloatArray  # [place, hand] to the player
    shares: FloatArray  # [2, hand]
    order: npt.NDArray[np.uint16]  # the hands that the board leaves
    ranking: Ranking
    lane_source: IntArray  # [lane] where its reach stands
    lane_wanted: IntArray  # [lane] where that of the leaves to come does
    lanes_ready: IntArray  # [1] how many lanes hold what is good for all of this board
    lane_reach: FloatArray  # `LANES` vectors side by side, like those that follow
    lane_result: FloatArray
    lane_whole: FloatArray
    lane_cards: FloatArray


@kernel
def match(table: Table, first: int, actions: int, start: Hand, end: Hand, shares: FloatArray) -> None:
    """Regret matching: probabilities in proportion to positive entries of a table, uniform where there are none.

    The probability of an action is max(entry, 0) · shares[0] + shares[1], which this writes for each hand: it is worked
    out where it is needed, without being stored.
    """
    number = shares.dtype.type
    zero, one, even, least = number(0), number(1), number(1.0 / actions), number(1e-37)
    for hand in range(start, end):
        shares[0, hand] = max(table[first, hand], zero)
    for row in range(first + 1, first + actions):
        for hand in range(start, end):
            shares[0, hand] += max(table[row, hand], zero)
    for hand in range(start, end):
        total = shares[0, hand]
        shares[1, hand] = zero if total > least else even
        shares[0, hand] = one / total if total > least else zero


@kernel
def push_step(
    reach: FloatArray, here: int, table: Table, row: int, shares: FloatArray, start: Hand, end: Hand, child: int
) -> None:
    """Write the reach after an action."""
    zero = shares.dtype.type(0)
    for hand in range(start, end):
        reach[child, hand] = reach[here, hand] * (max(table[row, hand], zero) * shares[0, hand] + shares[1, hand])


@kernel
def push_and_average(
    reach: FloatArray,
    here: int,
    table: Table,
    row: int,
    shares: FloatArray,
    start: Hand,
    end: Hand,
    child: int,
    multiplier: float,
    average: Table,
) -> None:
    """Write the reach after an action, add it to the sum of strategies, and discount that."""
    zero, kept = shares.dtype.type(0), shares.dtype.type(multiplier)
    for hand in range(start, end):
        after = reach[here, hand] * (max(table[row, hand], zero) * shares[0, hand] + shares[1, hand])
        reach[child, hand] = after
        average[row, hand] = (average[row, hand] + after) * kept


@kernel
def add_values(
    value: FloatArray, child: int, table: Table, row: int, shares: FloatArray, start: Hand, end: Hand, here: int
) -> None:
    """Add what an action of the player is worth, as often as it is taken."""
    zero = shares.dtype.type(0)
    for hand in range(start, end):
        share = max(table[row, hand], zero) * shares[0, hand] + shares[1, hand]
        value[here, hand] += share * value[child, hand]


@kernel
def add_all(value: FloatArray, child: int, start: Hand, end: Hand, here: int) -> None:
    """Add what an action of the opponent is worth: the reach says how often it is taken."""
    for hand in range(start, end):
        value[here, hand] += value[child, hand]


@kernel
def take_best(value: FloatArray, child: int, start: Hand, end: Hand, here: int) -> None:
    """Raise each hand's best value to what another action is worth."""
    for hand in range(start, end):
        value[here, hand] = max(value[here, hand], value[child, hand])


@kernel
def fill(value: FloatArray, here: int, start: Hand, end: Hand, child: int) -> None:
    """Write the values of a child, or 0 where there is none (−1)."""
    for hand in range(start, end):
        value[here, hand] = value[child, hand] if child >= 0 else 0


@kernel
def any_left(reach: FloatArray, child: int, start: Hand, end: Hand) -> bool:
    """Whether any hand is left."""
    for hand in range(start, end):  # noqa: SIM110, no generators in kernels
        if reach[child, hand] > 0:
            return True
    return False


@kernel
def certain(table: Table, first: int, actions: int, start: Hand, end: Hand) -> int:
    """The action that is taken with every hand, −1 where there is none."""
    found = -1
    for a in range(actions):
        if table[first + a, start] > 0:
            found = a
    if found >= 0:
        least, most = table[first + found, start], table[first + found, start] * 0
        for a in range(actions):
            if a == found:
                for hand in range(start, end):
                    least = min(least, table[first + a, hand])
            else:
                for hand in range(start, end):
                    most = max(most, table[first + a, hand])
        if least <= 0 or most > 0:
            found = -1
    return found


@kernel
def level_suits(
    moves: npt.NDArray[np.int32], symmetry: int, hands: int, scratch: FloatArray, value: FloatArray
) -> None:
    """Give each hand the mean over the suit permutations that nothing tells apart.

    Each canonical board was counted as often as the boards that it stands for. They are its images under the
    permutations that leave the board before as it is; so what it says of a hand is shared among that hand's images.
    """
    scratch[:hands] = 0
    count = 0
    for p in range(moves.shape[0]):
        if (symmetry >> p) & 1:
            moved = moves[p]
            count += 1
            for hand in range(hands):
                scratch[hand] += value[moved[hand]]
    for hand in range(hands):
        value[hand] = scratch[hand] / count


@kernel
def add_regrets(
    value: FloatArray,
    child: int,
    here: int,
    start: Hand,
    end: Hand,
    noise: float,
    multiplier: FloatArray,
    regret: Table,
    row: int,
) -> None:
    """Add what an action is worth more than the strategy, unless it is `noise`, and discount the sum."""
    number = value.dtype.type
    kept, kept_below, least, zero = number(multiplier[0]), number(multiplier[1]), number(noise), number(0)
    for hand in range(start, end):
        gained = value[child, hand] - value[here, hand]
        total = regret[row, hand] + (gained if abs(gained) > least else zero)
        regret[row, hand] = total * (kept if total > zero else kept_below)


@kernel
def predict(
    value: FloatArray,
    child: int,
    here: int,
    start: Hand,
    end: Hand,
    noise: float,
    regret: Table,
    row: int,
    prediction: Table,
) -> None:
    """Write the regret that comes next if the last one comes once more."""
    least, zero = value.dtype.type(noise), value.dtype.type(0)
    for hand in range(start, end):
        gained = value[child, hand] - value[here, hand]
        prediction[row, hand] = regret[row, hand] + (gained if abs(gained) > least else zero)


@kernel
def write_best(
    value: FloatArray, child: int, here: int, actions: int, start: Hand, end: Hand, noise: float, table: Table, row: int
) -> None:
    """Write 1 for the first action that is best for a hand, but for noise, and 0 for the others."""
    for hand in range(start, end):
        found = False
        for a in range(actions):
            chosen = not found and value[child + a, hand] >= value[here, hand] - noise
            table[row + a, hand] = 1.0 if chosen else 0.0
            found = found or chosen


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
    """Write the value of each hand where a bid is checked: the number of matching dice is all (004, section 3.3)."""
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
def settle(nodes: Nodes, block: int, sign: float, groups: int, room: Room) -> None:
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


@kernel
def push_block(
    nodes: Nodes,
    block: int,
    first_row: int,
    player: int,
    prune: bool,
    averaging: bool,
    mine: IntArray,
    theirs: IntArray,
    table: Table,
    average: Table,
    multiplier: float,
    reach: FloatArray,
    source: IntArray,
    alive: Flags,
    shares: FloatArray,
    value: FloatArray,
) -> None:
    """Push the opponent's reach down a block. Chance nodes, and leaves that are not reached, get a value of 0."""
    start, end = np.uint64(theirs[0]), np.uint64(theirs[1])
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here = node + shift
        if nodes.kind[node] != DECISION:
            if nodes.kind[node] == REVEAL or not alive[here]:
                fill(value, here, np.uint64(mine[0]), np.uint64(mine[1]), -1)
            continue
        actions, child, above = nodes.children[node], nodes.first_child[node] + shift, source[here]
        if nodes.actor[node] == player or not alive[here]:
            for a in range(actions):
                source[child + a], alive[child + a] = above, alive[here]
            continue
        first = first_row + nodes.row[node]
        sure = certain(table, first, actions, start, end) if prune else -1
        if sure >= 0:  # the reach stays as it is
            for a in range(actions):
                source[child + a], alive[child + a] = above, a == sure
            continue
        match(table, first, actions, start, end, shares)
        for a in range(actions):
            row, below = first + a, child + a
            if averaging:
                push_and_average(reach, above, table, row, shares, start, end, below, multiplier, average)
            else:
                push_step(reach, above, table, row, shares, start, end, below)
            source[below] = below
            alive[below] = not prune or any_left(reach, below, start, end)


@kernel
def pull_block(
    nodes: Nodes,
    noise: float,
    block: int,
    first_row: int,
    player: int,
    task: int,
    mine: IntArray,
    table: Table,
    regret: Table,
    multiplier: FloatArray,
    alive: Flags,
    shares: FloatArray,
    value: FloatArray,
) -> None:
    """Pull the values of a block up from its leaves and chance nodes; learn on the way where `task` says so."""
    start, end = np.uint64(mine[0]), np.uint64(mine[1])
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block + 1] - 1, nodes.block[block] - 1, -1):
        if nodes.kind[node] != DECISION:
            continue
        here, child, actions = node + shift, nodes.first_child[node] + shift, nodes.children[node]
        first = first_row + nodes.row[node]
        if not alive[here]:
            fill(value, here, start, end, -1)
        elif nodes.actor[node] != player:
            fill(value, here, start, end, child)
            for a in range(1, actions):
                add_all(value, child + a, start, end, here)
        elif task in (RESPOND, ANSWER):
            fill(value, here, start, end, child)
            for a in range(1, actions):
                take_best(value, child + a, start, end, here)
            if task == ANSWER:
                write_best(value, child, here, actions, start, end, noise, table, first)
        else:
            match(table, first, actions, start, end, shares)
            fill(value, here, start, end, -1)
            for a in range(actions):
                add_values(value, child + a, table, first + a, shares, start, end, here)
            if task == LEARN:
                for a in range(actions):
                    add_regrets(value, child + a, here, start, end, noise, multiplier, regret, first + a)
                    if multiplier[3] > 0:
                        predict(value, child + a, here, start, end, noise, regret, first + a, table)


@kernel
def hand_up(value: FloatArray, root: int, scale: float, start: Hand, end: Hand, above: int) -> None:
    """Add what a block is worth to the chance node that opened it."""
    factor = value.dtype.type(scale)
    for hand in range(start, end):
        value[above, hand] += factor * value[root, hand]


@kernel
def hand_up_moved(
    value: FloatArray, root: int, scale: float, moved: npt.NDArray[np.int32], start: Hand, end: Hand, above: int
) -> None:
    """The same after a board that was drawn: hands have other names there."""
    for hand in range(start, end):
        value[above, hand] += scale * value[root, moved[hand]]


@kernel
def leave_block(
    tree: VectorTree, depth: int, board: int, entry: int, draw: Draw, value: FloatArray, result: FloatArray
) -> None:
    """Add what a block is worth to the chance node that opened it; where the game begins, write it to `result`."""
    root = tree.nodes.place[tree.nodes.block[tree.entry_block[entry]]]
    if depth == 0:
        for hand in range(draw.mine[0, 0], draw.mine[0, 1]):
            result[hand] = value[root, hand]
    else:
        start, end = np.uint64(draw.mine[depth - 1, 0]), np.uint64(draw.mine[depth - 1, 1])
        above = tree.nodes.place[tree.entry_node[entry]]
        if draw.board[depth] < 0:
            hand_up(value, root, tree.chance[depth] * tree.weight[board], start, end, above)
        else:
            hand_up_moved(value, root, draw.chance[depth], tree.moved[draw.suits[depth]], start, end, above)


@kernel
def goes_on(tree: VectorTree, depth: int, room: Room) -> bool:
    """Whether the opponent reaches any chance node of a round."""
    going = False
    if depth + 1 < len(tree.rows):
        for entry in range(tree.entry_start[depth + 1], tree.entry_start[depth + 2]):
            going = going or room.alive[tree.nodes.place[tree.entry_node[entry]]]
    return going


@kernel
def walk(
    tree: VectorTree,
    deck: HandList,
    tables: HandTables,
    player: int,
    tasks: IntArray,
    averaging: bool,
    share: int,
    shares: int,
    draw: Draw,
    own: Table,
    theirs: Table,
    regret: Table,
    average: Table,
    multiplier: FloatArray,
    room: Room,
    sums: FloatArray,
    result: FloatArray,
) -> None:
    """Write to `result` what each hand of `player` is worth, weighted by the opponent's reach.

    In each round the player does what `tasks` says, with the strategy of table `own`; the opponent follows `theirs`.
    LEARN brings the player's regrets up to date, `averaging` the sums of the opponent's strategies. A walk of several
    shares takes its part of the boards that follow the first round, and writes what the chance nodes before them are
    worth to `sums`. One of 0 shares takes no boards: it goes on from such sums.
    """
    rounds = len(tree.rows)
    last = rounds - 1
    prune = not averaging
    for task in tasks:
        prune = prune and task < LEARN
    single = draw.mine[0, 1] - draw.mine[0, 0] == 1 or draw.theirs[0, 1] - draw.theirs[0, 0] == 1
    few = tree.poker and single
    sign = 1.0 if player == 0 else -1.0
    reach, source, alive, value = room.reach, room.source, room.alive, room.value
    current = np.zeros(rounds, dtype=np.int64)  # boards
    following = np.zeros(rounds, dtype=np.int64)
    depth = 0
    entering = True
    while depth >= 0:
        board = current[depth]
        if entering:
            entering = False
            mine, others = draw.mine[depth], draw.theirs[depth]
            live, groups, held = 0, 0, np.int64(0)
            cards = tree.board[board, : tree.board_size[depth]].astype(np.int64)
            for card in cards:
                held |= tables.card_bit[card]
            if few and depth == last:
                strengths_of_few(cards, held, deck, tables, mine, others, room.ranking.strength)
            elif tree.poker and depth == last:
                groups = rank_board(cards, deck, tables, room.ranking)
                room.lanes_ready[0] = 0
            elif tree.poker and not few:
                live = hands_left(deck.bits, held, room.order)
            first_row = tree.table_start[depth] + (board - tree.board_start[depth]) * tree.rows[depth]
            for entry in range(tree.entry_start[depth], tree.entry_start[depth + 1]):
                block, rows = tree.entry_block[entry], first_row + tree.entry_row[entry]
                root = tree.nodes.place[tree.nodes.block[block]]
                source[root], alive[root] = root, True
                if depth == 0:
                    for hand in range(others[0], others[1]):
                        drawn = draw.reach[0]
                        reach[root, hand] = drawn if drawn > 0 else tree.prior[1 - player, hand]
                else:
                    above = tree.nodes.place[tree.entry_node[entry]]
                    if not alive[above]:
                        if depth < last:
                            alive[root : root + tree.nodes.block[block + 1] - tree.nodes.block[block]] = False
                        continue
                    if draw.board[depth] < 0:
                        source[root] = source[above]
                    else:
                        before = reach[source[above]]
                        moved = tree.moved[draw.suits[depth]]
                        for hand in range(draw.theirs[depth - 1, 0], draw.theirs[depth - 1, 1]):
                            reach[root, moved[hand]] = before[hand]
                push_block(
                    tree.nodes,
                    block,
                    rows,
                    player,
                    prune,
                    averaging and (depth > 0 or share == 0),
                    mine,
                    others,
                    theirs,
                    average,
                    multiplier[2],
                    reach,
                    source,
                    alive,
                    room.shares,
                    value,
                )
                if not tree.poker:
                    sums_of_dice = room.ranking.by_card
                    settle_bids(
                        tree.nodes, tree.dice, block, player, mine, others, reach, source, alive, sums_of_dice, value
                    )
                elif few:
                    strength = room.ranking.strength
                    settle_few(
                        tree.nodes, block, sign, deck.bits, held, strength, mine, others, reach, source, alive, value
                    )
                elif depth == last:
                    settle(tree.nodes, block, sign, groups, room)
                else:
                    by_card = room.ranking.by_card
                    settle_folds(
                        tree.nodes, block, sign, room.order[:live], deck.cards, reach, source, alive, by_card, value
                    )
                if depth == last:
                    pull_block(
                        tree.nodes,
                        tree.noise,
                        block,
                        rows,
                        player,
                        tasks[depth],
                        mine,
                        own,
                        regret,
                        multiplier,
                        alive,
                        room.shares,
                        value,
                    )
                    leave_block(tree, depth, board, entry, draw, value, result)
            following[depth] = tree.first_board[board] + (share if depth == 0 else 0)
            if depth < last and draw.board[depth + 1] >= 0:
                following[depth] = draw.board[depth + 1]
            elif shares == 0 or not goes_on(tree, depth, room):
                following[depth] = tree.first_board[board + 1]

        if depth < last and following[depth] < tree.first_board[board + 1]:
            current[depth + 1] = following[depth]
            following[depth] += shares if depth == 0 else 1
            if draw.board[depth + 1] >= 0:
                following[depth] = tree.first_board[board + 1]
            depth += 1
            entering = True
            continue
        if depth == 0 and depth < last and shares != 1:
            for entry in range(tree.entry_start[1], tree.entry_start[2]):
                total, found = sums[entry - tree.entry_start[1]], value[tree.nodes.place[tree.entry_node[entry]]]
                if shares > 1:
                    total[:] = found
                else:
                    found[:] = total
            if shares > 1:
                return
        if depth < last:
            if draw.board[depth + 1] < 0:
                for entry in range(tree.entry_start[depth + 1], tree.entry_start[depth + 2]):
                    below = tree.nodes.place[tree.entry_node[entry]]
                    if alive[below]:
                        level_suits(tree.moved, tree.symmetry[board], tree.hands[player], room.shares[0], value[below])
            first_row = tree.table_start[depth] + (board - tree.board_start[depth]) * tree.rows[depth]
            for entry in range(tree.entry_start[depth], tree.entry_start[depth + 1]):
                if depth == 0 or alive[tree.nodes.place[tree.entry_node[entry]]]:
                    pull_block(
                        tree.nodes,
                        tree.noise,
                        tree.entry_block[entry],
                        first_row + tree.entry_row[entry],
                        player,
                        tasks[depth],
                        draw.mine[depth],
                        own,
                        regret,
                        multiplier,
                        alive,
                        room.shares,
                        value,
                    )
                    leave_block(tree, depth, board, entry, draw, value, result)
        depth -= 1


@kernel
def draw_one(
    tree: VectorTree,
    deck: HandList,
    tables: HandTables,
    player: int,
    my: bool,
    their: bool,
    seed: np.uint64,
    walk: np.uint64,
    draw: Draw,
) -> None:
    """Draw a board for each round and, on request, a hand of the player and one of the opponent.

    What is drawn depends on the seed and the number of the walk alone.

    Boards are drawn as often as they stand for others, and with a permutation of the suits that the board before does
    not tell apart: that makes all boards equally likely. What shares a card with what was drawn before is drawn anew.
    """
    key, number = numbered(mix(seed), walk), np.uint64(0)
    drawn = 0
    held = np.int64(0)
    for who, wanted, hands in ((player, my, draw.mine), (1 - player, their, draw.theirs)):
        hands[0, 0], hands[0, 1] = 0, tree.hands[who]
        if not wanted:
            continue
        prior = tree.prior[who, : tree.hands[who]]
        whole = prior.sum()
        while True:
            left = uniform(key, number) * whole
            number += np.uint64(1)
            hand = 0
            while hand + 1 < len(prior) and left >= prior[hand]:
                left -= prior[hand]
                hand += 1
            if not (tree.poker and held & deck.bits[hand]):
                break
        hands[0, 0], hands[0, 1] = hand, hand + 1
        if tree.poker:
            held |= deck.bits[hand]
        drawn += 1
    draw.reach[0] = 0.0
    if their:
        draw.reach[0] = tree.rivals if my else tree.prior[1 - player, : tree.hands[1 - player]].sum()

    board = 0
    for r in range(1, len(tree.rows)):
        first, end = tree.first_board[board], tree.first_board[board + 1]
        before, whole = tree.weight_before[first], tree.weight_before[end] - tree.weight_before[first]
        alike = 0
        for p in range(tree.moved.shape[0]):
            alike += (tree.symmetry[board] >> p) & 1
        while True:
            place = before + np.int64(uniform(key, number) * whole)
            low, high = first, end  # the last board that begins at the place or before it
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
                cards |= tables.card_bit[tree.board[low, k]]
            moved = tree.moved[suits]
            clash = False
            for hands, wanted in ((draw.mine, my), (draw.theirs, their)):
                hands[r, 0], hands[r, 1] = hands[r - 1, 0], hands[r - 1, 1]
                if wanted:
                    hand = moved[hands[r - 1, 0]]
                    hands[r, 0], hands[r, 1] = hand, hand + 1
                    clash = clash or (tree.poker and (cards & deck.bits[hand]) != 0)
            if not clash:
                break
        draw.board[r], draw.suits[r], draw.chance[r] = low, suits, tree.odds[r, drawn]
        board = low


@kernel
def learn(
    tree: VectorTree,
    deck: HandList,
    tables: HandTables,
    multipliers: FloatArray,
    tasks: IntArray,
    averaging: bool,
    draws: Draw,
    sampled: bool,
    my: bool,
    their: bool,
    seed: np.uint64,
    walks: int,
    strategy: Table,
    regret: Table,
    average: Table,
    room: Room,
    sums: FloatArray,
    result: FloatArray,
) -> None:
    """Iterations on one thread: for each row of `multipliers` both players learn in turn, after so many walks."""
    for t in range(multipliers.shape[0]):
        for player in range(2):
            if sampled:
                number = np.uint64(walks + 2 * t + player)
                draw_one(tree, deck, tables, player, my, their, seed, number, draws)
            else:
                draws.mine[:, 1], draws.theirs[:, 1] = tree.hands[player], tree.hands[1 - player]
            walk(
                tree,
                deck,
                tables,
                player,
                tasks,
                averaging,
                0,
                1,
                draws,
                strategy,
                strategy,
                regret,
                average,
                multipliers[t],
                room,
                sums,
                result,
            )
