"""``kilt abstraction``, as typed."""

import json
import signal
import subprocess
import sys
import time
from collections import namedtuple

import numpy as np
import pytest

from kilt import artifact
from kilt.abstraction.buckets import CardAbstraction
from kilt.cards.deck import Deck
from kilt.games.gamedef import shipped_definitions
from test_cli_solve import answer, kilt, refused

SHORT = shipped_definitions()["holdem.limit.2p"].replace("numRanks = 13", "numRanks = 5")  # 20 cards, four rounds
NAME = "IR-KE-KO 20-15-12-10"
MAIN = """
import sys, time
import kilt.cli, kilt.abstraction.pipeline as pipeline
rest, build_round = float(sys.argv.pop(1)), pipeline._build_round
pipeline._build_round = lambda *given: (build_round(*given), print("done", flush=True), time.sleep(rest))
kilt.cli.main()
"""


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    path = tmp_path_factory.mktemp("game") / "short.game"
    path.write_text(SHORT)
    return path


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KILT_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def built(game, tmp_path_factory, cache):
    run = tmp_path_factory.mktemp("runs") / "short"
    said = answer("abstraction", "build", NAME, "--game", game, "--out", run, "--threads", 2)
    return run, said


def test_build_says_what_it_made(built, cache):
    run, said = built
    assert [r["buckets"] for r in said["rounds"]] == [20, 15, 12, 10]
    assert [r["boards"] for r in said["rounds"]] == ["0", "3", "4", "5"]
    assert all(0 < r["smallest"] <= r["median"] <= r["largest"] < 1 for r in said["rounds"])
    assert all(r["distortion"] > 0 for r in said["rounds"])
    assert len(list(cache.rglob("manifest.json"))) >= 5
    assert answer("abstraction", "show", run)["fingerprint"] == said["fingerprint"]


def test_it_says_first_what_it_takes(game, tmp_path):
    result = kilt("abstraction", "build", NAME, "--game", game, "--out", tmp_path / "run")
    assert "of memory" in result.stderr
    assert "the disk is that of" in result.stderr
    assert "look at it with: kilt abstraction show" in result.stderr


def test_show_and_where(built):
    run, _ = built
    rows = answer("abstraction", "show", run, "--round", 3)["buckets"]
    assert [row["bucket"] for row in rows] == sorted(row["bucket"] for row in rows)
    assert rows[0]["ehs"] < rows[-1]["ehs"]
    assert sum(rows[0]["histogram"]) == pytest.approx(1, abs=1e-3)
    deck, found = Deck(5), CardAbstraction.load(run)
    for example in rows[4]["examples"]:
        hand, board = (deck.cards(part) for part in example.split(" on "))
        assert found.bucket(hand, board) == rows[4]["bucket"]
        there = answer("abstraction", "where", run, deck.name(hand), deck.name(board))
        assert (there["bucket"], there["round"]) == (rows[4]["bucket"], 3)
    assert "bucket" in kilt("abstraction", "where", run, "AsKh", "QdJdTc").stdout
    assert "20 buckets" in kilt("abstraction", "show", run, "--round", 1).stdout
    assert kilt("abstraction", "show", run).stdout.count("%") == 12


@pytest.mark.parametrize("r", [1, 2])
def test_pictures(built, tmp_path, r):
    run, _ = built
    picture = tmp_path / "picture.png"
    kilt("abstraction", "show", run, "--round", r, "--picture", picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "picture" in refused("abstraction", "show", run, "--round", r, "--picture", tmp_path / "picture.doc")


def test_a_plan_in_full_builds_the_same(built, game, tmp_path):
    text = kilt("abstraction", "plan", NAME, "--game", game).stdout
    (tmp_path / "mine.toml").write_text(text)
    run, said = built
    again = answer("abstraction", "build", tmp_path / "mine.toml", "--game", game, "--out", tmp_path / "mine")
    assert again["fingerprint"] == said["fingerprint"]
    for mine, other in zip(
        CardAbstraction.load(run).rounds, CardAbstraction.load(tmp_path / "mine").rounds, strict=True
    ):
        assert np.array_equal(mine.table, other.table)
    other = answer("abstraction", "build", NAME, "--game", game, "--out", tmp_path / "other", "--seed", 1)
    assert other["fingerprint"] != said["fingerprint"]


def test_a_limit_on_time(game, tmp_path):
    said = answer("abstraction", "build", NAME, "--game", game, "--out", tmp_path / "run", "--minutes", 1e-6)
    assert [r["buckets"] for r in said["rounds"]] == [20, 15, 12, 10]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_was_stopped_goes_on(built, game, tmp_path, how):
    run, arguments = tmp_path / "run", ("abstraction", "build", NAME, "--game", game, "--out")
    command = [sys.executable, "-c", MAIN, "60", *map(str, arguments), run]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(2):  # the first round is resting now, or the second
        if child.stdout.readline() == "done\n":
            break
    time.sleep(0.2)
    child.send_signal(how)
    _, said = child.communicate(timeout=60)
    if how == signal.SIGINT:
        assert child.returncode == 130
        assert "rounds that were finished are kept: kilt abstraction build" in said
    assert "round-1" in {path.name for path in run.iterdir()}
    assert "continue to build" in refused("abstraction", "show", run)
    before = (run / "round-1" / artifact.MANIFEST).stat().st_mtime_ns
    answer(*arguments, run)
    assert (run / "round-1" / artifact.MANIFEST).stat().st_mtime_ns == before
    for mine, other in zip(CardAbstraction.load(run).rounds, CardAbstraction.load(built[0]).rounds, strict=True):
        assert np.array_equal(mine.table, other.table)


def test_bad_input(built, game, tmp_path, monkeypatch):
    run, _ = built
    out = "--out", tmp_path / "run"
    assert "use one of preflop, flop" in refused("abstraction", "show", run, "--round", 5)
    assert "round 2 has 0 to 14" in refused("abstraction", "show", run, "--round", 2, "--bucket", 15)
    assert "add --round" in refused("abstraction", "show", run, "--bucket", 1)
    assert "build it first" in refused("abstraction", "show", tmp_path / "nothing")
    assert "is no abstraction" in refused("abstraction", "build", "IR-XX-KO 1-1-1-1", "--game", game, *out)
    assert "the game has 4" in refused("abstraction", "build", "IR-KE-KO 1-1", "--game", game, *out)
    assert "only 25 different hands" in refused("abstraction", "build", "IR-KE-KO 26-1-1-1", "--game", game, *out)
    assert "no cards" in refused("abstraction", "build", NAME, "--game", "bluff-1-1", *out)
    assert "numbers above 0" in refused("abstraction", "build", NAME, "--game", game, *out, "--minutes", 0)
    assert "choose another folder" in refused("abstraction", "build", "IR-KE-KO 9-9-9-9", "--game", game, "--out", run)
    assert "no round has" in refused("abstraction", "where", run, "AsKh", "QdJd")
    assert "Qd" in refused("abstraction", "where", run, "AsQd", "QdJdTc")
    (tmp_path / "bad.toml").write_text("rounds = 3")
    said = refused("abstraction", "build", tmp_path / "bad.toml", "--game", game)
    assert "bad.toml: `rounds` in the plan is 3: it takes a list" in said
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 10)
    monkeypatch.setattr(artifact.shutil, "disk_usage", lambda folder: usage)
    assert "make room" in refused("abstraction", "build", NAME, "--game", game, *out)
    assert not (tmp_path / "run").exists()


def test_descriptions_that_are_damaged(built, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    said = json.loads((built[0] / "abstraction.json").read_text())
    for broken in ("{", json.dumps(said | {"plan": "rounds = []x"}), json.dumps(said | {"deal": {}})):
        (run / "abstraction.json").write_text(broken)
        assert "damaged" in refused("abstraction", "show", run)


# ── classes of boards ──


@pytest.fixture(scope="module")
def classes(game, tmp_path_factory):
    run = tmp_path_factory.mktemp("classes") / "boards"
    return run, answer("abstraction", "boards", "-g", game, "--classes", 4, "--curve", 3, "--out", run)


def test_boards_are_sorted_and_drawn(classes):
    run, said = classes
    assert [row["class"] for row in said["classes"]] == [0, 1, 2, 3]
    assert sum(row["share"] for row in said["classes"]) == pytest.approx(1)
    assert all(row["boards"] > 0 and row["description"] and row["examples"] for row in said["classes"])
    for picture in ("classes", "distances", "balance", "errors"):
        assert (run / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert answer("abstraction", "show", run)["classes"] == said["classes"]
    shown = kilt("abstraction", "show", run).stdout
    assert "4 classes of boards" in shown


def test_the_same_command_shows_what_is_there(classes, game):
    run, said = classes
    before = (run / "boards-2" / "manifest.json").stat().st_mtime_ns
    assert answer("abstraction", "boards", "-g", game, "--classes", 4, "--out", run)["classes"] == said["classes"]
    assert (run / "boards-2" / "manifest.json").stat().st_mtime_ns == before
    assert "another abstraction" in refused("abstraction", "boards", "-g", game, "--classes", 5, "--out", run)


def test_an_abstraction_with_classes(classes, game, tmp_path):
    run, _ = classes
    text = kilt("abstraction", "plan", "IR-KE-KO 20-5-5-4", "-g", game, "--classes", 4).stdout
    text = text.replace('boards = ""', f"boards = {json.dumps(str(run))}").replace("codes = 0", "codes = 100")
    (tmp_path / "mine.toml").write_text(text)
    made = answer("abstraction", "build", tmp_path / "mine.toml", "-g", game, "--out", tmp_path / "mine")
    assert [r["buckets"] for r in made["rounds"]] == [20, 20, 20, 16]
    where = answer("abstraction", "where", tmp_path / "mine", "AsKh", "QdJdTcTh")
    assert where["round"] == 3
    assert len(where["examples"]) == 5
    rows = answer("abstraction", "show", tmp_path / "mine", "--round", 4, "--bucket", 3)["buckets"]
    assert rows[0]["bucket"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--method", "guess"], "use one of tartanian7, waugh, schmid"),
        (["--set", "clustering=guess"], "use one of sum"),
        (["--round", 1], "no new public cards"),
        (["--round", 7], "use one of preflop, flop, turn, river"),
        (["--classes", 5000], "use fewer"),
        (["--set", "base=nowhere"], "is no abstraction"),
    ],
)
def test_boards_that_cannot_be_sorted(game, tmp_path, options, said):
    assert said in refused("abstraction", "boards", "-g", game, "--out", tmp_path / "run", *options)
    assert not list(tmp_path.iterdir())


def test_hand_by_hand_says_how_long_it_takes(tmp_path):
    game = tmp_path / "shorter.game"
    game.write_text(SHORT.replace("numRanks = 5", "numRanks = 3"))
    options = ["--method", "schmid", "--set", "exact=true", "--classes", 3, "--out", tmp_path / "run"]
    said = kilt("abstraction", "boards", "-g", game, *options).stderr
    assert "pairs of boards at" in said
