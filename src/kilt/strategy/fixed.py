"""Simple poker agents that ignore their cards, such as ``always-call`` [Johanson16 table 2.1].

>>> action_chances("call-or-raise", ("f", "c", "r")).tolist()
[0.0, 0.5, 0.5]
>>> action_chances("call-or-raise", ("f", "c")).tolist()  # where no raise is legal
[0.0, 1.0]
>>> from kilt.games import load_game
>>> leduc = VectorGame(load_game("leduc"))
>>> leduc.exploitability(public_table(leduc, "always-fold"))  # an opponent bets every hand and wins the ante
1.0
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.games.holdem import CALL, FOLD, RAISE, Betting
from kilt.tree.flat import FlatTree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table

# An agent's habits, each followed with the same probability. A habit is a string of actions; the agent takes the first
# of them that is legal.
AGENTS: dict[str, tuple[str, ...]] = {
    "always-fold": (FOLD + CALL,),
    "always-call": (CALL,),
    "always-raise": (RAISE + CALL,),
    "call-or-raise": (CALL, RAISE + CALL),
}


def habits_of(agent: str) -> tuple[str, ...]:
    """Return a simple agent's habits: texts that list actions in order of preference.

    The agent takes the first action of a text that is legal. It follows each text with the same probability.

    Raises GameError if the name is unknown.
    """
    if agent not in AGENTS:
        raise GameError(f"unknown agent {agent!r}: use one of {', '.join(AGENTS)}")
    return AGENTS[agent]


def action_chances(agent: str, actions: tuple[str, ...]) -> FloatArray:
    """Return the probability with which a simple agent takes each legal action.

    In no-limit games, the agent's raises are minimum raises.

    >>> action_chances("always-raise", ("f", "c", "r200", "r201")).tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    kinds = [label[:1] if label[:1] == RAISE and label[1:].isdecimal() else label for label in actions]
    habits, share = habits_of(agent), np.zeros(len(actions))
    for habit in habits:
        legal = [kind for kind in habit if kind in kinds]
        if not legal:
            raise GameError(f"{agent} plays poker, and cannot choose among {', '.join(actions)}")
        share[kinds.index(legal[0])] += 1 / len(habits)
    return share


def raises(agent: str) -> bool:
    """Return whether a named agent ever raises."""
    return any(RAISE in habit for habit in habits_of(agent))


def flat_table(tree: FlatTree, agent: str) -> FloatArray:
    """Return a simple agent's strategy for a small game, as a table over information sets.

    The table has a probability for each action of each information set.
    """
    return np.concatenate([action_chances(agent, actions) for actions in tree.actions])


def public_table(game: VectorGame, agent: str, dtype: npt.DTypeLike = np.float64) -> Table:
    """Return a simple agent's strategy for a large game, as a table over the public tree.

    The table has the layout of `VectorGame.table`: (board, row) × hand.
    """
    if not isinstance(game.game.start(), Betting):
        raise GameError(f"{agent} plays poker, but {game.game.name} has no bets")
    start, table = game.tree.table_start, game.table(dtype)
    for r, row, position in game.decisions():
        share = action_chances(agent, position.actions())
        table[start[r] + row : start[r] + row + len(share)] = share[:, None]
    for r, rows in enumerate(game.tree.rows):
        if rows:  # copy the rows of the first board to all others
            boards = table[start[r] : start[r + 1]].reshape(-1, rows, table.shape[1])
            boards[1:] = boards[0]
    return table
