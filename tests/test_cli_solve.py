import json
import shutil
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from commands import answer, kilt, refused, start, wait_for_checkpoint
from kilt import artifact
from kilt.cli import app
from kilt.errors import ArtifactError
from kilt.games import load_game
from kilt.games.gamedef import shipped_definitions
from kilt.runs import budget as budgets
from kilt.runs import loop
from kilt.solve.forms import load_problem, stored_form
from kilt.solve.registry import ALGORITHMS

LONG = ("--game", "leduc", "--algorithm", "cfr+", "--iterations", "6000")
SHORT = shipped_definitions()["holdem.2-1"].replace("numRanks = 13", "numRanks = 5")  # 195 million states: no flat tree


def numbers(result):
    return {key: result[key] for key in ("exploitability", "current_exploitability", "value", "iterations")}


@pytest.fixture(scope="module")
def unbroken():
    return answer("solve", *LONG)


@pytest.mark.parametrize("command", [["solve"], ["evaluate"], ["evaluate", "exploitability"]])
def test_help(command):
    assert "Usage" in kilt(*command, "--help").stdout


def test_importing_the_commands_is_quick():
    code = "import sys, kilt.cli.solve, kilt.cli.evaluate; sys.exit('numpy' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_solve_json():
    result = answer("solve", "--game", "leduc", "--algorithm", "cfr+", "--iterations", 1000)
    assert result["iterations"] == 1000
    assert result["exploitability"] < 1e-3
    assert result["exploitability_mbb"] == pytest.approx(1000 * result["exploitability"])
    assert result["value"] == pytest.approx(-0.0856064, abs=1e-4)
    assert {"current_exploitability", "seconds"} < set(result)
    assert (result["game"], result["algorithm"], result["unit"]) == ("leduc", "cfr+", "chips per game")


def test_solve_table():
    shown = kilt("solve", "-g", "kuhn", "-n", 100).stdout
    assert all(word in shown for word in ("kuhn, cfr+", "exploitability", "mbb/g", "iterations", "100"))


def test_a_target_and_minutes():
    assert answer("solve", "-g", "kuhn", "--target", 0.01)["exploitability"] <= 0.01
    assert answer("solve", "-g", "kuhn", "--minutes", 0.01)["seconds"] >= 0.6


def test_the_default_budget_is_said(monkeypatch):
    monkeypatch.setattr("kilt.runs.spec.DEFAULT_MINUTES", 0.01)
    result = kilt("solve", "-g", "kuhn", "--json")
    assert json.loads(result.stdout)["seconds"] >= 0.6
    assert "no budget is given: stopping after 0.01 min" in result.stderr


def test_linear_programmes(tmp_path):
    result = answer("solve", "-g", "kuhn", "-a", "lp", "-o", tmp_path / "run")
    assert result["value"] == pytest.approx(-1 / 18, abs=1e-12)
    assert result["exploitability"] < 1e-9
    assert numbers(answer("solve", "--resume", tmp_path / "run")) == numbers(result)
    assert "one step" in refused("solve", "-g", "kuhn", "-a", "lp", "-n", 5)


def test_games_of_open_spiel():
    mine, theirs = (answer("solve", "-g", name, "-n", 100) for name in ("kuhn", "openspiel:kuhn_poker"))
    assert theirs["exploitability"] == pytest.approx(mine["exploitability"], abs=1e-12)
    assert "exploitability_mbb" not in theirs


def test_algorithms_are_listed():
    listed = answer("solve", "--algorithms")
    assert set(listed) == set(ALGORITHMS)
    assert (listed["cfr+"]["forms"], listed["cfr+"]["threads"]) == (["flat", "vector", "abstract"], True)
    assert (listed["lp"]["forms"], listed["lp"]["threads"]) == (["flat"], False)
    shown = kilt("solve", "--algorithms").stdout
    assert all(word in shown for word in (*listed, "small", "large", "abstract", "threads"))  # no name is broken


def test_what_a_run_leaves(tmp_path):
    run = tmp_path / "run"
    result = answer("solve", "-g", "kuhn", "-n", 300, "--seed", 3, "-o", run)
    assert {path.name for path in run.iterdir()} == {
        ".lock",
        "run.json",
        "log.jsonl",
        "checkpoint",
        "strategy",
        "convergence.png",
    }
    said = json.loads((run / "run.json").read_text())
    assert (said["game"], said["algorithm"], said["seed"]) == ("kuhn", "cfr+", 3)
    steps = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [step["iterations"] for step in steps][-3:] == [181, 256, 300]
    assert numbers(steps[-1]) == numbers(result)
    assert (run / "convergence.png").read_bytes().startswith(b"\x89PNG")
    again = answer("evaluate", "exploitability", run)
    assert again["exploitability"] == result["exploitability"]
    assert (again["value"], again["iterations"], again["game"]) == (result["value"], 300, "kuhn")


def test_killed_runs_resume_with_the_same_numbers(tmp_path, unbroken):
    run = tmp_path / "run"
    child = start("solve", *LONG, "--out", run)
    wait_for_checkpoint(run, child)
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL  # or else it was done before we looked
    assert not (run / "strategy").exists()
    assert "no strategy yet: resume it" in refused("evaluate", "exploitability", run)
    assert numbers(answer("solve", "--resume", run)) == numbers(unbroken)
    steps = [json.loads(line)["iterations"] for line in (run / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps))
    assert steps[-1] == 6000


@pytest.fixture
def short(tmp_path):
    """A game that is too large for a flat tree."""
    (tmp_path / "short.game").write_text(SHORT)
    return tmp_path / "short.game"


def test_large_games(tmp_path, short):
    run = tmp_path / "run"
    result = answer("solve", "-g", short, "-n", 20, "--threads", 2, "-o", run)
    assert (result["form"], result["iterations"]) == ("vector", 20)
    again = answer("evaluate", "exploitability", run, "--threads", 2)
    assert (again["exploitability"], again["value"]) == (result["exploitability"], result["value"])
    assert answer("evaluate", "exploitability", run)["exploitability"] == pytest.approx(result["exploitability"])
    more = answer("solve", "--resume", run, "-n", 30)  # threads may differ from session to session
    assert more["exploitability"] == pytest.approx(answer("solve", "-g", short, "-n", 30)["exploitability"])
    assert "this is cfr on" in refused("solve", "--resume", run, "-a", "cfr")


def test_killed_runs_of_large_games_resume_with_the_same_numbers(tmp_path, short):
    run, long = tmp_path / "run", ("-g", short, "-n", 100)
    child = start("solve", *long, "--out", run)
    wait_for_checkpoint(run, child)
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert numbers(answer("solve", "--resume", run)) == numbers(answer("solve", *long))


def test_small_games_in_vector_form(tmp_path):
    """A run that was begun with threads goes on in the same form without them."""
    run = tmp_path / "run"
    assert answer("solve", "-g", "leduc", "-n", 20, "--threads", 2, "-o", run)["form"] == "vector"
    result = answer("solve", "--resume", run, "-n", 40)
    assert (result["form"], result["iterations"]) == ("vector", 40)
    assert "this is external on leduc" in refused("solve", "--resume", run, "-a", "external")


@pytest.mark.parametrize("threads", [1, 2])
def test_best_responses_are_written_on_request(tmp_path, threads):
    to = tmp_path / "responses"
    uniform = ("evaluate", "exploitability", "-g", "leduc", "--agent", "uniform", "--threads", threads)
    won = answer(*uniform, "--out", to)["best_response_values"]
    problem = load_problem("leduc", form=stored_form(to), threads=threads)
    response, said = problem.load(to)
    assert [said["value_1"], said["value_2"]] == won
    assert set(response.ravel().tolist()) == {0.0, 1.0}
    assert f"{to} is there already" in refused(*uniform, "--out", to)


def test_ctrl_c_writes_a_checkpoint_and_says_how_to_resume(tmp_path, unbroken):
    run = tmp_path / "my run"
    child = start("solve", *LONG, "--out", run)
    wait_for_checkpoint(run, child)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert f"kilt solve '{run}'" in err
    assert "Traceback" not in err
    assert answer("evaluate", "exploitability", run)["iterations"] < 6000
    assert numbers(answer("solve", "--resume", run)) == numbers(unbroken)


def test_ctrl_c_without_a_folder_makes_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kilt-kuhn-cfr").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(budgets, "time_left", lambda *args: signal.raise_signal(signal.SIGINT))  # at the first tick
        patch.setattr(loop, "CHUNK", 1e-9)
        result = kilt("solve", "-g", "kuhn", "-a", "cfr", "-n", 300, code=130)
    assert result.stdout == ""
    assert "kilt solve kilt-kuhn-cfr-2" in result.stderr
    assert (
        json.loads((tmp_path / "kilt-kuhn-cfr-2" / "checkpoint" / "manifest.json").read_text())["figures"]["iterations"]
        == 1
    )
    assert numbers(answer("solve", "--resume", "kilt-kuhn-cfr-2")) == numbers(
        answer("solve", "-g", "kuhn", "-a", "cfr", "-n", 300)
    )


def test_a_second_ctrl_c_stops_at_once(tmp_path, monkeypatch):
    def impatient(*args):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(budgets, "time_left", impatient)
    before = signal.getsignal(signal.SIGINT)
    kilt("solve", "-g", "kuhn", "-n", 300, "-o", tmp_path / "run", code=130)
    assert signal.getsignal(signal.SIGINT) is before
    assert "has no strategy yet" in refused("evaluate", "exploitability", tmp_path / "run")


def test_a_resumed_run_can_be_given_another_budget(tmp_path):
    run = tmp_path / "run"
    kilt("solve", "-g", "kuhn", "-n", 50, "-o", run)
    done = kilt("solve", "--resume", run)
    assert "budget of 50 iterations is spent already" in done.stderr
    assert answer("solve", "--resume", run, "-n", 120)["iterations"] == 120
    assert answer("solve", "--resume", run)["iterations"] == 120


def test_game_files_are_found_from_anywhere(tmp_path, monkeypatch):
    rules = (load_game("kuhn").rules, load_game("leduc").rules)
    (tmp_path / "here").mkdir()
    file = tmp_path / "here" / "my.game"
    file.write_text(str(rules[0]))
    monkeypatch.chdir(tmp_path / "here")
    first = answer("solve", "-g", "my.game", "-n", 40, "-o", "run")
    monkeypatch.chdir(tmp_path)
    assert numbers(answer("solve", "--resume", "here/run")) == numbers(first)
    file.write_text(str(rules[1]))
    for command in (["solve", "--resume", "here/run"], ["evaluate", "exploitability", "here/run"]):
        words = refused(*command)
        assert all(load_problem(name).fingerprint in words for name in ("kuhn", "leduc")), words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", 5], ["no game", "kilt game list"]),
        (["-g", "nonesuch", "-n", 5], ["nonesuch", "kuhn"]),
        (["-g", "openspiel:nonesuch", "-n", 5], ["nonesuch", "open_spiel"]),
        (["-g", "kuhn", "-a", "nonesuch"], ["nonesuch", "cfr+", "lp"]),
        (["-g", "holdem.limit.2p", "-n", 5], ["3.16e+17 states", "20,000,000", "of memory", "cfr+disk", "smaller"]),
        (["-g", "holdem.2-4", "-a", "external"], ["external needs", "1.97e+12 states", "use one of cfr, cfr+"]),
        (["-g", "openspiel:kuhn_poker", "--threads", 2], ["public tree", "use 1 thread"]),
        (["kuhn", "--time", "5"], ["'5'", "90s, 10min or 2h"]),
        (["kuhn", "--target", "little"], ["little", "1mbb"]),
        (["-g", "kuhn", "-n", 0], ["0 iterations", "above 0"]),
        (["-g", "kuhn", "--minutes", "nan"], ["nan", "above 0"]),
        (["-g", "kuhn", "--target", "1e-30"], ["1e-30", "cannot be measured", "1.2e-11"]),
        (["-g", "kuhn", "-n", 5, "--threads", 0], ["`threads` in [solver] is 0", "1 or more"]),
        (["-g", "kuhn", "-a", "lp", "--threads", 2], ["lp runs in 1 thread", "one of cfr, cfr+"]),
        (["--resume", "RUN", "--threads", 2], ["1 thread for a flat tree", "use 1 thread"]),
        (["RUN", "--out", "RUN"], ["is a run", "leave out --out"]),
        (["-g", "kuhn", "-n", 5, "--out", "RUN"], ["is there already", "`kilt solve RUN` resumes it"]),
        (["-g", "kuhn", "-n", 5, "--out", "."], ["is no run", "another folder"]),
        (["nonesuch"], ["nonesuch", "kuhn"]),
        (["."], ["no run"]),
        (["--resume", "RUN", "-a", "cfr"], ["cfr+ on kuhn", "this is cfr on kuhn", "give cfr+ as `algorithm`"]),
        (["--resume", "RUN", "--seed", 4], ["seed 0", "seed 4", "give 0 as `seed`"]),
    ],
)
def test_mistakes_in_solve(finished, monkeypatch, arguments, words):
    monkeypatch.chdir(finished)
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 16e9)  # what is advised depends on it
    line = refused("solve", *arguments)
    assert all(word in line for word in words), line
    assert [path.name for path in finished.iterdir()] == ["RUN"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["a run", "--game"]),
        (["RUN", "--game", "kuhn"], ["knows its game", "leave out --game"]),
        (["uniform"], ["uniform plays many games"]),
        (["--game", "kuhn"], ["nothing to evaluate", "uniform"]),
        (["--game", "kuhn", "--agent", "nonesuch"], ["nonesuch", "uniform"]),
        (["."], ["neither a run"]),
        (["RUN", "--threads", 2], ["judging a strategy needs 1 thread", "use 1 thread"]),
        (["--game", "holdem.limit.2p", "--agent", "uniform"], ["judging a strategy", "of memory", "smaller game"]),
    ],
)
def test_mistakes_in_evaluate(finished, monkeypatch, arguments, words):
    monkeypatch.chdir(finished)
    line = refused("evaluate", "exploitability", *arguments)
    assert all(word in line for word in words), line


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a run in it."""
    folder = tmp_path_factory.mktemp("finished")
    kilt("solve", "-g", "kuhn", "-n", 20, "-o", folder / "RUN")
    return folder


def test_mistakes_are_told_in_one_line():
    child = start("solve", "kuhn", "-a", "[nonesuch]")
    out, err = child.communicate()
    assert (child.returncode, out) == (2, "")
    assert err.startswith("error: unknown algorithm '[nonesuch]'")
    assert len(err.strip().splitlines()) == 1


def test_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (10**9, 10**9 - 10_000, 10_000))
    assert "disk has 0.0 MB left" in refused("solve", "-g", "kuhn", "-n", 5, "-o", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_disk_that_fills_up_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    run = tmp_path / "run"
    kilt("solve", "-g", "kuhn", "-n", 50, "-o", run)
    with monkeypatch.context() as patch:
        patch.setattr(artifact, "SPARE", 10**18)
        with pytest.raises(ArtifactError, match="make room"):
            CliRunner().invoke(app, ["solve", "--resume", str(run), "-n", "90"], catch_exceptions=False)
    assert numbers(answer("solve", "--resume", run)) == numbers(answer("solve", "-g", "kuhn", "-n", 90))


@pytest.mark.parametrize("threads", [1, 2])
def test_evaluate_uniform(threads):
    uniform = ("--game", "leduc", "--agent", "uniform", "--threads", threads)
    result = answer("evaluate", "exploitability", *uniform)
    assert 2 * result["exploitability"] == pytest.approx(4.7472222)
    assert sum(result["best_response_values"]) == pytest.approx(2 * result["exploitability"])
    assert "mbb/g" in kilt("evaluate", "exploitability", "-g", "leduc", "--agent", "uniform").stdout
