"""External-sampling Monte Carlo CFR for abstract games.

[Brown15 §3] builds on this algorithm. An iteration deals all cards of one hand, up to the last round. The buckets of
both players in every round, and the outcome of a showdown, are therefore known before the first bet. What remains is a
pass over the betting tree for each player (Lanctot et al. 2009): the player tries every action, and one action of the
opponent is sampled from regret matching. The player's regrets get v(Ia) − Σ σ(I, b) v(Ib). For the opponent's average
strategy, the sampled action is counted.

A table stores, for each information set, its regrets followed by its counts: 8 bytes per action. The counts are
omitted if the current strategy is the result, rather than the average.

Options are data: see `SamplingOptions`. Linear weighting is applied in steps: at 2^14 iterations, and each time their
number has grown by √2, all regrets and counts are multiplied by 1/√2, with counts rounded at random to integers. In the
end, an iteration's weight is about proportional to its number, and numbers grow as slowly as without weights.

Counts have 32 bits. At each multiple of 2^30 iterations, the counts of a decision are halved if one of them has reached
2^31. A deal adds at most 1 to a count, so counts stay below 3 · 2^30. Later contributions to the decision then have
twice the weight of earlier ones in its average strategy.

Several threads share the table without locks. With a single thread, results depend only on the seed and the number of
iterations; with more threads, one occasionally overwrites an update of another.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import SlotLayout, SyntheticGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.arrays import Array, data_type
from kilt.cards.edges import deal_edges, pair_edges
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import showdown_winners
from kilt.errors import RunError
from kilt.games.game import TERMINAL
from kilt.games.holdem import Holdem
from kilt.jit import in_parts
from kilt.solve import external_kernels as kernels
from kilt.solve.counter import Restriction
from kilt.solve.external_kernels import NODE, PLACE, Rules, Singles, Starts, Words
from kilt.solve.solver import TableState, scheduled
from kilt.tree.betting import SHOWN, after_chance, betting_tree, payoffs_of

DEALS = 1024  # deals per call of the kernels
PROBED = 100_000_000  # largest number of slots of the synthetic game of a speed test


@dataclass(frozen=True)
class SamplingOptions:
    """Options of external-sampling CFR."""

    REPR_NAME: ClassVar[str] = "Options"

    average: bool = True  # store an average strategy; otherwise the current one is the result
    linear: bool = False  # weight each iteration by its number
    prune: float = 0.0  # most walks skip actions whose regret per deal is below −`prune`, in chips; 0: skip none
    # A showdown after an all-in before the last round pays its mean over all boards, not that of the dealt board.
    equities: bool = field(default=False, repr=False)
    compact: bool = field(default=False, repr=False)  # on a GPU: regrets after the first round have two bytes

    def __post_init__(self) -> None:
        if not 0 <= self.prune < inf:
            raise RunError(f"`prune` is {self.prune:g}: use a number of chips, or 0 to skip nothing")


def words_per_action(options: SamplingOptions) -> int:
    """Return the number of 4-byte words per action in the table of external sampling.

    One is for its regret. If the average strategy is stored, another is for its count. Counts are stored for the
    average strategy.
    """
    return 2 if options.average else 1


DEFAULT = SamplingOptions()
FACTOR = 2**-0.5  # discount of linear weighting at each step
STEPS = 28  # 2^14: see `scheduled`
CHECKED = 2**30  # iterations between two checks of all counts
HALVED = 2**31  # counts of at least this are halved at a check
FULL = HALVED + CHECKED  # counts stay below this
MOST_ACTIONS = 63  # largest number of actions of a decision on a GPU


def require_options(options: SamplingOptions, game: Holdem) -> None:
    """Raise RunError if external sampling does not support a game with these options."""
    if options.equities and np.any(game.tilts):
        raise RunError(
            "`equities` average wins and losses, which tilted payoffs weight differently: use only one of the two"
        )


def require_no_compact(options: SamplingOptions) -> None:
    """Raise RunError if compact tables are requested without a GPU."""
    if options.compact:
        raise RunError("`compact` tables need a GPU: omit `compact`, or solve on a GPU")


def require_gpu_sampling(game: Holdem, menu: ActionAbstraction | None, options: SamplingOptions) -> None:
    """Raise RunError if external sampling of a game with these options cannot run on a GPU."""
    require_options(options, game)
    most = int(betting_tree(game, menu).nodes.children.max())
    if most > MOST_ACTIONS:
        raise RunError(
            f"{game.name} has a decision of {most} actions, but a GPU supports at most {MOST_ACTIONS}: use fewer "
            "`actions`, or solve on the CPU"
        )


def priced_rounds(options: SamplingOptions, rounds: range) -> range:
    """Return the rounds in which an all-in showdown pays the mean result over all boards to come.

    In the other rounds, the result on the sampled board is paid. The option `equities` chooses the rounds.
    """
    return rounds if options.equities else range(0)


class RegretTable:
    """The regrets and action counts of external sampling, in one table."""

    def __init__(self, slots: SlotLayout, options: SamplingOptions = DEFAULT, rules: Rules | None = None) -> None:
        require_no_compact(options)
        self.slots, self.options = slots, options
        self.words = words_per_action(options)  # per slot
        self.rules = rules or rules_of(slots, self.words)
        self.clear()

    def clear(self) -> None:
        """Set all regrets and counts to 0."""
        self.table: Words = np.zeros(0, dtype=np.uint32)  # free the old table first: memory may not hold two
        self.table = np.zeros(self.slots.slots * self.words, dtype=np.uint32)

    @property
    def views(self) -> tuple[Singles, Words]:
        """The table as two arrays for compiled code, the regrets and the counts.

        The second is empty if no average is stored.
        """
        return self.table.view(np.float32), self.table[: len(self.table) if self.options.average else 0]

    def integer_strategy(self, dtype: npt.DTypeLike, threads: int = 1, *, counted: bool = True) -> Array:
        """Return the average strategy, with probabilities rounded to integers.

        If no average is stored, the result is the current strategy. See `quantise`.
        """
        shares = np.zeros(self.slots.slots, dtype=dtype)
        counted = counted and self.options.average
        self._in_parts(partial(kernels.quantise, self.words, counted, shares), threads)
        return shares

    def discount(self, key: np.uint64, threads: int = 1) -> None:
        """Discount all regrets and counts, as linear CFR requires.

        The factor is `FACTOR`. Counts are rounded to integers at random.
        """
        self._in_parts(partial(kernels.discount, self.words, FACTOR, key), threads)

    def halve(self, limit: int, threads: int = 1) -> None:
        """Halve the counts of each decision with a count of at least `limit`."""
        if self.options.average:
            self._in_parts(partial(kernels.halve, self.words, limit), threads)

    def _in_parts(self, kernel: Callable[..., None], threads: int) -> None:
        """Call compiled code for parts of the decisions, on several threads.

        The arguments are the decisions' first slots, actions and buckets, and the table's views.
        """
        nodes = self.slots.betting.nodes
        acts = np.flatnonzero(nodes.actor >= 0)
        counts, buckets = nodes.children[acts].astype(np.int64), self.slots.buckets_at[acts]

        def work(start: int, end: int) -> None:
            part = slice(start, end)
            decisions = self.slots.first[acts[part]], counts[part], buckets[part]
            kernel(*decisions, self.table.view(np.float32), self.table)

        in_parts(work, len(acts), threads)


class ExternalMCCFR(TableState):
    """A solver that runs external-sampling CFR on an abstract game.

    Strategies are arrays of integer probabilities: see `RegretTable.integer_strategy`. One player may be restricted:
    see `counter`.
    """

    KEPT = ("table", "seed")
    COUNTS = ("decisions", "visits")

    def __init__(
        self,
        abstract: SlotLayout,
        seed: int = 0,
        options: SamplingOptions = DEFAULT,
        threads: int = 1,
        dtype: npt.DTypeLike = np.uint8,
        restriction: Restriction | None = None,
    ) -> None:
        self.dtype = data_type(dtype)  # integer type of probabilities
        self.abstract, self.options, self.threads = abstract, options, threads
        require_options(options, abstract.game)
        self.iterations = self.decisions = self.visits = 0
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.regrets = RegretTable(abstract, options)
        self.table = self.regrets.table
        self._held = kernels.NOBODY
        if restriction:
            fixed = np.ascontiguousarray(restriction.fixed, dtype=np.float32)
            self._held = kernels.FixedStrategy(restriction.player, float(restriction.coin), fixed)
        priced = priced_rounds(options, range(abstract.game.rules.rounds))
        self._workspaces = [WalkWorkspace(abstract, priced=priced) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads)

    def step(self, iterations: int) -> None:
        """Run more iterations of external sampling. In each, a hand is dealt and both players learn."""
        end = self.iterations + iterations
        while self.iterations < end:
            if self.options.linear and scheduled(self.iterations, STEPS) == self.iterations:
                self.regrets.discount(np.uint64(self.iterations) ^ np.uint64(self.seed), self.threads)
            if self.iterations > 0 and self.iterations % CHECKED == 0:
                self.regrets.halve(HALVED, self.threads)
            until = min(end, (self.iterations // CHECKED + 1) * CHECKED)
            self._walk_to(min(until, scheduled(self.iterations + 1, STEPS)) if self.options.linear else until)

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore the state from the arrays that `state` returned.

        Counts of a release in which they could overflow are halved in time.
        """
        super().restore(state)
        self.regrets.halve(FULL, self.threads)

    def _walk_to(self, end: int) -> None:
        first, weight = self.iterations, excess_weight(self.iterations, STEPS) if self.options.linear else 0.0

        def work(thread: int) -> tuple[int, int]:
            decisions = visits = 0
            for start in range(first + thread * DEALS, end, self.threads * DEALS):
                seen = self._walk(self._workspaces[thread], start, min(DEALS, end - start), weight)
                decisions, visits = decisions + seen[0], visits + seen[1]
            return decisions, visits

        for decisions, visits in self._pool.map(work, range(self.threads)):
            self.decisions, self.visits = self.decisions + decisions, self.visits + visits
        self.iterations = end

    def _walk(self, workspace: WalkWorkspace, first: int, deals: int, weight: float) -> tuple[int, int]:
        bucket, outcome = workspace.deal(np.uint64(self.seed), first, deals)
        seen: tuple[int, int] = kernels.walk_deals(
            np.uint64(self.seed),
            first,
            self.regrets.rules,
            workspace.starts,
            bucket,
            outcome,
            workspace.share,
            workspace.tally,
            *self.regrets.views,
            self.options.prune,
            weight,
            self._held,
            workspace.queue,
            workspace.value,
        )
        return seen

    def average(self) -> Array:
        """Return the average strategy.

        At information sets without counts, it is the current strategy.
        """
        return self.regrets.integer_strategy(self.dtype, self.threads)

    def current(self) -> Array:
        """Return the current strategy, computed by regret matching."""
        return self.regrets.integer_strategy(self.dtype, self.threads, counted=False)


def excess_weight(iterations: int, first: int) -> float:
    """Return the total weight of all iterations so far, minus their number.

    With linear weighting, earlier iterations weigh less than the next one, which weighs 1.

    >>> excess_weight(100, first=0) < -50, excess_weight(100, first=20)
    (True, 0.0)
    """
    last, whole = 0, 0.0
    while (point := scheduled(last + 1, first)) <= iterations:
        last, whole = point, (whole + point - last) * FACTOR
    return whole - last


class WalkWorkspace:
    """One thread's scratch memory for external sampling: dealt cards, buckets, and nodes to visit."""

    def __init__(self, abstract: SlotLayout, most: int = DEALS, *, priced: range = range(0)) -> None:
        rules = abstract.game.rules
        self.abstract = abstract
        self.priced = range(priced.start, min(priced.stop, rules.rounds - 1))  # no card follows the last round
        if 0 in self.priced:  # its table takes long to build, and is cached on disk
            pair_edges(rules.deck, rules.hole_cards, rules.board_size(rules.rounds - 1))
        self.deck, self.held = rules.deck.size, rules.hole_cards
        self.sizes = [rules.board_size(r) for r in range(rules.rounds)]
        self.tables = hand_tables(self.held + self.sizes[-1], rules.deck)
        self.cards = np.empty((most, 2 * self.held + self.sizes[-1]), dtype=np.int64)
        self.hands = np.empty((most, 2), dtype=np.int64)
        self.bucket: Words = np.empty((most, rules.rounds, 2), dtype=np.uint32)
        self.shown: Singles = np.empty(most, dtype=np.float32)
        self.outcome: Singles = np.empty((most, rules.rounds), dtype=np.float32)
        self.share: Singles = np.ones(most, dtype=np.float32)  # all deals have the same weight,
        self.tally: Words = np.ones(most, dtype=np.uint32)
        # and are walked from the root, once for each player.
        root = np.arange(0, 2 * most + 1, 2), np.zeros(2 * most, dtype=np.uint32)
        self.starts = Starts(*root, np.tile(np.array([0, 1], dtype=np.int8), most))
        self.value: Singles = np.empty(2 * most, dtype=np.float32)
        # A walk visits a node at most once. Pages that are never written to cost nothing.
        self.queue = np.empty(2 * len(abstract.betting.nodes.actor) + 2, dtype=PLACE)

    def deal(self, seed: np.uint64, first: int, deals: int) -> tuple[Words, Singles]:
        """Deal hands, and look up their buckets and showdown results.

        `first` is the number of the first hand.
        """
        kernels.deal_cards(seed, first, self.deck, self.cards[:deals])
        return self.look_up_deals(deals, self.abstract)

    def look_up_deals(self, deals: int, abstract: SlotLayout) -> tuple[Words, Singles]:
        """Look up the buckets and showdown results of dealt cards.

        Their shapes are (deals, rounds, players) and (deals, rounds). An outcome is 1 if player 0 wins the showdown on
        the dealt board, −1 if player 1 wins it, and 0 for a split pot, in whatever round the betting ends. In the
        rounds of `priced`, it is the mean over all boards that may follow.
        """
        cards, hands = self.cards[:deals], self.hands[:deals]
        bucket, outcome = self.bucket[:deals], self.outcome[:deals]
        showdown_winners(cards, self.held, self.tables, hands, self.shown[:deals])
        outcome[:] = self.shown[:deals, None]
        deck, whole = abstract.game.rules.deck, self.sizes[-1]
        for r in self.priced:
            outcome[:, r] = deal_edges(cards, hands, self.sizes[r], deck, board_size=whole)
        for r, size in enumerate(self.sizes):
            abstract.look_up(r, cards[:, 2 * self.held : 2 * self.held + size], hands, bucket[:, r])
        return bucket, outcome


class Pace(NamedTuple):
    """The speed of external sampling on an abstract game, in iterations and decisions per second."""

    iterations: float  # per second
    decisions: float  # per second
    visits: float  # nodes per second, leaves included


def measure_speed(game: SlotLayout, options: SamplingOptions = DEFAULT, threads: int = 1, seconds: float = 2.0) -> Pace:
    """Measure the speed of external sampling in a short trial on a made-up game.

    The made-up game is smaller if memory requires it.
    """
    share = min(1.0, PROBED / max(1, sum(game.size.slots)))
    fewer = [tuple(max(1, int(share * number)) for number in numbers) for numbers in game.buckets]
    made_up = SyntheticGame(game.game, (fewer[0], fewer[1]), game.actions)
    solver, spent = ExternalMCCFR(made_up, 0, options, threads), 0.0
    while spent < seconds / 2:  # warm-up: the first access to memory is slow
        began = perf_counter()
        solver.step(4 * DEALS * threads)
        spent += perf_counter() - began
    first, before, spent = solver.iterations, (solver.decisions, solver.visits), 0.0
    while spent < seconds / 2:
        began = perf_counter()
        solver.step(4 * DEALS * threads)
        spent += perf_counter() - began
    done = solver.iterations - first, solver.decisions - before[0], solver.visits - before[1]
    return Pace(*(number / spent for number in done))


def rules_of(abstract: SlotLayout, words: int) -> Rules:
    """Convert a betting tree to arrays for compiled code, leaving out chance nodes.

    Each slot of the table has `words` 4-byte words.
    """
    nodes, betting = abstract.betting.nodes, abstract.betting
    records = np.zeros(len(nodes.actor), dtype=NODE)
    acts = nodes.actor >= 0
    records["first"], records["link"], records["round"] = words * abstract.first[:-1], nodes.first_child, nodes.round
    records["count"], records["actor"] = np.where(acts, nodes.children, 0), np.where(acts, nodes.actor, 0)
    # Endings differ only in the chips at stake, and in the player who has folded.
    ways = 3 * betting.stake.astype(np.int64) + (betting.folded - SHOWN)
    distinct, row = np.unique(ways, return_inverse=True)
    stake, folded = (distinct // 3).astype(np.int32), (distinct % 3 + SHOWN).astype(np.int8)
    payoffs = payoffs_of(betting.game, stake, folded) * np.array([1, -1])[:, None]
    ends = nodes.actor == TERMINAL
    records["link"][ends] = kernels.ENDINGS * row[nodes.leaf[ends]]
    records["actor"][ends] = kernels.OVER
    follows = records[after_chance(nodes)]
    over = follows["actor"] == kernels.OVER
    # round of the last bet, although the showdown comes after the last round
    follows["round"][over] = nodes.round[over]
    return Rules(follows, payoffs.astype(np.float32).ravel())
