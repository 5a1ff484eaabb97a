"""Hand grids of spots: what is done with every hand of a range at a decision."""

from __future__ import annotations

import numpy as np

from kilt.errors import GameError
from kilt.spots.solution import SpotNode
from kilt.viz.ranges import Grid


def spot_grid(node: SpotNode, title: str) -> Grid:
    """The strategy of the player who decides, in the square of starting hands.

    Parameters
    ----------
    node : SpotNode
        A decision of a game with two private cards.
    title : str
        Above the square.

    Returns
    -------
    Grid
        Cells have the mean over their hands, by weight; bars are as high as the mean weight of hands that the board
        leaves, the highest of all being 1. `plot_ranges` draws it.
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
