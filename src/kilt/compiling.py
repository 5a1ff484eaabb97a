"""Measure the time spent compiling kernels, and provide clocks that leave it out.

Kernels are compiled at their first call and cached on disk (see `jit`): this takes seconds after an installation and no
time later, so it is not counted as solving, nor against a time budget. `jit` reports compilations; this module does not
import the compiler. During compilation, Python's search for reference cycles is disabled, which saves a tenth of the
time.

>>> began, worked, before = clock(), cpu_clock(), compiled_seconds()
>>> clock() >= began, cpu_clock() >= worked, compiled_seconds() >= before
(True, True, True)
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Lock
from time import perf_counter, process_time
from typing import NamedTuple

listeners: list[Callable[[], None]] = []  # called when compilation begins


class _Standing(NamedTuple):
    """The compilation time so far. It is replaced as a whole, because other threads read it."""

    spent: tuple[float, float] = (0.0, 0.0)  # wall time and CPU time of finished compilations
    depth: int = 0  # number of nested compilations: a kernel is compiled during that of its caller
    began: tuple[float, float] = (0.0, 0.0)  # both clocks at the beginning of the outermost compilation
    collecting: bool = False  # whether the search for reference cycles was enabled before


_standing = _Standing()
_changing = Lock()


def begin_compiling() -> None:
    """Record that this process starts compiling a kernel, or waits for another process to compile it."""
    global _standing
    with _changing:
        spent, depth, began, collecting = _standing
        if not depth:
            began, collecting = _clocks(), gc.isenabled()
            gc.disable()
        _standing = _Standing(spent, depth + 1, began, collecting)
    if not depth:
        for listener in listeners:
            listener()


def end_compiling() -> None:
    """Record that this process has finished its latest compilation."""
    global _standing
    with _changing:
        _, depth, began, collecting = _standing
        spent = _compiled()
        if depth == 1 and collecting:
            gc.enable()
        _standing = _Standing(spent if depth == 1 else _standing.spent, depth - 1, began, collecting)


def _clocks() -> tuple[float, float]:
    """Return wall time and CPU time since arbitrary moments."""
    return perf_counter(), process_time()


def _compiled() -> tuple[float, float]:
    """Return the wall time and the CPU time that this process has spent compiling kernels so far."""
    spent, depth, began, _ = _standing
    if not depth:
        return spent
    wall, cpu = _clocks()
    return spent[0] + wall - began[0], spent[1] + cpu - began[1]


def compiled_seconds() -> float:
    """Return the seconds that this process has spent on compiling kernels."""
    return _compiled()[0]


def clock() -> float:
    """Return the wall time in seconds without compilation, like `time.perf_counter`."""
    return perf_counter() - compiled_seconds()


def cpu_clock() -> float:
    """Return the CPU time in seconds of all threads of this process, without compilation."""
    return process_time() - _compiled()[1]
