"""Divide an abstract game among the processes of a distributed run.

The head process gets the first rounds, and workers get classes of similar boards. See [Brown15 §§2.1, 3]. The *trunk*
consists of the rounds before the first board. From then on, players know the class of their board, and no information
set belongs to two classes: a class with all its rounds can be on another machine. A blade may have several classes.

Further levels repeat this [Brown15 §6]: if boards of a later round have separate classes, a blade keeps the rounds up
to that one, and the classes belong to blades below it; and so on, up to the last round. The head is level 0, and the
classes of the first board are level 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product
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

LOOKED_AT = 50  # boards that are checked when a game is partitioned
AT_ONCE = 1 << 18  # boards whose classes are looked up in one batch


@dataclass(frozen=True)
class Partition:
    """An abstract game divided for a distributed run: its first rounds, and a part per class of boards.

    With several levels, the part of a class ends before the next board: later rounds belong to classes of that board. A
    class is identified by its *path*: for each level, its number inside the class of the level above.
    """

    abstract: AbstractGame
    trunk: int  # number of rounds of the head
    classes: int
    labels: IntArray  # [board] the class of each board; boards in all suits
    boards: ByteArray  # [board, card]
    inner: tuple[BoardClasses, ...] = ()  # classes of the next boards, from level 2 on
    _firsts: dict[tuple[bool, ...], IntArray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def divide(cls, abstract: AbstractGame, cards: Sequence[Path], depth: int = 1) -> Partition:
        """Divide an abstract game into its first rounds and a part for each class of similar boards.

        `depth` is the number of levels of classes, and `cards` are the folders of the card abstractions.
        """
        identity = shared_classes([each.identity for each in abstract.cards.each])
        trunk = head_rounds(identity.plan, identity.deal, depth)
        public = identity.plan.public[0]
        boards = subsets(identity.deal.deck.size, identity.deal.board_sizes[trunk])
        inner = tuple(load_classes(cards[0], identity, later) for later in identity.plan.public[1:depth])
        labels, *others = (
            load_classes(folder, each.identity, public).look_up(boards.astype(np.int64)).astype(np.int64)
            for folder, each in zip(cards, abstract.cards.each, strict=False)
        )
        if any(not np.array_equal(labels, other) for other in others):
            raise RunError(
                "the card abstractions of the two players have different classes of boards, so blades cannot share "
                "them: build the classes once, and give both plans their folder as `boards`"
            )
        found = cls(abstract, trunk, public.classes, labels, boards, inner)
        found._check()
        return found

    @property
    def depth(self) -> int:
        """The number of levels of workers."""
        return 1 + len(self.inner)

    @property
    def inside(self) -> list[int]:
        """The number of classes that a class of boards contains on the next level, for each level.

        The first number is for the whole game.
        """
        numbers = [1, self.classes, *(classes.number for classes in self.inner)]
        return [number // above for above, number in pairwise(numbers)]

    def end_round(self, level: int) -> int:
        """Return the index of the first round after those that a level of workers plays."""
        return self.trunk + level if level < self.depth else self._rounds

    def number(self, *path: int) -> int:
        """Return the index of a class of boards within its level."""
        found = 0
        for number, place in zip(self.inside, path, strict=False):
            found = found * number + place
        return found

    def _check(self) -> None:
        """Raise RunError if hands on boards of one class have buckets of another class.

        Checks a sample of the boards.
        """
        rng, deal = np.random.default_rng(0), self.abstract.cards.each[0].identity.deal
        some = rng.integers(len(self.boards), size=LOOKED_AT)
        for board, label in zip(self.boards[some].tolist(), self.labels[some].tolist(), strict=True):
            rest = rng.permutation([card for card in range(deal.deck.size) if card not in board]).tolist()
            hand, cards = rest[: deal.hole_cards], [*board, *rest[deal.hole_cards :]]
            known = [(self.classes, label)]  # [level − 1] number of classes, and the class
            known += [(inner.number, int(inner.look_up(np.array([cards]))[0])) for inner in self.inner]
            for cards_of, r in product(self.abstract.cards.each, range(self.trunk, len(deal.board_sizes))):
                bucket = cards_of.bucket(hand, cards[: deal.board_sizes[r]])
                classes, wanted = known[min(r - self.trunk, self.depth - 1)]
                if bucket * classes // cards_of.numbers[r] != wanted:
                    raise RunError(
                        f"bucket {bucket} of round {r + 1} has boards of several classes: build the cards again"
                    )

    @cached_property
    def real(self) -> Partition:
        """The divided game with its original payoffs, for evaluating strategies learnt with modified ones.

        Payoffs while solving may be modified by a tilt.
        """
        game = self.abstract.game
        return replace(self, abstract=replace(self.abstract, game=game.real)) if game.real is not game else self

    @property
    def head(self) -> AbstractPart:
        """The head process's part of the game, which is its first rounds."""
        return self.part()

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """The paths that identify all classes of boards, with one number per level of workers."""
        numbers = [range(number) for number in self.inside]
        return [path for level in range(self.depth) for path in product(*numbers[: level + 1])]

    def part(self, *path: int) -> AbstractPart:
        """Return the part of the game for one class of boards or, without a class, the first rounds.

        It is a range of buckets in each round of the level.
        """
        return self._part(path, range(len(path), len(path) + 1))

    def playable_part(self, *path: int) -> AbstractPart:
        """Return the part of the game that can be played on boards of a given class.

        It lasts from the first round to the end of the class's level.
        """
        return self._part(path, range(len(path) + 1))

    def _part(self, path: tuple[int, ...], there: range) -> AbstractPart:
        """Return the part of the game for a class of boards and the classes before it, on the levels `there`."""
        level = np.array([max(0, min(r - self.trunk + 1, self.depth)) for r in range(self._rounds)])
        classes = np.cumprod([1, *self.inside])
        place = [self.number(*path[:n]) if n <= len(path) else 0 for n in range(self.depth + 1)]
        mine = np.array([n in there for n in range(self.depth + 1)])
        own = np.array(self.abstract.buckets) // classes[level] * mine[level]
        first, second, *offset = (tuple(each) for each in [*own.tolist(), *(own * np.array(place)[level]).tolist()])
        plan = self.abstract.cards.each[0].identity.plan
        known = [
            place[n] if n and plan.public_at(r) == plan.public[n - 1] else None for r, n in enumerate(level.tolist())
        ]
        found = AbstractPart(self.abstract, (offset[0], offset[1]), (first, second), known)
        # classes have the same number of buckets: slot numbers are valid for all
        if (key := tuple(mine.tolist())) in self._firsts:
            vars(found)["first"] = self._firsts[key]
        else:
            self._firsts[key] = found.first
        return found

    @property
    def _rounds(self) -> int:
        return len(self.abstract.buckets[0])

    def next_boards(self, label: int, level: int = 2) -> tuple[Labels, ByteArray]:
        """Return the classes of all boards that can follow the boards of one class.

        Also returns the sets of cards that lead to these boards. The shapes are (boards, sets) and (sets, cards).
        [board, set] is the number, on a level, of the class of the board with each set of cards; −1 if a card occurs
        twice. Boards are those of the level above: all boards of class `label` of the first level, each with every set
        of cards that may follow on the levels in between, with those of the last level adjacent.
        """
        deal, boards = self.abstract.cards.each[0].identity.deal, self.boards_of(label)
        sizes = deal.board_sizes[self.trunk : self.trunk + level]
        following = np.zeros((1, 0), dtype=np.int8)  # [set of all later cards, card]
        for before, after in pairwise(sizes):
            sets = subsets(deal.deck.size, after - before)
            following = np.column_stack([np.repeat(following, len(sets), axis=0), np.tile(sets, (len(following), 1))])
        labels = np.full((len(boards), len(following)), -1, dtype=np.int32)
        some = max(1, AT_ONCE // len(following))
        for first in range(0, len(boards), some):
            mine = boards[first : first + some]
            both = np.column_stack([np.repeat(mine, len(following), axis=0), np.tile(following, (len(mine), 1))])
            apart = (np.diff(np.sort(both, axis=1), axis=1) > 0).all(axis=1)
            found = np.full(len(both), -1, dtype=np.int32)
            found[apart] = self.inner[level - 2].look_up(both[apart].astype(np.int64))
            labels[first : first + some] = found.reshape(len(mine), -1)
        return labels.reshape(-1, len(sets)), sets

    def labels_of(self, boards: IntArray) -> IntArray:
        """Return the class of each board.

        The boards may be of a later round than the classes: only the cards of the first board count. `boards` has the
        shape (deals, cards).
        """
        size = self.boards.shape[1]
        choose = np.array([[comb(n, k + 1) for k in range(size)] for n in range(int(self.boards.max()) + 1)])
        place = choose[np.sort(boards[:, :size], axis=1), np.arange(size)].sum(axis=1)
        found: IntArray = self.labels[place]
        return found

    def boards_of(self, label: int) -> ByteArray:
        """Return all boards of a class, one per row.

        Boards that differ only in suits have separate rows.
        """
        mine: ByteArray = self.boards[self.labels == label]
        return mine

    def owns(self, boards: IntArray, *path: int) -> BoolArray:
        """Return which complete boards belong to a given class of boards."""
        found = self.labels_of(boards) if len(path) == 1 else self.inner[len(path) - 2].look_up(boards)
        mine: BoolArray = found == self.number(*path)
        return mine

    @property
    def ways(self) -> int:
        """The number of boards in the workers' first round, given both private hands.

        This is Σ |F(n,h)|.
        """
        return self.next_ways(1)

    def next_ways(self, level: int) -> int:
        """Return the number of sets of cards that the first round of a level of workers can deal.

        This is Σ |F(n,h)| on level 1, and Σ |G(m,f,h)| on level 2.
        """
        rules, there = self.abstract.game.rules, self.trunk + level - 1
        before = rules.board_size(there - 1)
        return comb(rules.deck.size - 2 * rules.hole_cards - before, rules.board_size(there) - before)


def shared_classes(cards: Sequence[AbstractionSpec]) -> AbstractionSpec:
    """Return the card abstraction that defines both players' classes of boards.

    Raises RunError if the players have different classes.
    """
    first, *others = cards
    if any(other.plan.public != first.plan.public for other in others):
        raise RunError("blades divide the boards of both players: their card abstractions need the same classes")
    return first


def head_rounds(plan: Plan, deal: Deal, depth: int = 1) -> int:
    """Return the number of rounds before the first board, which the head process of a distributed run solves.

    Raises RunError if the card abstraction has no classes of boards, or fewer than `depth` levels of them.
    """
    remedy = "use cards such as 'IR-KE-KO 169-70-70-70 in 60 classes', or solve without blades"
    if not plan.public:
        raise RunError(f"this card abstraction has no classes of boards to divide among blades: {remedy}")
    first = plan.public[0]
    trunk = first.round - 1
    if deal.board_sizes[trunk - 1] > 0 or deal.board_sizes[trunk] == 0:
        raise RunError(f"the classes of round {first.round} do not belong to the first board: {remedy}")
    for r in range(trunk, len(plan.rounds)):
        if plan.public_at(r) is None:
            raise RunError(
                f"round {r + 1} does not depend on the class of its board, so blades would share it: {remedy}"
            )
    for later in range(first.round + 1, first.round + depth):
        if all(public.round != later for public in plan.public):
            there = later <= len(plan.rounds)
            remedy = f"add them to the plan of the cards ([[public]], round = {later})" if there else "use fewer levels"
            raise RunError(
                f"a second level of blades needs classes of the boards of round {later}, which has none: {remedy}"
            )
    return trunk


def require_boards(asked: EngineConfig, plan: Plan, deal: Deal) -> None:
    """Raise RunError if a configuration samples more boards per deal than exist."""
    trunk = head_rounds(plan, deal)
    there, classes = comb(deal.deck.size - 2 * deal.hole_cards, deal.board_sizes[trunk]), plan.public[0].classes
    for name, number, most in (("boards", asked.boards, there), ("samples", asked.samples, -(-there // classes))):
        if number > most:
            raise RunError(
                f"`{name}` in [engine] is {number:,}; {classes} classes share {there:,} boards: use at most {most:,}"
            )


def assign_work(
    work: Sequence[float] | FloatArray, blades: int, speed: Sequence[float] | FloatArray = ()
) -> list[list[int]]:
    """Assign work, such as classes of boards, so that all workers finish at about the same time.

    `work` is given for each class, and `speed` for each worker (default: equal). Returns the classes of each worker. In
    order of decreasing work, each class goes to the blade that will finish it first; every blade gets at least one.

    >>> assign_work([5, 1, 1, 1, 2], blades=2)
    [[0], [1, 2, 3, 4]]
    >>> assign_work([1, 1, 1, 1, 1, 1], blades=2, speed=[2, 1]), assign_work([1, 1], blades=2, speed=[9, 1])
    ([[0, 2, 3, 5], [1, 4]], [[0], [1]])
    """
    if not 1 <= blades <= len(work):
        raise RunError(f"{blades} blades cannot share {len(work)} classes of boards: use 1 to {len(work)} blades")
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
    """Return the time of the slowest worker for its classes of boards."""
    return max(float(work[mine].sum() / pace) for mine, pace in zip(labels, speed, strict=True))


def sample_count(threads: int, classes: int) -> int:
    """Return how many boards of a class to sample per deal, in order to keep all threads busy.

    >>> [sample_count(threads, classes) for threads, classes in ((2, 5), (16, 1), (16, 7))]
    [1, 16, 4]
    """
    if threads <= classes:
        return 1
    fewest = -(-threads // classes)
    # Each thread takes one class and board at a time: the last of these rounds should be full too.
    idle = {samples: -classes * samples % threads / (classes * samples) for samples in range(fewest, 2 * fewest)}
    return min(idle, key=lambda samples: (idle[samples], samples))


class Level(NamedTuple):
    """The size of one level of a distributed run: its number of workers, and a worker's largest table."""

    blades: int
    slots: int  # slots of the largest blade
    rounds: tuple[int, int]  # first round, and the one after the last

    def memory(self, words: int) -> int:
        """Return the size of a worker's table in bytes.

        It has `words` 4-byte words per action of an information set.
        """
        return 4 * words * self.slots


# Tartanian7 [Brown15 §5]: 60 blades with 128 GB each had 1.8e11 infoset-actions, nearly all beyond the trunk.
TARTANIAN7 = Level(blades=60, slots=180_000_000_000 // 60, rounds=(1, 4))
TARTANIAN7_MEMORY = 128_000_000_000  # bytes per blade


def levels(size: AbstractSize, plan: Plan, deal: Deal, blades: Sequence[int]) -> list[Level]:
    """Return the size of each level of a distributed run, starting with the head process.

    `blades` lists the number of blades under each blade of the level above. If there are more classes than blades,
    classes are divided as evenly as possible.
    """
    trunk = head_rounds(plan, deal)
    starts = [trunk, *(public.round - 1 for public in plan.public[1 : len(blades)])]
    if len(blades) > len(plan.public):
        raise RunError(f"{len(blades)} levels of blades need as many levels of classes; boards have {len(plan.public)}")
    ends = [*starts[1:], len(size.slots)]
    found = [Level(1, sum(size.slots[:trunk]), (0, trunk))]
    classes, share = 1, 1.0
    for under, public, start, end in zip(blades, plan.public, starts, ends, strict=False):
        if not 1 <= under <= public.classes:
            raise RunError(f"{under} blades cannot share {public.classes} classes of boards: use 1 to {public.classes}")
        classes *= public.classes
        share *= -(-public.classes // under) / public.classes
        found.append(Level(prod((found[-1].blades, under)), round(share * sum(size.slots[start:end])), (start, end)))
    return found
