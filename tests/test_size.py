"""Sizes of games against published counts, against enumeration, and against another program's rules."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from math import comb

import pyspiel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from kilt.errors import GameError
from kilt.games import size
from kilt.games.bluff import Bluff
from kilt.games.gamedef import UNLIMITED, UNLIMITED_RAISES, GameDef, load_definition
from kilt.games.holdem import Holdem
from kilt.games.size import GameSize, abstract_size, size_of
from kilt.tree.betting import betting_tree
from written_out import tree_of

HULHE, NOLIMIT = "holdem.limit.2p", "holdem.nolimit.2p"
HOLES, FLOPS = comb(52, 2), comb(50, 3)


@cache
def library_size(name: str) -> GameSize:
    return size_of(load_definition(name))


# Published numbers


def test_heads_up_limit_holdem() -> None:
    holdem = library_size(HULHE)
    assert holdem.decisions == (8, 70, 630, 5670)
    assert holdem.actions[0] == 8 + 7 + 6  # calls, folds (the big blind's option is not one) and raises
    assert holdem.information_sets[3] == 5670 * HOLES * FLOPS * 47 * 46
    assert holdem.states[3] == 5670 * HOLES * comb(50, 2) * comb(48, 3) * 45 * 44
    assert f"{holdem.information_sets.total:.4e}" == "3.1937e+14"
    assert f"{holdem.canonical_information_sets.total:.4e}" == "1.3803e+13"
    assert f"{holdem.states.total:.4e}" == "3.1621e+17"


@pytest.mark.parametrize(
    ("name", "information_sets", "states"),
    [
        ("holdem.nolimit.2p.1-2", "7.2317e+72", "7.1594e+75"),
        (NOLIMIT, "6.3752e+161", "6.3114e+164"),
    ],
)
def test_no_limit_holdem(name: str, information_sets: str, states: str) -> None:
    assert f"{library_size(name).information_sets.total:.4e}" == information_sets
    assert f"{library_size(name).states.total:.4e}" == states


@pytest.mark.parametrize(
    ("name", "decisions", "canonical"),
    [
        ("holdem.2-1", (4, 12), 15_442_180),
        ("holdem.2-4", (8, 70), 90_076_792),
        ("kuhn", (4,), 12),
        ("one-card", (4,), 52),
        ("leduc", (6, 30), 6 * 3 + 30 * 15),
        ("rhode-island", (8, 8 * 7, 8 * 7 * 7), None),
    ],
)
def test_smaller_games(name: str, decisions: tuple[int, ...], canonical: int | None) -> None:
    assert library_size(name).decisions == decisions
    if canonical is not None:
        assert library_size(name).canonical_information_sets.total == canonical


@pytest.mark.parametrize(
    ("name", "buckets", "information_sets"),
    [
        # [Johanson16 table 5.2]. Its first two columns count 70 × 100 flop information sets as 700: so 57,330,780.
        (HULHE, "PR 10-10-10-10", 57_330_780 - 700 + 70 * 100),
        (HULHE, "IR 10-100-1,000-10,000", 57_330_780 - 700 + 70 * 100),
        (HULHE, "IR 169-9000-9000-9000", 57_331_352),
        (HULHE, "PR-2-2-2-2", 96_056),
        (HULHE, "pr 3-3-3-3", 476_934),
        ("holdem.2-4", "PR 5-5", 1_790),
        ("holdem.2-4", "IR 169-570", 41_252),
    ],
)
def test_abstractions(name: str, buckets: str, information_sets: int) -> None:
    assert abstract_size(load_definition(name), buckets).information_sets.total == information_sets


def test_abstract_infoset_actions() -> None:
    kuhn = abstract_size(load_definition("kuhn"), "IR 3")
    assert (kuhn.buckets, kuhn.information_sets, kuhn.infoset_actions) == ((3,), (12,), (24,))
    assert kuhn.infoset_actions == library_size("kuhn").infoset_actions


def test_bluff() -> None:
    """The same game, counted and written out; two dice each as in [Johanson16 §3.2.3]."""
    counted, tree = size_of(Bluff((1, 1))), tree_of("bluff-1-1")
    assert counted.information_sets.total == len(tree.infosets)
    assert counted.infoset_actions.total == tree.nodes.infoset_start[-1]
    assert counted.states.total == (tree.nodes.actor >= 0).sum()
    assert size_of(Bluff((2, 2))).information_sets.total == 21 * 2**24 == 352_321_536


# Against enumeration


@st.composite
def game_defs(draw: st.DrawFn) -> GameDef:
    """Small heads-up games: any blinds, any first player, short and long stacks, raises capped or not."""
    betting = draw(st.sampled_from(["limit", "nolimit"]))
    rounds = draw(st.integers(1, 3))

    def per_round(values: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(st.lists(values, min_size=rounds, max_size=rounds)))

    blinds = draw(st.permutations([draw(st.integers(0, 4)), draw(st.integers(1, 4))]).map(tuple))
    behind = st.integers(0, (16, 11, 8)[rounds - 1])
    one, two = draw(behind), draw(behind)
    return GameDef(
        betting=betting,
        players=2,
        rounds=rounds,
        stacks=(max(blinds) + one, max(blinds) + draw(st.sampled_from([one, two]))),
        blinds=blinds,
        raise_sizes=per_round(st.integers(1, 4)) if betting == "limit" else (),
        first_player=per_round(st.integers(0, 1)),
        max_raises=per_round(st.sampled_from([UNLIMITED_RAISES, 0, 1, 2, 3])),
        suits=2,
        ranks=8,
        hole_cards=1,
        board_cards=(0, 1, 1)[:rounds],
    )


def test_enumeration_of_kuhn_poker() -> None:
    assert naive.count_betting(load_definition("kuhn")) == ((4,), (8,))


@given(game_defs())
@settings(max_examples=400)
def test_agrees_with_enumeration(game: GameDef) -> None:
    counted = size_of(game)
    assert (counted.decisions, counted.actions) == naive.count_betting(game)
    assert counted.information_sets == counted.decisions.multiply((16, 16 * 15, 16 * 15 * 14))
    assert counted.infoset_actions == counted.actions.multiply((16, 16 * 15, 16 * 15 * 14))
    assert counted.states == counted.decisions.multiply((16 * 15, 16 * 15 * 14, 16 * 15 * 14 * 13))


@given(game_defs())
@settings(max_examples=50)
def test_agrees_with_the_betting_tree(game: GameDef) -> None:
    """The rules that are counted are the rules that are played."""
    nodes = betting_tree(Holdem(game)).nodes
    counted = size_of(game)
    for r in range(game.rounds):
        deciding = (nodes.actor >= 0) & (nodes.round == r)
        assert (counted.decisions[r], counted.actions[r]) == (deciding.sum(), nodes.children[deciding].sum())


@pytest.mark.parametrize("blinds", [(2, 1), (3, 3), (1, 5)])
@pytest.mark.parametrize("max_raises", [(255, 255, 255), (2, 255, 4), (0, 40, 1)])
@pytest.mark.parametrize("stacks", [(40, 40), (40, 41), (60, 35), (30, 500)])
def test_two_ways_to_count_agree(blinds: tuple[int, int], max_raises: tuple[int, ...], stacks: tuple[int, int]) -> None:
    board = {"rounds": 3, "first_player": (1, 0, 0), "board_cards": (0, 3, 1)}
    game = replace(load_definition(NOLIMIT), stacks=stacks, blinds=blinds, max_raises=max_raises, **board)
    assert size._partitions(game) == size._walk(game)


def test_unequal_stacks_of_the_competition() -> None:
    """More than two primes' worth of sequences, and a bound that lies between the games with equal stacks."""
    equal, unequal, deep = (
        size_of(replace(load_definition(NOLIMIT), stacks=stacks)).decisions.total
        for stacks in ((5000, 5000), (5000, 5001), (20000, 5000))
    )
    assert equal < unequal < deep < equal * 15001


def test_a_longer_stack_adds_only_raises_that_cover() -> None:
    short = replace(load_definition(NOLIMIT), stacks=(12, 12), blinds=(2, 1))
    long = replace(short, stacks=(12, 1_000_000))
    assert size_of(long).decisions[0] > size_of(short).decisions[0] + 900_000
    assert size_of(replace(long, max_raises=(0,) * 4)) == size_of(replace(short, max_raises=(0,) * 4))


# Against the rules of the competition's server, through open_spiel (which takes stacks for unlimited in limit games)


def spiel_betting(game: GameDef) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Decisions and legal actions of each round, with one deal of the cards."""

    def words(values: tuple[int, ...]) -> str:
        return " ".join(map(str, values))

    rules: dict[str, str | int] = {
        "betting": game.betting,
        "bettingAbstraction": "fullgame" if game.betting == "nolimit" else "fcpa",
        "numPlayers": 2,
        "numRounds": game.rounds,
        "blind": words(game.blinds),
        "stack": words(game.stacks),
        "firstPlayer": words(tuple(player + 1 for player in game.first_player)),
        "maxRaises": words(game.max_raises),
        "numSuits": game.suits,
        "numRanks": game.ranks,
        "numHoleCards": game.hole_cards,
        "numBoardCards": words(game.board_cards),
    }
    if game.betting == "limit":
        rules["raiseSize"] = words(game.raise_sizes)
    decisions, actions = [0] * game.rounds, [0] * game.rounds

    def play(state: pyspiel.State) -> None:
        if state.is_terminal():
            return
        choices = state.legal_actions()
        if state.is_chance_node():
            choices = choices[:1]
        else:
            sequence = re.search(r"STATE:\d+:([^:]*):", str(state))
            assert sequence is not None
            decisions[sequence[1].count("/")] += 1
            actions[sequence[1].count("/")] += len(choices)
        for choice in choices:
            play(state.child(choice))

    play(pyspiel.load_game("universal_poker", rules).new_initial_state())
    return tuple(decisions), tuple(actions)


@given(game_defs())
@settings(max_examples=100)
def test_agrees_with_open_spiel(game: GameDef) -> None:
    if game.betting == "limit":
        capped = tuple(min(cap, 3) for cap in game.max_raises)
        game = replace(game, stacks=(UNLIMITED, UNLIMITED), max_raises=capped)
    else:  # where a blind uses up a stack, the server asks for checks that decide nothing, or hangs
        game = replace(game, stacks=tuple(max(stack, game.big_blind + 1) for stack in game.stacks))
    counted = size_of(game)
    if counted.decisions.total < 1000:
        assert (counted.decisions, counted.actions) == spiel_betting(game)


# Refusals


def test_only_heads_up_games() -> None:
    three = replace(load_definition("kuhn"), players=3, blinds=(1, 1, 1), stacks=(UNLIMITED,) * 3, ranks=4)
    with pytest.raises(GameError, match="the game has 3 players; only games of 2"):
        size_of(three)


@pytest.mark.parametrize(
    ("name", "change", "remedy"),
    [
        (HULHE, {"max_raises": (255,) * 4}, "set `maxRaises`"),
        ("kuhn", {"max_raises": (255,)}, "set `maxRaises`"),
        (NOLIMIT, {"stacks": (10**9, 10**8)}, "use smaller stacks or larger blinds"),
        (NOLIMIT, {"stacks": (10**9, 10**9)}, "use smaller stacks or larger blinds"),
    ],
)
def test_what_would_take_too_long_is_refused(name: str, change: dict[str, tuple[int, ...]], remedy: str) -> None:
    with pytest.raises(GameError, match=r"would take about \de\+\d\d seconds; at most 60 are allowed: " + remedy):
        size_of(replace(load_definition(name), **change))


@pytest.mark.parametrize("buckets", ["", "10-10-10-10", "PR", "PR 10", "PR 10-10-10", "IR 1-1-1-0", "XR 1-1-1-1"])
def test_wrong_buckets(buckets: str) -> None:
    with pytest.raises(GameError, match=re.escape(repr(buckets))):
        abstract_size(load_definition(HULHE), buckets)
