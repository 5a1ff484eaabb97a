"""Best responses to a strategy, walked by workers of an engine: each takes a share of the boards, as a thread does.

What hands are worth at the chance nodes before those boards is all that travels; it is added up here.
"""

from __future__ import annotations

from collections.abc import Callable

from kilt.engines import Crew, Engine, Job
from kilt.errors import RunError
from kilt.tree.vector import Walks
from kilt.tree.vector_arrays import FOLLOW, RESPOND

PARTS = 2  # of a walk, at least


def response_values(
    walks: Walks, load: Callable[..., Walks], arguments: tuple[object, ...], engine: Engine, workers: int
) -> tuple[tuple[float, float], float]:
    """What a best response wins in each seat and what player 0 wins without one, in chips per game.

    Parameters
    ----------
    walks : Walks
        Those of the strategy that is judged.
    load : callable
        A function of a module that makes the same walks from `arguments`, where a worker lives.
    arguments : tuple
        What `load` is called with; it is sent to the workers.
    engine : Engine
        Where the workers live.
    workers : int
        The result is that of as many threads, to the last bit; one worker counts as two.

    Returns
    -------
    (float, float), float
        The best response's winnings as player 0 and as player 1, and the value of the strategy to player 0.
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
