"""Methods: algorithms on unabstracted games of one form, with their cost, their problem and their solver.

A `Method` is an algorithm on games of one form; `registry.ALGORITHMS` has those of each algorithm. It answers
everything that depends on the algorithm, so that no other code distinguishes algorithms. The methods for abstract games
are in `abstract_methods`.
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

Make: TypeAlias = Callable[[Any, int], Solver]  # makes a solver from a problem of a form, and a seed


class Source(Protocol):
    """A game before its form is chosen: see `forms`."""

    def lacks_flat(self) -> str | None:
        """Return what is missing for a flat tree; None if nothing is."""

    def lacks_vector(self, tables: int) -> str | None:
        """Return what is missing for tables of vectors; None if nothing is."""

    def lacks_disk(self) -> str | None:
        """Return what is missing for subgames on disk; None if nothing is."""

    def problem(self, form: str, tables: int, *, compact: bool = False) -> Problem:
        """Return the game in a form for which nothing is missing."""

    def flat_cost(self, tables: int) -> Cost:
        """Cost of a flat tree with tables over its slots."""

    def vector_cost(self, tables: int) -> Cost:
        """Cost of the public tree with tables over (board, row) × hand."""

    def disk_cost(self, tables: int) -> Cost:
        """Cost of subgames on disk."""


@dataclass(frozen=True)
class Method:
    """An algorithm on games of one form. Called with a problem and a seed, it returns a solver."""

    make: Make

    def __call__(self, problem: Any, seed: int) -> Solver:
        """Return a new solver."""
        return self.make(problem, seed)

    def shares(self, threads: int, device: str) -> bool:
        """Whether it solves unabstracted games with this number of threads on a device."""
        return False


@dataclass(frozen=True)
class WholeMethod(Method, ABC):
    """An algorithm on unabstracted games of one form."""

    def shares(self, threads: int, device: str) -> bool:
        """Whether it is one thread on the CPU."""
        return threads == 1 and device == CPU

    @abstractmethod
    def lacks(self, source: Source) -> str | None:
        """Return what the game or the machine lacks for it; None if nothing is missing."""

    @abstractmethod
    def problem(self, source: Source) -> Problem:
        """Return the game in the method's form, after `lacks` found nothing missing."""

    @abstractmethod
    def cost(self, source: Source) -> Cost:
        """Cost of solving, computed before anything is built."""


@dataclass(frozen=True)
class FlatMethod(WholeMethod):
    """Algorithms on flat trees."""

    tables: int = 2

    def lacks(self, source: Source) -> str | None:
        """Return what is missing for a flat tree; None if nothing is."""
        return source.lacks_flat()

    def problem(self, source: Source) -> Problem:
        """Return the flat tree as a problem."""
        return source.problem(FLAT, self.tables)

    def cost(self, source: Source) -> Cost:
        """Cost of the nodes, and of tables over the slots."""
        return source.flat_cost(self.tables)


@dataclass(frozen=True)
class VectorMethod(WholeMethod):
    """Algorithms on public trees with vectors of hands.

    Parameters
    ----------
    make : callable
        Makes the solver.
    tables : int
        Number of tables of the solver; tables of two bytes count half.
    threads, gpu : bool
        Whether walks can use several threads, and whether they can run on a GPU.
    compact : bool
        Whether tables have two bytes per entry.
    """

    tables: int = 2
    threads: bool = False
    gpu: bool = False
    compact: bool = False

    def shares(self, threads: int, device: str) -> bool:
        """Whether walks can use several threads, and run on the device."""
        return (threads == 1 or self.threads) and (device == CPU or self.gpu)

    def lacks(self, source: Source) -> str | None:
        """Return what is missing for a public tree and its tables; None if nothing is."""
        return source.lacks_vector(self.tables)

    def problem(self, source: Source) -> Problem:
        """Return the public tree as a problem."""
        return source.problem(VECTOR, self.tables, compact=self.compact)

    def cost(self, source: Source) -> Cost:
        """Cost of the tables, and of the scratch memory of threads."""
        return source.vector_cost(self.tables)


@dataclass(frozen=True)
class DiskMethod(WholeMethod):
    """Algorithms on public trees in subgames on disk."""

    tables: int = 1

    def shares(self, threads: int, device: str) -> bool:
        """Whether it is on the CPU, with any number of threads."""
        return device == CPU

    def lacks(self, source: Source) -> str | None:
        """Return what is missing for subgames on disk; None if nothing is."""
        return source.lacks_disk()

    def problem(self, source: Source) -> Problem:
        """Return the public tree in subgames as a problem."""
        return source.problem(DISK, 1)

    def cost(self, source: Source) -> Cost:
        """Cost of the subgames in memory at a time, and of the files of all subgames."""
        return source.disk_cost(self.tables)


def walk_cost(game: VectorGame, tables: int, dtype: npt.DTypeLike, each: float = 2 * PER_ENTRY) -> Cost:
    """Cost of walks of a public tree: `tables` bytes of tables, and the scratch memory of its threads.

    `each` is the CPU time of an iteration per infoset-action, in seconds.
    """
    rows, hands = game.shape
    places = int(game.tree.nodes.place.max()) + 1
    workspaces = game.threads * 2 * places * hands * (8 + data_type(dtype).itemsize)
    return Cost(tables + workspaces, iteration=each * rows * hands / game.threads)


def judged_only(problem: Any, seed: int) -> Solver:
    """Raise RunError: a game that is only evaluated has no solver."""
    raise RunError(f"{problem.name} was loaded for evaluation: choose an algorithm to solve it")


# Methods for evaluation, by form: one table, any number of threads, any device.
JUDGING: dict[str, WholeMethod] = {
    FLAT: FlatMethod(judged_only, 1),
    VECTOR: VectorMethod(judged_only, 1, threads=True, gpu=True),
}
WHOLE: dict[str, Callable[[Make], WholeMethod]] = {FLAT: FlatMethod, VECTOR: VectorMethod, DISK: DiskMethod}


def whole_method(form: str, make: Make) -> WholeMethod:
    """Return the method for a form; a custom algorithm given as a plain function gets the usual one."""
    return make if isinstance(make, WholeMethod) else WHOLE[form](make)
