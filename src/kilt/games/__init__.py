"""Games: the rules of poker and Bluff, which ship with kilt or are read from game definition files.

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
from kilt.games.gamedef import GameDef, describe_game, load_definition, shipped_definitions
from kilt.games.holdem import Holdem, Poker
from kilt.games.stud import Stud

_BLUFFS = {f"bluff-{a}-{b}": (a, b) for a, b in ((1, 1), (2, 1), (2, 2))}


def ready_made_games() -> dict[str, str]:
    """Return the names of the games that ship with kilt, with one-line descriptions."""
    dice = {name: f"Bluff (liar's dice) with {a} and {b} dice" for name, (a, b) in _BLUFFS.items()}
    return {name: describe_game(name) for name in shipped_definitions()} | dice


@file_errors()
def load_game(name: str | Path) -> Game:
    """Load a game by name, such as ``"leduc"``, or from an ACPC game definition file.

    Parameters
    ----------
    name : str or Path
        One of `ready_made_games` (``kilt game list``), or the path of a game definition.

    Returns
    -------
    Game
        The rules: a `Holdem`, a `Stud` if players get private cards after round 1, or a `Bluff`.

    Raises
    ------
    GameError
        The name is unknown, or the definition cannot be read.
    """
    if str(name) in _BLUFFS:
        return Bluff(_BLUFFS[str(name)])
    if str(name) in shipped_definitions():
        return poker(load_definition(str(name)), str(name))
    if str(name).startswith("spot "):
        raise GameError(f"{name} is only a part of a game: use the run of a whole game")
    if not Path(name).exists():
        if len(Path(name).parts) > 1:
            raise GameError(f"{name} does not exist: check the path, or use the name of a ready-made game")
        raise GameError(
            f"unknown game {str(name)!r}: use a game definition file or one of {', '.join(ready_made_games())}"
        )
    return poker(GameDef.read(name), Path(name).stem)


def poker(rules: GameDef, name: str) -> Poker:
    """Create a poker game from its rules, either a `Stud` or a `Holdem`.

    It is a `Stud` if the rules deal private cards after round 1.
    """
    return Stud(rules, name) if rules.stud else Holdem(rules, name)
