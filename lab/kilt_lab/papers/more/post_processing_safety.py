"""The choice of the default post-processing rule for kilt's agents, by matches and by local best response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from kilt.abstraction.features import Deal
from kilt.config import Config, read_config
from kilt.evaluate.head_to_head import AbstractStrategy, blueprint_strategy
from kilt.evaluate.lbr import BETS, lower_bound
from kilt.games.playable import load_holdem
from kilt.players.agents import blueprint_agent, load_once
from kilt.runs.examples import SHIPPED_AGENT, demo_config
from kilt.solve.problem import CPU
from kilt_lab.cells import Cell, CellBudget, Measured, RowSpec, Setting, changes
from kilt_lab.claims import Row, Slack, common_seeds, contrast
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.agents import SolvedAgent, plan_file, seeded, share_of, solved_agent, solver_config, won_by

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
LONGER = {"demo": 1.0, "house": 10.0}  # factor of the budget of a cell for each agent
EACH = "each agent's own"  # game
HANDS, DEALS = 2000, 100_000  # of each LBR; of each match
MATCH, TREE = "against the best rule", "LBR from river, sizes of the tree"
ROUNDS = {f"LBR from {name}": r for r, name in enumerate(("preflop", "flop", "turn", "river"))}  # its first round
LBR = ROUNDS | {TREE: len(ROUNDS) - 1}
MEASURES = (MATCH, *LBR)
DEFAULTS = {"demo": "threshold-0.1", "house": "none"}  # chosen by this table
OLD = "new-0.2"  # the previous default
SOURCE = "kilt"


def row_name(agent: str, rule: str, measure: str) -> str:
    """Return the name of a row."""
    return f"{agent} {rule}: {measure}"


def best_rule(won: Mapping[tuple[str, str], Sequence[float]]) -> str:
    """Return the rule that wins most against the others, averaged over them and over runs.

    `won` has, for each pair of rules, the winnings of the first against the second, one number per run.

    >>> best_rule({("a", "b"): [1.0, 3.0], ("a", "c"): [-1.0, 0.0], ("b", "c"): [5.0, 5.0]})
    'b'
    """
    total = dict.fromkeys((rule for pair in won for rule in pair), 0.0)
    for (one, other), chips in won.items():
        total[one] += float(np.mean(chips))
        total[other] -= float(np.mean(chips))
    return max(total, key=total.__getitem__)


def exploited(agent: str, rule: str, other: str) -> Slack:
    """Return the claim that LBR wins less against a rule than another, averaged over the rounds in which it starts."""
    weights = {row_name(agent, one, measure): sign for one, sign in ((rule, -1.0), (other, 1.0)) for measure in ROUNDS}
    return contrast({name: weight / len(ROUNDS) for name, weight in weights.items()})


def _config(agent: str, lab: Lab, seed: int) -> Config:
    """Return the configuration of an agent, with the seed of a run for its cards and for solving."""
    config = demo_config() if agent == "demo" else read_config(SHIPPED_AGENT)
    game = lab.game if lab.game != EACH else config.game
    deal = Deal.from_game(load_holdem(game))

    def cards(name: str, what: str) -> str:
        return plan_file(seeded(name, deal, seed), lab.folder / f"{agent}-{what}-{seed}.toml")

    own_cards = cards(config.cards[0], "run")
    # a smaller deck has fewer values of hands than the opponent has buckets
    opponent = cards(config.opponent_cards, "opponent") if deal == Deal() else ""
    own = solver_config(lab, seed, LONGER[agent])
    solver = replace(
        config.solver,
        minutes=own.minutes,
        iterations=own.iterations,
        threads=own.threads,
        seed=own.seed,
        device=lab.device,
    )
    return replace(config, game=game, cards=(own_cards,), opponent_cards=opponent, solver=solver)


class JudgedRun(NamedTuple):
    """An agent of a run, and the amount of its evaluation."""

    config: Config
    solved: SolvedAgent
    hands: int  # of each LBR
    deals: int  # of each match


def _agent(agent: str, seed: int, lab: Lab) -> JudgedRun:
    config = _config(agent, lab, seed)
    solved = solved_agent(config, lab.folder / f"{agent}-{seed}", lab)
    share = max(0.05, share_of(lab))
    return JudgedRun(config, solved, 2 * max(1, round(HANDS * share / 2)), max(1, round(DEALS * share)))


def _strategy(judged: JudgedRun, rule: str) -> AbstractStrategy:
    strategy = blueprint_strategy(blueprint_agent(f"{judged.solved.folder}@{rule}"))
    assert strategy is not None
    return strategy


def _pair(agent: str, one: str, other: str) -> str:
    return f"{agent} {one} against {other}"


def config_sizes(bets: Sequence[str]) -> list[str]:
    """Return the bet sizes of the last round of a menu, for any number of raises before.

    >>> config_sizes(["1x, a / 50%, 1x, a; 1x, a"])
    ['50%', '1x', 'a', '1x', 'a']
    """
    last = bets[0].split("/")[-1]
    return [size.strip() for raises in last.split(";") for size in raises.split(",")]


@dataclass(frozen=True)
class RulesOfAgents(Experiment):
    """Choose the default post-processing rule for kilt's agents, by matches and by local best response.

    A post-processing rule changes the probabilities of a solved strategy before an agent plays it, for example by
    rounding small ones to 0. This experiment chooses the rule that kilt's agents use by default.

    Each post-processing rule is tested in two ways. First, a strategy with this rule plays matches against the same
    strategy with every other rule, on the same deals. Winnings are exact averages over all actions, so only the cards
    are random.

    In the second test, a local best response plays against the post-processed strategy, and its winnings show how easy
    the strategy is to beat. It starts to bet in a given round, with bet sizes that the strategy does not expect. In the
    last row of each rule, it uses only sizes that the strategy expects.

    kilt's default post-processing rule is chosen in two steps. The first step finds the rule that wins most in
    matches, and drops all rules that lose more than 30 mbb/h to it. The second step takes the rule against which a
    local best response (LBR) wins least, on average over the rounds in which LBR may start to bet.

    Each run clusters hands, solves and deals with its own random seeds. The intervals in the tables therefore include
    the luck of all three steps.
    """

    def check(self, setting: Setting) -> None:
        """Load the game if it is not the default."""
        if setting.game != EACH:
            load_holdem(setting.game)

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Play a match between two rules, or evaluate one rule by LBR."""
        agent, _, rest = case.partition(" ")
        judged = lab.shared(agent, lambda: _agent(agent, seed, lab))
        if " against " in case and ": " not in case:
            one, other = (
                lab.shared(f"{agent} {rule}", lambda rule=rule: _strategy(judged, rule))  # type: ignore[misc]
                for rule in rest.split(" against ")
            )
            return Cell({case: won_by(one, other, judged.deals, seed)})
        rule, _, measure = rest.partition(": ")
        game = judged.solved.problem.abstract.game
        if LBR[measure] >= game.rules.rounds:
            return Cell({}, exact=True)
        lab.say(f"{case}, run {seed + 1}: {judged.hands:,} hands")
        menu = ",".join(dict.fromkeys(config_sizes(judged.config.actions))) if measure == TREE else BETS
        bound = lower_bound(
            game,
            f"{judged.solved.folder}@{rule}",
            judged.hands,
            seed,
            bets=menu,
            first_round=LBR[measure],
            processes=lab.threads,
            load=load_once,
            stop=lab.stopped,
        )
        lab.check()
        return Cell({case: bound.won.mean})

    def derive(self, found: Mapping[str, Row], measured: Measured) -> Iterable[Row]:
        """Yield winnings of rules against the best one."""
        for agent in LONGER:
            won = {
                (one, other): {cell.seed: cell.values[case] for cell in measured.cells[case]}
                for one, other in combinations(RULES, 2)
                if (case := _pair(agent, one, other)) in measured.cells
            }
            if not (seeds := common_seeds(won.values())):
                continue
            runs = {pair: [each[seed] for seed in seeds] for pair, each in won.items()}
            best = best_rule(runs)
            for rule in RULES:
                against = runs.get((rule, best)) or [-chips for chips in runs.get((best, rule), [0.0] * len(seeds))]
                yield Row.of_runs(row_name(agent, rule, MATCH), against, "mbb/h", 0.0, {"best": best}, None, seeds)


def _spec(agent: str, rule: str, measure: str) -> RowSpec:
    pairs = tuple(_pair(agent, *both) for both in combinations(RULES, 2))
    return RowSpec(row_name(agent, rule, measure), "mbb/h", cases=pairs if measure == MATCH else ())


TABLE = RulesOfAgents(
    "post-processing-safety",
    "",
    "Choice of the post-processing rule for kilt's agents, by matches and by local best response",
    rows=tuple(_spec(agent, rule, measure) for agent in LONGER for rule in RULES for measure in MEASURES),
    claims={
        says: slack
        for agent, rule in DEFAULTS.items()
        for says, slack in {
            f"{agent}: {rule} loses at most {MOST_LOST:g} mbb/h to the best rule": (
                SOURCE,
                contrast({row_name(agent, rule, MATCH): 1.0}, -MOST_LOST),
            ),
            f"{agent}: LBR wins less against {rule} than against {OLD}": (SOURCE, exploited(agent, rule, OLD)),
        }.items()
    },
    hint="each of --runs has its own seeds for cards, solving and deals; the best rule wins most on average",
    time="`house` takes ten times as long as the demo; plus three hours of evaluation in total, on two cores",
    solves=round(sum(LONGER.values())),
    defaults=Setting(EACH, CellBudget.of(minutes=8), 3, CPU, threads=2),
    quick=changes(
        only=tuple(
            row_name("demo", rule, measure)
            for rule in ("none", "threshold-0.15", "new-0.2")
            for measure in (MATCH, "LBR from river")
        ),
        game="short.nolimit.2p",
        budget=CellBudget.of(seconds=6),
    ),
    shares=True,
)
