"""Regret minimisers as rows of numbers, or of functions of the iteration.

After iteration t, regrets above zero are multiplied by t^α / (t^α + 1), regrets below zero by t^β / (t^β + 1), and what
has been added to the average strategy by (t / (t + 1))^γ: discounted CFR of Brown and Sandholm (2019). The limits of
the exponents give the others: ∞ keeps everything, −∞ nothing. A predictive minimiser chooses its next strategy as if
the last regrets, or a share of them, came once more (Farina, Kroer and Sandholm 2021).

A sampled walk comes to a part of the tables. What it adds is then weighted up, in place of discounting all that was
there before: by t^γ in the average, by the inverse of all discounts of positive regrets so far in regrets. Both come to
the same but for a common factor, and strategies do not change with that. Negative regrets, where they are discounted
more than positive ones, are discounted where a walk comes by.

================  =====  ======  ======  =======  ======================================================================
name                  α       β       γ  predict  what it is
================  =====  ======  ======  =======  ======================================================================
``cfr``               ∞       ∞       0        0  counterfactual regret minimization (Zinkevich et al. 2007)
``cfr+``              ∞      −∞       1        0  regret matching+, average weighted by t (Tammelin 2014; [Johanson16
                                                  chapter 9])
``linear``            1       1       1        0  linear CFR (Brown and Sandholm 2019)
``dcfr``            1.5       0       2        0  discounted CFR with its recommended exponents
``dcfr+``           1.5      −∞       4        0  discounted CFR by regret matching+ (Xu et al. 2024 call it so too)
``dcfr-restart``    1.5       0       3        0  discounted CFR whose average restarts after iterations 4, 16, 64, …:
                                                  what the program postflop-solver does
``hs-dcfr``       1 → 4  −1 → −3  30 → 25      0  exponents change over `HORIZON` iterations: HS-DCFR(30) (Zhang,
                                                  McAleer and Sandholm 2026)
``pcfr+``             ∞      −∞       2        1  predictive CFR+, average weighted by t² (Farina et al. 2021)
``sapcfr+``           ∞      −∞       2      1/3  predictive CFR+ with asymmetric steps (Meng et al. 2026)
``pdcfr+``          2.3      −∞       5        1  predictive discounted CFR+ with its recommended exponents (Xu et al.
                                                  2024)
``hs-pcfr+``          ∞      −∞  30 → 25       1  exponent changes over `HORIZON` iterations: HS-PCFR+(30)
================  =====  ======  ======  =======  ======================================================================

The papers claim that each of theirs is faster, by iterations, than what was there before, on small games. Which is the
fastest here by time, docs/reference/algorithms.md tells for some games.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError

Exponent: TypeAlias = float | Callable[[FloatArray], FloatArray]  # a number, or a function of the iteration

HORIZON = 1000  # iterations in which scheduled exponents change, as in the paper; after these they stay
# What is left of an average that restarts. Not 0: where no strategy is added to it, the average of before stays.
LEFT = 2.0**-30


def scheduled(first: float, last: float) -> Exponent:
    """An exponent that changes evenly over `HORIZON` iterations.

    >>> scheduled(30, 25)(np.array([0, 100, 1000, 2000])).tolist()
    [30.0, 29.5, 25.0, 25.0]
    """
    return lambda iteration: first + (last - first) * np.minimum(iteration / HORIZON, 1.0)


class Variant(NamedTuple):
    """A row of the table: how a regret minimiser discounts what it has learnt.

    Attributes
    ----------
    alpha, beta : float or function
        After iteration t, regrets above 0 are multiplied by t^alpha / (t^alpha + 1), those below 0 by
        t^beta / (t^beta + 1). A function takes an array of iterations and returns their exponents.
    gamma : float or function
        The sum of strategies is multiplied by (t / (t + 1))^gamma.
    predictive : float
        The next strategy is chosen as if this share of the last regrets came once more.
    restart : int
        The sum of strategies restarts after iterations that are powers of this number; 0: never. Then t in its
        multiplier counts from the last restart.
    """

    alpha: Exponent
    beta: Exponent
    gamma: Exponent
    predictive: float = 0.0
    restart: int = 0

    @property
    def unsigned(self) -> bool:
        """Whether no regret is ever below 0, and nothing is predicted: what tables without signs can keep."""
        return self.beta == -inf and not self.predictive

    @property
    def steady(self) -> bool:
        """Whether the exponents are numbers and the average never restarts: what sampled walks need."""
        return not self.restart and not any(map(callable, self[:3]))


VARIANTS = {
    "cfr": Variant(inf, inf, 0),
    "cfr+": Variant(inf, -inf, 1),
    "linear": Variant(1, 1, 1),
    "dcfr": Variant(1.5, 0, 2),
    # Subgames took the fewest iterations with it to 0.5% of the pot, from river to flop, of the exponents tried.
    "dcfr+": Variant(1.5, -inf, 4),
    "dcfr-restart": Variant(1.5, 0, 3, restart=4),
    "hs-dcfr": Variant(scheduled(1, 4), scheduled(-1, -3), scheduled(30, 25)),
    "pcfr+": Variant(inf, -inf, 2, predictive=1.0),
    "sapcfr+": Variant(inf, -inf, 2, predictive=1 / 3),
    "pdcfr+": Variant(2.3, -inf, 5, predictive=1.0),
    "hs-pcfr+": Variant(inf, -inf, scheduled(30, 25), predictive=1.0),
}
STEADY = tuple(name for name, row in VARIANTS.items() if row.steady)


def variant_named(variant: str | Variant) -> Variant:
    """A row of the table by name, or a row of one's own as it is."""
    if isinstance(variant, Variant):
        return variant
    if variant not in VARIANTS:
        raise GameError(f"unknown variant of CFR {variant!r}: use one of {', '.join(VARIANTS)}")
    return VARIANTS[variant]


def exponent_at(exponent: Exponent, iteration: FloatArray) -> float | FloatArray:
    """The exponent of each iteration, or of all."""
    return exponent(iteration) if callable(exponent) else exponent


def last_power(base: int, number: int) -> int:
    """The greatest power of `base` that is not above a number of 1 or more.

    >>> [last_power(4, number) for number in (1, 3, 4, 15, 16, 100)]
    [1, 1, 4, 4, 16, 64]
    """
    power = 1
    while power * base <= number:
        power *= base
    return power


def multipliers(variant: Variant, iteration: FloatArray) -> FloatArray:
    """[iteration, 3]: what regrets above zero, regrets below zero and the average are multiplied by after each.

    >>> multipliers(VARIANTS["dcfr"], np.array([1.0, 4.0])).round(4).tolist()
    [[0.5, 0.5, 0.25], [0.8889, 0.5, 0.64]]
    >>> multipliers(VARIANTS["cfr+"], np.array([1.0])).tolist()
    [[1.0, 0.0, 0.5]]
    """

    def kept(exponent: Exponent) -> FloatArray:
        if not callable(exponent) and np.isinf(exponent):
            return np.full(len(iteration), 1.0 if exponent > 0 else 0.0)
        power = iteration ** exponent_at(exponent, iteration)
        return power / (power + 1)

    since = iteration
    if variant.restart:
        since = iteration - np.array([last_power(variant.restart, t) for t in iteration.astype(int).tolist()])
    average = (since / (since + 1)) ** exponent_at(variant.gamma, iteration)
    average[since == 0] = LEFT
    return np.stack([kept(variant.alpha), kept(variant.beta), average], axis=1)


def discounts(variant: Variant, first: int, count: int, *, sampled: bool = False) -> FloatArray:
    """The numbers of `rule.Discount` for some iterations, of which the first of all has number 1.

    Parameters
    ----------
    variant : Variant
        A row of the table.
    first, count : int
        The iterations: `first`, `first` + 1, …
    sampled : bool
        Whether a walk comes to a part of the tables only.

    Returns
    -------
    ndarray, shape (count, 5)
        Columns `above`, `below`, `average`, `weight`, `average_weight`.

    >>> discounts(VARIANTS["cfr+"], 1, 1).tolist()
    [[1.0, 0.0, 0.5, 1.0, 1.0]]
    >>> discounts(VARIANTS["linear"], 3, 2, sampled=True).round(4).tolist()
    [[1.0, 1.0, 1.0, 3.0, 3.0], [1.0, 1.0, 1.0, 4.0, 4.0]]
    """
    if sampled and not variant.steady:
        raise GameError(
            "where boards are drawn, exponents must be numbers and the average must not restart: "
            f"use one of {', '.join(STEADY)}"
        )
    iteration = np.arange(1.0 if sampled else first, first + count)
    above, below, average = multipliers(variant, iteration).T
    one = np.ones(len(iteration))
    if sampled:
        weight = np.concatenate([[1.0], np.cumprod(1 / above)[:-1]])[: len(one)]
        rows = np.stack([one, below / above, one, weight, iteration ** exponent_at(variant.gamma, iteration)], axis=1)
    else:
        rows = np.stack([above, below, average, one, one], axis=1)
    return rows[len(rows) - count :]
