"""[Johanson16 figure 9.4]: what the dealer and the big blind of a solved game do with each starting hand.

The game is solved here with CFR+, or is that of a run whose folder is given as the game: from subgames on disk, with
vectors of hands, or a blueprint. Rows are shares in percent, over all hands that come to a decision, or of the hand
that does something most often. The dealer has the small blind, and acts first.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from kilt.artifact import exists
from kilt.errors import GameError, RunError
from kilt.evaluate.flops import Watcher
from kilt.games.holdem import CALL, FOLD, RAISE, Holdem
from kilt.jit import cores
from kilt.play.agent import KnownAgent, known
from kilt.play.tree_agent import TreeAgent
from kilt.players.agents import load_player
from kilt.runs.budget import Budget
from kilt.runs.run import new_run
from kilt.solve.problem import CPU, VectorProblem
from kilt.strategy.blueprint import STRATEGY
from kilt.tree.place import PlacedTree
from kilt.viz.picture import require_drawable
from kilt.viz.ranges import Grid, plot_ranges, policy_grid
from kilt_lab.reproduce.claims import Claim, Row, contrast
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, MINUTES = "holdem.2-4", 30.0
WHAT = "[Johanson16 figure 9.4]: first actions of a solved game"
OPEN, ANSWER, CAP = "", RAISE, 2 * RAISE  # what was bet when the dealer opens, when they are answered, when they cap


class FirstAction(NamedTuple):
    """A row: how often an action is taken after some bets, over all hands or with one of them."""

    history: str
    action: str
    hand: str = ""  # such as AA; MOST: that which does it most often; empty: all hands
    paper: float | None = None  # percent, in limit hold'em
    otherwise: bool = False  # how often it is not taken


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
    """What is done with each starting hand at a decision."""

    actions: tuple[str, ...]  # as the ACPC writes them
    grid: Grid


def first_decisions_of(agent: KnownAgent, game: Holdem) -> dict[str, FirstDecision]:
    """The decisions of the figure that a game has, by what was bet before."""
    found = {}
    for history in (OPEN, ANSWER, CALL, CAP):
        with suppress(GameError):  # there are games with one raise a round
            position = game.replay(history)
            found[history] = FirstDecision(agent.policy(position, ()).actions, policy_grid(agent, game, position))
    return found


def shares(decisions: Mapping[str, FirstDecision]) -> dict[str, tuple[float, str]]:
    """The rows that a game has decisions for: percent, and the hand that it is of, if any."""
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


def _solved(asked: Request, watcher: Watcher) -> tuple[KnownAgent, Holdem, str]:
    """Who plays the solved game, what it is, and how good a solution that is."""
    name = asked.game or GAME
    if exists(Path(name) / STRATEGY):
        if asked.minutes is not None:
            raise RunError(f"{name} is solved already: leave out --minutes")
        agent, game = load_player(name)
        return known(agent), game, ""
    whole = 60 * (MINUTES if asked.minutes is None else asked.minutes)
    threads = 1 if asked.device else cores() if asked.threads is None else asked.threads
    run = new_run(name, "cfr+", budget=Budget(seconds=whole), threads=threads, device=asked.device or CPU)
    if not isinstance(run.problem, VectorProblem) or not isinstance(run.problem.game.game, Holdem):
        raise RunError(f"{name} is solved as a flat tree: give a game of two private cards, such as {GAME}")

    def tick(iterations: int, seconds: float) -> None:
        watcher.show(name, min(seconds / whole, 1.0), max(whole - seconds, 0.0))

    for step in run.steps(stop=watcher.stopped, tick=tick):
        last = step
    table = run.problem.walker.on_host(run.strategy())
    agent = TreeAgent(name, PlacedTree(run.problem.game), table)
    mbb = run.problem.mbb(last.exploitability)
    return agent, agent.game, f", {last.iterations:,} iterations of CFR+, {mbb:.3g} mbb/g"


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    path = asked.out or Path("kilt-figure-9.4.png")
    require_drawable(path)
    began = perf_counter()
    agent, game, how = _solved(asked, watcher)
    decisions = first_decisions_of(agent, game)
    seconds = perf_counter() - began
    rows = [
        Row(name, ROWS[name].paper, share, "%", seconds, {"hand": hand} if hand else {})
        for name, (share, hand) in shares(decisions).items()
        if name in (asked.only or ROWS)
    ]
    plot_ranges([one.grid for one in decisions.values()], f"[Johanson16 figure 9.4], {game.name}{how}", path)
    return ReproductionResult(f"{WHAT}, {game.name}{how}", rows, path)


FIGURE = Reproduction(
    what=WHAT,
    time="30 min, or seconds for the folder of a run",
    rows=tuple(ROWS),
    run=_reproduce,
    options=("only", "game", "minutes", "threads", "device", "out"),
    hint="--game holdem.2-1 for a smaller game, or --game RUN for one that is solved",
    claims=(
        Claim(
            "The dealer limps with 0.5% of any hand at most",
            "[Johanson16 chapter 9]",
            contrast({"hand that limps most": -1.0}, beyond=-0.5),
        ),
        Claim(
            "The dealer caps with less than 0.01% of AA",
            "[Johanson16 chapter 9]",
            contrast({"dealer caps with AA": -1.0}, beyond=-0.01),
        ),
        Claim(
            "The dealer caps with 0.06% of any hand at most",
            "[Johanson16 chapter 9]",
            contrast({"hand that caps most": -1.0}, beyond=-0.065),
        ),
    ),
    quick=Request(game="holdem.2-1", minutes=0.3),
    keeps="kilt-figure-9.4.png",
)
