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
from kilt.cards.equity_kernels import HandList, Ranking, board_strengths, rank_board
from kilt.cards.hands_kernels import HandTables, look_up
from kilt.draws import mix, numbered, uniform
from kilt.jit import kernel
from kilt.tree.payoff_kernels import fold_values, showdown_values

Table: TypeAlias = npt.NDArray[np.floating[Any]]  # over (board, row) × hand
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
    called: FloatArray  # [node of CALL_BLUFF by its row, matches of player 0, matches of player 1] to player 0


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
    alive: npt.NDArray[np.bool_]  # [place] whether the opponent reaches it at all
    value: FloatArray  # [place, hand] to the player
    strategy: FloatArray  # [action + 2, hand]
    order: npt.NDArray[np.uint16]  # [round, …] the hands that the board leaves
    ranking: Ranking


@kernel
def strategy_at(table: Table, first: int, actions: int, start: Hand, end: Hand, strategy: FloatArray) -> None:
    """Write [action, hand] probabilities in proportion to positive entries of a table; uniform where there are none.

    The two rows after those of the actions are scratch.
    """
    for hand in range(start, end):
        strategy[actions, hand] = 0.0
    for a in range(actions):
        for hand in range(start, end):
            strategy[a, hand] = max(table[first + a, hand], 0.0)
            strategy[actions, hand] += strategy[a, hand]
    for hand in range(start, end):
        total = strategy[actions, hand]
        strategy[actions + 1, hand] = 0.0 if total > 0 else 1.0 / actions
        strategy[actions, hand] = 1.0 / max(total, 1e-300)
    for a in range(actions):
        for hand in range(start, end):
            strategy[a, hand] = strategy[a, hand] * strategy[actions, hand] + strategy[actions + 1, hand]


@kernel
def push_step(reach: FloatArray, here: int, share: FloatArray, a: int, start: Hand, end: Hand, child: int) -> None:
    """Write the reach after an action."""
    for hand in range(start, end):
        reach[child, hand] = reach[here, hand] * share[a, hand]


@kernel
def add_average(
    reach: FloatArray, child: int, start: Hand, end: Hand, multiplier: float, average: Table, row: int
) -> None:
    """Add to the sum of strategies, and discount it."""
    for hand in range(start, end):
        average[row, hand] = (average[row, hand] + reach[child, hand]) * multiplier


@kernel
def add_values(value: FloatArray, child: int, share: FloatArray, a: int, start: Hand, end: Hand, here: int) -> None:
    """Add what an action of the player is worth, as often as it is taken."""
    for hand in range(start, end):
        value[here, hand] += share[a, hand] * value[child, hand]


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
        value[here, hand] = value[child, hand] if child >= 0 else 0.0


@kernel
def any_left(reach: FloatArray, child: int, start: Hand, end: Hand) -> bool:
    """Whether any hand is left."""
    for hand in range(start, end):  # noqa: SIM110, no generators in kernels
        if reach[child, hand] > 0:
            return True
    return False


@kernel
def level_suits(
    moves: npt.NDArray[np.int32], symmetry: int, hands: int, scratch: FloatArray, value: FloatArray
) -> None:
    """Give each hand the mean over the suit permutations that nothing tells apart.

    Each canonical board was counted as often as the boards that it stands for. They are its images under the
    permutations that leave the board before as it is; so what it says of a hand is shared among that hand's images.
    """
    scratch[:hands] = 0.0
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
    kept, kept_below = multiplier[0], multiplier[1]
    for hand in range(start, end):
        gained = value[child, hand] - value[here, hand]
        total = regret[row, hand] + (gained if abs(gained) > noise else 0.0)
        regret[row, hand] = total * (kept if total > 0 else kept_below)


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
    for hand in range(start, end):
        gained = value[child, hand] - value[here, hand]
        prediction[row, hand] = regret[row, hand] + (gained if abs(gained) > noise else 0.0)


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
def call_bluff(
    dice: Dice,
    face: int,
    table: int,
    player: int,
    mine: IntArray,
    theirs: IntArray,
    sums: FloatArray,
    reach: FloatArray,
    value: FloatArray,
) -> None:
    """Write the value of each hand where a bid is checked: the number of matching dice is all (004, section 3.3)."""
    kinds = dice.called.shape[1]
    sums[:kinds] = 0.0
    for hand in range(theirs[0], theirs[1]):
        sums[dice.matching[1 - player, face, hand]] += reach[hand]
    for hand in range(mine[0], mine[1]):
        matching = dice.matching[player, face, hand]
        total = 0.0
        for k in range(kinds):
            total += sums[k] * (dice.called[table, matching, k] if player == 0 else -dice.called[table, k, matching])
        value[hand] = total


@kernel
def meet(
    deck: HandList,
    held: int,
    mine: IntArray,
    theirs: IntArray,
    strength: npt.NDArray[np.int16],
    showdown: bool,
    stake: float,
    reach: FloatArray,
    value: FloatArray,
) -> None:
    """Write what hands are worth where one player has only one: each meets each."""
    for i in range(mine[0], mine[1]):
        total = 0.0
        if not held & deck.bits[i]:
            for j in range(theirs[0], theirs[1]):
                if not (held | deck.bits[i]) & deck.bits[j]:
                    won = np.sign(strength[i] - strength[j]) if showdown else 1
                    total += won * reach[j]
        value[i] = stake * total


@kernel
def see_board(
    tree: VectorTree, deck: HandList, tables: HandTables, depth: int, board: int, few: bool, draw: Draw, room: Room
) -> tuple[int, int, int]:
    """Find out which hands a board leaves and, on the last one, how strong they are.

    Return how many are left, how many groups of equal strength there are, and the cards of the board as bits.
    """
    cards = tree.board[board, : tree.board_size[depth]].astype(np.int64)
    held = np.int64(0)
    for card in cards:
        held |= tables.card_bit[card]
    last = depth == len(tree.rows) - 1
    if few:
        if last:
            strength = room.ranking.strength
            mine, theirs = draw.mine[depth], draw.theirs[depth]
            if mine[1] - mine[0] > 1 or theirs[1] - theirs[0] > 1:
                board_strengths(cards, deck, tables, strength)
            else:
                key = np.int64(tables.start)
                for card in cards:
                    key += tables.card_key[card]
                for hand in (mine[0], theirs[0]):
                    strength[hand] = look_up(key + deck.key[hand], held | deck.bits[hand], tables)
        return 0, 0, int(held)
    if last:
        groups = rank_board(cards, deck, tables, room.ranking)
        ranked = int(room.ranking.ends[groups - 1])
        room.order[depth, :ranked] = room.ranking.order[:ranked]
        return ranked, groups, int(held)
    live = 0
    for hand in range(len(deck.bits)):
        if not held & deck.bits[hand]:
            room.order[depth, live] = hand
            live += 1
    return live, 0, int(held)


@kernel
def push_block(
    nodes: Nodes,
    dice: Dice,
    deck: HandList,
    block: int,
    first_row: int,
    player: int,
    prune: bool,
    averaging: bool,
    few: bool,
    live: npt.NDArray[np.uint16],
    groups: int,
    held: int,
    mine: IntArray,
    theirs: IntArray,
    strategy_table: Table,
    average: Table,
    multiplier: float,
    room: Room,
) -> None:
    """Push the opponent's reach down a block, and write the values of its leaves. Chance nodes get 0."""
    reach, source, alive, value = room.reach, room.source, room.alive, room.value
    by_card = room.ranking.by_card
    sign = 1.0 if player == 0 else -1.0
    start, end = np.uint64(theirs[0]), np.uint64(theirs[1])
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here, kind = node + shift, nodes.kind[node]
        if kind == DECISION:
            actions, child = nodes.children[node], nodes.first_child[node] + shift
            if nodes.actor[node] == player or not alive[here]:
                for a in range(actions):
                    source[child + a], alive[child + a] = source[here], alive[here]
                continue
            first = first_row + nodes.row[node]
            strategy_at(strategy_table, first, actions, start, end, room.strategy)
            for a in range(actions):
                push_step(reach, source[here], room.strategy, a, start, end, child + a)
                source[child + a] = child + a
                alive[child + a] = not prune or any_left(reach, child + a, start, end)
                if averaging:
                    add_average(reach, child + a, start, end, multiplier, average, first + a)
            continue
        found, values = reach[source[here]], value[here]
        if kind == REVEAL or not alive[here]:
            values[:] = 0.0
        elif kind == CALL_BLUFF:
            call_bluff(dice, nodes.face[node], nodes.row[node], player, mine, theirs, by_card, found, values)
        elif kind == FOLD:
            won = sign * nodes.stake[node]
            if few:
                meet(deck, held, mine, theirs, room.ranking.strength, False, won, found, values)
            else:
                fold_values(live, deck.cards, found, won, by_card, values)
        elif few:
            meet(deck, held, mine, theirs, room.ranking.strength, True, nodes.stake[node], found, values)
        else:
            showdown_values(room.ranking, groups, found, nodes.stake[node], values)


@kernel
def pull_block(
    nodes: Nodes,
    noise: float,
    block: int,
    first_row: int,
    player: int,
    task: int,
    mine: IntArray,
    strategy_table: Table,
    regret: Table,
    multiplier: FloatArray,
    room: Room,
) -> None:
    """Pull the values of a block up from its leaves and chance nodes; learn on the way where `task` says so."""
    value, strategy = room.value, room.strategy
    start, end = np.uint64(mine[0]), np.uint64(mine[1])
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block + 1] - 1, nodes.block[block] - 1, -1):
        if nodes.kind[node] != DECISION:
            continue
        here, child, actions = node + shift, nodes.first_child[node] + shift, nodes.children[node]
        if not room.alive[here]:
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
                first = first_row + nodes.row[node]
                write_best(value, child, here, actions, start, end, noise, strategy_table, first)
        else:
            first = first_row + nodes.row[node]
            strategy_at(strategy_table, first, actions, start, end, strategy)
            fill(value, here, start, end, -1)
            for a in range(actions):
                add_values(value, child + a, strategy, a, start, end, here)
            if task == LEARN:
                for a in range(actions):
                    add_regrets(value, child + a, here, start, end, noise, multiplier, regret, first + a)
                    if multiplier[3] > 0:
                        predict(value, child + a, here, start, end, noise, regret, first + a, strategy_table)


@kernel
def leave_board(
    tree: VectorTree,
    depth: int,
    board: int,
    player: int,
    task: int,
    draw: Draw,
    strategy_table: Table,
    regret: Table,
    multiplier: FloatArray,
    room: Room,
    result: FloatArray,
) -> None:
    """Pull the values of all betting on a board up, once the boards after it have been walked."""
    if depth + 1 < len(tree.rows) and draw.board[depth + 1] < 0:
        for entry in range(tree.entry_start[depth + 1], tree.entry_start[depth + 2]):
            below = tree.nodes.place[tree.entry_node[entry]]
            if room.alive[below]:
                level_suits(tree.moved, tree.symmetry[board], tree.hands[player], room.strategy[0], room.value[below])
    first_row = tree.table_start[depth] + (board - tree.board_start[depth]) * tree.rows[depth]
    for entry in range(tree.entry_start[depth], tree.entry_start[depth + 1]):
        if depth == 0 or room.alive[tree.nodes.place[tree.entry_node[entry]]]:
            block, rows = tree.entry_block[entry], first_row + tree.entry_row[entry]
            mine = draw.mine[depth]
            pull_block(
                tree.nodes, tree.noise, block, rows, player, task, mine, strategy_table, regret, multiplier, room
            )
            hand_up(tree, depth, board, entry, player, draw, room, result)


@kernel
def hand_up(
    tree: VectorTree, depth: int, board: int, entry: int, player: int, draw: Draw, room: Room, result: FloatArray
) -> None:
    """Add what a block is worth to the chance node that opened it; where the game begins, write it to `result`."""
    found = room.value[tree.nodes.place[tree.nodes.block[tree.entry_block[entry]]]]
    start, end = draw.mine[depth]
    if depth == 0:
        result[start:end] = found[start:end]
        return
    above = room.value[tree.nodes.place[tree.entry_node[entry]]]
    if draw.board[depth] < 0:
        scale = tree.chance[depth] * tree.weight[board]
        for hand in range(tree.hands[player]):
            above[hand] += scale * found[hand]
        return
    moved = tree.moved[draw.suits[depth]]
    for hand in range(draw.mine[depth - 1, 0], draw.mine[depth - 1, 1]):
        above[hand] += draw.chance[depth] * found[moved[hand]]


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
    current = np.zeros(rounds, dtype=np.int64)  # boards
    following = np.zeros(rounds, dtype=np.int64)
    depth = 0
    entering = True
    while depth >= 0:
        board = current[depth]
        if entering:
            entering = False
            live, groups, held = 0, 0, 0
            if tree.poker:
                live, groups, held = see_board(tree, deck, tables, depth, board, few, draw, room)
            mine, others = draw.mine[depth], draw.theirs[depth]
            first_row = tree.table_start[depth] + (board - tree.board_start[depth]) * tree.rows[depth]
            for entry in range(tree.entry_start[depth], tree.entry_start[depth + 1]):
                block, rows = tree.entry_block[entry], first_row + tree.entry_row[entry]
                root = tree.nodes.place[tree.nodes.block[block]]
                room.source[root], room.alive[root] = root, True
                if depth == 0:
                    for hand in range(others[0], others[1]):
                        drawn = draw.reach[0]
                        room.reach[root, hand] = drawn if drawn > 0 else tree.prior[1 - player, hand]
                else:
                    above = tree.nodes.place[tree.entry_node[entry]]
                    if not room.alive[above]:
                        if depth < last:
                            room.alive[root : root + tree.nodes.block[block + 1] - tree.nodes.block[block]] = False
                        continue
                    if draw.board[depth] < 0:
                        room.source[root] = room.source[above]
                    else:
                        before = room.reach[room.source[above]]
                        moved = tree.moved[draw.suits[depth]]
                        for hand in range(draw.theirs[depth - 1, 0], draw.theirs[depth - 1, 1]):
                            room.reach[root, moved[hand]] = before[hand]
                push_block(
                    tree.nodes,
                    tree.dice,
                    deck,
                    block,
                    rows,
                    player,
                    prune,
                    averaging and (depth > 0 or share == 0),
                    few,
                    room.order[depth, :live],
                    groups,
                    held,
                    mine,
                    others,
                    theirs,
                    average,
                    multiplier[2],
                    room,
                )
                if depth == last:
                    pull_block(
                        tree.nodes, tree.noise, block, rows, player, tasks[depth], mine, own, regret, multiplier, room
                    )
                    hand_up(tree, depth, board, entry, player, draw, room, result)
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
                value, found = sums[entry - tree.entry_start[1]], room.value[tree.nodes.place[tree.entry_node[entry]]]
                if shares > 1:
                    value[:] = found
                else:
                    found[:] = value
            if shares > 1:
                return
        if depth < last:
            leave_board(tree, depth, board, player, tasks[depth], draw, own, regret, multiplier, room, result)
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
                True,
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
