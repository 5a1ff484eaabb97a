"""Abstract games: poker games made small enough to solve, with buckets of similar hands and few bet sizes.

An information set is a decision of the betting tree together with a bucket of the decision's round. All tables of an
abstract game are flat arrays with one *slot* for each action of each information set: decisions in the order of the
tree, within a decision its buckets, within a bucket its actions. So a decision and a bucket determine an address.

>>> from kilt.games import load_game
>>> from kilt.abstraction.actions import actions_of
>>> betting_size(load_game("holdem.nolimit.2p"), actions_of("1x, a")).decisions  # of either player
((10, 50, 170, 450), (10, 50, 170, 450))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.abstract_game_kernels import copy_ranges
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import CardAbstraction, PlayerAbstractions
from kilt.abstraction.features import Deal
from kilt.arrays import IntArray
from kilt.errors import AbstractionError
from kilt.games.holdem import Holdem
from kilt.tree.betting import BettingTree, betting_size, betting_tree

Buckets: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # [player][round] number of buckets
COPIED_SLOTS = 1 << 24  # number of slots of a table that are copied at a time


class AbstractSize(NamedTuple):
    """The size of an abstract game, such as its number of nodes and of information sets."""

    nodes: int  # of the betting tree, leaves included
    decisions: tuple[int, ...]  # [round] of the betting tree
    buckets: Buckets
    infosets: tuple[int, ...]  # [round]
    slots: tuple[int, ...]  # [round] number of actions of all information sets


class SlotLayout(ABC):
    """Base class of abstract games, which defines the layout of their strategy tables.

    Every action at every information set has an index in these tables, called a slot. Slots follow from the betting and
    from the number of buckets in each round.
    """

    game: Holdem
    actions: ActionAbstraction | None  # a menu of bets; None allows every legal bet

    @property
    @abstractmethod
    def buckets(self) -> Buckets:
        """The number of buckets of each player in each betting round, indexed by [player][round]."""

    @abstractmethod
    def look_up(self, r: int, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32]) -> None:
        """Look up the buckets of both players' hands in round `r`, for a batch of deals.

        They are written to `buckets`.

        `boards` is [deal, card]; `hands` and `buckets` are [deal, player].
        """

    @cached_property
    def betting(self) -> BettingTree:
        """The betting tree of the game."""
        return betting_tree(self.game, self.actions)

    @cached_property
    def first(self) -> IntArray:
        """The index of each decision's first entry in a strategy table.

        The shape is (nodes + 1,).
        """
        return np.concatenate([[0], np.cumsum(self.betting.nodes.children * self.buckets_at, dtype=np.int64)])

    @property
    def buckets_at(self) -> IntArray:
        """The number of buckets at each decision of the betting tree, shape (nodes,).

        It is 0 at nodes where no player acts.
        """
        nodes = self.betting.nodes
        return np.where(nodes.actor >= 0, np.array(self.buckets)[nodes.actor.clip(0), nodes.round], 0)

    def slots_of(self, player: int) -> npt.NDArray[np.bool_]:
        """Return a boolean mask of one player's entries in strategy tables."""
        return np.repeat(self.betting.nodes.actor == player, np.diff(self.first))

    @property
    def slots(self) -> int:
        """The length of strategy tables: one entry for each action at each information set."""
        return int(self.first[-1])

    @property
    def size(self) -> AbstractSize:
        """The size of the game, computed without allocating any table.

        No table is allocated.
        """
        betting = betting_size(self.game, self.actions)
        each = np.array(self.buckets, dtype=object)  # integers of any length
        decisions, actions = (np.array(counted, dtype=object) for counted in (betting.decisions, betting.actions))
        counts = (tuple(counted.sum(axis=0).tolist()) for counted in (decisions, decisions * each, actions * each))
        of_rounds, infosets, slots = counts
        return AbstractSize(betting.nodes, of_rounds, self.buckets, infosets, slots)


@dataclass(frozen=True)
class AbstractGame(SlotLayout):
    """A poker game made small enough to solve, with buckets of similar hands and a few bet sizes.

    Parameters
    ----------
    game : Holdem
        The rules.
    cards : CardAbstraction or AsymmetricAbstraction
        One abstraction for both players, or one for each; made for the same deck and rounds as the game.
    actions : ActionAbstraction, optional
        The bets that players may choose. By default, all legal bets.

    Raises
    ------
    AbstractionError
        The abstraction was made for other cards.
    """

    game: Holdem
    cards: PlayerAbstractions
    actions: ActionAbstraction | None = None

    def __post_init__(self) -> None:
        for cards in self.cards.each:
            require_same_cards(self.game, cards)

    @property
    def buckets(self) -> Buckets:
        """The number of buckets of each player in each betting round, indexed by [player][round]."""
        first, second = self.cards.each
        return first.numbers, second.numbers

    def look_up(self, r: int, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32]) -> None:
        """Look up the buckets of both players' hands in round `r`, for a batch of deals.

        They are written to `buckets`.

        `boards` is [deal, card]; `hands` and `buckets` are [deal, player].
        """
        self.cards.look_up(r, boards, hands, buckets)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the game's rules, buckets and bet sizes, which identifies the game in saved strategies."""
        return artifact.fingerprint(str(self.game.rules), self.cards.fingerprint, artifact.stable_repr(self.actions))


@dataclass(frozen=True)
class SyntheticGame(SlotLayout):
    """An abstract game with made-up buckets, for measuring speed and memory without a card abstraction.

    It has the same size and causes the same work as the real abstract game.
    """

    game: Holdem
    numbers: Buckets
    actions: ActionAbstraction | None = None

    @property
    def buckets(self) -> Buckets:
        """The number of buckets of each player in each betting round, indexed by [player][round]."""
        return self.numbers

    def look_up(self, r: int, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32]) -> None:
        """Assign made-up buckets to hands, by hashing their cards. The result is written to `buckets`."""
        mixed = hands * 7919 + boards @ np.arange(3, boards.shape[1] + 3)[:, None] * 104729
        buckets[:] = mixed % [numbers[r] for numbers in self.numbers]


class AbstractPart(SlotLayout):
    """The part of an abstract game that one worker of a distributed run solves.

    It consists of some rounds, with a range of the buckets of each. The ranges begin at the buckets `offset`.
    """

    def __init__(self, whole: AbstractGame, offset: Buckets, numbers: Buckets, known: Sequence[int | None]) -> None:
        self.whole, self.game, self.actions = whole, whole.game, whole.actions
        self.offset, self.numbers = offset, numbers  # [player][round]; 0 buckets: not in this part
        self.known = known  # [round] the class of boards, if there is only one
        # [round, player] the last bucket; outside of this part, any number is accepted
        last = [[number - 1 if number else 2**32 - 1 for number in both] for both in zip(*numbers, strict=True)]
        self._last = np.array(last, dtype=np.uint32)
        self.betting = whole.betting

    @property
    def buckets(self) -> Buckets:
        """The number of buckets in this part of the game, for each player in each round."""
        return self.numbers

    def look_up(self, r: int, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32]) -> None:
        """Look up the buckets of both players' hands, numbered from the first bucket of this part.

        They are written to `buckets`.

        `boards` is [deal, card]; `hands` and `buckets` are [deal, player].
        """
        if not self.numbers[0][r]:
            return
        first, second = self.whole.cards.each
        if first is second:
            first.rounds[r].look_up(boards, hands, buckets, self.known[r])
        else:
            for player, cards in enumerate((first, second)):
                own = slice(player, player + 1)
                cards.rounds[r].look_up(boards, hands[:, own], buckets[:, own], self.known[r])
        buckets -= np.array([offset[r] for offset in self.offset], dtype=np.uint32)

    def require_own_buckets(self, buckets: npt.NDArray[np.uint32], walked: npt.NDArray[np.bool_]) -> None:
        """Check that a sampled deal belongs to this worker's part of the game.

        Raises AbstractionError if it has a bucket of another part.

        `buckets` is [deal, round, player]; `walked` marks the deals.
        """
        seen = buckets[walked]
        if (seen > self._last).any():
            for player, cards in enumerate(self.whole.cards.each):
                for r, number in enumerate(self.numbers[player]):
                    if number:
                        cards.rounds[r].require_valid_index(number, seen[:, r, player].max())

    def table_ranges(self, into: SlotLayout, acts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Map ranges of this part's strategy table to ranges of another table, so that decisions can be copied.

        The result has three arrays with a number for each decision: where its entries begin in this part's table, where
        they begin in the table of `into`, and their number.
        """
        nodes = self.betting.nodes
        theirs = np.array(into.offset if isinstance(into, AbstractPart) else np.zeros_like(self.offset))
        ahead = (np.array(self.offset) - theirs)[nodes.actor[acts], nodes.round[acts]]
        begin = self.first[acts]
        return begin, into.first[acts] + nodes.children[acts] * ahead, self.first[acts + 1] - begin

    def slice_in_game(self, node: int) -> slice:
        """Return the slice of the whole game's strategy table that holds one decision of this part."""
        nodes = self.betting.nodes
        player, r, n = int(nodes.actor[node]), int(nodes.round[node]), int(nodes.children[node])
        start = int(self.whole.first[node]) + n * self.offset[player][r]
        return slice(start, start + n * self.numbers[player][r])


def join_parts(
    parts: Sequence[tuple[AbstractPart, npt.NDArray[Any]]], into: SlotLayout, table: npt.NDArray[Any]
) -> None:
    """Merge the strategy tables of all parts of an abstract game into one table.

    The table is that of the whole game or of a larger part. The parts are read side by side, decision by decision. So
    tables that are mapped from files are read and written once, and need not fit in memory.
    """
    acts = np.flatnonzero(into.betting.nodes.actor >= 0)
    windows = np.unique(into.first[acts] // COPIED_SLOTS, return_index=True)[1].tolist()
    for start, end in zip(windows, [*windows[1:], len(acts)], strict=True):
        for part, mine in parts:
            begin, place, size = part.table_ranges(into, acts[start:end])
            copy_ranges(np.asarray(mine), begin, np.asarray(table), place, size)


def require_same_cards(game: Holdem, cards: CardAbstraction) -> None:
    """Check that a card abstraction fits the deck and the deal of a game.

    Raises AbstractionError otherwise.
    """
    if cards.identity.deal != Deal.from_game(game):
        raise AbstractionError(f"{cards.identity.name} is for other cards than {game.name}: build it for {game.name}")
