"""Data for the web page on a card abstraction: its buckets, their hand strength, and its board classes."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from kilt.abstraction.buckets import CardAbstraction
from kilt.abstraction.classes import BoardClasses, describe_boards
from kilt.arrays import Array, FloatArray, IntArray
from kilt.cards.deck import Deck
from kilt.cards.equity import strengths_on_boards
from kilt.errors import PlayError
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent
from kilt.play.blueprint import BlueprintAgent

BOARDS, BINS = 300, 20  # number of random complete boards for histograms, and number of bins
KEPT = 32  # cached tables of histograms
NEAREST, SHOWN = 6, 6  # how many similar buckets or classes the page shows, and how many boards of a class


def card_abstraction_of(agent: Agent, seat: int = 0) -> CardAbstraction:
    """Return the card abstraction of an agent.

    Raises PlayError if the agent has none.
    """
    if not isinstance(agent, BlueprintAgent):
        raise PlayError(
            f"{Path(agent.name).name} has no buckets of cards: choose a run that was solved in an abstraction"
        )
    return agent.blueprint.cards.each[seat % 2]


def bucket_row(agent: Agent, board: tuple[int, ...], seat: int) -> Array | None:
    """Return the bucket of each hand on a board, or None if the agent has no card abstraction."""
    if not isinstance(agent, BlueprintAgent):
        return None
    cards = card_abstraction_of(agent, seat)
    return cards.rounds[cards.round_of(board)].look_up_board(board)


def bucket_view(agent: Agent, game: Holdem, board: tuple[int, ...], bucket: int, seat: int = 0) -> dict[str, Any]:
    """Return data on a bucket: its frequency, its hands' strength, and similar buckets.

    Parameters
    ----------
    agent : Agent
        An agent that plays a blueprint; PlayError for others.
    game : Holdem
        The game of the agent.
    board : tuple of int
        Public cards; their number determines the round.
    bucket : int
        Number of the bucket; PlayError if it does not exist.
    seat : int
        The player, if the players have different buckets.

    Returns
    -------
    dict
        ``share`` is the bucket's share of all deals in the round. ``strength`` is a histogram of the final strength of
        its hands, with `BINS` bins from 0 to 1, on `BOARDS` random complete boards. ``nearest`` are the buckets with
        the most similar histograms, by the earth mover's ``distance`` in units of hand strength.
    """
    cards = card_abstraction_of(agent, seat)
    number = cards.round_of(board)
    profiles, sizes = _profiles(cards, game, number), cards.rounds[number].sizes
    if not 0 <= bucket < len(profiles):
        raise PlayError(f"there is no bucket {bucket}: the {game.rules.round_names[number]} has only {len(profiles):,}")
    apart = np.abs(np.cumsum(profiles, axis=1) - np.cumsum(profiles[bucket])).sum(axis=1) / BINS
    apart[~profiles.any(axis=1)] = np.inf  # none of its hands occurred
    near = [other for other in np.argsort(apart, kind="stable").tolist() if other != bucket and apart[other] < np.inf]
    return {
        "bucket": bucket,
        "share": round(float(sizes[bucket] / max(sizes.sum(), 1)), 6),
        "strength": profiles[bucket].round(4).tolist(),
        "nearest": [
            {
                "bucket": other,
                "distance": round(float(apart[other]), 4),
                "strength": profiles[other].round(4).tolist(),
            }
            for other in near[:NEAREST]
        ]
        if profiles[bucket].any()
        else [],
    }


def classes_view(agent: Agent, game: Holdem, board: tuple[int, ...], seat: int = 0) -> dict[str, Any]:
    """Return data on the board classes of a card abstraction.

    Parameters
    ----------
    agent, game, board, seat
        As in `bucket_view`.

    Returns
    -------
    dict
        ``classes`` is empty if boards are not clustered. Each class has its ``number``, its ``share`` of deals, a
        description (``words``), some ``boards`` and, if distances were stored, the ``nearest`` other classes by the
        mean distance of their boards. ``here`` is the class of `board`, or None if `board` has too few cards.
    """
    cards = card_abstraction_of(agent, seat)
    found = next((each.coded.classes for each in cards.rounds if each.coded), None)
    if found is None:
        return {"classes": [], "here": None}
    size = found.holdings.boards.shape[1]
    here = int(found.look_up(np.array([board], dtype=np.int64))[0]) if len(board) >= size else None
    return {"classes": _classes(found, game.deck), "here": here, "size": size}


def _classes(classes: BoardClasses, deck: Deck) -> list[dict[str, Any]]:
    boards, weights = classes.holdings.boards.astype(np.int64), classes.holdings.deal_counts
    labels = np.asarray(classes.labels, dtype=np.int64)
    apart = None if classes.distances is None else _class_distances(np.asarray(classes.distances), labels, weights)
    rows = []
    for number in range(classes.number):
        places = np.flatnonzero(labels == number)
        some = places[np.linspace(0, len(places) - 1, min(SHOWN, len(places))).astype(int)] if len(places) else places
        near = [] if apart is None else [o for o in np.argsort(apart[number], kind="stable").tolist() if o != number]
        rows.append(
            {
                "number": number,
                "share": round(float(weights[places].sum() / weights.sum()), 6),
                "words": describe_boards(boards[places], weights[places], deck) if len(places) else "no boards",
                "boards": [
                    [deck.name((card,)) for card in sorted(board, reverse=True)] for board in boards[some].tolist()
                ],
                "nearest": [
                    {"number": other, "distance": round(float(apart[number, other]), 4)}
                    for other in near[:NEAREST]
                    if apart is not None and np.isfinite(apart[number, other])
                ],
            }
        )
    return rows


def _class_distances(distances: FloatArray, labels: IntArray, weights: IntArray) -> FloatArray:
    """Return the mean distance between the boards of two classes, weighted by deals, [class, class].

    It is infinite for an empty class.
    """
    one = np.zeros((len(labels), int(labels.max()) + 1))
    one[np.arange(len(labels)), labels] = weights
    whole = one.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = one.T @ distances @ one / np.outer(whole, whole)
    return np.where(np.isnan(found), np.inf, found)


def _profiles(cards: CardAbstraction, game: Holdem, r: int) -> FloatArray:
    """Return a histogram of the final strength of the hands in each bucket of a round, [bucket, bin].

    Results are cached.
    """
    key = cards.fingerprint, r
    if key not in _known:
        if len(_known) >= KEPT:
            _known.clear()
        _known[key] = _made(cards, game, r)
    return _known[key]


_known: dict[tuple[str, int], FloatArray] = {}


def _made(cards: CardAbstraction, game: Holdem, r: int) -> FloatArray:
    deck, rules, size = game.deck, game.rules, game.rules.board_size(game.rules.rounds - 1)
    rng = np.random.default_rng(r)
    boards = np.stack([rng.permutation(deck.size)[:size] for _ in range(BOARDS)]).astype(np.int64)
    # wins count twice, ties once; negative: impossible hand
    wins = strengths_on_boards(boards, deck, rules.hole_cards).astype(np.int64)
    bins = np.minimum(wins * BINS // (2 * comb(deck.size - size - rules.hole_cards, rules.hole_cards)), BINS - 1)
    buckets = cards.rounds[r].look_up_boards(boards[:, : rules.board_size(r)]).astype(np.int64)
    free = wins >= 0
    found = np.bincount(buckets[free] * BINS + bins[free], minlength=cards.numbers[r] * BINS).reshape(-1, BINS)
    shares: FloatArray = found / np.maximum(found.sum(axis=1, keepdims=True), 1)
    return shares
