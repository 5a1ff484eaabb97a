"""What an abstraction is to be: names as in the paper, and the same in full as TOML.

``IR-KE-KO 169-9000-9000-9000`` is imperfect recall, k-means on the earth mover's distance in all rounds but the last,
k-means on OCHS in the last, and so many buckets in each round [Johanson16 §5.5]. With perfect recall, ``PR``, the
numbers are buckets inside each bucket of the round before. A round with as many buckets as there are hands is lossless;
``lossless`` is short for a plan in which all rounds are, with the cards as dealt.

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
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from math import prod
from pathlib import Path
from typing import Any, ClassVar

from kilt.abstraction.features import BINS, OPPONENTS
from kilt.abstraction.partition import WAYS
from kilt.config import read_toml
from kilt.errors import AbstractionError

CANONICAL = "canonical"
LOSSLESS = "lossless"  # the name of a plan that tells all hands apart, up to suits
FEATURES = ("ehs2", "ehs", "histogram", "ochs", "history", "potential", CANONICAL)
TECHNIQUES = {"KE": "histogram", "KO": "ochs", "KH": "history", "PA": "potential"}
RECALL = {"PR": True, "IR": False}
METHODS = {"tartanian7": "sum", "waugh": "means", "schmid": "medoids"}  # of comparing boards, and then of clustering
GROUNDS = ("history", "histogram")
SHAPE = 2.5  # of 5 × 2 and of 150 × 60, the nested percentiles of [Johanson16]


@dataclass(frozen=True)
class BucketStep:
    """Buckets by one feature, inside each of the buckets before."""

    SPELLED: ClassVar[str] = "Step"

    feature: str
    buckets: int = 0  # CANONICAL has what there is

    def __post_init__(self) -> None:
        if self.feature not in FEATURES:
            raise AbstractionError(f"unknown feature {self.feature!r}: use one of {', '.join(FEATURES)}")
        if self.buckets < 1 and self.feature != CANONICAL:
            raise AbstractionError(f"{self.feature} is to have {self.buckets} buckets: ask for 1 or more")


@dataclass(frozen=True)
class RoundPlan:
    """The buckets of a round: with recall, inside those of the round before."""

    recall: bool
    steps: tuple[BucketStep, ...]

    @property
    def buckets(self) -> int:
        """How many there are inside each bucket of the round before, or in all; 0 where the round is lossless."""
        return prod(step.buckets for step in self.steps)


@dataclass(frozen=True)
class PublicPlan:
    """Classes of the boards of a round; later rounds have buckets of their own in each class [Brown15 §2.1]."""

    round: int  # 1 is the first
    classes: int  # inside each class of the round before that has some
    method: str = "tartanian7"
    clustering: str = ""  # left out: as in the paper of the method
    base: str = ""  # the abstraction that tells boards apart: a name or a folder; left out: as in the paper
    ground: str = "history"  # what tells hands apart for the earth mover's distance: this, or histogram
    exact: bool = False  # whether that moves all hands one by one
    boards: str = ""  # a folder with classes that `kilt abstraction boards` made: they are taken as they are
    until: int = 0  # the last round that knows the classes, as in [Schmid15] the round itself; 0: all that follow do
    codes: int = 2000  # of hands in later rounds, which then are sorted class by class; 0 takes each hand by itself
    restarts: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise AbstractionError(
                f"unknown method {self.method!r} of comparing boards: use one of {', '.join(METHODS)}"
            )
        if self.clustering and self.clustering not in WAYS:
            raise AbstractionError(f"unknown clustering {self.clustering!r}: use one of {', '.join(WAYS)}")
        if self.ground not in GROUNDS:
            raise AbstractionError(f"unknown distance of hands {self.ground!r}: use one of {', '.join(GROUNDS)}")
        if self.classes < 1:
            raise AbstractionError(f"{self.classes} classes of boards are asked for: ask for 1 or more")
        if self.until and self.until < self.round:
            raise AbstractionError(f"`until` is round {self.until}, before round {self.round}: give a later one")
        for name, least in (("codes", 0), ("restarts", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise AbstractionError(f"`{name}` is {getattr(self, name)} for classes of boards: give {least} or more")
        if self.exact and self.method != "schmid":
            raise AbstractionError(f"`exact` moves hands one by one, as schmid does: leave it out with {self.method}")


@dataclass(frozen=True)
class Plan:
    """An abstraction of all rounds, and how k-means is to go about it."""

    rounds: tuple[RoundPlan, ...]
    public: tuple[PublicPlan, ...] = ()  # in the order of their rounds
    bins: int = BINS  # of histograms
    opponents: int = OPPONENTS  # clusters of OCHS
    sample: int = 1_000_000  # points that centroids are fitted to, at most; all points are assigned in any case
    batch: int = 0  # points that an iteration looks at; 0 for all of the sample
    iterations: int = 40
    restarts: int = 1
    seed: int = 0

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

    def toml(self) -> str:
        """The whole plan as text."""
        numbers = (field.name for field in fields(self) if field.name not in ("rounds", "public"))
        lines = [f"{name} = {getattr(self, name)}" for name in numbers]
        for public in self.public:
            lines += ["", "[[public]]", *(f"{name} = {json.dumps(value)}" for name, value in asdict(public).items())]
        for r in self.rounds:
            steps = ", ".join(f'{{ feature = "{step.feature}", buckets = {step.buckets} }}' for step in r.steps)
            lines += ["", "[[rounds]]", f"recall = {str(r.recall).lower()}", f"steps = [{steps}]"]
        return "\n".join(lines) + "\n"


def load_plan(name: str | Path, board_cards: Sequence[int]) -> Plan:
    """A plan by its name in the manner of the paper, or from a TOML file."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return read_plan(path)
    return plan_named(str(name), board_cards)


def read_plan(path: Path) -> Plan:
    """A plan from a TOML file."""
    said = read_toml(path, AbstractionError)
    try:
        return plan_of(said)
    except AbstractionError as error:
        raise AbstractionError(f"{path}: {error}") from None


def plan_of(said: Mapping[str, Any]) -> Plan:
    """A plan from plain data."""
    known = {field.name for field in fields(Plan)}
    rounds = []
    for number, r in enumerate(_checked({"rounds": [], **said} if "public" in said else said, "rounds", list)):
        _no_others(r, {"recall", "steps"}, f"round {number + 1}")
        steps = []
        for step in _checked(r, "steps", list):
            _no_others(step, {"feature", "buckets"}, f"a step of round {number + 1}")
            steps.append(BucketStep(_checked(step, "feature", str), _checked({"buckets": 0} | step, "buckets", int)))
        if not steps:
            raise AbstractionError(f"round {number + 1} has no steps: give one at least")
        rounds.append(RoundPlan(_checked(r, "recall", bool), tuple(steps)))
    _no_others(said, known, "the plan")
    numbers = {name: _checked(said, name, int) for name in known - {"rounds", "public"} if name in said}
    for name, value in numbers.items():
        if value < (least := 0 if name in ("seed", "batch") else 1):
            raise AbstractionError(f"{name} is {value}: give {least} or more")
    return Plan(tuple(rounds), _public(said), **numbers)


def _public(said: Mapping[str, Any]) -> tuple[PublicPlan, ...]:
    """The classes of boards: one section, or several for several rounds."""
    sections = said.get("public", [])
    found = []
    kinds = {field.name: type(field.default) if field.default is not MISSING else int for field in fields(PublicPlan)}
    for section in sections if isinstance(sections, list) else [sections]:
        _no_others(section, set(kinds), "public")
        asked = {name: _checked(section, name, kinds[name]) for name in {"round", "classes", *section}}
        found.append(PublicPlan(**asked))
    return tuple(sorted(found, key=lambda public: public.round))


def plan_data(plan: Plan) -> dict[str, Any]:
    """The same as plain data."""
    return asdict(plan)


def plan_named(name: str, board_cards: Sequence[int]) -> Plan:
    """A plan by its name, for a game whose rounds add so many cards to the board."""
    if name.strip() == LOSSLESS:
        return Plan(tuple(RoundPlan(True, (BucketStep(CANONICAL),)) for _ in board_cards))
    parts = re.fullmatch(r"(IR|PR)-([A-Z]+)-([A-Z]+)[ _]+(\d+(?:x\d+)*(?:-\d+(?:x\d+)*)*)", name.strip())
    known = ("PHS", *TECHNIQUES)
    if not parts or parts[2] not in known or parts[3] not in known:
        raise AbstractionError(
            f"{name!r} is no abstraction: write something like 'IR-KE-KO 169-500-500-500' (IR or PR, then "
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
    return Plan(tuple(rounds))


def _steps(technique: str, nested: tuple[int, ...], *, last: bool) -> tuple[BucketStep, ...]:
    """The steps of a technique: numbers of buckets are nested where the name says so or PHS wants it."""
    if technique != "PHS":
        return tuple(BucketStep(TECHNIQUES[technique], number) for number in nested)
    if last:  # HS² ranks hands as HS does
        return tuple(BucketStep("ehs", number) for number in (prod(nested),))
    if len(nested) == 1:
        nested = _oblong(nested[0])
    return tuple(BucketStep(("ehs2", "ehs")[place % 2], number) for place, number in enumerate(nested))


def percentile_steps(buckets: int) -> tuple[BucketStep, ...]:
    """Nested percentiles before the last round: so many buckets."""
    return _steps("PHS", (buckets,), last=False)


def _oblong(buckets: int) -> tuple[int, ...]:
    """Two factors in proportion 5 : 2, as nearly as can be.

    >>> _oblong(10), _oblong(9000), _oblong(7)
    ((5, 2), (150, 60), (7,))
    """
    pairs = [(buckets // small, small) for small in range(1, buckets + 1) if buckets % small == 0]
    large, small = min(pairs, key=lambda pair: abs(pair[0] / pair[1] / SHAPE - 1) + (pair[0] < pair[1]))
    return (large, small) if 1 < small <= large else (buckets,)


def _checked(said: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(said, Mapping) or not isinstance(said.get(name), kind):
        raise AbstractionError(f"{name} is missing, or is no {kind.__name__}: see `kilt abstraction plan NAME`")
    return said[name]


def _no_others(said: Mapping[str, Any], known: set[str], where: str) -> None:
    others = set(said) - known if isinstance(said, Mapping) else {str(said)}
    if others:
        raise AbstractionError(f"{where} says {', '.join(sorted(others))}, which means nothing: use {sorted(known)}")
