"""The public tree and the scratch of its walks, as `vector_kernels` and its neighbours see them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.equity_kernels import Ranking

Table: TypeAlias = npt.NDArray[np.floating[Any]]  # over (board, row) × hand, or as a `TableLayout` says
Flags: TypeAlias = npt.NDArray[np.bool_]
Hand: TypeAlias = np.uint64  # unsigned: for signed numbers the compiler adds tests, and uses no wide registers

DECISION, REVEAL, FOLD, SHOWDOWN, CALL_BLUFF = 0, 1, 2, 3, 4  # kinds of nodes
FOLLOW, RESPOND, LEARN, ANSWER = 0, 1, 2, 3  # what the player does; ANSWER is to respond and to write it down


class TableLayout(NamedTuple):
    """How a table is laid out: over (board, row) × hand or, for players who see buckets only, over row × bucket."""

    rows: npt.NDArray[np.int32]  # [round] from one board to the next; 0 where boards share their rows
    start: IntArray  # [round + 1] where the rows of a round begin
    bucket: npt.NDArray[np.int32]  # [board, hand] its column; empty where each hand has its own


class Nodes(NamedTuple):
    """Public actions in blocks: all that follows the opening of a round up to its end."""

    kind: ByteArray  # [node]
    actor: ByteArray  # [node]
    first_child: npt.NDArray[np.int32]  # [node]
    children: npt.NDArray[np.int32]  # [node]
    row: npt.NDArray[np.int32]  # [node] of its first action among the rows of its block
    place: npt.NDArray[np.int32]  # [node] in scratch; the blocks of the last round share theirs
    stake: FloatArray  # [node] chips that change hands at a leaf; after a fold, what player 0 wins
    face: npt.NDArray[np.int32]  # [node] of a called bid
    block: npt.NDArray[np.int32]  # [block + 1] where it begins


class Dice(NamedTuple):
    """What Bluff's leaves pay."""

    matching: ByteArray  # [player, face, hand] dice that match
    called: FloatArray  # [player, node of CALL_BLUFF by its row, own matches, the opponent's] to the player


class VectorTree(NamedTuple):
    """A public tree as kernels walk it.

    A chance node is an entry of the next round: it opens a block, for which it has rows of the tables. Boards are
    numbered through all rounds.
    """

    nodes: Nodes
    dice: Dice
    entry_start: npt.NDArray[np.int32]  # [round + 1] where the entries of a round begin
    entry_node: npt.NDArray[np.int32]  # [entry] the chance node, −1 where the game begins
    entry_block: npt.NDArray[np.int32]  # [entry] what it opens
    entry_row: npt.NDArray[np.int32]  # [entry] of its block among the rows of the round
    rows: npt.NDArray[np.int32]  # [round] from one board to the next in tables; 0 where boards share their rows
    table_start: IntArray  # [round + 1] where the rows of a round begin in tables over (board, row)
    board_start: IntArray  # [round + 1] number of its first board
    board: ByteArray  # [board, card]
    board_size: npt.NDArray[np.int32]  # [round]
    first_board: IntArray  # [board + 1] of the round after: its extensions
    weight: npt.NDArray[np.int32]  # [board] how many it stands for
    weight_before: IntArray  # [board + 1] of all boards with lower numbers
    symmetry: npt.NDArray[np.int32]  # [board] the suit permutations that leave it as it is
    moved: npt.NDArray[np.int32]  # [permutation, hand]
    chance: FloatArray  # [round] the probability of one of its boards, given both hands
    odds: FloatArray  # [round, hands that were drawn] the same over the probability with which a walk draws it
    poker: bool  # whether hands are cards, which may be on the board or in the other hand
    hands: npt.NDArray[np.int32]  # [player] how many
    prior: FloatArray  # [player, hand] the reach with which a hand is dealt
    rivals: float  # the prior reach of all hands that one hand may meet
    norm: float  # what sums of prior × value are multiplied by
    noise: float  # values that differ by less are equal but for rounding


class Draw(NamedTuple):
    """What a walk looks at, round by round: all of it, or what was drawn."""

    board: IntArray  # [round] −1 for all
    suits: IntArray  # [round] the permutation that leads from hands of the round before to those of this one
    mine: IntArray  # [round, 2] the hands from … to …, the latter excluded
    theirs: IntArray  # [round, 2]
    reach: FloatArray  # [1] of a hand of theirs that was drawn, when it is dealt; 0 where all have theirs
    chance: FloatArray  # [round] how much a board that was drawn counts


class Workspace(NamedTuple):
    """Scratch of one walk."""

    reach: FloatArray  # [place, hand] of the opponent
    source: IntArray  # [place] where its reach stands
    alive: Flags  # [place] whether the opponent reaches it at all
    value: FloatArray  # [place, hand] to the player
    shares: FloatArray  # [2, hand]
    seen: FloatArray  # [action, hand] rows of a table over buckets, spread over hands
    order: npt.NDArray[np.uint16]  # the hands that the board leaves
    ranking: Ranking
    lane_source: IntArray  # [lane] where its reach stands
    lane_wanted: IntArray  # [lane] where that of the leaves to come does
    lanes_ready: IntArray  # [1] how many lanes hold what is good for all of this board
    lane_reach: FloatArray  # `LANES` vectors side by side, like those that follow
    lane_result: FloatArray
    lane_whole: FloatArray
    lane_cards: FloatArray
