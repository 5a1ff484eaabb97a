"""Hands in the Poker Hand History format (PHH), which pokerkit and other programs read: one hand is one TOML table.

The format names games by codes. Those that kilt can deal are heads-up limit and no-limit Texas hold'em.

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
from collections.abc import Iterable, Iterator

from kilt.errors import PlayError
from kilt.games.game import REVEAL
from kilt.games.gamedef import TEXAS_BOARD, GameDef
from kilt.games.holdem import CALL, FOLD, positions_of
from kilt.play.dealer import Hand

MOST_RAISES = 4  # in a round of limit hold'em, as readers of the format have it


def write_phh(hand: Hand) -> str:
    """A hand as the text of a ``.phh`` file."""
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in _fields(hand).items())


def write_phhs(hands: Iterable[Hand]) -> Iterator[str]:
    """Hands as the parts of a ``.phhs`` file, numbered from 1 in the order given."""
    for number, hand in enumerate(hands, start=1):
        yield f"[{number}]\n{write_phh(hand)}\n"


def _fields(hand: Hand) -> dict[str, object]:
    """The fields of a hand. Player 1 of the format is seat 0, the big blind; blinds are listed from the small one."""
    rules = hand.position.rules
    _check(rules)
    fields: dict[str, object] = {"variant": "NT" if rules.betting == "nolimit" else "FT", "antes": [0, 0]}
    fields["blinds_or_straddles"] = [rules.blinds[1], rules.blinds[0]]
    if rules.betting == "nolimit":
        fields["min_bet"] = rules.big_blind
    else:
        fields |= {"small_bet": rules.raise_sizes[0], "big_bet": rules.raise_sizes[-1]}
    fields["starting_stacks"] = list(rules.stacks)
    fields["actions"] = list(_actions(hand))
    fields |= {"hand": hand.number, "players": list(hand.players)}
    # Kilt pays in whole chips: two players share a pot that they put in equal parts of.
    fields["finishing_stacks"] = [stack + int(won) for stack, won in zip(rules.stacks, hand.payoffs, strict=True)]
    return fields


def _actions(hand: Hand) -> Iterator[str]:
    """The actions of a hand, in order. Bets count the chips of the round; kilt and the ACPC count the whole hand."""
    rules, deck = hand.position.rules, hand.position.rules.deck
    positions = positions_of(rules)
    for player, held in enumerate(hand.cards.holes, start=1):
        yield f"d dh p{player} {deck.name(held)}"
    for before, action in positions.moves(hand.position):
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
    """Raise PlayError unless it is Texas hold'em with the blinds and the order of play that the format assumes."""
    texas = rules.hole_cards == 2 and rules.board_cards == TEXAS_BOARD and rules.deck.size == 52
    usual = rules.blinds[0] > rules.blinds[1] > 0 and rules.first_player == (1, 0, 0, 0)
    sizes = rules.raise_sizes
    if rules.betting == "limit":
        usual &= sizes[0] == sizes[1] and sizes[2] == sizes[3] and max(rules.max_raises) <= MOST_RAISES
    if not texas or not usual:
        raise PlayError(
            "PHH has no code for this game; it knows Texas hold'em with the whole deck, two bet sizes and at most "
            f"{MOST_RAISES} raises a round if it is limit: keep the ACPC log instead"
        )
