"""[Brown15 table 2] with bets that are fine enough for its idea: what post-processing is worth in play, in small.

The new family gathers bets before it chooses among fold, call and bet, so that bets which are cut finely are not put at
a disadvantage. It has nothing to gather where a decision has one bet. Here all bets of the paper's example are there:
0.5, 0.75, 1, 1.5, 2 and 5 pots and all-in. The opponents have other cards and the same bets, so that no bet has to be
translated and what one wins from the other can be averaged over all of them: the luck that is left is that of cards,
and all rules meet the same. Each run clusters, solves and deals with seeds of its own. Rows named ``bets-F-A-I`` are
the whole family (see `postprocessing`). Where all of them are there, the row `SEARCH` is what a search over them comes
to: the rule that wins most in the first half of the runs, in the mean over opponents, less what purification wins, in
the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import post_processed
from kilt.players.agents import load_holdem
from kilt.solve.external import External
from kilt.strategy.postprocess import rule_named
from kilt_lab.reproduce.agents import sampled_agent, won_by
from kilt_lab.reproduce.claims import Claim, Row, every, positive
from kilt_lab.reproduce.convergence import solve_for
from kilt_lab.reproduce.postprocessing import FAMILY, NOTHING, SEARCH, searched
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs
from kilt_lab.reproduce.tartanian7_table_2 import CLAIMS, PURE, above

GAME, ACTIONS = "short.nolimit.2p", "50%, 75%, 1x, 1.5x, 2x, 5x, a; 1x, a; a"
AGENT = "IR-KE-KO {}-50-50-50"
OPPONENTS = {"A": "IR-KE-KO {}-100-100-100", "B": "IR-PHS-PHS {}-60-60-60"}
PUBLISHED = ("none", "purification", PURE, "threshold-0.15", "new-0.1", "new-0.2")
VARIATIONS = tuple(rule for rule in FAMILY if rule != NOTHING)
NODES, DEALS, RUNS = 4_000_000, 10_000, 10


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    game, rows, runs = load_holdem(GAME), asked.only or TABLE.rows, RUNS if asked.runs is None else asked.runs
    began = process_time()

    def effort(name: str) -> int | Callable[[External], None]:
        if asked.minutes is None:
            return NODES
        return partial(solve_for, seconds=60 * asked.minutes, watcher=watcher, what=f"solving {name}")

    def run(seed: int) -> list[float]:
        with TemporaryDirectory() as folder:
            agent, *met = (
                sampled_agent(game, ACTIONS, plan, Path(folder) / name, effort(f"{name}, run {seed + 1}"), seed)
                for name, plan in {"agent": AGENT, **OPPONENTS}.items()
            )
        others, won = dict(zip(OPPONENTS, met, strict=True)), list[float]()
        for place, row in enumerate(rows):
            if watcher.stopped():
                break
            watcher.show(f"run {seed + 1} of {runs}: {row}", place / len(rows), None)
            rule, _, name = row.partition(" against ")
            won.append(won_by(post_processed(agent, rule_named(rule)), others[name], DEALS, seed))
        return won

    each = whole_runs(runs, run, watcher)
    if not each:
        return ReproductionResult(TABLE.what, [])
    found = {row: [won[place] for won in each] for place, row in enumerate(rows)}
    seconds = (process_time() - began) / len(rows)
    figures = [Row.of_runs(row, won, "mbb/h", seconds) for row, won in found.items()]
    if all(f"{rule} against {name}" in found for rule in (PURE, *VARIATIONS) for name in OPPONENTS) and len(each) > 1:
        won = {rule: _mean(found, rule) for rule in (PURE, *VARIATIONS)}
        best, lost = searched({rule: [-value for value in won[rule]] for rule in VARIATIONS})
        more = [-value - other for value, other in zip(lost, won[PURE][-len(lost) :], strict=True)]
        figures.append(Row.of_runs(SEARCH, more, "mbb/h", seconds, {"rule": best}))
    return ReproductionResult(TABLE.what, figures)


def _mean(found: dict[str, list[float]], rule: str) -> list[float]:
    """[run] what a rule wins in the mean over opponents."""
    each = zip(*(found[f"{rule} against {name}"] for name in OPPONENTS), strict=True)
    return [sum(values) / len(values) for values in each]


TABLE = Reproduction(
    what="[Brown15 table 2], with the bets of section 4: post-processing in play, on no-limit hold'em with 20 cards",
    time=f"some 20 s for each of {RUNS} runs, half of that for the rules of the paper",
    rows=tuple(f"{rule} against {name}" for rule in (*PUBLISHED, *VARIATIONS) for name in OPPONENTS),
    run=_reproduce,
    options=("only", "minutes", "runs"),
    hint="each of --runs has seeds of its own for all that is drawn; --minutes are those of one core in which each of "
    f"three agents learns, instead of by {NODES:,} nodes",
    claims=(
        *CLAIMS,
        Claim(
            "purification that spares the first action is the best of the prior techniques: it wins more than one that "
            "spares none, than thresholding at 0.15 and than no post-processing",
            "[Brown15 footnote 5]",
            every(*(above(PURE, rule) for rule in ("purification", "threshold-0.15", "none"))),
        ),
        Claim(
            "the best rule of the family, found by a search, wins more than purification, in the mean",
            "[Brown15 §4]",
            positive(SEARCH),
        ),
    ),
    quick=Request(only=tuple(f"{rule} against {name}" for rule in PUBLISHED for name in OPPONENTS), runs=3),
)
