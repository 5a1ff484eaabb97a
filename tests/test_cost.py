"""What a run takes: the figures of many kinds of runs stay as they are until somebody changes them on purpose."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kilt
from commands import answer, refused
from commands import kilt as kilt_command
from estimates import SPOTS, TABLE, estimates
from kilt import gpu, machine
from kilt.cost import Cost
from kilt.errors import ArtifactError, RunError
from kilt.runs.examples import example_named
from kilt.solve.external import Pace
from kilt.spots.spot import Spot


def test_estimates_of_all_kinds_of_runs():
    """`tests/estimates.py` writes the table."""
    known, found = json.loads(TABLE.read_text(encoding="utf-8")), estimates()
    assert {name: found[name] for name in found if found[name] != known.get(name)} == {}
    assert list(found) == list(known)


def test_costs_add_up():
    cards, solving = Cost(8, 2, disk=1, cache=3, seconds=2.0), Cost(7, 0, 5, disk=4, iteration=0.5)
    assert cards.then(solving) == Cost(8, 1, 5, 5, 3, 2.0, 0.5)  # 7 bytes of memory have to fit, in both
    assert cards.beside(solving) == Cost(15, 2, 5, 5, 3, 2.0, 0.5)
    assert solving.at(Pace(4.0, 1.0, 1.0)).iteration == 0.25


def test_the_machine_is_asked_in_one_place(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "available_memory", lambda: 10**9)
    whole = (
        Cost(10**6, what="this", remedy="wait")
        .named("this")
        .then(Cost(10**10, what="that", remedy="buy").named("that"))
    )
    with pytest.raises(RunError, match=r"^that takes 10\.0 GB of memory, and 1\.0 GB are available: buy$"):
        whole.require()
    assert Cost(10**10, 10**10).require() and not whole.fits
    monkeypatch.setattr(gpu, "free_memory", lambda: 10**9)
    with pytest.raises(RunError, match=r"^this takes 2\.0 GB of the GPU's memory, and 1\.0 GB are free: wait$"):
        Cost(device=2 * 10**9, what="this", remedy="wait").require()
    with pytest.raises(ArtifactError, match="make room"):
        Cost(disk=10**18).require(tmp_path)


def test_whatever_can_be_solved_has_an_estimate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("abstract.toml").write_text('game = "leduc"\ncards = "lossless"\n[solver]\niterations = 2\n')
    Path("whole.toml").write_text('game = "leduc"\n[solver]\nalgorithm = "cfr+"\n')
    Path("spot.toml").write_text(Spot(**SPOTS[0]).toml())
    kilt.solve("leduc", iterations=2, folder="run")
    kilt.start_run("abstract.toml", "agent").finish()
    Spot(**SPOTS[0]).solve(iterations=2, folder="spot")
    for what in ("abstract.toml", "whole.toml", "spot.toml", "run", "agent", "spot"):
        found = answer("estimate", what, "--no-probe")
        assert found["fits"] and found["memory_bytes"] == kilt.cost(what).resident
    assert answer("estimate", "leduc", "-a", "cfr+")["disk_bytes"] == kilt.cost("leduc").disk
    assert "cfr+ on leduc: " in kilt_command("estimate", "leduc", "-a", "cfr+").stderr


def test_an_estimate_compiles_nothing(tmp_path):
    """Neither counting hands and bets nor the usual speed takes a kernel."""
    (tmp_path / "my.toml").write_text(example_named(""))
    own = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "KILT_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "kilt", "estimate", "my.toml"]
    found = subprocess.run(command, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=True)
    assert "13,473 nodes" in found.stdout and "2 threads usually take" in found.stderr
    assert "compil" not in found.stderr and not list(tmp_path.rglob("*.nb?"))


def test_what_takes_too_much_memory_is_estimated_all_the_same():
    result = kilt_command("estimate", "holdem.limit.2p", "-a", "cfr+", code=1)
    assert "cfr+ on holdem.limit.2p: 400,60" in result.stderr
    assert "this machine cannot do that: it takes 400,60" in result.stderr
    assert "use cfr+disk (see its estimate), or a smaller game" in result.stderr
    assert "a flat tree" in refused("estimate", "rhode-island", "-a", "lp")  # no memory would be enough
