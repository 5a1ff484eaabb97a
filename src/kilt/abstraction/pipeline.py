"""From a plan to an abstraction on disk, round by round: features, steps, table.

A round that is finished stays: a build that was stopped goes on with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

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
from kilt.abstraction.steps import Before, Fitting, Means, Part
from kilt.artifact import Array
from kilt.errors import AbstractionError, ArtifactError


def check(identity: Identity) -> None:
    """Raise AbstractionError where a plan does not fit the deal."""
    plan, deal = identity.plan, identity.deal
    if len(plan.rounds) != len(deal.board_cards):
        raise AbstractionError(f"the plan has {len(plan.rounds)} rounds; the game has {len(deal.board_cards)}")


def build(
    identity: Identity,
    out: Path,
    *,
    cache: Path | None = None,
    threads: int = 1,
    tick: Tick = lambda what, share: None,
    stop: Callable[[], bool] = lambda: False,
) -> CardAbstraction | None:
    """Build an abstraction in a folder, or what is missing of it; None where `stop` said so between two rounds."""
    check(identity)
    with artifact.alone(out):
        _begin(identity, out)
        features = Features(identity.deal, cache, threads, tick)
        done: RoundBuckets | None = None
        for r in range(len(identity.plan.rounds)):
            if stop():
                return None
            try:
                done = load_round(out, identity, r)
            except ArtifactError:
                _build_round(identity, out, r, features, done, tick)
                done = load_round(out, identity, r)
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
    elif out.exists() and any(out.iterdir()):
        raise AbstractionError(f"{out} is there and holds no abstraction: choose another folder")
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
        artifact.write_text(place, json.dumps(identity.data(), indent=2))


def _build_round(
    identity: Identity, out: Path, r: int, features: Features, before: RoundBuckets | None, tick: Tick
) -> None:
    began = perf_counter()
    plan, deal, what = identity.plan, identity.deal, f"round {r + 1}"
    spots = deal.spots(layout(plan, deal, r))
    kept = None
    if plan.rounds[r].recall and before:
        kept = Before(before.spots, before.table, before.buckets)
    fitting = Fitting(plan, features, r, spots, kept, lambda share: tick(f"{what}: fitting", share))
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
        if isinstance(fitted[-1], Means):
            new.save("centroids", fitted[-1].clusters.centroids)
            new.figures["distortion"] = cost / sizes.sum()
        new.figures.update(buckets=buckets, spots=len(spots), seconds=perf_counter() - began)
