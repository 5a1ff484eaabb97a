"""Errors that a user can correct: `KiltError` and its subclasses.

::

    KiltError            any error that a user can correct; printed in one line, exit code 2, no traceback
    ├── CardError        unknown or repeated cards, ranges that do not parse, impossible boards
    ├── GameError        a game or a game definition that is broken, contradictory or not supported
    ├── AbstractionError an abstraction that cannot be built as requested, or does not fit a game
    ├── ArtifactError    arrays on disk that are missing, damaged or of another kind, or a full disk
    ├── RunError         a run that cannot be started or continued as requested: algorithm, budget, folder
    ├── CancellationError a computation that took too long, or whose result is no longer needed
    ├── EngineError      work that cannot be done on other machines: no cluster, no resources, a dead worker
    ├── PlayError        a match that cannot begin or continue: an agent, a network, a protocol
    └── MissingPeerError an optional package is not installed that a command compares kilt with

A message names the problem, the value, the bound and the remedy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class KiltError(Exception):
    """Base class of all errors that the user can correct."""


class CardError(KiltError):
    """Raised for invalid cards, hands, boards or ranges."""


class GameError(KiltError):
    """Raised if the definition of a game is invalid or unsupported."""


class AbstractionError(KiltError):
    """Raised if an abstraction cannot be built as requested, or does not fit a game."""


class ArtifactError(KiltError):
    """Raised if files on disk are missing, damaged, or cannot be written."""


class RunError(KiltError):
    """Raised if a run cannot be started or resumed as requested."""


class CancellationError(KiltError):
    """Raised if a computation is cancelled by its time limit, or because its result is no longer needed."""


class PlayError(KiltError):
    """Raised if a match cannot begin or cannot continue."""


class EngineError(KiltError):
    """Raised if worker processes or a cluster fail to do the requested work."""


class MissingPeerError(KiltError):
    """Raised if a command needs an optional package that is not installed."""


def quoted(text: str, most: int = 80) -> str:
    """Return a text in quotes for an error message, cut after `most` characters."""
    return repr(text) if len(text) <= most else f"{text[:most]!r} …"


def shortened(text: str, most: int = 200) -> str:
    """Return a text for an error message, cut after `most` characters.

    >>> shortened("a" * 20, most=5)
    'aaaaa …'
    """
    return text if len(text) <= most else f"{text[:most]} …"


def about_file(error: OSError) -> str:
    """Describe an operating system error about a file in one line."""
    return f"{shortened(os.fsdecode(error.filename))}: {(error.strerror or str(error)).lower()}"


@contextmanager
def file_errors() -> Iterator[None]:
    """Turn operating system errors about files into ArtifactErrors.

    Use it as a context manager, or as a decorator of functions that take file names.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise ArtifactError(about_file(error)) from None
