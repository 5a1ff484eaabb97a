"""List the action sequences that can follow a position, and the ways in which the hand can end.

A *sequence* is the list of one player's actions since the position. The probability of a sequence with a hand is a
product of that hand's action probabilities. The winnings of two hands are a sum, over the ends of the game, of the
chips there times one probability per player. None of this depends on the board if strategies are tables over buckets.
So the sequence form is built once, and used for many boards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from kilt.arrays import FloatArray, IntArray
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import Betting, Holdem
from kilt.play.agent import PublicPolicy
from kilt.search.continuations_kernels import Singles

KEPT_BYTES = 256 << 20  # bytes of cached sequence forms


class PublicStrategy(Protocol):
    """The interface of strategies that are queried on many boards at once."""

    def table(self, position: Betting) -> tuple[tuple[str, ...], FloatArray] | None:
        """Return the actions at a position and their probabilities, or None if these depend on the board.

        The probabilities are [action, column]; `policies` gives the column of each hand.
        """

    def policies(self, position: Betting, boards: Sequence[tuple[int, ...]]) -> list[PublicPolicy]:
        """Return the strategy on each of several boards, for all hands of the player to act."""


ContinuationPolicy = Callable[[Betting, Sequence[str], Singles, IntArray | None], Singles]
"""A function that returns the action probabilities of each continuation, [way, action, column].

Its arguments are a position, the actions, the strategy's probabilities and the board.
"""


class PlayerSequences(NamedTuple):
    """All action sequences of one player after a position."""

    parent: IntArray  # [sequence], with a lower index; the first sequence is empty
    round: IntArray  # [sequence] round of the last action, whose columns apply; after all rounds: hands of the deck
    offset: IntArray  # [sequence] index in `shares` of the probabilities of its last action
    shares: Singles  # [way, probability] a run of columns for each sequence
    depending: list[Betting]  # decisions that depend on the board: their probabilities, by hand, come after `shares`
    seen: dict[int, Betting]  # by round: a decision whose columns all others share


class SequenceEnds(NamedTuple):
    """The ways in which a hand can end after a position, with the players' sequences and stakes."""

    sequence: tuple[IntArray, IntArray]  # [end] of each player
    gain: Singles  # [end] chips to player 0 after a fold, to the better hand at a showdown
    shown: IntArray  # [end] 1 for a showdown, 0 after a fold


class ContinuationSequences(NamedTuple):
    """The ways in which a hand can continue after a position: both players' action sequences, and the ends."""

    players: tuple[PlayerSequences, PlayerSequences]
    ends: SequenceEnds

    @property
    def nbytes(self) -> int:
        """Memory of the large arrays, in bytes."""
        return sum(own.shares.nbytes + 3 * own.parent.nbytes for own in self.players) + 4 * self.ends.shown.nbytes


class SequenceCache:
    """A cache of action sequences, limited to `KEPT_BYTES`."""

    def __init__(self) -> None:
        self._known: dict[Hashable, ContinuationSequences] = {}
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], ContinuationSequences]) -> ContinuationSequences:
        """Return the action sequences cached under a key, or call `make` and cache its result."""
        if (found := self._known.get(key)) is None:
            found = make()
            if self._bytes + found.nbytes > KEPT_BYTES:
                self._known.clear()
                self._bytes = 0
            self._known[key] = found
            self._bytes += found.nbytes
        return found


def sequences_after(
    game: Holdem,
    position: Betting,
    strategy: PublicStrategy,
    chosen: tuple[ContinuationPolicy, ContinuationPolicy],
    board: IntArray,
) -> ContinuationSequences:
    """Return all action sequences that can follow a position, and the ways in which the hand can end.

    Parameters
    ----------
    game : Holdem
        The whole game.
    position : Betting
        The first position.
    strategy : PublicStrategy
        The strategy of both players.
    chosen : tuple of callable
        For each player, a function from the strategy's probabilities to one or several continuations.
    board : ndarray, shape (cards,)
        Any complete board after the position: if the actions at a decision depend on the board, they are looked up on
        this one.

    Returns
    -------
    ContinuationSequences
        Without sequences that have probability 0 on every board.
    """
    makers = _Maker(chosen[0]), _Maker(chosen[1])
    ends = list[tuple[int, int, float, bool]]()

    def visit(at: Betting, first: int, second: int) -> None:
        while at.actor == CHANCE:
            at = game.positions.after(at, REVEAL)
        if at.actor == TERMINAL:
            ends.append((first, second, at.stake * (-1 if at.folded == 0 else 1), at.folded is None))
            return
        for action, sequence in makers[at.actor].extend(at, strategy, board, second if at.actor else first):
            after = game.positions.after(at, action)
            visit(after, *((first, sequence) if at.actor else (sequence, second)))

    visit(position, 0, 0)
    ends.sort()
    one, other, gain, shown = (np.array(column) for column in zip(*ends, strict=True))
    found = SequenceEnds((one, other), gain.astype(np.float32), shown.astype(np.int64))
    hands = len(game.holes)
    return ContinuationSequences((makers[0].player(hands), makers[1].player(hands)), found)


@dataclass
class _Maker:
    """Collects the sequences of one player while `sequences_after` walks the game."""

    chosen: ContinuationPolicy
    parent: list[int] = field(default_factory=lambda: [0])
    round: list[int] = field(default_factory=lambda: [0])
    offset: list[int] = field(default_factory=lambda: [0])
    shares: list[Singles] = field(default_factory=list)
    length: int = 0  # number of probabilities so far, for one continuation
    depending: list[tuple[Betting, int, int]] = field(
        default_factory=list
    )  # with the first sequence and the number of sequences
    seen: dict[int, Betting] = field(default_factory=dict)

    def extend(self, at: Betting, strategy: PublicStrategy, board: IntArray, before: int) -> list[tuple[str, int]]:
        """Extend an action sequence by each possible action, and return the new sequences."""
        known = strategy.table(at)
        if known is None:
            cards = tuple(board[: at.rules.board_size(at.round)].tolist())
            actions = strategy.policies(at, [cards])[0].actions
            self.depending.append((at, len(self.parent), len(actions)))
            return [(action, self._add(before, at.rules.rounds, 0)) for action in actions]
        self.seen.setdefault(at.round, at)
        actions, table = known
        ways, found = self.chosen(at, actions, table.astype(np.float32), None), list[tuple[str, int]]()
        for number in np.flatnonzero(ways.any(axis=(0, 2))).tolist():
            found.append((actions[number], self._add(before, at.round, self.length)))
            self.shares.append(ways[:, number])
            self.length += ways.shape[2]
        return found

    def _add(self, before: int, r: int, offset: int) -> int:
        self.parent.append(before)
        self.round.append(r)
        self.offset.append(offset)
        return len(self.parent) - 1

    def player(self, hands: int) -> PlayerSequences:
        """Return a player's action sequences as arrays for compiled code.

        A player has `hands` private hands.
        """
        offset, length = np.array(self.offset), self.length
        for _, first, actions in self.depending:
            offset[first : first + actions] = length + hands * np.arange(actions)
            length += hands * actions
        shares = np.hstack(self.shares) if self.shares else np.zeros((1, 0), dtype=np.float32)
        depending = [at for at, _, _ in self.depending]
        return PlayerSequences(np.array(self.parent), np.array(self.round), offset, shares, depending, self.seen)
