"""Runs and plans as data: what they say in TOML is what is read back, and what is wrong with them is said."""

import json
import re
import tomllib
from dataclasses import asdict, fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import Plan, PublicPlan, plan_named, read_plan
from kilt.config import (
    SECTIONS,
    AgentConfig,
    Config,
    EngineConfig,
    ResolveConfig,
    SolverConfig,
    config_of,
    parse_config,
    read_config,
)
from kilt.cost import Cost
from kilt.errors import AbstractionError, EngineError, RunError
from kilt.play.slumbot import ClientConfig
from kilt.records import field_descriptions, replaced
from kilt.runs.examples import EXAMPLES
from kilt.runs.folder import CONFIG
from kilt.runs.plan import resolve
from kilt.spots.spot import Spot

PATHS = ["cards 📁/river 🃏", 'a "quoted" \\ path', "tab\there, line\nthere", "bell \a and delete \x7f", "Größe"]


@pytest.mark.parametrize("path", PATHS)
def test_paths_of_any_letters_can_be_read_back(tmp_path, path):
    plan = Plan((), (PublicPlan(2, 5, base=path, boards=path),))
    (tmp_path / "plan.toml").write_text(plan.toml(), encoding="utf-8")
    assert read_plan(tmp_path / "plan.toml") == plan
    spec = AbstractionSpec(path, Deal(), plan)
    (tmp_path / "abstraction.json").write_text(json.dumps(spec.data()))
    assert AbstractionSpec.read(tmp_path) == spec
    config = Config(path, path, engine=EngineConfig(address=path))
    (tmp_path / "run.toml").write_text(config.toml(), encoding="utf-8")
    assert read_config(tmp_path / "run.toml") == config


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=50)
def test_any_text_survives_toml(text):
    import tomllib

    config = Config("leduc", text, agent=AgentConfig(post=text))
    assert config_of(tomllib.loads(config.toml())) == config


def test_runs_from_python_are_said_shortly(tmp_path):
    whole = Config("leduc", ("lossless",), ("1x, a",), solver=SolverConfig(minutes=2, seed=3))
    assert Config("leduc", "lossless", "1x, a", solver={"minutes": 2, "seed": 3}) == whole
    assert Config("leduc", ["lossless", "lossless"], ["1x, a"], solver=SolverConfig(minutes=2, seed=3)) == whole
    assert config_of(asdict(whole)) == config_of(json.loads(json.dumps(asdict(whole)))) == whole
    assert config_of({"game": "leduc", "cards": "lossless", "actions": "1x, a", "solver": whole.solver}) == whole
    (tmp_path / "run.toml").write_text(whole.toml())
    assert read_config(str(tmp_path / "run.toml")) == whole
    assert Config("leduc", ("lossless", "IR-KE-KE 2-3")).cards == ("lossless", "IR-KE-KE 2-3")
    whole = Config("leduc", tilt=[7, 0, 0, 7], engine={"below": 3}, resolve={"rounds": "turn"})
    assert (whole.tilt, whole.engine.below, whole.resolve.rounds) == ((7.0, 0.0, 0.0, 7.0), (3,), ("turn",))
    assert (EngineConfig(below=0).below, EngineConfig(below=[3, 2]).below) == ((), (3, 2))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SolverConfig(threads=0), "`threads` in [solver] is 0: give 1 or more"),
        (lambda: SolverConfig(seed=True), "`seed` in [solver] is True: it takes a whole number"),
        (lambda: SolverConfig(minutes=float("nan")), "`minutes` in [solver] is nan: give 0 or more"),
        (lambda: SolverConfig(average="yes"), "`average` in [solver] is 'yes': it takes true or false"),
        (lambda: Config("leduc", "lossless", near="close"), "`near` in the run is 'close': it takes a number"),
        (lambda: Config("leduc", "lossless", near=7.0), "`near` in the run is 7.0: give 0 to 1"),
        (lambda: ResolveConfig(trust=3.0), "`trust` in [resolve] is 3.0: give 0 to 1"),
        (lambda: ResolveConfig(near=-1.0), "`near` in [resolve] is -1.0: give 0 to 1"),
        (lambda: ResolveConfig(method="gadgt"), "`method` in [resolve] is 'gadgt': use one of unsafe, gadget, max-m"),
        (lambda: EngineConfig(below=[2, 0]), "`below` in [engine] is (2, 0): give 1 or more"),
        (lambda: EngineConfig(below=[True]), "`below` in [engine] is (True,): it takes a list of whole numbers"),
        (lambda: Config("leduc", tilt=["7"]), "`tilt` in the run is ('7',): it takes a list of numbers"),
        (lambda: EngineConfig("raye"), "unknown engine 'raye': use one of local, ray"),
        (lambda: Config(7, "lossless"), "`game` in the run is 7: it takes a text"),
        (lambda: Config("leduc", ["a", "b", "c"]), "`cards` is ['a', 'b', 'c']: give a text such as"),
        (lambda: Config("leduc", "lossless", solver={"sede": 1}), "[solver] has no key sede: use algor"),
        (lambda: Config("leduc", "lossless", solver=3), "[solver] is 3: it has lines such as `algorithm = …`"),
        (lambda: config_of({"cards": "lossless"}), "game must be given in the run: `game = "),
        (lambda: config_of([]), "the run is []: it has lines such as `game = …`"),
    ],
)
def test_what_is_wrong_with_a_run_is_said(make, said):
    with pytest.raises((RunError, EngineError)) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Plan((), bins=0), "`bins` in the plan is 0: give 1 or more"),
        (lambda: Plan((3,)), "`rounds` in the plan is (3,): it takes a list"),
        (lambda: PublicPlan(2, 5, codes=-1), "`codes` in [[public]] is -1: give 0 or more"),
        (lambda: PublicPlan(2, 5, ground="luck"), "`ground` in [[public]] is 'luck': use one of history, histogram"),
        (lambda: PublicPlan(3, 5, until=2), "`until` is round 2, before round 3: give a later one"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(make, said):
    with pytest.raises(AbstractionError) as caught:
        make()
    assert said in str(caught.value)


def test_classes_of_boards_are_in_the_order_of_their_rounds():
    flop, river = PublicPlan(2, 10), PublicPlan(4, 10)
    assert Plan(plan_named("lossless", (0, 3, 1, 1)).rounds, (river, flop)).public == (flop, river)


LEDUC = {"game": "leduc", "cards": "lossless"}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"engine": {"blades": 9}},
            "[engine] sets `blades` but names no engine: add `name`, one of local, ray, or",
        ),
        (
            {"solver": {"algorithm": "cfr+", "prune": 5}},
            "`prune` in [solver] is 5, but cfr+ does not use it: omit",
        ),
        ({"solver": {"algorithm": "joint", "average": False}}, "`average` in [solver] is False, but joint does not"),
        ({"solver": {"algorithm": "cfr+disk", "equities": True}}, "`equities` in [solver] is True, but cfr+disk does"),
    ],
)
def test_keys_that_a_run_would_not_read_are_refused(tmp_path, said, words):
    with pytest.raises(RunError) as caught:
        resolve(config_of(LEDUC | said), tmp_path / "new")
    assert words in str(caught.value)
    (tmp_path / CONFIG).write_text(config_of(LEDUC | said).toml())  # a run of an earlier version has such keys
    assert resolve(config_of(LEDUC | said), tmp_path).config == config_of(LEDUC | said)


def test_memory_for_re_solving_is_asked_for_when_a_run_begins(tmp_path, monkeypatch):
    """A plan can be made, and its cost estimated, on a machine where its agent could not play."""
    plan = resolve(config_of(LEDUC | {"resolve": {"rounds": "round 2", "bets": "1x"}}))
    monkeypatch.setattr("kilt.search.settings.cost_of", lambda *which: Cost(10**15, what="re-solving", remedy="rest"))
    assert plan.cost().fits
    with pytest.raises(RunError, match=r"re-solving takes 1,000,000\.0 GB of memory, and .* are available: rest"):
        plan.require_room(tmp_path / "run")


def test_keys_of_external_sampling_are_read():
    for solver in ({"prune": 5.0, "linear": False}, {"average": False, "equities": True}):
        assert resolve(config_of(LEDUC | {"solver": solver})).options


@pytest.mark.parametrize("kind", [Config, *SECTIONS.values(), PublicPlan, Spot, ClientConfig])
def test_every_key_is_described(kind):
    """`kilt new` and the reference print these texts."""
    found = field_descriptions(kind)
    assert [name for name, words in found.items() if not words and name not in SECTIONS] == []


def test_the_example_says_what_every_key_means():
    text, config = EXAMPLES[""], parse_config(EXAMPLES[""])
    data = tomllib.loads(text)
    assert config.solver.minutes == 10 and config.resolve == ResolveConfig(seconds=2)
    for name, kind in {"": Config, **SECTIONS}.items():
        keys = {one.name for one in fields(kind)} - set(SECTIONS)
        assert name == "counter" or keys <= set(data.get(name, data)), name
    assert len(re.findall("^# ", text, re.MULTILINE)) >= len(re.findall(" = ", text))
    with pytest.raises(RunError, match=r"`minutes` in \[solver\] is -1: give 0 or more"):
        replaced(config, {"solver.minutes": -1})
