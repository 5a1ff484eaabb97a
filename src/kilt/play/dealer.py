"""A dealer: shuffles, asks agents for their actions, and says who won what.

What happens in a hand is a function of the dealer's seed, the number of the hand and the agents. Duplicate hands are
dealt the same cards with the players swapped, so that luck cancels.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> dealer = Dealer(load_game("holdem.nolimit.2p"), seed=1)
>>> hand = dealer.play(0, (BASELINES["always-raise"], BASELINES["always-fold"]))
>>> hand.position.history, hand.payoffs  # the small blind acts first
('f', (50.0, -50.0))
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from kilt.errors import GameError, PlayError
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import Betting, Holdem
from kilt.play.agent import Agent, Observation, PlayedHand


class Cards(NamedTuple):
    """The cards of a hand, by number."""

    holes: tuple[tuple[int, ...], tuple[int, ...]]  # [seat] private cards
    board: tuple[int, ...]  # public cards of all rounds


class Hand(NamedTuple):
    """A hand that was played to its end."""

    number: int  # in its match, from 0
    position: Betting  # at its end
    cards: Cards
    payoffs: tuple[float, float]  # [seat] in chips
    players: tuple[str, str]  # [seat] their names
    notes: tuple[str, ...] = ()  # [seat] what agents that remember say of it

    @property
    def board(self) -> tuple[int, ...]:
        """The public cards that were dealt before the hand ended."""
        return self.cards.board[: self.position.rules.board_size(self.position.round)]

    def seen_by(self, seat: int) -> PlayedHand:
        """What the player in a seat has seen of it: the opponent's cards after a showdown alone."""
        shown = self.cards.holes[1 - seat] if self.position.folded is None else ()
        return PlayedHand(self.position, seat, self.cards.holes[seat], self.board, shown, self.payoffs[seat])


class Dealer:
    """Shuffles, asks agents for their actions and says who won what.

    Parameters
    ----------
    game : Holdem
        The rules.
    seed : int
        Cards and keys of a hand are a function of the seed and of the number of the hand.
    """

    def __init__(self, game: Holdem, seed: int = 0) -> None:
        self.game, self.seed = game, seed
        self._sizes = [game.rules.board_size(r) for r in range(game.rules.rounds)]

    def deal(self, number: int) -> Cards:
        """The cards of a hand, by its number."""
        rules = self.game.rules
        held = rules.hole_cards
        drawn = self._random(number, "cards").sample(
            range(rules.deck.size), 2 * held + rules.board_size(rules.rounds - 1)
        )
        holes = tuple(drawn[:held]), tuple(drawn[held : 2 * held])
        return Cards(holes, tuple(drawn[2 * held :]))

    def keys(self, number: int) -> tuple[int, int]:
        """[seat] The 64 random bits that an agent draws from in a hand: `Observation.key`."""
        drawn = self._random(number, "keys")
        return drawn.getrandbits(64), drawn.getrandbits(64)

    def play(self, number: int, agents: tuple[Agent, Agent], deal: int | None = None) -> Hand:
        """Play a hand, and tell agents that remember what they saw of it.

        Parameters
        ----------
        number : int
            Of the hand, from 0.
        agents : (Agent, Agent)
            By seat: heads-up, seat 0 has the big blind.
        deal : int, optional
            The hand whose cards and keys are dealt; left out: `number`.

        Returns
        -------
        Hand
            PlayError is raised where an agent answers something that is not legal.
        """
        deal = number if deal is None else deal
        cards, keys, sizes = self.deal(deal), self.keys(deal), self._sizes
        position, after = self.game.start(), self.game.positions.after
        while position.actor != TERMINAL:
            seat = position.actor
            if seat == CHANCE:
                position = after(position, REVEAL)
                continue
            observation = Observation(position, cards.holes[seat], cards.board[: sizes[position.round]], keys[seat])
            action = agents[seat].act(observation)
            try:
                position = after(position, action)
            except GameError as error:
                raise PlayError(f"{agents[seat].name} cannot go on in hand {number}: {error}") from None
        hand = self.ended(number, position, cards, (agents[0].name, agents[1].name))
        told: list[Callable[[PlayedHand], str | None] | None] = [getattr(agent, "saw", None) for agent in agents]
        if not any(told):
            return hand
        first, second = ((saw(hand.seen_by(seat)) or "") if saw else "" for seat, saw in enumerate(told))
        return hand._replace(notes=(first, second))

    def ended(self, number: int, position: Betting, cards: Cards, players: tuple[str, str]) -> Hand:
        """The record of a hand that is over, with its payoffs; `players` are names by seat."""
        deck = self.game.deck
        hands = deck.hole_index(cards.holes[0]), deck.hole_index(cards.holes[1])
        return Hand(number, position, cards, self.game.payoffs(position, hands, cards.board), players)

    def _random(self, number: int, what: str) -> random.Random:
        return random.Random(f"{self.seed} {number} {what}")
