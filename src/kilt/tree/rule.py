"""The rule by which players learn: regret matching, the update of regrets, and that of the average strategy.

All representations of a game learn by these few lines: flat trees, hands, buckets and pairs of buckets. `rule.cuh` says
the same in CUDA. By which numbers an iteration discounts is a row of `solve.variants`.

    regret  R_t(I, a) = d · (R_{t−1}(I, a) + w · r_t(I, a)), d = `above` for sums above 0 and `below` for others
    average S_t(I, a) = k · (S_{t−1}(I, a) + v · π_t(I) · σ_t(I, a))
    next    σ_{t+1}(I, a) = R_t(I, a)⁺ / Σ_b R_t(I, b)⁺, uniform where no regret is above 0
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.jit import inlined, subkernel

TINY = (
    1e-37  # sums of positive regrets up to this one count as none: their inverse may not be a single-precision number
)


class Discount(NamedTuple):
    """How one iteration enters the tables: what is added is weighted, then the sums are multiplied."""

    above: float  # d for regrets above zero
    below: float  # d for regrets below zero
    average: float  # k
    weight: float  # w
    average_weight: float  # v
    predictive: float  # the share of the last regrets that the next strategy takes to come once more


@inlined
def learnt(regret: Any, gained: Any, least: Any, weight: Any, above: Any, below: Any) -> Any:
    """A sum of regrets after one more, `gained`, which counts as 0 where it is not larger than rounding, `least`.

    With `above` and `below` of 1, and a `weight` times the share that is predicted, it is what a predictive player
    takes the sum to be after the next iteration.
    """
    total = regret + weight * gained if abs(gained) > least else regret
    return total * (above if total > 0 else below)


@inlined
def learnt_plus(regret: Any, gained: Any, least: Any, weight: Any, above: Any, zero: Any) -> Any:
    """`learnt` where `below` is 0, as a maximum; `zero` is a 0 of the type of the numbers."""
    total = regret + weight * gained if abs(gained) > least else regret
    return max(total, zero) * above


@inlined
def averaged(total: Any, more: Any, weight: Any, kept: Any) -> Any:
    """A sum of strategies after one more."""
    return (total + weight * more) * kept


@subkernel
def match_columns(
    table: npt.NDArray[np.floating[Any]],
    first: int,
    actions: int,
    start: np.uint64,
    end: np.uint64,
    scale: FloatArray,
) -> None:
    """Regret matching for some columns of a table: the actions of a decision are its rows from `first` on.

    The probability of an action is max(entry, 0) · scale[0] + scale[1]: this writes both for each column, and the
    probability is computed where it is needed. Two and three actions, which most decisions have, take one pass.
    """
    number = scale.dtype.type
    zero, one, even, least = number(0), number(1), number(1.0 / actions), number(TINY)
    if actions == 2:
        for column in range(start, end):
            total = max(table[first, column], zero) + max(table[first + 1, column], zero)
            scale[1, column] = zero if total > least else even
            scale[0, column] = one / total if total > least else zero
        return
    if actions == 3:
        for column in range(start, end):
            total = (
                max(table[first, column], zero)
                + max(table[first + 1, column], zero)
                + max(table[first + 2, column], zero)
            )
            scale[1, column] = zero if total > least else even
            scale[0, column] = one / total if total > least else zero
        return
    for column in range(start, end):
        scale[0, column] = max(table[first, column], zero)
    for row in range(first + 1, first + actions):
        for column in range(start, end):
            scale[0, column] += max(table[row, column], zero)
    for column in range(start, end):
        total = scale[0, column]
        scale[1, column] = zero if total > least else even
        scale[0, column] = one / total if total > least else zero
