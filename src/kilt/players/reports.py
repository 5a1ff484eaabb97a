"""Sanity checks of a player, with one report for each of its strategies."""

from __future__ import annotations

from dataclasses import replace

from kilt.evaluate.findings import Report
from kilt.evaluate.sanity import DEALS, check_blueprint
from kilt.evaluate.self_play import AS_SOLVED
from kilt.evaluate.tree_sanity import DEALS_OF_BOARD, check_tree_strategy
from kilt.games.game import Game
from kilt.play.agent import require_policy
from kilt.play.blueprint import BlueprintAgent
from kilt.players.agents import (
    blueprint_agent,
    blueprint_folder,
    chooses_rule,
    describe_blueprint,
    describe_strategy,
    is_whole_game,
)
from kilt.players.reference import Player, Who, player
from kilt.tree.betting import betting_size


def sanity_reports(who: Who, deals: int = DEALS, seed: int = 0, game: str | Game | None = None) -> tuple[Report, ...]:
    """Check each strategy of a player for blunders, and return a report on each.

    Parameters
    ----------
    who : str, Path, Run, Strategy or agent
        A player whose strategy can be tabulated. For a run, its average strategy is checked, followed by the strategy
        as played if that differs; ``RUN@RULE`` chooses one of them.
    deals : int
        Number of deals of self-play. Without a card abstraction, a board with all its hands counts as 200 deals.
    seed : int
        Random seed of the deals.
    game : str or Game, optional
        The game, for players who play more than one.

    Returns
    -------
    tuple of Report
        One or two reports; `Report.strategy` names the strategy.

    Raises
    ------
    KiltError
        If the player has no strategy that can be tabulated, or if the game has too many bets to check all of them.
    """
    met = player(who, game)
    played = _blueprint_agent_of(met)
    if played is None:
        agent, rules = met.at()
        betting_size(rules, None)
        found = check_tree_strategy(require_policy(agent), rules, max(deals // DEALS_OF_BOARD, 1), seed)
        return (replace(found, strategy=describe_strategy(agent) or agent.name),)
    both = replace(played, rule=AS_SOLVED), played
    return tuple(
        replace(
            check_blueprint(agent.blueprint, deals, seed, agent.mapping, agent.rule), strategy=describe_blueprint(agent)
        )
        for agent in (both[1:] if chooses_rule(played.name) or played.rule.idle else both)
    )


def _blueprint_agent_of(who: Player) -> BlueprintAgent | None:
    """Return the agent of a player's blueprint, without re-solving. None if the player has no blueprint."""
    place = blueprint_folder(who.spec)[0] if who.spec else None
    if who.spec and place and place.exists():
        return None if is_whole_game(place) else blueprint_agent(who.spec)
    agent = who.agent
    return agent if isinstance(agent, BlueprintAgent) else None
