"""Time that this process has spent compiling kernels, and a clock that excludes it.

Kernels are compiled at their first call and kept on disk (see `jit`): it takes seconds after an installation and none
afterwards, so it is not work and counts neither as solving nor against a budget of time. `jit` says when it compiles;
nothing here imports the compiler. Meanwhile Python does not look for cycles of objects to free, which takes a tenth of
the time.

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
    """What was compiled so far; replaced as a whole, since other threads look at it."""

    seconds: float = 0.0  # of what is over
    depth: int = 0  # kernels being compiled: one is compiled while another that calls it is
    began: float = 0.0  # when the outermost of them began
    collecting: bool = False  # whether cycles were looked for then


_standing = _Standing()
_changing = Lock()


def begin_compiling() -> None:
    """Note that a kernel is being compiled from now on, by this process or, while it waits, by another."""
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
    """Note that the compilation which began last is over."""
    global _standing
    with _changing:
        seconds, depth, began, collecting = _standing
        if depth == 1:
            seconds += perf_counter() - began
            if collecting:
                gc.enable()
        _standing = _Standing(seconds, depth - 1, began, collecting)


def compiled_seconds() -> float:
    """Seconds that this process has spent compiling kernels so far, a compilation under way included."""
    seconds, depth, began, _ = _standing
    return seconds + (perf_counter() - began if depth else 0.0)


def clock() -> float:
    """Seconds since an arbitrary moment, like `time.perf_counter`, on a clock that stands still during compilation."""
    return perf_counter() - compiled_seconds()
