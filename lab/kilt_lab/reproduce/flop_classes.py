"""Classes of flops: figures 3 and 4 of [Schmid15], and algorithm 3 of [Brown15] as printed, on real flops.

Figure 3 shows that classes are such as people would make; rows have the largest share that flops of a kind make up of a
class. Figure 4 has the error of k-medoids by the number of classes, the best of `RESTARTS` starts. Where the deck is
small, hands are moved one by one as well: `adjusted Rand index` says how well the classes of gathered hands agree with
those, from 1 for the same classes to 0 for chance. Two rows are about a single start, as kilt has it where nothing else
is asked for: means over as many starts.

Algorithm 3 moves all boards at once to the class whose members are nearest in sum. Small classes are near to every
board, so that all run after each other into few; moved one after another they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from pathlib import Path
from time import perf_counter

import numpy as np

from kilt import artifact
from kilt.abstraction.buckets import AbstractionSpec, load_classes
from kilt.abstraction.classes import BoardClasses
from kilt.abstraction.cluster_kernels import Labels
from kilt.abstraction.features import Deal
from kilt.abstraction.partition import errors, partition
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import Plan, PublicPlan
from kilt.arrays import Array, BoolArray, IntArray
from kilt.cards.deck import Deck
from kilt.evaluate.flops import Watcher
from kilt.jit import cores
from kilt.players.agents import load_holdem
from kilt.viz.boards import plot_errors
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.claims import Claim, Row, as_printed, contrast, lower
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, SMALL = "holdem.nolimit.2p.25bb", "short.nolimit.2p"
FLOP = 2  # the round
CLASSES, MOST, RESTARTS, RUNS = 20, 30, 100, 3  # of [Schmid15]
FEW = 200  # flops; where there are no more, hands are moved one by one too
PURE = 0.9  # share of a class that makes it one of flops of a kind
WANTED, BASE = 60, " 169-60-60-60"  # classes of [Brown15], and buckets that tell flops apart
SHOWN = (1, 5, 10, 15, 20, 25, 30)
AGREEMENT = "adjusted Rand index of gathered and exact classes"
ONE_START, STABLE = "20 classes, one start", "adjusted Rand index of one start and the best"


def _one_suit(boards: IntArray, deck: Deck) -> BoolArray:
    suits = boards % deck.suits
    return np.asarray((suits == suits[:, :1]).all(axis=1))


def _paired(boards: IntArray, deck: Deck) -> BoolArray:
    return np.asarray((np.diff(np.sort(boards // deck.suits, axis=1), axis=1) == 0).any(axis=1))


def _straight(boards: IntArray, deck: Deck) -> BoolArray:
    """Three ranks within five, an ace high or low."""
    ranks = boards // deck.suits
    low = np.where(ranks == deck.ranks - 1, -1, ranks)
    near = np.minimum(np.ptp(ranks, axis=1), np.ptp(low, axis=1)) < 5
    return np.asarray(near & ~_paired(boards, deck))


KINDS: dict[str, Callable[[IntArray, Deck], BoolArray]] = {
    "flops of one suit": _one_suit,
    "pairs on the flop": _paired,
    "flops with a possible straight": _straight,
}


def purity(labels: Labels, is_so: BoolArray) -> float:
    """The largest share that points of a kind make up of any class.

    >>> purity(np.array([0, 0, 1, 1, 1]), np.array([True, False, True, True, False])).__round__(3)
    0.667
    """
    return float(np.max(np.bincount(labels, is_so) / np.bincount(labels)))


def adjusted_rand_index(one: Labels, other: Labels) -> float:
    """How well two clusterings agree: 1 where they are the same, about 0 where they agree by chance [Hubert85].

    >>> adjusted_rand_index(np.array([0, 0, 1, 1]), np.array([5, 5, 2, 2]))
    1.0
    """
    _, cells = np.unique(np.column_stack([one, other]), axis=0, return_counts=True)
    together = sum(comb(count, 2) for count in cells.tolist())
    alone = [sum(comb(count, 2) for count in np.unique(each, return_counts=True)[1].tolist()) for each in (one, other)]
    chance, most = alone[0] * alone[1] / comb(len(one), 2), sum(alone) / 2
    return 1.0 if most == chance else (together - chance) / (most - chance)


def compared(
    deal: Deal, public: PublicPlan, folder: Path, threads: int, watcher: Watcher
) -> tuple[BoardClasses, Array]:
    """The flops of a deal in classes, with the distances that these are made from; kept in a folder."""
    identity = AbstractionSpec(f"{public.method} {public.classes}", deal, Plan((), (public,)))
    tick = lambda what, share: watcher.show(what, share, None)  # noqa: E731
    build(identity, folder, cache=artifact.cache_folder(), threads=threads, tick=tick)
    classes = load_classes(folder, identity, public)
    assert classes.distances is not None
    return classes, classes.distances


def _figure_4(asked: Request, watcher: Watcher) -> ReproductionResult:
    out = asked.out or Path(SCHMID.keeps)
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
    require_drawable(out / "errors.png")
    threads = cores() if asked.threads is None else asked.threads
    deal = Deal.of(load_holdem(asked.game or GAME))
    flops = len(deal.holdings((deal.sizes[1],)).boards)
    began, found = perf_counter(), dict[str, list[float]]()
    public = PublicPlan(FLOP, min(CLASSES, flops // 2), method="schmid")
    watcher.say(f"distances of {flops:,} flops")
    classes, gathered = compared(deal, public, out / "gathered", threads, watcher)
    exact = None
    if flops <= FEW:
        watcher.say("… and with hands moved one by one")
        _, exact = compared(deal, PublicPlan(**vars(public) | {"exact": True}), out / "exact", threads, watcher)
    boards, most = classes.holdings.tables.cards, min(MOST, flops)
    for run in range(RUNS if asked.runs is None else asked.runs):
        if watcher.stopped():
            break
        watcher.say(f"run {run + 1}: k-medoids with 1 to {most} classes, the best of {RESTARTS} starts")
        curve = errors(gathered, most, restarts=RESTARTS, seed=run)
        labels = partition(gathered, public.classes, way="medoids", restarts=RESTARTS, seed=run).labels
        alone = [partition(gathered, public.classes, way="medoids", seed=RESTARTS * run + n) for n in range(RESTARTS)]
        values = {f"{k} classes": float(curve[k - 1]) for k in SHOWN if k <= most}
        values |= {kind: purity(labels, is_so(boards, deal.deck)) for kind, is_so in KINDS.items()}
        values[ONE_START] = float(np.mean([one.error for one in alone]))
        values[STABLE] = float(np.mean([adjusted_rand_index(one.labels, labels) for one in alone]))
        if exact is not None:
            theirs = partition(exact, public.classes, way="medoids", restarts=RESTARTS, seed=run).labels
            values[AGREEMENT] = adjusted_rand_index(labels, theirs)
        for row, value in values.items():
            found.setdefault(row, []).append(value)
        plot_errors(curve, f"k-medoids, {flops:,} flops, the best of {RESTARTS} starts", out / "errors.png")
    seconds = perf_counter() - began
    rows = [
        Row.of_runs(row, values, "bins" if row.partition(" ")[0].isdecimal() else "", seconds, {"flops": flops})
        for row, values in found.items()
        if not asked.only or row in asked.only
    ]
    return ReproductionResult(SCHMID.what, rows, out / "errors.png" if rows else None)


def _algorithm_3(asked: Request, watcher: Watcher) -> ReproductionResult:
    out, threads = asked.out or Path(PRINTED.keeps), cores() if asked.threads is None else asked.threads
    deal = Deal.of(load_holdem(asked.game or GAME))
    flops, hands = len(deal.holdings((deal.sizes[1],)).boards), len(deal.holdings((0,)))
    wanted, began = min(WANTED, flops // 3), perf_counter()
    public = PublicPlan(FLOP, wanted, base="IR-KE-KO" + BASE.replace(" 169", f" {hands}"))
    watcher.say(f"distances of {flops:,} flops")
    _, distances = compared(deal, public, out, threads, watcher)
    rows, ways = list[Row](), {"all at once, as printed": "printed", "one after another": "sum"}
    for row, way in ways.items():
        if asked.only and row not in asked.only:
            continue
        done = [
            partition(distances, wanted, way=way, seed=run) for run in range(RUNS if asked.runs is None else asked.runs)
        ]
        sizes = [np.sort(np.bincount(one.labels)).tolist() for one in done]
        more = {"flops": flops, "sizes": sizes, "passes": [one.passes for one in done]}
        whole = Row.of_runs(row, [one.clusters for one in done], "classes", perf_counter() - began, more, float(wanted))
        rows.append(whole)
    return ReproductionResult(PRINTED.what, rows)


SCHMID = Reproduction(
    what="[Schmid15 figures 3 and 4]: what classes of flops are, and their error by their number",
    time="some 15 minutes for the distances of all flops, then 17 of a core for each run",
    rows=(*(f"{k} classes" for k in SHOWN), *KINDS, ONE_START, STABLE, AGREEMENT),
    run=_figure_4,
    options=("only", "game", "threads", "out", "runs"),
    hint=f"--game {SMALL} has few flops, and exact distances too; each of --runs has other starts",
    claims=(
        Claim(
            "classes go on lowering the error: it is lower with 30 than with 20",
            "[Schmid15 figure 4]",
            lower("30 classes", "20 classes"),
        ),
        *(
            Claim(
                f"there is a class of {kind}: they are {PURE:.0%} of it or more, a margin that is ours",
                "[Schmid15 figure 3]",
                contrast({kind: 1.0}, PURE),
            )
            for kind in KINDS
        ),
    ),
    quick=Request(game=SMALL),
    keeps="kilt-schmid-figure-4",
)
PRINTED = Reproduction(
    what="[Brown15 algorithm 3] on real flops: classes that are left, as printed and with one board moved at a time",
    time="some minutes for the buckets that tell flops apart",
    rows=("all at once, as printed", "one after another"),
    run=_algorithm_3,
    options=("only", "game", "threads", "out", "runs"),
    hint=f"--game {SMALL} has few flops; each of --runs has other seeds",
    claims=(
        Claim(
            "algorithm 3 as printed, all boards at once, keeps all classes that are asked for",
            "[Brown15 algorithm 3]",
            as_printed("all at once, as printed", 0.5),
        ),
        Claim(
            "… with one board moved after another it does",
            "[Brown15 algorithm 3]",
            as_printed("one after another", 0.5),
        ),
    ),
    quick=Request(game=SMALL),
    keeps="kilt-tartanian7-algorithm-3",
)
