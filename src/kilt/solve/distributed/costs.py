"""Measure the steps of distributed MCCFR on this machine, in order to simulate larger clusters.

The sizes of messages are measured too.

The functions run real batches of two sizes with a head and some workers in this process. The two sizes separate the
fixed time of a batch from the time of each deal, for the head and for each class of boards.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction, load_abstractions
from kilt.abstraction.pipeline import bucket_numbers
from kilt.abstraction.rounds import RoundBuckets
from kilt.arrays import FloatArray, IntArray
from kilt.cards.deck import subsets
from kilt.cost import Cost
from kilt.errors import RunError
from kilt.games.holdem import Holdem
from kilt.solve.distributed.blades import ClassWorker, Head
from kilt.solve.distributed.memory import MOST
from kilt.solve.distributed.partition import Partition, head_rounds
from kilt.solve.distributed.shared import SharedGame
from kilt.solve.distributed.solver import TRIED, batch_limits
from kilt.solve.external import PROBED, SamplingOptions
from kilt.tree.betting import BettingTree

MIN_BATCHES = 6  # minimum number of batches of each size that are measured
USED_QUANTILE = 0.25  # the quantile of measured times that is used: other programs slow down the rest
DISTURBANCE_FACTOR = 1.5  # a measurement that takes this many times longer was disturbed by other programs


class LinearCost(NamedTuple):
    """The time of a step of distributed MCCFR in seconds: a fixed part plus a part per deal."""

    fixed: float
    deal: float

    @classmethod
    def through(cls, few: float, many: float) -> LinearCost:
        """Estimate a step's fixed time and time per deal from a small and a large batch.

        Both times are in seconds.

        The batches have `TRIED[0]` and `TRIED[1]` deals.
        """
        deal = max(many - few, 0.0) / (TRIED[1] - TRIED[0])
        return cls(max(few - TRIED[0] * deal, 0.0), deal)

    def at(self, deals: int) -> float:
        """Return the seconds of the step for a batch of `deals` deals."""
        return self.fixed + deals * self.deal


@dataclass(frozen=True)
class BladeCosts:
    """The measured times and message sizes of distributed MCCFR on this machine."""

    work: FloatArray  # seconds of one core for a deal: (measured batches, classes)
    fixed: float  # fixed seconds of a batch in each class
    down: LinearCost  # cost of the head's first pass
    up: LinearCost  # cost of the head's second pass
    visits: float  # nodes visited per deal, in all classes
    request_bytes: float = 0.0  # bytes sent to each worker per deal
    answer_bytes: float = 0.0  # bytes that each worker sends back per deal
    most: int = MOST  # largest batch for which the head has memory
    fresh: int = MOST  # largest batch with which the strategy of the first rounds stays up to date
    inside: tuple[int, ...] = ()  # number of classes of later boards inside each class, by level
    before: tuple[float, ...] = ()  # share of a class's work in rounds before each level
    synthetic: bool = False  # whether buckets are synthetic, because the cards are not built yet

    @property
    def classes(self) -> int:
        """Return the number of classes of boards that first-level workers divide among themselves."""
        return int(self.work.shape[1])


def shared_game(
    game: Holdem, menu: ActionAbstraction | None, cards: Sequence[Path | AbstractionSpec], options: SamplingOptions
) -> SharedGame:
    """Divide an abstract game into parts for workers.

    Card abstractions that are not built yet get synthetic buckets.
    """
    folders = tuple(one for one in cards if isinstance(one, Path))
    unbuilt = [one for one in cards if not isinstance(one, Path)]
    if unbuilt:
        if len(cards) > 1:
            raise RunError("what blades cost is measured without cards where both players have the same: build them")
        return _UnbuiltGame(game, (), menu, "", options, 0, TRIED[1], identity=unbuilt[0])
    abstract = AbstractGame(game, load_abstractions(folders), menu)
    return SharedGame(game, folders, menu, abstract.fingerprint, options, 0, TRIED[1])


def measure_costs(game: SharedGame, together: int = 1, seconds: float = 3.0) -> BladeCosts:
    """Measure the times and message sizes of distributed MCCFR for a game on this machine.

    Parameters
    ----------
    game : SharedGame
        See `shared_game`.
    together : int
        Number of workers that run at once: cores that share memory and caches are slower than a single one.
    seconds : float
        Minimum duration of the measurement. The first third does not count.

    Returns
    -------
    BladeCosts
        The measured costs. Raises RunError if the classes that are measured together do not fit into memory.
    """
    game = replace(game, batch=TRIED[1], samples=1, options=replace(game.options, linear=False))
    partition = game.open()
    slots, classes = partition.part(0).slots, partition.classes
    together = min(together, classes)
    walked = min(classes, max(together, PROBED // max(slots, 1)))  # the other classes are assumed to cost the same
    what = f"measuring {walked} classes of boards together"
    Cost(8 * slots * walked, what=what, remedy="use fewer buckets or bets").require()
    head, children = Head(game, partition), [ClassWorker(game, range(k, walked, together)) for k in range(together)]
    looks: dict[int, list[_BatchSample]] = {deals: [] for deals in TRIED}
    number, began = 0, perf_counter()
    with ThreadPoolExecutor(together) as pool:
        while (spent := perf_counter() - began) < seconds or min(map(len, looks.values())) < MIN_BATCHES:
            for deals, seen in looks.items():
                head.game = replace(game, batch=deals)
                for child in children:
                    child.game = head.game
                look = _sample(head, children, number, pool, classes / walked)
                if spent >= seconds / 3:
                    seen.append(look)
                number += 1
    taken = {deals: _undisturbed(np.array([look.work for look in seen])) for deals, seen in looks.items()}
    each = LinearCost.through(*(float(work.mean()) for work in taken.values()))
    work = np.maximum(taken[TRIED[0]] - each.fixed, 0.0) / TRIED[0]

    def through(name: str) -> LinearCost:
        taken = ([getattr(look, name) for look in seen] for seen in looks.values())
        return LinearCost.through(*(float(np.quantile(one, USED_QUANTILE)) for one in taken))

    many = looks[TRIED[1]]
    starts = float(np.mean([look.starts for look in many])) / TRIED[1]
    plan = game.identity.plan if isinstance(game, _UnbuiltGame) else partition.abstract.cards.each[0].identity.plan
    return BladeCosts(
        work=work[:, np.arange(classes) % walked],
        fixed=each.fixed,
        down=through("down"),
        up=through("up"),
        visits=float(np.mean([look.visits for look in many])) / TRIED[1] * classes / walked,
        request_bytes=8 + 5 * starts,
        answer_bytes=8 * starts,
        **dict(zip(("most", "fresh"), batch_limits(partition), strict=True)),
        inside=tuple(public.classes for public in plan.public[1:]),
        before=tuple(share_before(partition, public.round - 1) for public in plan.public[1:]),
        synthetic=isinstance(game, _UnbuiltGame),
    )


class _BatchSample(NamedTuple):
    """The measured times of one batch."""

    work: FloatArray  # seconds per class, including a share of the worker's other work
    down: float  # seconds of the head's first pass
    up: float  # seconds of the head's second pass
    visits: float  # nodes visited in all classes
    starts: float  # number of traversals that left the first rounds


def _sample(
    head: Head, children: list[ClassWorker], number: int, pool: ThreadPoolExecutor, share: float
) -> _BatchSample:
    times = [perf_counter()]
    sent = head.descend(number)
    times.append(perf_counter())
    found = list(pool.map(lambda child: child.work(sent.batch), children))
    sums = (sum(one.sums for one in found) * share).astype(np.int64)
    times.append(perf_counter())
    head.ascend(sent, sums)
    times.append(perf_counter())
    work = np.zeros(sum(len(child.own) for child in children))
    for k, one in enumerate(found):
        mine = len(children[k].own)
        work[k :: len(children)] = one.work[k : len(work) : len(children)] + (one.seconds - one.work.sum()) / mine
    visits = sum(one.visits for one in found)
    return _BatchSample(work, times[1] - times[0], times[3] - times[2], visits, len(sent.batch.starts.node))


def _undisturbed(seconds: FloatArray) -> FloatArray:
    """Replace outliers among measured seconds by a typical value for their class. Shape: (batches, classes)."""
    typical = np.quantile(seconds, USED_QUANTILE, axis=0)
    return np.where(seconds > DISTURBANCE_FACTOR * typical, typical, seconds)


def share_before(partition: Partition, later: int) -> float:
    """Return the share of the workers' node visits before a given betting round, from 0 to 1.

    The share is from 0 to 1. `later` is the number of the given round.

    Opponents are assumed to play uniformly at random.
    """
    nodes, seen = partition.abstract.betting.nodes, visited(partition.abstract.betting)
    beyond = seen[nodes.round >= partition.trunk].sum()
    return float(seen[(nodes.round >= partition.trunk) & (nodes.round < later)].sum() / max(beyond, 1e-300))


def visited(betting: BettingTree) -> FloatArray:
    """Return the mean number of visits to each betting node per deal.

    Opponents are assumed to play uniformly at random.

    A deal is traversed twice, once for each player.
    """
    nodes = betting.nodes
    walks = np.zeros((len(nodes.actor), 2))
    walks[0] = 1
    for node in np.flatnonzero(nodes.children > 0).tolist():  # parents come before their children
        first, n, actor = int(nodes.first_child[node]), int(nodes.children[node]), int(nodes.actor[node])
        walks[first : first + n] = walks[node]
        if actor >= 0:
            walks[first : first + n, 1 - actor] /= n
    total: FloatArray = walks.sum(axis=1)
    return total


@dataclass(frozen=True)
class _UnbuiltGame(SharedGame):
    """A game with synthetic buckets in place of an abstraction that is not built yet.

    All classes have the same number of boards.
    """

    identity: AbstractionSpec = field(kw_only=True)

    def open(self) -> Partition:
        """Return the game divided into parts for workers.

        The parts get fewer buckets if they would be too large to measure on this machine.
        """
        plan, deal = self.identity.plan, self.identity.deal
        trunk, first = head_rounds(plan, deal), replace(plan.public[0], until=0)
        numbers = list(bucket_numbers(plan, deal))

        def made(numbers: Sequence[int]) -> Partition:
            rounds = tuple(_SyntheticRound(n, first.classes if r >= trunk else 1) for r, n in enumerate(numbers))
            identity = replace(self.identity, plan=replace(plan, public=(first,)))
            cards = CardAbstraction(identity, cast(tuple[RoundBuckets, ...], rounds))
            boards = subsets(deal.deck.size, deal.board_sizes[trunk])
            labels = np.arange(len(boards)) % first.classes
            return Partition(AbstractGame(self.game, cards, self.actions), trunk, first.classes, labels, boards)

        found = made(numbers)
        share = min(1.0, PROBED / found.part(0).slots)
        if share < 1:
            for r in range(trunk, len(numbers)):
                numbers[r] = first.classes * max(1, int(share * numbers[r] / first.classes))
            found = made(numbers)
        return found


class _SyntheticRound:
    """Arbitrary buckets for one round, in place of an abstraction that is not built yet."""

    def __init__(self, buckets: int, classes: int) -> None:
        self.buckets, self.own = buckets, buckets // classes

    def look_up(
        self, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32], known: int | None = None
    ) -> None:
        """Assign made-up buckets to hands, in place of a real card abstraction.

        The bucket belongs to the given class of boards.
        """
        mixed = hands * 7919 + (boards * np.arange(3, boards.shape[1] + 3)).sum(axis=1)[:, None] * 104729
        buckets[:] = mixed % self.own + (known or 0) * self.own
