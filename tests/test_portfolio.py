"""Portfolios: who is picked for each hand, and what that comes to."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import answer, kilt, refused
from kilt.cli import app
from kilt.errors import PlayError
from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.log_estimates import estimate_from_log
from kilt.evaluate.portfolio import Portfolio, component_scores, upper_bounds
from kilt.games import load_game
from kilt.play.acpc import read_notes
from kilt.play.agent import BASELINES, draw_action
from kilt.play.columns import readable_hands
from kilt.play.dealer import Dealer
from kilt.play.match import play_match
from kilt.players.agents import load_agent
from test_estimators import Drawn, value

LEDUC = load_game("leduc")


@dataclass(frozen=True)
class Playing(Drawn):
    """A strategy of probabilities drawn at random, which is also played."""

    def act(self, observation):
        said = self.policy(observation.position, observation.board)
        shares = said.probabilities[:, LEDUC.deck.hole_index(observation.hand)]
        return draw_action(said.actions, shares.tolist(), observation.draw(len(observation.position.history)))


OPPONENT, MIXED = Playing("opponent", 3), Playing("mixed", 11)


def played(portfolio, hands, opponent=OPPONENT):
    """Who was chosen in a match, and what was won."""
    copies = []

    class Watched(Portfolio):
        def begin(self, game):
            copies.append(super().begin(game))
            return copies[-1]

    watched = Watched(portfolio.name, portfolio.components, portfolio.estimator, portfolio.explore, portfolio.window)
    match = play_match(LEDUC, (watched, opponent), hands, seed=1, duplicate=False)
    (copy,) = copies
    return copy, match.results


def test_a_portfolio_tends_to_its_best_component():
    """The exact value of those chosen, hand by hand: near that of the best of them, which nobody has told."""
    components = MIXED, BASELINES["always-raise"], BASELINES["always-fold"]
    exact = [np.mean([value(LEDUC, seat, agent, OPPONENT) for seat in (0, 1)]) for agent in components]
    best = int(np.argmax(exact))
    assert best == 1 and exact[best] - sorted(exact)[-2] > 1  # chips
    copy, _ = played(Portfolio("p", components), 400)
    assert copy.chosen[:3] == [0, 1, 2]
    won = np.array(exact)[copy.chosen]
    assert won[:40].mean() < won[200:].mean()
    assert won[200:].mean() > exact[best] - 0.2
    assert copy.chosen.count(best) > 0.8 * 400


def test_a_portfolio_of_one_plays_as_that_agent():
    copy, results = played(Portfolio("p", (MIXED,)), 60)
    assert results.tolist() == play_match(LEDUC, (MIXED, OPPONENT), 60, seed=1, duplicate=False).results.tolist()
    assert copy.chosen == [0] * 61


def test_bounds_are_those_of_ucb1_where_components_never_stand_in_for_each_other():
    rng = np.random.default_rng(1)
    won = [rng.normal(mean, 2, count) for mean, count in ((1, 30), (2, 70))]
    totals = np.zeros((6, 2, 2))
    for player, row in enumerate(won):
        own = len(row), row.sum(), (row**2).sum(), len(row), len(row), 0
        totals[:, player, player] = own
        totals[:, 1 - player, player] = len(row), 0, 0, 0, 0, len(row)  # all of the other's play is missing
    width = np.concatenate(won).std() * np.sqrt(2 * np.log(100) / [30, 70])
    assert upper_bounds(totals) == pytest.approx([row.mean() for row in won] + width)
    assert upper_bounds(totals, explore=0) == pytest.approx([row.mean() for row in won])
    assert upper_bounds(np.zeros((6, 2, 2))).tolist() == [np.inf, np.inf]


def test_all_hands_count_for_those_who_play_alike():
    """Two names for one strategy: each hand scores both, with weight 1 whoever played."""
    twin = Playing("twin", 11)
    hand = Dealer(LEDUC, 4).play(0, (MIXED, OPPONENT)).from_seat(0)
    found = component_scores(LEDUC, hand, MIXED, (MIXED, twin), estimator_named("basic"))
    assert found.T.tolist() == [[1, hand.won, hand.won**2, 1, 1, 0]] * 2


def test_only_hands_of_the_window_count():
    components = MIXED, Playing("other", 12)
    whole, _ = played(Portfolio("p", components, window=40), 40)
    copy, _ = played(Portfolio("p", components, window=10), 40)
    assert whole._totals[0].sum() == 2 * 40 and copy._totals[0].sum() == 2 * 10
    last = np.zeros_like(copy._totals)
    for player, found in list(copy._recent):
        last[:, :, player] += found
    assert copy._totals == pytest.approx(last, abs=1e-9)


def test_portfolios_by_name(tmp_path):
    agent = load_agent("portfolio:always-raise,probe,explore=0.5,window=200,estimator=all-cards")
    assert agent.name == "portfolio(always-raise,probe)" and agent.game is None
    assert (agent.explore, agent.window, agent.estimator.name) == (0.5, 200, "all-cards")
    for spec, words in {
        "portfolio:": "without components cannot play",
        "portfolio:probe,nobody": "unknown player 'nobody'",
        "portfolio:probe,window=two": "'window=two' of portfolio:.* is no number: use a number, such as window=200",
        "portfolio:probe,random,window=1": "a window of 1 hands does not hold one of each of 2 components",
        "portfolio:probe,explore=-1": "explore is -1.0, a factor of the width of bounds: use 0 or more",
        "portfolio:probe,explore=nan": "explore is nan",
        "portfolio:probe,explore=inf": "explore is inf",
        "portfolio:probe,estimator=luck": "unknown estimator 'luck'",
        "portfolio:probe,estimator=all-cards+aivat": r"all-cards\+aivat needs all cards, .*: use all-cards\+early",
    }.items():
        with pytest.raises(PlayError, match=words):
            load_agent(spec)
    with pytest.raises(PlayError, match="random raises to any of thousands of levels"):
        load_agent("portfolio:random,probe").begin(load_game("holdem.nolimit.2p"))
    own = tmp_path / "own.py"
    own.write_text("class Mute:\n    name = 'mute'\n    act = lambda self, observation: 'c'\n")
    said = refused("match", f"portfolio:{own}:Mute", "probe", "--game", "leduc")
    assert said == "mute has no policy: add a method `policy` to its class, or use a run"


def test_logs_say_who_was_chosen(tmp_path):
    log = tmp_path / "match.log"
    spec = "portfolio:always-fold,always-raise"
    said = kilt("match", spec, "always-call", "--game", "leduc", "--hands", 40, "--log", log)
    name = "portfolio(always-fold,always-raise)"
    assert said.stderr.startswith(f"{name} remembers earlier hands: its matches are played in order, by one process\n")
    noted = re.findall(r"# hand (\d+): portfolio\(.*\): (.*)\n", log.read_text())
    assert [int(number) for number, _ in noted] == list(range(40))
    assert {who for _, who in noted} == {"always-fold", "always-raise"}
    kilt("evaluate", "log", log, "--game", "leduc")  # comments do no harm


PLAYERS = "portfolio:probe,always-raise"


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The log of a duplicate match of a portfolio."""
    log = tmp_path_factory.mktemp("logged") / "match.log"
    kilt("match", PLAYERS, "always-call", "--game", "leduc", "--hands", 200, "--log", log)
    return log


def test_a_portfolio_is_judged_by_who_played_each_hand(logged):
    """Money is what was won, and all estimators are means over the hands of the components."""
    found = answer("evaluate", "log", logged, "--game", "leduc", "--player", PLAYERS)
    assert (found["hands"], found["duplicate"], found["left_out"]) == (200, True, {})
    (money,) = [row for row in found["estimates"] if row["estimator"] == "basic"]
    plain = answer("evaluate", "log", logged, "--game", "leduc")
    won = plain["mbb_per_hand"] if plain["players"][0] != "always-call" else -plain["mbb_per_hand"]
    assert money["mbb_per_hand"] == pytest.approx(won)
    hands, _ = readable_hands(logged.read_text(), LEDUC)
    notes, name = read_notes(logged.read_text()), found["player"]
    mean = 0.0
    for component in ("probe", "always-raise"):
        theirs = [hand for hand in hands if notes[hand.number] == [f"{name}: {component}"]]
        rows = estimate_from_log(LEDUC, theirs, name, BASELINES[component]).rows
        mean += len(theirs) / len(hands) * np.array([row.won.mean for row in rows])
    assert [row["mbb_per_hand"] for row in found["estimates"]] == pytest.approx(mean)


def test_others_are_judged_on_hands_of_a_portfolio(logged):
    """And a portfolio as a known opponent; values for AIVAT come from a component."""
    game = "--game", "leduc", "--estimator", "basic"
    other = answer("evaluate", "log", logged, *game, "--player", PLAYERS, "--as", "probe")
    assert other["judged"] == "probe" and other["hands"] == 200
    assert answer("evaluate", "log", logged, *game, "--player", "always-call", "--opponent", PLAYERS)["hands"] == 200
    same = answer("evaluate", "log", logged, *game, "--player", PLAYERS, "--as", PLAYERS)
    assert same["mbb_per_hand"] == answer("evaluate", "log", logged, *game, "--player", PLAYERS)["mbb_per_hand"]


def test_what_does_not_say_who_played_is_refused(logged, tmp_path):
    bare = tmp_path / "bare.log"
    bare.write_text(
        "".join(line for line in logged.read_text().splitlines(keepends=True) if not line.startswith("# hand"))
    )
    ask = "evaluate", "log", bare, "--game", "leduc", "--player"
    assert "does not say which component of portfolio(probe,always-raise) played" in refused(*ask, PLAYERS)
    told = "picks a component for each hand that it plays, and did not play these: evaluate one of probe, always-raise"
    assert told in refused(*ask, "always-call", "--as", PLAYERS)
    assert "depends on earlier hands" in refused("evaluate", "lbr", PLAYERS, "--game", "leduc")
    half = tmp_path / "half.log"  # some of the notes alone: those hands are judged, and the others are counted
    half.write_text(
        "".join(
            line for line in logged.read_text().splitlines(keepends=True) if not re.match(r"# hand \d?[13579]:", line)
        )
    )
    found = answer("evaluate", "log", half, *ask[3:], PLAYERS, "--estimator", "basic")
    reason = "no note of the log names a component of portfolio(probe,always-raise)"
    assert 0 < found["left_out"][reason] == 200 - found["hands"]


def test_notes_of_an_agent_go_with_the_log_of_its_dealer(logged, tmp_path):
    """Dealers call players by other names than their notes do."""
    log, text = tmp_path / "dealer.log", logged.read_text()
    states = [line.replace("portfolio(probe,always-raise)", "A") for line in text.splitlines() if "STATE" in line]
    notes = [line for line in text.splitlines() if line.startswith("# hand")]
    log.write_text("\n".join([*states, *notes]))
    ask = "--game", "leduc", "--player", PLAYERS, "--estimator", "basic"
    found = answer("evaluate", "log", log, *ask, "--name", "A")
    assert found["mbb_per_hand"] == answer("evaluate", "log", logged, *ask)["mbb_per_hand"]


def test_a_match_against_a_portfolio_is_judged():
    typed = "c\n" * 200
    args = ["play", PLAYERS, "--game", "leduc", "--match", "20", "--duplicate", "--seed", "3"]
    shown = CliRunner().invoke(app, args, input=typed)
    assert shown.exit_code == 0, shown.output
    judged = shown.output.partition("judged")[2]
    assert judged.count("deserved") == 2 and "all-cards+aivat" in judged and "left out" not in judged
