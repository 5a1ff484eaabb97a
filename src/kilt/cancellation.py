"""Cancel long computations, which call a check function often and stop if it raises an error.

>>> def give_up():
...     raise CancellationError("the result is no longer needed")
>>> with cancelled_by(give_up):
...     raise_if_cancelled()
Traceback (most recent call last):
kilt.errors.CancellationError: the result is no longer needed
>>> raise_if_cancelled()  # no check is active here
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kilt.errors import CancellationError

__all__ = ["CancellationError", "cancelled_by", "raise_if_cancelled"]

_check: ContextVar[Callable[[], None]] = ContextVar("check", default=lambda: None)


@contextmanager
def cancelled_by(check: Callable[[], None]) -> Iterator[None]:
    """Let a function cancel the long computations inside a ``with`` block.

    Only loops in this thread call it.
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def raise_if_cancelled() -> None:
    """Raise `CancellationError` if the caller has cancelled the current computation.

    Every loop that can take seconds calls this function.
    """
    _check.get()()
