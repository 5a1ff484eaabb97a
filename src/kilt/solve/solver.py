"""Define the interfaces that solvers implement, so that the same loop can run, save and resume any of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from math import log
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray
from kilt.tree.flat import FlatNodes

R = TypeVar("R")


class Solver(Protocol):
    """The interface of an iterative algorithm that solves a game.

    On a flat tree, a strategy has one number for each action of each information set. On a public tree, it has rows by
    board and action and columns by hand, and need not be normalised: see `tree.vector`.
    """

    @property
    def iterations(self) -> int:
        """The number of completed iterations."""

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations."""

    def average(self) -> Array:
        """Return the average strategy, which converges."""

    def current(self) -> Array:
        """Return the strategy of the last iteration."""

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays to save in a checkpoint."""

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Load the arrays of a checkpoint, as returned by `state`.

        Further iterations give the same results as without interruption.
        """


@runtime_checkable
class WithWorkers(Protocol):
    """The interface of a solver whose work is done by workers, possibly on other machines."""

    size: int  # total size of its tables in bytes

    def parts(self) -> list[tuple[str, float]]:
        """Return the host name of each worker, and the fraction of time that the worker was busy."""

    def spent(self) -> str:
        """Return one line of text about how busy the workers were."""

    def close(self) -> None:
        """Stop the workers and release their resources."""


@runtime_checkable
class InParts(WithWorkers, Protocol):
    """The interface of a solver whose tables are mostly in the memory of its workers."""

    def save_parts(self, folder: Path) -> None:
        """Let the workers write their tables to a folder, for a checkpoint.

        They belong to the same iteration as `state`.
        """

    def restore_parts(self, folder: Path) -> None:
        """Let the workers read their tables from a folder, after `restore`."""

    def mend(self) -> None:
        """Discard all tables after a worker was lost. They can then be restored from a checkpoint."""


@runtime_checkable
class StrategyInParts(Protocol):
    """The interface of a solver whose strategy is stored in parts, because the whole may not fit into memory."""

    def over_parts(self, work: Callable[[Any], R]) -> list[R]:
        """Call `work` on each part of the average strategy, on the worker that stores the part.

        Returns the results. `work` is pickled.
        """

    def fill(self, shares: Array, folder: Path) -> None:
        """Write the average strategy to the array `shares`, which may be larger than memory.

        `folder` is for temporary files.
        """


@runtime_checkable
class OnDisk(Protocol):
    """The interface of a solver that keeps its tables in files while it runs."""

    size: int  # approximate final size of the folder in bytes
    interrupted: bool  # whether the folder is in the middle of an iteration: the next step completes it

    def open(self, folder: Path, warn: Callable[[str], None] = ..., run: str = ...) -> None:
        """Store all tables in the folder of a run, or resume from the files in it.

        `run` is the id of the run. `warn` is called with a line of text for each lost worker.
        """

    def settle(self) -> None:
        """Bring the folder of a run up to date with the solver.

        Workers may have newer files than the folder.
        """


def on_disk(solver: Solver) -> OnDisk | None:
    """Return the object that stores a solver's tables in files, or None if they are in memory.

    It is the solver or its `tables`.
    """
    return found if isinstance(found := _home(solver), OnDisk) else None


def with_workers(solver: Solver) -> WithWorkers | None:
    """Return the object that has workers, or None if a solver runs in a single process.

    It is the solver or its `tables`.
    """
    return found if isinstance(found := _home(solver), WithWorkers) else None


def _home(solver: Solver) -> object:
    return getattr(solver, "tables", solver)


class TableState:
    """Base class of solvers that save a few arrays and counts to a checkpoint, and restore them."""

    KEPT: tuple[str, ...]  # names of the attributes that are arrays
    COUNTS: tuple[str, ...] = ()  # names of integer attributes; missing in checkpoints of kilt 0.1.0
    iterations: int

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays to save in a checkpoint."""
        return {name: np.asarray(getattr(self, name)) for name in (*self.KEPT, "iterations", *self.COUNTS)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Load the arrays of a checkpoint, as returned by `state`."""
        for name in self.KEPT:
            mine = getattr(self, name)
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            mine[...] = state[name]
        self.iterations = int(state["iterations"])
        for name in self.COUNTS:
            setattr(self, name, int(state.get(name, np.asarray(0))))


def normalised(table: FloatArray, nodes: FlatNodes) -> FloatArray:
    """Scale the numbers of each information set so that they sum to 1. If all are 0, the result is uniform."""
    starts = nodes.infoset_start
    sizes = np.diff(starts)
    sums = np.repeat(np.add.reduceat(table, starts[:-1]), sizes)
    uniform = np.repeat(1.0 / sizes, sizes)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), uniform)


def scheduled(iteration: int, first: int = 0) -> int:
    """Return the first scheduled iteration that is not before a given iteration.

    Schedules say when to discount tables. The schedule has the powers of √2, from number `first` on.

    >>> [scheduled(iteration) for iteration in (0, 1, 2, 5, 9, 12)]
    [1, 1, 2, 6, 11, 16]
    """
    root = max(first, int(2 * log(max(iteration, 1), 2)) - 1)
    return next(point for k in count(root) if (point := round(2 ** (k / 2))) >= iteration)
