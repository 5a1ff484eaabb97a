"""The agent that plays a solved strategy in a small game.

>>> from kilt.games.gamedef import load_definition
>>> from kilt.tree.best_response import uniform
>>> from kilt.tree.flat import flat_tree
>>> kuhn = Holdem(load_definition("kuhn"), "kuhn")
>>> tree = flat_tree(kuhn)
>>> agent = StrategyAgent("even", kuhn, Strategy.of(tree, uniform(tree)))
>>> agent.policy(kuhn.replay("r"), ()).probabilities.tolist()
[[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kilt.games.holdem import Betting, Holdem
from kilt.play.agent import Observation, PublicPolicy, draw_action
from kilt.play.blueprint import action_draw
from kilt.strategy.table import Strategy


@dataclass(frozen=True)
class StrategyAgent:
    """An agent that looks up its action probabilities in a strategy for a small game.

    Attributes
    ----------
    name : str
        Name in tables and logs.
    game : Holdem
        The game of the agent.
    strategy : Strategy
        A strategy for this game as a flat tree.
    """

    name: str
    game: Holdem
    strategy: Strategy

    def act(self, observation: Observation) -> str:
        """Choose an action at random, with the probabilities of the player's information set."""
        position = observation.position
        row = self._row(position, self.game.deck.name(observation.hand), observation.board)
        return draw_action(tuple(row), tuple(row.values()), observation.draw(action_draw(position)))

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the action probabilities for every private hand of the player to act.

        They are 0 for hands that share a card with the board.
        """
        actions = position.actions()
        holes = self.game.deck.holes(self.game.rules.hole_cards)
        free = [not set(hand) & set(board) for hand in holes.tolist()]
        table = np.zeros((len(actions), len(holes)))
        for hand, name in enumerate(self.game.hands(position.actor)):
            if free[hand]:
                row = self._row(position, name, board)
                table[:, hand] = [row[action] for action in actions]
        return PublicPolicy(actions, table, np.arange(len(holes)))

    def _row(self, position: Betting, hand: str, board: tuple[int, ...]) -> dict[str, float]:
        return self.strategy[f"{hand}|{self.game.board_name(board)}|{position.history}"]
