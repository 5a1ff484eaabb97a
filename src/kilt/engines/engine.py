"""The interface of engines, which run work elsewhere: workers with a state, and plain functions.

A worker is an object that an engine creates in this process or on another machine. Its methods are called by name.
Calls are asynchronous and are executed in order. If a worker is lost, the engine raises `WorkerLost`. It never replaces
a worker by itself, because the new one would lack the state of the old one.
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
TRIES = 3  # attempts at a call before a crew gives up


class WorkerLost(EngineError):  # noqa: N818, it is what has happened
    """A worker process has died, or its machine was lost. The number of the worker is in `worker`."""

    def __init__(self, worker: int, why: str) -> None:
        super().__init__(f"worker {worker} was lost: {why}")
        self.worker, self.why = worker, why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.worker, self.why)


@dataclass(frozen=True)
class Job:
    """A worker to be hired: `make(*arguments)` is called on the machine where the worker will run."""

    make: Callable[..., Any]  # a class or function of a module
    arguments: tuple[Any, ...] = ()
    memory: int = 0  # bytes that the worker will need
    threads: int = 1
    place: str = ""  # the `place` of another worker; the new one is hired on the same machine if it has room


class Answer(Protocol):
    """The result of an asynchronous call."""

    def get(self) -> Any:
        """Wait for the result. Raises the exception of the call, or WorkerLost."""


class Worker(Protocol):
    """An object that may be in another process or on another machine."""

    where: str  # a description for messages
    place: str  # the machine, for `Job.place`

    def ask(self, method: str, *arguments: Any) -> Answer:
        """Call a method after all earlier calls; returns immediately."""


class Engine(Protocol):
    """Hires workers and runs functions."""

    name: str

    def hire(self, jobs: Sequence[Job]) -> list[Worker]:
        """Start workers, all or none. Raises EngineError if there is no room for one of them."""

    def map(
        self, work: Callable[[A], R], items: Iterable[A], tick: Callable[[float], None] = lambda share: None
    ) -> list[R]:
        """Call a function of a module for each item, several at a time; return the results in order."""

    def dismiss(self, workers: Iterable[Worker]) -> None:
        """End workers, whether they are alive or not."""

    def close(self) -> None:
        """End all workers, and everything else that the engine has started."""


class Crew:
    """Identical workers without a state between calls: a lost worker is replaced.

    A call that was lost is repeated on the new worker, so results do not depend on lost workers. Several threads may
    make calls. As a context manager, a crew dismisses its workers at the end.

    Parameters
    ----------
    engine : Engine
        Runs the workers.
    job : Job
        The job of each worker.
    workers : int
        Number of workers.
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
        """Call a method of a worker, given by a number modulo the number of workers; returns a function that waits."""
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
                    if self._workers[place] is worker:  # no other thread has replaced it already
                        self.engine.dismiss([worker])
                        (self._workers[place],) = self.engine.hire([self.job])
                    worker = self._workers[place]
                answer = worker.ask(method, *arguments)
            raise EngineError(f"{lost}, {TRIES} times in a row: check the machines' memory, or use fewer workers")

        return get
