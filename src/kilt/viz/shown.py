"""Draw the pictures that results such as `run.plot()` return.

>>> from kilt.api import solve
>>> type(solve("kuhn", iterations=50).plot().figure).__name__
'Figure'
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from matplotlib.figure import Figure

from kilt.errors import RunError
from kilt.evaluate.stats import WIDTH
from kilt.games.holdem import Holdem
from kilt.play.agent import require_policy
from kilt.play.match import Match
from kilt.players.reference import Who, player
from kilt.runs.figures import RunFigures
from kilt.spots.solution import SpotNode, SpotSolution
from kilt.spots.spot import SEATS, Spot
from kilt.strategy.table import Strategy
from kilt.strategy.vector import VectorStrategy
from kilt.viz.convergence import AVERAGE, convergence_figure
from kilt.viz.ranges import policy_grid, range_figure
from kilt.viz.shares import share_figure
from kilt.viz.spots import range_grid, spot_grid
from kilt.viz.winrates import measured_opponents, win_rate_figure

LEAST_UNITS = 10  # smallest number of deals for which a mean is drawn


@singledispatch
def result_figure(thing: object) -> Figure:
    """Draw a result, such as a run, a match, a solved spot or a strategy."""
    raise TypeError(f"{type(thing).__name__} has no picture")


@result_figure.register
def _run(run: RunFigures) -> Figure:
    """Draw exploitability against iterations and time or, for games too large for that, win rates against time."""
    steps = run.steps
    if not steps:
        raise RunError(f"{run.title} has measured nothing yet: iterate over the run, or finish it")
    return (
        win_rate_figure(steps, run.title)
        if measured_opponents(steps)
        else convergence_figure({run.title: steps}, run.title)
    )


@result_figure.register
def _match(match: Match) -> Figure:
    """Draw the running mean of the first player's winnings, with its 95% interval."""
    first, second = match.players
    figure = Figure(figsize=(6, 3.3), dpi=150, layout="constrained")
    figure.suptitle(f"{first} against {second}", fontweight="bold", parse_math=False)
    axes = figure.subplots()
    won = 1000 * match.results / match.big_blind
    units = np.arange(1, len(won) + 1)
    mean = np.cumsum(won) / units
    spread = np.maximum(np.cumsum(won**2) / units - mean**2, 0.0) * units / np.maximum(units - 1, 1)
    margin, hands = WIDTH * np.sqrt(spread / units), units * (match.hands / len(won))
    since = min(LEAST_UNITS, len(won)) - 1
    axes.fill_between(hands[since:], (mean - margin)[since:], (mean + margin)[since:], color=AVERAGE, alpha=0.2, lw=0)
    axes.plot(hands[since:], mean[since:], color=AVERAGE, linewidth=1.4)
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.set(xlabel="hands", ylabel=f"{first} wins [mbb/h]")
    axes.grid(linewidth=0.6, color="0.85")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


@result_figure.register
def _spot(spot: Spot) -> Figure:
    """Draw the ranges of both players."""
    return range_figure([range_grid(spot, seat) for seat in (0, 1)], spot.name)


@result_figure.register
def _solution(solution: SpotSolution) -> Figure:
    """Draw the strategy at the first decision."""
    return _node(solution.at())


@result_figure.register
def _node(node: SpotNode) -> Figure:
    """Draw the strategy of the player to act, for each hand."""
    after = f" after {node.line}" if node.line else ""
    return range_figure([spot_grid(node, SEATS[node.actor] + after)], f"spot {node.board}")


@result_figure.register
def _strategy(strategy: Strategy) -> Figure:
    """Draw a bar for each information set."""
    return share_figure({name: strategy[name] for name in strategy.infosets}, strategy.game)


@result_figure.register
def _vectors(strategy: VectorStrategy) -> Figure:
    """Draw the strategy at the first decision."""
    return decision_figure(strategy)


def decision_figure(who: Who, history: str = "") -> Figure:
    """Draw a player's strategy for every hand at a decision before the flop.

    Parameters
    ----------
    who : Run, Strategy, Agent, str or Path
        A player with a policy: see `player`.
    history : str
        The betting before the decision, in ACPC notation: "" is the first decision.
    """
    found = player(who)
    _, rules = found.at()
    assert isinstance(rules, Holdem)
    agent, position = require_policy(found.agent), rules.replay(history)
    if rules.rules.hole_cards == 2:
        return range_figure([policy_grid(agent, rules, position)], f"{found.name}, {rules.name}")
    policy = agent.policy(position, ())
    names = [rules.deck.name(hand) for hand in rules.deck.holes(rules.rules.hole_cards).tolist()]
    rows = {
        name: dict(zip(policy.actions, shares, strict=True))
        for name, shares in zip(names, policy.probabilities.T.tolist(), strict=True)
    }
    return share_figure(rows, f"{found.name}, {rules.name}, after {history!r}" if history else rules.name)
