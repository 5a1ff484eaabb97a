"""Games: rules as code and as data.

>>> load_game("leduc").name
'leduc'
>>> load_game("bluff-1-1").hands(0)
['1', '2', '3', '4', '5', '*']
"""

from __future__ import annotations

from pathlib import Path

from kilt.errors import GameError, file_errors
from kilt.games.bluff import Bluff
from kilt.games.game import Game
from kilt.games.gamedef import GameDef, describe, library, ready_made
from kilt.games.holdem import Holdem, Poker
from kilt.games.stud import Stud

_BLUFFS = {f"bluff-{a}-{b}": (a, b) for a, b in ((1, 1), (2, 1), (2, 2))}


def ready_made_games() -> dict[str, str]:
    """Names of the games that ship with kilt, each with a one-line description."""
    dice = {name: f"Bluff (liar's dice) with {a} and {b} dice" for name, (a, b) in _BLUFFS.items()}
    return {name: describe(name) for name in library()} | dice


@file_errors()
def load_game(name: str | Path) -> Game:
    """Return a ready-made game by its name, or read one from a file in ACPC format.

    Parameters
    ----------
    name : str or Path
        One of `ready_made_games` (``kilt game list``), or the path of a game definition.

    Returns
    -------
    Game
        The rules: a `Holdem` for games of poker, or a `Stud` if players get private cards after round 1.

    Raises
    ------
    GameError
        The name is unknown, or the definition cannot be read.
    """
    if str(name) in _BLUFFS:
        return Bluff(_BLUFFS[str(name)])
    if str(name) in library():
        return poker(ready_made(str(name)), str(name))
    if not Path(name).exists():
        raise GameError(
            f"unknown game {str(name)!r}: use a game definition file or one of {', '.join(ready_made_games())}"
        )
    return poker(GameDef.read(name), Path(name).stem)


def poker(rules: GameDef, name: str) -> Poker:
    """Return the game of poker with these rules: `Stud` if they deal private cards after round 1, else `Holdem`."""
    return Stud(rules, name) if rules.stud else Holdem(rules, name)
