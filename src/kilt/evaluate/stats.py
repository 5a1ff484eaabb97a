"""Win rates of matches with 95% intervals, in mbb/h: thousandths of a big blind per hand.

>>> won = estimate_mean([50.0, -100.0, 150.0, 60.0])
>>> print(won)
+40.0 ± 101.5
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, inf, nan, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.errors import PlayError
from kilt.play.dealer import Hand
from kilt.play.match import Match

WIDTH = NormalDist().inv_cdf(0.975)  # half-width of a 95% interval in standard errors


class Estimate(NamedTuple):
    """An estimated mean, with the half-width of its 95% interval."""

    mean: float
    margin: float

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and upper ends of the 95% interval."""
        return self.mean - self.margin, self.mean + self.margin

    def __str__(self) -> str:
        return f"{round(self.mean, 1) + 0.0:+.1f} ± {self.margin:.1f}"


def estimate_mean(values: npt.ArrayLike) -> Estimate:
    """Return the mean of independent values with its 95% interval.

    The interval is that of the normal distribution, which suits thirty values or more.

    Parameters
    ----------
    values : array_like, shape (n,)
        At least one. The interval of a single value is infinite.

    Returns
    -------
    Estimate
        In the unit of the values.

    Raises
    ------
    PlayError
        There are no values, or the array is not one-dimensional.
    """
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1 or not len(row):
        raise PlayError(f"an estimate needs a row of at least one value, not an array of shape {row.shape}")
    error = float(row.std(ddof=1)) / sqrt(len(row)) if len(row) > 1 else inf
    return Estimate(float(row.mean()), WIDTH * error)


def student_width(number: int) -> float:
    """Return the half-width of a 95% interval in standard deviations, for a given number of values.

    The values are independent, and the interval is by Student's distribution; inf for less than three values.

    >>> [round(student_width(number) * sqrt(number), 3) for number in (3, 10)]  # as in tables
    [4.303, 2.262]
    """
    return student_quantile(0.975, number - 1) / sqrt(number) if number >= 3 else inf


def student_quantile(level: float, freedom: int) -> float:
    """Return a quantile of Student's t-distribution.

    With t = √freedom · tan θ, the probability of values between −t and t is a sum of freedom / 2 terms (Abramowitz and
    Stegun: Handbook of Mathematical Functions, 26.7.3 and 26.7.4). The sum is concave in θ, so Newton's method climbs
    from θ = 0 to the solution without overshooting.

    Parameters
    ----------
    level : float
        Probability of smaller values, at least 0.5 and less than 1.
    freedom : int
        Degrees of freedom, at least 2.
    """
    odd = freedom % 2
    orders = np.arange(1 + odd, freedom - 1, 2)
    ratios = orders / (orders + 1)
    unit = 2 / pi if odd else 1.0
    angle, before = 0.0, -1.0
    while angle > before:
        cosine = cos(angle)
        terms = cosine**odd * np.cumprod(np.append(1.0, ratios * cosine**2))
        inside = unit * (odd * angle + sin(angle) * float(terms.sum()))
        slope = unit * (freedom - 1) * float(terms[-1]) * cosine
        before, angle = angle, angle + (2 * level - 1 - inside) / slope
    return sqrt(freedom) * tan(angle)


def win_rate(match: Match) -> Estimate:
    """Return the first player's win rate in a match, with its 95% interval.

    The two hands of a duplicate pair are one observation: they share their cards, so they are not independent.

    Parameters
    ----------
    match : Match
        A match that `kilt.play.match.play_match` returned.

    Returns
    -------
    Estimate
        In mbb/h, thousandths of a big blind per hand; ten of them are one bb/100.
    """
    return estimate_mean(match.results * (1000 / match.big_blind))


def played_rate(match: Match) -> Estimate:
    """Return the first player's raw win rate in the hands played, in mbb/h, with its 95% interval."""
    played = match.results if match.played is None else match.played
    return estimate_mean(played * (1000 / match.big_blind))


def played_hands(match: Match) -> float:
    """Return the number of ordinary hands needed for an interval as narrow as the match's.

    Returns nan if this is unknown.

    The played hands of the match give the standard deviation.
    """
    played, margin = match.results if match.played is None else match.played, win_rate(match).margin
    if not 0 < margin < inf or len(played) < 2:
        return nan
    units = (WIDTH * float(played.std(ddof=1)) * 1000 / match.big_blind / margin) ** 2
    return units * match.hands / len(match.results)


def are_duplicate_pairs(hands: Sequence[Hand]) -> bool:
    """Return whether hands come in duplicate pairs: the same cards with the players swapped."""
    pairs = list(zip(hands[::2], hands[1::2], strict=False))
    return 2 * len(pairs) == len(hands) and all(
        one.cards.holes == other.cards.holes and one.players == other.players[::-1] for one, other in pairs
    )
