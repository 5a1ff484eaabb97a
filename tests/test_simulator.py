"""Memory of blades, and larger clusters than there are: the model on made-up costs, and real costs for sanity."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt.abstraction.abstract_game import AbstractSize
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.config import EngineConfig, read_config
from kilt.errors import RunError
from kilt.machine import PROCESS
from kilt.runs.plan import resolve
from kilt.solve.distributed.costs import BladeCosts, LinearCost, measure_costs, share_before, shared_game, visited
from kilt.solve.distributed.forecast import blades_of, check, curve, finish_times, forecast, latency_of, powers_of_two
from kilt.solve.distributed.partition import TARTANIAN7, TARTANIAN7_MEMORY, levels
from kilt.solve.distributed.solver import FEWEST, TALKING, TRIED
from test_external import no_limit

NOTHING = LinearCost(0.0, 0.0)


def costs(classes=8, seconds=1e-5, fixed=0.0, down=NOTHING, up=NOTHING, **more):
    """Classes that all take the same."""
    work = np.full((3, classes), seconds) if np.isscalar(seconds) else np.asarray(seconds)
    return BladeCosts(work, fixed, down, up, visits=100.0 * work.shape[1], **more)


# ── the model ──


@pytest.mark.parametrize("blades", [1, 2, 4, 8])
def test_equal_classes_and_no_messages_scale_exactly(blades):
    found = forecast(costs(), (blades,), batch=64)
    assert found.iteration_seconds == pytest.approx(8 / blades * 1e-5)
    assert found.visits_per_second == pytest.approx(800 / found.iteration_seconds)
    assert found.communication_share == pytest.approx(0, abs=1e-9) and found.idle_share == pytest.approx(0, abs=1e-9)


def test_blades_with_fewer_classes_wait_for_those_with_more():
    """8 classes on 3 blades are 3, 3 and 2: a third of the time of one of three is idle."""
    found = forecast(costs(), (3,), batch=64)
    assert found.iteration_seconds == pytest.approx(3e-5)
    assert found.idle_share == pytest.approx(1 - 8 / 9)


def test_cores_take_classes_or_samples():
    """8 classes on 3 cores go in three rounds; 2 classes for 4 cores get two samples each."""
    assert forecast(costs(), (1,), 3, batch=64).iteration_seconds == pytest.approx(3e-5)
    found = forecast(costs(2), (1,), 4, batch=64)
    assert found.samples == 2 and found.iteration_seconds == pytest.approx(1e-5)
    assert found.visits_per_second == pytest.approx(2 * 200 / 1e-5)
    assert forecast(costs(2), (1,), 4, batch=64, samples=5).iteration_seconds == pytest.approx(3e-5)


def test_the_next_batch_is_on_its_way_while_this_one_is_worked_on():
    """Two batches are under way at most: a round trip for both, or the work, whichever is longer."""
    work = 64 * 8e-5  # of a batch
    hidden = forecast(costs(), (1,), latency=work / 4, batch=64)
    assert hidden.iteration_seconds == pytest.approx(8e-5) and hidden.communication_share == pytest.approx(0, abs=1e-9)
    for latency in (work, 20 * work):
        seen = forecast(costs(), (1,), latency=latency, batch=64)
        # Batches go in pairs, (work + 2 latency) / 2 each where the two follow one another without a gap.
        assert seen.iteration_seconds == pytest.approx((work + 2 * latency) / 2 / 64, rel=0.01)
        assert seen.communication_share == pytest.approx(1 - work / (seen.iteration_seconds * 64))
    assert seen.communication_share > 0.9


def test_a_slow_head_is_all_that_counts():
    found = forecast(costs(down=LinearCost(0, 1e-3), up=LinearCost(1e-3, 0)), (8,), batch=64)
    assert found.iteration_seconds == pytest.approx(1e-3 + 1e-3 / 64)
    quick = forecast(costs(down=LinearCost(0, 1e-6), up=LinearCost(0, 1e-6)), (8,), batch=64)
    assert quick.iteration_seconds == pytest.approx(1e-5)


def test_a_narrow_line_is_all_that_counts():
    """1000 bytes to each of 8 blades for each deal, at a megabyte a second."""
    found = forecast(costs(request_bytes=1000.0), (8,), bandwidth=1e6, batch=64)
    assert found.iteration_seconds == pytest.approx(8e-3, rel=0.01)


@pytest.mark.parametrize("blades", [2, 4, 8])
def test_blades_of_one_machine_share_its_cores(blades):
    """However many there are, the work is the same."""
    found = forecast(costs(), (blades,), machine_cores=2, batch=64)
    assert found.iteration_seconds == pytest.approx(4e-5)
    assert forecast(costs(), (1,), machine_cores=2, batch=64).iteration_seconds == pytest.approx(8e-5)
    head = forecast(costs(down=LinearCost(0, 2e-5)), (blades,), machine_cores=2, batch=64)
    assert head.iteration_seconds == pytest.approx(5e-5)


def test_shares_of_cores():
    rng = np.random.default_rng(1)
    work = rng.uniform(0, 1, (20, 7))
    assert np.array_equal(finish_times(work, 7), work)
    np.testing.assert_allclose(finish_times(work, 1).max(axis=1), work.sum(axis=1))
    done = finish_times(work, 3)
    assert np.all(done >= work) and np.all(done.max(axis=1) >= work.sum(axis=1) / 3 - 1e-12)
    assert np.array_equal(done.argsort(axis=1), work.argsort(axis=1))


def test_batches_are_as_large_as_messages_ask_for():
    """The rule of the solver: what a batch costs beyond its deals is little."""
    sizes = []
    for latency in (0.0, 1e-6, 1e-4, 1e-3, 1e-2):
        chosen = forecast(costs(fixed=1e-6), (8,), latency=latency).chosen
        assert chosen.latency == 2 * latency and chosen.deal == pytest.approx(1e-5)
        assert chosen.batch == 16_384 or chosen.share <= TALKING
        assert chosen.batch == FEWEST or chosen._replace(batch=chosen.batch // 2).share > TALKING
        sizes.append(chosen.batch)
    assert sizes == sorted(sizes) and sizes[0] == FEWEST and sizes[-1] == 16_384
    assert forecast(costs(most=100), (8,), latency=1.0).chosen.batch == 64
    # For what is no message, only as far as the trunk is fresh.
    assert [forecast(costs(fixed=1e-2, fresh=n), (8,)).chosen.batch for n in (100, 5000)] == [64, 4096]


@pytest.fixture(scope="module")
def uneven():
    rng = np.random.default_rng(0)
    work = rng.uniform(0.5e-5, 2e-5, 12) * rng.uniform(0.8, 1.2, (30, 12))
    return costs(seconds=work, fixed=2e-4, down=LinearCost(2e-4, 1e-6), up=LinearCost(1e-4, 1e-6))


def test_what_is_more_is_no_worse(uneven):
    """More blades are quicker, more latency is not, and shares are shares."""
    batch = 1024
    paces = [found.visits_per_second for found in curve(uneven, (12,), latency=1e-5, batch=batch)]
    assert paces == sorted(paces) and paces[-1] / paces[0] < 12
    waits = [forecast(uneven, (6,), latency=latency, batch=batch) for latency in (0, 1e-5, 1e-3, 1e-2, 1e-1)]
    assert np.all(np.diff([found.iteration_seconds for found in waits]) > -1e-12)
    for found in waits:
        assert 0 <= found.communication_share <= 1 and 0 < found.idle_share < 1
    assert forecast(uneven, (6,)) == forecast(uneven, (6,))


def test_waiting_becomes_less_with_larger_batches():
    """Long and short deals even out."""
    given = costs(seconds=np.random.default_rng(0).uniform(1e-5, 2e-5, (30, 12)))
    small, large = (forecast(given, (12,), batch=batch).idle_share for batch in (64, 8192))
    assert 0 < large < small


def test_several_levels():
    """Half of the work is done before the second classes; the other half once in each of 4 of these, or of 4 x 2."""
    given = costs(inside=(4, 2), before=(0.5, 0.75))
    found = forecast(given, (8, 2), batch=64)
    assert found.iteration_seconds == pytest.approx(0.5e-5 + 2 * 0.5e-5)
    assert found.visits_per_second == pytest.approx(800 * (0.5 + 0.5 * 4) / found.iteration_seconds)
    assert found.idle_share == pytest.approx(1 / 3)  # those below wait for those above
    late = forecast(given, (8, 2), latency=1e-4, batch=64)
    assert late.iteration_seconds == pytest.approx(found.iteration_seconds + 2e-4 / 64)
    three = forecast(given, (8, 2, 2), batch=64)
    assert three.iteration_seconds == pytest.approx(0.5e-5 + 2 * 0.25e-5 + 2 * 0.25e-5)
    assert three.visits_per_second == pytest.approx(800 * (0.5 + 0.25 * 4 + 0.25 * 8) / three.iteration_seconds)
    with pytest.raises(RunError, match="5 blades cannot share 4 classes of boards"):
        forecast(given, (8, 5))
    with pytest.raises(RunError, match="4 levels of blades need as many levels of classes; boards have 3"):
        forecast(given, (8, 2, 2, 2))


def test_curves_end_with_all_blades():
    assert list(powers_of_two(1)) == [1] and list(powers_of_two(60)) == [1, 2, 4, 8, 16, 32, 60]
    assert [found.blades for found in curve(costs(inside=(4,), before=(0.5,)), (6, 2), batch=64)] == [
        (1, 2),
        (2, 2),
        (4, 2),
        (6, 2),
    ]


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"blades": (9,)}, "9 blades cannot share 8 classes of boards: use 1 to 8"),
        ({"blades": (0,)}, "0 blades cannot share 8 classes"),
        ({"blades": (2, 2)}, "2 levels of blades need as many levels of classes; boards have 1"),
        ({"cores": 0}, "the number of cores of a blade is 0: use 1 or more"),
        ({"latency": -1.0}, "a latency in seconds is -1: give 0 or more"),
        ({"latency": inf}, "a latency in seconds is inf"),
        ({"machine_cores": -2}, "cores of the machine is -2"),
        ({"bandwidth": 0.0}, "the number of bytes per second is 0"),
    ],
)
def test_what_cannot_be_simulated_is_said(asked, complaint):
    with pytest.raises(RunError, match=complaint):
        forecast(**{"costs": costs(), "blades": (2,)} | asked)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1us", 1e-6), ("60µs", 6e-5), (" 0.5 ms ", 5e-4), ("2s", 2), (".5s", 0.5)]
)
def test_latencies(text, seconds):
    assert latency_of(text) == pytest.approx(seconds)


def test_what_is_no_number_of_anything():
    for text in ("", "3", "us", "-1us", "1 min", "1e-3s", "nan s"):
        with pytest.raises(RunError, match="is no latency: give a number with its unit"):
            latency_of(text)
    for text in ("", "0", "-1", "4x", "x3", "4x0", "2.5", "1x2x"):
        with pytest.raises(RunError, match="is no number of blades"):
            blades_of(text)
    assert blades_of("4x3x2") == (4, 3, 2)


# ── memory ──


def test_memory_of_blades():
    """The fullest blade has the most classes; below it, the share of a share."""
    size = AbstractSize(0, (0,) * 4, (0,) * 4, (0,) * 4, (10, 600, 1200, 2400))
    named = plan_named("IR-PHS-PHS 4-2-2-2", (0, 3, 1, 1))
    plan = replace(named, public=(PublicPlan(2, 6), PublicPlan(3, 4)))
    found = levels(size, replace(plan, public=plan.public[:1]), Deal(), (4,))
    assert [(level.blades, level.slots, level.memory(2)) for level in found] == [(1, 10, 80), (4, 1400, 11200)]
    found = levels(size, plan, Deal(), (3, 2))
    assert [(level.blades, level.slots, level.rounds) for level in found] == [
        (1, 10, (0, 1)),
        (3, 200, (1, 2)),
        (6, 600, (2, 4)),
    ]


def test_the_full_size_needs_24_of_128_gigabytes():
    """[Brown15 §5]: 1.8e11 infoset-actions, 8 bytes each, on 60 blades of 128 GB."""
    assert TARTANIAN7.memory(words=2) == 24e9 < TARTANIAN7_MEMORY == 128e9


# ── costs that are measured ──

PLAN = """
[[public]]
round = 2
classes = 3
codes = 0
base = "IR-PHS-PHS 4-2-2"

[[rounds]]
recall = false
steps = [{ feature = "ehs2", buckets = 4 }]

[[rounds]]
recall = false
steps = [{ feature = "ehs2", buckets = 3 }]

[[rounds]]
recall = false
steps = [{ feature = "ehs", buckets = 3 }]
"""
SECOND = '\n[[public]]\nround = 3\nclasses = 2\ncodes = 0\nbase = "IR-PHS-PHS 4-2-2"\n'


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A run whose cards are not built."""
    folder = tmp_path_factory.mktemp("run")
    game = no_limit(6, 2, 1, "0 2 1", "8 8")
    (folder / "small.game").write_text(str(game.rules))
    (folder / "cards.toml").write_text(PLAN)
    (folder / "none.toml").write_text('game = "small.game"\ncards = "IR-PHS-PHS 4-3-3"\nactions = "1x, a"\n')
    (folder / "run.toml").write_text('game = "small.game"\ncards = "cards.toml"\nactions = "1x, a"\n')
    return folder / "run.toml"


@pytest.fixture(scope="module")
def problem(config):
    """The same, built."""
    return resolve(read_config(config)).build(config.parent / "built")


def game_of(config):
    plan = resolve(config)
    return shared_game(plan.game, plan.menu, plan.cards, plan.options)


def sane(found, classes=3):
    assert found.classes == classes and len(found.work) >= 6
    assert np.all(found.work >= 0) and 0 < found.work.mean() < inf and 0 <= found.fixed < inf
    for line in (found.down, found.up):
        assert 0 <= line.fixed < inf and 0 <= line.deal < inf
    assert found.visits > classes and found.request_bytes > 8 and found.answer_bytes > 0


def test_costs_are_measured_before_there_are_cards(config):
    found = measure_costs(game_of(read_config(config)), together=2, seconds=0.05)
    sane(found)
    assert found.synthetic and found.inside == found.before == ()


def test_costs_of_cards_that_are_there(config, problem):
    asked = replace(read_config(config), cards=tuple(map(str, problem.cards)))
    found = measure_costs(game_of(asked), seconds=0.05)
    sane(found)
    assert not found.synthetic
    synthetic = measure_costs(game_of(read_config(config)), seconds=0.05)
    assert 0.5 < found.visits / synthetic.visits < 2  # the same walks, with other cards


def test_classes_that_there_is_no_room_for_cost_as_much_as_the_others(config, monkeypatch):
    monkeypatch.setattr("kilt.solve.distributed.costs.PROBED", 1)
    found = measure_costs(game_of(read_config(config)), seconds=0.05)
    sane(found)
    assert np.array_equal(found.work[:, 0], found.work[:, 2])
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 100.0)
    with pytest.raises(RunError, match=r"measuring .* classes of boards together takes"):
        measure_costs(game_of(read_config(config)), seconds=0.05)


def test_where_walks_come(problem):
    """By hand, from the rules of a walk: the walker takes all actions, the opponent one of them."""
    betting = problem.abstract.betting
    nodes, seen = betting.nodes, visited(betting)

    def walk(node, player):
        total = np.zeros(len(nodes.actor))
        total[node] = 1
        first, n = int(nodes.first_child[node]), int(nodes.children[node])
        for child in range(first, first + n):
            share = 1 / n if nodes.actor[node] == 1 - player else 1
            total += share * walk(child, player)
        return total

    np.testing.assert_allclose(seen, walk(0, 0) + walk(0, 1))
    partition = game_of_problem(problem).open()
    assert share_before(partition, 1) == 0 and share_before(partition, 3) == pytest.approx(1)
    assert 0 < share_before(partition, 2) < 1


def game_of_problem(problem):
    from kilt.solve.distributed.shared import SharedGame

    abstract = problem.abstract
    rules = abstract.actions, abstract.fingerprint, problem.options
    return SharedGame(abstract.game, problem.cards, *rules, 0, TRIED[1])


def test_check_beside_real_runs(problem):
    """What is foretold and what is seen are there for each number of blades; how close they are, a benchmark says."""
    found = check(replace(problem, engine=EngineConfig("local", 2)), blades=(1, 3), seconds=0.1)
    assert [one.foretold.blades for one in found] == [(1,), (3,)]
    for one in found:
        assert one.visits_per_second > 0 and one.foretold.visits_per_second > 0
        assert 0 <= one.communication_share <= 1 and 0 <= one.idle_share <= 1


# ── the command ──


def test_plan_says_what_blades_take(config):
    said = answer("plan", config, "--no-probe", "--blades", 2)
    assert said["blades"] == [2] and said["head_tables_bytes"] == 8 * said["slots"][0]
    assert said["blade_tables_bytes"] == [round(8 * sum(said["slots"][1:]) * 2 / 3)] and said["card_tables_bytes"] > 0
    assert said["head_bytes"] > PROCESS + 8 * said["slots"][0] and said["blade_bytes"][0] > PROCESS
    assert (said["tartanian7_blades"], said["tartanian7_blade_bytes"]) == (60, 24_000_000_000)
    shown = kilt("plan", config, "--no-probe", "--blades", 2).stderr
    assert "each of 2 blades" in shown and "a blade fits" in shown
    assert "1.8000e11 infoset-actions on 60 blades, 24.0 GB each" in shown
    assert "blades" not in answer("plan", config, "--no-probe")


def test_an_engine_in_the_configuration_has_blades(config):
    engine = config.parent / "engine.toml"
    engine.write_text(config.read_text() + '[engine]\nname = "local"\nblades = 3\n')
    assert answer("plan", engine, "--no-probe")["blades"] == [3]
    assert answer("plan", engine, "--no-probe", "--blades", 1)["blades"] == [1]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("kilt.cli.plan.MEASURED", 0.05)


def test_plan_of_two_levels(config, quick):
    (config.parent / "deeper-cards.toml").write_text(PLAN + SECOND)
    deeper = config.parent / "deeper.toml"
    deeper.write_text(config.read_text().replace('"cards.toml"', '"deeper-cards.toml"'))
    said = answer("plan", deeper, "--blades", "3x2", "--simulate", "--latency", "1us")
    assert said["blades"] == [3, 6] and len(said["blade_bytes"]) == 2
    assert [row["blades_under_each"] for row in said["simulated"]] == [[2]] * 3
    assert "blades below them" in kilt("plan", deeper, "--no-probe", "--blades", "3x2").stderr
    assert "2 levels of blades" in refused("plan", config, "--no-probe", "--blades", "3x2")


def test_plan_simulates(config, quick):
    asked = ["plan", config, "--simulate", "--blades", 3, "--cores", 2, "--latency", "1us,1ms", "--bandwidth", 10]
    said = answer(*asked)
    assert [(row["latency"], row["blades"]) for row in said["simulated"]] == [
        (latency, blades) for latency in ("1us", "1ms") for blades in (1, 2, 3)
    ]
    assert all(row["visits_per_second"] > 0 and row["samples"] >= 1 for row in said["simulated"])
    assert said["simulated"][0]["speed_up"] == 1 and said["costs"]["made_up_buckets"] is True
    shown = kilt(*asked[:-2], "--machine-cores", 2)
    assert "3 blades, 2 cores for all" in shown.stdout and "speed-up" in shown.stdout
    assert "made-up buckets" in shown.stderr


def test_what_plan_refuses(config):
    assert "no classes of boards" in refused("plan", config.parent / "none.toml", "--no-probe", "--blades", 2)
    assert "4 blades cannot share 3 classes" in refused("plan", config, "--no-probe", "--blades", 4)
    assert "'two' is no number of blades" in refused("plan", config, "--blades", "two")
    assert "'5' is no latency" in refused("plan", config, "--simulate", "--blades", 2, "--latency", "1us,5")
    assert "there are no blades to simulate" in refused("plan", config, "--simulate")
    assert "--bandwidth is 0" in refused("plan", config, "--simulate", "--blades", 2, "--bandwidth", 0)
    assert kilt("plan", config, "--blades", 2, "--cores", 0, code=2)
