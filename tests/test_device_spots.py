"""Spots on a GPU: values, strategies and refusals against the CPU, with rake, locks and re-solving."""

from dataclasses import replace

import numpy as np
import pytest

from kilt.errors import GameError
from kilt.solve.cfr import Cfr
from kilt.solve.device import DeviceCfr
from kilt.solve.tables.memory import TreeTables
from kilt.spots.spot import Spot
from kilt.tree.device import DeviceGame
from kilt.tree.device_compact import CompactGame
from kilt.tree.device_flops import DeviceFlops
from test_device import a_device  # noqa: F401, a GPU or what takes its place

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


@pytest.mark.parametrize("spot", [RIVER, TURN], ids=["river", "turn with rake and locks"])
def test_iterations_are_those_of_the_cpu(spot):
    game = spot.tree()
    device = DeviceGame(game, np.float64)
    ours, theirs = DeviceCfr(device, "dcfr+"), Cfr(TreeTables(game), "dcfr+")
    for solver in (ours, theirs):
        solver.step(6)
    average = theirs.average()
    for found in (average, device.on_host(ours.average())):
        np.testing.assert_allclose(device.expected_values(found), game.expected_values(average), atol=1e-9)
        np.testing.assert_allclose(device.response_values(found), game.response_values(average), atol=1e-9)
        assert device.exploitability(found) == pytest.approx(game.exploitability(average), abs=1e-9)
    for row, strategy in game.given.items():  # nobody learns there
        for table in (ours.regret, ours.average(), ours.current()):
            np.testing.assert_array_equal(device.on_host(table)[row : row + len(strategy)], strategy)


@pytest.mark.parametrize("kind", [CompactGame, DeviceFlops])
def test_walks_that_know_no_rake_and_no_locks(kind):
    """They refuse such spots before anything is put on the device."""
    more = (np.zeros((1, 1)),) if kind is DeviceFlops else ()
    with pytest.raises(GameError, match="has rake, which these walks on a GPU do not take off: use the CPU"):
        kind(TURN.tree(), *more)
    locked = replace(RIVER, locks=("x = x: rest",))
    with pytest.raises(GameError, match="has locked strategies, which these walks on a GPU do not keep: use the CPU"):
        kind(locked.tree(), *more)
