"""The front door: what `import kilt` offers, and the scripts that a newcomer copies (`make types` checks theirs)."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kilt
from kilt.errors import GameError, KiltError, PlayError, RunError
from kilt.solve.registry import ALGORITHMS

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CONFIG = {"game": "leduc", "cards": "lossless", "solver": {"algorithm": "cfr+", "iterations": 20}}


def test_the_names_are_those_that_are_said():
    """`__all__`, the homes, and what type checkers are told."""
    tree = ast.parse(Path(kilt.__file__).read_text())
    (types,) = [node for node in tree.body if isinstance(node, ast.If)]
    told = {name.name: node.module for node in types.body for name in node.names}
    assert {name: f"kilt.{home}" for name, home in kilt._HOMES.items()} == told
    assert sorted([*kilt._HOMES, "__version__"]) == sorted(kilt.__all__) == sorted(dir(kilt))
    for name in kilt.__all__:
        assert getattr(kilt, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'solver_of_all_games'"):
        kilt.solver_of_all_games  # noqa: B018


def test_old_names_warn():
    for name, (_, now, _) in kilt._OLD.items():
        with pytest.warns(DeprecationWarning, match=f"kilt.{name} is now kilt"):
            assert callable(getattr(kilt, name)), now
    with pytest.warns(DeprecationWarning, match="is now exploitability"):
        assert kilt.exploitability("kuhn", "always-call") == kilt.exploitability("always-call", "kuhn")
    with pytest.warns(DeprecationWarning, match="is now exploitability"):
        assert kilt.exploitability("kuhn", strategy="uniform") == kilt.exploitability("uniform", "kuhn")
    with pytest.warns(DeprecationWarning, match="workers"):
        kilt.play_match("always-call", "probe", 20, game="leduc", processes=1)


def test_importing_kilt_imports_nothing_heavy():
    code = "import sys, kilt; print(' '.join({name.partition('.')[0] for name in sys.modules}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "numba", "scipy", "matplotlib", "typer", "rich", "ray"} & set(found)


def test_public_functions_say_what_they_take_and_return():
    for name in kilt.__all__:
        found = getattr(kilt, name)
        if callable(found) and not isinstance(found, type):
            found = kilt._public(name)  # `kilt.solve` and `kilt.games` are packages too
            assert "Parameters\n" in found.__doc__ or not inspect.signature(found).parameters, name
            assert "Returns\n" in found.__doc__ or inspect.signature(found).return_annotation == "None", name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, tmp_path, monkeypatch, capsys):
    """In this process, so that kernels are compiled once; each says something."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(path.parent)
    module = importlib.import_module(path.stem)
    module.main(*([tmp_path / "run"] if path.stem == "agent_from_configuration" else []))
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_a_game_is_solved_and_heard_of(tmp_path):
    heard = []
    solution = kilt.solve("kuhn", "cfr+", iterations=50, folder=tmp_path / "run", on_step=heard.append)
    assert [step.iterations for step in heard] == [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 50]
    assert solution.steps == tuple(heard) and solution.iterations == 50
    assert (
        solution.exploitability
        == kilt.exploitability(solution, "kuhn")
        == kilt.exploitability(solution.strategy, "kuhn")
    )
    assert solution.exploitability == kilt.exploitability(tmp_path / "run")
    assert solution.exploitability_mbb == 1000 * solution.exploitability
    assert kilt.resume_run(tmp_path / "run", iterations=60).finish().iterations == 60


def test_larger_games_are_solved_with_vectors_of_hands():
    solution = kilt.solve("leduc", "cfr+", iterations=10, threads=2)
    assert solution.infosets == () and solution.strategy.table.ndim == 2
    assert kilt.exploitability(solution.strategy, "leduc") == pytest.approx(solution.exploitability, rel=1e-12)
    with pytest.raises(GameError, match="was solved with vectors of hands"):
        solution["Ks||"]


def test_a_variant_of_ones_own():
    mine = kilt.solve("kuhn", kilt.Variant(1.5, 0, 2), iterations=30)
    assert np.array_equal(mine.table, kilt.solve("kuhn", "dcfr", iterations=30).table)
    mine = kilt.solve("leduc", kilt.Variant(1.5, 0, 2), iterations=10, threads=2)
    assert np.array_equal(mine.table, kilt.solve("leduc", "dcfr", iterations=10, threads=2).table)


@pytest.mark.parametrize("algorithm", ["pcs:cfr+", "cs:linear", "opcs:pcfr+", "spcs:dcfr"])
def test_sampling_with_any_variant(algorithm):
    """By name: what is drawn, and how regrets are discounted, go together in any way."""
    whole = kilt.solve("leduc", algorithm, iterations=300, seed=1)
    assert whole.exploitability < kilt.exploitability("uniform", "leduc") / 2
    with pytest.raises(RunError, match="unknown algorithm 'pcs:nonesuch'"):
        kilt.solve("leduc", "pcs:nonesuch")


def test_an_algorithm_of_ones_own():
    """Any object that answers `Solver`, made by an entry of one's own."""

    class Stubborn:
        """Plays uniformly, whatever happens."""

        def __init__(self, problem, seed):
            self.iterations, self.problem = 0, problem

        def step(self, iterations):
            self.iterations += iterations

        def average(self):
            return self.problem.uniform()

        current = average

        def state(self):
            return {"iterations": np.asarray(self.iterations)}

        def restore(self, state):
            self.iterations = int(state["iterations"])

    found = kilt.solve("leduc", kilt.Algorithm("stubborn", {"flat": Stubborn}), iterations=7)
    assert found.exploitability == kilt.exploitability("uniform", "leduc")
    with pytest.raises(RunError, match="stubborn needs a flat tree"):
        kilt.solve("holdem.2-4", kilt.Algorithm("stubborn", {"flat": Stubborn}), iterations=7)


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ({}, r"information set 'Qs\|\|' of kuhn has \{\}: give shares of c, r"),
        ({"Qs||": {"x": 1.0}}, "give shares of c, r"),
        ({"Qs||": {"c": -1.0, "r": 2.0}}, "give shares of c, r"),
    ],
)
def test_strategies_that_make_no_sense(strategy, words):
    with pytest.raises(GameError, match=words):
        kilt.exploitability(strategy, "kuhn")


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(PlayError, match="always-call plays many games: choose one"):
        kilt.exploitability("always-call")
    with pytest.raises(PlayError, match="do not determine the game: set `game`"):
        kilt.exploitability({})
    with pytest.raises(GameError, match="bluff-1-1 has no cards to abstract"):
        kilt.build_abstraction("lossless", "bluff-1-1")
    with pytest.raises(PlayError, match="the players play any poker game: give `game`"):
        kilt.play_match("always-call", "random", 10)
    with pytest.raises(PlayError, match="is not poker"):
        kilt.play_match("always-call", "random", 10, game=kilt.load_game("bluff-1-1"))


def test_a_run_from_python(tmp_path):
    """Begun, left in the middle, gone on with, judged and played; no word is printed."""
    heard = []
    run = kilt.start_run(CONFIG, tmp_path / "run", tick=lambda what, share: heard.append(what))
    assert heard  # the cards were built
    for step in run:
        if step.iterations == 4:
            break
    last = kilt.resume_run(tmp_path / "run").finish()
    assert last.iterations == 20
    whole = kilt.solve("leduc", "cfr+", iterations=20, threads=2)
    assert last.exploitability == pytest.approx(whole.exploitability, rel=1e-3)  # but for whole numbers of two bytes
    assert kilt.exploitability(tmp_path / "run") == pytest.approx(last.exploitability, rel=1e-12)
    match = kilt.play_match(tmp_path / "run", "always-call", 100)
    assert match.hands == 100 and kilt.win_rate(match).margin > 0
    assert (
        kilt.open_blueprint(tmp_path / "run").game.name == kilt.player(str(tmp_path / "run")).agent.game.name == "leduc"
    )


def test_two_runs_do_not_share_a_folder(tmp_path):
    """Whoever comes second leaves everything as it is."""
    kilt.start_run(CONFIG, tmp_path / "run")
    said = (tmp_path / "run" / "config.toml").read_bytes()
    with pytest.raises(RunError, match="is there already: resume the run"):
        kilt.start_run(CONFIG | {"cards": "PR-PHS-PHS 2-2"}, tmp_path / "run")
    assert (tmp_path / "run" / "config.toml").read_bytes() == said


def test_configurations_as_data_objects_and_files(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text('game = "leduc"\ncards = "lossless"\n[solver]\nalgorithm = "cfr+"\niterations = 20\n')
    plans = [kilt.plan_run(one) for one in (CONFIG, file, str(file), kilt.plan_run(CONFIG).config)]
    assert len({plan.config for plan in plans}) == 1


@pytest.mark.parametrize("algorithm", [name for name, entry in ALGORITHMS.items() if "abstract" in entry.make])
def test_estimates_are_those_of_the_algorithm(algorithm, tmp_path):
    """Memory that a solver's tables take is within what was foretold."""
    config = CONFIG | {"solver": {"algorithm": algorithm, "iterations": 1}}
    cost = kilt.plan_run(config).cost().part("solving")
    run = kilt.start_run(config, tmp_path / "run")
    state = run.solver.state()
    assert sum(table.nbytes for table in state.values()) <= cost.resident + 1000
    assert (cost.iteration is None) == (algorithm in {"cs", "opcs", "spcs", "pcs", "joint", "external"})


def test_memory_decides_before_anything_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 20_000.0)
    with pytest.raises(
        RunError, match=r"cfr\+ on leduc takes .* GB of memory, .*: use fewer buckets or bets, or external"
    ):
        kilt.start_run(CONFIG, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.warns(DeprecationWarning, match=r"RunPlan\.cost\(\)"):
        assert kilt.plan_run(CONFIG | {"solver": {}}).estimate().tables < 20_000


def test_errors_share_a_base():
    assert issubclass(RunError, KiltError) and kilt.KiltError is KiltError


def test_a_solution_plays_in_either_seat(tmp_path):
    """As an agent of the same strategy does; what cannot play is refused in a line."""
    solution = kilt.solve("leduc", iterations=100, folder=tmp_path / "run")
    exact = kilt.play_match(tmp_path / "run", "always-call", 200, seed=3)
    for game in ("leduc", None):
        match = kilt.play_match(solution, "always-call", 200, game=game, seed=3)
        assert match.results.tolist() == exact.results.tolist()
        assert match.players == (str(tmp_path / "run"), "always-call")
        back = kilt.play_match("always-call", solution, 200, game=game, seed=3)
        assert kilt.win_rate(back).mean == -kilt.win_rate(match).mean
    both = kilt.play_match(solution, solution, 100, seed=3)
    assert not both.results.any()
    alone = kilt.solve("leduc", iterations=100)  # without a folder
    assert (in_memory := kilt.play_match(alone, "always-call", 200, seed=3)).players[0] == "solution"
    assert in_memory.results.tolist() == exact.results.tolist() and in_memory.win_rate == kilt.win_rate(exact)
    vectors = kilt.solve("leduc", iterations=100, threads=2)
    assert kilt.play_match(vectors, "always-call", 200, seed=3).results.mean() == pytest.approx(match.results.mean())
    file = tmp_path / "own.game"
    file.write_text(str(kilt.load_game("leduc").rules))
    assert kilt.play_match(kilt.solve(str(file), iterations=10), "random", 20).hands == 20
    with pytest.raises(PlayError, match="but this is kuhn: use the game it was made for"):
        kilt.play_match(solution, "always-call", 20, game="kuhn")
    with pytest.raises(PlayError, match="leduc-stud is stud"):
        kilt.play_match(kilt.solve("leduc-stud", iterations=1), "always-call", 20)


def test_a_run_plays_once_it_has_a_strategy(tmp_path):
    run = kilt.start_run(CONFIG | {"agent": {"post": "purification"}}, tmp_path / "run")
    with pytest.raises(PlayError, match="has no saved strategy yet: use a folder, and finish the run"):
        kilt.play_match(run, "always-call", 20)
    run.finish()
    match = kilt.play_match(run, "always-call", 20)
    assert match.results.tolist() == kilt.play_match(tmp_path / "run", "always-call", 20).results.tolist()
    assert kilt.play_match("always-call", run, 20).players == ("always-call", str(tmp_path / "run"))
    with pytest.raises(PlayError, match=r"int is no player: use the name of an agent, a run, .*act\(observation\)"):
        kilt.play_match(3, "always-call", 20, game="leduc")


def test_figures_say_which_strategy_they_are_about(tmp_path):
    """In Python: what is printed of solutions and runs, and a rule by name."""
    solution = kilt.solve("leduc", iterations=100, folder=tmp_path / "run")
    shown = f"average strategy: exploitability {solution.exploitability:.6g} chips per game"
    assert shown in repr(solution) and len(repr(solution)) < 140 + len(str(tmp_path))
    assert "current strategy: " in repr(kilt.solve("leduc", "cfr+current", iterations=10))
    assert "exact strategy: " in repr(kilt.solve("kuhn", "lp"))
    run = kilt.start_run(CONFIG, tmp_path / "abstract")
    assert repr(run) == f"Run('leduc', 'cfr+', folder={str(tmp_path / 'abstract')!r}, not begun)"
    # a rule is applied to a game in flat form as its agent applies it
    game, deck = kilt.load_game("leduc"), kilt.load_game("leduc").deck
    for rule in ("purification", "new-0.3-after-first"):
        agent = kilt.player(f"{tmp_path / 'run'}@{rule}").agent
        rows = {}
        for name in solution.infosets:
            hand, board, history = name.split("|")
            policy = agent.policy(game.replay(history), deck.cards(board.strip("/")))
            shares = policy.probabilities[:, deck.hole_index(deck.cards(hand))].tolist()
            rows[name] = dict(zip(policy.actions, shares, strict=True))
        judged = kilt.exploitability(f"{tmp_path / 'run'}@{rule}")
        assert judged == pytest.approx(kilt.exploitability(rows, "leduc")) and judged > 10 * solution.exploitability
