"""Limit the time for an agent's answer, and cancel answers that are no longer needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from time import monotonic

from kilt.errors import PlayError
from kilt.games.holdem import RAISE, Betting


class DroppedError(PlayError):
    """Raised to cancel an answer that is no longer needed."""


@dataclass(frozen=True)
class Allowance:
    """A time limit for an agent's answer, which can also be cancelled.

    `until` is a time of `time.monotonic`, or None for no limit.

    >>> time = Allowance(monotonic() + 10)
    >>> 4.9 < time.for_part(0.5).left < 5
    True
    """

    until: float | None = None
    least: int = 0  # minimum iterations before a subgame's strategy may be played
    over: bool = False  # whether no new work may begin
    _dropped: Event = field(default_factory=Event, repr=False, compare=False)

    @property
    def left(self) -> float | None:
        """The remaining seconds until the time limit, or None if there is no limit."""
        return None if self.until is None else max(self.until - monotonic(), 0.0)

    def for_part(self, share: float) -> Allowance:
        """Return a time limit for part of the work, as a share of the remaining time."""
        return self if self.left is None else replace(self, until=monotonic() + share * self.left)

    def for_earlier_subgame(self, rest: Sequence[tuple[Betting, str, Betting]], me: int, *, half: bool) -> Allowance:
        """Return the time limit for an earlier subgame, which must be re-solved before the current one.

        `rest` are the actions since the start of the earlier subgame, and the agent sits in seat `me`. With a time
        limit, a subgame in which the agent has already acted gets no time: it was solved in time, or is not solved any
        more. Raises since the start may need subgames of their own: if `half` is true, half of the time is kept for
        them.
        """
        if self.until is not None and any(at.actor == me for at, _, _ in rest):
            return replace(self, over=True)
        return self.for_part(0.5) if half and any(action.startswith(RAISE) for _, action, _ in rest) else self

    def drop(self) -> None:
        """Signal that the agent's answer is no longer needed."""
        self._dropped.set()

    def check(self) -> None:
        """Raise DroppedError if the answer is no longer needed.

        Long computations call this often.
        """
        if self._dropped.is_set():
            raise DroppedError("the time is up: give more `seconds`")
