"""Evaluate poker strategies on a GPU, on all boards of a betting round in parallel.

`DeviceGame` holds the tree of a `VectorGame` in device memory. A sweep computes the values of one player in the whole
tree: it passes reach probabilities down round by round, sums them at leaves, and passes values up. Updates of regrets
and averages go to tables that stay on the device. `device.cu` has the kernels, which are twins of those of the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray, IntArray, data_type
from kilt.cost import Cost
from kilt.errors import GameError
from kilt.games.holdem import Holdem
from kilt.games.subgame import Subgame
from kilt.gpu import by_value, kernels, require_gpu
from kilt.tree.evaluable import EvaluableGame
from kilt.tree.gpu.device_arrays import (
    IDLE,
    NODE,
    ROUND,
    VECTORS,
    CardLists,
    DeviceRound,
    Pull,
    RoundWalk,
)
from kilt.tree.gpu.device_ranks import Ranks, holders_of, ranks_of
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, FOLD, Scope, Table, VectorTree

SOURCE = Path(__file__).with_name("device.cu")
HANDS = 2  # hands per thread that pushes reach down
BLOCK, SCAN, BOARDS = 128, 256, 16  # threads per block: over hands, over the hands of a leaf, over boards
TABLES = 3  # largest number of tables of a solver


class DeviceTree:
    """The data of a game's public tree that all GPU computations share.

    Parameters
    ----------
    game : VectorGame
        The game.
    dtype : data type
        Type of tables, reach and values.
    """

    PAYOFFS = False  # whether walks support rake and fixed strategies

    def __init__(self, game: VectorGame, dtype: npt.DTypeLike = np.float32) -> None:
        self._require_possible(game)
        self.cupy = require_gpu()
        self.game, self.tree, self.dtype = game, game.tree, data_type(dtype)
        self.hands = game.shape[1]
        put = self._put
        given = game.layouts[0].given
        self.kernel = kernels(SOURCE, self.dtype.name, GIVEN=int(len(given) > 0))
        self._given = put(given.astype(np.uint8) if len(given) else np.zeros(1, np.uint8))
        self._cards = put(np.stack(self.tree.deck.cards, axis=1))
        self._moved = put(self.tree.moved.astype(np.int32))
        self._prior = put(self.tree.prior.astype(self.dtype))
        walks: list[tuple[RoundWalk, RoundWalk]] = []
        for r in range(len(self.tree.rows)):
            walks.append((self._walk(r, 0, walks), self._walk(r, 1, walks)))
        self.walks = walks

    def _require_possible(self, game: VectorGame) -> None:
        """Raise GameError if the GPU code does not support a game. It is called before anything is built."""
        name, tree = game.game.name, game.tree
        if not tree.poker:
            raise GameError(f"walks on a GPU need a game with cards, which {name} is not: use the CPU")
        if tree.nodes.extra.size:
            raise GameError(f"the payoffs of {name} are tilted, which walks on a GPU do not support: use the CPU")
        if len(tree.pair_values):
            raise GameError(f"{name} ends at a depth limit, which walks on a GPU do not support: use the CPU")
        if not self.PAYOFFS and tree.nodes.rake.any():
            raise GameError(f"{name} has rake, which these walks on a GPU do not support: use the CPU")
        if not self.PAYOFFS and len(game.layouts[0].given):
            raise GameError(f"{name} has locked strategies, which these walks on a GPU do not support: use the CPU")

    def _put(self, array: Array) -> Any:
        """Copy an array to the GPU in row-major order, which the GPU code expects."""
        return self.cupy.asarray(np.ascontiguousarray(array))

    def push_reach(
        self,
        rounds: Sequence[DeviceRound],
        player: int,
        theirs: Sequence[Any],
        learning: Array = IDLE,
        averages: Sequence[Any] | None = None,
        prior: Any | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Compute the opponent's reach probabilities from the first betting round to the last.

        At each leaf, they are also summed over the hands that a hand may meet.

        Parameters
        ----------
        rounds : sequence of DeviceRound
            Rounds from the first of the game on. Their `reach`, `beats` and `whole` are written.
        player : int
            The player whose values are computed.
        theirs : sequence of device arrays
            The opponent's strategy, [round].
        learning : ndarray of `LEARNING`
            How the opponent's strategy enters the averages.
        averages : sequence of device arrays, optional
            Sums of the opponent's strategies, [round]; required if `learning` updates averages.
        prior : device array, shape (hands,), optional
            Initial reach of the opponent's hands. Default: that of the game.
        scope : Scope, optional
            The sampled boards, if each round has one.
        """
        up, before = self._prior[1 - player] if prior is None else prior, 1
        for r, here in enumerate(rounds):
            if scope is not None and r > 0:  # hands are numbered differently after a sampled board
                up = self.cupy.take(up, self._back[scope.suits[r]], axis=2)
            walk, average = here.walks[player], theirs[r] if averages is None else averages[r]
            given = walk.nodes, walk.begin, walk.above, here.parent, self._given, self._where(here, player, 0, before)
            grid = -(-self.hands // (HANDS * BLOCK)), here.boards, here.entries
            self.kernel("push_reach")(grid, (BLOCK,), (*given, up, theirs[r], average, by_value(learning), here.reach))
            self._sum_leaves(here, walk)
            up, before = here.reach, here.boards

    def pull_values(
        self,
        rounds: Sequence[DeviceRound],
        player: int,
        pulls: Sequence[Pull | None],
        below: tuple[Any, DeviceRound] | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Compute the player's values, from the last betting round back to the first.

        `push_reach` must be called before.

        Parameters
        ----------
        rounds : sequence of DeviceRound
            Rounds from the first of the game on. Their `value`, `total` and `chance` are written.
        player : int
            The player whose values are computed.
        pulls : sequence of Pull
            What the player does, [round]. None for the first round: only `total` of its chance nodes is written.
        below : (device array, DeviceRound), optional
            Root nodes of blocks, [block], and the round that follows the last of `rounds`. Default: no such round.
        scope : Scope, optional
            The sampled boards, if each round has one.
        """
        for r in range(len(rounds) - 1, -1, -1):
            here, pull = rounds[r], pulls[r]
            if below is not None and scope is not None:
                opened = self.cupy.take(below[1].value, below[0][:-1], axis=0)
                moved = self.cupy.take(opened, self._moved[scope.suits[r + 1]], axis=2)
                here.chance[...] = self.dtype.type(scope.chance[r + 1]) * moved
            elif below is not None:
                self._add_boards(here, *below)
                if pull:
                    self._average_over_suits(here)
            if pull:
                walk = here.walks[player]
                tables = pull.own, pull.regret, by_value(pull.learning), here.beats, here.whole, here.chance, here.value
                given = walk.nodes, walk.begin, self._given, self._where(here, player, pull.task)
                self.kernel("pull_values")(self._grid(here.boards, here.entries), (BLOCK,), (*given, *tables))
                below = walk.begin, here

    def _where(self, here: DeviceRound, player: int, task: int, before: int = 0) -> Array:
        """Return the numbers that describe a round, as an argument of GPU code that is passed by value."""
        sizes = here.first_row, here.rows, here.boards, before, self.hands, player, task
        return by_value(np.array(sizes, ROUND))

    def _sum_leaves(self, here: DeviceRound, walk: RoundWalk) -> None:
        """Sum the opponent's reach probabilities at all leaves of a round."""
        i, leaves, (_, lists, length) = np.int32, len(walk.slots), here.listed.shape
        segments = max(SCAN // lists, 1)
        sums = 2 * self.hands + 1 + lists * (length + 1) + SCAN // 32 + lists * segments
        sizes = i(here.boards), i(self.hands), i(lists), i(length)
        boards = here.order, here.live, here.ranks, here.listed, self._cards
        self.kernel("leaf_sums")(
            (here.boards * leaves,),
            (SCAN,),
            (here.reach, walk.slots, *boards, *sizes, here.beats, here.whole),
            shared_mem=sums * self.dtype.itemsize,
        )

    def _add_boards(self, before: DeviceRound, begin: Any, here: DeviceRound) -> None:
        """Add up the values of the next round's boards at each chance node."""
        sizes = np.int32(here.boards), np.int32(before.boards), np.int32(self.hands)
        self.kernel("add_boards")(
            (-(-self.hands // 32), before.boards, here.entries),
            (32, BOARDS),
            (begin, before.first_board, here.factor, here.value, *sizes, before.total),
            shared_mem=32 * BOARDS * self.dtype.itemsize,
        )

    def _average_over_suits(self, here: DeviceRound) -> None:
        """Write the values of chance nodes, averaged over permutations of equivalent suits."""
        i = np.int32
        arguments = self._moved, i(len(self._moved)), here.symmetry, i(here.boards), i(self.hands)
        grid = self._grid(here.boards, len(here.total))
        self.kernel("average_over_suits")(grid, (BLOCK,), (*arguments, here.total, here.chance))

    def _grid(self, boards: int, entries: int) -> tuple[int, int, int]:
        return -(-self.hands // BLOCK), boards, entries

    def _openings(self) -> list[int]:
        """Return, for each round, how many betting sequences of the next round its chance nodes open."""
        return [*np.diff(self.tree.entry_start)[1:].tolist(), 0]

    def _round(self, r: int, tree: VectorTree, *, ranked: bool = True) -> DeviceRound:
        """Copy the arrays of one round of the tree to the GPU. Memory for vectors over hands is added later.

        Unless it is `ranked`, the order of its hands is omitted.
        """
        put = self._put
        start, stop = tree.board_start[r : r + 2].tolist()
        last = r == len(tree.rows) - 1
        parent = np.zeros(1, np.int64)
        if r > 0:
            children = np.diff(tree.first_board[tree.board_start[r - 1] : start + 1])
            parent = np.repeat(np.arange(len(children)), children)
        following = np.zeros(1, np.int64) if last else tree.first_board[start : stop + 1] - stop
        return DeviceRound(
            walks=self.walks[r],
            entries=int(tree.entry_start[r + 1] - tree.entry_start[r]),
            boards=stop - start,
            first_row=int(tree.table_start[r]),
            rows=int(tree.rows[r]),
            parent=put(parent.astype(np.int32)),
            first_board=put(following.astype(np.int32)),
            factor=put((tree.chance[r] * tree.weight[start:stop]).astype(self.dtype)),
            symmetry=put(tree.symmetry[start:stop].astype(np.int32)),
            **(self._ranked(r, tree) if ranked else dict.fromkeys(Ranks._fields)),
            **dict.fromkeys(VECTORS),
        )

    def _with_vectors(self, r: int) -> DeviceRound:
        """Return a round with GPU memory for its vectors over hands."""
        here = self._round(r, self.tree)
        room = [self.cupy.zeros((places, here.boards, self.hands), self.dtype) for places in self._places[r]]
        return here._replace(**dict(zip(VECTORS, room, strict=True)))

    def _card_lists(self) -> CardLists:
        """Return the dimensions of the lists that hold, for each card, the hands of the last round that contain it."""
        game = self.game.game
        assert isinstance(game, Holdem)
        board = sum(game.rules.board_cards)
        left = game.deck.size - board
        cards = int(max(column.max() for column in self.tree.deck.cards)) + 1
        length, live = (left - 1, left * (left - 1) // 2) if game.rules.hole_cards == 2 else (1, left)
        return CardLists(cards, cards - board, length, live)

    def _ranked(self, r: int, tree: VectorTree) -> dict[str, Any]:
        """Return the hands on a round's boards in order of strength, in GPU memory."""
        found = ranks_of(tree, r, self._holders)
        plain = found._replace(ranks=found.ranks.view(np.uint8))
        return {name: self._put(array) for name, array in plain._asdict().items()}

    @cached_property
    def _holders(self) -> npt.NDArray[np.int16]:
        """The hands that contain each card, as an array over card and position in the card's list."""
        return holders_of(self.tree.deck)

    @cached_property
    def _back(self) -> Any:
        """The hand that each suit permutation maps to each hand: the inverse of `_moved`."""
        return self._put(np.argsort(self.tree.moved, axis=1).astype(np.int32))

    @cached_property
    def _places(self) -> list[list[int]]:
        """The number of rows of each vector array in each round; at least 1, because GPU code rejects empty arrays."""
        found = []
        for walks, openings in zip(self.walks, self._openings(), strict=True):
            slots, leaves = max(walk.slot.max() for walk in walks) + 1, max(len(walk.slots) for walk in walks)
            counts = slots, leaves, leaves, len(walks[0].slot), openings, openings
            found.append([max(int(places), 1) for places in counts])
        return found

    def _walk(self, r: int, player: int, before: Sequence[tuple[RoundWalk, RoundWalk]]) -> RoundWalk:
        """Return the nodes of a round as seen by one player: reach changes only where the opponent acts."""
        tree, every, put = self.tree, self.tree.nodes, self._put
        entries = np.arange(*tree.entry_start[r : r + 2])
        blocks = tree.entry_block[entries]
        first = int(every.block[blocks[0]])
        begin = np.append(every.block[blocks], every.block[blocks[-1] + 1]) - first
        part = slice(first, first + int(begin[-1]))
        nodes = np.zeros(part.stop - first, NODE)
        nodes["kind"], nodes["actor"], nodes["stake"] = every.kind[part], every.actor[part], every.stake[0, part]
        nodes["rake"] = every.rake[part]
        nodes["child"], nodes["count"] = every.first_child[part] - first, every.children[part]
        nodes["row"] = every.row[part] + np.repeat(tree.entry_row[entries], np.diff(begin))
        slot = nodes["slot"]
        slot[begin[:-1]] = np.arange(len(entries))
        found = len(entries)
        for node in np.flatnonzero(nodes["kind"] == DECISION).tolist():
            child, count = int(nodes["child"][node]), int(nodes["count"][node])
            if nodes["actor"][node] == player:
                slot[child : child + count] = slot[node]
            else:
                slot[child : child + count] = np.arange(found, found + count)
                found += count
        ends = nodes["kind"] >= FOLD
        slots, nodes["leaf"][ends] = np.unique(slot[ends], return_inverse=True)
        if r + 1 < len(tree.rows):
            chance = tree.entry_node[tree.entry_start[r + 1] : tree.entry_start[r + 2]] - first
            nodes["below"][chance] = np.arange(len(chance))
        above: IntArray = np.zeros(1, np.int64)
        if r > 0:
            earlier = int(every.block[tree.entry_block[tree.entry_start[r - 1]]])
            above = before[r - 1][player].slot[tree.entry_node[entries] - earlier]
        opened, reached, summed = (put(array.astype(np.int32)) for array in (begin, above, slots))
        return RoundWalk(put(nodes.view(np.uint8)), opened, reached, summed, slot.astype(np.int64))


class DeviceGame(EvaluableGame, DeviceTree):
    """A poker game's public tree with all boards, in GPU memory.

    Parameters
    ----------
    game : VectorGame
        The game; tables are over (board, row) × hand, like the game's.
    dtype : data type
        Type of tables, reach and values.
    tables : int
        Number of tables that the device must have memory for.
    """

    PAYOFFS = True

    def __init__(self, game: VectorGame, dtype: npt.DTypeLike = np.float32, tables: int = TABLES) -> None:
        super().__init__(game, dtype)
        self._tables = tables
        self.cost().require()
        self.rounds = [self._with_vectors(r) for r in range(len(self.walks))]

    def table(self) -> Any:
        """Return a table of zeros in GPU memory, which stands for the uniform strategy.

        Decisions with a fixed strategy have this strategy instead.
        """
        table = self.cupy.zeros(self.game.shape, self.dtype)
        for row, strategy in self.game.given.items():
            table[row : row + len(strategy)] = self.cupy.asarray(strategy.astype(self.dtype))
        return table

    def on_host(self, table: Any) -> Table:
        """Copy a table from GPU memory to a NumPy array."""
        found: Table = self.cupy.asnumpy(table)
        return found

    def compute_values(
        self,
        player: int,
        tasks: int | Sequence[int],
        own: Any,
        theirs: Any,
        learning: Array = IDLE,
        regret: Any | None = None,
        average: Any | None = None,
        scope: Scope | None = None,
        prior: Any | None = None,
    ) -> Any:
        """Compute a player's winnings in the whole game and, on request, update the player's regrets.

        Parameters
        ----------
        player : int
            The player whose values are computed.
        tasks : int or sequence of int
            For all rounds, or for each: FOLLOW the strategy `own`, RESPOND to the opponent's, or ANSWER, which writes
            the response to `own`. Fixed strategies are followed whatever the task.
        own, theirs : device arrays, shape (rows, hands)
            Strategies: probabilities of each decision up to a factor; negative entries count as 0.
        learning : ndarray of `LEARNING`
            How new values enter the tables.
        regret, average : device arrays, optional
            The player's regrets and the sum of the opponent's strategies; required if `learning` updates them.
        scope : Scope, optional
            The sampled board of each round, with all hands. Default: all boards.
        prior : device array, shape (hands,), optional
            Initial reach of the opponent's hands. Default: that of the game.

        Returns
        -------
        device array, shape (hands,)
            Value of each hand, weighted by the opponent's reach.
        """
        rounds = self.rounds if scope is None else self._drawn(scope)
        averages = [theirs if average is None else average] * len(rounds)
        self.push_reach(rounds, player, [theirs] * len(rounds), learning, averages, prior, scope)
        every = [tasks] * len(rounds) if isinstance(tasks, int) else tasks
        pulls = [Pull(task, own, own if regret is None else regret, learning) for task in every]
        self.pull_values(rounds, player, pulls, scope=scope)
        return rounds[0].value[0, 0]

    def _drawn(self, scope: Scope) -> list[DeviceRound]:
        """Return the rounds of the tree restricted to one sampled board each, with separate memory for vectors."""
        found = []
        for r, (here, room) in enumerate(zip(self.rounds, self._room_for_one, strict=True)):
            board = max(int(scope.board[r] - self.tree.board_start[r]), 0)
            ranks = {name: getattr(here, name)[board : board + 1] for name in Ranks._fields}
            first_row = here.first_row + board * here.rows
            found.append(here._replace(boards=1, first_row=first_row, parent=here.parent[:1] * 0, **ranks, **room))
        return found

    @cached_property
    def _room_for_one(self) -> list[dict[str, Any]]:
        """Allocate GPU memory for the vectors of one board in each round."""
        return [
            {
                name: self.cupy.zeros((n, 1, self.hands), self.dtype)
                for name, n in zip(VECTORS, self._places[r], strict=True)
            }
            for r in range(len(self.walks))
        ]

    @property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, as with rake."""
        return self.game.is_general_sum

    def worth(self, player: int, task: int, strategy: Any) -> float:
        """Return a player's winnings with a strategy, or with a best response to it, in chips per game."""
        table = self.cupy.asarray(strategy, self.dtype)
        values: FloatArray = self.cupy.asnumpy(self.compute_values(player, task, table, table)).astype(np.float64)
        return float(self.tree.norm * (self.tree.prior[player] @ values))

    def memory_needed(self) -> int:
        """Return the bytes of GPU memory for a solver."""
        boards = np.diff(self.tree.board_start).tolist()
        vectors = sum(sum(self._places[r]) * count * self.hands for r, count in enumerate(boards))
        return int((vectors + self._tables * prod(self.game.shape)) * self.dtype.itemsize)

    def cost(self) -> Cost:
        """Return the GPU memory for a solver as a `Cost`."""
        remedy = "use a smaller game, or cfr+:compact, which takes about half the memory"
        if isinstance(self.game.game, Subgame):
            remedy = "use fewer bets, or start on a later round"
        return Cost(device=self.memory_needed(), what=self.game.game.name, remedy=f"use the CPU, or {remedy}")
