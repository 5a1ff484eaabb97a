"""Poker games in which players see buckets of similar hands instead of their hands.

A strategy is a table with one row for each action of a decision, and one column for each bucket. All hands of a bucket
play the bucket's strategy. Players with and without abstraction can therefore play each other, and best responses to
abstract strategies are those of the whole game [Johanson16 chapters 4, 5].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import AbstractGame, require_same_cards
from kilt.abstraction.buckets import CardAbstraction, PlayerAbstractions
from kilt.arrays import Array, IntArray, data_type
from kilt.errors import AbstractionError
from kilt.games.holdem import Holdem
from kilt.tree.betting import call_index, on_menu
from kilt.tree.evaluable import EvaluableGame
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table, TableLayout, VectorTree
from kilt.tree.walks import Walk

TOGETHER = 4096  # boards whose buckets are looked up in one batch


class DecisionLocation(NamedTuple):
    """The location of a decision's probabilities in a strategy table and in a saved strategy."""

    player: int
    round: int
    buckets: int
    slots: slice  # slots in strategies of the abstract game, bucket by bucket
    rows: slice  # rows in tables over row × bucket
    call: int  # index of the call among its actions


def rounded_shares(weights: Table, dtype: npt.DTypeLike) -> Array:
    """Round the probabilities of a decision's actions to integers, separately for each bucket.

    `weights` has the shape (actions, buckets), the result (buckets, actions). The largest integer of `dtype` stands for
    1.
    """
    part = np.maximum(weights.T, 0.0)
    whole = part.sum(axis=1, keepdims=True)
    return np.round(part / np.where(whole > 0, whole, 1.0) * np.iinfo(data_type(dtype)).max)


@dataclass(frozen=True)
class BucketedGame(EvaluableGame):
    """A game in which players see only the bucket of their hand."""

    game: VectorGame
    layouts: tuple[TableLayout, TableLayout]  # layouts of each player's tables
    columns: tuple[tuple[int, ...], tuple[int, ...]]  # [player][round] number of buckets

    @classmethod
    def with_abstraction(
        cls, game: VectorGame, cards: PlayerAbstractions, part: VectorTree | None = None
    ) -> BucketedGame:
        """Return a game in which players see the buckets of a card abstraction.

        Both players may use the same abstraction, or each a different one.

        Parameters
        ----------
        game : VectorGame
            The whole game.
        cards : CardAbstraction or AsymmetricAbstraction
            A card abstraction for the same deck and rounds.
        part : VectorTree, optional
            A part of the game's tree whose boards are looked up, as returned by `flop_tree`. Default: all boards.
        """
        first, second = cards.each
        return cls(game, bucket_layouts(game, cards, part or game.tree), (first.numbers, second.numbers))

    def table(self, dtype: npt.DTypeLike = np.float64) -> Table:
        """Return a strategy table of zeros, which stands for the uniform strategy.

        Its last column is for hands that share a card with the board.
        """
        return np.zeros((int(self.layouts[0].start[-1]), max(max(columns) for columns in self.columns) + 1), dtype)

    def table_of(self, abstract: AbstractGame, shares: Array, *, calling: bool = True) -> Table:
        """Convert a saved strategy to a table with one row per action and one column per bucket.

        Information sets that were never reached have no probabilities: with `calling`, the player calls there, as
        agents do.
        """
        table = self.table()
        for place in self.decision_locations(abstract):
            part = shares[place.slots].reshape(place.buckets, -1).T
            table[place.rows, : place.buckets] = part
            if calling:
                table[place.rows.start + place.call, : place.buckets] += ~part.any(axis=0)
        return table

    def shares_of(self, abstract: AbstractGame, table: Table, dtype: npt.DTypeLike) -> Array:
        """Convert a strategy table to the integer probabilities of saved strategies.

        The largest integer of `dtype` stands for 1.
        """
        shares = np.zeros(abstract.slots, dtype=dtype)
        for place in self.decision_locations(abstract):
            shares[place.slots] = rounded_shares(table[place.rows, : place.buckets], shares.dtype).ravel()
        return shares

    def decision_locations(self, abstract: AbstractGame) -> Iterator[DecisionLocation]:
        """Yield the location of each decision's probabilities in strategy tables and in saved strategies."""
        betting, first = abstract.betting, abstract.first
        nodes = {betting.history(node): node for node in np.flatnonzero(betting.nodes.actor >= 0).tolist()}
        for r, row, position in self.game.decisions():
            node = nodes[position.history]
            start = int(self.layouts[0].start[r]) + row
            yield DecisionLocation(
                player=position.actor,
                round=r,
                buckets=abstract.buckets[position.actor][r],
                slots=slice(int(first[node]), int(first[node + 1])),
                rows=slice(start, start + int(betting.nodes.children[node])),
                call=int(call_index(betting.nodes, betting.level, node)),
            )

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """Each player's rows in a strategy table, in ascending order."""
        mine: tuple[list[int], list[int]] = [], []
        for r, row, position in self.game.decisions():
            begin = int(self.layouts[0].start[r]) + row
            mine[position.actor].extend(range(begin, begin + len(on_menu(position, self.game.menu))))
        first, second = (np.array(sorted(rows), dtype=np.int64) for rows in mine)
        return first, second

    @property
    def infosets(self) -> int:
        """The number of information sets of the abstract game."""
        return sum(self.columns[position.actor][r] for r, _, position in self.game.decisions())

    @property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, as with rake or modified payoffs."""
        return self.game.is_general_sum

    def worth(self, player: int, task: int, strategy: Table) -> float:
        """Return a player's winnings with a strategy, or with a best response to it.

        A best response sees all cards, and not only buckets. The unit is chips per game.
        """
        return self.game.walk(self.walk(player, task, strategy))

    def walk(self, player: int, task: int, strategy: Table) -> Walk:
        """Describe the pass over the public tree that computes what a strategy wins.

        The player sees buckets. `VectorGame.walk` runs the pass.
        """
        return Walk(player, (task,), strategy, strategy, self.layouts[player], self.layouts[1 - player])


def bucket_layouts(game: VectorGame, cards: PlayerAbstractions, tree: VectorTree) -> tuple[TableLayout, TableLayout]:
    """Look up the bucket of every hand on every board for both players.

    The result is each player's table layout, in which the bucket is the column of a hand. The column after the last
    bucket of any round is for hands that share a card with the board.

    Parameters
    ----------
    game : VectorGame
        The whole game.
    cards : CardAbstraction or AsymmetricAbstraction
        A card abstraction for the same deck and rounds.
    tree : VectorTree
        The tree of the game, or a part of it.
    """
    first, second = cards.each
    most = max(*first.numbers, *second.numbers)
    layout = _layout(game, first, most, tree)
    return layout, layout if second is first else _layout(game, second, most, tree)


def _layout(game: VectorGame, abstraction: CardAbstraction, most: int, tree: VectorTree) -> TableLayout:
    """Return a player's table layout: the bucket of each hand on each board, or column `most` for impossible hands."""
    rules = game.game
    if not isinstance(rules, Holdem):
        raise AbstractionError(f"{rules.name} has no cards: {abstraction.identity.name} is for poker games")
    require_same_cards(rules, abstraction)
    bucket = np.empty((int(tree.board_start[-1]), tree.prior.shape[1]), dtype=np.int32)
    for r, this in enumerate(abstraction.rounds):
        for first in range(tree.board_start[r], tree.board_start[r + 1], TOGETHER):
            some = slice(first, min(first + TOGETHER, tree.board_start[r + 1]))
            boards = tree.board[some, : tree.board_size[r]].astype(np.int64)
            held = np.bitwise_or.reduce(tree.strengths.card_bit[boards], axis=1, initial=0)
            bucket[some] = np.where(tree.deck.bits & held[:, None], most, this.look_up_boards(boards))
    rows = np.where(tree.rows > 0, tree.rows, np.diff(tree.table_start))
    none = np.empty(0, dtype=np.bool_)
    return TableLayout(np.zeros_like(tree.rows), np.concatenate([[0], np.cumsum(rows)]), bucket, none)
