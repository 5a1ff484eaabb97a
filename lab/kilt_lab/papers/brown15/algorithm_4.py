"""[Brown15 algorithm 4]: how boards are sampled, as printed and as it is done here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kilt_lab.cells import NODES, Cell, CellBudget, Setting, changes, rows
from kilt_lab.claims import Claim, contrast, every, lower
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.ranked_leduc import DEALS, BoardSampling, RankedLeduc

SOURCE = "[Brown15 algorithm 4]"
RANKS = (3, 6, 12)  # of the deck, and so classes of boards
BIAS = 1.0  # mbb/g that may be put down to chance
LEVELS = (1, 2, 3)  # of blades, in a game with as many boards as the last of these
ALIKE = 20.0  # mbb/g that runs of several levels may be apart
PRINTED, WEIGHTED, MORE, ONE = "as printed", "a board of each class", "4 boards of each class", "1 board a deal"

WAYS = {
    PRINTED: BoardSampling(weighted=False),
    WEIGHTED: BoardSampling(),
    MORE: BoardSampling(samples=4),
    ONE: BoardSampling(boards=1),
} | {f"{boards} boards a deal": BoardSampling(boards=boards) for boards in (2, 4, 8)}


def _row(classes: int, way: str) -> str:
    return f"{classes} classes, {way}"


def _level(depth: int) -> str:
    return f"{depth} of 3 levels of blades, {ONE}"


def _games() -> Iterator[tuple[int, int, int, dict[str, BoardSampling]]]:
    """Ranks, suits and boards of each game, and how it is solved in each row."""
    for ranks in RANKS:
        yield ranks, 2, 1, {_row(ranks, way): how for way, how in WAYS.items() if how.boards < ranks}
    yield 5, 1, LEVELS[-1], {_level(depth): BoardSampling(boards=1, depth=depth) for depth in LEVELS}


GAMES = {row: (ranks, suits, boards, how) for ranks, suits, boards, ways in _games() for row, how in ways.items()}


@dataclass(frozen=True)
class BoardsSampled(Experiment):
    """Boards, weights and levels by exact exploitability, on small games.

    The games are Leduc hold'em with more ranks. Nothing is abstracted, and each rank of the board is a class of its
    own, so that exploitability goes to 0 where sampling is unbiased. All ways visit as many nodes, trunk and leaves
    included: that is the time of any number of threads that are always at work.

    As printed, each deal has a board of each class, and what a class adds to its own tables has no weight, though a
    class leaves other hands with other numbers of boards. With weights that is unbiased; and with fewer boards than
    classes, one for each thread, the trunk learns from more deals (see `solve.distributed.blades`).

    Blades below blades [Brown15 §3] are unbiased too: the experiment compares the exploitability of runs of one, two
    and three levels after as many deals, in a game of three boards. Messages are short there: a blade with others below
    it learns from a batch when these have answered, and the strategies of a long one would be older on more levels.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve one of the games in one of the ways."""
        ranks, suits, boards, how = GAMES[case]

        def made() -> RankedLeduc:
            return RankedLeduc(ranks, lab.folder / f"{ranks}-{suits}-{boards}", suits, boards)

        game = lab.shared(f"{ranks}, {suits}, {boards}", made, per="experiment")
        found, deals = game.solved(seed, lab.budget.whole, how)
        return Cell({case: found}, more={"deals": deals} | ({"nodes": lab.budget.whole} if boards == 1 else {}))


ROWS = tuple(GAMES)
ALGORITHM_4 = BoardsSampled(
    "tartanian7-algorithm-4",
    SOURCE,
    "boards, weights and levels as printed and as here, by exact exploitability, in a small game",
    rows=rows(ROWS, "mbb/g"),
    claims=tuple(
        claim
        for classes in RANKS
        for claim in (
            Claim(
                f"tables of classes need no weights: with {classes} classes that costs {BIAS:g} mbb/g at most, a "
                "margin that is ours",
                SOURCE,
                contrast({_row(classes, WEIGHTED): 1.0, _row(classes, PRINTED): -1.0}, -BIAS),
            ),
            Claim(
                f"a board of each of {classes} classes is better than one board for each deal, for as many nodes",
                SOURCE,
                lower(_row(classes, WEIGHTED), _row(classes, ONE)),
            ),
            Claim(
                f"more boards of each of {classes} classes converge slower, for as many nodes",
                "[Brown15 §3]",
                lower(_row(classes, WEIGHTED), _row(classes, MORE)),
            ),
        )
    )
    + tuple(
        Claim(
            f"blades on {after} levels learn what those on {before} do: they are at most {ALIKE:g} mbb/g apart, a "
            "margin that is ours",
            "[Brown15 §3]",
            every(
                contrast({_level(after): 1.0, _level(before): -1.0}, -ALIKE),
                contrast({_level(after): -1.0, _level(before): 1.0}, -ALIKE),
            ),
        )
        for before, after in pairwise(LEVELS)
    ),
    hint=f"Leduc hold'em with {', '.join(map(str, RANKS))} ranks; rows about levels are of {DEALS:,} deals",
    time="some seconds for each run of each row",
    defaults=Setting(budget=CellBudget(NODES, 4_000_000), runs=8),
    quick=changes(jobs=0, only=ROWS[:4], runs=3),
    clocks=(NODES,),
    by_seed=False,
)
