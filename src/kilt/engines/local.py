"""An engine whose workers are threads of this process.

Compiled code releases the interpreter lock, so threads run in parallel.

>>> engine = LocalEngine(threads=2)
>>> engine.map(abs, [-3, 4])
[3, 4]
>>> (worker,) = engine.hire([Job(list, ([2, 1],))])
>>> answers = worker.ask("sort"), worker.ask("pop")
>>> [answer.get() for answer in answers]
[None, 2]
>>> engine.close()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from kilt.engines.engine import A, Answer, Job, R, Worker


class LocalEngine:
    """An engine whose workers are objects in this process, each with its own thread."""

    name = "local"

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads  # threads of `map`
        self._workers: list[_LocalWorker] = []

    def hire(self, jobs: Sequence[Job]) -> list[Worker]:
        """Create a worker for each job."""
        hired = [_LocalWorker(job) for job in jobs]
        self._workers += hired
        return list[Worker](hired)

    def map(
        self, work: Callable[[A], R], items: Iterable[A], tick: Callable[[float], None] = lambda share: None
    ) -> list[R]:
        """Call a function for each item on several threads, and return the results in order."""
        listed, results = list(items), list[R]()
        with ThreadPoolExecutor(self.threads) as pool:
            for done, result in enumerate(pool.map(work, listed), start=1):
                results.append(result)
                tick(done / len(listed))
        return results

    def dismiss(self, workers: Iterable[Worker]) -> None:
        """End workers."""
        for worker in workers:
            if isinstance(worker, _LocalWorker) and worker in self._workers:
                self._workers.remove(worker)
                worker.pool.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        """End all workers."""
        self.dismiss(list(self._workers))


class _LocalWorker:
    """A worker's object, and the thread that calls its methods."""

    where, place = "this process", ""

    def __init__(self, job: Job) -> None:
        self._object = job.make(*job.arguments)
        self.pool = ThreadPoolExecutor(1)

    def ask(self, method: str, *arguments: Any) -> Answer:
        return _LocalAnswer(self.pool.submit(getattr(self._object, method), *arguments))


class _LocalAnswer:
    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def get(self) -> Any:
        return self._future.result()
