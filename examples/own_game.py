"""Write a game that is not poker: two bidders, one painting.

Each player is dealt a private value of the painting, 1 to 4. Player 1 names a price. Player 2 takes the painting at
that price, or leaves it to player 1, who pays the price. The buyer wins the value less the price from the other player.
A high price keeps player 2 away from the painting, but player 1 may have to pay it.

    python examples/own_game.py
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import kilt

VALUES = (1, 2, 3, 4)
PRICES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Auction:
    """A public position: the price, once it is named, and the answer to it."""

    price: int | None = None
    answer: str = ""

    @property
    def actor(self) -> int:
        """The player who acts: 0, then 1, then -2 at the end."""
        return -2 if self.answer else 0 if self.price is None else 1

    @property
    def round(self) -> int:
        """Nothing is revealed: all is one round."""
        return 0

    @property
    def history(self) -> str:
        """All labels so far."""
        return f"{'' if self.price is None else self.price}{self.answer}"

    def actions(self) -> tuple[str, ...]:
        """The labels of the legal actions."""
        if self.answer:
            return ()
        return tuple(map(str, PRICES)) if self.price is None else ("take", "leave")

    def after(self, action: str) -> "Auction":
        """The position after a legal action."""
        if action not in self.actions():
            raise kilt.GameError(f"{action!r} is not legal here: use one of {', '.join(self.actions())}")
        return Auction(int(action)) if self.price is None else Auction(self.price, action)


class Painting:
    """The rules: which hands there are, how they are dealt, where play starts, what it pays."""

    name = "painting"

    def hands(self, player: int) -> Sequence[str]:
        """The possible values of the painting to a player."""
        return [f"worth {value}" for value in VALUES]

    def deals(self) -> npt.NDArray[np.float64]:
        """Every pair of values is equally likely."""
        return np.full((len(VALUES), len(VALUES)), 1 / len(VALUES) ** 2)

    def start(self) -> Auction:
        """Before the price is named."""
        return Auction()

    def reveals(
        self, position: object, hands: tuple[int, int], board: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], float]]:
        """There are no public chance events."""
        return []

    def payoffs(self, position: object, hands: tuple[int, int], board: tuple[int, ...]) -> tuple[float, float]:
        """The buyer's value less the price, paid by the other player."""
        assert isinstance(position, Auction)
        assert position.price is not None
        buyer = 1 if position.answer == "take" else 0
        gain = float(VALUES[hands[buyer]] - position.price)
        return (gain, -gain) if buyer == 0 else (-gain, gain)

    def board_name(self, board: tuple[int, ...], player: int) -> str:
        """Nothing is ever revealed."""
        return ""


def main() -> None:
    """Check the rules, solve them exactly, and see what CFR+ finds."""
    game = Painting()
    kilt.check_game(game)
    exact = kilt.solve(game, "lp")
    print(f"worth {exact.value:+.4f} to player 1, exactly")
    found = kilt.solve(game, "cfr+", iterations=2000)
    print(f"worth {found.value:+.4f} by CFR+, exploitable for {found.exploitability:.1e}")
    for infoset in (name for name in found.infosets if name.startswith("worth 4")):
        print(f"{infoset:14}", {action: round(share, 2) for action, share in found[infoset].items()})


if __name__ == "__main__":
    main()
