"""A person at the table: what they type, what they are told, and the command that draws it."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kilt.cli import table
from kilt.errors import PlayError
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.log_estimates import estimate_from_log
from kilt.games import load_game
from kilt.games.game import REVEAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.play.acpc import read_betting, read_log
from kilt.play.agent import BASELINES, Observation
from kilt.play.dealer import Dealer
from kilt.play.person import (
    Person,
    Session,
    action_menu,
    advised_actions,
    describe_action,
    duplicate_deals,
    read_action,
)
from loaders import Diary

NOLIMIT, LIMIT, LEDUC = load_game("holdem.nolimit.2p"), load_game("holdem.limit.2p"), load_game("leduc")
POSITIONS = [
    *(read_betting(text, NOLIMIT) for text in ("", "c", "r300c/", "r300c/r600", "r300c/r600r19000", "r20000")),
    *(read_betting(text, LIMIT) for text in ("", "rrr", "rc/", "rc/rrrr")),
    *(read_betting(text, LEDUC) for text in ("", "r", "rr", "cc/")),
]

app = typer.Typer()
app.command("play")(table.play)


@app.callback()
def _group():
    pass


MAIN = """
import typer
from kilt.cli import table
app = typer.Typer()
app.command()(table.play)
app()
"""


def at_table(*arguments, typed=()):
    """What a session prints, with one space between words."""
    result = CliRunner().invoke(app, ["play", *arguments], input="".join(f"{line}\n" for line in typed))
    assert result.exit_code == 0, result.output + repr(result.exception)
    return " ".join(result.output.split())


def total(printed):
    return int(re.search(r"result .* won ([+-][0-9,]+) chips", printed)[1].replace(",", ""))


# What is typed


@pytest.mark.parametrize(
    ("betting", "typed", "action"),
    [
        ("", "F", "f"),
        ("", " fold ", "f"),
        ("", "call 50", "c"),
        ("c", "check", "c"),
        ("c", "call", "c"),
        ("", "r300", "r300"),
        ("", "r 300", "r300"),
        ("", "raise to 300", "r300"),
        ("", "bet 1,000", "r1000"),
        ("", "300", "r300"),
        ("", "50%", "r200"),
        ("", "raise 1x", "r300"),
        ("", "1.5 x", "r400"),
        ("", "pot", "r300"),
        ("", "m", "r200"),
        ("", "a", "r20000"),
        ("", "All-In", "r20000"),
        ("", "r all in", "r20000"),
        ("r300c/", "bet 300", "r600"),  # chips are counted within the round
        ("r300c/", "50%", "r600"),
        ("r300c/r600", "r 900", "r1200"),
        ("r20000", "a", "c"),  # all-in is all that is meant
    ],
)
def test_what_can_be_typed(betting, typed, action):
    assert read_action(typed, read_betting(betting, NOLIMIT)) == action


@pytest.mark.parametrize(
    ("betting", "typed", "answer"),
    [
        ("c", "f", "checking is free"),
        ("", "check", "there are 50 to call"),
        ("", "call 60", "60 is not what there is to call, 50"),
        ("", "", "nothing is typed: type f to fold, c to call 50, r to raise to 200–20,000"),
        ("", "r", "how much"),
        ("", "r150", "150 is too little: raise to 200–20,000"),
        ("", "r30000", "30,000 is more than you have"),
        ("r300c/", "bet 50", "50 is too little: bet 100–19,700"),
        ("", "0%", "nothing to bet"),
        ("", "300.5", "is no action"),
        ("", "50%, 1x", "is no action"),
        ("r20000", "r", "your opponent is all-in"),
        ("", "x" * 1000, "…"),
    ],
)
def test_what_cannot_be_typed(betting, typed, answer):
    with pytest.raises(PlayError, match=re.escape(answer)):
        read_action(typed, read_betting(betting, NOLIMIT))


def test_raises_of_one_size():
    start = LIMIT.start()
    assert {read_action(typed, start) for typed in ("r", "raise", "bet", "raise to 20", "r20")} == {"r"}
    for typed in ("r30", "a", "50%"):
        with pytest.raises(PlayError, match="one size here: type r to raise to 20"):
            read_action(typed, start)
    with pytest.raises(PlayError, match="the limit of 4 raises in this round"):
        read_action("r", read_betting("rc/rrrr", LIMIT))


@given(
    st.sampled_from(POSITIONS),
    st.text() | st.from_regex(r"(r|b|raise|bet|c|call)? ?(to)? ?[0-9., _]*[%xam]?", fullmatch=True),
)
def test_any_text_is_a_legal_action_or_answered(position, text):
    try:
        action = read_action(text, position)
    except PlayError as error:
        assert "\n" not in str(error)
    else:
        position.after(action)


@given(st.sampled_from(POSITIONS), st.data())
def test_what_words_say_can_be_typed(position, data):
    actions = position.actions()
    action = actions[data.draw(st.integers(0, len(actions) - 1))]
    words = describe_action(position, action).removesuffix(", all-in")
    assert read_action(words, position) == action


# What is said


def test_words():
    flop = read_betting("r300c/", NOLIMIT)
    assert describe_action(NOLIMIT.start(), "f", third=True) == "folds"
    assert describe_action(flop, "c") == "check"
    assert describe_action(flop, "r20000", third=True) == "bets 19,700, all-in"
    raised = flop.after("r600")
    assert (describe_action(raised, "c", third=True), describe_action(raised, "r1200")) == ("calls 300", "raise to 900")
    assert describe_action(flop.after("r20000"), "c") == "call 19,700, all-in"


def test_a_call_takes_no_more_than_there_is():
    text = str(NOLIMIT.rules).replace("stack = 20000 20000", "stack = 20000 5000")
    position = Holdem(GameDef.parse(text)).start().after("c").after("r9000")
    assert (position.to_call, describe_action(position, "c")) == (4900, "call 4,900, all-in")
    with pytest.raises(PlayError, match="takes all your chips"):
        read_action("r9500", position)
    assert read_action("all-in", position) == "c"


def test_menu_has_only_what_is_legal():
    for position in POSITIONS:
        keys = {choice.key for choice in action_menu(position)}
        assert ("f" in keys) == (position.facing > 0)
        assert bool(keys & {"r", "a"}) == (position.raise_bounds() is not None)
    (only,) = [choice for choice in action_menu(read_betting("r300c/r10000", NOLIMIT)) if choice.key not in "fc"]
    assert only == ("r", "raise to 19,400–19,700", "50%, 1x, a")
    assert action_menu(read_betting("r300c/r600r19000", NOLIMIT))[-1] == ("a", "raise to 19,700, all-in", "")


def test_names():
    assert LIMIT.rules.round_names == ("preflop", "flop", "turn", "river")
    assert LIMIT.rules.seat_names == ("big blind", "small blind")
    assert LEDUC.rules.seat_names == ("first to act", "second to act")


# Advice


@dataclass(frozen=True)
class Wise:
    """An agent that has a strategy, whatever the cards."""

    name: str = "wise"

    def act(self, observation):
        return "c"

    def probabilities(self, observation):
        return [("f", 0.0), ("c", 0.25), ("r300", 0.5), ("r300", 0.25)]


def test_advice():
    observation = Observation(NOLIMIT.start(), (50, 51), (), 0)
    assert advised_actions(Wise(), observation) == [("raise to 300", 0.75), ("call 50", 0.25)]
    assert advised_actions(BASELINES["random"], observation) is None


class Script:
    """A screen for tests: types what it is given, and notes what it is told."""

    def __init__(self, *typed):
        self.typed, self.told = list(typed), []

    def ask(self, view, *, again):
        if not self.typed:
            raise EOFError
        self.told.append("again" if again else "ask")
        return self.typed.pop(0)

    def __getattr__(self, name):
        return lambda *said: self.told.append((name, *said))


def test_a_person_is_asked_until_the_action_is_legal():
    screen = Script("?", "nonsense", "h", "r300")
    person = Person("Ann", screen, Wise())
    assert person.act(Observation(NOLIMIT.start(), (50, 51), (), 0)) == "r300"
    said = [entry if isinstance(entry, str) else entry[0] for entry in screen.told]
    assert said == ["ask", "advise", "again", "tell", "again", "explain", "again"]


@pytest.mark.parametrize("game", [LEDUC, LIMIT, NOLIMIT], ids=lambda game: game.name)
def test_all_that_happens_is_told_once(game):
    screen = Script(*["c"] * 100)
    session = Session(game, "Ann", BASELINES["random"], screen, seed=5)
    for _ in range(6):
        screen.told.clear()
        hand = session.play()
        told = [entry[0] for entry in screen.told if isinstance(entry, tuple)]
        moves = re.findall(r"[fc/]|r[0-9]*", hand.position.history)
        assert told == ["begin", *("dealt" if move == REVEAL else "acted" for move in moves), "end"]
        ending = screen.told[-1][1]
        assert ending.won == hand.payoffs[hand.number % 2]
        assert (len(ending.shown) == 2) == (hand.position.folded is None)
    assert ending.total == session.total == sum(session.won)


def test_an_opponent_who_remembers():
    diary = Diary()
    session = Session(LEDUC, "Ann", diary, Script(*["c"] * 100), seed=5)
    hands = [session.play() for _ in range(6)]
    assert session.agent is diary.copies[0] and diary.seen == []
    assert session.agent.seen == [hand.from_seat(1 - hand.number % 2) for hand in hands]


def test_a_hand_that_is_left_does_not_count():
    session = Session(LEDUC, "Ann", BASELINES["always-call"], Script("c", "c", "c", "q"), seed=1)
    session.play()
    with pytest.raises(EOFError):
        session.play()
    assert len(session.won) == 1


def test_a_game_where_nobody_can_act_is_refused():
    text = str(NOLIMIT.rules).replace("20000", "100").replace("blind = 100 50", "blind = 100 100")
    with pytest.raises(PlayError, match="take all chips"):
        Session(Holdem(GameDef.parse(text)), "Ann", BASELINES["random"], Script())


# The command


@pytest.mark.parametrize("game", [LEDUC, LIMIT, NOLIMIT], ids=lambda game: game.name)
@pytest.mark.parametrize("opponent", ["always-call", "random", "always-raise"])
def test_sessions(tmp_path, game, opponent):
    log = tmp_path / "my.log"
    printed = at_table(
        *(opponent, "--game", game.name, "--hands", "6", "--seed", "4", "--log", str(log), "--name", "Ann"),
        typed=["c", "c", "r", "m", "c", "c", "f", "c"] * 20,
    )
    played = read_log(log.read_text(), game)
    won = [hand.payoffs[hand.players.index("Ann")] for hand in played.hands]
    assert (len(played.hands), total(printed)) == (6, sum(won))
    assert played.score.chips == (sum(won), -sum(won))
    assert [hand.players[0] for hand in played.hands] == ["Ann", opponent] * 3  # seats swap
    assert f"hands 6 won {total(printed):+,} chips" in printed
    assert f"best {max(won):+,.0f} chips in hand {won.index(max(won)) + 1} " in printed
    assert f"worst {min(won):+,.0f} chips in hand {won.index(min(won)) + 1} " in printed
    assert "few hands say little" in printed
    assert "\x1b" not in printed


def test_deals_of_a_duplicate_match():
    for hands in (2, 4, 6, 50):
        deals = duplicate_deals(hands, seed=hands)
        assert deals[: hands // 2] == list(range(hands // 2)) == sorted(deals[hands // 2 :])
        seats = [sorted(number % 2 for number in range(hands) if deals[number] == deal) for deal in range(hands // 2)]
        assert seats == [[0, 1]] * (hands // 2)
    assert duplicate_deals(50, seed=1) != duplicate_deals(50, seed=2)
    with pytest.raises(PlayError, match="a duplicate match of 5 hands cannot be played: use an even number"):
        duplicate_deals(5)


def test_a_match_is_judged(tmp_path):
    """What is printed is what the estimators make of the log, for the other player."""
    log = tmp_path / "my.log"
    typed = ["c", "r", "c", "f"] * 200
    settings = ("probe", "--game", "leduc", "--match", "80", "--duplicate", "--seed", "4", "--log", str(log))
    printed = at_table(*settings, typed=typed)
    hands = read_log(log.read_text(), LEDUC).hands
    assert len(hands) == 80
    assert all(hand.players == (("You", "probe") if hand.number % 2 == 0 else ("probe", "You")) for hand in hands)
    in_order = sorted(hands, key=lambda hand: duplicate_deals(80, seed=4)[hand.number])
    names = "basic", "all-cards+early-folds+bc-divat"
    rows = [estimator_named(name) for name in names]
    found = estimate_from_log(LEDUC, in_order, "probe", BASELINES["probe"], estimators=rows)
    assert found.duplicate and "all deals came twice" in printed
    for word, name, row in zip(("won", "deserved"), names, found.rows, strict=True):
        assert f"{word} {-row.won.mean:+,.0f} ± {row.won.margin:,.0f} mbb/h, {name}" in printed
    assert -found.rows[0].won.mean == pytest.approx(1000 * total(printed) / 80)


def test_luck_cancels_where_deals_come_twice():
    settings = ("always-call", "--game", "leduc", "--match", "20", "--duplicate", "--seed", "4")
    assert "won +0 ± 0 mbb/h, basic" in at_table(*settings, typed=["c"] * 200)


def test_who_does_not_tell_their_strategy_is_no_judge():
    printed = at_table("random", "--game", "holdem.nolimit.2p", "--match", "4", "--seed", "4", typed=["f", "c"] * 40)
    assert "the strategy of random is unknown, so there is no luck-adjusted result" in printed


@pytest.mark.parametrize("copies", [[], [0, 1, 2, 1, 2, 0]])
def test_each_half_of_a_duplicate_match_has_its_own_opponent(copies):
    diary = Diary()
    session = Session(LEDUC, "Ann", diary, Script(*["c"] * 100), seed=5, duplicate=copies)
    hands = [session.play() for _ in range(6)]
    assert [len(copy.seen) for copy in diary.copies] == ([3, 3] if copies else [6])
    if copies:
        assert [hand.cards for hand in hands] == [Dealer(LEDUC, 5).deal(deal) for deal in copies]


def test_what_a_hand_looks_like():
    printed = at_table("always-call", "-g", "holdem.nolimit.2p", "--hands", "1", "--seed", "3", typed=["1x", *"ccc"])
    assert "always-call calls 50" in printed
    assert "f fold" not in printed
    assert "c check · r raise to 200–20,000, or 50%, 1x, a · q leave" in printed
    assert "You raise to 300 always-call calls 200 flop J♥ 6♦ 2♦" in printed
    assert "you 3♥ 3♣ two pair, threes and deuces always-call 7♣ K♠ pair, deuces" in printed
    assert "You win 300 · total +300 chips, +3.0 big blinds after 1 hand" in printed
    assert "95%" not in printed  # one hand has no interval


def test_advice_is_drawn(monkeypatch):
    monkeypatch.setitem(BASELINES, "wise", Wise())
    printed = at_table("wise", "-g", "holdem.nolimit.2p", "--seed", "3", typed=["f", *"cccc", "?", "q"])
    assert "? what wise would do in your place" in printed
    assert "with your cards wise would raise to 300 75.0% ███████████████ call 50 25.0% █████" in printed
    assert "has no advice" in at_table("random", "-g", "leduc", typed=["?"])


@pytest.mark.parametrize("typed", [["q"], [], ["quit"], ["c", "c", "", "no", "leave"]])
def test_leaving(tmp_path, typed):
    log = tmp_path / "my.log"
    printed = at_table("always-call", "-g", "holdem.limit.2p", "--seed", "1", "-l", str(log), typed=typed)
    assert "you leave; the unfinished hand does not count result no hand came to its end" in printed
    assert not log.exists()


def test_bytes_that_are_no_text_are_answered():
    result = CliRunner().invoke(app, ["play", "random", "-g", "leduc"], input=b"\xff\xfe\x00\x1b[2J\n[bold]\nq\n")
    assert result.exit_code == 0, repr(result.exception)
    assert result.output.count("is no action here") == 2
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["nobody", "-g", "leduc"], "unknown player 'nobody'"),
        (["random"], "give the `game`"),
        (["random", "-g", "bluff-1-1"], "is not poker"),
        (["random", "-g", "leduc", "--hands", "0"], "0 hands cannot be played: use 1 or more, or leave out --hands"),
        (["random", "-g", "leduc", "--match", "0"], "0 hands cannot be played: use 1 or more, or leave out --match"),
        (["random", "-g", "leduc", "--match", "5", "--duplicate"], "of 5 hands cannot be played: use an even number"),
        (["random", "-g", "leduc", "--match", "4", "--hands", "4"], "leave out one of them"),
        (["random", "-g", "leduc", "--duplicate"], "say how many hands with --match"),
        (["random", "-g", "leduc", "-l", "{tmp}/there.log"], "is there already"),
        (["random", "-g", "leduc", "-l", "{tmp}/new.log", "--name", "a:b"], "cannot be in a log"),
        (["random", "-g", "leduc", "-l", "{tmp}/new.log", "--name", "random"], "choose another --name"),
    ],
)
def test_what_is_refused(tmp_path, arguments, answer):
    (tmp_path / "there.log").touch()
    result = CliRunner().invoke(app, ["play", *(word.format(tmp=tmp_path) for word in arguments)])
    assert isinstance(result.exception, PlayError | SystemExit), result.output
    assert answer in str(result.exception)
    assert not (tmp_path / "new.log").exists()


def run(*arguments, **settings):
    """The command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **settings,
    )


def test_letters_where_the_terminal_has_no_suits():
    settings = {"env": os.environ | {"PYTHONIOENCODING": "ascii"}}
    with run("always-call", "-g", "leduc", "--seed", "3", "--hands", "1", **settings) as process:
        printed = process.communicate(b"c\nc\nc\nq\n", timeout=60)[0].decode("ascii")
    assert process.returncode == 0
    assert "you hold  Qh" in printed
    assert "c check | r bet 2" in printed


def test_ctrl_c():
    with run("always-call", "-g", "leduc", "--seed", "3") as process:
        process.stdin.write(b"c\nc\n")
        process.stdin.flush()
        printed = b""
        while b"hand 2" not in printed:
            more = os.read(process.stdout.fileno(), 4096)
            assert more, printed
            printed += more
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        printed += process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert b"you leave" in printed
    assert b"hands     1" in printed
    assert b"Traceback" not in printed


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("last", [b"\x03", b"\x04", b"q\r"], ids=["Ctrl-C", "Ctrl-D", "q"])
def test_in_a_terminal(last):
    import pty

    ours, theirs = pty.openpty()
    settings = {"env": os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}, "start_new_session": True}
    # A terminal sends Ctrl-C to those whose controlling terminal it is.
    code = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n" + MAIN
    words = [sys.executable, "-c", code, "always-call", "-g", "leduc", "--seed", "3"]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, **settings)
    os.close(theirs)
    printed, keys, typed = b"", [b"c\r", b"r\r", last], b""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 20)[0]:  # what is typed before the prompt is ready may be thrown away
            os.write(ours, typed)
            continue
        try:
            more = os.read(ours, 4096)
        except OSError:  # it has gone
            break
        if not more:
            break
        printed += more
        if keys and printed.count(b"your turn > ") >= 4 - len(keys):
            typed = keys.pop(0)
            os.write(ours, typed)
    else:
        process.kill()
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert b"Traceback" not in printed
    assert "\x1b[1;31;107m Q♥ \x1b[0m".encode() in printed  # hearts are red, on paper
    assert b"hands     1" in printed
