"""Ask an agent for its action probabilities at every information set of a small game, as a table for evaluation.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> from kilt.strategy.fixed import flat_table
>>> from kilt.tree.flat import flat_tree
>>> game = load_game("leduc")
>>> tree = flat_tree(game)
>>> bool((tabulated(BASELINES["always-raise"], game, tree) == flat_table(tree, "always-raise")).all())
True
"""

from __future__ import annotations

from functools import cache

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import PlayError
from kilt.games.holdem import Holdem
from kilt.play.agent import PolicyAgent, PublicPolicy
from kilt.tree.flat import FlatTree

CLOSE = 1e-6  # largest difference between 1 and the sum of probabilities at an information set


def tabulated(agent: PolicyAgent, game: Holdem, tree: FlatTree) -> FloatArray:
    """Return the probabilities of an agent's actions at all information sets of a small game.

    Parameters
    ----------
    agent : PolicyAgent
        The agent. Its `policy` is called once for each public state.
    game : Holdem
        The rules of `tree`.
    tree : FlatTree
        The flat tree of the game.

    Returns
    -------
    ndarray, shape (slots,)
        Probabilities.

    Raises
    ------
    PlayError
        If the agent's probabilities do not sum to 1, or if it takes an illegal action.
    """

    @cache
    def policy_at(board: str, history: str) -> PublicPolicy:
        return agent.policy(game.replay(history), game.deck.cards(board.replace("/", "")))

    table = np.empty(int(tree.nodes.infoset_start[-1]))
    for name, actions, start in zip(tree.infosets, tree.actions, tree.nodes.infoset_start.tolist(), strict=False):
        hand, board, history = name.split("|")
        policy = policy_at(board, history)
        column = policy.column[game.deck.hole_index(game.deck.cards(hand))]
        row = dict(zip(policy.actions, policy.table[:, column].tolist(), strict=True))
        shares = [row.pop(action, 0.0) for action in actions]
        if any(row.values()) or min(shares) < 0 or abs(sum(shares) - 1) > CLOSE:
            raise PlayError(
                f"{agent.name} plays {', '.join(actions)} at {name!r} with probabilities {shares}: they must sum to 1, "
                "and no other action may have any"
            )
        table[start : start + len(shares)] = shares
    return table
