"""The flat extensive form of any small game: every deal, every action, every chance event is a node.

>>> from kilt.games import load_game
>>> flat = flat_tree(load_game("kuhn"))
>>> len(flat.nodes.parent), len(flat.infosets)
(58, 12)
>>> flat.infosets[0], flat.actions[0]
('Qs||', ('c', 'r'))
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.cards.deck import ByteArray, FloatArray
from kilt.errors import GameError
from kilt.games.game import CHANCE, TERMINAL, Board, Game, Hands, Position

MOST_NODES = 20_000_000


class FlatNodes(NamedTuple):
    """Nodes in breadth-first order: a parent comes before its children, and siblings stand together."""

    parent: npt.NDArray[np.int32]  # −1 at the root
    actor: ByteArray  # 0, 1, CHANCE or TERMINAL
    first_child: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]  # how many
    chance: FloatArray  # the probability of the step into this node where chance took it, else 1
    infoset: npt.NDArray[np.int32]  # the information set of the actor, −1 where no player acts
    payoff: FloatArray  # to player 0 at the end, else 0
    infoset_player: ByteArray  # [information set]
    infoset_start: npt.NDArray[
        np.int32
    ]  # [information set + 1] its first slot in tables over (information set, action)


@dataclass(frozen=True)
class FlatTree:
    """A whole game as arrays, with the names that the arrays leave out."""

    game: Game
    nodes: FlatNodes
    infosets: tuple[str, ...]  # hand|board|history, as its player sees it
    actions: tuple[tuple[str, ...], ...]  # of each information set


def flat_tree(game: Game, most_nodes: int = MOST_NODES) -> FlatTree:
    """Write out a game. The first two chance nodes deal a hand to player 0, then to player 1.

    Both players remember all they have seen, so an information set is the hand, the board and the history. A game of
    more than `most_nodes` nodes is refused.
    """
    deals = game.deals()
    own = deals.sum(axis=1)
    names = game.hands(0), game.hands(1)
    parent: list[int] = []
    actor: list[int] = []
    first_child: list[int] = []
    children: list[int] = []
    chance: list[float] = []
    infoset: list[int] = []
    payoff: list[float] = []
    infosets: dict[str, int] = {}
    players: list[int] = []
    actions: list[tuple[str, ...]] = []
    following: dict[str, list[Position]] = {}  # by history: each position is worked out once, not once per deal

    # What is to be written next: its parent, the chance of the step, and the state; `None` for a hand not dealt yet.
    queue: deque[tuple[int, float, Position, tuple[int | None, int | None], Board]] = deque()
    queue.append((-1, 1.0, game.start(), (None, None), ()))
    while queue:
        above, step, position, (mine, theirs), board = queue.popleft()
        node = len(parent)
        if node >= most_nodes:
            raise GameError(
                f"{game.name} has more than {most_nodes:,} nodes: too large to be written out as a flat tree"
            )
        parent.append(above)
        chance.append(step)
        branches: list[tuple[float, Position, tuple[int | None, int | None], Board]]
        who, where, value = CHANCE, -1, 0.0
        if mine is None:
            branches = [(float(own[h]), position, (h, None), ()) for h in np.flatnonzero(own).tolist()]
        elif theirs is None:
            row = deals[mine] / own[mine]
            branches = [(float(row[h]), position, (mine, h), ()) for h in np.flatnonzero(row).tolist()]
        else:
            hands: Hands = (mine, theirs)
            who = position.actor
            if position.history not in following:
                following[position.history] = [position.after(action) for action in position.actions()]
            if who == TERMINAL:
                value = game.payoffs(position, hands, board)[0]
            if who == CHANCE:
                after = following[position.history][0]
                branches = [(p, after, hands, revealed) for revealed, p in game.reveals(position, hands, board)]
            else:
                branches = [(1.0, after, hands, board) for after in following[position.history]]
            if who >= 0:
                name = f"{names[who][hands[who]]}|{game.board_name(board)}|{position.history}"
                where = infosets.setdefault(name, len(infosets))
                if where == len(players):
                    players.append(who)
                    actions.append(position.actions())
        actor.append(who)
        infoset.append(where)
        payoff.append(value)
        first_child.append(node + len(queue) + 1)
        children.append(len(branches))
        queue.extend((node, *branch) for branch in branches)

    nodes = FlatNodes(
        parent=np.array(parent, dtype=np.int32),
        actor=np.array(actor, dtype=np.int8),
        first_child=np.array(first_child, dtype=np.int32),
        children=np.array(children, dtype=np.int32),
        chance=np.array(chance),
        infoset=np.array(infoset, dtype=np.int32),
        payoff=np.array(payoff),
        infoset_player=np.array(players, dtype=np.int8),
        infoset_start=np.cumsum([0, *map(len, actions)], dtype=np.int32),
    )
    return FlatTree(game, nodes, tuple(infosets), tuple(actions))
