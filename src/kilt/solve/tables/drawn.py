"""CFR-BR and sampling in games whose boards do not fit into memory: some are drawn, and forgotten [Johanson16 §4.3].

An iteration of CFR-BR takes these steps for each seat:

    draw     a board for each round of the trunk's end, such as a flop and a turn after a trunk of two rounds; with all
             boards that follow it makes a small public tree, whose hands are sorted into buckets now
    answer   the opponent, who sees all cards, learns in the trunk, and takes best responses after it; the player's
             strategy is averaged
    learn    the player, who sees buckets, learns against that; the responses are thrown away

Of the opponent only the regrets of the trunk are kept. `TreeTables` do the same where all boards fit, which is quicker
in small games; but for the suits of boards, which they draw where walks here take the mean over them. In self-play, by
public chance sampling, each player learns on boards that are drawn in all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kilt.abstraction.buckets import PlayerAbstractions
from kilt.arrays import Array, IntArray
from kilt.errors import GameError
from kilt.solve.abstract import BucketedGame, bucket_layouts
from kilt.solve.cfr import SELF_PLAY, Turn
from kilt.solve.learning_kernels import PlayerTables, enter
from kilt.solve.problem import SINGLE
from kilt.solve.solver import TableState
from kilt.solve.tables.memory import learning_walk
from kilt.solve.tables.parts import Learning, PartTables, Values
from kilt.solve.variants import Variant
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.parts import drawn_tree
from kilt.tree.rule import Discount
from kilt.tree.vector import Scheme, VectorGame
from kilt.tree.vector_arrays import ANSWER, FOLLOW, Table, TableLayout, VectorTree


class Draw(NamedTuple):
    """The boards of a walk."""

    boards: tuple[int, ...]  # that were drawn, by their numbers through all rounds
    tree: VectorTree  # with all that follow these
    layouts: tuple[TableLayout, TableLayout]  # of both players' tables there

    def columns(self, seat: int, r: int) -> IntArray:
        """The buckets that a player's hands have in a round."""
        first, end = self.tree.board_start[r : r + 2]
        return np.unique(self.layouts[seat].bucket[first:end]).astype(np.int64)


class Trunk(NamedTuple):
    """Where the opponent's table has its rows: those of the trunk on all boards, then room for responses."""

    rounds: int
    rows: tuple[int, ...]  # [round] on a board
    start: tuple[int, ...]  # [round of the trunk + 1]

    @classmethod
    def of(cls, game: VectorGame, rounds: int) -> Trunk:
        """The trunk of some rounds of a game, one at least and not all."""
        tree, every = game.tree, len(game.tree.rows)
        if not 1 <= rounds < every:
            raise GameError(f"the trunk is {rounds} rounds; boards are drawn after 1 to {every - 1} of them")
        rows = np.where(tree.rows > 0, tree.rows, np.diff(tree.table_start)).tolist()
        sizes = [rows[r] * int(tree.board_start[r + 1] - tree.board_start[r]) for r in range(rounds)]
        return cls(rounds, tuple(rows), (0, *np.cumsum(sizes).tolist()))

    def first_row(self, tree: VectorTree, boards: tuple[int, ...], r: int) -> int:
        """Where the rows of a round of the trunk begin on the board that was drawn for it, of the whole game's tree."""
        board = boards[r - 1] - int(tree.board_start[r]) if r else 0
        return self.start[r] + board * self.rows[r]

    def layout(self, tree: VectorTree, draw: Draw) -> TableLayout:
        """The layout of the opponent's table on what was drawn: responses of a board follow those of another."""
        starts = [self.first_row(tree, draw.boards, r) for r in range(self.rounds)]
        last = self.start[-1]
        for r in range(self.rounds, len(self.rows)):
            starts.append(last)
            last += self.rows[r] * int(draw.tree.board_start[r + 1] - draw.tree.board_start[r])
        none = np.empty((0, 0), np.int32), np.empty(0, np.bool_)
        return TableLayout(np.array(self.rows, np.int32), np.array([*starts, last]), *none)


class DrawnTables(TableState, PartTables):
    """Tables of players with card abstractions, who look up the buckets of the boards that are drawn alone.

    Against a best response, boards are drawn at the end of its trunk. In self-play, boards of all rounds are drawn:
    public chance sampling.

    Parameters
    ----------
    game : VectorGame
        The whole game, with tables that are not by board. Where it has threads, both seats learn side by side.
    cards : CardAbstraction or AsymmetricAbstraction
        Of both players, or of each.
    trunk : int, optional
        Number of rounds in which the opponent learns who then responds: one at least, and not all. Left out: self-play.
    seed : int
        What is drawn depends on it and on the number of iterations alone.
    """

    sampled = True

    def __init__(self, game: VectorGame, cards: PlayerAbstractions, *, trunk: int | None = None, seed: int = 0) -> None:
        self.vectors, self.cards = game, cards
        self.where = Trunk.of(game, len(game.tree.rows) - 1 if trunk is None else trunk)
        self.self_play = trunk is None
        against = tuple((Turn(1 - seat, 2, seat, 1, seat), Turn(seat, seat, 2, 0, seat)) for seat in (0, 1))
        self.groups = (SELF_PLAY,) if self.self_play else against
        self.KEPT = ("regret", "total", *["trunk"] * (not self.self_play), "seed")
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.bucketed = BucketedGame(
            game, self.draw(self.drawn_boards(0)).layouts, (cards.each[0].numbers, cards.each[1].numbers)
        )
        rounds = len(game.tree.rows)
        learn = np.full(rounds, FOLLOW)
        self._tasks = np.array([learn, np.repeat([FOLLOW, ANSWER], [self.where.rounds, rounds - self.where.rounds])])

    def prepare(self, variant: Variant) -> None:
        """Make tables of zeros: of the players, and of the opponent with the trunk's part of it."""
        if variant.predictive:
            raise GameError("what is drawn differs from walk to walk, and predicts nothing: use cfr, cfr+ or linear")
        self._regret, self._total = self.bucketed.table(), self.bucketed.table()
        self._sums = np.zeros((1, *self._regret.shape))
        rows, hands = 0 if self.self_play else self.where.start[-1], self.vectors.shape[1]
        self._other: Table = np.zeros((rows, hands), np.float32 if 8 * rows * hands > SINGLE else np.float64)
        self.dtype = self._other.dtype

    @property
    def regret(self) -> Table:
        """[row, bucket] the players' regrets."""
        return self._regret

    @property
    def total(self) -> Table:
        """[row, bucket] the sum of the players' strategies."""
        return self._total

    @property
    def trunk(self) -> Table:
        """[(board, row), hand] the opponent's regrets in the trunk."""
        return self._other[: self.where.start[-1]]

    def drawn_boards(self, number: int) -> tuple[int, ...]:
        """Draw the boards of a walk, by their numbers through all rounds.

        Parameters
        ----------
        number : int
            Of the walk: twice that of the iteration from 0 on, and 1 more for the second seat.
        """
        game, rounds, scope = self.vectors, self.where.rounds, self.vectors.scope(0)
        draw_scope(game.tree, 0, False, False, rounds, np.uint64(self.seed), np.uint64(number), scope)
        return tuple(scope.board[1 : rounds + 1].tolist())

    def draw(self, boards: tuple[int, ...]) -> Draw:
        """Find all boards that follow those that were drawn, and look up the buckets of their hands."""
        part = drawn_tree(self.vectors.tree, boards)
        return Draw(boards, part, bucket_layouts(self.vectors, self.cards, part))

    def side_by_side(self, work: Callable[[Sequence[Turn]], None]) -> None:
        """Draw boards for both seats, which then learn side by side where they can and the game has threads."""
        self._draws = [self.draw(self.drawn_boards(2 * self.iterations + seat)) for seat in (0, 1)]
        if self.self_play:
            super().side_by_side(work)
            return
        self._layouts = [self.where.layout(self.vectors.tree, draw) for draw in self._draws]
        self._grow(max(int(layout.start[-1]) for layout in self._layouts))
        self.vectors.both_seats(lambda seat: work(self.groups[seat]), Scheme(boards=True))

    def _grow(self, rows: int) -> None:
        """Make room for the responses of a draw."""
        if len(self._other) < rows:
            kept = self.trunk
            self._other = np.zeros((rows, self.vectors.shape[1]), kept.dtype)
            self._other[: len(kept)] = kept

    def opened(self, turn: Turn) -> int:
        """Chance nodes that end the first round."""
        return int(np.diff(self._draws[turn.offset].tree.entry_start)[1])

    def worths(self, turn: Turn, discount: Discount) -> Iterator[tuple[slice, Values]]:
        """Walk what was drawn, all of which is one part."""
        walk = self.trunk_learning(turn, discount).walk
        yield slice(None), self.vectors.part_values(turn.player, walk, self._draws[turn.offset].tree, self.dtype)

    def trunk_learning(self, turn: Turn, discount: Discount) -> Learning:
        """The walk of a turn over what was drawn for its seat."""
        draw, noise = self._draws[turn.offset], self.vectors.tree.noise
        own, theirs = self._seat(turn.own, turn.offset), self._seat(turn.theirs, turn.offset)
        walk = learning_walk(draw.tree, turn.player, self._tasks[turn.task], own, theirs, discount)

        def entered() -> None:
            for player, tables, learning in ((turn.own, own, True), (turn.theirs, theirs, False)):
                # Where regrets below 0 are discounted, those of all buckets are, as where all boards are in memory.
                everywhere = learning and discount.below not in (0, 1)
                for r, rows in enumerate(self._rows[player] if player < 2 else ()):
                    columns = np.arange(self._regret.shape[1]) if everywhere else draw.columns(player, r)
                    enter(tables, rows, columns, learning, noise, discount)

        return Learning(walk, entered)

    def _seat(self, number: int, seat: int) -> PlayerTables:
        """The tables of a player, or of the opponent, 2, on what was drawn for a seat."""
        if number < 2:
            tables, layout = (self._regret, self._regret, self._total), self._draws[seat].layouts[number]
            return PlayerTables(layout, *tables, True, self.bucketed.rows[number], self._sums, self._regret[:0])
        other, none = self._other, (np.empty(0, np.int64), np.zeros((0, 0, 0), self._other.dtype))
        return PlayerTables(self._layouts[seat], other, other, other, False, *none, other[:0])

    @cached_property
    def _rows(self) -> list[list[IntArray]]:
        """[player][round] the rows of the player's decisions."""
        edges = self.bucketed.layouts[0].start
        return [
            [rows[(rows >= first) & (rows < end)] for first, end in pairwise(edges.tolist())]
            for rows in self.bucketed.rows
        ]

    def average(self) -> Array:
        """[row, bucket] the average strategy, entries in proportion to probabilities."""
        return self.total

    def current(self) -> Array:
        """[row, bucket] what regret matching plays now, entries in proportion to probabilities."""
        return self.regret
