"""Agents by name, and what they do in a game that is to be judged.

>>> problem, table = fixed_agent("leduc", "always-call")
>>> problem.form, round(problem.exploitability(table), 6)
('flat', 1.466667)
"""

from __future__ import annotations

from kilt.arrays import Array
from kilt.errors import RunError
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.games.size import size_of
from kilt.solve.problem import OPENSPIEL, FlatProblem, Problem, VectorProblem, load_problem
from kilt.strategy import fixed
from kilt.tree.betting import MOST_NODES
from kilt.tree.vector import VectorGame

UNIFORM = "uniform"
AGENTS = (UNIFORM, *fixed.AGENTS)


def fixed_agent(name: str, agent: str, threads: int = 1) -> tuple[Problem, Array]:
    """A game in the form that fits, and the strategy of an agent for it."""
    if agent not in AGENTS:
        raise RunError(f"unknown agent {agent!r}: use one of {', '.join(AGENTS)}")
    if agent == UNIFORM:
        problem = load_problem(name, threads=threads)
        return problem, problem.uniform()
    game = None if name.startswith(OPENSPIEL) else load_game(name)
    if not isinstance(game, Holdem):
        raise RunError(f"{agent} plays the hold'em family, and {name} is not of it: use --agent {UNIFORM}")
    try:
        problem = load_problem(name, threads=threads)
    except RunError:
        if size_of(game.rules).actions.total >= MOST_NODES:
            raise
    else:
        if isinstance(problem, FlatProblem):
            return problem, fixed.flat_table(problem.tree, agent)
    vectors = VectorGame(game, threads=threads, by_board=False)  # the agent looks at no board
    return VectorProblem(vectors), fixed.public_table(vectors, agent)
