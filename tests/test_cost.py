"""What a run takes: the figures of many kinds of runs stay as they are until somebody changes them on purpose."""

import json

from estimates import TABLE, estimates


def test_estimates_of_all_kinds_of_runs():
    """`tests/estimates.py` writes the table."""
    known, found = json.loads(TABLE.read_text(encoding="utf-8")), estimates()
    assert {name: found[name] for name in found if found[name] != known.get(name)} == {}
    assert list(found) == list(known)
