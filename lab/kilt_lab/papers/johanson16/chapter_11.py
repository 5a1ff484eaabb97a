"""[Johanson16 figure 11.1]: CFR-BR with trunks of one, two and three rounds, in [4-2] hold'em."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.config import config_of
from kilt.errors import RunError
from kilt.games.playable import load_holdem
from kilt.runs.plan import resolve
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.problem import CPU
from kilt.solve.registry import make_solver
from kilt_lab.cells import Axes, Cell, CellBudget, RowSpec, Setting, changes
from kilt_lab.claims import Slack, every, higher, lower, where
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.abstracted import exploitability
from kilt_lab.pieces.convergence import POINTS, solve_to

SOURCE, GAME = "[Johanson16 figure 11.1]", "holdem.4-2"
TRUNKS = (1, 2, 3)
BUCKETS, FEWER = 500, 104  # per round: in the game of the thesis, in other games
FLOPS = 100  # size of the sample, if there are more
WITHIN = 0.05  # kilt's margin for equal and for converged curves; the thesis says "exactly matches"


def _row(trunk: int, point: str) -> str:
    return f"trunk {trunk}, {point}"


def _problem(name: str, trunk: int, seed: int, threads: int, device: str, folder: Path) -> AbstractProblem:
    """Return the abstract game of a run. Raises RunError if it does not fit into memory with the trunk."""
    game = load_holdem(name)
    deal, buckets = Deal.from_game(game), BUCKETS if name == GAME else FEWER
    cards = f"IR-KE-PHS {len(deal.holdings((0,)))}" + f"-{buckets}" * (game.rules.rounds - 1)
    config = {"game": name, "cards": cards, "solver": {"algorithm": f"cfr-br:{trunk}", "threads": threads}}
    plan, spec = resolve(config_of(config)).on(device), AbstractionSpec.from_name(cards, deal)
    plan = replace(plan, cards=(replace(spec, plan=replace(spec.plan, seed=seed)),))
    wanted = plan.cost()
    if device == CPU and not wanted.fits:  # a GPU checks its own memory
        raise RunError(
            f"a trunk of {trunk} rounds takes {wanted.memory / 1e9:,.0f} GB of memory on {name}: use --game short.4-1, "
            f"or --only {_row(1, next(iter(POINTS)))!r} and others with fewer rounds"
        )
    return plan.build(folder / f"run-{seed}")


@dataclass(frozen=True)
class Trunks(Experiment):
    """Compare CFR-BR with trunks of one, two and three rounds.

    CFR-BR is CFR against an opponent who plays best responses in the later rounds. In the first rounds, called the
    *trunk*, the opponent learns by CFR, and the solver stores its regrets. This experiment compares trunks of one, two
    and three rounds.

    The thesis uses [4-2] hold'em (limit hold'em with two bets per round) and 9,000 buckets per round. This experiment
    uses only 500 buckets, so that every run can make its own. As in the thesis, they are clusters of histograms. In the
    last round, where a histogram would be a single number, they are percentiles of hand strength.

    CFR-BR runs for the same time with each trunk, the rounds for which it stores regrets. Results are compared at three
    times. In games with many flops, exploitability is measured on a random sample of flops, which is the same for all
    trunks. Each run has its own buckets and random seeds.

    On a CPU, the time of a run is summed over its cores. It leaves out the time for measuring exploitability, and the
    first iteration, which may include compiling.

    The thesis says that CFR-BR with a trunk of three rounds finally "exactly matches" CFR-BR with a trunk of two
    [Johanson16 §11.2]. This experiment counts two curves of exploitability as equal if they differ by less than 5%, a
    threshold that kilt's developers chose.

    Do two trunks of CFR-BR lead to the same exploitability in the end? Only converged curves can show it. The claim is
    therefore not decided if exploitability changed by 5% or more over the last three quarters of the time, for either
    trunk.
    """

    def check(self, setting: Setting) -> None:
        """Raise RunError if a trunk leaves no round below it."""
        deepest = max(int(case.split()[1]) for case in self.cases(setting))
        if (rounds := load_holdem(setting.game).rules.rounds) <= deepest:
            raise RunError(
                f"{setting.game} has {rounds} rounds, and a trunk of {deepest} leaves none: use --game short.4-1"
            )

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve with a trunk, and measure at all points."""
        trunk = int(case.split()[1])
        problem = _problem(lab.game, trunk, seed, lab.threads, lab.device, lab.folder)
        solver, values, more = make_solver(problem, f"cfr-br:{trunk}", seed), dict[str, float](), dict[str, Any]()
        for point in solve_to(solver, POINTS, lab.budget, lab, case, problem.device):
            values[_row(trunk, point)] = exploitability(problem, solver.average(), lab, FLOPS, seed)
            more[_row(trunk, point)] = {"iterations": solver.iterations}
        return Cell(values, more=more)


FIRST, MIDWAY, END = POINTS


def _alike(one: str, other: str) -> Slack:
    """Return the claim that neither of two rows is more than `WITHIN` above the other."""
    return every(lower(one, other, factor=1 + WITHIN), lower(other, one, factor=1 + WITHIN))


ENDS = (_row(2, END), _row(3, END))
FIGURE_11_1 = Trunks(
    "figure-11.1",
    SOURCE,
    "CFR-BR with trunks of one, two and three rounds, in [4-2] hold'em",
    rows=tuple(
        RowSpec(_row(trunk, point), "mbb/g", cases=(f"trunk {trunk}",), at=(f"trunk of {trunk}", share))
        for trunk in TRUNKS
        for point, share in POINTS.items()
    ),
    claims={
        "a trunk of two rounds converges more quickly than a trunk of one round, at all points": every(
            *(lower(_row(2, point), _row(1, point)) for point in POINTS)
        ),
        "a trunk of three rounds converges more slowly at first than a trunk of two": higher(
            _row(3, FIRST), _row(2, FIRST)
        ),
        "a trunk of three rounds has no advantage over a trunk of two: at no point is it less exploitable by "
        f"{WITHIN:.0%} (kilt's margin)": every(
            *(lower(_row(2, point), _row(3, point), factor=1 + WITHIN) for point in POINTS)
        ),
        f"trunks of two and three rounds end with the same exploitability, within {WITHIN:.0%} (kilt's margin)": where(
            every(*(_alike(_row(trunk, MIDWAY), _row(trunk, END)) for trunk in (2, 3))), _alike(*ENDS)
        ),
    },
    hint="--device gpu; --setting 20-cards for a game that fits on a CPU",
    time="that is enough on a GPU, plus minutes to build and measure",
    axes=Axes("", "exploitability [{unit}]"),
    defaults=Setting(GAME, CellBudget.of(minutes=10), 5, CPU, threads=2),
    quick=changes(game="short.4-1", budget=CellBudget.of(seconds=2.4), runs=3),
    settings={"20-cards": changes(game="short.4-1", budget=CellBudget.of(seconds=30), threads=1)},
    shares=True,  # cards of a run, in its folder
)
