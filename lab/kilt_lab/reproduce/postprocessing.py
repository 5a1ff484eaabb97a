"""[Brown15 footnote 4]: what post-processing does to exploitability, exactly, on a game that is small enough for that.

The game is no-limit, of two rounds and eight cards, with four bets besides all-in, so that there is something for the
new family to gather. Its strategies are those of public chance sampling without abstraction, stopped early or late. A
rule is applied to every decision, and a row is the exploitability after it less that before, over runs with seeds of
their own. Rows named ``bets-F-A-I`` are the whole family: the threshold of folding, that among fold, call and bet, and
that among bets (see `strategy.postprocess`). Where all of them are there, the rows `SEARCH` are what a search over the
family comes to: the rule that is best in the first half of the runs, judged by the other half. ``bets-1-0-0`` changes
nothing, and is no candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from time import perf_counter

import numpy as np

from kilt.abstraction.actions import actions_of
from kilt.evaluate.flops import Watcher
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.solve.cfr import Cfr
from kilt.solve.tables.memory import TreeTables
from kilt.strategy.postprocess import Rule, apply, rule_named
from kilt.tree.betting import on_menu
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table
from kilt_lab.reproduce.claims import Claim, Row, negative, positive, some
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs
from kilt_lab.reproduce.resolving import NO_LIMIT

BETS = "50%, 1x, 1.5x, 2x, a"
ITERATIONS, RUNS = {"rough": 30, "solved": 3000}, 10
PUBLISHED = ("purification", "threshold-0.15", "new-0.1", "new-0.2")
GRID = (0.1, 0.2, 0.5, 1.0), (0.0, 0.15, 1.0), (0.0, 0.15, 1.0)  # of folding (1: never for sure), among, inside
FAMILY = tuple(f"bets-{fold:g}-{among:g}-{inside:g}" for fold, among, inside in product(*GRID))

SEARCH, NOTHING = "best of the family", "bets-1-0-0"


def searched(found: Mapping[str, Sequence[float]]) -> tuple[str, list[float]]:
    """The rule with the lowest mean in the first half of its runs, and the other half of them.

    >>> searched({"one": [1.0, 1.0, 5.0, 5.0], "other": [2.0, 2.0, 0.0, 1.0]})
    ('one', [5.0, 5.0])
    """
    half = len(next(iter(found.values()))) // 2
    best = min(found, key=lambda rule: float(np.mean(found[rule][:half])))
    return best, [*found[best][half:]]


def post_processed(game: VectorGame, table: Table, rule: Rule) -> Table:
    """A strategy of a public tree, with a rule applied to every decision of every hand."""
    after, tree = table.copy(), game.tree
    for r, row, position in game.decisions():
        labels = on_menu(position, game.menu)
        for first in range(tree.table_start[r] + row, tree.table_start[r + 1], tree.rows[r]):
            part = table[first : first + len(labels)]
            total = part.sum(axis=0)
            for hand in np.flatnonzero(total > 0):
                after[first : first + len(labels), hand] = apply(rule, labels, part[:, hand] / total[hand])
    return after


def _changes(game: VectorGame, case: str, rules: Sequence[str], watcher: Watcher, seed: int) -> list[float]:
    """Exploitability in mbb/g before post-processing, then by how much each rule changes it."""
    solver = Cfr(TreeTables(game, scheme="pcs", seed=seed), "cfr")
    solver.step(ITERATIONS[case])
    average = solver.average()
    found = [1000 * game.exploitability(average)]
    for place, rule in enumerate(rules):
        if watcher.stopped():
            break
        watcher.show(f"{case}, run {seed + 1}: {rule}", place / len(rules), None)
        after = post_processed(game, average, rule_named(rule))
        found.append(1000 * game.exploitability(after) - found[0])
    return found


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    game = VectorGame(Holdem(GameDef.parse(NO_LIMIT)), actions_of(BETS))
    wanted, runs, rows = asked.only or TABLE.rows, asked.runs or RUNS, list[Row]()
    for case in ITERATIONS:
        rules = [row.removesuffix(f", {case}") for row in wanted if row.endswith(f", {case}")]
        began = perf_counter()
        each = whole_runs(runs if rules else 0, partial(_changes, game, case, rules, watcher), watcher)
        if not each:
            continue
        before, *changes = np.array(each).T
        seconds, more = (perf_counter() - began) / len(rules), {"before": float(before.mean())}
        found = dict(zip(rules, changes, strict=True))
        rows += [Row.of_runs(f"{rule}, {case}", values, "mbb/g", seconds, more) for rule, values in found.items()]
        if found.keys() >= set(FAMILY) and len(each) > 1:
            rule, judged = searched({rule: found[rule] for rule in FAMILY if rule != NOTHING})
            rows.append(Row.of_runs(f"{SEARCH}, {case}", judged, "mbb/g", seconds, {"rule": rule}))
    return ReproductionResult(TABLE.what, rows)


TABLE = Reproduction(
    what="[Brown15 footnote 4]: exploitability after post-processing less that before, exactly, in a small game",
    time="3 minutes; half a minute for the rules of the paper",
    rows=tuple(f"{rule}, {case}" for case in ITERATIONS for rule in (*PUBLISHED, *FAMILY)),
    run=_reproduce,
    options=("only", "runs"),
    hint="after 30 iterations of public chance sampling (rough) and 3,000 (solved); bets-F-A-I are the whole family",
    claims=tuple(
        Claim(
            f"{rule} can make a strategy more exploitable",
            "[Brown15 footnote 4]",
            some(*(positive(f"{rule}, {case}") for case in ITERATIONS)),
        )
        for rule in PUBLISHED
    )
    + tuple(
        Claim(
            f"rounding mends: the best rule of the family, found by a search, makes a {case} strategy less exploitable",
            "[Brown15 §1]",
            negative(f"{SEARCH}, {case}"),
        )
        for case in ITERATIONS
    ),
    quick=Request(only=tuple(f"{rule}, {case}" for case in ITERATIONS for rule in PUBLISHED), runs=3),
)
