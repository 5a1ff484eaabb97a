"""Figure 5 of [Schmid15]: what it is worth to know the class of the public flop.

Two agents with 25 big blinds, identical bets and equal numbers of buckets. One has plain distribution-aware buckets on
the flop; the other sorts flops into 20 classes first and has its buckets inside each class. Preflop, turn and river are
the same. All that one wins from the other comes from that.

The match is on duplicate deals, and what both may bet is averaged over, not drawn: see
`evaluate.head_to_head`. So few deals say as much as many hands that are played out; a match of these is beside it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kilt import artifact
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.config import Config, SolverConfig
from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import SEED, AbstractStrategy, expected_winnings
from kilt.evaluate.players import load_agent, load_holdem
from kilt.evaluate.stats import Estimate, estimate, win_rate
from kilt.jit import cores
from kilt.play.match import play_match
from kilt.reproduce.agents import SolvedAgent, solved_agent
from kilt.reproduce.claims import Claim, Row, positive
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, ACTIONS, CLASSES = "holdem.nolimit.2p.25bb", "50%, 1x, a; 1x, a; a", 20
MINUTES = 10.0
PAPER = {400: None, 1000: None, 2000: 4.366}  # of 1,000 buckets our copy of the paper has lost the number
PRINTED = (1000, 2000)  # sizes of the paper; 400 is ours
DEALS, HANDS = 200_000, 100_000
FOLDER = "kilt-schmid-figure-5"


def _config(game: str, folder: Path, buckets: int, public: bool, solver: SolverConfig) -> Config:
    """An agent: its buckets are sorted without a look at the board, or inside classes of flops."""
    deal = Deal.of(load_holdem(game))
    hands = len(deal.holdings((0,)))
    plan = plan_named(f"IR-KE-KO {hands}-{buckets}-{buckets}-{buckets}", deal.board_cards)
    plan = replace(plan, seed=solver.seed)
    if public:
        flop = replace(plan.rounds[1], steps=(replace(plan.rounds[1].steps[0], buckets=buckets // CLASSES),))
        classes = PublicPlan(2, CLASSES, method="schmid", until=2, seed=solver.seed)
        plan = replace(plan, rounds=(plan.rounds[0], flop, *plan.rounds[2:]), public=(classes,))
    run = f"-run-{solver.seed}" if solver.seed else ""
    file = folder / f"{'public' if public else 'plain'}-{buckets}{run}.toml"
    with artifact.os_errors(f"{folder} cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        artifact.write_text(file, plan.toml())
    return Config(game, (str(file.resolve()),), (ACTIONS,), solver=solver)


def _meet(ours: SolvedAgent, theirs: SolvedAgent, deals: int, threads: int, run: int) -> Estimate:
    """What one wins from the other, in mbb/h."""
    one, other = (AbstractStrategy(player.problem.abstract, player.strategy) for player in (ours, theirs))
    won = expected_winnings(one, other, deals, SEED + run, threads=threads)
    return estimate(won.mean(axis=1) * 1000 / ours.problem.big_blind)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    out, threads = asked.out or Path(FOLDER), asked.threads or cores()
    minutes, found = MINUTES if asked.minutes is None else asked.minutes, list[Row]()
    for row in asked.only or FIGURE.rows[:1]:
        buckets, rates, played, players = int(row.split()[0]), list[Estimate](), list[Estimate](), list[SolvedAgent]()
        for run in range(asked.runs or 1):
            solver = SolverConfig(minutes=minutes, threads=threads, seed=run)
            for public in (True, False):
                config = _config(asked.game or GAME, out, buckets, public, solver)
                player = solved_agent(config, out / Path(config.cards[0]).stem, watcher)
                if player is None:
                    return ReproductionResult(FIGURE.what, found)
                players.append(player)
            ours, theirs = players[-2:]
            deals, hands = (2 * max(50, round(number / 2 * min(1.0, minutes / MINUTES))) for number in (DEALS, HANDS))
            watcher.say(f"{row}: {deals:,} deals in both seats, then {hands:,} hands played out")
            rates.append(_meet(ours, theirs, deals, threads, run))
            specs = str(ours.folder), str(theirs.folder)
            game = ours.problem.abstract.game
            played.append(win_rate(play_match(game, specs, hands, run, load=load_agent, processes=threads)))
        more = {
            "deals_ci95": [rate.interval for rate in rates],
            "played_out": played[0].mean,
            "played_out_ci95": played[0].interval,
            "iterations": [player.iterations for player in players],
        }
        seconds = sum(player.seconds for player in players)
        whole = Row.of_runs(row, [rate.mean for rate in rates], "mbb/h", seconds, more, PAPER[buckets])
        found.append(whole if len(rates) > 1 else whole._replace(margin=rates[0].margin))
    return ReproductionResult(FIGURE.what, found)


FIGURE = Reproduction(
    what="[Schmid15 figure 5]: public classes of flops against plain buckets, 25 big blinds, duplicate",
    time=f"{MINUTES:g} min of solving for each of 2 agents a row, and about as much for their cards",
    rows=tuple(f"{buckets} buckets" for buckets in PAPER),
    run=_reproduce,
    options=("only", "game", "minutes", "threads", "out", "runs"),
    hint="the first row, unless --only asks for others; each of --runs clusters and solves with seeds of its own",
    claims=tuple(
        Claim(
            f"of two agents with {buckets:,} buckets on the flop, the one that knows 20 classes of flops wins"
            + ("" if buckets in PRINTED else ", a size of ours"),
            "[Schmid15 figure 5]",
            positive(f"{buckets} buckets"),
        )
        for buckets in PAPER
    ),
    quick=Request(only=("400 buckets",), game="short.nolimit.2p", minutes=0.1, runs=3),
    keeps=FOLDER,
)
