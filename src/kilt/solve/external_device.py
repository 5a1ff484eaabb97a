"""External-sampling CFR on a GPU, with all tables and buckets in GPU memory.

Each warp deals some hands, looks up their buckets and passes over the betting tree: see `external_device.cu`. Deals and
random choices are those of the CPU for the same seed.

Thousands of deals are in flight at a time. Each learns from regrets that miss the updates of the others, and the
order of updates differs from run to run, so results do too; no update is lost. Stale regrets make play worse if many
deals in flight meet at the same information set, above all early in a run, when each update changes the strategy much.
`deals_in_flight` limits their number by the deals so far, and by the buckets of the first round.

Numbers stay in range. The first round, to which every deal comes, has regrets and counts of 8 bytes. Counts of later
rounds are halved as on the CPU. At the same points, the regrets of a decision are halved if one of them has reached
`RANGE` times the largest payoff, and regrets below minus that are raised to it: single precision would soon round
away what a deal adds.
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

from kilt.abstraction.abstract_game import AbstractGame, Buckets, SlotLayout, SyntheticGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import (
    AbstractionSpec,
    AsymmetricAbstraction,
    CardAbstraction,
)
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import LOSSLESS, plan_named
from kilt.abstraction.rounds import RoundBuckets
from kilt.arrays import Array, Deferred, IntArray, data_type
from kilt.games.holdem import Holdem
from kilt.gpu import address, by_value, copy_in, copy_out, free_memory, kernels, multiprocessors, require_gpu
from kilt.solve.external import (
    DEFAULT,
    FACTOR,
    FULL,
    STEPS,
    ExternalMCCFR,
    Pace,
    SamplingOptions,
    excess_weight,
    require_gpu_sampling,
    require_no_compact,
    rules_of,
    words_per_action,
)
from kilt.solve.external_device_cards import DeviceCards, N, P
from kilt.solve.external_device_kernels import count_depth, count_room
from kilt.solve.external_kernels import NODE
from kilt.tree.betting import BettingTree, after_chance, betting_tree

SOURCE = Path(__file__).with_name("external_device.cu")
LANES, WARPS, RESIDENT = 32, 8, 3  # lanes per warp, warps per block, blocks per multiprocessor
SIZE = 8  # most deals per warp: more of them need more memory for lists than the L2 cache has
CLASS = 200  # most deals in flight per bucket of the first round
SHARE = 2048  # deals so far per deal in flight, at least
RANGE = 2.0**17  # bound of regrets, as a multiple of the largest payoff
ROOMY = 6  # size of a warp's lists, in mean sizes under uniform play
THREADS = 256  # per block in passes over all rows
TOGETHER = 1 << 28  # bytes of a strategy that are quantised in one batch
PROBED = 0.7  # share of free memory for the synthetic game of a speed test
RESERVE = 1 << 29  # bytes of GPU memory for code and for other programs

LISTS = np.dtype(
    [("level", P), ("own", P), ("value", P), ("levels", N), ("owns", N), ("values", N), ("unused", N)], align=True
)
WALKS = np.dtype(
    [
        *((name, P) for name in ("nodes", "payoff", "table", "wide")),
        *(("lists", LISTS), ("large", LISTS)),
        *((name, P) for name in ("taken", "next", "counted", "first", "deals")),
        *(("prune", np.float64), ("weight", np.float64), ("frame", P), ("stride", P)),
        *(("size", N), ("chunk", N), ("batches", N)),
    ],
    align=True,
)
ROWS = np.dtype([(name, P) for name in ("slot", "row", "count", "buckets", "wide", "table", "numbers")], align=True)
PLACE = 16  # bytes of a list entry


class Room(NamedTuple):
    """The memory that a GPU needs for one deal, as numbers of decisions and values."""

    own: float
    values: float
    decisions: float

    def list_bytes(self) -> float:
        """Return the bytes of GPU memory for the lists of one deal."""
        return PLACE * (2 * self.decisions + self.own) + 4 * self.values


def room_of(betting: BettingTree, *, most: bool) -> Room:
    """Return the memory that a GPU needs for one deal, as numbers of decisions and values.

    They are the largest numbers if `most` is set, otherwise the mean numbers for an opponent who plays uniformly.
    """
    nodes, found = betting.nodes, np.zeros(3)
    for player in (0, 1):
        room = np.zeros((len(nodes.actor), 3))
        count_room(nodes.first_child, nodes.children, nodes.actor, player, most, room)
        found += room[0]
    return Room(*found.tolist())


def depth_of(betting: BettingTree) -> int:
    """Return the maximum number of decisions in a hand."""
    depth = np.zeros(len(betting.nodes.actor), dtype=np.int32)
    count_depth(betting.nodes.parent, betting.nodes.actor, depth)
    return int(depth.max())


def row_words(actions: IntArray, options: SamplingOptions) -> IntArray:
    """Return the size of a table row on the GPU in 4-byte words, for each number of actions.

    The unit is 4-byte words, and the row is one of a round after the first.
    """
    regrets = (actions + 1) // 2 if options.compact else actions
    return regrets + actions if options.average else regrets


def slot_bytes(options: SamplingOptions) -> float:
    """Return the bytes of GPU memory per action, for a regret and a count.

    For compact tables, this is an upper bound, because an odd number of compact regrets is rounded up.
    """
    return 4 * words_per_action(options) - (4 / 3 if options.compact else 0)


def device_bytes(game: Holdem, menu: ActionAbstraction | None, slots: int, options: SamplingOptions, maps: int) -> int:
    """Return the bytes of GPU memory that external sampling needs."""
    betting = betting_tree(game, menu)
    lists = WARPS * RESIDENT * multiprocessors() * ROOMY * SIZE * room_of(betting, most=False).list_bytes()
    lists += SIZE * room_of(betting, most=True).list_bytes() + NODE.itemsize * len(betting.nodes.actor)
    return int(slot_bytes(options) * slots + maps + lists + min(2 * slots, TOGETHER) + RESERVE)


def measure_speed_on_gpu(
    game: Holdem, menu: ActionAbstraction | None, buckets: Buckets, options: SamplingOptions, seconds: float = 2.0
) -> Pace:
    """Measure the speed of external sampling on the GPU in a short trial.

    The game is smaller than the real one if memory requires it.
    """
    deal = Deal.from_game(game)
    slots = sum(SyntheticGame(game, buckets, menu).size.slots)
    share = min(1.0, PROBED * free_memory() / device_bytes(game, menu, slots, options, 0))
    fewer = [tuple(max(1, int(share * number)) for number in numbers) for numbers in buckets]
    made_up = [_made_up(deal, numbers) for numbers in dict.fromkeys(fewer)]
    cards = made_up[0] if len(made_up) == 1 else AsymmetricAbstraction((made_up[0], made_up[1]))
    return measure_solver_speed(GpuExternalMCCFR(AbstractGame(game, cards, menu), 0, options), seconds)


def measure_solver_speed(solver: ExternalMCCFR, seconds: float) -> Pace:
    """Measure a solver's speed in a trial of some seconds.

    Only the second half of the run counts.
    """
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
    """Return a card abstraction with random buckets for each hand on each board."""
    rounds, rng = [], np.random.default_rng(0)
    for size, number in zip(deal.board_sizes, numbers, strict=True):
        holdings = deal.holdings((size,))
        kind = np.uint16 if number <= 1 << 16 else np.uint32
        table = rng.integers(0, number, (len(holdings.boards), comb(deal.deck.size, deal.hole_cards)), dtype=kind)
        sizes = np.ones(number, dtype=np.int64)
        rounds.append(RoundBuckets(holdings, table, sizes, None, None, {}, None, Path("made up")))
    plan = plan_named(LOSSLESS, deal.board_cards)
    return CardAbstraction(AbstractionSpec("made up", deal, plan), tuple(rounds))


def deals_in_flight(classes: int, iterations: int, most: int, crowd: int = CLASS) -> int:
    """Return the number of deals that the GPU should process at the same time.

    The result is at most `most`, the GPU's limit, and at most `crowd` for each of the `classes` of first-round hands.
    Each deal misses the updates of the others in flight. Therefore small games, and the beginning of a run, have few
    deals in flight.

    >>> deals_in_flight(169, 10**9, 40_000), deals_in_flight(3, 10**9, 40_000), deals_in_flight(169, 2**22, 40_000)
    (33800, 600, 2048)
    """
    return max(1, min(most, crowd * classes, iterations // SHARE))


class DeviceTable:
    """The regrets and action counts of external sampling, as a table in GPU memory."""

    trunk = classes = 0  # rounds before separate classes of boards, and the number of classes; 0 without
    frame = stride = 0  # where classes are: see `external_device_classes`

    def __init__(self, slots: SlotLayout, options: SamplingOptions = DEFAULT, *, empty: bool = False) -> None:
        self.cupy, self.slots, self.options, self.words = require_gpu(), slots, options, words_per_action(options)
        self.compact = options.compact
        nodes = slots.betting.nodes
        acts = np.flatnonzero(nodes.actor >= 0)
        self.counts, self.buckets = nodes.children[acts].astype(np.uint32), slots.buckets_at[acts].astype(np.uint32)
        self.first = slots.first[acts]
        self.wide = nodes.round[acts] == 0
        rows, self.size = self.words * self.first, slots.slots * self.words  # of the table, in words of 4 bytes
        if self.compact:
            each = row_words(self.counts.astype(np.int64), options) * self.buckets
            rows, self.size = np.cumsum(each) - each, int(each.sum())
        size = 2 * self.counts.astype(np.int64) * self.buckets * self.wide
        rows[self.wide] = (np.cumsum(size) - size)[self.wide]
        self.rows, self.wide_size = rows, int(size.sum())
        rules = rules_of(slots, self.words)
        self.nodes, self.payoff = rules.nodes.copy(), rules.payoff
        row_at = np.zeros(len(nodes.actor), np.int64)
        row_at[acts] = rows
        self.nodes["first"] = row_at[after_chance(nodes)]
        self.table: Any = None
        self.numbers: Any = None
        if not empty:
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
        self.table = self.numbers = None  # free the old table first: memory may not hold two
        self.table = self.cupy.zeros(self.size + 2, np.uint32)  # pairs are read beyond the end
        self.numbers = self.cupy.zeros(self.wide_size + 2, np.float64)

    @property
    def record(self) -> Array:
        """A record that tells GPU code where each decision is stored."""
        return np.array(tuple(address(array) for array in (*self._rows, self.table, self.numbers)), dtype=ROWS)

    def integer_strategy(self, dtype: npt.DTypeLike, threads: int = 1, *, counted: bool = True) -> Array:
        """Return the average strategy, with probabilities rounded to integers.

        If no average is stored, the result is the current strategy.
        """
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
        """Discount all regrets and counts, as linear CFR requires."""
        self._over("discount_rows", 0, len(self.first), np.float64(FACTOR), key.view(np.int64))

    def halve(self, limit: int, threads: int = 1) -> None:
        """Halve the counts of each decision with a count of at least `limit`, and limit its regrets."""
        top = RANGE * float(np.abs(self.payoff).max())
        self._over(
            "bound_rows", 0, len(self.first), np.uint32(limit), np.float32(top), np.float32(max(top, self.least))
        )

    least = 0.0  # lower bound of regrets: pruned actions must stay pruned

    def _over(self, kernel: str, first: int, decisions: int, *arguments: Any) -> None:
        """Run GPU code on the rows of some decisions."""
        given = by_value(self.record), np.int32(first), np.int32(decisions), *arguments
        self.kernel(kernel)((min(decisions, 1 << 16),), (THREADS,), given)

    def checkpoint_arrays(self) -> tuple[Deferred, Deferred]:
        """Return the regrets and counts as two arrays for a checkpoint.

        The first has the CPU's format, the second has the 8-byte numbers of the first round. Both are copied from the
        GPU only when they are written.
        """
        shape, kind = (self.size,), np.dtype(np.uint32)
        wide = Deferred(
            (self.wide_size,), np.dtype(np.float64), lambda to: copy_out(self.numbers[: self.wide_size], to)
        )
        return Deferred(shape, kind, partial(self._fill, wide)), wide

    def _fill(self, wide: Deferred, table: Array) -> None:
        """Write the table in the CPU's format, unless it is compact.

        Counts of the first round are halved until they fit.
        """
        copy_out(self.table[: len(table)], table)
        if self.compact:
            return
        for mine, theirs, n in self._wide_rows(np.asarray(wide), table):
            theirs[:, :n] = mine[:, :n].astype(np.float32).view(np.uint32)
            if self.words == 2:
                counts = np.ascontiguousarray(mine[:, n:]).view(np.uint64)
                while (large := counts.max(axis=1) >= FULL).any():
                    counts[large] >>= np.uint64(1)
                theirs[:, n:] = counts

    def load(self, table: Array, wide: Array | None) -> None:
        """Load the regrets and counts of a checkpoint from a GPU or a CPU.

        The arguments are the arrays that `checkpoint_arrays` has returned. `wide` is None if the checkpoint comes from
        a CPU.
        """
        if table.shape != (self.size,):
            raise ValueError(f"table has shape {table.shape}, not {(self.size,)}")
        copy_in(table, self.table[: len(table)])
        if wide is None:
            require_no_compact(self.options)
            wide = np.zeros(self.wide_size, np.float64)
            for mine, theirs, n in self._wide_rows(wide, np.asarray(table)):
                mine[:, :n] = np.ascontiguousarray(theirs[:, :n]).view(np.float32)
                if self.words == 2:
                    mine[:, n:].view(np.uint64)[:] = theirs[:, n:]
        if wide.shape != (self.wide_size,):
            raise ValueError(f"wide has shape {wide.shape}, not {(self.wide_size,)}")
        copy_in(wide, self.numbers[: len(wide)])

    def _wide_rows(self, wide: Array, table: Array) -> Iterator[tuple[Array, Array, int]]:
        """Yield the rows of each first-round decision on the GPU and on the CPU, and its number of actions."""
        for d in np.flatnonzero(self.wide).tolist():
            n, buckets = int(self.counts[d]), int(self.buckets[d])
            mine, theirs = int(self.rows[d]), int(self.words * self.first[d])
            yield (
                wide[mine : mine + 2 * n * buckets].reshape(buckets, 2 * n),
                table[theirs : theirs + self.words * n * buckets].reshape(buckets, self.words * n),
                n,
            )


class GpuExternalMCCFR(ExternalMCCFR):
    """A solver that runs external-sampling CFR on a GPU. Runs can move to a CPU and back.

    Parameters
    ----------
    abstract : AbstractGame
        The game to solve.
    seed : int
        Random seed of deals and random choices. Results still differ from run to run: see the module's docstring.
    options : SamplingOptions
        Sampling options.
    dtype : data type
        Integer type of probabilities.
    table : DeviceTable, optional
        The tables. Default: a new `DeviceTable`.
    crowd : int, optional
        Largest number of deals in flight for each bucket of the first round. Default: `CLASS`.
    """

    def __init__(
        self,
        abstract: AbstractGame,
        seed: int = 0,
        options: SamplingOptions = DEFAULT,
        dtype: npt.DTypeLike = np.uint8,
        table: DeviceTable | None = None,
        crowd: int | None = None,
    ) -> None:
        self.dtype = data_type(dtype)
        self.abstract, self.options, self.threads = abstract, options, 1
        require_gpu_sampling(abstract.game, abstract.actions, options)
        self.iterations = self.decisions = self.visits = 0
        self.borrowed = self.own_decisions = 0  # counters since its creation
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.cupy = require_gpu()
        betting = abstract.betting
        self.actions = int(betting.nodes.children[betting.nodes.actor >= 0].max())
        self.blocks = multiprocessors() * RESIDENT
        self.classes, self.crowd = min(numbers[0] for numbers in abstract.buckets), crowd or CLASS
        # The number of warps that always have work.
        self.blocks = max(1, min(self.blocks, -(-self.crowd * self.classes // WARPS)))
        usual, whole = self._lists(betting)
        self.regrets: Any = table or DeviceTable(abstract, options)
        self.cards = DeviceCards(abstract, int(self.seed), options, (self.regrets.trunk, self.regrets.classes))
        macros = self.cards.macros | {
            "LANES": LANES,
            "WARPS": WARPS,
            "RESIDENT": RESIDENT,
            "SIZE": SIZE,
            "ACTIONS": self.actions,
            "DEPTH": -(-(depth_of(betting) + 1) // 8) * 8,  # rounded, so that compiled kernels can be reused
            "AVERAGED": int(options.average),
            "PRUNED": int(options.prune > 0),
            "TRUNK": self.regrets.trunk,
            "COMPACT": int(options.compact),
        }
        self.kernel = self.regrets.kernel = kernels(SOURCE, "float32", **macros)
        put, empty = self.cupy.asarray, self.cupy.empty
        self._kept = [put(self.regrets.nodes.view(np.uint8)), put(self.regrets.payoff)]
        self._lists_of = [self._room(usual, self.blocks * WARPS, empty), self._room(whole, 1, empty)]
        self._counters = self.cupy.zeros(2, np.uint32), self.cupy.zeros(4, np.uint64)

    def _lists(self, betting: BettingTree) -> tuple[Room, Room]:
        """Return the sizes of the lists of each warp (a group of GPU threads), and of the lists for large deals."""
        spare = LANES * self.actions + 2 * SIZE
        most = [SIZE * each + spare for each in room_of(betting, most=True)]
        usual = [ROOMY * SIZE * each + spare for each in room_of(betting, most=False)]
        return Room(*map(min, usual, most)), Room(*most)

    def _room(self, room: Room, warps: int, empty: Any) -> tuple[Any, ...]:
        """Allocate lists in GPU memory for some warps, and return a record with their addresses."""
        levels, owns, values = (-(-int(each) // 4) * 4 for each in (room.decisions, room.own, room.values))
        arrays = (
            empty(warps * 2 * levels * PLACE, np.uint8),
            empty(warps * owns * PLACE, np.uint8),
            empty(warps * values, np.float32),
        )
        self._kept += arrays
        return *map(address, arrays), levels, owns, values, 0

    def _walk_to(self, end: int) -> None:
        weight = excess_weight(self.iterations, STEPS) if self.options.linear else 0.0
        self.regrets.least = 2 * self.options.prune * (end + weight)
        self._walk_all(end, weight)
        self.iterations = end
        decisions, visits, borrowed, own = self.cupy.asnumpy(self._counters[1]).tolist()
        self._counters[1][:] = 0
        self.decisions, self.visits = self.decisions + decisions, self.visits + visits
        self.borrowed, self.own_decisions = self.borrowed + borrowed, self.own_decisions + own

    def _walk_all(self, end: int, weight: float) -> None:
        """Process all deals up to number `end`. More and more deals are in progress at a time as their number grows."""
        most, at = self.blocks * WARPS * SIZE, self.iterations
        while at < end:
            flight = deals_in_flight(self.classes, at, most, self.crowd)
            growing = flight < deals_in_flight(self.classes, end, most, self.crowd)
            deals = min(end - at, max(flight, at // 2)) if growing else end - at
            self._launch(at, deals, flight, weight)
            at += deals

    @property
    def in_flight(self) -> int:
        """The number of deals that the GPU processes at the same time."""
        return deals_in_flight(self.classes, self.iterations, self.blocks * WARPS * SIZE, self.crowd)

    def _launch(self, first: int, deals: int, flight: int, weight: float) -> None:
        """Start the GPU on some deals, with about `flight` of them in progress at a time."""
        size = max(1, min(SIZE, flight // (self.blocks * WARPS)))  # all warps work: then each is done sooner
        blocks = max(1, min(self.blocks, flight // (WARPS * size)))
        chunk = LANES if self.regrets.trunk else min(size, LANES)
        batches = -(-deals // chunk)
        taken, counted = self._counters
        taken[1:] = 0
        pointers = *map(address, self._kept[:2]), address(self.regrets.table), address(self.regrets.numbers)
        numbers = address(taken), address(taken) + 4, address(counted), first, deals, self.options.prune, weight
        where = self.regrets.frame, self.regrets.stride, size, chunk, batches
        walks = np.array((*pointers, *self._lists_of, *numbers, *where), dtype=WALKS)
        given = by_value(self.cards.record), by_value(walks)
        self.kernel("walk_deals")((min(blocks, -(-batches // WARPS)),), (LANES * WARPS,), given)

    def state(self) -> dict[str, Any]:
        """Return the state as arrays, for a checkpoint.

        The arrays are copied from the GPU only when they are written.
        """
        table, wide = self.regrets.checkpoint_arrays()
        return {"table": table, "wide": wide, "seed": self.seed} | {
            name: np.asarray(getattr(self, name)) for name in ("iterations", *self.COUNTS)
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state from a checkpoint of this class or of `ExternalMCCFR`."""
        self.regrets.load(np.asarray(state["table"]), np.asarray(state["wide"]) if "wide" in state else None)
        self.seed[...] = state["seed"]
        self.cards.record["seed"] = self.seed
        self.iterations = int(state["iterations"])
        for name in self.COUNTS:
            setattr(self, name, int(state.get(name, np.asarray(0))))
        self.regrets.halve(FULL)
