"""Evaluation of strategies from the values of following them and of best responses [Johanson16 §2.4]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from kilt.tree.vector_arrays import FOLLOW, RESPOND


def excess(responses: Iterable[float], followed: Iterable[float] = ()) -> float:
    """Exploitability: mean over both seats of a best response's gain over the strategy; at least 0.

    Parameters
    ----------
    responses : iterable of float
        Values of best responses in seats 0 and 1.
    followed : iterable of float
        Expected winnings of players 0 and 1 when both follow the strategy. Default: they sum to 0.
    """
    return max((sum(responses) - sum(followed)) / 2, 0.0)  # rounding may leave −1e-17


class Judged(ABC):
    """A game whose walks evaluate strategies. Strategies are tables of the game; values are in chips per game."""

    @property
    def uneven(self) -> bool:
        """Whether the players' winnings do not sum to 0, because of rake or tilted payoffs."""
        return False

    @abstractmethod
    def worth(self, player: int, task: int, strategy: Any) -> float:
        """Winnings against a strategy of a player who follows it too (FOLLOW), or responds to it (RESPOND)."""

    def expected_value(self, strategy: Any) -> float:
        """Expected winnings of player 0 when both players follow a strategy."""
        return self.worth(0, FOLLOW, strategy)

    def expected_values(self, strategy: Any) -> tuple[float, float]:
        """Expected winnings of players 0 and 1 when both follow a strategy."""
        return self.worth(0, FOLLOW, strategy), self.worth(1, FOLLOW, strategy)

    def response_values(self, strategy: Any) -> tuple[float, float]:
        """Values of a best response to a strategy in seats 0 and 1."""
        return self.worth(0, RESPOND, strategy), self.worth(1, RESPOND, strategy)

    def exploitability(self, strategy: Any) -> float:
        """Mean over both seats of a best response's gain over the strategy, in chips per game; at least 0.

        Multiply by 1000 and divide by the big blind for thousandths of a big blind per game.
        """
        return excess(self.response_values(strategy), self.expected_values(strategy) if self.uneven else ())
