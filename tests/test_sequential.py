"""Matches that end once it is clear who wins: error rates, by simulation and by play."""

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt.errors import PlayError
from kilt.evaluate import matchup
from kilt.evaluate.sequential import apply_sequential_test, interval_margin, play_until_decided
from kilt.games.playable import load_holdem
from kilt.play.agent import BASELINES
from kilt.play.match import Match, play_match

LEDUC = load_holdem("leduc")


def drawn(mean, deviation=2000.0):
    """Parts of a match with results of heavy tails, as large pots have."""

    def part(hands, seed):
        random = np.random.default_rng(seed % 2**63)
        tails = random.choice([-1, 1], hands // 2) * random.pareto(2.5, hands // 2)
        return Match(("a", "b"), mean + deviation * tails, True, 1000)

    return part


def test_winners_are_named_wrongly_at_most_as_often_as_said():
    """800 matches between equals, looked at 20 times each. One look at a time would be wrong far more often."""
    wrong = naive = 0
    for seed in range(800):
        found = play_until_decided(drawn(0.0), 60_000, seed)
        wrong += found.winner is not None
        results, units = found.match.results, len(found.match.results)
        looks = [n for n in np.geomspace(500, units, 20).astype(int) if n <= units]
        naive += any(abs(results[:n].mean()) > 1.96 * results[:n].std() / n**0.5 for n in looks)
    assert wrong / 800 < 0.05 < 0.15 < naive / 800


def test_a_better_player_is_found_with_fewer_hands():
    found = [play_until_decided(drawn(400.0), 200_000, seed) for seed in range(20)]
    assert all(one.winner == "a" for one in found) and play_until_decided(drawn(-400.0), 200_000, 1).winner == "b"
    assert np.mean([one.match.hands for one in found]) < 20_000
    again = play_until_decided(drawn(400.0), 200_000, 3)
    assert np.array_equal(again.match.results, found[3].match.results)


def test_the_margin_is_that_of_the_formula():
    assert interval_margin(3.0, 5000, 0.05) == pytest.approx(3 / 5000 * (6000 * np.log(6000 / (1000 * 0.0025))) ** 0.5)
    assert interval_margin(3.0, 1, 0.05) == np.inf
    one = Match(("a", "b"), np.full(2000, 1.0), False, 2)
    assert (apply_sequential_test(one, 0.05).winner, apply_sequential_test(one, 0.05).margin) == ("a", 0.0)
    with pytest.raises(PlayError, match="the error rate is 1: give a probability between 0 and 1"):
        play_until_decided(drawn(0.0), 1000, 0, 1.0)


def test_parts_are_played_until_the_last_hand():
    parts = []
    part = drawn(0.0)
    found = play_until_decided(lambda hands, seed: parts.append(hands) or part(hands, seed), 5000, 1)
    assert found.winner is None and sum(parts) == found.match.hands == 5000 and all(hands % 2 == 0 for hands in parts)
    stopped = play_until_decided(part, 5000, 1, stop=lambda: True)
    assert stopped.match.hands == 1000


def test_the_command():
    asked = "match", "probe", "always-fold", "--game", "leduc"
    found = answer(*asked, "--hands", 50_000, "--until", "99%")
    assert found["winner"] == "probe" and found["hands"] == 1000 and found["error_rate"] == 0.01
    assert found["mbb_per_hand"] > found["sequential_margin"]
    said = kilt(
        "match", "always-call", "always-call", "--game", "leduc", "--hands", 100, "--until", "significant"
    ).stderr
    assert "not decided after 100 hands" in said and "error rate 0.05" in said
    assert "give a level from 50% to less than 100%" in refused(*asked, "--until", "often")
    assert "leave out one of them" in refused(*asked, "--until", "95%", "--log", "x.log")


def test_best_takes_the_narrower_interval(monkeypatch):
    """AIVAT's values may not fit the players: then its results vary more than what is won."""
    results = play_match(LEDUC, (BASELINES["random"], BASELINES["always-call"]), 200).results
    for factor, way in ((0.5, "aivat"), (2.0, "played")):
        match = Match(("a", "b"), factor * results, True, 2, "aivat", played=results)
        found = matchup._narrower(match)
        assert found.way == way and np.array_equal(found.results, results * min(factor, 1.0))
