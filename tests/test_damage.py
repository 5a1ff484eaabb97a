"""Damage on disk is noticed when something is opened, before a kernel can leave its arrays; `kilt check` finds all."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt import api, artifact, checksums, evaluation
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.cards.deck import Deck
from kilt.cli import main
from kilt.errors import AbstractionError, ArtifactError, KiltError
from kilt.games import load_game
from kilt.players.agents import load_agent
from kilt.players.profile import StrategyRef
from kilt.runs.check import check
from kilt.runs.folder import RunFolder
from kilt.solve.external import ExternalMCCFR
from kilt.solve.forms import load_problem
from kilt.solve.registry import make_solver
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.table import Strategy
from kilt.strategy.vector import VectorStrategy

OLD = Path(__file__).parent / "data" / "0.1.0"


@pytest.fixture
def run(tmp_path):
    """A run on an abstract game that has come to its end."""
    return shutil.copytree(OLD / "abstract", tmp_path / "run")


def flip(file, place=-1):
    """Flip the bits of one byte of a file."""
    content = bytearray(file.read_bytes())
    content[place] ^= 255
    file.write_bytes(content)


def rewrite(folder, kind, **arrays):
    """Put other arrays into an artifact, with the right checksums: what only bounds can tell."""
    found = artifact.read(folder, kind)
    everything = {name: np.array(array) for name, array in found.arrays.items()} | arrays
    artifact.write(folder, kind, everything, inputs=found.inputs, parameters=found.parameters, figures=found.figures)


# ── bytes that have changed ──


def test_a_strategy_with_another_byte_is_not_played_judged_or_exported(run, tmp_path):
    flip(run / "strategy" / "shares.npy")
    said = r"shares.npy does not match manifest.json: solve again, or copy an intact one"
    for command in (
        ("evaluate", "sanity", run),
        ("match", run, "always-call", "--hands", 10),
        ("evaluate", "exploitability", run),
        ("export", run, tmp_path / "out"),
    ):
        assert said in refused(*command)
    assert not (tmp_path / "out").exists()


def test_exporting_reads_everything_again(run, tmp_path, monkeypatch):
    """Copies get checksums of their own, so that what is only remembered will not do."""
    monkeypatch.setattr(checksums, "_remembered", lambda file: checksums.state_of(file, checksum_of(file)))
    monkeypatch.setattr(checksums, "LARGE", 0)
    flip(run / "strategy" / "shares.npy")
    Blueprint.load(run)
    assert "shares.npy does not match" in refused("export", run, tmp_path / "out")


def checksum_of(file):
    return json.loads((file.parent / "manifest.json").read_text())["arrays"][file.stem]["blake2b"]


def test_buckets_with_another_byte_are_not_looked_up_but_built_again(run):
    """Who goes on solving has the command that builds them; who plays has not."""
    table = run / "cards" / "round-2" / "buckets.npy"
    whole = table.read_bytes()
    with table.open("r+b") as file:
        file.seek(128)
        file.write(b"\xff" * (len(whole) - 128))
    assert f"delete {table.parent} and repeat the command that built it" in refused("evaluate", "sanity", run)
    assert answer("solve", "--resume", run, "-n", 300)["iterations"] == 300
    assert table.read_bytes() == whole


def test_classes_with_another_byte(coded, tmp_path):
    out = shutil.copytree(coded, tmp_path / "out")
    flip(out / "boards-2" / "classes.npy")
    with pytest.raises(AbstractionError, match=r"boards-2/classes\.npy does not match"):
        CardAbstraction.load(out)


# ── arrays that lead out of others, whatever their checksums say ──


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """An abstraction with classes of boards, and codes in the rounds after them."""
    deal = Deal(Deck(4, 3), 2, (0, 2, 1, 1))
    plan = replace(plan_named("IR-KE-KO 10-3-3-2", deal.board_cards), public=(PublicPlan(2, 4, codes=60),))
    folder = tmp_path_factory.mktemp("coded") / "cards"
    build(AbstractionSpec("coded", deal, replace(plan, bins=12, opponents=3)), folder)
    return folder


ROUND, CLASSES = "card abstraction of a round", "classes of boards"


def test_buckets_that_there_are_not(run):
    folder = run / "cards" / "round-2"
    wrong = np.full_like(artifact.read(folder, ROUND).arrays["buckets"], 200)
    rewrite(folder, ROUND, buckets=wrong)
    cards = CardAbstraction.load(run / "cards")
    said = r"round-2/buckets\.npy is damaged \(it says 200, and there are 3\): delete .*round-2"
    with pytest.raises(AbstractionError, match=said):
        ExternalMCCFR(AbstractGame(load_game("leduc"), cards)).step(10)
    with pytest.raises(AbstractionError, match=said):
        cards.rounds[1].look_up_boards(np.array([[0]]))
    with pytest.raises(AbstractionError, match=said):
        cards.rounds[1].bucket_members(0)
    with pytest.raises(AbstractionError, match=said):
        CardAbstraction.load(run / "cards", check=True)


def test_codes_that_there_are_not(coded, tmp_path):
    out = shutil.copytree(coded, tmp_path / "out")
    folder = out / "round-3"
    rewrite(folder, ROUND, buckets=np.full_like(artifact.read(folder, ROUND).arrays["buckets"], 250))
    this = CardAbstraction.load(out).rounds[2]
    boards, hands, found = np.array([[0, 1, 2]]), np.array([[20, 21]]), np.empty((1, 2), dtype=np.uint32)
    for known in (None, 1):
        with pytest.raises(AbstractionError, match=r"round-3/buckets\.npy is damaged"):
            this.look_up(boards, hands, found, known)
    with pytest.raises(AbstractionError, match=r"round-3/buckets\.npy is damaged"):
        this.look_up_boards(boards)


@pytest.mark.parametrize(
    ("place", "kind", "arrays", "said"),
    [
        ("boards-2", CLASSES, {"classes": np.full(0, 9, dtype=np.int32)}, "classes have shape"),
        ("boards-2", CLASSES, {"classes": 9}, "classes are numbered 9 to 9, not 0 to 3"),
        ("boards-2", CLASSES, {"classes": -1}, "classes are numbered -1 to -1, not 0 to 3"),
        ("round-2", ROUND, {"buckets": np.zeros((3, 3), dtype=np.uint8)}, r"buckets has shape \(3, 3\), not"),
        ("round-2", ROUND, {"buckets": np.zeros(3)}, "buckets has shape"),
        ("round-3", ROUND, {"of_class": 99}, "of_class has buckets outside of 0 to"),
        ("round-3", ROUND, {"of_class": np.zeros((1, 60), dtype=np.int32)}, "of_class has shape"),
    ],
)
def test_arrays_of_cards_that_do_not_fit(coded, tmp_path, place, kind, arrays, said):
    out = shutil.copytree(coded, tmp_path / "out")
    there = artifact.read(out / place, kind).arrays
    wrong = {name: np.full_like(there[name], one) if np.isscalar(one) else one for name, one in arrays.items()}
    rewrite(out / place, kind, **wrong)
    with pytest.raises(AbstractionError, match=rf"{place} is damaged \({said}"):
        CardAbstraction.load(out)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("first_child", 3, 10**6),
        ("first_child", 3, 1),  # a walk would go round for ever
        ("children", 0, 10**6),
        ("parent", 5, 7),
        ("round", 4, 9),
        ("actor", 4, 9),
        ("block", -1, 10**6),
        ("first", -1, 10**6),
        ("first", 4, 10**6),
        ("level", 4, -7),
    ],
)
def test_trees_that_lead_astray(run, name, place, value):
    folder = run / "strategy"
    wrong = np.array(artifact.read(folder, "blueprint").arrays[name])
    wrong[place] = np.clip(value, np.iinfo(wrong.dtype).min, np.iinfo(wrong.dtype).max)
    rewrite(folder, "blueprint", **{name: wrong})
    with pytest.raises(ArtifactError, match=r"strategy is damaged \(.*: solve again"):
        Blueprint.load(run)


# ── all at once ──


def test_check_finds_the_file_that_has_changed(run):
    kilt("solve", "--resume", run, "-n", 300)
    assert answer("check", run)["damaged"] == []
    assert kilt("check", run.parent).stderr.startswith("6 of 6 are whole")
    for file in sorted(file for file in run.rglob("*") if file.suffix in (".npy", ".json", ".jsonl")):
        whole = file.read_bytes()
        flip(file, len(whole) // 2)
        damage = " ".join(one.damage for one in check(run))
        assert file.name in damage or str(file.parent) in damage, file
        file.write_bytes(whole)
    for name in ("manifest.json", "shares.npy"):
        (run / "strategy" / name).rename(run / "aside")
        assert f"{name} is missing" in " ".join(one.damage for one in check(run))
        (run / "aside").rename(run / "strategy" / name)
    flip(run / "strategy" / "shares.npy")
    result = kilt("check", run, code=1)
    assert f"DAMAGED blueprint in {run / 'strategy'}" in result.stderr and "5 of 6 are whole" in result.stderr
    assert [one["what"] for one in json.loads(kilt("check", run, "--json", code=1).stdout)["damaged"]] == ["blueprint"]


def test_check_makes_forget_what_was_remembered(run, monkeypatch, tmp_path):
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checksums, "LARGE", 0)
    monkeypatch.setattr(checksums, "SETTLED", -1)
    Blueprint.load(run)
    file = run / "strategy" / "shares.npy"
    monkeypatch.setattr(checksums, "state_of", lambda file, checksum: f"{file.stat().st_size} 0 0 {checksum}")
    Blueprint.load(run)
    flip(file)
    Blueprint.load(run)  # nothing tells that it has changed
    kilt("check", run, code=1)
    with pytest.raises(ArtifactError, match=r"shares\.npy does not match"):
        Blueprint.load(run)


def test_there_is_nothing_to_check(tmp_path):
    assert f"there is nothing of kilt in {tmp_path}" in refused("check", tmp_path)
    assert "there is nothing of kilt in" in refused("check", tmp_path / "nowhere")


# ── what is said cannot be right ──

WRONG = [None, "x", -1, {}, [["a"]], 10**400]


def places(said, above=()):
    """The way to everything that a manifest says, but to what it says of arrays."""
    for name, value in said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ():
        yield (*above, name)
        if name != "arrays":
            yield from places(value, (*above, name))


def said_wrong(file):
    """Each of these left out, and given other types, one after another."""
    whole = file.read_text()
    for way in places(json.loads(whole)):
        for value in (..., *WRONG):
            said = inner = json.loads(whole)
            for name in way[:-1]:
                inner = inner[name]
            if value is ...:
                del inner[way[-1]]
            else:
                inner[way[-1]] = value
            file.write_text(json.dumps(said))
            yield way, value
    file.write_text(whole)


@pytest.mark.parametrize("form", ["abstract", "flat", "vector"])
def test_manifests_that_say_something_else(tmp_path, form):
    """Those of kilt 0.1.0 have no checksum of their own: each is opened, or refused with its name."""
    folder = shutil.copytree(OLD / form / "strategy", tmp_path / "run" / "strategy")
    if form == "abstract":
        shutil.copytree(OLD / form / "cards", tmp_path / "run" / "cards")
    load = {"abstract": Blueprint.load, "flat": Strategy.load, "vector": VectorStrategy.load}[form]
    refusals = 0
    for _ in said_wrong(folder / "manifest.json"):
        try:
            load(folder)
        except KiltError as error:
            refusals += 1
            assert str(tmp_path / "run") in str(error)
    assert refusals > 40
    load(folder)


def test_how_an_agent_plays_is_said_in_full_where_its_manifest_does_not(run):
    manifest = run / "strategy" / "manifest.json"
    said = json.loads(manifest.read_text())
    said["figures"]["agent"] = ["purify"]
    manifest.write_text(json.dumps(said))
    assert "strategy is damaged" in refused("match", run / "strategy", "always-call", "--hands", 4)
    kilt("match", f"{run / 'strategy'}@none@pseudo-harmonic", "always-call", "--hands", 4)


def test_checkpoints_that_say_something_else(tmp_path):
    """What is refused names the checkpoint, and what to do can be done."""
    run = shutil.copytree(OLD / "flat", tmp_path / "run")
    file = run / "checkpoint" / "manifest.json"
    folder = RunFolder.open(run)
    problem = load_problem("kuhn", folder.identity.algorithm)

    def restore():
        with folder.working():
            folder.restore(make_solver(problem, folder.identity.algorithm), folder.budget)

    for way, _ in said_wrong(file):
        if way[0] in ("figures", "arrays"):
            try:
                restore()
            except KiltError as error:
                assert str(error).startswith(str(run / "checkpoint")), way
                assert f"or delete {run / 'checkpoint'}: the run then begins again" in str(error)
    said = json.loads(file.read_text())
    for seconds in (float("nan"), [1], "x"):
        file.write_text(json.dumps(said | {"figures": {"seconds": seconds}}))
        with pytest.raises(ArtifactError, match=r"checkpoint is damaged \("):
            restore()
    assert f"delete {run / 'checkpoint'}" in refused("solve", "--resume", run, "-n", 210)
    shutil.rmtree(run / "checkpoint")
    assert answer("solve", "--resume", run, "-n", 210)["iterations"] == 210


@pytest.mark.parametrize(
    ("name", "value"), [("seed", "x"), ("game", 3), ("budget", None), ("budget", {"seconds": "x"}), ("algorithm", [])]
)
def test_runs_that_say_something_else(tmp_path, name, value):
    run = shutil.copytree(OLD / "flat", tmp_path / "run")
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(said | {name: value}))
    assert "run.json is damaged" in refused("solve", "--resume", run)


# ── strategies of another run ──


def judging(run):
    """Commands that judge a run or play it."""
    yield from (("evaluate", what, run) for what in ("exploitability", "sanity", "lbr"))
    yield from (
        ("match", run, "always-call", "--hands", 10),
        ("match", f"{run}@purification", "always-call", "--hands", 10),
    )
    yield ("export", run, run.with_name("exported"))


@pytest.mark.parametrize(("form", "algorithm"), [("flat", "outcome"), ("vector", "pcs"), ("abstract", "external")])
def test_a_strategy_folder_of_another_seed_is_refused(tmp_path, form, algorithm):
    """`run.json` names the checksum of the strategy's manifest; the run itself writes the strategy again."""
    game, runs = {"flat": "kuhn", "vector": "leduc"}.get(form), [tmp_path / str(seed) for seed in (1, 2)]
    for seed, run in enumerate(runs, start=1):
        solved = ("-g", game, "-a", algorithm) if game else (OLD / "abstract" / "config.toml",)
        kilt("solve", *solved, "--seed", seed, "-n", 200, "--out", run)
    mine, other = runs
    whole = {file.name: file.read_bytes() for file in (mine / "strategy").glob("*.npy")}
    named = json.loads((mine / "run.json").read_text())["artifacts"]["strategy"]
    assert named == [json.loads((mine / "strategy" / "manifest.json").read_text())["blake2b"]]
    shutil.rmtree(mine / "strategy")
    shutil.copytree(other / "strategy", mine / "strategy")
    said = f"{mine / 'strategy'} is of another run or another state of this one"
    for command in judging(mine):
        assert said in refused(*command), command
    assert not mine.with_name("exported").exists()
    for load in (load_agent, lambda run: StrategyRef.of_run(Path(run)).load()):
        with pytest.raises(ArtifactError, match="is of another run or another state"):
            load(str(mine))
    assert said in " ".join(one.damage for one in check(mine))
    kilt("solve", "--resume", mine)
    assert {file.name: file.read_bytes() for file in (mine / "strategy").glob("*.npy")} == whole
    assert not any(one.damage for one in check(mine))
    copied = shutil.copytree(other / "strategy", tmp_path / "copied")  # by itself it belongs to nobody
    assert artifact.kind_of(copied)


def test_runs_of_0_1_0_have_no_record_until_they_are_resumed(run, tmp_path):
    assert artifact.recorded_checksums(run / "strategy") is None
    said = kilt("evaluate", "exploitability", run).stderr
    kilt("solve", "--resume", run, "-n", 300)
    assert artifact.recorded_checksums(run / "strategy") == [artifact.checksum_of(run / "strategy")]
    assert kilt("evaluate", "exploitability", run).stderr == said
    shutil.rmtree(run / "strategy")
    shutil.copytree(OLD / "abstract" / "strategy", run / "strategy")
    assert "is of another run" in refused("evaluate", "exploitability", run)


@pytest.mark.parametrize("wrong", [3, {"strategy": 3}, {}])
def test_records_that_say_something_else(run, wrong):
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(said | {"artifacts": wrong}))
    assert "run.json is damaged" in refused("evaluate", "exploitability", run)


def test_a_checkpoint_without_its_manifest_is_refused(run):
    (run / "checkpoint" / "manifest.json").unlink()
    said = refused("solve", "--resume", run, "-n", 300)
    assert f"{run / 'checkpoint' / 'manifest.json'} is missing" in said and "the run then begins again" in said


# ── names and numbers that cannot be ──


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("[solver]\nthreads = 1" + 400 * "0", "`threads` in [solver] is 1000"),
        ("[solver]\nthreads = 5000", "`threads` in [solver] is 5000: give 1,024 at most"),
        ("[solver]\nminutes = 1" + 400 * "0", "`minutes` in [solver] is 1000"),
        ("[solver]\niterations = 1" + 400 * "0", "give 9,223,372,036,854,775,807 at most"),
        ("[solver]\niterations = 1" + 5000 * "0", "is not TOML"),
        ("[engine]\nbatch = 999999999999", "`batch` in [engine] is 999999999999: give 1,048,576 at most"),
    ],
)
def test_numbers_that_are_too_large(tmp_path, lines, told):
    file = tmp_path / "large.toml"
    file.write_text(f'game = "leduc"\ncards = "IR-KE-KE 2-3"\n{lines}\n')
    for command in (("plan", file), ("solve", file, "--out", tmp_path / "out")):
        said = refused(*command)
        assert told in said and len(said) < 400
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("solve", "-g", "kuhn", "-n", 10**400), "the budget is over 9,223,372,036,854,775,807 iterations: give less"),
        (("solve", "-g", "kuhn", "-n", 5, "--threads", 10**400), "give 1,024 at most"),
        (("evaluate", "exploitability", OLD / "vector", "--threads", 10**6), "use 1 or more, and 1024 at most"),
        (("abstraction", "build", "IR-KE-KE 2-3", "-g", "leduc", "--threads", 10**6), "1024 threads at most"),
    ],
)
def test_options_that_are_too_large(arguments, told):
    assert told in refused(*arguments)


@pytest.mark.parametrize("arguments", [("evaluate", "sanity"), ("solve",), ("game", "show"), ("check",)])
def test_names_that_are_too_long(monkeypatch, capsys, arguments):
    """They are said in one line by `kilt` itself: any file may have such a name."""
    monkeypatch.setattr(sys, "argv", ["kilt", *arguments, "n" * 300])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.count("\n") == 1 and said.startswith("error: nnnnn") and said.endswith(": file name too long\n")


LONG = "n" * 300
LEDUC = {"game": "leduc", "cards": "IR-KE-KE 2-3"}


@pytest.mark.parametrize(
    "call",
    [
        lambda: load_game(LONG),
        lambda: load_agent(LONG),
        lambda: api.solve(LONG),
        lambda: api.solve("kuhn", iterations=5, folder=LONG),
        lambda: api.build_abstraction(LONG, "leduc"),
        lambda: api.plan_run(LEDUC | {"cards": LONG}),
        lambda: api.start_run(LEDUC, LONG),
        lambda: api.resume_run(LONG),
        lambda: api.open_blueprint(LONG),
        lambda: evaluation.play_match(LONG, "random", game="leduc"),
        lambda: Strategy.load(LONG),
        lambda: CardAbstraction.load(LONG),
    ],
)
def test_names_that_are_too_long_for_python(call):
    with pytest.raises(ArtifactError, match=r"^n{200} …: file name too long$"):
        call()


def test_folders_without_a_name(tmp_path, monkeypatch):
    """Nor does it matter that a build was killed there while it wrote its description."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / ".abstraction.json.new").write_text("{")
    monkeypatch.chdir(tmp_path / "here")
    kilt("abstraction", "build", "IR-KE-KE 2-3", "-g", "leduc", "--out", "")
    assert CardAbstraction.load(tmp_path / "here").numbers == (2, 3)
    for names in (("", "/"), (OLD / "abstract", "")):
        assert "is there already" in refused("export", *names)
