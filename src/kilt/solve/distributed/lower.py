"""Distributed CFR with several levels of workers, each of which solves some rounds of the game.

Each level solves some rounds of the game, and the level below it solves the following rounds. This is [Brown15 §3] for
more than one level. A blade is to the blades below it what the head is to the first level. It samples boards of its
classes, passes over its own rounds and records the nodes at their end. From these nodes, play continues on each class m
of the next board, inside the class n, with a board drawn from the G(m,f,h) boards that are compatible with the hands h
and the board f; the value is the mean over these classes, weighted by |G(m,f,h)|. Updates of the tables of a lower
class have both weights, |F(n,h)| and |G(m,f,h)|; on a third level, also that of the third board, and so on. If `boards`
sets the number of boards per deal, each of them continues with one next board, drawn from all remaining ones, and the
blade that has its class continues.

Messages contain everything that a lower blade needs for a deal, including the keys of random numbers: results do not
depend on the assignment of classes to blades.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kilt.abstraction.abstract_game import AbstractPart, join_parts
from kilt.arrays import Array, ByteArray, IntArray
from kilt.draws import splitmix_word
from kilt.engines import Worker
from kilt.solve import external_kernels as walks
from kilt.solve.distributed import blades_kernels as kernels
from kilt.solve.distributed.blades import (
    BoardClass,
    ClassOwner,
    ClassWorker,
    OwnedClass,
    R,
    cut_off,
    most_nodes_visited,
    select_starts,
)
from kilt.solve.distributed.partition import Partition
from kilt.solve.distributed.shared import Batch, BatchResult, BoardDraw, SharedGame, StrategyPart
from kilt.solve.external import RegretTable, WalkWorkspace
from kilt.solve.external_kernels import PLACE, Exits, Records, Singles, Starts, Words

APART = 1 << 32  # first number of the keys for next boards


class LowerRequest(NamedTuple):
    """A request to workers of the next level, in a distributed run, to continue deals in their rounds.

    It has the nodes at which the previous level has stopped, for deals with boards of one class.
    """

    path: tuple[int, ...]  # path of the class
    key: np.uint64
    starts: Starts
    seen: ByteArray  # [deal, card] hands followed by the board
    board: IntArray  # [deal] number of the board: see `Partition.next_boards`
    share: Singles  # [deal] weight
    likely: Singles  # [deal] see `BoardDraw`


class LowerResult(NamedTuple):
    """A worker's answer to the level above in a distributed run: sums of values, and a count of nodes."""

    sums: list[IntArray]  # [message][start] Σ |G(m,f,h)| · v over classes
    decisions: int
    visits: int


class PendingDeals(NamedTuple):
    """The data about deals that a worker keeps until the next level answers."""

    regrets: RegretTable
    drawn: BoardDraw
    begin: IntArray  # [deal + 1] first entry of each deal in `queue`
    place: IntArray  # [start below] the entry that waits for its value
    queue: Records
    onward: LowerRequest
    decisions: int
    visits: int


class LowerWorkers:
    """The next level of workers in a distributed run, which play the rounds after those of another worker."""

    def __init__(self, partition: Partition, level: int, workers: Sequence[Worker]) -> None:
        self.partition, self.level, self.workers = partition, level, workers
        self._most = most_nodes_visited(partition, partition.end_round(level - 1), partition.end_round(level))

    def descend(
        self,
        game: SharedGame,
        own: OwnedClass,
        workspace: WalkWorkspace,
        drawn: BoardDraw,
        seen: tuple[Words, Singles],
        weight: float = 0.0,
    ) -> PendingDeals:
        """Play deals through the rounds of one level, and record where the next level must continue.

        The cards, shares and tallies of the deals are in `workspace`. `seen` is that of `look_up_deals`.
        """
        deals = len(drawn.ways)
        most = deals * self._most
        queue, begin = np.empty(most, dtype=PLACE), np.empty(deals + 1, dtype=np.int64)
        node, player = np.empty(most, dtype=np.uint32), np.empty(most, dtype=np.int8)
        exits = Exits(np.empty(deals + 1, dtype=np.int64), node, player, np.empty(most, dtype=np.int64))
        left, decisions, end = walks.descend_deals(
            drawn.key,
            drawn.batch.number * game.batch,
            own.regrets.rules,
            drawn.batch.starts,
            *seen,
            workspace.share,
            workspace.tally,
            *own.regrets.views,
            game.options.prune,
            weight,
            walks.NOBODY,
            queue,
            begin,
            exits,
        )
        known = 2 * workspace.held + workspace.sizes[self.partition.end_round(self.level - 1)]
        onward = LowerRequest(
            own.path,
            drawn.key,
            Starts(exits.begin, node[:left].copy(), player[:left].copy()),
            workspace.cards[:deals, :known].astype(np.int8),
            drawn.board,
            workspace.share[:deals].copy(),
            drawn.likely,
        )
        kept = begin, exits.place[:left].copy(), queue[:end].copy()
        return PendingDeals(own.regrets, drawn, *kept, onward, decisions, end)

    def continue_deals(
        self, game: SharedGame, number: int, passing: Sequence[PendingDeals]
    ) -> tuple[list[IntArray], int, int]:
        """Have the next level of workers finish some deals, and compute the values of these deals.

        Returns the results of `ascend` for each of `passing`, and the numbers of decisions and nodes visited in both
        passes.
        """
        answers = [worker.ask("work", number, [one.onward for one in passing]) for worker in self.workers]
        found: list[LowerResult] = [answer.get() for answer in answers]
        whole, sums = 1 if game.boards else self.partition.next_ways(self.level + 1), []
        for place, one in enumerate(passing):
            below = sum((answer.sums[place] for answer in found), np.zeros(len(one.place), dtype=np.int64))
            sums.append(self.ascend(game, one, (below / (kernels.FINE * whole)).astype(np.float32)))
        decisions = sum(one.decisions for one in passing) + sum(answer.decisions for answer in found)
        return sums, decisions, sum(one.visits for one in passing) + sum(answer.visits for answer in found)

    def ascend(self, game: SharedGame, one: PendingDeals, value: Singles) -> IntArray:
        """Compute the values of deals at one level of workers from the next level's results.

        Returns the sum of weighted values for each starting node.
        """
        starts, below = one.drawn.batch.starts, one.onward.starts
        worth: Singles = np.empty(len(starts.node), dtype=np.float32)
        exits = Exits(below.begin, below.node, below.player, one.place)
        regret, _ = one.regrets.views
        pruned, share = game.options.prune, one.onward.share
        walks.ascend_deals(one.queue, one.begin, exits, value, share, regret, pruned, walks.NOBODY, starts, worth)
        sums = np.zeros(len(starts.node), dtype=np.int64)
        kernels.add_values(starts.begin, one.drawn.ways, worth, sums)
        return sums

    def ping(self, batch: Batch) -> None:
        """Send an empty message to the next level of workers, to measure the latency of messages."""
        for answer in [worker.ask("ping", batch) for worker in self.workers]:
            answer.get()

    def map_average(self, work: Callable[[StrategyPart], R], own: OwnedClass, upper: Array, threads: int) -> list[R]:
        """Have the next level of workers apply a function to the average strategy, and collect the results.

        `work` is the function. See `LowerWorker.map_average`.
        """
        partition, path = self.partition, own.path
        slots, mine = partition.playable_part(*path), own.regrets.integer_strategy(upper.dtype, threads)
        shares = np.zeros(slots.slots, dtype=upper.dtype)
        join_parts(
            [(partition.playable_part(*path[:-1]), np.array(upper)), (partition.part(*path), mine)], slots, shares
        )
        answers = [worker.ask("map_average", work, path, shares) for worker in self.workers]
        return [found for answer in answers for found in answer.get()]


class MiddleWorker(ClassWorker):
    """A first-level worker of a distributed run with several levels, which passes later rounds on."""

    def __init__(self, game: SharedGame, labels: Sequence[int], threads: int, below: Sequence[Worker]) -> None:
        super().__init__(game, labels, threads)
        self.below = LowerWorkers(self.partition, 1, below)

    def work(self, batch: Batch) -> BatchResult:
        """Run CFR on a batch of deals in this worker's rounds, while the next level plays later rounds."""
        began, game = perf_counter(), self.game
        batch, hands, weight = self.unpack(batch)
        items = [(own, sample) for sample in range(1 if game.boards else game.samples) for own in self.own]
        walked = self._pool.map(lambda item: self._down(item[0], item[1], hands, batch, weight), items)
        passing = [one for some in walked for one in some]
        found, decisions, visits = self.below.continue_deals(game, batch.number, passing)
        sums = np.zeros(len(batch.starts.node), dtype=np.int64)
        for one, mine in zip(passing, found, strict=True):
            sums[one.drawn.which] += mine
        seconds = perf_counter() - began
        work = np.zeros(self.classes)
        work[[own.label for own in self.own]] = seconds / len(self.own)
        return BatchResult(sums, seconds, decisions, visits, work)

    def _down(self, own: BoardClass, sample: int, hands: IntArray, batch: Batch, weight: float) -> list[PendingDeals]:
        """Simulate a batch of deals with boards of one class through this worker's rounds."""
        workspace = self._workspaces.get()
        try:
            draws = self.sample_boards(own, sample, workspace, hands, batch)
            return [self.descend(own, workspace, drawn, weight) for drawn in draws]
        finally:
            self._workspaces.put(workspace)

    def descend(self, own: BoardClass, workspace: WalkWorkspace, drawn: BoardDraw, weight: float = 0.0) -> PendingDeals:
        """Play sampled deals through this worker's rounds, and record where the next level must continue.

        The cards are in `workspace`.
        """
        seen = self.prepare_deals(own, workspace, drawn.ways)
        return self.below.descend(self.game, own, workspace, drawn, seen, weight)

    def ping(self, batch: Batch) -> BatchResult:
        """Answer an empty message after the next level has answered it, to measure the latency of messages."""
        self.below.ping(batch)
        return super().ping(batch)

    def map_average(self, work: Callable[[StrategyPart], R], trunk: Array) -> list[R]:
        """Apply a function to the average strategy on each class of this worker's boards.

        `work` is the function.
        """
        return [found for own in self.own for found in self.below.map_average(work, own, trunk, self.threads)]


class LowerClass(NamedTuple):
    """A class of similar boards of a later round, with its regrets, in a distributed run with several levels."""

    path: tuple[int, ...]
    number: int  # number among all classes of its level
    part: AbstractPart
    regrets: RegretTable


class LowerWorker(ClassOwner):
    """A worker of the second or a later level of a distributed run.

    It continues the deals of a worker of the level above. `classes` lists its classes for each level, from the first
    on: their numbers inside each class of the level above. If there are blades `below` this one, they have the rounds
    after its own.
    """

    def __init__(
        self, game: SharedGame, classes: Sequence[Sequence[int]], threads: int = 1, below: Sequence[Worker] = ()
    ) -> None:
        self.partition, self.level, self.own = game.open(), len(classes), list[LowerClass]()
        self.below = LowerWorkers(self.partition, self.level, below) if self.level < self.partition.depth else None
        for path in product(*classes):
            rules, part = self.own[0].regrets.rules if self.own else None, self.partition.part(*path)
            regrets = RegretTable(part, game.options, rules)
            cut_off(regrets.rules, part, self.partition.end_round(self.level))
            self.own.append(LowerClass(path, self.partition.number(*path), part, regrets))
        self._next = {label: self.partition.next_boards(label, self.level) for label in classes[0]}
        _, sets = self._next[classes[0][0]]
        self._bits = np.bitwise_or.reduce(np.uint64(1) << sets.astype(np.uint64), axis=1)  # [set]
        self._ways = self.partition.next_ways(self.level)
        super().__init__(game, self.own, threads)
        self.begin(game.batch, game.samples, game.boards)

    def begin(self, batch: int, samples: int, boards: int) -> None:
        """Set all regrets and counts to 0, and allocate memory for batches of deals.

        A batch has `batch` deals; `samples` and `boards` say how many boards are sampled, as in `SharedGame`.
        """
        rounds = range(self.partition.end_round(self.level - 1), self.partition.end_round(self.level))
        self.clear(batch, samples, boards, self.partition.head, rounds)

    def work(self, number: int, messages: list[LowerRequest]) -> LowerResult:
        """Run CFR in this worker's rounds, on deals that workers of the earlier rounds pass on."""
        game, weight = self.game, self.game.excess_weight(number)
        # Arrays from messages are read-only, and kernels would be compiled once more for read-only arrays.
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
                first, *inner = own.path
                own.regrets.discount(game.seed_for(number, first, *(APART + one for one in inner)), self.threads)

        def walk(own: LowerClass) -> list[tuple[int, BoardDraw, PendingDeals | tuple[IntArray, int, int]]]:
            workspace, found = self._workspaces.get(), []
            try:
                for place, one in enumerate(messages):
                    if one.path == own.path[:-1]:
                        some, drawn = self._draw(own, workspace, one, number)
                        if len(drawn.ways):
                            found.append((place, drawn, self.walk_over(own, workspace, some, drawn, weight)))
            finally:
                self._workspaces.put(workspace)
            return found

        sums, decisions, visits = [np.zeros(len(one.starts.node), dtype=np.int64) for one in messages], 0, 0
        passing = list[tuple[int, PendingDeals]]()
        for place, drawn, found in (one for some in self._pool.map(walk, self.own) for one in some):
            if isinstance(found, PendingDeals):
                passing.append((place, found))
            else:
                mine, met, seen = found
                sums[place][drawn.which] += mine
                decisions, visits = decisions + met, visits + seen
        if self.below:
            above, decisions, visits = self.below.continue_deals(game, number, [one for _, one in passing])
            for (place, one), mine in zip(passing, above, strict=True):
                sums[place][one.drawn.which] += mine
        return LowerResult(sums, decisions, visits)

    def _draw(
        self, own: LowerClass, workspace: WalkWorkspace, one: LowerRequest, number: int
    ) -> tuple[LowerRequest, BoardDraw]:
        """Sample the next cards for some deals so that the boards belong to a class.

        Return the deals that have such a board.
        """
        game, deals, spread = self.game, len(one.board), bool(self.game.boards)
        ways, board = np.empty((2, deals), dtype=np.int64)
        labels, sets = self._next[own.path[0]]
        inner = own.path[-1]
        with np.errstate(over="ignore"):
            drawing = np.uint64(splitmix_word(one.key, np.uint64(APART + (0 if spread else 1 + inner))))
            walking = np.uint64(splitmix_word(one.key, np.uint64(2 * APART + inner)))
        kernels.draw_next(
            drawing,
            number * game.batch,
            workspace.deck,
            one.seen,
            one.board,
            labels,
            sets,
            self._bits,
            own.number,
            spread,
            one.likely,
            workspace.cards[:deals],
            ways,
            workspace.tally,
            board,
        )
        walked = np.flatnonzero((ways > 0) & (one.share > 0) & (np.diff(one.starts.begin) > 0))
        picked, index = select_starts(one.starts, walked)
        for array in (workspace.cards, workspace.tally):
            array[: len(walked)] = array[walked]
        likely = one.likely if spread else one.likely * (ways / self._ways).astype(np.float32)
        some = one._replace(starts=picked, share=one.share[walked])
        return some, BoardDraw(Batch(number, picked), index, ways[walked], walking, board[walked], likely[walked])

    def walk_over(
        self, own: LowerClass, workspace: WalkWorkspace, one: LowerRequest, drawn: BoardDraw, weight: float = 0.0
    ) -> PendingDeals | tuple[IntArray, int, int]:
        """Run CFR on deals in this worker's rounds, with sampled boards of one class.

        The cards are in `workspace`. Each deal's values and updates are weighted by how many boards of the class are
        possible. Returns the result of `ClassOwner.run_deals`; or the state after the first pass if there are blades
        below.
        """
        deals, part, ways = len(drawn.ways), own.part, drawn.ways
        bucket, outcome = workspace.look_up_deals(deals, part)
        part.require_own_buckets(bucket, (ways > 0) & (one.share > 0))
        workspace.share[:deals] = one.share * (ways / (1 if self.game.boards else self._ways))
        if self.below:
            return self.below.descend(self.game, own, workspace, drawn, (bucket, outcome), weight)
        first = drawn.batch.number * self.game.batch
        return self.run_deals(own.regrets, workspace, one.starts, bucket, outcome, ways, drawn.key, first, weight)

    def ping(self, batch: Batch) -> None:
        """Exchange empty messages with the next level of workers, to measure the latency of messages."""
        if self.below:
            self.below.ping(batch)

    def map_average(self, work: Callable[[StrategyPart], R], path: tuple[int, ...], upper: Array) -> list[R]:
        """Apply a function to the average strategy on each class of this worker's boards.

        See `ClassWorker.map_average`. Only classes inside the class with the given `path` count. `upper` [slot] is the
        strategy of that class and of all levels above.
        """
        partition, inside = self.partition.real, [own for own in self.own if own.path[:-1] == path]
        if self.below:
            return [found for own in inside for found in self.below.map_average(work, own, upper, self.threads)]

        def some(own: LowerClass) -> R:
            slots, mine = partition.playable_part(*own.path), own.regrets.integer_strategy(upper.dtype)
            shares = np.zeros(slots.slots, dtype=upper.dtype)
            join_parts([(partition.playable_part(*path), np.array(upper)), (own.part, mine)], slots, shares)
            return work(StrategyPart(slots, shares, lambda boards: partition.owns(boards, *own.path)))

        return list(self._pool.map(some, inside))
