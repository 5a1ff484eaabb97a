"""Compute features of hands, such as their strength, by which hands are sorted into buckets [Johanson16 §5].

HS, the strength of a hand on a complete board, is an integer: 2·wins + ties against all hands that the opponent can
hold. Every other feature is a sum of such numbers over the ways to deal the rest of the board, and so an integer too:
exact, and independent of the order of summation. The table of a round is computed from that of the next round:

- *moments*: HS and HS², for E[HS] and E[HS²];
- *histograms*: how often HS falls into each of some bins. They are cumulative, so the earth mover's distance of two
  histograms is the sum of absolute differences;
- *OCHS*: the strength against each of some clusters of opponents' hands.

Tables are kept in a cache folder that all builds share. `FEATURES` has a row for each feature that hands can be sorted
by.

>>> features = Features(Deal(board_cards=(0, 3)))
>>> table = features.histograms(0, bins=10)
>>> table.values.shape, round(float(table.values[0, -1] * table.scale), 6)
((169, 10), 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise
from math import comb, prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt import __version__, artifact
from kilt.abstraction import features_kernels as kernels
from kilt.abstraction.cluster import kmeans
from kilt.abstraction.holdings import Holdings, holdings
from kilt.arrays import Array, FloatArray
from kilt.cards.deck import FULL, Deck, subsets
from kilt.cards.equity import cards_with_blanks, hand_list, ranking_workspace
from kilt.cards.hands import hand_tables
from kilt.cost import Cost
from kilt.engines import Engine, LocalEngine
from kilt.errors import AbstractionError, ArtifactError
from kilt.games.holdem import Holdem
from kilt.jit import in_parts
from kilt.lanes import LANES
from kilt.paces import pace

KIND = "feature table"
BINS = 50
OPPONENTS = 8  # clusters of the opponent's hands
OPPONENT_RESTARTS = 20
CANONICAL = "canonical"  # each hand is a bucket
VALUE, NEXT, NONE = "value", "next", "none"  # ways to sort hands by a feature without a metric for k-means
WHOLE = 2**16 - 1  # the OCHS of a complete board is a multiple of 1/WHOLE
NO_CODES = np.zeros(0, dtype=np.int16)

Tick = Callable[[str, float], None]  # called with the name of the current table, and the share of it that is done


@dataclass(frozen=True)
class Deal:
    """The cards that a game deals: its deck, and the numbers of private and public cards."""

    deck: Deck = FULL
    hole_cards: int = 2
    board_cards: tuple[int, ...] = (0, 3, 1, 1)  # number of cards that each round adds

    @classmethod
    def from_game(cls, game: Holdem) -> Deal:
        """Create a `Deal` from a game: its deck, and the numbers of its private and public cards."""
        return cls(game.deck, game.rules.hole_cards, tuple(game.rules.board_cards))

    @property
    def board_sizes(self) -> tuple[int, ...]:
        """The number of board cards in each round, such as (0, 3, 4, 5) in hold'em."""
        return tuple(accumulate(self.board_cards))

    @property
    def top_strength(self) -> int:
        """The highest hand strength as an integer: twice the number of possible opponent hands."""
        return 2 * comb(self.deck.size - self.board_sizes[-1] - self.hole_cards, self.hole_cards)

    def holdings(self, dealt: tuple[int, ...]) -> Holdings:
        """Index all pairs of a hand and a board, up to suit isomorphism.

        `dealt` has the number of board cards that each round deals.
        """
        return holdings(dealt, self.deck, self.hole_cards)

    def count_completions(self, size: int) -> int:
        """Return the number of ways to complete a board of a given size.

        The board has `size` cards. Later rounds are dealt one after another, and the cards of the player's hand are not
        dealt.
        """
        steps = [size, *(later for later in self.board_sizes if later > size)]
        left = self.deck.size - self.hole_cards
        return prod(comb(left - now, then - now) for now, then in pairwise(steps))


class FeatureSettings(NamedTuple):
    """Settings for computing features of hands, such as the number of bins in histograms."""

    bins: int = BINS  # number of bins of histograms
    opponents: int = OPPONENTS  # number of clusters of the opponent's hands, for OCHS


class FeatureTable(NamedTuple):
    """The values of one feature, such as hand strength, for all hands and boards of a round."""

    values: Array  # [holding, dimension] integers
    scale: FloatArray | float  # value of one unit, for each dimension or for all


RoundTables: TypeAlias = list[tuple[int, FeatureTable]]  # each table with its round


STRENGTHS = "strengths"  # table of hands on complete boards, from which all others are computed


TableCosts: TypeAlias = dict[str, Cost]  # cost of each table by its name: bytes in the cache, and seconds of one core


class Features:
    """Computes features of hands for all boards of a game, and caches the results on disk if a folder is given.

    Threads of this process compute them, or an `engine`: see `compute_with_engine`. Callers also use the engine for
    their own work; by default it runs threads.
    """

    def __init__(
        self,
        deal: Deal,
        folder: Path | None = None,
        threads: int = 1,
        tick: Tick = lambda what, share: None,
        engine: Engine | None = None,
    ) -> None:
        self.deal, self.folder, self.threads, self.tick = deal, folder, threads, tick
        self.engine = engine or LocalEngine(threads)
        self._made: dict[str, Array] = {}

    def compute_with_engine(self, wanted: Iterable[tuple[str, int]], settings: FeatureSettings) -> None:
        """Compute the feature tables of some rounds on an engine's workers, and store them in a shared folder.

        Does nothing if the engine runs threads of this process, or if there is no folder to hold the tables.

        Raises
        ------
        AbstractionError
            A worker finished a table, but the folder does not have it: the machines do not share the folder.
        """
        if self.folder is None or isinstance(self.engine, LocalEngine):
            return

        def missing() -> list[tuple[str, int]]:
            return [(feature, r) for feature, r in asked if self.missing_table_costs(feature, r, settings)]

        asked = [one for one in dict.fromkeys(wanted) if FEATURES[one[0]].metric not in (NEXT, NONE)]
        make = partial(_make, self.deal, self.folder.absolute(), settings)
        self.engine.map(make, missing(), lambda share: self.tick("features", share))
        if left := missing():
            raise AbstractionError(
                f"{left[0][0]} of round {left[0][1] + 1} was computed on another machine and is not in {self.folder}: "
                "set KILT_CACHE to a folder that all machines share"
            )

    def strengths(self) -> npt.NDArray[np.int16]:
        """Return the strength of every hand on every complete board, from 0 to `Deal.top_strength`.

        Hands and boards that differ only by a renaming of suits have one entry.
        """

        def make() -> Array:
            codes = np.empty(len(self._holdings(self.deal.board_sizes[-1])), dtype=np.int16)
            self._rank(STRENGTHS, kernels.final_strengths, np.ones((2, self._most)), self.deal.top_strength // 2, codes)
            return codes

        codes: npt.NDArray[np.int16] = self._kept(STRENGTHS, make)
        if codes.min(initial=0) < 0 or codes.max(initial=0) > self.deal.top_strength:
            raise AbstractionError(f"the strengths of hands in {self._folder} are damaged: delete that folder")
        return codes

    def count_strengths(self) -> int:
        """Return the number of different hand strengths on complete boards."""
        return int(np.count_nonzero(np.bincount(self.strengths())))

    def moments(self, r: int) -> FeatureTable:
        """Return each hand's sum of strengths and sum of squared strengths, over all completions of the board."""
        hs = np.arange(self.deal.top_strength + 1, dtype=np.int64)
        return self.mean_over_boards("moments", r, np.stack([hs, hs**2], axis=1))

    def mean_over_boards(self, name: str, r: int, worth: Array) -> FeatureTable:
        """Average a function of hand strength over all completions of the board, for every hand of a round.

        Parameters
        ----------
        name : str
            Name of the tables in the cache.
        r : int
            The round.
        worth : ndarray, shape (`Deal.top_strength` + 1, dimensions)
            The function: row h has its value, an integer of at least 0, for a hand with HS = h on a complete board.

        Returns
        -------
        FeatureTable
        """
        return self._means(name, self.deal.board_sizes[r], worth)

    def _means(self, name: str, size: int, worth: Array) -> FeatureTable:
        return FeatureTable(self._rolled(name, size, self.strengths, worth), 1 / self.deal.count_completions(size))

    def histograms(self, r: int, bins: int = BINS) -> FeatureTable:
        """Return a cumulative histogram of each hand's strength, in `bins` bins of equal width.

        The table has a row for each pair of a hand and a board of the round.

        A strength s from 0 to 1 is in bin ⌊s · bins⌋, and a strength of 1 in the last bin.
        """
        return self._histograms(self.deal.board_sizes[r], bins)

    def _histograms(self, size: int, bins: int) -> FeatureTable:
        if bins < 2:
            raise AbstractionError(f"a histogram of {bins} bins cannot distinguish hands: use 2 or more")
        which = np.minimum(np.arange(self.deal.top_strength + 1) * bins // self.deal.top_strength, bins - 1)
        steps = (which[:, None] <= np.arange(bins)).astype(np.uint8)
        return self._means(f"histograms-{bins}", size, steps)

    def ochs(self, r: int, opponents: int = OPPONENTS) -> FeatureTable:
        """Return opponent cluster hand strength (OCHS): each hand's strength against each cluster of opponent hands.

        This is OCHS, opponent cluster hand strength. Clusters are weighted by their number of different hands: only
        with these weights does the L2 distance agree with figure 5.3 of [Johanson16].
        """

        def last() -> Array:
            clusters = self.opponent_clusters(opponents)
            rows = np.concatenate([clusters, np.zeros((-opponents % LANES, clusters.shape[1]))])
            out = np.empty((len(self._holdings(self.deal.board_sizes[-1])), opponents), dtype=np.uint16)
            self._rank(name, kernels.final_ochs, np.zeros((4, LANES * self._most), np.float32), rows, WHOLE, out)
            return out

        name, size = f"ochs-{opponents}", self.deal.board_sizes[r]
        values = self._rolled(name, size, None, self._kept(f"{name}-{self.deal.board_sizes[-1]}", last))
        _, hands = self._holdings(0).number_hands(())
        sizes = np.array([len(np.unique(hands[row > 0])) for row in self.opponent_clusters(opponents)])
        return FeatureTable(values, np.sqrt(sizes / sizes.sum()) / (WHOLE * self.deal.count_completions(size)))

    def opponent_clusters(self, clusters: int = OPPONENTS) -> FloatArray:
        """Cluster the opponent's possible hands from weak to strong, for opponent cluster hand strength (OCHS).

        Entries are 1 if a private hand belongs to a cluster, else 0, with the shape (clusters, hands). Hands without a
        board are clustered by k-means on the earth mover's distance of their histograms.
        """
        start = self._holdings(0)
        if clusters > len(start):
            raise AbstractionError(
                f"there are only {len(start)} different hands for {clusters} clusters of opponents: use fewer clusters"
            )

        def make() -> Array:
            table = self._histograms(0, BINS)
            points = table.values * table.scale
            found = kmeans(
                points, clusters, weights=start.weights, metric="emd", restarts=OPPONENT_RESTARTS, tolerance=0.0
            )
            # a lower cumulative histogram means a stronger hand
            place = np.argsort(np.argsort(-found.centroids.sum(axis=1)))
            return place[found.labels].astype(np.uint8)

        _, row = start.number_hands(())
        which = self._kept(f"opponents-{clusters}", make)[row]
        members: FloatArray = (which == np.arange(clusters)[:, None]).astype(np.float64)
        return members

    def is_last_round(self, r: int) -> bool:
        """Return whether the board is complete in the given round."""
        return r == len(self.deal.board_sizes) - 1

    def strength_bins(self, r: int, bins: int) -> FeatureTable:
        """Return a histogram of each hand's strength, or the strength itself on complete boards.

        On a complete board, the difference of two strengths equals the earth mover's distance of the histograms. The
        strength is negated: the lower a cumulative histogram, the stronger the hand.
        """
        if self.is_last_round(r):
            return FeatureTable(self.strengths()[:, None], -bins / self.deal.top_strength)
        return self.histograms(r, bins)

    def missing_table_costs(self, feature: str, r: int, settings: FeatureSettings) -> TableCosts:
        """Estimate the time and memory to compute a feature's tables, as far as the cache folder lacks them."""
        tables = self.table_costs(feature, r, settings)
        return {name: cost for name, cost in tables.items() if not (self._folder and self._usable(self._folder / name))}

    def table_costs(self, feature: str, r: int, settings: FeatureSettings) -> TableCosts:
        """Estimate the cost of all tables that a feature needs, even if they are in the cache folder."""
        last = self._holdings(self.deal.board_sizes[-1])
        tables = {STRENGTHS: Cost(cache=2 * len(last), seconds=pace("features", "strength_board") * last.board_count)}
        return tables | FEATURES[feature].costs(self, settings, r)

    def means_costs(self, name: str, dimensions: int, most: int, r: int | None = None) -> TableCosts:
        """Estimate the cost of mean values, for a given round and all later rounds.

        If `r` is None, the tables begin with the start of the hand.

        `most` is the largest value that a hand can have on a complete board.
        """
        sizes = sorted({0, *self.deal.board_sizes})
        costs = {}
        for size, then in pairwise(sizes[0 if r is None else sizes.index(self.deal.board_sizes[r]) :]):
            here = self._holdings(size)
            width = np.min_scalar_type(most * self.deal.count_completions(size)).itemsize
            deals = len(here) * comb(self.deal.deck.size - size, then - size)
            seconds = deals * (pace("features", "deal") + pace("features", "deal_dimension") * dimensions)
            costs[f"{name}-{size}"] = Cost(cache=len(here) * dimensions * width, seconds=seconds)
        return costs

    def ochs_costs(self, opponents: int, r: int) -> TableCosts:
        """Estimate the cost of opponent cluster hand strength (OCHS), with all tables that it needs."""
        name, last = f"ochs-{opponents}", self._holdings(self.deal.board_sizes[-1])
        each = pace("features", "strength_board") + pace("features", "opponent_board") * opponents
        seconds = each * last.board_count
        return {
            **self.means_costs(f"histograms-{BINS}", BINS, 1),
            f"opponents-{opponents}": Cost(cache=len(self._holdings(0)), seconds=pace("features", "opponents")),
            f"{name}-{self.deal.board_sizes[-1]}": Cost(cache=2 * opponents * len(last), seconds=seconds),
            **self.means_costs(name, opponents, WHOLE, r),
        }

    def _holdings(self, size: int) -> Holdings:
        return self.deal.holdings((size,))

    @property
    def _most(self) -> int:
        """The number of hands, or of cards with blanks if that is larger."""
        return max(len(self._holdings(0).workspace()), cards_with_blanks(self.deal.deck, self.deal.hole_cards))

    def _rank(self, name: str, kernel: Callable[..., None], scratch: Array, *rest: Any) -> None:
        """Run a kernel over all complete boards; each part gets a copy of the scratch array."""
        deck, hole, size = self.deal.deck, self.deal.hole_cards, self.deal.board_sizes[-1]
        cards = hand_list(deck, hole), hand_tables(size + hole, deck)
        last = self._holdings(size)

        def part(start: int, end: int) -> None:
            room = ranking_workspace(deck, hole, size), scratch.copy(), last.workspace()
            kernel(last.tables, start, end, *cards, *room, *rest)

        in_parts(part, len(last.boards), self.threads, lambda share: self.tick(name, share))

    def _rolled(self, name: str, size: int, codes: Callable[[], Array] | None, worth: Array) -> Array:
        """Sum the values of complete boards over roll-outs: return a row for each holding, or for each code."""
        sizes = self.deal.board_sizes
        if size == sizes[-1]:
            return worth if codes is None else worth[codes()]
        then = min(later for later in sizes if later > size)

        def make() -> Array:
            coded = codes is not None and then == sizes[-1]
            after = worth if then == sizes[-1] else self._rolled(name, then, codes, worth)
            here, there = self._holdings(size), self._holdings(then)
            most = int(worth.max()) * self.deal.count_completions(size)
            out = np.zeros((len(here), worth.shape[1]), dtype=np.min_scalar_type(most))
            found = NO_CODES
            if coded and codes:
                # convert the small table to the type of the result, so that fewer kernels are compiled
                found, after = codes(), worth.astype(out.dtype)
            picks = subsets(self.deal.deck.size - size, then - size)

            def roll_back(start: int, end: int) -> None:
                rows = np.empty((len(picks), len(here.tables.bits)), dtype=np.int32)
                room = here.workspace(), here.workspace(), np.empty((3, self._most), dtype=np.int64)
                for board in range(start, end):
                    count = kernels.find_later(here.tables, there.tables, board, picks, coded, found, *room, rows)
                    first = here.tables.first[board]
                    kernels.sum_later_values(rows, after, out[first : first + count])

            in_parts(roll_back, len(here.boards), self.threads, partial(self.tick, f"{name}, {size} cards"))
            return out

        return self._kept(f"{name}-{size}", make)

    @cached_property
    def _folder(self) -> Path | None:
        if self.folder is None:
            return None
        deal = self.deal
        return self.folder / artifact.fingerprint(repr((deal.deck, deal.hole_cards, deal.board_sizes)))

    def _kept(self, name: str, make: Callable[[], Array]) -> Array:
        """Return a table from memory or from the folder, or compute it; a table of another version is recomputed."""
        if name not in self._made:
            if self._folder is None:
                self._made[name] = make()
            else:
                place = self._folder / name
                with artifact.exclusive_access(place, wait=True):
                    if not self._usable(place):
                        artifact.write(place, KIND, {"values": make()}, parameters={"deal": repr(self.deal)})
                self._made[name] = artifact.read(place, KIND, private=True).arrays["values"]
        return self._made[name]

    def _usable(self, place: Path) -> bool:
        try:
            found = artifact.read(place, KIND) if artifact.exists(place) else None
            return found is not None and found.version == __version__ and "values" in found.arrays
        except ArtifactError:
            return False


def _make(deal: Deal, folder: Path, settings: FeatureSettings, wanted: tuple[str, int]) -> None:
    """Compute the tables of one feature in one round in a folder, unless the folder has them."""
    feature, r = wanted
    FEATURES[feature].tables(Features(deal, folder), settings, r)


@dataclass(frozen=True)
class Feature:
    """A property of hands by which they are sorted into buckets, such as a histogram of hand strength.

    Parameters
    ----------
    name : str
        Its name in plans.
    metric : str
        How hands are sorted by it: ``"emd"`` or ``"l2"``, k-means with that distance of points; `VALUE`, percentiles of
        one value; `NEXT`, k-means on distributions over the buckets of the next round; `NONE`, each hand is a bucket.
    technique : str
        The papers' name for an abstraction by this feature alone, for names such as ``IR-KE-KO``; empty: none.
    dimensions : callable
        ``(settings, r)`` to the number of dimensions of a point in round r.
    tables : callable
        ``(features, settings, r)`` to a list of (round, `FeatureTable`): a hand's point is its rows of these tables,
        side by side. By default, hands have no points.
    costs : callable
        ``(features, settings, r)`` to the costs of the tables that it is computed from, by their names in the cache.
    as_dealt : bool
        Whether it looks at the boards of earlier rounds, so that the order of a board's cards matters.
    """

    name: str
    metric: str
    technique: str = ""
    dimensions: Callable[[FeatureSettings, int], int] = lambda settings, r: 1
    tables: Callable[[Features, FeatureSettings, int], RoundTables] = lambda features, settings, r: []
    costs: Callable[[Features, FeatureSettings, int], TableCosts] = lambda features, settings, r: {}
    as_dealt: bool = False


def _moment(power: int, features: Features, settings: FeatureSettings, r: int) -> RoundTables:
    """Return the table of E[HS] or E[HS²]; on a complete board of HS itself, because HS² gives the same order."""
    values = features.strengths() if features.is_last_round(r) else features.moments(r).values[:, power - 1]
    return [(r, FeatureTable(values[:, None], 1.0))]


def _moment_costs(features: Features, settings: FeatureSettings, r: int) -> TableCosts:
    return features.means_costs("moments", 2, features.deal.top_strength**2, r)


FEATURES = {
    feature.name: feature
    for feature in (
        Feature("ehs2", VALUE, tables=partial(_moment, 2), costs=_moment_costs),
        Feature("ehs", VALUE, tables=partial(_moment, 1), costs=_moment_costs),
        Feature(
            "histogram",
            "emd",
            "KE",
            dimensions=lambda settings, r: settings.bins,
            tables=lambda features, settings, r: [(r, features.strength_bins(r, settings.bins))],
            costs=lambda features, settings, r: features.means_costs(
                f"histograms-{settings.bins}", settings.bins, 1, r
            ),
        ),
        Feature(
            "ochs",
            "l2",
            "KO",
            dimensions=lambda settings, r: settings.opponents,
            tables=lambda features, settings, r: [(r, features.ochs(r, settings.opponents))],
            costs=lambda features, settings, r: features.ochs_costs(settings.opponents, r),
        ),
        Feature(  # the mean of the distances of this round and of all earlier rounds [Schmid15]
            "history",
            "emd",
            "KH",
            dimensions=lambda settings, r: settings.bins * (r + 1),
            tables=lambda features, settings, r: [
                (seen, features.strength_bins(seen, settings.bins)) for seen in range(r + 1)
            ],
            costs=lambda features, settings, r: features.means_costs(f"histograms-{settings.bins}", settings.bins, 1),
            as_dealt=True,
        ),
        Feature("potential", NEXT, "PA"),
        Feature(CANONICAL, NONE),
    )
}
