"""What every solver is to the loop that runs it: see `run`."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import FloatArray
from kilt.tree.flat import FlatNodes


class Solver(Protocol):
    """An iterative algorithm on a flat tree. Tables are over slots, one for each action of each information set."""

    iterations: int  # done so far

    def step(self, iterations: int) -> None:
        """Do so many more."""

    def average(self) -> FloatArray:
        """[slot] the average strategy: what converges."""

    def current(self) -> FloatArray:
        """[slot] the strategy of the last iteration."""

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that must be kept to go on later as if nothing had happened."""

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave."""


def normalised(table: FloatArray, nodes: FlatNodes) -> FloatArray:
    """[slot] the non-negative numbers of each information set scaled to add up to 1; uniform where all are 0."""
    starts = nodes.infoset_start
    sizes = np.diff(starts)
    sums = np.repeat(np.add.reduceat(table, starts[:-1]), sizes)
    uniform = np.repeat(1.0 / sizes, sizes)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), uniform)
