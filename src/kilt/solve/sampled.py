"""Monte Carlo CFR on small games: external sampling, outcome sampling or pure CFR.

An iteration passes over a random part of the tree, once for each player, and adds to the player's regrets numbers that
are on average the counterfactual regrets of a full pass (Lanctot, Waugh, Zinkevich and Bowling 2009, Lemma 1). Chance
and the opponent act at random with their own probabilities, so these need no correction. The schemes differ in what the
learning player does:

============  ==========================  ===================================  ============================
scheme        the player                  adds to the regret of action a at I  and to the opponent's average
============  ==========================  ===================================  ============================
``external``  tries every action          v(Ia) − Σ σ(I, b) v(Ib)              σ(I)
``pure``      tries every action          v(Ia) − v(Iŝ)                        1 for the action taken
``outcome``   takes one action: any with  u(z) / q(z) · (π(Ia, z) − π(I, z))   σ(I) / q(I)
              probability ε, else from σ
============  ==========================  ===================================  ============================

σ is the strategy of regret matching, and v the sampled value after an action. Pure CFR (Gibson 2014) also samples an
action ŝ of the player from σ: if payoffs are integers, all regrets stay integers. In outcome sampling, z is the end of
the path, u its payoff, q(·) the probability of sampling the player's own actions so far, and π(·, z) the probability
that σ continues to z along the path: 0 after an action not taken. ε is 0.6, which is also open_spiel's default.

The average is correctly weighted by the opponent's own reach, because a pass reaches the opponent's I in proportion to
that reach and to q(I), which is 1 if the player tries every action. Division by q(I) is stochastically weighted
averaging (Lanctot 2013). All this requires that players act in turn, with perfect recall.

>>> from kilt.games import load_game
>>> from kilt.tree.best_response import exploitability
>>> from kilt.tree.flat import flat_tree
>>> kuhn = flat_tree(load_game("kuhn"))
>>> solver = FlatMCCFR(kuhn.nodes, "external", seed=1)
>>> solver.step(100_000)
>>> exploitability(kuhn, solver.average()) < 0.005
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from kilt.arrays import FloatArray, IntArray
from kilt.errors import GameError
from kilt.games.game import CHANCE, TERMINAL
from kilt.solve import sampled_kernels as kernels
from kilt.solve.solver import TableState, normalised
from kilt.tree.flat import FlatNodes

SCHEMES: dict[str, Callable[..., None]] = {
    "external": partial(kernels.walk_all, False),
    "outcome": partial(kernels.walk_one, 0.6),
    "pure": partial(kernels.walk_all, True),
}


class FlatMCCFR(TableState):
    """A solver that runs Monte Carlo CFR on a flat tree.

    Results depend only on the seed and the number of iterations.
    """

    KEPT = ("regret", "strategy", "total", "seed")

    def __init__(self, nodes: FlatNodes, scheme: str = "external", seed: int = 0) -> None:
        if scheme not in SCHEMES:
            raise GameError(f"unknown sampling scheme {scheme!r}: use one of {', '.join(SCHEMES)}")
        slots = int(nodes.infoset_start[-1])
        self.nodes = nodes
        self.iterations = 0
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self.regret = np.zeros(slots)
        self.strategy = normalised(np.zeros(slots), nodes)
        self.total = np.zeros(slots)  # sum of the strategies for the average
        self._walk = SCHEMES[scheme]
        self._paths = paths(nodes)

    def step(self, iterations: int) -> None:
        """Run more iterations of Monte Carlo CFR, each with a sampled pass for each player."""
        walks = (self.seed[()], 2 * self.iterations, 2 * iterations)
        self._walk(*walks, self._paths, self.regret, self.regret, self.strategy, self.total)
        self.iterations += iterations

    def average(self) -> FloatArray:
        """Return the average strategy, with a probability for each action of each information set."""
        return normalised(self.total, self.nodes)

    def current(self) -> FloatArray:
        """Return the current strategy, computed by regret matching."""
        return self.strategy.copy()


def paths(nodes: FlatNodes) -> kernels.Paths:
    """Convert a flat tree to arrays for Monte Carlo CFR."""
    acts, ends = nodes.actor >= 0, nodes.actor == TERMINAL
    decision = (nodes.actor, nodes.children, nodes.first_child, nodes.infoset_start[nodes.infoset])
    payoffs = np.stack([nodes.payoff, nodes.payoff - (nodes.surplus if nodes.surplus.size else 0)])[:, ends]
    payoff, row = np.unique(payoffs, axis=1, return_inverse=True)

    chance, reached, odds = chance_events(nodes)
    events, first, count = np.unique(chance, return_index=True, return_counts=True)
    outcome = np.stack([reached, reached], axis=1).astype(np.uint32)
    kernels.build_alias_tables(np.append(first, len(odds)), odds, outcome)

    records = np.zeros(len(nodes.actor), dtype=kernels.NODE)
    for where, *fields in (
        (acts, *(field[acts] for field in decision)),
        (events, kernels.DEAL, count, first, nodes.infoset_start[-1] + first),
        (ends, kernels.END, 0, row, 0),
    ):
        for name, numbers in zip(kernels.NODE.fields or (), fields, strict=True):
            records[name][where] = numbers
    for start, end in reversed(list(pairwise(nodes.level))):  # a forced move is replaced by its child
        forced = start + np.flatnonzero(acts[start:end] & (nodes.children[start:end] == 1))
        records[forced] = records[nodes.first_child[forced]]
    return kernels.Paths(records, payoff, odds, outcome)


def chance_events(nodes: FlatNodes) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the possible outcomes of all chance events, with their probabilities.

    Consecutive chance nodes are merged into one event. Rows are sorted by event.
    """
    event, odds = np.arange(len(nodes.actor)), np.ones(len(nodes.actor))
    dealt = nodes.actor[nodes.parent] == CHANCE  # False at the root: its parent −1 is the last node, which is terminal
    for start, end in pairwise(nodes.level):
        here = start + np.flatnonzero(dealt[start:end])
        event[here] = event[nodes.parent[here]]
        odds[here] = odds[nodes.parent[here]] * nodes.chance[here]
    reached = np.flatnonzero(dealt & (nodes.actor != CHANCE))
    reached = reached[np.argsort(event[reached], kind="stable")]
    return event[reached], reached, odds[reached]
