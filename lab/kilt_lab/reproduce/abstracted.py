"""Figures and tables about abstracted players: how exploitable they are in the whole game.

Three ways to make an abstracted player: both players of the game are abstracted; one is, and learns against one who is
not; one is, and learns against best responses, by CFR-BR with a hybrid opponent [Johanson16 §§4.3, 4.4, 5.5].
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import perf_counter, thread_time

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import Plan, plan_named
from kilt.arrays import Array
from kilt.evaluate.flops import FlopResponses, Watcher, draw_flops, flop_walks, flop_weights
from kilt.jit import cores
from kilt.players.agents import load_holdem
from kilt.runs.budget import Step
from kilt.runs.loop import CHUNK
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.cfr import Cfr
from kilt.solve.problem import CPU, require_device
from kilt.solve.registry import make_solver
from kilt.solve.solver import Solver
from kilt.solve.tables.memory import TreeTables
from kilt.viz.convergence import plot_convergence
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.agents import with_spare_seeds
from kilt_lab.reproduce.claims import Claim, Row
from kilt_lab.reproduce.convergence import BRIEF, mean_curve, seldom
from kilt_lab.reproduce.figure_6_holdem import StoppedError
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, CFR_BR = "holdem.2-4", "cfr-br"
WAYS = {"both": "abstract", "one": "real", CFR_BR: "response"}
LEVEL, EARLY = 0.02, 1 / 32  # what of exploitability a doubling changes that has settled; time before that is looked at
_BUILDING = Lock()  # one abstraction is built at a time


@dataclass(frozen=True)
class Case:
    """An abstraction, a way to solve it, and what the paper has."""

    plan: str
    way: str
    paper: float | None = None
    elsewhere: float | None = None  # what the paper has for another game

    def name(self, *, short: bool) -> str:
        """As a row."""
        return self.way if short else f"{self.plan} {self.way}"


def abstract_problem(
    plan: str,
    game: str,
    folder: Path,
    rolled_out: str | None = None,
    *,
    seed: int = 0,
    threads: int = 1,
    device: str = CPU,
) -> AbstractProblem:
    """A game with an abstraction that is built for it in a folder; one thread will walk it.

    Where another game is named, hands are sorted as in its first rounds, as if its other rounds were to come. A plan
    that has more buckets before the flop than there are hands tells all of these apart, and one of more rounds is cut.
    """
    rules = load_holdem(game)
    own, deal = Deal.of(rules), Deal.of(load_holdem(rolled_out) if rolled_out else rules)
    kept, (kind, first, *others) = len(own.board_cards), re.split("[ -](?=[0-9])", plan)
    plan = f"{kind} {'-'.join([str(min(int(first), len(own.holdings((0,))))), *others[: kept - 1]])}"
    rounds = plan_named(plan + "-1" * (len(deal.board_cards) - kept), deal.board_cards).rounds
    unseen = (replace(later, recall=False) for later in rounds[kept:])
    identity = AbstractionSpec(plan, deal, Plan((*rounds[:kept], *unseen), seed=seed))
    with _BUILDING:
        cards = build(identity, folder, cache=artifact.cache_folder(), threads=threads).of_first_rounds(own)
    return AbstractProblem(AbstractGame(rules, cards), (folder,), device=require_device(device))


def exploitability(
    problem: AbstractProblem, strategy: Array, watcher: Watcher, flops: int | None = None, seed: int = 0
) -> float:
    """What opponents who see all cards win from a strategy of slots, in mbb/g, on the device of the problem.

    On all flops; where there are more than `flops`, an estimate from as many that are drawn. `StoppedError` where the
    user wishes to stop.
    """
    walks = flop_walks(problem, strategy, problem.device)
    drawn = draw_flops(walks.game, flops, seed) if flops and len(flop_weights(walks.game)) > flops else None
    with TemporaryDirectory() as folder:
        found = FlopResponses.begun(walks, "figure", problem.abstract.fingerprint, Path(folder) / "responses", drawn)
        found.go_on(watcher, "best responses")
    if not found.complete:
        raise StoppedError
    chips = sum(found.won()) / 2 if drawn is None else found.estimate().mean
    return 1000 * chips / problem.big_blind


class AbstractedSolver:
    """A way to make an abstracted player, with what its strategies are worth in mbb/g of the whole game.

    As in the paper boards are drawn for each iteration. CFR-BR goes on the device of the problem, other ways on the
    CPU.
    """

    def __init__(self, problem: AbstractProblem, way: str, variant: str, trunk: int, seed: int) -> None:
        self.problem, self.scale = problem, 1000 / problem.big_blind
        self.on_device = way == CFR_BR and problem.device != CPU
        self.clock = perf_counter if self.on_device else thread_time
        self.solver: Solver = (
            make_solver(problem, f"{CFR_BR}:{trunk}:{variant}", seed)
            if self.on_device
            else Cfr(TreeTables(problem.bucketed, scheme="pcs", opponent=WAYS[way], trunk=trunk, seed=seed), variant)
        )

    def step(self, iterations: int) -> float:
        """Run some iterations; the seconds that they took, of one core or of the device."""
        began = self.clock()
        self.solver.step(iterations)
        return self.clock() - began

    def exploitability(self, strategy: Array, watcher: Watcher) -> float:
        """That of the average or the current strategy."""
        if self.on_device:
            return exploitability(self.problem, strategy, watcher)
        return self.scale * self.problem.bucketed.exploitability(strategy)

    def point(self, spent: float, watcher: Watcher, *, whole: bool) -> Step:
        """Where the average strategy stands and, of a `whole` point, the current one and the value of the game."""
        average, current, value = self.solver.average(), nan, nan
        if whole:
            current = self.exploitability(self.solver.current(), watcher)
            value = nan if self.on_device else self.scale * self.problem.bucketed.expected_value(average)
        return Step(self.solver.iterations, spent, self.exploitability(average, watcher), current, value)


def settled(steps: Sequence[Step]) -> bool:
    """Whether the last doubling of iterations changed exploitability by less than `LEVEL` of it.

    >>> at = [Step(count, 0.0, figure, nan, nan) for count, figure in ((64, 80.0), (128, 70.0), (256, 69.0))]
    >>> settled(at[:2]), settled(at), settled([at[1], at[2]._replace(iterations=200)])
    (False, True, False)
    """
    if len(steps) < 2:
        return False
    before, last = steps[-2:]
    doubled = last.iterations >= 2 * before.iterations
    return doubled and abs(before.exploitability - last.exploitability) < LEVEL * before.exploitability


def converge(
    problem: AbstractProblem,
    way: str,
    seconds: float,
    watcher: Watcher,
    *,
    variant: str = "cfr",
    trunk: int = 1,
    curve: bool = True,
    seed: int = 0,
) -> list[Step]:
    """Where a solver stands in the end and, for a curve, after 1, 2, 4, 8, … iterations, in mbb/g of the whole game.

    It ends after some `seconds` of one core, or of a GPU; CFR-BR as soon as it has `settled`, for which it is measured
    at each doubling of iterations once `EARLY` of the time is over. Brief runs are measured after 1, 8, 64, …
    iterations, or in the end by their average strategy alone, and do not end sooner. Measuring is not counted, nor is
    the first iteration, in which kernels may be compiled. `StoppedError` where the user wishes to stop.
    """
    solver = AbstractedSolver(problem, way, variant, trunk, seed)
    steps, spent, pace, brief = list[Step](), 0.0, CHUNK, seconds < BRIEF
    while not watcher.stopped():
        before = solver.solver.iterations
        due = seldom(before + 1) if brief else 1 << before.bit_length()
        took = solver.step(max(1, min(due - before, int(CHUNK / pace))))
        if before:
            pace, spent = max(took / (solver.solver.iterations - before), 1e-9), spent + took
        over, doubled = before > 0 and spent + pace > seconds, solver.solver.iterations == due
        watcher.show(f"{problem.name}, {way}", min(1.0, spent / seconds), max(0.0, seconds - spent))
        ending = way == CFR_BR and not brief and spent > EARLY * seconds
        if over or (doubled and (curve or ending)):
            steps.append(solver.point(spent, watcher, whole=curve or (over and not brief)))
        if over or (ending and settled(steps)):
            return steps
    raise StoppedError


def cases(
    name: str,
    what: str,
    rows: Sequence[Case],
    minutes: float,
    *,
    curves: bool,
    game: str = GAME,
    rolled_out: str | None = None,
    trunk: int = 1,
    variant: str = "cfr",
    claims: tuple[Claim, ...],
    quick: Request,
) -> Reproduction:
    """A table or figure of some cases, `minutes` for each run; a picture of their curves where they belong together.

    Each thread has a run of its own, and its minutes are those of one core. Unless `asked` for another game, hands may
    be sorted as in one with more rounds: see `abstract_problem`.
    """
    named = {case.name(short=curves): case for case in rows}

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        path = asked.out or Path(f"kilt-{name}.png")
        if curves:
            require_drawable(path)
        device, chosen = asked.device or CPU, asked.game or game
        threads = 1 if device != CPU else cores() if asked.threads is None else asked.threads
        depth = min(trunk, load_holdem(chosen).rules.rounds - 1)
        found, drawn = list[Row](), dict[str, list[Step]]()
        budget, runs = 60 * (minutes if asked.minutes is None else asked.minutes), asked.runs or 1

        def solved(case: Case, seed: int) -> tuple[int, list[Step]]:
            """How many information sets the players of a run have, and where it stands, point by point."""
            if watcher.stopped():
                raise StoppedError
            watcher.say(f"{case.plan}, {case.way}, run {seed + 1} of {runs}", budget)
            with TemporaryDirectory() as folder:

                def built(clusters: int) -> AbstractProblem:
                    cards, longer = Path(folder) / f"cards-{clusters}", None if asked.game else rolled_out
                    return abstract_problem(
                        case.plan, chosen, cards, longer, seed=clusters, threads=threads, device=require_device(device)
                    )

                problem = with_spare_seeds(built, seed, watcher)
                steps = converge(
                    problem, case.way, budget, watcher, variant=variant, trunk=depth, curve=curves, seed=seed
                )
            return sum(problem.abstract.size.infosets), steps

        pool, wanted = ThreadPoolExecutor(threads), asked.only or tuple(named)
        started = {row: [pool.submit(solved, named[row], seed) for seed in range(runs)] for row in wanted}
        try:
            for row, futures in started.items():
                (infosets, *_), done = zip(*(one.result() for one in futures), strict=True)
                case, ends = named[row], [steps[-1] for steps in done]
                drawn[row] = mean_curve(done).steps
                last = drawn[row][-1]
                more = {
                    "current": last.current_exploitability,
                    "iterations": last.iterations,
                    "curve": [(step.iterations, step.exploitability) for step in drawn[row]],
                    "information_sets": infosets,
                    "limit_holdem": case.elsewhere,
                }
                if case.way == CFR_BR:
                    more["settled"] = all(map(settled, done))
                spent, printed = sum(end.seconds for end in ends), case.paper if asked.game in (None, game) else None
                found.append(Row.of_runs(row, [end.exploitability for end in ends], "mbb/g", spent, more, printed))
                if curves:
                    plot_convergence(drawn, f"{what.partition(':')[0]}: {case.plan}", path, "mbb/g")
        except StoppedError:
            pass
        finally:
            pool.shutdown(cancel_futures=True)
        return ReproductionResult(what, found, path if curves and found else None)

    return Reproduction(
        what=what,
        time=f"{minutes:g} min of a core for each of {len(named)} rows, less where CFR-BR settles, and time to measure",
        rows=tuple(named),
        run=reproduce,
        options=("only", "game", "minutes", "threads", "runs", "device", *["out"] * curves),
        hint="each of --runs has buckets and seeds of its own, and a thread; --device gpu for rows of CFR-BR",
        claims=claims,
        quick=quick,
        keeps=f"kilt-{name}.png" if curves else "",
    )
