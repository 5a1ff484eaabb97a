"""SIMD operations for kernels, which process eight numbers at once.

The compiler vectorises plain loops over one vector by itself. It does not if elements of an array are accessed at
indices that depend on data: such kernels process eight interleaved vectors with these functions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

LANES = 8


class Lanes(types.Type):  # type: ignore[misc]
    """The Numba type of eight numbers in a SIMD register."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        number = ir.FloatType() if lanes.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, lanes, ir.VectorType(number, LANES))


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return a pointer to the eight array elements that begin at an index."""
    data = context.make_array(array_type)(context, builder, array).data
    lanes = context.get_value_type(Lanes(array_type.dtype))
    return builder.bitcast(builder.gep(data, [index]), lanes.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Read eight consecutive elements of an array into a SIMD register."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.load(_place(context, builder, array, *args))
        found.align = array.dtype.bitwidth // 8
        return found

    return Lanes(array.dtype)(array, index), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    """Write the eight numbers of a SIMD register to consecutive elements of an array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        done = builder.store(args[2], _place(context, builder, array, *args[:2]))
        done.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, index, lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def add(typing_context: Any, a: Any, b: Any) -> Any:
    """Add the numbers of two SIMD registers, element by element."""
    return a(a, b), lambda context, builder, signature, args: builder.fadd(*args)


@intrinsic  # type: ignore[untyped-decorator]
def scaled(typing_context: Any, lanes: Any, factor: Any) -> Any:
    """Multiply the eight numbers of a SIMD register by a factor, in single precision."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, (many, number) = context.get_value_type(lanes), args
        if lanes.dtype != factor:
            number = builder.fpext(number, kind.element)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
        every = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.fmul(many, builder.shuffle_vector(first, first, every))

    return lanes(lanes, factor), generate


@intrinsic  # type: ignore[untyped-decorator]
def sub(typing_context: Any, a: Any, b: Any) -> Any:
    """Subtract one SIMD register from another, element by element."""
    return a(a, b), lambda context, builder, signature, args: builder.fsub(*args)
