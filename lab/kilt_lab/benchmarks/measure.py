"""How benchmarks measure: rounds of all contestants in turn, so that a slow moment of the machine hits all of them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter, sleep
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured number."""

    key: str
    what: str
    value: float
    unit: str


def interleaved(contestants: dict[str, Callable[[], object]], rounds: int = 5, rest: float = 0.0) -> dict[str, float]:
    """The median seconds of each contestant; a first round, in which kernels compile, does not count.

    Before each turn there may be a rest of some seconds, in which threads of the one before fall asleep.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, contest in contestants.items():
            sleep(rest)
            start = perf_counter()
            contest()
            seconds[name].append(perf_counter() - start)
    return {name: median(times[1:]) for name, times in seconds.items()}
