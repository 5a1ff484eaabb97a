"""Names for the array types that most of kilt uses.

Comments give shapes where arrays are created or stored.

>>> import numpy as np
>>> reach: FloatArray = np.ones(3)
>>> reach.dtype.name
'float64'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
SingleArray: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int64]
ByteArray: TypeAlias = npt.NDArray[np.int8]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Deferred:
    """An array that is not in memory, but can be written to a given array when needed.

    >>> there = Deferred((2, 3), np.dtype(np.int8), lambda to: to.fill(7))
    >>> there.nbytes, np.asarray(there).tolist()
    (6, [[7, 7, 7], [7, 7, 7]])
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Callable[[Array], object]  # writes the content to an array of this shape and type

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        table = np.empty(self.shape, self.dtype)
        self.fill(table)
        return table if dtype is None else table.astype(dtype)


def data_type(like: npt.DTypeLike) -> np.dtype[Any]:
    """Convert the name of a data type, such as "float32", to a NumPy data type.

    Type checkers try each overload of `np.dtype` with each of the types of `DTypeLike`, for up to a second per call;
    this function avoids that.

    >>> data_type("float32").itemsize
    4
    """
    found: np.dtype[Any] = np.dtype(cast(Any, like))
    return found
