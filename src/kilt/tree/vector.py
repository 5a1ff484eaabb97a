"""Public trees for walks with vectors of hands, and what such walks tell about a strategy.

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

from concurrent.futures import ThreadPoolExecutor
from math import comb

import numpy as np
import numpy.typing as npt

from kilt.cards.boards import hand_permutations
from kilt.cards.deck import FULL, FloatArray
from kilt.cards.equity import hand_list, room_to_rank
from kilt.cards.hands import hand_tables
from kilt.errors import GameError
from kilt.games.bluff import FACES, STAR, Bidding, Bluff
from kilt.games.game import CHANCE, Game
from kilt.games.holdem import Betting, Holdem
from kilt.tree import vector_kernels as kernels
from kilt.tree.betting import Menu
from kilt.tree.public import PublicTree, public_tree
from kilt.tree.vector_kernels import Table, VectorTree
from kilt.tree.walk_kernels import ROUNDING


class VectorGame:
    """A game whose walks treat all hands at once."""

    def __init__(self, game: Game, menu: Menu | None = None, threads: int = 1) -> None:
        if threads < 1:
            raise GameError(f"the number of threads is {threads}: use 1 or more")
        self.game = game
        self.public = public_tree(game, menu)
        self.tree = _arrays(self.public)
        # A game without cards never looks at these.
        cards = (FULL, 2, 5)
        if isinstance(game, Holdem):
            cards = (game.deck, game.rules.hole_cards, sum(game.rules.board_cards))
        deck, hole, board = cards
        self.hands, self.strengths = hand_list(deck, hole), hand_tables(hole + board, deck)
        largest, most = int(np.diff(self.tree.block).max()), int(self.tree.hands.max())
        shape = (len(self.tree.rows), largest, most)
        actions = int(self.tree.children.max())
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._scratch = [
            (np.zeros(shape), np.zeros(shape), np.empty((actions + 2, most)), room_to_rank(*cards))
            for _ in range(threads)
        ]

    def table(self, dtype: npt.DTypeLike = np.float64) -> Table:
        """An empty table over (board, row) × hand: the uniform strategy."""
        return np.zeros((int(self.tree.table_start[-1]), int(self.tree.hands.max())), dtype=dtype)

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
        wanted = int(self.tree.table_start[-1]), int(self.tree.hands.max())
        for table in tables:
            if table.shape != wanted:
                raise GameError(f"the table has shape {table.shape}; {self.game.name} needs {wanted}: see `table`")

    def walk(self, player: int, task: int, strategy: Table) -> float:
        """One walk; what the player wins in chips per game."""
        return self._walk(player, task, strategy, strategy, strategy, np.ones(3))

    def learn(self, multipliers: FloatArray, regret: Table, total: Table) -> None:
        """Iterations of regret matching, one for each row of `multipliers`, the players in turn."""
        self._check(regret, total)
        if self.threads == 1:  # small games spend more time between walks than in them: stay in the kernel
            rules = (self.tree, self.hands, self.strengths)
            reach, value, strategy, ranking = self._scratch[0]
            result = np.zeros(len(self.tree.prior[0]))
            kernels.learn(*rules, multipliers, regret, total, reach, value, strategy, ranking, result)
            return
        for row in multipliers:
            for player in (0, 1):
                self._walk(player, kernels.LEARN, regret, regret, total, row)

    def _walk(
        self, player: int, task: int, strategy: Table, regret: Table, total: Table, multiplier: FloatArray
    ) -> float:
        self._check(strategy, regret, total)
        result = np.zeros(len(self.tree.prior[0]))

        def share(number: int) -> None:
            fixed = (self.tree, self.hands, self.strengths, player, task, number, self.threads)
            kernels.walk(*fixed, strategy, regret, total, multiplier, *self._scratch[number], result)

        if self.threads == 1:
            share(0)
        else:
            list(self._pool.map(share, range(self.threads)))
            _, value, shares, _ = self._scratch[0]
            reveals = np.flatnonzero(self.tree.kind[: self.tree.block[1]] == kernels.REVEAL)
            for _, other, _, _ in self._scratch[1:]:
                value[0, reveals] += other[0, reveals]
            kernels.finish(self.tree, player, task, strategy, regret, multiplier, shares, value[0], result)
        return float(self.tree.norm * (self.tree.prior[player] @ result))

    def expected_value(self, strategy: Table) -> float:
        """What player 0 wins when both follow a strategy, in chips per game."""
        return self.walk(0, kernels.FOLLOW, strategy)

    def response_values(self, strategy: Table) -> tuple[float, float]:
        """What a best response wins in each seat, in chips per game."""
        return self.walk(0, kernels.RESPOND, strategy), self.walk(1, kernels.RESPOND, strategy)

    def exploitability(self, strategy: Table) -> float:
        """What best responses win on average over the seats, in chips per game."""
        return max(sum(self.response_values(strategy)) / 2, 0.0)  # rounding may leave −1e-17


def _arrays(public: PublicTree) -> VectorTree:
    nodes, boards = public.betting.nodes, public.boards
    game = public.game
    count, rounds = len(nodes.actor), len(boards)
    deciding = nodes.actor >= 0
    kind = np.full(count, kernels.DECISION, dtype=np.int8)
    kind[nodes.actor == CHANCE] = kernels.REVEAL
    row, rows = np.zeros(count, dtype=np.int32), np.zeros(rounds, dtype=np.int32)
    for r in range(rounds):
        here = np.flatnonzero(deciding & (nodes.round == r))
        ends = np.cumsum(nodes.children[here])
        row[here] = ends - nodes.children[here]
        rows[r] = ends[-1] if len(ends) else 0
    opens = np.full(count, -1, dtype=np.int32)
    revealing = np.flatnonzero(nodes.actor == CHANCE)
    opens[revealing] = np.searchsorted(nodes.block, nodes.first_child[revealing])

    stake, face = np.zeros(count), np.zeros(count, dtype=np.int32)
    called: list[FloatArray] = []
    for node in np.flatnonzero(nodes.leaf >= 0).tolist():
        leaf = public.betting.leaves[nodes.leaf[node]]
        if isinstance(leaf, Betting):
            kind[node] = kernels.SHOWDOWN if leaf.folded is None else kernels.FOLD
            stake[node] = leaf.stake if leaf.folded != 0 else -leaf.stake
        elif isinstance(leaf, Bidding) and isinstance(game, Bluff):
            kind[node] = kernels.CALL_BLUFF
            face[node] = leaf.bids[-1] % len(FACES)
            row[node] = len(called)
            called.append(_called(game, leaf))
        else:
            raise GameError(f"{game.name} has leaves whose payoffs no vector walk knows: use a flat tree")

    sizes = [len(b.weight) for b in boards]
    board_start = np.concatenate([[0], np.cumsum(sizes)])
    widest = max(b.cards.shape[1] for b in boards)
    board = np.zeros((int(board_start[-1]), widest), dtype=np.int8)
    first_board = np.full(int(board_start[-1]) + 1, int(board_start[-1]), dtype=np.int64)
    for r, b in enumerate(boards):
        board[board_start[r] : board_start[r + 1], : b.cards.shape[1]] = b.cards
        if r + 1 < rounds:
            first_board[board_start[r] : board_start[r + 1]] = board_start[r + 1] + boards[r + 1].first_child[:-1]
    prior, norm, moved, chance = _deal(game, rounds)
    return VectorTree(
        kind=kind,
        actor=nodes.actor,
        first_child=nodes.first_child,
        children=nodes.children,
        row=row,
        opens=opens,
        stake=stake,
        block=nodes.block,
        block_round=nodes.round[nodes.block[:-1]].astype(np.int32),
        rows=rows,
        table_start=np.concatenate([[0], np.cumsum(np.array(sizes) * rows)]),
        board_start=board_start,
        board=board,
        board_size=np.array([b.cards.shape[1] for b in boards], dtype=np.int32),
        first_board=first_board,
        weight=np.concatenate([b.weight for b in boards]),
        symmetry=np.concatenate([b.symmetry for b in boards]),
        moved=moved,
        chance=chance,
        poker=isinstance(game, Holdem),
        hands=np.array([len(game.hands(0)), len(game.hands(1))], dtype=np.int32),
        prior=prior,
        norm=norm,
        noise=ROUNDING * prior[0].sum() * max(1.0, *np.abs(stake)),
        face=face,
        matching=_matching(game),
        called=np.stack(called) if called else np.zeros((1, 1, 1)),
    )


def _deal(game: Game, rounds: int) -> tuple[FloatArray, float, npt.NDArray[np.int32], FloatArray]:
    """Prior reach, norm, hands under suit permutations, and the probability of a board by round."""
    chance = np.ones(rounds)
    if isinstance(game, Holdem):
        hole, deck = game.rules.hole_cards, game.deck
        known = 2 * hole
        for r, count in enumerate(game.rules.board_cards):
            chance[r] = 1 / comb(deck.size - known, count)
            known += count
        hands = comb(deck.size, hole)
        return np.ones((2, hands)), 1 / (hands * comb(deck.size - hole, hole)), hand_permutations(deck, hole), chance
    deals = game.deals()
    prior = np.zeros((2, max(deals.shape)))
    prior[0, : deals.shape[0]], prior[1, : deals.shape[1]] = deals.sum(axis=1), deals.sum(axis=0)
    if not np.allclose(np.outer(deals.sum(axis=1), deals.sum(axis=0)), deals):
        raise GameError(f"the hands of {game.name} are not dealt independently: use a flat tree")
    return prior, 1.0, np.arange(max(deals.shape), dtype=np.int32)[None], chance


def _matching(game: Game) -> npt.NDArray[np.int8]:
    """[player, face, hand] how many dice show the face or a star."""
    most = max(len(game.hands(0)), len(game.hands(1))) if isinstance(game, Bluff) else 0
    matching = np.zeros((2, len(FACES), most), dtype=np.int8)
    if isinstance(game, Bluff):
        for player in (0, 1):
            for hand, roll in enumerate(game.hands(player)):
                for face, name in enumerate(FACES):
                    matching[player, face, hand] = sum(die in (name, FACES[STAR]) for die in roll)
    return matching


def _called(game: Bluff, leaf: Bidding) -> FloatArray:
    """[matches of player 0, matches of player 1] what player 0 wins where the last bid is called."""
    quantity = leaf.bids[-1] // len(FACES)
    bidder = (len(leaf.bids) - 1) % 2
    table = np.zeros((max(game.dice) + 1,) * 2)
    for mine in range(game.dice[0] + 1):
        for theirs in range(game.dice[1] + 1):
            winner = bidder if mine + theirs > quantity else 1 - bidder
            table[mine, theirs] = game.worth(winner)
    return table
