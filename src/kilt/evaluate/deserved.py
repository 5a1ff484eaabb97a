"""What a person deserved in a match against an agent whose strategy is known, beside what they won [Johanson16 §8].

The estimators judge the agent, with all cards, since whoever runs it sees them; what it wins the person loses. So the
luck of the agent's cards and of what it drew is taken out, and with BC-DIVAT or AIVAT that of the board too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from kilt.cancellation import raise_if_cancelled
from kilt.evaluate.aivat import BlueprintValues, EnumeratedValues, is_learnt
from kilt.evaluate.decisions import exact, state_value
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.log_estimates import JudgedHands, LogEstimates, LogJudge
from kilt.evaluate.portfolio import Tabulated, components_of
from kilt.evaluate.stats import Estimate
from kilt.evaluate.values import StateValues
from kilt.games.holdem import Holdem
from kilt.play.agent import KnownAgent
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand

MONEY, DIVAT, AIVAT = "basic", "all-cards+early-folds+bc-divat", "all-cards+aivat"
PERSON, AGENT = "person", "agent"  # what they are called here, whatever their names are
MOST_NODES = 100_000  # of the betting of a blueprint from which values of states are learnt here


def states_of(agent: Tabulated, game: Holdem, *, learn: bool = True) -> StateValues | None:
    """Values of states for AIVAT; None where there are none.

    Parameters
    ----------
    agent : KnownAgent or Portfolio
        In small games the values are exact, for any agent. In others they are learnt from the blueprint that it plays,
        if it plays one of at most `MOST_NODES`, in seconds to minutes, once; then they are read from the cache. For a
        portfolio the values are those of one of its components, its first blueprint if it has one.
    game : Holdem
        What it plays.
    learn : bool
        Whether to learn values that are not there.

    Returns
    -------
    StateValues or None
    """
    components = components_of(agent)
    agent = next((each for each in components if isinstance(each, BlueprintAgent)), components[0])
    if exact(game, game.start()):
        return EnumeratedValues(game, lru_cache(maxsize=1 << 14)(partial(state_value, agent, game)))
    if not isinstance(agent, BlueprintAgent) or not can_learn(agent):
        return None
    return BlueprintValues(agent.blueprint) if learn or is_learnt(agent.blueprint) else None


def can_learn(agent: KnownAgent) -> bool:
    """Whether values of states can be learnt from what an agent plays."""
    return isinstance(agent, BlueprintAgent) and len(agent.blueprint.nodes.actor) <= MOST_NODES


@dataclass
class DeservedScore:
    """Judges the hands of a person against an agent, each once.

    Parameters
    ----------
    game : Holdem
        What is played.
    agent : KnownAgent or Portfolio
        Whom they play.
    states : StateValues, optional
        Where AIVAT takes its values from; left out: it is not among the estimators.
    """

    game: Holdem
    agent: Tabulated
    states: StateValues | None = None
    _judged: dict[int, JudgedHands] = field(default_factory=dict, repr=False)  # by the number of the hand

    def estimates(self, hands: Sequence[Hand], deals: Sequence[int] = ()) -> LogEstimates:
        """What the person won, and what estimators say that they deserved: see `deserved`."""
        rows = [estimator_named(name) for name in (MONEY, DIVAT, *([AIVAT] if self.states else []))]
        judge = LogJudge(self.game, AGENT, self.agent, self.agent, rows, self.states)
        for hand in hands:
            raise_if_cancelled()
            if hand.number not in self._judged:
                players = (PERSON, AGENT) if hand.number % 2 == 0 else (AGENT, PERSON)
                self._judged[hand.number] = judge.judge([hand._replace(players=players)])
        order = sorted((hand.number for hand in hands), key=lambda number: deals[number] if deals else number)
        found = judge.summary([self._judged[number] for number in order])
        return replace(
            found,
            rows=[replace(row, won=Estimate(0.0 - row.won.mean, row.won.margin)) for row in found.rows],
        )


def deserved(game: Holdem, hands: Sequence[Hand], agent: Tabulated, deals: Sequence[int] = ()) -> LogEstimates:
    """What a person won, and what estimators say that they deserved.

    Parameters
    ----------
    game : Holdem
        What was played.
    hands : sequence of Hand
        In the order of their numbers; the person sits in seat 0 in even ones.
    agent : KnownAgent or Portfolio
        Whom they played. Where `states_of` has values for it, AIVAT is among the estimators.
    deals : sequence of int
        The deal of each hand in a duplicate match; left out: all are different.

    Returns
    -------
    LogEstimates
        Win rates of the person in mbb/h: money first. The two hands of a deal are one unit if all came twice.
    """
    return DeservedScore(game, agent, states_of(agent, game)).estimates(hands, deals)
