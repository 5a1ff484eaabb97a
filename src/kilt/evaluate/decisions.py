"""Compute the value of each action at a decision, for every hand, if both players' strategies are known.

Values are chips from the decision on: the part of the pot that the player wins, minus the chips that the player still
puts in; a fold is worth 0. One walk of the betting handles all hands at once, on all boards that may follow if these
are few (small games, the river and the turn): values are then exact. Otherwise boards are sampled, and values
have an interval. A control variate, the showdown value of the hands on the sampled boards, removes much of the sampling
error, because its mean over all boards is known.

>>> from kilt.api import solve
>>> from kilt.games import load_game
>>> from kilt.play.strategy_agent import StrategyAgent
>>> kuhn = load_game("kuhn")
>>> agent = StrategyAgent("kuhn", kuhn, solve(kuhn, "cfr+", iterations=1000).strategy)
>>> found = decision_values(agent, kuhn, kuhn.replay("cr"), ())
>>> found.actions, found.values[:, 2].round(6).tolist()  # with the king, a call wins 2 of the pot and the bet
(('f', 'c'), [0.0, 3.0])
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import comb
from typing import NamedTuple

import numpy as np

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cancellation import raise_if_cancelled
from kilt.cards.deck import subsets
from kilt.cards.edges import pair_edges
from kilt.cards.equity import hand_strength, rank_hands
from kilt.cards.equity_kernels import Ranking, showdown_values
from kilt.errors import PlayError
from kilt.evaluate.stats import WIDTH
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import Betting, Holdem
from kilt.games.subgame import compatible_weights
from kilt.play.agent import PolicyAgent
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand

MOST_BOARDS = 48  # values are exact if at most this many boards may follow
DRAWN = 32  # sampled boards if more may follow
MOST_DECISIONS = 3_000  # maximum number of decisions that a walk visits


class DecisionValues(NamedTuple):
    """The probability and the value of each action at a decision, for every private hand.

    Attributes
    ----------
    actions : tuple of str
        In ACPC notation.
    shares : ndarray, shape (actions, hands)
        Probabilities of the strategy; 0 for actions that it never takes.
    values : ndarray, shape (actions, hands)
        Chips from the decision on, against the opponent's range; nan for hands that no hand of the range can meet.
    margins : ndarray, shape (actions, hands)
        Half-widths of the values' 95% intervals, in chips; 0 if they are exact.
    losses : ndarray, shape (actions, hands)
        Chips by which the best action is better.
    loss_margins : ndarray, shape (actions, hands)
        Half-widths of the losses' 95% intervals: actions are compared on the same boards.
    """

    actions: tuple[str, ...]
    shares: FloatArray
    values: FloatArray
    margins: FloatArray
    losses: FloatArray
    loss_margins: FloatArray


class OptionValue(NamedTuple):
    """The probability and the value of one action at a decision, with one private hand.

    ``value`` is in chips from the decision on, and so are ``loss``, the difference to the best action, and the
    half-widths of their 95% intervals. Values are nan if they were not computed.
    """

    action: str
    share: float
    value: float
    margin: float
    loss: float
    loss_margin: float


class ReviewedDecision(NamedTuple):
    """A player's decision compared with a strategy: the action taken, and the value of each action."""

    position: Betting
    taken: str  # the action that was taken
    options: tuple[OptionValue, ...]  # those of the strategy, and `taken`


def hand_ranges(agent: PolicyAgent, game: Holdem, position: Betting, board: tuple[int, ...]) -> FloatArray:
    """Return each player's range: the probability of the actions so far with each private hand.

    Both players follow the agent.

    The shape is (seats, hands). Hands that share a card with the board have 0.
    """
    holes = game.deck.holes(game.rules.hole_cards)
    reach: FloatArray = np.ones((2, len(holes))) * ~np.isin(holes, board).any(axis=1)
    for before, action in game.positions.moves_to(position):
        if before.actor >= 0:
            reach[before.actor] *= agent.policy(before, board[: game.rules.board_size(before.round)]).probability(
                action
            )
    return reach


def boards_to_come(game: Holdem, position: Betting) -> int:
    """Return the number of complete boards that can follow a position."""
    left, boards = game.deck.size - game.rules.board_size(position.round), 1
    for count in game.rules.board_cards[position.round + 1 :]:
        boards, left = boards * comb(left, count), left - count
    return boards


def is_exact(game: Holdem, position: Betting) -> bool:
    """Return whether `decision_values` are exact at a position.

    They are sampled if too many boards can follow.
    """
    return boards_to_come(game, position) <= MOST_BOARDS


def decision_values(
    agent: PolicyAgent,
    game: Holdem,
    position: Betting,
    board: tuple[int, ...],
    also: tuple[str, ...] = (),
    *,
    hands: Sequence[int] | None = None,
) -> DecisionValues:
    """Return the value of each action at a decision, for every hand, if both players follow an agent.

    Parameters
    ----------
    agent : PolicyAgent
        Plays in both seats.
    game : Holdem
        The game that the agent plays.
    position : Betting
        A decision.
    board : tuple of int
        The public cards so far.
    also : tuple of str
        Actions to evaluate in addition to those of the agent.
    hands : sequence of int, optional
        Indices of the private hands to evaluate, which takes less time; values of other hands are then undefined.

    Returns
    -------
    DecisionValues

    Raises
    ------
    PlayError
        No player acts at the position, or more than `MOST_DECISIONS` decisions may follow it.
    """
    if position.actor < 0:
        raise PlayError("no player acts at this position: choose a decision")
    policy, me = agent.policy(position, board), position.actor
    actions = tuple(dict.fromkeys([*policy.actions, *also]))
    theirs = hand_ranges(agent, game, position, board)[1 - me]
    walk = _Walk(agent, game, me, _boards(game, position, board), hands)
    reach, met = theirs * walk.possible_hands, walk.compatible_weight(theirs * walk.possible_hands)
    worth = np.stack([walk.position_value(game.positions.after(position, action), reach) for action in actions])
    if not is_exact(game, position):
        worth = _less_luck(worth, met, walk.showdown_value(reach), _mean_edges(game, board, theirs))
    values, margins = _means(worth, met)
    best = np.take_along_axis(worth, np.nan_to_num(values, nan=-np.inf).argmax(axis=0)[None, None], axis=0)
    losses, loss_margins = _means(best - worth, met)
    if is_exact(game, position):
        margins, loss_margins = np.zeros_like(margins), np.zeros_like(margins)
    shares = np.stack([policy.probability(action) for action in actions])
    return DecisionValues(actions, shares, values + position.spent[me], margins, losses, loss_margins)


def state_value(
    agent: PolicyAgent, game: Holdem, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]
) -> FloatArray:
    """Return what each hand of a player is expected to win from a position, if both players follow an agent.

    The chips are those of the whole hand against the opponent's cards, averaged over all boards that may follow, or
    over `DRAWN` of them: see `kilt.evaluate.aivat`. They are 0 for hands that share a card with the opponent or the
    board.
    """
    reach = np.zeros(comb(game.deck.size, game.rules.hole_cards))
    reach[game.deck.hole_index(opponent)] = 1.0
    walk = _Walk(agent, game, seat, _boards(game, position, board))
    means, _ = _means(
        walk.position_value(position, reach * walk.possible_hands)[None],
        walk.compatible_weight(reach * walk.possible_hands),
    )
    return np.asarray(np.nan_to_num(means[0]))


def player_decisions(game: Holdem, hand: Hand, seat: int) -> list[tuple[Betting, str]]:
    """Return one player's decisions in a hand, with the actions taken."""
    return [(position, taken) for position, taken in game.positions.moves_to(hand.position) if position.actor == seat]


def review_decision(
    agent: PolicyAgent, game: Holdem, hand: Hand, position: Betting, taken: str, *, worth: bool = True
) -> ReviewedDecision:
    """Review a player's decision: compare the action taken with an agent's strategy.

    Values are nan if `worth` is false, or if too many decisions may follow.
    """
    holding = game.deck.hole_index(hand.cards.holes[position.actor])
    board = hand.board[: game.rules.board_size(position.round)]
    policy = agent.policy(position, board)
    actions = tuple(dict.fromkeys([*policy.actions, taken]))
    values: FloatArray = np.full((4, len(actions)), np.nan)
    if worth:
        with suppress(PlayError):
            found = decision_values(agent, game, position, board, (taken,), hands=(holding,))
            values = np.stack(found[2:])[:, :, holding]
    shares = [float(policy.probability(action)[holding]) for action in actions]
    options = zip(actions, shares, *values.tolist(), strict=True)
    return ReviewedDecision(position, taken, tuple(OptionValue(*option) for option in options))


def _boards(game: Holdem, position: Betting, board: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return complete boards that may follow a position: all of them, or `DRAWN` random ones.

    Equal positions and public cards give equal draws.
    """
    counts = game.rules.board_cards[position.round + 1 :]
    rest = np.setdiff1d(np.arange(game.deck.size), board)
    if is_exact(game, position):
        found = [board]
        for count in counts:
            found = [
                (*some, *cards)
                for some in found
                for cards in np.setdiff1d(rest, some)[subsets(game.deck.size - len(some), count)].tolist()
            ]
        return found
    rng = np.random.default_rng([position.round, *board])
    return [(*board, *rng.permutation(rest)[: sum(counts)].tolist()) for _ in range(DRAWN)]


def _mean_edges(game: Holdem, board: tuple[int, ...], theirs: FloatArray) -> FloatArray:
    """Return the mean edge of each hand over the opponent's range, over all boards; nan if unknown."""
    rules, holes = game.rules, game.deck.holes(game.rules.hole_cards)
    size = rules.board_size(rules.rounds - 1)
    if board:
        return 2 * hand_strength(board, theirs, game.deck, board_size=size, hole_cards=rules.hole_cards) - 1
    met = compatible_weights(theirs, holes, game.deck.size)
    sums = pair_edges(game.deck, rules.hole_cards, size) @ theirs
    return np.divide(sums, met, out=np.full_like(sums, np.nan), where=met > 0)


def _less_luck(worth: FloatArray, met: FloatArray, shown: FloatArray, edge: FloatArray) -> FloatArray:
    """Reduce the variance of action values with the showdown results on the sampled boards.

    `worth` is [action, board, hand]. `shown` [board, hand] minus its known mean is a control variate; its coefficient
    minimises the variance.
    """
    all_of_them = np.concatenate([worth, shown[None]])
    *apart, lucky = np.nan_to_num(all_of_them - _means(all_of_them, met)[0][:, None] * met)
    weight = (apart * lucky).sum(axis=1) / np.maximum((lucky**2).sum(axis=0), 1e-300)
    less: FloatArray = worth - weight[:, None] * (shown - np.nan_to_num(edge) * met)
    return less


def _means(worth: FloatArray, met: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of values over boards, and the half-widths of their 95% intervals.

    `worth` [action, board, hand] is summed over boards and divided by the sum of the weights `met` [board, hand].
    """
    whole, count = met.sum(axis=0), np.maximum((met > 0).sum(axis=0), 2)
    means = np.divide(worth.sum(axis=1), whole, out=np.full_like(worth[:, 0], np.nan), where=whole > 0)
    square = ((worth - means[:, None] * met) ** 2).sum(axis=1)
    return means, WIDTH * np.sqrt(square * count / (count - 1)) / np.maximum(whole, 1e-300)


@dataclass
class _Walk:
    """A walk over everything that may follow a position on some boards, for all hands of player `me` at once."""

    agent: PolicyAgent
    game: Holdem
    me: int
    boards: list[tuple[int, ...]]  # complete
    hands: Sequence[int] | None = None  # the hands of `me` to evaluate; None: all
    decisions: int = 0  # visited so far
    _rankings: dict[int, Ranking] = field(default_factory=dict)

    @cached_property
    def holes(self) -> IntArray:
        """All private hands, as an array of shape (hands, cards)."""
        return self.game.deck.holes(self.game.rules.hole_cards).astype(np.int64)

    @cached_property
    def possible_hands(self) -> BoolArray:
        """Whether each hand is possible on each board, shape (boards, hands).

        A hand is possible if it shares no card with the board.
        """
        return np.array([~np.isin(self.holes, board).any(axis=1) for board in self.boards])

    def position_value(self, position: Betting, reach: FloatArray) -> FloatArray:
        """Return the value of a position for each hand of a player, summed over the opponent's hands.

        Values are in chips.

        The player is `me`, and `reach` has the weights of the opponent's hands. The shape is (boards, hands).
        """
        positions, mine = self.game.positions, position.actor == self.me
        if position.actor == CHANCE:
            return self.position_value(positions.after(position, REVEAL), reach)
        if position.folded is not None:
            return (-1 if position.folded == self.me else 1) * position.stake * self.compatible_weight(reach)
        if position.actor == TERMINAL:
            return position.stake * self.showdown_value(reach)
        raise_if_cancelled()
        self.decisions += 1
        if self.decisions > MOST_DECISIONS:
            raise PlayError(f"more than {MOST_DECISIONS:,} decisions may follow: values of actions are not computed")
        total: FloatArray = np.zeros(reach.shape)
        for action, share in self._shares(position):
            if mine and (share if self.hands is None else share[:, self.hands]).any():
                total += share * self.position_value(positions.after(position, action), reach)
            elif not mine and (kept := share * reach).any():
                total += self.position_value(positions.after(position, action), kept)
        return total

    def compatible_weight(self, reach: FloatArray) -> FloatArray:
        """Return the total weight of the opponent's hands that share no card with each hand.

        `reach` and the result have the shape (boards, hands).
        """
        by_card = reach @ self._holds
        left = reach.sum(axis=1, keepdims=True) - by_card[:, self.holes].sum(axis=2)
        left += (self.holes.shape[1] - 1) * reach
        return np.where(self.possible_hands & (left > 1e-12 * reach.sum(axis=1, keepdims=True)), left, 0.0)

    def showdown_value(self, reach: FloatArray) -> FloatArray:
        """Return each hand's showdown value: the weight of hands that it beats, minus that of hands that beat it.

        `reach` and the result have the shape (boards, hands).
        """
        won = np.empty(reach.shape)
        for number, board in enumerate(self.boards):
            if number not in self._rankings:
                self._rankings[number] = rank_hands(board, self.game.deck, self.game.rules.hole_cards)
            ranking = self._rankings[number]
            showdown_values(ranking, len(ranking.ends), np.ascontiguousarray(reach[number]), won[number])
        return won

    def _shares(self, position: Betting) -> list[tuple[str, FloatArray]]:
        """Return the actions at a decision, each with its probabilities as an array of shape (boards, hands).

        If the board does not matter, the array has one row.
        """
        seen = self.game.rules.board_size(position.round)
        boards = list(dict.fromkeys(board[:seen] for board in self.boards))
        if len(boards) > 1:
            boards = [board[:seen] for board in self.boards]
        if isinstance(self.agent, BlueprintAgent):
            return list(zip(*self.agent.probabilities_on(position, boards), strict=True))
        policies = [self.agent.policy(position, board) for board in boards]
        actions = dict.fromkeys(action for policy in policies for action in policy.actions)
        return [(action, np.stack([policy.probability(action) for policy in policies])) for action in actions]

    @cached_property
    def _holds(self) -> FloatArray:
        """For each hand and card, 1 if the hand contains the card, otherwise 0."""
        held = np.zeros((len(self.holes), self.game.deck.size))
        np.put_along_axis(held, self.holes, 1.0, axis=1)
        return held
