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


def load_player(spec: str, game: Holdem | None = None) -> tuple[Agent, Holdem]:
    """A player and the game it plays. A baseline plays any game, so one must be given."""
    if spec not in BASELINES:
        raise PlayError(f"unknown player {spec!r}: use one of {', '.join(BASELINES)}")
    if game is None:
        raise PlayError(f"{spec} plays any poker game: say which one with --game")
    return BASELINES[spec], game


def load_holdem(name: str | Path) -> Holdem:
    """A poker game by name or file: agents and the ACPC know no other kind."""
    game = load_game(name)
    if not isinstance(game, Holdem):
        raise PlayError(f"{name} is no poker: agents play games with cards and bets, see `kilt game list`")
    return game
