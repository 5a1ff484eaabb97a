"""Games for walks with vectors of hands, and what such walks tell about a strategy.

A strategy here is a table of non-negative numbers over (board, row) × hand: a row for each action of each decision of a
round. Its entries at a decision, scaled to add up to 1, are the probabilities; so regrets and sums of strategies can be
walked as they are.

A walk goes over one board of those that differ only by suits, and takes it that both players play them alike. A table
must not tell suits apart that the board does not: those of solvers never do, and `symmetrise` makes one so.

>>> from kilt.games import load_game
>>> leduc = VectorGame(load_game("leduc"))
>>> round(2 * leduc.exploitability(leduc.table()), 7)  # NashConv of the uniform profile
4.7472222
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.cards.deck import FULL
from kilt.cards.equity import hand_list, room_to_rank
from kilt.cards.equity_kernels import Ranking
from kilt.cards.hands import hand_tables
from kilt.errors import GameError
from kilt.games.game import CHANCE, Game, Position
from kilt.games.holdem import Holdem
from kilt.lanes import LANES
from kilt.tree import vector_kernels as kernels
from kilt.tree.betting import Menu, on_menu
from kilt.tree.draw_kernels import draw_one
from kilt.tree.vector_arrays import (
    ANSWER,
    DECISION,
    FOLLOW,
    LEARN,
    RESPOND,
    REVEAL,
    Draw,
    Table,
    TableLayout,
    Workspace,
)
from kilt.tree.vector_tree import vector_tree

UNDISCOUNTED = np.array([1.0, 1.0, 1.0, 0.0])


class Scheme(NamedTuple):
    """What is drawn for a walk: boards and, with them, the hand of the player who learns or that of the opponent."""

    boards: bool
    mine: bool = False
    theirs: bool = False
    rounds: int | None = None  # after the first whose board is drawn; later ones are walked with all boards


FULL_WIDTH = Scheme(boards=False)


class Walk(NamedTuple):
    """What a walk does. With regrets it learns; with an average, the opponent's strategy is added to that.

    Tables are over (board, row) × hand unless a view says how a player sees the cards. What such a player learns is
    only added up: in tables for this walk alone, one for each of the walk's parts.
    """

    player: int
    tasks: tuple[int, ...]  # in each round, or in all of them: FOLLOW, RESPOND, LEARN or ANSWER
    own: Table  # the player's strategy
    theirs: Table
    regret: Table | tuple[Table, ...] | None = None
    average: Table | tuple[Table, ...] | None = None
    multiplier: FloatArray = UNDISCOUNTED  # of regrets above 0, below 0, and the average; whether to predict
    own_view: TableLayout | None = None
    their_view: TableLayout | None = None


class VectorGame:
    """A game whose walks treat all hands at once.

    With `by_board` false, tables are over row × hand: strategies that look at no board. They are small in any game.
    """

    def __init__(self, game: Game, menu: Menu | None = None, threads: int = 1, *, by_board: bool = True) -> None:
        if threads < 1:
            raise GameError(f"the number of threads is {threads}: use 1 or more")
        self.game, self.menu = game, menu
        self.tree = vector_tree(game, menu, by_board=by_board)
        # A game without cards never looks at these.
        cards = (FULL, 2, 5)
        if isinstance(game, Holdem):
            cards = (game.deck, game.rules.hole_cards, sum(game.rules.board_cards))
        deck, hole, board = cards
        self.cards = hand_list(deck, hole), hand_tables(hole + board, deck)
        self.plain = TableLayout(self.tree.rows, self.tree.table_start, np.empty((0, 0), dtype=np.int32))
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._ranking = partial(room_to_rank, *cards)
        self._lock = Lock()
        self._rooms: dict[str, SimpleQueue[Workspace]] = {}

    @contextmanager
    def _room(self, dtype: npt.DTypeLike) -> Iterator[Workspace]:
        """Scratch for a walk, with numbers of a type: there is one for each thread."""
        kind = np.dtype(dtype).name
        with self._lock:
            if kind not in self._rooms:
                self._rooms[kind] = SimpleQueue()
                for _ in range(self.threads):
                    self._rooms[kind].put(self._new_room(dtype, self._ranking()))
        room = self._rooms[kind].get()
        try:
            yield room
        finally:
            self._rooms[kind].put(room)

    def _new_room(self, dtype: npt.DTypeLike, ranking: Ranking) -> Workspace:
        places, hands = int(self.tree.nodes.place.max()) + 1, self.shape[1]
        return Workspace(
            reach=np.zeros((places, hands), dtype),
            source=np.zeros(places, dtype=np.int64),
            alive=np.ones(places, dtype=np.bool_),
            value=np.zeros((places, hands), dtype),
            shares=np.empty((2, hands), dtype),
            seen=np.zeros((int(self.tree.nodes.children.max()), hands), dtype),
            order=np.empty(hands, dtype=np.uint16),
            ranking=ranking,
            lane_source=np.zeros(LANES, dtype=np.int64),
            lane_wanted=np.zeros(LANES, dtype=np.int64),
            lanes_ready=np.zeros(1, dtype=np.int64),
            lane_reach=np.zeros(LANES * hands, dtype),
            lane_result=np.zeros(LANES * hands, dtype),
            lane_whole=np.zeros(LANES * hands, dtype),
            lane_cards=np.zeros(LANES * len(ranking.by_card), dtype),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """That of tables: (board, row) × hand."""
        return int(self.tree.table_start[-1]), self.tree.prior.shape[1]

    def table(self, dtype: npt.DTypeLike = np.float64) -> Table:
        """An empty table: the uniform strategy."""
        return np.zeros(self.shape, dtype=dtype)

    def decisions(self) -> Iterator[tuple[int, int, Position]]:
        """Every decision: its round, the first of its rows among those of a board, and the position."""
        tree, nodes = self.tree, self.tree.nodes
        entry_of = {node: entry for entry, node in enumerate(tree.entry_node.tolist())}
        below = [(0, 0, 0, self.game.start())]
        while below:
            node, entry, r, position = below.pop()
            if nodes.kind[node] == REVEAL:
                entry, r = entry_of[node], r + 1
                node = int(nodes.block[tree.entry_block[entry]])
                if position.actor == CHANCE:
                    position = position.after(*position.actions())
            if nodes.kind[node] == DECISION:
                yield r, int(tree.entry_row[entry] + nodes.row[node]), position
                child, actions = int(nodes.first_child[node]), on_menu(position, self.menu)
                below += [(child + a, entry, r, position.after(act)) for a, act in enumerate(actions)]

    def symmetrise(self, table: Table) -> Table:
        """A table in which hands that differ only by suits which their board does not tell apart share their mean."""
        self._check(table)
        tree, even = self.tree, np.empty_like(table)
        for r, rows in enumerate(tree.rows):
            for board in range(tree.board_start[r], tree.board_start[r + 1]):
                first = tree.table_start[r] + (board - tree.board_start[r]) * rows
                alike = [p for p in range(len(tree.moved)) if tree.symmetry[board] >> p & 1]
                part = table[first : first + rows]
                even[first : first + rows] = np.mean([part[:, tree.moved[p]] for p in alike], axis=0)
        return even

    def _check(self, *tables: Table) -> None:
        for table in tables:
            if table.shape != self.shape:
                raise GameError(f"the table has shape {table.shape}; {self.game.name} needs {self.shape}: see `table`")

    def everything(self, player: int) -> Draw:
        """All boards and all hands: what a player's walk looks at unless something is drawn."""
        rounds = len(self.tree.rows)
        mine, theirs = (np.tile(np.array([0, self.tree.hands[who]]), (rounds, 1)) for who in (player, 1 - player))
        return Draw(np.full(rounds, -1), np.zeros(rounds, np.int64), mine, theirs, np.zeros(1), np.zeros(rounds))

    def walk(self, walk: Walk, scheme: Scheme = FULL_WIDTH, seed: int = 0, number: int = 0) -> float:
        """One walk; what the player wins in chips per game. What is drawn depends on the seed and the walk's number."""
        if self.threads == 1 or len(self.tree.rows) == 1 or scheme.boards:
            draw = self.everything(walk.player)
            if scheme.boards:
                key = np.uint64(seed % 2**64), np.uint64(number)
                draw_one(self.tree, *self.cards, walk.player, scheme.mine, scheme.theirs, *key, draw)
                if scheme.rounds is not None:
                    draw.board[scheme.rounds + 1 :] = -1
            return self._worth(walk, 0, 1, draw)
        parts = self._pool.map(lambda number: self.part(walk, number, self.threads), range(self.threads))
        return self.conclude(walk, np.sum(list(parts), axis=0))

    def both_seats(self, work: Callable[[int], None], scheme: Scheme) -> None:
        """Do work of each seat that has nothing to do with the other's: side by side, unless walks have all threads."""
        if self.threads > 1 and scheme.boards:
            list(self._pool.map(work, (0, 1)))
        else:
            work(0)
            work(1)

    def part(self, walk: Walk, number: int, of: int) -> FloatArray:
        """One of 2 or more parts of a walk: [chance node of the first round, hand] values; those of all parts add up.

        Parts may run side by side: as many at a time as the game has threads.
        """
        return self._part(walk, number, of, self.everything(walk.player))[0]

    def conclude(self, walk: Walk, values: FloatArray) -> float:
        """The end of a walk in parts, from their sum; what the player wins in chips per game."""
        return self._worth(walk, 0, 0, self.everything(walk.player), values)

    def _worth(self, walk: Walk, number: int, of: int, draw: Draw, values: FloatArray | None = None) -> float:
        result = self._part(walk, number, of, draw, values)[1]
        return float(self.tree.norm * (self.tree.prior[walk.player] @ result))

    def _part(
        self, walk: Walk, number: int, of: int, draw: Draw, values: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """A walk, or a part of it: what the chance nodes of the first round are worth, and the whole."""
        regret, average = (_of_part(table, number, walk.own) for table in (walk.regret, walk.average))
        own_view, their_view = walk.own_view or self.plain, walk.their_view or self.plain
        self._check(*([] if walk.own_view else [walk.own]), *([] if walk.their_view else [walk.theirs]))
        exact = walk.regret is None or np.float32 not in (walk.own.dtype, walk.theirs.dtype)
        sums = np.zeros((len(self.tree.entry_node), self.shape[1])) if values is None else values
        result = np.zeros(self.shape[1])
        with self._room(np.float64 if exact else np.float32) as room:
            kernels.walk(
                self.tree,
                *self.cards,
                walk.player,
                np.array(walk.tasks if len(walk.tasks) > 1 else walk.tasks * len(self.tree.rows)),
                walk.average is not None and of > 0,  # once
                number,
                of,
                draw,
                own_view,
                their_view,
                walk.own,
                walk.theirs,
                regret,
                average,
                walk.multiplier,
                room,
                sums,
                result,
            )
        return sums, result

    def learn(
        self,
        multipliers: FloatArray,
        strategy: Table,
        regret: Table,
        average: Table | None = None,
        scheme: Scheme = FULL_WIDTH,
        seed: int = 0,
        walks: int = 0,
    ) -> None:
        """Iterations of regret matching, one for each row of `multipliers`, the players in turn.

        Without a table for it no average is kept.
        """
        self._check(strategy, regret, regret if average is None else average)
        if self.threads > 1 and scheme == FULL_WIDTH:
            for row in multipliers:
                for player in (0, 1):
                    self.walk(Walk(player, (LEARN,), strategy, strategy, regret, average, row))
            return
        # Small games spend more time between walks than in them: stay in the kernel.
        with self._room(regret.dtype) as room:
            kernels.learn(
                self.tree,
                *self.cards,
                multipliers,
                np.full(len(self.tree.rows), LEARN),
                average is not None,
                self.everything(0),
                scheme.boards,
                scheme.mine,
                scheme.theirs,
                np.uint64(seed % 2**64),
                walks,
                self.plain,
                strategy,
                regret,
                regret if average is None else average,
                room,
                np.zeros((1, 1)),
                np.zeros(self.shape[1]),
            )

    def expected_value(self, strategy: Table) -> float:
        """What player 0 wins when both follow a strategy, in chips per game."""
        return self.walk(Walk(0, (FOLLOW,), strategy, strategy))

    def response_values(self, strategy: Table) -> tuple[float, float]:
        """What a best response wins in each seat, in chips per game."""
        first, second = (self.walk(Walk(player, (RESPOND,), strategy, strategy)) for player in (0, 1))
        return first, second

    def responses(self, strategy: Table) -> Table:
        """A strategy that takes a best response in each seat: 1 for an action that is best, 0 for the others."""
        response = strategy.copy()
        for player in (0, 1):
            self.walk(Walk(player, (ANSWER,), response, strategy))
        return response

    def exploitability(self, strategy: Table) -> float:
        """What best responses win on average over the seats, in chips per game."""
        return max(sum(self.response_values(strategy)) / 2, 0.0)  # rounding may leave −1e-17


class Walks(NamedTuple):
    """The walks with one strategy, which may be taken in parts, here and elsewhere."""

    game: VectorGame
    of: Callable[[int, int], Walk]  # a player and a task

    def part(self, player: int, task: int, number: int, of: int) -> FloatArray:
        """See `VectorGame.part`."""
        return self.game.part(self.of(player, task), number, of)

    def conclude(self, player: int, task: int, parts: Sequence[FloatArray]) -> float:
        """See `VectorGame.conclude`."""
        return self.game.conclude(self.of(player, task), np.sum(parts, axis=0))


def _of_part(tables: Table | tuple[Table, ...] | None, number: int, otherwise: Table) -> Table:
    """The table that a part of a walk writes to."""
    if tables is None:
        return otherwise
    return tables[number] if isinstance(tables, tuple) else tables
