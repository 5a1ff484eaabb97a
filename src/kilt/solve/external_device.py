"""External sampling on a GPU: the iterations of `external`, with tables and cards that stay on the device.

The kernels deal hands, look up their buckets and walk over the betting, for some deals in each warp: see
`external_device.cu`. Deals, and what is drawn in walks, are those of the CPU. But thousands of deals are in flight at a
time: they learn from regrets to which those beside them have not added yet, and in an order that differs from run to
run. Nothing that they add is lost. The more deals are in flight for each bucket of the first round, the slower is
learning, so that their number depends on the game, and on the number of deals so far: see `deals_in_flight`.

Numbers do not run out. Regrets and counts of the first round, which each deal comes to, have eight bytes. Counts of
later rounds are halved as on the CPU. At the same points, the regrets of a decision are halved if one of them has
reached `RANGE` times the largest payoff, and those below minus that are raised to it: in single precision, what a deal
adds would soon be rounded away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import comb
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import AbstractGame, Buckets, SlotLayout
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import (
    PIECE,
    AbstractionSpec,
    AsymmetricAbstraction,
    CardAbstraction,
    RoundBuckets,
)
from kilt.abstraction.features import Deal
from kilt.abstraction.holdings import Holdings
from kilt.abstraction.plan import LOSSLESS, plan_named
from kilt.arrays import Array, Deferred, data_type
from kilt.cards.hands import hand_tables
from kilt.games.holdem import Holdem
from kilt.gpu import address, by_value, copy_in, copy_out, kernels, multiprocessors, require_gpu
from kilt.solve.external import (
    DEFAULT,
    FACTOR,
    FULL,
    STEPS,
    External,
    Pace,
    SamplingOptions,
    require_sampled_there,
    rules_of,
    weight_beyond,
    words_of,
)
from kilt.solve.external_device_kernels import count_depth, count_room
from kilt.solve.external_kernels import NODE
from kilt.tree.betting import BettingTree, betting_tree

SOURCE = Path(__file__).with_name("external_device.cu")
LANES, WARPS, RESIDENT = 32, 8, 2  # of a warp, of a block, and blocks on a multiprocessor
SIZE = 16  # deals of a warp: a walk for each player is a lane's
CLASS = 200  # deals in flight at most for each bucket of the first round,
SHARE = 64  # and at most one in so many deals so far
RANGE = 2.0**17  # times the largest payoff: up to where regrets grow
ROOMY = 6  # times what walks need on average, if opponents play at random: room of a warp's lists
THREADS = 256  # of a block that goes over all rows
TOGETHER = 1 << 28  # bytes of a strategy that are written at once
RESERVE = 1 << 29  # bytes of the device for code, and for what else is there

P, N = np.uint64, np.uint32  # an address or a long number, and a short one
SEARCH = np.dtype([("word", P), ("first", P), ("symmetry", P), ("parts", N), ("dealt", N, 4), ("start", N)], align=True)
LOOK = np.dtype(
    [
        *((name, P) for name in ("table", "labels", "bucket")),
        *((name, N) for name in ("bytes", "hands", "search", "classes", "codes", "unused")),
    ],
    align=True,
)
HANDS = np.dtype([(name, P) for name in ("key", "bit", "low", "high", "strength", "flush", "start")], align=True)
DEALS = np.dtype(
    [
        *((name, P) for name in ("search", "look", "names", "composed")),
        *(("hands", HANDS), ("seed", P), ("deck", N), ("permutations", N)),
    ],
    align=True,
)
LISTS = np.dtype(
    [("level", P), ("own", P), ("value", P), ("levels", N), ("owns", N), ("values", N), ("unused", N)], align=True
)
WALKS = np.dtype(
    [
        *((name, P) for name in ("nodes", "payoff", "table", "wide")),
        *(("lists", LISTS), ("large", LISTS)),
        *((name, P) for name in ("taken", "next", "counted", "first", "deals")),
        *(("prune", np.float64), ("weight", np.float64), ("size", N), ("batches", N)),
    ],
    align=True,
)
ROWS = np.dtype([(name, P) for name in ("slot", "row", "count", "buckets", "wide", "table", "numbers")], align=True)
PLACE = 16  # bytes of a place of a list


class Room(NamedTuple):
    """How many places walks need: of the player's decisions, of values, and of all decisions."""

    own: float
    values: float
    decisions: float

    def list_bytes(self) -> float:
        """Bytes of lists with so many places."""
        return PLACE * (2 * self.decisions + self.own) + 4 * self.values


def room_of(betting: BettingTree, *, most: bool) -> Room:
    """What the walks of a deal need, for both players: at most, or on average if opponents play at random."""
    nodes, found = betting.nodes, np.zeros(3)
    for player in (0, 1):
        room = np.zeros((len(nodes.actor), 3))
        count_room(nodes.first_child, nodes.children, nodes.actor, player, most, room)
        found += room[0]
    return Room(*found.tolist())


def depth_of(betting: BettingTree) -> int:
    """The most decisions of a hand."""
    depth = np.zeros(len(betting.nodes.actor), dtype=np.int32)
    count_depth(betting.nodes.parent, betting.nodes.actor, depth)
    return int(depth.max())


def device_bytes(game: Holdem, menu: ActionAbstraction | None, slots: int, words: int, maps: int) -> int:
    """Bytes of the device that a run takes: tables, bucket maps, lists of warps, and a part of the strategy."""
    betting = betting_tree(game, menu)
    lists = WARPS * RESIDENT * multiprocessors() * ROOMY * SIZE * room_of(betting, most=False).list_bytes()
    lists += SIZE * room_of(betting, most=True).list_bytes() + NODE.itemsize * len(betting.nodes.actor)
    return int(4 * words * slots + maps + lists + min(2 * slots, TOGETHER) + RESERVE)


def probe_there(
    game: Holdem, menu: ActionAbstraction | None, buckets: Buckets, options: SamplingOptions, seconds: float = 2.0
) -> Pace:
    """Measure the speed of external sampling for some seconds, with buckets that mean nothing."""
    deal = Deal.of(game)
    made_up = [_made_up(deal, numbers) for numbers in dict.fromkeys(buckets)]
    cards = made_up[0] if len(made_up) == 1 else AsymmetricAbstraction((made_up[0], made_up[1]))
    return pace_of(DeviceExternal(AbstractGame(game, cards, menu), 0, options), seconds)


def pace_of(solver: External, seconds: float) -> Pace:
    """How quickly a solver goes on, in the last of two parts of so many seconds."""
    before, first, spent = (0, 0, 0), True, 0.0
    while first or spent < seconds / 2:
        began = perf_counter()
        solver.step(max(1 << 12, solver.iterations // 4))
        spent += perf_counter() - began
        if first and spent > seconds / 2:  # the first compiles, and touches memory for the first time
            before, spent, first = (solver.iterations, solver.decisions, solver.visits), 0.0, False
    after = solver.iterations, solver.decisions, solver.visits
    return Pace(*((number - old) / spent for number, old in zip(after, before, strict=True)))


def _made_up(deal: Deal, numbers: Sequence[int]) -> CardAbstraction:
    """A card abstraction with some bucket for each hand on each board."""
    rounds, rng = [], np.random.default_rng(0)
    for size, number in zip(deal.sizes, numbers, strict=True):
        holdings = deal.holdings((size,))
        kind = np.uint16 if number <= 1 << 16 else np.uint32
        table = rng.integers(0, number, (len(holdings.boards), comb(deal.deck.size, deal.hole_cards)), dtype=kind)
        sizes = np.ones(number, dtype=np.int64)
        rounds.append(RoundBuckets(holdings, table, sizes, None, None, {}, None, Path("made up")))
    plan = plan_named(LOSSLESS, deal.board_cards)
    return CardAbstraction(AbstractionSpec("made up", deal, plan), tuple(rounds))


def deals_in_flight(classes: int, iterations: int, most: int) -> int:
    """How many deals may be walked over at a time, of `most` that the device has room for.

    Each of them learns without what the others learn. So there are few in small games, and few at first.

    >>> deals_in_flight(169, 10**9, 40_000), deals_in_flight(3, 10**9, 40_000), deals_in_flight(169, 64_000, 40_000)
    (33800, 600, 1000)
    """
    return max(1, min(most, CLASS * classes, iterations // SHARE))


class DeviceCards:
    """What deals are looked up with: bucket maps, and the strength of hands, on the device."""

    def __init__(self, abstract: AbstractGame, seed: int) -> None:
        self.cupy, self.abstract = require_gpu(), abstract
        rules = abstract.game.rules
        self.deck = rules.deck
        self._kept: list[Any] = []  # arrays that records point to
        self._searches: dict[tuple[int, ...], int] = {}
        self._tables: dict[int, Any] = {}
        self._found: list[tuple[Any, ...]] = []
        looks = np.zeros(2 * rules.rounds, dtype=LOOK)
        for r in range(rules.rounds):
            for player, cards in enumerate(abstract.cards.each):
                looks[2 * r + player] = self._look(cards.rounds[r])
        searches = np.array(self._found, dtype=SEARCH)
        first = abstract.cards.each[0].rounds[0].holdings.index.boards
        suits = self.deck.suits
        names = (first.renamed[:, :suits].astype(np.uint32) << 8 * np.arange(suits, dtype=np.uint32)).sum(axis=1)
        tables = hand_tables(rules.hole_cards + rules.board_size(rules.rounds - 1), self.deck)
        hands = (
            *(self._put(array.astype(np.uint64)) for array in (tables.card_key, tables.card_bit)),
            *(self._put(array) for array in (tables.low, tables.high, tables.strength, tables.flush)),
            tables.start,
        )
        composed = self._put(first.composed.astype(np.uint8))
        size = self.deck.size, len(first.composed)
        pointers = (
            self._put(searches.view(np.uint8)),
            self._put(looks.view(np.uint8)),
            self._put(names.astype(np.uint32)),
            composed,
        )
        self.record = np.array((*pointers, hands, np.uint64(seed), *size), dtype=DEALS)

    def _put(self, array: Array) -> int:
        """A copy on the device, which lasts as long as this: its address."""
        self._kept.append(self.cupy.asarray(np.ascontiguousarray(array)))
        return address(self._kept[-1])

    def _look(self, this: RoundBuckets) -> tuple[Any, ...]:
        """The record of a round's buckets."""
        if id(this.table) not in self._tables:
            table = np.concatenate([*_computed(this)]) if this.by_strength is not None else this.table
            kept = self.cupy.asarray(np.ascontiguousarray(table))
            this.require_below(this.entries, int(kept.max()) if kept.size else 0)
            self._tables[id(this.table)] = kept
            self._kept.append(kept)
            self._kept.append(this.table)  # so that no other table has its id
        kept = self._tables[id(this.table)]
        labels = bucket = classes = codes = 0
        if this.coded:
            classes, codes = self._search(this.coded.classes.holdings), this.coded.bucket.shape[1]
            labels = self._put(this.coded.classes.labels.astype(np.int32))
            bucket = self._put(this.coded.bucket.astype(np.int32))
        search = self._search(this.holdings)
        return address(kept), labels, bucket, kept.itemsize, kept.shape[1], search, classes, codes, 0

    def _search(self, holdings: Holdings) -> int:
        """The number of what finds canonical boards that are dealt in such rounds."""
        dealt = tuple(filter(None, holdings.dealt))
        if dealt not in self._searches:
            boards = holdings.index.boards
            arrays = boards.word.astype(np.uint64), boards.first.astype(np.uint32), boards.symmetry.astype(np.uint32)
            padded = (*dealt, *[0] * (4 - len(dealt)))
            start = int(boards.start[len(boards.dealt) - 1]) if dealt else 0
            self._searches[dealt] = len(self._found)
            self._found.append((*[self._put(array) for array in arrays], len(dealt), padded, start))
        return self._searches[dealt]

    @property
    def macros(self) -> dict[str, int]:
        """What kernels that deal are compiled for."""
        rules = self.abstract.game.rules
        board = rules.board_size(rules.rounds - 1)
        return {
            "ROUNDS": rules.rounds,
            "HELD": rules.hole_cards,
            "BOARD": board,
            "SUITS": self.deck.suits,
            "SEARCHES": len(self._found),
        }


def _computed(this: RoundBuckets) -> Iterator[Array]:
    """[board, hand] the buckets of a round that has no table, some boards at a time."""
    boards = this.holdings.boards.astype(np.int64)
    for start in range(0, len(boards), PIECE):
        yield this.rows(boards[start : start + PIECE]).clip(0).astype(np.uint32)


class DeviceTable:
    """Regrets and counts on the device: see `external.RegretTable`."""

    def __init__(self, slots: SlotLayout, options: SamplingOptions = DEFAULT) -> None:
        self.cupy, self.slots, self.options, self.words = require_gpu(), slots, options, words_of(options)
        nodes = slots.betting.nodes
        acts = np.flatnonzero(nodes.actor >= 0)
        self.counts, self.buckets = nodes.children[acts].astype(np.uint32), slots.buckets_at[acts].astype(np.uint32)
        self.first = slots.first[acts]
        self.wide = nodes.round[acts] == 0
        rows = self.words * self.first
        size = 2 * self.counts.astype(np.int64) * self.buckets * self.wide
        rows[self.wide] = (np.cumsum(size) - size)[self.wide]
        self.rows, self.wide_size = rows, int(size.sum())
        rules = rules_of(slots, self.words)
        self.nodes, self.payoff = rules.nodes.copy(), rules.payoff
        inner = self.nodes["count"] > 0
        self.nodes["first"][inner] = rows[np.searchsorted(self.words * self.first, self.nodes["first"][inner])]
        self.table: Any = None
        self.numbers: Any = None
        self.clear()
        put = self.cupy.asarray
        self._rows = [
            put(self.first.astype(np.uint64)),
            put(rows.astype(np.uint64)),
            put(self.counts),
            put(self.buckets),
            put(self.wide.astype(np.uint8)),
        ]
        self._staged: Any = None
        self.kernel: Any = None  # compiled for the walks

    def clear(self) -> None:
        """Set all regrets and counts to 0."""
        self.table = self.numbers = None  # there need not be room for two
        self.table = self.cupy.zeros(self.slots.slots * self.words + 2, np.uint32)  # pairs are read beyond the end
        self.numbers = self.cupy.zeros(self.wide_size + 2, np.float64)

    @property
    def record(self) -> Array:
        """All rows, as kernels take them."""
        return np.array(tuple(address(array) for array in (*self._rows, self.table, self.numbers)), dtype=ROWS)

    def quantised(self, dtype: npt.DTypeLike, threads: int = 1, *, counted: bool = True) -> Array:
        """[slot] the average strategy, if that is kept, or what regret matching plays now."""
        shares = np.empty(self.slots.slots, dtype=dtype)
        ends = np.append(self.first, self.slots.slots)[1:]
        begin, most = 0, max(TOGETHER // shares.itemsize, int(np.diff(self.first, append=self.slots.slots).max()))
        room = self.cupy.empty(min(most, self.slots.slots), shares.dtype)
        while begin < len(self.first):
            start = int(self.first[begin])
            end = max(begin + 1, int(np.searchsorted(ends, start + most, side="right")))
            size = int(ends[end - 1]) - start
            how = np.int32(counted and self.options.average), np.int32(shares.itemsize), np.int64(start)
            self._over("quantise_rows", begin, end - begin, *how, room)
            copy_out(room[:size], shares[start : start + size])
            begin = end
        return shares

    def discount(self, key: np.uint64, threads: int = 1) -> None:
        """Multiply regrets and counts by FACTOR; counts are rounded at random, so that they stay whole."""
        self._over("discount_rows", 0, len(self.first), np.float64(FACTOR), key.view(np.int64))

    def halve(self, limit: int, threads: int = 1) -> None:
        """Keep numbers in range: halve the counts of each decision that has one of `limit` or more, and regrets too."""
        top = RANGE * float(np.abs(self.payoff).max())
        self._over(
            "bound_rows", 0, len(self.first), np.uint32(limit), np.float32(top), np.float32(max(top, self.least))
        )

    least = 0.0  # regrets are kept from −this on: what is left out must stay so

    def _over(self, kernel: str, first: int, decisions: int, *arguments: Any) -> None:
        """Go over the rows of some decisions."""
        given = by_value(self.record), np.int32(first), np.int32(decisions), *arguments
        self.kernel(kernel)((min(decisions, 1 << 16),), (THREADS,), given)

    def kept(self) -> tuple[Deferred, Deferred]:
        """The table as the CPU has it, and the wide numbers: arrays that are copied when they are asked for."""
        shape, kind = (self.slots.slots * self.words,), np.dtype(np.uint32)
        wide = Deferred(
            (self.wide_size,), np.dtype(np.float64), lambda to: copy_out(self.numbers[: self.wide_size], to)
        )
        return Deferred(shape, kind, partial(self._fill, wide)), wide

    def _fill(self, wide: Deferred, table: Array) -> None:
        """Write the table as the CPU has it: counts of the first round are halved until they fit."""
        copy_out(self.table[: len(table)], table)
        for mine, theirs, n in self._wide_rows(np.asarray(wide), table):
            theirs[:, :n] = mine[:, :n].astype(np.float32).view(np.uint32)
            if self.words == 2:
                counts = np.ascontiguousarray(mine[:, n:]).view(np.uint64)
                while (large := counts.max(axis=1) >= FULL).any():
                    counts[large] >>= np.uint64(1)
                theirs[:, n:] = counts

    def load(self, table: Array, wide: Array | None) -> None:
        """Go on from what `saved` gave, or from a table of the CPU."""
        if table.shape != (self.slots.slots * self.words,):
            raise ValueError(f"table has shape {table.shape}, not {(self.slots.slots * self.words,)}")
        copy_in(table, self.table[: len(table)])
        if wide is None:
            wide = np.zeros(self.wide_size, np.float64)
            for mine, theirs, n in self._wide_rows(wide, np.asarray(table)):
                mine[:, :n] = np.ascontiguousarray(theirs[:, :n]).view(np.float32)
                if self.words == 2:
                    mine[:, n:].view(np.uint64)[:] = theirs[:, n:]
        if wide.shape != (self.wide_size,):
            raise ValueError(f"wide has shape {wide.shape}, not {(self.wide_size,)}")
        copy_in(wide, self.numbers[: len(wide)])

    def _wide_rows(self, wide: Array, table: Array) -> Iterator[tuple[Array, Array, int]]:
        """[bucket, number] rows of each decision of the first round, here and in a table of the CPU; its actions."""
        for d in np.flatnonzero(self.wide).tolist():
            n, buckets = int(self.counts[d]), int(self.buckets[d])
            mine, theirs = int(self.rows[d]), int(self.words * self.first[d])
            yield (
                wide[mine : mine + 2 * n * buckets].reshape(buckets, 2 * n),
                table[theirs : theirs + self.words * n * buckets].reshape(buckets, self.words * n),
                n,
            )


class DeviceExternal(External):
    """External sampling with tables on the device: see `External`, of whose runs it can go on with any.

    Parameters
    ----------
    abstract : AbstractGame
        What is solved.
    seed : int
        What is dealt and drawn depends on it and on the number of iterations; what is found does not on these alone.
    options : SamplingOptions
        How to sample.
    dtype : data type
        Of probabilities.
    """

    def __init__(
        self,
        abstract: AbstractGame,
        seed: int = 0,
        options: SamplingOptions = DEFAULT,
        dtype: npt.DTypeLike = np.uint8,
    ) -> None:
        self.dtype = data_type(dtype)
        self.abstract, self.options, self.threads = abstract, options, 1
        require_sampled_there(abstract.game, abstract.actions, options)
        self.iterations = self.decisions = self.visits = 0
        self.borrowed = self.own_decisions = 0  # since it was made
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.cupy = require_gpu()
        betting = abstract.betting
        self.actions = int(betting.nodes.children[betting.nodes.actor >= 0].max())
        self.blocks = multiprocessors() * RESIDENT
        self.classes = min(numbers[0] for numbers in abstract.buckets)
        # Warps for which there is work however many deals there are.
        self.blocks = max(1, min(self.blocks, -(-CLASS * self.classes // (SIZE * WARPS))))
        usual, whole = self._lists(betting)
        self.regrets: Any = DeviceTable(abstract, options)
        self.cards = DeviceCards(abstract, int(self.seed))
        macros = self.cards.macros | {
            "LANES": LANES,
            "WARPS": WARPS,
            "RESIDENT": RESIDENT,
            "SIZE": SIZE,
            "ACTIONS": self.actions,
            "DEPTH": -(-(depth_of(betting) + 1) // 8) * 8,  # few numbers: what is compiled is kept
            "AVERAGED": int(options.average),
            "PRUNED": int(options.prune > 0),
        }
        self.kernel = self.regrets.kernel = kernels(SOURCE, "float32", **macros)
        put, empty = self.cupy.asarray, self.cupy.empty
        self._kept = [put(self.regrets.nodes.view(np.uint8)), put(self.regrets.payoff)]
        self._lists_of = [self._room(usual, self.blocks * WARPS, empty), self._room(whole, 1, empty)]
        self._counters = self.cupy.zeros(2, np.uint32), self.cupy.zeros(4, np.uint64)

    def _lists(self, betting: BettingTree) -> tuple[Room, Room]:
        """Room of each warp's lists, and of the large ones."""
        spare = LANES * self.actions + 2 * SIZE
        most = [SIZE * each + spare for each in room_of(betting, most=True)]
        usual = [ROOMY * SIZE * each + spare for each in room_of(betting, most=False)]
        return Room(*map(min, usual, most)), Room(*most)

    def _room(self, room: Room, warps: int, empty: Any) -> tuple[Any, ...]:
        """Lists of some warps on the device, as a record that lasts as long as this does."""
        levels, owns, values = (-(-int(each) // 4) * 4 for each in (room.decisions, room.own, room.values))
        arrays = (
            empty(warps * 2 * levels * PLACE, np.uint8),
            empty(warps * owns * PLACE, np.uint8),
            empty(warps * values, np.float32),
        )
        self._kept += arrays
        return *map(address, arrays), levels, owns, values, 0

    def _walk_to(self, end: int) -> None:
        weight = weight_beyond(self.iterations, STEPS) if self.options.linear else 0.0
        self.regrets.least = 2 * self.options.prune * (end + weight)
        most = self.blocks * WARPS * SIZE
        while self.iterations < end:
            flight = self.in_flight
            growing = flight < deals_in_flight(self.classes, end, most)
            deals = min(end - self.iterations, max(flight, self.iterations // 2)) if growing else end - self.iterations
            self._launch(deals, flight, weight)
            self.iterations += deals
        decisions, visits, borrowed, own = self.cupy.asnumpy(self._counters[1]).tolist()
        self._counters[1][:] = 0
        self.decisions, self.visits = self.decisions + decisions, self.visits + visits
        self.borrowed, self.own_decisions = self.borrowed + borrowed, self.own_decisions + own

    @property
    def in_flight(self) -> int:
        """How many deals are walked over at a time now."""
        return deals_in_flight(self.classes, self.iterations, self.blocks * WARPS * SIZE)

    def _launch(self, deals: int, flight: int, weight: float) -> None:
        """Walk over some deals, about so many of them at a time."""
        blocks = max(1, flight // (WARPS * SIZE))
        size = SIZE if flight >= WARPS * SIZE else max(1, flight // WARPS)
        batches = -(-deals // size)
        taken, counted = self._counters
        taken[1:] = 0
        pointers = *map(address, self._kept[:2]), address(self.regrets.table), address(self.regrets.numbers)
        numbers = address(taken), address(taken) + 4, address(counted), self.iterations, deals
        walks = np.array((*pointers, *self._lists_of, *numbers, self.options.prune, weight, size, batches), dtype=WALKS)
        given = by_value(self.cards.record), by_value(walks)
        self.kernel("walk_deals")((min(blocks, -(-batches // WARPS)),), (LANES * WARPS,), given)

    def state(self) -> dict[str, Any]:
        """All that must be kept to go on later, here or on the CPU; arrays are on the device until they are written."""
        table, wide = self.regrets.kept()
        return {"table": table, "wide": wide, "seed": self.seed} | {
            name: np.asarray(getattr(self, name)) for name in ("iterations", *self.COUNTS)
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave, or from a state of the CPU."""
        self.regrets.load(np.asarray(state["table"]), np.asarray(state["wide"]) if "wide" in state else None)
        self.seed[...] = state["seed"]
        self.cards.record["seed"] = self.seed
        self.iterations = int(state["iterations"])
        for name in self.COUNTS:
            setattr(self, name, int(state.get(name, np.asarray(0))))
        self.regrets.halve(FULL)
