"""[Johanson16 chapter 9]: the solution of limit hold'em on a small scale, and its storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kilt.artifact import exists
from kilt.errors import GameError, RunError
from kilt.games import load_game
from kilt.games.game import CHANCE, Position
from kilt.games.holdem import CALL, FOLD, RAISE, Holdem
from kilt.play.agent import PolicyAgent, require_policy
from kilt.play.tree_agent import TreeAgent
from kilt.players.reference import player
from kilt.runs.build import build, spec_of
from kilt.solve.problem import CPU, VectorProblem
from kilt.strategy.blueprint import STRATEGY
from kilt.tree.navigation import NavigableTree
from kilt.viz.ranges import Grid, plot_ranges, policy_grid
from kilt_lab.cells import Cell, CellBudget, Changes, Measured, RowSpec, Setting, changes, clock_of, rows
from kilt_lab.claims import as_printed, contrast, lower
from kilt_lab.experiment import Experiment, Found, Lab
from kilt_lab.papers.johanson16.chapter_4 import LIMIT, trunk_bytes
from kilt_lab.pieces.agents import run_budget
from kilt_lab.pieces.convergence import RUNS, Convergence

FIGURE_9_3 = Convergence(
    "figure-9.3",
    "[Johanson16 figure 9.3]",
    "Convergence of CFR+'s current strategy and of its average, on [2-4] hold'em",
    rows=rows(("cfr+current", "cfr+"), "mbb/g"),
    claims={
        "CFR+'s current strategy is less exploitable than its average": (
            "[Johanson16 §9.4, footnote 7]",
            lower("cfr+current", "cfr+"),
        ),
    },
    hint="--game holdem.2-1 for a smaller game; nothing is random, so each row is one run",
    defaults=Setting("holdem.2-4", CellBudget.of(minutes=30), RUNS),
    quick=changes(game="leduc", budget=CellBudget.of(seconds=3), runs=3),
)

# Betting before the dealer opens, before the big blind answers, before the dealer caps.
OPEN, ANSWER, CAP = "", RAISE, 2 * RAISE


class FirstAction(NamedTuple):
    """A row: how often a player takes an action after some bets, over all hands or with one hand."""

    history: str
    action: str
    hand: str = ""  # such as AA; MOST: the hand with the highest percentage; empty: all hands
    paper: float | None = None  # percent, in limit hold'em
    otherwise: bool = False  # whether the row is the percentage of all other actions


MOST = "most"
ROWS: Mapping[str, FirstAction] = {
    "dealer plays": FirstAction(OPEN, FOLD, otherwise=True),
    "dealer limps": FirstAction(OPEN, CALL, paper=0.06),
    "hand that limps most": FirstAction(OPEN, CALL, MOST, 0.5),
    "big blind plays on after a raise": FirstAction(ANSWER, FOLD, otherwise=True),
    "big blind raises again": FirstAction(ANSWER, RAISE),
    "dealer caps with AA": FirstAction(CAP, RAISE, "AA", 0.01),
    "hand that caps most": FirstAction(CAP, RAISE, MOST, 0.06),
}


class FirstDecision(NamedTuple):
    """The strategy of each starting hand at a decision."""

    actions: tuple[str, ...]  # as the ACPC writes them
    grid: Grid


def first_decisions_of(agent: PolicyAgent, game: Holdem) -> dict[str, FirstDecision]:
    """Return the decisions of the figure that exist in a game, by the bets before them."""
    found = {}
    for history in (OPEN, ANSWER, CALL, CAP):
        with suppress(GameError):  # there are games with one raise a round
            position = game.replay(history)
            found[history] = FirstDecision(agent.policy(position, ()).actions, policy_grid(agent, game, position))
    return found


def shares(decisions: Mapping[str, FirstDecision]) -> dict[str, tuple[float, str]]:
    """Return the rows whose decisions exist in a game: percent, and the hand of the row, if any."""
    found = {}
    for name, row in ROWS.items():
        if row.history in decisions and row.action in decisions[row.history].actions:
            actions, grid = decisions[row.history]
            place, ranks = actions.index(row.action), range(len(grid.ranks))
            cells = {grid.hand(i, j): float(grid.share[i, j, place]) for i in ranks for j in ranks}
            hand = max(cells, key=cells.__getitem__) if row.hand == MOST else row.hand
            share = cells[hand] if hand else float(grid.overall[place])
            found[name] = 100 * (1 - share if row.otherwise else share), hand
    return found


@dataclass(frozen=True)
class FirstActions(Experiment):
    """Read from a solved game how the dealer and the big blind act first, by starting hand.

    How does a solved game begin? This experiment solves a game by CFR+, and reads from the solution how the two players
    act first. The dealer, who has the small blind, acts before the big blind.

    Given the folder of a run instead of a game, the experiment reads the run's solution. It accepts runs with subgames
    on disk, runs with vectors of hands, and blueprints.

    A row shows how often a player takes an action, as a percentage. Some rows count all hands with which the player
    reaches the decision. The others are for one hand: the hand that takes the action most often.
    """

    def setting(self, base: Changes, asked: Changes) -> Setting:
        """Return a setting. If the game is the folder of a run, it needs no budget. Raises RunError if one is given."""
        game = asked.get("game", "")
        if not exists(Path(game) / STRATEGY):
            return super().setting(base, asked)
        if "budget" in asked:
            raise RunError(f"{game} is solved already: omit --minutes")
        others = {option: value for option, value in asked.items() if option != "game"}
        return super().setting(base, others)._replace(game=game, budget=None)

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve the game, and read the first decisions."""
        agent, game, how = self.solved(lab)
        decisions = first_decisions_of(agent, game)
        found = shares(decisions)
        more = {
            "hands": {name: hand for name, (_, hand) in found.items()},
            "how": f"{game.name}{how}",
            "grids": [_plain(one.grid) for one in decisions.values()],
        }
        return Cell({name: share for name, (share, _) in found.items()}, True, more)

    def solved(self, lab: Lab) -> tuple[PolicyAgent, Holdem, str]:
        """Return the agent of the solved game, the game, and the quality of the solution in words."""
        if lab.budget is None:
            agent, game = player(lab.game).at()
            return require_policy(agent), game, ""
        budget, threads = run_budget(lab), 1 if lab.device != CPU else lab.threads
        run = build(spec_of(lab.game, {"solver.threads": threads, "solver.device": lab.device}), budget=budget)
        run.clock = clock_of(lab.device)
        if not isinstance(run.problem, VectorProblem) or not isinstance(run.problem.game.game, Holdem):
            raise RunError(f"{lab.game} is solved as a flat tree: give a game of two private cards, such as holdem.2-4")

        def tick(iterations: int, seconds: float) -> None:
            share = seconds / budget.seconds if budget.seconds else iterations / (budget.iterations or inf)
            lab.show(lab.game, min(share, 1.0))

        for step in run.solving(stop=lab.stopped, tick=tick):
            last = step
        lab.check()
        table = run.problem.walker.on_host(run.table)
        agent = TreeAgent(lab.game, NavigableTree(run.problem.game), table)
        mbb = run.problem.mbb(last.exploitability)
        return agent, agent.game, f", {last.iterations:,} iterations of CFR+, {mbb:.3g} mbb/g"

    def more(self, spec: RowSpec, cells: Sequence[Cell], measured: Measured) -> dict[str, Any]:
        """Return the solution, and the hand of a row, if any."""
        hand = cells[0].more["hands"][spec.name]
        return {"hand": hand, "solution": cells[0].more["how"]} if hand else {"solution": cells[0].more["how"]}

    def draw(self, found: Found, path: Path) -> None:
        """Draw the grids."""
        more = found.measured.cells["first decisions"][0].more
        grids = [_grid(**grid) for grid in more["grids"]]
        plot_ranges(grids, f"{self.source}, {more['how']}", path)


def _grid(title: str, ranks: str, actions: Sequence[str], share: Any, reach: Any, overall: Any) -> Grid:
    """Return the grid from the data of `_plain`."""
    return Grid(title, ranks, tuple(actions), np.array(share), np.array(reach), np.array(overall))


def _plain(grid: Grid) -> dict[str, Any]:
    """Return the fields of a grid as JSON data."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(grid).items()}


FIGURE_9_4 = FirstActions(
    "figure-9.4",
    "[Johanson16 figure 9.4]",
    "First actions of a solved game",
    rows=tuple(RowSpec(name, "%", row.paper, cases=("first decisions",)) for name, row in ROWS.items()),
    claims={
        "the dealer limps at most 0.5% of the time with any hand": (
            "[Johanson16 chapter 9]",
            contrast({"hand that limps most": -1.0}, beyond=-0.5),
        ),
        "the dealer caps less than 0.01% of the time with AA": (
            "[Johanson16 chapter 9]",
            contrast({"dealer caps with AA": -1.0}, beyond=-0.01),
        ),
        "the dealer caps at most 0.06% of the time with any hand": (
            "[Johanson16 chapter 9]",
            contrast({"hand that caps most": -1.0}, beyond=-0.065),
        ),
    },
    hint="--game holdem.2-1 for a smaller game, or --game RUN for a solved game",
    time="seconds if the game is the folder of a run",
    defaults=Setting("holdem.2-4", CellBudget.of(minutes=30), 0, CPU, threads=2),
    quick=changes(game="holdem.2-1", budget=CellBudget.of(seconds=18)),
)

FLOPS = 1755  # canonical ones
USED = 10.9e12  # bytes of the thesis's files
STORAGE_OF = {
    "subgames": (110_565, ""),
    "regrets and averages, 4 bytes": (262, "TiB"),
    "regrets and averages, 8 bytes": (523, "TiB"),
    "regrets alone, 13:1": (11, "TB"),
    "regrets over 10.9 TB": (13, "to 1"),
}


def sequences(game: Holdem, rounds: int) -> int:
    """Return the number of betting sequences of the first `rounds` rounds that lead to another round.

    >>> sequences(load_game("holdem.limit.2p"), 2)
    63
    """

    def below(position: Position, left: int) -> int:
        if position.actor == CHANCE:
            return 1 if left == 1 else below(position.after(*position.actions()), left - 1)
        return sum(below(position.after(action), left) for action in position.actions())

    return below(game.start(), rounds)


@dataclass(frozen=True)
class Storage(Experiment):
    """Count the subgames of limit hold'em, the sizes of its tables, and their compression.

    How much storage does a solution of limit hold'em need? This experiment counts one entry for each action of each
    information set. Information sets that differ only by a permutation of suits count once. The thesis gives sizes of
    tables in units of 2⁴⁰ bytes, and sizes of files in units of 10¹² bytes.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Count all rows."""
        game = load_game(LIMIT)
        assert isinstance(game, Holdem)
        regrets = trunk_bytes()[-1]
        counted = {
            "subgames": FLOPS * sequences(game, 2),
            "regrets and averages, 4 bytes": 2 * regrets / 2**40,
            "regrets and averages, 8 bytes": 4 * regrets / 2**40,
            "regrets alone, 13:1": regrets / 13 / 1e12,
            "regrets over 10.9 TB": regrets / USED,
        }
        return Cell(counted, exact=True)


STORAGE = Storage(
    "storage",
    "[Johanson16 chapter 9]",
    "Storage of the solution of limit hold'em",
    rows=tuple(RowSpec(name, unit, size, cases=("count",)) for name, (size, unit) in STORAGE_OF.items()),
    claims={
        f"{name}: {size:g} {unit}".strip(): as_printed(name, within)
        for (name, (size, unit)), within in zip(STORAGE_OF.items(), (0.5, 1, 1, 0.5, 0.5), strict=True)
    },
    time="a second",
    defaults=Setting(runs=0),
)
