"""External-sampling Monte Carlo CFR on an abstract game: what [Brown15 §3] starts from.

An iteration deals once: all cards to the last round. So the buckets of both players in every round and the outcome of a
showdown are known before anybody bets, and what is left is a walk over the betting tree, one for each player (Lanctot
et al. 2009): the player tries every action, the opponent takes one, drawn from regret matching. The player's regrets
get v(Ia) − Σ σ(I, b) v(Ib). For the opponent's average strategy the action that was drawn is counted.

A table has, for each information set, its regrets and then its counts, side by side: 8 bytes for each action. Whoever
wants the current strategy in place of the average does without the counts.

Options are data: see `SamplingOptions`. Linear weighting goes in steps: at 2^14 iterations and then each time that
their number has grown by √2, all that was learnt is multiplied by 1/√2, counts rounded at random so that they stay
whole. So an iteration weighs about as much as its number in the end, and numbers grow as slowly as without weights.

Counts have 32 bits. At each multiple of 2^30 iterations, the counts of a decision are halved if one of them has reached
2^31. A deal adds at most 1 to a count, so counts stay below 3 · 2^30. What a decision adds later then weighs twice as
much in its average strategy as what it added before.

Several threads share the table without locks. What one thread does depends on the seed
and the number of iterations alone; with more threads, now and then one overwrites what another has just added.
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
from kilt.cards.hands_kernels import settle
from kilt.errors import RunError
from kilt.games.game import TERMINAL
from kilt.games.holdem import Holdem
from kilt.jit import in_parts
from kilt.solve import external_kernels as kernels
from kilt.solve.counter import Restriction
from kilt.solve.external_kernels import NODE, PLACE, Rules, Singles, Starts, Words
from kilt.solve.solver import TableState, scheduled
from kilt.tree.betting import SHOWN, after_chance, betting_tree, payoffs_of

DEALS = 1024  # in one call of the kernels
PROBED = 100_000_000  # slots of a game that is walked to see how fast that goes


@dataclass(frozen=True)
class SamplingOptions:
    """How to sample."""

    SPELLED: ClassVar[str] = "Options"

    average: bool = True  # keep an average strategy; otherwise the current one is the result
    linear: bool = False  # weigh an iteration by its number
    prune: float = 0.0  # most walks leave out actions whose regret per deal is below −this, in chips; 0: none
    # Showdowns after an all-in before the last round are worth their mean over all boards, in place of the one dealt.
    equities: bool = field(default=False, repr=False)
    compact: bool = field(default=False, repr=False)  # on a GPU: regrets after the first round have two bytes

    def __post_init__(self) -> None:
        if not 0 <= self.prune < inf:
            raise RunError(f"`prune` is {self.prune:g}: give a number of chips, or 0 to leave out nothing")


def words_of(options: SamplingOptions) -> int:
    """Number of 4-byte words of a slot: regret, and a count where an average is kept."""
    return 2 if options.average else 1


DEFAULT = SamplingOptions()
FACTOR = 2**-0.5  # by which linear weighting discounts
STEPS = 28  # 2^14: see `scheduled`
CHECKED = 2**30  # most that is added to a count between two looks at all counts
HALVED = 2**31  # from which counts are halved then
FULL = HALVED + CHECKED  # counts stay below this
MOST_ACTIONS = 63  # of a decision, on a GPU


def require_options(options: SamplingOptions, game: Holdem) -> None:
    """Raise RunError if a game cannot be sampled with these options."""
    if options.equities and np.any(game.tilts):
        raise RunError(
            "`equities` are means of wins and losses, which tilted payoffs do not weigh alike: leave one of them out"
        )


def require_wide(options: SamplingOptions) -> None:
    """Raise RunError if tables are to be those of a GPU."""
    if options.compact:
        raise RunError("`compact` tables are for a GPU: leave out `compact`, or use `--device gpu`")


def require_sampled_there(game: Holdem, menu: ActionAbstraction | None, options: SamplingOptions) -> None:
    """Raise RunError if a game cannot be sampled on a GPU with these options."""
    require_options(options, game)
    most = int(betting_tree(game, menu).nodes.children.max())
    if most > MOST_ACTIONS:
        raise RunError(
            f"{game.name} has a decision of {most} actions, and a GPU takes {MOST_ACTIONS} at most: give fewer "
            "`actions`, or leave out `--device gpu`"
        )


def priced_rounds(options: SamplingOptions, rounds: range) -> range:
    """The rounds, of those a walk goes through, whose all-ins are worth their mean over all boards."""
    return rounds if options.equities else range(0)


class RegretTable:
    """Regrets and action counts for the slots of an abstract game, or of a part of it."""

    def __init__(self, slots: SlotLayout, options: SamplingOptions = DEFAULT, rules: Rules | None = None) -> None:
        require_wide(options)
        self.slots, self.options = slots, options
        self.words = words_of(options)  # for each slot
        self.rules = rules or rules_of(slots, self.words)
        self.clear()

    def clear(self) -> None:
        """Set all regrets and counts to 0."""
        self.table: Words = np.zeros(0, dtype=np.uint32)  # there need not be room for two
        self.table = np.zeros(self.slots.slots * self.words, dtype=np.uint32)

    @property
    def views(self) -> tuple[Singles, Words]:
        """Regrets and counts as walks take them: without an average there are no counts."""
        return self.table.view(np.float32), self.table[: len(self.table) if self.options.average else 0]

    def quantised(self, dtype: npt.DTypeLike, threads: int = 1, *, counted: bool = True) -> Array:
        """[slot] the average strategy, if that is kept, or what regret matching plays now: see `quantise`."""
        shares = np.zeros(self.slots.slots, dtype=dtype)
        counted = counted and self.options.average
        self._in_parts(partial(kernels.quantise, self.words, counted, shares), threads)
        return shares

    def discount(self, key: np.uint64, threads: int = 1) -> None:
        """Multiply regrets and counts by FACTOR; counts are rounded at random, so that they stay whole."""
        self._in_parts(partial(kernels.discount, self.words, FACTOR, key), threads)

    def halve(self, limit: int, threads: int = 1) -> None:
        """Halve the counts of each decision that has a count of `limit` or more."""
        if self.options.average:
            self._in_parts(partial(kernels.halve, self.words, limit), threads)

    def _in_parts(self, kernel: Callable[..., None], threads: int) -> None:
        """Call a kernel for parts of the decisions: their first slots, actions and buckets, and the table's views."""
        nodes = self.slots.betting.nodes
        acts = np.flatnonzero(nodes.actor >= 0)
        counts, buckets = nodes.children[acts].astype(np.int64), self.slots.buckets_at[acts]

        def work(start: int, end: int) -> None:
            part = slice(start, end)
            decisions = self.slots.first[acts[part]], counts[part], buckets[part]
            kernel(*decisions, self.table.view(np.float32), self.table)

        in_parts(work, len(acts), threads)


class External(TableState):
    """External sampling on an abstract game. Strategies are [slot] unsigned integers: see `RegretTable.quantised`.

    One player may be restricted: see `counter`.
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
        self.dtype = data_type(dtype)  # of probabilities
        self.abstract, self.options, self.threads = abstract, options, threads
        require_options(options, abstract.game)
        self.iterations = self.decisions = self.visits = 0
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.regrets = RegretTable(abstract, options)
        self.table = self.regrets.table
        self._held = kernels.NOBODY
        if restriction:
            fixed = np.ascontiguousarray(restriction.fixed, dtype=np.float32)
            self._held = kernels.Held(restriction.player, float(restriction.coin), fixed)
        priced = priced_rounds(options, range(abstract.game.rules.rounds))
        self._workspaces = [WalkWorkspace(abstract, priced=priced) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads)

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations: a deal each, and a walk for each player."""
        end = self.iterations + iterations
        while self.iterations < end:
            if self.options.linear and scheduled(self.iterations, STEPS) == self.iterations:
                self.regrets.discount(np.uint64(self.iterations) ^ np.uint64(self.seed), self.threads)
            if self.iterations > 0 and self.iterations % CHECKED == 0:
                self.regrets.halve(HALVED, self.threads)
            until = min(end, (self.iterations // CHECKED + 1) * CHECKED)
            self._walk_to(min(until, scheduled(self.iterations + 1, STEPS)) if self.options.linear else until)

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore what `state` returned. Counts of a release that let them wrap around are halved in time."""
        super().restore(state)
        self.regrets.halve(FULL, self.threads)

    def _walk_to(self, end: int) -> None:
        first, weight = self.iterations, weight_beyond(self.iterations, STEPS) if self.options.linear else 0.0

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
        """[slot] the average strategy, where it is kept; where nothing was counted, what regret matching plays."""
        return self.regrets.quantised(self.dtype, self.threads)

    def current(self) -> Array:
        """[slot] what regret matching plays now."""
        return self.regrets.quantised(self.dtype, self.threads, counted=False)


def weight_beyond(iterations: int, first: int) -> float:
    """Total weight of all iterations so far, less their number, when the next weighs 1 and all were discounted.

    >>> weight_beyond(100, first=0) < -50, weight_beyond(100, first=20)
    (True, 0.0)
    """
    last, whole = 0, 0.0
    while (point := scheduled(last + 1, first)) <= iterations:
        last, whole = point, (whole + point - last) * FACTOR
    return whole - last


class WalkWorkspace:
    """Buffers of one thread: cards, buckets and outcomes of deals, and the queue of a walk."""

    def __init__(self, abstract: SlotLayout, most: int = DEALS, *, priced: range = range(0)) -> None:
        rules = abstract.game.rules
        self.abstract = abstract
        self.priced = range(priced.start, min(priced.stop, rules.rounds - 1))  # in the last round no card is to come
        if 0 in self.priced:  # its table takes long to build, and is kept on disk
            pair_edges(rules.deck, rules.hole_cards, rules.board_size(rules.rounds - 1))
        self.deck, self.held = rules.deck.size, rules.hole_cards
        self.sizes = [rules.board_size(r) for r in range(rules.rounds)]
        self.tables = hand_tables(self.held + self.sizes[-1], rules.deck)
        self.cards = np.empty((most, 2 * self.held + self.sizes[-1]), dtype=np.int64)
        self.hands = np.empty((most, 2), dtype=np.int64)
        self.bucket: Words = np.empty((most, rules.rounds, 2), dtype=np.uint32)
        self.shown: Singles = np.empty(most, dtype=np.float32)
        self.outcome: Singles = np.empty((most, rules.rounds), dtype=np.float32)
        self.share: Singles = np.ones(most, dtype=np.float32)  # all deals weigh the same,
        self.tally: Words = np.ones(most, dtype=np.uint32)
        # and are walked over from the root, once for each player.
        root = np.arange(0, 2 * most + 1, 2), np.zeros(2 * most, dtype=np.uint32)
        self.starts = Starts(*root, np.tile(np.array([0, 1], dtype=np.int8), most))
        self.value: Singles = np.empty(2 * most, dtype=np.float32)
        # A walk comes to a node once at most. Memory that is not touched costs nothing.
        self.queue = np.empty(2 * len(abstract.betting.nodes.actor) + 2, dtype=PLACE)

    def deal(self, seed: np.uint64, first: int, deals: int) -> tuple[Words, Singles]:
        """Deal hands number `first` and following; returns what `settle` does."""
        kernels.deal_cards(seed, first, self.deck, self.cards[:deals])
        return self.settle(deals, self.abstract)

    def settle(self, deals: int, abstract: SlotLayout) -> tuple[Words, Singles]:
        """[deal, round, player] buckets and [deal, round] outcomes of the first `deals` hands in `cards`.

        An outcome is 1 if player 0 wins the showdown, −1 if player 1 wins it, and 0 if they split the pot: on the
        board that was dealt, whatever the round of the last bet. In a round of `priced` it is the mean of these over
        all boards that may follow.
        """
        cards, hands = self.cards[:deals], self.hands[:deals]
        bucket, outcome = self.bucket[:deals], self.outcome[:deals]
        settle(cards, self.held, self.tables, hands, self.shown[:deals])
        outcome[:] = self.shown[:deals, None]
        deck, whole = abstract.game.rules.deck, self.sizes[-1]
        for r in self.priced:
            outcome[:, r] = deal_edges(cards, hands, self.sizes[r], deck, board_size=whole)
        for r, size in enumerate(self.sizes):
            abstract.look_up(r, cards[:, 2 * self.held : 2 * self.held + size], hands, bucket[:, r])
        return bucket, outcome


class Pace(NamedTuple):
    """Speed of walks over an abstract game."""

    iterations: float  # per second
    decisions: float  # per second
    visits: float  # nodes per second, leaves included


def probe(game: SlotLayout, options: SamplingOptions = DEFAULT, threads: int = 1, seconds: float = 2.0) -> Pace:
    """Measure the speed of external sampling for some seconds, on a synthetic game of this size that memory holds."""
    share = min(1.0, PROBED / max(1, sum(game.size.slots)))
    fewer = [tuple(max(1, int(share * number)) for number in numbers) for numbers in game.buckets]
    made_up = SyntheticGame(game.game, (fewer[0], fewer[1]), game.actions)
    solver, spent = External(made_up, 0, options, threads), 0.0
    while spent < seconds / 2:  # memory is touched for the first time
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
    """The betting tree as records for walks, `words` 4-byte words per slot. Chance nodes are what follows them."""
    nodes, betting = abstract.betting.nodes, abstract.betting
    records = np.zeros(len(nodes.actor), dtype=NODE)
    acts = nodes.actor >= 0
    records["first"], records["link"], records["round"] = words * abstract.first[:-1], nodes.first_child, nodes.round
    records["count"], records["actor"] = np.where(acts, nodes.children, 0), np.where(acts, nodes.actor, 0)
    # Few ways to end a hand differ: by the chips at stake, and by who has folded.
    ways = 3 * betting.stake.astype(np.int64) + (betting.folded - SHOWN)
    distinct, row = np.unique(ways, return_inverse=True)
    stake, folded = (distinct // 3).astype(np.int32), (distinct % 3 + SHOWN).astype(np.int8)
    payoffs = payoffs_of(betting.game, stake, folded) * np.array([1, -1])[:, None]
    ends = nodes.actor == TERMINAL
    records["link"][ends] = kernels.ENDINGS * row[nodes.leaf[ends]]
    records["actor"][ends] = kernels.OVER
    follows = records[after_chance(nodes)]
    over = follows["actor"] == kernels.OVER
    follows["round"][over] = nodes.round[over]  # of the last bet, though the showdown comes after the last round
    return Rules(follows, payoffs.astype(np.float32).ravel())
