"""Stop a match as soon as its winner is clear, by a sequential test with bounded error.

An ordinary 95% interval is valid for a number of hands that is fixed beforehand. A user who looks at it again and
again, and stops when it excludes 0, is wrong far more often than 5% of the time. A *confidence sequence* is wrong at
any of its looks, however many there are, with at most the stated probability. kilt uses the normal mixture of Robbins
(1970) with the estimated variance. Waudby-Smith et al. (2021) show that it is valid for any results with finite
variance if looks begin after many hands: with n observations of standard deviation s, the mean is within

    s / n · √( (n + r) · ln((n + r) / (r · α²)) )

of the true one. With r = 1,000 it is 1.6 to 1.9 times as wide as an interval for one look, from 1,000 to a million
observations.

>>> round(interval_margin(1.0, 5_000, 0.05) / (1.96 / 5_000**0.5), 2)
1.56
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from kilt.errors import PlayError
from kilt.play.match import Match

FIRST_LOOK_HANDS = 1000  # hands before the first look
GROWTH = 1.25  # factor of the number of hands from look to look
SCALE = 1000.0  # r in the formula above
SEEDS = 1 << 32  # difference between the seeds of two parts of a match


class Decision(NamedTuple):
    """The state of a sequential test: the match so far, and its winner if that is clear."""

    match: Match
    error: float  # maximum probability of naming a winner if neither player is better
    margin: float  # mbb/h: half-width of the confidence sequence at the end of the match

    @property
    def winner(self) -> str | None:
        """The name of the winner, or None if it is not clear yet."""
        mean = float(self.match.results.mean()) * 1000 / self.match.big_blind
        if abs(mean) <= self.margin:
            return None
        return self.match.players[0] if mean > 0 else self.match.players[1]


def interval_margin(deviation: float, units: int, error: float) -> float:
    """Return the half-width of a confidence interval that stays valid however often it is checked.

    It is a confidence sequence, and infinite for less than two observations.
    """
    if units < 2:
        return inf
    return deviation / units * sqrt((units + SCALE) * log((units + SCALE) / (SCALE * error**2)))


def apply_sequential_test(match: Match, error: float) -> Decision:
    """Test whether a match's results so far show a winner."""
    units = len(match.results)
    deviation = float(match.results.std(ddof=1)) if units > 1 else inf
    return Decision(match, error, interval_margin(deviation * 1000 / match.big_blind, units, error))


def play_until_decided(
    part: Callable[[int, int], Match],
    hands: int,
    seed: int,
    error: float = 0.05,
    stop: Callable[[], bool] = lambda: False,
) -> Decision:
    """Play a match in parts until a sequential test shows a winner.

    Parameters
    ----------
    part : callable
        Takes a number of hands and a seed, and returns a match of as many hands.
    hands : int
        Maximum number of hands, even.
    seed : int
        Seed of the first part; later parts have other seeds.
    error : float
        Maximum probability of naming a winner if neither player is better.
    stop : callable
        Called after each part; returns whether to end early.

    Returns
    -------
    Decision
        Its match has the results of all parts.

    Raises
    ------
    PlayError
        The error rate is not between 0 and 1.
    """
    if not 0 < error < 1:
        raise PlayError(f"the error rate is {error:g}: give a probability between 0 and 1, such as 0.05")
    first, *more = _parts(hands)
    decision = apply_sequential_test(part(first, seed), error)
    for number, size in enumerate(more, start=1):
        if decision.winner or stop():
            break
        decision = apply_sequential_test(_joined(decision.match, part(size, seed + number * SEEDS)), error)
    return decision


def _parts(hands: int) -> Iterator[int]:
    """Yield the number of hands to play before each look at the results.

    The numbers are even, and add up to `hands`.
    """
    done = min(hands, FIRST_LOOK_HANDS)
    yield done
    while done < hands:
        goal = min(hands, 2 * round(done * GROWTH / 2))
        yield goal - done
        done = goal


def _joined(one: Match, other: Match) -> Match:
    """Join the results of two parts of a match."""
    played = None
    if one.played is not None and other.played is not None:
        played = np.concatenate([one.played, other.played])
    return replace(
        one,
        results=np.concatenate([one.results, other.results]),
        played=played,
        seconds=one.seconds + other.seconds,
        cpu_seconds=one.cpu_seconds + other.cpu_seconds,
        thinking=(one.thinking[0] + other.thinking[0], one.thinking[1] + other.thinking[1]),
    )
