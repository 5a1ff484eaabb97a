"""Where a hand stands for an agent that re-solves: both players' ranges, by Bayes' rule from what they have done."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.games.holdem import CALL, RAISE, Betting
from kilt.play.agent import PublicPolicy
from kilt.solve.resolve import Resolved
from kilt.strategy.translate import Mapping, pseudo_harmonic, translations
from kilt.tree.place import PlacedTree, TreePlace


class Standing(NamedTuple):
    """Where a hand stands for the agent in one seat."""

    reach: FloatArray  # [player, hand of the deck] probability of all that each has done with a hand
    solved: Resolved  # the subgame that play is in
    place: TreePlace  # in its tree

    @property
    def tree(self) -> PlacedTree:
        """The tree of the subgame."""
        return PlacedTree(self.solved.game)


class Following(NamedTuple):
    """Where a hand stands where the blueprint goes on: after a limited round, or where nothing was solved in time."""

    reach: FloatArray  # as in `Standing`


def follow(reach: FloatArray, before: Betting, share: FloatArray) -> float:
    """Take an action of probabilities `share` [hand] into the actor's range; how often the range comes to it.

    What no hand of the range does leaves it as it is.
    """
    came, whole = reach[before.actor] * share, float(reach[before.actor].sum())
    if came.any():
        reach[before.actor] = came
    return float(came.sum()) / whole if whole else 0.0


def translated(policy: PublicPolicy, position: Betting, action: str, mapping: Mapping = pseudo_harmonic) -> FloatArray:
    """[hand] probability of an action; a raise that is never made counts as those nearest to it in size.

    A check or call stands for a raise of no chips.
    """
    if policy.ever(action) or not action.startswith(RAISE) or action == RAISE:
        return policy.share(action)
    level = max(position.spent)
    levels = {CALL: level} | {one: int(one[1:]) for one in policy.actions if one.startswith(RAISE) and policy.ever(one)}
    near = sorted(levels, key=levels.__getitem__)
    sizes = [(levels[one] - level) / (2 * level) for one in near]
    found = translations(sizes, (int(action[1:]) - level) / (2 * level), mapping)
    return np.asarray(sum(share * policy.share(near[place]) for place, share in found))
