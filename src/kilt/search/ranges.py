"""Track both players' ranges by Bayes' rule, for re-solving during play."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.games.holdem import CALL, RAISE, Betting, Holdem
from kilt.games.subgame import pair_weight
from kilt.play.agent import PublicPolicy
from kilt.play.blueprint import BlueprintAgent
from kilt.solve.resolve import Resolved
from kilt.strategy.translate import Mapping, pseudo_harmonic, translations
from kilt.tree.navigation import NavigableTree, TreePosition


class SubgameState(NamedTuple):
    """A hand's state in a re-solved subgame: both players' ranges, and the position in the subgame."""

    reach: FloatArray  # [player, hand of the deck] probability of all actions that each player took with a hand
    solved: Resolved  # the current subgame
    tree_position: TreePosition  # the node in its tree

    @property
    def tree(self) -> NavigableTree:
        """The tree of the solved subgame."""
        return NavigableTree(self.solved.game)


class BlueprintState(NamedTuple):
    """A hand's state after the agent returned to its blueprint: both players' ranges."""

    reach: FloatArray  # as in `SubgameState`


def update_range(reach: FloatArray, before: Betting, share: FloatArray) -> float:
    """Update a player's range after an action by Bayes' rule, and return the action's probability.

    The range is in `reach`. `share` [hand] has the probability of the action with each hand. An action that no hand of
    the range takes leaves the range unchanged.
    """
    came, whole = reach[before.actor] * share, float(reach[before.actor].sum())
    if came.any():
        reach[before.actor] = came
    return float(came.sum()) / whole if whole else 0.0


def translated_share(
    policy: PublicPolicy, position: Betting, action: str, mapping: Mapping = pseudo_harmonic
) -> FloatArray:
    """Return each hand's probability of an action, even for a bet size that the policy lacks.

    If the policy lacks a raise of this size, the probabilities of the nearest raises are used. A check or call counts
    as a raise of no chips.
    """
    if policy.may_take(action) or not action.startswith(RAISE) or action == RAISE:
        return policy.probability(action)
    level = max(position.spent)
    levels = {CALL: level} | {
        one: int(one[1:]) for one in policy.actions if one.startswith(RAISE) and policy.may_take(one)
    }
    near = sorted(levels, key=levels.__getitem__)
    sizes = [(levels[one] - level) / (2 * level) for one in near]
    found = translations(sizes, (int(action[1:]) - level) / (2 * level), mapping)
    return np.asarray(sum(share * policy.probability(near[place]) for place, share in found))


def blueprint_ranges(player: BlueprintAgent, position: Betting, board: tuple[int, ...]) -> FloatArray:
    """Return both players' ranges at a position, from the probabilities of their actions so far.

    Parameters
    ----------
    player : BlueprintAgent
        The agent that plays in both seats.
    position : Betting
        A position of the agent's game.
    board : tuple of int
        The public cards so far.

    Returns
    -------
    ndarray, shape (2, hands of the deck)
        0 for hands with a card of the board. An action that a player never takes with any hand leaves the range
        unchanged.
    """
    reach = np.stack([free_hands(player.game, board)] * 2)
    for before, action, _ in moves_of(player.game, position):
        if before.actor >= 0:
            policy = player.policy(before, board[: player.game.rules.board_size(before.round)])
            update_range(reach, before, translated_share(policy, before, action, player.mapping))
    return reach


def dealable_ranges(game: Holdem, reach: FloatArray, board: tuple[int, ...]) -> FloatArray:
    """Repair ranges that allow no deal: a player without any possible hand gets all hands.

    A player whose actions so far have probability 0 gets all hands, and so do both players if no pair of their hands
    can be dealt together.
    """
    free = free_hands(game, board)
    ranges = np.stack([own * free if (own * free).any() else free for own in reach])
    if pair_weight(ranges, game.holes, game.deck.size) <= 0:
        ranges = np.stack([free, free])
    scaled: FloatArray = ranges / ranges.max(axis=1, keepdims=True)
    return scaled


def free_hands(game: Holdem, board: tuple[int, ...]) -> FloatArray:
    """Return a mask of hands that share no card with the board: 1 if free, else 0."""
    return np.asarray(~np.isin(game.holes, board).any(axis=1), dtype=np.float64)


def moves_of(game: Holdem, position: Betting) -> Iterator[tuple[Betting, str, Betting]]:
    """Yield each action of a hand so far, with the positions before and after it."""
    for before, action in game.positions.moves_to(position):
        yield before, action, game.positions.after(before, action)
