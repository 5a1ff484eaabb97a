"""kilt solves large two-player games of imperfect information, such as poker, and plays the resulting strategies.

>>> import kilt
>>> run = kilt.solve("leduc", iterations=200)
>>> round(run.value, 2), run.exploitability_mbb < 10
(-0.09, True)

Names are imported when they are first used, so that ``import kilt`` is quick.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kilt.abstraction.buckets import CardAbstraction
    from kilt.api import (
        build_abstraction,
        cost,
        equity,
        games,
        open_blueprint,
        open_run,
        plan_run,
        resume_run,
        solve,
        start_run,
    )
    from kilt.cards.deck import FULL, Deck
    from kilt.cards.equity import Equity
    from kilt.config import Config
    from kilt.cost import Cost
    from kilt.errors import GameError, KiltError
    from kilt.evaluate.crosstable import Crosstable
    from kilt.evaluate.exploitability import Exploitability
    from kilt.evaluate.lbr import LowerBound
    from kilt.evaluate.stats import Estimate, win_rate
    from kilt.evaluation import PlayedMatch, crosstable, exploitability, lower_bound, play_match, sanity
    from kilt.games import load_game
    from kilt.games.game import Game, check_game
    from kilt.play.agent import Agent, Observation, PlayedHand, RememberingAgent
    from kilt.players.modelled import model_opponent
    from kilt.players.reference import Player, player
    from kilt.rehearsals import setup
    from kilt.runs.budget import Step
    from kilt.runs.run import Run, StoredRun
    from kilt.solve.counter import Against
    from kilt.solve.registry import Algorithm
    from kilt.solve.solver import Solver
    from kilt.solve.variants import Variant
    from kilt.spots.saved import open_spot
    from kilt.spots.solution import SpotNode, SpotSolution
    from kilt.spots.spot import Spot
    from kilt.strategy.blueprint import Blueprint
    from kilt.strategy.model import OpponentModel
    from kilt.strategy.table import Strategy
    from kilt.strategy.vector import VectorStrategy

__version__ = "0.1.0"

# The module of each public name.
_HOMES = {
    "Against": "solve.counter",
    "Agent": "play.agent",
    "Algorithm": "solve.registry",
    "Blueprint": "strategy.blueprint",
    "CardAbstraction": "abstraction.buckets",
    "Config": "config",
    "Cost": "cost",
    "Crosstable": "evaluate.crosstable",
    "Deck": "cards.deck",
    "Equity": "cards.equity",
    "Estimate": "evaluate.stats",
    "Exploitability": "evaluate.exploitability",
    "FULL": "cards.deck",
    "Game": "games.game",
    "GameError": "errors",
    "KiltError": "errors",
    "LowerBound": "evaluate.lbr",
    "Observation": "play.agent",
    "OpponentModel": "strategy.model",
    "PlayedHand": "play.agent",
    "PlayedMatch": "evaluation",
    "Player": "players.reference",
    "RememberingAgent": "play.agent",
    "Run": "runs.run",
    "Solver": "solve.solver",
    "Spot": "spots.spot",
    "SpotNode": "spots.solution",
    "SpotSolution": "spots.solution",
    "Step": "runs.budget",
    "StoredRun": "runs.run",
    "Strategy": "strategy.table",
    "Variant": "solve.variants",
    "VectorStrategy": "strategy.vector",
    "build_abstraction": "api",
    "check_game": "games.game",
    "cost": "api",
    "crosstable": "evaluation",
    "equity": "api",
    "exploitability": "evaluation",
    "games": "api",
    "load_game": "games",
    "lower_bound": "evaluation",
    "model_opponent": "players.modelled",
    "open_blueprint": "api",
    "open_run": "api",
    "open_spot": "spots.saved",
    "plan_run": "api",
    "play_match": "evaluation",
    "player": "players.reference",
    "resume_run": "api",
    "sanity": "evaluation",
    "setup": "rehearsals",
    "solve": "api",
    "start_run": "api",
    "win_rate": "evaluate.stats",
}
# Names of kilt 0.1 that will be removed in kilt 0.3: the module of each, and the name to use instead.
_OLD = {
    "Solution": ("runs.run", "Run", "Run"),
    "load_agent": ("players.agents", "load_agent", "player(who).agent"),
    "solve_game": ("api", "solve", "solve"),
}
__all__ = [
    "FULL",
    "Against",
    "Agent",
    "Algorithm",
    "Blueprint",
    "CardAbstraction",
    "Config",
    "Cost",
    "Crosstable",
    "Deck",
    "Equity",
    "Estimate",
    "Exploitability",
    "Game",
    "GameError",
    "KiltError",
    "LowerBound",
    "Observation",
    "OpponentModel",
    "PlayedHand",
    "PlayedMatch",
    "Player",
    "RememberingAgent",
    "Run",
    "Solver",
    "Spot",
    "SpotNode",
    "SpotSolution",
    "Step",
    "StoredRun",
    "Strategy",
    "Variant",
    "VectorStrategy",
    "__version__",
    "build_abstraction",
    "check_game",
    "cost",
    "crosstable",
    "equity",
    "exploitability",
    "games",
    "load_game",
    "lower_bound",
    "model_opponent",
    "open_blueprint",
    "open_run",
    "open_spot",
    "plan_run",
    "play_match",
    "player",
    "resume_run",
    "sanity",
    "setup",
    "solve",
    "start_run",
    "win_rate",
]


def __getattr__(name: str) -> object:
    """Import a public name of kilt when it is first used."""
    if name in _OLD:
        import warnings

        home, now, instead = _OLD[name]
        warnings.warn(f"kilt.{name} is now kilt.{instead}; the old name is removed in kilt 0.3", DeprecationWarning, 2)
        return getattr(import_module(f"kilt.{home}"), now)
    if name not in _HOMES:
        raise AttributeError(f"module 'kilt' has no attribute {name!r}")
    found = _public(name)
    if (package := sys.modules.get(f"kilt.{name}")) is not None:
        return package  # `solve` and `games` are packages too, which can be called
    globals()[name] = found
    return found


def _public(name: str) -> Any:
    return getattr(import_module(f"kilt.{_HOMES[name]}"), name)


class _CalledPackage(ModuleType):
    """A package that can also be called as a function, such as ``kilt.solve("leduc")``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _public(self.__name__.rpartition(".")[2])(*args, **kwargs)

    @property
    def __signature__(self) -> object:
        from inspect import signature

        return signature(_public(self.__name__.rpartition(".")[2]))


class _FrontDoor(ModuleType):
    """The package `kilt`, whose subpackages can be called if a public function has the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            value.__class__ = _CalledPackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor


def __dir__() -> list[str]:
    return __all__
