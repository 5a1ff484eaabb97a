"""Plan a card abstraction: the number of buckets in each round, and how hands are sorted into them.

``IR-KE-KO 169-9000-9000-9000`` means imperfect recall, k-means on the earth mover's distance in all rounds but the
last, k-means on OCHS in the last, and these numbers of buckets in the rounds [Johanson16 §5.5]. With perfect recall,
``PR``, numbers are per bucket of the previous round. A round with as many buckets as there are hands is lossless;
``lossless`` is short for a plan in which all rounds are, with the cards as dealt. ``IR-KE-KO 169-500-500-500 in 60
classes`` sorts the first public boards into 60 classes, as [Brown15] does, and numbers are per class.

======  ===================================================================================================
name    steps
======  ===================================================================================================
PHS     ``ehs2`` and, inside its buckets, ``ehs``: percentiles; 10 is 5 × 2. In the last round ``ehs`` alone
KE      ``histogram``: k-means on the earth mover's distance between histograms of hand strength
KO      ``ochs``: k-means on opponent cluster hand strength
KH      ``history``: k-means on the mean earth mover's distance of this and all earlier rounds [Schmid15]
PA      ``potential``: k-means on the earth mover's distance between histograms of next-round buckets
======  ===================================================================================================

>>> plan = plan_named("PR-PHS-KO 10-10-10-10", (0, 3, 1, 1))
>>> [[(step.feature, step.buckets) for step in r.steps] for r in plan.rounds][2:]
[[('ehs2', 5), ('ehs', 2)], [('ochs', 10)]]
>>> plan_named("IR-PA-KO 169-500-500-500 in 60 classes", (0, 3, 1, 1)).classes_at(3)
60
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isqrt, prod
from pathlib import Path
from typing import Any, ClassVar

from kilt.abstraction.features import BINS, CANONICAL, FEATURES, OPPONENTS, FeatureSettings
from kilt.abstraction.partition import WAYS
from kilt.errors import AbstractionError, KiltError, quoted
from kilt.records import Record, bounded, chosen, read_toml, record_of

LOSSLESS = "lossless"  # name of the plan that distinguishes all hands, up to suits
NESTED = "PHS"  # the only technique with two features:
STRENGTHS = ("ehs2", "ehs")  # percentiles of the second inside those of the first
RECALL = {"PR": True, "IR": False}
# methods to compare boards, each with the clustering that its paper uses
METHODS = {"tartanian7": "sum", "waugh": "means", "schmid": "medoids"}
GROUNDS = ("history", "histogram")
CODES = 2000  # default number of codes of hands, for plans with codes
MOST_BUCKETS = 2**31 - 1  # limit for one step: hold'em has 2.4 billion river hands up to suits
SHAPE = 2.5  # ratio of the factors in 5 × 2 and in 150 × 60, the nested percentiles of [Johanson16]


class PlanRecord(Record):
    """Base class of plans that are read from TOML files."""

    ERROR_CLASS: ClassVar[type[KiltError]] = AbstractionError
    EXAMPLE: ClassVar[str] = "`plan_named(NAME).toml()`"


@dataclass(frozen=True)
class BucketStep(PlanRecord):
    """One step of sorting hands into buckets, which divides the previous step's buckets by one feature.

    Parameters
    ----------
    feature : str
        A name in `kilt.abstraction.features.FEATURES`.
    buckets : int
        Number of buckets inside each bucket of the previous step; ``"canonical"`` has as many as there are hands.
    """

    DISPLAY_NAME: ClassVar[str] = "a step"
    REPR_NAME: ClassVar[str] = "Step"

    feature: str
    buckets: int = bounded(0, -inf)  # the feature determines the minimum

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feature not in FEATURES:
            raise AbstractionError(f"unknown feature {self.feature!r}: use one of {', '.join(FEATURES)}")
        if self.buckets < 1 and self.feature != CANONICAL:
            raise AbstractionError(f"{self.feature} cannot have {self.buckets} buckets: use 1 or more")
        _require_few(self.buckets)


@dataclass(frozen=True)
class RoundPlan(PlanRecord):
    """The plan of one round: the steps that sort its hands into buckets.

    Parameters
    ----------
    recall : bool
        Whether hands are sorted inside the buckets of the previous round (perfect recall), or all together.
    steps : tuple of BucketStep
        Each sorts hands inside the buckets of the step before.
    """

    DISPLAY_NAME: ClassVar[str] = "a round"

    recall: bool
    steps: tuple[BucketStep, ...] = field(metadata={"least": 1})

    @property
    def buckets(self) -> int:
        """The number of buckets in the round.

        With perfect recall, it is the number inside each bucket of the previous round.

        It is 0 if the round is lossless.
        """
        return prod(step.buckets for step in self.steps)


@dataclass(frozen=True)
class PublicPlan(PlanRecord):
    """The plan for grouping a round's boards into classes, so that each class can have its own buckets [Brown15 §2.1].

    Parameters
    ----------
    round : int
        The round of the boards; 1 is the first round.
    classes : int
        Number of classes, inside each class of the previous round that has classes.
    method : str
        How boards are compared: ``"tartanian7"``, ``"waugh"`` or ``"schmid"`` (see `kilt.abstraction.public`).
    clustering : str
        How distances become classes (see `kilt.abstraction.partition`); empty: as in the paper of the method.
    base : str
        The abstraction by whose buckets boards are compared, a name or a folder; empty: as in the paper.
    ground : str
        For schmid, the distance of hands: ``"history"`` or ``"histogram"``.
    exact : bool
        For schmid, whether hands are moved one by one; if not, hands of one bucket of the base are moved together.
    boards : str
        A folder with classes that `kilt abstraction boards` made; empty: compute the classes.
    until : int
        The last round that knows the classes, as in [Schmid15] the round itself; 0: all later rounds do.
    codes : int
        Number of codes of hands in later rounds, which all classes share, and which each class sorts into its buckets.
        This takes less disk and time than 0, with which each class sorts its hands one by one.
    restarts, seed : int
        Restarts and random seed of the clustering.
    """

    DISPLAY_NAME: ClassVar[str] = "[[public]]"

    round: int
    classes: int = field(metadata={"least": 1})
    method: str = chosen("tartanian7", METHODS)
    clustering: str = chosen("", WAYS)
    base: str = ""
    ground: str = chosen("history", GROUNDS)
    exact: bool = False
    boards: str = ""
    until: int = 0
    codes: int = 0
    restarts: int = bounded(1, 1)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.until and self.until < self.round:
            raise AbstractionError(f"`until` is round {self.until}, before round {self.round}: give a later one")
        if self.exact and self.method != "schmid":
            raise AbstractionError(f"`exact` applies to the method schmid: remove it with {self.method}")


@dataclass(frozen=True)
class Plan(PlanRecord):
    """The plan of a card abstraction: the number of buckets in each round, and how hands are sorted into them.

    Parameters
    ----------
    rounds : tuple of RoundPlan
        One for each round of the game; empty if only boards are sorted.
    public : tuple of PublicPlan
        Classes of boards, in the order of their rounds.
    bins : int
        Bins of histograms of hand strength.
    opponents : int
        Clusters of the opponent's hands, for OCHS.
    sample : int
        Maximum number of points that centroids are fitted to; all points are assigned in any case.
    batch : int
        Number of points that each iteration of k-means uses; 0 for the whole sample.
    iterations, restarts, seed : int
        Settings of k-means.
    """

    DISPLAY_NAME: ClassVar[str] = "the plan"

    rounds: tuple[RoundPlan, ...]
    public: tuple[PublicPlan, ...] = ()
    bins: int = bounded(BINS, 1)
    opponents: int = bounded(OPPONENTS, 1)
    sample: int = bounded(1_000_000, 1)
    batch: int = 0
    iterations: int = bounded(40, 1)
    restarts: int = bounded(1, 1)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "public", tuple(sorted(self.public, key=lambda public: public.round)))

    @property
    def settings(self) -> FeatureSettings:
        """The settings for features of hands, such as the number of histogram bins."""
        return FeatureSettings(self.bins, self.opponents)

    def public_at(self, r: int) -> PublicPlan | None:
        """Return the board classes that the plan uses in a given round, or None.

        These are the classes of the latest round with classes, up to this round.
        """
        known = (public for public in reversed(self.public) if public.round <= r + 1 <= (public.until or r + 1))
        return next(known, None)

    def classes_at(self, r: int) -> int:
        """Return the number of board classes in a given round, which is 1 without classes."""
        public = self.public_at(r)
        return prod(one.classes for one in self.public if public and one.round <= public.round)

    def uses_codes(self, r: int) -> bool:
        """Return whether a round clusters hands in two steps: first into small groups, then into buckets.

        The number of such a group is called a code.

        Each class of boards then maps codes to buckets.
        """
        public = self.public_at(r)
        return public is not None and public.codes > 0 and public.round - 1 < r


def load_plan(name: str | Path, board_cards: Sequence[int]) -> Plan:
    """Load a plan by name, such as ``"IR-KE-KO 169-50-50-50"``, or from a TOML file."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return read_plan(path)
    return plan_named(str(name), board_cards)


def read_plan(path: Path) -> Plan:
    """Read a plan from a TOML file.

    `kilt abstraction plan NAME` prints such a file.
    """
    said = read_toml(path, AbstractionError)
    try:
        return parse_plan(said)
    except AbstractionError as error:
        raise AbstractionError(f"{path}: {error}") from None


def parse_plan(data: Mapping[str, Any]) -> Plan:
    """Create a plan from the content of a TOML or JSON file."""
    if isinstance(data, Mapping) and "public" in data:
        data = {"rounds": [], **data}  # a plan may have classes of boards only
    return record_of(Plan, data)


def plan_named(name: str, board_cards: Sequence[int]) -> Plan:
    """Create a plan from its name, such as ``"PR-PHS-KO 10-10-10-10"`` [Johanson16 §5.5].

    Parameters
    ----------
    name : str
        Such as ``"IR-KE-KO 169-500-500-500"``: IR or PR, the technique of all rounds but the last, that of the last
        round, and the number of buckets of each round; ``5x2`` nests two steps. `` in 60 classes`` gives each of 60
        classes of the first public boards these buckets. Or ``"lossless"``.
    board_cards : sequence of int
        Number of cards that each round of the game adds to the board.

    Returns
    -------
    Plan

    Raises
    ------
    AbstractionError
        The name cannot be read, or it has another number of rounds.
    """
    if name.strip() == LOSSLESS:
        return Plan(tuple(RoundPlan(True, (BucketStep(CANONICAL),)) for _ in board_cards))
    number = r"\d{1,18}(?:x\d{1,18})*"
    classes = r"(?:[ _]+in[ _]+(\d{1,9})[ _]+classes)?"
    parts = re.fullmatch(rf"(IR|PR)-([A-Z]+)-([A-Z]+)[ _]+({number}(?:-{number})*){classes}", name.strip())
    known = (NESTED, *_techniques())
    if not parts or parts[2] not in known or parts[3] not in known:
        raise AbstractionError(
            f"{quoted(name)} is no abstraction: write something like 'IR-KE-KO 169-500-500-500' (IR or PR, then "
            f"{', '.join(known)} for the rounds before the last and for the last), {LOSSLESS!r}, or name a .toml file"
        )
    sizes = parts[4].split("-")
    if len(sizes) != len(board_cards):
        raise AbstractionError(
            f"{name!r} has {len(sizes)} rounds; the game has {len(board_cards)}: give as many numbers"
        )
    rounds = []
    for r, size in enumerate(sizes):
        last = r == len(sizes) - 1
        nested = tuple(int(number) for number in size.split("x"))
        rounds.append(RoundPlan(RECALL[parts[1]], _steps(parts[3 if last else 2], nested, last=last)))
    public = next((r for r, added in enumerate(board_cards, 1) if added), 1)  # `check` reports a game without boards
    return Plan(tuple(rounds), (PublicPlan(public, int(parts[5])),) if parts[5] else ())


def _techniques() -> dict[str, str]:
    """Return the feature that each name of a technique in the papers stands for, such as ``KE``."""
    return {feature.technique: name for name, feature in FEATURES.items() if feature.technique}


def _steps(technique: str, nested: tuple[int, ...], *, last: bool) -> tuple[BucketStep, ...]:
    """Return the steps of a technique; numbers of buckets are nested if the name says so, or for PHS."""
    if technique != NESTED:
        return tuple(BucketStep(_techniques()[technique], number) for number in nested)
    if last:  # HS² orders hands as HS does
        return tuple(BucketStep("ehs", number) for number in (prod(nested),))
    if len(nested) == 1:
        _require_few(nested[0])
        nested = _oblong(nested[0])
    return tuple(BucketStep(STRENGTHS[place % 2], number) for place, number in enumerate(nested))


def _require_few(buckets: int) -> None:
    if buckets > MOST_BUCKETS:
        raise AbstractionError(f"{buckets:,} buckets are more than there are hands: use {MOST_BUCKETS:,} at most")


def percentile_steps(buckets: int) -> tuple[BucketStep, ...]:
    """Return two steps that sort hands into `buckets` groups of equal size: by E[HS²], then by E[HS]."""
    return _steps(NESTED, (buckets,), last=False)


def _oblong(buckets: int) -> tuple[int, ...]:
    """Split a number into two factors whose ratio is as near as possible to 5 : 2.

    >>> _oblong(10), _oblong(9000), _oblong(7)
    ((5, 2), (150, 60), (7,))
    """
    below = [small for small in range(1, isqrt(buckets) + 1) if buckets % small == 0]
    pairs = [(buckets // small, small) for small in (*below, *(buckets // small for small in reversed(below)))]
    large, small = min(pairs, key=lambda pair: abs(pair[0] / pair[1] / SHAPE - 1) + (pair[0] < pair[1]))
    return (large, small) if 1 < small <= large else (buckets,)
