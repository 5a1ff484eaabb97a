"""Larger clusters than there are here: how long a batch would take on them, from what its parts cost here.

Costs are measured by doing the work: a head and some blades of this process go through batches of two sizes, which
tells what a batch costs whatever its size and what each deal adds, on the head and in a class of boards.

The model, in words:

- Classes are dealt out to blades as `shared_out` does it. On a blade, items of work, a class and a sample of boards
  each, go one after another to whichever core is free. What a class takes for a batch is put together from measured
  batches, drawn at random and the same for all classes: so deals that are long for one are long for the others.
- The head walks down over the next batch while the blades work on this one, as in `Distributed.step`. A blade begins
  with a batch when it is there and the one before is done; the head goes on when all answers are there.
- Each message takes the latency, to all blades at once. With a bandwidth, the head's own line carries the messages of
  all blades one after another.
- Where blades share the cores of one machine, all of them get an equal share while they work, and what the head needs
  is taken from all.
- Where blades have blades below them, each walks over its own rounds, sends, waits and goes on: nothing overlaps there.

What it leaves out: machines that are slower than this one, the time to pack messages, discounts and checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from kilt import machine
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction, RoundBuckets
from kilt.abstraction.pipeline import bucket_numbers
from kilt.arrays import FloatArray, IntArray
from kilt.cards.deck import subsets
from kilt.config import EngineConfig
from kilt.errors import RunError
from kilt.games.holdem import Holdem
from kilt.jit import cores as available
from kilt.solve.distributed.blades import Child, Head, SharedGame
from kilt.solve.distributed.partition import Partition, one_for_both, samples_for, shared_out, trunk_of
from kilt.solve.distributed.solver import MOST, TRIED, Chosen, Distributed, Times, batch_size, limits, start
from kilt.solve.external import PROBED, SamplingOptions
from kilt.tree.betting import BettingTree

if TYPE_CHECKING:
    from kilt.solve.abstract_problem import AbstractProblem

LOOKS = 6  # batches of each size that are measured, at least
BETTER = 0.25  # of what is measured: other programs slow down the rest
DISTURBED = 1.5  # times as long as that
SLICES = 12  # of a real run
BATCHES = 200  # that are simulated
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def blades_of(text: str) -> tuple[int, ...]:
    """How many blades there are, and under each of them.

    >>> blades_of("60"), blades_of("4x3")
    ((60,), (4, 3))
    """
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})*", text.strip()):
        raise RunError(f"{text!r} is no number of blades: give one such as 60, or 4x3 for 3 more under each of 4")
    return tuple(map(int, text.split("x")))


def latency_of(text: str) -> float:
    """Seconds.

    >>> latency_of("2s"), latency_of("500ms")
    (2.0, 0.5)
    """
    found = re.fullmatch(rf"(\d+\.?\d*|\.\d+)\s*({'|'.join(UNITS)})", text.strip())
    if not found:
        raise RunError(f"{text!r} is no latency: give a number with its unit, such as 1us, 0.5ms or 2s")
    return float(found[1]) * UNITS[found[2]]


# ── costs ──


class Line(NamedTuple):
    """Seconds that something takes for a batch: some for the batch, and some for each of its deals."""

    fixed: float
    deal: float

    @classmethod
    def through(cls, few: float, many: float) -> Line:
        """From the seconds of batches of both sizes in `TRIED`."""
        deal = max(many - few, 0.0) / (TRIED[1] - TRIED[0])
        return cls(max(few - TRIED[0] * deal, 0.0), deal)

    def at(self, deals: int) -> float:
        """Of a batch of so many deals."""
        return self.fixed + deals * self.deal


@dataclass(frozen=True)
class Costs:
    """What the parts of a batch cost here."""

    work: FloatArray  # [measured batch, class] seconds that a class takes for a deal, on one core,
    fixed: float  # and for a batch, whatever its deals
    down: Line  # the head's first pass
    up: Line  # and its second
    visits: float  # nodes of all classes that a deal comes to
    told: float = 0.0  # bytes to each blade for a deal
    answered: float = 0.0  # bytes back
    most: int = MOST  # deals of a batch that the head has room for
    fresh: int = MOST  # deals of a batch that keep the trunk's strategy fresh
    below: int = 1  # classes of later boards, inside each class
    trunk: float = 1.0  # share of a class's work that comes before those
    made_up: bool = False  # whether buckets were made up, because there are no cards yet

    @property
    def classes(self) -> int:
        """Of boards, on the first level."""
        return int(self.work.shape[1])


def shared_game(
    game: Holdem, menu: ActionAbstraction | None, cards: Path | AbstractionSpec, options: SamplingOptions
) -> SharedGame:
    """A game in parts, with the card abstraction of a folder; with synthetic buckets where it is not built yet."""
    if not isinstance(cards, Path):
        return _Sketch(game, Path(), menu, "", options, 0, TRIED[1], identity=cards)
    abstract = AbstractGame(game, CardAbstraction.load(cards), menu)
    return SharedGame(game, cards, menu, abstract.fingerprint, options, 0, TRIED[1])


def measured(game: SharedGame, together: int = 1, seconds: float = 3.0) -> Costs:
    """What a game costs here, from some seconds of work; the first third of the time is not counted.

    So many blades work at once: cores that share memory and caches are slower than one alone.
    """
    game = replace(game, batch=TRIED[1], samples=1, options=replace(game.options, linear=False))
    partition = game.open()
    slots, classes = partition.part(0).slots, partition.classes
    together = min(together, classes)
    walked = min(classes, max(together, PROBED // max(slots, 1)))  # the others will cost as much as these
    if 8 * slots * walked > machine.available_memory():
        raise RunError(
            f"{walked} classes of boards take {8 * slots * walked / 1e9:.1f} GB of memory, more than there is, and are "
            "measured together: use fewer buckets or bets"
        )
    head, children = Head(game, partition), [Child(game, range(k, walked, together)) for k in range(together)]
    looks: dict[int, list[_Look]] = {deals: [] for deals in TRIED}
    number, began = 0, perf_counter()
    with ThreadPoolExecutor(together) as pool:
        while (spent := perf_counter() - began) < seconds or min(map(len, looks.values())) < LOOKS:
            for deals, seen in looks.items():
                head.game = replace(game, batch=deals)
                for child in children:
                    child.game = head.game
                look = _look(head, children, number, pool, classes / walked)
                if spent >= seconds / 3:
                    seen.append(look)
                number += 1
    taken = {deals: _undisturbed(np.array([look.work for look in seen])) for deals, seen in looks.items()}
    each = Line.through(*(float(work.mean()) for work in taken.values()))
    work = np.maximum(taken[TRIED[0]] - each.fixed, 0.0) / TRIED[0]

    def through(name: str) -> Line:
        taken = ([getattr(look, name) for look in seen] for seen in looks.values())
        return Line.through(*(float(np.quantile(one, BETTER)) for one in taken))

    many = looks[TRIED[1]]
    starts = float(np.mean([look.starts for look in many])) / TRIED[1]
    plan = game.identity.plan if isinstance(game, _Sketch) else partition.abstract.cards.each[0].identity.plan
    below, trunk = 1, 1.0
    if len(plan.public) > 1:
        below, trunk = plan.public[1].classes, share_before(partition, plan.public[1].round - 1)
    return Costs(
        work=work[:, np.arange(classes) % walked],
        fixed=each.fixed,
        down=through("down"),
        up=through("up"),
        visits=float(np.mean([look.visits for look in many])) / TRIED[1] * classes / walked,
        told=8 + 5 * starts,
        answered=8 * starts,
        **dict(zip(("most", "fresh"), limits(partition), strict=True)),
        below=below,
        trunk=trunk,
        made_up=isinstance(game, _Sketch),
    )


class _Look(NamedTuple):
    """What was seen of a batch."""

    work: FloatArray  # [class] seconds, with a part of what the blade does beside
    down: float
    up: float
    visits: float
    starts: float


def _look(head: Head, children: list[Child], number: int, pool: ThreadPoolExecutor, share: float) -> _Look:
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
    return _Look(work, times[1] - times[0], times[3] - times[2], visits, len(sent.batch.starts.node))


def _undisturbed(seconds: FloatArray) -> FloatArray:
    """[batch, class] the same, but for those that took far longer than usual: something else had the core."""
    typical = np.quantile(seconds, BETTER, axis=0)
    return np.where(seconds > DISTURBED * typical, typical, seconds)


def share_before(partition: Partition, later: int) -> float:
    """Of what walks come to beyond the trunk, the share in rounds before a later one, when opponents mix evenly."""
    nodes, seen = partition.abstract.betting.nodes, visited(partition.abstract.betting)
    beyond = seen[nodes.round >= partition.trunk].sum()
    return float(seen[(nodes.round >= partition.trunk) & (nodes.round < later)].sum() / max(beyond, 1e-300))


def visited(betting: BettingTree) -> FloatArray:
    """[node] how often a deal's two walks come there, when opponents take all actions alike."""
    nodes = betting.nodes
    walks = np.zeros((len(nodes.actor), 2))
    walks[0] = 1
    for node in np.flatnonzero(nodes.children > 0).tolist():  # what follows a node comes after it
        first, n, actor = int(nodes.first_child[node]), int(nodes.children[node]), int(nodes.actor[node])
        walks[first : first + n] = walks[node]
        if actor >= 0:
            walks[first : first + n, 1 - actor] /= n
    total: FloatArray = walks.sum(axis=1)
    return total


@dataclass(frozen=True)
class _Sketch(SharedGame):
    """A game whose cards are not abstracted yet: classes have as many boards each, and buckets mean nothing."""

    identity: AbstractionSpec = field(kw_only=True)

    def open(self) -> Partition:
        """The same parts, with fewer buckets where a class would be too large to be walked here."""
        plan, deal = self.identity.plan, self.identity.deal
        trunk, first = trunk_of(plan, deal), replace(plan.public[0], until=0)
        numbers = list(bucket_numbers(plan, deal))

        def made(numbers: Sequence[int]) -> Partition:
            rounds = tuple(_MadeUpRound(n, first.classes if r >= trunk else 1) for r, n in enumerate(numbers))
            identity = replace(self.identity, plan=replace(plan, public=(first,)))
            cards = CardAbstraction(identity, cast(tuple[RoundBuckets, ...], rounds))
            boards = subsets(deal.deck.size, deal.sizes[trunk])
            labels = np.arange(len(boards)) % first.classes
            return Partition(AbstractGame(self.game, cards, self.actions), trunk, first.classes, labels, boards)

        found = made(numbers)
        share = min(1.0, PROBED / found.part(0).slots)
        if share < 1:
            for r in range(trunk, len(numbers)):
                numbers[r] = first.classes * max(1, int(share * numbers[r] / first.classes))
            found = made(numbers)
        return found


class _MadeUpRound:
    """Buckets of a round that mean nothing."""

    def __init__(self, buckets: int, classes: int) -> None:
        self.buckets, self.own = buckets, buckets // classes

    def look_up(
        self, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32], known: int | None = None
    ) -> None:
        """Write some bucket for each hand, of the class that is known."""
        mixed = hands * 7919 + (boards * np.arange(3, boards.shape[1] + 3)).sum(axis=1)[:, None] * 104729
        buckets[:] = mixed % self.own + (known or 0) * self.own


# ── the model ──


class Outcome(NamedTuple):
    """What a run would be like on some blades."""

    blades: tuple[int, ...]
    samples: int
    chosen: Chosen
    iteration_seconds: float  # of a deal
    communication_share: float  # see `Times`
    idle_share: float
    visits_per_second: float


def predicted(
    costs: Costs,
    blades: Sequence[int],
    cores: int = 1,
    latency: float = 0.0,
    *,
    machine_cores: int = 0,
    bandwidth: float = inf,
    batch: int = 0,
    samples: int = 0,
) -> Outcome:
    """How a run would go on so many blades of so many cores.

    A message takes `latency` seconds, and `bandwidth` is in bytes per second. `machine_cores` are those that all blades
    and the head share; 0: each has its own. `batch` and `samples` are as in a configuration: 0 chooses them.
    """
    first, under = blades[0], blades[1] if len(blades) > 1 else 1
    for what, value in (("cores of a blade", cores), ("bytes per second", bandwidth), ("blades under each", under)):
        if value <= 0:
            raise RunError(f"{value:g} {what} are asked for: give 1 or more")
    for what, value in (("a latency in seconds", latency), ("the number of cores of the machine", machine_cores)):
        if not 0 <= value < inf:
            raise RunError(f"{what} is {value:g}: give 0 or more")
    if len(blades) > 1 + (costs.below > 1):
        raise RunError(
            f"{len(blades)} levels of blades are asked for, and boards have {1 + (costs.below > 1)} of classes"
        )
    if under > costs.below:
        raise RunError(f"{under} blades are to share {costs.below} classes of boards: use 1 to {costs.below}")
    labels = shared_out(costs.work.mean(axis=0), first)
    samples = samples or samples_for(cores, min(map(len, labels)))
    cluster = _Cluster(costs, labels, tuple(blades), cores, latency, machine_cores, samples)
    chosen = cluster.chosen(batch)
    deals = chosen.batch
    looks = max(1, round(deals / TRIED[0]))
    drawn = np.random.default_rng(0).multinomial(looks, [1 / len(costs.work)] * len(costs.work), size=BATCHES)
    slowest, busy = cluster.seconds(drawn / looks @ costs.work, deals)
    times = _through(cluster, slowest, busy, deals, bandwidth)
    each = times.wall / (BATCHES - 1) / deals
    walked = costs.visits * (costs.trunk + (1 - costs.trunk) * costs.below if len(blades) > 1 else 1)
    shares = times.communication, times.idle
    return Outcome(tuple(blades), samples, chosen, each, *shares, samples * walked / each)


def curve(costs: Costs, blades: Sequence[int], cores: int = 1, latency: float = 0.0, **more: Any) -> list[Outcome]:
    """The same on 1, 2, 4 and so on blades, up to as many as are given; under each of them, as many as are given."""
    return [predicted(costs, (n, *blades[1:]), cores, latency, **more) for n in doubled(blades[0])]


def doubled(last: int) -> Iterator[int]:
    """Powers of two, and the last number.

    >>> list(doubled(10))
    [1, 2, 4, 8, 10]
    """
    n = 1
    while n < last:
        yield n
        n *= 2
    yield last


@dataclass(frozen=True)
class _Cluster:
    """Blades, and how long each of them takes for a batch."""

    costs: Costs
    labels: list[list[int]]  # [blade of the first level] its classes
    blades: tuple[int, ...]
    cores: int
    latency: float
    machine_cores: int
    samples: int

    def seconds(self, work: FloatArray, deals: int) -> tuple[FloatArray, FloatArray]:
        """From [batch, class] seconds of a deal: [batch, blade] seconds until it answers, and those of work below."""
        costs, below = self.costs, -(-self.costs.below // self.blades[1]) if len(self.blades) > 1 else 1
        deeper = len(self.blades) > 1
        own = self._busy(work * (costs.trunk if deeper else 1.0), deals, 1)
        if not deeper:
            return own, own
        under = self._busy(work * (1 - costs.trunk), deals, below)
        return own + 2 * self.latency + under, under * (costs.below / self.blades[1] / below)

    def _busy(self, work: FloatArray, deals: int, times: int) -> FloatArray:
        """[batch, blade] when each is done with its classes, each of them so many times over."""
        loads = np.zeros((len(work), len(self.labels), self.cores))  # [batch, blade, core]
        rows = np.arange(len(work))
        for blade, labels in enumerate(self.labels):
            for label in labels * (self.samples * times):
                free = loads[:, blade].argmin(axis=1)
                loads[rows, blade, free] += self.costs.fixed + deals * work[:, label]
        if self.machine_cores:
            jobs = loads.reshape(len(work), -1)
            least = (jobs.sum(axis=1) + self.costs.down.at(deals) + self.costs.up.at(deals)) / self.machine_cores
            jobs = shared_by(jobs, self.machine_cores)
            jobs = jobs * np.maximum(least / jobs.max(axis=1), 1.0)[:, None]  # the head needs cores too
            loads = jobs.reshape(loads.shape)
        done: FloatArray = loads.max(axis=2)
        return done

    def chosen(self, batch: int) -> Chosen:
        """The size of batches, by the rule of `Distributed`: what it would see of two sizes."""
        work = self.costs.work.mean(axis=0)[None]
        few, many = (2 * self.latency + float(self.seconds(work, deals)[0].max()) for deals in TRIED)
        deal = max(many - few, 1e-12) / (TRIED[1] - TRIED[0])
        beyond = max(few - TRIED[0] * deal, 0.0)
        latency = 2 * self.latency
        return Chosen(batch or batch_size(latency, beyond, deal, self.costs.most, self.costs.fresh), latency, deal)


def shared_by(work: FloatArray, cores: int) -> FloatArray:
    """[batch, job] when jobs are done that begin together and get equal shares of some cores, one each at most.

    >>> shared_by(np.array([[1.0, 1.0, 2.0, 2.0]]), cores=2).tolist()
    [[2.0, 2.0, 3.0, 3.0]]
    """
    order = work.argsort(axis=1)
    more = np.diff(np.take_along_axis(work, order, axis=1), axis=1, prepend=0.0)
    left = np.arange(work.shape[1], 0, -1)
    done = np.empty_like(work)
    np.put_along_axis(done, order, np.cumsum(more * np.maximum(left / cores, 1.0), axis=1), axis=1)
    return done


def _through(cluster: _Cluster, slowest: FloatArray, busy: FloatArray, deals: int, bandwidth: float) -> Times:
    """Batch after batch, as in `Distributed.step`: from the first answers on."""
    costs, latency, blades = cluster.costs, cluster.latency, slowest.shape[1]
    out, back = (blades * deals * size / bandwidth for size in (costs.told, costs.answered))
    down, up = costs.down.at(deals), costs.up.at(deals)
    now, line, free, times = 0.0, 0.0, np.zeros(blades), Times()
    done: list[FloatArray] = []  # [batch] when each blade is done with it
    since = 0.0
    for number in range(len(slowest) + 1):
        now += down
        if number < len(slowest):
            line = max(line, now) + out
            free = np.maximum(free, line + latency) + slowest[number]
            done.append(free)
        if number > 0:
            now = max(now, float(done[number - 1].max()) + latency + back)
            if number > 1:
                times.wall += now - since
                times.slowest += float(slowest[number - 1].max())
                times.mean += float(busy[number - 1].mean())
            since = now
            now += up
    return times


# ── against real runs ──


class Checked(NamedTuple):
    """What was foretold for a number of blades on this machine, and what was seen."""

    foretold: Outcome
    visits_per_second: float
    communication_share: float
    idle_share: float


def check(problem: AbstractProblem, blades: Sequence[int] = (1, 2, 4, 8), seconds: float = 3.0) -> list[Checked]:
    """Run the engine `local` on so many blades of this machine, each for some seconds, beside what is foretold.

    Costs are measured just before each run: what else the machine does changes from minute to minute. Nothing is
    discounted in either, which in a short run happens often.
    """
    found, cores, abstract = list[Checked](), available(), problem.abstract
    cards = one_for_both(problem.cards)
    game = SharedGame(abstract.game, cards, abstract.actions, abstract.fingerprint, problem.options, 0, TRIED[1])
    for n in blades:
        costs = measured(game, min(n * problem.threads, cores), seconds)
        asked = replace(
            problem, engine=EngineConfig("local", n, samples=1), options=replace(problem.options, linear=False)
        )
        solver = start(asked, 0)
        try:
            _pace(solver, seconds / 3)  # as long as measurements take to get going
            solver.times = Times()
            paces = [_pace(solver, seconds / SLICES) for _ in range(SLICES)]
            said = {"batch": solver.game.batch, "samples": solver.game.samples, "machine_cores": cores}
            foretold = predicted(costs, (n,), problem.threads, **said)
            times = solver.times
            found.append(Checked(foretold, float(np.quantile(paces, 1 - BETTER)), times.communication, times.idle))
        finally:
            solver.close()
    return found


def _pace(solver: Distributed, seconds: float) -> float:
    """Go on for some seconds: nodes per second."""
    began, before = perf_counter(), solver.visits
    while (spent := perf_counter() - began) < seconds:
        solver.step(1)
    return (solver.visits - before) / spent
