"""Compute best responses with several workers, each on some of the boards.

Workers send only the values of hands at the chance nodes before those boards; this process adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.engines import Crew, Engine, Job
from kilt.errors import RunError
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW, RESPOND
from kilt.tree.walks import Walk

PARTS = 2  # minimum number of parts of a walk


class Walks(NamedTuple):
    """An evaluation of a strategy, divided into parts for several processes."""

    game: VectorGame
    of: Callable[[int, int], Walk]  # maps a player and a task to a walk

    def part(self, player: int, task: int, number: int, of: int) -> FloatArray:
        """Compute one part of an evaluation, and return the values of all hands.

        The values are by chance node of the first round and by hand.
        """
        return self.game.part(self.of(player, task), number, of)

    def conclude(self, player: int, task: int, parts: Sequence[FloatArray]) -> float:
        """Complete an evaluation from its parts, and return a player's winnings in chips per game."""
        return self.game.conclude(self.of(player, task), np.sum(parts, axis=0))


def response_values(
    walks: Walks, load: Callable[..., Walks], arguments: tuple[object, ...], engine: Engine, workers: int
) -> tuple[tuple[float, float], float]:
    """Compute a best response's winnings in each seat, and the strategy's own value, with several workers.

    Parameters
    ----------
    walks : Walks
        Walks against the strategy to evaluate.
    load : callable
        A function of a module that rebuilds the walks from `arguments` in a worker's process.
    arguments : tuple
        Arguments of `load`; they are sent to the workers.
    engine : Engine
        The engine that runs the workers.
    workers : int
        Number of workers. The result equals that of as many threads, bit for bit; one worker counts as two.

    Returns
    -------
    (float, float), float
        The best response's winnings as player 0 and as player 1, and the value of the strategy to player 0.

    Raises
    ------
    RunError
        The number of workers is less than 1.
    """
    if workers < 1:
        raise RunError(f"the number of workers is {workers}: use 1 or more")
    parts = max(PARTS, workers)
    with Crew(engine, Job(load, arguments), workers) as crew:
        asked = [(0, RESPOND), (1, RESPOND), (0, FOLLOW)]
        answers = [[crew.ask(part, "part", *one, part, parts) for part in range(parts)] for one in asked]
        first, second, value = (
            walks.conclude(*one, [get() for get in some]) for one, some in zip(asked, answers, strict=True)
        )
    return (first, second), value
