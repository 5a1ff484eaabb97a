"""Allocate scratch memory for passes over a public tree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import FULL
from kilt.cards.equity import ranking_workspace
from kilt.cards.equity_kernels import PlayerRankings
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.lanes import LANES
from kilt.tree.vector_arrays import ShowdownLanes, Vectors, VectorTree, Workspace


def new_workspace(game: Game, tree: VectorTree, dtype: npt.DTypeLike) -> Workspace:
    """Allocate one thread's scratch memory. Pages never written to cost nothing."""
    places, hands = int(tree.nodes.place.max()) + 1, tree.prior.shape[1]
    cards = (FULL, 2, 5)  # unused by games without cards
    if isinstance(game, Holdem):
        cards = (game.deck, game.rules.hole_cards, sum(game.rules.board_cards))
    ranking = ranking_workspace(*cards, len(tree.deck.bits))
    return Workspace(
        vectors=Vectors(
            reach=np.zeros((places, hands), dtype),
            source=np.zeros(places, dtype=np.int64),
            alive=np.ones(places, dtype=np.bool_),
            value=np.zeros((places, hands), dtype),
            scale=np.empty((2, hands), dtype),
            expanded=np.zeros((int(tree.nodes.children.max()), hands), dtype),
            second=np.zeros((places, hands), dtype),
            blended=np.zeros((places, hands), dtype),
        ),
        board=np.zeros(len(tree.rows), dtype=np.int64),
        following=np.zeros(len(tree.rows), dtype=np.int64),
        weight=np.ones(len(tree.rows)),
        cards=np.zeros(tree.board.shape[1], dtype=np.int64),
        order=np.empty(hands, dtype=np.uint16),
        ranking=ranking,
        sides=PlayerRankings(
            order=np.empty((2, hands), np.uint16),
            ends=np.empty((2, hands), np.uint16),
            cards=np.empty((2, 2, hands), np.uint8),
            times=np.ones((2, 3, hands), np.float32),
            same=np.empty(hands, np.uint16),
        ),
        lanes=ShowdownLanes(
            source=np.zeros(LANES, dtype=np.int64),
            wanted=np.zeros(LANES, dtype=np.int64),
            ready=np.zeros(1, dtype=np.int64),
            reach=np.zeros(LANES * (hands + 1), dtype),
            result=np.zeros(LANES * hands, dtype),
            whole=np.zeros(LANES * hands, dtype),
            tied=np.zeros(LANES * hands, dtype),
            cards=np.zeros(LANES * len(ranking.by_card), dtype),
        ),
    )
