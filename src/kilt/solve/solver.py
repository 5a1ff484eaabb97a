"""The protocols that a solver implements for the run loop: see `runs.loop`."""

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
    """An iterative algorithm. The form of its tables depends on the form of the game.

    On a flat tree, tables are over slots: one for each action of each information set. On a public tree, they are over
    (board, row) × hand, and need not be normalised: see `tree.vector`.
    """

    @property
    def iterations(self) -> int:
        """Number of completed iterations."""

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations."""

    def average(self) -> Array:
        """Return the average strategy, which converges."""

    def current(self) -> Array:
        """Return the strategy of the last iteration."""

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the solver's state, for a checkpoint."""

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore a state that `state` returned; further iterations give the same results as without interruption."""


@runtime_checkable
class WithWorkers(Protocol):
    """A solver whose work is done by workers, possibly on other machines."""

    size: int  # total size of its tables in bytes

    def parts(self) -> list[tuple[str, float]]:
        """Return the host of each worker, and the share of time that the worker was busy."""

    def spent(self) -> str:
        """Return one line about how busy the workers were."""

    def close(self) -> None:
        """Release the workers and their resources."""


@runtime_checkable
class InParts(WithWorkers, Protocol):
    """A solver most of whose tables are in the memory of workers: see `distributed`."""

    def save_parts(self, folder: Path) -> None:
        """Write the workers' tables to a folder, at the iteration of `state`."""

    def restore_parts(self, folder: Path) -> None:
        """Read the workers' tables from a folder, after `restore`."""

    def mend(self) -> None:
        """Discard the tables after a worker was lost, so that they can be restored."""


@runtime_checkable
class StrategyInParts(Protocol):
    """A solver whose strategy need not be in memory as a whole: see `distributed`."""

    def over_parts(self, work: Callable[[Any], R]) -> list[R]:
        """Call `work`, which is pickled, on each part of the average strategy where the part is; return the results."""

    def fill(self, shares: Array, folder: Path) -> None:
        """Write the average strategy to a table that may be mapped from a file; `folder` is for temporary files."""


@runtime_checkable
class OnDisk(Protocol):
    """A solver that stores its tables in a folder during the solve: see `disk`."""

    size: int  # approximate final size of the folder in bytes
    interrupted: bool  # whether the folder is in the middle of an iteration: the next step completes it

    def open(self, folder: Path, warn: Callable[[str], None] = ..., run: str = ...) -> None:
        """Store all tables in the folder of the run with id `run`, or resume from the files in it.

        `warn` is called with a line of text for each lost worker.
        """

    def settle(self) -> None:
        """Bring the folder to the solver's last pass: workers may have newer files."""


def on_disk(solver: Solver) -> OnDisk | None:
    """Return the part of a solver that stores its tables in a folder: the solver or its tables.

    None if neither does.
    """
    return found if isinstance(found := _home(solver), OnDisk) else None


def with_workers(solver: Solver) -> WithWorkers | None:
    """Return the part of a solver that has workers: the solver or its tables; None if neither has."""
    return found if isinstance(found := _home(solver), WithWorkers) else None


def _home(solver: Solver) -> object:
    return getattr(solver, "tables", solver)


class TableState:
    """State of a solver that consists of a few arrays, the number of iterations, and other counts."""

    KEPT: tuple[str, ...]  # names of the attributes that are arrays
    COUNTS: tuple[str, ...] = ()  # names of integer attributes; missing in checkpoints of kilt 0.1.0
    iterations: int

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the solver's state, for a checkpoint."""
        return {name: np.asarray(getattr(self, name)) for name in (*self.KEPT, "iterations", *self.COUNTS)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Restore a state that `state` returned."""
        for name in self.KEPT:
            mine = getattr(self, name)
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            mine[...] = state[name]
        self.iterations = int(state["iterations"])
        for name in self.COUNTS:
            setattr(self, name, int(state.get(name, np.asarray(0))))


def normalised(table: FloatArray, nodes: FlatNodes) -> FloatArray:
    """Scale the nonnegative numbers of each information set to sum to 1, [slot]; uniform if all are 0."""
    starts = nodes.infoset_start
    sizes = np.diff(starts)
    sums = np.repeat(np.add.reduceat(table, starts[:-1]), sizes)
    uniform = np.repeat(1.0 / sizes, sizes)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), uniform)


def scheduled(iteration: int, first: int = 0) -> int:
    """The first iteration of a schedule that is not before `iteration`: powers of √2 from number `first` on.

    >>> [scheduled(iteration) for iteration in (0, 1, 2, 5, 9, 12)]
    [1, 1, 2, 6, 11, 16]
    """
    root = max(first, int(2 * log(max(iteration, 1), 2)) - 1)
    return next(point for k in count(root) if (point := round(2 ** (k / 2))) >= iteration)
