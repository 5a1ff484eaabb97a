"""What can go wrong because of what a user gave us.

::

    KiltError            anything a user can mend; printed in one line, exit code 2, no traceback
    ├── CardError        unknown or repeated cards, ranges that do not parse, boards that cannot be
    ├── GameError        a game or a game definition that is broken, contradictory or not supported
    ├── AbstractionError an abstraction that cannot be built as asked, or does not fit a game
    ├── ArtifactError    arrays on disk that are missing, damaged, of another kind, or that there is no room for
    ├── RunError         a run that cannot be started or continued as asked: algorithm, budget, folder
    ├── CancellationError a computation that took too long, or whose result nobody waits for
    ├── EngineError      work that cannot be done elsewhere: no cluster, no room, a worker that died
    ├── PlayError        a match that cannot begin or go on: an agent, a network, a protocol
    └── MissingPeerError an optional package that a command compares itself with is not installed

A message says what is wrong, the value, the bound and the remedy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class KiltError(Exception):
    """Base of all errors that the user can mend."""


class CardError(KiltError):
    """Cards, hands, boards or ranges that make no sense."""


class GameError(KiltError):
    """A game definition that cannot be read, or a game that cannot be built from it."""


class AbstractionError(KiltError):
    """An abstraction that cannot be built as asked, or that does not fit a game."""


class ArtifactError(KiltError):
    """Arrays on disk that cannot be read or written."""


class RunError(KiltError):
    """A run of a solver that cannot be started or continued as asked."""


class CancellationError(KiltError):
    """A computation that was cancelled: it took too long, or nobody waits for its result."""


class PlayError(KiltError):
    """A match that cannot begin, or cannot go on."""


class EngineError(KiltError):
    """Work that cannot be done where it was to be done."""


class MissingPeerError(KiltError):
    """A package that a command needs, and that kilt does not require, is not installed."""


def quoted(text: str, most: int = 80) -> str:
    """A text in quotes for an error message, cut after `most` characters."""
    return repr(text) if len(text) <= most else f"{text[:most]!r} …"


def shortened(text: str, most: int = 200) -> str:
    """A text for an error message, cut after `most` characters.

    >>> shortened("a" * 20, most=5)
    'aaaaa …'
    """
    return text if len(text) <= most else f"{text[:most]} …"


def about_file(error: OSError) -> str:
    """What the operating system says about a file, in one line: a name that is too long, say."""
    return f"{shortened(os.fsdecode(error.filename))}: {(error.strerror or str(error)).lower()}"


@contextmanager
def file_errors() -> Iterator[None]:
    """Turn errors of the operating system about a file into ArtifactErrors; decorates what users call with names."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise ArtifactError(about_file(error)) from None
