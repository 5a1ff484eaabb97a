"""Measure the time that this process spends compiling kernels, and provide a clock that excludes it.

Kernels are compiled at their first call and cached on disk (see `jit`): this takes seconds after an installation and no
time later, so it is not counted as solving, nor against a time budget. `jit` reports compilations; this module does not
import the compiler. During compilation, Python's search for reference cycles is disabled, which saves a tenth of the
time.

>>> began, before = clock(), compiled_seconds()
>>> clock() >= began, compiled_seconds() >= before
(True, True)
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Lock
from time import perf_counter
from typing import NamedTuple

listeners: list[Callable[[], None]] = []  # called when compilation begins


class _Standing(NamedTuple):
    """The compilation time so far. It is replaced as a whole, because other threads read it."""

    seconds: float = 0.0  # of finished compilations
    depth: int = 0  # number of nested compilations: a kernel is compiled during that of its caller
    began: float = 0.0  # beginning of the outermost compilation
    collecting: bool = False  # whether the search for reference cycles was enabled before


_standing = _Standing()
_changing = Lock()


def begin_compiling() -> None:
    """Record that this process starts to compile a kernel, or to wait for another process that compiles it."""
    global _standing
    with _changing:
        seconds, depth, began, collecting = _standing
        if not depth:
            began, collecting = perf_counter(), gc.isenabled()
            gc.disable()
        _standing = _Standing(seconds, depth + 1, began, collecting)
    if not depth:
        for listener in listeners:
            listener()


def end_compiling() -> None:
    """Record that the compilation that began last has ended."""
    global _standing
    with _changing:
        seconds, depth, began, collecting = _standing
        if depth == 1:
            seconds += perf_counter() - began
            if collecting:
                gc.enable()
        _standing = _Standing(seconds, depth - 1, began, collecting)


def compiled_seconds() -> float:
    """Return the seconds that this process has spent compiling kernels so far."""
    seconds, depth, began, _ = _standing
    return seconds + (perf_counter() - began if depth else 0.0)


def clock() -> float:
    """Return the seconds since an arbitrary moment, like `time.perf_counter`, without time spent compiling."""
    return perf_counter() - compiled_seconds()
