"""Run distributed CFR: send deals to workers, collect answers, save checkpoints, and replace lost workers.

While the blades work on a batch, the head prepares and sends the next one, so that blades never wait for it. The
trunk's strategy in a batch is therefore one batch old. Results depend on the seed, the batch size and the number of
boards, but not on the engine or the number of blades.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.abstract_game import join_parts
from kilt.arrays import Array, FloatArray, IntArray, data_type
from kilt.engines import Answer, Engine, EngineError, Job, Worker, WorkerLost, engine_named
from kilt.solve.distributed.blades import SHARES, ClassWorker, Head, PendingBatch, class_folder, most_nodes_visited
from kilt.solve.distributed.lower import LowerWorker, MiddleWorker
from kilt.solve.distributed.memory import PartsMemory, most_deals, process_cost
from kilt.solve.distributed.partition import Partition, assign_work, head_rounds, makespan, sample_count, shared_classes
from kilt.solve.distributed.shared import Batch, BatchResult, SharedGame, StrategyPart
from kilt.solve.external import FULL, words_per_action
from kilt.solve.external_kernels import Starts

if TYPE_CHECKING:
    from kilt.solve.abstract_problem import AbstractProblem

TALKING = 0.05  # largest share of time for messages
TRIED = 64, 512  # deals of the two test batches
FEWEST = 16  # smallest number of deals of a batch
# largest number of deals of a batch per bucket of the first round: more would use an outdated trunk strategy
FRESH = 32
PAUSE = 0.02  # seconds between two steps beyond which the next batch is not timed
COUNTS = "decisions", "visits"  # counts in checkpoints; missing in those of kilt 0.1.0
BUSY = 0.9  # share of time that a blade should be busy
WORTHWHILE = 0.1  # share of a batch's time that a new assignment of classes must save,
SURE = 10.0  # seconds of a blade's work that are measured before a new assignment
R = TypeVar("R")


class BatchChoice(NamedTuple):
    """The batch size of a distributed run, with the measured times behind the choice."""

    batch: int
    latency: float  # seconds for a message and its answer, with all blades at once
    deal: float  # seconds per deal of the slowest blade

    @property
    def share(self) -> float:
        """An upper bound on the share of time that a distributed run spends on messages, from 0 to 1."""
        return self.latency / (self.latency + self.batch * self.deal)

    def __str__(self) -> str:
        return (
            f"batches of {self.batch:,} deals: a message and its answer take {self.latency * 1e3:.2f} ms, a deal "
            f"{self.deal * 1e3:.3f} ms on the slowest blade: messages take at most {self.share:.1%} of the time"
        )


@dataclass
class TimeSpent:
    """A distributed run's elapsed time and its workers' computing time, in seconds."""

    wall: float = 0.0  # elapsed time
    slowest: float = 0.0  # work of each batch's slowest blade
    mean: float = 0.0  # work, mean over blades

    @property
    def communication(self) -> float:
        """The share of time that a distributed run spends on messages and in the head process, from 0 to 1."""
        return max(0.0, 1 - self.slowest / self.wall) if self.wall else 0.0

    @property
    def idle(self) -> float:
        """The share of time that an average worker waits for the slowest one, from 0 to 1."""
        return max(0.0, 1 - self.mean / self.wall - self.communication) if self.wall else 0.0


def batch_size(latency: float, beyond: float, deal: float, most: int, fresh: int) -> int:
    """Return a batch size at which messages and fixed costs take only a small share of the time.

    `latency`, `beyond` and `deal` are seconds for a message and its answer, for the fixed cost of a batch, and for a
    deal. To save messages, a batch may have up to `most` deals; to save the fixed cost, only as many as keep the
    trunk's strategy `fresh`.

    >>> batch_size(1e-3, 1e-3, 1e-4, 1000, 1000), batch_size(1e-4, 1e-3, 1e-4, 1000, 100)
    (256, 64)
    """
    size = FEWEST
    while 2 * size <= most and latency > TALKING * (latency + size * deal):
        size *= 2
    while 2 * size <= min(most, fresh) and beyond > TALKING * (beyond + size * deal):
        size *= 2
    return size


def most_nodes_by_level(partition: Partition) -> list[int]:
    """Return an upper bound on a deal's number of visited nodes, for each level of a distributed run.

    The first number is for the head process, the others are for levels of workers with workers below them. See
    `most_nodes_visited`.
    """
    bounds = [0, *(partition.end_round(level) for level in range(partition.depth))]
    return [most_nodes_visited(partition, first, later) for first, later in pairwise(bounds)]


def batch_limits(partition: Partition) -> tuple[int, int]:
    """Return two upper limits on the batch size, one from memory and one to keep strategies recent."""
    return most_deals(max(most_nodes_by_level(partition))), FRESH * partition.abstract.buckets[0][0]


def _cost(one: BatchResult) -> FloatArray:
    """Return how many nodes a worker visited for each class of boards, divided in proportion to the time spent."""
    return one.work * (one.visits / max(float(one.work.sum()), 1e-9))


def _at(job: Job, worker: Worker) -> Job:
    """Return a job that must run on the machine of a given worker."""
    return replace(job, place=worker.place)


def require_blades(engine: Engine, held: PartsMemory, threads: int) -> None:
    """Raise EngineError if an engine lacks workers, or if machines run another version of kilt.

    It is called before any work begins.
    """
    spread = zip(held.levels[1:], held.blades, strict=True)
    engine.dismiss(
        engine.hire([Job(list, (), blade.resident, threads) for level, blade in spread for _ in range(level.blades)])
    )


def start(problem: AbstractProblem, seed: int) -> DistributedMCCFR:
    """Create the distributed solver of an abstract game with its workers."""
    asked, abstract = problem.engine, problem.abstract
    cards = tuple(folder.resolve() for folder in problem.cards)
    identity = shared_classes([each.identity for each in abstract.cards.each])
    depth = len(asked.levels)
    head_rounds(identity.plan, identity.deal, depth)
    classes = identity.plan.public[0].classes
    fewest = min(map(len, assign_work(np.ones(classes), asked.blades)))
    threads = asked.blades * problem.threads
    boards = asked.boards if asked.boards or asked.samples or threads >= classes else threads
    samples = asked.samples or sample_count(problem.threads, fewest)
    rules = abstract.actions, abstract.fingerprint, problem.options
    game = SharedGame(abstract.game, cards, *rules, seed, asked.batch, samples, boards, depth=depth)
    engine = problem.place or engine_named(asked.name, asked.address, problem.threads)
    try:
        partition = Partition.divide(abstract, cards, depth)
        return DistributedMCCFR(game, engine, asked.blades, problem.threads, problem.dtype, partition, asked.below)
    except BaseException:
        engine.close()
        raise


class DistributedMCCFR:
    """A solver that runs external-sampling CFR on several processes or machines [Brown15 §3].

    An iteration is a deal; deals are processed in batches.
    """

    def __init__(
        self,
        game: SharedGame,
        engine: Engine,
        blades: int,
        threads: int = 1,
        dtype: npt.DTypeLike = np.uint16,
        partition: Partition | None = None,
        below: Sequence[int] = (),
    ) -> None:
        self.game, self.engine, self.blades, self.threads = game, engine, blades, threads
        self.below = tuple(below)  # number of blades below each blade, for each further level
        self.partition = partition or game.open()
        self.dtype = data_type(dtype)  # integer type of probabilities
        self.chosen: BatchChoice | None = None
        self.work: FloatArray = np.ones(self.partition.classes)  # [class] visited nodes so far, weighted by time
        self.labels = assign_work(self.work, blades)  # [blade] its classes
        # [level] blades below the same blade are adjacent
        self.levels: list[list[Worker]] = [[] for _ in (blades, *below)]
        identity = self.partition.abstract.cards.each[0].identity
        self._memory = PartsMemory.estimate(
            self.partition.abstract.size,
            identity.plan,
            identity.deal,
            (blades, *below),
            words=words_per_action(game.options),
            dtype=self.dtype,
            threads=threads,
            places=most_nodes_by_level(self.partition),
            batch=game.batch,
        )
        self._saved: Path | None = None  # folder of the parts of a checkpoint at the current state
        self._hire()
        if not game.batch:
            self.chosen = self._choose()
            self.game = replace(game, batch=self.chosen.batch)
            self._begin(self.game)
        self._restart()

    # ── blades ──

    def _hire(self, *, again: bool = False) -> None:
        """Start the workers for the classes of boards in `labels`, on their current machines if `again` is set."""
        which: list[list[tuple[list[int], ...]]] = [[(mine,) for mine in self.labels]]  # [level][blade] its classes
        for number, under in zip(self.partition.inside[1:], self.below, strict=True):
            inner = assign_work(np.ones(number), under)
            which.append([(*above, some) for above in which[-1] for some in inner])
        for level in reversed(range(len(which))):  # lowest level first: blades need the ones below them
            jobs = [self._job(level, classes) for classes in which[level]]
            if again:
                jobs = [*map(_at, jobs, self.levels[level])]
            if level < len(self.below):
                under, lower = self.below[level], self.levels[level + 1]
                jobs = [
                    replace(job, arguments=(*job.arguments, lower[n * under : (n + 1) * under]))
                    for n, job in enumerate(jobs)
                ]
            self.levels[level] = self.engine.hire(jobs)
        self.seen = np.zeros((self.blades, 2))  # nodes and seconds of each blade since the last assignment of classes

    def _job(self, level: int, classes: tuple[list[int], ...]) -> Job:
        """Return the job of a worker with some classes of boards, on a level counted from 0.

        See `LowerWorker`.
        """
        part, first = self.partition.part(*(0 for _ in classes)), (ClassWorker, MiddleWorker)[bool(self.below)]
        tables = 4 * words_per_action(self.game.options) * part.slots * prod(map(len, classes))
        held = self._memory.blades[level]
        held = process_cost(tables, held.memory - dict(held.parts)["tables"].memory)
        make, own = (LowerWorker, classes) if level else (first, classes[0])
        return Job(make, (self.game, own, self.threads), held.resident, self.threads)

    @property
    def workers(self) -> list[Worker]:
        """The workers of the first level."""
        return self.levels[0]

    @property
    def _everybody(self) -> list[Worker]:
        return [worker for level in self.levels for worker in level]

    def _all(self, method: str, *arguments: object) -> list[object]:
        """Call a method of all workers, and return their answers."""
        answers = [worker.ask(method, *arguments) for worker in self._everybody]
        return [answer.get() for answer in answers]

    def _begin(self, game: SharedGame) -> None:
        self._all("begin", game.batch, game.samples, game.boards)

    def _choose(self) -> BatchChoice:
        """Choose the batch size from measurements of message latency and work.

        See `batch_size`.
        """

        def seconds(method: str, batch: Batch) -> tuple[float, list[Any]]:
            times = []
            for _ in range(8):
                began = perf_counter()
                found = [answer.get() for answer in [worker.ask(method, batch) for worker in self.workers]]
                times.append(perf_counter() - began)
            return median(times[1:]), found  # the first call may compile kernels

        work, few, many = [], *TRIED
        for deals in TRIED:
            game = replace(self.game, batch=deals)
            self._begin(game)
            batch = Head(game, self.partition).descend(0).batch
            taken, found = seconds("work", batch)
            work.append(taken)
        self.work = sum(map(_cost, found), np.zeros(self.partition.classes))
        latency, _ = seconds("ping", batch)
        deal = max(work[1] - work[0], 1e-9) / (many - few)
        beyond = max(work[0] - few * deal, latency)  # fixed cost of a batch
        return BatchChoice(batch_size(latency, beyond, deal, *batch_limits(self.partition)), latency, deal)

    # ── iterations ──

    def _restart(self) -> None:
        """Reset the head process and all counts to the state before the first deal."""
        self.iterations = self.decisions = self.visits = 0
        self._saved = None
        self.head = Head(self.game, self.partition)
        self.times, self.busy = TimeSpent(), np.zeros(len(self.workers))
        self._sent: PendingBatch | None = None
        self._answers: list[Answer] = []
        self._sums: IntArray | None = None
        self._since, self._paused = perf_counter(), True

    def step(self, iterations: int) -> None:
        """Run CFR on at least `iterations` more deals, in whole batches."""
        end = self.iterations + iterations
        if self._saved is not None:
            self._share_out(self._saved)
            self._saved = None
        self._paused = perf_counter() - self._since > PAUSE
        while self.iterations < end:
            if self._sent is None:
                self._sent = self.head.descend(self.iterations // self.game.batch)
                self._answers = self._send(self._sent.batch)
            coming = self.head.descend(self._sent.batch.number + 1)
            following = self._send(coming.batch)
            self.head.ascend(self._sent, self._collected())
            self._sent, self._answers, self._sums = coming, following, None
            self.iterations += self.game.batch

    def _send(self, batch: Batch) -> list[Answer]:
        return [worker.ask("work", batch) for worker in self.workers]

    def _collected(self) -> IntArray:
        """Wait for the workers' answers to the current batch, and return the sum of values for each starting node."""
        assert self._sent is not None
        if self._sums is None:
            found: list[BatchResult] = [answer.get() for answer in self._answers]
            now, seconds = perf_counter(), np.array([one.seconds for one in found])
            if not self._paused:  # otherwise the elapsed time includes a pause of the caller
                self.times.wall += now - self._since
                self.times.slowest += seconds.max()
                self.times.mean += seconds.mean()
                self.busy += seconds
            self._since, self._paused = now, False
            for one in found:
                self.decisions, self.visits = self.decisions + one.decisions, self.visits + one.visits
                self.work = self.work + _cost(one)
            self.seen += [(one.visits, one.seconds) for one in found]
            self._sums = sum((one.sums for one in found), np.zeros(len(self._sent.batch.starts.node), dtype=np.int64))
        return self._sums

    def _wait(self) -> None:
        """Wait until all workers have finished the current batch."""
        if self._sent is not None:
            self._collected()

    # ── strategies ──

    def average(self) -> Array:
        """Return the average strategy as one array, or the current strategy if no average is stored.

        Information sets without counts use the current strategy.
        """
        return self._strategy(counted=True)

    def current(self) -> Array:
        """Return the current strategy as one array, computed by regret matching."""
        return self._strategy(counted=False)

    def _strategy(self, *, counted: bool) -> Array:
        """Return the strategy of the head and all workers in one table, which must fit into memory."""
        self._wait()
        found = [(self.partition.head, self.head.regrets.integer_strategy(self.dtype, counted=counted))]
        for answer in [worker.ask("integer_strategies", self.dtype, counted) for worker in self._everybody]:
            found += [(self.partition.part(*path), np.array(mine)) for path, mine in answer.get()]
        shares = np.zeros(self.partition.abstract.slots, dtype=self.dtype)
        join_parts(found, self.partition.abstract, shares)
        return shares

    def map_parts(self, work: Callable[[StrategyPart], R]) -> list[R]:
        """Apply a function to each part of the average strategy, on the worker that stores it.

        `work` is the function; it is pickled. Returns the results.
        """
        self._wait()
        trunk = self.head.regrets.integer_strategy(self.dtype)
        answers = [worker.ask("map_average", work, trunk) for worker in self.workers]
        return [found for answer in answers for found in answer.get()]

    def write_average(self, shares: Array, folder: Path) -> None:
        """Write the average strategy of a distributed run to an array, which may be larger than memory.

        Blades first write their parts to `folder`. The slots of different parts are interleaved in the table; it is
        assembled from these files in a single pass, rather than one pass per part.
        """
        self._wait()
        shutil.rmtree(folder, ignore_errors=True)  # remove remains of a process that was killed in this function
        self._all("write", folder, self.dtype)
        parts = [(self.partition.head, self.head.regrets.integer_strategy(self.dtype))]
        for path in self.partition.paths:
            found = artifact.read(class_folder(folder, *path), SHARES, private=True)
            parts.append((self.partition.part(*path), found.arrays["shares"]))
        join_parts(parts, self.partition.abstract, shares)
        shutil.rmtree(folder)

    # ── checkpoints ──

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the head process's state for a checkpoint; workers save their own tables.

        See `save_parts`.
        """
        kept = {name: np.asarray(getattr(self.game, name)) for name in ("batch", "samples", "boards")}
        kept |= {"iterations": np.asarray(self.iterations), "table": self.head.regrets.table, "work": self.work}
        if self._sent is not None:
            sent, sums = self._sent, self._collected()
            kept |= {"begin": sent.begin, "place": sent.place, "queue": sent.queue, "sums": sums}
            kept |= {f"starts_{name}": array for name, array in sent.batch.starts._asdict().items()}
        return kept | {name: np.asarray(getattr(self, name)) for name in COUNTS}  # including the current batch

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore the head process's state from a checkpoint, after the workers' tables."""
        found = {name: np.array(array) for name, array in state.items()}
        batch, samples, boards = (int(found[name]) for name in ("batch", "samples", "boards"))
        if (batch, samples, boards) != (self.game.batch, self.game.samples, self.game.boards):
            self.game = replace(self.game, batch=batch, samples=samples, boards=boards)
            self._begin(self.game)
        self._restart()
        self.iterations, self.work = int(found["iterations"]), found["work"]
        self.head.regrets.table[:] = found["table"]
        self.head.regrets.halve(FULL)  # for tables of a release in which counts could overflow
        if "sums" in found:
            starts = Starts(*(found[f"starts_{name}"] for name in Starts._fields))
            sent = Batch(self.iterations // self.game.batch, starts)
            self._sent = PendingBatch(sent, found["begin"], found["place"], found["queue"])
            self._sums = found["sums"]
        for name in COUNTS:
            setattr(self, name, int(found.get(name, 0)))

    def save_parts(self, folder: Path) -> None:
        """Have all workers save their tables as part of a checkpoint.

        The next call of `step` may assign classes of boards to other workers, which read these tables.
        """
        self._wait()
        self._all("save", folder)
        self._saved = folder

    def _share_out(self, folder: Path) -> None:
        """Assign classes to workers again by work and speed, if some workers have much more to do than others.

        Tables are read from a folder.
        """
        visits, seconds = self.seen.T
        if seconds.max() < SURE or not visits.all():
            return
        speed, before = visits / seconds, self.labels
        better = assign_work(self.work, self.blades, speed)
        if makespan(self.work, better, speed) < (1 - WORTHWHILE) * makespan(self.work, before, speed):
            self.engine.dismiss(self._everybody)
            try:
                self.labels = better
                self._hire(again=True)
            except WorkerLost:
                raise
            except EngineError:  # no fast machine has room for its classes
                self.engine.dismiss(self._everybody)
                self.labels = before
                self._hire(again=True)
            self.restore_parts(folder)

    def restore_parts(self, folder: Path) -> None:
        """Have all workers load their tables from a checkpoint."""
        self._all("restore", folder)

    def reset_after_loss(self) -> None:
        """Replace all workers after the loss of one, and reset all tables."""
        self.engine.dismiss(self._everybody)
        self.labels = assign_work(self.work, self.blades)
        self._hire()
        self._restart()

    def how_busy(self) -> list[tuple[str, float]]:
        """Return the machine of each worker, and the share of time that the worker was busy."""
        shares = np.minimum(self.busy / self.times.wall, 1) if self.times.wall else np.ones(self.blades)
        return [(worker.where, float(share)) for worker, share in zip(self.workers, shares, strict=True)]

    def describe(self) -> str:
        """Describe the run's workers, classes of boards and batch size in one or two lines."""
        numbers = ", ".join(str(len(labels)) for labels in self.labels)
        said = f"{self.blades} blades ({self.engine.name}) with {numbers} classes of boards"
        for under, classes in zip(self.below, self.partition.inside[1:], strict=True):
            said += f", {under} below each with {classes} classes of the next board inside these"
        game = self.game
        each = f"{game.boards} for each deal" if game.boards else f"{game.samples} of each class for each deal"
        return f"{said}, {each}; {self.chosen or f'batches of {self.game.batch:,} deals'}"

    def describe_load(self) -> str:
        """Describe in one line how much the workers computed and waited."""
        said = f"messages and the head took {self.times.communication:.1%} of the time, waiting {self.times.idle:.1%}"
        idle = [f"blade {n + 1} was idle {1 - busy:.0%}" for n, (_, busy) in enumerate(self.how_busy()) if busy < BUSY]
        return "; ".join([said, *idle])

    @property
    def size(self) -> int:
        """The total size of all tables in bytes."""
        whole: int = self.partition.abstract.slots * 4 * self.head.regrets.words
        return whole

    def close(self) -> None:
        """Shut down the engine, which ends all workers."""
        self.engine.close()
