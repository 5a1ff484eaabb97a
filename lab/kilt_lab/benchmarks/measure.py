"""Measurement: all contestants take turns in every round, so that a slow moment of the machine affects all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from resource import RUSAGE_SELF, getrusage
from statistics import median
from time import perf_counter, sleep
from typing import NamedTuple

MORE, LESS = "more", "less"
# The last words of a key decide which direction is better: figures of other commits have only keys and values.
MORE_WORDS = ("per_second", "ratio", "bandwidth", "correlation", "visits")
LESS_WORDS = ("seconds", "ms", "us", "gb", "p99", "median", "cpu", "share", "cost", "exploitability", "overhead")
# Keys whose words would give the wrong direction, or none.
DIRECTIONS = {
    "ratio_to_phevaluator": MORE,
    "kmeans_ratio_to_sklearn": MORE,
    "ratio_to_limit": MORE,
    "ratio_to_threads": MORE,
    "kmeans_inertia_ratio": LESS,
    "aivat_sd_ratio": LESS,
    "two_four_mbb": "",
    "royal_mbb": "",
    "two_four_iterations": LESS,
    "royal_iterations": LESS,
    "royal_gigabytes": LESS,
    "won_from_threads": MORE,
    "strategy_gb": "",
}


class Figure(NamedTuple):
    """One measured number."""

    key: str
    what: str
    value: float
    unit: str


def better_of(key: str) -> str:
    """Return `MORE` or `LESS`, whichever is better for the figure of a key; an empty string if neither is.

    >>> better_of("external_leduc_per_second"), better_of("flop_cpu_seconds"), better_of("peer_turn_seconds")
    ('more', 'less', '')
    """
    if key.startswith(("peer_", "phevaluator_", "random_reads_")):
        return ""  # a peer's
    if key.startswith("dbr_ratio"):
        return LESS
    if key.startswith("blueprint_") and key.endswith(("_share", "_times_cpu")):
        return MORE
    words = re.sub(r"(_\d+)+$", "", key)
    if words in DIRECTIONS:
        return DIRECTIONS[words]
    ends = ((MORE, MORE_WORDS), (LESS, LESS_WORDS))
    return next((better for better, known in ends if any(words == w or words.endswith(f"_{w}") for w in known)), "")


def peak_gb() -> float:
    """Return the peak memory of this process in gigabytes (10⁹ bytes)."""
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def interleaved(contestants: dict[str, Callable[[], object]], rounds: int = 5, rest: float = 0.0) -> dict[str, float]:
    """Return the median seconds of each contestant; a first round, in which kernels compile, does not count.

    Before each turn there may be a pause of some seconds, in which threads of the previous turn go idle.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, contest in contestants.items():
            sleep(rest)
            start = perf_counter()
            contest()
            seconds[name].append(perf_counter() - start)
    return {name: median(times[1:]) for name, times in seconds.items()}
