"""Compute hand grids of solved spots: a player's strategy or range for every starting hand."""

from __future__ import annotations

import numpy as np

from kilt.errors import GameError
from kilt.spots.solution import SpotNode
from kilt.spots.spot import SEATS, Spot
from kilt.viz.ranges import Grid


def spot_grid(node: SpotNode, title: str) -> Grid:
    """Return the strategy at a decision of a solved spot as a hand grid.

    Parameters
    ----------
    node : SpotNode
        A decision of a game with two private cards.
    title : str
        Title of the square.

    Returns
    -------
    Grid
        The strategy in each cell is the mean over its hands, by weight. The height of a bar is the largest weight of
        the cell's hands, relative to that of all cells. `plot_ranges` draws it.
    """
    deck = node.game.deck
    if node.game.rules.hole_cards != 2:
        raise GameError(f"{node.game.name} deals 1 private card: hand grids are for games that deal 2")
    ranks, own = deck.rank_names[::-1], node.reach[node.actor]
    share = np.zeros((deck.ranks, deck.ranks, len(node.actions)))
    reach = np.zeros((deck.ranks, deck.ranks))
    for name, places in node.classes(node.actor).items():
        high, low = ranks.index(name[0]), ranks.index(name[1])
        cell = (low, high) if name.endswith("o") else (high, low)
        weight = own[places]
        share[cell] = weight @ node.strategy[places] / weight.sum()
        reach[cell] = weight.max()
    return Grid(title, ranks, node.words, share, reach / max(reach.max(), 1e-300), node.frequencies)


def range_grid(spot: Spot, seat: int) -> Grid:
    """Return a player's range at the start of a spot as a hand grid.

    Parameters
    ----------
    spot : Spot
        A spot of a game with two private cards.
    seat : int
        0 is out of position, 1 in position.

    Returns
    -------
    Grid
        The height of a bar is the mean weight of the hands in a cell.
    """
    deck, held = spot.subgame.deck, spot.subgame.rules.hole_cards
    if held != 2:
        raise GameError(f"{spot.game} deals 1 private card: hand grids are for games that deal 2")
    weights = deck.range(spot.ranges[seat], held, strict=False)
    high, low = deck.ranks - 1 - (deck.holes(held)[:, ::-1] // deck.suits).T  # ranks, highest first, as in the square
    suited = np.equal(*(deck.holes(held) % deck.suits).T)
    cells = np.where(suited, high, low), np.where(suited, low, high)
    total, count = np.zeros((2, deck.ranks, deck.ranks))
    np.add.at(total, cells, weights)
    np.add.at(count, cells, 1.0)
    reach = total / np.maximum(count, 1.0)
    share = (reach > 0).astype(np.float64)[:, :, None]
    title, words = f"{SEATS[seat]}, {weights.sum():g} hands", ("in the range",)
    return Grid(title, deck.rank_names[::-1], words, share, reach, np.ones(1))
