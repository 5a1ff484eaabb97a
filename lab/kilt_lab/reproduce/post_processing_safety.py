"""Which post-processing rule the agents of kilt should play by: two judges.

A rule is judged by matches against the same strategy after other rules, and by a local best response (LBR) to it.
Matches are exact over actions: every rule meets every other on the same deals. LBR bets from a given round on, with
sizes that the agents' trees lack; a last row restricts it to sizes of their trees.

The default rule is the one from which LBR wins least, in the mean over the rounds in which it begins to bet, among the
rules that lose at most `MOST_LOST` to the best one. "Best" is the rule that wins most against the others, in the mean.

Each run clusters the hands, solves and deals with seeds of its own, so that intervals include all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from time import perf_counter

import numpy as np

from kilt import artifact
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import plan_named
from kilt.config import Config, read_config
from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import AbstractStrategy, blueprint_strategy
from kilt.evaluate.lbr import BETS, lower_bound
from kilt.jit import cores
from kilt.players.agents import blueprint_agent, load_holdem, loaded
from kilt.runs.examples import DEMO_CLASSES, HOUSE, demo_config
from kilt_lab.reproduce.agents import solved_agent, won_by
from kilt_lab.reproduce.claims import Claim, Row, Slack, contrast
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs

RULES = (
    "none",
    "threshold-0.05",
    "threshold-0.1",
    "threshold-0.15",
    "purification",
    "new-0.05",
    "new-0.2",
    "bets-1-0.15-0.15",
)
MOST_LOST = 30.0  # mbb/h, to the best rule
MINUTES = {"demo": 2.0, "house": 20.0}  # of solving
HANDS, DEALS = 2000, 100_000  # of each LBR; of each match
MATCH, TREE = "against the best rule", "LBR from river, sizes of the tree"
ROUNDS = {f"LBR from {name}": r for r, name in enumerate(("preflop", "flop", "turn", "river"))}  # its first round
LBR = ROUNDS | {TREE: len(ROUNDS) - 1}
MEASURES = (MATCH, *LBR)
DEFAULTS = {"demo": "none", "house": "none"}  # chosen by this table
OLD = "new-0.2"  # the default before
FOLDER, SOURCE = "kilt-post-processing-safety", "kilt"


def row_name(agent: str, rule: str, measure: str) -> str:
    """The name of a row."""
    return f"{agent} {rule}: {measure}"


def best_rule(won: Mapping[tuple[str, str], Sequence[float]]) -> str:
    """The rule that wins most against the others, in the mean over them and over runs.

    `won` has, for each pair of rules, what the first wins from the second, one number per run.

    >>> best_rule({("a", "b"): [1.0, 3.0], ("a", "c"): [-1.0, 0.0], ("b", "c"): [5.0, 5.0]})
    'b'
    """
    total = dict.fromkeys((rule for pair in won for rule in pair), 0.0)
    for (one, other), chips in won.items():
        total[one] += float(np.mean(chips))
        total[other] -= float(np.mean(chips))
    return max(total, key=total.__getitem__)


def exploited(agent: str, rule: str, other: str) -> Slack:
    """LBR wins less against a rule than against another, in the mean over the rounds in which it begins to bet."""
    weights = {row_name(agent, one, measure): sign for one, sign in ((rule, -1.0), (other, 1.0)) for measure in ROUNDS}
    return contrast({name: weight / len(ROUNDS) for name, weight in weights.items()})


def _config(agent: str, asked: Request, out: Path, seed: int) -> Config:
    """The configuration of an agent, with the seed of a run for its cards and for solving."""
    config = demo_config() if agent == "demo" else read_config(HOUSE)
    game = load_holdem(asked.game or config.game)
    deal, minutes = Deal.of(game), MINUTES[agent] if asked.minutes is None else asked.minutes
    hands = f" {len(deal.holdings((0,)))}-"  # 169 in hold'em
    plan = replace(plan_named(config.cards[0].replace(" 169-", hands), deal.board_cards), seed=seed)
    if agent == "demo":
        classes = replace(DEMO_CLASSES, base=DEMO_CLASSES.base.replace(" 169-", hands), seed=seed)
        plan = replace(plan, public=(classes,))
    file = out / f"{agent}-run-{seed}.toml"
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
        artifact.write_text(file, plan.toml())
    solver = replace(config.solver, minutes=minutes, iterations=0, threads=asked.threads or cores(), seed=seed)
    return replace(config, game=asked.game or config.game, cards=(str(file.resolve()),), solver=solver)


Judged = dict[str, float]  # by row


def _judged(agent: str, rows: Sequence[str], asked: Request, out: Path, watcher: Watcher, seed: int) -> Judged:
    """What the rules of one agent come to in a run, by row; matches are by pair of rules, as `_pair` names them."""
    config = _config(agent, asked, out, seed)
    solved = solved_agent(config, out / f"{agent}-{seed}", watcher)
    judged: Judged = {}
    if solved is None:
        return judged
    share = min(1.0, max(0.05, config.solver.minutes / MINUTES[agent]))
    hands, deals = 2 * max(1, round(HANDS * share / 2)), max(1, round(DEALS * share))
    game, bets = solved.problem.abstract.game, config.actions
    if any(row.endswith(MATCH) for row in rows):
        strategies = dict[str, AbstractStrategy]()
        for rule in RULES:
            strategy = blueprint_strategy(blueprint_agent(f"{solved.folder}@{rule}"))
            assert strategy is not None
            strategies[rule] = strategy
        watcher.say(f"{agent}, run {seed + 1}: matches between rules, {deals:,} deals each")
        for one, other in combinations(RULES, 2):
            if watcher.stopped():
                return judged
            judged[_pair(agent, one, other)] = won_by(strategies[one], strategies[other], deals, seed)
    for rule in RULES:
        for measure, first in LBR.items():
            if row_name(agent, rule, measure) not in rows or first >= game.rules.rounds:
                continue
            watcher.say(f"{row_name(agent, rule, measure)}, run {seed + 1}: {hands:,} hands")
            menu = ",".join(dict.fromkeys(config_sizes(bets))) if measure == TREE else BETS
            bound = lower_bound(
                game,
                f"{solved.folder}@{rule}",
                hands,
                seed,
                bets=menu,
                first_round=first,
                load=loaded,
                processes=config.solver.threads,
                stop=watcher.stopped,
            )
            if watcher.stopped():
                return judged
            judged[row_name(agent, rule, measure)] = bound.won.mean
    return judged


def _pair(agent: str, one: str, other: str) -> str:
    return f"{agent} {one} against {other}"


def config_sizes(bets: Sequence[str]) -> list[str]:
    """The bet sizes of the last round of a menu, whatever was raised before.

    >>> config_sizes(["1x, a / 50%, 1x, a; 1x, a"])
    ['50%', '1x', 'a', '1x', 'a']
    """
    last = bets[0].split("/")[-1]
    return [size.strip() for raises in last.split(";") for size in raises.split(",")]


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    out, began, found = asked.out or Path(FOLDER), perf_counter(), list[Row]()
    for agent in MINUTES:
        rows = [row for row in asked.only or TABLE.rows if row.startswith(f"{agent} ")]
        if not rows:
            continue
        run = partial(_judged, agent, rows, asked, out, watcher)
        runs = whole_runs(asked.runs or 3, run, watcher)
        if not runs:
            break
        seconds, values = perf_counter() - began, {name: [one[name] for one in runs] for name in runs[0]}
        pairs = [(one, other) for one, other in combinations(RULES, 2) if _pair(agent, one, other) in values]
        won = {pair: values[_pair(agent, *pair)] for pair in pairs}
        best = best_rule(won) if won else ""
        for row in rows:
            rule = row.removeprefix(f"{agent} ").partition(":")[0]
            if row.endswith(MATCH) and won:
                against = won.get((rule, best)) or [-chips for chips in won.get((best, rule), [0.0] * len(runs))]
                found.append(Row.of_runs(row, against, "mbb/h", seconds, {"best": best}))
            elif row in values:
                found.append(Row.of_runs(row, values[row], "mbb/h", seconds))
    return ReproductionResult(TABLE.what, found)


TABLE = Reproduction(
    what="which post-processing rule the agents of kilt should play by, judged by matches and by local best response",
    time="an hour of solving and three of judging, on two cores",
    rows=tuple(row_name(agent, rule, measure) for agent in MINUTES for rule in RULES for measure in MEASURES),
    run=_reproduce,
    options=("only", "game", "minutes", "threads", "out", "runs"),
    hint="each of --runs (3) has seeds of its own for cards, solving and deals; the best rule wins most in the mean",
    claims=tuple(
        claim
        for agent, rule in DEFAULTS.items()
        for claim in (
            Claim(
                f"{agent}: {rule} loses at most {MOST_LOST:g} mbb/h to the best rule",
                SOURCE,
                contrast({row_name(agent, rule, MATCH): 1.0}, -MOST_LOST),
            ),
            Claim(f"{agent}: LBR wins less against {rule} than against {OLD}", SOURCE, exploited(agent, rule, OLD)),
        )
    ),
    quick=Request(
        only=tuple(
            row_name("demo", rule, measure)
            for rule in ("none", "threshold-0.15", "new-0.2")
            for measure in (MATCH, "LBR from river")
        ),
        game="short.nolimit.2p",
        minutes=0.05,
    ),
    keeps=FOLDER,
)
