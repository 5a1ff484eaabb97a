"""Solve small games exactly by linear programming in sequence form, as a reference for other solvers.

With perfect recall, each information set is reached by exactly one *sequence* of its player's own actions. A strategy
can then be written as a realisation plan: for each sequence, the probability that the player takes all its actions. The
plan of the empty sequence is 1, and the probability of the sequence that leads to an information set is split among its
actions: linear equations, E x = e for player 0 and F y = f for player 1. With A the payoff of each pair of sequences,
player 0 solves

    max over x of min over y of xᵀ A y  =  max fᵀ q  subject to  Fᵀ q ≤ Aᵀ x,  E x = e,  x ≥ 0,

where the second form follows from the duality of the inner problem: q are player 1's concessions from each information
set on. The plan y is the multipliers of Fᵀ q ≤ Aᵀ x. See D. Koller, N. Megiddo, B. von Stengel: Fast algorithms for
finding randomized strategies in game trees, STOC 1994; [Johanson16 §9.2] describes its applications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.errors import GameError
from kilt.games.game import TERMINAL
from kilt.solve.counter import Restriction
from kilt.solve.solver import TableState, normalised
from kilt.tree.flat import FlatNodes
from kilt.tree.walk_kernels import own_reach

Sequences = npt.NDArray[np.int64]  # slot of the last action of each sequence; −1: the empty sequence

TOLERANCE = 1e-10  # the smallest that HiGHS accepts
OPTIONS = {
    "output_flag": False,
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
}
NEVER = 1e-12  # smaller probabilities of sequences are rounding errors


@dataclass(frozen=True)
class Equilibrium:
    """The solution of a game: both players' optimal strategies, and the game value."""

    value: float  # to player 0, in chips per game
    strategy: FloatArray  # [slot] uniform at information sets that the player's own actions never reach


def solve_lp(nodes: FlatNodes) -> Equilibrium:
    """Solve a zero-sum game with perfect recall exactly by linear programming.

    >>> from kilt.games import load_game
    >>> from kilt.tree.flat import flat_tree
    >>> round(18 * solve_lp(flat_tree(load_game("kuhn")).nodes).value, 9)
    -1.0
    """
    form = _sequence_form(nodes, 0)
    best = _maximise(form, None, 1.0)
    plan = np.empty(len(form.owner))
    plan[form.owner == 0] = best.plan[1:]
    plan[form.owner == 1] = best.multipliers[1:]
    return Equilibrium(best.value, normalised(np.where(plan > NEVER, plan, 0.0), nodes))


def solve_restricted(nodes: FlatNodes, restriction: Restriction) -> Equilibrium:
    """Compute an exact counter-strategy to an opponent who must partly follow a fixed strategy.

    The method is that of [Johanson16 §§6.1, 6.5.1]. With a coin of probability p, this is a restricted Nash response:
    max p · xᵀ A ŷ + (1 − p) fᵀ q. Without one, it is a data-biased response: the opponent's plans satisfy y(Ia) ≥
    P_conf(I) σ(I, a) y(before I), whose multipliers g ≥ 0 are additional unknowns.

    Parameters
    ----------
    nodes : FlatNodes
        A game with perfect recall.
    restriction : Restriction
        Restriction of the opponent; the counter-strategy is for the other player.

    Returns
    -------
    Equilibrium
        The counter-strategy and its value in the restricted game, in chips per game. The opponent's part of the
        strategy is the one that the opponent is restricted to, normalised.
    """
    player, coin = 1 - restriction.player, restriction.coin
    form, fixed = _sequence_form(nodes, player), np.asarray(restriction.fixed, dtype=np.float64)
    bounds = None
    if not coin:
        slots = np.flatnonzero(form.owner == restriction.player)
        before = np.repeat(nodes.infoset_after, np.diff(nodes.infoset_start))[slots]
        rows = np.tile(np.arange(len(slots)), 2)
        columns = np.concatenate([form.number[slots], form.number[before]])
        values = np.concatenate([np.ones(len(slots)), -fixed[slots]])
        bounds = SparseMatrix((len(slots), form.theirs.shape[1]), rows, columns, values)
    best = _maximise(form, coin * form.sequence_values(nodes, fixed) if coin else None, 1 - coin, bounds)
    return Equilibrium(best.value, form.profile(nodes, best.plan, fixed))


def safe_response(nodes: FlatNodes, player: int, strategy: FloatArray, safety: float) -> Equilibrium:
    """Return the best counter-strategy with an exploitability of at most `safety` [Johanson16 §6.2].

    Parameters
    ----------
    nodes : FlatNodes
        A game with perfect recall.
    player : int
        The player who responds.
    strategy : ndarray, shape (slots,)
        Contains the opponent's strategy.
    safety : float
        ε, in chips per game: the most that a best response to the result may win above the value of the game.

    Returns
    -------
    Equilibrium
        The value of the response, and the profile of the response and the opponent's strategy.
    """
    form = _sequence_form(nodes, player)
    value = _maximise(form, None, 1.0).value
    best = _maximise(form, form.sequence_values(nodes, strategy), 0.0, least=value - safety)
    return Equilibrium(best.value, form.profile(nodes, best.plan, strategy))


class SparseMatrix(NamedTuple):
    """A sparse matrix given by its entries, in any order."""

    shape: tuple[int, int]
    rows: IntArray
    columns: IntArray
    values: FloatArray

    def by_columns(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray]:
        """Convert the matrix to compressed sparse columns, as three arrays.

        They are the index of the first entry of each column, and the row and the value of each entry.
        """
        height, width = self.shape
        cells, entry = np.unique(self.columns * height + self.rows, return_inverse=True)
        values = np.zeros(len(cells))
        np.add.at(values, entry, self.values)
        start = np.searchsorted(cells, np.arange(width + 1) * height)
        return start.astype(np.int32), (cells % height).astype(np.int32), values


class SequenceForm(NamedTuple):
    """A game in sequence form, as a linear programme needs it.

    It has a payoff for each pair of action sequences, and equations for valid plans.
    """

    player: int
    owner: ByteArray  # [slot] player to act
    number: Sequences  # [slot + 1] number among the player's sequences; the empty one is 0, at index −1
    mine: SparseMatrix  # E: the equations of the player's plans
    theirs: SparseMatrix  # F: those of the opponent's plans
    payoff: SparseMatrix  # A: [own sequence, theirs] to the player

    def sequence_values(self, nodes: FlatNodes, strategy: FloatArray) -> FloatArray:
        """Return the value of each action sequence of a player against the opponent's strategy.

        This is A ŷ.
        """
        reach = np.empty(len(self.owner))
        own_reach(nodes, np.ascontiguousarray(strategy), 1 - self.player, reach)
        plan = np.append(1.0, reach[self.owner != self.player])
        payoff, worth = self.payoff, np.zeros(self.payoff.shape[0])
        np.add.at(worth, payoff.rows, payoff.values * plan[payoff.columns])
        return worth

    def profile(self, nodes: FlatNodes, plan: FloatArray, strategy: FloatArray) -> FloatArray:
        """Convert a player's plan to action probabilities, joined with the opponent's strategy."""
        profile = np.array(strategy, dtype=np.float64)
        profile[self.owner == self.player] = np.where(plan > NEVER, plan, 0.0)[1:]
        return normalised(profile, nodes)


class Optimum(NamedTuple):
    """The solution of a linear programme for a player's maximum winnings."""

    value: float
    plan: FloatArray  # x
    multipliers: FloatArray  # of the inequalities: the opponent's plan y


def _sequence_form(nodes: FlatNodes, player: int) -> SequenceForm:
    """Return a game in sequence form, for one player. Raises GameError without zero sum or perfect recall."""
    if nodes.surplus.size:
        raise GameError(
            "the game with this tilt is not zero-sum, as the linear programme requires: use a solver of the CFR family"
        )
    last, reach = _walk(nodes)
    _check_recall(nodes, last)
    owner = np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start))
    number = np.append(np.where(owner == 0, np.cumsum(owner == 0), np.cumsum(owner == 1)), 0)
    mine, theirs = (_equations(who, nodes, number) for who in (player, 1 - player))
    ends = nodes.actor == TERMINAL
    rows, columns = number[last[player, ends]], number[last[1 - player, ends]]
    won = (reach * nodes.payoff)[ends] * (1 if player == 0 else -1)
    payoff = SparseMatrix((mine.shape[1], theirs.shape[1]), rows, columns, won)
    return SequenceForm(player, owner, number, mine, theirs, payoff)


def _maximise(
    form: SequenceForm,
    worth: FloatArray | None,
    share: float,
    bounds: SparseMatrix | None = None,
    least: float | None = None,
) -> Optimum:
    """Solve the linear programme of a player's best plan by HiGHS.

    It maximises worthᵀ x + share · fᵀ q over plans x and concessions q, with Fᵀ q + Gᵀ g ≤ Aᵀ x and fᵀ q ≥ `least`. The
    unknowns are x, then q, then g. HiGHS looks for a minimum; f is 1 at the empty sequence, 0 elsewhere.
    """
    import highspy  # takes a fifth of a second

    (equations, plans), (concessions, inequalities) = form.mine.shape, form.theirs.shape
    more = 0 if bounds is None else bounds.shape[0]
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = plans + concessions + more, inequalities + equations
    cost = np.zeros(lp.num_col_)
    cost[:plans] = 0.0 if worth is None else -worth
    cost[plans] = -share
    lower = np.repeat([0.0, -np.inf, 0.0], [plans, concessions, more])
    if least is not None:
        lower[plans] = least
    unit = np.eye(1, equations)[0]
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, np.full(len(cost), np.inf)
    lp.row_lower_ = np.append(np.full(inequalities, -np.inf), unit)
    lp.row_upper_ = np.append(np.zeros(inequalities), unit)

    payoff, mine, theirs = form.payoff, form.mine, form.theirs
    blocks = [  # rows, columns and values
        (payoff.columns, payoff.rows, -payoff.values),
        (theirs.columns, plans + theirs.rows, theirs.values),
        (inequalities + mine.rows, mine.columns, mine.values),
    ]
    if bounds is not None:
        blocks.append((bounds.columns, plans + concessions + bounds.rows, bounds.values))
    whole = SparseMatrix((lp.num_row_, lp.num_col_), *(np.concatenate(each) for each in zip(*blocks, strict=True)))
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.num_row_, matrix.num_col_ = whole.shape
    matrix.start_, matrix.index_, matrix.value_ = whole.by_columns()

    solver = highspy.Highs()
    for name, value in OPTIONS.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        reason = solver.modelStatusToString(status)
        raise GameError(f"HiGHS could not solve the linear programme of {len(cost):,} unknowns: {reason}")
    solution = solver.getSolution()
    plan, multipliers = np.array(solution.col_value[:plans]), -np.array(solution.row_dual[:inequalities])
    return Optimum(-float(solver.getInfo().objective_function_value), plan, multipliers)


class SequenceFormLP(TableState):
    """A solver that finds an exact equilibrium by linear programming, in a single step.

    It has the interface of iterative solvers.
    """

    KEPT = ("strategy",)

    def __init__(self, nodes: FlatNodes) -> None:
        self.nodes = nodes
        self.iterations = 0
        self.strategy = normalised(np.zeros(int(nodes.infoset_start[-1])), nodes)

    def step(self, iterations: int) -> None:
        """Solve the game at the first call. Later calls only count iterations."""
        if not self.iterations:
            self.strategy = solve_lp(self.nodes).strategy
        self.iterations += iterations

    def average(self) -> FloatArray:
        """Return the optimal strategy, as a probability for each action of each information set."""
        return self.strategy

    current = average


def _walk(nodes: FlatNodes) -> tuple[Sequences, FloatArray]:
    """Return the sequence of each player that leads to each node, and the probability of chance to reach it.

    The shapes are (players, nodes) and (nodes,).
    """
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
    """Raise GameError unless every information set follows exactly one sequence of its player."""
    acting = np.flatnonzero(nodes.actor >= 0)
    infoset = nodes.infoset[acting]
    forgetful = np.unique(infoset[last[nodes.actor[acting], acting] != nodes.infoset_after[infoset]])
    if len(forgetful):
        raise GameError(
            f"{len(forgetful):,} of {len(nodes.infoset_after):,} information sets, first number {forgetful[0]}, follow "
            "different actions of their own player, so the player has forgotten some: the linear programme needs "
            "perfect recall; use a solver of the CFR family"
        )


def _equations(player: int, nodes: FlatNodes, number: Sequences) -> SparseMatrix:
    """Return the equations that a player's plan must satisfy.

    They are 1 for the empty sequence, and out − in = 0 for each information set.
    """
    sizes = np.diff(nodes.infoset_start)
    sets = np.flatnonzero(nodes.infoset_player == player)
    slots = np.flatnonzero(np.repeat(nodes.infoset_player, sizes) == player)
    row = 1 + np.arange(len(sets))
    values = np.concatenate([[1.0], np.ones(len(slots)), -np.ones(len(sets))])
    rows = np.concatenate([[0], np.repeat(row, sizes[sets]), row])
    columns = np.concatenate([[0], number[slots], number[nodes.infoset_after[sets]]])
    return SparseMatrix((1 + len(sets), 1 + len(slots)), rows, columns, values)
