"""Compiled code that runs CFR iterations on a small game tree."""

from __future__ import annotations

from kilt.arrays import FloatArray
from kilt.jit import kernel
from kilt.tree.flat import FlatNodes
from kilt.tree.rule import updated_average, updated_regret
from kilt.tree.walk_kernels import ROUNDING, Choice, own_reach, pull_values, push_reach


@kernel
def match_regrets(
    nodes: FlatNodes, player: int, regret: FloatArray, expected: FloatArray, strategy: FloatArray
) -> None:
    """Compute a player's strategy by regret matching.

    Probabilities are proportional to positive regrets, or equal if there are none. `expected`, a predictive minimiser's
    estimate of the next iteration's regret, is added to the regrets first.
    """
    for where in range(len(nodes.infoset_player)):
        if nodes.infoset_player[where] == player:
            start, end = nodes.infoset_start[where], nodes.infoset_start[where + 1]
            total = 0.0
            for slot in range(start, end):
                strategy[slot] = max(regret[slot] + expected[slot], 0.0)
                total += strategy[slot]
            for slot in range(start, end):
                strategy[slot] = strategy[slot] / total if total > 0 else 1.0 / (end - start)


@kernel
def update(
    nodes: FlatNodes,
    player: int,
    slot_value: FloatArray,
    multiplier: FloatArray,
    predictive: float,
    strategy: FloatArray,
    reach: FloatArray,
    regret: FloatArray,
    expected: FloatArray,
    average: FloatArray,
) -> None:
    """Add an iteration's regrets and strategy to their discounted sums.

    The strategy is weighted by `reach`.
    """
    for where in range(len(nodes.infoset_player)):
        if nodes.infoset_player[where] == player:
            start, end = nodes.infoset_start[where], nodes.infoset_start[where + 1]
            value = 0.0
            for slot in range(start, end):
                value += strategy[slot] * slot_value[slot]
            for slot in range(start, end):
                gained = slot_value[slot] - value
                least = ROUNDING * (abs(slot_value[slot]) + abs(value))
                regret[slot] = updated_regret(regret[slot], gained, least, 1.0, multiplier[0], multiplier[1])
                if predictive > 0:
                    expected[slot] = updated_regret(0.0, gained, least, predictive, 1.0, 1.0)
                average[slot] = updated_average(average[slot], reach[slot], 1.0, multiplier[2])


@kernel
def take_choices(nodes: FlatNodes, choice: Choice, strategy: FloatArray) -> None:
    """Change a strategy so that it plays the action in `choice`, wherever there is one."""
    for where in range(len(choice)):
        if choice[where] >= 0:
            start, end = nodes.infoset_start[where], nodes.infoset_start[where + 1]
            strategy[start:end] = 0.0
            strategy[start + choice[where]] = 1.0


@kernel
def restrict(
    nodes: FlatNodes,
    player: int,
    coin: float,
    fixed: FloatArray,
    strategy: FloatArray,
    reach: FloatArray,
    played: FloatArray,
) -> None:
    """Compute the strategy of a player who must partly follow a fixed strategy.

    The player follows `strategy` for the rest, and the result is written to `played`. With a `coin` toss before the
    game, `fixed` is the reach of the fixed strategy times the coin's probability, and `played` is the behaviour
    strategy that reaches every slot as often as the mixture of both. `reach` is scratch.
    """
    if coin > 0:
        own_reach(nodes, strategy, player, reach)
    for where in range(len(nodes.infoset_player)):
        if nodes.infoset_player[where] == player:
            start, end = nodes.infoset_start[where], nodes.infoset_start[where + 1]
            total, held = 0.0, 0.0
            for slot in range(start, end):
                held += fixed[slot]
                if coin > 0:
                    played[slot] = fixed[slot] + (1 - coin) * reach[slot]
                    total += played[slot]
            for slot in range(start, end):
                if coin > 0:
                    played[slot] = played[slot] / total if total > 0 else strategy[slot]
                else:
                    played[slot] = fixed[slot] + max(1 - held, 0.0) * strategy[slot]


@kernel
def iterate(
    nodes: FlatNodes,
    multipliers: FloatArray,
    predictive: float,
    responds: bool,
    restricted: int,
    coin: float,
    fixed: FloatArray,
    played: FloatArray,
    regret: FloatArray,
    expected: FloatArray,
    average: FloatArray,
    strategy: FloatArray,
    reach: FloatArray,
    value: FloatArray,
    slot_value: FloatArray,
    slot_reach: FloatArray,
    choice: Choice,
) -> None:
    """Run CFR iterations on a flat tree.

    Each row of `multipliers` has the discount factors of an iteration. Writes all arrays from `played` on; the last
    five are scratch. Players learn alternately, each from the other's latest strategy. If the opponent `responds`, as
    in CFR-BR, it plays a best response to the strategy before the iteration, and both players learn from that. A
    `restricted` player (−1: none) plays `played` in place of the learnt strategy, see `restrict`; otherwise both are
    one array.
    """
    before = strategy.copy()
    for t in range(multipliers.shape[0]):
        for player in range(2):
            if responds:
                push_reach(nodes, before, 1 - player, reach)
                pull_values(nodes, before, 1 - player, True, reach, value, slot_value, choice)
                for slot in range(len(before)):
                    strategy[slot] = before[slot]
                take_choices(nodes, choice, strategy)
            # With a coin toss before the game, the learnt strategy is independent of the fixed one.
            profile = strategy if player == restricted and coin > 0 else played
            push_reach(nodes, profile, player, reach)
            pull_values(nodes, profile, player, False, reach, value, slot_value, choice)
            own_reach(nodes, profile, player, slot_reach)
            update(
                nodes, player, slot_value, multipliers[t], predictive, strategy, slot_reach, regret, expected, average
            )
            if not responds:
                match_regrets(nodes, player, regret, expected, strategy)
            if player == restricted:
                restrict(nodes, player, coin, fixed, strategy, slot_reach, played)
            elif restricted >= 0:
                match_regrets(nodes, player, regret, expected, played)
        if responds:
            for player in range(2):
                match_regrets(nodes, player, regret, expected, strategy)
            for slot in range(len(before)):
                before[slot] = strategy[slot]
