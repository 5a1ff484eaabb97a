"""[Schmid15 figure 5]: the value of knowing the class of the public flop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kilt.abstraction.features import Deal
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.config import Config, SolverConfig
from kilt.evaluate.head_to_head import SEED, AbstractStrategy, expected_winnings
from kilt.evaluate.stats import estimate_mean, win_rate
from kilt.games.playable import load_holdem
from kilt.play.match import play_match
from kilt.players.agents import load_agent
from kilt_lab.cells import ITERATIONS, Cell, CellBudget, Measured, RowSpec, Setting, changes
from kilt_lab.claims import positive
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.agents import SolvedAgent, plan_file, solved_agent, solver_config

ACTIONS, CLASSES = "50%, 1x, a; 1x, a; a", 20
PAPER = {400: None, 1000: None, 2000: 4.366}  # our copy of the paper lacks the number for 1,000 buckets
PRINTED = (1000, 2000)  # sizes of the paper; 400 is kilt's
PACE = 4_000_000  # iterations per DEALS deals and HANDS sampled hands
DEALS, HANDS = 500_000, 10_000


def _config(game: str, folder: Path, buckets: int, public: bool, solver: SolverConfig) -> Config:
    """Return the configuration of an agent whose flop buckets ignore the board, or lie inside classes of flops."""
    deal = Deal.from_game(load_holdem(game))
    hands = len(deal.holdings((0,)))
    plan = plan_named(f"IR-KE-KO {hands}-{buckets}-{buckets}-{buckets}", deal.board_cards)
    plan = replace(plan, seed=solver.seed)
    if public:
        flop = replace(plan.rounds[1], steps=(replace(plan.rounds[1].steps[0], buckets=buckets // CLASSES),))
        classes = PublicPlan(2, CLASSES, method="schmid", until=2, seed=solver.seed)
        plan = replace(plan, rounds=(plan.rounds[0], flop, *plan.rounds[2:]), public=(classes,))
    run = f"-run-{solver.seed}" if solver.seed else ""
    file = plan_file(plan, folder / f"{'public' if public else 'plain'}-{buckets}{run}.toml")
    return Config(game, (file,), (ACTIONS,), solver=solver)


def _agents(buckets: int, seed: int, lab: Lab) -> list[SolvedAgent]:
    """Return both agents of a run: with plain buckets, and with classes of flops."""
    players = list[SolvedAgent]()
    for public in (False, True):
        config = _config(lab.game, lab.folder, buckets, public, solver_config(lab, seed))
        folder = lab.folder / Path(config.cards[0]).stem
        players.append(solved_agent(config, folder, lab, players[0] if public else None))
    return players


@dataclass(frozen=True)
class PublicClasses(Experiment):
    """Measure whether an agent with classes of flops wins against an agent without them.

    Does an agent play better if it sorts flops into classes of similar flops? In this experiment, two agents play
    no-limit hold'em with stacks of 25 big blinds against each other. One agent uses such classes on the flop, and the
    other does not.

    The two agents have the same bet sizes and the same number of buckets on the flop. The agent without classes sorts
    the hands of all flops into buckets together. The agent with classes has 20 classes of flops, and sorts the hands of
    each class separately. On all other rounds, the agents are the same.

    The two agents play each deal twice, with their seats swapped. For each deal, kilt computes the average winnings
    over all possible betting sequences (see ``evaluate.head_to_head``) instead of playing a single sequence at random.
    This removes luck, so fewer deals are needed. The first run also plays ordinary hands.

    All runs share one table of distances between flops, from which the classes are made. Everything else has new random
    seeds in each run: buckets, classes, solving and deals. Within a run, both agents are solved with the same number of
    iterations.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve both agents of a run, and play their match. The cell has mbb/h."""
        theirs, ours = _agents(int(case.split()[0]), seed, lab)
        deals, hands = (2 * max(50, round(lab.budget.amount / PACE * number / 2)) for number in (DEALS, HANDS))
        lab.say(f"{deals:,} deals in both seats" + ("" if seed else f", then {hands:,} sampled hands"))
        one, other = (AbstractStrategy(player.problem.abstract, player.strategy) for player in (ours, theirs))
        chips = expected_winnings(one, other, deals, SEED + seed, threads=lab.threads).mean(axis=1)
        won = estimate_mean(chips * 1000 / ours.problem.big_blind)
        more = {"deals": deals, "deals_ci95": [list(won.interval)]}
        more |= {"iterations": [[ours.iterations, theirs.iterations]]}
        if seed == 0:
            specs = str(ours.folder), str(theirs.folder)
            match = play_match(ours.problem.abstract.game, specs, hands, load=load_agent, processes=lab.threads)
            played = win_rate(match)
            more |= {"played_out": played.mean, "played_out_ci95": list(played.interval)}
        return Cell({case: won.mean}, more=more, seconds=ours.seconds + theirs.seconds)

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Join the lists of all runs."""
        lists = {key: [one for cell in cells for one in cell.more[key]] for key in ("deals_ci95", "iterations")}
        return dict(cells[0].more) | lists


FIGURE_5 = PublicClasses(
    "schmid-figure-5",
    "[Schmid15 figure 5]",
    "Winnings of an agent with classes of flops against an agent without them, with 25 big blinds",
    rows=tuple(RowSpec(f"{buckets} buckets", "mbb/h", paper) for buckets, paper in PAPER.items()),
    claims={
        f"of two agents with {buckets:,} buckets on the flop, the agent with 20 classes of flops wins"
        + ("" if buckets in PRINTED else " (kilt's size)"): positive(f"{buckets} buckets")
        for buckets in PAPER
    },
    hint="only the first row, unless --only names others; each of --runs clusters and solves with its own seeds",
    time="10 min of a core for each of 2 agents of each run, about 6 min for cards, and once 25 min for flops",
    defaults=Setting("holdem.nolimit.2p.25bb", CellBudget(ITERATIONS, 40_000_000), 3, threads=2, only=("400 buckets",)),
    quick=changes(only=("400 buckets",), game="short.nolimit.2p", budget=CellBudget(ITERATIONS, 400_000), runs=3),
    clocks=(ITERATIONS,),
)
