"""Slow twins of kilt's fast code, written to be read: each says the same thing in the plainest way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, pairwise, permutations, product
from math import floor

import numpy as np

from kilt.cards.deck import Deck
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import CALL, FOLD, Holdem
from kilt.play.agent import PublicPolicy
from kilt.play.dealer import Cards, Dealer
from kilt.strategy.table import Strategy
from kilt.tree.best_response import response_values
from kilt.tree.flat import flat_tree

FIVE = [
    "high card",
    "pair",
    "two pair",
    "three of a kind",
    "straight",
    "flush",
    "full house",
    "four of a kind",
    "straight flush",
]
THREE = ["high card", "pair", "flush", "straight", "three of a kind", "straight flush"]
GROUPS = ["high card", "pair", "two pair", "three of a kind", "four of a kind"]


def hand_value(cards, deck):
    """A tuple that orders hands: the best five cards of `cards`, or all of them where there are fewer."""
    if len(cards) > 5:
        return max(hand_value(five, deck) for five in combinations(cards, 5))
    ranks = sorted((int(deck.full[card]) // 4 for card in cards), reverse=True)
    groups = sorted(Counter(ranks).items(), key=lambda item: (-item[1], -item[0]))
    shape = tuple(count for _, count in groups)
    order = [rank for rank, _ in groups]
    name = {
        (2,): "pair",
        (3,): "three of a kind",
        (4,): "four of a kind",
        (2, 1): "pair",
        (2, 1, 1): "pair",
        (2, 2): "two pair",
        (3, 1): "three of a kind",
        (2, 1, 1, 1): "pair",
        (2, 2, 1): "two pair",
        (3, 1, 1): "three of a kind",
        (3, 2): "full house",
        (4, 1): "four of a kind",
    }.get(shape, "high card")
    if len(cards) in (3, 5):
        flush = len({int(deck.full[card]) % 4 for card in cards}) == 1
        wheel = [12, *range(len(cards) - 2, -1, -1)]
        straight = ranks == list(range(ranks[0], ranks[0] - len(cards), -1)) or ranks == wheel
        if straight:
            order = [ranks[1] if ranks == wheel else ranks[0]]
        if straight or flush:
            name = "straight flush" if straight and flush else "straight" if straight else "flush"
    categories = {5: FIVE, 3: THREE}.get(len(cards), GROUPS)
    return (categories.index(name), *order)


def showdown(board, deck, holes, reach):
    """For each hand, the reach of the opponent's hands that it beats less that of those that beat it: O(n²)."""
    values = [None if set(hand) & set(board) else hand_value([*hand, *board], deck) for hand in holes]
    result = []
    for mine, hand in zip(values, holes, strict=True):
        total = 0.0
        for theirs, other, weight in zip(values, holes, reach, strict=True):
            if mine is not None and theirs is not None and not set(hand) & set(other):
                total += weight * ((mine > theirs) - (mine < theirs))
        result.append(total)
    return result


def compatible(board, holes, reach):
    """For each hand that can be held, the reach of the opponent's hands that share no card with it."""
    return [
        0.0
        if set(hand) & set(board)
        else sum(w for other, w in zip(holes, reach, strict=True) if not set(other) & (set(hand) | set(board)))
        for hand in holes
    ]


def equity(hand, opponents, board, deck, board_size=5):
    """Wins, ties and losses of one hand against weighted others, over all complete boards."""
    sums = [0.0, 0.0, 0.0]
    rest = [card for card in range(deck.size) if card not in {*hand, *board}]
    for new in combinations(rest, board_size - len(board)):
        complete = [*board, *new]
        mine = hand_value([*hand, *complete], deck)
        for other, weight in opponents:
            if not set(other) & {*hand, *complete}:
                theirs = hand_value([*other, *complete], deck)
                sums[0 if mine > theirs else 1 if mine == theirs else 2] += weight
    return sums


# ── suits ──


def rounds(hand: Sequence[int], layout: Sequence[int]) -> list[tuple[int, ...]]:
    """A hand cut into its rounds, each in ascending order."""
    return [tuple(sorted(hand[a:b])) for a, b in pairwise(accumulate(layout, initial=0))]


def rename(hand: Sequence[int], suits: Sequence[int], deck: Deck) -> list[int]:
    """The hand with suit s called suits[s]."""
    return [card // deck.suits * deck.suits + suits[card % deck.suits] for card in hand]


def canonical(hand: Sequence[int], layout: Sequence[int], deck: Deck) -> list[tuple[int, ...]]:
    """The same for two hands exactly if renaming suits turns one into the other."""
    return min(rounds(rename(hand, suits, deck), layout) for suits in permutations(range(deck.suits)))


def all_hands(layout: Sequence[int], deck: Deck, dealt: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Every hand of a layout, rounds one after another."""
    if not layout:
        yield dealt
        return
    for cards in combinations([card for card in range(deck.size) if card not in dealt], layout[0]):
        yield from all_hands(layout[1:], deck, dealt + cards)


# ── sizes ──


def count_betting(game: GameDef) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Decisions and legal actions of each round: plays out every betting sequence, by the rules as written."""
    decisions, actions = [0] * game.rounds, [0] * game.rounds

    def play(r: int, player: int, spent: list[int], last_raise: int, raises: int, waiting: int) -> None:
        """Go on from here; `waiting` players must still act before the round is over."""
        broke = [spent[p] == game.stacks[p] for p in (0, 1)]
        other = 1 - player
        bet = max(spent)
        if waiting == 0:
            if r + 1 < game.rounds and not any(broke):
                play(r + 1, game.first_player[r + 1], spent, game.big_blind, 0, 2)
            return
        if broke[player]:
            play(r, other, spent, last_raise, raises, waiting - 1)
            return

        stack = game.stacks[player]
        options = [min(bet, stack)]  # check or call
        if raises < game.max_raises[r] and not broke[other] and bet < stack:
            if game.betting == "limit":
                options.append(min(bet + game.raise_sizes[r], stack))
            else:
                options += [to for to in range(bet + 1, stack + 1) if to - bet >= last_raise or to == stack]
        decisions[r] += 1
        actions[r] += len(options) + (spent[player] < bet)  # and fold
        for to in options:
            after = list(spent)
            after[player] = to
            if to > bet:
                play(r, other, after, max(last_raise, to - bet), raises + 1, 1)
            else:
                play(r, other, after, last_raise, raises, waiting - 1)

    play(0, game.first_player[0], list(game.blinds), game.big_blind, 0, 2)
    return tuple(decisions), tuple(actions)


# ── sampled walks ──


def steps(nodes, node, strategy):
    """The children of a node, each with its slot (of a player's action, else None) and its probability."""
    first, count = nodes.first_child[node], nodes.children[node]
    if nodes.actor[node] == CHANCE:
        return [(child, None, nodes.chance[child]) for child in range(first, first + count)]
    start = nodes.infoset_start[nodes.infoset[node]]
    return [(first + a, start + a, strategy[start + a]) for a in range(count)]


def expected_walk(nodes, strategy):
    """[slot] two tables: counterfactual regrets, and the strategy weighted by the reach of its player and of chance.

    The second is what a walk of the other player adds to the average, in expectation: once for each history that this
    other player can choose.
    """
    regret, average = np.zeros(len(strategy)), np.zeros(len(strategy))

    def value(node, chance, reach):
        """To player 0. `reach` has a probability for the actions of each player so far."""
        actor = nodes.actor[node]
        if actor == TERMINAL:
            return nodes.payoff[node]
        values = []
        for child, slot, probability in steps(nodes, node, strategy):
            if actor == CHANCE:
                values.append((slot, probability, value(child, chance * probability, reach)))
            else:
                after = [reach[p] * probability if p == actor else reach[p] for p in (0, 1)]
                values.append((slot, probability, value(child, chance, after)))
        mean = sum(probability * v for _, probability, v in values)
        if actor != CHANCE:
            sign = 1 if actor == 0 else -1
            for slot, probability, v in values:
                regret[slot] += chance * reach[1 - actor] * sign * (v - mean)
                average[slot] += chance * reach[actor] * probability
        return mean

    value(0, 1.0, (1.0, 1.0))
    return regret, average


def matched_everywhere(nodes, regret):
    """[slot] regret matching."""
    return np.concatenate([matched(regret[start:end]) for start, end in pairwise(nodes.infoset_start)])


def cfr(nodes, factors, predicted, iterations):
    """[slot] the average strategy of CFR whose old sums are discounted before anything is added, as papers write it.

    `factors(t)` are those of regrets above zero, of regrets below zero and of the average between iterations t and
    t + 1. The share `predicted` of the last regrets is taken to come again.
    """
    slots = int(nodes.infoset_start[-1])
    regret, last, total = np.zeros(slots), np.zeros(slots), np.zeros(slots)
    owner = np.repeat(nodes.infoset_player, np.diff(nodes.infoset_start))
    strategy = matched_everywhere(nodes, regret)
    for t in range(1, iterations + 1):
        above, below, average = factors(t - 1) if t > 1 else (0, 0, 0)
        for player in (0, 1):
            mine = owner == player
            gained, reach = expected_walk(nodes, strategy)
            gained[np.abs(gained) < 1e-13] = 0.0  # rounding would decide where all regrets are 0
            regret = np.where(mine, np.where(regret > 0, above, below) * regret + gained, regret)
            total = np.where(mine, average * total + reach, total)
            last = np.where(mine, gained, last)
            kept = np.where(regret > 0, factors(t)[0], factors(t)[1]) * regret
            strategy = np.where(mine, matched_everywhere(nodes, kept + predicted * last), strategy)
    return matched_everywhere(nodes, total)


def exploitability(nodes, strategy):
    """What best responses win on average over the seats."""
    return sum(best_value(nodes, strategy, player) for player in (0, 1)) / 2


def best_value(nodes, strategy, player):
    """What a best response of `player` wins."""
    histories = {}  # of each information set of the player, with the reach of chance and the opponent

    def gather(node, reach):
        if nodes.actor[node] == TERMINAL:
            return
        if nodes.actor[node] == player:
            histories.setdefault(int(nodes.infoset[node]), []).append((node, reach))
        for child, _, probability in steps(nodes, node, strategy):
            gather(child, reach if nodes.actor[node] == player else reach * probability)

    @cache
    def value(node):
        if nodes.actor[node] == TERMINAL:
            return nodes.payoff[node] * (1 if player == 0 else -1)
        if nodes.actor[node] == player:
            return value(nodes.first_child[node] + choice(int(nodes.infoset[node])))
        return sum(probability * value(child) for child, _, probability in steps(nodes, node, strategy))

    @cache
    def choice(infoset):
        actions = range(nodes.children[histories[infoset][0][0]])
        worth = [sum(reach * value(nodes.first_child[h] + a) for h, reach in histories[infoset]) for a in actions]
        return int(np.argmax(worth))

    gather(0, 1.0)
    return value(0)


def best_response_value(tree, strategy, player):
    """What `player` can win at most: at each information set, the action that is best over all its nodes together."""
    nodes = tree.nodes
    sign = 1 if player == 0 else -1

    def steps(node):
        """The children, each with the probability that chance or the opponent takes it."""
        children = range(nodes.first_child[node], nodes.first_child[node] + nodes.children[node])
        if nodes.actor[node] == CHANCE:
            return [(nodes.chance[child], child) for child in children]
        if nodes.actor[node] == player:
            return [(1.0, child) for child in children]
        start = nodes.infoset_start[nodes.infoset[node]]
        return [(strategy[start + place], child) for place, child in enumerate(children)]

    reach = np.ones(len(nodes.parent))
    members = {}
    for node in range(len(nodes.parent)):
        if nodes.actor[node] == player:
            members.setdefault(nodes.infoset[node], []).append(node)
        for p, child in steps(node):
            reach[child] = reach[node] * p

    @cache
    def choice(infoset):
        def worth(place):
            return sum(reach[node] * value(nodes.first_child[node] + place) for node in members[infoset])

        return max(range(len(tree.actions[infoset])), key=worth)

    @cache
    def value(node):
        if nodes.actor[node] == TERMINAL:
            return sign * nodes.payoff[node]
        if nodes.actor[node] == player:
            return value(nodes.first_child[node] + choice(nodes.infoset[node]))
        return sum(p * value(child) for p, child in steps(node))

    return value(0)


# ── card abstraction ──


@cache
def board_strengths(board: tuple[int, ...], deck: Deck, hole_cards: int) -> dict[tuple[int, ...], int]:
    """2·wins + ties of every hand on a complete board, against all hands that the opponent can hold."""
    rest = [card for card in range(deck.size) if card not in board]
    values = {hand: hand_value([*hand, *board], deck) for hand in combinations(rest, hole_cards)}
    return {
        hand: sum(2 * (mine > theirs) + (mine == theirs) for other, theirs in values.items() if not {*hand} & {*other})
        for hand, mine in values.items()
    }


def roll_outs(hand: Sequence[int], board: Sequence[int], sizes: Sequence[int], deck: Deck) -> Iterator[tuple[int, ...]]:
    """Every complete board, as often as there are ways to deal it round by round."""
    later = [size for size in sizes if size > len(board)]
    if not later:
        yield tuple(sorted(board))
        return
    rest = [card for card in range(deck.size) if card not in {*hand, *board}]
    for new in combinations(rest, later[0] - len(board)):
        yield from roll_outs(hand, (*board, *new), sizes, deck)


def final_strengths(hand: tuple[int, ...], board: Sequence[int], sizes: Sequence[int], deck: Deck) -> list[int]:
    """The strength of a hand at the end of each roll-out."""
    return [board_strengths(last, deck, len(hand))[hand] for last in roll_outs(hand, board, sizes, deck)]


def cumulative_histogram(strengths: Sequence[int], top: int, bins: int) -> list[int]:
    """How many strengths are in each bin or below it: HS = strength / top is in bin ⌊HS · bins⌋, 1 in the last."""
    which = Counter(min(floor(Fraction(strength, top) * bins), bins - 1) for strength in strengths)
    return list(accumulate(which[b] for b in range(bins)))


def strength_against(hand: tuple[int, ...], board: Sequence[int], opponents: Sequence[tuple[int, ...]], deck: Deck):
    """The share of the pot on a complete board against some hands; None if the opponent can hold none of them."""
    mine, sums, met = hand_value([*hand, *board], deck), 0, 0
    for other in opponents:
        if not {*other} & {*hand, *board}:
            theirs = hand_value([*other, *board], deck)
            sums += 2 * (mine > theirs) + (mine == theirs)
            met += 1
    return Fraction(sums, 2 * met) if met else None


def costs(points, centroids, metric):
    """[point, centroid] the distance, squared for L2."""
    apart = points[:, None, :] - centroids[None, :, :]
    return np.abs(apart).sum(axis=2) if metric == "emd" else (apart**2).sum(axis=2)


def lloyd(points, weights, centroids, metric, iterations):
    """k-means as in the book: labels and centroids, turn by turn; no cluster may become empty."""
    for _ in range(iterations):
        labels = costs(points, centroids, metric).argmin(axis=1)
        centroids = np.array(
            [np.average(points[labels == c], axis=0, weights=weights[labels == c]) for c in range(len(centroids))]
        )
    return costs(points, centroids, metric).argmin(axis=1), centroids


# ── external sampling on an abstract game ──


def swapped_medoids(distances, medoids):
    """FasterPAM by its definition: each swap of a point for a medoid is tried, and taken where the sum falls most.

    Returns the medoids, and each point's medoid.
    """

    def cost(chosen):
        return distances[:, chosen].min(axis=1).sum()

    medoids, tried = list(medoids), 0
    while tried < len(distances):
        for x in range(len(distances)):
            tried += 1
            if x in medoids or tried > len(distances):
                continue
            swaps = [[*medoids[:m], x, *medoids[m + 1 :]] for m in range(len(medoids))]
            best = min(swaps, key=cost)
            if cost(best) < cost(medoids) * (1 - 1e-9):
                medoids, tried = best, 1
    labels = distances[:, medoids].argmin(axis=1)
    labels[medoids] = range(len(medoids))
    return medoids, labels


def mixed(word: int) -> int:
    """The output function of SplitMix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def drawn_word(key: int, number: int) -> int:
    """The word with this number in the sequence that starts from `key`."""
    return mixed((key + number * 0x9E3779B97F4A7C15) % 2**64)


def drawn_uniform(key: int, number: int) -> float:
    """The same as a number from 0 to 1, 1 excluded."""
    return (drawn_word(key, number) >> 11) * 2.0**-53


def drawn_deal(seed: int, number: int, deck: Deck, count: int) -> list[int]:
    """The first cards of a shuffled pack: each is drawn from what is left."""
    pack = list(range(deck.size))
    key = drawn_word(seed, number)
    for k in range(count):
        other = k + int(drawn_uniform(key, k) * (deck.size - k))
        pack[k], pack[other] = pack[other], pack[k]
    return pack[:count]


class Dealt:
    """A deal of an abstract game: what players see in each round, and what the hand pays at each leaf."""

    def __init__(self, abstract, cards):
        self.abstract, rules = abstract, abstract.game.rules
        held = rules.hole_cards
        holes, self.board = (cards[:held], cards[held : 2 * held]), cards[2 * held :]
        self.holes = cards[: 2 * held]
        self.hands = [rules.deck.hole_index(hole) for hole in holes]
        boards = [self.board[: rules.board_size(r)] for r in range(rules.rounds)]
        seen = list(zip(abstract.cards.each, holes, strict=True))
        self.buckets = [[cards.bucket(hole, board) for cards, hole in seen] for board in boards]

    @classmethod
    def number(cls, abstract, seed, number):
        """The deal with a number."""
        rules = abstract.game.rules
        count = 2 * rules.hole_cards + rules.board_size(rules.rounds - 1)
        return cls(abstract, drawn_deal(seed, number, rules.deck, count))

    def slots(self, node):
        """The slots of the information set of a decision."""
        nodes = self.abstract.betting.nodes
        count = int(nodes.children[node])
        first = int(self.abstract.first[node]) + count * self.buckets[nodes.round[node]][nodes.actor[node]]
        return range(first, first + count)

    def pays(self, node):
        """What player 0 wins at a leaf."""
        leaf = self.abstract.betting.leaves[self.abstract.betting.nodes.leaf[node]]
        return self.abstract.game.payoffs(leaf, self.hands, self.board)[0]

    def mean_pay(self, node, r):
        """What player 0 wins at a leaf on average, if only the public cards of round `r` are known."""
        rules, betting = self.abstract.game.rules, self.abstract.betting
        board, leaf = tuple(self.board[: rules.board_size(r)]), betting.leaves[betting.nodes.leaf[node]]
        rest = [card for card in range(rules.deck.size) if card not in {*self.holes, *board}]
        more = list(combinations(rest, len(self.board) - len(board)))
        return sum(self.abstract.game.payoffs(leaf, self.hands, board + way)[0] for way in more) / len(more)


def children_of(nodes, node):
    """The nodes below a node."""
    return range(nodes.first_child[node], nodes.first_child[node] + nodes.children[node])


LINEAR_STEPS = {8, 11, 16, 23, 32, 45, 64, 91}  # powers of √2


def count_places(abstract):
    """[slot] where its count is in a table that has the regrets of each information set and then its counts."""
    nodes = abstract.betting.nodes
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        n = int(nodes.children[node])
        for slot in range(int(abstract.first[node]), int(abstract.first[node + 1]), n):
            yield from range(2 * slot + n, 2 * slot + 2 * n)


def external_sampling(abstract, seed, iterations, *, linear=False, prune=0.0, equities=False):
    """[slot] regrets, and how often actions were drawn for the opponent; and how many actions were left out.

    Numbers are single ones, as in the kernel. What a deal changes is seen by the next one.
    """
    nodes, single = abstract.betting.nodes, np.float32
    regret, total = np.zeros(abstract.slots, dtype=single), np.zeros(abstract.slots)
    left_out, weight = 0, 0.0  # of the iterations so far, when one weighs 1
    for number in range(iterations):
        if linear and number in LINEAR_STEPS:
            np.multiply(regret, single(2**-0.5), out=regret)
            for slot, place in enumerate(count_places(abstract)):
                total[slot] = int(2**-0.5 * total[slot] + drawn_uniform(number ^ seed, place))
            weight *= 2**-0.5
        weight += 1
        dealt = Dealt.number(abstract, seed, number)
        gains = []

        def value(node, player, key, dealt=dealt, poor_at=-prune * weight, gains=gains):
            """Of the walk for `player`, to player 0."""
            nonlocal left_out
            actor = nodes.actor[node]
            if actor == TERMINAL:
                return single(dealt.pays(node))
            below = children_of(nodes, node)
            if actor == CHANCE:
                after = below[0]
                while nodes.actor[after] == CHANCE:
                    after = nodes.first_child[after]
                if equities and nodes.actor[after] == TERMINAL:
                    return single(dealt.mean_pay(after, nodes.round[node]))
                return value(below[0], player, key)
            slots = dealt.slots(node)
            positive = [max(regret[slot], single(0)) for slot in slots]
            whole = sum(positive, start=single(0))
            if actor != player:
                draw = single(drawn_uniform(key, int(nodes.first_child[node])))
                if whole > 0:
                    ends = accumulate(positive)
                    action = next((a for a, end in enumerate(ends) if draw * whole < end), len(below) - 1)
                else:
                    action = int(draw * len(below))
                total[slots[action]] += 1
                return value(below[action], player, key)
            spare = prune > 0 and whole > 0 and drawn_uniform(key, 0) < 0.95
            values = []
            for slot, child in zip(slots, below, strict=True):
                after = child
                while nodes.actor[after] == CHANCE:
                    after = nodes.first_child[after]
                poor = spare and regret[slot] < poor_at and nodes.actor[after] != TERMINAL
                values.append(None if poor else value(child, player, key))
                left_out += poor
            if whole > 0:
                worth = sum((p * v for p, v in zip(positive, values, strict=True) if v is not None), start=single(0))
                worth /= whole
            else:
                worth = sum(values, start=single(0)) / single(len(values))
            sign = 1 if player == 0 else -1
            gains.extend((slot, sign * (v - worth)) for slot, v in zip(slots, values, strict=True) if v is not None)
            return worth

        for player in (0, 1):
            value(0, player, drawn_word(mixed(seed % 2**64 ^ 0x5851F42D4C957F2D), 2 * number + player))
        for slot, gain in gains:
            regret[slot] += gain
    return regret, total, left_out


def expected_external(abstract, regret):
    """[slot] what an iteration adds to regrets and counts in expectation: all deals, all actions of both players."""
    nodes, rules = abstract.betting.nodes, abstract.game.rules
    gains, counts = np.zeros(abstract.slots), np.zeros(abstract.slots)
    held = rules.hole_cards
    deals = list(all_hands((held, held, *(added for added in rules.board_cards if added)), rules.deck))

    def value(node, reach, dealt):
        """To player 0. `reach` has a probability for the actions of each player so far, and one for the deal."""
        actor = nodes.actor[node]
        if actor == TERMINAL:
            return dealt.pays(node)
        if actor == CHANCE:
            return value(nodes.first_child[node], reach, dealt)
        slots = dealt.slots(node)
        positive = [max(regret[slot], 0.0) for slot in slots]
        share = [p / sum(positive) if any(positive) else 1 / len(slots) for p in positive]
        values = []
        for p, child in zip(share, children_of(nodes, node), strict=True):
            after = [reach[player] * p if player == actor else reach[player] for player in (0, 1)]
            values.append(value(child, (*after, reach[2]), dealt))
        mean = sum(p * v for p, v in zip(share, values, strict=True))
        for slot, p, v in zip(slots, share, values, strict=True):
            gains[slot] += reach[2] * reach[1 - actor] * (v - mean) * (1 if actor == 0 else -1)
            counts[slot] += reach[2] * reach[actor] * p
        return mean

    for cards in deals:
        value(0, (1.0, 1.0, 1 / len(deals)), Dealt(abstract, cards))
    return gains, counts


def met(abstract, shares, habit, dealt):
    """[seat] what a strategy wins on a deal from an opponent who takes the first legal action of `habit`, as in "rc".

    Where the strategy has nothing, it calls.
    """
    nodes, labels = abstract.betting.nodes, abstract.betting.labels

    def value(node, seat):
        """To player 0."""
        if nodes.actor[node] == TERMINAL:
            return dealt.pays(node)
        below = children_of(nodes, node)
        if nodes.actor[node] == CHANCE:
            return value(below[0], seat)
        mine = [int(shares[slot]) for slot in dealt.slots(node)] if nodes.actor[node] == seat else []
        if any(mine):
            return sum(p * value(child, seat) for p, child in zip(mine, below, strict=True)) / sum(mine)
        for kind in "c" if mine else habit:
            for child in below:
                if labels[child].startswith(kind):
                    return value(child, seat)
        raise AssertionError("no action is legal")

    return value(0, 0), -value(0, 1)


def payoff_matrix(game, leaf, board=()):
    """[hand of player 0, hand of player 1]: what a leaf of a poker game pays to player 0, 0 where they cannot meet."""
    possible = game.deals() > 0
    free = ~np.isin(game.deck.holes(game.rules.hole_cards), board).any(axis=1)
    matrix = np.zeros(possible.shape)
    for mine, theirs in np.argwhere(possible & np.outer(free, free)).tolist():
        matrix[mine, theirs] = game.payoffs(leaf, (mine, theirs), board)[0]
    return matrix


def edge(hand, opponent, board, deck, board_size):
    """Wins less losses of a hand against another, over all ways to complete the board, as a share of them."""
    rest = [card for card in range(deck.size) if card not in {*hand, *opponent, *board}]
    signs = []
    for more in combinations(rest, board_size - len(board)):
        mine, theirs = (hand_value((*held, *board, *more), deck) for held in (hand, opponent))
        signs.append((mine > theirs) - (mine < theirs))
    return sum(signs) / len(signs)


# ── whole hands ──

NAMES = ("Ann", "Bob")  # by seat


@dataclass(frozen=True)
class Drawn:
    """A strategy with probabilities drawn for each public state; a share of them is 0 where `gaps` is not."""

    name: str
    seed: int
    gaps: float = 0.0

    def policy(self, position, board):
        return drawn(self, position, board)

    def act(self, observation):
        raise AssertionError("estimators ask for policies, never for an action")


@cache
def drawn(agent, position, board):
    actions, deck = position.actions(), position.rules.deck
    rng = np.random.default_rng([agent.seed, *map(ord, position.history), *board])
    shares = rng.random((len(actions), len(deck.holes(position.rules.hole_cards)))) ** 2
    shares *= rng.random(shares.shape) >= agent.gaps
    shares[-1] += ~shares.any(axis=0)
    return PublicPolicy(actions, shares / shares.sum(axis=0), np.arange(shares.shape[1]))


def exact_responses(game, agent):
    """What a best response wins in each seat."""
    tree, rows = flat_tree(game), {}
    for name, actions in zip(tree.infosets, tree.actions, strict=True):
        hand, board, history = name.split("|")
        policy = agent.policy(game.replay(history), tuple(game.deck.cards(board.strip("/"))))
        (card,) = game.deck.cards(hand)
        rows[name] = {action: policy.probability(action)[card] for action in actions}
    return response_values(tree, Strategy.from_rows(tree, rows).probabilities)


def ends(game, agents):
    """All ends of a game that `agents` (by seat) reach, each with its probability."""
    dealer = Dealer(game)
    deals = game.deals()

    def walk(position, hands, board, chance):
        if chance == 0:
            return
        if position.actor == TERMINAL:
            cards = Cards(tuple((hand,) for hand in hands), board)
            yield dealer.finish_hand(0, position, cards, NAMES), chance
        elif position.actor == CHANCE:
            after = position.after(REVEAL)
            for revealed, share in game.reveals(position, hands, board):
                yield from walk(after, hands, revealed, chance * share)
        else:
            said = agents[position.actor].policy(position, board)
            for action in position.actions():
                share = said.probability(action)[hands[position.actor]]
                yield from walk(game.positions.after(position, action), hands, board, chance * share)

    for hands in product(range(len(deals)), repeat=2):
        yield from walk(game.start(), hands, (), deals[hands])


def baseline_value(rules, r, level, mine, theirs, edge, *, first):
    """What the baseline of DIVAT is worth to a player whose hand has the rank `mine`: the round is played out."""
    ranks, turn = ([mine, theirs], 0) if first else ([theirs, mine], 1)
    stack = min(rules.stacks)
    makes = [2**0.5 - 1]
    while len(makes) < 4:
        makes.append(makes[-1] * (2**0.5 - 1))
    paid, raises, to_act, actor = level, 0, 2, 0
    while to_act:
        may_raise = raises < min(rules.max_raises[r], 4) and paid < stack
        bet = rules.raise_sizes[r] if rules.betting == "limit" else paid
        if raises == 1 and not (may_raise and ranks[actor] >= 1 - makes[1]):
            first_bet = paid - level
            if ranks[actor] < first_bet / (2 * level + first_bet):
                return -level if actor == turn else level
        if may_raise and ranks[actor] >= 1 - makes[raises]:
            paid, raises, to_act = min(stack, paid + bet), raises + 1, 1
        else:
            to_act -= 1
        actor = 1 - actor
    return paid * edge


def local_values(agent, position, hand, board, actions):
    """What LBR with a card expects of each action: a sum over all cards of the opponent and of the board to come."""
    game, me = Holdem(position.rules), position.actor
    moves, values, total = list(game.positions.moves_to(position)), dict.fromkeys(actions, 0.0), 0.0
    for other in set(range(game.deck.size)) - {hand, *board}:
        chance = 1.0
        for before, action in moves:
            if before.actor == 1 - me:
                chance *= agent.policy(before, board[: game.rules.board_size(before.round)]).probability(action)[other]
        total += chance
        for action in actions:
            after = position.after(action)
            answers = {CALL: 1.0}
            if after.actor == 1 - me and after.facing:
                folds = agent.policy(after, board).probability(FOLD)[other]
                answers = {FOLD: folds, CALL: 1 - folds}
            for answer, share in answers.items():
                end = after.after(answer) if after.actor == 1 - me else after
                values[action] += chance * share * called_down(game, end, (hand, other)[:: 1 - 2 * me], board)[me]
    return {action: value / total for action, value in values.items()}


def called_down(game, position, hands, board):
    """What each player wins on average if both check and call from here on."""
    if position.actor == TERMINAL:
        return np.array(game.payoffs(position, hands, board))
    if position.actor != CHANCE:
        return called_down(game, position.after(CALL), hands, board)
    after = position.after(REVEAL)
    return sum(share * called_down(game, after, hands, more) for more, share in game.reveals(position, hands, board))


def shares_of_choice(regret, weight, joint):
    """How likely a player begins the game with each hand, by regret matching: one hand of all, or each by itself."""
    positive = np.maximum(regret, 0.0)
    if joint:
        even = (weight > 0) / np.count_nonzero(weight)
        return positive[0] / positive[0].sum() if positive[0].any() else even
    return np.array([game / (game + not_) if game + not_ > 0 else 0.5 for game, not_ in positive.T])


def regret_of_choice(regret, weight, joint, gained, added, above, below):
    """The regrets after the game was worth `gained` more than the alternative with each hand."""
    share = shares_of_choice(regret, weight, joint)
    if joint:
        new = np.stack([weight * gained - share @ (weight * gained), np.zeros_like(gained)])
    else:
        new = np.stack([gained, np.zeros_like(gained)]) - share * gained
    total = regret + added * new * (weight > 0)
    return np.where(total > 0, above, below) * total


def pair_value(game, position, board, hands, shares):
    """What player 0 wins on a complete board if both follow `shares(position, board, hand)`: a sum over all ends."""
    if position.actor == TERMINAL:
        return game.payoffs(position, hands, board)[0]
    if position.actor == CHANCE:
        return pair_value(game, position.after(REVEAL), board, hands, shares)
    seen = board[: position.rules.board_size(position.round)]
    return sum(
        share * pair_value(game, position.after(action), board, hands, shares)
        for action, share in shares(position, seen, hands[position.actor]).items()
        if share
    )


def biased_shares(shares, way):
    """Probabilities of actions, those that begin with the letter `way` (if any) ten times as likely as before."""
    ten = {action: share * (10 if way and action[0] == way else 1) for action, share in shares.items()}
    whole = sum(ten.values())
    return {action: share / whole for action, share in ten.items()}


def copy_pieces(source, begin, target, place, size):
    """Pieces of one table to their places in another."""
    for start, to, n in zip(begin, place, size, strict=True):
        target[to : to + n] = source[start : start + n]


def stud_ends(deck, rounds, bets):
    """Every end of a stud game with antes of 1 in which player 0 begins each round and one bet is allowed in it.

    `rounds` has, for each, the cards that it deals one by one: (whose, whether face up). Yields how likely the deal is,
    what player 0 wins, and for each player the way there: what they saw, which actions there were, and which they took.
    """
    dealt = [card for cards in rounds for card in cards]
    orders = list(permutations(range(deck.size), len(dealt)))
    for order in orders:
        cards = [(card, *each) for card, each in zip(order, dealt, strict=True)]
        mine, theirs = (hand_value([card for card, who, _ in cards if who == p], deck) for p in (0, 1))
        for line in one_bet_lines(len(rounds)):
            stake, before, ways, winner = 1, "", ([], []), (mine > theirs) - (mine < theirs)
            for r, actions in enumerate(line):
                there = cards[: sum(map(len, rounds[: r + 1]))]
                for place, action in enumerate(actions):
                    player, facing = place % 2, "r" in actions[:place]
                    view = tuple(card if up or who == player else None for card, who, up in there)
                    ways[player].append(((view, before + actions[:place]), "fc" if facing else "cr", action))
                    if action == "f":
                        winner = 1 if player == 1 else -1
                stake += bets[r] * actions.endswith("rc")
                before += actions + "/"
            yield 1 / len(orders), winner * stake, ways


def one_bet_lines(rounds):
    """All ways to bet, round by round, where one bet a round is allowed."""
    for actions in ("cc", "crc", "crf", "rc", "rf"):
        if actions.endswith("f") or rounds == 1:
            yield (actions,)
        else:
            yield from ((actions, *rest) for rest in one_bet_lines(rounds - 1))


def learnt(regret, gained, least, weight, above, below):
    """A sum of regrets after an iteration: discounted after what was gained is added, unless that is rounding."""
    total = regret
    if not -least <= gained <= least:
        total += weight * gained
    if total > 0:
        return total * above
    return total * below


def matched(regrets):
    """Regret matching: probabilities in proportion to positive regrets, equal ones where there are none."""
    positive = [max(regret, 0.0) for regret in regrets]
    if not any(positive):
        return [1 / len(regrets)] * len(regrets)
    return [regret / sum(positive) for regret in positive]
