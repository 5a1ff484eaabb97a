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
from math import comb, prod
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame, AbstractPart, AbstractSize
from kilt.abstraction.buckets import load_classes
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import Plan
from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.cards.deck import subsets
from kilt.config import EngineConfig
from kilt.errors import RunError

T = TypeVar("T")
LOOKED_AT = 50  # boards, when a game is taken apart


@dataclass(frozen=True)
class Partition:
    """An abstract game in parts: the trunk, and what belongs to each class of boards."""

    abstract: AbstractGame
    trunk: int  # rounds that the head has
    classes: int
    labels: IntArray  # [board] the class of each board, all of them as they may be dealt
    boards: ByteArray  # [board, card]
    _firsts: dict[tuple[bool, bool], IntArray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, abstract: AbstractGame, cards: Path) -> Partition:
        """Split an abstract game by the first classes of boards of its card abstraction, which is in folder `cards`."""
        identity = one_for_both(abstract.cards.each).identity
        trunk = trunk_of(identity.plan, identity.deal)
        public = identity.plan.public[0]
        size = identity.deal.sizes[trunk]
        boards = subsets(identity.deal.deck.size, size)
        labels = load_classes(cards, identity, public).of(boards.astype(np.int64)).astype(np.int64)
        found = cls(abstract, trunk, public.classes, labels, boards)
        found._check()
        return found

    def _check(self) -> None:
        """Raise RunError where hands on boards of a class have buckets of another: look at some of them."""
        cards_of, rng = self.abstract.cards.each[0], np.random.default_rng(0)
        deal = cards_of.identity.deal
        some = rng.integers(len(self.boards), size=LOOKED_AT)
        for board, label in zip(self.boards[some].tolist(), self.labels[some].tolist(), strict=True):
            rest = rng.permutation([card for card in range(deal.deck.size) if card not in board]).tolist()
            hand, cards = rest[: deal.hole_cards], [*board, *rest[deal.hole_cards :]]
            for r in range(self.trunk, len(deal.sizes)):
                bucket = cards_of.bucket(hand, cards[: deal.sizes[r]])
                if bucket * self.classes // cards_of.numbers[r] != label:
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
        return self._part(0, trunk=True, beyond=False)

    def part(self, label: int) -> AbstractPart:
        """The part of a class: in each round beyond the trunk, a range of buckets."""
        return self._part(label, trunk=False, beyond=True)

    def played(self, label: int) -> AbstractPart:
        """All that is played on boards of a class: the trunk, and the part of the class."""
        return self._part(label, trunk=True, beyond=True)

    def _part(self, label: int, *, trunk: bool, beyond: bool) -> AbstractPart:
        buckets = self.abstract.buckets
        own = [[n if r < self.trunk else n // self.classes for r, n in enumerate(each)] for each in buckets]
        there = [trunk if r < self.trunk else beyond for r in range(len(own[0]))]
        first, second = (tuple(n * here for n, here in zip(each, there, strict=True)) for each in own)
        offset = [tuple(n * label * (r >= self.trunk) for r, n in enumerate(each)) for each in (first, second)]
        plan = self.abstract.cards.each[0].identity.plan
        known = [label if plan.public_at(r) == plan.public[0] else None for r in range(len(first))]
        found = AbstractPart(self.abstract, (offset[0], offset[1]), (first, second), known)
        if (trunk, beyond) in self._firsts:  # classes have as many buckets: what a slot's number is goes for all
            vars(found)["first"] = self._firsts[trunk, beyond]
        else:
            self._firsts[trunk, beyond] = found.first
        return found

    def labels_of(self, boards: IntArray) -> IntArray:
        """[deal] The class of each of some boards, [deal, card]; of later rounds, too."""
        size = self.boards.shape[1]
        choose = np.array([[comb(n, k + 1) for k in range(size)] for n in range(int(self.boards.max()) + 1)])
        place = choose[np.sort(boards[:, :size], axis=1), np.arange(size)].sum(axis=1)
        found: IntArray = self.labels[place]
        return found

    def boards_of(self, label: int) -> ByteArray:
        """[board, card] All boards of a class, as they may be dealt."""
        mine: ByteArray = self.boards[self.labels == label]
        return mine

    @property
    def ways(self) -> int:
        """Σ |F(n,h)|: number of boards that any two private hands leave."""
        rules = self.abstract.game.rules
        return comb(rules.deck.size - 2 * rules.hole_cards, self.boards.shape[1])


def one_for_both(cards: Sequence[T]) -> T:
    """The cards of both players; RunError where each has their own, so that they share no classes of boards."""
    if any(one is not cards[0] for one in cards):
        raise RunError("blades share out the boards of one card abstraction: give both players the same `cards`")
    return cards[0]


def trunk_of(plan: Plan, deal: Deal) -> int:
    """Number of rounds before the classes of boards; RunError where a game cannot be split at them."""
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


def shared_out(work: Sequence[float] | FloatArray, blades: int) -> list[list[int]]:
    """[blade] Its classes, given the `work` of each: the heaviest first, each goes to the blade with least work so far.

    >>> shared_out([5, 1, 1, 1, 2], blades=2)
    [[0], [1, 2, 3, 4]]
    """
    if not 1 <= blades <= len(work):
        raise RunError(f"{blades} blades are to share {len(work)} classes of boards: use 1 to {len(work)} blades")
    mine: list[list[int]] = [[] for _ in range(blades)]
    loads = [0.0] * blades
    for label in sorted(range(len(work)), key=lambda label: -work[label]):
        blade = min(range(blades), key=lambda blade: (loads[blade], len(mine[blade]), blade))
        mine[blade].append(label)
        loads[blade] += work[label]
    return [sorted(labels) for labels in mine]


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
