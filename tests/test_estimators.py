"""Estimators on logs: unbiased by enumeration of whole games, and the identities of [Johanson16 §7]."""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.errors import PlayError
from kilt.evaluate import aivat, log_estimates, matchup
from kilt.evaluate import values as hand_ends
from kilt.evaluate.aivat import BlueprintValues, EnumeratedValues
from kilt.evaluate.deserved import deserved_winnings
from kilt.evaluate.divat import baseline_values
from kilt.evaluate.estimators import (
    AIVAT,
    ESTIMATORS,
    Estimator,
    estimator_named,
    follow_line,
    hand_values,
)
from kilt.evaluate.log_estimates import LogCase, LogEvaluator, estimate_by_name, estimate_from_log
from kilt.evaluate.matchup import evaluate_matchup
from kilt.evaluate.stats import estimate_mean, played_hands, played_rate, win_rate
from kilt.evaluate.values import LoggedHands, baseline_luck
from kilt.games import load_game
from kilt.games.game import TERMINAL
from kilt.play.acpc import format_log_line
from kilt.play.agent import BASELINES, PublicPolicy, draw_action
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Cards, Dealer
from kilt.play.match import play_match
from kilt.players.agents import load_agent
from kilt.solve.cfr import Cfr
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.solve.tables.flat import FlatTables
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import rule_named
from kilt.strategy.table import Strategy
from kilt.tree.flat import flat_tree
from naive import NAMES, Drawn, baseline_value, ends


def moments(game, seat, played, judged, other, estimators, aivat={}, **options):  # noqa: B006
    """[estimator] mean and standard deviation of a hand's value, and mean weight, when `played` plays `other`."""
    agents = (played, other) if seat == 0 else (other, played)
    chances, found = [], []
    for hand, chance in ends(game, agents):
        seen = LoggedHands(game, [hand], seat, **options)
        found.append(hand_values(seen, follow_line(seen, played, judged), estimators, **aivat)[:, :, 0])
        chances.append(chance)
    values, weights = np.stack(found, axis=1)
    mean = chances @ values
    return mean, np.sqrt(np.maximum(chances @ values**2 - mean**2, 0)), chances @ weights


def value(game, seat, judged, other):
    """What a strategy wins, by enumeration."""
    agents = (judged, other) if seat == 0 else (other, judged)
    return sum(chance * hand.payoffs[seat] for hand, chance in ends(game, agents))


ROWS = [row for row in ESTIMATORS.values() if row.value != AIVAT]
NAMES_OF_ROWS = [row.name for row in ROWS]
PLAYED, JUDGED, OTHER = Drawn("played", 1), Drawn("judged", 2, gaps=0.3), Drawn("other", 3, gaps=0.2)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("judged", [PLAYED, JUDGED])
def test_every_estimator_is_unbiased(seat, judged):
    game = load_game("kuhn")
    mean, _, weight = moments(game, seat, PLAYED, judged, OTHER, ROWS)
    assert mean == pytest.approx(np.full(len(ROWS), value(game, seat, judged, OTHER)), abs=1e-12)
    assert weight == pytest.approx(np.ones(len(ROWS)), abs=1e-12)


@dataclass(frozen=True)
class Solved:
    """The average strategy of CFR in Leduc after some iterations; actions below a threshold are dropped."""

    name: str
    iterations: int
    threshold: float = 0.0

    def policy(self, position, board):
        return solved(self, position, board)

    def act(self, observation):
        raise AssertionError("estimators ask for policies, never for an action")


LEDUC = load_game("leduc")
AVERAGES = {}


@cache
def solved(agent, position, board):
    if not AVERAGES:
        tree = flat_tree(LEDUC)
        solver = Cfr(FlatTables(tree.nodes), "cfr")
        for iterations in (30, 200):
            solver.step(iterations - solver.iterations)
            AVERAGES[iterations] = Strategy.of(tree, solver.average())
    actions, strategy = position.actions(), AVERAGES[agent.iterations]
    names = [f"{hand}|{LEDUC.board_name(board)}|{position.history}" for hand in LEDUC.hands(0)]
    rows = [dict.fromkeys(actions, 1.0) if hand in board else strategy[name] for hand, name in enumerate(names)]
    shares = np.array([[row[action] for row in rows] for action in actions])
    shares[shares < np.minimum(agent.threshold, shares.max(axis=0))] = 0
    return PublicPolicy(actions, shares / shares.sum(axis=0), np.arange(shares.shape[1]))


@pytest.mark.parametrize("iterations", [30, 200])
def test_estimators_on_leduc_are_unbiased_and_in_the_order_of_table_7_1(iterations):
    """[Johanson16 table 7.1]: the orders hold exactly in Leduc too; early folds alone raise the deviation on-policy."""
    played, judged, other = Solved("played", 30), Solved("judged", iterations), Solved("other", 200, 0.3)
    mean, deviation, weight = moments(LEDUC, 0, played, judged, other, ROWS)
    assert mean == pytest.approx(np.full(len(ROWS), value(LEDUC, 0, judged, other)), abs=1e-12)
    assert weight == pytest.approx(np.ones(len(ROWS)), abs=1e-12)
    sd = dict(zip(NAMES_OF_ROWS, deviation, strict=True))
    best = sd["all-cards+early-folds+bc-divat"]
    if judged.iterations == played.iterations:
        assert best < sd["all-cards+bc-divat"] < sd["bc-divat"] < sd["all-cards"] < sd["basic"] < sd["early-folds"]
        assert sd["basic"] < 1.1 * sd["early-folds"]
    else:
        assert best < sd["all-cards+bc-divat"] < sd["bc-divat"] < sd["basic"]
        assert sd["all-cards"] < sd["basic"]
        assert sd["early-folds"] < sd["basic"]
    assert sd["divat"] < sd["bc-divat"]
    assert sd["all-cards+early-folds+divat"] < sd["all-cards+divat"] < sd["all-cards+bc-divat"]


@pytest.mark.parametrize("name", ["leduc", "holdem.limit.2p", "holdem.nolimit.2p.50bb"])
def test_baselines_of_divat(name):
    """Against betting that is played out, raise by raise."""
    rules, rng = load_game(name).rules, np.random.default_rng(1)
    for r in range(rules.rounds):
        for level in {max(rules.blinds), 3 * max(rules.blinds), *rules.stacks}:
            mine, theirs, edge = rng.uniform(-0.01, 1.01, (3, 2000)).clip(0, 1) ** 0.5
            for first in (False, True):
                found = baseline_values(rules, r, level, mine, theirs, edge, first=first)
                wanted = [
                    baseline_value(rules, r, level, *one, first=first) for one in zip(mine, theirs, edge, strict=True)
                ]
                assert found == pytest.approx(wanted)


def test_means_over_many_boards_are_drawn(monkeypatch):
    """As if the cards of Leduc were as many as flops of hold'em: the mean over draws is that over all cards."""

    def luck(hole):
        return baseline_luck.__wrapped__(LEDUC.rules, 0, 1, 3, (4,), hole, (2,))

    one, all_hands = luck((0,)), luck(None)
    assert all_hands[0] == pytest.approx(one[0], abs=1e-12)
    monkeypatch.setattr(hand_ends, "MANY", 3)
    monkeypatch.setattr(hand_ends, "DRAWN", 4000)
    assert luck((0,))[0] == pytest.approx(one[0], abs=0.2)
    assert luck(None)[:4] == pytest.approx(all_hands[:4], abs=0.2)
    case = LogCase(LEDUC, "probe", "probe", load=load_agent)
    assert "all-cards+divat" not in {row.name for row in case.evaluator.estimators}  # as in hold'em: only if asked for


def hand_of(game, history, holes, board=()):
    return Dealer(game).finish_hand(0, game.replay(history), Cards(holes, board), NAMES)


def values_of(hand, seat, played, judged, estimators=ROWS, *, game=LEDUC, **options):
    seen = LoggedHands(game, [hand], seat, **options)
    return hand_values(seen, follow_line(seen, played, judged), estimators)[0, :, 0]


def test_basic_on_policy_is_money():
    for hand, _ in ends(load_game("kuhn"), (PLAYED, OTHER)):
        found = values_of(hand, 0, PLAYED, PLAYED, [ESTIMATORS["basic"]], game=load_game("kuhn"))
        assert found == pytest.approx([hand.payoffs[0]], abs=1e-14)


def test_only_the_opponents_cards_are_left_to_luck_where_the_player_acts_once():
    """All cards and endings together: who answers one bet, whatever the cards, has one value per opponent's card."""
    game, seen = load_game("kuhn"), {}
    rows = [estimator_named("all-cards+game-endings")]
    for hand, _ in ends(game, (BASELINES["always-raise"], PLAYED)):
        seen.setdefault(hand.cards.holes[0], []).append(values_of(hand, 1, PLAYED, JUDGED, rows, game=game)[0])
    assert len(seen) == 3
    for values in seen.values():
        assert values == pytest.approx([values[0]] * 4, abs=1e-14)  # two cards, folded or called


def test_bet_call_divat_is_zero_where_all_rounds_go_bet_and_call():
    rows = [ESTIMATORS["bc-divat"]]
    for first, second, board in [(0, 5, 3), (4, 1, 0), (2, 3, 5)]:
        hand = hand_of(LEDUC, "rc/rc", ((first,), (second,)), (board,))
        assert values_of(hand, 0, PLAYED, PLAYED, rows) == pytest.approx([0.0], abs=1e-14)
        checked = hand_of(LEDUC, "cc/cc", ((first,), (second,)), (board,))
        assert values_of(checked, 0, PLAYED, PLAYED, rows)[0] != 0 or checked.payoffs[0] == 0


@pytest.mark.parametrize("partial", [False, True])
def test_hands_with_the_same_betting_are_judged_as_if_each_were_alone(partial):
    """Those that the playing strategy never plays so are left out, whatever hands they are judged with."""
    played = Drawn("played", 4, gaps=0.3)
    hands = [hand for hand, _ in ends(LEDUC, (PLAYED, OTHER))][::7]
    evaluator = LogEvaluator(LEDUC, NAMES[0], played, JUDGED, [row for row in ROWS if not row.slow], partial=partial)
    together, alone = evaluator.evaluate(hands), [evaluator.evaluate([hand]) for hand in hands]
    assert together.found == pytest.approx(np.concatenate([one.found for one in alone], axis=2), abs=1e-12)
    assert together.kept == [hand for one in alone for hand in one.kept]
    assert together.left_out == sum((one.left_out for one in alone), Counter())
    assert 0 < together.left_out.total() < len(hands)


def test_what_is_missing_without_support_is_told():
    """Weights and what is missing add up to 1, and the bias is what the judged strategy wins there."""
    game, played, judged = load_game("kuhn"), Drawn("played", 4, gaps=0.4), PLAYED
    lines = []
    for hand, chance in ends(game, (played, OTHER)):
        seen = LoggedHands(game, [hand], 0)
        line = follow_line(seen, played, judged)
        lines.append((chance, hand_values(seen, line, ROWS)[1, :, 0], [line.missing[row[:2]][0] for row in ROWS]))
    chance, weight, missing = (np.array(part) for part in zip(*lines, strict=True))
    assert chance @ (weight + missing) == pytest.approx(np.ones(len(ROWS)), abs=1e-12)
    lost = dict(zip(NAMES_OF_ROWS, chance @ missing, strict=True))
    assert lost["basic"] > lost["all-cards"] > lost["all-cards+game-endings"] == 0
    supported = sum(
        chance * hand.payoffs[0]
        for hand, chance in ends(game, (judged, OTHER))
        if all(
            played.policy(before, ()).probability(action)[hand.cards.holes[0][0]] > 0
            for before, action in game.positions.moves_to(hand.position)
            if before.actor == 0
        )
    )
    mean, _, _ = moments(game, 0, played, judged, OTHER, [ESTIMATORS["basic"]])
    assert mean == pytest.approx([supported], abs=1e-12)


def test_partial_information():
    """Cards that are not shown change nothing where all hands are, nor what needs no cards; else there may be bias."""
    played, judged = Drawn("played", 1), Drawn("judged", 2)
    shown = hand_of(LEDUC, "cc/rc", ((2,), (5,)), (3,))
    assert values_of(shown, 0, played, judged, partial=True) == pytest.approx(values_of(shown, 0, played, judged))
    game = load_game("kuhn")
    mean, _, _ = moments(game, 0, played, judged, OTHER, ROWS, partial=True)
    bias = dict(zip(NAMES_OF_ROWS, abs(mean - value(game, 0, judged, OTHER)), strict=True))
    assert max(bias["basic"], bias["early-folds"]) < 1e-12
    assert min(bias["game-endings"], bias["bc-divat"]) > 1e-3


def test_estimates_from_a_log():
    """Hands are judged one by one; what cannot be judged is counted with its reason."""
    hands = [hand for hand, _ in ends(LEDUC, (Drawn("a", 1, 0.5), Drawn("b", 2, 0.6)))][::7]
    stranger = hands[0]._replace(players=("Cid", "Bob"))
    rows = [ESTIMATORS[name] for name in ("basic", "all-cards")]
    found = estimate_from_log(LEDUC, [*hands, stranger], "Ann", Drawn("a", 1, 0.5), estimators=rows)
    assert (found.hands, found.left_out, found.duplicate) == (len(hands), {"Ann does not take part": 1}, False)
    money = [hand.payoffs[0] * 1000 for hand in hands]
    assert found.rows[0].won.mean == pytest.approx(np.mean(money))
    assert found.rows[0].deviation == pytest.approx(np.std(money, ddof=1))
    assert found.rows[0].effective == pytest.approx(len(hands))
    assert not found.rows[0].warnings
    other = estimate_from_log(LEDUC, hands, "Ann", Drawn("x", 9, 0.5), estimators=rows)
    assert other.hands + sum(other.left_out.values()) == len(hands)
    (reason,) = other.left_out
    assert reason == "x never plays such a line with these cards"
    swapped = [hands[0], hands[0]._replace(players=NAMES[::-1], payoffs=hands[0].payoffs[::-1])]
    swapped[1] = swapped[1]._replace(players=("Bob", "Ann"), payoffs=hands[0].payoffs)
    pair = estimate_from_log(LEDUC, swapped, "Ann", PLAYED, estimators=rows[:1])
    assert pair.duplicate
    assert pair.rows[0].won.mean == pytest.approx(0)


def test_warnings():
    """Few hands that weigh, and what the player never does, are said."""
    hands = [hand for hand, _ in ends(load_game("kuhn"), (PLAYED, OTHER))]
    judged = Drawn("judged", 5, gaps=0.5)
    found = estimate_from_log(load_game("kuhn"), hands, "Ann", PLAYED, judged, [ESTIMATORS["basic"]])
    assert [said.split(":")[0] for said in found.rows[0].warnings] == ["degenerate weights"]
    sparse = [hand for hand, _ in ends(load_game("kuhn"), (judged, OTHER))] * 20
    found = estimate_from_log(load_game("kuhn"), sparse, "Ann", judged, PLAYED, [ESTIMATORS["basic"]])
    assert "missing support" in [said.split(":")[0] for said in found.rows[0].warnings]


def test_names():
    assert estimator_named("basic") == Estimator()
    assert estimator_named("money") == Estimator()
    assert estimator_named("bc-divat+all-cards").name == "all-cards+bc-divat"
    with pytest.raises(PlayError, match="unknown estimator 'all-hands'"):
        estimator_named("all-hands")


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """A match of probe and random in Leduc, with lines that are cut off, of another game, and of strangers."""
    path, lines = tmp_path_factory.mktemp("logs") / "match.log", []
    players = BASELINES["probe"], BASELINES["random"]
    play_match(LEDUC, players, 400, sink=lambda hand: lines.append(format_log_line(hand)))
    more = ["STATE:7:rc/r", "STATE:8:f:8dJd|Td4d:50|-50:probe|random", lines[3].replace("probe", "Cid")]
    path.write_text("\n".join(["# a match", *lines, *more, "SCORE:0|0:probe|random"]))
    return path


def test_logs_are_judged(log_file):
    """All estimators agree with each other, and what cannot be read or judged is counted."""
    said = answer("evaluate", "log", log_file, "--game", "leduc", "--player", "probe")
    assert (said["hands"], said["unreadable"], said["left_out"]) == (400, 2, {"probe does not take part": 1})
    assert [fault.split(":")[0] for fault in said["faults"]] == ["line 402", "line 403"]
    assert [row["estimator"] for row in said["estimates"]] == NAMES_OF_ROWS
    assert said["duplicate"]
    (low, high), least = said["estimates"][0]["ci95"], said["estimates"][-1]
    assert low < least["mbb_per_hand"] < high
    assert least["deviation"] < said["estimates"][0]["deviation"]
    one = ["--as", "always-call", "--estimator", "early-folds+all-cards", "--partial"]
    said = answer("evaluate", "log", log_file, "--game", "leduc", "--player", "probe", *one)
    assert (said["estimator"], said["judged"], said["information"]) == (
        "all-cards+early-folds",
        "always-call",
        "partial",
    )
    shown = kilt("evaluate", "log", log_file, "--game", "leduc", "--player", "probe", "--as", "random")
    assert "all-cards+early-folds+bc-divat" in shown.stdout
    assert "missing support" in shown.stderr  # probe never folds
    assert "2 more" not in shown.stderr
    assert "cannot be read: line 402" in shown.stderr


def test_logs_that_cannot_be_judged(log_file):
    where = ["evaluate", "log", log_file, "--game", "leduc"]
    assert "its players are Cid, probe, random: say with --name" in refused(*where, "--player", "always-call")
    never = answer(*where, "--player", "always-fold", "--name", "probe")
    assert never["hands"] + sum(never["left_out"].values()) == 401
    assert never["left_out"]["always-fold never plays such a line with these cards"] > 300
    assert "name the player after the log" in refused(*where, "--estimator", "basic")
    assert "give a run as `values`" in refused(*where, "--player", "probe", "--estimator", "aivat")
    assert "unknown estimator" in refused(*where, "--player", "probe", "--estimator", "best")
    assert "with --game, or name the player" in refused("evaluate", "log", log_file)
    assert "no hand can be read; line 2:" in refused(*where[:3], "-g", "holdem.limit.2p", "--player", "probe")


AIVATS = [ESTIMATORS["aivat"], ESTIMATORS["all-cards+aivat"]]


@cache
def noise(position, board, seat, opponent):
    rng = np.random.default_rng([seat, *map(ord, position.history), *board, *opponent])
    return rng.normal(size=len(position.rules.deck.holes(position.rules.hole_cards)))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("name", "seat"), [("kuhn", 0), ("kuhn", 1), ("leduc", 1)])
def test_aivat_is_unbiased_whatever_the_values_of_states_are(name, seat, known):
    """[Burch18 theorem 1], on policy; and off policy, with weights that are those of the states."""
    game = load_game(name)
    other = OTHER if name == "kuhn" else Drawn("other", 3, gaps=0.7)
    played, states = (PLAYED, Drawn("played", 6, gaps=0.4))[name == "leduc"], EnumeratedValues(game, noise)
    for judged in (played, Drawn("judged", 6, gaps=0.4)) if name == "kuhn" else (played,):
        options = {"states": states, "opponent": other if known else None}
        mean, _, _ = moments(game, seat, played, judged, other, AIVATS, options)
        assert mean == pytest.approx(np.full(2, value(game, seat, judged, other)), abs=1e-12)


def true_values(agents):
    """What states of Kuhn are worth when `agents` play on, by enumeration."""

    @cache
    def worth(position, first, second):
        if position.actor == TERMINAL:
            return KUHN.payoffs(position, (first, second), ())[0]
        said = agents[position.actor].policy(position, ())
        shares = said.table[:, (first, second)[position.actor]]
        after = (worth(position.after(action), first, second) for action in said.actions)
        return sum(share * each for share, each in zip(shares, after, strict=True))

    def function(position, board, seat, opponent):
        (other,) = opponent
        pairs = [(hand, other) if seat == 0 else (other, hand) for hand in range(3)]
        return np.array([worth(position, *pair) * (1 - 2 * seat) if len({*pair}) > 1 else 0.0 for pair in pairs])

    return EnumeratedValues(KUHN, function)


KUHN = load_game("kuhn")


def test_no_luck_is_left_where_values_of_states_are_true_and_both_strategies_known():
    agents = PLAYED, OTHER
    options = {"states": true_values(agents), "opponent": OTHER}
    mean, deviation, _ = moments(KUHN, 0, PLAYED, PLAYED, OTHER, AIVATS, options)
    assert mean == pytest.approx(np.full(2, value(KUHN, 0, PLAYED, OTHER)), abs=1e-12)
    assert deviation == pytest.approx(np.zeros(2), abs=1e-7)  # the square of a billionth is lost beside the mean's


@pytest.fixture(scope="module")
def blueprint(tmp_path_factory):
    """A solved abstraction of Leduc in which suits do not count."""
    deal = Deal.from_game(LEDUC)
    place = tmp_path_factory.mktemp("cards") / "cards"
    cards = build(AbstractionSpec.from_name("IR-PHS-PHS 3-3", deal), place)
    abstract = AbstractGame(LEDUC, cards)
    solver = ExternalMCCFR(abstract, 1, SamplingOptions())
    solver.step(20_000)
    return Blueprint.of(abstract, solver.average(), cards=str(place))


def test_values_from_a_blueprint(blueprint, tmp_path, monkeypatch):
    """Means over chance are exact, AIVAT is unbiased with them and takes away most of the luck."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path))
    states = BlueprintValues(blueprint, groups=3, deals=4096)
    slow = EnumeratedValues(LEDUC, states.value)
    for seat in (0, 1):
        assert states.value_at_start(seat) == pytest.approx(slow.value_at_start(seat), abs=1e-6)
        for history in ("cc", "rc", "crrc"):
            found, exact = (each.values_after_deal(LEDUC.replay(history), (), seat, (4,)) for each in (states, slow))
            assert np.delete(found, 4) == pytest.approx(np.delete(exact, 4), abs=1e-5)
    again = BlueprintValues(blueprint, groups=3, deals=4096)
    assert np.array_equal(again.table, states.table)
    agent, other = BlueprintAgent("agent", blueprint), BlueprintAgent("other", blueprint, rule_named("purification"))
    rows = [ESTIMATORS["basic"], *AIVATS]
    mean, deviation, _ = moments(LEDUC, 0, agent, agent, other, rows, {"states": states})
    assert mean == pytest.approx(np.full(3, value(LEDUC, 0, agent, other)), abs=1e-5)
    assert deviation[2] < deviation[1] < deviation[0]
    assert deviation[2] < 0.4 * deviation[0]


def test_logs_are_judged_by_aivat(blueprint, tmp_path, monkeypatch):
    """With values learnt from the player's own run, and with the opponent's strategy beside it."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    blueprint.save(tmp_path / "run" / "strategy", Path(blueprint.figures["cards"]))
    agent, path = BlueprintAgent("me", blueprint), tmp_path / "match.log"
    lines = []
    play_match(LEDUC, (agent, BASELINES["probe"]), 200, sink=lambda hand: lines.append(format_log_line(hand)))
    path.write_text("\n".join(lines))
    where = ["evaluate", "log", path, "--player", tmp_path / "run", "--name", "me"]
    alone = answer(*where)
    both = answer(*where, "--opponent", "probe", "--estimator", "all-cards+aivat")
    found = {row["estimator"]: row for row in alone["estimates"]}
    assert list(found) == list(ESTIMATORS)
    assert found["all-cards+aivat"]["deviation"] < 0.7 * found["basic"]["deviation"]
    assert both["deviation"] < found["all-cards+aivat"]["deviation"]

    hands = []  # what somebody deserves who plays as always-call does
    play_match(LEDUC, (BASELINES["always-call"], agent), 200, duplicate=False, sink=hands.append)
    said = deserved_winnings(LEDUC, hands, agent)
    assert [row.estimator.name for row in said.rows] == ["basic", "all-cards+early-folds+bc-divat", "all-cards+aivat"]
    assert said.rows[0].won.mean == pytest.approx(np.mean([1000 * hand.payoffs[hand.number % 2] for hand in hands]))
    assert said.rows[2].won.margin < min(row.won.margin for row in said.rows[:2])


class Playing(Drawn):
    """An agent of somebody's own that tells its strategy, and plays by it."""

    def act(self, observation):
        position, hand = observation.position, observation.position.rules.deck.hole_index(observation.hand)
        said = self.policy(position, observation.board)
        return draw_action(said.actions, said.probabilities[:, hand].tolist(), observation.draw(len(position.history)))


def test_aivat_and_what_is_won_agree_in_matches(blueprint, tmp_path, monkeypatch):
    """In 20 matches with different seeds; on the same hands, and on any number of processes' chunks."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path))
    monkeypatch.setattr(aivat, "DEALS", 4096)
    monkeypatch.setattr(matchup, "WORTH_LEARNING", 1000)
    agent, other = BlueprintAgent("agent", blueprint), Playing("other", 3, gaps=0.2)
    assert evaluate_matchup(LEDUC, (agent, other), 4).way == "played"  # too short to learn values of states
    pairs = []
    for seed in range(20):
        match = evaluate_matchup(LEDUC, (agent, other) if seed % 2 else (other, agent), 60, seed, way="aivat")
        lucky = play_match(LEDUC, (agent, other) if seed % 2 else (other, agent), 60, seed)
        assert (match.way, match.hands, match.played.tolist()) == ("aivat", 60, lucky.results.tolist())
        pairs.append((win_rate(match), played_rate(match)))
        assert played_hands(match) == pytest.approx(60 * (pairs[-1][1].margin / pairs[-1][0].margin) ** 2)
    assert all(abs(one.mean - two.mean) <= one.margin + two.margin for one, two in pairs)
    assert np.mean([one.margin / two.margin for one, two in pairs]) < 0.6
    truth = 500 * sum(value(LEDUC, seat, agent, other) for seat in (0, 1))
    signs = [1 if seed % 2 else -1 for seed in range(20)]
    held = [abs(sign * one.mean - truth) <= one.margin for sign, (one, _) in zip(signs, pairs, strict=True)]
    assert sum(held) >= 17
    assert evaluate_matchup(LEDUC, (agent, other), 4).way == "aivat"  # they are there now
    assert evaluate_matchup(LEDUC, (agent, BASELINES["random"]), 4).way == "played"
    with pytest.raises(PlayError, match="neither random nor probe is a run"):
        evaluate_matchup(LEDUC, (BASELINES["random"], BASELINES["probe"]), 4, way="aivat")


@pytest.mark.parametrize("way", ["played", "expected"])
def test_intervals_of_short_matches_hold_the_value(blueprint, way):
    """Those of 200 matches of 100 hands, which are the parts of a long one: in 90% to 99% of them."""
    agent, other = BlueprintAgent("agent", blueprint), BlueprintAgent("other", blueprint, rule_named("new-0.2"))
    truth = 500 * sum(value(LEDUC, seat, agent, other) for seat in (0, 1))
    match = evaluate_matchup(LEDUC, (agent, other), 200 * 100, seed=1, way=way)
    assert abs(win_rate(match).mean - truth) <= 1.5 * win_rate(match).margin
    found = [estimate_mean(1000 * part) for part in match.results.reshape(200, 50)]
    assert 0.90 <= np.mean([abs(each.mean - truth) <= each.margin for each in found]) <= 0.99


def test_logs_in_parts(log_file, monkeypatch):
    """However a log is cut, and whichever process has a part of it, the result is the same."""
    case, text = LogCase(LEDUC, "probe", "probe", load=load_agent), log_file.read_text()
    whole = estimate_by_name(case, text)
    monkeypatch.setattr(log_estimates, "LINES", 30)
    told = []
    assert estimate_by_name(case, text, tick=told.append) == whole
    assert told == [*range(30, 405, 30), 405]
    log_estimates._begin(case)
    part, faults = log_estimates._go_on(300, "\n".join(text.splitlines()[300:]))
    assert (part.found.shape[2], faults) == (101, whole.faults)
