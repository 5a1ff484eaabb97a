"""Best responses flop by flop, against walks of all boards at once."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import kilt.cli.evaluate as command
from commands import answer, kilt, refused
from kilt.errors import RunError
from kilt.evaluate import flops
from kilt.evaluate.evaluator import evaluator_for
from kilt.evaluate.flops import FlopResponses, draw_flops, flop_walks, flop_weights
from kilt.evaluation import exploitability
from kilt.players.profile import StrategyRef
from kilt.tree.parts import drawn_tree, flop_tree
from kilt.tree.vector_arrays import FOLLOW
from kilt.tree.walks import Walk

GAME = """GAMEDEF
limit
numPlayers = 2
numRounds = 3
blind = 10 5
raiseSize = 10 10 20
firstPlayer = 2 1 1
maxRaises = 2 1 2
numSuits = 2
numRanks = 4
numHoleCards = 2
numBoardCards = 0 2 1
END GAMEDEF
"""
CONFIG = """
game = "small.game"
cards = "IR-KE-KO 3-2-2"
[solver]
iterations = 3000
seed = 1
[agent]
post = "purification"
"""


class Quiet:
    """Nobody before the screen; may stop after some looks."""

    def __init__(self, looks=None):
        self.looks = looks

    def say(self, text, takes=None):
        assert takes is None or takes >= 0

    def show(self, what, done, left):
        assert 0 <= done <= 1

    def stopped(self):
        self.looks = None if self.looks is None else self.looks - 1
        return self.looks is not None and self.looks < 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on an abstract game of three rounds."""
    folder = tmp_path_factory.mktemp("flops")
    (folder / "small.game").write_text(GAME)
    (folder / "small.toml").write_text(CONFIG)
    kilt("solve", folder / "small.toml", "--out", folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def judged(run):
    """The problem and the strategy of the run, and what best responses win from it by a walk over all boards."""
    evaluator, strategy, _ = StrategyRef.of_run(run).load()
    return evaluator.problem, strategy, evaluator.response_values(strategy)


def test_draws_are_right_in_the_mean(judged):
    """A board that is drawn stands for all of its round; suits that were not drawn are averaged over."""
    walks = flop_walks(*judged[:2])
    game, tree, walk = walks.game, walks.game.tree, Walk(0, (FOLLOW,), walks.table, walks.table)
    total, wanted = 0.0, 0.0
    for flop in range(tree.board_start[1], tree.board_start[2]):
        part = flop_tree(tree, flop - tree.board_start[1])
        mine, theirs = walks.layouts(part)
        wanted = wanted + game.flop_values(walk._replace(own_layout=mine, their_layout=theirs), part)
        for turn in range(tree.first_board[flop], tree.first_board[flop + 1]):
            part = drawn_tree(tree, (flop, turn))
            mine, theirs = walks.layouts(part)
            chance = tree.weight[flop] * tree.weight[turn] / np.prod(part.weight[1:3], dtype=np.float64)
            total = total + chance * game.flop_values(walk._replace(own_layout=mine, their_layout=theirs), part)
    np.testing.assert_allclose(total, wanted, atol=1e-12)


def test_flops_add_up_in_any_order(judged):
    """[Johanson16 §2.4]: subgames are independent of each other."""
    problem, strategy, wanted = judged
    walks = flop_walks(problem, strategy)
    boards = [flop_tree(walks.game.tree, flop) for flop in range(len(flop_weights(walks.game)))]
    assert sum(len(part.board) - 1 for part in boards) == len(walks.game.tree.board) - 1
    for order in (range(len(boards)), np.random.default_rng(0).permutation(len(boards)).tolist()):
        for seat in (0, 1):
            total = sum(walks.best_response_values(flop, seat) for flop in order)
            assert walks.total_value(seat, total) == pytest.approx(wanted[seat], rel=1e-9)
            response = walks.first_round_response(seat, total.copy())
            assert walks.first_round_value(seat, response, total) == pytest.approx(wanted[seat], rel=1e-9)


def test_what_was_stopped_goes_on(judged, tmp_path, monkeypatch):
    problem, strategy, wanted = judged
    monkeypatch.setattr(flops, "CHECKPOINT_SECONDS", 0.0)
    walks, done = flop_walks(problem, strategy), []
    for looks in (1, 2, None):
        found = FlopResponses.open(walks, "mine", "game", tmp_path / "kept")
        found.compute(Quiet(looks))
        done.append(found.done)
    assert 0 < done[0] < done[1] < done[2] == len(found.work)
    assert found.response_values() == pytest.approx(wanted, rel=1e-9)


def test_samples_are_without_bias_but_for_the_first_round(judged, tmp_path):
    """In the mean over all single draws, a given response wins what it wins on all flops."""
    problem, strategy, wanted = judged
    walks = flop_walks(problem, strategy)
    shares = flop_weights(walks.game) / flop_weights(walks.game).sum()
    assert abs(np.bincount(draw_flops(walks.game, 20_000), minlength=len(shares)) / 20_000 - shares).max() < 0.02
    for seat in (0, 1):
        values = [walks.best_response_values(flop, seat) for flop in range(len(shares))]
        response = walks.first_round_response(seat, sum(values))
        single = [
            walks.first_round_value(seat, response, own / share) for own, share in zip(values, shares, strict=True)
        ]
        assert shares @ single == pytest.approx(wanted[seat], rel=1e-9)
    covered, exact = 0, sum(wanted) / 2
    kept = {flop: [walks.best_response_values(flop, seat) for seat in (0, 1)] for flop in range(len(shares))}
    for seed in range(40):
        draws = draw_flops(walks.game, 12, seed)
        found = FlopResponses.open(walks, "mine", "game", tmp_path / str(seed), draws)
        found.values = np.array([kept[flop] for flop in found.flops.tolist()])
        estimate = found.estimate()
        assert estimate.low <= estimate.high
        covered += estimate.interval[0] <= exact <= estimate.interval[1]
    assert covered >= 36


def test_the_command(run, judged, monkeypatch):
    problem, _, wanted = judged
    whole = answer("evaluate", "exploitability", run)
    monkeypatch.setattr(command, "LONG", 0.0)
    monkeypatch.setattr(flops, "MEASURING_SECONDS", 0.0)
    ours = answer("evaluate", "exploitability", run, "--threads", 2)
    assert ours["best_response_values"] == pytest.approx(wanted, rel=1e-9)
    assert {*whole} - {*ours} == {"value"}
    shutil.rmtree(run / "best-responses")
    assert answer("evaluate", "exploitability", run, "--threads", 2, "--engine", "local") == ours
    shown = kilt("evaluate", "exploitability", run)
    assert "exploitability" in shown.stdout
    assert "takes about" not in shown.stderr  # what is done is done
    some = answer("evaluate", "exploitability", run, "--flops", 3, "--seed", 4)
    assert some["ci95"][0] <= some["exploitability"] <= some["ci95"][1]
    assert (some["flops"], some["ci95_mbb"][1]) == (3, problem.mbb(some["ci95"][1]))
    one = answer("evaluate", "exploitability", run, "--flops", 1)
    assert one["ci95"][1] is None
    assert "95% interval" in kilt("evaluate", "exploitability", run, "--flops", 3, "--seed", 4).stdout
    assert "use 1 to 1" in refused("evaluate", "exploitability", run, "--flops", 0)
    line = refused("evaluate", "exploitability", run, "--out", run.parent / "no")
    assert "are not abstract strategies" in line
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 0.0)
    assert "a lower bound of exploitability" in refused("evaluate", "exploitability", run)


def test_agents_are_judged_as_they_play(run, judged):
    """By their own rule, or by one that is given; the agent's own probabilities, bucket by bucket, say the same."""
    problem, strategy, _ = judged
    agent = run.parent / "agent"
    kilt("export", run, agent)
    exported, ruled, plain = (
        answer("evaluate", "exploitability", who) for who in (agent, f"{run}@purification", f"{run}@none")
    )
    assert exported["best_response_values"] == ruled["best_response_values"]
    assert plain["exploitability"] == pytest.approx(
        answer("evaluate", "exploitability", run)["exploitability"], abs=1e-6
    )
    pure = np.zeros(len(strategy))
    for first, last, count in zip(
        problem.abstract.first, problem.abstract.first[1:], problem.abstract.betting.nodes.children, strict=False
    ):
        if last > first:
            rows = strategy[first:last].reshape(-1, count)
            pure[first:last] = ((rows == rows.max(axis=1, keepdims=True)) & (rows > 0)).ravel()
    assert ruled["best_response_values"] == pytest.approx(evaluator_for(problem).response_values(pure), rel=1e-6)


def test_both_strategies_of_a_run_are_judged(run, monkeypatch):
    """The average strategy and the one that is played, each by its own best responses, however they are walked."""
    agent = run.parent / "both"
    kilt("export", run, agent)
    both = answer("evaluate", "exploitability", run)
    average, played = both["average"], both["as_played"]
    assert (both["strategy"], average["strategy"], played["strategy"]) == (
        "average strategy",
        "average strategy",
        "as played: purification",
    )
    keys = "exploitability", "exploitability_mbb", "value", "best_response_values"
    assert [both[key] for key in keys] == [average[key] for key in keys]
    assert played["exploitability"] > 1.3 * average["exploitability"]
    for spec, key, other in ((f"{run}@none", "average", "as_played"), (f"{run}@purification", "as_played", "average")):
        one = answer("evaluate", "exploitability", spec)
        assert one[key]["best_response_values"] == pytest.approx(both[key]["best_response_values"], abs=1e-6)
        assert one[key]["strategy"] == one["strategy"] == both[key]["strategy"] and other not in one
    exported = answer("evaluate", "exploitability", agent)
    assert (exported["strategy"], exported["exploitability"]) == (played["strategy"], played["exploitability"])
    assert exported["average"]["exploitability"] == pytest.approx(average["exploitability"], abs=1e-6)

    assert exploitability(run) == average["exploitability"]
    assert exploitability(run, as_played=True) == exploitability(f"{run}@purification")
    assert exploitability(run, as_played=True) == exploitability(agent) == played["exploitability"]

    shown = kilt("evaluate", "exploitability", run).stdout
    assert all(word in shown for word in ("average strategy", "as played:", "purification"))
    monkeypatch.setattr(command, "LONG", 0.0)
    whole = answer("evaluate", "exploitability", run)
    assert whole["as_played"]["best_response_values"] == pytest.approx(played["best_response_values"])
    assert whole["average"]["best_response_values"] == pytest.approx(average["best_response_values"])
    some = answer("evaluate", "exploitability", run, "--flops", 3)
    assert some["average"]["ci95"] != some["as_played"]["ci95"]


def test_a_strategy_that_memory_does_not_hold_is_named(run, monkeypatch):
    """What is played is left out with a word on the side, and refused where it is asked for by name."""
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 400.0)
    said: list[str] = []
    (average,) = StrategyRef.all_of_run(run, said.append)
    assert average.strategy == "average strategy"
    assert said[0].startswith("as played: purification is not evaluated: post-processing takes 0.0 GB of memory")
    with pytest.raises(RunError, match="use a machine with more memory"):
        StrategyRef.of_run(Path(f"{run}@purification")).load()


def test_flops_of_other_games():
    assert "walked as a whole" in refused(
        "evaluate", "exploitability", "--game", "leduc", "--agent", "uniform", "--flops", 2
    )
