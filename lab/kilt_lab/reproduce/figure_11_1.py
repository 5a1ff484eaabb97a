"""[Johanson16 figure 11.1]: CFR-BR with trunks of one, two and three rounds, in [4-2] hold'em.

The thesis has [4-2] hold'em, which is limit hold'em with two bets a round, and 9,000 buckets a round by clusters of
histograms. There are 500 here, so that several runs can have clusters of their own; in the last round a histogram is
one strength, and percentiles stand for it. All trunks have the same
time, on a CPU that of all cores together, and are compared at three points of it. Measuring does not count, nor does
the first iteration, in which kernels may be compiled. Each run has buckets and seeds of its own; where there are many
flops, it is measured on some that are drawn, the same for all trunks. What was found is kept, so that the command goes
on where it was stopped.

The thesis says that at the end a trunk of three rounds "exactly matches" one of two [Johanson16 §11.2]. Only curves
that have ended decide that: the claim is not decided unless the last three quarters of the time changed the
exploitability of both trunks by less than `WITHIN`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.config import config_of
from kilt.errors import RunError
from kilt.evaluate.flops import Watcher
from kilt.jit import cores
from kilt.players.agents import load_holdem
from kilt.runs.loop import CHUNK
from kilt.runs.plan import resolve
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.problem import CPU
from kilt.solve.registry import make_solver
from kilt.viz.lines import plot_lines
from kilt_lab.reproduce.abstracted import exploitability
from kilt_lab.reproduce.claims import Claim, Row, Slack, every, higher, lower, where
from kilt_lab.reproduce.figure_6_holdem import KeptAnswers, StoppedError
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

SOURCE, GAME = "[Johanson16 figure 11.1]", "holdem.4-2"
WHAT = f"{SOURCE}: CFR-BR with trunks of one, two and three rounds, in [4-2] hold'em"
TRUNKS = (1, 2, 3)
POINTS = {"at first": 1 / 16, "midway": 1 / 4, "in the end": 1.0}  # shares of the time
BUCKETS, FEWER = 500, 104  # a round: in the game of the thesis, in others
MINUTES, RUNS, FLOPS = 10.0, 5, 100  # of a run of one trunk; runs; flops that are drawn, where there are more
WITHIN = 0.05  # what counts as alike, and as no longer changing: a margin of ours, the thesis says "exactly matches"
FOLDER = Path("kilt-figure-11.1")


def _row(trunk: int, point: str) -> str:
    return f"trunk {trunk}, {point}"


def _problem(name: str, trunk: int, seed: int, threads: int, device: str, folder: Path) -> AbstractProblem:
    """The abstract game of a run; RunError where memory does not hold it with a trunk."""
    game = load_holdem(name)
    deal, buckets = Deal.of(game), BUCKETS if name == GAME else FEWER
    cards = f"IR-KE-PHS {len(deal.holdings((0,)))}" + f"-{buckets}" * (game.rules.rounds - 1)
    config = {"game": name, "cards": cards, "solver": {"algorithm": f"cfr-br:{trunk}", "threads": threads}}
    plan, spec = resolve(config_of(config)).on(device), AbstractionSpec.named(cards, deal)
    plan = replace(plan, cards=(replace(spec, plan=replace(spec.plan, seed=seed)),))
    wanted = plan.estimate()
    if device == CPU and not wanted.fits:  # a GPU is asked for its own memory
        raise RunError(
            f"a trunk of {trunk} rounds takes {wanted.memory / 1e9:,.0f} GB of memory on {name}: use --game short.4-1, "
            f"or --only {_row(1, next(iter(POINTS)))!r} and others with fewer rounds"
        )
    return plan.build(folder / f"run-{seed}")


def converge(problem: AbstractProblem, trunk: int, seconds: float, seed: int, watcher: Watcher) -> list[float]:
    """Exploitability in mbb/g of CFR-BR's average strategy at all `POINTS`, then its iterations there."""
    solver = make_solver(problem, f"cfr-br:{trunk}", seed)
    clock = process_time if problem.device == CPU else perf_counter
    solver.step(1)
    spent, pace, found, iterations = 0.0, 0.0, list[float](), list[float]()
    for share in POINTS.values():
        while spent + pace <= share * seconds:
            if watcher.stopped():
                raise StoppedError
            before, began = solver.iterations, clock()
            solver.step(max(1, int(min(CHUNK, share * seconds - spent) / pace)) if pace else 1)
            took = clock() - began
            pace, spent = took / (solver.iterations - before), spent + took
            watcher.show(f"trunk {trunk}", min(1.0, spent / seconds), max(0.0, seconds - spent))
        found.append(exploitability(problem, solver.average(), watcher, FLOPS, seed))
        iterations.append(solver.iterations)
    return found + iterations


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    name, folder, device = asked.game or GAME, asked.out or FOLDER, asked.device or CPU
    seconds = 60 * (MINUTES if asked.minutes is None else asked.minutes)
    runs, chosen = RUNS if asked.runs is None else asked.runs, asked.only or FIGURE.rows
    threads = min(cores(), 2) if asked.threads is None else asked.threads
    trunks = [trunk for trunk in TRUNKS if any(_row(trunk, point) in chosen for point in POINTS)]
    if (rounds := load_holdem(name).rules.rounds) <= trunks[-1]:
        raise RunError(f"{name} has {rounds} rounds, and a trunk of {trunks[-1]} leaves none: use --game short.4-1")
    kept, found = KeptAnswers(folder / "answers.jsonl"), {trunk: list[list[float]]() for trunk in trunks}
    with suppress(StoppedError):
        for seed in range(runs):
            for trunk in trunks:  # of a run one after another, so that what else the machine does is the same for all
                watcher.say(f"run {seed + 1} of {runs}, a trunk of {trunk} rounds", seconds)

                def solved(trunk: int = trunk, seed: int = seed) -> list[float]:
                    problem = _problem(name, trunk, seed, threads, device, folder)
                    return converge(problem, trunk, seconds, seed, watcher)

                key = f"{name} {device} {seconds:g} s, run {seed}, trunk {trunk}"
                found[trunk].append(kept.once(key, solved))
    rows, lines = list[Row](), dict[str, list[tuple[float, float, float]]]()
    for trunk, cells in found.items():
        for place, (point, share) in enumerate(POINTS.items()):
            if cells and (called := _row(trunk, point)) in chosen:
                ends, iterations = ([cell[place + more] for cell in cells] for more in (0, len(POINTS)))
                more = {"iterations": round(np.mean(iterations))}
                rows.append(row := Row.of_runs(called, ends, "mbb/g", share * seconds * len(cells), more))
                margin = 0.0 if row.margin in (None, inf) else row.margin
                lines.setdefault(f"trunk of {trunk}", []).append((share * seconds, row.ours, margin or 0.0))
    if not rows:
        return ReproductionResult(WHAT, rows)
    drawn = {which: np.array(points) for which, points in lines.items()}
    says = "seconds" if device != CPU else "CPU seconds", "exploitability [mbb/g]"
    plot_lines(drawn, f"{SOURCE}: {name}", path := folder / "figure.png", *says, logarithmic=(True, True))
    return ReproductionResult(WHAT, rows, path)


FIRST, MIDWAY, END = POINTS


def _alike(one: str, other: str) -> Slack:
    """Neither of two rows is more than `WITHIN` above the other."""
    return every(lower(one, other, factor=1 + WITHIN), lower(other, one, factor=1 + WITHIN))


ENDS = (_row(2, END), _row(3, END))
FIGURE = Reproduction(
    what=WHAT,
    time=f"on a GPU {MINUTES:g} min for each of {RUNS} runs of {len(TRUNKS)} trunks, and minutes to build and measure",
    rows=tuple(_row(trunk, point) for trunk in TRUNKS for point in POINTS),
    run=_reproduce,
    options=("only", "game", "minutes", "threads", "runs", "out", "device"),
    hint="--device gpu; --game short.4-1 for a game that fits on a CPU",
    claims=(
        Claim(
            "a trunk of two rounds converges more quickly than one of one round, at all points",
            SOURCE,
            every(*(lower(_row(2, point), _row(1, point)) for point in POINTS)),
        ),
        Claim(
            "a trunk of three rounds converges more slowly than one of two at first",
            SOURCE,
            higher(_row(3, FIRST), _row(2, FIRST)),
        ),
        Claim(
            f"a trunk of three rounds has no advantage over one of two: at no point is it lower by {WITHIN:.0%}, a "
            "margin that is ours",
            SOURCE,
            every(*(lower(_row(2, point), _row(3, point), factor=1 + WITHIN) for point in POINTS)),
        ),
        Claim(
            f"trunks of two and three rounds end alike, within {WITHIN:.0%}, a margin that is ours",
            SOURCE,
            where(every(*(_alike(_row(trunk, MIDWAY), _row(trunk, END)) for trunk in (2, 3))), _alike(*ENDS)),
        ),
    ),
    quick=Request(game="short.4-1", minutes=0.04, runs=3),
    keeps=str(FOLDER),
)
