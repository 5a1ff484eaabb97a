"""Compute best responses for players who see only buckets, by visiting all boards and hands.

A player who sees buckets takes the same action with all hands of a bucket on all boards. The value of an action is
known once the player's later decisions are fixed. Decisions are therefore fixed from the last to the first. For each
number of the player's earlier decisions, one pass sums the values of actions over the hands and boards of each bucket.
With perfect recall, the result is a best response of the abstract game. With imperfect recall, it is a strategy of the
abstract game, and its value a lower bound of the best one's. `joint` does the same with tables, for players with few
bucket sequences; this module supports many buckets, as long as memory can hold the whole game.
"""

from __future__ import annotations

import numpy as np

from kilt.arrays import FloatArray
from kilt.games.holdem import Betting, positions_of
from kilt.solve.abstract import BucketedGame
from kilt.solve.learning_kernels import PlayerTables
from kilt.solve.tables.memory import learning_walk
from kilt.tree.betting import on_menu
from kilt.tree.rule import Discount
from kilt.tree.vector_arrays import FOLLOW, Table
from kilt.tree.walks import Walk

_SUM = Discount(1.0, 1.0, 1.0, 1.0, 1.0)  # no discounts, equal weights


def abstract_responses(game: BucketedGame, strategy: Table) -> tuple[Table, tuple[float, float]]:
    """Return the best responses of players who see only buckets, with their winnings.

    Parameters
    ----------
    game : BucketedGame
        The game with the abstraction of each player.
    strategy : ndarray, shape (rows, buckets + 1)
        Weights as in `BucketedGame.table`.

    Returns
    -------
    responses : ndarray, of the same shape
        1 at the action of the best response, in both seats.
    won : (float, float)
        Values of the responses in seats 0 and 1, in chips per game.
    """
    answer, won = strategy.copy(), []
    for player in (0, 1):
        for rows in reversed(_decisions(game, player)):
            worth = _action_values(game, player, answer, strategy)
            for first, count in rows:
                best = worth[first : first + count].argmax(axis=0)
                answer[first : first + count] = np.arange(count)[:, None] == best
        layouts = game.layouts[player], game.layouts[1 - player]
        won.append(game.game.walk(Walk(player, (FOLLOW,), answer, strategy, *layouts)))
    return answer, (won[0], won[1])


def walks_of(game: BucketedGame) -> int:
    """Return the number of passes over the game tree that `abstract_responses` makes."""
    return sum(len(_decisions(game, player)) + 1 for player in (0, 1))


def _decisions(game: BucketedGame, player: int) -> list[list[tuple[int, int]]]:
    """Return the player's decisions in groups with the same number of earlier decisions of that player.

    A decision is given by its first row and its number of actions.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    start = game.layouts[player].start
    for r, row, position in game.game.decisions():
        if position.actor == player:
            assert isinstance(position, Betting)
            before = sum(each.actor == player for each, _ in positions_of(position.rules).moves_to(position))
            found.setdefault(before, []).append((int(start[r]) + row, len(on_menu(position, game.game.menu))))
    return [found[number] for number in sorted(found)]


def _action_values(game: BucketedGame, player: int, own: Table, theirs: Table) -> FloatArray:
    """Return how much each action gains over the strategy `own`, summed over all boards and hands of a bucket."""
    vectors = game.game
    sums = np.zeros((vectors.threads, *own.shape))
    none = np.zeros_like(own)
    mine, other = (
        PlayerTables(game.layouts[who], table, none, none, False, game.rows[who], sums)
        for who, table in ((player, own), (1 - player, theirs))
    )
    tasks = np.full(len(vectors.tree.rows), FOLLOW)
    vectors.run(player, learning_walk(vectors.tree, player, tasks, mine, other, _SUM))
    total: FloatArray = sums.sum(axis=0)
    return total
