"""Regret minimisers as rows of numbers.

After iteration t, regrets above zero are multiplied by t^α / (t^α + 1), regrets below zero by t^β / (t^β + 1), and what
has been added to the average strategy by (t / (t + 1))^γ: discounted CFR of Brown and Sandholm (2019). The limits of
the exponents give the others: ∞ keeps everything, −∞ nothing. A predictive minimiser chooses its next strategy as if
the last regrets came once more (Farina, Kroer and Sandholm 2021).

=========  =====  =====  ====  ==========================================================================
name           α      β     γ  what it is
=========  =====  =====  ====  ==========================================================================
``cfr``        ∞      ∞     0  counterfactual regret minimisation (Zinkevich et al. 2007)
``cfr+``       ∞     −∞     1  regret matching+, average weighted by t (Tammelin 2014; [Johanson16 chapter 9])
``linear``     1      1     1  linear CFR (Brown and Sandholm 2019)
``dcfr``     1.5      0     2  discounted CFR with its recommended exponents
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
