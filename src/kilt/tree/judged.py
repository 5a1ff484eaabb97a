"""How good a strategy is, from what players win who follow it and who respond to it [Johanson16 §2.4]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from kilt.tree.vector_arrays import FOLLOW, RESPOND


def excess(responses: Iterable[float], followed: Iterable[float] = ()) -> float:
    """Exploitability: what best responses win more than the strategy, mean over both seats; at least 0.

    Parameters
    ----------
    responses : iterable of float
        What a best response wins in seats 0 and 1.
    followed : iterable of float
        What players 0 and 1 win when both follow the strategy. Left out: these add up to 0.
    """
    return max((sum(responses) - sum(followed)) / 2, 0.0)  # rounding may leave −1e-17


class Judged(ABC):
    """A game whose walks judge strategies. Strategies are tables as the game has them; values are chips per game."""

    @property
    def uneven(self) -> bool:
        """Whether what both players win does not add up to 0: rake, or tilted payoffs."""
        return False

    @abstractmethod
    def worth(self, player: int, task: int, strategy: Any) -> float:
        """What a player wins against a strategy who follows it too (FOLLOW), or who responds to it (RESPOND)."""

    def expected_value(self, strategy: Any) -> float:
        """What player 0 wins when both follow a strategy."""
        return self.worth(0, FOLLOW, strategy)

    def expected_values(self, strategy: Any) -> tuple[float, float]:
        """What players 0 and 1 win when both follow a strategy."""
        return self.worth(0, FOLLOW, strategy), self.worth(1, FOLLOW, strategy)

    def response_values(self, strategy: Any) -> tuple[float, float]:
        """What a best response to a strategy wins in seats 0 and 1."""
        return self.worth(0, RESPOND, strategy), self.worth(1, RESPOND, strategy)

    def exploitability(self, strategy: Any) -> float:
        """What best responses win more than the strategy, mean over both seats; at least 0.

        In thousandths of a big blind per game it is 1000 times that over the big blind.
        """
        return excess(self.response_values(strategy), self.expected_values(strategy) if self.uneven else ())
