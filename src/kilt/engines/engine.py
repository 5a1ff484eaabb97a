"""Engines run functions and workers: in this process, in other processes, or on a cluster.

A worker is an object that an engine creates in this process or on another machine. Its methods are called by name.
Calls are asynchronous and are executed in order. If a worker is lost, the engine raises `WorkerLost`. The engine never
replaces a worker by itself, because the new worker would lack the state of the old one.
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
    """Raised if a worker's process has died, or its machine was lost.

    `worker` is the number of the worker.
    """

    def __init__(self, worker: int, why: str) -> None:
        super().__init__(f"worker {worker} was lost: {why}")
        self.worker, self.why = worker, why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.worker, self.why)


@dataclass(frozen=True)
class Job:
    """The description of a worker to hire.

    Calling `make(*arguments)` on the worker's machine creates the worker's object.
    """

    make: Callable[..., Any]  # a class or function of a module
    arguments: tuple[Any, ...] = ()
    memory: int = 0  # bytes that the worker will need
    threads: int = 1
    place: str = ""  # the `place` of another worker; the new one is hired on the same machine if it has room


class Answer(Protocol):
    """The result of an asynchronous call, which may not be available yet."""

    def get(self) -> Any:
        """Wait for the result and return it.

        Raises the exception of the call, or WorkerLost if the worker has died.
        """


class Worker(Protocol):
    """An object with asynchronous methods, possibly in another process or on another machine."""

    where: str  # a description for messages
    place: str  # the machine, for `Job.place`

    def ask(self, method: str, *arguments: Any) -> Answer:
        """Call a method asynchronously, and return an object that waits for the result.

        The worker executes calls in the order in which they are made.
        """


class Engine(Protocol):
    """The interface of engines, which start workers and run functions in parallel."""

    name: str

    def hire(self, jobs: Sequence[Job]) -> list[Worker]:
        """Start one worker for each job.

        Raises EngineError, and starts none, if there is no room for one of them.
        """

    def map(
        self, work: Callable[[A], R], items: Iterable[A], tick: Callable[[float], None] = lambda share: None
    ) -> list[R]:
        """Call a function for each item in parallel, and return the results in order.

        The function must be at the top level of a module. `tick` is called with the finished share.
        """

    def dismiss(self, workers: Iterable[Worker]) -> None:
        """Stop workers, even if they have already died."""

    def close(self) -> None:
        """Stop all workers and everything else that the engine has started."""


class Crew:
    """A group of identical, stateless workers. A lost worker is replaced by a new one.

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
        """Call a worker's method asynchronously, and return a function that waits for the result.

        The worker is the one with this number, modulo the number of workers.
        """
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
