"""Against whom players learn, and what is drawn for it.

==========  ========================================================================================================
`scheme`    the boards and hands that a walk covers: all of them, or drawn (Johanson, Bard, Lanctot, Gibson and
            Bowling 2012; [Johanson16 algorithm 1]). Public chance sampling ``pcs`` draws boards; ``opcs`` the
            opponent's hand too, ``spcs`` the own hand, ``cs`` both
`opponent`  ``abstract``: one with the same view of the cards, the other player of self-play. ``real``: one who learns
            too, and sees all cards. ``response``: a best response, as in CFR-BR [Johanson16 chapter 4], which sees all
            cards; with a trunk, a hybrid that learns in the first rounds and responds after them [Johanson16 §4.3]
==========  ========================================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kilt.arrays import IntArray
from kilt.errors import GameError
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import SELF_PLAY, Turn
from kilt.strategy.model import DecisionLayout
from kilt.tree.betting import on_menu
from kilt.tree.vector import FULL_WIDTH, Scheme, VectorGame
from kilt.tree.vector_arrays import ANSWER, FOLLOW, TableLayout

SCHEMES = {
    "cs": Scheme(boards=True, mine=True, theirs=True),
    "opcs": Scheme(boards=True, theirs=True),
    "spcs": Scheme(boards=True, mine=True),
    "pcs": Scheme(boards=True),
}
OPPONENTS = ABSTRACT, REAL, RESPONSE = "abstract", "real", "response"


class Opponent(NamedTuple):
    """Whom players learn against: an opponent who sees all cards has a table, and turns of its own."""

    name: str  # one of `OPPONENTS`
    tasks: IntArray  # [round] FOLLOW to learn, ANSWER to respond
    scheme: Scheme
    layout: TableLayout
    groups: tuple[tuple[Turn, ...], ...]  # the turns of an iteration, for each seat where seats are apart
    stride: int  # numbers of walks in an iteration: walks with the same number draw the same boards

    @classmethod
    def of(cls, game: VectorGame, name: str, scheme: str | Scheme, trunk: int, *, hands: bool) -> Opponent:
        """An opponent by name.

        Parameters
        ----------
        game : VectorGame
            The game as it is.
        name : str
            One of `OPPONENTS`.
        scheme : str or Scheme
            What is drawn for a walk, a name of `SCHEMES`; a best response draws boards as its trunk needs them.
        trunk : int
            Number of rounds in which a best response learns.
        hands : bool
            Whether the player sees all hands too, not buckets of them.
        """
        for what, given, known in (("sampling scheme", scheme, SCHEMES), ("opponent", name, OPPONENTS)):
            if isinstance(given, str) and given not in known:
                raise GameError(f"unknown {what} {given!r}: use one of {', '.join(known)}")
        drawn = SCHEMES[scheme] if isinstance(scheme, str) else scheme
        if name == ABSTRACT:
            return cls(name, _learning(game), drawn, game.layouts[0], (SELF_PLAY,), 2)
        # An opponent who is not the other player learns first, in each seat; runs that can still be resumed have had
        # both seats respond on the same boards.
        alike = name == RESPONSE and hands
        offsets = (0, 0) if alike else (0, 1)
        groups = tuple(
            (Turn(1 - seat, 2, seat, 1, offsets[seat]), Turn(seat, seat, 2, 0, offsets[seat])) for seat in (0, 1)
        )
        if name == REAL:
            return cls(name, _learning(game), drawn, game.layouts[0], groups, 2)
        return cls(name, *_hybrid(game, trunk), groups, 1 if alike else 2)

    @property
    def apart(self) -> bool:
        """Whether this is not the other player."""
        return self.name != ABSTRACT


def _learning(game: VectorGame) -> IntArray:
    return np.full(len(game.tree.rows), FOLLOW)


def _hybrid(game: VectorGame, trunk: int) -> tuple[IntArray, Scheme, TableLayout]:
    """What the opponent of CFR-BR does, draws and keeps.

    It learns in the first `trunk` rounds and responds in those after them [Johanson16 §4.3]. The boards that lead out
    of the trunk are drawn, so that an iteration needs the responses on one of them alone. Where the last round is all
    there is after the trunk, these are all that is kept. A trunk of no rounds is a best response everywhere, with all
    boards.
    """
    tree, rounds, identity = game.tree, len(game.tree.rows), game.layouts[0]
    if not 0 <= trunk < rounds:
        raise GameError(f"the trunk is {trunk} rounds; {game.game.name} has {rounds}: give 0 to {rounds - 1}")
    tasks = np.repeat([FOLLOW, ANSWER], [trunk, rounds - trunk])
    if not trunk:
        return tasks, FULL_WIDTH, identity
    rows, start = tree.rows.copy(), tree.table_start.copy()
    if trunk == rounds - 1:
        start[-1], rows[-1] = start[-2] + rows[-1], 0
    return tasks, Scheme(boards=True, rounds=trunk), TableLayout(rows, start, identity.bucket, identity.given)


def decisions_of(game: VectorGame | BucketedGame, player: int) -> IntArray:
    """[decision, 2] the first row and the number of actions of a player's decisions, in tables of a game."""
    if isinstance(game, BucketedGame):
        starts, vectors = game.layouts[0].start, game.game
        found = [
            (int(starts[r]) + row, len(on_menu(position, vectors.menu)))
            for r, row, position in vectors.decisions()
            if position.actor == player
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 2)
    layout = DecisionLayout.of_vectors(game)
    every = np.stack([layout.start[:-1], layout.actions], axis=1).astype(np.int64)
    return np.ascontiguousarray(every[layout.actor == player])
