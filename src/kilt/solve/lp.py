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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from kilt.arrays import ByteArray, FloatArray
from kilt.errors import GameError
from kilt.games.game import TERMINAL
from kilt.solve.counter import Restriction
from kilt.solve.solver import TableState, normalised
from kilt.tree.flat import FlatNodes
from kilt.tree.walk_kernels import own_reach

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
    form = _sequence_form(nodes, 0)
    found = _maximise(form, None, 1.0)
    plan = np.empty(len(form.owner))
    plan[form.owner == 0] = found.x[1 : form.mine.shape[1]]
    plan[form.owner == 1] = -found.ineqlin.marginals[1:]
    return Equilibrium(-float(found.fun), normalised(np.where(plan > NEVER, plan, 0.0), nodes))


def solve_restricted(nodes: FlatNodes, restriction: Restriction) -> Equilibrium:
    """The exact answer to an opponent who is held to a strategy in part [Johanson16 §§6.1, 6.5.1].

    With a coin of p it is a restricted Nash response: max p · xᵀ A ŷ + (1 − p) fᵀ q. Without one it is a data-biased
    response: the opponent's plans obey y(Ia) ≥ P_conf(I) σ(I, a) y(before I), whose multipliers g ≥ 0 are new unknowns.

    Parameters
    ----------
    nodes : FlatNodes
        A game with perfect recall.
    restriction : Restriction
        The opponent; the other player answers.

    Returns
    -------
    Equilibrium
        The value to the player who answers in the restricted game, in chips per game, and their strategy; that of the
        opponent is the one they are held to, scaled.
    """
    player, coin = 1 - restriction.player, restriction.coin
    form, fixed = _sequence_form(nodes, player), np.asarray(restriction.fixed, dtype=np.float64)
    bounds = None
    if not coin:
        slots = np.flatnonzero(form.owner == restriction.player)
        before = np.repeat(nodes.infoset_after, np.diff(nodes.infoset_start))[slots]
        each = np.arange(len(slots))
        entries = np.concatenate([np.ones(len(slots)), -fixed[slots]])
        places = np.tile(each, 2), np.concatenate([form.number[slots], form.number[before]])
        bounds = csr_array((entries, places), shape=(len(slots), form.theirs.shape[1]))
    found = _maximise(form, coin * form.against(nodes, fixed) if coin else None, 1 - coin, bounds)
    return Equilibrium(-float(found.fun), form.profile(nodes, found.x, fixed))


def safe_response(nodes: FlatNodes, player: int, strategy: FloatArray, safety: float) -> Equilibrium:
    """The most that a player can win from a strategy while giving up at most `safety` [Johanson16 §6.2].

    Parameters
    ----------
    nodes : FlatNodes
        A game with perfect recall.
    player : int
        Who answers.
    strategy : ndarray, shape (slots,)
        The opponent's part of it is answered.
    safety : float
        ε: chips per game that a best response may win from the answer beyond the value of the game.

    Returns
    -------
    Equilibrium
        What the answer wins, and the profile of the answer and the strategy.
    """
    form = _sequence_form(nodes, player)
    value = -float(_maximise(form, None, 1.0).fun)
    found = _maximise(form, form.against(nodes, strategy), 0.0, least=value - safety)
    return Equilibrium(-float(found.fun), form.profile(nodes, found.x, strategy))


class SequenceForm(NamedTuple):
    """A game as its sequence form: one player's plans against the other's."""

    player: int
    owner: ByteArray  # [slot] whose it is
    number: Sequences  # [slot + 1] of a sequence among its player's; the empty one is 0 and stands last, at −1
    mine: csr_array  # E: what makes a plan of the player
    theirs: csr_array  # F: … of the opponent
    payoff: csr_array  # A: [own sequence, theirs] to the player

    def against(self, nodes: FlatNodes, strategy: FloatArray) -> FloatArray:
        """[own sequence] what each is worth against the opponent's part of a strategy: A ŷ."""
        reach = np.empty(len(self.owner))
        own_reach(nodes, np.ascontiguousarray(strategy), 1 - self.player, reach)
        plan = np.append(1.0, reach[self.owner != self.player])
        worth: FloatArray = self.payoff @ plan
        return worth

    def profile(self, nodes: FlatNodes, solution: FloatArray, strategy: FloatArray) -> FloatArray:
        """[slot] the player's plan as a strategy, beside the opponent's part of another."""
        plan = np.array(strategy, dtype=np.float64)
        own = solution[1 : self.mine.shape[1]]
        plan[self.owner == self.player] = np.where(own > NEVER, own, 0.0)
        return normalised(plan, nodes)


def _sequence_form(nodes: FlatNodes, player: int) -> SequenceForm:
    """The sequence form of a game from a player's side; GameError where it is not zero-sum, or somebody forgets."""
    if nodes.surplus.size:
        raise GameError("with this tilt the game is not zero-sum, as its linear programme must be: use one of CFR's")
    last, reach = _walk(nodes)
    _check_recall(nodes, last)
    owner = np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start))
    number = np.append(np.where(owner == 0, np.cumsum(owner == 0), np.cumsum(owner == 1)), 0)
    mine, theirs = (_equations(who, nodes, number) for who in (player, 1 - player))
    ends = nodes.actor == TERMINAL
    pairs = number[last[player, ends]], number[last[1 - player, ends]]
    won = (reach * nodes.payoff)[ends] * (1 if player == 0 else -1)
    payoff = csr_array((won, pairs), shape=(mine.shape[1], theirs.shape[1]))
    return SequenceForm(player, owner, number, mine, theirs, payoff)


def _maximise(
    form: SequenceForm,
    worth: FloatArray | None,
    share: float,
    bounds: csr_array | None = None,
    least: float | None = None,
) -> Any:
    """Maximise worthᵀ x + share · fᵀ q over plans x and concessions q, with Fᵀ q + Gᵀ g ≤ Aᵀ x and fᵀ q ≥ `least`.

    The unknowns are x, then q, then g. HiGHS looks for a minimum; f is 1 at the empty sequence, 0 elsewhere.
    """
    (rows, plans), concessions = form.mine.shape, form.theirs.shape[0]
    more = 0 if bounds is None else bounds.shape[0]
    cost = np.zeros(plans + concessions + more)
    cost[:plans] = 0.0 if worth is None else -worth
    cost[plans] = -share
    parts = [-form.payoff.T, form.theirs.T]
    lower: list[float | None] = [0.0] * plans + [None] * concessions + [0.0] * more
    if bounds is not None:
        parts.append(bounds.T)
    if least is not None:
        lower[plans] = least
    found = linprog(
        cost,
        A_ub=hstack(parts),
        b_ub=np.zeros(form.payoff.shape[1]),
        A_eq=hstack([form.mine, csr_array((rows, concessions + more))]),
        b_eq=np.eye(1, rows)[0],
        bounds=[(bound, None) for bound in lower],
        method="highs",
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if found.status != 0:
        raise GameError(f"HiGHS could not solve the linear programme of {len(cost):,} unknowns: {found.message}")
    return found


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
