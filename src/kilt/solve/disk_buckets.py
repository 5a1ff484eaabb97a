"""CFR+ from disk for players who see buckets: see `disk`.

Tables are over row × bucket, and boards share them. So a subgame has to have all flops that share a bucket with one
another, in any later round: the flops fall apart into sets, and one set or several are a subgame. Where cards have
classes of flops, buckets are those of a class [Brown15], and the sets are the classes; without loss each flop is one.
Where buckets are the same on all flops there is one set, and nothing can be cut. Buckets are looked up when a subgame
is read, so that memory holds those of some subgames alone.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil, log2

import numpy as np
import numpy.typing as npt

from kilt import artifact, machine
from kilt.abstraction.buckets import PlayerAbstractions
from kilt.arrays import Array, FloatArray, IntArray
from kilt.errors import RunError
from kilt.solve.abstract import BucketedGame, DecisionPlace, bucket_layouts, rounded_shares
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.disk import DiskCfr
from kilt.solve.disk_kernels import PartRows
from kilt.solve.disk_strategy import read_subgame
from kilt.solve.disk_subgames import FEWEST, SIZE, Subgames
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table, TableLayout, VectorTree
from kilt.tree.vector_tree import flops_tree

FINER = 8  # bits more than `FINENESS`: few of a bucket's hands find the most that one can, and numbers end at 2³¹
MOST_COLUMNS = 65_535  # buckets of a round in a subgame, by the numbers that kernels have for places


class BucketedSubgames(Subgames):
    """A game whose players see buckets, cut into a trunk and subgames that have no bucket in common.

    Parameters
    ----------
    game : VectorGame
        Of two rounds or more. Its threads work on subgames side by side.
    cards : CardAbstraction or AsymmetricAbstraction
        Made for the same deck and rounds.
    dtype : data type
        Of the numbers in walks.
    size : int, optional
        Bytes of a subgame's table, about; see `Subgames`.
    """

    def __init__(
        self,
        game: VectorGame,
        cards: PlayerAbstractions,
        dtype: npt.DTypeLike = np.float64,
        size: int | None = None,
    ) -> None:
        super().__init__(game, dtype, size, trunk=1)
        self._whole = super().fingerprint
        self.cards = cards
        self.numbers_of = tuple(one.numbers for one in cards.each)  # [player][round] buckets
        self._most = max(map(max, self.numbers_of))  # what stands for hands that cannot be held: see `bucket_layouts`
        rows = game.tree.rows.astype(np.int64)
        self._start = np.concatenate([[0], np.cumsum(rows)])
        self.rows, met = int(self._start[-1]), self._buckets_of_flops()
        sets = _sets(met)
        if sets.max() == 0:
            raise RunError(
                f"all flops of {game.game.name} share buckets of {cards.name}, so that nothing can be cut: use cfr+, "
                "or cards with classes of boards, or without loss"
            )
        self._cut(met, sets, size)
        self.sizes = np.full(self.count, self.rows - self.trunk_rows)

    def _buckets_of_flops(self) -> list[tuple[int, int, list[IntArray]]]:
        """For each player and later round, [flop] the buckets that its hands have there; and how large buckets are."""
        tree, (first, second) = self.game.tree, self.cards.each
        flops = int(np.diff(tree.board_start)[1])
        seats = (0,) if second is first else (0, 1)
        found = [(seat, r, list[IntArray]()) for seat in seats for r in range(1, len(tree.rows))]
        masses = [np.zeros(self.numbers_of[seat][r]) for seat, r, _ in found]
        for flop in range(flops):
            part = flops_tree(tree, np.array([flop]))
            layouts, weight = bucket_layouts(self.game, self.cards, part), _weights(part)
            for (seat, r, each), mass in zip(found, masses, strict=True):
                boards = slice(*part.board_start[r : r + 2].tolist())
                there = layouts[seat].bucket[boards]
                shares = np.repeat(weight[boards], there.shape[1])
                held = np.bincount(there.ravel(), shares, minlength=self._most + 1)[: len(mass)]
                each.append(np.flatnonzero(held))
                mass += held
        # What all hands of a bucket find in a walk is added up, so that sums grow with their number.
        self._together = max(1.0, *(float(mass.max()) for mass in masses))
        return found

    def _cut(self, met: list[tuple[int, int, list[IntArray]]], sets: IntArray, size: int | None) -> None:
        """Put sets of flops into subgames, in the order of their first flops, and number the buckets of each anew."""
        members = [np.flatnonzero(sets == each) for each in range(sets.max() + 1)]
        widest = np.zeros(len(members), np.int64)
        for _, _, each in met:
            widest = np.maximum(widest, [len(np.unique(np.concatenate([each[f] for f in own]))) for own in members])
        bytes_of = self.rows * self.dtype.itemsize * widest
        most = size or min(SIZE, int(bytes_of.sum()) // FEWEST + 1)
        number = np.unique((np.cumsum(bytes_of) - bytes_of) // most, return_inverse=True)[1]
        self.count = int(number.max()) + 1
        self.cuts = np.tile([0, len(sets), 0, self.entries], (self.count, 1))  # flops are in `_flops`
        own_sets = (np.flatnonzero(number == each) for each in range(self.count))
        self._flops = [np.sort(np.concatenate([members[one] for one in own])) for own in own_sets]
        # [player][round][subgame] its buckets, in rising order: columns of its table
        self.columns = [[[np.arange(buckets)] * self.count for buckets in own] for own in self.numbers_of]
        for seat, r, each in met:
            self.columns[seat][r] = [np.unique(np.concatenate([each[f] for f in own])) for own in self._flops]
        if self.cards.each[0] is self.cards.each[1]:
            self.columns[1] = self.columns[0]
        wide = max(len(own) for rounds in self.columns for each in rounds[1:] for own in each)
        if wide > MOST_COLUMNS:
            raise RunError(
                f"a subgame of {self.game.game.name} with {self.cards.name} has {wide:,} buckets in a round, and files "
                f"hold {MOST_COLUMNS:,}: use fewer, or more classes of boards"
            )
        self._width = max(wide, *(own[0] for own in self.numbers_of)) + 1

    @property
    def width(self) -> int:
        """Columns of tables: buckets, and one for hands that cannot be held."""
        return self._width

    @property
    def fingerprint(self) -> str:
        """A short name for the game, the cards and the way it is cut."""
        ways = [artifact.fingerprint(np.ascontiguousarray(flops)) for flops in self._flops]
        return artifact.fingerprint(self._whole, self.cards.fingerprint, *ways)

    @property
    def numbers(self) -> int:
        """Numbers that are kept of all subgames: one for each action and bucket."""
        return sum(
            len(rows) * self.numbers_of[seat][r] for seat in (0, 1) for r, rows in enumerate(self._own_rows[seat]) if r
        )

    @property
    def default_scale(self) -> float:
        """Whole numbers to a chip: regrets of all hands of a bucket are added up."""
        return super().default_scale * 2.0 ** (FINER - ceil(log2(self._together)))

    def memory_of(self, abreast: int) -> int:
        """Bytes of the tables and of the buckets of some subgames."""
        tables = 4 * self.rows * self.width * self.dtype.itemsize
        return int(abreast * (tables + 2 * 4 * self._boards * self.game.shape[1]))

    @cached_property
    def _boards(self) -> int:
        """Boards of the subgame that has most."""
        return max(len(flops_tree(self.game.tree, flops).board) for flops in self._flops)

    def part(self, number: int) -> VectorTree:
        """The part of the tree that is a subgame, with the trunk before it."""
        return flops_tree(self.game.tree, self._flops[number])

    def layouts(self, number: int | None = None, part: VectorTree | None = None) -> tuple[TableLayout, TableLayout]:
        """The layouts of both players' tables in a subgame, which is a `part` of the tree; left out: in the trunk."""
        if number is None or part is None:
            return self._trunk_layouts
        first, second = bucket_layouts(self.game, self.cards, part)
        self._renumber(0, number, part, first)
        if second is not first:
            self._renumber(1, number, part, second)
        return first, second

    def _renumber(self, player: int, number: int, part: VectorTree, layout: TableLayout) -> None:
        """Write to a layout the columns of a subgame in place of buckets."""
        for r in range(len(part.rows)):
            own = self.columns[player][r][number]
            column = np.full(self._most + 1, self.width - 1, np.int32)
            column[own] = np.arange(len(own))
            boards = slice(*part.board_start[r : r + 2].tolist())
            layout.bucket[boards] = column[layout.bucket[boards]]

    @cached_property
    def _trunk_layouts(self) -> tuple[TableLayout, TableLayout]:
        start = np.minimum(self._start, self.trunk_rows)
        first, second = (layout._replace(start=start) for layout in self.layouts(0, self.part(0)))
        return first, second

    def bucket_rows(self, player: int, layout: TableLayout) -> IntArray:
        """The rows of a player's decisions in a table."""
        every = [int(start) + own for start, own in zip(layout.start, self._own_rows[player], strict=False)]
        return np.concatenate([own[own < layout.start[-1]] for own in every])

    def sums(self, rows: int) -> Table:
        """New memory for what a walk adds up for buckets in a table of some rows, in two parts."""
        return np.zeros((2, rows, self.width), self.dtype)

    def clear(self, table: Table) -> None:
        """Write 0 to scratch memory: the buckets of another subgame may have been more."""
        table[...] = 0

    def rows_of(self, player: int, number: int, layout: TableLayout) -> tuple[list[PartRows], int]:
        """Where the numbers of a player in a subgame stand in its table, and how many they are."""
        tree, found, numbers = self.game.tree, [], 0
        for r in range(1, len(tree.rows)):
            columns, rows = len(self.columns[player][r][number]), self._own_rows[player][r]
            size = int(tree.board_size[r])
            tables, ranking = self._strengths(size)
            none = np.zeros(1, np.int64)
            part = PartRows(
                start=int(layout.start[r]),
                stride=0,
                rows=rows,
                alike=np.arange(columns, dtype=np.int32)[None],
                symmetry=none,
                bits=np.zeros(columns, np.int64),
                held=none,
                cards=np.zeros((1, size), np.int64),
                ranked=False,
                deck=tree.deck,
                tables=tables,
                ranking=ranking,
            )
            found.append(part)
            numbers += columns * len(rows)
        return found, numbers


class BucketedDiskCfr(DiskCfr):
    """CFR+ from disk on an abstract game: strategies are those of a blueprint, over slots.

    Parameters
    ----------
    problem : AbstractProblem
        The game, with cards whose flops do not all share buckets: see `BucketedSubgames`.
    scale, averaging
        See `DiskCfr`.
    """

    subgames: BucketedSubgames

    def __init__(self, problem: AbstractProblem, *, scale: float | None = None, averaging: bool = False) -> None:
        abstract = problem.abstract
        game = VectorGame(abstract.game, abstract.actions, threads=problem.threads)
        cut = BucketedSubgames(game, abstract.cards)
        wanted, there = cut.memory * (1 + averaging), machine.available_memory()
        if wanted > there:
            raise RunError(
                f"subgames of {problem.name} take {wanted / 1e9:,.1f} GB of memory, and {there / 1e9:,.1f} GB are "
                "available: use fewer buckets or bets, more classes of boards, or external"
            )
        super().__init__(cut, scale=scale, averaging=averaging)
        self.problem = problem

    def current(self) -> Array:
        """[slot] what regret matching plays now."""
        return self._shares(averaged=False)

    def average(self) -> Array:
        """[slot] the average strategy where it is kept, else that of the last iteration."""
        return self._shares(averaged=self.averaging)

    def _shares(self, *, averaged: bool) -> Array:
        cut, abstract = self.subgames, self.problem.abstract
        shares, tables = np.zeros(abstract.slots, self.problem.dtype), cut.scratch()
        trunk = self.average_trunk if averaged else self.trunk
        for number in range(cut.count):
            subgame = read_subgame(cut, self.store, number, trunk, tables, self.passes, averaged=averaged)
            for place in self._places:
                own = cut.columns[place.player][place.round][number]
                part = rounded_shares(subgame.regret[place.rows, : len(own)], shares.dtype)
                shares[place.slots].reshape(place.buckets, -1)[own] = part
        return shares

    @cached_property
    def _places(self) -> list[DecisionPlace]:
        cut = self.subgames
        first, second = cut.numbers_of
        return [*BucketedGame(cut.game, cut.layouts(0, cut.part(0)), (first, second)).places(self.problem.abstract)]


def _weights(part: VectorTree) -> FloatArray:
    """[board] the probability of each board, given both hands, as walks have it."""
    weight = np.ones(len(part.board))
    for r in range(1, len(part.rows)):
        before, here = (slice(*part.board_start[round_ : round_ + 2].tolist()) for round_ in (r - 1, r))
        following = np.diff(part.first_board[before.start : before.stop + 1])
        weight[here] = np.repeat(weight[before], following) * part.chance[r] * part.weight[here]
    return weight


def _sets(met: list[tuple[int, int, list[IntArray]]]) -> IntArray:
    """[flop] the number of its set: flops with a bucket in common are in one, and those with the first flops first."""
    flops = len(met[0][2])
    before = list(range(flops))  # [flop] one of its set with a lower number, or itself

    def first(flop: int) -> int:
        while before[flop] != flop:
            before[flop] = flop = before[before[flop]]
        return flop

    for _, _, each in met:
        seen = np.full(1 + max(int(own.max()) for own in each), -1)  # [bucket] the last flop that has it
        for flop, own in enumerate(each):
            for other in np.unique(seen[own]).tolist():
                if other >= 0:
                    low, high = sorted((first(flop), first(other)))
                    before[high] = low
            seen[own] = flop
    return np.unique([first(flop) for flop in range(flops)], return_inverse=True)[1]
