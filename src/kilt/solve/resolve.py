"""Re-solve a subgame during play without giving the opponent anything to gain.

A player who re-solves the subgame that play has reached knows its own range, which follows from its own strategy. The
opponent's range is only an estimate, and a strategy that is optimal against the estimate may lose to an opponent with
other hands. The values of the opponent's hands against the blueprint solve this problem: if no hand gains more against
the new strategy, then no opponent gains more from the combined strategy, whatever it does before the subgame. The
subgame is therefore preceded by a *gadget*, in which the opponent has a choice for each hand.

==============  =====================================================================================================
``unsafe``      no choice: the opponent has the given range
``gadget``      each hand of the opponent either plays the subgame or takes its value against the blueprint (CFR-D:
                Burch, Johanson and Bowling 2014). The only goal is that no hand gains more
``max-margin``  the opponent picks the hand that gains most over the blueprint, or loses least: the smallest margin of
                all hands is maximised (Moravčík, Schmid, Ha, Hladík and Gaukrodger 2016)
==============  =====================================================================================================

The gadget needs no tree. The opponent's choice determines the reach of its hands at the root, which is learnt by regret
matching from the root's values (`RootChoice`); the solver is the same as for any other game.

**Nested re-solving** (Brown and Sandholm 2017). An opponent's bet that is missing in the tree starts a new subgame
after the bet. The alternative of each hand is its value without this bet: that of the decision before the bet, with the
actions in the tree. The bet then gains nothing for any hand, if the player can prevent it.

**Depth limits** [Brown18]. A subgame may end with its first round. After it, the player follows the blueprint, and the
opponent chooses, for each hand, among several strategies for the rest of the game. With a single value for each end,
the player could exploit the opponent's fixed strategy after it; the choice prevents this.

>>> from kilt.games import load_game
>>> leduc = load_game("leduc")
>>> blueprint = [-0.5, -0.5, 2.5, 0, 0, 0]  # value of each of the second player's hands against the blueprint, in chips
>>> for method in ("gadget", "max-margin"):  # margins: either no hand gains, or all lose the same
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
from kilt.games.subgame import ContinuationValues, Subgame, compatible_weights, cut_after_first_round, subgame
from kilt.solve.cfr import Cfr, Tables
from kilt.solve.learning_kernels import RootChoice
from kilt.solve.problem import CPU, VectorProblem, require_device
from kilt.solve.solver import Solver
from kilt.solve.tables.memory import TreeTables
from kilt.tree.betting import Menu, betting_tree
from kilt.tree.navigation import NavigableTree, TreePosition
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import RESPOND, Table

LeafValues: TypeAlias = Callable[[Subgame, Sequence[Betting]], ContinuationValues]
# Returns the probabilities of some actions at a position of a subgame, with the shape (actions, hands of the deck).
StartStrategy: TypeAlias = Callable[[Betting, tuple[str, ...]], FloatArray]
ITERATIONS = 100  # default if neither iterations nor seconds are given
GUESSED = 0.5  # share of the estimated range in the gadget's weights of hands; the rest is uniform
ALIKE = 9  # digits to which the values of hands are compared
START = 10.0  # regrets of the strategy that a warm start begins with, in pots


@dataclass(frozen=True, eq=False)
class Resolved:
    """The solution of a subgame re-solved during play: both players' strategies.

    Attributes
    ----------
    game : VectorGame
        The subgame on its public tree. Its hands are `game.game.numbers` of `Deck.holes`.
    table : ndarray, shape `game.shape`
        Average strategies of both players, not normalised. The opponent's is only one of those that the player's
        strategy was optimised against.
    player : int
        The player who re-solves.
    values : ndarray, shape (hands,), optional
        Alternative values of the opponent's hands in chips, in the order of the subgame's hands.
    iterations : int
        Number of CFR iterations.
    seconds : float
        Time taken, including building the tree.
    """

    game: VectorGame
    table: Table
    player: int
    values: FloatArray | None
    iterations: int
    seconds: float

    def margins(self) -> FloatArray:
        """Return how many chips less each of the opponent's hands can win after re-solving.

        This is the margin of a hand: `values` minus its best-response value. The strategy is safe if no margin is
        negative.
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
    start: StartStrategy | None = None,
) -> Resolved:
    """Re-solve a subgame for one player, and return both players' strategies in it.

    Parameters
    ----------
    game : Holdem
        The whole game.
    position : Betting
        Start of the subgame, with a player to act: such as ``game.replay("cr300c/")``. For nested re-solving, the
        position after the opponent's bet.
    board : str or sequence of int
        Public cards of that round.
    player : int
        The player who re-solves: 0 or 1. The other one is the opponent.
    ranges : array_like, shape (2, hands of the deck)
        Weights of both players' hands, in the order of `Deck.holes`: the probability that each player's own actions
        lead here with each hand, ignoring the other player's cards. Hands with a card of the board are ignored, and a
        common factor makes no difference. ``unsafe`` assumes that the opponent's range is correct. For ``gadget`` it
        says which hands get more weight if not all can be limited to their values. ``max-margin`` ignores it.
    values : array_like, shape (hands of the deck,), optional
        For ``gadget`` and ``max-margin``: chips that the opponent wins with each hand against the player's blueprint,
        for the whole game as in `Holdem.payoffs` (a player who folds loses the chips already put in). The value of a
        hand is a mean over the player's compatible hands, weighted by the player's range: the counterfactual value
        divided by the reach of those hands, and not multiplied by the opponent's own reach. With best-response values,
        the result is at least as good as the blueprint against any opponent; values of the opponent's blueprint are a
        stricter goal, which may be unreachable. For nested re-solving, values of the opponent's decision before the
        bet. Hands that are incompatible with the board or with all hands of the player may have any finite number.
    method : str
        One of `kilt.config.RESOLVE_METHODS`.
    menu : Menu, optional
        Selects the raises of a no-limit game.
    iterations : int, optional
        Number of CFR iterations, for reproducible results. Default: 100, if `seconds` is not given either.
    seconds : float, optional
        Time limit, including building the tree. At least one iteration is run.
    neglect : float
        For ``gadget`` and ``max-margin``: the opponent's hands with less than this share of its range's largest weight
        are ignored, which makes iterations faster. With 0 no hand is ignored, and the result is safe against any
        opponent.
    threads : int
        Number of threads, which share the boards to come.
    dtype : data type
        Type of the tables.
    trust : float
        For ``gadget``, from 0 to 1: probability that the opponent has the given range and no choice, rather than any
        hand and a choice. With 0, the only goal is that no hand gains over the blueprint, whatever the range; 1 is
        ``unsafe``.
    continued : callable, optional
        Depth limit: the subgame ends with its first round, and this function returns the values of its ends, given the
        subgame and these positions. See `kilt.search.continuations`. Not available on a GPU.
    device : str
        Where the computation runs: "cpu", or "gpu" for an NVIDIA graphics card. The opponent's choice before the
        subgame is learnt on the CPU.
    start : callable, optional
        Strategy of both players in the first round with which the solver begins, such as that of a blueprint. A good
        one saves iterations. Default: all actions have equal probabilities. Ignored on a GPU.

    Returns
    -------
    Resolved
        The subgame and the strategies of both players in it.

    Raises
    ------
    GameError
        If an argument is invalid, or if `values` are missing for a method that needs them.
    """
    begun = monotonic()
    weights = np.array(ranges, dtype=np.float64)
    if method not in RESOLVE_METHODS:
        raise GameError(f"unknown method of re-solving {method!r}: use one of {', '.join(RESOLVE_METHODS)}")
    if require_device(device) != CPU and continued is not None:
        raise GameError("walks on a GPU do not support a depth limit: omit `continued`, or use the CPU")
    if method == UNSAFE:
        found, own, root = subgame(game, position, board, weights), None, None
    else:
        found, own, root = _with_choice(game, position, board, player, weights, values, method, neglect, trust)
    if continued is not None:
        found = with_depth_limit(found, menu, continued)
    tree = VectorGame(found, menu, threads)
    problem = VectorProblem(tree, dtype, device, tables=2)
    tables = _tables(problem, root)
    solver = Cfr(tables, "dcfr+")
    if start is not None and isinstance(tables, TreeTables):
        _warm_start(tree, tables, start)
    if seconds is None:
        solver.step(ITERATIONS if iterations is None else iterations)
    else:
        _step_until(solver, begun + seconds, inf if iterations is None else iterations)
    return Resolved(tree, problem.walker.on_host(solver.average()), player, own, solver.iterations, monotonic() - begun)


def _tables(problem: VectorProblem, root: RootChoice | None) -> Tables:
    """Return CFR tables for a subgame, on the CPU or on a GPU."""
    if problem.device == CPU:
        return TreeTables(problem.game, problem.dtype, root=root)
    from kilt.solve.tables.device import DeviceTables  # imports the GPU library
    from kilt.tree.gpu.device import DeviceGame

    assert isinstance(problem.walker, DeviceGame)
    return DeviceTables(problem.walker, root=root)


def _warm_start(game: VectorGame, tables: TreeTables, start: StartStrategy) -> None:
    """Set the regrets of the first round so that both players begin with a given strategy.

    Regrets proportional to a strategy make regret matching choose it (Brown and Sandholm 2016). `START` determines how
    long it is remembered, in pots, which are weighted by the opponent's reach like all regrets. Later rounds begin from
    zero: on each board, they soon learn to answer a first round that makes sense.
    """
    tree = NavigableTree(game)

    def visit(place: TreePosition, reach: FloatArray) -> None:
        at = place.position
        if at.actor < 0:
            return
        actions = tree.actions(place)
        shares = start(at, actions)[:, tree.holdem.numbers]
        tables.set_regrets(tree.row(place), START * sum(at.spent) * reach[1 - at.actor].sum() * shares)
        for action, share in zip(actions, shares, strict=True):
            after = reach.copy()
            after[at.actor] *= share
            visit(tree.act(place, action), after)

    visit(tree.start, tree.holdem.weights)


def with_depth_limit(game: Subgame, menu: Menu | None, continued: LeafValues) -> Subgame:
    """Limit the depth of a subgame to its first round.

    `continued` is a function that returns the values of the positions at which it ends.
    """
    cut = cut_after_first_round(game)
    return replace(cut, continued=continued(cut, ends_of_round(cut, menu)))


def ends_of_round(game: Subgame, menu: Menu | None) -> tuple[Betting, ...]:
    """Return the betting positions that end a subgame's first round without a fold."""
    return tuple(leaf for leaf in betting_tree(game, menu).leaves if leaf.folded is None)


def relevant_hands(
    game: Holdem, board: str | Sequence[int], player: int, ranges: FloatArray, neglect: float
) -> npt.NDArray[np.bool_]:
    """Return which of the opponent's hands are likely enough to be included in re-solving.

    If `neglect` is 0, all hands are considered. A hand counts if it has at least that share of the largest weight among
    the hands that both players can hold.
    """
    cards = game.deck.cards(board) if isinstance(board, str) else board
    free = ~np.isin(game.holes, cards).any(axis=1)
    met = compatible_weights(ranges[player] * free, game.holes, game.deck.size)
    weights = np.where(free & (met > 0), ranges[1 - player], 0.0)
    return np.asarray(weights >= neglect * weights.max())


def _step_until(solver: Solver, end: float, iterations: float) -> None:
    """Iterate until a time of the monotonic clock or a number of iterations, whichever comes first.

    At least one iteration is run.
    """
    begun, doing = monotonic(), 1
    while doing >= 1:
        solver.step(doing)
        now = monotonic()
        each = (now - begun) / solver.iterations
        # Batches at most double, because the first iterations may be slower or faster than later ones.
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
    """Return a subgame before which the opponent chooses, for each hand, whether to play it.

    Also returns the values of not playing it, and the choice itself.
    """
    opponent, said = 1 - player, np.zeros(0) if values is None else np.asarray(values, dtype=np.float64)
    if said.shape != ranges.shape[1:] or not np.isfinite(said).all():
        raise GameError(
            f"{method} needs the values of each of the opponent's {ranges.shape[1]} hands: `values` has shape "
            f"{said.shape}, or contains other things than finite numbers"
        )
    for name, share in (("trust", trust), ("neglect", neglect)):
        if not 0 <= share <= 1:
            raise GameError(f"`{name}` in the opponent's range is {share:g}: use 0 to 1")
    every = ranges.copy()
    every[opponent] = relevant_hands(game, board, player, ranges, neglect)
    found = subgame(game, position, board, every)
    met = compatible_weights(found.ranges[player], game.holes, game.deck.size)
    possible = (met > 0) & (found.ranges[opponent] > 0)
    trusted = np.zeros_like(met)  # reach of the hands that have no choice
    if method == MAX_MARGIN:  # gains are compared between hands, whatever the weight of the hands they meet
        weight = np.divide(met.max(), met, out=np.zeros_like(met), where=possible)
    else:
        weight, guess = possible.astype(np.float64), np.where(possible, ranges[opponent], 0.0)
        if guess.any():
            guess *= np.count_nonzero(possible) / guess.sum()
            trusted = trust * guess
            weight = trusted + (1 - trust) * ((1 - GUESSED) * weight + GUESSED * guess)
    # suits are equivalent only if these agree
    told = np.stack([np.where(possible, said, 0.0), weight, trusted]).round(ALIKE)
    own, weight, trusted = (np.ascontiguousarray(row[found.numbers]) for row in told)
    least = np.divide(trusted, weight, out=np.zeros_like(weight), where=weight > 0)
    value = own * met[found.numbers]
    choice = RootChoice(opponent, method == MAX_MARGIN, weight, least, value, np.zeros((2, len(own))))
    return replace(found, hand_marks=told), own, choice
