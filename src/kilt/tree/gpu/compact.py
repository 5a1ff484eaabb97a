"""A poker game's tree in GPU memory, with compact tables for the last round.

Numbers of the last round have two bytes.

Nearly all of a game's tables, and of the work, is in its last round. Tables of this round have entries only for the
hands that are compatible with a board, in order of strength, and in fixed point: two bytes per entry, and a power of
two for each decision on each board. The betting is generated as CUDA code, with one function for all blocks, so that
everything but the tables stays on the chip: see `compact.cu`. The kernels of `device` compute earlier rounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray, data_type
from kilt.cards.equity import ranking_workspace
from kilt.cost import Cost
from kilt.errors import GameError
from kilt.games.holdem import Holdem
from kilt.gpu import NUMBERS, by_value, kernels
from kilt.tree.evaluable import EvaluableGame
from kilt.tree.gpu.device import DeviceTree
from kilt.tree.gpu.device_arrays import IDLE, NODE, Pull
from kilt.tree.gpu.flops_kernels import AT, COLUMNS, FIRST, HAND, LAST, LOWER, UPPER, rank_places
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, FOLD, RESPOND, Table

SOURCE = Path(__file__).with_name("compact.cu")
LANES, WARPS, RESIDENT = 32, 4, 4  # threads of a warp, warps of a block, blocks on a multiprocessor
SEGMENTS = 2  # lanes that share the summation of a card's list
FIXED = np.dtype(np.uint16)  # entries of two bytes


class CompactTable(NamedTuple):
    """A table of both players' regrets or average strategies in GPU memory."""

    early: Any  # [(board, row), hand] of the rounds before the last
    last: Any  # [board, row, place] of the last round
    powers: Any  # [board, decision] of the last round: exponent; entries are multiples of 2^(exponent − 127)


class CompactGame(EvaluableGame, DeviceTree):
    """A poker game's public tree in GPU memory, with compact tables for the last round.

    Numbers of the last round have two bytes.

    Parameters
    ----------
    game : VectorGame
        The game. The blocks of betting in its last round may differ only in their stakes, as in limit games.
    dtype : data type
        Type of reach and values, and of tables in earlier rounds.
    stored : data type
        Type of tables in the last round: `FIXED`, or the same as `dtype`.
    averaged : bool
        Whether solvers store an average in addition to the regrets.

    Raises
    ------
    GameError
        If the game has only one round, or other betting in its last round.
    """

    def __init__(
        self,
        game: VectorGame,
        dtype: npt.DTypeLike = np.float32,
        stored: npt.DTypeLike = FIXED,
        *,
        averaged: bool = True,
    ) -> None:
        super().__init__(game, dtype)
        if len(self.walks) < 2:
            raise GameError(f"{game.game.name} has only one round, but compact tables need several")
        self.stored, self.averaged, self._last = data_type(stored), averaged, len(self.walks) - 1
        self._cards_and_blanks, self._lists, self._length, live = self._card_lists()
        self._each = -(-live // LANES)
        lanes = -(-live // self._each)
        self._width = min(-(-lanes // 4) * 4, LANES) * self._each  # rows are aligned to sectors of memory
        self._nodes = np.frombuffer(self.cupy.asnumpy(self.walks[-1][0].nodes).tobytes(), NODE)
        betting = _Betting(self._blocks())
        self._stakes = [self._put(betting.stakes(player).astype(self.dtype)) for player in (0, 1)]
        self._rows, self._decisions = betting.rows, betting.decisions
        self.entries, self.boards = len(betting.blocks), int(np.diff(self.tree.board_start)[-1])
        Cost(device=self.memory_needed(), what=self.game.game.name, remedy="use a smaller game").require()
        self.rounds = [self._with_vectors(r) for r in range(self._last)]
        last = self._round(self._last, self.tree, ranked=False)
        self.last = last._replace(value=self.cupy.zeros((self.entries, self.boards, self.hands), self.dtype))
        self._hand_at, ranks, self._live = self._ranks()
        self._begin = self._put(np.arange(self.entries + 1, dtype=np.int32))
        wide = WARPS * self._scratch() >= 1 << 16
        number = NUMBERS[self.dtype.name]
        self._compact = kernels(
            SOURCE,
            self.dtype.name,
            betting.code(),
            STORED="unsigned short" if self.stored == FIXED else number,
            LANES=LANES,
            WARPS=WARPS,
            RESIDENT=RESIDENT,
            EACH=self._each,
            STRIDE=self._width,
            AVERAGED=int(averaged),
            OFFSET="unsigned" if wide else "unsigned short",
            LISTS=self._lists,
            LENGTH=self._length,
            SEGMENTS=SEGMENTS if LANES > 1 and -(-self._length // SEGMENTS) < self._length else 1,
            ROWS=self._rows,
            DECISIONS=self._decisions,
            LEAVES=betting.leaves,
        )
        self._rank_of = self._put((ranks * 2 * self.dtype.itemsize).astype(np.uint32 if wide else np.uint16))

    def table(self) -> CompactTable:
        """Return a table of zeros in GPU memory, which stands for the uniform strategy."""
        zeros, early = self.cupy.zeros, int(self.tree.table_start[self._last])
        return CompactTable(
            zeros((early, self.hands), self.dtype),
            zeros((self.boards, self.entries * self._rows, self._width), self.stored),
            zeros((self.boards, self.entries * self._decisions), np.uint8),
        )

    def on_host(self, table: CompactTable, to: Table | None = None) -> Table:
        """Copy a table from GPU memory to a NumPy array.

        The array has a row for each board and action, and a column for each hand.

        If `to` is given, it is filled instead of a new array. It must be 0 for hands that share a card with the board.
        """
        found = np.zeros(self.game.shape, self.dtype) if to is None else to
        start = int(self.tree.table_start[self._last])
        found[:start] = self.cupy.asnumpy(table.early)
        counts = self._blocks()["count"][:, self._blocks()["kind"][0] == DECISION].reshape(-1)
        powers = np.ldexp(65536 / 65535, self.cupy.asnumpy(table.powers).astype(np.int64) - 127)
        hand_at, live = self.cupy.asnumpy(self._hand_at), self.cupy.asnumpy(self._live)
        for board in range(self.boards):
            own = self.cupy.asnumpy(table.last[board]).astype(np.float64)
            if self.stored == FIXED:
                own *= np.repeat(powers[board], counts)[:, None]
            first, hands = start + board * len(own), hand_at[board, : live[board]]
            found[first : first + len(own), hands] = own[:, : live[board]]
        return found

    def compute_values(
        self,
        player: int,
        task: int,
        strategy: CompactTable,
        learning: Array = IDLE,
        average: CompactTable | None = None,
        seed: int = 0,
    ) -> Any:
        """Compute a player's winnings in the whole game and, on request, update the player's regrets.

        Parameters
        ----------
        player : int
            The player whose values are computed.
        task : int
            FOLLOW a strategy, or regrets, which are updated if `learning` says so; or RESPOND to the opponent's.
        strategy : CompactTable
            Regrets of both players, or the strategy to respond to.
        learning : ndarray of `LEARNING`
            How new values enter the tables.
        average : CompactTable, optional
            Sums of strategies, to which the opponent's is added.
        seed : int
            Random seed for rounding entries in fixed point.

        Returns
        -------
        device array, shape (hands,)
            Value of each hand, weighted by the opponent's reach.
        """
        sums, early = strategy if average is None else average, [strategy.early] * self._last
        self.push_reach(self.rounds, player, early, learning, [sums.early] * self._last)
        last, i, above = self.last, np.int32, self.rounds[-1]
        sizes = i(self.boards), i(above.boards), i(self.hands), i(self.entries)
        boards = last.walks[player].above, last.parent, self._rank_of, self._hand_at, self._live
        tables = strategy.last, strategy.powers, sums.last, sums.powers
        does = "respond" if task == RESPOND else "learn" if learning["regrets"] else "follow"
        self._compact(f"{does}_{player}")(
            (self.boards,),
            (LANES * WARPS,),
            (*boards, self._stakes[player], above.reach, *sizes, by_value(learning), i(seed), *tables, last.value),
            shared_mem=WARPS * self._scratch(),
        )
        pulls = [Pull(task, strategy.early, strategy.early, learning)] * self._last
        self.pull_values(self.rounds, player, pulls, (self._begin, last))
        return self.rounds[0].value[0, 0]

    def worth(self, player: int, task: int, strategy: CompactTable) -> float:
        """Return a player's winnings with a strategy, or with a best response to it, in chips per game."""
        values: FloatArray = self.cupy.asnumpy(self.compute_values(player, task, strategy)).astype(np.float64)
        return float(self.tree.norm * (self.tree.prior[player] @ values))

    def _scratch(self) -> int:
        """Return the bytes of shared GPU memory that a warp uses."""
        return (self._whole() + self._lists + 1) * 2 * self.dtype.itemsize

    def _whole(self) -> int:
        """Return where the sums of whole lists begin in shared memory, in pairs of numbers."""
        return LANES * self._each + 1 + (self._lists + 1) * (self._length + 1)

    def _blocks(self) -> Array:
        """Return the nodes of each betting sequence's last round as `NODE` records, numbered from 0 in each."""
        begin = self.cupy.asnumpy(self.walks[-1][0].begin).astype(np.int64)
        size = int(begin[1])
        if (np.diff(begin) != size).any():
            raise GameError(f"the betting of {self.game.game.name} in its last round depends on earlier rounds")
        blocks = self._nodes.reshape(-1, size).copy()
        blocks["child"] -= begin[:-1, None].astype(np.int32)
        decides = blocks["kind"] == DECISION
        first = blocks["row"][:, :1] * decides
        blocks["row"] = np.where(decides, blocks["row"] - first, 0)
        blocks["child"][~decides] = 0
        blocks["count"][~decides] = 0
        return blocks

    def _ranks(self) -> tuple[Any, Array, Any]:
        """Return the hands on each board of the last round in order of strength, memory offsets and hand counts."""
        tree, game = self.tree, self.game.game
        assert isinstance(game, Holdem)
        width, lists, whole = LANES * self._each, LANES * self._each + 1, self._whole()
        ranked = np.zeros((self.boards, self.hands, COLUMNS), np.uint16)
        live = np.zeros(self.boards, np.int32)
        boards = tree.board[tree.board_start[self._last] :, : tree.board_size[self._last]].astype(np.int64)
        cards = game.deck, game.rules.hole_cards, sum(game.rules.board_cards)
        scratch = ranking_workspace(*cards, self.hands), np.zeros((2, self._cards_and_blanks), np.int64)
        rank_places(boards, tree.deck, tree.strengths, scratch[0], self._length, scratch[1], ranked, live)
        places = np.zeros((self.boards, width, 10), np.int64)
        # Entries without a hand get sums of 0: the difference of equal sums, and zeros.
        places[:, :, 2:8] = lists + self._lists * (self._length + 1)
        places[:, :, 8], places[:, :, 9] = whole + self._lists, lists + self._lists * (self._length + 1)
        hand_at = np.zeros((self.boards, width), np.int16)
        for board, count in enumerate(live.tolist()):
            own, to = ranked[board, :count].astype(np.int64), places[board, :count]
            hand_at[board, :count] = own[:, HAND]
            to[:, 0], to[:, 1] = own[:, LOWER], own[:, UPPER]
            for column, given in ((2, AT), (4, FIRST), (6, LAST)):
                to[:, column : column + 2] = lists + own[:, given : given + 2]
            to[:, 8:] = whole + own[:, FIRST : FIRST + 2] // (self._length + 1)
        return self._put(hand_at), places, self._put(live)

    def bytes_per_iteration(self) -> int:
        """Return the bytes that an iteration reads and writes in the last round's tables on the GPU.

        Regrets are read in the opponent's pass, and read and written in the player's own; averages are read and
        written.
        """
        entries = self.boards * self.entries * self._rows * self._width
        return (3 + 2 * self.averaged) * entries * self.stored.itemsize

    def memory_needed(self) -> int:
        """Return the bytes of GPU memory for a solver."""
        counts = np.diff(self.tree.board_start).tolist()
        early = sum(sum(self._places[r]) * counts[r] for r in range(self._last))
        tables = 1 + self.averaged
        numbers = (early + self.entries * self.boards + tables * int(self.tree.table_start[self._last])) * self.hands
        stored = self.boards * self.entries * (self._rows * self._width * self.stored.itemsize + self._decisions)
        return int(numbers * self.dtype.itemsize + tables * stored)


class _Betting:
    """Generates CUDA code for the betting of the last round, which has the same shape after all earlier betting."""

    def __init__(self, blocks: Array) -> None:
        shape = ["kind", "actor", "child", "count", "row"]
        for name in shape:
            if (blocks[name] != blocks[name][0]).any():
                raise GameError("betting in the last round depends on earlier rounds: use the CPU")
        self.blocks, self.nodes = blocks, blocks[0]
        decides = self.nodes["kind"] == DECISION
        self.number = np.cumsum(decides) - 1  # [node] number of a decision
        self.leaf = np.cumsum(~decides) - 1  # [node] number of a leaf
        self.rows, self.decisions = int(self.nodes["count"].sum()), int(decides.sum())
        self.leaves = len(decides) - self.decisions
        order = np.argsort(self.nodes["row"][decides], kind="stable")
        if (order != np.arange(len(order))).any():
            raise GameError("rows of the last round are not in the order of its decisions")
        self.player, self.does, self.lines = 0, "", list[str]()

    def stakes(self, player: int) -> FloatArray:
        """Return a player's stake at each leaf of the last round, for each way of earlier betting."""
        leaves = self.blocks[:, self.nodes["kind"] != DECISION]
        negative = player & (leaves["kind"] == FOLD)
        found: FloatArray = np.where(negative, -leaves["stake"], leaves["stake"])
        return found

    def code(self) -> str:
        """Generate CUDA code for the betting of the last round.

        It contains functions that learn, follow a strategy, and respond to one.
        """
        parts = []
        for name in ("learn", "follow", "respond"):
            for player in (0, 1):
                self.player, self.does, self.lines = player, name, []
                value, _ = self._value(0, "reach", "")
                body = "\n".join(f"        {line}" for line in (*self.lines, f"return {value};"))
                parts.append(
                    f"struct {name}_{player}_betting {{\n"
                    "    static __device__ inline Vector walk(const Walk& walk, const Vector& reach)\n"
                    f"    {{\n{body}\n    }}\n}};\nKERNEL({name}_{player})\n"
                )
        return "\n".join(parts)

    def _children(self, node: int) -> list[int]:
        here = self.nodes[node]
        return list(range(int(here["child"]), int(here["child"] + here["count"])))

    def _value(self, node: int, reach: str, sums: str) -> tuple[str, str]:
        """Generate code that computes the value of a node from the opponent's reach probabilities.

        Parameters
        ----------
        node : int
            Node of a block.
        reach, sums : str
            Variables of the opponent's reach and of its sums; the latter may be empty if they are not yet computed.

        Returns
        -------
        tuple of str
            Variables of the value, and of the sums of the reach.
        """
        here = self.nodes[node]
        if here["kind"] != DECISION:
            sums = sums or self._sums([reach], node)[0]
            what = "met" if here["kind"] == FOLD else "won"
            return f"times(walk.stakes[{self.leaf[node]}], {sums}.{what})", sums
        return self._opponents(node, reach, sums) if here["actor"] != self.player else self._own(node, reach, sums)

    def _opponents(self, node: int, reach: str, sums: str) -> tuple[str, str]:
        """Generate code for a decision of the opponent: the sum of the values of its actions."""
        write, children, count = self.lines.append, self._children(node), int(self.nodes[node]["count"])
        learns = "true" if self.does == "learn" else "false"
        reaches = [f"reach_{node}[{a}]" for a in range(count)]
        write(f"Vector reach_{node}[{count}];")
        write(f"follow<{count}, {learns}>(walk, {self._place(node)}, {reach}, reach_{node});")
        folds = [a for a in range(count) if self.nodes[children[a]]["kind"] == FOLD]
        if folds and not sums:
            sums = self._sums([reach], node)[0]
        others = [a for a in range(count) if a not in folds[:1]]
        known = dict(zip(others, self._sums([reaches[a] for a in others], node), strict=True))
        if folds:
            known[folds[0]] = f"rest_{node}"
            write(f"Sum rest_{node} = {sums};")
            self.lines += [f"take_from(rest_{node}.met, {known[a]}.met);" for a in others]
        elif not sums:
            sums = f"whole_{node}"
            write(f"Sum {sums} = {known[0]};")
            for part in ("won", "met"):
                self.lines += [f"add({sums}.{part}, {known[a]}.{part});" for a in others[1:]]
        for n, a in enumerate(sorted(range(count), key=lambda a: self.nodes[children[a]]["kind"] == DECISION)):
            value, _ = self._value(children[a], reaches[a], known[a])
            write(f"Vector value_{node} = {value};" if n == 0 else f"add(value_{node}, {value});")
        return f"value_{node}", sums

    def _own(self, node: int, reach: str, sums: str) -> tuple[str, str]:
        """Generate code for a decision of the player: the mean value under regret matching, or the highest value."""
        write, children, count = self.lines.append, self._children(node), int(self.nodes[node]["count"])
        write(f"Vector action_{node}[{count}];")
        # Leaves first: sums that they compute are reused.
        for a in sorted(
            range(count), key=lambda a: (self.nodes[children[a]]["kind"] == DECISION, self._folds(children[a]))
        ):
            value, sums = self._value(children[a], reach, sums)
            write(f"action_{node}[{a}] = {value};")
        if self.does != "respond":
            mean = "learn" if self.does == "learn" else "mean"
            write(f"const Vector value_{node} = {mean}<{count}>(walk, {self._place(node)}, action_{node});")
        else:
            write(f"Vector value_{node} = action_{node}[0];")
            self.lines += [f"raise(value_{node}, action_{node}[{a}]);" for a in range(1, count)]
        return f"value_{node}", sums

    def _place(self, node: int) -> str:
        """Return the first row and the number of a decision, as arguments in the generated code."""
        return f"{self.nodes[node]['row']}, {self.number[node]}"

    def _folds(self, node: int) -> bool:
        """Return whether a fold is among the children of a node."""
        return any(self.nodes[child]["kind"] == FOLD for child in self._children(node))

    def _sums(self, reaches: list[str], node: int) -> list[str]:
        """Generate code that sums reach probabilities, two vectors at a time.

        Return the names of the variables with the sums.
        """
        names = [f"sum_{node}_{''.join(c for c in reach if c.isalnum())}" for reach in reaches]
        for n in range(0, len(names), 2):
            one, two = (*reaches[n : n + 2], reaches[n])[:2]
            first, second = (*names[n : n + 2], f"spare_{names[n]}")[:2]
            self.lines += [f"Sum {first}, {second};", f"sum_up(walk, {one}, {two}, {first}, {second});"]
        return names
