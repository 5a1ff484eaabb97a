"""What it takes to build an abstraction, before any work is done.

Times are guesses: from the numbers of boards, hands and points, and the pace of one core (`kilt.paces`). What takes no
time is built, and thrown away: values of hands may be too few for the percentiles of a group, which only they can tell.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from kilt import artifact, machine
from kilt.abstraction import potential
from kilt.abstraction.buckets import AbstractionSpec, layout, round_folder
from kilt.abstraction.cluster import METRICS
from kilt.abstraction.features import FEATURES, NEXT, NONE, STRENGTHS, VALUE, Features, TableCosts
from kilt.abstraction.pipeline import (
    base_folder,
    base_spec,
    blocks_after,
    bucket_numbers,
    build,
    check,
    groups_before,
    looked_at,
)
from kilt.abstraction.plan import CODES, BucketStep, Plan
from kilt.abstraction.steps import LEVELS, MANY
from kilt.errors import AbstractionError
from kilt.paces import pace

TRIED = 0.05  # seconds: what is built in less is tried


class BuildEstimate(NamedTuple):
    """What a build takes, roughly."""

    seconds: float
    memory: int  # bytes: the resident size of the process at its peak
    mapped: int  # bytes of it that are mapped from files: they need not fit
    tables: int  # bytes on disk, of the abstraction
    features: int  # bytes on disk, of feature tables that are not in the cache yet

    def after(self, other: BuildEstimate) -> BuildEstimate:
        """Both builds, one after the other: at most, since they may share features."""
        larger = max(self, other, key=lambda one: one.memory)
        sums = self.tables + other.tables, self.features + other.features
        return BuildEstimate(self.seconds + other.seconds, larger.memory, larger.mapped, *sums)

    def require_memory(self) -> None:
        """Raise AbstractionError where memory has no room for the build."""
        if not machine.fits_memory(self.memory - self.mapped):
            raise AbstractionError(
                f"building the cards takes {(self.memory - self.mapped) / 1e9:,.1f} GB of memory, and "
                f"{machine.available_memory() / 1e9:,.1f} GB are available: use fewer buckets, or a smaller `sample` "
                "in a plan as a .toml file"
            )


def estimate(spec: AbstractionSpec, cache: Path | None = None, threads: int = 1) -> BuildEstimate:
    """Estimate what building an abstraction takes.

    Parameters
    ----------
    spec : AbstractionSpec
        What is to be built.
    cache : Path, optional
        The folder of feature tables: what is there already costs nothing.
    threads : int
        That share the work.

    Returns
    -------
    BuildEstimate

    Raises
    ------
    AbstractionError
        The plan does not fit the cards, or asks for more buckets than there are hands.
    """
    check(spec)
    plan, deal = spec.plan, spec.deal
    features, missing, used = Features(deal, cache), TableCosts(), TableCosts()
    sorting = []  # (plan, round, steps, groups of hands that they begin with)
    for public in plan.public:
        base, r = base_spec(public, deal), public.round - 1
        if not public.boards and not (cache and artifact.exists(round_folder(base_folder(base, cache), r))):
            sorting.append((base.plan, r, base.plan.rounds[r].steps, 1))
    tables, before = 0, 1
    for r, number in enumerate(bucket_numbers(plan, deal)):
        holdings, now, coded = deal.holdings(layout(plan, deal, r)), plan.public_at(r), plan.coded(r)
        groups, before = 1 if coded else groups_before(plan, r, before), number
        sorts = min(now.codes, len(holdings)) if now and coded else number
        if sorts > len(holdings):
            raise AbstractionError(
                f"{sorts:,} buckets are asked for in round {r + 1}, but there are only {len(holdings):,} different "
                "hands: ask for fewer"
            )
        tables += len(holdings.boards) * len(holdings.tables.bits) * np.min_scalar_type(sorts - 1).itemsize
        if sorts < len(holdings):
            steps = plan.rounds[r].steps
            sorting.append((plan, r, (BucketStep(steps[-1].feature, sorts),) if coded else steps, groups))
    for r, this in enumerate(plan.rounds):
        if (now := plan.public_at(r)) and plan.coded(r) and this.buckets > now.codes:
            raise AbstractionError(
                f"{this.buckets:,} buckets are asked for in each class of boards in round {r + 1}, of {now.codes:,} "
                "codes of hands: ask for fewer buckets, or for more codes"
            )
    seconds, room, made = 0.0, 0, 0
    for own, r, steps, groups in sorting:
        for step in steps:
            _require_points(spec, own, r, step)
            needed, cost = features.needs(step.feature, r, own.settings), _step_cost(spec, own, r, step, groups)
            missing |= needed
            used |= features.rests_on(step.feature, r, own.settings)
            if not missing and FEATURES[step.feature].metric != VALUE:
                used.pop(STRENGTHS)  # nothing is made from it
            seconds += cost.seconds
            room, made = max(room, cost.memory), max(made, sum(table.size for table in needed.values()))
            groups *= step.buckets
    seconds += sum(table.seconds for table in missing.values())
    mapped = max(sum(table.size for table in used.values()) - made, 0) + tables
    new = sum(table.size for table in missing.values())
    if seconds < TRIED:
        with TemporaryDirectory() as folder:
            build(spec, Path(folder) / "cards")
    return BuildEstimate(seconds / threads, machine.PROCESS + room + made + mapped, mapped, tables, new)


def estimate_in_codes(spec: AbstractionSpec, cache: Path | None = None, threads: int = 1) -> BuildEstimate | None:
    """What it takes to sort `CODES` codes in each class of boards, where a plan sorts hands one by one.

    None where it has no such rounds, or they cannot have codes: where buckets are remembered or looked at.
    """
    coded = replace(spec.plan, public=tuple(replace(public, codes=CODES) for public in spec.plan.public))
    if all(coded.coded(r) == spec.plan.coded(r) for r in range(len(coded.rounds))):
        return None
    try:
        return estimate(replace(spec, plan=coded), cache, threads)
    except AbstractionError:
        return None


def _require_points(spec: AbstractionSpec, plan: Plan, r: int, step: BucketStep) -> None:
    """Raise AbstractionError where a step is to have more buckets than it can tell hands apart."""
    feature, last = FEATURES[step.feature], r + 1 == len(plan.rounds)
    different = spec.deal.top + 1 if last else LEVELS  # values of a percentile, at most
    if feature.metric == VALUE and step.buckets > different:
        raise AbstractionError(
            f"{step.buckets:,} buckets by {step.feature} are asked for in round {r + 1}, and it has at most "
            f"{different:,} values: ask for fewer"
        )
    if step.feature == "ochs" and plan.opponents > (hands := len(spec.deal.holdings((0,)))):
        raise AbstractionError(
            f"{plan.opponents} clusters of opponents are asked for; there are {hands} different hands: ask for fewer"
        )
    if feature.metric in METRICS and step.buckets > plan.sample:
        raise AbstractionError(
            f"{step.buckets:,} clusters are asked for in round {r + 1}, of {plan.sample:,} points: ask for fewer, or "
            "for a larger `sample`"
        )


class _StepCost(NamedTuple):
    """What it takes to fit a step and to sort all hands of a round by it."""

    seconds: float
    memory: int  # bytes beside the feature tables


def _of(part: str) -> float:
    """Seconds that a part of sorting hands takes."""
    return pace("buckets", part)


def _step_cost(spec: AbstractionSpec, plan: Plan, r: int, step: BucketStep, groups: int) -> _StepCost:
    """What a step costs inside each of `groups` groups; `plan` is that of the abstraction or of a base."""
    deal, feature, own = spec.deal, FEATURES[step.feature], replace(spec, plan=plan)
    hands = len(deal.holdings(layout(plan, deal, r)))
    drawn = min(hands, max(plan.sample, MANY * (groups - 1)))
    # Seconds to find the cluster of a hand, when hands are sorted and in an iteration that fits the clusters.
    seconds, sorted_in, fitted_in, iterations, room = 0.0, 0.0, 0.0, 0, 0
    if feature.metric in METRICS:
        dimensions, iterations = feature.dimensions(plan.settings, r), plan.iterations * plan.restarts
        sorted_in = fitted_in = step.buckets ** _of("power") * (_of("centre") + _of("dimension") * dimensions)
        room = drawn * dimensions * 12
    elif feature.metric == NEXT and r + 1 < len(plan.rounds):
        coming, ways = bucket_numbers(plan, deal)[r + 1], comb(deal.deck.size, deal.board_cards[r + 1])
        block = coming // blocks_after(own, r)
        sorted_in, iterations = _of("next_hand") + _of("next_bucket") * max(step.buckets, block), potential.ITERATIONS
        drawn = min(drawn, potential.sample_of(step.buckets) * groups)
        # Until large clusters are fitted, a distance between centres rules out few of them.
        fitted_in = sorted_in + _of("next_fitted") * min(drawn / (step.buckets * groups), 100)
        room = drawn * ways * 8 + 8 * coming * block + 12 * block * step.buckets * groups
        seconds += _of("next_pair") * step.buckets**2 * groups * looked_at(own, r)
    elif feature.metric == VALUE:
        last = r + 1 == len(plan.rounds)
        sets = len(deal.holdings((deal.sizes[r],)))
        room = 12 * groups * (deal.top + 1 if last else LEVELS) + sets * (2 if last else 34)  # their values in order
    looked_through = 0 if feature.metric == NONE else 2 if groups > 1 and iterations else 1  # to fit it
    seconds += hands * (_of("hand") + _of("look") * looked_through + sorted_in) + drawn * iterations * fitted_in
    return _StepCost(seconds, room)
