"""Lock the strategy at some decisions of a spot, so that the solver keeps it.

A lock is a line, ``=``, and the range of each action: ``b3 = f: 22-66; c: QQ+,AKs:0.5; a: rest``. The line leads to the
decision, and the ranges give the weights with which hands take an action. ``rest`` stands for the remaining weight of
each hand: in this example half of AKs, and all hands that are not named. If the weights of a hand do not sum to 1, they
are scaled. kilt refuses a lock if a hand takes no action, if the player holds no hand of a part such as 22-66, if an
action is named twice, or if another lock gives the decision a different strategy.

After a ``/``, a lock applies to the cards that it names, or with ``/ *`` to all cards. If a lock treats suits
differently, they are no longer equivalent.

>>> read_lock("b3 = f: 22-66; c: rest").actions
(('f', '22-66'), ('c', 'rest'))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kilt.arrays import BoolArray, FloatArray
from kilt.cards.deck import Deck, range_parts
from kilt.errors import CardError, RunError, quoted
from kilt.games.subgame import Subgame
from kilt.spots.line import action_of, line_words
from kilt.spots.spot_tree import ANY, SpotTree
from kilt.tree.betting import on_menu
from kilt.tree.vector import VectorGame

REST = "rest"


@dataclass(frozen=True)
class Lock:
    """A fixed strategy at one decision of a spot, given as a range of hands for each action.

    Hands are given by a range as text.
    """

    text: str
    line: str
    actions: tuple[tuple[str, str], ...]

    def _weights(self, deck: Deck, hole_cards: int) -> FloatArray:
        """Return the weight with which each hand of the deck takes each action, [action, hand].

        Weights need not sum to 1.
        """
        rows = [np.zeros(len(deck.holes(hole_cards)))] * len(self.actions)
        for number, (_, hands) in enumerate(self.actions):
            if hands != REST:
                rows[number] = self._range(hands, deck, hole_cards)
        weights = np.stack(rows)
        left = np.maximum(1 - weights.sum(axis=0), 0)
        for number, (_, hands) in enumerate(self.actions):
            if hands == REST:
                weights[number] = left
        return weights

    def _range(self, hands: str, deck: Deck, hole_cards: int, *, strict: bool = False) -> FloatArray:
        try:
            return deck.range(hands, hole_cards, strict=strict)
        except CardError as error:
            raise RunError(f"the lock {quoted(self.text)}: {error}") from None

    def require_clear(self, deck: Deck, hole_cards: int) -> None:
        """Raise RunError if a lock gives a hand two different weights for one action."""
        for _, hands in self.actions:
            if hands != REST:
                self._range(hands, deck, hole_cards, strict=True)

    def hand_labels(self, deck: Deck, hole_cards: int) -> FloatArray:
        """Return labels for all hands, so that hands which a lock treats differently get different labels.

        They have the shape [number, hand of the deck]: the weights of the hand in the lock's ranges, and whether the
        hand has one of the cards in the lock's line. Hands with the same numbers have the same locked strategy.
        """
        holes, words = deck.holes(hole_cards), line_words(self.line)
        dealt = [deck.cards(cards) for slash, cards in pairwise(words) if slash == "/" and cards != ANY]
        held = [(holes == card).any(axis=1).astype(np.float64) for cards in dealt for card in cards]
        return np.stack([*self._weights(deck, hole_cards), *held])

    def strategies(self, game: VectorGame, *, strict: bool = True) -> dict[int, tuple[FloatArray, BoolArray]]:
        """Return the strategy that the lock fixes, for each decision to which it applies.

        Each value also says which hands the player can hold. Keys are rows of the tree's tables. Strategies have the
        shape [action, hand]. Raises RunError if the tree has no such decision or action, or if the lock names an action
        twice or hands that the player does not hold. If `strict` is False, the weights of an action that is named twice
        are summed, and other hands are ignored.
        """
        tree = SpotTree(game)
        try:
            places = tree.positions(self.line)
            position = places[0].position
            if position.actor < 0:
                raise RunError("no player has a decision there")
            labels = on_menu(position, game.menu)
            taken = [labels.index(action_of(position, word, game.menu)) for word, _ in self.actions]
            if strict and (again := [number for number, action in enumerate(taken) if action in taken[:number]]):
                word = self.actions[again[0]][0]
                raise RunError(f"{word!r} names an action a second time: give each action all its hands at once")
            if strict:
                self._require_held(tree.subgame, position.actor)
        except RunError as error:
            raise RunError(f"the lock {quoted(self.text)}: {error}") from None
        strategy = self._strategy(tree.subgame, position.actor, taken, len(labels))
        held = tree.subgame.weights[position.actor] > 0
        return {tree.row(place): (strategy[:, place.hands], held[place.hands]) for place in places}

    def _require_held(self, game: Subgame, actor: int) -> None:
        """Raise RunError if the lock names hands of which none is in the player's range."""
        held = game.numbers[game.weights[actor] > 0]
        for part in (part for _, hands in self.actions if hands != REST for part in range_parts(hands)):
            hands, _, _ = part.partition(":")
            if not self._range(hands, game.deck, game.rules.hole_cards)[held].any():
                raise RunError(f"player {actor + 1} holds no {hands}: name hands of the player's range")

    def _strategy(self, game: Subgame, actor: int, taken: list[int], actions: int) -> FloatArray:
        """Return action probabilities, [action, hand]. Raises RunError if a hand of the player takes no action."""
        strategy = np.zeros((actions, len(game.numbers)))
        np.add.at(strategy, taken, self._weights(game.deck, game.rules.hole_cards)[:, game.numbers])
        total = strategy.sum(axis=0)
        free = np.flatnonzero((total == 0) & (game.weights[actor] > 0)).tolist()
        if free:
            names = ", ".join(game.hands(actor)[hand] for hand in free[:3])
            raise RunError(f"the lock {quoted(self.text)} does not cover {names}: add `{self.actions[0][0]}: rest`")
        scaled: FloatArray = strategy / np.where(total > 0, total, 1.0)
        return scaled


def locked_strategies(game: VectorGame, locks: Sequence[Lock], *, strict: bool = True) -> dict[int, FloatArray]:
    """Return the strategies that several locks fix, for each locked decision of a spot.

    A decision is identified by its row in the tables of the tree. Raises RunError if two locks give a decision
    different strategies, or if a lock names an action twice. If `strict` is False, the last lock counts.
    """
    given: dict[int, FloatArray] = {}
    source: dict[int, Lock] = {}
    for lock in locks:
        for row, (strategy, held) in lock.strategies(game, strict=strict).items():
            if strict and row in given and not np.allclose(given[row][:, held], strategy[:, held], atol=1e-9):
                raise RunError(
                    f"the locks {quoted(source[row].text)} and {quoted(lock.text)} give different strategies for the "
                    "same decision: keep one of them"
                )
            given[row], source[row] = strategy, lock
    return given


def read_lock(text: str) -> Lock:
    """Parse a lock such as ``b3 = f: 22-66; c: rest``.

    The docstring of the module explains the notation.
    """
    line, equals, said = text.partition("=")
    parts = [part.partition(":") for part in said.split(";") if part.strip()]
    actions = tuple((word.strip(), hands.strip()) for word, _, hands in parts)
    if not equals or not actions or not all(word and hands for word, hands in actions):
        raise RunError(f"the lock {quoted(text)} cannot be read: write 'LINE = ACTION: RANGE; ACTION: rest'")
    return Lock(text, line.strip(), actions)
