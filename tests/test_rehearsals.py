"""After `kilt setup`, what people type first compiles nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kilt
from commands import answer, refused
from kilt import jit, rehearsals
from kilt.errors import RunError

# In one process, whose caches of tables are empty: all rehearsals, then what people type. Of each, the kernels that it
# called with types of arguments that had not been called before.
FIRST = """
import json, os, sys
from pathlib import Path
from commands import kilt
from kilt import jit
from kilt.players.reference import player
from kilt.rehearsals import REHEARSALS, rehearse
from kilt.web.tables import DEAL, WebTable
from kilt_lab.benchmarks.start import COMMANDS, CONFIG

folder = Path(sys.argv[1])
rehearse(list(REHEARSALS), folder)
Path("my.toml").write_text(CONFIG)
os.environ["KILT_CACHE"] = str(folder / "again")

def deal():
    agent, game = player("house").at()
    table = WebTable.open("house", agent, game, seed=1)
    table.send(DEAL)
    table.state()
    table.leave()

def play():
    sys.stdin = open("typed")
    kilt("play", "--seed", 1, "--hands", 2)

Path("typed").write_text("call\\n" * 20)
spot = ["--pot", 10, "--stacks", 30, "--ranges", "QQ+,AK", "JJ+,AQ", "--bets", "50%, a", "--iterations", 2]
first = {key: (lambda command=command: kilt(*command)) for key, command in COMMANDS.items() if command != ["--help"]}
first |= {"play": play, "deal": deal}
for board, threads in (("Qs Jh 2h", 2), ("Qs Jh 2h 7c", 1), ("Qs Jh 2h 7c", 2), ("Qs Jh 2h 7c 5d", 1)):
    more = ["--board", board, "--threads", threads]
    first[f"spot {board} {threads}"] = lambda more=more: kilt("spot", "solve", *more, *spot)
new = {}
for name, work in first.items():
    before = jit.called_kernels()
    work()
    new[name] = sorted(map(str, jit.called_kernels() - before))
print(json.dumps({"new": new, "called": len(jit.called_kernels())}))
"""


def first_calls(tmp_path):
    """What each of the first commands compiles after all rehearsals."""
    code = tmp_path / "first.py"
    code.write_text(FIRST)
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths, "KILT_CACHE": str(tmp_path / "tables")}
    (tmp_path / "rehearsals").mkdir()
    command = [sys.executable, str(code), str(tmp_path / "rehearsals")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_after_setup_nobody_who_types_the_first_commands_waits_for_kernels(tmp_path):
    found = first_calls(tmp_path)
    assert found["called"] > 30
    assert {name: new for name, new in found["new"].items() if new} == {}


@pytest.fixture
def one_rehearsal(tmp_path, monkeypatch):
    """One short rehearsal, and a cache folder of its own."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path))
    monkeypatch.setattr(rehearsals, "REHEARSALS", {"equity": rehearsals.REHEARSALS["equity"]})


def test_a_second_setup_knows_that_everything_is_compiled(one_rehearsal, monkeypatch):
    heard = []
    done = kilt.setup(workers=2, tick=lambda name, share: heard.append((name, share)))
    assert done.workers == 1 and heard == [("equity", 1.0)]
    assert answer("setup") | {"seconds": 0} == {"seconds": 0, "compiling": 0.0, "workers": 0}
    # Other versions of compilers or processors, or other sources, have to compile again.
    monkeypatch.setattr(jit, "compile_target", lambda: "another processor")
    assert not rehearsals.is_ready()
    monkeypatch.undo()


def test_as_many_processes_as_memory_has_room_for(monkeypatch):
    monkeypatch.setattr(jit, "cores", lambda: 64)
    for room, workers in ((0, 1), (1_100_000_000, 2), (10**12, 3)):
        monkeypatch.setattr(rehearsals, "available_memory", lambda room=room: room)
        assert rehearsals.workers_for(3) == workers


def test_kernels_that_were_removed_are_compiled_again(one_rehearsal):
    kilt.setup()
    (mark,) = (Path(os.environ["KILT_CACHE"]) / "compiled").iterdir()
    mark.write_text('["/no/such/file.nbi"]')
    assert not rehearsals.is_ready()
    assert kilt.setup().workers == 1 and rehearsals.is_ready()


def test_what_cannot_be_set_up_is_said(one_rehearsal, monkeypatch):
    assert "the number of processes is 0" in refused("setup", "--workers", 0)
    monkeypatch.setattr(rehearsals, "REHEARSALS", {"nobody": rehearsals.Rehearsal(print, 1)})
    with pytest.raises(RunError, match="for 'nobody'"):
        kilt.setup()
    assert not rehearsals.is_ready()
