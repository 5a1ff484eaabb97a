"""The opponents against which players learn, and the schemes for sampling boards and hands.

==========  ========================================================================================================
`scheme`    the boards and hands that a walk covers: all, or sampled ones (Johanson, Bard, Lanctot, Gibson and Bowling
            2012; [Johanson16 algorithm 1]). Public chance sampling ``pcs`` samples boards; ``opcs`` also the
            opponent's hand, ``spcs`` also the player's hand, ``cs`` both hands
`opponent`  ``abstract``: the other player of self-play, with the same view of the cards. ``real``: an opponent who also
            learns, and sees all cards. ``response``: a best response that sees all cards, as in CFR-BR [Johanson16
            chapter 4]; with a trunk, a hybrid that learns in the first rounds and responds after them [Johanson16 §4.3]
==========  ========================================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, IntArray
from kilt.errors import GameError
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import SELF_PLAY, Turn
from kilt.solve.learning_kernels import PlayerTables
from kilt.solve.problem import float_type
from kilt.strategy.model import DecisionLayout
from kilt.tree.betting import on_menu
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import ANSWER, FOLLOW, Table, TableLayout
from kilt.tree.walks import FULL_WIDTH, Scheme

SCHEMES = {
    "cs": Scheme(boards=True, mine=True, theirs=True),
    "opcs": Scheme(boards=True, theirs=True),
    "spcs": Scheme(boards=True, mine=True),
    "pcs": Scheme(boards=True),
}
OPPONENTS = ABSTRACT, REAL, RESPONSE = "abstract", "real", "response"


class Opponent(NamedTuple):
    """The opponent against which players learn: the other player, or one who sees all cards."""

    name: str  # one of `OPPONENTS`
    tasks: IntArray  # [round] FOLLOW: learns, ANSWER: responds
    scheme: Scheme
    layout: TableLayout
    groups: tuple[tuple[Turn, ...], ...]  # the turns of an iteration, grouped by seat if seats learn independently
    stride: int  # pass numbers per iteration; passes with the same number sample the same boards

    @classmethod
    def named(cls, game: VectorGame, name: str, scheme: str | Scheme, trunk: int, *, hands: bool) -> Opponent:
        """Create the opponent with the given name, against whom players learn.

        The names are those of `OPPONENTS`: the other player, a learner who sees all cards, or a best response.

        Parameters
        ----------
        game : VectorGame
            The unabstracted game.
        name : str
            One of `OPPONENTS`.
        scheme : str or Scheme
            What a pass samples, a name in `SCHEMES`; a best response samples boards as its trunk needs them.
        trunk : int
            Number of rounds in which a best response learns.
        hands : bool
            Whether the player also sees all hands, rather than buckets.

        Raises
        ------
        GameError
            If a name is unknown, or the trunk is too long.
        """
        for what, given, known in (("sampling scheme", scheme, SCHEMES), ("opponent", name, OPPONENTS)):
            if isinstance(given, str) and given not in known:
                raise GameError(f"unknown {what} {given!r}: use one of {', '.join(known)}")
        drawn = SCHEMES[scheme] if isinstance(scheme, str) else scheme
        if name == ABSTRACT:
            return cls(name, _learning(game), drawn, game.layouts[0], (SELF_PLAY,), 2)
        # An opponent other than the second player learns first, in each seat. In runs of earlier versions, which can
        # still be resumed, both seats responded on the same boards.
        alike = name == RESPONSE and hands
        groups = turns_against_opponent(0, 0 if alike else 1)
        if name == REAL:
            return cls(name, _learning(game), drawn, game.layouts[0], groups, 2)
        return cls(name, *_hybrid(game, trunk), groups, 1 if alike else 2)

    @property
    def is_separate(self) -> bool:
        """Whether players learn against a special opponent instead of each other."""
        return self.name != ABSTRACT

    def tables(self, hands: int, precision: npt.DTypeLike, *, predictive: bool) -> PlayerTables:
        """Return empty tables for an opponent who sees all cards, with one column per hand.

        They hold regrets, or 1 at the action of a best response. `precision` is that of the players' tables.
        """
        rows = int(self.layout.start[-1]) if self.is_separate else 0
        other: Table = np.zeros((rows, hands), np.float32 if precision == np.float32 else float_type(rows * hands))
        return PlayerTables.of(self.layout, (np.zeros_like(other) if predictive else other, other, other), False)

    def kept_tables(self, *, predictive: bool, averaging: bool = True) -> tuple[str, ...]:
        """Return the names of CFR's tables in a checkpoint, for the CPU and the GPU."""
        apart = self.is_separate
        return (
            "regret",
            *["next"] * predictive,
            *["total"] * averaging,
            *["other"] * apart,
            *["other_next"] * (apart and predictive),
        )


def turns_against_opponent(*offsets: int) -> tuple[tuple[Turn, Turn], ...]:
    """Return the turns of each seat in an iteration against an opponent who sees all cards.

    `offsets` are the numbers of each seat's passes within the iteration, for sampling.
    """
    return tuple((Turn(1 - seat, 2, seat, 1, at), Turn(seat, seat, 2, 0, at)) for seat, at in enumerate(offsets))


def with_present_names(state: dict[str, Array], seed: Array) -> dict[str, Array]:
    """Return a checkpoint's arrays by their present names, even if an older version saved it."""
    older = {"seed": seed, **({"other": state["response"]} if "response" in state else {})}
    return {**older, **state}


def _learning(game: VectorGame) -> IntArray:
    return np.full(len(game.tree.rows), FOLLOW)


def _hybrid(game: VectorGame, trunk: int) -> tuple[IntArray, Scheme, TableLayout]:
    """Return what the opponent of CFR-BR does in each round, what is sampled, and how its table is laid out.

    It learns in the first `trunk` rounds and responds in later ones [Johanson16 §4.3]. The boards at the end of the
    trunk are sampled, so that an iteration needs the responses on one of them only. If only the last round follows the
    trunk, the table stores nothing but these responses. With a trunk of no rounds, the opponent responds everywhere, on
    all boards.
    """
    tree, rounds, identity = game.tree, len(game.tree.rows), game.layouts[0]
    if not 0 <= trunk < rounds:
        raise GameError(f"the trunk is {trunk} rounds; {game.game.name} has {rounds}: use 0 to {rounds - 1}")
    tasks = np.repeat([FOLLOW, ANSWER], [trunk, rounds - trunk])
    if not trunk:
        return tasks, FULL_WIDTH, identity
    rows, start = tree.rows.copy(), tree.table_start.copy()
    if trunk == rounds - 1:
        start[-1], rows[-1] = start[-2] + rows[-1], 0
    return tasks, Scheme(boards=True, rounds=trunk), TableLayout(rows, start, identity.bucket, identity.given)


def decisions_of(game: VectorGame | BucketedGame, player: int) -> IntArray:
    """Return where a strategy table stores each of a player's decisions, and their numbers of actions."""
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
