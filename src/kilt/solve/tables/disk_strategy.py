"""Strategies that are stored on disk, subgame by subgame, with their games."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from zstandard import ZstdError

from kilt import artifact
from kilt.arrays import Array
from kilt.engines import Engine
from kilt.errors import RunError
from kilt.solve.problem import DISK, VectorProblem
from kilt.solve.tables.disk_files import KeptNumbers, unpack
from kilt.solve.tables.disk_store import SubgameStore
from kilt.solve.tables.disk_subgames import LoadedSubgame, SubgameMemory, Subgames, Values
from kilt.strategy.postprocess import RULES, Rule
from kilt.strategy.table import REMEDY, require_same
from kilt.strategy.vector import IN_SUBGAMES, process_table, rules_of
from kilt.tree.evaluable import exploitability_of_responses
from kilt.tree.parts import following_boards
from kilt.tree.vector_arrays import FOLLOW, RESPOND, Table, TableLayout
from kilt.tree.walks import Walk

KEPT = 256 << 20  # bytes of unpacked subgames in the cache of single decisions; at least one subgame
FILES = "subgames"  # key in a strategy's manifest: checksum of the trunk's file
AVERAGE_SCALE = 2.0**16  # integers per iteration, in averages


@dataclass(frozen=True)
class DiskStrategy:
    """A strategy that CFR on disk has computed, stored in files of subgames.

    Attributes
    ----------
    subgames : Subgames
        The game, cut into subgames.
    store : SubgameStore
        The files of the subgames.
    passes : int
        Number of complete passes. Files of a later pass are read unchanged: see `DiskTables.interrupted`.
    trunk : ndarray, shape (rows, hands)
        Weights of the actions of the trunk.
    averaged : bool
        Whether this is the average over all iterations, or the strategy of the last one.
    rule : Rule
        Post-processing that is applied when subgames are read; the trunk's weights are final: see `processed`.
    walked : callable, optional
        Replaces `walk` if the subgames are on other machines, and runs there.
    """

    subgames: Subgames
    store: SubgameStore
    passes: int
    trunk: Table
    averaged: bool = False
    rule: Rule = RULES["none"]
    walked: Callable[[DiskStrategy], Iterable[Values]] | None = field(default=None, repr=False, compare=False)
    _under: dict[str, DiskStrategy] = field(default_factory=dict, repr=False, compare=False)  # see `under`

    def __getitem__(self, rows: slice) -> Table:
        """Return the rows of one decision on one board, with one column per hand.

        Reading a row unpacks its subgame. The last subgames, up to 256 MB or at least one, stay in memory for the next
        look-ups.
        """
        if rows.stop <= len(self.trunk):
            return self.trunk[rows]
        number, r, first = self.subgames.locate_row(rows.start)
        subgame = self._unpacked(number)
        first += int(subgame.layouts[0].start[r])
        return subgame.regret[first : first + rows.stop - rows.start]

    @cached_property
    def _unpacked(self) -> Callable[[int], LoadedSubgame]:
        size = self.subgames.rows * self.subgames.width * self.subgames.dtype.itemsize
        return lru_cache(maxsize=max(1, KEPT // size))(self.subgame)

    def with_payoffs(self, subgames: Subgames) -> DiskStrategy:
        """Return the same strategy for a game with other payoffs on the same tree."""
        if subgames is self.subgames:
            return self
        if not np.array_equal(subgames.cuts, self.subgames.cuts):
            raise RunError(f"{self.store.folder} is cut into other subgames than {subgames.game.game.name} is here")
        key = subgames.fingerprint
        if key not in self._under:  # keeps values that were computed for it
            self._under[key] = replace(self, subgames=subgames, _under={})
        return self._under[key]

    def post_processed(self, rule: Rule) -> DiskStrategy:
        """Return the strategy with post-processing, applied whenever a subgame is read."""
        cut, trunk = self.subgames, self.trunk.copy()
        boards = np.diff(cut.game.tree.board_start)
        boards[cut.trunk_rounds :] = 0
        process_table(cut.game, rule, trunk, cut.layouts()[0].start, boards)
        return replace(self, trunk=trunk, rule=rule, _under={})

    def response_values(self) -> tuple[float, float]:
        """Return a best response's winnings in each seat, in chips per game."""
        return self._worth[2], self._worth[3]

    def expected_values(self) -> tuple[float, float]:
        """Return each player's winnings if both follow the strategy, in chips per game."""
        return self._worth[0], self._worth[1]

    def exploitability(self) -> float:
        """Return the strategy's exploitability in chips per game.

        It is the mean of the best responses' winnings in both seats.
        """
        first, second, *responses = self._worth
        return exploitability_of_responses(responses, (first, second) if self.subgames.game.is_general_sum else ())

    def value_bounds(self) -> tuple[float, float]:
        """Return a lower and an upper bound on the game value for player 0, in chips per game.

        The bounds follow from both best responses.
        """
        first, second = self.response_values()
        return -second, first

    @cached_property
    def _worth(self) -> tuple[float, float, float, float]:
        """The values of following the strategy and of best responses in both seats, from one pass over all subgames."""
        game, cut = self.subgames.game, self.subgames
        walks = self._walks(self.trunk, cut.layouts())
        values = np.zeros((len(walks), cut.opened, game.shape[1]))
        for number, worth in enumerate(self.walked(self) if self.walked else self.walk()):
            values[:, cut.entry_slice(number)] += worth
        found = (game.conclude(walk, own, cut.trunk_rounds) for walk, own in zip(walks, values, strict=True))
        *followed, first, second = found
        return followed[0], -followed[0] if len(followed) == 1 else followed[1], first, second

    def _walks(self, table: Table, layouts: tuple[TableLayout, TableLayout]) -> list[Walk]:
        """Return the computations for one pass: following the strategy in one or both seats, and best responses."""
        seats = (0, 1) if self.subgames.game.is_general_sum else (0,)
        todo = [(seat, FOLLOW) for seat in seats] + [(seat, RESPOND) for seat in (0, 1)]
        return [Walk(seat, (task,), table, table, layouts[seat], layouts[1 - seat]) for seat, task in todo]

    def walk(self, numbers: Iterable[int] | None = None) -> Iterator[Values]:
        """Evaluate the strategy and best responses to it, and yield each subgame's values in order.

        Values have the shape (computations, chance nodes of the trunk, hands).
        """
        game, trunk = self.subgames.game, self.subgames.trunk_rounds

        def respond(subgame: LoadedSubgame) -> Values:
            walks = self._walks(subgame.regret, subgame.layouts)
            return np.stack([game.flop_values(walk, subgame.tree, trunk) for walk in walks])

        return self.subgames.stream(self.read, respond, numbers=numbers)

    def read(self, number: int, tables: SubgameMemory) -> LoadedSubgame:
        """Read a subgame from disk into memory that is already allocated."""
        more = self.trunk, tables, self.passes
        found = read_subgame(self.subgames, self.store, number, *more, averaged=self.averaged)
        if not self.rule.idle:
            start, boards, cut = found.layouts[0].start, np.diff(found.tree.board_start), self.subgames
            boards[: cut.trunk_rounds] = 0
            process_table(cut.game, self.rule, found.regret, start, boards, cut.betting(number).rows)
        return found

    def subgame(self, number: int) -> LoadedSubgame:
        """Read a subgame from disk into new memory."""
        return self.read(number, self.subgames.scratch())

    def table(self) -> Table:
        """Return the whole strategy as one table in memory.

        It has rows by board and action, and columns by hand.
        """
        tree, whole = self.subgames.game.tree, self.subgames.game.table(self.subgames.dtype)
        hands = whole.shape[1]
        whole[: len(self.trunk)] = self.trunk
        for number in range(self.subgames.count):
            subgame, betting = self.subgame(number), self.subgames.betting(number).rows.tolist()
            edges = following_boards(tree, tree.board_start[1] + self.subgames.cuts[number, :2])
            for r, (boards, (begin, end)) in enumerate(zip(edges, betting[1:], strict=True), start=1):
                if r >= self.subgames.trunk_rounds:
                    rows = subgame.regret[subgame.layouts[0].start[r] : subgame.layouts[0].start[r + 1]]
                    whole_round = whole[tree.table_start[r] : tree.table_start[r + 1]].reshape(-1, tree.rows[r], hands)
                    first, last = (boards - tree.board_start[r]).tolist()
                    whole_round[first:last, begin:end] = rows.reshape(last - first, end - begin, hands)
        return whole


@dataclass(frozen=True)
class DiskProblem(VectorProblem):
    """A game for CFR on disk, whose strategies are stored in files of subgames."""

    form = DISK
    engine: Engine | None = None  # its workers have the subgames on their disks; None: they are in the run's folder
    workers: int = 1

    @cached_property
    def subgames(self) -> Subgames:
        """The game, split into subgames."""
        return Subgames(self.game, self.dtype)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the game's rules and of its split into subgames."""
        return artifact.fingerprint(super().fingerprint, self.subgames.fingerprint)

    def uniform(self) -> Array:
        """Raise RunError: a strategy on disk has no uniform version, because only a run can write one."""
        raise RunError(f"{self.name} is in subgames on disk: give the strategy of a run")

    def save(self, path: Path, strategy: Any, **figures: Any) -> None:
        """Save a `DiskStrategy` in a new folder.

        It shares files with the folder of the run until either of them changes.
        """
        assert isinstance(strategy, DiskStrategy)
        strategy = strategy.with_payoffs(self.subgames)
        inputs, said = {"game": self.fingerprint}, {"game": self.name, "average": strategy.averaged}
        with artifact.draft(path, IN_SUBGAMES, 0, inputs, said | {"rules": rules_of(self.game.game)}) as new:
            strategy.store.copy_to(new.folder, self.subgames.fingerprint)
            new.inputs[FILES] = SubgameStore.opened(new.folder, self.subgames.fingerprint).trunk_checksum()
            new.save("trunk", strategy.trunk)
            new.figures.update(figures)

    def load(self, path: Path) -> tuple[Any, dict[str, Any]]:
        """Return a saved strategy, with the results saved with it.

        Raises an error if the strategy is for other rules.
        """
        found = artifact.read(path, IN_SUBGAMES, remedy=REMEDY)
        with artifact.damage_errors(path, REMEDY):
            said = found.parameters["game"], found.inputs["game"]
            averaged = bool(found.parameters["average"])
        require_same(said, (self.name, self.fingerprint))
        store = SubgameStore.opened(path, self.subgames.fingerprint)
        passes = store.verify_strategy(found.inputs.get(FILES, ""))
        return DiskStrategy(self.subgames, store, passes, np.array(found.arrays["trunk"]), averaged), found.figures


def read_subgame(
    cut: Subgames,
    store: SubgameStore,
    number: int,
    trunk: Table,
    tables: SubgameMemory,
    passes: int,
    *,
    averaged: bool = False,
) -> LoadedSubgame:
    """Read a subgame's regrets or average strategy from files into memory."""
    tree = cut.part(number)
    layouts = cut.layouts(number, tree)
    table = tables.regret[: int(layouts[0].start[-1])]
    cut.clear(table)
    table[: cut.lead_rows] = cut.lead_table(number, trunk)
    for player in (0, 1):  # a player's average is in the file of the other's regrets
        kept = 1 - player if averaged else player
        found = store.open(number, kept, passes)
        unpack_rows(cut, store, number, kept, player, found, layouts[player], table, averaged=averaged)
    return LoadedSubgame(number, tree, layouts, table, table, tables.sums)


def unpack_rows(
    cut: Subgames,
    store: SubgameStore,
    number: int,
    kept: int,
    player: int,
    found: KeptNumbers,
    layout: TableLayout,
    table: Table,
    *,
    averaged: bool,
) -> None:
    """Decompress a player's file of a subgame, and write its numbers to a table."""
    parts, numbers = cut.rows_of(player, number, layout)
    if not found.packed:
        for part in parts:
            every = part.start + part.stride * np.arange(len(part.held))[:, None] + part.rows
            table[every.ravel()] = 0
        return
    scale = AVERAGE_SCALE if averaged else store.scale
    try:
        unpack(found.packed[int(averaged)], parts, numbers, scale, table)
    except (ZstdError, ValueError, IndexError) as error:
        raise store.damaged(number, kept, error) from error
