"""Arrays of walks over a public tree with vectors of hands: the tree, tables of strategies, and scratch memory."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.equity_kernels import HandList, Ranking, Sides
from kilt.cards.hands_kernels import HandTables

Table: TypeAlias = npt.NDArray[np.floating[Any]]  # over (board, row) × hand, or as a `TableLayout` says
Flags: TypeAlias = npt.NDArray[np.bool_]
Hand: TypeAlias = np.uint64  # unsigned: for signed numbers the compiler adds tests, and uses no wide registers

DECISION, REVEAL, FOLD, SHOWDOWN, CALL_BLUFF = 0, 1, 2, 3, 4  # kinds of nodes
CONTINUED = -1  # a leaf where the game goes on, which is worth what is known for each pair of hands
FOLLOW, RESPOND, ANSWER = 0, 1, 2  # what the player of a walk does; ANSWER is to respond and to write the response down


class TableLayout(NamedTuple):
    """Where the numbers of a table stand.

    The identity layout has them over (board, row) × hand, with a row for each action of each decision. A player with a
    card abstraction has them over row × bucket: boards share their rows, and hands of a bucket their column.
    """

    rows: npt.NDArray[np.int32]  # [round] from one board to the next; 0 where boards share their rows
    start: IntArray  # [round + 1] where the rows of a round begin
    bucket: npt.NDArray[np.int32]  # [board, hand] the column; empty in the identity layout
    given: Flags  # [row] whether the strategy of the decision that begins there is given; empty where none is
    # Whether columns of last boards are the actor's hands that are apart there, weakest first: see `apart`.
    apart: bool = False


class TableRows(Protocol):
    """Rows of a table over (board, row) × hand: an array, in memory or mapped, or what unpacks them from a file."""

    def __getitem__(self, rows: slice, /) -> Table:
        """Those of one decision on one board."""


class Policy(NamedTuple):
    """A player's strategy: entries of a decision are in proportion to its probabilities, negative ones count as 0."""

    layout: TableLayout
    table: Table


class Nodes(NamedTuple):
    """Public actions in blocks: all that follows the opening of a round up to its end."""

    kind: ByteArray  # [node]
    actor: ByteArray  # [node]
    first_child: npt.NDArray[np.int32]  # [node]
    children: npt.NDArray[np.int32]  # [node]
    row: npt.NDArray[np.int32]  # [node] of its first action among the rows of its block; CONTINUED: its pair values
    place: npt.NDArray[np.int32]  # [node] in the workspace; the blocks of the last round share theirs
    # [player, node] chips that a player loses at a showdown; after a fold, what they win; CONTINUED: what pair values
    # are multiplied by
    stake: FloatArray
    extra: FloatArray  # [player, node] what they win at a showdown more than that; [player, 0] where nothing is tilted
    rake: FloatArray  # [node] chips that the house takes from whoever wins, half from each where they tie
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
    deck: HandList  # all private hands; not looked at where hands are no cards
    strengths: HandTables  # what hands are worth on a board
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
    renamed: npt.NDArray[np.int8]  # [permutation, card]
    chance: FloatArray  # [round] the probability of one of its boards, given both hands
    odds: FloatArray  # [round, hands that were drawn] that probability over the one with which a sampled walk draws it
    poker: bool  # whether hands are cards, which may be on the board or in the other hand
    hands: npt.NDArray[np.int32]  # [player] how many
    prior: FloatArray  # [player, hand] the reach with which a hand is dealt
    held: Flags  # [player, hand] whether the player may hold it at all
    rivals: float  # the prior reach of all hands that one hand may meet
    norm: float  # what sums of prior × value are multiplied by
    noise: float  # values that differ by less are equal but for rounding
    pair_values: npt.NDArray[np.float32]  # [leaf of kind CONTINUED by its row, hand of player 0, hand of player 1]


class Scope(NamedTuple):
    """What a walk covers, round by round: all boards and hands, or those that were drawn; and its part of the boards.

    A walk of several parts shares out the boards that follow the rounds of the trunk. One of 0 parts takes no boards
    after the trunk: it goes on from what others have found them to be worth.
    """

    board: IntArray  # [round] −1 for all
    suits: IntArray  # [round] the permutation that leads from hands of the round before to those of this one
    mine: IntArray  # [round, 2] hands of the player, from … to …, the latter excluded
    theirs: IntArray  # [round, 2] hands of the opponent
    reach: FloatArray  # [1] of a hand of the opponent that was drawn, when it is dealt; 0 where all have theirs
    chance: FloatArray  # [round] how much a board that was drawn counts
    part: int
    parts: int
    trunk: int  # rounds before the boards that parts share out: 1, or more where there is one board of each


class Visit(NamedTuple):
    """A visit of a walk to a board, before the boards that follow it or after them; to a last board it is both."""

    depth: int  # the round; −1 at the end of the walk
    board: int
    arriving: bool  # reach goes down
    leaving: bool  # values come up
    groups: int  # of hands with equal strength, on a last board
    # How many hands of the player it leaves, and of the opponent. On last boards: how many are on that side of `Sides`.
    mine: int
    theirs: int
    apart: bool  # whether vectors have only hands on last boards that are apart and may be held there, weakest first
    held: np.int64  # the cards of the board, as a set of bits
    weight: float  # the probability of the board, given both hands; sampled boards count by `Scope.chance`


class Vectors(NamedTuple):
    """What a walk knows of each public node: vectors over hands. Where a node's reach is its parent's, it is shared."""

    reach: FloatArray  # [place, hand] of the opponent
    source: IntArray  # [place] where its reach stands
    alive: Flags  # [place] whether the opponent reaches it at all
    value: FloatArray  # [place, hand] to the player, weighted by the opponent's reach
    scale: FloatArray  # [2, hand] scratch of `rule.match_columns`
    expanded: FloatArray  # [action, hand] scratch: rows of a table over buckets, expanded to hands
    # [place, hand] of an opponent with two strategies: the reach of the second, and what both reach together
    second: FloatArray
    blended: FloatArray


class ShowdownLanes(NamedTuple):
    """Scratch for `LANES` showdowns at a time: vectors over hands side by side."""

    source: IntArray  # [lane] where its reach stands
    wanted: IntArray  # [lane] where that of the leaves to come does
    ready: IntArray  # [1] how many lanes hold what is good for all of this board
    reach: FloatArray
    result: FloatArray
    whole: FloatArray
    tied: FloatArray
    cards: FloatArray


class Workspace(NamedTuple):
    """Scratch memory of one walk."""

    vectors: Vectors
    board: IntArray  # [round] where the walk is
    following: IntArray  # [round] the board that comes next after it
    weight: FloatArray  # [round] of the board: see `Visit`
    cards: IntArray  # of the board
    order: npt.NDArray[np.uint16]  # the hands that the board leaves
    ranking: Ranking
    sides: Sides
    lanes: ShowdownLanes
