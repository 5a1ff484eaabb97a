"""Long steps say how far they are, in a log as well as on a terminal."""

import json
import re
from types import SimpleNamespace

import pytest

from commands import kilt
from kilt.cli import show, solve
from kilt.runs.budget import Budget


class Clock:
    """Seconds as a test sets them."""

    now = 0.0

    def __call__(self):
        return self.now


def test_lines_become_rarer(monkeypatch):
    monkeypatch.setattr(show, "monotonic", clock := Clock())
    lines = []
    monkeypatch.setattr(show, "say", lines.append)
    with show.ProgressBars() as bars:
        first, second = (bars.add_task(name, total=1.0, said="") for name in ("solving", "a blade"))
        for second_passed in range(100_000):
            clock.now = float(second_passed)
            bars.update(second, completed=0.5, said="at work")
            bars.update(first, completed=0.5, said="half of it")
    assert lines[:3] == ["0:10 · solving · half of it", "0:40 · solving · half of it", "1:10 · solving · half of it"]
    assert lines[-1].startswith("28 h")
    assert 150 < len(lines) < 250  # ten minutes apart, in the end


def test_a_run_that_went_back_has_the_rate_of_what_follows(monkeypatch):
    lines, run = (
        [],
        SimpleNamespace(identity=SimpleNamespace(game="g", algorithm="a"), budget=Budget(1000), solver=None),
    )
    monkeypatch.setattr(show, "say", lines.append)
    for wait in ("FIRST", "EVERY", "SELDOM"):
        monkeypatch.setattr(show.ProgressBars, wait, 0.0)
    with solve._progress(run, [], lambda step: "") as tick:
        for iterations, seconds in ((500, 1.0), (900, 2.0), (100, 3.0), (300, 4.0)):
            tick(iterations, seconds)
    assert [re.findall(r"[-\d]+/s", line) for line in lines[-4:]] == [[], ["400/s"], [], ["200/s"]]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["solve", "--game", "kuhn", "--iterations", "2000", "--json"], "kuhn, cfr+ · 1 iterations"),
        (["match", "always-call", "random", "--game", "kuhn", "--hands", "1000", "--json"], " hands · "),
        (["crosstable", "always-call", "random", "--game", "kuhn", "--hands", "200", "--json"], "1 matches"),
        (["abstraction", "build", "IR-PHS-PHS 2-2", "--game", "leduc", "--out", "cards", "--json"], "%"),
    ],
)
def test_commands_say_how_far_they_are(tmp_path, monkeypatch, command, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(show.ProgressBars, "FIRST", 0.0)
    monkeypatch.setattr(show.ProgressBars, "EVERY", 0.0)
    done = kilt(*command)
    json.loads(done.stdout)
    assert re.search(rf"^\d+:\d\d · .*{re.escape(words)}", done.stderr, re.MULTILINE), done.stderr
