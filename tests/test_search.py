"""The agent that re-solves: its ranges by Bayes' rule, its budget, and what it is worth."""

from dataclasses import replace
from threading import Event
from time import monotonic

import numpy as np
import pytest

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import plan_named
from kilt.config import ResolveConfig
from kilt.errors import KiltError, PlayError
from kilt.evaluate import resolving as resolving_values
from kilt.evaluate.lbr import lower_bound
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.games.subgame import cut_after_first_round, subgame
from kilt.play.agent import BASELINES, Observation, SeatedAgent, agent_for_match
from kilt.play.blueprint import BlueprintAgent
from kilt.play.match import play_match
from kilt.players.agents import load_agent
from kilt.players.reference import player as player_of
from kilt.search import agent as search
from kilt.search.agent import ResolvingAgent
from kilt.search.allowance import Allowance, DroppedError
from kilt.search.blueprint_values import blueprint_values
from kilt.search.continuations import BlueprintContinuations
from kilt.search.ranges import blueprint_ranges, translated_share
from kilt.solve.resolve import resolve
from kilt.strategy.blueprint import Blueprint
from kilt.tree.navigation import NavigableTree
from naive import biased_shares, ends, exact_responses, pair_value


def small(stack, rounds=2, ranks=3):
    """Leduc without limits."""
    return Holdem(
        GameDef.parse(f"""
            GAMEDEF
            nolimit
            numPlayers = 2
            numRounds = {rounds}
            stack = {stack} {stack}
            blind = 1 1
            firstPlayer = {"1 " * rounds}
            numSuits = 2
            numRanks = {ranks}
            numHoleCards = 1
            numBoardCards = 0 {"1 " * (rounds - 1)}
            END GAMEDEF
            """),
        "small",
    )


SETTINGS = ResolveConfig("round 2", bets="50%, 1x, a", iterations=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run for each of some stacks, with a strategy that is drawn."""
    folder = tmp_path_factory.mktemp("runs")
    for stack, rounds in ((4, 2), (30, 3), ("leduc", 2)):
        game = load_game("leduc") if stack == "leduc" else small(stack, rounds)
        deal, place = Deal.from_game(game), folder / str(stack)
        plan = plan_named("IR-PHS-PHS " + "-".join("32"[: rounds - 1] + "2"), deal.board_cards)
        cards = build(AbstractionSpec("cards", deal, plan), place / "cards")
        abstract = AbstractGame(game, cards, actions_of("1x, a; a"))
        shares = (
            np.random.default_rng(len(stack) if stack == "leduc" else stack)
            .integers(1, 256, abstract.slots)
            .astype(np.uint8)
        )
        made = Blueprint.of(abstract, shares, agent={"post": "threshold-0.1"})
        made.save(place / "strategy", place / "cards")
    return folder


def resolving(folder, stack, settings=SETTINGS):
    blueprint = load_agent(str(folder / str(stack)))
    assert type(blueprint) is BlueprintAgent
    return ResolvingAgent("resolving", blueprint, settings)


def by_bayes(agent, player, position, board):
    """[player, hand] how likely each is to have done what was done, hand by hand and action by action."""
    found = np.ones((2, agent.game.deck.size))
    for before, action in agent.game.positions.moves_to(position):
        if before.actor >= 0:
            for card in range(agent.game.deck.size):
                shares = player.probabilities(Observation(before, (card,), board[: before.round], 0))
                found[before.actor, card] *= sum(share for one, share in shares if one == action)
    found[:, list(board)] = 0
    return found


def test_ranges_follow_from_what_was_done(folder):
    agent = resolving(folder, 30, replace(SETTINGS, rounds=("round 3",)))
    for history, board in (("cr3c/", (4,)), ("cc/r3r30", (0,)), ("r3c/cr9c/", (2, 5))):
        position = agent.game.replay(history)
        for player in (agent.raw, agent.blueprint):
            expected = by_bayes(agent, player, position, board)
            assert blueprint_ranges(player, position, board) == pytest.approx(expected, abs=1e-12)
    expected = by_bayes(agent, agent.raw, position, board)
    policy = agent.policy(position, board)
    for action in policy.actions:
        after = agent.hand_state(position.after(action), board, 0).reach
        assert after == pytest.approx(expected * [policy.probability(action), np.ones(agent.game.deck.size)])


def test_subgames_begin_with_the_blueprint(folder):
    """With raises of other sizes, each raise of the blueprint counts as the nearest one; without any, as a call."""
    agent = resolving(folder, 30, replace(SETTINGS, rounds=("round 3",)))
    root, board = agent.game.replay("cr3c/cc/"), (2, 5)
    policy = agent.raw.policy(root, board)
    assert policy.actions == ("c", "r9", "r30")
    call, pot, rest = (policy.probability(action) for action in policy.actions)
    at = replace(root, history="")
    for actions, expected in (
        (("c", "r9", "r30"), (call, pot, rest)),
        (("c", "r6", "r10", "r30"), (call, 0 * call, pot, rest)),
        (("c", "r25"), (call, pot + rest)),
        (("c",), (call + pot + rest,)),
    ):
        np.testing.assert_allclose(agent._blueprint_shares(root, board, at, actions), expected)


@pytest.mark.parametrize("limited", [(), ("round 2",)])
def test_post_processing_changes_no_subgame(folder, limited):
    """Subgames are the same whatever the rule, which changes only actions that follow the blueprint."""
    settings = replace(SETTINGS, rounds=("round 2",), limited=limited, iterations=5)
    raw, pure = (
        ResolvingAgent("resolving", load_agent(f"{folder / '30'}@{rule}"), settings)
        for rule in ("none", "purification")
    )
    for history, board in (("cc/", (4,)), ("cr3c/cr9", (2,)), ("r3c/r9", (5,))):
        position = raw.game.replay(history)
        one, other = raw.policy(position, board), pure.policy(position, board)
        np.testing.assert_array_equal(one.table, other.table)
        assert np.any((one.table > 0) & (one.table < 1))
    start = raw.game.start()
    assert set(np.unique(pure.policy(start, ()).table)) <= {0.0, 0.5, 1.0} and raw.policy(start, ()).table.max() < 1
    if limited:  # the blueprint plays after a limited round
        position, board = raw.game.replay("cc/cr3c/"), (3, 5)
        one, other = raw.policy(position, board), pure.policy(position, board)
        np.testing.assert_array_equal(pure._decided[position.history, board].policy.table, one.table)
        assert not np.array_equal(one.table, other.table)


def test_a_bet_that_is_never_made_tells_what_its_neighbours_tell(folder):
    agent = resolving(folder, 30)
    position = agent.game.replay("c")
    policy = agent.blueprint.policy(position, ())
    assert translated_share(policy, position, "r3") == pytest.approx(policy.probability("r3"))
    share = translated_share(policy, position, "r2")  # half the pot, between a check and the pot
    assert share == pytest.approx(policy.probability("c") / 3 + policy.probability("r3") * 2 / 3)
    assert not translated_share(policy, position, "f").any()


def test_it_wins_and_is_exploited_for_less(folder):
    """In the whole game, where opponents bet as they like: exactly. Hands up to the second round stand for the rest."""
    agent, game = resolving(folder, 4), small(4)
    before, after = (sum(exact_responses(game, one)) / 2 for one in (agent.blueprint, agent))
    assert after < 0.8 * before
    seats = ((agent, agent.blueprint), (agent.blueprint, agent))
    won = [sum(chance * hand.payoffs[seat] for hand, chance in ends(game, seats[seat])) for seat in (0, 1)]
    expected, known = 0.0, {}
    for hand, chance in ends(game, (agent.blueprint, agent.blueprint)):
        state = hand.position.history.partition("/")[0], hand.board
        if state not in known:
            known[state] = resolving_values.resolver_value(agent, hand)
        expected += chance * known[state]
    assert np.mean(won) == pytest.approx(expected, abs=1e-9) and expected > 0.02


def test_hands_that_are_hardly_held_are_left_out(folder, monkeypatch):
    """What was neglected once stays so, since no value of it is known: whatever is done later."""
    reach = np.array([[1, 0, 0, 0, 0, 0.5], [1, 0, 1e-4, 1, 0, 0.5]])
    monkeypatch.setattr(search, "blueprint_ranges", lambda *_: reach)
    position, board = small(30, 3).replay("cr3c/"), (4,)
    for neglect, hands in ((1e-3, [0, 3, 5]), (1e-5, [0, 2, 3, 5]), (0.0, [0, 1, 2, 3, 5])):
        begun = resolving(folder, 30, replace(SETTINGS, neglect=neglect)).hand_state(position, board, 0)
        subgame = begun.solved.game.game
        assert np.flatnonzero(subgame.ranges[1]).tolist() == hands
        assert np.flatnonzero(begun.reach[1]).tolist() == [hand for hand in hands if reach[1, hand]]


def test_limit_games(folder):
    """Raises are those of the rules, and an agent that re-solves is exploited for less."""
    agent = ResolvingAgent("resolving", load_agent(str(folder / "leduc")), SETTINGS)
    policy = agent.policy(agent.game.replay("cc/r"), (2,))
    assert policy.actions == ("f", "c", "r")
    before, after = (sum(exact_responses(agent.game, one)) / 2 for one in (agent.blueprint, agent))
    assert after < 0.8 * before


def test_each_seat_has_its_own_player(folder):
    run = str(folder / "30")
    agent, game = player_of(f"seats:{run}@none@resolve:iterations=5,{run}").at()
    first, second = agent.players
    assert isinstance(first, ResolvingAgent) and type(second) is BlueprintAgent
    for history, seat in (("", 0), ("c", 1), ("cc/", 0), ("cc/c", 1)):
        position, board = game.replay(history), (4,) * ("/" in history)
        assert position.actor == seat
        told, own = agent.policy(position, board), agent.players[seat].policy(position, board)
        np.testing.assert_array_equal(told.probabilities, own.probabilities)
        observation = Observation(position, (0,), board, 7)
        assert agent.act(observation) == agent.players[seat].act(observation)
    for wrong, said in {
        "seats:always-call": "has 1 players: use two",
        f"seats:{run},{folder / '4'}": "play different games",
        f"seats:{run},portfolio:always-call": "remembers earlier hands",
    }.items():
        with pytest.raises(PlayError, match=said):
            load_agent(wrong)


def test_it_plays_by_the_rules_whatever_others_do(folder):
    """And the same again, in whatever order it is asked."""
    agent = resolving(folder, 30, replace(SETTINGS, rounds=("round 2", "round 3"), iterations=3))
    hands = []
    play_match(agent.game, (agent, BASELINES["random"]), 80, sink=hands.append)
    bets = [hand.position.history for hand in hands if hand.position.round == 2]
    assert len(set(bets)) > 20 and any("r30" in history for history in bets)
    other = resolving(folder, 30, agent.settings)
    for hand in hands[-20:]:
        position, board = hand.position, hand.board
        for before, _ in reversed(list(agent.game.positions.moves_to(position))):
            if before.actor == hand.number % 2:
                one, same = (it.policy(before, board[: before.round]) for it in (agent, other))
                assert one.actions == same.actions and np.array_equal(one.probabilities, same.probabilities)


def test_a_limited_round_is_solved_by_itself(folder):
    """What comes after it is the blueprint's, or the next subgame's; ranges follow from all that was done."""
    settings = replace(SETTINGS, limited=("round 2",), iterations=10, boards=2, neglect=0.0)
    for rounds in (("round 2",), ("round 2", "round 3")):
        agent = resolving(folder, 30, replace(settings, rounds=rounds))
        begun = agent.game.replay("cc/")
        at = agent.hand_state(begun, (4,), 0)
        assert len(at.solved.game.tree.rows) == 1 and not np.array_equal(
            agent.policy(begun, (4,)).probabilities, agent.blueprint.policy(begun, (4,)).probabilities
        )
        later, board = agent.game.replay("cc/cr2c/"), (4, 1)
        told = agent.policy(later, board)
        if len(rounds) == 1:
            np.testing.assert_array_equal(told.probabilities, agent.blueprint.policy(later, board).probabilities)
            with pytest.raises(PlayError, match="follows its blueprint"):
                agent.hand_state(later, board, 0)
        else:
            asked = agent.game.replay("cc/c")
            # Seat 1 of the subgame that seat 0 has solved, hands with a card of the board apart.
            told_there = NavigableTree(at.solved.game)
            place = told_there.act(at.tree_position, "c")
            bet = dict(zip(told_there.actions(place), told_there.strategy(at.solved.table, place), strict=True))["r2"]
            found = agent.hand_state(later, board, 0).reach[1]
            expected = np.zeros(agent.game.deck.size)
            expected[told_there.holdem.numbers] = at.reach[1][told_there.holdem.numbers] * bet
            expected[1] = 0.0
            assert asked.actor == 1 and found == pytest.approx(expected)
        other = resolving(folder, 30, agent.settings)
        np.testing.assert_array_equal(other.policy(later, board).probabilities, told.probabilities)
        play_match(agent.game, (agent, BASELINES["random"]), 10)
    for wrong, said in {
        "limited=round 3": "the round 'round 3' cannot be limited",
        "limited=round 2:rounds=round 3": "here none can",
    }.items():
        with pytest.raises(PlayError, match=said):
            load_agent(f"{folder / '30'}@resolve:{wrong}")


@pytest.mark.parametrize("chooser", [0, 1])
def test_ends_of_a_limited_round_are_worth_what_pairs_of_hands_win(folder, chooser):
    """By the naive way, hand by hand; also after bets that the blueprint takes for others."""
    agent, game = resolving(folder, 30), small(30, 3)
    begun, board = game.replay("cc/"), (4,)
    rest = cut_after_first_round(subgame(game, begun, board, np.ones((2, 6))))
    ends = [rest.replay(history) for history in ("cc", "r2c", "cr3r9c", "r2r6r14c", "r30c")]
    told = BlueprintContinuations(game, "cc/", chooser, agent.raw, threads=2)(rest, ends)
    for end in ends:
        position, (first, ways) = game.replay("cc/" + end.history), told.places[end.history]
        assert ways == (1 if end.history == "r30c" else 4)
        for way in range(ways):

            def shares(at, seen, hand, way=way):
                biased = at.actor == chooser and way
                policy = agent.raw.policy(at, seen)
                found = {action: policy.probability(action)[hand] for action in policy.actions}
                return biased_shares(found, "-fcr"[way]) if biased else found

            for one, other in ((0, 1), (4, 2), (3, 4), (2, 2)):
                hands = tuple(rest.numbers[[one, other]].tolist())  # cards, too
                left = [card for card in range(6) if card not in (*board, *hands)]
                won = [pair_value(game, position, (*board, card), hands, shares) for card in left]
                expected = np.mean(won) / position.stake if one != other else 0.0
                assert told.values[first + way, one, other] == pytest.approx(expected, abs=1e-5)


def test_ends_that_only_the_blueprint_comes_to_are_known_in_one_way(folder):
    agent, game = resolving(folder, 30), small(30, 3)
    rest = cut_after_first_round(subgame(game, game.replay("cc/"), (4,), np.ones((2, 6))))
    ends = [rest.replay(history) for history in ("cc", "r2c", "cr3r9c", "r30c")]
    told, asked = (BlueprintContinuations(game, "cc/", 0, agent.raw) for _ in range(2))
    every, alone = told(rest, ends), asked.leaf_values(actions_of("1x, a"))(rest, ends)
    for end in ends:
        (first, _), (place, ways) = every.places[end.history], alone.places[end.history]
        assert ways == 1
        np.testing.assert_allclose(alone.values[place], every.values[first], atol=1e-6)
    again = asked(rest, ends[:1])  # in all ways, though it was looked at before
    assert again.places["cc"][1] == 4


@pytest.mark.parametrize("history", ["cc/", "cr9c/", "cr3r11c/"])
@pytest.mark.parametrize("player", [0, 1])
def test_values_against_the_blueprint_are_those_hand_by_hand(folder, history, player):
    """By the naive way, with translated bets too: a table over buckets, or over hands, gives the same."""
    agent, game = resolving(folder, 30), small(30, 3)
    position, (card,) = game.replay(history), (4,)
    ranges = np.array([[1.0, 2.0, 1.0, 1.0, 0.0, 3.0], [1.0, 1.0, 1.0, 2.0, 2.0, 1.0]])
    rest = subgame(game, position, (card,), ranges)
    found = blueprint_values(agent.raw, position, rest, player, 1)

    def shares(at, seen, hand):
        policy = agent.raw.policy(at, seen)
        return {action: policy.probability(action)[hand] for action in policy.actions}

    for hand in rest.numbers.tolist():
        others = [other for other in range(6) if other not in (card, hand)]
        won = []
        for other in others:
            pair = (hand, other) if player == 0 else (other, hand)
            left = [last for last in range(6) if last not in (card, *pair)]
            won.append(np.mean([pair_value(game, position, (card, last), pair, shares) for last in left]))
        expected = np.average(won, weights=ranges[1 - player][others]) * (1 - 2 * player)
        assert found[hand] == pytest.approx(expected)


def test_estimators_take_it(folder):
    found = lower_bound(small(30, 3), resolving(folder, 30, replace(SETTINGS, iterations=3)), 8, bets="1x, a")
    assert found.hands == 8 and np.isfinite(found.won.mean)


def test_all_decisions_of_a_hand_stay_within_the_limit_of_the_acpc(folder, monkeypatch):
    """By a clock that stands still but for solving, which takes all the time that it is given."""
    agent, now, given = resolving(folder, 30, replace(SETTINGS, iterations=0, seconds=3)), [0.0], []

    def solve(self, position, board, time):
        given.append(time.until - now[0])
        now[0] = time.until
        return self._followed(position, board)

    monkeypatch.setattr(search, "monotonic", lambda: now[0])
    monkeypatch.setattr(ResolvingAgent, "_decide", solve)
    seen = Observation(agent.game.replay("cc/"), (0,), (4,), 1)
    for _ in range(12):
        agent.act(seen)
    assert sum(given) < search.HAND_SECONDS and min(given) > 0
    agent.act(seen._replace(key=2))
    assert given[:1] + given[-1:] == pytest.approx([2.7, 2.7])


def test_what_is_compiled_is_compiled_before_the_first_hand(folder, monkeypatch):
    """Before a match by the clock a subgame is solved, once, and forgotten."""
    clock, solved, real = replace(SETTINGS, iterations=0, seconds=3), [], search.resolve
    monkeypatch.setattr(search, "resolve", lambda *args, **how: solved.append(how["seconds"]) or real(*args, **how))
    for settings, times in ((SETTINGS, 0), (clock, 1)):
        agent = resolving(folder, 30, settings)
        both = SeatedAgent("both", (agent, agent))
        assert agent_for_match(both, agent.game) is both and agent_for_match(agent, agent.game) is agent
        assert len(solved) == times
    agent.hand_state(agent.game.replay("cc/"), (0,), 0)
    assert solved == [0.0, None]


def test_an_answer_comes_in_time(folder, monkeypatch):
    """Also where solving takes for ever: what the blueprint does then is what ranges follow from."""
    agent, end = resolving(folder, 30, replace(SETTINGS, iterations=0, seconds=0.05)), Event()
    with pytest.raises(
        PlayError, match=r"solves for 0.05 seconds, so its strategy is not reproducible: give iterations"
    ):
        agent.policy(agent.game.start(), ())
    observation = Observation(agent.game.replay("cc/"), (0,), (3,), 7)
    assert agent.act(observation)[0] in "cr"
    real, waited = search.resolve, []
    monkeypatch.setattr(search, "resolve", lambda *args, **how: waited.append(end.wait(60)) or real(*args, **how))
    agent = resolving(folder, 30, agent.settings)
    assert agent.act(observation) == agent.blueprint.act(observation)
    assert not waited  # nobody has waited for the end of it
    end.set()
    told = agent.blueprint.policy(observation.position, (3,))
    at = agent.hand_state(observation.position.after("c"), (3,), 0)
    assert at.reach[0] == pytest.approx(
        agent.hand_state(observation.position, (3,), 0).reach[0] * told.probability("c")
    )


def test_what_was_not_solved_in_time_is_not_solved_later(folder, monkeypatch):
    """A limited round is cut off where nobody waits any more; the next one begins from the ranges that were played."""
    settings = replace(SETTINGS, rounds=("round 2", "round 3"), limited=("round 2",), iterations=3, seconds=60)
    waiting, dropped, asked = Event(), Event(), []
    real, drop = Allowance.check, Allowance.drop

    def check(self):
        waiting.set()
        dropped.wait(30)
        real(self)

    monkeypatch.setattr(Allowance, "check", check)
    monkeypatch.setattr(Allowance, "drop", lambda self: drop(self) or dropped.set())
    monkeypatch.setattr(search, "resolve", lambda *args, **how: asked.append(args[1].history) or resolve(*args, **how))
    agent = resolving(folder, 30, replace(settings, seconds=0.3))
    first = Observation(agent.game.replay("cc/"), (0,), (3,), 7)
    assert agent.act(first) == agent.blueprint.act(first) and waiting.wait(60) and not asked
    monkeypatch.setattr(Allowance, "check", real)
    agent = replace(agent, settings=settings)
    later, board = agent.game.replay("cc/cr3c/"), (3, 5)
    assert agent.act(Observation(later, (0,), board, 7))[0] in "cr"
    assert asked == [later.history]  # and not the round before
    at = agent.hand_state(later, board, 0, monotonic())
    expected = blueprint_ranges(agent.raw, agent.game.replay("cc/"), (3,))
    for history, player, action in (("cc/", 0, "c"), ("cc/c", 1, "r3"), ("cc/cr3", 0, "c")):
        expected[player] *= agent.raw.policy(agent.game.replay(history), (3,)).probability(action)
    expected[:, 5] = 0.0
    assert at.reach == pytest.approx(expected)
    asked.clear()
    agent.act(Observation(agent.game.replay("cc/cr3"), (0,), (3,), 8))  # a bet after it is a subgame by itself
    assert asked == ["cc/cr3"]
    with pytest.raises(DroppedError, match="the time is up"):
        (time := Allowance(1.0)).drop() or time.check()


def test_what_has_few_iterations_is_not_played(folder, monkeypatch):
    """A strategy of one iteration is none: the blueprint is played, and ranges follow from it."""
    few = replace(SETTINGS, iterations=0, seconds=60)
    monkeypatch.setattr(search, "resolve", lambda *args, **how: resolve(*args, **how | {"seconds": 0.0}))
    agent, observation = resolving(folder, 30, few), Observation(small(30, 3).replay("cc/"), (0,), (3,), 7)
    assert agent.act(observation) == agent.blueprint.act(observation) and not agent._solved
    asked = replace(few, iterations=1)  # where no more are asked for
    agent = resolving(folder, 30, asked)
    assert agent.act(observation)[0] in "cr" and len(agent._solved) == 1


def test_names(folder):
    run = str(folder / "30")
    agent = load_agent(f"{run}@none@resolve:rounds=round 3:bets=50%+a:iterations=5:method=unsafe")
    assert isinstance(agent, ResolvingAgent) and agent.blueprint.rule.idle
    assert agent.settings == ResolveConfig("round 3", "unsafe", bets="50%,a", iterations=5)
    assert load_agent(f"{run}@resolve").settings.rounds == ("round 2", "round 3")
    assert type(load_agent(f"{run}@blueprint")) is BlueprintAgent
    for wrong, said in {
        "rounds=flop": "unknown round 'flop' to re-solve: small has round 2, round 3",
        "rounds=round 1": "unknown round 'round 1' to re-solve",
        "neglect=2": r"`neglect` in \[resolve\] is 2.0: give 0 to 1",
        "trust=2": r"`trust` in \[resolve\] is 2.0: give 0 to 1",
        "method=best": r"`method` in \[resolve\] is 'best': use one of unsafe, gadget, max-margin",
        "iterations=few": "'iterations=few' of .* is no setting: use KEY=VALUE with a key of rounds, method",
        "speed=2": "'speed=2' of",
    }.items():
        with pytest.raises(KiltError, match=said):
            load_agent(f"{run}@resolve:{wrong}")
