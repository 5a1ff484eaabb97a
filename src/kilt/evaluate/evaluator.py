"""Evaluate strategies by exploitability or, in very large games, by win rates against simple opponents.

An `Evaluator` evaluates strategies for one representation of a game; `evaluator_for` finds the evaluator for a problem.
Exploitability is the mean over both seats of the winnings of a best response, in chips per game: never negative, and 0
for an equilibrium. open_spiel's NashConv is twice that.

>>> from kilt.solve.forms import load_problem
>>> evaluator = evaluator_for(load_problem("kuhn"))
>>> value, exploitability = evaluator.evaluate(evaluator.problem.uniform())
>>> round(value, 4), round(exploitability, 4)
(0.125, 0.4583)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from kilt.abstraction.joint import quickly_available
from kilt.arrays import Array
from kilt.errors import AbstractionError, RunError
from kilt.evaluate.head_to_head import FixedOpponents
from kilt.evaluate.responses import Walks
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.abstract_response import abstract_responses, walks_of
from kilt.solve.problem import CPU, FlatProblem, Problem, VectorProblem
from kilt.solve.solver import Solver, StrategyInParts
from kilt.solve.tables.disk_strategy import DiskProblem, DiskStrategy
from kilt.tree import best_response
from kilt.tree.evaluable import exploitability_of_responses
from kilt.tree.walk_kernels import TIE
from kilt.tree.walks import Walk

UNIT = "chips per game"
VECTOR_PRECISION = 1e-9  # chips per game: maximum rounding error of walks with vectors of hands
DEVICE_PRECISION = 1e-6  # the same in single precision, on a GPU
PATIENCE = 5.0  # seconds: if a walk of the whole game takes longer, a run does not measure exploitability

P = TypeVar("P", bound=Problem)


class Figures(NamedTuple):
    """Measurements of a solver's average and current strategies, such as their exploitability."""

    exploitability: float  # of the average strategy, in chips per game; nan if unknown
    current_exploitability: float  # of the strategy of the last iteration
    value: float  # expected winnings of player 0 when both follow the average strategy, in chips per game
    others: dict[str, float]  # win rates of the average strategy in mbb per hand, by opponent
    abstract_exploitability: float = (
        nan  # of the average strategy, by opponents who see the same buckets; nan if not known
    )


@dataclass(frozen=True)
class Evaluator(ABC, Generic[P]):
    """Evaluates strategies of one game, with a subclass for each way of storing games."""

    problem: P
    patience: float = PATIENCE  # maximum seconds of a walk for exploitability to be measured

    @property
    def exact(self) -> bool:
        """Whether best responses can be computed. In large abstract games they cannot."""
        return True

    @property
    @abstractmethod
    def precision(self) -> float:
        """The maximum rounding error of exploitability, in chips per game."""

    @abstractmethod
    def expected_value(self, strategy: Array) -> float:
        """Return player 0's expected winnings if both players follow a strategy, in chips per game."""

    @abstractmethod
    def response_values(self, strategy: Array) -> tuple[float, float]:
        """Return a best response's winnings against a strategy in each seat, in chips per game."""

    @abstractmethod
    def best_responses(self, strategy: Array) -> Array:
        """Return the best response to a strategy for each seat, as one strategy table."""

    def tree_passes(self, strategy: Array) -> Walks:
        """Return an object that evaluates a strategy in passes over the game tree, which workers can share.

        Raises RunError if the game has no parts.
        """
        raise RunError(f"{self.problem.name} is one small tree without parts for workers to walk: remove the engine")

    def opponent_win_rates(self, strategy: Array) -> dict[str, float]:
        """Return a strategy's win rates against simple opponents in mbb per hand, if exploitability is unknown.

        Otherwise the result is empty.
        """
        return {}

    def abstract_exploitability(self, strategy: Array) -> float:
        """Return the exploitability inside the abstraction, where the opponent sees the same buckets.

        It is in chips per game, and nan if it cannot be computed.
        """
        return nan

    def exploitability(self, strategy: Array) -> float:
        """Return the exploitability of a strategy: the mean win of best responses over both seats, in chips per game.

        The result is at least 0.
        """
        return exploitability_of_responses(self.response_values(strategy))

    def evaluate(self, strategy: Array) -> tuple[float, float]:
        """Return a strategy's value for player 0 and its exploitability, both in chips per game."""
        return self.expected_value(strategy), self.exploitability(strategy)

    def measure(self, solver: Solver) -> Figures:
        """Return the exploitability of a solver's average strategy and current strategy."""
        average = solver.average()
        value, exploitability = self.evaluate(average)
        current = self.exploitability(solver.current()) if self.exact else nan
        return Figures(
            exploitability, current, value, self.opponent_win_rates(average), self.abstract_exploitability(average)
        )

    def require_measurable(self, target: float | None) -> None:
        """Raise RunError if exploitability cannot be measured precisely enough for a run's target."""
        if target is not None and not self.exact:
            raise RunError(f"{self.problem.name} is too large to measure exploitability: give iterations or minutes")
        if target is not None and target < self.precision:
            raise RunError(
                f"a target of {target:g} {UNIT} cannot be measured: on {self.problem.name}, exploitability is "
                f"known to {self.precision:.2g}; give a target above that"
            )


class FlatEvaluator(Evaluator[FlatProblem]):
    """Evaluates strategies of small games, which are stored as flat trees."""

    @property
    def precision(self) -> float:
        """The maximum error of exploitability, in chips per game.

        Best responses treat actions of nearly equal value as equal.
        """
        return TIE * len(self.problem.tree.infosets)

    def expected_value(self, strategy: Array) -> float:
        """Return player 0's expected winnings if both players follow a strategy, in chips per game."""
        return best_response.expected_value(self.problem.tree, strategy)

    def response_values(self, strategy: Array) -> tuple[float, float]:
        """Return a best response's winnings against a strategy in each seat, in chips per game."""
        return best_response.response_values(self.problem.tree, strategy)

    def best_responses(self, strategy: Array) -> Array:
        """Return the best response to a strategy for each seat, as one strategy array."""
        tree = self.problem.tree
        first, second = (best_response.best_response(tree, strategy, player).strategy for player in (0, 1))
        nodes = tree.nodes
        return np.where(np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start)) == 0, first, second)


class VectorEvaluator(Evaluator[VectorProblem]):
    """Evaluates strategies by passes over the public tree, with all private hands at once."""

    @property
    def precision(self) -> float:
        """The maximum rounding error of exploitability, in chips per game.

        It is larger on a GPU, whose sums have 7 digits.
        """
        return VECTOR_PRECISION if self.problem.device == CPU else DEVICE_PRECISION

    def expected_value(self, strategy: Array) -> float:
        """Return player 0's expected winnings if both players follow a strategy, in chips per game."""
        return self.problem.walker.expected_value(strategy)

    def response_values(self, strategy: Array) -> tuple[float, float]:
        """Return a best response's winnings against a strategy in each seat, in chips per game."""
        return self.problem.walker.response_values(strategy)

    def exploitability(self, strategy: Array) -> float:
        """Return the exploitability of a strategy: the mean win of best responses over both seats, in chips per game.

        The result is at least 0.
        """
        return self.problem.walker.exploitability(strategy)

    def best_responses(self, strategy: Array) -> Array:
        """Return the best response to a strategy for each seat, as one table of shape (rows, hands)."""
        return self.problem.game.responses(strategy)

    def tree_passes(self, strategy: Array) -> Walks:
        """Return an object that evaluates a strategy in passes over the game tree, which workers can share.

        Raises RunError if the game has one round.
        """
        if len(self.problem.game.tree.rows) == 1:
            return super().tree_passes(strategy)
        return Walks(self.problem.game, lambda player, task: Walk(player, (task,), strategy, strategy))


class DiskEvaluator(Evaluator[DiskProblem]):
    """Evaluates strategies that are stored on disk, in a single pass over the files."""

    @property
    def precision(self) -> float:
        """The maximum rounding error of exploitability, in chips per game."""
        return VECTOR_PRECISION

    def expected_value(self, strategy: Any) -> float:
        """Return player 0's expected winnings if both players follow a strategy, in chips per game."""
        return self._of(strategy).expected_values()[0]

    def response_values(self, strategy: Any) -> tuple[float, float]:
        """Return a best response's winnings against a strategy in each seat, in chips per game."""
        return self._of(strategy).response_values()

    def exploitability(self, strategy: Any) -> float:
        """Return the exploitability of a strategy: the mean win of best responses over both seats, in chips per game.

        The result is at least 0.
        """
        return self._of(strategy).exploitability()

    def best_responses(self, strategy: Any) -> Array:
        """Raise RunError, because a best response would be too large to store."""
        raise RunError(f"a best response in {self.problem.name} is as large as the game, and is not stored")

    def _of(self, strategy: Any) -> DiskStrategy:
        assert isinstance(strategy, DiskStrategy)
        return strategy.with_payoffs(self.problem.subgames)


class AbstractEvaluator(Evaluator[AbstractProblem]):
    """Evaluates strategies of an abstract game by exploitability or, in large games, by win rates.

    If memory and time allow it, best responses are those of the whole game: the opponent sees all cards, and has the
    bets of the menu. Otherwise win rates against simple opponents are measured, on the same deals each time.
    """

    @property
    def precision(self) -> float:
        """The maximum rounding error of exploitability, in chips per game."""
        return VECTOR_PRECISION

    @cached_property
    def exact(self) -> bool:
        """Whether best responses can be computed, for which the game must be small enough."""
        return self.problem.walk.in_memory.fits and self.problem.walk.seconds <= self.patience

    def expected_value(self, strategy: Array) -> float:
        """Return player 0's expected winnings if both players follow a strategy, in chips per game.

        Returns nan if best responses cannot be computed (`exact`).
        """
        if not self.exact:
            return nan
        bucketed = self.problem.bucketed
        return bucketed.expected_value(bucketed.table_of(self.problem.abstract, strategy))

    def response_values(self, strategy: Array) -> tuple[float, float]:
        """Return the winnings of a best response that sees all cards, in each seat, in chips per game.

        Returns nan if best responses cannot be computed (`exact`).
        """
        if not self.exact:
            return nan, nan
        bucketed = self.problem.bucketed
        return bucketed.response_values(bucketed.table_of(self.problem.abstract, strategy))

    def best_responses(self, strategy: Array) -> Array:
        """Raise RunError, because best responses see all cards and are no strategies of the abstract game."""
        raise RunError("best responses to an abstract strategy see all cards: they are not abstract strategies")

    def tree_passes(self, strategy: Array) -> Walks:
        """Return an object that evaluates a strategy in passes over the game tree, which workers can share.

        Raises RunError if the game has one round, or is too large to be walked.
        """
        if not self.exact or len(self.problem.bucketed.game.tree.rows) == 1:
            return super().tree_passes(strategy)
        bucketed = self.problem.bucketed
        table = bucketed.table_of(self.problem.abstract, strategy)
        return Walks(bucketed.game, lambda player, task: bucketed.walk(player, task, table))

    def abstract_exploitability(self, strategy: Array) -> float:
        """Return the exploitability inside the abstraction, where the opponent sees the same buckets.

        It is in chips per game, and nan if it cannot be computed.

        It is computed from joint tables if they exist, otherwise by walks of the whole game if these are fast, and is
        at least 0. With imperfect recall it is a lower bound: see `kilt.solve.joint`.
        """
        problem = self.problem
        if self._has_joint:
            with suppress(AbstractionError):  # too many sequences of buckets
                return problem.joint.exploitability(strategy)
        if self.exact and walks_of(problem.bucketed) * problem.walk.seconds <= self.patience:
            table = problem.bucketed.table_of(problem.abstract, strategy)
            return exploitability_of_responses(abstract_responses(problem.bucketed, table)[1])
        return nan

    def measure(self, solver: Solver) -> Figures:
        """Return the exploitability of a solver's strategies or, in large games, its average strategy's win rates.

        If only win rates can be measured, and the strategy is split into parts, the workers that hold the parts measure
        them. The strategy is never assembled.
        """
        if self.exact or self._has_joint or not isinstance(solver, StrategyInParts):
            return super().measure(solver)
        return Figures(nan, nan, nan, self._opponents.win_rates_from_parts(solver))

    @property
    def _has_joint(self) -> bool:
        return quickly_available(self.problem.abstract.cards, self.problem.walk.boards[-1])

    @cached_property
    def _opponents(self) -> FixedOpponents:
        return FixedOpponents(self.problem.abstract, self.problem.threads)

    def opponent_win_rates(self, strategy: Array) -> dict[str, float]:
        """Return the strategy's win rate against each simple opponent, in mbb per hand over both seats.

        Returns nothing if best responses can be computed (`exact`).
        """
        return {} if self.exact else self._opponents(strategy)


def evaluator_for(problem: Problem, patience: float = PATIENCE) -> Evaluator[Any]:
    """Return the evaluator for strategies of a game, which depends on how the game is stored.

    Parameters
    ----------
    problem : Problem
        A game in one of its representations. If its payoffs are tilted, strategies are evaluated with the real payoffs.
    patience : float
        For abstract games: exploitability is measured if a walk of the whole game takes at most this many seconds.

    Returns
    -------
    Evaluator
    """
    problem = problem.real
    if isinstance(problem, AbstractProblem):
        return AbstractEvaluator(problem, patience)
    if isinstance(problem, DiskProblem):
        return DiskEvaluator(problem, patience)
    if isinstance(problem, VectorProblem):
        return VectorEvaluator(problem, patience)
    assert isinstance(problem, FlatProblem)
    return FlatEvaluator(problem, patience)
