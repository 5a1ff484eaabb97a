"""Simulate a run on a larger cluster from costs measured on this machine.

The model, in words:

- Classes of boards are assigned to workers as `assign_work` does it. On a worker, jobs (a class and a sample of boards)
  start one after another on the next free core. The time of a class is drawn at random from the measured batches, with
  the same draws for all classes: deals that are long for one class are long for the others.
- The head traverses the first rounds of the next batch while the workers work on the current one, as in
  `DistributedMCCFR.step`. A worker begins with a batch when the batch has arrived and the previous one is done; the
  head continues when it has all answers.
- Each message takes the latency, to all workers at once. With a bandwidth, the head's line carries the messages of all
  workers one after another.
- If workers share the cores of one machine, all of them get an equal share while they work, and the time that the head
  needs is taken from all.
- A worker with workers below it traverses its own rounds, sends messages, waits for the answers and continues: nothing
  overlaps there.

The model ignores machines that are slower than this one, the time to pack messages, discounts and checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.config import EngineConfig
from kilt.errors import RunError
from kilt.jit import cores as available
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.distributed.costs import USED_QUANTILE, BladeCosts, measure_costs
from kilt.solve.distributed.partition import assign_work, sample_count
from kilt.solve.distributed.shared import SharedGame
from kilt.solve.distributed.solver import TRIED, BatchChoice, DistributedMCCFR, TimeSpent, batch_size, start

SLICES = 12  # measurements of a real run
BATCHES = 200  # simulated batches
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def blades_of(text: str) -> tuple[int, ...]:
    """Parse the numbers of workers on each level, such as ``4x3`` for 4 workers with 3 below each.

    >>> blades_of("60"), blades_of("4x3x2")
    ((60,), (4, 3, 2))
    """
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})*", text.strip()):
        raise RunError(f"{text!r} is no number of blades: give one such as 60, or 4x3 for 3 more under each of 4")
    return tuple(map(int, text.split("x")))


def latency_of(text: str) -> float:
    """Parse a network latency such as ``1ms``, and return it in seconds.

    >>> latency_of("2s"), latency_of("500ms")
    (2.0, 0.5)
    """
    found = re.fullmatch(rf"(\d+\.?\d*|\.\d+)\s*({'|'.join(UNITS)})", text.strip())
    if not found:
        raise RunError(f"{text!r} is no latency: give a number with its unit, such as 1us, 0.5ms or 2s")
    return float(found[1]) * UNITS[found[2]]


class ClusterForecast(NamedTuple):
    """The simulated speed of a distributed run on a cluster, with the workers' computing and waiting times."""

    blades: tuple[int, ...]  # number of workers on the first level, then below each
    samples: int  # boards per class and deal
    chosen: BatchChoice  # size of batches
    iteration_seconds: float  # seconds for a deal
    communication_share: float  # of the time: see `TimeSpent`
    idle_share: float  # of the time: see `TimeSpent`
    visits_per_second: float  # nodes per second of all workers


def forecast(
    costs: BladeCosts,
    blades: Sequence[int],
    cores: int = 1,
    latency: float = 0.0,
    *,
    machine_cores: int = 0,
    bandwidth: float = inf,
    batch: int = 0,
    samples: int = 0,
) -> ClusterForecast:
    """Simulate a distributed run on a cluster, and return its speed.

    Parameters
    ----------
    costs : BladeCosts
        Measured costs of a batch on one core.
    blades : sequence of int
        Number of workers on the first level, then below each worker on each further level.
    cores : int
        Number of cores of each worker.
    latency : float
        Seconds that a message takes.
    machine_cores : int
        Number of cores that all workers and the head share; 0: each has its own cores.
    bandwidth : float
        Bandwidth of the head's network line, in bytes per second.
    batch, samples : int
        As in a configuration; 0: chosen automatically.

    Returns
    -------
    ClusterForecast
        Seconds per deal, shares of the time, nodes per second.
    """
    first, *below = blades
    fewest = min(below, default=1)
    for what, value in (("cores of a blade", cores), ("bytes per second", bandwidth), ("blades under each", fewest)):
        if value <= 0:
            raise RunError(f"the number of {what} is {value:g}: use 1 or more")
    for what, value in (("a latency in seconds", latency), ("the number of cores of the machine", machine_cores)):
        if not 0 <= value < inf:
            raise RunError(f"{what} is {value:g}: give 0 or more")
    if len(below) > len(costs.inside):
        raise RunError(
            f"{len(blades)} levels of blades need as many levels of classes; boards have {1 + len(costs.inside)}"
        )
    for under, classes in zip(below, costs.inside, strict=False):
        if under > classes:
            raise RunError(f"{under} blades cannot share {classes} classes of boards: use 1 to {classes}")
    labels = assign_work(costs.work.mean(axis=0), first)
    samples = samples or sample_count(cores, min(map(len, labels)))
    cluster = _Cluster(costs, labels, tuple(blades), cores, latency, machine_cores, samples)
    chosen = cluster.chosen(batch)
    deals = chosen.batch
    looks = max(1, round(deals / TRIED[0]))
    drawn = np.random.default_rng(0).multinomial(looks, [1 / len(costs.work)] * len(costs.work), size=BATCHES)
    slowest, busy = cluster.seconds(drawn / looks @ costs.work, deals)
    times = _simulated(cluster, slowest, busy, deals, bandwidth)
    each = times.wall / (BATCHES - 1) / deals
    walked = costs.visits * sum(share * times for share, times, _ in cluster.levels)
    shares = times.communication, times.idle
    return ClusterForecast(tuple(blades), samples, chosen, each, *shares, samples * walked / each)


def curve(
    costs: BladeCosts, blades: Sequence[int], cores: int = 1, latency: float = 0.0, **more: Any
) -> list[ClusterForecast]:
    """Simulate a distributed run with 1, 2, 4 and more workers, and return each speed.

    The numbers of workers on the first level go up to `blades[0]`.

    Each of them has `blades[1:]` workers below it; `more` are arguments of `forecast`.
    """
    return [forecast(costs, (n, *blades[1:]), cores, latency, **more) for n in powers_of_two(blades[0])]


def powers_of_two(last: int) -> Iterator[int]:
    """Yield the powers of two below a number, and then the number itself.

    >>> list(powers_of_two(10))
    [1, 2, 4, 8, 10]
    """
    n = 1
    while n < last:
        yield n
        n *= 2
    yield last


@dataclass(frozen=True)
class _Cluster:
    """A simulated cluster, which tells how long each worker takes for a batch."""

    costs: BladeCosts
    labels: list[list[int]]  # classes of each first-level worker
    blades: tuple[int, ...]
    cores: int
    latency: float
    machine_cores: int
    samples: int

    @property
    def levels(self) -> list[tuple[float, int, int]]:
        """Return how the work on one class of boards is shared among the levels of workers.

        For each level: its share of the work, the number of repetitions on all workers, and the most repetitions on one
        worker.
        """
        below = self.blades[1:]
        bounds, often = [0.0, *self.costs.before[: len(below)], 1.0], np.cumprod([1, *self.costs.inside[: len(below)]])
        most = np.cumprod([1, *(-(-n // under) for n, under in zip(self.costs.inside, below, strict=False))])
        shares = np.diff(bounds).tolist()
        return list(zip(shares, often.tolist(), most.tolist(), strict=True))

    def seconds(self, work: FloatArray, deals: int) -> tuple[FloatArray, FloatArray]:
        """Return each first-level worker's seconds for simulated batches of deals.

        The second result is the time in seconds that workers of the last level compute.

        `work` holds the seconds of a deal for each measured batch and class; both results have a row for each batch.

        The busy seconds are the mean over the workers of the last level: those above wait for them.
        """
        answer, busy = np.zeros((len(work), len(self.labels))), np.zeros(0)
        for level, (share, times, own) in enumerate(self.levels):
            busy = self._busy(work * share, deals, own)
            answer += busy + (2 * self.latency if level else 0.0)
            busy = busy * (times / np.prod(self.blades[1 : level + 1]) / own)
        return answer, busy

    def _busy(self, work: FloatArray, deals: int, times: int) -> FloatArray:
        """Return the seconds until each worker has finished its classes, each of which it repeats `times` times.

        The result has the shape (batches, workers).
        """
        loads = np.zeros((len(work), len(self.labels), self.cores))  # [batch, blade, core]
        rows = np.arange(len(work))
        for blade, labels in enumerate(self.labels):
            for label in labels * (self.samples * times):
                free = loads[:, blade].argmin(axis=1)
                loads[rows, blade, free] += self.costs.fixed + deals * work[:, label]
        if self.machine_cores:
            jobs = loads.reshape(len(work), -1)
            least = (jobs.sum(axis=1) + self.costs.down.at(deals) + self.costs.up.at(deals)) / self.machine_cores
            jobs = finish_times(jobs, self.machine_cores)
            jobs = jobs * np.maximum(least / jobs.max(axis=1), 1.0)[:, None]  # the head needs cores too
            loads = jobs.reshape(loads.shape)
        done: FloatArray = loads.max(axis=2)
        return done

    def chosen(self, batch: int) -> BatchChoice:
        """Return the batch size that `DistributedMCCFR` would choose on this cluster."""
        work = self.costs.work.mean(axis=0)[None]
        few, many = (2 * self.latency + float(self.seconds(work, deals)[0].max()) for deals in TRIED)
        deal = max(many - few, 1e-12) / (TRIED[1] - TRIED[0])
        beyond = max(few - TRIED[0] * deal, 0.0)
        latency = 2 * self.latency
        return BatchChoice(batch or batch_size(latency, beyond, deal, self.costs.most, self.costs.fresh), latency, deal)


def finish_times(work: FloatArray, cores: int) -> FloatArray:
    """Return the finish time of each job if all start together and share `cores` equally.

    A job uses at most one core. `work` and the result have the shape (batches, jobs), in seconds.

    >>> finish_times(np.array([[1.0, 1.0, 2.0, 2.0]]), cores=2).tolist()
    [[2.0, 2.0, 3.0, 3.0]]
    """
    order = work.argsort(axis=1)
    more = np.diff(np.take_along_axis(work, order, axis=1), axis=1, prepend=0.0)
    left = np.arange(work.shape[1], 0, -1)
    done = np.empty_like(work)
    np.put_along_axis(done, order, np.cumsum(more * np.maximum(left / cores, 1.0), axis=1), axis=1)
    return done


def _simulated(cluster: _Cluster, slowest: FloatArray, busy: FloatArray, deals: int, bandwidth: float) -> TimeSpent:
    """Simulate the batches of a run one after another, as in `DistributedMCCFR.step`.

    Times count from the first answers on.
    """
    costs, latency, blades = cluster.costs, cluster.latency, slowest.shape[1]
    out, back = (blades * deals * size / bandwidth for size in (costs.request_bytes, costs.answer_bytes))
    down, up = costs.down.at(deals), costs.up.at(deals)
    now, line, free, times = 0.0, 0.0, np.zeros(blades), TimeSpent()
    done: list[FloatArray] = []  # for each batch, when each worker is done
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


class ForecastCheck(NamedTuple):
    """A forecast of the speed on this machine, with the measured speed of a real run."""

    foretold: ClusterForecast
    visits_per_second: float  # measured in the real run, like all fields below
    communication_share: float
    idle_share: float


def check(problem: AbstractProblem, blades: Sequence[int] = (1, 2, 4, 8), seconds: float = 3.0) -> list[ForecastCheck]:
    """Compare forecasts with real runs on this machine, for several numbers of workers.

    The runs use the engine `local`.

    Costs are measured just before each run, because the machine's load changes from minute to minute. Neither
    discounts regrets, which happens often in a short run.
    """
    found, cores, abstract = list[ForecastCheck](), available(), problem.abstract
    game = SharedGame(
        abstract.game, problem.cards, abstract.actions, abstract.fingerprint, problem.options, 0, TRIED[1]
    )
    for n in blades:
        costs = measure_costs(game, min(n * problem.threads, cores), seconds)
        asked = replace(
            problem, engine=EngineConfig("local", n, samples=1), options=replace(problem.options, linear=False)
        )
        solver = start(asked, 0)
        try:
            _pace(solver, seconds / 3)  # as long as measurements take to start
            solver.times = TimeSpent()
            paces = [_pace(solver, seconds / SLICES) for _ in range(SLICES)]
            said = {"batch": solver.game.batch, "samples": solver.game.samples, "machine_cores": cores}
            foretold = forecast(costs, (n,), problem.threads, **said)
            times = solver.times
            found.append(
                ForecastCheck(foretold, float(np.quantile(paces, 1 - USED_QUANTILE)), times.communication, times.idle)
            )
        finally:
            solver.close()
    return found


def _pace(solver: DistributedMCCFR, seconds: float) -> float:
    """Run a solver for some seconds, and return the nodes per second."""
    began, before = perf_counter(), solver.visits
    while (spent := perf_counter() - began) < seconds:
        solver.step(1)
    return (solver.visits - before) / spent
