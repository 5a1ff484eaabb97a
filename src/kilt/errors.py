"""What can go wrong because of what a user gave us.

::

    KiltError            anything a user can mend; printed in one line, exit code 2, no traceback
    ├── CardError        unknown or repeated cards, ranges that do not parse, boards that cannot be
    ├── GameError        a game or a game definition that is broken, contradictory or not supported
    └── MissingPeerError an optional package that a command compares itself with is not installed

A message says what is wrong, the value, the bound and the remedy.
"""


class KiltError(Exception):
    """Base of all errors that the user can mend."""


class CardError(KiltError):
    """Cards, hands, boards or ranges that make no sense."""


class GameError(KiltError):
    """A game definition that cannot be read, or a game that cannot be built from it."""


class MissingPeerError(KiltError):
    """A package that kilt measures itself against is not installed."""
