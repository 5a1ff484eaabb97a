"""CFR-BR, or CFR with sampled boards, for games with too many boards for memory.

See [Johanson16 §4.3]. An iteration of CFR-BR takes these steps for each seat:

    draw     sample a board for each round up to the end of the trunk, such as a flop and a turn after a trunk of two
             rounds; together with all later boards they form a small public tree, whose hands are assigned to buckets
    answer   the opponent, who sees all cards, learns in the trunk and plays a best response after it; the player's
             strategy is averaged
    learn    the player, who sees buckets, learns against this opponent; the responses are discarded

Of the opponent, only the regrets of the trunk are stored. `TreeTables` implements the same algorithm for games whose
boards all fit, and is faster for small games; it also samples the suits of boards, while this module averages over
them. In self-play, with public chance sampling, each player learns on boards that are sampled in all rounds.
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
from kilt.solve.learning_kernels import PlayerTables, add_bucket_sums
from kilt.solve.opponents import turns_against_opponent
from kilt.solve.problem import float_type
from kilt.solve.solver import TableState
from kilt.solve.tables.memory import learning_walk
from kilt.solve.tables.parts import Learning, PartTables, Values
from kilt.solve.variants import Variant
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.parts import drawn_tree
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import ANSWER, FOLLOW, Table, TableLayout, VectorTree
from kilt.tree.walks import Scheme


class Draw(NamedTuple):
    """A random sample of boards, with its public tree."""

    boards: tuple[int, ...]  # the sampled boards, numbered over all rounds
    tree: VectorTree  # the sampled boards and all later ones
    layouts: tuple[TableLayout, TableLayout]  # of both players' tables there

    def columns(self, seat: int, r: int) -> IntArray:
        """Return a player's possible buckets on a round's sampled boards."""
        first, end = self.tree.board_start[r : r + 2]
        return np.unique(self.layouts[seat].bucket[first:end]).astype(np.int64)


class Trunk(NamedTuple):
    """The layout of the opponent's table in CFR-BR: the first rounds, then the best responses.

    The rows of the first rounds, for all boards, precede those of the best responses.
    """

    rounds: int
    rows: tuple[int, ...]  # [round] rows of a board
    start: tuple[int, ...]  # [round of the trunk + 1] first row

    @classmethod
    def after_rounds(cls, game: VectorGame, rounds: int) -> Trunk:
        """Return the table layout for an opponent who learns only in the first `rounds` rounds.

        In later rounds, it plays best responses.
        """
        tree, every = game.tree, len(game.tree.rows)
        if not 1 <= rounds < every:
            raise GameError(f"the trunk is {rounds} rounds; boards are drawn after 1 to {every - 1} of them")
        rows = np.where(tree.rows > 0, tree.rows, np.diff(tree.table_start)).tolist()
        sizes = [rows[r] * int(tree.board_start[r + 1] - tree.board_start[r]) for r in range(rounds)]
        return cls(rounds, tuple(rows), (0, *np.cumsum(sizes).tolist()))

    def first_row(self, tree: VectorTree, boards: tuple[int, ...], r: int) -> int:
        """Return the first row that belongs to a sampled board in the opponent's table."""
        board = boards[r - 1] - int(tree.board_start[r]) if r else 0
        return self.start[r] + board * self.rows[r]

    def layout(self, tree: VectorTree, draw: Draw) -> TableLayout:
        """Return the layout of the opponent's table for a sample of boards.

        The best responses on one board follow those on another.
        """
        starts = [self.first_row(tree, draw.boards, r) for r in range(self.rounds)]
        last = self.start[-1]
        for r in range(self.rounds, len(self.rows)):
            starts.append(last)
            last += self.rows[r] * int(draw.tree.board_start[r + 1] - draw.tree.board_start[r])
        none = np.empty((0, 0), np.int32), np.empty(0, np.bool_)
        return TableLayout(np.array(self.rows, np.int32), np.array([*starts, last]), *none)


def require_unpredicted(variant: Variant) -> None:
    """Raise GameError for variants of CFR that predict regrets, because sampled boards do not allow that."""
    if variant.predictive:
        raise GameError("variants cannot predict from sampled boards: use cfr, cfr+ or linear")


class SampledBoardTables(TableState, PartTables):
    """The tables of CFR-BR, or of CFR with sampled boards, for players who see buckets.

    Buckets are looked up only for the boards that are sampled. Against a best response, boards are sampled at the end
    of its trunk. In self-play, boards of all rounds are sampled: public chance sampling.

    Parameters
    ----------
    game : VectorGame
        The whole game, without tables by board. If it has several threads, both seats learn in parallel.
    cards : CardAbstraction or AsymmetricAbstraction
        Card abstraction of both players, or one for each.
    trunk : int, optional
        Number of rounds in which the best-responding opponent learns: at least one, and not all. Default: self-play.
    seed : int
        Random seed. Samples depend only on the seed and the iteration number.
    """

    sampled = True

    def __init__(self, game: VectorGame, cards: PlayerAbstractions, *, trunk: int | None = None, seed: int = 0) -> None:
        self.vectors, self.cards = game, cards
        self.where = Trunk.after_rounds(game, len(game.tree.rows) - 1 if trunk is None else trunk)
        self.self_play = trunk is None
        self.groups = (SELF_PLAY,) if self.self_play else turns_against_opponent(0, 1)
        self.KEPT = ("regret", "total", *["trunk"] * (not self.self_play), "seed")
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.bucketed = BucketedGame(
            game, self.build_draw(self.sample_boards(0)).layouts, (cards.each[0].numbers, cards.each[1].numbers)
        )
        rounds = len(game.tree.rows)
        learn = np.full(rounds, FOLLOW)
        self._tasks = np.array([learn, np.repeat([FOLLOW, ANSWER], [self.where.rounds, rounds - self.where.rounds])])

    def prepare(self, variant: Variant) -> None:
        """Allocate empty tables for the players and the opponent."""
        require_unpredicted(variant)
        self._regret, self._total = self.bucketed.table(), self.bucketed.table()
        self._sums = np.zeros((1, *self._regret.shape))
        rows, hands = 0 if self.self_play else self.where.start[-1], self.vectors.shape[1]
        self._other: Table = np.zeros((rows, hands), float_type(rows * hands))
        self.dtype = self._other.dtype

    @property
    def regret(self) -> Table:
        """The players' regrets, with one row per action and one column per bucket."""
        return self._regret

    @property
    def total(self) -> Table:
        """The sums of the players' strategies, with one row per action and one column per bucket."""
        return self._total

    @property
    def trunk(self) -> Table:
        """The opponent's regrets in the first rounds, with one row per action and one column per hand.

        In later rounds, the opponent plays a best response.
        """
        return self._other[: self.where.start[-1]]

    def sample_boards(self, number: int) -> tuple[int, ...]:
        """Sample the boards for an update of one player's regrets, and return their indices.

        Parameters
        ----------
        number : int
            Number of the update: twice the iteration's number, which counts from 0, plus 1 for the second seat.
        """
        game, rounds, scope = self.vectors, self.where.rounds, self.vectors.scope(0)
        draw_scope(game.tree, 0, False, False, rounds, np.uint64(self.seed), np.uint64(number), scope)
        return tuple(scope.board[1 : rounds + 1].tolist())

    def build_draw(self, boards: tuple[int, ...]) -> Draw:
        """Build the public tree of a sample of boards, and look up all hands' buckets."""
        part = drawn_tree(self.vectors.tree, boards)
        return Draw(boards, part, bucket_layouts(self.vectors, self.cards, part))

    def run_independent_passes(self, work: Callable[[Sequence[Turn]], None]) -> None:
        """Let each player learn on a separate sample of boards, in parallel if possible."""
        self._draws = [self.build_draw(self.sample_boards(2 * self.iterations + seat)) for seat in (0, 1)]
        if self.self_play:
            super().run_independent_passes(work)
            return
        self._layouts = [self.where.layout(self.vectors.tree, draw) for draw in self._draws]
        self._grow(max(int(layout.start[-1]) for layout in self._layouts))
        self.vectors.call_for_seats(lambda seat: work(self.groups[seat]), Scheme(boards=True))

    def _grow(self, rows: int) -> None:
        """Enlarge the opponent's table so that the responses on the sampled boards fit."""
        if len(self._other) < rows:
            kept = self.trunk
            self._other = np.zeros((rows, self.vectors.shape[1]), kept.dtype)
            self._other[: len(kept)] = kept

    def update_subgames(self, turn: Turn, discount: Discount) -> Iterator[tuple[slice, Values]]:
        """Update a player's regrets on the sampled boards, and yield the values of the player's hands."""
        walk = self.prepare_trunk_pass(turn, discount).walk
        yield slice(None), self.vectors.part_values(turn.player, walk, self._draws[turn.offset].tree, self.dtype)

    def prepare_trunk_pass(self, turn: Turn, discount: Discount) -> Learning:
        """Compute what the pass of CFR over the first rounds needs before it updates a player's regrets."""
        draw, noise = self._draws[turn.offset], self.vectors.tree.noise
        own, theirs = self._seat(turn.own, turn.offset), self._seat(turn.theirs, turn.offset)
        walk = learning_walk(draw.tree, turn.player, self._tasks[turn.task], own, theirs, discount)

        def entered() -> None:
            for player, tables, learning in ((turn.own, own, True), (turn.theirs, theirs, False)):
                # Discounts of negative regrets apply to all buckets, including those that the draw does not reach, as
                # if all boards were in memory.
                everywhere = learning and discount.below not in (0, 1)
                for r, rows in enumerate(self._rows[player] if player < 2 else ()):
                    columns = np.arange(self._regret.shape[1]) if everywhere else draw.columns(player, r)
                    add_bucket_sums(tables, rows, columns, learning, noise, discount)

        return Learning(walk, entered)

    def _seat(self, number: int, seat: int) -> PlayerTables:
        """Return the tables of a player, or of the opponent (number 2), on the boards sampled for a seat."""
        if number < 2:
            tables, layout = (self._regret, self._regret, self._total), self._draws[seat].layouts[number]
            return PlayerTables.of(layout, tables, True, self.bucketed.rows[number], self._sums)
        return PlayerTables.of(self._layouts[seat], (self._other, self._other, self._other), False)

    @cached_property
    def _rows(self) -> list[list[IntArray]]:
        """The rows of each player's decisions in each round."""
        edges = self.bucketed.layouts[0].start
        return [
            [rows[(rows >= first) & (rows < end)] for first, end in pairwise(edges.tolist())]
            for rows in self.bucketed.rows
        ]

    def average(self) -> Array:
        """Return the average strategy as weights, with one row per action and one column per bucket."""
        return self.total

    def current(self) -> Array:
        """Return the current strategy as a table of weights, where negative weights count as 0."""
        return self.regret
