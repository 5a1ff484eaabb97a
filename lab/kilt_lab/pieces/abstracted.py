"""Experiments on abstracted players: their exploitability in the full game.

There are three ways to make an abstracted player: both players use the abstraction; one player uses it and learns
against a player without abstraction; or one player uses it and learns against best responses, by CFR-BR with a hybrid
opponent [Johanson16 §§4.3, 4.4, 5.5].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from kilt import machine
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import Plan, plan_named
from kilt.arrays import Array
from kilt.evaluate.flops import FlopResponses, ProgressMonitor, draw_flops, flop_walks, flop_weights
from kilt.games.playable import load_holdem
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.cfr import Cfr
from kilt.solve.problem import CPU, require_device
from kilt.solve.registry import make_solver
from kilt.solve.solver import Solver
from kilt.solve.tables.memory import TreeTables
from kilt_lab.cells import ITERATIONS, Cell, CellBudget, CurvePoint, Measured, RowSpec, Setting
from kilt_lab.experiment import Lab, Stopped
from kilt_lab.pieces.agents import with_spare_seeds
from kilt_lab.pieces.convergence import BRIEF, Convergence, seldom, timed

CFR_BR = "cfr-br"
WAYS = {"both": "abstract", "one": "real", CFR_BR: "response"}
LEVEL, EARLY = 0.02, 1 / 32  # relative change of a settled doubling; share of the budget before it may count


class Way(NamedTuple):
    """An abstraction, and a way to solve it: a key of `WAYS`."""

    plan: str
    way: str


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
    """Return a game with an abstraction that is built in a folder, for walks on one thread.

    If `rolled_out` names another game, hands are put into buckets as in its first rounds, as if its later rounds
    followed. A plan with more buckets before the flop than there are hands distinguishes all hands; superfluous rounds
    are dropped.
    """
    rules = load_holdem(game)
    own, deal = Deal.from_game(rules), Deal.from_game(load_holdem(rolled_out) if rolled_out else rules)
    kept, (kind, first, *others) = len(own.board_cards), re.split("[ -](?=[0-9])", plan)
    plan = f"{kind} {'-'.join([str(min(int(first), len(own.holdings((0,))))), *others[: kept - 1]])}"
    rounds = plan_named(plan + "-1" * (len(deal.board_cards) - kept), deal.board_cards).rounds
    unseen = (replace(later, recall=False) for later in rounds[kept:])
    identity = AbstractionSpec(plan, deal, Plan((*rounds[:kept], *unseen), seed=seed))
    cards = build(identity, folder, cache=machine.cache_folder(), threads=threads).of_first_rounds(own)
    return AbstractProblem(AbstractGame(rules, cards), (folder,), device=require_device(device))


def exploitability(
    problem: AbstractProblem, strategy: Array, watcher: ProgressMonitor, flops: int | None = None, seed: int = 0
) -> float:
    """Return exploitability in mbb/g against opponents who see all cards, on the device of the problem.

    If there are more than `flops` flops, the value is an estimate from a sample of that size. Raises `Stopped` after
    Ctrl-C.
    """
    walks = flop_walks(problem, strategy, problem.device)
    drawn = draw_flops(walks.game, flops, seed) if flops and len(flop_weights(walks.game)) > flops else None
    with TemporaryDirectory() as folder:
        found = FlopResponses.open(walks, "figure", problem.abstract.fingerprint, Path(folder) / "responses", drawn)
        found.compute(watcher, "best responses")
    if not found.complete:
        raise Stopped
    chips = sum(found.response_values()) / 2 if drawn is None else found.estimate().mean
    return 1000 * chips / problem.big_blind


class AbstractedSolver:
    """A solver of an abstracted player, with exploitability in the full game in mbb/g.

    As in the paper, each iteration samples boards. CFR-BR runs on the device of the problem, other ways on the CPU.
    """

    def __init__(self, problem: AbstractProblem, way: str, variant: str, trunk: int, seed: int) -> None:
        self.problem, self.scale = problem, 1000 / problem.big_blind
        self.device = problem.device if way == CFR_BR else CPU
        self.solver: Solver = (
            Cfr(TreeTables(problem.bucketed, scheme="pcs", opponent=WAYS[way], trunk=trunk, seed=seed), variant)
            if self.device == CPU
            else make_solver(problem, f"{CFR_BR}:{trunk}:{variant}", seed)
        )

    def exploitability(self, strategy: Array, watcher: ProgressMonitor) -> float:
        """Return the exploitability of the average or the current strategy, in mbb/g."""
        if self.device == CPU:
            return self.scale * self.problem.bucketed.exploitability(strategy)
        return exploitability(self.problem, strategy, watcher)

    def point(self, spent: float, watcher: ProgressMonitor, *, whole: bool) -> CurvePoint:
        """Return a point with the exploitability of the average strategy and, if `whole`, of the current one."""
        current = self.exploitability(self.solver.current(), watcher) if whole else None
        return CurvePoint(self.solver.iterations, spent, self.exploitability(self.solver.average(), watcher), current)


def settled(steps: Sequence[CurvePoint]) -> bool:
    """Return whether the last doubling of iterations changed exploitability by less than `LEVEL` of it.

    >>> at = [CurvePoint(count, 0.0, figure) for count, figure in ((64, 80.0), (128, 70.0), (256, 69.0))]
    >>> settled(at[:2]), settled(at), settled([at[1], at[2]._replace(iterations=200)])
    (False, True, False)
    """
    if len(steps) < 2:
        return False
    before, last = steps[-2:]
    doubled = last.iterations >= 2 * before.iterations
    return doubled and abs(before.value - last.value) < LEVEL * before.value


def converge(
    problem: AbstractProblem,
    way: str,
    budget: CellBudget,
    watcher: ProgressMonitor,
    *,
    variant: str = "cfr",
    trunk: int = 1,
    curve: bool = True,
    seed: int = 0,
) -> list[CurvePoint]:
    """Return points of convergence in mbb/g of the full game: the end and, for a curve, 1, 2, 4, 8, … iterations.

    CFR-BR stops as soon as it has `settled`. For that it is measured at each doubling of iterations after `EARLY` of
    the budget. Short runs are measured after 1, 8, 64, … iterations, or only at the end and only by their average
    strategy, and do not stop early. The budget excludes measuring, and the first iteration, which may compile kernels.
    Raises `Stopped` after Ctrl-C.
    """
    solver = AbstractedSolver(problem, way, variant, trunk, seed)
    brief = budget.seconds is not None and budget.seconds < BRIEF
    solver.solver.step(1)
    steps = [solver.point(0.0, watcher, whole=True)] if curve else []
    schedule, what = seldom if brief else doubled, f"{problem.name}, {way}"
    for spent, over in timed(solver.solver, budget, watcher, what, schedule, solver.device):
        done = solver.solver.iterations if budget.clock == ITERATIONS else spent
        ending = way == CFR_BR and not brief and done > EARLY * budget.amount
        if over or curve or ending:
            steps.append(solver.point(spent, watcher, whole=curve or (over and not brief)))
        if ending and settled(steps):
            break
    return steps or [solver.point(0.0, watcher, whole=not brief)]


def doubled(iterations: int) -> int:
    """Return the first of 1, 2, 4, … that is not below `iterations`."""
    return 1 << (iterations - 1).bit_length()


@dataclass(frozen=True)
class AbstractedPlayers(Convergence):
    """Exploitability of abstracted players, by abstraction and by the way to solve it."""

    ways: Mapping[str, Way] = field(default_factory=dict)  # by row
    curves: bool = False
    rolled_out: str = ""  # for the default game: see `abstract_problem`
    trunk: int = 1
    variant: str = "cfr"

    def check(self, setting: Setting) -> None:
        """Load the game. Raises an error if that fails."""
        if setting.game != self.defaults.game:
            load_holdem(setting.game)

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Build the abstraction, and solve it."""
        plan, way = self.ways[case]
        longer = self.rolled_out if lab.game == self.defaults.game else None

        def built(clusters: int) -> AbstractProblem:
            device = require_device(lab.device)
            return abstract_problem(
                plan, lab.game, lab.scratch() / "cards", longer or None, seed=clusters, device=device
            )

        problem = with_spare_seeds(built, seed, lab)
        depth = min(self.trunk, load_holdem(lab.game).rules.rounds - 1)
        steps = converge(problem, way, lab.budget, lab, variant=self.variant, trunk=depth, curve=self.curves, seed=seed)
        last = steps[-1]
        more: dict[str, Any] = {"iterations": last.iterations, "information_sets": sum(problem.abstract.size.infosets)}
        more |= {"current": last.current} if last.current is not None else {}
        more |= {"settled": settled(steps)} if way == CFR_BR else {}
        return Cell({case: last.value}, more=more, curve=steps, seconds=last.seconds)

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return further figures, the mean curve, and whether all runs have settled."""
        return super().more(spec, cells, measured) | {"settled": all(cell.more.get("settled", True) for cell in cells)}

    @property
    def picture(self) -> str:
        """The name of the picture, or an empty string if curves are not drawn."""
        return "figure.png" if self.curves else ""
