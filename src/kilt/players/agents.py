"""Load agents by name, for commands, configurations and the web page.

===============================  =====================================================================================
``always-call``                  a baseline, see `kilt.play.agent.BASELINES`
``my_agent.py:Mine``             a class of a Python file, made without arguments: it has a `name` and an
                                 `act(observation)`
``uniform``                      each legal action with the same probability
``solved:leduc``                 a small game that is solved by CFR+ first, which takes a second
``house``                        an agent that comes with kilt, see `kilt.strategy.blueprint.SHIPPED`
``runs/demo``                    the blueprint of a run, or a folder written by `kilt export`
``runs/leduc``                   the strategy of a game that `kilt solve --game` has solved without an abstraction: as
                                 a flat tree, with vectors of hands, or in subgames on disk, which are unpacked when
                                 needed
``runs/demo@new-0.2``            the strategy of a run with this post-processing instead of the run's own;
                                 ``@RULE@TRANSLATION`` also sets the translation of bets
``runs/demo@resolve``            the blueprint of a run, with re-solving of the current subgame in the rounds of the
                                 run's ``[resolve]``, or in the last two: see `kilt.search.agent`.
                                 ``@resolve:rounds=turn+river:iterations=100`` changes settings, with ``+`` for commas;
                                 ``@blueprint`` switches re-solving off
``seats:runs/a,runs/b``          a different agent in each seat: see `kilt.play.agent.SeatedAgent`
``portfolio:runs/a,runs/b``      picks one of the agents for each hand, by estimates of what each would have won so
                                 far: see `kilt.evaluate.portfolio`. Parts such as ``explore=0.5``, ``window=200`` and
                                 ``estimator=all-cards`` change settings
===============================  =====================================================================================

>>> load_agent("always-call").name
'always-call'
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from kilt.artifact import damage_errors, exists, kind_of, read
from kilt.config import ResolveConfig
from kilt.errors import PlayError, file_errors
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.portfolio import Portfolio
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.play.agent import (
    BASELINES,
    UNLISTED,
    Agent,
    PolicyAgent,
    RememberingAgent,
    SeatedAgent,
    require_policy,
    with_current_names,
)
from kilt.play.blueprint import BlueprintAgent
from kilt.play.processed import ProcessedAgent
from kilt.play.strategy_agent import StrategyAgent
from kilt.play.tree_agent import TreeAgent
from kilt.records import parsed, record_of
from kilt.search.agent import ResolvingAgent
from kilt.solve.forms import load_problem, stored_form, stored_problem
from kilt.solve.problem import ABSTRACT, FLAT, FlatProblem, VectorProblem
from kilt.solve.registry import make_solver
from kilt.strategy.blueprint import KIND, SHIPPED, STRATEGY, Blueprint, find_blueprint
from kilt.strategy.naming import AS_PLAYED, solved_name, strategy_name
from kilt.strategy.postprocess import Rule, rule_named
from kilt.strategy.table import Strategy
from kilt.strategy.translate import mapping_named
from kilt.tree.navigation import NavigableTree

PORTFOLIO, SEATS, SOLVED = "portfolio:", "seats:", "solved:"
GRAMMAR = "FILE.py:CLASS", f"{SOLVED}GAME", f"{PORTFOLIO}A,B", f"{SEATS}A,B"  # other forms of names, for error messages
SOLVED_ITERATIONS = 2000  # CFR+ iterations for ``solved:GAME``
_SETTINGS: dict[str, Callable[[str], Any]] = {"estimator": estimator_named, "explore": float, "window": int}
RESOLVE, BLUEPRINT = "resolve", "blueprint"  # parts after @ that switch re-solving on and off
_CLASS = re.compile(r"(.+\.py):([^:]*)", re.DOTALL)


def load_once(name: str) -> Agent:
    """Return the agent with a given name, loaded once per process.

    Other processes of a match import this function by name.
    """
    return _remembered(name, tuple(_written(part) for part in re.split("[:,]", name)))


@file_errors()
def load_agent(spec: str | Path) -> Agent:
    """Return the agent with a given name.

    Parameters
    ----------
    spec : str or Path
        The name of a baseline, or ``house``, which comes with kilt; ``FILE.py:CLASS``, a class with a `name` and an
        `act(observation)`, called without arguments; the folder of a run or of an exported agent, as ``RUN``,
        ``RUN@RULE``, ``RUN@RULE@TRANSLATION``, or any of these followed by ``@resolve``; ``seats:PLAYER,PLAYER``, the
        player of each seat; or ``portfolio:PLAYER,PLAYER``, optionally with settings of `Portfolio` such as
        ``window=200``.

    Returns
    -------
    Agent
        The agent. If it plays only one game, that is its attribute `game`.

    Raises
    ------
    PlayError
        If there is no such agent, or it cannot be loaded.
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
    if place.suffix == ".py" and place.is_file():
        raise PlayError(f"{place} is a file of Python: name a class in it, such as {place}:MyAgent")
    if is_whole_game(place):
        return _solved_agent(spec.rstrip("/"), place / STRATEGY, rest)
    return _run_agent(spec)


def is_whole_game(place: Path) -> bool:
    """Return whether a folder holds a strategy solved without an abstraction."""
    return exists(place / STRATEGY) and stored_form(place / STRATEGY) != ABSTRACT


@lru_cache(maxsize=8)
def _remembered(name: str, written: tuple[int, ...]) -> Agent:
    return load_agent(name)


def _written(name: str) -> int:
    """Return the time at which the strategy of a run was written, or 0 if there is none.

    A run that is solved again is loaded again, because this time differs.
    """
    stored = blueprint_folder(name)[0] / STRATEGY
    return stored.stat().st_mtime_ns if stored.exists() else 0


def own_game(agent: Agent) -> Holdem | None:
    """Return the game for which an agent was made, or None if it plays any poker game."""
    game = getattr(agent, "game", None)
    return game if isinstance(game, Holdem) else None


def game_for(agent: Agent, game: Holdem | None = None) -> Holdem:
    """Return the game that an agent plays: its own game, or else the given one.

    Raises PlayError if they do not match.
    """
    own = own_game(agent) or game
    if own is None:
        raise PlayError(f"{agent.name} plays any poker game: give the `game`")
    if game is not None and game.rules != own.rules:
        raise PlayError(
            f"{agent.name} plays {own.name} with {own.rules.stacks[0]:,} chips, but this is {game.name}: "
            "use the game it was made for"
        )
    return own


def _solved_agent(name: str, stored: Path, rest: Sequence[str]) -> StrategyAgent | TreeAgent | ProcessedAgent:
    """Return the agent of a game that was solved without an abstraction.

    The agent looks up information sets or nodes of the public tree. A part after @ is a post-processing rule. The
    strategy covers all legal bets, so no translation is needed.
    """
    rule = rule_of_whole_game(stored.parent, rest)
    if {*rest} - {BLUEPRINT}:
        plain = _solved_agent(name, stored, ())
        return ProcessedAgent(name, plain, plain.game, rule)
    if stored_form(stored) == FLAT:
        strategy = Strategy.load(stored)
        return StrategyAgent(name, load_holdem(strategy.game), strategy)
    problem = stored_problem(stored)
    assert isinstance(problem, VectorProblem)
    if not isinstance(problem.game.game, Holdem):
        raise PlayError(f"{name} is for {problem.name}, which is not poker: agents play games with cards and bets")
    table, figures = problem.load(stored)
    return TreeAgent(name, NavigableTree(problem.game), table, figures)


def rule_of_whole_game(place: Path, rest: Sequence[str]) -> Rule:
    """Return the post-processing rule in the name of a run that solved its game without an abstraction.

    `rest` is what follows the folder, as `blueprint_folder` returns it.
    """
    rest = [part for part in rest if part != BLUEPRINT]
    if len(rest) > 1 or any(part.partition(":")[0] == RESOLVE for part in rest):
        raise PlayError(
            f"{place} is solved without an abstraction, so there is nothing to translate or re-solve: use {place}, or "
            f"{place}@RULE, such as {place}@purification"
        )
    return rule_named(rest[0] if rest else "none")


def _solved_here(spec: str) -> StrategyAgent:
    """Solve a small game now, and return an agent that plays the solution."""
    rules = load_holdem(spec.removeprefix(SOLVED))
    problem = load_problem(rules, "cfr+", form=FLAT)
    assert isinstance(problem, FlatProblem)
    solver = make_solver(problem, "cfr+", seed=0)
    solver.step(SOLVED_ITERATIONS)
    return StrategyAgent(spec, rules, Strategy.of(problem.tree, solver.average()))


def blueprint_folder(spec: str) -> tuple[Path, list[str]]:
    """Split an agent's name such as ``RUN@RULE`` into the run's folder and the parts after each @.

    If there is no such folder, the path is the whole name, and the list is empty.
    """
    parts = spec.split("@")
    for n in range(len(parts), 0, -1):
        if (place := find_blueprint("@".join(parts[:n]))).exists():
            return place, parts[n:]
    return Path(spec), []


def chooses_rule(spec: str) -> bool:
    """Return whether a name such as ``RUN@RULE`` ends with a post-processing rule."""
    return any(part != BLUEPRINT for part in blueprint_folder(spec)[1])


def uses_resolving(run: str | Path) -> bool:
    """Return whether a run's agent re-solves subgames during play, as its configuration may request."""
    place, rest = blueprint_folder(str(run))
    stored = place / STRATEGY
    if BLUEPRINT in rest or not exists(stored) or kind_of(stored) != KIND:
        return False
    return RESOLVE in read(stored, KIND).figures.get("agent", {})


def describe_strategy(agent: Agent) -> str:
    """Describe in words which solved strategy an agent plays, if any.

    >>> describe_strategy(BASELINES["always-call"])
    ''
    """
    if isinstance(agent, ResolvingAgent):
        return f"{describe_strategy(agent.blueprint)}, {' and '.join(agent.settings.rounds)} re-solved"
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
    return ", ".join(dict.fromkeys(f"{part.name} ({name})" for part in parts if (name := describe_strategy(part))))


def strategies_to_evaluate(spec: str, agent: Agent) -> tuple[str, ...]:
    """Return the names of all strategies of a player that should be evaluated, with the played one first.

    The average strategy is second if the player is a run that post-processes it, and if the name has no ``@RULE``.
    """
    if isinstance(agent, BlueprintAgent) and not agent.rule.idle and not chooses_rule(spec):
        return spec, f"{spec}@none"
    return (spec,)


def describe_blueprint(agent: BlueprintAgent) -> str:
    """Describe in words the strategy in a blueprint's table, without re-solving."""
    how = f"{AS_PLAYED} without re-solving" if RESOLVE in agent.blueprint.figures.get("agent", {}) else AS_PLAYED
    return strategy_name(agent.rule, agent.blueprint.figures, how)


def blueprint_agent(spec: str) -> BlueprintAgent:
    """Load a blueprint's agent from its folder name, with an optional ``@`` and a post-processing rule."""
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
    with damage_errors(place, f"name the rule and the translation: {place}@none@pseudo-harmonic"):
        said = {} if rule and mapping else blueprint.figures.get("agent", {})
        rule, mapping = (
            str(rule or said.get("post", "none")),
            str(mapping or said.get("translation", "pseudo-harmonic")),
        )
    return BlueprintAgent(spec.rstrip("/") or spec, blueprint, rule_named(rule), mapping_named(mapping))


def _run_agent(spec: str) -> BlueprintAgent | ResolvingAgent:
    """Return the agent of a run.

    It re-solves subgames if the run's configuration or the end of its name requests that.
    """
    place, rest = blueprint_folder(spec)
    how = rest[-1] if rest else ""
    asked = how.partition(":")[0] == RESOLVE
    agent = blueprint_agent("@".join([str(place), *rest[:-1]]) if asked else spec)
    said = agent.blueprint.figures.get("agent", {})
    if how == BLUEPRINT or not (asked or RESOLVE in said):
        return agent
    with damage_errors(place, f"play it without re-solving: {place}@{BLUEPRINT}"):
        settings = record_of(ResolveConfig, said.get(RESOLVE, {}))
    return ResolvingAgent(
        spec.rstrip("/") or spec, agent, _resolve_settings(how, settings, agent.game) if asked else settings
    )


def _resolve_settings(text: str, settings: ResolveConfig, game: Holdem) -> ResolveConfig:
    """Return a run's settings for re-solving, changed by a text such as ``resolve:KEY=VALUE:KEY=VALUE``.

    If no rounds are given, the last two are re-solved.
    """
    said: dict[str, Any] = {}
    for part in text.split(":")[1:]:
        key, _, value = part.partition("=")
        try:
            said[key] = parsed(ResolveConfig, key, value.replace("+", ","))
        except (KeyError, ValueError):
            keys = ", ".join(one.name for one in fields(ResolveConfig))
            raise PlayError(
                f"{part!r} of {text!r} is no setting: use KEY=VALUE with a key of {keys}, such as rounds=turn+river or "
                "iterations=100"
            ) from None
    if "seconds" in said or "iterations" in said:  # either limit replaces both limits of the run
        settings = replace(settings, seconds=0.0, iterations=0)
    return replace(replace(settings, rounds=settings.rounds or game.rules.round_names[1:][-2:]), **said)


def _portfolio(spec: str) -> Portfolio:
    """Return a portfolio of agents, whose names are separated by commas. Parts such as ``window=200`` are settings."""
    components: list[PolicyAgent] = []
    settings: dict[str, Any] = {}
    for part in filter(None, spec.removeprefix(PORTFOLIO).split(",")):
        key, _, value = part.partition("=")
        try:
            if key in _SETTINGS:
                settings[key] = _SETTINGS[key](value)
            else:
                components.append(require_policy(load_agent(part)))
        except ValueError:
            raise PlayError(f"{part!r} of {spec} is no number: use a number, such as {key}=200") from None
    _require_one_game(spec, components)
    called = ",".join(agent.name for agent in components)
    return Portfolio(f"portfolio({called})", tuple(components), **settings)


def _seated(spec: str) -> SeatedAgent:
    """Return an agent that plays a different agent in each seat, from two names separated by a comma."""
    players = [load_agent(part) for part in filter(None, spec.removeprefix(SEATS).split(","))]
    if len(players) != 2:
        raise PlayError(f"{spec} has {len(players)} players: use two, for the first and the second seat")
    first, second = players
    for player in players:
        if isinstance(player, RememberingAgent):
            raise PlayError(f"{player.name} remembers earlier hands, but would see only those of its seat: use a run")
    return SeatedAgent(f"seats({first.name},{second.name})", (first, second), _require_one_game(spec, players))


def _require_one_game(spec: str, components: Sequence[Agent]) -> Holdem | None:
    """Return the game that all agents have in common; None if they play any game.

    Raises PlayError if their games differ.
    """
    games = [game for agent in components if (game := own_game(agent))]
    for game in games:
        if game.rules != games[0].rules:
            raise PlayError(f"components of {spec} play different games: {games[0].name} and {game.name}")
    return games[0] if games else None


def _own_agent(file: Path, name: str) -> Agent:
    """Return an agent made from a class in the user's Python file."""
    if not file.is_file():
        raise PlayError(f"there is no file {file}: use a Python file and a class in it, such as my_agent.py:MyAgent")
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
            f"{name} of {file} cannot be created ({type(error).__name__}: {error}): it is called without arguments"
        ) from error
    if not isinstance(getattr(agent, "name", None), str) or not callable(getattr(agent, "act", None)):
        raise PlayError(
            f"{name} of {file} is no agent: it needs a `name`, which is text, and a method `act(observation)`"
        )
    if callable(getattr(with_current_names(agent), "observe_hand", None)) and not isinstance(agent, RememberingAgent):
        raise PlayError(
            f"{name} of {file} has `observe_hand`, but no method `begin(game)`: add one that returns the player of a "
            "match"
        )
    return agent


@cache
def _module(file: Path) -> ModuleType:
    """Import a Python file as a module, once per process. The file may import other files in its folder."""
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
        raise PlayError(f"{file} cannot be run ({type(error).__name__}: {error}): correct it first") from error
    return module
