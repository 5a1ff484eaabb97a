"""[Johanson16 chapter 2]: trivial agents, tilted payoffs and overfitting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kilt.evaluate.flops import FlopResponses, agent_walks
from kilt.games import load_game
from kilt.solve.problem import CPU, VectorProblem
from kilt.strategy.fixed import public_table
from kilt.strategy.vector import game_fingerprint
from kilt.tree.vector import VectorGame
from kilt.viz.lines import plot_lines
from kilt_lab.cells import Axes, Cell, Measured, RowSpec, Setting, changes, rows
from kilt_lab.claims import as_printed, contrast, lower, negative
from kilt_lab.experiment import Experiment, Found, Lab, Stopped
from kilt_lab.pieces.tilts import NO_TILT, Abstracted, drawn_abstraction

LIMIT = "holdem.limit.2p"
PAPER_2_1 = {"always-fold": 750.0, "always-call": 1163.48, "always-raise": 3697.69, "call-or-raise": 2406.55}


def responses_to(game: VectorGame, agent: str, folder: Path, device: str = CPU) -> FlopResponses:
    """Return best responses to an agent, on the CPU or a GPU, resumed from a folder if it has some."""
    walks = agent_walks(game, public_table(game, agent), device)
    return FlopResponses.open(walks, agent, game_fingerprint(game.game), folder / agent)


@dataclass(frozen=True)
class TrivialAgents(Experiment):
    """Compute the exploitability of four agents that ignore their cards.

    How much can a perfect opponent win against an agent that ignores its cards? This experiment gives exact answers for
    four simple agents in heads-up limit hold'em. It computes a best response to each agent over the whole game, one
    flop at a time [Johanson16 §2.4] (see ``evaluate.flops``).

    The four agents of this experiment ignore their cards, so betting subtrees of the same shape have the same values,
    and the computation visits each shape only once (see ``tree.cardless``). It stores the result of each finished flop,
    so that an interrupted run can resume.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Walk all flops that are not finished. The cell has the mean over both seats, in mbb/g."""

        def loaded() -> VectorGame:
            return VectorGame(load_game(lab.game), threads=lab.threads, by_board=False)

        game = lab.shared("game", loaded, per="experiment")
        responses = responses_to(game, case, lab.folder, lab.device)
        if not responses.complete:
            lab.show("a look at the pace", responses.share_done)
            lab.say(f"{case}, {responses.share_done:.0%} done, kept in {lab.folder}", responses.time_left())
            responses.compute(lab)
        if not responses.complete:
            raise Stopped
        seats = [VectorProblem(game).mbb(chips) or 0.0 for chips in responses.response_values()]
        spent = 0.0 if lab.device == CPU else responses.seconds  # 0: the runner measures CPU time
        return Cell({case: sum(seats) / 2}, exact=True, more={"seats": seats}, seconds=spent)


TABLE_2_1 = TrivialAgents(
    "table-2.1",
    "[Johanson16 table 2.1]",
    "Exploitability of four trivial agents in heads-up limit hold'em",
    rows=rows(PAPER_2_1, "mbb/g", paper=PAPER_2_1, where=LIMIT),
    claims={
        f"a best response wins {won:g} mbb/g against {agent}": as_printed(agent, 0.005)
        for agent, won in PAPER_2_1.items()
    },
    time="about 40 minutes on one core for all rows; 6 min on a GPU for one row",
    defaults=Setting(LIMIT, runs=0, device=CPU, threads=2),
    quick=changes(game="royal.limit.2p"),
)

SMALL, LARGER = "holdem.2-1", "holdem.2-4"
ITERATIONS = 500  # of CFR+
# Changes of payoffs in percent if the player wins a showdown, loses one, folds, or the opponent folds; PAPER_* have the
# paper's difference to no tilt, in mbb/g.
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
    """Measure how changes of the payoffs (tilts) affect real exploitability.

    A *tilt* changes the payoffs with which a strategy is solved; the strategy still plays the real game. The thesis
    solves abstractions of limit hold'em with tilts. It finds that a strategy is less exploitable in the real game if
    the tilt pays the winner of a hand a few percent more.

    This experiment tests tilted payoffs in two small games, with many abstractions that are drawn at random. The games
    are [2-1] and [2-4] hold'em: limit hold'em with two rounds, and one or four bets per round.

    CFR+ solves each abstraction with and without tilted payoffs, until an opponent who sees the same buckets can hardly
    win. The experiment then measures real exploitability, against a perfect opponent who sees the cards.

    A row shows how much a tilt of the payoffs changes real exploitability, as a mean over the abstractions. A negative
    value means that the tilt made the strategies harder to beat. The number from the thesis is for limit hold'em.
    """

    tilts: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve an abstraction with and without a tilt. The cell has the difference of real exploitability."""
        name, abstracted = drawn_abstraction(lab, seed)
        plain = lab.shared("plain", lambda: _solved(abstracted, NO_TILT))
        difference = _solved(abstracted, self.tilts[case]) - plain
        return Cell({case: difference}, more={"abstraction": name, "without": plain})

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return the tilt, mean exploitability with and without it, and the difference in each abstraction."""
        values = {cell.more["abstraction"]: cell.values[spec.name] for cell in cells}
        without = float(np.mean([cell.more["without"] for cell in cells]))
        return {
            "tilt": list(self.tilts[spec.name]),
            "exploitability": without + float(np.mean([*values.values()])),
            "without": without,
            "lower_in": sum(value < 0 for value in values.values()),
            "abstractions": values,
        }


def _solved(case: Abstracted, tilt: Sequence[float]) -> float:
    """Return the real exploitability of the solution of an abstract game with a tilt, in mbb/g."""
    solver = case.solver(tilt)
    solver.step(ITERATIONS)
    return case.real(solver.average())


def _tilts(
    name: str,
    source: str,
    by: str,
    tilts: Mapping[str, Sequence[float]],
    paper: Mapping[str, float],
    axes: Axes | None = None,
) -> Tilts:
    return Tilts(
        name,
        source,
        f"Change of real exploitability {by}, on small games",
        rows=tuple(RowSpec(row, "mbb/g", paper.get(row), at=("mean", tilt[0])) for row, tilt in tilts.items()),
        claims={
            f"the {row} tilt lowers real exploitability, averaged over abstractions": negative(row) for row in paper
        },
        hint="--runs is the number of abstractions, drawn at random; --setting 2-4 for a larger game",
        time="a second for each abstraction and row, and a few seconds to build each abstraction",
        defaults=Setting(SMALL, runs=50, threads=1),
        quick=changes(jobs=0, only=tuple(paper), runs=4),
        settings={"2-4": changes(game=LARGER, runs=20, only=tuple(paper))},
        shares=True,
        tilts=tilts,
        axes=axes,
    )


OVER_TILTS = Axes("tilt of the winner [%]", "real exploitability less that without a tilt [{unit}]", (False, False))
FIGURE_2_5 = _tilts(
    "figure-2.5", "[Johanson16 figure 2.5]", "with a tilt for the winner", WINNER, PAPER_2_5, OVER_TILTS
)
TABLE_2_3 = _tilts("table-2.3", "[Johanson16 table 2.3]", "with the agents' tilts", AGENTS, PAPER_2_3)

FIRST, LAST = 4, 14  # log2 of the iterations at the first and the last measurement
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
    """Test whether long solving overfits an abstraction.

    Solving an abstraction for too long may overfit it: the strategy fits the abstraction ever better, but the real game
    ever worse. This experiment tests whether this happens.

    CFR solves random abstractions of [2-1] or [2-4] hold'em (see ``tilts``). After 16, 32, 64, … iterations, the
    experiment measures the exploitability of the average strategy twice: *abstract* exploitability against an opponent
    with the same buckets, and *real* exploitability against an opponent who sees all cards.

    The *rise* measures overfitting: it is the increase of real exploitability from its lowest value to its value at the
    end, in percent. A rise cannot be negative, so even small errors would make its mean positive. The claim that long
    solving overfits therefore requires a mean rise of more than 1%.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve an abstraction, and measure both exploitabilities after each doubling of the iterations."""
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
        """Return all curves with the row `rise`; nothing with other rows."""
        if spec.name != "rise":
            return {}
        return {
            "rises_in": sum(cell.values["rise"] > 0 for cell in cells),
            "lowest_at": [cell.more["lowest_at"] for cell in cells],
            "curves": {cell.more["abstraction"]: cell.more["points"] for cell in cells},
        }

    def draw(self, found: Found, path: Path) -> None:
        """Draw the mean of both exploitabilities over iterations."""
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
    "Real exploitability at its lowest point and at the end, on small games",
    rows=tuple(RowSpec(row, unit, PAPER_2_6.get(row), cases=("curve",)) for row, unit in UNITS_2_6.items()),
    claims={
        f"CFR overfits: at the end, real exploitability is more than {RISE:g}% above its lowest point "
        "(kilt's margin)": contrast({"rise": 1.0}, RISE),
        "exploitability inside the abstraction keeps falling after the lowest point of real exploitability": lower(
            "abstract, in the end", "abstract, at the lowest"
        ),
    },
    hint="--runs is the number of abstractions, drawn at random; --setting 2-4 for a larger game",
    time="about 20 seconds for each abstraction",
    defaults=Setting(SMALL, runs=30, threads=1),
    quick=changes(jobs=0, runs=4),
    settings={"2-4": changes(game=LARGER, runs=8)},
)
