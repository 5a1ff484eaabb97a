"""The one place for compiler flags.

A kernel takes arrays, says what it reads and what it writes, allocates nothing it can be given, and releases the
interpreter lock. Compiled code is cached on disk, so the cost is paid once per machine. Importing a module with
kernels compiles nothing: that happens at the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` to machine code at its first call."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def inlined(function: F) -> F:
    """Compile `function` into each kernel that calls it: for the few lines inside a hot loop."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function)
    return compiled


@intrinsic  # type: ignore[untyped-decorator]
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@inlined
def trailing_zeros(word: int | np.int64) -> int:
    """How many bits are zero below the lowest one of a 64-bit word: a machine instruction, for use in kernels only."""
    zeros: int = _trailing_zeros(word)
    return zeros
