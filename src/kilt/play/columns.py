"""Read logs with millions of hands quickly, into arrays with one entry per hand.

`acpc.read_hand` reads and checks a single line. Most lines of a log differ from earlier ones only in their cards. Each
betting sequence with its payoffs, and each pair of names, is therefore checked only once. The cards of all hands that
end in the same round are at the same positions of the line, and are read and checked together. Any unusual line is
passed to `read_hand`, which reports errors.

>>> from kilt.games import load_game
>>> reader = LogReader(load_game("leduc"))
>>> hands, faults = reader.read(["STATE:0:cc/cc:Kh|As/Ah:-1|1:Ann|Bob", "STATE:1:cc/cc:Ah|As/Qs:1|-1:Bob|Ann"])
>>> [reader.ends[end].history for end in hands.end], [reader.players[pair] for pair in hands.pair]
(['cc/cc'], [('Ann', 'Bob')])
>>> faults[0].partition(";")[0]
'line 2: the payoffs are 1|-1, but leduc pays 0|0 for these cards and bets'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import BoolArray, ByteArray, IntArray
from kilt.cards.hands import strengths
from kilt.errors import PlayError
from kilt.games.game import TERMINAL
from kilt.games.holdem import Betting, Holdem
from kilt.play.acpc import COMMENTS, read_betting, read_chips, read_hand, read_names
from kilt.play.dealer import Cards, Hand

NOT_DEALT = -1  # stands for a card that was not dealt
LINES = 65_536  # lines of a log that are read in one batch


class HandColumns(NamedTuple):
    """Hands as arrays, one for each column.

    `end` and `pair` are indices into lists of the reader that read the hands.
    """

    number: IntArray  # [hand] number in its match, from 0
    end: IntArray  # [hand] index of its final position in `LogReader.ends`
    pair: IntArray  # [hand] index of its players in `LogReader.players`
    cards: ByteArray  # [hand, card] private cards of position 0, of position 1, then the board; may be NOT_DEALT
    won: IntArray  # [hand] chips that position 0 won


class _CardText(NamedTuple):
    """Where the letters of cards are in the text of hands that end in one round, such as ``8dJd|Td4d/As9d6s``."""

    card: IntArray  # [card] index of the first of its two letters
    between: IntArray  # indices of separators between cards
    letters: npt.NDArray[np.uint8]  # the separators
    length: int


class LogReader:
    """Reads the logs of a game into arrays, and turns these back into hands.

    The same reader may read several logs.

    Parameters
    ----------
    game : Holdem
        The game of the hands. Hands of other games are reported as faults.
    """

    def __init__(self, game: Holdem) -> None:
        self.game = game
        self.ends: list[Betting] = []  # distinct final positions, in order of first occurrence
        self.players: list[tuple[str, str]] = []  # distinct pairs of names by position, in order of first occurrence
        self._end: dict[str, int] = {}
        self._pair: dict[str, int] = {}
        self._paid: dict[tuple[str, str], tuple[int, int]] = {}  # (betting, payoffs) to (end, first payoff)
        rules = game.rules
        self._texts = [_card_text(rules.hole_cards, rules.board_cards[1 : r + 1]) for r in range(rules.rounds)]
        deck = rules.deck
        rank, suit = np.full(256, -1), np.full(256, -1)
        rank[np.frombuffer(deck.rank_names.encode(), dtype=np.uint8)] = np.arange(deck.ranks) * deck.suits
        suit[np.frombuffer(deck.suit_names.encode(), dtype=np.uint8)] = np.arange(deck.suits)
        self._rank, self._suit = rank, suit

    def read(self, lines: Sequence[str], before: int = 0) -> tuple[HandColumns, list[str]]:
        """Read lines of an ACPC log.

        Returns the hands as columns, and an error message for each line that cannot be read.

        Parameters
        ----------
        lines : sequence of str
            Lines of the log. Comments, scores and empty lines are skipped.
        before : int
            Number of lines before these lines, for line numbers in messages.

        Returns
        -------
        hands : HandColumns
            The hands that can be read, in order.
        faults : list of str
            An error message for each other line, in order.
        """
        where: list[int] = []
        found: list[tuple[int, int]] = []
        numbers: list[int] = []
        pairs: list[int] = []
        cards: list[str] = []
        singles: dict[int, Hand] = {}  # line number to a hand that is read individually
        faults: dict[int, str] = {}

        def read_alone(number: int) -> None:
            try:
                singles[number] = read_hand(lines[number], self.game)
            except PlayError as error:
                faults[number] = f"line {before + number + 1}: {error}"

        paid, pair_of = self._paid, self._pair
        for number, line in enumerate(lines):
            try:
                tag, count, betting, shown, payoffs, names = line.split(":")
            except ValueError:
                if line.strip() and not line.startswith((*COMMENTS, "SCORE")):
                    read_alone(number)
                continue
            try:
                seen, pair = paid[betting, payoffs], pair_of[names]
            except KeyError:  # its betting, payoffs or names are new
                try:
                    seen, pair = self._paid_for(betting, payoffs), self._number_of_pair(names)
                except PlayError:
                    if not line.startswith((*COMMENTS, "SCORE")):
                        read_alone(number)
                    continue
            if tag != "STATE" or not (count.isdecimal() and count.isascii() and len(count) <= 10):
                read_alone(number)
                continue
            where.append(number)
            found.append(seen)
            numbers.append(int(count))
            pairs.append(pair)
            cards.append(shown)
        end, won = np.array(found, dtype=np.int64).reshape(-1, 2).T
        dealt, sound = self._read_cards(cards, end, np.sign(won))
        for row in np.flatnonzero(~sound).tolist():
            read_alone(where[row])
        number, pair = np.array([numbers, pairs], dtype=np.int64)
        ordinary = HandColumns(number[sound], end[sound], pair[sound], dealt[sound], won[sound])
        alone = self.columns(singles.values())
        order = np.argsort([*np.array(where, dtype=np.int64)[sound], *singles], kind="stable")
        columns = (np.concatenate([ordinary[n], alone[n]])[order] for n in range(len(ordinary)))
        return HandColumns(*columns), [faults[number] for number in sorted(faults)]

    def columns(self, hands: Iterable[Hand]) -> HandColumns:
        """Convert hands to arrays with one entry per hand, such as an array of winnings."""
        rows = list(hands)
        held, size = self.game.rules.hole_cards, self._size
        cards = np.full((len(rows), size), NOT_DEALT, dtype=np.int8)
        number, end, pair, won = np.zeros((4, len(rows)), dtype=np.int64)
        for row, hand in enumerate(rows):
            number[row], won[row] = hand.number, hand.payoffs[0]
            end[row] = self._number_of_end(hand.position)
            pair[row] = self._number_of_pair("|".join(hand.players))
            shown = (*hand.cards.holes[0], *hand.cards.holes[1], *hand.board)
            assert len(shown) >= 2 * held
            cards[row, : len(shown)] = shown
        return HandColumns(number, end, pair, cards, won)

    def hands(self, columns: HandColumns) -> Iterator[Hand]:
        """Convert arrays with one entry per hand back to hands, one by one."""
        held = self.game.rules.hole_cards
        for number, end, pair, cards, won in zip(*(column.tolist() for column in columns), strict=True):
            position = self.ends[end]
            board = tuple(cards[2 * held : 2 * held + position.rules.board_size(position.round)])
            dealt = Cards((tuple(cards[:held]), tuple(cards[held : 2 * held])), board)
            yield Hand(number, position, dealt, (float(won), float(-won)), self.players[pair])

    @property
    def _size(self) -> int:
        rules = self.game.rules
        return 2 * rules.hole_cards + rules.board_size(rules.rounds - 1)

    def _paid_for(self, betting: str, payoffs: str) -> tuple[int, int]:
        """Return the number of a betting sequence, and the payoff of position 0.

        Raises PlayError if the payoffs contradict it.
        """
        position, chips = read_betting(betting, self.game), read_chips(payoffs)
        sign = int(chips[0] > 0) - int(chips[0] < 0)
        right = sign if position.folded is None else 1 - 2 * (position.folded == 0)
        won = sign * position.stake
        if position.actor != TERMINAL or (sign, chips) != (right, (won, -won)):
            raise PlayError(f"the payoffs {payoffs} are not those of {betting}")
        self._paid[betting, payoffs] = self._number_of_end(position), won
        return self._paid[betting, payoffs]

    def _number_of_end(self, position: Betting) -> int:
        number = self._end.setdefault(position.history, len(self.ends))
        if number == len(self.ends):
            self.ends.append(position)
        return number

    def _number_of_pair(self, names: str) -> int:
        if names not in self._pair:
            self.players.append(read_names(names.split("|")))
            self._pair[names] = len(self.players) - 1
        return self._pair[names]

    def _read_cards(self, texts: list[str], end: IntArray, sign: IntArray) -> tuple[ByteArray, BoolArray]:
        """Return the cards of hands, [hand, card], and whether they are well-formed and fit the payoffs, [hand]."""
        dealt = np.full((len(texts), self._size), NOT_DEALT, dtype=np.int8)
        sound = np.zeros(len(texts), dtype=np.bool_)
        rounds = np.array([position.round for position in self.ends], dtype=np.int64)
        shown = np.array([position.folded is None for position in self.ends], dtype=np.bool_)
        for r, form in enumerate(self._texts):
            rows = [row for row in np.flatnonzero(rounds[end] == r).tolist() if len(texts[row]) == form.length]
            written = "".join([texts[row] for row in rows]).encode("latin-1", errors="replace")
            letters = np.frombuffer(written, dtype=np.uint8).reshape(len(rows), form.length)
            rank, suit = self._rank[letters[:, form.card]], self._suit[letters[:, form.card + 1]]
            cards = rank + suit
            ordered = np.sort(cards, axis=1)
            right = (letters[:, form.between] == form.letters).all(axis=1) & (rank >= 0).all(axis=1)
            right &= (suit >= 0).all(axis=1) & (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
            which = np.array(rows, dtype=np.int64)[right]
            dealt[which, : len(form.card)] = cards[right]
            sound[which] = True
            self._compare(dealt, sign, which[shown[end[which]]], r, sound)
        return dealt, sound

    def _compare(self, dealt: ByteArray, sign: IntArray, rows: IntArray, r: int, sound: BoolArray) -> None:
        """Set `sound` to False for hands whose cards contradict the winner of the showdown."""
        held, last = self.game.rules.hole_cards, 2 * self.game.rules.hole_cards + self.game.rules.board_size(r)
        board = dealt[rows, 2 * held : last]
        if len(rows):
            mine, theirs = (
                strengths(
                    np.concatenate([dealt[rows, seat * held : seat * held + held], board], axis=1), self.game.deck
                )
                for seat in (0, 1)
            )
            sound[rows] = np.sign(mine.astype(np.int64) - theirs) == sign[rows]


def readable_hands(text: str, game: Holdem, before: int = 0) -> tuple[list[Hand], list[str]]:
    r"""Return the hands of a log, and an error message for each unreadable line.

    Comments and scores are skipped. The hands may be of several matches. `before` is the number of lines before the
    text.

    >>> from kilt.games import load_game
    >>> text = "STATE:0:f:8dJd|Td4d:50|-50:Ann|Bob\nSTATE:1:f:8dJd|Td4d:90|-90:Bob|Ann\nSTATE:2:r30"
    >>> hands, faults = readable_hands(text, load_game("holdem.nolimit.2p"))
    >>> len(hands), [fault[:40] for fault in faults]
    (1, ['line 2: the payoffs are 90|-90, but hold', "line 3: 'STATE:2:r30' is no hand; it has"])
    """
    reader = LogReader(game)
    columns, faults = reader.read(text.splitlines(), before)
    return list(reader.hands(columns)), faults


def _card_text(held: int, dealt: Sequence[int]) -> _CardText:
    """Return the layout of cards in hands that end after later rounds with `dealt` public cards each."""
    text = "|".join(["xx" * held] * 2) + "".join("/" + "xx" * count for count in dealt)
    letters = np.frombuffer(text.encode(), dtype=np.uint8)
    card = letters == ord("x")
    return _CardText(np.flatnonzero(card)[::2], np.flatnonzero(~card), letters[~card], len(text))
