"""Published tables and figures on small games, by the code that does them on large ones."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt import artifact
from kilt.abstraction.buckets import CardAbstraction
from kilt.abstraction.percentile import cut_points
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.cards.deck import FULL
from kilt.config import SolverConfig
from kilt.errors import AbstractionError, ArtifactError, GameError, RunError
from kilt.evaluate import flops
from kilt.evaluate.judge import VectorJudge, judge_of
from kilt.evaluate.stats import Estimate
from kilt.games import load_game
from kilt.games.gamedef import library
from kilt.players.fixed_agents import fixed_agent
from kilt.players.profile import Subject
from kilt.runs.budget import Budget
from kilt.solve import forms
from kilt.solve.cfr import Cfr
from kilt.strategy.fixed import AGENTS, chances, flat_table, public_table
from kilt.strategy.model import DecisionLayout
from kilt.strategy.postprocess import rule_named
from kilt.tree.best_response import response_values
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame
from kilt_lab.reproduce import (
    REPRODUCTIONS,
    algorithm_4,
    claims,
    convergence,
    differences,
    figure_2_6,
    figure_3_4,
    figure_5_2,
    figure_6,
    figure_11_1,
    fine_bets,
    flop_classes,
    post_processing_safety,
    postprocessing,
    public_classes,
    sampling,
    schmid_figure_5,
    table_2_1,
    table_4_1,
    table_5_3,
    table_7,
    table_8,
    tartanian7_figure_1,
    tartanian7_sizes,
    tartanian7_table_2,
    tilts,
)
from kilt_lab.reproduce.agents import with_spare_seeds
from kilt_lab.reproduce.claims import OPEN, Claim, Row
from kilt_lab.reproduce.reproduction import ReproductionResult, Request
from kilt_lab.reproduce.table_2_1 import PAPER, responses_to
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

NO_LIMIT = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = 8 8
blind = 2 1
firstPlayer = 2 1 1 1
numSuits = 3
numRanks = 4
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""

# The same commands in a process of their own, on a small game, each part of which takes a while.
MAIN = """
import sys, time
import kilt.cli, kilt.evaluate.flops as flops, kilt_lab.reproduce.table_2_1 as table
table.GAME, flops.OFTEN, wait, part = sys.argv.pop(1), 0.0, float(sys.argv.pop(1)), flops.FlopResponses.part
flops.FlopResponses.time_left = lambda self: 1.0
flops.FlopResponses.part = lambda self, number: (time.sleep(wait if number else 0.0), part(self, number))[1]
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
    """The table on a small game, in an empty folder."""
    monkeypatch.setattr(table_2_1, "GAME", str(written(tmp_path / "tiny.game", "one hole card")))
    monkeypatch.setattr(flops, "LOOK", 0.0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "tiny.game"


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
        assert chances(agent, actions).tolist() == wanted


def test_agents_that_do_not_fit():
    with pytest.raises(GameError, match=r"unknown agent 'always-win': use one of always-fold"):
        chances("always-win", ("c", "r"))
    with pytest.raises(GameError, match="plays poker"):
        chances("always-call", ("1-1", "1-2"))
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
    (one, flat), (two, vector) = (fixed_agent("leduc", agent, threads) for threads in (1, 2))
    assert (one.form, two.form) == ("flat", "vector")
    assert judge_of(one).evaluate(flat) == pytest.approx(judge_of(two).evaluate(vector), abs=1e-9)


def test_agents_need_no_tables_by_board(monkeypatch, tmp_path):
    """Where those do not fit into memory, agents that look at no board can be judged all the same."""
    file = tmp_path / "large.game"
    file.write_text(library()["holdem.2-1"].replace("numRanks = 13", "numRanks = 4"))
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
        (["--game", "leduc", "--agent", "nonesuch"], ["nonesuch", "uniform, always-fold"]),
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


@pytest.mark.parametrize("agent", PAPER)
def test_best_responses_in_parts(short, flat, agent, tmp_path):
    """As on the flat tree ([Johanson16 §§2.3, 2.4]: both are exact)."""
    responses = responses_to(VectorGame(short, threads=2, by_board=False), agent, tmp_path)
    assert responses.time_left() > 0
    responses.go_on(Quiet())
    assert (responses.complete, responses.share) == (True, 1.0)
    assert responses.won() == pytest.approx(response_values(flat, flat_table(flat, agent)), abs=1e-9)


def test_parts_are_weighed_by_their_last_boards(short):
    game = VectorGame(short, by_board=False)
    boards = flops.rivers_of(game)
    assert boards.sum() == np.diff(game.tree.board_start)[-1]
    assert len(boards) == np.diff(game.tree.board_start)[1]


def test_stopped_parts_go_on_with_the_same_numbers(short, tmp_path):
    one, two = (VectorGame(short, threads=threads, by_board=False) for threads in (1, 2))
    whole = responses_to(two, "call-or-raise", tmp_path / "whole")
    whole.go_on(Quiet())
    seen = []
    for game in (one, one, two):
        broken = responses_to(game, "call-or-raise", tmp_path / "broken")
        broken.go_on(Quiet(looks=1))
        seen.append(broken.done)
    assert 0 < seen[0] < seen[1] < len(whole.work)
    last = responses_to(two, "call-or-raise", tmp_path / "broken")
    last.go_on(Quiet())
    assert np.array_equal(last.values, whole.values)
    assert last.won() == whole.won()


def test_the_table(tiny):
    """All rows, or those that are asked for."""
    (asked,) = answer("reproduce", "table-2.1", "--only", "call-or-raise")["rows"]
    result = kilt("reproduce", "table-2.1", "--threads", 2, "--json")
    rows = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in rows] == ["always-fold", "always-call", "always-raise", "call-or-raise"]
    assert rows[-1] == asked  # what is done is done
    assert "always-raise, 0% done, kept in kilt-table-2.1; takes about" in result.stderr
    game = VectorGame(load_game(tiny))
    for row in rows:
        assert row["ours"] == pytest.approx(100 * game.exploitability(public_table(game, row["name"])), abs=1e-6)
        assert (row["paper"], row["unit"]) == (PAPER[row["name"]], "mbb/g")
        assert sum(row["seats"]) / 2 == row["ours"]
    assert answer("reproduce", "table-2.1")["rows"] == rows
    shown = kilt("reproduce", "table-2.1").stdout
    assert all(word in shown for word in ("paper", "ours", "difference", "3,697.69", "mbb/g"))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_interrupted_tables_go_on(tiny, how):
    child = begin(tiny, 0.3, done=1)
    child.send_signal(how)
    out, err = child.communicate(timeout=60)
    assert out == ""
    if how == signal.SIGINT:
        assert child.returncode == 130
        assert "to go on: kilt reproduce table-2.1 --only always-raise --out 'my table'" in err
    kept = artifact.read("my table/always-raise", flops.KIND).figures["done"]
    assert 0 < kept < 8
    (found,) = answer("reproduce", "table-2.1", "--only", "always-raise", "--out", "my table")["rows"]
    (unbroken,) = answer("reproduce", "table-2.1", "--only", "always-raise", "--out", "other")["rows"]
    assert found["seats"] == unbroken["seats"]


def test_a_second_ctrl_c_leaves_at_once(tiny):
    child = begin(tiny, 300)
    for _ in range(60):  # a second one that comes before the first was noticed is none
        child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.5)
            break
    out, err = child.communicate(timeout=10)
    assert (child.returncode, out) == (130, "")
    assert "the same command goes on" in err
    assert artifact.exists("my table/always-raise")


def begin(game, wait, done=0):
    """Start a row in a process of its own, and wait until it is kept that some parts are done."""
    command = [sys.executable, "-c", MAIN, game, wait]
    command += ["reproduce", "table-2.1", "--only", "always-raise", "--threads", 1, "--out", "my table"]
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline, kept = time.monotonic() + 120, "my table/always-raise"
    while True:
        with suppress(ArtifactError):  # it is not there yet, or being replaced
            if artifact.read(kept, flops.KIND).figures["done"] >= done:
                break
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return child


def test_folders_of_something_else(tiny, tmp_path):
    fold = ("reproduce", "table-2.1", "--only", "always-fold", "--out")
    kilt(*fold, "mine")
    os.renames("mine/always-fold", "theirs/always-call")
    line = refused("reproduce", "table-2.1", "--only", "always-call", "--out", "theirs")
    assert "best responses to always-fold" in line
    assert "another folder" in line
    tiny.write_text(tiny.read_text().replace("raiseSize = 10 10 20", "raiseSize = 10 10 10"))
    os.renames("theirs/always-call", "mine/always-fold")
    assert "this is always-fold in the game" in refused(*fold, "mine")
    (tmp_path / "here" / "file").write_text("")
    assert "cannot be written" in refused(*fold, "file")
    (tmp_path / "here" / "always-fold").mkdir()
    assert "holds no best responses" in refused(*fold, ".")


def test_two_processes_at_one_row(tmp_path):
    with artifact.alone(tmp_path / "row"), pytest.raises(ArtifactError, match="another process is at work on"):
        artifact.alone(tmp_path / "row").__enter__()
    with artifact.alone(tmp_path / "row"):
        pass


# Figures 3.2 and 3.5


@pytest.mark.parametrize(
    ("figure", "game", "iterations", "unit"),
    [("figure-3.2", "leduc", 400, "mbb/g"), ("figure-3.5", "bluff-1-1", 50, "chips per game")],
)
def test_curves_fall(tmp_path, figure, game, iterations, unit):
    algorithms, path = REPRODUCTIONS[figure].rows, tmp_path / "curves.png"
    found = convergence.race(game, algorithms, Budget(iterations=iterations), "curves", path, Quiet())
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [row.name for row in found.rows] == list(algorithms)
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
    monkeypatch.setattr(convergence, "process_time", lambda: now)
    monkeypatch.setattr(Cfr, "step", passing(Cfr.step, lambda iterations: 10.0 * iterations))
    evaluate = passing(VectorJudge.evaluate, lambda table: 1000.0)
    monkeypatch.setattr(VectorJudge, "evaluate", evaluate)
    for seconds, measured in ((100, [1, 2, 3, 4, 6, 8, 10]), (50, [1, 5])):
        steps = convergence.converge(problem, "cfr+", Budget(seconds=seconds), Quiet())
        assert [step.iterations for step in steps] == measured
        assert [step.seconds for step in steps] == [10 * iterations for iterations in measured]


def test_the_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for figure, game in (("figure-3.2", "leduc"), ("figure-3.5", "bluff-1-1")):
        result = answer("reproduce", figure, "--game", game, "--minutes", 0.002, "--runs", 1)
        assert [row["name"] for row in result["rows"]] == list(REPRODUCTIONS[figure].rows)
        assert result["picture"] == f"kilt-{figure}.png"
        assert (tmp_path / result["picture"]).read_bytes().startswith(b"\x89PNG")
        assert game in result["what"]
    (row,) = answer(
        "reproduce", "figure-3.5", "-g", "bluff-1-1", "-m", 0.002, "--only", "cfr+", "-o", "one.png", "--runs", 1
    )["rows"]
    assert (row["name"], row["paper"]) == ("cfr+", None)
    assert (tmp_path / "one.png").exists()


def test_stopped_figures_are_drawn(tmp_path):
    path, watcher = tmp_path / "curves.png", Quiet(looks=20)
    found = convergence.race("leduc", ("pcs", "cfr+", "cs"), Budget(iterations=200), "curves", path, watcher)
    assert [row.name for row in found.rows] == ["pcs", "cfr+"]
    assert found.rows[1].more["iterations"] < 200
    assert path.exists()
    assert watcher.said[-1] == f"stopped; the curves so far are in {path}"


def test_what_is_won_from_a_fixed_opponent(tmp_path):
    """A player wins what the game is worth where each seat has its player's rows; PCS draws nothing in Kuhn."""
    game, draws = VectorGame(load_game("leduc")), np.random.default_rng(5)
    one, other = (figure_3_4.Sight(game, game.symmetrise(draws.random(game.shape))) for _ in range(2))
    layout = DecisionLayout.of_vectors(game)
    first = np.repeat(layout.actor == 0, layout.actions)[:, None]
    seats = [np.where(first, mine.table, theirs.table) for mine, theirs in ((one, other), (other, one))]
    worth = [game.expected_value(table) for table in seats]
    assert figure_3_4.won_from(game, one, other) == pytest.approx((worth[0] - worth[1]) / 2)

    asked = Request(game="kuhn", minutes=0.0002, runs=3, out=tmp_path / "won.png")
    found = figure_3_4.FIGURE_3_6.reproduce(asked, Quiet())
    assert tuple(row.name for row in found.rows) == figure_3_4.FIGURE_3_6.rows
    assert [len(row.runs) for row in found.rows] == 3 * [3] + 3 * [0]
    assert 0 <= found.rows[0].more["opponent_exploitability"] < 0.1
    assert all(row.ours < row.more["opponent_exploitability"] for row in found.rows)
    assert found.picture and found.picture.stat().st_size > 10_000


def stopped_early(reproduction, asked):
    """What two runs come to, one of which the user broke off."""
    watcher = Quiet(looks=10**9)
    reproduction.run(asked._replace(runs=1), watcher)
    return reproduction.run(asked._replace(runs=2), Quiet(looks=10**9 - watcher.looks + 1))


def test_matches_of_abstractions(tmp_path, monkeypatch):
    """Table 5.3 of [Johanson16]: what all agents win adds up to 0, and claims about others are not decided."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    file, small = tmp_path / "small.game", library()["short.4-1"]
    file.write_text(
        small.replace("Ranks = 5", "Ranks = 4").replace("Suits = 4", "Suits = 2").replace("0 3 1 1", "0 1 1 1")
    )
    for name, value in {"GAME": str(file), "NODES": 2000, "DEALS": 500}.items():
        monkeypatch.setattr(table_5_3, name, value)
    names = "IR-PHS-PHS 5-2-2-2", "IR-PHS-PHS 2-1-1-1", "IR-PHS-PHS 3-2-1-1"
    found = replace(table_5_3.TABLE, rows=names).reproduce(Request(names, runs=2), Quiet())
    for row, stopped in zip(found.rows, stopped_early(table_5_3.TABLE, Request(names)).rows, strict=True):
        assert stopped.runs == row.runs[:1]
    won = np.array([row.runs for row in found.rows])
    assert won.sum(axis=0) == pytest.approx(np.zeros(2), abs=1e-9) and (won[:, 0] != won[:, 1]).all()
    for row in found.rows:
        assert row.more["against"].keys() == set(names) - {row.name}
        assert row.ours == pytest.approx(np.mean([*row.more["against"].values()])) and row.paper is None
    assert {verdict.verdict for verdict in table_5_3.TABLE.verdicts(found)} == {OPEN}
    assert sum(mean for mean in table_5_3.MEANS.values() if mean is not None) == pytest.approx(23.3)


def test_spare_seeds():
    """Clusters that cannot be cut further are drawn anew; what no seed can do is refused as ever."""
    watcher, made = Quiet(), []

    def cut(seed):
        made.append(seed)
        cut_points(np.ones(2), 3 if len(made) < 3 else 2)
        return seed

    assert with_spare_seeds(cut, 4, watcher) == 2004 and made == [4, 1004, 2004]
    assert [line.partition(":")[0] for line in watcher.said] == [
        "another seed takes the place of 4",
        "another seed takes the place of 1004",
    ]
    with pytest.raises(AbstractionError, match="3 buckets are asked for, but only 2 values are different"):
        with_spare_seeds(lambda seed: cut_points(np.ones(2), 3), 0, watcher)


# The command


def test_the_menu():
    listed = answer("reproduce")
    assert set(listed) == set(REPRODUCTIONS)
    assert listed["table-2.1"]["rows"] == list(PAPER)
    shown = kilt("reproduce").stdout
    assert all(name in shown for name in REPRODUCTIONS)
    assert "Usage" in kilt("reproduce", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonesuch"], ["nonesuch", "table-2.1, table-2.3, figure-2.5"]),
        (["--minutes", 2], ["no name", "lists"]),
        (["table-2.1", "--only", "nonesuch"], ["nonesuch", "always-fold, always-call"]),
        (["table-2.1", "--minutes", 2], ["--minutes 2.0", "use --only, --threads, --out"]),
        (["table-2.1", "--threads", 0], ["threads is 0", "1 or more"]),
        (["figure-3.2", "--threads", 2], ["--threads 2", "use --only, --game, --minutes, --out"]),
        (["figure-3.2", "--only", "lp"], ["lp", "cs, opcs, spcs, pcs, cfr+"]),
        (["figure-3.2", "--minutes", 0], ["0 seconds", "above 0"]),
        (["figure-3.2", "--minutes", "nan"], ["nan", "above 0"]),
        (["figure-3.2", "--game", "nonesuch"], ["nonesuch", "leduc"]),
        (["figure-3.2", "--game", "openspiel:kuhn_poker"], ["public tree"]),
        (["figure-3.5", "--out", "picture.txt"], ["picture.txt", ".png"]),
        (["figure-3.5", "--out", "nonesuch/picture.png"], ["cannot be written", "a folder that is there"]),
    ],
)
def test_mistakes(tiny, tmp_path, arguments, words):
    line = refused("reproduce", *arguments)
    assert all(word in line for word in words), line
    assert not any((tmp_path / "here").iterdir())


def test_cfr_br_with_few_buckets(tmp_path):
    """Rows of another game have no figure of the paper beside them, and decide nothing about it."""
    file = tmp_path / "small.game"
    file.write_text(library()["holdem.3-1"].replace("numRanks = 13", "numRanks = 3").replace("0 3 1", "0 1 1"))
    asked = Request(("PR-2",), str(file), 0.001, 1, tmp_path / "kept")
    found = REPRODUCTIONS["figure-4.11"].reproduce(asked, Quiet())
    (row,) = found.rows
    assert (row.name, row.paper, row.margin) == ("PR-2", None, None)
    judge, strategy, _ = Subject.of_run(tmp_path / "kept" / "PR-2").load(1)
    assert 0 < row.ours == pytest.approx(judge.problem.mbb(judge.exploitability(strategy)))
    assert all(verdict.verdict == OPEN for verdict in REPRODUCTIONS["figure-4.11"].verdicts(found))


def test_trunks_of_cfr_br(tmp_path, monkeypatch):
    """Each run has points of all trunks; what was found is kept, and a trunk that leaves no round is refused."""
    file, small = tmp_path / "small.game", library()["short.4-1"]
    file.write_text(
        small.replace("Ranks = 5", "Ranks = 4").replace("Suits = 4", "Suits = 2").replace("0 3 1 1", "0 1 1 1")
    )
    monkeypatch.setattr(figure_11_1, "FEWER", 3)
    only = "trunk 2, at first", "trunk 2, in the end", "trunk 3, in the end"
    asked = Request(only, str(file), 0.0001, 1, tmp_path / "kept", runs=2)
    found = figure_11_1.FIGURE.reproduce(asked, Quiet())
    assert tuple(row.name for row in found.rows) == only and all(len(row.runs) == 2 for row in found.rows)
    assert found.picture and found.picture.stat().st_size > 10_000
    ends = {row.name: row for row in found.rows}
    assert ends["trunk 2, at first"].more["iterations"] <= ends["trunk 2, in the end"].more["iterations"]
    assert ends["trunk 2, in the end"].runs != ends["trunk 3, in the end"].runs  # trunks come to different strategies
    monkeypatch.setattr(figure_11_1, "converge", None)
    assert figure_11_1.FIGURE.reproduce(asked, Quiet()).rows == found.rows
    with pytest.raises(RunError, match="3 rounds, and a trunk of 3 leaves none"):
        figure_11_1.FIGURE.reproduce(asked._replace(game="holdem.3-1"), Quiet())


def test_importing_the_command_is_quick():
    code = "import sys, kilt.cli, kilt_lab.cli.reproduce; sys.exit('numpy' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_options_are_checked_before_anything_is_done():
    with pytest.raises(RunError, match="no meaning here"):
        REPRODUCTIONS["table-2.1"].reproduce(Request(game="leduc"), Quiet())


@pytest.mark.slow
def test_answers_to_orange(tmp_path):
    """A panel of figure 6.2 on Kuhn: no answer wins more from Orange than the bound, and there is a picture."""
    found = REPRODUCTIONS["figure-6.2"].reproduce(
        Request(only=("c",), game="kuhn", out=tmp_path / "answers.png"), Quiet()
    )
    bound, *rows = [row for row in found.rows if row.unit == "mbb/g"]
    assert len(rows) == 18 and all(row.ours <= bound.ours + 1e-6 for row in rows)
    assert (tmp_path / "answers.png").stat().st_size > 10_000


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
    monkeypatch.setattr(figure_5_2, "distribution", lambda board: distribution(tuple(board)))
    for row in answer("reproduce", name)["rows"]:
        assert row["ours"] == pytest.approx(row["paper"], abs=6e-4)


@pytest.mark.parametrize("name", ["figure-4.4", "table-5.4-small"])
def test_abstracted_players_on_a_small_game(name, tmp_path, monkeypatch):
    """Every way, on decks of 20 and 12 cards."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    game = tmp_path / "short.game"
    game.write_text(library()["holdem.2-1"].replace("numRanks = 13", "numRanks = 5"))
    rows = REPRODUCTIONS[name].rows
    if name == "figure-4.4":
        picture = tmp_path / "curves.png"
        said = answer("reproduce", name, "--game", game, "--minutes", 0.005, "--threads", 1, "--out", picture)
        assert picture.read_bytes()[:4] == b"\x89PNG"
        assert {row["information_sets"] for row in said["rows"]} == {4 * 5 + 12 * 25}
    else:  # the abstractions with imperfect recall have more buckets than there are hands before the flop
        rows = [row for row in rows if row.startswith("PR-KE-KO")]
        only = [part for row in rows for part in ("--only", row)]
        game.write_text(
            library()["short.4-1"].replace("numSuits = 4", "numSuits = 3").replace("Ranks = 5", "Ranks = 4")
        )
        said = answer("reproduce", name, "--game", game, "--minutes", 0.005, "--threads", 1, *only)
        assert [row["limit_holdem"] for row in said["rows"]] == [282.856, 84.039]
    assert [row["name"] for row in said["rows"]] == list(rows)
    assert said["what"] == f"{REPRODUCTIONS[name].what} (here: {game})"
    for row in said["rows"]:
        assert row["iterations"] >= 1
        assert row["ours"] > 0
        assert row["unit"] == "mbb/g"


@pytest.fixture
def no_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    game = tmp_path / "short.game"
    game.write_text(NO_LIMIT)
    return str(game)


def test_post_processing_on_a_small_game(no_limit, tmp_path, monkeypatch):
    """Table 2 of [Brown15]: every rule against both opponents, on a deck of 12 cards; agents are kept."""

    def counted(minutes, **how):
        return SolverConfig(iterations=round(1e6 * minutes), **how)

    for name, value in {
        "SolverConfig": counted,  # agents that are slow to learn may play alike, and win nothing for certain
        "GAME": no_limit,
        "HANDS": 2000,
        "AGENT": ("IR-PHS-PHS 10-4-4-4", "1x, a"),
        "CLASSES": PublicPlan(2, 3, base="IR-PHS-PHS 10-6-6-6", codes=6),
        "OPPONENTS": {"A": ("IR-PHS-PHS 10-5-5-5", "75%, a"), "B": ("IR-KE-KO 10-6-6-6", "50%, 2x, a")},
    }.items():
        monkeypatch.setattr(tartanian7_table_2, name, value)
    asked = "reproduce", "tartanian7-table-2", "--minutes", 0.01, "--threads", 1, "--out", tmp_path / "out"
    rows = answer(*asked)["rows"]
    assert [row["name"] for row in rows] == list(REPRODUCTIONS["tartanian7-table-2"].rows)
    assert [row["paper"] for row in rows] == [30, 10, 55, 19, 35, 19, None, None, 39, 103]
    for row in rows:
        low, high = row["ci95"]
        assert low < row["ours"] < high
        assert row["hands"] == 200
    shown = kilt(*asked, "--only", "new-0.2 against B").stdout
    again = rows[-1]
    assert f"{again['ours']:.1f} ± {(again['ci95'][1] - again['ci95'][0]) / 2:.1f}" in shown


def test_classes_of_flops_on_a_small_game(no_limit, tmp_path, monkeypatch):
    """Figure 5 of [Schmid15], on a deck of 12 cards: averaging over bets tells more than hands that are played out."""
    small = {"GAME": no_limit, "CLASSES": 2, "PAPER": {6: 1.5}, "PACE": 10_000, "DEALS": 1000, "HANDS": 1000}
    for name, value in small.items():
        monkeypatch.setattr(schmid_figure_5, name, value)
    monkeypatch.setattr(schmid_figure_5, "plan_named", lambda name, cards: plan_named(name.replace("169", "10"), cards))
    out = tmp_path / "out"
    asked = "--minutes", 1, "--threads", 1, "--out", out, "--only", "6 buckets"
    monkeypatch.setitem(REPRODUCTIONS, "schmid-figure-5", replace(schmid_figure_5.FIGURE, rows=("6 buckets",)))
    found = answer("reproduce", "schmid-figure-5", *asked, "--runs", 1)
    (row,) = found["rows"]
    ((low, high),) = row["deals_ci95"]
    assert low < row["ours"] < high
    assert high - low < row["played_out_ci95"][1] - row["played_out_ci95"][0]
    assert row["iterations"] == [[10_000, 10_000]] and row["deals"] == 1000
    assert all(verdict["verdict"] == "not decided" for verdict in found["claims"])  # by one run
    public, plain = (CardAbstraction.load(out / f"{name}-6" / "cards") for name in ("public", "plain"))
    assert [this.buckets for this in public.rounds] == [this.buckets for this in plain.rounds]
    alike = [np.array_equal(mine.table, theirs.table) for mine, theirs in zip(public.rounds, plain.rounds, strict=True)]
    assert alike == [True, False, True, True][: len(alike)]

    shutil.rmtree(out / "plain-6")  # a run that is done is not asked for its agents again
    (more,) = answer("reproduce", "schmid-figure-5", *asked, "--runs", 2)["rows"]
    assert more["runs"][0] == row["ours"] and len(set(more["runs"])) == 2
    assert not (out / "plain-6").exists() and (out / "plain-6-run-1").exists()


def test_estimators_and_portfolios_on_a_small_game(tmp_path, monkeypatch):
    """Tables 7.1 to 7.4 and 8 of [Johanson16], on Leduc hold'em; the logs that they share are judged once."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    solution = table_7.Style("IR-PHS-PHS 3-3")
    styles = {
        "S2298": solution,
        "CFR8": table_7.Style("IR-PHS-PHS 2-2"),
        "Orange": solution._replace(tilt=(70, 0, 0, 70)),
    }
    for name, value in {
        "GAME": "leduc",
        "HANDS": 60,
        "DEALS": 256,
        "SolverConfig": lambda minutes, threads, seed: SolverConfig(iterations=500, threads=threads, seed=seed),
        "AGENTS": styles,
        "OPPONENT_STYLE": solution._replace(tilt=(0, 0, -50, 0)),
    }.items():
        monkeypatch.setattr(table_7, name, value)
    monkeypatch.setattr(table_8, "DEALS", 10)
    monkeypatch.setattr(table_8, "MATCHES", 2)
    asked = "--threads", 1, "--out", tmp_path / "out", "--runs"
    found = {}
    for name in ("table-7.1", "table-7.2", "table-7.3", "table-7.4", "table-8"):
        said = answer("reproduce", name, *asked, 1)
        assert {one["verdict"] for one in said["claims"]} == {"not decided"}  # one set of agents decides nothing
        rows = said["rows"]
        assert [row["name"] for row in rows] == list(REPRODUCTIONS[name].rows)
        found |= {(name, row["name"]): row for row in rows}
        if name == "table-7.1":
            judged = sorted(tmp_path.glob("out/*.json"))
            kept = [file.stat().st_mtime_ns for file in judged]
            assert [file.name for file in judged] == ["S2298-60.json"]
    assert [file.stat().st_mtime_ns for file in judged] == kept
    money = found["table-7.1", "S2298 basic"]
    assert (money["paper"], money["paper_rmse"], money["effective_hands"]) == (5103, 161, 60)
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
    assert plain["paper"] == 1 and plain["runs"] == [plain["ours"]] == [sum(plain["matches"][0])]
    assert [sum(match.values()) for match in plain["chosen"][0]] == [20, 20]
    assert {*plain["chosen"][0][0]} == {"S2298", "CFR8", "Orange"}
    (older,) = judged  # one that an older version has kept, without what partial information changes
    older.write_text(older.read_text().replace('"hidden"', '"nonesuch"'))
    again, other = answer("reproduce", "table-7.3", *asked, 2, "--only", "S2298 basic")["rows"][0]["runs"]
    assert '"hidden"' in older.read_text()
    assert again == money["ours"] != other and (tmp_path / "out" / "run-1" / "S2298-60.json").exists()


def test_limits_of_deviations_off_policy(monkeypatch):
    """Three ends that one agent comes to in 4, 2 and 2 of 8 hands, and the judged one in 2, 2 and 4; one it alone."""
    hands, pays = np.array([0, 0, 1, 1, 2, 2, 2, 2]), np.array([3.0, -1.0, 5.0])
    likely, judged = np.array([4, 2, 2]) / 8, np.array([2, 2, 4]) / 8
    ratio = (likely / judged)[hands]
    exact = np.sqrt(likely @ (judged / likely * pays) ** 2 - (judged @ pays) ** 2)
    found = table_7._limit(pays[hands] * ratio, ratio)
    assert found["deviation"] == pytest.approx(exact)
    assert found["largest_share"] == pytest.approx(50 / (2 * 4.5 + 2 + 4 * 50))
    assert found["at_least"] < exact
    many = np.tile(pays[hands] * ratio, 10**5), np.tile(ratio, 10**5)
    assert 0.99 < table_7._limit(*many)["at_least"] / exact < 1
    monkeypatch.setattr(table_7, "CAP", 1.5)
    assert 0 < table_7._limit(*many)["at_least"] / exact < 0.99
    more = table_7._limit(np.append(pays[hands] * ratio, 0), np.append(ratio, 0))  # what the other never does
    assert more["largest_share"] == found["largest_share"]


def test_tilts_and_overfitting(tmp_path, monkeypatch):
    """Differences to no tilt over several abstractions; real exploitability beside that inside the abstraction."""
    for name, value in {"KINDS": ("PHS-PHS",), "FEWEST": 1, "MOST": 2, "ITERATIONS": 5}.items():
        monkeypatch.setattr(tilts, name, value)
    monkeypatch.setattr(figure_2_6, "FIRST", 0)
    monkeypatch.setattr(figure_2_6, "LAST", 2)
    asked = Request(game="leduc", out=tmp_path / "tilts.png", threads=1, runs=3)
    found = REPRODUCTIONS["figure-2.5"].reproduce(asked._replace(only=("+7%", "-25%")), Quiet())
    rows = [row.figures() for row in found.rows]
    assert [row["tilt"] for row in rows] == [[7, 0, 0, 7], [-25, 0, 0, -25]]
    assert rows[0]["paper"] == pytest.approx(-5.81)
    for row in rows:
        assert list(row["abstractions"].values()) == list(row["runs"])
        assert [name.partition(", ")[2] for name in row["abstractions"]] == ["seed 0", "seed 1", "seed 2"]
        assert row["ours"] == pytest.approx(row["exploitability"] - row["without"])
        assert row["ci95"][0] < row["ours"] < row["ci95"][1]
    assert found.picture.stat().st_size > 10_000
    found = REPRODUCTIONS["figure-2.6"].reproduce(asked._replace(out=tmp_path / "curve.png"), Quiet(looks=2))
    rows = {row.name: row for row in found.rows}
    curves = [*rows["rise"].more["curves"].values()]
    assert len(curves) == 2  # then somebody has stopped it
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
    ]

    def verdict(slack):
        return Claim("", "", slack).verdict(rows).verdict

    assert verdict(claims.lower("low", "high")) == "holds"  # by about 1 in each run, whatever the runs come to
    assert verdict(claims.higher("low", "high")) == "does not hold"
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
    return {claim.says: claim.verdict(rows).verdict for claim in entry.claims}


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
    assert table_8.outcome(won) == wanted


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
        (found,) = verdicts(table_8.TABLE, rows(best, money)).values()
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
    assert one_of(verdicts(figure_11_1.FIGURE, rows), "end alike") == wanted


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
    found = verdicts(table_7.TABLE_7_3, rows)
    for name in names:
        wanted = unbiased if name == "all-cards" else biased
        assert one_of(found, f"on policy {name} is ", "biased") == wanted


def test_limits_of_money_are_decided_over_runs():
    """[Johanson16 table 7.2]: a lower bound of a limit may show that it is large, never that it is small."""

    def found(bounds, deviations):
        limit = Row.of_runs("off basic limit", bounds, "", more={"least_bounds": bounds})
        on = Row.of_runs("on basic", deviations, "")
        return one_of(verdicts(table_7.TABLE_7_2, [limit, on]), "4 times as much")

    assert found([40_000.0, 45_000.0, 42_000.0], [5200.0, 5300.0, 5250.0]) == "holds"
    assert found([4_000.0, 4_500.0, 4_200.0], [5200.0, 5300.0, 5250.0]) == "not decided"
    assert found([40_000.0, 10_000.0, 42_000.0], [5200.0, 5300.0, 5250.0]) == "not decided"
    assert found([40_000.0], [5200.0]) == "not decided"


def answers(*points):
    """A curve of an answer by p: what is won from Orange, exploitability, and what is won from the model."""
    return [figure_6.Point(share, risk, won, model, 0.0) for share, (won, risk, model) in enumerate(points)]


BOUND = 30.0
SOUND = answers((8, 3, 10), (12, 4, 15), (20, 5, 20))  # wins more and more
SPOILT = answers((8, 3, 10), (20, 40, 30), (10, 300, 40))  # wins less again in the end
POOR = answers((8, 3, 10), (-30, 200, 60), (-400, 900, 90))  # wins less than an equilibrium
SMALL = answers((8, 3, 10), (8.5, 5, 12), (8, 40, 13))  # of which nobody notices much, below P_max = 1


def curves_of_figure_6(figure, curve, few, own):
    """Curves of one run, where data are many, few, or of self-play."""
    most = figure_6.Setting(games=figure_6.GAMES[-1], confidence="" if figure == "figure-6.1" else "0-10-linear")
    found = {most._replace(games=games): few for games in figure_6.SCARCE}
    found |= {most: curve, most._replace(against=figure_6.SELF): own}
    if figure == "figure-6.2":
        found |= {most._replace(confidence=name): SOUND for name in ("10-step", "s-curve")}
        found |= {most._replace(confidence=name): SPOILT for name in ("", "1-step")}
    return found


@pytest.mark.parametrize("figure", ["figure-6.1", "figure-6.2"])
def test_claims_of_figure_6_are_those_of_the_thesis(figure):
    """[Johanson16 §§6.4, 6.6]: all hold where curves are what the thesis says of them, and none where it is turned."""

    def decided(*runs):
        runs = [figure_6.shapes(figure, run, BOUND) for run in runs]
        rows = [Row.of_runs(row, [one[row] for one in runs], "mbb/g") for row in runs[0]]
        assert {row.name for row in rows} == set(figure_6.SHAPES[figure])
        return verdicts(REPRODUCTIONS[figure], rows)

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
    linear = figure_6.Setting(games=1000, confidence="0-10-linear")
    shapes = figure_6.shapes("figure-6.2", found | {linear: curve}, BOUND)
    rows = [Row.of_runs(row, [value] * 3, "mbb/g") for row, value in shapes.items()]
    assert one_of(verdicts(REPRODUCTIONS["figure-6.2"], rows), "marginally") == wanted


def test_everything_in_small(tmp_path, monkeypatch):
    """Claims and verdicts of all, in one table; one that fails does not end the others. Every entry has claims."""
    assert all(entry.claims for entry in REPRODUCTIONS.values())
    small = {name: REPRODUCTIONS[name] for name in ("table-4.1", "figure-3.2", "table-2.1")}
    small["figure-3.2"] = replace(small["figure-3.2"], quick=Request(("cs",), "leduc", 0.001, runs=2))
    small["table-2.1"] = replace(small["table-2.1"], quick=Request(device="nonesuch"))
    monkeypatch.setattr("kilt_lab.reproduce.REPRODUCTIONS", small)
    result = kilt("reproduce", "--all", "--quick", "--out", tmp_path / "here", "--json", code=1)
    said = json.loads(result.stdout)
    assert [one["name"] for one in said["reproductions"]] == ["table-4.1", "figure-3.2"]
    assert "nonesuch" in said["failed"]["table-2.1"]
    counted, curves = said["reproductions"]
    assert {one["verdict"] for one in counted["claims"]} == {"does not hold"}
    assert [one["verdict"] for one in curves["claims"]] == ["not decided"] * 3  # two runs have no interval
    assert {len(row["runs"]) for row in curves["rows"]} == {2}
    assert curves["picture"] == str(tmp_path / "here" / "kilt-figure-3.2.png")
    assert "goes with" in refused("reproduce", "--all", "--minutes", 1)


def test_classes_of_flops_that_are_left(tmp_path, monkeypatch):
    """Algorithm 3 as printed runs into few classes; the agreement of classes does not depend on their names."""
    points = np.random.default_rng(0).random((95, 2))
    apart = np.abs(points[:, None] - points).sum(axis=2).astype(np.float32)
    monkeypatch.setattr(flop_classes, "compared", lambda deal, public, folder, threads, watcher: (None, apart))
    asked = Request(game="short.nolimit.2p", out=tmp_path, runs=3)
    found = REPRODUCTIONS["tartanian7-algorithm-3"].reproduce(asked, Quiet())
    printed, moved = found.rows
    assert printed.ours < moved.ours == moved.paper == 31
    verdicts = REPRODUCTIONS["tartanian7-algorithm-3"].verdicts(found)
    assert [one.verdict for one in verdicts] == ["does not hold", "holds"]
    one, other = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 2, 2])
    assert flop_classes.adjusted_rand_index(one, 2 - other) == pytest.approx(0.242424, abs=1e-6)  # scikit-learn's
    ace, king, queen, deuce = 48, 44, 40, 0
    flops = np.array([[ace, king, queen], [ace, king + 1, deuce], [king, king + 1, queen]])
    kinds = [is_so(flops, FULL).tolist() for is_so in flop_classes.KINDS.values()]
    assert kinds == [[True, False, False], [False, False, True], [True, False, False]]


@pytest.mark.parametrize("arguments", [("table-4.1",), ("--all",)])
def test_rows_so_far_after_ctrl_c(arguments, monkeypatch):
    """What was found is printed, for people and for programs, without verdicts on what was stopped."""

    def stopped(asked, watcher):
        watcher.signals.append(signal.SIGINT)
        return ReproductionResult("half of it", [Row("1-round", 14.52, 14.0, "kB", 0.0, {})])

    small = {"figure-5.2": REPRODUCTIONS["tartanian7-sizes"], "table-4.1": replace(table_4_1.TABLE, run=stopped)}
    monkeypatch.setattr("kilt_lab.reproduce.REPRODUCTIONS", small)
    said = json.loads(kilt("reproduce", *arguments, "--json", code=130).stdout)
    shown = kilt("reproduce", *arguments, code=130).stdout
    if arguments == ("--all",):
        assert ([one["name"] for one in said["reproductions"]], said["stopped"]) == (["figure-5.2"], "table-4.1")
        assert "holds" in shown
    else:
        assert ([row["ours"] for row in said["rows"]], said["claims"], said["stopped"]) == ([14.0], [], True)
        assert "14.52" in shown and "Claims" not in shown


def test_sizes_of_tartanian7_and_rules_on_all_decisions():
    """Latency is hidden where it is shorter than the work; a rule that does nothing leaves exploitability alone."""
    said = answer("reproduce", "tartanian7-sizes")
    assert {one["verdict"] for one in said["claims"]} == {"holds"}
    assert said["rows"][-1]["share"] == pytest.approx(0, abs=1e-9) and said["rows"][-1]["paper_share"] == 0.004
    assert tartanian7_sizes.latency_share(latency=0.1) > 0.5
    game = VectorGame(load_game("leduc"))
    table = public_table(game, "call-or-raise")
    idle, pure = (postprocessing.post_processed(game, table, rule_named(name)) for name in ("none", "bets-1-1-1"))
    assert game.exploitability(idle) == pytest.approx(game.exploitability(table))
    assert np.array_equal(pure > 0, table > 0)  # both actions are equally likely, and stay so


def test_post_processing_by_exact_exploitability(monkeypatch):
    """Where all of the family is there, a search over it is judged by the runs that it did not see."""
    monkeypatch.setattr(postprocessing, "FAMILY", ("bets-1-0-0", "bets-0.2-1-1", "bets-1-0-0.15"))
    rows = tuple(f"{rule}, rough" for rule in postprocessing.FAMILY)
    *found, search = postprocessing.TABLE.run(Request(rows, runs=2), Quiet()).rows
    nothing, *rules = found
    assert nothing.runs == pytest.approx([0.0, 0.0], abs=1e-9) and nothing.more["before"] > 0
    best = min(rules, key=lambda row: row.runs[0])
    assert (search.more["rule"] + ", rough", search.ours) == (best.name, best.runs[1])
    stopped = stopped_early(postprocessing.TABLE, Request(rows))
    assert [row.runs for row in stopped.rows] == [row.runs[:1] for row in found]


def test_sampling_by_exact_exploitability(monkeypatch):
    """Algorithm 4 as printed is biased on Leduc hold'em; external sampling and pure CFR have as much time."""
    monkeypatch.setattr(algorithm_4, "NODES", 400_000)
    found = REPRODUCTIONS["tartanian7-algorithm-4"].reproduce(Request(algorithm_4.ROWS[:2], runs=3), Quiet())
    printed, weighted = found.rows
    assert printed.ours > 1.2 * weighted.ours and printed.more["deals"] == pytest.approx(
        weighted.more["deals"], rel=0.1
    )
    verdicts = [one.verdict for one in REPRODUCTIONS["tartanian7-algorithm-4"].verdicts(found)]
    assert verdicts == ["does not hold", *["not decided"] * 10]
    monkeypatch.setattr(sampling, "GAMES", ("kuhn",))
    monkeypatch.setattr(sampling, "solve_for", lambda solver, seconds, *_: solver.step(round(1e6 * seconds)))
    asked = Request(("external on kuhn", "pure on kuhn"), minutes=0.0005, runs=2)
    rows = REPRODUCTIONS["tartanian7-pure"].reproduce(asked, Quiet()).rows
    assert [row.name for row in rows] == list(asked.only) and all(0 < row.ours < 20 for row in rows)
    assert all(row.more["iterations"] == 30_000 for row in rows)


def test_weights_and_deals(monkeypatch):
    """Linear weights begin to differ after 16,384 iterations; flat trees draw other deals."""
    few = {name: (partial(case.exploitability, 2000), "mbb/g") for name, case in differences.CASES.items()}
    monkeypatch.setattr(differences, "ROWS", few)
    linear, equal, shared, apart = differences.TABLE.run(Request(runs=1), Quiet()).rows
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
    """Figure 1 of [Brown15], and classes of boards in play, with a private card and a board of one."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "tiny.game"
    file.write_text(library()["leduc"].replace("numRanks = 3", "numRanks = 6"))
    for module, settings in {
        tartanian7_figure_1: {
            "LARGE": "IR-PHS-PHS {}-3",
            "SMALL": "IR-PHS-PHS {}-2",
            "OPPONENTS": {"A": "IR-PHS-PHS {}-4"},
            "CLASSES": PublicPlan(2, 3, base="IR-PHS-PHS 6-6", codes=0),
            "LEARNT": 20_000,
        },
        public_classes: {"PLAIN": "IR-PHS-PHS {}-4", "INSIDE": "IR-PHS-PHS {}-2", "CLASSES": 2, "NODES": 20_000},
        fine_bets: {"AGENT": "IR-PHS-PHS {}-3", "OPPONENTS": {"A": "IR-PHS-PHS {}-4"}, "NODES": 20_000},
    }.items():
        for name, value in ({"GAME": str(file), "ACTIONS": "", "DEALS": 500} | settings).items():
            monkeypatch.setattr(module, name, value)
    points = [
        tartanian7_figure_1.Checkpoint(9000, times, name) for times in (1, 9) for name in ("A", "the smaller one")
    ]
    points.append(points[-1]._replace(rule="purification-after-first"))
    monkeypatch.setattr(tartanian7_figure_1, "ROWS", {str(point): point for point in points})
    found = tartanian7_figure_1.FIGURE.run(Request(out=tmp_path / "figure.png", runs=2), Quiet())
    direct, purified = found.rows[-2:]
    assert direct.name == "0.009M nodes, 9 times as many cores, against the smaller one"
    assert purified.name == f"{direct.name}, purified" and purified.runs != direct.runs
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    first, second = (found.rows[place].ours - found.rows[place + 2].ours for place in (0, 1))
    assert first < 0 and second < 0  # nine times as many nodes are better, against whomever
    stopped = stopped_early(tartanian7_figure_1.FIGURE, Request(out=tmp_path / "early.png"))
    assert [row.runs for row in stopped.rows] == [row.runs[:1] for row in found.rows] and stopped.picture.exists()
    rows = stopped_early(public_classes.TABLE, Request(("schmid, medoids", "schmid, average"))).rows
    assert [row.name for row in rows] == ["schmid, medoids", "schmid, average"]
    assert all(0 < abs(row.ours) < 2000 for row in rows)
    monkeypatch.setattr(fine_bets, "VARIATIONS", ("bets-0-1-1", "bets-1-0-0.15"))
    rules = ("none", "purification-after-first", "new-0", "bets-0-1-1", "bets-1-0-0.15")
    asked = Request(tuple(f"{rule} against A" for rule in rules))
    *rows, search = fine_bets.TABLE.run(asked._replace(runs=2), Quiet()).rows
    assert [row.runs for row in stopped_early(fine_bets.TABLE, asked).rows] == [row.runs[:1] for row in rows]
    won = {row.name.partition(" ")[0]: row.runs for row in rows}
    assert won["new-0"] == won["bets-0-1-1"] and won["none"] != won["purification-after-first"]
    assert np.mean(won["new-0"]) < np.mean(won["none"])  # whoever folds whenever he sometimes does loses
    best = max(("bets-0-1-1", "bets-1-0-0.15"), key=lambda rule: won[rule][0])
    assert search.more["rule"] == best
    assert search.ours == pytest.approx(won[best][1] - won["purification-after-first"][1])


def test_post_processing_is_judged_by_matches_and_by_local_best_response(tmp_path):
    """A small run: every rule against the best, LBR with off-tree sizes; claims follow the intervals."""
    table = post_processing_safety
    measures = table.MATCH, table.TREE
    names = [table.row_name("demo", rule, measure) for rule in ("none", "new-0.2") for measure in measures]
    asked = Request(only=tuple(names), game="short.nolimit.2p", minutes=0.01, threads=1, out=tmp_path, runs=1)
    found = table.TABLE.reproduce(asked, Quiet())
    assert [row.name for row in found.rows] == names and {row.unit for row in found.rows} == {"mbb/h"}
    best = found.rows[0].more["best"]
    assert best in table.RULES
    assert all(row.ours == 0 for row in found.rows if row.name == table.row_name("demo", best, table.MATCH))
    rows = [Row.of_runs(table.row_name("demo", "none", table.MATCH), (-20.0, -21.0, -22.0), "mbb/h")]
    for measure in table.ROUNDS:
        for rule, won in (("none", 900.0), ("new-0.2", 2000.0)):
            rows.append(Row.of_runs(table.row_name("demo", rule, measure), (won, won + 9, won - 9), "mbb/h"))
    verdicts = [one.verdict for one in table.TABLE.verdicts(ReproductionResult("", rows))]
    assert verdicts == ["holds", "holds", "not decided", "not decided"]
    rows[0] = Row.of_runs(rows[0].name, (-70.0, -71.0, -72.0), "mbb/h")
    assert table.TABLE.verdicts(ReproductionResult("", rows))[0].verdict == "does not hold"
    assert table.config_sizes(["1x, a / 50%, 1x, a; 1x, a"]) == ["50%", "1x", "a", "1x", "a"]
