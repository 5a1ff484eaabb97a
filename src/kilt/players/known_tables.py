"""Tabulate the strategy of an agent, so that it can be evaluated exactly.

>>> problem, table = agent_profile("leduc", "always-call")
>>> from kilt.evaluate.evaluator import evaluator_for
>>> problem.form, round(evaluator_for(problem).exploitability(table), 6)
('flat', 1.466667)
"""

from __future__ import annotations

from functools import cache

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.errors import PlayError, RunError
from kilt.games import load_game
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.games.size import size_of
from kilt.play.agent import ALIASES, UNIFORM, Agent, PolicyAgent, PublicPolicy, require_policy
from kilt.players.agents import game_for, load_agent
from kilt.solve.forms import OPENSPIEL, load_problem
from kilt.solve.problem import FLAT, FlatProblem, Problem, VectorProblem
from kilt.strategy import fixed
from kilt.tree.betting import MOST_NODES
from kilt.tree.flat import FlatTree
from kilt.tree.vector import VectorGame

CLOSE = 1e-6  # largest difference between 1 and the sum of probabilities at an information set
AGENTS = (UNIFORM.name, *fixed.AGENTS)  # agents whose tables are made without calling `policy` at every public state
HABITS = {name: alias for alias, name in ALIASES.items()}  # baseline to its name in `fixed`, if that differs


def agent_profile(game: str | Game, agent: str | Agent, threads: int = 1) -> tuple[Problem, Array]:
    """Tabulate an agent's strategy for both seats, and return it with its game.

    The agents in `AGENTS` ignore their cards, so that large games are possible too. For any other agent, the method
    `policy` is called at every public state, and the game must be small enough for a flat tree.
    """
    name = agent if isinstance(agent, str) else agent.name
    if isinstance(agent, str) and (habit := HABITS.get(agent, agent)) in AGENTS:
        return _fixed_profile(game, habit, threads)
    rules = _rules(game, name)
    teller = require_policy(load_agent(agent) if isinstance(agent, str) else agent)
    game_for(teller, rules)
    try:
        problem = load_problem(rules, form=FLAT)
    except RunError as error:
        raise PlayError(
            f"{name} can be evaluated exactly only in games with a flat tree ({error}): find a lower bound by local "
            "best responses"
        ) from None
    assert isinstance(problem, FlatProblem)
    return problem, tabulate_policy(teller, rules, problem.tree)


def _fixed_profile(game: str | Game, agent: str, threads: int) -> tuple[Problem, Array]:
    """Return a game, and the strategy of an agent that ignores its cards: see `agent_profile`."""
    if agent == UNIFORM.name:
        problem = load_problem(game, threads=threads)
        return problem, problem.uniform()
    rules = _rules(game, agent)
    try:
        problem = load_problem(game, threads=threads)
    except RunError:
        if size_of(rules.rules).actions.total >= MOST_NODES:
            raise
    else:
        if isinstance(problem, FlatProblem):
            return problem, fixed.flat_table(problem.tree, agent)
    vectors = VectorGame(rules, threads=threads, by_board=False)  # the agent ignores the board
    return VectorProblem(vectors), fixed.public_table(vectors, agent)


def _rules(game: str | Game, agent: str) -> Holdem:
    """Return a game of the hold'em family, which the agent with the given name can play."""
    rules = load_game(game) if isinstance(game, str) and not game.startswith(OPENSPIEL) else game
    if not isinstance(rules, Holdem):
        name = game if isinstance(game, str) else game.name
        raise RunError(f"{agent} plays only games of the hold'em family, not {name}: use {UNIFORM.name}")
    return rules


def tabulate_policy(agent: PolicyAgent, game: Holdem, tree: FlatTree) -> FloatArray:
    """Tabulate an agent's strategy: return its action probabilities at all information sets of a small game.

    Parameters
    ----------
    agent : PolicyAgent
        The agent. Its `policy` is called once for each public state.
    game : Holdem
        The rules of `tree`.
    tree : FlatTree
        The flat tree of the game.

    Returns
    -------
    ndarray, shape (slots,)
        Probabilities.

    Raises
    ------
    PlayError
        If the agent's probabilities do not sum to 1, or if it takes an illegal action.
    """

    @cache
    def policy_at(board: str, history: str) -> PublicPolicy:
        return agent.policy(game.replay(history), game.deck.cards(board.replace("/", "")))

    table = np.empty(int(tree.nodes.infoset_start[-1]))
    for name, actions, start in zip(tree.infosets, tree.actions, tree.nodes.infoset_start.tolist(), strict=False):
        hand, board, history = name.split("|")
        policy = policy_at(board, history)
        column = policy.column[game.deck.hole_index(game.deck.cards(hand))]
        row = dict(zip(policy.actions, policy.table[:, column].tolist(), strict=True))
        shares = [row.pop(action, 0.0) for action in actions]
        if any(row.values()) or min(shares) < 0 or abs(sum(shares) - 1) > CLOSE:
            raise PlayError(
                f"{agent.name} plays {', '.join(actions)} at {name!r} with probabilities {shares}: they must sum to 1, "
                "and no other action may have any"
            )
        table[start : start + len(shares)] = shares
    return table
