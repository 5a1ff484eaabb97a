"""Convert strategies to and from the tabular policies of open_spiel.

A tabular policy is a dictionary, {information state: [(action, probability), …]}. Functions of open_spiel accept such a
dictionary or an object made from it: `pyspiel.nash_conv(game, policy)`,
`pyspiel.TabularPolicy(policy)`. To convert a policy back, use `policy_table()` of a `pyspiel.TabularPolicy`, or
`to_dict()` of a Python policy.

>>> from kilt.tree.best_response import uniform
>>> from kilt.tree.openspiel import openspiel_game, openspiel_tree
>>> kuhn = openspiel_tree("kuhn_poker")
>>> policy = to_openspiel(kuhn, uniform(kuhn))
>>> policy["0p"]
[(0, 0.5), (1, 0.5)]
>>> bool((from_openspiel(kuhn, policy) == uniform(kuhn)).all())
True

For kilt's own Kuhn, Leduc and Bluff, give `openspiel_twin(tree)` in place of the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.tree.flat import FlatTree
from kilt.tree.openspiel import action_numbers

CLOSE = 1e-6  # tolerance of the sum of probabilities of an information state: they may be in single precision


def to_openspiel(tree: FlatTree, strategy: FloatArray) -> dict[str, list[tuple[int, float]]]:
    """Convert a strategy for a small game to a tabular policy of open_spiel.

    Parameters
    ----------
    tree : FlatTree
        A tree of open_spiel, or the `openspiel_twin` of one of kilt's.
    strategy : ndarray, shape (slots,)
        Probabilities.

    Returns
    -------
    dict of str to list of (int, float)
        Actions and probabilities by information state.

    Raises
    ------
    GameError
        The strategy is for another game.
    """
    numbers = action_numbers(tree)
    if len(strategy) != len(numbers):
        raise GameError(
            f"the strategy has {len(strategy)} entries; {tree.name} needs {len(numbers)}: it is for another game"
        )
    rows = list(zip(numbers, strategy.tolist(), strict=True))
    return {name: rows[start:end] for name, (start, end) in zip(tree.infosets, _spans(tree), strict=True)}


def from_openspiel(tree: FlatTree, policy: Mapping[str, Sequence[tuple[int, float]]]) -> FloatArray:
    """Convert a tabular policy of open_spiel to a strategy for a small game.

    Parameters
    ----------
    tree : FlatTree
        As in `to_openspiel`.
    policy : mapping of str to sequence of (int, float)
        Actions and probabilities by information state, in any order; a missing action has probability 0.

    Returns
    -------
    ndarray, shape (slots,)
        Probabilities.

    Raises
    ------
    GameError
        The policy lacks an information state, or its probabilities are invalid.
    """
    numbers = action_numbers(tree)
    strategy = np.empty(len(numbers))
    for name, (start, end) in zip(tree.infosets, _spans(tree), strict=True):
        if name not in policy:
            raise GameError(
                f"the policy lacks the information state {name!r} of {tree.name}: it is for another game, or incomplete"
            )
        chance = {action: p for action, p in policy[name] if p != 0}
        row = [chance.pop(number, 0.0) for number in numbers[start:end]]
        if chance or min(row) < 0 or not abs(sum(row) - 1) <= CLOSE:
            raise GameError(
                f"the policy at {name!r} of {tree.name} is {list(policy[name])}: it must assign to the legal actions, "
                f"{', '.join(map(str, numbers[start:end]))}, probabilities that add up to 1"
            )
        strategy[start:end] = row
    return strategy


def _spans(tree: FlatTree) -> list[tuple[int, int]]:
    """Return the first slot of each information set, and the slot after its last."""
    return list(pairwise(tree.nodes.infoset_start.tolist()))
