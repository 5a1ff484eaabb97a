"""The interfaces of solvers, which let the same loop run, save and resume any of them."""

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
    """The interface of iterative algorithms that solve a game.

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
        """Return the state as arrays, for a checkpoint."""

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore the state from the arrays that `state` returned.

        Further iterations give the same results as without interruption.
        """


@runtime_checkable
class WithWorkers(Protocol):
    """The interface of solvers with workers, possibly on other machines."""

    size: int  # total size of its tables in bytes

    def how_busy(self) -> list[tuple[str, float]]:
        """Return the machine of each worker, and the share of time that the worker was busy."""

    def describe_load(self) -> str:
        """Describe in one line how much of the time workers were busy."""

    def close(self) -> None:
        """Stop the workers and release their resources."""


@runtime_checkable
class InParts(WithWorkers, Protocol):
    """The interface of solvers whose tables are too large for one process, so that workers store them."""

    def save_parts(self, folder: Path) -> None:
        """Have all workers save their tables as part of a checkpoint.

        They belong to the same iteration as `state`.
        """

    def restore_parts(self, folder: Path) -> None:
        """Have all workers read their tables from a folder.

        `restore` must have been called before.
        """

    def reset_after_loss(self) -> None:
        """Discard all tables after the loss of a worker, before a checkpoint is restored."""


@runtime_checkable
class StrategyInParts(Protocol):
    """The interface of solvers whose strategy is stored in parts, because it may exceed memory."""

    def map_parts(self, work: Callable[[Any], R]) -> list[R]:
        """Apply a function to each part of the average strategy, on the worker that stores it.

        `work` is the function; it is pickled. Returns the results.
        """

    def write_average(self, shares: Array, folder: Path) -> None:
        """Write the average strategy to an array, which may be a file larger than memory.

        `folder` is for temporary files.
        """


@runtime_checkable
class OnDisk(Protocol):
    """The interface of solvers that store their tables in files during a run."""

    size: int  # approximate final size of the folder in bytes
    interrupted: bool  # whether the folder is in the middle of an iteration: the next step completes it

    def open(self, folder: Path, warn: Callable[[str], None] = ..., run: str = ...) -> None:
        """Start storing all tables in a folder, or resume from its files.

        The folder is created if it is missing. `run` is the id of the run. `warn` is called with a line of text for
        each lost worker.
        """

    def settle(self) -> None:
        """Bring the files in a run's folder up to date with the solver's tables.

        Workers may have newer files than the folder.
        """


def on_disk(solver: Solver) -> OnDisk | None:
    """Return the object that stores a solver's tables in files, or None if they are in memory.

    It is the solver or its `tables`.
    """
    return found if isinstance(found := _home(solver), OnDisk) else None


def with_workers(solver: Solver) -> WithWorkers | None:
    """Return the object that manages a solver's workers, or None without workers.

    It is the solver or its `tables`.
    """
    return found if isinstance(found := _home(solver), WithWorkers) else None


def _home(solver: Solver) -> object:
    return getattr(solver, "tables", solver)


class TableState:
    """Base class of solvers whose checkpoints consist of a few arrays and counters."""

    KEPT: tuple[str, ...]  # names of the attributes that are arrays
    COUNTS: tuple[str, ...] = ()  # names of integer attributes; missing in checkpoints of kilt 0.1.0
    iterations: int

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the state as arrays, for a checkpoint."""
        return {name: np.asarray(getattr(self, name)) for name in (*self.KEPT, "iterations", *self.COUNTS)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore the state from the arrays that `state` returned."""
        for name in self.KEPT:
            mine = getattr(self, name)
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            mine[...] = state[name]
        self.iterations = int(state["iterations"])
        for name in self.COUNTS:
            setattr(self, name, int(state.get(name, np.asarray(0))))


def normalised(table: FloatArray, nodes: FlatNodes) -> FloatArray:
    """Scale a strategy so that the probabilities of each information set sum to 1.

    Information sets whose numbers are all 0 get a uniform strategy.
    """
    starts = nodes.infoset_start
    sizes = np.diff(starts)
    sums = np.repeat(np.add.reduceat(table, starts[:-1]), sizes)
    uniform = np.repeat(1.0 / sizes, sizes)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), uniform)


def scheduled(iteration: int, first: int = 0) -> int:
    """Return the next iteration, from a given one on, in a schedule of powers of √2.

    Schedules say when to discount tables. The schedule has the powers of √2, from number `first` on.

    >>> [scheduled(iteration) for iteration in (0, 1, 2, 5, 9, 12)]
    [1, 1, 2, 6, 11, 16]
    """
    root = max(first, int(2 * log(max(iteration, 1), 2)) - 1)
    return next(point for k in count(root) if (point := round(2 ** (k / 2))) >= iteration)
