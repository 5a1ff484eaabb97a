"""Who owns what: the trunk is the head's, and each class of boards belongs to a blade [Brown15 §§2.1, 3].

The *trunk* is all that is played before anybody has seen a board. From then on players know the class of their board,
and no information set belongs to two classes: a class with all its rounds can live on another machine. Several classes
may share a blade.

A second level is the same once more [Brown15 §6]: where boards of a later round have classes of their own, a blade
keeps the rounds up to there as a trunk of its own, and its classes go to blades below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import comb, prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame, AbstractPart, AbstractSize
from kilt.abstraction.buckets import AbstractionSpec, load_classes
from kilt.abstraction.classes import BoardClasses
from kilt.abstraction.cluster_kernels import Labels
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import Plan
from kilt.arrays import BoolArray, ByteArray, FloatArray, IntArray
from kilt.cards.deck import subsets
from kilt.config import EngineConfig
from kilt.errors import RunError

LOOKED_AT = 50  # boards, when a game is taken apart


@dataclass(frozen=True)
class Partition:
    """An abstract game in parts: the trunk, and what belongs to each class of boards.

    With two levels, what belongs to a class ends before the next board: the rest belongs to classes of that one.
    """

    abstract: AbstractGame
    trunk: int  # rounds that the head has
    classes: int
    labels: IntArray  # [board] the class of each board, all of them as they may be dealt
    boards: ByteArray  # [board, card]
    inner: BoardClasses | None = None  # of the next board, inside each class, where there are two levels
    _firsts: dict[tuple[bool, bool, bool], IntArray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, abstract: AbstractGame, cards: Sequence[Path], depth: int = 1) -> Partition:
        """Split an abstract game by classes of boards, of one round or two, of its cards in the folders `cards`."""
        identity = shared_classes([each.identity for each in abstract.cards.each])
        trunk = trunk_of(identity.plan, identity.deal, depth)
        public = identity.plan.public[0]
        boards = subsets(identity.deal.deck.size, identity.deal.sizes[trunk])
        inner = load_classes(cards[0], identity, identity.plan.public[1]) if depth > 1 else None
        labels, *others = (
            load_classes(folder, each.identity, public).of(boards.astype(np.int64)).astype(np.int64)
            for folder, each in zip(cards, abstract.cards.each, strict=False)
        )
        if any(not np.array_equal(labels, other) for other in others):
            raise RunError(
                "the cards of the two players have other classes of boards, so that blades cannot share them: make "
                "these once, with `kilt abstraction boards`, and give both plans `boards`"
            )
        found = cls(abstract, trunk, public.classes, labels, boards, inner)
        found._check()
        return found

    @property
    def later(self) -> int:
        """The first round that belongs to classes of the second level; with one level, the number of rounds."""
        return self.trunk + 1 if self.inner else len(self.abstract.buckets[0])

    @property
    def below(self) -> int:
        """Number of classes of the second level inside each of the first; 1 where there is none."""
        return self.inner.number // self.classes if self.inner else 1

    def _check(self) -> None:
        """Raise RunError where hands on boards of a class have buckets of another: look at some of them."""
        rng, deal = np.random.default_rng(0), self.abstract.cards.each[0].identity.deal
        some = rng.integers(len(self.boards), size=LOOKED_AT)
        for board, label in zip(self.boards[some].tolist(), self.labels[some].tolist(), strict=True):
            rest = rng.permutation([card for card in range(deal.deck.size) if card not in board]).tolist()
            hand, cards = rest[: deal.hole_cards], [*board, *rest[deal.hole_cards :]]
            inner = int(self.inner.of(np.array([cards[: deal.sizes[self.later]]]))[0]) if self.inner else 0
            for cards_of, r in product(self.abstract.cards.each, range(self.trunk, len(deal.sizes))):
                bucket = cards_of.bucket(hand, cards[: deal.sizes[r]])
                classes, wanted = (self.classes * self.below, inner) if r >= self.later else (self.classes, label)
                if bucket * classes // cards_of.numbers[r] != wanted:
                    raise RunError(
                        f"bucket {bucket} of round {r + 1} has boards of several classes: build the cards again"
                    )

    @cached_property
    def real(self) -> Partition:
        """The parts with the payoffs of the rules, by which strategies are judged; itself if not tilted."""
        game = self.abstract.game
        return replace(self, abstract=replace(self.abstract, game=game.real)) if game.real is not game else self

    @property
    def head(self) -> AbstractPart:
        """The head's part: the slots of the trunk."""
        return self._part((True, False, False))

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """All parts but the head's: the class of the first level, and where there are two, of the second inside it."""
        first = [(label,) for label in range(self.classes)]
        return [*first, *(product(range(self.classes), range(self.below)) if self.inner else ())]

    def part(self, label: int, inner: int | None = None) -> AbstractPart:
        """The part of a class: in each round beyond the trunk and before the next level, a range of buckets."""
        return self._part((False, inner is None, inner is not None), label, inner or 0)

    def played(self, label: int, inner: int | None = None) -> AbstractPart:
        """All that is played on boards of a class: the trunk, and the parts of the class and of one inside it."""
        return self._part((True, True, inner is not None), label, inner or 0)

    def _part(self, there: tuple[bool, bool, bool], label: int = 0, inner: int = 0) -> AbstractPart:
        """Buckets of a class in rounds that are `there`: of the trunk, of the first level, of the second."""
        level = np.array([0 if r < self.trunk else 1 if r < self.later else 2 for r in range(self._rounds)])
        classes, place = np.array([1, self.classes, self.classes * self.below]), [0, label, label * self.below + inner]
        own = np.array(self.abstract.buckets) // classes[level] * np.array(there)[level]
        first, second, *offset = (tuple(each) for each in [*own.tolist(), *(own * np.array(place)[level]).tolist()])
        plan = self.abstract.cards.each[0].identity.plan
        known = [
            place[n] if n and plan.public_at(r) == plan.public[n - 1] else None for r, n in enumerate(level.tolist())
        ]
        found = AbstractPart(self.abstract, (offset[0], offset[1]), (first, second), known)
        if there in self._firsts:  # classes have as many buckets: what a slot's number is goes for all
            vars(found)["first"] = self._firsts[there]
        else:
            self._firsts[there] = found.first
        return found

    @property
    def _rounds(self) -> int:
        return len(self.abstract.buckets[0])

    def next_boards(self, label: int) -> tuple[Labels, ByteArray]:
        """[board of a class, set] The class, inside it, of the next board with each set of cards; and [set, card].

        −1 where a card is on the board already.
        """
        assert self.inner is not None
        deal, boards = self.abstract.cards.each[0].identity.deal, self.boards_of(label)
        sets = subsets(deal.deck.size, deal.sizes[self.later] - boards.shape[1])
        both = np.concatenate([np.repeat(boards, len(sets), axis=0), np.tile(sets, (len(boards), 1))], axis=1)
        apart = (np.diff(np.sort(both, axis=1), axis=1) > 0).all(axis=1)
        labels = np.full(len(both), -1, dtype=np.int32)
        labels[apart] = self.inner.of(both[apart].astype(np.int64)) - label * self.below
        return labels.reshape(len(boards), len(sets)), sets

    def labels_of(self, boards: IntArray) -> IntArray:
        """[deal] The class of the first level of each of some boards, [deal, card]; of later rounds, too."""
        size = self.boards.shape[1]
        choose = np.array([[comb(n, k + 1) for k in range(size)] for n in range(int(self.boards.max()) + 1)])
        place = choose[np.sort(boards[:, :size], axis=1), np.arange(size)].sum(axis=1)
        found: IntArray = self.labels[place]
        return found

    def boards_of(self, label: int) -> ByteArray:
        """[board, card] All boards of a class, as they may be dealt."""
        mine: ByteArray = self.boards[self.labels == label]
        return mine

    def owns(self, boards: IntArray, label: int, inner: int | None = None) -> BoolArray:
        """[deal] Whether boards [deal, card] of the last round are of a class, and of one inside it."""
        mine: BoolArray = self.labels_of(boards) == label
        if inner is not None:
            assert self.inner is not None
            mine &= self.inner.of(boards) == label * self.below + inner
        return mine

    @property
    def ways(self) -> int:
        """Σ |F(n,h)|: number of boards that any two private hands leave."""
        rules = self.abstract.game.rules
        return comb(rules.deck.size - 2 * rules.hole_cards, self.boards.shape[1])


def shared_classes(cards: Sequence[AbstractionSpec]) -> AbstractionSpec:
    """The cards whose classes of boards blades share: those of both players; RunError where they are not the same."""
    first, *others = cards
    if any(other.plan.public != first.plan.public for other in others):
        raise RunError("blades share out the boards of both players' cards: give both the same classes of boards")
    return first


def trunk_of(plan: Plan, deal: Deal, depth: int = 1) -> int:
    """Number of rounds before the classes of boards; RunError where a game cannot be split at them `depth` times."""
    remedy = "abstract the cards with --classes C, or solve it without blades"
    if not plan.public:
        raise RunError(f"these cards have no classes of boards to be dealt to blades: {remedy}")
    first = plan.public[0]
    trunk = first.round - 1
    if deal.sizes[trunk - 1] > 0 or deal.sizes[trunk] == 0:
        raise RunError(f"the classes of round {first.round} are not those of the first board that is dealt: {remedy}")
    for r in range(trunk, len(plan.rounds)):
        if plan.public_at(r) is None:
            raise RunError(
                f"round {r + 1} does not know the class of its board, so that blades would share it: {remedy}"
            )
    if depth > 2:
        raise RunError(f"{depth} levels of blades are asked for: runs have two at most, plans may have more")
    if depth > 1 and (len(plan.public) < 2 or plan.public[1].round != first.round + 1):
        raise RunError(
            f"blades below blades share classes of the boards of round {first.round + 1}, which has none of its own: "
            f"add them to the plan of the cards ([[public]], round = {first.round + 1})"
        )
    return trunk


def require_boards(asked: EngineConfig, plan: Plan, deal: Deal) -> None:
    """Raise RunError where a deal is to have more boards than there are, which would take for ever."""
    trunk = trunk_of(plan, deal)
    there, classes = comb(deal.deck.size - 2 * deal.hole_cards, deal.sizes[trunk]), plan.public[0].classes
    for name, number, most in (("boards", asked.boards, there), ("samples", asked.samples, -(-there // classes))):
        if number > most:
            raise RunError(
                f"`{name}` in [engine] is {number:,}; {classes} classes share {there:,} boards: give {most:,} at most"
            )


def shared_out(
    work: Sequence[float] | FloatArray, blades: int, speed: Sequence[float] | FloatArray = ()
) -> list[list[int]]:
    """[blade] Its classes, given the `work` of each and the `speed` of blades, all alike if it is left out.

    The heaviest first, each goes to the blade that will be done with it first; every blade has one at least.

    >>> shared_out([5, 1, 1, 1, 2], blades=2)
    [[0], [1, 2, 3, 4]]
    >>> shared_out([1, 1, 1, 1, 1, 1], blades=2, speed=[2, 1]), shared_out([1, 1], blades=2, speed=[9, 1])
    ([[0, 2, 3, 5], [1, 4]], [[0], [1]])
    """
    if not 1 <= blades <= len(work):
        raise RunError(f"{blades} blades are to share {len(work)} classes of boards: use 1 to {len(work)} blades")
    pace = list(speed) if len(speed) else [1.0] * blades
    mine: list[list[int]] = [[] for _ in range(blades)]
    loads = [0.0] * blades
    for label in sorted(range(len(work)), key=lambda label: -work[label]):
        blade = min(range(blades), key=lambda n: ((loads[n] + work[label]) / pace[n], len(mine[n]), n))
        mine[blade].append(label)
        loads[blade] += work[label]
    for idle in (labels for labels in mine if not labels):
        idle.append(max(mine, key=len).pop())
    return [sorted(labels) for labels in mine]


def makespan(work: FloatArray, labels: Sequence[Sequence[int]], speed: FloatArray) -> float:
    """How long the slowest blade takes for the `work` of its classes."""
    return max(float(work[mine].sum() / pace) for mine, pace in zip(labels, speed, strict=True))


def samples_for(threads: int, classes: int) -> int:
    """Number of boards that each class of a blade draws for a deal: one, or more where threads outnumber classes.

    >>> samples_for(threads=2, classes=5), samples_for(threads=16, classes=1), samples_for(threads=16, classes=7)
    (1, 16, 4)
    """
    if threads <= classes:
        return 1
    fewest = -(-threads // classes)
    # Threads take a class and a board at a time: the last of these rounds should be full too.
    idle = {samples: -classes * samples % threads / (classes * samples) for samples in range(fewest, 2 * fewest)}
    return min(idle, key=lambda samples: (idle[samples], samples))


class Level(NamedTuple):
    """The blades of one level of a tree of blades: their number, and the table of the largest."""

    blades: int
    slots: int  # of the blade that has most
    rounds: tuple[int, int]  # first round, and the one after the last

    def memory(self, words: int) -> int:
        """Bytes of a blade's table with that many 4-byte words per slot."""
        return 4 * words * self.slots


# Tartanian7 [Brown15 §5]: 60 blades with 128 GB each shared 1.8e11 infoset-actions, nearly all beyond the trunk.
TARTANIAN7 = Level(blades=60, slots=180_000_000_000 // 60, rounds=(1, 4))
TARTANIAN7_MEMORY = 128_000_000_000  # bytes of a blade


def levels(size: AbstractSize, plan: Plan, deal: Deal, blades: Sequence[int]) -> list[Level]:
    """The head and the blades of each level.

    `blades` has the number of blades under each blade of the level above. Where these are fewer than classes, classes
    are shared out as evenly as they can be.
    """
    trunk = trunk_of(plan, deal)
    starts = [trunk, *(public.round - 1 for public in plan.public[1 : len(blades)])]
    if len(blades) > len(plan.public):
        raise RunError(f"{len(blades)} levels of blades are asked for, and boards have {len(plan.public)} of classes")
    ends = [*starts[1:], len(size.slots)]
    found = [Level(1, sum(size.slots[:trunk]), (0, trunk))]
    classes, share = 1, 1.0
    for under, public, start, end in zip(blades, plan.public, starts, ends, strict=False):
        if not 1 <= under <= public.classes:
            raise RunError(f"{under} blades are to share {public.classes} classes of boards: use 1 to {public.classes}")
        classes *= public.classes
        share *= -(-public.classes // under) / public.classes
        found.append(Level(prod((found[-1].blades, under)), round(share * sum(size.slots[start:end])), (start, end)))
    return found
