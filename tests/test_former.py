"""Old spellings of commands and options work for one release, with a hint; today's give the same result."""

import json
import subprocess
import sys

import pytest

from commands import answer, kilt, refused
from kilt.cli import options
from kilt.cli.former import COMMANDS, OPTIONS, renewed
from kilt.errors import RunError

# What was typed, and what is typed now.
SPELLINGS = {
    "solve --game kuhn -n 5": "solve kuhn -n 5",
    "solve -g kuhn --minutes 2": "solve kuhn --time 2min",
    "solve --game=kuhn -m0.5": "solve kuhn --time 0.5min",
    "solve kuhn -t 0.01": "solve kuhn --target 0.01",
    "solve kuhn -t 1e-3": "solve kuhn --target 1e-3",
    "solve --resume runs/a --minutes=3": "solve runs/a --time 3min",
    "counter my.toml --model m --p 0.9 -m 5": "counter my.toml --model m --p 0.9 --time 5min",
    "demo --minutes 0.1": "demo --time 0.1min",
    "abstraction build lossless --minutes 5": "abstraction build lossless --time 5min",
    "spot solve --board QsJh2h7d --seconds 5 --save out -t 0.5": (
        "spot solve --board QsJh2h7d --time 5s --out out --target 0.5"
    ),
    "match a b --processes 2": "match a b --workers 2",
    "crosstable a b c --processes 2": "match --all a b c --workers 2",
    "evaluate lbr a --processes 2": "evaluate lbr a --workers 2",
    "evaluate log hands.log --processes 2": "evaluate log hands.log --workers 2",
    "evaluate exploitability --game leduc --agent uniform": "evaluate exploitability --game leduc uniform",
    "plan my.toml --no-probe": "estimate my.toml --no-probe",
    "plan --game holdem.3-1 --machines 4": "estimate holdem.3-1 --machines 4",
    "plan --example": "new",
    "plan --example tartanian7": "new --like tartanian7",
}


@pytest.mark.parametrize("old", SPELLINGS)
def test_old_spellings_become_todays(old):
    hints = []
    assert " ".join(renewed(old.split(), hints.append)) == SPELLINGS[old]
    assert hints == [f"kilt {old} is now kilt {SPELLINGS[old]}; the old spelling goes in kilt 0.3"]
    assert renewed(SPELLINGS[old].split(), hints.append) == SPELLINGS[old].split() and len(hints) == 1


def test_every_option_of_the_table_is_respelled():
    tried = {word.partition("=")[0] for old in SPELLINGS for word in old.split()} | {"-m"}
    for command, table in OPTIONS.items():
        for option in table:
            assert option in tried and option not in renewed([*command, option, "5"]), (command, option)
    assert all(any(tuple(old.split()[: len(command)]) == command for old in SPELLINGS) for command in COMMANDS)


def test_what_is_typed_either_way(tmp_path):
    """The hint is on standard error; what is printed for programs is the same."""
    old = kilt("solve", "--game", "kuhn", "-n", 20, "--out", tmp_path / "old", "--json")
    new = kilt("solve", "kuhn", "-n", 20, "--out", tmp_path / "new", "--json")
    assert "hint: kilt solve --game kuhn" in old.stderr and "hint" not in new.stderr
    first, second = (json.loads(found.stdout) for found in (old, new))
    assert first["exploitability"] == second["exploitability"]
    assert answer("solve", "--resume", tmp_path / "old", "-n", 40)["iterations"] == 40
    assert answer("solve", tmp_path / "new", "-n", 40)["iterations"] == 40
    uniform = answer("evaluate", "exploitability", "uniform", "--game", "leduc")
    assert answer("evaluate", "exploitability", "-g", "leduc", "--agent", "uniform") == uniform
    assert answer("match", "probe", "random", "-g", "leduc", "--all", "-n", 20)["players"] == ["probe", "random"]
    assert kilt("plan", "--example").stdout == kilt("new").stdout
    kilt("new", tmp_path / "my.toml")
    assert (tmp_path / "my.toml").read_text() == kilt("new").stdout
    assert "is there already" in refused("new", tmp_path / "my.toml")


def test_times_and_targets():
    assert [options.seconds_of(text) for text in ("90s", "1.5min", "2h", "1e-3s", 3.0)] == [90, 90, 7200, 1e-3, 3]
    for wrong in ("5", "min", "5 days", "", "1..s"):
        with pytest.raises(RunError, match="give a number with a unit, such as 90s, 10min or 2h"):
            options.seconds_of(wrong)
    assert answer("solve", "kuhn", "--target", "30mbb")["exploitability"] <= 0.03
    assert answer("solve", "kuhn", "--target", "0.03", "-n", 10**6, "--time", "10min")["exploitability"] <= 0.03
    for target, words in (("nonsense", "give chips per game"), ("-1", "above 0")):
        assert words in refused("solve", "kuhn", "--target", target)
    assert "has no big blind" in refused("solve", "bluff-1-1", "--target", "1mbb")


def test_help_is_quick_and_imports_nothing_heavy():
    code = "import sys, kilt.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numba", "scipy", "matplotlib", "ray", "fastapi", "cupy"} & set(found)
