"""Distributed CFR: a head process plays the first rounds of each deal, and workers play the later ones.

The paper calls the workers blades [Brown15 algorithm 4].

An iteration deals two private hands h. The head passes over the first rounds, called the *trunk*. At the end of the
trunk, play continues on each class of boards n with a board of that class, drawn from the F(n,h) boards that are
compatible with the hands; the value is the mean over classes, weighted by |F(n,h)|. The head makes two passes. In the
first, it goes down and records the nodes at the end of the trunk. The workers, called children, compute the values of
these nodes. In the second pass, the head takes the values up. Random choices are made in the first pass and stored, so
that the second pass uses the same ones.

A child meets each pair of hands once per class, however few compatible boards the class has. Uniform sampling of boards
would meet them in proportion to |F(n,h)|; the child therefore weights updates of its own tables by |F(n,h)|. Algorithm
4 as printed lacks this weight: it is biased, and is implemented to show the size of the bias (`SharedGame.weighted`).

With many classes, the trunk learns from few deals for the same work. A deal may therefore have fewer boards than there
are classes: the boards are spread evenly over all possible ones, so that a class gets |F(n,h)| / Σ |F(n,h)| of them on
average. That replaces the weight; all boards then count the same. One board per deal is ordinary external sampling; as
many boards as classes is similar to algorithm 4.

Messages are about a *batch* of deals. Children deal the private hands themselves, from the numbers of the deals; the
message lists the nodes at the end of the trunk. Children answer with integers, the sums of |F(n,h)| · v over their
classes. The tables are therefore the same to the bit, however classes are assigned to blades.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import comb
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.abstract_game import SlotLayout, join_parts
from kilt.arrays import Array, ByteArray, IntArray
from kilt.games.game import CHANCE
from kilt.solve import external_kernels as walks
from kilt.solve.distributed import blades_kernels as kernels
from kilt.solve.distributed.partition import Partition
from kilt.solve.distributed.shared import Batch, BatchResult, BoardDraw, SharedGame, StrategyPart
from kilt.solve.external import FULL, HALVED, RegretTable, SamplingOptions, WalkWorkspace, priced_rounds
from kilt.solve.external_kernels import BEYOND, PLACE, Exits, Records, Singles, Starts, Words

KIND, SHARES = "regrets and counts of a class of boards", "strategy of a class of boards"
R = TypeVar("R")


class PendingBatch(NamedTuple):
    """The head process's data about a batch of deals, kept until the workers of a distributed run answer."""

    batch: Batch
    begin: IntArray  # [deal + 1] first entry of each deal in `queue`
    place: IntArray  # [start] the entry that waits for its value
    queue: Records  # the nodes that walks reached


class Head:
    """The head process of a distributed run, which solves the first rounds.

    For each batch of deals, it makes one pass before and one pass after the workers solve the later rounds.
    """

    def __init__(self, game: SharedGame, partition: Partition) -> None:
        self.game, self.partition = game, partition
        part = partition.head
        self.regrets = RegretTable(part, game.options)
        self.rules = self.regrets.rules
        self.decisions = self.visits = 0
        cut_off(self.rules, part, partition.trunk)
        priced = priced_rounds(game.options, range(partition.trunk))
        self._workspace = WalkWorkspace(part, game.batch, priced=priced)
        self._most = self.most_nodes(self.partition)

    @staticmethod
    def most_nodes(partition: Partition) -> int:
        """Return an upper bound on the number of nodes that a deal visits in the first rounds.

        The nodes visited for both players are added.
        """
        return most_nodes_visited(partition, 0, partition.trunk)

    def descend(self, number: int) -> PendingBatch:
        """Play a batch of deals through the first rounds, and record where workers must continue.

        Returns the message to the workers, and the state to keep until their answer.
        """
        game, deals = self.game, self.game.batch
        if game.discounts(number):
            self.regrets.discount(game.seed_for(number))
        if game.halves(number):
            self.regrets.halve(HALVED)
        bucket, outcome = self._workspace.deal(game.seed_for(), number * deals, deals)
        # Pages that are never written to cost nothing. Zeros, because checkpoints contain entries that walks do not
        # fill.
        queue = np.zeros(deals * self._most, dtype=PLACE)
        begin, most = np.empty(deals + 1, dtype=np.int64), deals * self._most
        node, player = np.empty(most, dtype=np.uint32), np.empty(most, dtype=np.int8)
        exits = Exits(np.empty(deals + 1, dtype=np.int64), node, player, np.empty(most, dtype=np.int64))
        found, _, end = walks.descend_deals(
            game.seed_for(),
            number * deals,
            self.rules,
            self._workspace.starts,
            bucket,
            outcome,
            self._workspace.share,
            self._workspace.tally,
            *self.regrets.views,
            game.options.prune,
            game.excess_weight(number),
            walks.NOBODY,
            queue,
            begin,
            exits,
        )
        self.visits += end
        starts = Starts(exits.begin, node[:found].copy(), player[:found].copy())
        return PendingBatch(Batch(number, starts), begin, exits.place[:found].copy(), queue[:end].copy())

    def ascend(self, sent: PendingBatch, sums: IntArray) -> None:
        """Update the first rounds for a batch of deals with the values that workers returned.

        `sums` has |F(n,h)| · v for each start.
        """
        starts = sent.batch.starts
        value = (sums / (kernels.FINE * self.game.total_weight(self.partition.ways))).astype(np.float32)
        exits = Exits(starts.begin, starts.node, starts.player, sent.place)
        regret, _ = self.regrets.views
        root, share, scratch = self._workspace.starts, self._workspace.share, self._workspace.value
        pruned = self.game.options.prune
        walks.ascend_deals(sent.queue, sent.begin, exits, value, share, regret, pruned, walks.NOBODY, root, scratch)


def cut_off(rules: walks.Rules, slots: SlotLayout, later: int) -> None:
    """End a betting tree before a given round, because other processes play that round."""
    nodes, records = slots.betting.nodes, rules.nodes
    beyond = (records["count"] > 0) & (records["round"] >= later)
    follows = np.where(nodes.actor == CHANCE, nodes.first_child, np.arange(len(records)))
    records["link"][beyond], records["count"][beyond], records["actor"][beyond] = follows[beyond], 0, BEYOND


def most_nodes_visited(partition: Partition, first: int, later: int) -> int:
    """Return an upper bound on the number of nodes that a deal visits in some rounds.

    The nodes visited for both players are added. The rounds are those from `first` to before `later`.
    """
    rounds = partition.abstract.betting.nodes.round
    return 2 * int(((rounds >= first) & (rounds < later)).sum()) + 2


class OwnedClass(Protocol):
    """A class of similar boards in a distributed run, whose regrets one worker stores and updates."""

    @property
    def path(self) -> tuple[int, ...]:
        """The path of this class of boards: its number on each level of workers.

        Each is the number of the class on its level, within the class of the level above.
        """

    @property
    def regrets(self) -> RegretTable:
        """The regrets and action counts on this class of boards."""


class ClassOwner:
    """Base class of the workers of a distributed run, each of which owns some classes of boards."""

    def __init__(self, game: SharedGame, own: Sequence[OwnedClass], threads: int) -> None:
        self.game, self.owned, self.threads = game, own, threads
        self._pool = ThreadPoolExecutor(threads)

    def clear(self, batch: int, samples: int, boards: int, part: SlotLayout, rounds: range) -> None:
        """Set all regrets and counts to 0, and allocate memory for batches of deals.

        A batch has `batch` deals; `samples` and `boards` say how many boards are sampled, as in `SharedGame`. The
        worker covers `rounds` of the game.
        """
        self.game = replace(self.game, batch=batch, samples=samples, boards=boards)
        self._workspaces: SimpleQueue[WalkWorkspace] = SimpleQueue()
        for own in self.owned:
            own.regrets.clear()
        for _ in range(self.threads):
            self._workspaces.put(WalkWorkspace(part, batch, priced=priced_rounds(self.game.options, rounds)))

    def run_deals(
        self,
        regrets: RegretTable,
        workspace: WalkWorkspace,
        starts: Starts,
        bucket: Words,
        outcome: Singles,
        ways: IntArray,
        key: np.uint64,
        first: int,
        weight: float,
    ) -> tuple[IntArray, int, int]:
        """Run CFR on deals with boards of one class, and update its regrets.

        The deals are those from number `first` on, with the shares in `workspace`. Returns, for each start, the sum of
        values weighted by `ways` of its deal, and the numbers of decisions and nodes visited.
        """
        value: Singles = np.empty(len(starts.node), dtype=np.float32)
        decisions, visits = walks.walk_deals(
            key,
            first,
            regrets.rules,
            starts,
            bucket,
            outcome,
            workspace.share,
            workspace.tally,
            *regrets.views,
            self.game.options.prune,
            weight,
            walks.NOBODY,
            workspace.queue,
            value,
        )
        sums = np.zeros(len(starts.node), dtype=np.int64)
        kernels.add_values(starts.begin, ways, value, sums)
        return sums, decisions, visits

    def halve(self, number: int) -> None:
        """Halve large action counts that could overflow during the next batch of deals.

        See `SharedGame.halves`.
        """
        if self.game.halves(number):
            for own in self.owned:
                own.regrets.halve(HALVED, self.threads)

    def integer_strategies(self, dtype: npt.DTypeLike, counted: bool) -> list[tuple[tuple[int, ...], Array]]:
        """Return the average strategy on each class of boards, with probabilities rounded to integers.

        Each item is the path of a class and its strategy. See `RegretTable.integer_strategy`.
        """
        return [(own.path, own.regrets.integer_strategy(dtype, self.threads, counted=counted)) for own in self.owned]

    def write(self, folder: Path, dtype: npt.DTypeLike) -> None:
        """Write the average strategy of each class of boards to its own folder.

        See `DistributedMCCFR.write_average`.
        """
        for own in self.owned:
            inputs, shares = {"game": self.game.fingerprint}, own.regrets.integer_strategy(dtype, self.threads)
            artifact.write(class_folder(folder, *own.path), SHARES, {"shares": shares}, inputs=inputs)

    def save(self, folder: Path) -> None:
        """Write the regrets and counts of each class of boards to its own folder.

        Any worker can read them from there.
        """
        for own in self.owned:
            inputs = {"game": self.game.fingerprint}
            artifact.write(class_folder(folder, *own.path), KIND, {"table": own.regrets.table}, inputs=inputs)

    def restore(self, folder: Path) -> None:
        """Read the regrets and counts of this worker's classes of boards from their folders."""
        remedy = f"restore it from an undamaged copy, or delete {folder.parent} and its checkpoint to start again"
        for own in self.owned:
            place = class_folder(folder, *own.path)
            found = artifact.read(place, KIND, check=True, remedy=remedy)
            with artifact.damage_errors(place, remedy):
                own.regrets.table[:] = found.arrays["table"]
            own.regrets.halve(FULL, self.threads)  # for tables of a release in which counts could overflow


class BoardClass:
    """A class of similar boards in a distributed run, with its regrets."""

    def __init__(self, partition: Partition, label: int, options: SamplingOptions, rules: walks.Rules | None) -> None:
        self.label, self.part = label, partition.part(label)
        self.regrets = RegretTable(self.part, options, rules)
        cut_off(self.regrets.rules, self.part, partition.end_round(1))
        self.boards, deck = partition.boards_of(label), self.part.game.rules.deck.size
        self.bits = np.bitwise_or.reduce(np.uint64(1) << self.boards.astype(np.uint64), axis=1)
        self.counted = count_containing(self.boards, deck)
        self.below, self.upto = (
            count_containing(partition.boards[partition.labels < end], deck) for end in (label, label + 1)
        )

    @property
    def path(self) -> tuple[int, ...]:
        """The path of this class of boards: its number on each level of workers."""
        return (self.label,)


def count_containing(boards: ByteArray, deck: int) -> tuple[int, IntArray, IntArray]:
    """Count how many boards contain each set of cards, for use by `count_ways`.

    The result has the size of the boards, binomial coefficients, and the counts.
    """
    size = boards.shape[1]
    choose = np.array([[comb(n, k) for k in range(max(size, 4) + 2)] for n in range(deck + 1)])
    within = np.zeros(sum(comb(deck, k) for k in range(size + 1)), dtype=np.int64)
    kernels.count_within(boards, choose, within)
    return size, choose, within


def select_starts(starts: Starts, deals: IntArray) -> tuple[Starts, IntArray]:
    """Return the starting nodes of some deals, with their positions among all starting nodes."""
    most = int(np.diff(starts.begin)[deals].sum())
    node, player = np.empty(most, dtype=np.uint32), np.empty(most, dtype=np.int8)
    picked, index = Starts(np.empty(len(deals) + 1, dtype=np.int64), node, player), np.empty(most, dtype=np.int64)
    kernels.pick_starts(starts, deals, picked, index)
    return picked, index


class ClassWorker(ClassOwner):
    """A worker of a distributed run, which runs CFR in the later rounds on some classes of boards.

    Threads share the classes. If there are fewer classes than threads, several threads work on different boards of the
    same class, and occasionally one overwrites an update of another.
    """

    def __init__(self, game: SharedGame, labels: Sequence[int], threads: int = 1) -> None:
        self.partition = partition = game.open()
        self.ways, self.classes, self.own = partition.ways, partition.classes, list[BoardClass]()
        for label in labels:  # all classes have the same number of buckets, so they share the rules
            rules = self.own[0].regrets.rules if self.own else None
            self.own.append(BoardClass(partition, label, game.options, rules))
        super().__init__(game, self.own, threads)
        self.begin(game.batch, game.samples, game.boards)

    def begin(self, batch: int, samples: int, boards: int) -> None:
        """Reset all regrets and counts, and allocate memory for batches of deals.

        A batch has `batch` deals; `samples` and `boards` say how many boards are sampled, as in `SharedGame`.
        """
        self.clear(batch, samples, boards, self.own[0].part, range(self.partition.trunk, self.partition.end_round(1)))

    def work(self, batch: Batch) -> BatchResult:
        """Run CFR on a batch of deals in the later rounds, on all classes of boards of this worker."""
        began, game = perf_counter(), self.game
        batch, hands, weight = self.unpack(batch)

        def some(item: tuple[BoardClass, int]) -> tuple[IntArray, int, int, int, float]:
            own, sample = item
            start, workspace = perf_counter(), self._workspaces.get()
            try:
                found = self._walk(own, sample, workspace, hands, batch, weight)
            finally:
                self._workspaces.put(workspace)
            return (*found, own.label, perf_counter() - start)

        sums = np.zeros(len(batch.starts.node), dtype=np.int64)
        work, decisions, visits = np.zeros(self.classes), 0, 0
        items = [(own, sample) for sample in range(1 if game.boards else game.samples) for own in self.own]
        for mine, met, seen, label, seconds in self._pool.map(some, items):
            sums += mine
            decisions, visits = decisions + met, visits + seen
            work[label] += seconds
        return BatchResult(sums, perf_counter() - began, decisions, visits, work)

    def unpack(self, batch: Batch) -> tuple[Batch, IntArray, float]:
        """Unpack a message into a batch of deals, their private hands, and the weight of earlier deals.

        Discounts and halves the tables if it is time.
        """
        # Arrays from messages are read-only, and kernels would be compiled once more for read-only arrays.
        batch = Batch(batch.number, Starts(*map(np.array, batch.starts)))
        if self.game.discounts(batch.number):
            for own in self.own:
                own.regrets.discount(self.game.seed_for(batch.number, own.label), self.threads)
        self.halve(batch.number)
        return batch, self._hands(batch.number * self.game.batch), self.game.excess_weight(batch.number)

    def _hands(self, first: int) -> IntArray:
        """Return the private hands of a batch, which are the same as in the head process."""
        rules = self.game.game.rules
        hands = np.empty((self.game.batch, 2 * rules.hole_cards), dtype=np.int64)
        walks.deal_cards(self.game.seed_for(), first, rules.deck.size, hands)
        return hands

    def _walk(
        self, own: BoardClass, sample: int, workspace: WalkWorkspace, hands: IntArray, batch: Batch, weight: float
    ) -> tuple[IntArray, int, int]:
        """Run CFR on a batch of deals with boards of one class.

        Returns the sum of |F(n,h)| · v for each start, and the numbers of decisions and nodes visited.
        """
        sums, decisions, visits = np.zeros(len(batch.starts.node), dtype=np.int64), 0, 0
        for drawn in self.sample_boards(own, sample, workspace, hands, batch):
            found, met, seen = self.walk_over(own, workspace, drawn.batch, drawn.ways, drawn.key, weight)
            sums[drawn.which] += found
            decisions, visits = decisions + met, visits + seen
        return sums, decisions, visits

    def sample_boards(
        self, own: BoardClass, sample: int, workspace: WalkWorkspace, hands: IntArray, batch: Batch
    ) -> Iterator[BoardDraw]:
        """Sample boards of one class for a batch of deals.

        A deal gets one board, or as many as are due to the class.
        """
        if not self.game.boards:
            key, ways = self.game.seed_for(own.label, sample), np.empty(len(hands), dtype=np.int64)
            kernels.count_ways(hands, *own.counted, ways)
            board = self._draw(own, workspace, key, batch, hands, ways)
            yield BoardDraw(batch, slice(None), ways, key, board, (ways / max(len(own.bits), 1)).astype(np.float32))
            return
        ways, often = self.count_samples(own, hands, batch.number * self.game.batch)
        for turn in range(int(often.max())):
            mine = np.flatnonzero(often > turn)
            picked, index = select_starts(batch.starts, mine)
            some, key = Batch(batch.number, picked), self.game.seed_for(own.label, turn)
            board = self._draw(own, workspace, key, some, hands[mine], ways[mine])
            workspace.tally[: len(mine)] = 1
            once = np.ones(len(mine), dtype=np.int64)
            yield BoardDraw(some, index, once, key, board, once.astype(np.float32))

    def count_samples(self, own: BoardClass, hands: IntArray, first: int) -> tuple[IntArray, IntArray]:
        """Return the number of possible boards of a class, and the number to sample, for each deal."""
        below, upto, often = np.empty((3, len(hands)), dtype=np.int64)
        kernels.count_ways(hands, *own.below, below)
        kernels.count_ways(hands, *own.upto, upto)
        key = self.game.seed_for(self.classes)  # different from all keys for cards
        kernels.spread_boards(key, first, self.game.boards, self.ways, below, upto, often)
        return upto - below, often

    def _draw(
        self, own: BoardClass, workspace: WalkWorkspace, key: np.uint64, batch: Batch, hands: IntArray, ways: IntArray
    ) -> IntArray:
        first, board = batch.number * self.game.batch, np.empty(len(hands), dtype=np.int64)
        drawn = own.boards, own.bits, ways, workspace.cards[: len(hands)], workspace.tally, board
        kernels.draw_boards(key, first, workspace.deck, hands, *drawn)
        return board

    def walk_over(
        self,
        own: BoardClass,
        workspace: WalkWorkspace,
        batch: Batch,
        ways: IntArray,
        key: np.uint64,
        weight: float = 0.0,
    ) -> tuple[IntArray, int, int]:
        """Run CFR on a batch of deals with sampled boards of one class.

        The cards are in `workspace`. Each deal's values and updates are weighted by `ways`.
        """
        first, seen = batch.number * self.game.batch, self.prepare_deals(own, workspace, ways)
        return self.run_deals(own.regrets, workspace, batch.starts, *seen, ways, key, first, weight)

    def prepare_deals(self, own: BoardClass, workspace: WalkWorkspace, ways: IntArray) -> tuple[Words, Singles]:
        """Look up the buckets and showdown results of sampled deals, and set each deal's weight.

        The cards are in `workspace`.

        See `WalkWorkspace.look_up_deals`.
        """
        bucket, outcome = workspace.look_up_deals(len(ways), own.part)
        # deals without a compatible board have arbitrary buckets, and are not walked
        own.part.require_own_buckets(bucket, ways > 0)
        if self.game.weighted:
            workspace.share[: len(ways)] = ways / self.game.total_weight(self.ways)
        else:
            workspace.share[: len(ways)], workspace.tally[: len(ways)] = ways > 0, 1
        return bucket, outcome

    def ping(self, batch: Batch) -> BatchResult:
        """Answer an empty message, so that the head process can measure the latency of messages."""
        return BatchResult(np.zeros(len(batch.starts.node), dtype=np.int64), 0.0, 0, 0, np.zeros(self.classes))

    def map_average(self, work: Callable[[StrategyPart], R], trunk: Array) -> list[R]:
        """Apply a function to the average strategy on each class of this worker's boards.

        `work` is the function. Each strategy includes the first rounds, for which `trunk` is the strategy over slots.
        """

        def some(own: BoardClass) -> R:
            partition = self.partition.real
            mine, slots = own.regrets.integer_strategy(trunk.dtype), partition.playable_part(own.label)
            shares = np.zeros(slots.slots, dtype=trunk.dtype)
            join_parts([(partition.head, np.array(trunk)), (own.part, mine)], slots, shares)
            return work(StrategyPart(slots, shares, lambda boards: partition.owns(boards, own.label)))

        return list(self._pool.map(some, self.own))


def class_folder(folder: Path, *path: int) -> Path:
    """Return the folder for the tables of a class of boards.

    `path` identifies the class: see `Partition.paths`.
    """
    return folder / "-".join(["class", *(str(label + 1) for label in path)])
