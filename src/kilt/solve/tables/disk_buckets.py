"""Split an abstract game into subgames for separate files.

No bucket of hands belongs to two subgames. Tables are indexed by row and bucket, and boards share buckets. A subgame
must therefore contain every flop that shares a bucket with one of its flops in any later round. This divides the flops
into sets, and one or several sets are a subgame. If the card abstraction has classes of flops [Brown15], buckets belong
to a class, and the sets are the classes; in a lossless abstraction each flop is a set. A set that is too large, or the
only set if all flops share buckets, is cut by the betting of the first round: different betting sequences have no rows
in common. Buckets are looked up when a subgame is read, so memory holds the buckets of only a few sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, log2

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import PlayerAbstractions
from kilt.arrays import Array, FloatArray, IntArray
from kilt.cost import Cost
from kilt.errors import RunError
from kilt.solve.abstract import BucketedGame, DecisionLocation, bucket_layouts, rounded_shares
from kilt.solve.abstract_problem import dtype_of
from kilt.solve.tables.disk_kernels import PartRows
from kilt.solve.tables.disk_strategy import DiskStrategy
from kilt.solve.tables.disk_subgames import FEWEST, SIZE, LoadedSubgame, Subgames, group_items
from kilt.tree.parts import BettingPart, flops_tree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table, TableLayout, VectorTree

FINER = 8  # extra bits over `FINENESS`: few hands of a bucket reach the largest regret, and integers end at 2³¹
KNOWN = 2  # sets of flops whose buckets stay in memory
MOST_COLUMNS = 65_535  # largest number of buckets per round in a subgame: kernels store columns in 16 bits


class BucketedSubgames(Subgames):
    """An abstract game split into its first round and subgames with separate buckets.

    Parameters
    ----------
    game : VectorGame
        A game of at least two rounds. Its threads process subgames in parallel.
    cards : CardAbstraction or AsymmetricAbstraction
        A card abstraction for the same deck and rounds.
    dtype : data type
        Type of the numbers in computations.
    size : int, optional
        Approximate size of a subgame's table in bytes; see `Subgames`.
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
        self._most = max(map(max, self.numbers_of))  # bucket number of impossible hands: see `bucket_layouts`
        self.row_start = np.concatenate([[0], np.cumsum(game.tree.rows.astype(np.int64))])  # [round + 1] without boards
        met = self._buckets_of_flops()
        self._cut(met, _sets(met), size)
        if self.count == 1:
            raise RunError(
                f"all flops of {game.game.name} share buckets of {cards.name}, and there is one way of betting before "
                "them, so that nothing can be cut: use cfr+, or cards with classes of boards, or without loss"
            )
        self.sizes = np.array([np.diff(self.betting(number).rows[1:]).sum() for number in range(self.count)])
        self.rows = self.lead_rows + int(self.sizes.max())

    @classmethod
    def of(cls, abstract: AbstractGame, threads: int) -> BucketedSubgames:
        """Return an abstract game split into subgames."""
        return cls(VectorGame(abstract.game, abstract.actions, threads=threads), abstract.cards)

    def require_memory(self, tables: int) -> None:
        """Raise RunError if the subgames processed at the same time exceed memory.

        `tables` is the number of tables per subgame: 1 without an average strategy, 2 with one.
        """
        remedy = "use fewer buckets or bets, more classes of boards, or external"
        Cost(self.memory * tables, what=f"solving subgames of {self.game.game.name}", remedy=remedy).require()

    def _buckets_of_flops(self) -> list[tuple[int, int, list[IntArray]]]:
        """Return, for each player and each later round, the buckets that hands can have after each flop."""
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
        # A pass sums the regrets of all hands of a bucket, so sums grow with the number of hands.
        self._together = max(1.0, *(float(mass.max()) for mass in masses))
        return found

    def _cut(self, met: list[tuple[int, int, list[IntArray]]], sets: IntArray, size: int | None) -> None:
        """Assign sets of flops to subgames, ordered by their first flops, and renumber the buckets of each subgame."""
        members = [np.flatnonzero(sets == each) for each in range(sets.max() + 1)]
        widest = np.zeros(len(members), np.int64)
        for _, _, each in met:
            widest = np.maximum(widest, [len(np.unique(np.concatenate([each[f] for f in own]))) for own in members])
        row = self.dtype.itemsize * widest  # [set] bytes
        bytes_of = int(self.row_start[-1]) * row
        most = size or min(SIZE, int(bytes_of.sum()) // FEWEST + 1)
        if len(members) > 1 and bytes_of.max() <= (size or SIZE):
            number = np.unique((np.cumsum(bytes_of) - bytes_of) // most, return_inverse=True)[1]
            ways = [(each, (0, self.entries)) for each in range(int(number.max()) + 1)]
        else:
            number, every = np.arange(len(members)), range(self.entries)
            rows = np.array([np.diff(BettingPart.through(self.game.tree, 1, e, e + 1).rows[1:]).sum() for e in every])
            ways = [(each, some) for each in number.tolist() for some in group_items(rows * row[each], most)]
        self.count, self._group = len(ways), [group for group, _ in ways]  # [subgame] index of its flops in `_flops`
        self.cuts = np.array([(0, len(sets), *some) for _, some in ways])
        own_sets = (np.flatnonzero(number == each) for each in range(int(number.max()) + 1))
        self._flops = [np.sort(np.concatenate([members[one] for one in own])) for own in own_sets]
        # [player][round][subgame] the buckets of a subgame in ascending order: the columns of its table
        self.columns = [[[np.arange(buckets)] * self.count for buckets in own] for own in self.numbers_of]
        for seat, r, each in met:
            columns = [np.unique(np.concatenate([each[f] for f in own])) for own in self._flops]
            self.columns[seat][r] = [columns[group] for group in self._group]
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
        """The number of columns in a subgame's table: one per bucket, and one for impossible hands."""
        return self._width

    @property
    def fingerprint(self) -> str:
        """A short hash of the game, its card abstraction, and its split into subgames."""
        ways = [*self._flops, *([self.cuts, np.array(self._group)] if self.by_betting else [])]
        said = (artifact.fingerprint(np.ascontiguousarray(way)) for way in ways)
        return artifact.fingerprint(self._whole, self.cards.fingerprint, *said)

    @property
    def numbers(self) -> int:
        """The number of regrets in all files: one for each action of each bucket."""
        return sum(
            len(rows) * self.numbers_of[seat][r] for seat in (0, 1) for r, rows in enumerate(self._own_rows[seat]) if r
        )

    @property
    def default_scale(self) -> float:
        """The factor that converts regrets in chips to the integers stored in files.

        A bucket sums the regrets of all its hands.
        """
        return super().default_scale * 2.0 ** (FINER - ceil(log2(self._together)))

    def memory_of(self, abreast: int) -> int:
        """Return the memory in bytes for processing `abreast` subgames at the same time."""
        tables, maps = 4 * self.rows * self.width * self.dtype.itemsize, 2 * 4 * self._boards * self.game.shape[1]
        return int(abreast * tables + min(abreast, KNOWN + 1 if self.by_betting else abreast) * maps)

    @cached_property
    def _boards(self) -> int:
        """The number of boards in the subgame that has the most."""
        return max(len(flops_tree(self.game.tree, flops).board) for flops in self._flops)

    def part(self, number: int) -> VectorTree:
        """Return a subgame's part of the public tree.

        It includes the part of the first round that leads to the subgame.
        """
        return self.betting(number).within(flops_tree(self.game.tree, self._flops[self._group[number]]))

    def layouts(self, number: int | None = None, part: VectorTree | None = None) -> tuple[TableLayout, TableLayout]:
        """Return the layout of a subgame's table for each player.

        `part` is the subgame's part of the tree. Without a subgame, the layouts are those of the first round.
        """
        if number is None or part is None:
            return self._trunk_layouts
        start = np.concatenate([[0], np.cumsum(part.rows)])
        first, second = (layout._replace(start=start) for layout in self._known(self._group[number]))
        return first, second

    @cached_property
    def _known(self) -> Callable[[int], tuple[TableLayout, TableLayout]]:
        """A cached function that returns the buckets of a set of flops.

        The last results stay in memory if subgames share them.
        """
        return lru_cache(maxsize=KNOWN if self.by_betting else 0)(self._looked_up)

    def _looked_up(self, group: int) -> tuple[TableLayout, TableLayout]:
        part, number = flops_tree(self.game.tree, self._flops[group]), self._group.index(group)
        first, second = bucket_layouts(self.game, self.cards, part)
        self._renumber(0, number, part, first)
        if second is not first:
            self._renumber(1, number, part, second)
        return first, second

    def _renumber(self, player: int, number: int, part: VectorTree, layout: TableLayout) -> None:
        """Replace the bucket numbers in a table layout by the columns of a subgame's table."""
        for r in range(len(part.rows)):
            own = self.columns[player][r][number]
            column = np.full(self._most + 1, self.width - 1, np.int32)
            column[own] = np.arange(len(own))
            boards = slice(*part.board_start[r : r + 2].tolist())
            layout.bucket[boards] = column[layout.bucket[boards]]

    @cached_property
    def _trunk_layouts(self) -> tuple[TableLayout, TableLayout]:
        start = np.minimum(self.row_start, self.trunk_rows)
        first, second = (layout._replace(start=start) for layout in self.layouts(0, self.part(0)))
        return first, second

    def bucket_rows(self, player: int, number: int, layout: TableLayout) -> IntArray:
        """Return the rows of a player's decisions in the table of a subgame or of the first round."""
        own = [self._own_rows[player][0]]
        if number >= 0:
            own += [int(layout.start[r]) + self.rows_in(player, number, r) for r in range(1, len(layout.rows))]
        return np.concatenate(own)

    def sums(self, rows: int) -> Table:
        """Allocate a table for each bucket's sums over hands."""
        return np.zeros((2, rows, self.width), self.dtype)

    def clear(self, table: Table) -> None:
        """Set a subgame's memory to 0, so that another subgame can use it."""
        table[...] = 0

    def rows_of(self, player: int, number: int, layout: TableLayout) -> tuple[list[PartRows], int]:
        """Return the rows of a subgame's table that a player's file stores.

        Also returns how many numbers these are.
        """
        tree, found, numbers = self.game.tree, [], 0
        for r in range(1, len(tree.rows)):
            columns, rows = len(self.columns[player][r][number]), self.rows_in(player, number, r)
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


@dataclass(frozen=True)
class SubgameShares:
    """Converts strategies on disk to saved strategies, with probabilities rounded to integers.

    Attributes
    ----------
    cut : BucketedSubgames
        The game, cut into subgames.
    abstract : AbstractGame
        The abstract game that defines the slots.
    """

    cut: BucketedSubgames
    abstract: AbstractGame

    @cached_property
    def _places(self) -> list[DecisionLocation]:
        cut = self.cut
        first, second = (layout._replace(start=cut.row_start) for layout in cut.layouts(0, cut.part(0)))
        mine, theirs = cut.numbers_of
        return [*BucketedGame(cut.game, (first, second), (mine, theirs)).decision_locations(self.abstract)]

    def _within(self, number: int) -> Iterator[tuple[DecisionLocation, IntArray, int]]:
        """Yield the decisions of the first round and of a subgame, each with its buckets and its row in the round."""
        for place in self._places:
            begin, end = self.cut.betting(number).rows[place.round].tolist()
            row = place.rows.start - int(self.cut.row_start[place.round])
            if begin <= row < end:
                yield place, self.cut.columns[place.player][place.round][number], row - begin

    def subgame_shares(self, subgame: LoadedSubgame) -> list[Array]:
        """Return the strategy in a subgame and the first round, with probabilities rounded to integers.

        There is one array of the shape (buckets, actions) for each decision.
        """
        start, dtype, found = subgame.layouts[0].start, dtype_of(self.abstract.slots), []
        for place, own, row in self._within(subgame.number):
            first = int(start[place.round]) + row
            rows = slice(first, first + place.rows.stop - place.rows.start)
            found.append(rounded_shares(subgame.regret[rows, : len(own)], dtype).astype(dtype))
        return found

    def strategy_shares(self, strategy: DiskStrategy) -> Array:
        """Convert a strategy on disk to a saved strategy, with probabilities rounded to integers.

        Subgames are read one after the other.
        """
        tables = self.cut.scratch()
        return self.join(self.subgame_shares(strategy.read(number, tables)) for number in range(self.cut.count))

    def join(self, subgames: Iterable[list[Array]]) -> Array:
        """Join the strategies of all subgames into one array, as saved strategies have it.

        Those of each subgame are as returned by `of`.
        """
        shares = np.zeros(self.abstract.slots, dtype_of(self.abstract.slots))
        for number, found in enumerate(subgames):
            for (place, own, _), part in zip(self._within(number), found, strict=True):
                shares[place.slots].reshape(place.buckets, -1)[own] = part
        return shares


def _weights(part: VectorTree) -> FloatArray:
    """Return the probability of each board, given both hands."""
    weight = np.ones(len(part.board))
    for r in range(1, len(part.rows)):
        before, here = (slice(*part.board_start[round_ : round_ + 2].tolist()) for round_ in (r - 1, r))
        following = np.diff(part.first_board[before.start : before.stop + 1])
        weight[here] = np.repeat(weight[before], following) * part.chance[r] * part.weight[here]
    return weight


def _sets(met: list[tuple[int, int, list[IntArray]]]) -> IntArray:
    """Return the number of each flop's set.

    Flops that share a bucket are in one set; sets are ordered by first flop.
    """
    flops = len(met[0][2])
    before = list(range(flops))  # [flop] a lower flop of the same set, or the flop itself

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
