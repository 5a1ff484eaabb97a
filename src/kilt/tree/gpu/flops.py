"""Best responses on a GPU to strategies for buckets, flop by flop [Johanson16 §2.4].

The kernels of `device` compute the rounds before the last, which have few boards. The last round, with nearly all of
the work, has a separate kernel in `flops.cu`, in which all data of a block of betting stays on the chip. The block's
nodes are converted to a program of `STEP`s, depth first, so that few vectors are needed at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import Lock, local
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray, IntArray
from kilt.cards.equity import ranking_workspace
from kilt.cost import Cost
from kilt.games.holdem import Holdem
from kilt.gpu import kernels
from kilt.tree.gpu.device import BLOCK, DeviceTree
from kilt.tree.gpu.device_arrays import NODE, VECTORS, DeviceRound, Pull
from kilt.tree.gpu.flops_kernels import COLUMNS, rank_places
from kilt.tree.rule import TINY
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, FOLD, RESPOND, Table, TableLayout, VectorTree

SOURCE = Path(__file__).with_name("flops.cu")
THREADS, RESIDENT = 384, 2  # threads per block in the last round, with three hands each; blocks per multiprocessor
TOGETHER = 64  # largest number of betting blocks per block of threads,
AT_ONCE = 4096  # and smallest number of blocks of threads, if there is enough betting
SEGMENTS = 8  # threads that share the summation of a card's list

# Record types as in the CUDA file.
DECIDE, SUM, FOLDED, SHOWN, ADD, BEST = range(6)
FIRST, MIDDLE, LAST = range(3)
MODES = {"respond": 0, "answer": 1, "learn": 2}  # modes of passes over the last round
STEP = np.dtype(
    [("stake", np.float64), ("op", np.int32), ("slot", np.int32, (3,)), ("decision", np.int32), ("count", np.int32)]
)
FOLDS = 2  # the lane of sums for folds only


class FlopOnDevice(NamedTuple):
    """The boards after one flop, as arrays in GPU memory."""

    rounds: list[DeviceRound]  # before the last, without vectors
    last: DeviceRound  # without ranks and vectors
    places: Any  # [board, place] of the last round
    live: Any  # [board]
    buckets: tuple[list[Any], list[Any]]  # [player][round][board, hand]


class LastRound(NamedTuple):
    """The betting of the last round as steps that the GPU executes to compute a player's values."""

    steps: Any  # array of `STEP`
    begin: Any  # [entry + 1]
    slots: int  # number of reaches in memory at a time
    levels: int  # number of values in memory at a time
    longest: int  # number of steps of the longest block


class DeviceFlops(DeviceTree):
    """A poker game's public tree on a GPU, evaluated flop by flop.

    Parameters
    ----------
    game : VectorGame
        The whole game, without tables by board.
    table : ndarray, shape (rows, columns)
        The strategy of both players: probabilities of each decision up to a factor.
    dtype : data type
        Type of probabilities, reach and values.
    threads : int, optional
        Threads per block in the last round. Default: `THREADS`.
    """

    def __init__(
        self, game: VectorGame, table: Table, dtype: npt.DTypeLike = np.float32, threads: int | None = None
    ) -> None:
        super().__init__(game, dtype)
        threads = threads or THREADS
        self._lock, self._own, self._threads = Lock(), local(), threads
        self._room: dict[tuple[int, str], Any] = {}
        self._vectors: dict[tuple[int, str, int, int], Any] = {}  # reshaped views of `_room`
        self._last = len(self.walks) - 1
        rows = np.where(self.tree.rows > 0, self.tree.rows, np.diff(self.tree.table_start))
        self._rows: list[int] = rows.tolist()  # [round] rows of a table for all boards
        starts = np.concatenate([[0], np.cumsum(rows)]).tolist()
        self._decisions = [self._decisions_of(r, starts[r]) for r in range(len(self.walks))]
        self._betting = self._programs(0), self._programs(1)
        self._cards_and_blanks, self.lists, self.length, live = self._card_lists()
        self.columns, self._each = table.shape[1], -(-live // threads)
        self._actions = 1 << int(max(own[:, 2].max() for own in self._decisions) - 1).bit_length()
        self._steps = max(own.longest for own in self._betting)
        self._require_memory(self.columns)
        self._chances = self._put(self._packed(table))
        self._roots = self._put(np.arange(int(np.diff(self.tree.entry_start)[-1]) + 1, dtype=np.int32))
        self._flops = self._compiled("respond")

    def _compiled(self, mode: str) -> Any:
        """Return the compiled GPU functions of the last round in one mode: respond, answer or learn."""
        threads = self._threads
        return kernels(
            SOURCE,
            self.dtype.name,
            MODE=MODES[mode],
            EACH=self._each,
            THREADS=threads,
            RESIDENT=RESIDENT,
            LISTS=self.lists,
            LENGTH=self.length,
            SEGMENTS=SEGMENTS if threads > 1 and (SEGMENTS - 1) * -(-self.length // SEGMENTS) < self.length else 1,
            SLOTS=max(own.slots for own in self._betting),
            LEVELS=max(own.levels for own in self._betting),
            STEPS=self._steps,
            ACTIONS=self._actions,
            ALIGNED=min(self._actions * self.dtype.itemsize, 16),
        )

    def _nodes(self, r: int) -> Array:
        """Return the nodes of a round as `NODE` records, for computing the values of player 0."""
        return np.frombuffer(self.cupy.asnumpy(self.walks[r][0].nodes).tobytes(), NODE)

    def _decisions_of(self, r: int, start: int) -> Array:
        """Return, for each decision of a round, its first row in a table and in the round, and its action count."""
        nodes = self._nodes(r)
        decides = nodes[nodes["kind"] == DECISION]
        return np.stack([start + decides["row"], decides["row"], decides["count"]], axis=1).astype(np.int32)

    def _packed(self, table: Table) -> Array:
        """Return the probabilities of a table by decision, column and action, padded to a fixed number of actions."""
        every = np.concatenate(self._decisions)
        packed = np.zeros((len(every), table.shape[1], self._actions), self.dtype)
        for decision, (first, _, count) in enumerate(every.tolist()):
            part = np.maximum(table[first : first + count], 0.0)
            total = part.sum(axis=0)
            known = total > TINY
            packed[decision, :, :count] = np.where(known, part / np.where(known, total, 1.0), 1.0 / count).T
        return packed

    def _programs(self, player: int) -> LastRound:
        """Return the betting of the last round as steps for the GPU."""
        nodes = self._nodes(self._last)
        before = sum(len(own) for own in self._decisions[:-1])
        writer = _Writer(nodes, before + np.cumsum(nodes["kind"] == DECISION) - 1, player)
        begin = [0]
        for root in self.cupy.asnumpy(self.walks[-1][player].begin)[:-1].tolist():
            writer.block(root)
            begin.append(len(writer.steps))
        steps = np.array(writer.steps, STEP)
        put = self._put
        need = writer.slots, writer.levels, int(np.diff(begin).max())
        return LastRound(put(steps.view(np.uint8)), put(np.array(begin, np.int32)), *need)

    def prepare(self, part: VectorTree, layouts: tuple[TableLayout, TableLayout]) -> FlopOnDevice:
        """Copy the boards after one flop to the GPU.

        Several threads may call this method at the same time.

        Parameters
        ----------
        part : VectorTree
            The boards after the flop: see `flop_tree`.
        layouts : (TableLayout, TableLayout)
            Layouts of both players' tables on these boards.

        Returns
        -------
        FlopOnDevice
            The arrays on the device.
        """
        return self._prepared(part, layouts, *self._ordered(part))

    def _ordered(self, part: VectorTree) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
        """Return the hands on each board of the last round in order of strength, and their number."""
        start, stop = part.board_start[self._last : self._last + 2].tolist()
        places = np.zeros((stop - start, self.hands, COLUMNS), np.uint16)
        live = np.zeros(stop - start, np.int32)
        boards = part.board[start:stop, : part.board_size[self._last]].astype(np.int64)
        ranking, counts = self._ranking()
        rank_places(boards, part.deck, part.strengths, ranking, self.length, counts, places, live)
        return places, live

    def _prepared(
        self,
        part: VectorTree,
        layouts: tuple[TableLayout, TableLayout],
        places: npt.NDArray[np.uint16],
        live: npt.NDArray[np.int32],
    ) -> FlopOnDevice:
        every = np.tile(np.arange(self.hands, dtype=np.int32), (int(part.board_start[-1]), 1))
        first, second = (layout.bucket if len(layout.bucket) else every for layout in layouts)
        mine = self._by_round(part, first)
        buckets = mine, mine if second is first else self._by_round(part, second)
        rounds = [self._round(r, part) for r in range(self._last)]
        last = self._round(self._last, part, ranked=False)
        return FlopOnDevice(rounds, last, self._put(places), self._put(live), buckets)

    def _by_round(self, part: VectorTree, bucket: npt.NDArray[np.int32]) -> list[Any]:
        """Copy the bucket of each hand on each board to the GPU, as one array per round."""
        there, start = self._put(bucket), part.board_start.tolist()
        return [there[first:last] for first, last in pairwise(start)]

    def _ranking(self) -> Any:
        """Return this thread's scratch memory for ranking hands."""
        if not hasattr(self._own, "ranking"):
            game = self.game.game
            assert isinstance(game, Holdem)
            cards = game.deck, game.rules.hole_cards, sum(game.rules.board_cards)
            self._own.ranking = ranking_workspace(*cards, self.hands), np.zeros((2, self._cards_and_blanks), np.int64)
        return self._own.ranking

    def values(self, flop: FlopOnDevice, player: int) -> FloatArray:
        """Return a best response's winnings with each hand, summed over the boards after a flop.

        There is one row for each betting sequence of the first round.

        The shape is (chance nodes of the first round, hands).
        """
        with self._lock:
            return self._walk_flop(flop, player)

    def _walk_flop(self, flop: FlopOnDevice, player: int) -> FloatArray:
        rounds = [self._with_room(r, empty) for r, empty in enumerate(flop.rounds)]
        self.push_reach(rounds, player, self._strategies(rounds, flop.buckets[1 - player]))
        last = flop.last._replace(value=self._vector(self._last, "value", flop.last.entries, flop.last.boards))
        nothing = last.value
        every = slice(0, last.entries)
        self._last_round(self._flops, flop, last, player, rounds[-1], every, (0, 0), nothing, nothing)
        pulls = [Pull(RESPOND, here.value, here.value) for here in rounds[1:]]
        self.pull_values(rounds, player, [None, *pulls], (self._roots, last))
        found: FloatArray = self.cupy.asnumpy(rounds[0].total[:, 0]).astype(np.float64)
        return found

    def _with_room(self, r: int, empty: DeviceRound) -> DeviceRound:
        """Return a round before the last with GPU memory for its vectors. All flops share this memory."""
        places = self._places[r]
        return empty._replace(
            first_row=0,
            rows=self._rows[r],
            **{name: self._vector(r, name, count, empty.boards) for name, count in zip(VECTORS, places, strict=True)},
        )

    def _vector(self, r: int, name: str, places: int, boards: int) -> Any:
        """Return GPU memory for vectors over hands. It is reused, and enlarged if a flop has more boards."""
        key, size = (r, name, places, boards), places * boards * self.hands
        if key not in self._vectors:
            if (r, name) not in self._room or self._room[r, name].size < size:
                self._vectors = {other: vector for other, vector in self._vectors.items() if other[:2] != (r, name)}
                self._room[r, name] = None
                self._room[r, name] = self.cupy.zeros(size, self.dtype)
            self._vectors[key] = self._room[r, name][:size].reshape(places, boards, self.hands)
        return self._vectors[key]

    def _strategies(self, rounds: Sequence[DeviceRound], bucket: Sequence[Any]) -> list[Any]:
        """Return a player's strategy in each round before the last, with a column per hand instead of per bucket."""
        return [self._expanded(r, here, bucket[r]) for r, here in enumerate(rounds)]

    def _expanded(self, r: int, here: DeviceRound, bucket: Any) -> Any:
        """Return the opponent's strategy in a round before the last, with a column per hand instead of per bucket."""
        i, given = np.int32, self._expanding[r]
        table = self._vector(r, "strategy", here.rows, here.boards)
        sizes = i(self.columns), i(here.boards), i(self.hands), np.int64(0), i(here.rows)
        grid = -(-self.hands // BLOCK), here.boards, len(self._decisions[r])
        self._flops("expand")(grid, (BLOCK,), (self._chances, *given, bucket, *sizes, table))
        return table

    @cached_property
    def _expanding(self) -> list[list[Any]]:
        """The decisions of each round with their first rows and numbers of actions, in GPU memory."""
        found, first = [], 0
        for own in self._decisions:
            numbers = np.arange(first, first + len(own), dtype=np.int32)
            found.append([self._put(array) for array in (numbers, own[:, 1], own[:, 2])])
            first += len(own)
        return found

    def _last_round(
        self,
        compiled: Any,
        flop: FlopOnDevice,
        last: DeviceRound,
        player: int,
        above: DeviceRound,
        entries: slice,
        first: tuple[int, int],
        choices: Any,
        found: Any,
    ) -> None:
        """Write the values of the last round's betting, and the other outputs of the GPU code's mode.

        The opponent's reach comes from the round `above`. `choices` belongs to the decisions from the first number of
        `first` on, and `found` to the decisions, or rows, from the second number on.
        """
        i, own, number = np.int32, self._betting[player], entries.stop - entries.start
        bucket = flop.buckets[1 - player][-1]
        together = min(TOGETHER, -(-number * last.boards // AT_ONCE))
        sizes = (
            i(self.columns),
            i(last.boards),
            i(above.boards),
            i(self.hands),
            i(entries.start),
            i(number),
            i(together),
        )
        written = np.array(self.tree.noise, self.dtype), i(first[0]), i(first[1]), choices, found
        arguments = own.steps, own.begin, last.walks[player].above, last.parent, flop.places, flop.live, bucket
        listed, wholes = self.lists * (self.length + 1), self.lists + -(-self._threads // 32)
        numbers = 4 * wholes + 2 * (self._each * self._threads + 1 + listed) + listed
        shared = numbers * self.dtype.itemsize + self._steps * STEP.itemsize
        compiled("last_round")(
            (last.boards, -(-number // together)),
            (self._threads,),
            (*arguments, self._chances, above.reach, *sizes, *written, last.value),
            shared_mem=shared,
        )

    def _most_boards(self, drawn: int = 1) -> list[int]:
        """Return, for each round, the largest number of boards that can follow one board of the round `drawn`."""
        tree = self.tree
        edges = np.arange(tree.board_start[drawn], tree.board_start[drawn + 1] + 1)
        boards = [1] * (drawn + 1)
        while len(boards) < len(self.walks):
            edges = tree.first_board[edges]
            boards.append(int(np.diff(edges).max()))
        return boards

    def _require_memory(self, columns: int) -> None:
        """Raise RunError if the strategy and the vectors of a flop do not fit into GPU memory."""
        boards, entries = self._most_boards(), int(np.diff(self.tree.entry_start)[-1])
        vectors = entries * boards[-1]
        for r, number in enumerate(boards[:-1]):
            vectors += (sum(self._places[r]) + self._rows[r]) * number
        chances = sum(len(own) for own in self._decisions) * columns * self._actions
        wanted = (int(vectors) * self.hands + chances) * self.dtype.itemsize
        what = f"{self.game.game.name}, flop by flop,"
        Cost(device=wanted, what=what, remedy="use the CPU").require()


class _Writer:
    """Converts the betting of a round to steps for the GPU, depth first.

    After a decision of the opponent, the reach after its actions is summed, for a few actions at a time. These sums are
    not stored: leaves that use them, before the opponent's next decision, come first.
    """

    def __init__(self, nodes: Array, number: IntArray, player: int) -> None:
        self.nodes, self.number, self.player = nodes, number, player
        self.steps: list[tuple[float, int, tuple[int, int, int], int, int]] = []
        self.slots, self.levels = 1, 1  # numbers in use

    def block(self, root: int) -> None:
        """Append one betting round to the list of steps that the GPU runs to evaluate a strategy.

        `root` is the first node of the round.
        """
        if self.nodes[root]["actor"] == self.player:
            self._after([root], 0, 1, 0)
        else:
            self._opponent(root, 0, 1, 0)

    def _opponent(self, node: int, slot: int, free: int, level: int) -> None:
        """Write the steps of a decision of the opponent, whose reach before it is in a given slot of memory."""
        children = self._children(node)
        self._write(DECIDE, (slot, free, 0), int(self.number[node]), len(children))
        self.slots = max(self.slots, free + len(children))
        self._after(children, free, free + len(children), level)

    def _after(self, children: list[int], slot: int, free: int, level: int) -> None:
        """Write the steps that sum the values of some nodes, whose reaches are in adjacent slots of memory."""
        count, added, later, next_level = len(children), 0, [], level + 1
        leaves = [[node for node in (child, *self._children(child)) if self._ends(node)] for child in children]
        for lanes in self._together(leaves):
            some = next(iter(lanes.values()))
            first, second, third = (slot + lanes.get(lane, some) for lane in (0, 1, FOLDS))
            self._write(SUM, (first, second, third))
            for lane, own in lanes.items():
                below, tried = self._children(children[own]), 0
                for node in leaves[own]:
                    self._leaf(node, lane)
                    tried = self._choose(children[own], node, next_level, tried)
                deep = [node for node in below if not self._ends(node)]
                if deep:
                    later.append((slot + own, children[own], deep, tried, next_level))
                    next_level += 1
                else:
                    added = self._combine(ADD, level, added, count)
        for own, child in enumerate(children):
            if not leaves[own]:
                later.append((slot + own, child, self._children(child), 0, next_level))
                next_level += 1
        self.levels = max(self.levels, next_level + 1)
        for reach, decision, deep, tried, best in later:
            for node in deep:
                self._opponent(node, reach, free, next_level)
                tried = self._choose(decision, node, best, tried)
            added = self._combine(ADD, level, added, count)

    def _together(self, leaves: list[list[int]]) -> Iterator[dict[int, int]]:
        """Yield groups of actions whose reach is summed in one step: two that lead to showdowns, one only to folds."""
        shown = [own for own, nodes in enumerate(leaves) if any(self.nodes[node]["kind"] != FOLD for node in nodes)]
        folds = [own for own, nodes in enumerate(leaves) if nodes and own not in shown]
        for n in range(max(-(-len(shown) // FOLDS), len(folds))):
            lanes = dict(enumerate(shown[FOLDS * n : FOLDS * (n + 1)]))
            if n < len(folds):
                lanes[FOLDS] = folds[n]
            yield lanes

    def _children(self, node: int) -> list[int]:
        here = self.nodes[node]
        count = int(here["count"]) if here["kind"] == DECISION else 0
        return list(range(int(here["child"]), int(here["child"]) + count))

    def _ends(self, node: int) -> bool:
        return bool(self.nodes[node]["kind"] != DECISION)

    def _leaf(self, node: int, lane: int) -> None:
        """Write the step that computes the value of a leaf from one of the current sums of reach."""
        here = self.nodes[node]
        fold = here["kind"] == FOLD
        stake = -here["stake"] if fold and self.player else here["stake"]
        self._write(FOLDED if fold else SHOWN, (lane, 0, 0), stake=float(stake))

    def _choose(self, decision: int, node: int, level: int, before: int) -> int:
        """Write the step for an action of the player. Return how many actions of the decision have been written."""
        here, count = self.nodes[decision], len(self._children(decision))
        what = node - int(here["child"]), int(here["row"]), int(self.number[decision])
        return self._combine(BEST, level, before, count, *what)

    def _combine(
        self, how: int, level: int, before: int, count: int, action: int = 0, row: int = 0, decision: int = 0
    ) -> int:
        """Write the step that adds a value to earlier ones, or keeps the higher one.

        Return how many have been combined.
        """
        if count > 1:
            turn = FIRST if before == 0 else LAST if before == count - 1 else MIDDLE
            self._write(how, (level, action, row), decision, turn)
        return before + 1

    def _write(
        self, op: int, slot: tuple[int, int, int], decision: int = 0, count: int = 0, stake: float = 0.0
    ) -> None:
        self.steps.append((stake, op, slot, decision, count))
