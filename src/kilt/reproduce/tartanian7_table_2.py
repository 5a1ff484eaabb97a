"""Table 2 of [Brown15]: what post-processing is worth, in duplicate matches against agents of other abstractions.

The paper's opponents were the two strongest of 2013, which nobody else has. Ours are two agents with other buckets and
other bets than those of the agent whose strategy is post-processed; so bets must be translated, as in the paper.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kilt import artifact
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.config import Config, SolverConfig
from kilt.evaluate.flops import Watcher
from kilt.evaluate.players import load_agent
from kilt.evaluate.stats import win_rate
from kilt.jit import cores
from kilt.play.match import play_match
from kilt.reproduce.agents import solved_agent
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request, Row

GAME, MINUTES, HANDS = "holdem.nolimit.2p.50bb", 2.0, 40_000
AGENT = "IR-KE-KO 169-20-20-20", "1x, a / 50%, 1x, a; 1x, a; a"
CLASSES = PublicPlan(2, 10, base="IR-KE-KO 169-500-500-500", codes=500)
OPPONENTS = {  # in the places of Hyperborean and Slumbot
    "A": ("IR-KE-KO 169-200-200-200", "75%, a / 75%, a; 75%, a; a"),
    "B": ("IR-PHS-PHS 169-100-100-100", "2x, a / 33%, 1x, 2x, a; 1x, a; a"),
}
PAPER = {
    "none": (30.0, 10.0),
    "purification-after-first": (55.0, 19.0),
    "threshold-0.15": (35.0, 19.0),
    "new-0.2": (39.0, 103.0),
}


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    out, threads = asked.out or Path("kilt-tartanian7-table-2"), asked.threads or cores()
    minutes = MINUTES if asked.minutes is None else asked.minutes
    solving = SolverConfig(minutes=minutes, threads=threads)
    cards = out / "agent.toml"
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
        artifact.write_text(cards, replace(plan_named(AGENT[0], (0, 3, 1, 1)), public=(CLASSES,)).toml())
    configs = {"agent": Config(GAME, (str(cards.resolve()),), (AGENT[1],), solver=solving)}
    configs |= {
        f"opponent-{name}": Config(GAME, (abstraction,), (bets,), solver=solving)
        for name, (abstraction, bets) in OPPONENTS.items()
    }
    players = {}
    for name, config in configs.items():
        player = solved_agent(config, out / name, watcher)
        if player is None:
            return ReproductionResult(TABLE.what, [])
        players[name] = player
    game, hands = players["agent"].problem.abstract.game, 2 * round(HANDS / 2 * max(1.0, minutes / MINUTES))
    found = list[Row]()
    for row in asked.only or TABLE.rows:
        rule, _, name = row.partition(" against ")
        watcher.say(f"{row}: {hands:,} duplicate hands")
        specs = f"{out / 'agent'}@{rule}", f"{out / f'opponent-{name}'}@none"
        match = play_match(game, specs, hands, load=load_agent, processes=threads, stop=watcher.stopped)
        if watcher.stopped():
            break
        rate, paper = win_rate(match), PAPER[rule][list(OPPONENTS).index(name)]
        found.append(Row(row, paper, rate.mean, "mbb/h", players["agent"].seconds, {"hands": match.hands}, rate.margin))
    return ReproductionResult(TABLE.what, found)


TABLE = Reproduction(
    what="[Brown15 table 2]: post-processing, in duplicate matches against two agents of other abstractions",
    time=f"{MINUTES:g} min of solving for each of 3 agents, some for their cards, and a minute for each of 8 matches",
    rows=tuple(f"{rule} against {name}" for rule in PAPER for name in OPPONENTS),
    run=_reproduce,
    options=("only", "minutes", "threads", "out"),
    hint="the paper's opponents were others",
)
