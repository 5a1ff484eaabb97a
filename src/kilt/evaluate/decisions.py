"""What each action of a decision is worth with every hand, where both players follow a known strategy afterwards.

Values are chips from the decision on: what is won of the pot, less what is still put in; a fold is worth 0. They are
exact where few boards are still to come, and are not told elsewhere.

>>> from kilt.api import solve_game
>>> from kilt.evaluate.players import load_holdem
>>> from kilt.play.strategy_agent import StrategyAgent
>>> kuhn = load_holdem("kuhn")
>>> agent = StrategyAgent("kuhn", kuhn, solve_game(kuhn, "cfr+", iterations=1000).strategy)
>>> found = decision_values(agent, kuhn, kuhn.replay("cr"), ())
>>> found.actions, found.values[:, 2].round(6).tolist()  # with the king, a call wins 2 of the pot and the bet
(('f', 'c'), [0.0, 3.0])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.cards.deck import subsets
from kilt.cards.equity import rank_hands
from kilt.cards.equity_kernels import Ranking, showdown
from kilt.errors import PlayError
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import Betting, Holdem
from kilt.games.subgame import rivals
from kilt.play.agent import KnownAgent
from kilt.play.dealer import Hand

MOST_BOARDS = 16  # that may still come where values are told


class DecisionValues(NamedTuple):
    """What a strategy does at a decision, and what that is worth.

    Attributes
    ----------
    actions : tuple of str
        As the ACPC writes them.
    shares : ndarray, shape (actions, hands)
        Probabilities of the strategy; 0 for actions that it does not have.
    values : ndarray, shape (actions, hands)
        Chips from the decision on, against the opponent's range; nan for hands that meet no hand of it.
    """

    actions: tuple[str, ...]
    shares: FloatArray
    values: FloatArray


class JudgedDecision(NamedTuple):
    """A decision that somebody has made, beside what a strategy would have done."""

    position: Betting
    board: tuple[int, ...]
    taken: str  # the action
    actions: tuple[str, ...]  # those of the strategy, and `taken`
    shares: tuple[float, ...]  # [action] the strategy's probabilities with the same hand
    values: tuple[float, ...] | None  # [action] chips from the decision on; None where they are not told

    @property
    def loss(self) -> float | None:
        """Chips by which the best action is better than the one that was taken; None where values are not told."""
        return None if self.values is None else max(self.values) - self.values[self.actions.index(self.taken)]


def ranges(agent: KnownAgent, game: Holdem, position: Betting, board: tuple[int, ...]) -> FloatArray:
    """[seat, hand] The probability that each player, who follows `agent`, plays up to `position` with each hand.

    0 for hands that share a card with the board.
    """
    holes = game.deck.holes(game.rules.hole_cards)
    reach: FloatArray = np.ones((2, len(holes))) * ~np.isin(holes, board).any(axis=1)
    for before, action in game.positions.moves(position):
        if before.actor >= 0:
            reach[before.actor] *= agent.policy(before, board[: game.rules.board_size(before.round)]).share(action)
    return reach


def told(game: Holdem, position: Betting) -> bool:
    """Whether `decision_values` tells what actions are worth at a position: few boards are still to come."""
    left, boards = game.deck.size - game.rules.board_size(position.round), 1
    for count in game.rules.board_cards[position.round + 1 :]:
        boards, left = boards * comb(left, count), left - count
    return boards <= MOST_BOARDS


def decision_values(
    agent: KnownAgent, game: Holdem, position: Betting, board: tuple[int, ...], also: tuple[str, ...] = ()
) -> DecisionValues:
    """What each action of a decision is worth with every hand, if both players follow an agent before and afterwards.

    Parameters
    ----------
    agent : KnownAgent
        Who plays in both seats.
    game : Holdem
        What it plays.
    position : Betting
        A decision; PlayError where `told` says no.
    board : tuple of int
        The public cards so far.
    also : tuple of str
        Actions to look at beside those of the agent.

    Returns
    -------
    DecisionValues
    """
    if position.actor < 0 or not told(game, position):
        raise PlayError(f"what actions are worth is told where at most {MOST_BOARDS} boards are to come: go on")
    policy, me = agent.policy(position, board), position.actor
    actions = tuple(dict.fromkeys([*policy.actions, *also]))
    theirs = ranges(agent, game, position, board)[1 - me]
    met = rivals(theirs, game.deck.holes(game.rules.hole_cards), game.deck.size)
    walk = _Walk(agent, game, me)
    sums = np.stack([walk.worth(game.positions.after(position, action), board, theirs) for action in actions])
    values = np.divide(sums, met, out=np.full_like(sums, np.nan), where=met > 0) + position.spent[me]
    return DecisionValues(actions, np.stack([policy.share(action) for action in actions]), values)


def judged(agent: KnownAgent, game: Holdem, hand: Hand, seat: int) -> list[JudgedDecision]:
    """The decisions of the player in a seat of a hand, beside what an agent, their opponent, would have done there."""
    found, holding = [], game.deck.hole_index(hand.cards.holes[seat])
    for position, taken in game.positions.moves(hand.position):
        if position.actor != seat:
            continue
        board = hand.board[: game.rules.board_size(position.round)]
        if told(game, position):
            actions, shares, values = decision_values(agent, game, position, board, (taken,))
            worth = tuple(values[:, holding].tolist())
            said = worth if not np.isnan(worth).any() else None
        else:
            policy = agent.policy(position, board)
            actions, said = tuple(dict.fromkeys([*policy.actions, taken])), None
            shares = np.stack([policy.share(action) for action in actions])
        found.append(JudgedDecision(position, board, taken, actions, tuple(shares[:, holding].tolist()), said))
    return found


@dataclass
class _Walk:
    """A walk over all that may follow a position, with vectors over the hands of the player in seat `me`."""

    agent: KnownAgent
    game: Holdem
    me: int
    _rankings: dict[tuple[int, ...], Ranking] = field(default_factory=dict)

    def worth(self, position: Betting, board: tuple[int, ...], reach: FloatArray) -> FloatArray:
        """[hand] Chips to `me`, summed over the opponent's hands, which come here with probabilities `reach`."""
        positions = self.game.positions
        if position.actor == TERMINAL:
            return self._leaf(position, board, reach)
        if position.actor == CHANCE:
            return self._dealt(position, board, reach)
        policy = self.agent.policy(position, board)
        total: FloatArray = np.zeros(len(reach))
        for action in policy.actions:
            share, after = policy.share(action), positions.after(position, action)
            if position.actor == self.me:
                total += share * self.worth(after, board, reach)
            elif (share * reach).any():
                total += self.worth(after, board, share * reach)
        return total

    def _dealt(self, position: Betting, board: tuple[int, ...], reach: FloatArray) -> FloatArray:
        """The mean over the next public cards, which neither player holds."""
        game = self.game
        after, holes = game.positions.after(position, REVEAL), game.deck.holes(game.rules.hole_cards)
        count = game.rules.board_cards[after.round]
        rest = np.setdiff1d(np.arange(game.deck.size), board)
        total: FloatArray = np.zeros(len(reach))
        for cards in rest[subsets(len(rest), count)].tolist():
            free = ~np.isin(holes, cards).any(axis=1)
            total += free * self.worth(after, (*board, *cards), reach * free)
        return total / comb(len(rest) - 2 * game.rules.hole_cards, count)

    def _leaf(self, position: Betting, board: tuple[int, ...], reach: FloatArray) -> FloatArray:
        """What the end of a hand pays."""
        game = self.game
        if position.folded is not None:
            sign = -1 if position.folded == self.me else 1
            return sign * position.stake * rivals(reach, game.deck.holes(game.rules.hole_cards), game.deck.size)
        if board not in self._rankings:
            self._rankings[board] = rank_hands(board, game.deck, game.rules.hole_cards)
        ranking, won = self._rankings[board], np.empty(len(reach))
        showdown(ranking, len(ranking.ends), np.ascontiguousarray(reach), won)
        return position.stake * won
