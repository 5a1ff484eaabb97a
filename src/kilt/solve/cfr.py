"""CFR over the public tree with vectors of hands [Johanson16 §3.3].

One walk passes the reach of all of the opponent's hands down the public tree, and the values of all of the player's
hands up: at a leaf every hand meets every other in linear time. On its way it learns:

    at each public node, board by board
        down   reach(child) = reach(node) · σ(action), with σ from regret matching, at the opponent's nodes
               average     += reach(child): the opponent's strategy, weighted by the opponent's own reach
        leaf   value(hand)  = Σ over the opponent's hands of reach · payoff
        up     value(node)  = Σ σ(action) · value(child) at the player's nodes, Σ value(child) at the opponent's
               regret      += value(child) − value(node)

Players learn in turn: that is an iteration. What becomes of old regrets and of the average is a row of `variants`.

What else there is to choose are values of four options, which go together in any way.

==========  ========================================================================================================
`variant`   CFR, CFR+, linear, discounted or predictive: see `variants`
`game`      all hands, or a card abstraction of each player [Johanson16 chapter 5]: in a walk the strategy of a bucket
            is that of all its hands, and what its hands regret is added up over all boards
`scheme`    the boards and hands that a walk covers: all of them, or drawn (Johanson, Bard, Lanctot, Gibson and
            Bowling 2012; [Johanson16 algorithm 1]). Public chance sampling ``pcs`` draws boards; ``opcs`` the
            opponent's hand too, ``spcs`` the own hand, ``cs`` both
`opponent`  ``abstract``: one with the same view of the cards, the other player of self-play. ``real``: one who learns
            too, and sees all cards. ``response``: a best response, as in CFR-BR [Johanson16 chapter 4], which sees all
            cards; with a `trunk`, a hybrid that learns in the first rounds and responds after them [Johanson16 §4.3]
==========  ========================================================================================================

>>> from kilt.games import load_game
>>> from kilt.tree.vector import VectorGame
>>> solver = VectorCfr(VectorGame(load_game("kuhn")))
>>> solver.step(1000)
>>> round(18 * solver.game.expected_value(solver.average()), 3)
-1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.errors import GameError
from kilt.jit import kernel
from kilt.solve.abstract import BucketedGame
from kilt.solve.counter import Restriction
from kilt.solve.learning_kernels import (
    NO_CHOICE,
    PlayerTables,
    RootChoice,
    add_average,
    add_regrets,
    begin_game,
    blend,
    conclude,
    learn_root,
    restrict,
)
from kilt.solve.problem import SINGLE
from kilt.solve.solver import TableState
from kilt.solve.variants import Variant, discounts, variant_named
from kilt.strategy.model import DecisionLayout
from kilt.tree.apart import ArrangedTables
from kilt.tree.betting import on_menu
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.leaf_kernels import values_of_leaves
from kilt.tree.rule import Discount
from kilt.tree.vector import FULL_WIDTH, CompiledWalk, Scheme, VectorGame
from kilt.tree.vector_arrays import (
    ANSWER,
    FOLLOW,
    Policy,
    Scope,
    Table,
    TableLayout,
    VectorTree,
    Workspace,
)
from kilt.tree.vector_kernels import arrive, first_row, next_visit, pass_up, pull_values, push_reach, reached

SCHEMES = {
    "cs": Scheme(boards=True, mine=True, theirs=True),
    "opcs": Scheme(boards=True, theirs=True),
    "spcs": Scheme(boards=True, mine=True),
    "pcs": Scheme(boards=True),
}
OPPONENTS = ("abstract", "real", "response")


@kernel
def walk(
    tree: VectorTree,
    player: int,
    tasks: IntArray,
    own: PlayerTables,
    theirs: PlayerTables,
    discount: Discount,
    scope: Scope,
    work: Workspace,
    sums: FloatArray,
    result: FloatArray,
) -> None:
    """One walk of CFR: `player` learns against the opponent's strategy, which is averaged.

    Where `tasks` [round] says ANSWER in place of FOLLOW, the player does not learn but takes a best response there.
    """
    nodes, vectors, order = tree.nodes, work.vectors, work.ranking.order
    policy, coin = Policy(own.layout, own.strategy), theirs.coin
    at_leaves = vectors.blended if coin > 0 else vectors.reach
    work.board[0] = 0
    visit = arrive(tree, scope, 0, work, own.layout.apart)
    while visit.depth >= 0:
        averaging = theirs.averaged and (scope.parts <= 1 or visit.depth >= scope.trunk)  # once, if there are parts
        task = tasks[visit.depth]
        for entry in range(tree.entry_start[visit.depth], tree.entry_start[visit.depth + 1]):
            block, row, comes = tree.entry_block[entry], first_row(tree, theirs.layout, visit, entry), True
            for second in range(2 if coin > 0 else 1):  # the coin of an opponent may choose another strategy
                reach, table = vectors.second if second else vectors.reach, theirs.fixed if second else theirs.strategy
                comes = reached(tree, player, scope, visit, entry, order, vectors, reach)
                if comes and visit.arriving:
                    their_policy = Policy(theirs.layout, table)
                    push_reach(nodes, block, row, player, scope, visit, their_policy, False, vectors, reach)
            if not comes:
                continue
            if visit.arriving:
                if averaging:
                    add_average(nodes, block, row, player, scope, visit, theirs, discount, vectors)
                if coin > 0:
                    blend(nodes, block, player, scope, visit, coin, vectors.reach, vectors.second, vectors.blended)
                values_of_leaves(tree, block, player, scope, visit, work, at_leaves)
            if visit.leaving:
                row = first_row(tree, own.layout, visit, entry)
                pull_values(nodes, tree.noise, block, row, player, task, scope, visit, policy, vectors)
                pass_up(tree, scope, visit, entry, work.ranking, vectors.value, result)
                if task == FOLLOW:
                    add_regrets(nodes, tree.noise, block, row, player, scope, visit, own, discount, vectors)
        visit = next_visit(tree, player, scope, work, sums, visit)


@kernel
def iterate(
    tree: VectorTree,
    turns: IntArray,
    tasks: IntArray,
    tables: tuple[PlayerTables, PlayerTables, PlayerTables],
    root: RootChoice,
    rows: FloatArray,
    predictive: float,
    sampled: tuple[bool, bool, bool],
    rounds: int,
    seed: np.uint64,
    numbers: tuple[int, int],
    whole: bool,
    scope: Scope,
    work: Workspace,
    sums: FloatArray,
    result: FloatArray,
) -> None:
    """An iteration, which is a walk for each of `turns` [turn, field of `Turn`], for each of the `rows` of discounts.

    Small games spend more time between walks than in them: this stays in compiled code. `numbers` are that of the first
    iteration's first walk, and from one iteration to the next. Unless walks are done here as a `whole`, the caller
    draws what they cover before and concludes them after.
    """
    boards, mine, theirs = sampled
    first, stride = numbers
    for t in range(len(rows)):
        discount = Discount(rows[t, 0], rows[t, 1], rows[t, 2], rows[t, 3], rows[t, 4], predictive)
        for turn in range(len(turns)):
            player, own, other, task, offset = turns[turn]
            if whole and boards:
                number = np.uint64(first + stride * t + offset)
                draw_scope(tree, player, mine, theirs, rounds, seed, number, scope)
            elif whole:
                for r in range(tasks.shape[1]):
                    scope.mine[r, 1], scope.theirs[r, 1] = tree.hands[player], tree.hands[1 - player]
            walk(tree, player, tasks[task], tables[own], tables[other], discount, scope, work, sums, result)
            if whole:
                conclude(tables[own], tables[other], tree.noise, discount, scope)
                restrict(tables[own])
                if player == root.player:
                    learn_root(root, result, discount, tree.prior)


class Turn(NamedTuple):
    """A walk of an iteration: who learns, from which table against which, in what way, and what is drawn for it."""

    player: int
    own: int  # tables: 0 and 1 are the players', 2 is that of an opponent who sees all cards
    theirs: int
    task: int  # 0: learn in all rounds, 1: what the opponent does
    offset: int  # its number, from that of the iteration's first walk


SELF_PLAY = Turn(0, 0, 1, 0, 0), Turn(1, 1, 0, 0, 1)


def learning_walk(
    tree: VectorTree, player: int, tasks: IntArray, own: PlayerTables, theirs: PlayerTables, discount: Discount
) -> CompiledWalk:
    """A `walk` that `VectorGame.run` takes, in parts.

    It is an `iterate` of one turn, so that one kernel is compiled for games of all sizes, unless tables are of two
    types, where an iteration cannot choose among them.
    """
    if own.regret.dtype != theirs.regret.dtype:
        return partial(walk, tree, player, tasks, own, theirs, discount)
    turns, rows = np.array([Turn(player, 0, 1, 0, 0)]), np.array([discount[:-1]])
    drawn = (False, False, False), 0, np.uint64(0), (0, 0)
    tables = own, theirs, theirs
    return partial(iterate, tree, turns, tasks[None], tables, NO_CHOICE, rows, discount.predictive, *drawn, False)


class _Opponent(NamedTuple):
    """An opponent who sees all cards: what it does in each round, on which boards, and the layout of its table."""

    tasks: IntArray  # [round] FOLLOW to learn, ANSWER to respond
    scheme: Scheme
    layout: TableLayout


def _hybrid(game: VectorGame, trunk: int) -> _Opponent:
    """The opponent of CFR-BR, who learns in the first `trunk` rounds and responds in those after [Johanson16 §4.3].

    The boards that lead out of the trunk are drawn, so that an iteration needs the responses on one of them alone.
    Where the last round is all there is after it, these are all that is kept. A trunk of no rounds is a best response
    everywhere, with all boards.
    """
    tree, rounds, identity = game.tree, len(game.tree.rows), game.layouts[0]
    if not 0 <= trunk < rounds:
        raise GameError(f"the trunk is {trunk} rounds; {game.game.name} has {rounds}: give 0 to {rounds - 1}")
    tasks = np.repeat([FOLLOW, ANSWER], [trunk, rounds - trunk])
    if not trunk:
        return _Opponent(tasks, FULL_WIDTH, identity)
    rows, start = tree.rows.copy(), tree.table_start.copy()
    if trunk == rounds - 1:
        start[-1], rows[-1] = start[-2] + rows[-1], 0
    return _Opponent(
        tasks, Scheme(boards=True, rounds=trunk), TableLayout(rows, start, identity.bucket, identity.given)
    )


def _decisions(game: VectorGame | BucketedGame, player: int) -> IntArray:
    """[decision, 2] the first row and the number of actions of a player's decisions, in tables of a game."""
    if isinstance(game, BucketedGame):
        starts, vectors = game.layouts[0].start, game.game
        found = [
            (int(starts[r]) + row, len(on_menu(position, vectors.menu)))
            for r, row, position in vectors.decisions()
            if position.actor == player
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 2)
    layout = DecisionLayout.of_vectors(game)
    every = np.stack([layout.start[:-1], layout.actions], axis=1).astype(np.int64)
    return np.ascontiguousarray(every[layout.actor == player])


class VectorCfr(TableState):
    """CFR on a public tree, with any variant, sampling scheme, opponent and card abstraction.

    Parameters
    ----------
    game : VectorGame or BucketedGame
        The game itself, with tables over (board, row) × hand, or with a card abstraction for each player, and tables
        over row × bucket.
    variant : str or Variant
        The name of a row of `variants.VARIANTS`, or a row of one's own.
    dtype : data type
        Of the tables.
    scheme : str or Scheme
        What is drawn for a walk: a name of `SCHEMES`. The opponent ``response`` draws boards as its trunk needs them.
    opponent : str
        One of `OPPONENTS`.
    trunk : int
        Number of rounds in which the opponent ``response`` learns.
    seed : int
        What is drawn depends on it and on the number of iterations alone.
    averaging : bool
        Where false, the current strategy stands for the average, which takes memory and time: with CFR+ it converges
        by itself, if not by proof [Johanson16 chapter 9].
    root : RootChoice, optional
        What a player decides before the game begins: for subgames that are solved anew, see `resolve`. With the
        opponent ``abstract`` and all boards.
    restriction : Restriction, optional
        How one player is held to a strategy, a table like the game's: see `counter`. With the opponent ``abstract`` and
        a variant that does not predict.
    """

    def __init__(
        self,
        game: VectorGame | BucketedGame,
        variant: str | Variant = "cfr+",
        dtype: npt.DTypeLike = np.float64,
        *,
        scheme: str | Scheme = FULL_WIDTH,
        opponent: str = "abstract",
        trunk: int = 0,
        seed: int = 0,
        averaging: bool = True,
        root: RootChoice | None = None,
        restriction: Restriction | None = None,
    ) -> None:
        for what, name, known in (
            ("sampling scheme", scheme, SCHEMES),
            ("opponent", opponent, OPPONENTS),
        ):
            if isinstance(name, str) and name not in known:
                raise GameError(f"unknown {what} {name!r}: use one of {', '.join(known)}")
        self.game = game
        self.variant, self.opponent, self.averaging = variant_named(variant), opponent, averaging
        self.iterations = 0
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self._vectors = game.game if isinstance(game, BucketedGame) else game
        self._tree, self._root = self._vectors.tree, root or NO_CHOICE
        if root is not None:
            self._tree = self._tree._replace(prior=self._tree.prior.copy())
            begin_game(root, self._tree.prior)
        self.root_regret = self._root.regret
        learn = np.full(len(self._tree.rows), FOLLOW)
        against = (
            _hybrid(self._vectors, trunk)
            if opponent == "response"
            else _Opponent(learn, SCHEMES[scheme] if isinstance(scheme, str) else scheme, self._vectors.layouts[0])
        )
        self.scheme, self._tasks = against.scheme, np.array([learn, against.tasks])

        predictive = self.variant.predictive > 0
        self._regret = game.table(dtype)
        # What the next strategy is in proportion to: a table of its own only where it is not the regrets.
        self._next = game.table(dtype) if predictive else self._regret
        self._total = game.table(dtype) if averaging else self._next
        apart = (
            isinstance(game, VectorGame)
            and ArrangedTables.possible(game)
            and self.scheme == FULL_WIDTH
            and opponent == "abstract"
            and restriction is None
        )
        tables = (self._regret, self._next, self._total) if apart else ()
        self._arranged = ArrangedTables(self._vectors, tables)
        parts = 1 if self.scheme.boards else self._vectors.threads
        rows, sums = (np.empty(0, np.int64),) * 2, np.zeros((0, 0, 0), self._regret.dtype)
        if isinstance(game, BucketedGame):
            # A walk adds up regrets of the player and the average of the opponent, who have rows of their own.
            rows, sums = game.rows, np.zeros((parts, *self._regret.shape), self._regret.dtype)
        if restriction and (opponent != "abstract" or predictive):
            raise GameError("a restricted opponent learns beside the player, and predicts nothing: use cfr or cfr+")
        first, second = (
            PlayerTables(layout, self._next, self._regret, self._total, averaging, own, sums, self._regret[:0])
            for layout, own in zip([one._replace(apart=apart) for one in game.layouts], rows, strict=True)
        )
        self._held: PlayerTables | None = None
        if restriction:
            held = (first, second)[restriction.player]
            fixed = np.ascontiguousarray(restriction.fixed, self._regret.dtype)
            if fixed.shape != self._regret.shape:
                raise GameError(f"the fixed strategy has shape {fixed.shape}, and tables have {self._regret.shape}")
            held = held._replace(fixed=fixed, coin=float(restriction.coin))
            if not restriction.coin:
                played, decisions = game.table(dtype), _decisions(game, restriction.player)
                held = held._replace(strategy=played, decisions=decisions)
                restrict(held)
            self._held = held
            first, second = (held, second) if restriction.player == 0 else (first, held)

        # Of an opponent who sees all cards: regrets, and 1 for a best response.
        shape = (int(against.layout.start[-1]) if opponent != "abstract" else 0, self._vectors.shape[1])
        single = self._regret.dtype == np.float32 or 8 * shape[0] * shape[1] > SINGLE
        self.other: Table = np.zeros(shape, np.float32 if single else np.float64)
        self.other_next = np.zeros_like(self.other) if predictive else self.other
        none = np.empty(0, np.int64), np.zeros((0, 0, 0), self.other.dtype)
        others = self.other_next, self.other, self.other
        self._tables = first, second, PlayerTables(against.layout, *others, False, *none, self.other[:0])
        # An opponent who is not the other player learns first, in each seat; runs that can still be resumed have had
        # both seats respond on the same boards.
        alike = opponent == "response" and game is self._vectors
        self._stride = 1 if alike else 2
        self._turns: tuple[Turn, ...] = SELF_PLAY
        if opponent != "abstract":
            self._turns = tuple(
                turn
                for seat in range(2)
                for offset in (0 if alike else seat,)
                for turn in (Turn(1 - seat, 2, seat, 1, offset), Turn(seat, seat, 2, 0, offset))
            )
        self.KEPT = (
            "regret",
            *["next"] * predictive,
            *["total"] * averaging,
            *["other"] * (opponent != "abstract"),
            *["other_next"] * (opponent != "abstract" and predictive),
            *["seed"] * self.scheme.boards,
            *["root_regret"] * (root is not None),
        )

    @property
    def draws(self) -> bool:
        """Whether chance is drawn, so that what is found depends on the seed."""
        scheme, several = self.scheme, int(self._tree.board_start[-1]) > len(self._tree.rows)  # boards of some round
        return scheme.boards and (scheme.mine or scheme.theirs or several)

    @property
    def regret(self) -> Table:
        """Regrets, by hand: a table like the game's."""
        return self._arranged.by_hand(self._regret)

    @property
    def next(self) -> Table:
        """What the next strategy is in proportion to: the regrets, or those that are predicted."""
        return self._arranged.by_hand(self._next)

    @property
    def total(self) -> Table:
        """Sums of strategies, by hand; where there is no average, what the next strategy is in proportion to."""
        return self._arranged.by_hand(self._total)

    def step(self, iterations: int) -> None:
        """Run `iterations` more CFR iterations; both players are updated, in turn."""
        game, drawn = self._vectors, self.scheme.boards
        rows = discounts(self.variant, self.iterations + 1, iterations, sampled=drawn)
        alone = game.threads == 1 or len(game.tree.rows) == 1 or (drawn and self.opponent == "abstract")
        if alone and self.other.dtype == self._regret.dtype:
            self._iterate(rows)
            return
        for row in rows:
            discount = Discount._make([*row.tolist(), self.variant.predictive])
            if self.opponent == "abstract":
                self._walk(discount, self._turns)
            else:
                game.both_seats(partial(self._seat, discount), self.scheme)
            self.iterations += 1

    def _seat(self, discount: Discount, seat: int) -> None:
        """The walks of an iteration for a player, and for the opponent where that is not the other player."""
        self._walk(discount, self._turns[2 * seat :][:2])

    def _walk(self, discount: Discount, turns: Sequence[Turn]) -> None:
        """Some walks of an iteration, one after another."""
        self._arranged.apart()
        game = self._vectors
        for turn in turns:
            own, theirs = self._tables[turn.own], self._tables[turn.theirs]
            learning = learning_walk(self._tree, turn.player, self._tasks[turn.task], own, theirs, discount)
            dtype = np.float32 if np.float32 in (own.regret.dtype, theirs.regret.dtype) else np.float64
            number = self._stride * self.iterations + turn.offset
            result = np.zeros(game.shape[1])
            game.run(turn.player, learning, self.scheme, int(self.seed), number, dtype, result)
            if self.game is not self._vectors:
                conclude(own, theirs, game.tree.noise, discount, game.scope(0))
            restrict(own)
            if turn.player == self._root.player:
                learn_root(self._root, result, discount, self._tree.prior)

    def _iterate(self, rows: FloatArray) -> None:
        """Iterations on one thread."""
        self._arranged.apart()
        game, scheme = self._vectors, self.scheme
        with game.workspace(self._regret.dtype) as work:
            iterate(
                self._tree,
                np.array(self._turns),
                self._tasks,
                self._tables,
                self._root,
                rows,
                self.variant.predictive,
                (scheme.boards, scheme.mine, scheme.theirs),
                game.rounds_drawn(scheme),
                np.uint64(self.seed),
                (self._stride * self.iterations, self._stride),
                True,
                game.scope(0),
                work,
                np.zeros((1, 1)),
                np.zeros(game.shape[1]),
            )
        self.iterations += len(rows)

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave; older versions had another name for `other`, or kept no seed."""
        older = {"seed": self.seed, **({"other": state["response"]} if "response" in state else {})}
        super().restore({**older, **state})
        if self._root.player >= 0:
            begin_game(self._root, self._tree.prior)
        if self._held is not None:
            restrict(self._held)

    def average(self) -> Table:
        """The average strategy, which converges: a table like the game's, with entries in proportion to it."""
        return self.total

    def current(self) -> Table:
        """The strategy that the next iteration starts from: a table like the game's, entries in proportion to it."""
        return self.next
