"""kilt: from the rules of a large game of imperfect information to an agent that plays it.

>>> import kilt
>>> solution = kilt.solve_game("leduc", "cfr+", iterations=200)
>>> round(solution.value, 2), solution.exploitability_mbb < 10
(-0.09, True)

Names are imported when they are first used, so that ``import kilt`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kilt.abstraction.buckets import CardAbstraction
    from kilt.api import (
        Solution,
        build_abstraction,
        equity,
        exploitability,
        model_opponent,
        open_blueprint,
        plan_run,
        play_match,
        resume_run,
        solve_game,
        start_run,
    )
    from kilt.cards.deck import FULL, Deck
    from kilt.config import Config
    from kilt.errors import GameError, KiltError
    from kilt.evaluate.stats import Estimate, win_rate
    from kilt.games import load_game
    from kilt.games.game import Game, check_game
    from kilt.play.agent import Agent, Observation, PlayedHand, RememberingAgent
    from kilt.players.agents import load_agent
    from kilt.rehearsals import setup
    from kilt.runs.budget import Step
    from kilt.runs.run import Run
    from kilt.solve.counter import Against
    from kilt.solve.registry import Algorithm
    from kilt.solve.solver import Solver
    from kilt.solve.variants import Variant
    from kilt.spots.solution import SpotNode, SpotSolution
    from kilt.spots.spot import Spot, open_spot
    from kilt.strategy.model import OpponentModel
    from kilt.strategy.table import Strategy

__version__ = "0.1.0"

# Where each public name lives.
_HOMES = {
    "FULL": "cards.deck",
    "Against": "solve.counter",
    "Agent": "play.agent",
    "Algorithm": "solve.registry",
    "CardAbstraction": "abstraction.buckets",
    "Config": "config",
    "Deck": "cards.deck",
    "Estimate": "evaluate.stats",
    "Game": "games.game",
    "GameError": "errors",
    "KiltError": "errors",
    "Observation": "play.agent",
    "OpponentModel": "strategy.model",
    "PlayedHand": "play.agent",
    "RememberingAgent": "play.agent",
    "Run": "runs.run",
    "Solution": "api",
    "Solver": "solve.solver",
    "Spot": "spots.spot",
    "SpotNode": "spots.solution",
    "SpotSolution": "spots.solution",
    "Step": "runs.budget",
    "Strategy": "strategy.table",
    "Variant": "solve.variants",
    "build_abstraction": "api",
    "check_game": "games.game",
    "equity": "api",
    "exploitability": "api",
    "load_agent": "players.agents",
    "load_game": "games",
    "model_opponent": "api",
    "open_blueprint": "api",
    "open_spot": "spots.spot",
    "plan_run": "api",
    "play_match": "api",
    "resume_run": "api",
    "setup": "rehearsals",
    "solve_game": "api",
    "start_run": "api",
    "win_rate": "evaluate.stats",
}
__all__ = [
    "FULL",
    "Against",
    "Agent",
    "Algorithm",
    "CardAbstraction",
    "Config",
    "Deck",
    "Estimate",
    "Game",
    "GameError",
    "KiltError",
    "Observation",
    "OpponentModel",
    "PlayedHand",
    "RememberingAgent",
    "Run",
    "Solution",
    "Solver",
    "Spot",
    "SpotNode",
    "SpotSolution",
    "Step",
    "Strategy",
    "Variant",
    "__version__",
    "build_abstraction",
    "check_game",
    "equity",
    "exploitability",
    "load_agent",
    "load_game",
    "model_opponent",
    "open_blueprint",
    "open_spot",
    "plan_run",
    "play_match",
    "resume_run",
    "setup",
    "solve_game",
    "start_run",
    "win_rate",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kilt' has no attribute {name!r}")
    found: object = getattr(import_module(f"kilt.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
