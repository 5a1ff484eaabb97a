"""The loop, its folders and the strategies they hold."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from kilt import artifact
from kilt.errors import ArtifactError, GameError, RunError
from kilt.evaluate.evaluator import FlatEvaluator, evaluator_for
from kilt.games.game import CHANCE, TERMINAL
from kilt.runs import folder as folders
from kilt.runs import loop
from kilt.runs.budget import Budget, Step, time_left
from kilt.runs.folder import RunFolder, RunIdentity, checkpoint_size
from kilt.solve import forms
from kilt.solve.forms import load_problem, stored_form
from kilt.solve.problem import ABSTRACT, DISK, FLAT, VECTOR, FlatProblem, Problem
from kilt.solve.registry import ALGORITHMS, make_solver
from kilt.solve.sampled import SCHEMES
from kilt.solve.variants import VARIANTS
from kilt.strategy.table import Strategy
from kilt.strategy.vector import VectorStrategy
from kilt.tree.best_response import best_response, expected_value, exploitability, response_values, uniform
from kilt.tree.flat import Expansion, expand_tree
from naive import best_response_value


def run(solver, judged, *arguments, **more):
    """The loop, with the judge of a problem, or with something that is one."""
    return loop.run(solver, evaluator_for(judged) if isinstance(judged, Problem) else judged, *arguments, **more)


ENTRIES = [
    (algorithm, form) for algorithm, entry in ALGORITHMS.items() for form in entry.forms if form not in (DISK, ABSTRACT)
]
THREADED = ", ".join(algorithm for algorithm, entry in ALGORITHMS.items() if entry.threads)


@pytest.fixture(scope="module")
def kuhn():
    return load_problem("kuhn")


@pytest.fixture(scope="module")
def leduc():
    return load_problem("leduc")


@pytest.fixture(scope="module")
def vector_leduc():
    return load_problem("leduc", form=VECTOR)


@pytest.fixture
def leducs(leduc, vector_leduc):
    return {FLAT: leduc, VECTOR: vector_leduc}


def begin(path, problem, algorithm="cfr+", budget=None, **changes):
    """A folder for a new run, and the solver for it."""
    solver = make_solver(problem, algorithm)
    identity = RunIdentity(problem.name, algorithm, 0, problem.form, problem.fingerprint)._replace(**changes)
    return RunFolder.create(path, identity, budget or Budget(iterations=100), checkpoint_size(solver)), solver


def same_but_for_time(steps, others):
    first, second = ([step._replace(seconds=0, cpu_seconds=0) for step in each] for each in (steps, others))
    return first == second


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
    class Perfect(FlatEvaluator):
        def exploitability(self, strategy):
            return 0.0

    assert list(run(make_solver(kuhn, "cfr"), Perfect(kuhn), Budget(iterations=20)))[-1].iterations == 20


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

    def exploitability(self, strategy):
        self.now += self.measurement / 2
        self.measuring += self.measurement / 2
        return 1.0 / self.iterations

    def measure(self, solver):
        return self.exploitability(None), self.exploitability(None), 0.0, {}

    def require_measurable(self, target):
        pass


@pytest.mark.parametrize("iteration", [1e-6, 1e-3, 1.0])
def test_measuring_is_cheap_and_time_is_kept(kuhn, iteration):
    world = Clock(kuhn, iteration, measurement=0.7)
    steps = list(run(world, world, Budget(seconds=200), clock=lambda: world.now))
    assert 200 <= steps[-1].seconds <= 200 + max(loop.CHUNK, iteration) + 0.7
    assert world.measuring <= loop.MEASURING * 200 + 2 * 0.7
    assert len(steps) > 5


def test_with_a_target_no_measurement_is_left_out(kuhn):
    world = Clock(kuhn, 1e-6, measurement=50.0)
    steps = list(run(world, world, Budget(target=0.01), clock=lambda: world.now))
    assert [step.iterations for step in steps][-3:] == [64, 91, 128]


def test_targets_of_large_games_leave_time_to_solve_them(kuhn):
    """Three seconds each: the points of the schedule are few."""
    world = Clock(kuhn, 3.0, measurement=3.0)
    *_, last = run(world, world, Budget(target=1 / 40), clock=lambda: world.now)
    assert last.iterations == 45
    assert world.measuring <= last.seconds / 4


@pytest.mark.parametrize(("algorithm", "form"), ENTRIES)
def test_stopped_runs_go_on_bit_for_bit(tmp_path, leducs, algorithm, form):
    """However it is cut into sessions and chunks: same numbers, same log, same tables."""
    budget, leduc = Budget(iterations=150), leducs[form]
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


def test_chunks_do_not_matter(leducs, monkeypatch):
    for algorithm, form in ENTRIES:
        results = []
        for chunk in (1e-9, 10.0):
            monkeypatch.setattr(loop, "CHUNK", chunk)
            solver = make_solver(leducs[form], algorithm, seed=5)
            results.append((list(run(solver, leducs[form], Budget(iterations=40))), solver.average()))
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
        file.write(json.dumps(Step(23, 1.0, 9.0, 9.0, 9.0)._asdict()) + '\n{"iterations": 32, "sec')
    list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=40), folder=folder))
    assert same_but_for_time(folder.steps(), run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=40)))


def test_garbage_in_a_log_is_said_and_the_rest_stays(tmp_path, kuhn):
    folder, solver = begin(tmp_path / "run", kuhn)
    before = list(run(solver, kuhn, Budget(iterations=20), folder=folder))
    file = folder.path / "log.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    garbage = (b"\xff\x00garbage\n", b'{"iterations": "many"}\n', lines[3].replace(b"{", b"["))
    file.write_bytes(b"".join([lines[0], garbage[0], *lines[1:3], garbage[1], garbage[2], *lines[4:]]))
    assert same_but_for_time(folder.steps(), [*before[:3], *before[4:]])
    with pytest.raises(RunError, match=r"log\.jsonl is damaged: lines that cannot be read are left out \(2, 5, 6\)"):
        folder.require_whole_log()
    said = []
    list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=40), folder=folder, warn=said.append))
    assert len(said) == 1 and "log.jsonl is damaged" in said[0]
    unbroken = list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=40)))
    assert same_but_for_time(folder.steps(), [*unbroken[:3], *unbroken[4:]])


def test_a_run_killed_before_its_first_checkpoint_starts_again(tmp_path, kuhn):
    folder, _ = begin(tmp_path / "run", kuhn)
    steps = list(run(make_solver(kuhn, "cfr+"), kuhn, folder.budget, folder=RunFolder.open(folder.path)))
    assert steps[0].iterations == 1


def test_cpu_time_is_beside_wall_time_and_goes_on(tmp_path, kuhn, monkeypatch):
    assert all(step.cpu_seconds > 0 for step in run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=3)))
    looks = iter(range(1, 1000))  # a second passes from one look at the clock to the next
    monkeypatch.setattr(loop, "cpu_seconds", lambda: next(looks))
    folder, solver = begin(tmp_path / "run", kuhn, budget=Budget(iterations=50))
    first = list(run(solver, kuhn, folder.budget, folder=folder))
    assert all(0 < before.cpu_seconds <= step.cpu_seconds for before, step in pairwise(first))
    again = list(run(make_solver(kuhn, "cfr+"), kuhn, Budget(iterations=100), folder=RunFolder.open(folder.path)))
    assert again[-1].cpu_seconds > first[-1].cpu_seconds
    assert folder.steps()[-1] == again[-1]
    log = folder.path / "log.jsonl"
    said = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "cpu_seconds"}) + "\n" for line in said))
    assert [step.cpu_seconds for step in folder.steps()] == [0.0] * len(said)  # written before there was any


def test_checkpoints_are_frequent_but_cheap(tmp_path, kuhn, monkeypatch):
    folder, solver = begin(tmp_path / "run", kuhn)
    written = []
    clock = [0.0]
    monkeypatch.setattr(folders, "perf_counter", lambda: clock[0])

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


def test_large_tables_are_not_written_at_once(tmp_path, kuhn, monkeypatch):
    folder, solver = begin(tmp_path / "run", kuhn)
    monkeypatch.setattr(folders, "WRITING", 1.0)  # bytes per second
    with folder.working():
        folder.restore(solver, folder.budget)
        solver.step(1)
        folder.save(solver, folders.RARELY - 1)
        assert not artifact.exists(folder.path / "checkpoint")
        folder.save(solver, folders.RARELY)
        assert artifact.exists(folder.path / "checkpoint")


@pytest.mark.parametrize(
    ("what", "value", "words"),
    [
        ("form", "vector", ["vector form", "flat form", "resume it with the game in vector form"]),
        ("fingerprint", "0123abcd", ["fingerprint 0123abcd", "game it was made for"]),
        ("algorithm", "cfr", ["cfr on kuhn", "give cfr as `algorithm`"]),
        ("seed", 7, ["seed 7", "give 7 as `seed`"]),
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
    with pytest.raises(RunError, match=r"holds a run already.*resume it"):
        begin(tmp_path / "run", kuhn)
    (tmp_path / "mine").mkdir()
    begin(tmp_path / "mine", kuhn)  # an empty folder is fine
    (tmp_path / "file").write_text("")
    for name in ("", "file"):
        with pytest.raises(RunError, match="no run"):
            begin(tmp_path / name, kuhn)
    with pytest.raises(RunError, match="no run"):
        RunFolder.open(tmp_path)
    (tmp_path / "run" / "run.json").write_text('{"game": 3}')
    with pytest.raises(RunError, match=r"run\.json is damaged"):
        RunFolder.open(tmp_path / "run")


def test_room_is_looked_for_before_the_work(tmp_path, kuhn, monkeypatch):
    monkeypatch.setattr(artifact, "SPARE", 10**18)
    with pytest.raises(ArtifactError, match="but the disk has"):
        begin(tmp_path / "run", kuhn)
    assert not (tmp_path / "run").exists()


def test_one_process_at_a_time(tmp_path, kuhn):
    folder, _ = begin(tmp_path / "run", kuhn)
    code = (
        "import sys; from pathlib import Path\n"
        "from kilt.errors import RunError; from kilt.runs.folder import RunFolder\n"
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

    return FlatProblem(expand_tree("uneven", "start", expand))


def test_information_sets_at_several_depths(tmp_path):
    problem = uneven()
    assert evaluator_for(problem).response_values(problem.uniform()) == (0.0, 1.0)
    for algorithm in ("cfr", "cfr-br"):
        *_, step = run(make_solver(problem, algorithm), problem, Budget(target=0.02))
        assert step.value == pytest.approx(-1.0, abs=0.05)
        assert step.exploitability <= 0.02


@pytest.mark.parametrize("seed", range(5))
def test_best_responses_in_games_of_uneven_depth(seed):
    """Players move in an order that they do not see: all they know is a signal and their own moves."""
    rng = np.random.default_rng(seed)
    orders = [[int(player) for player in rng.integers(2, size=rng.integers(2, 7))] for _ in range(4)]
    signals = rng.integers(2, size=(4, 2))

    def expand(state):
        if state is None:
            return Expansion(CHANCE, [(0.25, (deal, ())) for deal in range(4)])
        deal, moves = state
        if len(moves) == len(orders[deal]):
            return Expansion(TERMINAL, payoff=float(np.random.default_rng([seed, deal, *moves]).normal()))
        player = orders[deal][len(moves)]
        own = [move for move, who in zip(moves, orders[deal], strict=False) if who == player]
        seen = f"{player} {signals[deal, player]} {own}"
        return Expansion(player, [(1.0, (deal, (*moves, move))) for move in range(3)], seen, ("a", "b", "c"))

    tree = expand_tree("uneven", None, expand)
    strategy = np.concatenate([rng.dirichlet(np.ones(3)) for _ in tree.infosets])
    expected = [best_response_value(tree, strategy, player) for player in (0, 1)]
    assert response_values(tree, strategy) == pytest.approx(expected, abs=1e-12)
    for player in (0, 1):
        found = best_response(tree, strategy, player)
        worth = expected_value(tree, found.strategy)
        assert (worth if player == 0 else -worth) == pytest.approx(expected[player], abs=1e-12)


def test_forms():
    """Flat where that will do, vectors where the game is too large or threads are asked for."""
    assert load_problem("leduc").form == load_problem("leduc", "cfr+").form == FLAT
    assert load_problem("leduc", "cfr+", threads=2).form == load_problem("leduc", threads=2).form == VECTOR
    assert load_problem("leduc", "cfr+", form=VECTOR).form == VECTOR
    assert load_problem("rhode-island", "cfr+").form == VECTOR
    assert load_problem("openspiel:kuhn_poker", "cfr+").form == FLAT


def test_forms_that_only_one_algorithm_has(monkeypatch):
    monkeypatch.setitem(
        ALGORITHMS, "boards", ALGORITHMS["cfr"]._replace(make={VECTOR: ALGORITHMS["cfr"].make[VECTOR].make})
    )
    assert load_problem("leduc", "boards").form == VECTOR
    assert make_solver(load_problem("leduc", "boards"), "boards").average().ndim == 2
    with pytest.raises(RunError, match=r"boards needs a public tree, and openspiel:liars_dice .*: use one of cfr, "):
        load_problem("openspiel:liars_dice", "boards")
    with pytest.raises(RunError, match=rf"boards runs in 1 thread, not in 2: use 1, or one of {re.escape(THREADED)}$"):
        load_problem("leduc", "boards", threads=2)
    monkeypatch.setitem(ALGORITHMS, "boards", ALGORITHMS["cfr"]._replace(make={VECTOR: ALGORITHMS["cfr"].make[VECTOR]}))
    with pytest.raises(RunError, match=r"boards needs a public tree, and .*: use 1 thread, and one of cfr, "):
        load_problem("openspiel:kuhn_poker", "boards", threads=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("holdem.2-4", "external"), ["external needs", "20,000,000 nodes", "1.97e+12 states", "use one of cfr, "]),
        (("holdem.2-4", "lp"), ["lp needs a flat tree", "use one of cfr, cfr+, "]),
        (
            ("holdem.nolimit.2p", "cfr+"),
            ["6.31e+164 states", "a betting tree of up to 20,000,000", "configuration with `actions`"],
        ),
        (("holdem.limit.2p", "cfr+"), ["3.16e+17 states", "400,606.5 GB of memory", "are available: use"]),
        (("holdem.limit.2p",), ["judging a strategy needs", "200,303.3 GB of memory", "smaller game"]),
    ],
)
def test_games_that_are_too_large_are_refused_at_once(arguments, words):
    with pytest.raises(RunError) as error:
        load_problem(*arguments)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    ("name", "algorithm", "options", "words"),
    [
        ("leduc", "external", {"threads": 2}, ["external runs in 1 thread, not in 2", THREADED]),
        ("leduc", "cfr", {"threads": 0}, ["threads is 0", "1 or more"]),
        ("leduc", "cfr+", {"threads": 2, "form": FLAT}, ["1 thread for a flat tree, not 2", "use 1 thread"]),
        ("leduc", None, {"threads": 2, "form": FLAT}, ["judging a strategy needs 1 thread", "use 1 thread"]),
        ("leduc", "external", {"form": VECTOR}, ["external needs flat form", "form, not vector", "use one of cfr"]),
        ("openspiel:kuhn_poker", "cfr+", {"threads": 2}, ["a public tree", "does not come with one", "use 1 thread"]),
        ("openspiel:kuhn_poker", None, {"form": VECTOR}, ["a public tree", "does not come with one"]),
        ("leduc", "nonesuch", {}, ["unknown algorithm 'nonesuch'", "cfr+", "lp"]),
    ],
)
def test_forms_that_do_not_fit(name, algorithm, options, words):
    with pytest.raises(RunError) as error:
        load_problem(name, algorithm, **options)
    assert all(word in str(error.value) for word in words), error.value


def test_solvers_need_their_form(vector_leduc):
    with pytest.raises(RunError, match=r"external does not come in vector form: use one of cfr, cfr\+"):
        make_solver(vector_leduc, "external")


def test_tables_fit_into_memory_before_they_are_made(monkeypatch):
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 20_000.0)
    monkeypatch.setattr(forms.flat, "MOST_NODES", 100)
    with pytest.raises(RunError, match=r"or 0\.0 GB of memory for the tables of leduc, and 0\.0 GB are available:"):
        load_problem("leduc", "cfr+")  # two tables of 224 × 6 numbers
    assert load_problem("leduc").form == VECTOR  # one


def test_large_tables_are_in_single_precision(monkeypatch, tmp_path):
    assert load_problem("leduc", "cfr+", form=VECTOR).dtype == np.float64
    monkeypatch.setattr("kilt.solve.problem.SINGLE", 20_000)
    leduc = load_problem("leduc", "cfr+", form=VECTOR)
    assert leduc.uniform().dtype == np.float32
    assert {table.dtype for table in make_solver(leduc, "cfr+").state().values()} == {np.dtype("f4"), np.dtype("i8")}
    leduc.save(tmp_path / "strategy", leduc.uniform(), iterations=7)
    table, figures = leduc.load(tmp_path / "strategy")
    assert (table.dtype, figures) == (np.float32, {"iterations": 7})


@pytest.mark.parametrize("name", ["kuhn", "leduc", "one-card"])
def test_forms_agree(name):
    """On what a strategy is worth, and on the strategy of each iteration; averages may be one iteration apart."""
    flat, vector = load_problem(name, "cfr"), load_problem(name, "cfr", threads=2)
    assert (vector.name, vector.big_blind) == (flat.name, flat.big_blind)
    np.testing.assert_allclose(
        evaluator_for(vector).evaluate(vector.uniform()), evaluator_for(flat).evaluate(flat.uniform()), atol=1e-9
    )
    steps = [list(run(make_solver(problem, "cfr"), problem, Budget(iterations=16))) for problem in (flat, vector)]
    for one, other in zip(*steps, strict=True):
        assert one.current_exploitability == pytest.approx(other.current_exploitability, abs=1e-9)
    assert steps[0][-1].exploitability == pytest.approx(steps[1][-1].exploitability, abs=0.1)


def test_the_number_of_threads_may_change(tmp_path, vector_leduc):
    folder, solver = begin(tmp_path / "run", vector_leduc)
    list(run(solver, vector_leduc, Budget(iterations=20), folder=folder))
    two = load_problem("leduc", "cfr+", threads=2)
    assert two.fingerprint == vector_leduc.fingerprint
    *_, step = run(make_solver(two, "cfr+"), two, Budget(iterations=40), folder=RunFolder.open(folder.path))
    *_, unbroken = run(make_solver(vector_leduc, "cfr+"), vector_leduc, Budget(iterations=40))
    assert step.exploitability == pytest.approx(unbroken.exploitability, abs=1e-9)
    assert [s.iterations for s in folder.steps()] == [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 40]


def test_units_of_both_forms(leducs):
    assert {form: problem.mbb(0.5) for form, problem in leducs.items()} == {FLAT: 500, VECTOR: 500}
    assert load_problem("bluff-1-1", form=VECTOR).mbb(0.5) is None


def test_targets_below_rounding(vector_leduc):
    with pytest.raises(RunError, match="known to 1e-09"):
        evaluator_for(vector_leduc).require_measurable(1e-10)


def test_the_menu_is_complete():
    assert {*VARIANTS, *SCHEMES} < set(ALGORITHMS)
    assert all(entry.forms for entry in ALGORITHMS.values())


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
        plot_convergence({"odd": steps}, "odd [run]", tmp_path / "run.png")
        assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_strategies_are_kept(tmp_path, kuhn):
    folder, solver = begin(tmp_path / "run", kuhn)
    *_, step = run(solver, kuhn, Budget(iterations=500), folder=folder)
    strategy = Strategy.load(folder.path / "strategy")
    np.testing.assert_array_equal(strategy.on(kuhn.tree), solver.average())
    assert strategy.figures["exploitability"] == step.exploitability
    assert stored_form(folder.path / "strategy") == FLAT
    assert (strategy.infosets, strategy.actions) == (kuhn.tree.infosets, kuhn.tree.actions)
    assert strategy["As||cr"] == pytest.approx({"f": 0.0, "c": 1.0}, abs=1e-3)
    with pytest.raises(GameError, match=r"no information set 'nonesuch'"):
        strategy["nonesuch"]


def test_tables_of_vectors_are_kept(tmp_path, vector_leduc):
    folder, solver = begin(tmp_path / "run", vector_leduc)
    *_, step = run(solver, vector_leduc, Budget(iterations=50), folder=folder)
    place = folder.path / "strategy"
    assert stored_form(place) == VECTOR
    table, figures = vector_leduc.load(place)
    np.testing.assert_array_equal(table, solver.average())
    assert figures["exploitability"] == step.exploitability == evaluator_for(vector_leduc).exploitability(table)
    assert not table.flags.owndata  # mapped, not copied
    strategy = VectorStrategy.load(place)
    assert (strategy.game, strategy.fingerprint) == ("leduc", vector_leduc.fingerprint)
    kuhn = load_problem("kuhn", form=VECTOR)
    with pytest.raises(
        GameError, match=rf"leduc with fingerprint {strategy.fingerprint}.*kuhn with {kuhn.fingerprint}"
    ):
        kuhn.load(place)
    with pytest.raises(ArtifactError, match="holds a vector strategy, not a strategy"):
        load_problem("leduc").load(place)
    with pytest.raises(ArtifactError, match="holds a checkpoint, not a strategy"):
        stored_form(folder.path / "checkpoint")


def test_fingerprints_of_rules():
    """Not of the name, but of all that makes the game; flat and vector forms have nothing to do with each other."""
    names = ["kuhn", "leduc", "one-card", "bluff-1-1", "holdem.2-1", "holdem.2-4"]
    found = {load_problem(name, form=VECTOR).fingerprint for name in names}
    assert len(found) == len(names)
    assert load_problem("kuhn").fingerprint not in found


def test_strategies_know_their_game(kuhn, leduc):
    strategy = Strategy.of(kuhn.tree, uniform(kuhn.tree))
    with pytest.raises(GameError, match=rf"kuhn with fingerprint {kuhn.fingerprint}.*leduc with {leduc.fingerprint}"):
        strategy.on(leduc.tree)


def test_names_may_have_line_breaks(tmp_path):
    tree = expand_tree(
        "lines",
        0,
        lambda state: (
            Expansion(TERMINAL) if state else Expansion(0, [(1.0, 1), (1.0, 1)], "first\nsecond", ("a b", "c\nd"))
        ),
    )
    Strategy.of(tree, uniform(tree)).save(tmp_path / "strategy")
    assert Strategy.load(tmp_path / "strategy")["first\nsecond"] == {"a b": 0.5, "c\nd": 0.5}
