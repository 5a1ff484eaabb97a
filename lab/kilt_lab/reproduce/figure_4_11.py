"""[Johanson16 figure 4.11]: CFR-BR in limit hold'em, with abstractions of two and of three buckets a round.

The trunk has two rounds; a flop and a turn are drawn for each seat of an iteration. The thesis does not say by which
feature its buckets are made: here it is percentiles of hand strength. Real exploitability is that of best responses on
all flops. What was solved and measured is kept, so that the command goes on where it was stopped.
"""

from __future__ import annotations

from pathlib import Path
from sys import maxsize

from kilt.config import config_of
from kilt.evaluate.flops import Watcher
from kilt.jit import cores
from kilt.players.agents import load_holdem
from kilt.players.profile import Subject
from kilt.runs.budget import Budget
from kilt.runs.folder import CONFIG
from kilt.runs.plan import resolve
from kilt.runs.run import configured_run
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.problem import CPU
from kilt_lab.reproduce.claims import Claim, Row, as_printed, lower
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

WHAT = "[Johanson16 figure 4.11]: exploitability of CFR-BR with two and three buckets a round, in limit hold'em"
SOURCE, GAME, MINUTES = "[Johanson16 figure 4.11]", "holdem.limit.2p", 7.0
PAPER = {"PR-2": 218.487, "PR-3": 175.824}
FOLDER = Path("kilt-figure-4.11")


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    game, device, rows = asked.game or GAME, asked.device or CPU, list[Row]()
    budget = Budget(seconds=60 * (MINUTES if asked.minutes is None else asked.minutes))
    threads = min(cores(), 2) if asked.threads is None else asked.threads
    for name in asked.only or PAPER:
        if watcher.stopped():
            break
        folder = (asked.out or FOLDER) / name
        buckets = "-".join([name.removeprefix("PR-")] * load_holdem(game).rules.rounds)
        solver = {"algorithm": "cfr-br:2:linear", "threads": threads}
        config = config_of({"game": game, "cards": f"PR-PHS-PHS {buckets}", "solver": solver})
        watcher.say(f"{name}: {budget} of solving, and time to measure", budget.seconds)
        plan, begun = resolve(config, folder).on(device), (folder / CONFIG).is_file()
        run = configured_run(plan, folder, budget=budget, going_on=begun, tick=lambda what, share: None)
        run.schedule = lambda iteration: maxsize  # it is measured below, at the end alone
        *_, last = run.steps(stop=watcher.stopped)
        if watcher.stopped():
            break
        subject = Subject.of_run(folder)
        judge, strategy, _ = subject.load(threads, device=device)
        problem = judge.problem
        assert isinstance(problem, AbstractProblem)
        responses = subject.flop_responses(problem, strategy, device=device)
        responses.go_on(watcher, f"{name}: best responses")
        if not responses.complete:
            break
        ours = 1000 / problem.big_blind * sum(responses.won()) / 2
        more = {"iterations": last.iterations, "information_sets": sum(problem.abstract.size.infosets)}
        rows.append(Row(name, PAPER[name] if game == GAME else None, ours, "mbb/g", last.seconds, more))
    return ReproductionResult(WHAT, rows)


FIGURE = Reproduction(
    what=WHAT,
    time=f"on a GPU {MINUTES:g} min for each of 2 rows, and 6 to measure; days without one",
    rows=tuple(PAPER),
    run=_reproduce,
    options=("only", "game", "minutes", "threads", "out", "device"),
    hint="--device gpu; --game short.4-1 for a game that a CPU solves in seconds",
    claims=(
        Claim(
            "CFR-BR with two buckets comes to 218.487 mbb/g, within 10%, a margin that is ours",
            SOURCE,
            as_printed("PR-2", 21.8),
        ),
        Claim(
            "CFR-BR with three buckets comes to 175.824 mbb/g, within 10%, a margin that is ours",
            SOURCE,
            as_printed("PR-3", 17.6),
        ),
        Claim("three buckets are less exploitable than two", SOURCE, lower("PR-3", "PR-2")),
    ),
    quick=Request(game="short.4-1", minutes=0.05),
    keeps=str(FOLDER),
)
