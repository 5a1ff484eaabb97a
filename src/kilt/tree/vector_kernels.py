"""The compiled walk over a public tree with vectors of hands: reach goes down, values come up [Johanson16 §§2.4, 3.3].

One walk serves a player who learns, one who follows a strategy and one who responds to it: only what happens at the
player's own nodes differs. It goes over the boards, deeper round by round, and on each board over all betting that
leads there, so that a board's hands are ranked once. At chance nodes it takes all boards, or the one that was drawn; of
the hands each player has all, or the one that was drawn [Johanson16 algorithm 1].
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import HandList, rank_board
from kilt.cards.hands_kernels import HandTables
from kilt.jit import kernel
from kilt.tree.draw_kernels import draw_one
from kilt.tree.leaf_kernels import fill, hands_left, settle, settle_bids, settle_few, settle_folds, strengths_of_few
from kilt.tree.vector_arrays import (
    ANSWER,
    DECISION,
    LEARN,
    RESPOND,
    REVEAL,
    Draw,
    Flags,
    Hand,
    Nodes,
    Table,
    TableLayout,
    VectorTree,
    Workspace,
)

Columns: TypeAlias = npt.NDArray[np.int32]  # [hand] of a table over buckets


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
def see(table: Table, first: int, actions: int, bucket: Columns, start: Hand, end: Hand, seen: FloatArray) -> None:
    """Spread rows of a table over buckets over the hands."""
    for a in range(actions):
        for hand in range(start, end):
            seen[a, hand] = table[first + a, bucket[hand]]


@kernel
def gather_average(
    reach: FloatArray, here: int, bucket: Columns, start: Hand, end: Hand, weight: float, average: Table, row: int
) -> None:
    """Add the reach after an action to the sums of strategies of the buckets."""
    for hand in range(start, end):
        average[row, bucket[hand]] += weight * reach[here, hand]


@kernel
def gather_regrets(
    value: FloatArray,
    child: int,
    here: int,
    bucket: Columns,
    start: Hand,
    end: Hand,
    weight: float,
    regret: Table,
    row: int,
) -> None:
    """Add what an action is worth more than the strategy to the regrets of the buckets."""
    for hand in range(start, end):
        regret[row, bucket[hand]] += weight * (value[child, hand] - value[here, hand])


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
    bucket: Columns,
    weight: float,
    seen: FloatArray,
    value: FloatArray,
) -> None:
    """Push the opponent's reach down a block. Chance nodes, and leaves that are not reached, get a value of 0.

    Where the opponent sees a `bucket` of each hand only, its sums of strategies count by the `weight` of the board.
    """
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
        if len(bucket):
            see(table, first, actions, bucket, start, end, seen)
            match(seen, 0, actions, start, end, shares)
            for a in range(actions):
                push_step(reach, above, seen, a, shares, start, end, child + a)
                if averaging:
                    gather_average(reach, child + a, bucket, start, end, weight, average, first + a)
                source[child + a] = child + a
                alive[child + a] = not prune or any_left(reach, child + a, start, end)
            continue
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
    bucket: Columns,
    weight: float,
    seen: FloatArray,
    value: FloatArray,
) -> None:
    """Pull the values of a block up from its leaves and chance nodes; learn on the way where `task` says so.

    A player who sees a `bucket` of each hand only learns of all boards together, by their `weight`: regrets are added
    up, and what becomes of the sums is for the end of the walk.
    """
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
        elif len(bucket):
            see(table, first, actions, bucket, start, end, seen)
            match(seen, 0, actions, start, end, shares)
            fill(value, here, start, end, -1)
            for a in range(actions):
                add_values(value, child + a, seen, a, shares, start, end, here)
            if task == LEARN:
                for a in range(actions):
                    gather_regrets(value, child + a, here, bucket, start, end, weight, regret, first + a)
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
def goes_on(tree: VectorTree, depth: int, room: Workspace) -> bool:
    """Whether the opponent reaches any chance node of a round."""
    going = False
    if depth + 1 < len(tree.rows):
        for entry in range(tree.entry_start[depth + 1], tree.entry_start[depth + 2]):
            going = going or room.alive[tree.nodes.place[tree.entry_node[entry]]]
    return going


@kernel
def seen_by(view: TableLayout, tree: VectorTree, depth: int, board: int) -> tuple[int, Columns]:
    """Where the rows of a board begin in a table, and the columns of the hands: none where each has its own."""
    row: int = view.start[depth] + (board - tree.board_start[depth]) * view.rows[depth]
    return row, view.bucket[board] if len(view.bucket) else view.bucket.reshape(-1)


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
    own_view: TableLayout,
    their_view: TableLayout,
    own: Table,
    theirs: Table,
    regret: Table,
    average: Table,
    multiplier: FloatArray,
    room: Workspace,
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
    weight = np.ones(rounds)  # how much a board counts
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
            if depth > 0:
                odds = draw.chance[depth] if draw.board[depth] >= 0 else tree.chance[depth] * tree.weight[board]
                weight[depth] = weight[depth - 1] * odds
            my_row, my_bucket = seen_by(own_view, tree, depth, board)
            their_row, their_bucket = seen_by(their_view, tree, depth, board)
            for entry in range(tree.entry_start[depth], tree.entry_start[depth + 1]):
                block = tree.entry_block[entry]
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
                    their_row + tree.entry_row[entry],
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
                    their_bucket,
                    weight[depth],
                    room.seen,
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
                        my_row + tree.entry_row[entry],
                        player,
                        tasks[depth],
                        mine,
                        own,
                        regret,
                        multiplier,
                        alive,
                        room.shares,
                        my_bucket,
                        weight[depth],
                        room.seen,
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
            my_row, my_bucket = seen_by(own_view, tree, depth, board)
            for entry in range(tree.entry_start[depth], tree.entry_start[depth + 1]):
                if depth == 0 or alive[tree.nodes.place[tree.entry_node[entry]]]:
                    pull_block(
                        tree.nodes,
                        tree.noise,
                        tree.entry_block[entry],
                        my_row + tree.entry_row[entry],
                        player,
                        tasks[depth],
                        draw.mine[depth],
                        own,
                        regret,
                        multiplier,
                        alive,
                        room.shares,
                        my_bucket,
                        weight[depth],
                        room.seen,
                        value,
                    )
                    leave_block(tree, depth, board, entry, draw, value, result)
        depth -= 1


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
    view: TableLayout,
    strategy: Table,
    regret: Table,
    average: Table,
    room: Workspace,
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
                view,
                view,
                strategy,
                strategy,
                regret,
                average,
                multipliers[t],
                room,
                sums,
                result,
            )
