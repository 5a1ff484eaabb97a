"""Group similar boards into classes, which an abstraction then treats as the same board [Brown15 §2.1].

Later rounds know the class, since both players saw the board. Their tables do not list boards as dealt: a hand has a
*code*, which depends on the board as a set, and each class maps codes to buckets in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from kilt.abstraction import classes_kernels as kernels
from kilt.abstraction.cluster_kernels import Labels
from kilt.abstraction.holdings import Holdings
from kilt.arrays import Array, FloatArray, IntArray
from kilt.cards.deck import Deck

TYPICAL_SHARE = 0.75  # share of the boards that must have a property for `describe_boards` to mention it


class BoardClasses(NamedTuple):
    """A partition of one round's boards into classes of similar boards."""

    holdings: Holdings  # the boards that have classes
    labels: Labels  # [board]
    number: int
    distances: Array | None = None  # [board, board] from which the classes were made, if all boards were compared
    figures: Mapping[str, Any] = {}  # figures that the build reported

    def look_up(self, boards: IntArray) -> Labels:
        """Return the class of each given board.

        Boards of later rounds have the class of their first cards.
        """
        found = np.empty((len(boards), 1), dtype=np.int32)
        size = self.holdings.boards.shape[1]
        kernels.find_classes(self.holdings.index, self.labels, boards, np.arange(size)[None], found)
        labels: Labels = found[:, 0]
        return labels

    def look_up_earlier(self, holdings: Holdings) -> tuple[IntArray, Labels]:
        """Return the classes that earlier boards may have had, if only the later board is known.

        Returns the positions of the cards that form them as [way, card], and the classes as [board, way]. If later
        boards are dealt in rounds, the cards are their first ones; if boards are sets, any choice is possible.
        """
        as_set = len(holdings.dealt) == 1
        places, size = range(holdings.boards.shape[1]), self.holdings.boards.shape[1]
        ways = np.array(_ways(places, self.holdings.dealt) if as_set else [places[:size]])
        found = np.empty((len(holdings.boards), len(ways)), dtype=np.int32)
        kernels.find_classes(self.holdings.index, self.labels, holdings.boards.astype(np.int64), ways, found)
        return ways, found

    def count_deals(self, holdings: Holdings, codes: Labels | IntArray, count: int) -> FloatArray:
        """Count how often each group of similar hands is dealt in each class of boards.

        The number of such a group is called a code.

        The shape is (classes, codes). `codes` has the code of each hand on each later board, as [board, hand].
        """
        _, found = self.look_up_earlier(holdings)
        weights = np.zeros((self.number, count))
        kernels.count_deals_of_codes(holdings.tables, holdings.deal_counts, codes, found, weights)
        return weights


class CodeBuckets(NamedTuple):
    """Maps hands to buckets in two steps: first to a small group of similar hands, then to a bucket.

    The number of the small group is called a code.

    Each class of boards has its own map from codes to buckets.
    """

    classes: BoardClasses
    bucket: Labels  # [class, code]


def order_classes(labels: Labels, boards: IntArray, deck: Deck) -> Labels:
    """Renumber classes of boards, from low cards to high. Returns the new class of each board.

    Classes are ordered by the mean height of their boards.
    """
    ranks = -np.sort(-(boards // deck.suits), axis=1) @ float(deck.ranks) ** -np.arange(boards.shape[1])
    height = np.bincount(labels, ranks) / np.bincount(labels)
    order: Labels = np.argsort(np.argsort(height)).astype(np.int32)
    return order[labels]


def describe_boards(boards: IntArray, weights: IntArray, deck: Deck) -> str:
    """Describe in words what most of the given boards have in common, such as a pair.

    >>> from kilt.cards.deck import FULL
    >>> describe_boards(np.array([FULL.cards("AsKsQs"), FULL.cards("AdKdJd")]), np.array([4, 4]), FULL)
    'A high, unpaired, one suit, connected'
    """
    ranks, suits = np.sort(boards // deck.suits, axis=1), np.sort(boards % deck.suits, axis=1)
    share = weights / weights.sum()
    order = np.argsort(ranks[:, -1], kind="stable")
    below = np.cumsum(share[order])
    low, high = ranks[order[np.minimum(np.searchsorted(below, [0.1, 0.9]), len(order) - 1)], -1].tolist()
    names = deck.rank_names
    words = [f"{names[high]} high" if low == high else f"{names[low]} to {names[high]} high"]
    different = 1 + (np.diff(ranks, axis=1) > 0).sum(axis=1)
    colours = 1 + (np.diff(suits, axis=1) > 0).sum(axis=1)
    around = np.where(ranks == deck.ranks - 1, -1, ranks)  # an ace may be low
    width = np.minimum(ranks.max(axis=1) - ranks.min(axis=1), around.max(axis=1) - around.min(axis=1))
    size = boards.shape[1]
    for is_so, yes, no in (
        (different < size, "paired", "unpaired"),
        (colours == 1, "one suit", ""),
        (colours == 2, "two suits", ""),
        (colours == size, "all suits different", ""),
        ((width < 5) & (different == size), "connected", ""),
    ):
        often = float(share[is_so].sum())
        if size > 1 and often >= TYPICAL_SHARE:
            words.append(yes if often > 0.995 else f"mostly {yes}")
        elif size > 1 and no and often <= 1 - TYPICAL_SHARE:
            words.append(no if often < 0.005 else f"mostly {no}")
    return ", ".join(words)


def _ways(places: Sequence[int], dealt: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all choices of ``dealt[0]`` positions, then of ``dealt[1]`` of the remaining ones, and so on.

    >>> _ways(range(3), (1, 1))
    [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    """
    if not dealt:
        return [()]
    found = []
    for first in combinations(places, dealt[0]):
        rest = [place for place in places if place not in first]
        found += [(*first, *others) for others in _ways(rest, dealt[1:])]
    return found
