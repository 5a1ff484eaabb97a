"""Load, save and query strategies of small games by information set and action.

>>> from kilt.games import load_game
>>> from kilt.tree.best_response import uniform
>>> from kilt.tree.flat import flat_tree
>>> kuhn = flat_tree(load_game("kuhn"))
>>> strategy = Strategy.of(kuhn, uniform(kuhn))
>>> strategy["Ks||c"]
{'c': 0.5, 'r': 0.5}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.arrays import Array, FloatArray
from kilt.errors import GameError, file_errors
from kilt.games.holdem import Holdem
from kilt.notebook import Drawable, html_table
from kilt.strategy.postprocess import Rule, apply
from kilt.tree.flat import FlatTree

KIND = "strategy"
REMEDY = "solve again, or copy an intact one"  # advice in errors about damaged strategies
SHOWN = 32  # information sets that a notebook shows
_END = "\0"  # end of a name; names of open_spiel may contain line breaks


@dataclass(frozen=True)
class Strategy(Drawable):
    """A strategy for a small game, with a probability for each action at every information set.

    Attributes
    ----------
    game : str
        The name of the game.
    fingerprint : str
        Fingerprint of the tree.
    infosets : tuple of str
        Names of the information sets.
    actions : tuple of tuple of str
        The labels of each information set's actions.
    probabilities : ndarray, shape (slots,)
        A slot for each action of each information set, in order.
    figures : dict
        Facts that the solver recorded.
    """

    game: str
    fingerprint: str
    infosets: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    probabilities: FloatArray
    figures: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: FlatTree, probabilities: FloatArray, **figures: Any) -> Strategy:
        """Create a strategy for a small game from its action probabilities."""
        return cls(tree.name, tree_fingerprint(tree), tree.infosets, tree.actions, probabilities, figures)

    @classmethod
    def from_rows(cls, tree: FlatTree, rows: Mapping[str, Mapping[str, float]], **figures: Any) -> Strategy:
        """Create a strategy from a mapping of information sets to action probabilities.

        Missing actions get 0.

        Parameters
        ----------
        tree : FlatTree
            The tree of the game.
        rows : mapping
            By the name of an information set, then by the label of an action. Probabilities are scaled to add up to 1.
        **figures
            Facts to record with the strategy.

        Returns
        -------
        Strategy

        Raises
        ------
        GameError
            An information set or an action is unknown, or a row has no positive entry.
        """
        table = np.zeros(int(tree.nodes.infoset_start[-1]))
        for name, labels, start in zip(tree.infosets, tree.actions, tree.nodes.infoset_start.tolist(), strict=False):
            row = rows.get(name, {})
            if not set(row) <= set(labels) or not sum(row.values()) > 0 or min(row.values()) < 0:
                raise GameError(
                    f"information set {name!r} of {tree.name} has {dict(row)}: give shares of {', '.join(labels)}"
                )
            table[start : start + len(labels)] = [row.get(label, 0.0) / sum(row.values()) for label in labels]
        return cls.of(tree, table, **figures)

    def __getitem__(self, infoset: str) -> dict[str, float]:
        """Return the probability of each action at a named information set; raise GameError if the name is unknown."""
        if infoset not in self._number:
            raise GameError(f"{self.game} has no information set {infoset!r}: they look like {self.infosets[0]!r}")
        where = self._number[infoset]
        labels, start = self.actions[where], self._start[where]
        return dict(zip(labels, self.probabilities[start : start + len(labels)].tolist(), strict=True))

    def _repr_html_(self) -> str:
        rows = [
            (name, ", ".join(f"{action} {share:.3f}" for action, share in self[name].items()))
            for name in self.infosets[:SHOWN]
        ]
        more = f", first {SHOWN} of {len(self.infosets):,} information sets" if len(self.infosets) > SHOWN else ""
        return html_table(f"{self.game}{more}", dict(rows))

    def __repr__(self) -> str:
        return f"Strategy({self.game!r}, {len(self.infosets):,} information sets)"

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.infosets)}

    @cached_property
    def _start(self) -> list[int]:
        return list(accumulate(map(len, self.actions), initial=0))

    def on(self, tree: FlatTree) -> FloatArray:
        """Return the probabilities as an array, after checking that the strategy fits the given game."""
        require_same((self.game, self.fingerprint), (tree.name, tree_fingerprint(tree)))
        require_shape(self.game, self.probabilities, (int(tree.nodes.infoset_start[-1]),))
        return self.probabilities

    def save(self, path: str | Path) -> None:
        """Write the strategy to a folder."""
        arrays: dict[str, Array] = {
            "probabilities": self.probabilities,
            "infosets": _pack(self.infosets),
            "actions": _pack(label for labels in self.actions for label in labels),
            "action_counts": np.array([len(labels) for labels in self.actions], dtype=np.int32),
        }
        inputs, parameters = {"game": self.fingerprint}, {"game": self.game}
        artifact.write(path, KIND, arrays, inputs=inputs, parameters=parameters, figures=self.figures)

    @classmethod
    @file_errors()
    def load(cls, path: str | Path) -> Strategy:
        """Load a strategy from a folder that `save` wrote.

        Raises ArtifactError if the strategy is missing or damaged.
        """
        found = artifact.read(path, KIND, remedy=REMEDY)
        with artifact.damage_errors(Path(path), REMEDY):
            labels = iter(_unpack(found.arrays["actions"]))
            return cls(
                found.parameters["game"],
                found.inputs["game"],
                tuple(_unpack(found.arrays["infosets"])),
                tuple(tuple(islice(labels, count)) for count in found.arrays["action_counts"].tolist()),
                np.array(found.arrays["probabilities"]),
                found.figures,
            )


def process_slots(tree: FlatTree, game: Holdem, rule: Rule, table: FloatArray) -> None:
    """Apply a post-processing rule to a strategy for a small game, in place.

    Parameters
    ----------
    tree : FlatTree
        The tree of `game`, with its names of information sets.
    game : Holdem
        The game of the tree.
    rule : Rule
        The rule for the probabilities of each information set: see `strategy.postprocess`.
    table : ndarray, shape (slots,)
        Probabilities.
    """
    for name, labels, start in zip(tree.infosets, tree.actions, tree.nodes.infoset_start.tolist(), strict=False):
        position = game.replay(name.rpartition("|")[2])
        acted = any(before.actor == position.actor for before, _ in game.positions.moves_to(position))
        here = slice(start, start + len(labels))
        table[here] = apply(rule, labels, table[here], first=not acted)


def require_same(made_for: tuple[str, str], this: tuple[str, str]) -> None:
    """Raise GameError if a strategy was made for another game.

    `made_for` and `this` are the names and fingerprints of the two games; the fingerprints must be equal.
    """
    if made_for[1] != this[1]:
        raise GameError(
            f"the strategy is for {made_for[0]} with fingerprint {made_for[1]}; this is {this[0]} with {this[1]}: "
            "use the game it was made for, or solve this one"
        )


def require_shape(game: str, table: Array, shape: tuple[int, ...]) -> None:
    """Raise GameError if a strategy's table has the wrong shape for a game."""
    if table.shape != shape:
        raise GameError(
            f"the strategy for {game} has a table of shape {table.shape}, but the game needs {shape}: solve it again"
        )


def tree_fingerprint(tree: FlatTree) -> str:
    """Return a hash of a game tree's nodes, information sets and actions, but not of its name."""
    nodes = tree.nodes if tree.is_general_sum else tree.nodes[:-1]  # `surplus` is the last
    return artifact.fingerprint(*nodes, *map(_pack, (tree.infosets, map(str, tree.actions))))


def _pack(names: Iterable[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("".join(f"{name}{_END}" for name in names).encode(), dtype=np.uint8)


def _unpack(packed: npt.NDArray[np.uint8]) -> list[str]:
    return packed.tobytes().decode().split(_END)[:-1]
