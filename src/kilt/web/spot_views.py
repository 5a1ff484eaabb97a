"""Data for the web page on a solved spot, decision by decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from kilt.arrays import FloatArray
from kilt.games.game import CHANCE, TERMINAL
from kilt.spots.line import UNIT, action_of, described, line_words
from kilt.spots.solution import SpotNode, SpotSolution
from kilt.spots.spot import SEATS
from kilt.spots.spot_tree import SpotTree
from kilt.web.views import json_number

KINDS = {"f": "fold", "x": "call", "c": "call"}  # kinds of words of a line; all others are raises


def spot_view(solution: SpotSolution, line: str) -> dict[str, Any]:
    """Return every hand's strategy at a decision of a solved spot, as JSON data.

    Parameters
    ----------
    solution : SpotSolution
        The solution.
    line : str
        A line as in `kilt.spots.line`, such as ``"b3 c / 7d"``; RunError if the tree has no such position.

    Returns
    -------
    dict
        As returned by `kilt.web.views.strategy_view`, plus the expected value of each cell and action in chips.
    """
    tree = SpotTree(solution.game)
    place, words, deck = tree.find_position(line), line_words(line), tree.subgame.deck
    rules, position = tree.subgame.rules, place.position
    view: dict[str, Any] = {
        "game": "spot",
        "spot": True,
        "history": " ".join(words),
        "board": [deck.name((card,)) for card in place.board],
        "round": rules.round_names[position.round],
        "path": _path(tree, words),
        "ranks": deck.rank_names[::-1],
        "suits": deck.suit_names,
        "private": rules.hole_cards,
        "ev_known": True,
    }
    view["pot"] = sum(position.spent) / UNIT
    if position.actor == TERMINAL:
        return view | {"state": "over", "title": "the hand is over"}
    if position.actor == CHANCE:
        after = position.round + 1
        title = f"the {rules.round_names[after]} is dealt next"
        return view | {"state": "cards", "cards": rules.board_cards[after], "title": title}
    node = solution.at(line)
    first, second = node.mean(node.ev)
    return view | {
        "state": "decision",
        "seat": node.actor,
        "title": f"{SEATS[node.actor]} to act",
        "worth": [json_number(first), json_number(second)],
        "actions": [
            {
                "label": action,
                "words": said,
                "kind": KINDS.get(action, "raise"),
                "share": round(float(share), 6),
                "after": " ".join([*words, action]),
            }
            for action, said, share in zip(node.actions, node.words, node.frequencies, strict=True)
        ],
        "cells": _cells(node),
        "legal": [],
    }


def spot_values(solution: SpotSolution, line: str) -> dict[str, Any]:
    """Return each hand's value of each action at a decision of a solved spot, as JSON data."""
    node = solution.at(line)
    chance = node.chance[node.actor]
    return {
        "actions": [{"label": action} for action in node.actions],
        "hands": [
            {
                "hand": node.hands[hand],
                "cell": name,
                "weight": round(float(chance[hand]), 9),
                "shares": [round(float(share), 6) for share in node.strategy[hand]],
                "values": [json_number(value) for value in node.action_ev[hand]],
            }
            for name, places in node.classes(node.actor).items()
            for hand in places[chance[places] > 0].tolist()
        ],
    }


def _path(tree: SpotTree, words: list[str]) -> list[dict[str, Any]]:
    """Return the actions and cards of a line, each with the line before it."""
    path, done = list[dict[str, Any]](), list[str]()
    rest = list(words)
    while rest:
        before, word = " ".join(done), rest.pop(0)
        if word == "/":
            cards = rest.pop(0)
            done += [word, cards]
            path.append({"history": before, "words": cards, "seat": -1})
            continue
        position = tree.find_position(before).position
        said = described(position, action_of(position, word, tree.game.menu))
        path.append({"history": before, "words": said, "seat": position.actor, "name": SEATS[position.actor]})
        done.append(word)
    return path


def _cells(node: SpotNode) -> list[dict[str, Any]]:
    """Return the mean strategy and values of each group of hands that differ only in suits."""
    reach = node.reach[node.actor]

    def mean(places: Any, values: FloatArray) -> FloatArray:
        """Return each column's mean over a group of hands, ignoring unknown values."""
        rows, weights = values[places], reach[places][:, None] * ~np.isnan(values[places])
        total: FloatArray = np.nansum(rows * weights, axis=0) / np.maximum(weights.sum(axis=0), 1e-300)
        return np.where(weights.any(axis=0), total, np.nan)

    return [
        {
            "name": name,
            "reach": round(float(reach[places].mean()), 6),
            "hands": len(places),
            "shares": [round(float(share), 6) for share in mean(places, node.strategy)],
            "values": [json_number(value) for value in mean(places, node.action_ev)],
        }
        for name, places in node.classes(node.actor).items()
    ]
