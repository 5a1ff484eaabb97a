"""The sequence-form linear programme: the exact equilibrium of a small game, to judge all other solvers by.

A player who remembers everything has one *sequence* of own actions to each information set, so a strategy can be
written as a realisation plan: for each sequence, the probability that the player does all they must for it. The plan of
the empty sequence is 1, and what reaches an information set is shared out among its actions: linear equations, E x = e
for player 0 and F y = f for player 1. With A the payoff of each pair of sequences, player 0 looks for

    max over x of min over y of xᵀ A y  =  max fᵀ q  subject to  Fᵀ q ≤ Aᵀ x,  E x = e,  x ≥ 0,

the second form by the duality of the inner problem: q is what player 1 concedes from each information set on. The plan
y comes out as the multipliers of Fᵀ q ≤ Aᵀ x. D. Koller, N. Megiddo, B. von Stengel: Fast algorithms for finding
randomized strategies in game trees, STOC 1994; [Johanson16 §9.2] tells what it made possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.games.game import TERMINAL
from kilt.solve.solver import TableState, normalised
from kilt.tree.flat import FlatNodes

Sequences = npt.NDArray[np.int64]  # each by the slot of its last action; −1 is the empty one

TOLERANCE = 1e-10  # the finest that HiGHS takes
NEVER = 1e-12  # a sequence less likely than this is not played: what is left of it is rounding


@dataclass(frozen=True)
class Equilibrium:
    """Optimal play for both, and what it is worth."""

    value: float  # to player 0, in chips per game
    strategy: FloatArray  # [slot] uniform at information sets that their player's own actions never lead to


def solve_lp(nodes: FlatNodes) -> Equilibrium:
    """Solve a flat tree with perfect recall; the payoffs of player 1 are those of player 0 with the sign changed.

    >>> from kilt.games import load_game
    >>> from kilt.tree.flat import flat_tree
    >>> round(18 * solve_lp(flat_tree(load_game("kuhn")).nodes).value, 9)
    -1.0
    """
    if nodes.surplus.any():
        raise GameError("with this tilt the game is not zero-sum, as its linear programme must be: use one of CFR's")
    last, reach = _walk(nodes)
    _check_recall(nodes, last)
    owner = np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start))  # [slot]
    # A player's sequences are numbered from 1 in the order of their slots; the empty one is 0 and stands last, at −1.
    number = np.append(np.where(owner == 0, np.cumsum(owner == 0), np.cumsum(owner == 1)), 0)
    mine, theirs = (_equations(player, nodes, number) for player in (0, 1))  # E and F
    ends = nodes.actor == TERMINAL
    pairs = number[last[0, ends]], number[last[1, ends]]
    payoff = csr_array(((reach * nodes.payoff)[ends], pairs), shape=(mine.shape[1], theirs.shape[1]))  # A

    # The unknowns are x, then q. HiGHS looks for a minimum: of −fᵀ q, where f is 1 at the empty sequence, 0 elsewhere.
    (rows, plans), concessions = mine.shape, theirs.shape[0]
    cost = np.zeros(plans + concessions)
    cost[plans] = -1
    found = linprog(
        cost,
        A_ub=hstack([-payoff.T, theirs.T]),
        b_ub=np.zeros(payoff.shape[1]),
        A_eq=hstack([mine, csr_array((rows, concessions))]),
        b_eq=np.eye(1, rows)[0],
        bounds=[(0, None)] * plans + [(None, None)] * concessions,
        method="highs",
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if found.status != 0:
        raise GameError(f"HiGHS could not solve the linear programme of {len(cost):,} unknowns: {found.message}")
    plan = np.empty(len(owner))
    plan[owner == 0] = found.x[1:plans]
    plan[owner == 1] = -found.ineqlin.marginals[1:]
    return Equilibrium(-float(found.fun), normalised(np.where(plan > NEVER, plan, 0.0), nodes))


class Exact(TableState):
    """The linear programme in the clothes of an iterative solver: it is done after one step."""

    KEPT = ("strategy",)

    def __init__(self, nodes: FlatNodes) -> None:
        self.nodes = nodes
        self.iterations = 0
        self.strategy = normalised(np.zeros(int(nodes.infoset_start[-1])), nodes)

    def step(self, iterations: int) -> None:
        """Solve the game, once."""
        if not self.iterations:
            self.strategy = solve_lp(self.nodes).strategy
        self.iterations += iterations

    def average(self) -> FloatArray:
        """[slot] the solution."""
        return self.strategy

    current = average


def _walk(nodes: FlatNodes) -> tuple[Sequences, FloatArray]:
    """[player, node] the sequence that leads there, and [node] how likely chance is to do its part."""
    last = np.full((2, len(nodes.parent)), -1, dtype=np.int64)
    reach = np.ones(len(nodes.parent))
    for start, end in zip(nodes.level[1:-1], nodes.level[2:], strict=True):
        here = np.arange(start, end)
        above = nodes.parent[here]
        last[:, here] = last[:, above]
        reach[here] = reach[above] * nodes.chance[here]
        chosen = nodes.actor[above] >= 0
        here, above = here[chosen], above[chosen]
        last[nodes.actor[above], here] = nodes.infoset_start[nodes.infoset[above]] + here - nodes.first_child[above]
    return last, reach


def _check_recall(nodes: FlatNodes, last: Sequences) -> None:
    """Every information set comes after one sequence of its player; GameError where it comes after several."""
    acting = np.flatnonzero(nodes.actor >= 0)
    infoset = nodes.infoset[acting]
    forgetful = np.unique(infoset[last[nodes.actor[acting], acting] != nodes.infoset_after[infoset]])
    if len(forgetful):
        raise GameError(
            f"{len(forgetful):,} of {len(nodes.infoset_after):,} information sets, first number {forgetful[0]}, come "
            "after different actions of their own player, who must have forgotten them: the linear programme needs "
            "perfect recall; use a solver of the CFR family"
        )


def _equations(player: int, nodes: FlatNodes, number: Sequences) -> csr_array:
    """What makes a plan over a player's sequences: 1 for the empty one; at each information set, out − in = 0."""
    sizes = np.diff(nodes.infoset_start)
    sets = np.flatnonzero(nodes.infoset_player == player)
    slots = np.flatnonzero(np.repeat(nodes.infoset_player, sizes) == player)
    row = 1 + np.arange(len(sets))
    values = np.concatenate([[1.0], np.ones(len(slots)), -np.ones(len(sets))])
    rows = np.concatenate([[0], np.repeat(row, sizes[sets]), row])
    columns = np.concatenate([[0], number[slots], number[nodes.infoset_after[sets]]])
    return csr_array((values, (rows, columns)), shape=(1 + len(sets), 1 + len(slots)))
