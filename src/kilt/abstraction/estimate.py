"""Estimate the time, memory and disk space for building a card abstraction, before the build.

Times follow from the numbers of boards, hands and points, and from the speed of one core (`kilt.paces`). A round that
takes almost no time is built and discarded: only its values show whether a group has enough of them for its
percentiles.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from kilt import artifact
from kilt.abstraction import potential
from kilt.abstraction.buckets import AbstractionSpec, board_layout, round_folder
from kilt.abstraction.cluster import METRICS
from kilt.abstraction.features import FEATURES, NEXT, NONE, STRENGTHS, VALUE, Features
from kilt.abstraction.pipeline import (
    base_folder,
    base_spec,
    bucket_numbers,
    build,
    check_plan,
    groups_before,
    next_round_groups,
    used_by_previous_round,
)
from kilt.abstraction.plan import CODES, BucketStep, Plan
from kilt.abstraction.steps import LEVELS, POINTS_PER_GROUP
from kilt.cost import Cost
from kilt.errors import AbstractionError
from kilt.paces import pace

TRIAL_SECONDS = 0.05  # seconds: a round that takes less is built in order to check it


REMEDY = "use fewer buckets, or a smaller `sample` in a plan as a .toml file"


def estimate_build(spec: AbstractionSpec, cache: Path | None = None, threads: int = 1) -> Cost:
    """Estimate the time, memory and disk space for building a card abstraction.

    Parameters
    ----------
    spec : AbstractionSpec
        The abstraction.
    cache : Path, optional
        The folder of feature tables: tables that are in it cost nothing.
    threads : int
        Number of threads that share the work.

    Returns
    -------
    Cost
        `disk` for the abstraction, and `cache` for the feature tables that are not there yet.

    Raises
    ------
    AbstractionError
        The plan does not fit the cards, or asks for more buckets than there are hands.
    """
    check_plan(spec)
    plan, deal = spec.plan, spec.deal
    features, missing, used = Features(deal, cache), dict[str, Cost](), dict[str, Cost]()
    sorting = []  # (plan, round, steps, number of groups that the first step begins with)
    for public in plan.public:
        base, r = base_spec(public, deal), public.round - 1
        if not public.boards and not (cache and artifact.exists(round_folder(base_folder(base, cache), r))):
            sorting.append((base.plan, r, base.plan.rounds[r].steps, 1))
    tables, before = 0, 1
    for r, number in enumerate(bucket_numbers(plan, deal)):
        holdings, now, coded = deal.holdings(board_layout(plan, deal, r)), plan.public_at(r), plan.uses_codes(r)
        groups, before = 1 if coded else groups_before(plan, r, before), number
        sorts = min(now.codes, len(holdings)) if now and coded else number
        if sorts > len(holdings):
            raise AbstractionError(
                f"the plan asks for {sorts:,} buckets in round {r + 1}, but there are only {len(holdings):,} different "
                "hands: use fewer"
            )
        tables += holdings.board_count * comb(deal.deck.size, deal.hole_cards) * np.min_scalar_type(sorts - 1).itemsize
        if sorts < len(holdings):
            steps = plan.rounds[r].steps
            sorting.append((plan, r, (BucketStep(steps[-1].feature, sorts),) if coded else steps, groups))
    for r, this in enumerate(plan.rounds):
        if (now := plan.public_at(r)) and plan.uses_codes(r) and this.buckets > now.codes:
            raise AbstractionError(
                f"the plan asks for {this.buckets:,} buckets in each class of boards in round {r + 1}, from "
                f"{now.codes:,} "
                "codes of hands: use fewer buckets or more codes"
            )
    seconds, room, made = 0.0, 0, 0
    for own, r, steps, groups in sorting:
        for step in steps:
            _require_points(spec, own, r, step)
            needed, cost = (
                features.missing_table_costs(step.feature, r, own.settings),
                _step_cost(spec, own, r, step, groups),
            )
            missing |= needed
            used |= features.table_costs(step.feature, r, own.settings)
            if not missing and FEATURES[step.feature].metric != VALUE:
                used.pop(STRENGTHS)  # no table is computed from it
            seconds += cost.seconds or 0.0
            room, made = max(room, cost.memory), max(made, sum(table.cache for table in needed.values()))
            groups *= step.buckets
    seconds += sum(table.seconds or 0.0 for table in missing.values())
    mapped = max(sum(table.cache for table in used.values()) - made, 0) + tables
    new = sum(table.cache for table in missing.values())
    if seconds < TRIAL_SECONDS:
        with TemporaryDirectory() as folder:
            build(spec, Path(folder) / "cards")
    held = room + made + mapped
    return Cost(
        held, mapped, disk=tables, cache=new, seconds=seconds / threads, what="building the cards", remedy=REMEDY
    )


def estimate_coded_build(spec: AbstractionSpec, cache: Path | None = None, threads: int = 1) -> Cost | None:
    """Estimate the cost of an abstraction that sorts hands into small groups, and clusters these into buckets.

    Each class of boards sorts these groups, called codes, into buckets.

    Returns None if the plan has no round to which this applies, or if its rounds cannot have codes because other rounds
    remember or use their buckets. The number of codes is `CODES`.
    """
    coded = replace(spec.plan, public=tuple(replace(public, codes=CODES) for public in spec.plan.public))
    if all(coded.uses_codes(r) == spec.plan.uses_codes(r) for r in range(len(coded.rounds))):
        return None
    try:
        return estimate_build(replace(spec, plan=coded), cache, threads)
    except AbstractionError:
        return None


def _require_points(spec: AbstractionSpec, plan: Plan, r: int, step: BucketStep) -> None:
    """Raise AbstractionError if a step has more buckets than its feature has values."""
    feature, last = FEATURES[step.feature], r + 1 == len(plan.rounds)
    different = spec.deal.top_strength + 1 if last else LEVELS  # maximum number of values of a percentile
    if feature.metric == VALUE and step.buckets > different:
        raise AbstractionError(
            f"the plan asks for {step.buckets:,} buckets by {step.feature} in round {r + 1}, which has at most "
            f"{different:,} values: use fewer"
        )
    if step.feature == "ochs" and plan.opponents > (hands := len(spec.deal.holdings((0,)))):
        raise AbstractionError(
            f"the plan asks for {plan.opponents} clusters of opponents, but there are only {hands} different hands: "
            "use fewer"
        )
    if feature.metric in METRICS and step.buckets > plan.sample:
        raise AbstractionError(
            f"the plan asks for {step.buckets:,} clusters of {plan.sample:,} points in round {r + 1}: use fewer "
            "clusters, or "
            "a larger `sample`"
        )


def _of(part: str) -> float:
    """Return the seconds that one part of sorting hands takes, from the table of paces."""
    return pace("buckets", part)


def _step_cost(spec: AbstractionSpec, plan: Plan, r: int, step: BucketStep, groups: int) -> Cost:
    """Estimate the cost of fitting one step and sorting all hands by it, without the cost of feature tables.

    The step sorts hands inside each of `groups` groups. `plan` is that of the abstraction or of a base.
    """
    deal, feature, own = spec.deal, FEATURES[step.feature], replace(spec, plan=plan)
    hands = len(deal.holdings(board_layout(plan, deal, r)))
    drawn = min(hands, max(plan.sample, POINTS_PER_GROUP * (groups - 1)))
    # Seconds to find the cluster of one hand: when all hands are sorted, and in an iteration that fits the clusters.
    seconds, sorted_in, fitted_in, iterations, room = 0.0, 0.0, 0.0, 0, 0
    if feature.metric in METRICS:
        dimensions, iterations = feature.dimensions(plan.settings, r), plan.iterations * plan.restarts
        sorted_in = fitted_in = step.buckets ** _of("power") * (_of("centre") + _of("dimension") * dimensions)
        room = drawn * dimensions * 12
    elif feature.metric == NEXT and r + 1 < len(plan.rounds):
        coming, ways = bucket_numbers(plan, deal)[r + 1], comb(deal.deck.size, deal.board_cards[r + 1])
        block = coming // next_round_groups(own, r)
        sorted_in, iterations = _of("next_hand") + _of("next_bucket") * max(step.buckets, block), potential.ITERATIONS
        drawn = min(drawn, potential.sample_size(step.buckets) * groups)
        # Until large clusters are fitted, the distances between centres exclude few of them.
        fitted_in = sorted_in + _of("next_fitted") * min(drawn / (step.buckets * groups), 100)
        room = drawn * ways * 8 + 8 * coming * block + 12 * block * step.buckets * groups
        seconds += _of("next_pair") * step.buckets**2 * groups * used_by_previous_round(own, r)
    elif feature.metric == VALUE:
        last = r + 1 == len(plan.rounds)
        sets = len(deal.holdings((deal.board_sizes[r],)))
        room = 12 * groups * (deal.top_strength + 1 if last else LEVELS) + sets * (2 if last else 34)  # sorted values
    looked_through = 0 if feature.metric == NONE else 2 if groups > 1 and iterations else 1  # passes to fit it
    seconds += hands * (_of("hand") + _of("look") * looked_through + sorted_in) + drawn * iterations * fitted_in
    return Cost(room, seconds=seconds)
