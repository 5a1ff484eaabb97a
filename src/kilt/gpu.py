"""Import the GPU library CuPy on first use, and copy arrays to and from the GPU.

`require_gpu` raises an error that says what is missing.
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

RULE = Path(__file__).parent / "tree" / "rule.cuh"  # the learning rule, which is prepended to each CUDA file
NUMBERS = {"float32": "float", "float64": "double"}  # names of types in CUDA
H200 = 132  # number of multiprocessors
PINNED = 1 << 28  # bytes of the buffer for copying arrays
SHARED = 200_000  # largest number of bytes of shared memory of a block


def require_gpu() -> Any:
    """Return the CuPy module, or raise RunError if CuPy or a supported GPU is missing."""
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
    """Release unused GPU memory, and return the number of free bytes."""
    cupy = require_gpu()
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free)


def has_room(size: int) -> bool:
    """Return whether a GPU has at least `size` bytes of free memory."""
    try:
        return free_memory() >= size
    except RunError:
        return False


def multiprocessors() -> int:
    """Return the number of multiprocessors of the GPU.

    Without a GPU, it is that of an H200.
    """
    try:
        return int(require_gpu().cuda.Device().attributes["MultiProcessorCount"])
    except RunError:
        return H200


def address(array: Any) -> int:
    """Return the address of an array in GPU memory."""
    return int(array.data.ptr)


def copy_out(source: Any, target: Array, *, pinned: bool = False) -> None:
    """Copy an array from the GPU to main memory.

    The copy is direct if the target is `pinned`, otherwise it goes through a buffer.
    """
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
    """Copy an array from main memory to the GPU.

    The copy is direct if the source is `pinned`, otherwise it goes through a buffer.

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
    """Allocate an array in pinned main memory, which the GPU can access directly.

    It consists of 4-byte words.

    Unlike CuPy, this function does not round the size up.
    """
    cupy = require_gpu()
    memory = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(max(4, 4 * words)), 0)
    return np.frombuffer(memory, np.uint32, words)


@cache
def _pinned() -> Array:
    """Return the pinned buffer through which arrays are copied."""
    memory = require_gpu().cuda.alloc_pinned_memory(PINNED)
    return np.frombuffer(memory, np.uint8, PINNED)


def by_value(record: Array) -> Array:
    """Convert a record to plain bytes, so that a CUDA kernel accepts it as one argument.

    Otherwise CuPy would describe the record's fields at each call.
    """
    return record.view(f"V{record.itemsize}")


@cache
def kernels(source: Path, dtype: npt.DTypeLike, written: str = "", **defined: int | str) -> Any:
    """Compile a CUDA file for a floating-point type, and return its kernels by name.

    CuPy caches the compiled code on disk.

    `defined` are macros of the file; `written` is generated code that is appended to it.
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
