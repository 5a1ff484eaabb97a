"""Pick one of several agents for each hand, by estimates of each agent's winnings [Johanson16 §8].

Polaris beat experts in 2008 with a portfolio of strategies: after each hand, an off-policy estimator scores every
component on the observed hand, whichever component played it (see `evaluate.estimators`), and the scores decide which
component plays next. The thesis does not specify the rule; kilt uses UCB1 [Auer02], with the effective number of hands
in place of the number of plays: it picks the component i with the largest

    mean score of i + explore · s · √(2 ln t / n_i),        n_i = (Σ w)² / Σ w²

where t is the number of hands so far, s the standard deviation of the scores of the components that played, and w the
weights of the hands for i. A hand counts for i if the component that played it takes every action that i takes, except
in a share of at most `MAX_UNPLAYED` of the hands of i; a hand that i played always counts. So for components
without common actions, n_i is the number of hands that i played: this is UCB1. First each component plays one hand, in
the given order. With a window, only the last hands count [Garivier11], for opponents who change.

Opponents' cards are known only at showdowns: estimates are those with partial information, in which `all-cards` leaves
a small bias and values other than money a large one; so the default value is money.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, log
from typing import TypeAlias

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import PlayError
from kilt.evaluate.estimators import AIVAT, ENDINGS, Estimator, estimator_named, follow_line, hand_values
from kilt.evaluate.values import LoggedHands
from kilt.games.holdem import Holdem
from kilt.play.agent import Observation, PlayedHand, PolicyAgent
from kilt.play.dealer import Cards, Hand

ESTIMATOR = "all-cards+early-folds"
MAX_UNPLAYED = 0.01  # share of a component's hands that another one may never play and still stand in for it

Tabulated: TypeAlias = "PolicyAgent | Portfolio"  # agents that can be evaluated on hands that they played
Scores: TypeAlias = FloatArray  # [6, component]: hands, value in chips, its square, weight, its square, missing support


def component_scores(
    game: Holdem, hand: PlayedHand, played: PolicyAgent, components: tuple[PolicyAgent, ...], estimator: Estimator
) -> Scores:
    """Estimate what each agent of a portfolio would have won in a hand that one of them played.

    Parameters
    ----------
    game : Holdem
        The game.
    hand : PlayedHand
        The hand as the player saw it.
    played : PolicyAgent
        The agent that played it.
    components : tuple of PolicyAgent
        The agents to score.
    estimator : Estimator
        The estimator that scores them.

    Returns
    -------
    ndarray, shape (6, components)
        1, the value in chips and its square, the weight of the hand and its square, and the share of the component's
        hands that `played` never plays, as estimated from this hand.
    """
    holes = (hand.hand, hand.shown) if hand.seat == 0 else (hand.shown, hand.hand)
    payoffs = (hand.won, -hand.won) if hand.seat == 0 else (-hand.won, hand.won)
    played_hand = Hand(0, hand.position, Cards(holes, hand.board), payoffs, ("", ""))
    seen = LoggedHands(game, [played_hand], hand.seat, partial=True)
    found = np.ones((6, len(components)))
    for place, evaluated in enumerate(components):
        line = follow_line(seen, played, evaluated, ENDINGS[estimator.endings])
        value, weight = hand_values(seen, line, [estimator])[:, 0, 0]
        (missing,) = line.missing[estimator.all_cards, estimator.endings]
        found[1:, place] = value, value**2, weight, weight**2, missing
    return found


def component_that_played(agent: Tabulated, hand: Hand, seat: int) -> PolicyAgent:
    """Return the agent that played a hand. For a portfolio, it is the component that was chosen.

    After each hand, a portfolio notes which component played it. Logs that kilt writes have these notes, and the notes
    of the hand name the component.

    Raises
    ------
    PlayError
        The hand has no note of the portfolio.
    """
    if not isinstance(agent, Portfolio):
        return agent
    note = hand.notes[seat] if hand.notes else ""
    for component in agent.components:
        if component.name == note:
            return component
    raise PlayError(f"no note of the log names a component of {agent.name}" + (f": {note!r} is none" if note else ""))


def components_of(agent: Tabulated) -> tuple[PolicyAgent, ...]:
    """Return a portfolio's agents, or a list with the agent itself if it is no portfolio."""
    return agent.components if isinstance(agent, Portfolio) else (agent,)


def upper_bounds(totals: FloatArray, explore: float = 1.0) -> FloatArray:
    """Return an upper confidence bound (UCB1) on the winnings of each agent in a portfolio, in chips per hand.

    See the docstring of this module.

    Parameters
    ----------
    totals : ndarray, shape (6, components, components)
        Sums of `component_scores` over hands, by the component that is scored and the one that played.
    explore : float
        Factor of the width; 0 trusts the means.

    Returns
    -------
    ndarray, shape (components,)
        Chips per hand; infinite for a component without hands.
    """
    hands, _, _, _, _, missing = totals
    stands_in = (hands > 0) & (missing <= MAX_UNPLAYED * hands) | np.eye(len(hands), dtype=bool)
    count, value, _, weight, squares, _ = (totals * stands_in).sum(axis=2)
    # of the components that played: hands, values, their squares
    own = totals[:3].diagonal(axis1=1, axis2=2).sum(axis=1)
    known = (count > 0) & (weight > 0)
    bounds = np.full(len(hands), np.inf)
    if known.any():
        deviation = np.sqrt(max(own[2] / own[0] - (own[1] / own[0]) ** 2, 0.0))
        width = deviation * np.sqrt(2 * log(own[0]) * squares[known]) / weight[known]
        bounds[known] = value[known] / count[known] + explore * width
    return bounds


@dataclass(eq=False)
class Portfolio:
    """An agent that picks one of several agents for each hand, by their results.

    Parameters
    ----------
    name : str
        Its name in tables and logs.
    components : tuple of PolicyAgent
        At least one. They play the same game.
    estimator : Estimator
        Scores the components; any but AIVAT.
    explore : float
        Factor of the width of UCB1's bounds; 0 picks the best mean.
    window : int, optional
        Number of recent hands that count. By default, all of the match.

    Raises
    ------
    PlayError
        There are no components, or a setting is out of range.
    """

    name: str
    components: tuple[PolicyAgent, ...]
    estimator: Estimator = field(default_factory=lambda: estimator_named(ESTIMATOR))
    explore: float = 1.0
    window: int | None = None
    # [hand] the component that played; the last entry plays next
    chosen: list[int] = field(init=False, default_factory=list)
    _recent: deque[tuple[int, Scores]] = field(init=False, repr=False, default_factory=deque)  # hands of the window
    _totals: FloatArray = field(init=False, repr=False)  # see `upper_bounds`

    def __post_init__(self) -> None:
        if not self.components:
            raise PlayError("a portfolio without components cannot play: give at least one")
        if self.window is not None and self.window < len(self.components):
            raise PlayError(
                f"a window of {self.window} hands does not hold one of each of {len(self.components)} components: "
                "use a larger one"
            )
        if not 0 <= self.explore < inf:
            raise PlayError(f"explore is {self.explore}, a factor of the width of bounds: use 0 or more")
        if self.estimator.value == AIVAT:
            raise PlayError(f"{self.estimator.name} needs all cards, and players do not see them: use {ESTIMATOR}")
        self.chosen.append(0)
        self._totals = np.zeros((6, len(self.components), len(self.components)))

    @property
    def game(self) -> Holdem | None:
        """The game that the portfolio's agents play, or None if they can play any game."""
        return next((game for agent in self.components if (game := getattr(agent, "game", None))), None)

    def begin(self, game: Holdem) -> Portfolio:
        """Return a copy of the portfolio for a new match, without memory of earlier hands.

        Raises PlayError if the strategy of a component is not available.
        """
        for agent in self.components:
            agent.policy(game.start(), ())
        return replace(self)

    def act(self, observation: Observation) -> str:
        """Return the action of the agent that plays this hand."""
        return self.components[self.chosen[-1]].act(observation)

    def observe_hand(self, hand: PlayedHand) -> str:
        """Score all agents of the portfolio on a finished hand, and choose one for the next hand.

        Returns the name of the component that played the hand, as a note for logs.
        """
        player, played = self.chosen[-1], len(self.chosen)
        with suppress(PlayError):  # a hand in which a component has no strategy scores no component
            found = component_scores(
                Holdem(hand.position.rules), hand, self.components[player], self.components, self.estimator
            )
            self._totals[:, :, player] += found
            if self.window is not None:
                self._recent.append((player, found))
        if self.window is not None and len(self._recent) > self.window:
            before, old = self._recent.popleft()
            self._totals[:, :, before] -= old
        bounds = upper_bounds(self._totals, self.explore)
        self.chosen.append(played if played < len(self.components) else int(bounds.argmax()))
        return self.components[player].name
