"""An agent that post-processes another agent's strategy, for example by dropping unlikely actions.

>>> from kilt.games.gamedef import load_definition
>>> from kilt.play.tree_agent import TreeAgent
>>> from kilt.strategy.postprocess import rule_named
>>> from kilt.tree.navigation import NavigableTree
>>> from kilt.tree.vector import VectorGame
>>> leduc = VectorGame(Holdem(load_definition("leduc"), "leduc"))
>>> table = leduc.table()
>>> table[:2] = [[0.2], [0.8]]
>>> plain = TreeAgent("plain", NavigableTree(leduc), table)
>>> agent = ProcessedAgent("pure", plain, leduc.game, rule_named("purification"))
>>> agent.policy(leduc.game.start(), ()).table[:, 0].tolist()
[0.0, 1.0]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kilt.games.holdem import Betting, Holdem
from kilt.play.agent import Observation, PolicyAgent, PublicPolicy, draw_action
from kilt.play.blueprint import action_draw
from kilt.strategy.postprocess import Rule, apply_rows


@dataclass(frozen=True)
class ProcessedAgent:
    """An agent that plays another agent's strategy after post-processing its action probabilities.

    Attributes
    ----------
    name : str
        Name in tables and logs.
    plain : PolicyAgent
        The agent whose strategy is post-processed.
    game : Holdem
        The game of the agent.
    rule : Rule
        Post-processing of its probabilities.
    """

    name: str
    plain: PolicyAgent
    game: Holdem
    rule: Rule

    def act(self, observation: Observation) -> str:
        """Choose an action at random, with the post-processed probabilities."""
        position = observation.position
        policy = self.policy(position, observation.board)
        row = policy.table[:, policy.column[self.game.deck.hole_index(observation.hand)]]
        return draw_action(policy.actions, row.tolist(), observation.draw(action_draw(position)))

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the post-processed action probabilities, for every private hand of the player to act.

        They are 0 for hands without a strategy.
        """
        found = self.plain.policy(position, board)
        acted = any(before.actor == position.actor for before, _ in self.game.positions.moves_to(position))
        rows = np.ascontiguousarray(found.table.T)
        held = rows.any(axis=1)
        rows[held] = apply_rows(self.rule, found.actions, rows[held], first=not acted)
        return found._replace(table=rows.T)
