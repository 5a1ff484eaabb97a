"""CFR where a player sees buckets of hands [Johanson16 chapters 4, 5], by full walks of the public tree with all hands.

A player with a card abstraction has a table over (row, bucket) instead of (board, row) × hand. In a walk the strategy
of a bucket is that of all its hands, and what its hands regret is added up over all boards. Everything else is as in
`vector`: so players with and without abstraction meet, and best responses are those of the whole game.

=============  ==========================================================================================
opponent       who learns against whom
=============  ==========================================================================================
``abstract``   both players are abstracted: the usual way to solve an abstraction
``real``       an abstracted player learns against one who is not, in each seat
``response``   CFR-BR: an abstracted player learns against a best response, in each seat
=============  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import AbstractGame, require_same_cards
from kilt.abstraction.buckets import CardAbstraction, PlayerAbstractions
from kilt.arrays import Array, FloatArray, IntArray
from kilt.errors import AbstractionError
from kilt.games.holdem import Holdem
from kilt.solve.abstract_kernels import take_in
from kilt.solve.problem import SINGLE
from kilt.solve.solver import TableState
from kilt.solve.variants import VARIANTS, multipliers
from kilt.solve.vector import Trunk
from kilt.tree.betting import call_place, on_menu
from kilt.tree.vector import FULL_WIDTH, Scheme, VectorGame, Walk
from kilt.tree.vector_arrays import ANSWER, FOLLOW, LEARN, RESPOND, Table, TableLayout

OPPONENTS = ("abstract", "real", "response")


@dataclass(frozen=True)
class BucketedGame:
    """A game as players with abstractions see it."""

    game: VectorGame
    views: tuple[TableLayout, TableLayout]  # of each player
    columns: tuple[tuple[int, ...], tuple[int, ...]]  # [player][round] buckets

    @classmethod
    def by(cls, game: VectorGame, cards: PlayerAbstractions) -> BucketedGame:
        """With an abstraction for both players, or one for each."""
        first, second = cards.each
        most = max(*first.numbers, *second.numbers)
        view = _view(game, first, most)
        views = view, view if second is first else _view(game, second, most)
        return cls(game, views, (first.numbers, second.numbers))

    def table(self) -> Table:
        """An empty table: the uniform strategy. Its last column is for hands that share a card with the board."""
        return np.zeros((int(self.views[0].start[-1]), max(max(columns) for columns in self.columns) + 1))

    def table_of(self, abstract: AbstractGame, shares: Array) -> Table:
        """The table of a strategy that is over the slots of the same game."""
        table = self.table()
        for slots, rows, call in self._places(abstract):
            part = shares[slots].reshape(rows[1].stop, -1).T
            table[rows] = part
            table[rows[0].start + call, rows[1]] += ~part.any(axis=0)  # who has never been there calls, as agents do
        return table

    def shares_of(self, abstract: AbstractGame, table: Table, dtype: npt.DTypeLike) -> Array:
        """The other way: whole numbers, the largest for a probability of 1."""
        shares = np.zeros(abstract.slots, dtype=dtype)
        for slots, rows, _ in self._places(abstract):
            part = np.maximum(table[rows].T, 0.0)
            whole = part.sum(axis=1, keepdims=True)
            shares[slots] = np.round(part / np.where(whole > 0, whole, 1.0) * np.iinfo(shares.dtype).max).ravel()
        return shares

    def _places(self, abstract: AbstractGame) -> Iterator[tuple[slice, tuple[slice, slice], int]]:
        """Of each decision its slots, its rows and columns in a table, and which action is the call."""
        betting, first = abstract.betting, abstract.first
        nodes = {betting.history(node): node for node in np.flatnonzero(betting.nodes.actor >= 0).tolist()}
        for r, row, position in self.game.decisions():
            node = nodes[position.history]
            start = int(self.views[0].start[r]) + row
            rows = (
                slice(start, start + int(betting.nodes.children[node])),
                slice(0, abstract.buckets[position.actor][r]),
            )
            call = int(call_place(betting.nodes, betting.level, node))
            yield slice(int(first[node]), int(first[node + 1])), rows, call

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """The rows of the decisions of player 0, and those of player 1."""
        mine: tuple[list[int], list[int]] = [], []
        for r, row, position in self.game.decisions():
            first = int(self.views[0].start[r]) + row
            mine[position.actor].extend(range(first, first + len(on_menu(position, self.game.menu))))
        return np.array(mine[0], dtype=np.int64), np.array(mine[1], dtype=np.int64)

    @property
    def infosets(self) -> int:
        """How many information sets the abstract game has."""
        return sum(self.columns[position.actor][r] for r, _, position in self.game.decisions())

    def response_values(self, strategy: Table) -> tuple[float, float]:
        """What a best response of the whole game wins in each seat against an abstract strategy, in chips per game."""
        first, second = (self.game.walk(self.walk(seat, RESPOND, strategy)) for seat in (0, 1))
        return first, second

    def exploitability(self, strategy: Table) -> float:
        """The mean of that over both seats."""
        return max(sum(self.response_values(strategy)) / 2, 0.0)

    def expected_value(self, strategy: Table) -> float:
        """What player 0 wins when both follow an abstract strategy, in chips per game."""
        return self.game.walk(self.walk(0, FOLLOW, strategy))

    def walk(self, player: int, task: int, strategy: Table) -> Walk:
        """One in which both players see buckets."""
        return Walk(player, (task,), strategy, strategy, own_view=self.views[player], their_view=self.views[1 - player])


class AbstractCfr(TableState):
    """CFR and its variants for players who see buckets; see above for their `opponent`."""

    def __init__(
        self,
        seen: BucketedGame,
        opponent: str = "abstract",
        variant: str = "cfr+",
        scheme: Scheme = FULL_WIDTH,
        trunk: int = 0,
        seed: int = 0,
    ) -> None:
        fitting = [name for name, row in VARIANTS.items() if not row.predictive]
        if variant not in fitting:
            raise AbstractionError(f"no abstracted player learns by {variant!r}: use one of {', '.join(fitting)}")
        if opponent not in OPPONENTS:
            raise AbstractionError(f"unknown opponent {opponent!r}: use one of {', '.join(OPPONENTS)}")
        self.seen, self.opponent, self.variant = seen, opponent, VARIANTS[variant]
        other = Trunk.of(seen.game, trunk) if opponent == "response" else Trunk(scheme, (LEARN,), seen.game.plain)
        self.scheme, self.tasks, self.view = other
        self.seed = seed
        self.iterations = 0
        self.regret, self.total = seen.table(), seen.table()
        # Of the opponents who are not abstracted: regrets, or 1 for the best action.
        self.other: Table = np.zeros((0, 0))
        if opponent != "abstract":
            rows, hands = int(self.view.start[-1]), seen.game.shape[1]
            self.other = np.zeros((rows, hands), np.float32 if 8 * rows * hands > SINGLE else np.float64)
        self.KEPT = ("regret", "total", "other")
        # What a walk adds up: of the player regrets, of the opponent the average, which have rows of their own.
        self._parts = np.zeros((1 if self.scheme.boards else seen.game.threads, *self.regret.shape))

    def step(self, iterations: int) -> None:
        """Do so many more iterations."""
        rows = multipliers(self.variant, np.arange(1.0, iterations + 1) + self.iterations)
        for row in np.column_stack([rows, np.zeros(iterations)]):
            turn = partial(self._turn, multiplier=row)
            if self.opponent == "abstract":
                turn(0)
                turn(1)
            else:
                self.seen.game.both_seats(turn, self.scheme)
            self.iterations += 1

    def _turn(self, seat: int, multiplier: FloatArray) -> None:
        """An abstracted player learns, after its opponent where that is another one."""
        number = 2 * self.iterations + seat
        if self.opponent == "abstract":
            walk = self.seen.walk(seat, LEARN, self.regret)
            self._learn(walk._replace(multiplier=multiplier), number, averaging=True)
            return
        view, other = self.seen.views[seat], self.other
        against = Walk(1 - seat, self.tasks, other, self.regret, None, None, multiplier, self.view, view)
        self._learn(against if self.tasks[0] == ANSWER else against._replace(regret=other), number, averaging=True)
        learner = Walk(seat, (LEARN,), self.regret, other, None, None, multiplier, view, self.view)
        self._learn(learner, number, averaging=False)

    def _learn(self, walk: Walk, number: int, *, averaging: bool) -> None:
        """A walk, and what abstracted players learn from it."""
        abstracted, parts = walk.own is self.regret, tuple(self._parts)
        if abstracted:
            walk = walk._replace(regret=parts)
        if averaging:
            walk = walk._replace(average=parts)
        self.seen.game.walk(walk, self.scheme, self.seed, number)
        kept, kept_below, kept_average, _ = walk.multiplier
        mine, theirs = self.seen.rows[walk.player], self.seen.rows[1 - walk.player]
        if abstracted:
            take_in(self.regret, self._parts, mine, self.seen.game.tree.noise, kept, kept_below)
        if averaging:
            take_in(self.total, self._parts, theirs, 0.0, kept_average, kept_average)

    def average(self) -> Table:
        """The average strategy: what converges."""
        return self.total

    def current(self) -> Table:
        """The strategy that the next iteration starts from."""
        return self.regret


def _view(game: VectorGame, abstraction: CardAbstraction, most: int) -> TableLayout:
    """How a player with an abstraction sees a game; column `most` is for hands that cannot be."""
    rules, tree = game.game, game.tree
    if not isinstance(rules, Holdem):
        raise AbstractionError(f"{rules.name} has no cards: {abstraction.identity.name} is for games of poker")
    require_same_cards(rules, abstraction)
    bucket = np.empty((int(tree.board_start[-1]), tree.prior.shape[1]), dtype=np.int32)
    for r, this in enumerate(abstraction.rounds):
        for board in range(tree.board_start[r], tree.board_start[r + 1]):
            cards = tree.board[board, : tree.board_size[r]].tolist()
            bucket[board] = np.where(this.holdings.row(cards)[1] < 0, most, this.row(cards))
    counts = np.diff(tree.table_start) // np.diff(tree.board_start)
    return TableLayout(np.zeros_like(tree.rows), np.concatenate([[0], np.cumsum(counts)]), bucket)
