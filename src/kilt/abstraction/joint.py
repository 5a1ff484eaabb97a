"""Compute the joint probability of the players' bucket sequences, and the showdown results of each pair.

In an abstract game, cards matter only through their buckets, round by round. So one table over pairs of bucket
sequences describes all chance events of the game: the probability that player 0 has the first sequence, player 1 the
second, and player 0 wins, loses or ties. The tables of earlier rounds are sums of it. With perfect recall a sequence is
a bucket of the last round: 625 with five buckets per round, as in [Johanson16 §6.3.1].

>>> from tempfile import mkdtemp
>>> from kilt.abstraction.pipeline import build
>>> from kilt.abstraction.buckets import AbstractionSpec
>>> from kilt.abstraction.features import Deal
>>> from kilt.games import load_game
>>> deal = Deal.from_game(load_game("leduc"))
>>> joint = joint_tables(build(AbstractionSpec.from_name("lossless", deal), Path(mkdtemp()) / "cards"), keep=False)
>>> [len(one.bucket) for one in joint.sequences[0]], joint.wins.shape
([3, 15], (15, 15))
>>> round(float((joint.wins + joint.ties + joint.loses).sum()), 12), round(float(joint.ties.sum()), 12)
(1.0, 0.2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import artifact, machine
from kilt.abstraction import joint_kernels as kernels
from kilt.abstraction.buckets import CardAbstraction, PlayerAbstractions
from kilt.arrays import Array, FloatArray
from kilt.cards.boards import Boards, canonical_boards, count_dealt_boards
from kilt.cards.equity import hand_list, ranking_workspace
from kilt.cards.hands import hand_tables
from kilt.errors import AbstractionError, ArtifactError

KIND = "joint tables"
REMEDY = "delete it; it will be rebuilt"
MAX_SEQUENCES = 4096  # maximum number of sequences of a player: tables of 134 MB
QUICK_BOARDS = 4096  # up to this number of boards, tables are built within about a second
CACHED_FROM_BOARDS = 1 << 16  # from this number of boards on, tables are kept on disk
BATCH = 64  # boards per batch: 64 · 24 suits · 1,081 hands · 990 opponents are less than 2³¹ pairs


class Sequences(NamedTuple):
    """All bucket sequences that a player's hand can follow up to a given round, in lexicographic order."""

    parent: npt.NDArray[np.int32]  # [sequence] the sequence of the previous round; 0 in the first round
    bucket: npt.NDArray[np.int32]  # [sequence] the bucket in this round


@dataclass(frozen=True, eq=False)
class JointTables:
    """The probability of each pair of the players' bucket sequences, and their showdown results.

    Attributes
    ----------
    sequences : tuple of tuple of Sequences
        [player][round]
    wins, loses, ties : ndarray, shape (sequences of player 0, sequences of player 1)
        For the last round: the probability that the players have these sequences, and player 0 wins, loses or ties at
        showdown. The three tables together add up to 1.
    """

    sequences: tuple[tuple[Sequences, ...], tuple[Sequences, ...]]
    wins: FloatArray
    loses: FloatArray
    ties: FloatArray

    @cached_property
    def pair_probabilities(self) -> tuple[FloatArray, ...]:
        """The probability of each pair of the players' bucket sequences, in each round.

        There is one array for each round, with shape (sequences of player 0, sequences of player 1).
        """
        tables = [self.wins + self.loses + self.ties]
        for r in range(len(self.sequences[0]) - 1, 0, -1):
            first, second = (own[r].parent for own in self.sequences)
            sizes = [len(own[r - 1].bucket) for own in self.sequences]
            rows = np.zeros((sizes[0], tables[0].shape[1]))
            np.add.at(rows, first, tables[0])
            both = np.zeros((sizes[1], sizes[0]))
            np.add.at(both, second, rows.T)
            tables.insert(0, np.ascontiguousarray(both.T))
        return tuple(tables)

    @property
    def perfect_recall(self) -> bool:
        """Whether the abstraction has perfect recall: each bucket implies the buckets of all earlier rounds."""
        return all(len(one.bucket) == len(np.unique(one.bucket)) for own in self.sequences for one in own)

    def save(self, path: Path, cards: str) -> None:
        """Save the tables in a folder, with the fingerprint of their card abstraction.

        `cards` is that fingerprint.
        """
        arrays: dict[str, Array] = {"wins": self.wins, "loses": self.loses, "ties": self.ties}
        for player, own in enumerate(self.sequences):
            for r, one in enumerate(own):
                arrays |= {f"parent-{player}-{r}": one.parent, f"bucket-{player}-{r}": one.bucket}
        artifact.write(path, KIND, arrays, inputs={"cards": cards}, parameters={"rounds": len(self.sequences[0])})

    @classmethod
    def load(cls, path: Path, cards: str) -> JointTables:
        """Load tables that `save` wrote.

        Raises ValueError if they belong to another card abstraction.
        """
        found = artifact.read(path, KIND, remedy=REMEDY)
        with artifact.damage_errors(path, REMEDY):
            if found.inputs["cards"] != cards:
                raise ValueError(f"it is for cards {found.inputs['cards']}, not {cards}")
            arrays, rounds = (
                {name: np.asarray(array) for name, array in found.arrays.items()},
                found.parameters["rounds"],
            )
            first, second = (
                tuple(Sequences(arrays[f"parent-{player}-{r}"], arrays[f"bucket-{player}-{r}"]) for r in range(rounds))
                for player in (0, 1)
            )
            return cls((first, second), arrays["wins"], arrays["loses"], arrays["ties"])


def joint_tables(
    cards: PlayerAbstractions,
    threads: int = 1,
    tick: Callable[[str, float], None] = lambda what, share: None,
    *,
    keep: bool = True,
) -> JointTables:
    """Load or build the joint probabilities of the players' bucket sequences in a card abstraction.

    Building takes one pass over all complete boards up to suits: minutes for hold'em with five buckets per round. Large
    tables are kept in the cache folder.

    Parameters
    ----------
    cards : PlayerAbstractions
        The card abstraction of both players, or of each.
    threads : int
        Number of threads that share the boards.
    tick : callable
        Called with a description of the current work, and the share of it that is done.
    keep : bool
        Whether to look for large tables in the cache folder, and to store them there.

    Returns
    -------
    JointTables

    Raises
    ------
    AbstractionError
        A player has more than 4,096 bucket sequences.
    """
    for own in cards.each:
        require_few_buckets(own.name, own.numbers)
    kept = load_cached_tables(cards.fingerprint) if keep else None
    if kept:
        return kept
    deal = cards.each[0].identity.deal
    rounds = canonical_boards(deal.board_cards, deal.deck)
    same = cards.each[0] is cards.each[1]
    players = [_Player(own, rounds) for own in cards.each[: 1 if same else 2]]
    for player in players:
        for r in range(len(rounds)):
            player.find_sequences(r, lambda share, r=r: tick(f"sequences of round {r + 1}", share))  # type: ignore[misc]
    first, second = players[0], players[-1]
    wins, ties = _pairs(first, second, threads, lambda share: tick("pairs of hands", share))
    loses = wins.T if same else _pairs(second, first, threads, lambda share: tick("pairs of hands", share))[0].T
    total = wins.sum() + loses.sum() + ties.sum()
    tables = JointTables((first.found, second.found), wins / total, np.ascontiguousarray(loses) / total, ties / total)
    if keep and len(rounds[-1].weight) >= CACHED_FROM_BOARDS:
        tables.save(_place(cards.fingerprint), cards.fingerprint)
    return tables


def require_few_buckets(name: str, numbers: Sequence[int]) -> None:
    """Raise AbstractionError if a round has too many buckets for joint tables."""
    if max(numbers) > MAX_SEQUENCES:
        raise AbstractionError(
            f"{name} has {max(numbers):,} buckets in a round, and tables over pairs of bucket sequences take "
            f"{MAX_SEQUENCES:,} at most: use fewer buckets"
        )


def quickly_available(cards: PlayerAbstractions, boards: int) -> bool:
    """Return whether a card abstraction's joint tables are on disk or quick to build.

    `boards` is the number of complete boards up to suits.
    """
    few = all(max(own.numbers) <= MAX_SEQUENCES for own in cards.each)
    return few and (boards <= QUICK_BOARDS or artifact.exists(_place(cards.fingerprint)))


def load_cached_tables(cards: str) -> JointTables | None:
    """Load a card abstraction's joint tables from the cache folder, or return None.

    `cards` is the fingerprint of the card abstraction.
    """
    if artifact.exists(_place(cards)):
        with suppress(ArtifactError):  # damaged tables are rebuilt
            return JointTables.load(_place(cards), cards)
    return None


def _place(cards: str) -> Path:
    return machine.cache_folder() / f"joint-{artifact.fingerprint(KIND, cards)}"


class _Player:
    """The card abstraction of one player, and the bucket sequences that were found so far."""

    def __init__(self, cards: CardAbstraction, rounds: tuple[Boards, ...]) -> None:
        deal = cards.identity.deal
        self.cards, self.rounds = cards, rounds
        self.boards = [boards.cards.astype(np.int64) for boards in rounds]
        self.hands, self.bits = hand_list(deal.deck, deal.hole_cards), hand_tables(deal.hole_cards, deal.deck).card_bit
        self.sequences: list[Sequences] = []
        # [round][earlier sequence, bucket] index of the sequence; −1: none
        self.number: list[npt.NDArray[np.int32]] = []

    @property
    def found(self) -> tuple[Sequences, ...]:
        """The bucket sequences found so far, for each round."""
        return tuple(self.sequences)

    def find_sequences(self, r: int, tick: Callable[[float], None]) -> None:
        """Find all bucket sequences up to round `r`, by extending those of the previous round."""
        seen = np.zeros((len(self.sequences[-1].bucket) if r else 1, self.cards.numbers[r]), dtype=np.bool_)
        for low, high in _batches(len(self.boards[r])):
            before, buckets = self._before(r, low, high), self._buckets(r, low, high)
            kernels.mark_sequences(before, buckets, self.boards[r][low:high], self.hands, self.bits, seen)
            tick(high / len(self.boards[r]))
        parent, bucket = np.nonzero(seen)
        if len(bucket) > MAX_SEQUENCES:
            raise AbstractionError(
                f"{self.cards.name} has {len(bucket):,} bucket sequences up to round {r + 1}, and tables over pairs of "
                f"them take {MAX_SEQUENCES:,} at most: use fewer buckets"
            )
        number = np.full(seen.shape, -1, dtype=np.int32)
        number[parent, bucket] = np.arange(len(bucket))
        self.number.append(number)
        self.sequences.append(Sequences(parent.astype(np.int32), bucket.astype(np.int32)))

    def sequence_indices(self, r: int, low: int, high: int) -> npt.NDArray[np.int32]:
        """Return the index of each hand's bucket sequence on the given boards, shape (boards, hands).

        Entries of hands that share a card with the board are arbitrary.
        """
        rows: npt.NDArray[np.int32] = self.number[r][self._before(r, low, high), self._buckets(r, low, high)]
        return rows

    def _before(self, r: int, low: int, high: int) -> npt.NDArray[np.int32]:
        """Return the bucket sequence of each hand in the previous round, shape (boards, hands).

        Boards with the same parent are contiguous.
        """
        if r == 0:
            return np.zeros((high - low, len(self.hands.bits)), dtype=np.int32)
        parent = self.rounds[r].parent[low:high]
        first = int(parent[0])
        return self.sequence_indices(r - 1, first, int(parent[-1]) + 1)[parent - first]

    def _buckets(self, r: int, low: int, high: int) -> npt.NDArray[np.int32]:
        return np.asarray(self.cards.rounds[r].look_up_boards(self.boards[r][low:high]), dtype=np.int32)


def _batches(number: int) -> list[tuple[int, int]]:
    return [(low, min(low + BATCH, number)) for low in range(0, number, BATCH)]


def _pairs(
    mine: _Player, theirs: _Player, threads: int, tick: Callable[[float], None]
) -> tuple[FloatArray, FloatArray]:
    """Count the pairs of hands that the first player wins and that tie, by the bucket sequences of both players.

    Both arrays have the shape (sequences of the first player, sequences of the second).
    """
    deal, last = mine.cards.identity.deal, len(mine.rounds) - 1
    weights, boards, batches = count_dealt_boards(mine.rounds), mine.boards[last], _batches(len(mine.boards[last]))
    tables = hand_tables(deal.board_sizes[-1] + deal.hole_cards, deal.deck)
    shape = len(mine.sequences[last].bucket), len(theirs.sequences[last].bucket)
    hands, done = len(mine.hands.bits), SimpleQueue[int]()

    def count(part: int) -> tuple[FloatArray, FloatArray]:
        ranking = ranking_workspace(deal.deck, deal.hole_cards, deal.board_sizes[-1])
        wins, ties = np.zeros(shape), np.zeros(shape)
        scratch = kernels.Scratch(
            local=np.full((2, max(shape)), -1, dtype=np.int32),
            present=np.empty((2, max(shape)), dtype=np.uint32),
            place=np.empty((2, hands), dtype=np.uint32),
            weaker=np.empty(max(shape), dtype=np.int32),
            equal=np.zeros(max(shape), dtype=np.int32),
            distinct=np.empty(hands, dtype=np.uint32),
            holding=np.empty((len(ranking.by_card), deal.deck.size), dtype=np.uint32),
            behind=np.empty(len(ranking.by_card), dtype=np.uint32),
            number=np.empty(len(ranking.by_card), dtype=np.uint32),
            wins=np.empty(shape, dtype=np.int32),
            ties=np.empty(shape, dtype=np.int32),
        )
        for low, high in batches[part::threads]:
            own = mine.sequence_indices(last, low, high)
            other = own if mine is theirs else theirs.sequence_indices(last, low, high)
            kernels.add_pairs(
                boards[low:high], weights[low:high], own, other, mine.hands, tables, ranking, scratch, wins, ties
            )
            done.put(high)
            tick(done.qsize() / len(batches))
        return wins, ties

    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(count, range(threads)))
    return sum(part[0] for part in parts), sum(part[1] for part in parts)  # type: ignore[return-value]
