"""The compiled walk over a public tree with vectors of hands: reach goes down, values come up (004, sections 2.4, 3.3).

One walk serves a player who learns, one who follows a strategy and one who responds to it: only what happens at the
player's own nodes differs. A round is walked block by block; where it ends, each board of the next round is entered in
turn.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import ByteArray, FloatArray, IntArray
from kilt.cards.equity_kernels import HandList, Ranking, rank_board
from kilt.cards.hands_kernels import HandTables
from kilt.jit import kernel
from kilt.tree.payoff_kernels import fold_values, showdown_values

Table: TypeAlias = npt.NDArray[np.floating[Any]]  # over (board, row) × hand

DECISION, REVEAL, FOLD, SHOWDOWN, CALL_BLUFF = 0, 1, 2, 3, 4  # kinds of nodes
FOLLOW, RESPOND, LEARN = 0, 1, 2  # what the player does


class VectorTree(NamedTuple):
    """A public tree as kernels walk it. Nodes are those of the betting tree, boards are numbered through all rounds."""

    kind: ByteArray  # [node]
    actor: ByteArray  # [node]
    first_child: npt.NDArray[np.int32]  # [node]
    children: npt.NDArray[np.int32]  # [node]
    row: npt.NDArray[np.int32]  # [node] of its first action among the rows of its round
    opens: npt.NDArray[np.int32]  # [node] the block that follows a chance node
    stake: FloatArray  # [node] chips that change hands at a leaf; after a fold, what player 0 wins
    block: npt.NDArray[np.int32]  # [block + 1] where it begins
    block_round: npt.NDArray[np.int32]  # [block]
    rows: npt.NDArray[np.int32]  # [round] how many rows a board has
    table_start: IntArray  # [round + 1] where the rows of a round begin in tables over (board, row)
    board_start: IntArray  # [round + 1] number of its first board
    board: ByteArray  # [board, card]
    board_size: npt.NDArray[np.int32]  # [round]
    first_board: IntArray  # [board + 1] of the round after: its extensions
    weight: npt.NDArray[np.int32]  # [board] how many it stands for
    symmetry: npt.NDArray[np.int32]  # [board] the suit permutations that leave it as it is
    moved: npt.NDArray[np.int32]  # [permutation, hand]
    chance: FloatArray  # [round] the probability of one of its boards, given both hands
    poker: bool  # whether hands are cards, which may be on the board or in the other hand
    hands: npt.NDArray[np.int32]  # [player] how many
    prior: FloatArray  # [player, hand] the reach with which a hand is dealt
    norm: float  # what sums of prior × value are multiplied by
    noise: float  # values that differ by less are equal but for rounding
    face: npt.NDArray[np.int32]  # [node] of a called bid
    matching: ByteArray  # [player, face, hand] dice that match
    called: FloatArray  # [node of CALL_BLUFF by its row, matches of player 0, matches of player 1] to player 0


@kernel
def strategy_at(table: Table, first: int, actions: int, hands: int, strategy: FloatArray) -> None:
    """Write [action, hand] probabilities in proportion to positive entries of a table; uniform where there are none.

    Rows are taken out of their arrays before the loops, so that the compiler sees plain vectors and uses wide
    registers. The two rows after those of the actions are scratch.
    """
    total, even = strategy[actions], strategy[actions + 1]
    for hand in range(hands):
        total[hand] = 0.0
    for a in range(actions):
        row, share = table[first + a], strategy[a]
        for hand in range(hands):
            share[hand] = max(row[hand], 0.0)
            total[hand] += share[hand]
    for hand in range(hands):
        even[hand] = 0.0 if total[hand] > 0 else 1.0 / actions
        total[hand] = 1.0 / max(total[hand], 1e-300)
    for a in range(actions):
        share = strategy[a]
        for hand in range(hands):
            share[hand] = share[hand] * total[hand] + even[hand]


@kernel
def push_step(reach: FloatArray, share: FloatArray, hands: int, after: FloatArray) -> None:
    """Write the reach after an action that is taken with probability `share`."""
    for hand in range(hands):
        after[hand] = reach[hand] * share[hand]


@kernel
def add_average(reach: FloatArray, hands: int, multiplier: float, average: npt.NDArray[np.floating[Any]]) -> None:
    """Add to the sum of strategies, and discount it."""
    for hand in range(hands):
        average[hand] = (average[hand] + reach[hand]) * multiplier


@kernel
def add_values(value: FloatArray, share: FloatArray, hands: int, total: FloatArray) -> None:
    """Add what an action that is taken with probability `share` is worth."""
    for hand in range(hands):
        total[hand] += share[hand] * value[hand]


@kernel
def add_scaled(value: FloatArray, scale: float, hands: int, total: FloatArray) -> None:
    """Add what a board is worth, as often as it counts."""
    for hand in range(hands):
        total[hand] += scale * value[hand]


@kernel
def level_suits(tree: VectorTree, symmetry: int, hands: int, scratch: FloatArray, value: FloatArray) -> None:
    """Give each hand the mean over the suit permutations that nothing tells apart.

    Each canonical board was counted as often as the boards that it stands for. They are its images under the
    permutations that leave the board before as it is; so what it says of a hand is shared among that hand's images.
    """
    scratch[:hands] = 0.0
    count = 0
    for p in range(tree.moved.shape[0]):
        if (symmetry >> p) & 1:
            moved = tree.moved[p]
            count += 1
            for hand in range(hands):
                scratch[hand] += value[moved[hand]]
    for hand in range(hands):
        value[hand] = scratch[hand] / count


@kernel
def add_regrets(
    value: FloatArray,
    expected: FloatArray,
    hands: int,
    noise: float,
    multiplier: FloatArray,
    regret: npt.NDArray[np.floating[Any]],
) -> None:
    """Add what an action is worth more than the strategy, unless it is `noise`, and discount the sum."""
    kept, kept_below = multiplier[0], multiplier[1]
    for hand in range(hands):
        gained = value[hand] - expected[hand]
        total = regret[hand] + (gained if abs(gained) > noise else 0.0)
        regret[hand] = total * (kept if total > 0 else kept_below)


@kernel
def call_bluff(
    tree: VectorTree, node: int, player: int, sums: FloatArray, reach: FloatArray, value: FloatArray
) -> None:
    """Write the value of each hand where a bid is checked: the number of matching dice is all (004, section 3.3)."""
    face, table = tree.face[node], tree.row[node]
    kinds = tree.called.shape[1]
    sums[:kinds] = 0.0
    for hand in range(tree.hands[1 - player]):
        sums[tree.matching[1 - player, face, hand]] += reach[hand]
    for hand in range(tree.hands[player]):
        matching = tree.matching[player, face, hand]
        total = 0.0
        for k in range(kinds):
            total += sums[k] * (tree.called[table, matching, k] if player == 0 else -tree.called[table, k, matching])
        value[hand] = total


@kernel
def pull_block(
    tree: VectorTree,
    block: int,
    base: int,
    player: int,
    task: int,
    strategy_table: Table,
    regret: Table,
    multiplier: FloatArray,
    strategy: FloatArray,
    value: FloatArray,
) -> None:
    """Pull the values of a block up from its leaves and chance nodes; learn on the way where `task` says so."""
    mine = tree.hands[player]
    start, end = tree.block[block], tree.block[block + 1]
    for node in range(end - 1, start - 1, -1):
        if tree.kind[node] != DECISION:
            continue
        here, child, actions = node - start, tree.first_child[node] - start, tree.children[node]
        if tree.actor[node] != player:
            value[here, :mine] = value[child, :mine]
            for a in range(1, actions):
                for hand in range(mine):
                    value[here, hand] += value[child + a, hand]
        elif task == RESPOND:
            value[here, :mine] = value[child, :mine]
            for a in range(1, actions):
                for hand in range(mine):
                    value[here, hand] = max(value[here, hand], value[child + a, hand])
        else:
            first = base + tree.row[node]
            strategy_at(strategy_table, first, actions, mine, strategy)
            value[here, :mine] = 0.0
            for a in range(actions):
                add_values(value[child + a], strategy[a], mine, value[here])
            if task == LEARN:
                for a in range(actions):
                    add_regrets(value[child + a], value[here], mine, tree.noise, multiplier, regret[first + a])


@kernel
def finish(
    tree: VectorTree,
    player: int,
    task: int,
    strategy_table: Table,
    regret: Table,
    multiplier: FloatArray,
    strategy: FloatArray,
    value: FloatArray,
    result: FloatArray,
) -> None:
    """Pull the values of the first round up, once all boards after it have been walked, and write them to `result`."""
    mine = tree.hands[player]
    for node in range(tree.block[1]):
        if tree.kind[node] == REVEAL:
            level_suits(tree, tree.symmetry[0], mine, strategy[0], value[node])
    pull_block(tree, 0, 0, player, task, strategy_table, regret, multiplier, strategy, value)
    result[:mine] = value[0, :mine]


@kernel
def walk(
    tree: VectorTree,
    deck: HandList,
    tables: HandTables,
    player: int,
    task: int,
    share: int,
    shares: int,
    strategy_table: Table,
    regret: Table,
    average: Table,
    multiplier: FloatArray,
    reach: FloatArray,
    value: FloatArray,
    strategy: FloatArray,
    ranking: Ranking,
    result: FloatArray,
) -> None:
    """Write to `result` what each hand of `player` is worth, weighted by the opponent's reach.

    Both follow `strategy_table`, but for the player where `task` says otherwise. With LEARN the player's regrets and
    the opponent's average strategy are brought up to date. `reach` and `value` are scratch: round × node of a block ×
    hand. Of several threads each takes its share of the boards that follow the first round, and leaves the sums in
    `value` for `finish`.
    """
    mine, theirs = tree.hands[player], tree.hands[1 - player]
    rounds = len(tree.rows)
    sign = 1.0 if player == 0 else -1.0
    most = reach.shape[2]
    order = np.empty((rounds, most), dtype=np.uint16)
    live = np.zeros(rounds, dtype=np.int64)
    groups = 0
    by_card = ranking.by_card
    frame_block = np.zeros(rounds, dtype=np.int64)
    frame_board = np.zeros(rounds, dtype=np.int64)
    frame_node = np.zeros(rounds, dtype=np.int64)
    frame_child = np.zeros(rounds, dtype=np.int64)

    depth = 0
    for hand in range(theirs):
        reach[0, 0, hand] = tree.prior[1 - player, hand]
    entering = True
    while depth >= 0:
        block, board = frame_block[depth], frame_board[depth]
        r = tree.block_round[block]
        start, end = tree.block[block], tree.block[block + 1]
        base = tree.table_start[r] + (board - tree.board_start[r]) * tree.rows[r]

        if entering:
            if tree.poker:
                cards = tree.board[board, : tree.board_size[r]].astype(np.int64)
                if r == rounds - 1:
                    groups = rank_board(cards, deck, tables, ranking)
                    live[depth] = ranking.ends[groups - 1]
                    order[depth, : live[depth]] = ranking.order[: live[depth]]
                else:
                    held = np.int64(0)
                    for card in cards:
                        held |= tables.card_bit[card]
                    live[depth] = 0
                    for hand in range(theirs):
                        if not held & deck.bits[hand]:
                            order[depth, live[depth]] = hand
                            live[depth] += 1
            hands = order[depth, : live[depth]]
            for node in range(start, end):
                here = node - start
                kind = tree.kind[node]
                if kind == DECISION:
                    first = base + tree.row[node]
                    child = tree.first_child[node] - start
                    if tree.actor[node] == player:
                        for a in range(tree.children[node]):
                            reach[depth, child + a, :theirs] = reach[depth, here, :theirs]
                    else:
                        strategy_at(strategy_table, first, tree.children[node], theirs, strategy)
                        for a in range(tree.children[node]):
                            push_step(reach[depth, here], strategy[a], theirs, reach[depth, child + a])
                            if task == LEARN and (depth > 0 or share == 0):
                                add_average(reach[depth, child + a], theirs, multiplier[2], average[first + a])
                elif kind == FOLD:
                    won = sign * tree.stake[node]
                    fold_values(hands, deck.cards, reach[depth, here], won, by_card, value[depth, here])
                elif kind == SHOWDOWN:
                    showdown_values(ranking, groups, reach[depth, here], tree.stake[node], value[depth, here])
                elif kind == CALL_BLUFF:
                    call_bluff(tree, node, player, by_card, reach[depth, here], value[depth, here])
                else:
                    value[depth, here, :] = 0.0
            frame_node[depth], frame_child[depth] = start, -1

        # Go into the next board of the next chance node of this block.
        entering = False
        node = frame_node[depth]
        while node < end and tree.kind[node] != REVEAL:
            node += 1
        frame_node[depth] = node
        if node < end:
            if frame_child[depth] < 0:
                frame_child[depth] = tree.first_board[board] + (share if depth == 0 else 0)
            child_board = frame_child[depth]
            if child_board >= tree.first_board[board + 1]:
                if depth > 0:
                    level_suits(tree, tree.symmetry[board], mine, strategy[0], value[depth, node - start])
                frame_node[depth] += 1
                frame_child[depth] = -1
            else:
                reach[depth + 1, 0, :theirs] = reach[depth, node - start, :theirs]
                frame_block[depth + 1], frame_board[depth + 1] = tree.opens[node], child_board
                depth += 1
                entering = True
            continue

        if depth == 0:
            break
        pull_block(tree, block, base, player, task, strategy_table, regret, multiplier, strategy, value[depth])
        above = frame_node[depth - 1] - tree.block[frame_block[depth - 1]]
        add_scaled(value[depth, 0], tree.chance[r] * tree.weight[board], mine, value[depth - 1, above])
        depth -= 1
        frame_child[depth] += shares if depth == 0 else 1
    if shares == 1:
        finish(tree, player, task, strategy_table, regret, multiplier, strategy, value[0], result)


@kernel
def learn(
    tree: VectorTree,
    deck: HandList,
    tables: HandTables,
    multipliers: FloatArray,
    regret: Table,
    average: Table,
    reach: FloatArray,
    value: FloatArray,
    strategy: FloatArray,
    ranking: Ranking,
    result: FloatArray,
) -> None:
    """Iterations on one thread: for each row of `multipliers` both players learn in turn."""
    for t in range(multipliers.shape[0]):
        for player in range(2):
            walk(
                tree,
                deck,
                tables,
                player,
                LEARN,
                0,
                1,
                regret,
                regret,
                average,
                multipliers[t],
                reach,
                value,
                strategy,
                ranking,
                result,
            )
