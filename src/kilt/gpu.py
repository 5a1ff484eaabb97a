"""The one place that imports the GPU library, CuPy, and only where a GPU is used.

`require_gpu` says in one line what is missing where there is no GPU.
"""

from __future__ import annotations

import gc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, data_type
from kilt.errors import RunError

RULE = Path(__file__).parent / "tree" / "rule.cuh"  # the learning rule, which goes before each CUDA file
NUMBERS = {"float32": "float", "float64": "double"}  # as CUDA calls them
H200 = 132  # multiprocessors
PINNED = 1 << 28  # bytes through which arrays are copied
SHARED = 200_000  # bytes of shared memory that a block may ask for at most


def require_gpu() -> Any:
    """CuPy; RunError where it, or a GPU that it can use, is missing."""
    try:
        import cupy
    except ImportError:
        raise RunError(
            "there is no GPU to work on, CuPy is not installed: pip install cupy-cuda12x (or that of your CUDA), or "
            "use the CPU"
        ) from None
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RunError(f"there is no GPU to work on ({error}): use a machine with one, or the CPU") from None
    return cupy


def free_memory() -> int:
    """Bytes of device memory that are free, once those of objects that nobody uses any more are given back."""
    cupy = require_gpu()
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free)


def has_room(size: int) -> bool:
    """Whether there is a GPU with so many free bytes."""
    try:
        return free_memory() >= size
    except RunError:
        return False


def multiprocessors() -> int:
    """How many multiprocessors the device has; without one, how many an H200 has."""
    try:
        return int(require_gpu().cuda.Device().attributes["MultiProcessorCount"])
    except RunError:
        return H200


def address(array: Any) -> int:
    """Where an array on the device begins."""
    return int(array.data.ptr)


def copy_out(source: Any, target: Array, *, pinned: bool = False) -> None:
    """Copy an array from the device, through memory that the device writes by itself; `pinned`: the target is that."""
    if pinned:
        source.get(out=target)
        return
    flat, room = target.reshape(-1), _pinned()
    step = len(room) // target.itemsize
    for start in range(0, len(flat), step):
        piece = flat[start : start + step]
        there = room[: piece.nbytes].view(target.dtype)
        source[start : start + step].get(out=there)
        piece[:] = there


def copy_in(source: Array, target: Any, *, pinned: bool = False) -> None:
    """Copy an array to the device, through pinned host memory; `pinned`: the source is pinned itself.

    CuPy returns before the device has read pinned memory. This function waits, so that the memory may be overwritten.
    """
    stream = require_gpu().cuda.get_current_stream()
    if pinned:
        target.set(source)
        stream.synchronize()
        return
    flat, room = source.reshape(-1), _pinned()
    step = len(room) // source.itemsize
    for start in range(0, len(flat), step):
        piece = flat[start : start + step]
        there = room[: piece.nbytes].view(source.dtype)
        there[:] = piece
        target[start : start + step].set(there)
        stream.synchronize()


def pinned_array(words: int) -> Array:
    """4-byte words of host memory that the device reads and writes by itself; of just this size, unlike CuPy's pool."""
    cupy = require_gpu()
    memory = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(max(4, 4 * words)), 0)
    return np.frombuffer(memory, np.uint32, words)


@cache
def _pinned() -> Array:
    """Bytes of memory that are never moved."""
    memory = require_gpu().cuda.alloc_pinned_memory(PINNED)
    return np.frombuffer(memory, np.uint8, PINNED)


def by_value(record: Array) -> Array:
    """A record as an argument of a kernel, in plain bytes: CuPy would spell out its fields at each call."""
    return record.view(f"V{record.itemsize}")


@cache
def kernels(source: Path, dtype: npt.DTypeLike, written: str = "", **defined: int | str) -> Any:
    """The kernels of a CUDA file, by name, compiled for a type of numbers; compiled code is cached on disk by CuPy.

    What is `defined` are macros of the file; code that was `written` for this call follows it.
    """
    macros = {"number": NUMBERS[data_type(dtype).name]} | defined
    options = (*(f"-D{name}={value}" for name, value in macros.items()), "--std=c++14")
    module = require_gpu().RawModule(code=RULE.read_text() + source.read_text() + written, options=options)

    @cache
    def kernel(called: str) -> Any:
        function = module.get_function(called)
        function.max_dynamic_shared_size_bytes = SHARED
        return function

    return kernel
