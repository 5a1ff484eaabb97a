"""Expected winnings of one abstract strategy against another, on deals that both are dealt in both seats.

Both strategies bet by the same tree; each sees the cards through its own abstraction. Cards are drawn, actions are
not: the walk over the betting tree takes the expectation over all actions of both. So the only luck left is that of
the cards, and much of it cancels when the seats are swapped. A match that is played out needs many more hands for an
interval of the same width.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import SlotLayout, SyntheticGame
from kilt.arrays import Array, FloatArray
from kilt.errors import GameError
from kilt.evaluate.head_to_head_kernels import Seat, meet
from kilt.evaluate.stats import Estimate, estimate
from kilt.games.holdem import CALL, FOLD, RAISE
from kilt.solve.external import DEALS, WalkWorkspace, rules_of
from kilt.strategy.fixed import chances
from kilt.tree.betting import after_chance, call_place

SEED = 2**63  # far from those of solvers
OPPONENTS = ("always-call", "always-raise", "always-fold")  # rows of `strategy.fixed`
AGAINST_FIXED = 6 * DEALS  # deals on which these are met


class AbstractStrategy(NamedTuple):
    """A strategy over the slots of an abstract game."""

    abstract: SlotLayout
    shares: Array  # [slot] weights; the actions of an information set are normalised. All 0: the player calls


def fixed_strategy(game: SlotLayout, agent: str) -> AbstractStrategy:
    """The strategy of an agent of `strategy.fixed` in the betting tree of `game`; it has one bucket in every round."""
    one = (1,) * game.game.rules.rounds
    abstract = SyntheticGame(game.game, (one, one), game.actions)
    vars(abstract)["betting"] = game.betting  # both have the same tree: do not build it again
    nodes, level = abstract.betting.nodes, abstract.betting.level
    shares = np.zeros(abstract.slots, dtype=np.uint8)
    decisions = np.flatnonzero(nodes.actor >= 0)
    passive = 1 + call_place(nodes, level, decisions).astype(np.int64)
    for folds, count in np.unique(np.stack([passive, nodes.children[decisions]]), axis=1).T.tolist():
        actions = (*(FOLD, CALL)[2 - folds :], *[RAISE] * (count - folds))  # which raises they are does not matter
        alike = decisions[(passive == folds) & (nodes.children[decisions] == count)]
        shares[abstract.first[alike][:, None] + np.arange(count)] = np.round(chances(agent, actions) * 255)
    return AbstractStrategy(abstract, shares)


def expected_winnings(
    one: AbstractStrategy, other: AbstractStrategy, deals: int, seed: int = SEED, threads: int = 1
) -> FloatArray:
    """What strategy `one` is expected to win from strategy `other` on sampled deals.

    Parameters
    ----------
    one, other : AbstractStrategy
        Their betting trees must be the same; their card abstractions may differ.
    deals : int
        Number of deals: private cards of both seats and the whole board.
    seed : int
        Deal number i is a function of the seed and i.
    threads : int
        Number of threads that share the deals. The result does not depend on it.

    Returns
    -------
    ndarray, shape (deals, 2)
        Chips that `one` wins in seat 0 and in seat 1: the expectation over the actions of both players.
    """
    if not one.abstract.betting.same_bets(other.abstract.betting):
        raise GameError("the two strategies have other bets: let them meet in a match, where bets are translated")
    won = np.empty((deals, 2))
    rules, theirs = rules_of(one.abstract, 1), rules_of(other.abstract, 1)
    call = _calls(one.abstract)

    def work(thread: int) -> None:
        mine, yours = WalkWorkspace(one.abstract), WalkWorkspace(other.abstract)
        for start in range(thread * DEALS, deals, threads * DEALS):
            part = won[start : start + DEALS]
            bucket, outcome = mine.deal(np.uint64(seed), start, len(part))
            seats = (
                Seat(rules.nodes, bucket, one.shares),
                Seat(theirs.nodes, yours.deal(np.uint64(seed), start, len(part))[0], other.shares),
            )
            meet(rules, *seats, outcome, call, mine.queue, part)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return won


class FixedOpponents:
    """Win rates of strategies of an abstract game against the agents in `OPPONENTS`, on the same deals each time.

    Called with a strategy ([slot] weights), it answers win rates in mbb/h by opponent, means over both seats.
    """

    def __init__(self, abstract: SlotLayout, threads: int = 1) -> None:
        self.abstract, self.threads = abstract, threads
        self._fixed: dict[str, AbstractStrategy] = {}

    def __call__(self, strategy: Array) -> dict[str, float]:
        """Win rate against each of `OPPONENTS`, in mbb/h."""
        return {agent: self.win_rate(strategy, agent).mean for agent in OPPONENTS}

    def win_rate(self, strategy: Array, agent: str, deals: int = AGAINST_FIXED) -> Estimate:
        """Win rate against one agent in mbb/h, mean over both seats, with its 95% interval."""
        if agent not in self._fixed:
            self._fixed[agent] = fixed_strategy(self.abstract, agent)
        player = AbstractStrategy(self.abstract, strategy)
        won = expected_winnings(player, self._fixed[agent], deals, threads=self.threads)
        return estimate(won.mean(axis=1) * 1000 / self.abstract.game.rules.big_blind)


def _calls(abstract: SlotLayout) -> npt.NDArray[np.uint8]:
    """[node] which of its actions is the call; walks see what follows a chance node in its place."""
    betting = abstract.betting
    nodes = betting.nodes
    call = np.zeros(len(nodes.actor), dtype=np.uint8)
    acts = np.flatnonzero(nodes.actor >= 0)
    call[acts] = call_place(nodes, betting.level, acts)
    return call[after_chance(nodes)]
