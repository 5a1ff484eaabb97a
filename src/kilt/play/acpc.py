"""The text protocol of the Annual Computer Poker Competition (ACPC), between dealers and players, and its logs.

After every action, a dealer sends each player the state of the match. The player to act answers with the same line and
an action. A log has one line per hand. The network part is in `play.net`.
==============================================  ====================================================================
``MATCHSTATE:0:30:cc/:9s8h|/8c8d5c``            the receiver (position 0), hand 30, the betting, the visible cards
``MATCHSTATE:0:30:cc/:9s8h|/8c8d5c:r250``       the player's answer
``STATE:2:r300f:8d9h|9s6d:-100|100:Ann|Bob``    a hand in a log: cards, payoffs and names are by position
``SCORE:310|-310:Ann|Bob``                      the end of a log: the sums, by player
==============================================  ====================================================================

Heads-up, position 0 has the big blind; players swap positions after every hand. In no-limit games ``r250`` raises *to*
250 chips over the whole hand, in limit games ``r`` has no number.

>>> from kilt.games import load_game
>>> game = load_game("holdem.nolimit.2p")
>>> state = read_state("MATCHSTATE:0:30:cc/:9s8h|/8c8d5c", game)
>>> state.number, state.position.round, state.my_turn, game.deck.name(state.hand), game.deck.name(state.board)
(30, 1, True, '9s8h', '8c8d5c')
>>> str(state)
'MATCHSTATE:0:30:cc/:9s8h|/8c8d5c'
>>> read_state("MATCHSTATE:0:30:ccc/:9s8h|/8c8d5c", game)
Traceback (most recent call last):
    ...
kilt.errors.PlayError: the betting 'ccc/' is impossible: 'c' is not legal after 'cc': use one of /
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from kilt.artifact import os_errors
from kilt.errors import CardError, GameError, PlayError, quoted
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import CALL, RAISE, Betting, Holdem
from kilt.play.agent import Observation, PlayedHand
from kilt.play.dealer import Cards, Dealer, Hand

COMMENTS = ("#", ";")  # lines that begin like this are comments
_NOTE = re.compile(r"^# hand (\d+): (.*)$", re.MULTILINE)  # see `format_log_entry`

_STATE = re.compile(r"MATCHSTATE:([01]):([0-9]{1,10}):([^:]*):([^:]*)")
_HAND = re.compile(r"STATE:([0-9]{1,10}):([^:]*):([^:]*):([^:]*):([^:]*)")
_SCORE = re.compile(r"SCORE:([^:]*):([^:]*)")
_REPLY = re.compile(r"([fcr])\s*([-+]?[0-9]{1,15})?")
_CHIPS = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?")


@dataclass(frozen=True)
class MatchState:
    """The state of a hand as one player sees it, without the opponent's hidden cards.

    `str` returns the dealer's line.
    """

    viewer: int  # position of the player who receives it
    number: int  # number of the hand in the match
    position: Betting
    holes: tuple[tuple[int, ...], tuple[int, ...]]  # [position] private cards; empty if hidden
    board: tuple[int, ...]

    @property
    def hand(self) -> tuple[int, ...]:
        """The private cards of the player who sees this state."""
        return self.holes[self.viewer]

    @property
    def my_turn(self) -> bool:
        """Whether it is the turn of the player who sees this state."""
        return self.position.actor == self.viewer

    @property
    def over(self) -> bool:
        """Whether the hand has ended."""
        return self.position.actor == TERMINAL

    def observation(self, seed: int) -> Observation:
        """Return what an agent needs to act: its cards, the board, the betting, and a random key.

        The key is the one that `Dealer.keys` returns for this seed, seat and hand. A player over a network who knows
        the dealer's seed therefore acts like a local player of that dealer.
        """
        keys = _keys(self.position.rules, seed, self.number)
        return Observation(self.position, self.hand, self.board, keys[self.viewer])

    def played_hand(self, game: Holdem) -> PlayedHand:
        """Return a finished hand from the point of view of the player who saw this state.

        Raises PlayError if there was a showdown but the opponent's cards are missing.
        """
        me, end, won = self.viewer, self.position, float(self.position.stake)
        if end.folded is not None:
            won = -won if end.folded == me else won
        elif all(self.holes):
            won = Dealer(game).finish_hand(self.number, end, Cards(self.holes, self.board), ("", "")).payoffs[me]
        else:
            raise PlayError(f"the dealer does not show the cards of a showdown: {self}; players who remember need them")
        return PlayedHand(end, me, self.hand, self.board, self.holes[1 - me], won)

    @cached_property
    def _text(self) -> str:
        cards = _write_cards(self.position, self.holes, self.board)
        return f"MATCHSTATE:{self.viewer}:{self.number}:{self.position.history}:{cards}"

    def __str__(self) -> str:
        return self._text


def state_for_player(viewer: int, number: int, position: Betting, cards: Cards) -> MatchState:
    """Return the state of a hand as the dealer sends it to one player.

    The opponent's cards are included only after a showdown.

    >>> from kilt.games import load_game
    >>> game = load_game("leduc")
    >>> cards = Cards(((5,), (2,)), (3,))
    >>> turn = read_betting("cc/cc", game)
    >>> str(state_for_player(0, 7, game.start(), cards)), str(state_for_player(0, 7, turn, cards))
    ('MATCHSTATE:0:7::As|', 'MATCHSTATE:0:7:cc/cc:As|Kh/Ks')
    """
    showdown = position.actor == TERMINAL and position.folded is None
    first, second = (held if showdown or seat == viewer else () for seat, held in enumerate(cards.holes))
    board = cards.board[: position.rules.board_size(position.round)]
    return MatchState(viewer, number, position, (first, second), board)


def read_state(line: str, game: Holdem) -> MatchState:
    """Parse a dealer's line with the state of a hand.

    Raises PlayError if it is malformed or not a legal state.
    """
    found = _STATE.fullmatch(line)
    if not found:
        raise PlayError(
            f"{quoted(line)} is no match state; it has the form MATCHSTATE:position:hand:betting:cards "
            "with position 0 or 1: check the dealer"
        )
    viewer, position = int(found[1]), read_betting(found[3], game)
    holes, board = _read_cards(found[4], game.rules, position.round)
    if not holes[viewer]:
        raise PlayError(f"the private cards of position {viewer} are missing in {quoted(line)}: check the dealer")
    return MatchState(viewer, int(found[2]), position, holes, board)


def read_betting(text: str, game: Holdem) -> Betting:
    """Return the betting position after actions such as ``cr300c/c``, in which ``/`` separates rounds.

    >>> from kilt.games import load_game
    >>> read_betting("r300c/cr600", load_game("holdem.nolimit.2p")).facing
    300
    """
    try:
        position = game.replay(text)
    except GameError as error:
        raise PlayError(str(error)) from None
    if position.actor == CHANCE:
        raise PlayError(f"the betting {quoted(text)} ends a round; the next one begins with /: add it")
    return position


def read_reply(line: str, expected: MatchState, game: Holdem) -> str | None:
    """Return the action in a player's reply, as text.

    None if the line answers another state than `expected`.

    The text is not parsed: see `read_action`.
    """
    *fields, action = line.split(":", 5) if line.count(":") > 4 else (*line.split(":"), "")
    state = ":".join(fields)
    if state != str(expected):
        try:
            if read_state(state, game) != expected:
                return None
        except PlayError:
            return None
    return action


def read_action(position: Betting, text: str) -> str:
    """Parse the action at the beginning of a player's reply.

    Raises PlayError if the text does not begin with an action. The rest of the text is ignored. Only raises in no-limit
    games need a number, which may be illegal.

    >>> from kilt.games import load_game
    >>> start = load_game("holdem.nolimit.2p").start()
    >>> read_action(start, "fold"), read_action(start, "r300c"), read_action(start, "r 99999")
    ('f', 'r300', 'r99999')
    >>> read_action(start, "raise")
    Traceback (most recent call last):
        ...
    kilt.errors.PlayError: 'raise' is no action; use f, c or r200 to r20000
    """
    found, limit = _REPLY.match(text), position.rules.betting == "limit"
    if found and (found[1] != RAISE or limit):
        return found[1]
    if found and found[2]:
        return f"{RAISE}{int(found[2])}"
    bounds = position.raise_bounds()
    sizes = "" if not bounds else f" or {RAISE}" if limit else f" or {RAISE}{bounds[0]} to {RAISE}{bounds[1]}"
    raise PlayError(f"{quoted(text)} is no action; use {', '.join(position.passive_actions())}{sizes}")


def correct_action(position: Betting, action: str) -> str:
    """Replace a player's illegal action by the one that the competition's rules prescribe.

    A raise in a no-limit game is moved to the nearest legal size. Other illegal actions become a call, and so does a
    fold if checking is free. Raises PlayError if the action cannot be read.

    >>> from kilt.games import load_game
    >>> start = load_game("holdem.nolimit.2p").start()
    >>> correct_action(start, "r150"), correct_action(start, "r99999"), correct_action(start.after("c"), "f")
    ('r200', 'r20000', 'c')
    """
    action, bounds = read_action(position, action), position.raise_bounds()
    if action.startswith(RAISE) and bounds:
        return RAISE if action == RAISE else f"{RAISE}{min(max(int(action[1:]), bounds[0]), bounds[1])}"
    return action if action in position.passive_actions() else CALL


# Logs ----------------------------------------------------------------------------------------------------------------


class Score(NamedTuple):
    """The last line of a log: both players' winnings in chips, and their names.

    Both are in the order given to the dealer.
    """

    chips: tuple[float, float]
    names: tuple[str, str]

    def __str__(self) -> str:
        return f"SCORE:{_write_chips(self.chips)}:{'|'.join(self.names)}"


class Log(NamedTuple):
    """The content of a match log: hands, final score and comments."""

    hands: list[Hand]
    score: Score | None  # None if the match was not finished
    comments: list[str]


def format_log_entry(hand: Hand) -> str:
    """Format a hand for a log: the players' notes as comments, then the hand's line."""
    noted = [
        f"# hand {hand.number}: {name}: {note}" for name, note in zip(hand.players, hand.notes, strict=False) if note
    ]
    return "".join(f"{line}\n" for line in [*noted, format_log_line(hand)])


def read_notes(text: str) -> dict[int, list[str]]:
    r"""Parse the players' notes from the comments of a log.

    The result maps the number of each hand to a list of ``NAME: NOTE``.

    >>> read_notes("# hand 7: portfolio(a,b): b\nSTATE:7:f:Kh|As:-1|1:portfolio(a,b)|c\n")
    {7: ['portfolio(a,b): b']}
    """
    found: dict[int, list[str]] = {}
    for number, note in _NOTE.findall(text):
        found.setdefault(int(number), []).append(note)
    return found


def add_notes(hand: Hand, notes: Mapping[int, Sequence[str]], *names: tuple[str, str]) -> Hand:
    """Return a copy of a hand with its players' notes.

    `notes` is the result of `read_notes`. Each pair in `names` is a player's name in the hand and another name under
    which the player's notes appear.
    """
    said = notes.get(hand.number, ())

    def note(player: str) -> str:
        begins = tuple(f"{who}: " for who in (player, *(other for name, other in names if name == player)))
        return next((text.removeprefix(begin) for begin in begins for text in said if text.startswith(begin)), "")

    first, second = hand.players
    return hand._replace(notes=(note(first), note(second)))


def format_log_line(hand: Hand) -> str:
    """Format a finished hand as one line of a log.

    >>> from kilt.games import load_game
    >>> game = load_game("holdem.nolimit.2p")
    >>> line = "STATE:0:cr20000c///:8dJd|Td4d/As9d6s/3d/6c:20000|-20000:Raw|Ex"
    >>> format_log_line(read_hand(line, game)) == line
    True
    """
    cards = _write_cards(hand.position, hand.cards.holes, hand.board)
    return f"STATE:{hand.number}:{hand.position.history}:{cards}:{_write_chips(hand.payoffs)}:{'|'.join(hand.players)}"


def read_hand(line: str, game: Holdem) -> Hand:
    """Parse a hand from a line of a log.

    Raises PlayError if it is malformed, or if the payoffs contradict the cards and bets.
    """
    found = _HAND.fullmatch(line)
    if not found:
        raise PlayError(f"{quoted(line)} is no hand; it has the form STATE:hand:betting:cards:payoffs:names")
    position = read_betting(found[2], game)
    holes, board = _read_cards(found[3], game.rules, position.round)
    payoffs, players = read_chips(found[4]), read_names(found[5].split("|"))
    if position.actor != TERMINAL:
        raise PlayError(f"the betting {quoted(found[2])} does not end the hand; logs have hands that are over")
    if not all(holes):
        raise PlayError(f"the cards {quoted(found[3])} lack those of a player; logs show all")
    hand = Dealer(game).finish_hand(int(found[1]), position, Cards(holes, board), players)
    if hand.payoffs != payoffs:
        raise PlayError(
            f"the payoffs are {found[4]}, but {game.name} pays {_write_chips(hand.payoffs)} for these cards "
            "and bets; use the game that was played"
        )
    return hand


def decode_log(data: bytes) -> str:
    r"""Decode the bytes of a log, as UTF-8 if possible, else as Latin-1.

    Older programs write names in Latin-1.

    >>> decode_log("Zoë".encode()), decode_log(b"Zo\xeb")
    ('Zoë', 'Zoë')
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def log_text(path: Path) -> str:
    """Return the text of a log file. Raises ArtifactError if the file cannot be read."""
    with os_errors(f"{path} cannot be read"):
        return decode_log(path.read_bytes())


def read_log(text: str, game: Holdem, source: str = "the log") -> Log:
    r"""Parse a match log: its hands, final score and comments.

    Error messages call the log `source`.

    The score is None if the match was not finished.

    >>> from kilt.games import load_game
    >>> text = "# a match\nSTATE:0:f:8dJd|Td4d:50|-50:Ann|Bob\nSCORE:50|-50:Ann|Bob\n"
    >>> log = read_log(text, load_game("holdem.nolimit.2p"), source="my.log")
    >>> log.hands[0].players, log.score.chips, log.comments
    (('Ann', 'Bob'), (50.0, -50.0), ['# a match'])
    """
    hands: list[Hand] = []
    score: Score | None = None
    comments: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        try:
            if line.startswith(COMMENTS):
                comments.append(line)
            elif not line.strip():
                continue
            elif score is not None:
                raise PlayError("something follows the score; a log holds one match")
            elif line.startswith("SCORE"):
                score = _read_score(line, hands)
            else:
                hands.append(read_hand(line, game))
        except PlayError as error:
            raise PlayError(f"{error}: check {source}, line {number}") from None
    return Log(hands, score, comments)


def read_names(names: Sequence[str]) -> tuple[str, str]:
    """Return two players' names as a tuple.

    Raises PlayError if there are not two, or if a log cannot contain a name.
    """
    for name in names:
        if not name.strip() or not name.isprintable() or ":" in name or "|" in name:
            raise PlayError(f"the name {quoted(name)} cannot be in a log; use printable characters other than : and |")
    if len(names) != 2:
        raise PlayError(f"there are {len(names)} names, but 2 players; give two names")
    return names[0], names[1]


def require_different_names(names: Sequence[str]) -> tuple[str, str]:
    """Raise PlayError if two players have the same name, or one that logs cannot contain.

    The names are returned as a tuple.
    """
    first, second = read_names(names)
    if first == second:
        raise PlayError(f"both players are called {quoted(first)}, but a log needs different names: use two names")
    return first, second


def _read_score(line: str, hands: Iterable[Hand]) -> Score:
    """Parse the last line of a log. Raises PlayError if a player's chips are not the sum over the hands."""
    found = _SCORE.fullmatch(line)
    if not found:
        raise PlayError(f"{quoted(line)} is no score; it has the form SCORE:chips|chips:name|name")
    score = Score(read_chips(found[1]), read_names(found[2].split("|")))
    first, second = score.names
    if first != second:
        won = dict.fromkeys(score.names, 0.0)
        for hand in hands:
            for name, chips in zip(hand.players, hand.payoffs, strict=True):
                won[name] = won.get(name, 0.0) + chips
        if won != {first: score.chips[0], second: score.chips[1]}:
            sums = ", ".join(f"{name} {_chips(chips)}" for name, chips in won.items())
            raise PlayError(f"the score is {_write_chips(score.chips)}, but the hands add up to {sums}")
    return score


# Cards and chips -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _keys(rules: GameDef, seed: int, number: int) -> tuple[int, int]:
    return Dealer(Holdem(rules), seed).keys(number)


@lru_cache(maxsize=64)  # cards do not change within a round
def _read_cards(text: str, rules: GameDef, round: int) -> Cards:  # noqa: A002
    """Parse the cards of a state in a given round: private cards by position, empty if hidden, and the board."""
    deck = rules.deck
    private, *rounds = text.split("/")
    new = rules.board_cards[1 : round + 1]
    if private.count("|") != 1 or len(rounds) != len(new):
        raise PlayError(
            f"the cards {quoted(text)} do not fit round {round + 1}; they need one | between the players and "
            f"{len(new)} / between rounds"
        )
    found: list[tuple[int, ...]] = []
    dead: list[int] = []
    sides = [(side, rules.hole_cards if side else 0) for side in private.split("|")]
    for part, count in [*sides, *zip(rounds, new, strict=True)]:
        try:
            cards = deck.cards(part, count, dead=dead)
        except CardError as error:
            raise PlayError(f"the cards {quoted(text)} cannot be: {error}") from None
        if deck.name(cards) != part:
            raise PlayError(f"the cards {quoted(part)} in {quoted(text)} should be written {deck.name(cards)}")
        found.append(cards)
        dead.extend(cards)
    return Cards((found[0], found[1]), tuple(card for cards in found[2:] for card in cards))


def _write_cards(position: Betting, holes: Sequence[tuple[int, ...]], board: Sequence[int]) -> str:
    """Return the cards of a state as text: ``|`` between the players, ``/`` before the cards of each later round."""
    deck = position.rules.deck
    ends = [0, *accumulate(position.rules.board_cards[1 : position.round + 1])]
    private = "|".join(deck.name(held) for held in holes)
    return "/".join([private, *(deck.name(board[start:end]) for start, end in pairwise(ends))])


def _chips(chips: float) -> str:
    return str(int(chips)) if chips == int(chips) else f"{chips:.6f}".rstrip("0")


def _write_chips(chips: Iterable[float]) -> str:
    return "|".join(map(_chips, chips))


def read_chips(text: str) -> tuple[float, float]:
    """Parse two players' winnings in chips, such as ``100|-100``.

    Raises PlayError if the text is malformed.
    """
    parts = text.split("|")
    if len(parts) != 2 or not all(map(_CHIPS.fullmatch, parts)):
        raise PlayError(f"the chips {quoted(text)} cannot be read; they are two numbers with | between them")
    return float(parts[0]), float(parts[1])
