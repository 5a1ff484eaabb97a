"""Old spellings of commands and options work for one release, with a hint; today's give the same result."""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import typer

from commands import answer, kilt, refused
from kilt.cli import app, options
from kilt.cli.former import COMMANDS, FLAGS, OPTIONS, current_spelling
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
    "solve leduc --tilt 7,0,0,7": "solve leduc --set tilt=[7,0,0,7]",
    "solve my.toml --engine local --batch 64": "solve my.toml --engine local --set engine.batch=64",
    "counter --game leduc --model m --p 0.9": "counter leduc --model m --p 0.9",
    "counter -g leduc --log hands.log --player Ann": "counter leduc --model hands.log --player Ann",
    "counter nash --model m --p-max 0.9": "counter nash --model m --p 0.9 --confidence 0-10-linear",
    "counter nash --model m --confidence s-curve --p-max 0.9": "counter nash --model m --confidence s-curve --p 0.9",
    "model hands.log --player Ann --game leduc": "model hands.log --player Ann --for leduc",
    "model hands.log --player Ann -g leduc": "model hands.log --player Ann --for leduc",
    "demo -n 20": "demo --hands 20",
    "build strong --bb 50 --hours 2": "build strong --bb 50 --time 2h",
    "abstraction boards --clusters 10 --base pa -b pa": ("abstraction boards --classes 10 --set base=pa --set base=pa"),
    "abstraction boards -m schmid --exact --restarts 9": (
        "abstraction boards -m schmid --set exact=true --set restarts=9"
    ),
    "abstraction boards --clustering sum --ground history": (
        "abstraction boards --set clustering=sum --set ground=history"
    ),
    "spot solve --resume runs/spot --target 0.1": "spot solve runs/spot --target 0.1",
    "spot solve --after x --rake 5 --rake-cap 3 --big-blind 2": (
        "spot solve --set after=x --set rake=5 --set rake_cap=3 --set big_blind=2"
    ),
    "spot solve --all-in-threshold 0.7 --compact": "spot solve --set all_in_threshold=0.7 --set compact=true",
    "spot solve my.toml --no-compact": "spot solve my.toml --set compact=false",
    "spot show runs/spot --hands AK --grid a.png -l x": "spot show runs/spot --range AK --picture a.png --line x",
    "play house -n 20": "play house --hands 20",
    "match a b -n20": "match a b --hands 20",
    "dealer leduc -n 5 --start-seconds 9 --response-seconds 2": (
        "dealer leduc --hands 5 --set start=9 --set response=2"
    ),
    "dealer leduc --hand-seconds 6 --per-hand-seconds 7 --max-invalid 0": (
        "dealer leduc --set hand=6 --set per_hand=7 --set invalid=0"
    ),
    "slumbot -n 5 --url http://a --timeout 3 --tries 2 --wait 0": (
        "slumbot --hands 5 --set url=http://a --set timeout=3 --set tries=2 --set wait=0"
    ),
    "slumbot house --no-aivat": "slumbot house --way played",
    "slumbot house --aivat": "slumbot house --way aivat",
    "evaluate lbr a -n 20 --from river": "evaluate lbr a --hands 20 --round river",
    "evaluate sanity a -n 20": "evaluate sanity a --deals 20",
    "evaluate log --player a hands.log --phh out.phhs": "evaluate log hands.log --out out.phhs a",
    "evaluate exploitability a --responses best": "evaluate exploitability a --out best",
    "plan my.toml --no-probe": "estimate my.toml",
    "web --browser": "web",
    "plan --game holdem.3-1 --machines 4": "estimate holdem.3-1 --machines 4",
    "plan --example": "new",
    "plan --example tartanian7": "new --like tartanian7",
}


@pytest.mark.parametrize("old", SPELLINGS)
def test_old_spellings_become_todays(old):
    hints = []
    assert " ".join(current_spelling(old.split(), hints.append)) == SPELLINGS[old]
    assert hints == [f"kilt {old} is now kilt {SPELLINGS[old]}; the old spelling goes in kilt 0.3"]
    assert current_spelling(SPELLINGS[old].split(), hints.append) == SPELLINGS[old].split() and len(hints) == 1


def test_every_option_of_the_table_is_respelled():
    tried = {word.partition("=")[0] for old in SPELLINGS for word in old.split()} | {"-m", "-n"}
    for command, table in OPTIONS.items():
        for option in table:
            assert option in tried and option not in current_spelling([*command, option, "5"]), (command, option)
    for command, flags in FLAGS.items():
        assert all(flag in tried and flag not in current_spelling([*command, flag]) for flag in flags), command
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
    for target, words in (("nonsense", "use chips per game"), ("-1", "above 0")):
        assert words in refused("solve", "kuhn", "--target", target)
    assert "has no big blind" in refused("solve", "bluff-1-1", "--target", "1mbb")


def test_help_is_quick_and_imports_nothing_heavy():
    code = "import sys, kilt.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numba", "scipy", "matplotlib", "ray", "fastapi", "cupy"} & set(found)


def test_options_are_declared_once():
    """A new option is a key of a record, for --set, or takes the place of another one."""
    kinds, names = Counter(), Counter()
    for path in Path(options.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.Option", "typer.Argument"):
                kinds[ast.unparse(node.func)] += 1
                spellings = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                names.update(spelling for spelling in spellings if str(spelling).startswith("--"))
    assert kinds["typer.Option"] <= 80 and kinds["typer.Argument"] <= 15
    assert [name for name, times in names.items() if times > 1] == []


def test_settings(tmp_path):
    assert options.settings(None) == {}
    assert options.settings(["rake=5", "after=b3 c", "base=IR-KE-KO 5", "a.b=[1, 2]"]) == {
        "rake": 5, "after": "b3 c", "base": "IR-KE-KO 5", "a.b": [1, 2]
    }  # fmt: skip
    for wrong in ("rake", "=5", ""):
        with pytest.raises(RunError, match="give KEY=VALUE"):
            options.settings([wrong])
    kilt("new", tmp_path / "my.toml")
    said = refused("solve", tmp_path / "my.toml", "--set", "solver.colour=3")
    assert "[solver] has no key colour: use algorithm" in said
    assert "has no keys of its own" in refused("solve", tmp_path / "my.toml", "--set", "game.colour=3")
    assert "`near` is about abstract games" in refused("solve", "kuhn", "--set", "near=1")


def test_errors_name_the_options_of_the_command():
    """The library speaks of parameters; the command line says which options they are."""
    command = typer.main.get_command(app)
    for words, message, found in (
        (["solve", "kuhn"], "leave out `device`, or give `seconds`", " (on the command line: --device, --time)"),
        (["evaluate", "exploitability", "a"], "leave out `flops`", " (on the command line: --flops)"),
        (["solve", "kuhn"], "`seed` in [solver] is -1: give 0 or more", ""),
        (["solve", "kuhn"], "leave out `flops`, or --device with `device`", ""),
        (["nonsense"], "leave out `device`", ""),
    ):
        assert options.with_options(message, words, command) == message + found
    shown = subprocess.run(
        [sys.executable, "-m", "kilt", "solve", "kuhn", "-a", "lp", "--device", "gpu"], capture_output=True, text=True
    )
    assert shown.returncode == 2 and shown.stderr.rstrip().endswith("omit `device` (on the command line: --device)")
