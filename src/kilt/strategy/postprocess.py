"""Post-process a strategy: change its action probabilities before play, such as by purification [Brown15 §4].

A strategy that was solved in an abstraction overfits the abstraction, and a solver that was stopped leaves some
probability on poor actions. A `Rule` removes such actions. Three methods are published; all are rows of one type:

- thresholding drops actions that are less likely than a threshold;
- purification plays the most likely action. It is a threshold of 1: if all actions fall below it, the most likely stay;
- the family ``new`` folds with certainty if folding is likely enough. Otherwise it chooses the most likely class of
  actions (fold, call or bet), then the most likely action of that class. So all bet sizes count together.

In the example of section 4, most of the probability is on bets, but calling is the most likely single action.

>>> labels = ("f", "c", "r150", "r175", "r200", "r250", "r300", "r600", "r20000")
>>> probabilities = (0.1, 0.25, 0.15, 0.15, 0.2, 0.15, 0, 0, 0)
>>> [label for label, p in zip(labels, apply(RULES["purification"], labels, probabilities)) if p]
['c']
>>> [label for label, p in zip(labels, apply(RULES["new-0.2"], labels, probabilities)) if p]
['r200']

Any rule can make a strategy more exploitable (footnote 4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from inspect import signature
from operator import add

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import PlayError
from kilt.games.holdem import FOLD
from kilt.strategy.postprocess_kernels import RuleNumbers

PURIFY = 1.0  # a threshold that keeps only the most likely action
AFTER_FIRST = "-after-first"


def own_class(label: str) -> str:
    """Return a class of actions with only the given action."""
    return label


def action_class(label: str) -> str:
    """Return the class of an action: ``f`` for folds, ``c`` for calls, ``r`` for bets and raises."""
    return label[:1]


@dataclass(frozen=True)
class Rule:
    """A rule that changes the action probabilities of a decision before play; by default, it changes nothing."""

    fold: float = 1.0  # fold with certainty if folding is more likely than this
    among: float = 0.0  # the threshold among classes of actions
    inside: float = 0.0  # the threshold inside a class, where its actions add up to 1
    classes: Callable[[str], str] = own_class  # the class of an action, from its label
    after_first: bool = False  # leave a player's first action of a hand unchanged (footnote 5)

    def __post_init__(self) -> None:
        for what in ("fold", "among", "inside"):
            if not 0 <= getattr(self, what) <= 1:
                raise PlayError(
                    f"the threshold {what!r} is {getattr(self, what)}; probabilities run from 0 to 1: use one of them"
                )

    @property
    def idle(self) -> bool:
        """Whether the rule leaves all probabilities unchanged."""
        return self.fold == 1 and self.among == self.inside == 0

    @property
    def name(self) -> str:
        """The name of this post-processing rule, which `rule_named` accepts.

        It is ``own`` if the classes of actions are user-defined.

        >>> Rule(among=PURIFY).name, Rule(0.2, PURIFY, PURIFY, action_class, after_first=True).name
        ('purification', 'new-0.2-after-first')
        """
        if self.classes not in (own_class, action_class):
            return "own"
        if self.idle:
            return "none"
        fold, among, inside = (np.format_float_positional(x, trim="-") for x in (self.fold, self.among, self.inside))
        if self.classes is action_class:
            plain = f"new-{fold}" if self.among == self.inside == PURIFY else f"bets-{fold}-{among}-{inside}"
        elif self.fold < 1:
            plain = f"each-{fold}-{among}"
        else:
            plain = "purification" if self.among == PURIFY else f"threshold-{among}"
        return plain + AFTER_FIRST * self.after_first

    @property
    def numbers(self) -> RuleNumbers | None:
        """The post-processing rule as plain numbers for compiled code.

        None if its classes of actions are user-defined.
        """
        if self.classes not in (own_class, action_class):
            return None
        return RuleNumbers(float(self.fold), float(self.among), float(self.inside), self.classes is action_class)


FAMILIES: dict[str, Callable[..., Rule]] = {  # each takes as many numbers as its names end with
    "threshold": lambda t: Rule(among=t),
    "new": lambda t: Rule(fold=t, among=PURIFY, inside=PURIFY, classes=action_class),
    "each": lambda fold, among: Rule(fold, among),
    "bets": lambda fold, among, inside: Rule(fold, among, inside, action_class),
}
RULES: dict[str, Rule] = {  # the rows of [Brown15 table 2]
    "none": Rule(),
    "purification": Rule(among=PURIFY),
    "threshold-0.15": FAMILIES["threshold"](0.15),
    "new-0.2": FAMILIES["new"](0.2),
}


def rule_named(name: str) -> Rule:
    """Return a post-processing rule by name, such as ``purification`` or ``threshold-0.15``.

    A name is one of `RULES`, or that of a family with other numbers. ``bets-F-A-I`` treats all bets as one class: it
    folds with certainty if the probability of folding is above F, applies the threshold A to fold, call and bet, and
    the threshold I to the bets. ``each-F-A`` treats every action as a class. So ``new-T`` is ``bets-T-1-1``, and
    ``threshold-T`` is ``each-1-T``. With the suffix ``-after-first``, a player's first action of a hand stays
    unchanged.

    Raises PlayError if the name is unknown.

    >>> rule_named("threshold-0.3").among, rule_named("bets-0.2-1-1") == rule_named("new-0.2")
    (0.3, True)
    >>> rule_named("purification-after-first") == Rule(among=PURIFY, after_first=True)
    True
    """
    plain = name.removesuffix(AFTER_FIRST)
    found = RULES.get(plain)
    if found is None:
        family, *numbers = plain.split("-")
        known = family in FAMILIES and len(signature(FAMILIES[family]).parameters) == len(numbers)
        if not known or not all(re.fullmatch(r"\d+\.?\d*|\.\d+", number) for number in numbers):
            raise PlayError(
                f"unknown post-processing {name!r}: use none, purification, threshold-T or new-T with T from 0 to 1, "
                f"such as {', '.join(list(RULES)[2:])}, or bets-F-A-I or each-F-A; "
                f"the suffix {AFTER_FIRST} leaves a player's first action unchanged"
            )
        for number in numbers:
            if not 0 <= float(number) <= 1:
                raise PlayError(
                    f"the threshold of {name!r} is {number}; probabilities run from 0 to 1: use one of them"
                )
        found = FAMILIES[family](*map(float, numbers))
    return replace(found, after_first=plain != name)


def apply(rule: Rule, labels: Sequence[str], probabilities: Iterable[float], *, first: bool = False) -> list[float]:
    """Apply a post-processing rule to the action probabilities of one decision [Brown15 §4].

    Equally likely actions stay equally likely, in purification too: ties are broken when an action is drawn.

    Parameters
    ----------
    rule : Rule
        One of `RULES`, or a result of `rule_named`.
    labels : sequence of str
        The actions of the decision, in ACPC notation.
    probabilities : iterable of float
        One per action, adding up to 1.
    first : bool
        Whether it is the player's first action of the hand, which some rules leave unchanged.

    Returns
    -------
    list of float
        One per action, adding up to 1.

    Raises
    ------
    PlayError
        The number of probabilities is wrong, or their sum is not positive.

    >>> apply(rule_named("threshold-0.15"), ("f", "c", "r"), (0.1, 0.45, 0.45))
    [0.0, 0.5, 0.5]
    >>> apply(rule_named("new-0.2"), ("f", "c", "r"), (0.25, 0.75, 0))  # folding exceeds its threshold
    [1.0, 0.0, 0.0]
    >>> apply(rule_named("purification-after-first"), ("c", "r"), (0.25, 0.75), first=True)
    [0.25, 0.75]
    """
    row = list(map(float, probabilities))
    if len(row) != len(labels):
        raise PlayError(f"there are {len(labels)} actions ({', '.join(labels)}) and {len(row)} probabilities")
    if rule.idle or (first and rule.after_first):
        return row
    if rule.fold < 1 and FOLD in labels and row[labels.index(FOLD)] > rule.fold:
        return [1.0 if label == FOLD else 0.0 for label in labels]
    if rule.classes is own_class:  # a class of one action needs no threshold inside
        return _keep(row, rule.among)
    members = _members(rule.classes, tuple(labels))
    shares = _keep([_total([row[place] for place in places]) for places in members], rule.among)
    after = [0.0] * len(row)
    for places, share in zip(members, shares, strict=True):
        if share:
            inside = [row[place] for place in places]
            for place, p in zip(places, _keep(inside, rule.inside * _total(inside)), strict=True):
                after[place] = share * p
    return after


def apply_rows(rule: Rule, labels: Sequence[str], rows: FloatArray, *, first: bool = False) -> FloatArray:
    """Apply a post-processing rule to a table with the action probabilities of several decisions.

    The result has the same digits as that of `apply`.

    The shape is (rows, actions). Rows of zeros become nan.

    >>> apply_rows(rule_named("new-0.2"), ("f", "c", "r"), np.array([[0.1, 0.45, 0.45], [0.25, 0.75, 0]])).tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]
    """
    if rule.idle or (first and rule.after_first):
        return rows
    members = _members(rule.classes, tuple(labels))
    with np.errstate(invalid="ignore"):
        totals = [_total_of_rows(rows[:, places]) for places in members]
        shares, after = _keep_rows(np.hstack(totals), rule.among), np.zeros_like(rows)
        for number, (places, total) in enumerate(zip(members, totals, strict=True)):
            inside = _keep_rows(rows[:, places], rule.inside * total) if len(places) > 1 else 1.0
            share = shares[:, number : number + 1]
            after[:, places] = np.where(share == 0, 0.0, share * inside)
    if rule.fold < 1 and FOLD in labels:
        fold = labels.index(FOLD)
        after[rows[:, fold] > rule.fold] = np.arange(len(labels)) == fold
    return after


def _total_of_rows(rows: FloatArray) -> FloatArray:
    """Return the sum of each row as a column, added from left to right as in `_total`."""
    total: FloatArray = reduce(add, rows.T, np.zeros(len(rows)))[:, None]
    return total


def _keep_rows(rows: FloatArray, threshold: float | FloatArray) -> FloatArray:
    """Apply `_keep` to each row of a table of action probabilities."""
    kept = np.where(rows >= np.minimum(threshold, rows.max(axis=1, keepdims=True)), rows, 0.0)
    scaled: FloatArray = kept / _total_of_rows(kept)
    return scaled


@lru_cache(maxsize=1024)
def _members(classes: Callable[[str], str], labels: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the actions in each class."""
    members: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        members.setdefault(classes(label), []).append(place)
    return tuple(map(tuple, members.values()))


def _total(row: Iterable[float]) -> float:
    """Return the sum of a row, added from left to right as kernels add it.

    From Python 3.12 on, `sum` adds in another way.
    """
    return reduce(add, row, 0.0)


def _keep(row: list[float], threshold: float) -> list[float]:
    """Set probabilities below a threshold to 0, and scale the others to add up to 1.

    The most likely actions stay, even if they are below the threshold.
    """
    least = min(threshold, max(row))
    kept = [p if p >= least else 0.0 for p in row]
    total = _total(kept)
    if not total > 0:
        raise PlayError(f"the probabilities of actions are {', '.join(map(str, row))}; they have to add up to 1")
    return [p / total for p in kept]
