"""Which representations, homes of tables and samplings go together: the table of docs/reference/algorithms.md.

`python tests/combinations.py --write` tries all on small games and writes the table; `test_combinations` holds it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from golden import buckets, flat, hands, sequences
from kilt import machine
from kilt.config import EngineConfig
from kilt.engines import LocalEngine
from kilt.errors import KiltError
from kilt.evaluate.evaluator import evaluator_for
from kilt.solve import abstract_problem
from kilt.solve.registry import make_solver
from kilt.solve.solver import with_workers
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.tables.drawn import SampledBoardTables
from kilt.solve.tables.two_bytes import TwoByteProblem

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "algorithms.md"
MARKS = "<!-- combinations -->\n", "<!-- /combinations -->\n"
SAMPLING = ("all boards", "boards drawn", "boards and hands drawn", "best response", "best response, boards drawn")

NO_BOARDS = "a flat tree has no boards; `external`, `outcome` and `pure` sample it"
ONE_BOARD = "to walk one board, the solver would unpack all boards after its flop"
TWO_TYPES = "the opponent sees all cards, and has no tables in this form"
NO_LOOK = "walks look at no board"
IN_MEMORY = "flat trees fit into memory"
SHARED = "boards share buckets, but each part owns its rows"
ALL_HANDS = "a GPU walks all hands at once"
LAST_ROUND = "its kernels walk all boards of the last round"
SEVERAL = "on a GPU, tables of buckets exist for drawn boards only"
ALL_MAPS = "see the row above, with the buckets of all boards in memory"


def two_bytes() -> Any:
    """A game on its public tree with two bytes an entry."""
    return TwoByteProblem(hands("three rounds").game)


def on_disk(**where: Any) -> Any:
    """A game on its public tree in subgames on disk, maybe those of workers."""
    return DiskProblem(hands("three rounds").game, **where)


def seen(**where: Any) -> Any:
    """An abstract game."""
    return replace(buckets("three rounds"), **where)


def compact_there() -> Any:
    """A game on its public tree with two bytes an entry in the last round, on a GPU."""
    return TwoByteProblem(hands("leduc").game, device="gpu")


# Representation, home of tables, which variants, the problem, and for each sampling an algorithm or why there is none.
GPU = "GPU"
ANY, PLUS, STEADY = "any", "without negative regrets", "steady"
Row = tuple[str, str, str, Callable[[], Any], tuple[str, ...]]
ROWS: tuple[Row, ...] = (
    ("flat tree", "memory", ANY, lambda: flat("leduc"), ("dcfr", NO_BOARDS, NO_BOARDS, "cfr-br", NO_BOARDS)),
    ("hands", "memory", ANY, lambda: hands("leduc"), ("pcfr+", "pcs:dcfr", "cs", "cfr-br", "cfr-br:1:linear")),
    ("hands", "two bytes", PLUS, two_bytes, ("dcfr+:compact", ONE_BOARD, ONE_BOARD, TWO_TYPES, TWO_TYPES)),
    ("hands", "disk", PLUS, on_disk, ("dcfr+:disk:average", ONE_BOARD, ONE_BOARD, TWO_TYPES, TWO_TYPES)),
    (
        "hands",
        "disks of workers",
        PLUS,
        lambda: on_disk(engine=LocalEngine(), workers=2),
        ("dcfr+:disk", ONE_BOARD, ONE_BOARD, TWO_TYPES, TWO_TYPES),
    ),
    (
        "hands",
        GPU,
        ANY,
        lambda: replace(hands("leduc"), device="gpu"),
        ("pcfr+", "pcs:dcfr", ALL_HANDS, "cfr-br", "cfr-br:1:linear"),
    ),
    (
        "hands",
        f"{GPU}, two bytes",
        "`cfr+`",
        compact_there,
        ("cfr+:compact", LAST_ROUND, LAST_ROUND, LAST_ROUND, LAST_ROUND),
    ),
    ("buckets", "memory", ANY, seen, ("pcfr+", "pcs:dcfr", "cs", "cfr-br", "cfr-br:1:linear")),
    (
        "buckets",
        "memory, maps of drawn boards",
        STEADY,
        seen,
        (ALL_MAPS, "pcs:linear", ALL_MAPS, ALL_MAPS, "cfr-br:1:dcfr"),
    ),
    ("buckets", "two bytes", PLUS, seen, (SHARED,) * 5),
    ("buckets", "disk", PLUS, seen, ("dcfr+:disk:average", ONE_BOARD, ONE_BOARD, TWO_TYPES, TWO_TYPES)),
    (
        "buckets",
        "disks of workers",
        PLUS,
        lambda: seen(engine=EngineConfig(name="local", blades=2)),
        ("dcfr+:disk", ONE_BOARD, ONE_BOARD, TWO_TYPES, TWO_TYPES),
    ),
    ("buckets", GPU, STEADY, lambda: seen(device="gpu"), (SEVERAL, SEVERAL, SEVERAL, SEVERAL, "cfr-br:1:linear")),
    ("pairs of buckets", "memory", ANY, lambda: sequences("leduc"), ("joint:dcfr", NO_LOOK, NO_LOOK, NO_LOOK, NO_LOOK)),
    (
        "pairs of buckets",
        GPU,
        ANY,
        lambda: replace(sequences("leduc"), device="gpu"),
        ("joint:dcfr", NO_LOOK, NO_LOOK, NO_LOOK, NO_LOOK),
    ),
)
FLAT_ELSEWHERE = ("flat tree", "two bytes, disk, workers, GPU", IN_MEMORY)


def here(row: Row) -> bool:
    """Whether a row needs no GPU: `test_device_spots` tries the others."""
    return not row[1].startswith(GPU)


def is_algorithm(cell: str) -> bool:
    """Whether a cell has an algorithm, in place of a reason."""
    return " " not in cell


def works(row: Row, algorithm: str) -> bool:
    """Solve a small game for a few iterations: whether what comes out is better than what went in."""
    home, problem = row[1], row[3]()
    with ExitStack() as short:
        if "drawn" in home:
            short.enter_context(patch.object(abstract_problem, "LARGE", 0))
            short.enter_context(patch.object(machine, "available_memory", lambda: 0))
        solver = make_solver(problem, algorithm, seed=1)
    if "drawn" in home:
        assert isinstance(solver.tables, SampledBoardTables)
    evaluator = evaluator_for(replace(problem, engine=EngineConfig()) if isinstance(problem, type(seen())) else problem)
    try:
        solver.step(2)
        before = evaluator.exploitability(solver.average())
        solver.step(30)
        after = evaluator.exploitability(solver.average())
        return bool(np.isfinite(before) and after < before)
    finally:
        if workers := with_workers(solver):
            workers.close()


def refused(row: Row, sampling: int) -> bool:
    """Whether what would be the name of an algorithm is refused."""
    ending = ":compact" if "two bytes" in row[1] else ":disk" if "disk" in row[1] else ""
    plain = ("cfr+", "pcs:cfr+", "cs:cfr+", "cfr-br", "cfr-br:1:cfr")[sampling]
    name = f"joint:{plain}" if row[0] == "pairs of buckets" else plain + ending
    try:
        make_solver(row[3](), name).step(1)
    except KiltError:
        return True
    return False


def table() -> str:
    """The table, with reasons as footnotes."""
    reasons = [*dict.fromkeys(cell for row in ROWS for cell in row[4] if not is_algorithm(cell)), IN_MEMORY]
    head = f"| tables over | tables in | variants | {' | '.join(SAMPLING)} |"
    lines = [head, "|---" * (3 + len(SAMPLING)) + "|"]
    for what, home, variants, _, cells in ROWS:
        shown = [f"`{cell}`" if is_algorithm(cell) else f"({reasons.index(cell) + 1})" for cell in cells]
        lines.append(f"| {what} | {home} | {variants} | {' | '.join(shown)} |")
    elsewhere = f"({len(reasons)})"
    lines.append(f"| {FLAT_ELSEWHERE[0]} | {FLAT_ELSEWHERE[1]} | | {' | '.join([elsewhere] * len(SAMPLING))} |")
    notes = [f"({number}) {reason[0].upper()}{reason[1:]}." for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", " ".join(notes), ""])


def page(text: str) -> str:
    """The page with the table as it is now."""
    begin, end = MARKS
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{table()}\n{end}{rest.partition(end)[2]}"


def main() -> None:
    """Try all that needs no GPU, and write the table."""
    for row in filter(here, ROWS):
        for sampling, cell in enumerate(row[4]):
            fine = works(row, cell) if is_algorithm(cell) else cell == ALL_MAPS or refused(row, sampling)
            sys.stdout.write(f"{row[0]}, {row[1]}, {SAMPLING[sampling]}: {cell}{'' if fine else ' FAILS'}\n")
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
