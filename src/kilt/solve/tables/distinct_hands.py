"""Let a solver store one row for hands that are equal up to a permutation of suits, while callers still see all hands.

See `kilt.tree.strength_order`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kilt.tree.strength_order import convert_table, layouts_by_strength, sortable
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import ArrangedTable, Table, TableLayout


class DistinctHandTables:
    """Tables whose hands are sorted by strength while a solver runs, but not for callers.

    Tables sorted by strength contain only distinct hands.

    Parameters
    ----------
    game : VectorGame
        The game of the tables.
    layouts : tuple of TableLayout
        The layout of each player's tables as callers see them. The attribute `layouts` is that of the solver.
    tables : sequence of ndarray
        New tables of the game. Each is converted in place; a table that occurs twice is converted once. If hands of the
        game cannot be sorted, and for tables that are not listed, nothing changes.
    """

    def __init__(
        self, game: VectorGame, layouts: tuple[TableLayout, TableLayout], tables: Sequence[Table] = ()
    ) -> None:
        by_strength = len(tables) > 0 and sortable(game.tree)
        self.game, self.layouts = game, layouts_by_strength(game.tree, layouts) if by_strength else layouts
        every = {id(table): table for table in tables if by_strength}
        # Zeros need no conversion, but fixed strategies do.
        self._by_hand, self._apart = (every, dict[int, Table]()) if game.given else (dict[int, Table](), every)

    def as_stored(self, table: Table) -> Table | ArrangedTable:
        """Return a table as stored now: distinct hands by strength, or all hands."""
        return ArrangedTable.of(table, self.layouts) if id(table) in self._apart else table

    def restore_order(self, table: Table) -> Table:
        """Return a table with its hands in the usual order, one per column.

        The table keeps this order until `to_distinct_hands` is called.
        """
        if id(table) in self._apart:
            self._convert(table, by_strength=False)
            self._by_hand[id(table)] = self._apart.pop(id(table))
        return table

    def to_distinct_hands(self) -> None:
        """Convert all tables to only distinct hands."""
        for table in list(self._by_hand.values()):
            self._convert(table, by_strength=True)
            self._apart[id(table)] = self._by_hand.pop(id(table))

    def _convert(self, table: Table, *, by_strength: bool) -> None:
        """Convert a table in place."""
        with self.game.workspace() as work:
            convert_table(self.game.tree, work, table, self.layouts, by_strength=by_strength)
