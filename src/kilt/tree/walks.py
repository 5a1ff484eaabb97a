"""Specify passes over a public tree: what they sample, and whose values they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kilt.arrays import FloatArray
from kilt.tree.vector_arrays import Scope, Table, TableLayout, Workspace

# A compiled pass without its tables. Arguments: its scope, its workspace, the values that parts of it exchange
# [chance node of the first round, hand], and its result [hand].
CompiledWalk: TypeAlias = Callable[[Scope, Workspace, FloatArray, FloatArray], None]


class Scheme(NamedTuple):
    """What each CFR iteration samples: nothing, boards, or also one or both players' hands."""

    boards: bool
    mine: bool = False
    theirs: bool = False
    rounds: int | None = None  # rounds after the first with a sampled board; later rounds have all boards


FULL_WIDTH = Scheme(boards=False)


class Walk(NamedTuple):
    """A request for a player's winnings, by a strategy or a best response.

    Tables have rows by board and action and columns by hand, unless a layout says otherwise.
    """

    player: int
    tasks: tuple[int, ...]  # for each round, or one for all: FOLLOW, RESPOND or ANSWER
    own: Table  # the player's strategy; ANSWER writes the response to it
    theirs: Table
    own_layout: TableLayout | None = None
    their_layout: TableLayout | None = None


class BlockValues(NamedTuple):
    """The opponent's reach probabilities and a player's values at all nodes of a betting round.

    They are for one board.

    The arrays have the shape (nodes of the betting round, hands).
    """

    reach: FloatArray  # of the opponent; includes hands that hold a card of the board
    value: FloatArray  # of the player in chips, weighted by the opponent's reach; 0 if the reach is 0
