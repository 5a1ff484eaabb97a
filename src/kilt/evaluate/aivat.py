"""Estimate a player's expected winnings at each state of a hand. AIVAT needs them to reduce variance [Burch18].

For small games, `EnumeratedValues` takes any function of a state, and computes the means over chance that AIVAT needs
by dealing all cards. `BlueprintValues` learns a table from a blueprint's play against itself: both players' buckets are
merged into a few groups by their showdown strength, and a state of the betting has a value for each pair of groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kilt import artifact, machine
from kilt.arrays import ByteArray, FloatArray, IntArray, SingleArray
from kilt.cards.boards import hand_permutations
from kilt.cards.deck import subsets
from kilt.cards.edges import edges
from kilt.cards.equity import complete_boards, hand_list
from kilt.errors import ArtifactError
from kilt.evaluate.aivat_kernels import LearningScratch, LearningTree, add_values, learn_values
from kilt.evaluate.self_play import Deals, buckets_and_results, draw_deals
from kilt.evaluate.values import HandValues
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import Betting, Holdem
from kilt.play.batch import weights_as_bytes
from kilt.strategy.blueprint import Blueprint
from kilt.tree.betting import call_indices, label_of

KIND = "values of states of a blueprint"
GROUPS, DEALS, BOARDS = 12, 98_304, 64
COMPONENTS = 4  # number of basis tables, whose combinations approximate all tables of decisions after the first board
UNLIKELY = 1e-4  # states with a smaller probability within a deal are not walked
PRIOR = 4.0  # weight of a state's showdown value when its table is learnt, as a number of deals

_subsets: Callable[[int, int], ByteArray] = lru_cache(maxsize=64)(subsets)

StateFunction: TypeAlias = Callable[[Betting, tuple[int, ...], int, tuple[int, ...]], FloatArray]


@dataclass(frozen=True)
class EnumeratedValues:
    """State values for AIVAT in small games, computed by enumerating all deals.

    Parameters
    ----------
    game : Holdem
        The rules.
    function : callable
        Maps a position, the board, a player's seat and the opponent's cards to an array [hand] of values: see
        `StateValues.hand_values`.
    """

    game: Holdem
    function: StateFunction

    def hand_values(
        self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]
    ) -> HandValues:
        """Return the value of a state for each private hand, in chips.

        Each hand is a class of its own.
        """
        return HandValues(self.function(position, board, seat, opponent))

    def values_after_deal(
        self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]
    ) -> FloatArray:
        """Return the value of each private hand before public cards are dealt.

        It is the mean over all cards that neither player holds.
        """
        rules, after = self.game.rules, position.after(REVEAL)
        if after.actor == TERMINAL:
            return showdown_payoffs(self.game, position, board, opponent)
        holes, count = self.game.deck.holes(rules.hole_cards), rules.board_cards[after.round]
        rest = np.setdiff1d(np.arange(self.game.deck.size), [*board, *opponent])
        total = np.zeros(len(holes))
        for cards in rest[subsets(len(rest), count)].tolist():
            free = ~np.isin(holes, cards).any(axis=1)
            total += free * self.function(after, (*board, *cards), seat, opponent)
        return total / comb(len(rest) - rules.hole_cards, count)

    def value_at_start(self, seat: int) -> float:
        """Return a player's expected winnings at the start of a hand, over all private cards."""
        deals, begin = self.game.deals(), self.game.start()
        holes = [tuple(hand) for hand in self.game.deck.holes(self.game.rules.hole_cards).tolist()]
        return float(sum(deals[:, o] @ self.function(begin, (), seat, hand) for o, hand in enumerate(holes)))


def showdown_payoffs(game: Holdem, position: Betting, board: tuple[int, ...], opponent: tuple[int, ...]) -> FloatArray:
    """Return each hand's mean payoff at showdown in chips, over all cards still to come.

    No player can bet any more.
    """
    rules = game.rules
    return position.stake * edges(opponent, board, rules.deck, board_size=rules.board_size(rules.rounds - 1))


class BlueprintValues:
    """State values for AIVAT, learnt from a blueprint's self-play.

    Buckets of a round are merged into groups of about equal weight, by their probability of winning a showdown. On
    sampled deals, a walk of the betting tree takes the expectation over all actions; the value of a state is the mean
    over the deals with the same groups of both players, weighted by the probability of reaching the state. If there are
    few such deals, the value is shrunk towards that of a showdown without further bets, which is also used for states
    that the tree does not contain.

    Parameters
    ----------
    blueprint : Blueprint
        The betting tree, buckets and strategy to use.
    groups : int
        Number of groups of each player in each round.
    deals : int
        Number of deals to learn from.
    seed : int
        Seed of the deals.
    """

    def __init__(self, blueprint: Blueprint, groups: int = GROUPS, deals: int = DEALS, seed: int = 0) -> None:
        self.blueprint, self.game, self.groups = blueprint, blueprint.game, groups
        self.node = _nodes_by_history(blueprint)
        self.positions = [self.game.replay(history) for history in self.node]  # [node]
        opened = [node for node, position in enumerate(self.positions) if position.history.endswith(REVEAL)]
        self.opened = [node for node in opened if self.positions[node].round == 1]  # decisions after the first board
        place = _kept_at(blueprint, groups, deals, seed)
        try:
            arrays = artifact.read(place, KIND).arrays
            self.group = [(arrays[f"group-{r}-0"], arrays[f"group-{r}-1"]) for r in range(self.game.rules.rounds)]
        except (ArtifactError, KeyError):
            found = buckets_and_results(blueprint, draw_deals(blueprint, deals, np.random.default_rng(seed)))
            self.group = _groups(blueprint, found, groups)
            edge, table = self._learn(found)
            basis, mix = self._few_tables(edge[1:2], table[self.opened])
            table[self.opened] = np.tensordot(mix, basis, axes=1)
            arrays = {"edge": edge, "table": table, "mix": mix, "first": self._first_boards(basis)}
            arrays |= {f"group-{r}-{seat}": each[seat] for r, each in enumerate(self.group) for seat in (0, 1)}
            artifact.write(place, KIND, arrays, inputs={"game": blueprint.fingerprint})
        # [round][seat][bucket] the group; copied, because kernels take no read-only arrays
        self.group = [(np.array(first), np.array(second)) for first, second in self.group]
        # [round, group of seat 0, group of seat 1] showdown value for seat 0
        self.edge: FloatArray = np.asarray(arrays["edge"])
        # [node, group of seat 0, group of seat 1] chips to seat 0
        self.table: SingleArray = np.asarray(arrays["table"])
        # [seat] from that player's point of view
        self._both = self.table, np.ascontiguousarray(-self.table.transpose(0, 2, 1))
        # [basis, hand of seat 0, hand of seat 1] means over the first board, chips to seat 0; the first basis is `edge`
        self.first: SingleArray = np.asarray(arrays["first"])
        # [opened, basis] coefficients of the basis tables after the first board
        self.mix: SingleArray = np.asarray(arrays["mix"])
        # [seat][basis, hand of the other, hand of that seat]: `expected` reads a row, which is contiguous
        self._first = np.ascontiguousarray(self.first.transpose(0, 2, 1)), self.first
        self._met: tuple[Any, int, IntArray] = (
            None,
            0,
            np.zeros(0, dtype=np.int64),
        )  # cards, group of the other, buckets
        table = self._table(self.game.start(), 0)
        groups_of = [self.group[0][seat][blueprint.hand_buckets(seat, 0, ())] for seat in (0, 1)]
        self._start = float((self.game.deals() * table[np.ix_(*groups_of)]).sum())

    def hand_values(
        self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]
    ) -> HandValues:
        """Return the value of a state for each bucket of a player's hands, given the opponent's cards.

        Values are in chips, and depend only on the groups of both players.
        """
        r, group, cards = position.round, self.group[position.round], (seat, board, opponent)
        if cards != self._met[0]:  # consecutive states mostly have the same cards
            theirs = self.blueprint.hand_buckets(1 - seat, r, board)[self.game.deck.hole_index(opponent)]
            self._met = cards, int(group[1 - seat][theirs]), self.blueprint.hand_buckets(seat, r, board)
        _, other, bucket = self._met
        return HandValues(self._table(position, seat)[:, other].astype(np.float64)[group[seat]], bucket)

    def value(self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]) -> FloatArray:
        """Return the value of a state for each private hand, given the opponent's cards.

        Values are in chips.
        """
        table, bucket = self.hand_values(position, board, seat, opponent)
        return table[bucket]

    def values_after_deal(
        self, position: Betting, board: tuple[int, ...], seat: int, opponent: tuple[int, ...]
    ) -> FloatArray:
        """Return the value of each private hand before public cards are dealt.

        It is the mean over all cards that neither player holds.
        """
        rules, deck, after = self.game.rules, self.game.deck, self.game.positions.after(position, REVEAL)
        if after.actor == TERMINAL:
            return showdown_payoffs(self.game, position, board, opponent)
        other, r = deck.hole_index(opponent), after.round
        if not board:
            node = self.node.get(after.history)
            pairs = self._first[seat][:, other]
            mix = self.mix[self.opened.index(node)] if node is not None else after.stake * np.eye(len(pairs))[0]
            return np.asarray((1 - 2 * seat) * mix @ pairs, dtype=np.float64)
        left = np.ones(deck.size, dtype=bool)
        left[[*board, *opponent]] = False
        rest = np.flatnonzero(left)
        more = rest[_subsets(len(rest), rules.board_cards[r])]
        boards = np.empty((len(more), len(board) + more.shape[1]), dtype=np.int64)
        boards[:, : len(board)], boards[:, len(board) :] = board, more
        mine, yours = self.blueprint.cards.each[seat], self.blueprint.cards.each[1 - seat]
        buckets = mine.rounds[r].look_up_boards(boards)
        theirs = (buckets if mine is yours else yours.rounds[r].look_up_boards(boards))[:, other]
        total = np.zeros(buckets.shape[1])
        with_card, group = hand_list(deck, rules.hole_cards).with_card, self.group[r]
        worth = np.ascontiguousarray(self._table(after, seat)[group[seat]].T)
        add_values(buckets, group[1 - seat][theirs], worth, more, with_card, total)
        return total / comb(len(rest) - rules.hole_cards, more.shape[1])

    def value_at_start(self, seat: int) -> float:
        """Return a player's expected winnings at the start of a hand, over all private cards."""
        return self._start if seat == 0 else -self._start

    def _table(self, position: Betting, seat: int) -> SingleArray:
        """Return the values of a position to a player in chips, for each pair of groups.

        The shape is (groups of that player, groups of the other).
        """
        node = self.node.get(position.history)
        if node is not None:
            learnt: SingleArray = self._both[seat][node]
            return learnt
        table = position.stake * self.edge[position.round]
        return np.ascontiguousarray(table if seat == 0 else -table.T, dtype=np.float32)

    def _learn(self, deals: Deals) -> tuple[FloatArray, SingleArray]:
        """Compute the showdown values `edge` and the state values `table` from deals."""
        groups, blueprint, rounds = self.groups, self.blueprint, self.game.rules.rounds
        nodes, positions = blueprint.nodes, self.positions
        pair = np.stack(
            [
                first[deals.bucket[:, r, 0]] * groups + second[deals.bucket[:, r, 1]]
                for r, (first, second) in enumerate(self.group)
            ],
            axis=1,
        )
        sign, met = (
            np.stack([np.bincount(pair[:, r], weights, groups**2) for r in range(rounds)])
            for weights in (deals.outcome, None)
        )
        edge = sign / np.maximum(met, 1)
        stakes = np.array([position.stake for position in positions], dtype=np.float64)
        shares, width = weights_as_bytes(blueprint)
        tree = LearningTree(
            np.array(nodes.actor),
            np.array(nodes.round),
            np.array(nodes.first_child),
            np.array(nodes.children),
            stakes,
            np.array([0.0 if position.folded is None else 2.0 * position.folded - 1 for position in positions]),
            call_indices(nodes, blueprint.level),
            np.array(blueprint.first),
            shares,
            width,
        )
        total, mass = np.zeros((len(positions), groups**2)), np.zeros((len(positions), groups**2))
        node, begin, end = np.empty((3, len(positions)), dtype=np.int64)
        walk = LearningScratch(node, begin, end, *np.empty((3, len(positions))))
        learn_values(tree, deals.bucket, deals.outcome, pair, UNLIKELY, walk, total, mass)
        prior = stakes[:, None] * edge[nodes.round]
        table = (total + PRIOR * prior) / (mass + PRIOR)
        return edge.reshape(rounds, groups, groups), table.reshape(-1, groups, groups).astype(np.float32)

    def _few_tables(self, edge: FloatArray, tables: SingleArray) -> tuple[SingleArray, SingleArray]:
        """Approximate many tables by linear combinations of a few basis tables.

        Returns the basis tables, and coefficients [table, basis]. Averaging a table over the first board takes most of
        the time of learning. The tables of decisions after it are similar, so they are replaced by `edge`, the first
        basis table, and the principal components of what `edge` does not explain.
        """
        if self.game.rules.rounds == 1:
            return np.zeros((0, self.groups, self.groups), dtype=np.float32), np.zeros((0, 0), dtype=np.float32)
        unit, rows = edge.reshape(1, -1), tables.reshape(len(tables), -1).astype(np.float64)
        along = rows @ unit.T / float((unit**2).sum() or 1.0)
        _, _, components = np.linalg.svd(rows - along * unit, full_matrices=False)
        basis = np.concatenate([unit, components[: COMPONENTS - 1]]).astype(np.float32)
        mix = np.hstack([along, (rows - along * unit) @ basis[1:].T])
        return basis.reshape(-1, self.groups, self.groups), mix.astype(np.float32)

    def _first_boards(self, tables: SingleArray) -> SingleArray:
        """Compute the mean of each basis table over all boards of the second round, for each pair of hands.

        Canonical boards are summed; their values depend on groups alone, so the sums are matrix products. The mean over
        all suit permutations accounts for the other boards.
        """
        rules, deck, holes = self.game.rules, self.game.deck, self.game.deck.holes(self.game.rules.hole_cards)
        if rules.rounds == 1:
            return np.zeros((0, 0, 0), dtype=np.float32)
        ways = complete_boards((), deck, board_size=rules.board_size(1), hole_cards=rules.hole_cards)
        total = np.zeros((len(tables), len(holes), len(holes)), dtype=np.float32)
        one = np.eye(self.groups, dtype=np.float32)
        for start in range(0, len(ways.boards), BOARDS):
            boards, weight = (x[start : start + BOARDS] for x in (ways.boards, ways.weights))
            first, second = (
                self.group[1][seat][cards.rounds[1].look_up_boards(boards)].T
                for seat, cards in enumerate(self.blueprint.cards.each)
            )
            free = ~(holes[:, :, None, None] == boards).any(axis=(1, 3))  # [hand, board]
            theirs = (one[second] * free[..., None]).reshape(len(holes), -1).T
            weighted = (free * weight)[..., None].astype(np.float32)
            for values, into in zip(tables, total, strict=True):
                into += (values[first] * weighted).reshape(len(holes), -1) @ theirs
        moved = hand_permutations(deck, rules.hole_cards)
        for into in total:
            into[:] = sum((into[np.ix_(to, to)].astype(np.float64) for to in moved), np.zeros(into.shape))
        return total / np.float32(len(moved) * comb(deck.size - 2 * rules.hole_cards, rules.board_size(1)))


def _kept_at(blueprint: Blueprint, groups: int = GROUPS, deals: int = DEALS, seed: int = 0) -> Path:
    """Return the path in the cache of the values that are learnt from a blueprint."""
    how = f"{groups} {deals} {seed} {COMPONENTS}"
    name = artifact.fingerprint(KIND, how, blueprint.fingerprint, np.asarray(blueprint.shares))
    return machine.cache_folder() / f"states-{name}"


def has_learnt_values(blueprint: Blueprint) -> bool:
    """Return whether a blueprint's state values are in the cache."""
    return artifact.exists(_kept_at(blueprint))


def _nodes_by_history(blueprint: Blueprint) -> dict[str, int]:
    """Return the node of a blueprint's betting tree for each betting history, in the order of the tree."""
    histories = [""]
    for node in range(1, len(blueprint.nodes.actor)):
        parent = int(blueprint.nodes.parent[node])
        chance = blueprint.nodes.actor[parent] == CHANCE
        label = REVEAL if chance else label_of(int(blueprint.level[node]), limit=blueprint.limit)
        histories.append(histories[parent] + label)
    return {history: node for node, history in enumerate(histories)}


def _groups(blueprint: Blueprint, deals: Deals, groups: int) -> list[tuple[IntArray, IntArray]]:
    """Return the group of each bucket: groups have about equal weight, and are ordered by showdown wins.

    The result is indexed by round, seat and bucket.
    """
    found = []
    for r in range(blueprint.game.rules.rounds):
        of_round = []
        for seat, cards in enumerate(blueprint.cards.each):
            bucket, sign = deals.bucket[:, r, seat], deals.outcome * (1 - 2 * seat)
            count = np.bincount(bucket, minlength=cards.numbers[r])
            order = np.argsort(np.bincount(bucket, sign, cards.numbers[r]) / np.maximum(count, 1), kind="stable")
            middle = np.cumsum(count[order]) - count[order] / 2
            group = np.empty(len(order), dtype=np.int64)
            group[order] = np.minimum(middle * groups // len(bucket), groups - 1)
            of_round.append(group)
        found.append((of_round[0], of_round[1]))
    return found
