"""The language of bet sizes, and the sizes of trees made with it."""

import numpy as np
import pytest

from kilt.abstraction.actions import ActionsByChipsLeft, actions_of
from kilt.errors import AbstractionError
from kilt.games import load_game
from kilt.games.gamedef import load_definition
from kilt.games.holdem import Betting
from kilt.tree.betting import betting_size, betting_tree

NOLIMIT = load_definition("holdem.nolimit.2p")


def after(*actions):
    position = Betting.start(NOLIMIT)
    for action in actions:
        position = position.after(action)
    return position


def levels(text, *actions, near=0.8):
    return sorted(actions_of(text, near)(after(*actions)))


def test_sizes_are_parts_of_the_pot_after_calling():
    assert levels("1x") == [300]  # call to 100 each, then the pot of 200
    assert levels("50%, 200%", "r300", "c", "/") == [600, 1500]
    assert levels("75%", "r300") == [750]
    assert levels("0.75x", "r300") == levels("75%", "r300")


def test_small_sizes_become_the_least_raise_and_equal_ones_are_one():
    assert levels("10%, 20%, m, 50%") == [200]
    assert levels("m", "r500") == [900]
    assert levels("1%, 2%", "c", "c", "/") == [200]


def test_sizes_near_all_in_are_all_in():
    assert levels("a") == [20000]
    assert levels("1x", "r5200") == [15600]
    assert levels("1x", "r5400") == [20000]  # 16,200 is more than 0.8 of 20,000
    assert levels("1x", "r5400", near=1.0) == [16200]
    assert levels("1x, a", "r5400") == [20000]
    assert levels("1x, a", "r20000") == []


def test_the_all_in_threshold_is_a_share_of_the_chips_left():
    """At least that share of what the actor has left at the decision: not of the chips that are in the pot already."""
    river = ("r6000", "c", "/", "c", "c", "/", "c", "c", "/")  # 14,000 left, and 12,000 in the pot

    def behind(text, *actions, near=0.5):
        return sorted(ActionsByChipsLeft((text,), near)(after(*actions)))

    assert behind("50%", *river) == [12000] and levels("50%", *river, near=0.5) == [20000]
    assert behind("58%", *river) == [12960]
    assert behind("58.3%", *river) == [12996]
    assert behind("58.33%", *river) == [20000]  # 7,000 of 14,000
    assert behind("58.33%", *river, near=0.51) == [13000]
    assert behind("50%", *river, "r10000", near=0.85) == [20000]  # 14,000 of 14,000 to raise by half the pot
    assert behind("25%", *river, "r10000", near=0.65) == [15000]  # 9,000 of 14,000, the call included
    assert behind("25%", *river, "r10000", near=0.64) == [20000]
    # Shares of whole numbers of chips are exact: 0.55 * 100 is a little more than 55 in binary.
    menu = ActionsByChipsLeft(("a",), 0.55)
    assert menu.all_in_level(after("r19900", "c", "/")) == 19955


def test_rounds_raises_and_players_have_their_own():
    text = "1x; a / 50%; 1x / 2x"
    assert levels(text) == [300]
    assert levels(text, "r300") == [20000]
    assert levels(text, "c", "c", "/") == [200]
    assert levels(text, "c", "c", "/", "r200") == [600]
    assert levels(text, "c", "c", "/", "r200", "r600") == [1800]
    assert levels(text, "c", "c", "/", "c", "c", "/", "c", "c", "/") == [500]
    assert levels(["1x", "2x"]) == [500]  # the small blind is player 2
    assert levels(["1x", "2x"], "c") == [300]
    assert levels("/ 1x") == []


@pytest.mark.parametrize(
    "word", ["1", "x", "%", "-1x", "0%", "all", "nanx", "infx", "1e400x", "1 x x", "1000000000%", "1001x"]
)
def test_what_is_no_size_is_said(word):
    with pytest.raises(AbstractionError, match="bet size"):
        actions_of(f"1x, {word}")


def test_bad_menus():
    with pytest.raises(AbstractionError, match="3 times"):
        actions_of(["a", "a", "a"])
    for near in (0.0, 1.1, float("nan")):
        with pytest.raises(AbstractionError, match="near"):
            actions_of("a", near)


@pytest.mark.parametrize("text", ["", "a", "1x", "1x, a; a / 50%, a; a / a", "m; m; / "])
def test_sizes_of_trees_are_known_before_they_are_written_out(text):
    game = load_game("holdem.nolimit.2p")
    menu = actions_of(text)
    size, nodes = betting_size(game, menu), betting_tree(game, menu).nodes
    assert size.nodes == len(nodes.actor)
    for player in (0, 1):
        mine = nodes.actor == player
        assert size.decisions[player] == tuple(np.bincount(nodes.round[mine], minlength=4))
        actions = np.bincount(nodes.round[mine], nodes.children[mine], minlength=4)
        assert size.actions[player] == tuple(actions.astype(int))
