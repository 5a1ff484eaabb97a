"""[Johanson16 chapter 2]: trivial agents, tilted payoffs and overfitting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kilt.evaluate.flops import FlopResponses, agent_walks
from kilt.games import load_game
from kilt.gpu import require_gpu
from kilt.solve.problem import CPU, GPU, VectorProblem
from kilt.strategy.fixed import public_table
from kilt.strategy.vector import game_fingerprint
from kilt.tree.vector import VectorGame
from kilt.viz.lines import plot_lines
from kilt_lab.cells import Cell, Measured, RowSpec, Setting, changes, rows
from kilt_lab.claims import Claim, as_printed, contrast, lower, negative
from kilt_lab.experiment import Experiment, Found, Lab, Stopped
from kilt_lab.pieces.tilts import NO_TILT, Abstracted, drawn_abstraction

LIMIT = "holdem.limit.2p"
PAPER_2_1 = {"always-fold": 750.0, "always-call": 1163.48, "always-raise": 3697.69, "call-or-raise": 2406.55}


def responses_to(game: VectorGame, agent: str, folder: Path, device: str = CPU) -> FlopResponses:
    """Best responses to an agent, on the CPU or a GPU: what was kept in a folder, or a fresh start."""
    walks = agent_walks(game, public_table(game, agent), device)
    return FlopResponses.begun(walks, agent, game_fingerprint(game.game), folder / agent)


@dataclass(frozen=True)
class TrivialAgents(Experiment):
    """What best responses win against four trivial agents.

    The walk of section 2.4 over the public tree, whole and exact, one flop at a time: see `evaluate.flops`. The agents
    look at no cards, so that betting that goes on alike is walked once: see `tree.cardless`. What is walked is kept
    flop by flop.
    """

    def check(self, setting: Setting) -> None:
        """Look for a GPU before anything takes time."""
        if setting.device == GPU:
            require_gpu()

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Walk all flops, or those that are left."""

        def loaded() -> VectorGame:
            return VectorGame(load_game(lab.game), threads=lab.threads, by_board=False)

        game = lab.shared("game", loaded, per="experiment")
        responses = responses_to(game, case, lab.folder, lab.device)
        if not responses.complete:
            lab.show("a look at the pace", responses.share)
            lab.say(f"{case}, {responses.share:.0%} done, kept in {lab.folder}", responses.time_left())
            responses.go_on(lab)
        if not responses.complete:
            raise Stopped
        seats = [VectorProblem(game).mbb(chips) or 0.0 for chips in responses.won()]
        return Cell({case: sum(seats) / 2}, exact=True, more={"seats": seats}, seconds=responses.seconds)


TABLE_2_1 = TrivialAgents(
    "table-2.1",
    "[Johanson16 table 2.1]",
    "exploitability of four trivial agents in heads-up limit hold'em",
    rows=rows(PAPER_2_1, "mbb/g", paper=PAPER_2_1, where=LIMIT),
    claims=tuple(
        Claim(f"a best response wins {won:g} mbb/g from {agent}", "[Johanson16 table 2.1]", as_printed(agent, 0.005))
        for agent, won in PAPER_2_1.items()
    ),
    time="some 40 minutes of one core for all rows; 6 min on a GPU for one",
    defaults=Setting(LIMIT, runs=0, device=CPU, threads=2),
    quick=changes(only=("always-fold",)),
)

SMALL = "holdem.2-1"
ITERATIONS = 500  # of CFR+
# Percentages: wins a showdown, loses one, folds, the opponent folds; and the paper's difference to no tilt, in mbb/g.
WINNER = {f"{percent:+d}%": (percent, 0, 0, percent) for percent in (-25, -14, -7, -4, 4, 7, 14, 25)}
PAPER_2_5 = {"+4%": 261.219 - 267.235, "+7%": 261.425 - 267.235}
AGENTS = {"Orange": (7, 0, 0, 7), "Peach": (0, 0, 0, 7), "Red": (0, -7, 0, 0), "Green": (0, -7, 0, -7)}
PAPER_2_3 = {
    "Orange": 227.457 - 235.294,
    "Peach": 228.325 - 235.294,
    "Red": 257.231 - 266.797,
    "Green": 263.702 - 266.797,
}


@dataclass(frozen=True)
class Tilts(Experiment):
    """What tilted payoffs do to real exploitability.

    The paper solves abstractions of limit hold'em with payoffs that differ a little from the real ones, and finds that
    strategies are less exploitable in the real game where the winner of a hand was paid a few percent more. Here each
    of many abstractions of [2-1] or [2-4] hold'em, drawn at random, is solved by CFR+ on joint tables until an opponent
    who sees the same buckets wins next to nothing; what an opponent wins who sees all cards is measured. A row is the
    mean difference to no tilt over the abstractions; the paper's number is that of limit hold'em.
    """

    tilts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    drawn: bool = False

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve an abstraction with a tilt and without."""
        name, abstracted = drawn_abstraction(lab, seed)
        plain = lab.shared("plain", lambda: _solved(abstracted, NO_TILT))
        difference = _solved(abstracted, self.tilts[case]) - plain
        return Cell({case: difference}, more={"abstraction": name, "without": plain})

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return the mean exploitability itself, and each abstraction."""
        values = {cell.more["abstraction"]: cell.values[spec.name] for cell in cells}
        without = float(np.mean([cell.more["without"] for cell in cells]))
        return {
            "tilt": list(self.tilts[spec.name]),
            "exploitability": without + float(np.mean([*values.values()])),
            "without": without,
            "lower_in": sum(value < 0 for value in values.values()),
            "abstractions": values,
        }

    @property
    def picture(self) -> str:
        """The figure has one, the table has none."""
        return "figure.png" if self.drawn else ""

    def draw(self, found: Found, path: Path) -> None:
        """Draw the difference by tilt."""
        points = [(row.more["tilt"][0], row.ours, row.reach) for row in found.rows]
        count = max(len(row.runs) for row in found.rows)
        title = f"{self.source}, {found.measured.setting.game}: real exploitability less that without a tilt"
        lines = {f"mean of {count} abstractions": np.array(sorted([(0.0, 0.0, 0.0), *points]))}
        plot_lines(lines, title, path, "tilt of the winner [%]", "difference [mbb/g]")


def _solved(case: Abstracted, tilt: Sequence[float]) -> float:
    """Real exploitability of the solution of an abstract game with a tilt, in mbb/g."""
    solver = case.solver(tilt)
    solver.step(ITERATIONS)
    return case.real(solver.average())


def _tilts(name: str, source: str, by: str, tilts: Mapping[str, Sequence[float]], paper: Mapping[str, float]) -> Tilts:
    return Tilts(
        name,
        source,
        f"real exploitability {by}, less that without, on small games",
        rows=rows(tilts, "mbb/g", paper=paper),
        claims=tuple(
            Claim(
                f"real exploitability is lower with the tilt of {row}, in the mean over abstractions",
                source,
                negative(row),
            )
            for row in paper
        ),
        hint="--runs is the number of abstractions, drawn at random; --game holdem.2-4 for a larger game",
        time="a second for each abstraction and row, and some to build it",
        defaults=Setting(SMALL, runs=50, threads=1),
        quick=changes(jobs=0, only=tuple(paper), runs=6),
        shares=True,
        tilts=tilts,
        drawn=name.startswith("figure"),
    )


FIGURE_2_5 = _tilts("figure-2.5", "[Johanson16 figure 2.5]", "by the winner's tilt", WINNER, PAPER_2_5)
TABLE_2_3 = _tilts("table-2.3", "[Johanson16 table 2.3]", "with the agents' tilts", AGENTS, PAPER_2_3)

FIRST, LAST = 4, 14  # doublings of the iterations, from the first that is measured to the last
RISE = 1.0  # percent
PAPER_2_6 = {"lowest": 277.0, "end": 305.0, "rise": 100 * (305 / 277 - 1)}  # of limit hold'em, ten buckets a round
UNITS_2_6 = {
    "lowest": "mbb/g",
    "end": "mbb/g",
    "rise": "%",
    "abstract, at the lowest": "mbb/g",
    "abstract, in the end": "mbb/g",
}


@dataclass(frozen=True)
class Overfitting(Experiment):
    """Real exploitability rises again while the abstract one falls.

    CFR solves abstractions of [2-1] or [2-4] hold'em, drawn at random (see `tilts`), by joint tables. After 16, 32, 64,
    … iterations both exploitabilities of its average strategy are measured: by opponents who see the same buckets, and
    by those who see all cards. The rise is how far the real one is above its lowest point in the end, in percent of
    that. No rise is below 0, so that a mean above 0 would say little: the claim is that it is above `RISE`.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve an abstraction, and measure both at each doubling."""
        name, abstracted = drawn_abstraction(lab, seed)
        solver, points = abstracted.solver(variant="cfr"), list[tuple[int, float, float]]()
        for doubling in range(FIRST, LAST + 1):
            lab.check()
            solver.step((1 << doubling) - solver.iterations)
            strategy = solver.average()
            points.append((solver.iterations, abstracted.real(strategy), abstracted.inside(strategy)))
        low = min(points, key=lambda point: point[1])
        end = points[-1]
        values = {"lowest": low[1], "end": end[1], "rise": 100 * (end[1] / low[1] - 1)}
        values |= {"abstract, at the lowest": low[2], "abstract, in the end": end[2]}
        return Cell(values, more={"abstraction": name, "lowest_at": low[0], "points": points})

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return all curves, with the row that is about their shape."""
        if spec.name != "rise":
            return {}
        return {
            "rises_in": sum(cell.values["rise"] > 0 for cell in cells),
            "lowest_at": [cell.more["lowest_at"] for cell in cells],
            "curves": {cell.more["abstraction"]: cell.more["points"] for cell in cells},
        }

    def draw(self, found: Found, path: Path) -> None:
        """Draw both mean exploitabilities."""
        points = np.array([cell.more["points"] for cell in found.measured.cells["curve"]])
        iterations, real, inside = np.moveaxis(points, 2, 0)  # each [abstraction][point]
        lines = {
            name: np.column_stack([iterations[0], values.mean(axis=0)])
            for name, values in (("real", real), ("abstract", inside))
        }
        game = found.measured.setting.game
        title = f"{self.source}, {game}: CFR in {len(real)} abstractions, mean exploitability"
        plot_lines(lines, title, path, "iterations", "exploitability [mbb/g]", logarithmic=(True, True))


FIGURE_2_6 = Overfitting(
    "figure-2.6",
    "[Johanson16 figure 2.6]",
    "real exploitability at its lowest point and in the end, on small games",
    rows=tuple(RowSpec(row, unit, PAPER_2_6.get(row), cases=("curve",)) for row, unit in UNITS_2_6.items()),
    claims=(
        Claim(
            f"CFR overfits: in the end real exploitability is more than {RISE:g}% above its lowest point, a margin "
            "that is ours",
            "[Johanson16 figure 2.6]",
            contrast({"rise": 1.0}, RISE),
        ),
        Claim(
            "… while exploitability in the abstraction goes on falling",
            "[Johanson16 figure 2.6]",
            lower("abstract, in the end", "abstract, at the lowest"),
        ),
    ),
    hint="--runs is the number of abstractions, drawn at random; --game holdem.2-4 for a larger game",
    time="some 20 seconds for each abstraction",
    defaults=Setting(SMALL, runs=30, threads=1),
    quick=changes(jobs=0, runs=4),
)
