"""The learning rule of CFR: regret matching, and updates of regrets and average strategies.

All representations of a game use these few lines: flat trees, hands, buckets and pairs of buckets. `rule.cuh` is the
same rule in CUDA. A row of `solve.variants` defines the discounts of each iteration.

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

TINY = 1e-37  # smaller sums of positive regrets count as 0: their inverse may overflow in single precision


class Discount(NamedTuple):
    """The weights and discount factors of one CFR iteration.

    An iteration weights new values, adds them, and discounts the sums.
    """

    above: float  # d for regrets above zero
    below: float  # d for regrets below zero
    average: float  # k
    weight: float  # w
    average_weight: float  # v
    # Bound on the regrets of an iteration, as a share of the sum of earlier ones, is 1 / `inertia`; 0: no bound. See
    # `learning_kernels.bound_steps`.
    inertia: float = 0.0
    predictive: float = 0.0  # share of the last regrets that the next strategy expects to occur once more


@inlined
def updated_regret(regret: Any, gained: Any, least: Any, weight: Any, above: Any, below: Any) -> Any:
    """Return an action's sum of regrets after one more iteration.

    `gained` is the regret of the iteration. It counts as 0 up to the rounding error `least`.

    With `above` and `below` of 1, and a `weight` times the predicted share, the result is the sum that a predictive
    player expects after the next iteration.
    """
    total = regret + weight * gained if abs(gained) > least else regret
    return total * (above if total > 0 else below)


@inlined
def updated_regret_plus(regret: Any, gained: Any, least: Any, weight: Any, above: Any, zero: Any) -> Any:
    """Return an action's sum of regrets after one more iteration of CFR+, which is never negative."""
    total = regret + weight * gained if abs(gained) > least else regret
    return max(total, zero) * above


@inlined
def updated_average(total: Any, more: Any, weight: Any, kept: Any) -> Any:
    """Return an action's sum of probabilities after one more iteration, for the average strategy."""
    return (total + weight * more) * kept


@subkernel
def match_columns(
    table: npt.NDArray[np.floating[Any]],
    first: int,
    step: int,
    actions: int,
    start: np.uint64,
    end: np.uint64,
    scale: FloatArray,
) -> None:
    """Write the two factors by which regret matching turns a hand's regrets into probabilities.

    The probability of an action is max(entry, 0) · scale[0] + scale[1]: this function writes both factors for each
    column, and the probability is computed where it is needed. Two and three actions, the most frequent numbers, take a
    single pass. The rows of the actions begin with `first`, and are `step` apart.
    """
    number = scale.dtype.type
    zero, one, even, least = number(0), number(1), number(1.0 / actions), number(TINY)
    if actions == 2:
        for column in range(start, end):
            total = max(table[first, column], zero) + max(table[first + step, column], zero)
            scale[1, column] = zero if total > least else even
            scale[0, column] = one / total if total > least else zero
        return
    if actions == 3:
        for column in range(start, end):
            total = (
                max(table[first, column], zero)
                + max(table[first + step, column], zero)
                + max(table[first + 2 * step, column], zero)
            )
            scale[1, column] = zero if total > least else even
            scale[0, column] = one / total if total > least else zero
        return
    for column in range(start, end):
        scale[0, column] = max(table[first, column], zero)
    for row in range(first + step, first + actions * step, step):
        for column in range(start, end):
            scale[0, column] += max(table[row, column], zero)
    for column in range(start, end):
        total = scale[0, column]
        scale[1, column] = zero if total > least else even
        scale[0, column] = one / total if total > least else zero
