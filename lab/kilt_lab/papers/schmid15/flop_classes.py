"""Classes of flops: figures 3 and 4 of [Schmid15], and algorithm 3 of [Brown15] as printed, on real flops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kilt import machine
from kilt.abstraction.buckets import AbstractionSpec, load_classes
from kilt.abstraction.classes import BoardClasses
from kilt.abstraction.cluster_kernels import Labels
from kilt.abstraction.features import Deal
from kilt.abstraction.partition import clustering_errors, partition
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import Plan, PublicPlan
from kilt.arrays import Array, BoolArray, IntArray
from kilt.cards.deck import Deck
from kilt.evaluate.flops import ProgressMonitor
from kilt.games.playable import load_holdem
from kilt.viz.boards import plot_errors
from kilt_lab.cells import Cell, Measured, RowSpec, Setting, changes, rows
from kilt_lab.claims import Row, as_printed, contrast, lower
from kilt_lab.experiment import Experiment, Found, Lab
from kilt_lab.pieces.agents import fitted

GAME, SMALL = "holdem.nolimit.2p.25bb", "short.nolimit.2p"
FLOP = 2  # the round
CLASSES, MOST, RESTARTS = 20, 30, 100  # of [Schmid15]
FEW = 200  # flops up to which exact distances are computed as well
PURE = 0.9  # share of a class from which it consists of one kind of flops
WANTED, BASE = 60, "IR-KE-KO 169-60-60-60"  # classes of [Brown15], and buckets that distinguish flops
SHOWN = (1, 5, 10, 15, 20, 25, 30)
AGREEMENT = "adjusted Rand index of gathered and exact classes"
ONE_START, STABLE = "20 classes, one start", "adjusted Rand index of one start and the best"


def _one_suit(boards: IntArray, deck: Deck) -> BoolArray:
    suits = boards % deck.suits
    return np.asarray((suits == suits[:, :1]).all(axis=1))


def _paired(boards: IntArray, deck: Deck) -> BoolArray:
    return np.asarray((np.diff(np.sort(boards // deck.suits, axis=1), axis=1) == 0).any(axis=1))


def _straight(boards: IntArray, deck: Deck) -> BoolArray:
    """Return whether three ranks are within five, with the ace high or low, for each board."""
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
    """Return the largest share that points of a kind have in any class.

    >>> purity(np.array([0, 0, 1, 1, 1]), np.array([True, False, True, True, False])).__round__(3)
    0.667
    """
    return float(np.max(np.bincount(labels, is_so) / np.bincount(labels)))


def adjusted_rand_index(one: Labels, other: Labels) -> float:
    """Return the agreement of two clusterings: 1 if they are the same, about 0 by chance [Hubert85].

    >>> adjusted_rand_index(np.array([0, 0, 1, 1]), np.array([5, 5, 2, 2]))
    1.0
    """
    _, cells = np.unique(np.column_stack([one, other]), axis=0, return_counts=True)
    together = sum(comb(count, 2) for count in cells.tolist())
    alone = [sum(comb(count, 2) for count in np.unique(each, return_counts=True)[1].tolist()) for each in (one, other)]
    chance, most = alone[0] * alone[1] / comb(len(one), 2), sum(alone) / 2
    return 1.0 if most == chance else (together - chance) / (most - chance)


def compared(
    deal: Deal, public: PublicPlan, folder: Path, threads: int, watcher: ProgressMonitor
) -> tuple[BoardClasses, Array]:
    """Return the flops of a deal in classes, and the distances from which they were clustered; kept in a folder."""
    identity = AbstractionSpec(f"{public.method} {public.classes}", deal, Plan((), (public,)))
    tick = lambda what, share: watcher.show(what, share, None)  # noqa: E731
    build(identity, folder, cache=machine.cache_folder(), threads=threads, tick=tick)
    classes = load_classes(folder, identity, public)
    assert classes.distances is not None
    return classes, classes.distances


class Flops(NamedTuple):
    """The flops of a game, with their distances."""

    deal: Deal
    public: PublicPlan
    boards: IntArray
    gathered: Array  # distances with hands of a bucket moved together
    exact: Array | None  # distances with hands moved one by one


def _flops(lab: Lab) -> Flops:
    deal = Deal.from_game(load_holdem(lab.game))
    count = len(deal.holdings((deal.board_sizes[1],)).boards)
    public = PublicPlan(FLOP, min(CLASSES, count // 2), method="schmid")
    lab.say(f"distances of {count:,} flops")
    classes, gathered = compared(deal, public, lab.folder / "gathered", lab.threads, lab)
    exact = None
    if count <= FEW:
        lab.say("exact distances, with hands moved one by one")
        _, exact = compared(deal, PublicPlan(**vars(public) | {"exact": True}), lab.folder / "exact", lab.threads, lab)
    return Flops(deal, public, classes.holdings.tables.cards, gathered, exact)


@dataclass(frozen=True)
class FlopClasses(Experiment):
    """Describe classes of flops by the kinds of flops in them, and by the error of the clustering.

    The paper sorts flops into classes by k-medoids clustering, which chooses one flop of each class as its centre (the
    *medoid*), and puts every other flop into the class with the nearest centre. The result depends on the random flops
    with which the search starts.

    The paper's classes of flops make sense to people, as its figure 3 shows: for example, one class has only flops of a
    single suit. For each of three kinds of flops, this experiment finds the class in which the kind has its largest
    share, and reports this share.

    Figure 4 of the paper shows how well different numbers of classes represent all flops. The error is the mean
    distance between a flop and the central flop (*medoid*) of its class. Like the paper, this experiment takes the best
    of 100 random starts of the clustering.

    Flops are sorted into classes by approximate distances, for which all hands of a bucket count as one. For a deck
    with few flops, the experiment also computes exact distances, and compares the classes that result from both. Their
    agreement is measured by the adjusted Rand index, which is 1 for identical classes and 0 for chance.

    By default, kilt starts the clustering (k-medoids) only once instead of 100 times. Two rows show the cost, as means
    over 100 single starts: the error after a single start, and the agreement of its classes with those of the best
    start.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Cluster with 1, 2, … classes."""
        known = lab.shared("flops", lambda: _flops(lab), per="experiment", alone=True)
        gathered, wanted, flops = known.gathered, known.public.classes, len(known.boards)
        most = min(MOST, flops)
        lab.say(f"run {seed + 1}: k-medoids with 1 to {most} classes, the best of {RESTARTS} starts")
        curve = clustering_errors(gathered, most, restarts=RESTARTS, seed=seed)
        labels = partition(gathered, wanted, way="medoids", restarts=RESTARTS, seed=seed).labels
        alone = [partition(gathered, wanted, way="medoids", seed=RESTARTS * seed + n) for n in range(RESTARTS)]
        values = {f"{k} classes": float(curve[k - 1]) for k in SHOWN if k <= most}
        values |= {kind: purity(labels, is_so(known.boards, known.deal.deck)) for kind, is_so in KINDS.items()}
        values[ONE_START] = float(np.mean([one.error for one in alone]))
        values[STABLE] = float(np.mean([adjusted_rand_index(one.labels, labels) for one in alone]))
        if known.exact is not None:
            theirs = partition(known.exact, wanted, way="medoids", restarts=RESTARTS, seed=seed).labels
            values[AGREEMENT] = adjusted_rand_index(labels, theirs)
        return Cell(values, more={"flops": flops, "errors": np.asarray(curve).tolist()})

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return the number of flops."""
        return {"flops": cells[0].more["flops"]}

    def draw(self, found: Found, path: Path) -> None:
        """Draw the error over the number of classes."""
        last = found.measured.cells["classes"][-1]
        title = f"k-medoids, {last.more['flops']:,} flops, the best of {RESTARTS} starts"
        plot_errors(np.array(last.more["errors"]), title, path)


WAYS = {"all at once, as printed": "printed", "one after another": "sum"}


@dataclass(frozen=True)
class Algorithm3(Experiment):
    """Count the classes of boards that are left if boards move all at once, as printed, or one at a time.

    Algorithm 3 of [Brown15] sorts boards into classes in steps. In each step, every board moves to the class whose
    members have the smallest sum of distances to it. As printed in the paper, all boards move at once.

    Moving all boards at once has a flaw: a class with few members has a small sum of distances to every board, so all
    boards move to the same few classes, and the others become empty. Moving boards one at a time avoids this. The
    experiment counts the classes that are left with both methods.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Cluster in one of the two ways. The cell has the number of classes that remain."""
        wanted, distances, flops = lab.shared("flops", partial(self.distances, lab), per="experiment", alone=True)
        done = partition(distances, wanted, way=WAYS[case], seed=seed)
        sizes = np.sort(np.bincount(done.labels)).tolist()
        return Cell({case: done.clusters}, more={"flops": flops, "sizes": [sizes], "passes": [done.passes]})

    def distances(self, lab: Lab) -> tuple[int, Array, int]:
        """Return the requested number of classes, the distances of flops, and the number of flops."""
        deal = Deal.from_game(load_holdem(lab.game))
        flops = len(deal.holdings((deal.board_sizes[1],)).boards)
        wanted = min(WANTED, flops // 3)
        public = PublicPlan(FLOP, wanted, base=fitted(BASE, deal))
        lab.say(f"distances of {flops:,} flops")
        return wanted, compared(deal, public, lab.folder / "flops", lab.threads, lab)[1], flops

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Join the lists of all runs."""
        lists = {key: [one for cell in cells for one in cell.more[key]] for key in ("sizes", "passes")}
        return {"flops": cells[0].more["flops"]} | lists

    def derive(self, found: Mapping[str, Row], measured: Measured) -> Iterable[Row]:
        """Yield rows with the requested number of classes, which is smaller than the paper's if flops are few."""
        for row in found.values():
            yield row._replace(paper=float(min(WANTED, row.more["flops"] // 3)))


FIGURE_4 = FlopClasses(
    "schmid-figure-4",
    "[Schmid15 figures 3 and 4]",
    "Contents of classes of flops, and their error by the number of classes",
    rows=(
        *rows((*(f"{k} classes" for k in SHOWN), ONE_START), "bins", cases=("classes",)),
        *rows((*KINDS, STABLE, AGREEMENT), "", cases=("classes",)),
    ),
    claims={
        "more classes keep lowering the error: it is lower with 30 classes than with 20": (
            "[Schmid15 figure 4]",
            lower("30 classes", "20 classes"),
        ),
        **{
            f"one class consists of {kind}: they make up at least {PURE:.0%} of it (kilt's margin)": (
                "[Schmid15 figure 3]",
                contrast({kind: 1.0}, PURE),
            )
            for kind in KINDS
        },
    },
    hint=f"--game {SMALL} has few flops, and exact distances as well; each of --runs has other starts",
    time="about 15 minutes for the distances of all flops, then 17 minutes of one core for each run",
    defaults=Setting(GAME, runs=3, threads=2),
    quick=changes(game=SMALL),
)
ALGORITHM_3 = Algorithm3(
    "tartanian7-algorithm-3",
    "[Brown15 algorithm 3]",
    "Number of classes that remain on real flops, if boards move all at once, as printed, or one at a time",
    rows=rows(WAYS, "classes"),
    claims={
        "algorithm 3 as printed, which moves all boards at once, keeps all requested classes": as_printed(
            "all at once, as printed", 0.5
        ),
        "algorithm 3 keeps all requested classes if boards move one at a time": as_printed("one after another", 0.5),
    },
    hint=f"--game {SMALL} has few flops; each of --runs has other seeds",
    time="a few minutes for the buckets that distinguish flops",
    defaults=Setting(GAME, runs=3, threads=2),
    quick=changes(game=SMALL),
)
