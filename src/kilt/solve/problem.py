"""What is solved and judged: a game in one of its forms, with the solvers that work on it.

A small game is written out as a flat tree. A large one is walked with vectors of hands over its public tree. What goes
for both is `Problem`: whoever runs a solver or judges a strategy need not know which it is.

>>> problem = load_problem("kuhn", "cfr+")
>>> solver = make_solver(problem, "cfr+")
>>> solver.step(100)
>>> value, exploitability = problem.evaluate(solver.average())
>>> round(value, 3), exploitability < 0.01
(-0.056, True)
>>> load_problem("kuhn", "cfr+").form, load_problem("kuhn", "cfr+", threads=2).form
('flat', 'vector')
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from math import nan, prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kilt import artifact, machine
from kilt.arrays import Array
from kilt.errors import ArtifactError, RunError
from kilt.games import load_game
from kilt.games.bluff import Bluff
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.games.size import GameSize, size_of
from kilt.solve import ABSTRACT, ALGORITHMS, FLAT, VECTOR, Algorithm, algorithm_named
from kilt.solve.solver import Solver
from kilt.strategy import blueprint
from kilt.strategy import table as flat_strategy
from kilt.strategy import vector as vector_strategy
from kilt.strategy.table import Strategy, tree_fingerprint
from kilt.strategy.vector import VectorStrategy, game_fingerprint
from kilt.tree import best_response, betting, flat
from kilt.tree.flat import FlatTree, flat_tree
from kilt.tree.vector import VectorGame, Walk, Walks
from kilt.tree.walk_kernels import TIE

OPENSPIEL = "openspiel:"  # before the name of a game that is open_spiel's
UNIT = "chips per game"
SINGLE = 1 << 30  # tables that would take more bytes than this in double precision are in single precision
VECTOR_PRECISION = 1e-9  # chips per game: how far walks with vectors of hands may be off by rounding


class Problem(ABC):
    """A game in one of its forms, and how to judge strategies for it. Their tables are those of its solvers."""

    form: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """What the game is called."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short name for the game: two forms of it have different ones."""

    @property
    @abstractmethod
    def big_blind(self) -> float | None:
        """In chips, where the game has one: antes count."""

    @property
    @abstractmethod
    def precision(self) -> float:
        """How far exploitability may be off by rounding, in chips per game."""

    @property
    def exact(self) -> bool:
        """Whether best responses can be found: in large abstract games they cannot."""
        return True

    @abstractmethod
    def solver(self, algorithm: Algorithm, seed: int) -> Solver:
        """A solver for this form of the game, of an algorithm that has it."""

    @abstractmethod
    def uniform(self) -> Array:
        """The strategy that takes all actions alike."""

    @abstractmethod
    def expected_value(self, strategy: Array) -> float:
        """What player 0 wins when both follow a strategy, in chips per game."""

    @abstractmethod
    def response_values(self, strategy: Array) -> tuple[float, float]:
        """What a best response wins in each seat, in chips per game."""

    @abstractmethod
    def responses(self, strategy: Array) -> Array:
        """A strategy that takes a best response in each seat."""

    @abstractmethod
    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Write a strategy to a folder, with whatever is to be said about it."""

    @abstractmethod
    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """A strategy that was written for this very problem, and what was said about it."""

    def walks(self, strategy: Array) -> Walks:
        """The walks that judge a strategy; RunError where they cannot be taken in parts."""
        raise RunError(f"{self.name} is one small tree, and has no parts for others to walk: leave out the engine")

    def exploitability(self, strategy: Array) -> float:
        """What best responses win on average over the seats, in chips per game."""
        mean = sum(self.response_values(strategy)) / 2
        return 0.0 if mean < 0 else mean

    def others(self, strategy: Array) -> dict[str, float]:
        """What else can be said, where exploitability is not known: win rates in mbb per hand, by opponent."""
        return {}

    def measure(self, solver: Solver) -> tuple[float, float, float, dict[str, float]]:
        """Of a solver's average strategy: value, exploitability, and `others`; exploitability of the current one.

        In the order of `run.Step`.
        """
        average = solver.average()
        value, exploitability = self.evaluate(average)
        current = self.exploitability(solver.current()) if self.exact else nan
        return exploitability, current, value, self.others(average)

    def evaluate(self, strategy: Array) -> tuple[float, float]:
        """Value to player 0 and exploitability, in chips per game.

        >>> problem = load_problem("kuhn")
        >>> value, exploitability = problem.evaluate(problem.uniform())
        >>> round(value, 4), round(exploitability, 4)
        (0.125, 0.4583)
        """
        return self.expected_value(strategy), self.exploitability(strategy)

    def require_measurable(self, target: float | None) -> None:
        """Raise RunError where exploitability cannot be compared with a target."""
        if target is not None and not self.exact:
            raise RunError(f"{self.name} is too large to measure exploitability: give iterations or minutes")
        if target is not None and target < self.precision:
            raise RunError(
                f"a target of {target:g} {UNIT} cannot be measured: on {self.name}, exploitability is "
                f"known to {self.precision:.2g}; give a target above that"
            )

    def mbb(self, chips: float) -> float | None:
        """Chips per game as thousandths of a big blind per game."""
        return None if self.big_blind is None else 1000 * chips / self.big_blind


@dataclass(frozen=True)
class FlatProblem(Problem):
    """A game written out as a flat tree. Tables are over slots."""

    form: ClassVar[str] = FLAT

    tree: FlatTree
    big_blind: float | None = None

    @property
    def name(self) -> str:
        """What the game is called."""
        return self.tree.name

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the tree."""
        return tree_fingerprint(self.tree)

    @property
    def precision(self) -> float:
        """Best responses take near-equal actions as equal."""
        return TIE * len(self.tree.infosets)

    def solver(self, algorithm: Algorithm, seed: int) -> Solver:
        """A solver for the tree."""
        assert algorithm.make
        return algorithm.make(self.tree.nodes, seed)

    def uniform(self) -> Array:
        """[slot] the strategy that takes all actions alike."""
        return best_response.uniform(self.tree)

    def expected_value(self, strategy: Array) -> float:
        """What player 0 wins when both follow a strategy, in chips per game."""
        return best_response.expected_value(self.tree, strategy)

    def response_values(self, strategy: Array) -> tuple[float, float]:
        """What a best response wins in each seat, in chips per game."""
        return best_response.response_values(self.tree, strategy)

    def responses(self, strategy: Array) -> Array:
        """[slot] a strategy that takes a best response in each seat."""
        first, second = (best_response.best_response(self.tree, strategy, player).strategy for player in (0, 1))
        nodes = self.tree.nodes
        return np.where(np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start)) == 0, first, second)

    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Write a strategy to a folder, with the names of all information sets."""
        Strategy.of(self.tree, strategy, **figures).save(path)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """A strategy that was written for this very tree, and what was said about it."""
        strategy = Strategy.load(path)
        return strategy.on(self.tree), strategy.figures


@dataclass(frozen=True)
class VectorProblem(Problem):
    """A game on its public tree, walked with vectors of hands. Tables are over (board, row) × hand."""

    form: ClassVar[str] = VECTOR
    precision: ClassVar[float] = VECTOR_PRECISION

    game: VectorGame
    dtype: npt.DTypeLike = np.float64  # of the tables of solvers

    @property
    def name(self) -> str:
        """What the game is called."""
        return self.game.game.name

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the rules."""
        return game_fingerprint(self.game.game)

    @property
    def big_blind(self) -> float | None:
        """In chips, where the game has one: antes count."""
        return _big_blind(self.game.game)

    def solver(self, algorithm: Algorithm, seed: int) -> Solver:
        """A solver for the public tree."""
        assert algorithm.make_vector
        return algorithm.make_vector(self.game, seed, self.dtype)

    def uniform(self) -> Array:
        """[row, hand] a table of zeros, which stand for equal probabilities."""
        return self.game.table(self.dtype)

    def expected_value(self, strategy: Array) -> float:
        """What player 0 wins when both follow a strategy, in chips per game."""
        return self.game.expected_value(strategy)

    def response_values(self, strategy: Array) -> tuple[float, float]:
        """What a best response wins in each seat, in chips per game."""
        return self.game.response_values(strategy)

    def responses(self, strategy: Array) -> Array:
        """[row, hand] a strategy that takes a best response in each seat."""
        return self.game.responses(strategy)

    def walks(self, strategy: Array) -> Walks:
        """The walks that judge a strategy, for games of several rounds."""
        if len(self.game.tree.rows) == 1:
            return super().walks(strategy)
        return Walks(self.game, lambda player, task: Walk(player, (task,), strategy, strategy))

    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Write a table to a folder as it is."""
        VectorStrategy.of(self.game, strategy, **figures).save(path)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """A table that was written for these very rules, mapped from its file, and what was said about it."""
        strategy = VectorStrategy.load(path)
        return strategy.on(self.game), strategy.figures


def load_problem(name: str, algorithm: str | None = None, *, form: str | None = None, threads: int = 1) -> Problem:
    """A game by its name, its file, or ``openspiel:`` and its name in open_spiel; without `algorithm`, to be judged.

    Unless `form` says which, it is the flat form if the algorithm has it, the game fits and one thread is enough, or
    else vectors of hands. RunError where neither will do.
    """
    if threads < 1:
        raise RunError(f"the number of threads is {threads}: use 1 or more")
    entry = None if algorithm is None else algorithm_named(algorithm)
    if entry and threads > 1 and not entry.threads:
        able = [name for name, other in ALGORITHMS.items() if other.threads]
        raise RunError(f"{algorithm} runs in 1 thread, not in {threads}: use 1, or one of {', '.join(able)}")
    source = _Source(name, threads)
    forms, tables = (entry.forms, entry.tables) if entry else ((FLAT, VECTOR), 1)
    missing = []
    for candidate in forms:
        if form in (None, candidate):
            lack = source.lacks(candidate, tables)
            if lack is None:
                return source.problem(candidate, tables)
            missing.append(lack)
    needed = ", or ".join(missing) or f"{' or '.join(forms)} form, and {form} is asked for"
    raise RunError(f"{algorithm or 'judging a strategy'} needs {needed}: {_remedy(source, algorithm, form)}")


def stored_form(path: Path) -> str:
    """The form of the problem that a strategy on disk is for."""
    forms = {flat_strategy.KIND: FLAT, vector_strategy.KIND: VECTOR, blueprint.KIND: ABSTRACT}
    kind = artifact.kind_of(path)
    if kind not in forms:
        raise ArtifactError(f"{path} holds a {kind}, not a strategy: check the name")
    return forms[kind]


def make_solver(problem: Problem, algorithm: str, seed: int = 0) -> Solver:
    """A solver by the name of its algorithm."""
    entry = algorithm_named(algorithm)
    if not entry.works_on(problem.form):
        fitting = [name for name, other in ALGORITHMS.items() if other.works_on(problem.form)]
        raise RunError(f"{algorithm} does not come in {problem.form} form: use one of {', '.join(fitting)}")
    return problem.solver(entry, seed)


@dataclass(frozen=True)
class _Source:
    """A game before it is known in which form it is to be solved."""

    name: str  # as the user calls it
    threads: int

    @cached_property
    def game(self) -> Game | None:
        """The rules, unless they are open_spiel's."""
        return None if self.name.startswith(OPENSPIEL) else load_game(self.name)

    @cached_property
    def size(self) -> GameSize | None:
        """Counted, where that can be done before anything is written out."""
        if isinstance(self.game, Holdem):
            return size_of(self.game.rules)
        return size_of(self.game) if isinstance(self.game, Bluff) else None

    @cached_property
    def vectors(self) -> VectorGame:
        """The public tree. Its tables are not made yet."""
        assert self.game
        return VectorGame(self.game, threads=self.threads)

    def lacks(self, form: str, tables: int) -> str | None:
        """What a form needs that is not there; None where nothing stands in its way."""
        return self._lacks_flat() if form == FLAT else self._lacks_vector(tables)

    def _lacks_flat(self) -> str | None:
        most, states = flat.MOST_NODES, self.size.states.total if self.size else 0
        if states > most:  # known before millions of nodes are written out
            return f"a flat tree of up to {most:,} nodes, and {self.name} has {Decimal(states):.2e} states"
        if self.threads > 1:
            return f"1 thread for a flat tree, and {self.threads} are asked for"
        return None

    def _lacks_vector(self, tables: int) -> str | None:
        most = betting.MOST_NODES
        if self.size is None:
            return f"a public tree, and {self.name} does not come with one"
        if isinstance(self.game, Holdem) and self.size.actions.total >= most:  # every action leads to a node
            actions = Decimal(self.size.actions.total)
            return f"a betting tree of up to {most:,} nodes, and that of {self.name} has {actions:.2e}"
        wanted, there = self._bytes(tables, self._dtype(tables)), machine.available_memory()
        if wanted > there:
            tables_of = f"the tables of {self.name}"
            return f"{wanted / 1e9:,.1f} GB of memory for {tables_of}, and {there / 1e9:,.1f} GB are available"
        return None

    def _dtype(self, tables: int) -> npt.DTypeLike:
        return np.float32 if self._bytes(tables, np.float64) > SINGLE else np.float64

    def _bytes(self, tables: int, dtype: npt.DTypeLike) -> int:
        return tables * prod(self.vectors.shape) * np.dtype(dtype).itemsize

    def problem(self, form: str, tables: int) -> Problem:
        """The game in a form that lacks nothing."""
        if form == VECTOR:
            return VectorProblem(self.vectors, self._dtype(tables))
        if self.game is None:
            from kilt.tree.openspiel import openspiel_tree

            return FlatProblem(openspiel_tree(self.name.removeprefix(OPENSPIEL)))
        return FlatProblem(flat_tree(self.game), _big_blind(self.game))


def _remedy(source: _Source, algorithm: str | None, form: str | None) -> str:
    """What will do, where this does not."""
    fitting, alone = (_fitting(replace(source, threads=threads), form) for threads in (source.threads, 1))
    if algorithm and fitting:
        return f"use one of {', '.join(fitting)}"
    if source.threads > 1 and alone:
        return "use 1 thread" if algorithm in (None, *alone) else f"use 1 thread, and one of {', '.join(alone)}"
    return "use a smaller game, such as kuhn, leduc, one-card or bluff-1-1"


def _fitting(source: _Source, form: str | None) -> list[str]:
    """The algorithms that a game can be solved with."""
    return [
        name
        for name, entry in ALGORITHMS.items()
        if (source.threads == 1 or entry.threads)
        and any(form in (None, own) and source.lacks(own, entry.tables) is None for own in entry.forms)
    ]


def _big_blind(game: Game) -> float | None:
    return game.rules.big_blind if isinstance(game, Holdem) else None
