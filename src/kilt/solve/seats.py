"""Solve one game per player, and combine the solutions into one strategy.

Counter-strategies need this, because in each game the other player is restricted to a model: see `counter`. So do
opponents who see finer cards than the player (Bard, Johanson and Bowling 2014): see `AbstractProblem.seats`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array
from kilt.solve.solver import Solver

Combine: TypeAlias = Callable[[tuple[Array, Array]], Array]  # player 0's part of the first, player 1's of the second


class SeatSolver:
    """A solver that solves one game per player, and combines the two strategies.

    Parameters
    ----------
    seats : tuple of Solver
        The solver of the game for player 0, and the one for player 1.
    combine : callable
        Takes a strategy of each game, and returns player 0's part of the first with player 1's part of the second.
    """

    def __init__(self, seats: tuple[Solver, Solver], combine: Combine) -> None:
        self.seats, self.combine = seats, combine
        self.iterations = 0

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations in each game."""
        for seat in self.seats:
            seat.step(iterations)
        self.iterations += iterations

    def average(self) -> Array:
        """Return the average strategy.

        Each player's part comes from the game that is solved for that player.
        """
        return self.combine((self.seats[0].average(), self.seats[1].average()))

    def current(self) -> Array:
        """Return the strategy of the last iteration.

        Each player's part comes from the game that is solved for that player.
        """
        return self.combine((self.seats[0].current(), self.seats[1].current()))

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the state as arrays, for a checkpoint."""
        return {f"{name}.{seat}": kept for seat in (0, 1) for name, kept in self.seats[seat].state().items()}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore the state from the arrays that `state` returned."""
        for number, seat in enumerate(self.seats):
            mine = {name.rpartition(".")[0]: kept for name, kept in state.items() if name.endswith(f".{number}")}
            seat.restore(mine)
        self.iterations = self.seats[0].iterations
