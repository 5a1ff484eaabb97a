"""External sampling on a GPU, or on what takes its place: the same source as C++, a warp of one lane or of 32."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuda_on_cpu
from commands import answer, kilt, refused, wait_for_checkpoint
from kilt import gpu
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Features
from kilt.abstraction.pipeline import build
from kilt.config import EngineConfig, read_config
from kilt.errors import RunError
from kilt.runs import plan
from kilt.runs.folder import RunFolder
from kilt.solve import external, external_device, external_device_cards, external_device_classes
from kilt.solve.abstract import BucketedGame
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.solve.external_device import DeviceTable, GpuExternalMCCFR
from kilt.tree.vector import VectorGame
from kilt_lab.benchmarks import gpu_blueprint, gpu_learning
from test_device import MISSING
from test_external import PLANS, SHORT, cards_of, folder, games, no_limit, tables  # noqa: F401, fixtures


def one_lane(patch):
    """Have walks go on by one deal at a time, as on the CPU: without a GPU, in a warp of one lane."""
    for name in ("WARPS", "RESIDENT", "SIZE"):
        patch(external_device, name, 1)
    patch(external_device, "multiprocessors", lambda: 1)
    if MISSING:
        for where in (gpu, external_device, external_device_cards):
            patch(where, "require_gpu", lambda: cuda_on_cpu)
        for where in (gpu, external_device, external_device_classes):
            patch(where, "free_memory", lambda: MEMORY)
        patch(external_device, "LANES", 1)
        for where in (external_device, external_device_cards, external_device_classes):
            patch(where, "address", cuda_on_cpu.address)
        for where in (external_device, external_device_classes):
            patch(where, "copy_out", cuda_on_cpu.copy)
            patch(where, "copy_in", cuda_on_cpu.copy)
        patch(external_device_classes, "pinned_array", lambda words: np.zeros(words, np.uint32))
    gpu.kernels.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def a_device():
    """A GPU, or what takes its place."""
    if MISSING and not cuda_on_cpu.COMPILER:
        pytest.skip("there is neither a GPU nor a C++ compiler")
    with pytest.MonkeyPatch.context() as patch:
        one_lane(patch.setattr)
        yield
    gpu.kernels.cache_clear()


ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
MEMORY = 1 << 40  # bytes of what takes the place of a device


def regrets_and_counts(solver):
    """[slot] the regrets of a solver on a device, and its counts."""
    state = solver.state()
    there = ExternalMCCFR(solver.abstract, 0, solver.options)
    there.table[:] = np.asarray(state["table"])
    return tables(there)


@pytest.mark.parametrize("game", ["all raises", "three rounds", "uneven stacks", "few raises", "each their own cards"])
@pytest.mark.parametrize(
    "options",
    [
        SamplingOptions(),
        SamplingOptions(linear=True),
        SamplingOptions(average=False),
        SamplingOptions(linear=True, prune=0.02),
        SamplingOptions(linear=True, equities=True),
    ],
    ids=repr,
)
def test_updates_are_those_of_the_cpu(games, game, options, monkeypatch):  # noqa: F811
    """The same deals and draws, the same regrets and counts, if one deal is walked over at a time."""
    monkeypatch.setattr(external, "STEPS", 6)  # discounts from iteration 8 on
    monkeypatch.setattr(external_device, "STEPS", 6)
    ours, theirs = GpuExternalMCCFR(games[game], 5, options), ExternalMCCFR(games[game], 5, options)
    for one in (ours, theirs):
        one.step(70)
        one.step(80)
    for mine, other in zip(regrets_and_counts(ours), tables(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-3)
    assert (ours.decisions, ours.visits) == (theirs.decisions, theirs.visits)
    assert np.array_equal(ours.average(), theirs.average())


@pytest.mark.parametrize(
    "options", [SamplingOptions(compact=True), SamplingOptions(average=False, compact=True)], ids=repr
)
def test_regrets_of_two_bytes(games, options):  # noqa: F811
    """Rounding is right on average: over seeds of the draws, regrets come to about those of four bytes."""
    abstract, plain = games["three rounds"], replace(options, compact=False)
    sums, whole = np.zeros(abstract.slots), np.zeros(abstract.slots)
    solver = GpuExternalMCCFR(abstract, 5, options)
    table = solver.regrets
    assert table.size < DeviceTable(abstract, plain).size
    for seed in range(30):
        for total, own in ((sums, options), (whole, plain)):
            one = GpuExternalMCCFR(abstract, seed, own)
            one.step(40)
            total += regrets_of(one)
    assert np.abs(whole).max() > 200
    np.testing.assert_allclose(sums, whole, rtol=0.05, atol=20)
    assert not np.array_equal(sums, whole)


def regrets_of(solver):
    """[slot] the regrets of a solver on a device, whatever its table."""
    table, found = solver.regrets, np.zeros(solver.abstract.slots)
    words, wide = (solver.cupy.asnumpy(each) for each in (table.table, table.numbers))
    for d, (n, buckets) in enumerate(zip(table.counts.tolist(), table.buckets.tolist(), strict=True)):
        row, first = int(table.rows[d]), int(table.first[d])
        if table.wide[d]:
            mine = wide[row : row + 2 * n * buckets].reshape(buckets, 2 * n)[:, :n]
        else:
            size = int(external_device.row_words(np.array(n), solver.options))
            rows = words[row : row + size * buckets].reshape(buckets, size)
            if solver.options.compact:
                halves = np.ascontiguousarray(rows[:, : (n + 1) // 2]).view(np.uint16)[:, :n].astype(np.uint32) << 16
                mine = halves.view(np.float32)
            else:
                mine = np.ascontiguousarray(rows[:, :n]).view(np.float32)
        found[first : first + n * buckets] = mine.ravel()
    return found


def test_compact_tables_learn_and_go_on(games, wide_warps):  # noqa: F811
    """Exploitability falls as with four bytes; a checkpoint goes on on a GPU, and the CPU refuses it."""
    abstract, options = games["three rounds"], SamplingOptions(linear=True, compact=True)
    seen = BucketedGame.with_abstraction(VectorGame(abstract.game, menu=abstract.actions), abstract.cards)
    ours, theirs = (
        GpuExternalMCCFR(abstract, 5, options, np.uint16),
        ExternalMCCFR(abstract, 5, SamplingOptions(linear=True)),
    )
    ours.step(3000)
    state = {name: np.asarray(array) for name, array in ours.state().items()}
    again = GpuExternalMCCFR(abstract, 0, options, np.uint16)
    again.restore(state)
    assert np.array_equal(again.average(), ours.average())
    again.step(1000)
    theirs.step(4000)
    found = [seen.exploitability(seen.table_of(abstract, one.average())) for one in (again, theirs)]
    start = seen.exploitability(seen.table_of(abstract, np.ones_like(theirs.average())))
    assert found[0] < 1.4 * found[1] < 0.7 * start
    again.regrets.halve(1)
    assert np.isfinite(regrets_of(again)).all()
    with pytest.raises(RunError, match="`compact` tables need a GPU"):
        ExternalMCCFR(abstract, 5, options)


def test_lists_that_are_too_short(games, monkeypatch):  # noqa: F811
    """Walks go on in the large list, and nothing is lost."""
    monkeypatch.setattr(external_device, "ROOMY", 0)
    ours, theirs = GpuExternalMCCFR(games["three rounds"], 5), ExternalMCCFR(games["three rounds"], 5)
    for one in (ours, theirs):
        one.step(200)
    assert 20 < ours.borrowed <= 200
    assert np.array_equal(ours.average(), theirs.average())
    assert (ours.decisions, ours.visits) == (theirs.decisions, theirs.visits)


@pytest.mark.parametrize("name", PLANS)
def test_deals_and_buckets_are_those_of_the_cpu(folder, name):  # noqa: F811
    """With buckets of each round by itself, with rounds remembered, in classes of boards, and by codes."""
    plan = replace(PLANS[name], bins=12, opponents=3)
    cards = build(AbstractionSpec(name, SHORT, plan), folder / name, cache=Features(SHORT, folder / "features").folder)
    game = AbstractGame(no_limit(4, 3, 2, "0 2 1 1", "12 12"), cards)
    ours, theirs = GpuExternalMCCFR(game, 7), ExternalMCCFR(game, 7)
    bucket, outcome = np.zeros((500, 4, 2), np.uint32), np.zeros(500, np.int32)
    given = gpu.by_value(ours.cards.record), np.int64(30), np.int32(500), *map(ours.cupy.asarray, (bucket, outcome))
    ours.kernel("look_up_deals")((500,), (1,), given)
    room = theirs._workspaces[0]
    found = room.deal(np.uint64(7), 30, 500)
    assert np.array_equal(ours.cupy.asnumpy(given[-2]), found[0])
    assert np.array_equal(ours.cupy.asnumpy(given[-1]), found[1][:, -1])


@pytest.fixture
def wide_warps(monkeypatch):
    """Warps of 32 lanes, two of a block, with four deals each."""
    for name, number in (("LANES", 32), ("WARPS", 2), ("SIZE", 4), ("CLASS", 4)):
        monkeypatch.setattr(external_device, name, number)


def test_the_first_deals_of_a_warp(games, wide_warps):  # noqa: F811
    """Before anybody has learnt: opponents do what they do where each deal is by itself, and all of it is counted."""
    abstract = games["three rounds"]
    ours = GpuExternalMCCFR(abstract, 5)
    ours._launch(0, 8, 8, 0.0)
    regret, count = regrets_and_counts(ours)
    expected, decisions = np.zeros(abstract.slots), 0
    for deal in range(8):
        alone = ExternalMCCFR(abstract, 5)
        decisions += alone._walk(alone._workspaces[0], deal, 1, 0.0)[0]
        expected += tables(alone)[1]
    np.testing.assert_array_equal(count, expected)
    ours._walk_to(0)
    assert ours.decisions == decisions and np.isfinite(regret).all() and np.count_nonzero(regret) > 100


@pytest.mark.parametrize("options", [SamplingOptions(linear=True), SamplingOptions(prune=0.02)], ids=repr)
def test_warps_learn_as_the_cpu_does(games, wide_warps, options):  # noqa: F811
    """Many deals at a time, with discounts and without: after as many deals, strategies are worth about the same."""
    abstract = games["three rounds"]
    seen = BucketedGame.with_abstraction(VectorGame(abstract.game, menu=abstract.actions), abstract.cards)
    found = []
    for solver in (
        GpuExternalMCCFR(abstract, 5, options, np.uint16),
        ExternalMCCFR(abstract, 5, options, dtype=np.uint16),
    ):
        solver.step(6000)
        found.append(seen.exploitability(seen.table_of(abstract, solver.average())))
    start = seen.exploitability(seen.table_of(abstract, np.ones_like(solver.average())))
    assert found[0] < 1.3 * found[1] < 0.7 * start  # seeds differ by 15%


def test_counts_of_the_table_are_those_of_opponents(games, wide_warps):  # noqa: F811
    """Nothing that is counted is lost: the sum of all counts is the number of opponents' decisions."""
    solver = GpuExternalMCCFR(games["all raises"], 3)
    solver.step(2000)
    assert 0 < solver.own_decisions < solver.decisions
    assert regrets_and_counts(solver)[1].sum() == solver.decisions - solver.own_decisions


def test_either_goes_on_with_what_the_other_has_left(games):  # noqa: F811
    abstract, options = games["three rounds"], SamplingOptions(linear=True)
    whole, begun = ExternalMCCFR(abstract, 5, options), ExternalMCCFR(abstract, 5, options)
    ours, last = GpuExternalMCCFR(abstract, 0, options), ExternalMCCFR(abstract, 0, options)
    whole.step(300)
    begun.step(100)
    ours.restore(begun.state())
    ours.step(100)
    last.restore({name: np.asarray(array) for name, array in ours.state().items()})
    last.step(100)
    for mine, other in zip(tables(last), tables(whole), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-3)
    again = GpuExternalMCCFR(abstract, 0, options)
    again.restore({name: np.asarray(array) for name, array in ours.state().items()})
    for name, array in ours.state().items():
        np.testing.assert_array_equal(np.asarray(array), np.asarray(again.state()[name]))


def test_numbers_past_the_limits(games):  # noqa: F811
    """Counts of the first round go past 2^32, regrets of later ones past the range; strategies stay, and learn on."""
    abstract = games["three rounds"]
    solver = GpuExternalMCCFR(abstract, 5, dtype=np.uint16)
    solver.step(200)
    before = solver.average()
    state = {name: np.array(array) for name, array in solver.state().items()}
    table = solver.regrets
    wide = state["wide"].view(np.uint64)
    for mine, _, n in table._wide_rows(state["wide"], state["table"]):
        mine[:, :n] *= 1e12
        mine[:, n:].view(np.uint64)[:] *= np.uint64(1 << 36)
    top = external_device.RANGE * np.abs(table.payoff).max()
    later = np.flatnonzero(~table.wide)
    for d in later.tolist():
        n, buckets, row = int(table.counts[d]), int(table.buckets[d]), int(table.rows[d])
        rows = state["table"][row : row + 2 * n * buckets].reshape(buckets, 2, n)
        rows[:, 0].view(np.float32)[:] *= np.float32(top)
        rows[:, 1] *= np.uint32(2**32 - 1) // np.maximum(rows[:, 1].max(axis=1, keepdims=True), 1)
    assert wide.max() > 2**37
    solver.restore(state)
    solver.regrets.halve(external.HALVED)
    np.testing.assert_allclose(solver.average().astype(float), before.astype(float), atol=1)
    for d in later.tolist():
        n, buckets, row = int(table.counts[d]), int(table.buckets[d]), int(table.rows[d])
        rows = solver.cupy.asnumpy(table.table)[row : row + 2 * n * buckets].reshape(buckets, 2, n)
        assert rows[:, 0].view(np.float32).min() >= -top
        assert rows[:, 1].max() < 2**31
    solver.iterations = 2**30 - 100
    solver.step(400)
    counted = np.asarray(solver.state()["wide"]).view(np.uint64)
    assert counted.max() > 2**37
    cpu = ExternalMCCFR(abstract, 5, dtype=np.uint16)
    cpu.restore({name: np.asarray(array) for name, array in solver.state().items()})
    np.testing.assert_allclose(cpu.average().astype(float), solver.average().astype(float), atol=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_strategies_in_pieces(games, dtype, monkeypatch):  # noqa: F811
    """Quantised on the device, a few decisions at a time."""
    monkeypatch.setattr(external_device, "TOGETHER", 200)
    ours, theirs = (
        GpuExternalMCCFR(games["all raises"], 5, dtype=dtype),
        ExternalMCCFR(games["all raises"], 5, dtype=dtype),
    )
    for one in (ours, theirs):
        one.step(100)
    assert np.array_equal(ours.average(), theirs.average())
    np.testing.assert_allclose(ours.current().astype(int), theirs.current().astype(int), atol=1)


# ── commands ──

CONFIG = """\
game = "{game}"
cards = "lossless"
actions = "1x, a / 50%, a; a"

[solver]
iterations = {iterations}
linear = true
"""
RULES = """\
GAMEDEF
nolimit
numPlayers = 2
numRounds = 2
stack = 24 24
blind = 2 1
firstPlayer = 2 1
numSuits = 2
numRanks = 5
numHoleCards = 1
numBoardCards = 0 1
END GAMEDEF
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The file of a small run."""
    monkeypatch.chdir(tmp_path)
    Path("small.game").write_text(RULES)
    Path("small.toml").write_text(CONFIG.format(game="small.game", iterations=1500))
    return "small.toml"


def test_a_run_by_command(config):
    """The same folder as on the CPU, and the same strategy: each machine goes on with the other's runs."""
    here = answer("solve", config, "--out", "here")
    there = answer("solve", config, "--out", "there", "--device", "gpu")
    for what in ("algorithm", "iterations", "exploitability", "value"):
        assert there[what] == pytest.approx(here[what], abs=2e-4)
    first, second = (RunFolder.open(Path(name)).identity for name in ("here", "there"))
    assert (first.device, second.device) == ("cpu", "gpu") and first == second._replace(device="cpu")
    longer = [answer("solve", "--resume", run, "-n", 2500, *more) for run, more in MOVES.items()]
    assert longer[0]["exploitability"] == pytest.approx(longer[1]["exploitability"], abs=2e-4)
    assert longer[0]["iterations"] == longer[1]["iterations"] == 2500


MOVES = {"here": ("--device", "gpu"), "there": ("--device", "cpu")}  # a run of either machine, on the other one


def test_a_killed_run_goes_on(config):
    code = (
        "import test_external_device, kilt.cli, kilt.runs.folder\n"
        "kilt.runs.folder.OFTEN = 0.05\n"
        "test_external_device.one_lane(setattr)\n"
        "kilt.cli.main()"
    )
    long = [sys.executable, "-c", code, "solve", config, "-n", "100000000", "--out", "run", "--device", "gpu"]
    child = subprocess.Popen(long, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_checkpoint(Path("run"), child)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    done = RunFolder.open(Path("run")).saved_iterations
    assert done > 0
    found = answer("solve", "--resume", "run", "-n", done + 500, "--device", "gpu")
    assert found["iterations"] == done + 500


def test_what_it_takes_is_said_before_any_work(config, monkeypatch):
    found = answer("plan", config, "--device", "gpu", "--no-probe")
    assert found["device_bytes"] > found["tables_bytes"] + external_device.RESERVE
    assert "MB of the GPU" in kilt("plan", config, "--device", "gpu", "--no-probe").stderr
    assert answer("plan", config, "--device", "gpu", "--probe")["visits_per_second"] > 0
    monkeypatch.setattr(gpu, "free_memory", lambda: 1000)
    line = refused("solve", config, "--device", "gpu", "--out", "run")
    assert "of the GPU's memory, and 0.0 GB are free" in line and not Path("run", "config.toml").exists()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('algorithm = "cfr+"', "cfr+ on an abstract game runs only on the CPU"),
    ],
)
def test_what_a_gpu_does_not_do(config, more, why):
    text = Path(config).read_text().replace("linear = true", f"linear = true\n{more}")
    Path(config).write_text(text)
    assert why in refused("solve", config, "--device", "gpu", "--out", "run")
    assert not Path("run").exists()


def test_bench(monkeypatch):
    """Its figures, on a small game, with sizes that there is room for and without."""
    small = no_limit(4, 3, 2, "0 2 1 1", "12 12")
    gpu_blueprint.strengths.cache_clear()
    for name, value in {
        "rules": lambda: small,
        "SIZES": {"1": ("1x; a", 7), "8": ("1x, a; a", 9), "60": ("a", 5)},
        "CLASSES": 3,
        "SECONDS": 0.02,
        "random_updates": lambda solver: 1e9,
        "free_memory": lambda: 2e10,
    }.items():
        monkeypatch.setattr(gpu_blueprint, name, value)
    found = {figure.key: figure.value for figure in gpu_blueprint.blueprint(long=True)}
    gpu_blueprint.strengths.cache_clear()
    assert found["blueprint_8_visits"] > found["blueprint_8_decisions"] > found["blueprint_8_deals"] > 0
    assert found["blueprint_8_share"] == pytest.approx(found["blueprint_8_decisions"] / 1e3)
    assert found["blueprint_60_gigabytes_missing"] > 60 and found["blueprint_cpu_visits"] > 0
    assert found["blueprint_classes_ratio"] > 0 and found["blueprint_classes_copying"] > 0
    table = gpu_blueprint.game_of("8").cards.rounds[3].table
    often = np.bincount(table.ravel())
    assert len(often) == 9 and often.min() > 0.9 * often.max()


def test_bench_of_learning(monkeypatch):
    """Exploitability on the CPU and on the GPU, by deals in flight; more deals make it smaller."""
    for name, value in {"DEALS": 300, "MORE": 900, "CROWDS": (1, 2), "MENU": "a"}.items():
        monkeypatch.setattr(gpu_learning, name, value)
    found = {figure.key: figure.value for figure in gpu_learning.learning(long=True)}
    assert 0 < found["learning_1_flight"] <= found["learning_2_flight"]
    for crowd in (1, 2):
        share = found[f"learning_{crowd}_exploitability"] / found["learning_cpu_exploitability"]
        assert found[f"learning_{crowd}_to_cpu_share"] == pytest.approx(share)
        assert found[f"learning_{crowd}_long_exploitability"] < found[f"learning_{crowd}_exploitability"]


def test_no_blades(config):
    found = plan.resolve(read_config(Path(config)))
    with pytest.raises(RunError, match=r"blades share deals on CPUs: omit the engine, or solve on the CPU"):
        replace(found, config=replace(found.config, engine=EngineConfig(name="local"))).on("gpu")


def test_compact_tables_by_command(config):
    """A GPU solves the run, and says that it takes less; the CPU refuses it before any work."""
    whole = answer("plan", config, "--device", "gpu", "--no-probe")
    Path(config).write_text(Path(config).read_text() + "compact = true\n")
    assert answer("plan", config, "--device", "gpu", "--no-probe")["device_bytes"] < whole["device_bytes"]
    assert "`compact` tables need a GPU" in refused("solve", config, "--out", "run")
    assert not Path("run").exists()
    assert answer("solve", config, "--out", "run", "--device", "gpu")["iterations"] == 1500
    assert "`compact` tables need a GPU" in refused("solve", "run", "-n", 2000, "--device", "cpu")
    assert answer("solve", "run", "-n", 1600)["iterations"] == 1600  # where it began


def test_too_many_actions(config, monkeypatch):
    monkeypatch.setattr(external, "MOST_ACTIONS", 2)
    assert "actions, but a GPU supports at most 2: use fewer" in refused("solve", config, "--device", "gpu")
