"""Compute counter-strategies, which exploit an opponent model and lose little to other opponents.

The methods are those of [Johanson16 chapter 6]. A best response to a model wins the most against it, but may lose any
amount against another opponent. Two kinds of counter-strategies trade one for the other. Each is an equilibrium of a
game in which the opponent is partly restricted to the model, and learns otherwise.

===  ==========================================================================================================
RNR  restricted Nash response: with probability p, drawn once before the game, the opponent plays the model
DBR  data-biased response: at each information set I the opponent plays the model with probability P_conf(n(I)), a
     function of the number of observations n(I), and of P_max [Johanson16 equation 6.1]
===  ==========================================================================================================

Each seat is solved separately: the player in it learns, and the opponent has a `Restriction`. Solvers of the CFR family
accept a restriction; `SeatSolver` combines the two solves, and `registry` lists the algorithms.

>>> [round(float(CONFIDENCES["0-10-linear"](np.array(n))) * 0.9, 2) for n in (0, 5, 20)]
[0.0, 0.45, 0.9]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kilt import artifact
from kilt.arrays import Array, FloatArray
from kilt.errors import RunError
from kilt.strategy.model import OpponentModel

# P_conf / P_max as a function of the number of observations of an information set [Johanson16 §6.5.2].
CONFIDENCES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "1-step": lambda n: np.where(n > 0, 1.0, 0.0),
    "10-step": lambda n: np.where(n >= 10, 1.0, 0.0),
    "0-10-linear": lambda n: np.minimum(n / 10, 1.0),
    "s-curve": lambda n: n / (1 + n),  # s = 1: minimax over Dirichlet priors of strength at most s
}
DEFAULT_CONFIDENCE = "0-10-linear"
RNR, DBR = "rnr", "dbr"  # prefixes of algorithms


class Restriction(NamedTuple):
    """A fixed strategy that one player must follow, always or with some probability, during solving."""

    player: int
    fixed: Array  # a strategy table: σ(I, a) with a coin, P_conf(I) · σ(I, a) without one
    coin: float = 0.0  # the probability, drawn once before the game, that the player follows `fixed` throughout


@dataclass(frozen=True)
class Against:
    """An opponent to exploit, given by a model of its play and the trust in this model.

    Parameters
    ----------
    model : OpponentModel
        Counted actions of the opponent, in both seats.
    p : float
        From 0 to 1: the probability p of a restricted Nash response, or P_max of a data-biased one.
    confidence : str
        For a data-biased response, a name in `CONFIDENCES`; empty for a restricted Nash response.

    Raises
    ------
    RunError
        If `p` is no probability, `confidence` is unknown, or the model has no observations.
    """

    model: OpponentModel
    p: float
    confidence: str = DEFAULT_CONFIDENCE

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise RunError(f"{'P_max' if self.confidence else 'p'} is {self.p:g}: use a probability, from 0 to 1")
        if self.confidence and self.confidence not in CONFIDENCES:
            raise RunError(f"unknown confidence function {self.confidence!r}: use one of {', '.join(CONFIDENCES)}")
        if not self.model.counts.any():
            raise RunError(f"the model of {self.model.player} has no observations: count hands of {self.model.game}")

    def algorithm(self, base: str) -> str:
        """Return the name of the algorithm that exploits the opponent, such as ``"dbr:cfr+"``."""
        kind, _, own = base.partition(":")
        rest = own if kind in (RNR, DBR) else base
        return ":".join(filter(None, (DBR if self.confidence else RNR, rest)))

    @property
    def fingerprint(self) -> str:
        """A short hash of the opponent model, and of how far it is trusted."""
        return artifact.fingerprint(self.model.fingerprint, self.model.counts, f"{self.p!r} {self.confidence}")

    def fixed(self) -> FloatArray:
        """Return the strategy that the opponent model prescribes, fully or in part.

        It is P_conf · σ for a data-biased response, and σ itself for a restricted Nash response.
        """
        policy = self.model.policy()
        if not self.confidence:
            return policy if self.p > 0 else 0 * policy
        return policy * self.model.spread(self.p * CONFIDENCES[self.confidence](self.model.seen))

    def restriction(self, player: int, fixed: Array) -> Restriction:
        """Return a `Restriction` that makes one player follow the strategy `fixed`."""
        return Restriction(player, fixed, 0.0 if self.confidence else self.p)

    def combine_seats(self, tables: tuple[Array, Array]) -> Array:
        """Combine two strategies: player 0's part of the first, and player 1's part of the second."""
        layout = self.model.layout
        first = np.repeat(layout.actor, layout.actions) == 0
        return np.where(first.reshape(-1, *[1] * (tables[0].ndim - 1)), *tables)
