from dataclasses import replace
from math import comb

import numpy as np
import pytest

import naive
from kilt.abstraction.actions import ActionsByChipsLeft, actions_of
from kilt.cards.boards import canonical_boards, card_permutations, hand_permutations
from kilt.cards.deck import FULL, Deck
from kilt.cards.isomorphism import Isomorphism
from kilt.errors import GameError
from kilt.games import load_game
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.gamedef import GameDef, load_definition
from kilt.games.holdem import Holdem
from kilt.tree import betting
from kilt.tree.betting import betting_size, betting_tree, public_tree
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame
from written_out import tree_of

SMALL = {
    "one card, three suits": "1 5 3",
    "two cards": "2 4 2",
    "royal": "2 5 4",
}


def small_game(shape, betting="limit"):
    hole, ranks, suits = shape.split()
    rules = ["raiseSize = 2 4", "maxRaises = 2 2"] if betting == "limit" else ["stack = 9 9"]
    text = ["GAMEDEF", betting, "numPlayers = 2", "numRounds = 2", "blind = 1 2", *rules, "firstPlayer = 1 2"]
    text += [
        f"numSuits = {suits}",
        f"numRanks = {ranks}",
        f"numHoleCards = {hole}",
        "numBoardCards = 0 1",
        "END GAMEDEF",
    ]
    return Holdem(GameDef.parse("\n".join(text)), f"small {betting}")


def check_shape(nodes):
    """Parents before children, siblings together, every node a child exactly once."""
    count = len(nodes.parent)
    for node in range(count):
        start, number = nodes.first_child[node], nodes.children[node]
        assert all(nodes.parent[start : start + number] == node)
        assert number == 0 or start > node
        assert (nodes.actor[node] == TERMINAL) == (number == 0)
    assert nodes.children.sum() == count - 1


@pytest.mark.parametrize(
    ("name", "infosets", "slots"),
    [("kuhn", 12, 24), ("leduc", 936, 2184), ("one-card", 52, 104), ("bluff-1-1", 24_576, 49_140)],
)
def test_flat_trees(name, infosets, slots):
    """The numbers of information sets are those of open_spiel's games."""
    tree = tree_of(name)
    check_shape(tree.nodes) if name != "bluff-1-1" else None
    assert len(tree.infosets) == len(tree.actions) == infosets
    assert tree.nodes.infoset_start[-1] == slots
    chance = tree.nodes.actor == CHANCE
    sums = np.bincount(tree.nodes.parent[1:], weights=tree.nodes.chance[1:], minlength=len(chance))
    np.testing.assert_allclose(sums[chance], 1)


def test_information_sets_of_a_flat_tree_are_consistent():
    tree = tree_of("leduc")
    nodes = tree.nodes
    acting = np.flatnonzero(nodes.actor >= 0)
    assert np.array_equal(nodes.infoset_player[nodes.infoset[acting]], nodes.actor[acting])
    sizes = np.diff(nodes.infoset_start)
    assert np.array_equal(sizes[nodes.infoset[acting]], nodes.children[acting])
    assert tree.infosets.index("Ks|/Qh|crc/r") >= 0


def test_expected_payoff_of_a_flat_tree():
    """Kuhn poker, both players choosing at random: worth 1/8 to player 1 by open_spiel's rules."""
    nodes = tree_of("kuhn").nodes
    reach = np.ones(len(nodes.parent))
    for node in range(1, len(nodes.parent)):
        above = nodes.parent[node]
        step = nodes.chance[node] if nodes.actor[above] == CHANCE else 1 / nodes.children[above]
        reach[node] = reach[above] * step
    assert float(reach @ nodes.payoff) == pytest.approx(1 / 8)


def test_large_games_are_not_written_out():
    with pytest.raises(GameError, match="more than 1,000 nodes"):
        flat_tree(load_game("leduc"), most_nodes=1000)
    with pytest.raises(GameError, match="use fewer bet sizes"):
        betting_tree(load_game("holdem.nolimit.2p"), most_nodes=100_000)


@pytest.mark.parametrize("name", ["kuhn", "leduc", "rhode-island", "holdem.2-4", "holdem.limit.2p", "bluff-1-1"])
def test_betting_trees(name):
    tree = public_tree(load_game(name))
    check_shape(tree.nodes)
    for leaf, position in enumerate(tree.leaves[:50]):
        node = int(np.flatnonzero(tree.nodes.leaf == leaf)[0])
        labels = []
        while node > 0:
            labels.append(tree.labels[node])
            node = int(tree.nodes.parent[node])
        assert "".join(reversed(labels)) == position.history.replace(" ", "")


BETTING = {
    name: (replace(load_definition("holdem.nolimit.2p"), stacks=stacks), menu)
    for name, stacks, menu in [
        ("all-in by the blinds", (100, 100), "a"),
        ("one is nearly all-in", (150, 2000), "50%, 1x, a"),
        ("deeper in seat 1", (430, 1000), "33%, 1x; 2x, m"),
        ("a size for each round", (3000, 3000), "m, a / 1x; a / / 75%, 3x"),
        ("all bets", (300, 240), None),
        ("the least, again and again", (8000, 8000), "m / "),
    ]
}


@pytest.mark.parametrize(("rules", "menu"), BETTING.values(), ids=BETTING)
@pytest.mark.parametrize("shape", [{}, {"max_raises": (2, 255, 0, 1), "blinds": (3, 90), "first_player": (0, 1, 0, 1)}])
def test_compiled_betting_is_that_of_positions(rules, menu, shape, monkeypatch):
    monkeypatch.setattr(betting, "FEW", 0)
    check_betting(Holdem(replace(rules, **shape)), menu and actions_of(menu, 0.7))
    if menu:
        check_betting(Holdem(replace(rules, **shape)), ActionsByChipsLeft((menu,), 0.55))


@pytest.mark.parametrize("name", ["kuhn", "leduc", "rhode-island", "holdem.limit.2p"])
def test_compiled_betting_in_limit_games(name, monkeypatch):
    monkeypatch.setattr(betting, "FEW", 0)
    check_betting(load_game(name), None)
    rules = load_game(name).rules
    check_betting(Holdem(replace(rules, stacks=(rules.big_blind + 1, rules.big_blind + 30))), None)


def test_players_may_have_menus_of_their_own(monkeypatch):
    monkeypatch.setattr(betting, "FEW", 0)
    check_betting(load_game("holdem.nolimit.2p.25bb"), actions_of(["1x, a", "50%, 125%; a"]))


def check_betting(game, menu):
    """The compiled tree is that which positions make, node by node; it is counted right, and leaves end alike."""
    betting_size.cache_clear()
    theirs, mine, size = public_tree(game, menu), betting_tree(game, menu), betting_size(game, menu)
    for one, other in zip(mine.nodes, theirs.nodes, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert mine.labels == theirs.labels
    assert mine.leaves == theirs.leaves
    assert mine.stake.tolist() == [leaf.stake for leaf in theirs.leaves]
    assert mine.folded.tolist() == [-1 if leaf.folded is None else leaf.folded for leaf in theirs.leaves]
    assert size == betting_size(game, lambda position: menu(position)) if menu else size.nodes == len(mine.level)
    with pytest.raises(GameError, match="more than"):
        betting_size(game, menu, most_nodes=size.nodes - 1)
    slow = betting_tree(game, menu and (lambda position: menu(position)))
    assert slow.same_bets(mine) and slow.stake.tolist() == mine.stake.tolist()


def test_menus_choose_among_legal_raises():
    tree = betting_tree(load_game("holdem.nolimit.2p"), actions_of("50%, 1x"))
    check_shape(tree.nodes)
    first = [tree.labels[child] for child in range(1, 1 + tree.nodes.children[0])]
    assert first == ["f", "c", "r200", "r300"]  # half the pot would be 100: brought up to the least raise


def test_no_menu_means_all_raises():
    game = small_game("1 5 3", "nolimit")
    first = betting_tree(game).nodes.children[0]
    assert first == 2 + len(range(4, 10))


@pytest.mark.parametrize(
    ("layout", "deck"),
    [((0, 3, 1), FULL), ((3, 1, 1), Deck(ranks=5)), ((0, 1, 1, 1), Deck(ranks=4, suits=3)), ((0, 1), Deck(3, 2))],
)
def test_canonical_boards(layout, deck):
    """As many as the isomorphism counts; their weights make up all boards."""
    rounds = canonical_boards(layout, deck)
    raw, seen, total = 1, 0, np.ones(1, dtype=np.int64)
    for r, boards in enumerate(rounds):
        sequence = tuple(n for n in layout[: r + 1] if n)
        assert len(boards.weight) == (Isomorphism(sequence, deck).size if sequence else 1)
        raw *= comb(deck.size - seen, layout[r])
        seen += layout[r]
        total = boards.weight * total[boards.parent]
        assert total.sum() == raw
        if sequence:
            index = Isomorphism(sequence, deck).index(boards.cards)
            assert len(np.unique(index)) == len(index)
            assert np.array_equal(Isomorphism(sequence, deck).orbit(index), total)
        if r:
            before = rounds[r - 1]
            assert np.array_equal(boards.cards[:, : before.cards.shape[1]], before.cards[boards.parent])
            children = np.repeat(np.arange(len(before.weight)), np.diff(boards.first_child))
            assert np.array_equal(children, boards.parent)


def test_boards_stand_for_all_boards():
    """The images of a board under the suit permutations that its parent allows are what it stands for."""
    deck = FULL
    flop, turn = canonical_boards((3, 1), deck)
    renamed = card_permutations(deck)
    seen = set()
    for b in range(len(flop.weight)):
        images = {frozenset(cards) for cards in renamed[:, flop.cards[b]].tolist()}
        assert len(images) == flop.weight[b]
        seen |= images
    assert len(seen) == comb(52, 3) == flop.weight.sum()
    for parent in (0, 700, 1754):
        alike = [p for p in range(len(renamed)) if flop.symmetry[parent] >> p & 1]
        found = []
        for b in range(turn.first_child[parent], turn.first_child[parent + 1]):
            images = set(renamed[alike, turn.cards[b, 3]].tolist())
            assert len(images) == turn.weight[b]
            found += images
        assert sorted(found) == sorted(set(range(52)) - set(flop.cards[parent].tolist()))


def test_suit_permutations_of_hands_and_cards_go_together():
    renamed, moved, holes = card_permutations(FULL), hand_permutations(FULL), FULL.holes()
    for p in (0, 5, 23):
        assert np.array_equal(np.sort(renamed[p, holes], axis=1), holes[moved[p]])


def test_size_of_the_public_tree():
    game = load_game("holdem.2-4")
    nodes, tree = betting_tree(game).nodes, VectorGame(game).tree
    assert np.diff(tree.board_start).tolist() == [1, 1755]
    assert tree.weight[1:].sum() == comb(52, 3)
    blocks = tree.entry_block[tree.entry_start[1] : tree.entry_start[2]]
    assert sum(tree.nodes.block[blocks + 1] - tree.nodes.block[blocks]) == np.sum(nodes.round == 1)
    assert len(public_tree(load_game("bluff-1-1")).nodes.parent) == 2**13 - 1


def leaf_values(game, leaf, board, reach, player):
    """[hand] how an opponent whose hands are dealt with a `reach` comes to a leaf, and what the player wins there.

    The leaf and the board are given by their numbers. Both players take all actions alike.
    """
    tree = game.tree
    tree.prior[1 - player] = reach
    node = int(np.flatnonzero(betting_tree(game.game).nodes.leaf == leaf)[0])
    block = int(np.searchsorted(tree.nodes.block, node, side="right")) - 1
    entry = int(np.flatnonzero(tree.entry_block == block)[0])
    found = game.block_values(np.ones(game.shape), [(0, 0), (entry, board)] if board else [(0, 0)])[player]
    place = node - tree.nodes.block[block]
    return found.reach[place], found.value[place]


@pytest.mark.parametrize("shape", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("betting", ["limit", "nolimit"])
def test_leaf_payoffs_in_linear_time(shape, betting):
    """O(n) with inclusion and exclusion, against O(n²) from the rules, at every kind of leaf, for both players."""
    game = VectorGame(small_game(shape, betting))
    rng = np.random.default_rng(3)
    leaves = betting_tree(game.game).leaves
    before = next(k for k, leaf in enumerate(leaves) if leaf.folded is not None and leaf.round == 0)
    after = next(k for k, leaf in enumerate(leaves) if leaf.folded is not None and leaf.round == 1)
    shown = next(k for k, leaf in enumerate(leaves) if leaf.folded is None)
    last = int(rng.integers(*game.tree.board_start[1:3]))
    for leaf, board, size in ((before, 0, 0), (after, last, 1), (shown, last, 1)):
        cards = tuple(game.tree.board[board, :size].tolist())
        matrix = naive.payoff_matrix(game.game, leaves[leaf], cards)
        for player, payoff in ((0, matrix), (1, -matrix.T)):
            reach, value = leaf_values(game, leaf, board, rng.random(len(matrix)), player)
            assert np.ptp(reach) > 0.01
            np.testing.assert_allclose(value, payoff @ reach, atol=1e-10)


def test_rules_and_ready_made_agree():
    assert load_game("leduc").rules == load_definition("leduc")
