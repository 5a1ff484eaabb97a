"""CFR-BR with sampled boards on a GPU, with all tables in GPU memory.

The kernels of `tree.gpu.device` compute the rounds before the last, and those of `tree.gpu.flops` compute the last
round. The latter record the responses, the reach at the player's decisions, and the values of actions.
`drawn_device.cu` sums these over the hands of each bucket. While the GPU works on one sample of boards, called a draw,
CPU cores prepare the next ones. Small games, in which preparing a draw takes longer than computing it, keep their draws
in GPU memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray, IntArray
from kilt.cost import Cost
from kilt.gpu import by_value, kernels
from kilt.solve.tables.drawn import Draw, SampledBoardTables, Trunk, require_unpredicted
from kilt.solve.variants import Variant
from kilt.tree.gpu.device_arrays import NODE, DeviceRound, Pull, learning_of
from kilt.tree.gpu.flops import DeviceFlops, FlopOnDevice
from kilt.tree.gpu.flops_kernels import HAND
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import ANSWER, DECISION, FOLLOW, Table, VectorTree

SOURCE = Path(__file__).with_name("drawn_device.cu")
WARPS = 4  # warps per block of the summing kernels
PREPARING = 3  # threads that prepare draws: more would compete with the thread that launches kernels
STAYING = 4096  # games with at most this many draws keep all of them on the device
DTYPE = np.float32  # of reach, values and the opponent's regrets
FOUND = 1 << 32  # size in bytes of the buffer for records of the last round


class Members(NamedTuple):
    """The hands on all of a round's boards in GPU memory, sorted by bucket."""

    items: Any  # board · hands + hand; in the last round the hand's rank by strength replaces the hand
    begin: Any  # [present bucket + 1] first index into `items`
    column: Any  # [present bucket] number of the bucket
    buckets: int  # number of present buckets


class DrawOnDevice(NamedTuple):
    """A sample of boards in GPU memory, with the data for a pass of CFR-BR."""

    first_rows: tuple[int, ...]  # [round of the trunk] first row in the opponent's table
    boards: FlopOnDevice
    weights: list[Any]  # [round][board] weight
    members: list[Members]  # [round] of the player's hands


class OwnDecisions(NamedTuple):
    """One player's decisions in one round, as arrays in GPU memory."""

    number: Any  # [decision] number among all decisions of the game
    count: Any  # [decision] number of actions
    slot: Any  # [decision] index of its reach in the opponent's walk; in the last round, its number
    child: Any  # [decision] node after the first action; in the last round, its first row


class DeviceDraws(DeviceFlops):
    """A game in GPU memory, with tables of CFR-BR that are updated on samples of boards.

    Parameters
    ----------
    game : VectorGame
        The whole game, without tables by board.
    table : ndarray, shape (rows, columns)
        Zeros, in the shape of both players' tables.
    trunk : Trunk
        The opponent's trunk.
    dtype : data type
        Type of probabilities, reach, values and the opponent's regrets.
    """

    def __init__(self, game: VectorGame, table: Table, trunk: Trunk, dtype: npt.DTypeLike = np.float32) -> None:
        self.trunk, self._blocked = trunk, table.shape[1] - 1
        super().__init__(game, table, dtype)
        self._answering, self._learning = self._compiled("answer"), self._compiled("learn")
        self._sums = kernels(
            SOURCE, self.dtype.name, ACTIONS=self._actions, ALIGNED=min(self._actions * self.dtype.itemsize, 16)
        )
        self.other = self.cupy.zeros((trunk.start[-1], self.hands), self.dtype)
        self.regret, self.total = (self.cupy.zeros(self._chances.shape, np.float64) for _ in range(2))

    def prepare_draw(self, draw: Draw, seat: int) -> DrawOnDevice:
        """Copy a sample of boards with its hands' buckets to the GPU.

        Several threads may call this method at the same time.
        """
        part = draw.tree
        places, live = self._ordered(part)
        bucket = draw.layouts[seat].bucket
        members = [
            self._members(bucket[first:end])
            for first, end in zip(part.board_start[:-2], part.board_start[1:-1], strict=True)
        ]
        last = np.take_along_axis(bucket[part.board_start[-2] :], places[..., HAND].astype(np.int64), axis=1)
        members.append(self._members(last))
        first = tuple(self.trunk.first_row(self.tree, draw.boards, r) for r in range(self.trunk.rounds))
        boards = self._prepared(part, draw.layouts, places, live)
        return DrawOnDevice(first, boards, [self._put(one.astype(self.dtype)) for one in _weights(part)], members)

    def _members(self, bucket: npt.NDArray[np.int32]) -> Members:
        """Sort the hands on some boards by bucket, without hands that share a card with the board."""
        flat = bucket.ravel()
        if self._blocked < 1 << 16:
            flat = flat.astype(np.uint16)  # faster to sort
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        live = int(np.searchsorted(ordered, self._blocked))
        begin = np.flatnonzero(np.diff(ordered[:live], prepend=-1)) if live else np.zeros(0, np.int64)
        arrays = order[:live], np.append(begin, live), ordered[begin]
        items, edges, column = (self._put(array.astype(np.int32)) for array in arrays)
        return Members(items, edges, column, len(begin))

    def update_opponent(self, draw: DrawOnDevice, seat: int, discount: Discount) -> None:
        """Update a player's opponent, who learns in the first rounds and best-responds in later ones.

        The player's strategy is added to the player's average.
        """
        player, boards = 1 - seat, draw.boards
        noted, own = self._noted(discount), self._own_decisions[seat]
        rounds = [self._with_room(r, empty) for r, empty in enumerate(boards.rounds)]
        self.push_reach(rounds, player, self._strategies(rounds, boards.buckets[seat]))
        for r, here in enumerate(rounds):
            self._average(draw, r, own[r].number, own[r].slot, here.reach, noted)
        last = self._with_values(boards)
        choices = self._choices(last)
        for entries, some, first in self._pieces(seat, last.boards, self._decision_begin):
            found = self._found(last, self._decision_begin, entries)
            firsts = self._first_decision, self._first_decision + first
            self._last_round(self._answering, boards, last, player, rounds[-1], entries, firsts, choices, found)
            places = own[-1].slot[some] - np.int32(first)
            self._average(draw, self._last, own[-1].number[some], places, found, noted)
        learning, answering = (learning_of(discount, self.tree.noise, regrets=learns) for learns in (True, False))
        there, tables = self._opponents(draw, rounds)
        trunk = self.trunk.rounds
        pulls = [Pull(FOLLOW, table, table, learning) for table in tables[:trunk]]
        pulls += [Pull(ANSWER, table, table, answering) for table in tables[trunk:]]
        self.pull_values(there, player, pulls, (self._roots, last))

    def learn(self, draw: DrawOnDevice, seat: int, discount: Discount) -> None:
        """Update a player's regrets against the opponent from `update_opponent`."""
        boards, noted, own = draw.boards, self._noted(discount), self._own_decisions[seat]
        rounds = [self._with_room(r, empty) for r, empty in enumerate(boards.rounds)]
        there, tables = self._opponents(draw, rounds)
        self.push_reach(there, seat, tables)
        last = self._with_values(boards)
        choices = self._choices(last)
        for entries, some, first in self._pieces(seat, last.boards, self._row_begin):
            found = self._found(last, self._row_begin, entries)
            firsts = self._first_decision, first
            self._last_round(self._learning, boards, last, seat, rounds[-1], entries, firsts, choices, found)
            places = own[-1].child[some] - np.int32(first)
            self._learn(draw, self._last, own[-1].number[some], own[-1].count[some], places, found, noted)
        strategies = [self._vector(r, "strategy", here.rows, here.boards) for r, here in enumerate(rounds)]
        self.pull_values(rounds, seat, [Pull(FOLLOW, table, table) for table in strategies], (self._roots, last))
        for r, here in enumerate(rounds):
            self._learn(draw, r, own[r].number, own[r].count, own[r].child, here.value, noted)

    def _opponents(self, draw: DrawOnDevice, rounds: Sequence[DeviceRound]) -> tuple[list[DeviceRound], list[Any]]:
        """Return the rounds with the opponent's rows, and the opponent's tables: of regrets, then of responses."""
        trunk = self.trunk.rounds
        there = [here._replace(first_row=row) for here, row in zip(rounds, draw.first_rows, strict=False)]
        responses = [self._vector(r, "responses", here.rows, here.boards) for r, here in enumerate(rounds)]
        return [*there, *rounds[trunk:]], [*[self.other] * trunk, *responses[trunk:]]

    def _average(self, draw: DrawOnDevice, r: int, number: Any, place: Any, reach: Any, noted: Array) -> None:
        """Add the player's strategy at some decisions of a round to the average."""
        tables = self._chances, self.total
        self._sum_up("learn_average", draw, r, len(number), (number, place, reach, noted), tables)

    def _learn(self, draw: DrawOnDevice, r: int, number: Any, count: Any, place: Any, value: Any, noted: Array) -> None:
        """Add the regrets of actions at some decisions of a round to the table, and apply regret matching."""
        tables = self._chances, self.regret
        self._sum_up("learn_regrets", draw, r, len(number), (number, count, place, value, noted), tables)

    def _sum_up(self, name: str, draw: DrawOnDevice, r: int, decisions: int, given: Any, tables: Any) -> None:
        i, own, weight = np.int32, draw.members[r], draw.weights[r]
        if not decisions:
            return
        sizes = i(len(weight)), i(self.hands)
        arguments = *own[:3], i(own.buckets), weight, *sizes, *given, i(self.columns), *tables
        self._sums(name)((-(-own.buckets // WARPS), decisions), (32 * WARPS,), arguments)

    def _noted(self, discount: Discount) -> Array:
        """Return the arguments that tell the GPU code how new values enter the players' tables."""
        return by_value(learning_of(discount, self.tree.noise))

    def _with_values(self, boards: FlopOnDevice) -> DeviceRound:
        """Return the last round, with GPU memory for its values."""
        last = boards.last
        return last._replace(value=self._vector(self._last, "value", last.entries, last.boards))

    def _choices(self, last: DeviceRound) -> Any:
        """Return GPU memory for the opponent's best responses in the last round, by decision, board and hand."""
        return self._bytes("choices", int(self._decision_begin[-1]) * last.boards * self.hands, np.uint8)

    def _found(self, last: DeviceRound, begin: IntArray, entries: slice) -> Any:
        """Return GPU memory for the results of some betting sequences in the last round."""
        rows = int(begin[entries.stop] - begin[entries.start])
        return self._bytes("found", rows * last.boards * self.hands, self.dtype)

    def _bytes(self, name: str, size: int, dtype: npt.DTypeLike) -> Any:
        """Return a named buffer in GPU memory. It is reused, and enlarged if a sample needs more."""
        key = self._last, name
        if key not in self._room or self._room[key].size < size:
            self._room[key] = None
            self._room[key] = self.cupy.empty(size, dtype)
        return self._room[key]

    def _pieces(self, seat: int, boards: int, begin: IntArray) -> Iterator[tuple[slice, slice, int]]:
        """Split the betting sequences of the last round so that the results of each piece fit into `FOUND` bytes.

        Yields the entries, the decisions among them, and the first decision of each piece.
        """
        most, first = FOUND // (boards * self.hands * self.dtype.itemsize), 0
        own = self._entry_of[seat]
        while first < len(begin) - 1:
            end = max(int(np.searchsorted(begin, begin[first] + most, side="right")) - 1, first + 1)
            some = slice(*np.searchsorted(own, [first, end]).tolist())
            yield slice(first, end), some, int(begin[first])
            first = end

    @cached_property
    def _first_decision(self) -> int:
        """The number of the last round's first decision."""
        return sum(len(own) for own in self._decisions[:-1])

    @cached_property
    def _last_nodes(self) -> tuple[Array, IntArray]:
        """The decision nodes of the last round, and the betting sequence that leads to each."""
        nodes = self._nodes(self._last)
        begin = self.cupy.asnumpy(self.walks[-1][0].begin)
        decides = np.flatnonzero(nodes["kind"] == DECISION)
        return nodes[decides], np.searchsorted(begin, decides, side="right") - 1

    @cached_property
    def _decision_begin(self) -> IntArray:
        """The first decision of each betting sequence in the last round, counted within the round."""
        entries = int(np.diff(self.tree.entry_start)[-1])
        found: IntArray = np.searchsorted(self._last_nodes[1], np.arange(entries + 1))
        return found

    @cached_property
    def _row_begin(self) -> IntArray:
        """The first table row of each betting sequence in the last round, counted within the round."""
        nodes, _ = self._last_nodes
        rows = np.concatenate([[0], np.cumsum(nodes["count"])])
        assert (nodes["row"] == rows[:-1]).all()
        found: IntArray = rows[self._decision_begin]
        return found

    @cached_property
    def _entry_of(self) -> tuple[IntArray, IntArray]:
        """The betting sequence that leads to each player's decisions in the last round."""
        nodes, entry = self._last_nodes
        return entry[nodes["actor"] == 0], entry[nodes["actor"] == 1]

    @cached_property
    def _own_decisions(self) -> tuple[list[OwnDecisions], list[OwnDecisions]]:
        """The decisions of each player in each round."""
        return self._decisions_by(0), self._decisions_by(1)

    def _decisions_by(self, seat: int) -> list[OwnDecisions]:
        found, before = [], 0
        for r, walks in enumerate(self.walks):
            nodes: Array = np.frombuffer(self.cupy.asnumpy(walks[1 - seat].nodes).tobytes(), NODE)
            decides = np.flatnonzero(nodes["kind"] == DECISION)
            own = nodes["actor"][decides] == seat
            at, number = decides[own], np.flatnonzero(own)
            slot, child = nodes["slot"][at], nodes["child"][at]
            if r == self._last:
                slot, child = number, nodes["row"][at]
            arrays = before + number, nodes["count"][at], slot, child
            found.append(OwnDecisions(*(self._put(array.astype(np.int32)) for array in arrays)))
            before += len(decides)
        return found

    def to_device(self, table: Table) -> Any:
        """Copy a strategy table to the GPU, in the GPU's order."""
        every = np.concatenate(self._decisions)
        packed = np.zeros(self._chances.shape)
        for a in range(self._actions):
            there = every[:, 2] > a
            packed[there, :, a] = table[every[there, 0] + a]
        return self._put(packed)

    def on_host(self, packed: Any, table: Table) -> Table:
        """Copy a table from the GPU to a given NumPy array, and return it."""
        every, found = np.concatenate(self._decisions), self.cupy.asnumpy(packed)
        for a in range(self._actions):
            there = every[:, 2] > a
            table[every[there, 0] + a] = found[there, :, a]
        return table

    def set_regrets(self, regret: Table) -> None:
        """Set both players' regrets, and compute their strategies by regret matching."""
        self.regret, self._chances = self.to_device(regret), self._put(self._packed(regret))

    def _require_memory(self, columns: int) -> None:
        """Raise RunError if the tables and the vectors of a sample do not fit into GPU memory."""
        boards, size = self._most_boards(self.trunk.rounds), self.dtype.itemsize
        last = np.diff(self.tree.entry_start)[-1] * size + len(self._decisions[-1])
        rounds = sum((sum(self._places[r]) + 2 * self._rows[r]) * boards[r] * size for r in range(self._last))
        tables = sum(map(len, self._decisions)) * columns * self._actions * (16 + size)
        draws = self.hands * (int(last) * boards[-1] + rounds + self.trunk.start[-1] * size)
        wanted = draws + tables + min(FOUND, self._rows[-1] * boards[-1] * self.hands * size)
        what = f"{self.game.game.name} with a trunk of {self.trunk.rounds} rounds"
        Cost(device=wanted, what=what, remedy="use the CPU").require()


def _weights(part: VectorTree) -> list[Array]:
    """Return the probability of each board, given both hands, for each round."""
    found = [np.ones(1)]
    for r in range(1, len(part.rows)):
        first, end = part.board_start[r : r + 2]
        children = np.diff(part.first_board[part.board_start[r - 1] : first + 1])
        found.append(np.repeat(found[-1], children) * part.chance[r] * part.weight[first:end])
    return found


class GpuSampledBoardTables(SampledBoardTables):
    """The tables of CFR-BR with sampled boards in GPU memory.

    Runs can resume from their checkpoints on a CPU or a GPU.
    """

    def prepare(self, variant: Variant) -> None:
        """Allocate tables of zeros in GPU memory."""
        require_unpredicted(variant)
        self._device = DeviceDraws(self.vectors, self.bucketed.table(), self.where, DTYPE)
        self._coming: dict[int, Future[DrawOnDevice]] = {}
        self._pool = ThreadPoolExecutor(PREPARING)
        draws = 2 * int(np.diff(self.vectors.tree.board_start)[self.where.rounds])
        self._prepared = lru_cache(STAYING if draws <= STAYING else 0)(self._prepare)

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run CFR-BR iterations on the GPU.

        `rows` has the discount factors of each iteration. Meanwhile, CPU threads prepare the next samples of boards.
        """
        for row in rows.tolist():
            discount = Discount._make([*row, predictive])
            for seat in (0, 1):
                draw = self._next(2 * self.iterations + seat)
                self._device.update_opponent(draw, seat, discount)
                self._device.learn(draw, seat, discount)
            self.iterations += 1
        self._device.regret[0, 0, 0].item()  # wait for the device, so that timings cover the work

    def _next(self, number: int) -> DrawOnDevice:
        """Return the next sample of boards in GPU memory, and let threads prepare the samples after it."""
        for later in range(number, number + 2 * PREPARING):
            if later not in self._coming:
                self._coming[later] = self._pool.submit(self._prepared, self.sample_boards(later), later % 2)
        return self._coming.pop(number).result()

    def _prepare(self, boards: tuple[int, ...], seat: int) -> DrawOnDevice:
        return self._device.prepare_draw(self.build_draw(boards), seat)

    @property
    def regret(self) -> Table:
        """The players' regrets as a NumPy array, with one row per action and one column per bucket."""
        return self._device.on_host(self._device.regret, self.bucketed.table())

    @property
    def total(self) -> Table:
        """The sums of the players' strategies as a NumPy array, with one row per action and one column per bucket."""
        return self._device.on_host(self._device.total, self.bucketed.table())

    @property
    def trunk(self) -> Table:
        """The opponent's first-round regrets as a NumPy array, with one row per action and one column per hand."""
        found: Table = self._device.cupy.asnumpy(self._device.other)
        return found

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Restore the state from a checkpoint of a CPU or a GPU."""
        device = self._device
        device.set_regrets(state["regret"])
        device.total = device.to_device(state["total"])
        device.other = device.cupy.asarray(state["trunk"].astype(device.dtype))
        self.seed[...] = state["seed"]
        self.iterations = int(state["iterations"])
        self._coming.clear()
