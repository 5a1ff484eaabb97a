"""How well an agent defends: fold frequencies by a naive twin, and what betting any two cards really wins."""

import numpy as np
import pytest

from kilt.evaluate.defence import CHECKED, FIRST, KINDS, LEADS, defence, lines, raised_by
from kilt.evaluate.sanity import bluffs, first_raises, report
from kilt.games import load_game
from kilt.play.agent import BASELINES, Observation
from kilt.players.agents import load_agent
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import rule_named

GAME = load_game("holdem.nolimit.2p.50bb")


def test_folds_are_those_of_every_hand_one_by_one():
    """On one board, with an agent that mixes: weights and folds from the agent's answer to each observation."""
    agent = load_agent("house@none")
    rows = {(row.line, row.bet): row for row in defence(GAME, agent, boards=1, seed=4)}
    random = np.random.default_rng(4)
    board = tuple(random.choice(52, 5, replace=False).tolist())
    spots = [spot for spot in lines(GAME) if spot.bet == "1x"]
    assert {spot.kind for spot in spots} == {*KINDS} and len(spots) >= 7
    for spot in [spots[1], spots[3], spots[-1]]:
        seat, seen = spot.after.actor, board[: GAME.rules.board_size(spot.after.round)]
        hands = [hand for hand in GAME.holes.tolist() if not {*hand} & {*seen}][::9]
        whole = folds = 0.0
        every = [hand for hand in GAME.holes.tolist() if not {*hand} & {*seen}]
        for hand in every if len(seen) < 3 else every[::1]:
            weight = 1.0
            for before, action in GAME.positions.moves(spot.before):
                if before.actor == seat:
                    known = seen[: GAME.rules.board_size(before.round)]
                    shares = agent.probabilities(Observation(before, tuple(hand), known, 0))
                    weight *= sum(share for one, share in shares if one == action)
            shares = agent.probabilities(Observation(spot.after, tuple(hand), seen, 0))
            whole, folds = whole + weight, folds + weight * sum(share for one, share in shares if one == "f")
        row = rows[spot.line, "1x"]
        assert len(hands) > 100 and row.folds == pytest.approx(folds / whole, abs=1e-6)


def test_break_even_and_profit():
    """Betting a pot breaks even against half of all folds; chips and pots are those of the positions."""
    for name, folds in (("always-fold", 1.0), ("always-call", 0.0)):
        for row in defence(GAME, BASELINES[name], boards=2):
            assert row.folds == folds and row.raises == 0
            assert row.profit == pytest.approx(1.0 if folds else -row.chips / row.pot)
            if row.bet == "1x" and row.kind != FIRST:
                assert row.break_even == 0.5 and row.chips == row.pot
    opened = raised_by(GAME.start(), 1.0)
    assert max(opened.spent) == 300 and raised_by(opened, 0.0).history == "r300r500"
    assert raised_by(GAME.replay("r300r5000"), 1.0) is None


def test_no_rows_without_bet_sizes():
    assert defence(load_game("holdem.limit.2p"), BASELINES["always-call"], boards=1) == []


def test_rules_that_fold_too_much_are_found():
    """The shipped strategy after a rule of [Brown15]: bluffs profit wherever the river was checked down."""
    blueprint = Blueprint.load("house")
    played, raw = (report(blueprint, deals=200, rule=rule_named(rule)) for rule in ("new-0.2", "none"))
    names = {f"profit of betting any two cards, {kind}" for kind in (LEADS, CHECKED)}
    assert {finding.name for finding in played.off} >= names
    assert not names & {finding.name for finding in raw.off}
    by_line = [{row.line: row.profit for row in one.defence if row.bet == "1x"} for one in (played, raw)]
    assert all(by_line[0][line] > by_line[1][line] for line in by_line[0] if line.startswith("river"))
    assert played.data()["defence"][0].keys() >= {"line", "bet", "folds", "break_even", "profit"}
    assert list(bluffs(())) == [] and list(first_raises(load_agent("house"), ())) == []
