"""Local best response: its values by enumeration, and what it wins beside exact best responses."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt.abstraction.actions import actions_of
from kilt.cards.hands import strength
from kilt.errors import PlayError
from kilt.evaluate.last_round import LastRoundResponse, last_round_bound
from kilt.evaluate.lbr import LocalBestResponse, allowed_raises, lower_bound
from kilt.games import load_game
from kilt.games.game import CHANCE
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.play import match as match_module
from kilt.play.agent import BASELINES, Observation, PublicPolicy
from kilt.players.agents import load_agent
from naive import Drawn, ends, exact_responses, local_values

LEDUC = load_game("leduc")
NOLIMIT = Holdem(
    GameDef.parse("""
        GAMEDEF
        nolimit
        numPlayers = 2
        numRounds = 2
        stack = 4 4
        blind = 1 1
        firstPlayer = 1 1
        numSuits = 2
        numRanks = 3
        numHoleCards = 1
        numBoardCards = 0 1
        END GAMEDEF
        """),
    "Leduc without limits",
)
BETS = actions_of("50%, 1x, a")
WEAK = Drawn("weak", 1)


@dataclass(frozen=True)
class Responding:
    """A local best response as a strategy of all hands."""

    lbr: LocalBestResponse

    def policy(self, position, board):
        return responding(self, position, board)


@cache
def responding(agent, position, board):
    actions = position.actions()
    shares = np.zeros((len(actions), position.rules.deck.size))
    for card in {*range(position.rules.deck.size)} - {*board}:
        shares[actions.index(agent.lbr.act(Observation(position, (card,), board, 0))), card] = 1
    return PublicPolicy(actions, shares, np.arange(shares.shape[1]))


@pytest.mark.parametrize("game", [LEDUC, NOLIMIT])
def test_values_of_actions_by_enumeration(game):
    """At all decisions of both seats with some cards: no-limit bets, all-in ones and folds among them."""
    lbr, seen = LocalBestResponse(WEAK, BETS), set()

    def walk(position, board):
        if position.actor == CHANCE:
            walk(position.after("/"), (3,))
        if position.actor < 0 or len(position.history) > 6:
            return
        for hand in (0, 4):
            found = lbr.action_values(Observation(position, (hand,), board, 0))
            seen.update(found)
            assert found == pytest.approx(local_values(WEAK, position, hand, board, found), abs=1e-12)
        for action in found:
            walk(position.after(action), board)

    walk(game.start(), ())
    assert seen >= ({"f", "c", "r"} if game is LEDUC else {"f", "c", "r2", "r3", "r4"})


@pytest.mark.parametrize(("game", "first_round"), [(LEDUC, 0), (NOLIMIT, 0), (NOLIMIT, 1)])
def test_it_wins_no_more_than_a_best_response_and_luck_has_mean_0(game, first_round):
    """Over all deals and all that the agent may do, exactly: in Leduc, and without limits."""
    lbr, best = LocalBestResponse(WEAK, BETS, first_round), exact_responses(game, WEAK)
    won = []
    for seat in (0, 1):
        agents = (Responding(lbr), WEAK)[:: 1 - 2 * seat]
        mean, square, known = np.zeros(2), np.zeros(2), {}
        for hand, chance in ends(game, agents):
            seen = hand.position.history, hand.cards.holes[seat], hand.board
            if seen not in known:  # the opponent's cards make no difference
                known[seen] = lbr.without_luck(hand, seat)
            chips = np.array([hand.payoffs[seat], known[seen]])
            mean, square = mean + chance * chips, square + chance * chips**2
        money, without_luck = mean
        assert without_luck == pytest.approx(money, abs=1e-12)
        assert money <= best[seat]
        assert square[1] < 0.6 * square[0]
        won.append(money)
    assert np.mean(won) > 0.25 * np.mean(best)


def test_where_looking_one_step_ahead_is_enough():
    """Who never folds or raises loses a bet in each round to whoever is ahead; who always folds, their ante."""
    for name in ("always-call", "always-fold"):
        lbr = LocalBestResponse(BASELINES[name])
        for seat, best in enumerate(exact_responses(LEDUC, BASELINES[name])):
            agents = (Responding(lbr), BASELINES[name])[:: 1 - 2 * seat]
            assert sum(chance * hand.payoffs[seat] for hand, chance in ends(LEDUC, agents)) == pytest.approx(best)


def test_blinds_are_won_from_who_always_folds(tmp_path, monkeypatch):
    """750 mbb/h: the small blind and the big one, in turn. Without bets before the last round it is less."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path))
    game = Holdem(
        GameDef.parse("""
            GAMEDEF
            nolimit
            numPlayers = 2
            numRounds = 2
            stack = 2000 2000
            blind = 100 50
            firstPlayer = 2 1
            numSuits = 3
            numRanks = 3
            numHoleCards = 2
            numBoardCards = 0 2
            END GAMEDEF
            """)
    )
    found = lower_bound(game, BASELINES["always-fold"], 40)
    assert (found.won.mean, found.money.mean, found.hands) == pytest.approx((750, 750, 40))
    assert found.won.margin == pytest.approx(0, abs=1e-9)


# ── exact best responses in the last round ──


def naive_response(position, board, mine, theirs, seat, menu):
    """Chips that a hand wins by calling before the last round and a best response there, by weights of other hands."""
    rules, deck = position.rules, position.rules.deck
    if position.folded is not None:
        return sum(theirs.values()) * position.stake * (1 if position.folded != seat else -1)
    if position.actor == CHANCE:
        size = sum(rules.board_cards) if position.after("/").actor < 0 else rules.board_size(position.after("/").round)
        boards = list(combinations([card for card in range(deck.size) if card != mine], size))
        total = 0.0
        for dealt in boards:
            kept = {card: weight for card, weight in theirs.items() if card not in dealt}
            total += naive_response(position.after("/"), dealt, mine, kept, seat, menu)
        return total / (len(boards) * (deck.size - 1 - size) / (deck.size - 1))
    if position.actor < 0:
        own = strength([mine, *board], deck)
        return position.stake * sum(w * np.sign(own - strength([card, *board], deck)) for card, w in theirs.items())
    if position.actor != seat:
        policy, total = WEAK.policy(position, board), 0.0
        for action in policy.actions:
            share = policy.probability(action)
            kept = {card: weight * share[card] for card, weight in theirs.items()}
            total += naive_response(position.after(action), board, mine, kept, seat, menu)
        return total
    actions = ["c"]
    if position.round == rules.rounds - 1:
        actions += [*(["f"] if position.facing else []), *allowed_raises(position, menu)]
    return max(naive_response(position.after(action), board, mine, theirs, seat, menu) for action in actions)


@pytest.mark.parametrize("game", [LEDUC, NOLIMIT])
def test_exact_responses_in_the_last_round(game):
    """Mean over all hands that a caller and the agent play: that of best responses, and no less than LBR's."""
    response, lbr, deck = LastRoundResponse(game, BETS), LocalBestResponse(WEAK, BETS, 1), range(game.deck.size)
    for seat in (0, 1):
        agents, local = ((one, WEAK)[:: 1 - 2 * seat] for one in (BASELINES["always-call"], Responding(lbr)))
        found, values = 0.0, set()
        for hand, chance in ends(game, agents):
            values.add(value := response.value(WEAK, hand, seat))
            found += chance * value
        free = [({card: 1 / (len(deck) - 1) for card in deck if card != mine}, mine) for mine in deck]
        expected = [naive_response(game.start(), (), mine, theirs, seat, BETS) for theirs, mine in free]
        assert found == pytest.approx(np.mean(expected), abs=1e-9) and len(values) > 5
        assert found >= sum(chance * hand.payoffs[seat] for hand, chance in ends(game, local)) - 1e-9
        assert found <= exact_responses(game, WEAK)[seat] + 1e-9


def test_the_exact_response_is_the_same_on_several_processes(monkeypatch):
    monkeypatch.setattr(match_module, "WORTHWHILE", 0.0)  # start processes for any match
    one, two = (last_round_bound(LEDUC, "random", 400, 3, load=load_agent, processes=n) for n in (1, 2))
    assert one == two and one.won.mean > one.money.mean and one.won.margin < 0.7 * one.money.margin


class Liar(Drawn):
    """An agent that does not do what it says."""

    def act(self, observation):
        return "c"


def test_what_cannot_be():
    liar = Liar("liar", 1, gaps=1.0)  # it says that it takes the last action, and calls
    with pytest.raises(PlayError, match=r"liar played '.*', to which its `policy` gives probability 0"):
        lower_bound(LEDUC, liar, 4)
    with pytest.raises(PlayError, match="from round 2 on: the rounds of leduc are 0 to 1"):
        lower_bound(LEDUC, WEAK, 4, first_round=2)


def test_the_command():
    found = answer("evaluate", "lbr", "always-fold", "--game", "leduc", "--hands", 8, "--round", "round 2")
    assert found["ci95"][0] < 1000 < found["ci95"][1] and found["money"]["mbb_per_hand"] == 1000
    assert (found["hands"], found["from"], found["player"], found["unit"]) == (8, "round 2", "always-fold", "mbb/h")
    shown = kilt("evaluate", "lbr", "always-fold", "--game", "leduc", "--hands", 8).stdout
    assert "+1000.0 ± 0.0" in shown and "8 hands" in shown
    exact = answer("evaluate", "lbr", "always-fold", "--game", "leduc", "--hands", 8, "--exact")
    assert exact["mbb_per_hand"] == 1000 and exact["exact"] and exact["from"] == "round 2" and not found["exact"]
    shown = kilt("evaluate", "lbr", "always-call", "--game", "leduc", "--hands", 8, "--exact").stdout
    assert "best response to always-call from round 2 on" in shown and "raw winnings of a caller" in shown
    said = ("evaluate", "lbr", "always-call")
    assert "give the `game`" in refused(*said)
    assert "there is no round 'flop': use one of round 1" in refused(*said, "--game", "leduc", "--round", "flop")
    assert "give --round round 2" in refused(*said, "--game", "leduc", "--round", "round 1", "--exact")
    assert "leduc is a limit game" in refused(*said, "--game", "leduc", "--bets", "1x")
    assert "bet size 'half'" in refused(*said, "--game", "holdem.nolimit.2p", "--bets", "half")
    assert "use an even number" in refused(*said, "--game", "leduc", "--hands", 3)
    assert "raises to any of thousands" in refused("evaluate", "lbr", "random", "--game", "holdem.nolimit.2p")
