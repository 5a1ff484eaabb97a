"""The one place for compiler flags, and for how many threads there may be.

A kernel takes arrays, says what it reads and what it writes, allocates nothing it can be given, and releases the
interpreter lock. Compiled code is cached on disk, so the cost is paid once per machine. Importing a module with
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

MAKES_ARRAYS = {"empty", "zeros", "ones", "arange", "copy", "make_workspace"}  # names in kernels that allocate
_kernels: list[tuple[Any, Path]] = []  # those that are kept on disk, and the file that lists what is kept of each
READING = 0.5  # seconds in which another thread has read a kernel from disk; one that takes longer compiles it


def kernel(function: F) -> F:
    """Compile `function` to machine code at its first call.

    It counts no references unless it makes arrays by one of the names in `MAKES_ARRAYS`, or calls what returns some:
    that would take longer than short work on bundles of many arrays, and as long again to compile.
    """
    return _compiled(function)


def kernel_of_slices(function: F) -> F:
    """Compile `function` as a kernel, once for arrays however they lie in memory.

    For what is given slices of arrays as well as whole ones, and does not go along rows: numba would compile it for
    each mixture of the two.
    """
    return _compiled(function, slices=True)


def subkernel(function: F) -> F:
    """Compile `function` for calls by kernels alone: from Python it takes code for each array of each argument."""
    return _compiled(function, no_cpython_wrapper=True)


def spliced(function: F) -> F:
    """Compile `function` as a subkernel that becomes part of each kernel that calls it: passing bundles costs nothing.

    For what is called once or twice, for each board or block of a walk.
    """
    return _compiled(function, no_cpython_wrapper=True, forceinline=True)


def inlined(function: F) -> F:
    """Compile `function` into each kernel that calls it: for the few lines inside a hot loop."""
    return _compiled(function, inline="always")


def _compiled(function: F, *, slices: bool = False, **flags: Any) -> F:
    counting = not MAKES_ARRAYS.isdisjoint(function.__code__.co_names)
    flags = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **flags}
    alone = "no_cpython_wrapper"

    @cache
    def part() -> Any:
        """The kernel for others that call it, which nobody needs before one of them is compiled."""
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
    """A kernel whose code numba keeps on disk: beside its module, in the user's cache folder, or ``$NUMBA_CACHE_DIR``.

    Where none of these can be written to, a temporary folder takes their place, in processes that this one starts too.
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
    """Code of a kernel for calls by Python: of what it calls, LLVM need not keep what others might call."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.linkonce_odr:
                function.linkage = binding.Linkage.internal
        super()._optimize_final_module()


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of a kernel for calls by other kernels: optimised and made into machine code as part of theirs alone.

    Numba would do both for each kernel by itself, and then again for each that calls it, with all that they call.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Say that there is no machine code; numba goes on to set the kernel's environment, which has to exist."""
        self._ensure_finalized()
        codegen = self._codegen
        for variable in self._final_module.global_variables:
            if variable.name.startswith("_ZN08NumbaEnv") and not codegen._engine.is_symbol_defined(variable.name):
                module = f"{codegen._create_empty_module(variable.name)}\n{variable}"
                codegen._add_module(binding.parse_assembly(module))
                codegen._engine.finalize_object()
        return 0


class _Lower(Lower):  # type: ignore[misc]
    """Makes LLVM's code of a function; variables that are assigned once get no place on the stack.

    Numba gives them one where they are used in other blocks than that which assigns them. For bundles of many arrays
    each use is a copy of all of these then, until LLVM has seen that they are not needed. Where references are counted,
    a place on the stack also says whether they have been already.
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
        """Raise TypeError where a call makes an array, which would never be given back: nobody counts who has it."""
        typed, call = self.fndesc.typemap, assign.value
        if not isinstance(call, Expr) or call.op != "call" or not _has_array(typed[assign.target.name]):
            return
        called = typed[call.func.name]
        if isinstance(called, types.Dispatcher) and not called.dispatcher.targetoptions["_nrt"]:
            return  # it gives back what it was given
        if not isinstance(called, types.NamedTupleClass):
            raise TypeError(
                f"{self.func_ir.func_id.func_name} calls what makes arrays, at {call.loc}: see MAKES_ARRAYS"
            )


def _has_array(made: types.Type) -> bool:
    """Whether a value of a type is an array, or a bundle with some."""
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
        needless = None if self.state.flags.nrt else NopythonRewrites  # it is for expressions that make arrays
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
    """Compile a kernel once for all constants that other kernels call it with: numba would do so for each of them."""
    template = compiled.get_call_template

    def general(args: Any, kws: Any) -> Any:
        return template(tuple(map(types.unliteral, args)), {name: types.unliteral(kws[name]) for name in kws})

    compiled.get_call_template = general


def _guard(compiled: Any) -> None:
    """Let one process at a time compile a kernel for some types, and read or write what is kept of it on disk.

    Others that want it for these types wait, and read what was made. What is kept is an index and files that it names,
    which are written one after another: a process that comes in between would take the code of another version, or of
    other types.
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
    """Read what is kept of a kernel on disk; numba would first load all that it can compile, for 0.2 s a process."""
    rtsys.initialize(context)  # what machine code needs: it counts references
    with kept._guard_against_spurious_io_errors():
        return kept._load_overload(signature, context)


def _for_slices(compiled: Any, compile_kernel: Callable[[Any], Any], signature: tuple[Any, ...]) -> Any:
    """Compile a kernel for arrays with strides, and tell numba that this code is for these types too.

    Numba would find that out at each call, which takes 0.4 ms.
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
        with suppress(OSError):  # nothing is kept there, or nobody can write to it
            try:
                held.enter_context(locked(lock, wait=READING))
            except BlockingIOError:
                begin_compiling()  # as somebody else does for us
                held.callback(end_compiling)
                held.enter_context(locked(lock))
        return compile_kernel(signature)


def _alone(method: Callable[..., Any], index: Path, *arguments: Any) -> Any:
    with ExitStack() as held:
        with suppress(OSError):  # nothing is kept there, or nobody can write to it
            held.enter_context(locked(index.with_name(".kilt-lock")))
        try:
            return method(*arguments)
        except (ImportError, AttributeError):  # it is of another version, with classes that are elsewhere now
            index.unlink(missing_ok=True)
            return method(*arguments)


class _CompilationTimer(event.Listener):  # type: ignore[misc]
    """Tells `compiling` of every kernel that is compiled, and of none that is read from disk."""

    def on_start(self, event: Any) -> None:
        begin_compiling()

    def on_end(self, event: Any) -> None:
        end_compiling()


event.register("numba:compile", _CompilationTimer())


def called() -> set[tuple[str, str]]:
    """The kernels that this process has called, each with the types of its arguments: what it compiled or read."""
    return {
        (f"{kernel.__module__}.{kernel.__name__}", str(types_of_arguments))
        for kernel, _ in _kernels
        for types_of_arguments in kernel.signatures
    }


def kept_files() -> list[str]:
    """The files that list what is kept on disk of the kernels that this process has called."""
    return sorted(str(index) for kernel, index in _kernels if kernel.signatures and index.exists())


def target() -> str:
    """What machine code is made by, and for; it is kept for this alone.

    >>> numba.__version__ in target()
    True
    """
    features = binding.get_host_cpu_features().flatten()
    return f"{numba.__version__} {llvmlite.__version__} {binding.get_host_cpu_name()} {features}"


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parts(
    work: Callable[[int, int], Any],
    count: int,
    threads: int = 1,
    tick: Callable[[float], None] = lambda share: None,
    *,
    parts: int = 64,
) -> list[Any]:
    """Call ``work(start, end)`` for parts of ``range(count)`` on `threads` threads; what they return, in order.

    The parts do not depend on the number of threads. `tick` hears what share is done.
    """
    bounds = [count * part // parts for part in range(parts + 1)]
    results = []
    if threads == 1:  # to hand them to another thread takes longer than small parts do
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
    """How many bits are zero below the lowest one of a 64-bit word: a machine instruction, for use in kernels only."""
    zeros: int = _trailing_zeros(word)
    return zeros


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for an element of a one-dimensional array that will be read and written soon: memory answers meanwhile."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], _prefetch_type(place.type))
        builder.call(function, [place, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _prefetch_type(pointer: Any) -> Any:
    """The LLVM type of a prefetch: the place, whether to write, how long to keep it, whether it is data."""
    return ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
