"""Head and children: external sampling in parts."""

import gc
import os
import signal
import tracemalloc
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, permutations, product

import numpy as np
import pytest

import naive
from kilt.abstraction import abstract_game as abstract_module
from kilt.abstraction.abstract_game import AbstractGame, AbstractSize
from kilt.abstraction.abstract_game_kernels import copy_ranges
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec as Cards
from kilt.abstraction.buckets import AsymmetricAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import Plan, PublicPlan, plan_named
from kilt.cards.hands import strength
from kilt.config import EngineConfig, config_of
from kilt.engines import EngineError, LocalEngine
from kilt.errors import AbstractionError, RunError
from kilt.evaluate import evaluator as evaluator_module
from kilt.evaluate.evaluator import evaluator_for
from kilt.evaluate.head_to_head import winnings_in_part
from kilt.runs import folder as folder_module
from kilt.runs.budget import Budget
from kilt.runs.folder import RunFolder, RunIdentity, checkpoint_size
from kilt.runs.loop import run
from kilt.runs.plan import resolve
from kilt.solve.abstract import BucketedGame
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.distributed import blades_kernels
from kilt.solve.distributed import solver as solver_module
from kilt.solve.distributed.blades import ClassWorker, Head, count_containing, select_starts
from kilt.solve.distributed.costs import shared_game
from kilt.solve.distributed.lower import LowerWorker, MiddleWorker, PendingDeals
from kilt.solve.distributed.memory import MOST
from kilt.solve.distributed.partition import Partition, head_rounds, levels
from kilt.solve.distributed.shared import Batch, BoardDraw, SharedGame
from kilt.solve.distributed.solver import DistributedMCCFR, start
from kilt.solve.external import HALVED, ExternalMCCFR, SamplingOptions, WalkWorkspace, priced_rounds
from kilt.solve.external_kernels import Starts
from kilt.tree.vector import VectorGame
from machines import descendants, end
from test_external import mbb, no_limit, places


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cards")


def abstract_game(folder, game, classes=2, plan="IR-PHS-PHS 4-2-2", actions=None, **more):
    """An abstract game whose boards have classes, and where its cards are."""
    deal = Deal.from_game(game)
    codes, base, inner = (more.pop(name, default) for name, default in (("codes", 0), ("base", ""), ("inner", ())))
    public = [PublicPlan(r, number, codes=codes, base=base) for r, number in enumerate((classes, *inner), start=2)]
    rounds = [replace(this, recall=False) for this in plan_named(plan, deal.board_cards).rounds]
    named = Plan(tuple(rounds), tuple(public), bins=6, opponents=2)
    identity = Cards("cards", deal, replace(named, **more))
    cards = build(identity, folder / identity.fingerprint)
    return AbstractGame(game, cards, actions), folder / identity.fingerprint


@pytest.fixture(scope="module")
def small(folder):
    """A private card, a board of two, then one more: |F(n,h)| differs from hand to hand."""
    return abstract_game(folder, no_limit(4, 2, 1, "0 2 1", "6 6"), actions=actions_of("1x, a / 1x, a / a"))


def game_of(small, batch, seed=0, **options):
    abstract, *cards = small
    return SharedGame(
        abstract.game, tuple(cards), abstract.actions, abstract.fingerprint, SamplingOptions(**options), seed, batch
    )


def partition_of(small):
    abstract, *cards = small
    return Partition.divide(abstract, cards)


def test_parts_of_an_abstract_game(small):
    """Every deal is in the part that its board says, in all rounds."""
    abstract, cards = small
    partition = Partition.divide(abstract, [cards])
    assert partition.trunk == 1 and partition.classes == 2
    whole = np.zeros(abstract.slots, dtype=int)
    for part in (partition.head, *map(partition.part, range(2))):
        nodes = part.betting.nodes
        for node in np.flatnonzero(nodes.actor >= 0):
            whole[part.slice_in_game(node)] += 1
            assert (
                part.slice_in_game(node).stop - part.slice_in_game(node).start
                == part.first[node + 1] - part.first[node]
            )
    assert np.all(whole == 1)
    ExternalMCCFR(abstract, 1).step(10)


# ── nothing is lost, nothing is counted twice ──


def pure(rng, abstract, calling=0.0):
    """[slot] regrets of players who never mix: walks then have no choice but that of the cards.

    They call with that probability at least, so that walks come far.
    """
    regret = rng.uniform(-2, -1, abstract.slots).astype(np.float32)
    nodes, labels = abstract.betting.nodes, abstract.betting.labels
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        n, first = int(nodes.children[node]), int(nodes.first_child[node])
        (call,) = [k for k in range(n) if labels[first + k].startswith("c")]
        for slot in range(int(abstract.first[node]), int(abstract.first[node + 1]), n):
            regret[slot + (call if calling and rng.random() < calling else rng.integers(n))] = 1
    return regret


def spread(part, table, values):
    """Write [slot of the whole game] values to where a part keeps them."""
    for node in np.flatnonzero(part.betting.nodes.actor >= 0).tolist():
        mine = slice(int(part.first[node]), int(part.first[node + 1]))
        table[mine] = values[part.slice_in_game(node)]


def gathered(part, table, whole):
    for node in np.flatnonzero(part.betting.nodes.actor >= 0).tolist():
        whole[part.slice_in_game(node)] += table[int(part.first[node]) : int(part.first[node + 1])]


@pytest.fixture(scope="module")
def uneven(small, folder):
    """`small` for players with other buckets in the same classes of boards."""
    abstract, cards = small
    other, more = abstract_game(folder, abstract.game, plan="IR-PHS-PHS 4-3-4", actions=abstract.actions)
    both = AsymmetricAbstraction((abstract.cards, other.cards))
    return AbstractGame(abstract.game, both, abstract.actions), cards, more


def expected_update(small, regret, drawn=0, weighted=True, **options):
    """[slot] what a deal adds to regrets and counts in expectation: all hands, and of each class all boards.

    With so many boards `drawn` for each deal, a class has as many of them as its share of the ways, on average.
    """
    abstract, rules = small[0], small[0].game.rules
    deck, (_, flop, _) = {*range(rules.deck.size)}, rules.board_cards
    hands = list(permutations(deck, 2))
    boards = [[*b, last] for b in combinations(range(len(deck) - 2), flop) for last in {*range(len(deck) - 2)} - {*b}]
    game = replace(game_of(small, len(boards), **options), boards=drawn, weighted=weighted)
    partition = game.open()
    head, children = Head(game, partition), [ClassWorker(game, [label]) for label in range(partition.classes)]
    gains, counts = np.zeros((2, abstract.slots))

    def reset(ledger):
        local = np.zeros(ledger.slots.slots, dtype=np.float32)
        spread(ledger.slots, local, regret)
        ledger.table[:] = 0
        ledger.table.view(np.float32)[places(ledger.slots, 2)[0]] = local
        return local

    def drain(ledger, before, weight, counted):
        """Add what was added to a part."""
        slots, tallies = places(ledger.slots, 2)
        gathered(ledger.slots, weight * (ledger.table.view(np.float32)[slots] - before), gains)
        gathered(ledger.slots, counted * ledger.table[tallies], counts)

    for hand in hands:
        left = sorted(deck - {*hand})
        before = reset(head.regrets)
        head._workspace.cards[:] = [[*hand, *(left[card] for card in board)] for board in boards]
        head._workspace.deal = lambda *_: head._workspace.look_up_deals(len(boards), head.partition.head)
        sent = head.descend(0)
        exits = int(sent.batch.starts.begin[1])  # the same on all boards: players do not mix
        sums = np.zeros(exits)
        for child in children:
            own, room = child.own[0], child._workspaces.get()
            child._workspaces.put(room)
            fits = [board for board in own.boards.tolist() if not {*board} & {*hand}]
            every = [[*hand, *board, last] for board in fits for last in deck - {*hand} - {*board}]
            if not every:
                continue
            room.cards[: len(every)], room.tally[:] = every, 1
            begin, once = np.arange(len(every) + 1) * exits, sent.batch.starts
            starts = Starts(begin, *(np.tile(what[:exits], len(every)) for what in (once.node, once.player)))
            known = reset(own.regrets)
            share = len(fits) / head.partition.ways
            often, ways = (drawn * share, 1) if drawn else (1, len(fits))
            found, _, _ = child.walk_over(own, room, Batch(0, starts), np.full(len(every), ways), np.uint64(1))
            sums = sums + often * found.reshape(len(every), exits).mean(axis=0)
            likely = often / len(hands) / len(every)
            drain(own.regrets, known, likely, likely / drawn if drawn else likely * share)
        head.ascend(sent, np.tile(sums, len(boards)))
        drain(head.regrets, before, 1 / len(hands) / len(boards), 1 / len(hands) / len(boards))
    return gains, counts


@pytest.fixture(scope="module")
def known(small):
    """Regrets of players who do not mix, and what external sampling adds to them in expectation."""
    regret = 1000 * pure(np.random.default_rng(4), small[0])
    return regret, naive.expected_external(small[0], regret.astype(float))


@pytest.mark.parametrize("equities", [False, True])
@pytest.mark.parametrize("drawn", [0, 1, 3])
def test_expected_update(small, known, drawn, equities):
    """That of head and children, over all deals and boards, is that of external sampling."""
    regret, (gains, counts) = known
    found = expected_update(small, regret, drawn, equities=equities)
    np.testing.assert_allclose(found[0], gains, atol=2e-5)
    np.testing.assert_allclose(found[1], counts, atol=1e-6)
    partition = partition_of(small)
    for part in (partition.head, partition.part(0), partition.part(1)):
        mine = [gains[part.slice_in_game(node)] for node in np.flatnonzero(part.betting.nodes.actor >= 0)]
        assert np.count_nonzero(np.abs(np.concatenate(mine)) > 0.01) > 10


def test_expected_update_of_players_with_other_buckets(uneven, folder):
    """Each has their own in the same classes of boards; other classes are refused."""
    regret = 1000 * pure(np.random.default_rng(4), uneven[0])
    gains, counts = naive.expected_external(uneven[0], regret.astype(float))
    found = expected_update(uneven, regret)
    np.testing.assert_allclose(found[0], gains, atol=2e-5)
    np.testing.assert_allclose(found[1], counts, atol=1e-6)
    first, second = partition_of(uneven).part(1).numbers
    assert first == (0, 2, 2) and second == (0, 3, 4)
    other, cards = abstract_game(folder, uneven[0].game, 3, actions=uneven[0].actions)
    both = AsymmetricAbstraction((uneven[0].cards.each[0], other.cards))
    with pytest.raises(RunError, match="their card abstractions need the same classes"):
        partition_of((replace(uneven[0], cards=both), uneven[1], cards))


def without(kernel, name, value):
    """A kernel that is told the same weight for all deals."""

    def lies(*arguments):
        arguments = list(arguments)
        arguments[name] = np.full_like(arguments[name], value)
        return kernel(*arguments)

    return lies


def test_the_weight_on_the_head_matters(small, known, monkeypatch):
    ways = partition_of(small).ways
    monkeypatch.setattr(blades_kernels, "add_values", without(blades_kernels.add_values, 1, ways // 2))
    regret, (gains, _) = known
    assert np.abs(expected_update(small, regret)[0] - gains).max() > 0.01


def test_the_weight_in_the_children_matters(small, known):
    """Without it, as algorithm 4 is printed, the trunk learns what it should, and the classes do not."""
    regret, (gains, _) = known
    off = np.abs(expected_update(small, regret, weighted=False)[0] - gains)
    head = partition_of(small).head
    trunk = np.concatenate([off[head.slice_in_game(node)] for node in np.flatnonzero(head.betting.nodes.actor >= 0)])
    assert off.max() > 0.01 > 2e-5 > trunk.max()


def naive_edges(cards, game):
    """[deal] wins less losses of the first hand, over all complete boards one by one."""
    rules, deck = game.rules, game.rules.deck
    size, edges = rules.board_size(rules.rounds - 1), []
    for first, second in cards[:, :2].tolist():
        boards = combinations(sorted({*range(deck.size)} - {first, second}), size)
        signs = [np.sign(strength([first, *b], deck) - strength([second, *b], deck)) for b in boards]
        edges.append(np.mean(signs))
    return edges


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_all_ins_are_worth_their_mean_in_the_part_that_has_them(suited, depth):
    """With equities, each part takes means over boards for the rounds that its walks go through, and no others."""
    solver = DistributedMCCFR(deep_game(suited, depth, 16, equities=True), LocalEngine(), 1, below=(1,) * (depth - 1))
    rooms = [solver.head._workspace, *(worker._object._workspaces.get() for (worker,) in solver.levels)]
    assert [list(room.priced) for room in rooms] == [[0], [[1, 2], [1], [1]][depth - 1], [2], []][: depth + 1]
    outcome = rooms[0].deal(np.uint64(1), 0, 16)[1][:, 0]
    np.testing.assert_allclose(outcome, naive_edges(rooms[0].cards, solver.partition.abstract.game), atol=1e-6)
    assert np.any(np.abs(outcome) % 1 > 0)
    solver.close()


def test_boards_of_a_class():
    """All that the hands leave are drawn alike, and counts follow the number of ways."""
    deck, deals = 10, 40_000
    boards = np.array([[0, 1], [0, 2], [3, 4], [5, 6], [1, 7]], dtype=np.int8)
    hands = np.tile([[0, 9, 8, 3], [2, 9, 4, 8], [0, 3, 5, 1]], (deals // 3 + 1, 1))[:deals]
    cards, ways = np.empty((deals, 7), dtype=np.int64), np.empty(deals, dtype=np.int64)
    tally = np.empty(deals, dtype=np.uint32)
    bits = np.bitwise_or.reduce(np.uint64(1) << boards.astype(np.uint64), axis=1)
    blades_kernels.count_ways(hands, *count_containing(boards, deck), ways)
    board = np.empty(deals, dtype=np.int64)
    blades_kernels.draw_boards(np.uint64(3), 7, deck, hands, boards, bits, ways, cards, tally, board)
    assert all(len({*row}) == 7 for row in cards.tolist()) and np.array_equal(cards[:, :4], hands)
    assert np.array_equal(cards[ways > 0, 4:6], boards[board[ways > 0]])
    for which, free in enumerate(([[5, 6], [1, 7]], [[0, 1], [5, 6], [1, 7]], [])):
        mine = slice(which, None, 3)
        assert {*ways[mine]} == {len(free)}
        assert abs(tally[mine].mean() - len(free) / 5) < 0.02
        if free:
            drawn = Counter(map(tuple, cards[mine, 4:6].tolist()))
            assert set(drawn) == set(map(tuple, free))
            assert max(drawn.values()) - min(drawn.values()) < 0.1 * deals / 3
    last = Counter(cards[::3, 6].tolist())
    assert set(last) == {1, 2, 4, 5, 6, 7}


# ── blades below blades ──


DEEP_SEED = 15


@pytest.fixture(scope="module")
def deep(folder):
    """A private card and three boards of one card, each with classes inside those of the board before."""
    game, plan = no_limit(6, 1, 1, "0 1 1 1", "6 6"), "IR-PHS-PHS 3-2-2-2"
    return abstract_game(folder, game, plan=plan, inner=(2, 2), base=plan, actions=actions_of("a"))


@pytest.fixture(scope="module")
def suited(folder):
    """`deep` with two suits, so that the boards to come decide who wins."""
    game, plan = no_limit(4, 2, 1, "0 1 1 1", "6 6"), "IR-PHS-PHS 3-2-2-2"
    return abstract_game(folder, game, plan=plan, inner=(2, 2), base=plan, actions=actions_of("a"))


def deep_game(deep, depth, batch, boards=0, **options):
    return replace(game_of(deep, batch, **options), depth=depth, boards=boards)


@pytest.mark.parametrize("depth", [2, 3])
def test_parts_of_several_levels(deep, depth):
    """Every slot is in one part; and next boards have the classes of all cards as they are dealt."""
    partition = deep_game(deep, depth, 16).open()
    assert (partition.trunk, partition.classes, partition.inside) == (1, 2, [2] * depth)
    whole = np.zeros(partition.abstract.slots)
    for path in ((), *partition.paths):
        gathered(part := partition.part(*path), np.ones(part.slots), whole)
    assert np.all(whole == 1) and len(partition.paths) == (2 + 4 + 8 if depth == 3 else 2 + 4)
    for label, level in product(range(2), range(2, depth + 1)):
        labels, sets = partition.next_boards(label, level)
        between = list(product(range(6), repeat=level - 2))
        boards = [[*board, *more] for board in partition.boards_of(label).tolist() for more in between]
        assert len(boards) == len(labels) and len({*labels.ravel().tolist()} - {-1}) == 2 ** (level - 1)
        for board, row in zip(boards, labels, strict=True):
            there = [[*board, card] for (card,) in sets.tolist() if len({*board, card}) == len(board) + 1]
            assert np.count_nonzero(row >= 0) == len(there)
            for path in (path for path in partition.paths if len(path) == level and there):
                mine = partition.owns(np.array(there), *path)
                assert np.array_equal(mine, row[row >= 0] == partition.number(*path))


def deep_update(deep, depth, regret, drawn=0, **options):
    """`expected_update` with several levels: of each class all boards, of each class inside it all next boards."""
    abstract, _ = deep
    rules = abstract.game.rules
    deck = {*range(rules.deck.size)}
    hands = list(permutations(deck, 2))
    game = deep_game(deep, depth, 256, drawn, **options)
    partition = game.open()
    head = Head(game, partition)
    priced = priced_rounds(game.options, range(rules.rounds))
    middle = [MiddleWorker(game, [label], 1, []) for label in range(2)]
    lower = [LowerWorker(game, [range(2)] * level) for level in range(2, depth + 1)]
    room = WalkWorkspace(partition.head, 1024, priced=priced)
    gains, counts = np.zeros((2, abstract.slots))

    def reset(regrets):
        local = np.zeros(regrets.slots.slots, dtype=np.float32)
        spread(regrets.slots, local, regret)
        regrets.table[:] = 0
        regrets.table.view(np.float32)[places(regrets.slots, 2)[0]] = local
        return local

    def drain(regrets, before, weight, counted):
        slots, tallies = places(regrets.slots, 2)
        gathered(regrets.slots, weight * (regrets.table.view(np.float32)[slots] - before), gains)
        gathered(regrets.slots, counted * regrets.table[tallies], counts)

    def completed(seen):
        """All cards that may be dealt, from those that were seen of each deal: as many for each."""
        return [[*some, *more] for some in seen for more in permutations(deck - {*some}, 5 - len(some))]

    def walk(below, over, own, seen, board, starts, ways, chance, counted):
        """[start] What walks over some deals say, mean over later cards; each deal has that chance, and of counting."""
        every = completed(seen)
        often = len(every) // len(seen)  # cards that come later are of no account but for all-ins
        repeated, _ = select_starts(starts, np.repeat(np.arange(len(seen)), often))
        room.cards[: len(every)], room.tally[:] = every, 1
        one = np.ones(len(every), dtype=np.float32)
        batch, weights = Batch(0, repeated), np.full(len(every), ways)
        before = reset(own.regrets)
        found = over(BoardDraw(batch, slice(None), weights, np.uint64(1), np.repeat(board, often), one), often)
        if isinstance(found, PendingDeals):
            first, told = np.arange(0, len(every), often), found.onward
            picked, _ = select_starts(told.starts, first)
            told = told._replace(starts=picked, seen=told.seen[first], board=told.board[first], share=told.share[first])
            values = np.split(follow(told, chance, counted), picked.begin[1:-1])
            values = np.concatenate([np.tile(some, often) for some in values])
            sums = below.ascend(game, found, values.astype(np.float32))
        else:
            sums, _, _ = found
        drain(own.regrets, before, chance / often, counted / often)
        each = np.split(sums, repeated.begin[1:-1])
        return np.concatenate([np.mean(each[n : n + often], axis=0) for n in range(0, len(every), often)])

    def follow(told, chance, counted):
        """[start] What follows is worth, over all next boards of all classes; chances of deals are as in `walk`."""
        blade, whole = lower[len(told.path) - 1], partition.next_ways(len(told.path) + 1)
        labels, sets = blade._next[told.path[0]]
        values = np.zeros(len(told.starts.node))
        for own in (own for own in blade.own if own.path[:-1] == told.path):
            left = (labels[told.board] == own.number) & (np.diff(told.starts.begin) > 0)[:, None]
            left &= ~(told.seen[:, :, None] == sets[:, 0]).any(axis=1)  # [deal, set]
            for ways in {*left.sum(axis=1).tolist()} - {0}:  # those with as many can be walked at once
                deal, card = np.nonzero(left & (left.sum(axis=1) == ways)[:, None])
                starts, index = select_starts(told.starts, deal)
                found = walk(
                    blade.below,
                    lambda drawn, often, own=own, share=told.share[deal]: blade.walk_over(
                        own, room, told._replace(starts=drawn.batch.starts, share=np.repeat(share, often)), drawn
                    ),
                    own,
                    np.column_stack([told.seen[deal], sets[card]]).tolist(),
                    told.board[deal] * len(sets) + card,
                    starts,
                    1 if drawn else ways,
                    chance / (whole if drawn else ways),
                    counted / whole,
                )
                np.add.at(values, index, found / blades_kernels.FINE / (whole if drawn else whole * ways))
        return values

    for hand in hands:
        before = reset(head.regrets)
        boards = completed([hand])
        head.game = replace(game, batch=len(boards))
        head._workspace = WalkWorkspace(partition.head, len(boards), priced=priced)
        head._workspace.cards[:] = boards
        head._workspace.deal = lambda *_: head._workspace.look_up_deals(len(boards), partition.head)  # noqa: B023
        sent = head.descend(0)
        exits = int(sent.batch.starts.begin[1])
        sums = np.zeros(exits)
        for child in middle:
            (own,) = child.own
            fits = np.flatnonzero(~np.isin(own.boards, hand).any(axis=1))
            if not len(fits):
                continue
            share = len(fits) / partition.ways
            often, ways = (drawn * share, 1) if drawn else (1, len(fits))
            chance = often / len(hands) / len(fits)
            starts, _ = select_starts(sent.batch.starts, np.zeros(len(fits), dtype=np.int64))
            found = walk(
                child.below,
                lambda drawn, _, child=child, own=own: child.descend(own, room, drawn),
                own,
                [[*hand, *board] for board in own.boards[fits].tolist()],
                fits,
                starts,
                ways,
                chance,
                chance / drawn if drawn else chance * share,
            )
            sums = sums + often * found.reshape(len(fits), exits).mean(axis=0)
        head.ascend(sent, np.tile(sums, len(boards)))
        drain(head.regrets, before, 1 / len(hands) / len(boards), 1 / len(hands) / len(boards))
    return gains, counts


@pytest.fixture(scope="module")
def deep_known(deep):
    """As `known`; the seed is one by which walks come to many places of the last round."""
    regret = 1000 * pure(np.random.default_rng(DEEP_SEED), deep[0], calling=0.7)
    return regret, naive.expected_external(deep[0], regret.astype(float))


@pytest.mark.parametrize(("depth", "drawn"), [(2, 0), (3, 0), (3, 2)])
def test_expected_update_of_several_levels(deep, deep_known, depth, drawn):
    """That of head, blades and blades below them, over all deals and boards, is that of external sampling."""
    regret, (gains, counts) = deep_known
    found = deep_update(deep, depth, regret, drawn)
    np.testing.assert_allclose(found[0], gains, atol=1e-4)
    np.testing.assert_allclose(found[1], counts, atol=1e-6)
    partition = deep_game(deep, depth, 16).open()
    for path in partition.paths:
        part = partition.part(*path)
        mine = [gains[part.slice_in_game(node)] for node in np.flatnonzero(part.betting.nodes.actor >= 0)]
        assert np.count_nonzero(np.abs(np.concatenate(mine)) > 0.01) >= 3


def test_expected_update_of_several_levels_with_equities(suited):
    """Means over boards in place of the board that is dealt change no expected update."""
    regret = 1000 * pure(np.random.default_rng(DEEP_SEED), suited[0], calling=0.7)
    gains, counts = naive.expected_external(suited[0], regret.astype(float))
    found = deep_update(suited, 2, regret, equities=True)
    np.testing.assert_allclose(found[0], gains, atol=1e-4)
    np.testing.assert_allclose(found[1], counts, atol=1e-6)
    assert np.count_nonzero(np.abs(gains) > 0.01) > 20


@pytest.mark.parametrize(("depth", "boards"), [(2, 0), (3, 0), (3, 2)])
def test_runs_of_several_levels_are_equal_in_expectation(deep, deep_known, depth, boards):
    """What a run of two levels learns from a deal, and one of three, is on average what external sampling would."""
    scale, batch, batches = 2.0**14, 256, 60
    regret, (gains, _) = deep_known
    solver = DistributedMCCFR(deep_game(deep, depth, batch, boards), LocalEngine(), 1, below=(1,) * (depth - 1))
    tables = [solver.head.regrets]
    tables += [own.regrets for level in solver.levels for worker in level for own in worker._object.own]
    here = [places(one.slots, 2)[0] for one in tables]
    there = [
        np.concatenate(
            [np.r_[one.slots.slice_in_game(node)] for node in np.flatnonzero(one.slots.betting.nodes.actor >= 0)]
        )
        for one in tables
    ]
    for one, mine, whole in zip(tables, here, there, strict=True):
        one.table.view(np.float32)[mine] = scale / 1000 * regret[whole]
    seen = np.empty((batches + 1, len(regret)))
    for number in range(batches + 1):
        solver.step(batch)
        solver._wait()
        for one, mine, whole in zip(tables, here, there, strict=True):
            seen[number, whole] = one.table.view(np.float32)[mine]
    solver.close()
    found = np.diff(seen, axis=0) / batch  # [batch, slot] a deal's, by players who stay as they are
    often = np.count_nonzero(np.abs(found) > 1e-3, axis=0) >= 30
    off = (found.mean(axis=0) - gains) / (found.std(axis=0, ddof=1) / np.sqrt(batches)).clip(1e-4)
    assert often.sum() > 60 and all(often[whole].sum() >= 3 for whole in there)
    assert np.abs(off[often]).max() < 4.5 and 0.4 < np.mean(off[often] ** 2) < 2
    assert np.all(np.abs(found[:, gains == 0].mean(axis=0)) < 0.02)


@pytest.mark.parametrize("spread", [False, True])
def test_next_boards_of_a_class(spread):
    """All cards of the class that are left are drawn alike; spread over classes, all cards are."""
    deals, deck = 30_000, 8
    labels = np.array([[-1, -1, 0, 0, 1, 1, 0, 1]], dtype=np.int32)
    sets = np.arange(deck, dtype=np.int8)[:, None]
    seen, board = np.tile(np.array([2, 4, 0, 1], dtype=np.int8), (deals, 1)), np.zeros(deals, dtype=np.int64)
    cards, ways, tally = np.empty((deals, 6), int), np.empty(deals, int), np.empty(deals, dtype=np.uint32)
    bits = np.uint64(1) << np.arange(deck, dtype=np.uint64)
    likely = np.full(deals, 0.5, dtype=np.float32)
    number = np.empty(deals, dtype=np.int64)
    blades_kernels.draw_next(
        np.uint64(5), 3, deck, seen, board, labels, sets, bits, 0, spread, likely, cards, ways, tally, number
    )
    assert np.array_equal(cards[:, :4], seen) and all(len({*row}) == 6 for row in cards.tolist())
    assert np.array_equal(number, cards[:, 4])
    drawn = Counter(cards[:, 4].tolist())
    assert set(drawn) == ({3, 5, 6, 7} if spread else {3, 6})
    assert max(drawn.values()) - min(drawn.values()) < 0.05 * deals
    if spread:
        assert np.array_equal(ways, np.isin(cards[:, 4], [3, 6])) and np.all(tally == 1)
    else:
        assert np.all(ways == 2) and abs(tally.mean() - 0.5 * 2 / 4) < 0.02


@pytest.mark.parametrize("boards", [0, 2])
def test_runs_of_three_levels(deep, boards, tmp_path, monkeypatch):
    """The same tables on any blades, also after a checkpoint; measured and written in parts; as good as two levels."""
    monkeypatch.setattr(evaluator_module, "quickly_available", lambda *_: False)
    abstract, cards = deep
    seen, found, state = (
        BucketedGame.with_abstraction(VectorGame(abstract.game, abstract.actions), abstract.cards),
        [],
        {},
    )
    evaluator = evaluator_for(AbstractProblem(abstract, (cards,)), patience=-1)
    for blades, *below in ((1, 1, 1), (2, 2, 2), (2, 1, 2)):
        solver = DistributedMCCFR(deep_game(deep, 3, 64, boards, linear=True), LocalEngine(), blades, below=below)
        if found:
            solver.restore(state)
            solver.restore_parts(tmp_path / "parts")
        solver.step(320)
        if not found:
            state = {name: array.copy() for name, array in solver.state().items()}
            solver.save_parts(tmp_path / "parts")
            solver.step(320)
        found.append(solver.average())
        if below == [2, 2]:
            assert evaluator.measure(solver).others == evaluator.opponent_win_rates(found[-1])
            evaluator.problem.save(tmp_path / "strategy", solver)
            assert np.array_equal(evaluator.problem.load(tmp_path / "strategy")[0], found[-1])
        solver.close()
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    two = DistributedMCCFR(deep_game(deep, 2, 64, boards, linear=True), LocalEngine(), 2, below=[2])
    two.step(640)
    before, found = mbb(seen, abstract, evaluator.problem.uniform()), [*found[:1], two.average()]
    assert max(mbb(seen, abstract, strategy) for strategy in found) < before / 2
    two.close()


# ── blades ──


def solver_of(small, blades, batch=16, engine=None, **options):
    return DistributedMCCFR(game_of(small, batch, **options), engine or LocalEngine(), blades)


@pytest.fixture(scope="module")
def lossless(folder):
    """A game to be solved exactly: each of the six ranks of its board is a class."""
    game = no_limit(6, 2, 1, "0 1", "7 7")
    return abstract_game(folder, game, 6, "lossless", base="IR-PHS-PHS 6-6")


def test_convergence(lossless):
    """The same tables on any number of blades, and little to exploit."""
    abstract, _ = lossless
    seen, found = BucketedGame.with_abstraction(VectorGame(abstract.game), abstract.cards), []
    for blades in (1, 2, 4):
        solver = solver_of(lossless, blades, 64, linear=True)
        before = mbb(seen, abstract, solver.average())
        solver.step(1500)
        assert solver.iterations == 1536 and sorted(chain(*solver.labels)) == [*range(6)]
        found.append(solver.average())
        if blades == 2:
            solver.step(38_500)
            assert mbb(seen, abstract, solver.average()) < 80 < before / 7.5
        solver.close()
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def with_counts(regrets, most):
    """Scale the counts of each decision until its largest is `most`; returns where they are, with their shares."""
    count, nodes = places(regrets.slots, 2)[1], regrets.slots.betting.nodes
    first, scaled = regrets.slots.first, []
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        n = int(nodes.children[node])
        for slot in range(int(first[node]), int(first[node + 1]), n):
            mine = count[slot : slot + n]
            counts = regrets.table[mine].astype(float)
            if counts.sum() > 50:
                regrets.table[mine] = np.round(counts * (most / counts.max())).astype(np.uint32)
                scaled.append((mine, counts / counts.sum()))
    return scaled


def test_counts_of_blades_do_not_wrap_around(lossless, tmp_path):
    """Checkpoints of an older release are halved when they are read; head and blades halve before the same batch."""
    solver, number = solver_of(lossless, 2, 16), 2**26 - 10  # 2^26 batches add 2^30 at most
    solver.step(4096)
    for most, batches in ((2**32 - 100, 5), (HALVED + 5, 20)):
        regrets = [solver.head.regrets, *(own.regrets for one in solver.workers for own in one._object.own)]
        before = [with_counts(one, most) for one in regrets]
        state = {name: np.array(array) for name, array in solver.state().items() if name != "sums"}  # none under way
        solver.save_parts(tmp_path)
        solver.restore(state | {"iterations": np.asarray(16 * number)})
        solver.restore_parts(tmp_path)
        regrets[0] = solver.head.regrets
        solver.step(16 * batches)
        for one, decisions in zip(regrets, before, strict=True):
            assert len(decisions) > 3
            for mine, shares in decisions:
                counts = one.table[mine].astype(float)
                assert HALVED / 4 < counts.max() < HALVED + 1000
                np.testing.assert_allclose(counts / counts.sum(), shares, atol=1e-5)
    assert [solver.game.halves(number + n) for n in (8, 9, 10)] == [False, True, False]
    assert max(one.table[mine].max() for one, some in zip(regrets, before, strict=True) for mine, _ in some) < HALVED
    solver.close()


def test_several_boards_for_each_deal(lossless):
    """Threads of a blade with one class take boards of their own, each with its share of the weight."""
    abstract, _ = lossless
    seen = BucketedGame.with_abstraction(VectorGame(abstract.game), abstract.cards)
    game = replace(game_of(lossless, 32, linear=True), samples=2)
    found = []
    for threads in (1, 2):
        solver = DistributedMCCFR(game, LocalEngine(), 6, threads)
        solver.step(10_000)
        found.append((mbb(seen, abstract, solver.average()), solver.visits))
        solver.close()
    assert max(value for value, _ in found) < 115
    assert abs(found[0][1] / found[1][1] - 1) < 0.1


@pytest.mark.parametrize("boards", [1, 2, 5, 9])
def test_boards_are_spread_over_classes(small, boards):
    """All of them are given away, and to each class its share, whatever the hands are."""
    game = replace(game_of(small, batch=30_000), boards=boards)
    children = [ClassWorker(game, [label]) for label in range(2)]
    hands = children[0]._hands(5)
    found = [child.count_samples(child.own[0], hands, 5) for child in children]
    assert np.all(found[0][1] + found[1][1] == boards)
    assert np.all(found[0][0] + found[1][0] == children[0].ways)
    ways, often = found[0]
    share = boards * ways / children[0].ways
    assert np.all(often >= np.floor(share)) and np.all(often <= np.ceil(share))
    for place in (0, 1):  # whatever was dealt to anybody
        for card in range(8):
            mine = hands[:, place] == card
            assert abs((often - share)[mine].mean()) < 5 * 0.5 / np.sqrt(mine.sum())


@pytest.mark.parametrize("boards", [1, 2, 6])
def test_convergence_with_some_boards(lossless, boards):
    abstract, _ = lossless
    seen, found = BucketedGame.with_abstraction(VectorGame(abstract.game), abstract.cards), []
    for blades in (1, 3):
        game = replace(game_of(lossless, 128, linear=True), boards=boards)
        solver = DistributedMCCFR(game, LocalEngine(), blades)
        solver.step(1200)
        found.append(solver.average())
        if blades == 3:
            solver.step(28_800)
            assert mbb(seen, abstract, solver.average()) < 150
        solver.close()
    assert np.array_equal(*found)


def test_a_finished_run_is_where_it_was(lossless, tmp_path):
    """What is kept is all there is: also with a batch under way, and on other blades."""
    solver, other = solver_of(lossless, 2, 32, linear=True), solver_of(lossless, 3, 16, linear=True)
    solver.step(2000)
    state = {name: array.copy() for name, array in solver.state().items()}
    solver.save_parts(tmp_path / "parts")
    solver.step(2000)
    other.restore(state)
    other.restore_parts(tmp_path / "parts")
    assert (other.game.batch, other.iterations) == (32, 2016)
    other.step(2000)
    assert other.iterations == solver.iterations == 4032
    assert np.array_equal(other.average(), solver.average())
    assert np.array_equal(other.head.regrets.table, solver.head.regrets.table)
    for one in (other, solver):
        one.state()  # waits for the batch under way, of which all is counted then
    assert (other.decisions, other.visits) == (solver.decisions, solver.visits)


def test_equal_runs_keep_equal_bytes(lossless, monkeypatch):
    """Whatever was in the memory that they are given."""
    kept, plain = [], np.empty
    for byte in (0, 255):
        monkeypatch.setattr(np, "empty", partial(filled, plain, byte))
        solver = solver_of(lossless, 2, 32)
        solver.step(64)
        kept.append({name: array.tobytes() for name, array in solver.state().items() if name != "work"})
        monkeypatch.undo()
    assert "queue" in kept[0]
    assert [name for name, array in kept[0].items() if array != kept[1][name]] == []


def test_buckets_of_another_class_are_found(lossless):
    """A walk would leave the tables of the class."""
    part = partition_of(lossless).part(1)
    rounds = len(part.numbers[1])
    buckets = np.zeros((3, rounds, 2), dtype=np.uint32)
    buckets[2, -1, 1] = part.numbers[1][-1]
    part.require_own_buckets(buckets, np.array([True, True, False]))  # the last is not walked
    with pytest.raises(AbstractionError, match=rf"round-{rounds}/buckets\.npy is damaged"):
        part.require_own_buckets(buckets, np.array([True, False, True]))


def filled(empty, byte, *args, **kwargs):
    found = empty(*args, **kwargs)
    found.reshape(-1).view(np.uint8)[:] = byte
    return found


# ── a strategy that nobody holds ──


def test_pieces_of_tables():
    rng = np.random.default_rng(6)
    size = rng.integers(0, 5, 40)
    begin, gaps = np.cumsum(size) - size, np.cumsum(rng.integers(0, 3, 40))
    source = rng.integers(0, 256, size.sum()).astype(np.uint8)
    found, wanted = np.zeros((2, size.sum() + gaps[-1]), dtype=np.uint8)
    order = rng.permutation(40)
    copy_ranges(source, begin[order], found, (begin + gaps)[order], size[order])
    naive.copy_pieces(source, begin, wanted, begin + gaps, size)
    assert np.array_equal(found, wanted) and wanted.any()


@pytest.mark.parametrize("window", [1 << 24, 7])
def test_a_strategy_in_parts_is_measured_and_written_in_parts(small, tmp_path, monkeypatch, window):
    """Bit for bit as the whole is, which is never put together in memory; what is on disk opens as one.

    What somebody left who was killed while the parts were removed again is in nobody's way.
    """
    (tmp_path / ".strategy.parts" / "class-1").mkdir(parents=True)
    monkeypatch.setattr(abstract_module, "COPIED_SLOTS", window)
    monkeypatch.setattr(evaluator_module, "quickly_available", lambda *_: False)
    abstract, cards = small
    problem = AbstractProblem(abstract, (cards,), engine=EngineConfig("local", 2))
    evaluator = evaluator_for(problem, patience=-1)
    assert not evaluator.exact
    solver = solver_of(small, 2, 32)
    solver.step(2000)
    whole = solver.average()
    assert len({*whole.tolist()}) > 50
    monkeypatch.setattr(DistributedMCCFR, "_strategy", None)
    assert evaluator.measure(solver).others == evaluator.opponent_win_rates(whole)
    problem.save(tmp_path / "strategy", solver, algorithm="external in parts")
    monkeypatch.undo()
    problem.save(tmp_path / "at once", whole, algorithm="external in parts")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["at once", "strategy"]
    for file in (tmp_path / "strategy").iterdir():
        assert file.read_bytes() == (tmp_path / "at once" / file.name).read_bytes(), file.name
    assert np.array_equal(problem.load(tmp_path / "strategy")[0], solver.average())
    solver.close()


def test_the_memory_of_a_plan_is_what_head_and_blades_hold(small, tmp_path):
    """Arrays that each makes for itself, through a batch, a checkpoint, a measurement and the last strategy."""
    plan = resolve(config_of({"game": "royal.limit.2p", "cards": "IR-KE-KE 5-120-120-120", "solver": {"threads": 2}}))
    plan = replace(plan, config=replace(plan.config, engine=EngineConfig(batch=64)))
    spec = replace(plan.cards[0], plan=replace(plan.cards[0].plan, public=(PublicPlan(2, 4),)))
    held = replace(plan, cards=(spec,)).process_memory((2,))
    large = replace(shared_game(plan.game, plan.menu, [spec], plan.options), batch=64)
    partition = large.open()
    WalkWorkspace(partition.head)  # tables of hands are kept from now on,
    as_blade(
        ClassWorker(game_of(small, 64), [0, 1]), *as_head(head_of(game_of(small, 64))), tmp_path
    )  # and kernels too
    peaks, batch = [], ()
    for make, use in (
        (head_of, as_head),
        (lambda game: ClassWorker(game, [0, 1], 2), partial(as_blade, folder=tmp_path)),
    ):
        gc.collect()
        tracemalloc.start()
        try:
            batch = use(make(large), *batch)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert partition.part(0).slots * 2 * 8 == dict(held.blades[0].parts)["tables"].memory > 2e7
    assert partition.head.slots * 8 == dict(held.head.parts)["tables"].memory
    assert held.head.memory == pytest.approx(peaks[0], rel=0.15)
    assert held.blades[0].memory == pytest.approx(peaks[1], rel=0.15)


def head_of(game):
    return Head(game, game.open())


def as_head(head):
    head.ascend(sent := head.descend(0), np.zeros(len(sent.batch.starts.node), dtype=np.int64))
    return sent.batch, head.regrets.integer_strategy(np.uint16)


def as_blade(child, batch, trunk, folder):
    child.work(batch)
    child.save(folder / "parts")
    child.map_average(partial(winnings_in_part, 64), trunk)
    child.write(folder / "shares", np.uint16)


def test_batches_are_chosen_by_what_they_take(lossless):
    solver = solver_of(lossless, 2, 0)
    assert solver.chosen is not None and solver.chosen.batch == solver.game.batch >= 16
    # Where messages take long, on a busy machine, batches become no larger than they may.
    assert solver.chosen.share < 0.05 or 2 * solver.game.batch > MOST
    assert solver.chosen.latency > 0 and solver.chosen.deal > 0
    assert f"batches of {solver.game.batch:,} deals" in solver.describe()
    solver.step(100)
    assert len(solver.how_busy()) == 2 and all(0 < busy <= 1 for _, busy in solver.how_busy())


def test_classes_are_dealt_out_by_their_work(lossless, tmp_path, monkeypatch):
    """Not by their number, and less to a blade that is slow: when a run goes on after a checkpoint, to the same end."""
    monkeypatch.setattr(solver_module, "SURE", 0.0)
    solver, other = (solver_of(lossless, 2, 32) for _ in range(2))
    assert sorted(map(len, solver.labels)) == [3, 3]
    for work, pace, numbers in (
        ([1, 1, 1, 1, 1, 5], [2, 2], [1, 5]),
        ([1] * 6, [1, 1], [3, 3]),
        ([1] * 6, [2, 10], [1, 5]),
    ):
        solver.step(500)
        solver.save_parts(tmp_path / "parts")
        solver.work, solver.seen = np.array(work, dtype=float), np.column_stack([pace, [1.0, 1]])
        before = solver.labels
        solver.step(32)
        assert sorted(map(len, before)) != numbers == sorted(map(len, solver.labels))
        assert pace[0] == pace[1] or len(solver.labels[0]) == 1
    other.step(3 * (512 + 32))
    assert solver.iterations == other.iterations and np.array_equal(solver.average(), other.average())


class Crowded(LocalEngine):
    """It has no room for a blade with more than three classes."""

    def hire(self, jobs):
        if any(len(job.arguments[1]) > 3 for job in jobs):
            raise EngineError("there is no room")
        return super().hire(jobs)


def test_classes_stay_where_no_machine_has_room_for_more(lossless, tmp_path, monkeypatch):
    monkeypatch.setattr(solver_module, "SURE", 0.0)
    solver = solver_of(lossless, 2, 32, Crowded())
    solver.step(64)
    solver.save_parts(tmp_path / "parts")
    solver.seen = np.array([[1, 1], [10, 1.0]])
    before = solver.average()
    solver._share_out(tmp_path / "parts")
    assert sorted(map(len, solver.labels)) == [3, 3] and np.array_equal(solver.average(), before)


def test_other_buckets(small):
    game = replace(game_of(small, 16), fingerprint="another")
    with pytest.raises(RunError, match="belong to another game"):
        ClassWorker(game, [0])


def test_levels():
    """A trunk, blades, and blades under blades: together they have all slots."""
    deal = Deal(board_cards=(0, 3, 1, 1))
    classes = PublicPlan(2, 6), PublicPlan(4, 4)
    plan = replace(plan_named("IR-PHS-PHS 169-60-60-240", deal.board_cards), public=classes)
    size = AbstractSize(0, (1, 2, 3, 4), (169, 60, 60, 240), (0, 0, 0, 0), (338, 240, 480, 4800))
    head, blade = levels(size, plan, deal, [4])
    assert (head.slots, head.rounds, blade.blades, blade.rounds) == (338, (0, 1), 4, (1, 4))
    assert blade.slots == 2 * (240 + 480 + 4800) // 6 and blade.memory(2) == 8 * blade.slots
    head, blade, below = levels(size, plan, deal, [6, 2])
    assert (blade.blades, blade.slots, blade.rounds) == (6, 120, (1, 3))
    assert (below.blades, below.slots, below.rounds) == (12, 400, (3, 4))
    for wrong in ([7], [6, 5], [2, 2, 2]):
        with pytest.raises(RunError):
            levels(size, plan, deal, wrong)


@pytest.mark.parametrize(
    ("public", "words"),
    [
        ((), "no classes of boards"),
        ((PublicPlan(3, 4),), "do not belong to the first board"),
        ((PublicPlan(2, 4, until=2),), "does not depend on the class"),
    ],
    ids=["none", "late", "forgotten"],
)
def test_games_that_cannot_be_split(public, words):
    deal = Deal(board_cards=(0, 3, 1, 1))
    with pytest.raises(RunError, match=words):
        head_rounds(replace(plan_named("IR-PHS-PHS 169-60-60-240", deal.board_cards), public=public), deal)


# ── on Ray ──

DEALS, WHOLE = 6000, 6016  # asked for, and in whole batches of 64


def problem_of(lossless, engine="ray", blades=2, batch=64):
    abstract, cards = lossless
    return AbstractProblem(
        abstract, (cards,), SamplingOptions(linear=True), engine=EngineConfig(engine, blades, batch=batch, boards=3)
    )


def in_folder(path, problem, deals, *, disturb=lambda solver: None, said=lambda what: None):
    """The strategy of a run in a folder, during which something may happen."""
    solver = start(problem, 3)
    try:
        budget, identity = (
            Budget(deals),
            RunIdentity("six ranks", "external in parts", 3, "abstract", problem.fingerprint),
        )
        folder = RunFolder.create(path, identity, budget, checkpoint_size(solver))
        for _ in run(solver, evaluator_for(problem), budget, folder=folder, tick=lambda *_: disturb(solver), warn=said):
            pass
        return problem.load(path / "strategy")[0], solver
    finally:
        solver.close()


@pytest.fixture(scope="module")
def unbroken(lossless, tmp_path_factory):
    """What `DEALS` deals lead to, in one process and on one blade."""
    return in_folder(tmp_path_factory.mktemp("unbroken"), problem_of(lossless, "local", 1), DEALS)[0]


def process_of(worker):
    return int(worker.where.split()[-1])


@pytest.mark.usefixtures("token")
def test_killed_blades(deep, tmp_path, monkeypatch):
    """A run on which a blade of the third level is killed, and one of the first while the loss is mended, ends well."""
    monkeypatch.setattr(folder_module, "OFTEN", 0.0)
    monkeypatch.setattr(folder_module, "SAVING", 10.0)
    said, killed, mend = [], [], DistributedMCCFR.reset_after_loss

    def kill(solver, level):
        killed.append((level, solver.iterations))
        os.kill(process_of(solver.levels[level][0]), signal.SIGKILL)

    def disturb(solver):
        if solver.iterations > 1000 and not killed:
            kill(solver, 2)

    def disturbed(solver):
        mend(solver)
        if len(killed) == 1:
            kill(solver, 0)

    monkeypatch.setattr(DistributedMCCFR, "reset_after_loss", disturbed)
    problem = problem_of(deep, blades=1)
    problem = replace(problem, engine=replace(problem.engine, below=(1, 1)))
    found, solver = in_folder(tmp_path / "run", problem, 2000, disturb=disturb, said=said.append)
    here = replace(problem, engine=replace(problem.engine, name="local", blades=2, below=(2, 1)))
    assert np.array_equal(found, in_folder(tmp_path / "unbroken", here, 2000)[0])
    assert [level for level, _ in killed] == [2, 0] and killed[0][1] > 1000 and killed[1][1] == 0
    assert len(said) == 1 and "was lost" in said[0] and "back to the checkpoint of iteration" in said[0]
    assert solver.iterations == 2048


@pytest.mark.slow
def test_a_machine_is_lost(lossless, unbroken, start, cluster, tmp_path, monkeypatch):
    """Two nodes of a cluster share the classes; when one is gone, the other goes on with all of them."""
    monkeypatch.setattr(folder_module, "OFTEN", 0.0)
    monkeypatch.setattr(folder_module, "SAVING", 10.0)
    other, said, homes = start("--address", cluster[1]), [], []

    def pull_the_plug(solver):
        if solver.iterations > 2000 and not homes:
            homes.append({process_of(worker) in descendants(other.pid) for worker in solver.workers})
            end(other)

    problem = problem_of(lossless)
    problem = replace(problem, engine=replace(problem.engine, address=cluster[1]))
    found, solver = in_folder(tmp_path / "run", problem, DEALS, disturb=pull_the_plug, said=said.append)
    assert np.array_equal(found, unbroken)
    assert homes == [{True, False}] and len(said) == 1
    assert cluster[0].poll() is None and solver.iterations == WHOLE
