"""Load, save and query blueprints: strategies of abstract games that agents can play.

A probability is stored as an integer of one or two bytes, for each action of each information set of the abstract
game. The table is mapped from its file: a strategy of many gigabytes opens at once, and only the entries that are used
are read. The folder also has the betting tree. The manifest names the folder of the card abstraction; `export` copies
it next to the strategy, so that the folder can be moved. A small blueprint can be packed into one file, like the agents
that ship with kilt.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt import __version__, archive, artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import ActionAbstraction, ActionsByChipsLeft
from kilt.abstraction.buckets import CardAbstraction, PlayerAbstractions, load_abstractions
from kilt.arrays import Array, BoolArray, IntArray
from kilt.config import SPOT
from kilt.errors import AbstractionError, ArtifactError
from kilt.games.game import CHANCE, REVEAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Betting, Holdem
from kilt.strategy import table, vector
from kilt.strategy.table import REMEDY
from kilt.tree.betting import FOLDS, BettingNodes, acted_before, call_index, label_of, require_tree

KIND, PACKED = "blueprint", "packed blueprint"
# agents that ship with kilt
SHIPPED = {file.stem: file for file in sorted((Path(__file__).parent / "shipped").glob("*.agent"))}
STRATEGY, CARDS = "strategy", "cards"  # folders of a run, and of an exported agent
OPPONENT_CARDS = "opponent-cards"  # folder of a run: the card abstraction of the opponent while the run is solved
START = "startme.sh"  # the competition calls it with the dealer's host and port
SCRIPT = """\
#!/bin/sh
# Play for an ACPC dealer: startme.sh HOST PORT
exec kilt agent "$(dirname "$0")" "$1" "$2"
"""
README = """\
{name}: an agent for {game}, solved with {algorithm} and exported by kilt {version}.

startme.sh HOST PORT plays for a dealer of the Annual Computer Poker Competition; it needs the command `kilt`.
{contents} `kilt play .` plays against it.
"""
WITH_CARDS, ALONE = "strategy has its probabilities, cards its buckets of hands.", "strategy has its probabilities."
REMEMBERED = 4096  # maximum number of single hands whose bucket is cached
KEPT_ROWS = 256  # maximum number of boards whose buckets of all hands are cached


@dataclass(frozen=True)
class Blueprint:
    """A strategy for an abstract game, with everything that an agent needs to play the real game.

    Attributes
    ----------
    game : Holdem
        The real game.
    actions : ActionAbstraction or None
        The menu of bet sizes; None: all legal bets.
    cards : PlayerAbstractions
        The card abstraction of each player.
    fingerprint : str
        Fingerprint of the abstract game.
    nodes : BettingNodes
        The betting tree.
    level : ndarray of int32, shape (nodes,)
        The action that led to each node: see `kilt.tree.betting.level_of`.
    first : ndarray of int64, shape (nodes + 1,)
        The first slot of each decision. Slots are ordered by decision, then bucket, then action.
    shares : ndarray of uint8 or uint16, shape (slots,)
        Weights of the actions; those of an information set are normalised. All 0 if the solver never visited it.
    figures : dict
        Facts that the solver recorded: algorithm, iterations, seconds, post-processing.
    """

    game: Holdem
    actions: ActionAbstraction | None
    cards: PlayerAbstractions
    fingerprint: str
    nodes: BettingNodes
    level: npt.NDArray[np.int32]
    first: IntArray
    shares: Array
    figures: dict[str, Any] = field(default_factory=dict)
    _rows: dict[tuple[int, tuple[int, ...]], IntArray] = field(default_factory=dict, repr=False, compare=False)
    _buckets: dict[tuple[int, int, tuple[int, ...], tuple[int, ...]], int] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, abstract: AbstractGame, shares: Array, **figures: Any) -> Blueprint:
        """Create a blueprint from the probabilities of all actions in an abstract game."""
        said = abstract.game.real, abstract.actions, abstract.cards, abstract.fingerprint
        return cls(*said, abstract.betting.nodes, abstract.betting.level, abstract.first, shares, figures)

    @cached_property
    def limit(self) -> bool:
        """Whether the game has fixed-limit betting, with one raise size per round."""
        return self.game.rules.betting == "limit"

    @cached_property
    def acted(self) -> BoolArray:
        """Whether the player to act has acted before in the hand, at each node of the betting tree."""
        return acted_before(self.nodes)

    def labels(self, node: int) -> list[str]:
        """Return the actions at a decision in ACPC notation, such as ``f``, ``c`` and ``r200``."""
        child, count = int(self.nodes.first_child[node]), int(self.nodes.children[node])
        return [label_of(level, limit=self.limit) for level in self.level[child : child + count].tolist()]

    def position(self, node: int) -> Betting:
        """Return the position in the real game at a node of the betting tree."""
        actions = []
        while node > 0:
            parent = int(self.nodes.parent[node])
            chance = self.nodes.actor[parent] == CHANCE
            actions.append(REVEAL if chance else label_of(int(self.level[node]), limit=self.limit))
            node = parent
        return self.game.replay("".join(reversed(actions)))

    def faces_bet(self, node: int | IntArray) -> Any:
        """Return whether the player to act faces a bet, at one or several nodes of the betting tree.

        If so, the first action is a fold.
        """
        return call_index(self.nodes, self.level, node)

    def after_call(self, node: int) -> int:
        """Return the node of the betting tree after a check or call."""
        return int(self.nodes.first_child[node]) + int(call_index(self.nodes, self.level, node))

    def row(self, node: int, bucket: int) -> list[float]:
        """Return the action probabilities at a decision for a bucket of hands.

        All are 0 if the solver never visited the information set.
        """
        count = int(self.nodes.children[node])
        first = int(self.first[node]) + bucket * count
        shares: list[int] = self.shares[first : first + count].tolist()
        whole = sum(shares)
        return [share / whole for share in shares] if whole else [0.0] * count

    def bucket(self, player: int, r: int, hand: str | Sequence[int], board: str | Sequence[int]) -> int:
        """Return the bucket number of a player's hand on a board.

        Cards are text such as ``"AsKh"``, or numbers. Results are cached, since players act more than once.
        """
        if isinstance(hand, str) or isinstance(board, str):
            deck, rules = self.game.deck, self.game.rules
            board = deck.numbers(board, rules.board_size(r))
            hand = deck.numbers(hand, rules.hole_cards, dead=board)
        cards = player, r, tuple(hand), tuple(board)
        known = self._buckets.get(cards)
        if known is None:
            if len(self._buckets) >= REMEMBERED:
                self._buckets.clear()
            found = np.empty((1, 1), dtype=np.uint32)
            holding = np.array([[self.game.deck.hole_index(hand)]], dtype=np.int64)
            self.cards.each[player].look_up(r, np.array([board], dtype=np.int64), holding, found)
            known = self._buckets[cards] = int(found[0, 0])
        return known

    def hand_buckets(self, player: int, r: int, board: tuple[int, ...]) -> IntArray:
        """Return the bucket numbers of all hands that a player can have on a board.

        Entries of hands that share a card with the board are undefined. Results are cached.
        """
        row = self._rows.get((self._viewer(player), board))
        return row if row is not None else self.hand_buckets_on(player, r, [board])[0]

    def hand_buckets_on(self, player: int, r: int, boards: Sequence[tuple[int, ...]]) -> list[IntArray]:
        """Return the bucket numbers of all hands that a player can have on each of several boards.

        See `hand_buckets`. Boards that are not cached are looked up together.
        """
        viewer = self._viewer(player)
        rows = [self._rows.get((viewer, board)) for board in boards]
        if new := [number for number, row in enumerate(rows) if row is None]:
            if len(self._rows) + len(new) > KEPT_ROWS:
                self._rows.clear()
            wanted = np.array([boards[number] for number in new], dtype=np.int64)
            for number, row in zip(
                new, self.cards.each[player].rounds[r].look_up_boards(wanted).astype(np.int64), strict=True
            ):
                rows[number] = self._rows[viewer, boards[number]] = row
        return [row for row in rows if row is not None]

    def _viewer(self, player: int) -> int:
        """Return the first player who has the same card abstraction as `player`."""
        first, second = self.cards.each
        return player if first is not second else 0

    def save(self, path: Path, *cards: Path, fill: Callable[[Array], None] | None = None) -> None:
        """Write the blueprint to a folder, with the paths of its card abstractions.

        `cards` are the folders of the card abstraction that both players share, or of one for each player. With `fill`,
        only the data type of `shares` is used: the function `fill` receives an empty table, mapped from its file, and
        writes the probabilities of all slots to it.
        """
        parameters = self._said() | {"cards": [os.path.relpath(folder, path) for folder in cards]}
        inputs = {"game": self.fingerprint, "cards": self.cards.fingerprint}
        arrays, slots, dtype = self._arrays(), int(self.first[-1]), self.shares.dtype
        if fill:
            del arrays["shares"]
        size = sum(array.nbytes for array in arrays.values()) + (slots * dtype.itemsize if fill else 0)
        with artifact.draft(path, KIND, size, inputs, parameters) as new:
            for name, array in arrays.items():
                new.save(name, np.asarray(array, order="C"))
            if fill:
                fill(new.allocate("shares", dtype, (slots,)))
            new.figures.update(self.figures)

    def pack(self, file: Path) -> None:
        """Write the blueprint and its buckets to a single compressed file.

        Raises ArtifactError if the players have different card abstractions.
        """
        if not isinstance(self.cards, CardAbstraction):
            raise ArtifactError("an agent whose players have different buckets cannot be packed: export a folder")
        tables, cards = self.cards.packed()
        said = self._said() | {"cards": cards, "fingerprint": self.fingerprint, "figures": self.figures}
        archive.write(file, PACKED, self._arrays() | tables, said)

    def _arrays(self) -> dict[str, Array]:
        """Return the arrays of the betting tree and of the strategy, by their names on disk."""
        arrays: dict[str, Array] = {name: getattr(self.nodes, name) for name in BettingNodes._fields}
        return arrays | {"level": self.level, "first": self.first, "shares": self.shares}

    def _said(self) -> dict[str, Any]:
        """Return the game and the menu of bet sizes as JSON data."""
        return {
            "game": str(self.game.rules),
            "name": self.game.name,
            "actions": list(self.actions.text) if self.actions else None,
            "near": self.actions.near if self.actions else None,
        } | ({"of_chips_left": True} if self.actions and self.actions.OF_CHIPS_LEFT else {})

    @classmethod
    def _of(
        cls,
        path: Path,
        arrays: Mapping[str, Array],
        said: Mapping[str, Any],
        cards: PlayerAbstractions,
        fingerprint: str,
        figures: dict[str, Any],
    ) -> Blueprint:
        """Create a blueprint from the contents of its files, inside `artifact.damage_errors`, which converts errors."""
        blueprint = cls(
            Holdem(GameDef.parse(said["game"], source=str(path)), said["name"]),
            _menu(said),
            cards,
            fingerprint,
            BettingNodes(*(np.asarray(arrays[name]) for name in BettingNodes._fields)),
            np.asarray(arrays["level"]),
            np.asarray(arrays["first"]),
            np.asarray(arrays["shares"]),
            figures,
        )
        blueprint._require_sound()
        return blueprint

    @classmethod
    def _unpacked(cls, file: Path) -> Blueprint:
        """Load a blueprint from a file that `pack` wrote."""
        arrays, said = archive.read(file, PACKED)
        with artifact.damage_errors(file, "replace it by an intact copy"):
            cards = CardAbstraction.unpacked(arrays, said["cards"], file)
            return cls._of(file, arrays, said, cards, said["fingerprint"], said["figures"])

    @classmethod
    def load(cls, path: str | Path, *, check: bool = False) -> Blueprint:
        """Load a blueprint, and leave its probabilities on disk until they are needed.

        Parameters
        ----------
        path : str or Path
            A folder that `save` or `export` wrote, the folder of a finished run, a file that `pack` wrote, or the name
            of an agent that ships with kilt: see `SHIPPED`.
        check : bool
            Read all files and compare checksums, including files that were checked before.

        Returns
        -------
        Blueprint

        Raises
        ------
        ArtifactError
            The strategy or its card abstraction is missing or damaged.
        """
        path = find_blueprint(path)
        if path.is_file():
            return cls._unpacked(path)
        if artifact.exists(path / STRATEGY):
            path = path / STRATEGY
        elif path.is_dir() and not artifact.exists(path):
            raise ArtifactError(f"{path} has no strategy yet: finish the run")
        found = artifact.read(path, KIND, check=check, remedy=REMEDY)
        said, arrays = found.parameters, found.arrays
        with artifact.damage_errors(path, REMEDY):
            places, made_with = _card_folders(path, said), found.inputs["cards"]
        try:
            cards = load_abstractions(places, check=check)
        except AbstractionError as error:
            if all(folder.exists() for folder in places):
                raise ArtifactError(str(error)) from None
            raise ArtifactError(
                f"the buckets of {path} are missing ({error}): copy them there, or use the folder of an exported agent"
            ) from None
        if cards.fingerprint != made_with:
            raise ArtifactError(
                f"{path} was made with buckets {made_with}, and {' and '.join(map(str, places))} has "
                f"{cards.fingerprint}: copy the right buckets there, or solve again"
            )
        with artifact.damage_errors(path, REMEDY):
            return cls._of(path, arrays, said, cards, found.inputs["game"], found.figures)

    def _require_sound(self) -> None:
        """Raise ValueError if the arrays of a file do not fit together, so that later indices are in bounds."""
        rules, nodes = self.game.rules, self.nodes
        require_tree(nodes, rules.rounds)
        numbers = np.array([cards.numbers for cards in self.cards.each])
        buckets = np.where(nodes.actor >= 0, numbers[nodes.actor.clip(0), nodes.round], 0)
        if self.first.shape != (len(buckets) + 1,) or self.first[0] != 0 or self.first[-1] != len(self.shares):
            raise ValueError(f"there are {len(self.shares):,} slots, but `first` ends with {self.first[-1:]}")
        if not np.array_equal(np.diff(self.first), buckets * nodes.children):
            raise ValueError("first does not fit buckets and bets")
        if self.level.shape != nodes.actor.shape or self.level.min() < FOLDS:
            raise ValueError("level does not fit the betting tree")
        if self.shares.ndim != 1 or self.shares.dtype.kind != "u":
            raise ValueError(f"shares are {self.shares.dtype}")


def find_blueprint(path: str | Path) -> Path:
    """Return the path of a blueprint, given a path or the name of an agent that ships with kilt.

    If a path with that name exists, the path is returned.
    """
    path = Path(path)
    return SHIPPED.get(str(path), path) if not path.exists() else path


def card_folders(run: Path, number: int) -> list[Path]:
    """Return the folders of a run's card abstractions: one for both players, or one for each.

    `number` is the number of card abstractions.
    """
    return [run / CARDS] if number == 1 else [run / CARDS / str(player + 1) for player in range(number)]


def _card_folders(path: Path, said: Mapping[str, Any]) -> list[Path]:
    """Return the folders of a strategy's card abstractions, shared or one for each player, from its manifest."""
    # the first releases wrote a single path
    folders = [said["cards"]] if isinstance(said["cards"], str) else said["cards"]
    if len(folders) not in (1, 2):
        raise ValueError(f"it has the cards of {len(folders)} players")
    return [Path(os.path.normpath(path / folder)) for folder in folders]


def export(run: Path, out: Path) -> None:
    """Export a run's strategy and card abstractions to a new folder that can play on its own.

    The folder has a script that starts the agent.

    The competition's validator requires the script and a README. An unabstracted strategy has no card abstraction; its
    files are copied unchanged.

    Raises ArtifactError if the folder exists.
    """
    strategy = run / STRATEGY if artifact.exists(run / STRATEGY) else run
    if out.exists():
        raise ArtifactError(f"{out} is there already: choose another name")
    if (run / SPOT).exists():
        raise ArtifactError(f"{run} is a solved spot, which plays no hands: copy its folder instead")
    kind, cards = artifact.kind_of(strategy) if artifact.exists(strategy) else KIND, list[Path]()
    if kind not in (table.KIND, vector.KIND, vector.IN_SUBGAMES):
        blueprint = Blueprint.load(strategy, check=True)  # copies get checksums of their own
        cards = _card_folders(strategy, artifact.read(strategy, KIND).parameters)
        game, figures = blueprint.game.name, blueprint.figures
    else:
        found = artifact.read(strategy, kind, check=True, remedy=REMEDY)
        game, figures = found.parameters.get("game", "an unknown game"), found.figures
    size = sum(file.stat().st_size for folder in (strategy, *cards) for file in folder.rglob("*"))
    artifact.require_room(out, size)
    new = out.with_name(f".{out.name}.new")
    with artifact.os_errors(f"{out} cannot be written"):
        shutil.rmtree(new, ignore_errors=True)
        copies = card_folders(new, len(cards))
        for folder, copy in zip(cards, copies, strict=True):
            shutil.copytree(folder, copy)
        if cards:
            blueprint.save(new / STRATEGY, *copies)
        else:
            shutil.copytree(strategy, new / STRATEGY)
        start = new / START
        start.write_text(SCRIPT, encoding="utf-8")
        start.chmod(0o755)
        said = {"algorithm": figures.get("algorithm", "an unknown algorithm"), "version": __version__}
        words = README.format(name=out.name, game=game, contents=WITH_CARDS if cards else ALONE, **said)
        (new / "README").write_text(words, encoding="utf-8")
        new.rename(out)


def _menu(said: Mapping[str, Any]) -> ActionAbstraction | None:
    """Return the menu of bet sizes that `Blueprint._said` wrote; earlier versions have no `of_chips_left`."""
    if said["actions"] is None:
        return None
    kind = ActionsByChipsLeft if said.get("of_chips_left") else ActionAbstraction
    return kind(tuple(said["actions"]), said["near"])
