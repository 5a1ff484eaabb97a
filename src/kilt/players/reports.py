"""Sanity checks of a run: one report for each of its strategies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kilt.artifact import exists
from kilt.evaluate.sanity import DEALS, Report, report
from kilt.evaluate.self_play import AS_SOLVED
from kilt.evaluate.tree_sanity import DEALS_OF_BOARD, tree_report
from kilt.play.agent import known
from kilt.players.agents import (
    blueprint_agent,
    blueprint_folder,
    blueprint_name,
    chooses_rule,
    load_player,
    strategy_of,
)
from kilt.solve.forms import stored_form
from kilt.solve.problem import ABSTRACT
from kilt.strategy.blueprint import STRATEGY


def reports_of_run(run: str | Path, deals: int = DEALS, seed: int = 0) -> tuple[Report, ...]:
    """Run the sanity checks on each strategy of a run, and return their reports.

    Parameters
    ----------
    run : str or Path
        A run, or an exported agent. Its average strategy is checked, followed by the strategy as played if that
        differs. ``RUN@RULE`` chooses one of them.
    deals : int
        Number of deals of self-play. In games that were solved without an abstraction, a board with all its hands
        counts as 200 deals.
    seed : int
        Random seed of the deals.

    Returns
    -------
    tuple of Report
        One or two reports; `Report.strategy` names the strategy.
    """
    place, _ = blueprint_folder(str(run))
    if exists(stored := place / STRATEGY) and stored_form(stored) != ABSTRACT:
        agent, game = load_player(str(run))
        found = tree_report(known(agent), game, max(deals // DEALS_OF_BOARD, 1), seed)
        return (replace(found, strategy=strategy_of(agent)),)
    played = blueprint_agent(str(run))
    both = replace(played, rule=AS_SOLVED), played
    return tuple(
        replace(report(agent.blueprint, deals, seed, agent.mapping, agent.rule), strategy=blueprint_name(agent))
        for agent in (both[1:] if chooses_rule(str(run)) or played.rule.idle else both)
    )
