"""Compute win rates against Slumbot: raw, relative to Slumbot's baseline, and with AIVAT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kilt.errors import PlayError
from kilt.evaluate.aivat import BlueprintValues
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.log_estimates import estimate_from_log
from kilt.evaluate.stats import Estimate, estimate_mean
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent, require_policy
from kilt.play.blueprint import BlueprintAgent
from kilt.play.slumbot import SlumbotHand
from kilt.search.agent import ResolvingAgent
from kilt.strategy.blueprint import Blueprint

ALL_CARDS_AIVAT = estimator_named("all-cards+aivat")


class SlumbotRates(NamedTuple):
    """A player's win rates against Slumbot in mbb/h, by three methods.

    Attributes
    ----------
    played : Estimate
        Mean of the raw winnings.
    baseline : Estimate or None
        Mean of the winnings minus those of Slumbot's own strategy with the same cards, as reported by Slumbot: much of
        the luck of the cards cancels. It is comparable if both seats have the same number of hands. None if Slumbot did
        not report its own strategy's winnings for all hands.
    aivat : Estimate or None
        An estimate of the same win rate by AIVAT [Burch18] for the cards and the actions of the player. None if
        the player has no blueprint, if it plays by the clock, or if AIVAT was not requested.
    aivat_hands : int
        Number of hands that AIVAT could evaluate.
    """

    played: Estimate
    baseline: Estimate | None
    aivat: Estimate | None
    aivat_hands: int


def underlying_blueprint(agent: Agent) -> Blueprint | None:
    """Return the blueprint from which AIVAT learns an agent's state values, or None.

    An agent that re-solves with a time limit has none, because its strategy cannot be reproduced.
    """
    if isinstance(agent, ResolvingAgent) and not agent.settings.clock:
        return agent.blueprint.blueprint
    return agent.blueprint if isinstance(agent, BlueprintAgent) else None


def slumbot_rates(
    hands: Sequence[SlumbotHand], game: Holdem, agent: Agent, player: str, *, aivat: bool
) -> SlumbotRates:
    """Compute a player's win rates against Slumbot from the hands of a match.

    Parameters
    ----------
    hands : sequence of SlumbotHand
        At least one.
    game : Holdem
        The game.
    agent : Agent
        The player.
    player : str
        Its name in the hands.
    aivat : bool
        Whether to estimate with AIVAT too, if the agent has a blueprint.

    Returns
    -------
    SlumbotRates

    Raises
    ------
    PlayError
        There are no hands.
    """
    if not hands:
        raise PlayError("no hand has been finished, so there is nothing to estimate")
    unit = 1000 / game.rules.big_blind
    less = [unit * (hand.won - hand.baseline) for hand in hands if hand.baseline is not None]
    found, evaluated = None, 0
    blueprint = underlying_blueprint(agent) if aivat else None
    if blueprint:
        whole = [hand.hand for hand in hands if hand.hand is not None]
        states = BlueprintValues(blueprint)
        judgement = estimate_from_log(
            game, whole, player, require_policy(agent), estimators=(ALL_CARDS_AIVAT,), states=states
        )
        evaluated = judgement.hands
        found = judgement.rows[0].won if judgement.rows else None
    return SlumbotRates(
        estimate_mean([unit * hand.won for hand in hands]),
        estimate_mean(less) if len(less) == len(hands) else None,
        found,
        evaluated,
    )
