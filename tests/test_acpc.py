"""The ACPC's protocol as text and over a network. Its logs are judged by open_spiel and pokerkit."""

from __future__ import annotations

import io
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, nan
from typing import Any, NamedTuple

import pokerkit
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pokerkit.notation import ACPCProtocolParser

import oracles
from commands import refused
from kilt.errors import ArtifactError, KiltError, PlayError
from kilt.games import load_game
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.gamedef import load_definition
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.play.acpc import (
    Score,
    correct_action,
    decode_log,
    format_log_line,
    read_betting,
    read_hand,
    read_log,
    read_reply,
    read_state,
    state_for_player,
)
from kilt.play.agent import BASELINES, Observation
from kilt.play.connection import LONGEST, Lines
from kilt.play.dealer import Cards, Dealer
from kilt.play.match import play_match
from kilt.play.net import LOOPBACK, VERSION, Limits, NetworkMatch, play_agent, play_over_connection, serve
from kilt.play.phh import read_phhs, write_phh, write_phhs
from kilt.players.agents import load_agent
from kilt.players.reference import player
from loaders import Diary

GAMES = {
    name: Holdem(rules, name)
    for name, rules in {
        "limit": load_definition("holdem.limit.2p"),
        "no-limit": load_definition("holdem.nolimit.2p"),
        "leduc": load_definition("leduc"),
        "kuhn": load_definition("kuhn"),
        "short stacks": oracles.no_limit(6, 430, 1000),
        "all in by the blinds": oracles.no_limit(6, 100, 100),
    }.items()
}
LIMIT, NO_LIMIT = GAMES["limit"], GAMES["no-limit"]
STATES = [
    (NO_LIMIT, "MATCHSTATE:0:30:cc/:9s8h|/8c8d5c"),
    (NO_LIMIT, "MATCHSTATE:1:31:r300r900c/r1800:|JdTc/6dJc9c"),
    (NO_LIMIT, "MATCHSTATE:0:99:cr20000c///:8dJd|Td4d/As9d6s/3d/6c"),
    (LIMIT, "MATCHSTATE:1:0:rrc/cr:|AsAh/2c3c4c"),
    (GAMES["leduc"], "MATCHSTATE:0:1:rc/:Ks|/Qh"),
    (GAMES["kuhn"], "MATCHSTATE:1:1:c:|Ks"),
]
HANDS = [
    (NO_LIMIT, "STATE:2:r9222r19742r20000f:8d9h|9s6d:-19742|19742:Alice|Bob"),
    (NO_LIMIT, "STATE:0:cr20000c///:8dJd|Td4d/As9d6s/3d/6c:20000|-20000:Raw|Ex"),
    (LIMIT, "STATE:5:rrc/cc/cc/rf:8dJd|Td4d/As9d6s/3d/6c:30|-30:Ann|Bob"),
]


def actions_of(history: str) -> list[str]:
    return re.findall(r"[fc]|r\d*", history)


def random_hand(game: Holdem, rng: random.Random) -> tuple[Cards, list[Any]]:
    """Cards, and the positions of a hand as a dealer tells them."""
    deal = oracles.random_deal(game.rules, rng)
    position, told = game.start(), []
    while position.actor != TERMINAL:
        if position.actor == CHANCE:
            position = position.after(REVEAL)
            continue
        told.append(position)
        position = position.after(oracles.random_action(position, rng))
    return Cards(deal.holes, deal.board), [*told, position]


# Text ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("game", "line"), STATES, ids=[line for _, line in STATES])
def test_states_are_read_and_written(game, line):
    assert str(read_state(line, game)) == line


@pytest.mark.parametrize(("game", "line"), HANDS, ids=[line for _, line in HANDS])
def test_hands_of_logs_are_read_and_written(game, line):
    assert format_log_line(read_hand(line, game)) == line


def test_what_a_player_sees():
    state = read_state("MATCHSTATE:1:31:r300r900c/r1800:|JdTc/6dJc9c", NO_LIMIT)
    assert (state.viewer, state.number, state.my_turn, state.over) == (1, 31, True, False)
    observation = state.observation(seed=5)
    assert observation.position.facing == 900
    assert NO_LIMIT.deck.name(observation.hand) == "JdTc"
    assert NO_LIMIT.deck.name(observation.board) == "6dJc9c"
    later = read_state("MATCHSTATE:1:31:r300r900c/r1800c/cc/:|JdTc/6dJc9c/2c/2d", NO_LIMIT)
    assert later.observation(5).key == observation.key == Dealer(NO_LIMIT, 5).keys(31)[1]
    assert not later.my_turn
    assert state.observation(6).key != observation.key
    assert read_state("MATCHSTATE:1:32::|JdTc", NO_LIMIT).observation(5).key != observation.key


@pytest.mark.parametrize("name", GAMES)
def test_whole_hands_there_and_back(name):
    game, rng = GAMES[name], random.Random(1)
    dealer = Dealer(game)
    for number in range(60):
        cards, positions = random_hand(game, rng)
        for position in positions:
            for viewer in (0, 1):
                state = state_for_player(viewer, number, position, cards)
                assert read_state(str(state), game) == state
                assert state.my_turn == (position.actor == viewer)
                shown = position.actor == TERMINAL and position.folded is None
                assert bool(state.holes[1 - viewer]) == shown
        hand = dealer.finish_hand(number, positions[-1], cards, ("Ann", "Bob"))
        seen = Cards(cards.holes, hand.board)
        assert read_hand(format_log_line(hand), game) == hand._replace(cards=seen)


@pytest.mark.parametrize(
    ("game", "line", "words"),
    [
        (NO_LIMIT, "", "no match state"),
        (NO_LIMIT, "MATCHSTATE:2:0::AsAh|", "position 0 or 1"),
        (NO_LIMIT, "MATCHSTATE:0:0::AsAh|:c", "no match state"),
        (NO_LIMIT, "MATCHSTATE:0:0::|AsAh", "position 0 are missing"),
        (NO_LIMIT, "MATCHSTATE:0:0:r150:AsAh|", "r200 to r20000"),
        (NO_LIMIT, "MATCHSTATE:0:0:r:AsAh|", "r200 to r20000"),
        (NO_LIMIT, "MATCHSTATE:0:0:r0300:AsAh|", "'r' is not legal"),
        (NO_LIMIT, "MATCHSTATE:0:0:r1" + "9" * 5000 + ":AsAh|", "'r1999999999' is not legal"),
        (NO_LIMIT, "MATCHSTATE:0:0:r٣٠٠:AsAh|", "'r' is not legal"),
        (NO_LIMIT, "MATCHSTATE:0:0:c٣:AsAh|", "has '٣' in place of f, c, r or /"),
        (NO_LIMIT, "MATCHSTATE:0:0:cc:AsAh|", "begins with /"),
        (NO_LIMIT, "MATCHSTATE:0:0:cc/:AsAh|/2c3c", "2 cards, but 3 are needed"),
        (NO_LIMIT, "MATCHSTATE:0:0:cc/:AsAh|", "do not fit round 2"),
        (NO_LIMIT, "MATCHSTATE:0:0:cc/:AsAh/2c3c4c", "one | between"),
        (NO_LIMIT, "MATCHSTATE:0:0:cc/:AsAh|/As3c4c", "in use already"),
        (NO_LIMIT, "MATCHSTATE:0:0::AsAh|Ks", "1 cards, but 2 are needed"),
        (NO_LIMIT, "MATCHSTATE:0:0::As Ah|", "should be written AsAh"),
        (NO_LIMIT, "MATCHSTATE:0:0::AsXx|", "unknown card"),
        (NO_LIMIT, "MATCHSTATE:0:0:fc:AsAh|", "the hand is over"),
        (LIMIT, "MATCHSTATE:0:0:r20:AsAh|", "use one of f, c, r"),
        (GAMES["leduc"], "MATCHSTATE:0:0::2c|", "unknown card"),
    ],
)
def test_states_that_cannot_be(game, line, words):
    with pytest.raises(PlayError, match=re.escape(words)):
        read_state(line, game)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("STATE:0:f:8dJd|Td4d:50|-50", "no hand"),
        ("STATE:0:c:8dJd|Td4d:50|-50:Ann|Bob", "does not end the hand"),
        ("STATE:0:f:8dJd|:50|-50:Ann|Bob", "lack those of a player"),
        ("STATE:0:f:8dJd|Td4d:100|-100:Ann|Bob", "the payoffs are 100|-100, but no-limit pays 50|-50"),
        ("STATE:0:f:8dJd|Td4d:nan|-50:Ann|Bob", "cannot be read"),
        ("STATE:0:f:8dJd|Td4d:50|-50:Ann", "1 names"),
        ("STATE:0:f:8dJd|Td4d:50|-50:|Bob", "the name ''"),
        ("SCORE:50|-50", "no score"),
        ("SCORE:50|-50:Ann|Bob", "the hands add up to Ann 0, Bob 0"),
        ("hello", "no hand"),
    ],
)
def test_logs_that_cannot_be_name_the_line(line, words):
    with pytest.raises(PlayError, match=re.escape(words)) as caught:
        read_log(f"# a comment\n{line}\n", NO_LIMIT, "my.log")
    assert str(caught.value).endswith(": check my.log, line 2")


def test_a_log_holds_one_match():
    with pytest.raises(PlayError, match="one match: check the log, line 3"):
        read_log("SCORE:0|0:A|B\n\nSTATE:0:f:8dJd|Td4d:50|-50:Ann|Bob\n", NO_LIMIT)
    same = "STATE:0:f:8dJd|Td4d:50|-50:Ann|Ann\r\nSCORE:50|-50:Ann|Ann\r\n"
    assert read_log(same, NO_LIMIT).score == Score((50, -50), ("Ann", "Ann"))


def test_halves_of_chips_are_written_and_whole_ones_as_integers():
    assert str(Score((0.5, -0.5), ("A", "B"))) == "SCORE:0.5|-0.5:A|B"
    assert str(Score((1e6, -1e6), ("A", "B"))) == "SCORE:1000000|-1000000:A|B"


@pytest.mark.parametrize(
    ("game", "betting", "said", "taken"),
    [
        (NO_LIMIT, "", "f", "f"),
        (NO_LIMIT, "c", "f", "c"),  # checking is free
        (NO_LIMIT, "", "r", None),
        (NO_LIMIT, "", "r-5", "r200"),
        (NO_LIMIT, "", "r199", "r200"),
        (NO_LIMIT, "", "r200", "r200"),
        (NO_LIMIT, "", "r123456789", "r20000"),
        (NO_LIMIT, "r20000", "r20000", "c"),  # nobody is left to call a raise
        (NO_LIMIT, "r300", "c300", "c"),
        (NO_LIMIT, "r300", "fold", "f"),  # the first letter is read, as at the competition's dealer
        (NO_LIMIT, "r300", "f ", "f"),
        (NO_LIMIT, "r300", " f", None),
        (NO_LIMIT, "", "r300 ", "r300"),
        (NO_LIMIT, "", "r300c", "r300"),
        (NO_LIMIT, "", "r 300.9", "r300"),
        (NO_LIMIT, "r300", "raise", None),
        (NO_LIMIT, "r300", "", None),
        (LIMIT, "", "r", "r"),
        (LIMIT, "", "r20", "r"),
        (LIMIT, "", "raise", "r"),
        (LIMIT, "rrr", "r", "c"),  # three raises are all there are
        (LIMIT, "rrr", "f", "f"),
        (LIMIT, "", "x", None),
    ],
)
def test_a_dealer_corrects(game, betting, said, taken):
    position = read_betting(betting, game)
    if taken is None:
        with pytest.raises(PlayError, match="is no action; use"):
            correct_action(position, said)
    else:
        assert correct_action(position, said) == taken


def test_no_round_has_more_than_64_actions():
    """The competition's dealer allows no raise that a call could not follow; so no limit game goes on without end."""
    endless = Holdem(replace(LIMIT.rules, max_raises=(255,) * 4, stacks=(2**31 - 1,) * 2))
    for game, first in ((NO_LIMIT, ""), (NO_LIMIT, "c"), (endless, ""), (endless, "c")):
        position = read_betting(first, game)
        for _ in range(63 - len(first)):
            assert position.raise_bounds()
            position = position.after(BASELINES["always-raise"].act(Observation(position, (0, 1), (), 0)))
        assert position.raise_bounds() is None and position.actions() == ("f", "c")
        assert position.after("c").after("/").raise_bounds()
    raising = Dealer(endless).play(0, (BASELINES["always-raise"],) * 2)
    assert raising.position.history == "/".join(["r" * 63 + "c"] * 4)


def test_logs_in_other_alphabets():
    line = "STATE:0:f:8dJd|Td4d:50|-50:Zoë|[my]bot"
    for data in (line.encode(), line.encode("latin-1"), b"\xef\xbb\xbf" + line.encode()):
        assert read_log(decode_log(data), NO_LIMIT).hands[0].players == ("Zoë", "[my]bot")


def test_replies_to_something_else_are_told_apart():
    asked = read_state("MATCHSTATE:0:30:cc/:9s8h|/8c8d5c", NO_LIMIT)
    assert read_reply("MATCHSTATE:0:30:cc/:9s8h|/8c8d5c:r250", asked, NO_LIMIT) == "r250"
    assert read_reply("MATCHSTATE:0:030:cc/:9s8h|/8c8d5c:c", asked, NO_LIMIT) == "c"  # the same, written oddly
    assert read_reply("MATCHSTATE:0:30:cc/:9s8h|/8c8d5c", asked, NO_LIMIT) == ""
    for other in ("0:31:cc/:9s8h|/8c8d5c", "0:30:cc/c:9s8h|/8c8d5c", "0:30:cc/:9s8d|/8c8h5c", "1:30:cc/:|9s8h/8c8d5c"):
        assert read_reply(f"MATCHSTATE:{other}:c", asked, NO_LIMIT) is None
    assert read_reply("c", asked, NO_LIMIT) is None


def spoiled(line: str) -> st.SearchStrategy[str]:
    """A line with a part of it lost, doubled, or replaced."""
    junk = st.one_of(st.text(max_size=8), st.text("0123456789fcr/|:AKs-#;\r\n", max_size=8))
    place = st.integers(0, len(line))
    return st.tuples(place, place, junk).map(lambda cut: line[: cut[0]] + cut[2] + line[cut[1] :])


LINES = st.one_of(
    st.text(),
    *(spoiled(line) for _, line in STATES + HANDS),
    *(spoiled(f"{line}:r400") for _, line in STATES),
    spoiled("SCORE:310|-310:Ann|Bob"),
)


@given(LINES, st.sampled_from(list(GAMES.values())))
def test_no_line_upsets_a_reader(line, game):
    asked = state_for_player(game.start().actor, 3, game.start(), Dealer(game).deal(3))
    for read in (read_state, read_hand, read_log, read_betting, lambda line, game: read_reply(line, asked, game)):
        try:
            read(line, game)
        except PlayError as error:
            assert len(str(error)) < 1000
    try:
        legal = correct_action(NO_LIMIT.start(), line)
    except PlayError:
        return
    NO_LIMIT.start().after(legal)


@given(st.integers(0, 2**32), st.sampled_from(list(GAMES)), st.text("fcr0123456789-", max_size=6))
def test_corrected_actions_are_legal_and_legal_ones_stay(seed, name, said):
    rng = random.Random(seed)
    _, positions = random_hand(GAMES[name], rng)
    if len(positions) == 1:
        return
    position = rng.choice(positions[:-1])
    action = oracles.random_action(position, rng)
    assert correct_action(position, action) == action
    try:
        position.after(correct_action(position, said))
    except PlayError:
        assert not re.fullmatch(r"[fc]|r\d{1,15}", said)


# Lines on a connection -----------------------------------------------------------------------------------------------


@dataclass
class Pieces:
    """A socket that hands out bytes as they were cut."""

    pieces: list[bytes]

    def settimeout(self, seconds):
        assert seconds is None or seconds > 0

    def setsockopt(self, *option):
        raise OSError

    def recv(self, most):
        return self.pieces.pop(0) if self.pieces else b""


@given(
    st.lists(st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=20)),
    st.lists(st.integers(0, 400)),
    st.sampled_from(["\n", "\r\n"]),
)
def test_lines_arrive_however_packets_are_cut(sent, cuts, end):
    data = "".join(line + end for line in sent).encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[start:stop] for start, stop in pairwise(places)]
    lines = Lines(Pieces(pieces), "the dealer")
    wanted = [line for line in sent if not line.startswith(("#", ";"))]
    assert list(iter(lines.receive, None)) == wanted


def test_lines_without_end():
    with pytest.raises(PlayError, match="the dealer sent a line of more than 65536 bytes"):
        Lines(Pieces([b"x" * LONGEST, b"x"]), "the dealer").receive()
    with pytest.raises(PlayError, match="hung up in the middle of a line: b'MATCH'"):
        Lines(Pieces([b"MATCH"]), "the dealer").receive()


# Matches -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Compile what agents draw with before anybody's time is taken."""
    BASELINES["probe"].act(state_for_player(1, 0, LIMIT.start(), Dealer(LIMIT).deal(0)).observation(0))


PlayerAt: Any = Callable[[int], object]  # what a player does with the port it is given


class Outcome(NamedTuple):
    score: Score | None
    error: str  # the dealer's
    log: str
    players: list[Any]  # what each returned or raised
    warnings: list[str]


def run_match(game: Holdem, players: tuple[PlayerAt, PlayerAt], hands: int, **options: Any) -> Outcome:
    """A match in threads."""
    results: list[Any] = [None, None]
    threads: list[threading.Thread] = []
    warnings: list[str] = []

    def run(place: int, port: int) -> None:
        try:
            results[place] = players[place](port)
        except (KiltError, OSError) as error:
            results[place] = error

    def start(ports: tuple[int, int]) -> None:
        for place, port in enumerate(ports):
            threads.append(threading.Thread(target=run, args=(place, port)))
            threads[-1].start()

    log, error, score = io.StringIO(), "", None
    options = {"seed": 1, "names": ("Ann", "Bob")} | options
    try:
        score = serve(game, hands, log=log, announce=start, warn=warnings.append, **options)
    except PlayError as fault:
        error = str(fault)
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    return Outcome(score, error, log.getvalue(), results, warnings)


def baseline(name: str, game: Holdem, seed: int = 1) -> PlayerAt:
    return lambda port: play_agent(BASELINES[name], game, LOOPBACK, port, seed=seed)


class Wire:
    """A player by hand."""

    def __init__(self, port: int, version: str | None = VERSION) -> None:
        self.connection = socket.create_connection((LOOPBACK, port))
        self.file = self.connection.makefile("r", encoding="utf-8", newline="\r\n")
        if version is not None:
            self.say(version)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()
        self.connection.close()

    def say(self, line: str) -> None:
        self.connection.sendall(f"{line}\r\n".encode())

    def turns(self, game: Holdem):
        """The states in which this player acts."""
        for line in self.file:
            state = read_state(line.removesuffix("\r\n"), game)
            if state.my_turn:
                yield state


def told(game: Holdem, play: Callable[[Wire, Any], object]) -> PlayerAt:
    """A player who does something by hand at each turn; it leaves when that returns False."""

    def player(port: int) -> None:
        with Wire(port) as wire:
            for state in wire.turns(game):
                if play(wire, state) is False:
                    return

    return player


PLAYED = {"limit": ("random", "probe"), "no-limit": ("probe", "random")}
MATCH_HANDS = 600  # of eight actions or so, each a line to and fro: rare lines have tests of their own
HANDS_PER_ORACLE = {"open_spiel": MATCH_HANDS, "pokerkit": 150}


@pytest.fixture(scope="module", params=PLAYED)
def played(request):
    game = GAMES[request.param]
    first, second = PLAYED[request.param]
    return game, (first, second), run_match(game, (baseline(first, game), baseline(second, game)), MATCH_HANDS)


@pytest.mark.slow
def test_a_match_over_the_network_is_the_match_at_home(played):
    game, names, outcome = played
    assert outcome.error == ""
    assert outcome.warnings == []
    assert outcome.players == [MATCH_HANDS, MATCH_HANDS]
    log = read_log(outcome.log, game)
    assert log.score == outcome.score
    assert log.comments[0] == f"# name/game/hands/seed Ann.Bob {game.name} {MATCH_HANDS} 1"
    assert log.comments[1:] == ["#--t_response 600000", "#--t_hand 600000", "#--t_per_hand 7000"]
    assert outcome.log.endswith(f"{outcome.score}\n")
    dealer, agents = Dealer(game, 1), [BASELINES[name] for name in names]
    for number, hand in enumerate(log.hands):
        seats = (0, 1) if number % 2 == 0 else (1, 0)  # the first player has the big blind in the first hand
        home = dealer.play(number, (agents[seats[0]], agents[seats[1]]))
        assert hand.players == (("Ann", "Bob")[seats[0]], ("Ann", "Bob")[seats[1]])
        assert (hand.number, hand.position, hand.payoffs) == (number, home.position, home.payoffs)
        assert (hand.cards.holes, hand.board) == (home.cards.holes, home.board)
    assert len(log.hands) == MATCH_HANDS


def test_players_who_remember_see_the_same_over_the_network():
    diary, notes, game = Diary(), [], GAMES["leduc"]

    def player(port: int) -> int:
        return play_agent(diary, game, LOOPBACK, port, seed=1, note=lambda *note: notes.append(note))

    outcome = run_match(game, (player, baseline("probe", game)), 60)
    assert (outcome.error, diary.seen) == ("", [])
    (over,) = diary.copies
    home, hands = Diary(), []
    play_match(game, (home, BASELINES["probe"]), 60, seed=1, duplicate=False, sink=hands.append)
    assert over.seen == home.copies[0].seen
    assert notes == list(enumerate(over.notes)) == [(hand.number, max(hand.notes)) for hand in hands]


@pytest.mark.slow
@pytest.mark.parametrize("oracle", oracles.TABLES)
def test_logs_go_as_in_the_oracle(played, oracle):
    game, _, outcome = played
    table = oracles.TABLES[oracle](game.rules)
    hands = read_log(outcome.log, game).hands[: HANDS_PER_ORACLE[oracle]]
    for hand in hands:
        theirs = table(oracles.Deal(hand.cards.holes, hand.board))
        for action in actions_of(hand.position.history):
            theirs.act(action)
        assert theirs.decision() is None
        assert theirs.payoffs() == hand.payoffs
        assert theirs.history() in (None, hand.position.history)
    assert sum(hand.position.folded is None for hand in hands) > len(hands) / 20


@pytest.mark.slow
def test_pokerkit_reads_the_logs(played):
    game, _, outcome = played
    rules = game.rules
    blinds = rules.blinds[::-1]
    if rules.betting == "limit":
        theirs = pokerkit.FixedLimitTexasHoldem((), True, 0, blinds, *rules.raise_sizes[1:3])
    else:
        theirs = pokerkit.NoLimitTexasHoldem((), True, 0, blinds, rules.big_blind)
    lines = [line for line in outcome.log.splitlines() if line.startswith("STATE")][:100]
    hands = list(ACPCProtocolParser(theirs, 20_000)("\n".join(lines), error_status=True))
    assert len(hands) == len(lines)
    for line, hand in zip(lines, hands, strict=True):
        *_, end = hand
        assert tuple(end.payoffs) == read_hand(line, game).payoffs == tuple(hand.user_defined_fields["_results"])


@pytest.mark.slow
def test_pokerkit_reads_the_hands_as_phh(played):
    game, _, outcome = played
    hands = read_log(outcome.log, game).hands[:100]
    text = "".join(write_phhs(hands))
    theirs = list(pokerkit.HandHistory.loads_all(text))
    assert len(theirs) == len(hands)
    assert list(map(format_log_line, read_phhs(text, game)[0])) == list(map(format_log_line, hands))
    for ours, history in zip(hands, theirs, strict=True):
        *_, end = history
        assert not end.status
        assert tuple(map(float, end.payoffs)) == ours.payoffs
        assert history.finishing_stacks == end.stacks
        assert (history.hand, history.players) == (ours.number, list(ours.players))


def test_hands_of_phh_that_cannot_be_read():
    """Each is told, and the others are read."""
    game = load_game("holdem.nolimit.2p")
    line = "STATE:0:cr300c/r600c/cc/cc:8dJd|Td4d/As9d6s/2c/3c:600|-600:Ann|Bob"
    good = write_phh(read_hand(line, game))
    for old, new, fault in (
        ("[50, 100]", "[1, 2]", "`blinds_or_straddles` is '[1, 2]', but holdem.nolimit.2p has [50, 100]"),
        ('"p2 cc", "d db As9d6s"', '"d db As9d6s"', "'d db As9d6s' cannot follow 'cr300'"),
        ('"p1 cbr 300"', '"p1 cbr 120"', "not legal"),
        ('"p1 cbr 300"', '"p2 cbr 300"', "'p2 cbr 300' cannot follow 'c'"),
        ("8dJd", "????", "card"),
        ("8dJd", "4dJd", "4d"),
        ('"d dh p1 8dJd", ', "", "the cards of a player are missing"),
        (', "p1 sm 8dJd", "p2 sm Td4d"]', "", "not valid TOML"),
        (', "p2 cc", "p1 sm', ', "p1 sm', "the rest is missing"),
        ("19400", "19500", "`finishing_stacks` are [20600, 19500], but [20600, 19400] follow"),
        ("actions", "moves", "lacks a list of `actions`"),
    ):
        assert old in good
        hands, faults = read_phhs(f"[1]\n{good}\n[2]\n{good.replace(old, new)}\n[3]\n{good}", game)
        assert list(map(format_log_line, hands)) == [line, line]
        assert len(faults) == 1 and faults[0].startswith("hand 2: ") and fault in faults[0]
    assert list(map(format_log_line, read_phhs(good, game)[0])) == [line]


def test_phh_knows_only_texas_holdem():
    for name in ("leduc", "short stacks"):
        hand = Dealer(GAMES[name]).play(0, (BASELINES["probe"], BASELINES["probe"]))
        with pytest.raises(PlayError, match="no code for this game"):
            write_phh(hand)


@pytest.mark.parametrize(
    ("name", "agents"),
    [
        ("leduc", ("always-raise", "probe")),
        ("kuhn", ("random", "always-fold")),
        ("short stacks", ("random", "random")),
        ("all in by the blinds", ("random", "random")),
        ("no-limit", ("always-raise", "always-raise")),  # many small raises in a hand
    ],
)
def test_matches_of_other_games(name, agents):
    game = GAMES[name]
    hands = 4 if name == "no-limit" else 60
    outcome = run_match(game, (baseline(agents[0], game), baseline(agents[1], game)), hands)
    assert (outcome.error, outcome.warnings, outcome.players) == ("", [], [hands, hands])
    log = read_log(outcome.log, game)
    assert (len(log.hands), log.score) == (hands, outcome.score)


class Chopped:
    """A connection that gives and takes a few bytes at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.random = connection, random.Random(1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def recv(self, most: int) -> bytes:
        return self.connection.recv(self.random.randint(1, 30))

    def sendall(self, data: bytes) -> None:
        while data:
            cut = self.random.randint(1, 30)
            self.connection.sendall(data[:cut])
            data = data[cut:]


def test_a_match_through_small_packets():
    def chopped(port: int) -> int:
        with socket.create_connection((LOOPBACK, port)) as connection:
            return play_over_connection(BASELINES["random"], LIMIT, Chopped(connection), seed=1)

    cut = run_match(LIMIT, (chopped, baseline("probe", LIMIT)), 40)
    whole = run_match(LIMIT, (baseline("random", LIMIT), baseline("probe", LIMIT)), 40)
    assert cut == whole
    assert cut.players == [40, 40]


# What goes wrong at the dealer's -------------------------------------------------------------------------------------


def check_broken(outcome: Outcome, words: str, hands: int, game: Holdem = LIMIT) -> None:
    """The dealer said what was wrong, and its log is good up to there."""
    assert words in outcome.error
    assert outcome.score is None
    log = read_log(outcome.log, game)
    assert log.score is None
    assert [hand.number for hand in log.hands] == list(range(hands))
    assert log.comments[-1] == f"# {outcome.error}"


def until(number: int, then: Callable[[Wire, Any], object]) -> PlayerAt:
    """A player who calls until a hand, and does something else from there."""

    def play(wire: Wire, state: Any) -> object:
        if state.number >= number:
            return then(wire, state)
        return wire.say(f"{state}:c")

    return told(LIMIT, play)


def test_a_player_who_disconnects():
    outcome = run_match(LIMIT, (until(5, lambda wire, state: False), baseline("probe", LIMIT)), 10)
    check_broken(outcome, "Ann hung up", 5)
    assert outcome.error.endswith("the match ends in hand 5")


def test_a_player_who_is_silent():
    def wait(wire: Wire, state: Any) -> bool:
        wire.file.read()  # until the dealer hangs up
        return False

    limits = Limits(response=1)
    outcome = run_match(LIMIT, (baseline("probe", LIMIT), until(3, wait)), 10, limits=limits)
    check_broken(outcome, "Bob took longer than 1 seconds for a response", 3)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(hand=1), "took longer than 1 seconds for a hand"),
        (Limits(per_hand=0.25), "took longer than 0.25 seconds a hand for the match"),
    ],
)
def test_a_player_who_is_slow(limits, words):
    def slowly(wire: Wire, state: Any) -> None:
        time.sleep(0.3)
        wire.say(f"{state}:c")

    outcome = run_match(LIMIT, (until(2, slowly), baseline("always-call", LIMIT)), 4, limits=limits)
    check_broken(outcome, f"Ann {words}", 2)


def test_a_player_who_chatters_runs_out_of_time():
    def chatter(wire: Wire, state: Any) -> bool:
        with pytest.raises(OSError):
            while True:
                wire.say("# let me think")
                wire.say("MATCHSTATE:hm")
                time.sleep(0.001)
        return False

    outcome = run_match(LIMIT, (until(1, chatter), baseline("probe", LIMIT)), 3, limits=Limits(response=1))
    check_broken(outcome, "Ann took longer than 1 seconds", 1)
    assert "does not answer" in outcome.warnings[0]


def test_illegal_replies_become_calls():
    said = iter(["banana", "r20", "", "f", "c"] * 20)
    outcome = run_match(
        LIMIT, (told(LIMIT, lambda wire, state: wire.say(f"{state}:{next(said)}")), baseline("always-call", LIMIT)), 6
    )
    assert outcome.error == ""
    log = read_log(outcome.log, LIMIT)
    assert len(log.hands) == 6
    assert "c" in log.hands[0].position.history
    assert any("'banana' is no action" in warning for warning in outcome.warnings)
    assert any("'f' is not legal" in warning for warning in outcome.warnings)


def test_what_follows_an_action_is_no_error():
    said = {0: "f ", 1: "c please", 2: "fold"}
    talker = told(LIMIT, lambda wire, state: wire.say(f"{state}:{said[state.number]}"))
    outcome = run_match(LIMIT, (talker, baseline("always-raise", LIMIT)), 3, limits=Limits(invalid=0))
    assert (outcome.error, outcome.warnings) == ("", [])
    assert [hand.position.folded is not None for hand in read_log(outcome.log, LIMIT).hands] == [True, False, True]


def test_raises_are_clamped_and_not_counted_as_invalid():
    wild = told(NO_LIMIT, lambda wire, state: wire.say(f"{state}:r{1 if state.number < 2 else 10**9}"))
    outcome = run_match(NO_LIMIT, (wild, baseline("always-call", NO_LIMIT)), 4, limits=Limits(invalid=0))
    # Once both are all-in there is nothing to be asked, so nothing is ever illegal.
    histories = [hand.position.history for hand in read_log(outcome.log, NO_LIMIT).hands]
    assert outcome.error == ""
    assert histories[1].startswith("r200c/")
    assert histories[2:] == ["cr20000c///", "r20000c///"]


def test_a_player_may_be_allowed_some_invalid_actions_only():
    bad = until(1, lambda wire, state: wire.say(f"{state}:oops"))
    outcome = run_match(LIMIT, (bad, baseline("always-call", LIMIT)), 9, limits=Limits(invalid=5))
    check_broken(outcome, "Ann made 6 invalid actions, 5 are allowed: 'oops' is no action", 2)


def test_replies_that_were_not_asked_for_are_ignored():
    def play(wire: Wire, state: Any) -> None:
        wire.say("; thinking")
        wire.say(str(state).replace(f":{state.number}:", f":{state.number + 1}:", 1) + ":f")
        wire.say("garbage")
        wire.say(f"{state}:c")

    outcome = run_match(LIMIT, (told(LIMIT, play), baseline("always-call", LIMIT)), 5)
    quiet = run_match(LIMIT, (baseline("always-call", LIMIT), baseline("always-call", LIMIT)), 5)
    assert outcome.log == quiet.log
    assert len(outcome.warnings) == 2 * 4 * 5


def test_a_player_who_floods_the_dealer_ends_the_match_and_fills_no_log():
    def flood(wire: Wire, state: Any) -> bool:
        with suppress(OSError):  # the dealer hangs up
            wire.connection.sendall(b"MATCHSTATE:hm\r\n" * 20_000)
            wire.file.read()
        return False

    outcome = run_match(LIMIT, (until(1, flood), baseline("always-call", LIMIT)), 3)
    check_broken(outcome, "as 10,000 lines before it", 1)
    assert len(outcome.warnings) == 100 + 2 + 1  # the 1,000th, the 10,000th and the sum
    assert "number 1,000 about Ann" in outcome.warnings[100]
    assert outcome.warnings[-1] == "there were 10,000 warnings about Ann"


def test_a_player_who_floods_every_turn_fills_no_log_either():
    def chatter(wire: Wire, state: Any) -> None:
        wire.connection.sendall(b"MATCHSTATE:hm\r\n" * 500)
        wire.say(f"{state}:c")

    outcome = run_match(LIMIT, (told(LIMIT, chatter), baseline("always-call", LIMIT)), 5)
    assert outcome.error == ""
    assert len(outcome.warnings) == 100 + 2 + 1
    assert outcome.warnings[-1] == "there were 10,000 warnings about Ann"  # in 4 turns of 5 hands


def test_players_who_leave_after_their_last_action_have_played():
    last = told(LIMIT, lambda wire, state: wire.say(f"{state}:f" if state.position.facing else f"{state}:c"))

    def leaves(port: int) -> None:
        with Wire(port) as wire:
            state = next(wire.turns(LIMIT))
            wire.say(f"{state}:f")

    outcome = run_match(LIMIT, (last, leaves), 1)
    assert (outcome.error, outcome.score) == ("", Score((5, -5), ("Ann", "Bob")))


def test_versions():
    def says(version: str | None) -> PlayerAt:
        def player(port: int) -> str:
            with Wire(port, version) as wire:
                return wire.file.read()

        return player

    good = baseline("probe", LIMIT)
    limits = Limits(start=1)
    for version in ("VERSION:1.0.0", "VERSION:2.1.0", "hello", "VERSION:2.0"):
        outcome = run_match(LIMIT, (good, says(version)), 2, limits=limits)
        assert f"Bob began with '{version}'; kilt speaks version 2.0" in outcome.error
        assert outcome.log == ""
        assert "before the first hand" in str(outcome.players[0])
    assert "did not say VERSION:2.0.0 within" in run_match(LIMIT, (good, says(None)), 2, limits=limits).error
    gone = run_match(LIMIT, (good, lambda port: Wire(port, None).__exit__()), 2, limits=limits)
    assert "Bob hung up before it said VERSION" in gone.error
    silent = run_match(LIMIT, (good, lambda port: None), 2, limits=limits)
    assert re.search(r"Bob did not connect to port \d+ within 1 seconds", silent.error)

    def other_revision(port: int) -> None:
        with Wire(port, "# hello\r\nVERSION:2.0.1") as wire:
            for state in wire.turns(LIMIT):
                wire.say(f"{state}:c")

    assert run_match(LIMIT, (good, other_revision), 2).error == ""


def test_matches_that_cannot_begin():
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PlayError, match=f"cannot listen on 127.0.0.1 port {port} .*: choose another port"):
            serve(LIMIT, 1, ports=(0, port))
    with pytest.raises(PlayError, match="port 99999 cannot be; use 0 to 65535"):
        serve(LIMIT, 1, ports=(0, 99999))
    with pytest.raises(PlayError, match="match of 0 hands"):
        serve(LIMIT, 0)
    with pytest.raises(PlayError, match=r"the name 'a\|b'"):
        serve(LIMIT, 1, names=("a|b", "c"))
    with pytest.raises(PlayError, match="both players are called 'a'"):
        serve(LIMIT, 1, names=("a", "a"))
    for host in ("", " "):
        with pytest.raises(PlayError, match="the host is empty, which means all networks"):
            serve(LIMIT, 1, host=host)
    for limits in ({"response": 0}, {"start": -1}, {"per_hand": nan}, {"invalid": -1}, {"start": inf}):
        with pytest.raises(PlayError, match=r"the limit for .* must be|in the limits of the dealer is"):
            Limits(**limits)


REPLIES = [
    str(state_for_player(position.actor, 0, position, Dealer(LIMIT, 1).deal(0))) + ":c"
    for position in (read_betting(text, LIMIT) for text in ("", "c", "cc/", "cc/c", "cc/cc/", "cc/cc/c"))
]


@given(st.lists(st.one_of(*map(st.just, REPLIES), *map(spoiled, REPLIES), st.text()), max_size=12), st.binary())
def test_no_player_upsets_a_dealer(said, end):
    """Both players say the same, all of it in advance, and leave."""
    pairs = socket.socketpair(), socket.socketpair()
    log = io.StringIO()
    try:
        for _, theirs in pairs:
            theirs.sendall("".join(f"{line}\r\n" for line in said).encode(errors="replace") + end)
            theirs.shutdown(socket.SHUT_WR)
        lines = Lines(pairs[0][0], "Ann"), Lines(pairs[1][0], "Bob")
        with pytest.raises(PlayError):
            NetworkMatch(LIMIT, 50, 1, lines, log).play()
    finally:
        for pair in pairs:
            for connection in pair:
                connection.close()
    assert read_log(log.getvalue(), LIMIT).score is None


# What goes wrong at the player's -------------------------------------------------------------------------------------


def hear(data: bytes, game: Holdem = NO_LIMIT, agent: str = "always-call") -> tuple[int, list[str]]:
    """What an agent makes of a dealer who says that and leaves: the hands it has played, and what it said."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        hands = play_over_connection(BASELINES[agent], game, ours)
        ours.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: theirs.recv(1 << 16), b""))
    return hands, said.decode().split("\r\n")[:-1]


def test_an_agent_answers_at_its_turn_only():
    hands, said = hear(
        b"# welcome\r\n"
        b"MATCHSTATE:1:0::|JdTc\r\n;\r\nMATCHSTATE:1:0:c:|JdTc\nMATCHSTATE:1:0:cr300:|JdTc\r\n"
        b"MATCHSTATE:1:0:cr300c/:|JdTc/6dJc9c\r\nMATCHSTATE:1:0:cr300c/r600f:|JdTc/6dJc9c\r\n"
    )
    assert hands == 1
    assert said == [VERSION, "MATCHSTATE:1:0::|JdTc:c", "MATCHSTATE:1:0:cr300:|JdTc:c"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "hung up before the first hand"),
        (b"MATCHSTATE:1:7::|JdTc\r\n", "hung up in hand 7, after ''"),
        (b"MATCHSTATE:1:7:f:|JdTc\r\nMATCHSTATE:0:8:", "in the middle of a line"),
        (b"hello\r\n", "no match state"),
        (b"\r\n", "no match state"),
        (b"\xff\xfe\x00\n", "no match state"),
        (b"MATCHSTATE:1:7:r150:|JdTc\r\n", "is impossible"),
    ],
)
def test_dealers_that_break_off_or_talk_garbage(data, words):
    with pytest.raises(PlayError, match=re.escape(words)):
        hear(data)


@given(st.lists(LINES, max_size=6), st.binary(), st.sampled_from(sorted(BASELINES)))
def test_no_dealer_upsets_an_agent(lines, end, agent):
    data = "".join(f"{line}\r\n" for line in lines).encode(errors="replace") + end
    try:
        hands, said = hear(data, agent=agent)
    except PlayError:
        return
    assert hands > 0
    assert said[0] == VERSION


def test_an_agent_without_a_dealer():
    with socket.create_server((LOOPBACK, 0)) as door:
        port = door.getsockname()[1]
    with pytest.raises(PlayError, match=f"no dealer answers at 127.0.0.1 port {port}"):
        play_agent(BASELINES["probe"], LIMIT, LOOPBACK, port, connect_seconds=0.3)
    with pytest.raises(PlayError, match="port 99999 cannot be; use 1 to 65535"):
        play_agent(BASELINES["probe"], LIMIT, LOOPBACK, 99999)


def test_an_agent_that_breaks_the_rules():
    @dataclass
    class Cheat:
        name: str = "cheat"

        def act(self, observation: object) -> str:
            return "r1"

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"MATCHSTATE:1:3::|JdTc\r\n")
        with pytest.raises(PlayError, match="cheat failed in hand 3: 'r1' is not legal"):
            play_over_connection(Cheat(), NO_LIMIT, ours)


# Commands ------------------------------------------------------------------------------------------------------------

COMMANDS = """
import sys, typer
from kilt.cli import play
from kilt.errors import KiltError
app = typer.Typer()
app.command()(play.dealer)
app.command()(play.agent)
try:
    app()
except KiltError as error:
    sys.exit(f"error: {error}")
"""


def command(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMANDS, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_commands_play_a_match(tmp_path):
    log = tmp_path / "match.log"
    dealer = command("dealer", "leduc", "--hands", 30, "--seed", 3, "--names", "Ann", "Bob", "--log", log)
    ports = dealer.stdout.readline().split()
    agents = [
        command("agent", "--game", "leduc", name, LOOPBACK, port)
        for name, port in zip(("random", "probe"), ports, strict=True)
    ]
    for agent, name in zip(agents, ("random", "probe"), strict=True):
        out, err = agent.communicate(timeout=60)
        assert (agent.returncode, out, err) == (0, "", f"{name} played 30 hands\n")
    out, err = dealer.communicate(timeout=60)
    assert dealer.returncode == 0
    told = f"`kilt agent RUN {LOOPBACK} {ports[0]}`, and port {ports[1]}"
    assert err == f"waiting 600 seconds at most for both players: {told}\n"
    found = read_log(log.read_text(), GAMES["leduc"])
    assert out == f"{found.score}\n"
    assert len(found.hands) == 30


def test_a_dealer_whom_nobody_meets_leaves_no_log(tmp_path):
    log = tmp_path / "match.log"
    dealer = command("dealer", "leduc", "--log", log, "--set", "start=0.2")
    _, err = dealer.communicate(timeout=60)
    assert "A did not connect to port" in err
    assert not log.exists()
    stopped = command("dealer", "leduc", "--log", log)
    stopped.stdout.readline()
    stopped.terminate()
    stopped.communicate(timeout=60)
    assert not log.exists()
    log.write_text("precious")
    assert "choose another `log`" in refused("dealer", "leduc", "--log", log)
    assert log.read_text() == "precious"


OWN = """
from dataclasses import dataclass

from helper_of_mine import ACTION


@dataclass(frozen=True)
class Mine:
    name: str = "mine"

    def act(self, observation):
        return ACTION


class Needy:
    def __init__(self, something):
        pass


class Nameless:
    def act(self, observation):
        return "c"


class Halfway(Mine):
    def observe_hand(self, hand):
        pass


class Mute(Mine):
    def act(self, observation):
        return None
"""


def test_classes_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(sys.path))
    file = tmp_path / "own.py"
    file.write_text(OWN)
    (tmp_path / "helper_of_mine.py").write_text("ACTION = 'c'\n")
    agent, game = player(f"{file}:Mine").at(LIMIT)
    assert (agent.name, game) == ("mine", LIMIT) and load_agent(f"{file}:Mine") == agent
    assert Dealer(LIMIT, 3).play(0, (agent, BASELINES["always-call"])).position.history == "cc/cc/cc/cc"
    with pytest.raises(PlayError, match="mine failed in hand 0: None is not legal after '': use one of f, c, r"):
        Dealer(LIMIT, 3).play(0, (BASELINES["always-call"], load_agent(f"{file}:Mute")))
    for name, words in {
        "Mine": "mine plays any poker game: give the `game`",
        "Absent": "own.py has no class 'Absent': use one of Mine, Needy, Nameless, Halfway, Mute",
        "Needy": r"Needy of .*own.py cannot be created \(TypeError: .*something.*\): it is called without arguments",
        "Nameless": "Nameless of .* is no agent: it needs a `name`, which is text, and a method `act",
        "Halfway": r"Halfway of .* has `observe_hand`, but no method `begin\(game\)`: add one that returns",
    }.items():
        with pytest.raises(PlayError, match=words):
            player(f"{file}:{name}").at()
    with pytest.raises(PlayError, match=r"there is no file nowhere.py: use a Python file and a class in it"):
        load_agent("nowhere.py:Mine")
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0")
    with pytest.raises(PlayError, match=r"broken.py cannot be run \(ZeroDivisionError: division by zero\): correct it"):
        load_agent(f"{broken}:Mine")


def test_players_by_name():
    with pytest.raises(PlayError, match="unknown player 'nobody': use the folder of a run, or one of always-fold"):
        player("nobody").at(LIMIT)
    with pytest.raises(PlayError, match="give the `game`"):
        player("random").at()
    assert player("random").at(LIMIT) == (BASELINES["random"], LIMIT)
    for folder in (".", "/", "./"):
        with pytest.raises(ArtifactError, match="has no strategy"):
            load_agent(folder)
    assert load_holdem("leduc") == load_game("leduc")
    with pytest.raises(PlayError, match="bluff-1-1 is not poker"):
        load_holdem("bluff-1-1")
