"""Simplify stud games by showing players only the class of the up-cards instead of the cards themselves.

A board of stud is a pair of sets of up-cards as a player sees it, the player's own first, up to a renaming of suits. It
is described by the hands that the player may hold, and a hand by its possible final strengths [Schmid15]: the distance
of two boards is the earth mover's distance between their hands, and the distance of two hands is that of their
histograms of hand strength, in this round and in the previous one (`ground = "history"` in hold'em). There are no bins:
strengths are listed and sorted, so that the earth mover's distance of two lists is their L1 distance.

Players remember the cards that they saw. So the abstract game is the original one with information sets merged, and has
perfect recall.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np

from kilt.abstraction.partition import partition
from kilt.abstraction.public import WeightedPoints, earth_movers_distance
from kilt.arrays import FloatArray
from kilt.cards.boards import card_permutations
from kilt.cards.hands import strength
from kilt.errors import AbstractionError
from kilt.games.stud import Stud
from kilt.tree.flat import FlatTree, MergedTree, merge

Cards: TypeAlias = tuple[int, ...]
UpCards: TypeAlias = tuple[Cards, Cards]  # a board as a player sees it: the player's up-cards, the opponent's
# The information that a player gets, as a function of the player's up-cards, the opponent's, the hole cards, and the
# cards that each round has dealt face down. Hands with the same information also had the same in the previous round.
Telling: TypeAlias = Callable[..., str]


@dataclass(frozen=True)
class StudBoards:
    """All boards of a stud game. A board consists of both players' up-cards.

    One round deals up-cards, and earlier rounds deal hole cards only.

    Raises
    ------
    AbstractionError
        The game deals its cards in another way.
    """

    game: Stud

    def __post_init__(self) -> None:
        rules = self.game.rules
        dealing = [r for r, up in enumerate(rules.up_cards) if up]
        if len(dealing) != 1 or any(rules.board_cards) or any(rules.down_cards[: dealing[0]]):
            raise AbstractionError(
                f"the boards of {self.game.name} cannot be sorted: one round may deal up-cards, rounds before it hole "
                "cards alone, and rounds from it on cards face down, as in leduc-stud"
            )

    @cached_property
    def boards(self) -> list[UpCards]:
        """The boards of the game in sorted order, one for each set of boards equal up to suits."""
        up, cards = sum(self.game.rules.up_cards), range(self.game.deck.size)
        pairs = ((mine, theirs) for mine in _left(cards, up) for theirs in _left(cards, up, mine))
        return sorted({(mine, theirs) for mine, theirs in (self.canonical_cards(*pair) for pair in pairs)})

    def hands(self, board: UpCards) -> list[Cards]:
        """Return the hole cards that a player may hold on a given board."""
        return list(_left(range(self.game.deck.size), self.game.rules.hole_cards, *board))

    def canonical_cards(self, *cards: Cards) -> tuple[Cards, ...]:
        """Rename the suits of groups of cards to a canonical form.

        Groups that differ only by suits become equal.

        Of all renamings, the result is the one with the lowest cards.
        """
        return min(tuple(tuple(sorted(names[card] for card in group)) for group in cards) for names in self._renamed)

    @cached_property
    def _renamed(self) -> list[list[int]]:
        renamed: list[list[int]] = card_permutations(self.game.deck).tolist()
        return renamed

    @cached_property
    def _strengths(self) -> dict[tuple[UpCards, Cards], FloatArray]:
        """The possible strengths at showdown of each hand on each board, sorted.

        There is one for each way to deal the player's last cards; ties count half.
        """
        deck, last = self.game.deck, sum(self.game.rules.down_cards)
        value = cache(lambda cards: strength(cards, deck))
        found = {}
        for mine, theirs in self.boards:
            for hand in self.hands((mine, theirs)):
                shares = []
                for more in _left(range(deck.size), last, mine, theirs, hand):
                    own = value(tuple(sorted((*mine, *hand, *more))))
                    others = [
                        value(tuple(sorted((*theirs, *hidden))))
                        for hidden in _left(range(deck.size), len(hand) + last, mine, theirs, hand, more)
                    ]
                    shares.append(np.mean([(own > other) + (own == other) / 2 for other in others]))
                found[(mine, theirs), hand] = np.sort(shares)
        return found

    @cached_property
    def _before(self) -> dict[tuple[Cards, ...], FloatArray]:
        """The possible strengths at showdown of each hand up to suits, sorted, over all cards to come."""
        found: dict[tuple[Cards, ...], FloatArray] = {}
        up, cards = sum(self.game.rules.up_cards), range(self.game.deck.size)
        for (hand,) in {self.canonical_cards(hand) for hand in _left(cards, self.game.rules.hole_cards)}:
            deals = ((mine, theirs) for mine in _left(cards, up, hand) for theirs in _left(cards, up, hand, mine))
            seen = (self.canonical_cards(*deal, hand) for deal in deals)
            lists = [self._strengths[(mine, theirs), held] for mine, theirs, held in seen]
            found[hand,] = np.sort(np.concatenate(lists))
        return found

    def hand_points(self, board: UpCards, *, history: bool = True) -> FloatArray:
        """Return the possible hands on a board as weighted points, for distances between boards.

        The shape is (hands, dimensions). The L1 distance of two points is the distance of the hands' histograms.

        With `history`, distances are means over this round and the previous one.
        """
        rows = []
        for hand in self.hands(board):
            lists = [self._strengths[board, hand], *[self._before[self.canonical_cards(hand)]] * history]
            rows.append(np.concatenate([each / len(each) / len(lists) for each in lists]))
        return np.array(rows)

    def distances(self) -> FloatArray:
        """Compute the earth mover's distance between the hands of each pair of boards [Schmid15].

        The shape is (boards, boards).
        """
        every = [self.hand_points(board) for board in self.boards]
        heaps = [WeightedPoints(np.full(len(rows), 1 / len(rows)), rows.astype(np.float32)) for rows in every]
        found = np.zeros((len(heaps), len(heaps)))
        for i, j in combinations(range(len(heaps)), 2):
            found[i, j] = found[j, i] = earth_movers_distance(heaps[i], heaps[j])
        return found

    def observe_classes(self, labels: Sequence[int]) -> Telling:
        """Return an observation function that shows players their own cards, but only the class of the up-cards.

        See `merge_observations`.

        `labels` has the class of each board.
        """
        label = dict(zip(self.boards, labels, strict=True))

        def tell(mine: Cards, theirs: Cards, hand: Cards, *last: Cards) -> str:
            mine, theirs, *own = self.canonical_cards(mine, theirs, hand, *last)
            return f"{self._names(own)}|{label[mine, theirs]}"

        return tell

    def observe_strength(self, k: int, seed: int = 0) -> Telling:
        """Return an observation function that shows players their cards and the strength of their hand.

        See `merge_observations`.

        Strength has `k` levels for each hand.
        """
        label = dict[tuple[UpCards, Cards], int]()
        for hand in {hand for board in self.boards for hand in self.hands(board)}:
            there = [board for board in self.boards if hand in self.hands(board)]
            lists = np.array([self._strengths[board, hand] for board in there])
            distances = np.abs(lists[:, None] - lists).mean(axis=2)
            found = partition(distances, min(k, len(there)), way="medoids", seed=seed).labels.tolist()
            label |= {(board, hand): number for board, number in zip(there, found, strict=True)}

        def tell(mine: Cards, theirs: Cards, hand: Cards, *last: Cards) -> str:
            mine, theirs, hand, *others = self.canonical_cards(mine, theirs, hand, *last)
            return f"{self._names([hand, *others])}|{label[(mine, theirs), hand]}"

        return tell

    def observe_all_cards(self, mine: Cards, theirs: Cards, hand: Cards, *last: Cards) -> str:
        """Let a player see all cards, but not which of the player's own cards are face up.

        See `merge_observations`.
        """
        return self._names(self.canonical_cards(theirs, (*mine, *hand), *last))

    def count_observations(self, tell: Telling) -> int:
        """Count the distinct observations that a player can make once all cards are dealt."""
        cards, last = range(self.game.deck.size), sum(self.game.rules.down_cards)
        held = ((*board, hand) for board in self.boards for hand in self.hands(board))
        return len({tell(*own, more) for own in held for more in _left(cards, last, *own)})

    def _names(self, groups: Sequence[Cards]) -> str:
        return "/".join(map(self.game.deck.name, groups))

    def merge_observations(self, tree: FlatTree, tell: Telling, *, hole: bool = True) -> MergedTree:
        """Return a simplified stud game, in which players see only the result of an observation function.

        Before the up-cards, players see their hole cards without suits, or nothing if `hole` is false.
        """
        read, known = self.game.deck.cards, dict[tuple[str, str, int], str]()

        def name(held: str, shown: str, player: int) -> str:
            hand, up = read(held), re.search(r"(\w+):(\w+)", shown)
            if not up:
                return self._names(self.canonical_cards(hand)) if hole else ""
            last = (read(cards) for cards in re.findall(r"\((\w+)\)", shown))
            return tell(read(up[1 + player]), read(up[2 - player]), hand, *last)

        names = []
        for infoset, player in zip(tree.infosets, tree.nodes.infoset_player.tolist(), strict=True):
            held, shown, history = infoset.split("|")
            if (held, shown, player) not in known:
                known[held, shown, player] = name(held, shown, player)
            names.append(f"{known[held, shown, player]}|{history}")
        return merge(tree, names)


def _left(cards: range, count: int, *gone: Cards) -> Iterator[Cards]:
    """Return all sets of `count` cards that are not in `gone`."""
    out = {card for group in gone for card in group}
    return combinations([card for card in cards if card not in out], count)
