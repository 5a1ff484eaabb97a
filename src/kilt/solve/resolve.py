"""Subgames solved anew, given what a blueprint has done before and would have done in them.

A player who solves the subgame that play has come to knows the own range: it follows from the own strategy. The
opponent's is a guess, and a strategy that is best against the guess may lose to somebody who comes with other hands.
What the opponent's hands win against the blueprint is the remedy. If none of them wins more against the new strategy,
then nobody wins more from the whole one either, whatever is done before. So the opponent first has a choice, hand by
hand, in a *gadget* before the subgame.

==============  =====================================================================================================
``unsafe``      no choice: the opponent has the range that is given
``gadget``      each hand of the opponent plays the subgame, or takes what it wins against the blueprint (CFR-D: Burch,
                Johanson and Bowling 2014). All that counts is that no hand wins more
``max-margin``  the opponent picks the hand that gains most over the blueprint, or loses least: every hand is held as
                far below it as can be (Moravčík, Schmid, Ha, Hladík and Gaukrodger 2016)
==============  =====================================================================================================

No tree is built for it. What the opponent chooses is the reach of the own hands at the root, learnt by regret matching
from the root's values (`RootChoice`), while the solver is that of any other game.

**Nested re-solving** (Brown and Sandholm 2017). A bet of the opponent that the tree does not have begins a subgame of
its own: that after the bet. Its alternative is what the hand wins without it, by the actions that the tree has: values
of the decision before the bet. So the bet gains nothing, for any hand, if it can be helped.

**Depth limits** [Brown18]. A subgame may end with its first round. Where it ends, the player goes on by the blueprint;
the opponent chooses, hand by hand, among several strategies for the rest. A player who was told one value for each end
could rely on what the opponent does there; one who faces a choice cannot.

>>> from kilt.games import load_game
>>> leduc = load_game("leduc")
>>> blueprint = [-0.5, -0.5, 2.5, 0, 0, 0]  # chips that queens, kings and aces of the second player have won so far
>>> for method in ("gadget", "max-margin"):  # how much less they win now: no hand wins more, or all lose alike
...     found = resolve(leduc, leduc.replay("cc/"), "Ks", 0, np.ones((2, 6)), blueprint, method=method, iterations=1000)
...     print(found.margins().round(1).tolist())
[0.2, 0.2, 0.1, 0.0, 0.0]
[0.1, 0.1, 0.1, 0.1, 0.1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.config import GADGET, MAX_MARGIN, RESOLVE_METHODS, UNSAFE
from kilt.errors import GameError
from kilt.games.holdem import Betting, Holdem
from kilt.games.subgame import Continuations, Subgame, first_round_of, rivals, subgame
from kilt.solve.cfr import Cfr, Tables
from kilt.solve.learning_kernels import RootChoice
from kilt.solve.problem import CPU, VectorProblem, require_device
from kilt.solve.solver import Solver
from kilt.solve.tables.memory import TreeTables
from kilt.tree.betting import Menu, betting_tree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import RESPOND, Table

LeafValues: TypeAlias = Callable[[Subgame, Sequence[Betting]], Continuations]
ITERATIONS = 100  # where neither they nor seconds are given
GUESSED = 0.5  # share of the guessed range in the weights of hands that have a choice in the gadget; the rest is even
ALIKE = 9  # digits after which values of hands are equal but for rounding


@dataclass(frozen=True, eq=False)
class Resolved:
    """A subgame that was solved anew.

    Attributes
    ----------
    game : VectorGame
        Its public tree. The hands are `game.game.numbers` of `Deck.holes`.
    table : ndarray, shape `game.shape`
        The average strategies of both players: weights in proportion to probabilities. That of the opponent is one of
        those against which the player's is good.
    player : int
        Who has solved it.
    values : ndarray, shape (hands,), optional
        What the opponent's hands could win instead, in chips, in the order of the subgame's hands.
    iterations : int
        Of CFR.
    seconds : float
        That it took, with the making of the tree.
    """

    game: VectorGame
    table: Table
    player: int
    values: FloatArray | None
    iterations: int
    seconds: float

    def margins(self) -> FloatArray:
        """[hand] chips that the opponent's best response wins less than `values` with each hand.

        The strategy is safe where none is below 0.
        """
        won = self.game.hand_values(1 - self.player, RESPOND, self.table.astype(np.float64))
        return (0.0 if self.values is None else self.values) - won


def resolve(
    game: Holdem,
    position: Betting,
    board: str | Sequence[int],
    player: int,
    ranges: npt.ArrayLike,
    values: npt.ArrayLike | None = None,
    *,
    method: str = GADGET,
    menu: Menu | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    neglect: float = 0.0,
    threads: int = 1,
    dtype: npt.DTypeLike = np.float32,
    trust: float = 0.0,
    continued: LeafValues | None = None,
    device: str = CPU,
) -> Resolved:
    """Solve a subgame anew for one player.

    Parameters
    ----------
    game : Holdem
        The whole game.
    position : Betting
        Where the subgame begins, with a player to act: such as ``game.replay("cr300c/")``. For nested re-solving, the
        position after the opponent's bet.
    board : str or sequence of int
        The public cards of that round.
    player : int
        Who solves it: 0 or 1. The other is the opponent.
    ranges : array_like, shape (2, hands of the deck)
        Weights of both players' hands here, in the order of `Deck.holes`: how likely each player is to have come here
        with each hand, without regard to the other's cards. Hands with a card of the board count for nothing. Their
        scale is of no importance. The opponent's is what ``unsafe`` takes for granted. For ``gadget`` it says which
        hands matter more where not all can be held to their values; all matter. ``max-margin`` does not look at it.
    values : array_like, shape (hands of the deck,), optional
        For ``gadget`` and ``max-margin``: chips that the opponent wins with each hand against the player's blueprint,
        for the whole game as in `Holdem.payoffs` (who folds loses what the own hand has put in so far). For each hand
        it is a mean over the player's hands that leave it, by the player's range: a counterfactual value divided by
        the reach of those hands, and not multiplied by the opponent's own reach. Best-response values make the result
        no worse than the blueprint against any opponent; values of the opponent's blueprint are a stricter goal, which
        may not be reached. For nested re-solving, values of the opponent's decision before the bet. Hands that meet no
        hand of the player, or have a card of the board, may have any finite number.
    method : str
        One of `kilt.config.RESOLVE_METHODS`.
    menu : Menu, optional
        Picks the raises of a no-limit game.
    iterations : int, optional
        Of CFR: the result depends on nothing else. 100 where `seconds` are not given either.
    seconds : float, optional
        After which what is found so far is returned, if `iterations` are not done before: for the tree and the
        iterations. There is one iteration at least.
    neglect : float
        For ``gadget`` and ``max-margin``: hands with less than this share of the largest weight in the opponent's range
        are taken never to be held. Iterations take less time by as many hands as are left out. With 0 none is, and the
        result is safe against all.
    threads : int
        That share the boards to come.
    dtype : data type
        Of the tables.
    trust : float
        For ``gadget``, from 0 to 1: the probability that the opponent has the given range and no choice, in place of
        any hand and a choice. With 0 all that counts is that no hand wins more than by the blueprint, whatever the
        range is; 1 is ``unsafe``.
    continued : callable, optional
        A depth limit: the subgame ends with its first round, and this tells, of the subgame and of the positions where
        it ends, what they are worth. See `kilt.search.continuations`. Not on a GPU.
    device : str
        Where walks run: "cpu", or "gpu" for an NVIDIA graphics card. What the opponent chooses before the subgame is
        learnt on the CPU.

    Returns
    -------
    Resolved
    """
    begun = monotonic()
    weights = np.array(ranges, dtype=np.float64)
    if method not in RESOLVE_METHODS:
        raise GameError(f"unknown way to re-solve {method!r}: use one of {', '.join(RESOLVE_METHODS)}")
    if require_device(device) != CPU and continued is not None:
        raise GameError("walks on a GPU know no depth limit: leave out `continued`, or the device")
    if method == UNSAFE:
        found, own, root = subgame(game, position, board, weights), None, None
    else:
        found, own, root = _with_choice(game, position, board, player, weights, values, method, neglect, trust)
    if continued is not None:
        found = with_depth_limit(found, menu, continued)
    tree = VectorGame(found, menu, threads)
    problem = VectorProblem(tree, dtype, device, tables=2)
    solver = Cfr(_tables(problem, root), "dcfr+")
    if seconds is None:
        solver.step(ITERATIONS if iterations is None else iterations)
    else:
        _step_until(solver, begun + seconds, inf if iterations is None else iterations)
    return Resolved(tree, problem.walker.on_host(solver.average()), player, own, solver.iterations, monotonic() - begun)


def _tables(problem: VectorProblem, root: RootChoice | None) -> Tables:
    """The tables of a subgame, on the CPU or a GPU."""
    if problem.device == CPU:
        return TreeTables(problem.game, problem.dtype, root=root)
    from kilt.solve.tables.device import DeviceTables  # imports the GPU library
    from kilt.tree.gpu.device import DeviceGame

    assert isinstance(problem.walker, DeviceGame)
    return DeviceTables(problem.walker, root=root)


def with_depth_limit(game: Subgame, menu: Menu | None, continued: LeafValues) -> Subgame:
    """A subgame that ends with its first round, with the values that are told for where it ends."""
    cut = first_round_of(game)
    return replace(cut, continued=continued(cut, ends_of_round(cut, menu)))


def ends_of_round(game: Subgame, menu: Menu | None) -> tuple[Betting, ...]:
    """The positions where a subgame of one round ends without a fold."""
    return tuple(leaf for leaf in betting_tree(game, menu).leaves if leaf.folded is None)


def heeded(
    game: Holdem, board: str | Sequence[int], player: int, ranges: FloatArray, neglect: float
) -> npt.NDArray[np.bool_]:
    """[hand of the deck] whether a hand of the opponent is worth looking at: all are where `neglect` is 0.

    It has at least that share of the largest weight among the hands that can be dealt, to both players.
    """
    cards = game.deck.cards(board) if isinstance(board, str) else board
    free = ~np.isin(game.holes, cards).any(axis=1)
    met = rivals(ranges[player] * free, game.holes, game.deck.size)
    weights = np.where(free & (met > 0), ranges[1 - player], 0.0)
    return np.asarray(weights >= neglect * weights.max())


def _step_until(solver: Solver, end: float, iterations: float) -> None:
    """Iterate until a time of the monotonic clock, or so often: at least once, and no longer than is foreseen."""
    begun, doing = monotonic(), 1
    while doing >= 1:
        solver.step(doing)
        now = monotonic()
        each = (now - begun) / solver.iterations
        # At most as many as before: the first ones may be slower, or quicker, than those to come.
        doing = int(min(iterations - solver.iterations, solver.iterations, (end - now) / each))


def _with_choice(
    game: Holdem,
    position: Betting,
    board: str | Sequence[int],
    player: int,
    ranges: FloatArray,
    values: npt.ArrayLike | None,
    method: str,
    neglect: float,
    trust: float,
) -> tuple[Subgame, FloatArray, RootChoice]:
    """A subgame to which the opponent may come with any hand, what hands win otherwise, and the choice between both."""
    opponent, said = 1 - player, np.zeros(0) if values is None else np.asarray(values, dtype=np.float64)
    if said.shape != ranges.shape[1:] or not np.isfinite(said).all():
        raise GameError(
            f"{method} needs what each of {ranges.shape[1]} hands of the opponent wins: `values` have shape "
            f"{said.shape}, or are no numbers"
        )
    for name, share in (("trust", trust), ("neglect", neglect)):
        if not 0 <= share <= 1:
            raise GameError(f"`{name}` in the opponent's range is {share:g}: give 0 to 1")
    every = ranges.copy()
    every[opponent] = heeded(game, board, player, ranges, neglect)
    found = subgame(game, position, board, every)
    met = rivals(found.ranges[player], game.holes, game.deck.size)
    possible = (met > 0) & (found.ranges[opponent] > 0)
    trusted = np.zeros_like(met)  # reach of hands that have no choice
    if method == MAX_MARGIN:  # a gain is one over what a hand wins otherwise, whatever the weight of the hands it meets
        weight = np.divide(met.max(), met, out=np.zeros_like(met), where=possible)
    else:
        weight, guess = possible.astype(np.float64), np.where(possible, ranges[opponent], 0.0)
        if guess.any():
            guess *= np.count_nonzero(possible) / guess.sum()
            trusted = trust * guess
            weight = trusted + (1 - trust) * ((1 - GUESSED) * weight + GUESSED * guess)
    told = np.stack([np.where(possible, said, 0.0), weight, trusted]).round(ALIKE)  # tells suits apart as ranges do
    own, weight, trusted = (np.ascontiguousarray(row[found.numbers]) for row in told)
    least = np.divide(trusted, weight, out=np.zeros_like(weight), where=weight > 0)
    value = own * met[found.numbers]
    choice = RootChoice(opponent, method == MAX_MARGIN, weight, least, value, np.zeros((2, len(own))))
    return replace(found, told=told), own, choice
