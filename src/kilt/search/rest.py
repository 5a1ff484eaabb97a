"""The rest of a game after a position, where both players follow known strategies: its sequences and its ends.

A *sequence* is what one player has done since the position. How likely a hand is to do so is a product of
probabilities of its own; what two hands win is a sum over the ends of the game of the chips there times a probability
for each player: the sequence form of a game. None of that depends on the board where strategies are tables over
buckets. So it is made once, and boards are looked at with it by the dozen.
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

KEPT_BYTES = 256 << 20  # of rests that are remembered


class PublicStrategy(Protocol):
    """A strategy that is known on many boards at once, such as a blueprint's agent."""

    def table(self, position: Betting) -> tuple[tuple[str, ...], FloatArray] | None:
        """The actions at a position, and [action, column] their probabilities, where all boards have them in common.

        Which column a hand has is for `policies` to say.
        """

    def policies(self, position: Betting, boards: Sequence[tuple[int, ...]]) -> list[PublicPolicy]:
        """[board] What the player to act does with every hand."""


Chosen = Callable[[Betting, Sequence[str], Singles, IntArray | None], Singles]
"""[way, action, column] probabilities at a position, from its actions, those of the strategy, and the board."""


class RestPlayer(NamedTuple):
    """What one player may do in the rest of a game: a sequence is the one of its parent, and an action."""

    parent: IntArray  # [sequence], below it; the first is that of having done nothing
    round: IntArray  # [sequence] of its last action, whose columns its hands have; after all rounds: hands of the deck
    offset: IntArray  # [sequence] where the probabilities of its last action begin among `shares`
    shares: Singles  # [way, probability] by columns
    depending: list[Betting]  # decisions that depend on the board: their probabilities come after `shares`, by hands
    seen: dict[int, Betting]  # by round: a decision whose columns are those of all others


class Ends(NamedTuple):
    """The ends of the rest of a game, in the order of player 0's sequences."""

    sequence: tuple[IntArray, IntArray]  # [end] of each player
    gain: Singles  # [end] chips to player 0 after a fold, to the better hand at a showdown
    shown: IntArray  # [end] 1 for a showdown, 0 after a fold


class Rest(NamedTuple):
    """The rest of a game after a position."""

    players: tuple[RestPlayer, RestPlayer]
    ends: Ends

    @property
    def nbytes(self) -> int:
        """Memory that it takes, but for small things."""
        return sum(own.shares.nbytes + 3 * own.parent.nbytes for own in self.players) + 4 * self.ends.shown.nbytes


class Rests:
    """Remembers the rests of a game after positions, by whatever tells them apart."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Rest] = {}
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], Rest]) -> Rest:
        """What is known, or is made now and remembered for a while."""
        if (found := self._known.get(key)) is None:
            found = make()
            if self._bytes + found.nbytes > KEPT_BYTES:
                self._known.clear()
                self._bytes = 0
            self._known[key] = found
            self._bytes += found.nbytes
        return found


def rest_after(
    game: Holdem,
    position: Betting,
    strategy: PublicStrategy,
    chosen: tuple[Chosen, Chosen],
    board: IntArray,
) -> Rest:
    """The rest of a game after a position in which both players follow a strategy.

    Parameters
    ----------
    game : Holdem
        The whole game.
    position : Betting
        Where the rest begins.
    strategy : PublicStrategy
        That both follow.
    chosen : tuple of callable
        What each player makes of the strategy's probabilities: one way or several.
    board : ndarray, shape (cards,)
        Any complete board after the position, where actions that depend on boards are looked up.

    Returns
    -------
    Rest
        Without what is never done on any board.
    """
    makers = _Maker(chosen[0]), _Maker(chosen[1])
    ends = list[tuple[int, int, float, bool]]()

    def visit(at: Betting, first: int, second: int) -> None:
        while at.actor == CHANCE:
            at = game.positions.after(at, REVEAL)
        if at.actor == TERMINAL:
            ends.append((first, second, at.stake * (-1 if at.folded == 0 else 1), at.folded is None))
            return
        for action, sequence in makers[at.actor].decide(at, strategy, board, second if at.actor else first):
            after = game.positions.after(at, action)
            visit(after, *((first, sequence) if at.actor else (sequence, second)))

    visit(position, 0, 0)
    ends.sort()
    one, other, gain, shown = (np.array(column) for column in zip(*ends, strict=True))
    found = Ends((one, other), gain.astype(np.float32), shown.astype(np.int64))
    hands = len(game.holes)
    return Rest((makers[0].player(hands), makers[1].player(hands)), found)


@dataclass
class _Maker:
    """Gathers what one player may do."""

    chosen: Chosen
    parent: list[int] = field(default_factory=lambda: [0])
    round: list[int] = field(default_factory=lambda: [0])
    offset: list[int] = field(default_factory=lambda: [0])
    shares: list[Singles] = field(default_factory=list)
    length: int = 0  # of all probabilities so far, for one way
    depending: list[tuple[Betting, int, int]] = field(
        default_factory=list
    )  # with the first sequence and the number of them
    seen: dict[int, Betting] = field(default_factory=dict)

    def decide(self, at: Betting, strategy: PublicStrategy, board: IntArray, before: int) -> list[tuple[str, int]]:
        """The actions of a decision that are ever taken after the sequence `before`, with their new sequences."""
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

    def player(self, hands: int) -> RestPlayer:
        """All that was gathered, for a game in which a player has `hands` private hands."""
        offset, length = np.array(self.offset), self.length
        for _, first, actions in self.depending:
            offset[first : first + actions] = length + hands * np.arange(actions)
            length += hands * actions
        shares = np.hstack(self.shares) if self.shares else np.zeros((1, 0), dtype=np.float32)
        depending = [at for at, _, _ in self.depending]
        return RestPlayer(np.array(self.parent), np.array(self.round), offset, shares, depending, self.seen)
