"""[Brown15 §4]: the effect of post-processing in matches, in play with many bet sizes, and on exact exploitability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kilt.abstraction.actions import actions_of
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import PublicPlan
from kilt.config import Config, SolverConfig
from kilt.evaluate import head_to_head
from kilt.evaluate.head_to_head import AbstractStrategy
from kilt.evaluate.matchup import evaluate_matchup
from kilt.evaluate.stats import win_rate
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.players.agents import load_agent
from kilt.solve.cfr import Cfr
from kilt.solve.external import ExternalMCCFR
from kilt.solve.tables.memory import TreeTables
from kilt.strategy.postprocess import Rule, apply, rule_named
from kilt.tree.betting import on_menu
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table
from kilt_lab.cells import NODES, SECONDS, Cell, CellBudget, Measured, RowSpec, Setting, changes, rows
from kilt_lab.claims import Claims, Row, Slack, contrast, every, negative, positive, some
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.agents import (
    SolvedAgent,
    fitted,
    plan_file,
    sampled_agent,
    seeded,
    share_of,
    solved_agent,
    solver_config,
    won_by,
)
from kilt_lab.pieces.convergence import solve_for
from kilt_lab.pieces.resolving import NO_LIMIT

HANDS = 40_000
AGENT = "IR-KE-KO 169-20-20-20", "1x, a / 50%, 1x, a; 1x, a; a"
CLASSES = PublicPlan(2, 10, base="IR-KE-KO 169-500-500-500", codes=500)
OPPONENTS = {  # they replace Hyperborean and Slumbot
    "A": ("IR-KE-KO 169-200-200-200", "75%, a / 75%, a; 75%, a; a"),
    "B": ("IR-PHS-PHS 169-100-100-100", "2x, a / 33%, 1x, 2x, a; 1x, a; a"),
}
PAPER = {
    "none": (30.0, 10.0),
    "purification-after-first": (55.0, 19.0),
    "threshold-0.15": (35.0, 19.0),
    "new-0.1": (None, None),
    "new-0.2": (39.0, 103.0),
}
SOURCE, NEW, PURE = "[Brown15 table 2]", "new-0.2", "purification-after-first"


def above(rule: str, other: str) -> Slack:
    """Return the claim that a rule wins more than another one, averaged over opponents."""
    signs = (rule, 1 / len(OPPONENTS)), (other, -1 / len(OPPONENTS))
    return contrast({f"{one} against {name}": sign for one, sign in signs for name in OPPONENTS})


CLAIMS: Claims = {
    "the new family at 0.2 wins more than purification, averaged over opponents": above(NEW, PURE),
    "the new family at 0.2 wins more than thresholding at 0.15, averaged over opponents": above(NEW, "threshold-0.15"),
    "the new family wins more at 0.2 than at 0.1, averaged over opponents": (
        "[Brown15 footnote 7]",
        above(NEW, "new-0.1"),
    ),
    "purification wins more than no post-processing, averaged over opponents": above(PURE, "none"),
    "thresholding at 0.15 wins more than no post-processing, averaged over opponents": above("threshold-0.15", "none"),
    "the new family wins more than no post-processing, averaged over opponents": above(NEW, "none"),
}


def _configs(game: str, folder: Path, solver: SolverConfig) -> dict[str, Config]:
    """Return the configurations of the agent whose strategy is post-processed, and of its opponents."""
    deal, run = Deal.from_game(load_holdem(game)), f"-run-{solver.seed}" if solver.seed else ""

    def config(file: str, cards: str, actions: str, public: tuple[PublicPlan, ...] = ()) -> Config:
        plan = replace(seeded(cards, deal, solver.seed), public=public)
        return Config(game, (plan_file(plan, folder / f"{file}{run}.toml"),), (actions,), solver=solver)

    classes = replace(CLASSES, base=fitted(CLASSES.base, deal), seed=solver.seed)
    opponents = {name: config(f"opponent-{name}", *how) for name, how in OPPONENTS.items()}
    return {"agent": config("agent", *AGENT, (classes,))} | opponents


@dataclass(frozen=True)
class PostProcessedMatches(Experiment):
    """Measure how much an agent with each post-processing rule wins against agents with other abstractions.

    Post-processing changes the probabilities of a solved strategy before it plays, for example by rounding small ones
    to 0. The paper measures several post-processing rules by a strategy's winnings against the two strongest agents of
    2013.

    The paper's opponents are not available, so two agents of kilt replace them. They have other buckets and other bet
    sizes than the tested agent. As in the paper, the agent translates unknown bets to those that it knows.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Play a match. Agents are solved first if necessary."""
        players = lab.shared("players", lambda: self.players(seed, lab))
        rule, _, name = case.partition(" against ")
        hands = 2 * max(1, round(HANDS / 2 * max(0.1, share_of(lab))))
        lab.say(f"{case}: {hands:,} duplicate hands")
        game = players["agent"].problem.abstract.game
        specs = f"{players['agent'].folder}@{rule}", f"{players[name].folder}@none"
        match = evaluate_matchup(game, specs, hands, seed, load=load_agent, processes=lab.threads, stop=lab.stopped)
        lab.check()
        rate = win_rate(match)
        return Cell({case: rate.mean}, more={"hands": hands, "hands_ci95": [rate.interval]}, margin=rate.margin)

    def players(self, seed: int, lab: Lab) -> dict[str, SolvedAgent]:
        """Return the agents of a run, by name."""
        configs = _configs(lab.game, lab.folder, solver_config(lab, seed))
        return {
            name: solved_agent(config, lab.folder / Path(config.cards[0]).stem, lab) for name, config in configs.items()
        }

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return the number of hands, and the interval over hands of each run."""
        return {"hands": cells[0].more["hands"], "hands_ci95": [cell.more["hands_ci95"][0] for cell in cells]}


TABLE_2 = PostProcessedMatches(
    "tartanian7-table-2",
    SOURCE,
    "Post-processing in duplicate matches against two agents with other abstractions",
    rows=tuple(
        RowSpec(f"{rule} against {name}", "mbb/h", paper)
        for rule, numbers in PAPER.items()
        for name, paper in zip(OPPONENTS, numbers, strict=True)
    ),
    claims=CLAIMS,
    hint="the paper had other opponents; each of --runs clusters and solves with its own seeds",
    time="plus a few minutes for the cards of each agent, and a minute for each of 10 matches of a run",
    solves=1 + len(OPPONENTS),
    defaults=Setting("holdem.nolimit.2p.50bb", CellBudget.of(minutes=4), 3, threads=2),
    quick=changes(game="short.nolimit.2p", budget=CellBudget.of(seconds=6), runs=3),
    shares=True,
)

ACTIONS = "50%, 75%, 1x, 1.5x, 2x, 5x, a; 1x, a; a"
FINE_AGENT = "IR-KE-KO {}-50-50-50"
FINE_OPPONENTS = {"A": "IR-KE-KO {}-100-100-100", "B": "IR-PHS-PHS {}-60-60-60"}
PUBLISHED = ("none", "purification", PURE, "threshold-0.15", "new-0.1", "new-0.2")
# Thresholds for folding (1: never certain), among fold, call and bet, and among bets.
GRID = (0.1, 0.2, 0.5, 1.0), (0.0, 0.15, 1.0), (0.0, 0.15, 1.0)
FAMILY = tuple(f"bets-{fold:g}-{among:g}-{inside:g}" for fold, among, inside in product(*GRID))
SEARCH, NOTHING = "best of the family", "bets-1-0-0"
VARIATIONS = tuple(rule for rule in FAMILY if rule != NOTHING)
DEALS = 10_000


def searched(found: Mapping[str, Sequence[float]]) -> tuple[str, list[float]]:
    """Return the rule with the lowest mean in the first half of its runs, and its values in the other half.

    >>> searched({"one": [1.0, 1.0, 5.0, 5.0], "other": [2.0, 2.0, 0.0, 1.0]})
    ('one', [5.0, 5.0])
    """
    half = len(next(iter(found.values()))) // 2
    best = min(found, key=lambda rule: float(np.mean(found[rule][:half])))
    return best, [*found[best][half:]]


@dataclass(frozen=True)
class FineBets(Experiment):
    """Measure how much post-processed strategies win in a small game with many bet sizes.

    The paper's new family of post-processing rules is for decisions with many bet sizes. A rule first adds up the
    probabilities of all bets, and then chooses among fold, call and bet. Without this step, a rule could remove each of
    several similar bets as improbable, although the strategy bets most of the time.

    The experiment needs many bet sizes, because the paper's new family of post-processing rules adds up the
    probabilities of different bets. It uses all bets of the paper's example: 0.5, 0.75, 1, 1.5, 2 and 5 times the pot,
    and all-in.

    The opponents have other buckets than the post-processed agent, but the same bet sizes. Winnings are averages over
    all betting sequences, so only the cards are random, and they are the same for all post-processing rules. Each run
    sorts hands into buckets, solves and deals with its own random seeds.

    A post-processing rule of the paper's new family has a name with three thresholds, ``bets-F-A-I``: F for folding, A
    for the choice among fold, call and bet, and I for the choice among bet sizes (see ``strategy.postprocess``).

    Does the best rule of the paper's new family beat purification? The row ``best of the family`` shows how much more
    it wins. A search takes the rule that wins most in the first half of the runs, on average over opponents, and the
    row compares it with purification in the other half.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Play a match of the agent with a rule against an opponent."""
        rule, _, name = case.partition(" against ")
        ours = lab.shared("agent", lambda: self.agent(FINE_AGENT, "agent", seed, lab))
        theirs = lab.shared(name, lambda: self.agent(FINE_OPPONENTS[name], name, seed, lab))
        return Cell({case: won_by(head_to_head.post_processed(ours, rule_named(rule)), theirs, DEALS, seed)})

    def agent(self, plan: str, name: str, seed: int, lab: Lab) -> AbstractStrategy:
        """Return an agent of a run."""

        def effort(solver: ExternalMCCFR) -> None:
            solve_for(solver, lab.budget, lab, f"solving {name}")

        visits = lab.budget.whole if lab.budget.clock == NODES else effort
        return sampled_agent(lab.holdem(), ACTIONS, plan, lab.scratch() / name, visits, seed)

    def derive(self, found: Mapping[str, Row], measured: Measured) -> Iterable[Row]:
        """Yield the result of a search over the family."""
        ours = {rule: _mean(found, rule) for rule in (PURE, *VARIATIONS)}
        runs = min(len(values) for values in ours.values())
        if runs > 1:
            best, lost = searched({rule: [-value for value in ours[rule]] for rule in VARIATIONS})
            more = [-value - other for value, other in zip(lost, ours[PURE][-len(lost) :], strict=True)]
            yield Row.of_runs(SEARCH, more, "mbb/h", 0.0, {"rule": best})


def _mean(found: Mapping[str, Row], rule: str) -> list[float]:
    """[run] winnings of a rule averaged over opponents; empty if a row is missing."""
    rows_of = [found[f"{rule} against {name}"].runs for name in FINE_OPPONENTS if f"{rule} against {name}" in found]
    if len(rows_of) < len(FINE_OPPONENTS):
        return []
    return [sum(values) / len(values) for values in zip(*rows_of, strict=False)]


def _against(rule: str) -> tuple[str, ...]:
    return tuple(f"{rule} against {name}" for name in FINE_OPPONENTS)


PUBLISHED_ROWS = tuple(row for rule in PUBLISHED for row in _against(rule))
FINE_BETS = FineBets(
    "tartanian7-bets",
    SOURCE,
    "Post-processing in play with the bets of section 4, on no-limit hold'em with 20 cards",
    rows=(
        *rows((row for rule in (*PUBLISHED, *VARIATIONS) for row in _against(rule)), "mbb/h"),
        RowSpec(SEARCH, "mbb/h", cases=tuple(row for rule in (PURE, *VARIATIONS) for row in _against(rule))),
    ),
    claims={
        **CLAIMS,
        "purification that spares the first action is the best of the prior techniques: it wins more than "
        "purification of all actions, thresholding at 0.15 and no post-processing": (
            "[Brown15 footnote 5]",
            every(*(above(PURE, rule) for rule in ("purification", "threshold-0.15", "none"))),
        ),
        "the best rule of the family, found by a search, wins more than purification, averaged over opponents": (
            "[Brown15 §4]",
            positive(SEARCH),
        ),
    },
    hint="each of --runs has its own seeds; with --minutes, each agent learns for that time; "
    "--setting rules-of-the-paper for more runs of fewer rules",
    time="about 25 s for each run, or a fifth of that for the rules of the paper",
    defaults=Setting("short.nolimit.2p", CellBudget(NODES, 4_000_000), 10),
    quick=changes(jobs=0, only=PUBLISHED_ROWS, runs=3),
    settings={"rules-of-the-paper": changes(only=PUBLISHED_ROWS, runs=40)},
    clocks=(NODES, SECONDS),
    shares=True,
)

BETS = "50%, 1x, 1.5x, 2x, a"
ITERATIONS = {"rough": 30, "solved": 3000}
SMALL_RULES = ("purification", "threshold-0.15", "new-0.1", "new-0.2")


def post_processed(game: VectorGame, table: Table, rule: Rule) -> Table:
    """Return a strategy of a public tree with a rule applied to every decision of every hand."""
    after, tree = table.copy(), game.tree
    for r, row, position in game.decisions():
        labels = on_menu(position, game.menu)
        for first in range(tree.table_start[r] + row, tree.table_start[r + 1], tree.rows[r]):
            part = table[first : first + len(labels)]
            total = part.sum(axis=0)
            for hand in np.flatnonzero(total > 0):
                after[first : first + len(labels), hand] = apply(rule, labels, part[:, hand] / total[hand])
    return after


@dataclass(frozen=True)
class ExactRules(Experiment):
    """Measure how post-processing rules change exact exploitability in a small game.

    Post-processing rules, such as rounding small probabilities to 0, are meant to win more in matches. Do they also
    make a strategy easier to beat? This experiment measures how each rule changes exact exploitability.

    The game of this experiment is a small no-limit hold'em with two rounds and eight cards. It has four bet sizes in
    addition to all-in, because the paper's new family of post-processing rules adds up the probabilities of different
    bets.

    Public chance sampling solves the game without abstraction, for a short time for *rough* strategies and for longer
    for *solved* ones. Each value is the exploitability after post-processing minus that before it, averaged over runs
    with their own random seeds.

    A post-processing rule of the paper's new family has a name with three thresholds, ``bets-F-A-I``: F for folding, A
    for the choice among fold, call and bet, and I for the choice among bet sizes (see ``strategy.postprocess``).

    The rows ``best of the family`` show how well the paper's new family of post-processing rules can do. A search takes
    the rule that is best in the first half of the runs, and the row shows its effect in the other half. The rule
    ``bets-1-0-0`` changes nothing, so the search leaves it out.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Apply a rule to a strategy. The cell has the change of exploitability, in mbb/g."""
        rule, _, stage = case.partition(", ")
        game = lab.shared(
            "game", lambda: VectorGame(Holdem(GameDef.parse(NO_LIMIT)), actions_of(BETS)), per="experiment"
        )
        average, before = lab.shared(stage, partial(_solved, game, stage, seed))
        after = post_processed(game, average, rule_named(rule))
        return Cell({case: 1000 * game.exploitability(after) - before}, more={"before": before})

    def derive(self, found: Mapping[str, Row], measured: Measured) -> Iterable[Row]:
        """Yield the results of searches over the family."""
        for stage in ITERATIONS:
            runs = {rule: found[f"{rule}, {stage}"].runs for rule in FAMILY if f"{rule}, {stage}" in found}
            if len(runs) == len(FAMILY) and min(map(len, runs.values())) > 1:
                rule, judged = searched({rule: those for rule, those in runs.items() if rule != NOTHING})
                yield Row.of_runs(f"{SEARCH}, {stage}", judged, "mbb/g", 0.0, {"rule": rule})


def _solved(game: VectorGame, stage: str, seed: int) -> tuple[Table, float]:
    """Return a strategy, and its exploitability in mbb/g."""
    solver = Cfr(TreeTables(game, scheme="pcs", seed=seed), "cfr")
    solver.step(ITERATIONS[stage])
    average = solver.average()
    return average, 1000 * game.exploitability(average)


EXACT_RULES = ExactRules(
    "tartanian7-post",
    "[Brown15 footnote 4]",
    "Change of exact exploitability by post-processing, in a small game",
    rows=(
        *rows((f"{rule}, {stage}" for stage in ITERATIONS for rule in (*SMALL_RULES, *FAMILY)), "mbb/g"),
        *(
            RowSpec(f"{SEARCH}, {stage}", "mbb/g", cases=tuple(f"{rule}, {stage}" for rule in FAMILY))
            for stage in ITERATIONS
        ),
    ),
    claims={
        f"{rule} can make a strategy more exploitable": some(*(positive(f"{rule}, {case}") for case in ITERATIONS))
        for rule in SMALL_RULES
    }
    | {
        f"rounding repairs strategies: the best rule of the family, found by a search, makes a {case} strategy "
        "less exploitable": ("[Brown15 §1]", negative(f"{SEARCH}, {case}"))
        for case in ITERATIONS
    },
    hint="after 30 iterations of public chance sampling (rough) and 3,000 (solved); bets-F-A-I are the whole family",
    time="3 minutes; half a minute for the rules of the paper",
    defaults=Setting(runs=10),
    quick=changes(jobs=0, only=tuple(f"{rule}, {stage}" for stage in ITERATIONS for rule in SMALL_RULES), runs=3),
    shares=True,
)
