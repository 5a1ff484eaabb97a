"""Regret minimisers as rows of numbers.

After iteration t, regrets above zero are multiplied by t^α / (t^α + 1), regrets below zero by t^β / (t^β + 1), and what
has been added to the average strategy by (t / (t + 1))^γ: discounted CFR of Brown and Sandholm (2019). The limits of
the exponents give the others: ∞ keeps everything, −∞ nothing. A predictive minimiser chooses its next strategy as if
the last regrets came once more (Farina, Kroer and Sandholm 2021).

A sampled walk comes to a part of the tables. What it adds is then weighted up, in place of discounting all that was
there before: by t^γ in the average, by the inverse of all discounts of positive regrets so far in regrets. Both come to
the same but for a common factor, and strategies do not change with that. Negative regrets, where they are discounted
more than positive ones, are discounted where a walk comes by.

=========  =====  =====  ====  ==========================================================================
name           α      β     γ  what it is
=========  =====  =====  ====  ==========================================================================
``cfr``        ∞      ∞     0  counterfactual regret minimisation (Zinkevich et al. 2007)
``cfr+``       ∞     −∞     1  regret matching+, average weighted by t (Tammelin 2014; [Johanson16 chapter 9])
``linear``     1      1     1  linear CFR (Brown and Sandholm 2019)
``dcfr``     1.5      0     2  discounted CFR with its recommended exponents
``dcfr+``    1.5     −∞     4  discounted CFR by regret matching+, average weighted by t⁴
``pcfr+``      ∞     −∞     2  predictive CFR+, average weighted by t²
=========  =====  =====  ====  ==========================================================================
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError


class Variant(NamedTuple):
    """A row of the table: how a regret minimiser discounts what it has learnt.

    Attributes
    ----------
    alpha, beta : float
        After iteration t, regrets above 0 are multiplied by t^alpha / (t^alpha + 1), those below 0 by
        t^beta / (t^beta + 1).
    gamma : float
        The sum of strategies is multiplied by (t / (t + 1))^gamma.
    predictive : bool
        Whether the next strategy is chosen as if the last regrets came once more.
    """

    alpha: float
    beta: float
    gamma: float
    predictive: bool = False


VARIANTS = {
    "cfr": Variant(inf, inf, 0),
    "cfr+": Variant(inf, -inf, 1),
    "linear": Variant(1, 1, 1),
    "dcfr": Variant(1.5, 0, 2),
    # Subgames took the fewest iterations with it to 0.5% of the pot, from river to flop, of the exponents tried.
    "dcfr+": Variant(1.5, -inf, 4),
    "pcfr+": Variant(inf, -inf, 2, predictive=True),
}


def variant_named(variant: str | Variant) -> Variant:
    """A row of the table by name, or a row of one's own as it is."""
    if isinstance(variant, Variant):
        return variant
    if variant not in VARIANTS:
        raise GameError(f"unknown variant of CFR {variant!r}: use one of {', '.join(VARIANTS)}")
    return VARIANTS[variant]


def multipliers(variant: Variant, iteration: FloatArray) -> FloatArray:
    """[iteration, 3]: what regrets above zero, regrets below zero and the average are multiplied by after each.

    >>> multipliers(VARIANTS["dcfr"], np.array([1.0, 4.0])).round(4).tolist()
    [[0.5, 0.5, 0.25], [0.8889, 0.5, 0.64]]
    >>> multipliers(VARIANTS["cfr+"], np.array([1.0])).tolist()
    [[1.0, 0.0, 0.5]]
    """

    def kept(exponent: float) -> FloatArray:
        if np.isinf(exponent):
            return np.full(len(iteration), 1.0 if exponent > 0 else 0.0)
        power = iteration**exponent
        return power / (power + 1)

    average = (iteration / (iteration + 1)) ** variant.gamma
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
    iteration = np.arange(1.0 if sampled else first, first + count)
    above, below, average = multipliers(variant, iteration).T
    one = np.ones(len(iteration))
    if sampled:
        weight = np.concatenate([[1.0], np.cumprod(1 / above)[:-1]])[: len(one)]
        rows = np.stack([one, below / above, one, weight, iteration**variant.gamma], axis=1)
    else:
        rows = np.stack([above, below, average, one, one], axis=1)
    return rows[len(rows) - count :]
