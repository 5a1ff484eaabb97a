"""Sort hands by a value, and divide them into buckets of equal weight [Johanson16 §5.2].

Hands with equal values share a bucket, so buckets are as equal as the values allow, and none is empty.

>>> values = np.array([3, 1, 2, 2, 9])
>>> percentile_buckets(values, np.ones(5), 2).tolist()
[1, 0, 0, 0, 1]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.errors import AbstractionError


def percentile_buckets(values: npt.NDArray[Any], weights: npt.NDArray[Any], buckets: int) -> IntArray:
    """Sort points by value, divide them into buckets of equal weight, and return each point's bucket.

    The points with the lowest values are in bucket 0.
    """
    _, which = np.unique(values, return_inverse=True)
    cuts = cut_points(np.bincount(which, weights), buckets)
    return np.searchsorted(cuts, which, side="right")


def cut_points(mass: npt.NDArray[Any], buckets: int, where: str = "") -> IntArray:
    """Return where sorted values are cut into buckets of equal weight.

    The result has the index of the first distinct value of each bucket but the first.

    `mass` has the weight of each distinct value, in ascending order of the values. Each bucket takes the values whose
    weight is nearest to an equal share of the rest, and leaves at least one value for each later bucket. `where`, such
    as " in round 3", becomes part of the message of the AbstractionError that is raised if there are too few values.
    """
    if not 0 < buckets <= len(mass):
        raise AbstractionError(
            f"{buckets:,} buckets{where} need as many different values, but there are only {len(mass):,}: use fewer"
        )
    below = np.concatenate([[0.0], np.cumsum(mass)])
    cuts = np.empty(buckets - 1, dtype=np.int64)
    start = 0
    for bucket in range(buckets - 1):
        aim = below[start] + (below[-1] - below[start]) / (buckets - bucket)
        cut = int(np.searchsorted(below, aim))
        if cut > start + 1 and aim - below[cut - 1] <= below[cut] - aim:
            cut -= 1
        start = cuts[bucket] = min(max(cut, start + 1), len(mass) - (buckets - bucket - 1))
    return cuts
