"""A stand-in for CuPy on machines without a GPU: CUDA files compiled as C++, one thread after another.

It runs the source that a GPU would run, with all of its arithmetic. It does not show what threads do to each other.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

COMPILER = shutil.which("g++") or shutil.which("clang++")
TOGETHER = ("leaf_sums", "last_round")  # kernels whose threads wait for each other: one does all
SHIM = """
#include <algorithm>
#include <cstddef>
using std::max; using std::min;
struct Index { int x, y, z; };
static Index blockIdx, threadIdx, blockDim;
static unsigned char memory[1 << 20];
#define __global__
#define __launch_bounds__(threads, blocks)
#define __align__(bytes) alignas(bytes)
#define __device__
#define __shared__ static
#define __syncthreads()
#define __shfl_up_sync(mask, value, lanes) (value)
extern "C" void place(int x, int y, int z, int thread, int threads) {
    blockIdx = {x, y, z}; threadIdx = {thread, 0, 0}; blockDim = {threads, 1, 1};
}
"""

zeros, empty, asarray, asnumpy, multiply = np.zeros, np.empty, np.asarray, np.array, np.multiply


class RawModule:
    """The kernels of a CUDA source, compiled for the CPU."""

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        folder = Path(tempfile.mkdtemp())
        code = code.replace("extern __shared__ unsigned char memory[];", "")
        (folder / "kernels.cpp").write_text(SHIM + code)
        defined = [option for option in options if option.startswith("-D")]
        command = [COMPILER, "-shared", "-fPIC", "-O1", "-w", *defined, "kernels.cpp", "-o", "kernels.so"]
        subprocess.run(command, cwd=folder, check=True)
        self._library = ctypes.CDLL(str(folder / "kernels.so"))

    def get_function(self, name: str):
        """A kernel that is called as CuPy's are: with a grid, a block that does not matter, and arguments."""
        kernel, place = getattr(self._library, name), self._library.place

        def call(grid, block, arguments, shared_mem=0):
            threads = 1 if name in TOGETHER else block[0]
            given = [_argument(value) for value in arguments]
            for x, y, z in itertools.product(*(range(size) for size in (*grid, 1, 1)[:3])):
                for thread in range(threads):
                    place(x, y, z, thread, threads)
                    kernel(*given)

        return call


def _argument(value):
    if isinstance(value, np.ndarray) and value.ndim == 0:  # a struct, by value
        kind = type("Struct", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_char * value.nbytes)]})
        return kind.from_buffer_copy(value.tobytes())
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_longlong(int(value)) if isinstance(value, np.int64) else ctypes.c_int(int(value))
