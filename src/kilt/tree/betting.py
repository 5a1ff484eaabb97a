"""The tree of public actions in poker: one node per position of the betting, whatever the cards.

In no-limit games a *menu* picks the raises that the tree has out of those that are legal; without one it has them all.
Compiled code writes trees out, millions of nodes a second, where the menu can say itself as numbers (`SizedMenu`).

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
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from kilt.arrays import BoolArray, ByteArray, FloatArray
from kilt.errors import GameError
from kilt.games.game import CHANCE, REVEAL, TERMINAL, Game, Position
from kilt.games.gamedef import UNLIMITED_RAISES
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem
from kilt.tree.betting_kernels import BetSizes, BettingRules, write_tree

MOST_NODES = 20_000_000
FEW = 1000  # nodes that Python writes out before the compiled code, which takes seconds to compile, is called
FOLDS, CALLS = -1, 0  # levels that stand for a fold and for a call
SHOWN = -1  # in place of who has folded, where nobody has

Menu: TypeAlias = Callable[[Betting], Iterable[int]]  # the levels to which the actor may raise, all of them legal


@runtime_checkable
class SizedMenu(Protocol):
    """A menu whose raises depend on the player, the round and the raises so far alone, as parts of the pot."""

    def __call__(self, position: Betting, /) -> Iterable[int]:
        """The levels to which the actor may raise."""

    def sizes(self, rounds: int) -> BetSizes:
        """The bet sizes of the menu as arrays for a number of rounds, as compiled code takes them."""


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


@dataclass(frozen=True, eq=False)
class BettingTree:
    """The betting of a game as arrays.

    Attributes
    ----------
    game : Holdem
        The rules.
    nodes : BettingNodes
        Who acts where, and what follows.
    level : ndarray of int32, shape (nodes,)
        The action that led to a node as a number: see `level_of`.
    stake : ndarray of int32, shape (leaves,)
        Chips that the loser loses.
    folded : ndarray of int8, shape (leaves,)
        Who has folded; SHOWN at a showdown.
    """

    game: Holdem
    nodes: BettingNodes
    level: npt.NDArray[np.int32]
    stake: npt.NDArray[np.int32]
    folded: npt.NDArray[np.int8]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """[node] The action that led there as the ACPC writes it: for small trees, since each is a text of its own."""
        return tuple(map(self._label, range(len(self.level))))

    @cached_property
    def leaves(self) -> tuple[Betting, ...]:
        """[leaf] The positions at the ends: for small trees."""
        return tuple(self.game.replay(self.history(node)) for node in np.flatnonzero(self.nodes.leaf >= 0).tolist())

    def same_bets(self, other: BettingTree) -> bool:
        """Whether another tree has the same nodes and actions."""
        mine, theirs = (self.nodes.parent, self.level), (other.nodes.parent, other.level)
        return all(map(np.array_equal, mine, theirs))

    def history(self, node: int) -> str:
        """The actions from the root to a node."""
        labels = []
        while node > 0:
            labels.append(self._label(node))
            node = int(self.nodes.parent[node])
        return "".join(reversed(labels))

    def _label(self, node: int) -> str:
        if node == 0:
            return ""
        if self.nodes.actor[self.nodes.parent[node]] == CHANCE:
            return REVEAL
        return label_of(int(self.level[node]), limit=self.game.rules.betting == "limit")


def payoffs_of(game: Holdem, stake: npt.NDArray[np.int32], folded: npt.NDArray[np.int8]) -> FloatArray:
    """What players win where hands end, by the payoffs of a game, which may be tilted.

    Parameters
    ----------
    game : Holdem
        The rules.
    stake, folded : ndarray, shape (ends,)
        As in `BettingTree`.

    Returns
    -------
    ndarray, shape (ends, 2, 3)
        Chips by player, and by who wins the showdown: player 1, nobody, player 0. After a fold all three are alike.

    >>> from kilt.games import load_game
    >>> payoffs_of(load_game("kuhn"), np.array([2, 1], np.int32), np.array([SHOWN, 0], np.int8)).tolist()
    [[[-2.0, 0.0, 2.0], [2.0, -0.0, -2.0]], [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]]
    """
    shown = (folded == SHOWN)[:, None]
    sign = np.where(shown, [-1.0, 0.0, 1.0], np.where(folded == 0, -1.0, 1.0)[:, None])
    won = stake[:, None, None] * np.stack([sign, -sign], axis=1)
    wins, loses, folds, takes = 1 + game.tilts.T[:, :, None]  # each [player, 1]
    return np.asarray(
        won * np.where(won > 0, np.where(shown[..., None], wins, takes), np.where(shown[..., None], loses, folds))
    )


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


def call_places(nodes: BettingNodes, level: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """[node] `call_place` of all decisions; 0 where nobody acts."""
    acts = np.flatnonzero(nodes.actor >= 0)
    places = np.zeros(len(nodes.actor), dtype=np.int64)
    places[acts] = call_place(nodes, level, acts)
    return places


def acted_before(nodes: BettingNodes) -> BoolArray:
    """[node] Whether the player who acts there has acted before in the hand."""
    acted, above = np.zeros(len(nodes.actor), dtype=np.bool_), nodes.parent
    while (above >= 0).any():
        acted |= (above >= 0) & (nodes.actor[above] == nodes.actor)
        above = np.where(above >= 0, nodes.parent[above], -1)
    return acted


def after_chance(nodes: BettingNodes) -> npt.NDArray[np.int64]:
    """[node] The node itself or, where it is chance, the first decision or end that follows."""
    place = np.arange(len(nodes.actor))
    for r in range(int(nodes.round.max()), -1, -1):
        chance = np.flatnonzero((nodes.actor == CHANCE) & (nodes.round == r))
        place[chance] = place[nodes.first_child[chance]]
    return place


def require_tree(nodes: BettingNodes, rounds: int) -> None:
    """Raise ValueError where arrays from a file are no betting tree of a game with `rounds` rounds.

    Every walk from a node to its parent or to its children ends then, and stays inside the arrays.
    """
    count = len(nodes.actor)
    if not count or any(array.shape != (count,) or array.dtype.kind != "i" for array in nodes[:-1]):
        raise ValueError("the arrays of the betting tree are not alike")
    inner = nodes.actor != TERMINAL
    place, child, number = np.flatnonzero(inner), nodes.first_child[inner], nodes.children[inner]
    sound = {
        "parent": nodes.parent[0] == -1 and ((nodes.parent[1:] >= 0) & (nodes.parent[1:] < np.arange(1, count))).all(),
        "actor": ((nodes.actor <= 1) & (nodes.actor >= min(CHANCE, TERMINAL))).all(),
        "round": ((nodes.round >= 0) & (nodes.round < rounds)).all(),
        "first_child": (child > place).all(),
        "children": (number > 0).all() and (child + number.astype(np.int64) <= count).all(),
        "leaf": ((nodes.leaf >= -1) & (nodes.leaf < count)).all(),
        "block": nodes.block[0] == 0 and nodes.block[-1] == count and (np.diff(nodes.block) > 0).all(),
    }
    for name, holds in sound.items():
        if not holds:
            raise ValueError(f"{name} of the betting tree points out of it")


def betting_tree(game: Holdem, menu: Menu | None = None, most_nodes: int = MOST_NODES) -> BettingTree:
    """Write out the betting of a game.

    Parameters
    ----------
    game : Holdem
        The rules.
    menu : Menu, optional
        The raises of a no-limit game that are in the tree. Left out: all that are legal.
    most_nodes : int
        GameError is raised where there are more nodes than that.

    Returns
    -------
    BettingTree
    """
    if (found := _by_positions(game, menu, most_nodes)) is not None:
        return _of_positions(game, found)
    nodes, leaves, blocks, _ = _write(game, menu, most_nodes, _room(game))
    tree = _room(game, nodes, leaves, blocks)
    _write(game, menu, most_nodes, tree)
    return tree


class BettingSize(NamedTuple):
    """How large a betting tree is."""

    nodes: int
    decisions: tuple[tuple[int, ...], ...]  # [player][round]
    actions: tuple[tuple[int, ...], ...]  # [player][round] of all their decisions together


@lru_cache(maxsize=16)
def betting_size(game: Holdem, menu: Menu | None = None, most_nodes: int = MOST_NODES) -> BettingSize:
    """The size of `betting_tree`, which is gone through but not kept; GameError where it is too large to be written.

    >>> from kilt.games import load_game
    >>> betting_size(load_game("holdem.limit.2p"))[:2]
    (17221, ((4, 35, 315, 2835), (4, 35, 315, 2835)))
    """
    if (found := _by_positions(game, menu, most_nodes)) is not None:
        return _counted(game, found.nodes)
    nodes, _, _, counts = _write(game, menu, most_nodes, _room(game))
    decisions, actions = (tuple(map(tuple, each)) for each in counts.tolist())
    return BettingSize(nodes, decisions, actions)


def _by_positions(game: Holdem, menu: Menu | None, most_nodes: int) -> PublicTree | None:
    """The tree position by position, where it is small or its menu is no `SizedMenu`; None where kernels are needed."""
    if menu is not None and not isinstance(menu, SizedMenu):
        return public_tree(game, menu, most_nodes)
    with suppress(_TooManyError):
        return public_tree(game, menu, min(FEW, most_nodes))
    return None


def _counted(game: Holdem, nodes: BettingNodes) -> BettingSize:
    """The size of a tree that is there."""
    acts = nodes.actor >= 0
    where = nodes.actor[acts].astype(np.int64) * game.rules.rounds + nodes.round[acts]
    decisions, actions = (
        tuple(map(tuple, np.bincount(where, weights, 2 * game.rules.rounds).astype(int).reshape(2, -1).tolist()))
        for weights in (None, nodes.children[acts])
    )
    return BettingSize(len(nodes.actor), decisions, actions)


def _room(game: Holdem, nodes: int = 0, leaves: int = 0, blocks: int = 0) -> BettingTree:
    """A tree to be written; without nodes, one that is only counted."""

    def wide(size: int) -> npt.NDArray[np.int32]:
        return np.empty(size, dtype=np.int32)

    def small(size: int) -> npt.NDArray[np.int8]:
        return np.empty(size, dtype=np.int8)

    above, below = (wide(nodes), small(nodes), small(nodes)), (wide(nodes), wide(nodes), wide(nodes), wide(blocks + 1))
    return BettingTree(game, BettingNodes(*above, *below), wide(nodes), wide(leaves), small(leaves))


def _write(
    game: Holdem, menu: Menu | None, most_nodes: int, tree: BettingTree
) -> tuple[int, int, int, npt.NDArray[np.int64]]:
    """Write out a tree, or count it: numbers of nodes, leaves and blocks, and [what, player, round] of decisions."""
    rules = game.rules
    limit = rules.betting == "limit"
    none = BetSizes(np.empty(0), np.empty((2, rules.rounds, 0), dtype=np.int64), 1.0, False)
    raise_sizes = rules.raise_sizes if limit else (0,) * rules.rounds
    max_raises = [most if most != UNLIMITED_RAISES else 2**31 for most in rules.max_raises]
    begin = game.start()
    start = begin.round, begin.actor, *begin.spent, begin.last_raise, begin.raises, begin.to_act, -1
    said = rules.stacks, rules.blinds, rules.first_player, raise_sizes, max_raises, start
    arrays = BettingRules(*(np.array(values, dtype=np.int64) for values in said))
    counts = np.zeros((2, 2, rules.rounds), dtype=np.int64)
    sizes = menu.sizes(rules.rounds) if isinstance(menu, SizedMenu) and not limit else none
    nodes, leaves, blocks = write_tree(
        arrays, sizes, most_nodes, tree.nodes, tree.level, tree.stake, tree.folded, counts
    )
    if nodes > most_nodes:
        raise _TooManyError(game, most_nodes)
    return nodes, leaves, blocks, counts


class _TooManyError(GameError):
    """A tree has more nodes than it may have."""

    def __init__(self, game: Game, most_nodes: int) -> None:
        super().__init__(
            f"the betting tree of {game.name} has more than {most_nodes:,} nodes: use a menu with fewer bet sizes"
        )


# Position by position ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicTree:
    """The public actions of any game as arrays, with their labels and the positions at its leaves."""

    nodes: BettingNodes
    labels: tuple[str, ...]  # [node] the action that led here
    leaves: tuple[Position, ...]  # [leaf]


def public_tree(game: Game, menu: Menu | None = None, most_nodes: int = MOST_NODES) -> PublicTree:
    """Write out the public actions of a game position by position, as `betting_tree` orders them: slow, for any rules.

    In no-limit games those raises are in it that are on the `menu`. GameError where there are more than `most_nodes`.
    """
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
                raise _TooManyError(game, most_nodes)
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
    return PublicTree(nodes, tuple(labels), tuple(leaves))


def _of_positions(game: Holdem, tree: PublicTree) -> BettingTree:
    """A tree of positions as one of arrays."""
    leaves = [leaf for leaf in tree.leaves if isinstance(leaf, Betting)]
    level = np.array([level_of(label) for label in tree.labels], dtype=np.int32)
    stake = np.array([leaf.stake for leaf in leaves], dtype=np.int32)
    folded = np.array([SHOWN if leaf.folded is None else leaf.folded for leaf in leaves], dtype=np.int8)
    return BettingTree(game, tree.nodes, level, stake, folded)


def on_menu(position: Position, menu: Menu | None) -> tuple[str, ...]:
    """The legal actions, with the raises of a no-limit game cut down to the menu, if there is one."""
    if menu is None or not isinstance(position, Betting) or position.rules.betting == "limit" or position.actor < 0:
        return position.actions()
    return (*position.passive_actions(), *(f"r{to}" for to in sorted(menu(position))))
