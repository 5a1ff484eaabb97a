"""What runs work somewhere else: workers that keep something in memory, and plain functions.

A worker is an object that lives where the engine puts it: in this process, or on another machine. It is asked to do
something by the name of a method; what it is asked is done in that order, one after another, while whoever asked goes
on. An engine that loses a worker says so with `WorkerLost`: it never makes a new one by itself, because that would have
forgotten all it knew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, TypeVar

from kilt.errors import EngineError

A = TypeVar("A")
R = TypeVar("R")
TRIES = 3  # that the same question may lose a worker


class WorkerLost(EngineError):  # noqa: N818, it is what has happened
    """A worker has died, or its machine has. Its number is in `worker`."""

    def __init__(self, worker: int, why: str) -> None:
        super().__init__(f"worker {worker} was lost: {why}")
        self.worker, self.why = worker, why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.worker, self.why)


@dataclass(frozen=True)
class Job:
    """A worker that is wanted: `make(*arguments)` is called where it will live."""

    make: Callable[..., Any]  # a class or function of a module
    arguments: tuple[Any, ...] = ()
    memory: int = 0  # bytes that it will need
    threads: int = 1
    place: str = ""  # the `place` of another worker, beside which it shall live if there is room


class Answer(Protocol):
    """What a worker will say."""

    def get(self) -> Any:
        """Wait for it. Raises what the worker raised, or WorkerLost."""


class Worker(Protocol):
    """An object that lives somewhere else."""

    where: str  # in words, for people
    place: str  # the machine, for `Job.place`

    def ask(self, method: str, *arguments: Any) -> Answer:
        """Call a method, some time after all that was asked before."""


class Engine(Protocol):
    """Where work is done."""

    name: str

    def hire(self, jobs: Sequence[Job]) -> list[Worker]:
        """Make workers, all of them or none: EngineError where there is no room for one."""

    def map(
        self, work: Callable[[A], R], items: Iterable[A], tick: Callable[[float], None] = lambda share: None
    ) -> list[R]:
        """Call a function of a module for each item, several at once; the results, in order."""

    def dismiss(self, workers: Iterable[Worker]) -> None:
        """Let workers go, whether they are alive or not."""

    def close(self) -> None:
        """Let all workers go, and whatever else the engine has started."""


class Crew:
    """Workers who all do the same job and remember nothing between questions: one that is lost is replaced.

    What it was asked is then asked again, so that the answers do not depend on who was lost. Several threads may ask. A
    context: at its end all are dismissed.

    Parameters
    ----------
    engine : Engine
        Where they live.
    job : Job
        Of each of them.
    workers : int
        How many.
    """

    def __init__(self, engine: Engine, job: Job, workers: int) -> None:
        self.engine, self.job, self.size = engine, job, workers
        self._workers = engine.hire([job] * workers)
        self._lock = Lock()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.dismiss(self._workers)

    def ask(self, number: int, method: str, *arguments: Any) -> Callable[[], Any]:
        """Ask a worker, counted round and round, to call a method; gives what waits for the answer."""
        place = number % self.size
        worker = self._workers[place]
        answer = worker.ask(method, *arguments)

        def get() -> Any:
            nonlocal worker, answer
            for _ in range(TRIES):
                try:
                    return answer.get()
                except WorkerLost as error:
                    lost = error
                with self._lock:
                    if self._workers[place] is worker:  # nobody has found out before
                        self.engine.dismiss([worker])
                        (self._workers[place],) = self.engine.hire([self.job])
                    worker = self._workers[place]
                answer = worker.ask(method, *arguments)
            raise EngineError(f"{lost}, {TRIES} times in a row: see that machines have memory, or use fewer workers")

        return get
