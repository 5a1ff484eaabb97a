"""Blades below blades: a class of boards ends with its round, and classes of the next board go on [Brown15 §3].

A blade of the first level is then to the blades below it what the head is to it. It draws boards of its classes, walks
over its own rounds and notes where walks leave them; each class m of the next board, inside the class n, goes on with a
board of its own, drawn from the G(m,f,h) that the hands h and the board f leave; what that is worth is the mean over
these classes, weighted by |G(m,f,h)|. What is added to the tables of a class below carries both weights, |F(n,h)| and
|G(m,f,h)|. Where `boards` says how many boards a deal has, each of them goes on with one next board, drawn from all
that are left: whoever has its class walks on.

A blade below is told all that it has to know of a deal, and draws from keys that it is told: what is found does not
depend on who has which class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import comb
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kilt.abstraction.abstract_game import join_parts
from kilt.arrays import Array, ByteArray, IntArray
from kilt.draws import numbered
from kilt.engines import Worker
from kilt.solve import external_kernels as walks
from kilt.solve.distributed import blades_kernels as kernels
from kilt.solve.distributed.blades import (
    Batch,
    BatchResult,
    BoardClass,
    BoardDraw,
    Child,
    ClassOwner,
    R,
    SharedGame,
    StrategyPart,
    places_in,
)
from kilt.solve.distributed.partition import Partition
from kilt.solve.external import RegretTable, WalkWorkspace
from kilt.solve.external_kernels import PLACE, Exits, Records, Singles, Starts

APART = 1 << 32  # from which on keys are numbered that next boards are drawn from


class Onward(NamedTuple):
    """A message to a blade below: where walks over some deals, with a board of a class each, left its rounds."""

    label: int  # the class
    key: np.uint64
    starts: Starts
    seen: ByteArray  # [deal, card] hands, and the board
    board: IntArray  # [deal] which of the boards of the class it is
    share: Singles  # [deal] what it weighs
    likely: Singles  # [deal] see `BoardDraw`


class LowerResult(NamedTuple):
    """The answer of a blade below."""

    sums: list[IntArray]  # [message][start] Σ |G(m,f,h)| · v over classes
    decisions: int
    visits: int


class Passing(NamedTuple):
    """State of a blade between its two passes over deals with boards of one class."""

    own: BoardClass
    drawn: BoardDraw
    begin: IntArray  # [deal + 1] where the places of each deal begin in `queue`
    place: IntArray  # [start below] the place that waits for its value
    queue: Records
    onward: Onward
    decisions: int
    visits: int


def next_ways(partition: Partition) -> int:
    """Σ |G(m,f,h)|: number of sets of cards that make the next board, whatever was dealt."""
    rules = partition.abstract.game.rules
    board, following = rules.board_size(partition.trunk), rules.board_size(partition.later)
    return comb(rules.deck.size - 2 * rules.hole_cards - board, following - board)


class MiddleChild(Child):
    """A blade of the first level with blades below it, which share the classes of the next board inside its own."""

    def __init__(self, game: SharedGame, labels: Sequence[int], threads: int, below: Sequence[Worker]) -> None:
        super().__init__(game, labels, threads)
        self.below = below
        self._most = places_in(self.partition, self.partition.trunk, self.partition.later)

    def work(self, batch: Batch) -> BatchResult:
        """Walk over the rounds of this blade, on boards of all its classes; let the blades below go on; and back up."""
        began, game = perf_counter(), self.game
        batch, hands, weight = self.received(batch)
        items = [(own, sample) for sample in range(1 if game.boards else game.samples) for own in self.own]
        walked = self._pool.map(lambda item: self._down(item[0], item[1], hands, batch, weight), items)
        passing = [one for some in walked for one in some]
        answers = [worker.ask("work", batch.number, [one.onward for one in passing]) for worker in self.below]
        found: list[LowerResult] = [answer.get() for answer in answers]
        whole = 1 if game.boards else next_ways(self.partition)
        sums = np.zeros(len(batch.starts.node), dtype=np.int64)
        for number, one in enumerate(passing):
            below = sum((answer.sums[number] for answer in found), np.zeros(len(one.place), dtype=np.int64))
            sums[one.drawn.which] += self.ascend(one, (below / (kernels.FINE * whole)).astype(np.float32))
        decisions = sum(one.decisions for one in passing) + sum(answer.decisions for answer in found)
        visits = sum(one.visits for one in passing) + sum(answer.visits for answer in found)
        seconds = perf_counter() - began
        work = np.zeros(self.classes)
        work[[own.label for own in self.own]] = seconds / len(self.own)
        return BatchResult(sums, seconds, decisions, visits, work)

    def _down(self, own: BoardClass, sample: int, hands: IntArray, batch: Batch, weight: float) -> list[Passing]:
        """First pass over a batch with boards of one class."""
        workspace = self._workspaces.get()
        try:
            draws = self.draws(own, sample, workspace, hands, batch)
            return [self.descend(own, workspace, drawn, weight) for drawn in draws]
        finally:
            self._workspaces.put(workspace)

    def descend(self, own: BoardClass, workspace: WalkWorkspace, drawn: BoardDraw, weight: float = 0.0) -> Passing:
        """First pass over deals with the cards in `workspace`."""
        deals = len(drawn.ways)
        bucket, outcome = self.settled(own, workspace, drawn.ways)
        most = deals * self._most
        queue, begin = np.empty(most, dtype=PLACE), np.empty(deals + 1, dtype=np.int64)
        node, player = np.empty(most, dtype=np.uint32), np.empty(most, dtype=np.int8)
        exits = Exits(np.empty(deals + 1, dtype=np.int64), node, player, np.empty(most, dtype=np.int64))
        left, decisions, end = walks.descend_deals(
            drawn.key,
            drawn.batch.number * self.game.batch,
            own.regrets.rules,
            drawn.batch.starts,
            bucket,
            outcome,
            workspace.share,
            workspace.tally,
            *own.regrets.views,
            self.game.options.prune,
            weight,
            walks.NOBODY,
            queue,
            begin,
            exits,
        )
        known = 2 * workspace.held + own.boards.shape[1]
        onward = Onward(
            own.label,
            drawn.key,
            Starts(exits.begin, node[:left].copy(), player[:left].copy()),
            workspace.cards[:deals, :known].astype(np.int8),
            drawn.board,
            workspace.share[:deals].copy(),
            drawn.likely,
        )
        kept = begin, exits.place[:left].copy(), queue[:end].copy()
        return Passing(own, drawn, *kept, onward, decisions, end)

    def ascend(self, one: Passing, value: Singles) -> IntArray:
        """Second pass: [start] the sums of |F(n,h)| · v, from the values [start below] of what follows."""
        starts, below = one.drawn.batch.starts, one.onward.starts
        worth: Singles = np.empty(len(starts.node), dtype=np.float32)
        exits = Exits(below.begin, below.node, below.player, one.place)
        regret, _ = one.own.regrets.views
        pruned, share = self.game.options.prune, one.onward.share
        walks.ascend_deals(one.queue, one.begin, exits, value, share, regret, pruned, walks.NOBODY, starts, worth)
        sums = np.zeros(len(starts.node), dtype=np.int64)
        kernels.add_values(starts.begin, one.drawn.ways, worth, sums)
        return sums

    def echo(self, batch: Batch) -> BatchResult:
        """An answer to a batch without any work, by the blades below too, to measure how long messages take."""
        for answer in [worker.ask("echo", batch) for worker in self.below]:
            answer.get()
        return super().echo(batch)

    def over(self, work: Callable[[StrategyPart], R], trunk: Array) -> list[R]:
        """What `work` makes of the average strategy on boards of each class of the blades below, one after another."""
        found: list[R] = []
        for own in self.own:
            slots, mine = self.partition.played(own.label), own.regrets.quantised(trunk.dtype, self.threads)
            shares = np.zeros(slots.slots, dtype=trunk.dtype)
            join_parts([(self.partition.head, np.array(trunk)), (own.part, mine)], slots, shares)
            for answer in [worker.ask("over", work, own.label, shares) for worker in self.below]:
                found += answer.get()
        return found


class LowerClass(NamedTuple):
    """A class of next boards on a blade below."""

    label: int  # the class of the first level that it is inside of
    inner: int
    regrets: RegretTable

    @property
    def path(self) -> tuple[int, ...]:
        """Both."""
        return self.label, self.inner


class LowerChild(ClassOwner):
    """A blade below another: the owner of some classes of next boards, inside each class of the blade above."""

    def __init__(self, game: SharedGame, labels: Sequence[int], inner: Sequence[int], threads: int = 1) -> None:
        self.partition, self.own = game.open(), list[LowerClass]()
        for label, one in product(labels, inner):
            rules = self.own[0].regrets.rules if self.own else None
            self.own.append(LowerClass(label, one, RegretTable(self.partition.part(label, one), game.options, rules)))
        self._next = {label: self.partition.next_boards(label) for label in labels}
        self._ways = next_ways(self.partition)
        super().__init__(game, self.own, threads)
        self.begin(game.batch, game.samples, game.boards)

    def begin(self, batch: int, samples: int, boards: int) -> None:
        """Clear all tables: see `ClassOwner.clear`."""
        self.clear(batch, samples, boards, self.partition.head)

    def work(self, number: int, messages: list[Onward]) -> LowerResult:
        """Walk on from where the blade above left its rounds, on next boards of all classes of this blade."""
        game, weight = self.game, self.game.weight(number)
        # What has travelled cannot be written to, and kernels would be compiled once more for that.
        messages = [
            one._replace(
                starts=Starts(*map(np.array, one.starts)),
                seen=np.array(one.seen),
                board=np.array(one.board),
                share=np.array(one.share),
                likely=np.array(one.likely),
            )
            for one in messages
        ]
        if game.discounts(number):
            for own in self.own:
                own.regrets.discount(game.key(number, own.label, APART + own.inner), self.threads)

        def walk(own: LowerClass) -> list[tuple[int, IntArray, int, int]]:
            workspace = self._workspaces.get()
            try:
                return [
                    (place, *self._walk(own, workspace, one, number, weight))
                    for place, one in enumerate(messages)
                    if one.label == own.label and len(one.starts.node)
                ]
            finally:
                self._workspaces.put(workspace)

        sums, decisions, visits = [np.zeros(len(one.starts.node), dtype=np.int64) for one in messages], 0, 0
        for walked in self._pool.map(walk, self.own):
            for place, mine, met, seen in walked:
                sums[place] += mine
                decisions, visits = decisions + met, visits + seen
        return LowerResult(sums, decisions, visits)

    def _walk(
        self, own: LowerClass, workspace: WalkWorkspace, one: Onward, number: int, weight: float
    ) -> tuple[IntArray, int, int]:
        """Walk over some deals with next boards of one class; returns as `Child.walk_over` does."""
        game, deals, spread = self.game, len(one.board), bool(self.game.boards)
        ways, first = np.empty(deals, dtype=np.int64), number * game.batch
        labels, sets = self._next[own.label]
        bits = np.bitwise_or.reduce(np.uint64(1) << sets.astype(np.uint64), axis=1)
        with np.errstate(over="ignore"):
            drawing = np.uint64(numbered(one.key, np.uint64(APART + (0 if spread else 1 + own.inner))))
            walking = np.uint64(numbered(one.key, np.uint64(2 * APART + own.inner)))
        kernels.draw_next(
            drawing,
            first,
            workspace.deck,
            one.seen,
            one.board,
            labels,
            sets,
            bits,
            own.inner,
            spread,
            one.likely,
            workspace.cards[:deals],
            ways,
            workspace.tally,
        )
        return self.walk_over(own, workspace, one, ways, walking, first, weight)

    def walk_over(
        self,
        own: LowerClass,
        workspace: WalkWorkspace,
        one: Onward,
        ways: IntArray,
        key: np.uint64,
        first: int = 0,
        weight: float = 0.0,
    ) -> tuple[IntArray, int, int]:
        """Walk over deals with the cards in `workspace`; values and updates are weighted by `ways` [deal]."""
        deals, part = len(ways), self.partition.part(*own.path)
        bucket, outcome = workspace.settle(deals, part)
        part.require_own(bucket, (ways > 0) & (one.share > 0))
        workspace.share[:deals] = one.share * (ways / (1 if self.game.boards else self._ways))
        return self.walked(own.regrets, workspace, one.starts, bucket, outcome, ways, key, first, weight)

    def echo(self, batch: Batch) -> None:
        """No answer, to measure how long messages take."""

    def over(self, work: Callable[[StrategyPart], R], label: int, upper: Array) -> list[R]:
        """What `work` makes of the average strategy on boards of each class inside another: see `Child.over`.

        `upper` [slot] is that of the trunk and of the class of the first level.
        """
        partition = self.partition.real

        def some(own: LowerClass) -> R:
            path = own.path
            slots, mine = partition.played(*path), own.regrets.quantised(upper.dtype)
            shares = np.zeros(slots.slots, dtype=upper.dtype)
            join_parts([(partition.played(label), np.array(upper)), (partition.part(*path), mine)], slots, shares)
            return work(StrategyPart(slots, shares, lambda boards: partition.owns(boards, *path)))

        return list(self._pool.map(some, [own for own in self.own if own.label == label]))
