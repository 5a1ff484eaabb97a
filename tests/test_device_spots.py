"""Spots, re-solving, CFR-BR and joint tables on a GPU, against the CPU."""

from dataclasses import replace

import numpy as np
import pytest

from combinations import ROWS, here, is_algorithm, works
from combinations import refused as refused_there
from commands import answer, refused
from kilt.errors import GameError, RunError
from kilt.games import load_game
from kilt.runs.folder import RunFolder
from kilt.runs.run import open_run
from kilt.solve.cfr import Cfr
from kilt.solve.forms import load_problem
from kilt.solve.registry import make_solver
from kilt.solve.resolve import resolve
from kilt.solve.tables.device import DeviceTables
from kilt.solve.tables.memory import TreeTables
from kilt.spots import run_spec, saved, solving
from kilt.spots.line import UNIT
from kilt.spots.saved import open_spot
from kilt.spots.solving import SpotBudget
from kilt.spots.spot import Spot
from kilt.tree.gpu.compact import CompactGame
from kilt.tree.gpu.device import DeviceGame
from kilt.tree.gpu.flops import DeviceFlops
from kilt.tree.vector import VectorGame
from test_device import SHORT, a_device  # noqa: F401, a GPU or what takes its place
from test_vector import holdable

RIVER = Spot(board="Ks7h2d4c9s", pot=10, stacks=30, ranges=("AA,KQs,76s,QJs", "QQ,AKo,98s"), bets="50%, a")
TURN = Spot(
    board="Ks7h2d4c",
    pot=10,
    stacks=20,
    ranges=("AA,KQs,76s", "QQ,AKs,A4s"),
    bets="75%, a",
    rake=5,
    rake_cap=1,
    locks=("b7.5 = f: QQ; c: rest", "x x / 9s = x: rest"),
)
LEDUC = load_game("leduc")


@pytest.mark.parametrize("spot", [RIVER, TURN], ids=["river", "turn with rake and locks"])
def test_iterations_are_those_of_the_cpu(spot):
    game = spot.tree()
    device = DeviceGame(game, np.float64)
    ours, theirs = Cfr(DeviceTables(device), "dcfr+"), Cfr(TreeTables(game), "dcfr+")
    for solver in (ours, theirs):
        solver.step(6)
    average = theirs.average()
    for found in (average, device.on_host(ours.average())):
        np.testing.assert_allclose(device.expected_values(found), game.expected_values(average), atol=1e-9)
        np.testing.assert_allclose(device.response_values(found), game.response_values(average), atol=1e-9)
        assert device.exploitability(found) == pytest.approx(game.exploitability(average), abs=1e-9)
    for row, strategy in game.given.items():  # nobody learns there
        for table in (ours.tables.regret, ours.average(), ours.current()):
            np.testing.assert_array_equal(device.on_host(table)[row : row + len(strategy)], strategy)


@pytest.mark.parametrize("spot", [RIVER, TURN], ids=["river", "turn with rake and locks"])
def test_a_spot_by_command_is_saved_and_resumed_where_it_was_solved(spot, tmp_path, monkeypatch):
    """Values of all hands that are held are those of the CPU to 1e-4 of the pot, also after resuming on the other.

    In double precision: in single precision regrets near 0 change sides, and few iterations differ by more.
    """
    for module in (saved, solving, run_spec):
        monkeypatch.setattr(module, "TABLES", np.float64)
    wanted = spot.solve(iterations=20)
    (tmp_path / "spot.toml").write_text(spot.toml())
    folder = tmp_path / "run"
    for device, iterations, said in (("gpu", 8, "gpu"), ("gpu", 12, ""), ("cpu", 20, "cpu")):
        given = ["--device", said] if said else []
        how = ["--save", folder, tmp_path / "spot.toml"] if iterations == 8 else ["--resume", folder]
        found = answer("spot", "solve", *how, "--iterations", iterations, *given)
        assert ("device_bytes" in found) == (device == "gpu")
        assert RunFolder.open(folder).device == device
        assert found["iterations"] == iterations
    _, ours = open_spot(folder)
    there = spot.solve(iterations=20, device="gpu")
    assert [step.iterations for step in there.steps] == [step.iterations for step in wanted.steps]
    for solution in (ours, there):
        np.testing.assert_allclose(solution.values, wanted.values, atol=1e-4 * spot.pot)
        first, second = solution.at(), wanted.at()
        reached = second.reach > 0  # nobody learns what other hands would do
        np.testing.assert_allclose(first.ev[reached], second.ev[reached], atol=1e-4 * spot.pot)
        assert solution.exploitability == pytest.approx(wanted.exploitability, abs=1e-4 * spot.pot)
    begun = spot.begin(SpotBudget(iterations=30), begun=RunFolder.open(folder), device="gpu")
    assert begun.problem.device == "gpu" and begun.finish().iterations == 30


def test_spots_that_a_gpu_refuses(tmp_path, monkeypatch):
    folder, spot = tmp_path / "no", tmp_path / "spot.toml"
    spot.write_text(replace(TURN, compact=True).toml())
    given = "spot", "solve", spot, "--save", folder, "--device"
    assert "compact tables on a GPU need betting that is the same in all blocks" in refused(*given, "gpu")
    assert "the device is 'tpu': use one of cpu, gpu" in refused(*given, "tpu")
    line = refused(*given, "gpu", "--set", "compact=false", "--target", 1e-5)
    assert "cannot be measured: on spot Ks7h2d4c, exploitability is known to" in line
    monkeypatch.setattr("kilt.gpu.free_memory", lambda: 1000)
    line = refused(*given, "gpu", "--set", "compact=false")
    assert line.startswith("spot Ks7h2d4c takes 0.0 GB of the GPU's memory, and 0.0 GB are free: use the CPU, or")
    assert "use fewer bets, or start on a later round" in line
    assert not folder.exists()


@pytest.mark.parametrize("kind", [CompactGame, DeviceFlops])
def test_walks_that_know_no_rake_and_no_locks(kind):
    """They refuse such spots before anything is put on the device."""
    more = (np.zeros((1, 1)),) if kind is DeviceFlops else ()
    with pytest.raises(GameError, match="has rake, which these walks on a GPU do not support: use the CPU"):
        kind(TURN.tree(), *more)
    locked = replace(RIVER, locks=("x = x: rest",))
    with pytest.raises(
        GameError, match="has locked strategies, which these walks on a GPU do not support: use the CPU"
    ):
        kind(locked.tree(), *more)


@pytest.mark.parametrize("method", ["unsafe", "gadget", "max-margin"])
@pytest.mark.parametrize("player", [0, 1])
def test_subgames_that_are_solved_anew(method, player):
    """The choice before the game is learnt on the CPU, from what hands are worth on the device."""
    ranges = np.ones((2, 1326))
    spot, values = RIVER.subgame, np.linspace(-500, 500, 1326)
    ranges = spot.ranges
    given = RIVER.holdem, spot.first, spot.board, player, ranges, values
    options = {"method": method, "menu": RIVER.menu, "iterations": 12, "dtype": np.float64}
    theirs, ours = (resolve(*given, **options, device=device) for device in ("cpu", "gpu"))
    assert theirs.margins().any()
    np.testing.assert_allclose(ours.margins(), theirs.margins(), atol=1e-6 * UNIT)


def test_a_depth_limit_is_refused():
    given = LEDUC, LEDUC.replay("c"), "", 0, np.ones((2, 6))
    with pytest.raises(
        GameError, match="walks on a GPU do not support a depth limit: omit `continued`, or use the CPU"
    ):
        resolve(*given, method="unsafe", continued=lambda *_: None, device="gpu")


@pytest.mark.parametrize("row", [row for row in ROWS if not here(row)], ids=lambda row: " on ".join(row[:2]))
def test_what_the_table_of_combinations_says(row):
    for sampling, cell in enumerate(row[4]):
        assert works(row, cell) if is_algorithm(cell) else refused_there(row, sampling), cell


@pytest.mark.parametrize("trunk", [0, 1])
def test_cfr_br_with_hands(trunk):
    """Responses to all hands, on all boards or on those that the CPU draws; checkpoints resume on either."""
    game = VectorGame(LEDUC)
    device, how = DeviceGame(game, np.float64), {"opponent": "response", "trunk": trunk, "seed": 3}
    ours, theirs = Cfr(DeviceTables(device, **how), "linear"), Cfr(TreeTables(game, **how), "linear")
    for solver in (ours, theirs):
        solver.step(10)
    again, back = Cfr(DeviceTables(device, **how), "linear"), Cfr(TreeTables(game, **how), "linear")
    again.restore(theirs.state())
    back.restore(ours.state())
    for solver in (ours, theirs, again, back):
        solver.step(5)
    for solver in (ours, again, back):
        for name in ("regret", "total"):
            found = solver.state()[name] * holdable(game)
            np.testing.assert_allclose(found, theirs.state()[name] * holdable(game), atol=1e-9)
    assert game.exploitability(device.on_host(ours.average())) < game.exploitability(game.table())


def test_cfr_br_by_command(tmp_path):
    run = tmp_path / "run"
    answer("solve", "--game", "leduc", "-a", "cfr-br", "--device", "gpu", "-n", 8, "--out", run)
    found = answer("solve", "--resume", run, "-n", 16)["exploitability"]
    there = answer("solve", "--game", "leduc", "-a", "cfr-br", "-n", 16, "--threads", 2)["exploitability"]
    assert found == pytest.approx(there, abs=0.05)  # in single precision, where other responses are best
    path = tmp_path / "three.game"
    path.write_text(SHORT)
    with pytest.raises(RunError, match="not those after a trunk of 1 rounds of 3: use a trunk of 2 or of 0"):
        make_solver(load_problem(str(path), "cfr-br:1", device="gpu"), "cfr-br:1")


def test_joint_tables_by_command(tmp_path):
    """A run on the device is that of the CPU, and goes on there; cards without perfect recall are refused."""
    config = tmp_path / "small.toml"
    solver = "[solver]\nalgorithm = 'joint'\niterations = 4"
    config.write_text(f"game = 'leduc'\ncards = 'lossless'\n{solver}\n")
    there = answer("solve", config, "--out", tmp_path / "there")
    run = tmp_path / "run"
    assert answer("solve", config, "--out", run, "--device", "gpu")["iterations"] == 4
    first, second = (open_run(folder).load()[1] for folder in (tmp_path / "there", run))
    np.testing.assert_allclose(first.astype(float), second, atol=1)
    assert answer("plan", config, "--device", "gpu")["device_bytes"] > 0
    for device, iterations in (("gpu", 6), ("cpu", 8)):
        found = answer("solve", "--resume", run, "-n", iterations, "--device", device)
    there = answer("solve", "--resume", tmp_path / "there", "-n", 8)
    assert found["exploitability"] == pytest.approx(there["exploitability"], abs=1e-4)
    config.write_text(f"game = 'leduc'\ncards = 'IR-PHS-PHS 3-3'\n{solver}\n")
    line = refused("solve", config, "--out", tmp_path / "no", "--device", "gpu")
    assert "joint on a GPU needs cards with perfect recall: use cards such as PR-KE-KO, or solve on the CPU" in line
    assert not (tmp_path / "no").exists()
