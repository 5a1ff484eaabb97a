"""Estimate the memory, disk space, GPU memory and time of some work before it begins.

All estimates return a `Cost`; costs can be added, and `Cost.require` is the only function that compares them with the
machine.

>>> cards = Cost(memory=3 * 10**9, disk=10**8, seconds=83.0, what="building the cards", remedy="use fewer buckets")
>>> whole = cards.named("cards").then(Cost(memory=10**9, disk=2 * 10**6).named("solving"))
>>> print(whole)
1.2 GB of memory, 2 MB on disk; cards: 3.2 GB of memory, 100 MB on disk, about 1:23 min to build
>>> whole.memory, whole.disk, whole.seconds
(3000000000, 102000000, 83.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from kilt import machine
from kilt.errors import RunError


class IterationPace(Protocol):
    """The measured speed of a solver."""

    @property
    def iterations(self) -> float:
        """Return the number of iterations per second."""


@dataclass(frozen=True)
class Cost:
    """The estimated cost of some work in memory, disk space, GPU memory and time.

    Attributes
    ----------
    memory : int
        Peak memory in bytes, without that of the process itself.
    mapped : int
        Bytes of `memory` that are mapped from files and need not fit.
    device : int
        Bytes of GPU memory.
    disk : int
        Bytes of the files in its folder.
    cache : int
        Bytes that are added to the cache of tables.
    seconds : float or None
        Seconds before the first iteration; None if there is no such work.
    iteration : float or None
        Seconds of an iteration; None if it must be measured first.
    what, remedy : str
        A description of the work, and a remedy, for the error message of `require`.
    parts : tuple of (str, Cost)
        The parts of the work, by name.
    """

    memory: int = 0
    mapped: int = 0
    device: int = 0
    disk: int = 0
    cache: int = 0
    seconds: float | None = None
    iteration: float | None = None
    what: str = ""
    remedy: str = ""
    parts: tuple[tuple[str, Cost], ...] = ()

    @property
    def needed(self) -> int:
        """The bytes that must fit into memory, not counting mapped files."""
        return self.memory - self.mapped

    @property
    def resident(self) -> int:
        """The peak resident memory in bytes of a process that does this work."""
        return machine.PROCESS + self.memory

    def then(self, later: Cost) -> Cost:
        """Return the cost of this work followed by other work.

        Memory is the larger of the two peaks; disk space and time are added.
        """
        memory = max(self.memory, later.memory)
        return Cost(
            memory,
            memory - max(self.needed, later.needed),
            max(self.device, later.device),
            self.disk + later.disk,
            self.cache + later.cache,
            _sum(self.seconds, later.seconds),
            self.iteration if later.iteration is None else later.iteration,
            *((self.what, self.remedy) if self.what == later.what else ("", "")),
            self.parts + later.parts,
        )

    def beside(self, other: Cost) -> Cost:
        """Return the cost of this work and other work at the same time on one machine.

        Memory is added; time is the longer of the two.
        """
        both = self.then(other)
        memory, mapped = self.memory + other.memory, self.mapped + other.mapped
        seconds = max((one for one in (self.seconds, other.seconds) if one is not None), default=None)
        return replace(both, memory=memory, mapped=mapped, device=self.device + other.device, seconds=seconds)

    def at(self, pace: IterationPace) -> Cost:
        """Return the cost with its time computed from a measured speed."""
        return replace(self, iteration=1 / pace.iterations)

    def named(self, name: str) -> Cost:
        """Return the cost under a name, by which `part` can find it later."""
        return replace(self, parts=((name, self),))

    def part(self, name: str) -> Cost | None:
        """Return the cost of the part with the given name, or None."""
        return dict(self.parts).get(name)

    @property
    def fits(self) -> bool:
        """Whether the work fits into this machine's memory.

        GPU memory is ignored.
        """
        return machine.fits_memory(machine.PROCESS + self.needed)

    def lack(self, of: str = "") -> str | None:
        """Return a message about missing memory, or None if this machine has enough.

        `of` is the purpose of the memory, for the text.
        """
        of = of and f" for {of}"
        if self.needed and not self.fits:
            there = machine.available_memory()
            return f"{self.needed / 1e9:,.1f} GB of memory{of}, and {there / 1e9:,.1f} GB are available"
        if self.device:
            from kilt.gpu import free_memory  # raises an error without a GPU

            if self.device > (free := free_memory()):
                return f"{self.device / 1e9:,.1f} GB of the GPU's memory{of}, and {free / 1e9:,.1f} GB are free"
        return None

    def require(self, folder: Path | None = None) -> Cost:
        """Check that this machine has enough memory and disk space for the work, and return the cost.

        GPU memory is checked as well.

        Parameters
        ----------
        folder : Path, optional
            Folder of the files that the work writes. Default: disk space is not checked.

        Raises
        ------
        RunError
            If main or GPU memory is too small. The message contains the work and the remedy.
        ArtifactError
            If the disk has no room.
        """
        for part in self._leaves():
            if lack := part.lack():
                raise RunError(f"{part.what} takes {lack}: {part.remedy}")
        if folder:
            from kilt import artifact  # slow to import: it loads NumPy

            if self.cache:
                artifact.require_room(machine.cache_folder(), self.cache)
            artifact.require_room(folder, self.disk)
        return self

    def _leaves(self) -> Iterator[Cost]:
        """Yield the parts that are not divided further, the largest first, or the cost itself if it has no parts."""
        if self.what:
            yield self
            return
        for _, part in sorted(self.parts, key=lambda one: -one[1].needed):
            yield from part._leaves()

    def data(self) -> dict[str, Any]:
        """Return the cost as a dict of bytes and seconds.

        Unknown values and zeros are left out.
        """
        numbers = {
            "memory_bytes": self.resident,
            "mapped_bytes": self.mapped,
            "device_bytes": self.device or None,
            "disk_bytes": self.disk,
            "cache_bytes": self.cache or None,
            "seconds_before": self.seconds,
            "iteration_seconds": self.iteration,
        }
        return {name: value for name, value in numbers.items() if value is not None}

    def __str__(self) -> str:
        if len(self.parts) > 1 and not self.what:
            *before, (_, last) = self.parts
            return "; ".join([str(last), *(f"{name}: {part}" for name, part in before)])
        sizes = {
            f"{in_bytes(self.resident)} of memory": True,
            f"{in_bytes(self.device)} of the GPU": self.device,
            f"{in_bytes(self.disk)} on disk": self.disk,
            f"{in_bytes(self.cache)} more in the cache": self.cache,
            f"about {in_time(self.seconds or 0)} to build": self.seconds,
            f"about {in_time(self.iteration or 0)} an iteration": self.iteration,
        }
        return ", ".join(text for text, whether in sizes.items() if whether)


def _sum(*times: float | None) -> float | None:
    """Return the sum of the known times, or None if none is known."""
    known = [one for one in times if one is not None]
    return sum(known) if known else None


def in_bytes(size: float) -> str:
    """Format a size in bytes with a suitable unit.

    >>> in_bytes(2048), in_bytes(2.5e6), in_bytes(12.34e9)
    ('2 kB', '2 MB', '12.3 GB')
    """
    if size >= 1e9:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


def in_time(seconds: float) -> str:
    """Format a duration in seconds with a suitable unit.

    >>> in_time(0.0213), in_time(12), in_time(83), in_time(20000), in_time(1.6e6)
    ('21 ms', '12 s', '1:23 min', '6 h', '19 days')
    """
    if seconds < 1:
        return f"{1000 * seconds:,.0f} ms" if seconds >= 0.001 else f"{1000 * seconds:.2g} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return elapsed(seconds) + " min" * (seconds < 7200)


def elapsed(seconds: float) -> str:
    """Format a duration in seconds like a clock, as minutes and seconds, or in hours or days if it is long.

    >>> elapsed(10.2), elapsed(125.4), elapsed(20000)
    ('0:10', '2:05', '6 h')
    """
    if seconds < 7200:
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
    return f"{seconds / 3600:,.0f} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:,.0f} days"
