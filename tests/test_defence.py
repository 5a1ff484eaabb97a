"""How well an agent defends: fold frequencies by a naive twin, and what betting any two cards really wins."""

import re

import numpy as np
import pytest

from kilt.abstraction.actions import actions_of
from kilt.evaluate.defence import (
    CHECKED,
    FIRST,
    KINDS,
    LEADS,
    _answer,
    betting_sequences,
    gain_over_checking,
    measure_defence,
    position_after_raise,
)
from kilt.evaluate.sanity import check_blueprint, check_bluffs, check_first_raises
from kilt.games import load_game
from kilt.games.subgame import pair_weight
from kilt.play.agent import BASELINES, Observation, PublicPolicy
from kilt.players.agents import load_agent
from kilt.search.ranges import free_hands
from kilt.solve.resolve import resolve
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import rule_named
from kilt.tree.navigation import NavigableTree

GAME = load_game("holdem.nolimit.2p.50bb")


def test_folds_are_those_of_every_hand_one_by_one():
    """On one board, with an agent that mixes: weights and folds from the agent's answer to each observation."""
    agent = load_agent("house@none")
    rows = {(row.line, row.bet): row for row in measure_defence(GAME, agent, boards=1, seed=4)}
    random = np.random.default_rng(4)
    board = tuple(random.choice(52, 5, replace=False).tolist())
    spots = [spot for spot in betting_sequences(GAME) if spot.bet == "1x"]
    assert {spot.kind for spot in spots} == {*KINDS} and len(spots) >= 7
    for spot in [spots[1], spots[3], spots[-1]]:
        seat, seen = spot.after.actor, board[: GAME.rules.board_size(spot.after.round)]
        hands = [hand for hand in GAME.holes.tolist() if not {*hand} & {*seen}][::9]
        whole = folds = 0.0
        every = [hand for hand in GAME.holes.tolist() if not {*hand} & {*seen}]
        for hand in every if len(seen) < 3 else every[::1]:
            weight = 1.0
            for before, action in GAME.positions.moves_to(spot.before):
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
        for row in measure_defence(GAME, BASELINES[name], boards=2):
            assert row.folds == folds and row.raises == 0
            assert row.profit == pytest.approx(1.0 if folds else -row.chips / row.pot)
            if row.bet == "1x" and row.kind != FIRST:
                assert row.break_even == 0.5 and row.chips == row.pot
    opened = position_after_raise(GAME.start(), 1.0)
    assert max(opened.spent) == 300 and position_after_raise(opened, 0.0).history == "r300r500"
    assert position_after_raise(GAME.replay("r300r5000"), 1.0) is None


class SolvedRiver:
    """An agent that checks and calls until the river, and then plays the solution of one board."""

    name = "solved river"

    def __init__(self, found):
        self.table, self.tree = found.table, NavigableTree(found.game)

    def policy(self, position, board):
        every = np.arange(1326)
        if position.round < 3:
            return PublicPolicy(("c",), np.ones((1, 1326)), every)
        place = self.tree.start
        for action in re.findall(r"r\d+|c", position.history.rpartition("/")[2]):
            place = self.tree.act(place, action)
        shares = np.zeros((len(self.tree.actions(place)), 1326))
        shares[:, self.tree.holdem.numbers] = self.tree.strategy(self.table, place)
        return PublicPolicy(self.tree.actions(place), shares, every)


class FoldsToBets(SolvedRiver):
    """The same agent, which folds every hand to a bet."""

    def policy(self, position, board):
        if position.facing and position.round == 3:
            return PublicPolicy(("f",), np.ones((1, 1326)), np.arange(1326))
        return super().policy(position, board)


def test_an_equilibrium_folds_more_than_half_but_loses_nothing_by_it():
    """After a check, bluffs of any two cards profit against the exact solution of a river, but no more than checks."""
    board, ranges = GAME.deck.cards("QsJh2h7d3c"), np.ones((2, 1326))
    start = GAME.replay("cc/cc/cc/")
    found = resolve(GAME, start, board, 0, ranges, method="unsafe", menu=actions_of("1x, a"), iterations=300)
    spot = next(
        one for one in betting_sequences(GAME) if one.before.history == start.after("c").history and one.bet == "1x"
    )
    solved, free = SolvedRiver(found), free_hands(GAME, board)
    weight = free * solved.policy(start, board).probability("c")
    row = _answer(GAME, solved, spot, [board], [weight])
    assert row.folds > 0.53 and row.profit > 0.06
    won, pairs = gain_over_checking(GAME, solved, spot, board, weight)
    whole, loss = pair_weight(np.stack([free, free]), GAME.holes, 52), found.game.exploitability(found.table)
    assert row.gain == pytest.approx(won / pairs) and 0.1 < pairs / whole < 0.9
    # Betting these hands is one deviation, which wins at most as much as a best response: twice the exploitability.
    assert won / whole * row.pot <= 2 * loss < 0.02 * row.pot
    assert row.gain < -0.02
    assert _answer(GAME, FoldsToBets(found), spot, [board], [weight]).gain > 0.2


def test_no_rows_without_bet_sizes():
    assert measure_defence(load_game("holdem.limit.2p"), BASELINES["always-call"], boards=1) == []


def test_rules_that_fold_too_much_are_found():
    """The shipped strategy after a rule of [Brown15]: bluffs profit wherever the river was checked down."""
    blueprint = Blueprint.load("house")
    played, raw = (check_blueprint(blueprint, deals=200, rule=rule_named(rule)) for rule in ("new-0.2", "none"))
    names = {f"profit of betting any two cards, {LEADS}", f"gain of betting over checking, {CHECKED}"}
    assert {finding.name for finding in played.off} >= names
    assert not names & {finding.name for finding in raw.off}
    by_line = [{row.line: row.profit for row in one.defence if row.bet == "1x"} for one in (played, raw)]
    assert all(by_line[0][line] > by_line[1][line] for line in by_line[0] if line.startswith("river"))
    assert played.data()["defence"][0].keys() >= {"line", "bet", "folds", "break_even", "profit"}
    assert list(check_bluffs(())) == [] and list(check_first_raises(load_agent("house"), ())) == []
