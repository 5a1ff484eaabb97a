"""The methods by which each algorithm solves games: requirements, costs and solvers.

A `Method` is an algorithm for games in one representation; `registry.ALGORITHMS` has those of each algorithm. A method
answers everything that depends on the algorithm, so that no other code distinguishes algorithms. The methods for
abstract games are in `abstract_methods`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy.typing as npt

from kilt.arrays import data_type
from kilt.cost import Cost
from kilt.errors import RunError
from kilt.solve.abstract_problem import PER_ENTRY
from kilt.solve.problem import CPU, DISK, FLAT, VECTOR, Problem
from kilt.solve.solver import Solver
from kilt.tree.vector import VectorGame

Make: TypeAlias = Callable[[Any, int], Solver]  # makes a solver from a problem and a random seed


class Source(Protocol):
    """A game that is not yet in memory, so that an algorithm can choose its representation."""

    def missing_for_flat(self) -> str | None:
        """Return why the game cannot be solved as a flat tree, or None if it can."""

    def missing_for_vector(self, tables: int) -> str | None:
        """Return why the game cannot be solved on its public tree, or None if it can."""

    def missing_for_disk(self) -> str | None:
        """Return why the game cannot be split into subgames on disk, or None if it can."""

    def problem(self, form: str, tables: int, *, compact: bool = False) -> Problem:
        """Return the game in a given representation.

        The matching check, such as `missing_for_flat`, must have returned None.
        """

    def flat_cost(self, tables: int) -> Cost:
        """Return the memory and disk space for solving on a flat tree."""

    def vector_cost(self, tables: int) -> Cost:
        """Return the memory, disk space and time for solving on a public tree."""

    def disk_cost(self, tables: int) -> Cost:
        """Return the memory, disk space and time for solving with subgames on disk."""


@dataclass(frozen=True)
class Method:
    """An algorithm for games in one representation, such as a flat tree.

    Called with a problem and a random seed, it returns a solver.
    """

    make: Make

    def __call__(self, problem: Any, seed: int) -> Solver:
        """Return a new solver."""
        return self.make(problem, seed)

    def supports(self, threads: int, device: str) -> bool:
        """Return whether the algorithm supports a device and a number of threads, without abstraction."""
        return False


@dataclass(frozen=True)
class WholeMethod(Method, ABC):
    """An algorithm for games without abstraction, such as CFR on flat trees."""

    def supports(self, threads: int, device: str) -> bool:
        """Return whether the algorithm supports a device and a number of threads.

        By default, it supports only one thread on the CPU.
        """
        return threads == 1 and device == CPU

    @abstractmethod
    def missing_requirement(self, source: Source) -> str | None:
        """Return why the algorithm cannot solve a game on this computer, or None if it can."""

    @abstractmethod
    def problem(self, source: Source) -> Problem:
        """Return the game in the algorithm's representation.

        Call it only if `missing_requirement` has returned None.
        """

    @abstractmethod
    def cost(self, source: Source) -> Cost:
        """Return the memory and time of a solver before it is created."""


@dataclass(frozen=True)
class FlatMethod(WholeMethod):
    """An algorithm for flat trees."""

    tables: int = 2

    def missing_requirement(self, source: Source) -> str | None:
        """Return why the game cannot be solved as a flat tree, or None if it can."""
        return source.missing_for_flat()

    def problem(self, source: Source) -> Problem:
        """Return the game as a flat tree, with a node for each history."""
        return source.problem(FLAT, self.tables)

    def cost(self, source: Source) -> Cost:
        """Return the memory and disk space for solving on a flat tree."""
        return source.flat_cost(self.tables)


@dataclass(frozen=True)
class VectorMethod(WholeMethod):
    """An algorithm for games on public trees, with vectors over all private hands.

    Parameters
    ----------
    make : callable
        Makes the solver.
    tables : int
        Number of tables of the solver; tables of two bytes count half.
    threads, gpu : bool
        Whether the algorithm can use several threads, and whether it can run on a GPU.
    compact : bool
        Whether tables have two bytes per entry.
    """

    tables: int = 2
    threads: bool = False
    gpu: bool = False
    compact: bool = False

    def supports(self, threads: int, device: str) -> bool:
        """Return whether the algorithm supports a device and a number of threads."""
        return (threads == 1 or self.threads) and (device == CPU or self.gpu)

    def missing_requirement(self, source: Source) -> str | None:
        """Return why the game cannot be solved on its public tree, or None if it can."""
        return source.missing_for_vector(self.tables)

    def problem(self, source: Source) -> Problem:
        """Return the game as a public tree with vectors over all private hands."""
        return source.problem(VECTOR, self.tables, compact=self.compact)

    def cost(self, source: Source) -> Cost:
        """Return the memory, disk space and time for solving on a public tree."""
        return source.vector_cost(self.tables)


@dataclass(frozen=True)
class DiskMethod(WholeMethod):
    """An algorithm for games whose tables are split into subgames on disk."""

    tables: int = 1

    def supports(self, threads: int, device: str) -> bool:
        """Return whether the device is the CPU, with any number of threads."""
        return device == CPU

    def missing_requirement(self, source: Source) -> str | None:
        """Return why the game cannot be split into subgames on disk, or None if it can."""
        return source.missing_for_disk()

    def problem(self, source: Source) -> Problem:
        """Return the game split into subgames on disk."""
        return source.problem(DISK, 1)

    def cost(self, source: Source) -> Cost:
        """Return the memory, disk space and time for solving with subgames on disk."""
        return source.disk_cost(self.tables)


def walk_cost(game: VectorGame, tables: int, dtype: npt.DTypeLike, each: float = 2 * PER_ENTRY) -> Cost:
    """Return the memory and time of an algorithm's passes over a public tree.

    `tables` is the size of the tables in bytes. `each` is the CPU time of an iteration per infoset-action, in seconds.
    """
    rows, hands = game.shape
    places = int(game.tree.nodes.place.max()) + 1
    workspaces = game.threads * 2 * places * hands * (8 + data_type(dtype).itemsize)
    return Cost(tables + workspaces, iteration=each * rows * hands / game.threads)


def evaluation_only(problem: Any, seed: int) -> Solver:
    """Raise RunError, because a game loaded for evaluation has no solver."""
    raise RunError(f"{problem.name} was loaded for evaluation: choose an algorithm to solve it")


# Methods for evaluation, by form: one table, any number of threads, any device.
JUDGING: dict[str, WholeMethod] = {
    FLAT: FlatMethod(evaluation_only, 1),
    VECTOR: VectorMethod(evaluation_only, 1, threads=True, gpu=True),
}
WHOLE: dict[str, Callable[[Make], WholeMethod]] = {FLAT: FlatMethod, VECTOR: VectorMethod, DISK: DiskMethod}


def whole_method(form: str, make: Make) -> WholeMethod:
    """Return an algorithm's method for games in a given representation.

    A plain function that makes a solver is wrapped.
    """
    return make if isinstance(make, WholeMethod) else WHOLE[form](make)
