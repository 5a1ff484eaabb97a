"""A game in the form that solvers work on, and the strategies that belong to it.

A small game is written out as a flat tree. A large one is walked with vectors of hands over its public tree. One that
is too large for that is abstracted first: see `abstract_problem`. What holds for all three is `Problem`. How good a
strategy is, `evaluate.judge` tells.

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

# Forms of a game: its flat tree, its public tree with vectors of hands, that in subgames on disk, or an abstract game.
FORMS = FLAT, VECTOR, DISK, ABSTRACT = "flat", "vector", "disk", "abstract"
SINGLE = 1 << 30  # bytes: tables that would be larger in double precision are kept in single precision


class Walker(Protocol):
    """A game as its public tree is walked. Strategies are tables of its own: on the host, on a GPU, in fixed point."""

    def expected_value(self, strategy: Any, /) -> float:
        """What player 0 wins when both follow a strategy, in chips per game."""

    def response_values(self, strategy: Any, /) -> tuple[float, float]:
        """What a best response to a strategy wins in seats 0 and 1, in chips per game."""

    def exploitability(self, strategy: Any, /) -> float:
        """What best responses win more than the strategy itself, mean over both seats, in chips per game."""

    def on_host(self, table: Any, /) -> Table:
        """A table as an array of NumPy over (board, row) × hand."""


class Problem(ABC):
    """A game in one of its forms. Strategies for it are tables of the shape that its solvers use."""

    form: ClassVar[str]
    against: Against | None

    @property
    @abstractmethod
    def name(self) -> str:
        """What the game is called."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short name for the game in this form: two forms of a game have different ones."""

    @property
    @abstractmethod
    def big_blind(self) -> float | None:
        """Chips of the big blind, or of the ante; None where the game has neither."""

    @abstractmethod
    def uniform(self) -> Array:
        """The strategy that takes all actions of a decision with equal probability."""

    @abstractmethod
    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Write a strategy to a folder, with figures about it that `load` gives back."""

    @abstractmethod
    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """Read a strategy that was saved for this very problem, and the figures beside it."""

    @property
    def real(self) -> Problem:
        """The problem with the payoffs of the rules, by which strategies are judged and kept; itself if not tilted."""
        return self

    @property
    def opponent(self) -> Against:
        """Who the problem is `against`, by a model that fits this very problem."""
        if self.against is None:
            raise RunError("there is no model of an opponent to answer: use `kilt counter`, or give `against`")
        self.against.model.on(self.name, self.fingerprint, self.uniform().shape)
        return self.against

    def restriction(self, player: int) -> Restriction:
        """How a player is held to the model that the problem is `against`, by a table of this form."""
        opponent = self.opponent
        return opponent.restriction(player, opponent.fixed())

    def mbb(self, chips: float) -> float | None:
        """Convert chips per game to thousandths of a big blind per game; None where there is no big blind."""
        return None if self.big_blind is None else 1000 * chips / self.big_blind


@dataclass(frozen=True)
class FlatProblem(Problem):
    """A game written out as a flat tree. Tables are over slots: an entry for each action of each information set."""

    form: ClassVar[str] = FLAT

    tree: FlatTree
    big_blind: float | None = None
    untilted: FlatTree | None = None  # with the payoffs of the rules, where those of `tree` are tilted
    against: Against | None = None  # the opponent that a counter-strategy is for

    @cached_property
    def real(self) -> FlatProblem:
        """The problem with the payoffs of the rules; itself if not tilted."""
        return self if self.untilted is None else FlatProblem(self.untilted, self.big_blind)

    @property
    def name(self) -> str:
        """What the game is called."""
        return self.tree.name

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the tree."""
        return tree_fingerprint(self.tree)

    def uniform(self) -> Array:
        """[slot] equal probabilities for all actions of an information set."""
        return best_response.uniform(self.tree)

    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Write a strategy to a folder, with the names of all information sets."""
        Strategy.of(self.tree, strategy, **figures).save(path)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """[slot] a strategy that was saved for this very tree, and the figures beside it."""
        strategy = Strategy.load(path)
        return strategy.on(self.tree), strategy.figures


@dataclass(frozen=True)
class VectorProblem(Problem):
    """A game on its public tree, walked with vectors of hands. Tables are over (board, row) × hand."""

    form: ClassVar[str] = VECTOR

    game: VectorGame
    dtype: npt.DTypeLike = np.float64  # of the tables of solvers
    device: str = CPU  # where walks run
    tables: int = 3  # that a GPU must have room for
    against: Against | None = None  # the opponent that a counter-strategy is for

    @cached_property
    def real(self) -> VectorProblem:
        """The problem with the payoffs of the rules; itself if not tilted."""
        rules, game = self.game.game, self.game
        if not isinstance(rules, TiltedGame):
            return self
        return replace(self, game=VectorGame(rules.real, game.menu, game.threads))

    @property
    def opponent(self) -> Against:
        """Who the problem is `against`: what was seen of a hand was seen of all that differ from it by suits alone."""
        opponent = super().opponent
        return replace(opponent, model=replace(opponent.model, counts=self.game.pooled(opponent.model.counts)))

    @cached_property
    def walker(self) -> Walker:
        """The game as it is walked: itself, or its copy on the GPU."""
        if self.device == CPU:
            return self.game
        from kilt.tree.gpu.device import DeviceGame  # imports the GPU library

        return DeviceGame(self.game, self.dtype, self.tables)

    @property
    def name(self) -> str:
        """What the game is called."""
        return self.game.game.name

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the rules, and for the raises that the tree has of them."""
        return game_fingerprint(self.game.game, self.game.menu)

    @property
    def big_blind(self) -> float | None:
        """Chips of the big blind, or of the ante; None where the game has neither."""
        return big_blind_of(self.game.game)

    def uniform(self) -> Array:
        """[row, hand] a table of zeros, which stands for equal probabilities."""
        return self.game.table(self.dtype)

    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Write a table to a folder as it is."""
        VectorStrategy.of(self.game, self.walker.on_host(strategy), **figures).save(path)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """[row, hand] a table that was saved for these very rules, mapped from its file, and the figures beside it."""
        strategy = VectorStrategy.load(path)
        return strategy.on(self.game), strategy.figures


def require_device(device: str) -> str:
    """A device by name; RunError where there is none of this name."""
    if device not in DEVICES:
        raise RunError(f"the device is {shortened(repr(device))}: use one of {', '.join(DEVICES)}")
    return device


def precision_of(problem: Problem) -> str:
    """The type of the numbers in a solver's tables, such as "float32"."""
    return np.dtype(getattr(problem, "dtype", np.float64)).name


def big_blind_of(game: Game) -> float | None:
    """Chips of the big blind, or of the ante, of a game of poker; None for other games."""
    return game.rules.big_blind if isinstance(game, Poker) else None
