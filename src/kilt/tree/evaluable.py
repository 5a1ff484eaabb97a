"""Evaluate strategies: expected winnings, best-response values and exploitability [Johanson16 §2.4]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from kilt.tree.vector_arrays import FOLLOW, RESPOND


def exploitability_of_responses(responses: Iterable[float], followed: Iterable[float] = ()) -> float:
    """Return a strategy's exploitability, given the winnings of best responses to it.

    Parameters
    ----------
    responses : iterable of float
        Values of best responses in seats 0 and 1.
    followed : iterable of float
        Expected winnings of players 0 and 1 when both follow the strategy. Default: they sum to 0.
    """
    return max((sum(responses) - sum(followed)) / 2, 0.0)  # rounding may leave −1e-17


class EvaluableGame(ABC):
    """Base class of games that can evaluate strategies, in chips per game."""

    @property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, as with rake."""
        return False

    @abstractmethod
    def worth(self, player: int, task: int, strategy: Any) -> float:
        """Return a player's winnings with a strategy, or with a best response to it, in chips per game.

        The opponent follows the strategy. `task` is FOLLOW or RESPOND.
        """

    def expected_value(self, strategy: Any) -> float:
        """Return player 0's expected winnings if both players follow a strategy."""
        return self.worth(0, FOLLOW, strategy)

    def expected_values(self, strategy: Any) -> tuple[float, float]:
        """Return both players' expected winnings if they follow a strategy."""
        return self.worth(0, FOLLOW, strategy), self.worth(1, FOLLOW, strategy)

    def response_values(self, strategy: Any) -> tuple[float, float]:
        """Return a best response's winnings against a strategy, in each seat."""
        return self.worth(0, RESPOND, strategy), self.worth(1, RESPOND, strategy)

    def exploitability(self, strategy: Any) -> float:
        """Return a strategy's exploitability: a best response's mean gain over both seats, in chips per game.

        The result is at least 0. Multiply by 1000 and divide by the big blind for thousandths of a big blind per game.
        """
        return exploitability_of_responses(
            self.response_values(strategy), self.expected_values(strategy) if self.is_general_sum else ()
        )
