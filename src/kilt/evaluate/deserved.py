"""What a person deserved in a match against an agent whose strategy is known, beside what they won [Johanson16 §8].

The estimators judge the agent, with all cards, since whoever runs it sees them; what it wins the person loses. So the
luck of the agent's cards and of what it drew is taken out, and with BC-DIVAT or AIVAT that of the board too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kilt.evaluate.aivat import BlueprintValues
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.log_estimates import LogEstimates, estimate_from_log
from kilt.evaluate.stats import Estimate
from kilt.games.holdem import Holdem
from kilt.play.agent import KnownAgent
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand

MONEY, DIVAT, AIVAT = "basic", "all-cards+early-folds+bc-divat", "all-cards+aivat"
PERSON, AGENT = "person", "agent"  # what they are called here, whatever their names are


def deserved(
    game: Holdem, hands: Sequence[Hand], agent: KnownAgent, deals: Sequence[int] = (), *, learn: bool = True
) -> LogEstimates:
    """What a person won, and what estimators say that they deserved.

    Parameters
    ----------
    game : Holdem
        What was played.
    hands : sequence of Hand
        In the order of their numbers; the person sits in seat 0 in even ones.
    agent : KnownAgent
        Whom they played. Where it plays a blueprint, AIVAT learns its values from that, or reads them from the cache.
    deals : sequence of int
        The deal of each hand in a duplicate match; left out: all are different.
    learn : bool
        Whether AIVAT is among the estimators. The values that it takes are learnt in seconds to minutes, once.

    Returns
    -------
    LogEstimates
        Win rates of the person in mbb/h: money first. The two hands of a deal are one unit if all came twice.
    """
    called = [
        hand._replace(players=(PERSON, AGENT) if hand.number % 2 == 0 else (AGENT, PERSON))
        for hand in sorted(hands, key=lambda hand: deals[hand.number] if deals else hand.number)
    ]
    states = BlueprintValues(agent.blueprint) if learn and isinstance(agent, BlueprintAgent) else None
    rows = [estimator_named(name) for name in (MONEY, DIVAT, *([AIVAT] if states else []))]
    found = estimate_from_log(game, called, AGENT, agent, estimators=rows, states=states)
    return replace(
        found,
        rows=[replace(row, won=Estimate(0.0 - row.won.mean, row.won.margin)) for row in found.rows],
    )
