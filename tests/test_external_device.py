"""External sampling on a GPU, or on what takes its place: the same source as C++, a warp of one lane or of 32."""

from dataclasses import replace

import numpy as np
import pytest

import cuda_on_cpu
from kilt import gpu
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Features
from kilt.abstraction.pipeline import build
from kilt.cards.hands_kernels import settle
from kilt.errors import RunError
from kilt.solve import external, external_device
from kilt.solve.external import External, SamplingOptions
from kilt.solve.external_device import DeviceExternal
from test_device import MISSING
from test_external import PLANS, SHORT, cards_of, folder, games, no_limit, tables  # noqa: F401, fixtures


@pytest.fixture(scope="module", autouse=True)
def a_device():
    """A GPU, or what takes its place: a warp of one lane, that takes one deal at a time, as the CPU does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WARPS", "RESIDENT", "SIZE"):
            patch.setattr(external_device, name, 1)
        patch.setattr(external_device, "multiprocessors", lambda: 1)
        if MISSING:
            if not cuda_on_cpu.COMPILER:
                pytest.skip("there is neither a GPU nor a C++ compiler")
            for where in (gpu, external_device):
                patch.setattr(where, "require_gpu", lambda: cuda_on_cpu)
            patch.setattr(external_device, "LANES", 1)
            patch.setattr(external_device, "address", cuda_on_cpu.address)
            patch.setattr(external_device, "copy_out", cuda_on_cpu.copy)
            patch.setattr(external_device, "copy_in", cuda_on_cpu.copy)
        gpu.kernels.cache_clear()
        yield
    gpu.kernels.cache_clear()


def regrets_and_counts(solver):
    """[slot] the regrets of a solver on a device, and its counts."""
    state = solver.state()
    there = External(solver.abstract, 0, solver.options)
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
    ],
    ids=repr,
)
def test_updates_are_those_of_the_cpu(games, game, options, monkeypatch):  # noqa: F811
    """The same deals and draws, the same regrets and counts, if one deal is walked over at a time."""
    monkeypatch.setattr(external, "STEPS", 6)  # discounts from iteration 8 on
    monkeypatch.setattr(external_device, "STEPS", 6)
    ours, theirs = DeviceExternal(games[game], 5, options), External(games[game], 5, options)
    for one in (ours, theirs):
        one.step(70)
        one.step(80)
    for mine, other in zip(regrets_and_counts(ours), tables(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-3)
    assert (ours.decisions, ours.visits) == (theirs.decisions, theirs.visits)
    assert np.array_equal(ours.average(), theirs.average())
