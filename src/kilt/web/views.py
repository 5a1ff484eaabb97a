"""Data for the web page on an agent's strategy at a public state.

A game, the betting (``history``, in ACPC notation) and the board determine a public state. The page can show any agent
with a policy, such as blueprints, solved small games and baselines.

>>> from kilt.players.reference import player
>>> from kilt.games.playable import load_holdem
>>> agent, game = player("always-call").at(load_holdem("leduc"))
>>> view = strategy_view(agent, game, "", ())
>>> view["title"], [(action["words"], action["share"]) for action in view["actions"]], len(view["cells"])
('first to act opens', [('check', 1.0), ('bet 2', 0.0)], 6)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.cards.equity import hand_strength
from kilt.errors import GameError, PlayError
from kilt.evaluate.decisions import ReviewedDecision, decision_values, hand_ranges, is_exact
from kilt.evaluate.self_play import no_shared_card
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import CALL, FOLD, Betting, Holdem
from kilt.play.agent import Agent, PolicyAgent, PublicPolicy
from kilt.play.person import describe_action
from kilt.players.agents import describe_strategy
from kilt.web.card_views import bucket_row, card_abstraction_of

KINDS = {FOLD: "fold", CALL: "call"}  # kinds of actions; all others are raises


def read_board(game: Holdem, text: str) -> tuple[int, ...]:
    """Parse the names of a board's cards.

    Raises GameError or CardError if the board is not valid.
    """
    board = game.deck.cards(text)
    most = game.rules.board_size(game.rules.rounds - 1)
    if len(board) > most:
        raise GameError(f"{text} has {len(board)} cards, but the board of {game.name} has {most}: use fewer")
    return board


def strategy_view(agent: PolicyAgent, game: Holdem, history: str, board: tuple[int, ...]) -> dict[str, Any]:
    """Return an agent's strategy for every hand at a public state, as JSON data.

    Parameters
    ----------
    agent : PolicyAgent
        An agent with a policy, who plays in both seats.
    game : Holdem
        The game of the agent.
    history : str
        The betting so far, in ACPC notation.
    board : tuple of int
        The public cards so far; GameError if they do not fit the round.

    Returns
    -------
    dict
        ``state`` is ``decision``, ``cards`` if public cards come next, or ``over``. At a decision, ``strategy`` is the
        name of the strategy that the agent plays, and ``actions`` has the share of each action over all hands that
        reach the decision. Each of ``cells`` is a group of hands that differ only in suits. It has the probabilities
        that the player (``reach``) and the opponent (``other``) reach the decision with its hands, the
        ``shares`` of the actions, and ``buckets``, the number of its hands in each bucket (empty without a card
        abstraction).
    """
    position = game.replay(history)
    seen = game.rules.board_size(position.round)
    if len(board) < seen:
        raise GameError(f"the board has {len(board)} cards after {history!r}, but {seen} are dealt: choose the others")
    board = board[:seen]
    view: dict[str, Any] = {
        "game": game.name,
        "history": history,
        "board": _names(game, board),
        "round": game.rules.round_names[position.round],
        "pot": sum(position.spent),
        "path": [_step(game, before, action) for before, action in game.positions.moves_to(position)],
        "ranks": game.deck.rank_names[::-1],
        "suits": game.deck.suit_names,
        "private": game.rules.hole_cards,
    }
    if position.actor == TERMINAL:
        return view | {"state": "over", "title": "the hand is over"}
    if position.actor == CHANCE:
        count = game.rules.board_cards[position.round + 1]
        title = f"the {game.rules.round_names[position.round + 1]} is dealt next"
        return view | {"state": "cards", "cards": count, "title": title}
    view["strategy"] = describe_strategy(agent)
    policy, reach = agent.policy(position, board), hand_ranges(agent, game, position, board)
    mine, theirs = reach[position.actor], reach[1 - position.actor]
    weight = mine * (_apart(game.rules) @ theirs)
    shares = policy.probabilities
    overall = shares @ weight / max(weight.sum(), 1e-300)
    return view | {
        "state": "decision",
        "seat": position.actor,
        "title": _title(game, position),
        "actions": [
            {
                "label": action,
                "words": describe_action(position, action),
                "kind": KINDS.get(action, "raise"),
                "share": round(float(share), 6),
                "after": history + action,
            }
            for action, share in zip(policy.actions, overall, strict=True)
        ],
        "ev_known": is_exact(game, position),
        "cells": list(_cells(game, shares, (mine, theirs), board, bucket_row(agent, board, position.actor))),
        "legal": _legal(position, policy),
    }


def values_view(
    agent: PolicyAgent, game: Holdem, history: str, board: tuple[int, ...], cell: str = ""
) -> dict[str, Any]:
    """Return each hand's value of each action at a decision, as JSON data.

    Raises PlayError if it is unknown.

    Parameters
    ----------
    agent : PolicyAgent
        An agent with a policy, who plays in both seats.
    game : Holdem
        The game of the agent.
    history : str
        The betting so far, in ACPC notation.
    board : tuple of int
        The public cards so far.
    cell : str
        Compute only the hands of this cell of the grid, such as ``AKs``, which takes less time. Empty: all cells.

    Returns
    -------
    dict
        ``actions`` has the label of each action. Each of ``hands`` has its name, its cell of the grid, its ``weight``
        (its probability at the decision; weights sum to 1), the ``shares`` of the actions, their ``values`` in
        chips from the decision on, and their ``margins``: half-widths of 95% intervals, 0 for exact values.
    """
    position = game.replay(history)
    board = board[: game.rules.board_size(position.round)]
    names, which = _classes(game.rules)
    if cell and cell not in names:
        raise PlayError(f"there is no hand {cell[:20]!r} in {game.name}: choose one of the grid")
    if not cell and not is_exact(game, position):
        raise PlayError("many boards may follow: the values of actions are estimated only for one cell of the grid")
    asked = np.flatnonzero(which == names.index(cell)) if cell else np.arange(len(which))
    found = decision_values(agent, game, position, board, hands=asked.tolist() if cell else None)
    reach = hand_ranges(agent, game, position, board)
    mine, theirs = reach[position.actor], reach[1 - position.actor]
    weight = mine * (_apart(game.rules) @ theirs)
    weight /= max(weight.sum(), 1e-300)
    holes = game.deck.holes(game.rules.hole_cards)
    return {
        "actions": [{"label": action} for action in found.actions],
        "hands": [
            {
                "hand": game.deck.name(holes[hand].tolist()[::-1]),
                "cell": names[which[hand]],
                "weight": round(float(weight[hand]), 9),
                "shares": [round(float(share), 6) for share in found.shares[:, hand]],
                "values": found.values[:, hand].tolist(),
                "margins": found.margins[:, hand].tolist(),
            }
            for hand in asked[weight[asked] > 0].tolist()
        ],
    }


def review_view(decision: ReviewedDecision) -> dict[str, Any]:
    """Return a person's decision and the agent's choice with the same hand, as JSON data.

    Each of ``options`` is an action. It has the probability that the agent takes it (``share``) and its ``value``: the
    expected chips from this decision on, against the hands that the agent would hold, if both players then follow the
    agent's strategy. ``loss`` is the highest value of any option minus the value of this option. ``margin`` and
    ``loss_margin`` are half-widths of 95% intervals, 0 for exact values. Values, losses and margins are None if they
    are unknown. They are not rounded: the page rounds what it shows.
    """
    position = decision.position
    return {
        "history": position.history,
        "taken": describe_action(position, decision.taken),
        "options": [
            {
                "words": describe_action(position, option.action),
                "share": round(option.share, 4),
                "value": json_number(option.value),
                "margin": json_number(option.margin),
                "loss": json_number(option.loss),
                "loss_margin": json_number(option.loss_margin),
                "taken": option.action == decision.taken,
            }
            for option in decision.options
        ],
    }


def json_number(value: float) -> float | None:
    """Convert a number for JSON: nan, which means an unknown number, and infinity become None."""
    return float(value) if isfinite(value) else None


def abstraction_view(agent: Agent, game: Holdem, board: tuple[int, ...], seat: int = 0) -> dict[str, Any]:
    """Return each hand's bucket on a board, as JSON data.

    Parameters
    ----------
    agent : Agent
        An agent that plays a blueprint; PlayError for others.
    game : Holdem
        The game of the agent.
    board : tuple of int
        The public cards of a round.
    seat : int
        The player, if the players have different buckets.

    Returns
    -------
    dict
        Each of ``hands`` has its name, its bucket and, from the second round on, its strength. ``buckets`` is the
        number of buckets in the round, on all boards. ``seats`` is 2 if the players have different buckets.
    """
    cards = card_abstraction_of(agent, seat)
    number = cards.round_of(board)
    row = cards.rounds[number].look_up_board(board)
    holes = game.deck.holes(game.rules.hole_cards)
    free = ~np.isin(holes, board).any(axis=1)
    strength = hand_strength(board, deck=game.deck) if board and game.rules.hole_cards == 2 else None
    names, which = _classes(game.rules)
    return {
        "game": game.name,
        "cards": cards.name,
        "board": _names(game, board),
        "round": game.rules.round_names[number],
        "sizes": [game.rules.board_size(r) for r in range(game.rules.rounds)],
        "ranks": game.deck.rank_names[::-1],
        "suits": game.deck.suit_names,
        "private": game.rules.hole_cards,
        "buckets": cards.numbers[number],
        "seats": 1 if card_abstraction_of(agent, 1 - seat) is cards else 2,
        "hands": [
            {
                "name": game.deck.name(holes[hand].tolist()[::-1]),
                "cell": names[which[hand]],
                "bucket": int(row[hand]),
                "strength": None if strength is None else round(float(strength[hand]), 4),
            }
            for hand in np.flatnonzero(free).tolist()
        ],
    }


def _step(game: Holdem, before: Betting, action: str) -> dict[str, Any]:
    """Return an action on the path to a public state, with the betting before it."""
    if before.actor < 0:
        return {"history": before.history, "words": game.rules.round_names[before.round + 1], "seat": -1}
    words = describe_action(before, action, third=True)
    return {"history": before.history, "words": words, "seat": before.actor, "name": _seat(game, before)}


def _seat(game: Holdem, position: Betting) -> str:
    return game.rules.seat_names[position.actor]


def _title(game: Holdem, position: Betting) -> str:
    facing = f" faces {position.facing:,}" if position.facing else " opens" if not position.history else " to act"
    return f"{_seat(game, position)}{facing}"


def _legal(position: Betting, policy: PublicPolicy) -> list[str]:
    """Return the legal calls and folds that the agent never makes. The page lets its user follow them nevertheless."""
    return [action for action in position.passive_actions() if action not in policy.actions]


def _cells(
    game: Holdem,
    shares: FloatArray,
    ranges: tuple[FloatArray, FloatArray],  # weights of the hands of the player to act, and of the opponent's hands
    board: tuple[int, ...],
    row: Array | None,
) -> Iterator[dict[str, Any]]:
    """Yield the strategy and the buckets of each group of hands that differ only in suits.

    Impossible hands are skipped.
    """
    mine, theirs = ranges
    names, which = _classes(game.rules)
    holes = game.deck.holes(game.rules.hole_cards)
    free = (~np.isin(holes, board).any(axis=1)).astype(np.float64)
    count = np.bincount(which, free, len(names))
    reach, other = (np.bincount(which, each, len(names)) for each in (mine, theirs))
    taken = np.array([np.bincount(which, row * mine, len(names)) for row in shares])
    # the mean over all hands of a cell, for cells that never reach the decision
    level = np.array([np.bincount(which, row * free, len(names)) for row in shares])
    buckets: dict[int, list[list[int]]] = {}
    if row is not None:
        pairs, hands = np.unique(np.stack([which, row])[:, free > 0], axis=1, return_counts=True)
        for cell, bucket, number in np.vstack([pairs, hands]).T.tolist():
            buckets.setdefault(cell, []).append([bucket, number])
    for cell, name in enumerate(names):
        if not count[cell]:
            continue
        each = taken[:, cell] / reach[cell] if reach[cell] > 0 else level[:, cell] / count[cell]
        yield {
            "name": name,
            "reach": round(float(reach[cell] / count[cell]), 6),
            "other": round(float(other[cell] / count[cell]), 6),
            "hands": int(count[cell]),
            "shares": [round(float(share), 6) for share in each],
            "buckets": buckets.get(cell, []),
        }


@lru_cache(maxsize=16)
def _classes(rules: GameDef) -> tuple[tuple[str, ...], Array]:
    """Return the names of hands up to suits, such as AKs, and the index of the name of each hand, [hand]."""
    deck, holes = rules.deck, rules.deck.holes(rules.hole_cards)
    if rules.hole_cards == 1:
        return tuple(deck.name(hand) for hand in holes.tolist()), np.arange(len(holes))
    ranks, suits = holes.astype(np.int64) // deck.suits, holes % deck.suits
    high, low = ranks.max(axis=1), ranks.min(axis=1)
    suited = suits[:, 0] == suits[:, 1]
    number = np.where(suited, high * deck.ranks + low, low * deck.ranks + high)  # [row, column] of the square
    kept, which = np.unique(number, return_inverse=True)
    names = deck.rank_names
    said = []
    for place in kept.tolist():
        a, b = divmod(place, deck.ranks)
        said.append(names[max(a, b)] + names[min(a, b)] + ("s" if a > b else "o" if a < b else ""))
    return tuple(said), which


@lru_cache(maxsize=4)
def _apart(rules: GameDef) -> FloatArray:
    """Return 1 for each pair of hands without a common card and 0 for the other pairs, [hand, hand]."""
    game = Holdem(rules)
    return no_shared_card(game, np.arange(len(game.numbers))).astype(np.float64)


def _names(game: Holdem, cards: tuple[int, ...]) -> list[str]:
    return [game.deck.name((card,)) for card in cards]
