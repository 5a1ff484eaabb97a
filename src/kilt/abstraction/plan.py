"""Plans of card abstractions: by names as in the papers, or in full as TOML.

``IR-KE-KO 169-9000-9000-9000`` is imperfect recall, k-means on the earth mover's distance in all rounds but the last,
k-means on OCHS in the last, and the number of buckets of each round [Johanson16 §5.5]. With perfect recall, ``PR``, it
is that inside each bucket of the round before. A round with as many buckets as there are hands is lossless;
``lossless`` is short for a plan in which all rounds are, with the cards as dealt. ``IR-KE-KO 169-500-500-500 in 60
classes`` sorts the first public boards into 60 classes, as [Brown15] does, and numbers are those of each class.

======  ==================================================================================================
name    steps
======  ==================================================================================================
PHS     ``ehs2`` and, inside its buckets, ``ehs``: percentiles; 10 is 5 × 2. In the last round ``ehs`` alone
KE      ``histogram``: k-means on the earth mover's distance between histograms of hand strength
KO      ``ochs``: k-means on opponent cluster hand strength
KH      ``history``: k-means on the mean earth mover's distance of this round and all before [Schmid15]
PA      ``potential``: k-means on the earth mover's distance between histograms of next-round buckets
======  ==================================================================================================

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

LOSSLESS = "lossless"  # the name of a plan that tells all hands apart, up to suits
NESTED = "PHS"  # the one technique of two features:
STRENGTHS = ("ehs2", "ehs")  # percentiles of the second inside those of the first
RECALL = {"PR": True, "IR": False}
METHODS = {"tartanian7": "sum", "waugh": "means", "schmid": "medoids"}  # of comparing boards, and then of clustering
GROUNDS = ("history", "histogram")
CODES = 2000  # of hands, for those who do without exact buckets in classes of boards
MOST_BUCKETS = 2**31 - 1  # of a step: there are 2.4 billion hands on rivers of hold'em up to suits
SHAPE = 2.5  # of 5 × 2 and of 150 × 60, the nested percentiles of [Johanson16]


class PlanRecord(Record):
    """Base of what plans are made of."""

    COMPLAINT: ClassVar[type[KiltError]] = AbstractionError
    EXAMPLE: ClassVar[str] = "`kilt abstraction plan NAME`"


@dataclass(frozen=True)
class BucketStep(PlanRecord):
    """Buckets by one feature, inside each of the buckets before.

    Parameters
    ----------
    feature : str
        A name in `kilt.abstraction.features.FEATURES`.
    buckets : int
        How many, inside each bucket of the step before; ``"canonical"`` has as many as there are hands.
    """

    PLACE: ClassVar[str] = "a step"
    SPELLED: ClassVar[str] = "Step"

    feature: str
    buckets: int = bounded(0, -inf)  # what is too few depends on the feature

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feature not in FEATURES:
            raise AbstractionError(f"unknown feature {self.feature!r}: use one of {', '.join(FEATURES)}")
        if self.buckets < 1 and self.feature != CANONICAL:
            raise AbstractionError(f"{self.feature} is to have {self.buckets} buckets: ask for 1 or more")
        _require_few(self.buckets)


@dataclass(frozen=True)
class RoundPlan(PlanRecord):
    """The buckets of a round.

    Parameters
    ----------
    recall : bool
        Whether they are inside the buckets of the round before (perfect recall), or of all hands.
    steps : tuple of BucketStep
        One inside the other.
    """

    PLACE: ClassVar[str] = "a round"

    recall: bool
    steps: tuple[BucketStep, ...] = field(metadata={"least": 1})

    @property
    def buckets(self) -> int:
        """Number of buckets inside each bucket of the round before, or in all; 0 where the round is lossless."""
        return prod(step.buckets for step in self.steps)


@dataclass(frozen=True)
class PublicPlan(PlanRecord):
    """Classes of the boards of a round; later rounds have buckets of their own in each class [Brown15 §2.1].

    Parameters
    ----------
    round : int
        Whose boards; 1 is the first round.
    classes : int
        How many, inside each class of the round before that has some.
    method : str
        How boards are compared: ``"tartanian7"``, ``"waugh"`` or ``"schmid"`` (see `kilt.abstraction.public`).
    clustering : str
        How distances become classes (see `kilt.abstraction.partition`); empty: as in the paper of the method.
    base : str
        The abstraction whose buckets tell boards apart, a name or a folder; empty: as in the paper.
    ground : str
        For schmid, what tells hands apart: ``"history"`` or ``"histogram"``.
    exact : bool
        For schmid, whether hands are moved one by one, or gathered by the buckets of the base first.
    boards : str
        A folder with classes that `kilt abstraction boards` made, which are taken as they are; empty: make them.
    until : int
        The last round that knows the classes, as in [Schmid15] the round itself; 0: all that follow do.
    codes : int
        Number of codes of hands in later rounds, which all classes share and each class sorts into its buckets; less
        disk and time than 0, by which each class sorts its hands one by one.
    restarts, seed : int
        Of the clustering.
    """

    PLACE: ClassVar[str] = "[[public]]"

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
            raise AbstractionError(f"`exact` moves hands one by one, as schmid does: leave it out with {self.method}")


@dataclass(frozen=True)
class Plan(PlanRecord):
    """A card abstraction that is asked for: the buckets of all rounds, and how k-means goes about it.

    Parameters
    ----------
    rounds : tuple of RoundPlan
        One for each round of the game; none at all where only boards are sorted.
    public : tuple of PublicPlan
        Classes of boards, kept in the order of their rounds.
    bins : int
        Bins of histograms of hand strength.
    opponents : int
        Clusters of the opponent's hands, for OCHS.
    sample : int
        Points that centroids are fitted to, at most; all points are assigned in any case.
    batch : int
        Points that an iteration of k-means looks at; 0 for all of the sample.
    iterations, restarts, seed : int
        Of k-means.
    """

    PLACE: ClassVar[str] = "the plan"

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
        """The numbers that features depend on."""
        return FeatureSettings(self.bins, self.opponents)

    def public_at(self, r: int) -> PublicPlan | None:
        """The classes of boards that a round knows: those of the last round that has some, up to this one."""
        known = (public for public in reversed(self.public) if public.round <= r + 1 <= (public.until or r + 1))
        return next(known, None)

    def classes_at(self, r: int) -> int:
        """How many classes of boards a round knows; 1 where it knows none."""
        public = self.public_at(r)
        return prod(one.classes for one in self.public if public and one.round <= public.round)

    def coded(self, r: int) -> bool:
        """Whether the hands of a round have codes first, which become buckets in each class of boards."""
        public = self.public_at(r)
        return public is not None and public.codes > 0 and public.round - 1 < r


def load_plan(name: str | Path, board_cards: Sequence[int]) -> Plan:
    """A plan by its name (see `plan_named`), or from a TOML file (see `read_plan`)."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return read_plan(path)
    return plan_named(str(name), board_cards)


def read_plan(path: Path) -> Plan:
    """Read a plan from a TOML file; `kilt abstraction plan NAME` prints one."""
    said = read_toml(path, AbstractionError)
    try:
        return plan_of(said)
    except AbstractionError as error:
        raise AbstractionError(f"{path}: {error}") from None


def plan_of(said: Mapping[str, Any]) -> Plan:
    """Make a plan from plain data: what a TOML or JSON file holds."""
    if isinstance(said, Mapping) and "public" in said:
        said = {"rounds": [], **said}  # classes of boards may stand alone
    return record_of(Plan, said)


def plan_named(name: str, board_cards: Sequence[int]) -> Plan:
    """Make a plan from its name, in the manner of [Johanson16 §5.5].

    Parameters
    ----------
    name : str
        Such as ``"IR-KE-KO 169-500-500-500"``: IR or PR, the technique of the rounds before the last, that of the last
        round, and the number of buckets of each round; ``5x2`` nests two steps. `` in 60 classes`` has them in each of
        60 classes of the first public boards. Or ``"lossless"``.
    board_cards : sequence of int
        How many cards each round of the game adds to the board.

    Returns
    -------
    Plan

    Raises
    ------
    AbstractionError
        The name says nothing, or is one for another number of rounds.
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
    public = next((r for r, added in enumerate(board_cards, 1) if added), 1)  # a game without boards is told so later
    return Plan(tuple(rounds), (PublicPlan(public, int(parts[5])),) if parts[5] else ())


def _techniques() -> dict[str, str]:
    """The names that papers have for buckets by one feature, and the features."""
    return {feature.technique: name for name, feature in FEATURES.items() if feature.technique}


def _steps(technique: str, nested: tuple[int, ...], *, last: bool) -> tuple[BucketStep, ...]:
    """The steps of a technique: numbers of buckets are nested where the name says so or PHS wants it."""
    if technique != NESTED:
        return tuple(BucketStep(_techniques()[technique], number) for number in nested)
    if last:  # HS² ranks hands as HS does
        return tuple(BucketStep("ehs", number) for number in (prod(nested),))
    if len(nested) == 1:
        _require_few(nested[0])
        nested = _oblong(nested[0])
    return tuple(BucketStep(STRENGTHS[place % 2], number) for place, number in enumerate(nested))


def _require_few(buckets: int) -> None:
    if buckets > MOST_BUCKETS:
        raise AbstractionError(
            f"{buckets:,} buckets are asked for, more than there are hands: ask for {MOST_BUCKETS:,} at most"
        )


def percentile_steps(buckets: int) -> tuple[BucketStep, ...]:
    """The steps of `buckets` nested percentiles, for a round before the last."""
    return _steps(NESTED, (buckets,), last=False)


def _oblong(buckets: int) -> tuple[int, ...]:
    """Two factors in proportion 5 : 2, as nearly as can be.

    >>> _oblong(10), _oblong(9000), _oblong(7)
    ((5, 2), (150, 60), (7,))
    """
    below = [small for small in range(1, isqrt(buckets) + 1) if buckets % small == 0]
    pairs = [(buckets // small, small) for small in (*below, *(buckets // small for small in reversed(below)))]
    large, small = min(pairs, key=lambda pair: abs(pair[0] / pair[1] / SHAPE - 1) + (pair[0] < pair[1]))
    return (large, small) if 1 < small <= large else (buckets,)
