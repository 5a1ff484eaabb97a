"""The time that an answer may take: until when to look for a better one, and whether anybody still waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from time import monotonic

from kilt.errors import PlayError
from kilt.games.holdem import RAISE, Betting


class DroppedError(PlayError):
    """Nobody waits for an answer any more, and work on it ends."""


@dataclass(frozen=True)
class Allowance:
    """Until when to work on an answer, by `time.monotonic`; None: as long as it takes.

    >>> time = Allowance(monotonic() + 10)
    >>> 4.9 < time.part(0.5).left < 5
    True
    """

    until: float | None = None
    least: int = 0  # iterations that a subgame needs to be played
    over: bool = False  # whether nothing is to be begun any more
    _dropped: Event = field(default_factory=Event, repr=False, compare=False)

    @property
    def left(self) -> float | None:
        """Seconds that are left, at least 0; None where there is no limit."""
        return None if self.until is None else max(self.until - monotonic(), 0.0)

    def part(self, share: float) -> Allowance:
        """A share of the time that is left."""
        return self if self.left is None else replace(self, until=monotonic() + share * self.left)

    def before(self, rest: Sequence[tuple[Betting, str, Betting]], me: int, *, half: bool) -> Allowance:
        """The part for a subgame after which `rest` was done, for the agent in seat `me`.

        With a limit, a subgame after which the agent has acted is over: it was solved in time, or is not any more.
        What was raised since may have to be solved too: where `half` is true, half of the time is kept for that.
        """
        if self.until is not None and any(at.actor == me for at, _, _ in rest):
            return replace(self, over=True)
        return self.part(0.5) if half and any(action.startswith(RAISE) for _, action, _ in rest) else self

    def drop(self) -> None:
        """Say that nobody waits any more."""
        self._dropped.set()

    def check(self) -> None:
        """Raise DroppedError where nobody waits any more: work of more than some hundredths of a second asks often."""
        if self._dropped.is_set():
            raise DroppedError("the time is up: give more `seconds`")
