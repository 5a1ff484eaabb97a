"""Estimate the memory, disk space and time of CFR+ on disk, for one or several machines.

>>> from kilt.solve.forms import disk_problem
>>> plan = DiskPlan(disk_problem("leduc"))
>>> one, three = plan.on(1), plan.on(3)
>>> one.subgames, three.subgames, round(one.seconds / three.seconds)
(3, 1, 3)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, inf, log
from typing import NamedTuple

import numpy as np

from kilt.cost import Cost
from kilt.errors import RunError
from kilt.paces import curve
from kilt.solve.distributed.partition import assign_work
from kilt.solve.tables.disk import PACKED, USUAL_PACE, DiskPace, measured_pace
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.tables.disk_subgames import Subgames, subgames_abreast

# Iterations of CFR+, and exploitability of its current strategy in mbb/g: [2-4] hold'em, and single points of a smaller
# and of a larger game.
CURVE = curve("disk", "curve")
(SMALLER,), (LARGER,) = curve("disk", "smaller"), curve("disk", "larger")


class DiskForecast(NamedTuple):
    """The estimated cost of one iteration of CFR+ on disk, shared by one or several machines.

    Each machine has a share of the subgames on its own disk.
    """

    machines: int
    cores: int  # of each
    subgames: int  # of the machine with the most work
    cost: Cost  # of each, so that all cores are at work; the disk of the machine that has most
    least_memory: int  # bytes of each, with one subgame at a time
    seconds: float  # of an iteration
    sent: int  # bytes between the head and all others in an iteration; 0 on one machine

    @property
    def disk_pace(self) -> float:
        """Return the bytes per second that each disk reads and writes.

        In an iteration, this is three times the size of all files.
        """
        return 3 * self.cost.disk / self.seconds

    def data(self) -> dict[str, float]:
        """Return the forecast as a dict of numbers."""
        found = self._asdict() | {"memory": self.cost.memory, "disk": self.cost.disk}
        return {name: value for name, value in found.items() if name != "cost"} | {
            "disk_bytes_per_second": self.disk_pace
        }


@dataclass(frozen=True)
class DiskPlan:
    """A plan for solving a game by CFR+ with tables on disk.

    It estimates memory, disk space and time.

    Parameters
    ----------
    problem : DiskProblem
        The game, with the threads of each machine.
    averaging : bool
        Whether the average strategy is stored too.
    pace : DiskPace
        Measured speed of a core.
    """

    problem: DiskProblem
    averaging: bool = False
    pace: DiskPace = USUAL_PACE

    @property
    def cut(self) -> Subgames:
        """Return the subgames into which the game is divided on disk."""
        return self.problem.subgames

    @cached_property
    def numbers(self) -> int:
        """Return how many numbers are stored on disk for regrets and average strategies.

        There is one regret for each action, board and hand, and one number of the average strategy if it is stored.

        Boards and hands that differ only by a swap of suits are stored once.
        """
        return self.cut.numbers * (1 + self.averaging)

    def memory(self, subgames: int) -> int:
        """Return the size of the tables in a machine's memory in bytes, with `subgames` subgames at a time."""
        return self.cut.memory_of(subgames) * (1 + self.averaging)

    @property
    def fits(self) -> bool:
        """Return whether this machine's memory suffices for one subgame at a time."""
        return Cost(self.memory(1)).fits

    def measured(self, seconds: float) -> DiskPace:
        """Measure the speed of one of this machine's cores by solving subgames for some seconds."""
        return measured_pace(self.cut, seconds, averaging=self.averaging)

    def on(self, machines: int, bandwidth: float = inf) -> DiskForecast:
        """Estimate the cost of one iteration if several machines share the work.

        Subgames are distributed over the machines by size. Before a pass, the strategy of the first rounds is sent to
        all machines; after it, they return the values at the chance nodes that begin the subgames. All messages go
        through the network line of the head machine, with `bandwidth` bytes per second.
        """
        if machines < 1:
            raise RunError(f"the number of machines is {machines}: use 1 or more")
        cut, threads, hands = self.cut, self.problem.game.threads, self.problem.game.shape[1]
        own = max((cut.sizes[share] for share in assign_work(cut.sizes, min(machines, cut.count))), key=np.sum)
        share = float(own.sum() / cut.sizes.sum())
        work = max(float(own.sum()) / threads, float(own.max())) * hands * self.pace.total
        values = int(np.diff(cut.cuts[:, 2:], axis=1).sum()) * hands
        message = (machines * cut.trunk_rows * cut.width + values) * cut.dtype.itemsize
        sent = 2 * message if machines > 1 else 0
        disk = ceil(4 * self.numbers / PACKED * share)
        seconds = 2 * work + sent / bandwidth
        cost = Cost(self.memory(subgames_abreast(threads)), disk=disk, iteration=seconds)
        return DiskForecast(machines, threads, len(own), cost, self.memory(1), seconds, sent)

    def iterations_for(self, target: float) -> tuple[int, int, int]:
        """Estimate the iterations to reach a target exploitability in chips per game.

        The three estimates take the convergence of [2-4] hold'em, of a smaller and of a larger game.

        Raises RunError for games without a big blind: there is no comparable measurement.
        """
        mbb = self.problem.mbb(target)
        if mbb is None:
            raise RunError(f"{self.problem.name} has no big blind, by which games are compared: give `iterations`")
        known = iterations_to(mbb)
        less, more = (iterations / iterations_to(seen) for iterations, seen in (SMALLER, LARGER))
        return round(known), ceil(known * less), ceil(known * more)


def iterations_to(mbb: float) -> float:
    """Return the iterations of CFR+ that solve [2-4] hold'em to an exploitability in mbb/g.

    The number is interpolated between measured points.

    >>> round(iterations_to(1.0)), round(iterations_to(0.031) / 1000)
    (362, 7)
    """
    if not 0 < mbb < inf:
        raise RunError(f"the target is {mbb:g} mbb/g: give a number above 0")
    after = next((place for place, (_, seen) in enumerate(CURVE) if seen <= mbb), len(CURVE) - 1)
    (first, high), (last, low) = CURVE[max(after, 1) - 1], CURVE[max(after, 1)]
    return first * exp(log(last / first) * log(high / mbb) / log(high / low))
