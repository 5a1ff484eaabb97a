"""Measurement: all contestants take turns in every round, so that a slow moment of the machine affects all of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from resource import RUSAGE_SELF, getrusage
from statistics import median
from time import perf_counter, sleep
from typing import Any, NamedTuple

from kilt.errors import MissingPeerError

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


def required_peer(module: str, name: str) -> Any:
    """Return a module of a program that a benchmark compares kilt with. Raises MissingPeerError without it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingPeerError(
            f"{name}, which this benchmark compares itself with, is not installed: pip install 'kilt[peers]'"
        ) from None


def optional_peer(module: str, packages: str) -> Any:
    """Return a module of a program that is compared if it is installed.

    Without it, return None, and say so in a terminal.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if sys.stderr.isatty():
            sys.stderr.write(f"{module.split('.')[0]} is left out ({error}): pip install {packages}\n")
        return None


def interleaved(contestants: dict[str, Callable[[], object]], rounds: int = 5, rest: float = 0.0) -> dict[str, float]:
    """Return the median seconds of each contestant; a first round, in which kernels compile, does not count.

    Before each turn there may be a pause of some seconds, in which threads of the previous turn go idle.
    """
    turns = _turns(contestants, rounds, rest)
    return {name: median(seconds for _, seconds in those) for name, those in turns.items()}


def rates(contestants: dict[str, Callable[[], float]], rounds: int = 5) -> dict[str, float]:
    """Return the median of each contestant's work per second, in rounds like those of `interleaved`.

    A contestant returns the amount of its work.
    """
    turns = _turns(contestants, rounds)
    return {name: median(work / seconds for work, seconds in those) for name, those in turns.items()}


def _turns(
    contestants: Mapping[str, Callable[[], Any]], rounds: int, rest: float = 0.0
) -> dict[str, list[tuple[Any, float]]]:
    """Return what each contestant returned, and its seconds, in each round but the first."""
    turns: dict[str, list[tuple[Any, float]]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, contest in contestants.items():
            sleep(rest)
            start = perf_counter()
            done = contest()
            turns[name].append((done, perf_counter() - start))
    return {name: those[1:] for name, those in turns.items()}
