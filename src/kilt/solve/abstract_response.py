"""Best responses inside an abstraction, by walks over all boards and hands of the game.

A player who sees buckets takes one action for all hands of a bucket on all boards. What an action is worth is known
when the player's later decisions are: so decisions are fixed from the last to the first, and a walk adds up what each
action is worth over the hands and boards of a bucket, once for each number of decisions that the player has made
before. With perfect recall that is a best response of the abstract game. With imperfect recall it is a strategy of the
abstract game, and what it wins a lower bound of what the best one wins. `joint` does the same by tables, where a player
has few bucket sequences; here buckets may be many, as long as the game can be walked.
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
from kilt.tree.vector import Walk
from kilt.tree.vector_arrays import FOLLOW, Table

_SUM = Discount(1.0, 1.0, 1.0, 1.0, 1.0, False)  # nothing is forgotten, nothing weighs more


def abstract_responses(game: BucketedGame, strategy: Table) -> tuple[Table, tuple[float, float]]:
    """Best responses of players who see buckets.

    Parameters
    ----------
    game : BucketedGame
        With the abstraction of each player.
    strategy : ndarray, shape (rows, buckets + 1)
        Weights as in `BucketedGame.table`.

    Returns
    -------
    responses : ndarray, of the same shape
        1 for the action that is taken, in both seats.
    won : (float, float)
        What the response wins in seats 0 and 1, in chips per game.
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
    """The number of walks that `abstract_responses` takes."""
    return sum(len(_decisions(game, player)) + 1 for player in (0, 1))


def _decisions(game: BucketedGame, player: int) -> list[list[tuple[int, int]]]:
    """[number of the player's decisions before] the first row and the number of actions of the player's decisions."""
    found: dict[int, list[tuple[int, int]]] = {}
    start = game.layouts[player].start
    for r, row, position in game.game.decisions():
        if position.actor == player:
            assert isinstance(position, Betting)
            before = sum(each.actor == player for each, _ in positions_of(position.rules).moves(position))
            found.setdefault(before, []).append((int(start[r]) + row, len(on_menu(position, game.game.menu))))
    return [found[number] for number in sorted(found)]


def _action_values(game: BucketedGame, player: int, own: Table, theirs: Table) -> FloatArray:
    """[row, bucket] what the player's actions are worth more than `own` at a decision, over all boards and hands."""
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
