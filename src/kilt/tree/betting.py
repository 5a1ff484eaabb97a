"""The tree of public actions: bets in poker, bids in Bluff. One node per position, whatever the cards.

In no-limit games a *menu* picks the raises that the tree has out of those that are legal; without one it has them all.

>>> from kilt.games import load_game
>>> tree = betting_tree(load_game("holdem.limit.2p"))
>>> [int(np.sum((tree.nodes.actor >= 0) & (tree.nodes.round == r))) for r in range(4)]  # [Johanson16 table 5.2]
[8, 70, 630, 5670]
>>> pot = betting_tree(load_game("holdem.nolimit.2p"), lambda position: [300] if max(position.spent) < 300 else [])
>>> pot.history(pot.nodes.first_child[0] + 2)
'r300'
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray
from kilt.errors import GameError
from kilt.games.game import CHANCE, TERMINAL, Game, Position
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem

MOST_NODES = 20_000_000
FOLDS, CALLS = -1, 0  # levels that stand for a fold and for a call

Menu: TypeAlias = Callable[[Betting], Iterable[int]]  # the levels to which the actor may raise, all of them legal


class BettingNodes(NamedTuple):
    """Nodes in blocks: all that follows the opening of a round up to its end, breadth first.

    A parent comes before its children, and siblings stand together. The one child of a chance node opens another block.
    """

    parent: npt.NDArray[np.int32]  # −1 at the root
    actor: ByteArray  # 0, 1, CHANCE or TERMINAL
    round: ByteArray
    first_child: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]  # how many
    leaf: npt.NDArray[np.int32]  # the number of a terminal node among them, −1 elsewhere
    block: npt.NDArray[np.int32]  # [block + 1] where it begins


@dataclass(frozen=True)
class BettingTree:
    """The public actions of a game as arrays, with their labels and the positions at its leaves."""

    nodes: BettingNodes
    labels: tuple[str, ...]  # [node] the action that led here
    leaves: tuple[Position, ...]  # [leaf]

    @cached_property
    def level(self) -> npt.NDArray[np.int32]:
        """[node] The action that led there as a number: see `level_of`."""
        return np.array([level_of(label) for label in self.labels], dtype=np.int32)

    def history(self, node: int) -> str:
        """The actions from the root to a node."""
        labels = []
        while node > 0:
            labels.append(self.labels[node])
            node = int(self.nodes.parent[node])
        return "".join(reversed(labels))


def level_of(label: str) -> int:
    """An action as a number: the chips that a raise goes to (1 where raises have one size), FOLDS or CALLS.

    >>> [level_of(label) for label in ("f", "c", "r", "r300")]
    [-1, 0, 1, 300]
    """
    if label.startswith(RAISE):
        return int(label[1:] or 1)
    return FOLDS if label == FOLD else CALLS


def label_of(level: int, *, limit: bool) -> str:
    """Inverse of `level_of`: the label of an action, raises without a number where the game is `limit`."""
    if level == FOLDS:
        return FOLD
    return CALL if level == CALLS else RAISE if limit else f"{RAISE}{level}"


def call_place(nodes: BettingNodes, level: npt.NDArray[np.int32], node: Any) -> Any:
    """Which action of a decision is the call: 1 (True) where the first action is a fold, otherwise 0 (False).

    `level` is that of `BettingTree`; `node` one decision or an array of them. Where it is 1, the player faces a bet.

    >>> from kilt.games import load_game
    >>> kuhn = betting_tree(load_game("kuhn"))
    >>> [int(call_place(kuhn.nodes, kuhn.level, node)) for node in np.flatnonzero(kuhn.nodes.actor >= 0)]
    [0, 0, 1, 1]
    """
    return level[nodes.first_child[node]] == FOLDS


def betting_tree(game: Game, menu: Menu | None = None, most_nodes: int = MOST_NODES) -> BettingTree:
    """Write out the public actions of a game, in no-limit games those raises that are on the `menu`."""
    parent: list[int] = []
    actor: list[int] = []
    rounds: list[int] = []
    first_child: list[int] = []
    children: list[int] = []
    leaf: list[int] = []
    block: list[int] = []
    labels: list[str] = []
    leaves: list[Position] = []
    openings: deque[tuple[int, str, Position]] = deque([(-1, "", game.start())])  # of rounds
    while openings:
        queue = deque([openings.popleft()])
        block.append(len(parent))
        if queue[0][0] >= 0:
            first_child[queue[0][0]] = len(parent)
        while queue:
            above, label, position = queue.popleft()
            node = len(parent)
            if node + len(queue) + len(openings) >= most_nodes:
                raise GameError(
                    f"the betting tree of {game.name} has more than {most_nodes:,} nodes: "
                    "use a menu with fewer bet sizes"
                )
            parent.append(above)
            labels.append(label)
            actor.append(position.actor)
            rounds.append(position.round)
            leaf.append(len(leaves) if position.actor == TERMINAL else -1)
            if position.actor == TERMINAL:
                leaves.append(position)
            actions = on_menu(position, menu)
            first_child.append(node + len(queue) + 1)
            children.append(len(actions))
            following = openings if position.actor == CHANCE else queue
            following.extend((node, action, position.after(action)) for action in actions)
    nodes = BettingNodes(
        parent=np.array(parent, dtype=np.int32),
        actor=np.array(actor, dtype=np.int8),
        round=np.array(rounds, dtype=np.int8),
        first_child=np.array(first_child, dtype=np.int32),
        children=np.array(children, dtype=np.int32),
        leaf=np.array(leaf, dtype=np.int32),
        block=np.array([*block, len(parent)], dtype=np.int32),
    )
    return BettingTree(nodes, tuple(labels), tuple(leaves))


class BettingSize(NamedTuple):
    """How large a betting tree is."""

    nodes: int
    decisions: tuple[tuple[int, ...], ...]  # [player][round]
    actions: tuple[tuple[int, ...], ...]  # [player][round] of all their decisions together


def betting_size(game: Holdem, menu: Menu | None = None) -> BettingSize:
    """The size of `betting_tree`, which is not written out: positions that go on alike are counted once.

    >>> from kilt.games import load_game
    >>> betting_size(load_game("holdem.limit.2p"))[:2]
    (17221, ((4, 35, 315, 2835), (4, 35, 315, 2835)))
    """
    rounds = game.rules.rounds
    known: dict[tuple[object, ...], npt.NDArray[np.int64]] = {}

    def count(position: Betting) -> npt.NDArray[np.int64]:
        going_on = position.round, position.actor, position.spent, position.raises, position.last_raise, position.to_act
        key = (*going_on, position.folded)
        if key not in known:
            actions = on_menu(position, menu)
            total = np.zeros(1 + 4 * rounds, dtype=np.int64)  # nodes; by player and round, decisions and actions
            total[0] = 1
            if position.actor >= 0:
                total[1:].reshape(2, 2, rounds)[:, position.actor, position.round] = 1, len(actions)
            known[key] = sum((count(position.after(action)) for action in actions), total)
        return known[key]

    nodes, *rest = count(game.start()).tolist()
    decisions, actions = (tuple(map(tuple, each)) for each in np.reshape(rest, (2, 2, rounds)).tolist())
    return BettingSize(nodes, decisions, actions)


def on_menu(position: Position, menu: Menu | None) -> tuple[str, ...]:
    """The legal actions, with the raises of a no-limit game cut down to the menu, if there is one."""
    if menu is None or not isinstance(position, Betting) or position.rules.betting == "limit" or position.actor < 0:
        return position.actions()
    return (*position.passive_actions(), *(f"r{to}" for to in sorted(menu(position))))
