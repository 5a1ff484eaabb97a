"""[Johanson16 chapter 5]: distances between hands, and the quality of abstractions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from kilt.abstraction.features import BINS
from kilt.arrays import FloatArray
from kilt.cards.deck import FULL
from kilt.cards.equity import distribution, strength_histogram
from kilt.evaluate.head_to_head import AbstractStrategy
from kilt.solve.problem import CPU
from kilt_lab.cells import Cell, CellBudget, Measured, Setting, changes, rows
from kilt_lab.claims import Row, as_printed, common_seeds, contrast, every, higher, lower
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.abstracted import AbstractedPlayers, Way
from kilt_lab.pieces.agents import sampled_agent, with_spare_seeds, won_by

HANDS = {"44": "4s4h", "66": "6s6h", "JTs": "TsJs", "KQs": "QsKs"}
PAPER_5_2 = (3.101, 6.212, 5.143, 6.462, 5.286, 3.103)
PAIRS = tuple(f"{a} and {b}" for a, b in combinations(HANDS, 2))


def histograms(hands: list[str], board: str, bins: int) -> FloatArray:
    """Return the histograms of hand strength of hands on a board."""
    counts = distribution(FULL.cards(board))
    return strength_histogram(counts[[FULL.hole_index(FULL.cards(hand)) for hand in hands]], bins)


def emd(first: FloatArray, second: FloatArray) -> float:
    """Return the earth mover's distance of two histograms, in bins."""
    return float(np.abs(np.cumsum(first - second)).sum())


@dataclass(frozen=True)
class HandDistances(Experiment):
    """Compute earth mover's distances between starting hands, from histograms of their strength."""

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Measure the distance of two hands."""
        found = lab.shared("histograms", lambda: histograms([*HANDS.values()], "", BINS), per="experiment")
        one, other = (found[list(HANDS).index(hand)] for hand in case.split(" and "))
        return Cell({case: emd(one, other)}, exact=True)


FIGURE_5_2 = HandDistances(
    "figure-5.2",
    "[Johanson16 figure 5.2]",
    "Earth mover's distances of four starting hands, 50 bins",
    rows=rows(PAIRS, "bins", paper=dict(zip(PAIRS, PAPER_5_2, strict=True))),
    claims={
        f"the distance of {name} is {printed:g} bins, up to the last digit": as_printed(name, 1e-3)
        for name, printed in zip(PAIRS, PAPER_5_2, strict=True)
    },
    time="seconds",
    defaults=Setting(runs=0),
)

PAPER_5_4 = {  # (recall, before the last round, last round): CFR, CFR-BR
    ("PR", "PHS", "PHS"): (288.942, 89.632),
    ("PR", "PHS", "KO"): (289.152, 90.371),
    ("PR", "KE", "PHS"): (281.63, 90.720),
    ("PR", "KE", "KO"): (282.856, 84.039),
    ("PR", "KO", "PHS"): (335.902, 105.389),
    ("PR", "KO", "KO"): (330.319, 105.523),
    ("IR", "PHS", "PHS"): (358.188, 94.841),
    ("IR", "PHS", "KO"): (318.197, 85.275),
    ("IR", "KE", "PHS"): (339.872, 80.557),
    ("IR", "KE", "KO"): (282.395, 64.820),
    ("IR", "KO", "PHS"): (355.881, 88.546),
    ("IR", "KO", "KO"): (291.574, 73.091),
}
BUCKETS = {"PR": "5-3-3-3", "IR": "25-104-104-104"}
SOURCE, GAME, VARIANT = "[Johanson16 table 5.4]", "short.4-1", "linear"
NAMES = {way: f"{'-'.join(way)} {BUCKETS[way[0]]}" for way in PAPER_5_4}
EARLY, LATE = ("PHS", "KE", "KO"), ("PHS", "KO")  # features before the last round, and in it
CFR_BR = {way: f"{name} cfr-br" for way, name in NAMES.items()}
CLAIMS = {
    "CFR-BR finds a less exploitable strategy than CFR, in every abstraction": every(
        *(lower(f"{name} cfr-br", f"{name} both") for name in NAMES.values())
    ),
    "with CFR-BR, imperfect recall is less exploitable than perfect recall, averaged over features": contrast(
        {CFR_BR[recall, *rest]: sign / 6 for recall, sign in (("PR", 1), ("IR", -1)) for rest in product(EARLY, LATE)}
    ),
    "with CFR-BR and imperfect recall, histograms before the last round are less exploitable than "
    "percentiles": contrast(
        {CFR_BR["IR", early, late]: sign / 2 for early, sign in (("PHS", 1), ("KE", -1)) for late in LATE}
    ),
    "with CFR-BR and imperfect recall, OCHS in the last round is less exploitable than percentiles": contrast(
        {CFR_BR["IR", early, late]: sign / 3 for early in EARLY for late, sign in (("PHS", 1), ("KO", -1))}
    ),
}


def _by_plan(
    name: str, source: str, title: str, ways: Mapping[str, Way], paper: Mapping[str, float], **how: Any
) -> Any:
    """Return an experiment that compares abstractions on a small game.

    The paper compares abstractions of limit hold'em with 57 million information sets. Here the game is [4-1] hold'em
    with 20 cards, four rounds and one raise per round. The abstractions have about 16,000 information sets: 4 · 5 + 12
    · 15 + 36 · 45 + 108 · 135 with perfect recall, and 4 · 25 + (12 + 36 + 108) · 104 without it, where 25 buckets
    distinguish all hands. Only the order can be compared with limit hold'em. Iterations have linear weights, which make
    CFR-BR converge sooner to the same limit.
    """
    return AbstractedPlayers(
        name,
        source,
        title,
        rows=rows(ways, "mbb/g", paper=paper, where="holdem.limit.2p"),
        hint="each of --runs has separate buckets and seeds; --device gpu for rows of CFR-BR",
        time="less if CFR-BR settles earlier; plus time to measure",
        defaults=Setting(GAME, CellBudget.of(minutes=1), 1, CPU, jobs=0),
        ways=ways,
        trunk=2,
        variant=VARIANT,
        **how,
    )


TABLE_5_4 = _by_plan(
    "table-5.4-small",
    SOURCE,
    "Exploitability of CFR and CFR-BR by abstraction, on [4-1] hold'em with 20 cards",
    {f"{name} {way}": Way(name, way) for name in NAMES.values() for way in ("both", "cfr-br")},
    {
        f"{NAMES[way]} {name}": number
        for way, numbers in PAPER_5_4.items()
        for name, number in zip(("both", "cfr-br"), numbers, strict=True)
    },
    claims=CLAIMS,
    quick=changes(
        only=tuple(CFR_BR["IR", *rest] for rest in product(EARLY, LATE)), budget=CellBudget.of(seconds=1.2), runs=3
    ),
)

PERFECT, EQUAL = NAMES["PR", "KE", "KO"], "IR-KE-KO 5-15-45-135"  # the same number of buckets in each round
SPREAD, EARLIER = NAMES["IR", "KE", "KO"], "IR-KE-KO 25-180-180-70"  # other numbers, as many information sets
PAPER_5_5 = {PERFECT: 84.039, EQUAL: 89.7975, SPREAD: 64.820, EARLIER: 66.338}
TABLE_5_5 = _by_plan(
    "table-5.5-small",
    "[Johanson16 tables 5.5 and 11.4]",
    "Exploitability of CFR-BR by the distribution of buckets over rounds, on [4-1] hold'em with 20 cards",
    {f"{plan} cfr-br": Way(plan, "cfr-br") for plan in PAPER_5_5},
    {f"{plan} cfr-br": number for plan, number in PAPER_5_5.items()},
    claims={
        "imperfect recall is more exploitable than perfect recall with the same number of buckets in each round": (
            "[Johanson16 table 5.5]",
            lower(f"{PERFECT} cfr-br", f"{EQUAL} cfr-br"),
        ),
        "imperfect recall with equally many buckets in all rounds after the first is less exploitable than perfect "
        "recall": ("[Johanson16 table 5.5]", lower(f"{SPREAD} cfr-br", f"{PERFECT} cfr-br")),
        "with imperfect recall, fewer buckets in the last round and more before it are more exploitable than equal "
        "numbers": ("[Johanson16 table 11.4]", lower(f"{SPREAD} cfr-br", f"{EARLIER} cfr-br")),
    },
    quick=changes(budget=CellBudget.of(seconds=1.2), runs=3),
)

SIZES = (13, 26, 52)  # buckets of each round after the first
BY_SIZE = {(kind, size): f"IR-{kind} 25-{size}-{size}-{size}" for size in SIZES for kind in ("PHS-PHS", "KE-KO")}
FIGURE_5_4 = _by_plan(
    "figure-5.4-small",
    "[Johanson16 figure 5.4]",
    "Exploitability of CFR-BR by the size of the abstraction, on hold'em with 20 cards",
    {f"{plan} cfr-br": Way(plan, "cfr-br") for plan in BY_SIZE.values()},
    {},
    claims={
        "larger abstractions are less exploitable, with both kinds of features": every(
            *(
                lower(f"{BY_SIZE[kind, more]} cfr-br", f"{BY_SIZE[kind, fewer]} cfr-br")
                for kind in ("PHS-PHS", "KE-KO")
                for fewer, more in pairwise(SIZES)
            )
        ),
        "histograms and OCHS are less exploitable than percentiles at all sizes": every(
            *(lower(f"{BY_SIZE['KE-KO', n]} cfr-br", f"{BY_SIZE['PHS-PHS', n]} cfr-br") for n in SIZES)
        ),
    },
    quick=changes(game="short.2-1", budget=CellBudget.of(seconds=1.8), runs=3),
)

SOURCE_5_3 = "[Johanson16 table 5.3]"
PAPER_5_3 = {  # (before the last round, last round): perfect recall (one number is not printed), imperfect recall
    ("PHS", "PHS"): (-8.1, 1.4),
    ("PHS", "KO"): (-7.7, 7.3),
    ("KE", "PHS"): (-6.4, 15.1),
    ("KE", "KO"): (-5.3, 21.2),
    ("KO", "PHS"): (-23.9, 11.9),
    ("KO", "KO"): (None, 17.8),
}
MEANS = {
    NAMES[recall, *rest]: mean
    for rest, means in PAPER_5_3.items()
    for recall, mean in zip(("PR", "IR"), means, strict=True)
}
PLANS = tuple(NAMES.values())
DEALS = 30_000


@dataclass(frozen=True)
class MatchedPlans(Experiment):
    """Compare agents with different card abstractions by their winnings against each other, on a small game.

    Which way of sorting hands into buckets wins most in matches? The thesis solves twelve card abstractions of limit
    hold'em by public chance sampling, each for four days on 48 cores. Each pair of the resulting agents then plays ten
    million hands of duplicate poker.

    This experiment uses a smaller game, [4-1] hold'em with 20 cards (four rounds, one bet per round), and the twelve
    abstractions of table 5.4. All have the same number of information sets. External sampling solves each until it has
    visited the same number of nodes.

    A row shows an agent's winnings against the other agents. Winnings are averages over all possible bets, so only the
    cards are random. All matches of a run use the same deals. Each run makes its own clusters of hands, and has its own
    random seeds for solving and dealing.
    """

    def cases(self, setting: Setting) -> list[str]:
        """Return all pairs of the requested rows."""
        return [_pair(*both) for both in combinations([row.name for row in self.chosen(setting)], 2)]

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Play a match between two agents. The cell has the winnings of the first."""
        one, other = (lab.shared(plan, partial(self.agent, plan, seed, lab)) for plan in case.split(" against "))
        return Cell({case: won_by(one, other, DEALS, seed)})

    def agent(self, plan: str, seed: int, lab: Lab) -> AbstractStrategy:
        """Return the agent of a run for an abstraction."""
        draws = seed * len(PLANS) + PLANS.index(plan)

        def solved(clusters: int) -> AbstractStrategy:
            folder = lab.scratch() / "cards"
            return sampled_agent(lab.holdem(), "", plan, folder, lab.budget.whole, clusters, draws=draws)

        lab.check()
        lab.show(plan, 0.0)
        return with_spare_seeds(solved, seed, lab)

    def derive(self, found: Mapping[str, Row], measured: Measured) -> Iterable[Row]:
        """Yield the mean winnings of each agent over its opponents."""
        won: dict[str, dict[str, dict[int, float]]] = {}  # [agent][opponent][seed]
        for case, cells in measured.cells.items():
            one, other = case.split(" against ")
            won.setdefault(one, {})[other] = {cell.seed: cell.values[case] for cell in cells}
            won.setdefault(other, {})[one] = {cell.seed: -cell.values[case] for cell in cells}
        whole = len(measured.specs) == len(self.rows)
        for spec in measured.specs:
            others = won.get(spec.name, {})
            if not (seeds := common_seeds(others.values())):
                continue
            each = [float(np.sum([runs[seed] for runs in others.values()])) / len(others) for seed in seeds]
            against = {name: float(np.mean([runs[seed] for seed in seeds])) for name, runs in others.items()}
            paper = spec.paper if whole else None
            yield Row.of_runs(spec.name, each, spec.unit, 0.0, {"against": against}, paper, seeds)


def _pair(one: str, other: str) -> str:
    return f"{one} against {other}"


def _more(one: str, other: str, place: int) -> dict[str, float]:
    """Return weights of rows: imperfect recall agents with feature `one`, less those with feature `other`.

    `place` is the place of the feature: 0 before the last round, 1 in the last round.
    """
    ways = [rest for rest in product(EARLY, LATE) if rest[place] in (one, other)]
    return {NAMES["IR", *rest]: (1 if rest[place] == one else -1) * 2 / len(ways) for rest in ways}


BEST = NAMES["IR", "KE", "KO"]
TABLE_5_3 = MatchedPlans(
    "table-5.3-small",
    SOURCE_5_3,
    "Winnings of agents with twelve abstractions against each other, on [4-1] hold'em with 20 cards",
    rows=rows(PLANS, "mbb/g", paper=MEANS),
    claims={
        "every agent with imperfect recall wins more than every agent with perfect recall": every(
            *(higher(NAMES["IR", *one], NAMES["PR", *other]) for one in PAPER_5_3 for other in PAPER_5_3)
        ),
        "agents with imperfect recall win more than agents with perfect recall and the same features": every(
            *(higher(NAMES["IR", *rest], NAMES["PR", *rest]) for rest in PAPER_5_3)
        ),
        "with imperfect recall, histograms before the last round win more than percentiles and more than OCHS": every(
            *(contrast(_more("KE", other, 0)) for other in EARLY if other != "KE")
        ),
        "with imperfect recall, OCHS in the last round wins more than percentiles": contrast(_more("KO", "PHS", 1)),
        "IR-KE-KO wins more than every other agent": every(
            *(higher(BEST, name) for name in NAMES.values() if name != BEST)
        ),
    },
    hint="rows are means over the other requested agents; `against` in --json lists each opponent",
    time="about 70 s of CPU time for each run",
    defaults=Setting(GAME, CellBudget.of(nodes=40_000_000), 5),
    quick=changes(
        jobs=0,
        only=tuple(NAMES[recall, *rest] for recall in ("PR", "IR") for rest in (("PHS", "PHS"), ("KE", "KO"))),
        budget=CellBudget.of(nodes=10_000_000),
        runs=3,
    ),
    clocks=("nodes",),
    shares=True,
)
