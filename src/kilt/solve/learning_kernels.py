"""Compiled code that updates regrets and average strategies after a pass of CFR."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.jit import inlined, kernel, spliced, subkernel
from kilt.tree.board_kernels import stored_row
from kilt.tree.leaf_kernels import hands_on_board
from kilt.tree.rule import TINY, Discount, updated_average, updated_regret, updated_regret_plus
from kilt.tree.vector_arrays import DECISION, Hand, Nodes, Scope, Table, TableLayout, Vectors, Visit
from kilt.tree.vector_kernels import follow

LARGEST_FACTOR = 16.0  # of earlier regrets in an iteration, where there were hardly any

NO_ROWS: IntArray = np.empty(0, dtype=np.int64)


class PlayerTables(NamedTuple):
    """A player's regrets and average strategy as arrays for compiled code.

    Without buckets, a pass updates the tables on each board directly. With buckets, several boards and hands share an
    entry, and a pass first sums their contributions.
    """

    layout: TableLayout
    strategy: Table  # input of regret matching: the regrets, or the predicted ones
    regret: Table
    average: Table  # sums of strategies
    averaged: bool  # whether strategies are summed
    rows: IntArray  # rows of the player's decisions in ascending order, in a layout with buckets
    sums: Table  # [part, row, column] sums of a walk for the regrets or the average; empty without buckets
    fixed: Table = np.zeros((0, 0))  # fixed strategy of a restricted player, see `counter`; otherwise empty
    coin: float = 0.0  # the probability that such a player follows `fixed`, drawn before the game; 0: at each decision
    # [decision, 2] first row and number of actions, for a player restricted without a coin
    decisions: IntArray = np.zeros((0, 2), dtype=np.int64)

    @classmethod
    def of(
        cls,
        layout: TableLayout,
        tables: tuple[Table, Table, Table],
        averaged: bool,
        rows: IntArray = NO_ROWS,
        sums: Table | None = None,
    ) -> PlayerTables:
        """Return the tables of a player who is not bound by a fixed strategy.

        `tables` are the fields `strategy`, `regret` and `average`. `rows` and `sums` are for a player who sees buckets.
        """
        strategy, regret, average = tables
        sums = np.zeros((0, 0, 0), regret.dtype) if sums is None else sums
        return cls(layout, strategy, regret, average, averaged, rows, sums, regret[:0])


class RootChoice(NamedTuple):
    """A player's choice of hands with which to enter a subgame.

    Like other decisions, it is learnt by regret matching. It only changes the reach with which the player's hands begin
    the game.
    """

    player: int  # the player who decides; −1: none
    joint: bool  # whether the player picks a hand, rather than playing or taking `value` with each hand
    weight: FloatArray  # [hand] reach of a hand that certainly plays the game
    least: FloatArray  # [hand] share of the reach that has no choice, if each hand chooses separately
    value: FloatArray  # [hand] value of the alternative to the game, weighted by the other player's reach
    regret: FloatArray  # [2, hand] for the game and the alternative; a joint choice uses only the first


NO_CHOICE = RootChoice(-1, False, np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((2, 0)))


@subkernel
def update_average(
    reach: FloatArray, child: int, start: Hand, end: Hand, weight: float, kept: float, average: Table, row: int
) -> None:
    """Add each hand's probability of reaching and taking an action to its average strategy.

    The earlier sum is discounted.
    """
    share, left = reach.dtype.type(weight), reach.dtype.type(kept)
    for hand in range(start, end):
        average[row, hand] = updated_average(average[row, hand], reach[child, hand], share, left)


@subkernel
def update_regrets(
    value: FloatArray,
    child: int,
    here: int,
    start: Hand,
    end: Hand,
    noise: float,
    discount: Discount,
    regret: Table,
    row: int,
) -> None:
    """Add to each hand's regret how much more an action would have won than the strategy.

    Regrets below `noise` are left out. The earlier sum is discounted.
    """
    number = value.dtype.type
    above, below, weight = number(discount.above), number(discount.below), number(discount.weight)
    least, zero = number(noise), number(0)
    if below == zero:
        for hand in range(start, end):
            gained = value[child, hand] - value[here, hand]
            regret[row, hand] = updated_regret_plus(regret[row, hand], gained, least, weight, above, zero)
        return
    for hand in range(start, end):
        gained = value[child, hand] - value[here, hand]
        regret[row, hand] = updated_regret(regret[row, hand], gained, least, weight, above, below)


@subkernel
def bound_steps(
    value: FloatArray,
    child: int,
    here: int,
    actions: int,
    start: Hand,
    end: Hand,
    inertia: float,
    regret: Table,
    first: int,
    step: int,
    scale: FloatArray,
) -> None:
    """Scale up the earlier regrets of each hand at a decision, so that new ones change the strategy only a little.

    Positive regrets of the iteration, times `inertia`, are at most the sum of positive earlier ones. `scale` is scratch
    memory [2, hand].
    """
    number = value.dtype.type
    zero, one, rate, least, most = number(0), number(1), number(inertia), number(TINY), number(LARGEST_FACTOR)
    for hand in range(start, end):
        scale[0, hand] = zero
        scale[1, hand] = zero
    for a in range(actions):
        for hand in range(start, end):
            scale[0, hand] += max(value[child + a, hand] - value[here, hand], zero)
            scale[1, hand] += max(regret[first + a * step, hand], zero)
    for hand in range(start, end):
        factor = rate * scale[0, hand] / max(scale[1, hand], least)
        scale[0, hand] = min(max(factor, one), most)
    for a in range(actions):
        for hand in range(start, end):
            earlier = regret[first + a * step, hand]
            regret[first + a * step, hand] = max(earlier, zero) * scale[0, hand] + min(earlier, zero)


@subkernel
def predict_regrets(
    value: FloatArray,
    child: int,
    here: int,
    start: Hand,
    end: Hand,
    noise: float,
    weight: float,
    regret: Table,
    row: int,
    prediction: Table,
) -> None:
    """Predict the next regrets, assuming that the next iteration adds as much as the last one."""
    number = value.dtype.type
    share, least, one = number(weight), number(noise), number(1)
    for hand in range(start, end):
        gained = value[child, hand] - value[here, hand]
        prediction[row, hand] = updated_regret(regret[row, hand], gained, least, share, one, one)


@subkernel
def accumulate_reach(
    reach: FloatArray,
    child: int,
    start: Hand,
    end: Hand,
    weight: float,
    bucket: npt.NDArray[np.int32],
    board: int,
    sums: Table,
    part: int,
    row: int,
) -> None:
    """Add each hand's probability of reaching and taking an action to its bucket's sum.

    Contributions are multiplied by the weight of the board.
    """
    for hand in range(start, end):
        sums[part, row, bucket[board, hand]] += weight * reach[child, hand]


@subkernel
def accumulate_regrets(
    value: FloatArray,
    child: int,
    here: int,
    start: Hand,
    end: Hand,
    weight: float,
    bucket: npt.NDArray[np.int32],
    board: int,
    sums: Table,
    part: int,
    row: int,
) -> None:
    """Add each hand's regret for an action to its bucket's sum.

    Contributions are multiplied by the weight of the board.
    """
    for hand in range(start, end):
        sums[part, row, bucket[board, hand]] += weight * (value[child, hand] - value[here, hand])


@spliced
def add_average(
    nodes: Nodes,
    block: int,
    row: int,
    player: int,
    scope: Scope,
    visit: Visit,
    theirs: PlayerTables,
    discount: Discount,
    vectors: Vectors,
) -> None:
    """Add the opponent's strategy in one betting round to its average strategy, in a pass of CFR.

    The strategy is weighted by the opponent's own reach probability.
    """
    reach, average, sums, bucket = vectors.reach, theirs.average, theirs.sums, theirs.layout.bucket
    given = theirs.layout.given
    weight, kept = discount.average_weight, discount.average
    begin, end = hands_on_board(visit, scope.theirs, visit.theirs)
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        if nodes.kind[node] == DECISION and nodes.actor[node] != player:
            child, number = nodes.first_child[node] + shift, row + nodes.row[node]
            if len(given) > 0 and given[number]:
                continue
            first, step = stored_row(theirs.layout, visit, number)
            for a in range(nodes.children[node]):
                if len(bucket):
                    accumulate_reach(
                        reach,
                        child + a,
                        begin,
                        end,
                        visit.weight,
                        bucket,
                        visit.board,
                        sums,
                        scope.part,
                        first + a,
                    )
                else:
                    update_average(reach, child + a, begin, end, weight, kept, average, first + a * step)


@spliced
def add_regrets(
    nodes: Nodes,
    noise: float,
    block: int,
    row: int,
    player: int,
    scope: Scope,
    visit: Visit,
    own: PlayerTables,
    discount: Discount,
    vectors: Vectors,
) -> None:
    """Add the learning player's regrets in one betting round to their sums, in a pass of CFR.

    The regret of an action is its value minus that of the strategy. A restricted player does not play the learnt
    strategy: its values are replaced by those of the learnt one.
    """
    value, regret, sums, bucket = vectors.value, own.regret, own.sums, own.layout.bucket
    given = own.layout.given
    begin, end = hands_on_board(visit, scope.mine, visit.mine)
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        if nodes.kind[node] == DECISION and nodes.actor[node] == player:
            here, child, number = node + shift, nodes.first_child[node] + shift, row + nodes.row[node]
            if len(given) > 0 and given[number]:
                continue
            first, step = stored_row(own.layout, visit, number)
            if len(own.decisions) > 0:
                follow(regret, bucket, visit.board, first, step, nodes.children[node], child, here, begin, end, vectors)
            if discount.inertia > 0 and len(bucket) == 0:
                bound_steps(
                    value,
                    child,
                    here,
                    nodes.children[node],
                    begin,
                    end,
                    discount.inertia,
                    regret,
                    first,
                    step,
                    vectors.scale,
                )
            for a in range(nodes.children[node]):
                if len(bucket):
                    accumulate_regrets(
                        value,
                        child + a,
                        here,
                        begin,
                        end,
                        visit.weight,
                        bucket,
                        visit.board,
                        sums,
                        scope.part,
                        first + a,
                    )
                    continue
                at = first + a * step
                update_regrets(value, child + a, here, begin, end, noise, discount, regret, at)
                if discount.predictive > 0:
                    weight = discount.weight * discount.predictive
                    predict_regrets(value, child + a, here, begin, end, noise, weight, regret, at, own.strategy)


@kernel
def begin_game(root: RootChoice, prior: FloatArray) -> None:
    """Compute each hand's probability of entering a subgame, by regret matching.

    `prior` has the shape (players, hands).
    """
    regret, weight = root.regret, root.weight
    total, possible = 0.0, 0
    for hand in range(len(weight)):
        total += max(regret[0, hand], 0.0)
        possible += 1 if weight[hand] > 0 else 0
    for hand in range(len(weight)):
        game = max(regret[0, hand], 0.0)
        if root.joint:
            share = game / total if total > 0 else 1.0 / possible
        else:
            both = game + max(regret[1, hand], 0.0)
            share = game / both if both > 0 else 0.5
            share = root.least[hand] + (1 - root.least[hand]) * share
        prior[root.player, hand] = share * weight[hand]


@kernel
def learn_root(root: RootChoice, result: FloatArray, discount: Discount, prior: FloatArray) -> None:
    """Update the regrets of a player's choice of hands with which to enter a subgame.

    `result` [hand] is weighted by the other player's reach, like `root.value`.
    """
    regret, weight, value = root.regret, root.weight, root.value
    share, above, below = discount.weight, discount.above, discount.below
    mean = 0.0
    for hand in range(len(weight)):
        mean += prior[root.player, hand] * (result[hand] - value[hand])
    for hand in range(len(weight)):
        if weight[hand] == 0:
            continue
        gained = result[hand] - value[hand]
        game, alternative = weight[hand] * gained - mean, 0.0
        if not root.joint:
            begun = prior[root.player, hand] / weight[hand]
            game, alternative = (1 - begun) * gained, (root.least[hand] - begun) * gained
        regret[0, hand] = updated_regret(regret[0, hand], game, 0.0, share, above, below)
        regret[1, hand] = updated_regret(regret[1, hand], alternative, 0.0, share, above, below)
    begin_game(root, prior)


@kernel
def restrict(tables: PlayerTables) -> None:
    """Compute the strategy of a player who must partly follow a fixed one [Johanson16 eq. 6.1].

    At each decision, regret matching gives the rest of the probabilities.
    """
    fixed, regret, played = tables.fixed, tables.regret, tables.strategy
    for d in range(len(tables.decisions)):
        first, actions = tables.decisions[d]
        for column in range(fixed.shape[1]):
            whole, left = 0.0, 1.0
            for row in range(first, first + actions):
                whole += max(regret[row, column], 0.0)
                left -= fixed[row, column]
            left = max(left, 0.0)
            for row in range(first, first + actions):
                learnt = max(regret[row, column], 0.0) / whole if whole > TINY else 1.0 / actions
                played[row, column] = fixed[row, column] + left * learnt


@subkernel
def blend(
    nodes: Nodes,
    block: int,
    player: int,
    scope: Scope,
    visit: Visit,
    coin: float,
    free: FloatArray,
    fixed: FloatArray,
    total: FloatArray,
) -> None:
    """Compute reach probabilities of an opponent who tosses a coin to choose between two strategies.

    The coin is tossed once, before the game.
    """
    depth = visit.depth
    begin, end = np.uint64(scope.theirs[depth, 0]), np.uint64(scope.theirs[depth, 1])
    share, rest = total.dtype.type(coin), total.dtype.type(1 - coin)
    shift = nodes.place[nodes.block[block]] - nodes.block[block]
    for node in range(nodes.block[block], nodes.block[block + 1]):
        first = nodes.first_child[node] + shift
        last = first + nodes.children[node]
        if nodes.kind[node] != DECISION or nodes.actor[node] == player:
            last = first
        if node == nodes.block[block] and (depth == 0 or scope.board[depth] >= 0):
            for hand in range(begin, end):
                total[node + shift, hand] = share * fixed[node + shift, hand] + rest * free[node + shift, hand]
        for place in range(first, last):
            for hand in range(begin, end):
                total[place, hand] = share * fixed[place, hand] + rest * free[place, hand]


@inlined
def changed_region(board: int, hands: IntArray, lasting: bool, columns: int) -> tuple[int, int, int]:
    """Return the board and hands that a pass of CFR may have changed in a row of a table.

    The board is −1 and the hands are all columns if this cannot be narrowed down. It can be if a single board was
    sampled for few hands, and if entries of the row that nothing is added to do not change (`lasting`).
    """
    if lasting and board >= 0 and hands[1] - hands[0] < columns:
        return board, hands[0], hands[1]
    return -1, 0, columns


@kernel
def finish_pass(own: PlayerTables, theirs: PlayerTables, noise: float, discount: Discount, scope: Scope) -> None:
    """Finish a pass of CFR: add each bucket's sums to its regrets and average strategy.

    The sums are then reset to 0. Several hands may share a column, which is entered only once.
    """
    regret, sums, layout, r = own.regret, own.sums, own.layout, 0
    weight, above, below = discount.weight, discount.above, discount.below
    lasting = discount.above == 1 and (discount.below == 0 or discount.below == 1) and discount.predictive == 0
    for row in own.rows:
        while row >= layout.start[r + 1]:
            r += 1
        board, begin, end = changed_region(scope.board[r], scope.mine[r], lasting, regret.shape[1])
        for place in range(begin, end):
            column, gained = np.int64(layout.bucket[board, place]) if board >= 0 else place, 0.0
            for part in range(sums.shape[0]):
                gained += sums[part, row, column]
                sums[part, row, column] = 0.0
            regret[row, column] = updated_regret(regret[row, column], gained, noise, weight, above, below)
            if discount.predictive > 0:
                own.strategy[row, column] = updated_regret(
                    regret[row, column], gained, noise, weight * discount.predictive, 1.0, 1.0
                )
    average, sums, layout, r = theirs.average, theirs.sums, theirs.layout, 0
    if theirs.averaged:
        for row in theirs.rows:
            while row >= layout.start[r + 1]:
                r += 1
            board, begin, end = changed_region(scope.board[r], scope.theirs[r], discount.average == 1, average.shape[1])
            for place in range(begin, end):
                column, gained = np.int64(layout.bucket[board, place]) if board >= 0 else place, 0.0
                for part in range(sums.shape[0]):
                    gained += sums[part, row, column]
                    sums[part, row, column] = 0.0
                weight, kept = discount.average_weight, discount.average
                average[row, column] = updated_average(average[row, column], gained, weight, kept)


@kernel
def add_bucket_sums(
    tables: PlayerTables, rows: IntArray, columns: IntArray, learning: bool, noise: float, discount: Discount
) -> None:
    """Add sums over hands to the regrets or average strategy of some buckets, after a pass of CFR."""
    regret, average, sums = tables.regret, tables.average, tables.sums
    weight, above, below = discount.weight, discount.above, discount.below
    for row in rows:
        for column in columns:
            gained = sums[0, row, column]
            sums[0, row, column] = 0.0
            if learning:
                regret[row, column] = updated_regret(regret[row, column], gained, noise, weight, above, below)
            else:
                average[row, column] = updated_average(
                    average[row, column], gained, discount.average_weight, discount.average
                )
