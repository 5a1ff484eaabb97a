"""Blades by the commands: a run, its resumption, and what is refused before any work."""

import json
import resource
import socket
import subprocess
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from commands import answer, kilt, refused, start, wait_for_checkpoint
from kilt.abstraction.plan import Plan, PublicPlan, plan_named
from kilt.config import config_of
from kilt.runs.examples import EXAMPLES
from kilt.strategy.blueprint import Blueprint
from test_cli_agent import GAME

BOARDS = (0, 1)
CONFIG = """game = "small.game"
cards = "cards.toml"
actions = "1x, a"

[solver]
iterations = 6000
seed = 5

[engine]
samples = 1
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "small.game").write_text(GAME)
    (tmp_path / "small.toml").write_text(CONFIG)
    rounds = plan_named("IR-PHS-PHS 4-3", BOARDS).rounds
    classes = PublicPlan(2, 4, codes=0, base="IR-PHS-PHS 4-4")
    (tmp_path / "cards.toml").write_text(Plan(rounds, (classes,), bins=6, opponents=2).toml())
    return tmp_path / "small.toml"


def shares(run):
    return np.array(Blueprint.load(run / "strategy").shares)


def test_a_run_and_more_of_it_on_other_blades(config, tmp_path):
    """The folder of a run does not say how many blades there must be."""
    engine = "--engine", "local", "--set", "engine.batch=64"
    said = kilt("solve", config, *engine, "--blades", 2, "--out", tmp_path / "short", "--iterations", 1000).stderr
    assert "2 blades (local) with 2, 2 classes of boards, 1 of each class for each deal; batches of 64 deals" in said
    assert "messages and the head took" in said
    found = answer("solve", "--resume", tmp_path / "short", "--iterations", 2000, "--blades", 3)
    assert found["iterations"] == 2048
    kilt("solve", config, *engine, "--blades", 1, "--out", tmp_path / "long", "--iterations", 2000)
    assert np.array_equal(shares(tmp_path / "short"), shares(tmp_path / "long"))
    assert [place.name for place in (tmp_path / "short" / "parts").iterdir()] == ["2048"]
    log = "--log", tmp_path / "hands.log"
    assert "wins" in kilt("match", tmp_path / "long", "always-fold", "--hands", 200, "--way", "played", *log).stdout
    asked = *log, "--player", "always-fold", "-n", 64, "--out", tmp_path / "answer"
    assert (
        "is solved in one process: the [engine] of the configuration is left out"
        in kilt("counter", tmp_path / "long", *asked).stderr
    )


def test_a_killed_head(config, tmp_path):
    """What is in the folder is enough to go on, from another folder and to the same end."""
    options = "--engine", "local", "--set", "engine.batch=64", "--iterations", 20_000
    child = start("solve", config, *options, "--out", "run", cwd=tmp_path)
    wait_for_checkpoint(tmp_path / "run", child)
    child.kill()
    child.communicate()
    assert answer("solve", "--resume", tmp_path / "run")["iterations"] == 20_032
    kilt("solve", config, *options, "--out", tmp_path / "unbroken")
    assert np.array_equal(shares(tmp_path / "run"), shares(tmp_path / "unbroken"))


def test_a_full_disk(config, tmp_path):
    """Files may not grow: the checkpoint cannot be written. What is there already stays good."""
    run = tmp_path / "run"
    options = "--engine", "local", "--set", "engine.batch=64", "--out", str(run)
    kilt("solve", config, *options, "--iterations", 1000)
    before = json.loads((run / "checkpoint" / "manifest.json").read_text())["figures"]["iterations"]
    command = [sys.executable, "-m", "kilt", "solve", "--resume", str(run), "--iterations", "4000"]
    small = sum(file.stat().st_size for file in (run / "parts").rglob("*.npy")) // 8

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (small, small))

    found = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert found.returncode == 2
    assert "cannot be written: file too large" in found.stderr and "Traceback" not in found.stderr
    assert json.loads((run / "checkpoint" / "manifest.json").read_text())["figures"]["iterations"] == before
    assert answer("solve", "--resume", run, "--iterations", 4000)["iterations"] == 4032


def closed_port():
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "cloud"], ["unknown engine 'cloud'", "local, ray"]),
        (["--engine", "local", "--address", "127.0.0.1:1"], ["takes no address"]),
        (["--engine", "local", "--blades", 5], ["5 blades cannot share 4 classes", "use 1 to 4"]),
        (["--engine", "local", "--blades", "2x2"], ["of round 3, which has none", "use fewer levels"]),
        (["--blades", 2], ["needs an `engine`", "give its `name`, one of local, ray"]),
        (["--engine", "ray", "--address", "127.0.0.1:FREE"], ["there is no Ray cluster at"]),
        (["--engine", "ray", "--address", "nowhere"], ["no address of a Ray cluster"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if value[0].startswith("--") else "",
)
def test_refused_before_any_work(config, tmp_path, options, words):
    options = [str(option).replace("FREE", str(closed_port())) for option in options]
    said = refused("solve", config, *options, "--out", tmp_path / "run")
    assert all(word in said for word in words)
    assert not (tmp_path / "run").exists()


def test_cards_without_classes(config, tmp_path):
    config.write_text(CONFIG.replace("cards.toml", "lossless"))
    assert "has no classes of boards" in refused("solve", config, "--engine", "local", "--out", tmp_path / "run")


def test_more_boards_than_there_are_are_refused_at_once(config):
    for asked, words in (("boards", "share 10 boards: use at most 10"), ("samples", "use at most 3")):
        config.write_text(CONFIG.replace("samples = 1", f'name = "local"\n{asked} = 1000000000000'))
        for command in ("plan", "solve"):
            assert words in refused(command, config)


def test_a_whole_game_has_no_blades():
    assert "use cfr+disk, or leave out the engine" in refused("solve", "--game", "leduc", "--engine", "local")


def test_three_levels_and_another_way_to_go_on(config, tmp_path):
    """A run of three levels goes on with other numbers of blades on each, and not with fewer levels."""
    changed = {"numRounds = 2": "numRounds = 4", "= 0 1\n": "= 0 1 1 1\n", "Player = 2 1": "Player = 2 1 1 1"}
    changed |= {"= 20 20": "= 6 6", "Suits = 3": "Suits = 1", "Ranks = 4": "Ranks = 6"}
    game = GAME
    for old, new in changed.items():
        game = game.replace(old, new)
    (tmp_path / "small.game").write_text(game)
    rounds = [replace(this, recall=False) for this in plan_named("IR-PHS-PHS 3-2-2-2", (*BOARDS, 1, 1)).rounds]
    classes = [PublicPlan(r, 2, codes=0, base="IR-PHS-PHS 3-2-2-2") for r in (2, 3, 4)]
    (tmp_path / "cards.toml").write_text(Plan(tuple(rounds), tuple(classes), bins=6, opponents=2).toml())
    run, asked = tmp_path / "run", ("--engine", "local", "--set", "engine.batch=64", "--iterations", 128)
    said = kilt("solve", config, *asked, "--blades", "2x1x2", "--out", run).stderr
    assert "1 below each with 2 classes of the next board inside these, 2 below each with 2 classes" in said
    found = answer("solve", "--resume", run, "--iterations", 256, "--blades", "1x2x1")
    assert found["iterations"] == 256 and (run / "parts" / "256" / "class-2-1-2").is_dir()
    place = run / "config.toml"
    for before, after in (("below = [\n    1,\n    2,\n]", "below = 2"), ('name = "local"', 'name = ""')):
        assert before in place.read_text()
        place.write_text(place.read_text().replace(before, after))
        assert "external in parts of parts of parts" in refused("solve", "--resume", run, "--iterations", 900)


@pytest.mark.usefixtures("token")
def test_a_small_tartanian7_on_two_ray_workers(tmp_path):
    """The shipped configuration, key for key, with smaller numbers: it runs on blades, resumes and plays."""
    text = EXAMPLES["tartanian7"]
    for large, small in {
        '"holdem.nolimit.2p"': '"short.nolimit.2p"',
        "169-70-70-70 in 60 classes": "25-4-4-4 in 3 classes",
        "minutes = 1440": "minutes = 0.001",
        'name = ""': 'name = "ray"',
    }.items():
        assert large in text
        text = text.replace(large, small)
    (tmp_path / "small.toml").write_text(text)
    whole, small = (config_of(tomllib.loads(some)) for some in (EXAMPLES["tartanian7"], text))
    assert small.solver.equities and whole.solver == replace(small.solver, minutes=whole.solver.minutes)
    run = tmp_path / "run"
    assert "2 blades (ray) with 2, 1 classes of boards" in kilt("solve", tmp_path / "small.toml", "--out", run).stderr
    first = json.loads((run / "checkpoint" / "manifest.json").read_text())["figures"]["iterations"]
    assert answer("solve", "--resume", run, "--iterations", first + 1)["iterations"] > first > 0
    assert "wins" in kilt("match", run, "always-fold", "--hands", 200, "--way", "played").stdout
