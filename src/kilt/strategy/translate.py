"""Translate bets outside an abstraction to the abstraction's bet sizes [Brown15 §4].

A bet of x pots lies between two abstract sizes, A < x < B. A mapping gives the probability of translating the bet to A.
The mappings here are from S. Ganzfried and T. Sandholm, Action translation in extensive-form games with large action
spaces (IJCAI 2013), GS13 below; `MAPPINGS` has all, by name. [Brown15] uses the pseudo-harmonic one.

>>> sizes = (0.5, 1.0, 2.0)
>>> round(pseudo_harmonic(0.5, 1.0, 0.75), 4)
0.4286
>>> translate(sizes, 0.75, pseudo_harmonic, draw=0.4), translate(sizes, 0.75, pseudo_harmonic, draw=0.5)
(0, 1)
>>> translate(sizes, 9.0, pseudo_harmonic, draw=0.4)  # larger than all
2
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kilt.errors import PlayError

Mapping: TypeAlias = Callable[[float, float, float], float]  # A, B and x, A ≤ x ≤ B: the probability of A


def pseudo_harmonic(a: float, b: float, x: float) -> float:
    """Return the probability of translating a bet to the smaller of two sizes, by the pseudo-harmonic mapping.

    The sizes are A and B pots, and the bet is x pots.

    A player who calls bets of A and B pots with frequencies 1/(1+A) and 1/(1+B) then calls a bet of x pots with
    frequency 1/(1+x), as a player should (GS13, section 6: Rand-psHar).

    >>> round(pseudo_harmonic(0, 1, 1 / 3), 12)
    0.5
    """
    return (b - x) * (1 + a) / ((b - a) * (1 + x))


def arithmetic(a: float, b: float, x: float) -> float:
    """Return the probability of translating a bet to the smaller of two sizes, by linear interpolation.

    The sizes are A and B pots, and the bet is x pots.

    It is ½ at the midpoint of A and B (GS13, section 5.2: Rand-Arith).
    """
    return (b - x) / (b - a)


def geometric(a: float, b: float, x: float) -> float:
    """Return the probability of translating a bet to the smaller of two sizes, by the geometric mapping.

    The sizes are A and B pots, and the bet is x pots.

    It is ½ at √(AB) (GS13, section 5.5: Rand-Geo-2, which Tartanian4 used). If A = 0, a check, every bet is translated
    to B, as ratios imply; another mapping is better then.

    >>> round(geometric(1, 4, 2), 12), geometric(0, 1, 0.001)
    (0.5, 0.0)
    """
    return 1.0 if x <= a else a * (b + x) * (b - x) / ((b - a) * (x * x + a * b))


def geometric_1(a: float, b: float, x: float) -> float:
    """Return the probability of translating a bet to the smaller of two sizes, by an earlier geometric mapping.

    The sizes are A and B pots, and the bet is x pots.

    It is ½ at √(AB) too, and a little steeper there than `geometric` (GS13, section 5.4: Rand-Geo-1, which Sartre and
    Hyperborean used).
    """
    return 1.0 if x <= a else a * (b - x) / (a * (b - x) + x * (x - a))


@dataclass(frozen=True)
class Deterministic:
    """A deterministic translation of bets, which picks the size that a mapping makes more likely.

    For a tie, it is the larger size, as in GS13.
    """

    mapping: Mapping

    def __call__(self, a: float, b: float, x: float) -> float:
        """Return 1 if a bet of x pots is translated to the smaller size A, and 0 if it is translated to B."""
        return float(self.mapping(a, b, x) > 0.5)


_RANDOM: dict[str, Mapping] = {
    "pseudo-harmonic": pseudo_harmonic,
    "arithmetic": arithmetic,
    "geometric": geometric,
    "geometric-1": geometric_1,
}
MAPPINGS: dict[str, Mapping] = _RANDOM | {
    f"deterministic-{name}": Deterministic(mapping) for name, mapping in _RANDOM.items()
}


def mapping_named(name: str) -> Mapping:
    """Return a mapping for bet translation by name, such as ``pseudo-harmonic``.

    Raises PlayError if the name is unknown.
    """
    if name not in MAPPINGS:
        raise PlayError(f"unknown translation {name!r}: use one of {', '.join(MAPPINGS)}")
    return MAPPINGS[name]


def translations(sizes: Sequence[float], x: float, mapping: Mapping) -> list[tuple[int, float]]:
    """Return the abstract bet sizes to which a bet may be translated, with their probabilities.

    Parameters
    ----------
    sizes : sequence of float
        The sizes of the abstraction in pots, ascending; at least one.
    x : float
        The bet, in pots. A bet below the smallest size is translated to it, one above the largest size to that.
    mapping : Mapping
        Probability with which a bet between two sizes is translated to the smaller one.

    Returns
    -------
    list of (int, float)
        One or two indices of `sizes`, ascending, each with its probability, which is above 0.

    Raises
    ------
    PlayError
        There are no sizes.

    >>> [(place, round(share, 4)) for place, share in translations((0.5, 1.0, 2.0), 0.75, pseudo_harmonic)]
    [(0, 0.4286), (1, 0.5714)]
    """
    if not sizes:
        raise PlayError(f"a bet of {x} pots cannot be translated: give at least one abstract size")
    above = bisect_left(sizes, x)
    if above in (0, len(sizes)) or sizes[above] == x:
        return [(min(above, len(sizes) - 1), 1.0)]
    smaller = mapping(sizes[above - 1], sizes[above], x)
    return [(place, share) for place, share in ((above - 1, smaller), (above, 1 - smaller)) if share > 0]


def translate(sizes: Sequence[float], x: float, mapping: Mapping, draw: float) -> int:
    """Translate a bet at random to a bet size of an abstraction, and return the size's index.

    The probabilities are those of `translations`. `draw` is a uniform random number in [0, 1).
    """
    first, *others = translations(sizes, x, mapping)
    return others[0][0] if others and draw >= first[1] else first[0]
