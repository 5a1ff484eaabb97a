"""Table 2 of [Brown15]: what post-processing is worth, in duplicate matches against agents of other abstractions.

The paper's opponents were the two strongest of 2013, which nobody else has. Ours are two agents with other buckets and
other bets than those of the agent whose strategy is post-processed; so bets must be translated, as in the paper.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kilt import artifact
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import Plan, PublicPlan, plan_named
from kilt.config import Config, SolverConfig
from kilt.evaluate.flops import Watcher
from kilt.evaluate.matchup import meet
from kilt.evaluate.stats import Estimate, win_rate
from kilt.jit import cores
from kilt.players.agents import load_agent, load_holdem
from kilt_lab.reproduce.agents import solved_agent
from kilt_lab.reproduce.claims import Claim, Row, Slack, contrast
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request, whole_runs

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
    "new-0.1": (None, None),
    "new-0.2": (39.0, 103.0),
}
FOLDER, SOURCE, NEW, PURE = "kilt-tartanian7-table-2", "[Brown15 table 2]", "new-0.2", "purification-after-first"


def above(rule: str, other: str) -> Slack:
    """A rule wins more than another one, in the mean over opponents."""
    signs = (rule, 1 / len(OPPONENTS)), (other, -1 / len(OPPONENTS))
    return contrast({f"{one} against {name}": sign for one, sign in signs for name in OPPONENTS})


CLAIMS = (
    Claim("the new family, at 0.2, wins more than purification, in the mean", SOURCE, above(NEW, PURE)),
    Claim("… and more than thresholding at 0.15", SOURCE, above(NEW, "threshold-0.15")),
    Claim("… and at 0.2 more than at 0.1", "[Brown15 footnote 7]", above(NEW, "new-0.1")),
    Claim("purification wins more than no post-processing, in the mean", SOURCE, above(PURE, "none")),
    Claim("thresholding at 0.15 wins more than no post-processing", SOURCE, above("threshold-0.15", "none")),
    Claim("the new family wins more than no post-processing", SOURCE, above(NEW, "none")),
)


def _configs(game: str, out: Path, solver: SolverConfig) -> dict[str, Config]:
    """The agent whose strategy is post-processed, and its opponents."""
    deal, cards = Deal.of(load_holdem(game)), out / f"agent{_run(solver.seed)}.toml"
    hands, seed = f" {len(deal.holdings((0,)))}-", solver.seed

    def plan(name: str) -> Plan:
        return replace(plan_named(name.replace(" 169-", hands), deal.board_cards), seed=seed)

    classes = replace(CLASSES, base=CLASSES.base.replace(" 169-", hands), seed=seed)
    with artifact.os_errors(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
        artifact.write_text(cards, replace(plan(AGENT[0]), public=(classes,)).toml())
        files = {name: out / f"opponent-{name}{_run(seed)}.toml" for name in OPPONENTS}
        for name, file in files.items():
            artifact.write_text(file, plan(OPPONENTS[name][0]).toml())
    made = {"agent": Config(game, (str(cards.resolve()),), (AGENT[1],), solver=solver)}
    return made | {
        name: Config(game, (str(file.resolve()),), (OPPONENTS[name][1],), solver=solver) for name, file in files.items()
    }


def _run(seed: int) -> str:
    """What the files of a run end with."""
    return f"-run-{seed}" if seed else ""


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    out, threads = asked.out or Path(FOLDER), asked.threads or cores()
    minutes = MINUTES if asked.minutes is None else asked.minutes
    hands = 2 * max(1, round(HANDS / 2 * max(0.1, minutes / MINUTES)))
    rows = asked.only or TABLE.rows

    def run(seed: int) -> tuple[float, list[Estimate]]:
        """Seconds for which the agent was solved, and what it wins in each row."""
        configs = _configs(asked.game or GAME, out, SolverConfig(minutes=minutes, threads=threads, seed=seed))
        players, won = {}, list[Estimate]()
        for name, config in configs.items():
            player = solved_agent(config, out / Path(config.cards[0]).stem, watcher)
            if player is None:
                return 0.0, won
            players[name] = player
        game = players["agent"].problem.abstract.game
        for row in rows:
            rule, _, name = row.partition(" against ")
            watcher.say(f"{row}: {hands:,} duplicate hands")
            specs = f"{players['agent'].folder}@{rule}", f"{players[name].folder}@none"
            match = meet(game, specs, hands, seed, load=load_agent, processes=threads, stop=watcher.stopped)
            if watcher.stopped():
                break
            won.append(win_rate(match))
        return players["agent"].seconds, won

    runs, found = whole_runs(asked.runs or 1, run, watcher), list[Row]()
    seconds = sum(spent for spent, _ in runs)
    for place, row in enumerate(rows if runs else ()):
        (rule, _, name), rates = row.partition(" against "), [won[place] for _, won in runs]
        more = {"hands": hands, "hands_ci95": [rate.interval for rate in rates]}
        paper = PAPER[rule][list(OPPONENTS).index(name)]
        whole = Row.of_runs(row, [rate.mean for rate in rates], "mbb/h", seconds, more, paper)
        found.append(whole if len(rates) > 1 else whole._replace(margin=rates[0].margin))
    return ReproductionResult(TABLE.what, found)


TABLE = Reproduction(
    what="[Brown15 table 2]: post-processing, in duplicate matches against two agents of other abstractions",
    time=f"{MINUTES:g} min of solving for each of 3 agents, some for their cards, and a minute for each of 10 matches",
    rows=tuple(f"{rule} against {name}" for rule in PAPER for name in OPPONENTS),
    run=_reproduce,
    options=("only", "game", "minutes", "threads", "out", "runs"),
    hint="the paper's opponents were others; each of --runs clusters and solves with seeds of its own",
    claims=CLAIMS,
    quick=Request(game="short.nolimit.2p", minutes=0.05, runs=3),
    keeps=FOLDER,
)
