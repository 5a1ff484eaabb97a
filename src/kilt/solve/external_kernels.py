"""Run external-sampling CFR in compiled code.

The code hides memory latency. Nodes wait in a queue, and the memory of a node is prefetched when the node is put there,
so that other nodes can be processed meanwhile. On the way down, nodes are appended to the queue in the order of their
discovery; on the way back, each node reads its children's values from their entries.

Random numbers are functions of the deal's number and of the node where they are used: see `draws`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, IntArray
from kilt.draws import mix, splitmix_word, uniform
from kilt.jit import inlined, kernel, prefetch

OVER = 2  # actor of a terminal node, next to players 0 and 1
ENDINGS = 6  # payoffs of a terminal node: for each player, by the outcome of the showdown
SKIPPED = 4  # actor of a pruned child
BEYOND = 5  # actor of a node in another part: `link` is its number
COIN = np.uint64(2**63)  # separates the coin of a restricted player from random numbers at nodes
WALKS = np.uint64(0x5851F42D4C957F2D)  # separates random numbers of walks from those of the cards
MOSTLY = 0.95  # share of passes that prune actions with very negative regret

# The fields that a walk reads at a node, in one record. At terminal nodes, `link` is a row of the payoffs.
NODE = np.dtype(
    [("first", np.uint64), ("link", np.uint32), ("count", np.uint16), ("actor", np.uint8), ("round", np.uint8)],
    align=True,
)
# A node that a walk has reached. `count` is 0 if its value is known.
PLACE = np.dtype(
    [
        ("slot", np.uint64),
        ("link", np.uint32),
        ("below", np.uint32),
        ("value", np.float32),
        ("count", np.uint16),
        ("actor", np.uint8),
        ("player", np.uint8),  # the player whose regrets the pass updates
    ],
    align=True,
)

Records: TypeAlias = npt.NDArray[Any]
Words: TypeAlias = npt.NDArray[np.uint32]
Singles: TypeAlias = npt.NDArray[np.float32]


class Rules(NamedTuple):
    """A betting tree and its payoffs as arrays for compiled code."""

    nodes: Records  # [node] NODE
    # [ENDINGS · row + 3 · player + outcome + 1] winnings of the player of a walk, with the sign changed for player 1.
    # The outcome is 1 if player 0 wins the showdown, −1 if player 1 does, and 0 for a split pot; mean outcomes in
    # between are interpolated.
    payoff: Singles


class FixedStrategy(NamedTuple):
    """A fixed strategy that one player must follow, always or with some probability, during solving.

    See `counter.Restriction`.
    """

    player: int  # −1: none
    coin: float  # the probability, drawn once for each deal, that the player follows `fixed`; 0: at each decision
    fixed: Singles  # [slot] probabilities; without a coin, times the probability of following them


NOBODY = FixedStrategy(-1, 0.0, np.zeros(0, dtype=np.float32))


class Starts(NamedTuple):
    """The betting nodes at which a pass of CFR starts its deals."""

    begin: IntArray  # [deal + 1] the first start of each deal
    node: Words  # [start]
    player: ByteArray  # [start] player of the walk


class Exits(NamedTuple):
    """The betting nodes at which deals leave a part of the tree, so that other workers must continue."""

    begin: IntArray  # [deal + 1] the first exit of each deal
    node: Words  # [exit] the node in another part
    player: ByteArray  # [exit] player of the walk
    place: IntArray  # [exit] index in the queue


@kernel
def deal_cards(seed: np.uint64, first: int, deck: int, cards: IntArray) -> None:
    """Deal random cards for consecutive hands, one per row of `cards`.

    `first` is the number of the first hand.
    """
    pack = np.arange(deck)
    for deal in range(len(cards)):
        key = splitmix_word(seed, np.uint64(first + deal))
        for k in range(cards.shape[1]):
            other = k + np.int64(uniform(key, np.uint64(k)) * (deck - k))
            pack[k], pack[other] = pack[other], pack[k]
            cards[deal, k] = pack[k]
        for k in range(deck):
            pack[k] = k


@kernel
def walk_deals(
    seed: np.uint64,
    first: int,
    rules: Rules,
    starts: Starts,
    bucket: Words,
    outcome: Singles,
    share: Singles,
    tally: Words,
    regret: Singles,
    count: Words,
    prune: float,
    weight: float,
    held: FixedStrategy,
    queue: Records,
    value: Singles,
) -> tuple[int, int]:
    """Run external-sampling CFR on some deals from given nodes of the betting tree.

    `bucket` [deal, round, player] and `outcome` [deal, round] describe the deals. Adds to `regret`, weighted by each
    deal's `share`; and adds `tally` [deal], unless it is empty, to `count` of each action that is sampled for the
    opponent: both are views of one table, see `external`. Deals without a share are skipped. If `prune` is above 0,
    most passes skip actions whose mean regret is below −`prune`, unless they end the hand; the mean is over the number
    of deals so far plus `weight`. A player may be `held` in part to a fixed strategy. `queue` is scratch. Writes the
    values for player 0 to `value` [start]. Returns the number of decisions and the number of nodes visited.
    """
    decisions, visited = 0, 0
    key = mix(seed ^ WALKS)
    shift = np.uint64(1 if len(count) > 0 else 0)
    for deal in range(len(bucket)):
        begin, end = starts.begin[deal], starts.begin[deal + 1]
        if share[deal] <= 0:
            value[begin:end] = np.float32(0.0)
            continue
        keys = _keys(key, first + deal)
        free = np.uint64(0)
        for start in range(begin, end):
            _begin(queue[free], rules.nodes[starts.node[start]], starts.player[start], bucket, deal, shift)
            free += np.uint64(1)
        poor = np.float32(-prune * (first + deal + 1 + weight))
        free, met = _descend(
            queue, np.uint64(0), free, rules, bucket, deal, outcome, regret, count, tally[deal], keys, prune, poor, held
        )
        _ascend(queue, np.uint64(0), free, regret, share[deal], prune, held, shift)
        for start in range(begin, end):
            value[start] = queue[start - begin].value
        decisions, visited = decisions + met, visited + int(free)
    return decisions, visited


@inlined
def _keys(key: np.uint64, deal: int) -> tuple[np.uint64, np.uint64]:
    """Return the random seeds of a deal, one for each player."""
    number = np.uint64(deal)
    return splitmix_word(key, number + number), splitmix_word(key, number + number + np.uint64(1))


@inlined
def _begin(there: Any, node: Any, player: int, bucket: Words, deal: int, shift: np.uint64) -> None:
    """Write the decision at which a deal starts to an entry of the queue."""
    there.slot = node.first + np.uint64(bucket[deal, node.round, node.actor]) * (np.uint64(node.count) << shift)
    there.link, there.count, there.actor, there.player = node.link, node.count, node.actor, player


@inlined
def _descend(
    queue: Records,
    place: np.uint64,
    free: np.uint64,
    rules: Rules,
    bucket: Words,
    deal: int,
    outcome: Singles,
    regret: Singles,
    count: Words,
    tally: np.uint32,
    keys: tuple[np.uint64, np.uint64],
    prune: float,
    poor: np.float32,
    held: FixedStrategy,
) -> tuple[np.uint64, int]:
    """Simulate deals down the tree from the queued nodes. Return the end of the queue and the number of decisions."""
    one, zero, nothing, lowest = np.uint64(1), np.uint64(0), np.float32(0.0), -np.float32(np.inf)
    second = np.uint64(4)
    averaging = len(count) > 0
    shift = np.uint64(1 if averaging else 0)
    decisions = 0
    while place < free:
        here = queue[place]
        n = np.uint64(here.count)
        if n == zero:
            place += one
            continue
        slot, link, player = here.slot, np.uint64(here.link), here.player
        here.below = np.uint32(free)
        a, last, least = zero, n, lowest
        if here.actor != player:  # the opponent: one action, sampled in proportion to positive regret
            whole = nothing
            for k in range(n):
                whole += max(regret[slot + k], nothing)
            left, drawn = np.float32(uniform(keys[1] if player else keys[0], link)), False
            if here.actor == held.player:
                follows, fixed = nothing, slot >> shift
                if held.coin > 0:
                    follows = np.float32(uniform(keys[1] if player else keys[0], COIN) < held.coin)
                else:
                    for k in range(n):
                        follows += held.fixed[fixed + k]
                drawn = bool(left < follows or follows >= np.float32(1.0))
                if not drawn:
                    left = (left - follows) / (np.float32(1.0) - follows)
                while drawn and a < n - one:
                    left -= held.fixed[fixed + a]
                    if left < nothing:
                        break
                    a += one
            if drawn:
                pass
            elif whole > nothing:
                left *= whole
                while a < n - one:
                    left -= max(regret[slot + a], nothing)
                    if left < nothing:
                        break
                    a += one
            else:
                a = min(np.uint64(left * np.float32(n)), n - one)
            last = a + one
            if averaging:
                count[slot + n + a] += tally
        elif prune > 0 and player != held.player and uniform(keys[player], zero) < MOSTLY:
            for k in range(n):
                if regret[slot + k] > nothing:
                    least = poor
        while a < last:
            child, there = rules.nodes[link + a], queue[free]
            if child.count == 0:
                if child.actor == BEYOND:
                    there.link, there.player = child.link, player
                else:
                    shown = outcome[deal, child.round]
                    even = np.uint64(child.link) + (second if player else one)  # the payoff of a split pot
                    won = rules.payoff[even + one] if shown > nothing else rules.payoff[even - one]
                    there.value = rules.payoff[even] + abs(shown) * (won - rules.payoff[even])
                there.count, there.actor = np.uint8(0), child.actor
            elif prune > 0 and regret[slot + a] < least:
                there.value, there.count, there.actor = nothing, np.uint8(0), np.uint8(SKIPPED)
            else:
                to = child.first + np.uint64(bucket[deal, child.round, child.actor]) * (np.uint64(child.count) << shift)
                prefetch(regret, to)
                there.slot, there.link, there.count, there.actor = to, child.link, child.count, child.actor
                there.player = player
            free += one
            a += one
        decisions += 1
        place += one
    return free, decisions


@inlined
def _ascend(
    queue: Records,
    start: np.uint64,
    place: np.uint64,
    regret: Singles,
    share: np.float32,
    prune: float,
    held: FixedStrategy,
    shift: np.uint64,
) -> None:
    """Compute values from the end of the queue back to its start, and add regrets times the deal's weight."""
    nothing = np.float32(0.0)
    while place > start:
        place -= np.uint64(1)
        here = queue[place]
        n = np.uint64(here.count)
        if n == np.uint64(0):
            continue
        child = np.uint64(here.below)
        if here.actor != here.player:
            here.value = queue[child].value
            continue
        slot = here.slot
        whole, worth, plain = nothing, nothing, nothing
        for k in range(n):
            value, positive = queue[child + k].value, max(regret[slot + k], nothing)
            whole += positive
            worth += positive * value
            plain += value
        worth = worth / whole if whole > nothing else plain / np.float32(n)
        signed = share if here.player == 0 else -share
        for k in range(n):
            if prune <= 0 or queue[child + k].actor != SKIPPED:
                regret[slot + k] += signed * (queue[child + k].value - worth)
        # the value is that of the restricted play, not of the learnt strategy
        if here.player == held.player and held.coin <= 0:
            follows, fixed = nothing, nothing
            for k in range(n):
                chance = held.fixed[(slot >> shift) + k]
                follows += chance
                fixed += chance * queue[child + k].value
            worth = fixed + (np.float32(1.0) - follows) * worth
        here.value = worth


@kernel
def descend_deals(
    seed: np.uint64,
    first: int,
    rules: Rules,
    starts: Starts,
    bucket: Words,
    outcome: Singles,
    share: Singles,
    tally: Words,
    regret: Singles,
    count: Words,
    prune: float,
    weight: float,
    held: FixedStrategy,
    queue: Records,
    begin: IntArray,
    exits: Exits,
) -> tuple[int, int, int]:
    """Play deals through a part of the betting tree, and record where they leave it.

    This is the first half of `walk_deals`. Nodes beyond the part are marked `BEYOND`. Writes the visited nodes of all
    deals to `queue`, one deal after another, the beginning of each deal's entries to `begin` [deal + 1], and the nodes
    beyond the part, whose values are missing, to `exits`. Returns the number of exits, decisions and nodes.
    """
    key = mix(seed ^ WALKS)
    shift = np.uint64(1 if len(count) > 0 else 0)
    free, found, decisions = np.uint64(0), 0, 0
    for deal in range(len(bucket)):
        keys, start = _keys(key, first + deal), free
        begin[deal], exits.begin[deal] = free, found
        if share[deal] <= 0:
            continue
        for place in range(starts.begin[deal], starts.begin[deal + 1]):
            _begin(queue[free], rules.nodes[starts.node[place]], starts.player[place], bucket, deal, shift)
            free += np.uint64(1)
        poor = np.float32(-prune * (first + deal + 1 + weight))
        free, met = _descend(
            queue, start, free, rules, bucket, deal, outcome, regret, count, tally[deal], keys, prune, poor, held
        )
        decisions += met
        for place in range(start, free):
            here = queue[place]
            if here.actor == BEYOND:
                exits.place[found], exits.node[found], exits.player[found] = place, here.link, here.player
                found += 1
    begin[len(bucket)], exits.begin[len(bucket)] = free, found
    return found, decisions, int(free)


@kernel
def ascend_deals(
    queue: Records,
    begin: IntArray,
    exits: Exits,
    value: Singles,
    share: Singles,
    regret: Singles,
    prune: float,
    held: FixedStrategy,
    starts: Starts,
    worth: Singles,
) -> None:
    """Compute the values of deals in a part of the betting tree from the values where they leave it.

    This is the second half of `walk_deals`. It writes player 0's value of each start to `worth`.
    """
    for deal in range(len(begin) - 1):
        for k in range(exits.begin[deal], exits.begin[deal + 1]):
            queue[exits.place[k]].value = value[k]
        if share[deal] > 0:
            _ascend(
                queue,
                np.uint64(begin[deal]),
                np.uint64(begin[deal + 1]),
                regret,
                share[deal],
                prune,
                held,
                np.uint64(0),
            )
        for k in range(starts.begin[deal], starts.begin[deal + 1]):
            worth[k] = queue[begin[deal] + k - starts.begin[deal]].value if share[deal] > 0 else np.float32(0.0)


@kernel
def quantise(
    words: int,
    counted: bool,
    shares: npt.NDArray[Any],
    first: IntArray,
    counts: IntArray,
    buckets: IntArray,
    regret: Singles,
    count: Words,
) -> None:
    """Convert action counts or regrets to a strategy, with probabilities as integers.

    The largest integer stands for 1. [decision] `first` is the first slot, `counts` the number of actions and `buckets`
    the number of buckets; a slot has `words` numbers. If nothing was counted, regret matching gives the probabilities;
    if no regret is positive either, all are 0.
    """
    top = 2.0 ** (8 * shares.itemsize) - 1
    for decision in range(len(first)):
        n = counts[decision]
        for bucket in range(buckets[decision]):
            slot = first[decision] + bucket * n
            place = words * slot
            whole = 0.0
            if counted:
                for a in range(n):
                    whole += count[place + n + a]
            found = whole > 0
            if not found:
                for a in range(n):
                    whole += max(regret[place + a], np.float32(0.0))
            if whole > 0:
                for a in range(n):
                    part = np.float64(count[place + n + a] if found else max(regret[place + a], np.float32(0.0)))
                    shares[slot + a] = np.int64(part / whole * top + 0.5)


@kernel
def discount(
    words: int,
    factor: float,
    key: np.uint64,
    first: IntArray,
    counts: IntArray,
    buckets: IntArray,
    regret: Singles,
    count: Words,
) -> None:
    """Multiply the regrets and counts of some decisions by a discount factor.

    Counts are rounded to integers at random. The arguments are those of `quantise`.
    """
    for decision in range(len(first)):
        n = counts[decision]
        for slot in range(first[decision], first[decision] + buckets[decision] * n, n):
            for place in range(words * slot, words * slot + n):
                regret[place] *= np.float32(factor)
            for place in range(words * slot + n, words * slot + words * n):
                count[place] = np.uint32(factor * count[place] + uniform(key, np.uint64(place)))


@kernel
def halve(
    words: int, limit: int, first: IntArray, counts: IntArray, buckets: IntArray, regret: Singles, count: Words
) -> None:
    """Halve the counts of each decision with a count of at least `limit`.

    The arguments are those of `quantise`.
    """
    for decision in range(len(first)):
        n = counts[decision]
        for slot in range(first[decision], first[decision] + buckets[decision] * n, n):
            place, most = words * slot + n, np.uint32(0)
            for a in range(n):
                most = max(most, count[place + a])
            if most >= limit:
                for a in range(n):
                    count[place + a] >>= np.uint32(1)
