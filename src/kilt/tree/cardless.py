"""Best responses to an opponent whose actions do not depend on the cards.

Such an opponent plays the same with all hands, so a number replaces the vector of reach: values per unit of reach do
not depend on earlier actions. Blocks of betting with equal stakes, probabilities and continuations have equal values,
and are merged into one *class*. Limit hold'em has 567 blocks of betting in its last round, but only 16 classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kilt.arrays import FloatArray, IntArray
from kilt.tree import cardless_kernels as kernels
from kilt.tree.cardless_kernels import Classes
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, REVEAL, Table, VectorTree


class CardlessWalk(NamedTuple):
    """A prepared best response to an opponent whose actions ignore the cards."""

    player: int
    classes: Classes
    opened: IntArray  # [chance node of the first round] the class that it opens
    reach: FloatArray  # [chance node of the first round] the opponent's probability of reaching it

    @classmethod
    def against(cls, game: VectorGame, player: int, table: Table) -> CardlessWalk:
        """Prepare a player's best response to a strategy that ignores the cards.

        Parameters
        ----------
        game : VectorGame
            A game of at least two rounds, without tables by board.
        player : int
            The player who responds.
        table : ndarray, shape `game.shape`
            The opponent's strategy, for which `looks_at_cards` is False.
        """
        tree = game.tree
        kept: list[dict[str, Any]] = []  # the columns of each class
        of_entry = np.zeros(len(tree.entry_node), np.int64)
        start = [0]
        for r in range(len(tree.rows) - 1, 0, -1):
            known: dict[bytes, int] = {}
            for entry in range(tree.entry_start[r], tree.entry_start[r + 1]):
                found = _block(tree, player, table, r, entry, of_entry)
                signature = b"".join(column.tobytes() for column in found.values())
                if signature not in known:
                    known[signature] = len(kept)
                    kept.append(found)
                of_entry[entry] = known[signature]
            start.append(len(kept))
        begin = np.cumsum([0, *(len(found["kind"]) for found in kept)])
        real = ("share", "stake")
        columns: dict[str, Any] = {
            name: np.concatenate([found[name] for found in kept]).astype(np.float64 if name in real else np.int32)
            for name in kept[0]
        }
        first = slice(tree.entry_start[1], tree.entry_start[2])
        trunk = _block(tree, player, table, 0, 0, of_entry)
        opens = tree.entry_node[first]  # the first block begins with node 0
        opened = np.zeros(len(kept), np.bool_)
        opened[of_entry[first][trunk["reached"][opens] > 0]] = True
        for which in range(len(kept) - 1, -1, -1):  # from the second round on
            below = kept[which]["below"]
            opened[below[opened[which] & (below >= 0)]] = True
        classes = Classes(**columns, begin=begin, opened=opened, start=np.array(start[::-1]))
        reach = np.ones(len(trunk["share"]))
        for node in np.flatnonzero(trunk["actions"]).tolist():  # parents come first
            children = slice(trunk["child"][node], trunk["child"][node] + trunk["actions"][node])
            reach[children] = reach[node] * trunk["share"][children]
        return cls(player, classes, of_entry[first], reach[opens])

    def flop_values(self, game: VectorGame, part: VectorTree) -> FloatArray:
        """Return a best response's winnings with each hand on some flops, summed over later cards.

        There is one row for each betting sequence of the first round.

        The shape is (chance nodes of the first round, hands). Equal to `VectorGame.flop_values` up to rounding. `part`
        is a result of `flop_tree`.
        """
        hands, classes = game.shape[1], self.classes
        value = np.zeros((int(np.diff(classes.begin).max()), hands))
        total = np.zeros((len(classes.begin) - 1, hands))
        if classes.opened.any():
            with game.workspace() as work:
                kernels.values(part, self.player, classes, work, np.zeros((2, hands)), value, total)
        found: FloatArray = self.reach[:, None] * total[self.opened]
        return found


def looks_at_cards(table: Table) -> bool:
    """Return whether a strategy depends on the hand."""
    return bool((table != table[:, :1]).any())


def _block(tree: VectorTree, player: int, table: Table, r: int, entry: int, of_entry: IntArray) -> dict[str, Any]:
    """Return the nodes of one betting round after a given chance node, as columns of `Classes`."""
    nodes = tree.nodes
    begin, end = nodes.block[tree.entry_block[entry] :][:2].tolist()
    part = slice(begin, end)
    decides = nodes.kind[part] == DECISION
    share, below = np.ones(end - begin), np.full(end - begin, -1)
    for node in (begin + np.flatnonzero(decides & (nodes.actor[part] != player))).tolist():
        row = tree.table_start[r] + tree.entry_row[entry] + nodes.row[node]
        entries = np.maximum(table[row : row + nodes.children[node], 0], 0.0).astype(np.float64)
        first = nodes.first_child[node] - begin
        whole = entries.sum()
        share[first : first + len(entries)] = entries / whole if whole > 0 else 1 / len(entries)
    if r + 1 < len(tree.rows):
        following = slice(tree.entry_start[r + 1], tree.entry_start[r + 2])
        opened, inside = tree.entry_node[following], of_entry[following]
        mine = (opened >= begin) & (opened < end)
        below[opened[mine] - begin] = inside[mine]
    reached = np.ones(end - begin, np.bool_)
    for node in np.flatnonzero(decides).tolist():  # parents come first
        first = nodes.first_child[begin + node] - begin
        children = slice(first, first + nodes.children[begin + node])
        reached[children] = reached[node] & (share[children] > 0)
    below[~reached] = -1
    return {
        "kind": nodes.kind[part].astype(np.int64),
        "own": decides & (nodes.actor[part] == player),
        "child": np.where(decides, nodes.first_child[part] - begin, 0),
        "actions": np.where(decides, nodes.children[part], 0),
        "reached": reached,
        "share": share,
        "stake": np.where(nodes.kind[part] > REVEAL, nodes.stake[player, part], 0.0),
        "below": below,
    }
