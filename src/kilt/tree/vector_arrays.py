"""Arrays for computations on public trees: nodes, strategy tables and scratch memory."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.equity_kernels import HandList, PlayerRankings, Ranking
from kilt.cards.hands_kernels import HandTables

Table: TypeAlias = npt.NDArray[np.floating[Any]]  # over (board, row) × hand, or as described by a `TableLayout`
Flags: TypeAlias = npt.NDArray[np.bool_]
Hand: TypeAlias = np.uint64  # unsigned: with signed indices the compiler adds checks, and does not vectorise

DECISION, REVEAL, FOLD, SHOWDOWN, CALL_BLUFF = 0, 1, 2, 3, 4  # kinds of nodes
CONTINUED = -1  # a leaf at which the game continues, with a known value for each pair of hands
FOLLOW, RESPOND, ANSWER = 0, 1, 2  # tasks of the player; ANSWER is RESPOND, and writes the response to the table


class TableLayout(NamedTuple):
    """The layout of a strategy table: the board and action of each row, and the hand of each column.

    The identity layout is over (board, row) × hand, with a row for each action of each decision. A player with a card
    abstraction has a table over row × bucket: boards share their rows, and hands of a bucket share a column.
    """

    rows: npt.NDArray[np.int32]  # [round] rows from one board to the next; 0 if boards share their rows
    start: IntArray  # [round + 1] first row
    bucket: npt.NDArray[np.int32]  # [board, hand] the column; empty in the identity layout
    given: Flags  # [row] whether the strategy of the decision with this first row is fixed; empty if none is
    # Whether columns on boards of the last round are the actor's distinct hands, weakest first: see `strength_order`.
    # Such a table has no empty columns: it is an array of one column, in which the number of a row is that of its
    # first entry.
    by_strength: bool = False
    hands: int = 0  # columns of earlier rounds in such a table
    # [board, 3] in such a table: first row in the identity layout, the player's first entry, the player's columns
    boards: IntArray = np.zeros((0, 3), dtype=np.int64)
    order: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)  # [row on a board] its number among its player's rows


class TableRows(Protocol):
    """The interface of strategy tables that return single rows from memory or a file."""

    def __getitem__(self, rows: slice, /) -> Table:
        """Return the rows of one decision on one board."""


class Policy(NamedTuple):
    """A player's strategy: a table of weights, with the layout of its rows and columns.

    Normalised per decision, weights are probabilities; negative weights count as 0.
    """

    layout: TableLayout
    table: Table


class ArrangedTable(NamedTuple):
    """A strategy table of both players, with a layout for each."""

    table: Table
    layouts: tuple[TableLayout, TableLayout]

    @classmethod
    def of(cls, table: Table, layouts: tuple[TableLayout, TableLayout]) -> ArrangedTable:
        """Return a table as passes read it, which depends on whether hands are sorted by strength."""
        return cls(table.reshape(-1, 1) if layouts[0].by_strength else table, layouts)


class Nodes(NamedTuple):
    """The nodes of a public tree as arrays.

    Nodes of one betting round, from its opening to its end, form a block.
    """

    kind: ByteArray  # [node]
    actor: ByteArray  # [node]
    first_child: npt.NDArray[np.int32]  # [node]
    children: npt.NDArray[np.int32]  # [node]
    row: npt.NDArray[np.int32]  # [node] row of its first action within the block; CONTINUED: index of its pair values
    place: npt.NDArray[np.int32]  # [node] index in the workspace; the blocks of the last round share theirs
    # [player, node] chips that a player loses at a showdown; after a fold, chips that the player wins; CONTINUED:
    # factor of the pair values
    stake: FloatArray
    extra: FloatArray  # [player, node] extra winnings at a showdown over `stake`; [player, 0] without tilts
    rake: FloatArray  # [node] rake in chips, paid by the winner, or half by each player in a split pot
    face: npt.NDArray[np.int32]  # [node] face of a called bid
    block: npt.NDArray[np.int32]  # [block + 1] first node


class Dice(NamedTuple):
    """The payoffs of Bluff after a call, and each hand's number of dice that match each bid."""

    matching: ByteArray  # [player, face, hand] dice that match
    called: FloatArray  # [player, node of CALL_BLUFF by its row, own matches, opponent's matches] payoff


class VectorTree(NamedTuple):
    """A game's public tree as arrays for compiled code.

    A chance node is called an *entry* of the next round: it opens a block of betting, which has separate table rows for
    each entry. Boards are numbered over all rounds.
    """

    nodes: Nodes
    dice: Dice
    deck: HandList  # all private hands; unused if hands are not cards
    strengths: HandTables  # hand strengths on a board
    entry_start: npt.NDArray[np.int32]  # [round + 1] first entry
    entry_node: npt.NDArray[np.int32]  # [entry] the chance node; −1 at the beginning of the game
    entry_block: npt.NDArray[np.int32]  # [entry] the block that it opens
    entry_row: npt.NDArray[np.int32]  # [entry] first row of its block within the round
    rows: npt.NDArray[np.int32]  # [round] rows from one board to the next in tables; 0 if boards share their rows
    table_start: IntArray  # [round + 1] first row in tables over (board, row)
    board_start: IntArray  # [round + 1] first board
    board: ByteArray  # [board, card]
    board_size: npt.NDArray[np.int32]  # [round]
    first_board: IntArray  # [board + 1] first of its extensions in the next round
    weight: npt.NDArray[np.int32]  # [board] number of boards that it represents
    weight_before: IntArray  # [board + 1] total weight of all boards with lower numbers
    symmetry: npt.NDArray[np.int32]  # [board] the suit permutations that map it to itself, as bits
    moved: npt.NDArray[np.int32]  # [permutation, hand]
    renamed: npt.NDArray[np.int8]  # [permutation, card]
    chance: FloatArray  # [round] the probability of one of its boards, given both hands
    odds: FloatArray  # [round, sampled hands] `chance` divided by the probability in a sampled pass
    poker: bool  # whether hands are cards, which may also be on the board or in the other hand
    hands: npt.NDArray[np.int32]  # [player] number of hands
    prior: FloatArray  # [player, hand] reach with which a hand begins the game
    held: Flags  # [player, hand] whether the player may hold it
    compatible_weight: float  # total prior reach of the hands that one hand may meet
    norm: float  # factor of sums of prior × value
    noise: float  # smaller differences of values are rounding errors
    # [leaf of kind CONTINUED by its row, hand of player 0, hand of player 1] values
    pair_values: npt.NDArray[np.float32]


class Scope(NamedTuple):
    """The boards and hands in one pass over the public tree: all of them, a sample, or a part.

    A pass in several parts divides the boards that follow the first rounds, called the trunk. With 0 parts, a pass
    covers only the trunk, and starts from the values that the parts have computed.
    """

    board: IntArray  # [round] the sampled board; −1: all
    suits: IntArray  # [round] suit permutation from hands of the previous round to those of this one
    mine: IntArray  # [round, 2] first and end hand of the player
    theirs: IntArray  # [round, 2] first and end hand of the opponent
    reach: FloatArray  # [1] initial reach of the opponent's sampled hand; 0 if all hands have their own
    chance: FloatArray  # [round] weight of a sampled board
    part: int
    parts: int
    trunk: int  # rounds before the boards that parts divide: 1, or more if each has only one board


class Visit(NamedTuple):
    """The board that a pass over the public tree now processes, with data about it.

    A board is processed on the way to later boards, on the way back, or both at once.
    """

    depth: int  # the round; −1 at the end of the pass
    board: int
    arriving: bool  # reach goes down
    leaving: bool  # values come up
    groups: int  # number of groups of equally strong hands, on a board of the last round
    # Numbers of compatible hands of the player and of the opponent; in the last round, those of `PlayerRankings`.
    mine: int
    theirs: int
    by_strength: bool  # whether vectors in the last round have only distinct, possible hands, weakest first
    held: np.int64  # the cards of the board, as a set of bits
    weight: float  # the probability of the board, given both hands; sampled boards count by `Scope.chance`


class Vectors(NamedTuple):
    """Scratch memory of a pass over the public tree: vectors over hands for each node.

    A node shares its parent's reach if both are equal.
    """

    reach: FloatArray  # [place, hand] reach of the opponent
    source: IntArray  # [place] index of its reach
    alive: Flags  # [place] whether the opponent reaches it with any hand
    value: FloatArray  # [place, hand] value of the player, weighted by the opponent's reach
    scale: FloatArray  # [2, hand] scratch of `rule.match_columns`
    expanded: FloatArray  # [action, hand] scratch: rows of a table over buckets, expanded to hands
    # [place, hand] for an opponent with two strategies: reach of the second one, and total reach
    second: FloatArray
    blended: FloatArray


class ShowdownLanes(NamedTuple):
    """Scratch memory for evaluating several showdowns at once.

    The vectors of `LANES` showdowns are interleaved.
    """

    source: IntArray  # [lane] index of its reach
    wanted: IntArray  # [lane] index of the reach of the next leaves
    ready: IntArray  # [1] number of lanes with results that hold for all blocks on this board
    reach: FloatArray
    result: FloatArray
    whole: FloatArray
    tied: FloatArray
    cards: FloatArray


class Workspace(NamedTuple):
    """The scratch memory of one pass over a public tree."""

    vectors: Vectors
    board: IntArray  # [round] current board
    following: IntArray  # [round] next board
    weight: FloatArray  # [round] weight of the board: see `Visit`
    cards: IntArray  # cards of the board
    order: npt.NDArray[np.uint16]  # hands compatible with the board
    ranking: Ranking
    sides: PlayerRankings
    lanes: ShowdownLanes
