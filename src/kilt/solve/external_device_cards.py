"""The data that GPU code needs to deal hands and look up their buckets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.holdings import Holdings
from kilt.abstraction.rounds import BOARDS_PER_BATCH, RoundBuckets
from kilt.arrays import Array
from kilt.cards.deck import subsets
from kilt.cards.edges import pair_edges
from kilt.cards.hands import hand_tables
from kilt.gpu import address, require_gpu
from kilt.solve.external import DEFAULT, SamplingOptions, priced_rounds

# The records of the CUDA file: `P` is an address or an 8-byte number, `N` a 4-byte number.
P, N = np.uint64, np.uint32  # an address or a long number, and a short one
SEARCH = np.dtype([("word", P), ("first", P), ("symmetry", P), ("parts", N), ("dealt", N, 4), ("start", N)], align=True)
LOOK = np.dtype(
    [
        *((name, P) for name in ("table", "labels", "bucket")),
        *((name, N) for name in ("bytes", "hands", "search", "classes", "codes", "inside")),
    ],
    align=True,
)
HANDS = np.dtype([(name, P) for name in ("key", "bit", "low", "high", "strength", "flush", "start")], align=True)
PRICE = np.dtype([("ways", P), *((name, N) for name in ("count", "missing", "size", "unused"))], align=True)
DEALS = np.dtype(
    [
        *((name, P) for name in ("search", "look", "names", "composed")),
        *(("hands", HANDS), ("seed", P), ("price", P), ("edge", P), ("deck", N), ("permutations", N)),
    ],
    align=True,
)


class DeviceCards:
    """The buckets of all hands, and the tables of hand strength, in GPU memory."""

    def __init__(
        self,
        abstract: AbstractGame,
        seed: int,
        options: SamplingOptions = DEFAULT,
        apart: tuple[int, int] = (0, 0),  # rounds before separate classes of boards, and the number of classes
    ) -> None:
        self.cupy, self.abstract = require_gpu(), abstract
        rounds = range(abstract.game.rules.rounds - 1)  # no card follows the last round
        self.priced = len(priced_rounds(options, rounds))
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
                if 0 < apart[0] <= r:
                    looks[2 * r + player]["inside"] = cards.numbers[r] // apart[1]
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
        size = *self._prices(), self.deck.size, len(first.composed)
        pointers = (
            self._put(searches.view(np.uint8)),
            self._put(looks.view(np.uint8)),
            self._put(names.astype(np.uint32)),
            composed,
        )
        self.record = np.array((*pointers, hands, np.uint64(seed), *size), dtype=DEALS)

    def _prices(self) -> tuple[int, int]:
        """Return GPU addresses of the boards that may follow an all-in, and of all-in equities before any board."""
        rules = self.abstract.game.rules
        whole, held = rules.board_size(rules.rounds - 1), rules.hole_cards
        prices, edges = np.zeros(max(1, self.priced), dtype=PRICE), np.zeros((1, 1), dtype=np.float32)
        for r in range(self.priced):
            size = rules.board_size(r)
            if size == 0:
                edges = pair_edges(self.deck, held, whole).astype(np.float32)
                continue
            ways = subsets(self.deck.size - 2 * held - size, whole - size)
            prices[r] = self._put(ways.astype(np.uint8)), len(ways), whole - size, size, 0
        return self._put(prices.view(np.uint8)), self._put(edges)

    def _put(self, array: Array) -> int:
        """Copy an array to the GPU, keep it as long as this object, and return its address."""
        self._kept.append(self.cupy.asarray(np.ascontiguousarray(array)))
        return address(self._kept[-1])

    def _look(self, this: RoundBuckets) -> tuple[Any, ...]:
        """Return a record that tells GPU code how to look up the buckets of a round."""
        if id(this.table) not in self._tables:
            table = np.concatenate([*_computed(this)]) if this.by_strength is not None else this.table
            kept = self.cupy.asarray(np.ascontiguousarray(table))
            this.require_valid_index(this.entry_bound, int(kept.max()) if kept.size else 0)
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
        """Return the number of the search table that maps boards to their canonical form.

        It is created if it is new.
        """
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
        """The constants of a game's deck and rounds, as macros for GPU code."""
        rules = self.abstract.game.rules
        board = rules.board_size(rules.rounds - 1)
        return {
            "ROUNDS": rules.rounds,
            "HELD": rules.hole_cards,
            "BOARD": board,
            "SUITS": self.deck.suits,
            "SEARCHES": len(self._found),
            "PRICED": self.priced,
        }


def _computed(this: RoundBuckets) -> Iterator[Array]:
    """Yield the buckets of a round that has no stored table, for a few boards at a time.

    The shape is (boards, hands).
    """
    boards = this.holdings.boards.astype(np.int64)
    for start in range(0, len(boards), BOARDS_PER_BATCH):
        yield this.look_up_boards(boards[start : start + BOARDS_PER_BATCH]).clip(0).astype(np.uint32)
