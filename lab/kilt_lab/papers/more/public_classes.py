"""Classes of flops in play: the effect of the distance of flops and of the clustering on the strength of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from kilt.abstraction.plan import PublicPlan
from kilt.evaluate.head_to_head import AbstractStrategy
from kilt_lab.cells import NODES, Cell, CellBudget, Setting, changes, rows
from kilt_lab.claims import higher, positive
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.agents import sampled_agent, won_by

ACTIONS = "50%, 1x, a; 1x, a; a"
CLASSES, PLAIN, INSIDE = 10, "IR-KE-KO {}-100-100-100", "IR-KE-KO {}-10-100-100"
DEALS = 20_000
SCHMID, HISTOGRAM = "schmid, medoids", "schmid by histograms, medoids"
ALGORITHM_2, WAUGH = "tartanian7, sum", "waugh, means"
DISTANCES, WAYS = ("tartanian7", "waugh", "schmid"), ("sum", "average", "medoids")


def classes_of(row: str) -> PublicPlan:
    """Return the classes of flops of a row.

    >>> classes_of("tartanian7, sum").method, classes_of("schmid by histograms, medoids").ground
    ('tartanian7', 'histogram')
    """
    method, _, clustering = row.partition(", ")
    name, _, by = method.partition(" by ")
    return PublicPlan(2, CLASSES, name, clustering, ground="histogram" if by else "history", until=2)


@dataclass(frozen=True)
class ClassesInPlay(Experiment):
    """Compare ways to sort flops into classes by the play of agents that use the classes.

    Which distance between flops, and which way to cluster flops by it, lets an agent play best? No paper compares them
    in play, so this experiment does.

    An agent with classes of flops plays against an agent without them in this experiment, as in [Schmid15 figure 5].
    Both have the same bets and the same total number of buckets. The agents differ only on the flop.

    Three distances between flops are compared: those of [Brown15 algorithm 2], of Waugh et al. and of [Schmid15]. The
    distance of [Schmid15] has two versions. One compares hands by their strength before the flop and on the flop, and
    the other only by a histogram of their strength on the flop.

    Each run clusters flops, solves the agents and deals cards with its own random seeds. Within a run, every agent with
    classes plays against the same opponent, on the same deals. Winnings are averages over all possible betting
    sequences.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Play a match of an agent with classes against one without."""
        plain = lab.shared("plain", lambda: self.agent(PLAIN, seed, lab))
        return Cell({case: won_by(self.agent(INSIDE, seed, lab, classes_of(case)), plain, DEALS, seed)})

    def agent(self, plan: str, seed: int, lab: Lab, public: PublicPlan | None = None) -> AbstractStrategy:
        """Return an agent of a run."""
        folder = lab.scratch() / "cards"
        return sampled_agent(lab.holdem(), ACTIONS, plan, folder, lab.budget.whole, seed, public)


TABLE = ClassesInPlay(
    "public-classes",
    "",
    f"Winnings of agents with {CLASSES} classes of flops against an agent without classes",
    rows=rows((*(f"{distance}, {way}" for distance, way in product(DISTANCES, WAYS)), WAUGH, HISTOGRAM), "mbb/h"),
    claims={
        "classes of flops by earth mover's distances and medoids win against no classes": (
            "[Schmid15 figure 5]",
            positive(SCHMID),
        ),
        "classes of flops by algorithm 2 and sums win against no classes": ("[Brown15 §2]", positive(ALGORITHM_2)),
        "earth mover's distances win more than the distances of Waugh et al.": ("[Schmid15]", higher(SCHMID, WAUGH)),
        "algorithm 2 wins more than the distances of Waugh et al.": ("[Brown15 §2]", higher(ALGORITHM_2, WAUGH)),
        "distances that distinguish hands by their history win more than distances by histograms": (
            "[Schmid15]",
            higher(SCHMID, HISTOGRAM),
        ),
    },
    hint="no-limit hold'em with 20 cards; each of --runs clusters, solves and deals with its own seeds",
    time="about 25 s of CPU time for each run of all rows",
    defaults=Setting("short.nolimit.2p", CellBudget(NODES, 4_000_000), 5),
    quick=changes(jobs=0, only=(SCHMID, WAUGH), runs=3),
    clocks=(NODES,),
    shares=True,
)
