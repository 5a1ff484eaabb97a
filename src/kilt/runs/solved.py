"""Turn the solution of an unabstracted game into a strategy or an agent."""

from __future__ import annotations

from kilt.arrays import Array
from kilt.errors import GameError, PlayError
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.play.strategy_agent import StrategyAgent
from kilt.play.tree_agent import TreeAgent
from kilt.solve.problem import FlatProblem, Problem, VectorProblem
from kilt.strategy.table import Strategy
from kilt.strategy.vector import VectorStrategy
from kilt.tree.navigation import NavigableTree


def strategy_from_table(problem: Problem, table: Array) -> Strategy | VectorStrategy:
    """Convert a solver's table to a strategy: by information set in small games, by hand in large ones."""
    if isinstance(problem, FlatProblem):
        return Strategy.of(problem.tree, table)
    if isinstance(problem, VectorProblem):
        return VectorStrategy.of(problem.game, table)
    raise GameError(f"the strategy of {problem.name} is no table by hands: open the blueprint in the folder of the run")


def agent_for_strategy(problem: Problem, table: Array, game: str | Game | None = None) -> StrategyAgent | TreeAgent:
    """Return the agent that plays a solved strategy.

    Raises PlayError if the game is not poker.
    """
    if isinstance(problem, VectorProblem):
        if not isinstance(problem.game.game, Holdem):
            raise PlayError(f"{problem.name} is not poker: agents play games with cards and bets")
        return TreeAgent("solution", NavigableTree(problem.game), table)
    if not isinstance(problem, FlatProblem):
        raise PlayError(f"the run on {problem.name} plays from its folder: give it a folder, and finish it")
    rules = game if isinstance(game, Holdem) else load_holdem(str(game or problem.name))
    return StrategyAgent("solution", rules, Strategy.of(problem.tree, table))
