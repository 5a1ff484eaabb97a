"""[Johanson16 table 5.3] on a game that fits here: which abstractions win when strategies for them meet.

The paper solves twelve abstractions of limit hold'em by public chance sampling, four days on 48 cores each, and lets
each pair play ten million hands of duplicate poker. Here they are those of `table_5_4`, of [4-1] hold'em with 20 cards
and equally many information sets, solved by external sampling until equally many nodes have been visited; all bets
are averaged over. A row is the mean of what an agent wins from the others. Each run clusters, solves and deals with
seeds of its own, and its matches are all on the same deals; agents of a run learn from deals of their own. What the
paper has for limit hold'em is beside it: it is the order that may be compared.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import AbstractStrategy
from kilt.players.agents import load_holdem
from kilt_lab.reproduce.agents import sampled_agent, with_spare_seeds, won_by
from kilt_lab.reproduce.claims import Claim, Row, contrast, every, higher
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs
from kilt_lab.reproduce.table_5_4 import EARLY, GAME, LATE, NAMES

SOURCE = "[Johanson16 table 5.3]"
PAPER = {  # (before the last round, last round): perfect recall, of which one is not printed, and imperfect recall
    ("PHS", "PHS"): (-8.1, 1.4),
    ("PHS", "KO"): (-7.7, 7.3),
    ("KE", "PHS"): (-6.4, 15.1),
    ("KE", "KO"): (-5.3, 21.2),
    ("KO", "PHS"): (-23.9, 11.9),
    ("KO", "KO"): (None, 17.8),
}
MEANS = {
    NAMES[recall, *rest]: mean
    for rest, means in PAPER.items()
    for recall, mean in zip(("PR", "IR"), means, strict=True)
}
NODES, DEALS, RUNS = 40_000_000, 30_000, 5


def crosstable(plans: tuple[str, ...], seed: int, watcher: Watcher) -> np.ndarray:
    """[agent, opponent] what agents win from each other in a run, in mbb/g; any numbers if the user wishes to stop."""
    game, won = load_holdem(GAME), np.zeros((len(plans), len(plans)))
    with TemporaryDirectory() as folder:

        def solved(plan: str, draws: int, clusters: int) -> AbstractStrategy:
            cards = Path(folder) / f"{plan} {clusters}"
            return sampled_agent(game, "", plan, cards, NODES, clusters, draws=draws)

        agents = []
        for place, plan in enumerate(plans):
            watcher.show(f"run {seed + 1}, {plan}", place / len(plans), None)
            if watcher.stopped():
                return won
            agents.append(with_spare_seeds(partial(solved, plan, seed * len(NAMES) + place), seed, watcher))
    for one, other in combinations(range(len(plans)), 2):
        won[one, other] = won_by(agents[one], agents[other], DEALS, seed)
    return won - won.T


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    plans, runs, began = asked.only or TABLE.rows, RUNS if asked.runs is None else asked.runs, process_time()
    found = whole_runs(runs, lambda seed: crosstable(plans, seed, watcher), watcher)
    seconds, won, rows = (process_time() - began) / len(plans), np.array(found), list[Row]()
    for place, plan in enumerate(plans if found else ()):
        each = won[:, place].sum(axis=1) / max(len(plans) - 1, 1)
        against = {
            other: float(mean) for other, mean in zip(plans, won[:, place].mean(axis=0), strict=True) if other != plan
        }
        paper = MEANS[plan] if len(plans) == len(NAMES) else None
        rows.append(Row.of_runs(plan, each, "mbb/g", seconds, {"against": against}, paper))
    return ReproductionResult(TABLE.what, rows)


def _more(one: str, other: str, place: int) -> dict[str, float]:
    """How much more imperfect recall agents with one feature win than those with another, in the mean.

    `place` is that of the feature: 0 before the last round, 1 in it.
    """
    ways = [rest for rest in product(EARLY, LATE) if rest[place] in (one, other)]
    return {NAMES["IR", *rest]: (1 if rest[place] == one else -1) * 2 / len(ways) for rest in ways}


BEST = NAMES["IR", "KE", "KO"]
TABLE = Reproduction(
    what=f"{SOURCE}, on [4-1] hold'em with 20 cards: what agents with twelve abstractions win from each other",
    time=f"some 70 s for each of {RUNS} runs",
    rows=tuple(NAMES.values()),
    run=_reproduce,
    options=("only", "runs"),
    hint="rows are means over the others that are asked for; `against` in --json has each of them",
    claims=(
        Claim(
            "every agent with imperfect recall wins more than every agent with perfect recall",
            SOURCE,
            every(*(higher(NAMES["IR", *one], NAMES["PR", *other]) for one in PAPER for other in PAPER)),
        ),
        Claim(
            "agents with imperfect recall win more than those with perfect recall and the same features",
            SOURCE,
            every(*(higher(NAMES["IR", *rest], NAMES["PR", *rest]) for rest in PAPER)),
        ),
        Claim(
            "with imperfect recall, histograms before the last round win more than percentiles and than OCHS",
            SOURCE,
            every(*(contrast(_more("KE", other, 0)) for other in EARLY if other != "KE")),
        ),
        Claim(
            "with imperfect recall, OCHS in the last round wins more than percentiles",
            SOURCE,
            contrast(_more("KO", "PHS", 1)),
        ),
        Claim("IR-KE-KO wins most", SOURCE, every(*(higher(BEST, name) for name in NAMES.values() if name != BEST))),
    ),
    quick=Request(
        only=tuple(NAMES[recall, *rest] for recall in ("PR", "IR") for rest in (("PHS", "PHS"), ("KE", "KO"))), runs=3
    ),
)
