"""Compute values at the end of a depth-limited subgame, where play continues by a blueprint [Brown18].

A subgame with a depth limit ends with its first round. After that round, the player who solves it follows the
blueprint. The opponent chooses, for each hand, among *continuations*: the blueprint, and the blueprint biased towards
folding, calling or raising, with the probability of such actions multiplied by ten and normalised (`BIAS`). The
player's strategy before the limit must be good against all of them. With a single continuation, it could exploit the
opponent's fixed play after the limit, as if the opponent could not adapt.

There is a value for each pair of hands, not for a hand against a range: so the values hold whatever both players do
before the limit. They are means over the boards to come, all or a sample. With a sample, a control variate removes the
luck of these boards: the showdown frequencies of each pair of hands, whose mean over all boards is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, prod
from time import monotonic
from typing import NamedTuple

import numpy as np

from kilt.arrays import BoolArray, ByteArray, FloatArray, IntArray
from kilt.cards.edges import sum_edges
from kilt.cards.equity import hands_as_arrays
from kilt.cards.equity_kernels import board_strengths
from kilt.cards.hands import hand_tables
from kilt.games.game import CHANCE, REVEAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem
from kilt.games.subgame import ContinuationValues, Subgame, cut_after_first_round
from kilt.jit import in_parts
from kilt.play.agent import PublicPolicy
from kilt.search.allowance import Allowance
from kilt.search.continuation_sequences import (
    ContinuationPolicy,
    ContinuationSequences,
    PlayerSequences,
    PublicStrategy,
    SequenceCache,
    sequences_after,
)
from kilt.search.continuations_kernels import Singles, add_pair_values, finish_pairs, follow_sequences, sum_winnings
from kilt.solve.resolve import LeafValues, ends_of_round
from kilt.tree.betting import Menu

BIASES = (
    "",
    FOLD,
    CALL,
    RAISE,
)  # first letter of the actions that each continuation favours; the first continuation is the blueprint itself
BIAS = 10.0  # factor of the probabilities of these actions, before normalisation [Brown18 §5]
EDGE = 0  # index of the values of ends after which no player can bet
BATCH = 4  # boards that are processed together, between two checks of the time


class LuckCorrection(NamedTuple):
    """A correction of values that removes the luck of sampled boards.

    It consists of a factor and a summand: see `finish_pairs`.
    """

    scale: Singles  # [hand, hand] 0 for hands that share a card
    luck: Singles  # [hand, hand]


@dataclass(frozen=True)
class BlueprintContinuations:
    """A function that computes values at the end of a depth-limited subgame, where a blueprint takes over.

    It is the argument `continued` of `solve.resolve.resolve`.

    Parameters
    ----------
    game : Holdem
        The whole game.
    history : str
        History of the position where the subgame begins.
    chooser : int
        The player who chooses among continuations.
    blueprint : PublicStrategy
        The strategy of both players after the limit.
    ways : int
        Number of continuations: the first ones of `BIASES`.
    boards : int
        Number of sampled boards; 0 for all of them. The sample depends on the public cards alone.
    threads : int
        Number of threads that share the ends.
    time : Allowance
        Time limit for more boards: at least `BATCH` of them are processed, unless the answer is no longer needed.
    cache : SequenceCache
        Cache of the sequence forms of the game after each end, which do not depend on boards.
    """

    game: Holdem
    history: str
    chooser: int
    blueprint: PublicStrategy
    ways: int = len(BIASES)
    boards: int = 0
    threads: int = 1
    time: Allowance = field(default_factory=Allowance)
    cache: SequenceCache = field(default_factory=SequenceCache, repr=False)
    # the result of the last call, by the subgame's hands
    _told: dict[bytes, ContinuationValues] = field(default_factory=dict, repr=False)

    def __call__(self, rest: Subgame, ends: Sequence[Betting]) -> ContinuationValues:
        """Return the values of the positions where a subgame ends, for each pair of hands."""
        return self._known(rest, {end.history: self.ways for end in ends})

    def leaf_values(self, menu: Menu | None) -> LeafValues:
        """Return a function that computes values at the end of a subgame, where a blueprint takes over.

        A call of that function also computes values at the ends that `menu` leads to, because a call for these comes
        next.
        """

        def told(rest: Subgame, ends: Sequence[Betting]) -> ContinuationValues:
            later = {end.history: self.ways for end in ends_of_round(rest, menu)}
            found = self._known(rest, {end.history: 1 for end in ends} | later)
            return found._replace(places={history: (first, 1) for history, (first, _) in found.places.items()})

        return told

    def prepare(self, rest: Subgame, menu: Menu | None, own: Menu) -> None:
        """List the action sequences after the end of a subgame, so that later calls are fast.

        The ends are those that `menu` leads to, and those that the blueprint's menu `own` leads to, which `leaf_values`
        needs.
        """
        (board, *_), cut = sampled_boards(self.game.rules, rest.known_board, 1), cut_after_first_round(rest)
        wanted = {end.history: 1 for end in ends_of_round(cut, own)}
        wanted |= {end.history: self.ways for end in ends_of_round(cut, menu)}
        for history, ways in wanted.items():
            position = self.game.replay(self.history + history)
            if _goes_on(position):
                self.sequences(position, board, ways)

    def _known(self, rest: Subgame, wanted: Mapping[str, int]) -> ContinuationValues:
        """Return the values of the ends with the given histories; the result of the last call is cached.

        `wanted` maps histories to numbers of continuations.
        """
        hands = rest.numbers.tobytes()
        known = self._told.get(hands)
        if known is None or not all(_tells(known, history, ways) for history, ways in wanted.items()):
            self._told.clear()
            known = self._told[hands] = self._found(rest, wanted)
        return known

    def _found(self, rest: Subgame, wanted: Mapping[str, int]) -> ContinuationValues:
        positions = {history: self.game.replay(self.history + history) for history in sorted(wanted)}
        going = [history for history, position in positions.items() if _goes_on(position)]
        holes, known = rest.holes, rest.known_board
        places, count = dict.fromkeys(positions, (EDGE, 1)), 1
        for history in going:
            places[history] = count, wanted[history]
            count += wanted[history]
        values = np.zeros((count, len(holes), len(holes)), dtype=np.float32)
        apart = ~(holes[:, None, :, None] == holes[None, :, None, :]).any(axis=(2, 3))
        edge = values[EDGE]  # showdown values are sufficient if no player can bet any more
        edge[:] = apart * all_edges(self.game.rules, known, holes)
        boards = sampled_boards(self.game.rules, known, self.boards)

        def add(history: str) -> None:
            self.time.check()
            first, ways = places[history]
            self._add(positions[history], some, values[first : first + ways])

        done, enough = 0, not going
        while not enough:
            begun = monotonic()
            some = SampledBoards(boards[done : done + BATCH], rest, self.game, self.blueprint)
            in_parts(lambda number, _: add(going[number]), len(going), self.threads, parts=len(going))
            done, left = done + len(some.cards), self.time.left
            enough = done == len(boards) or (left is not None and monotonic() - begun > left)
        if going:
            luck = self._luck(boards[:done], rest, apart, edge)
            finish_pairs(luck.scale, luck.luck, values[1:])
        return ContinuationValues(self.chooser, values, places)

    @staticmethod
    def _luck(boards: IntArray, rest: Subgame, apart: BoolArray, edge: Singles) -> LuckCorrection:
        """Return the factor and the summand that replace the showdowns on some boards by those on all boards."""
        live = np.array([~np.isin(rest.holes, board).any(axis=1) for board in boards.tolist()], dtype=np.float32)
        scale: Singles = apart / np.maximum(live.T @ live, np.float32(1))
        luck: Singles = edge - sum_edges(boards, rest.holes, rest.deck).astype(np.float32) * scale
        return LuckCorrection(scale, luck)

    def _add(self, position: Betting, boards: SampledBoards, values: Singles) -> None:
        """Add player 0's winnings after a position, per chip at stake, to the values of each pair of hands.

        They are summed over complete boards. `values` has the shape (continuations, hands, hands).
        """
        ways = len(values)
        rest = self.sequences(position, boards.cards[0], ways)
        sides = [[self._columns(rest, player, boards, b, ways) for b in range(len(boards.cards))] for player in (0, 1)]
        most = [max(reach.shape[2] for reach, _ in side) for side in sides]
        won = np.zeros((len(boards.cards), 2, ways, most[0], most[1] + 1), dtype=np.float32)
        first, second = (np.stack([column for _, column in side]) for side in sides)
        gain = rest.ends.gain / np.float32(position.stake)
        for b, ((mine, _), (theirs, _)) in enumerate(zip(*sides, strict=True)):
            second[b, boards.strength[b] < 0] = most[1]
            sums = np.empty((2, *theirs.shape[::2]), dtype=np.float32)
            sum_winnings(*rest.ends.sequence, gain, rest.ends.shown, mine, theirs, sums, won[b])
        rows = np.empty((len(won), most[0], 2, values.shape[1]), dtype=np.float32)
        add_pair_values(won, first, second, boards.strength, rows, values)

    def sequences(self, position: Betting, board: IntArray, ways: int) -> ContinuationSequences:
        """Return the action sequences after a position, from the cache if possible.

        See `sequences_after` for `board`.
        """
        chosen = self._choices(0, ways), self._choices(1, ways)
        key = position.history, self.chooser, ways
        return self.cache.get(key, lambda: sequences_after(self.game, position, self.blueprint, chosen, board))

    def _choices(self, player: int, ways: int) -> ContinuationPolicy:
        """Return the function that turns the blueprint's probabilities into those of a player's continuations.

        The player who chooses has `ways` continuations, the other one only the blueprint.
        """
        return self._chosen if player == self.chooser and ways > 1 else _followed

    def _chosen(self, at: Betting, actions: Sequence[str], shares: Singles, board: IntArray | None) -> Singles:
        """Return the action probabilities of each continuation at a decision of the player who chooses.

        `shares` are those of the blueprint. The result has the shape (continuations, actions, columns). Columns
        are hands of the deck on a board, or columns that do not depend on the board.
        """
        return continuation_probabilities(actions, shares, self.ways)

    def _columns(
        self, rest: ContinuationSequences, player: int, boards: SampledBoards, b: int, ways: int
    ) -> tuple[Singles, IntArray]:
        """Return a player's reach of each sequence on a board, and the column of each hand in that array.

        The shape of the reach is (continuations, sequences, columns).
        """
        own = rest.players[player]
        index, column = boards.group_hands(own, player, b)
        shares = own.shares
        if own.depending:
            chosen, parts = self._choices(player, ways), [shares] if shares.size else []
            for at in own.depending:
                policy = boards.policy_on(b, at)
                found = chosen(at, policy.actions, policy.probabilities.astype(np.float32), boards.cards[b])
                parts.append(found.reshape(len(found), -1))
            shares = np.hstack(parts)
        reach = np.empty((len(shares), len(own.parent), index.shape[1]), dtype=np.float32)
        draws, keys = np.random.default_rng(0).random(reach.shape[0] * reach.shape[1]), np.empty(index.shape[1])
        follow_sequences(own.parent, own.round, own.offset, shares, index, draws, reach, keys)
        _, where, alike = np.unique(keys, return_index=True, return_inverse=True)
        return np.ascontiguousarray(reach[..., where]), alike.ravel()[column]


class SampledBoards:
    """A batch of sampled boards, with all hands' strengths and the blueprint's strategy on each."""

    def __init__(self, cards: IntArray, rest: Subgame, game: Holdem, blueprint: PublicStrategy) -> None:
        self.cards, self.numbers, self._rounds, self._blueprint = cards, rest.numbers, game.rules.rounds, blueprint
        hands, tables = (
            hands_as_arrays(rest.holes, rest.deck),
            hand_tables(cards.shape[1] + rest.holes.shape[1], rest.deck),
        )
        strength = np.empty((len(cards), len(rest.holes)), dtype=np.int16)
        for board, row in zip(cards, strength, strict=True):
            board_strengths(board, hands, tables, row)
        self.strength: Singles = strength.astype(np.float32)
        self._known: dict[tuple[int, int, tuple[int, ...]], tuple[IntArray, IntArray]] = {}

    def policy_on(self, b: int, position: Betting) -> PublicPolicy:
        """Return the blueprint's strategy at a position on one of the sampled boards.

        It depends only on the cards of board `b` that have been dealt by then.
        """
        size = position.rules.board_size(position.round)
        return self._blueprint.policies(position, [tuple(self.cards[b, :size].tolist())])[0]

    def group_hands(self, own: PlayerSequences, player: int, b: int) -> tuple[IntArray, IntArray]:
        """Group the hands of a player that the blueprint plays in the same way on a board.

        The board is number `b`. Returns the groups, and the group of each hand. The first array is [round, group]: the
        column of the group in the blueprint's tables of that round. Its row after the last round has the index in the
        deck, for decisions that depend on the board in another way.
        """
        rounds = (*sorted(own.seen), *([self._rounds] if own.depending else []))
        if (player, b, rounds) not in self._known:
            numbers = self.numbers
            parts = [
                numbers if r == self._rounds else self.policy_on(b, own.seen[r]).column[numbers].astype(np.int64)
                for r in rounds
            ]
            key = np.zeros(len(self.numbers), dtype=np.int64)
            for part in parts:
                key = key * (int(part.max()) + 1) + part
            _, where, column = np.unique(key, return_index=True, return_inverse=True)
            index = np.zeros((self._rounds + 1, len(where)), dtype=np.int64)
            for r, part in zip(rounds, parts, strict=True):
                index[r] = part[where]
            self._known[player, b, rounds] = index, column.ravel()
        return self._known[player, b, rounds]


def _followed(at: Betting, actions: Sequence[str], shares: Singles, board: IntArray | None) -> Singles:
    """Return the blueprint's probabilities as the only continuation of a player."""
    return shares[None]


def continuation_probabilities(actions: Sequence[str], shares: Singles, ways: int) -> Singles:
    """Return the action probabilities of a blueprint, and of variants that fold, call or raise more.

    `shares` [action, …] are the probabilities of the blueprint; the result is [continuation, action, …].
    """
    begins = np.array([[bool(bias) and action.startswith(bias) for action in actions] for bias in BIASES[:ways]])
    times = np.where(begins, BIAS, 1.0).astype(shares.dtype)
    weighed: Singles = times.reshape(*times.shape, *[1] * (shares.ndim - 1)) * shares
    whole = weighed.sum(axis=1, keepdims=True)
    np.divide(weighed, whole, out=weighed, where=whole > 0)
    return weighed


def all_edges(rules: GameDef, board: Sequence[int], holes: ByteArray) -> FloatArray:
    """Return each hand's edge over each other hand, P(win) − P(loss), over all complete boards.

    See `cards.edges`. The shape is (hands, hands).
    """
    left, more = np.setdiff1d(np.arange(rules.deck.size), board), sum(rules.board_cards) - len(board)
    ways = np.array(list(combinations(left.tolist(), more)), dtype=np.int64).reshape(-1, more)
    boards = np.hstack([np.tile(np.array(board, dtype=np.int64), (len(ways), 1)), ways])
    return sum_edges(boards, holes, rules.deck) / comb(len(left) - 2 * rules.hole_cards, more)


def sampled_boards(rules: GameDef, board: Sequence[int], count: int) -> IntArray:
    """Return all complete boards that begin with the given cards, or a random sample.

    The shape is (boards, cards), with the cards in the order of the rounds. Random boards use each possible next card
    once before any card repeats.
    """
    sizes = [size for size in rules.board_cards[_rounds_dealt(rules, len(board)) :] if size]
    left = np.setdiff1d(np.arange(rules.deck.size), board)
    whole = prod(comb(len(left) - sum(sizes[:place]), size) for place, size in enumerate(sizes))
    rng, found = np.random.default_rng([len(board), *board]), list[list[int]]()
    if not count or whole <= count:
        found = [[]]
        for size in sizes:
            found = [[*one, *more] for one in found for more in combinations(sorted({*left.tolist()} - {*one}), size)]
    else:
        while len(found) < count:
            for card in rng.permutation(left)[: count - len(found)].tolist():
                others = rng.choice(left[left != card], sum(sizes) - 1, replace=False)
                found.append([card, *others.tolist()])
    return np.array([[*board, *more] for more in found], dtype=np.int64)


def _rounds_dealt(rules: GameDef, cards: int) -> int:
    """Return the number of rounds whose public cards are among the first `cards`."""
    return next(r for r in range(rules.rounds, -1, -1) if sum(rules.board_cards[:r]) <= cards)


def _tells(known: ContinuationValues, history: str, ways: int) -> bool:
    """Return whether `known` has the values of an end for `ways` continuations, or no player can bet after the end."""
    first, count = known.places.get(history, (EDGE, 0))
    return count >= ways or (first == EDGE and count > 0)


def _goes_on(position: Betting) -> bool:
    """Return whether a player acts after the next public cards."""
    while position.actor == CHANCE:
        position = position.after(REVEAL)
    return position.actor >= 0
