"""Build a card abstraction on disk from a plan, round by round.

Each round computes its features, sorts hands step by step, and saves a table. Finished rounds are kept: a build that
was stopped resumes with the next round.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from time import perf_counter

import numpy as np

from kilt import artifact
from kilt.abstraction import holdings_kernels
from kilt.abstraction.boards import ComparisonBase, build_classes, check_board_classes, require_deal_order
from kilt.abstraction.buckets import (
    DESCRIPTION,
    KIND,
    AbstractionSpec,
    CardAbstraction,
    board_layout,
    classes_folder,
    load_round,
    round_folder,
)
from kilt.abstraction.classes import BoardClasses
from kilt.abstraction.features import FEATURES, NEXT, Deal, Features, Tick
from kilt.abstraction.hierarchical import code_steps, sort_codes
from kilt.abstraction.plan import Plan, PublicPlan, load_plan
from kilt.abstraction.potential import cluster_centres, ground_distances, mean_distances
from kilt.abstraction.public import base_plan, import_transport
from kilt.abstraction.rounds import RoundBuckets
from kilt.abstraction.steps import (
    FittedStep,
    HoldingBatch,
    KMeansStep,
    NextRound,
    PotentialAwareStep,
    PreviousRound,
    StepFitter,
)
from kilt.engines import Engine
from kilt.errors import AbstractionError, ArtifactError


def check_plan(identity: AbstractionSpec) -> None:
    """Check that a plan of a card abstraction fits the cards of the game.

    Raises AbstractionError otherwise.
    """
    plan, deal = identity.plan, identity.deal
    rounds = len(deal.board_cards)
    if len(plan.rounds) != rounds and (plan.rounds or not plan.public):  # a plan may have classes of boards only
        raise AbstractionError(f"the plan has {len(plan.rounds)} rounds; the game has {rounds}")
    for place, public in enumerate(plan.public):
        check_board_classes(identity, place)
        base = None if public.boards or public.exact else base_spec(public, deal).plan
        if base and base.rounds[public.round - 1].recall and public.round > 1:
            require_deal_order(plan, deal, public, "a base that remembers buckets")
    for r, this in enumerate(plan.rounds):
        if plan.uses_codes(r) and (this.recall or looks_ahead(plan, r) or (r > 0 and looks_ahead(plan, r - 1))):
            raise AbstractionError(
                f"round {r + 1} has codes. Such a round cannot remember buckets, nor use those of the next round, nor "
                "be used so: "
                "use codes = 0 in [public]"
            )
        if r > 0 and this.recall and plan.uses_codes(r - 1):
            raise AbstractionError(
                f"round {r + 1} cannot remember the buckets of round {r}, which has codes: use codes = 0 in [public], "
                "or recall = false"
            )


def require_packages(plan: Plan, out: Path) -> None:
    """Check that all packages that the build needs are installed.

    Raises AbstractionError otherwise.
    """
    for public in plan.public:
        if public.method == "schmid" and not public.boards and not artifact.exists(classes_folder(out, public)):
            import_transport()


def bucket_numbers(plan: Plan, deal: Deal) -> tuple[int, ...]:
    """Return the number of buckets in each round of a plan.

    >>> from kilt.abstraction.plan import plan_named
    >>> bucket_numbers(plan_named("PR-PHS-PHS 5-4-3-2", (0, 3, 1, 1)), Deal())
    (5, 20, 60, 120)
    """
    numbers, before = list[int](), 1
    for r, this in enumerate(plan.rounds):
        before = groups_before(plan, r, before) * this.buckets or len(deal.holdings(board_layout(plan, deal, r)))
        numbers.append(before)
    return tuple(numbers)


def groups_before(plan: Plan, r: int, before: int) -> int:
    """Return the number of groups of hands that a round clusters separately.

    The groups are the buckets of the previous round if these are remembered, else the classes of boards.
    """
    if plan.rounds[r].recall and r > 0 and not plan.uses_codes(r):
        return before
    return plan.classes_at(r)


def looks_ahead(plan: Plan, r: int) -> bool:
    """Return whether a round's buckets are potential-aware: hands are clustered by their next-round buckets."""
    return any(FEATURES[step.feature].metric == NEXT for step in plan.rounds[r].steps)


def ground_metric(plan: Plan, r: int) -> str:
    """Return the metric for distances between a round's bucket centroids, such as ``"emd"``."""
    metric = FEATURES[plan.rounds[r].steps[-1].feature].metric
    return ground_metric(plan, r + 1) if metric == NEXT else metric


def rounds_needed(plan: Plan, r: int) -> set[int]:
    """Return the rounds that must be built before round `r`.

    The previous round is one if its buckets are remembered, the next round if its buckets are used.
    """
    needed = {r - 1} if plan.rounds[r].recall and r > 0 else set()
    return needed | ({r + 1} & set(range(len(plan.rounds))) if looks_ahead(plan, r) else set())


def build_order(plan: Plan) -> list[int]:
    """Return the rounds in build order: each follows the rounds on which it depends."""
    rounds, found = range(len(plan.rounds)), list[int]()
    while len(found) < len(rounds):
        for r in rounds:
            if r not in found and rounds_needed(plan, r) <= set(found):
                found.append(r)
                break
        else:
            raise AbstractionError(
                "a round uses the buckets of the next round, which remembers it: set recall = false in the next round"
            )
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
    like: Path | None = None,
) -> CardAbstraction:
    """Build a card abstraction in a folder, or resume an interrupted build.

    Parameters
    ----------
    identity : AbstractionSpec
        The plan and the cards.
    out : Path
        The folder: new, or that of a build of the same plan that was stopped.
    cache : Path, optional
        Folder where feature tables are kept for other builds; without it they stay in memory.
    threads : int
        Number of threads; the buckets do not depend on it.
    seconds : float, optional
        Time limit for moving centroids, divided among the rounds. With a limit, the buckets depend on the speed of the
        machine. By default, there is no limit.
    tick : callable
        Called with a description of the current work, and the share of it that is done.
    engine : Engine, optional
        Computes features, each on a worker of its own, and clusters hands group by group: those of each class of
        boards, or of each bucket of the previous round. By default, threads of this process.
    like : Path, optional
        The folder of another abstraction of these cards. Rounds that both plans sort in the same way are copied from
        it.

    Returns
    -------
    CardAbstraction

    Raises
    ------
    AbstractionError
        The plan does not fit the cards, or the folder holds something else.
    """
    features = Features(identity.deal, cache, threads, tick, engine)
    build_rounds(identity, out, range(len(identity.plan.rounds)), features, seconds, like)
    return CardAbstraction.load(out)


def build_rounds(
    identity: AbstractionSpec,
    out: Path,
    wanted: Iterable[int],
    features: Features,
    seconds: float | None = None,
    like: Path | None = None,
) -> dict[int, RoundBuckets]:
    """Build some rounds of a card abstraction, with the rounds on which they depend."""
    plan = identity.plan
    require_packages(plan, out)  # before `check_plan`, which may compile kernels
    check_plan(identity)
    needed = set(wanted)
    while more := set[int]().union(*(rounds_needed(plan, r) for r in needed)) - needed:
        needed |= more
    with artifact.exclusive_access(out), _tidy(out):
        _begin(identity, out)
        asked = [(step.feature, r) for r in sorted(needed) for step in plan.rounds[r].steps]
        features.compute_with_engine(asked, plan.settings)
        classes: dict[int, BoardClasses] = {}
        for public in plan.public:
            known = "" if public.boards or public.exact else base_spec(public, identity.deal).fingerprint
            base = ComparisonBase(known, partial(_base_round, public, identity.deal, features, out))
            before = classes[max(classes)] if classes else None
            classes[public.round] = build_classes(identity, out, public, before, features, base)
        done: dict[int, RoundBuckets] = {}
        for r in (r for r in build_order(plan) if r in needed):
            try:
                done[r] = load_round(out, identity, r)
            except ArtifactError:
                share = None if seconds is None else seconds / len(needed)
                if like is None or not _take_over(identity, out, r, like):
                    _build_round(identity, out, r, features, done, classes, share)
                done[r] = load_round(out, identity, r)
    return done


@contextmanager
def _tidy(out: Path) -> Iterator[None]:
    """Remove the folder if a build fails before the folder holds more than its description."""
    try:
        yield
    except AbstractionError:
        if out.is_dir() and {file.name for file in out.iterdir()} == {DESCRIPTION}:
            (out / DESCRIPTION).unlink()
            out.rmdir()
        raise


def _base_round(public: PublicPlan, deal: Deal, features: Features, out: Path, r: int) -> RoundBuckets:
    """Return the buckets of a round of the base abstraction: an existing one, or one that is built in the cache."""
    identity = base_spec(public, deal)
    if public.base and (Path(public.base) / DESCRIPTION).is_file():
        return load_round(Path(public.base), identity, r)
    place = base_folder(identity, features.folder) if features.folder else out / f"base-{public.round}"
    return build_rounds(identity, place, [r], features)[r]


def base_folder(identity: AbstractionSpec, cache: Path) -> Path:
    """Return the cache folder of the base abstraction, a small card abstraction used only to compare boards."""
    return cache / "bases" / identity.fingerprint


def base_spec(public: PublicPlan, deal: Deal) -> AbstractionSpec:
    """Return the specification of the base abstraction, a small card abstraction used only to compare boards.

    The specification is read from a folder, or describes an abstraction that has yet to be built.
    """
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
    """Write the description of an abstraction to its folder; refuse a folder that holds something else."""
    place = out / DESCRIPTION
    if place.exists():
        there = AbstractionSpec.read(out)
        if there.fingerprint != identity.fingerprint:
            raise AbstractionError(
                f"{out} is for another abstraction, {there.name} ({there.fingerprint}), not {identity.name} "
                f"({identity.fingerprint}): choose another folder"
            )
    # Hidden files are left by a build that was killed while it wrote the description.
    elif out.exists() and (not out.is_dir() or any(not file.name.startswith(".") for file in out.iterdir())):
        raise AbstractionError(f"{out} exists and holds no abstraction: choose another folder")
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
        artifact.write_text(place, json.dumps(identity.data(), indent=2))


def same_buckets(one: AbstractionSpec, other: AbstractionSpec, r: int) -> bool:
    """Return whether two card abstractions have equal buckets in a round.

    Returns False if the round depends on other rounds.

    >>> from kilt.abstraction.plan import plan_named
    >>> one, other = (plan_named(f"IR-KE-KO 9-{flop}-8-8", (0, 3, 1, 1)) for flop in (7, 6))
    >>> [same_buckets(AbstractionSpec("", Deal(), one), AbstractionSpec("", Deal(), other), r) for r in range(4)]
    [True, False, True, True]
    """
    if one.deal != other.deal or len(one.plan.rounds) != len(other.plan.rounds):
        return False
    for spec in (one, other):
        if rounds_needed(spec.plan, r) or spec.plan.public_at(r) or used_by_previous_round(spec, r):
            return False
    ours, theirs = (replace(spec.plan, rounds=spec.plan.rounds[r : r + 1], public=()) for spec in (one, other))
    return ours == theirs


def _take_over(identity: AbstractionSpec, out: Path, r: int, like: Path) -> bool:
    """Copy the buckets of a round from another abstraction if they are the same; return whether they were copied."""
    there = AbstractionSpec.read(like)
    if not same_buckets(identity, there, r):
        return False
    load_round(like, there, r, check=True)
    found = artifact.read(round_folder(like, r), KIND)
    inputs = {"abstraction": identity.fingerprint}
    artifact.write(round_folder(out, r), KIND, found.arrays, inputs=inputs, figures=found.figures)
    return True


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
    holdings, steps = deal.holdings(board_layout(plan, deal, r)), plan.rounds[r].steps
    public = plan.public_at(r)
    known = classes[public.round] if public else None
    before, after = None, None
    for other in rounds_needed(plan, r):
        done[other].require_valid_entries()
    if plan.rounds[r].recall and r > 0:
        before = PreviousRound(done[r - 1].holdings, done[r - 1].table, done[r - 1].buckets)
    elif known and not plan.uses_codes(r):
        everyone = len(known.holdings.tables.bits)
        before = PreviousRound(known.holdings, np.repeat(known.labels[:, None], everyone, axis=1), known.number)
    coming = done.get(r + 1) if looks_ahead(plan, r) else None
    if coming and coming.centroids is not None:
        absolute = ground_metric(plan, r + 1) == "emd"
        ground = ground_distances(
            coming.centroids,
            absolute=absolute,
            distances=coming.bucket_distances,
            blocks=next_round_groups(identity, r),
        )
        after = NextRound(coming.holdings, coming.table, ground)
    fitting = StepFitter(plan, features, r, holdings, before, after, seconds, partial(tick, f"{what}: fitting"))
    fitted = fitting.fit(code_steps(fitting) if plan.uses_codes(r) else steps)
    buckets = fitted[-1].buckets
    dtype, shape = np.min_scalar_type(buckets - 1), (len(holdings.boards), len(holdings.tables.bits))
    inputs = {"abstraction": identity.fingerprint}
    with artifact.draft(round_folder(out, r), KIND, shape[0] * shape[1] * dtype.itemsize, inputs) as new:
        table = new.allocate("buckets", dtype, shape)

        sizes, alone = np.zeros(buckets, dtype=np.int64), Lock()

        def write(part: HoldingBatch) -> float:
            labels, costs = fitting.sort(part, fitted)
            holdings_kernels.fill_bucket_table(
                holdings.tables, part.start, part.end, labels, holdings.workspace(), table
            )
            with alone:
                holdings_kernels.add_weights(labels, part.weights, sizes)
            return 0.0 if costs is None else float((part.weights * costs.astype(np.float64)).sum())

        cost = sum(fitting.map_batches(write, partial(tick, f"{what}: assigning")))
        if not sizes.all():
            raise AbstractionError(f"{int((sizes == 0).sum())} of {buckets} buckets of {what} are empty: use fewer")
        if known and plan.uses_codes(r):
            sorted_in = sort_codes(fitting, steps, known, table, buckets)
            new.save("of_class", sorted_in.bucket)
            new.save("sizes", sorted_in.sizes)
            new.figures["codes"] = buckets
            if sorted_in.distortion is not None:
                new.figures["distortion"] = sorted_in.distortion
        else:
            new.save("sizes", sizes)
            _save_means(new, fitted[-1])
            if isinstance(fitted[-1], PotentialAwareStep) and used_by_previous_round(identity, r):
                means, ground = fitted[-1].means, fitted[-1].after.ground
                said, blocks = partial(tick, f"{what}: distances"), next_round_groups(identity, r - 1)
                new.save("apart", mean_distances(means, ground, blocks, features.threads, said))
            if isinstance(fitted[-1], KMeansStep | PotentialAwareStep):
                new.figures["distortion"] = cost / sizes.sum()
        new.figures["seconds"] = perf_counter() - began


def next_round_groups(identity: AbstractionSpec, r: int) -> int:
    """Return the number of separate groups of next-round buckets, of which each hand can reach only one.

    These groups, called blocks, are classes of boards that both rounds know. If the previous round uses the buckets of
    round `r`, and sees more of its buckets at once, blocks are as large as in that round, so that all buckets that are
    compared have a distance.
    """
    blocks = min(identity.plan.classes_at(r), identity.plan.classes_at(r + 1))
    return min(blocks, next_round_groups(identity, r - 1)) if used_by_previous_round(identity, r) else blocks


def used_by_previous_round(identity: AbstractionSpec, r: int) -> bool:
    """Return whether the previous round clusters its hands by their buckets in round `r`.

    A lossless round does not look at the next.
    """
    plan, deal, before = identity.plan, identity.deal, r - 1
    if r == 0 or not looks_ahead(plan, before):
        return False
    return bucket_numbers(plan, deal)[before] < len(deal.holdings(board_layout(plan, deal, before)))


def _save_means(new: artifact.Draft, last: FittedStep) -> None:
    """Save the buckets' means, for earlier rounds that look ahead and for comparisons of boards."""
    match last:
        case KMeansStep(clusters=clusters):
            new.save("centroids", clusters.centroids)
        case PotentialAwareStep(after=ahead, means=means):
            new.save("centroids", cluster_centres(means, ahead.ground))
