"""Agents by name, as commands and configurations are given them.

===============================  =====================================================================================
``always-call``                  a baseline, see `kilt.play.agent.BASELINES`
``my_agent.py:Mine``             a class of a Python file, made without arguments: it has a `name` and an
                                 `act(observation)`
``uniform``                      all legal actions equally often
``solved:leduc``                 a small game that is solved by CFR+ first, which takes a second
``house``                        an agent that comes with kilt, see `kilt.strategy.blueprint.SHIPPED`
``runs/demo``                    the blueprint of a run, or of what `kilt export` made
``runs/leduc``                   the strategy of a game that `kilt solve --game` has solved as it is: as a flat tree,
                                 with vectors of hands, or in subgames on disk, which are unpacked as play comes to them
``runs/leduc@purification``      … after post-processing
``runs/demo@new-0.2``            … with another post-processing than the run's own; ``@RULE@TRANSLATION`` says both
``runs/demo@resolve``            … that solves the subgame it is in, as the run's ``[resolve]`` says or in the last two
                                 rounds: see `kilt.search.agent`. ``@resolve:rounds=turn+river:iterations=100`` sets it
                                 up, with ``+`` for commas; ``@blueprint`` leaves re-solving out
``seats:runs/a,runs/b``          another one in each seat: see `kilt.play.agent.SeatedAgent`
``portfolio:runs/a,runs/b``      one that picks one of them for each hand, by what all would have won so far: see
                                 `kilt.evaluate.portfolio`; ``…,explore=0.5,window=200,estimator=all-cards`` set it up
===============================  =====================================================================================

>>> agent, game = load_player("always-call", load_holdem("leduc"))
>>> agent.name, game.name
('always-call', 'leduc')
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from kilt.artifact import exists, kind_of, read, understood
from kilt.config import ResolveConfig
from kilt.errors import PlayError, file_errors
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.portfolio import Portfolio
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.play.agent import BASELINES, UNLISTED, Agent, KnownAgent, RememberingAgent, SeatedAgent, known
from kilt.play.blueprint import BlueprintAgent
from kilt.play.processed import ProcessedAgent
from kilt.play.strategy_agent import StrategyAgent
from kilt.play.tree_agent import TreeAgent
from kilt.records import record_of
from kilt.search.agent import ResolvingAgent
from kilt.solve.forms import load_problem, stored_form, stored_problem
from kilt.solve.problem import ABSTRACT, FLAT, FlatProblem, VectorProblem
from kilt.solve.registry import make_solver
from kilt.strategy.blueprint import KIND, SHIPPED, STRATEGY, Blueprint, located
from kilt.strategy.naming import AS_PLAYED, solved_name, strategy_name
from kilt.strategy.postprocess import rule_named
from kilt.strategy.table import Strategy
from kilt.strategy.translate import mapping_named
from kilt.tree.place import PlacedTree

PORTFOLIO, SEATS, SOLVED = "portfolio:", "seats:", "solved:"
GRAMMAR = "FILE.py:CLASS", f"{SOLVED}GAME", f"{PORTFOLIO}A,B", f"{SEATS}A,B"  # other names, as errors show them
SOLVED_ITERATIONS = 2000  # of CFR+, for a game that is solved before it is played
_SETTINGS: dict[str, Callable[[str], Any]] = {"estimator": estimator_named, "explore": float, "window": int}
RESOLVE, BLUEPRINT = "resolve", "blueprint"  # after the name of a run: with re-solving, or without
_RESOLVE_KEYS: dict[str, Callable[[str], Any]] = {
    "rounds": lambda text: tuple(text.split(",")),
    "method": str,
    "trust": float,
    "neglect": float,
    "bets": str,
    "near": float,
    "seconds": float,
    "iterations": int,
    "threads": int,
    "limited": lambda text: tuple(text.split(",")),
    "continuations": int,
    "boards": int,
}
_CLASS = re.compile(r"(.+\.py):([^:]*)", re.DOTALL)


def loaded(name: str) -> Agent:
    """An agent by name, loaded once in a process: the `load` of matches, which other processes find by its name."""
    return _remembered(name, tuple(_written(part) for part in re.split("[:,]", name)))


@file_errors()
def load_agent(spec: str | Path) -> Agent:
    """An agent by name.

    Parameters
    ----------
    spec : str or Path
        The name of a baseline, or ``house``, which comes with kilt; ``FILE.py:CLASS``, a class with a `name` and an
        `act(observation)` that is made without arguments; the folder of a run or of an exported agent, as ``RUN``,
        ``RUN@RULE``, ``RUN@RULE@TRANSLATION``, or any of these with ``@resolve`` after it; ``seats:PLAYER,PLAYER``, the
        player of each seat; or ``portfolio:PLAYER,PLAYER``, with settings of `Portfolio` such as ``window=200`` among
        them.

    Returns
    -------
    Agent
        One that plays a single game has it as `game`.
    """
    spec = str(spec)
    if found := BASELINES.get(spec) or UNLISTED.get(spec):
        return found
    if spec.startswith(SOLVED):
        return _solved_here(spec)
    if spec.startswith(PORTFOLIO):
        return _portfolio(spec)
    if spec.startswith(SEATS):
        return _seated(spec)
    if own := _CLASS.fullmatch(spec):
        return _own_agent(Path(own[1]), own[2])
    place, rest = blueprint_folder(spec)
    if exists(stored := place / STRATEGY) and stored_form(stored) != ABSTRACT:
        return _solved_agent(spec.rstrip("/"), stored, rest)
    return _run_agent(spec)


@lru_cache(maxsize=8)
def _remembered(name: str, written: tuple[int, ...]) -> Agent:
    return load_agent(name)


def _written(name: str) -> int:
    """When a strategy was written, so that a run that is solved again is loaded again; 0 if no folder has it."""
    stored = blueprint_folder(name)[0] / STRATEGY
    return stored.stat().st_mtime_ns if stored.exists() else 0


def load_player(spec: str | Path, game: Holdem | None = None) -> tuple[Agent, Holdem]:
    """An agent by name (see `load_agent`) and the game it plays (see `game_for`)."""
    agent = load_agent(spec)
    return agent, game_for(agent, game)


def own_game(agent: Agent) -> Holdem | None:
    """The game that an agent was made for; None where it plays any."""
    game = getattr(agent, "game", None)
    return game if isinstance(game, Holdem) else None


def game_for(agent: Agent, game: Holdem | None = None) -> Holdem:
    """The game that an agent was made for, or `game` where it plays any; PlayError where it cannot play `game`."""
    own = own_game(agent) or game
    if own is None:
        raise PlayError(f"{agent.name} plays any poker game: give the `game`")
    if game is not None and game.rules != own.rules:
        raise PlayError(
            f"{agent.name} plays {own.name} with {own.rules.stacks[0]:,} chips, and this is {game.name}: "
            "use the game it was made for"
        )
    return own


def _solved_agent(name: str, stored: Path, rest: Sequence[str]) -> StrategyAgent | TreeAgent | ProcessedAgent:
    """The agent that plays the strategy of a game as it is, information set by information set or place by place.

    What follows the folder after an @ is a rule: such a strategy has all bets, and an answer to each.
    """
    rest = [part for part in rest if part != BLUEPRINT]
    if len(rest) > 1 or any(part.partition(":")[0] == RESOLVE for part in rest):
        raise PlayError(
            f"{stored.parent} plays its game as it is, with nothing to translate or to solve again: use "
            f"{stored.parent}, or {stored.parent}@RULE, such as {stored.parent}@purification"
        )
    if rest:
        plain = _solved_agent(name, stored, ())
        return ProcessedAgent(name, plain, plain.game, rule_named(rest[0]))
    if stored_form(stored) == FLAT:
        strategy = Strategy.load(stored)
        return StrategyAgent(name, load_holdem(strategy.game), strategy)
    problem = stored_problem(stored)
    assert isinstance(problem, VectorProblem)
    if not isinstance(problem.game.game, Holdem):
        raise PlayError(f"{name} is for {problem.name}, which is not poker: agents play games with cards and bets")
    table, figures = problem.load(stored)
    return TreeAgent(name, PlacedTree(problem.game), table, figures)


def _solved_here(spec: str) -> StrategyAgent:
    """The agent of a small game that is solved here and now."""
    rules = load_holdem(spec.removeprefix(SOLVED))
    problem = load_problem(rules, "cfr+", form=FLAT)
    assert isinstance(problem, FlatProblem)
    solver = make_solver(problem, "cfr+", seed=0)
    solver.step(SOLVED_ITERATIONS)
    return StrategyAgent(spec, rules, Strategy.of(problem.tree, solver.average()))


def blueprint_folder(spec: str) -> tuple[Path, list[str]]:
    """The folder that a name such as ``RUN@RULE`` begins with, and what follows; all of it where there is none."""
    parts = spec.split("@")
    for n in range(len(parts), 0, -1):
        if (place := located("@".join(parts[:n]))).exists():
            return place, parts[n:]
    return Path(spec), []


def chooses_rule(spec: str) -> bool:
    """Whether the name of a run ends with a rule, as ``RUN@RULE`` does, rather than leaving it to the run."""
    return any(part != BLUEPRINT for part in blueprint_folder(spec)[1])


def resolves(run: str | Path) -> bool:
    """Whether the configuration of a run asks for re-solving, so that its agent plays by more than its table."""
    place, rest = blueprint_folder(str(run))
    stored = place / STRATEGY
    if BLUEPRINT in rest or not exists(stored) or kind_of(stored) != KIND:
        return False
    return RESOLVE in read(stored, KIND).figures.get("agent", {})


def strategy_of(agent: Agent) -> str:
    """Which strategy of a run an agent plays, in words; empty for agents that play none.

    >>> strategy_of(BASELINES["always-call"])
    ''
    """
    if isinstance(agent, ResolvingAgent):
        return f"{strategy_of(agent.blueprint)}, {' and '.join(agent.settings.rounds)} re-solved"
    if isinstance(agent, BlueprintAgent):
        return strategy_name(agent.rule, agent.blueprint.figures)
    if isinstance(agent, ProcessedAgent):
        return f"{AS_PLAYED}: {agent.rule.name}"
    if isinstance(agent, StrategyAgent):
        return solved_name(agent.strategy.figures)
    if isinstance(agent, TreeAgent):
        return solved_name(agent.figures)
    parts: Sequence[Agent] = ()
    if isinstance(agent, Portfolio):
        parts = agent.components
    elif isinstance(agent, SeatedAgent):
        parts = agent.players
    return ", ".join(dict.fromkeys(f"{part.name} ({name})" for part in parts if (name := strategy_of(part))))


def strategies_to_judge(spec: str, agent: Agent) -> tuple[str, ...]:
    """Names of all strategies to judge for the name of a player, first that of the strategy which it plays.

    The average strategy follows if the player is a run that post-processes it, and if the name has no ``@RULE``.
    """
    if isinstance(agent, BlueprintAgent) and not agent.rule.idle and not chooses_rule(spec):
        return spec, f"{spec}@none"
    return (spec,)


def blueprint_name(agent: BlueprintAgent) -> str:
    """Which strategy the table of a blueprint's agent holds, in words; re-solving changes it during play."""
    how = f"{AS_PLAYED} without re-solving" if RESOLVE in agent.blueprint.figures.get("agent", {}) else AS_PLAYED
    return strategy_name(agent.rule, agent.blueprint.figures, how)


def blueprint_agent(spec: str) -> BlueprintAgent:
    """The agent that plays a blueprint; what follows the folder after an @ is a rule, and a translation."""
    place, rest = blueprint_folder(spec)
    if any(part.partition(":")[0] == RESOLVE for part in rest):
        raise PlayError(
            f"{spec} solves subgames while it plays, so there is no table of its strategy: judge its blueprint, "
            f"{place}, or find a lower bound with a local best response"
        )
    rest = rest[:-1] if rest[-1:] == [BLUEPRINT] else rest
    if not place.exists() or len(rest) > 2:
        raise PlayError(
            f"unknown player {spec!r}: use the folder of a run, or one of "
            + ", ".join([*BASELINES, *UNLISTED, *SHIPPED, *GRAMMAR])
        )
    blueprint = Blueprint.load(place)
    rule, mapping = (*rest, "", "")[:2]
    with understood(place, f"say how it is to be played: {place}@none@pseudo-harmonic"):
        said = {} if rule and mapping else blueprint.figures.get("agent", {})
        rule, mapping = (
            str(rule or said.get("post", "none")),
            str(mapping or said.get("translation", "pseudo-harmonic")),
        )
    return BlueprintAgent(spec.rstrip("/") or spec, blueprint, rule_named(rule), mapping_named(mapping))


def _run_agent(spec: str) -> BlueprintAgent | ResolvingAgent:
    """The agent of a run: it re-solves where the run or the last part of its name says so."""
    place, rest = blueprint_folder(spec)
    how = rest[-1] if rest else ""
    asked = how.partition(":")[0] == RESOLVE
    agent = blueprint_agent("@".join([str(place), *rest[:-1]]) if asked else spec)
    said = agent.blueprint.figures.get("agent", {})
    if how == BLUEPRINT or not (asked or RESOLVE in said):
        return agent
    with understood(place, f"play it without re-solving: {place}@{BLUEPRINT}"):
        settings = record_of(ResolveConfig, said.get(RESOLVE, {}))
    return ResolvingAgent(
        spec.rstrip("/") or spec, agent, _resolve_settings(how, settings, agent.game) if asked else settings
    )


def _resolve_settings(text: str, settings: ResolveConfig, game: Holdem) -> ResolveConfig:
    """How to re-solve, by what a run says and by ``resolve:KEY=VALUE:KEY=VALUE``; the last two rounds, or all later."""
    said: dict[str, Any] = {}
    for part in text.split(":")[1:]:
        key, _, value = part.partition("=")
        try:
            said[key] = _RESOLVE_KEYS[key](value.replace("+", ","))
        except (KeyError, ValueError):
            raise PlayError(
                f"{part!r} of {text!r} is no setting: use KEY=VALUE with a key of {', '.join(_RESOLVE_KEYS)}, such as "
                "rounds=turn+river or iterations=100"
            ) from None
    if "seconds" in said or "iterations" in said:  # one of them is meant in place of what the run says
        settings = replace(settings, seconds=0.0, iterations=0)
    return replace(replace(settings, rounds=settings.rounds or game.rules.round_names[1:][-2:]), **said)


def _portfolio(spec: str) -> Portfolio:
    """A portfolio of players with commas between them; what has the name of a setting and ``=`` is one."""
    components: list[KnownAgent] = []
    settings: dict[str, Any] = {}
    for part in filter(None, spec.removeprefix(PORTFOLIO).split(",")):
        key, _, value = part.partition("=")
        try:
            if key in _SETTINGS:
                settings[key] = _SETTINGS[key](value)
            else:
                components.append(known(load_agent(part)))
        except ValueError:
            raise PlayError(f"{part!r} of {spec} is no number: use {key}=200, say") from None
    _require_one_game(spec, components)
    called = ",".join(agent.name for agent in components)
    return Portfolio(f"portfolio({called})", tuple(components), **settings)


def _seated(spec: str) -> SeatedAgent:
    """The player of each seat, with a comma between them."""
    players = [load_agent(part) for part in filter(None, spec.removeprefix(SEATS).split(","))]
    if len(players) != 2:
        raise PlayError(f"{spec} has {len(players)} players: give two, that of the first seat and that of the second")
    first, second = players
    for player in players:
        if isinstance(player, RememberingAgent):
            raise PlayError(f"{player.name} remembers earlier hands, and would see those of its seat only: use a run")
    return SeatedAgent(f"seats({first.name},{second.name})", (first, second), _require_one_game(spec, players))


def _require_one_game(spec: str, components: Sequence[Agent]) -> Holdem | None:
    """The game that all components of an agent play; None where they play any, PlayError where games differ."""
    games = [game for agent in components if (game := own_game(agent))]
    for game in games:
        if game.rules != games[0].rules:
            raise PlayError(f"components of {spec} play different games: {games[0].name} and {game.name}")
    return games[0] if games else None


def _own_agent(file: Path, name: str) -> Agent:
    """An agent of a class in a Python file."""
    if not file.is_file():
        raise PlayError(f"there is no file {file}: give a Python file and a class of it, such as my_agent.py:MyAgent")
    module = _module(file.resolve())
    found = vars(module).get(name)
    if not isinstance(found, type):
        classes = [
            what for what, it in vars(module).items() if isinstance(it, type) and it.__module__ == module.__name__
        ]
        raise PlayError(f"{file} has no class {name!r}: use one of {', '.join(classes) or 'its own, it has none yet'}")
    try:
        agent: Agent = found()
    except Exception as error:
        raise PlayError(
            f"{name} of {file} cannot be made ({type(error).__name__}: {error}): it is called without arguments"
        ) from error
    if not isinstance(getattr(agent, "name", None), str) or not callable(getattr(agent, "act", None)):
        raise PlayError(
            f"{name} of {file} is no agent: give it a `name`, which is text, and a method `act(observation)`"
        )
    if callable(getattr(agent, "saw", None)) and not isinstance(agent, RememberingAgent):
        raise PlayError(
            f"{name} of {file} has `saw`, but no method `begin(game)`: give it one that returns the player of a match"
        )
    return agent


@cache
def _module(file: Path) -> ModuleType:
    """A Python file as a module, run once in a process. It may import what lies beside it."""
    module_spec = importlib.util.spec_from_file_location(f"{file.stem} ({file.parent})", file)
    assert module_spec and module_spec.loader
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module.__name__] = module
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module.__name__]
        raise PlayError(f"{file} cannot be run ({type(error).__name__}: {error}): mend it first") from error
    return module
