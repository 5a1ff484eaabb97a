"""Read and write game definitions in the format of the Annual Computer Poker Competition (ACPC).

A definition stands between ``GAMEDEF`` and ``END GAMEDEF``, with one ``key = values`` on each line. Keys may be in any
case and order. Empty lines and lines that begin with ``#`` are ignored.

==================  ===========  =========================================================================
key                 values       meaning
==================  ===========  =========================================================================
limit or nolimit    —            raises of a fixed size, or of any size from the last raise to all-in
``numPlayers``      one          2 to 10
``numRounds``       one          betting rounds
``stack``           per player   chips at the start; optional in limit games (default: unlimited)
``blind``           per player   chips posted before the deal; antes are equal blinds
``raiseSize``       per round    limit only: chips that a raise adds
``firstPlayer``     per round    who acts first, counted from 1; default: player 1
``maxRaises``       per round    raises allowed, blinds not counted; default: any number
``numSuits``        one          1 to 4
``numRanks``        one          1 to 13, the highest ones
``numHoleCards``    one          private cards of each player
``numBoardCards``   per round    new public cards of that round
``numUpCards``      per round    cards that each player gets face up as the round begins; default: none
``numDownCards``    per round    cards that each player gets face down as it begins; default: none
==================  ===========  =========================================================================

The last two keys are not the ACPC's; they define stud games. Up-cards belong to one player and are visible to both. In
the first round the private cards are ``numHoleCards``. A round deals public cards first, then up-cards, then cards face
down.

>>> game = load_definition("holdem.nolimit.2p")
>>> game.stacks, game.blinds, game.first_player, game.board_size(2)
((20000, 20000), (100, 50), (1, 0, 0, 0), 4)
>>> GameDef.parse(str(game)) == game
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kilt.cards.deck import RANKS, SUITS, Deck
from kilt.errors import GameError

UNLIMITED = 2**31 - 1  # chips of a player if a limit game does not give stacks
UNLIMITED_RAISES = 255  # raises per round if the file does not limit them
TEXAS_BOARD = (0, 3, 1, 1)  # new public cards of each round of Texas hold'em
MOST_SEEN = 7  # hole and board cards that a hand's strength is computed from


class _Key(NamedTuple):
    """A key of a game definition: the field of `GameDef` that it sets, and the bounds of its values."""

    field: str
    per: Literal["game", "player", "round"]
    low: int
    high: int
    default: int | None = None
    origin: int = 0  # the file counts from this number, `GameDef` from 0


_KEYS = {
    "numPlayers": _Key("players", "game", 2, 10),
    "numRounds": _Key("rounds", "game", 1, 10),
    "stack": _Key("stacks", "player", 0, UNLIMITED, default=UNLIMITED),
    "blind": _Key("blinds", "player", 0, UNLIMITED),
    "raiseSize": _Key("raise_sizes", "round", 1, UNLIMITED),
    "firstPlayer": _Key("first_player", "round", 1, 10, default=1, origin=1),
    "maxRaises": _Key("max_raises", "round", 0, UNLIMITED_RAISES, default=UNLIMITED_RAISES),
    "numSuits": _Key("suits", "game", 1, len(SUITS)),
    "numRanks": _Key("ranks", "game", 1, len(RANKS)),
    "numHoleCards": _Key("hole_cards", "game", 1, MOST_SEEN),
    "numBoardCards": _Key("board_cards", "round", 0, MOST_SEEN),
    "numUpCards": _Key("up_cards", "round", 0, MOST_SEEN, default=0),
    "numDownCards": _Key("down_cards", "round", 0, MOST_SEEN, default=0),
}
_BETTING = "limit or nolimit"
_SPELLING = {name.lower(): name for name in _KEYS}


class _EntryError(GameError):
    """An error in the value of one key; `GameDef.parse` adds the line number to the message."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"{what}: check `{key}`")
        self.key = key
        self.what = what


@dataclass(frozen=True)
class GameDef:
    """The rules of a poker game, read from a game definition and checked.

    Players and rounds are counted from 0.
    """

    betting: Literal["limit", "nolimit"]
    players: int
    rounds: int
    stacks: tuple[int, ...]  # per player; UNLIMITED if a limit game has no stacks
    blinds: tuple[int, ...]  # per player
    raise_sizes: tuple[int, ...]  # per round; empty in no-limit
    first_player: tuple[int, ...]  # per round
    max_raises: tuple[int, ...]  # per round; UNLIMITED_RAISES if the file does not limit them
    suits: int
    ranks: int
    hole_cards: int
    board_cards: tuple[int, ...]  # new cards per round
    up_cards: tuple[int, ...] = ()  # new cards of each player per round; empty: none
    down_cards: tuple[int, ...] = ()  # new private cards of each player per round; empty: none

    def __post_init__(self) -> None:
        for name in ("up_cards", "down_cards"):
            if not any(getattr(self, name)):
                object.__setattr__(self, name, ())
        for complaint in self._complaints():
            raise complaint

    @classmethod
    def parse(cls, text: str, source: str = "the game definition") -> GameDef:
        """Parse a game definition. Raises GameError if it is invalid.

        `source` is the name of the definition in error messages.

        >>> GameDef.parse(str(load_definition("kuhn")).replace("blind = 1", "blind = one"), source="my.game")
        Traceback (most recent call last):
            ...
        kilt.errors.GameError: blind is 'one 1'; it takes whole numbers: check `blind` in my.game, line 5
        """
        entries, end = _scan(text, source)
        try:
            return cls(**_fields({key: entry.words for key, entry in entries.items()}))
        except _EntryError as complaint:
            if complaint.key in entries:
                remedy = f"check `{complaint.key}` in {source}, line {entries[complaint.key].line}"
            else:
                remedy = f"add `{complaint.key}` to {source}, above line {end}"
            raise GameError(f"{complaint.what}: {remedy}") from None

    @classmethod
    def read(cls, path: str | Path) -> GameDef:
        """Read a game definition from a file.

        Raises GameError if the file cannot be read or is invalid.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            known = ", ".join(shipped_definitions())
            raise GameError(f"cannot read {path} ({reason}): check the path, or use one of {known}") from None
        return cls.parse(text, source=str(path))

    def text(self) -> str:
        """Return the rules as text in the ACPC format."""
        rows = []
        for name, key in _KEYS.items():
            values = self._values(name)
            if any(value != key.default for value in values):  # default values are not written
                rows.append(f"{name} = {' '.join(map(str, values))}")
        return "\n".join(["GAMEDEF", self.betting, *rows, "END GAMEDEF", ""])

    __str__ = text

    @cached_property
    def deck(self) -> Deck:
        """The deck of cards that the game uses."""
        return Deck(ranks=self.ranks, suits=self.suits)

    @property
    def big_blind(self) -> int:
        """The largest blind in chips, which is the unit of win rates and the minimum bet."""
        return max(self.blinds)

    @property
    def stud(self) -> bool:
        """Whether the game is stud, with private cards after the first round."""
        return bool(self.up_cards or self.down_cards)

    def cards_dealt(self, round: int) -> tuple[int, int, int, int, int]:  # noqa: A002
        """Return how many cards a round deals to each player and to the board, in dealing order.

        Hole cards are not included.

        The five numbers are public cards, up-cards of player 0 and of player 1, and cards face down for player 0 and
        for player 1.

        >>> load_definition("leduc-stud").cards_dealt(1), load_definition("holdem.limit.2p").cards_dealt(1)
        ((0, 1, 1, 0, 0), (3, 0, 0, 0, 0))
        """
        up, down = (cards[round] if cards else 0 for cards in (self.up_cards, self.down_cards))
        return self.board_cards[round], up, up, down, down

    def board_size(self, round: int) -> int:  # noqa: A002
        """Return the number of board cards in a round, including those of earlier rounds."""
        return self._board_sizes[round + 1]

    @cached_property
    def _board_sizes(self) -> tuple[int, ...]:
        return tuple(accumulate(self.board_cards, initial=0))

    @cached_property
    def round_names(self) -> tuple[str, ...]:
        """The names of the betting rounds, such as preflop, flop, turn and river.

        >>> load_definition("holdem.limit.2p").round_names, load_definition("leduc").round_names
        (('preflop', 'flop', 'turn', 'river'), ('round 1', 'round 2'))
        """
        return name_rounds(self.board_cards)

    @cached_property
    def seat_names(self) -> tuple[str, ...]:
        """The names of the two seats, such as small blind and big blind.

        They come from the blinds, or from who acts first if both seats post the same.

        >>> load_definition("holdem.limit.2p").seat_names, load_definition("leduc").seat_names
        (('big blind', 'small blind'), ('first to act', 'second to act'))
        """
        if len(set(self.blinds)) > 1:
            return tuple("big blind" if blind == self.big_blind else "small blind" for blind in self.blinds)
        return tuple("first to act" if self.first_player[0] == seat else "second to act" for seat in (0, 1))

    def _values(self, name: str) -> tuple[int, ...]:
        """Return the values of a key, as they appear in a file."""
        key = _KEYS[name]
        value: int | tuple[int, ...] = getattr(self, key.field)
        return tuple(v + key.origin for v in ((value,) if isinstance(value, int) else value))

    def _complaints(self) -> Iterator[_EntryError]:
        """Yield the errors in the rules, basic ones first, since each check relies on the previous ones."""
        if self.betting not in ("limit", "nolimit"):
            yield _EntryError(_BETTING, f"the betting is {self.betting!r}; it may be limit or nolimit")
        for name, key in _KEYS.items():
            values = self._values(name)
            needed = {"game": 1, "player": self.players, "round": self.rounds}[key.per]
            if key.field == "raise_sizes" and self.betting == "nolimit":
                needed = 0
            if key.field in ("up_cards", "down_cards") and not values:
                continue
            if len(values) != needed:
                each = f"one per {key.per}" if needed else "the game is nolimit"
                yield _EntryError(name, f"{name} has {len(values)} values; it needs {needed} ({each})")
            high = self.players if key.field == "first_player" else key.high
            for value in values:
                if not key.low <= value <= high:
                    yield _EntryError(name, f"{name} is {value}; it may be {key.low} to {high}")

        big_blind, stack = self.big_blind, min(self.stacks)
        if big_blind == 0:
            yield _EntryError("blind", "blind is 0 for every player; at least one player must post 1 chip or more")
        if stack < big_blind:
            what = f"stack is {stack} chips; every player needs at least the big blind ({big_blind})"
            yield _EntryError("stack", what)
        if self.betting == "nolimit" and UNLIMITED in self.stacks:
            what = f"stack is unlimited; a nolimit game needs stacks below {UNLIMITED}"
            yield _EntryError("stack", what)
        for name in ("numUpCards", "numDownCards"):
            if any(first := self._values(name)[:1]):
                what = f"{name} begins with {first[0]}, not with 0: in the first round players get numHoleCards"
                yield _EntryError(name, what)
        board, own = sum(self.board_cards), self.hole_cards + sum(self.up_cards) + sum(self.down_cards)
        if own + board > MOST_SEEN:
            what = f"a player sees {own} + {board} cards; at most {MOST_SEEN} make a hand"
            yield _EntryError("numBoardCards", what)
        needed = self.players * own + board
        if needed > self.deck.size:
            what = f"{self.players} players and the board need {needed} cards; the deck has {self.deck.size}"
            yield _EntryError("numRanks", what)


class _Entry(NamedTuple):
    line: int
    words: list[str]


def _scan(text: str, source: str) -> tuple[dict[str, _Entry], int]:
    """Return the entries of a definition by key, and the number of the line that has END GAMEDEF."""
    entries: dict[str, _Entry] = {}
    begun = False
    number = 0
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{source}, line {number}"
        statement = " ".join(line.lower().split())
        if not statement or statement.startswith("#"):
            continue
        if begun and statement == "end gamedef":
            return entries, number
        if begun == (statement == "gamedef"):
            raise GameError(f"{line.strip()!r} is out of place; GAMEDEF comes first, and once: check {where}")
        if not begun:
            begun = True
            continue
        name, equals, words = statement.partition("=")
        if statement in ("limit", "nolimit"):
            key, words = _BETTING, statement
        elif equals and name.strip() in _SPELLING:
            key = _SPELLING[name.strip()]
        else:
            known = ", ".join(_KEYS)
            raise GameError(
                f"{line.strip()!r} is unknown; lines are limit, nolimit or `key = values` "
                f"with a key out of {known}: check {where}"
            )
        if key in entries:
            both = f"lines {entries[key].line} and {number}"
            raise GameError(f"`{key}` is given twice, in {both}: keep one of them in {source}")
        entries[key] = _Entry(number, words.split())
    raise GameError(f"END GAMEDEF is missing: add it to {source}, below line {number}")


def _fields(entries: dict[str, list[str]]) -> dict[str, Any]:
    """Convert the words of a definition to fields of `GameDef`, with defaults for optional keys."""
    if _BETTING not in entries:
        raise _EntryError(_BETTING, "the kind of betting is missing")
    fields: dict[str, Any] = {"betting": entries[_BETTING][0]}
    for name, key in _KEYS.items():
        if name in entries:
            try:
                values = [int(word) - key.origin for word in entries[name]]
            except ValueError:
                given = " ".join(entries[name])
                raise _EntryError(name, f"{name} is {given!r}; it takes whole numbers") from None
        elif key.default is not None:
            count: int = fields["players" if key.per == "player" else "rounds"]
            values = [key.default - key.origin] * min(count, 10)  # more than 10 players are refused later
        elif key.field == "raise_sizes" and fields["betting"] == "nolimit":
            values = []
        else:
            raise _EntryError(name, f"{name} is missing")
        if key.per != "game":
            fields[key.field] = tuple(values)
        elif len(values) == 1:
            fields[key.field] = values[0]
        else:
            raise _EntryError(name, f"{name} has {len(values)} values; it needs 1")
    return fields


def shipped_definitions() -> dict[str, str]:
    """Return the texts of the game definitions that ship with kilt, by name.

    >>> sorted(shipped_definitions())[:3]
    ['holdem.2-1', 'holdem.2-4', 'holdem.3-1']
    """
    shelf = files("kilt.games") / "library"
    found = [file for file in shelf.iterdir() if file.name.endswith(".game")]
    return {
        file.name.removesuffix(".game"): file.read_text(encoding="utf-8")
        for file in sorted(found, key=lambda file: file.name)
    }


def load_definition(name: str) -> GameDef:
    """Load a game definition that ships with kilt, by name.

    Raises GameError if the name is unknown.

    >>> load_definition("kuhn").blinds
    (1, 1)
    """
    return GameDef.parse(_ready_made_text(name), source=f"{name}.game")


def describe_game(name: str) -> str:
    """Return the one-line description of a game that ships with kilt.

    >>> describe_game("kuhn")
    'Kuhn poker: three cards, one of them each, antes of 1, one bet of 1'
    """
    return _ready_made_text(name).splitlines()[0].removeprefix("#").strip()


def _ready_made_text(name: str) -> str:
    shelf = shipped_definitions()
    if name not in shelf:
        raise GameError(f"there is no ready-made game {name!r}: choose from {', '.join(shelf)}")
    return shelf[name]


def name_rounds(board_cards: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of betting rounds, such as preflop, flop, turn and river.

    The arguments are the numbers of public cards that the rounds add.
    """
    if board_cards == TEXAS_BOARD[: len(board_cards)]:
        return ("preflop", "flop", "turn", "river")[: len(board_cards)]
    return tuple(f"round {number + 1}" for number in range(len(board_cards)))


def round_from_name(name: str, names: tuple[str, ...]) -> int:
    """Return the index of a round, given its name or its number from 1 on.

    >>> round_from_name("turn", ("preflop", "flop", "turn", "river")), round_from_name("2", ("round 1", "round 2"))
    (2, 1)
    """
    known = {each: number for number, each in enumerate(names)} | {str(n + 1): n for n in range(len(names))}
    if name not in known:
        raise GameError(f"there is no round {name!r}: use one of {', '.join(known)}")
    return known[name]
