"""From a plan to an abstraction on disk, round by round: features, steps, table.

A round that is finished stays: a build that was stopped goes on with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import comb
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kilt import artifact
from kilt.abstraction import potential, spots_kernels
from kilt.abstraction.boards import build_classes, check_public, require_dealt
from kilt.abstraction.buckets import (
    DESCRIPTION,
    KIND,
    AbstractionSpec,
    CardAbstraction,
    RoundBuckets,
    layout,
    load_round,
    round_folder,
)
from kilt.abstraction.classes import BoardClasses
from kilt.abstraction.features import Deal, Features, Tick
from kilt.abstraction.hierarchical import code_steps, sort_codes
from kilt.abstraction.plan import CANONICAL, BucketStep, Plan, PublicPlan, load_plan
from kilt.abstraction.potential import apart_of, centres_of, ground_of
from kilt.abstraction.public import base_plan
from kilt.abstraction.steps import (
    LEVELS,
    MANY,
    PERCENTILES,
    After,
    Before,
    Fitted,
    Fitting,
    Means,
    Potentials,
    SpotBatch,
)
from kilt.engines import Engine
from kilt.errors import AbstractionError, ArtifactError

DIMENSIONS: dict[str, Callable[[Plan, int], int]] = {  # of the points that k-means sorts
    "histogram": lambda plan, r: plan.bins,
    "history": lambda plan, r: plan.bins * (r + 1),
    "ochs": lambda plan, r: plan.opponents,
}


def check(identity: AbstractionSpec) -> None:
    """Raise AbstractionError where a plan does not fit the deal."""
    plan, deal = identity.plan, identity.deal
    rounds = len(deal.board_cards)
    if len(plan.rounds) != rounds and (plan.rounds or not plan.public):  # classes of boards may stand alone
        raise AbstractionError(f"the plan has {len(plan.rounds)} rounds; the game has {rounds}")
    for place, public in enumerate(plan.public):
        check_public(identity, place)
        base = None if public.boards or public.exact else _base_identity(public, deal).plan
        if base and base.rounds[public.round - 1].recall and public.round > 1:
            require_dealt(plan, deal, public, "a base that remembers buckets")
    for r, this in enumerate(plan.rounds):
        if plan.coded(r) and (this.recall or looks_ahead(plan, r) or (r > 0 and looks_ahead(plan, r - 1))):
            raise AbstractionError(
                f"round {r + 1} has codes, so it can neither remember buckets nor look ahead, nor be looked at: "
                "use codes = 0 in [public]"
            )
        if r > 0 and this.recall and plan.coded(r - 1):
            raise AbstractionError(
                f"round {r + 1} is to remember buckets of round {r}, which has codes: use codes = 0 in [public], or "
                "recall = false"
            )


class BuildEstimate(NamedTuple):
    """What a build takes, roughly."""

    seconds: float
    memory: int  # bytes
    tables: int  # bytes on disk, of the abstraction
    features: int  # bytes on disk, of feature tables that are not in the cache yet

    def after(self, other: BuildEstimate) -> BuildEstimate:
        """Both builds, one after the other: at most, since they may share features."""
        seconds, tables = self.seconds + other.seconds, self.tables + other.tables
        return BuildEstimate(seconds, max(self.memory, other.memory), tables, self.features + other.features)


def estimate(identity: AbstractionSpec, cache: Path | None = None, threads: int = 1) -> BuildEstimate:
    """Before any work is done, from the numbers of boards and hands and the pace of one core of 2020 or so."""
    check(identity)
    plan, deal = identity.plan, identity.deal
    features = Features(deal, cache)
    missing: dict[str, tuple[int, float]] = {}
    tables, seconds, memory, before, numbers = 0, 0.0, 0, 1, bucket_numbers(plan, deal)

    def sort(plan: Plan, r: int, steps: Sequence[BucketStep], groups: int) -> None:
        nonlocal seconds, memory
        hands = len(deal.spots(layout(plan, deal, r)))
        for step in steps:
            needed = features.needs(step.feature, r, plan.bins, plan.opponents)
            missing.update(needed)
            searched, iterations, drawn, room = 0.0, 0, min(hands, max(plan.sample, MANY * (groups - 1))), 0
            if step.feature in DIMENSIONS:
                dimensions, iterations = DIMENSIONS[step.feature](plan, r), plan.iterations * plan.restarts
                searched, room = step.buckets**0.4 * (40e-9 + 1.3e-9 * dimensions), drawn * dimensions * 12
            elif step.feature == "potential" and r + 1 < len(plan.rounds):
                coming, ways = bucket_numbers(plan, deal)[r + 1], comb(deal.deck.size, deal.board_cards[r + 1])
                searched, iterations = 16e-6 + 15e-9 * max(step.buckets, coming), potential.ITERATIONS
                drawn = min(drawn, potential.sample_of(step.buckets) * groups)
                room = drawn * ways * 8 + 8 * coming**2 + 12 * coming * step.buckets * groups
                seconds += 10e-6 * step.buckets**2 * _looked_at(identity, r)
            elif step.feature in PERCENTILES:
                room = 12 * groups * (deal.top + 1 if r + 1 == len(plan.rounds) else LEVELS)
            looked_through = 0 if step.feature == CANONICAL else 2 if groups > 1 and iterations else 1  # to fit it
            seconds += hands * (80e-9 + 70e-9 * looked_through + searched) + drawn * iterations * searched
            memory = max(memory, room + sum(size for size, _ in needed.values()))
            groups *= step.buckets

    for public in plan.public:
        base = _base_identity(public, deal)
        if not public.boards and not (cache and artifact.exists(_base_folder(base, cache) / f"round-{public.round}")):
            sort(base.plan, public.round - 1, base.plan.rounds[public.round - 1].steps, 1)
    for r, this in enumerate(plan.rounds):
        spots, now, coded = deal.spots(layout(plan, deal, r)), plan.public_at(r), plan.coded(r)
        groups, before = 1 if coded else _groups(plan, r, before), numbers[r]
        sorts = min(now.codes, len(spots)) if now and coded else before
        if sorts > len(spots):
            raise AbstractionError(
                f"{sorts:,} buckets are asked for in round {r + 1}, but there are only {len(spots):,} different "
                "hands: ask for fewer"
            )
        tables += len(spots.boards) * len(spots.tables.bits) * np.min_scalar_type(sorts - 1).itemsize
        if sorts < len(spots):
            sort(plan, r, [BucketStep(this.steps[-1].feature, sorts)] if coded else this.steps, groups)
    seconds += sum(time for _, time in missing.values())
    return BuildEstimate(seconds / threads, memory + 500_000_000, tables, sum(size for size, _ in missing.values()))


def bucket_numbers(plan: Plan, deal: Deal) -> tuple[int, ...]:
    """[round] how many buckets a plan asks for.

    >>> from kilt.abstraction.plan import plan_named
    >>> bucket_numbers(plan_named("PR-PHS-PHS 5-4-3-2", (0, 3, 1, 1)), Deal())
    (5, 20, 60, 120)
    """
    numbers, before = list[int](), 1
    for r, this in enumerate(plan.rounds):
        before = _groups(plan, r, before) * this.buckets or len(deal.spots(layout(plan, deal, r)))
        numbers.append(before)
    return tuple(numbers)


def _groups(plan: Plan, r: int, before: int) -> int:
    """Inside how many groups of hands a round has its buckets: those of the round before, or classes of boards."""
    if plan.rounds[r].recall and r > 0 and not plan.coded(r):
        return before
    return plan.classes_at(r)


def looks_ahead(plan: Plan, r: int) -> bool:
    """Whether a round rests on the buckets of the next."""
    return any(step.feature == "potential" for step in plan.rounds[r].steps)


def ground_metric(plan: Plan, r: int) -> str:
    """The metric of the space in which a round's centroids are."""
    feature = plan.rounds[r].steps[-1].feature
    if feature == "potential":
        return ground_metric(plan, r + 1)
    return "l2" if feature == "ochs" else "emd"


def rests_on(plan: Plan, r: int) -> set[int]:
    """The rounds that must be there first: the one before if remembered, the next if looked at."""
    needed = {r - 1} if plan.rounds[r].recall and r > 0 else set()
    return needed | ({r + 1} & set(range(len(plan.rounds))) if looks_ahead(plan, r) else set())


def in_order(plan: Plan) -> list[int]:
    """The rounds, each after those that it rests on."""
    rounds, found = range(len(plan.rounds)), list[int]()
    while len(found) < len(rounds):
        for r in rounds:
            if r not in found and rests_on(plan, r) <= set(found):
                found.append(r)
                break
        else:
            raise AbstractionError("a round looks at the next one, which remembers it: let the next be without recall")
    return found


def build(
    identity: AbstractionSpec,
    out: Path,
    *,
    cache: Path | None = None,
    threads: int = 1,
    seconds: float | None = None,
    tick: Tick = lambda what, share: None,
    engine: Engine | None = None,
) -> CardAbstraction:
    """Build an abstraction in a folder, or what is missing of it.

    An `engine` makes features, each by a worker of its own, and clusters hands group by group: those of each class of
    boards, or of each bucket of the round before.
    With so many `seconds`, each round may move centroids for its share of them only: what comes out then depends on the
    machine.
    """
    features = Features(identity.deal, cache, threads, tick, engine)
    build_rounds(identity, out, range(len(identity.plan.rounds)), features, seconds)
    return CardAbstraction.load(out)


def build_rounds(
    identity: AbstractionSpec, out: Path, wanted: Iterable[int], features: Features, seconds: float | None = None
) -> dict[int, RoundBuckets]:
    """Build some rounds, and those that they rest on."""
    check(identity)
    plan = identity.plan
    needed = set(wanted)
    while more := set[int]().union(*(rests_on(plan, r) for r in needed)) - needed:
        needed |= more
    with artifact.alone(out), _tidy(out):
        _begin(identity, out)
        asked = [(step.feature, r) for r in sorted(needed) for step in plan.rounds[r].steps]
        features.ahead(asked, plan.bins, plan.opponents)
        classes: dict[int, BoardClasses] = {}
        for public in plan.public:
            base = partial(_base_round, public, identity.deal, features, out)
            before = classes[max(classes)] if classes else None
            classes[public.round] = build_classes(identity, out, public, before, features, base)
        done: dict[int, RoundBuckets] = {}
        for r in (r for r in in_order(plan) if r in needed):
            try:
                done[r] = load_round(out, identity, r)
            except ArtifactError:
                share = None if seconds is None else seconds / len(needed)
                _build_round(identity, out, r, features, done, classes, share)
                done[r] = load_round(out, identity, r)
    return done


@contextmanager
def _tidy(out: Path) -> Iterator[None]:
    """Where a build fails before anything is there but its description, leave nothing: the folder is free again."""
    try:
        yield
    except AbstractionError:
        if out.is_dir() and {file.name for file in out.iterdir()} == {DESCRIPTION}:
            (out / DESCRIPTION).unlink()
            out.rmdir()
        raise


def _base_round(public: PublicPlan, deal: Deal, features: Features, out: Path, r: int) -> RoundBuckets:
    """The buckets of a round of the base: of an abstraction that is there, or of one that is built in the cache."""
    identity = _base_identity(public, deal)
    if public.base and (Path(public.base) / DESCRIPTION).is_file():
        return load_round(Path(public.base), identity, r)
    place = _base_folder(identity, features.folder) if features.folder else out / f"base-{public.round}"
    return build_rounds(identity, place, [r], features)[r]


def _base_folder(identity: AbstractionSpec, cache: Path) -> Path:
    return cache / "bases" / identity.fingerprint


def _base_identity(public: PublicPlan, deal: Deal) -> AbstractionSpec:
    """What the base is: the abstraction in a folder, or one that is to be built."""
    if public.base and (Path(public.base) / DESCRIPTION).is_file():
        there = AbstractionSpec.read(Path(public.base))
        if there.deal != deal:
            raise AbstractionError(f"{public.base} is an abstraction of other cards: use one of this game")
        if not there.plan.rounds:
            raise AbstractionError(f"{public.base} has classes of boards and no buckets: use another base")
        return there
    plan = load_plan(public.base, deal.board_cards) if public.base else base_plan(deal, public)
    return AbstractionSpec(public.base or f"base for {public.method}", deal, plan)


def _begin(identity: AbstractionSpec, out: Path) -> None:
    """Say in the folder what it is to hold; refuse one that holds something else."""
    place = out / DESCRIPTION
    if place.exists():
        there = AbstractionSpec.read(out)
        if there.fingerprint != identity.fingerprint:
            raise AbstractionError(
                f"{out} is for another abstraction, {there.name} ({there.fingerprint}), not {identity.name} "
                f"({identity.fingerprint}): choose another folder"
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise AbstractionError(f"{out} is there and holds no abstraction: choose another folder")
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
        artifact.write_text(place, json.dumps(identity.data(), indent=2))


def _build_round(
    identity: AbstractionSpec,
    out: Path,
    r: int,
    features: Features,
    done: dict[int, RoundBuckets],
    classes: Mapping[int, BoardClasses],
    seconds: float | None,
) -> None:
    began = perf_counter()
    plan, deal, what, tick = identity.plan, identity.deal, f"round {r + 1}", features.tick
    spots, steps = deal.spots(layout(plan, deal, r)), plan.rounds[r].steps
    public = plan.public_at(r)
    known = classes[public.round] if public else None
    before, after = None, None
    if plan.rounds[r].recall and r > 0:
        before = Before(done[r - 1].spots, done[r - 1].table, done[r - 1].buckets)
    elif known and not plan.coded(r):
        everyone = len(known.spots.tables.bits)
        before = Before(known.spots, np.repeat(known.labels[:, None], everyone, axis=1), known.number)
    coming = done.get(r + 1) if looks_ahead(plan, r) else None
    if coming and coming.centroids is not None:
        absolute = ground_metric(plan, r + 1) == "emd"
        ground = ground_of(coming.centroids, absolute=absolute, apart=coming.apart)
        after = After(coming.spots, coming.table, ground)
    fitting = Fitting(plan, features, r, spots, before, after, seconds, partial(tick, f"{what}: fitting"))
    fitted = fitting.fit(code_steps(fitting) if plan.coded(r) else steps)
    buckets = fitted[-1].buckets
    dtype, shape = np.min_scalar_type(buckets - 1), (len(spots.boards), len(spots.tables.bits))
    inputs = {"abstraction": identity.fingerprint}
    with artifact.draft(round_folder(out, r), KIND, shape[0] * shape[1] * dtype.itemsize, inputs) as new:
        table = new.room("buckets", dtype, shape)

        sizes, alone = np.zeros(buckets, dtype=np.int64), Lock()

        def write(part: SpotBatch) -> float:
            labels, costs = fitting.sort(part, fitted)
            spots_kernels.spread(spots.tables, part.start, part.end, labels, table)
            with alone:
                spots_kernels.add_at(labels, part.weights, sizes)
            return 0.0 if costs is None else float((part.weights * costs.astype(np.float64)).sum())

        cost = sum(fitting.parts(write, partial(tick, f"{what}: assigning")))
        if not sizes.all():
            raise AbstractionError(f"{int((sizes == 0).sum())} of {buckets} buckets of {what} are empty: ask for fewer")
        if known and plan.coded(r):
            sorted_in = sort_codes(fitting, steps, known, table, buckets)
            new.save("of_class", sorted_in.bucket)
            new.save("sizes", sorted_in.sizes)
            new.figures["codes"] = buckets
        else:
            new.save("sizes", sizes)
            _save_means(new, fitted[-1])
            if isinstance(fitted[-1], Potentials) and _looked_at(identity, r):
                means, ground = fitted[-1].means, fitted[-1].after.ground
                new.save("apart", apart_of(means, ground, features.threads, partial(tick, f"{what}: distances")))
        if isinstance(fitted[-1], Means | Potentials):
            new.figures["distortion"] = cost / sizes.sum()
        new.figures["seconds"] = perf_counter() - began


def _looked_at(identity: AbstractionSpec, r: int) -> bool:
    """Whether the round before rests on the buckets of a round: one that tells all hands apart does not."""
    plan, deal, before = identity.plan, identity.deal, r - 1
    if r == 0 or not looks_ahead(plan, before):
        return False
    return bucket_numbers(plan, deal)[before] < len(deal.spots(layout(plan, deal, before)))


def _save_means(new: artifact.Draft, last: Fitted) -> None:
    """Keep what the buckets are means of, for rounds before that look ahead and for those who compare boards."""
    match last:
        case Means(clusters=clusters):
            new.save("centroids", clusters.centroids)
        case Potentials(after=ahead, means=means):
            new.save("centroids", centres_of(means, ahead.ground))
