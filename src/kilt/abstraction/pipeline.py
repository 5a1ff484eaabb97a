"""From a plan to an abstraction on disk, round by round: features, steps, table.

A round that is finished stays: a build that was stopped goes on with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kilt import artifact
from kilt.abstraction import spots_kernels
from kilt.abstraction.buckets import (
    DESCRIPTION,
    KIND,
    CardAbstraction,
    Identity,
    RoundBuckets,
    layout,
    load_round,
    round_folder,
)
from kilt.abstraction.features import Features, Tick
from kilt.abstraction.plan import Plan
from kilt.abstraction.potential import apart_of, centres_of, ground_of
from kilt.abstraction.steps import MANY, After, Before, Fitting, Means, Part, Potentials
from kilt.artifact import Array
from kilt.errors import AbstractionError, ArtifactError

DIMENSIONS: dict[str, Callable[[Plan, int], int]] = {  # of the points that k-means sorts
    "histogram": lambda plan, r: plan.bins,
    "history": lambda plan, r: plan.bins * (r + 1),
    "ochs": lambda plan, r: plan.opponents,
}


def check(identity: Identity) -> None:
    """Raise AbstractionError where a plan does not fit the deal."""
    plan, deal = identity.plan, identity.deal
    if len(plan.rounds) != len(deal.board_cards):
        raise AbstractionError(f"the plan has {len(plan.rounds)} rounds; the game has {len(deal.board_cards)}")


class Estimate(NamedTuple):
    """What a build takes, roughly."""

    seconds: float
    memory: int  # bytes
    tables: int  # bytes on disk, of the abstraction
    features: int  # bytes on disk, of feature tables that are not in the cache yet


def estimate(identity: Identity, cache: Path | None = None, threads: int = 1) -> Estimate:
    """Before any work is done, from the numbers of boards and hands and the pace of one core of 2020 or so."""
    check(identity)
    plan, deal = identity.plan, identity.deal
    features = Features(deal, cache)
    missing: dict[str, tuple[int, float]] = {}
    tables, seconds, memory, before = 0, 0.0, 0, 1
    for r, this in enumerate(plan.rounds):
        spots = deal.spots(layout(plan, deal, r))
        groups = before if this.recall else 1
        before = groups * this.buckets or len(spots)
        if before > len(spots):
            raise AbstractionError(
                f"{before:,} buckets are asked for in round {r + 1}, but there are only {len(spots):,} different "
                "hands: ask for fewer"
            )
        tables += len(spots.boards) * len(spots.tables.bits) * np.min_scalar_type(before - 1).itemsize
        if before == len(spots):
            continue
        for step in this.steps:
            needed = features.needs(step.feature, r, plan.bins, plan.opponents)
            missing |= needed
            dimensions = DIMENSIONS[step.feature](plan, r) if step.feature in DIMENSIONS else 1
            drawn = min(len(spots), max(plan.sample, MANY * (groups - 1))) if step.feature in DIMENSIONS else 0
            searched = 30e-9 + 10e-9 * dimensions
            seconds += len(spots) * (60e-9 + searched) + drawn * plan.iterations * plan.restarts * searched
            memory = max(memory, drawn * dimensions * 12 + sum(size for size, _ in needed.values()))
    seconds += sum(time for _, time in missing.values())
    return Estimate(seconds / threads, memory + 500_000_000, tables, sum(size for size, _ in missing.values()))


def looks_ahead(plan: Plan, r: int) -> bool:
    """Whether a round rests on the buckets of the next."""
    return any(step.feature == "potential" for step in plan.rounds[r].steps)


def ground_metric(plan: Plan, r: int) -> str:
    """The metric of the space in which a round's centroids are."""
    feature = plan.rounds[r].steps[-1].feature
    if feature == "potential":
        return ground_metric(plan, r + 1)
    return "l2" if feature == "ochs" else "emd"


def in_order(plan: Plan) -> list[int]:
    """The rounds, each after those that it rests on: the one before if remembered, the next if looked at."""
    rounds, found = range(len(plan.rounds)), list[int]()
    while len(found) < len(rounds):
        for r in rounds:
            needed = {r - 1} if plan.rounds[r].recall and r > 0 else set()
            needed |= {r + 1} & set(rounds) if looks_ahead(plan, r) else set()
            if r not in found and needed <= set(found):
                found.append(r)
                break
        else:
            raise AbstractionError("a round looks at the next one, which remembers it: let the next be without recall")
    return found


def build(
    identity: Identity,
    out: Path,
    *,
    cache: Path | None = None,
    threads: int = 1,
    seconds: float | None = None,
    tick: Tick = lambda what, share: None,
) -> CardAbstraction:
    """Build an abstraction in a folder, or what is missing of it.

    With so many `seconds`, each round may move centroids for its share of them only: what comes out then depends on the
    machine.
    """
    check(identity)
    with artifact.alone(out):
        _begin(identity, out)
        features = Features(identity.deal, cache, threads, tick)
        done: dict[int, RoundBuckets] = {}
        for r in in_order(identity.plan):
            try:
                done[r] = load_round(out, identity, r)
            except ArtifactError:
                share = None if seconds is None else seconds / len(identity.plan.rounds)
                _build_round(identity, out, r, features, done, share, tick)
                done[r] = load_round(out, identity, r)
    return CardAbstraction.load(out)


def _begin(identity: Identity, out: Path) -> None:
    """Say in the folder what it is to hold; refuse one that holds something else."""
    place = out / DESCRIPTION
    if place.exists():
        there = Identity.read(out)
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
    identity: Identity,
    out: Path,
    r: int,
    features: Features,
    done: dict[int, RoundBuckets],
    seconds: float | None,
    tick: Tick,
) -> None:
    began = perf_counter()
    plan, deal, what = identity.plan, identity.deal, f"round {r + 1}"
    spots = deal.spots(layout(plan, deal, r))
    before, after = None, None
    if plan.rounds[r].recall and r > 0:
        before = Before(done[r - 1].spots, done[r - 1].table, done[r - 1].buckets)
    coming = done.get(r + 1) if looks_ahead(plan, r) else None
    if coming and coming.centroids is not None:
        absolute = ground_metric(plan, r + 1) == "emd"
        ground = ground_of(coming.centroids, absolute=absolute, apart=coming.apart)
        after = After(coming.spots, coming.table, ground)
    said = partial(tick, f"{what}: fitting")
    fitting = Fitting(plan, features, r, spots, before, after, seconds, said)
    fitted = fitting.fit(plan.rounds[r].steps)
    buckets = fitted[-1].buckets
    dtype, shape = np.min_scalar_type(buckets - 1), (len(spots.boards), len(spots.tables.bits))
    inputs = {"abstraction": identity.fingerprint}
    with artifact.draft(round_folder(out, r), KIND, shape[0] * shape[1] * dtype.itemsize, inputs) as new:
        table = new.room("buckets", dtype, shape)

        def write(part: Part) -> tuple[Array, float]:
            labels, costs = fitting.sort(part, fitted)
            spots_kernels.spread(spots.tables, part.start, part.end, labels, table)
            cost = 0.0 if costs is None else float(part.weights @ costs.astype(np.float64))
            return np.bincount(labels, part.weights.astype(np.float64), buckets), cost

        sizes, cost = np.zeros(buckets), 0.0
        for some_sizes, some_cost in fitting.parts(write, lambda share: tick(f"{what}: assigning", share)):
            sizes += some_sizes
            cost += some_cost
        if not sizes.all():
            raise AbstractionError(f"{int((sizes == 0).sum())} of {buckets} buckets of {what} are empty: ask for fewer")
        new.save("sizes", sizes.astype(np.int64))
        match fitted[-1]:
            case Means(clusters=clusters):
                new.save("centroids", clusters.centroids)
            case Potentials(after=ahead, means=means):
                new.save("centroids", centres_of(means, ahead.ground))
                if r > 0:
                    new.save("apart", apart_of(means, ahead.ground, features.threads))
        if isinstance(fitted[-1], Means | Potentials):
            new.figures["distortion"] = cost / sizes.sum()
        new.figures["seconds"] = perf_counter() - began
