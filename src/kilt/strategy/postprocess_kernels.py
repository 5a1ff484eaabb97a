"""Compiled functions that apply post-processing rules to action probabilities.

The results have the same digits as those of `postprocess.apply`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.jit import kernel, subkernel

CLASSES = 3  # fold, call and bet: scratch entries that `post_process` needs after the actions of a row


class RuleNumbers(NamedTuple):
    """A post-processing rule as plain numbers, for compiled code."""

    fold: float  # fold with certainty if folding is more likely than this
    among: float  # the threshold among classes of actions
    inside: float  # the threshold inside a class
    by_kind: bool  # whether all bets are one class; otherwise every action is


@subkernel
def drop_unlikely(row: FloatArray, begin: int, end: int, threshold: float) -> None:
    """Set probabilities below a threshold to 0, and rescale the others to sum to 1.

    The probabilities are the entries of `row` from `begin` up to `end`.

    The most likely entries stay, even if they are below the threshold.
    """
    least = row[begin]
    for place in range(begin + 1, end):
        least = max(least, row[place])
    least = min(least, threshold)
    total = 0.0
    for place in range(begin, end):
        if row[place] < least:
            row[place] = 0.0
        total += row[place]
    for place in range(begin, end):
        row[place] /= total


@subkernel
def post_process(rule: RuleNumbers, call: int, row: FloatArray, count: int) -> None:
    """Apply a post-processing rule to the action probabilities of one decision, in place.

    The probabilities are the first `count` entries of `row`: fold, then call, then bets. `call` is the index of the
    call, 1 if a fold comes before it, otherwise 0. The `CLASSES` entries after `count` are scratch memory.
    """
    bets = call + 1
    if call == 1 and rule.fold < 1 and row[0] > rule.fold:
        row[0] = 1.0
        for place in range(1, count):
            row[place] = 0.0
    elif not rule.by_kind:
        drop_unlikely(row, 0, count, rule.among)
    else:
        total = 0.0
        for place in range(bets, count):
            total += row[place]
        for place in range(bets):
            row[count + place] = row[place]
        row[count + bets] = total
        drop_unlikely(row, count, count + bets + 1, rule.among)
        for place in range(bets):
            row[place] = row[count + place]
        share = row[count + bets]
        if share > 0:
            drop_unlikely(row, bets, count, rule.inside * total)
        for place in range(bets, count):
            row[place] *= share


@kernel
def post_process_table(
    rule: RuleNumbers,
    first: IntArray,
    count: IntArray,
    call: IntArray,
    ruled: BoolArray,
    shares: npt.NDArray[Any],
    scratch: FloatArray,
    after: npt.NDArray[np.float32],
) -> None:
    """Apply a post-processing rule to a whole strategy, and write the result to an array.

    The strategy consists of weights.

    Information sets whose weights are all 0 stay 0. `shares` and `after` have an entry for each slot. `first` [decision
    + 1] has the first slot of each decision, `count` [decision] its number of actions, and `call` the index of its
    call. The rule applies to decisions for which `ruled` is true. `scratch` needs `CLASSES` entries more than the
    maximum number of actions.
    """
    for decision in range(len(count)):
        n = count[decision]
        for slot in range(first[decision], first[decision + 1], n):
            whole = 0.0
            for action in range(n):
                whole += shares[slot + action]
            if whole > 0:
                for action in range(n):
                    scratch[action] = shares[slot + action] / whole
                if ruled[decision]:
                    post_process(rule, call[decision], scratch, n)
            for action in range(n):
                after[slot + action] = scratch[action] if whole > 0 else 0.0
