"""How algorithms solve games as they are, by form: what that takes, the problem that is solved, and the solver.

A `Method` is an algorithm on games of one form; `registry.ALGORITHMS` has those of each. It answers whatever depends on
the algorithm, so that nobody else asks which one it is. The methods for abstract games are in `abstract_methods`.
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

Make: TypeAlias = Callable[[Any, int], Solver]  # from a problem of a form, and a seed


class Source(Protocol):
    """A game before it is known in which form it will be solved: see `forms`."""

    def lacks_flat(self) -> str | None:
        """What a flat tree needs that is not there; None if nothing is missing."""

    def lacks_vector(self, tables: int) -> str | None:
        """What tables of vectors need that is not there; None if nothing is missing."""

    def lacks_disk(self) -> str | None:
        """What subgames on disk need that is not there; None if nothing is missing."""

    def problem(self, form: str, tables: int, *, compact: bool = False) -> Problem:
        """The game in a form that lacks nothing."""

    def flat_cost(self, tables: int) -> Cost:
        """What a flat tree takes, with tables over its slots."""

    def vector_cost(self, tables: int) -> Cost:
        """What the public tree takes, with tables over (board, row) × hand."""

    def disk_cost(self, tables: int) -> Cost:
        """What subgames on disk take."""


@dataclass(frozen=True)
class Method:
    """An algorithm on games of one form: it is called with a problem and a seed, and makes the solver."""

    make: Make

    def __call__(self, problem: Any, seed: int) -> Solver:
        """A new solver."""
        return self.make(problem, seed)

    def shares(self, threads: int, device: str) -> bool:
        """Whether it solves games as they are in so many threads, on a device."""
        return False


@dataclass(frozen=True)
class WholeMethod(Method, ABC):
    """An algorithm on games as they are, in one form."""

    def shares(self, threads: int, device: str) -> bool:
        """In one thread, on the CPU."""
        return threads == 1 and device == CPU

    @abstractmethod
    def lacks(self, source: Source) -> str | None:
        """What it needs that a game does not have, or the machine; None if nothing is missing."""

    @abstractmethod
    def problem(self, source: Source) -> Problem:
        """The game in its form, once nothing is missing."""

    @abstractmethod
    def cost(self, source: Source) -> Cost:
        """What solving takes, counted before anything is made."""


@dataclass(frozen=True)
class FlatMethod(WholeMethod):
    """On flat trees."""

    tables: int = 2

    def lacks(self, source: Source) -> str | None:
        """What a flat tree needs that is not there."""
        return source.lacks_flat()

    def problem(self, source: Source) -> Problem:
        """The flat tree."""
        return source.problem(FLAT, self.tables)

    def cost(self, source: Source) -> Cost:
        """Its nodes, and tables over its slots."""
        return source.flat_cost(self.tables)


@dataclass(frozen=True)
class VectorMethod(WholeMethod):
    """On public trees, by vectors of hands.

    Parameters
    ----------
    make : callable
    tables : int
        That it keeps; tables of two bytes count half.
    threads, gpu : bool
        Whether threads can share its walks, and whether these can run on a GPU.
    compact : bool
        Whether its tables have two bytes an entry.
    """

    tables: int = 2
    threads: bool = False
    gpu: bool = False
    compact: bool = False

    def shares(self, threads: int, device: str) -> bool:
        """Whether threads can share its walks, and whether these can run on the device."""
        return (threads == 1 or self.threads) and (device == CPU or self.gpu)

    def lacks(self, source: Source) -> str | None:
        """What a public tree and its tables need that is not there."""
        return source.lacks_vector(self.tables)

    def problem(self, source: Source) -> Problem:
        """The public tree."""
        return source.problem(VECTOR, self.tables, compact=self.compact)

    def cost(self, source: Source) -> Cost:
        """The tables, and workspaces of threads."""
        return source.vector_cost(self.tables)


@dataclass(frozen=True)
class DiskMethod(WholeMethod):
    """On public trees in subgames on disk."""

    tables: int = 1

    def shares(self, threads: int, device: str) -> bool:
        """Any number of threads, on the CPU."""
        return device == CPU

    def lacks(self, source: Source) -> str | None:
        """What subgames need that is not there."""
        return source.lacks_disk()

    def problem(self, source: Source) -> Problem:
        """The public tree in subgames."""
        return source.problem(DISK, 1)

    def cost(self, source: Source) -> Cost:
        """The subgames in memory at a time, and the files of all."""
        return source.disk_cost(self.tables)


def walk_cost(game: VectorGame, tables: int, dtype: npt.DTypeLike, each: float = 2 * PER_ENTRY) -> Cost:
    """What walks of a public tree take: bytes of tables, and the workspaces of its threads.

    `each` is what an iteration takes for each infoset-action, in seconds of one core.
    """
    rows, hands = game.shape
    places = int(game.tree.nodes.place.max()) + 1
    workspaces = game.threads * 2 * places * hands * (8 + data_type(dtype).itemsize)
    return Cost(tables + workspaces, iteration=each * rows * hands / game.threads)


def judged_only(problem: Any, seed: int) -> Solver:
    """Raise RunError: a game that is only judged has no solver."""
    raise RunError(f"{problem.name} was loaded to be judged: name an algorithm to solve it")


# Games that are judged, by form: one table, any number of threads, any device.
JUDGING: dict[str, WholeMethod] = {
    FLAT: FlatMethod(judged_only, 1),
    VECTOR: VectorMethod(judged_only, 1, threads=True, gpu=True),
}
WHOLE: dict[str, Callable[[Make], WholeMethod]] = {FLAT: FlatMethod, VECTOR: VectorMethod, DISK: DiskMethod}


def whole_method(form: str, make: Make) -> WholeMethod:
    """The method that makes solvers in a form; plain functions of an algorithm of one's own get the usual one."""
    return make if isinstance(make, WholeMethod) else WHOLE[form](make)
