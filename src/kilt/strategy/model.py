"""Model an opponent by counting the player's actions at each information set [Johanson16 §6.3.3].

A model is a table of counts in the layout of a strategy of the same game: over slots for flat trees and abstract games,
over (board, row) × hand for public trees. Its policy takes each action as often as the player did, and calls at
information sets without observations. Confidence in the model depends on `seen`, the number of observations of each
information set.

>>> from kilt.games import load_game
>>> from kilt.tree.flat import flat_tree
>>> kuhn = flat_tree(load_game("kuhn"))
>>> counts = np.zeros(24)
>>> counts[:4] = 1, 3, 0, 0  # of a queen that opens, and of a king
>>> model = OpponentModel.of_tree(kuhn, "Ann", counts)
>>> model.seen[:2].tolist(), model.policy()[:4].tolist()
([4.0, 0.0], [0.25, 0.75, 1.0, 0.0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame, SlotLayout
from kilt.arrays import Array, ByteArray, FloatArray, IntArray
from kilt.errors import GameError
from kilt.games.game import REVEAL
from kilt.games.holdem import CALL
from kilt.strategy.table import tree_fingerprint
from kilt.strategy.vector import game_fingerprint
from kilt.tree.betting import call_indices, on_menu
from kilt.tree.flat import FlatTree
from kilt.tree.vector import VectorGame

KIND = "opponent model"
REMEDY = "build the model again, or copy an intact one"
NO_CALL = -1  # in place of the index of the call, if there is no call


class DecisionLayout(NamedTuple):
    """The layout of a strategy table: its information sets in order, with their numbers of actions.

    The information sets are in the order of the table: each takes the next `actions` entries of its first axis. In
    tables over (board, row) × hand, an entry here is a decision on a board, which all hands share.
    """

    actions: npt.NDArray[np.int32]  # number of actions
    call: npt.NDArray[np.int32]  # index of the call or check; NO_CALL in games without one
    round: ByteArray  # from 0
    actor: ByteArray  # 0 or 1

    @property
    def start(self) -> IntArray:
        """The index of each information set's first entry in a strategy table.

        The last entry is the length of the table.
        """
        return np.concatenate([[0], np.cumsum(self.actions, dtype=np.int64)])

    @classmethod
    def of_tree(cls, tree: FlatTree) -> DecisionLayout:
        """Return the layout of a small game's strategy table, with one entry per action of each information set."""
        calls = [labels.index(CALL) if CALL in labels else NO_CALL for labels in tree.actions]
        rounds = [name.rpartition("|")[2].count(REVEAL) for name in tree.infosets]
        return cls._of([len(labels) for labels in tree.actions], calls, rounds, tree.nodes.infoset_player)

    @classmethod
    def of_abstract(cls, game: SlotLayout) -> DecisionLayout:
        """Return the layout of an abstract game's strategy table, with one entry per action of each bucket."""
        betting = game.betting
        nodes, buckets = betting.nodes, game.buckets_at
        calls = call_indices(nodes, betting.level)
        return cls._of(*(np.repeat(each, buckets) for each in (nodes.children, calls, nodes.round, nodes.actor)))

    @classmethod
    def of_vectors(cls, game: VectorGame) -> DecisionLayout:
        """Return the layout of a public tree's strategy table, with one row per action and one column per hand."""
        found: list[list[tuple[int, int, int, int, int]]] = [[] for _ in game.tree.rows]
        for r, row, position in game.decisions():
            labels = on_menu(position, game.menu)
            call = labels.index(CALL) if CALL in labels else NO_CALL
            found[r].append((row, len(labels), call, r, position.actor))
        boards = np.diff(game.tree.board_start)
        rows = [np.tile(np.array(sorted(some)).reshape(-1, 5), (n, 1)) for some, n in zip(found, boards, strict=True)]
        return cls._of(*np.concatenate(rows).T[1:])

    @classmethod
    def _of(cls, actions: Any, call: Any, rounds: Any, actor: Any) -> DecisionLayout:
        actions, call = (np.asarray(each, dtype=np.int32) for each in (actions, call))
        return cls(actions, call, np.asarray(rounds, dtype=np.int8), np.asarray(actor, dtype=np.int8))


class RoundCoverage(NamedTuple):
    """The number of information sets in a betting round, and how many of them a model has observed."""

    infosets: int
    seen: int  # information sets with at least one observation
    decisions: float  # number of observations

    @property
    def share(self) -> float:
        """The share of information sets that were observed at least once, from 0 to 1."""
        return self.seen / self.infosets if self.infosets else 0.0


@dataclass(frozen=True)
class OpponentModel:
    """An opponent model: how often a player took each action at each information set.

    Attributes
    ----------
    game : str
        The name of the game.
    fingerprint : str
        Fingerprint of the flat tree, the rules of a public tree, or the abstract game.
    player : str
        The player whose actions were counted.
    layout : DecisionLayout
        The information sets of the table.
    counts : ndarray of float, shape (slots,) or (rows, hands)
        Number of times that each action was taken. Fractions occur if a bet may correspond to several of the menu, or
        the hand is not known.
    figures : dict
        Further facts: hands read, decisions, skipped hands.
    """

    game: str
    fingerprint: str
    player: str
    layout: DecisionLayout
    counts: FloatArray
    figures: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = int(self.layout.actions.sum(dtype=np.int64))
        if len(self.counts) != rows:
            raise GameError(
                f"the model of {self.player} has counts of {len(self.counts):,} actions, but {self.game} has {rows:,}: "
                "build the model again"
            )

    @classmethod
    def of_tree(cls, tree: FlatTree, player: str, counts: FloatArray, **figures: Any) -> OpponentModel:
        """Create an opponent model for a small game from counts of the player's actions."""
        return cls(tree.name, tree_fingerprint(tree), player, DecisionLayout.of_tree(tree), counts, figures)

    @classmethod
    def of_abstract(cls, game: AbstractGame, player: str, counts: FloatArray, **figures: Any) -> OpponentModel:
        """Create an opponent model for an abstract game from counts of the player's actions."""
        return cls(game.game.name, game.fingerprint, player, DecisionLayout.of_abstract(game), counts, figures)

    @classmethod
    def of_vectors(cls, game: VectorGame, player: str, counts: FloatArray, **figures: Any) -> OpponentModel:
        """Create an opponent model for a public tree from counts of the player's actions.

        The counts are a table with the shape (board, row) × hand.
        """
        fingerprint = game_fingerprint(game.game, game.menu)
        return cls(game.game.name, fingerprint, player, DecisionLayout.of_vectors(game), counts, figures)

    @property
    def seen(self) -> FloatArray:
        """How often each information set was observed: n(I) of [Johanson16 §6.5.2].

        The shape is (information sets,), or (decisions, hands) for public trees.
        """
        observed: FloatArray = np.add.reduceat(self.counts, self.layout.start[:-1], axis=0)
        return observed

    def spread(self, values: Array) -> Array:
        """Copy values of information sets to all of their actions.

        The result fits a strategy table.
        """
        return np.repeat(values, self.layout.actions, axis=0)

    def policy(self) -> FloatArray:
        """Return a strategy that takes each action as often as the observed player did.

        At information sets without observations it always calls, or takes each action with the same probability in
        games without calls.
        """
        layout, seen = self.layout, self.seen
        times = self.spread(seen)
        shares: FloatArray = np.divide(self.counts, times, out=np.zeros_like(times), where=times > 0)
        start, callable_ = layout.start[:-1], layout.call != NO_CALL
        never = seen == 0
        shares[(start + layout.call)[callable_]] += never[callable_]
        alike = np.where(callable_, 0.0, 1 / layout.actions)
        return shares + self.spread((alike * never.T).T)

    def rounds(self) -> list[RoundCoverage]:
        """Return how many information sets and decisions were observed in each betting round."""
        seen, found = self.seen, []
        for r in range(int(self.layout.round.max(initial=-1)) + 1):
            there = seen[self.layout.round == r]
            found.append(RoundCoverage(there.size, int(np.count_nonzero(there)), float(there.sum())))
        return found

    def on(self, game: str, fingerprint: str, shape: Sequence[int]) -> FloatArray:
        """Return the action counts, after checking that they belong to the given game.

        Raises GameError if they were counted in another game.
        """
        if self.fingerprint != fingerprint or self.counts.shape != tuple(shape):
            raise GameError(
                f"the model of {self.player} is for {self.game} with fingerprint {self.fingerprint} and a table of "
                f"{self.counts.shape}; this is {game} with {fingerprint} and {tuple(shape)}: build the model for "
                "the same game, cards, bets and form"
            )
        return self.counts

    def save(self, path: str | Path) -> None:
        """Write the model to a folder."""
        said = {"game": self.game, "player": self.player}
        arrays = {**self.layout._asdict(), "counts": self.counts}
        artifact.write(path, KIND, arrays, inputs={"game": self.fingerprint}, parameters=said, figures=self.figures)

    @classmethod
    def load(cls, path: str | Path, *, check: bool = False) -> OpponentModel:
        """Load a model from its folder, without reading its arrays into memory.

        Parameters
        ----------
        path : str or Path
            The folder.
        check : bool
            Read all files and compare checksums, including files that were checked before.

        Returns
        -------
        OpponentModel

        Raises
        ------
        ArtifactError
            The model is missing or damaged.
        """
        found = artifact.read(path, KIND, check=check, private=True, remedy=REMEDY)
        with artifact.damage_errors(Path(path), REMEDY):
            layout = DecisionLayout(*(np.asarray(found.arrays[name]) for name in DecisionLayout._fields))
            if layout.actions.min(initial=1) < 1 or (layout.call >= layout.actions).any():
                raise ValueError("its information sets lack actions")
            said = found.parameters["game"], found.inputs["game"], found.parameters["player"]
            return cls(*said, layout, np.asarray(found.arrays["counts"]), found.figures)
