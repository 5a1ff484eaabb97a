"""CFR+ with regrets on disk, for games whose tables are larger than memory [Johanson16 chapter 9].

The first round is the *trunk*, which stays in memory. All that follows some boards of the second round, one or several,
is a *subgame*, whose regrets are whole numbers, compressed in a file. An iteration is a pass over all subgames for each
player in turn:

    for each subgame
        read    regret  = whole number / scale
        walk    down with the trunk's strategy, up with the values of its chance nodes, as in `vector`:
                regret  = max(regret + value(child) − value(node), 0)
        write   whole number = regret · scale, rounded, and the values beside it
    trunk       the values of all subgames, added up in their order, go up the first round

The next subgames are read and unpacked while one is walked, and the last ones packed and written. There is no average
unless it is asked for: with regret matching+ the strategy of the last iteration converges by itself, if not by proof.

A file is replaced in one step. It says which pass has written it, and what the subgame was worth then: a pass that was
interrupted goes on with the subgames that it has not come to, and ends in the same numbers.

>>> from kilt.games import load_game
>>> solver = DiskCfr(Subgames(VectorGame(load_game("leduc"))))
>>> solver.step(40)
>>> least, most = solver.current().value_bounds()
>>> least < -0.0856 < most, most - least < 0.4
(True, True)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import ceil, log2
from pathlib import Path
from queue import SimpleQueue
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import numpy.typing as npt
from zstandard import ZstdError

from kilt import artifact
from kilt.arrays import Array, FloatArray, IntArray
from kilt.cards.deck import FULL
from kilt.cards.equity import room_to_rank
from kilt.cards.equity_kernels import Ranking
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import HandTables
from kilt.errors import GameError, RunError
from kilt.games.holdem import Holdem
from kilt.solve.disk_kernels import PartRows, count_hands
from kilt.solve.disk_store import KeptNumbers, SubgameStore, pack, unpack
from kilt.solve.problem import DISK, VectorProblem
from kilt.solve.variants import Discount, discounts, variant_named
from kilt.solve.vector import learning_walk
from kilt.solve.vector_kernels import PlayerTables
from kilt.strategy.table import REMEDY, require_same
from kilt.tree.vector import VectorGame, Walk
from kilt.tree.vector_arrays import DECISION, FOLLOW, RESPOND, Table, TableLayout, VectorTree
from kilt.tree.vector_tree import flop_tree

Values = FloatArray  # [chance node of the trunk, hand] what a subgame is worth

KIND = "strategy in subgames"
FINENESS = 18  # bits of the largest regret that one walk can find; 13 more are left for sums of them
# Numbers are rounded down after a share of 1 was added, the same for all of a pass, which over passes lies evenly
# between 0 and 1: what is lost in one is gained in others, and neighbours that are alike stay so.
GOLDEN = (5**0.5 - 1) / 2
AVERAGE_SCALE = 2.0**16  # whole numbers to an iteration, in averages
SIZE = 64 << 20  # bytes of the table of a subgame, at most about: few enough that a dozen fit anywhere
FEWEST = 32  # subgames that a small game is cut into, about: enough to overlap reading, walking and writing
PER_NUMBER = 8e-9  # seconds of a pass for a number of the tables, on a core of 2026: the walk, and packing beside it
PACKED = 4  # to one: the least that compression is counted on for, before anything is known


class LoadedSubgame(NamedTuple):
    """A subgame as it is walked: a part of the tree, and its tables, in which the rows of the trunk come first."""

    number: int
    tree: VectorTree
    layout: TableLayout
    regret: Table
    average: Table  # sums of strategies; `regret` where there are none


class Subgames:
    """A game on its public tree, cut into a trunk and subgames.

    Parameters
    ----------
    game : VectorGame
        Of two rounds or more. Its threads work on subgames side by side.
    dtype : data type
        Of the numbers in walks.
    size : int, optional
        Bytes of a subgame's table, about; at least one board of the second round. Left out: a 32nd of the game's table,
        and 64 MB at most.
    """

    def __init__(self, game: VectorGame, dtype: npt.DTypeLike = np.float64, size: int | None = None) -> None:
        tree = game.tree
        if len(tree.rows) < 2:
            raise GameError(f"{game.game.name} has one round, and so no subgames: use cfr+")
        if not tree.rows[1:].all():
            raise GameError(f"{game.game.name} was opened without tables by board, which subgames are made of")
        self.game, self.dtype = game, np.dtype(dtype)
        self.trunk_rows = int(tree.rows[0])
        self.opened = int(np.diff(tree.entry_start)[1])  # chance nodes of the trunk
        rows = _rows_of_flops(tree)
        sizes = rows * game.shape[1] * self.dtype.itemsize
        size = size or min(SIZE, int(sizes.sum()) // FEWEST + 1)
        # [subgame + 1] its first board among those of the second round
        self.first = np.append(np.unique(np.cumsum(sizes) // size, return_index=True)[1], len(sizes))
        self.count = len(self.first) - 1
        self.rows = self.trunk_rows + int(np.add.reduceat(rows, self.first[:-1]).max())  # of the largest table
        self._own_rows = [_rows_of_player(tree, player) for player in (0, 1)]
        known, self._symmetry = np.unique(tree.symmetry, return_inverse=True)
        permutations = [[p for p in range(len(tree.moved)) if mask >> p & 1] for mask in known.tolist()]
        self._alike = np.stack([tree.moved[same].min(axis=0) for same in permutations])
        self._bits = tree.deck.bits if tree.poker else np.zeros(game.shape[1], np.int64)
        self._held = np.zeros(len(tree.board), np.int64)
        for r, cards in enumerate(tree.board_size.tolist() if tree.poker else ()):
            boards = slice(*tree.board_start[r : r + 2].tolist())
            self._held[boards] = tree.strengths.card_bit[tree.board[boards, :cards]].sum(axis=1)
        self._tables = SimpleQueue[tuple[Table, Table]]()
        self._made = 0

    @property
    def fingerprint(self) -> str:
        """A short name for the game and the way it is cut."""
        tree = self.game.tree
        parts = tree.nodes.kind, tree.nodes.stake, tree.board, tree.prior, self.first
        return artifact.fingerprint(*map(np.ascontiguousarray, parts))

    @cached_property
    def _hands(self) -> IntArray:
        """[board] Hands that are apart."""
        hands = np.zeros(len(self._held), np.int64)
        count_hands(self._alike, self._symmetry, self._bits, self._held, hands)
        return hands

    @property
    def numbers(self) -> int:
        """Numbers that are kept of all subgames: one for each action, board and hand, those alike by suits once."""
        tree = self.game.tree
        hands = np.add.reduceat(self._hands, tree.board_start[:-1])
        return int(sum(hands[1:] * tree.rows[1:]))

    @property
    def default_scale(self) -> float:
        """Whole numbers to a chip, such that the largest regret that one walk can find has `FINENESS` bits."""
        tree = self.game.tree
        return 2.0 ** (FINENESS - ceil(log2(2 * np.abs(tree.nodes.stake).max() * tree.prior.sum(axis=1).max())))

    @property
    def abreast(self) -> int:
        """Subgames in memory at a time: for each thread one that is read, one that is walked, and two to be written."""
        return 4 * self.game.threads + 1

    @property
    def memory(self) -> int:
        """Bytes of the tables in memory at a time, of regrets alone, and of what is packed of them."""
        return 2 * self.abreast * self.rows * self.game.shape[1] * self.dtype.itemsize

    @property
    def seconds(self) -> float:
        """What an iteration takes, about, by the numbers of the tables and the game's threads."""
        return 2 * PER_NUMBER * self.game.shape[0] * self.game.shape[1] / self.game.threads

    def layout(self, part: VectorTree | None = None) -> TableLayout:
        """The layout of the table of a part of the tree; left out: of the trunk alone."""
        rows, boards = self.game.tree.rows, np.diff((part or self.game.tree).board_start)
        if part is None:
            boards[1:] = 0
        return self.game.layouts[0]._replace(rows=rows, start=np.concatenate([[0], np.cumsum(boards * rows)]))

    def rows_of(self, player: int, number: int, layout: TableLayout) -> tuple[list[PartRows], int]:
        """Where the numbers of a player in a subgame stand in its table, and how many they are."""
        tree, found, numbers = self.game.tree, [], 0
        low, high = (tree.board_start[1] + self.first[number : number + 2]).tolist()
        for r in range(1, len(tree.rows)):
            boards, rows = slice(low, high), self._own_rows[player][r]
            size = int(tree.board_size[r])
            tables, ranking = self._strengths(size)
            part = PartRows(
                start=int(layout.start[r]),
                stride=int(tree.rows[r]),
                rows=rows,
                alike=self._alike,
                symmetry=self._symmetry[boards],
                bits=self._bits,
                held=self._held[boards],
                cards=np.ascontiguousarray(tree.board[boards, :size], np.int64),
                ranked=tree.poker,
                deck=tree.deck,
                tables=tables,
                ranking=ranking,
            )
            found.append(part)
            numbers += int(self._hands[boards].sum()) * len(rows)
            low, high = int(tree.first_board[low]), int(tree.first_board[high])
        return found, numbers

    def _strengths(self, board_size: int) -> tuple[HandTables, Ranking]:
        """What tells how strong hands are on boards of some size, and room to rank them."""
        game = self.game.game
        deck, hole_cards = (game.deck, game.rules.hole_cards) if isinstance(game, Holdem) else (FULL, 2)
        ranking = room_to_rank(deck, hole_cards, board_size, len(self.game.tree.deck.bits))
        return hand_tables(board_size + hole_cards, deck), ranking

    def stream(
        self,
        read: Callable[[int, Table, Table], LoadedSubgame | Values],
        walk: Callable[[LoadedSubgame], Values],
        write: Callable[[LoadedSubgame, Values], None] | None = None,
    ) -> Iterator[Values]:
        """Work on all subgames; what they are worth, in their order.

        Parameters
        ----------
        read : callable
            Called with the number of a subgame and scratch memory for two tables, in threads beside the walks. What it
            is worth, where that is known already: then there is neither a walk nor anything to write.
        walk : callable
            Called on as many threads as the game has.
        write : callable, optional
            Called with the subgame and what the walk has found, in threads beside the walks.
        """
        threads = self.game.threads
        with ExitStack() as pools:
            # Whoever writes waits for the disk, and meanwhile another one packs.
            workers = (pools.enter_context(ThreadPoolExecutor(share * threads)) for share in (1, 1, 2))
            readers, walkers, writers = workers
            waiting: deque[Future[Values]] = deque()
            try:
                for number in range(self.count):
                    coming = readers.submit(self._read, read, number)
                    walked = walkers.submit(_walk, walk, coming)
                    waiting.append(writers.submit(self._finish, write, coming, walked))
                    if len(waiting) >= self.abreast:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                if waiting:  # something went wrong: tables that are on their way do not come back
                    self._tables, self._made = SimpleQueue(), 0
                for future in waiting:
                    future.cancel()

    def _read(self, read: Callable[[int, Table, Table], LoadedSubgame | Values], number: int) -> _Coming:
        return _Coming(tables := self._scratch(), read(number, *tables))

    def _finish(
        self,
        write: Callable[[LoadedSubgame, Values], None] | None,
        coming: Future[_Coming],
        walked: Future[Values],
    ) -> Values:
        """Write a subgame when it has been walked, and give its tables to others."""
        tables, subgame = coming.result()
        values = walked.result()
        if write and isinstance(subgame, LoadedSubgame):
            write(subgame, values)
        self._tables.put(tables)
        return values

    def _scratch(self) -> tuple[Table, Table]:
        """Memory for two tables: one that nobody has any more, or a new one."""
        if self._tables.empty() and self._made < self.abreast:
            self._made += 1
            shape = self.rows, self.game.shape[1]
            return np.empty(shape, self.dtype), np.empty(shape, self.dtype)  # memory that is not touched costs nothing
        return self._tables.get()


class _Coming(NamedTuple):
    tables: tuple[Table, Table]
    subgame: LoadedSubgame | Values


def _walk(walk: Callable[[LoadedSubgame], Values], coming: Future[_Coming]) -> Values:
    """Walk a subgame as soon as it is there."""
    subgame = coming.result().subgame
    return walk(subgame) if isinstance(subgame, LoadedSubgame) else subgame


@dataclass(frozen=True)
class DiskStrategy:
    """A strategy for both players whose subgames are on disk: what `DiskCfr` has found.

    Attributes
    ----------
    subgames : Subgames
        The game.
    store : SubgameStore
        Where the subgames are.
    passes : int
        Passes that are complete: what was written after them is not looked at.
    trunk : ndarray, shape (rows, hands)
        Weights of the actions of the first round.
    averaged : bool
        Whether it is the average of all iterations, or the strategy of the last one.
    """

    subgames: Subgames
    store: SubgameStore
    passes: int
    trunk: Table
    averaged: bool = False

    def response_values(self) -> tuple[float, float]:
        """What a best response to the strategy wins in seats 0 and 1, in chips per game."""
        return self._worth[2], self._worth[3]

    def expected_values(self) -> tuple[float, float]:
        """What players 0 and 1 win when both follow the strategy, in chips per game."""
        return self._worth[0], self._worth[1]

    def exploitability(self) -> float:
        """What best responses win more than the strategy itself, mean over both seats, in chips per game."""
        first, second, *responses = self._worth
        return max((sum(responses) - (first + second if self.subgames.game.uneven else 0)) / 2, 0.0)

    def value_bounds(self) -> tuple[float, float]:
        """Bounds on what player 0 wins in an equilibrium, in chips per game: what best responses leave to either."""
        first, second = self.response_values()
        return -second, first

    @cached_property
    def _worth(self) -> tuple[float, float, float, float]:
        """What is won by following in both seats, and by responding, from one pass over all subgames."""
        game, cut = self.subgames.game, self.subgames
        seats = (0, 1) if game.uneven else (0,)
        todo = [(seat, FOLLOW) for seat in seats] + [(seat, RESPOND) for seat in (0, 1)]

        def walks(table: Table, layout: TableLayout) -> list[Walk]:
            return [Walk(seat, (task,), table, table, layout, layout) for seat, task in todo]

        def respond(subgame: LoadedSubgame) -> Values:
            return np.stack([game.flop_values(walk, subgame.tree) for walk in walks(subgame.regret, subgame.layout)])

        values = np.zeros((len(todo), cut.opened, game.shape[1]))
        for worth in cut.stream(lambda number, table, _: self.read(number, table), respond):
            values += worth
        ends = walks(self.trunk, cut.layout())
        *followed, first, second = (game.conclude(walk, own) for walk, own in zip(ends, values, strict=True))
        return followed[0], -followed[0] if len(followed) == 1 else followed[1], first, second

    def read(self, number: int, table: Table) -> LoadedSubgame:
        """Read a subgame from disk into a table."""
        return read_subgame(self.subgames, self.store, number, self.trunk, table, averaged=self.averaged)

    def subgame(self, number: int) -> LoadedSubgame:
        """A subgame by itself, in memory of its own."""
        return self.read(number, np.empty((self.subgames.rows, self.subgames.game.shape[1]), self.subgames.dtype))

    def table(self) -> Table:
        """The weights as one table over (board, row) × hand, for games whose table fits into memory."""
        tree, whole = self.subgames.game.tree, self.subgames.game.table(self.subgames.dtype)
        whole[: len(self.trunk)] = self.trunk
        for number in range(self.subgames.count):
            subgame = self.subgame(number)
            board = int(tree.board_start[1] + self.subgames.first[number])
            for r in range(1, len(tree.rows)):
                begin = int(tree.table_start[r] + (board - tree.board_start[r]) * tree.rows[r])
                rows = subgame.regret[subgame.layout.start[r] : subgame.layout.start[r + 1]]
                whole[begin : begin + len(rows)] = rows
                board = int(tree.first_board[board])
        return whole


def read_subgame(
    cut: Subgames, store: SubgameStore, number: int, trunk: Table, table: Table, *, averaged: bool = False
) -> LoadedSubgame:
    """Read the regrets of a subgame, or its averages, into scratch memory."""
    tree = flop_tree(cut.game.tree, *cut.first[number : number + 2].tolist())
    layout = cut.layout(tree)
    table = table[: int(layout.start[-1])]
    table[: len(trunk)] = trunk
    for player in (0, 1):  # the average of a player is kept beside the other's regrets
        kept = 1 - player if averaged else player
        _unpack(cut, store, number, kept, player, store.open(number, kept), layout, table, averaged=averaged)
    return LoadedSubgame(number, tree, layout, table, table)


def _unpack(
    cut: Subgames,
    store: SubgameStore,
    number: int,
    kept: int,
    player: int,
    found: KeptNumbers,
    layout: TableLayout,
    table: Table,
    *,
    averaged: bool,
) -> None:
    """Write the numbers of a player, which the file of player `kept` has, to their rows of a table."""
    parts, numbers = cut.rows_of(player, number, layout)
    if not found.packed:
        for part in parts:
            every = part.start + part.stride * np.arange(len(part.held))[:, None] + part.rows
            table[every.ravel()] = 0
        return
    scale = AVERAGE_SCALE if averaged else store.scale
    try:
        unpack(found.packed[int(averaged)], parts, numbers, scale, table)
    except (ZstdError, ValueError, IndexError) as error:
        raise store.damaged(number, kept, error) from error


class DiskCfr:
    """CFR+ on a public tree, with the regrets of subgames in files.

    Parameters
    ----------
    subgames : Subgames
        What is solved.
    folder : Path, optional
        Where the files are; those that are there already are gone on from. Left out: a folder that goes with the
        solver, until `open` gives it one to stay.
    scale : float, optional
        Whole numbers to a chip that is won from one hand of the opponent: regrets are rounded to a multiple of
        1 / `scale`, and end at 2³¹ of them. Left out: the largest regret that one walk can find has 18 bits.
    averaging : bool
        Whether the average strategy is kept too, in twice the space: see `average`.
    """

    def __init__(
        self, subgames: Subgames, folder: Path | None = None, *, scale: float | None = None, averaging: bool = False
    ) -> None:
        self.subgames, self.averaging = subgames, averaging
        self.scale = subgames.default_scale if scale is None else float(scale)
        self.passes, self.trunk = 0, self._zeros()
        self.average_trunk = self._zeros()
        self._tasks = np.full(len(subgames.game.tree.rows), FOLLOW)
        self.store: SubgameStore
        self._known: dict[tuple[int, bool], DiskStrategy] = {}
        if folder is None:
            folder = Path(mkdtemp(prefix="kilt-subgames-"))
            finalize(self, rmtree, folder, ignore_errors=True)
        self.open(folder)

    def _zeros(self) -> Table:
        return np.zeros((self.subgames.trunk_rows, self.subgames.game.shape[1]), self.subgames.dtype)

    def open(self, folder: Path) -> None:
        """Keep all that is learnt in a folder, or go on from what is there."""
        before = self.store if self.passes else None
        self.store = SubgameStore(folder, self.subgames.fingerprint, self.scale, self.averaging)
        if before:
            before.copy_to(folder)
        kept = self.store.read_trunk()
        if kept.passes:
            shape = (1 + self.averaging) * self.subgames.trunk_rows, self.subgames.game.shape[1]
            if kept.values.shape != shape:
                raise RunError(f"the trunk in {folder} has shape {kept.values.shape}, not {shape}: begin again")
            tables = kept.values.astype(self.subgames.dtype)
            self.passes, self.trunk = kept.passes, tables[: len(self.trunk)].copy()
            self.average_trunk = tables[len(tables) - len(self.trunk) :].copy()

    @property
    def iterations(self) -> int:
        """Iterations that are complete."""
        return self.passes // 2

    @property
    def size(self) -> int:
        """Bytes that the files take, about, before anything is known of them; and as they are later."""
        return max(self.store.size, 4 * self.subgames.numbers * (1 + self.averaging) // PACKED)

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations, each of them a pass for player 0 and one for player 1.

        One that was interrupted is completed first, and counts.
        """
        with self.store.claimed():
            if self.store.read_trunk().passes != self.passes:
                raise RunError(f"another process has gone on in {self.store.folder}: begin there again")
            last = 2 * (self.iterations + iterations)
            while self.passes < last:
                self._pass(self.passes % 2)

    def _pass(self, player: int) -> None:
        """One pass over all subgames, in which a player learns."""
        cut, discount = self.subgames, self._discount()
        values = np.zeros((cut.opened, cut.game.shape[1]))
        read, write = partial(self._read, player), partial(self._write, player)
        for number, worth in enumerate(cut.stream(read, partial(self._learn, player, discount), write)):
            values += worth[: cut.opened]
            if self.averaging and number == 0:  # which has the trunk's average beside its values
                self.average_trunk = worth[cut.opened :].astype(cut.dtype)
        tables = self._tables(cut.layout(), self.trunk, self.trunk, averaged=False)
        end = learning_walk(cut.game.tree, player, self._tasks, tables, tables, discount)
        cut.game.conclude_walk(player, end, values, cut.dtype)
        self.passes += 1
        trunk = [self.trunk, self.average_trunk] if self.averaging else [self.trunk]
        self.store.write_trunk(self.passes, np.concatenate(trunk))

    def _read(self, player: int, number: int, regret: Table, average: Table) -> LoadedSubgame | Values:
        """A subgame for the pass of a player, or what it is worth, where that was found before an interruption."""
        kept = self.store.open(number, player)
        if kept.passes > self.passes:
            return kept.values
        subgame = read_subgame(self.subgames, self.store, number, self.trunk, regret)
        if self.averaging:
            average = average[: len(subgame.regret)]
            average[: len(self.average_trunk)] = self.average_trunk
            more = kept, subgame.layout, average
            _unpack(self.subgames, self.store, number, player, 1 - player, *more, averaged=True)
            subgame = subgame._replace(average=average)
        return subgame

    def _learn(self, player: int, discount: Discount, subgame: LoadedSubgame) -> Values:
        """[chance node, hand] what a subgame is worth to a player who learns; after that of the first, the averages."""
        cut = self.subgames
        tables = self._tables(subgame.layout, subgame.regret, subgame.average, averaged=self.averaging)
        learn = learning_walk(subgame.tree, player, self._tasks, tables, tables, discount)
        values = cut.game.part_values(player, learn, subgame.tree, cut.dtype).astype(cut.dtype)
        if self.averaging and subgame.number == 0:
            return np.concatenate([values, subgame.average[: cut.trunk_rows]])
        return values

    def _write(self, player: int, subgame: LoadedSubgame, values: Values) -> None:
        """Keep what a player has learnt in a subgame, and the other's average."""
        cut, number = self.subgames, subgame.number
        dither = self.passes * GOLDEN % 1
        packed = [pack(subgame.regret, *cut.rows_of(player, number, subgame.layout), self.scale, dither)]
        if self.averaging:
            packed.append(
                pack(subgame.average, *cut.rows_of(1 - player, number, subgame.layout), AVERAGE_SCALE, dither)
            )
        self.store.write(number, player, KeptNumbers(self.passes + 1, values, tuple(packed)))

    def _tables(self, layout: TableLayout, regret: Table, average: Table, *, averaged: bool) -> PlayerTables:
        dtype = self.subgames.dtype
        none = np.empty(0, np.int64), np.zeros((0, 0, 0), dtype), np.zeros((0, 0), dtype)
        return PlayerTables(layout, regret, regret, average, averaged, *none)

    def _discount(self) -> Discount:
        variant = variant_named("cfr+")
        row = discounts(variant, self.iterations + 1, 1, sampled=False)[0]
        return Discount._make([*row.tolist(), variant.predictive])

    def current(self) -> Any:
        """The strategy of the last iteration: a `DiskStrategy`, good until the next step."""
        return self._strategy(averaged=False)

    def average(self) -> Any:
        """The average strategy where it is kept, else that of the last iteration: a `DiskStrategy`."""
        return self._strategy(averaged=self.averaging)

    def _strategy(self, *, averaged: bool) -> DiskStrategy:
        key = self.passes, averaged
        if key not in self._known:  # what was measured of it is not measured again
            trunk = (self.average_trunk if averaged else self.trunk).copy()
            self._known = {each: known for each, known in self._known.items() if each[0] == self.passes}
            self._known[key] = DiskStrategy(self.subgames, self.store, self.passes, trunk, averaged)
        return self._known[key]

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The number of iterations: all else is in the folder."""
        return {"iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Compare what `state` gave with the folder, which may have come further."""
        if self.iterations < int(state["iterations"]):
            raise ValueError(f"{self.store.folder} has {self.iterations} iterations, not {int(state['iterations'])}")


@dataclass(frozen=True)
class DiskProblem(VectorProblem):
    """A game on its public tree whose strategies are in subgames on disk: `DiskStrategy` in place of tables."""

    form = DISK

    @cached_property
    def subgames(self) -> Subgames:
        """The game, cut into subgames."""
        return Subgames(self.game, self.dtype)

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the rules, and for the way the game is cut."""
        return artifact.fingerprint(super().fingerprint, self.subgames.fingerprint)

    def uniform(self) -> Array:
        """There is no such table: a strategy is one that was solved for."""
        raise RunError(f"{self.name} is in subgames on disk: give the strategy of a run")

    def save(self, path: Path, strategy: Any, **figures: Any) -> None:
        """Give the files of a `DiskStrategy` to a folder of its own: they are shared until they change."""
        assert isinstance(strategy, DiskStrategy)
        inputs, said = {"game": self.fingerprint}, {"game": self.name, "average": strategy.averaged}
        with artifact.draft(path, KIND, 0, inputs, said) as new:
            strategy.store.copy_to(new.folder)
            new.save("trunk", strategy.trunk)
            new.figures.update(figures)

    def load(self, path: Path) -> tuple[Any, dict[str, Any]]:
        """A `DiskStrategy` that was saved for these very rules, and the figures beside it."""
        found = artifact.read(path, KIND, remedy=REMEDY)
        with artifact.understood(path, REMEDY):
            said = found.parameters["game"], found.inputs["game"]
            averaged = bool(found.parameters["average"])
        require_same(said, (self.name, self.fingerprint))
        store = SubgameStore.opened(path, self.subgames.fingerprint)
        trunk = np.array(found.arrays["trunk"])
        return DiskStrategy(self.subgames, store, store.read_trunk().passes, trunk, averaged), found.figures


def _rows_of_flops(tree: VectorTree) -> IntArray:
    """[board of the second round] rows of the table of all that follows it, its own included."""
    edges = np.arange(tree.board_start[1], tree.board_start[2] + 1)
    total = np.diff(edges) * int(tree.rows[1])
    for rows in tree.rows[2:].tolist():
        edges = tree.first_board[edges]
        total += np.diff(edges) * rows
    return total


def _rows_of_player(tree: VectorTree, player: int) -> list[IntArray]:
    """[round] the rows of a player's actions among those of a board."""
    nodes, found = tree.nodes, list[IntArray]()
    for first, last in pairwise(tree.entry_start.tolist()):
        rows = list[int]()
        for entry in range(first, last):
            for node in range(*nodes.block[tree.entry_block[entry] :][:2].tolist()):
                if nodes.kind[node] == DECISION and nodes.actor[node] == player:
                    row = int(tree.entry_row[entry] + nodes.row[node])
                    rows += range(row, row + int(nodes.children[node]))
        found.append(np.array(sorted(rows), dtype=np.int64))
    return found
