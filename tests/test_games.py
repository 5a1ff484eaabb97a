from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kilt.errors import GameError
from kilt.games import load_game, ready_made_games
from kilt.games.bluff import VALUES, Bidding, Bluff
from kilt.games.game import CHANCE, TERMINAL, check_game
from kilt.games.gamedef import GameDef, load_definition
from kilt.games.holdem import Holdem

NAMES = [
    "kuhn",
    "leduc",
    "one-card",
    "bluff-1-1",
    "bluff-2-1",
    "bluff-2-2",
    "rhode-island",
    "holdem.2-1",
    "holdem.2-4",
    "holdem.3-1",
    "holdem.limit.2p",
    "holdem.nolimit.2p",
    "royal.limit.2p",
]


def test_the_promised_games_are_there():
    assert set(NAMES) <= set(ready_made_games())


@pytest.mark.parametrize("name", sorted(ready_made_games()))
def test_every_game_keeps_the_contract(name):
    game = load_game(name)
    check_game(game, walks=100 if len(game.hands(0)) < 60 else 10)


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ({"payoffs": lambda self, *_: (1.0, 1.0)}, "do not add up to 0"),
        ({"payoffs": lambda self, *_: (float("nan"), 0.0)}, "payoffs are"),
        ({"deals": lambda self: np.full((6, 6), 1.0)}, "deals add up to"),
        ({"deals": lambda self: np.full((6, 5), 1 / 30)}, "deals have shape"),
        ({"hands": lambda self, player: ["1"] * 6}, "share a name"),
        ({"start": lambda self: Bidding(2, (), actor=7)}, "the actor is 7"),
        ({"start": lambda self: Bidding(2, (), actor=0, called=True)}, "the actor has no legal action"),
    ],
)
def test_check_game_finds_faults(fault, complaint):
    broken = type("Faulty", (Bluff,), fault)((1, 1))
    with pytest.raises(GameError, match=complaint):
        check_game(broken)


def nolimit(stacks="1000 1000", blinds="100 50", **extra):
    """The game of the competition with some values changed."""
    text = str(load_definition("holdem.nolimit.2p")).replace("20000 20000", stacks).replace("100 50", blinds)
    lines = [f"{key} = {value}" for key, value in extra.items()]
    return Holdem(GameDef.parse(text.replace("END GAMEDEF", "\n".join([*lines, "END GAMEDEF"]))))


def play(game, *actions):
    position = game.start()
    for action in actions:
        position = position.after(action)
    return position


def test_minimum_raises():
    game = nolimit(stacks="20000 20000")
    assert play(game).raise_bounds() == (200, 20000)
    assert play(game, "r300").raise_bounds() == (500, 20000)  # the last raise was 200
    assert play(game, "r300", "r1000").raise_bounds() == (1700, 20000)
    assert play(game, "c", "c", "/").raise_bounds() == (200, 20000)  # a bet of the big blind at least
    assert play(game, "r300", "c", "/", "c").raise_bounds() == (400, 20000)


def test_all_in_below_the_minimum():
    game = nolimit()
    assert play(game, "r900").raise_bounds() == (1000, 1000)
    end = play(game, "r900", "r1000")
    assert end.raise_bounds() is None
    assert end.actions() == ("f", "c")


def test_nobody_acts_after_an_all_in_call():
    position = play(nolimit(), "r1000", "c")
    for _ in range(3):
        assert position.actor == CHANCE
        position = position.after("/")
    assert position.actor == TERMINAL
    assert position.history == "r1000c///"


def test_uncalled_chips_go_back():
    game = nolimit(stacks="1000 400")
    end = play(game, "c", "r1000", "c", "/", "/", "/")  # the short stack calls with all of its 400
    aces, kings = (game.deck.hole_index(game.deck.cards(hand)) for hand in ("AsAh", "KsKh"))
    board = game.deck.cards("2c3d7h8s9c")
    assert game.payoffs(end, (aces, kings), board) == (400, -400)
    assert game.payoffs(end, (kings, aces), board) == (-400, 400)
    folded = play(game, "c", "r1000", "f")
    assert game.payoffs(folded, (kings, aces), ()) == (100, -100)


@settings(max_examples=60)
@given(st.sampled_from(["leduc", "rhode-island", "royal.limit.2p", "holdem.nolimit.2p", "bluff-2-1"]), st.randoms())
def test_payoffs_sum_to_zero(name, rng):
    """Whatever is dealt and done, one player wins what the other loses, and in poker no more than both have put in."""
    game = load_game(name)
    possible = np.argwhere(game.deals() > 0)
    hands = possible[rng.randrange(len(possible))]
    position, board = game.start(), ()
    while position.actor != TERMINAL:
        if position.actor == CHANCE:
            board = rng.choice(game.reveals(position, tuple(hands), board))[0]
        position = position.after(rng.choice(position.actions()))
    first, second = game.payoffs(position, tuple(hands), board)
    assert first + second == 0
    assert abs(first) <= (position.stake if isinstance(game, Holdem) else 1)


def test_ties_pay_nothing():
    game = nolimit()
    end = play(game, "c", "c", "/", "c", "c", "/", "c", "c", "/", "c", "c")
    hands = tuple(game.deck.hole_index(game.deck.cards(hand)) for hand in ("2s2h", "3s3h"))
    assert game.payoffs(end, hands, game.deck.cards("AsKdQhJcTd")) == (0, 0)


def test_a_blind_that_takes_the_whole_stack():
    game = nolimit(stacks="100 1000")  # the big blind is all-in
    assert play(game).actions() == ("f", "c")
    assert play(game, "c").actor == CHANCE
    both = nolimit(stacks="100 100", blinds="100 100")
    assert both.start().actor == CHANCE


def test_the_big_blind_checks_after_an_all_in_call():
    """The round has begun, so all who have chips are asked, as the ACPC's server does."""
    game = nolimit(stacks="1000 100")
    assert play(game, "c").actions() == ("c",)
    assert play(game, "c", "c", "/", "/", "/").actor == TERMINAL


def test_free_checks_cannot_be_folded():
    game = nolimit()
    assert "f" not in play(game, "c").actions()
    with pytest.raises(GameError, match=r"'f' is not legal after 'c': use one of c, r200 to r1000"):
        play(game, "c", "f")


@pytest.mark.parametrize("action", ["r199", "r1001", "r", "x", "/", "r2e2", "r-5", "r 300"])
def test_illegal_actions(action):
    with pytest.raises(GameError, match="is not legal"):
        play(nolimit(), action)


def test_the_number_of_raises_can_be_limited_in_no_limit():
    game = nolimit(maxRaises="1 1 1 1")
    assert play(game, "r200").raise_bounds() is None


def test_limit_raises_stop_at_the_stack():
    text = str(load_definition("holdem.limit.2p")).replace("blind", "stack = 25 25\nblind", 1)
    game = Holdem(GameDef.parse(text))
    assert play(game, "r").spent == (10, 20)
    assert play(game, "r", "r").spent == (25, 20)
    assert play(game, "r", "r").actions() == ("f", "c")


def test_more_than_two_players_are_refused():
    text = (
        str(load_definition("holdem.limit.2p"))
        .replace("numPlayers = 2", "numPlayers = 3")
        .replace("blind = 10 5", "blind = 0 5 10")
    )
    rules = GameDef.parse(text)
    with pytest.raises(GameError, match="has 3 players; kilt builds games for 2"):
        Holdem(rules, "three")


def test_three_private_cards_are_refused():
    text = (
        str(load_definition("leduc"))
        .replace("numHoleCards = 1", "numHoleCards = 3")
        .replace("numRanks = 3", "numRanks = 5")
    )
    with pytest.raises(GameError, match="deals 3 private cards"):
        Holdem(GameDef.parse(text))


def test_unknown_games():
    with pytest.raises(GameError, match=r"unknown game 'holdem': .* kuhn"):
        load_game("holdem")


def test_bluff_rounds_are_chained():
    """[Johanson16 §3.2.3]: who loses a round loses a die, and the winner starts the next one."""
    call = Bluff((2, 1)).start().after("3-*").after("bluff")
    assert Bluff((2, 1)).payoffs(call, (0, 0), ()) == (
        -VALUES[1, 1],
        VALUES[1, 1],
    )  # no star: player 1 goes on, and starts
    stars = len(Bluff((2, 1)).hands(0)) - 1
    assert Bluff((2, 1)).payoffs(call, (stars, 5), ()) == (1, -1)
    call = Bluff((2, 2)).start().after("1-1").after("bluff")
    assert Bluff((2, 2)).payoffs(call, (0, 0), ()) == (VALUES[2, 1], -VALUES[2, 1])
    with pytest.raises(GameError, match="value is unknown"):
        Bluff((3, 3))
    with pytest.raises(GameError, match="0 and 1 dice"):
        Bluff((0, 1))


def test_stars_are_wild():
    game = Bluff((1, 1))
    for mine, theirs in product(range(6), repeat=2):
        call = game.start().after("2-3").after("bluff")
        holds = mine in (2, 5) and theirs in (2, 5)
        assert game.payoffs(call, (mine, theirs), ())[0] == (1 if holds else -1)
