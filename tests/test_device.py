"""Walks on a GPU against those of the CPU: on a GPU where there is one, or the same CUDA source compiled as C++."""

import numpy as np
import pytest

import cuda_on_cpu
from commands import answer, refused
from kilt import gpu
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.joint import joint_tables
from kilt.abstraction.pipeline import build
from kilt.errors import GameError, RunError
from kilt.evaluate import flops
from kilt.evaluate.evaluator import evaluator_for
from kilt.evaluate.flops import FlopWalks, flop_weights
from kilt.games import load_game
from kilt.runs import plan
from kilt.runs.budget import Budget
from kilt.runs.build import build as build_run
from kilt.runs.build import spec_of
from kilt.runs.run import open_run
from kilt.solve import abstract_problem, joint_device
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.cfr import Cfr
from kilt.solve.counter import Restriction
from kilt.solve.forms import load_problem
from kilt.solve.joint import JointGame
from kilt.solve.problem import VectorProblem
from kilt.solve.tables import drawn_device
from kilt.solve.tables.device import CompactTables, DeviceTables
from kilt.solve.tables.drawn import SampledBoardTables
from kilt.solve.tables.memory import TreeTables
from kilt.solve.tables.pairs import PairTables
from kilt.spots import run_spec
from kilt.strategy.fixed import public_table
from kilt.tree.gpu import compact
from kilt.tree.gpu import device as module
from kilt.tree.gpu import flops as flops_there
from kilt.tree.gpu.compact import CompactGame
from kilt.tree.gpu.device import DeviceGame
from kilt.tree.gpu.flops import DeviceFlops
from kilt.tree.parts import flop_tree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import TableLayout
from kilt_lab import experiment
from kilt_lab.cells import CellBudget as LabBudget
from kilt_lab.papers.johanson16 import chapter_2
from kilt_lab.pieces import abstracted
from test_flops import Quiet
from test_vector import holdable

TWO_CARDS = """GAMEDEF
limit
numPlayers = 2
numRounds = 2
blind = 1 1
raiseSize = 2 4
firstPlayer = 1 1
maxRaises = 1 1
numSuits = 3
numRanks = 3
numHoleCards = 2
numBoardCards = 0 1
END GAMEDEF
"""
SHORT = """GAMEDEF
limit
numPlayers = 2
numRounds = 3
blind = 10 5
raiseSize = 10 10 20
firstPlayer = 2 1 1
maxRaises = 2 1 3
numSuits = 2
numRanks = 4
numHoleCards = 2
numBoardCards = 0 1 1
END GAMEDEF
"""


def why_no_gpu():
    try:
        gpu.require_gpu()
    except RunError as error:
        return str(error)
    return ""


MISSING = why_no_gpu()


@pytest.fixture(scope="module", autouse=True)
def a_device():
    """A GPU, or what takes its place."""
    if not MISSING:
        yield
        return
    if not cuda_on_cpu.COMPILER:
        pytest.skip("there is neither a GPU nor a C++ compiler")
    with pytest.MonkeyPatch.context() as patch:
        for where in (gpu, module, flops_there, compact, drawn_device, joint_device, plan, run_spec, experiment):
            patch.setattr(where, "require_gpu", lambda: cuda_on_cpu, raising=False)
            patch.setattr(where, "free_memory", lambda: 2**40, raising=False)
        for where in (module, flops_there, joint_device):
            patch.setattr(where, "BLOCK", 8)  # threads that have no hand take time here
        patch.setattr(flops_there, "THREADS", 1)
        patch.setattr(drawn_device, "WARPS", 1)
        gpu.kernels.cache_clear()
        yield
    gpu.kernels.cache_clear()


@pytest.fixture(scope="module")
def leduc():
    game = VectorGame(load_game("leduc"))
    return game, DeviceGame(game, np.float64)


@pytest.mark.parametrize("variant", ["cfr", "cfr+", "linear", "dcfr", "dcfr+", "pcfr+"])
def test_iterations_are_those_of_the_cpu(leduc, variant):
    game, device = leduc
    ours, theirs = Cfr(DeviceTables(device), variant), Cfr(TreeTables(game), variant)
    ours.step(3)
    ours.step(2)
    theirs.step(5)
    for name, table in theirs.state().items():
        possible = holdable(game) if table.ndim == 2 else 1
        np.testing.assert_allclose(ours.state()[name] * possible, table, rtol=0, atol=1e-10)
    average = theirs.average()
    np.testing.assert_allclose(device.response_values(average), game.response_values(average), atol=1e-12)
    assert device.expected_value(average) == pytest.approx(game.expected_value(average), abs=1e-12)


@pytest.mark.parametrize("variant", ["cfr", "linear", "pcfr+"])
def test_boards_that_are_drawn(leduc, variant):
    """Public chance sampling: on the boards that the CPU draws, iterations are those of the CPU; either goes on."""
    game, device = leduc
    ours, theirs = (
        Cfr(DeviceTables(device, scheme="pcs", seed=3), variant),
        Cfr(TreeTables(game, scheme="pcs", seed=3), variant),
    )
    for solver in (ours, theirs):
        solver.step(40)
    again = Cfr(DeviceTables(device, scheme="pcs"), variant)
    again.restore(theirs.state())
    for solver in (ours, theirs, again):
        solver.step(10)
    assert theirs.tables.total.any(axis=1).all()  # all boards were drawn
    for name, table in theirs.state().items():
        for found in (ours, again):
            np.testing.assert_allclose(found.state()[name], table, rtol=0, atol=1e-9)
    with pytest.raises(RunError, match=r"a GPU walks all hands: use no sampling, or public chance sampling \(pcs\)"):
        DeviceTables(device, scheme="cs")


def test_what_was_kept_goes_on_here_and_there(leduc):
    game, device = leduc
    ours, resumed, theirs = Cfr(DeviceTables(device)), Cfr(DeviceTables(device)), Cfr(TreeTables(game), "cfr+")
    ours.step(2)
    state = ours.state()
    for other in (resumed, theirs):
        other.restore(state)
    for solver in (ours, resumed, theirs):
        solver.step(2)
    assert resumed.iterations == theirs.iterations == 4
    for other in (resumed, theirs):
        found, wanted = (solver.state()["total"] * holdable(game) for solver in (other, ours))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_single_precision(leduc):
    game, _ = leduc
    ours, theirs = Cfr(DeviceTables(DeviceGame(game))), Cfr(TreeTables(game), "cfr+")
    ours.step(5)
    theirs.step(5)
    np.testing.assert_allclose(ours.state()["total"] * holdable(game), theirs.tables.total, atol=1e-5)


def test_hands_of_two_cards(tmp_path):
    """Boards that suits leave alike, hands that share a card or are equally strong."""
    path = tmp_path / "small.game"
    path.write_text(TWO_CARDS)
    game = VectorGame(load_game(str(path)))
    ours, theirs = Cfr(DeviceTables(DeviceGame(game, np.float64))), Cfr(TreeTables(game), "cfr+")
    ours.step(3)
    theirs.step(3)
    np.testing.assert_allclose(ours.state()["regret"], theirs.tables.regret, rtol=0, atol=1e-10)
    ours, theirs = Cfr(DeviceTables(ours.tables.game, scheme="pcs"), "cfr"), Cfr(TreeTables(game, scheme="pcs"), "cfr")
    ours.step(30)
    theirs.step(30)
    np.testing.assert_allclose(ours.state()["regret"], theirs.tables.regret, rtol=0, atol=1e-9)


def test_a_run_on_the_device_is_judged_and_resumed(tmp_path):
    run = build_run(spec_of("leduc", {"solver.device": "gpu"}), tmp_path / "run", budget=Budget(iterations=8))
    last = run.finish()
    there = build_run(spec_of("leduc", {"solver.threads": 2}), budget=Budget(iterations=8)).finish()
    assert last.exploitability == pytest.approx(there.exploitability, abs=1e-5)
    problem, table, _ = open_run(tmp_path / "run").load(device="gpu")
    assert evaluator_for(problem).exploitability(table) == pytest.approx(last.exploitability, abs=1e-6)
    answer("solve", "--game", "leduc", "-a", "pcs:cfr+", "--device", "gpu", "-n", 8, "--out", tmp_path / "drawn")
    found = answer("solve", "--resume", tmp_path / "drawn", "-n", 16)
    there = build_run(spec_of("leduc", {"solver.algorithm": "pcs:cfr+"}), budget=Budget(iterations=16)).finish()
    assert found["exploitability"] == pytest.approx(there.exploitability, abs=0.01)  # regrets near 0 change sides


def test_what_does_not_go_on_a_gpu(monkeypatch):
    with pytest.raises(GameError, match="need a game with cards"):
        DeviceGame(VectorGame(load_game("bluff-1-1")))
    with pytest.raises(RunError, match=r"opcs runs only on the CPU: use one of cfr, cfr\+, linear"):
        load_problem("leduc", "opcs", device="gpu")
    with pytest.raises(RunError, match="the device is 'tpu': use one of cpu, gpu"):
        load_problem("leduc", "cfr+", device="tpu")
    monkeypatch.setattr(gpu, "free_memory", lambda: 1000)
    with pytest.raises(RunError, match=r"leduc takes 0\.0 GB of the GPU's memory, and 0\.0 GB are free: use the CPU"):
        DeviceGame(VectorGame(load_game("leduc")))


@pytest.mark.skipif(not MISSING, reason="there is a GPU")
def test_no_gpu():
    assert MISSING.startswith("there is no GPU to work on")
    assert "use the CPU" in MISSING or "or the CPU" in MISSING


@pytest.mark.skipif(bool(MISSING), reason="there is no GPU: `make test-gpu` where there is one")
def test_a_larger_game_on_a_gpu():
    game = VectorGame(load_game("holdem.2-1"))
    ours, theirs = Cfr(DeviceTables(DeviceGame(game, np.float64))), Cfr(TreeTables(game), "cfr+")
    ours.step(5)
    theirs.step(5)
    state = ours.state()
    np.testing.assert_allclose(state["regret"], theirs.tables.regret, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(state["total"] * holdable(game), theirs.tables.total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [SHORT, "leduc"])
def test_flops_on_the_device(shape, tmp_path):
    """Values of each flop are those of the CPU, for strategies over buckets, and for those that look at no board."""
    path = tmp_path / "small.game"
    path.write_text(shape)
    game = VectorGame(load_game(shape if shape == "leduc" else str(path)), by_board=False)
    random = np.random.default_rng(5)
    hands, rows, none = game.shape[1], np.diff(game.tree.table_start), np.empty(0, np.bool_)
    start = np.concatenate([[0], np.cumsum(rows)])
    buckets = random.integers(0, 4, (2, int(game.tree.board_start[-1]), hands)).astype(np.int32)
    number = {tuple(board): n for n, board in enumerate(game.tree.board.tolist())}

    def layouts(part):
        kept = [number[tuple(board)] for board in part.board.tolist()]
        kept[0] = 0
        return tuple(TableLayout(0 * game.tree.rows, start, own[kept], none) for own in buckets)

    table = np.maximum(random.normal(size=(game.shape[0], 4)), 0.0)  # some decisions have no positive entry
    for given, how in ((table, layouts), (public_table(game, "call-or-raise"), None)):
        walks = FlopWalks(game, given, how)
        device = DeviceFlops(game, given, np.float64)
        for flop in range(len(flop_weights(game))):
            part = flop_tree(game.tree, flop)
            there = device.prepare(part, walks.layouts(part))
            for seat in (0, 1):
                np.testing.assert_allclose(
                    device.values(there, seat), walks.best_response_values(flop, seat), atol=1e-9
                )


def test_a_table_on_the_device(tmp_path, monkeypatch):
    """All rows, since none takes days there: as on the CPU but for single precision."""
    monkeypatch.setattr(flops, "MEASURING_SECONDS", 0.0)
    table = "reproduce", "table-2.1", "--game", "leduc"
    rows = answer(*table, "--device", "gpu", "--out", tmp_path / "there")["rows"]
    game = VectorGame(load_game("leduc"))
    for row in rows:
        wanted = VectorProblem(game).mbb(game.exploitability(public_table(game, row["name"])))
        assert row["ours"] == pytest.approx(wanted, rel=1e-5)
    assert [row["name"] for row in rows] == list(chapter_2.PAPER_2_1)
    assert "use one of cpu, gpu" in refused(*table, "--device", "tpu", "--out", tmp_path / "no")
    monkeypatch.setattr(gpu, "free_memory", lambda: 1000)
    line = refused(*table, "--device", "gpu", "--out", tmp_path / "no")
    assert "flop by flop, takes 0.0 GB of the GPU's memory, and 0.0 GB are free" in line


def test_joint_tables_on_the_device(tmp_path):
    """CFR with and without a restriction, values and best responses are those of the CPU."""
    game = load_game("leduc")
    cards = build(AbstractionSpec.from_name("lossless", Deal.from_game(game)), tmp_path / "cards")
    abstract, joint = AbstractGame(game, cards), joint_tables(cards, keep=False)
    host, there = JointGame(abstract, joint), joint_device.DeviceJointGame(abstract, joint)
    fixed = host.probabilities(np.random.default_rng(1).random(abstract.slots))
    for held in (None, Restriction(0, fixed, 0.4), Restriction(1, 0.7 * fixed)):
        mine, theirs = Cfr(PairTables(host, held), "cfr+"), Cfr(PairTables(there, held), "cfr+")
        mine.step(3)
        theirs.step(3)
        average = there.arrays.asnumpy(theirs.average())
        assert average == pytest.approx(mine.average())
        assert there.arrays.asnumpy(theirs.current()) == pytest.approx(mine.current())
        assert there.exploitability(average) == pytest.approx(host.exploitability(average))
        assert there.expected_value(theirs.average()) == pytest.approx(host.expected_value(average))


def test_cfr_br_on_the_device(tmp_path, monkeypatch):
    """Iterations are those of the CPU, whatever is written down at a time; runs of either go on with the other."""
    path = tmp_path / "small.game"
    path.write_text(SHORT)
    game = VectorGame(load_game(str(path)), by_board=False)
    cards = build(AbstractionSpec.from_name("IR-PHS-PHS 3-3-3", Deal.from_game(game.game)), tmp_path / "cards")
    monkeypatch.setattr(drawn_device, "DTYPE", np.float64)
    monkeypatch.setattr(drawn_device, "PREPARING", 1)
    for trunk, written in ((1, 1 << 32), (2, 20_000)):
        monkeypatch.setattr(drawn_device, "FOUND", written)
        ours = Cfr(drawn_device.GpuSampledBoardTables(game, cards, trunk=trunk, seed=3), "linear")
        theirs = Cfr(SampledBoardTables(game, cards, trunk=trunk, seed=3), "linear")
        for solver in (ours, theirs):
            solver.step(2)
        again = Cfr(drawn_device.GpuSampledBoardTables(game, cards, trunk=trunk, seed=0), "linear")
        again.restore(theirs.state())
        for solver in (ours, theirs, again):
            solver.step(1)
        for found in (ours, again):
            np.testing.assert_allclose(found.tables.regret, theirs.tables.regret, atol=1e-7)
            np.testing.assert_allclose(found.tables.total[:, :-1], theirs.tables.total[:, :-1], atol=1e-9)
            np.testing.assert_allclose(found.tables.trunk, theirs.tables.trunk, atol=1e-7)

    # Rows of reproductions: until time is over, or exploitability changes by less than some share of it.
    problem = AbstractProblem(AbstractGame(game.game, cards), (tmp_path / "cards",), device="gpu")
    monkeypatch.setattr(abstracted, "BRIEF", 0.0)
    monkeypatch.setattr(abstracted, "EARLY", -1.0)
    how = {"variant": "linear", "trunk": 2, "curve": False, "seed": 3}
    monkeypatch.setattr(abstracted, "LEVEL", 1.0)
    steps = abstracted.converge(problem, "cfr-br", LabBudget.of(seconds=1e4), Quiet(), **how)
    assert [step.iterations for step in steps] == [2, 4] and abstracted.settled(steps)
    theirs = Cfr(SampledBoardTables(game, cards, trunk=2, seed=3), "linear")
    for step in steps:
        theirs.step(step.iterations - theirs.iterations)
        found = problem.bucketed.exploitability(theirs.average())
        assert step.value == pytest.approx(problem.mbb(found), rel=1e-3)

    config = tmp_path / "small.toml"
    solver = "[solver]\nalgorithm = 'cfr-br:2:linear'\niterations = 1"
    config.write_text(f"game = '{path}'\ncards = '{tmp_path / 'cards'}'\n{solver}\n")
    monkeypatch.setattr(abstract_problem, "LARGE", 0)
    run = tmp_path / "run"
    assert answer("solve", config, "--out", run, "--device", "gpu")["iterations"] == 1
    assert answer("solve", "--resume", run, "--iterations", 2)["iterations"] == 2
    with monkeypatch.context() as patch:
        patch.setattr(gpu, "free_memory", lambda: 1000)
        line = refused("solve", "--resume", run, "--iterations", 3, "--device", "gpu")
        assert "with a trunk of 2 rounds takes 0.0 GB of the GPU's memory, and 0.0 GB are free" in line
    line = refused("solve", config, "--out", tmp_path / "no", "--device", "gpu", "--algorithm", "cfr+")
    assert "cfr+ on an abstract game runs only on the CPU: omit `device`, or use external" in line


@pytest.mark.parametrize("stored", [np.float64, np.uint16])
def test_compact_tables(stored, tmp_path):
    """As on the CPU, or to what is lost in two bytes: rounding is by 2^-15 of a decision's largest entry at most."""
    path = tmp_path / "small.game"
    path.write_text(TWO_CARDS)
    game = VectorGame(load_game(str(path)))
    device = CompactGame(game, np.float64, stored)
    ours, theirs = Cfr(CompactTables(device)), Cfr(TreeTables(game), "cfr+")
    ours.step(2)
    theirs.step(2)
    lost = 0.0 if stored == np.float64 else 2 * 2.0**-15
    for mine, table in ((ours.tables.regret, theirs.tables.regret), (ours.average(), theirs.tables.total)):
        found = device.on_host(mine)
        left = (found != 0) & holdable(game)
        np.testing.assert_allclose(found[left], table[left], rtol=0, atol=1e-10 + lost * table.max())
        assert not lost or not np.array_equal(found, table)
    found, wanted = device.response_values(ours.average()), game.response_values(theirs.average())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 + lost)
    value = game.expected_value(theirs.average())
    assert device.expected_value(ours.average()) == pytest.approx(value, abs=1e-10 + lost)
    again = Cfr(CompactTables(device))
    again.restore(ours.state())
    for solver in (ours, again):
        solver.step(1)
    for name, array in ours.state().items():
        np.testing.assert_array_equal(again.state()[name], array)
    with pytest.raises(RunError, match=r"without negative regrets and discounts: use cfr\+"):
        Cfr(CompactTables(device), "dcfr")


def test_runs_with_compact_tables(tmp_path):
    """On the device and on the CPU they are resumed to where they would have come, and each keeps to its own tables."""
    path = tmp_path / "small.game"
    path.write_text(TWO_CARDS)
    real = Cfr(TreeTables(VectorGame(load_game(str(path)))))
    real.step(8)
    wanted = real.tables.game.exploitability(real.average())  # 0.17, and 0.18 in single precision
    for device, other in (("gpu", "cpu"), ("cpu", "gpu")):
        run = tmp_path / device
        build_run(
            spec_of(path, {"solver.algorithm": "cfr+:compact", "solver.device": device}),
            run,
            budget=Budget(iterations=4),
        ).finish()
        assert f"resume on {'a GPU' if device == 'gpu' else 'the CPU'}" in refused(
            "solve", "--resume", run, "-n", 8, "--device", other
        )
        found = answer("solve", "--resume", run, "-n", 8, "--device", device)["exploitability"]
        whole = build_run(
            spec_of(path, {"solver.algorithm": "cfr+:compact", "solver.device": device}), budget=Budget(iterations=8)
        )
        assert found == whole.finish().exploitability
        assert found == pytest.approx(wanted, abs=0.03) and found != wanted
        assert answer("evaluate", "exploitability", run)["exploitability"] == pytest.approx(found, abs=1e-6)
    assert "tables of two bytes need several" in refused("solve", "--game", "kuhn", "-a", "cfr+:compact")


def test_compact_tables_that_do_not_fit(tmp_path, monkeypatch):
    path = tmp_path / "no-limit.game"
    path.write_text(TWO_CARDS.replace("limit", "nolimit").replace("raiseSize = 2 4", "stack = 4 4"))
    with pytest.raises(GameError, match="betting of no-limit in its last round depends on earlier rounds"):
        CompactGame(VectorGame(load_game(str(path))))
    with pytest.raises(GameError, match="kuhn has only one round"):
        CompactGame(VectorGame(load_game("kuhn")))
    monkeypatch.setattr(gpu, "free_memory", lambda: 1000)
    with pytest.raises(RunError, match=r"leduc takes 0\.0 GB of the GPU's memory, and 0\.0 GB are free"):
        CompactGame(VectorGame(load_game("leduc")))
