"""Track both players' ranges for an agent that re-solves, by Bayes' rule after each action."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.games.holdem import CALL, RAISE, Betting
from kilt.play.agent import PublicPolicy
from kilt.solve.resolve import Resolved
from kilt.strategy.translate import Mapping, pseudo_harmonic, translations
from kilt.tree.place import PlacedTree, TreePlace


class SubgameState(NamedTuple):
    """The state of a hand in a solved subgame: both players' ranges, and the current node of the subgame's tree."""

    reach: FloatArray  # [player, hand of the deck] probability of all actions that each player took with a hand
    solved: Resolved  # the current subgame
    place: TreePlace  # the node in its tree

    @property
    def tree(self) -> PlacedTree:
        """The tree of the solved subgame."""
        return PlacedTree(self.solved.game)


class BlueprintState(NamedTuple):
    """The state of a hand after falling back to the blueprint: both players' ranges, without a subgame."""

    reach: FloatArray  # as in `SubgameState`


def update_range(reach: FloatArray, before: Betting, share: FloatArray) -> float:
    """Update a player's range in `reach` after an action, and return the probability of the action.

    `share` [hand] has the probability of the action with each hand. An action that no hand of the range takes
    leaves the range unchanged.
    """
    came, whole = reach[before.actor] * share, float(reach[before.actor].sum())
    if came.any():
        reach[before.actor] = came
    return float(came.sum()) / whole if whole else 0.0


def translated_share(
    policy: PublicPolicy, position: Betting, action: str, mapping: Mapping = pseudo_harmonic
) -> FloatArray:
    """Return the probability of an action with each hand; a raise that the policy never makes is translated first.

    It counts as the raises nearest to it in size. A check or call counts as a raise of no chips.
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
