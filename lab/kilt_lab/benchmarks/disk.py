"""``kilt bench disk``: CFR+ with regrets on disk, compared with CFR+ in memory: size, time, and the cost of rounding.

With ``--long``, [3-1] hold'em is solved as well, whose tables exceed memory, for a fixed time. ``--bits`` measures only
the cost of scales: one solve in memory serves all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray
from kilt.games import load_game
from kilt.games.game import Game
from kilt.runs.budget import Budget
from kilt.runs.build import build, spec_of
from kilt.solve.cfr import Cfr, Tables, Turn
from kilt.solve.problem import big_blind_of
from kilt.solve.tables.disk import GOLDEN, DiskTables
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.tables.disk_subgames import FINENESS, LoadedSubgame, Subgames
from kilt.solve.tables.memory import TreeTables
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt_lab.benchmarks.measure import Figure, interleaved, peak_gb

SMALL, LARGE = ("holdem.2-1", 20), ("holdem.2-4", 100)  # games, and iterations
ROUNDS = 3  # of timing
LARGER = "holdem.3-1"  # its tables exceed memory
MINUTES = 120.0  # of solving it
FEWEST_BITS, MOST_BITS = 8, 26  # useful numbers: with more, sums of regrets soon overflow
BLOCK = 32  # rows that are rounded at a time, so that they stay in the cache


def run(
    *,
    long: bool = False,
    minutes: float = MINUTES,
    bits: Sequence[int] = (),
    game: Game | None = None,
    iterations: int | None = None,
    dtype: npt.DTypeLike = np.float32,
) -> list[Figure]:
    """Measure files, memory and time of tables on disk for [2-1] hold'em, or with `long` on [2-4] and [3-1].

    Parameters
    ----------
    long : bool
        Whether the game is [2-4] hold'em, for 100 iterations, and [3-1] is solved for some minutes too.
    minutes : float
        How many, with `long`.
    bits : sequence of int
        Of the largest regret of a walk, for what these cost: see `scales`. Nothing else is measured.
    game : Game, optional
        Another one.
    iterations : int, optional
        Another number of them.
    dtype : data type
        Of the numbers in walks.
    """
    name, usual = LARGE if long else SMALL
    rules = game or load_game(name)
    iterations, blind = iterations or usual, big_blind_of(rules) or 1.0
    if bits:
        return list(scales(rules, iterations, bits, dtype))
    vectors = VectorGame(rules)
    disk = Cfr(DiskTables(Subgames(vectors, dtype)))
    disk.step(iterations)
    peak, ratio = peak_gb(), 4 * disk.tables.subgames.numbers / disk.tables.store.size
    larger = larger_game(LARGER, minutes) if long else []  # first, while memory is empty
    # Double precision: in single precision, noise grows if all regrets are near 0.
    exact = Cfr(TreeTables(vectors, averaging=False))
    exact.step(iterations)
    found = disk.current().exploitability(), vectors.exploitability(exact.tables.regret)
    on_disk, in_memory = (1000 * chips / blind for chips in found)
    memory = Cfr(TreeTables(vectors, dtype, averaging=False), "cfr+")
    memory.tables.regret[...], memory.tables.iterations = exact.tables.regret, exact.iterations
    seconds = interleaved({"disk": partial(disk.step, 1), "memory": partial(memory.step, 1)}, ROUNDS)
    return [
        Figure(
            "compression_ratio", f"size with 4-byte numbers divided by that of all files, {rules.name}", ratio, "to 1"
        ),
        Figure(
            "overhead", "an iteration, on disk to in memory, one thread walks", seconds["disk"] / seconds["memory"], ""
        ),
        Figure("peak_gb", "peak memory of the process", peak, "GB"),
        Figure("iteration_seconds", "an iteration on disk", seconds["disk"], "s"),
        Figure("memory_seconds", "an iteration in memory", seconds["memory"], "s"),
        Figure("exploitability", f"on disk after {iterations} iterations", on_disk, "mbb/g"),
        Figure("rounding_cost", "… less that in memory in double precision", on_disk - in_memory, "mbb/g"),
        *larger,
    ]


class RoundedTables(TreeTables):
    """Tables in memory for CFR+, whose regrets are rounded after each pass as `DiskTables` rounds them.

    Parameters
    ----------
    solver : DiskTables
        With the game, its cut, the type of numbers and the scale.
    """

    def __init__(self, solver: DiskTables) -> None:
        cut = solver.subgames
        super().__init__(cut.game, cut.dtype, averaging=False)
        self.solver = solver

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run iterations, walk by walk."""
        Tables.run(self, rows, predictive)

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Walk the game once, and round the regrets."""
        super().learn(turn, discount)
        self._round((2 * self.iterations + turn.player) * GOLDEN % 1)

    def _round(self, dither: float) -> None:
        """Round all regrets outside the trunk. Those of the other player are already whole and stay unchanged."""
        table, scale = self._regret, self.solver.scale
        for first in range(self.solver.subgames.trunk_rows, len(table), BLOCK):
            block = table[first : first + BLOCK]
            block *= scale
            block += dither
            np.floor(block, out=block)
            block /= scale

    def to_files(self) -> None:
        """Write the regrets to the empty files of the solver, without the values of subgames.

        The next pass computes these values and does not need them before.
        """
        solver, table = self.solver, self.regret
        cut, tree = solver.subgames, solver.subgames.game.tree
        scratch = cut.scratch()
        solver.trunk[...] = table[: cut.trunk_rows]
        for number in range(cut.count):
            part = cut.part(number)
            layouts = cut.layouts(number, part)
            regret = scratch.regret[: int(layouts[0].start[-1])]
            regret[: cut.lead_rows] = cut.lead_table(number, solver.trunk)
            boards = tree.board_start[1] + cut.cuts[number, :2]
            for r, (begin, end) in enumerate(cut.betting(number).rows.tolist()):
                if r >= cut.trunk_rounds:
                    whole = table[tree.table_start[r] : tree.table_start[r + 1]].reshape(-1, tree.rows[r], cut.width)
                    first, last = (boards - tree.board_start[r]).tolist()
                    rows = slice(*layouts[0].start[r : r + 2].tolist())
                    regret[rows] = whole[first:last, begin:end].reshape(-1, cut.width)
                boards = tree.first_board[boards] if r else boards
            for player in (0, 1):
                solver.passes = 2 * self.iterations - 2 + player
                loaded = LoadedSubgame(number, part, layouts, regret, regret, scratch.sums)
                solver._write(player, loaded, np.zeros((0, 0), cut.dtype))
        solver.passes = 2 * self.iterations
        solver.store.write_trunk(solver.passes, solver.trunk_tables)


def scales(rules: Game, iterations: int, bits: Sequence[int], dtype: npt.DTypeLike = np.float32) -> Iterator[Figure]:
    """Yield the cost of scales by the bits of the largest regret of a walk, and the compression with them.

    All iterations except the last run in memory and are rounded as on disk, which halves the time.
    """
    vectors, blind = VectorGame(rules), big_blind_of(rules) or 1.0
    exact = Cfr(TreeTables(vectors, averaging=False))
    exact.step(iterations)
    in_memory = 1000 * vectors.exploitability(exact.tables.regret) / blind
    del exact
    yield Figure("memory_exploitability", f"in memory after {iterations} iterations", in_memory, "mbb/g")
    for each in bits:
        cut = Subgames(vectors, dtype)
        solver = DiskTables(cut, scale=cut.default_scale * 2.0 ** (each - FINENESS))
        rounded = RoundedTables(solver)
        Cfr(rounded, "cfr+").step(iterations - 1)
        rounded.to_files()
        del rounded
        Cfr(solver).step(1)
        ratio = 4 * cut.numbers / solver.store.size
        cost = 1000 * solver.current().exploitability() / blind - in_memory
        yield Figure(f"rounding_cost_{each}", f"with {each} bits on disk, less that in memory", cost, "mbb/g")
        yield Figure(
            f"compression_ratio_{each}", "… size with 4-byte numbers divided by that of all files", ratio, "to 1"
        )


def larger_game(name: str, minutes: float) -> list[Figure]:
    """Return figures of a run on disk after some minutes on all cores: exploitability, compression and memory."""
    with TemporaryDirectory() as folder:
        budget, place = Budget(seconds=60 * minutes), Path(folder) / "run"
        spec = spec_of(name, {"solver.algorithm": "cfr+disk", "solver.threads": os.cpu_count() or 1})
        run = build(spec, place, budget=budget)
        step, blind = run.finish(), run.problem.big_blind or 1.0
        kept = run.solver.tables if isinstance(run.solver, Cfr) else None
        assert isinstance(run.problem, DiskProblem) and isinstance(kept, DiskTables)
        ratio, peak = 4 * run.problem.subgames.numbers / kept.store.size, peak_gb()
    found = 1000 * step.exploitability / blind
    return [
        Figure("larger_exploitability", f"{name}, on disk after {minutes:g} minutes", found, "mbb/g"),
        Figure("larger_iterations", "… iterations", step.iterations, ""),
        Figure("larger_cpu_seconds", "… CPU time, including measuring and compiling", step.cpu_seconds, "s"),
        Figure("larger_compression_ratio", "… size with 4-byte numbers divided by that of all files", ratio, "to 1"),
        Figure("larger_peak_gb", "… peak memory of the process", peak, "GB"),
    ]
