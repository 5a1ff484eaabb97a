"""Build the whole game tree of a small game, with a node for every deal, chance event and action.

>>> from kilt.games import load_game
>>> flat = flat_tree(load_game("kuhn"))
>>> len(flat.nodes.parent), len(flat.infosets)
(58, 12)
>>> flat.infosets[0], flat.actions[0]
('Qs||', ('c', 'r'))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kilt.arrays import ByteArray, FloatArray
from kilt.errors import GameError
from kilt.games.game import CHANCE, TERMINAL, Board, Game, Position
from kilt.games.tilt import TiltedGame

MOST_NODES = 20_000_000

State = TypeVar("State")


class FlatNodes(NamedTuple):
    """The nodes of a small game's tree as arrays, parents before children.

    Tables over (information set, action) have one *slot* for each action of each information set, in order.
    """

    parent: npt.NDArray[np.int32]  # −1 at the root
    actor: ByteArray  # 0, 1, CHANCE or TERMINAL
    first_child: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]  # number of children
    chance: FloatArray  # probability of a chance event that leads here, otherwise 1
    infoset: npt.NDArray[np.int32]  # the actor's information set; −1 if no player acts
    payoff: FloatArray  # payoff of player 0 at terminal nodes, otherwise 0
    level: npt.NDArray[np.int32]  # [depth + 1] first node of each depth
    infoset_player: ByteArray  # [information set]
    infoset_start: npt.NDArray[np.int32]  # [information set + 1] its first slot
    infoset_after: npt.NDArray[np.int32]  # [information set] its player's last slot before it, −1 if none
    # [player, node] in groups: each of the player's information sets with the nodes after it
    order: npt.NDArray[np.int32]
    # [player, information set + 2] start of each group; group 0 is the beginning of the game
    group: npt.NDArray[np.int32]
    surplus: FloatArray  # sum of both payoffs at terminal nodes; empty if the game is zero-sum, as without tilts


@dataclass(frozen=True)
class FlatTree:
    """A small game's tree as arrays, with the names of its information sets and actions."""

    name: str  # of the game
    nodes: FlatNodes
    infosets: tuple[str, ...]  # hand|board|history, as the player sees them
    actions: tuple[tuple[str, ...], ...]  # actions of each information set

    @cached_property
    def is_general_sum(self) -> bool:
        """Whether the game is not zero-sum, because its payoffs were modified."""
        return bool(self.nodes.surplus.size)


class MergedTree(NamedTuple):
    """A copy of a game with some information sets merged, so that players know less.

    Players have perfect recall.
    """

    tree: FlatTree
    slot: npt.NDArray[np.int64]  # [slot of the whole game] slot of the merged information set

    def lifted(self, strategy: FloatArray) -> FloatArray:
        """Convert a strategy of the merged game to a strategy of the original game."""
        played: FloatArray = strategy[self.slot]
        return played


class Expansion(NamedTuple):
    """A state of a game: the player to act, and the next states with chance probabilities."""

    actor: int
    branches: Sequence[tuple[float, object]] = ()
    infoset: str = ""
    actions: tuple[str, ...] = ()
    payoff: float = 0.0  # payoff of player 0
    surplus: float = 0.0  # sum of both payoffs


class _Public:
    """A public position with cached properties, which are computed once rather than once per deal."""

    def __init__(self, position: Position) -> None:
        self.position, self.actor = position, position.actor

    @cached_property
    def history(self) -> str:
        return self.position.history

    @cached_property
    def actions(self) -> tuple[str, ...]:
        return self.position.actions()

    @cached_property
    def following(self) -> list[_Public]:
        return [_Public(self.position.after(action)) for action in self.actions]


class _Deal(NamedTuple):
    """A state of a game while its tree is built; hands are None until they are dealt."""

    public: _Public
    mine: int | None = None
    theirs: int | None = None
    board: Board = ()


def flat_tree(game: Game, most_nodes: int = MOST_NODES) -> FlatTree:
    """Build the game tree of a small game from its rules.

    Every deal, chance event and action leads to a separate node. The first two chance nodes deal a hand to player 0,
    then to player 1.

    With perfect recall, an information set is given by the hand, the visible part of the board, and the history.
    """
    deals = game.deals()
    own = deals.sum(axis=1)
    names, board_name = (game.hands(0), game.hands(1)), cache(game.board_name)

    def expand(state: _Deal) -> Expansion:
        public, mine, theirs, board = state
        if mine is None:
            return Expansion(CHANCE, [(own[h], state._replace(mine=h)) for h in np.flatnonzero(own).tolist()])
        if theirs is None:
            row = deals[mine] / own[mine]
            return Expansion(CHANCE, [(row[h], state._replace(theirs=h)) for h in np.flatnonzero(row).tolist()])
        hands, actor = (mine, theirs), public.actor
        if actor == TERMINAL:
            won, other = game.payoffs(public.position, hands, board)
            if won + other and not isinstance(game, TiltedGame):
                raise GameError(f"{game.name} is not zero-sum: what one player wins, the other must lose")
            return Expansion(actor, payoff=won, surplus=won + other)
        if actor == CHANCE:
            (after,) = public.following
            revealed = game.reveals(public.position, hands, board)
            return Expansion(actor, [(p, _Deal(after, mine, theirs, shown)) for shown, p in revealed])
        return Expansion(
            actor,
            [(1.0, _Deal(after, mine, theirs, board)) for after in public.following],
            infoset=f"{names[actor][hands[actor]]}|{board_name(board, actor)}|{public.history}",
            actions=public.actions,
        )

    return expand_tree(game.name, _Deal(_Public(game.start())), expand, most_nodes)


def expand_tree(name: str, root: State, expand: Callable[[State], Expansion], most_nodes: int = MOST_NODES) -> FlatTree:
    """Build the game tree of a small game from a function that returns each state's successors."""
    parent: list[int] = []
    actor: list[int] = []
    first_child: list[int] = []
    children: list[int] = []
    chance: list[float] = []
    infoset: list[int] = []
    payoff: list[float] = []
    surplus: list[float] = []
    level: list[int] = []
    infosets: dict[str, int] = {}
    players: list[int] = []
    actions: list[tuple[str, ...]] = []
    start = [0]  # first slot of each information set
    after: list[int] = []
    queue: deque[tuple[int, float, State, tuple[int, int]]] = deque([(-1, 1.0, root, (-1, -1))])
    while queue:
        above, probability, state, taken = queue.popleft()  # `taken`: the last slot of each player
        node = len(parent)
        if node + len(queue) >= most_nodes:
            raise GameError(f"{name} has more than {most_nodes:,} nodes: too large for a flat tree")
        if not level or above >= level[-1]:  # the first node whose parent is on the previous level
            level.append(node)
        found = expand(state)
        where = -1
        if found.actor >= 0:
            where = infosets.setdefault(found.infoset, len(infosets))
            if where == len(players):
                players.append(found.actor)
                actions.append(found.actions)
                start.append(start[-1] + len(found.actions))
                after.append(taken[found.actor])
            same = (players[where], after[where], actions[where]) == (
                found.actor,
                taken[found.actor],
                found.actions,
            )
            if not same:
                raise GameError(
                    f"{name} has imperfect recall or inconsistent states at {found.infoset!r}: all states of an "
                    "information set need the same earlier actions of the player, and the same choices"
                )
        parent.append(above)
        actor.append(found.actor)
        chance.append(float(probability))
        infoset.append(where)
        payoff.append(found.payoff)
        surplus.append(found.surplus)
        first_child.append(node + len(queue) + 1)
        children.append(len(found.branches))
        for place, (step, following) in enumerate(found.branches):
            slot = start[where] + place
            then = (slot, taken[1]) if found.actor == 0 else (taken[0], slot) if found.actor == 1 else taken
            queue.append((node, step, following, then))  # type: ignore[arg-type]
    nodes = FlatNodes(
        parent=np.array(parent, dtype=np.int32),
        actor=np.array(actor, dtype=np.int8),
        first_child=np.array(first_child, dtype=np.int32),
        children=np.array(children, dtype=np.int32),
        chance=np.array(chance),
        infoset=np.array(infoset, dtype=np.int32),
        payoff=np.array(payoff),
        level=np.array([*level, len(parent)], dtype=np.int32),
        infoset_player=np.array(players, dtype=np.int8),
        infoset_start=np.array(start, dtype=np.int32),
        infoset_after=np.array(after, dtype=np.int32),
        order=np.empty((2, 0), dtype=np.int32),
        group=np.empty((2, 0), dtype=np.int32),
        surplus=np.array(surplus if any(surplus) else []),
    )
    order, group = zip(*(_groups(player, nodes) for player in (0, 1)), strict=True)
    nodes = nodes._replace(order=np.stack(order), group=np.stack(group))
    return FlatTree(name, nodes, tuple(infosets), tuple(actions))


def merge(tree: FlatTree, names: Sequence[str]) -> MergedTree:
    """Merge information sets of a game tree: those to which a list gives equal names become one.

    Parameters
    ----------
    tree : FlatTree
        The whole game.
    names : sequence of str
        A name for each of its information sets.

    Returns
    -------
    MergedTree
        The merged game.

    Raises
    ------
    GameError
        If information sets of one name have different players, actions or earlier actions.

    >>> from kilt.games import load_game
    >>> whole = flat_tree(load_game("kuhn"))
    >>> blind = merge(whole, [name.split("|")[-1] for name in whole.infosets])  # players ignore their card
    >>> blind.tree.infosets, blind.slot.tolist()[:8]
    (('', 'c', 'r', 'cr'), [0, 1, 0, 1, 0, 1, 2, 3])
    """
    nodes, number = tree.nodes, dict.fromkeys(names)
    order = {name: place for place, name in enumerate(number)}
    into = np.array([order[name] for name in names])
    _, first = np.unique(into, return_index=True)
    sizes = np.diff(nodes.infoset_start)
    start = np.concatenate([[0], np.cumsum(sizes[first])])
    slot = np.arange(nodes.infoset_start[-1]) + np.repeat(start[into] - nodes.infoset_start[:-1], sizes)
    after = np.where(nodes.infoset_after >= 0, slot[nodes.infoset_after], -1)
    unlike = (nodes.infoset_player != nodes.infoset_player[first][into]) | (after != after[first][into])
    unlike |= np.array([tree.actions[one] != tree.actions[other] for one, other in enumerate(first[into].tolist())])
    if unlike.any():
        where = int(np.argmax(unlike))
        raise GameError(
            f"{tree.infosets[where]!r} cannot be {names[where]!r}: all information sets of that name must have the "
            "same player, the same actions, and the same earlier actions"
        )
    merged = nodes._replace(
        infoset=np.where(nodes.infoset >= 0, into[nodes.infoset], -1).astype(np.int32),
        infoset_player=nodes.infoset_player[first],
        infoset_start=start.astype(np.int32),
        infoset_after=after[first].astype(np.int32),
    )
    ordered, group = zip(*(_groups(player, merged) for player in (0, 1)), strict=True)
    merged = merged._replace(order=np.stack(ordered), group=np.stack(group))
    actions = tuple(tree.actions[where] for where in first.tolist())
    return MergedTree(FlatTree(tree.name, merged, tuple(number), actions), slot)


def _groups(player: int, nodes: FlatNodes) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the order in which a pass over the tree visits a player's information sets, and the start of each group.

    A node belongs to the group of the player's information set at the node or last before it, and to group 0 if there
    is none. With perfect recall, play never returns to a group: later information sets have higher numbers.
    """
    of = np.where(nodes.actor == player, nodes.infoset + 1, 0)
    for start, end in zip(nodes.level[1:-1], nodes.level[2:], strict=True):
        of[start:end] = np.where(nodes.actor[start:end] == player, of[start:end], of[nodes.parent[start:end]])
    order = np.argsort(of, kind="stable").astype(np.int32)
    return order, np.searchsorted(of[order], np.arange(len(nodes.infoset_player) + 2)).astype(np.int32)
