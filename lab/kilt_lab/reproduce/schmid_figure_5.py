"""Figure 5 of [Schmid15]: what it is worth to know the class of the public flop.

Two agents with 25 big blinds, identical bets and equal numbers of buckets. One has plain distribution-aware buckets on
the flop; the other sorts flops into 20 classes first and has its buckets inside each class. Preflop, turn and river are
the same. All that one wins from the other comes from that.

They meet on duplicate deals, and what both may bet is averaged over, not drawn: see `evaluate.head_to_head`. So few
deals say as much as many hands that are played out; the first run has a match of these beside it.

Each run has seeds of its own: buckets, the start of k-medoids, solving and deals. The distances of flops have none: the
base that gathers hands is one for all, so that they are found once. Both agents have equally many iterations.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import nan
from pathlib import Path
from typing import NamedTuple

from kilt import artifact
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.config import Config, SolverConfig
from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import SEED, AbstractStrategy, expected_winnings
from kilt.evaluate.stats import Estimate, estimate, win_rate
from kilt.jit import cores
from kilt.play.match import play_match
from kilt.players.agents import load_agent, load_holdem
from kilt_lab.reproduce.agents import SolvedAgent, solved_agent
from kilt_lab.reproduce.claims import Claim, Row, positive
from kilt_lab.reproduce.figure_6_holdem import KeptAnswers, StoppedError
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, ACTIONS, CLASSES = "holdem.nolimit.2p.25bb", "50%, 1x, a; 1x, a; a", 20
MINUTES, RUNS = 10.0, 3
PACE = 4_000_000  # iterations for each minute that is asked for: what a core of 2020 or so does
PAPER = {400: None, 1000: None, 2000: 4.366}  # of 1,000 buckets our copy of the paper has lost the number
PRINTED = (1000, 2000)  # sizes of the paper; 400 is ours
DEALS, HANDS = 500_000, 10_000  # for each minute
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


class _Pair(NamedTuple):
    """What came of a run: two agents, and what the one with classes of flops wins from the other."""

    won: float  # mbb/h
    margin: float  # of the deals alone: half of the 95% interval
    cpu_seconds: float  # of solving
    deals: float
    iterations: float  # of the one with classes of flops
    plain_iterations: float
    played_out: float  # mbb/h in a duplicate match, which the first run has
    played_margin: float


def _meet(game: str, buckets: int, run: int, minutes: float, threads: int, out: Path, watcher: Watcher) -> _Pair:
    """Solve both agents of a run, and let them meet; StoppedError where the user wishes to stop."""
    solver = SolverConfig(iterations=max(1, round(minutes * PACE)), threads=threads, seed=run)
    players = list[SolvedAgent]()
    for public in (False, True):
        config = _config(game, out, buckets, public, solver)
        player = solved_agent(config, out / Path(config.cards[0]).stem, watcher, players[0] if public else None)
        if player is None:
            raise StoppedError
        players.append(player)
    theirs, ours = players
    deals, hands = (2 * max(50, round(minutes * number / 2)) for number in (DEALS, HANDS))
    watcher.say(f"{deals:,} deals in both seats" + ("" if run else f", then {hands:,} hands played out"))
    one, other = (AbstractStrategy(player.problem.abstract, player.strategy) for player in (ours, theirs))
    chips = expected_winnings(one, other, deals, SEED + run, threads=threads).mean(axis=1)
    won, played = estimate(chips * 1000 / ours.problem.big_blind), Estimate(nan, nan)
    if run == 0:
        specs = str(ours.folder), str(theirs.folder)
        played = win_rate(play_match(ours.problem.abstract.game, specs, hands, load=load_agent, processes=threads))
    seconds = ours.cpu_seconds + theirs.cpu_seconds
    return _Pair(won.mean, won.margin, seconds, deals, ours.iterations, theirs.iterations, played.mean, played.margin)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    out, threads, game = asked.out or Path(FOLDER), asked.threads or cores(), asked.game or GAME
    minutes, runs, found = MINUTES if asked.minutes is None else asked.minutes, asked.runs or RUNS, list[Row]()
    kept = KeptAnswers(out / "answers.jsonl")
    for row in asked.only or FIGURE.rows[:1]:
        buckets, pairs = int(row.split()[0]), list[_Pair]()
        with suppress(StoppedError):
            for run in range(runs):
                watcher.say(f"{row}, run {run + 1} of {runs}")
                key = f"{game}, {row}, {minutes:g} min, run {run}"
                meeting = partial(_meet, game, buckets, run, minutes, threads, out, watcher)
                pairs.append(_Pair(*kept.once(key, meeting)))
        if not pairs:
            break
        first = pairs[0]
        more = {
            "deals": int(first.deals),
            "deals_ci95": [(pair.won - pair.margin, pair.won + pair.margin) for pair in pairs],
            "played_out": first.played_out,
            "played_out_ci95": (first.played_out - first.played_margin, first.played_out + first.played_margin),
            "iterations": [(int(pair.iterations), int(pair.plain_iterations)) for pair in pairs],
        }
        seconds = sum(pair.cpu_seconds for pair in pairs)
        found.append(Row.of_runs(row, [pair.won for pair in pairs], "mbb/h", seconds, more, PAPER[buckets]))
        if len(pairs) < runs:
            break
    return ReproductionResult(FIGURE.what, found)


FIGURE = Reproduction(
    what="[Schmid15 figure 5]: public classes of flops against plain buckets, 25 big blinds, duplicate",
    time=f"{MINUTES:g} min of a core for each of 2 agents of {RUNS} runs a row, some 6 for cards, 25 once for flops",
    rows=tuple(f"{buckets} buckets" for buckets in PAPER),
    run=_reproduce,
    options=("only", "game", "minutes", "threads", "out", "runs"),
    hint="the first row, unless --only asks for others; each of --runs clusters and solves with seeds of its own; "
    f"--minutes stands for {PACE:,} iterations each, whatever the machine is busy with",
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
