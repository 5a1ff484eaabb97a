"""Evaluate strategies: compute expected winnings, best-response values and exploitability [Johanson16 §2.4]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from kilt.tree.vector_arrays import FOLLOW, RESPOND


def exploitability_of_responses(responses: Iterable[float], followed: Iterable[float] = ()) -> float:
    """Return the exploitability of a strategy, given how much best responses to it win.

    Parameters
    ----------
    responses : iterable of float
        Values of best responses in seats 0 and 1.
    followed : iterable of float
        Expected winnings of players 0 and 1 when both follow the strategy. Default: they sum to 0.
    """
    return max((sum(responses) - sum(followed)) / 2, 0.0)  # rounding may leave −1e-17


class EvaluableGame(ABC):
    """Base class of games that can evaluate strategies. All values are in chips per game."""

    @property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, for example because the house takes rake."""
        return False

    @abstractmethod
    def worth(self, player: int, task: int, strategy: Any) -> float:
        """Return how much a player wins with a strategy, or with a best response to it, in chips per game.

        The opponent follows the strategy. `task` is FOLLOW or RESPOND.
        """

    def expected_value(self, strategy: Any) -> float:
        """Return the expected winnings of player 0 when both players follow a strategy."""
        return self.worth(0, FOLLOW, strategy)

    def expected_values(self, strategy: Any) -> tuple[float, float]:
        """Return the expected winnings of players 0 and 1 when both follow a strategy."""
        return self.worth(0, FOLLOW, strategy), self.worth(1, FOLLOW, strategy)

    def response_values(self, strategy: Any) -> tuple[float, float]:
        """Return how much a best response to a strategy wins in seat 0 and in seat 1."""
        return self.worth(0, RESPOND, strategy), self.worth(1, RESPOND, strategy)

    def exploitability(self, strategy: Any) -> float:
        """Return the exploitability of a strategy, in chips per game.

        It is how much more a best response wins than the strategy itself, as a mean over both seats.

        The result is at least 0. Multiply by 1000 and divide by the big blind for thousandths of a big blind per game.
        """
        return exploitability_of_responses(
            self.response_values(strategy), self.expected_values(strategy) if self.is_general_sum else ()
        )
