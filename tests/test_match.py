"""Matches, their statistics and their commands."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt.errors import PlayError
from kilt.evaluate.crosstable import crosstable
from kilt.evaluate.stats import Estimate, estimate_mean, student_quantile, win_rate
from kilt.games import load_game
from kilt.games.gamedef import load_definition, shipped_definitions
from kilt.play import match as matches
from kilt.play.acpc import format_log_entry, format_log_line, read_log
from kilt.play.agent import BASELINES
from kilt.play.dealer import Dealer
from kilt.play.match import MatchSetup, play_match
from kilt.strategy.fixed import action_chances
from loaders import Diary, Rooted, baseline, dies_elsewhere, here_only

NOLIMIT = load_game("holdem.nolimit.2p")
LEDUC = load_game("leduc")


def pair(one, other):
    return BASELINES[one], BASELINES[other]


@dataclass(frozen=True)
class Stubborn:
    """Raises by too little when it has the small blind."""

    name: str = "stubborn"

    def act(self, observation):
        return "r101" if observation.position.history == "" else "c"


class Bound:
    """An agent that cannot leave its process."""

    name = "bound"

    def __init__(self):
        self.act = lambda observation: "c"


# Play ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BASELINES)
def test_duplicate_hands_cancel_luck(name):
    """A player against itself plays every hand twice the same way: the pair comes to exactly 0."""
    for game in (NOLIMIT, LEDUC):
        assert not play_match(game, pair(name, name), 200, seed=3).results.any()
    assert play_match(LEDUC, pair("probe", "probe"), 200, seed=3, duplicate=False).results.any()


def test_known_results():
    """A player who folds loses the big blind to a raise in one seat, and the small one in the other."""
    for duplicate in (True, False):
        match = play_match(NOLIMIT, pair("always-raise", "always-fold"), 1000, duplicate=duplicate)
        assert match.hands == 1000
        assert set(match.results.tolist()) == ({75.0} if duplicate else {50.0, 100.0})
        assert win_rate(match).mean == 750
    assert win_rate(match).margin == pytest.approx(1.96 * 250 / np.sqrt(999), rel=1e-4)
    assert win_rate(play_match(NOLIMIT, pair("always-raise", "always-fold"), 100)) == (750, 0)


def test_two_callers_win_what_their_cards_are_worth():
    """Always-fold checks where it is free: as the big blind against a caller it is a caller too."""
    match = play_match(NOLIMIT, pair("always-call", "always-fold"), 4000, seed=1)
    mean, margin = win_rate(match)
    assert abs(mean - 250) < 2 * margin  # the small blind is folded in every other hand
    assert margin < 40


def test_duplicate_pairs_vary_less():
    plain, paired = (
        win_rate(play_match(NOLIMIT, pair("always-call", "probe"), 4000, duplicate=duplicate))
        for duplicate in (False, True)
    )
    assert paired.margin < plain.margin / 2
    assert abs(paired.mean - plain.mean) < plain.margin + paired.margin


def test_seats_and_deals():
    hands = []
    match = play_match(NOLIMIT, pair("random", "probe"), 40, seed=5, sink=hands.append)
    assert [hand.number for hand in hands] == list(range(40))
    assert [hand.players for hand in hands] == [("random", "probe"), ("probe", "random")] * 20
    assert [hand.cards for hand in hands[::2]] == [hand.cards for hand in hands[1::2]]
    assert len({hand.cards for hand in hands}) == 20
    won = [hand.payoffs[hand.players.index("random")] for hand in hands]
    assert match.results.tolist() == [(one + other) / 2 for one, other in zip(won[::2], won[1::2], strict=True)]

    hands = []
    match = play_match(NOLIMIT, pair("random", "probe"), 40, seed=5, duplicate=False, sink=hands.append)
    assert [hand.players for hand in hands] == [("random", "probe"), ("probe", "random")] * 20
    assert len({hand.cards for hand in hands}) == 40
    assert match.results.tolist() == [hand.payoffs[hand.players.index("random")] for hand in hands]
    dealer = Dealer(NOLIMIT, 5)
    agents = pair("random", "probe")
    assert hands == [dealer.play(n, agents if n % 2 == 0 else agents[::-1]) for n in range(40)]


@pytest.mark.parametrize("name", [name for name in shipped_definitions() if not load_definition(name).stud])
def test_all_games(name):
    match = play_match(load_game(name), pair("random", "probe"), 60)
    assert np.isfinite(match.results).all()


@pytest.mark.parametrize("name", ["kuhn", "leduc", "holdem.limit.2p"])
def test_many_deals_at_once(name):
    """As one by one: decks that are nearly used up, and those of which a few cards are drawn; numbers of any length."""
    game = load_game(name)
    for seed, first in ((0, 0), (-7, 95), (2**64, 10**12)):
        dealer = Dealer(game, seed)
        cards, keys = dealer.deal_many(first, first + 20)
        dealt = map(dealer.deal, range(first, first + 20))
        assert cards.tolist() == [[*deal.holes[0], *deal.holes[1], *deal.board] for deal in dealt]
        assert keys.tolist() == [[*dealer.keys(number)] for number in range(first, first + 20)]


def test_baselines_do_as_their_table_says():
    """Habits of whole actions are remembered: they must be those of `strategy.fixed`."""
    for name, game in product(("always-fold", "always-call", "always-raise", "probe"), (NOLIMIT, LEDUC)):
        habits = BASELINES[name].habits
        seen = []
        play_match(game, (BASELINES["random"], BASELINES[name]), 400, seed=2, sink=seen.append)
        for hand in seen:
            position = game.start()
            for action in _actions(hand.position.history):
                if position.actor == hand.players.index(name):
                    bounds = position.raise_bounds()
                    least = "r" if game is LEDUC else f"r{bounds[0]}" if bounds else ""
                    legal = (*position.passive_actions(), *([least] if bounds else []))
                    assert action_chances(habits, legal)[legal.index(action)] > 0
                position = position.after(action)


def _actions(history):
    """The actions of a betting, one by one."""
    parts = []
    for letter in history:
        if letter.isdigit():
            parts[-1] += letter
        else:
            parts.append(letter)
    return parts


# Memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [True, False])
def test_players_who_remember_have_a_copy_at_each_table(monkeypatch, duplicate):
    """They see the hands of their table, in order, from both seats in turn; nothing is played elsewhere."""
    monkeypatch.setattr(matches, "WORTHWHILE", -1.0)
    monkeypatch.setattr(matches, "_on_processes", None)
    diary, hands = Diary(), []
    players = diary, BASELINES["probe"]
    play_match(LEDUC, players, 400, seed=2, duplicate=duplicate, processes=2, sink=hands.append)
    tables = 2 if duplicate else 1
    assert diary.seen == [] and len(diary.copies) == tables
    for table, copy in enumerate(diary.copies):
        mine = [hand for hand in hands if (hand.number // tables + hand.number) % tables == table]
        seats = [hand.number % 2 for hand in mine]
        assert seats == [(number + table) % 2 for number in range(400 // tables)]
        assert copy.seen == [hand.from_seat(seat) for hand, seat in zip(mine, seats, strict=True)]
        assert [hand.notes[seat] for hand, seat in zip(mine, seats, strict=True)] == copy.notes
        for hand, seen, seat in zip(mine, copy.seen, seats, strict=True):
            assert (seen.hand, seen.board, seen.won) == (hand.cards.holes[seat], hand.board, hand.payoffs[seat])
            assert seen.shown == (() if hand.position.folded is not None else hand.cards.holes[1 - seat])
    assert f"# hand 0: diary: {diary.copies[0].notes[0]}\nSTATE:0:" in format_log_entry(hands[0])


def test_a_player_who_remembers_and_meets_itself_comes_out_even():
    match = play_match(LEDUC, (Diary(), Diary()), 400, seed=3)
    assert not match.results.any()
    assert play_match(LEDUC, (Diary(), Diary()), 400, seed=3, duplicate=False).results.any()


def test_a_match_begins_with_a_player():
    class Lost(Diary):
        def begin(self, game):
            return None

    with pytest.raises(PlayError, match="`begin` of diary returns None, which is no agent that remembers"):
        play_match(LEDUC, (Lost(), Diary()), 2)


# Processes -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_number_of_processes_does_not_matter(monkeypatch):
    settings = {"hands": 700, "seed": 11}
    here, there, ticks = [], [], []
    expected = play_match(NOLIMIT, pair("random", "probe"), **settings, sink=here.append)
    monkeypatch.setattr(matches, "WORTHWHILE", 0.0)
    found = play_match(
        NOLIMIT, ("random", "probe"), **settings, load=baseline, processes=2, sink=there.append, tick=ticks.append
    )
    assert found.results.tolist() == expected.results.tolist()
    assert found.players == expected.players == ("random", "probe")
    assert list(map(format_log_line, there)) == list(map(format_log_line, here))
    assert ticks == sorted(ticks)
    assert ticks[-1] == 700


@pytest.mark.slow
def test_other_processes_do_play(monkeypatch):
    monkeypatch.setattr(matches, "WORTHWHILE", 0.0)
    hands = []
    play_match(NOLIMIT, (Rooted(), BASELINES["always-call"]), 600, processes=2, sink=hands.append)
    assert len({hand.position.history for hand in hands[::2]}) >= 2  # one here, and one or two elsewhere


def test_short_matches_start_no_processes(monkeypatch):
    monkeypatch.setattr(matches, "_on_processes", None)
    assert play_match(LEDUC, pair("random", "probe"), 400, processes=64).hands == 400


@pytest.mark.slow
def test_stopping(monkeypatch):
    for worth, processes in ((1e9, 1), (0.0, 2)):
        monkeypatch.setattr(matches, "WORTHWHILE", worth)
        played = []
        match = play_match(
            NOLIMIT,
            pair("random", "probe"),
            10**8,
            processes=processes,
            tick=played.append,
            stop=lambda played=played: len(played) == 3,
        )
        assert match.hands == played[-1] == 3 * 2 * matches.CHUNK
        assert match.results.tolist() == play_match(NOLIMIT, pair("random", "probe"), match.hands).results.tolist()


def test_tables_travel_without_what_they_loaded():
    table = MatchSetup(LEDUC, ("random", "probe"), load=baseline)
    list(table.hands(0))
    assert "dealer" in vars(table)
    assert "dealer" not in vars(pickle.loads(pickle.dumps(matches.replace(table))))


@pytest.mark.slow
def test_errors_come_back_from_processes(monkeypatch):
    monkeypatch.setattr(matches, "WORTHWHILE", 0.0)
    with pytest.raises(PlayError, match=r"bound or always-call cannot be sent to another process .*or 1 process"):
        play_match(NOLIMIT, (Bound(), BASELINES["always-call"]), 1000, processes=2)
    ended = partial(play_match, NOLIMIT, ("always-call", "probe"), 1000, processes=2)
    with pytest.raises(PlayError, match="cannot be played elsewhere"):
        ended(load=partial(here_only, home=os.getpid()))
    with pytest.raises(PlayError, match="ended without an error message"):
        ended(load=partial(dies_elsewhere, home=os.getpid()))


def test_errors():
    callers = pair("always-call", "always-call")
    with pytest.raises(PlayError, match=r"a match of 1(0){19} … hands is too long: use at most 1,000,000,000"):
        play_match(LEDUC, callers, 10**400)
    with pytest.raises(PlayError, match="5 hands cannot be played: use an even number"):
        play_match(LEDUC, callers, 5)
    with pytest.raises(PlayError, match="0 hands cannot be played: use at least 1"):
        play_match(LEDUC, callers, 0, duplicate=False)
    with pytest.raises(PlayError, match="0 processes: use 1 or more"):
        play_match(LEDUC, callers, 2, processes=0)
    with pytest.raises(
        PlayError, match="the player 'always-call' is a name, which needs `load` to make an agent of it"
    ):
        play_match(LEDUC, ("always-call", "always-call"), 2)
    with pytest.raises(PlayError, match="stubborn failed in hand 1: 'r101' is not legal"):
        play_match(NOLIMIT, (Stubborn(), BASELINES["always-call"]), 2)
    with pytest.raises(PlayError, match="1 players has no matches"):
        crosstable(LEDUC, callers[:1], 2)
    for values in ([], [[1.0]], 3.0):
        with pytest.raises(PlayError, match="needs a row of at least one value"):
            estimate_mean(values)


# Statistics ----------------------------------------------------------------------------------------------------------


def test_intervals_against_naive_ones():
    from scipy import stats  # a second to import

    values = np.random.default_rng(1).normal(3, 20, 500)
    mean, margin = estimate_mean(values)
    low, high = stats.norm.interval(0.95, values.mean(), stats.sem(values))
    assert estimate_mean(values).interval == pytest.approx((low, high))
    assert (mean - margin, mean + margin) == pytest.approx((low, high))
    assert margin == pytest.approx(1.959964 * np.sqrt(sum((values - mean) ** 2) / 499 / 500))
    assert estimate_mean([4.0]) == (4.0, float("inf"))
    assert str(Estimate(-0.04, 0.0)) == "+0.0 ± 0.0"


def test_quantiles_of_students_distribution():
    from scipy.special import stdtrit

    levels = np.array([0.55, 0.6, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999])
    for freedom in (*range(2, 200), 1000, 2999):
        found = [student_quantile(level, freedom) for level in levels]
        np.testing.assert_allclose(found, stdtrit(freedom, levels), rtol=1e-12)
    normal = [student_quantile(level, 1_000_001) for level in levels]
    np.testing.assert_allclose(normal, stdtrit(1_000_001, levels), rtol=1e-9)
    assert student_quantile(0.5, 7) == 0


def test_intervals_hold_the_mean_as_often_as_they_say():
    draws = np.random.default_rng(2).exponential(1.0, (2000, 100)) - 1
    held = [abs(mean) <= margin for mean, margin in map(estimate_mean, draws)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.025)


def test_rates_are_of_matches():
    match = play_match(LEDUC, pair("random", "probe"), 600, seed=4)
    chips = match.results  # per hand; the blinds of leduc are 1 chip
    assert win_rate(match).mean == pytest.approx(1000 * chips.mean())
    assert win_rate(match).margin == pytest.approx(1960 * chips.std(ddof=1) / np.sqrt(300), rel=1e-4)


def test_crosstable():
    names = ["always-fold", "always-call", "probe", "random"]
    ticks = []
    table = crosstable(LEDUC, [BASELINES[name] for name in names], 400, seed=9, tick=ticks.append)
    assert table.players == tuple(names)
    assert ticks[-1] == 6 * 400
    for row, column in product(range(4), repeat=2):
        rate = table.rate(row, column)
        if row == column:
            assert rate is None
        else:
            expected = win_rate(play_match(LEDUC, pair(names[row], names[column]), 400, seed=9))
            assert rate == pytest.approx(expected)
    for row in range(4):
        mean = table.mean(row)
        rates = [table.rate(row, column) for column in range(4) if column != row]
        assert mean.mean == pytest.approx(np.mean([rate.mean for rate in rates]))
        assert mean.margin <= np.mean([rate.margin for rate in rates]) + 1e-9
    assert sum(table.mean(row).mean for row in range(4)) == pytest.approx(0)


def test_a_crosstable_that_was_stopped():
    ticks = []
    players = [BASELINES[name] for name in ("always-call", "probe", "random")]
    table = crosstable(LEDUC, players, 2, tick=ticks.append, stop=lambda: len(ticks) == 2)
    assert list(table.matches) == [(0, 1), (0, 2)]
    assert table.rate(1, 2) is None
    assert table.mean(0) is not None
    assert table.mean(1) is None


# Commands ------------------------------------------------------------------------------------------------------------


def test_match_command(tmp_path):
    log = tmp_path / "match.log"
    said = answer("match", "probe", "random", "-g", "leduc", "--hands", "200", "--log", str(log))
    rate = win_rate(play_match(LEDUC, pair("probe", "random"), 200))
    assert said["mbb_per_hand"] == pytest.approx(rate.mean)
    assert said["ci95"] == pytest.approx(rate.interval)
    assert (said["hands"], said["game"], said["players"]) == (200, "leduc", ["probe", "random"])
    played = read_log(log.read_text(), LEDUC)
    assert len(played.hands) == 200
    assert played.score.names == ("probe", "random")
    assert played.score.chips[0] == pytest.approx(200 * rate.mean / 1000)
    assert played.comments == ["# name/game/hands/seed probe.random leduc 200 0"]
    assert "mbb/h" in kilt("match", "probe", "random", "-g", "leduc", "--hands", "20", "--no-duplicate").stdout


def test_match_command_with_many_players():
    said = answer("match", "probe", "random", "always-fold", "-g", "leduc", "--hands", "20")
    assert [match["players"] for match in said["matches"]] == [["probe", "random"], ["probe", "always-fold"]]
    assert "mbb_per_hand" not in said


def test_classes_of_ones_own_play_on_processes_too(tmp_path, monkeypatch):
    """A process loads the file for itself: nothing is pickled."""
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr(matches, "WORTHWHILE", 0.0)
    file = tmp_path / "caller.py"
    file.write_text("class Caller:\n    name = 'caller'\n\n    def act(self, observation):\n        return 'c'\n")
    said = [
        answer("match", f"{file}:Caller", "random", "-g", "leduc", "--hands", "1000", "--processes", n) for n in "12"
    ]
    rate = win_rate(play_match(LEDUC, pair("always-call", "random"), 1000))
    assert [one["mbb_per_hand"] for one in said] == [pytest.approx(rate.mean)] * 2
    assert said[0]["players"] == ["caller", "random"]


def test_one_deal_has_no_interval():
    said = answer("match", "probe", "random", "-g", "leduc", "--hands", "2")
    assert said["ci95"] is None


def test_crosstable_command():
    said = answer("crosstable", "probe", "random", "always-fold", "-g", "leduc", "--hands", "40")
    assert said["rates"][0][0] is None
    assert said["rates"][0][2]["mbb_per_hand"] == -said["rates"][2][0]["mbb_per_hand"]
    assert sum(mean["mbb_per_hand"] for mean in said["means"]) == pytest.approx(0)
    assert "mean" in kilt("crosstable", "probe", "random", "-g", "leduc", "--hands", "40").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["probe", "-g", "leduc"], "a match has two"),
        (["probe", "random"], "give the `game`"),
        (["probe", "nobody", "-g", "leduc"], "nobody"),
        (["probe", "random", "-g", "bluff-1-1"], "bluff-1-1 is not poker"),
        (["probe", "random", "-g", "leduc", "-n", "3"], "even number"),
        (["probe", "random", "-g", "leduc", "--processes", "0"], "0 processes"),
        (["probe", "random", "-g", "leduc", "--log", "no/such/folder"], "has no folder"),
        (["probe", "random", "random", "-g", "leduc", "--log", "x.log"], "for one match"),
    ],
)
def test_refusals(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refused("match", *arguments)
    assert not list(tmp_path.iterdir())


def test_logs_are_not_overwritten(tmp_path):
    path = tmp_path / "my.log"
    path.write_text("mine")
    assert "is there already" in refused("match", "probe", "random", "-g", "leduc", "--hands", "2", "--log", str(path))
    assert path.read_text() == "mine"


@pytest.mark.slow
def test_interrupting_a_match(tmp_path):
    """Ctrl-C ends it early, on two processes too, and the figures are of what was played."""
    log = tmp_path / "match.log"
    command = [sys.executable, "-m", "kilt", "match", "probe", "random", "-g", "leduc", "--hands", str(10**7), "--json"]
    process = subprocess.Popen(
        [*command, "--processes", "2", "--log", str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (log.exists() and log.stat().st_size > 200_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=60)
    assert process.returncode == 130, complaints
    assert "stopped early" in complaints
    played = read_log(log.read_text(), LEDUC)
    assert len(played.hands) == json.loads(said)["hands"]
    assert played.score is None


def test_logs_are_read_back(tmp_path):
    """What a match wrote, and a log that broke off."""
    path, other = tmp_path / "match.log", tmp_path / "hands.phhs"
    arguments = ("--game", "holdem.nolimit.2p", "--hands", 60)
    played = answer("match", "probe", "always-call", *arguments, "--log", path)
    said = answer("evaluate", "log", path, "--game", "holdem.nolimit.2p", "--out", other)
    assert said["mbb_per_hand"] == pytest.approx(-played["mbb_per_hand"])  # of always-call, the first by name
    assert (said["hands"], said["complete"], said["players"]) == (60, True, ["always-call", "probe"])
    assert other.read_text().count("variant") == 60
    assert answer("evaluate", "log", other, "--game", "holdem.nolimit.2p") == said  # PHH is read too
    judged = [
        answer("evaluate", "log", file, "--game", "holdem.nolimit.2p", "--player", "probe", "-e", "all-cards")
        for file in (path, other)
    ]
    assert judged[0] == judged[1] and judged[0]["hands"] == 60
    path.write_text("\n".join(path.read_text().splitlines()[:11]))
    assert "broke off" in kilt("evaluate", "log", path, "--game", "holdem.nolimit.2p").stderr
    assert "is there already" in refused("evaluate", "log", path, "--game", "holdem.nolimit.2p", "--out", other)
    path.write_text("# nothing\n")
    assert "has no hands" in refused("evaluate", "log", path, "--game", "holdem.nolimit.2p")
    assert "cannot be read" in refused("evaluate", "log", tmp_path / "none", "--game", "leduc")


def test_names_from_outside_are_printed_as_they_are(tmp_path):
    """Brackets and colons are no markup, letters may be Latin-1, and one hand has no interval in JSON."""
    path, where = tmp_path / "[bold]:0:.log", ("--game", "holdem.nolimit.2p")
    path.write_bytes("STATE:0:f:8dJd|Td4d:50|-50:[my]bot|Zoë\n".encode("latin-1"))
    shown = kilt("evaluate", "log", path, *where, "--out", tmp_path / "out.phhs").stdout
    assert "[my]bot" in shown and "Zoë" in shown and "[bold]:0:" in "".join(map(str.strip, shown.splitlines()))
    assert answer("evaluate", "log", path, *where)["ci95"] == [None, None]
    assert 'players = ["[my]bot", "Zoë"]' in (tmp_path / "out.phhs").read_text(encoding="utf-8")


def test_a_log_of_one_player_against_itself_is_refused_at_once(tmp_path):
    path = tmp_path / "my.log"
    assert "both players are called" in refused("match", "probe", "probe", "-g", "leduc", "--hands", 2, "--log", path)
    assert not path.exists()


def test_decisions_are_counted_and_timed_for_each_player():
    game, asked = load_game("leduc"), [0, 0]

    class Counting:
        def __init__(self, place):
            self.place, self.name = place, f"counting {place}"

        def act(self, observation):
            asked[self.place] += 1
            return BASELINES["probe"].act(observation)

    match = play_match(game, (Counting(0), Counting(1)), 300)
    assert [one.decisions for one in match.thinking] == asked
    assert all(one.cpu_seconds > 0 for one in match.thinking)
    assert match.thinking[0].milliseconds == pytest.approx(1000 * match.thinking[0].cpu_seconds / asked[0])
