"""Compiled code that evaluates strategies with vectors over hands [Johanson16 §§2.4, 3.3].

Reach probabilities are passed down the public tree, and values up.

`board_kernels` finds the boards that a pass visits; `enter_round`, `push_reach`, `pull_values` and `pass_up` process
one.
`walk` combines them for a player who follows a strategy or responds to one; the pass of a learning player is in
`solve.cfr`. At chance nodes, a pass takes all boards or a sampled one; players have all hands or a sampled one
[Johanson16 algorithm 1].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity_kernels import PlayerRankings
from kilt.jit import kernel, spliced, subkernel, trailing_zeros
from kilt.tree.board_kernels import batch_end, begin_board, first_row, is_reached, next_visit, stored_row
from kilt.tree.leaf_kernels import (
    hands_on_board,
    ordered_by_strength,
    set_to_zero,
    values_of_leaves,
    values_of_showdowns,
)
from kilt.tree.rule import match_columns
from kilt.tree.vector_arrays import (
    ANSWER,
    DECISION,
    FOLLOW,
    REVEAL,
    Hand,
    Nodes,
    Policy,
    Scope,
    Table,
    Vectors,
    VectorTree,
    Visit,
    Workspace,
)


@subkernel
def expand_buckets(
    table: Table,
    bucket: npt.NDArray[np.int32],
    board: int,
    first: int,
    actions: int,
    start: Hand,
    end: Hand,
    expanded: FloatArray,
) -> None:
    """Convert a strategy for buckets to one for the hands on a given board.

    Each hand gets the entry of its bucket.
    """
    for a in range(actions):
        for hand in range(start, end):
            expanded[a, hand] = table[first + a, bucket[board, hand]]


@subkernel
def push_action(
    reach: FloatArray, here: int, table: Table, row: int, scale: FloatArray, start: Hand, end: Hand, child: int
) -> None:
    """Compute the opponent's reach probability after an action, for each hand."""
    zero = scale.dtype.type(0)
    for hand in range(start, end):
        reach[child, hand] = reach[here, hand] * (max(table[row, hand], zero) * scale[0, hand] + scale[1, hand])


@subkernel
def mix_actions(
    value: FloatArray,
    child: int,
    actions: int,
    table: Table,
    row: int,
    step: int,
    scale: FloatArray,
    start: Hand,
    end: Hand,
    here: int,
) -> None:
    """Compute each hand's value at a decision from the actions' values and probabilities."""
    zero = scale.dtype.type(0)
    if actions == 1:
        set_to_zero(value, here, start, end)
    else:
        for hand in range(start, end):
            one = max(table[row, hand], zero) * scale[0, hand] + scale[1, hand]
            two = max(table[row + step, hand], zero) * scale[0, hand] + scale[1, hand]
            value[here, hand] = one * value[child, hand] + two * value[child + 1, hand]
    for a in range(0 if actions == 1 else 2, actions):
        for hand in range(start, end):
            share = max(table[row + a * step, hand], zero) * scale[0, hand] + scale[1, hand]
            value[here, hand] += share * value[child + a, hand]


@subkernel
def copy_value(value: FloatArray, child: int, start: Hand, end: Hand, here: int) -> None:
    """Copy each hand's value after an action back to the decision before it."""
    for hand in range(start, end):
        value[here, hand] = value[child, hand]


@subkernel
def sum_actions(value: FloatArray, child: int, actions: int, start: Hand, end: Hand, here: int) -> None:
    """Sum each hand's values over all actions at a decision of the opponent.

    The reach probabilities already weight the actions.
    """
    if actions == 1:
        copy_value(value, child, start, end, here)
    else:
        for hand in range(start, end):
            value[here, hand] = value[child, hand] + value[child + 1, hand]
    for a in range(2, actions):
        for hand in range(start, end):
            value[here, hand] += value[child + a, hand]


@subkernel
def take_larger_value(value: FloatArray, child: int, start: Hand, end: Hand, here: int) -> None:
    """Raise each hand's value at a decision to its value after an action, if that is higher."""
    for hand in range(start, end):
        value[here, hand] = max(value[here, hand], value[child, hand])


@subkernel
def any_reach(reach: FloatArray, child: int, start: Hand, end: Hand) -> bool:
    """Return whether the opponent reaches a node with any hand."""
    for hand in range(start, end):  # noqa: SIM110, no generators in kernels
        if reach[child, hand] > 0:
            return True
    return False


@subkernel
def certain_action(table: Table, first: int, step: int, actions: int, start: Hand, end: Hand) -> int:
    """Return the action that a strategy takes with every hand, or −1 if there is none."""
    found = -1
    for a in range(actions):
        if table[first + a * step, start] > 0:
            found = a
    if found >= 0:
        least, most = table[first + found * step, start], table[first + found * step, start] * 0
        for a in range(actions):
            if a == found:
                for hand in range(start, end):
                    least = min(least, table[first + a * step, hand])
            else:
                for hand in range(start, end):
                    most = max(most, table[first + a * step, hand])
        if least <= 0 or most > 0:
            found = -1
    return found


@subkernel
def write_best(
    value: FloatArray,
    child: int,
    here: int,
    actions: int,
    start: Hand,
    end: Hand,
    noise: float,
    table: Table,
    row: int,
    step: int,
) -> None:
    """Write a player's best response to a strategy table: 1 for each hand's best action, else 0.

    Of actions equal up to `noise`, the first is best.
    """
    for hand in range(start, end):
        found = False
        for a in range(actions):
            chosen = not found and value[child + a, hand] >= value[here, hand] - noise
            table[row + a * step, hand] = 1.0 if chosen else 0.0
            found = found or chosen


@spliced
def enter_round(
    tree: VectorTree,
    player: int,
    scope: Scope,
    visit: Visit,
    entry: int,
    sides: PlayerRankings,
    vectors: Vectors,
    reach: FloatArray,
) -> bool:
    """Prepare a betting round's first node, and return whether the opponent reaches it with any hand.

    On arrival at a board, the reach probabilities are copied from the chance node before the round.

    If only distinct hands are stored on a board of the last round, the opponent's hands are in order of strength, as in
    `sides`.
    """
    depth, block, hands, order = visit.depth, tree.entry_block[entry], scope.theirs, sides.order[1]
    begin, end = tree.nodes.block[block], tree.nodes.block[block + 1]
    root = tree.nodes.place[begin]
    if depth == 0:
        vectors.source[root], vectors.alive[root] = root, True
        if ordered_by_strength(visit):
            for i in range(visit.theirs):
                reach[root, i] = tree.prior[1 - player, order[i]]
        elif visit.arriving:
            drawn = scope.reach[0]
            for hand in range(hands[0, 0], hands[0, 1]):
                reach[root, hand] = drawn if drawn > 0 else tree.prior[1 - player, hand]
        return True
    above = tree.nodes.place[tree.entry_node[entry]]
    if not vectors.alive[above]:
        if visit.arriving:
            for place in range(root, root + end - begin):
                vectors.alive[place] = False
        return False
    if visit.arriving:
        source = vectors.source[above]
        vectors.source[root], vectors.alive[root] = source, True
        if ordered_by_strength(visit):
            vectors.source[root] = root
            for i in range(visit.theirs):
                reach[root, i] = reach[source, order[i]]
        elif scope.board[depth] >= 0:
            vectors.source[root] = root
            suits = scope.suits[depth]
            for hand in range(hands[depth - 1, 0], hands[depth - 1, 1]):
                reach[root, tree.moved[suits, hand]] = reach[source, hand]
    return True


@spliced
def push_reach(
    nodes: Nodes,
    block: int,
    row: int,
    player: int,
    scope: Scope,
    visit: Visit,
    policy: Policy,
    prune: bool,
    vectors: Vectors,
    reach: FloatArray,
) -> None:
    """Compute the opponent's reach probabilities at all nodes of a betting round.

    At each action of the opponent, they are multiplied by its probability.

    Chance nodes and unreached leaves get a value of 0. With `prune`, nodes that the opponent reaches with no hand are
    skipped.
    """
    source, alive, scale = vectors.source, vectors.alive, vectors.scale
    table, bucket, expanded = policy.table, policy.layout.bucket, vectors.expanded
    bucketed = len(bucket) > 0
    begin, end = hands_on_board(visit, scope.theirs, visit.theirs)
    mine, mine_end = hands_on_board(visit, scope.mine, visit.mine)
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        here = node + shift
        if nodes.kind[node] != DECISION:
            if nodes.kind[node] == REVEAL or not alive[here]:
                set_to_zero(vectors.value, here, mine, mine_end)
            continue
        actions, child, above = nodes.children[node], nodes.first_child[node] + shift, source[here]
        if nodes.actor[node] == player or not alive[here]:
            for a in range(actions):
                source[child + a], alive[child + a] = above, alive[here]
            continue
        first, step = stored_row(policy.layout, visit, row + nodes.row[node])
        sure = certain_action(table, first, step, actions, begin, end) if prune and not bucketed else -1
        if sure >= 0:  # the reach does not change
            for a in range(actions):
                source[child + a], alive[child + a] = above, a == sure
            continue
        if bucketed:
            expand_buckets(table, bucket, visit.board, first, actions, begin, end, expanded)
            match_columns(expanded, 0, 1, actions, begin, end, scale)
        else:
            match_columns(table, first, step, actions, begin, end, scale)
        for a in range(actions):
            if bucketed:
                push_action(reach, above, expanded, a, scale, begin, end, child + a)
            else:
                push_action(reach, above, table, first + a * step, scale, begin, end, child + a)
            source[child + a] = child + a
            alive[child + a] = not prune or any_reach(reach, child + a, begin, end)


@spliced
def follow(
    table: Table,
    bucket: npt.NDArray[np.int32],
    board: int,
    first: int,
    step: int,
    actions: int,
    child: int,
    here: int,
    begin: Hand,
    end: Hand,
    vectors: Vectors,
) -> None:
    """Compute each hand's value at a decision where the player follows a strategy."""
    value, scale, expanded = vectors.value, vectors.scale, vectors.expanded
    if len(bucket) > 0:
        expand_buckets(table, bucket, board, first, actions, begin, end, expanded)
        match_columns(expanded, 0, 1, actions, begin, end, scale)
        mix_actions(value, child, actions, expanded, 0, 1, scale, begin, end, here)
    else:
        match_columns(table, first, step, actions, begin, end, scale)
        mix_actions(value, child, actions, table, first, step, scale, begin, end, here)


@spliced
def pull_values(
    nodes: Nodes,
    noise: float,
    block: int,
    row: int,
    player: int,
    task: int,
    scope: Scope,
    visit: Visit,
    policy: Policy,
    vectors: Vectors,
) -> None:
    """Compute each hand's value at all nodes of a betting round, from the leaves up.

    At a decision with a fixed strategy, the player follows it whatever the task.
    """
    value, table, bucket, given = vectors.value, policy.table, policy.layout.bucket, policy.layout.given
    begin, end = hands_on_board(visit, scope.mine, visit.mine)
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block + 1] - 1, nodes.block[block] - 1, -1):
        if nodes.kind[node] != DECISION:
            continue
        here, child, actions = node + shift, nodes.first_child[node] + shift, nodes.children[node]
        number = row + nodes.row[node]
        first, step = stored_row(policy.layout, visit, number)
        if not vectors.alive[here]:
            set_to_zero(value, here, begin, end)
        elif nodes.actor[node] != player:
            sum_actions(value, child, actions, begin, end, here)
        elif task != FOLLOW and not (len(given) > 0 and given[number]):
            copy_value(value, child, begin, end, here)
            for a in range(1, actions):
                take_larger_value(value, child + a, begin, end, here)
            if task == ANSWER:
                write_best(value, child, here, actions, begin, end, noise, table, first, step)
        else:
            follow(table, bucket, visit.board, first, step, actions, child, here, begin, end, vectors)


@spliced
def pass_up(
    tree: VectorTree,
    scope: Scope,
    visit: Visit,
    entry: int,
    sides: PlayerRankings,
    value: FloatArray,
    result: FloatArray,
) -> None:
    """Add the hands' values at the start of a betting round to the chance node before it.

    Values of the first round are written to `result`.

    After a sampled board, hands are numbered differently than before it. If only distinct hands are stored, each
    contributes for all hands that it represents: the chance node divides the value among equivalent hands.
    """
    depth, order = visit.depth, sides.order[0]
    root = tree.nodes.place[tree.nodes.block[tree.entry_block[entry]]]
    if ordered_by_strength(visit) and depth == 0:
        for hand in range(len(result)):
            result[hand] = 0
        for i in range(visit.mine):
            left = np.int64(tree.symmetry[visit.board])
            while left:
                result[tree.moved[trailing_zeros(left), order[i]]] = value[root, i]
                left &= left - 1
        return
    if depth == 0:
        for hand in range(scope.mine[0, 0], scope.mine[0, 1]):
            result[hand] = value[root, hand]
        return
    begin, end = np.uint64(scope.mine[depth - 1, 0]), np.uint64(scope.mine[depth - 1, 1])
    above = tree.nodes.place[tree.entry_node[entry]]
    if ordered_by_strength(visit):
        factor = value.dtype.type(tree.chance[depth] * tree.weight[visit.board])
        for i in range(visit.mine):
            value[above, order[i]] += factor * (sides.times[0, 0, i] * value[root, i])
    elif scope.board[depth] < 0:
        factor = value.dtype.type(tree.chance[depth] * tree.weight[visit.board])
        for hand in range(begin, end):
            value[above, hand] += factor * value[root, hand]
    else:
        odds, suits = scope.chance[depth], scope.suits[depth]
        for hand in range(begin, end):
            value[above, hand] += odds * value[root, tree.moved[suits, hand]]


@kernel
def walk(
    tree: VectorTree,
    player: int,
    tasks: IntArray,
    own: Policy,
    theirs: Policy,
    scope: Scope,
    work: Workspace,
    sums: FloatArray,
    result: FloatArray,
) -> None:
    """Compute a player's winnings with each hand, from a strategy or a best response.

    The value of each hand is written to `result`, weighted by the opponent's reach probability.

    In each round, the player follows the strategy `own` or responds, as set by `tasks`; the opponent follows `theirs`.
    """
    prune = True
    for task in tasks:
        prune = prune and task != ANSWER  # a response is written at all decisions, including unreached ones
    nodes, vectors, reach = tree.nodes, work.vectors, work.vectors.reach
    work.board[0] = 0
    visit = begin_board(tree, player, scope, 0, work, own.layout.by_strength)
    while visit.depth >= 0:
        entry, end = tree.entry_start[visit.depth], tree.entry_start[visit.depth + 1]
        while entry < end:
            first, entry = entry, batch_end(tree, entry, end)
            for opened in range(first, entry if visit.arriving else first):
                if enter_round(tree, player, scope, visit, opened, work.sides, vectors, reach):
                    block, row = tree.entry_block[opened], first_row(tree, theirs.layout, visit, opened)
                    push_reach(nodes, block, row, player, scope, visit, theirs, prune, vectors, reach)
                    values_of_leaves(tree, block, player, scope, visit, work, reach)
            if visit.arriving and visit.leaving:
                values_of_showdowns(tree, first, entry, player, scope, visit, work, reach)
            for opened in range(first, entry if visit.leaving else first):
                if is_reached(tree, visit, opened, vectors):
                    block, row = tree.entry_block[opened], first_row(tree, own.layout, visit, opened)
                    task = tasks[visit.depth]
                    pull_values(nodes, tree.noise, block, row, player, task, scope, visit, own, vectors)
                    pass_up(tree, scope, visit, opened, work.sides, vectors.value, result)
        visit = next_visit(tree, player, scope, work, sums, visit)
