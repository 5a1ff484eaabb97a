"""The best agent that fits a machine: how it is chosen, built and resumed."""

import signal

import pytest

from commands import answer, kilt, refused, start, wait_for_checkpoint
from kilt.games import load_game
from kilt.players.agents import load_agent
from kilt.runs.machine_fit import AGENT_SIZES, VISITS, _memory, _planned, depths, plan_largest_agent
from kilt.strategy.blueprint import Blueprint

SHORT = "short.nolimit.2p"


def test_there_are_games_of_each_depth():
    assert list(depths()) == [20, 25, 50, 100, 200]
    for depth, name in depths().items():
        rules = load_game(name).rules
        assert set(rules.stacks) == {depth * rules.big_blind}


def test_more_time_and_memory_give_a_larger_agent(tmp_path):
    game = load_game(SHORT)
    rungs = [rung.cards.replace("169", "25") for rung in AGENT_SIZES]

    def chosen(hours, memory=None):
        fit = plan_largest_agent(game, SHORT, hours, 1, tmp_path, memory)
        return rungs.index(fit.plan.config.cards[0]), fit

    (low, short), (high, long) = chosen(0.0003), chosen(1.0)
    assert low < high
    assert sum(short.plan.size.infosets) < sum(long.plan.size.infosets)
    assert long.visits >= VISITS
    assert long.plan.config.solver.minutes == pytest.approx(long.seconds / 60)
    assert long.seconds + long.cost.seconds == pytest.approx(3600)
    middle = sum(_memory(_planned(AGENT_SIZES[at], game, SHORT, 1.0, 1)[1]) for at in (0, -1)) / 2
    between, tight = chosen(1.0, memory=middle)
    assert between < high
    assert tight.memory <= middle


def test_the_opponent_in_training_has_finer_buckets():
    """A best response wins less against an agent that learnt against a finer opponent: see docs/lab/agents.md."""
    game = load_game(SHORT)
    smallest, largest = (_planned(AGENT_SIZES[at], game, SHORT, 1.0, 1)[0] for at in (0, -1))
    assert (smallest.config.cards, smallest.config.opponent_cards) == (
        ("IR-PHS-PHS 25-5-5-5",),
        "IR-PHS-PHS 25-50-50-50",
    )
    alone = _planned(AGENT_SIZES[0]._replace(opponent_cards=""), game, SHORT, 1.0, 1)[0]
    assert smallest.infosets > 2 * alone.infosets
    assert not largest.config.opponent_cards  # this deck has too few hands for the opponent of a large agent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("huge", "--bb", 50), "no kind of agent 'huge': use strong or house"),
        (("strong",), "--bb N"),
        (("strong", "--bb", 50, "--game", SHORT), "--bb N"),
        (("strong", "--game", SHORT, "--json"), "add --plan"),
        (("strong", "--bb", 75), "stacks of 75 big blinds: use 20, 25, 50, 100 or 200"),
        (("strong", "--bb", -1), "stacks of -1 big blinds"),
        (("strong", "--game", "bluff-1-1"), "no game of hold'em"),
        (("strong", "--game", SHORT, "--time", "0h"), "give more than 0"),
        (("strong", "--game", SHORT, "--time", "nanh"), "give more than 0"),
        (("strong", "--game", SHORT, "--time", "1e-9h"), "give at least"),
        (("strong", "--game", SHORT, "--memory", 0.01), "GB of memory, and 0.01 GB may be used"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments, words, tmp_path):
    assert words in refused("build", *arguments, "--out", tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_killed_build_is_resumed_by_the_same_command(tmp_path):
    run = tmp_path / "run"
    command = "build", "house", "--game", SHORT, "--time", "0.002h", "--out", run, "--threads", 1
    planned = answer(*command, "--plan")
    assert planned["game"] == SHORT
    assert not list(tmp_path.iterdir())
    child = start(*command)
    wait_for_checkpoint(run, child)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    config = (tmp_path / "run.toml").read_text()
    assert "its run resumes" in kilt(*command).output
    assert (tmp_path / "run.toml").read_text() == config
    solved = Blueprint.load(run)
    assert solved.figures["iterations"] > 0
    assert (load_agent(str(tmp_path / "run.agent")).blueprint.shares == solved.shares).all()
    kilt(*command)  # nothing is left to do
    assert Blueprint.load(run).figures == solved.figures
    assert "is for short.nolimit.2p" in refused("build", "strong", "--bb", 50, "--out", run)
