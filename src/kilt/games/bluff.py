"""The dice game Bluff(D₁, D₂), also known as liar's dice [Johanson16 §3.2.3].

Both players roll their dice in secret. A die shows 1 to 5 or a star, and a star counts as any face. Players take turns
to bid on all dice together, "at least *quantity* dice show *face*", each bid higher than the last: more dice, or the
same number of a higher face. Instead of bidding, a player may call bluff: the dice decide whether the last bid was
true, and the player who was wrong loses a die. The winner of a round starts the next one; a player without dice has
lost the game.

>>> game = Bluff((1, 1))
>>> game.hands(0)
['1', '2', '3', '4', '5', '*']
>>> game.start().after("1-3").after("1-*").after("bluff").history
'1-3 1-* bluff'

The rounds are chained through their values: a round ends the game, or pays what the next round is worth. Winning a
round is the same aim whatever it pays, so each size of round needs to be solved only once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.games.game import TERMINAL, Board, Hands, Position

FACES = "12345*"
STAR = len(FACES) - 1
BLUFF = "bluff"

# The value of the game to the player who starts a round, by (own dice, opponent's dice): the equilibrium values of the
# smaller games, which [Johanson16] computes first and uses as payoffs of the larger ones. (1, 1) is exact: the solution
# of the linear programme, with best responses in fractions. With two dice against one, the starter wins the round, and
# so the game, with the probability below, within 1.2e-5 by CFR+ with best responses as bounds on both sides; a lost
# round leads to one die each, and the opponent starts.
_WIN_TWO_TO_ONE = 0.605814
VALUES: dict[tuple[int, int], float] = {(1, 1): -7 / 258}
VALUES[2, 1] = _WIN_TWO_TO_ONE - (1 - _WIN_TWO_TO_ONE) * VALUES[1, 1]


@dataclass(frozen=True)
class Bidding:
    """A public position in a round of Bluff: the bids so far, and the final call if there was one.

    Bids are numbered in ascending order, six faces for each quantity.
    """

    dice: int  # number of dice of both players
    bids: tuple[int, ...]
    actor: int
    called: bool = False

    round = 0

    @property
    def history(self) -> str:
        """The bids so far and the final call if there was one, separated by spaces."""
        return " ".join([self._label(bid) for bid in self.bids] + [BLUFF] * self.called)

    def actions(self) -> tuple[str, ...]:
        """Return the legal actions: every higher bid and, after the first bid, calling a bluff."""
        if self.called:
            return ()
        lowest = self.bids[-1] + 1 if self.bids else 0
        return tuple(self._label(bid) for bid in range(lowest, self.dice * len(FACES))) + (BLUFF,) * bool(self.bids)

    def after(self, action: str) -> Bidding:
        """Return the position after a bid or a call.

        Raises GameError if the action is not legal.
        """
        if action not in self.actions():
            raise GameError(f"{action!r} is not legal after {self.history!r}: use one of {', '.join(self.actions())}")
        if action == BLUFF:
            return replace(self, actor=TERMINAL, called=True)
        quantity, face = action.split("-")
        bid = (int(quantity) - 1) * len(FACES) + FACES.index(face)
        return replace(self, bids=(*self.bids, bid), actor=1 - self.actor)

    @staticmethod
    def _label(bid: int) -> str:
        return f"{bid // len(FACES) + 1}-{FACES[bid % len(FACES)]}"


@dataclass(frozen=True)
class Bluff:
    """One round of the dice game Bluff (liar's dice), with a given number of dice for each player.

    `dice` has the numbers of dice of player 0, who starts, and of player 1.
    """

    dice: tuple[int, int]

    def __post_init__(self) -> None:
        if min(self.dice) < 1:
            raise GameError(
                f"bluff with {self.dice[0]} and {self.dice[1]} dice is impossible: each player needs at least 1"
            )
        for winner in (0, 1):
            following = self._next_round(winner)
            if following is not None and following not in VALUES:
                known = ", ".join(f"{a}-{b}" for a, b in sorted(VALUES))
                raise GameError(
                    f"bluff with {self.dice[0]} and {self.dice[1]} dice leads to a round with {following[0]} against "
                    f"{following[1]} dice, whose value is unknown; the known ones are {known}"
                )

    @property
    def name(self) -> str:
        """The name of the game, such as ``bluff-2-1``."""
        return f"bluff-{self.dice[0]}-{self.dice[1]}"

    @cached_property
    def _rolls(self) -> list[list[str]]:
        return [["".join(roll) for roll in combinations_with_replacement(FACES, dice)] for dice in self.dice]

    def hands(self, player: int) -> list[str]:
        """Return the names of all rolls of a player's dice, regardless of order."""
        return self._rolls[player]

    def deals(self) -> FloatArray:
        """Return the probability of each pair of rolls, shape (rolls of player 0, rolls of player 1).

        The two rolls are independent.
        """
        chances = []
        for player in (0, 1):
            ways = [
                factorial(self.dice[player]) / np.prod([factorial(n) for n in Counter(roll).values()])
                for roll in self.hands(player)
            ]
            chances.append(np.array(ways) / len(FACES) ** self.dice[player])
        return np.outer(chances[0], chances[1])

    def start(self) -> Bidding:
        """Return the position before the first bid."""
        return Bidding(sum(self.dice), (), actor=0)

    def reveals(self, position: Position, hands: Hands, board: Board) -> list[tuple[Board, float]]:
        """Raise GameError, because Bluff has no public chance events."""
        raise GameError("there are no public chance events in bluff")

    def payoffs(self, position: Position, hands: Hands, board: Board) -> tuple[float, float]:
        """Return each player's payoff at the end of a round of Bluff.

        It is 1 or −1 if this ends the game, otherwise the value of the next round.
        """
        assert isinstance(position, Bidding)
        quantity, face = divmod(position.bids[-1], len(FACES))
        shown = self._rolls[0][hands[0]] + self._rolls[1][hands[1]]
        matching = shown.count(FACES[STAR]) + (shown.count(FACES[face]) if face != STAR else 0)
        bidder = (len(position.bids) - 1) % 2
        worth = self.payoff_if_won(bidder if matching >= quantity + 1 else 1 - bidder)
        return worth, -worth

    def payoff_if_won(self, winner: int) -> float:
        """Return player 0's payoff if a given player wins the round."""
        following = self._next_round(winner)
        worth = 1.0 if following is None else VALUES[following]
        return worth if winner == 0 else -worth

    def board_name(self, board: Board, player: int = 0) -> str:
        """Return an empty string, because Bluff has no board."""
        return ""

    def _next_round(self, winner: int) -> tuple[int, int] | None:
        """Return the dice of the next round, its starter's first; None if the loser has no dice left."""
        lost = self.dice[1 - winner] - 1
        return (self.dice[winner], lost) if lost else None
