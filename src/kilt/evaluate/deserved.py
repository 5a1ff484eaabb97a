"""Estimate a person's winnings against an agent, with most of the luck removed [Johanson16 §8]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from kilt.cancellation import raise_if_cancelled
from kilt.evaluate.aivat import BlueprintValues, EnumeratedValues, has_learnt_values
from kilt.evaluate.decisions import is_exact, state_value
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.log_estimates import HandEstimates, LogEstimates, LogEvaluator
from kilt.evaluate.portfolio import Tabulated, components_of
from kilt.evaluate.stats import Estimate
from kilt.evaluate.values import StateValues
from kilt.games.holdem import Holdem
from kilt.play.agent import PolicyAgent
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand

MONEY, DIVAT, AIVAT = "basic", "all-cards+early-folds+bc-divat", "all-cards+aivat"
PERSON, AGENT = "person", "agent"  # names of the players in this module, whatever the log calls them
MOST_NODES = 100_000  # maximum size of a betting tree for which state values are learnt


def state_values_for(agent: Tabulated, game: Holdem, *, learn: bool = True) -> StateValues | None:
    """Return the state values with which AIVAT can evaluate hands against an agent, or None.

    Parameters
    ----------
    agent : PolicyAgent or Portfolio
        The values are exact in small games, for any agent. Otherwise they are learnt from the blueprint that the agent
        plays, if its betting tree has at most `MOST_NODES` nodes. Learning takes seconds to minutes, once; later calls
        read the cache. For a portfolio, the values are those of one component, its first blueprint if it has one.
    game : Holdem
        The game that the agent plays.
    learn : bool
        Whether to learn values that are not in the cache.

    Returns
    -------
    StateValues or None
    """
    components = components_of(agent)
    agent = next((each for each in components if isinstance(each, BlueprintAgent)), components[0])
    if is_exact(game, game.start()):
        return EnumeratedValues(game, lru_cache(maxsize=1 << 14)(partial(state_value, agent, game)))
    if not isinstance(agent, BlueprintAgent) or not can_learn(agent):
        return None
    return BlueprintValues(agent.blueprint) if learn or has_learnt_values(agent.blueprint) else None


def can_learn(agent: PolicyAgent) -> bool:
    """Return whether an agent's state values can be learnt, which takes a blueprint with a small betting tree."""
    return isinstance(agent, BlueprintAgent) and len(agent.blueprint.nodes.actor) <= MOST_NODES


@dataclass
class DeservedScore:
    """Estimates a person's deserved winnings against an agent, with most of the luck removed.

    Parameters
    ----------
    game : Holdem
        The game.
    agent : PolicyAgent or Portfolio
        The person's opponent.
    states : StateValues, optional
        State values for AIVAT. By default, AIVAT is not among the estimators.
    """

    game: Holdem
    agent: Tabulated
    states: StateValues | None = None
    _judged: dict[int, HandEstimates] = field(default_factory=dict, repr=False)  # by the number of the hand

    def estimates(self, hands: Sequence[Hand], deals: Sequence[int] = ()) -> LogEstimates:
        """Return a person's actual winnings and estimates of the deserved ones."""
        rows = [estimator_named(name) for name in (MONEY, DIVAT, *([AIVAT] if self.states else []))]
        evaluator = LogEvaluator(self.game, AGENT, self.agent, self.agent, rows, self.states)
        for hand in hands:
            raise_if_cancelled()
            if hand.number not in self._judged:
                players = (PERSON, AGENT) if hand.number % 2 == 0 else (AGENT, PERSON)
                self._judged[hand.number] = evaluator.evaluate([hand._replace(players=players)])
        order = sorted((hand.number for hand in hands), key=lambda number: deals[number] if deals else number)
        found = evaluator.summary([self._judged[number] for number in order])
        return replace(
            found,
            rows=[replace(row, won=Estimate(0.0 - row.won.mean, row.won.margin)) for row in found.rows],
        )


def deserved_winnings(game: Holdem, hands: Sequence[Hand], agent: Tabulated, deals: Sequence[int] = ()) -> LogEstimates:
    """Estimate a person's deserved winnings against an agent.

    The person's actual winnings are returned as well.

    Parameters
    ----------
    game : Holdem
        The game.
    hands : sequence of Hand
        In the order of their numbers; the person sits in seat 0 in even ones.
    agent : PolicyAgent or Portfolio
        The person's opponent. If `state_values_for` has values for it, AIVAT is among the estimators.
    deals : sequence of int
        The deal of each hand in a duplicate match. By default, all deals are different.

    Returns
    -------
    LogEstimates
        Win rates of the person in mbb/h, raw winnings first. The two hands of a deal are one observation if every deal
        was played twice.
    """
    return DeservedScore(game, agent, state_values_for(agent, game)).estimates(hands, deals)
