"""Tilted games: poker games that pay some results more or less, for other styles of play [Johanson16 table 2.3].

A tilt is four percentages, by which a player's payoff grows if they win a showdown, lose one, fold, or make the
opponent fold. With 7, 0, 0, 7, a winner gets 7% more; with 0, −7, 0, 0, lost showdowns cost less. A strategy that was
solved with a tilt plays the real game and is evaluated with the real payoffs.

>>> from kilt.games import load_game
>>> game = tilt_game(load_game("kuhn"), (7, 0, 0, 7))
>>> game.payoffs(game.replay("rf"), (0, 1), ()), game.payoffs(game.replay("rc"), (0, 1), ())
((1.07, -1.0), (-2.0, 2.14))
>>> tilt_game(load_game("kuhn"), (0, 0, 0, 0)) == load_game("kuhn") == game.real
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError, shortened
from kilt.games.game import Board, Game, Hands, Position
from kilt.games.holdem import Betting, Holdem

CASES = WINS, LOSES, FOLDS, TAKES = range(4)  # how a hand ends for a player; TAKES: the opponent folds
LEAST = -100  # percent: a payoff does not change its sign

REMEDY = (
    f"give four percentages above {LEAST}, for winning a showdown, losing one, folding, and the opponent's folding, "
    "such as 7,0,0,7, or eight where the players differ"
)


@dataclass(frozen=True)
class TiltedGame(Holdem):
    """A poker game with payoffs changed by percentages, for each player and each kind of ending.

    The function `tilt_game` makes it.

    Attributes
    ----------
    tilt : tuple of tuple of float
        Percentages by case, of player 0 and of player 1.
    """

    tilt: tuple[tuple[float, ...], tuple[float, ...]] = field(kw_only=True)

    @property
    def tilts(self) -> FloatArray:
        """The relative change of each payoff, for each player and each way in which a hand can end.

        These are relative changes (factor minus 1), with the shape (2, 4).
        """
        return np.array(self.tilt) / 100

    @property
    def real(self) -> Holdem:
        """Return the game with its original payoffs."""
        return Holdem(self.rules, self.name)

    @property
    def definition(self) -> str:
        """The complete rules and percentages as text.

        Games with equal texts are equal.
        """
        return f"{self.rules}tilt = {self.tilt}"

    def payoffs(self, position: Position, hands: Hands, board: Board) -> tuple[float, float]:
        """Return each player's winnings at the end of a hand in chips, with changed payoffs."""
        assert isinstance(position, Betting)
        cases = (LOSES, WINS) if position.folded is None else (FOLDS, TAKES)
        first, second = (
            won * (1 + self.tilts[player, cases[won > 0]])
            for player, won in enumerate(super().payoffs(position, hands, board))
        )
        return float(first), float(second)


def tilt_game(game: Game, tilt: Sequence[float]) -> Game:
    """Return a copy of a game that raises or lowers some payoffs by percentages.

    Parameters
    ----------
    game : Game
        A game of the hold'em family.
    tilt : sequence of float
        Percentages for a player who wins a showdown, loses one, folds, and whose opponent folds. Eight numbers: those
        of player 0, then those of player 1. Empty: no tilt.

    Returns
    -------
    Game
        The game itself if all percentages are 0.

    Raises
    ------
    GameError
        The percentages are invalid, or the game is a subgame or not of the hold'em family.
    """
    numbers = tuple(float(percent) for percent in tilt) or (0.0,) * len(CASES)
    sound = all(isfinite(percent) and percent > LEAST for percent in numbers)
    if len(numbers) not in (len(CASES), 2 * len(CASES)) or not sound:
        raise GameError(f"the tilt is {', '.join(f'{percent:g}' for percent in numbers)}: {REMEDY}")
    if not any(numbers):
        return game
    if type(game) is not Holdem:
        raise GameError(f"tilts apply to whole games of poker, not to {game.name}: remove the tilt")
    return TiltedGame(game.rules, game.name, tilt=(numbers[:4], numbers[-4:]))


def parse_tilt(text: str) -> tuple[float, ...]:
    """Parse the four percentages of a tilted game from text, such as ``"7,0,0,7"``.

    >>> parse_tilt("7,0,0,7")
    (7.0, 0.0, 0.0, 7.0)
    """
    try:
        return tuple(float(word) for word in text.split(",")) if text else ()
    except ValueError:
        raise GameError(f"the tilt is {shortened(repr(text))}: {REMEDY}") from None
