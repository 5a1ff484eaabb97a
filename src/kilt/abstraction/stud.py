"""Classes of boards in stud: players who know their own cards, but of the up-cards a class alone.

A board here is a pair of up-cards as a player sees it, the own ones first, up to a renaming of suits. It is told by the
hands that the player may hold, and these by how strong they may become [Schmid15]: the distance of two boards is the
earth mover's between their hands, whose own distance is that of histograms of hand strength, in this round and in the
one before (`--ground history` in hold'em). Nothing is binned: strengths are listed and sorted, so that the earth
mover's distance of two lists is their L1 distance.

Players remember what they have seen. So an abstract game is the whole one with information sets merged, and has perfect
recall.
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
from kilt.abstraction.public import Heaps, moved
from kilt.arrays import FloatArray
from kilt.cards.boards import card_permutations
from kilt.cards.hands import strength
from kilt.errors import AbstractionError
from kilt.games.stud import Stud
from kilt.tree.flat import FlatTree, MergedTree, merge

Cards: TypeAlias = tuple[int, ...]
UpCards: TypeAlias = tuple[Cards, Cards]  # a board as a player sees it: own up-cards, the opponent's
# What a player is told, given own up-cards, the opponent's, hole cards, and what each round has dealt face down. Who is
# told the same must have been told the same in the round before.
Telling: TypeAlias = Callable[..., str]


@dataclass(frozen=True)
class StudBoards:
    """The boards of a game in which one round deals up-cards, and none before it deals more than hole cards."""

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
        """All boards up to suits, in order."""
        up, cards = sum(self.game.rules.up_cards), range(self.game.deck.size)
        pairs = ((mine, theirs) for mine in _left(cards, up) for theirs in _left(cards, up, mine))
        return sorted({(mine, theirs) for mine, theirs in (self.seen(*pair) for pair in pairs)})

    def hands(self, board: UpCards) -> list[Cards]:
        """The hole cards that a player may hold on a board."""
        return list(_left(range(self.game.deck.size), self.game.rules.hole_cards, *board))

    def seen(self, *cards: Cards) -> tuple[Cards, ...]:
        """What a player sees with suits renamed, so that what is alike has one name: the lowest, group after group."""
        return min(tuple(tuple(sorted(names[card] for card in group)) for group in cards) for names in self._renamed)

    @cached_property
    def _renamed(self) -> list[list[int]]:
        renamed: list[list[int]] = card_permutations(self.game.deck).tolist()
        return renamed

    @cached_property
    def _strengths(self) -> dict[tuple[UpCards, Cards], FloatArray]:
        """[board, hand] how often it wins at showdown, ties halved, by the player's last cards: sorted."""
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
        """[hand up to suits] how often it wins at showdown, by the cards to come: sorted."""
        found: dict[tuple[Cards, ...], FloatArray] = {}
        up, cards = sum(self.game.rules.up_cards), range(self.game.deck.size)
        for (hand,) in {self.seen(hand) for hand in _left(cards, self.game.rules.hole_cards)}:
            deals = ((mine, theirs) for mine in _left(cards, up, hand) for theirs in _left(cards, up, hand, mine))
            seen = (self.seen(*deal, hand) for deal in deals)
            lists = [self._strengths[(mine, theirs), held] for mine, theirs, held in seen]
            found[hand,] = np.sort(np.concatenate(lists))
        return found

    def places(self, board: UpCards, *, history: bool = True) -> FloatArray:
        """[hand, dimension] where the hands of a board are; L1 distances are those of their histograms.

        Where `history`, distances are means of those in this round and in the one before.
        """
        rows = []
        for hand in self.hands(board):
            lists = [self._strengths[board, hand], *[self._before[self.seen(hand)]] * history]
            rows.append(np.concatenate([each / len(each) / len(lists) for each in lists]))
        return np.array(rows)

    def distances(self) -> FloatArray:
        """[board, board] the earth mover's distance of their hands [Schmid15]."""
        every = [self.places(board) for board in self.boards]
        heaps = [Heaps(np.full(len(rows), 1 / len(rows)), rows.astype(np.float32)) for rows in every]
        found = np.zeros((len(heaps), len(heaps)))
        for i, j in combinations(range(len(heaps)), 2):
            found[i, j] = found[j, i] = moved(heaps[i], heaps[j])
        return found

    def public(self, labels: Sequence[int]) -> Telling:
        """Tell players the class of the board, by a label for each board, and their own cards."""
        label = dict(zip(self.boards, labels, strict=True))

        def tell(mine: Cards, theirs: Cards, hand: Cards, *last: Cards) -> str:
            mine, theirs, *own = self.seen(mine, theirs, hand, *last)
            return f"{self._names(own)}|{label[mine, theirs]}"

        return tell

    def by_strength(self, k: int, seed: int = 0) -> Telling:
        """Tell players how strong their hand is on the board, in `k` steps for each hand, and their own cards."""
        label = dict[tuple[UpCards, Cards], int]()
        for hand in {hand for board in self.boards for hand in self.hands(board)}:
            there = [board for board in self.boards if hand in self.hands(board)]
            lists = np.array([self._strengths[board, hand] for board in there])
            distances = np.abs(lists[:, None] - lists).mean(axis=2)
            found = partition(distances, min(k, len(there)), way="medoids", seed=seed).labels.tolist()
            label |= {(board, hand): number for board, number in zip(there, found, strict=True)}

        def tell(mine: Cards, theirs: Cards, hand: Cards, *last: Cards) -> str:
            mine, theirs, hand, *others = self.seen(mine, theirs, hand, *last)
            return f"{self._names([hand, *others])}|{label[(mine, theirs), hand]}"

        return tell

    def altogether(self, mine: Cards, theirs: Cards, hand: Cards, *last: Cards) -> str:
        """Tell players all cards that they see, but not which of their own are up."""
        return self._names(self.seen(theirs, (*mine, *hand), *last))

    def told(self, tell: Telling) -> int:
        """How many things players may be told when all cards are dealt."""
        cards, last = range(self.game.deck.size), sum(self.game.rules.down_cards)
        held = ((*board, hand) for board in self.boards for hand in self.hands(board))
        return len({tell(*own, more) for own in held for more in _left(cards, last, *own)})

    def _names(self, groups: Sequence[Cards]) -> str:
        return "/".join(map(self.game.deck.name, groups))

    def merged(self, tree: FlatTree, tell: Telling, *, hole: bool = True) -> MergedTree:
        """The game whose players know of the up-cards what they are told.

        Before these they see their hole cards, but no suits, or nothing where not `hole`.
        """
        read, known = self.game.deck.cards, dict[tuple[str, str, int], str]()

        def name(held: str, shown: str, player: int) -> str:
            hand, up = read(held), re.search(r"(\w+):(\w+)", shown)
            if not up:
                return self._names(self.seen(hand)) if hole else ""
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
    """All sets of `count` cards that are not gone."""
    out = {card for group in gone for card in group}
    return combinations([card for card in cards if card not in out], count)
