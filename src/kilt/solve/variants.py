"""Variants of CFR, which discount earlier regrets and strategies in different ways.

After iteration t, regrets above zero are multiplied by t^α / (t^α + 1), regrets below zero by t^β / (t^β + 1), and the
sum of strategies by (t / (t + 1))^γ: discounted CFR of Brown and Sandholm (2019). The limits of the exponents give
other algorithms: ∞ keeps everything, −∞ nothing. A predictive minimiser chooses its next strategy as if the last
regrets, or a share of them, occurred once more (Farina, Kroer and Sandholm 2021).

A sampled pass reaches only a part of the tables. Instead of discounting all earlier sums, its contributions get a
larger weight: t^γ in the average, and the inverse of all discounts of positive regrets so far in regrets. Both give the
same tables up to a common factor, which does not change strategies. If negative regrets are discounted more than
positive ones, they are discounted when a pass reaches them.

================  =====  ======  ======  =======  ======================================================================
name                  α       β       γ  predict  description
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
``dcfr-bounded``      1       0       5        0  discounted CFR with bounded steps: see below; only for tables by hand
``dcfr+bounded``      1      −∞       5        0  the same by regret matching+
================  =====  ======  ======  =======  ======================================================================

Bounded steps: before an iteration t adds the regrets r of a hand at a decision, its earlier positive regrets R are
multiplied by max(1, inertia · t · Σ r⁺ / Σ R⁺). The regrets of the iteration are then at most 1 / (inertia · t) of the
sum, so that it changes the strategy only a little. Without this bound, discounts as strong as those with α = 1 lead to
oscillations: where the opponent rarely goes, R is small, and the first larger r turns the strategy around. These two
variants are kilt's own, and no convergence has been proved.

The papers claim that each of their variants needs fewer iterations than earlier ones, on small games. For the fastest
ones by time in kilt, see docs/reference/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError

Exponent: TypeAlias = float | Callable[[FloatArray], FloatArray]  # a number, or a function of the iteration

HORIZON = 1000  # iterations over which scheduled exponents change, as in the paper; afterwards they are constant
# Factor of the average at a restart. It is not 0, so that unreached information sets keep their earlier average.
LEFT = 2.0**-30


def scheduled(first: float, last: float) -> Exponent:
    """Return a function that gives the exponent of a CFR discount at each iteration.

    It changes from `first` to `last` in equal steps.

    >>> scheduled(30, 25)(np.array([0, 100, 1000, 2000])).tolist()
    [30.0, 29.5, 25.0, 25.0]
    """
    return lambda iteration: first + (last - first) * np.minimum(iteration / HORIZON, 1.0)


class Variant(NamedTuple):
    """A variant of CFR, defined by its discounts of earlier regrets and strategies.

    Attributes
    ----------
    alpha, beta : float or function
        After iteration t, regrets above 0 are multiplied by t^alpha / (t^alpha + 1), those below 0 by
        t^beta / (t^beta + 1). A function takes an array of iterations and returns their exponents.
    gamma : float or function
        The sum of strategies is multiplied by (t / (t + 1))^gamma.
    predictive : float
        The next strategy is chosen as if this share of the last regrets occurred once more.
    restart : int
        The sum of strategies restarts after iterations that are powers of this number; 0: never. The t in its
        multiplier then counts from the last restart.
    inertia : float
        The regrets of iteration t, of a hand at a decision, are at most 1 / (inertia · t) of the sum of earlier ones,
        which are scaled up if necessary. 0: no bound.
    """

    alpha: Exponent
    beta: Exponent
    gamma: Exponent
    predictive: float = 0.0
    restart: int = 0
    inertia: float = 0.0

    @property
    def unsigned(self) -> bool:
        """Whether regrets are never negative or predicted, so that unsigned tables can store them."""
        return self.beta == -inf and not self.predictive

    @property
    def steady(self) -> bool:
        """Whether the variant can be used with sampling.

        Its exponents must be constant, its steps must not be bounded, and its average must never restart.
        """
        return not self.restart and not self.inertia and not any(map(callable, self[:3]))


VARIANTS = {
    "cfr": Variant(inf, inf, 0),
    "cfr+": Variant(inf, -inf, 1),
    "linear": Variant(1, 1, 1),
    "dcfr": Variant(1.5, 0, 2),
    # Of the exponents tried, these took the fewest iterations to 0.5% of the pot, in subgames from river to flop.
    "dcfr+": Variant(1.5, -inf, 4),
    "dcfr-restart": Variant(1.5, 0, 3, restart=4),
    "hs-dcfr": Variant(scheduled(1, 4), scheduled(-1, -3), scheduled(30, 25)),
    "pcfr+": Variant(inf, -inf, 2, predictive=1.0),
    "sapcfr+": Variant(inf, -inf, 2, predictive=1 / 3),
    "pdcfr+": Variant(2.3, -inf, 5, predictive=1.0),
    "hs-pcfr+": Variant(inf, -inf, scheduled(30, 25), predictive=1.0),
}
# Only tables with a column for each hand support bounded steps. Of the values tried for `inertia`, 0.1 to 0.4, these
# took the fewest iterations to 0.3% of the pot, in subgames from river to flop.
BOUNDED = {
    "dcfr-bounded": Variant(1, 0, 5, inertia=0.2),
    "dcfr+bounded": Variant(1, -inf, 5, inertia=0.3),
}
STEADY = tuple(name for name, row in VARIANTS.items() if row.steady)


def variant_named(variant: str | Variant) -> Variant:
    """Return a variant of CFR by name, or a given `Variant` unchanged."""
    if isinstance(variant, Variant):
        return variant
    known = VARIANTS | BOUNDED
    if variant not in known:
        raise GameError(f"unknown variant of CFR {variant!r}: use one of {', '.join(known)}")
    return known[variant]


def exponent_at(exponent: Exponent, iteration: FloatArray) -> float | FloatArray:
    """Return the exponent of a discount at the given iterations.

    It is a single number if it is the same for all iterations.
    """
    return exponent(iteration) if callable(exponent) else exponent


def last_power(base: int, number: int) -> int:
    """Return the greatest power of `base` up to `number`.

    `number` must be at least 1.

    >>> [last_power(4, number) for number in (1, 3, 4, 15, 16, 100)]
    [1, 1, 4, 4, 16, 64]
    """
    power = 1
    while power * base <= number:
        power *= base
    return power


def multipliers(variant: Variant, iteration: FloatArray) -> FloatArray:
    """Return the factors that discount regrets and average strategies after each iteration.

    The columns are the factors of positive regrets, of negative regrets, and of the average. The shape is (iterations,
    3).

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
    """Return the discount factors of several CFR iterations, one per row.

    The columns are fields of `rule.Discount`.

    Parameters
    ----------
    variant : Variant
        A row of the table.
    first, count : int
        The iterations: `first`, `first` + 1, …
    sampled : bool
        Whether a pass reaches only a part of the tables.

    Returns
    -------
    ndarray, shape (count, 6)
        Columns `above`, `below`, `average`, `weight`, `average_weight`, `inertia`.

    >>> discounts(VARIANTS["cfr+"], 1, 1).tolist()
    [[1.0, 0.0, 0.5, 1.0, 1.0, 0.0]]
    >>> discounts(VARIANTS["linear"], 3, 2, sampled=True).round(4).tolist()
    [[1.0, 1.0, 1.0, 3.0, 3.0, 0.0], [1.0, 1.0, 1.0, 4.0, 4.0, 0.0]]
    """
    if sampled and not variant.steady:
        raise GameError(
            "with sampled boards, exponents must be constant and the average must not restart: "
            f"use one of {', '.join(STEADY)}"
        )
    iteration = np.arange(1.0 if sampled else first, first + count)
    above, below, average = multipliers(variant, iteration).T
    one = np.ones(len(iteration))
    if sampled:
        weight = np.concatenate([[1.0], np.cumprod(1 / above)[:-1]])[: len(one)]
        average_weight = iteration ** exponent_at(variant.gamma, iteration)
        rows = np.stack([one, below / above, one, weight, average_weight, 0 * one], axis=1)
    else:
        rows = np.stack([above, below, average, one, one, variant.inertia * iteration], axis=1)
    return rows[len(rows) - count :]
