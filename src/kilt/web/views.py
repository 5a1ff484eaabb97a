"""What the page shows of a strategy at a public state, as plain data: numbers, names and words.

A place is a game, what was bet (``history``, as the ACPC writes it) and the board. Any agent that tells its strategy
can be looked at: blueprints, solved small games, baselines.

>>> from kilt.players.agents import load_player
>>> from kilt.games.playable import load_holdem
>>> agent, game = load_player("always-call", load_holdem("leduc"))
>>> view = strategy_view(agent, game, "", ())
>>> view["title"], [(action["words"], action["share"]) for action in view["actions"]], len(view["cells"])
('first to act opens', [('check', 1.0), ('bet 2', 0.0)], 6)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.cards.equity import hand_strength
from kilt.errors import GameError, PlayError
from kilt.evaluate.decisions import JudgedDecision, decision_values, exact, ranges
from kilt.evaluate.self_play import apart
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import CALL, FOLD, Betting, Holdem
from kilt.play.agent import Agent, KnownAgent, PublicPolicy
from kilt.play.person import in_words
from kilt.players.agents import strategy_of
from kilt.web.card_views import bucket_row, cards_of

KINDS = {FOLD: "fold", CALL: "call"}  # of actions; all others are raises


def read_board(game: Holdem, text: str) -> tuple[int, ...]:
    """The cards of a board from their names; GameError or CardError where they cannot be one."""
    board = game.deck.cards(text)
    most = game.rules.board_size(game.rules.rounds - 1)
    if len(board) > most:
        raise GameError(f"{text} has {len(board)} cards, and the board of {game.name} has {most}: leave some out")
    return board


def strategy_view(agent: KnownAgent, game: Holdem, history: str, board: tuple[int, ...]) -> dict[str, Any]:
    """What an agent does at a public state with every hand.

    Parameters
    ----------
    agent : KnownAgent
        Who plays in both seats.
    game : Holdem
        What it plays.
    history : str
        What was bet so far, as the ACPC writes it.
    board : tuple of int
        The public cards so far; GameError where these are not those of the round.

    Returns
    -------
    dict
        ``state`` is ``decision``, ``cards`` where the next public cards are to be chosen, or ``over``. At a decision:
        ``strategy`` names the strategy that is shown, as the agent plays it; ``actions`` with the share of each over
        all hands that come here, and ``cells``: hands that differ in suits alone are one cell, with its ``reach`` and
        that of the opponent, ``other`` (0 to 1), the ``shares`` of the actions, and ``buckets``: those that its hands
        fall into and how many fall into each; none without a card abstraction.
    """
    position = game.replay(history)
    seen = game.rules.board_size(position.round)
    if len(board) < seen:
        raise GameError(f"the board has {len(board)} cards after {history!r}, and {seen} are dealt: choose the others")
    board = board[:seen]
    view: dict[str, Any] = {
        "game": game.name,
        "history": history,
        "board": _names(game, board),
        "round": game.rules.round_names[position.round],
        "pot": sum(position.spent),
        "path": [_step(game, before, action) for before, action in game.positions.moves(position)],
        "ranks": game.deck.rank_names[::-1],
        "suits": game.deck.suit_names,
        "private": game.rules.hole_cards,
    }
    if position.actor == TERMINAL:
        return view | {"state": "over", "title": "the hand is over"}
    if position.actor == CHANCE:
        count = game.rules.board_cards[position.round + 1]
        title = f"the {game.rules.round_names[position.round + 1]} comes"
        return view | {"state": "cards", "cards": count, "title": title}
    view["strategy"] = strategy_of(agent)
    policy, reach = agent.policy(position, board), ranges(agent, game, position, board)
    mine, theirs = reach[position.actor], reach[1 - position.actor]
    weight = mine * (_apart(game.rules) @ theirs)
    shares = policy.shares
    overall = shares @ weight / max(weight.sum(), 1e-300)
    return view | {
        "state": "decision",
        "seat": position.actor,
        "title": _title(game, position),
        "actions": [
            {
                "label": action,
                "words": in_words(position, action),
                "kind": KINDS.get(action, "raise"),
                "share": round(float(share), 6),
                "after": history + action,
            }
            for action, share in zip(policy.actions, overall, strict=True)
        ],
        "ev_known": exact(game, position),
        "cells": list(_cells(game, shares, (mine, theirs), board, bucket_row(agent, board, position.actor))),
        "legal": _legal(position, policy),
    }


def values_view(
    agent: KnownAgent, game: Holdem, history: str, board: tuple[int, ...], cell: str = ""
) -> dict[str, Any]:
    """What each action of a decision is worth with every hand that comes there; PlayError where that is not known.

    Parameters
    ----------
    agent : KnownAgent
        Who plays in both seats.
    game : Holdem
        What it plays.
    history : str
        What was bet so far, as the ACPC writes it.
    board : tuple of int
        The public cards so far.
    cell : str
        The only cell of the grid that matters, such as ``AKs``, which takes less time; empty: all.

    Returns
    -------
    dict
        ``actions`` by label, and ``hands``: the name of each, its cell of the grid, its ``weight`` (how likely it is
        here; they sum to 1), the ``shares`` of the actions, their ``values`` in chips from here on, and the
        ``margins`` of these: half-widths of 95% intervals, 0 where they are exact.
    """
    position = game.replay(history)
    board = board[: game.rules.board_size(position.round)]
    names, which = _classes(game.rules)
    if cell and cell not in names:
        raise PlayError(f"there is no hand {cell[:20]!r} in {game.name}: choose one of the grid")
    if not cell and not exact(game, position):
        raise PlayError("many boards are to come: what actions are worth is estimated for one cell of the grid")
    asked = np.flatnonzero(which == names.index(cell)) if cell else np.arange(len(which))
    found = decision_values(agent, game, position, board, hands=asked.tolist() if cell else None)
    reach = ranges(agent, game, position, board)
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


def judged_view(decision: JudgedDecision) -> dict[str, Any]:
    """A person's decision, beside what the agent would have done with the same hand.

    Each of ``options`` has the probability that the agent takes it (``share``) and its ``value``: the expected chips
    from this decision on, against the hands that the agent would hold here, if both players follow the agent's strategy
    after it. ``loss`` is the highest value of the options less the value of this one. ``margin`` and ``loss_margin``
    are half-widths of 95% intervals, 0 for exact values. All four are None if the values are unknown, and none of them
    is rounded: the page rounds what it shows.
    """
    position = decision.position
    return {
        "history": position.history,
        "taken": in_words(position, decision.taken),
        "options": [
            {
                "words": in_words(position, option.action),
                "share": round(option.share, 4),
                "value": known_chips(option.value),
                "margin": known_chips(option.margin),
                "loss": known_chips(option.loss),
                "loss_margin": known_chips(option.loss_margin),
                "taken": option.action == decision.taken,
            }
            for option in decision.options
        ],
    }


def known_chips(value: float) -> float | None:
    """A number of chips for JSON, which has no nan: None if it is unknown."""
    return None if np.isnan(value) else float(value)


def abstraction_view(agent: Agent, game: Holdem, board: tuple[int, ...], seat: int = 0) -> dict[str, Any]:
    """Into which buckets the hands of a board fall.

    Parameters
    ----------
    agent : Agent
        Who plays a blueprint; PlayError where it does not.
    game : Holdem
        What it plays.
    board : tuple of int
        The public cards of a round.
    seat : int
        Whose buckets, where those of the players differ.

    Returns
    -------
    dict
        ``hands`` with the name, the bucket and, from the second round on, the hand strength of each; ``buckets`` is
        how many the round has on all boards, ``seats`` is 2 where those of the players differ.
    """
    cards = cards_of(agent, seat)
    number = cards.round_of(board)
    row = cards.rounds[number].row(board)
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
        "seats": 1 if cards_of(agent, 1 - seat) is cards else 2,
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
    """One move of the way to a place, and where that place was."""
    if before.actor < 0:
        return {"history": before.history, "words": game.rules.round_names[before.round + 1], "seat": -1}
    words = in_words(before, action, third=True)
    return {"history": before.history, "words": words, "seat": before.actor, "name": _seat(game, before)}


def _seat(game: Holdem, position: Betting) -> str:
    return game.rules.seat_names[position.actor]


def _title(game: Holdem, position: Betting) -> str:
    facing = f" faces {position.facing:,}" if position.facing else " opens" if not position.history else " to act"
    return f"{_seat(game, position)}{facing}"


def _legal(position: Betting, policy: PublicPolicy) -> list[str]:
    """Legal actions that the agent never takes, but one may go on with: those of the rules other than raises."""
    return [action for action in position.passive_actions() if action not in policy.actions]


def _cells(
    game: Holdem,
    shares: FloatArray,
    ranges: tuple[FloatArray, FloatArray],  # of who acts, and of the other
    board: tuple[int, ...],
    row: Array | None,
) -> Iterator[dict[str, Any]]:
    """Hands by name, with the buckets of a `row` [hand]; those that the board leaves none of are left out."""
    mine, theirs = ranges
    names, which = _classes(game.rules)
    holes = game.deck.holes(game.rules.hole_cards)
    free = (~np.isin(holes, board).any(axis=1)).astype(np.float64)
    count = np.bincount(which, free, len(names))
    reach, other = (np.bincount(which, each, len(names)) for each in (mine, theirs))
    taken = np.array([np.bincount(which, row * mine, len(names)) for row in shares])
    level = np.array([np.bincount(which, row * free, len(names)) for row in shares])  # where nobody comes with it
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
    """Names of hands as players write them, such as AKs, and [hand] the number of its name. Single cards: each."""
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
    """[hand, hand] 1 where two hands have no card in common."""
    game = Holdem(rules)
    return apart(game, np.arange(len(game.numbers))).astype(np.float64)


def _names(game: Holdem, cards: tuple[int, ...]) -> list[str]:
    return [game.deck.name((card,)) for card in cards]
