"""Measure distances between boards, cluster similar boards into classes, and save the classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import comb
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kilt import artifact
from kilt.abstraction.buckets import CLASSES, AbstractionSpec, classes_folder, layout_with_classes, load_classes
from kilt.abstraction.classes import BoardClasses, order_classes
from kilt.abstraction.features import FEATURES, Deal, Features
from kilt.abstraction.partition import partition
from kilt.abstraction.plan import METHODS as WAY_OF
from kilt.abstraction.plan import Plan, PublicPlan
from kilt.abstraction.public import METHODS, BoardComparison, BoardSample, exact_distances
from kilt.abstraction.rounds import RoundBuckets
from kilt.arrays import Array
from kilt.errors import AbstractionError, ArtifactError

MAX_COMPARED_BOARDS = 30_000  # maximum number of boards that are compared with each other: their distances take 3.6 GB


class ComparisonBase(NamedTuple):
    """The base of a public abstraction: boards are compared by the buckets of their hands in it."""

    fingerprint: str  # empty if boards are compared without a base
    rounds: Callable[[int], RoundBuckets]  # returns the buckets of a round, and builds them if necessary


def check_board_classes(identity: AbstractionSpec, place: int) -> None:
    """Check that a plan's classes of boards are possible with the cards of the game.

    Raises AbstractionError otherwise.
    """
    plan, deal = identity.plan, identity.deal
    public, rounds = plan.public[place], len(deal.board_cards)
    r = public.round - 1
    if not 0 <= r < rounds:
        raise AbstractionError(
            f"the plan has classes for the boards of round {public.round}, but the rounds of the game are 1 to {rounds}"
        )
    if deal.board_cards[r] == 0:
        raise AbstractionError(f"round {public.round} has no new public cards: choose another for classes of boards")
    if place and plan.public[place - 1].round == public.round:
        raise AbstractionError(f"the plan has classes for the boards of round {public.round} twice: remove one")
    boards = deal.holdings(layout_with_classes(plan, deal, public)).board_count
    if public.classes > boards:
        raise AbstractionError(f"the plan asks for {public.classes} classes of {boards} boards: use fewer")
    if not place and boards > MAX_COMPARED_BOARDS:
        raise AbstractionError(
            f"round {public.round} has {boards:,} boards, too many to compare all of them: choose an earlier round, or "
            "let an earlier round have classes too"
        )
    if public.boards and place:
        raise AbstractionError(
            f"classes of round {public.round} are inside others: they cannot be taken from {public.boards}"
        )
    if public.boards:
        load_built_classes(identity, public)
    if public.until > rounds:
        raise AbstractionError(f"`until` is round {public.until}; the game has {rounds}: use 0 for all later rounds")
    if public.until and place < len(plan.public) - 1:
        raise AbstractionError(
            f"round {plan.public[place + 1].round} has classes inside those of round {public.round}, so it knows them: "
            f"leave out until = {public.until}"
        )
    if public.method == "waugh":
        if r == 0:
            raise AbstractionError("the first round has no round before it: use tartanian7 or schmid")
        require_deal_order(plan, deal, public, "waugh")
    if public.method == "schmid" and FEATURES[public.ground].as_dealt:
        require_deal_order(plan, deal, public, "schmid with the history of hands")
    if plan.rounds and plan.rounds[r].recall and r > 0:
        raise AbstractionError(f"round {public.round} has classes of boards and remembers buckets: use recall = false")


def require_deal_order(plan: Plan, deal: Deal, public: PublicPlan, who: str) -> None:
    """Check that a plan keeps the deal order of board cards if its comparison method needs it.

    Such a method distinguishes which round dealt each board card. Raises AbstractionError if the plan does not.
    """
    dealt = tuple(added for added in deal.board_cards[: public.round] if added)
    if layout_with_classes(plan, deal, public) != dealt:
        raise AbstractionError(
            f"{who} looks at the boards of rounds before round {public.round}: let these have classes too, or use "
            'tartanian7, or schmid with ground = "histogram"'
        )


def build_classes(
    identity: AbstractionSpec,
    out: Path,
    public: PublicPlan,
    before: BoardClasses | None,
    features: Features,
    base: ComparisonBase,
) -> BoardClasses:
    """Group the boards of a round into classes of similar boards.

    If an earlier round has classes, each of them is divided separately.

    Classes that the folder already has are loaded. Distances that take long to compute are saved while they are
    computed: in the cache, for all plans that compare boards in the same way, whatever their seeds and numbers of
    buckets; if there is no cache, in the folder.

    Raises
    ------
    AbstractionError
        A class has too many boards to compare, or too few for the classes that the plan asks for.
    """
    try:
        return load_classes(out, identity, public)
    except ArtifactError:
        pass
    began, deal, r = perf_counter(), identity.deal, public.round - 1
    holdings = deal.holdings(layout_with_classes(identity.plan, deal, public))
    inputs, folder = {"abstraction": identity.fingerprint}, classes_folder(out, public)
    if public.boards:
        ready = load_built_classes(identity, public)
        artifact.write(folder, CLASSES, {"classes": ready.labels}, inputs=inputs, figures=dict(ready.figures))
        return load_classes(out, identity, public)
    parent = before.look_up(holdings.tables.cards) if before else np.zeros(len(holdings.boards), dtype=np.int32)
    labels, error = np.empty(len(parent), dtype=np.int32), 0.0
    arrays: dict[str, Array] = {}
    by = distances_fingerprint(identity, public, base)
    cached = features.folder / "distances" / by if features.folder else out / f"distances-{public.round}"
    for group in range(before.number if before else 1):
        chosen = np.flatnonzero(parent == group)
        if len(chosen) > MAX_COMPARED_BOARDS:
            raise AbstractionError(
                f"a class has {len(chosen):,} boards of round {public.round}, too many to compare all of them: use "
                "more classes before"
            )
        if len(chosen) < public.classes:
            raise AbstractionError(
                f"the plan asks for {public.classes} classes inside a class of {len(chosen)} boards: use fewer"
            )
        states, said = BoardSample(deal, r, holdings, chosen), partial(features.tick, f"boards of round {public.round}")
        kept = cached if before is None else None
        comparing = BoardComparison(states, public, base.rounds, features, identity.plan.bins, kept, by, said)
        distances = METHODS[public.method](comparing)
        way = public.clustering or WAY_OF[public.method]
        found = partition(distances, public.classes, way=way, restarts=public.restarts, seed=public.seed)
        if found.clusters < public.classes:
            raise AbstractionError(
                f"the boards fell into {found.clusters} classes, not {public.classes}: use another way than {way}"
            )
        labels[chosen] = group * public.classes + order_classes(found.labels, states.boards, deal.deck)
        error += found.error * len(chosen) / len(labels)
        if before is None:
            arrays["distances"] = distances
    figures = {"error": error, "seconds": perf_counter() - began}
    artifact.write(folder, CLASSES, {"classes": labels} | arrays, inputs=inputs, figures=figures)
    return load_classes(out, identity, public)


def distances_fingerprint(identity: AbstractionSpec, public: PublicPlan, base: ComparisonBase) -> str:
    """Return a hash of all settings that affect the distances between boards."""
    boards, bins = layout_with_classes(identity.plan, identity.deal, public), identity.plan.bins
    how = public.round, public.method, public.ground, public.exact, base.fingerprint
    return artifact.fingerprint(artifact.stable_repr(identity.deal), artifact.stable_repr((boards, bins, *how)))


def load_built_classes(identity: AbstractionSpec, public: PublicPlan) -> BoardClasses:
    """Load classes of boards from disk.

    Raises AbstractionError if they do not fit the plan.
    """
    there = AbstractionSpec.read(Path(public.boards))
    same = [one for one in there.plan.public if one.round == public.round]
    if there.deal != identity.deal or not same or there.plan.public[0] != same[0]:
        raise AbstractionError(f"{public.boards} has no classes of the boards of round {public.round} of these cards")
    classes = load_classes(Path(public.boards), there, same[0])
    if classes.number != public.classes:
        raise AbstractionError(
            f"{public.boards} has {classes.number} classes, not {public.classes}: say classes = {classes.number}"
        )
    return classes


def measure_comparisons(identity: AbstractionSpec, public: PublicPlan, features: Features) -> tuple[float, int]:
    """Measure how long a comparison of two boards takes.

    Returns the time in seconds, and the number of pairs of boards.

    Boards are compared hand by hand. The time is measured on a few boards.
    """
    holdings = identity.deal.holdings(layout_with_classes(identity.plan, identity.deal, public))
    some = np.linspace(0, len(holdings.boards) - 1, 6).astype(np.int64)
    states = BoardSample(identity.deal, public.round - 1, holdings, some)
    pair = exact_distances(states, public.ground, features, identity.plan.bins).distance
    pair(0, 1)
    began = perf_counter()
    for place in range(len(some) - 1):
        pair(place, place + 1)
    return (perf_counter() - began) / (len(some) - 1), comb(len(holdings.boards), 2)
