"""A stand-in for CuPy on machines without a GPU: CUDA files compiled as C++, one thread after another.

It runs the source that a GPU would run, with all of its arithmetic. The threads of kernels that work in warps take
turns: each goes on up to where it waits for others, or exchanges numbers with them. Of other kernels whose threads wait
for each other, one thread does all.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

COMPILER = shutil.which("g++") or shutil.which("clang++")
TOGETHER = ("leaf_sums", "last_round")  # kernels whose threads wait for each other: one does all
IN_TURN = ("learn_", "follow_", "respond_", "walk_deals")  # beginnings of the names of kernels whose threads take turns
KERNEL = re.compile(
    r'^extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(|^KERNEL\((\w+)\)', re.MULTILINE
)
SHIM = """
#include <algorithm>
#include <cstddef>
#include <csetjmp>
#include <cstring>
#include <tuple>
#include <ucontext.h>
using std::max; using std::min;
struct Index { int x, y, z; };
static Index blockIdx, threadIdx, blockDim, gridDim;
static unsigned char memory[1 << 20];
#define __global__
#define __launch_bounds__(threads, blocks)
#define __align__(bytes) alignas(bytes)
#define __device__
#define __shared__ static
#define __syncthreads()
#define __syncwarp() wait()
#define __shfl_up_sync(mask, value, lanes) exchanged(value, threadIdx.x - (threadIdx.x % 32 >= (lanes) ? (lanes) : 0))
#define __shfl_xor_sync(mask, value, lanes) exchanged(value, threadIdx.x ^ (lanes))
#define __shfl_sync(mask, value, lane) exchanged(value, threadIdx.x / 32 * 32 + (lane))

#define __fdividef(x, y) ((x) / (y))
static unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
static float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }

// A thread begins in a context of its own. From then on jumps take turns: they keep no masks of signals, which are two
// calls of the system each time.
enum { THREADS_AT_MOST = 256, STACK = 1 << 16 };
static ucontext_t beginning, thread[THREADS_AT_MOST];
static jmp_buf scheduler, place[THREADS_AT_MOST];
static bool begun[THREADS_AT_MOST], ended[THREADS_AT_MOST];
static char stack[THREADS_AT_MOST][STACK], slot[THREADS_AT_MOST][16];
static bool in_turn;
static void (*kernel)(void**);
static void** given;

static void wait() { if (in_turn && !_setjmp(place[threadIdx.x])) _longjmp(scheduler, 1); }
template <class T> T exchanged(T value, int from)
{
    if (!in_turn) return value;
    memcpy(slot[threadIdx.x], &value, sizeof(T));
    wait();
    memcpy(&value, slot[from], sizeof(T));
    wait();
    return value;
}
static void one_thread() { kernel(given); ended[threadIdx.x] = true; _longjmp(scheduler, 1); }
static void turn(int t)
{
    threadIdx.x = t;
    if (_setjmp(scheduler)) return;
    if (begun[t]) _longjmp(place[t], 1);
    begun[t] = true;
    swapcontext(&beginning, &thread[t]);
}


struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
static float2 make_float2(float x, float y) { return {x, y}; }
template <class T> T __ldg(const T* at) { return *at; }
template <class T> T __ldcg(const T* at) { return *at; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __ffsll(long long x) { return __builtin_ffsll(x); }
static void __threadfence() {}
template <class T> T atomicAdd(T* at, T more) { T before = *at; *at += more; return before; }
template <class T> T atomicExch(T* at, T other) { T before = *at; *at = other; return before; }
template <class T, class F> T gathered(T value, F add)  // over a warp; a block of fewer threads is one
{
    if (!in_turn || blockDim.x == 1) return value;
    const int begin = threadIdx.x / 32 * 32, end = min(begin + 32, blockDim.x);
    memcpy(slot[threadIdx.x], &value, sizeof(T));
    wait();
    T found = value, other;
    for (int t = begin; t < end; t++)
        if (t != threadIdx.x) { memcpy(&other, slot[t], sizeof(T)); found = add(found, other); }
    wait();
    return found;
}
static unsigned __ballot_sync(unsigned mask, bool vote)
{
    return gathered(vote ? 1u << threadIdx.x % 32 : 0u, [](unsigned x, unsigned y) { return x | y; });
}
static unsigned sum(unsigned x, unsigned y) { return x + y; }
static unsigned most(unsigned x, unsigned y) { return max(x, y); }
static unsigned __reduce_add_sync(unsigned mask, unsigned x) { return gathered(x, sum); }
static unsigned __reduce_max_sync(unsigned mask, unsigned x) { return gathered(x, most); }

template <class... A> void unpack(void (*function)(A...), void** values)
{
    size_t n = sizeof...(A);
    std::tuple<A...> all{*(A*)values[--n]...};  // braces: from left to right, so arguments come in reverse
    std::apply(function, all);
}
static void launch(const int* grid, int threads)
{
    gridDim = {grid[0], grid[1], grid[2]};
    for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++)
        for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
            for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++) {
                blockDim = {threads, 1, 1};
                threadIdx = {0, 0, 0};
                for (int t = 0; t < threads; t++) {
                    threadIdx.x = t;
                    if (!in_turn) { kernel(given); continue; }
                    begun[t] = ended[t] = false;
                    getcontext(&thread[t]);
                    thread[t].uc_stack.ss_sp = stack[t];
                    thread[t].uc_stack.ss_size = STACK;
                    thread[t].uc_link = nullptr;
                    makecontext(&thread[t], one_thread, 0);
                }
                for (bool going = in_turn; going;) {
                    going = false;
                    for (int t = 0; t < threads; t++)
                        if (!ended[t]) { turn(t); going = true; }
                }
            }
}
"""

zeros, empty, asarray, asnumpy, multiply, take = np.zeros, np.empty, np.asarray, np.array, np.multiply, np.take


class RawModule:
    """The kernels of a CUDA source, compiled for the CPU."""

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        code = code.replace("extern __shared__ unsigned char memory[];", "")
        names = [one or other for one, other in KERNEL.findall(code)]
        starts = [
            f'extern "C" void start_{name}(const int* grid, int threads, bool turns, void** values) {{'
            f" kernel = [](void** all) {{ unpack({name}, all); }};"
            " in_turn = turns; given = values; launch(grid, threads); }"
            for name in names
        ]
        defined = [option for option in options if option.startswith("-D")]
        flags = ["-std=c++17", "-shared", "-fPIC", "-O1", "-w", "-U_FORTIFY_SOURCE", *defined]
        command = [COMPILER, *flags, "kernels.cpp", "-o", "kernels.so"]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "kernels.cpp").write_text("\n".join([SHIM, code, *starts]))
            subprocess.run(command, cwd=folder, check=True)
            self._library = ctypes.CDLL(f"{folder}/kernels.so")

    def get_function(self, name: str):
        """A kernel that is called as CuPy's are: with a grid, a block that does not always matter, and arguments."""
        start = getattr(self._library, f"start_{name}")

        def call(grid, block, arguments, shared_mem=0):
            threads = 1 if name in TOGETHER else block[0]
            given = [_argument(value) for value in reversed(arguments)]
            values = (ctypes.c_void_p * len(given))(*(ctypes.addressof(value) for value in given))
            start((ctypes.c_int * 3)(*(*grid, 1, 1)[:3]), threads, name.startswith(IN_TURN), values)

        return call


def _argument(value):
    if isinstance(value, np.ndarray) and value.ndim == 0:  # a struct, by value
        kind = type("Struct", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_char * value.nbytes)]})
        return kind.from_buffer_copy(value.tobytes())
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, float | np.floating):
        return (ctypes.c_float if isinstance(value, np.float32) else ctypes.c_double)(float(value))
    return ctypes.c_longlong(int(value)) if isinstance(value, np.int64) else ctypes.c_int(int(value))


def address(array):
    """Where an array begins, as `kilt.gpu.address` says it for arrays of a device."""
    return array.ctypes.data


def copy(source, target, *, pinned=False):
    """In place of copies from and to a device."""
    target[...] = source
