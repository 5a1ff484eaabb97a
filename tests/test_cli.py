import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kilt import __version__
from kilt.cli import app, main
from kilt.errors import MissingPeerError

LIMIT = """GAMEDEF
limit
numPlayers = 2
numRounds = 1
blind = 1 1
raiseSize = 1
maxRaises = 1
numSuits = 1
numRanks = 3
numHoleCards = 1
numBoardCards = 0
END GAMEDEF
"""


def kilt(*arguments):
    """Run a command that must work."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.output


def refused(*arguments):
    """Run a command as its entry point does; it must fail in one line. Returns that line."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["kilt", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code == 2, err.getvalue()
    assert out.getvalue() == ""
    assert "Traceback" not in err.getvalue()
    assert len(err.getvalue().strip().splitlines()) == 1, err.getvalue()
    return err.getvalue()


@pytest.mark.parametrize(
    "command", [[], ["game"], ["game", "size"], ["cards"], ["cards", "equity"], ["bench", "cards"]]
)
def test_help(command):
    assert "Usage" in kilt(*command, "--help")


def test_version():
    assert kilt("--version") == f"kilt {__version__}\n"


def test_versions_for_bug_reports():
    found = json.loads(kilt("--version", "--json"))
    assert found["kilt"] == __version__ and found["packages"]["numba"] == version("numba")
    assert "fastapi" in found["extras"] and str(Path.home()) not in json.dumps(found)


def test_importing_kilt_compiles_nothing_and_loads_no_compiler():
    code = "import sys, kilt, kilt.cli; sys.exit('numba' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_game_list():
    games = json.loads(kilt("game", "list", "--json"))
    assert "holdem.nolimit.2p" in games
    assert "holdem.nolimit.2p" in kilt("game", "list")


@pytest.mark.parametrize("name", ["kuhn", "bluff-1-1", "holdem.nolimit.2p"])
def test_game_show(name):
    assert name in kilt("game", "show", name)


def test_game_show_json():
    shown = json.loads(kilt("game", "show", "leduc", "--json"))
    assert (shown["hands"], shown["first_player"], shown["rules"]["raise_sizes"]) == ([6, 6], 1, [2, 4])
    assert json.loads(kilt("game", "show", "bluff-1-1", "--json"))["rules"] == {}


def test_game_show_file(tmp_path):
    path = tmp_path / "my.game"
    path.write_text(LIMIT)
    assert "3 cards" in kilt("game", "show", str(path))


def test_game_size_json():
    size = json.loads(kilt("game", "size", "holdem.limit.2p", "--json"))
    assert size["information_sets"] == 319_365_922_522_608
    assert size["canonical_information_sets"] == 8 * 169 + 70 * 1286792 + 630 * 55190538 + 5670 * 2428287420
    assert {"states", "information_sets", "canonical_information_sets", "infoset_actions"} <= set(size)
    assert all(isinstance(size[key], int) for key in ("states", "infoset_actions"))


def test_game_size_of_abstractions():
    size = json.loads(
        kilt("game", "size", "holdem.limit.2p", "-a", "PR 10-10-10-10", "-a", "IR 169-9000-9000-9000", "--json")
    )
    assert [a["information_sets"] for a in size["abstractions"]] == [57_337_080, 57_331_352]
    assert "57,331,352" in kilt("game", "size", "holdem.limit.2p", "-a", "IR 169-9000-9000-9000")


def test_game_size_of_bluff():
    size = json.loads(kilt("game", "size", "bluff-2-2", "--json"))
    assert size["information_sets"] == 21 * 2**24


def test_cards_strength():
    assert "full house, kings full of aces" in kilt("cards", "strength", "AsAhKdKcKs9d2c")
    assert json.loads(kilt("cards", "strength", "AsKsQsJsTs", "--json"))["strength"] == 7461


def test_cards_equity():
    result = json.loads(kilt("cards", "equity", "AsAh", "KsKh", "--json"))
    assert result["equity"] == pytest.approx(0.82637, abs=1e-5)
    assert "equity" in kilt("cards", "equity", "AsKh", "QQ+,AKs", "--board", "2c7d9h")
    river = json.loads(kilt("cards", "equity", "AsKh", "-b", "2c7d9hTsJs", "--json"))
    assert river["opponent"] == "random"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cards", "strength", "AsAs"], ["As", "twice"]),
        (["cards", "strength", "AsZz"], ["Zz", "unknown"]),
        (["cards", "strength", "AsKs"], ["2 cards", "5, 6 or 7"]),
        (["cards", "equity", "AsKh", "AsQh,[x]"], ["[x]"]),
        (["cards", "equity", "AsKh", "--board", "AsQd2c"], ["As", "in use"]),
        (["cards", "equity", "AsKh", "--board", "2c3c4c5c6c7c"], ["6 cards", "0, 3, 4 or 5"]),
        (["cards", "equity", "AsKh", "--board", "2c3c"], ["2 cards", "0, 3, 4 or 5"]),
        (["game", "show", "nonesuch"], ["nonesuch", "kuhn"]),
        (["game", "size", "kuhn", "-a", "XX 3"], ["XX 3", "PR"]),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, words):
    line = refused(*arguments)
    assert line.startswith("error: ")
    assert all(word in line for word in words), line


def test_mistakes_in_a_process_of_its_own():
    arguments = ["game", "show", "nonesuch"]
    done = subprocess.run([sys.executable, "-m", "kilt", *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == refused(*arguments)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("blind = 1 1", "blind = 1"), ["blind", "line 5"]),
        (("numRanks = 3", "numRanks = 1"), ["deck", "2"]),
        (("numRounds = 1", "numRounds = 1\nstack = 0 5"), ["stack", "0"]),
        (("limit\n", "limit\nnolimit\n"), ["line"]),
        (("END GAMEDEF\n", ""), ["END GAMEDEF"]),
    ],
)
def test_broken_game_files(tmp_path, change, words):
    path = tmp_path / "my.game"
    path.write_text(LIMIT.replace(*change))
    line = refused("game", "show", str(path))
    assert "my.game" in line
    assert all(word in line for word in words), line


def test_three_player_files_are_read_but_not_built(tmp_path):
    path = tmp_path / "three.game"
    path.write_text(LIMIT.replace("numPlayers = 2", "numPlayers = 3").replace("blind = 1 1", "blind = 1 1 1"))
    assert "3 players" in refused("game", "show", str(path))


def test_bench_without_its_peer(monkeypatch):
    monkeypatch.setitem(sys.modules, "phevaluator", None)
    result = CliRunner().invoke(app, ["bench", "cards"])
    assert "pip install" in str(result.exception)


@pytest.mark.slow
def test_bench_cards(monkeypatch):
    """All promised figures are there; how large they are is for people to judge."""
    from kilt_lab.benchmarks import cards as bench

    monkeypatch.setattr(bench, "SEVEN", 2000)
    monkeypatch.setattr(bench, "PEER_HANDS", 200)
    monkeypatch.setattr(bench, "BOARDS", 20)
    monkeypatch.setattr(bench, "ROUNDS", 1)
    figures = json.loads(kilt("bench", "cards", "--json"))
    promised = "seven_card_per_second ratio_to_phevaluator river_board_us canonical_index_per_second startup_seconds"
    assert set(promised.split()) <= set(figures)
    assert all(value > 0 for value in figures.values())


def test_bench_spots_beside_a_peer(tmp_path):
    """A stand-in prints what TexasSolver does: the time is that of the last look, if that is near enough."""
    from kilt_lab.benchmarks.spots import BETS, spot
    from kilt_lab.benchmarks.texas_solver import commands, require, seconds_of

    peer, told = tmp_path / "console_solver", commands(spot("turn"), BETS["turn"], 0.5, 2)
    for line in (
        "set_board Qs,Jh,2h,Tc",
        "set_bet_sizes oop,turn,raise,60",
        "set_bet_sizes oop,river,donk,50",
        "set_accuracy 0.5",
        "set_thread_num 2",
    ):
        assert line in told.splitlines()
    assert "flop" not in told and told.endswith("start_solve\n")
    with pytest.raises(MissingPeerError, match="is not an executable program"):
        require(peer)
    looks = "Iter: 0\nTotal exploitability 71.5 precent\nIter: 11\nTotal exploitability {} precent\ntime used: 6.871\n"
    for left in ("0.49", "0.51"):
        # Its own parser takes a command and one word without spaces on each line.
        known = "grep -Evq '^(set_[a-z_]+ [^ ]+|build_tree|start_solve)$' $2 && exit 3"
        peer.write_text(f"#!/bin/sh\n{known}\ngrep -q start_solve $2 && cat <<END\n{looks.format(left)}END\n")
        peer.chmod(0o755)
        if left == "0.49":
            assert seconds_of(require(peer), told, 0.5) == 6.871
    with pytest.raises(MissingPeerError, match=r"did not solve the spot to 0.5% of the pot, .* 'time used: 6.871'"):
        seconds_of(peer, told, 0.5)
    assert "give the path of TexasSolver" in refused("bench", "spots", "--peer", str(tmp_path))


def test_bench_start(monkeypatch):
    from kilt_lab.benchmarks import start as bench

    assert len(bench.COMMANDS) == 10
    monkeypatch.setattr(bench, "COMMANDS", {key: bench.COMMANDS[key] for key in ("help", "game_list")})
    figures = json.loads(kilt("bench", "start", "--long", "--json"))
    assert list(figures) == ["help_cold_cpu", "help_warm_cpu", "game_list_cold_cpu", "game_list_warm_cpu", "cold_cpu"]
    assert figures["cold_cpu"] == pytest.approx(figures["help_cold_cpu"] + figures["game_list_cold_cpu"])
    assert all(value > 0 for value in figures.values())


@pytest.mark.parametrize("command", [["evaluate", "lbr"], ["spot", "solve"], ["dealer"]])
def test_help_fills_the_lines_of_the_terminal(command, monkeypatch):
    """No line of a paragraph ends where the docstring's line ends: the next word would not have fitted."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    found = kilt(*command, "--help")
    lines = [line.strip() for line in found.partition("╭")[0].splitlines()]
    pairs = [(line, following) for line, following in pairwise(lines) if line and following]
    assert len(pairs) > 3
    assert all(len(line) + 1 + len(following.split()[0]) > 78 for line, following in pairs)
    assert "<bool>" not in found + kilt("--help")


SPOT = ["spot", "solve", "--board", "QsJh2h7d", "--pot", "6", "--stacks", "20"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cards", "equity", "AA", "KK"], "AA is a range of 6 hands: give one hand first"),
        (["evaluate", "log", "none.log"], "none.log cannot be read"),
        (["solve", "runs/none"], "runs/none does not exist"),
        (["spot", "show", "none"], "none does not exist"),
        ([*SPOT, "--ranges", "AA", "--bets", "a"], "--ranges takes --bets as a range: give two"),
        ([*SPOT, "--bets", "a", "--ranges", "AA", "KKK"], "the range of player 2: 'KKK' is not"),
        (["match", "bot.py", "random"], "bot.py is a file of Python: name a class in it, such as bot.py:MyAgent"),
    ],
)
def test_first_errors_of_newcomers_name_the_remedy(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bot.py").touch()
    assert said in refused(*arguments)
