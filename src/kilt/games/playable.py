"""Load poker games that agents can play, whose cards after the first round are all public."""

from __future__ import annotations

from pathlib import Path

from kilt.errors import PlayError
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.games.stud import Stud


def load_holdem(name: str | Path) -> Holdem:
    """Load a poker game by name or from a file.

    Raises PlayError if agents cannot play it.
    """
    game = load_game(name)
    if isinstance(game, Stud):
        raise PlayError(
            f"{name} is stud: agents play games whose later cards are all public; solve it and evaluate the strategy"
        )
    if not isinstance(game, Holdem):
        raise PlayError(f"{name} is not poker: agents play games with cards and bets, such as leduc")
    return game
