"""Matches with Slumbot, against a stand-in on the loopback interface whose rules are pokerkit's."""

import json
import signal
import socket
import time

import pytest

from commands import answer, kilt, refused, start
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.errors import PlayError
from kilt.evaluate.slumbot_rates import slumbot_rates
from kilt.games import load_game
from kilt.play.acpc import read_log
from kilt.play.agent import BASELINES
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer
from kilt.play.slumbot import (
    GAME,
    BrokenHandError,
    ClientConfig,
    SlumbotClient,
    SlumbotHand,
    parse_finished_hand,
    parse_state,
    read_actions,
    to_slumbot_notation,
)
from kilt.play.slumbot_match import SlumbotLog, continue_match
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.strategy.blueprint import Blueprint
from loaders import Diary
from slumbot_stub import Stub

RULES = load_game(GAME)


class Raiser(Diary):
    """A diary that is kept in no-limit games."""

    def begin(self, game):
        self.copies.append(Raiser())
        return self.copies[-1]

    def act(self, observation):
        bounds = observation.position.raise_bounds()
        return f"r{bounds[0]}" if self.seen and self.seen[-1].won > 0 and bounds else "c"


def match(stub, file, hands, agent=BASELINES["random"], **options):
    """Play until the log has so many hands; returns them, and what was warned of."""
    warnings = []
    client = SlumbotClient(ClientConfig(stub.url, wait=0.0, **options), warn=warnings.append)
    with SlumbotLog(file, RULES, agent.name) as log:
        continue_match(client, agent, log, hands, seed=7, warn=warnings.append)
    return log, warnings


def test_a_match_agrees_with_pokerkit(tmp_path):
    """All hands, with their actions, cards and winnings, are those of the other side."""
    file = tmp_path / "match.log"
    with Stub(seed=1) as stub:
        log, warnings = match(stub, file, 200)
    assert [hand.reply for hand in log.hands] == stub.ended
    assert not warnings and not log.broken
    assert all(hand.hand for hand in log.hands)  # the winnings of pokerkit are those of kilt's rules
    assert {hand.seat for hand in log.hands} == {0, 1}
    assert any(hand.hand.position.folded is None and len(hand.hand.board) == 5 for hand in log.hands)
    read = read_log(file.read_text(), RULES).hands
    assert read == [hand.hand for hand in log.hands]
    assert sum(hand.payoffs[hand.players.index("random")] for hand in read) == sum(hand.won for hand in log.hands)


@pytest.mark.parametrize("fault", ["deaf", "mute", "busy", "html", "list", "torn"])
def test_finished_hands_survive_faults(tmp_path, fault):
    """Whatever goes wrong, the log has hands of the other side, each once, and no action counts twice."""
    faults = dict.fromkeys(range(3, 10000, 7), fault)
    with Stub(seed=2, faults=faults) as stub:
        log, warnings = match(stub, tmp_path / "match.log", 40)
    ended = [json.dumps(reply) for reply in stub.ended]
    logged = [json.dumps(hand.reply) for hand in log.hands]
    assert len(logged) == 40 == len({*logged}) and {*logged} <= {*ended}
    assert [ended.index(reply) for reply in logged] == sorted(ended.index(reply) for reply in logged)
    assert any("asking again" in warning for warning in warnings)
    assert all("\n" not in warning for warning in warnings)
    if fault in ("deaf", "busy"):  # the request was not heard, so that nothing is in doubt
        assert not log.broken and logged == ended
    else:
        assert log.broken
        assert any("was abandoned" in warning for warning in warnings)


def test_a_match_ends_with_the_tries(tmp_path):
    """What was finished before is there, and the next match goes on from it."""
    with Stub(seed=3, faults=dict.fromkeys(range(20, 40), "busy")) as stub:
        with pytest.raises(PlayError, match=r"answered \w+ with HTTP code 503; asked 4 times: try again later"):
            match(stub, tmp_path / "match.log", 50, tries=4)
        with SlumbotLog(tmp_path / "match.log", RULES, "random") as log:
            assert 0 < len(log.hands) < 20 and [hand.reply for hand in log.hands] == stub.ended
        stub.faults.clear()
        log, _ = match(stub, tmp_path / "match.log", 50)
        assert [hand.reply for hand in log.hands] == stub.ended


def test_a_server_that_refuses_all_actions(tmp_path):
    """A match does not begin hand after hand without end."""
    with Stub(seed=4) as stub:
        stub.heard = lambda what, body, heard=stub.heard: (
            heard(what, body) if what == "new_hand" else {"error_msg": "down for maintenance"}
        )
        with pytest.raises(PlayError, match=r"refused act: 'down for maintenance'; 5 consecutive hands"):
            match(stub, tmp_path / "match.log", 50, agent=BASELINES["always-call"])
    assert (tmp_path / "match.log").read_text().count("# slumbot broken hand") == 5


def test_sessions(tmp_path):
    """A session that the server has forgotten is opened again; an account logs in for that."""
    with Stub(seed=5, password="secret") as stub:
        client = SlumbotClient(ClientConfig(stub.url, wait=0.0), warn=(warnings := []).append)
        with pytest.raises(PlayError, match=r"refused new_hand: 'Unknown token'"):
            client.new_hand()
        with pytest.raises(PlayError, match=r"refused login: 'Unknown user or wrong password'"):
            client.login("kilt", "wrong")
        client.login("kilt", "secret")
        assert "token" not in client.new_hand()
        stub.sessions.clear()
        client.new_hand()
        assert len(warnings) == 1 and warnings[0].endswith("opening a new session")


def test_one_who_remembers_is_told_of_earlier_hands(tmp_path):
    agent = Raiser()
    with Stub(seed=6) as stub:
        match(stub, tmp_path / "match.log", 5, agent=agent)
        log, _ = match(stub, tmp_path / "match.log", 8, agent=agent)
    first, second = agent.copies
    assert len(log.hands) == 8 == len(second.seen) and second.seen[:5] == first.seen
    assert f"# hand 7: diary: {second.notes[7]}\n" in log.file.read_text()


def test_a_killed_match_continues(tmp_path):
    """What a process had finished before SIGKILL is there, whatever it was writing then."""
    file = tmp_path / "match.log"
    with Stub(seed=8) as stub:
        command = ("slumbot", "always-call", "--set", f"url={stub.url}", "--log", file, "--seed", 1, "--hands")
        child = start(*command, 100_000)
        deadline = time.monotonic() + 120
        while not file.exists() or file.read_text().count("\nSTATE") < 3:
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert "another process writes to" in refused(*command, 5)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        before = file.read_bytes()
        whole = before[: before.rfind(b"\n") + 1]
        done = whole.count(b"# slumbot hand {")
        file.write_bytes(before + b'# slumbot hand {"client_pos": 1, "act')  # a line that broke off
        said = answer(*command, done + 5)
        assert file.read_bytes().startswith(whole)
    assert said["hands"] == done + 5 == len(read_log(file.read_text(), RULES).hands)
    assert said["complete_hands"] == said["hands"] and said["broken_hands"] == 0
    assert said["aivat"] is None and said["less_baseline"]["margin"] < said["played"]["margin"]
    assert said["strategy"] == ""  # always-call has no run
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[-1].startswith(b"STATE")
    file.write_bytes(b"".join(lines[:-1]))  # it was killed between the two lines of a hand
    assert answer(*command, 1)["hands"] == done + 5  # nothing is played where enough hands are there
    assert file.read_bytes().splitlines(keepends=True) == lines
    kilt("evaluate", "log", file, "--game", GAME)


def test_what_cannot_be(tmp_path):
    """One line each, before any work."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/slumbot/api"
    file = tmp_path / "match.log"
    command = ("slumbot", "always-call", "--log", file, "--set", f"url={nobody}", "--set", "wait=0", "--set", "tries=2")
    said = refused(*command)
    assert "did not answer new_hand (Connection refused); asked 2 times" in said
    assert "0 of 1,000 hands" in said and "\n" not in said
    assert "ask for 1 or more" in refused(*command, "--hands", 0)
    assert "is no address of an API" in refused(*command, "--set", "url=slumbot")
    assert "`timeout` of the client is 0" in refused(*command, "--set", "timeout=0")
    assert "there is no password for Ann" in refused(*command, "--user", "Ann")
    assert "plays holdem.nolimit.2p.50bb" in refused("slumbot", "house", "--set", f"url={nobody}")
    assert "has hands of always-call" in refused(*command[:1], "random", *command[2:])
    (tmp_path / "other").write_text("STATE:0:f:8dJd|Td4d:50|-50:Ann|Bob\n")
    assert "no log of a match with Slumbot" in refused(*command, "--log", tmp_path / "other")
    file.write_text(file.read_text() + "# slumbot hand {}\n")
    assert "is damaged in line 2" in refused(*command)
    assert "the folder of the log" in refused(*command, "--log", tmp_path / "none" / "match.log")
    assert "build it with `kilt build house --bb 200`" in refused("slumbot")  # the default, which has to be built first


def test_actions():
    """Slumbot counts chips within a round, the ACPC over the hand."""
    position = read_actions("b200b600c/kb600c/", RULES)
    assert position.history == "r200r600c/cr1200c/" and to_slumbot_notation(position, "r20000") == "b18800"
    assert read_actions("b20000c///", RULES) == read_actions("b20000c", RULES)
    assert read_actions("b200f", RULES).folded == 0
    for wrong in ("k", "cc", "b150", "b20001", "x", "b", "b200c/c", "fk"):
        with pytest.raises(PlayError, match=r"^the actions "):
            read_actions(wrong, RULES)


REPLY = {"client_pos": 1, "action": "b200c/", "hole_cards": ["As", "Kd"], "board": ["2c", "7d", "9h"]}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, "it is Slumbot's turn"),
        ({"client_pos": 2}, "lacks `client_pos`"),
        ({"action": 5}, "lacks `client_pos` or `action`"),
        ({"client_pos": 0, "board": ["2c", "7d"]}, "cards of an answer cannot be"),
        ({"client_pos": 0, "board": None}, "cards of an answer cannot be"),
        ({"client_pos": 0, "hole_cards": ["As", "As"]}, "cards of an answer cannot be"),
        ({"client_pos": 0, "hole_cards": ["As", "2c"]}, "cards of an answer cannot be"),
    ],
)
def test_answers_that_make_no_sense(changes, complaint):
    with pytest.raises(PlayError, match=complaint):
        parse_state(REPLY | changes, 0, RULES)


def test_hands_without_the_cards_of_the_bot_count():
    end = {"client_pos": 1, "action": "b200c/b100f", "hole_cards": ["As", "Kd"], "board": ["2c", "7d", "9h"]}
    hand = parse_finished_hand(end | {"winnings": -200}, 0, RULES, "Ann")
    assert (hand.won, hand.hand, hand.baseline) == (-200, None, None)
    whole = end | {"bot_hole_cards": ["Qs", "Qd"]}
    assert parse_finished_hand(whole | {"winnings": -200}, 0, RULES, "Ann").hand.payoffs == (200.0, -200.0)
    assert parse_finished_hand(whole | {"winnings": -150}, 0, RULES, "Ann").hand is None


def test_an_action_that_counted_twice():
    """`old_action` tells that an answer was lost."""
    with Stub(seed=9) as stub:
        client = SlumbotClient(ClientConfig(stub.url, wait=0.0))
        reply = client.new_hand()
        while reply["client_pos"] == 0:
            reply = client.new_hand()
        stub.faults = {stub.requests: "mute"}
        with pytest.raises(BrokenHandError, match=r"an answer was lost|refused act"):
            client.act("c", "")


def test_win_rates(tmp_path):
    """AIVAT has the mean of play with less luck; it is for agents with a blueprint."""
    game = load_game("leduc")
    cards = build(AbstractionSpec.from_name("IR-PHS-PHS 3-3", Deal.from_game(game)), tmp_path / "cards")
    abstract = AbstractGame(game, cards)
    solver = ExternalMCCFR(abstract, 1, SamplingOptions())
    solver.step(5000)
    agent, dealer = BlueprintAgent("ours", Blueprint.of(abstract, solver.average())), Dealer(game, 3)
    hands = []
    for number in range(2000):
        seat = number % 2
        players = (agent, BASELINES["random"]) if seat == 0 else (BASELINES["random"], agent)
        hand = dealer.play(number, players)
        won = hand.payoffs[seat]
        hands.append(SlumbotHand({}, seat, won, won - 0.5, hand))
    rates = slumbot_rates([*hands, SlumbotHand({}, 0, 3.0, 2.5, None)], game, agent, "ours", aivat=True)
    assert rates.aivat_hands == 2000
    assert rates.aivat.margin < 0.8 * rates.played.margin
    assert abs(rates.aivat.mean - rates.played.mean) < 2 * rates.played.margin
    assert rates.baseline == pytest.approx((500 / game.rules.big_blind, 0.0))
    assert slumbot_rates(hands, game, agent, "ours", aivat=False).aivat is None
    assert slumbot_rates(hands, game, BASELINES["random"], "random", aivat=True).aivat is None
    with pytest.raises(PlayError, match=r"no hand has been finished"):
        slumbot_rates([], game, agent, "ours", aivat=True)
