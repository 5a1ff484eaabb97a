"""Faults of every kind, a few of each: `make chaos` tries them by the thousand."""

import json
import subprocess
import sys
from pathlib import Path

from chaos import KINDS


def test_no_fault_does_harm():
    """In a process of their own, from which others are forked: it must have no other threads."""
    command = [sys.executable, Path(__file__).with_name("chaos.py"), "--few"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {row["kind"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert {kind: row["tried"] >= KINDS[kind][2] and not row["harm"] for kind, row in rows.items()} == dict.fromkeys(
        KINDS, True
    )
