"""Compute the value of each hand in a subgame, if both players follow a blueprint.

Re-solving lets the opponent choose between these values and playing the subgame: see `solve.resolve`. A walk of the
blueprint's own tree computes them, with all hands on all boards. A player's strategy is a table over row × bucket if
the blueprint treats hands of a bucket as equal. It is a table over all hands, which takes six times as long, if earlier
bets of the hand were translated in a way that depends on the hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray, IntArray
from kilt.games.holdem import RAISE, Betting, Holdem
from kilt.games.subgame import Subgame
from kilt.play.blueprint import BlueprintAgent
from kilt.solve.resolve import LeafValues, with_depth_limit
from kilt.tree.betting import Menu, on_menu
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW, Table, TableLayout
from kilt.tree.walks import Walk


class SubgameDecision(NamedTuple):
    """A decision in a subgame, with the same decision in the whole game."""

    round: int
    row: int  # its first row among those of a board
    labels: tuple[str, ...]  # the actions of the subgame's tree
    position: Betting  # in the whole game


def blueprint_values(
    blueprint: BlueprintAgent,
    root: Betting,
    subgame: Subgame,
    player: int,
    threads: int,
    limit: LeafValues | None = None,
) -> FloatArray:
    """Return each hand's winnings in a subgame, in chips, if both players follow a blueprint.

    Parameters
    ----------
    blueprint : BlueprintAgent
        Without post-processing.
    root : Betting
        The first position of the subgame, in the whole game.
    subgame : Subgame
        The subgame, with the ranges of both players.
    player : int
        The player whose hands are evaluated.
    threads : int
        Number of threads that share the boards.
    limit : callable, optional
        Returns the values at the end of the first round, if the subgame ends there.

    Returns
    -------
    ndarray, shape (hands of the deck,)
        0 for hands that neither player holds or that meet no hand.
    """
    menu = own_menu(blueprint, root)
    if limit:
        subgame = with_depth_limit(subgame, menu, limit)
    game = VectorGame(subgame, menu, threads)
    decisions: tuple[list[SubgameDecision], list[SubgameDecision]] = [], []
    for r, row, at in game.decisions():
        assert isinstance(at, Betting)
        position = blueprint.game.replay(root.history + at.history)
        decisions[position.actor].append(SubgameDecision(r, row, on_menu(at, game.menu), position))
    values = np.zeros(len(blueprint.game.holes))
    (own, own_layout), (theirs, their_layout) = (
        _strategy(game, blueprint, decisions[seat]) for seat in (player, 1 - player)
    )
    values[subgame.numbers] = game.walk_values(Walk(player, (FOLLOW,), own, theirs, own_layout, their_layout))
    return values


def own_menu(blueprint: BlueprintAgent, root: Betting) -> Menu:
    """Return the raises that a blueprint uses in a subgame."""

    def menu(at: Betting) -> set[int]:
        actions = blueprint.actions(blueprint.game.replay(root.history + at.history))
        return {int(action[1:]) for action in actions if action.startswith(RAISE)}

    return menu


def _strategy(
    game: VectorGame, blueprint: BlueprintAgent, decisions: list[SubgameDecision]
) -> tuple[Table, TableLayout]:
    """Return one player's blueprint strategy in a subgame as a table, and the layout of the table."""
    tables, numbers = [blueprint.table(decision.position) for decision in decisions], _numbers(game)
    if not all(tables):
        return _by_hand(game, blueprint, decisions), game.layouts[0]
    tree, widths = game.tree, [table[1].shape[1] for table in tables if table]
    start = np.concatenate([[0], np.cumsum(tree.rows, dtype=np.int64)])
    # the last column is for hands that neither player can hold
    found = np.zeros((int(start[-1]), max(widths, default=0) + 1))
    bucket = np.full((int(tree.board_start[-1]), game.shape[1]), found.shape[1] - 1, dtype=np.int32)
    seen: dict[int, Betting] = {}
    for decision, table in zip(decisions, tables, strict=True):
        assert table
        first = int(start[decision.round]) + decision.row
        for place, label in enumerate(decision.labels, start=first):
            if label in table[0]:
                found[place, : table[1].shape[1]] = table[1][table[0].index(label)]
        seen.setdefault(decision.round, decision.position)
    for r, position in seen.items():
        first, last = tree.board_start[r : r + 2]
        columns = np.stack([policy.column for policy in blueprint.policies(position, _boards(game, r))])[:, numbers]
        cards = tree.strengths.card_bit[tree.board[first:last, : tree.board_size[r]]]
        dead = tree.deck.bits & np.bitwise_or.reduce(cards, axis=1, initial=0)[:, None]
        bucket[first:last] = np.where(dead, found.shape[1] - 1, columns)
    return found, TableLayout(np.zeros_like(tree.rows), start, bucket, np.empty(0, dtype=np.bool_))


def _by_hand(game: VectorGame, blueprint: BlueprintAgent, decisions: list[SubgameDecision]) -> Table:
    """Return a blueprint's strategy in a subgame as a table over (board, row) × hand."""
    tree, table, numbers = game.tree, game.table(), _numbers(game)
    for r, row, labels, position in decisions:
        boards = _boards(game, r)
        part = table[tree.table_start[r] : tree.table_start[r + 1]].reshape(len(boards), int(tree.rows[r]), -1)
        actions, shares = blueprint.probabilities_on(position, boards)
        for place, label in enumerate(labels, start=row):
            if label in actions:
                part[:, place] = shares[actions.index(label)][:, numbers]
    return table


def _numbers(game: VectorGame) -> IntArray:
    """Return the index of each of a subgame's hands among all hands of the deck."""
    assert isinstance(game.game, Holdem)
    return game.game.numbers


def _boards(game: VectorGame, r: int) -> list[tuple[int, ...]]:
    """Return the boards of one round of a subgame, in the order of their numbers."""
    tree = game.tree
    first, last = tree.board_start[r : r + 2]
    return [tuple(cards) for cards in tree.board[first:last, : tree.board_size[r]].tolist()]
