"""Build the betting tree of a poker game: all betting sequences, independent of cards.

In no-limit games, a *menu* selects the legal raises that the tree contains; without a menu it contains all of them. If
the menu can be expressed as arrays (`SizedMenu`), compiled code builds the tree, at millions of nodes per second.

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
FEW = 1000  # trees up to this many nodes are built in Python, since compiling the kernels takes seconds
COUNTED = 20_000  # trees up to this many nodes are counted in Python
FOLDS, CALLS = -1, 0  # values of `level` for a fold and for a call
SHOWN = -1  # value of `folded` at a showdown

Menu: TypeAlias = Callable[[Betting], Iterable[int]]  # returns the legal levels to which the actor may raise


@runtime_checkable
class SizedMenu(Protocol):
    """A bet-size menu whose raises are given as fractions of the pot.

    They depend only on the player, the round and the number of earlier raises.
    """

    def __call__(self, position: Betting, /) -> Iterable[int]:
        """Return the bet levels to which the player to act may raise."""

    def sizes(self, rounds: int) -> BetSizes:
        """Return the raises of the bet-size menu as arrays for compiled code."""


class BettingNodes(NamedTuple):
    """The nodes of a betting tree as arrays with one entry per node.

    Nodes of the betting within one round form a block.

    Parents come before children, and siblings are adjacent. The only child of a chance node is the root of another
    block.
    """

    parent: npt.NDArray[np.int32]  # −1 at the root
    actor: ByteArray  # 0, 1, CHANCE or TERMINAL
    round: ByteArray
    first_child: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]  # number of children
    leaf: npt.NDArray[np.int32]  # number of a terminal node among the leaves; otherwise −1
    block: npt.NDArray[np.int32]  # [block + 1] its first node


@dataclass(frozen=True, eq=False)
class BettingTree:
    """A poker game's betting as a tree, stored in arrays.

    Attributes
    ----------
    game : Holdem
        The rules.
    nodes : BettingNodes
        The player to act at each node, and its children.
    level : ndarray of int32, shape (nodes,)
        The action that leads to each node, as a number: see `level_of`.
    stake : ndarray of int32, shape (leaves,)
        Chips that the loser loses.
    folded : ndarray of int8, shape (leaves,)
        The player who has folded; SHOWN at a showdown.
    """

    game: Holdem
    nodes: BettingNodes
    level: npt.NDArray[np.int32]
    stake: npt.NDArray[np.int32]
    folded: npt.NDArray[np.int8]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of the action that leads to each node, such as ``r300``.

        Use it for small trees only: each label is a separate string.
        """
        return tuple(map(self._label, range(len(self.level))))

    @cached_property
    def leaves(self) -> tuple[Betting, ...]:
        """The betting positions at the leaves of the tree, for use with small trees."""
        return tuple(self.game.replay(self.history(node)) for node in np.flatnonzero(self.nodes.leaf >= 0).tolist())

    def same_bets(self, other: BettingTree) -> bool:
        """Return whether another betting tree has equal nodes and actions."""
        mine, theirs = (self.nodes.parent, self.level), (other.nodes.parent, other.level)
        return all(map(np.array_equal, mine, theirs))

    def history(self, node: int) -> str:
        """Return the actions from the root to a node as one string."""
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
    """Return each player's winnings at each leaf of a betting tree, for every result of a showdown.

    If the game has tilted payoffs, these are returned.

    Parameters
    ----------
    game : Holdem
        The rules.
    stake, folded : ndarray, shape (ends,)
        As in `BettingTree`.

    Returns
    -------
    ndarray, shape (ends, 2, 3)
        Chips by player and by showdown result: player 1 wins, split pot, player 0 wins. After a fold, the three are
        equal.

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
    """Convert an action to a number: −1 for a fold, 0 for a call, else the raise's level.

    The size of a raise is its level in chips, or 1 if raises have a fixed size.

    >>> [level_of(label) for label in ("f", "c", "r", "r300")]
    [-1, 0, 1, 300]
    """
    if label.startswith(RAISE):
        return int(label[1:] or 1)
    return FOLDS if label == FOLD else CALLS


def label_of(level: int, *, limit: bool) -> str:
    """Convert an action's number to its label, such as ``f``, ``c`` or ``r300``.

    With `limit`, the name of a raise has no number.
    """
    if level == FOLDS:
        return FOLD
    return CALL if level == CALLS else RAISE if limit else f"{RAISE}{level}"


def call_index(nodes: BettingNodes, level: npt.NDArray[np.int32], node: Any) -> Any:
    """Return the index of the call among the actions at a decision.

    It is 1 if the first action is a fold, because the player faces a bet; otherwise it is 0.

    `level` is that of `BettingTree`; `node` is one decision or an array of decisions.

    >>> from kilt.games import load_game
    >>> kuhn = betting_tree(load_game("kuhn"))
    >>> [int(call_index(kuhn.nodes, kuhn.level, node)) for node in np.flatnonzero(kuhn.nodes.actor >= 0)]
    [0, 0, 1, 1]
    """
    return level[nodes.first_child[node]] == FOLDS


def call_indices(nodes: BettingNodes, level: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the index of the call among the actions, for each node of a betting tree.

    It is 0 for nodes at which no player acts.
    """
    acts = np.flatnonzero(nodes.actor >= 0)
    places = np.zeros(len(nodes.actor), dtype=np.int64)
    places[acts] = call_index(nodes, level, acts)
    return places


def acted_before(nodes: BettingNodes) -> BoolArray:
    """Return whether the player to act has acted before in the hand, for each node of a betting tree."""
    acted, above = np.zeros(len(nodes.actor), dtype=np.bool_), nodes.parent
    while (above >= 0).any():
        acted |= (above >= 0) & (nodes.actor[above] == nodes.actor)
        above = np.where(above >= 0, nodes.parent[above], -1)
    return acted


def after_chance(nodes: BettingNodes) -> npt.NDArray[np.int64]:
    """Map each chance node of a betting tree to the first later node that is no chance node.

    All other nodes are mapped to themselves.
    """
    place = np.arange(len(nodes.actor))
    for r in range(int(nodes.round.max()), -1, -1):
        chance = np.flatnonzero((nodes.actor == CHANCE) & (nodes.round == r))
        place[chance] = place[nodes.first_child[chance]]
    return place


def require_tree(nodes: BettingNodes, rounds: int) -> None:
    """Check that arrays from a file form a valid betting tree.

    Raises ValueError otherwise.

    After this check, code that follows parents or children terminates and stays inside the arrays.
    """
    count = len(nodes.actor)
    if not count or any(array.shape != (count,) or array.dtype.kind != "i" for array in nodes[:-1]):
        raise ValueError("the arrays of the betting tree differ in length or type")
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
            raise ValueError(f"{name} of the betting tree points outside the tree")


def betting_tree(game: Holdem, menu: Menu | None = None, most_nodes: int = MOST_NODES) -> BettingTree:
    """Build the betting tree of a game.

    Parameters
    ----------
    game : Holdem
        The rules.
    menu : Menu, optional
        Selects the raises of a no-limit game. Default: all legal raises.
    most_nodes : int
        Limit on the number of nodes.

    Returns
    -------
    BettingTree
        The tree as arrays.

    Raises
    ------
    GameError
        If there would be more than `most_nodes` nodes.
    """
    if (found := _by_positions(game, menu, most_nodes)) is not None:
        return _of_positions(game, found)
    nodes, leaves, blocks, _ = _write(game, menu, most_nodes, _room(game))
    tree = _room(game, nodes, leaves, blocks)
    _write(game, menu, most_nodes, tree)
    return tree


class BettingSize(NamedTuple):
    """The size of a betting tree: its nodes, and both players' decisions and actions in each round."""

    nodes: int
    decisions: tuple[tuple[int, ...], ...]  # [player][round]
    actions: tuple[tuple[int, ...], ...]  # [player][round] total over all decisions


@lru_cache(maxsize=16)
def betting_size(game: Holdem, menu: Menu | None = None, most_nodes: int = MOST_NODES) -> BettingSize:
    """Count the nodes of a betting tree without storing it.

    Raises GameError if the tree would have too many nodes.

    >>> from kilt.games import load_game
    >>> betting_size(load_game("holdem.limit.2p"))[:2]
    (17221, ((4, 35, 315, 2835), (4, 35, 315, 2835)))
    """
    if (found := _by_positions(game, menu, most_nodes, COUNTED)) is not None:
        return _counted(game, found.nodes)
    nodes, _, _, counts = _write(game, menu, most_nodes, _room(game))
    decisions, actions = (tuple(map(tuple, each)) for each in counts.tolist())
    return BettingSize(nodes, decisions, actions)


def _by_positions(game: Holdem, menu: Menu | None, most_nodes: int, few: int = FEW) -> PublicTree | None:
    """Build a tree position by position, or return None if it has more than `few` nodes."""
    if menu is not None and not isinstance(menu, SizedMenu):
        return public_tree(game, menu, most_nodes)
    with suppress(_TooManyError):
        return public_tree(game, menu, min(few, most_nodes))
    return None


def _counted(game: Holdem, nodes: BettingNodes) -> BettingSize:
    """Return the size of a tree that has been built."""
    acts = nodes.actor >= 0
    where = nodes.actor[acts].astype(np.int64) * game.rules.rounds + nodes.round[acts]
    decisions, actions = (
        tuple(map(tuple, np.bincount(where, weights, 2 * game.rules.rounds).astype(int).reshape(2, -1).tolist()))
        for weights in (None, nodes.children[acts])
    )
    return BettingSize(len(nodes.actor), decisions, actions)


def _room(game: Holdem, nodes: int = 0, leaves: int = 0, blocks: int = 0) -> BettingTree:
    """Allocate the arrays of a tree. With no nodes, the arrays are empty, and the tree can only be counted."""

    def wide(size: int) -> npt.NDArray[np.int32]:
        return np.empty(size, dtype=np.int32)

    def small(size: int) -> npt.NDArray[np.int8]:
        return np.empty(size, dtype=np.int8)

    above, below = (wide(nodes), small(nodes), small(nodes)), (wide(nodes), wide(nodes), wide(nodes), wide(blocks + 1))
    return BettingTree(game, BettingNodes(*above, *below), wide(nodes), wide(leaves), small(leaves))


def _write(
    game: Holdem, menu: Menu | None, most_nodes: int, tree: BettingTree
) -> tuple[int, int, int, npt.NDArray[np.int64]]:
    """Write a tree to its arrays, or only count it. Return its numbers of nodes, leaves, blocks and decisions."""
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
    """Raised if a betting tree would have too many nodes."""

    def __init__(self, game: Game, most_nodes: int) -> None:
        super().__init__(
            f"the betting tree of {game.name} has more than {most_nodes:,} nodes: use fewer bet sizes; in a "
            "configuration without bet sizes, give `actions`, such as '50%, 1x, a; 1x, a'"
        )


# Position by position ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicTree:
    """A game's public tree: all sequences of public actions.

    It also has the position at each leaf.
    """

    nodes: BettingNodes
    labels: tuple[str, ...]  # [node] the action that leads to it
    leaves: tuple[Position, ...]  # [leaf]


def public_tree(game: Game, menu: Menu | None = None, most_nodes: int = MOST_NODES) -> PublicTree:
    """Build the public tree of any game, position by position.

    In no-limit games, the tree contains the raises that the `menu` returns. Raises GameError if there would be more
    than `most_nodes` nodes.
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
    """Convert a tree of positions to a betting tree of numbers."""
    leaves = [leaf for leaf in tree.leaves if isinstance(leaf, Betting)]
    level = np.array([level_of(label) for label in tree.labels], dtype=np.int32)
    stake = np.array([leaf.stake for leaf in leaves], dtype=np.int32)
    folded = np.array([SHOWN if leaf.folded is None else leaf.folded for leaf in leaves], dtype=np.int8)
    return BettingTree(game, tree.nodes, level, stake, folded)


def on_menu(position: Position, menu: Menu | None) -> tuple[str, ...]:
    """Return the legal actions at a position, with raises limited to those of a menu.

    Without a menu, all legal actions are returned.
    """
    if menu is None or not isinstance(position, Betting) or position.rules.betting == "limit" or position.actor < 0:
        return position.actions()
    return (*position.passive_actions(), *(f"r{to}" for to in sorted(menu(position))))
