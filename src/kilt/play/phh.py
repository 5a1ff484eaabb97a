"""Read and write the Poker Hand History format (PHH), in which each hand is a TOML table.

The format supports many games. Of these, kilt supports heads-up limit and no-limit Texas hold'em. Other programs, such
as pokerkit, read the format too.

>>> from kilt.games import load_game
>>> from kilt.play.acpc import read_hand
>>> line = "STATE:0:cr300c/r600f:8dJd|Td4d/As9d6s:300|-300:Ann|Bob"
>>> print(write_phh(read_hand(line, load_game("holdem.nolimit.2p"))), end="")
variant = "NT"
antes = [0, 0]
blinds_or_straddles = [50, 100]
min_bet = 100
starting_stacks = [20000, 20000]
actions = ["d dh p1 8dJd", "d dh p2 Td4d", "p2 cc", "p1 cbr 300", "p2 cc", "d db As9d6s", "p1 cbr 300", "p2 f"]
hand = 0
players = ["Ann", "Bob"]
finishing_stacks = [20300, 19700]
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator

from kilt.errors import CardError, GameError, PlayError, quoted
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.gamedef import TEXAS_BOARD, GameDef
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem, positions_of
from kilt.play.dealer import Cards, Dealer, Hand

_TABLE = re.compile(r"^\[[^\[\]\n]+\][ \t]*$", re.MULTILINE)  # the line before each hand in a file of several hands
_KEY = re.compile(r"^(variant|actions)[ \t]*=", re.MULTILINE)
MOST_RAISES = 4  # raises in a round of limit hold'em, as readers of the format assume


def write_phh(hand: Hand) -> str:
    """Return a hand as the text of a ``.phh`` file."""
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in _fields(hand).items())


def write_phhs(hands: Iterable[Hand]) -> Iterator[str]:
    """Yield the text of each hand for a ``.phhs`` file, numbered from 1."""
    for number, hand in enumerate(hands, start=1):
        yield f"[{number}]\n{write_phh(hand)}\n"


def is_phh(text: str) -> bool:
    """Return whether a text has hands in PHH format, rather than an ACPC dealer's log."""
    return bool(_KEY.search(text))


def read_phhs(text: str, game: Holdem) -> tuple[list[Hand], list[str]]:
    r"""Read the hands of a ``.phh`` or ``.phhs`` file.

    Hands that cannot be read are reported as messages.

    Parameters
    ----------
    text : str
        One hand, or several hands in separate tables. All cards of both players must be known.
    game : Holdem
        The game of the hands; hands of another game are reported as faults.

    Returns
    -------
    hands : list of Hand
        The hands that can be read, in order.
    faults : list of str
        An error message for each other hand.

    >>> from kilt.games import load_game
    >>> from kilt.play.acpc import format_log_line, read_hand
    >>> game, line = load_game("holdem.nolimit.2p"), "STATE:0:cr300c/r600f:8dJd|Td4d/As9d6s:300|-300:Ann|Bob"
    >>> hands, faults = read_phhs("".join(write_phhs([read_hand(line, game)])) + "[2]\nactions = [", game)
    >>> format_log_line(hands[0]) == line, faults
    (True, ['hand 2: it is not valid TOML: Invalid value (at end of document)'])
    """
    _check(game.rules)
    starts = [found.start() for found in _TABLE.finditer(text)] or [0]
    hands: list[Hand] = []
    faults: list[str] = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), start=1):
        try:
            hands.append(_read(_TABLE.sub("", text[start:end]), game, number - 1))
        except (PlayError, GameError, CardError) as error:
            faults.append(f"hand {number}: {error}")
    return hands, faults


def _read(text: str, game: Holdem, number: int) -> Hand:
    """Parse one hand. Its number is `number` unless the text gives another."""
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlayError(f"it is not valid TOML: {error}") from None
    for name, value in _rules_fields(game.rules).items():
        if name in fields and fields[name] != value:
            raise PlayError(
                f"`{name}` is {quoted(str(fields[name]))}, but {game.name} has {value}: use the game that was played"
            )
    actions, players = fields.get("actions"), fields.get("players", ["p1", "p2"])
    if not isinstance(actions, list) or not isinstance(players, list) or len(players) != 2:
        raise PlayError("it lacks a list of `actions`, or two `players`")
    position, dealt = _followed(game, [str(action).partition("#")[0].split() for action in actions])
    if position.actor != TERMINAL:
        raise PlayError(f"it ends after {position.history!r}, where a player has to act: the rest is missing")
    if not all(dealt[:2]):
        raise PlayError("the cards of a player are missing")
    cards = Cards((dealt[0], dealt[1]), dealt[2])
    number = fields["hand"] if isinstance(fields.get("hand"), int) else number
    hand = Dealer(game).finish_hand(number, position, cards, (str(players[0]), str(players[1])))
    finished = fields.get("finishing_stacks")
    if finished is not None and finished != _finishing_stacks(hand):
        raise PlayError(f"`finishing_stacks` are {finished}, but {_finishing_stacks(hand)} follow from its actions")
    return hand


def _followed(game: Holdem, actions: Iterable[list[str]]) -> tuple[Betting, list[tuple[int, ...]]]:
    """Return the position after actions in PHH notation, and the cards: both players' private cards, then the board."""
    deck, rules, after = game.deck, game.rules, game.positions.after
    position = game.start()
    dealt: list[tuple[int, ...]] = [(), (), ()]
    for words in actions:
        dead = [card for cards in dealt for card in cards]
        match words:
            case ["d", "dh", ("p1" | "p2") as player, cards]:
                dealt[int(player[1]) - 1] = deck.cards(cards, rules.hole_cards, dead=dead)
            case ["d", "db", cards] if position.actor == CHANCE:
                position = after(position, REVEAL)
                dealt[2] += deck.cards(cards, rules.board_cards[position.round], dead=dead)
            case [player, ("f" | "cc") as action] if player == f"p{position.actor + 1}":
                position = after(position, FOLD if action == "f" else CALL)
            case [player, "cbr", chips] if player == f"p{position.actor + 1}" and chips.isdecimal():
                limit = rules.betting == "limit"
                position = after(position, RAISE if limit else f"{RAISE}{position.opened_at + int(chips)}")
            case [] | [_, "sm", *_]:
                pass
            case _:
                raise PlayError(f"{quoted(' '.join(words))} cannot follow {position.history!r}")
    return position, dealt


def _rules_fields(rules: GameDef) -> dict[str, object]:
    """Return the PHH fields that describe the rules of a game. Blinds are listed with the small blind first."""
    fields: dict[str, object] = {"variant": "NT" if rules.betting == "nolimit" else "FT", "antes": [0, 0]}
    fields["blinds_or_straddles"] = [rules.blinds[1], rules.blinds[0]]
    if rules.betting == "nolimit":
        fields["min_bet"] = rules.big_blind
    else:
        fields |= {"small_bet": rules.raise_sizes[0], "big_bet": rules.raise_sizes[-1]}
    fields["starting_stacks"] = list(rules.stacks)
    return fields


def _finishing_stacks(hand: Hand) -> list[int]:
    """Return the stacks after a hand. They are whole chips, since both players put equal amounts into a split pot."""
    return [stack + int(won) for stack, won in zip(hand.position.rules.stacks, hand.payoffs, strict=True)]


def _fields(hand: Hand) -> dict[str, object]:
    """Return the PHH fields of a hand. Player 1 of the format is seat 0, which has the big blind."""
    rules = hand.position.rules
    _check(rules)
    return {
        **_rules_fields(rules),
        "actions": list(_actions(hand)),
        "hand": hand.number,
        "players": list(hand.players),
        "finishing_stacks": _finishing_stacks(hand),
    }


def _actions(hand: Hand) -> Iterator[str]:
    """Yield the actions of a hand in PHH notation.

    Bets count chips of the round; in kilt, they count the whole hand.
    """
    rules, deck = hand.position.rules, hand.position.rules.deck
    positions = positions_of(rules)
    for player, held in enumerate(hand.cards.holes, start=1):
        yield f"d dh p{player} {deck.name(held)}"
    for before, action in positions.moves_to(hand.position):
        player, position = before.actor, positions.after(before, action)
        if action == REVEAL:
            seen, new = rules.board_size(before.round), rules.board_size(position.round)
            yield f"d db {deck.name(hand.cards.board[seen:new])}"
        elif action in (FOLD, CALL):
            yield f"p{player + 1} {'f' if action == FOLD else 'cc'}"
        else:
            yield f"p{player + 1} cbr {position.spent[player] - position.opened_at}"
    if hand.position.folded is None:
        for player, held in enumerate(hand.cards.holes, start=1):
            yield f"p{player} sm {deck.name(held)}"


def _check(rules: GameDef) -> None:
    """Raise PlayError unless the game is Texas hold'em with the blinds and the order of play that PHH assumes."""
    texas = rules.hole_cards == 2 and rules.board_cards == TEXAS_BOARD and rules.deck.size == 52
    usual = rules.blinds[0] > rules.blinds[1] > 0 and rules.first_player == (1, 0, 0, 0)
    sizes = rules.raise_sizes
    if rules.betting == "limit":
        usual &= sizes[0] == sizes[1] and sizes[2] == sizes[3] and max(rules.max_raises) <= MOST_RAISES
    if not texas or not usual:
        raise PlayError(
            "PHH has no code for this game; it supports Texas hold'em with the whole deck, two bet sizes and at most "
            f"{MOST_RAISES} raises a round if it is limit: keep the ACPC log instead"
        )
