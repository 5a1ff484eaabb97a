"""kilt: from the rules of a large game of imperfect information to an agent that plays it."""

__version__ = "0.1.0"
