"""[Brown15 figure 1]: a larger hierarchical abstraction, solved by distributed workers, against a smaller flat one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from kilt.abstraction.plan import PublicPlan
from kilt.engines import LocalEngine
from kilt.evaluate.head_to_head import AbstractStrategy, post_processed
from kilt.solve.distributed.shared import SharedGame
from kilt.solve.distributed.solver import DistributedMCCFR
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.strategy.postprocess import rule_named
from kilt_lab.cells import Axes, Cell, Setting, changes, rows
from kilt_lab.claims import every, positive
from kilt_lab.experiment import Experiment, Found, Lab
from kilt_lab.papers.brown15.post_processing import PURE
from kilt_lab.pieces.agents import checkpoints, game_in_buckets, won_by

SOURCE, ACTIONS = "[Brown15 figure 1]", "50%, 1x, a; 1x, a; a"
LARGE, SMALL = "IR-KE-KO {}-15-15-15", "IR-KE-KO {}-25-25-25"  # 150 buckets in ten classes, and a sixth of that
CLASSES = PublicPlan(2, 10, codes=0)
OPPONENTS = {"A": "IR-KE-KO {}-100-100-100", "B": "IR-PHS-PHS {}-50-50-50"}  # for the strongest two agents of 2013
DIRECT = "the smaller one"
NODES, TIMES = (250_000, 1_000_000, 4_000_000), (1, 15)  # visited by a core; cores per core of the smaller abstraction
# Further checkpoints with the same number of cores: does the larger abstraction catch up?
LONGER = (16_000_000, 64_000_000, 256_000_000)
LEARNT, APART = 10_000_000, 1000  # nodes visited by opponents, and offset of their seeds
BLADES, BATCH, DEALS = 2, 256, 5_000
NONE = "none"  # no post-processing
LINEAR = SamplingOptions(linear=True)


class Checkpoint(NamedTuple):
    """A row: where and against which opponent the two abstractions are compared."""

    nodes: int  # visited by a core
    times: int  # cores per core of the smaller abstraction
    opponent: str
    rule: str = NONE  # of post-processing

    @property
    def cores(self) -> str:
        """The number of cores, in words."""
        return f"{self.times} times as many cores" if self.times > 1 else "as many cores"

    @property
    def reached(self) -> int:
        """Nodes that the larger abstraction has visited at the checkpoint."""
        return self.nodes * self.times

    def __str__(self) -> str:
        return f"{self.nodes / 1e6:g}M nodes, {self.against}"

    @property
    def setup(self) -> str:
        """The cores and the opponent, in the words of a claim."""
        cores = f"{self.times} times as many cores" if self.times > 1 else "the same number of cores"
        purified = "" if self.rule == NONE else ", with both purified"
        return f"with {cores}, against {self.opponent}{purified}"

    @property
    def against(self) -> str:
        """The cores and the opponent, in the name of the row and the legend of the figure."""
        purified = "" if self.rule == NONE else ", purified"
        return f"{self.cores}, against {self.opponent}{purified}"


CHECKPOINTS = [
    Checkpoint(nodes, times, name, rule)
    for times, name, rule in product(TIMES, (*OPPONENTS, DIRECT), (NONE, PURE))
    for nodes in (NODES if times > 1 else NODES + LONGER)
]
ROWS = {str(row): row for row in CHECKPOINTS}


@dataclass(frozen=True)
class OverTime(Experiment):
    """Measure whether a larger card abstraction wins more than a smaller one while both are being solved.

    The paper compares a large and a small card abstraction. The large one has 60 classes of flops with 500 buckets
    each, and was solved on 961 cores. The small one has 5,000 buckets, and was solved on 64 cores with shared memory.
    During solving, their strategies play against the two strongest agents of 2013.

    When does a strategy with a larger card abstraction begin to win more than one with a smaller abstraction? This
    experiment answers for hold'em with 20 cards. As in the paper, the larger abstraction has six times as many buckets.
    Two agents of kilt, named A and B, serve as opponents.

    The two abstractions are compared at checkpoints, after each core has visited a given number of nodes. In one
    comparison, both are solved on the same number of cores. In the other, the larger one is solved on 15 times as many
    cores, as in the paper.

    The experiment simulates many cores on one machine, which does the work of all cores in turn. The result is the same
    as on many cores, because it does not depend on the number of workers.

    Each value in the table is the larger abstraction's winnings minus the smaller one's, against the same opponent and
    on the same deals. In further columns, the two abstractions play against each other. All agents use the same betting
    tree, so winnings can be averaged over all betting sequences.

    Each strategy plays in two versions: as solved, and purified, which means that it always takes the most probable
    action. As in the paper, the first action of a hand is not purified [Brown15 footnote 5].
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Compare both abstractions at a checkpoint."""
        at = ROWS[case]
        larger, smaller = (at.rule, at.reached, True), (at.rule, at.nodes, False)
        if at.opponent == DIRECT:
            won = won_by(self.played(*larger, seed, lab), self.played(*smaller, seed, lab), DEALS, seed)
        else:
            won = self.won(at.opponent, *larger, seed, lab) - self.won(at.opponent, *smaller, seed, lab)
        return Cell({case: won})

    def won(self, name: str, rule: str, nodes: int, large: bool, seed: int, lab: Lab) -> float:
        """Return the winnings of one abstraction against an opponent, in mbb/h."""

        def met() -> float:
            theirs = lab.shared(name, lambda: self.solved(OPPONENTS[name], seed + APART, [LEARNT], lab)[LEARNT])
            return won_by(self.played(rule, nodes, large, seed, lab), theirs, DEALS, seed)

        return lab.shared(f"{name}, {rule}, {nodes}, {large}", met)

    def played(self, rule: str, nodes: int, large: bool, seed: int, lab: Lab) -> AbstractStrategy:
        """Return the post-processed strategy of one abstraction after some nodes."""
        found = lab.shared(f"{large}", partial(self.larger if large else self.smaller, seed, lab))
        return lab.shared(f"{rule}, {nodes}, {large}", lambda: post_processed(found[nodes], rule_named(rule)))

    def points(self, lab: Lab, *, large: bool) -> tuple[list[int], set[int]]:
        """Return all checkpoints up to the last requested one, and the requested ones; skipping any changes digits."""
        all_of = {row: at.reached if large else at.nodes for row, at in ROWS.items()}
        wanted = {all_of[spec.name] for spec in self.chosen(lab.setting)}
        return sorted(point for point in {*all_of.values()} if point <= max(wanted)), wanted

    def larger(self, seed: int, lab: Lab) -> dict[int, AbstractStrategy]:
        """Solve the larger abstraction with distributed workers."""
        game, folder = lab.holdem(), lab.scratch() / "large"
        large = game_in_buckets(game, ACTIONS, LARGE, folder, seed, CLASSES)
        shared = SharedGame(game, (folder,), large.actions, large.fingerprint, LINEAR, seed, BATCH, boards=BLADES)
        solver = DistributedMCCFR(shared, LocalEngine(), BLADES)
        points, wanted = self.points(lab, large=True)
        try:
            return _kept(checkpoints(solver, points), wanted, lab)
        finally:
            solver.close()

    def smaller(self, seed: int, lab: Lab) -> dict[int, AbstractStrategy]:
        """Solve the smaller abstraction."""
        points, wanted = self.points(lab, large=False)
        return self.solved(SMALL, seed, points, lab, wanted)

    def solved(
        self, plan: str, seed: int, points: Iterable[int], lab: Lab, wanted: set[int] | None = None
    ) -> dict[int, AbstractStrategy]:
        """Solve an abstraction in shared memory."""
        abstract = game_in_buckets(lab.holdem(), ACTIONS, plan, lab.scratch() / "cards", seed)
        those = [*points]
        return _kept(checkpoints(ExternalMCCFR(abstract, seed, LINEAR), those), wanted or {*those}, lab)

    def draw(self, found: Found, path: Path) -> None:
        """Draw winnings over nodes: of purified strategies, as in the paper, if they were requested."""
        shown = PURE if any(ROWS[row.name].rule == PURE for row in found.rows) else NONE
        found.plot({name: (at.against, at.nodes) for name, at in ROWS.items() if at.rule == shown}, path)


def _kept(found: Iterable[tuple[int, AbstractStrategy]], wanted: set[int], lab: Lab) -> dict[int, AbstractStrategy]:
    """Return the strategies of the requested checkpoints."""
    kept = {}
    for nodes, strategy in found:
        lab.check()
        lab.show(f"{nodes:,} nodes", 0.5)
        if nodes in wanted:
            kept[nodes] = strategy
    return kept


FIGURE_1 = OverTime(
    "tartanian7-figure-1",
    SOURCE,
    "Winnings of a larger abstraction minus those of a smaller one, over time, on a small game",
    rows=rows(ROWS, "mbb/h"),
    axes=Axes("nodes visited per core", "winnings of larger less smaller [{unit}]", logarithmic=(True, False)),
    claims={
        "the larger abstraction, solved by distributed workers, wins more than the smaller one at all checkpoints, "
        f"{rows[0].setup}": every(*(positive(str(row)) for row in rows))
        for rows in [
            [row for row in CHECKPOINTS if row[1:] == wanted]
            for wanted in product(reversed(TIMES), (*OPPONENTS, DIRECT), (PURE, NONE))
        ]
    },
    hint="no-limit hold'em with 20 cards; each of --runs clusters, solves and deals with its own seeds",
    time="a minute of CPU time for each run",
    defaults=Setting("short.nolimit.2p", runs=5),
    quick=changes(jobs=0, only=tuple(str(Checkpoint(NODES[0], times, DIRECT)) for times in TIMES), runs=3),
    shares=True,
)
