"""The loop, its folders and the strategies they hold."""

import json
import subprocess
import sys
from itertools import pairwise
from math import inf, isnan

import numpy as np
import pytest

from kilt import artifact
from kilt.errors import ArtifactError, GameError, RunError
from kilt.games.game import CHANCE, TERMINAL
from kilt.solve import run as loop
from kilt.solve.run import (
    Budget,
    FlatProblem,
    Identity,
    RunFolder,
    Step,
    algorithms,
    load_problem,
    make_solver,
    run,
    time_left,
)
from kilt.strategy.table import Strategy
from kilt.tree.best_response import exploitability, uniform
from kilt.tree.flat import Expansion, write_out


@pytest.fixture(scope="module")
def kuhn():
    return load_problem("kuhn")


@pytest.fixture(scope="module")
def leduc():
    return load_problem("leduc")


def begin(path, problem, algorithm="cfr+", budget=None, **changes):
    """A folder for a new run, and the solver for it."""
    solver = make_solver(problem, algorithm)
    identity = Identity(problem.tree.name, algorithm, 0, problem.fingerprint)._replace(**changes)
    return RunFolder.create(path, identity, budget or Budget(iterations=100), solver), solver


def same_but_for_time(steps, others):
    return [step._replace(seconds=0) for step in steps] == [step._replace(seconds=0) for step in others]


def after(calls):
    """What says yes from the so-manieth time on that it is asked."""
    asked = iter(range(calls))
    return lambda: next(asked, None) is None


def test_steps_come_at_the_schedule_and_at_the_end(kuhn):
    steps = list(run(make_solver(kuhn, "cfr"), kuhn, Budget(iterations=50)))
    assert [step.iterations for step in steps] == [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 50]
    assert all(step.seconds >= before.seconds for before, step in pairwise(steps))
    solver = make_solver(kuhn, "cfr")
    solver.step(50)
    assert steps[-1].exploitability == exploitability(kuhn.tree, solver.average())
    assert steps[-1].current_exploitability == exploitability(kuhn.tree, solver.current())


def test_a_target_stops_at_the_first_scheduled_step_that_meets_it(leduc):
    steps = list(run(make_solver(leduc, "cfr+"), leduc, Budget(target=0.01)))
    assert steps[-1].exploitability <= 0.01 < steps[-2].exploitability


def test_iterations_are_done_even_where_nothing_is_left_to_gain(kuhn):
    class Perfect(FlatProblem):
        def evaluate(self, strategy):
            return 0.0, 0.0

    assert list(run(make_solver(kuhn, "cfr"), Perfect(kuhn.tree), Budget(iterations=20)))[-1].iterations == 20


class Clock:
    """A world in which iterations and measurements take a known time."""

    def __init__(self, problem, iteration, measurement):
        self.now, self.iteration, self.measurement = 0.0, iteration, measurement
        self.iterations, self.measuring, self.tree, self.uniform = 0, 0.0, problem.tree, uniform(problem.tree)

    def step(self, iterations):
        self.iterations += iterations
        self.now += self.iteration * iterations

    def average(self):
        return self.uniform

    current = average

    def evaluate(self, strategy):
        self.now += self.measurement / 2
        self.measuring += self.measurement / 2
        return 0.0, 1.0 / self.iterations

    def require_measurable(self, budget):
        pass


@pytest.mark.parametrize("iteration", [1e-6, 1e-3, 1.0])
def test_measuring_is_cheap_and_time_is_kept(kuhn, monkeypatch, iteration):
    world = Clock(kuhn, iteration, measurement=0.7)
    monkeypatch.setattr(loop, "perf_counter", lambda: world.now)
    steps = list(run(world, world, Budget(seconds=200)))
    assert 200 <= steps[-1].seconds <= 200 + max(loop.CHUNK, iteration) + 0.7
    assert world.measuring <= loop.MEASURING * 200 + 2 * 0.7
    assert len(steps) > 5


def test_with_a_target_no_measurement_is_left_out(kuhn, monkeypatch):
    world = Clock(kuhn, 1e-6, measurement=50.0)
    monkeypatch.setattr(loop, "perf_counter", lambda: world.now)
    steps = list(run(world, world, Budget(target=0.01)))
    assert [step.iterations for step in steps][-3:] == [64, 91, 128]


@pytest.mark.parametrize("algorithm", algorithms())
def test_stopped_runs_go_on_bit_for_bit(tmp_path, leduc, algorithm):
    """However it is cut into sessions and chunks: same numbers, same log, same tables."""
    budget = Budget(iterations=150)
    whole, solver = begin(tmp_path / "whole", leduc, algorithm)
    unbroken = list(run(solver, leduc, budget, folder=whole))

    folder, fresh = begin(tmp_path / "parts", leduc, algorithm)
    for chunks in (7, 1, 3, 0, inf):
        fresh = make_solver(leduc, algorithm)
        parts = list(run(fresh, leduc, budget, folder=folder, stop=after(chunks) if chunks < inf else lambda: False))
    assert same_but_for_time(parts[-1:], unbroken[-1:])
    assert same_but_for_time(folder.steps(), whole.steps())
    assert whole.steps() == unbroken
    for name, table in solver.state().items():
        assert fresh.state()[name].tobytes() == table.tobytes(), name


def test_chunks_do_not_matter(leduc, monkeypatch):
    for algorithm in algorithms():
        results = []
        for chunk in (1e-9, 10.0):
            monkeypatch.setattr(loop, "CHUNK", chunk)
            solver = make_solver(leduc, algorithm, seed=5)
            results.append((list(run(solver, leduc, Budget(iterations=40))), solver.average()))
        assert same_but_for_time(results[0][0], results[1][0])
        np.testing.assert_array_equal(results[0][1], results[1][1])


def test_a_finished_run_can_be_given_more(tmp_path, kuhn):
    folder, solver = begin(tmp_path / "run", kuhn)
    list(run(solver, kuhn, Budget(iterations=50), folder=folder))
    list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=100), folder=folder))
    unbroken = list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=100)))
    assert same_but_for_time(folder.steps(), unbroken)
    again = list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=100), folder=folder))
    assert same_but_for_time(again, unbroken[-1:])


def test_a_log_that_is_ahead_or_cut_short_is_mended(tmp_path, kuhn):
    """As after a kill: lines after the last checkpoint are there, the last one in part."""
    folder, solver = begin(tmp_path / "run", kuhn)
    list(run(solver, kuhn, Budget(iterations=20), folder=folder))
    with (folder.path / "log.jsonl").open("a") as file:
        file.write(json.dumps(Step(23, 1.0, 9.0, 9.0, 9.0).plain()) + '\n{"iterations": 32, "sec')
    list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=40), folder=folder))
    assert same_but_for_time(folder.steps(), run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=40)))


def test_a_run_killed_before_its_first_checkpoint_starts_again(tmp_path, kuhn):
    folder, _ = begin(tmp_path / "run", kuhn)
    steps = list(run(make_solver(kuhn, "cfr+"), kuhn, folder.budget, folder=RunFolder.open(folder.path)))
    assert steps[0].iterations == 1


def test_checkpoints_are_frequent_but_cheap(tmp_path, kuhn, monkeypatch):
    folder, solver = begin(tmp_path / "run", kuhn)
    written = []
    clock = [0.0]
    monkeypatch.setattr(loop, "perf_counter", lambda: clock[0])

    def write(*args, figures, **kwargs):
        written.append(figures["seconds"])
        clock[0] += 0.5

    monkeypatch.setattr(artifact, "write", write)
    for second in range(1, 1000):
        solver.step(1)
        folder.save(solver, float(second))
    assert written == [1.0 + 25 * k for k in range(40)]  # half a second of every 25
    folder.save(solver, 1000.0, at_once=True)
    folder.save(solver, 1001.0, at_once=True)  # nothing new
    assert len(written) == 41


@pytest.mark.parametrize(
    ("what", "value", "words"),
    [
        ("fingerprint", "0123abcd", ["fingerprint 0123abcd", "game it was made for"]),
        ("algorithm", "cfr", ["cfr on kuhn", "--algorithm cfr"]),
        ("seed", 7, ["seed 7", "--seed 7"]),
        ("version", "0.0.1", ["kilt 0.0.1", "resume it with kilt 0.0.1"]),
    ],
)
def test_checkpoints_of_other_runs_are_refused(tmp_path, kuhn, what, value, words):
    folder, solver = begin(tmp_path / "run", kuhn)
    other, _ = begin(tmp_path / "other", kuhn, **{what: value})
    solver.step(3)
    other.save(solver, 1.0, at_once=True)
    (other.path / "checkpoint").rename(folder.path / "checkpoint")
    with pytest.raises(RunError) as error:
        list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=9), folder=folder))
    assert all(word in str(error.value) for word in [*words, kuhn.fingerprint, "start a new run"]), error.value


def test_folders_that_are_no_runs(tmp_path, kuhn):
    begin(tmp_path / "run", kuhn)
    with pytest.raises(RunError, match=r"holds a run already.*--resume"):
        begin(tmp_path / "run", kuhn)
    (tmp_path / "mine").mkdir()
    begin(tmp_path / "mine", kuhn)  # an empty folder is fine
    (tmp_path / "file").write_text("")
    for name in ("", "file"):
        with pytest.raises(RunError, match="no run of"):
            begin(tmp_path / name, kuhn)
    with pytest.raises(RunError, match="no run of"):
        RunFolder.open(tmp_path)
    (tmp_path / "run" / "run.json").write_text('{"game": 3}')
    with pytest.raises(RunError, match=r"run\.json is damaged"):
        RunFolder.open(tmp_path / "run")


def test_room_is_looked_for_before_the_work(tmp_path, kuhn, monkeypatch):
    monkeypatch.setattr(artifact, "SPARE", 10**18)
    with pytest.raises(ArtifactError, match="but the disk has"):
        begin(tmp_path / "run", kuhn)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_one_process_at_a_time(tmp_path, kuhn):
    folder, _ = begin(tmp_path / "run", kuhn)
    code = (
        "import sys; from pathlib import Path; from kilt.errors import RunError; from kilt.solve.run import RunFolder\n"
        "try:\n  with RunFolder.open(Path(sys.argv[1])).working(): pass\n"
        "except RunError as error: sys.exit('another process' in str(error) and 5)"
    )
    with folder.working():
        assert subprocess.run([sys.executable, "-c", code, str(folder.path)]).returncode == 5
    assert subprocess.run([sys.executable, "-c", code, str(folder.path)]).returncode == 0


@pytest.mark.parametrize("budget", [{"iterations": 0}, {"seconds": -1.0}, {"target": float("nan")}, {"seconds": inf}])
def test_budgets_that_are_none(budget):
    with pytest.raises(RunError, match="above 0"):
        Budget(**budget)


def test_targets_that_cannot_be_measured(kuhn):
    with pytest.raises(RunError, match=r"1e-30 chips per game cannot be measured.*1\.2e-11"):
        next(run(make_solver(kuhn, "cfr"), kuhn, Budget(target=1e-30)))


def uneven():
    """A coin decides whether player 0 acts before player 1, who cannot tell: an information set at two depths."""

    def expand(state):
        return {
            "start": Expansion(CHANCE, [(0.5, "first"), (0.5, "second")]),
            "first": Expansion(0, [(1.0, "second"), (1.0, "second")], "first", ("a", "b")),
            "second": Expansion(1, [(1.0, "won"), (1.0, "lost")], "second", ("c", "d")),
            "won": Expansion(TERMINAL, payoff=1.0),
            "lost": Expansion(TERMINAL, payoff=-1.0),
        }[state]

    return FlatProblem(write_out("uneven", "start", expand))


def test_algorithms_that_take_best_responses_need_them():
    with pytest.raises(RunError, match=r"cfr-br takes best responses, and uneven.*use one of cfr, "):
        make_solver(uneven(), "cfr-br")


def test_where_no_best_response_can_be_computed(tmp_path):
    problem = uneven()
    with pytest.raises(RunError, match=r"cannot be measured: uneven.*different depths.*iterations or minutes"):
        next(run(make_solver(problem, "cfr"), problem, Budget(target=0.1)))
    folder, solver = begin(tmp_path / "run", problem)
    *_, step = run(solver, problem, Budget(iterations=200), folder=folder)
    assert isnan(step.exploitability)
    assert step.value == pytest.approx(-1.0, abs=0.02)
    assert "NaN" not in (folder.path / "log.jsonl").read_text()
    assert isnan(folder.steps()[-1].current_exploitability)


def test_large_games_are_refused_at_once():
    for name in ("holdem.limit.2p", "holdem.nolimit.2p", "bluff-2-2"):
        with pytest.raises(GameError, match=rf"{name} has .* states.*20,000,000 nodes.*smaller game.*to come"):
            load_problem(name)


def test_units():
    assert load_problem("leduc").mbb(0.5) == 500
    assert load_problem("openspiel:kuhn_poker").mbb(0.5) is None


def test_time_left():
    steps = [Step(n, n / 100, 1 / n, 1 / n, 0.0) for n in (10, 14, 20)]
    assert time_left(Budget(), steps, 20, 0.2) is None
    assert time_left(Budget(seconds=3), steps, 20, 1.0) == 2.0
    assert time_left(Budget(seconds=3, iterations=40), steps, 20, 1.0) == 1.0
    assert time_left(Budget(target=0.01), steps, 20, 0.2) == pytest.approx(0.8)
    assert time_left(Budget(target=0.01), steps[:2], 20, 0.2) is None
    assert time_left(Budget(target=0.01), [*steps, steps[0]], 20, 0.2) is None
    assert time_left(Budget(target=1e-9), [*steps[:2], Step(20, 0.2, 1 / 14 - 1e-9, 1.0, 0.0)], 20, 0.2) is not None
    assert time_left(Budget(seconds=1), steps, 20, 2.0) == 0.0


@pytest.mark.parametrize("shown", [(0.0, 0.0), (float("nan"), float("nan")), (0.5, 0.0), (0.5, 0.4)])
def test_plots_of_odd_runs(tmp_path, shown):
    from kilt.viz.convergence import plot_convergence

    for count in (1, 2):
        steps = [Step(n, 0.1 * n, *shown, 0.0) for n in range(count)]
        plot_convergence(steps, "odd [run]", tmp_path / "run.png")
        assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_strategies_are_kept(tmp_path, kuhn):
    folder, solver = begin(tmp_path / "run", kuhn)
    *_, step = run(solver, kuhn, Budget(iterations=500), folder=folder)
    strategy = Strategy.load(folder.path / "strategy")
    np.testing.assert_array_equal(strategy.on(kuhn.tree), solver.average())
    assert strategy.figures["exploitability"] == step.exploitability
    assert (strategy.infosets, strategy.actions) == (kuhn.tree.infosets, kuhn.tree.actions)
    assert strategy["As||cr"] == pytest.approx({"f": 0.0, "c": 1.0}, abs=1e-3)
    with pytest.raises(GameError, match=r"no information set 'nonesuch'"):
        strategy["nonesuch"]


def test_strategies_know_their_game(kuhn, leduc):
    strategy = Strategy.of(kuhn.tree, uniform(kuhn.tree))
    with pytest.raises(GameError, match=rf"kuhn with fingerprint {kuhn.fingerprint}.*leduc with {leduc.fingerprint}"):
        strategy.on(leduc.tree)


def test_names_may_have_line_breaks(tmp_path):
    tree = write_out(
        "lines",
        0,
        lambda state: (
            Expansion(TERMINAL) if state else Expansion(0, [(1.0, 1), (1.0, 1)], "first\nsecond", ("a b", "c\nd"))
        ),
    )
    Strategy.of(tree, uniform(tree)).save(tmp_path / "strategy")
    assert Strategy.load(tmp_path / "strategy")["first\nsecond"] == {"a b": 0.5, "c\nd": 0.5}
