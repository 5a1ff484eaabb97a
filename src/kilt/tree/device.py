"""Walks over a public tree on a GPU: all boards of a round at once, round after round.

`DeviceGame` keeps the tree of a `VectorGame` in device memory. A sweep is a walk of one player over all of it: reach
goes down round by round, leaves are summed up, values come up again, and what the player learns on the way is written
to tables that stay on the device. `device_kernels.cu` has the kernels, twins of those of the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray, IntArray, data_type
from kilt.cards.equity_kernels import board_strengths
from kilt.errors import GameError, RunError
from kilt.games.holdem import Holdem
from kilt.gpu import by_value, free_memory, kernels, require_gpu
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, FOLD, FOLLOW, RESPOND, Scope, Table, VectorTree

SOURCE = Path(__file__).with_name("device_kernels.cu")
HANDS = 2  # of a thread that pushes reach down
BLOCK, SCAN, BOARDS = 128, 256, 16  # threads of a block: over hands, over the hands of a leaf, over boards

# As in the CUDA file.
NODE = np.dtype(
    [
        ("stake", np.float64),
        *((name, np.int32) for name in ("kind", "actor", "child", "count", "row", "slot", "leaf", "below")),
    ]
)
RANK = np.dtype(
    [("lower", np.int16), ("upper", np.int16), ("card_lower", np.uint8, (2,)), ("card_upper", np.uint8, (2,))]
)
LEARNING = np.dtype(
    [
        *((name, np.float64) for name in ("above", "below", "weight", "average", "average_weight", "noise")),
        *((name, np.int32) for name in ("regrets", "averages", "predictive", "restricted")),
    ]
)  # as in `rule.cuh`
IDLE = np.zeros((), LEARNING)  # of walks in which nobody learns
RANKS = ("order", "live", "ranks", "listed")  # fields of `DeviceRound`, and these:
VECTORS = ("reach", "beats", "whole", "value", "total", "chance")
TABLES = 3  # that a solver keeps at most


def learning_of(
    discount: Discount,
    noise: float = 0.0,
    *,
    regrets: bool = False,
    averages: bool = False,
    restricted: bool = False,
) -> Array:
    """A `LEARNING`: how an iteration enters tables, and which tables a walk updates.

    Parameters
    ----------
    discount : Discount
        The numbers of the iteration.
    noise : float
        Values that differ by less are equal but for rounding.
    regrets, averages : bool
        Whether the walk updates the player's regrets, and the opponent's average.
    restricted : bool
        Whether the player plays something else than what was learnt.
    """
    above, below, average, weight, average_weight, predictive = discount
    flags = regrets, averages, predictive, restricted
    return np.array((above, below, weight, average, average_weight, noise, *flags), LEARNING)


class RoundWalk(NamedTuple):
    """The betting of a round as one player's walk sees it."""

    nodes: Any  # [node] of `NODE`, numbered from 0 in each round
    begin: Any  # [entry + 1] where the nodes of its block begin
    above: Any  # [entry] the slot, in the round before, of the chance node that opens it
    slots: Any  # [leaf] whose reach is summed up
    slot: IntArray  # [node] where the opponent's reach stands, on the host


class DeviceRound(NamedTuple):
    """A round of the tree on the device, with room for its vectors [place, board, hand]."""

    walks: tuple[RoundWalk, RoundWalk]  # of players 0 and 1
    entries: int
    boards: int
    first_row: int
    rows: int
    parent: Any  # [board] the board before it, from 0 in its round
    first_board: Any  # [board + 1] of the next round, from 0 there
    factor: Any  # [board] how much it counts among those that follow one board
    symmetry: Any  # [board]
    order: Any  # [board, place] hands, weakest first; those that the board does not leave come last
    live: Any  # [board] how many it leaves
    ranks: Any  # [board, hand] of `RANK`
    listed: Any  # [board, card, place] the hands that hold a card, weakest first; −1 for those not left
    reach: Any  # of the opponent, by slot
    beats: Any  # reach that a hand beats less what beats it, by leaf
    whole: Any  # reach that shares no card with a hand, by leaf
    value: Any  # by node
    total: Any  # of chance nodes, before suits are averaged over; by entry of the next round
    chance: Any  # of chance nodes


class CardLists(NamedTuple):
    """The hands that a complete board leaves, listed by the cards that they hold."""

    cards: int  # and blanks, which stand beside hands of one card
    lists: int  # one for each card that the board leaves
    length: int  # of a list
    live: int  # hands


class DeviceTree:
    """What all walks over the public tree of a poker game need on the device.

    Parameters
    ----------
    game : VectorGame
        The game.
    dtype : data type
        Of tables, reach and values.
    """

    def __init__(self, game: VectorGame, dtype: npt.DTypeLike = np.float32) -> None:
        if not game.tree.poker:
            raise GameError(f"walks on a GPU are for games with cards, and not for {game.game.name}: use the CPU")
        if game.tree.nodes.rake.any() or (isinstance(game.game, Holdem) and game.game.tilts.any()):
            raise GameError("walks on a GPU know no rake and no tilt: use the CPU")
        self.cupy = require_gpu()
        self.game, self.tree, self.dtype = game, game.tree, data_type(dtype)
        self.hands = game.shape[1]
        put = self._put
        self.kernel = kernels(SOURCE, self.dtype.name)
        self._cards = put(np.stack(self.tree.deck.cards, axis=1))
        self._moved = put(self.tree.moved.astype(np.int32))
        self._prior = put(self.tree.prior.astype(self.dtype))
        walks: list[tuple[RoundWalk, RoundWalk]] = []
        for r in range(len(self.tree.rows)):
            walks.append((self._walk(r, 0, walks), self._walk(r, 1, walks)))
        self.walks = walks

    def _put(self, array: Array) -> Any:
        """A copy on the device, in the order of rows that kernels expect."""
        return self.cupy.asarray(np.ascontiguousarray(array))

    def _push(
        self, here: DeviceRound, player: int, up: Any, before: int, theirs: Any, average: Any, learning: Array
    ) -> None:
        """Push the opponent's reach down a round, from `up` on the `before` boards before it; sum up its leaves."""
        i, walk = np.int32, here.walks[player]
        where = i(player), i(here.boards), i(before), i(self.hands), np.int64(here.first_row), i(here.rows)
        arguments = walk.nodes, walk.begin, walk.above, here.parent, *where, up, theirs, average, by_value(learning)
        grid = -(-self.hands // (HANDS * BLOCK)), here.boards, here.entries
        self.kernel("push_reach")(grid, (BLOCK,), (*arguments, here.reach))
        self._sum_leaves(here, walk)

    def _pull(self, here: DeviceRound, player: int, task: int, own: Any, regret: Any, learning: Array) -> None:
        """Pull the values of a round up from its leaves and chance nodes."""
        i, walk = np.int32, here.walks[player]
        where = i(player), i(task), i(here.boards), i(self.hands), np.int64(here.first_row), i(here.rows)
        tables = own, regret, by_value(learning), here.beats, here.whole, here.chance, here.value
        grid = self._grid(here.boards, here.entries)
        self.kernel("pull_values")(grid, (BLOCK,), (walk.nodes, walk.begin, *where, *tables))

    def _sum_leaves(self, here: DeviceRound, walk: RoundWalk) -> None:
        """Sum up the reach at all leaves of a round."""
        i, leaves, (_, lists, length) = np.int32, len(walk.slots), here.listed.shape
        segments = max(SCAN // lists, 1)
        sums = 2 * self.hands + 1 + lists * (length + 1) + SCAN // 32 + lists * segments
        sizes = i(here.boards), i(self.hands), i(lists), i(length)
        boards = here.order, here.live, here.ranks, here.listed, self._cards
        self.kernel("leaf_sums")(
            (here.boards, leaves),
            (SCAN,),
            (here.reach, walk.slots, *boards, *sizes, here.beats, here.whole),
            shared_mem=sums * self.dtype.itemsize,
        )

    def _add_boards(self, before: DeviceRound, begin: Any, here: DeviceRound) -> None:
        """Add up what the boards that follow are worth, for each chance node; `begin` has the roots of its blocks."""
        sizes = np.int32(here.boards), np.int32(before.boards), np.int32(self.hands)
        self.kernel("add_boards")(
            (-(-self.hands // 32), before.boards, here.entries),
            (32, BOARDS),
            (begin, before.first_board, here.factor, here.value, *sizes, before.total),
            shared_mem=32 * BOARDS * self.dtype.itemsize,
        )

    def _average_over_suits(self, here: DeviceRound) -> None:
        """Give chance nodes what the boards that follow are worth: the mean over suits that nothing tells apart."""
        i = np.int32
        arguments = self._moved, i(len(self._moved)), here.symmetry, i(here.boards), i(self.hands)
        grid = self._grid(here.boards, len(here.total))
        self.kernel("average_over_suits")(grid, (BLOCK,), (*arguments, here.total, here.chance))

    def _grid(self, boards: int, entries: int) -> tuple[int, int, int]:
        return -(-self.hands // BLOCK), boards, entries

    def _openings(self) -> list[int]:
        """[round] how many blocks of the next round its chance nodes open."""
        return [*np.diff(self.tree.entry_start)[1:].tolist(), 0]

    def _round(self, r: int, tree: VectorTree, *, ranked: bool = True) -> DeviceRound:
        """Put a round of the tree, or of a part of it, on the device; its vectors are to be added.

        Where it is not `ranked`, the order of its hands is left out.
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
            **(self._ranked(r, tree) if ranked else dict.fromkeys(RANKS)),
            **dict.fromkeys(VECTORS),
        )

    def _with_vectors(self, r: int) -> DeviceRound:
        """A round with room for its vectors."""
        here = self._round(r, self.tree)
        room = [self.cupy.zeros((places, here.boards, self.hands), self.dtype) for places in self._places[r]]
        return here._replace(**dict(zip(VECTORS, room, strict=True)))

    def _card_lists(self) -> CardLists:
        """How hands of the last round are listed by the cards that they hold."""
        game = self.game.game
        assert isinstance(game, Holdem)
        board = sum(game.rules.board_cards)
        left = game.deck.size - board
        cards = int(max(column.max() for column in self.tree.deck.cards)) + 1
        length, live = (left - 1, left * (left - 1) // 2) if game.rules.hole_cards == 2 else (1, left)
        return CardLists(cards, cards - board, length, live)

    @cached_property
    def _places(self) -> list[list[int]]:
        """[round] how many places each of `VECTORS` has: 1 at least, since no array of a kernel may be empty."""
        found = []
        for walks, openings in zip(self.walks, self._openings(), strict=True):
            slots, leaves = max(walk.slot.max() for walk in walks) + 1, max(len(walk.slots) for walk in walks)
            counts = slots, leaves, leaves, len(walks[0].slot), openings, openings
            found.append([max(int(places), 1) for places in counts])
        return found

    def _walk(self, r: int, player: int, before: Sequence[tuple[RoundWalk, RoundWalk]]) -> RoundWalk:
        """The nodes of a round as the walk of a player sees them: reach changes where the opponent acts."""
        tree, every, put = self.tree, self.tree.nodes, self._put
        entries = np.arange(*tree.entry_start[r : r + 2])
        blocks = tree.entry_block[entries]
        first = int(every.block[blocks[0]])
        begin = np.append(every.block[blocks], every.block[blocks[-1] + 1]) - first
        part = slice(first, first + int(begin[-1]))
        nodes = np.zeros(part.stop - first, NODE)
        nodes["kind"], nodes["actor"], nodes["stake"] = every.kind[part], every.actor[part], every.stake[0, part]
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

    def _ranked(self, r: int, tree: VectorTree) -> dict[str, Any]:
        """The hands of the boards of a round in order of strength; before the last round all are alike."""
        deck = tree.deck
        start, stop = tree.board_start[r : r + 2].tolist()
        boards = tree.board[start:stop, : tree.board_size[r]].astype(np.int64)
        held = np.bitwise_or.reduce(tree.strengths.card_bit[boards], axis=1, initial=0)
        blocked = (deck.bits & held[:, None]) != 0
        if r < len(tree.rows) - 1:
            return self._alike(blocked)
        strength = np.zeros((len(boards), self.hands), dtype=np.int16)
        for board, out in zip(boards, strength, strict=True):
            board_strengths(board, deck, tree.strengths, out)
        strength[blocked] = np.iinfo(np.int16).max  # after all others
        ranks = np.zeros(strength.shape, RANK)
        order, ranks["lower"], ranks["upper"] = _groups(strength)
        ranks["lower"][blocked] = -1
        cards, holders = np.stack(deck.cards, axis=1), self._holders
        listed = np.full((len(boards), *holders.shape), -1, dtype=np.int16)
        for card, every in enumerate(holders):
            if len(mine := every[every >= 0]):
                by_strength, lower, upper = _groups(strength[:, mine])
                left = ~np.take_along_axis(blocked[:, mine], by_strength, axis=1)
                listed[:, card, : len(mine)] = np.where(left, mine[by_strength], -1)
                for k in range(2):
                    here = cards[mine, k] == card
                    ranks["card_lower"][:, mine[here], k] = lower[:, here]
                    ranks["card_upper"][:, mine[here], k] = upper[:, here]
        return self._put_ranks(blocked, order, ranks, listed)

    @cached_property
    def _holders(self) -> npt.NDArray[np.int16]:
        """[card, place] the hands that hold a card; −1 where there are no more."""
        cards = np.stack(self.tree.deck.cards, axis=1)
        each = [np.flatnonzero((cards == card).any(axis=1)) for card in range(int(cards.max()) + 1)]
        found = np.full((len(each), max(map(len, each))), -1, dtype=np.int16)
        for card, hands in enumerate(each):
            found[card, : len(hands)] = hands
        return found

    def _alike(self, blocked: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """`_ranked` where all hands that a board leaves are equally strong; `blocked` [board, hand] are the others."""
        ranks = np.zeros(blocked.shape, RANK)
        ranks["upper"] = np.count_nonzero(~blocked, axis=1)[:, None]
        ranks["lower"][blocked] = -1
        gone = blocked[:, self._holders] | (self._holders < 0)
        behind = np.argsort(gone, axis=2, kind="stable")
        listed = np.take_along_axis(np.where(gone, np.int16(-1), self._holders), behind, axis=2)
        for k, cards in enumerate(self.tree.deck.cards):
            ranks["card_upper"][..., k] = np.count_nonzero(~gone, axis=2)[:, cards]
        return self._put_ranks(blocked, np.argsort(blocked, axis=1, kind="stable"), ranks, listed)

    def _put_ranks(
        self, blocked: npt.NDArray[np.bool_], order: IntArray, ranks: Array, listed: npt.NDArray[np.int16]
    ) -> dict[str, Any]:
        """Put what `_ranked` found on the device."""
        put, live = self._put, np.count_nonzero(~blocked, axis=1).astype(np.int32)
        return {
            "order": put(order.astype(np.int16)),
            "live": put(live),
            "ranks": put(ranks.view(np.uint8)),
            "listed": put(listed),
        }


class DeviceGame(DeviceTree):
    """The public tree of a poker game on the device, with all of its boards.

    Parameters
    ----------
    game : VectorGame
        The game; tables are over (board, row) × hand, as its own.
    dtype : data type
        Of tables, reach and values.
    """

    def __init__(self, game: VectorGame, dtype: npt.DTypeLike = np.float32) -> None:
        super().__init__(game, dtype)
        self._require_memory()
        self.rounds = [self._with_vectors(r) for r in range(len(self.walks))]

    def table(self) -> Any:
        """A table of zeros on the device."""
        return self.cupy.zeros(self.game.shape, self.dtype)

    def on_host(self, table: Any) -> Table:
        """A table as an array of NumPy."""
        found: Table = self.cupy.asnumpy(table)
        return found

    def sweep(
        self,
        player: int,
        task: int,
        own: Any,
        theirs: Any,
        learning: Array = IDLE,
        regret: Any | None = None,
        average: Any | None = None,
        scope: Scope | None = None,
    ) -> Any:
        """Walk over the tree for one player.

        Parameters
        ----------
        player : int
            Whose values are pulled up.
        task : int
            FOLLOW the strategy `own`, or RESPOND to the opponent's.
        own, theirs : device arrays, shape (rows, hands)
            Strategies: entries of a decision are in proportion to probabilities, negative ones count as 0.
        learning : ndarray of `LEARNING`
            How what is found enters the tables.
        regret, average : device arrays, optional
            The player's regrets and the sum of the opponent's strategies; needed where somebody learns.
        scope : Scope, optional
            The board of each round that was drawn, with all hands. Left out: all boards.

        Returns
        -------
        device array, shape (hands,)
            What each hand is worth, weighted by the opponent's reach.
        """
        regret, average = own if regret is None else regret, theirs if average is None else average
        up, before, take = self._prior[1 - player], 1, self.cupy.take
        rounds = self.rounds if scope is None else self._drawn(scope)
        for r, here in enumerate(rounds):
            if scope is not None and r > 0:  # hands have other numbers after a board that was drawn
                up = take(up, self._back[scope.suits[r]], axis=2)
            self._push(here, player, up, before, theirs, average, learning)
            up, before = here.reach, here.boards
        for r in range(len(rounds) - 1, -1, -1):
            here = rounds[r]
            self._pull(here, player, task, own, regret, learning)
            if scope is not None and r > 0:
                opened = take(here.value, here.walks[player].begin[:-1], axis=0)
                moved = take(opened, self._moved[scope.suits[r]], axis=2)
                rounds[r - 1].chance[...] = self.dtype.type(scope.chance[r]) * moved
            elif r > 0:
                self._add_boards(rounds[r - 1], here.walks[player].begin, here)
                self._average_over_suits(rounds[r - 1])
        return rounds[0].value[0, 0]

    def _drawn(self, scope: Scope) -> list[DeviceRound]:
        """The rounds with one board each, and vectors of their own."""
        found = []
        for r, (here, room) in enumerate(zip(self.rounds, self._room_for_one, strict=True)):
            board = max(int(scope.board[r] - self.tree.board_start[r]), 0)
            ranks = {name: getattr(here, name)[board : board + 1] for name in RANKS}
            first_row = here.first_row + board * here.rows
            found.append(here._replace(boards=1, first_row=first_row, parent=here.parent[:1] * 0, **ranks, **room))
        return found

    @cached_property
    def _room_for_one(self) -> list[dict[str, Any]]:
        """[round] room for the vectors of one board."""
        return [
            {
                name: self.cupy.zeros((n, 1, self.hands), self.dtype)
                for name, n in zip(VECTORS, self._places[r], strict=True)
            }
            for r in range(len(self.walks))
        ]

    @cached_property
    def _back(self) -> Any:
        """[permutation, hand] which hand becomes this one: the inverse of `_moved`."""
        return self._put(np.argsort(self.tree.moved, axis=1).astype(np.int32))

    def _worth(self, player: int, task: int, strategy: Any) -> float:
        """What a player wins in chips per game who follows a strategy, or responds to it."""
        table = self.cupy.asarray(strategy, self.dtype)
        values: FloatArray = self.cupy.asnumpy(self.sweep(player, task, table, table)).astype(np.float64)
        return float(self.tree.norm * (self.tree.prior[player] @ values))

    def expected_value(self, strategy: Any) -> float:
        """What player 0 wins when both follow a strategy, in chips per game."""
        return self._worth(0, FOLLOW, strategy)

    def response_values(self, strategy: Any) -> tuple[float, float]:
        """What a best response to a strategy wins in seats 0 and 1, in chips per game."""
        return self._worth(0, RESPOND, strategy), self._worth(1, RESPOND, strategy)

    def exploitability(self, strategy: Any) -> float:
        """What best responses win, mean over both seats, in chips per game."""
        return max(sum(self.response_values(strategy)) / 2, 0.0)

    def _require_memory(self) -> None:
        """Raise RunError where the vectors and `TABLES` tables do not fit into the device's memory."""
        vectors = sum(
            sum(self._places[r]) * count * self.hands for r, count in enumerate(np.diff(self.tree.board_start).tolist())
        )
        wanted = (vectors + TABLES * prod(self.game.shape)) * self.dtype.itemsize
        if wanted > (there := free_memory()):
            raise RunError(
                f"{self.game.game.name} takes {wanted / 1e9:,.1f} GB of the GPU's memory, and {there / 1e9:,.1f} GB are"
                " free: leave out `--device gpu`, or use a smaller game, or cfr+:compact, which takes about half of it"
            )


def _groups(strength: npt.NDArray[np.int16]) -> tuple[IntArray, IntArray, IntArray]:
    """[board, place] the hands by strength, and [board, hand] where each one's group of equals begins and ends."""
    order = np.argsort(strength, axis=1, kind="stable")
    ordered, places = np.take_along_axis(strength, order, axis=1), np.arange(strength.shape[1])
    new = np.ones(strength.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    last = np.ones(strength.shape, dtype=np.bool_)
    last[:, :-1] = new[:, 1:]
    begins = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    ends = np.minimum.accumulate(np.where(last, places + 1, len(places))[:, ::-1], axis=1)[:, ::-1]
    lower, upper = np.empty_like(order), np.empty_like(order)
    np.put_along_axis(lower, order, begins, axis=1)
    np.put_along_axis(upper, order, ends, axis=1)
    return order, lower, upper
