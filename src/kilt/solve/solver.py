"""What every solver is to the loop that runs it: see `runs.loop`."""

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
    """An iterative algorithm. Its tables are those of the form that it works on.

    On a flat tree they are over slots, one for each action of each information set. On a public tree they are over
    (board, row) × hand, and probabilities are in proportion to what is in them: see `tree.vector`.
    """

    @property
    def iterations(self) -> int:
        """Iterations done so far."""

    def step(self, iterations: int) -> None:
        """Run `iterations` more iterations."""

    def average(self) -> Array:
        """The average strategy: what converges."""

    def current(self) -> Array:
        """The strategy of the last iteration."""

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that must be kept to go on later as if nothing had happened."""

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave."""


@runtime_checkable
class WithWorkers(Protocol):
    """A solver whose work is done somewhere else."""

    size: int  # bytes of all that it keeps

    def parts(self) -> list[tuple[str, float]]:
        """Where each worker is, and the share of the time that it has been at work."""

    def spent(self) -> str:
        """Where the time went, in a line."""

    def close(self) -> None:
        """Let go of all that is somewhere else."""


@runtime_checkable
class InParts(WithWorkers, Protocol):
    """A solver of which most is in the memory of workers: see `distributed`."""

    def save_parts(self, folder: Path) -> None:
        """Write what is somewhere else, as it is when `state` says how the rest is."""

    def restore_parts(self, folder: Path) -> None:
        """Go on from what was written there, after `restore`."""

    def mend(self) -> None:
        """Begin with nothing, when a part was lost."""


@runtime_checkable
class StrategyInParts(Protocol):
    """A solver whose strategy need not be in memory as a whole: see `distributed`."""

    def over_parts(self, work: Callable[[Any], R]) -> list[R]:
        """What `work`, which is pickled, makes of each part of the average strategy, where that part is."""

    def fill(self, shares: Array, folder: Path) -> None:
        """Write the average strategy to a table that may be mapped from a file; `folder` is for scratch."""


@runtime_checkable
class OnDisk(Protocol):
    """A solver that keeps all that it learns in a folder as it goes: see `disk`."""

    size: int  # bytes that the folder will take, about
    interrupted: bool  # whether the folder is in the middle of an iteration: the next step completes it

    def open(self, folder: Path, warn: Callable[[str], None] = ..., run: str = ...) -> None:
        """Keep all that is learnt in the folder of a `run` with that id, or resume from what is there.

        `warn` is called with a line about each loss of a worker.
        """

    def settle(self) -> None:
        """Bring the folder to where the solver is: workers may have come further."""


def on_disk(solver: Solver) -> OnDisk | None:
    """What of a solver keeps all that it learns in a folder: itself, or its tables; None where it does not."""
    return found if isinstance(found := _home(solver), OnDisk) else None


def with_workers(solver: Solver) -> WithWorkers | None:
    """What of a solver has its work done somewhere else: itself, or its tables; None where it does all itself."""
    return found if isinstance(found := _home(solver), WithWorkers) else None


def _home(solver: Solver) -> object:
    return getattr(solver, "tables", solver)


class TableState:
    """The keeping and restoring of a solver whose state is a few arrays, the number of iterations, and other counts."""

    KEPT: tuple[str, ...]  # the attributes that hold the arrays
    COUNTS: tuple[str, ...] = ()  # those that hold whole numbers; checkpoints of kilt 0.1.0 lack them
    iterations: int

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that must be kept to go on later as if nothing had happened."""
        return {name: np.asarray(getattr(self, name)) for name in (*self.KEPT, "iterations", *self.COUNTS)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave."""
        for name in self.KEPT:
            mine = getattr(self, name)
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            mine[...] = state[name]
        self.iterations = int(state["iterations"])
        for name in self.COUNTS:
            setattr(self, name, int(state.get(name, np.asarray(0))))


def normalised(table: FloatArray, nodes: FlatNodes) -> FloatArray:
    """[slot] the non-negative numbers of each information set scaled to add up to 1; uniform where all are 0."""
    starts = nodes.infoset_start
    sizes = np.diff(starts)
    sums = np.repeat(np.add.reduceat(table, starts[:-1]), sizes)
    uniform = np.repeat(1.0 / sizes, sizes)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), uniform)


def scheduled(iteration: int, first: int = 0) -> int:
    """The first iteration of a schedule that is not before this one: powers of √2 from number `first` on.

    >>> [scheduled(iteration) for iteration in (0, 1, 2, 5, 9, 12)]
    [1, 1, 2, 6, 11, 16]
    """
    root = max(first, int(2 * log(max(iteration, 1), 2)) - 1)
    return next(point for k in count(root) if (point := round(2 ** (k / 2))) >= iteration)
