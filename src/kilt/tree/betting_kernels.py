"""Compiled code that builds betting trees, with each betting position as a row of integers.

`games.holdem.Betting` implements the same rules for single positions; tests compare the two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.jit import kernel, subkernel

# A position is a row of integers: player to act, chips of both players, smallest legal increment of the next raise,
# raises of the round, players who have yet to respond, player who has folded.
ACTOR, SPENT, LAST_RAISE, RAISES, TO_ACT, FOLDED, WIDTH = 0, 1, 3, 4, 5, 6, 7
CHANCE, TERMINAL = -1, -2  # as in `games.game`
FOLDS, CALLS = -1, 0  # as in `betting`
MOST_ACTIONS = 64  # as in `games.holdem`
ROUNDING = 1e-6  # chips: tolerance for rounding errors in products of a share and a number of chips


class BettingRules(NamedTuple):
    """A game's betting rules as arrays for compiled code."""

    stacks: npt.NDArray[np.int64]  # [player]
    blinds: npt.NDArray[np.int64]  # [player]
    first_player: npt.NDArray[np.int64]  # [round]
    raise_sizes: npt.NDArray[np.int64]  # [round] in limit games; otherwise 0
    max_raises: npt.NDArray[np.int64]  # [round]
    start: npt.NDArray[np.int64]  # start of the betting: the round, followed by the row of the position


class BetSizes(NamedTuple):
    """The raise sizes that a bet-size menu offers at each decision, as multiples of the pot.

    0 is the smallest legal raise, infinity is all-in. If `first` is empty, all legal raises are included.
    """

    size: npt.NDArray[np.float64]
    # [player, round, raises so far + 1] first size of a decision; the last also serves later raises
    first: npt.NDArray[np.int64]
    near: float  # share of the chips above which a raise becomes all-in
    of_chips_left: bool  # True: share of the actor's remaining chips; False: of the stack at the beginning of the hand


@subkernel
def turn_to(rules: BettingRules, r: int, position: Any, player: int) -> None:
    """Set which player acts next, or end the betting round.

    It is `player`, or the opponent if `player` has no chips left.

    See `Betting._turn_to`.
    """
    all_in = (position[SPENT] == rules.stacks[0]) | (position[SPENT + 1] == rules.stacks[1])
    if r == 0 or position[TO_ACT] < 2 or not all_in:
        for turn in range(position[TO_ACT]):
            candidate = player if turn == 0 else 1 - player
            if position[SPENT + candidate] != rules.stacks[candidate]:
                position[ACTOR] = candidate
                return
    position[ACTOR] = CHANCE if r + 1 < len(rules.first_player) else TERMINAL


@subkernel
def open_round(rules: BettingRules, r: int, spent_0: int, spent_1: int, position: Any) -> None:
    """Compute the betting position at the start of a round."""
    position[SPENT], position[SPENT + 1] = spent_0, spent_1
    position[LAST_RAISE], position[RAISES], position[TO_ACT] = max(rules.blinds[0], rules.blinds[1]), 0, 2
    position[FOLDED] = -1
    turn_to(rules, r, position, rules.first_player[r])


@subkernel
def raises_at(rules: BettingRules, sizes: BetSizes, r: int, position: Any, levels: Any) -> tuple[int, int]:
    """List the raises that a bet-size menu allows in a betting position. Returns their number.

    The second result is the smallest legal raise. If the menu has no sizes, all legal raises are counted, but `levels`
    is not written.
    """
    me = position[ACTOR]
    level, stack, raises = max(position[SPENT], position[SPENT + 1]), rules.stacks[me], position[RAISES]
    acted = raises + (raises + (me != rules.first_player[r])) % 2
    rival_all_in = position[SPENT + 1 - me] == rules.stacks[1 - me]
    if raises >= rules.max_raises[r] or stack <= level or rival_all_in or acted + 2 > MOST_ACTIONS:
        return 0, 0
    if rules.raise_sizes[r] > 0:
        levels[0] = min(level + rules.raise_sizes[r], stack)
        return 1, levels[0]
    least = min(level + position[LAST_RAISE], stack)
    if sizes.first.shape[2] == 0:
        return stack - least + 1, least
    step, count = min(raises, sizes.first.shape[2] - 2), 0
    all_in = sizes.near * stack
    if sizes.of_chips_left:
        all_in = position[SPENT + me] + np.ceil(sizes.near * (stack - position[SPENT + me]) - ROUNDING)
    for which in range(sizes.first[me, r, step], sizes.first[me, r, step + 1]):
        to = stack
        if sizes.size[which] < np.inf:
            wanted = level + np.rint(sizes.size[which] * 2 * level)
            if wanted < all_in:
                to = max(np.int64(wanted), least)
                to = to if to < all_in else stack
        place = count
        while place > 0 and levels[place - 1] > to:
            place -= 1
        if place == 0 or levels[place - 1] != to:
            for above in range(count, place, -1):
                levels[above] = levels[above - 1]
            levels[place] = to
            count += 1
    return count, least


@subkernel
def act(rules: BettingRules, r: int, before: Any, level: int, after: Any) -> None:
    """Compute the betting position after an action.

    `level` is FOLDS, CALLS or the level of a raise.
    """
    me = before[ACTOR]
    for column in range(WIDTH):
        after[column] = before[column]
    top = max(before[SPENT], before[SPENT + 1])
    if level == FOLDS:
        after[ACTOR], after[FOLDED] = TERMINAL, me
        return
    if level == CALLS:
        after[SPENT + me] = min(top, rules.stacks[me])
        after[TO_ACT] = before[TO_ACT] - 1
    else:
        after[SPENT + me] = level
        after[RAISES] = before[RAISES] + 1
        after[LAST_RAISE] = max(before[LAST_RAISE], level - top)
        after[TO_ACT] = 1
    turn_to(rules, r, after, 1 - me)


@subkernel
def copy_rows(old: Any, new: Any) -> None:
    """Copy all rows of an array to the start of a larger array."""
    for row in range(old.shape[0]):
        for column in range(old.shape[1]):
            new[row, column] = old[row, column]


@kernel
def write_tree(
    rules: BettingRules,
    sizes: BetSizes,
    most_nodes: int,
    tree: Any,
    level: npt.NDArray[np.int32],
    stake: npt.NDArray[np.int32],
    folded: npt.NDArray[np.int8],
    counts: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Write the nodes of a betting tree to arrays, or only count them.

    If `level` is empty, nodes are only counted.

    Writes `tree`, which is a `betting.BettingNodes`, `level` [node], `stake` and `folded` [leaf] as in
    `betting.BettingTree`, and `counts` [0 or 1, player, round]: the numbers of decisions and of their actions. Returns
    the numbers of nodes, leaves and blocks. If there are more nodes than `most_nodes`, the tree is incomplete.
    """
    storing = len(level) > 0
    most_children = 2 + (1 if len(sizes.size) == 0 else len(sizes.size))
    levels = np.empty(most_children, dtype=np.int64)  # levels of the raises of a decision
    block = np.empty((1024, WIDTH), dtype=np.int32)  # the positions of a block
    opening = np.empty((1024, 4), dtype=np.int32)  # [block] chance node before it, its round, chips of both players
    opening[0, 0], opening[0, 1] = -1, rules.start[0]
    blocks, opened, nodes, leaves = 0, 1, 0, 0
    while blocks < opened:
        parent, r, base, head, tail = opening[blocks, 0], opening[blocks, 1], nodes, 0, 1
        if blocks > 0:
            open_round(rules, r, opening[blocks, 2], opening[blocks, 3], block[0])
        else:
            for column in range(WIDTH):
                block[0, column] = rules.start[1 + column]
        if storing:
            tree.block[blocks] = base
            tree.parent[base], level[base] = parent, CALLS
            if parent >= 0:
                tree.first_child[parent] = base
        blocks += 1
        while head < tail:
            actor, first = block[head, ACTOR], tail
            if actor >= 0:
                raises, least = raises_at(rules, sizes, r, block[head], levels)
                facing = block[head, SPENT + 1 - actor] > block[head, SPENT + actor]
                passive = 2 if facing else 1
                if base + tail + passive + raises > most_nodes:
                    return most_nodes + 1, leaves, blocks
                while tail + passive + raises > len(block):
                    larger = np.empty((2 * len(block), WIDTH), dtype=np.int32)
                    copy_rows(block, larger)
                    block = larger
                every = rules.raise_sizes[r] == 0 and sizes.first.shape[2] == 0
                for a in range(passive + raises):
                    to = least + a - passive if every else levels[max(a - passive, 0)]
                    if a < passive:
                        to = FOLDS if a + 1 < passive else CALLS
                    act(rules, r, block[head], to, block[tail])
                    if storing:
                        tree.parent[base + tail] = base + head
                        level[base + tail] = 1 if to > 0 and rules.raise_sizes[r] > 0 else to
                    tail += 1
                counts[0, actor, r] += 1
                counts[1, actor, r] += tail - first
            elif actor == CHANCE:
                if opened == len(opening):
                    more = np.empty((2 * len(opening), 4), dtype=np.int32)
                    copy_rows(opening, more)
                    opening = more
                opening[opened, 0], opening[opened, 1] = base + head, r + 1
                opening[opened, 2], opening[opened, 3] = block[head, SPENT], block[head, SPENT + 1]
                opened += 1
            if storing:
                node = base + head
                tree.actor[node], tree.round[node], tree.first_child[node] = actor, r, base + first
                tree.children[node] = 1 if actor == CHANCE else tail - first
                tree.leaf[node] = leaves if actor == TERMINAL else -1
                if actor == TERMINAL:
                    stake[leaves] = min(block[head, SPENT], block[head, SPENT + 1])
                    folded[leaves] = block[head, FOLDED]
            leaves += actor == TERMINAL
            head += 1
        nodes = base + tail
        if nodes + opened - blocks > most_nodes:
            return most_nodes + 1, leaves, blocks
    if storing:
        tree.block[blocks] = nodes
    return nodes, leaves, blocks
