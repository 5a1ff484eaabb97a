"""Players by name, as commands are given them.

>>> from kilt.games import load_game
>>> agent, game = load_player("always-call", load_holdem("leduc"))
>>> agent.name, game.name
('always-call', 'leduc')
"""

from __future__ import annotations

from pathlib import Path

from kilt.errors import PlayError
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.play.agent import BASELINES, Agent
from kilt.play.blueprint import BlueprintAgent
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import rule_named
from kilt.strategy.translate import mapping_named


def load_player(spec: str, game: Holdem | None = None) -> tuple[Agent, Holdem]:
    """A player and the game it plays. A baseline plays any game, so one must be given.

    Anything else is a folder with a blueprint, as `kilt solve CONFIG` and `kilt export` make them; ``RUN@RULE`` plays
    it with another post-processing than the run's own, ``RUN@RULE@TRANSLATION`` with another translation too.
    """
    if spec in BASELINES:
        if game is None:
            raise PlayError(f"{spec} plays any poker game: say which one with --game")
        return BASELINES[spec], game
    parts = spec.split("@")
    place, rest = next(
        (("@".join(parts[:n]), parts[n:]) for n in range(len(parts), 0, -1) if Path("@".join(parts[:n])).exists()),
        ("", []),
    )
    if not place or len(rest) > 2:
        raise PlayError(f"unknown player {spec!r}: use the folder of a run, or one of {', '.join(BASELINES)}")
    blueprint = Blueprint.load(place)
    rule, mapping = (*rest, "", "")[:2]
    said = blueprint.figures.get("agent", {})
    agent = BlueprintAgent(
        spec.rstrip("/"),
        blueprint,
        rule_named(rule or said.get("post", "none")),
        mapping_named(mapping or said.get("translation", "pseudo-harmonic")),
    )
    if game is not None and game.rules != blueprint.game.rules:
        raise PlayError(
            f"{place} plays {blueprint.game.name} with {blueprint.game.rules.stacks[0]:,} chips, and this is "
            f"{game.name}: use the game it was made for"
        )
    return agent, blueprint.game


def load_agent(spec: str) -> Agent:
    """A player who knows which game it plays: the folder of a run."""
    return load_player(spec)[0]


def load_holdem(name: str | Path) -> Holdem:
    """A poker game by name or file: agents and the ACPC know no other kind."""
    game = load_game(name)
    if not isinstance(game, Holdem):
        raise PlayError(f"{name} is no poker: agents play games with cards and bets, see `kilt game list`")
    return game
