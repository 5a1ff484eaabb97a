"""The agent that plays a large game's solved strategy, with probabilities for every board and hand.

The table is in memory, mapped from a file, or unpacked from disk.

>>> from kilt.games.gamedef import load_definition
>>> from kilt.tree.vector import VectorGame
>>> leduc = VectorGame(Holdem(load_definition("leduc"), "leduc"))
>>> agent = TreeAgent("even", NavigableTree(leduc), leduc.table())
>>> agent.policy(agent.game.replay("cc/"), agent.game.deck.cards("Kh")).probability("c").tolist()
[0.5, 0.5, 0.0, 0.5, 0.5, 0.5]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kilt.games.game import REVEAL
from kilt.games.holdem import Betting, Holdem
from kilt.play.agent import Observation, PublicPolicy, draw_action
from kilt.play.blueprint import action_draw
from kilt.tree.navigation import NavigableTree, TreePosition
from kilt.tree.vector_arrays import TableRows

KEPT = 1024  # largest number of cached positions at the beginning of rounds


@dataclass(frozen=True)
class TreeAgent:
    """An agent that plays a strategy with probabilities for every decision, board and hand.

    Attributes
    ----------
    name : str
        Name in tables and logs.
    tree : NavigableTree
        The game of the agent, with all its bets.
    table : TableRows
        Weights of actions: a row for each action of a decision on a board, with a column for each hand. They need not
        sum to 1.
    figures : dict
        Figures that the solver has saved with the strategy.
    """

    name: str
    tree: NavigableTree
    table: TableRows
    figures: Mapping[str, Any] = field(default_factory=dict, compare=False)
    _begun: dict[tuple[str, tuple[int, ...]], TreePosition] = field(default_factory=dict, repr=False, compare=False)

    @property
    def game(self) -> Holdem:
        """The game that the agent plays."""
        return self.tree.holdem

    def act(self, observation: Observation) -> str:
        """Choose an action at random, with the probabilities of the player's hand."""
        position = observation.position
        place = self._place(position, observation.board)
        row = self.tree.strategy(self.table, place)[:, self.game.deck.hole_index(observation.hand)]
        return draw_action(self.tree.actions(place), row.tolist(), observation.draw(action_draw(position)))

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the action probabilities for every private hand of the player to act.

        They are 0 for hands that share a card with the board.
        """
        place = self._place(position, board)
        shares = self.tree.strategy(self.table, place) * self.tree.live(place)
        return PublicPolicy(self.tree.actions(place), shares, np.arange(shares.shape[1]))

    def _place(self, position: Betting, board: tuple[int, ...]) -> TreePosition:
        """Return the node of the tree and the board at a betting position."""
        place, rules = self.tree.start, self.game.rules
        for before, action in self.game.positions.moves_to(position):
            if action == REVEAL:
                seen, size = board[: rules.board_size(before.round + 1)], rules.board_size(before.round)
                key = before.history, seen
                if key not in self._begun:
                    if len(self._begun) >= KEPT:
                        self._begun.clear()
                    self._begun[key] = self.tree.deal(place, seen[size:])
                place = self._begun[key]
            else:
                place = self.tree.act(place, action)
        return place
