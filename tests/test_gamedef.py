"""ACPC game definitions: what is read, what is written, what is refused and how."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kilt.cards.deck import Deck
from kilt.errors import GameError
from kilt.games.gamedef import (
    UNLIMITED,
    UNLIMITED_RAISES,
    GameDef,
    describe_game,
    load_definition,
    shipped_definitions,
)

NOLIMIT = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = 20000 20000
blind = 100 50
firstPlayer = 2 1 1 1
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""
LIMIT = """GAMEDEF
limit
numPlayers = 2
numRounds = 2
blind = 10 5
raiseSize = 10 20
firstPlayer = 2 1
maxRaises = 3 4
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3
END GAMEDEF
"""


def test_reads_the_competition_game() -> None:
    game = GameDef.parse(NOLIMIT)
    assert game == GameDef(
        betting="nolimit",
        players=2,
        rounds=4,
        stacks=(20000, 20000),
        blinds=(100, 50),
        raise_sizes=(),
        first_player=(1, 0, 0, 0),
        max_raises=(UNLIMITED_RAISES,) * 4,
        suits=4,
        ranks=13,
        hole_cards=2,
        board_cards=(0, 3, 1, 1),
    )
    assert str(game) == NOLIMIT
    assert game.deck == Deck()
    assert game.big_blind == 100
    assert [game.board_size(r) for r in range(4)] == [0, 3, 4, 5]


def test_limit_games_may_leave_out_stacks() -> None:
    game = GameDef.parse(LIMIT)
    assert game.stacks == (UNLIMITED, UNLIMITED)
    assert game.max_raises == (3, 4)
    assert str(game) == LIMIT


def test_spelling_is_free() -> None:
    text = NOLIMIT.replace("numPlayers = 2", "\n# two of them\nNUMPLAYERS=2\n\n").replace("stack =", "  Stack\t=")
    text = "# a game\n\n" + text.replace("END GAMEDEF", "end  GameDef\nnothing here counts")
    assert GameDef.parse(text.replace("\n", "\r\n")) == GameDef.parse(NOLIMIT)


def test_left_out_first_players_are_player_1() -> None:
    assert GameDef.parse(LIMIT.replace("firstPlayer = 2 1\n", "")).first_player == (0, 0)


def test_more_than_two_players_are_read() -> None:
    text = LIMIT.replace("numPlayers = 2", "numPlayers = 3").replace("blind = 10 5", "blind = 5 10 0")
    assert GameDef.parse(text).blinds == (5, 10, 0)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (NOLIMIT, "stack = 20000 20000", "stack = 20000 0",
         "stack is 0 chips; every player needs at least the big blind (100): "
         "check `stack` in my.game, line 5"),
        (NOLIMIT, "stack = 20000 20000\n", "",
         "stack is unlimited; a nolimit game needs stacks below 2147483647: "
         "add `stack` to my.game, above line 11"),
        (NOLIMIT, "stack = 20000", "stack = 20000 20000",
         "stack has 3 values; it needs 2 (one per player): check `stack` in my.game, line 5"),
        (NOLIMIT, "stack = 20000", "stack = -1",
         "stack is -1; it may be 0 to 2147483647: check `stack` in my.game, line 5"),
        (NOLIMIT, "stack = 20000", "stack = lots",
         "stack is 'lots 20000'; it takes whole numbers: check `stack` in my.game, line 5"),
        (NOLIMIT, "blind = 100 50", "blind = 0 0",
         "blind is 0 for every player; at least one player must post 1 chip or more: check `blind` in my.game, line 6"),
        (NOLIMIT, "stack", "stak",
         "'stak = 20000 20000' is unknown; lines are limit, nolimit or `key = values` with a key out of "
         "numPlayers, numRounds, stack, blind, raiseSize, firstPlayer, maxRaises, numSuits, numRanks, "
         "numHoleCards, numBoardCards, numUpCards, numDownCards: check my.game, line 5"),
        (NOLIMIT, "blind = 100 50\n", "", "blind is missing: add `blind` to my.game, above line 11"),
        (NOLIMIT, "numPlayers = 2\n", "",
         "numPlayers is missing: add `numPlayers` to my.game, above line 11"),
        (NOLIMIT, "blind = 100 50", "blind = 100 50\nBLIND = 100 50",
         "`blind` is given twice, in lines 6 and 7: keep one of them in my.game"),
        (NOLIMIT, "nolimit", "nolimit\nlimit",
         "`limit or nolimit` is given twice, in lines 2 and 3: keep one of them in my.game"),
        (NOLIMIT, "nolimit\n", "",
         "the kind of betting is missing: add `limit or nolimit` to my.game, above line 11"),
        (NOLIMIT, "END GAMEDEF\n", "", "END GAMEDEF is missing: add it to my.game, below line 11"),
        (NOLIMIT, "GAMEDEF\nnolimit", "nolimit",
         "'nolimit' is out of place; GAMEDEF comes first, and once: check my.game, line 1"),
        (NOLIMIT, "nolimit", "GAMEDEF",
         "'GAMEDEF' is out of place; GAMEDEF comes first, and once: check my.game, line 2"),
        (NOLIMIT, "numPlayers = 2", "numPlayers = 1",
         "numPlayers is 1; it may be 2 to 10: check `numPlayers` in my.game, line 3"),
        (LIMIT, "numPlayers = 2", "numPlayers = 1000000000",
         "numPlayers is 1000000000; it may be 2 to 10: check `numPlayers` in my.game, line 3"),
        (NOLIMIT, "numPlayers = 2", "numPlayers = 2 2",
         "numPlayers has 2 values; it needs 1: check `numPlayers` in my.game, line 3"),
        (NOLIMIT, "numRounds = 4", "numRounds = 0",
         "numRounds is 0; it may be 1 to 10: check `numRounds` in my.game, line 4"),
        (NOLIMIT, "firstPlayer = 2", "firstPlayer = 3",
         "firstPlayer is 3; it may be 1 to 2: check `firstPlayer` in my.game, line 7"),
        (NOLIMIT, "firstPlayer = 2", "firstPlayer = 0",
         "firstPlayer is 0; it may be 1 to 2: check `firstPlayer` in my.game, line 7"),
        (NOLIMIT, "firstPlayer = 2 1 1 1", "firstPlayer = 2 1",
         "firstPlayer has 2 values; it needs 4 (one per round): check `firstPlayer` in my.game, line 7"),
        (NOLIMIT, "numSuits", "raiseSize = 1 1 1 1\nnumSuits",
         "raiseSize has 4 values; it needs 0 (the game is nolimit): check `raiseSize` in my.game, line 8"),
        (LIMIT, "raiseSize = 10 20\n", "", "raiseSize is missing: add `raiseSize` to my.game, above line 12"),
        (LIMIT, "raiseSize = 10 20", "raiseSize = 10 0",
         "raiseSize is 0; it may be 1 to 2147483647: check `raiseSize` in my.game, line 6"),
        (LIMIT, "maxRaises = 3 4", "maxRaises = 3 256",
         "maxRaises is 256; it may be 0 to 255: check `maxRaises` in my.game, line 8"),
        (LIMIT, "numSuits = 4", "numSuits = 5",
         "numSuits is 5; it may be 1 to 4: check `numSuits` in my.game, line 9"),
        (LIMIT, "numRanks = 13", "numRanks = 14",
         "numRanks is 14; it may be 1 to 13: check `numRanks` in my.game, line 10"),
        (LIMIT, "numHoleCards = 2", "numHoleCards = 0",
         "numHoleCards is 0; it may be 1 to 7: check `numHoleCards` in my.game, line 11"),
        (LIMIT, "numBoardCards = 0 3", "numBoardCards = 3 3",
         "a player sees 2 + 6 cards; at most 7 make a hand: check `numBoardCards` in my.game, line 12"),
        (LIMIT, "numRanks = 13", "numRanks = 1",
         "2 players and the board need 7 cards; the deck has 4: check `numRanks` in my.game, line 10"),
    ],
)  # fmt: skip
def test_errors_say_what_and_where(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(GameError) as caught:
        GameDef.parse(text.replace(old, new, 1), source="my.game")
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing", "GAMEDEF", "GAMEDEF\nEND GAMEDEF", "=\n", "GAMEDEF\n= 3"])
def test_scraps_are_refused(text: str) -> None:
    with pytest.raises(GameError, match=r"my\.game"):
        GameDef.parse(text, source="my.game")


def test_definitions_made_by_hand_are_checked_too() -> None:
    with pytest.raises(GameError, match=r"stack is 99 chips.*check `stack`$"):
        replace(GameDef.parse(NOLIMIT), stacks=(20000, 99))
    with pytest.raises(GameError, match="the betting is 'pot'"):
        replace(GameDef.parse(NOLIMIT), betting="pot")  # type: ignore[arg-type]


def test_read_names_the_file(tmp_path) -> None:
    path = tmp_path / "my.game"
    path.write_text(NOLIMIT.replace("blind = 100 50", "blind = 100"))
    with pytest.raises(GameError, match=r"check `blind` in .*my\.game, line 6"):
        GameDef.read(path)
    path.write_text(NOLIMIT)
    assert GameDef.read(str(path)) == GameDef.parse(NOLIMIT)
    with pytest.raises(GameError, match=r"cannot read .*other\.game \(No such file.*holdem\.limit\.2p"):
        GameDef.read(tmp_path / "other.game")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GameError, match=r"cannot read .*my\.game \(it is not text\)"):
        GameDef.read(path)


@st.composite
def game_defs(draw: st.DrawFn) -> GameDef:
    betting = draw(st.sampled_from(["limit", "nolimit"]))
    players = draw(st.integers(2, 10))
    rounds = draw(st.integers(1, 5))

    def per(count: int, low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    blinds = (*per(players - 1, 0, 100), draw(st.integers(1, 100)))
    most = UNLIMITED if betting == "limit" else UNLIMITED - 1
    no_stacks = betting == "limit" and draw(st.booleans())
    return GameDef(
        betting=betting,
        players=players,
        rounds=rounds,
        stacks=(UNLIMITED,) * players if no_stacks else per(players, max(blinds), most),
        blinds=blinds,
        raise_sizes=per(rounds, 1, 100) if betting == "limit" else (),
        first_player=per(rounds, 0, players - 1),
        max_raises=draw(st.sampled_from([(UNLIMITED_RAISES,) * rounds, per(rounds, 0, 255)])),
        suits=draw(st.integers(2, 4)),
        ranks=draw(st.integers(10, 13)),
        hole_cards=draw(st.integers(1, 1 + (players < 8))),
        board_cards=per(rounds, 0, 1),
    )


@given(game_defs())
def test_what_is_written_is_read_back(game: GameDef) -> None:
    assert GameDef.parse(str(game)) == game


def test_library() -> None:
    assert set(shipped_definitions()) == {
        "kuhn", "one-card", "leduc", "leduc-stud", "rhode-island", "holdem.2-1", "holdem.2-4", "holdem.3-1",
        "holdem.4-2", "holdem.limit.2p", "holdem.nolimit.2p", "holdem.nolimit.2p.20bb", "holdem.nolimit.2p.25bb",
        "holdem.nolimit.2p.50bb", "holdem.nolimit.2p.100bb", "holdem.nolimit.2p.1-2", "royal.limit.2p",
        "short.2-1", "short.4-1", "short.nolimit.2p",
    }  # fmt: skip
    for name, text in shipped_definitions().items():
        assert text.startswith(f"# {describe_game(name)}\nGAMEDEF\n")
        assert load_definition(name).players == 2
    assert str(load_definition("holdem.nolimit.2p")) == NOLIMIT
    assert str(load_definition("holdem.2-4")) == LIMIT
    with pytest.raises(GameError, match=r"there is no ready-made game 'chess': choose from .*kuhn"):
        load_definition("chess")
