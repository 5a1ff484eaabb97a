"""The games that solvers solve, and how their strategies are saved and loaded.

A small game is expanded to a flat tree. A large one is represented by its public tree, with vectors over all hands. A
game that is too large for that is abstracted first: see `abstract_problem`. `Problem` is the common base class.
`evaluate.evaluator` evaluates strategies.

>>> from kilt.games import load_game
>>> from kilt.tree.flat import flat_tree
>>> problem = FlatProblem(flat_tree(load_game("kuhn")), big_blind=1.0)
>>> problem.form, problem.uniform().shape
('flat', (24,))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array
from kilt.config import CPU as CPU
from kilt.config import DEVICES as DEVICES
from kilt.config import GPU as GPU
from kilt.errors import RunError, shortened
from kilt.games.game import Game
from kilt.games.holdem import Poker
from kilt.games.tilt import TiltedGame
from kilt.solve.counter import Against, Restriction
from kilt.strategy.table import Strategy, tree_fingerprint
from kilt.strategy.vector import VectorStrategy, game_fingerprint
from kilt.tree import best_response
from kilt.tree.flat import FlatTree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table

# Forms of a game: flat tree, public tree with vectors of hands, the same in subgames on disk, or abstract game.
FORMS = FLAT, VECTOR, DISK, ABSTRACT = "flat", "vector", "disk", "abstract"
SINGLE = 1 << 30  # bytes; tables that would be larger in double precision have single precision


def float_type(numbers: int) -> type[np.floating[Any]]:
    """Return the type of a table's numbers: double precision, unless the table is too large."""
    return np.float32 if 8 * numbers > SINGLE else np.float64


class Walker(Protocol):
    """The interface of objects that evaluate strategies, such as by exploitability.

    The type of its strategies depends on where they are: in main memory, on a GPU, or in fixed point.
    """

    def expected_value(self, strategy: Any, /) -> float:
        """Return player 0's expected winnings if both players follow a strategy, in chips per game."""

    def response_values(self, strategy: Any, /) -> tuple[float, float]:
        """Return a best response's winnings in each seat, in chips per game."""

    def exploitability(self, strategy: Any, /) -> float:
        """Return the strategy's exploitability in chips per game.

        It is the mean of the best responses' winnings in both seats.
        """

    def on_host(self, table: Any, /) -> Table:
        """Return a strategy table as a NumPy array, copied from the GPU if necessary.

        It has rows by board and action, and columns by hand.
        """


class Problem(ABC):
    """Base class of games to solve, with a subclass for each representation."""

    form: ClassVar[str]
    against: Against | None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the game."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short hash of the game in this representation."""

    @property
    @abstractmethod
    def big_blind(self) -> float | None:
        """The big blind or ante in chips, or None if the game has neither."""

    @abstractmethod
    def uniform(self) -> Array:
        """Return the uniform strategy: equal probabilities for all actions of a decision."""

    @abstractmethod
    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Save a strategy and its results, such as exploitability, to a folder."""

    @abstractmethod
    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """Return a saved strategy, with the results saved with it.

        Raises an error if the strategy is for another game.
        """

    @property
    def real(self) -> Problem:
        """The game with its original payoffs, for evaluating strategies learnt with modified ones.

        Payoffs while solving may be modified by a tilt.
        """
        return self

    @property
    def opponent(self) -> Against:
        """The opponent that a counter-strategy exploits.

        Raises RunError if no opponent is set, or if its model is for another game.
        """
        if self.against is None:
            raise RunError("there is no model of an opponent to answer: give `against`")
        self.against.model.on(self.name, self.fingerprint, self.uniform().shape)
        return self.against

    def restriction(self, player: int) -> Restriction:
        """Return the opponent model as a restriction, that is, a fixed strategy for one player."""
        opponent = self.opponent
        return opponent.restriction(player, opponent.fixed())

    def mbb(self, chips: float) -> float | None:
        """Convert chips per game to thousandths of a big blind, or return None if there is no big blind."""
        return None if self.big_blind is None else 1000 * chips / self.big_blind


@dataclass(frozen=True)
class FlatProblem(Problem):
    """A small game, represented by a tree with a node for each history.

    Strategies have one number for each action of each information set.
    """

    form: ClassVar[str] = FLAT

    tree: FlatTree
    big_blind: float | None = None
    untilted: FlatTree | None = None  # the tree with the original payoffs, if those of `tree` are tilted
    against: Against | None = None  # the opponent that a counter-strategy is for

    @cached_property
    def real(self) -> FlatProblem:
        """The game with its original payoffs, for evaluating strategies learnt with modified ones."""
        return self if self.untilted is None else FlatProblem(self.untilted, self.big_blind)

    @property
    def name(self) -> str:
        """The name of the game."""
        return self.tree.name

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the tree."""
        return tree_fingerprint(self.tree)

    def uniform(self) -> Array:
        """Return the uniform strategy: equal probabilities for all actions of an information set."""
        return best_response.uniform(self.tree)

    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Save a strategy to a folder, with its information sets by name."""
        Strategy.of(self.tree, strategy, **figures).save(path)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """Return a saved strategy, with the results saved with it.

        Raises an error if the strategy is for another tree.
        """
        strategy = Strategy.load(path)
        return strategy.on(self.tree), strategy.figures


@dataclass(frozen=True)
class VectorProblem(Problem):
    """A game on its public tree, with vectors over all private hands.

    Strategies are tables with rows by board and action and columns by hand.
    """

    form: ClassVar[str] = VECTOR

    game: VectorGame
    dtype: npt.DTypeLike = np.float64  # type of the solvers' tables
    device: str = CPU  # where the computation runs: "cpu" or "gpu"
    tables: int = 3  # number of tables that a GPU must have memory for
    against: Against | None = None  # the opponent that a counter-strategy is for

    @cached_property
    def real(self) -> VectorProblem:
        """The game with its original payoffs, for evaluating strategies learnt with modified ones."""
        rules, game = self.game.game, self.game
        if not isinstance(rules, TiltedGame):
            return self
        return replace(self, game=VectorGame(rules.real, game.menu, game.threads))

    @property
    def opponent(self) -> Against:
        """The opponent that a counter-strategy is for.

        Hands that differ only by equivalent suits share their observations.
        """
        opponent = super().opponent
        return replace(opponent, model=replace(opponent.model, counts=self.game.pooled(opponent.model.counts)))

    @cached_property
    def walker(self) -> Walker:
        """The object that evaluates strategies of the game, on the CPU or on the GPU."""
        if self.device == CPU:
            return self.game
        from kilt.tree.gpu.device import DeviceGame  # imports the GPU library

        return DeviceGame(self.game, self.dtype, self.tables)

    @property
    def name(self) -> str:
        """The name of the game."""
        return self.game.game.name

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the game's rules and bet sizes."""
        return game_fingerprint(self.game.game, self.game.menu)

    @property
    def big_blind(self) -> float | None:
        """The big blind or ante in chips, or None if the game has neither."""
        return big_blind_of(self.game.game)

    def uniform(self) -> Array:
        """Return a strategy table of zeros, which stands for the uniform strategy."""
        return self.game.table(self.dtype)

    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Save a strategy table to a folder, as weights that need not sum to 1."""
        VectorStrategy.of(self.game, self.walker.on_host(strategy), **figures).save(path)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """Return a saved strategy table, with the results saved with it.

        The table is mapped from its file. Raises an error if it is for other rules.
        """
        strategy = VectorStrategy.load(path)
        return strategy.on(self.game), strategy.figures


def require_device(device: str) -> str:
    """Return the name of a device, "cpu" or "gpu".

    Raises RunError for any other name.
    """
    if device not in DEVICES:
        raise RunError(f"the device is {shortened(repr(device))}: use one of {', '.join(DEVICES)}")
    return device


def precision_of(problem: Problem) -> str:
    """Return the numeric precision of a solver's tables, such as "float32"."""
    return np.dtype(getattr(problem, "dtype", np.float64)).name


def big_blind_of(game: Game) -> float | None:
    """Return a poker game's big blind or ante in chips, or None for other games."""
    return game.rules.big_blind if isinstance(game, Poker) else None
