"""What takes seconds and several tests need, made once for all tests of a process. Nobody changes what is here."""

from functools import cache

from kilt.cards import equity
from kilt.solve.forms import load_problem


@cache
def problem_of(name, form):
    """A ready-made game in a form: "flat" or "vector"."""
    return load_problem(name, form=form)


def tree_of(name):
    """The flat tree of a ready-made game."""
    return problem_of(name, "flat").tree


@cache
def distribution(board):
    """`equity.distribution` on a board of the full deck: before the flop all boards are played out."""
    return equity.distribution(board)
