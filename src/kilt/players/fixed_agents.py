"""Agents by name, and what they do in a game that is to be judged.

>>> problem, table = fixed_agent("leduc", "always-call")
>>> from kilt.evaluate.judge import judge_of
>>> problem.form, round(judge_of(problem).exploitability(table), 6)
('flat', 1.466667)
"""

from __future__ import annotations

from kilt.arrays import Array
from kilt.errors import RunError
from kilt.games import load_game
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.games.size import size_of
from kilt.solve.forms import OPENSPIEL, load_problem
from kilt.solve.problem import FlatProblem, Problem, VectorProblem
from kilt.strategy import fixed
from kilt.tree.betting import MOST_NODES
from kilt.tree.vector import VectorGame

UNIFORM = "uniform"
AGENTS = (UNIFORM, *fixed.AGENTS)


def fixed_agent(game: str | Game, agent: str, threads: int = 1) -> tuple[Problem, Array]:
    """A game in the form that fits, and the strategy of an agent for it."""
    if agent not in AGENTS:
        raise RunError(f"unknown agent {agent!r}: use one of {', '.join(AGENTS)}")
    if agent == UNIFORM:
        problem = load_problem(game, threads=threads)
        return problem, problem.uniform()
    rules = game
    if isinstance(game, str):
        rules = game if game.startswith(OPENSPIEL) else load_game(game)
    if not isinstance(rules, Holdem):
        name = game if isinstance(game, str) else game.name
        raise RunError(f"{agent} plays the hold'em family, and {name} is not of it: use --agent {UNIFORM}")
    try:
        problem = load_problem(game, threads=threads)
    except RunError:
        if size_of(rules.rules).actions.total >= MOST_NODES:
            raise
    else:
        if isinstance(problem, FlatProblem):
            return problem, fixed.flat_table(problem.tree, agent)
    vectors = VectorGame(rules, threads=threads, by_board=False)  # the agent looks at no board
    return VectorProblem(vectors), fixed.public_table(vectors, agent)
