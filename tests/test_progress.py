"""Long steps say how far they are, in a log as well as on a terminal."""

import json
import re

import pytest

from commands import kilt
from kilt.cli import show


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
