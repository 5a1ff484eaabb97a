"""Subgames: the rest of a poker game after a public position, with a range for each player.

Earlier betting is summarised by the chips in the pot and by the *ranges*: the probability that each player holds each
hand, before common cards are considered. So a subgame is a game like any other. Its histories begin at its first
position, and its boards hold only cards that are dealt later.

>>> from kilt.games import load_game
>>> leduc = load_game("leduc")
>>> both_raise = subgame(leduc, leduc.replay("rc/"), "Ks", [[1, 1, 1, 1, 0, 1], [0, 0, 1, 1, 1, 1]])
>>> both_raise.hands(0), both_raise.start().actor, both_raise.start().spent
(['Qh', 'Qs', 'Kh', 'Ah', 'As'], 0, (3, 3))
>>> both_raise.weights.tolist()  # no player can hold the king on the board
[[1.0, 1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray, IntArray
from kilt.errors import GameError
from kilt.games.game import Board, Hands, Position
from kilt.games.holdem import Betting, Holdem, Positions, positions_after


class ContinuationValues(NamedTuple):
    """Values of continuing after a depth limit, for each of several ways in which the players may continue.

    The depth limit is the end of a game that is cut short.

    At each showdown, one player chooses the continuation, for each hand separately [Brown18]. If there is only one
    continuation, there is no choice.

    Attributes
    ----------
    chooser : int
        The player who chooses: the opponent of the player who solves the game.
    values : ndarray of float32, shape (continuations of all showdowns, hands, hands)
        What player 0 wins per chip of the stake, by hands of player 0 and of player 1 in the order of the game; 0 for
        hands that share a card.
    places : mapping of str to (int, int)
        By the history of a showdown: the index in `values` of its first continuation, and their number.
    """

    chooser: int
    values: npt.NDArray[np.float32]
    places: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Subgame(Holdem):
    """The rest of a poker game after a public position, as a game in its own right.

    The function `subgame` builds and checks it. Hands that neither player may hold are not numbered.

    Attributes
    ----------
    first : Betting
        The position that it begins with; its history is empty.
    board : tuple of int
        The public cards at that position.
    ranges : ndarray, shape (2, hands of the deck)
        Weights of the players' hands, at least 0.
    rake_share, rake_cap : float
        The house takes this share of a pot from its winner, and at most this many chips.
    hand_marks : ndarray, shape (marks, hands of the deck), optional
        Properties of hands that suit isomorphism must preserve: see `Holdem.marks`.
    continued : ContinuationValues, optional
        Values of showdowns in a game that ends early: see `cut_after_first_round`.
    """

    first: Betting = field(kw_only=True)
    board: Board = field(kw_only=True)
    ranges: FloatArray = field(kw_only=True, compare=False, repr=False)
    rake_share: float = field(default=0.0, kw_only=True)
    rake_cap: float = field(default=inf, kw_only=True)
    hand_marks: FloatArray | None = field(default=None, kw_only=True, compare=False, repr=False)
    continued: ContinuationValues | None = field(default=None, kw_only=True, compare=False, repr=False)
    _weighed: bytes = field(init=False, repr=False)  # the ranges, for comparisons

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_weighed", self.ranges.tobytes())

    @property
    def known_board(self) -> Board:
        """The public cards that are known when the subgame begins."""
        return self.board

    @cached_property
    def numbers(self) -> IntArray:
        """The indices in `Deck.holes` of the hands that at least one player may hold."""
        return np.flatnonzero((self.ranges > 0).any(axis=0))

    @cached_property
    def weights(self) -> FloatArray:
        """Both players' ranges, restricted to hands that at least one of them may hold.

        The shape is (2, hands).
        """
        return np.ascontiguousarray(self.ranges[:, self.numbers])

    @property
    def marks(self) -> FloatArray:
        """Labels of hands, so that hands with different labels are never merged as equal up to suits.

        The shape is (marks, hands).
        """
        return super().marks if self.hand_marks is None else self.hand_marks[:, self.numbers]

    def rake(self, stakes: FloatArray) -> FloatArray:
        """Return the rake, which the house takes from a pot, given each player's contribution `stakes`."""
        return np.minimum(2 * self.rake_share * stakes, self.rake_cap)

    def payoffs(self, position: Position, hands: Hands, board: Board) -> tuple[float, float]:
        """Return each player's chips won at the end of a hand, after rake."""
        first, second = super().payoffs(position, hands, board)
        assert isinstance(position, Betting)
        taken, share = float(self.rake(np.array(float(position.stake)))), (np.sign(first) + 1) / 2
        return first - taken * share, second - taken * (1 - share)

    @property
    def definition(self) -> str:
        """The complete rules of the subgame as text without its name, for comparing subgames.

        Subgames with equal texts are equal.
        """
        rake = f"{self.rake_share} {self.rake_cap}" if self.rake_share else ""
        return f"{self.rules}{self.first}{self.board}{self._weighed.hex()}{rake}"

    @cached_property
    def positions(self) -> Positions:
        """A cache of the subgame's betting positions, looked up by betting history.

        Histories begin at the first position of the subgame.
        """
        return positions_after(self.first)


def subgame(game: Holdem, position: Betting, board: str | Sequence[int], ranges: npt.ArrayLike) -> Subgame:
    """Return the subgame that begins at a public position of a poker game.

    Parameters
    ----------
    game : Holdem
        The whole game.
    position : Betting
        The first position, with a player to act.
    board : str or sequence of int
        The public cards of that round.
    ranges : array_like, shape (2, hands)
        Weights of both players' hands, in the order of `Deck.holes`. Hands with a card of the board are ignored.

    Returns
    -------
    Subgame

    Raises
    ------
    GameError
        No player acts at the position, or the ranges allow no deal.
    """
    deck, rules = game.deck, game.rules
    needed = rules.board_size(position.round)
    cards = deck.cards(board if isinstance(board, str) else deck.name(board), needed)
    if position.actor < 0:
        raise GameError(f"no player acts after {position.history!r}: begin at a player's decision")
    holes = deck.holes(rules.hole_cards)
    weights = np.array(ranges, dtype=np.float64)
    if weights.shape != (2, len(holes)):
        raise GameError(f"the ranges have shape {weights.shape}; {game.name} needs {(2, len(holes))}")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise GameError("a range has weights that are negative or not numbers: use 0 or more")
    weights[:, np.isin(holes, cards).any(axis=1)] = 0.0
    for player, own in enumerate(weights):
        if not own.any():
            raise GameError(
                f"the range of player {player + 1} has no hand that is possible on the board {deck.name(cards)}: "
                "add hands"
            )
    first = replace(position, history="")
    found = Subgame(rules, game.name, first=first, board=cards, ranges=weights)
    if pair_weight(found.weights, found.holes, deck.size) <= 0:
        raise GameError(
            "the ranges allow no deal: each hand of one range shares a card with each hand of the other; add hands"
        )
    return found


def cut_after_first_round(game: Subgame) -> Subgame:
    """Return a subgame that ends after its first round, with a showdown if no player has folded.

    `ContinuationValues` give the values of these showdowns.

    >>> from kilt.games import load_game
    >>> leduc = load_game("leduc")
    >>> whole = subgame(leduc, leduc.start(), "", np.ones((2, 6)))
    >>> cut_after_first_round(whole).start().after("c").after("c").actions()
    ()
    """
    rules, rounds = game.rules, game.first.round + 1
    each = ("raise_sizes", "first_player", "max_raises", "board_cards")
    cut = replace(rules, rounds=rounds, **{name: getattr(rules, name)[:rounds] for name in each})
    return replace(game, rules=cut, first=replace(game.first, rules=cut))


def compatible_weights(weights: FloatArray, holes: ByteArray, cards: int) -> FloatArray:
    """Return the total weight of the opponent's hands that share no card with each hand.

    The shape is (hands,).

    By inclusion and exclusion: from the total, subtract the hands with one of its cards; hands with both cards have
    then been subtracted twice.

    >>> compatible_weights(np.ones(6), np.array([[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]), 4)
    array([1., 1., 1., 1., 1., 1.])
    """
    by_card = np.bincount(holes.ravel(), np.repeat(weights, holes.shape[1]), cards)
    whole = weights.sum()
    left: FloatArray = whole - by_card[holes].sum(axis=1) + (holes.shape[1] - 1) * weights
    return np.where(left > 1e-12 * whole, left, 0.0)  # rounding may leave a tiny weight


def pair_weight(weights: FloatArray, holes: ByteArray, cards: int) -> float:
    """Return the total weight of all pairs of hands that share no card.

    `weights` has shape (2, hands).
    """
    return float(weights[0] @ compatible_weights(weights[1], holes, cards))
