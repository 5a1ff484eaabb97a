"""Estimate a lower bound on an agent's exploitability by local best response, in games of any size [Lisy17].

LBR knows the agent's strategy. It tracks the agent's range: the probability of each private hand, given the agent's
actions (by Bayes' rule) and the cards that LBR sees. At each of its decisions it takes the action with the highest
value, if both players check and call afterwards. In chips that it wins in the whole hand,

    fold      minus the chips that it has put in
    call      the chips at stake × its edge over the range
    raise     the agent's chips in the pot × the probability that it folds
              + the chips at stake when called × the edge over the hands that do not fold × the probability of that

A best response wins at least as much as LBR. LBR's bets need not be on the agent's menu, and its opponent is the agent
as it plays: translation and post-processing are part of the strategy. The bound may be negative if LBR plays badly: it
looks ahead only to the next answer. With fewer bet sizes, or none in early rounds, the bound is often higher.

The reported value reduces variance as AIVAT does [Burch18]: at the deal, at public cards and at each action of the
agent, it subtracts the value of the next state to LBR minus the mean over all possible next states. Each of these terms
has mean 0, since the agent's strategy is known.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> bound = lower_bound(load_game("leduc"), BASELINES["always-fold"], hands=20)
>>> print(bound.won)  # an ante of 1 in each hand, where LBR can bet
+1000.0 ± 0.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from kilt.abstraction.actions import ActionAbstraction, actions_of
from kilt.arrays import FloatArray
from kilt.errors import PlayError
from kilt.evaluate.stats import Estimate, estimate_mean, win_rate
from kilt.evaluate.values import hands_without_cards, showdown_edges
from kilt.games.game import CHANCE
from kilt.games.gamedef import GameDef
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem, positions_of
from kilt.play.agent import Agent, Observation, PolicyAgent, require_policy
from kilt.play.dealer import Hand
from kilt.play.match import Load, load_once, play_match

NAME = "local-best-response"
# Small and large bet sizes that few trees have, and fewer sizes for raises.
BETS = "m, 10%, 33%, 50%, 75%, 1x, 1.5x, 2x, 3x, a; m, 1x, a"


@dataclass(frozen=True)
class LocalBestResponse:
    """An agent that plays a local best response (LBR) to another agent with a known strategy.

    Parameters
    ----------
    opponent : PolicyAgent
        The agent to exploit.
    bets : ActionAbstraction
        The raises that it considers in no-limit games; limit games have one.
    first_round : int
        The first round in which it bets and folds; before that it checks and calls.
    """

    opponent: PolicyAgent
    bets: ActionAbstraction = field(default_factory=lambda: actions_of(BETS))
    first_round: int = 0
    name: str = NAME
    _starts: dict[tuple[GameDef, int], FloatArray] = field(default_factory=dict, repr=False, compare=False)

    def act(self, observation: Observation) -> str:
        """Return the action with the highest value."""
        if observation.position.round < self.first_round:
            return CALL
        values = self.action_values(observation)
        return max(values, key=values.__getitem__)

    def action_values(self, observation: Observation) -> dict[str, float]:
        """Return the value of each action if both players check and call after the opponent's next action.

        Parameters
        ----------
        observation : Observation
            A decision of LBR.

        Returns
        -------
        dict of str to float
            By action, chips that LBR wins in the whole hand.
        """
        position, board = observation.position, observation.board
        chances = self.opponents_range(observation)
        edge = -showdown_edges(position.rules, observation.hand, board)
        return {action: float(value) for action, value in self._values(position, board, chances, edge).items()}

    def opponents_range(self, observation: Observation) -> FloatArray:
        """Return the opponent's range, given the opponent's actions and the visible cards.

        Raises PlayError if no hand is left: the opponent took an action to which its `policy` gives probability 0.
        """
        position, rules = observation.position, observation.position.rules
        chances = hands_without_cards(rules, [(*observation.hand, *observation.board)])[0].astype(np.float64)
        for before, action in positions_of(rules).moves_to(position):
            if before.actor == 1 - position.actor:
                seen = observation.board[: rules.board_size(before.round)]
                chances *= self.opponent.policy(before, seen).probability(action)
        return self._normalised(chances, position)

    def without_luck(self, hand: Hand, seat: int) -> float:
        """Return LBR's winnings in a hand with luck removed, in chips.

        If no player can bet any more, the result is the mean over the cards to come; at a showdown, it is the mean over
        the opponent's range.
        """
        rules, hole = hand.position.rules, hand.cards.holes[seat]
        after, board = positions_of(rules).after, hand.board[:0]
        deal_values = self._start_values(rules, seat)
        luck = float(deal_values[rules.deck.hole_index(hole)] - deal_values.mean())
        chances = self._normalised(hands_without_cards(rules, [hole])[0].astype(np.float64), positions_of(rules).start)
        edge, end = -showdown_edges(rules, hole, ()), hand.position
        for before, action in positions_of(rules).moves_to(hand.position):
            at = after(before, action)
            if before.actor == CHANCE:
                if at.actor < 0:
                    break
                luck -= at.stake * float(chances @ edge)
                board = hand.board[: rules.board_size(at.round)]
                chances = self._normalised(chances * hands_without_cards(rules, [board])[0], before)
                edge = -showdown_edges(rules, hole, board)
                luck += at.stake * float(chances @ edge)
            elif before.actor == 1 - seat:
                luck -= float(self._answer_value(before, board, chances, edge))
                chances = self._normalised(chances * self.opponent.policy(before, board).probability(action), at)
                luck += float(self._state_value(at, board, chances, edge, seat))
        return float(self._state_value(end, board, chances, edge, seat)) - luck

    # The methods below take the opponent's range as weights, which need not add up to 1; values are proportional to
    # their sum. For several hands of LBR, there is a row of weights and of edges for each: [hand of LBR, hand].

    def _values(
        self, position: Betting, board: tuple[int, ...], chances: FloatArray, edge: FloatArray
    ) -> dict[str, FloatArray]:
        """Return the value of each action at a decision of LBR, in chips.

        With several hands of LBR, there is a value for each hand.
        """
        after, won = positions_of(position.rules).after, chances * edge
        values = {CALL: after(position, CALL).stake * won.sum(axis=-1)}
        if position.facing:
            values[FOLD] = -position.spent[position.actor] * chances.sum(axis=-1)
        for action in allowed_raises(position, self.bets):
            raised = after(position, action)
            folds = self.opponent.policy(raised, board).probability(FOLD)
            values[action] = raised.stake * (chances @ folds) + after(raised, CALL).stake * (won @ (1 - folds))
        return values

    def _state_value(
        self, position: Betting, board: tuple[int, ...], chances: FloatArray, edge: FloatArray, seat: int
    ) -> FloatArray:
        """Return the value of a state to LBR in `seat`.

        It is that of the best action at decisions of LBR, otherwise that of checking and calling.
        """
        if position.folded is not None:
            return np.asarray((position.stake if position.folded != seat else -position.stake) * chances.sum(axis=-1))
        if position.actor == seat and position.round >= self.first_round:
            values = self._values(position, board, chances, edge).values()
            return np.asarray(np.max(list(values), axis=0))
        return np.asarray(min(max(position.spent), *position.rules.stacks) * (chances * edge).sum(axis=-1))

    def _answer_value(
        self, position: Betting, board: tuple[int, ...], chances: FloatArray, edge: FloatArray
    ) -> FloatArray:
        """Return the value of an opponent's decision to LBR, as the mean over the opponent's actions."""
        policy, total = self.opponent.policy(position, board), np.zeros(chances.shape[:-1])
        for action in policy.actions:
            at = positions_of(position.rules).after(position, action)
            total += self._state_value(at, board, chances * policy.probability(action), edge, 1 - position.actor)
        return total

    def _start_values(self, rules: GameDef, seat: int) -> FloatArray:
        """Return the value of the start of a hand to LBR for each of its private hands; cached."""
        if (rules, seat) not in self._starts:
            start, deck = positions_of(rules).start, rules.deck
            holes = [tuple(hole) for hole in deck.holes(rules.hole_cards).tolist()]
            edge = -np.array([showdown_edges(rules, hole, ()) for hole in holes])
            chances = hands_without_cards(rules, holes).astype(np.float64)
            chances /= chances.sum(axis=1, keepdims=True)
            self._starts[rules, seat] = (
                self._state_value(start, (), chances, edge, seat)
                if start.actor == seat
                else self._answer_value(start, (), chances, edge)
            )
        return self._starts[rules, seat]

    def _normalised(self, chances: FloatArray, position: Betting) -> FloatArray:
        total = float(chances.sum())
        if not total > 0:
            raise PlayError(
                f"{self.opponent.name} played {position.history!r}, to which its `policy` gives probability 0: correct "
                "its `policy`"
            )
        return chances / total


def allowed_raises(position: Betting, bets: ActionAbstraction) -> list[str]:
    """Return the raises that a set of bet sizes allows, which in limit games is the legal raise."""
    if position.rules.betting == "limit":
        return [RAISE] if position.raise_bounds() else []
    return [f"{RAISE}{level}" for level in sorted(bets(position))]


class LowerBound(NamedTuple):
    """A lower bound on an agent's exploitability: the win rate of a local best response.

    The win rate is the mean over both seats.
    """

    won: Estimate  # mbb/h, after variance reduction for cards and for the agent's actions
    money: Estimate  # mbb/h, raw winnings
    hands: int


def lower_bound(
    game: Holdem,
    agent: Agent | str,
    hands: int = 1000,
    seed: int = 0,
    *,
    bets: ActionAbstraction | str = BETS,
    first_round: int = 0,
    load: Load | None = None,
    processes: int = 1,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> LowerBound:
    """Estimate a lower bound on an agent's exploitability by playing a local best response against it [Lisy17].

    Both players play every deal in both seats.

    Parameters
    ----------
    game : Holdem
        The rules.
    agent : Agent or str
        The agent to exploit; its strategy must be available (`PolicyAgent`). With several processes, give a name for
        `load`.
    hands : int
        Number of hands, even.
    seed : int
        Seed of the cards and of the agent's random choices.
    bets : ActionAbstraction or str
        The raises that LBR considers in no-limit games.
    first_round : int
        The first round, from 0, in which LBR bets and folds; before that it checks and calls.
    load : callable, optional
        Loads an agent by name: see `kilt.play.match.play_match`.
    processes : int
        Maximum number of processes. The result does not depend on it.
    tick : callable
        Called with the number of hands so far, from time to time.
    stop : callable
        Play ends early, with fewer hands, once it returns True.

    Returns
    -------
    LowerBound

    Raises
    ------
    PlayError
        The agent's strategy is not available, or the agent takes an action to which it gives probability 0.
    """
    if not 0 <= first_round < game.rules.rounds:
        raise PlayError(
            f"LBR cannot bet from round {first_round} on: the rounds of {game.name} are 0 to {game.rules.rounds - 1}"
        )
    menu, chips = actions_of(bets) if isinstance(bets, str) else bets, list[float]()
    lbr = LocalBestResponse(require_policy(load_once(agent, load)), menu, first_round)
    by_name = partial(_player, load, str(agent), menu, first_round)
    match = play_match(
        game,
        (NAME, agent) if isinstance(agent, str) else (lbr, agent),
        hands,
        seed,
        load=by_name,
        processes=processes,
        sink=lambda hand: chips.append(lbr.without_luck(hand, hand.number % 2)),
        tick=tick,
        stop=stop,
    )
    pairs = np.reshape(chips, (-1, 2)).mean(axis=1)
    return LowerBound(estimate_mean(pairs * (1000 / game.rules.big_blind)), win_rate(match), match.hands)


def _player(load: Load | None, agent: str, bets: ActionAbstraction, first_round: int, name: str) -> Agent:
    """Return a player of a match between LBR and an agent, given the player's name."""
    found = load_once(agent, load)
    return LocalBestResponse(require_policy(found), bets, first_round) if name == NAME else found
