"""Published tables and figures on small games, by the code that does them on large ones."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt import artifact, compiling
from kilt.abstraction.buckets import CardAbstraction
from kilt.abstraction.percentile import cut_points
from kilt.cards.deck import FULL
from kilt.errors import AbstractionError, ArtifactError, GameError, RunError
from kilt.evaluate import flops
from kilt.evaluate.evaluator import VectorEvaluator, evaluator_for
from kilt.evaluate.stats import Estimate
from kilt.games import load_game
from kilt.games.gamedef import shipped_definitions
from kilt.players.known_tables import agent_profile
from kilt.players.profile import StrategyRef
from kilt.solve import forms
from kilt.solve.cfr import Cfr
from kilt.strategy.fixed import AGENTS, action_chances, flat_table, public_table
from kilt.strategy.model import DecisionLayout
from kilt.strategy.postprocess import rule_named
from kilt.tree.best_response import response_values
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame
from kilt_lab import claims, menu
from kilt_lab.cells import CellBudget, changes
from kilt_lab.claims import OPEN, Claim, Row
from kilt_lab.experiment import Stopped
from kilt_lab.menu import EXPERIMENTS
from kilt_lab.papers.brown15 import post_processing, sampling
from kilt_lab.papers.johanson16 import chapter_3, chapter_5, chapter_6, chapter_7, chapter_8
from kilt_lab.papers.johanson16.chapter_2 import PAPER_2_1, responses_to
from kilt_lab.papers.more import differences, post_processing_safety
from kilt_lab.papers.schmid15 import flop_classes
from kilt_lab.pieces import convergence, logs
from kilt_lab.pieces.agents import with_spare_seeds
from kilt_lab.runner import run
from test_lab_digits import small
from written_out import distribution, tree_of

LIMIT = """GAMEDEF
limit
numPlayers = 2
numRounds = 3
blind = 10 5
raiseSize = 10 10 20
firstPlayer = 2 1 1
maxRaises = {most}
numSuits = 2
numRanks = {ranks}
numHoleCards = {hole}
numBoardCards = 0 1 1
END GAMEDEF
"""
SHAPES = {
    "one hole card": {"ranks": 4, "hole": 1, "most": "1 1 1"},
    "two hole cards": {"ranks": 3, "hole": 2, "most": "2 1 2"},
}

# The same commands in a process of their own, on a small game, each part of which takes a while.
MAIN = """
import sys, time
import kilt.cli, kilt.evaluate.flops as flops
flops.CHECKPOINT_SECONDS, wait, part = 0.0, float(sys.argv.pop(1)), flops.FlopResponses.compute_flop
flops.FlopResponses.time_left = lambda self: 1.0
flops.FlopResponses.compute_flop = lambda self, number: (time.sleep(wait if number else 0.0), part(self, number))[1]
kilt.cli.main()
"""


class Quiet:
    """Nobody before the screen; may stop after so many looks."""

    def __init__(self, looks=None):
        self.looks, self.said = looks, []

    def say(self, text, takes=None):
        self.said.append(text)

    def show(self, what, done, left):
        assert 0 <= done <= 1
        assert left is None or left >= 0

    def stopped(self):
        self.looks = None if self.looks is None else self.looks - 1
        return self.looks is not None and self.looks < 0


@pytest.fixture(scope="module", params=SHAPES)
def short(request, tmp_path_factory):
    """A limit game like hold'em that is small enough for a flat tree."""
    return load_game(written(tmp_path_factory.mktemp("short") / "short.game", request.param))


@pytest.fixture(scope="module")
def flat(short):
    return flat_tree(short)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A small game for the table, and an empty folder."""
    monkeypatch.setattr(flops, "MEASURING_SECONDS", 0.0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return written(tmp_path / "tiny.game", "one hole card")


def written(path, shape):
    path.write_text(LIMIT.format(**SHAPES[shape]))
    return path


# Fixed agents


@pytest.mark.parametrize(
    ("agent", "facing", "free", "capped"),
    [
        ("always-fold", [1, 0, 0], [1, 0], [1, 0]),
        ("always-call", [0, 1, 0], [1, 0], [0, 1]),
        ("always-raise", [0, 0, 1], [0, 1], [0, 1]),
        ("call-or-raise", [0, 0.5, 0.5], [0.5, 0.5], [0, 1]),
    ],
)
def test_what_agents_do(agent, facing, free, capped):
    for actions, wanted in ((("f", "c", "r"), facing), (("c", "r"), free), (("f", "c"), capped)):
        assert action_chances(agent, actions).tolist() == wanted


def test_agents_that_do_not_fit():
    with pytest.raises(GameError, match=r"unknown agent 'always-win': use one of always-fold"):
        action_chances("always-win", ("c", "r"))
    with pytest.raises(GameError, match="plays poker"):
        action_chances("always-call", ("1-1", "1-2"))
    with pytest.raises(GameError, match="bluff-1-1 has no bets"):
        public_table(VectorGame(load_game("bluff-1-1")), "always-call")


@pytest.mark.parametrize("name", ["leduc", "bluff-1-1"])
def test_decisions_of_a_public_tree(name):
    game = VectorGame(load_game(name), by_board=False)
    taken = np.zeros(game.shape[0], dtype=int)
    for r, row, position in game.decisions():
        first = game.tree.table_start[r] + row
        taken[first : first + len(position.actions())] += 1
    assert np.all(taken == 1)


@pytest.mark.parametrize("agent", AGENTS)
def test_tables_with_and_without_boards(agent):
    leduc = load_game("leduc")
    tree, by_board, shared = tree_of("leduc"), VectorGame(leduc), VectorGame(leduc, by_board=False)
    wanted = response_values(tree, flat_table(tree, agent))
    for game in (by_board, shared):
        assert game.response_values(public_table(game, agent)) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("agent", AGENTS)
def test_agents_in_any_form(agent):
    (one, flat), (two, vector) = (agent_profile("leduc", agent, threads) for threads in (1, 2))
    assert (one.form, two.form) == ("flat", "vector")
    assert evaluator_for(one).evaluate(flat) == pytest.approx(evaluator_for(two).evaluate(vector), abs=1e-9)


def test_agents_need_no_tables_by_board(monkeypatch, tmp_path):
    """Where those do not fit into memory, agents that look at no board can be judged all the same."""
    file = tmp_path / "large.game"
    file.write_text(shipped_definitions()["holdem.2-1"].replace("numRanks = 13", "numRanks = 4"))
    monkeypatch.setattr(forms.flat, "MOST_NODES", 100)
    wanted = answer("evaluate", "exploitability", "--game", file, "--agent", "always-call")
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 0.0)
    assert answer("evaluate", "exploitability", "--game", file, "--agent", "always-call") == wanted
    assert "of memory" in refused("evaluate", "exploitability", "--game", file, "--agent", "uniform")


def test_agents_in_no_limit_games(tmp_path):
    file = tmp_path / "nolimit.game"
    rules = "nolimit\nnumPlayers = 2\nnumRounds = 1\nstack = 4 4\nblind = 1 1\nfirstPlayer = 1\n"
    cards = "numSuits = 1\nnumRanks = 3\nnumHoleCards = 1\nnumBoardCards = 0\n"
    file.write_text(f"GAMEDEF\n{rules}{cards}END GAMEDEF\n")
    raising = answer("evaluate", "exploitability", "--game", file, "--agent", "always-raise")
    assert raising["exploitability"] == pytest.approx(1.0)  # +4 with the ace, 0 with the king, −1 with the queen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--game", "leduc", "--agent", "nonesuch"], ["nonesuch", "uniform", "always-fold"]),
        (["--game", "bluff-1-1", "--agent", "always-call"], ["hold'em family", "bluff-1-1", "uniform"]),
        (["--game", "openspiel:kuhn_poker", "--agent", "always-call"], ["hold'em family", "uniform"]),
        (["--game", "holdem.nolimit.2p", "--agent", "always-call"], ["betting tree", "a menu of bets"]),
        (["--game", "nonesuch", "--agent", "always-call"], ["nonesuch", "leduc"]),
    ],
)
def test_mistakes_with_agents(arguments, words):
    line = refused("evaluate", "exploitability", *arguments)
    assert all(word in line for word in words), line


# Table 2.1


@pytest.mark.parametrize("agent", PAPER_2_1)
def test_best_responses_in_parts(short, flat, agent, tmp_path):
    """As on the flat tree ([Johanson16 §§2.3, 2.4]: both are exact)."""
    responses = responses_to(VectorGame(short, threads=2, by_board=False), agent, tmp_path)
    assert responses.time_left() > 0
    responses.compute(Quiet())
    assert (responses.complete, responses.share_done) == (True, 1.0)
    assert responses.response_values() == pytest.approx(response_values(flat, flat_table(flat, agent)), abs=1e-9)


def test_parts_are_weighed_by_their_last_boards(short):
    game = VectorGame(short, by_board=False)
    boards = flops.count_rivers(game)
    assert boards.sum() == np.diff(game.tree.board_start)[-1]
    assert len(boards) == np.diff(game.tree.board_start)[1]


def test_stopped_parts_go_on_with_the_same_numbers(short, tmp_path):
    one, two = (VectorGame(short, threads=threads, by_board=False) for threads in (1, 2))
    whole = responses_to(two, "call-or-raise", tmp_path / "whole")
    whole.compute(Quiet())
    seen = []
    for game in (one, one, two):
        broken = responses_to(game, "call-or-raise", tmp_path / "broken")
        broken.compute(Quiet(looks=1))
        seen.append(broken.done)
    assert 0 < seen[0] < seen[1] < len(whole.work)
    last = responses_to(two, "call-or-raise", tmp_path / "broken")
    last.compute(Quiet())
    assert np.array_equal(last.values, whole.values)
    assert last.response_values() == whole.response_values()


def test_the_table(tiny):
    """All rows, or those that are asked for; a deck of its own keeps the paper's numbers away from the difference."""
    table = "reproduce", "table-2.1", "--game", tiny
    (asked,) = answer(*table, "--only", "call-or-raise")["rows"]
    result = kilt(*table, "--threads", 2, "--json")
    rows = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in rows] == ["always-fold", "always-call", "always-raise", "call-or-raise"]
    assert rows[-1] == asked  # what is done is done
    assert "1 cells were measured before" in result.stderr and "3 are missing" in result.stderr
    assert "always-raise, 0% done, kept in kilt-table-2.1/work-" in result.stderr
    game = VectorGame(load_game(tiny))
    for row in rows:
        assert row["ours"] == pytest.approx(100 * game.exploitability(public_table(game, row["name"])), abs=1e-6)
        assert (row["paper"], row["paper_elsewhere"], row["unit"]) == (None, PAPER_2_1[row["name"]], "mbb/g")
        assert sum(row["seats"]) / 2 == row["ours"]
    assert answer(*table)["rows"] == rows
    assert all(word in kilt(*table).stdout for word in ("paper", "ours", "difference", "mbb/g"))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_interrupted_tables_go_on(tiny, how):
    """In the middle of a cell: flops that were walked are not walked again."""
    child = begin(tiny, 0.3, done=1)
    child.send_signal(how)
    out, err = child.communicate(timeout=60)
    if how == signal.SIGINT:
        assert child.returncode == 130
        assert "measured cells are in my table: the same command resumes" in err
    else:
        assert out == ""
    (kept_in,) = child.kept()
    kept = artifact.read(kept_in, flops.KIND).figures["done"]
    assert 0 < kept < 8
    table = "reproduce", "table-2.1", "--game", tiny, "--only", "always-raise", "--out"
    again = kilt(*table, "my table", "--json")
    assert "always-raise, 0% done" not in again.stderr
    (found,) = json.loads(again.stdout)["rows"]
    (unbroken,) = answer(*table, "other")["rows"]
    assert found["seats"] == unbroken["seats"]


def test_a_second_ctrl_c_leaves_at_once(tiny):
    child = begin(tiny, 300)
    for _ in range(20):  # a second one that comes before the first was noticed is none
        child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=3)  # while it leaves, another one would kill it
            break
    out, err = child.communicate(timeout=10)
    assert (child.returncode, out) == (130, "")
    assert "the same command resumes" in err
    assert child.kept()


class Child(subprocess.Popen):
    """A command in a process of its own, which keeps best responses."""

    def kept(self):
        return [path for path in self.folder.glob("my table/work-*/always-raise") if artifact.exists(path)]


def begin(game, wait, done=0):
    """Start a row in a process of its own, and wait until it is kept that some parts are done."""
    command = [sys.executable, "-c", MAIN, wait]
    command += ["reproduce", "table-2.1", "--game", game, "--only", "always-raise", "--threads", 1, "--out", "my table"]
    Child.folder = game.parent / "here"
    child = Child(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while True:
        with suppress(ArtifactError, ValueError):  # it is not there yet, or being replaced
            (kept,) = child.kept()
            if artifact.read(kept, flops.KIND).figures["done"] >= done:
                break
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return child


def test_folders_of_something_else(short, tmp_path):
    """Responses to another agent, or in another game, are not gone on with."""
    game = VectorGame(short, by_board=False)
    responses_to(game, "always-fold", tmp_path / "mine").compute(Quiet())
    (tmp_path / "theirs").mkdir()
    os.renames(tmp_path / "mine" / "always-fold", tmp_path / "theirs" / "always-call")
    with pytest.raises(RunError, match=r"best responses to always-fold.*another folder"):
        responses_to(game, "always-call", tmp_path / "theirs")
    other = VectorGame(load_game("leduc"), by_board=False)
    os.renames(tmp_path / "theirs" / "always-call", tmp_path / "mine" / "always-fold")
    with pytest.raises(RunError, match="this is always-fold in the game"):
        responses_to(other, "always-fold", tmp_path / "mine")
    (tmp_path / "always-fold").mkdir()
    with pytest.raises((ArtifactError, RunError), match="holds no best responses"):
        responses_to(game, "always-fold", tmp_path)


def test_two_processes_at_one_row(tmp_path):
    with (
        artifact.exclusive_access(tmp_path / "row"),
        pytest.raises(ArtifactError, match="another process is at work on"),
    ):
        artifact.exclusive_access(tmp_path / "row").__enter__()
    with artifact.exclusive_access(tmp_path / "row"):
        pass


# Figures 3.2 and 3.5


@pytest.mark.parametrize(
    ("figure", "game", "iterations", "unit"),
    [("figure-3.2", "leduc", 400, "mbb/g"), ("figure-3.5", "bluff-1-1", 50, "chips per game")],
)
def test_curves_fall(tmp_path, figure, game, iterations, unit):
    experiment = EXPERIMENTS[figure]
    setting = experiment.setting({}, {"game": game, "budget": CellBudget.of(iterations=iterations), "runs": 1})
    found = run(experiment, setting, tmp_path, Quiet())
    assert found.picture.read_bytes().startswith(b"\x89PNG")
    assert [row.name for row in found.rows] == [row.name for row in experiment.rows]
    for row in found.rows:
        curve = row.more["curve"]
        assert (row.unit, row.paper, row.more["iterations"]) == (unit, None, iterations)
        assert (row.margin is None) == (row.name == "cfr+" or (row.name == "pcs" and game == "bluff-1-1"))  # exact
        assert [step["iterations"] for step in curve[:4]] == [1, 2, 3, 4]
        assert all(one["seconds"] < other["seconds"] for one, other in pairwise(curve))
        assert row.ours == curve[-1]["exploitability"] < curve[0]["exploitability"]
        if row.name in ("pcs", "cfr+"):
            assert row.ours < curve[0]["exploitability"] / 5
    ours = {row.name: row.ours for row in found.rows}
    assert ours["cfr+"] < ours["pcs"] < ours["cs"]


def test_time_is_that_of_solving(monkeypatch):
    """Where an iteration takes ten seconds and a measurement a thousand, a hundred seconds are ten iterations."""
    now = 0.0

    def passing(method, seconds):
        def slow(self, argument):
            nonlocal now
            now += seconds(argument)
            return method(self, argument)

        return slow

    problem = forms.load_problem("leduc", "cfr+", form="vector")
    monkeypatch.setattr(convergence, "clock_of", lambda device: lambda: now)
    monkeypatch.setattr(Cfr, "step", passing(Cfr.step, lambda iterations: 10.0 * iterations))
    evaluate = passing(VectorEvaluator.evaluate, lambda table: 1000.0)
    monkeypatch.setattr(VectorEvaluator, "evaluate", evaluate)
    for seconds, measured in ((100, [1, 2, 3, 4, 6, 8, 10]), (50, [1, 5])):
        steps = convergence.converge(problem, "cfr+", CellBudget.of(seconds=seconds), Quiet())
        assert [step.iterations for step in steps] == measured
        assert [step.seconds for step in steps] == [10 * iterations for iterations in measured]


def test_the_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for figure, game in (("figure-3.2", "leduc"), ("figure-3.5", "bluff-1-1")):
        result = answer("reproduce", figure, "--game", game, "--minutes", 0.002, "--runs", 1)
        assert [row["name"] for row in result["rows"]] == [row.name for row in EXPERIMENTS[figure].rows]
        assert result["picture"] == f"kilt-{figure}/figure.png"
        assert (tmp_path / result["picture"]).read_bytes().startswith(b"\x89PNG")
        assert game in result["what"]
    (row,) = answer(
        "reproduce", "figure-3.5", "-g", "bluff-1-1", "-m", 0.002, "--only", "cfr+", "-o", "one", "--runs", 1
    )["rows"]
    assert (row["name"], row["paper"]) == ("cfr+", None)
    assert (tmp_path / "one" / "figure.png").exists()


def test_a_solver_that_is_stopped_is_no_cell():
    problem = forms.load_problem("leduc", "pcs", form="vector")
    with pytest.raises(Stopped):
        convergence.converge(problem, "pcs", CellBudget.of(iterations=200), Quiet(looks=3))


def test_what_is_won_from_a_fixed_opponent(tmp_path):
    """A player wins what the game is worth where each seat has its player's rows; PCS draws nothing in Kuhn."""
    game, draws = VectorGame(load_game("leduc")), np.random.default_rng(5)
    one, other = (chapter_3.Sight(game, game.symmetrise(draws.random(game.shape))) for _ in range(2))
    layout = DecisionLayout.of_vectors(game)
    first = np.repeat(layout.actor == 0, layout.actions)[:, None]
    seats = [np.where(first, mine.table, theirs.table) for mine, theirs in ((one, other), (other, one))]
    worth = [game.expected_value(table) for table in seats]
    assert chapter_3.won_from(game, one, other) == pytest.approx((worth[0] - worth[1]) / 2)

    experiment = EXPERIMENTS["figure-3.6"]
    setting = experiment.setting({}, {"game": "kuhn", "budget": CellBudget.of(iterations=300), "runs": 3})
    found = run(experiment, setting, tmp_path, Quiet())
    assert [row.name for row in found.rows] == [row.name for row in experiment.rows]
    assert [len(row.runs) for row in found.rows] == 3 * [3] + 3 * [0]
    assert 0 <= found.rows[0].more["opponent_exploitability"] < 0.1
    assert all(row.ours < row.more["opponent_exploitability"] for row in found.rows)
    assert found.picture and found.picture.stat().st_size > 10_000


def test_matches_of_abstractions(tmp_path, monkeypatch):
    """Table 5.3 of [Johanson16]: what all agents win adds up to 0, and claims about others are not decided."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    experiment, setting = small("table-5.3-small", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "here", Quiet())
    won = np.array([row.runs for row in found.rows])
    assert won.sum(axis=0) == pytest.approx(np.zeros(2), abs=1e-9) and (won[:, 0] != won[:, 1]).all()
    names = {row.name for row in found.rows}
    for row in found.rows:
        assert row.more["against"].keys() == names - {row.name}
        assert row.ours == pytest.approx(np.mean([*row.more["against"].values()])) and row.paper is None
    assert {verdict.verdict for verdict in found.verdicts} == {OPEN}
    assert sum(mean for mean in chapter_5.MEANS.values() if mean is not None) == pytest.approx(23.3)


def test_spare_seeds():
    """Clusters that cannot be cut further are drawn anew; what no seed can do is refused as ever."""
    watcher, made = Quiet(), []

    def cut(seed):
        made.append(seed)
        cut_points(np.ones(2), 3 if len(made) < 3 else 2)
        return seed

    assert with_spare_seeds(cut, 4, watcher) == 2004 and made == [4, 1004, 2004]
    assert [line.partition(":")[0] for line in watcher.said] == [
        "seed 4 is replaced by another one",
        "seed 1004 is replaced by another one",
    ]
    with pytest.raises(AbstractionError, match="3 buckets need as many different values, but there are only 2"):
        with_spare_seeds(lambda seed: cut_points(np.ones(2), 3), 0, watcher)


# The command


def test_the_menu():
    listed = answer("reproduce")
    assert set(listed) == set(EXPERIMENTS)
    assert listed["table-2.1"]["rows"] == list(PAPER_2_1)
    assert listed["figure-3.2"]["settings"] == ["2-1", "2-4", "2-4-brief"]
    lines = kilt("reproduce").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)  # one line for each
    shown = kilt("reproduce", "--claims").stdout
    assert all(name in shown for name in EXPERIMENTS) and "· " in shown
    assert "prints its claims anyway" in refused("reproduce", "table-4.1", "--claims")
    assert "Usage" in kilt("reproduce", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonesuch"], ["nonesuch", "table-2.1, figure-2.5, table-2.3"]),
        (["--minutes", 2], ["no name", "lists"]),
        (["table-2.1", "--only", "nonesuch"], ["nonesuch", "always-fold, always-call"]),
        (["table-2.1", "--minutes", 2], ["--seconds has no meaning", "use --only, --game, --device, --threads"]),
        (["table-2.1", "--threads", 0], ["threads is 0", "1 or more"]),
        (["figure-3.2", "--threads", 2], ["--threads has no meaning", "--game, --minutes, --iterations, --runs"]),
        (["figure-3.2", "--only", "lp"], ["lp", "cs, opcs, spcs, pcs, cfr+"]),
        (["figure-3.2", "--minutes", 0], ["--minutes is 0", "above 0"]),
        (["figure-3.2", "--minutes", "nan"], ["nan", "above 0"]),
        (["figure-3.2", "--minutes", 1, "--iterations", 5], ["--minutes and --iterations", "one budget"]),
        (["figure-3.2", "--nodes", 5], ["--nodes has no meaning", "--seconds or --iterations"]),
        (["figure-3.2", "--runs", 0], ["--runs is 0", "an interval needs 3"]),
        (["figure-3.2", "--jobs", -1], ["--jobs is -1", "0 for one per core"]),
        (["figure-3.2", "--setting", "3-1"], ["no setting '3-1'", "2-1, 2-4"]),
        (["figure-3.2", "--setting", "2-4", "--quick"], ["--quick and --setting"]),
        (["figure-3.2", "--game", "nonesuch"], ["nonesuch", "leduc"]),
        (["figure-3.2", "--game", "openspiel:kuhn_poker"], ["public tree"]),
        (["figure-3.5", "--out", "picture.png"], ["picture.png", "is not a folder"]),
    ],
)
def test_mistakes(tiny, tmp_path, arguments, words):
    line = refused("reproduce", *arguments)
    assert all(word in line for word in words), line
    assert not any((tmp_path / "here").iterdir())


def test_cfr_br_with_few_buckets(tmp_path, monkeypatch):
    """Rows of another game have no figure of the paper beside them, and decide nothing about it."""
    experiment, setting = small("figure-4.11", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "kept", Quiet())
    (row,) = found.rows
    assert (row.name, row.paper, row.margin) == ("PR-2", None, None)
    (folder,) = (tmp_path / "kept").glob("work-*/PR-2")
    evaluator, strategy, _ = StrategyRef.of_run(folder).load(1)
    assert 0 < row.ours == pytest.approx(evaluator.problem.mbb(evaluator.exploitability(strategy)))
    assert all(verdict.verdict == OPEN for verdict in found.verdicts)


@pytest.mark.parametrize("name", ["figure-4.11", "figure-9.4", "table-7.1"])
def test_runs_in_cells_count_cpu_time(tmp_path, monkeypatch, name):
    """A second of CPU time passes from one look at the clock to the next, so a budget of 30 s ends at once."""
    looks = count()
    monkeypatch.setattr(compiling, "cpu_clock", lambda: next(looks))
    experiment, setting = small(name, tmp_path, monkeypatch)
    setting = setting._replace(budget=CellBudget.of(seconds=30), runs=1)
    assert run(experiment, setting, tmp_path / "kept", Quiet()).complete
    assert next(looks) >= 30


def test_trunks_of_cfr_br(tmp_path, monkeypatch):
    """Trunks come to different strategies, and one that leaves no round is refused."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    experiment, setting = small("figure-11.1", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "kept", Quiet())
    assert found.picture and found.picture.stat().st_size > 10_000
    ends = {row.name: row for row in found.rows}
    assert ends["trunk 2, at first"].more["iterations"] < ends["trunk 2, in the end"].more["iterations"]
    assert ends["trunk 2, in the end"].runs != ends["trunk 3, in the end"].runs
    with pytest.raises(RunError, match="3 rounds, and a trunk of 3 leaves none"):
        experiment.setting({}, {"game": "holdem.3-1"})


def test_importing_the_command_is_quick():
    code = "import sys, kilt.cli, kilt_lab.cli.reproduce; sys.exit('numpy' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.slow
def test_answers_to_orange(tmp_path, monkeypatch):
    """A panel of figure 6.2 on Kuhn: no answer wins more from Orange than the bound, and there is a picture."""
    experiment, setting = small("figure-6.2", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "answers", Quiet())
    bound, *rows = [row for row in found.rows if row.unit == "mbb/g"]
    assert len(rows) == 18 and all(row.ours <= bound.ours + 1e-6 for row in rows)
    assert found.picture.stat().st_size > 10_000


def test_memory_of_trunks():
    rows = answer("reproduce", "table-4.1")["rows"]
    assert [(row["name"], round(row["ours"], 2)) for row in rows[1:]] == [
        ("2-round", 936.80),
        ("3-round", 362.55),
        ("cfr", 143.55),
    ]
    assert [row["bytes"] for row in answer("reproduce", "table-4.1", "--only", "1-round")["rows"]] == [14196]


@pytest.mark.parametrize("name", ["figure-5.2", "schmid-figure-2"])
def test_distances_of_the_papers(name, monkeypatch):
    """Three digits after the point, of which [Johanson16] rounds some up: 3.10049 is 3.101 there."""
    monkeypatch.setattr(chapter_5, "distribution", lambda board: distribution(tuple(board)))
    for row in answer("reproduce", name)["rows"]:
        assert row["ours"] == pytest.approx(row["paper"], abs=6e-4)


def test_distances_are_history_aware(monkeypatch):
    for row in answer("reproduce", "schmid-figure-2")["rows"]:
        assert row["ours"] == pytest.approx(row["paper"], abs=6e-4)


@pytest.mark.parametrize("name", ["figure-4.4", "table-5.4-small"])
def test_abstracted_players_on_a_small_game(name, tmp_path, monkeypatch):
    """Every way, on decks of 20 and 12 cards."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    experiment, setting = small(name, tmp_path, monkeypatch)
    brief = setting._replace(budget=CellBudget.of(seconds=0.3))
    found = run(experiment, brief, tmp_path / "here", Quiet())
    if name == "figure-4.4":
        assert found.picture.read_bytes()[:4] == b"\x89PNG"
        assert {row.more["information_sets"] for row in found.rows} == {4 * 5 + 12 * 25}
    else:
        assert [row.more["paper_elsewhere"] for row in found.rows] == [282.856, 84.039]
    assert found.title == f"{experiment.what} (here: {setting.game})"
    for row in found.rows:
        assert row.more["iterations"] >= 1
        assert row.ours > 0
        assert row.unit == "mbb/g"


def test_post_processing_on_a_small_game(tmp_path, monkeypatch):
    """Table 2 of [Brown15]: a single run has the interval of its hands."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    experiment, setting = small("tartanian7-table-2", tmp_path, monkeypatch)
    found = run(experiment, setting._replace(runs=1), tmp_path / "here", Quiet())
    assert [row.paper for row in found.rows] == [30, 103]
    for row in found.rows:
        assert row.margin and np.isfinite(row.margin) and row.more["hands"] == 200
    assert {verdict.verdict for verdict in found.verdicts} == {OPEN}  # one set of agents decides nothing


def test_classes_of_flops_on_a_small_game(tmp_path, monkeypatch):
    """Figure 5 of [Schmid15], on a deck of 12 cards: averaging over bets tells more than hands that are played out."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    experiment, setting = small("schmid-figure-5", tmp_path, monkeypatch)
    (row,) = run(experiment, setting._replace(runs=1), tmp_path / "out", Quiet()).rows
    ((low, high),) = row.more["deals_ci95"]
    assert low < row.ours < high
    assert high - low < row.more["played_out_ci95"][1] - row.more["played_out_ci95"][0]
    assert row.more["iterations"] == [[10_000, 10_000]] and row.more["deals"] == 1000
    (folder,) = tmp_path.glob("out/work-*")
    public, plain = (CardAbstraction.load(folder / f"{name}-6" / "cards") for name in ("public", "plain"))
    assert [this.buckets for this in public.rounds] == [this.buckets for this in plain.rounds]
    alike = [np.array_equal(mine.table, theirs.table) for mine, theirs in zip(public.rounds, plain.rounds, strict=True)]
    assert alike == [True, False, True, True][: len(alike)]
    (more,) = run(experiment, setting, tmp_path / "out", Quiet()).rows
    assert more.runs[0] == row.ours and len(set(more.runs)) == 2
    assert (folder / "plain-6-run-1").exists()


def test_estimators_and_portfolios_on_a_small_game(tmp_path, monkeypatch):
    """Tables 7.1 to 7.4 and 8 of [Johanson16], on Leduc hold'em; the logs that they share are judged once."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    found = {}
    for name in ("table-7.1", "table-7.2", "table-7.3", "table-7.4", "table-8"):
        experiment, setting = small(name, tmp_path, monkeypatch)
        result = run(experiment, setting._replace(runs=1), tmp_path / "out", Quiet())
        assert {one.verdict for one in result.verdicts} == {"not decided"}  # one set of agents decides nothing
        rows = [row.figures() for row in result.rows]
        assert [row["name"] for row in rows] == [row.name for row in experiment.rows]
        found |= {(name, row["name"]): row for row in rows}
        if name == "table-7.1":
            judged = sorted(tmp_path.glob("out/work-*/*.json"))
            kept = [file.stat().st_mtime_ns for file in judged]
            assert [file.name for file in judged] == ["S2298-60.json"]
    assert [file.stat().st_mtime_ns for file in judged] == kept
    money = found["table-7.1", "S2298 basic"]
    assert (money["paper"], money["paper_elsewhere"], money["effective_hands"]) == (None, 5103, 60)
    assert money["paper_rmse"] == 161
    assert money["rmse"] == pytest.approx((money["bias"] ** 2 + money["ours"] ** 2 / 1000) ** 0.5)
    assert found["table-7.1", "S2298 all-cards"]["ours"] < money["ours"] != found["table-7.1", "Orange basic"]["ours"]
    assert found["table-7.3", "S2298 basic"]["ours"] == money["ours"]
    hidden = {name: found["table-7.3", f"S2298 {name}"]["hidden_biases"] for name in ("early-folds", "bc-divat")}
    assert hidden["early-folds"] == [0] and hidden["bc-divat"] != [0]  # folds show all that they are worth
    on, off = found["table-7.2", "on basic"], found["table-7.2", "off basic"]
    assert (len(on["deviations"]), len(off["biases"]), len(off["rmses"])) == (3, 6, 6)
    assert (on["least"], on["ours"]) == (min(on["deviations"]), max(on["deviations"])) and money["ours"] in on[
        "deviations"
    ]
    far, near = found["table-7.2", "off basic limit"], found["table-7.1", "Orange basic limit"]
    assert (
        len(far["deviations"]) == len(far["at_least"]) == 6
        and near["ours"] in far["deviations"]
        and near["paper"] is None
    )
    assert 0 < near["largest_share"] <= 1
    plain = found["table-8", "basic"]
    assert plain["paper"] == 1 and plain["runs"] == (plain["ours"],) == (sum(plain["matches"][0]),)
    assert [sum(match.values()) for match in plain["chosen"][0]] == [20, 20]
    assert {*plain["chosen"][0][0]} == {"S2298", "CFR8", "Orange"}


def test_limits_of_deviations_off_policy(monkeypatch):
    """Three ends that one agent comes to in 4, 2 and 2 of 8 hands, and the judged one in 2, 2 and 4; one it alone."""
    hands, pays = np.array([0, 0, 1, 1, 2, 2, 2, 2]), np.array([3.0, -1.0, 5.0])
    likely, judged = np.array([4, 2, 2]) / 8, np.array([2, 2, 4]) / 8
    ratio = (likely / judged)[hands]
    exact = np.sqrt(likely @ (judged / likely * pays) ** 2 - (judged @ pays) ** 2)
    found = logs._limit(pays[hands] * ratio, ratio)
    assert found["deviation"] == pytest.approx(exact)
    assert found["largest_share"] == pytest.approx(50 / (2 * 4.5 + 2 + 4 * 50))
    assert found["at_least"] < exact
    many = np.tile(pays[hands] * ratio, 10**5), np.tile(ratio, 10**5)
    assert 0.99 < logs._limit(*many)["at_least"] / exact < 1
    monkeypatch.setattr(logs, "CAP", 1.5)
    assert 0 < logs._limit(*many)["at_least"] / exact < 0.99
    more = logs._limit(np.append(pays[hands] * ratio, 0), np.append(ratio, 0))  # what the other never does
    assert more["largest_share"] == found["largest_share"]


def test_tilts_and_overfitting(tmp_path, monkeypatch):
    """Differences to no tilt over several abstractions; real exploitability beside that inside the abstraction."""
    experiment, setting = small("figure-2.5", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "tilts", Quiet())
    rows = sorted((row.figures() for row in found.rows), key=lambda row: -row["tilt"][0])
    assert [row["tilt"] for row in rows] == [[7, 0, 0, 7], [-25, 0, 0, -25]]
    assert rows[0]["paper"] == pytest.approx(-5.81)
    for row in rows:
        assert list(row["abstractions"].values()) == list(row["runs"])
        assert [name.partition(", ")[2] for name in row["abstractions"]] == ["seed 0", "seed 1", "seed 2"]
        assert row["ours"] == pytest.approx(row["exploitability"] - row["without"])
        assert row["ci95"][0] < row["ours"] < row["ci95"][1]
    assert found.picture.stat().st_size > 10_000
    experiment, setting = small("figure-2.6", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "curve", Quiet(looks=5))
    rows = {row.name: row for row in found.rows}
    curves = [*rows["rise"].more["curves"].values()]
    assert len(curves) == 1 and not found.complete  # then somebody has stopped it
    assert rows["end"].runs == pytest.approx([curve[-1][1] for curve in curves])
    assert rows["lowest"].runs == pytest.approx([min(real for _, real, _ in curve) for curve in curves])
    for curve in curves:
        assert [iterations for iterations, _, _ in curve] == [1, 2, 4]
        assert all(inside <= real for _, real, inside in curve)


def test_claims_are_decided_by_intervals():
    """Above 0, below 0 or neither; run by run where rows have runs; one false part makes the whole false."""
    rows = [
        Row.of_runs("low", [1.0, 5.0, 9.0], "chips"),
        Row.of_runs("high", [2.0, 6.1, 9.9], "chips"),
        Row.of_runs("once", [100.0], "chips"),
        Row("exact", 3.0, 3.004, "chips", 0.0, {}),
        Row.of_runs("other seeds", [6.0, 100.0, 101.0, 10.0], "chips", seeds=(1, 7, 8, 2)),
    ]

    def verdict(slack):
        return Claim("", "", slack).verdict(rows).verdict

    assert verdict(claims.lower("low", "high")) == "holds"  # by about 1 in each run, whatever the runs come to
    assert verdict(claims.higher("low", "high")) == "does not hold"
    # By seeds: 6.0 less 5.0 and 10.0 less 9.0, though two more runs are far off, and others stand in their places.
    assert claims.contrast({"other seeds": 1.0, "low": -1.0})({row.name: row for row in rows}).low == -np.inf
    assert claims.contrast({"high": 1.0, "low": -1.0})({row.name: row for row in rows}).high < 2
    assert verdict(claims.lower("low", "exact")) == "not decided"
    assert verdict(claims.lower("exact", "once")) == "not decided"  # of a single run nobody knows the error
    assert verdict(claims.lower("low", "nonesuch")) == "not decided"
    assert verdict(claims.as_printed("exact", 0.005)) == "holds"
    assert verdict(claims.as_printed("exact", 0.001)) == "does not hold"
    assert verdict(claims.every(claims.lower("low", "high"), claims.positive("exact"))) == "holds"
    assert verdict(claims.every(claims.lower("high", "low"), claims.positive("nonesuch"))) == "does not hold"
    assert verdict(claims.every(claims.lower("low", "high"), claims.positive("nonesuch"))) == "not decided"


def verdicts(entry, rows):
    """By claim, whether it holds."""
    return {claim.says: claim.verdict(rows).verdict for claim in entry.claim_list}


def one_of(found, *words):
    """The verdict on the one claim that has these words."""
    (verdict,) = [verdict for says, verdict in found.items() if all(word in says for word in words)]
    return verdict


@pytest.mark.parametrize(
    ("won", "wanted"),
    [
        (Estimate(30.0, 20.0), (0, 1)),  # less than 25 big blinds in 500 hands, and above 0 for certain
        (Estimate(-30.0, 20.0), (0, -1)),
        (Estimate(60.0, 80.0), (1, 0)),  # 1.64 standard errors are 67
        (Estimate(70.0, 80.0), (1, 1)),
        (Estimate(-70.0, 80.0), (-1, -1)),
        (Estimate(30.0, 80.0), (0, 0)),
    ],
)
def test_matches_are_won_by_a_margin_and_significantly_by_a_test_against_zero(won, wanted):
    """[Johanson16 §8.2]: the first row has a margin of 25 big blinds, the second a one-sided 95% test against 0."""
    assert chapter_8.outcome(won) == wanted


def test_more_significant_matches_by_one_estimator_than_by_another():
    """Matches that are lost count too, and intervals are those over runs with agents of their own."""

    def rows(best, money):
        names = {"all-cards+early-folds+bc-divat significant": best, "basic significant": money}
        return [Row.of_runs(name, map(sum, won), "", more={"matches": won}) for name, won in names.items()]

    none = [[0, 0, 0, 0]] * 3
    more, mixed = [[1, -1, 0, 1], [1, 1, -1, 0], [-1, -1, 1, 1]], [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    for best, money, wanted in (
        ([[1, 0, 0, 0]] * 3, none, "not decided"),  # one match in each run: three counts may agree by chance
        (more, none, "holds"),
        (none, more, "does not hold"),
        (mixed, none, "not decided"),
        (more[:1], none[:1], "not decided"),  # one run
    ):
        (found,) = verdicts(chapter_8.TABLE_8, rows(best, money)).values()
        assert found == wanted


@pytest.mark.parametrize(
    ("two", "three", "wanted"),
    [
        ([40.0, 39.0], [40.5, 39.5], "holds"),
        ([40.0, 39.0], [46.0, 45.0], "does not hold"),
        ([40.0, 39.0], [46.0, 41.0], "not decided"),  # one fell by 11% since midway: it has not ended
        ([337.0, 232.0], [646.0, 653.0], "not decided"),
        ([60.0, 40.0], [61.0, 40.0], "not decided"),  # alike so far
        ([40.0, 39.0], [41.9, 41.0], "not decided"),  # 5.1% apart, and runs differ by more
    ],
)
def test_trunks_end_alike_where_both_have_ended(two, three, wanted):
    """[Johanson16 figure 11.1]: what is still falling decides nothing about where it ends."""
    ends, noise = {2: two, 3: three}, (-0.2, 0.0, 0.2)
    rows = [
        Row.of_runs(f"trunk {trunk}, {point}", [value + part * (3 - trunk) for part in noise], "mbb/g")
        for trunk, values in ends.items()
        for point, value in zip(("midway", "in the end"), values, strict=True)
    ]
    assert one_of(verdicts(EXPERIMENTS["figure-11.1"], rows), "end with the same") == wanted


@pytest.mark.parametrize(
    ("hidden", "biased", "unbiased"),
    [
        ([80.0, 85.0, 82.0], "holds", "does not hold"),
        ([-80.0, -85.0, -82.0], "holds", "does not hold"),
        ([0.0, 0.0, 0.0], "does not hold", "holds"),
        ([3.0, -4.0, 1.0], "does not hold", "holds"),
        ([80.0, 10.0, 40.0], "not decided", "not decided"),  # an interval that reaches from 0 to what the thesis has
        ([80.0], "not decided", "not decided"),
    ],
)
def test_biases_by_partial_information_are_decided_by_their_intervals(hidden, biased, unbiased):
    """[Johanson16 table 7.3]: 47 ± 1 to 96 ± 12 count as biases there, 5 ± 13 as none."""
    names = "divat", "bc-divat", "early-folds", "all-cards", "all-cards+bc-divat"
    rows = [Row.of_runs(f"S2298 {name}", hidden, "mb/hand", more={"hidden_biases": hidden}) for name in names]
    found = verdicts(chapter_7.TABLE_7_3, rows)
    for name in names:
        wanted = unbiased if name == "all-cards" else biased
        assert one_of(found, f"partial information biases {name} by ") == wanted


def test_limits_of_money_are_decided_over_runs():
    """[Johanson16 table 7.2]: a lower bound of a limit may show that it is large, never that it is small."""

    def found(bounds, deviations):
        limit = Row.of_runs("off basic limit", bounds, "", more={"least_bounds": bounds})
        on = Row.of_runs("on basic", deviations, "")
        return one_of(verdicts(chapter_7.TABLE_7_2, [limit, on]), "4 times as large")

    assert found([40_000.0, 45_000.0, 42_000.0], [5200.0, 5300.0, 5250.0]) == "holds"
    assert found([4_000.0, 4_500.0, 4_200.0], [5200.0, 5300.0, 5250.0]) == "not decided"
    assert found([40_000.0, 10_000.0, 42_000.0], [5200.0, 5300.0, 5250.0]) == "not decided"
    assert found([40_000.0], [5200.0]) == "not decided"


def answers(*points):
    """A curve of an answer by p: what is won from Orange, exploitability, and what is won from the model."""
    return [chapter_6.AnswerPoint(share, risk, won, model) for share, (won, risk, model) in enumerate(points)]


BOUND = 30.0
SOUND = answers((8, 3, 10), (12, 4, 15), (20, 5, 20))  # wins more and more
SPOILT = answers((8, 3, 10), (20, 40, 30), (10, 300, 40))  # wins less again in the end
POOR = answers((8, 3, 10), (-30, 200, 60), (-400, 900, 90))  # wins less than an equilibrium
SMALL = answers((8, 3, 10), (8.5, 5, 12), (8, 40, 13))  # of which nobody notices much, below P_max = 1


def curves_of_figure_6(figure, curve, few, own):
    """Curves of one run, where data are many, few, or of self-play."""
    most = chapter_6.CurveSetting(games=chapter_6.GAMES[-1], confidence="" if figure == "figure-6.1" else "0-10-linear")
    found = {most._replace(games=games): few for games in chapter_6.SCARCE}
    found |= {most: curve, most._replace(against=chapter_6.SELF): own}
    if figure == "figure-6.2":
        found |= {most._replace(confidence=name): SOUND for name in ("10-step", "s-curve")}
        found |= {most._replace(confidence=name): SPOILT for name in ("", "1-step")}
    return found


@pytest.mark.parametrize("figure", ["figure-6.1", "figure-6.2"])
def test_claims_of_figure_6_are_those_of_the_thesis(figure):
    """[Johanson16 §§6.4, 6.6]: all hold where curves are what the thesis says of them, and none where it is turned."""

    def decided(*runs):
        runs = [chapter_6.shapes(figure, run, BOUND) for run in runs]
        rows = [Row.of_runs(row, [one[row] for one in runs], "mbb/g") for row in runs[0]]
        assert {row.name for row in rows} == set(chapter_6.SHAPES[figure])
        return verdicts(EXPERIMENTS[figure], rows)

    right = curves_of_figure_6(figure, *((SPOILT, POOR, POOR) if figure == "figure-6.1" else (SOUND, SMALL, SMALL)))
    assert set(decided(right, right, right).values()) == {"holds"}
    assert set(decided(right).values()) == {"not decided"}
    if figure == "figure-6.1":
        wrong = curves_of_figure_6(figure, answers((20, 5, 20), (19, 4, 15), (21, 3, 10)), SOUND, SOUND)
        wrong |= {setting: answers((8, 5, 10), (12, 4, 15), (30, 3, 20)) for setting in wrong if setting.games == 100}
        assert set(decided(wrong, wrong, wrong).values()) == {"does not hold"}
        assert set(decided(right, wrong, right).values()) == {"not decided"}
        return
    wrong = curves_of_figure_6(figure, SPOILT, SPOILT, POOR)
    wrong |= {setting: SPOILT for setting in wrong if setting.confidence in ("10-step", "s-curve")}
    wrong |= {setting: SOUND for setting in wrong if setting.confidence in ("", "1-step")}
    wrong |= {setting: answers((8, 3, 10), (30, 40, 30), (40, 300, 40)) for setting in wrong if setting.games == 100}
    found = decided(wrong, wrong, wrong)
    assert found.pop(next(says for says in found if "games against Probe" in says)) == "holds"
    assert set(found.values()) == {"does not hold"}
    assert set(decided(right, wrong, right).values()) == {"not decided", "holds"}


@pytest.mark.parametrize(("rise", "wanted"), [(2.9, "holds"), (3.1, "does not hold")])
def test_only_marginally_more_exploitable(rise, wanted):
    """A tenth of the bound, 3 here, for every P_max below 1 and with 100 and with 1,000 games; at 1 it may be more."""
    curve = answers((8, 3, 10), (8, 3 + rise, 12), (8, 3, 12), (8, 500, 13))
    found = curves_of_figure_6("figure-6.2", SOUND, SMALL, SMALL)
    linear = chapter_6.CurveSetting(games=1000, confidence="0-10-linear")
    shapes = chapter_6.shapes("figure-6.2", found | {linear: curve}, BOUND)
    rows = [Row.of_runs(row, [value] * 3, "mbb/g") for row, value in shapes.items()]
    assert one_of(verdicts(EXPERIMENTS["figure-6.2"], rows), "marginally") == wanted


def test_everything_in_small(tmp_path, monkeypatch):
    """Claims and verdicts of all, in one table; one that fails does not end the others. Every experiment has claims."""
    assert all(experiment.claims for experiment in EXPERIMENTS.values())
    few = {name: EXPERIMENTS[name] for name in ("table-4.1", "figure-3.2", "table-2.1")}
    brief = changes(only=("cs",), game="leduc", budget=CellBudget.of(seconds=0.06), runs=2)
    few["figure-3.2"] = replace(few["figure-3.2"], quick=brief)
    few["table-2.1"] = replace(few["table-2.1"], quick=changes(device="nonesuch"))
    monkeypatch.setattr(menu, "EXPERIMENTS", few)
    result = kilt("reproduce", "--all", "--quick", "--out", tmp_path / "here", "--json", code=1)
    done = json.loads(result.stdout)
    assert [one["name"] for one in done["experiments"]] == ["table-4.1", "figure-3.2"]
    assert "nonesuch" in done["failed"]["table-2.1"]
    counted, curves = done["experiments"]
    assert {one["verdict"] for one in counted["claims"]} == {"does not hold"}
    assert [one["verdict"] for one in curves["claims"]] == ["not decided"] * 3  # two runs have no interval
    assert {len(row["runs"]) for row in curves["rows"]} == {2}
    assert curves["picture"] == str(tmp_path / "here" / "kilt-figure-3.2" / "figure.png")
    assert "use it only with" in refused("reproduce", "--all", "--minutes", 1)


def test_classes_of_flops_that_are_left(tmp_path, monkeypatch):
    """Algorithm 3 as printed runs into few classes; the agreement of classes does not depend on their names."""
    experiment, setting = small("tartanian7-algorithm-3", tmp_path, monkeypatch)
    found = run(experiment, setting._replace(runs=3), tmp_path / "here", Quiet())
    printed, moved = found.rows
    assert printed.ours < moved.ours == moved.paper == 31
    assert [one.verdict for one in found.verdicts] == ["does not hold", "holds"]
    one, other = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 2, 2])
    assert flop_classes.adjusted_rand_index(one, 2 - other) == pytest.approx(0.242424, abs=1e-6)  # scikit-learn's
    ace, king, queen, deuce = 48, 44, 40, 0
    flops = np.array([[ace, king, queen], [ace, king + 1, deuce], [king, king + 1, queen]])
    kinds = [is_so(flops, FULL).tolist() for is_so in flop_classes.KINDS.values()]
    assert kinds == [[True, False, False], [False, False, True], [True, False, False]]


@pytest.mark.parametrize("arguments", [("table-4.1",), ("--all",)])
def test_rows_so_far_after_ctrl_c(arguments, monkeypatch, tmp_path):
    """What was found is printed, for people and for programs, without verdicts on what was stopped."""
    monkeypatch.chdir(tmp_path)
    experiment = EXPERIMENTS["table-4.1"]
    measure = type(experiment).measure

    def stopping(self, case, seed, lab):
        if case == "2-round":
            lab._watcher.signals.append(signal.SIGINT)
            lab.check()
        return measure(self, case, seed, lab)

    monkeypatch.setattr(type(experiment), "measure", stopping)
    few = {"figure-5.2": EXPERIMENTS["tartanian7-sizes"], "table-4.1": experiment}
    monkeypatch.setattr(menu, "EXPERIMENTS", few)
    said = json.loads(kilt("reproduce", *arguments, "--json", code=130).stdout)
    shown = kilt("reproduce", *arguments, code=130).stdout
    if arguments == ("--all",):
        assert ([one["name"] for one in said["experiments"]], said["stopped"]) == (["tartanian7-sizes"], "table-4.1")
        assert "holds" in shown
    else:
        assert ([row["bytes"] for row in said["rows"]], said["claims"], said["stopped"]) == ([14196], [], True)
        assert "14.52" in shown and "Claims" not in shown


def test_sizes_of_tartanian7_and_rules_on_all_decisions(tmp_path, monkeypatch):
    """Latency is hidden where it is shorter than the work; a rule that does nothing leaves exploitability alone."""
    monkeypatch.chdir(tmp_path)
    said = answer("reproduce", "tartanian7-sizes")
    assert {one["verdict"] for one in said["claims"]} == {"holds"}
    assert said["rows"][-1]["share"] == pytest.approx(0, abs=1e-9) and said["rows"][-1]["paper_share"] == 0.004
    assert sampling.latency_share(latency=0.1) > 0.5
    game = VectorGame(load_game("leduc"))
    table = public_table(game, "call-or-raise")
    idle, pure = (post_processing.post_processed(game, table, rule_named(name)) for name in ("none", "bets-1-1-1"))
    assert game.exploitability(idle) == pytest.approx(game.exploitability(table))
    assert np.array_equal(pure > 0, table > 0)  # both actions are equally likely, and stay so


def test_post_processing_by_exact_exploitability(tmp_path, monkeypatch):
    """Where all of the family is there, a search over it is judged by the runs that it did not see."""
    experiment, setting = small("tartanian7-post", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "here", Quiet()).rows
    rows = [row for row in found if "best" not in row.name]
    (search,) = [row for row in found if row.name == "best of the family, rough"]
    nothing, *rules = rows
    assert nothing.runs == pytest.approx([0.0, 0.0], abs=1e-9) and nothing.more["before"] > 0
    best = min(rules, key=lambda row: row.runs[0])
    assert (search.more["rule"] + ", rough", search.ours) == (best.name, best.runs[1])


def test_sampling_by_exact_exploitability(tmp_path):
    """Algorithm 4 as printed is biased on Leduc hold'em."""
    experiment = EXPERIMENTS["tartanian7-algorithm-4"]
    only = tuple(row.name for row in experiment.rows[:2])
    setting = experiment.setting({}, {"only": only, "runs": 3, "budget": CellBudget.of(nodes=400_000)})
    found = run(experiment, setting, tmp_path, Quiet())
    printed, weighted = found.rows
    assert printed.ours > 1.2 * weighted.ours
    assert printed.more["deals"] == pytest.approx(weighted.more["deals"], rel=0.1)
    assert [one.verdict for one in found.verdicts] == ["does not hold", *["not decided"] * 10]


def test_weights_and_deals(tmp_path, monkeypatch):
    """Linear weights begin to differ after 16,384 iterations; flat trees draw other deals."""
    experiment, setting = small("differences", tmp_path, monkeypatch)
    linear, equal, shared, apart, _ = run(experiment, setting._replace(runs=1), tmp_path / "here", Quiet()).rows
    assert linear.runs == equal.runs and shared.runs != apart.runs
    assert all(0 < value < 1000 for row in (linear, shared, apart) for value in row.runs)


def test_weights_in_play(tmp_path, monkeypatch):
    """Weights that do not differ yet win nothing; later they do, with the same cards and draws."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    for name, value in {"GAME": "leduc", "ACTIONS": "", "CARDS": "IR-PHS-PHS {}-3", "DEALS": 500}.items():
        monkeypatch.setattr(differences, name, value)
    early, late = (differences.won_by_linear(nodes, 0, tmp_path / str(nodes)) for nodes in (10_000, 2_000_000))
    assert early == 0 and 0 < abs(late) < 100


def test_abstractions_that_meet(tmp_path, monkeypatch):
    """Figure 1 of [Brown15], and fine bets, with a private card and a board of one."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    experiment, setting = small("tartanian7-figure-1", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "time", Quiet())
    rows = {row.name: row for row in found.rows}
    direct, purified = [row for name, row in rows.items() if "9 times" in name and "smaller" in name]
    assert direct.name == "0.009M nodes, 9 times as many cores, against the smaller one"
    assert purified.name == f"{direct.name}, purified" and purified.runs != direct.runs
    assert found.picture.stat().st_size > 10_000
    for opponent in ("A", "the smaller one"):  # nine times as many nodes are better, against whomever
        few, many = (
            f"0.009M nodes, {cores}, against {opponent}" for cores in ("as many cores", "9 times as many cores")
        )
        assert rows[few].ours < rows[many].ours
    experiment, setting = small("tartanian7-bets", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "bets", Quiet())
    won = {row.name.partition(" against ")[0]: row.runs for row in found.rows}
    assert won["new-0"] == won["bets-0-1-1"] and won["none"] != won["purification-after-first"]
    assert np.mean(won["new-0"]) < np.mean(won["none"])  # whoever folds whenever he sometimes does loses
    search = found.rows[-1]
    best = max(("bets-0-1-1", "bets-1-0-0.15"), key=lambda rule: won[rule][0])
    assert search.more["rule"] == best
    assert search.ours == pytest.approx(won[best][1] - won["purification-after-first"][1])


def test_post_processing_is_judged_by_matches_and_by_local_best_response(tmp_path, monkeypatch):
    """A small run: every rule against the best, LBR with off-tree sizes; claims follow the intervals."""
    table = post_processing_safety
    experiment, setting = small("post-processing-safety", tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "here", Quiet())
    assert {row.unit for row in found.rows} == {"mbb/h"} and len(found.rows) == 4
    best = found.rows[0].more["best"]
    assert best in table.RULES
    assert all(row.ours == 0 for row in found.rows if row.name == table.row_name("demo", best, table.MATCH))
    default = table.DEFAULTS["demo"]
    rows = [Row.of_runs(table.row_name("demo", default, table.MATCH), (-20.0, -21.0, -22.0), "mbb/h")]
    for measure in table.ROUNDS:
        for rule, won in ((default, 900.0), ("new-0.2", 2000.0)):
            rows.append(Row.of_runs(table.row_name("demo", rule, measure), (won, won + 9, won - 9), "mbb/h"))
    verdicts = [one.verdict for one in experiment.verdicts(rows)]
    assert verdicts == ["holds", "holds", "not decided", "not decided"]
    rows[0] = Row.of_runs(rows[0].name, (-70.0, -71.0, -72.0), "mbb/h")
    assert experiment.verdicts(rows)[0].verdict == "does not hold"
    assert table.config_sizes(["1x, a / 50%, 1x, a; 1x, a"]) == ["50%", "1x", "a", "1x", "a"]
