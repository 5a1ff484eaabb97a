"""External sampling on a GPU whose memory holds some classes of boards at a time."""

from pathlib import Path

import numpy as np
import pytest

from commands import answer, refused
from kilt import gpu
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AsymmetricAbstraction
from kilt.abstraction.plan import Plan, PublicPlan, plan_named
from kilt.solve import external, external_device, external_device_classes
from kilt.solve.abstract import BucketedGame
from kilt.solve.distributed.partition import Partition
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.solve.external_device import GpuExternalMCCFR
from kilt.solve.external_device_classes import GpuClassedExternalMCCFR
from kilt.tree.vector import VectorGame
from test_distributed import abstract_game, pure
from test_external import no_limit, places, tables
from test_external_device import RULES, a_device, regrets_and_counts, wide_warps  # noqa: F401, fixtures


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cards")


@pytest.fixture(scope="module")
def parts(folder):
    """A game of three rounds whose boards have three classes, as in `test_distributed`."""
    game = no_limit(4, 2, 1, "0 2 1", "6 6")
    abstract, cards = abstract_game(folder, game, classes=3, actions=actions_of("1x, a / 1x, a / a"))
    return Partition.divide(abstract, [cards])


@pytest.fixture
def short_passes(monkeypatch):
    monkeypatch.setattr(external_device_classes, "FEWEST", 40)


def with_regrets(solver, regret):
    """Have a solver begin with some regrets [slot]."""
    state = ExternalMCCFR(solver.abstract, 0, solver.options)
    state.table.view(np.float32)[places(solver.abstract, state.regrets.words)[0]] = regret
    solver.restore(state.state())
    return solver


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize(
    "options",
    [SamplingOptions(), SamplingOptions(linear=True), SamplingOptions(average=False, prune=0.02)],
    ids=repr,
)
def test_each_deal_is_walked_over_once(parts, frames, options, short_passes, monkeypatch):
    """Of players who do not mix, tables come out as in one piece: the order of deals does not matter to them."""
    monkeypatch.setattr(external, "STEPS", 12)  # discounts from iteration 64 on
    monkeypatch.setattr(external_device, "STEPS", 12)
    monkeypatch.setattr(external_device_classes, "STEPS", 12)
    regret = 1e4 * pure(np.random.default_rng(4), parts.abstract, calling=0.9)
    theirs = with_regrets(ExternalMCCFR(parts.abstract, 5, options), regret)
    ours = with_regrets(GpuClassedExternalMCCFR(parts, 5, options, frames=frames), regret)
    ours.step(200)
    theirs.step(ours.iterations)
    mine, other = regrets_and_counts(ours), tables(theirs)
    np.testing.assert_allclose(mine[0], other[0], rtol=0, atol=0.2)
    assert np.count_nonzero(mine[0] != regret) > 15
    if options.linear:
        assert mine[1].sum() == pytest.approx(other[1].sum(), rel=0.05)
    else:
        np.testing.assert_array_equal(mine[1], other[1])
    assert (ours.decisions, ours.visits) == (theirs.decisions, theirs.visits)
    assert ours.regrets.copied > 0 and np.array_equal(ours.average(), theirs.average())


def test_players_with_other_buckets(parts, folder, short_passes):
    """Each player has their own buckets in the same classes of boards."""
    game, menu = parts.abstract.game, parts.abstract.actions
    first, cards = abstract_game(folder, game, actions=menu)
    second, more = abstract_game(folder, game, plan="IR-PHS-PHS 4-3-4", actions=menu)
    both = AbstractGame(game, AsymmetricAbstraction((first.cards, second.cards)), menu)
    apart = Partition.divide(both, [cards, more])
    regret = 1e4 * pure(np.random.default_rng(4), both, calling=0.9)
    ours, theirs = (
        with_regrets(GpuClassedExternalMCCFR(apart, 5), regret),
        with_regrets(ExternalMCCFR(both, 5), regret),
    )
    ours.step(150)
    theirs.step(ours.iterations)
    mine, other = regrets_and_counts(ours), tables(theirs)
    np.testing.assert_allclose(mine[0], other[0], rtol=0, atol=0.2)
    np.testing.assert_array_equal(mine[1], other[1])
    assert ours.visits == theirs.visits


def test_expected_updates(parts, short_passes):
    """What a deal adds on average is what enumeration says of external sampling."""
    regret = 1e4 * pure(np.random.default_rng(4), parts.abstract, calling=0.9)
    whole = with_regrets(GpuExternalMCCFR(parts.abstract, 3), regret)
    ours = with_regrets(GpuClassedExternalMCCFR(parts, 3), regret)
    for solver in (ours, whole):
        solver.step(3000)
    found = [np.concatenate([(r - regret) / 3000, c / 3000]) for r, c in map(regrets_and_counts, (ours, whole))]
    np.testing.assert_allclose(*found, atol=1e-4)


def test_strategies_are_as_good(parts, wide_warps, short_passes):  # noqa: F811
    """Warps of 32 lanes, a class at a time: exploitability after as many deals is about that of the CPU."""
    abstract = parts.abstract
    seen = BucketedGame.with_abstraction(VectorGame(abstract.game, menu=abstract.actions), abstract.cards)
    ours, theirs = (
        GpuClassedExternalMCCFR(parts, 5, dtype=np.uint16),
        ExternalMCCFR(abstract, 5, dtype=np.uint16),
    )
    while ours.iterations < 6000:
        ours.step(1)
    theirs.step(ours.iterations)
    found = [seen.exploitability(seen.table_of(abstract, one.average())) for one in (ours, theirs)]
    start = seen.exploitability(seen.table_of(abstract, np.ones_like(theirs.average())))
    assert found[0] < 1.3 * found[1] < 0.5 * start


def test_checkpoints_are_those_of_the_cpu(parts, short_passes):
    """A table in parts is saved as one in one piece is, and either goes on with it."""
    ours, whole, cpu = (
        GpuClassedExternalMCCFR(parts, 5),
        GpuExternalMCCFR(parts.abstract, 0),
        ExternalMCCFR(parts.abstract, 0),
    )
    ours.step(100)
    state = {name: np.asarray(array) for name, array in ours.state().items()}
    again = GpuClassedExternalMCCFR(parts, 1, frames=2)
    for solver in (whole, cpu, again):
        solver.restore(state)
        assert np.array_equal(solver.average(), ours.average())
        np.testing.assert_array_equal(solver.current(), ours.current())
    for name, array in again.state().items():
        np.testing.assert_array_equal(np.asarray(array), state[name])


def test_passes_grow_until_copies_are_paid(parts, monkeypatch):
    monkeypatch.setattr(external_device_classes, "FEWEST", 10)
    solver = GpuClassedExternalMCCFR(parts, 5)
    assert solver.pass_deals() == 10
    solver.iterations, solver._walked, solver.walking, solver._passes = 10**6, 1000, 1.0, 2
    solver.copying = 2.0
    assert solver.pass_deals() == external_device_classes.TIMES * 1000
    solver.iterations = 50
    assert solver.pass_deals() == 50


CONFIG = """\
game = "small.game"
cards = "cards.toml"
actions = "1x, a / 50%, a; a"

[solver]
iterations = 800
"""


def test_a_run_by_command(tmp_path, monkeypatch, short_passes):
    """A table that is too large for the GPU: what it takes is said, and the CPU goes on with the run."""
    monkeypatch.chdir(tmp_path)
    Path("small.game").write_text(RULES)
    rounds = plan_named("IR-PHS-PHS 4-3", (0, 1)).rounds
    Path("cards.toml").write_text(
        Plan(rounds, (PublicPlan(2, 3, codes=0, base="IR-PHS-PHS 4-4"),), bins=6, opponents=2).toml()
    )
    Path("small.toml").write_text(CONFIG)
    whole = answer("plan", "small.toml", "--device", "gpu", "--no-probe")
    little = whole["device_bytes"] - whole["tables_bytes"] // 3
    for where in (gpu, external_device, external_device_classes):
        monkeypatch.setattr(where, "free_memory", lambda: little)
    found = answer("plan", "small.toml", "--device", "gpu")
    assert found["device_bytes"] <= little and found["memory_bytes"] >= whole["memory_bytes"]
    monkeypatch.setattr(external_device_classes, "GpuExternalMCCFR", None)  # what has its table in one piece
    there = answer("solve", "small.toml", "--out", "run", "--device", "gpu")
    assert there["iterations"] >= 800
    longer = answer("solve", "--resume", "run", "-n", there["iterations"] + 500)
    assert longer["exploitability"] < there["exploitability"] + 0.2
    for where in (gpu, external_device, external_device_classes):
        monkeypatch.setattr(where, "free_memory", lambda: 1000)
    assert "classes of boards" in refused("solve", "small.toml", "--device", "gpu", "--out", "other")
