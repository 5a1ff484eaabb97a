"""Deal hands: shuffle the cards, ask agents for their actions, and compute payoffs.

The dealer's seed, the number of the hand and the agents determine a hand completely. A duplicate hand has the same
cards with the players swapped, so that luck cancels.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> dealer = Dealer(load_game("holdem.nolimit.2p"), seed=1)
>>> hand = dealer.play(0, (BASELINES["always-raise"], BASELINES["always-fold"]))
>>> hand.position.history, hand.payoffs  # the small blind acts first
('f', (50.0, -50.0))
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha512
from math import ceil, log
from time import process_time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import IntArray
from kilt.errors import GameError, PlayError
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import Betting, Holdem
from kilt.machine import DecisionTime
from kilt.play.agent import Agent, Observation, PlayedHand
from kilt.play.dealer_kernels import SIZE, Words32, draw_cards, draw_keys


class Cards(NamedTuple):
    """The cards of a hand, as numbers: both seats' private cards, and the board."""

    holes: tuple[tuple[int, ...], tuple[int, ...]]  # [seat] private cards
    board: tuple[int, ...]  # public cards of all rounds


class Hand(NamedTuple):
    """A finished hand with its cards, payoffs and players."""

    number: int  # number in its match, from 0
    position: Betting  # position at the end
    cards: Cards
    payoffs: tuple[float, float]  # [seat] payoffs in chips
    players: tuple[str, str]  # [seat] names
    notes: tuple[str, ...] = ()  # [seat] notes of agents that remember

    @property
    def board(self) -> tuple[int, ...]:
        """The public cards dealt before the hand ended."""
        return self.cards.board[: self.position.rules.board_size(self.position.round)]

    def from_seat(self, seat: int) -> PlayedHand:
        """Return the hand as one seat saw it, with the opponent's cards only after a showdown."""
        shown = self.cards.holes[1 - seat] if self.position.folded is None else ()
        return PlayedHand(self.position, seat, self.cards.holes[seat], self.board, shown, self.payoffs[seat])


class Dealer:
    """Shuffles the cards, asks agents for their actions, and computes payoffs.

    Parameters
    ----------
    game : Holdem
        The rules.
    seed : int
        Random seed. Cards and keys of a hand are a function of the seed and of the number of the hand.
    """

    def __init__(self, game: Holdem, seed: int = 0) -> None:
        self.game, self.seed = game, seed
        self._sizes = [game.rules.board_size(r) for r in range(game.rules.rounds)]

    def deal(self, number: int) -> Cards:
        """Return the cards of the hand with a given number."""
        rules = self.game.rules
        held = rules.hole_cards
        drawn = self._random(number, "cards").sample(
            range(rules.deck.size), 2 * held + rules.board_size(rules.rounds - 1)
        )
        holes = tuple(drawn[:held]), tuple(drawn[held : 2 * held])
        return Cards(holes, tuple(drawn[2 * held :]))

    def keys(self, number: int) -> tuple[int, int]:
        """Return a random 64-bit key for each seat, from which its agent draws all random numbers."""
        drawn = self._random(number, "keys")
        return drawn.getrandbits(64), drawn.getrandbits(64)

    def deal_many(self, first: int, last: int) -> tuple[IntArray, npt.NDArray[np.uint64]]:
        """Return the cards and random keys of many hands.

        These are hands `first` to `last` − 1. The result is the same as that of `deal` and `keys`.

        Returns
        -------
        cards : ndarray of int, shape (hands, cards)
            Private cards of seat 0, of seat 1, then the board of all rounds.
        keys : ndarray of uint64, shape (hands, 2)
            Keys by seat.
        """
        rules = self.game.rules
        deck, count = rules.deck.size, 2 * rules.hole_cards + rules.board_size(rules.rounds - 1)
        # The rule by which `Random.sample` chooses its method.
        pooled = deck <= 21 + (4 ** ceil(log(count * 3, 4)) if count > 5 else 0)
        cards = np.empty((last - first, count), dtype=np.int64)
        keys = np.empty((last - first, 2), dtype=np.uint64)
        state = np.empty(SIZE, dtype=np.uint32)
        numbers = range(first, last)
        draw_cards(*_seeds(self._text(number, "cards") for number in numbers), _fresh(), state, deck, pooled, cards)
        draw_keys(*_seeds(self._text(number, "keys") for number in numbers), _fresh(), state, keys)
        return cards, keys

    def play(
        self,
        number: int,
        agents: tuple[Agent, Agent],
        deal: int | None = None,
        thinking: list[DecisionTime] | None = None,
    ) -> Hand:
        """Play a hand to its end, and let agents that remember hands observe it.

        Parameters
        ----------
        number : int
            Number of the hand, from 0.
        agents : (Agent, Agent)
            The players by seat: heads-up, seat 0 has the big blind.
        deal : int, optional
            Number of the hand whose cards and keys are used. Default: `number`.
        thinking : list of DecisionTime, optional
            Number and CPU time of decisions, by seat. The decisions of this hand are added.

        Returns
        -------
        Hand
            The finished hand.

        Raises
        ------
        PlayError
            If an agent returns an illegal action.
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
            began = process_time()
            action = agents[seat].act(observation)
            if thinking:
                thinking[seat] += DecisionTime(1, process_time() - began)
            try:
                position = after(position, action)
            except GameError as error:
                raise PlayError(f"{agents[seat].name} failed in hand {number}: {error}") from None
        hand = self.finish_hand(number, position, cards, (agents[0].name, agents[1].name))
        observers: list[Callable[[PlayedHand], str | None] | None] = [
            getattr(agent, "observe_hand", None) for agent in agents
        ]
        if not any(observers):
            return hand
        first, second = (
            (observe(hand.from_seat(seat)) or "") if observe else "" for seat, observe in enumerate(observers)
        )
        return hand._replace(notes=(first, second))

    def finish_hand(self, number: int, position: Betting, cards: Cards, players: tuple[str, str]) -> Hand:
        """Return a finished hand, with payoffs computed from its cards and bets.

        `players` are the names by seat.
        """
        deck = self.game.deck
        hands = deck.hole_index(cards.holes[0]), deck.hole_index(cards.holes[1])
        return Hand(number, position, cards, self.game.payoffs(position, hands, cards.board), players)

    def _random(self, number: int, what: str) -> random.Random:
        return random.Random(self._text(number, what))

    def _text(self, number: int, what: str) -> str:
        return f"{self.seed} {number} {what}"


def _seeds(texts: Iterable[str]) -> tuple[Words32, IntArray]:
    """Return the words with which `random.Random` is seeded by each text, [text, word], and their number, [text]."""
    whole = [text + sha512(text).digest() for text in map(str.encode, texts)]
    width = -(-max(map(len, whole)) // 4) * 4
    words = np.frombuffer(b"".join(each[::-1].ljust(width, b"\0") for each in whole), dtype="<u4")
    used = np.array([-(-len(each) // 4) for each in whole], dtype=np.int64)
    return words.reshape(len(whole), -1).astype(np.uint32), used


@cache
def _fresh() -> Words32:
    """Return the state of the Mersenne Twister after ``init_genrand(19650218)`` of its reference code."""
    state = [19650218]
    for i in range(1, SIZE):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) % 2**32)
    return np.array(state, dtype=np.uint32)
