"""Compile functions with Numba, and run them on several threads.

A kernel takes arrays, documents what it reads and writes, allocates nothing that could be passed to it, and releases
the interpreter lock. Compiled code is cached on disk, so that it is compiled once per machine. Importing a module with
kernels compiles nothing: that happens at the first call.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import event
from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.ir import Assign, Expr
from numba.core.lowering import Lower
from numba.core.runtime import rtsys
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.extending import intrinsic

from kilt.compiling import begin_compiling, end_compiling
from kilt.machine import locked, temporary_caches

F = TypeVar("F", bound=Callable[..., Any])

# names of allocating functions in kernels
MAKES_ARRAYS = {"empty", "zeros", "ones", "arange", "copy", "make_workspace"}
_kernels: list[tuple[Any, Path]] = []  # kernels cached on disk, each with the index file of its cache
READING = 0.5  # seconds that reading a kernel from disk takes at most; a longer wait means compilation


def kernel(function: F) -> F:
    """Compile a function to machine code when it is first called.

    Reference counting is disabled unless the function makes arrays by one of the names in `MAKES_ARRAYS`, or calls
    functions that return arrays: it would dominate short work on tuples of many arrays, and double the compile time.
    """
    return _compiled(function)


def kernel_of_slices(function: F) -> F:
    """Compile a function that accepts both slices of arrays and whole arrays.

    For functions that are called with slices as well as whole arrays, and whose speed does not depend on contiguous
    rows: numba would compile a version for each combination.
    """
    return _compiled(function, slices=True)


def subkernel(function: F) -> F:
    """Compile a function that only other compiled functions call.

    Calls from Python would need extra code for each array argument.
    """
    return _compiled(function, no_cpython_wrapper=True)


def spliced(function: F) -> F:
    """Compile a function into each of its callers, so that passing tuples is free.

    For functions that have one or two callers, and are called once per board or block of nodes.
    """
    return _compiled(function, no_cpython_wrapper=True, forceinline=True)


def inlined(function: F) -> F:
    """Compile a short function into each of its callers, for use in hot loops."""
    return _compiled(function, inline="always")


def _compiled(function: F, *, slices: bool = False, **flags: Any) -> F:
    counting = not MAKES_ARRAYS.isdisjoint(function.__code__.co_names)
    flags = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **flags}
    alone = "no_cpython_wrapper"

    @cache
    def part() -> Any:
        """Return the compiled version of a function, for calls from compiled code."""
        made = numba.njit(**flags | {alone: True}, _nrt=counting, pipeline_class=_PartCompiler)(function)
        _generalise(made)
        return made

    if alone in flags:
        return cast(F, part())
    whole = _kept(function, **flags, _nrt=counting, pipeline_class=_KernelCompiler)
    if slices:
        whole.compile = partial(_for_slices, whole, whole.compile)
    whole.get_call_template = lambda args, kws: part().get_call_template(args, kws)
    whole.get_overload = lambda signature: part().get_overload(signature)
    return cast(F, whole)


def _kept(function: Callable[..., Any], **flags: Any) -> Any:
    """Return a kernel whose machine code numba caches on disk.

    The cache is in the module's folder, the user's cache folder, or ``$NUMBA_CACHE_DIR``.

    If none of these is writable, a temporary folder is used, also in processes that this one starts.
    """
    try:
        whole = numba.njit(**flags, cache=True)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        folder = temporary_caches()
        if folder is None:
            return numba.njit(**flags)(function)
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(folder / "kernels")
        whole = numba.njit(**flags, cache=True)(function)
    _guard(whole)
    return whole


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that Python calls.

    LLVM may drop functions that only other kernels could call.
    """

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.linkonce_odr:
                function.linkage = binding.Linkage.internal
        super()._optimize_final_module()

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return what Numba's cache stores for a function: its machine code, and names in this code.

        Numba stores the LLVM code too, in place of the names, for other kernels that call this one. Those compile their
        own copy, and a process would take as long to read it as to read the machine code.
        """
        self._ensure_finalized()
        linked = self._get_module_for_linking()
        names = [
            one.name for part in (linked.functions, linked.global_variables) for one in part if not one.is_declaration
        ]
        stub = binding.parse_assembly("\n".join(f'@"{name}" = global i8 0' for name in names))
        return self.name, "object", (self._get_compiled_object(), stub.as_bitcode())


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that other kernels call; it is optimised and compiled only as part of its callers.

    By default, numba would do both for the kernel itself, and again for each caller, including everything they call.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Report that there is no machine code.

        Numba then sets the kernel's environment, which must exist.
        """
        self._ensure_finalized()
        codegen = self._codegen
        for variable in self._final_module.global_variables:
            if variable.name.startswith("_ZN08NumbaEnv") and not codegen._engine.is_symbol_defined(variable.name):
                module = f"{codegen._create_empty_module(variable.name)}\n{variable}"
                codegen._add_module(binding.parse_assembly(module))
                codegen._engine.finalize_object()
        return 0


class _Lower(Lower):  # type: ignore[misc]
    """Generates LLVM code of a function, without stack slots for variables that are assigned once.

    Numba allocates a stack slot for variables that are used in other blocks than the one that assigns them. With tuples
    of many arrays, each use is then a copy of all of them, until LLVM finds that the copies are not needed. With
    reference counting, the slot also records whether the references have been counted.
    """

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        if self.context.enable_nrt:
            return
        blocks = self.func_ir.blocks
        assigned, used = defaultdict(list), defaultdict(list)
        for label, block in blocks.items():
            for one in block.find_insts(Assign):
                self._require_no_array(one)
                assigned[one.target.name].append(label)
        for label, names in compute_use_defs(blocks).usemap.items():
            for name in names:
                used[name].append(label)
        before = compute_cfg_from_blocks(blocks).dominators()
        for name, (first, *more) in assigned.items():
            if not more and all(first in before[label] and first < label for label in used[name]):
                self._singly_assigned_vars.add(name)

    def _require_no_array(self, assign: Assign) -> None:
        """Raise TypeError if a call creates an array, which would leak because references are not counted."""
        typed, call = self.fndesc.typemap, assign.value
        if not isinstance(call, Expr) or call.op != "call" or not _has_array(typed[assign.target.name]):
            return
        called = typed[call.func.name]
        if isinstance(called, types.Dispatcher) and not called.dispatcher.targetoptions["_nrt"]:
            return  # it returns one of its arguments
        if not isinstance(called, types.NamedTupleClass):
            raise TypeError(
                f"{self.func_ir.func_id.func_name} calls a function that makes arrays, at {call.loc}: see MAKES_ARRAYS"
            )


def _has_array(made: types.Type) -> bool:
    """Return whether a type is an array, or a tuple that contains arrays."""
    return isinstance(made, types.Array) or (isinstance(made, types.BaseTuple) and any(map(_has_array, made.types)))


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


class _KernelCompiler(Compiler):  # type: ignore[misc]
    def define_pipelines(self) -> Any:
        if self.state.library is None:
            self.state.library = _KernelLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        pipelines = super().define_pipelines()
        needless = None if self.state.flags.nrt else NopythonRewrites  # only needed for expressions that make arrays
        for pipeline in pipelines:
            pipeline.passes = [
                (_Lowering if step is NativeLowering else step, why)
                for step, why in pipeline.passes
                if step is not needless
            ]
        return pipelines


class _PartCompiler(_KernelCompiler):
    def define_pipelines(self) -> Any:
        self.state.library = _PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


def _generalise(compiled: Any) -> None:
    """Make numba compile a kernel once for all constant arguments, not again for each constant."""
    template = compiled.get_call_template

    def general(args: Any, kws: Any) -> Any:
        return template(tuple(map(types.unliteral, args)), {name: types.unliteral(kws[name]) for name in kws})

    compiled.get_call_template = general


def _guard(compiled: Any) -> None:
    """Let only one process at a time compile a kernel for given argument types, or access its cache on disk.

    Other processes that need it for these types wait, and then read the result. The cache consists of an index and of
    files that it names, which are written separately: a process that reads them in between could get the code of
    another version, or of other types.
    """
    kept = compiled._cache
    files = kept._cache_file
    index = Path(files._index_path)
    _kernels.append((compiled, index))
    compiled.compile = partial(_once, compiled.compile, index)
    for name in ("save", "load"):
        setattr(files, name, partial(_alone, getattr(files, name), index))
    kept.load_overload = partial(_load, kept)


def _load(kept: Any, signature: Any, context: Any) -> Any:
    """Read a kernel's machine code from disk without loading numba's compiler, which takes 0.2 s per process."""
    rtsys.initialize(context)  # the runtime for reference counting, which machine code needs
    with kept._guard_against_spurious_io_errors():
        return kept._load_overload(signature, context)


def _for_slices(compiled: Any, compile_kernel: Callable[[Any], Any], signature: tuple[Any, ...]) -> Any:
    """Compile a kernel for arrays with strides, and register the same code for the given argument types.

    Numba would otherwise look for a compatible version at each call, which takes 0.4 ms.
    """
    strided = tuple(one.copy(layout="A") if isinstance(one, types.Array) else one for one in signature)
    entry = compile_kernel(strided)
    if strided != signature:
        compiled.overloads[signature] = compiled.overloads[strided]
        compiled._insert([one._code for one in signature], entry, False)
    return entry


def _once(compile_kernel: Callable[[Any], Any], index: Path, signature: Any) -> Any:
    lock = index.with_name(f".{index.stem}-{sha256(str(signature).encode()).hexdigest()[:12]}.lock")
    with ExitStack() as held:
        with suppress(OSError):  # there is no cache, or it is not writable
            try:
                held.enter_context(locked(lock, wait=READING))
            except BlockingIOError:
                begin_compiling()  # another process compiles for this one
                held.callback(end_compiling)
                held.enter_context(locked(lock))
        return compile_kernel(signature)


def _alone(method: Callable[..., Any], index: Path, *arguments: Any) -> Any:
    with ExitStack() as held:
        with suppress(OSError):  # there is no cache, or it is not writable
            held.enter_context(locked(index.with_name(".kilt-lock")))
        try:
            return method(*arguments)
        except (ImportError, AttributeError):  # the cache is of another version, with classes in other modules
            index.unlink(missing_ok=True)
            return method(*arguments)


class _CompilationTimer(event.Listener):  # type: ignore[misc]
    """Reports every compilation of a kernel to `compiling`, but no kernel that is read from disk."""

    def on_start(self, event: Any) -> None:
        begin_compiling()

    def on_end(self, event: Any) -> None:
        end_compiling()


event.register("numba:compile", _CompilationTimer())


def called_kernels() -> set[tuple[str, str]]:
    """Return all compiled functions called by this process, with their argument types.

    Each of them was compiled or read from disk.
    """
    return {
        (f"{kernel.__module__}.{kernel.__name__}", str(types_of_arguments))
        for kernel, _ in _kernels
        for types_of_arguments in kernel.signatures
    }


def cache_index_files() -> list[str]:
    """Return the cache index files of all compiled functions called by this process."""
    return sorted(str(index) for kernel, index in _kernels if kernel.signatures and index.exists())


def compile_target() -> str:
    """Describe in a text what compiled code depends on: the processor, and versions of libraries.

    >>> numba.__version__ in compile_target()
    True
    """
    features = binding.get_host_cpu_features().flatten()
    return f"{numba.__version__} {llvmlite.__version__} {binding.get_host_cpu_name()} {features}"


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parts(
    work: Callable[[int, int], Any],
    count: int,
    threads: int = 1,
    tick: Callable[[float], None] = lambda share: None,
    *,
    parts: int = 64,
) -> list[Any]:
    """Run ``work(start, end)`` on several threads for parts of ``range(count)``, and return the results.

    The results are in the order of the parts.

    The parts do not depend on the number of threads. `tick` is called with the finished share.
    """
    bounds = [count * part // parts for part in range(parts + 1)]
    results = []
    if threads == 1:  # small parts take less time than passing them to another thread
        for done, (start, end) in enumerate(pairwise(bounds), start=1):
            results.append(work(start, end))
            tick(done / parts)
        return results
    with ThreadPoolExecutor(threads) as pool:
        try:
            for done, result in enumerate(pool.map(work, bounds[:-1], bounds[1:]), start=1):
                results.append(result)
                tick(done / parts)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


@intrinsic  # type: ignore[untyped-decorator]
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@inlined
def trailing_zeros(word: int | np.int64) -> int:
    """Return the number of zero bits at the end of a 64-bit word.

    It compiles to one instruction, in kernels only.
    """
    zeros: int = _trailing_zeros(word)
    return zeros


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Load an array element into the processor's cache ahead of its use."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], _prefetch_type(place.type))
        builder.call(function, [place, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _prefetch_type(pointer: Any) -> Any:
    """Return the LLVM type of a prefetch: address, read or write, locality, data or instructions."""
    return ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])


@cache
def shared_threads(number: int) -> ThreadPoolExecutor:
    """Return the thread pool that the whole process shares, with a given number of threads."""
    return ThreadPoolExecutor(number)


if hasattr(os, "register_at_fork"):  # threads do not survive a fork, which Windows does not have
    os.register_at_fork(after_in_child=shared_threads.cache_clear)
