"""Heavy stages on engines: matches, clusters of hands, best responses. All come out as they do without one."""

import os
import shutil
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from commands import answer, refused
from engine_workers import answers_and_dies_once
from kilt import artifact
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Features
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import BucketStep, Plan, PublicPlan, RoundPlan
from kilt.engines import Crew, EngineError, engine_named
from kilt.errors import PlayError, RunError
from kilt.evaluate.crosstable import crosstable
from kilt.evaluate.flops import FlopResponses, draw_flops, flop_walks
from kilt.play import match as matches
from kilt.play.acpc import format_log_line
from kilt.play.agent import BASELINES
from kilt.play.match import play_match
from kilt.players.profile import StrategyRef
from kilt.runs.answers import solve_answer
from kilt.runs.budget import Budget
from kilt.runs.build import build as build_run
from kilt.runs.build import spec_of
from kilt.solve.counter import Against
from kilt.strategy.model import OpponentModel
from loaders import Rooted, baseline, here_only
from test_cli_agent import solved  # noqa: F401, a fixture
from test_cli_solve import short  # noqa: F401, a fixture
from test_flops import Quiet
from test_match import LEDUC, NOLIMIT, Bound, pair
from test_public import CASES, SHORT, features  # noqa: F401, a fixture
from written_out import tree_of


@pytest.fixture(scope="module", params=["local", "ray"])
def engine(request, token):
    found = engine_named(request.param, threads=2)
    yield found
    found.close()


@pytest.fixture
def at_once(monkeypatch):
    """Matches leave this process as soon as they can."""
    monkeypatch.setattr(matches, "WORTHWHILE", 0.0)


# Matches


def test_matches(engine, at_once):
    here, there, ticks = [], [], []
    expected = play_match(NOLIMIT, pair("random", "probe"), 1000, 11, sink=here.append)
    found = play_match(
        NOLIMIT,
        ("random", "probe"),
        1000,
        11,
        load=baseline,
        processes=2,
        engine=engine,
        sink=there.append,
        tick=ticks.append,
    )
    assert found.results.tolist() == expected.results.tolist()
    assert list(map(format_log_line, there)) == list(map(format_log_line, here))
    assert ticks == sorted(ticks)
    assert ticks[-1] == 1000
    assert not engine._workers


@pytest.mark.parametrize("engine", ["ray"], indirect=True)  # nobody is lost in this process
def test_workers_that_are_lost_are_replaced(engine, at_once):
    """With what they were asked: the results are those of nobody lost."""

    def kill(*_: object) -> None:
        if engine._workers and not killed:
            killed.append(int(engine._workers[0].where.rpartition(" ")[2]))
            os.kill(killed[0], signal.SIGKILL)

    killed: list[int] = []
    expected = play_match(NOLIMIT, pair("random", "probe"), 2000, 11)
    found = play_match(NOLIMIT, ("random", "probe"), 2000, 11, load=baseline, processes=2, engine=engine, tick=kill)
    assert killed and found.results.tolist() == expected.results.tolist()
    assert not engine._workers


def test_crosstables(at_once):
    engine = engine_named("local")
    players = [BASELINES[name] for name in ("probe", "random", "always-call")]
    expected = crosstable(LEDUC, players, 400, seed=2)
    found = crosstable(LEDUC, players, 400, seed=2, processes=2, engine=engine)
    for pairing, match in expected.matches.items():
        assert found.matches[pairing].results.tolist() == match.results.tolist()


def test_workers_do_play(engine, at_once):
    """By the process that hands were played in: there is one here; with Ray, one or two others play as well."""
    hands = []
    play_match(NOLIMIT, (Rooted(), BASELINES["always-call"]), 1200, processes=2, engine=engine, sink=hands.append)
    processes = len({hand.position.history for hand in hands[::2]})
    assert processes == 1 if engine.name == "local" else processes > 1


def test_matches_that_are_stopped_or_fail(engine, at_once):
    played = []
    match = play_match(
        NOLIMIT, pair("random", "probe"), 10**8, engine=engine, tick=played.append, stop=lambda: len(played) == 4
    )
    assert match.hands == 4 * 2 * matches.CHUNK
    assert match.results.tolist() == play_match(NOLIMIT, pair("random", "probe"), match.hands).results.tolist()
    with pytest.raises(PlayError, match="bound or always-call cannot be sent"):
        play_match(NOLIMIT, (Bound(), BASELINES["always-call"]), 1000, engine=engine)
    if engine.name == "ray":
        elsewhere = partial(here_only, home=os.getpid())
        with pytest.raises(PlayError, match="probe cannot be played elsewhere"):
            play_match(NOLIMIT, ("probe", "random"), 1000, load=elsewhere, engine=engine)
    assert not engine._workers


# Abstractions


@pytest.mark.parametrize(
    "case", ["codes", "percentiles", "each hand by itself", "inside what was before", "looking ahead"]
)
def test_clusters(engine, case, features, tmp_path):  # noqa: F811
    identity = AbstractionSpec(case, SHORT, CASES[case])
    expected = build(identity, tmp_path / "here", cache=features.folder)
    found = build(identity, tmp_path / "there", cache=features.folder, engine=engine)
    for mine, theirs in zip(expected.rounds, found.rounds, strict=True):
        assert np.array_equal(mine.table, theirs.table)
        assert np.array_equal(mine.sizes, theirs.sizes)
        assert (mine.coded is None) == (theirs.coded is None)
        if mine.coded:
            assert np.array_equal(mine.coded.bucket, theirs.coded.bucket)


def test_features(engine, tmp_path):
    """What is made by others is what is made here, in the same files."""
    plan = replace(
        CASES["each hand by itself"],
        rounds=tuple(
            RoundPlan(False, (BucketStep(feature, 3),)) for feature in ("histogram", "history", "ehs2", "ochs")
        ),
    )
    asked = [(step.feature, r) for r, this in enumerate(plan.rounds) for step in this.steps]
    there = Features(SHORT, tmp_path / "there", engine=engine)
    there.compute_with_engine(asked, plan.settings)
    made = [place for place in tmp_path.glob("there/*/*") if artifact.exists(place)]
    assert bool(made) == (engine.name == "ray")
    here, there = (
        build(AbstractionSpec("features", SHORT, plan), tmp_path / f"{name}-cards", cache=tmp_path / name, engine=used)
        for name, used in (("here", None), ("there", engine))
    )
    for mine, theirs in zip(here.rounds, there.rounds, strict=True):
        assert np.array_equal(mine.table, theirs.table)
    for place in tmp_path.glob("here/*/*"):
        if artifact.exists(place):
            other = tmp_path / "there" / place.relative_to(tmp_path / "here")
            values = (artifact.read(one, "feature table").arrays["values"] for one in (place, other))
            assert np.array_equal(*values)


def test_exact_distances_of_boards(engine, features, tmp_path):  # noqa: F811
    """Pair by pair of boards; what travels is the hands of both."""
    identity = AbstractionSpec("boards", SHORT, Plan((), (PublicPlan(2, 4, "schmid", exact=True),), bins=12))
    for name, used in (("here", None), ("there", engine)):
        shutil.rmtree(features.folder / "distances", ignore_errors=True)  # nobody finds those of others
        build(identity, tmp_path / name, cache=features.folder, engine=used)
    mine, theirs = (
        artifact.read(tmp_path / name / "boards-2", "classes of boards").arrays for name in ("here", "there")
    )
    assert np.array_equal(mine["distances"], theirs["distances"]) and mine["distances"].max() > 0
    assert np.array_equal(mine["classes"], theirs["classes"])


# Best responses


def values(subject, engine, workers):
    evaluator, strategy, _ = subject.load(shared=True)
    return subject.response_values(evaluator.tree_passes(strategy), engine, workers)


def values_here(subject, threads):
    evaluator, strategy, _ = subject.load(threads)
    return evaluator.response_values(strategy), evaluator.expected_value(strategy)


def assert_equal(found, subject, workers):
    assert found == values_here(subject, max(workers, 2))
    won, value = values_here(subject, 1)
    assert found[0] == pytest.approx(won, rel=1e-12)
    assert found[1] == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 3])
def test_best_responses_to_agents(engine, workers):
    subject = StrategyRef("leduc", agent="call-or-raise")
    assert_equal(values(subject, engine, workers), subject, workers)
    assert not engine._workers


def test_best_responses_to_runs(engine, short, tmp_path, monkeypatch):  # noqa: F811
    answer("solve", "-g", short, "-n", 4, "--threads", 2, "-o", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    subject = StrategyRef.of_run(tmp_path / "run")
    assert_equal(values(subject, engine, 2), subject, 2)


@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.long)], indirect=True)
def test_best_responses_to_blueprints(engine, solved, tmp_path):  # noqa: F811
    subject = StrategyRef.of_run(solved)
    assert_equal(values(subject, engine, 2), subject, 2)
    evaluator, strategy, _ = subject.load()
    walks = flop_walks(evaluator.problem, strategy)
    draws = draw_flops(walks.game, 3)
    here, there = (FlopResponses.open(walks, "it", "game", tmp_path / name, draws) for name in ("here", "there"))
    here.compute(Quiet())
    with subject.flop_crew(evaluator.problem, engine, 2) as there.crew:
        assert there.time_left() > 0
        there.compute(Quiet())
    assert np.array_equal(here.values, there.values) and here.values.any()
    assert not engine._workers


@pytest.mark.parametrize("engine", ["ray"], indirect=True)  # nobody is lost in this process
def test_best_responses_of_workers_that_are_lost(engine, monkeypatch):
    """Their shares are walked again by others, and come to the same, to the last bit."""
    ask, killed = Crew.ask, []

    def kill(self, number, method, *arguments):
        get = ask(self, number, method, *arguments)
        if not killed:
            killed.append(int(engine._workers[0].where.rpartition(" ")[2]))
            os.kill(killed[0], signal.SIGKILL)
        return get

    monkeypatch.setattr(Crew, "ask", kill)
    subject = StrategyRef("leduc", agent="call-or-raise")
    assert values(subject, engine, 2) == values_here(subject, 2)
    assert killed and not engine._workers


def test_games_without_parts(tmp_path):
    with pytest.raises(RunError, match="kuhn is one small tree without parts"):
        values(StrategyRef("kuhn", agent="uniform"), None, 2)
    answer("solve", "-g", "leduc", "-n", 5, "-o", tmp_path / "run")
    assert "remove the engine" in refused("evaluate", "exploitability", tmp_path / "run", "--engine", "local")


# Counter-strategies


def ann():
    """A model of somebody in Leduc hold'em."""
    tree = tree_of("leduc")
    actions = sum(map(len, tree.actions))
    return OpponentModel.of_tree(tree, "Ann", np.random.default_rng(3).integers(0, 9, actions).astype(float))


@pytest.mark.parametrize("engine", ["ray"], indirect=True)  # `test_commands` has the other
def test_answers(engine, tmp_path):
    """Each is solved somewhere else; what was lost with a process is gone on with from its last checkpoint."""
    model = ann()
    folders = {place: [tmp_path / place / str(p) for p in (0.5, 0.9)] for place in ("here", "there")}
    for places in folders.values():
        for p, folder in zip((0.5, 0.9), places, strict=True):
            build_run(
                spec_of("leduc", {"solver.algorithm": "dbr"}, against=Against(model, p)), folder, budget=Budget(40)
            )
    expected = [solve_answer(folder) for folder in folders["here"]]
    found = engine.map(answers_and_dies_once, folders["there"])
    lost = folders["there"][0]
    before, after = ((lost / name).read_text().splitlines() for name in ("before.jsonl", "log.jsonl"))
    assert 0 < len(before) < len(after) and before[0] == after[0]
    for mine, theirs, here, there in zip(found, expected, *folders.values(), strict=True):
        assert mine[1:] == theirs[1:] and mine.last[2:5] == theirs.last[2:5]
        assert 0 < mine.exploitability_mbb < mine.exploitation.mean
        strategies = [np.load(folder / "strategy" / "probabilities.npy") for folder in (here, there)]
        assert np.array_equal(*strategies)
    assert found[0].exploitation.mean < found[1].exploitation.mean


# Commands


def without_times(said):
    """What a command has said, but for how long it took."""
    if isinstance(said, list):
        return [without_times(part) for part in said]
    if not isinstance(said, dict):
        return said
    return {what: without_times(part) for what, part in said.items() if not what.endswith(("seconds", "cpu_ms"))}


def test_commands(tmp_path, short, features, monkeypatch):  # noqa: F811
    engine = ("--engine", "local")
    for command in ("match", "crosstable"):
        asked = (command, "probe", "random", "-g", "leduc", "-n", 40)
        assert without_times(answer(*asked, *engine)) == without_times(answer(*asked))
    asked = ("evaluate", "exploitability", "-g", short, "--agent", "always-call", "--threads", 2)
    assert answer(*asked, *engine) == answer(*asked)
    ann().save(tmp_path / "ann")
    asked = ("counter", "-g", "leduc", "--model", tmp_path / "ann", "--p", 0.5, "--p", 1, "-n", 3, "--out")
    here, there = (answer(*asked, tmp_path / place, *more)["answers"] for place, more in (("c", ()), ("d", engine)))
    assert [one["run"] for one in here] == [str(tmp_path / "c" / "p-0.5"), str(tmp_path / "c" / "p-1")]
    kept = [[{**one, "run": ""} for one in some] for some in (here, there)]
    assert without_times(kept[0]) == without_times(kept[1]) and here[1]["exploitation_mbb"] > 0
    assert "is there already: choose another folder" in refused(*asked, tmp_path / "c")
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    asked = ("abstraction", "build", "PR-PHS-PHS 3-2", "-g", short, "--threads", 2, "--out")
    here, there = answer(*asked, tmp_path / "here"), answer(*asked, tmp_path / "there", *engine)
    assert here["fingerprint"] == there["fingerprint"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--address", "host:1"], "--address host:1 is given, and no engine: add --engine ray"),
        (["--engine", "warp"], "unknown engine 'warp'"),
        (["--engine", "local", "--address", "host:1"], "`local` takes no address"),
    ],
)
def test_refusals(options, said, tmp_path, monkeypatch):
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    for command in (
        ["match", "probe", "random", "-g", "leduc"],
        ["crosstable", "probe", "random", "-g", "leduc"],
        ["evaluate", "exploitability", "-g", "leduc", "--agent", "uniform"],
        ["abstraction", "build", "lossless", "-g", "leduc", "--out", tmp_path / "run"],
    ):
        assert said in refused(*command, *options)


def test_workers_have_to_be_some():
    with pytest.raises(RunError, match="number of workers is 0: use 1 or more"):
        values(StrategyRef("leduc", agent="uniform"), None, 0)
    with pytest.raises(EngineError, match="unknown engine"):
        engine_named("")
