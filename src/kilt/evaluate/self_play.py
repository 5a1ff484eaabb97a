"""Play a blueprint against itself: sample many hands at once, or compute the first round exactly.

Both players use the blueprint's own betting tree, so no bet is translated. They play the average strategy, or that
strategy after a post-processing rule. If the blueprint has no strategy at a decision, they check and call, as its agent
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, BoolArray, FloatArray, IntArray
from kilt.cards.hands import strengths
from kilt.errors import PlayError
from kilt.games.game import CHANCE
from kilt.games.holdem import Holdem
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import Rule
from kilt.strategy.postprocess_kernels import CLASSES, post_process_table
from kilt.tree.betting import FOLDS

AS_SOLVED = Rule()  # no post-processing


class FirstRoundDecision(NamedTuple):
    """A first-round decision, with the blueprint's strategy for every private hand."""

    node: int  # of the betting tree
    seat: int  # the player who acts
    reach: FloatArray  # [seat, hand] probability that the player in that seat, with that hand, plays up to here
    chance: FloatArray  # [hand, action] probabilities
    seen: BoolArray  # [hand] whether the solver visited the information set


def first_round_decisions(blueprint: Blueprint, rule: Rule = AS_SOLVED) -> Iterator[FirstRoundDecision]:
    """Yield the first-round decisions, each with the blueprint's strategy after post-processing.

    Parents come before children.
    """
    nodes = blueprint.nodes
    buckets = [cards.rounds[0].look_up_board(()).astype(np.int64) for cards in blueprint.cards.each]
    hands = len(buckets[0])
    reach: dict[int, FloatArray] = {0: np.ones((2, hands))}
    for node in range(int(nodes.block[1])):
        if nodes.actor[node] < 0:
            continue
        seat, here = int(nodes.actor[node]), reach.pop(node)
        count, first = int(nodes.children[node]), int(nodes.first_child[node])
        chance, seen = strategy_rows(blueprint, np.full(hands, node), buckets[seat], rule)
        yield FirstRoundDecision(node, seat, here, chance[:, :count], seen)
        for action in range(count):
            if nodes.actor[first + action] >= 0:
                after = reach[first + action] = here.copy()
                after[seat] *= chance[:, action]


def no_shared_card(game: Holdem, hands: IntArray) -> BoolArray:
    """Return which private hands share no card with each given hand.

    `hands` are indices of hands; the result is [row, hand].
    """
    holes = game.deck.holes(game.rules.hole_cards)
    held = np.zeros((len(holes), game.deck.size), dtype=np.float32)
    np.put_along_axis(held, holes.astype(np.int64), 1.0, axis=1)
    return np.asarray(held[hands] @ held.T == 0)


class Deals(NamedTuple):
    """Sampled deals: both players' buckets, and the winner at showdown."""

    bucket: IntArray  # [deal, round, seat]
    outcome: IntArray  # [deal] at a showdown: 1 if seat 0 wins, −1 if seat 1 does, 0 for a split pot


class Moves(NamedTuple):
    """The current decisions of many hands that are played at the same time."""

    deal: IntArray  # number of the deal
    node: IntArray  # of the betting tree
    seat: IntArray  # the player who acts
    round: IntArray
    chance: FloatArray  # [move, action] probabilities; the caller may change them before actions are drawn
    seen: BoolArray  # whether the solver visited the information set


class SelfPlay:
    """Self-play of a blueprint, with many hands at the same time.

    Iterating yields the next decisions of all unfinished hands.

    Parameters
    ----------
    blueprint : Blueprint
        The strategy of both players.
    deals : Deals
        The cards: see `draw_deals` and `buckets_and_results`.
    random : numpy.random.Generator
        Draws the actions.
    rule : Rule
        The post-processing of both players.
    """

    def __init__(self, blueprint: Blueprint, deals: Deals, random: np.random.Generator, rule: Rule = AS_SOLVED) -> None:
        self.blueprint, self.deals, self.random, self.rule = blueprint, deals, random, rule
        self.node = np.zeros(len(deals.outcome), dtype=np.int64)
        self.spent: IntArray = np.tile(np.array(blueprint.game.rules.blinds, dtype=np.int64), (len(self.node), 1))
        self.folded = np.full(len(self.node), -1)  # [deal] the seat that folded, or −1

    def __iter__(self) -> Iterator[Moves]:
        nodes = self.blueprint.nodes
        while True:
            while (turned := nodes.actor[self.node] == CHANCE).any():
                self.node[turned] = nodes.first_child[self.node[turned]]
            deal = np.flatnonzero(nodes.actor[self.node] >= 0)
            if not len(deal):
                return
            node = self.node[deal]
            seat, r = nodes.actor[node].astype(np.int64), nodes.round[node].astype(np.int64)
            bucket = self.deals.bucket[deal, r, seat]
            moves = Moves(deal, node, seat, r, *strategy_rows(self.blueprint, node, bucket, self.rule))
            yield moves
            self._take(moves)

    def _take(self, moves: Moves) -> None:
        """Draw an action for each decision, and advance to the node that it leads to."""
        upto = moves.chance.cumsum(axis=1)
        drawn = self.random.random(len(upto)) * upto[:, -1]
        action = np.minimum((upto <= drawn[:, None]).sum(axis=1), self.blueprint.nodes.children[moves.node] - 1)
        child = self.blueprint.nodes.first_child[moves.node] + action
        rules, raised = self.blueprint.game.rules, self.blueprint.level[child].astype(np.int64)
        level = self.spent[moves.deal].max(axis=1)
        to = level + np.array(rules.raise_sizes)[moves.round] if self.blueprint.limit else raised
        after = np.minimum(np.where(raised > 0, to, level), np.array(rules.stacks)[moves.seat])
        stays = raised != FOLDS
        self.spent[moves.deal[stays], moves.seat[stays]] = after[stays]
        self.folded[moves.deal[~stays]] = moves.seat[~stays]
        self.node[moves.deal] = child

    def winnings(self) -> FloatArray:
        """Return seat 0's winnings in each deal in chips, after all hands have ended."""
        sign = np.where(self.folded == 0, -1, np.where(self.folded == 1, 1, self.deals.outcome))
        return np.asarray(sign * self.spent.min(axis=1), dtype=np.float64)


def draw_deals(blueprint: Blueprint, deals: int, random: np.random.Generator) -> IntArray:
    """Draw random private cards and boards for a batch of deals.

    The shape is (deals, cards): private cards of seat 0, of seat 1, then the board of all rounds.
    """
    rules = blueprint.game.rules
    needed = 2 * rules.hole_cards + rules.board_size(rules.rounds - 1)
    return random.random((deals, rules.deck.size)).argsort(axis=1)[:, :needed]


def buckets_and_results(blueprint: Blueprint, cards: IntArray) -> Deals:
    """Return both players' buckets in given deals, and the winner of each showdown.

    `cards` are in the order of `draw_deals`.
    """
    rules = blueprint.game.rules
    held = rules.hole_cards
    board = np.ascontiguousarray(cards[:, 2 * held :])
    holes = cards[:, :held], cards[:, held : 2 * held]
    hands = np.stack([_hole_index(hole) for hole in holes], axis=1)
    bucket = np.empty((len(cards), rules.rounds, 2), dtype=np.uint32)
    for r in range(rules.rounds):
        blueprint.cards.look_up(r, board[:, : rules.board_size(r)], hands, bucket[:, r])
    mine, theirs = (strengths(np.hstack([hole, board]), rules.deck).astype(np.int64) for hole in holes)
    return Deals(bucket.astype(np.int64), np.sign(mine - theirs))


def strategy_rows(
    blueprint: Blueprint, node: IntArray, bucket: IntArray, rule: Rule = AS_SOLVED
) -> tuple[FloatArray, BoolArray]:
    """Return the action probabilities at given information sets, and whether the solver has visited them.

    `node` and `bucket` give the information set of each row; probabilities are [row, action], after a post-processing
    rule. Information sets that the solver never visited put all probability on the call, as the blueprint's agent does.
    """
    nodes = blueprint.nodes
    count = nodes.children[node].astype(np.int64)
    place = np.arange(int(count.max()))
    slot: Array = (blueprint.first[node] + bucket * count)[:, None] + np.minimum(place, count[:, None] - 1)
    there: BoolArray = place < count[:, None]
    row: FloatArray = np.where(there, blueprint.shares[slot], 0).astype(np.float64)
    if not rule.idle:
        row[there] = _post_processed(blueprint, rule, node, count, blueprint.shares[slot[there]])
    seen: BoolArray = np.asarray(row.any(axis=1))
    row[~seen, blueprint.faces_bet(node[~seen]).astype(np.int64)] = 1.0
    return row / row.sum(axis=1, keepdims=True), seen


def _post_processed(
    blueprint: Blueprint, rule: Rule, node: IntArray, count: IntArray, weights: Array
) -> npt.NDArray[np.float32]:
    """Apply a post-processing rule to the weights of some rows, one row after the other; rows of zeros stay zeros."""
    numbers = rule.numbers
    if numbers is None:
        raise PlayError("the rule has user-defined classes: use `itself` or `kind` of kilt.strategy.postprocess")
    first = np.concatenate([[0], np.cumsum(count)])
    ruled = blueprint.acted[node] if rule.after_first else np.ones(len(node), dtype=np.bool_)
    after, scratch = np.empty(len(weights), dtype=np.float32), np.empty(int(count.max()) + CLASSES)
    call = blueprint.faces_bet(node).astype(np.int64)
    post_process_table(numbers, first, count, call, ruled, weights, scratch, after)
    return after


def _hole_index(holes: IntArray) -> IntArray:
    """Return the index of each hand in the deck's list of hands: see `Deck.hole_index`."""
    if holes.shape[1] == 1:
        return holes[:, 0]
    low, high = holes.min(axis=1), holes.max(axis=1)
    return np.asarray(high * (high - 1) // 2 + low)
