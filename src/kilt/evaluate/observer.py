r"""Build opponent models: count a player's actions at each information set in logged hands.

In a flat tree an information set has a name, and a hand leads to it. In a public tree it is a decision, a board and a
hand, with suits renamed to those of the canonical board. In an abstract game, the betting of a hand is followed in the
betting tree as an observer would: a bet that the menu lacks counts as one or two bets of the menu
(`strategy.translate`), each with its probability, and so do the decisions that follow. The bucket of the hand on the
board of the round completes the information set. Hands are processed in columns: all of a batch at once.

>>> from kilt.games import load_game
>>> from kilt.tree.flat import flat_tree
>>> leduc = load_game("leduc")
>>> observer = FlatObserver(leduc, flat_tree(leduc), "Ann")
>>> faults = observer.add_log("STATE:0:cc/rf:Kh|As/Ah:1|-1:Ann|Bob\nSTATE:1:rc/cc:Ks|Qs/Qh:-3|3:Bob|Ann", "my.log")
>>> model = observer.model()
>>> model.figures["hands"], model.figures["decisions"], [one.seen for one in model.rounds()]
(2, 4.0, [2, 2])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cards.boards import board_index, canonical_boards, card_permutations
from kilt.cards.boards_kernels import find_canonical_board
from kilt.errors import PlayError
from kilt.games.holdem import FOLD, KEPT, Betting, Holdem
from kilt.play.blueprint import AbstractState, BlueprintAgent
from kilt.play.columns import LINES, NOT_DEALT, HandColumns, LogReader
from kilt.play.phh import is_phh, read_phhs
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.model import OpponentModel
from kilt.strategy.translate import Mapping, pseudo_harmonic
from kilt.tree.betting import on_menu
from kilt.tree.flat import FlatTree
from kilt.tree.vector import VectorGame

# Treatment of hands without a showdown, whose cards an opponent would not have seen: count the cards in the log (full
# information), skip the hand, or count all cards that the player could have held, with equal weight.
MUCKED = SHOWN, LEFT_OUT, WEIGHED = "shown", "left-out", "weighed"


class ObservedHands(NamedTuple):
    """A batch of the observed player's hands, as one array for each property.

    The first axis of each array is the hand.
    """

    end: IntArray  # [hand] number of its betting among `LogReader.ends`
    seat: IntArray  # [hand] of the player
    own: IntArray  # [hand, card] private cards of the player
    board: IntArray  # [hand, card] NOT_DEALT if a card was not dealt
    weight: FloatArray  # [hand]

    def select(self, which: BoolArray) -> ObservedHands:
        """Return the hands that a boolean array selects."""
        return ObservedHands(self.end[which], self.seat[which], self.own[which], self.board[which], self.weight[which])


class Observer(ABC):
    """Counts a player's actions at each information set, in logged hands of a game.

    Parameters
    ----------
    game : Holdem
        The game.
    player : str
        The name of the player in logs.
    mucked : str
        Treatment of hands without a showdown: see `MUCKED`.

    Raises
    ------
    PlayError
        `mucked` is not in `MUCKED`.
    """

    def __init__(self, game: Holdem, player: str, mucked: str = SHOWN) -> None:
        if mucked not in MUCKED:
            raise PlayError(f"hands without a showdown cannot be {mucked!r}: use one of {', '.join(MUCKED)}")
        self.game, self.player, self.mucked = game, player, mucked
        self.reader = LogReader(game)
        self.hands = 0  # of the player
        self.left_out: Counter[str] = Counter()  # hands that were not counted, by reason
        self.off_tree = 0.0  # decisions that correspond to no information set

    @abstractmethod
    def model(self) -> OpponentModel:
        """Build the opponent model from all hands counted so far."""

    @abstractmethod
    def _count(self, hands: ObservedHands) -> None:
        """Count the player's decisions in some hands."""

    def add_log(self, text: str, source: str, *, skip: bool = False) -> list[str]:
        """Count the player's actions in the hands of a log.

        Parameters
        ----------
        text : str
            A log in the format of ACPC dealers, or hands in PHH.
        source : str
            The name of the log in error messages.
        skip : bool
            Skip lines and hands that cannot be read. By default, the first of them raises PlayError.

        Returns
        -------
        list of str
            The error of each line, or hand, that was skipped.

        Raises
        ------
        PlayError
            A line, or hand, cannot be read, and `skip` is false.
        """
        if is_phh(text):
            hands, faults = read_phhs(text, self.game)
            parts: Iterable[tuple[HandColumns, list[str]]] = [(self.reader.columns(hands), faults)]
        else:
            lines = text.splitlines()
            parts = (self.reader.read(lines[at : at + LINES], at) for at in range(0, len(lines), LINES))
        wrong: list[str] = []
        for columns, faults in parts:
            if faults and not skip:
                raise PlayError(f"{source}, {faults[0]}; correct the log, or `skip` lines that cannot be read")
            wrong += faults
            self.add(columns)
        return wrong

    def require_hands(self, logs: str, faults: Sequence[str] = ()) -> None:
        """Raise PlayError if no hand of the player was counted.

        `logs` names the logs in the message, which quotes the first of `faults`.
        """
        if self.hands:
            return
        first = "".join(f"; {fault}" for fault in faults[:1])
        names = sorted({name for pair in self.reader.players for name in pair})
        if self.player in names:
            raise PlayError(
                f"no hand of {self.player} in {logs} could be counted (`mucked` is {self.mucked}): give more "
                f"hands{first}"
            )
        said = f"its players are {', '.join(names)}: say as `player` who it is" if names else "it has no hands"
        raise PlayError(f"{self.player} does not play in {logs}; {said}{first}")

    def add(self, hands: HandColumns) -> None:
        """Count the player's actions in hands read from a log.

        Hands of other players are skipped.
        """
        seat_of = np.array(
            [pair.index(self.player) if self.player in pair else -1 for pair in self.reader.players], dtype=np.int64
        )
        seat = seat_of[hands.pair]
        mine = seat >= 0
        self._leave_out(f"{self.player} does not take part", ~mine)
        if self.mucked == LEFT_OUT:
            hidden = mine & self._folded(hands.end)
            self._leave_out("the cards were not shown", hidden)
            mine &= ~hidden
        self.hands += int(np.count_nonzero(mine))
        held = self.game.rules.hole_cards
        cards, seat, end = hands.cards[mine].astype(np.int64), seat[mine], hands.end[mine]
        own, theirs = (
            np.where(who[:, None] == 0, cards[:, :held], cards[:, held : 2 * held]) for who in (seat, 1 - seat)
        )
        known = ObservedHands(end, seat, own, cards[:, 2 * held :], np.ones(len(end)))
        if self.mucked == WEIGHED:
            hidden = self._folded(end)
            for row in np.flatnonzero(hidden).tolist():
                self._count(self._possible(known, row, theirs[row]))
            known = known.select(~hidden)
        self._count(known)

    def _leave_out(self, reason: str, which: BoolArray) -> None:
        if number := int(np.count_nonzero(which)):
            self.left_out[reason] += number

    def _folded(self, end: IntArray) -> BoolArray:
        """Return whether a player folded in each hand, so that no cards were shown."""
        folded: BoolArray = np.array([position.folded is not None for position in self.reader.ends], dtype=np.bool_)
        return folded[end]

    def _possible(self, hands: ObservedHands, row: int, theirs: IntArray) -> ObservedHands:
        """Return all private hands that the player could have held in one hand, with equal weight.

        They share no card with the board and the opponent's hand.
        """
        holes = self.game.deck.holes(self.game.rules.hole_cards).astype(np.int64)
        own = holes[~np.isin(holes, [*hands.board[row], *theirs]).any(axis=1)]
        number = len(own)
        end, seat, board = (
            np.repeat(column[row : row + 1], number, axis=0) for column in (hands.end, hands.seat, hands.board)
        )
        return ObservedHands(end, seat, own, board, np.full(number, 1 / number))

    @property
    def hand_counts(self) -> dict[str, object]:
        """The numbers of counted and skipped hands."""
        return {"hands": self.hands, "mucked": self.mucked, "left_out": dict(self.left_out)}


def _hand_number(cards: IntArray) -> IntArray:
    """Return the index in `Deck.holes` of each hand of one card, or of two cards in ascending order."""
    first = cards[..., 0]
    return first if cards.shape[-1] == 1 else cards[..., 1] * (cards[..., 1] - 1) // 2 + first


class FlatObserver(Observer):
    """Counts a player's actions at the information sets of a small game."""

    def __init__(self, game: Holdem, tree: FlatTree, player: str, mucked: str = SHOWN) -> None:
        super().__init__(game, player, mucked)
        self.tree = tree
        self.counts = np.zeros(int(tree.nodes.infoset_start[-1]))
        self._number = {name: number for number, name in enumerate(tree.infosets)}
        self._known: dict[tuple[int, ...], list[int]] = {}  # slots by end, seat and cards

    def model(self) -> OpponentModel:
        """Build the opponent model from all hands counted so far."""
        return OpponentModel.of_tree(
            self.tree, self.player, self.counts, decisions=float(self.counts.sum()), off_tree=0.0, **self.hand_counts
        )

    def _count(self, hands: ObservedHands) -> None:
        rows, which = np.unique(
            np.column_stack([hands.end, hands.seat, np.sort(hands.own, axis=1), hands.board]),
            axis=0,
            return_inverse=True,
        )
        weights = np.bincount(which.ravel(), weights=hands.weight, minlength=len(rows))
        for row, weight in zip(rows.tolist(), weights.tolist(), strict=True):
            key = tuple(row)
            if key not in self._known:
                self._known[key] = self._slots(*row)
            self.counts[self._known[key]] += weight

    def _slots(self, end: int, seat: int, *cards: int) -> list[int]:
        """Return the slots of the actions that a player took in a hand."""
        game, position = self.game, self.reader.ends[end]
        held = game.rules.hole_cards
        name, board, slots = game.deck.name(cards[:held]), cards[held:], []
        for before, action in game.positions.moves_to(position):
            if before.actor == seat:
                seen: list[int] = []
                for r in range(1, before.round + 1):  # cards of one round have no order in the tree
                    seen += sorted(board[game.rules.board_size(r - 1) : game.rules.board_size(r)])
                where = self._number[f"{name}|{game.board_name(tuple(seen))}|{before.history}"]
                slots.append(int(self.tree.nodes.infoset_start[where]) + self.tree.actions[where].index(action))
        return slots


class VectorObserver(Observer):
    """Counts a player's actions at each public decision, for each board and hand.

    Parameters
    ----------
    game : VectorGame
        The public tree of a game of the hold'em family, with all legal bets.
    player, mucked : str
        See `Observer`.
    """

    def __init__(self, game: VectorGame, player: str, mucked: str = SHOWN) -> None:
        assert isinstance(game.game, Holdem)
        super().__init__(game.game, player, mucked)
        self.vectors = game
        self.counts = np.zeros(game.shape)
        rules, deck = self.game.rules, self.game.deck
        self._boards = [
            board_index(canonical_boards(rules.board_cards[: r + 1], deck), deck) for r in range(rules.rounds)
        ]
        self._decisions = {
            (r, str(position.history)): (row, on_menu(position, game.menu)) for r, row, position in game.decisions()
        }
        self._slots: dict[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}  # [end][seat] round and row

    def model(self) -> OpponentModel:
        """Build the opponent model from all hands counted so far."""
        decisions = float(self.counts.sum())
        return OpponentModel.of_vectors(
            self.vectors, self.player, self.counts, decisions=decisions, off_tree=0.0, **self.hand_counts
        )

    def _count(self, hands: ObservedHands) -> None:
        tree, game = self.vectors.tree, self.game
        renamed = card_permutations(game.deck)
        for end, seat, own, board, weight in zip(*(column.tolist() for column in hands), strict=True):
            known, where, hole = -1, 0, 0
            for r, row in self._rows(end)[seat]:
                if r != known:
                    dealt = np.array(board[: game.rules.board_size(r)], dtype=np.int64)
                    number, turned = find_canonical_board(self._boards[r], dealt)
                    hole = int(_hand_number(np.sort(renamed[turned, own]).astype(np.int64)))
                    known, where = r, int(tree.table_start[r] + number * tree.rows[r])
                self.counts[where + row, hole] += weight

    def _rows(self, end: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the decisions of each seat in hands with one betting history.

        For each decision, there is its round, and the row of the action that was taken among the rows of a board.
        """
        if end not in self._slots:
            found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
            for before, action in self.game.positions.moves_to(self.reader.ends[end]):
                if before.actor >= 0:
                    row, labels = self._decisions[before.round, before.history]
                    found[before.actor].append((before.round, row + labels.index(action)))
            self._slots[end] = found
        return self._slots[end]


class _Decisions(NamedTuple):
    """The actions that a player took in hands with one betting history, as slots of the strategy table.

    The slots are those of bucket 0; the bucket of a hand moves them by a stride.
    """

    base: list[int]  # slot of the action for bucket 0
    stride: list[int]  # slots from one bucket to the next
    round: list[int]
    share: list[float]  # probability of the translations of earlier bets

    def joined(self, more: _Decisions) -> _Decisions:
        """Return these decisions followed by `more`."""
        return _Decisions(
            self.base + more.base, self.stride + more.stride, self.round + more.round, self.share + more.share
        )

    def extend(self, more: _Decisions) -> None:
        """Append other decisions."""
        self.base.extend(more.base)
        self.stride.extend(more.stride)
        self.round.extend(more.round)
        self.share.extend(more.share)


class _Followed(NamedTuple):
    """The nodes that hands with one betting history may have reached, and the decisions of both players on the way."""

    ways: list[tuple[AbstractState, float]]  # with probabilities
    found: tuple[_Decisions, _Decisions]  # [seat]
    lost: tuple[float, float]  # [seat] decisions that the tree lacks


class AbstractObserver(Observer):
    """Counts a player's actions at the information sets of an abstract game.

    Bets with other sizes than the game's are translated.

    Parameters
    ----------
    abstract : AbstractGame
        Game, buckets and menu.
    player, mucked : str
        See `Observer`.
    mapping : Mapping
        Probability with which a bet between two sizes of the menu counts as the smaller one: see `strategy.translate`.
    """

    def __init__(
        self, abstract: AbstractGame, player: str, mucked: str = SHOWN, mapping: Mapping = pseudo_harmonic
    ) -> None:
        super().__init__(abstract.game, player, mucked)
        self.abstract = abstract
        self.counts = np.zeros(abstract.slots)
        self._follower = BlueprintAgent("an observer", Blueprint.of(abstract, np.zeros(0, np.uint8)), mapping=mapping)
        none = _Decisions([], [], [], [])
        self._begin = _Followed([(self._follower.start, 1.0)], (none, none), (0.0, 0.0))
        self._known: dict[tuple[str, str], _Followed] = {}  # by history and action
        self._start: list[int] = [0]  # [end and seat + 1] start of its decisions in the lists
        self._all = _Decisions([], [], [], [])
        self._lost: list[float] = []  # [end and seat] decisions that the tree lacks

    def model(self) -> OpponentModel:
        """Build the opponent model from all hands counted so far."""
        decisions, off = float(self.counts.sum()), self.off_tree
        return OpponentModel.of_abstract(
            self.abstract, self.player, self.counts, decisions=decisions, off_tree=off, **self.hand_counts
        )

    def _count(self, hands: ObservedHands) -> None:
        for position in self.reader.ends[len(self._lost) // 2 :]:
            self._follow(position)
        start, key = np.array(self._start), 2 * hands.end + hands.seat
        self.off_tree += float(np.array(self._lost)[key] @ hands.weight)
        buckets = self._buckets(hands)
        number = start[key + 1] - start[key]
        row = np.repeat(np.arange(len(key)), number)
        which = np.arange(len(row)) - np.repeat(np.cumsum(number) - number - start[key], number)
        base, stride, rounds, share = (np.array(column)[which] for column in self._all)
        slots = base + stride * buckets[row, rounds]
        np.add.at(self.counts, slots, share * hands.weight[row])

    def _buckets(self, hands: ObservedHands) -> IntArray:
        """Return the bucket of each hand of the player in each round whose cards were dealt, [hand, round]."""
        rules = self.game.rules
        found = np.zeros((len(hands.end), rules.rounds), dtype=np.int64)
        hole = _hand_number(np.sort(hands.own, axis=1))
        for r in range(rules.rounds):
            size = rules.board_size(r)
            dealt = hands.board[:, size - 1] != NOT_DEALT if size else np.ones(len(hole), dtype=np.bool_)
            for seat, cards in enumerate(self.abstract.cards.each):
                rows = np.flatnonzero(dealt & (hands.seat == seat))
                buckets = np.empty((len(rows), 1), dtype=np.uint32)
                if len(rows):
                    cards.look_up(r, hands.board[rows, :size], hole[rows, None], buckets)
                found[rows, r] = buckets[:, 0]
        return found

    def _follow(self, position: Betting) -> None:
        """Add the decisions of both seats in hands with one betting history to the lists."""
        at = self._begin
        for before, action in self.game.positions.moves_to(position):
            key = before.history, action
            if key not in self._known:
                if len(self._known) >= KEPT:
                    self._known.clear()
                self._known[key] = self._after(at, before, action)
            at = self._known[key]
        for own in at.found:
            self._all.extend(own)
            self._start.append(len(self._all.base))
        self._lost += at.lost

    def _after(self, at: _Followed, before: Betting, action: str) -> _Followed:
        """Return the nodes that may be reached, and the decisions so far, after one more action."""
        follower, actor = self._follower, before.actor
        nodes, first = follower.blueprint.nodes, follower.blueprint.first
        ways: list[tuple[AbstractState, float]] = []
        more, lost = _Decisions([], [], [], []), 0.0
        for place, share in at.ways:
            options = [] if action == FOLD else follower.after(place, before, action, None)
            ways += [(to, share * part) for to, part in options]
            node = follower.at_turn(place, before).node if actor >= 0 else None
            child = -1 if node is None else int(nodes.first_child[node])
            taken = [(to.node, part) for to, part in options if to.node is not None and nodes.parent[to.node] == node]
            if action == FOLD and node is not None and follower.blueprint.faces_bet(node):
                taken = [(child, 1.0)]
            lost += share * (1 - sum(part for _, part in taken))
            for to, part in taken if node is not None else []:
                more.base.append(int(first[node]) + to - child)
                more.stride.append(int(nodes.children[node]))
                more.round.append(before.round)
                more.share.append(share * part)
        if actor < 0:
            return at._replace(ways=ways)
        found, losses = list(at.found), list(at.lost)
        found[actor] = found[actor].joined(more)
        losses[actor] += lost
        return _Followed(ways, (found[0], found[1]), (losses[0], losses[1]))
